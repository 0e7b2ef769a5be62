"""Tables of zeros and ones, dense or sparse, straight to bits: nothing to plan, nothing to bin.

Columns of such tables are often identical, all over a genome, say. Identical columns share one
place in the store, that of the first of them, and every candidate rule stands for one on each of
its *copies*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import (
    BINARY_LOOK_ROWS,
    MIN_LANES,
    MIN_THREADED_CELLS,
    WORD_BITS,
    WORD_DTYPE,
)
from icscm._lazy import is_sparse
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.binning import Binning, ColumnPlan, Extremes
from icscm.engine.coding import pack_columns
from icscm.engine.counts import ORDERED, BinnedColumns, BinnedRule, CountCube, Cut, Layout
from icscm.engine.stores import BitStore, Rows
from icscm.engine.threads import run_tasks, split_columns, split_evenly
from icscm.exceptions import IcscmError
from icscm.model.novelty import Range
from icscm.model.rules import PresenceRule, Rule
from icscm.tables.coded import CodedTable
from icscm.tables.columns import as_plain_numbers

# Size of an empty table of patterns; a power of two.
_FEWEST_SLOTS = 2**10
# Parts of the columns for each thread: some columns have more ones than others.
_PARTS_PER_THREAD = 4


# --- identical columns ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Copies:
    """Groups of identical columns, in the order of their first members.

    Group k holds `members[offsets[k]:offsets[k + 1]]`, ascending; column j is in group
    `numbers[j]`. Where columns 0 and 2 are identical, and 1 and 4:

        numbers      0 1 0 2 1        the group of each of five columns
        members      0 2 | 1 4 | 3
        offsets      0     2     4   5
    """

    numbers: Array
    offsets: Array
    members: Array

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.offsets) - 1

    def is_whole(self) -> bool:
        """Check that the arrays, which may come from a file, describe the same groups."""
        n_groups = self.n_groups
        if n_groups < 1 or len(self.numbers) == 0 or self.numbers.max() >= n_groups:
            return False

        # The offsets and members follow from the numbers.
        expected = make_copies(self.numbers, n_groups)
        if not np.array_equal(self.offsets, expected.offsets):
            return False
        if not np.array_equal(self.members, expected.members):
            return False

        # No group is empty, and groups are in the order of their first members.
        group_sizes = np.diff(self.offsets)
        if (group_sizes == 0).any():
            return False
        first_members = self.members[self.offsets[:-1]]
        return bool((first_members[1:] > first_members[:-1]).all())

    def find_first(self, column: int) -> int:
        """Find the column that stands for the group of one."""
        return int(self.members[self.offsets[self.numbers[column]]])

    def list_first(self, groups: slice | None = None) -> IntArray:
        """List the first column of each group, or of some groups."""
        starts = self.offsets[:-1] if groups is None else self.offsets[groups.start : groups.stop]
        return self.members[starts].astype(np.int64)

    def list_members(self, first: IntArray) -> IntArray:
        """List the columns of some groups, given by their first ones: a group after the other."""
        groups = self.numbers[first].astype(np.intp)
        starts = self.offsets[groups]
        sizes = self.offsets[groups + 1] - starts

        # 0, 1, ... in each group: the place in the list, less that at which the group starts
        ends_in_list = np.cumsum(sizes)
        starts_in_list = ends_in_list - sizes
        number_in_group = np.arange(sizes.sum()) - np.repeat(starts_in_list, sizes)

        members: IntArray = self.members[np.repeat(starts, sizes) + number_in_group]
        return members.astype(np.int64)

    def count_members(self, columns: IntArray) -> IntArray:
        """Return the size of the group of each of some columns."""
        groups = self.numbers[columns].astype(np.intp)
        return self.offsets[groups + 1] - self.offsets[groups]


def make_copies(numbers: Array, n_groups: int) -> Copies:
    """Make the groups, from the group of each column."""
    offsets = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(numbers, minlength=n_groups), out=offsets[1:])
    members = np.empty(len(numbers), dtype=np.uint32)
    _kernels.list_members(numbers, offsets, members)
    return Copies(numbers, offsets, members)


@dataclass(frozen=True)
class CollapsedMap(BinnedColumns):
    """What bins mean, over a source that stores only the first of identical columns.

    A rule on a copy is, on bins, the rule on the first. `single` says what the bins of each column
    by itself mean.
    """

    single: BinnedColumns
    copies: Copies

    def make_rule(self, cut: Cut) -> Rule:
        return self.single.make_rule(cut)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        rule = self.single.make_binned_rule(cut)
        return replace(rule, column=self.copies.find_first(cut.column))

    def find_layout(self, column: int) -> Layout:
        return self.single.find_layout(column)

    def count_bins(self, columns: IntArray) -> IntArray:
        return self.single.count_bins(columns)

    def find_range(self, column: int) -> Range | None:
        return self.single.find_range(column)

    def count_copies(self, columns: IntArray) -> IntArray:
        return self.copies.count_members(columns)

    def list_copies(self, column: int, limit: int | None = None) -> list[int]:
        members: list[int] = self.copies.list_members(np.array([column]))[:limit].tolist()
        return members


def expand(cube: CountCube, columns: BinnedColumns) -> CountCube:
    """Return the cube with each column in its place, copies included."""
    if not isinstance(columns, CollapsedMap):
        return cube
    members = columns.copies.list_members(cube.columns)
    counts = np.repeat(cube.counts, columns.count_copies(cube.columns), axis=0)
    order = np.argsort(members)
    return CountCube(members[order], counts[order], cube.layout)


def find_copies(words: Array, n_threads: int) -> Copies | None:
    """Find which columns, given as rows of words, are identical; None if no two are."""
    no_patterns = np.empty((0, words.shape[1]), dtype=WORD_DTYPE)
    numbers, first_rows = PatternNumbers().add(words, no_patterns, n_threads)
    n_patterns = len(first_rows)
    return None if n_patterns == len(words) else make_copies(numbers, n_patterns)


# --- patterns ------------------------------------------------------------------------------------


class PatternNumbers:
    """Numbers distinct patterns, which are rows of words, as they come in batches.

    A pattern has the number of its first appearance: the rows a b a c have 0 1 0 2. This is exact,
    since words are compared and not only their hashes. It takes some twenty bytes for each pattern,
    in a hash table of open addressing that is at most half full.
    """

    def __init__(self) -> None:
        self.n_patterns = 0
        # a pattern's number plus one, 0 where a slot is free
        self._slots = np.zeros(_FEWEST_SLOTS, dtype=np.uint32)
        self._hash_of_pattern = np.zeros(_FEWEST_SLOTS // 2, dtype=np.uint64)

    def add(self, words: Array, stored: Array, n_threads: int = 1) -> tuple[Array, IntArray]:
        """Return the number of each row's pattern, and the rows that hold new ones.

        `stored` are the words of all patterns numbered so far.
        """
        self._make_room(len(words))
        numbers = np.empty(len(words), dtype=np.uint32)
        rows_of_new = np.empty(len(words), dtype=np.int64)
        n_new = _kernels.number_patterns(
            words,
            hash_patterns(words, n_threads),
            stored,
            self._slots,
            self._hash_of_pattern,
            rows_of_new,
            numbers,
        )
        self.n_patterns += n_new
        return numbers, rows_of_new[:n_new]

    def _make_room(self, n_more: int) -> None:
        """Make a larger table if so many more patterns could fill more than half of it."""
        n_needed = 2 * (self.n_patterns + n_more)
        if n_needed <= len(self._slots):
            return
        n_slots = 1 << (n_needed - 1).bit_length()
        hash_of_pattern = np.zeros(n_slots // 2, dtype=np.uint64)
        hash_of_pattern[: self.n_patterns] = self._hash_of_pattern[: self.n_patterns]
        self._hash_of_pattern = hash_of_pattern
        self._slots = np.zeros(n_slots, dtype=np.uint32)
        _kernels.fill_slots(self._hash_of_pattern[: self.n_patterns], self._slots)


def hash_patterns(words: Array, n_threads: int) -> Array:
    """Return a hash of each row of words."""
    hashes = np.empty(len(words), dtype=np.uint64)

    def hash_part(part: slice) -> None:
        _kernels.hash_patterns(words[part], hashes[part])

    run_tasks(hash_part, split_evenly(len(words), n_threads), n_threads)
    return hashes


# --- tables --------------------------------------------------------------------------------------


class NotBinaryError(IcscmError):
    """Other numbers where zeros and ones were expected."""


class PresenceMap(BinnedColumns):
    """Columns of what is present or absent: two bins, absent first."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names = names

    def make_rule(self, cut: Cut) -> Rule:
        name = None if self._names is None else self._names[cut.column]
        return PresenceRule(cut.column, name, present=not cut.negated)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        return BinnedRule(cut.column, np.array([cut.negated, not cut.negated]))

    def find_layout(self, column: int) -> Layout:  # noqa: ARG002 (all have the same)
        return ORDERED

    def count_bins(self, columns: IntArray) -> IntArray:
        return np.full(len(columns), 2, dtype=np.int64)


def pack_binary(
    table: CodedTable, position: Array, rows: Rows, n_threads: int
) -> tuple[BinnedColumns, BitStore] | None:
    """Store a table of zeros and ones as bits, and say what they mean; None for other tables."""
    if not is_sparse(table.values):  # a quick check of the first rows, which most tables fail
        first_rows = table.values[:BINARY_LOOK_ROWS]
        is_binary_so_far = ((first_rows == 0) | (first_rows == 1)).all()
        if table.levels or table.dropped or not is_binary_so_far:
            return None

    n_rows, n_columns = table.values.shape
    n_threads = n_threads if n_rows * n_columns >= MIN_THREADED_CELLS else 1
    store = BitStore(np.arange(n_columns), rows, n_threads, ORDERED)
    if not set_bits(table.values, store.bits[position], store.words, n_threads):
        return None

    columns: BinnedColumns = PresenceMap(table.names)
    if not table.is_presence:
        columns = _make_binary_binning(table)
    copies = find_copies(store.words, n_threads)
    if copies is None:
        return columns, store
    store.keep_first(copies.list_first())
    return CollapsedMap(columns, copies), store


def _make_binary_binning(table: CodedTable) -> Binning:
    """Make the binning at 0: `x > 0` and `x <= 0`, neither a candidate where all are the same."""
    n_columns = table.n_columns
    return Binning(
        names=table.names,
        edges=np.zeros(n_columns, dtype=table.values.dtype),
        offsets=np.arange(n_columns + 1),
        sampled=False,
        has_missing=table.find_missing(),
        levels=table.levels,
        # there may be millions of columns, which share one number
        extremes=Extremes(
            lowest=np.broadcast_to(0.0, n_columns), highest=np.broadcast_to(1.0, n_columns)
        ),
    )


def set_bits(X: Any, bit_position: Array, words: Array, n_threads: int) -> bool:
    """Set the bits of the ones of X, row i at `bit_position[i]` of each column's words.

    Returns False if X holds other values than 0 and 1.
    """
    if is_sparse(X):
        pack_part = _make_sparse_packer(X, bit_position, words)
    elif X.flags.c_contiguous and X.shape[1] >= MIN_LANES:
        pack_part = _make_row_packer(X, bit_position, words)
    else:
        return _set_bits_by_column(X, bit_position, words, n_threads)

    n_parts = _PARTS_PER_THREAD * n_threads if n_threads > 1 else 1
    are_binary = run_tasks(pack_part, split_columns(X.shape[1], n_parts), n_threads)
    return all(are_binary)


# Packs some columns; False if they hold other values than 0 and 1.
_PackPart = Callable[[slice], bool]


def _make_sparse_packer(X: Any, bit_position: Array, words: Array) -> _PackPart:
    """Make the function that packs some columns of a sparse matrix."""
    if not X.has_canonical_format:  # entries may be listed twice, and are added up
        X = X.copy()
        X.sum_duplicates()
    is_by_column = X.format == "csc"
    kernel = _kernels.pack_sparse_columns if is_by_column else _kernels.pack_sparse_rows
    values = as_plain_numbers(X.data)

    def pack_part(part: slice) -> bool:
        is_binary: bool = kernel(
            values, X.indices, X.indptr, bit_position, part.start, part.stop, words
        )
        return is_binary

    return pack_part


def _make_row_packer(X: Array, bit_position: Array, words: Array) -> _PackPart:
    """Make the function that packs some columns of a table that is stored row by row."""
    row_of_bit = np.full(words.shape[1] * WORD_BITS, -1, dtype=np.int64)
    row_of_bit[bit_position] = np.arange(X.shape[0])

    def pack_part(part: slice) -> bool:
        is_binary: bool = _kernels.pack_rows(X, row_of_bit, part.start, part.stop, words)
        return is_binary

    return pack_part


def _set_bits_by_column(X: Array, bit_position: Array, words: Array, n_threads: int) -> bool:
    """Set the bits of a table as columns that are planned to hold 0, their one edge, and 1."""
    n_columns = X.shape[1]
    plan = ColumnPlan(
        columns=np.arange(n_columns),
        edges=[np.zeros(1, dtype=X.dtype)] * n_columns,
        is_complete=np.ones(n_columns, dtype=np.bool_),
        lowest=np.zeros(n_columns, dtype=X.dtype),
        highest=np.ones(n_columns, dtype=X.dtype),
    )
    is_unexpected = pack_columns(
        X, plan, bit_position=bit_position, words=words, n_threads=n_threads
    )
    return not is_unexpected.any()
