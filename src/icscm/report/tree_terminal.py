"""A tree on the terminal: itself, its splits, what was refused, and the rates of its leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from icscm.formatting import clip
from icscm.report.effects import format_ratio
from icscm.report.elsewhere import ASSUMED, find_ends, say_expected
from icscm.report.terminal import (
    BRIEFLY,
    list_rule_facts,
    make_fact_table,
    make_heading,
    make_list,
    make_note,
    make_table,
    render_advice,
)
from icscm.report.tolerance import say_changes
from icscm.report.words import Plain, format_share

# Of refused columns and of tolerances, how many are listed; nodes and splits of a large tree.
_N_REFUSED, _N_ROWS = 5, 63
# Levels before a node goes no further right.
_MAX_INDENT = 10


def render_tree(summary: Plain) -> Iterator[RenderableType]:
    """What is known of a fitted tree, in 80 columns."""
    model, has_environments = summary["model"], summary["asked"]["has_environments"]
    rule = model["name"] if model["n_rules"] else f"none: {model['text']}"
    yield make_fact_table([*list_rule_facts(rule, summary), ("Asked", summary["search"]["text"])])
    if model["n_rules"]:
        yield make_heading("The tree")
        yield _make_node_table(summary["tree"]["nodes"])
        if len(summary["tree"]["nodes"]) > _N_ROWS:
            yield make_note(f"The first {_N_ROWS} of {len(summary['tree']['nodes']):,} nodes.")
        yield make_heading("Its splits")
        yield _make_split_table(summary["splits"], has_environments=has_environments)
        if has_environments:
            yield make_note(
                "\nOdds: those of positive labels where the rule is true against where not; from "
                "the lowest to the highest environment. Varies: beyond chance."
            )
    yield from _render_refused(summary)
    yield from render_advice(summary)
    yield from _render_path(summary["tolerance_path"])
    if has_environments and model["n_rules"]:
        yield from _render_leaves(summary)


def _make_node_table(nodes: Sequence[Plain]) -> Table:
    rows = []
    for node in nodes[:_N_ROWS]:
        name = "  " * min(node["depth"], _MAX_INDENT) + node["rule"]
        is_leaf = node["leaf"] is not None
        predicts = ("positive" if node["is_positive"] else "negative") if is_leaf else ""
        leaf = str(node["leaf"]) if is_leaf else ""
        rows.append((name, leaf, predicts, f"{node['n']:,}", format_share(node["rate"])))
    return make_table(("node", ">leaf", "predicts", ">samples", ">rate"), rows)


def _make_split_table(splits: Sequence[Plain], *, has_environments: bool) -> Table:
    rows = []
    for split in splits[:_N_ROWS]:
        refused = f"{split['n_refused_all']:,} of {split['n_candidates']:,}"
        start = (
            str(split["number"]),
            split["rule"],
            f"{split['information']:,.0f}",
            format_ratio(split["odds_ratio"]),
        )
        ends = [split["lowest"], split["highest"]]
        reach = " to ".join(format_ratio(each["odds_ratio"]) for each in ends if each)
        middle = (reach, f"{split['variation']:.0%}") if has_environments else ()
        rows.append((*start, *middle, refused))
    between = ("in environments", ">varies") if has_environments else ()
    return make_table((">split", "rule", ">tells", ">odds", *between, ">refused"), rows)


def _render_refused(summary: Plain) -> Iterator[RenderableType]:
    refused = summary["refused_features"]
    if not refused:
        return
    yield make_heading("Not in the tree, though it tells something")
    yield make_list(f"{each['rule']}: {each['why']}." for each in refused[:_N_REFUSED])
    if len(refused) > _N_REFUSED:
        yield make_note(f"and {len(refused) - _N_REFUSED:,} more columns")


def _render_path(path: Plain | None) -> Iterator[RenderableType]:
    if path is None:
        return
    yield make_heading("Other tolerances, from a plain tree to a strict one")
    columns = "tolerance", "leave (-), enter (+)", ">leaves", ">tells", ">differs"
    scores = (">AUC left out", ">worst") if path["has_scores"] else ()
    rows = []
    for each in path["points"]:
        numbers = each["n_leaves"], round(each["information"]), round(each["differs"])
        found = [each[key] for key in ("auc_left_out", "worst_auc_left_out")][: len(scores)]
        rows.append(
            (
                each["name"] + "*" * each["is_own"],
                say_changes(each["leave"], each["enter"]),
                *(f"{number:,}" for number in numbers),
                *("-" if value is None else f"{value:.3f}" for value in found),
            )
        )
    yield make_table((*columns, *scores), rows)
    yield make_note(f"\n* this tree. {path['caution']}")


def _render_leaves(summary: Plain) -> Iterator[RenderableType]:
    """The rates of each leaf, from the lowest environment to the highest, and elsewhere."""
    yield make_heading("Positive labels in each leaf")
    rows = []
    for leaf in summary["leaves"][:_N_ROWS]:
        judged = "" if leaf["conclusion"] is None else BRIEFLY[leaf["conclusion"]]
        ends = find_ends(leaf["environments"]) or ()
        seen = [f"{format_share(e['rate'])} ({clip(e['environment'], 16)})" for e in ends]
        interval = leaf["new_interval"]
        expected = "cannot tell" if interval is None else say_expected(interval)
        rows.append((str(leaf["number"]), *(seen or ["no sample", ""]), expected, judged))
    columns = ">leaf", "lowest", "highest", "95 % of new ones", "invariant?"
    yield make_table(columns, rows)
    has_own_rates = summary["search"]["invariance"] == "effect" and summary["search"]["is_tested"]
    told = "Effects were asked to be the same everywhere; rates need not be. " * has_own_rates
    is_told = any(leaf["new_interval"] is not None for leaf in summary["leaves"])
    new = f"95 % of new ones: {ASSUMED[0].lower()}{ASSUMED[1:]}"
    yield make_note(f"\n{told}{new if is_told else summary['elsewhere']['text']}")
