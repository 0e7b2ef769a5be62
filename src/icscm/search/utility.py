"""The utility of a rule, compared exactly.

    U = n_negatives - p n_positives

with the numbers of negatives and positives that the rule covers. It predicts negatives for them:
rightly for the negatives, at a cost of p for each of the positives.

In floats the equal utilities 1 - 0.1 * 1 and 9 - 0.1 * 81 differ by rounding, and chance would
decide between two rules. So p is a fraction, that of its decimal text, and whole numbers are
compared:

    U * denominator = n_negatives * denominator - n_positives * numerator
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from icscm._types import BoolArray, CountArray, IntArray

# Whole-number utilities stay below this, well inside int64.
_MAX_UTILITY: Final = 2**62
# A p of more decimals than nine is rounded.
_MAX_DENOMINATOR: Final = 10**9


@dataclass(frozen=True)
class LeafUtilities:
    """The utilities of the leaves of some rules, and which of the rules are candidates.

    Attributes
    ----------
    utilities : array of int, (rule)
        U times the denominator of p.
    excess_negatives : array of int, (rule)
        Negatives less positives, which decides between equal utilities.
    is_candidate : array of bool, (rule)
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
        The fraction that is displayed.
    ratio : Fraction
        The fraction that is compared with: p within the bounds of `make_utility`.
    """

    p: Fraction
    ratio: Fraction

    def measure(self, leaves: CountArray, *, n_rows: int) -> LeafUtilities:
        """Measure the utilities of leaves, given by (rule, outcome, environment).

        `n_rows` is the number of uncovered rows, which a leaf is a part of.
        """
        # The sum over environments, by outcome; `sum` would take four times as long.
        n_negatives, n_positives = np.einsum("ijk->ji", leaves)
        utilities = self.ratio.denominator * n_negatives - self.ratio.numerator * n_positives

        covers_a_negative = n_negatives > 0
        leaves_rows_uncovered = n_negatives + n_positives < n_rows
        return LeafUtilities(
            utilities=utilities,
            excess_negatives=n_negatives - n_positives,
            is_candidate=covers_a_negative & leaves_rows_uncovered,
        )

    def find_bound(self, min_utility: float | None) -> int:
        """Find the whole number that utilities must reach.

        It is the minimum utility times the denominator of p, rounded up; for None it is so low that
        every rule reaches it.
        """
        if min_utility is None:
            return -_MAX_UTILITY
        bound = ceil(Fraction(str(min_utility)) * self.ratio.denominator)
        return min(max(bound, -_MAX_UTILITY), _MAX_UTILITY)

    def compute(self, leaf: CountArray) -> float:
        """Compute the utility of one leaf (outcome, environment), for display.

        It is divided only at the end, so that whole and other short numbers are displayed as such.
        """
        n_negatives, n_positives = leaf.sum(axis=1).tolist()
        whole_number = self.p.denominator * n_negatives - self.p.numerator * n_positives
        return float(whole_number / self.p.denominator)


def make_utility(p: float, *, n_rows: int) -> Utility:
    """Make the utility for a number of rows, such that no comparison overflows.

    p is bounded to

        1 / (n_rows + 1)  <=  p  <=  n_rows + 1    (tighter where there are billions of rows),

    which changes no order of leaves: beyond these bounds the number of one outcome decides, and
    that of the other only between equals. Then p is rounded to the nearest fraction with

        denominator  <=  10^9  and  denominator * p * (n_rows + 1)  <=  2^62,

    so that 0.3333333333333333 is 1/3.

    >>> make_utility(0.1, n_rows=1000).ratio
    Fraction(1, 10)
    """
    exact_p = Fraction(str(p))  # 0.1 is 1/10, not the float next to it
    highest_p = min(n_rows + 1, _MAX_UTILITY // (n_rows + 1))
    lowest_p = Fraction(1, highest_p)
    bounded_p = min(max(exact_p, lowest_p), Fraction(highest_p))

    safe_denominator = _MAX_UTILITY // ((n_rows + 1) * ceil(bounded_p))
    max_denominator = min(max(safe_denominator, 1), _MAX_DENOMINATOR)
    ratio = bounded_p.limit_denominator(max_denominator)

    is_bounded = bounded_p != exact_p
    return Utility(p=exact_p if is_bounded else ratio, ratio=ratio)
