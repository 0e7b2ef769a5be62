"""Columns and levels that give the environment away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association

from icscm.screening.giveaways import (
    compute_cramers_v,
    determines_environment,
    find_giveaways,
    find_lone_bins,
    pool_lone_levels,
)
from support.screened import make_screened_table

SITES = np.repeat(np.arange(4), 50)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([[50, 0], [50, 0], [0, 50]], True, id="constant within environments"),
        pytest.param([[50, 0], [50, 0], [30, 20]], True, id="varies in one only"),
        pytest.param([[30, 20], [50, 0]], False, id="two environments, one varies"),
        pytest.param([[50, 0], [0, 50]], True, id="two environments, a function"),
        pytest.param([[50, 0], [50, 0], [50, 0]], False, id="constant"),
        pytest.param([[30, 20], [40, 10], [50, 0]], False, id="varies in two"),
        pytest.param([[20, 30, 0, 0], [0, 0, 10, 40]], True, id="each bin in one environment"),
        pytest.param([[20, 30, 0, 0], [0, 0, 10, 40], [1, 0, 9, 9]], False, id="two bins in two"),
        pytest.param([[999, 1], [1, 999]], True, id="but for one row in a hundred"),
        pytest.param([[980, 20], [20, 980]], False, id="but for one row in fifty"),
        pytest.param([[40, 0, 2], [0, 40, 2], [0, 0, 0]], True, id="small bins do not count"),
        pytest.param([[4, 0], [0, 0], [0, 0]], False, id="one environment has rows"),
    ],
)
def test_what_determines_the_environment(counts, expected):
    assert determines_environment(np.array(counts)) is expected


def test_lone_bins_have_five_rows_nearly_all_in_one_environment():
    counts = np.array([[5, 4, 0, 99, 98], [0, 0, 6, 1, 2]])
    assert find_lone_bins(counts).tolist() == [0, 2, 3]


def test_cramers_v_is_one_for_a_function_of_the_environment_and_zero_if_independent():
    table = make_screened_table([SITES, SITES // 2, np.arange(200) % 2], SITES)
    assert compute_cramers_v(table.count_bins(0)) == pytest.approx(1.0)
    assert compute_cramers_v(table.count_bins(1)) == pytest.approx(1.0)
    assert compute_cramers_v(table.count_bins(2)) == pytest.approx(0.0)
    assert compute_cramers_v(np.array([[3, 0], [4, 0]])) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 30), min_size=3, max_size=3), min_size=2, max_size=5))
def test_cramers_v_is_that_of_scipy(counts):
    counts = np.array(counts)
    assert compute_cramers_v(counts) == pytest.approx(association(counts, method="cramer"))


def test_giveaways_of_a_table():
    rng = np.random.default_rng(0)
    nearly = np.where(rng.random(200) < 0.03, rng.integers(0, 4, 200), SITES)
    level = np.where((SITES < 2) & (rng.random(200) < 0.5), SITES + 2, rng.integers(0, 2, 200))
    table = make_screened_table(
        [SITES, nearly, level, level, rng.integers(0, 2, 200)],
        SITES,
        is_nominal=[True, False, True, False, False],
    )
    found = find_giveaways(table)
    assert found.determining == [0]
    assert found.nearly == [1]
    assert found.pooled_levels == {2: [2, 3]}  # of numbers no level is pooled

    pooled = pool_lone_levels(table, found.pooled_levels)
    assert np.array_equal(pooled.columns.bins[2], np.minimum(level, 2))
    assert find_giveaways(pooled).pooled_levels == {}
    assert np.array_equal(table.columns.bins[2], level)  # the table itself stays as it was
    assert pool_lone_levels(table, {}) is table


def test_one_environment_has_nothing_to_give_away():
    table = make_screened_table([SITES], np.zeros(200), is_nominal=[True])
    found = find_giveaways(table)
    assert found.determining == []
    assert found.nearly == []
