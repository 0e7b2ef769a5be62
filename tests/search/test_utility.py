"""Utilities: exact, and in order however large or small p is."""

from fractions import Fraction

import numpy as np
import pytest

from icscm.search.utility import make_utility

LEAVES = np.array([[[a], [b]] for a in range(1, 30) for b in range(30)])


def rank(p, n_rows=1000):
    """The comparable utilities of all leaves."""
    return make_utility(p, n_rows=n_rows).measure(LEAVES, n_rows=n_rows).utilities


def compute_exactly(p):
    return [Fraction(int(a)) - Fraction(p) * int(b) for a, b in LEAVES[:, :, 0]]


@pytest.mark.parametrize("p", ["0.1", "0.3", "1", "2.5", "1e-7", "12345.678", "1e300", "1e-300"])
@pytest.mark.parametrize("n_samples", [60, 10**6, 10**10])
def test_order_and_ties_are_those_of_exact_numbers(p, n_samples):
    exact = compute_exactly(p)
    order = {value: number for number, value in enumerate(sorted(set(exact)))}
    found = np.unique(rank(float(p), n_rows=n_samples), return_inverse=True)[1]
    assert found.tolist() == [order[value] for value in exact]


def test_a_third_is_a_third():
    third = make_utility(1 / 3, n_rows=100)
    assert third.ratio == Fraction(1, 3)
    assert third.compute(np.array([[1], [3]])) == 0.0
    assert make_utility(np.float32(0.1), n_rows=100).ratio == Fraction(1, 10)
    assert make_utility(0.1, n_rows=100).compute(np.array([[9], [81]])) == 0.9
    assert make_utility(1e-300, n_rows=100).compute(np.array([[0], [5]])) == -5e-300


def test_nothing_overflows():
    """With billions of samples p may be rounded, but no utility wraps round."""
    for p in (1e-30, 0.123456789123, 1.0, 98765.4321, 1e30):
        ratio = make_utility(p, n_rows=9 * 10**9).ratio
        assert max(ratio.as_integer_ratio()) * 9 * 10**9 < 2**63


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
    found = make_utility(p, n_rows=n_samples)
    assert found.ratio == ratio
    assert abs(found.p - Fraction(str(p))) < Fraction(1, 10**9)


def test_what_is_a_candidate():
    tables = np.array([[[0], [5]], [[1], [0]], [[3], [2]], [[5], [4]], [[6], [4]]])
    found = make_utility(2.5, n_rows=10).measure(tables, n_rows=10)
    assert found.is_candidate.tolist() == [False, True, True, True, False]
    assert found.excess_negatives.tolist() == [-5, 1, 1, 1, 2]
    assert found.utilities.tolist() == [-25, 2, -4, -10, -8]
