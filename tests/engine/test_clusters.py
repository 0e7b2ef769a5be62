"""Sums over the clusters of rows, against loops over the rows themselves."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icscm.engine import _kernels
from icscm.engine.clusters import EVERY_ROW
from icscm.engine.counts import BinnedRule
from icscm.sources.memory import make_memory_source
from support.literal import kernels as literal_kernels

FIRST, SECOND = (BinnedRule(j, np.array([False, True])) for j in range(2))


@st.composite
def grouped_tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_places = draw(st.integers(4, 80)), draw(st.integers(1, 3))
    X = rng.integers(0, 2, (n_rows, 2))
    X[:3] = [0, 0], [1, 1], [0, 1]  # identical columns would be stored once
    groups, places = (
        rng.integers(0, draw(st.integers(1, 20)), n_rows),
        rng.integers(0, n_places, n_rows),
    )
    labels = rng.integers(0, 2, n_rows)
    return X, labels, places, groups, n_places


def sum_literally(X, labels, places, groups, n_places, is_in_leaf):
    """The moments of the rows in a leaf, cluster by cluster."""
    n, p = Counter(), Counter()
    for row in range(len(X)):
        if is_in_leaf(row):
            n[places[row], groups[row]] += 1
            p[places[row], groups[row]] += labels[row]
    moments = np.zeros((n_places, 4), dtype=int)
    for place, group in n:
        size, positive = n[place, group], p[place, group]
        moments[place] += 1, size * size, size * positive, positive * positive
    return moments


def stack(moments):
    """The moments as (leaf, environment, moment)."""
    sums = moments.n_clusters, moments.sum_nn, moments.sum_np, moments.sum_pp
    return np.stack(sums, axis=2)


def make_source(X, labels, places, groups, n_places):
    names = tuple(range(n_places))
    return make_memory_source(X, labels, places, environment_labels=names, groups=groups)


@given(grouped_tables())
def test_moments_of_leaves(case):
    X, *_ = case
    source = make_source(*case)
    found = stack(source.clusters.count_moments((), [EVERY_ROW, FIRST, SECOND]))
    leaves = (lambda row: True), (lambda row: X[row, 0] == 0), (lambda row: X[row, 1] == 0)
    np.testing.assert_array_equal(found, [sum_literally(*case, each) for each in leaves])
    leaves = (lambda row: X[row, 0]), (lambda row: X[row, 0] and X[row, 1] == 0)
    found = stack(source.clusters.count_moments((FIRST,), [EVERY_ROW, SECOND]))
    np.testing.assert_array_equal(found, [sum_literally(*case, each) for each in leaves])


@given(grouped_tables())
def test_moments_of_patterns(case):
    """Patterns are numbered as `count_patterns` does, and joined to parts in any way."""
    X, *_ = case
    source = make_source(*case)
    table = source.count_patterns([FIRST, SECOND])
    assert len(table.patterns) >= 2
    found = source.clusters.count_patterns([FIRST, SECOND])
    for parts in (table.patterns[:, 0].astype(int), np.arange(len(table.patterns))):
        moments = stack(found.count_moments(parts, parts.max() + 1))
        number = {
            tuple(each): part for each, part in zip(table.patterns.tolist(), parts, strict=True)
        }
        of_row = [number[tuple(each)] for each in (X == 1).tolist()]
        for part in range(parts.max() + 1):
            inside = sum_literally(*case, np.equal(of_row, part).__getitem__)
            np.testing.assert_array_equal(moments[part], inside)


@given(grouped_tables())
def test_clusters_go_with_the_rows(case):
    """Of some rows, too: one number for each pair of a group and an environment."""
    X, labels, places, groups, _ = case
    source = make_source(*case)
    rows = np.arange(0, len(X), 2)
    for own, which in ((source, np.arange(len(X))), (source.rows.take(rows), rows)):
        cells = own.rows.list_cells()
        ordered = np.array(which)[np.argsort(source.position[which])]
        np.testing.assert_array_equal(cells.outcomes, labels[ordered])
        np.testing.assert_array_equal(cells.environments, places[ordered])
        codes = own.rows.list_clusters().codes.tolist()
        pairs = {*zip(codes, places[ordered], groups[ordered], strict=True)}
        assert len(pairs) == len({pair[0] for pair in pairs}) == len({pair[1:] for pair in pairs})
        np.testing.assert_array_equal(own.rows.list_groups(), groups[ordered])


@given(grouped_tables(), st.integers(0, 80))
def test_kernel_and_twin(case, n_negative):
    X, _, places, groups, n_places = case
    codes = places * (groups.max() + 1) + groups
    starts = np.arange(n_places + 1) * (groups.max() + 1)
    found = []
    for kernels in (_kernels, literal_kernels):
        n, p = np.full((2, starts[-1]), 7)
        moments = np.ones((4, n_places), dtype=np.int64)
        kernels.count_clusters(X[:, 0] == 1, codes, n_negative, n, p)
        kernels.add_moments(n, p, starts, *moments)
        found.append((n, p, moments))
    for fast, slow in zip(*found, strict=True):
        np.testing.assert_array_equal(fast, slow)
