"""Plots beside each other that share the names of their rows: a score in each, a learner a row.

            AUC              calibration slope
tree        |   --o--  |     |  ---o---  |
forest      |     --o--|     |    --o--- |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from icscm.drawing.axes import Axis, Scale
from icscm.drawing.intervals import (
    FOOT_HEIGHT,
    HALF_LETTER,
    HEAD_HEIGHT,
    MAX_NAME,
    ROW_HEIGHT,
    Background,
    draw_axis,
    draw_background,
    draw_grid,
)
from icscm.drawing.shapes import Circle, Line, Panel, Point, Role, Shape, Text, draw_upright
from icscm.formatting import clip

Row = TypeVar("Row")

# Widths of the names and of a column, and the gap between columns, in pixels.
_NAMES_WIDTH: Final = 230.0
_COLUMN_WIDTH: Final = 170.0
_COLUMN_GAP: Final = 26.0
# The baseline of the titles of columns.
_TITLE_Y: Final = 14.0
# The key: its height, and from the middle of a mark to the text that explains it.
_KEY_HEIGHT: Final = 24.0
_KEY_TEXT_OFFSET: Final = 12.0
# Radius of the dot and of the circle of a score, and half the height of the mark of the worst one.
_DOT_RADIUS: Final = 3.5
_CIRCLE_RADIUS: Final = 5.0
_HALF_MARK: Final = 6.0


@dataclass(frozen=True)
class PlotColumn(Generic[Row]):
    """A plot beside others: its rows in the order of the names that all of them share."""

    title: str
    note: str
    axis: Axis
    background: Background
    rows: Sequence[Row]


@dataclass(frozen=True)
class ScoreRow:
    """A score of a learner; each is None where it is unknown.

    It is a mean over folds of rows, or over environments left out, or the worst of these.
    """

    by_rows: float | None
    by_environment: float | None
    worst: float | None


def draw_columns(
    names: Sequence[str],
    columns: Sequence[PlotColumn[Row]],
    draw_row: Callable[[Row, Scale, float], Sequence[Shape]],
) -> Panel:
    """Draw plots beside each other; `draw_row` draws a row on a scale, at a height."""
    heights = [HEAD_HEIGHT + ROW_HEIGHT * (number + 0.5) for number in range(len(names))]
    bottom = HEAD_HEIGHT + ROW_HEIGHT * len(names)
    shapes: list[Shape] = [
        Text(Point(0.0, y + HALF_LETTER), clip(name, MAX_NAME), Role.NAME)
        for name, y in zip(names, heights, strict=True)
    ]

    left = _NAMES_WIDTH
    for column in columns:
        scale = Scale(column.axis, start=left, end=left + _COLUMN_WIDTH)
        shapes.append(Text(Point(left, _TITLE_Y), column.title, Role.STRONG_NAME))
        shapes += draw_grid(scale, top=HEAD_HEIGHT, bottom=bottom)
        shapes += draw_background(column.background, scale, top=HEAD_HEIGHT, bottom=bottom)
        for row, y in zip(column.rows, heights, strict=True):
            shapes += draw_row(row, scale, y)
        shapes += draw_axis(scale, bottom=bottom, title=column.note)
        left += _COLUMN_WIDTH + _COLUMN_GAP
    return Panel(left, bottom + FOOT_HEIGHT, shapes)


def draw_score_row(row: ScoreRow, scale: Scale, y: float) -> Sequence[Shape]:
    """Draw a dot for rows, a circle for environments, and a line from it to the worst one."""
    shapes: list[Shape] = []
    if row.by_environment is not None and row.worst is not None:
        circle_x = scale.place(row.by_environment)
        worst_x = scale.place(row.worst)
        shapes.append(Line(Point(circle_x, y), Point(worst_x, y), Role.INTERVAL))
        shapes.append(_draw_worst(worst_x, y))
    if row.by_rows is not None:
        shapes.append(_draw_by_rows(scale.place(row.by_rows), y))
    if row.by_environment is not None:
        shapes.append(_draw_by_environment(scale.place(row.by_environment), y))
    return shapes


def draw_score_key(width: float) -> Panel:
    """Draw what the marks of `draw_score_row` mean, side by side."""
    y = 8.0
    dot_x = _NAMES_WIDTH
    circle_x = _NAMES_WIDTH + 150.0
    worst_x = _NAMES_WIDTH + 380.0
    shapes = [
        _draw_by_rows(dot_x, y),
        _draw_by_environment(circle_x, y),
        _draw_worst(worst_x, y),
        _write_key(dot_x, y, "folds of rows, mean"),
        _write_key(circle_x, y, "environments left out, mean"),
        _write_key(worst_x, y, "the worst of them"),
    ]
    return Panel(width, _KEY_HEIGHT, shapes)


def _draw_by_rows(x: float, y: float) -> Shape:
    return Circle(Point(x, y), _DOT_RADIUS, Role.DOT)


def _draw_by_environment(x: float, y: float) -> Shape:
    return Circle(Point(x, y), _CIRCLE_RADIUS, Role.COMPARED_DOT)


def _draw_worst(x: float, y: float) -> Shape:
    return draw_upright(x, top=y - _HALF_MARK, bottom=y + _HALF_MARK, role=Role.WORST)


def _write_key(x: float, y: float, text: str) -> Shape:
    return Text(Point(x + _KEY_TEXT_OFFSET, y + HALF_LETTER), text, Role.NOTE)
