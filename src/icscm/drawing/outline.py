"""A tree as the rows of a table: the rule of each node behind the twigs that lead to it.

    all
    |- age > 63
    |  |- smoker == yes
    |  '- smoker != yes
    '- age <= 63

A node at level 2 has its own twig, which ends in its row if the node is the second child of its
split. Left of that, the twig between two nodes at level 1 passes its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from icscm.drawing.shapes import Role, Shape, draw_level, draw_upright
from icscm.drawing.svg import render_cell

# Pixels from one level of the tree to the next. Below the last level, the outline goes no further
# right: a deep tree would leave no room for its rules.
_STEP: Final = 14.0
_LAST_LEVEL: Final = 14
# Percentages of the height of a row.
_TOP: Final = 0.0
_MIDDLE: Final = 50.0
_BOTTOM: Final = 100.0


@dataclass(frozen=True)
class OutlineNode:
    """A node of a tree, in the order of the outline; `split` is its number, None for a leaf."""

    depth: int
    split: int | None
    n_rows: int


@dataclass(frozen=True)
class OutlineRow:
    """A node that is shown, by its number, and the twigs before its rule.

    `passing_levels` are the levels of twigs that pass its row; `is_last` is whether its own twig
    ends there. A node is cut if it has children that are not shown.
    """

    number: int
    depth: int
    passing_levels: Sequence[int]
    is_last: bool
    is_cut: bool


def lay_out_outline(nodes: Sequence[OutlineNode], *, max_leaves: int) -> Sequence[OutlineRow]:
    """Lay out the nodes of a tree as rows; of a very large one, those below the largest splits.

    Nodes come from the root down: after a node its first child with all nodes below that, then its
    second child. Between the two, the twig at their level passes the rows:

        all
        |- age > 63               open levels: 1
        |  |- smoker == yes                    1 and 2
        |  '- smoker != yes                    1
        '- age <= 63                           none
    """
    shown_splits = _choose_splits(nodes, n_splits=max_leaves - 1)
    rows: list[OutlineRow] = []
    # the split of the latest node at each level, which at the level above is the parent
    split_at_level: dict[int, int | None] = {}
    # levels at which a first child was seen, and its sibling is still to come
    open_levels: set[int] = set()
    for number, node in enumerate(nodes):
        level = node.depth
        split_at_level[level] = node.split
        is_root = level == 0
        if not is_root and split_at_level[level - 1] not in shown_splits:
            continue

        is_second_child = level in open_levels
        if is_second_child:
            open_levels.remove(level)
        elif not is_root:
            open_levels.add(level)

        levels_to_the_left = range(1, min(level, _LAST_LEVEL))
        rows.append(
            OutlineRow(
                number=number,
                depth=level,
                passing_levels=[left for left in levels_to_the_left if left in open_levels],
                is_last=is_second_child,
                is_cut=node.split is not None and node.split not in shown_splits,
            )
        )
    return rows


def _choose_splits(nodes: Sequence[OutlineNode], *, n_splits: int) -> frozenset[int]:
    """Return the splits of the most rows; of equals the first, so that a parent is among them."""
    sizes = {node.split: node.n_rows for node in nodes if node.split is not None}
    largest_first = sorted(sizes, key=lambda split: -sizes[split])
    return frozenset(largest_first[:n_splits])


def draw_twigs(row: OutlineRow) -> Markup:
    """Draw the twigs before the rule of a node, in the height of its row."""
    level = min(row.depth, _LAST_LEVEL)
    if level == 0:
        return Markup()
    shapes: list[Shape] = [
        draw_upright(_place_twig(passing), top=_TOP, bottom=_BOTTOM, role=Role.TWIG)
        for passing in row.passing_levels
    ]
    own_x = _place_twig(level)
    own_end = _MIDDLE if row.is_last else _BOTTOM
    rule_x = level * _STEP
    shapes.append(draw_upright(own_x, top=_TOP, bottom=own_end, role=Role.TWIG))
    shapes.append(draw_level(_MIDDLE, left=own_x, right=rule_x, role=Role.TWIG))

    # The twigs are as high as the row, whose height their cell must not fix: so they lie over an
    # empty drawing that only keeps the width free.
    width = f"{rule_x:g}"
    room = Markup(f'<svg width="{width}" height="1" aria-hidden="true"></svg>')
    return room + render_cell(shapes, css_class="twigs", width=width, x_unit="")


def _place_twig(level: int) -> float:
    """Return the position of the upright twig of a level: in the middle of its step."""
    return (level - 0.5) * _STEP


def draw_rate_bar(rate: float | None, *, mean_rate: float | None, is_positive: bool) -> Markup:
    """Draw the rate of a node as a bar, with the rate of all rows as an upright line."""
    bar_role = Role.POSITIVE_BAR if is_positive else Role.BAR
    rate_x = 100.0 * (rate or 0.0)
    mean_x = 100.0 * (mean_rate or 0.0)
    shapes = [
        draw_level(_MIDDLE, left=0.0, right=100.0, role=Role.TRACK),
        draw_level(_MIDDLE, left=0.0, right=rate_x, role=bar_role),
        draw_upright(mean_x, top=_TOP, bottom=_BOTTOM, role=Role.MEAN),
    ]
    return render_cell(shapes)
