"""Only the ratios of weights matter: relative weights, and how often rows are repeated."""

from math import gcd

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icscm.tables.weights import find_weighted_rows, make_relative, read_weights

FACTORS = st.floats(1e-9, 1e12)
POWERS_OF_TWO = st.integers(-30, 40).map(lambda exponent: 2.0**exponent)
WHOLE = st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any)
# Survey weights, as they come out of a division by a probability.
DRAWN = st.tuples(st.integers(0, 2**32), st.integers(1, 60)).map(
    lambda drawn: np.random.default_rng(drawn[0]).lognormal(0.0, 0.8, drawn[1])
)
WEIGHTS = WHOLE | DRAWN


def read(weights):
    return read_weights(weights, len(weights), "sample_weight")


def list_rows(weights):
    rows = find_weighted_rows(weights, len(weights))
    return None if rows is None else rows.tolist()


@given(WEIGHTS, POWERS_OF_TWO)
def test_powers_of_two_change_no_bit(weights, factor):
    weights = np.asarray(weights, dtype=np.float64)
    assert read(weights * factor).tolist() == read(weights).tolist()
    assert list_rows(weights * factor) == list_rows(weights)


@given(WEIGHTS, FACTORS)
@example([1, 2, 3, 6], 0.1)
@example([1, 30, 7], 1 / 3)
def test_no_factor_changes_repetitions(weights, factor):
    """Whole weights were divided by their greatest common divisor, and a tenth of them rounded.

    Of weights 0.1, 0.2, 0.3 rows were repeated 2, 4 and 6 times instead of 1, 2 and 3 times, beside
    which priors weigh less: risks were others, and the points of a score.
    """
    weights = np.asarray(weights, dtype=np.float64)
    assert list_rows(weights * factor) == list_rows(weights)
    np.testing.assert_allclose(read(weights * factor), read(weights), rtol=1e-6)


@given(WEIGHTS)
def test_relative_weights_have_mean_1_and_are_their_own(weights):
    relative = read(np.asarray(weights, dtype=np.float64))
    assert relative[relative > 0].mean() == pytest.approx(1.0, rel=1e-6)
    assert make_relative(relative).tolist() == relative.tolist()
    assert ((relative > 0) == (np.asarray(weights) > 0)).all()


@given(WEIGHTS, st.randoms())
def test_the_order_of_rows_does_not_matter(weights, random):
    order = [*range(len(weights))]
    random.shuffle(order)
    weights = np.asarray(weights, dtype=np.float64)
    assert read(weights[order]).tolist() == read(weights)[order].tolist()


@given(WHOLE)
def test_whole_weights_are_divided_by_their_greatest_common_divisor(weights):
    """If that repeats rows at most 16 times on average."""
    divisor = gcd(*weights)
    expected = [row for row, weight in enumerate(weights) for _ in range(weight // divisor)]
    n_counted = sum(weight > 0 for weight in weights)
    rows = list_rows(weights)
    if rows is None:
        assert expected == [*range(len(weights))]
    elif len(expected) <= 16 * n_counted:
        assert rows == expected
    else:
        assert len(rows) <= 17 * n_counted


@settings(max_examples=20)
@given(DRAWN)
def test_rounded_weights_are_near(weights):
    """Rows are repeated in proportion to their weights, but for half a repetition."""
    rows = find_weighted_rows(weights, len(weights))
    if rows is not None:
        repetitions = np.bincount(rows, minlength=len(weights))
        wanted = weights * repetitions.sum() / weights.sum()
        assert np.abs(repetitions - np.maximum(wanted, 1.0)).max() <= 0.6 + 0.05 * wanted.max()


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_extreme_units_neither_overflow_nor_vanish(factor):
    weights = np.array([1e7, 0.0, 3e7, 2e7])
    assert read(weights * factor).tolist() == read(weights).tolist() == [0.5, 0.0, 1.5, 1.0]


def test_a_weight_far_below_the_others_still_counts():
    assert (read(np.array([1e-320, 1e300])) > 0).all()
