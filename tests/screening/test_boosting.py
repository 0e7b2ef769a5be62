"""Boosted trees on bins: each kernel equals its twin, and a model what it is made of."""

import inspect

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icscm.screening import _kernels
from icscm.screening.boosting import (
    LEARNING_RATE,
    MIN_ROWS,
    N_TREES,
    BinnedRows,
    BoostedTrees,
    Tree,
    boost,
    rank_levels,
)
from icscm.screening.outcomes import Environments, make_outcome
from support.literal import boosting as literal

bounded = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32)


def test_every_kernel_has_a_twin():
    compiled = {name for name in dir(_kernels) if hasattr(getattr(_kernels, name), "py_func")}
    functions = inspect.getmembers(literal, inspect.isfunction)
    twins = {name for name, function in functions if function.__module__ == literal.__name__}
    assert {name for name in compiled if not name.startswith("_")} == {
        name for name in twins if not name.startswith("_")
    }


# --- growing --------------------------------------------------------------------------------------


@st.composite
def growing_arguments(draw):
    """The arguments of `grow_tree`; sums of these moments are exact, in whatever order."""
    rng = np.random.default_rng(draw(seeds))
    n_rows = draw(st.integers(1, 40))
    n_columns = draw(st.integers(1, 4))
    n_outputs = draw(st.integers(1, 3))
    n_bins = rng.integers(1, draw(st.sampled_from([2, 3, 7])) + 1, n_columns)
    bins = (rng.random((n_columns, n_rows)) * n_bins[:, np.newaxis]).astype(np.uint8)
    if draw(st.booleans()):
        bins[-1] = bins[0]  # two columns gain the same
        n_bins[-1] = n_bins[0]
    gradients = rng.integers(-8, 9, (n_rows, n_outputs)) / 8
    hessians = rng.integers(draw(st.integers(0, 1)), 5, (n_rows, n_outputs)) / 4
    return {
        "bins": bins,
        "moments": np.hstack((gradients, hessians)),
        "n_bins": n_bins,
        "max_leaves": draw(st.integers(1, 7)),
        "min_rows": draw(st.integers(1, 6)),
        "ridge": draw(st.sampled_from([0.5, 1.0])),
        "min_hessian": draw(st.sampled_from([0.001, 1.0])),
        "learning_rate": 0.1,
    }


@bounded
@given(arguments=growing_arguments())
def test_a_tree_is_the_one_that_is_grown_by_trying_everything(arguments):
    fast = _kernels.grow_tree(*arguments.values())
    slow = literal.grow_tree(**arguments)
    for found, expected in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(found, expected)

    column, *_, value, rows, start, stop = fast
    scores = np.zeros((2, len(arguments["moments"]), value.shape[1]))
    _kernels.add_leaf_values(scores[0], column, value, rows, start, stop)
    literal.add_leaf_values(scores[1], column, value, rows, start, stop)
    np.testing.assert_array_equal(*scores)


def test_rows_in_another_order_grow_the_same_tree():
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 6, (3, 200)).astype(np.uint8)
    moments = rng.integers(1, 9, (200, 2)) / 8.0
    options = np.full(3, 6), 8, 5, 1.0, 0.001, 0.1
    order = rng.permutation(200)
    tree = _kernels.grow_tree(bins, moments, *options)[:5]
    shuffled = _kernels.grow_tree(np.ascontiguousarray(bins[:, order]), moments[order], *options)
    for array, other in zip(tree, shuffled[:5], strict=True):
        np.testing.assert_array_equal(array, other)


# --- scoring --------------------------------------------------------------------------------------


def draw_tree(rng, n_columns, n_bins, n_outputs, n_splits):
    """A tree of random splits, also such that send no row one way."""
    column, cut, left, right = [-1], [0], [-1], [-1]
    for _ in range(n_splits):
        leaves = [node for node in range(len(column)) if column[node] < 0]
        node = rng.choice(leaves)
        column[node] = rng.integers(n_columns)
        cut[node] = rng.integers(n_bins)
        left[node], right[node] = len(column), len(column) + 1
        column += [-1, -1]
        cut += [0, 0]
        left += [-1, -1]
        right += [-1, -1]
    value = rng.normal(size=(len(column), n_outputs))
    nodes = (np.array(array, dtype=np.int32) for array in (column, cut, left, right))
    return Tree(*nodes, value)


@st.composite
def models(draw):
    """A model of several trees, with rows to be scored: bins by (column, row)."""
    rng = np.random.default_rng(draw(seeds))
    n_columns, n_bins = draw(st.integers(1, 3)), draw(st.integers(2, 6))
    n_outputs = draw(st.integers(1, 3))
    trees = [
        draw_tree(rng, n_columns, n_bins, n_outputs, draw(st.integers(0, 8)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    ranks = [rng.permutation(n_bins).astype(np.uint8) if rng.random() < 0.5 else None] * n_columns
    bins = rng.integers(0, n_bins, (n_columns, draw(st.integers(1, 20)))).astype(np.uint8)
    return BoostedTrees(trees, ranks), bins, n_bins, rng


@bounded
@given(drawn=models())
def test_scores_are_those_of_the_leaves(drawn):
    model, bins, *_ = drawn
    arranged = model.arrange(bins)
    expected = np.zeros((bins.shape[1], model.trees[0].value.shape[1]))
    for tree in model.trees:
        literal.add_scores(arranged, [0], *tree, expected)
    np.testing.assert_array_equal(model.score(arranged), expected)


@bounded
@given(drawn=models(), n_environments=st.integers(1, 3))
def test_a_contribution_is_the_score_less_the_mean_score_over_all_bins(drawn, n_environments):
    model, bins, n_bins, rng = drawn
    arranged = model.arrange(bins)
    environments = rng.integers(0, n_environments, bins.shape[1])
    shares = rng.dirichlet(np.ones(n_bins), n_environments)
    for column in range(len(bins)):
        found = model.compute_contributions(arranged, environments, column=column, shares=shares)
        rank = model.ranks[column]
        in_order = shares if rank is None else shares[:, np.argsort(rank)]
        cumulative = np.pad(in_order.cumsum(axis=1), ((0, 0), (1, 0)))
        expected = np.zeros_like(found)
        for tree in model.trees:
            literal.add_contributions(
                arranged, environments, column, cumulative, [0], *tree, expected
            )
        np.testing.assert_allclose(found, expected, atol=1e-12)


@bounded
@given(drawn=models())
def test_contributions_by_the_shares_of_the_rows_have_mean_zero_in_a_model_of_one_column(drawn):
    model, bins, n_bins, _ = drawn
    trees = [tree._replace(column=np.minimum(tree.column, 0)) for tree in model.trees]
    model = BoostedTrees(trees, model.ranks)
    shares = np.bincount(bins[0], minlength=n_bins)[np.newaxis] / bins.shape[1]
    environments = np.zeros(bins.shape[1], dtype=np.int64)
    found = model.compute_contributions(model.arrange(bins), environments, column=0, shares=shares)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)


# --- fitting --------------------------------------------------------------------------------------


def bin_evenly(values, n_bins=20):
    ranks = values.argsort().argsort()
    return (ranks * n_bins // len(values)).astype(np.uint8)


def make_rows(columns, is_nominal=None):
    bins = np.stack(columns).astype(np.uint8)
    n_bins = bins.max(axis=1).astype(np.int64) + 1
    nominal = np.zeros(len(bins), dtype=bool) if is_nominal is None else np.array(is_nominal)
    return BinnedRows(bins, n_bins, nominal)


def test_boosting_learns_a_smooth_function_and_not_the_level_of_an_environment():
    """A column that goes with the environment learns nothing of its level."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(3), 400)
    x = rng.normal(size=1200)
    marker = site + 0.1 * rng.normal(size=1200)
    y = np.sin(2 * x) + 5.0 * site + 0.1 * rng.normal(size=1200)
    table = make_rows([bin_evenly(x), bin_evenly(marker)])
    model = boost(make_outcome(y, None, is_number=True), table, Environments(site, 3))
    assert 1 < len(model.trees) <= N_TREES
    scores = model.score(model.arrange(table.bins))[:, 0] * y.std()
    assert np.corrcoef(scores, np.sin(2 * x))[0, 1] > 0.97
    means = [scores[site == number].mean() for number in range(3)]
    assert np.ptp(means) < 0.3


@pytest.mark.parametrize("values", [np.zeros(50), np.arange(50) % 2])
def test_a_table_without_anything_to_split_is_a_model_without_splits(values):
    """Of 50 rows no leaf of 20 gains from values that say nothing, and no tree is fitted again."""
    y = np.repeat([0, 1], 25)
    table = make_rows([np.zeros(50)])
    outcome = make_outcome(y, None, is_number=False)
    model = boost(outcome, table, Environments(values.astype(np.int64), 2))
    assert len(model.trees) == 1
    assert not model.uses(0)
    arranged = model.arrange(table.bins)
    assert np.ptp(model.score(arranged)) == 0
    contributions = model.compute_contributions(
        arranged, values.astype(np.int64), column=0, shares=np.ones((2, 1))
    )
    assert not contributions.any()


def test_leaves_have_enough_rows_and_shrunken_values():
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 50, 300)
    y = (rng.random(300) < bins / 50).astype(np.int64)
    table = make_rows([bins])
    outcome = make_outcome(y, None, is_number=False)
    model = boost(outcome, table, Environments(np.zeros(300, dtype=np.int64), 1))
    tree = model.trees[0]
    arranged = model.arrange(table.bins)
    leaf_of_row = [literal._find_leaf(row, 0, *tree[:4]) for row in arranged]
    leaves, n_rows = np.unique(leaf_of_row, return_counts=True)
    assert len(leaves) > 1
    assert n_rows.min() >= MIN_ROWS
    residuals = y - y.mean()
    variance = y.mean() * (1 - y.mean())
    for leaf, n in zip(leaves, n_rows, strict=True):
        gradient = residuals[leaf_of_row == leaf].sum()
        expected = LEARNING_RATE * gradient / (n * variance + 1.0)
        assert tree.value[leaf, 0] == pytest.approx(expected)


@bounded
@given(seed=seeds)
@example(seed=0)
def test_levels_of_a_category_are_ranked_by_their_mean_gradient(seed):
    """The order of levels is that of their effects, and numbers keep theirs."""
    rng = np.random.default_rng(seed)
    level = np.repeat(np.arange(5), 200)
    effects = rng.permutation(5)
    y = effects[level] + 0.1 * rng.normal(size=1000)
    table = make_rows([level, level], is_nominal=[True, False])
    outcome = make_outcome(y, None, is_number=True)
    ranks = rank_levels(outcome, table, np.zeros((1000, 1)))
    assert ranks[0].tolist() == effects.tolist()
    assert ranks[1] is None


def test_names_of_levels_do_not_matter():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 6, 800)
    y = (rng.random(800) < np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.7])[level]).astype(int)
    outcome = make_outcome(y, None, is_number=False)
    places = Environments(np.zeros(800, dtype=np.int64), 1)
    scores = []
    for renamed in (level, np.array([3, 1, 5, 0, 4, 2])[level]):
        table = make_rows([renamed], is_nominal=[True])
        model = boost(outcome, table, places)
        scores.append(model.score(model.arrange(table.bins)))
    np.testing.assert_allclose(*scores)
