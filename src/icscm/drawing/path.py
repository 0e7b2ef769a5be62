"""Drawings of a tolerance path: the models learned from the loosest to the strictest tolerance.

`draw_path` shows the deviance that each model explains against the heterogeneity of its effects.
`draw_scores` shows the AUC of each model where rows were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import Axis, Scale, make_name_axis, make_number_axis
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
# Radius of a dot, of that of the model itself, and of those of scores in environments.
_DOT_RADIUS: Final = 4.0
_OWN_RADIUS: Final = 6.0
_SPREAD_RADIUS: Final = 2.0
# An axis is that much longer than its largest value.
_AXIS_ROOM: Final = 1.05
# Pixels below the lowest text.
_BOTTOM_ROOM: Final = 4.0
# Room at both ends of an axis of scores, as a share of their range, and where all are equal.
_SCORE_ROOM: Final = 0.05
_MIN_SCORE_ROOM: Final = 0.01
# Pixels from a dot to its text, and from one line of text to the next.
_TEXT_OFFSET: Final = Point(9.0, 15.0)
_LINE_HEIGHT: Final = 13.0
_FONT_SIZE: Final = 12.0
_SCORES_BOX: Final = Box(width=560, height=300, left=52, right=540, top=24, floor=258)
# Characters of the rejected columns at a tolerance, and pixels from its tick to their text.
_MAX_REJECTED: Final = 30
_NOTE_OFFSET: Final = 6.0


@dataclass(frozen=True)
class PathDot:
    """The models of neighbouring tolerances that are alike, and a text of what changes there.

    `is_own` marks the model whose report has the drawing.
    """

    heterogeneity: float
    deviance_explained: float
    text: str
    is_own: bool

    @property
    def point(self) -> PlotPoint:
        """Where the dot is in the plot."""
        return PlotPoint(self.heterogeneity, self.deviance_explained)


@dataclass(frozen=True)
class ScoreLine:
    """A score at each tolerance, None where it is unknown."""

    title: str
    values: Sequence[float | None]
    role: Role

    @property
    def points(self) -> list[PlotPoint]:
        """The known scores, each at the number of its tolerance."""
        return [
            PlotPoint(float(tolerance), score)
            for tolerance, score in enumerate(self.values)
            if score is not None
        ]


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
    points = [dot.point for dot in dots]
    plot_dots = [_make_path_dot(dot.point, is_own=dot.is_own) for dot in dots]
    # both axes extend at least to 1
    x_end = _AXIS_ROOM * max(1.0, *(point.x for point in points))
    y_end = _AXIS_ROOM * max(1.0, *(point.y for point in points))
    plot = CurvePlot(
        x_axis=make_number_axis(0.0, x_end),
        y_axis=make_number_axis(0.0, y_end),
        x_title=PATH_TITLES[0],
        y_title=PATH_TITLES[1],
        curves=[PlotCurve(points, Role.PATH_CURVE)],
        dots=plot_dots,
    )
    panel = draw_curves(plot, WIDE_BOX)

    scales = make_scales(plot, WIDE_BOX)
    dot_positions = [scales.place(point) for point in points]
    texts = _place_texts([dot.text for dot in dots], dot_positions)
    lowest_text = max((text.position.y for text in texts), default=0.0)
    height = max(panel.height, lowest_text + _BOTTOM_ROOM)
    return Panel(panel.width, height, [*panel.shapes, *texts])


def _make_path_dot(point: PlotPoint, *, is_own: bool) -> PlotDot:
    """Make the dot of a model; that of the model itself is larger."""
    if is_own:
        return PlotDot(point, radius=_OWN_RADIUS, role=Role.POOLED_DOT)
    return PlotDot(point, radius=_DOT_RADIUS, role=Role.DOT)


def _place_texts(texts: Sequence[str], dot_positions: Sequence[Point]) -> Sequence[Text]:
    """Place each text below and right of its dot, and further down until it overlaps no other."""
    placed_texts: list[Text] = []
    for text, dot_position in zip(texts, dot_positions, strict=True):
        x = dot_position.x + _TEXT_OFFSET.x
        y = dot_position.y + _TEXT_OFFSET.y
        while any(_overlaps(text, Point(x, y), placed) for placed in placed_texts):
            y += _LINE_HEIGHT
        placed_texts.append(Text(Point(x, y), text, Role.NOTE))
    return placed_texts


def _overlaps(text: str, position: Point, placed: Text) -> bool:
    """Tell whether a text at a position would overlap one that was placed before."""
    # a line below counts as another line, rounding errors aside
    is_on_same_line = abs(position.y - placed.position.y) < _LINE_HEIGHT - 0.1
    text_end = position.x + estimate_width(text, _FONT_SIZE)
    placed_end = placed.position.x + estimate_width(placed.text, _FONT_SIZE)
    return is_on_same_line and position.x < placed_end and text_end > placed.position.x


def draw_scores(path: ScorePath) -> Panel:
    """Draw scores along tolerances, from loose to strict."""
    curves = [_make_curve(line) for line in path.lines if line.points]
    dots = _make_spread_dots(path.spread)
    for line in path.lines:
        dots += _make_line_dots(line)

    scores = [point.y for line in path.lines for point in line.points]
    scores += [score for environment_scores in path.spread for score in environment_scores]
    plot = CurvePlot(
        x_axis=make_name_axis(path.names),
        y_axis=_make_score_axis(scores),
        x_title="tolerance, from loose to strict",
        y_title="AUC",
        curves=curves,
        dots=dots,
    )
    panel = draw_curves(plot, _SCORES_BOX)

    scales = make_scales(plot, _SCORES_BOX)
    notes = _write_rejected(path.rejected, scales.x, _SCORES_BOX)
    return Panel(panel.width, panel.height, [*panel.shapes, *notes])


def _make_score_axis(scores: Sequence[float]) -> Axis:
    """Make an axis of all scores, with some room at both ends."""
    lowest = min(scores, default=0.0)
    highest = max(scores, default=1.0)
    room = _SCORE_ROOM * (highest - lowest) or _MIN_SCORE_ROOM
    return make_number_axis(lowest - room, highest + room)


def _make_curve(line: ScoreLine) -> PlotCurve:
    """Make the curve that joins the known scores of a line."""
    return PlotCurve(line.points, line.role, title=line.title)


def _make_line_dots(line: ScoreLine) -> list[PlotDot]:
    """Make a dot for each known score of a line; the dashed line of worst scores has none."""
    if line.role is Role.WORST_CURVE:
        return []
    dot_role = Role.POOLED_DOT if line.role is Role.OVERALL_CURVE else Role.DOT
    return [PlotDot(point, radius=_DOT_RADIUS, role=dot_role) for point in line.points]


def _make_spread_dots(spread: Sequence[Sequence[float]]) -> list[PlotDot]:
    """Make a faint dot for the score in each environment, at each tolerance."""
    dots: list[PlotDot] = []
    for tolerance, environment_scores in enumerate(spread):
        for score in environment_scores:
            point = PlotPoint(float(tolerance), score)
            dots.append(PlotDot(point, radius=_SPREAD_RADIUS, role=Role.FAINT_DOT))
    return dots


def _write_rejected(rejected: Sequence[str], scale: Scale, box: Box) -> Sequence[Shape]:
    """Write the rejected columns upright, each at its tolerance."""
    notes: list[Shape] = []
    for tolerance, columns in enumerate(rejected):
        if not columns:
            continue
        position = Point(scale.place(tolerance) - _NOTE_OFFSET, box.floor - _NOTE_OFFSET)
        clipped = clip(columns, _MAX_REJECTED)
        notes.append(Text(position, clipped, Role.SMALL_NOTE, is_upright=True))
    return notes


def write_tolerance(name: str, *, is_own: bool) -> str:
    """Write the name of a tolerance; that of the model itself is marked."""
    return f"{name} (own)" if is_own else name
