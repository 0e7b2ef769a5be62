"""Joint counts: samples by the truth of several rules at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE
from icscm._types import Array
from icscm.engine.counts import PatternTable

# Group numbers are made small again before they pass this, so that counting stays cheap.
_MAX_GROUPS = 2**16


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
    keys = np.packbits(reduced, axis=1)  # eight rules to a byte, in the same order
    order = np.lexsort(keys.T[::-1]) if len(kept) else np.arange(len(reduced))
    reduced = reduced[order]
    is_new = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    starts = np.flatnonzero(np.append(True, is_new))
    return PatternTable(reduced[starts], np.add.reduceat(table.counts[order], starts, axis=0))


def _drop_unused(
    patterns: NDArray[np.bool_], group: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Number the groups that occur from 0, in the same order."""
    used = np.bincount(group, minlength=len(patterns)) > 0
    return patterns[used], (np.cumsum(used) - 1)[group]
