"""Joint counts: samples by the truth of several rules at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, FloatArray
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
    """The table over some of the rules: patterns that differ only in the others are added up."""
    reduced = table.patterns[:, list(kept)]
    keys = _make_keys(reduced)
    order = np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    ordered = keys[:, order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    starts = np.flatnonzero(is_new)
    merged = np.add.reduceat(table.counts[order], starts, axis=0)
    return PatternTable(reduced[order[starts]], merged)


def _make_keys(patterns: NDArray[np.bool_]) -> FloatArray:
    """Whole numbers that sort as the patterns do, a row for so many rules; the last is the first.

    Products with floats are exact up to their 53 bits, and fast.
    """
    parts = [patterns[:, i : i + _KEY_BITS] for i in range(0, patterns.shape[1] or 1, _KEY_BITS)]
    return np.stack([part @ 2.0 ** np.arange(part.shape[1])[::-1] for part in reversed(parts)])


def _drop_unused(
    patterns: NDArray[np.bool_], group: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Number the groups that occur from 0, in the same order."""
    used = np.bincount(group, minlength=len(patterns)) > 0
    return patterns[used], (np.cumsum(used) - 1)[group]
