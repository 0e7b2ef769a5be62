"""What `icscm fit` prints of a forest. Slow to load, so imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from icscm.formatting import as_text, clip, count
from icscm.report.terminal import make_fact_table, make_heading, make_list, make_note, make_table
from icscm.search.records import Rejection
from icscm.search.trace import Trace

# Refused columns, and environments, that are listed; characters of a rule beside its numbers.
_N_REFUSED, _N_PLACES, _MAX_RULE = 5, 10, 34

_TWO = (
    "Two environments can show a difference, but not how effects vary: what both have in common "
    "may be a habit of these two. Three or more tell more."
)
_SHARED = "No habit can be seen that all environments here share; nothing here proves a cause."
_NOTHING = (
    "No split was made: nothing tells more than chance would, or all that does was refused; a "
    "larger --tolerance lets more in."
)
_WHY = {
    "unreplicated": "in too few environments",
    "heterogeneous": "effect differs",
    "remembered": "effect differs further up",
    "banned": "leaves depend on the environment",
    "idle": "brings next to nothing",
}


def render_forest(learner: Any) -> Iterator[RenderableType]:
    """The forest in short, how well it does, and what was refused."""
    trace: Trace = learner.trace_
    yield Text(str(learner.model_))
    yield ""
    yield make_fact_table(_list_errors(learner))
    yield from _render_places(learner.out_of_bag_)
    is_tested = trace.tolerance is not None
    if is_tested:
        yield from _render_refused(trace)
    cautions = [_TWO] * (is_tested and len(trace.environments) == 2) + [_SHARED] * is_tested
    cautions += [] if learner.model_.rules else [_NOTHING]
    if cautions:
        yield make_heading("Read with care")
        yield make_list(cautions)


def _list_errors(learner: Any) -> Iterator[tuple[str, str]]:
    """Whether it beats saying nothing, on rows that trees were not grown on."""
    scores = learner.out_of_bag_.loc["all"]
    n_negative, n_positive = map(sum, learner.class_counts_)
    label = "positive" if n_positive > n_negative else "negative"
    share, error = min(n_negative, n_positive) / (n_negative + n_positive), 1 - scores["accuracy"]
    if not error < share:
        yield "Beware", f"the forest is wrong as often as always guessing {label}"
    yield "Error", f"{error:.1%} of {int(scores['n']):,} rows that its trees were not grown on"
    yield "", f"always guessing {label} would be wrong for {share:.1%}"


def _render_places(frame: Any) -> Iterator[RenderableType]:
    """Each environment's scores, the worst AUC first."""
    places = frame.drop(index="all") if len(frame) > 1 else frame
    ranked = places.sort_values("auc", kind="stable")
    yield make_heading("Rows that trees were not grown on, by environment")
    rows = [
        (
            as_text(name),
            f"{int(each['n']):,}",
            f"{1 - each['accuracy']:.1%}",
            "-" if each["auc"] != each["auc"] else f"{each['auc']:.3f}",
        )
        for name, each in ranked.head(_N_PLACES).iterrows()
    ]
    yield make_table(("environment", ">rows", ">error", ">AUC"), rows)
    if len(ranked) > _N_PLACES:
        yield make_note(f"and {len(ranked) - _N_PLACES:,} more, of higher AUC")


def _render_refused(trace: Trace) -> Iterator[RenderableType]:
    """What the look at all rows refused: of each column the most telling split."""
    found = [each for look in trace.nodes for each in look.best_rejected]
    ranked = sorted(found, key=lambda each: -(each.candidate.deviance_explained or 0.0))
    yield make_heading("What was refused, and why")
    if not ranked:
        yield "Nothing that tells something of the label was refused."
        return
    rows = list(map(_describe, ranked[:_N_REFUSED]))
    yield make_table(("split", ">tells", ">differs by", "why"), rows)
    note = (
        "tells: deviance. differs by: coefficient of variation of its effect on the log odds "
        "between environments"
    )
    if trace.invariance == "effect" and trace.tolerance is not None:
        note += f"; the tolerance allows {trace.tolerance**0.5:.0%}"
    n_more = len(ranked) - _N_REFUSED
    more = f" Refused, too: {count(n_more, 'more column')}." if n_more > 0 else ""
    yield make_note(f"\n{note}.{more}")


def _describe(refusal: Rejection) -> tuple[str, str, str, str]:
    found = refusal.candidate
    differs = f"{max(found.heterogeneity_share or 0.0, 0.0) ** 0.5:.0%}"
    rule, told = clip(str(found.rule), _MAX_RULE), f"{found.deviance_explained:,.0f}"
    return rule, told, differs, _WHY.get(refusal.reason, "")
