"""Stores: binned columns in memory, in the order of the sorted rows, that can be counted.

`CodeStore` holds a bin number per cell, `BitStore` a bit per cell for two-valued columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from icscm import _constants as limits
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import CountCube, Layout, Shortlister
from icscm.engine.threads import run_ahead, run_tasks, split_evenly


@dataclass(frozen=True)
class Rows:
    """Some sorted rows: segment s holds `index[bounds[s]:bounds[s + 1]]`.

    `index` is None when every row is meant; positions and rows are then the same.
    """

    index: Array | None
    bounds: IntArray

    def __len__(self) -> int:
        return int(self.bounds[-1])

    @cached_property
    def sizes(self) -> IntArray:
        """Rows of each segment."""
        return np.diff(self.bounds)

    def take(self, values: Array) -> Array:
        """The values of these rows."""
        # half the time of values[self.index]
        return values if self.index is None else values.take(self.index)

    def list_index(self) -> Array | None:
        """`index` for kernels; None for many rows only: it would have them compiled once more."""
        if self.index is None and len(self) <= limits.SHORT_INDEX:
            return np.arange(len(self), dtype=limits.ROW_DTYPE)
        return self.index

    def cut(self, size: int) -> Iterator[Rows]:
        """These rows, at most so many at a time."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            stop = min(len(self), start + size)
            every = np.arange(start, stop, dtype=limits.ROW_DTYPE)
            index = every if self.index is None else self.index[start:stop]
            yield Rows(index, self.bounds.clip(start, stop) - start)

    def split(self, covered: BoolArray) -> tuple[Rows, Rows]:
        """Those that stay and those that leave, given which of these rows are covered."""
        n_covered = int(np.count_nonzero(covered))
        stay = np.empty(len(self) - n_covered + 1, dtype=limits.ROW_DTYPE)
        left, bounds = np.empty(n_covered + 1, dtype=limits.ROW_DTYPE), np.empty_like(self.bounds)
        _kernels.split_rows(self.list_index(), self.bounds, covered, stay, left, bounds)
        return Rows(stay[:-1], self.bounds - bounds), Rows(left[:-1], bounds)


def sort_rows(labels: Array, environments: Array, n_environments: int) -> tuple[Array, Rows]:
    """Where each row goes when sorted by (label, environment), and the rows so sorted."""
    position = np.empty(len(labels), dtype=limits.ROW_DTYPE)
    bounds = np.zeros(2 * n_environments + 1, dtype=np.int64)
    _kernels.sort_cells(labels, environments, n_environments, position, bounds)
    return position, Rows(None, bounds)


class Store(Protocol):
    """Binned columns that know which samples are still in play."""

    features: IntArray
    n_bins: int
    n_threads: int
    layout: Layout

    @property
    def n_bytes(self) -> int:
        """What its columns take."""

    @property
    def shortlister(self) -> Shortlister | None:
        """What examines candidates among the rows in play, where a device holds the columns."""
        return None

    def find_codes(self, feature: int) -> Array:
        """Bin numbers of one feature for all sorted rows."""

    def release(self) -> None:
        """Free the memory of the codes just read, if they are stored elsewhere, too."""
        return

    def remove(self, left: Rows, in_play: Rows) -> None:  # noqa: ARG002 (for those that subtract)
        """`left` have just left; `in_play` are those that stay."""
        self._set_in_play(in_play)

    def restrict(self, rows: Rows) -> Self:
        """The same columns with just these rows in play; the two share codes and nothing else."""
        restricted = copy(self)
        restricted._set_in_play(rows)
        return restricted

    def _set_in_play(self, rows: Rows) -> None: ...

    def counts(self) -> Iterator[CountCube]:
        """The samples in play, a block of features at a time. Valid until the next `remove`."""


@dataclass(eq=False)
class CodeStore(Store):
    """Columns as bin numbers: one row of `codes` per feature, `n_bins` bins at the most."""

    features: IntArray
    codes: Array
    n_bins: int
    in_play: Rows
    n_threads: int
    layout: Layout
    _left: list[Rows] = field(default_factory=list, init=False)
    _cube: CountArray | None = field(default=None, init=False)

    @property
    def n_bytes(self) -> int:
        return self.codes.nbytes

    def find_codes(self, feature: int) -> Array:
        return np.asarray(self.codes[np.searchsorted(self.features, feature)])

    def remove(self, left: Rows, in_play: Rows) -> None:
        self._left.append(left)
        self.in_play = in_play

    def _set_in_play(self, rows: Rows) -> None:
        self.in_play, self._left, self._cube = rows, [], None

    def counts(self) -> Iterator[CountCube]:
        n_cells = len(self.features) * self.n_bins * (len(self.in_play.bounds) - 1)
        is_kept = n_cells * np.dtype(limits.COUNT_DTYPE).itemsize <= limits.MAX_KEPT_CUBE_BYTES
        kept = self._update_cube() if is_kept else None
        for block in split_evenly(len(self.features), -(-n_cells // limits.BLOCK_CELLS)):
            segments = self._count(block) if kept is None else kept[block]
            counts = segments.reshape(*segments.shape[:2], 2, -1)
            yield CountCube(self.features[block], counts, self.layout)

    def _update_cube(self) -> CountArray:
        """The cube of all features: subtract those that left, or count those that stay.

        Whichever are fewer: each sample leaves once, so all the steps of a fit together
        count no more than twice the samples.
        """
        n_left = sum(map(len, self._left))
        every_feature = slice(0, len(self.features))
        if self._cube is None or n_left > len(self.in_play):
            self._cube = self._count(every_feature)
        else:
            for left in self._left:
                self._add_counts(every_feature, left, -1, self._cube)
        self._left.clear()
        return self._cube

    def _count(self, block: slice) -> CountArray:
        shape = (block.stop - block.start, self.n_bins, len(self.in_play.bounds) - 1)
        cube = np.zeros(shape, dtype=limits.COUNT_DTYPE)
        self._add_counts(block, self.in_play, 1, cube)
        return cube

    def _add_counts(self, block: slice, rows: Rows, sign: int, cube: CountArray) -> None:
        codes, index = self.codes[block], rows.list_index()

        def add_part(part: slice) -> None:
            _kernels.count_codes(codes[part], index, rows.bounds, sign, cube[part])

        # threads, where there is enough to do to pay for starting them
        n_threads = self.n_threads if len(codes) * len(rows) >= limits.MIN_THREADED_CELLS else 1
        run_tasks(add_part, split_evenly(len(codes), n_threads), n_threads)


class BitStore(Store):
    """Two-valued columns, 64 samples to a word; each segment starts a word of its own.

    segment        | 0,a (70 samples)          | 0,b (3 samples)
    words          | 1111..1 (64) | 111111.... | 111.....        dots: never set
    word_bounds    0                           2               3
    """

    n_bins = 2

    def __init__(self, features: IntArray, rows: Rows, n_threads: int, layout: Layout) -> None:
        self.features = features
        self.layout = layout
        self.n_threads = n_threads
        sizes = rows.sizes
        self._word_bounds = np.concatenate(([0], np.cumsum(-(-sizes // limits.WORD_BITS))))
        runs = np.column_stack((sizes, -sizes % limits.WORD_BITS)).ravel()
        self._is_used: BoolArray = np.repeat(np.arange(len(runs)) % 2 == 0, runs)
        #: where the bit of each sorted row stands
        self.bits = np.flatnonzero(self._is_used).astype(limits.ROW_DTYPE)
        self.words = np.zeros((len(features), self._word_bounds[-1]), dtype=limits.WORD_DTYPE)
        #: how many identical features each stands for; None where no two are
        self.n_alike: IntArray | None = None
        self._set_in_play(rows)

    def keep_first(self, features: IntArray, n_alike: IntArray | None) -> None:
        """Keep these of the features, ascending, each for as many identical ones."""
        kept = np.searchsorted(self.features, features)
        for part in split_evenly(len(kept), -(-self.words.size // limits.BLOCK_CELLS)):
            self.words[part] = self.words[kept[part]]  # in place: all move towards the start
        self.words = self.words[: len(kept)]
        self.features, self.n_alike = features, n_alike

    @property
    def n_bytes(self) -> int:
        return self.words.nbytes

    def find_codes(self, feature: int) -> Array:
        words = self.words[np.searchsorted(self.features, feature)]
        # a quarter of the time that taking each of self.bits takes
        return np.unpackbits(words.view(np.uint8), bitorder="little")[self._is_used]

    def remove(self, left: Rows, in_play: Rows) -> None:
        _kernels.clear_bits(self._in_play, left.take(self.bits))
        self._n_in_play = in_play.sizes

    def _set_in_play(self, rows: Rows) -> None:
        in_play = self._is_used
        if rows.index is not None:
            in_play = np.zeros_like(in_play)
            in_play[rows.take(self.bits)] = True
        self._in_play = np.packbits(in_play, bitorder="little").view(limits.WORD_DTYPE)
        self._n_in_play = rows.sizes

    def counts(self) -> Iterator[CountCube]:
        n_cells = len(self.features) * 2 * len(self._n_in_play)
        blocks = split_evenly(len(self.features), -(-n_cells // limits.PACKED_BLOCK_CELLS))
        n_threads = self.n_threads if self.words.size >= limits.MIN_THREADED_CELLS else 1
        return run_ahead(self._count_block, blocks, n_threads)

    def _count_block(self, block: slice) -> CountCube:
        words, in_play = self.words[block], self._in_play[np.newaxis]
        cube = np.empty((len(words), 2, len(self._n_in_play)), dtype=limits.COUNT_DTYPE)
        _kernels.count_bits(words, in_play, self._word_bounds, self._n_in_play, cube)
        n_alike = None if self.n_alike is None else self.n_alike[block]
        counts = cube.reshape(len(words), 2, 2, -1)
        return CountCube(self.features[block], counts, self.layout, n_alike)
