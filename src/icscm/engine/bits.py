"""Tables of zeros and ones, dense or sparse, straight to bits: nothing to plan, nothing to bin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm._constants import BINARY_LOOK_ROWS, MIN_THREADED_CELLS
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
from icscm.tables.coding import CodedTable
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
    candidates = PresenceMap(table.names) if table.is_presence else _cut_at_zero(table)
    return _collapse(candidates, store, n_threads)


def _may_be_binary(table: CodedTable) -> bool:
    """A quick look, which most other tables do not pass."""
    if issparse(table.values):
        return True
    is_plain = not table.levels and not table.left_out and table.has_missing is None
    first = table.values[:BINARY_LOOK_ROWS]
    return is_plain and bool(((first == 0) | (first == 1)).all())


def _cut_at_zero(table: CodedTable) -> CandidateMap:
    """`x > 0` and `x <= 0` for every column; where all are the same, neither is a candidate."""
    edges = np.zeros(table.n_columns, dtype=table.values.dtype)
    offsets = np.arange(table.n_columns + 1)
    return Binning(table.names, edges, offsets, False, table.find_missing(), table.levels)


def _collapse(
    candidates: CandidateMap, store: BitStore, n_threads: int
) -> tuple[CandidateMap, BitStore]:
    copies = find_copies(store.words, n_threads)
    if copies is None:
        return candidates, store
    first, n_alike = copies.describe(slice(0, len(copies.offsets) - 1))
    store.keep_first(first, n_alike)
    return CollapsedMap(candidates, copies), store


def set_bits(
    X: Any, bit_position: NDArray[np.uint32], words: NDArray[np.uint64], n_threads: int
) -> bool:
    """Set the bits of the ones of X, row i at `bit_position[i]` of each column's words.

    False if X holds other values than 0 and 1.
    """
    if issparse(X):
        pack = _choose_sparse(X, bit_position, words)
    elif X.flags.c_contiguous:
        row_of_bit = np.full(words.shape[1] * 64, -1, dtype=np.int64)
        row_of_bit[bit_position] = np.arange(X.shape[0])
        pack = _bind(_kernels.pack_rows, X, row_of_bit, words=words)
    else:
        pack = _bind(_pack_columns, X, bit_position, words=words)
    parts = split_columns(X.shape[1], 4 * n_threads if n_threads > 1 else 1)
    return all(run_tasks(pack, parts, n_threads))


def _bind(kernel: Callable[..., bool], *inputs: Any, words: Array) -> Callable[[slice], bool]:
    return lambda part: kernel(*inputs, part.start, part.stop, words)


def _choose_sparse(X: Any, bit_position: Array, words: Array) -> Callable[[slice], bool]:
    if not X.has_canonical_format:  # entries may be listed twice, and are added up
        X = X.copy()
        X.sum_duplicates()
    values = as_plain_numbers(X.data)
    is_by_column = X.format == "csc"
    kernel = _kernels.pack_sparse_columns if is_by_column else _kernels.pack_sparse_rows
    return _bind(kernel, values, X.indices, X.indptr, bit_position, words=words)


def _pack_columns(
    X: Array, bit_position: NDArray[np.uint32], first: int, last: int, words: Array
) -> bool:
    """Column by column, for arrays that are not laid out by rows."""
    columns = np.arange(first, last)
    zeros, ones = np.zeros((2, len(columns)), dtype=X.dtype)
    ones[:] = 1
    surprised = np.zeros(len(columns), dtype=np.bool_)
    known = np.ones(len(columns), dtype=np.bool_)
    _kernels.pack_columns(
        X, bit_position, columns, zeros, known, ones, words[first:last], surprised
    )
    return not surprised.any()
