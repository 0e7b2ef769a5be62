"""A score: bars of points for the values of each column, and the risk of each total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import make_number_axis
from icscm.drawing.curves import CurvePlot, PlotCurve, PlotPoint
from icscm.drawing.shapes import Panel, Point, Rectangle, Role, Shape, Text, draw_level
from icscm.formatting import clip

# Pixels: the title above the rows, the height of a row, and the room below the last one.
_HEAD_HEIGHT: Final = 20.0
_ROW_HEIGHT: Final = 21.0
_FOOT_HEIGHT: Final = 8.0
# Widths of columns and values, the bars right of them, and the longest bar with its number.
_COLUMN_WIDTH: Final = 150.0
_VALUES_WIDTH: Final = 170.0
_BARS_X: Final = _COLUMN_WIDTH + _VALUES_WIDTH + 12.0
_BARS_WIDTH: Final = 180.0
_WIDTH: Final = _BARS_X + _BARS_WIDTH + 30.0
_BAR_HEIGHT: Final = 13.0
# From the baseline of a text to the middle of its letters.
_HALF_LETTER: Final = 4.0
# Characters of the name of a column and of a value.
_MAX_COLUMN: Final = 20
_MAX_VALUE: Final = 24
# A box extends this far beyond its first and its last total, and so leaves a gap to the next box.
_BOX_OVERHANG: Final = 0.4


@dataclass(frozen=True)
class PointsRow:
    """The points for a value of a column."""

    column: str
    value: str
    points: int


@dataclass(frozen=True)
class TotalsClass:
    """Totals from the first to the last, and the prediction interval of their risk."""

    first: int
    last: int
    interval: tuple[float, float]


def draw_points(rows: Sequence[PointsRow]) -> Panel:
    """Draw a bar for each value; the name of a column stands at its first one.

                        points
    age         > 63    ======== 4
                > 40    ==== 2
    smoker      yes     == 1
    """
    max_points = max(row.points for row in rows)
    shapes: list[Shape] = [Text(Point(_BARS_X, 12.0), "points", Role.NOTE)]
    previous_column = None
    for number, row in enumerate(rows):
        middle = _HEAD_HEIGHT + _ROW_HEIGHT * (number + 0.5)
        if row.column != previous_column:
            shapes += _draw_column_name(row.column, y=middle)
        previous_column = row.column
        bar_width = _BARS_WIDTH * row.points / max(max_points, 1)
        shapes += _draw_bar(row, y=middle, width=bar_width)
    height = _HEAD_HEIGHT + _ROW_HEIGHT * len(rows) + _FOOT_HEIGHT
    return Panel(_WIDTH, height, shapes)


def _draw_column_name(column: str, *, y: float) -> Sequence[Shape]:
    """Draw the name of a column below a line that separates it from the column before."""
    top = y - _ROW_HEIGHT / 2
    name = clip(column, _MAX_COLUMN)
    return [
        draw_level(top, left=0.0, right=_WIDTH, role=Role.SEPARATOR),
        Text(Point(0.0, y + _HALF_LETTER), name, Role.STRONG_NAME),
    ]


def _draw_bar(row: PointsRow, *, y: float, width: float) -> Sequence[Shape]:
    """Draw a value, the bar of its points, and their number."""
    baseline = y + _HALF_LETTER
    value = clip(row.value, _MAX_VALUE)
    bar_corner = Point(_BARS_X, y - _BAR_HEIGHT / 2)
    return [
        Text(Point(_BARS_X - 12.0, baseline), value, Role.NAME, anchor="end"),
        Rectangle(bar_corner, width, _BAR_HEIGHT, Role.POINTS),
        Text(Point(_BARS_X + width + 6.0, baseline), str(row.points), Role.NAME),
    ]


def plot_risks(risks: Sequence[float], classes: Sequence[TotalsClass]) -> CurvePlot:
    """Plot the risk of each total, and as boxes the prediction intervals of classes of totals."""
    last_total = len(risks) - 1
    curves: list[PlotCurve] = []
    for totals in classes:
        # the first box explains all of them
        title = "" if curves else "95% prediction interval in a new environment"
        curves.append(PlotCurve(_list_corners(totals), Role.ENVIRONMENT_CURVE, title=title))
    risk_points = [PlotPoint(float(total), risk) for total, risk in enumerate(risks)]
    curves.append(PlotCurve(risk_points, Role.OVERALL_CURVE))

    highest = max(point.y for curve in curves for point in curve.points)
    return CurvePlot(
        x_axis=make_number_axis(-0.5, last_total + 0.5),
        y_axis=make_number_axis(0.0, 1.03 * highest),
        x_title="total of points",
        y_title="risk",
        curves=curves,
    )


def _list_corners(totals: TotalsClass) -> Sequence[PlotPoint]:
    """List the corners of the box of a class of totals, the first one again at the end."""
    low, high = totals.interval
    left = totals.first - _BOX_OVERHANG
    right = totals.last + _BOX_OVERHANG
    return [
        PlotPoint(left, low),
        PlotPoint(right, low),
        PlotPoint(right, high),
        PlotPoint(left, high),
        PlotPoint(left, low),
    ]
