"""Thresholds: which values of each feature a rule may cut at.

A feature with few distinct values is cut at each of them; one with many at quantiles of its
values, each an observed value, in a table of many rows at those of a sample (see `sampling`).

A category has a bin for each of its levels; rare ones share one. Where values are missing, they
have the first bin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import COPY_ROWS, MAX_NARROW_BINS, MAX_SURVEYED_LEVELS
from icscm._types import Array, BoolArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import MISSINGNESS, BinnedColumns, BinnedRule, Cut, Layout
from icscm.engine.sampling import is_sampled
from icscm.engine.survey import DATE, Survey
from icscm.engine.threads import run_tasks, split_columns
from icscm.exceptions import IcscmError, Parameter
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.tables import coded, suspicion
from icscm.tables.coded import CodedTable, LevelBins
from icscm.tables.columns import sort_key
from icscm.tables.errors import make_rounded_error, name_columns

# Values sorted at a time to find thresholds: a few megabytes.
_GROUP_VALUES = 2**18


@dataclass(frozen=True)
class Binning(BinnedColumns):
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
        return np.asarray(n_edges + 1 + self.has_missing[features])

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
        elif self.find_layout(cut.feature).nominal:
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
    is_nominal = bins is not None and not bins.is_ordered
    return Layout(is_nominal, is_pair, bool(has_missing[feature]))


@dataclass(frozen=True)
class ColumnPlan:
    """Thresholds for some columns from a scan of some rows, to be confirmed while coding.

    `known[k]` says that those rows held no other values than `edges[k]` and `highest[k]`. In a
    column with missing values, there or anywhere, a threshold of minus infinity comes first, which
    all values but the missing ones exceed.
    """

    columns: IntArray
    edges: list[Array]
    known: BoolArray
    highest: Array

    def select(self, wanted: Sequence[int] | IntArray) -> ColumnPlan:
        """The plan for some of its columns, given by their places in it."""
        edges = [self.edges[k] for k in wanted]
        return ColumnPlan(self.columns[wanted], edges, self.known[wanted], self.highest[wanted])

    def cut_unknown_as(self, sample: ColumnPlan, max_thresholds: int | None) -> ColumnPlan:
        """This plan, from all rows, with the sample's thresholds for columns of many values."""
        at = {int(column): k for k, column in enumerate(sample.columns)}
        edges = list(self.edges)
        for k, column in enumerate(self.columns.tolist()):
            if not self.known[k]:
                found = sample.edges[at[column]], sample.highest[at[column]]
                edges[k] = extend_edges(*found, self.highest[k], max_thresholds)
        return replace(self, edges=edges)


def make_binning(edges: Sequence[Array], table: CodedTable, sampled: bool = False) -> Binning:
    """All thresholds of a table, whose values do not matter, in one array."""
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in edges], out=offsets[1:])
    joined = np.concatenate(edges) + 0  # -0.0 becomes 0.0: rows come in any order
    return Binning(table.names, joined, offsets, sampled, table.find_missing(), table.levels)


def plan_columns(
    X: Array,
    columns: IntArray,
    has_missing: BoolArray,
    rows: Array | slice,
    max_thresholds: int | None,
    n_threads: int,
) -> ColumnPlan:
    """Choose the thresholds of some columns from some rows.

    `has_missing` says which of all columns hold missing values.
    """
    n_rows = len(range(len(X))[rows]) if isinstance(rows, slice) else len(rows)
    n_groups = max(n_threads, len(columns) * n_rows // _GROUP_VALUES)

    def plan_group(part: slice) -> ColumnPlan:
        own = columns[part]
        first, last = int(own[0]), int(own[-1]) + 1
        where: Any = (rows, own) if isinstance(rows, slice) else np.ix_(rows, own)
        if len(own) == last - first:  # neighbours, as nearly always: cheaper to read as a slice
            where = (rows, slice(first, last))
        values = X[where].T.copy()  # a row for each column
        values.sort(axis=1)
        edges, *found = choose_edges(values, max_thresholds)
        for k in np.flatnonzero(has_missing[own]):
            edges[k] = put_missing_first(edges[k])
        return ColumnPlan(own, edges, *found)

    plans = run_tasks(plan_group, split_columns(len(columns), n_groups), n_threads)
    known, highest = (np.concatenate([getattr(e, n) for e in plans]) for n in ("known", "highest"))
    return ColumnPlan(columns, [edges for plan in plans for edges in plan.edges], known, highest)


def plan_levels(table: CodedTable, columns: IntArray, has_missing: BoolArray) -> ColumnPlan:
    """Categories: a bin for each level, whatever the rows hold."""
    dtype = table.values.dtype
    counts = np.array([table.levels[int(j)].n_bins for j in columns], dtype=dtype)
    edges = [np.arange(n - 1, dtype=dtype) for n in counts]
    for k in np.flatnonzero(has_missing[columns]):
        edges[k] = put_missing_first(edges[k])
    return ColumnPlan(columns, edges, np.zeros(len(columns), dtype=np.bool_), counts - 1)


def put_missing_first(edges: Array) -> Array:
    """Edges after one that all values exceed but the missing ones."""
    return np.concatenate((np.array([-np.inf], dtype=edges.dtype), edges))


def choose_edges(
    ordered: Array, max_thresholds: int | None
) -> tuple[list[Array], BoolArray, Array]:
    """Thresholds for columns of these values, a sorted row for each, missing ones last.

    And whether they are all values of the column but the highest; and this one.

    >>> choose_edges(np.array([[1, 1, 2, 5]]), max_thresholds=2)
    ([array([1, 2])], array([ True]), array([5]))
    >>> choose_edges(np.array([[1, 2, 3, 4, 5, 6, 7, 8]]), max_thresholds=3)
    ([array([2, 4, 6])], array([False]), array([8]))
    """
    n, most = ordered.shape  # no more thresholds than values, whatever is allowed
    most = most if max_thresholds is None else min(most, max_thresholds)
    edges, highest = np.empty((n, most + 1), dtype=ordered.dtype), ordered[:, -1:].ravel()
    n_edges, known = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.bool_)
    _kernels.choose_edges(ordered, most, edges, n_edges, known, highest)
    cut = [part[:n].copy() for part, n in zip(edges, n_edges.tolist(), strict=True)]
    return cut, known, highest


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


def describe_survey(survey: Survey, names: tuple[str, ...] | None = None) -> CodedTable:
    """The table as it would be in memory, but without its rows.

    Dates are dropped already, and whole numbers that float64 would round: those can only be
    identifiers, else they are an error.
    """
    levels: dict[int, LevelBins] = {}
    dropped: dict[int, str] = {}
    for j, column in enumerate(survey.columns):
        if column.kind == DATE:
            dropped[j] = suspicion.DATES
        elif column.is_category:
            n_rows = column.values or {}  # nothing where they are too many, see `_choose_from`
            found = sorted(n_rows, key=sort_key)
            in_order = np.array([n_rows[level] for level in found])
            kept, pool = coded.choose_levels(in_order, survey.max_thresholds)
            levels[j] = LevelBins(tuple(found[i] for i in kept), tuple(found[i] for i in pool))
        elif column.is_large and not survey.is_exact:
            if not column.gather_facts(survey.n_rows).is_numbering():
                raise make_rounded_error(name_columns([j], names))
            dropped[j] = suspicion.IDENTIFIER
    has_missing = np.array([column.n_missing > 0 for column in survey.columns], dtype=np.bool_)
    values = np.empty((0, len(survey.columns)), dtype=survey.dtype)
    return CodedTable(values, names, levels, has_missing, dropped)


def find_suspicious_surveyed(survey: Survey, table: CodedTable) -> dict[int, str]:
    """Columns that no rule should be made of, and why, as `suspicion.find_suspicious`.

    `table` is what `describe_survey` made of the survey.
    """
    facts = {}
    for j, column in enumerate(survey.columns):
        if j in table.dropped:
            continue
        copied, is_pooled = None, j in table.levels and table.levels[j].pool
        if survey.n_rows >= COPY_ROWS and not is_pooled:
            if column.copied[0] is not None and len(survey.labels) > 1:
                copied = suspicion.LABEL_COPY
            elif column.copied[1] is not None and len(survey.environments) > 1:
                copied = suspicion.ENVIRONMENT_COPY
        facts[j] = replace(column.gather_facts(survey.n_rows), copied=copied)
    return suspicion.find_reasons(facts, table.dropped)


def find_sampled(survey: Survey, table: CodedTable) -> list[int]:
    """The columns of many values, whose thresholds come from the sampled rows' values."""
    many = [j for j, each in enumerate(survey.columns) if each.is_number and each.values is None]
    return [j for j in many if j not in table.dropped]


def plan_from_survey(survey: Survey, table: CodedTable, sample: Mapping[int, Array]) -> Binning:
    """The thresholds of all columns but those that the table dropped.

    `sample` holds, for each of `find_sampled`'s columns, its values in the sampled rows, in any
    order; NaN where missing.
    """
    most = survey.max_thresholds
    any_sampled = is_sampled(survey.n_rows) and bool(find_sampled(survey, table))
    if any_sampled and (most is None or most >= MAX_NARROW_BINS):
        why = f" would need all values of a column at once; use at most {MAX_NARROW_BINS - 1}"
        raise IcscmError(Parameter("max_thresholds", most), why)
    every = range(len(survey.columns))
    edges = [_choose_from(survey, table, j, sample).astype(survey.dtype) for j in every]
    return make_binning(edges, table, any_sampled)


def _choose_from(survey: Survey, table: CodedTable, j: int, sample: Mapping[int, Array]) -> Array:
    """The thresholds of one column."""
    column = survey.columns[j]
    if j in table.dropped:
        return np.empty(0)
    if column.is_category:
        if column.values is None:
            why = f"{name_columns([j], table.names)} has more than {MAX_SURVEYED_LEVELS:,} levels"
            raise IcscmError(f"{why}, too many to read from pieces; drop it, or group its levels")
        return np.arange(table.levels[j].n_bins - 1)
    if column.values is not None:
        return np.array(sorted(column.values)[:-1], dtype=survey.dtype)
    (edges,), is_few, highest = choose_edges(np.sort(sample[j])[np.newaxis], survey.max_thresholds)
    if is_few[0] and len(sample[j]):  # of a column of many: as `ColumnPlan.cut_unknown_as`
        edges = extend_edges(edges, highest[0], column.highest, survey.max_thresholds)
    return edges
