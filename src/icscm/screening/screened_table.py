"""The table that is screened: bins of its columns, environments, and rows that belong together.

A screen reads no single values: every column was cut into bins by a source of rows
(`icscm.engine.counts.RowSource`), which also pools the rare levels of categories. This module
copies the bins into one array, with the rows in the order of the user's table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine.counts import RowSource
from icscm.screening.boosting import BinnedRows
from icscm.screening.outcomes import Environments

# Bins are bytes.
MAX_BINS: Final = 256


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows that belong together within an environment, such as the visits of a patient.

    `numbers` has the cluster of each row, `environments` the environment of each cluster.
    """

    numbers: IntArray
    environments: IntArray

    def take(self, rows: Array) -> "Clusters":
        """Return the clusters of some rows, numbered in the order of these."""
        import pandas  # slow to import

        numbers, kept = pandas.factorize(self.numbers[rows])
        return Clusters(numbers=numbers.astype(np.int64), environments=self.environments[kept])


@dataclass(frozen=True, eq=False)
class ScreenedTable:
    """The columns of a table in bins, with what is known of its rows.

    Attributes
    ----------
    columns : BinnedRows
        The bins of all columns; a constant column has one bin.
    has_missing : array of bool, shape (n_columns,)
        Whether bin 0 of a column holds its missing values.
    places : Environments
        The environment of each row.
    clusters : Clusters or None
        Rows that belong together; None if each row stands for itself.
    is_weighted : bool
        Whether the rows have weights that differ.
    """

    columns: BinnedRows
    has_missing: BoolArray
    places: Environments
    clusters: Clusters | None = None
    is_weighted: bool = False
    names: Sequence[str | int] = field(default=())

    @property
    def n_columns(self) -> int:
        return len(self.columns.bins)

    @property
    def n_rows(self) -> int:
        return len(self.places.numbers)

    def count_bins(self, column: int) -> IntArray:
        """Count the rows of a column by (environment, bin)."""
        n_bins = int(self.columns.n_bins[column])
        cells = self.places.numbers * n_bins + self.columns.bins[column]
        counts = np.bincount(cells, minlength=self.places.count * n_bins)
        return counts.reshape(self.places.count, n_bins)

    def compute_shares(self, column: int) -> FloatArray:
        """Return the share of each bin of a column among the rows of an environment."""
        counts = self.count_bins(column)
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))

    def take(self, rows: Array) -> "ScreenedTable":
        """Return some of the rows, or all in another order."""
        clusters = None if self.clusters is None else self.clusters.take(rows)
        return ScreenedTable(
            columns=BinnedRows(
                bins=np.ascontiguousarray(self.columns.bins[:, rows]),
                n_bins=self.columns.n_bins,
                is_nominal=self.columns.is_nominal,
            ),
            has_missing=self.has_missing,
            places=self.places.take(rows),
            clusters=clusters,
            is_weighted=self.is_weighted,
            names=self.names,
        )


def read_table(
    source: RowSource,
    *,
    names: Sequence[str | int],
    groups: IntArray | None,
    is_weighted: bool,
    columns: Sequence[int] | None = None,
) -> ScreenedTable:
    """Read the bins of columns from a source that has its rows in this process.

    `groups` has the number of the group of each row, in the order of the table; `columns` are those
    that can be cut, by default all that the source knows. Other columns are constant.
    """
    rows = source.rows
    assert rows is not None, "a screen needs the rows in this process"
    table_order = rows.list_in_table_order()
    environments = rows.list_cells().environments[table_order].astype(np.int64)
    places = Environments(environments, len(source.environments))

    n_columns = len(names)
    bins = np.zeros((n_columns, len(table_order)), dtype=np.uint8)
    n_bins = np.ones(n_columns, dtype=np.int64)
    is_nominal = np.zeros(n_columns, dtype=np.bool_)
    has_missing = np.zeros(n_columns, dtype=np.bool_)
    for column in columns if columns is not None else rows.list_columns().tolist():
        layout = source.columns.find_layout(column)
        bins_of_column = rows.read_bins(column)[table_order]
        is_nominal[column] = layout.nominal
        has_missing[column] = layout.has_missing
        highest = int(bins_of_column.max(initial=0))
        if highest >= MAX_BINS:  # the last bins share one: the rarest levels of a category
            bins_of_column = np.minimum(bins_of_column, MAX_BINS - 1)
        bins[column] = bins_of_column
        n_bins[column] = min(highest, MAX_BINS - 1) + 1
    return ScreenedTable(
        columns=BinnedRows(bins=bins, n_bins=n_bins, is_nominal=is_nominal),
        has_missing=has_missing,
        places=places,
        clusters=None if groups is None else find_clusters(groups, places),
        is_weighted=is_weighted,
        names=names,
    )


def find_clusters(groups: IntArray, places: Environments) -> Clusters:
    """Number the groups within each environment: a group in two of them makes two clusters."""
    n_groups = int(groups.max(initial=0)) + 1
    keys, numbers = np.unique(places.numbers * n_groups + groups, return_inverse=True)
    return Clusters(numbers=numbers, environments=keys // n_groups)


def merge_bins(table: ScreenedTable, column: int, *, max_bins: int) -> Array:
    """Return the bins of a numeric column merged to at most `max_bins` of about as many rows.

    Missing values keep their bin, and so do the levels of a category.
    """
    bins = table.columns.bins[column]
    n_bins = int(table.columns.n_bins[column])
    first = int(table.has_missing[column])
    if table.columns.is_nominal[column] or n_bins - first <= max_bins:
        return np.asarray(bins)

    n_rows = np.bincount(bins, minlength=n_bins)[first:]
    middles = n_rows.cumsum() - n_rows / 2
    merged = np.minimum((middles / n_rows.sum() * max_bins).astype(np.int64), max_bins - 1)
    number_of_bin = np.zeros(n_bins, dtype=np.uint8)
    number_of_bin[first:] = np.unique(merged, return_inverse=True)[1] + first
    return np.asarray(number_of_bin[bins])
