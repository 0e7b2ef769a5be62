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
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm import _constants as limits
from icscm._types import BoolArray, FloatArray

# Seen from each of a few angles t the distances are plain sums, a cos t + b sin t. The largest of
# them is at most hypot(a, b), and at least this share of it.
_SIN = np.sin(np.linspace(0.0, np.pi / 2, limits.PAIR_ANGLES))[:, np.newaxis]
_COS = _SIN[::-1]
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
    for row in range(len(values)):
        there = exists[row]
        points = np.stack((values[row][there], below[row][there], above[row][there]))
        extreme = points[:, find_extreme(points)][:, np.newaxis]
        of_row = compare_all(*extreme)
        differences.largest[row] = of_row.largest[0]
        differences.low[row] = of_row.low[0]
        differences.high[row] = of_row.high[0]
    return differences


def compare_all(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray | None = None
) -> Differences:
    """Compare all pairs of values.

    One value with all later ones at a time, so that memory grows with K, not K^2.
    """
    n_rows, n_values = values.shape
    largest = np.zeros(n_rows)
    low = np.zeros(n_rows)
    high = np.zeros(n_rows)
    for i in range(n_values - 1):
        one = slice(i, i + 1)
        others = slice(i + 1, None)
        difference = values[:, one] - values[:, others]
        upper = difference + np.hypot(above[:, one], below[:, others])
        lower = difference - np.hypot(below[:, one], above[:, others])
        both_exist = 1 if exists is None else exists[:, one] & exists[:, others]
        # of x - y and of y - x
        _raise_to(largest, np.abs(difference) * both_exist)
        _raise_to(low, np.maximum(lower, -upper) * both_exist)
        _raise_to(high, np.maximum(upper, -lower) * both_exist)
    return Differences(largest=largest, low=low, high=high)


def _raise_to(so_far: FloatArray, bounds: FloatArray) -> None:
    """Raise the numbers so far, in place, to the largest bound of each row."""
    np.maximum(so_far, bounds.max(axis=1) + 0.0, out=so_far)  # not -0.0


def find_extreme(points: FloatArray) -> NDArray[np.intp]:
    """Find which points (value, below, above) can be part of an extreme pair, and a few more.

    For each point, and in either place of a pair, the best possible partner gives a bound. Points
    whose bound is below the best of some pairs tried first are omitted.
    """
    # at most two of a kind: a pair may be of two alike, and more add nothing
    order = np.lexsort(points)
    is_new = np.ones(len(order), dtype=bool)
    is_new[2:] = (points[:, order[2:]] != points[:, order[:-2]]).any(axis=0)
    distinct = order[is_new]
    values, below, above = points[:, distinct]
    # what each point adds to a pair in either place, by angle
    higher = values + _COS / _SHARE * above, -values + _SIN / _SHARE * below
    lower = values - _COS * below, -values - _SIN * above
    # the two largest from each angle: where one point is best in both places, it needs another
    tried = np.arange(len(distinct))
    if len(distinct) > 2:
        parts = [np.argpartition(each, -2, axis=1)[:, -2:] for each in (*higher, *lower)]
        tried = np.unique(np.concatenate(parts))
    best = compare_all(*points[:, distinct[tried]][:, np.newaxis])
    slack = _SLACK * max(1.0, float(np.abs(points).max(initial=0.0)))
    is_kept = np.zeros(len(values), dtype=bool)
    is_kept[tried] = True  # among them the ends of the values, seen where a distance has no weight
    for one, other in (higher, higher[::-1]):  # the hypotenuse is below its view from *some* angle
        with_partner = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).max(axis=0)
        is_kept |= with_partner >= best.high - slack
    for one, other in (lower, lower[::-1]):  # and above that from *each*
        with_partner = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).min(axis=0)
        is_kept |= with_partner >= best.low - slack
    return distinct[is_kept]
