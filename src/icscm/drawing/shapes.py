"""Shapes that a drawing is made of.

A shape has positions and a role. The role says what the shape means (an interval, a guide, a name);
`figure.css` says how a role looks, so that a page, a dark page and a file share the same drawings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Anchor = Literal["start", "middle", "end"]


class Role(StrEnum):
    """What a shape means; its value is the class of the SVG element."""

    # behind the data
    PAPER = "paper"
    GRID = "grid"
    BAND = "band"
    GUIDE = "guide"
    MEAN = "mean"
    SEPARATOR = "separator"
    TWIG = "twig"
    # values of a row
    INTERVAL = "interval"
    POOLED_INTERVAL = "interval pooled"
    PREDICTION_INTERVAL = "interval prediction"
    DOT = "dot"
    POOLED_DOT = "dot pooled"
    FAINT_DOT = "dot faint"
    COMPARED_DOT = "dot compared"
    COMMON = "common"
    TRACK = "track"
    BAR = "bar"
    POSITIVE_BAR = "bar positive"
    WORST = "worst"
    POINTS = "points"
    # curves
    ENVIRONMENT_CURVE = "curve environment"
    OVERALL_CURVE = "curve overall"
    OTHER_CURVE = "curve other"
    GUIDE_CURVE = "curve guide"
    PATH_CURVE = "curve path"
    WORST_CURVE = "curve worst"
    # boxes of a tree
    SPLIT_BOX = "box split"
    POSITIVE_LEAF = "box leaf positive"
    NEGATIVE_LEAF = "box leaf negative"
    # texts
    NAME = "name"
    STRONG_NAME = "name strong"
    NOTE = "note"
    SMALL_NOTE = "note small"
    ANSWER = "note answer"
    TICK = "tick"
    FIRST_TICK = "tick first"
    LAST_TICK = "tick last"
    INNER_TICK = "tick inner"
    LEAF_TITLE = "name strong on-positive"
    LEAF_NOTE = "name on-positive"


@dataclass(frozen=True)
class Point:
    """A position in the units of a panel; y grows downwards, as in SVG."""

    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """A straight line."""

    start: Point
    end: Point
    role: Role


@dataclass(frozen=True)
class Curve:
    """Points that are joined by lines."""

    points: Sequence[Point]
    role: Role


@dataclass(frozen=True)
class Circle:
    """A dot; a pointer over it shows its `tooltip`."""

    centre: Point
    radius: float
    role: Role
    tooltip: str = ""


@dataclass(frozen=True)
class Rectangle:
    """A box with round corners, given by its upper left corner."""

    corner: Point
    width: float
    height: float
    role: Role
    rounding: float = 0.0


@dataclass(frozen=True)
class Text:
    """A line of text; its position is on the baseline, at the start, middle or end of the text."""

    position: Point
    text: str
    role: Role
    anchor: Anchor = "start"
    is_upright: bool = False


@dataclass(frozen=True)
class Group:
    """Shapes that are moved together."""

    offset: Point
    shapes: Sequence[Shape]


Shape = Line | Curve | Circle | Rectangle | Text | Group


@dataclass(frozen=True)
class Panel:
    """A part of a figure, or all of it: shapes and the room that they take."""

    width: float
    height: float
    shapes: Sequence[Shape]


def draw_upright(x: float, *, top: float, bottom: float, role: Role) -> Line:
    """Return a vertical line."""
    return Line(Point(x, top), Point(x, bottom), role)


def draw_level(y: float, *, left: float, right: float, role: Role) -> Line:
    """Return a horizontal line."""
    return Line(Point(left, y), Point(right, y), role)


def place_below(panels: Sequence[Panel], *, gap: float) -> Panel:
    """Place panels one below the other."""
    groups = []
    y = 0.0
    for panel in panels:
        groups.append(Group(Point(0.0, y), panel.shapes))
        y += panel.height + gap
    width = max(panel.width for panel in panels)
    return Panel(width, y - gap, groups)


def place_beside(panels: Sequence[Panel], *, gap: float) -> Panel:
    """Place panels from left to right."""
    groups = []
    x = 0.0
    for panel in panels:
        groups.append(Group(Point(x, 0.0), panel.shapes))
        x += panel.width + gap
    height = max(panel.height for panel in panels)
    return Panel(x - gap, height, groups)
