"""The largest difference between any two of many values that are known up to an interval.

Two values with their intervals differ by x - y, at most by x - y + hypot(above x, below y), and at
least by x - y - hypot(below x, above y): the distances to the ends of the intervals add up like
standard errors. All pairs are compared; of very many values only those
that can be part of an extreme pair, and so the result is the same to the last digit.

    K values, with distances below and above          (300,000 rows in 10,000 environments)
      -> at most two of a kind                        (counts repeat)
      -> those whose best conceivable partner would take them beyond a pair already seen
      -> all pairs of these                           (a few dozen)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import MAX_PAIRED, PAIR_ANGLES
from icscm._types import BoolArray, FloatArray


class Differences(NamedTuple):
    """The largest difference between two values in each of several rows, and its bounds."""

    largest: FloatArray
    low: FloatArray
    high: FloatArray


def bound_pairs(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray
) -> Differences:
    """Largest difference, lower and upper bound over all pairs that exist; rows are independent."""
    if values.shape[1] <= MAX_PAIRED:
        return compare_all(values, below, above, exists)
    found = Differences(*np.zeros((3, len(values))))
    for row, *parts in zip(range(len(values)), values, below, above, exists, strict=True):
        is_there = parts.pop()
        points = np.stack([part[is_there] for part in parts])
        kept = points[:, find_extreme(points)][:, np.newaxis]
        for so_far, value in zip(found, compare_all(*kept), strict=True):
            so_far[row] = value[0]
    return found


def compare_all(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray | None = None
) -> Differences:
    """The same, literally.

    One value against all later ones at a time, so that memory grows with K, not K^2.
    """
    found = Differences(*np.zeros((3, len(values))))
    for i in range(values.shape[1] - 1):
        one, others = slice(i, i + 1), slice(i + 1, None)
        difference = values[:, one] - values[:, others]
        upper = difference + np.hypot(above[:, one], below[:, others])
        lower = difference - np.hypot(below[:, one], above[:, others])
        both = 1 if exists is None else exists[:, one] & exists[:, others]
        pairs = np.abs(difference), np.maximum(lower, -upper), np.maximum(upper, -lower)
        for so_far, bounds in zip(found, pairs, strict=True):
            np.maximum(so_far, (bounds * both).max(axis=1), out=so_far)
    return found


# Seen from each of a few angles t the distances are plain sums, a cos t + b sin t. The largest of
# them is at most hypot(a, b), and at least this share of it.
_SIN = np.sin(np.linspace(0.0, np.pi / 2, PAIR_ANGLES))[:, np.newaxis]
_COS = _SIN[::-1]
_SHARE = float(np.cos(np.pi / 4 / (PAIR_ANGLES - 1)))
# Far above what sums lose to rounding, relative to the numbers at hand.
_SLACK = 1e-9


def find_extreme(points: FloatArray) -> NDArray[np.intp]:
    """Which of the points (value, below, above) can be part of an extreme pair, and a few more.

    For each point, and in either place of a pair, its best conceivable partner bounds what it can
    come to. Points that cannot come up to the best of some pairs tried first are left out.
    """
    distinct = _find_distinct(points)
    values, below, above = points[:, distinct]
    # what each point adds to a pair in either place, by angle
    higher = values + _COS / _SHARE * above, -values + _SIN / _SHARE * below
    lower = values - _COS * below, -values - _SIN * above
    tried = np.unique(np.concatenate([_find_two_best(each) for each in (*higher, *lower)]))
    (_, low, high) = compare_all(*points[:, distinct[tried]][:, np.newaxis])
    slack = _SLACK * max(1.0, float(np.abs(points).max(initial=0.0)))
    is_kept = np.zeros(len(values), dtype=bool)
    is_kept[tried] = True  # among them the ends of the values, seen where a distance has no weight
    for one, other in (higher, higher[::-1]):  # the hypotenuse is below its view from *some* angle
        best = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).max(axis=0)
        is_kept |= best >= high - slack
    for one, other in (lower, lower[::-1]):  # and above that from *each*
        best = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).min(axis=0)
        is_kept |= best >= low - slack
    return distinct[is_kept]


def _find_distinct(points: FloatArray) -> NDArray[np.intp]:
    """At most two of a kind: a pair may be of two alike, and more add nothing."""
    order = np.lexsort(points)
    is_kept = np.ones(len(order), dtype=bool)
    is_kept[2:] = (points[:, order[2:]] != points[:, order[:-2]]).any(axis=0)
    return order[is_kept]


def _find_two_best(seen: FloatArray) -> NDArray[np.intp]:
    """The two largest from each angle: where one point is best in both places, it needs another."""
    if seen.shape[1] <= 2:
        return np.arange(seen.shape[1])
    return np.argpartition(seen, -2, axis=1)[:, -2:].ravel()
