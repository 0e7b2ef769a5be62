"""The largest difference between any two of many values, with its bounds.

Two values x and y with intervals differ by x - y, at most and at least by

    upper = x - y + hypot(above x, below y)         lower = x - y - hypot(below x, above y)

since the distances from the values to the ends of their intervals add up like standard errors
(Newcombe 1998). All pairs are compared; of very many values only those that can be part of an
extreme pair, and so the result is the same to the last digit:

    K values, with distances below and above          (300,000 rows in 10,000 environments)
      -> at most two of a kind                        (counts repeat)
      -> those whose best conceivable partner would take them beyond a pair already seen
      -> all pairs of these                           (a few dozen)

The best conceivable partner of x is found without looking at all y, by bounds that are a sum of a
term of x and a term of y. The hypotenuse of a and b is not such a sum, but for any angle t

    a cos t + b sin t  <=  hypot(a, b)

and for the best of a few angles the left side is at least a known share of the right one.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm import _constants as limits
from icscm._types import BoolArray, FloatArray

# Sines and cosines of a few angles t from 0 to 90 degrees (angle, 1).
_SIN = np.sin(np.linspace(0.0, np.pi / 2, limits.PAIR_ANGLES))[:, np.newaxis]
_COS = _SIN[::-1]
# The largest a cos t + b sin t at these angles is at least this share of hypot(a, b).
_SHARE = float(np.cos(np.pi / 4 / (limits.PAIR_ANGLES - 1)))
# Far above what sums lose to rounding, relative to the numbers at hand.
_SLACK: Final = 1e-9


class Differences(NamedTuple):
    """The largest difference between two values in each of several rows, and its bounds."""

    largest: FloatArray
    low: FloatArray
    high: FloatArray


def bound_pairs(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray
) -> Differences:
    """Find the largest difference, lower and upper bound over all pairs of values that exist.

    The arrays are (row, value), and each row is by itself.
    """
    if values.shape[1] <= limits.MAX_PAIRED:
        return compare_all(values, below, above, exists)
    differences = Differences(
        largest=np.zeros(len(values)), low=np.zeros(len(values)), high=np.zeros(len(values))
    )
    points = np.stack((values, below, above))
    for row in range(len(values)):
        points_of_row = points[:, row, exists[row]]
        extreme_points = points_of_row[:, find_extreme(points_of_row)]
        of_row = compare_all(*extreme_points[:, np.newaxis])
        differences.largest[row] = of_row.largest[0]
        differences.low[row] = of_row.low[0]
        differences.high[row] = of_row.high[0]
    return differences


def compare_all(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray | None = None
) -> Differences:
    """Compare all pairs of values; the arrays are (row, value).

    One value with all later ones at a time, so that memory grows with K, not K^2.
    """
    n_rows, n_values = values.shape
    largest = np.zeros(n_rows)
    low = np.zeros(n_rows)
    high = np.zeros(n_rows)
    for i in range(n_values - 1):
        x = slice(i, i + 1)
        y = slice(i + 1, None)
        difference = values[:, x] - values[:, y]
        upper = difference + np.hypot(above[:, x], below[:, y])
        lower = difference - np.hypot(below[:, x], above[:, y])
        both_exist = 1 if exists is None else exists[:, x] & exists[:, y]
        # Both of x - y and of y - x, whose bounds are -lower and -upper.
        _raise_to(largest, np.abs(difference) * both_exist)
        _raise_to(low, np.maximum(lower, -upper) * both_exist)
        _raise_to(high, np.maximum(upper, -lower) * both_exist)
    return Differences(largest=largest, low=low, high=high)


def _raise_to(so_far: FloatArray, bounds: FloatArray) -> None:
    """Raise the numbers so far, in place, to the largest bound of each row."""
    np.maximum(so_far, bounds.max(axis=1) + 0.0, out=so_far)  # not -0.0


# --- values that can be part of an extreme pair ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class _PairTerms:
    """A bound for each pair x, y and each angle: a term of x plus a term of y.

    Both are (angle, point): what each point adds to the bound as x, and what it adds as y.
    """

    of_x: FloatArray
    of_y: FloatArray

    def add_best_y(self) -> FloatArray:
        """Bound pairs of each point as x with its best partner y (angle, point)."""
        return np.asarray(self.of_x + self.of_y.max(axis=1, keepdims=True, initial=-np.inf))

    def add_best_x(self) -> FloatArray:
        """Bound pairs of each point as y with its best partner x (angle, point)."""
        return np.asarray(self.of_y + self.of_x.max(axis=1, keepdims=True, initial=-np.inf))


def find_extreme(points: FloatArray) -> NDArray[np.intp]:
    """Find which points can be part of an extreme pair, and a few more.

    `points` has three rows: the values, and the distances below and above. For each point, as x and
    as y of a pair, the best possible partner gives a bound. Points whose bound is below the best of
    some pairs tried first are omitted.
    """
    distinct = _find_two_of_a_kind(points)
    values, below, above = points[:, distinct]
    # No pair exceeds its bound from the angle with the largest, nor that from any angle.
    upper = _PairTerms(
        of_x=values + _COS / _SHARE * above,
        of_y=-values + _SIN / _SHARE * below,
    )
    lower = _PairTerms(
        of_x=values - _COS * below,
        of_y=-values - _SIN * above,
    )

    # Among those tried are the ends of the values, seen where a distance has no weight.
    tried = _find_largest_terms(upper, lower)
    best = compare_all(*points[:, distinct[tried]][:, np.newaxis])

    slack = _SLACK * max(1.0, float(np.abs(points).max(initial=0.0)))
    is_kept = np.zeros(len(distinct), dtype=bool)
    is_kept[tried] = True
    for upper_bounds in (upper.add_best_y(), upper.add_best_x()):
        is_kept |= upper_bounds.max(axis=0) >= best.high - slack
    for lower_bounds in (lower.add_best_y(), lower.add_best_x()):
        is_kept |= lower_bounds.min(axis=0) >= best.low - slack
    return distinct[is_kept]


def _find_two_of_a_kind(points: FloatArray) -> NDArray[np.intp]:
    """Find the distinct points, and a second one of those that repeat.

    A pair may be of two that are alike, and more add nothing.
    """
    order = np.lexsort(points)
    is_third_of_a_kind = np.zeros(len(order), dtype=bool)
    is_third_of_a_kind[2:] = (points[:, order[2:]] == points[:, order[:-2]]).all(axis=0)
    return order[~is_third_of_a_kind]


def _find_largest_terms(upper: _PairTerms, lower: _PairTerms) -> NDArray[np.intp]:
    """Find the points with the two largest terms of x, and of y, from each angle.

    Two, since the point with the largest of both needs another as its partner.
    """
    n_points = upper.of_x.shape[1]
    if n_points <= 2:
        return np.arange(n_points)
    largest = [
        np.argpartition(terms, -2, axis=1)[:, -2:]
        for terms in (upper.of_x, upper.of_y, lower.of_x, lower.of_y)
    ]
    return np.unique(np.concatenate(largest))
