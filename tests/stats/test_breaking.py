"""Which environments break a leaf, held against trying every set of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.stats.criteria import EquivalenceCriterion, PValueCriterion, find_outlier_environments
from icscm.stats.independence import ChiSquaredTest

CRITERION = PValueCriterion(ChiSquaredTest(), 0.05)


def make_leaf(rates, sizes):
    positives = np.round(np.array(rates) * sizes).astype(int)
    return np.stack((np.array(sizes) - positives, positives))


def test_the_odd_ones_are_named_the_oddest_first():
    table = make_leaf([0.2, 0.2, 0.9, 0.2, 0.6, 0.2], [300] * 6)
    assert find_outlier_environments(table, CRITERION) == [2, 4]
    assert find_outlier_environments(table[:, [0, 1, 3]], CRITERION) == []


def test_where_half_would_have_to_go_none_is_odd():
    table = make_leaf([0.2, 0.2, 0.8, 0.8], [300] * 4)
    assert find_outlier_environments(table, CRITERION) is None
    assert find_outlier_environments(make_leaf([0.2, 0.8], [300] * 2), CRITERION) is None


def test_environments_without_samples_do_not_count():
    """By equivalence an environment without a sample has not been shown to be like the others."""
    table = make_leaf([0.2, 0.2, 0.9, 0.0], [3000, 3000, 3000, 0])
    assert find_outlier_environments(table, CRITERION) == [2]
    assert find_outlier_environments(table, EquivalenceCriterion(0.05, 0.05)) == [2]


def test_many_environments_take_little():
    """Only those that stand out are tried, and the odd one among thousands is found."""
    rates = np.full(3_000, 0.3)
    rates[1_234] = 0.9
    assert find_outlier_environments(make_leaf(rates, np.full(3_000, 2_000)), CRITERION) == [1_234]


@pytest.mark.parametrize("criterion", [CRITERION, EquivalenceCriterion(0.05, 0.2)])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_left_passes_and_one_alone_is_the_best_one(criterion, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 400, 6)
    table = rng.binomial(sizes, rng.choice([0.3, 0.35, 0.6], 6, p=[0.5, 0.3, 0.2]))
    table = np.stack((sizes - table, table))
    found = find_outlier_environments(table, criterion)
    if found is None:
        return
    left = [k for k in range(6) if k not in found]
    assert criterion.find_accepted(table[np.newaxis][..., left])[0]
    assert len(found) < len(left)
    if found:  # what passed sooner would have ended the search
        before = [k for k in range(6) if k not in found[:-1]]
        assert not criterion.find_accepted(table[np.newaxis][..., before])[0]


@pytest.mark.parametrize("seed", range(30))
def test_a_single_odd_one_is_found_whenever_there_is_one(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(50, 500, 7)
    rates = np.full(7, 0.4)
    odd = int(rng.integers(7))
    rates[odd] = 0.95
    positives = rng.binomial(sizes, rates)
    table = np.stack((sizes - positives, positives))
    passing = [
        out
        for out in itertools.chain([()], itertools.combinations(range(7), 1))
        if CRITERION.find_accepted(table[np.newaxis][..., [k for k in range(7) if k not in out]])[0]
    ]
    found = find_outlier_environments(table, CRITERION)
    if passing:
        assert tuple(found) in passing
