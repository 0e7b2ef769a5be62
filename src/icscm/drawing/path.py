"""Models along a tolerance: what they explain against what varies, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import Scale, make_name_axis, make_number_axis
from icscm.drawing.curves import (
    WIDE_BOX,
    Box,
    CurvePlot,
    PlotCurve,
    PlotDot,
    PlotPoint,
    draw_curves,
    make_scales,
)
from icscm.drawing.shapes import Panel, Point, Role, Shape, Text
from icscm.drawing.words import estimate_width
from icscm.formatting import clip

PATH_TITLES: Final = ("heterogeneity between environments, beyond chance", "deviance explained")
# Radius of a dot, and of that of the model itself.
_DOT_RADIUS: Final = 4.0
_OWN_RADIUS: Final = 6.0
# Pixels from a dot to its text, and from one line of text to the next.
_TEXT_OFFSET: Final = Point(9.0, 15.0)
_LINE_HEIGHT: Final = 13.0
_FONT_SIZE: Final = 12.0
_SCORES_BOX: Final = Box(width=560, height=300, left=52, right=540, top=24, floor=258)
_MAX_REJECTED: Final = 30


@dataclass(frozen=True)
class PathDot:
    """The models of neighbouring tolerances that are alike, and a text of what changes there."""

    heterogeneity: float
    deviance_explained: float
    text: str
    is_own: bool


@dataclass(frozen=True)
class ScoreLine:
    """A score at each tolerance, None where it is unknown."""

    title: str
    values: Sequence[float | None]
    role: Role


@dataclass(frozen=True)
class ScorePath:
    """Scores along tolerances, with their names and the columns that are rejected at each.

    `spread` has the scores in environments at each tolerance, drawn as dots.
    """

    names: Sequence[str]
    lines: Sequence[ScoreLine]
    rejected: Sequence[str]
    spread: Sequence[Sequence[float]] = ()


def draw_path(dots: Sequence[PathDot]) -> Panel:
    """Draw the deviance explained against the heterogeneity: a dot for each model, joined."""
    points = [PlotPoint(dot.heterogeneity, dot.deviance_explained) for dot in dots]
    x_end = 1.05 * max(1.0, *(point.x for point in points))
    y_end = 1.05 * max(1.0, *(point.y for point in points))
    plot = CurvePlot(
        x_axis=make_number_axis(0.0, x_end),
        y_axis=make_number_axis(0.0, y_end),
        x_title=PATH_TITLES[0],
        y_title=PATH_TITLES[1],
        curves=[PlotCurve(points, Role.PATH_CURVE)],
        dots=[
            PlotDot(
                point,
                radius=_OWN_RADIUS if dot.is_own else _DOT_RADIUS,
                role=Role.POOLED_DOT if dot.is_own else Role.DOT,
            )
            for point, dot in zip(points, dots, strict=True)
        ],
    )
    panel = draw_curves(plot, WIDE_BOX)
    x_scale, y_scale = make_scales(plot, WIDE_BOX)
    places = [Point(x_scale.place(point.x), y_scale.place(point.y)) for point in points]
    texts = _place_texts([dot.text for dot in dots], places)
    bottom = max((text.position.y for text in texts), default=0.0)
    return Panel(panel.width, max(panel.height, bottom + 4.0), [*panel.shapes, *texts])


def _place_texts(texts: Sequence[str], places: Sequence[Point]) -> Sequence[Text]:
    """Place a text below and right of each dot; further down where another one is."""
    placed: list[Text] = []
    for text, place in zip(texts, places, strict=True):
        x = place.x + _TEXT_OFFSET.x
        y = place.y + _TEXT_OFFSET.y
        while any(_overlaps(text, Point(x, y), other) for other in placed):
            y += _LINE_HEIGHT
        placed.append(Text(Point(x, y), text, Role.NOTE))
    return placed


def _overlaps(text: str, position: Point, other: Text) -> bool:
    """Whether a text at a position would overlap another."""
    is_near = abs(position.y - other.position.y) < _LINE_HEIGHT - 0.1
    starts_left = position.x < other.position.x + estimate_width(other.text, _FONT_SIZE)
    ends_right = position.x + estimate_width(text, _FONT_SIZE) > other.position.x
    return is_near and starts_left and ends_right


def draw_scores(path: ScorePath) -> Panel:
    """Draw scores along tolerances, from loose to strict."""
    axis = make_name_axis(path.names)
    known_lines = [line for line in path.lines if any(value is not None for value in line.values)]
    scores = [value for line in known_lines for value in line.values if value is not None]
    scores += [score for spread in path.spread for score in spread]
    low, high = min(scores, default=0.0), max(scores, default=1.0)
    room = 0.05 * (high - low) or 0.01
    plot = CurvePlot(
        x_axis=axis,
        y_axis=make_number_axis(low - room, high + room),
        x_title="tolerance, from loose to strict",
        y_title="AUC",
        curves=[_make_curve(line) for line in known_lines],
        dots=_make_spread_dots(path) + _make_line_dots(known_lines),
    )
    panel = draw_curves(plot, _SCORES_BOX)
    x_scale, _ = make_scales(plot, _SCORES_BOX)
    notes = _write_rejected(path.rejected, x_scale, _SCORES_BOX)
    return Panel(panel.width, panel.height, [*panel.shapes, *notes])


def _make_curve(line: ScoreLine) -> PlotCurve:
    points = [PlotPoint(float(x), y) for x, y in enumerate(line.values) if y is not None]
    return PlotCurve(points, line.role, title=line.title)


def _make_spread_dots(path: ScorePath) -> list[PlotDot]:
    return [
        PlotDot(PlotPoint(float(x), score), radius=2.0, role=Role.FAINT_DOT)
        for x, scores in enumerate(path.spread)
        for score in scores
    ]


def _make_line_dots(lines: Sequence[ScoreLine]) -> list[PlotDot]:
    """Make the dots of lines; those of a dashed line have none."""
    return [
        PlotDot(
            PlotPoint(float(x), y),
            radius=_DOT_RADIUS,
            role=Role.POOLED_DOT if line.role is Role.OVERALL_CURVE else Role.DOT,
        )
        for line in lines
        if line.role is not Role.WORST_CURVE
        for x, y in enumerate(line.values)
        if y is not None
    ]


def _write_rejected(rejected: Sequence[str], scale: Scale, box: Box) -> Sequence[Shape]:
    """Write the rejected columns upright, each at its tolerance."""
    notes: list[Shape] = []
    for number, text in enumerate(rejected):
        if text:
            position = Point(scale.place(number) - 6.0, box.floor - 6.0)
            clipped = clip(text, _MAX_REJECTED)
            notes.append(Text(position, clipped, Role.SMALL_NOTE, is_upright=True))
    return notes


def write_tolerance(name: str, *, is_own: bool) -> str:
    """Write the name of a tolerance; that of the model itself is marked."""
    return f"{name} (own)" if is_own else name
