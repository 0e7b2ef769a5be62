"""The effect of a split by environment: a dot each, larger where it is more precise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from icscm.drawing.axes import Axis, Scale
from icscm.drawing.shapes import Circle, Point, Role, Shape, draw_upright
from icscm.drawing.svg import render_cell

# Pixels: the radius falls with the standard error of the log odds ratio, between these ends.
_MIN_RADIUS: Final = 2.0
_MAX_RADIUS: Final = 4.5
_RADIUS_AT_ZERO: Final = 4.75
_RADIUS_SLOPE: Final = -2.5


@dataclass(frozen=True)
class EffectDot:
    """The odds ratio of a split in an environment, with the standard error of its logarithm."""

    odds_ratio: float
    standard_error: float
    tooltip: str


def draw_effects(dots: Sequence[EffectDot], common_ratio: float, axis: Axis) -> Markup:
    """Draw the effects of a split on an axis of odds ratios, the common one as a line."""
    scale = Scale(axis, start=0.0, end=100.0)
    no_effect_x = scale.place(1.0)
    shapes: list[Shape] = [draw_upright(no_effect_x, top=0.0, bottom=100.0, role=Role.GUIDE)]
    for dot in dots:
        centre = Point(scale.place(dot.odds_ratio), 50.0)
        radius = compute_radius(dot.standard_error)
        shapes.append(Circle(centre, radius, Role.FAINT_DOT, tooltip=dot.tooltip))
    common_x = scale.place(common_ratio)
    shapes.append(draw_upright(common_x, top=15.0, bottom=85.0, role=Role.COMMON))
    return render_cell(shapes)


def compute_radius(standard_error: float) -> float:
    """Return the radius of a dot, by its precision.

    >>> compute_radius(0.1), compute_radius(0.5), compute_radius(3.0)
    (4.5, 3.5, 2.0)
    """
    radius = _RADIUS_AT_ZERO + _RADIUS_SLOPE * standard_error
    return round(max(_MIN_RADIUS, min(_MAX_RADIUS, radius)), 1)
