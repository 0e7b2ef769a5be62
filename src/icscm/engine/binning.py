"""Thresholds: which values of each feature a rule may cut at.

A feature with few distinct values is cut at each of them; one with many at quantiles of its
values, each an observed value. In a table of more than `QUANTILE_SAMPLE` rows the quantiles
come from a sample of that size. Rows enter it by a hash of their content, so that the
sample, and with it the model, depends neither on the order of the rows nor on how they are
cut into pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import QUANTILE_SAMPLE
from icscm.engine import _kernels
from icscm.engine.counts import BinnedRule, Cut
from icscm.engine.threads import run_tasks, split_columns, split_evenly
from icscm.rules import ThresholdRule

Array = NDArray[Any]

# Values sorted at a time when looking for thresholds: a few megabytes.
_GROUP_VALUES = 2**18
# Seeds the hash that picks the sample; any number would do, but always the same.
_SAMPLE_SEED = 20250721
# Odd numbers with mixed bits.
_MULTIPLIERS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0x9E3779B97F4A7C15))


@dataclass(frozen=True)
class Binning:
    """The thresholds of all features, one feature after the other in `edges`.

    A value lies in bin b of its feature when exactly b of the feature's thresholds are
    below it, so bins 0..b hold the values up to threshold b:

        threshold      t0      t1      t2
        bin         0  |   1   |   2   |  3
                   x <= t0           x > t2
    """

    names: tuple[str, ...] | None
    edges: Array
    offsets: NDArray[np.int64]
    sampled: bool

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    def find_edges(self, feature: int) -> Array:
        """The thresholds of one feature, ascending."""
        return self.edges[self.offsets[feature] : self.offsets[feature + 1]]

    def make_rule(self, cut: Cut) -> ThresholdRule:
        threshold = self.edges[self.offsets[cut.feature] + cut.cut].item()
        name = None if self.names is None else self.names[cut.feature]
        return ThresholdRule(cut.feature, name, threshold, above=not cut.below)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        n_bins = len(self.find_edges(cut.feature)) + 1
        return BinnedRule(cut.feature, (np.arange(n_bins) <= cut.cut) == cut.below)


@dataclass(frozen=True)
class ColumnPlan:
    """Thresholds for some columns from a look at some rows, to be confirmed while coding.

    `known[k]` says that those rows held no other values than `edges[k]` and `highest[k]`.
    """

    columns: NDArray[np.int64]
    edges: list[Array]
    known: NDArray[np.bool_]
    highest: Array

    def select(self, wanted: NDArray[np.bool_]) -> ColumnPlan:
        """The plan for some of its columns."""
        edges = [edges for edges, is_wanted in zip(self.edges, wanted, strict=True) if is_wanted]
        return ColumnPlan(self.columns[wanted], edges, self.known[wanted], self.highest[wanted])


def make_binning(edges: list[Array], names: tuple[str, ...] | None, sampled: bool) -> Binning:
    """All thresholds in one array."""
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in edges], out=offsets[1:])
    return Binning(names, np.concatenate(edges), offsets, sampled)


def sample_rows(X: Array, n_threads: int) -> NDArray[np.intp]:
    """The `QUANTILE_SAMPLE` rows whose values place the quantiles."""
    hashes = _hash_rows(X, n_threads)
    ordered = np.sort(hashes)
    if (ordered[1:] == ordered[:-1]).any():
        hashes = _tell_copies_apart(hashes)
        ordered = np.sort(hashes)
    return np.flatnonzero(hashes <= ordered[QUANTILE_SAMPLE - 1])[:QUANTILE_SAMPLE]


def _hash_rows(X: Array, n_threads: int) -> NDArray[np.uint64]:
    """A hash of each row's values, the same for integers and for floats of equal value."""
    hashes = np.zeros(len(X), dtype=np.uint64)
    for number, values in enumerate(_split_exactly(X)):
        rng = np.random.default_rng((_SAMPLE_SEED, number))
        salt = np.asarray(rng.integers(2**64, size=X.shape[1], dtype=np.uint64))
        hashes += _hash_floats(values, salt, n_threads)
    return hashes


def _hash_floats(X: Array, salt: NDArray[np.uint64], n_threads: int) -> NDArray[np.uint64]:
    hashes = np.empty(len(X), dtype=np.uint64)

    def hash_part(rows: slice) -> None:
        _kernels.hash_rows(X, salt, rows.start, rows.stop, hashes)

    run_tasks(hash_part, split_evenly(len(X), n_threads), n_threads)
    return hashes


def _split_exactly(X: Array) -> list[Array]:
    """X, or two parts of integers that float64 cannot hold: what it rounds to, and the rest."""
    if X.dtype.kind == "f" or X.dtype.itemsize < 8:
        return [X]
    limit = 2**53
    if X.max(initial=0) <= limit and (X.dtype.kind == "u" or X.min(initial=0) >= -limit):
        return [X]
    low_bits = X & X.dtype.type(0xFFFF)
    return [X - low_bits, low_bits]


def _tell_copies_apart(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """New hashes from the old and the number among equal ones: 0 for the first copy, 1, ...

    Else all copies of a row would enter the sample together or not at all, and a value that
    half of the rows have could fill it. Which copy gets which number makes no difference.
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    first = np.flatnonzero(is_first)
    number = np.arange(len(ordered)) - np.repeat(first, np.diff(np.append(first, len(ordered))))
    mixed = (ordered ^ (number.astype(np.uint64) * _MULTIPLIERS[0])) * _MULTIPLIERS[1]
    apart = np.empty_like(hashes)
    apart[order] = mixed ^ (mixed >> np.uint64(32))
    return apart


def plan_columns(
    X: Array,
    columns: NDArray[np.int64],
    rows: NDArray[np.intp] | slice,
    max_thresholds: int | None,
    n_threads: int,
) -> ColumnPlan:
    """Choose the thresholds of some columns from some rows."""
    n_rows = len(range(len(X))[rows]) if isinstance(rows, slice) else len(rows)
    n_groups = max(n_threads, len(columns) * n_rows // _GROUP_VALUES)

    def plan_group(part: slice) -> list[tuple[Array, bool, Any]]:
        return _plan_group(_read_columns(X, rows, columns[part]), max_thresholds)

    groups = run_tasks(plan_group, split_columns(len(columns), n_groups), n_threads)
    planned = [column for group in groups for column in group]
    return ColumnPlan(
        columns=columns,
        edges=[edges for edges, _, _ in planned],
        known=np.array([known for _, known, _ in planned], dtype=np.bool_),
        highest=np.array([highest for _, _, highest in planned], dtype=X.dtype),
    )


def _read_columns(X: Array, rows: NDArray[np.intp] | slice, columns: NDArray[np.int64]) -> Array:
    """The values of some rows, one contiguous row for each column."""
    first, last = int(columns[0]), int(columns[-1]) + 1
    if len(columns) == last - first:  # neighbours, as nearly always: cheaper to read as a slice
        return np.ascontiguousarray(X[rows, first:last].T)
    if isinstance(rows, slice):
        return np.ascontiguousarray(X[rows, columns].T)
    return np.ascontiguousarray(X[np.ix_(rows, columns)].T)


def _plan_group(columns: Array, max_thresholds: int | None) -> list[tuple[Array, bool, Any]]:
    """(edges, known, highest) of each row of `columns`."""
    lowest, highest = np.empty((2, len(columns)), dtype=columns.dtype)
    two_valued = np.empty(len(columns), dtype=np.bool_)
    _kernels.find_extremes(columns, lowest, highest, two_valued)
    planned = [
        (lowest[k : k + (lowest[k] < highest[k])], True)
        if two_valued[k]
        else choose_edges(np.sort(columns[k]), max_thresholds)
        for k in range(len(columns))
    ]
    return [(edges, known, top) for (edges, known), top in zip(planned, highest, strict=True)]


def choose_edges(ordered: Array, max_thresholds: int | None) -> tuple[Array, bool]:
    """Thresholds for a column of these values, sorted; and whether they are all its values.

    >>> choose_edges(np.array([1, 1, 2, 5]), max_thresholds=2)
    (array([1, 2]), True)
    >>> choose_edges(np.array([1, 2, 3, 4, 5, 6, 7, 8]), max_thresholds=3)
    (array([2, 4, 6]), False)
    """
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if max_thresholds is None or len(distinct) - 1 <= max_thresholds:
        return distinct[:-1], True
    n_parts = max_thresholds + 1
    ranks = -(-np.arange(1, n_parts) * len(ordered) // n_parts) - 1
    # the greatest value cuts nothing off; the one below it stands in where it was picked
    picks = np.minimum(ordered[ranks], distinct[-2])
    return np.unique(picks), False
