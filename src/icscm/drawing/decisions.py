"""Calibration curves and decision curves (Vickers and Elkin, 2006).

net benefit(t) = TP / n - FP / n * t / (1 - t)     at the threshold t
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icscm.drawing.axes import make_number_axis
from icscm.drawing.curves import CurvePlot, PlotCurve, PlotPoint
from icscm.drawing.shapes import Role

# Room above and below the curves, as a share of their range.
_ROOM: Final = 0.03
# Of a decision curve the part below this share of the highest net benefit is not drawn: that of
# treating all falls without limit.
_DEPTH: Final = 0.25


@dataclass(frozen=True)
class DecisionCurves:
    """The curves of all rows or of an environment; the benefits are at the same thresholds."""

    calibration: Sequence[PlotPoint]
    net_benefit: Sequence[float]
    treat_all: Sequence[float]


def plot_calibration(overall: DecisionCurves, environments: Sequence[DecisionCurves]) -> CurvePlot:
    """Plot observed rates against predicted probabilities."""
    points = [point for part in (overall, *environments) for point in part.calibration]
    highest = max((max(point.x, point.y) for point in points), default=1.0)
    diagonal = [PlotPoint(0.0, 0.0), PlotPoint(highest, highest)]
    calibrations = [part.calibration for part in environments]
    curves = [
        PlotCurve(diagonal, Role.GUIDE_CURVE, title="perfect calibration"),
        *_make_environment_curves(calibrations),
        PlotCurve(overall.calibration, Role.OVERALL_CURVE, title="all rows"),
    ]
    return _plot(curves, x_title="predicted probability", y_title="observed rate")


def plot_net_benefit(overall: DecisionCurves, thresholds: Sequence[float]) -> CurvePlot:
    """Plot the net benefit of the model, of treating all and of treating none."""
    highest = max(0.0, *overall.net_benefit, *overall.treat_all) or 0.01
    zeros = [0.0] * len(thresholds)
    curves = [
        PlotCurve(_join(thresholds, zeros), Role.GUIDE_CURVE, title="treat none"),
        PlotCurve(_join(thresholds, overall.treat_all), Role.OTHER_CURVE, title="treat all"),
        PlotCurve(_join(thresholds, overall.net_benefit), Role.OVERALL_CURVE, title="the model"),
    ]
    return CurvePlot(
        x_axis=make_number_axis(thresholds[0], thresholds[-1]),
        y_axis=make_number_axis(-_DEPTH * highest, 1.05 * highest),
        x_title="threshold",
        y_title="net benefit",
        curves=curves,
    )


def plot_gain(
    overall: DecisionCurves, environments: Sequence[DecisionCurves], thresholds: Sequence[float]
) -> CurvePlot:
    """Plot by how much the net benefit exceeds the better of treating all and treating none."""
    zeros = [0.0] * len(thresholds)
    gains = [_join(thresholds, _compute_gains(part)) for part in environments]
    overall_gain = _join(thresholds, _compute_gains(overall))
    curves = [
        PlotCurve(_join(thresholds, zeros), Role.GUIDE_CURVE, title="no gain"),
        *_make_environment_curves(gains),
        PlotCurve(overall_gain, Role.OVERALL_CURVE, title="all rows"),
    ]
    return _plot(curves, x_title="threshold", y_title="gain in net benefit")


def _compute_gains(curves: DecisionCurves) -> Sequence[float]:
    pairs = zip(curves.net_benefit, curves.treat_all, strict=True)
    return [benefit - max(of_all, 0.0) for benefit, of_all in pairs]


def _join(thresholds: Sequence[float], values: Sequence[float]) -> Sequence[PlotPoint]:
    return [PlotPoint(x, y) for x, y in zip(thresholds, values, strict=True)]


def _make_environment_curves(lines: Sequence[Sequence[PlotPoint]]) -> Sequence[PlotCurve]:
    """Make a curve for each environment that has one; the first of them is explained."""
    known = [line for line in lines if line]
    titles = ["environments"] + [""] * len(known)
    return [
        PlotCurve(line, Role.ENVIRONMENT_CURVE, title=title)
        for line, title in zip(known, titles, strict=False)
    ]


def _plot(curves: Sequence[PlotCurve], *, x_title: str, y_title: str) -> CurvePlot:
    """Plot curves on axes that hold them all."""
    xs = [point.x for curve in curves for point in curve.points]
    ys = [point.y for curve in curves for point in curve.points]
    room = _ROOM * (max(ys) - min(ys)) or 0.01
    return CurvePlot(
        x_axis=make_number_axis(min(xs), max(xs)),
        y_axis=make_number_axis(min(ys) - room, max(ys) + room),
        x_title=x_title,
        y_title=y_title,
        curves=curves,
    )
