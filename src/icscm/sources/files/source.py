"""Fits from files: the division of memory, temporary files, and the count source over them.

    file      | feature 0: all rows, sorted | feature 1 | ... |    one byte a cell
    resident    a block of features at a time, while it is counted

A temporary file has no name, so that its space is free again when it is closed or the process ends,
in whatever way. One holds the hashes of all rows, from which the sample of `sampling.choose_sample`
is taken though the rows do not fit in memory:

    all rows -> HashFile -> choose_rows ------> Sample: the hashes of the sampled rows
    all rows, while they are read ------------> of least hash: the sample, if no row has a copy
    all rows once more -> find_rows ----------> their values, otherwise

Counting is as in memory, but pages are released after use: mapped pages that were read count as
memory of the process until the system reclaims them or the process releases them.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from icscm._constants import CODE_DTYPE, ROW_DTYPE
from icscm._types import Array, CountArray, Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.counts import SourceInfo
from icscm.engine.sampling import Sample, has_copies, is_sampled, mix_copies
from icscm.engine.stores import CodeStore, Rows, Store
from icscm.engine.threads import run_ahead, split_evenly
from icscm.exceptions import IcscmError, Parameter
from icscm.io.streams import TableReader
from icscm.sources.countable import StoredSource, place
from icscm.writing import format_size

# Memory of a row beyond the batches read and written: its number while it is in play, once more
# while rows are split; its label and environment.
_BYTES_PER_ROW = 16
# Memory of the process before it reads anything, where the system does not report it.
_USUAL_RESIDENT = 2**28
# Memory for counts and for arithmetic on a block of candidates.
_SEARCH_BYTES = 2**26
# Rows read at a time: enough to keep threads busy, few enough to stay near the cache.
_MOST_BATCH_ROWS = 2**16
_LEAST_BATCH_ROWS = 2**8


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_size(size: int | str) -> int:
    """A size in bytes: a whole number, or a number with a unit.

    >>> parse_size("2GiB"), parse_size("500 MB"), parse_size(1000)
    (2147483648, 500000000, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    n_bytes = int(float(found[1]) * _UNITS.get(found[2].upper(), 0)) if found else 0
    if n_bytes == 0:
        raise IcscmError(
            Parameter("max_memory"),
            f" must be a number of bytes, or a size such as '2GiB' or '500MB'; got {size!r}",
        )
    return n_bytes


@dataclass(frozen=True)
class Budget:
    """How the memory is divided: `share` bytes for each of four buffers held at the same time."""

    limit: int
    used: int
    batch_rows: int
    share: int

    @classmethod
    def make(cls, max_memory: int | str, reader: TableReader, n_columns: int) -> Budget:
        limit, used = parse_size(max_memory), _measure_resident()
        share = (limit - used - reader.estimate_bytes() - _SEARCH_BYTES) // 4
        # as read, as numbers, once more while they are surveyed, and the next batch as read
        row_bytes = 4 * 8 * n_columns
        if share < _LEAST_BATCH_ROWS * row_bytes:
            least = used + reader.estimate_bytes() + _SEARCH_BYTES + 2**10 * row_bytes
            raise IcscmError(
                Parameter("max_memory", max_memory),
                f" is too little: the process takes {used / 1e6:,.0f} MB before it "
                f"reads anything, and reading and searching {n_columns:,} columns more; allow at "
                f"least {least / 1e6:,.0f} MB",
            )
        return cls(limit, used, min(_MOST_BATCH_ROWS, share // row_bytes), share)

    def check_rows(self, n_rows: int) -> None:
        """Raise if so many rows cannot be searched within the limit."""
        least = self.used + _SEARCH_BYTES + n_rows * _BYTES_PER_ROW
        if least > self.limit:
            wanted = f"allow at least {least / 1e6:,.0f} MB"
            too_little = f" is too little for {n_rows:,} rows: {wanted}"
            raise IcscmError(Parameter("max_memory"), too_little)
        most = np.iinfo(ROW_DTYPE).max
        if n_rows > most:
            raise IcscmError(f"{n_rows:,} rows are more than the {most:,} at most")


def _measure_resident() -> int:
    """Bytes of memory that this process takes now."""
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return n_pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _USUAL_RESIDENT  # other systems do not report it


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ScratchFile:
    """A temporary file of plain arrays, in `folder` or where the system has such files."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        if not self._folder.is_dir():
            raise IcscmError(
                Parameter("temp_dir", str(folder)), " is no folder; make it, or name another"
            )
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise IcscmError(
                f"no temporary file can be made in {self._folder}: {error.strerror}; name another "
                "folder with ",
                Parameter("temp_dir"),
            ) from error
        self._size = 0

    def reserve(self, n_bytes: int) -> None:
        """Allocate so many bytes; raises here, not later, if the disk is too small."""
        if n_bytes > shutil.disk_usage(self._folder).free:
            self._fail(n_bytes)
        try:
            if hasattr(os, "posix_fallocate") and n_bytes:
                os.posix_fallocate(self._file.fileno(), 0, n_bytes)
            else:
                self._file.truncate(n_bytes)
        except OSError as error:
            self._fail(n_bytes, error)
        self._size = n_bytes

    def append(self, values: Array) -> None:
        """Write at the end."""
        self.write(self._size, values)
        self._size += values.nbytes

    def write(self, at: int, values: Array) -> None:
        """Write at a byte of the file."""
        left = np.ascontiguousarray(values).view(np.uint8).data
        try:
            self._file.seek(at)
            while len(left):  # a disk that fills up takes a part before it fails
                left = left[self._file.write(left) :]
        except OSError as error:
            self._fail(values.nbytes, error)

    def read(self, start: int, stop: int, dtype: Any) -> Array:
        """Values from one number to another, as if the file held nothing but this type."""
        values = np.empty(stop - start, dtype=dtype)
        self._file.seek(start * values.itemsize)
        view, n_read = values.view(np.uint8).data, 0
        while n_read < values.nbytes:
            n_more = self._file.readinto(view[n_read:])
            if not n_more:
                raise IcscmError(f"the temporary store in {self._folder} was cut off while in use")
            n_read += n_more
        return values

    def map(self) -> mmap.mmap:
        """The file mapped into memory, read-only; the system may drop its pages."""
        return mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)

    def close(self) -> None:
        """Free the space."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _fail(self, n_bytes: int, error: OSError | None = None) -> NoReturn:
        """Raise for a full disk, or for any other error of writing so many bytes."""
        folder = Parameter("temp_dir")
        if error is not None and error.errno not in _FULL:
            raise IcscmError(
                f"the temporary store in {self._folder} cannot be written: {error.strerror}; name "
                "another folder with ",
                folder,
            ) from error
        free = shutil.disk_usage(self._folder).free
        raise IcscmError(
            f"the disk is full: the temporary store needs {format_size(n_bytes)} in "
            f"{self._folder}, which has {format_size(free)} left; free some, or name a folder on "
            "another disk with ",
            folder,
        ) from None


# Bytes of arithmetic on one hash while copies are numbered.
_BYTES_PER_HASH = 64
# Hashes read at a time.
_CHUNK = 2**20


@dataclass
class HashFile:
    """The hashes of all rows, in the order of the rows."""

    _file: ScratchFile
    _n_hashes: int = 0

    def append(self, hashes: Hashes) -> None:
        """Those of the next rows."""
        self._file.append(hashes)
        self._n_hashes += len(hashes)

    def __len__(self) -> int:
        return self._n_hashes

    def __iter__(self) -> Iterator[Hashes]:
        for start in range(0, self._n_hashes, _CHUNK):
            yield self._file.read(start, min(self._n_hashes, start + _CHUNK), np.uint64)

    def read_ranges(self, max_bytes: int) -> Iterator[Hashes]:
        """All hashes in ascending order, in parts for which there is room.

        Equal ones are in the same part, so each part can be processed alone.
        """
        n_ranges = -(-len(self) * _BYTES_PER_HASH // max(1, max_bytes))
        for number in range(n_ranges):
            lowest = np.uint64(number * 2**64 // n_ranges)
            highest = np.uint64((number + 1) * 2**64 // n_ranges - 1)
            found = [each[(each >= lowest) & (each <= highest)] for each in self]
            yield np.sort(np.concatenate(found))


def choose_rows(hashes: HashFile, max_bytes: int) -> Sample:
    """The sample, from hashes that are taken by ranges of their values."""
    any_copies, size = False, sampling.QUANTILE_SAMPLE
    least: Hashes = np.empty(0, dtype=np.uint64)
    for ordered in hashes.read_ranges(max_bytes):
        any_copies |= has_copies(ordered)
        least = np.append(least, ordered[:size])[:size]
    if not any_copies or not is_sampled(len(hashes)):
        return Sample.make(least)
    mixed = of_mixed = least[:0]
    for ordered in hashes.read_ranges(max_bytes):
        mixed = np.append(mixed, mix_copies(ordered))
        of_mixed = np.append(of_mixed, ordered)
        kept = np.argpartition(mixed, min(size, len(mixed)) - 1)[:size]
        mixed, of_mixed = mixed[kept], of_mixed[kept]
    return Sample.make(of_mixed)


def find_rows(hashes: HashFile, sample: Sample) -> IntArray:
    """A row for each content of the sample, in the order of their hashes."""
    found = np.full(len(sample.hashes), -1, dtype=np.int64)
    start = 0
    for chunk in hashes:
        rows = sample.find_rows(chunk)
        found[np.searchsorted(sample.hashes, chunk[rows])] = rows + start
        start += len(chunk)
    return found


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
