"""Counts the tables of sets of columns, each by the levels of its values.

A search over sets counts thousands of tables of the same rows. Sets that begin with the same
columns share the work for these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, CountArray, IntArray
from icscm.engine.binning import choose_edges


@dataclass(eq=False)
class LevelCounts:
    """Counts rows by outcome, environment and the levels of several columns.

    `cells` is outcome * n_environments + environment of each row; `codes[j]` has its level of
    column j, which is one of `n_levels[j]`.
    """

    codes: Sequence[Array]
    n_levels: IntArray
    cells: Array
    n_environments: int

    def __post_init__(self) -> None:
        # The columns of the last table, and the cell of each row in the tables of its first 0, 1,
        # 2, ... columns. The next table begins with those that both have in common.
        self._columns: list[int] = []
        self._cells_by_depth = [self.cells]

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self.codes)

    def count(self, columns: Sequence[int]) -> CountArray:
        """Count the table (outcome and environment, level of the first column, the second, ...).

        With one more column, a row's cell is:    cell = cell before * levels of the column + level
        """
        n_shared = count_shared(self._columns, columns)
        del self._columns[n_shared:]
        del self._cells_by_depth[n_shared + 1 :]
        for column in columns[n_shared:]:
            n_levels = np.int32(self.n_levels[column])
            cells_before = self._cells_by_depth[-1]
            self._cells_by_depth.append(cells_before * n_levels + self.codes[column])
            self._columns.append(column)

        shape = (2 * self.n_environments, *(int(self.n_levels[column]) for column in columns))
        counts = np.bincount(self._cells_by_depth[-1], minlength=math.prod(shape))
        return counts.astype(COUNT_DTYPE, copy=False).reshape(shape)


def make_level_counts(
    table: Array, outcomes: IntArray, environments: IntArray, n_environments: int, max_levels: int
) -> LevelCounts:
    """Replace values by levels: one for each value if these are few, else cut at quantiles."""
    edges_of_columns = choose_edges(np.sort(table.T), max_levels - 1).edges
    codes = [
        np.searchsorted(edges, values).astype(np.min_scalar_type(len(edges)))
        for edges, values in zip(edges_of_columns, table.T, strict=True)
    ]
    n_levels = [len(edges) + 1 for edges in edges_of_columns]
    cells = (outcomes * n_environments + environments).astype(np.int32)
    return LevelCounts(codes, np.array(n_levels, dtype=np.int64), cells, n_environments)


def count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the elements at the beginning that both have in common.

    >>> count_shared((0, 1, 2), (0, 1, 5, 7))
    2
    """
    n_shared = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        n_shared += 1
    return n_shared
