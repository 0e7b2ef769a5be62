"""The count source over codes in a file: as in memory, but pages are let go after use.

    file      | feature 0: all rows, sorted | feature 1 | ... |    one byte a cell
    resident    a block of features at a time, while it is counted

Mapped pages that were touched count as the process's memory until the system wants them back or
the process lets go of them, so it does.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import CODE_DTYPE
from icscm._types import Array, CountArray
from icscm.engine.binning import Binning
from icscm.engine.counts import BinnedRule, Layout, PatternTable
from icscm.engine.patterns import count_patterns, merge_patterns
from icscm.engine.rows import Rows
from icscm.engine.stores import CodeStore
from icscm.engine.threads import split_evenly
from icscm.sources.files.scratch import ScratchFile
from icscm.sources.stored import StoredSource

# Rows looked at together where each needs several bytes of arithmetic.
_ROW_CHUNK = 2**20


class CodeFile:
    """Codes (feature, row) in a temporary file, filled a batch of rows at a time, then read."""

    def __init__(self, file: ScratchFile, n_features: int, rows: Rows) -> None:
        self._file = file
        self._shape = n_features, len(rows)
        #: where the next row of each segment goes
        self._next = rows.bounds[:-1].copy()
        self._map: mmap.mmap | None = None
        file.reserve(n_features * len(rows))

    def write(self, codes: Array, segments: Array) -> None:
        """Some rows: their codes (feature, row) and the segment of each."""
        order = np.argsort(segments, kind="stable")
        sizes = np.bincount(segments, minlength=len(self._next))
        ends = np.cumsum(sizes)
        present = np.flatnonzero(sizes)
        for feature, column in enumerate(codes):
            ordered = column[order]
            for s in present.tolist():
                at = feature * self._shape[1] + int(self._next[s])
                self._file.write(at, ordered[ends[s] - sizes[s] : ends[s]])
        self._next += sizes

    def read(self) -> Array:
        """All codes, as memory that is read from the file when it is touched."""
        if 0 in self._shape:
            return np.empty(self._shape, dtype=CODE_DTYPE)
        self._map = self._file.map()
        return np.frombuffer(self._map, dtype=CODE_DTYPE).reshape(self._shape)

    def release(self) -> None:
        """Let go of all pages."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file, so that its space is free as soon as it is closed."""
        if self._map is not None:
            with suppress(BufferError):  # an array over it is still in someone's hands
                self._map.close()


class MappedStore(CodeStore):
    """Columns of one layout in a code file; `block_features` of them are resident at a time."""

    def __init__(
        self,
        features: NDArray[np.int64],
        codes: Array,
        n_bins: int,
        rows: Rows,
        n_threads: int,
        layout: Layout,
        file: CodeFile,
        block_features: int,
    ) -> None:
        super().__init__(features, codes, n_bins, rows, n_threads, layout)
        self._file = file
        self._block_features = block_features

    def restrict(self, rows: Rows) -> MappedStore:
        restricted = copy(self)
        restricted._in_play, restricted._left, restricted._cube = rows, [], None
        return restricted

    def _add_counts(self, block: slice, rows: Rows, sign: int, cube: CountArray) -> None:
        n_blocks = -(-len(cube) // self._block_features)
        for part in split_evenly(len(cube), n_blocks):
            features = slice(block.start + part.start, block.start + part.stop)
            super()._add_counts(features, rows, sign, cube[part])
            self._file.release()


class MappedSource(StoredSource):
    """Counts over codes in a file. A row takes a few bytes of memory: its number, while in play."""

    def __init__(
        self,
        binned: Binning,
        stores: Sequence[MappedStore],
        rows: Rows,
        classes: Sequence[Any],
        environments: Sequence[Any],
        notes: Sequence[str],
        file: CodeFile,
    ) -> None:
        super().__init__(binned, stores, rows, len(rows), classes, environments, notes)
        self._file = file

    def close(self) -> None:
        """Give the file up; nothing can be counted any more."""
        self._stores = ()
        self._file.close()

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        tables = []
        for chunk in _split_rows(len(self._all_rows)):
            truths = [~rule.find_settled(self._find_codes(rule.feature)[chunk]) for rule in rules]
            bounds: NDArray[np.int64] = self._all_rows.bounds.clip(chunk.start, chunk.stop)
            sizes = bounds[1:] - bounds[:-1]
            cells = np.repeat(np.arange(len(sizes)), sizes)
            tables.append(count_patterns(truths, cells, len(self.environments)))
            self._file.release()
        together = PatternTable(
            np.concatenate([table.patterns for table in tables]),
            np.concatenate([table.counts for table in tables]),
        )
        return merge_patterns(together, range(len(rules)))

    def _find_settled_in_play(self, rule: BinnedRule) -> NDArray[np.bool_]:
        codes, index = self._find_codes(rule.feature), self._in_play.index
        settled = np.empty(len(self._in_play), dtype=np.bool_)
        for chunk in _split_rows(len(settled)):
            settled[chunk] = rule.find_settled(codes[chunk if index is None else index[chunk]])
        self._file.release()
        return settled


def _split_rows(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _ROW_CHUNK):
        yield slice(start, min(n_rows, start + _ROW_CHUNK))


def make_mapped_source(
    binned: Binning,
    features: Sequence[int],
    file: CodeFile,
    rows: Rows,
    *,
    classes: Sequence[Any],
    environment_labels: Sequence[Any],
    notes: Sequence[str],
    n_threads: int,
    block_bytes: int,
) -> MappedSource:
    """Make a filled file countable: `features` are those in it, neighbours of one layout."""
    codes = file.read()
    layouts = [binned.find_layout(feature) for feature in features]
    numbers = np.array(features, dtype=np.int64)
    block_features = max(1, block_bytes // max(1, len(rows)))
    stores = []
    for layout in dict.fromkeys(layouts):
        first, n = layouts.index(layout), layouts.count(layout)
        alike = slice(first, first + n)
        n_bins = int(binned.count_bins(numbers[alike]).max())
        stores.append(
            MappedStore(
                numbers[alike],
                codes[alike],
                n_bins,
                rows,
                n_threads,
                layout,
                file,
                block_features,
            )
        )
    return MappedSource(binned, stores, rows, classes, environment_labels, notes, file)
