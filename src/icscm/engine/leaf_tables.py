"""From the count cube to the leaf that each candidate rule would create."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import MISSINGNESS, ORDERED, BinnedColumns, CountCube, Cut, Layout
from icscm.stats import _kernels

# The truth that a rule may have for a missing value.
EITHER_SIDE = (False, True)


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
