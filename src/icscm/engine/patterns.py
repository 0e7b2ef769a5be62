"""Joint counts: samples by the truth of several rules at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

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
    counts = np.add.reduceat(table.counts.take(rows, axis=0), starts, axis=0)
    rows = rows[starts]
    ends = np.searchsorted(starts, n_patterns * np.arange(len(ways) + 1)).tolist()
    return (Merged(rows[a:b], counts[a:b]) for a, b in pairwise(ends))


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
