"""Positions of what a page draws, and blocks of text on the terminal."""

import pytest
from matplotlib import pyplot
from rich.text import Text

from icscm import ICSCMClassifier, evaluate
from icscm.datasets import make_conjunction
from icscm.report.drawing import (
    Limits,
    choose_largest,
    choose_marks,
    draw_effects,
    draw_nodes,
    draw_tolerance_path,
    find_ticks,
    make_plot,
)
from icscm.report.terminal import render_blocks
from icscm.report.validation import draw_validation, render_text


def make_row(name, n, rate, low, high, **more):
    return {"environment": name, "n": n, "rate": rate, "rate_interval": [low, high], **more}


POOLED = make_row("all", 300, 0.3, 0.28, 0.32)


def test_rows_are_placed_in_percent_of_the_axis():
    rows = [make_row("b", 100, 0.2, 0.1, 0.3, beside=0.4), make_row("a", 200, 0.35, 0.2, 0.5)]
    plot = make_plot(rows, POOLED, "rate", Limits(), 0.1)
    assert [tick["text"] for tick in plot["ticks"]] == ["10%", "20%", "30%", "40%", "50%"]
    assert [tick["x"] for tick in plot["ticks"]] == ["0%", "25%", "50%", "75%", "100%"]
    first, second = plot["rows"]
    assert [first[key] for key in ("x", "x1", "x2", "mark")] == ["25%", "0%", "50%", "75%"]
    assert [second[key] for key in ("x", "x1", "x2", "mark")] == ["62.5%", "25%", "100%", None]
    assert (first["name"], first["n"], first["share"]) == ("b", 100, 0.2)
    assert plot["pooled"]["name"] == "all together"
    assert (plot["line"], plot["n_rows"], plot["n_left_out"]) == ("50%", 2, 0)
    assert plot["band"] == {"x": "37.5%", "width": "25.00%"}


def test_a_band_beyond_the_axis_ends_with_it():
    plot = make_plot([], POOLED, "rate", Limits(), 0.5)
    assert plot["band"] == {"x": "0%", "width": "100.00%"}
    empty = {"n": 0, "rate": None, "rate_interval": None}
    plot = make_plot([{**empty, "environment": "a"}], empty, "rate", Limits(), 0.5)
    assert plot["band"] is None
    assert plot["rows"][0]["x"] is None
    assert [tick["text"] for tick in plot["ticks"]] == ["0%", "25%", "50%", "75%", "100%"]


def test_the_largest_rows_are_chosen_and_counted():
    sizes = {"e10": 5, "e9": 50, "e2": 20, "e1": 40}
    rows = [make_row(name, n, 1 / n, 0.0, 1.0) for name, n in sizes.items()]
    orders = {
        "given": ["e9", "e2", "e1"],
        "size": ["e9", "e1", "e2"],
        "name": ["e1", "e2", "e9"],
        "rate": ["e9", "e1", "e2"],
    }
    for order, names in orders.items():
        assert [row["environment"] for row in choose_largest(rows, 3, order)] == names, order
    plot = make_plot(rows, POOLED, "rate", Limits(environments=3))
    assert (plot["n_rows"], plot["n_left_out"]) == (4, 1)


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "n"),
    [
        (0.31, 0.32, 0.3, 0.4, 6),
        (0.5, 0.6, 0.5, 0.6, 6),
        (0.1, 0.35, 0.1, 0.35, 6),
        (0.1, 0.36, 0.1, 0.4, 4),
        (0.12, 0.62, 0.1, 0.7, 7),
        (0.12, 0.63, 0.0, 0.75, 4),
        (0.0, 1.0, 0.0, 1.0, 5),
        (0.97, 1.0, 0.9, 1.0, 6),
        (0.0, 0.0, 0.0, 0.1, 6),
    ],
)
def test_marks_of_an_axis_of_rates(low, high, first, last, n):
    ticks = find_ticks([make_row("a", 9, low, low, high)], "rate")
    assert (ticks[0], ticks[-1], len(ticks)) == (first, last, n)


def test_a_share_to_compare_with_widens_the_axis():
    assert find_ticks([make_row("a", 9, 0.5, 0.5, 0.6, beside=0.9)], "rate")[-1] == 0.9


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.9, 1.1, [0.5, 1.0, 2.0]),
        (0.5, 2.0, [0.5, 1.0, 2.0]),
        (0.03, 30, [0.02, 0.05, 0.2, 1.0, 5.0, 20.0, 50.0]),
        (0.001, 1_000, [0.01, 0.1, 1.0, 10.0, 100.0]),
        (1.5, 8, [0.5, 1.0, 2.0, 5.0, 10.0]),
        (0.015, 0.015, [0.01, 0.05, 0.2, 1.0, 2.0]),
    ],
)
def test_marks_of_an_axis_of_odds_ratios(low, high, marks):
    assert choose_marks(low, high) == marks


def test_effects_stand_on_one_axis():
    """The radius of a dot is its precision; an environment without an effect has none."""
    environments = [
        {"environment": "a", "n": 10, "odds_ratio": 2.0, "error": 0.1},
        {"environment": "b", "n": 30, "odds_ratio": 0.5, "error": 0.5},
        {"environment": "c", "n": 20, "odds_ratio": None, "error": None},
        {"environment": "d", "n": 20, "odds_ratio": 1.0, "error": 3.0},
    ]
    split = {"odds_ratio": 1.0, "environments": environments}
    drawn = draw_effects([split, split], Limits(leaves=1, environments=2))
    (row,) = drawn["rows"]
    assert [(dot["environment"], dot["x"], dot["r"]) for dot in row["dots"]] == [
        ("b", "0%", "3.5"),
        ("d", "50%", "2.0"),
    ]
    assert (row["x"], drawn["one"], drawn["n_left_out"]) == ("50%", "50%", 1)
    assert [tick["text"] for tick in drawn["ticks"]] == ["0.5", "1", "2"]
    (row,) = draw_effects([split], Limits())["rows"]
    assert [dot["r"] for dot in row["dots"]] == ["3.5", "2.0", "4.5"]
    assert [tick["text"] for tick in draw_effects([], Limits())["ticks"]] == ["0.5", "1", "2"]


def walk_chain(n):
    """A tree whose second children are split further: depth, split, leaf and size of each node."""
    for i in range(n):
        yield {"depth": i, "split": i, "leaf": None, "n": 10 * (n - i)}
        yield {"depth": i + 1, "split": None, "leaf": i + 1, "n": 10}
    yield {"depth": n, "split": None, "leaf": n + 1, "n": 10}


def test_twigs_lead_to_the_rows_of_a_tree():
    rows = draw_nodes([*walk_chain(2)], Limits())["rows"]
    assert [row["width"] for row in rows] == [0, 14, 14, 28, 28]
    assert [row["twig"] for row in rows[1:]] == [7, 7, 21, 21]
    assert [row["is_last"] for row in rows] == [False, False, True, False, True]
    assert [row["through"] for row in rows] == [[], [], [], [], []]
    assert not any(row["is_cut"] for row in rows)


def test_a_twig_passes_rows_below_its_first_child():
    walk = [(0, 0, None), (1, 1, None), (2, None, 1), (2, None, 2), (1, None, 3)]
    nodes = [{"depth": d, "split": s, "leaf": leaf, "n": 9 - d} for d, s, leaf in walk]
    rows = draw_nodes(nodes, Limits())["rows"]
    assert [row["through"] for row in rows] == [[], [], [7], [7], []]


def test_the_largest_splits_of_a_large_tree_are_shown():
    nodes = [*walk_chain(8)]
    drawn = draw_nodes(nodes, Limits(leaves=4))
    assert drawn["n_left_out"] == 6
    assert [row["split"] for row in drawn["rows"] if row["is_cut"]] == [3]
    assert max(row["width"] for row in draw_nodes([*walk_chain(20)], Limits())["rows"]) == 14 * 14


def test_a_path_along_the_tolerance():
    points = [
        {"varies": 40, "deviance_explained": 90, "name": "plain", "leave": [], "is_own": False},
        {"varies": 20, "deviance_explained": 60, "name": "0.3", "leave": ["code"], "is_own": False},
        {"varies": 20, "deviance_explained": 60, "name": "0.1", "leave": [], "is_own": True},
        {"varies": 0, "deviance_explained": 59, "name": "0.03", "leave": [], "is_own": False},
    ]
    drawn = draw_tolerance_path(points)
    assert [(dot["x"], dot["y"]) for dot in drawn["dots"]] == [
        (497.9, 35.1),
        (277.0, 109.4),
        (56.0, 111.9),
    ]
    assert [dot["is_own"] for dot in drawn["dots"]] == [False, True, False]
    assert drawn["drawn"][0]["line"] == "497.9,35.1 277.0,109.4 56.0,111.9"
    assert [mark["text"] for mark in drawn["x_ticks"]] == ["0", "10", "20", "30", "40"]
    assert [mark["text"] for mark in drawn["y_ticks"]] == ["0", "20", "40", "60", "80"]
    assert "without code" in drawn["dots"][1]["text"]


def test_texts_of_near_points_do_not_overlap():
    point = {"deviance_explained": 50, "leave": [], "is_own": False}
    points = [{**point, "varies": 10 - i / 10, "name": str(i)} for i in range(4)]
    below = [dot["below"] for dot in draw_tolerance_path(points)["dots"]]
    assert below == [below[0] + 13 * i for i in range(4)]
    far = [{**point, "varies": 10 * i, "name": str(i)} for i in (1, 0)]
    below = [dot["below"] for dot in draw_tolerance_path(far)["dots"]]
    assert below[0] == below[1]


def test_limits_are_halved_down_to_the_least():
    limits = Limits().halve()
    assert limits == Limits(environments=100, leaves=30, equivalent=6, sets=32, characters=80)
    for _ in range(9):
        limits = limits.halve()
    assert limits == limits.halve() == Limits(4, 4, 2, 4, 40)


def test_blocks_are_parted_by_empty_lines_but_for_the_first():
    blocks = [*render_blocks("one\ntwo\n\nthree\n\n## four\n\nfive\n")]
    texts = [each.plain if isinstance(each, Text) else each for each in blocks]
    assert texts[:3] == ["one two", "", "three"]
    assert texts[4:] == ["five"]


@pytest.fixture(scope="module")
def evaluation():
    """Of fifty environments, the k-th with an AUC of 1 - k percent."""
    data = make_conjunction(1_000, 2, n_environments=2, random_state=1)
    learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    found = evaluate(learner, data.X, data.y, environments=data.environments).to_dict()
    places = []
    for k in range(50):
        place = {**found["environments"][0], "environment": f"e{k}", "is_new": k == 0}
        auc = {**place["scores"]["auc"], "value": 1 - k / 100, "low": 0.4, "high": 1.0}
        places.append({**place, "scores": {**place["scores"], "auc": auc}})
    return {**found, "environments": places}


def list_tick_texts(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_the_worst_and_the_best_of_many_environments_are_drawn(evaluation):
    figure = draw_validation(evaluation)
    axes = figure.axes[3]
    names = [text.split(" (n =")[0] for text in list_tick_texts(axes.yaxis)]
    pyplot.close(figure)
    worst, best = [f"e{k}" for k in range(49, 29, -1)], [f"e{k}" for k in range(19, 0, -1)]
    assert names == ["all", *worst, *best, "e0 (new)"]
    assert axes.get_ylim() == (40.5, -0.5)


def test_the_five_worst_and_the_five_best_are_listed(evaluation):
    lines = [line.split() for line in render_text(evaluation).splitlines()]
    names = [f"e{k}" for k in range(50)]
    listed = [words[0] for words in lines if words and words[0] in names]
    assert listed == ["e49", "e48", "e47", "e46", "e45", "e4", "e3", "e2", "e1", "e0"]
