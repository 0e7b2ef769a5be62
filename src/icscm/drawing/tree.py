"""A tree of boxes, and beside each leaf its rates by environment.

    [age > 63] --yes-- [smoker] --yes-- (1: yes)    hospital 1  |     --o--  |
        |                 |                         hospital 2  |   ---o---  |
        |                 '-----no----- (2: no)     hospital 1  | --o--      |
        |                                           hospital 2  |---o---     |
        '-------no--------------------- (3: no)     ...

Boxes have fixed sizes, and every position follows from the walk through the tree, so that texts fit
and boxes do not overlap. A tree with many leaves is written instead, a condition for each leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import Axis, Scale, make_share_axis
from icscm.drawing.intervals import HALF_LETTER, draw_axis, draw_grid
from icscm.drawing.shapes import (
    Circle,
    Curve,
    Line,
    Panel,
    Point,
    Rectangle,
    Role,
    Shape,
    Text,
    draw_level,
    draw_upright,
    place_beside,
)
from icscm.drawing.words import wrap_text
from icscm.formatting import clip

# Pixels: the boxes of splits and leaves; how far right of a split its first child is, and how far
# its second one, which is below it.
_SPLIT_WIDTH: Final = 176.0
_LEAF_WIDTH: Final = 186.0
_BOX_HEIGHT: Final = 50.0
# From the left end of a box to its text, and from one line of a question to the next.
_SPLIT_PADDING: Final = 8.0
_LEAF_PADDING: Final = 14.0
_LINE_HEIGHT: Final = 13.0
_FIRST_CHILD_OFFSET: Final = 208.0
_SECOND_CHILD_OFFSET: Final = 48.0
# Characters of a question on one line, and of the prediction of a leaf.
_QUESTION_WIDTH: Final = 25
_MAX_PREDICTION: Final = 24
# Trees with more leaves, or wider ones, are written: their width, and characters of a line.
_MAX_LEAVES: Final = 40
_MAX_TREE_WIDTH: Final = 1536.0
_WRITTEN_WIDTH: Final = 480.0
_CONDITION_WIDTH: Final = 76
_MAX_WRITTEN_PREDICTION: Final = 60

# Width of the drawn rates, and of the names of environments beside them.
_RATES_WIDTH: Final = 370.0
_NAMES_WIDTH: Final = 150.0
_MAX_ENVIRONMENT: Final = 20
# Characters of a name behind "lowest: " or "highest: ".
_MAX_EXTREME: Final = 14
# Height of a leaf: at least, and what it needs besides its dots, for its title and the space below.
_MIN_LEAF_HEIGHT: Final = 74.0
_TITLE_HEIGHT: Final = 28.0
_SPACE_BELOW: Final = 14.0
# A leaf has a row for each environment, narrower from the thirteenth on. With more dots in all than
# these, the dots of a leaf share the least height, and only the lowest and highest are named.
_LOOSE_ROW: Final = 16.0
_DENSE_ROW: Final = 11.0
_MAX_LOOSE: Final = 12
_MAX_DOTS: Final = 160
_LOOSE_RADIUS: Final = 3.5
_DENSE_RADIUS: Final = 2.5
# The axis below the leaves, and the note below the axis.
_FOOT_HEIGHT: Final = 40.0
_NOTE_HEIGHT: Final = 16.0
# With fewer rows than this an environment does not widen the axis by its interval.
_MIN_PRECISE_ROWS: Final = 30


@dataclass(frozen=True)
class TreeNode:
    """A node of the tree, in the order from the root down.

    A split has a question, a leaf its number and prediction; `answer` leads to the node.
    """

    depth: int
    answer: str
    size: str
    question: str = ""
    leaf: int | None = None
    prediction: str = ""
    is_positive: bool = False


@dataclass(frozen=True)
class EnvironmentRate:
    """The rate of a leaf in an environment; None where it has no rows there."""

    environment: str
    n_rows: int
    rate: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class LeafRates:
    """A leaf with its rates by environment; `title` stands above them.

    `prediction` and `condition` describe it where the tree is written.
    """

    title: str
    prediction: str
    condition: str
    rate: float | None
    environments: Sequence[EnvironmentRate]


@dataclass(frozen=True)
class TreeDrawing:
    """A tree and the rates of its leaves; the notes stand below the axis of the rates."""

    nodes: Sequence[TreeNode]
    leaves: Sequence[LeafRates]
    axis_title: str
    note: str = ""


@dataclass(frozen=True)
class LeafLayout:
    """How high a leaf is, and how its environments are drawn in it."""

    height: float
    radius: float
    has_names: bool
    has_intervals: bool


@dataclass(frozen=True)
class PlacedNode:
    """A node with its position: the left end and the middle of its box, and its parent."""

    node: TreeNode
    x: float
    y: float
    parent: PlacedNode | None
    is_first_child: bool


def draw_tree(tree: TreeDrawing) -> Panel:
    """Draw the tree with its rates; leaf by leaf in words where boxes would be too many."""
    n_leaves = len(tree.leaves)
    n_environments = max((len(leaf.environments) for leaf in tree.leaves), default=0)
    layout = choose_layout(n_leaves=n_leaves, n_environments=n_environments)
    placed_nodes = place_nodes(tree.nodes, leaf_height=layout.height)

    tree_width = measure_width(placed_nodes)
    is_small = n_leaves <= _MAX_LEAVES and tree_width <= _MAX_TREE_WIDTH
    if placed_nodes and is_small:
        left = draw_boxes(placed_nodes, width=tree_width, height=layout.height * n_leaves)
    else:
        left = write_leaves(tree.leaves, layout)
    return place_beside([left, draw_rates(tree, layout)], gap=24.0)


def measure_width(placed: Sequence[PlacedNode]) -> float:
    """Return the width of a tree; its leaves are right of the last split."""
    split_xs = [node.x for node in placed if node.node.leaf is None]
    leaf_x = max(split_xs) + _FIRST_CHILD_OFFSET if split_xs else 0.0
    return leaf_x + _LEAF_WIDTH


def choose_layout(*, n_leaves: int, n_environments: int) -> LeafLayout:
    """Choose the height of a leaf by the number of environments, and of all dots."""
    if n_leaves * n_environments > _MAX_DOTS:
        return LeafLayout(
            height=_MIN_LEAF_HEIGHT, radius=_DENSE_RADIUS, has_names=False, has_intervals=False
        )
    is_loose = n_environments <= _MAX_LOOSE
    row_height = _LOOSE_ROW if is_loose else _DENSE_ROW
    needed_height = _TITLE_HEIGHT + n_environments * row_height + _SPACE_BELOW
    return LeafLayout(
        height=max(_MIN_LEAF_HEIGHT, needed_height),
        radius=_LOOSE_RADIUS if is_loose else _DENSE_RADIUS,
        has_names=n_environments > 1,
        has_intervals=True,
    )


def place_nodes(nodes: Sequence[TreeNode], *, leaf_height: float) -> Sequence[PlacedNode]:
    """Place nodes: the first child to the right of its split, the second below it.

    split --yes-- split --yes-- leaf 1    Each split is in the row of its first leaf, so that
      |             |___no_____ leaf 2    no two boxes overlap.
      |___no___________________ leaf 3
    """
    placed_nodes: list[PlacedNode] = []
    # the path from the root to the node that was placed last
    latest_at_depth: dict[int, PlacedNode] = {}
    for number, node in enumerate(nodes):
        parent = latest_at_depth.get(node.depth - 1)
        # nodes come from the root down: the first child directly after its parent
        is_first_child = parent is not None and parent is placed_nodes[-1]
        x = 0.0
        if parent is not None:
            x = parent.x + (_FIRST_CHILD_OFFSET if is_first_child else _SECOND_CHILD_OFFSET)

        first_leaf = next(below.leaf for below in nodes[number:] if below.leaf is not None)
        y = (first_leaf - 0.5) * leaf_height
        placed = PlacedNode(node=node, x=x, y=y, parent=parent, is_first_child=is_first_child)
        latest_at_depth[node.depth] = placed
        placed_nodes.append(placed)
    return placed_nodes


def draw_boxes(placed: Sequence[PlacedNode], *, width: float, height: float) -> Panel:
    """Draw a box for each node, all leaves at the right, and the twigs between them."""
    leaf_x = width - _LEAF_WIDTH
    twigs: list[Shape] = []
    boxes: list[Shape] = []
    for node in placed:
        if node.node.leaf is None:
            twigs += _draw_twig(node, end_x=node.x)
            boxes += _draw_split_box(node.node, node.x, node.y)
        else:
            twigs += _draw_twig(node, end_x=leaf_x)
            boxes += _draw_leaf_box(node.node, leaf_x, node.y)
    return Panel(width, height, [*twigs, *boxes])


def _draw_twig(placed: PlacedNode, *, end_x: float) -> Sequence[Shape]:
    """Draw the line from the parent to a node's box, with the answer on it.

    To a first child it goes across from the parent's right end, to a second one down from the
    parent's lower end and then across.
    """
    parent = placed.parent
    if parent is None:
        return []
    end = Point(end_x, placed.y)
    if placed.is_first_child:
        corner = Point(parent.x + _SPLIT_WIDTH, placed.y)
        points = [corner, end]
    else:
        corner = Point(parent.x + _SECOND_CHILD_OFFSET / 2, placed.y)
        start = Point(corner.x, parent.y + _BOX_HEIGHT / 2)
        points = [start, corner, end]
    answer = Text(Point(corner.x + 4.0, corner.y - 4.0), placed.node.answer, Role.ANSWER)
    return [Curve(points, Role.TWIG), answer]


def _draw_split_box(node: TreeNode, x: float, y: float) -> Sequence[Shape]:
    """Draw the question of a split, on one line or two, and the size of the split."""
    corner = Point(x, y - _BOX_HEIGHT / 2)
    box = Rectangle(corner, _SPLIT_WIDTH, _BOX_HEIGHT, Role.SPLIT_BOX, rounding=6.0)
    text_x = x + _SPLIT_PADDING
    lines = wrap_text(node.question, n_characters=_QUESTION_WIDTH, max_lines=2)
    first_y = y - 4.0 if len(lines) == 1 else y - 11.0
    questions = [
        Text(Point(text_x, first_y + _LINE_HEIGHT * number), line, Role.NAME)
        for number, line in enumerate(lines)
    ]
    size = Text(Point(text_x, y + 18.0), node.size, Role.SMALL_NOTE)
    return [box, *questions, size]


def _draw_leaf_box(node: TreeNode, x: float, y: float) -> Sequence[Shape]:
    """Draw the prediction of a leaf and its size, filled where the prediction is positive."""
    if node.is_positive:
        box_role, title_role, size_role = Role.POSITIVE_LEAF, Role.LEAF_TITLE, Role.LEAF_NOTE
    else:
        box_role, title_role, size_role = Role.NEGATIVE_LEAF, Role.STRONG_NAME, Role.NAME
    corner = Point(x, y - _BOX_HEIGHT / 2)
    title = clip(f"{node.leaf}: {node.prediction}", _MAX_PREDICTION)
    return [
        Rectangle(corner, _LEAF_WIDTH, _BOX_HEIGHT, box_role, rounding=18.0),
        Text(Point(x + _LEAF_PADDING, y - 4.0), title, title_role),
        Text(Point(x + _LEAF_PADDING, y + 14.0), node.size, size_role),
    ]


def write_leaves(leaves: Sequence[LeafRates], layout: LeafLayout) -> Panel:
    """Write the prediction of each leaf and the path to it, in the row of its rates."""
    shapes: list[Shape] = []
    for number, leaf in enumerate(leaves):
        middle = (number + 0.5) * layout.height
        prediction = clip(leaf.prediction, _MAX_WRITTEN_PREDICTION)
        shapes.append(Text(Point(0.0, middle - 14.0), prediction, Role.STRONG_NAME))
        lines = wrap_text(leaf.condition, n_characters=_CONDITION_WIDTH, max_lines=2)
        first_y = middle + 3.0
        shapes += [
            Text(Point(0.0, first_y + _LINE_HEIGHT * line_number), line, Role.SMALL_NOTE)
            for line_number, line in enumerate(lines)
        ]
    return Panel(_WRITTEN_WIDTH, layout.height * len(leaves), shapes)


def draw_rates(tree: TreeDrawing, layout: LeafLayout) -> Panel:
    """Draw the rates of each leaf in its row, below its title, on one axis."""
    bottom = layout.height * len(tree.leaves)
    has_several_environments = any(len(leaf.environments) > 1 for leaf in tree.leaves)
    left = _NAMES_WIDTH if has_several_environments else 0.0
    scale = Scale(make_rate_axis(tree.leaves), start=left, end=left + _RATES_WIDTH)

    shapes: list[Shape] = [*draw_grid(scale, top=0.0, bottom=bottom)]
    for number, leaf in enumerate(tree.leaves):
        top = number * layout.height
        if number > 0:
            shapes.append(draw_level(top, left=left, right=scale.end, role=Role.SEPARATOR))
        shapes += _draw_leaf(leaf, scale, layout, top=top)
    shapes += draw_axis(scale, bottom=bottom, title=tree.axis_title)

    height = bottom + _FOOT_HEIGHT
    if tree.note:
        middle = (scale.start + scale.end) / 2
        shapes.append(Text(Point(middle, bottom + 48.0), tree.note, Role.NOTE, anchor="middle"))
        height += _NOTE_HEIGHT
    return Panel(scale.end + 16.0, height, shapes)


def make_rate_axis(leaves: Sequence[LeafRates]) -> Axis:
    """Return an axis that holds every dot, and the intervals of all but very small environments."""
    shown_rates: list[float] = []
    for leaf in leaves:
        if leaf.rate is not None:
            shown_rates.append(leaf.rate)
        for environment in leaf.environments:
            is_precise = environment.n_rows >= _MIN_PRECISE_ROWS
            if environment.rate is not None:
                shown_rates.append(environment.rate)
            if environment.interval is not None and is_precise:
                shown_rates += environment.interval
    return make_share_axis(shown_rates)


def _draw_leaf(leaf: LeafRates, scale: Scale, layout: LeafLayout, *, top: float) -> Sequence[Shape]:
    """Draw a leaf's title, its mean rate as an upright line, and the rates by environment."""
    first_y = top + _TITLE_HEIGHT
    last_y = top + layout.height - _SPACE_BELOW
    title = Text(Point(scale.start + 6.0, top + 17.0), leaf.title, Role.NAME)
    shapes: list[Shape] = [title]
    if leaf.rate is not None:
        x = scale.place(leaf.rate)
        shapes.append(draw_upright(x, top=first_y, bottom=last_y, role=Role.MEAN))

    name_x = scale.start - 8.0
    n_environments = len(leaf.environments)
    for number, environment in enumerate(leaf.environments):
        y = first_y + (last_y - first_y) * (number + 0.5) / n_environments
        shapes += _draw_environment(environment, scale, layout, y=y)
        if layout.has_names:
            name = clip(environment.environment, _MAX_ENVIRONMENT)
            shapes.append(_write_name(name, name_x, y))
    if not layout.has_names and n_environments > 1:
        shapes += _name_extremes(leaf, name_x, first_y=first_y, last_y=last_y)
    return shapes


def _draw_environment(
    environment: EnvironmentRate, scale: Scale, layout: LeafLayout, *, y: float
) -> Sequence[Shape]:
    """Draw the rate of a leaf in an environment as a dot, on its interval."""
    shapes: list[Shape] = []
    if environment.interval is not None and layout.has_intervals:
        left, right = (scale.place(end) for end in environment.interval)
        shapes.append(Line(Point(left, y), Point(right, y), Role.INTERVAL))
    if environment.rate is not None:
        centre = Point(scale.place(environment.rate), y)
        shapes.append(Circle(centre, layout.radius, Role.DOT))
    return shapes


def _name_extremes(
    leaf: LeafRates, name_x: float, *, first_y: float, last_y: float
) -> Sequence[Shape]:
    """Name the environments of the lowest and of the highest rate: there is no room for all."""
    known = [environment for environment in leaf.environments if environment.rate is not None]
    if not known:
        return []
    lowest = min(known, key=lambda environment: environment.rate or 0.0)
    highest = max(known, key=lambda environment: environment.rate or 0.0)
    lowest_name = clip(lowest.environment, _MAX_EXTREME)
    highest_name = clip(highest.environment, _MAX_EXTREME)
    return [
        _write_name(f"lowest: {lowest_name}", name_x, first_y),
        _write_name(f"highest: {highest_name}", name_x, last_y),
    ]


def _write_name(text: str, x: float, y: float) -> Text:
    """Write a name that ends at a position, with the middle of its letters at the height."""
    return Text(Point(x, y + HALF_LETTER - 0.5), text, Role.SMALL_NOTE, anchor="end")
