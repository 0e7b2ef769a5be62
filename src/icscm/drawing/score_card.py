"""A score: bars of points for the values of each column, and the risk of each total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import make_number_axis
from icscm.drawing.curves import CurvePlot, PlotCurve, PlotPoint
from icscm.drawing.shapes import Panel, Point, Rectangle, Role, Shape, Text, draw_level
from icscm.formatting import clip

# Pixels: height of a value, and the widths of columns, values and bars.
_ROW_HEIGHT: Final = 21.0
_COLUMN_WIDTH: Final = 150.0
_VALUES_WIDTH: Final = 170.0
_BARS_WIDTH: Final = 180.0
_BAR_HEIGHT: Final = 13.0
_MAX_COLUMN: Final = 20
_MAX_VALUE: Final = 24


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
    """Draw a bar for each value; the name of a column stands at its first one."""
    most_points = max(row.points for row in rows)
    bars_x = _COLUMN_WIDTH + _VALUES_WIDTH + 12.0
    right = bars_x + _BARS_WIDTH + 30.0
    shapes: list[Shape] = [Text(Point(bars_x, 12.0), "points", Role.NOTE)]
    previous_column = None
    for number, row in enumerate(rows):
        middle = 20.0 + _ROW_HEIGHT * (number + 0.5)
        if row.column != previous_column:
            top = middle - _ROW_HEIGHT / 2
            shapes.append(draw_level(top, left=0.0, right=right, role=Role.SEPARATOR))
            name = clip(row.column, _MAX_COLUMN)
            shapes.append(Text(Point(0.0, middle + 4.0), name, Role.STRONG_NAME))
        previous_column = row.column
        width = _BARS_WIDTH * row.points / max(most_points, 1)
        corner = Point(bars_x, middle - _BAR_HEIGHT / 2)
        value = clip(row.value, _MAX_VALUE)
        shapes += [
            Text(Point(bars_x - 12.0, middle + 4.0), value, Role.NAME, anchor="end"),
            Rectangle(corner, width, _BAR_HEIGHT, Role.POINTS),
            Text(Point(bars_x + width + 6.0, middle + 4.0), str(row.points), Role.NAME),
        ]
    return Panel(right, 20.0 + _ROW_HEIGHT * len(rows) + 8.0, shapes)


def plot_risks(risks: Sequence[float], classes: Sequence[TotalsClass]) -> CurvePlot:
    """Plot the risk of each total, and as boxes the prediction intervals of classes of totals."""
    last_total = len(risks) - 1
    boxes = [_outline(totals) for totals in classes]
    titles = ["95% prediction interval in a new environment"] + [""] * len(boxes)
    box_curves = [
        PlotCurve(points, Role.ENVIRONMENT_CURVE, title=title)
        for points, title in zip(boxes, titles, strict=False)
    ]
    risk_points = [PlotPoint(float(total), risk) for total, risk in enumerate(risks)]
    highest = max(point.y for points in (*boxes, risk_points) for point in points)
    return CurvePlot(
        x_axis=make_number_axis(-0.5, last_total + 0.5),
        y_axis=make_number_axis(0.0, 1.03 * highest),
        x_title="total of points",
        y_title="risk",
        curves=[*box_curves, PlotCurve(risk_points, Role.OVERALL_CURVE)],
    )


def _outline(totals: TotalsClass) -> Sequence[PlotPoint]:
    """Return the corners of the box of a class of totals."""
    low, high = totals.interval
    left, right = totals.first - 0.4, totals.last + 0.4
    return [
        PlotPoint(left, low),
        PlotPoint(right, low),
        PlotPoint(right, high),
        PlotPoint(left, high),
        PlotPoint(left, low),
    ]
