"""Tests of sets of columns by their tables: within every combination of the columns' values.

The number of sets is exponential, so each must be cheap. The tables of all sets come from few
passes over the rows:

    table of a largest set -> smaller sets' tables -> statistics -> p-values

A largest set is all columns, or each set of as many as may be. Its table is counted from the rows;
every smaller set belongs to exactly one largest set (see `_walk_all`), and its table is a sum over
one column of a table at hand.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from icscm._types import CountArray, FloatArray, IntArray
from icscm.engine.clusters import ClusterPatterns, find_pairs
from icscm.engine.levels import LevelCounts, count_shared
from icscm.exceptions import IcscmError
from icscm.search.sets import MAX_COUNTED, CandidateSet, count_sets
from icscm.stats.design_effects import compute_leaf_design_effects
from icscm.stats.independence import (
    PEARSON,
    GTest,
    compute_bic,
    compute_conditional,
    compute_upper_tail,
)

# The most sets that are tested, a minute or two of work: as many as all sets of so many columns.
MAX_COLUMNS: Final = 20
MAX_SETS: Final = 2**MAX_COLUMNS
# Cells of the largest table counted: 128 MiB. The walk down holds up to twice as much besides.
MAX_TABLE_CELLS: Final = 2**24
# Cells whose statistics are computed together: many for each call, and yet few enough to be in the
# processor's cache.
_BATCH_CELLS = 2**16
# Pearson without Yates' correction: corrected strata would add up to a conservative test.
SET_TESTS: Final = {"g": GTest(), "chi2": PEARSON}


@dataclass(frozen=True, eq=False)
class TableClusters:
    """Rows that belong together: the cluster and the outcome of each row.

    The clusters of environment e are numbered from `starts[e]` on.
    """

    codes: IntArray
    starts: IntArray
    outcomes: IntArray

    def measure_design_effects(self, counts: LevelCounts, table: "SetTable") -> FloatArray:
        """Measure by what factor clusters inflate the statistic of each stratum of a set."""
        n_strata = len(table.strata)
        n_clusters = int(self.starts[-1])
        stratum_of_row = number_strata(counts, table.columns)
        pairs = find_pairs(stratum_of_row, self.codes, n_seconds=n_clusters)
        is_positive = self.outcomes == 1
        positives = np.bincount(pairs.number_of_row[is_positive], minlength=len(pairs))
        negatives = np.bincount(pairs.number_of_row[~is_positive], minlength=len(pairs))
        rows_of_pairs = ClusterPatterns(
            patterns=pairs.first,
            clusters=pairs.second,
            counts=np.column_stack((negatives, positives)),
            starts=self.starts,
        )
        moments = rows_of_pairs.count_moments(np.arange(n_strata), n_strata)
        return compute_leaf_design_effects(table.strata, moments)


def number_strata(counts: LevelCounts, columns: CandidateSet) -> IntArray:
    """Number the stratum of each row as `SetTable.strata` does: the last column varies fastest."""
    stratum_of_row = np.zeros(len(counts.cells), dtype=np.int64)
    for column in columns:
        stratum_of_row = stratum_of_row * int(counts.n_levels[column]) + counts.codes[column]
    return stratum_of_row


def make_table_clusters(
    groups: IntArray, environments: IntArray, outcomes: IntArray, n_environments: int
) -> TableClusters:
    """Make clusters of the group, the environment and the outcome of each row."""
    pairs = find_pairs(environments, groups, n_seconds=int(groups.max(initial=0)) + 1)
    return TableClusters(
        codes=pairs.number_of_row,
        starts=np.searchsorted(pairs.first, np.arange(n_environments + 1)),
        outcomes=outcomes,
    )


class SetTable(NamedTuple):
    """The rows by the values of a set of columns (stratum), outcome and environment."""

    columns: CandidateSet
    strata: CountArray


@dataclass(frozen=True)
class TableTester:
    """Tests sets of columns within the combinations of their values.

    Statistics and degrees of freedom add up over the combinations, the strata. With nominal `dof`
    every possible stratum counts (K - 1) degrees of freedom, also those without information. With
    clusters, the statistic of a set is divided by the mean design effect of its strata.
    """

    counts: LevelCounts
    test: str
    dof: str
    clusters: TableClusters | None = None

    def compute_p_values(self, max_size: int) -> dict[CandidateSet, float]:
        """Compute the p-value of every set of up to so many columns."""
        p_values: dict[CandidateSet, float] = {}
        for batch in _make_batches(_walk_all(self.counts, max_size)):
            sets = [table.columns for table in batch]
            tests = compute_conditional(
                [table.strata for table in batch],
                SET_TESTS[self.test],
                effects=self._measure_design_effects(batch),
            )
            if self.dof == "nominal":
                batch_p_values = compute_upper_tail(tests.statistics, self._count_nominal_dof(sets))
            else:
                batch_p_values = tests.p_values
            p_values |= zip(sets, batch_p_values.tolist(), strict=True)
        return p_values

    def _measure_design_effects(self, batch: Sequence[SetTable]) -> list[FloatArray] | None:
        """Measure the design effects of the strata of each set; None if rows are independent."""
        if self.clusters is None:
            return None
        return [self.clusters.measure_design_effects(self.counts, table) for table in batch]

    def _count_nominal_dof(self, sets: Iterable[CandidateSet]) -> IntArray:
        """Count the degrees of freedom of sets as if all their combinations of values occurred."""
        n_strata = [math.prod(self.counts.n_levels[list(columns)]) for columns in sets]
        return np.array(n_strata) * (self.counts.n_environments - 1)

    def compute_bics(self, sets: Iterable[CandidateSet]) -> dict[CandidateSet, float]:
        """Compute the BIC of the outcome given each of some sets.

        Their tables are counted again: as a rule few sets are accepted, and the tables of all sets
        would take much memory.
        """
        return {columns: self._compute_bic(columns) for columns in sets}

    def _compute_bic(self, columns: CandidateSet) -> float:
        """Compute the BIC of the outcome given a set of columns."""
        cells = self.counts.count(columns)
        # The axes are (outcome and environment, level of the first column, of the second, ...).
        by_stratum = cells.reshape(2, self.counts.n_environments, -1)
        strata = np.moveaxis(by_stratum, -1, 0)  # (stratum, outcome, environment)
        [bic] = compute_bic([strata])
        return float(bic)


def check_affordable(counts: LevelCounts, size: int, max_set_size: int | None) -> None:
    """Raise if the tests of sets of up to `size` columns would take hours or exceed the memory.

    There may be too many sets, or the table of the largest may have too many cells. `max_set_size`
    is what a user asked for, if anything.
    """
    n_columns = counts.n_features
    n_sets = count_sets(n_columns, size)
    if n_sets > MAX_SETS:
        raise IcscmError(
            f"{n_columns:,} features make {_describe_n_sets(n_sets)} sets "
            f"{_describe_limit(size, max_set_size)}to test, more than "
            f"{MAX_SETS:,} (all sets of {MAX_COLUMNS} features); screen the features first"
            f"{_suggest_size(counts, size)}"
        )

    n_cells = _count_cells(counts, size)
    if n_cells > MAX_TABLE_CELLS:
        raise IcscmError(
            f"the joint table of {size} features would have {n_cells:,} cells, more than "
            f"{MAX_TABLE_CELLS:,}; screen the features first, choose a smaller max_levels"
            f"{_suggest_size(counts, size)}"
        )


def _describe_n_sets(n_sets: int) -> str:
    """Write a number of sets, which are counted up to `MAX_COUNTED` only."""
    return f"{n_sets:,}" if n_sets < MAX_COUNTED else "more than 10**15"


def _describe_limit(size: int, max_set_size: int | None) -> str:
    """Write the size that sets are limited to, if a user limited it."""
    return "" if max_set_size is None else f"of up to {size} "


def _count_cells(counts: LevelCounts, size: int) -> int:
    """Count the cells of the largest table that a set of this size can have."""
    most_levels: list[int] = sorted(counts.n_levels.tolist(), reverse=True)[:size]
    return 2 * counts.n_environments * math.prod(most_levels)


def _suggest_size(counts: LevelCounts, size: int) -> str:
    """Suggest the largest `max_set_size` below this size that can be afforded, in words."""
    for smaller in range(min(size - 1, MAX_COLUMNS), 0, -1):
        n_sets = count_sets(counts.n_features, smaller)
        if n_sets <= MAX_SETS and _count_cells(counts, smaller) <= MAX_TABLE_CELLS:
            return f", or set max_set_size={smaller} or less"
    return ""


def _walk_all(counts: LevelCounts, size: int) -> Iterator[SetTable]:
    """Yield every set of up to `size` columns with its table.

    They are visited by largest sets, those with `size` columns. Each smaller set belongs to the
    largest set made from it by adding the first of the columns that it lacks. So the largest set
    that has the columns 0 .. r - 1 and lacks r owns what is left of it after taking out any of
    these r, which are its *free* columns: 2**r sets.
    """
    all_columns = range(counts.n_features)
    for columns in combinations(all_columns, size):
        table = counts.count(columns)  # (outcome and environment, level of column 0, of 1, ...)
        n_free = count_shared(columns, all_columns)
        cells = table.reshape(*table.shape[: n_free + 1], -1)
        for kept, kept_cells in _walk(columns[:n_free], columns[n_free:], cells):
            yield SetTable(kept, strata=kept_cells.T.reshape(-1, 2, counts.n_environments))


def _walk(
    free: CandidateSet, kept: CandidateSet, cells: CountArray
) -> Iterator[tuple[CandidateSet, CountArray]]:
    """Yield the cells of each set that keeps or leaves out each free column.

    `cells` is (outcome and environment, level of free column 0, of 1, ..., stratum of the columns
    that are kept). The last free column is kept, so its levels become strata,

        (2 K, L0, L1, P)  ->  (2 K, L0, L1 * P)

    or left out by summing over it, until none is free.
    """
    if not free:
        yield kept, cells
        return

    others_free = free[:-1]
    levels_as_strata = cells.reshape(*cells.shape[:-2], -1)
    yield from _walk(others_free, (free[-1], *kept), levels_as_strata)

    summed_over_levels = cells.sum(axis=-2)
    yield from _walk(others_free, kept, summed_over_levels)


def _make_batches(tables: Iterable[SetTable]) -> Iterator[list[SetTable]]:
    """Yield lists of tables with at least `_BATCH_CELLS` cells together, the last with fewer."""
    batch: list[SetTable] = []
    n_cells = 0
    for table in tables:
        batch.append(table)
        n_cells += table.strata.size
        if n_cells >= _BATCH_CELLS:
            yield batch
            batch = []
            n_cells = 0
    if batch:
        yield batch
