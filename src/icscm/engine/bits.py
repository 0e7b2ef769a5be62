"""Tables of zeros and ones, dense or sparse, straight to bits: nothing to plan, nothing to bin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm._constants import BINARY_LOOK_ROWS, MIN_LANES, MIN_THREADED_CELLS
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.binning import Binning
from icscm.engine.copies import CollapsedMap, find_copies
from icscm.engine.counts import ORDERED, BinnedRule, CandidateMap, Cut, Layout
from icscm.engine.rows import Rows
from icscm.engine.stores import BitStore
from icscm.engine.threads import run_tasks, split_columns
from icscm.exceptions import IcscmError
from icscm.model.rules import PresenceRule, Rule
from icscm.tables.coded import CodedTable
from icscm.tables.columns import as_plain_numbers


class NotBinaryError(IcscmError):
    """Other numbers where zeros and ones were expected."""


class PresenceMap:
    """The candidates of features that are present or absent: two bins, absent first."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names = names

    def make_rule(self, cut: Cut) -> Rule:
        name = None if self._names is None else self._names[cut.feature]
        return PresenceRule(cut.feature, name, present=not cut.negated)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        return BinnedRule(cut.feature, np.array([cut.negated, not cut.negated]))

    def find_layout(self, feature: int) -> Layout:  # noqa: ARG002 (all have the same)
        return ORDERED

    def count_bins(self, features: IntArray) -> IntArray:
        return np.full(len(features), 2, dtype=np.int64)


def pack_binary(
    table: CodedTable, position: NDArray[np.uint32], rows: Rows, n_threads: int
) -> tuple[CandidateMap, BitStore] | None:
    """Candidates and store of a table of zeros and ones; None if it holds anything else.

    Identical columns share one place in the store.
    """
    if not _may_be_binary(table):
        return None
    n_cells = table.values.shape[0] * table.values.shape[1]
    n_threads = n_threads if n_cells >= MIN_THREADED_CELLS else 1
    store = BitStore(np.arange(table.n_columns), rows, n_threads, ORDERED)
    if not set_bits(table.values, store.bits[position], store.words, n_threads):
        return None
    candidates: CandidateMap = PresenceMap(table.names)
    if not table.is_presence:  # then `x > 0` and `x <= 0`; neither where all are the same
        edges = np.zeros(table.n_columns, dtype=table.values.dtype)
        offsets, missing = np.arange(table.n_columns + 1), table.find_missing()
        candidates = Binning(table.names, edges, offsets, False, missing, table.levels)
    copies = find_copies(store.words, n_threads)
    if copies is not None:
        store.keep_first(*copies.describe(slice(0, len(copies.offsets) - 1)))
        candidates = CollapsedMap(candidates, copies)
    return candidates, store


def _may_be_binary(table: CodedTable) -> bool:
    """A quick look, which most other tables do not pass."""
    if issparse(table.values):
        return True
    is_plain = not table.levels and not table.left_out and table.has_missing is None
    first = table.values[:BINARY_LOOK_ROWS]
    return is_plain and bool(((first == 0) | (first == 1)).all())


def set_bits(
    X: Any, bit_position: NDArray[np.uint32], words: NDArray[np.uint64], n_threads: int
) -> bool:
    """Set the bits of the ones of X, row i at `bit_position[i]` of each column's words.

    False if X holds other values than 0 and 1.
    """
    pack: Callable[..., bool] = _pack_columns
    inputs: tuple[Any, ...] = (X, bit_position)
    if issparse(X):
        if not X.has_canonical_format:  # entries may be listed twice, and are added up
            X = X.copy()
            X.sum_duplicates()
        is_by_column = X.format == "csc"
        pack = _kernels.pack_sparse_columns if is_by_column else _kernels.pack_sparse_rows
        inputs = (as_plain_numbers(X.data), X.indices, X.indptr, bit_position)
    elif X.flags.c_contiguous and X.shape[1] >= MIN_LANES:
        row_of_bit = np.full(words.shape[1] * 64, -1, dtype=np.int64)
        row_of_bit[bit_position] = np.arange(X.shape[0])
        pack, inputs = _kernels.pack_rows, (X, row_of_bit)
    parts = split_columns(X.shape[1], 4 * n_threads if n_threads > 1 else 1)
    done = run_tasks(lambda part: pack(*inputs, part.start, part.stop, words), parts, n_threads)
    return all(done)


def _pack_columns(
    X: Array, bit_position: NDArray[np.uint32], first: int, last: int, words: Array
) -> bool:
    """Column by column, for arrays that are not laid out by rows."""
    n = last - first
    surprised, known = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    known_values = np.zeros(n, dtype=X.dtype), known, np.ones(n, dtype=X.dtype)
    columns, own_words = np.arange(first, last), words[first:last]
    _kernels.pack_columns(X, bit_position, columns, *known_values, own_words, surprised)
    return not surprised.any()
