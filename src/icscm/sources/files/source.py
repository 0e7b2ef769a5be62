"""Fits from files: the division of memory, temporary files, and the source of rows over them.

    file      | feature 0: all rows, sorted | feature 1 | ... |    one byte a cell
    resident    a block of features at a time, while it is counted

A temporary file has no name, so that its space is freed when it is closed or the process ends. The
sample of `sampling.choose_sample` is taken from the hashes of all rows, though the rows do not fit
in memory:

    all rows -> hashes -> choose_rows --------> Sample: the hashes of the sampled rows
    all rows, while they are read ------------> of least hash: the sample, if no row has a copy
    all rows once more -> find_rows ----------> their values, otherwise

Counting is as in memory, but pages are released after use: mapped pages that were read count as
memory of the process until the system reclaims them or the process releases them.
"""

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

import numpy as np

from icscm._constants import CODE_DTYPE, ROW_DTYPE
from icscm._types import Array, CountArray, Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.counts import Clusters, SourceInfo
from icscm.engine.sampling import Sample, has_copies, is_sampled, mix_copies
from icscm.engine.stores import CodeStore, Rows
from icscm.engine.threads import run_ahead, split_evenly
from icscm.exceptions import IcscmError, Parameter
from icscm.io.streams import TableReader
from icscm.sources.stored import StoredSource, place
from icscm.writing import format_size

# Memory of a row beyond the batches read and written, at the most, which is in the search: where it
# goes (4 bytes), its number while in play (4), once more while rows split (4) and until those that
# left are subtracted from the counts (4), its code and whether it is covered.
_BYTES_PER_ROW = 18
# Of a row with a group besides: its number, and those by which clusters are numbered.
_BYTES_PER_GROUPED = 36
# Memory of the process before it reads anything, where the system does not report it.
_USUAL_RESIDENT = 2**28
# Memory for counts and for arithmetic on a block of candidates.
_SEARCH_BYTES = 2**26
# Rows read at a time: enough to keep threads busy, few enough to stay near the cache.
_MOST_BATCH_ROWS = 2**16
_LEAST_BATCH_ROWS = 2**8
# Least size of a buffer where rows take nearly all memory: less would be slow and save little.
_LEAST_SHARE = 2**20

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
        why = f" must be a number of bytes, or a size such as '2GiB' or '500MB'; got {size!r}"
        raise IcscmError(Parameter("max_memory"), why)
    return n_bytes


@dataclass(frozen=True)
class Budget:
    """How the memory is divided: `share` bytes for each of four buffers held at the same time."""

    limit: int
    used: int
    batch_rows: int
    share: int

    @classmethod
    def make(cls, max_memory: int | str, reader: TableReader, n_columns: int) -> "Budget":
        limit, used = parse_size(max_memory), _measure_resident()
        share = (limit - used - reader.estimate_bytes() - _SEARCH_BYTES) // 4
        # as read, as numbers, once more while they are surveyed, and the next batch as read
        row_bytes = 4 * 8 * n_columns
        if share < _LEAST_BATCH_ROWS * row_bytes:
            least = used + reader.estimate_bytes() + _SEARCH_BYTES + 2**10 * row_bytes
            why = f" is too little: the process takes {used / 1e6:,.0f} MB before it reads anything"
            why += f", and {n_columns:,} columns need more; allow at least "
            raise IcscmError(Parameter("max_memory", max_memory), why, f"{least / 1e6:,.0f} MB")
        return cls(limit, used, min(_MOST_BATCH_ROWS, share // row_bytes), share)

    def divide(self, n_rows: int, *, has_groups: bool = False) -> "Budget":
        """How memory is divided, given the number of rows; raise if they do not fit the limit."""
        row_bytes = _BYTES_PER_ROW + _BYTES_PER_GROUPED * has_groups
        least = self.used + _SEARCH_BYTES + n_rows * row_bytes
        if least > self.limit:
            too_little = f" is too little for {n_rows:,} rows: allow at least {least / 1e6:,.0f} MB"
            raise IcscmError(Parameter("max_memory"), too_little)
        most = np.iinfo(ROW_DTYPE).max
        if n_rows > most:
            raise IcscmError(f"{n_rows:,} rows are too many; the most is {most:,}")
        return replace(self, share=min(self.share, max((self.limit - least) // 4, _LEAST_SHARE)))


def _measure_resident() -> int:
    """Bytes of memory that this process takes now."""
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return n_pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _USUAL_RESIDENT  # other systems do not report it


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def map_file(n_bytes: int, folder: str | Path | None = None) -> mmap.mmap:
    """A temporary file of so many bytes, mapped into memory: the system may drop its pages.

    It is in `folder`, or where the system has such files. All its bytes are reserved, so that a
    disk that is too small is found here and not later. With 0 bytes, only the folder is tested.
    """
    place = Path(tempfile.gettempdir() if folder is None else folder)
    if not place.is_dir():
        why = " is not a folder; create it, or name another"
        raise IcscmError(Parameter("temp_dir", str(folder)), why)
    free = shutil.disk_usage(place).free
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            if n_bytes == 0:
                return mmap.mmap(-1, 1)  # an empty map cannot be made
            if n_bytes > free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                for start in range(0, n_bytes, _CHUNK):
                    file.write(bytes(min(_CHUNK, n_bytes - start)))
                file.flush()
            return mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        what = f"the temporary store in {place} cannot be written: {error.strerror}"
        if error.errno in _FULL:
            what = f"the disk is full: the temporary store needs {format_size(n_bytes)} in {place}"
            what += f", which has {format_size(free)} left"
        advice = "; name a folder on another disk with "
        raise IcscmError(what + advice, Parameter("temp_dir")) from error


# Bytes of arithmetic on one hash while copies are numbered.
_BYTES_PER_HASH = 64
# Bytes written at a time where the system cannot reserve them.
_CHUNK = 2**20


def read_ranges(hashes: Sequence[Hashes], max_bytes: int) -> Iterator[Hashes]:
    """All hashes in ascending order, in parts for which there is room.

    Equal ones are in the same part, so each part can be processed alone.
    """
    n_ranges = -(-sum(map(len, hashes)) * _BYTES_PER_HASH // max(1, max_bytes))
    for number in range(n_ranges):
        lowest = np.uint64(number * 2**64 // n_ranges)
        highest = np.uint64((number + 1) * 2**64 // n_ranges - 1)
        found = [each[(each >= lowest) & (each <= highest)] for each in hashes]
        yield np.sort(np.concatenate(found))


def choose_rows(hashes: Sequence[Hashes], max_bytes: int) -> Sample:
    """The sample, from the hashes of all rows, which are taken by ranges of their values."""
    any_copies, size = False, sampling.QUANTILE_SAMPLE
    least: Hashes = np.empty(0, dtype=np.uint64)
    for ordered in read_ranges(hashes, max_bytes):
        any_copies |= has_copies(ordered)
        least = np.append(least, ordered[:size])[:size]
    if not any_copies or not is_sampled(sum(map(len, hashes))):
        return Sample.make(least)
    mixed = of_mixed = least[:0]
    for ordered in read_ranges(hashes, max_bytes):
        mixed = np.append(mixed, mix_copies(ordered))
        of_mixed = np.append(of_mixed, ordered)
        kept = np.argpartition(mixed, min(size, len(mixed)) - 1)[:size]
        mixed, of_mixed = mixed[kept], of_mixed[kept]
    return Sample.make(of_mixed)


def find_rows(hashes: Sequence[Hashes], sample: Sample) -> IntArray:
    """A row for each content of the sample, in the order of their hashes."""
    found = np.full(len(sample.hashes), -1, dtype=np.int64)
    start = 0
    for part in hashes:
        rows = sample.find_rows(part)
        found[np.searchsorted(sample.hashes, part[rows])] = rows + start
        start += len(part)
    return found


class CodeFile:
    """Codes (feature, row) in a temporary file, filled a batch of rows at a time, then read."""

    def __init__(
        self, n_features: int, rows: Rows, folder: str | Path | None = None, n_threads: int = 1
    ) -> None:
        self.rows, self.n_threads = rows, n_threads
        #: where the next row of each segment goes
        self._next = rows.bounds[:-1].copy()
        n_cells = n_features * len(rows)
        self._map = map_file(n_cells, folder)
        codes = np.frombuffer(self._map, CODE_DTYPE, n_cells)
        self.codes: Array = codes.reshape(n_features, len(rows))

    def write(self, codes: Array, segments: Array) -> None:
        """Some rows: their codes (feature, row) and the segment of each."""
        order = np.argsort(segments, kind="stable")
        sizes = np.bincount(segments, minlength=len(self._next))
        ends = np.cumsum(sizes)
        # of each segment where its rows are among the sorted ones, and where they go
        spans = np.stack((ends - sizes, ends, self._next, self._next + sizes), axis=1)
        present = spans[sizes > 0].tolist()
        for feature, ordered in enumerate(
            run_ahead(methodcaller("take", order), codes, self.n_threads)
        ):
            for start, stop, first, last in present:
                self.codes[feature, first:last] = ordered[start:stop]
            self.release()  # else the pages of all features would be resident
        self._next += sizes

    def release(self) -> None:
        """Release all pages."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file, so that its space is free."""
        self.codes = np.empty((0, 0), dtype=CODE_DTYPE)
        with suppress(BufferError):  # an array over it is still in use
            self._map.close()


@dataclass(eq=False)
class MappedStore(CodeStore):
    """Columns of one layout in a code file; `block_columns` of them are resident at a time."""

    file: CodeFile
    block_columns: int

    def release(self) -> None:
        self.file.release()

    def _count_into(self, counts: CountArray, block: slice, rows: Rows) -> None:
        for part in split_evenly(len(counts), -(-len(counts) // self.block_columns)):
            columns = slice(block.start + part.start, block.start + part.stop)
            super()._count_into(counts[part], columns, rows)
            self.release()


def make_mapped_source(
    info: SourceInfo,
    features: Sequence[int],
    file: CodeFile,
    position: Array,
    *,
    block_bytes: int,
    device: str = "cpu",
    clusters: Clusters | None = None,
) -> StoredSource:
    """Make a filled file countable: `features` are those in it, neighbours of one layout.

    A row takes a few bytes of memory: its number, while in play, and where it went, `position`.
    """
    layouts = [info.columns.find_layout(feature) for feature in features]
    columns = np.array(features, dtype=np.int64)
    rows = file.rows
    stores = []
    for layout in dict.fromkeys(layouts):
        first = layouts.index(layout)
        neighbours = slice(first, first + layouts.count(layout))
        store = MappedStore(
            features=columns[neighbours],
            codes=file.codes[neighbours],
            n_bins=int(info.columns.count_bins(columns[neighbours]).max()),
            n_threads=file.n_threads,
            layout=layout,
            file=file,
            block_columns=max(1, block_bytes // max(1, len(rows))),
        )
        stores.append(store)
    placed = place(stores, rows, info.columns, device=device)
    return StoredSource(info, placed, rows, position, clusters)


def close_source(source: StoredSource, file: CodeFile) -> None:
    """Close the file; the source cannot count afterwards."""
    source.close()
    file.close()
