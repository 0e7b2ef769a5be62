"""Thresholds: the values of each column that a rule may cut at.

A column with few distinct values is cut at each of them; one with many at quantiles of its
values, each an observed value, in a table of many rows at those of a sample (see `sampling`).

A category has a bin for each of its levels; rare ones share one. Where values are missing, they
have the first bin.

The thresholds are also called *edges* of the bins. Edges that kernels compare values with may begin
with minus infinity: missing values do not exceed it, so it sets them apart, and all others do.

    values                   plan_columns   the edges of each column, from some rows (`ColumnPlan`)
    edges of all columns     make_binning   what its bins mean (`Binning`)
    a cut at an edge         make_rule      a rule on values, and on bins (make_binned_rule)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._types import Array, BoolArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import MISSINGNESS, BinnedColumns, BinnedRule, Cut, Layout
from icscm.engine.threads import run_tasks, split_columns
from icscm.model.novelty import Range
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.tables.coded import CodedTable, LevelBins

# Values sorted at a time to find thresholds: a few megabytes.
_GROUP_VALUES = 2**18


# With fewer thresholds, more than 5 % of a column's values are beyond the first one of quantiles.
_MIN_EDGES_OF_RANGE = 19


# --- what bins mean ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Extremes:
    """The smallest and the largest number of each column, in the rows that thresholds come from."""

    lowest: Array
    highest: Array


@dataclass(frozen=True)
class Binning(BinnedColumns):
    """The thresholds of all columns, one column after the other in `edges`.

    A value lies in bin b of its column when exactly b of the column's thresholds are
    below it, so bins 0..b hold the values up to threshold b:

        threshold      t0      t1      t2
        bin         0  |   1   |   2   |  3
                   x <= t0           x > t2

    The thresholds of a category lie between the numbers of its levels. Where a column
    `has_missing`, the missing values are bin 0 and all others one further.

    Attributes
    ----------
    names : tuple of str, or None
        The names of the columns; None where they go by their positions.
    edges : array
        The thresholds of the first column, then those of the second, and so on.
    offsets : array of int
        Where the thresholds of each column begin in `edges`, and where the last ones end.
    sampled : bool
        Whether the thresholds of some columns are quantiles of a sample.
    has_missing : array of bool
        Whether each column has missing values.
    levels : mapping of int to LevelBins
        The levels of each category, by its number among the columns.
    extremes : Extremes, optional
        The smallest and the largest number of each column; None where they are not known.
    """

    names: tuple[str, ...] | None
    edges: Array
    offsets: IntArray
    sampled: bool
    has_missing: BoolArray
    levels: Mapping[int, LevelBins]
    extremes: Extremes | None = None

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    def find_edges(self, column: int) -> Array:
        """Find the thresholds of one column, ascending."""
        return self.edges[self.offsets[column] : self.offsets[column + 1]]

    def find_layout(self, column: int) -> Layout:
        return find_layout(column, self.levels, self.has_missing)

    def find_range(self, column: int) -> Range | None:
        """Find the range of a column of numbers.

        Of many thresholds, which are quantiles, the first and the last have nearly all values
        between them. Few of them are too far inside, so that the extremes stand for them.
        """
        if self.extremes is None or column in self.levels:
            return None
        lowest = float(self.extremes.lowest[column]) + 0.0  # -0.0 becomes 0.0: rows in any order
        highest = float(self.extremes.highest[column]) + 0.0
        if not np.isfinite(lowest) or not np.isfinite(highest):  # all are missing
            return None

        edges = self.find_edges(column)
        if len(edges) < _MIN_EDGES_OF_RANGE:
            return Range(lowest=lowest, low=lowest, high=highest, highest=highest)
        return Range(lowest=lowest, low=float(edges[0]), high=float(edges[-1]), highest=highest)

    def count_bins(self, columns: IntArray) -> IntArray:
        n_edges = self.offsets[columns + 1] - self.offsets[columns]
        return np.asarray(n_edges + 1 + self.has_missing[columns])

    def make_rule(self, cut: Cut) -> Rule:
        """Make the rule on values that a cut stands for.

        `cut.cut` is the number of a threshold or of a level of the column, or `MISSINGNESS` for the
        rule that the value is missing.
        """
        column, number = cut.column, cut.cut
        name = None if self.names is None else self.names[column]
        if number == MISSINGNESS:
            return MissingRule(column, name, is_missing=not cut.negated)

        truth_if_missing = cut.missing if self.has_missing[column] else None
        bins = self.levels.get(column)
        if bins is None:
            threshold = self.find_edges(column)[number].item()
            return ThresholdRule(column, name, threshold, not cut.negated, truth_if_missing)

        levels = bins.find_levels(number)
        is_pool = number == len(bins.levels)  # rare levels share the bin after those of the others
        return CategoryRule(column, name, levels, not cut.negated, is_pool, truth_if_missing)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        """Make the rule on bins that a cut stands for, see `make_rule`: which of them satisfy it.

        cut 1 of 4 bins      x > t1              x <= t1 (negated)
        satisfied by bin     0 1 2 3             0 1 2 3
                             F F T T             T T F F
        """
        column, number = cut.column, cut.cut
        # The bins of values. That of missing ones, if there is one, is put before them at the end.
        bins = np.arange(len(self.find_edges(column)) + 1)
        if number == MISSINGNESS:
            satisfied = np.zeros(len(bins), dtype=np.bool_)  # no value is missing
        elif self.find_layout(column).nominal:
            satisfied = bins == number
        else:
            satisfied = bins > number

        if cut.negated:
            satisfied = ~satisfied
        if self.has_missing[column]:
            satisfied = np.append(cut.missing, satisfied)
        return BinnedRule(column, satisfied)


def find_layout(column: int, levels: Mapping[int, LevelBins], has_missing: BoolArray) -> Layout:
    """Find how the bins of one column are to be read."""
    bins = levels.get(column)
    return Layout(
        nominal=bins is not None and not bins.is_ordered,
        is_pair=bins is not None and bins.n_bins == 2,
        has_missing=bool(has_missing[column]),
    )


def make_binning(
    edges: Sequence[Array],
    table: CodedTable,
    sampled: bool = False,
    extremes: Extremes | None = None,
) -> Binning:
    """Put the thresholds of a table's columns into one array; the table's values do not matter."""
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(edges_of_column) for edges_of_column in edges], out=offsets[1:])
    return Binning(
        names=table.names,
        edges=np.concatenate(edges) + 0,  # -0.0 becomes 0.0: rows come in any order
        offsets=offsets,
        sampled=sampled,
        has_missing=table.find_missing(),
        levels=table.levels,
        extremes=extremes,
    )


# --- plans ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnPlan:
    """Thresholds for some columns from a scan of some rows, to be confirmed while coding.

    Attributes
    ----------
    columns : array of int
        The columns.
    edges : list of arrays
        The edges of each column. In a column with missing values, in these rows or in others,
        minus infinity comes first, which all values but the missing ones exceed.
    is_complete : array of bool
        Whether the scanned rows held no other values of the column than its edges and the highest:
        it is cut at each value. If coding meets another value, the plan was wrong.
    lowest, highest : array
        The lowest and the highest scanned value of each column.
    """

    columns: IntArray
    edges: list[Array]
    is_complete: BoolArray
    lowest: Array
    highest: Array

    def select(self, positions: Sequence[int] | IntArray) -> ColumnPlan:
        """Make the plan for some of its columns, given by their positions in it."""
        return ColumnPlan(
            columns=self.columns[positions],
            edges=[self.edges[position] for position in positions],
            is_complete=self.is_complete[positions],
            lowest=self.lowest[positions],
            highest=self.highest[positions],
        )

    def use_sample(self, sample: ColumnPlan, max_thresholds: int | None) -> ColumnPlan:
        """Replace the edges of columns of many values by those of a plan from the sampled rows.

        This plan is from all rows. It alone can tell which columns have many values, but quantiles
        are always those of the sample.
        """
        position_in_sample = {int(column): k for k, column in enumerate(sample.columns)}
        edges = list(self.edges)
        for position, column in enumerate(self.columns.tolist()):
            if self.is_complete[position]:
                continue
            sampled = position_in_sample[column]
            edges[position] = extend_edges(
                sample.edges[sampled],
                highest_sampled=sample.highest[sampled],
                highest=self.highest[position],
                max_thresholds=max_thresholds,
            )
        return replace(self, edges=edges)


def plan_columns(
    X: Array,
    columns: IntArray,
    *,
    has_missing: BoolArray,
    rows: Array | slice,
    max_thresholds: int | None,
    n_threads: int,
) -> ColumnPlan:
    """Choose the thresholds of some columns from some rows.

    `has_missing` says which of all columns hold missing values.
    """
    n_rows = len(range(len(X))[rows]) if isinstance(rows, slice) else len(rows)

    def plan_group(group: slice) -> ColumnPlan:
        columns_of_group = columns[group]
        values = _copy_columns(X, rows, columns_of_group)
        values.sort(axis=1)
        chosen = choose_edges(values, max_thresholds)
        edges = add_missing_edges(chosen.edges, has_missing[columns_of_group])
        return ColumnPlan(
            columns=columns_of_group,
            edges=edges,
            is_complete=chosen.is_complete,
            lowest=chosen.lowest,
            highest=chosen.highest,
        )

    n_groups = max(n_threads, len(columns) * n_rows // _GROUP_VALUES)
    plans = run_tasks(plan_group, split_columns(len(columns), n_groups), n_threads)
    return ColumnPlan(
        columns=columns,
        edges=[edges for plan in plans for edges in plan.edges],
        is_complete=np.concatenate([plan.is_complete for plan in plans]),
        lowest=np.concatenate([plan.lowest for plan in plans]),
        highest=np.concatenate([plan.highest for plan in plans]),
    )


def _copy_columns(X: Array, rows: Array | slice, columns: IntArray) -> Array:
    """Copy some cells of a table (row, column) to an array (column, row)."""
    first = int(columns[0])
    stop = int(columns[-1]) + 1
    are_neighbours = len(columns) == stop - first
    cells: Array
    if are_neighbours:  # as nearly always: cheaper to read as a slice
        cells = X[rows, first:stop]
    elif isinstance(rows, slice):
        cells = X[rows, columns]
    else:
        cells = X[np.ix_(rows, columns)]
    return cells.T.copy()


def plan_levels(table: CodedTable, columns: IntArray, has_missing: BoolArray) -> ColumnPlan:
    """Plan a bin for each level of some categories, whatever the rows hold."""
    dtype = table.values.dtype
    n_bins = np.array([table.levels[int(column)].n_bins for column in columns], dtype=dtype)
    edges = [np.arange(n - 1, dtype=dtype) for n in n_bins]
    return ColumnPlan(
        columns=columns,
        edges=add_missing_edges(edges, has_missing[columns]),
        is_complete=np.zeros(len(columns), dtype=np.bool_),
        lowest=np.zeros_like(n_bins),
        highest=n_bins - 1,
    )


def add_missing_edges(edges: Sequence[Array], has_missing: BoolArray) -> list[Array]:
    """Put minus infinity before the edges of the columns that have missing values."""
    return [
        put_missing_first(edges_of_column) if is_any_missing else edges_of_column
        for edges_of_column, is_any_missing in zip(edges, has_missing.tolist(), strict=True)
    ]


def put_missing_first(edges: Array) -> Array:
    """Return edges after one that all values exceed but the missing ones."""
    return np.concatenate((np.array([-np.inf], dtype=edges.dtype), edges))


# --- edges from values ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ChosenEdges:
    """The edges of some columns, see `ColumnPlan`."""

    edges: list[Array]
    is_complete: BoolArray
    lowest: Array
    highest: Array


def choose_edges(ordered: Array, max_thresholds: int | None) -> ChosenEdges:
    """Choose thresholds for columns of these values: a sorted row for each, missing ones last.

    These are all values but the highest, which cuts nothing off, or quantiles if they are too many.

    >>> chosen = choose_edges(np.array([[1, 1, 2, 5]]), max_thresholds=2)
    >>> chosen.edges, chosen.is_complete, chosen.lowest, chosen.highest
    ([array([1, 2])], array([ True]), array([1]), array([5]))
    >>> choose_edges(np.array([[1, 2, 3, 4, 5, 6, 7, 8]]), max_thresholds=3).edges
    [array([2, 4, 6])]
    """
    n_columns, n_values = ordered.shape
    # no more thresholds than values, whatever is allowed
    limit = n_values if max_thresholds is None else min(n_values, max_thresholds)

    # The compiled loop fills these four arrays. A row of `edges` has room for the most edges; the
    # first `n_edges` of it are used. The highest values are those where none is missing, as yet.
    edges = np.empty((n_columns, limit + 1), dtype=ordered.dtype)
    n_edges = np.empty(n_columns, dtype=np.int64)
    is_complete = np.empty(n_columns, dtype=np.bool_)
    highest = ordered[:, -1:].ravel()
    _kernels.choose_edges(ordered, limit, edges, n_edges, is_complete, highest)

    used_edges = [row[:n].copy() for row, n in zip(edges, n_edges.tolist(), strict=True)]
    return ChosenEdges(
        edges=used_edges,
        is_complete=is_complete,
        lowest=ordered[:, :1].ravel(),  # NaN where all are missing
        highest=highest,
    )


def extend_edges(
    edges: Array, *, highest_sampled: Any, highest: Any, max_thresholds: int | None
) -> Array:
    """Extend a sample's edges where it held few values and the column holds many.

    The sample's highest value is no longer the column's, so it cuts something off.

    >>> extend_edges(np.array([0.0]), highest_sampled=2.0, highest=9.0, max_thresholds=50)
    array([0., 2.])
    """
    are_all_missing = np.isnan(highest_sampled)
    if are_all_missing or highest_sampled >= highest:
        return edges

    extended = np.append(edges, highest_sampled).astype(edges.dtype)
    if max_thresholds is None:
        return extended
    # Minus infinity, where it comes first, is no threshold.
    has_missing_edge = len(edges) > 0 and edges[0] == -np.inf
    return extended[: max_thresholds + int(has_missing_edge)]
