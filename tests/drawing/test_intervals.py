"""Rows with intervals: cells of a table, and panels."""

from icscm.drawing import Figure
from icscm.drawing.axes import Scale, make_number_axis, make_share_axis
from icscm.drawing.columns import PlotColumn, ScoreRow, draw_columns, draw_score_key, draw_score_row
from icscm.drawing.intervals import (
    Background,
    IntervalPanel,
    IntervalRow,
    RowKind,
    draw_axis_cell,
    draw_cell,
    draw_interval_panel,
    draw_row,
)
from icscm.drawing.shapes import Rectangle, Role
from icscm.drawing.svg import render_shapes
from support.drawings import find_dots, find_texts, list_shapes

AXIS = make_share_axis([0.1, 0.5])
SCALE = Scale(AXIS, start=0.0, end=100.0)


def test_a_row_is_an_interval_a_dot_and_a_circle_to_compare_with():
    row = IntervalRow("b", 0.2, (0.1, 0.3), compared=0.4)
    assert render_shapes(draw_row(row, SCALE, y=50.0)) == (
        '<line x1="0" y1="50" x2="50" y2="50" class="interval"/>'
        '<circle cx="25" cy="50" r="4" class="dot"/>'
        '<circle cx="75" cy="50" r="5" class="dot compared"/>'
    )


def test_what_is_unknown_is_not_drawn():
    assert draw_row(IntervalRow("a", None, None), SCALE, y=50.0) == []
    (line,) = draw_row(IntervalRow("new", None, (0.1, 0.5), RowKind.PREDICTION), SCALE, y=50.0)
    assert line.role is Role.PREDICTION_INTERVAL


def test_a_cell_has_the_mean_and_the_band_behind_the_row():
    background = Background(mean=0.3, band=(0.25, 0.35))
    cell = draw_cell(IntervalRow("all", 0.3, (0.28, 0.32), RowKind.POOLED), AXIS, background)
    assert cell == (
        '<svg class="plot" aria-hidden="true">'
        '<rect x="37.5%" y="0%" width="25%" height="100%" class="band"/>'
        '<line x1="50%" y1="0%" x2="50%" y2="100%" class="mean"/>'
        '<line x1="45%" y1="50%" x2="55%" y2="50%" class="interval pooled"/>'
        '<circle cx="50%" cy="50%" r="4" class="dot pooled"/></svg>'
    )


def test_a_band_beyond_the_axis_ends_with_it():
    cell = draw_cell(IntervalRow("a", None, None), AXIS, Background(band=(-0.2, 0.8)))
    assert '<rect x="0%" y="0%" width="100%" height="100%" class="band"/>' in cell


def test_the_outer_marks_of_an_axis_do_not_extend_beyond_it():
    cell = draw_axis_cell(AXIS)
    assert '<text x="0%" y="62.5%" class="tick first">10%</text>' in cell
    assert '<text x="25%" y="62.5%" text-anchor="middle" class="tick inner">20%</text>' in cell
    assert '<text x="100%" y="62.5%" text-anchor="end" class="tick last">50%</text>' in cell


def test_a_panel_has_names_drawn_rows_and_numbers():
    rows = [
        IntervalRow("all", 0.3, (0.2, 0.4), RowKind.POOLED, numbers="30%"),
        IntervalRow("x" * 99, 0.3, (0.2, 0.4), compared=0.5, numbers="31%"),
    ]
    panel = IntervalPanel(
        "rate", AXIS, "95% intervals", rows, Background(guide=0.2), compared_title="in training"
    )
    figure = Figure(draw_interval_panel(panel), "")
    texts = find_texts(figure)
    assert texts[:3] == ["rate", "all", "30%"]
    assert {"31%", "95% intervals", "in training", "10%", "50%"} <= {*texts}
    assert max(map(len, texts)) <= 38
    assert len(find_dots(figure)) == len(find_dots(figure, Role.POOLED_DOT)) == 1
    assert len(find_dots(figure, Role.COMPARED_DOT)) == 2  # one of them in the key


def test_columns_share_the_names_of_their_rows():
    rows = [ScoreRow(0.5, 0.6, 0.9), ScoreRow(0.5, None, None), ScoreRow(None, None, None)]
    columns = [
        PlotColumn(title, "note", make_number_axis(0.0, 1.0), Background(guide=0.5), rows)
        for title in ("AUC", "Error")
    ]
    panel = draw_columns(["a", "b", "c"], columns, draw_score_row)
    figure = Figure(panel, "")
    texts = find_texts(figure)
    assert [text for text in texts if text in ("a", "b", "c", "AUC", "Error")] == [
        *("a", "b", "c"),
        *("AUC", "Error"),
    ]
    assert len(find_dots(figure)) == 4
    assert len(find_dots(figure, Role.COMPARED_DOT)) == 2
    worst = [shape for shape in list_shapes(figure) if getattr(shape, "role", "") is Role.WORST]
    assert len(worst) == 2
    assert not any(isinstance(shape, Rectangle) for shape in list_shapes(figure))
    assert "the worst of them" in find_texts(Figure(draw_score_key(panel.width), ""))
