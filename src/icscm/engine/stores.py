"""Stores: binned columns in memory that can be counted over any rows.

Rows are sorted by outcome and environment once, into *segments*: segment s has all rows of outcome
s // E and environment s % E, if there are E environments. Then counting by outcome and environment
is counting by bin in each segment. A store never changes: which rows are counted is an argument.

`CodeStore` holds the bin of each cell, `BitStore` a bit for each cell of columns of two bins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from icscm import _constants as limits
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import CountCube, Layout, Shortlister
from icscm.engine.threads import divide_up, run_ahead, run_tasks, split_evenly


@dataclass(frozen=True)
class Rows:
    """Some of the sorted rows: those of segment s are `index[bounds[s]:bounds[s + 1]]`.

    `index` is None if these are all rows: then the place of a row is its number. Of seven rows in
    two segments, and of those that are left once rows 1 and 4 were taken out:

        index     None        bounds    0 3 7        all rows: 0 1 2 | 3 4 5 6
        index     0 2 3 5 6   bounds    0 2 5        some:     0 2   | 3 5 6
    """

    index: Array | None
    bounds: IntArray

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def __sizeof__(self) -> int:
        """Return the bytes, which a scheduler of tasks weighs before it moves them."""
        n_bytes = 0 if self.index is None else self.index.nbytes
        return n_bytes + self.bounds.nbytes

    @cached_property
    def sizes(self) -> IntArray:
        """Number of rows in each segment."""
        return np.diff(self.bounds)

    def take(self, values: Array) -> Array:
        """Return the values of these rows, given those of all rows."""
        # half the time of values[self.index]
        return values if self.index is None else values.take(self.index)

    def mark(self, n_rows: int) -> BoolArray:
        """Return for each of all rows whether it is one of these."""
        if self.index is None:
            return np.ones(n_rows, dtype=np.bool_)
        is_here = np.zeros(n_rows, dtype=np.bool_)
        is_here[self.index] = True
        return is_here

    def list_index(self) -> Array | None:
        """Return `index` for kernels, or None for all of many rows.

        It is made for all of few rows: a kernel that takes None is compiled once more.
        """
        if self.index is None and len(self) <= limits.SHORT_INDEX:
            return np.arange(len(self), dtype=limits.ROW_DTYPE)
        return self.index

    def cut(self, size: int) -> Iterator[Rows]:
        """Yield these rows in parts of at most so many."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            stop = min(len(self), start + size)
            if self.index is None:
                index = np.arange(start, stop, dtype=limits.ROW_DTYPE)
            else:
                index = self.index[start:stop]
            yield Rows(index, self.bounds.clip(start, stop) - start)

    def split(self, is_covered: BoolArray) -> tuple[Rows, Rows]:
        """Split into rows that stay and rows that leave, given which of them are covered."""
        n_leaving = int(np.count_nonzero(is_covered))
        n_staying = len(self) - n_leaving
        # one place more than needed: the kernel writes each row to both, and then moves one end on
        staying = np.empty(n_staying + 1, dtype=limits.ROW_DTYPE)
        leaving = np.empty(n_leaving + 1, dtype=limits.ROW_DTYPE)
        leaving_bounds = np.empty_like(self.bounds)
        _kernels.split_rows(
            self.list_index(), self.bounds, is_covered, staying, leaving, leaving_bounds
        )
        staying_bounds = self.bounds - leaving_bounds
        return Rows(staying[:-1], staying_bounds), Rows(leaving[:-1], leaving_bounds)


def sort_rows(outcomes: Array, environments: Array, n_environments: int) -> tuple[Array, Rows]:
    """Return where each row goes when they are sorted by segment, and the sorted rows."""
    position = np.empty(len(outcomes), dtype=limits.ROW_DTYPE)
    bounds = np.zeros(2 * n_environments + 1, dtype=np.int64)
    _kernels.sort_cells(outcomes, environments, n_environments, position, bounds)
    return position, Rows(None, bounds)


class Store(ABC):
    """Binned columns that are laid out alike, and can be counted over any of the sorted rows."""

    columns: IntArray
    n_bins: int
    n_threads: int
    layout: Layout

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """What the columns take."""

    @abstractmethod
    def find_codes(self, column: int) -> Array:
        """Return the bins of all sorted rows in one column."""

    @abstractmethod
    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        """Count some rows, a block of columns at a time; blocks are the same for any rows."""

    def release(self) -> None:
        """Free the memory of the bins just read, if they are stored elsewhere, too."""
        return

    def use_threads(self, n_threads: int) -> Self:
        """Return the same columns, counted by so many threads."""
        store = copy(self)
        store.n_threads = n_threads
        return store

    #: whether a device holds the columns, and can examine candidates there
    has_shortlister: bool = False

    def make_shortlister(self, rows: Rows) -> Shortlister:
        """Make what examines candidates among some rows, where a device holds the columns."""
        raise NotImplementedError


@dataclass(eq=False)
class CodeStore(Store):
    """Columns as the bin of each cell: `codes` (column, sorted row), of at most `n_bins` bins."""

    columns: IntArray
    codes: Array
    n_bins: int
    n_threads: int
    layout: Layout

    @property
    def n_bytes(self) -> int:
        return self.codes.nbytes

    def find_codes(self, column: int) -> Array:
        return np.asarray(self.codes[np.searchsorted(self.columns, column)])

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        n_segments = len(rows.bounds) - 1
        n_columns = len(self.columns)
        n_cells = n_columns * self.n_bins * n_segments
        for block in split_evenly(n_columns, divide_up(n_cells, limits.BLOCK_CELLS)):
            counts = np.zeros(
                (block.stop - block.start, self.n_bins, n_segments), dtype=limits.COUNT_DTYPE
            )
            self._count_into(counts, block, rows)
            by_outcome = counts.reshape(*counts.shape[:2], 2, -1)
            yield CountCube(self.columns[block], by_outcome, self.layout)

    def _count_into(self, counts: CountArray, block: slice, rows: Rows) -> None:
        """Count some columns into zeros (column, bin, segment)."""
        codes = self.codes[block]
        index = rows.list_index()

        def count_part(part: slice) -> None:
            _kernels.count_codes(codes[part], index, rows.bounds, counts[part])

        # threads, where there is enough to do to pay for starting them
        n_threads = self.n_threads if len(codes) * len(rows) >= limits.MIN_THREADED_CELLS else 1
        run_tasks(count_part, split_evenly(len(codes), n_threads), n_threads)


class BitStore(Store):
    """Columns of two bins, 64 rows to a word; each segment starts a word of its own.

    segment        | 0 (70 rows)               | 1 (3 rows)
    words          | 1111..1 (64) | 111111.... | 111.....        dots: never set
    word_bounds    0                           2               3
    """

    n_bins = 2

    def __init__(self, columns: IntArray, rows: Rows, n_threads: int, layout: Layout) -> None:
        self.columns = columns
        self.layout = layout
        self.n_threads = n_threads

        n_words = -(-rows.sizes // limits.WORD_BITS)  # rounded up
        self._word_bounds = np.concatenate(([0], np.cumsum(n_words)))
        # Of each segment in turn: the bits that are used, and those that fill its last word.
        n_filling = -rows.sizes % limits.WORD_BITS
        run_lengths = np.column_stack((rows.sizes, n_filling)).ravel()
        is_used_run = np.arange(len(run_lengths)) % 2 == 0
        #: whether a bit belongs to a row
        self._is_used: BoolArray = np.repeat(is_used_run, run_lengths)
        #: the bit of each sorted row
        self.bits = np.flatnonzero(self._is_used).astype(limits.ROW_DTYPE)
        self.words = np.zeros((len(columns), self._word_bounds[-1]), dtype=limits.WORD_DTYPE)

    def keep_first(self, columns: IntArray) -> None:
        """Keep these of the columns, ascending: the first of identical ones.

        Only for who fills the store: afterwards it never changes.
        """
        kept = np.searchsorted(self.columns, columns)
        for part in split_evenly(len(kept), divide_up(self.words.size, limits.BLOCK_CELLS)):
            self.words[part] = self.words[kept[part]]  # in place: all move towards the start
        self.words = self.words[: len(kept)]
        self.columns = columns

    @property
    def n_bytes(self) -> int:
        return self.words.nbytes

    def find_codes(self, column: int) -> Array:
        words = self.words[np.searchsorted(self.columns, column)]
        # a quarter of the time that taking each of self.bits takes
        return np.unpackbits(words.view(np.uint8), bitorder="little")[self._is_used]

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        mask = self._make_mask(rows)
        n_cells = len(self.columns) * 2 * len(rows.sizes)
        blocks = split_evenly(len(self.columns), divide_up(n_cells, limits.PACKED_BLOCK_CELLS))
        n_threads = self.n_threads if self.words.size >= limits.MIN_THREADED_CELLS else 1

        def count_block(block: slice) -> CountCube:
            return self._count_block(block, mask, rows.sizes)

        return run_ahead(count_block, blocks, n_threads)

    def _make_mask(self, rows: Rows) -> Array:
        """Make words whose bits are set for some rows."""
        is_counted = self._is_used
        if rows.index is not None:
            is_counted = np.zeros_like(self._is_used)
            is_counted[rows.take(self.bits)] = True
        return np.packbits(is_counted, bitorder="little").view(limits.WORD_DTYPE)

    def _count_block(self, block: slice, mask: Array, n_rows: IntArray) -> CountCube:
        """Count the rows of a mask, of which there are `n_rows` in each segment."""
        words = self.words[block]
        counts = np.empty((len(words), 2, len(n_rows)), dtype=limits.COUNT_DTYPE)
        _kernels.count_bits(words, mask[np.newaxis], self._word_bounds, n_rows, counts)
        by_outcome = counts.reshape(len(words), 2, 2, -1)
        return CountCube(self.columns[block], by_outcome, self.layout)
