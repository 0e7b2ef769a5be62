"""Joint counts: samples by the truth of several rules at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.engine.counts import PatternTable

# Group numbers are made small again before they pass this, so that counting stays cheap.
_MAX_GROUPS = 2**16
# Rules whose truths fit into one whole number.
_KEY_BITS = 52


def count_patterns(
    truths: Sequence[NDArray[np.bool_]], cells: Array, n_environments: int
) -> PatternTable:
    """Samples by pattern, label and environment, from each rule's truth for each sample.

    `cells` is label * n_environments + environment. Only patterns that occur get a row, so
    a hundred rules need no more rows than there are samples.
    """
    group = np.zeros(len(cells), dtype=np.int64)
    patterns = np.zeros((1, 0), dtype=np.bool_)
    for truth in truths:
        group = 2 * group + truth
        patterns = np.repeat(patterns, 2, axis=0)
        patterns = np.column_stack((patterns, np.arange(len(patterns)) % 2 == 1))
        if len(patterns) > _MAX_GROUPS:
            patterns, group = _drop_unused(patterns, group)
    patterns, group = _drop_unused(patterns, group)
    n_cells = 2 * n_environments
    counts = np.bincount(group * n_cells + cells, minlength=len(patterns) * n_cells)
    shape = (len(patterns), 2, n_environments)
    return PatternTable(patterns, counts.astype(COUNT_DTYPE).reshape(shape))


def merge_patterns(table: PatternTable, kept: Sequence[int]) -> PatternTable:
    """The table over some of the rules: patterns that differ only in the others are added up.

    `kept` are their numbers, ascending.
    """
    first, (counts,) = _merge(table, [kept])
    return PatternTable(table.patterns[first][:, list(kept)], counts)


def merge_counts(table: PatternTable, ways: Sequence[Sequence[int]]) -> list[CountArray]:
    """The counts of the table over some of the rules, for each of several selections."""
    size = max(_MAX_GROUPS // len(table.patterns), 1)
    batches = [ways[start : start + size] for start in range(0, len(ways), size)]
    return [counts for batch in batches for counts in _merge(table, batch)[1]]


def _merge(
    table: PatternTable, ways: Sequence[Sequence[int]]
) -> tuple[NDArray[np.intp], list[CountArray]]:
    """A row of the table for each merged pattern, way after way, and the counts of each way."""
    keys = _make_keys(table.patterns, ways)
    order = np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order[np.newaxis], axis=2)
    is_new = np.ones(order.shape, dtype=np.bool_)
    is_new[:, 1:] = (ordered[:, :, 1:] != ordered[:, :, :-1]).any(axis=0)
    starts, order = np.flatnonzero(is_new), order.ravel()
    counts = np.add.reduceat(table.counts[order], starts, axis=0)
    return order[starts], np.split(counts, np.cumsum(is_new.sum(axis=1))[:-1])


def _make_keys(patterns: BoolArray, ways: Sequence[Sequence[int]]) -> FloatArray:
    """Whole numbers that sort as the kept parts of the patterns do, by (part, way, pattern).

    Products with floats are exact up to their 53 bits, and fast; the first rules are the last part.
    """
    n_rules = patterns.shape[1]
    powers = 2.0 ** (_KEY_BITS - 1 - np.arange(n_rules) % _KEY_BITS)
    weights = np.zeros((len(ways), n_rules))
    for row, kept in zip(weights, map(list, ways), strict=True):
        row[kept] = powers[kept]
    parts = [slice(i, i + _KEY_BITS) for i in range(0, n_rules or 1, _KEY_BITS)]
    return np.stack([weights[:, part] @ patterns[:, part].T for part in reversed(parts)])


def _drop_unused(
    patterns: NDArray[np.bool_], group: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Number the groups that occur from 0, in the same order."""
    used = np.bincount(group, minlength=len(patterns)) > 0
    return patterns[used], (np.cumsum(used) - 1)[group]
