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
    """What a look at the sampled rows says of each column, to be confirmed while coding.

    `edges[j]` are the thresholds; `known[j]` says that the sample held no other values than
    these and `highest[j]`.
    """

    edges: list[Array]
    known: NDArray[np.bool_]
    highest: Array


def make_binning(edges: list[Array], names: tuple[str, ...] | None, sampled: bool) -> Binning:
    """All thresholds in one array."""
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in edges], out=offsets[1:])
    return Binning(names, np.concatenate(edges), offsets, sampled)


def sample_rows(X: Array, n_threads: int) -> NDArray[np.intp] | None:
    """Rows whose values place the quantiles; None when all of them do."""
    n_rows, n_columns = X.shape
    if n_rows <= QUANTILE_SAMPLE:
        return None
    salt = np.random.default_rng(_SAMPLE_SEED).integers(2**64, size=n_columns, dtype=np.uint64)
    hashes = np.empty(n_rows, dtype=np.uint64)

    def hash_part(part: slice) -> None:
        _kernels.hash_rows(X, salt, part.start, part.stop, hashes)

    run_tasks(hash_part, split_evenly(n_rows, n_threads), n_threads)
    return np.sort(np.argpartition(hashes, QUANTILE_SAMPLE)[:QUANTILE_SAMPLE])


def plan_columns(
    X: Array, rows: NDArray[np.intp] | None, max_thresholds: int | None, n_threads: int
) -> ColumnPlan:
    """Choose the thresholds of every column from the given rows (all for None)."""
    n_rows = len(X) if rows is None else len(rows)
    n_groups = max(n_threads, X.size // max(1, len(X)) * n_rows // _GROUP_VALUES)

    def plan_group(part: slice) -> tuple[list[Array], list[bool], Array]:
        columns = X[:, part] if rows is None else X[rows, part]
        return _plan_group(np.ascontiguousarray(columns.T), max_thresholds)

    planned = run_tasks(plan_group, split_columns(X.shape[1], n_groups), n_threads)
    return ColumnPlan(
        edges=[edges for group in planned for edges in group[0]],
        known=np.array([known for group in planned for known in group[1]], dtype=np.bool_),
        highest=np.concatenate([group[2] for group in planned]),
    )


def _plan_group(
    columns: Array, max_thresholds: int | None
) -> tuple[list[Array], list[bool], Array]:
    lowest, highest = np.empty((2, len(columns)), dtype=columns.dtype)
    two_valued = np.empty(len(columns), dtype=np.bool_)
    _kernels.find_extremes(columns, lowest, highest, two_valued)
    planned = [
        (lowest[k : k + (lowest[k] < highest[k])], True)
        if two_valued[k]
        else choose_edges(np.sort(columns[k]), max_thresholds)
        for k in range(len(columns))
    ]
    return [edges for edges, _ in planned], [known for _, known in planned], highest


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
