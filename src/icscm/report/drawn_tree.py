"""The nodes and the splits of a tree, as the rows of a table with drawn cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from icscm.drawing.axes import Axis, make_ratio_axis
from icscm.drawing.effects import EffectDot, draw_effects
from icscm.drawing.intervals import draw_axis_cell
from icscm.drawing.outline import (
    OutlineNode,
    OutlineRow,
    draw_rate_bar,
    draw_twigs,
    lay_out_outline,
)
from icscm.formatting import clip
from icscm.report.content.candidates import OddsRatio
from icscm.report.content.nodes import ChosenSplit
from icscm.report.content.tree_nodes import Node
from icscm.report.drawing import Limits
from icscm.report.formatting import format_ratio

# --- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnNode:
    """A node of a tree with its drawn twigs and rate.

    `is_cut` is whether its children are not shown.
    """

    node: Node
    is_cut: bool
    twigs: Markup
    cell: Markup


@dataclass(frozen=True)
class DrawnTree:
    """The nodes of a tree that are shown, from the root down, and how many leaves are not."""

    rows: list[DrawnNode]
    n_left_out: int


def draw_nodes(nodes: Sequence[Node], limits: Limits) -> DrawnTree:
    """Draw the rows of a tree behind their twigs; of very many, the largest splits."""
    records = [OutlineNode(node.depth, node.split, node.n) for node in nodes]
    outline = lay_out_outline(records, max_leaves=limits.leaves)
    mean_rate = nodes[0].rate if nodes else None
    rows = [draw_node(row, nodes[row.number], mean_rate=mean_rate) for row in outline]
    n_leaves = sum(node.leaf is not None for node in nodes)
    n_shown = sum(row.node.leaf is not None for row in rows)
    return DrawnTree(rows, n_left_out=n_leaves - n_shown)


def draw_node(row: OutlineRow, node: Node, *, mean_rate: float | None) -> DrawnNode:
    """Draw a node at its place in the outline of a tree."""
    bar = draw_rate_bar(node.rate, mean_rate=mean_rate, is_positive=bool(node.is_positive))
    return DrawnNode(node, is_cut=row.is_cut, twigs=draw_twigs(row), cell=bar)


# --- effects of splits ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnSplit:
    """A split of a tree, with the drawn effects of its environments."""

    split: ChosenSplit
    cell: Markup


@dataclass(frozen=True)
class DrawnSplits:
    """The splits of a tree that are shown, the marks of their axis, and how many are not."""

    rows: list[DrawnSplit]
    axis: Markup
    n_left_out: int


def draw_splits(splits: Sequence[ChosenSplit], limits: Limits) -> DrawnSplits:
    """Draw the effects of each split by environment, on one axis of odds ratios."""
    shown = splits[: limits.leaves]
    ratios: list[float | None] = []
    for split in shown:
        ratios.append(split.candidate.odds_ratio)
        ratios += [effect.odds_ratio for effect in split.candidate.environments]
    axis = make_ratio_axis(ratio for ratio in ratios if ratio)
    return DrawnSplits(
        rows=[draw_split(split, axis, limits) for split in shown],
        axis=draw_axis_cell(axis),
        n_left_out=len(splits) - len(shown),
    )


def draw_split(split: ChosenSplit, axis: Axis, limits: Limits) -> DrawnSplit:
    """Draw the effect of a split in the largest environments, and the common one."""
    effect = split.candidate
    dots = _make_dots(effect.environments, limits)
    return DrawnSplit(split, cell=draw_effects(dots, effect.odds_ratio, axis))


def _make_dots(effects: Sequence[OddsRatio], limits: Limits) -> list[EffectDot]:
    """Make the dots of the largest environments in which an effect is known."""
    largest_first = sorted(effects, key=lambda effect: -effect.n)
    known = [effect for effect in largest_first if effect.odds_ratio is not None]
    return [_make_dot(effect, limits) for effect in known[: limits.environments]]


def _make_dot(effect: OddsRatio, limits: Limits) -> EffectDot:
    """Make the dot of a known effect, the larger the more precise it is."""
    assert effect.odds_ratio is not None
    assert effect.error is not None
    environment = clip(effect.environment, limits.characters)
    return EffectDot(
        odds_ratio=effect.odds_ratio,
        standard_error=effect.error,
        tooltip=f"{environment}: {format_ratio(effect.odds_ratio)}",
    )
