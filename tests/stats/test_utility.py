"""Utilities: exact, and in order however large or small p is."""

from fractions import Fraction

import numpy as np
import pytest

from icscm.engine.counts import ORDERED
from icscm.engine.leaf_tables import LeafTables, make_utility

LEAVES = np.array([[[a], [b]] for a in range(1, 30) for b in range(30)])


def rank(p, weights=None, n_samples=1000):
    """The comparable utilities of all leaves, each of a feature of its own."""
    tables = LeafTables(np.arange(len(LEAVES)), ORDERED, (False,), (False,), LEAVES)
    return make_utility(p, weights, n_samples).weigh(tables, n_samples, 1).utility


def compute_exactly(p):
    return [Fraction(int(a)) - Fraction(p) * int(b) for a, b in LEAVES[:, :, 0]]


@pytest.mark.parametrize("p", ["0.1", "0.3", "1", "2.5", "1e-7", "12345.678", "1e300", "1e-300"])
@pytest.mark.parametrize("n_samples", [60, 10**6, 10**10])
def test_order_and_ties_are_those_of_exact_numbers(p, n_samples):
    exact = compute_exactly(p)
    order = {value: number for number, value in enumerate(sorted(set(exact)))}
    found = np.unique(rank(float(p), n_samples=n_samples), return_inverse=True)[1]
    assert found.tolist() == [order[value] for value in exact]


def test_a_third_is_a_third():
    third = make_utility(1 / 3, None, 100)
    assert third.ratio == Fraction(1, 3)
    assert third.compute(np.array([[1], [3]]), 0) == 0.0
    assert make_utility(np.float32(0.1), None, 100).ratio == Fraction(1, 10)
    assert make_utility(0.1, None, 100).compute(np.array([[9], [81]]), 0) == 0.9
    assert make_utility(1e-300, None, 100).compute(np.array([[0], [5]]), 0) == -5e-300


def test_nothing_overflows():
    """With billions of samples p may be rounded, but no utility wraps round."""
    for p in (1e-30, 0.123456789123, 1.0, 98765.4321, 1e30):
        ratio = make_utility(p, None, 9 * 10**9).ratio
        assert max(ratio.as_integer_ratio()) * 9 * 10**9 < 2**63


def test_weights_do_not_round_ties_away():
    """0.3 * 3 is below 0.1 * 9 in floats, and -7 / 0.7 below -1 / 0.1 by a digit or equal."""
    weights = np.full(len(LEAVES), 1.0)
    places = {tuple(leaf[:, 0]): i for i, leaf in enumerate(LEAVES)}
    weights[places[3, 0]], weights[places[9, 0]] = 0.3, 0.1
    weights[places[1, 8]], weights[places[1, 2]] = 0.7, 0.1
    found = rank(1.0, weights)
    assert found[places[3, 0]] == found[places[9, 0]]
    assert found[places[1, 8]] == found[places[1, 2]]
    assert found[places[3, 1]] > found[places[3, 0]]


def test_a_weight_of_zero_is_no_candidate():
    weights = np.ones(len(LEAVES))
    weights[7] = 0.0
    tables = LeafTables(np.arange(len(LEAVES)), ORDERED, (False,), (False,), LEAVES)
    worth = make_utility(1.0, weights, 1000).weigh(tables, 1000, 20)
    assert not worth.is_candidate[7]
    assert not worth.is_small[7]
    assert worth.is_candidate.sum() == len(LEAVES) - 1


def test_utility_of_one_leaf_with_a_weight():
    """A weight multiplies a gain and divides a loss; 0 and a weight of 0 are left alone."""
    weights = np.array([0.5, 2.0, 0.0])
    gain, loss, even = np.array([[4, 3], [1, 1]]), np.array([[1, 0], [2, 2]]), np.ones((2, 2))
    found = make_utility(1.0, weights, 100)
    assert [found.compute(gain, feature) for feature in range(3)] == [2.5, 10.0, 5.0]
    assert [found.compute(loss, feature) for feature in range(3)] == [-6.0, -1.5, -3.0]
    assert [found.compute(even.astype(int), feature) for feature in range(3)] == [0.0] * 3


def test_weighted_utilities_are_gains_times_and_losses_by_the_weight():
    weights = np.random.default_rng(0).choice([0.25, 0.5, 1.0, 3.0], len(LEAVES))
    gains = LEAVES[:, 0, 0] - 2.0 * LEAVES[:, 1, 0]
    wanted = np.where(gains >= 0, gains * weights, gains / weights)
    np.testing.assert_allclose(rank(2.0, weights) / 2**40, wanted, rtol=1e-11)


@pytest.mark.parametrize(
    ("p", "n_samples", "ratio"),
    [
        (0.1, 1000, Fraction(1, 10)),
        (0.001, 1000, Fraction(1, 1000)),
        (1e-5, 1000, Fraction(1, 1001)),  # as good as: below one over the number of samples
        (1e5, 1000, Fraction(1001)),
        (1001.0, 1000, Fraction(1001)),
        (0.1234567891, 10, Fraction("0.1234567891").limit_denominator(10**9)),
        (1e-30, 2**40, Fraction(1, 2**62 // (2**40 + 1))),
        (1e30, 2**40, Fraction(2**62 // (2**40 + 1))),
    ],
)
def test_ratio(p, n_samples, ratio):
    found = make_utility(p, None, n_samples)
    assert found.ratio == ratio
    assert abs(found.p - Fraction(str(p))) < Fraction(1, 10**9)


def test_what_is_a_candidate_and_what_is_small():
    tables = np.array([[[0], [5]], [[1], [0]], [[3], [2]], [[5], [4]], [[6], [4]]])
    leaves = LeafTables(np.arange(5), ORDERED, (False,), (False,), tables)
    worth = make_utility(2.5, None, 10).weigh(leaves, 10, 2)
    assert worth.is_candidate.tolist() == [False, True, True, True, False]
    assert worth.is_small.tolist() == [False, True, False, True, False]
    assert worth.margin.tolist() == [-5, 1, 1, 1, 2]
    assert worth.utility.tolist() == [-25, 2, -4, -10, -8]


def test_a_weight_below_one_makes_a_gain_smaller_and_a_loss_larger():
    """Features of weight 0 are no candidates; every other weight leaves them what they are."""
    weights = np.full(len(LEAVES), 0.5)
    weights[::7] = 0.0
    tables = LeafTables(np.arange(len(LEAVES)), ORDERED, (False,), (False,), LEAVES)
    plain = make_utility(1.0, np.ones(len(LEAVES)), 1000).weigh(tables, 1000, 1)
    found = make_utility(1.0, weights, 1000).weigh(tables, 1000, 1)
    assert plain.is_candidate.all()
    assert (found.is_candidate == (weights > 0)).all()
    kept = weights > 0
    gain, loss = plain.utility[kept] > 0, plain.utility[kept] < 0
    assert np.allclose(found.utility[kept][gain], plain.utility[kept][gain] / 2)
    assert np.allclose(found.utility[kept][loss], plain.utility[kept][loss] * 2)
    assert not found.is_small[~kept].any()
