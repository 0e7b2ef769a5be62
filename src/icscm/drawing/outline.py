"""A tree as the rows of a table: the rule of each node behind the twigs that lead to it.

all            An upright twig passes the rows of the nodes in between (`passing_levels`); the
|- age > 63    twig of a node itself ends in its row if the node is the second child.
'- age <= 63
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from icscm.drawing.shapes import Line, Point, Role, Shape, draw_level, draw_upright
from icscm.drawing.svg import render_cell

# Pixels from one level of the tree to the next, and levels before it goes no further right.
_STEP: Final = 14.0
_MAX_DEPTH: Final = 14


@dataclass(frozen=True)
class OutlineNode:
    """A node of a tree, in the order from the root down; `split` is None for a leaf."""

    depth: int
    split: int | None
    n_rows: int


@dataclass(frozen=True)
class OutlineRow:
    """A node that is shown, by its number, and the twigs before its rule.

    A node is cut if it has children that are not shown.
    """

    number: int
    depth: int
    passing_levels: Sequence[int]
    is_last: bool
    is_cut: bool


def lay_out_outline(nodes: Sequence[OutlineNode], *, max_leaves: int) -> Sequence[OutlineRow]:
    """Place the nodes of a tree; of a very large one, those below the largest splits."""
    shown_splits = _choose_splits(nodes, n_splits=max_leaves - 1)
    rows: list[OutlineRow] = []
    has_sibling_below: dict[int, bool] = {}
    split_at: dict[int, int | None] = {}
    for number, node in enumerate(nodes):
        split_at[node.depth] = node.split
        is_shown = node.depth == 0 or split_at[node.depth - 1] in shown_splits
        if not is_shown:
            continue
        is_last = has_sibling_below.get(node.depth, False)
        has_sibling_below[node.depth] = node.depth > 0 and not is_last
        levels = range(1, min(node.depth, _MAX_DEPTH))
        rows.append(
            OutlineRow(
                number=number,
                depth=node.depth,
                passing_levels=[level for level in levels if has_sibling_below.get(level)],
                is_last=is_last,
                is_cut=node.split is not None and node.split not in shown_splits,
            )
        )
    return rows


def _choose_splits(nodes: Sequence[OutlineNode], *, n_splits: int) -> frozenset[int]:
    """Return the splits of the most rows."""
    sizes = {node.split: node.n_rows for node in nodes if node.split is not None}
    ranked = sorted(sizes, key=lambda split: -sizes[split])
    return frozenset(ranked[:n_splits])


def draw_twigs(row: OutlineRow) -> Markup:
    """Draw the twigs before the rule of a node, in the height of its row."""
    level = min(row.depth, _MAX_DEPTH)
    if level == 0:
        return Markup()
    twig_x = (level - 0.5) * _STEP
    shapes: list[Shape] = [
        draw_upright((passing - 0.5) * _STEP, top=0.0, bottom=100.0, role=Role.TWIG)
        for passing in row.passing_levels
    ]
    end = 50.0 if row.is_last else 100.0
    shapes.append(draw_upright(twig_x, top=0.0, bottom=end, role=Role.TWIG))
    shapes.append(draw_level(50.0, left=twig_x, right=level * _STEP, role=Role.TWIG))
    width = f"{level * _STEP:g}"
    room = Markup(f'<svg width="{width}" height="1" aria-hidden="true"></svg>')
    return room + render_cell(shapes, css_class="twigs", width=width, x_unit="")


def draw_rate_bar(rate: float | None, *, mean_rate: float | None, is_positive: bool) -> Markup:
    """Draw the rate of a node as a bar, with the rate of all rows as an upright line."""
    bar = Role.POSITIVE_BAR if is_positive else Role.BAR
    length = 100.0 * (rate or 0.0)
    mean_x = 100.0 * (mean_rate or 0.0)
    shapes = [
        Line(Point(0.0, 50.0), Point(100.0, 50.0), Role.TRACK),
        Line(Point(0.0, 50.0), Point(length, 50.0), bar),
        draw_upright(mean_x, top=0.0, bottom=100.0, role=Role.MEAN),
    ]
    return render_cell(shapes)
