"""In how many environments a cut or a column informs, of those where it could."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.stats.replication import (
    count_effective,
    find_effective_bounds,
    find_lone_environment,
    find_replicated,
    measure_columns,
    measure_replication,
)
from support.literal.learner import is_replicated

bounded = settings(max_examples=100, deadline=None)


def draw_cuts(seed, n_environments, most=40, n_cuts=6):
    """Samples (label, environment), some environments without cases, and leaves in them."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, most, (2, n_environments))
    samples[:, rng.random(n_environments) < 0.2] = 0
    samples[1, rng.random(n_environments) < 0.2] = 0
    leaves = rng.integers(0, samples + 1, (n_cuts, 2, n_environments))
    leaves[rng.random((n_cuts, 2, n_environments)) < 0.3] = 0
    return leaves, samples


@pytest.mark.parametrize("least", [0.1, 0.25, 0.5, 1.0])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_environments=st.integers(1, 6))
def test_cuts_are_replicated_as_the_literal_twin_says(least, seed, n_environments):
    leaves, samples = draw_cuts(seed, n_environments)
    places = np.repeat(np.tile(np.arange(n_environments), 2), samples.ravel()).tolist()
    y = np.repeat([0, 1], samples.sum(axis=1)).tolist()
    starts = np.concatenate(([0], np.cumsum(samples.ravel())))[:-1]
    found = find_replicated(leaves, samples, least).tolist()
    for leaf, is_found in zip(leaves, found, strict=True):
        cells = zip(starts, leaf.ravel(), strict=True)
        rows = {int(i) for start, n in cells for i in range(start, start + n)}
        if 0 < len(rows) < len(y):  # a leaf of all samples, or of none, is no candidate
            assert is_found == is_replicated(rows, set(range(len(y))), y, places, least)


@bounded
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_a_column_of_two_values_is_a_cut(seed, n_environments):
    """One definition: for columns of two bins both functions give the same."""
    leaves, samples = draw_cuts(seed, n_environments)
    bins = np.stack((leaves, samples - leaves), axis=1)
    n, rate = bins.sum(axis=2), samples[1] / np.maximum(samples.sum(axis=0), 1)
    sums = np.stack((bins[:, :, 1] - n * rate, n * (rate * (1 - rate))), axis=2)
    measured = measure_columns(sums[:, :, 0], sums[:, :, 1])
    found, wanted = measured.replication, measure_replication(leaves, samples)
    has_effect = measured.deviance > 1e-6  # without one a column informs nowhere
    np.testing.assert_allclose(found[has_effect], wanted[has_effect], atol=2e-4)


@pytest.mark.parametrize("least", [0.0, 1e-9, 0.25, 1 / 3, 1])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_environments=st.integers(2, 40))
def test_a_source_is_sure_only_where_the_search_agrees(least, seed, n_environments):
    leaves, samples = draw_cuts(seed, n_environments, most=1000, n_cuts=40)
    below, enough = find_effective_bounds(samples, least)
    sizes, all_sizes = leaves.sum(axis=1), samples.sum(axis=0)
    factors = samples.prod(axis=0) / np.maximum(all_sizes, 1.0) ** 3
    effective = count_effective(sizes * (all_sizes - sizes) * factors)
    replicated = find_replicated(leaves, samples, least)
    assert replicated[effective >= enough].all()
    assert not replicated[effective < below].any()


def test_a_remnant_of_one_centre_is_not_replicated_and_a_cause_is():
    """A leaf of 116 genomes of one continent and 6 of the other came first on a real table: it
    passed every test, because there was nothing to compare."""
    in_play = np.array([[400, 300], [350, 280]])
    remnant, cause = [[50, 2], [66, 4]], [[80, 50], [20, 12]]
    tables = np.array([remnant, cause])
    assert find_replicated(tables, in_play, 0.25).tolist() == [False, True]
    assert find_replicated(tables, in_play, 0.0).all()
    assert find_replicated(in_play - tables, in_play, 0.25).tolist() == [False, True]


def test_the_effective_number_of_environments():
    weights = np.array([[10.0, 10.0, 10.0, 0.0], [0.0] * 4])
    assert count_effective(weights) == pytest.approx([3.0, 1.0])


def test_the_environment_that_has_all_information():
    assert find_lone_environment(np.array([[50, 900, 90], [50, 1, 0]])) == 0
    assert find_lone_environment(np.array([[50, 900, 90], [50, 20, 0]])) is None
    assert find_lone_environment(np.array([[50, 90], [0, 0]])) is None  # no cases anywhere


def test_two_bins_are_replicated_as_issue_22_defines_it():
    """w_e = h1 h0 / (h1 + h0) against w*_e = h_e pi (1 - pi), for a column of two values."""
    h1, h = np.array([5.0, 1.0, 20.0, 0.0]), np.array([50.0, 40.0, 60.0, 30.0])
    sums = np.stack((np.stack((-h1, h - h1)), np.stack((h1, h1))), axis=1)[np.newaxis].copy()
    sums[0, 0, 1] = h - h1

    def count(w):
        return w.sum() ** 2 / (w**2).sum()

    pi = h1.sum() / h.sum()
    expected = (count(h1 * (h - h1) / h) - 1) / (count(h * pi * (1 - pi)) - 1)
    assert measure_columns(sums[:, :, 0], sums[:, :, 1]).replication[0] == pytest.approx(expected)


def test_environments_without_cases_do_not_count_against_a_column():
    sums = np.zeros((1, 2, 2, 5))
    sums[0, :, 1, :2] = [[20.0, 25.0], [8.0, 9.0]]  # three more environments have no cases
    sums[0, :, 0, :2] = [[-5.0, -6.0], [5.0, 6.0]]
    assert measure_columns(sums[:, :, 0], sums[:, :, 1]).replication[0] > 0.9
    sums[0, 0, 1, 2:] = 30.0  # these could have shown it
    assert measure_columns(sums[:, :, 0], sums[:, :, 1]).replication[0] < 0.5


def test_one_environment_with_all_information_cannot_be_judged():
    sums = np.zeros((1, 2, 2, 3))
    sums[0, :, 1] = [[30.0, 0.1, 0.1], [10.0, 0.1, 0.0]]
    sums[0, :, 0, 0] = [-4.0, 4.0]
    assert np.isnan(measure_columns(sums[:, :, 0], sums[:, :, 1]).replication[0])
