"""The table of the screen: bins of a source in the order of the user's rows."""

import numpy as np
import pandas as pd
import pytest

from icscm.screening.screened_table import MAX_BINS, find_clusters, read_table
from icscm.sources.columns import open_columns
from support.screened import make_screened_table

RNG = np.random.default_rng(0)
N = 400
SITES = RNG.choice(["north", "east", "south"], N)
X = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 7, RNG.normal(size=N), np.nan),
        "job": RNG.choice(["clerk", "nurse", "smith"], N),
        "constant": np.ones(N),
    }
)


@pytest.fixture(scope="module")
def opened():
    return open_columns(
        X, environments=SITES, groups=np.arange(N) // 4, max_thresholds=20, n_jobs=1
    )


@pytest.fixture(scope="module")
def table(opened):
    return read_table(opened.source, names=list(X), groups=opened.groups, is_weighted=False)


def test_rows_are_in_the_order_of_the_table(opened, table):
    assert (np.array(opened.source.environments)[table.places.numbers] == SITES).all()
    assert (table.n_rows, table.n_columns) == (N, 3)
    age = table.columns.bins[0]
    assert table.has_missing.tolist() == [True, False, False]
    assert np.array_equal(age == 0, X["age"].isna())
    present = X["age"].notna().to_numpy()
    by_age = age[present][np.argsort(X["age"][present])].astype(int)
    assert (np.diff(by_age) >= 0).all()
    assert table.columns.n_bins[0] == 22  # missing, and 20 thresholds
    assert table.columns.is_nominal.tolist() == [False, True, False]
    assert pd.crosstab(table.columns.bins[1], X["job"]).astype(bool).sum().sum() == 3
    assert table.columns.n_bins[2] == 1


def test_counts_and_shares_are_those_of_a_loop(table):
    counts = np.zeros_like(table.count_bins(1))
    for place, number in zip(table.places.numbers, table.columns.bins[1], strict=True):
        counts[place, number] += 1
    assert np.array_equal(table.count_bins(1), counts)
    shares = table.compute_shares(1)
    np.testing.assert_allclose(shares, counts / counts.sum(axis=1, keepdims=True))
    empty = make_screened_table([[0, 1]], [0, 0], count=2)
    assert empty.compute_shares(0).tolist() == [[0.5, 0.5], [0, 0]]


def test_some_rows(table):
    """Clusters are numbered in the order of these rows, so that no other order matters."""
    rows = np.array([7, 3, 399, 7])
    part = table.take(rows)
    assert np.array_equal(part.columns.bins, table.columns.bins[:, rows])
    assert np.array_equal(part.places.numbers, table.places.numbers[rows])
    assert part.clusters.numbers.tolist() == [0, 1, 2, 0]
    assert np.array_equal(
        part.clusters.environments[part.clusters.numbers],
        table.clusters.environments[table.clusters.numbers[rows]],
    )
    assert np.array_equal(part.columns.n_bins, table.columns.n_bins)


def test_a_group_in_two_environments_makes_two_clusters():
    table = make_screened_table([[0, 0, 0, 0, 0]], [0, 0, 1, 1, 1])
    clusters = find_clusters(np.array([0, 1, 0, 0, 2]), table.places)
    assert clusters.numbers.tolist() == [0, 1, 2, 2, 3]
    assert clusters.environments.tolist() == [0, 0, 1, 1]


def test_a_category_of_very_many_levels_has_at_most_256_bins():
    levels = pd.DataFrame({"code": np.array([f"c{k:03}" for k in np.arange(1200) % 600])})
    opened = open_columns(
        levels, environments=np.arange(1200) % 3, groups=None, max_thresholds=None, n_jobs=1
    )
    table = read_table(opened.source, names=["code"], groups=None, is_weighted=False)
    assert table.columns.n_bins[0] == MAX_BINS
    assert table.columns.bins[0].max() == MAX_BINS - 1


def test_columns_that_cannot_be_binned_are_named():
    odd = X.assign(
        empty=np.nan,
        none=pd.Series([None] * N, dtype=object),
        seen=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), "D"),
    )
    opened = open_columns(odd, environments=SITES, groups=None, max_thresholds=20, n_jobs=1)
    assert opened.empty_columns == [3, 4]
    assert opened.date_columns == [5]
