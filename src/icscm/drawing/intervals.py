"""Values with their intervals, a row each, on one axis: forest plots, rates, errors, AUCs.

    hospital 1    |   --o--      |   0.82 (0.75 to 0.88)
    hospital 2    |      --o--   |   0.86 (0.79 to 0.92)
                  0.7   0.8   0.9

On a page the rows are those of a table, and `draw_cell` draws one cell. A figure that stands alone
has the names and the numbers beside the drawn rows. Both draw a row by `draw_row`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from markupsafe import Markup

from icscm.drawing.axes import Axis, Scale, Tick
from icscm.drawing.shapes import (
    Circle,
    Line,
    Panel,
    Point,
    Rectangle,
    Role,
    Shape,
    Text,
    draw_upright,
)
from icscm.drawing.svg import render_cell
from icscm.formatting import clip

# Radius of a dot, and of the circle to compare it with, in pixels.
_DOT_RADIUS: Final = 4.0
_CIRCLE_RADIUS: Final = 5.0
# Height of a row of a figure, of the title above the rows, and of the marks below them.
ROW_HEIGHT: Final = 20.0
HEAD_HEIGHT: Final = 26.0
FOOT_HEIGHT: Final = 40.0
# Widths of the names, the drawing and the numbers of a panel.
_NAMES_WIDTH: Final = 240.0
_DRAWING_WIDTH: Final = 300.0
_NUMBERS_WIDTH: Final = 180.0
# Characters of a name and of a title.
MAX_NAME: Final = 38
_MAX_TITLE: Final = 90
# From the baseline of a text to the middle of its letters.
HALF_LETTER: Final = 4.0


class RowKind(Enum):
    """What a row of a plot is: a group of rows, all of them, or a group of the future."""

    GROUP = auto()
    POOLED = auto()
    PREDICTION = auto()


_INTERVAL_ROLES = {
    RowKind.GROUP: Role.INTERVAL,
    RowKind.POOLED: Role.POOLED_INTERVAL,
    RowKind.PREDICTION: Role.PREDICTION_INTERVAL,
}
_DOT_ROLES = {
    RowKind.GROUP: Role.DOT,
    RowKind.POOLED: Role.POOLED_DOT,
    RowKind.PREDICTION: Role.POOLED_DOT,
}


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval, and a value to compare it with; each is None if unknown.

    `numbers` is the text beside the row in a figure.
    """

    name: str
    estimate: float | None
    interval: tuple[float, float] | None
    kind: RowKind = RowKind.GROUP
    compared: float | None = None
    numbers: str = ""


@dataclass(frozen=True)
class Background:
    """What all rows of a plot have behind them, each None where it is not drawn.

    The mean is an upright line; the guide is a dashed one, such as an odds ratio of 1; the band is
    the range that is allowed around the mean.
    """

    mean: float | None = None
    guide: float | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class IntervalPanel:
    """Rows on one axis, as a figure or a part of one."""

    title: str
    axis: Axis
    axis_title: str
    rows: Sequence[IntervalRow]
    background: Background = Background()
    compared_title: str = ""


def draw_cell(row: IntervalRow, axis: Axis, background: Background) -> Markup:
    """Draw a row as the cell of a table."""
    scale = Scale(axis, start=0.0, end=100.0)
    behind = draw_background(background, scale, top=0.0, bottom=100.0)
    return render_cell([*behind, *draw_row(row, scale, y=50.0)])


def draw_axis_cell(axis: Axis) -> Markup:
    """Draw the marks of an axis as the cell above a column of drawn cells."""
    scale = Scale(axis, start=0.0, end=100.0)
    return render_cell(draw_tick_texts(axis.ticks, scale, y=62.5), css_class="axis")


def draw_tick_texts(ticks: Sequence[Tick], scale: Scale, *, y: float) -> Sequence[Shape]:
    """Write the marks of an axis; the outer ones do not extend beyond its ends."""
    texts = []
    last_number = len(ticks) - 1
    for number, tick in enumerate(ticks):
        position = Point(scale.place(tick.value), y)
        if number == 0:
            texts.append(Text(position, tick.text, Role.FIRST_TICK))
        elif number == last_number:
            texts.append(Text(position, tick.text, Role.LAST_TICK, anchor="end"))
        else:
            texts.append(Text(position, tick.text, Role.INNER_TICK, anchor="middle"))
    return texts


def draw_background(
    background: Background, scale: Scale, *, top: float, bottom: float
) -> Sequence[Shape]:
    """Draw the band and the upright lines behind rows."""
    shapes: list[Shape] = []
    if background.band is not None:
        left, right = (scale.place(end) for end in background.band)
        corner = Point(left, top)
        shapes.append(Rectangle(corner, right - left, bottom - top, Role.BAND))
    if background.guide is not None:
        x = scale.place(background.guide)
        shapes.append(draw_upright(x, top=top, bottom=bottom, role=Role.GUIDE))
    if background.mean is not None:
        x = scale.place(background.mean)
        shapes.append(draw_upright(x, top=top, bottom=bottom, role=Role.MEAN))
    return shapes


def draw_row(row: IntervalRow, scale: Scale, *, y: float) -> Sequence[Shape]:
    """Draw the interval of a row, its dot and the circle to compare with."""
    shapes: list[Shape] = []
    if row.interval is not None:
        left, right = (scale.place(end) for end in row.interval)
        shapes.append(Line(Point(left, y), Point(right, y), _INTERVAL_ROLES[row.kind]))
    if row.estimate is not None:
        centre = Point(scale.place(row.estimate), y)
        shapes.append(Circle(centre, _DOT_RADIUS, _DOT_ROLES[row.kind]))
    if row.compared is not None:
        centre = Point(scale.place(row.compared), y)
        shapes.append(Circle(centre, _CIRCLE_RADIUS, Role.COMPARED_DOT))
    return shapes


def draw_interval_panel(panel: IntervalPanel) -> Panel:
    """Draw the title, a line for each row with its name and its numbers, and the axis."""
    left = _NAMES_WIDTH
    right = left + _DRAWING_WIDTH
    top = HEAD_HEIGHT
    bottom = top + ROW_HEIGHT * len(panel.rows)
    scale = Scale(panel.axis, start=left, end=right)

    title = clip(panel.title, _MAX_TITLE)
    shapes: list[Shape] = [Text(Point(0.0, 12.0), title, Role.STRONG_NAME)]
    shapes += draw_grid(scale, top=top, bottom=bottom)
    shapes += draw_background(panel.background, scale, top=top, bottom=bottom)
    for number, row in enumerate(panel.rows):
        y = top + ROW_HEIGHT * (number + 0.5)
        shapes += _draw_labelled_row(row, scale, y=y)
    shapes += draw_axis(scale, bottom=bottom, title=panel.axis_title)
    if panel.compared_title:
        shapes += _draw_key(panel.compared_title, Point(right + 24.0, bottom + 28.0))
    return Panel(right + _NUMBERS_WIDTH, bottom + FOOT_HEIGHT, shapes)


def _draw_labelled_row(row: IntervalRow, scale: Scale, *, y: float) -> Sequence[Shape]:
    """Draw a row between its name, at the left, and its numbers, at the right."""
    baseline = y + HALF_LETTER
    name_role = Role.NAME if row.kind is RowKind.GROUP else Role.STRONG_NAME
    name = Text(Point(0.0, baseline), clip(row.name, MAX_NAME), name_role)
    numbers = Text(Point(scale.end + 16.0, baseline), row.numbers, Role.NOTE)
    return [name, *draw_row(row, scale, y=y), numbers]


def _draw_key(title: str, position: Point) -> Sequence[Shape]:
    """Draw what an open circle is."""
    text = Text(Point(position.x + 10.0, position.y + HALF_LETTER), title, Role.NOTE)
    return [Circle(position, _CIRCLE_RADIUS, Role.COMPARED_DOT), text]


def draw_grid(scale: Scale, *, top: float, bottom: float) -> Sequence[Shape]:
    """Draw a faint upright line at each mark of an axis."""
    return [
        draw_upright(scale.place(tick.value), top=top, bottom=bottom, role=Role.GRID)
        for tick in scale.axis.ticks
    ]


def draw_axis(scale: Scale, *, bottom: float, title: str) -> Sequence[Shape]:
    """Write the marks of an axis below a panel, and its title below them."""
    marks = [
        Text(Point(scale.place(tick.value), bottom + 15.0), tick.text, Role.TICK, anchor="middle")
        for tick in scale.axis.ticks
    ]
    middle = (scale.start + scale.end) / 2
    return [*marks, Text(Point(middle, bottom + 32.0), title, Role.NOTE, anchor="middle")]
