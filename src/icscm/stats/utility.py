"""What a leaf is worth to the search: |A| - p |B|, compared exactly.

A are the negatives that a rule covers rightly, B the positives that it covers wrongly. In floats
1 - 0.1 * 1 and 9 - 0.1 * 81 differ by rounding, and the wrong one of two equals would win. So p is
the fraction that its decimal text says, and utilities are compared as whole numbers, multiplied
by its denominator.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.stats import _kernels
from icscm.stats.leaf_tables import LeafTables

# Utilities stay below this, well inside int64.
_LARGEST = 2**62
_LARGEST_DENOMINATOR = 10**9
# Bits of a weighted utility that count: rounding is in the last of 53.
_WEIGHTED_BITS = 40


class Worth(NamedTuple):
    """What leaves are worth, whatever the environments; `utility` and `margin` are for comparing.

    `margin` is |A| - |B|, which breaks ties. A small candidate has, or leaves, too few samples.
    """

    utility: Array
    margin: NDArray[np.int64]
    is_candidate: BoolArray
    is_small: BoolArray


@dataclass(frozen=True)
class Utility:
    """|A| - p |B|. A feature's weight multiplies a gain and divides a loss: a larger one helps.

    `p` is for readers, `ratio` for comparing; see `make_utility`. Utilities with weights are
    compared by their first 40 bits (12 digits), so that rounding decides nothing there either.
    """

    p: Fraction
    ratio: Fraction
    weights: FloatArray | None = None

    def weigh(self, leaves: LeafTables, n_samples: int, n_least: int) -> Worth:
        """The worth of every leaf; those on features of weight 0 are no candidates."""
        n = len(leaves.tables)
        tables = np.ascontiguousarray(leaves.tables)
        numbers = np.empty(n, COUNT_DTYPE), np.empty(n, COUNT_DTYPE)
        worth = Worth(*numbers, np.empty(n, np.bool_), np.empty(n, np.bool_))
        ratio = self.ratio.as_integer_ratio()
        _kernels.weigh_leaves(tables, *ratio, n_samples, n_least, *worth)
        if self.weights is None:
            return worth
        weights = self.weights[leaves.find_features()]
        is_candidate = worth.is_candidate & (weights > 0)
        safe = np.where(weights > 0, weights, 1.0)
        gains = np.where(worth.utility >= 0, worth.utility * safe, worth.utility / safe)
        return Worth(_round(gains), worth.margin, is_candidate, worth.is_small & is_candidate)

    def find_bound(self, least: float | None) -> Any:
        """What a utility must reach, for comparing; None is what all do."""
        if least is None:
            return -_LARGEST
        limit = Fraction(str(least)) * self.ratio.denominator
        return (
            float(limit) if self.weights is not None else min(max(ceil(limit), -_LARGEST), _LARGEST)
        )

    def compute(self, leaf: CountArray, feature: int) -> float:
        """The utility of one leaf (label, environment), as a reader wants to see it."""
        negatives, positives = leaf.sum(axis=1).tolist()
        p, unit = self.p.as_integer_ratio()
        gain = negatives * unit - p * positives
        if self.weights is None or self.weights[feature] <= 0:
            return float(gain / unit)
        weight = Fraction(str(self.weights[feature]))
        exact = Fraction(gain, unit)
        return float(exact * weight if gain >= 0 else exact / weight)


def make_utility(p: float, weights: FloatArray | None, n_samples: int) -> Utility:
    """The utility for samples of this number, such that no comparison overflows.

    Beyond the number of samples, and below one over it, p puts leaves in the same order whatever
    its size. A p of more than nine decimals is the nearest fraction of such a denominator (or of a
    smaller one, where there are billions of samples): 0.3333333333333333 is 1/3.

    >>> make_utility(0.1, None, n_samples=1000).ratio
    Fraction(1, 10)
    """
    exact = Fraction(str(p))
    most = min(n_samples + 1, _LARGEST // (n_samples + 1))
    bounded = min(max(exact, Fraction(1, most)), Fraction(most))
    largest_denominator = _LARGEST // ((n_samples + 1) * ceil(bounded))
    ratio = bounded.limit_denominator(min(max(largest_denominator, 1), _LARGEST_DENOMINATOR))
    return Utility(ratio if bounded == exact else exact, ratio, weights)


def _round(values: FloatArray) -> FloatArray:
    mantissa, exponent = np.frexp(values)
    rounded: FloatArray = np.ldexp(np.rint(np.ldexp(mantissa, _WEIGHTED_BITS)), exponent)
    return rounded
