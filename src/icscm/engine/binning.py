"""Thresholds: which values of each feature a rule may cut at.

A feature with few distinct values is cut at each of them; one with many at quantiles of its
values, each an observed value, in a table of many rows at those of a sample (see `sampling`).

A category has a bin for each of its levels; rare ones share one. Where values are missing, they
have the first bin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._types import Array, BoolArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import MISSINGNESS, BinnedRule, Cut, Layout
from icscm.engine.threads import run_tasks, split_columns
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.tables.arrays import reject_infinity
from icscm.tables.coded import CodedTable, LevelBins

# Values sorted at a time when looking for thresholds: a few megabytes.
_GROUP_VALUES = 2**18


@dataclass(frozen=True)
class Binning:
    """The thresholds of all features, one feature after the other in `edges`.

    A value lies in bin b of its feature when exactly b of the feature's thresholds are
    below it, so bins 0..b hold the values up to threshold b:

        threshold      t0      t1      t2
        bin         0  |   1   |   2   |  3
                   x <= t0           x > t2

    The thresholds of a category lie between the numbers of its levels. Where a feature
    `has_missing`, the missing values are bin 0 and all others one further.
    """

    names: tuple[str, ...] | None
    edges: Array
    offsets: IntArray
    sampled: bool
    has_missing: BoolArray
    levels: Mapping[int, LevelBins]

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    def find_edges(self, feature: int) -> Array:
        """The thresholds of one feature, ascending."""
        return self.edges[self.offsets[feature] : self.offsets[feature + 1]]

    def find_layout(self, feature: int) -> Layout:
        return find_layout(feature, self.levels, self.has_missing)

    def count_bins(self, features: IntArray) -> IntArray:
        n_edges = self.offsets[features + 1] - self.offsets[features]
        counts: IntArray = n_edges + 1 + self.has_missing[features]
        return counts

    def make_rule(self, cut: Cut) -> Rule:
        name = None if self.names is None else self.names[cut.feature]
        if cut.cut == MISSINGNESS:
            return MissingRule(cut.feature, name, is_missing=not cut.negated)
        missing = cut.missing if self.has_missing[cut.feature] else None
        bins = self.levels.get(cut.feature)
        if bins is not None:
            levels, is_pool = bins.find_levels(cut.cut), cut.cut == len(bins.levels)
            return CategoryRule(cut.feature, name, levels, not cut.negated, is_pool, missing)
        threshold = self.find_edges(cut.feature)[cut.cut].item()
        return ThresholdRule(cut.feature, name, threshold, not cut.negated, missing)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        values = np.arange(len(self.find_edges(cut.feature)) + 1)
        if cut.cut == MISSINGNESS:
            satisfied = np.full(len(values), cut.negated)
        elif cut.feature in self.levels:
            satisfied = (values == cut.cut) != cut.negated
        else:
            satisfied = (values > cut.cut) != cut.negated
        if self.has_missing[cut.feature]:
            satisfied = np.append(cut.missing, satisfied)
        return BinnedRule(cut.feature, satisfied)


def find_layout(feature: int, levels: Mapping[int, LevelBins], has_missing: BoolArray) -> Layout:
    """How the bins of one feature are to be read."""
    bins = levels.get(feature)
    is_pair = bins is not None and bins.n_bins == 2
    return Layout(bins is not None, is_pair, bool(has_missing[feature]))


@dataclass(frozen=True)
class ColumnPlan:
    """Thresholds for some columns from a look at some rows, to be confirmed while coding.

    `known[k]` says that those rows held no other values than `edges[k]` and `highest[k]`. In a
    column that `has_missing` values, there or anywhere, a threshold of minus infinity comes first,
    which all values but the missing ones exceed.
    """

    columns: IntArray
    edges: list[Array]
    known: BoolArray
    highest: Array
    has_missing: BoolArray

    def select(self, wanted: BoolArray) -> ColumnPlan:
        """The plan for some of its columns."""
        edges = [edges for edges, is_wanted in zip(self.edges, wanted, strict=True) if is_wanted]
        others = self.known[wanted], self.highest[wanted], self.has_missing[wanted]
        return ColumnPlan(self.columns[wanted], edges, *others)

    def cut_unknown_as(self, sample: ColumnPlan, max_thresholds: int | None) -> ColumnPlan:
        """This plan, from all rows, with the sample's thresholds for columns of many values."""
        at = {int(column): k for k, column in enumerate(sample.columns)}
        edges = list(self.edges)
        for k, column in enumerate(self.columns.tolist()):
            if not self.known[k]:
                found = sample.edges[at[column]], sample.highest[at[column]]
                edges[k] = extend_edges(*found, self.highest[k], max_thresholds)
        return replace(self, edges=edges)


def make_binning(
    edges: Sequence[Array],
    names: tuple[str, ...] | None,
    has_missing: BoolArray,
    levels: Mapping[int, LevelBins],
    sampled: bool = False,
) -> Binning:
    """All thresholds in one array."""
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in edges], out=offsets[1:])
    return Binning(names, np.concatenate(edges), offsets, sampled, has_missing, levels)


def plan_columns(
    table: CodedTable,
    columns: IntArray,
    has_missing: BoolArray,
    rows: NDArray[np.intp] | slice,
    max_thresholds: int | None,
    n_threads: int,
) -> ColumnPlan:
    """Choose the thresholds of some columns from some rows.

    `has_missing` says which of all columns are known to hold missing values; more may be found.
    """
    X = table.values
    n_rows = len(range(len(X))[rows]) if isinstance(rows, slice) else len(rows)
    n_groups = max(n_threads, len(columns) * n_rows // _GROUP_VALUES)

    def plan_group(part: slice) -> list[_Planned]:
        values = _read_columns(X, rows, columns[part])
        return _plan_group(values, has_missing[columns[part]], max_thresholds)

    groups = run_tasks(plan_group, split_columns(len(columns), n_groups), n_threads)
    every = [column for group in groups for column in group]
    edges, known, lowest, highest, missing = zip(*every, strict=True)
    if X.dtype.kind == "f" and np.isinf((lowest, highest)).any():
        reject_infinity(X, table.names)
    found = np.array(known, dtype=np.bool_), np.array(highest, dtype=X.dtype)
    return ColumnPlan(columns, list(edges), *found, np.array(missing, dtype=np.bool_))


def _read_columns(X: Array, rows: NDArray[np.intp] | slice, columns: IntArray) -> Array:
    """The values of some rows, one contiguous row for each column."""
    first, last = int(columns[0]), int(columns[-1]) + 1
    if len(columns) == last - first:  # neighbours, as nearly always: cheaper to read as a slice
        return np.ascontiguousarray(X[rows, first:last].T)
    if isinstance(rows, slice):
        return np.ascontiguousarray(X[rows, columns].T)
    return np.ascontiguousarray(X[np.ix_(rows, columns)].T)


def plan_levels(table: CodedTable, columns: IntArray) -> ColumnPlan:
    """Categories: a bin for each level, whatever the rows hold."""
    has_missing = table.find_missing()
    counts = np.array([table.levels[int(j)].n_bins for j in columns], dtype=table.values.dtype)
    edges = [np.arange(n - 1, dtype=table.values.dtype) for n in counts]
    for k, j in enumerate(columns):
        if has_missing[j]:
            edges[k] = put_missing_first(edges[k])
    known = np.zeros(len(columns), dtype=np.bool_)
    return ColumnPlan(columns, edges, known, counts - 1, has_missing[columns])


def put_missing_first(edges: Array) -> Array:
    """Edges after one that all values exceed but the missing ones."""
    return np.concatenate((np.array([-np.inf], dtype=edges.dtype), edges))


class _Planned(NamedTuple):
    """One column of a plan."""

    edges: Array
    known: bool
    lowest: Any
    highest: Any
    has_missing: bool = False


def _plan_group(
    columns: Array, has_missing: BoolArray, max_thresholds: int | None
) -> list[_Planned]:
    """Of each row of `columns`."""
    lowest, highest = np.empty((2, len(columns)), dtype=columns.dtype)
    two_valued, missing = np.empty((2, len(columns)), dtype=np.bool_)
    _kernels.find_extremes(columns, lowest, highest, two_valued, missing)
    missing |= has_missing
    many = np.flatnonzero(~two_valued & ~missing)
    found = dict(zip(many.tolist(), _choose_edges(columns[many], max_thresholds), strict=True))
    planned = []
    for k, column in enumerate(columns):
        extremes = lowest[k], highest[k]
        if missing[k]:
            values = np.sort(column[column == column])
            edges, known = choose_edges(values, max_thresholds)
            low, high = (values[0], values[-1]) if len(values) else (np.nan, np.nan)
            planned.append(_Planned(put_missing_first(edges), known, low, high, True))
        elif two_valued[k]:
            planned.append(_Planned(lowest[k : k + (lowest[k] < highest[k])], True, *extremes))
        else:
            planned.append(_Planned(*found[k], *extremes))
    return planned


def _choose_edges(columns: Array, max_thresholds: int | None) -> list[tuple[Array, bool]]:
    """`choose_edges` of each row, without holding other threads up."""
    if max_thresholds is None or len(columns) == 0:
        return [choose_edges(np.sort(column), max_thresholds) for column in columns]
    ranks = find_ranks(columns.shape[1], max_thresholds)
    edges = np.empty((len(columns), max_thresholds + 1), dtype=columns.dtype)
    n_edges, known = np.empty(len(columns), dtype=np.int64), np.empty(len(columns), dtype=np.bool_)
    columns.sort(axis=1)
    _kernels.choose_all_edges(columns, max_thresholds, ranks, edges, n_edges, known)
    cut = [part[:n].copy() for part, n in zip(edges, n_edges.tolist(), strict=True)]
    return list(zip(cut, known.tolist(), strict=True))


def find_ranks(n: int, max_thresholds: int) -> IntArray:
    """The quantiles among n sorted values."""
    n_parts = max_thresholds + 1
    ranks: IntArray = -(-np.arange(1, n_parts) * n // n_parts) - 1
    return ranks


def choose_edges(ordered: Array, max_thresholds: int | None) -> tuple[Array, bool]:
    """Thresholds for a column of these values, sorted; and whether they are all its values.

    >>> choose_edges(np.array([1, 1, 2, 5]), max_thresholds=2)
    (array([1, 2]), True)
    >>> choose_edges(np.array([1, 2, 3, 4, 5, 6, 7, 8]), max_thresholds=3)
    (array([2, 4, 6]), False)
    """
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    if max_thresholds is None or len(distinct) - 1 <= max_thresholds:
        return distinct[:-1], True
    return cut_at(ordered[find_ranks(len(ordered), max_thresholds)], distinct[-2]), False


def cut_at(quantiles: Array, second: Any) -> Array:
    """Thresholds at quantiles: the greatest value cuts nothing off, so the second stands in."""
    return np.unique(np.minimum(quantiles, second))


def extend_edges(
    edges: Array, sample_highest: Any, highest: Any, max_thresholds: int | None
) -> Array:
    """A sample's thresholds where it held few values and the column holds many.

    The sample's highest value is no longer the column's, so it cuts something off.

    >>> extend_edges(np.array([0.0]), 2.0, 9.0, max_thresholds=50)
    array([0., 2.])
    """
    if sample_highest != sample_highest or sample_highest >= highest:  # NaN: nothing but missing
        return edges
    n_missing = int(len(edges) > 0 and edges[0] == -np.inf)
    most = None if max_thresholds is None else max_thresholds + n_missing
    return np.append(edges, sample_highest).astype(edges.dtype)[:most]
