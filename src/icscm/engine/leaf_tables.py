"""From the count cube to the leaf that each candidate rule would create, and its utility.

The utility of a leaf is |A| - p |B|, compared exactly. A are the negatives that a rule covers
rightly, B the positives that it covers wrongly. In floats 1 - 0.1 * 1 and 9 - 0.1 * 81 differ by
rounding, and the wrong one of two equals would win. So p is the fraction of its decimal text, and
utilities are compared as whole numbers, multiplied by its denominator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import MISSINGNESS, ORDERED, BinnedColumns, CountCube, Cut, Layout
from icscm.stats import _kernels

# The truth that a rule may have for a missing value.
EITHER_SIDE = (False, True)
# Utilities stay below this, well inside int64.
_LARGEST = 2**62
_LARGEST_DENOMINATOR = 10**9
# Bits of a weighted utility that count: rounding is in the last of 53.
_WEIGHTED_BITS = 40


@dataclass(frozen=True)
class LeafTables:
    """Candidates of one block of features, in the order of their cuts within each feature.

    `tables` is (candidate, label, environment): the samples that the rule would cover. With
    missing values each feature begins with `x is missing` and, with all `signs`,
    `x is present`. `n_copies` is how many identical columns each stands for, None where no two
    are. Cuts are numbered from `first_place`.
    """

    features: IntArray
    layout: Layout
    signs: Sequence[bool]
    sides: Sequence[bool]
    tables: CountArray
    n_copies: IntArray | None = None
    n_presence: int = 0
    first_place: int = 0

    @property
    def n_candidates(self) -> int:
        """Candidates of each feature."""
        return len(self.tables) // max(len(self.features), 1)

    def find_features(self) -> IntArray:
        """The feature of each candidate."""
        return np.repeat(self.features, self.n_candidates)

    def count(self, wanted: BoolArray) -> int:
        """Number of the wanted candidates, those of identical features included."""
        if self.n_copies is None:
            return int(np.count_nonzero(wanted))
        return int(wanted.reshape(len(self.features), -1).sum(axis=1) @ self.n_copies)

    def find_best(self, values: FloatArray) -> NDArray[np.intp]:
        """The candidate of each feature with the largest of some values, the first of equals."""
        first: NDArray[np.intp] = values.reshape(len(self.features), -1).argmax(axis=1)
        first += self.n_candidates * np.arange(len(first))
        return first

    def compute_evidence(self, in_play: CountArray) -> FloatArray:
        """How far each leaf is from chance: half a deviance, by the samples in play (label, K).

        Chance is a permutation of the labels within environments, as a marker of an environment
        has its label's rate without any effect.
        """
        evidence = np.empty(len(self.tables))
        tables = np.ascontiguousarray(self.tables)
        _kernels.measure_evidence(tables, np.ascontiguousarray(in_play), evidence)
        return evidence

    def locate(self, candidate: int) -> Cut:
        """The cut of a candidate."""
        row, within = divmod(int(candidate), self.n_candidates)
        feature = int(self.features[row])
        if within < self.n_presence:
            return Cut(feature, MISSINGNESS, negated=within == 1, missing=within == 0)
        place, within = divmod(within - self.n_presence, len(self.signs) * len(self.sides))
        sign, side = divmod(within, len(self.sides))
        return Cut(feature, self.first_place + place, self.signs[sign], self.sides[side])

    def find(self, cut: Cut) -> int:
        """The candidate of a cut: `locate` the other way round.

        Raises KeyError if the cut is not among the candidates.
        """
        rows = np.flatnonzero(self.features == cut.feature)
        if len(rows):
            start = int(rows[0]) * self.n_candidates
            for candidate in range(start, start + self.n_candidates):
                if self.locate(candidate) == cut:
                    return candidate
        raise KeyError(cut)


def compute_leaf_tables(
    cube: CountCube,
    candidates: BinnedColumns,
    sides: Sequence[bool] = EITHER_SIDE,
    *,
    inverted: bool = False,
) -> LeafTables:
    """The leaf of every rule, from the running sums over the bins.

    `x > t` covers the bins up to its cut, `x <= t` those beyond; `x == v` covers all levels but
    one, `x != v` that one:

        bins        n0  n1  n2          rule     leaf
        cut 0         |                 x > t0   n0            x <= t0   n1 + n2
        cut 1             |             x > t1   n0 + n1       x <= t1   n2
        level 1         -               x == v   n0 + n2       x != v    n1

    Where values are missing, each of these comes with the missing ones covered and not covered,
    for those of the `sides` that are wanted; and there are two rules on being missing. Of two
    levels, `x == a` and `x != b` are the same: with rules that will be printed `inverted` the
    second is taken, so that all are printed as equalities.
    """
    signs = (inverted,) if cube.layout.is_pair else (False, True)
    return _compute_tables(cube, candidates, signs, sides, n_presence=2)


def compute_halves(
    cube: CountCube, candidates: BinnedColumns, sides: Sequence[bool] = EITHER_SIDE
) -> LeafTables:
    """One half of every split, that of the samples for which its rule is false.

    A rule and its negation split alike, so there are only `x > t`, `x == v` and `x is missing`; of
    two levels the first splits as the second does, unless missing values may not go either way.
    """
    halves = _compute_tables(cube, candidates, (False,), sides, n_presence=1)
    has_both = not cube.layout.has_missing or len(halves.sides) == len(EITHER_SIDE)
    if not cube.layout.is_pair or not has_both:
        return halves
    cell = halves.tables.shape[1:]
    by_feature = halves.tables.reshape(len(cube.features), -1, *cell)
    # `smoker == yes`, not `smoker == no`: the second of booleans and such words is the natural one
    second = by_feature[:, -len(halves.sides) :]
    kept = np.concatenate((by_feature[:, : halves.n_presence], second), axis=1)
    return replace(halves, tables=kept.reshape(-1, *cell), first_place=1)


def _compute_tables(
    cube: CountCube,
    candidates: BinnedColumns,
    signs: Sequence[bool],
    sides: Sequence[bool],
    n_presence: int,
) -> LeafTables:
    layout = cube.layout
    sides = sides if layout.has_missing else (False,)
    missing = cube.counts[:, :1] if layout.has_missing else None
    values = cube.counts[:, 1:] if layout.has_missing else cube.counts
    tables = _compute_covered_values(values, layout, signs, n_sides=len(sides))
    n_features, _, _, _, *cell = tables.shape
    copies = candidates.count_copies(cube.features)
    n_copies = None if (copies == 1).all() else copies
    if missing is None:
        tables = tables.reshape(-1, *cell)
        return LeafTables(cube.features, layout, signs, sides, tables, n_copies)
    for number, is_true in enumerate(sides):
        if not is_true:
            tables[:, :, :, number] += missing[:, :, np.newaxis]
    # No leaf for cuts that narrower features of a block do not have. Without missing values such a
    # cut covers everything or nothing, and is no candidate anyway.
    n_cuts = candidates.count_bins(cube.features) - 1 - (not layout.nominal)
    for place in range(int(n_cuts.min()), tables.shape[1]):
        tables[n_cuts <= place, place] = 0
    presence = (values.sum(axis=1, keepdims=True), missing)[:n_presence]
    joined = np.concatenate((*presence, tables.reshape(n_features, -1, *cell)), axis=1)
    joined = joined.reshape(-1, *cell)
    return LeafTables(cube.features, layout, signs, sides, joined, n_copies, n_presence)


def _compute_covered_values(
    values: CountArray, layout: Layout, signs: Sequence[bool], n_sides: int
) -> CountArray:
    """(feature, cut, sign, side, label, environment): what each rule covers of the values."""
    if values.shape[1] == 2 and layout == ORDERED:
        # each of the two rules covers one bin
        return values[:, np.newaxis, : len(signs), np.newaxis]
    if layout.nominal:
        total, part = values.sum(axis=1, keepdims=True), values
    else:
        up_to = np.cumsum(values, axis=1)
        total, part = up_to[:, -1:], up_to[:, :-1]
    n_features, n_cuts, *cell = part.shape
    tables = np.empty((n_features, n_cuts, len(signs), n_sides, *cell), dtype=values.dtype)
    for at, negated in enumerate(signs):
        # `x > t` covers the part up to t, `x != v` the part that is v
        covers_part = negated == layout.nominal
        tables[:, :, at] = (part if covers_part else total - part)[:, :, np.newaxis]
    return tables


# --- utility ------------------------------------------------------------------


class Worth(NamedTuple):
    """The worth of leaves, regardless of environments; `utility` and `margin` are for comparing.

    `margin` is |A| - |B|, which breaks ties. A small candidate has, or leaves, too few samples.
    """

    utility: Array
    margin: IntArray
    is_candidate: BoolArray
    is_small: BoolArray


@dataclass(frozen=True)
class Utility:
    """|A| - p |B|. A feature's weight multiplies a gain and divides a loss: a larger one helps.

    `p` is for display, `ratio` for comparing; see `make_utility`. Utilities with weights are
    compared by their first 40 bits (12 digits), so that rounding decides nothing there either.
    """

    p: Fraction
    ratio: Fraction
    weights: FloatArray | None = None

    def weigh(self, leaves: LeafTables, n_samples: int, n_least: int) -> Worth:
        """The worth of every leaf; those on features of weight 0 are no candidates.

        A leaf is a candidate if it has negatives and leaves samples, a small one if it has, or
        leaves, fewer than `n_least`. In whole numbers, so that equal utilities are equal.
        """
        negatives, positives = np.einsum("ijk->ji", leaves.tables)  # a quarter of the time of sum
        size, (num, den) = negatives + positives, self.ratio.as_integer_ratio()
        is_candidate = (negatives > 0) & (size < n_samples)
        utility = den * negatives - num * positives
        if self.weights is not None:
            weights = self.weights[leaves.find_features()]
            is_candidate &= weights > 0
            safe = np.where(weights > 0, weights, 1.0)
            mantissa, exponent = np.frexp(np.where(utility >= 0, utility * safe, utility / safe))
            utility = np.ldexp(np.rint(np.ldexp(mantissa, _WEIGHTED_BITS)), exponent)
        is_small = is_candidate & (np.minimum(size, n_samples - size) < n_least)
        return Worth(utility, negatives - positives, is_candidate, is_small)

    def find_bound(self, least: float | None) -> Any:
        """The least utility in the scale for comparing; None if all pass."""
        if least is None:
            return -_LARGEST
        limit = Fraction(str(least)) * self.ratio.denominator
        if self.weights is not None:
            return float(limit)
        return min(max(ceil(limit), -_LARGEST), _LARGEST)

    def compute(self, leaf: CountArray, feature: int) -> float:
        """The utility of one leaf (label, environment), for display."""
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
