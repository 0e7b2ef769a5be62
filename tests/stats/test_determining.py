"""What determines the environment, by counts (column, bin, environment)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.contingency import association

from icscm.stats.giveaways import (
    compute_chance_of_constancy,
    compute_cramers_v,
    find_determining,
    find_giveaways,
    find_lone_bins,
)
from support.literal.giveaways import determines_environment


def stack(counts):
    """Make the counts of a single column, from lists by (environment, bin)."""
    return np.array(counts).T[np.newaxis]


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
        pytest.param([[5, 0], [0, 5]], True, id="few rows, two levels"),
        pytest.param([[2, 0], [0, 2]], False, id="too few rows to tell"),
    ],
)
def test_what_determines_the_environment(counts, expected):
    assert find_determining(stack(counts)).tolist() == [expected]
    assert determines_environment(stack(counts)[0]) is expected


def test_a_column_that_small_environments_happen_not_to_vary_in_is_kept():
    """A level of one row in ten was rejected where two other environments had three rows each."""
    counts = [[900, 100], [3, 0], [3, 0]]
    assert not find_determining(stack(counts)).any()
    assert compute_chance_of_constancy(stack(counts))[0] == pytest.approx(0.54, abs=0.02)

    # the same environments, each of a thousand rows, would have shown it
    assert find_determining(stack([[900, 100], [1000, 0], [1000, 0]])).all()


def test_a_rare_level_is_no_giveaway():
    """A gene in one genome of a thousand varies in one environment only, as it must."""
    assert not find_determining(stack([[332, 1], [333, 0], [334, 0]])).any()
    assert find_determining(stack([[313, 20], [333, 0], [334, 0]])).all()


def test_bins_that_lie_in_the_same_environment_tell_it_from_no_other():
    """With 99 % of the rows in one environment every bin lies there, and nothing is told."""
    assert not find_determining(stack([[495, 495], [5, 5]])).any()


def test_two_levels_of_five_rows_do_not_speak_for_a_column_of_rare_levels():
    """Two levels of five rows lay in an environment each; 140 other rows had levels of their own.

    A column is judged by most of its rows.
    """
    rare = np.ones(70, dtype=int)
    first = [5, 0, *rare, *(0 * rare)]
    second = [0, 5, *(0 * rare), *rare]
    assert not find_determining(stack([first, second, [0, 0, *rare, *rare]])).any()


def test_numbers_whose_ranges_do_not_overlap_determine_the_environment():
    """Children at one hospital, adults at the other: no age is at both."""
    ages = [[20, 20, 20, 0, 0, 0], [0, 0, 0, 30, 30, 30]]
    assert find_determining(stack(ages)).all()
    overlapping = [[20, 20, 20, 3, 0, 0], [0, 0, 0, 30, 30, 30]]
    assert not find_determining(stack(overlapping)).any()


@st.composite
def draw_counts(draw):
    """Draw counts of a few columns of few bins, in which environments are often constant."""
    n_bins = draw(st.integers(1, 4))
    n_environments = draw(st.integers(1, 4))
    cell = st.one_of(st.just(0), st.integers(0, 6), st.integers(0, 500))
    column = st.lists(
        st.lists(cell, min_size=n_environments, max_size=n_environments),
        min_size=n_bins,
        max_size=n_bins,
    )
    return np.array(draw(st.lists(column, min_size=1, max_size=4)))


@given(draw_counts())
def test_all_columns_at_once_are_judged_as_one_by_one(counts):
    expected = [determines_environment(column) for column in counts]
    assert find_determining(counts).tolist() == expected


@given(draw_counts(), st.randoms(use_true_random=False))
def test_neither_the_order_of_environments_nor_that_of_bins_matters(counts, random):
    bins = random.sample(range(counts.shape[1]), counts.shape[1])
    environments = random.sample(range(counts.shape[2]), counts.shape[2])
    shuffled = counts[:, bins][:, :, environments]
    assert np.array_equal(find_determining(shuffled), find_determining(counts))


def test_lone_bins_have_five_rows_nearly_all_in_one_environment():
    counts = np.array([[5, 4, 0, 99, 98], [0, 0, 6, 1, 2]]).T
    assert np.flatnonzero(find_lone_bins(counts)).tolist() == [0, 2, 3]


@given(st.lists(st.lists(st.integers(1, 30), min_size=3, max_size=3), min_size=2, max_size=5))
def test_cramers_v_is_that_of_scipy(counts):
    expected = association(np.array(counts), method="cramer")
    # the sum of squares loses half of the digits of a V near 0
    assert compute_cramers_v(stack(counts))[0] == pytest.approx(expected, abs=1e-7)


def test_cramers_v_is_one_for_a_function_and_zero_if_there_is_nothing_to_compare():
    assert compute_cramers_v(stack([[50, 0], [50, 0], [0, 50]]))[0] == pytest.approx(1.0)
    assert compute_cramers_v(stack([[25, 25], [25, 25]]))[0] == pytest.approx(0.0)
    assert compute_cramers_v(stack([[3, 0], [4, 0]]))[0] == 0.0


def test_a_column_determines_the_environment_or_nearly_does_but_not_both():
    site = [[500, 0, 0], [0, 500, 0], [0, 0, 500]]
    nearly = [[480, 10, 10], [10, 480, 10], [10, 10, 480]]
    unrelated = [[200, 150, 150], [200, 150, 150], [200, 150, 150]]
    counts = np.concatenate([stack(site), stack(nearly), stack(unrelated)])
    giveaways = find_giveaways(counts)
    assert giveaways.is_determining.tolist() == [True, False, False]
    assert giveaways.is_nearly_determining.tolist() == [False, True, False]
