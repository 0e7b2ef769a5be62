"""The utility of a rule, U = |A| - p |B|, compared exactly.

A are the negatives that a rule covers rightly, B the positives that it covers wrongly. In floats
1 - 0.1 * 1 and 9 - 0.1 * 81 differ by rounding, and the wrong one of two equals would win. So p is
the fraction of its decimal text, and utilities are compared as whole numbers, multiplied by its
denominator.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from icscm._types import BoolArray, CountArray, IntArray

# Utilities stay below this, well inside int64.
_MAX_UTILITY: Final = 2**62
_MAX_DENOMINATOR: Final = 10**9


@dataclass(frozen=True)
class LeafUtilities:
    """The utilities of some leaves, and which of their rules are candidates.

    Attributes
    ----------
    utilities : array of int
        U times the denominator of p.
    excess_negatives : array of int
        |A| - |B|, which decides between equal utilities.
    is_candidate : array of bool
        Whether a rule covers a negative, and leaves some row uncovered.
    """

    utilities: IntArray
    excess_negatives: IntArray
    is_candidate: BoolArray


@dataclass(frozen=True)
class Utility:
    """The utility of rules for one p.

    Attributes
    ----------
    p : Fraction
        For display.
    ratio : Fraction
        For comparing; see `make_utility`.
    """

    p: Fraction
    ratio: Fraction

    def measure(self, leaves: CountArray, *, n_rows: int) -> LeafUtilities:
        """Measure the utilities of leaves (rule, label, environment) of `n_rows` uncovered rows."""
        negatives, positives = np.einsum("ijk->ji", leaves)  # a quarter of the time of sum
        p_numerator, p_denominator = self.ratio.as_integer_ratio()
        n_covered = negatives + positives
        return LeafUtilities(
            utilities=p_denominator * negatives - p_numerator * positives,
            excess_negatives=negatives - positives,
            is_candidate=(negatives > 0) & (n_covered < n_rows),
        )

    def find_bound(self, min_utility: float | None) -> int:
        """Find the whole number that utilities must reach; one that all reach for None."""
        if min_utility is None:
            return -_MAX_UTILITY
        bound = ceil(Fraction(str(min_utility)) * self.ratio.denominator)
        return min(max(bound, -_MAX_UTILITY), _MAX_UTILITY)

    def compute(self, leaf: CountArray) -> float:
        """Compute the utility of one leaf (label, environment), for display."""
        n_negatives, n_positives = leaf.sum(axis=1).tolist()
        p_numerator, p_denominator = self.p.as_integer_ratio()
        multiple = n_negatives * p_denominator - p_numerator * n_positives
        return float(multiple / p_denominator)


def make_utility(p: float, *, n_rows: int) -> Utility:
    """Make the utility for a number of rows, such that no comparison overflows.

    Beyond the number of rows, and below one over it, p puts leaves in the same order whatever
    its size. A p of more than nine decimals is the nearest fraction of such a denominator (or of a
    smaller one, where there are billions of rows): 0.3333333333333333 is 1/3.

    >>> make_utility(0.1, n_rows=1000).ratio
    Fraction(1, 10)
    """
    exact = Fraction(str(p))
    highest = min(n_rows + 1, _MAX_UTILITY // (n_rows + 1))
    bounded = min(max(exact, Fraction(1, highest)), Fraction(highest))

    max_denominator = _MAX_UTILITY // ((n_rows + 1) * ceil(bounded))
    max_denominator = min(max(max_denominator, 1), _MAX_DENOMINATOR)
    ratio = bounded.limit_denominator(max_denominator)
    return Utility(p=ratio if bounded == exact else exact, ratio=ratio)
