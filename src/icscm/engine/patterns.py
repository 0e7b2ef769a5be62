"""Joint counts: samples by the truth of several rules at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, CountArray
from icscm.engine import _kernels
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
    patterns, n_new = np.zeros((1, 0), dtype=np.bool_), 0
    for truth in truths:
        group <<= 1
        group |= truth
        n_new += 1
        if len(patterns) << n_new > _MAX_GROUPS:
            patterns, group = _drop_unused(_append_rules(patterns, n_new), group)
            n_new = 0
    patterns, group = _drop_unused(_append_rules(patterns, n_new), group)
    n_cells = 2 * n_environments
    counts = np.bincount(group * n_cells + cells, minlength=len(patterns) * n_cells)
    shape = (len(patterns), 2, n_environments)
    return PatternTable(patterns, counts.astype(COUNT_DTYPE).reshape(shape))


def _append_rules(patterns: BoolArray, n_rules: int) -> BoolArray:
    """Each of the patterns with each of those that some more rules could have."""
    more = np.arange(2**n_rules)[:, np.newaxis] >> np.arange(n_rules)[::-1] & 1 == 1
    each = np.repeat(patterns, len(more), axis=0)
    return np.column_stack((each, np.tile(more, (len(patterns), 1))))


class Merged(NamedTuple):
    """Patterns that are alike in some of the rules, added up: one row of each, and the counts."""

    rows: NDArray[np.intp]
    counts: CountArray


def merge_patterns(table: PatternTable, ways: Sequence[Sequence[int]]) -> list[Merged]:
    """The table over some of the rules, for each of several selections, ascending."""
    size = max(_MAX_GROUPS // len(table.patterns), 1)
    batches = [ways[start : start + size] for start in range(0, len(ways), size)]
    return [merged for batch in batches for merged in _merge(table, batch)]


def select_patterns(table: PatternTable, rules: Sequence[int], merged: Merged) -> PatternTable:
    """What was merged over some of the rules as a table of these."""
    return PatternTable(table.patterns[merged.rows][:, list(rules)], merged.counts)


def _merge(table: PatternTable, ways: Sequence[Sequence[int]]) -> Iterator[Merged]:
    keys = _make_keys(table.patterns, ways)
    order = np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], axis=1, kind="stable")
    n_patterns, rows = len(table.patterns), order.ravel()
    at = (order + n_patterns * np.arange(len(ways))[:, np.newaxis]).ravel()
    ordered = keys.reshape(len(keys), -1).take(at, axis=1)
    is_new = np.ones(len(at), dtype=np.bool_)
    is_new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    is_new[::n_patterns] = True  # where the next way begins
    starts = np.flatnonzero(is_new)
    counts = np.empty((len(starts), *table.counts.shape[1:]), dtype=COUNT_DTYPE)
    _kernels.add_groups(table.counts, rows, starts, counts)
    rows = rows[starts]
    ends = np.searchsorted(starts, n_patterns * np.arange(len(ways) + 1)).tolist()
    return (Merged(rows[a:b], counts[a:b]) for a, b in pairwise(ends))


def _make_keys(patterns: BoolArray, ways: Sequence[Sequence[int]]) -> NDArray[Any]:
    """Whole numbers that sort as the kept parts of the patterns do, by (part, way, pattern)."""
    is_kept = np.zeros((len(ways), patterns.shape[1]), dtype=np.bool_)
    for row, kept in zip(is_kept, map(list, ways), strict=True):
        row[kept] = True
    keys: NDArray[Any] = _pack(patterns)[:, np.newaxis] & _pack(is_kept)[:, :, np.newaxis]
    return keys


def _pack(bits: BoolArray) -> NDArray[Any]:
    """Rows of bits as whole numbers that sort as they do, by (part, row); the first are last.

    Numbers of two bytes, if these are enough, are sorted in much less time.
    """
    packed = np.packbits(bits, axis=1)
    width = 2 if packed.shape[1] <= 2 else 8
    n_bytes = -(-max(packed.shape[1], 1) // width) * width
    filled = np.zeros((len(bits), n_bytes), dtype=np.uint8)
    filled[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(filled.view(f">u{width}").T[::-1], dtype=f"=u{width}")


def _drop_unused(
    patterns: NDArray[np.bool_], group: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Number the groups that occur from 0, in the same order."""
    used = np.bincount(group, minlength=len(patterns)) > 0
    return patterns[used], (np.cumsum(used) - 1)[group]
