"""Curves, decision curves, paths and scores in their boxes."""

import pytest

from icscm.drawing import Figure
from icscm.drawing.curves import PlotPoint, draw_curves
from icscm.drawing.decisions import DecisionCurves, plot_calibration, plot_gain, plot_net_benefit
from icscm.drawing.path import PathDot, ScoreLine, ScorePath, draw_path, draw_scores
from icscm.drawing.score_card import PointsRow, TotalsClass, draw_points, plot_risks
from icscm.drawing.shapes import Role
from support.drawings import find_curves, find_dots, find_texts, list_shapes

THRESHOLDS = [0.1, 0.2, 0.3]
TOTAL = DecisionCurves([PlotPoint(0.1, 0.2), PlotPoint(0.8, 0.7)], [0.2, 0.1, 0.1], [0.2, 0, -0.9])


def test_the_calibration_curve_is_drawn_beside_the_diagonal():
    few = DecisionCurves([], [0.1, 0.1, 0.1], [0.1, 0.0, -0.1])
    plot = plot_calibration(TOTAL, [TOTAL, few])
    assert [curve.role for curve in plot.curves] == [
        Role.GUIDE_CURVE,
        Role.ENVIRONMENT_CURVE,  # an environment with few rows has none
        Role.OVERALL_CURVE,
    ]
    assert plot.curves[0].points == [PlotPoint(0.0, 0.0), PlotPoint(0.8, 0.8)]
    figure = Figure(draw_curves(plot), "")
    assert {"perfect calibration", "environments", "all rows"} <= {*find_texts(figure)}


def test_of_treating_all_what_is_far_below_zero_is_left_out():
    plot = plot_net_benefit(TOTAL, THRESHOLDS)
    assert plot.y_axis.low == pytest.approx(-0.05)
    (curve,) = [
        shape for shape in draw_curves(plot).shapes if getattr(shape, "role", "") == "curve other"
    ][:1]
    assert len(curve.points) == 2


def test_the_gain_is_over_the_better_of_treating_all_and_none():
    *_, overall = plot_gain(TOTAL, [TOTAL], THRESHOLDS).curves
    assert [point.y for point in overall.points] == pytest.approx([0.0, 0.1, 0.1])


def test_a_path_along_the_tolerance():
    dots = [
        PathDot(40, 90, "plain", is_own=False),
        PathDot(20, 60, "0.3 to 0.1 without code", is_own=True),
        PathDot(0, 59, "0.03", is_own=False),
    ]
    figure = Figure(draw_path(dots), "")
    (curve,) = find_curves(figure, Role.PATH_CURVE)
    assert [(round(p.x, 1), round(p.y, 1)) for p in curve.points] == [
        (497.9, 35.1),
        (277.0, 109.4),
        (56.0, 111.9),
    ]
    assert [dot.radius for dot in find_dots(figure, Role.POOLED_DOT)] == [6.0]
    assert len(find_dots(figure)) == 2
    assert "0.3 to 0.1 without code" in find_texts(figure)


def test_texts_of_near_points_do_not_overlap():
    dots = [PathDot(10 - i / 10, 50, "some text", is_own=False) for i in range(4)]
    texts = [text for text in list_shapes(Figure(draw_path(dots), "")) if text_of(text)]
    heights = [text.position.y for text in texts]
    assert heights == [pytest.approx(heights[0] + 13 * i) for i in range(4)]
    far = [PathDot(10 * i, 50, "some text", is_own=False) for i in (1, 0)]
    first, second = (text for text in list_shapes(Figure(draw_path(far), "")) if text_of(text))
    assert first.position.y == second.position.y


def text_of(shape):
    return getattr(shape, "text", "") == "some text"


def test_scores_along_the_tolerance_skip_what_is_unknown():
    path = ScorePath(
        names=["plain", "0.1 (own)"],
        lines=[
            ScoreLine("mean", [0.8, None], Role.OVERALL_CURVE),
            ScoreLine("worst", [0.7, 0.6], Role.WORST_CURVE),
            ScoreLine("unknown", [None, None], Role.PATH_CURVE),
        ],
        rejected=["", "without code"],
        spread=[[0.8, 0.7], [0.6]],
    )
    figure = Figure(draw_scores(path), "")
    texts = find_texts(figure)
    assert {"plain", "0.1 (own)", "mean", "worst", "without code"} <= {*texts}
    assert "unknown" not in texts
    assert len(find_dots(figure, Role.POOLED_DOT)) == 1
    assert len(find_dots(figure, Role.FAINT_DOT)) == 3


def test_the_points_of_a_score_are_bars():
    rows = [PointsRow("age", "> 61", 4), PointsRow("age", "missing", 2), PointsRow("dose", "", 0)]
    figure = Figure(draw_points(rows), "")
    widths = [shape.width for shape in list_shapes(figure) if hasattr(shape, "width")]
    assert widths == [180.0, 90.0, 0.0]
    texts = find_texts(figure)
    assert texts.count("age") == texts.count("dose") == 1


def test_the_intervals_of_classes_of_totals_are_boxes():
    plot = plot_risks([0.1, 0.2, 0.4], [TotalsClass(0, 1, (0.05, 0.3))])
    box, curve = plot.curves
    assert {(point.x, point.y) for point in box.points} == {
        (x, y) for x in (-0.4, 1.4) for y in (0.05, 0.3)
    }
    assert [point.y for point in curve.points] == [0.1, 0.2, 0.4]
