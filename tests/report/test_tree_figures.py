"""Trees and their paths as figures."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from icscm import InvariantTreeClassifier
from icscm.exceptions import IcscmError
from icscm.report import figures
from icscm.report.figures import _place_nodes, draw_model
from support.reports import HOSTILE, fit, fit_large_tree, fit_tree, make_sites, report_on_tree

mpl.use("Agg")


@pytest.fixture(scope="module")
def tree():
    return fit_tree()


def find_texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def draw(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


@pytest.fixture(scope="module")
def figure(tree):
    """The tree, and its pixels as `figure.pixels`."""
    figure = draw_model(tree, target="ill")
    figure.pixels = draw(figure)
    return figure


def test_splits_leaves_and_rates_are_drawn(tree, figure):
    assert figure.pixels.std() > 5
    texts = find_texts(figure)
    for rule in tree.model_.rules:
        assert f"{rule}?" in texts
    for number, is_positive in enumerate(tree.model_.leaf_verdicts, start=1):
        sign = "+" if is_positive else "\N{MINUS SIGN}"
        assert f"{number}: {sign} ill = {is_positive}" in texts
    assert texts.count("yes") == texts.count("no") == len(tree.model_.splits)
    assert texts.count("site 2") == len(tree.model_.leaves)
    for leaf in report_on_tree().to_dict()["leaves"]:
        assert f"leaf {leaf['number']}, {leaf['condition']}: " in figure.get_label()


def test_dots_stand_at_the_rates(tree, figure):
    _, plot = figure.axes
    dots = [line.get_xdata()[0] for line in plot.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([rate for verdict in tree.verdicts_ for rate in verdict.rates])


def test_children_are_to_the_right_of_a_split_and_below_it(tree):
    nodes = report_on_tree().to_dict()["nodes"]["walk"]
    placed = _place_nodes(nodes)
    assert [node["row"] for node in placed if node["leaf"]] == [
        i + 0.5 for i in range(len(tree.model_.leaves))
    ]
    for node in placed[1:]:
        parent = node["parent"]
        assert (node["row"] == parent["row"]) == node["is_first"]
        assert node["x"] > parent["x"]
        assert node["row"] >= parent["row"]


def test_boxes_do_not_overlap(tree, figure):
    from matplotlib.patches import FancyBboxPatch

    axes, _ = figure.axes
    boxes = [patch.get_window_extent() for patch in axes.findobj(FancyBboxPatch)]
    assert len(boxes) == 2 * len(tree.model_.leaves) - 1
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i])


def test_many_dots_share_a_row(tree, figure, monkeypatch):
    """Sixteen leaves of fifteen environments were 28 inches tall, most of it empty."""
    loose = figure.get_figheight()
    monkeypatch.setattr(figures, "_MAX_DOTS", 1)
    packed = draw_model(tree)
    n_leaves = len(tree.model_.leaves)
    assert packed.get_figheight() < min(loose, n_leaves + 1)
    texts = find_texts(packed)
    for end in ("lowest: ", "highest: "):
        assert sum(text.startswith(end) for text in texts) == n_leaves
    assert "95% interval" not in packed.axes[1].get_xlabel()


def test_plot_is_one_of_pyplots_and_knows_orders(tree):
    figure = tree.plot(order="size")
    assert pyplot.fignum_exists(figure.number)
    pyplot.close(figure)
    with pytest.raises(IcscmError, match="order"):
        tree.plot(order="age")


def test_within_given_axes_text_shrinks(tree):
    host, axes = pyplot.subplots(figsize=(4, 3))
    assert tree.plot(axes) is host
    assert max(text.get_fontsize() for each in axes.child_axes for text in each.texts) < 6
    pyplot.close(host)


def test_a_tree_without_a_split_and_one_of_hostile_names():
    X, y, site = make_sites(1_000)
    flat = fit(InvariantTreeClassifier(), X[["code"]], y, site)
    assert not flat.model_.splits
    draw(draw_model(flat))
    names = dict(zip(X, HOSTILE[2:], strict=False))
    small = InvariantTreeClassifier(max_leaves=3)
    draw(draw_model(fit(small, X.rename(columns=names), y, site)))
    draw(draw_model(fit(small, X, y)))


def test_a_large_tree_is_told_leaf_by_leaf():
    figure = draw_model(fit_large_tree(42))
    texts = find_texts(figure)
    assert sum(", n = " in text for text in texts) == 42
    assert "yes" not in texts
