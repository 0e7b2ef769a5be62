"""The count source over codes in a file: as in memory, but pages are released after use.

    file      | feature 0: all rows, sorted | feature 1 | ... |    one byte a cell
    resident    a block of features at a time, while it is counted

Mapped pages that were read count as memory of the process until the system reclaims them or the
process releases them.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import methodcaller

import numpy as np

from icscm._constants import CODE_DTYPE
from icscm._types import Array, CountArray
from icscm.engine.counts import SourceInfo
from icscm.engine.stores import CodeStore, Rows, Store
from icscm.engine.threads import run_ahead, split_evenly
from icscm.sources.files.scratch import ScratchFile
from icscm.sources.stored import StoredSource, place


class CodeFile:
    """Codes (feature, row) in a temporary file, filled a batch of rows at a time, then read."""

    def __init__(self, file: ScratchFile, n_features: int, rows: Rows, n_threads: int = 1) -> None:
        self._file = file
        self._n_threads = n_threads
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
        sort = methodcaller("take", order)
        for feature, ordered in enumerate(run_ahead(sort, codes, self._n_threads)):
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
        """Release all pages."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file, so that its space is free as soon as it is closed."""
        if self._map is not None:
            with suppress(BufferError):  # an array over it is still in someone's hands
                self._map.close()


@dataclass(eq=False)
class MappedStore(CodeStore):
    """Columns of one layout in a code file; `block_features` of them are resident at a time."""

    file: CodeFile
    block_features: int

    def release(self) -> None:
        self.file.release()

    def _add_counts(self, block: slice, rows: Rows, sign: int, cube: CountArray) -> None:
        n_blocks = -(-len(cube) // self.block_features)
        for part in split_evenly(len(cube), n_blocks):
            features = slice(block.start + part.start, block.start + part.stop)
            super()._add_counts(features, rows, sign, cube[part])
            self.release()


class MappedSource(StoredSource):
    """Counts over codes in a file. A row takes a few bytes of memory: its number, while in play."""

    def __init__(
        self, info: SourceInfo, stores: Sequence[Store], rows: Rows, file: CodeFile
    ) -> None:
        super().__init__(info, stores, rows)
        self._file = file

    def close(self) -> None:
        """Close the file; the source cannot count afterwards."""
        self.piece = replace(self.piece, stores=())
        self._file.close()


def make_mapped_source(
    info: SourceInfo,
    features: Sequence[int],
    file: CodeFile,
    rows: Rows,
    *,
    n_threads: int,
    block_bytes: int,
    device: str = "cpu",
) -> MappedSource:
    """Make a filled file countable: `features` are those in it, neighbours of one layout."""
    codes = file.read()
    layouts = [info.candidates.find_layout(feature) for feature in features]
    numbers = np.array(features, dtype=np.int64)
    stores = []
    for layout in dict.fromkeys(layouts):
        first = layouts.index(layout)
        alike = slice(first, first + layouts.count(layout))
        n_bins = int(info.candidates.count_bins(numbers[alike]).max())
        own = numbers[alike], codes[alike], n_bins, rows, n_threads, layout
        stores.append(MappedStore(*own, file, max(1, block_bytes // max(1, len(rows)))))
    return MappedSource(info, place(stores, rows, device), rows, file)
