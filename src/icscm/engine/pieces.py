"""A piece of a table, coded where it is stored: immutable, and counted on demand.

    rows of one partition  --code once-->  Piece  --rule-->  Rows  --rule-->  Rows ...
                                              \\              |                |
                                               `----------> counts          counts

Rows that satisfy a path of rules are kept apart from the codes, so every step is a pure function of
the piece, the rows before and a rule. A lost piece, and all that followed, can be recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from icscm._constants import BLOCK_CELLS, MAX_NARROW_BINS, WORD_BITS, WORD_DTYPE
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import (
    BinnedColumns,
    BinnedRule,
    CountCube,
    Layout,
    PatternTable,
    RulePath,
    ValueCube,
)
from icscm.engine.counts import BinnedSplit as BinnedSplit
from icscm.engine.patterns import add_patterns, count_patterns
from icscm.engine.stores import BitStore, CodeStore, Rows, Store, sort_rows
from icscm.engine.threads import divide_up, split_evenly
from icscm.model import splits as tree_splits

# The bin of each row, by column.
Codes = Sequence[Array] | Mapping[int, Array] | Array

# Cells of a cube that a piece sends at a time, 32 MB: much more than a message costs to send, and
# little enough that any machine can add up several.
SENT_CELLS = 2**22
# Rows scanned at a time where each needs several bytes of arithmetic.
ROW_CHUNK = 2**20
# What an object takes beside its arrays; no need to know exactly.
_OBJECT_BYTES = 500


class Block(NamedTuple):
    """Columns that are counted and sent together: they are laid out alike."""

    columns: IntArray
    n_bins: int
    layout: Layout

    def count_cells(self, n_environments: int) -> int:
        """Return the size of its cube."""
        return len(self.columns) * self.n_bins * 2 * n_environments


def plan_blocks(
    binned_columns: BinnedColumns, columns: IntArray, n_environments: int
) -> list[Block]:
    """Plan blocks of the columns that can be cut at all, the same for every piece of a table.

    A block is counted into one array (column, bin, outcome, environment), which has as many bins as
    its widest column. So columns of one layout and about one number of bins share a block. One that
    would be too large for a message is divided.
    """
    n_bins_of_columns = binned_columns.count_bins(columns)
    cuttable_columns = columns[n_bins_of_columns > 1]
    n_bins_of_cuttable = n_bins_of_columns[n_bins_of_columns > 1]

    columns_by_kind: dict[_BlockKind, list[int]] = {}
    for column, n_bins in zip(cuttable_columns.tolist(), n_bins_of_cuttable.tolist(), strict=True):
        kind = _BlockKind(
            layout=binned_columns.find_layout(column), rank_of_width=_rank_width(n_bins, column)
        )
        columns_by_kind.setdefault(kind, []).append(column)

    blocks = []
    for kind in sorted(columns_by_kind):
        columns_of_kind = np.array(columns_by_kind[kind], dtype=columns.dtype)
        block = Block(
            columns=columns_of_kind,
            n_bins=int(binned_columns.count_bins(columns_of_kind).max()),
            layout=kind.layout,
        )
        n_messages = divide_up(block.count_cells(n_environments), SENT_CELLS)
        parts = split_evenly(len(columns_of_kind), n_messages)
        blocks += [block._replace(columns=columns_of_kind[part]) for part in parts]
    return blocks


class _BlockKind(NamedTuple):
    """What the columns of a block have in common; blocks come in the order of their kinds."""

    layout: Layout
    rank_of_width: int


def _rank_width(n_bins: int, column: int) -> int:
    """Return what is the same for columns that may share a block: wide, then narrow, then bits.

    A wide column shares a block with none: its bins would be empty ones of the others.
    """
    if n_bins == 2:
        return 2
    if n_bins <= MAX_NARROW_BINS:
        return -1
    return -2 - column


def make_cubes(blocks: Sequence[Block], counted: Iterable[CountArray]) -> Iterator[CountCube]:
    """Cut the counts of each block into parts that the search can work on in the cache."""
    for block, counts in zip(blocks, counted, strict=True):
        n_parts = divide_up(counts.size, BLOCK_CELLS)
        for part in split_evenly(len(block.columns), n_parts):
            yield CountCube(block.columns[part], counts[part], block.layout)


@dataclass(frozen=True)
class Piece:
    """Rows of a table as the numbers of bins, in stores that have a column each or several."""

    stores: Sequence[Store]
    rows: Rows
    n_environments: int

    def __sizeof__(self) -> int:
        """Return the bytes, which a scheduler of tasks weighs before it moves them."""
        return sum(store.n_bytes for store in self.stores) + _OBJECT_BYTES

    def select(self, is_selected: BoolArray, n_threads: int | None = None) -> Piece:
        """Make a piece of some rows with the same codes, counted by so many threads."""
        rows, _ = self.rows.split(~is_selected)
        stores = self.stores
        if n_threads is not None:
            stores = [store.use_threads(n_threads) for store in stores]
        return Piece(stores, rows, self.n_environments)

    def split(self, rows: Rows, rule: BinnedRule) -> tuple[Rows, Rows]:
        """Split some rows into those of which a rule is true, and those that it covers."""
        return rows.split(self.find_covered(rows, rule))

    def find_rows(self, path: Sequence[BinnedRule]) -> Rows:
        """Find the rows of which every rule of a path is true."""
        rows = self.rows
        for rule in path:
            rows, _ = self.split(rows, rule)
        return rows

    def count_rows(self, rows: Rows) -> CountArray:
        """Count some rows by (outcome, environment)."""
        return rows.sizes.reshape(2, self.n_environments)

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        """Count some rows by (column, bin, outcome, environment), in blocks of columns."""
        for store in self.stores:
            yield from store.count_cubes(rows)

    def count_block(self, rows: Rows, block: int) -> CountArray:
        """Count some rows by (column, bin, outcome, environment), for one of the stores."""
        return np.concatenate([cube.counts for cube in self.stores[block].count_cubes(rows)])

    def find_same_coverage(
        self, rows: Rows, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly those of some rows that `rule` covers."""
        is_covered = self.find_covered(rows, rule)
        is_same = [np.array_equal(is_covered, self.find_covered(rows, other)) for other in others]
        return np.array(is_same, dtype=np.bool_)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule."""
        tables = []
        for part in self.rows.cut(ROW_CHUNK):
            truths = [~self.find_covered(part, rule) for rule in rules]
            cells = np.repeat(np.arange(2 * self.n_environments), part.sizes)
            tables.append(count_patterns(truths, cells, self.n_environments))
        return add_patterns(tables)

    def find_covered(self, rows: Rows, rule: BinnedRule) -> BoolArray:
        """Find which of some rows a rule covers: those of which it is false."""
        store = self.find_store(rule.column)
        if store is None:  # what cannot be cut has one bin
            return np.full(len(rows), not rule.satisfied[0])

        codes = store.find_codes(rule.column)
        is_covered_bin = ~rule.satisfied
        is_covered: BoolArray = np.empty(len(rows), dtype=np.bool_)
        for start in range(0, len(rows), ROW_CHUNK):
            part = slice(start, start + ROW_CHUNK)
            bins = codes[part] if rows.index is None else codes.take(rows.index[part])
            is_covered_bin.take(bins, out=is_covered[part], mode="clip")  # else it is buffered
        store.release()
        return is_covered

    def sum_values(
        self, values: FloatArray, environments: Array, columns: IntArray | None = None
    ) -> Iterator[ValueCube]:
        """Sum values (row, value) by (column, bin, value, environment), in blocks of columns.

        `environments` are those of the rows; `columns` are the wanted ones, by default all.
        """
        n_values = values.shape[1]
        for store in self.stores:
            wanted = store.columns
            if columns is not None:
                wanted = np.intersect1d(wanted, columns)
            if len(wanted) == 0:
                continue

            cells_of_column = store.n_bins, n_values, self.n_environments
            n_cells = len(wanted) * math.prod(cells_of_column)
            for block in split_evenly(len(wanted), divide_up(n_cells, BLOCK_CELLS)):
                columns_of_block = wanted[block]
                sums: Array = np.zeros((len(columns_of_block), *cells_of_column))
                for column, sums_of_column in zip(columns_of_block.tolist(), sums, strict=True):
                    bins = self.rows.take(store.find_codes(column))
                    _kernels.add_values(bins, environments, values, sums_of_column)
                yield ValueCube(columns=columns_of_block, sums=sums, layout=store.layout)

    def find_store(self, column: int) -> Store | None:
        """Find the store that has a column; None if no store has it, since it cannot be cut."""
        for store in self.stores:
            place = np.searchsorted(store.columns, column)
            if place < len(store.columns) and store.columns[place] == column:
                return store
        return None


def make_piece(
    codes: Codes, labels: Array, environments: Array, n_environments: int, blocks: Sequence[Block]
) -> Piece:
    """Make a piece from the bin numbers, outcomes and environments of its rows, in any order."""
    position, rows = sort_rows(labels, environments, n_environments)
    stores: list[Store] = []
    for block in blocks:
        if block.n_bins == 2:
            stores.append(_make_bit_store(codes, block, position=position, rows=rows))
        else:
            stores.append(_make_code_store(codes, block, position=position))
    return Piece(stores, rows, n_environments)


def _make_bit_store(codes: Codes, block: Block, *, position: Array, rows: Rows) -> BitStore:
    """Store columns of two bins, row i at `position[i]` of the sorted rows."""
    store = BitStore(block.columns, rows, n_threads=1, layout=block.layout)
    bit_of_row = store.bits[position]
    bits = np.zeros(store.words.shape[1] * WORD_BITS, dtype=np.uint8)
    for words, column in zip(store.words, block.columns.tolist(), strict=True):
        bits[bit_of_row] = codes[column]
        words[:] = np.packbits(bits, bitorder="little").view(WORD_DTYPE)
    return store


def _make_code_store(codes: Codes, block: Block, *, position: Array) -> CodeStore:
    """Store columns of more bins, row i at `position[i]` of the sorted rows."""
    shape = len(block.columns), len(position)
    sorted_codes = np.empty(shape, dtype=np.min_scalar_type(block.n_bins - 1))
    for codes_of_column, column in zip(sorted_codes, block.columns.tolist(), strict=True):
        codes_of_column[position] = codes[column]
    return CodeStore(block.columns, sorted_codes, block.n_bins, 1, block.layout)


# What identifies a rule on bins: the column, and the bins that satisfy it.
RuleKey = tuple[int, bytes]
SomeRows = TypeVar("SomeRows")


class RowsOfPaths(Generic[SomeRows]):
    """Finds the rows of a path, any path in any order, and remembers those of the last ones.

    It remembers a partition of all rows, which takes four bytes of each, and splits a part when
    a path leads into it. After the rows of the path (a, b) were found, then those of (not a, c):

        all rows  --a-->  those of a      --b-->  (a, b), (a, not b)
                          those of not a  --c-->  (not a, c), (not a, not c)

    A path that leads to none of the parts starts another partition. Several threads may ask: what
    is remembered changes how long an answer takes, not the answer.

    Parameters
    ----------
    all_rows : rows
        Those of the empty path.
    split : callable
        Splits some rows by a rule: those of which it is true, and the others.
    """

    def __init__(
        self,
        all_rows: SomeRows,
        split: Callable[[SomeRows, BinnedRule], tuple[SomeRows, SomeRows]],
    ) -> None:
        self._all_rows = all_rows
        self._split = split
        self._parts: dict[tuple[RuleKey, ...], SomeRows] = {}
        self._lock = Lock()

    def find(self, path: RulePath) -> SomeRows:
        """Find the rows of which every rule of the path is true."""
        if not path:
            return self._all_rows
        with self._lock:
            return self._find_in_parts(path)

    def _find_in_parts(self, path: RulePath) -> SomeRows:
        """Split the part that the path leads into, by the rules that lead on from there."""
        key = tuple(make_key(rule) for rule in path)
        n_known = self._find_longest_known(key)
        if n_known == 0:
            self._parts.clear()
        rows = self._parts.pop(key[:n_known], self._all_rows)

        for n_rules, rule in enumerate(path[n_known:], start=n_known):
            rows, other_rows = self._split(rows, rule)
            key_of_others = (*key[:n_rules], make_key(negate(rule)))
            self._parts[key_of_others] = other_rows
        self._parts[key] = rows
        return rows

    def _find_longest_known(self, key: tuple[RuleKey, ...]) -> int:
        """Find how many rules of a path lead to a part; 0 if none do."""
        for n_rules in range(len(key), 0, -1):
            if key[:n_rules] in self._parts:
                return n_rules
        return 0


def make_key(rule: BinnedRule) -> RuleKey:
    """Make what identifies a rule; arrays cannot be compared at once."""
    return rule.column, rule.satisfied.tobytes()


def negate(rule: BinnedRule) -> BinnedRule:
    """Make the rule that is true where this one is false."""
    return BinnedRule(rule.column, ~rule.satisfied)


def find_leaves(
    splits: Sequence[BinnedSplit], n_rows: int, find_covered: Callable[[BinnedRule], BoolArray]
) -> IntArray:
    """Find the leaf in which each of some rows falls, given which of them a rule covers."""
    is_covered: dict[RuleKey, BoolArray] = {}  # the same rule may split several nodes

    def find_true(split: BinnedSplit, rows: IntArray) -> BoolArray:
        key = make_key(split.rule)
        if key not in is_covered:
            is_covered[key] = find_covered(split.rule)
        return ~is_covered[key][rows]

    return tree_splits.find_leaves(splits, n_rows, find_true=find_true)
