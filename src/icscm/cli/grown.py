"""What `icscm fit` prints of a tree or a forest. Slow to load, so imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from icscm.model.trees import Tree
from icscm.report.elsewhere import ASSUMED, say_expected
from icscm.report.errors import describe_errors, say_measures
from icscm.report.terminal import make_fact_table, make_heading, make_list, make_note, make_table
from icscm.report.words import Names, Plain, format_share
from icscm.search.tree_trace import SplitRefusal, TreeTrace
from icscm.text import as_text, clip, count, format_number

# Refused columns, and environments of a forest, that are listed.
_N_REFUSED, _N_PLACES = 5, 10
# Characters of a rule, and of the way to a leaf, beside the numbers of a table.
_MAX_RULE, _MAX_WAY = 34, 46

_PURPOSES = {
    "effect": "for predicting elsewhere: what a split does to the odds must be the same in all "
    "environments{bound}, whatever their own rates. It does not look for parents: a consequence of "
    "the label may pass; --invariance rate looks for them.",
    "rate": "to look for parents: the label's rate in each leaf must be the same in all "
    "environments{bound}. --invariance effect predicts better elsewhere.",
}
_PLAIN = "a plain one: nothing was compared between environments, nothing refused."
_WHY = {
    "unreplicated": "in too few environments",
    "dependent": "effect differs",
    "remembered": "effect differs further up",
    "banned": "leaves depend on the environment",
    "idle": "brings next to nothing",
}


def render_grown(learner: Any, samples: Any) -> Iterator[RenderableType]:
    """The model, what it is for, how well it does, and what was refused."""
    trace: TreeTrace = learner.trace_
    is_tree = isinstance(learner.model_, Tree)
    negative, positive = map(as_text, samples.class_names or trace.classes)
    places = tuple(map(as_text, trace.environments))
    names = Names(as_text(samples.target or "label"), None, (negative, positive), places, 0)
    yield Text(str(learner.model_))
    yield ""
    told = _list_tree_facts(learner, names) if is_tree else _list_forest_facts(learner)
    what = learner.model_.kind.capitalize()
    yield make_fact_table([(what, _say_purpose(trace)), *told])
    if not is_tree:
        yield from _render_out_of_bag(learner.out_of_bag_)
    yield from _render_refused(trace)
    cautions = _list_cautions(learner, trace)
    if cautions:
        yield make_heading("Read with care")
        yield make_list(cautions)
    if is_tree and trace.tolerance is not None:
        yield from _render_elsewhere(learner.describe_leaves())


def _say_purpose(trace: TreeTrace) -> str:
    if trace.tolerance is None:
        return _PLAIN
    bound = f" (tolerance {format_number(trace.tolerance)})"
    return _PURPOSES[trace.invariance].format(bound=bound)


def _list_tree_facts(learner: Any, names: Names) -> Iterator[tuple[str, str]]:
    """Whether it beats saying nothing, and what stands beside the error."""
    errors = describe_errors(learner.model_, names)
    label = "positive" if errors["majority_is_positive"] else "negative"
    if learner.model_.splits and not errors["beats_majority"]:
        told = f"the tree is wrong as often as always guessing {label}"
        auc = errors["auc"]
        if auc is not None and auc > 0.5:
            told += f"; its probabilities still put rows in order (AUC {auc:.3f})"
        yield "Beware", told
    yield "Error", f"{errors['error'] or 0:.1%} of {errors['n']:,} training samples{_worst(errors)}"
    yield "", f"always guessing {label} would be wrong for {errors['majority_error'] or 0:.1%}"
    if learner.model_.splits:
        yield "Beside it", say_measures(errors)


def _worst(errors: Plain) -> str:
    worst = errors["worst"]
    if worst is None:
        return ""
    return f"; worst in environment {worst['environment']}, {worst['error']:.1%} of {worst['n']:,}"


def _list_forest_facts(learner: Any) -> Iterator[tuple[str, str]]:
    """As for trees, of rows that trees were not grown on."""
    scores = learner.out_of_bag_.loc["all"]
    totals = [sum(each) for each in learner.class_counts_]
    label, share = "negative" if totals[0] >= totals[1] else "positive", min(totals) / sum(totals)
    error = 1.0 - float(scores["accuracy"])
    if not error < share:
        yield "Beware", f"the forest is wrong as often as always guessing {label}"
    where = "rows that its trees were not grown on"
    yield "Error", f"{error:.1%} of {int(scores['n']):,} {where}"
    yield "", f"always guessing {label} would be wrong for {share:.1%}"


def _render_out_of_bag(frame: Any) -> Iterator[RenderableType]:
    """Each environment's scores, the worst AUC first."""
    places = frame.drop(index="all") if len(frame) > 1 else frame
    ranked = places.sort_values("auc", kind="stable")
    yield make_heading("Rows that trees were not grown on, by environment")
    rows = [
        (
            as_text(name),
            f"{int(each['n']):,}",
            f"{1.0 - each['accuracy']:.1%}",
            "-" if each["auc"] != each["auc"] else f"{each['auc']:.3f}",
        )
        for name, each in ranked.head(_N_PLACES).iterrows()
    ]
    yield make_table(("environment", ">rows", ">error", ">AUC"), rows)
    if len(ranked) > _N_PLACES:
        yield make_note(f"and {len(ranked) - _N_PLACES:,} more, of higher AUC")


def _render_refused(trace: TreeTrace) -> Iterator[RenderableType]:
    """Of each column that was refused its most informative split; those that tell most."""
    if trace.tolerance is None:
        return
    best: dict[str | int, SplitRefusal] = {}
    for look in (*trace.splits, *trace.leaves):
        for each in look.best_refused:
            known = best.get(each.candidate.rule.feature)
            if known is None or known.candidate.information < each.candidate.information:
                best[each.candidate.rule.feature] = each
    ranked = sorted(best.values(), key=lambda each: -each.candidate.information)
    yield make_heading("What was refused, and why")
    if not ranked:
        yield "Nothing that tells something of the label was refused."
        return
    yield make_table(
        ("split", ">tells", ">differs by", "why"), list(map(_describe, ranked[:_N_REFUSED]))
    )
    n_more = len(ranked) - _N_REFUSED
    more = f" Refused, too: {count(n_more, 'more column')}." if n_more > 0 else ""
    note = (
        "Of each column its most telling split. tells: deviance. differs by: coefficient of "
        "variation of its effect on the log odds between environments"
    )
    if trace.invariance == "effect":
        note += f"; the tolerance allows {trace.tolerance**0.5:.0%}"
    yield make_note(f"\n{note}.{more}")


def _describe(refusal: SplitRefusal) -> tuple[str, str, str, str]:
    found = refusal.candidate
    differs = f"{max(found.share, 0.0) ** 0.5:.0%}"
    told = f"{found.information:,.0f}"
    return clip(str(found.rule), _MAX_RULE), told, differs, _WHY.get(refusal.reason, "")


def _list_cautions(learner: Any, trace: TreeTrace) -> Sequence[str]:
    found = []
    if len(trace.environments) == 2 and trace.tolerance is not None:
        found.append(
            "Two environments show that something differs, but not how much it varies: what both "
            "have in common may be a habit of these two. Three or more tell more."
        )
    if trace.tolerance is not None:
        found.append(
            "No habit can be seen that all environments here share alike; nothing here proves a "
            "cause."
        )
    if not learner.model_.rules:
        found.append(
            "No split was made: either nothing tells more than chance would, or all that does was "
            "refused above; a larger --tolerance lets more in."
        )
    return found


def _render_elsewhere(leaves: Any) -> Iterator[RenderableType]:
    """What to expect of each leaf in an environment not seen."""
    known = leaves[leaves["new_low"].notna()]
    yield make_heading("What to expect in an environment not seen")
    if len(known):
        rows = [
            (
                clip(each.rule, _MAX_WAY),
                f"{each.n:,}",
                format_share(each.rate),
                say_expected((each.new_low, each.new_high)),
            )
            for each in known.itertuples()
        ]
        yield make_table(("leaf", ">samples", ">rate", ">95 % of new ones"), rows)
        yield make_note(f"\n{ASSUMED}")
        return
    yield make_note(as_text(leaves["note"].iloc[0]))
