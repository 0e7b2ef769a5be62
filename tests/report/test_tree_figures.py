"""Trees as figures."""

import pytest

from icscm import InvariantTreeClassifier
from icscm.drawing.shapes import Role
from icscm.exceptions import IcscmError
from icscm.report.figures import draw_model
from support.drawings import find_boxes, find_dots, find_texts, parse
from support.reports import HOSTILE, fit, fit_large_tree, fit_tree, make_sites, report_on_tree


@pytest.fixture(scope="module")
def tree():
    return fit_tree()


@pytest.fixture(scope="module")
def figure(tree):
    return draw_model(tree, target="ill")


def test_splits_leaves_and_rates_are_drawn(tree, figure):
    texts = find_texts(figure)
    for rule in tree.model_.rules:
        assert f"{rule}?" in texts
    for number, is_positive in enumerate(tree.model_.leaf_verdicts, start=1):
        sign = "+" if is_positive else "\N{MINUS SIGN}"
        assert f"{number}: {sign} ill = {is_positive}" in texts
    assert texts.count("yes") == texts.count("no") == len(tree.model_.splits)
    assert texts.count("site 2") == len(tree.model_.leaves)
    for leaf in report_on_tree().to_dict()["leaves"]:
        assert f"leaf {leaf['number']}, {leaf['condition']}: " in figure.description


def test_a_box_for_each_node_and_a_dot_for_each_rate(tree, figure):
    assert len(find_boxes(figure)) == 2 * len(tree.model_.leaves) - 1
    assert len(find_dots(figure)) == sum(len(verdict.rates) for verdict in tree.verdicts_)


def test_orders_of_environments(tree):
    assert find_dots(tree.plot(order="size"))
    with pytest.raises(IcscmError, match="order"):
        tree.plot(order="age")


def test_a_tree_without_a_split_and_one_of_hostile_names():
    X, y, site = make_sites(1_000)
    flat = fit(InvariantTreeClassifier(), X[["code"]], y, site)
    assert not flat.model_.splits
    parse(draw_model(flat))
    names = dict(zip(X, HOSTILE[2:], strict=False))
    small = InvariantTreeClassifier(max_leaves=3)
    parse(draw_model(fit(small, X.rename(columns=names), y, site)))
    parse(draw_model(fit(small, X, y)))


def test_a_large_tree_is_written_leaf_by_leaf():
    figure = draw_model(fit_large_tree(42))
    texts = find_texts(figure, Role.STRONG_NAME)
    assert sum(", n = " in text for text in texts) == 42
    assert "yes" not in find_texts(figure)
