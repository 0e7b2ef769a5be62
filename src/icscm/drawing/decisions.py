"""Plots of calibration and of decision curves (Vickers and Elkin, 2006).

A calibration curve has the observed rate at each predicted probability. A decision curve has the
net benefit of treating the rows whose predicted probability is at least t, for each threshold t:

    net benefit(t) = TP / n - FP / n * t / (1 - t)

It is compared with treating all rows and with treating none, whose net benefit is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import make_number_axis
from icscm.drawing.curves import CurvePlot, PlotCurve, PlotPoint
from icscm.drawing.shapes import Role

Points = Sequence[PlotPoint]

# Room above and below the curves, as a share of their range.
_ROOM: Final = 0.03
# How far below 0 net benefits are drawn, as a share of the highest one: that of treating all falls
# without limit.
_DEPTH: Final = 0.25
# The part of an axis above the highest net benefit.
_HEADROOM: Final = 1.05
# The range of an axis where all values are 0.
_MIN_RANGE: Final = 0.01


@dataclass(frozen=True)
class DecisionCurves:
    """The curves of all rows or of an environment.

    `net_benefit` is that of the model, and `treat_all` that of treating all, at each threshold.
    `calibration` is empty for an environment of few rows.
    """

    calibration: Points
    net_benefit: Sequence[float]
    treat_all: Sequence[float]


def plot_calibration(overall: DecisionCurves, environments: Sequence[DecisionCurves]) -> CurvePlot:
    """Plot observed rates against predicted probabilities."""
    calibrations = [part.calibration for part in environments]
    points = [point for curve in (overall.calibration, *calibrations) for point in curve]
    highest = max((max(point.x, point.y) for point in points), default=1.0)
    diagonal = [PlotPoint(0.0, 0.0), PlotPoint(highest, highest)]
    curves = [
        PlotCurve(diagonal, Role.GUIDE_CURVE, title="perfect calibration"),
        *_make_environment_curves(calibrations),
        PlotCurve(overall.calibration, Role.OVERALL_CURVE, title="all rows"),
    ]
    return _fit_axes(curves, x_title="predicted probability", y_title="observed rate")


def plot_net_benefit(overall: DecisionCurves, thresholds: Sequence[float]) -> CurvePlot:
    """Plot the net benefit of the model, of treating all and of treating none."""
    highest = max(0.0, *overall.net_benefit, *overall.treat_all) or _MIN_RANGE
    zeros = [0.0] * len(thresholds)
    curves = [
        PlotCurve(_join(thresholds, zeros), Role.GUIDE_CURVE, title="treat none"),
        PlotCurve(_join(thresholds, overall.treat_all), Role.OTHER_CURVE, title="treat all"),
        PlotCurve(_join(thresholds, overall.net_benefit), Role.OVERALL_CURVE, title="the model"),
    ]
    return CurvePlot(
        x_axis=make_number_axis(thresholds[0], thresholds[-1]),
        y_axis=make_number_axis(-_DEPTH * highest, _HEADROOM * highest),
        x_title="threshold",
        y_title="net benefit",
        curves=curves,
    )


def plot_gain(
    overall: DecisionCurves, environments: Sequence[DecisionCurves], thresholds: Sequence[float]
) -> CurvePlot:
    """Plot by how much the net benefit exceeds the better of treating all and treating none."""
    zeros = [0.0] * len(thresholds)
    overall_gain = _join(thresholds, _compute_gains(overall))
    environment_gains = [_join(thresholds, _compute_gains(part)) for part in environments]
    curves = [
        PlotCurve(_join(thresholds, zeros), Role.GUIDE_CURVE, title="no gain"),
        *_make_environment_curves(environment_gains),
        PlotCurve(overall_gain, Role.OVERALL_CURVE, title="all rows"),
    ]
    return _fit_axes(curves, x_title="threshold", y_title="gain in net benefit")


def _compute_gains(curves: DecisionCurves) -> Sequence[float]:
    """Compute at each threshold what the model adds to the better of treating all or none."""
    of_treating_none = 0.0
    return [
        of_model - max(of_treating_all, of_treating_none)
        for of_model, of_treating_all in zip(curves.net_benefit, curves.treat_all, strict=True)
    ]


def _join(thresholds: Sequence[float], values: Sequence[float]) -> Points:
    return [PlotPoint(x, y) for x, y in zip(thresholds, values, strict=True)]


def _make_environment_curves(points_by_environment: Sequence[Points]) -> Sequence[PlotCurve]:
    """Make a curve for each environment that has points; the first of them is explained."""
    curves: list[PlotCurve] = []
    for points in points_by_environment:
        if points:
            title = "" if curves else "environments"
            curves.append(PlotCurve(points, Role.ENVIRONMENT_CURVE, title=title))
    return curves


def _fit_axes(curves: Sequence[PlotCurve], *, x_title: str, y_title: str) -> CurvePlot:
    """Plot curves on axes that hold them all."""
    xs = [point.x for curve in curves for point in curve.points]
    ys = [point.y for curve in curves for point in curve.points]
    room = _ROOM * (max(ys) - min(ys)) or _MIN_RANGE
    return CurvePlot(
        x_axis=make_number_axis(min(xs), max(xs)),
        y_axis=make_number_axis(min(ys) - room, max(ys) + room),
        x_title=x_title,
        y_title=y_title,
        curves=curves,
    )
