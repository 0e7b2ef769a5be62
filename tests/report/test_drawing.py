"""What a page draws from records, and blocks of text on the terminal."""

from dataclasses import replace

import pytest

from icscm import ICSCMClassifier, evaluate
from icscm.datasets import make_conjunction
from icscm.report.content.candidates import OddsRatio, SplitCandidate
from icscm.report.content.nodes import ChosenSplit
from icscm.report.content.paths import TreeAtTolerance
from icscm.report.content.rates import EnvironmentRate
from icscm.report.content.tree_nodes import Node
from icscm.report.drawing import (
    Limits,
    PlotRow,
    choose_largest,
    find_largest,
    make_axis,
    make_plot,
)
from icscm.report.drawn_curves import make_path_dots
from icscm.report.drawn_tree import draw_nodes, draw_splits
from icscm.report.evaluation import draw_evaluation, render_text
from icscm.report.figures import choose_environments
from support.drawings import find_texts
from support.reports import make_blank


def make_row(name, n, rate, low, high, **more):
    return PlotRow(name, n=n, share=rate, interval=(low, high), **more)


def make_ratio(name, **values):
    return OddsRatio(environment=name, odds_ratio_interval=None, **values)


POOLED = make_row("all", 300, 0.3, 0.28, 0.32)


def test_rows_have_their_numbers_and_a_drawn_cell():
    rows = [make_row("b", 100, 0.2, 0.1, 0.3, compared=0.4), make_row("a", 200, 0.35, 0.2, 0.5)]
    plot = make_plot(rows, POOLED, Limits(), margin=0.1)
    first, second = plot.rows
    assert (first.name, first.n, first.share, first.interval) == ("b", 100, 0.2, (0.1, 0.3))
    assert (first.text, first.range) == ("20.0%", "10.0% to 30.0%")
    assert '<line x1="0%" y1="50%" x2="50%" y2="50%" class="interval"/>' in first.cell
    assert '<circle cx="25%" cy="50%" r="4" class="dot"/>' in first.cell
    assert '<circle cx="75%" cy="50%" r="5" class="dot compared"/>' in first.cell
    assert '<circle cx="62.5%" cy="50%" r="4" class="dot"/>' in second.cell
    assert "compared" not in second.cell
    assert '<rect x="37.5%" y="0%" width="25%" height="100%" class="band"/>' in second.cell
    assert (plot.pooled.name, plot.n_rows, plot.n_left_out) == ("all together", 2, 0)
    assert 'class="mean"' in plot.pooled.cell
    assert ">10%<" in plot.axis
    assert ">50%<" in plot.axis


def test_without_samples_there_is_neither_band_nor_dot():
    empty = PlotRow("a", n=0, share=None, interval=None)
    plot = make_plot([empty], empty, Limits(), margin=0.5)
    assert plot.rows[0].share is None
    assert plot.rows[0].cell == '<svg class="plot" aria-hidden="true"></svg>'


def test_leaves_that_differ_have_no_mean():
    plot = make_plot([POOLED], POOLED, Limits(), has_mean=False)
    assert "mean" not in plot.rows[0].cell


def test_the_largest_rows_are_chosen_and_counted():
    sizes = {"e10": 5, "e9": 50, "e2": 20, "e1": 40}
    assert find_largest([*sizes.values()], 3) == [1, 2, 3]
    environments = [
        EnvironmentRate(environment=name, n=n, n_positive=1, rate=1 / n, rate_interval=None)
        for name, n in sizes.items()
    ]
    assert [rate.environment for rate in choose_largest(environments, 3)] == ["e1", "e2", "e9"]
    orders = {
        "size": ["e9", "e1", "e2", "e10"],
        "name": ["e1", "e2", "e9", "e10"],
        "rate": ["e9", "e1", "e2", "e10"],
    }
    for order, names in orders.items():
        assert choose_environments(environments, order) == names, order
    rows = [make_row(name, n, 1 / n, 0.0, 1.0) for name, n in sizes.items()]
    plot = make_plot(rows, POOLED, Limits(environments=3))
    assert [row.name for row in plot.rows] == ["e9", "e2", "e1"]
    assert (plot.n_rows, plot.n_left_out) == (4, 1)


def test_a_share_to_compare_with_widens_the_axis():
    rows = [make_row("a", 9, 0.5, 0.5, 0.6, compared=0.9)]
    assert make_axis(rows, is_percent=True).high == 0.9


def test_effects_stand_on_one_axis():
    """The radius of a dot is its precision; an environment without an effect has none."""
    environments = [
        make_ratio("a", n=10, odds_ratio=2.0, error=0.1),
        make_ratio("b", n=30, odds_ratio=0.5, error=0.5),
        make_ratio("c", n=20, odds_ratio=None, error=None),
        make_ratio("d", n=20, odds_ratio=1.0, error=3.0),
    ]
    candidate = make_blank(SplitCandidate, odds_ratio=1.0, environments=environments)
    split = make_blank(ChosenSplit, candidate=candidate)
    drawn = draw_splits([split, split], Limits(leaves=1, environments=2))
    (row,) = drawn.rows
    assert drawn.n_left_out == 1
    assert [row.cell.count(f"<title>{name}:") for name in "abcd"] == [0, 1, 0, 1]
    assert '<circle cx="0%" cy="50%" r="3.5"' in row.cell
    (row,) = draw_splits([split], Limits()).rows
    assert row.cell.count("<circle") == 3


def test_the_largest_splits_of_a_large_tree_are_counted():
    node = make_blank(Node, rate=0.5, is_positive=True)
    nodes = []
    for i in range(8):
        nodes.append(replace(node, depth=i, split=i, n=10 * (8 - i)))
        nodes.append(replace(node, depth=i + 1, leaf=i + 1, n=10))
    nodes.append(replace(node, depth=8, leaf=9, n=10))
    drawn = draw_nodes(nodes, Limits(leaves=4))
    assert drawn.n_left_out == 6
    assert [row.node.split for row in drawn.rows if row.is_cut] == [3]


def test_tolerances_with_the_same_tree_are_one_dot():
    tree = make_blank(TreeAtTolerance, leave=[], is_own=False)
    trees = [
        replace(tree, varies=40, deviance_explained=90, name="plain"),
        replace(tree, varies=20, deviance_explained=60, name="0.3", leave=["code"]),
        replace(tree, varies=20, deviance_explained=60, name="0.1", is_own=True),
        replace(tree, varies=0, deviance_explained=59, name="0.03"),
    ]
    dots = make_path_dots(trees)
    assert [dot.text for dot in dots] == ["plain", "0.3 to 0.1 without code", "0.03"]
    assert [dot.is_own for dot in dots] == [False, True, False]
    assert [(dot.heterogeneity, dot.deviance_explained) for dot in dots] == [
        (40, 90),
        (20, 60),
        (0, 59),
    ]


def test_limits_are_halved_down_to_the_least():
    limits = Limits().halve()
    assert limits == Limits(environments=100, leaves=30, equivalent=6, sets=32, characters=80)
    for _ in range(9):
        limits = limits.halve()
    assert limits == limits.halve() == Limits(4, 4, 2, 4, 40)


@pytest.fixture(scope="module")
def evaluation():
    """Of fifty environments, the k-th with an AUC of 1 - k percent."""
    data = make_conjunction(1_000, 2, n_environments=2, random_state=1)
    learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    content = evaluate(learner, data.X, data.y, environments=data.environments).make_content()
    first = content.environments[0]
    environments = []
    for k in range(50):
        auc = replace(first.scores["auc"], value=1 - k / 100, low=0.4, high=1.0)
        scores = {**first.scores, "auc": auc}
        environments.append(replace(first, environment=f"e{k}", is_new=k == 0, scores=scores))
    return replace(content, environments=environments)


def test_the_worst_and_the_best_of_many_environments_are_drawn(evaluation):
    texts = find_texts(draw_evaluation(evaluation))
    names = [text.split(" (n =")[0] for text in texts if " (n = " in text]
    worst, best = [f"e{k}" for k in range(49, 29, -1)], [f"e{k}" for k in range(19, 0, -1)]
    assert names[:41] == ["all", *worst, *best, "e0 (new)"]


def test_the_five_worst_and_the_five_best_are_listed(evaluation):
    lines = [line.split() for line in render_text(evaluation).splitlines()]
    names = [f"e{k}" for k in range(50)]
    listed = [words[0] for words in lines if words and words[0] in names]
    assert listed == ["e49", "e48", "e47", "e46", "e45", "e4", "e3", "e2", "e1", "e0"]
