"""From the counts of columns to the leaf that each candidate rule would create.

A rule covers the rows where it is false: its *leaf*. The leaves of all rules on a column are sums
over its bins, and those of all columns of a block one array:

    cube (column, bin, outcome, environment)  --sums over bins-->  (rule, outcome, environment)

The rules of a column come in the order of their cuts: first those on missing values, if there are
any, then each threshold or level, `>` before `<=`, and each of these with missing values false
before true.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import MISSINGNESS, ORDERED, BinnedColumns, CountCube, Cut, Layout
from icscm.stats import _kernels

# The truths that a rule may have for a missing value.
TRUTHS_OF_MISSING: Final = (False, True)


@dataclass(frozen=True, kw_only=True)
class LeafTables:
    """The leaves of all rules on a block of columns, in the order of their cuts within each column.

    Attributes
    ----------
    columns : array of int
        The columns.
    layout : Layout
        How their bins are to be read.
    tables : array of int, (rule, outcome, environment)
        The rows that each rule would cover.
    signs : sequence of bool
        Whether rules are negated: both, or one where a rule and a negation cover alike.
    n_copies : array of int, optional
        How many identical columns each stands for; None where no two are.
    n_missingness : int
        How many rules a column has on missing values: `x is missing` and perhaps `x is present`.
    first_cut : int
        The number of the first threshold or level.
    """

    columns: IntArray
    layout: Layout
    tables: CountArray
    signs: Sequence[bool] = (False, True)
    n_copies: IntArray | None = None
    n_missingness: int = 0
    first_cut: int = 0

    @property
    def n_candidates(self) -> int:
        """The number of rules on each column."""
        return len(self.tables) // max(len(self.columns), 1)

    def count(self, mask: BoolArray) -> int:
        """Count the rules that a mask selects, those on identical columns included."""
        if self.n_copies is None:
            return int(np.count_nonzero(mask))
        return int(mask.reshape(len(self.columns), -1).sum(axis=1) @ self.n_copies)

    def find_best(self, values: FloatArray) -> NDArray[np.intp]:
        """Find the rule of each column with the largest of some values, the first of equals."""
        by_column = values.reshape(len(self.columns), -1)
        number_in_column: NDArray[np.intp] = by_column.argmax(axis=1)
        first_of_column = self.n_candidates * np.arange(len(self.columns))
        return number_in_column + first_of_column

    def compute_evidence(self, counts: CountArray) -> FloatArray:
        """Compute how far each leaf is from chance: half a deviance.

        Chance is a permutation of the outcomes of all rows, given by (outcome, environment), within
        environments, as a marker of an environment has its outcome's rate without any effect.
        """
        evidence = np.empty(len(self.tables))
        tables = np.ascontiguousarray(self.tables)
        _kernels.measure_evidence(tables, np.ascontiguousarray(counts), evidence)
        return evidence

    def locate(self, candidate: int) -> Cut:
        """Return the cut of a rule, given by its number.

        Of a column with missing values, whose thresholds are t0 and t1, the numbers are:

            0  x is missing     2  x > t0             4  x <= t0             6  x > t1  ...
            1  x is present     3  ... or missing     5  ... or missing
        """
        position, number = divmod(int(candidate), self.n_candidates)
        column = int(self.columns[position])
        if number < self.n_missingness:
            is_present = number == 1
            return Cut(column, MISSINGNESS, negated=is_present, missing=not is_present)

        truths = find_truths_of_missing(self.layout)
        n_rules_per_cut = len(self.signs) * len(truths)
        cut, number_in_cut = divmod(number - self.n_missingness, n_rules_per_cut)
        sign, truth = divmod(number_in_cut, len(truths))
        return Cut(column, self.first_cut + cut, negated=self.signs[sign], missing=truths[truth])

    def find(self, cut: Cut) -> int:
        """Find the number of the rule of a cut: `locate` the other way round.

        Raises KeyError if the cut is not among the rules.
        """
        positions = np.flatnonzero(self.columns == cut.column)
        if len(positions):
            start = int(positions[0]) * self.n_candidates
            for candidate in range(start, start + self.n_candidates):
                if self.locate(candidate) == cut:
                    return candidate
        raise KeyError(cut)


def find_truths_of_missing(layout: Layout) -> Sequence[bool]:
    """Find the truths for a missing value that the rules on a column have; one if there is none."""
    return TRUTHS_OF_MISSING if layout.has_missing else (False,)


def compute_leaf_tables(
    cube: CountCube, columns: BinnedColumns, *, inverted: bool = False
) -> LeafTables:
    """Compute the leaf of every rule, from the running sums over the bins.

    `x > t` covers the bins up to its cut, `x <= t` those beyond; `x == v` covers all levels but
    one, `x != v` that one:

        bins        n0  n1  n2          rule     leaf
        cut 0         |                 x > t0   n0            x <= t0   n1 + n2
        cut 1             |             x > t1   n0 + n1       x <= t1   n2
        level 1         -               x == v   n0 + n2       x != v    n1

    Where values are missing, each of these comes with the missing ones covered and not covered, and
    there are two rules on being missing. Of two levels, `x == a` and `x != b` are the same: with
    rules that will be printed `inverted` the second is taken, so that all are printed as
    equalities.
    """
    signs = (inverted,) if cube.layout.is_pair else (False, True)
    return _compute_tables(cube, columns, signs=signs, n_missingness=2)


def compute_halves(cube: CountCube, columns: BinnedColumns) -> LeafTables:
    """Compute one half of every split, that of the rows for which its rule is false.

    A rule and its negation split alike, so there are only `x > t`, `x == v` and `x is missing`; of
    two levels the first splits as the second does.
    """
    halves = _compute_tables(cube, columns, signs=(False,), n_missingness=1)
    if not cube.layout.is_pair:
        return halves

    table_shape = halves.tables.shape[1:]
    by_column = halves.tables.reshape(len(cube.columns), -1, *table_shape)
    on_missing = by_column[:, : halves.n_missingness]
    # `smoker == yes`, not `smoker == no`: the second of booleans and such words is the natural one
    n_rules_per_level = len(find_truths_of_missing(cube.layout))
    on_second_level = by_column[:, -n_rules_per_level:]
    kept = np.concatenate((on_missing, on_second_level), axis=1)
    return replace(halves, tables=kept.reshape(-1, *table_shape), first_cut=1)


def _compute_tables(
    cube: CountCube, columns: BinnedColumns, *, signs: Sequence[bool], n_missingness: int
) -> LeafTables:
    """Compute the leaves of all rules on some columns.

    Of the `n_missingness` rules on missing values there are none if no value is missing.
    """
    has_missing = cube.layout.has_missing
    if has_missing:
        by_column = _sum_bins_beside_missing(cube, columns, signs=signs)
        on_missing = _cover_missing(cube)[:, :n_missingness]
        by_column = np.concatenate((on_missing, by_column), axis=1)
    else:
        by_column = _flatten_rules(_sum_bins(cube.counts, cube.layout, signs))

    copies = columns.count_copies(cube.columns)
    return LeafTables(
        columns=cube.columns,
        layout=cube.layout,
        tables=by_column.reshape(-1, *by_column.shape[2:]),
        signs=signs,
        n_copies=None if (copies == 1).all() else copies,
        n_missingness=n_missingness if has_missing else 0,
    )


def _cover_missing(cube: CountCube) -> CountArray:
    """Sum the rows that `x is missing` covers, and those that `x is present` does.

    The axes are (column, rule, outcome, environment).
    """
    present = cube.counts[:, 1:].sum(axis=1, keepdims=True)
    missing = cube.counts[:, :1]
    return np.concatenate((present, missing), axis=1)


def _sum_bins_beside_missing(
    cube: CountCube, columns: BinnedColumns, *, signs: Sequence[bool]
) -> CountArray:
    """Sum the bins that each rule on values covers, missing ones with them or not.

    The axes are (column, rule, outcome, environment).
    """
    missing = cube.counts[:, :1]
    sums = _sum_bins(cube.counts[:, 1:], cube.layout, signs)
    for number, is_true in enumerate(TRUTHS_OF_MISSING):
        if not is_true:  # missing values are covered
            sums[:, :, :, number] += missing[:, :, np.newaxis]

    # No leaf for cuts that narrower columns of a block do not have. Without missing values such a
    # cut covers everything or nothing, and is no candidate anyway.
    n_bins_of_values = columns.count_bins(cube.columns) - 1
    n_cuts = n_bins_of_values if cube.layout.nominal else n_bins_of_values - 1
    for cut in range(int(n_cuts.min()), sums.shape[1]):
        sums[n_cuts <= cut, cut] = 0
    return _flatten_rules(sums)


def _flatten_rules(sums: CountArray) -> CountArray:
    """Make one axis of rules of those of cuts, signs and truths, as `_sum_bins` has them."""
    n_columns, n_cuts, n_signs, n_truths, *table_shape = sums.shape
    return sums.reshape(n_columns, n_cuts * n_signs * n_truths, *table_shape)


def _sum_bins(values: CountArray, layout: Layout, signs: Sequence[bool]) -> CountArray:
    """Sum the bins that each rule covers, of which missing values are none.

    A cut has two parts, of which a rule covers one:

                      first part         second part    covers the first    covers the second
        thresholds    rows up to t       all others     x > t               x <= t
        levels        rows of level v    all others     x != v              x == v

    The axes are (column, cut, sign, truth of missing values, outcome, environment).
    """
    if values.shape[1] == 2 and layout == ORDERED:
        # each of the two rules covers one bin
        return values[:, np.newaxis, : len(signs), np.newaxis]

    if layout.nominal:
        total = values.sum(axis=1, keepdims=True)
        part = values
    else:
        up_to = np.cumsum(values, axis=1)
        total = up_to[:, -1:]
        part = up_to[:, :-1]

    n_columns, n_cuts, *table_shape = part.shape
    n_truths = len(find_truths_of_missing(layout))
    sums = np.empty((n_columns, n_cuts, len(signs), n_truths, *table_shape), dtype=values.dtype)
    for number, negated in enumerate(signs):
        covers_part = negated == layout.nominal
        covered = part if covers_part else total - part
        sums[:, :, number] = covered[:, :, np.newaxis]
    return sums
