"""Curves in a box: calibration, decision curves, the risk of a total of points.

A `CurvePlot` has points in the values of its axes; the scales of a `Box` place them in pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from icscm.drawing.axes import Axis, Scale
from icscm.drawing.shapes import (
    Circle,
    Curve,
    Panel,
    Point,
    Role,
    Shape,
    Text,
    draw_level,
)


@dataclass(frozen=True)
class Box:
    """Where a plot lies in its panel, in pixels; around it is room for marks and titles."""

    width: float
    height: float
    left: float
    right: float
    top: float
    floor: float


NARROW_BOX: Final = Box(width=420, height=300, left=52, right=406, top=24, floor=258)
# With room for texts beside the dots.
WIDE_BOX: Final = Box(width=720, height=300, left=56, right=520, top=24, floor=258)
_KEY_HEIGHT: Final = 18.0


@dataclass(frozen=True)
class PlotPoint:
    """A point in the values of the axes."""

    x: float
    y: float


@dataclass(frozen=True)
class PlotCurve:
    """Points that are joined; a curve with a title is explained below the box."""

    points: Sequence[PlotPoint]
    role: Role
    title: str = ""


@dataclass(frozen=True)
class PlotDot:
    """A dot, in the values of the axes."""

    point: PlotPoint
    radius: float
    role: Role


@dataclass(frozen=True)
class CurvePlot:
    """Curves and dots on two axes."""

    x_axis: Axis
    y_axis: Axis
    x_title: str
    y_title: str
    curves: Sequence[PlotCurve]
    dots: Sequence[PlotDot] = field(default=())


@dataclass(frozen=True)
class Scales:
    """The scales of a plot in its box: x from left to right, y from the floor up."""

    x: Scale
    y: Scale

    def place(self, point: PlotPoint) -> Point:
        """Return the position of a point in pixels."""
        return Point(self.x.place(point.x), self.y.place(point.y))


def draw_curves(plot: CurvePlot, box: Box = NARROW_BOX) -> Panel:
    """Draw the axes, the curves and dots, and below the box a key of the curves with a title.

    Points of a curve below the box are left out; above and beside it, they lie on its edge.
    """
    scales = make_scales(plot, box)
    shapes = _draw_axes(plot, scales, box)
    for curve in plot.curves:
        seen_points = [point for point in curve.points if point.y >= plot.y_axis.low]
        positions = [scales.place(point) for point in seen_points]
        shapes.append(Curve(positions, curve.role))
    for dot in plot.dots:
        shapes.append(Circle(scales.place(dot.point), dot.radius, dot.role))

    titled_curves = [curve for curve in plot.curves if curve.title]
    shapes += _draw_key(titled_curves, box)
    return Panel(box.width, box.height + _KEY_HEIGHT * len(titled_curves), shapes)


def make_scales(plot: CurvePlot, box: Box) -> Scales:
    """Return the scales on which a box shows a plot."""
    return Scales(
        x=Scale(plot.x_axis, start=box.left, end=box.right),
        y=Scale(plot.y_axis, start=box.floor, end=box.top),
    )


def _draw_axes(plot: CurvePlot, scales: Scales, box: Box) -> list[Shape]:
    """Draw a faint line at each mark of the upright axis, the marks of both, and their titles."""
    shapes: list[Shape] = []
    for tick in plot.y_axis.ticks:
        y = scales.y.place(tick.value)
        shapes.append(draw_level(y, left=box.left, right=box.right, role=Role.GRID))
        shapes.append(Text(Point(box.left - 6, y + 4), tick.text, Role.TICK, anchor="end"))
    for tick in plot.x_axis.ticks:
        position = Point(scales.x.place(tick.value), box.floor + 16)
        shapes.append(Text(position, tick.text, Role.TICK, anchor="middle"))
    shapes.append(Text(Point(box.right, box.floor + 34), plot.x_title, Role.NOTE, anchor="end"))
    shapes.append(Text(Point(2, 12), plot.y_title, Role.NOTE))
    return shapes


def _draw_key(curves: Sequence[PlotCurve], box: Box) -> Sequence[Shape]:
    """Draw below the box a piece of each curve with its title, one below the other."""
    shapes: list[Shape] = []
    for number, curve in enumerate(curves):
        y = box.height + _KEY_HEIGHT * (number + 0.5)
        piece = [Point(box.left, y), Point(box.left + 28, y)]
        shapes.append(Curve(piece, curve.role))
        shapes.append(Text(Point(box.left + 36, y + 4), curve.title, Role.NOTE))
    return shapes
