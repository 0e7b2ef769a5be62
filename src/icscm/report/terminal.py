"""A summary on the terminal, as things that rich prints one below the other.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from icscm.formatting import clip
from icscm.report.advice import explain_tests
from icscm.report.elsewhere import ASSUMED, find_ends, say_expected, say_range
from icscm.report.errors import say_fault, say_measures
from icscm.report.leaves import count_conclusions, say_conclusions
from icscm.report.steps import list_looks
from icscm.report.tree_summary import is_of_tree
from icscm.report.words import Plain, format_p, format_points, format_share, format_utility
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Up to this many environments stand side by side in 80 columns.
N_BESIDE = 3
# Characters of a table's cell, and of a text, such as a rule; files have all of it.
_MAX_CELL, MAX_TEXT = 200, 2_000
# Refused candidates of a step, and tested sets, that are listed.
_N_REFUSED, _N_SETS = 3, 5
# What came back on halves: how many of each kind are listed, and characters of one.
_N_RETURNS, _MAX_MODEL = 5, 150

# Why a candidate was refused, in few words.
_WHY = {
    "dependent": "label shifts between environments",
    "small": "too few samples",
    "unreplicated": "nearly all in one environment",
    "unhelpful": "more wrong than right",
}

# Conclusions under the heading "invariant?".
BRIEFLY = {INVARIANT: "yes", NOT_INVARIANT: "no", TOO_LITTLE_DATA: "cannot tell", None: ""}


def make_heading(text: str) -> Group:
    """A heading with an empty line before it."""
    return Group("", Text(clip(text, _MAX_CELL), style="bold underline"))


def make_note(text: str) -> Text:
    """What explains a table."""
    return Text(text, style="dim")


def make_table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows under headings; a heading after > is one of numbers. Only what is very long is cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_number = column.startswith(">")
        heading = Text(clip(column.removeprefix(">"), _MAX_CELL))
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clip(cell, _MAX_CELL)) for cell in row))
    return table


def make_fact_table(facts: Iterable[tuple[str, str]]) -> Table:
    """What is what: a word and its explanation a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for word, text in facts:
        table.add_row(Text(clip(word, _MAX_CELL)), Text(clip(text, MAX_TEXT)))
    return table


def make_list(points: Iterable[str]) -> Table:
    """Sentences, each after a dash."""
    return make_fact_table(("-", point) for point in points)


def render_summary(summary: Plain) -> Iterator[RenderableType]:
    """The rule, how it was found and how it fares in each environment, or why there is none."""
    if is_of_tree(summary):
        from icscm.report.tree_terminal import render_tree  # made of what stands here

        yield from render_tree(summary)
        return
    model, leaves = summary["model"], summary["leaves"]
    conclusions = say_conclusions(count_conclusions(leaf["conclusion"] for leaf in leaves))
    facts = [("Leaves", conclusions)] if conclusions and model["rules"] else []
    rule = f"positive where {model['text']}" if model["rules"] else f"none: {model['text']}"
    yield make_fact_table([*list_rule_facts(rule, summary), *facts])
    if model["rules"]:
        yield make_heading("How it was found")
        yield from render_search(summary)
    else:
        yield from _render_nothing_found(summary)
    yield from render_advice(summary)
    yield from _render_stability(summary["stability"])
    if model["rules"]:
        yield from render_leaves(summary)


def render_advice(summary: Plain) -> Iterator[RenderableType]:
    """What to mind in this very result, and what to try."""
    advice = summary["search"]["suggestions"]
    for title, points in (
        ("Read with care", summary["meaning"]["here"]),
        ("What to try next", advice),
    ):
        if points:
            yield make_heading(title)
            yield make_list(points)


def list_rule_facts(rule: str, summary: Plain) -> list[tuple[str, str]]:
    """First whether the rule is worth anything; it, its error, and what to hold that against."""
    errors, aside = summary["errors"], summary.get("set_aside")
    text = f"{errors['error'] or 0:.1%} of {errors['n']:,} training samples"
    if errors["worst"] is not None:
        worst, best = (
            f"{each['environment']}, {each['error']:.1%} of {each['n']:,}"
            for each in (errors["worst"], errors["best"])
        )
        text += f"; worst in environment {worst}, best in {best}"
    label = "positive" if errors["majority_is_positive"] else "negative"
    has_rules, beware = len(summary["leaves"]) > 1, []
    name = "tree" if is_of_tree(summary) else "rule"
    if has_rules and not errors["beats_majority"]:
        beware = [("Beware", f"the {name} is {say_fault(errors, f'always guessing {label}')}")]
    elif aside is not None:
        wrong = f"wrong for {format_share(aside['errors']['error'])}"
        told = f"rules were found and set aside ({wrong}): {aside['worth']} always guessing {label}"
        beware = [("Beware", told)]
    guess = f"always guessing {label} would be wrong for {errors['majority_error'] or 0:.1%}"
    more = [("", guess), ("Beside it", say_measures(errors))] if has_rules else []
    return [*beware, (name.capitalize(), rule), ("Error", text), *more]


def render_search(summary: Plain) -> Iterator[RenderableType]:
    """The steps, the sets tested, why the search ended and what was pruned."""
    search = summary["search"]
    yield _make_step_table(search)
    yield from _render_sets(search["sets"])
    pruning = [summary["pruning"]["text"]] if summary["pruning"]["text"] else []
    yield make_note("\n" + " ".join([search["stop_text"], *pruning, *summary["notes"]]))
    if search["is_tested"]:
        yield make_note(explain_tests(search, summary["invariance"]))
    yield from _render_broken(search)


def _render_broken(search: Plain) -> Iterator[RenderableType]:
    """Rules that would have been taken but for a few environments, those of largest utility."""
    steps = {step["number"]: step["utility"] for step in search["steps"]}
    found: dict[str, Plain] = {}
    for look in list_looks(search):
        for each in look["refused"]:
            if each["breaking_text"] and each["utility"] > steps.get(look["number"], 0):
                found.setdefault(each["rule"], each)
    ranked = sorted(found.values(), key=lambda each: -each["utility"])[:_N_REFUSED]
    if ranked:
        yield make_heading("Refused because of a few environments")
        yield make_list(f"{each['rule']} {each['breaking_text']}." for each in ranked)


def render_refused(summary: Plain) -> Iterator[RenderableType]:
    """The most useful candidates that each step refused, and why."""
    yield make_table(
        ("step", "refused rule", ">utility", ">p leaf", "why"),
        [
            (str(look["number"]), each["rule"], format_utility(each["utility"]), *_explain(each))
            for look in list_looks(summary["search"])
            for each in look["refused"][:_N_REFUSED]
        ],
    )


def render_leaves(summary: Plain) -> Iterator[RenderableType]:
    """How often the label is positive in each leaf, by environment."""
    leaves, environments = summary["leaves"], summary["asked"]["environments"]
    yield make_heading("Positive labels in each leaf, by environment")
    if len(environments) <= N_BESIDE:
        yield _make_rate_table(leaves)
    else:
        yield make_range_table(leaves)
        yield make_note(
            f"\nOf {len(environments):,} environments those of lowest and highest rate; the "
            "report and, of a saved model, `icscm show --all` have all."
        )
    broken = [f"{name_leaf(leaf)}: {leaf['breaking_text']}." for leaf in leaves if leaf["breaking"]]
    if broken:
        yield make_note("\nNot invariant: " + " ".join(broken))
    if leaves[0]["conclusion"] is not None:
        yield make_note("\n" + describe_bounds(leaves, summary["invariance"]))
    yield from _render_elsewhere(summary["elsewhere"], leaves)


def _render_elsewhere(elsewhere: Plain, leaves: Sequence[Plain]) -> Iterator[RenderableType]:
    """What to expect of each leaf in an environment not seen, a line each."""
    yield make_heading("What to expect in an environment not seen")
    rows = [
        (
            name_leaf(leaf),
            format_share(leaf["rate"]),
            say_range(leaf["environments"]),
            say_expected(leaf["new_interval"]),
        )
        for leaf in leaves
        if leaf["new_interval"] is not None
    ]
    if rows:
        yield make_table(("leaf", ">rate", ">so far", ">95 % of new ones"), rows)
    told = f"\n{ASSUMED}" if rows else elsewhere["text"]
    yield make_note(f"{told} {elsewhere['untold_text']}".rstrip())


def _render_nothing_found(summary: Plain) -> Iterator[RenderableType]:
    search = summary["search"]
    yield make_heading("Why there is no rule")
    if summary["set_aside"]:
        yield summary["set_aside"]["explanation"]
    yield search["stop_text"]
    if search["refused_text"]:
        yield search["refused_text"]
    if search["nearest"]:
        yield ""
        rows = [(each["rule"], f"{each['n']:,}", *_explain(each)) for each in search["nearest"]]
        yield make_table(("nearest candidate", ">settles", ">p leaf", "why"), rows)
    yield from _render_sets(search["sets"])
    yield from _render_broken(search)


def _render_stability(found: Plain | None) -> Iterator[RenderableType]:
    """What came back when learning from halves, the most frequent first."""
    if found is None:
        return
    yield make_heading("How stable it is")
    yield found["text"]
    for part, title in (("features", "column"), ("rules", "rule"), ("models", "model")):
        rows = [
            (f"{each['frequency']:.0%}", clip(each["text"], _MAX_MODEL), "<- here" * each["is_own"])
            for each in found[part][:_N_RETURNS]
        ]
        if rows:
            yield ""
            yield make_table((">of halves", title, ""), rows)
        if len(found[part]) > len(rows):
            yield make_note(f"and {len(found[part]) - len(rows):,} more")


def _make_step_table(search: Plain) -> Table:
    """One line for each rule that was added."""
    tests = (">p leaf", ">p rest") if search["is_tested"] else ()
    rows = []
    for step in search["steps"]:
        p_values = format_p(step["p_value"]), format_p(step["p_value_remaining"])
        n_refused, n = step["look"]["n_refused_all"], step["look"]["n_candidates"]
        start = str(step["number"]), step["rule"], format_utility(step["utility"]), f"{step['n']:,}"
        rows.append((*start, *p_values[: len(tests)], f"{n_refused:,} of {n:,}"))
    return make_table(("step", "rule", ">utility", ">settles", *tests, ">refused"), rows)


def _render_sets(sets: Sequence[Plain]) -> Iterator[RenderableType]:
    """The sets of the exhaustive search that came nearest to being accepted, or were."""
    rows = []
    for each in sets[:_N_SETS]:
        features = ", ".join(each["features"]) or "(none)"
        rows.append((format_p(each["p_value"]), features, "yes" if each["accepted"] else "no"))
    if rows:
        yield ""
        yield make_table(("p", "set of features", "accepted"), rows)


def _explain(refused: Plain) -> tuple[str, str]:
    """Its p-value, and why in few words; by equivalence, a leaf need not be dependent."""
    is_untold = refused["reason"] == "dependent" and refused["conclusion"] == TOO_LITTLE_DATA
    return format_p(refused["p_value"]), TOO_LITTLE_DATA if is_untold else _WHY[refused["reason"]]


def name_leaf(leaf: Plain) -> str:
    """A leaf by the rule that settles it; the last is what none settles."""
    if "end" in leaf:  # of a tree
        return f"{leaf['number']}: {leaf['condition']}"
    if leaf["is_rest"]:
        return "all samples" if leaf["number"] == 1 else "else"
    return ("else " if leaf["number"] > 1 else "") + str(leaf["condition"])


def _make_rate_table(leaves: Sequence[Plain]) -> Table:
    """The rate in each environment, side by side."""
    places = [f">environment {each['environment']}" for each in leaves[0]["environments"]]
    cells = [[*map(_format_rate, leaf["environments"])] for leaf in leaves]
    return _make_leaf_table(leaves, places, cells)


def make_range_table(leaves: Sequence[Plain]) -> Table:
    """For many environments: those of lowest and highest rate."""
    cells = [[f"{leaf['n']:,}", *_name_ends(leaf)] for leaf in leaves]
    return _make_leaf_table(leaves, [">samples", "lowest rate", "highest rate"], cells)


def _make_leaf_table(
    leaves: Sequence[Plain], columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> Table:
    judged = ["invariant?"] if leaves[0]["conclusion"] is not None else []
    rows = []
    for leaf, middle in zip(leaves, cells, strict=True):
        predicts = "positive" if leaf["is_positive"] else "negative"
        conclusion = [BRIEFLY[leaf["conclusion"]]] * len(judged)
        rows.append([name_leaf(leaf), predicts, *middle, *conclusion])
    return make_table(["leaf", "predicts", *columns, *judged], rows)


def _format_rate(cell: Plain) -> str:
    return f"{cell['rate']:.1%} of {cell['n']:,}" if cell["n"] else "no sample"


def _name_ends(leaf: Plain) -> list[str]:
    """Lowest and highest rate, each with its environment; a single environment once."""
    ends = find_ends(leaf["environments"])
    if ends is None:
        return ["no sample", ""]
    texts = [f"{_format_rate(each)}\n(env {each['environment']})" for each in ends]
    return texts if leaf["n_seen"] > 1 else [texts[0], "no other env"]


def make_environment_table(leaf: Plain, most: int | None = None) -> Table:
    """One leaf, an environment a line, the largest first; `most` limits the lines."""
    rows = []
    for each in sorted(leaf["environments"], key=lambda each: -each["n"])[:most]:
        rate = f"{each['rate']:.1%}" if each["n"] else "-"
        rows.append((each["environment"], f"{each['n']:,}", f"{each['n_positive']:,}", rate))
    return make_table(("environment", ">samples", ">positive", ">rate"), rows)


def describe_bounds(leaves: Sequence[Plain], standard: Plain) -> str:
    """How far apart the rates may still be, and what would have been seen, as sentences."""
    sentences = [
        f"Invariant: shown to differ by at most {standard['margin_text']} between environments."
    ]
    bounds = [leaf["difference_interval"][1] for leaf in leaves if leaf["difference_interval"]]
    worst = max(bounds, default=1)
    if worst < 0.9995:  # 100 points are no bound
        where = "In the least certain leaf" if len(leaves) > 1 else "Here"
        sentences.append(f"{where} they may truly differ by up to {format_points(worst)}.")
    seen = [leaf["detectable"] for leaf in leaves]
    if None in seen:
        sentences.append("In some leaf no difference, however large, would have been noticed.")
    else:
        told = f"A difference of less than {format_points(max(seen))} could go unnoticed"
        sentences.append(f"{told}{' in some leaf' if len(leaves) > 1 else ''}.")
    return " ".join(sentences)
