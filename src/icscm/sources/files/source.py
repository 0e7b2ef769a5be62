"""Fits from files: the division of memory, temporary files, and the source of rows over them.

    file      | column 0: all rows, sorted | column 1 | ... |    one byte a cell
    resident    a block of columns at a time, while it is counted

A temporary file has no name, so that its space is freed when it is closed or the process ends. The
sample of `sampling.choose_sample` is taken from the hashes of all rows, though the rows do not fit
in memory:

    all rows -> hashes -> choose_rows --------> Sample: the hashes of the sampled rows
    all rows, while they are read ------------> of lowest hash: the sample, if no row has a copy
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
from typing import IO

import numpy as np

from icscm._constants import CODE_DTYPE, ROW_DTYPE
from icscm._types import Array, CountArray, Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.counts import Clusters, SourceInfo
from icscm.engine.sampling import Sample, has_copies, is_sampled, mix_copies
from icscm.engine.stores import CodeStore, Rows
from icscm.engine.threads import divide_up, run_ahead, split_evenly
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
# Bytes of a value as it is read, or as a number.
_VALUE_BYTES = 8
# Times that a value is held at the same time in pass one: as read, as a number, once more while it
# is surveyed, and in the next batch, as read.
_COPIES_OF_VALUE = 4
# Rows read at a time: enough to keep threads busy, few enough to stay near the cache.
_MAX_BATCH_ROWS = 2**16
_MIN_BATCH_ROWS = 2**8
# The rows for which the advised memory has room, where not even the fewest fit.
_ADVISED_BATCH_ROWS = 2**10
# Smallest buffer, where rows take nearly all memory: less would be slow and save little.
_MIN_SHARE = 2**20
# Parts of the memory that are held at the same time: see `Budget`.
_N_BUFFERS = 4

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_size(size: int | str) -> int:
    """Return a size in bytes, given as a whole number, or as a number with a unit.

    >>> parse_size("2GiB"), parse_size("500 MB"), parse_size(1000)
    (2147483648, 500000000, 1000)
    """
    n_bytes = 0
    match = re.fullmatch(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*)\s*", str(size))
    if match:
        bytes_per_unit = _UNITS.get(match["unit"].upper(), 0)
        n_bytes = int(float(match["number"]) * bytes_per_unit)
    if n_bytes == 0:
        why = f" must be a number of bytes, or a size such as '2GiB' or '500MB'; got {size!r}"
        raise IcscmError(Parameter("max_memory"), why)
    return n_bytes


@dataclass(frozen=True)
class Budget:
    """How the memory of the process is divided, in bytes.

    Attributes
    ----------
    limit : int
        What it may take in all.
    used : int
        What it takes before it reads anything.
    batch_rows : int
        Rows that are read at a time.
    share : int
        For each of the `_N_BUFFERS` buffers that are held at the same time.
    """

    limit: int
    used: int
    batch_rows: int
    share: int

    @classmethod
    def make(cls, max_memory: int | str, reader: TableReader, n_columns: int) -> "Budget":
        """Divide the memory before anything is read; raise if so many columns need more.

        What the process takes already, reading and the search are set aside. The rest is divided
        into equal shares, and a batch has as many rows as a share has room for.
        """
        limit = parse_size(max_memory)
        used = _measure_resident()
        fixed = used + reader.estimate_bytes() + _SEARCH_BYTES
        share = (limit - fixed) // _N_BUFFERS

        row_bytes = _COPIES_OF_VALUE * _VALUE_BYTES * n_columns
        if share < _MIN_BATCH_ROWS * row_bytes:
            advised = fixed + _ADVISED_BATCH_ROWS * row_bytes
            why = (
                f" is too little: the process takes {used / 1e6:,.0f} MB before it reads anything, "
                f"and {n_columns:,} columns need more; allow at least {advised / 1e6:,.0f} MB"
            )
            raise IcscmError(Parameter("max_memory", max_memory), why)
        batch_rows = min(_MAX_BATCH_ROWS, share // row_bytes)
        return cls(limit=limit, used=used, batch_rows=batch_rows, share=share)

    def divide(self, n_rows: int, *, has_groups: bool = False) -> "Budget":
        """Divide the memory once the number of rows is known; raise if they do not fit.

        For every row some bytes are needed besides what is read and written, most of them by the
        search, and are set aside, too. So shares may become smaller.
        """
        row_bytes = _BYTES_PER_ROW
        if has_groups:
            row_bytes += _BYTES_PER_GROUPED
        needed = self.used + _SEARCH_BYTES + n_rows * row_bytes
        if needed > self.limit:
            why = f" is too little for {n_rows:,} rows: allow at least {needed / 1e6:,.0f} MB"
            raise IcscmError(Parameter("max_memory"), why)
        max_rows = np.iinfo(ROW_DTYPE).max
        if n_rows > max_rows:
            raise IcscmError(f"{n_rows:,} rows are too many; the most is {max_rows:,}")

        share_of_rest = max((self.limit - needed) // _N_BUFFERS, _MIN_SHARE)
        return replace(self, share=min(self.share, share_of_rest))


def _measure_resident() -> int:
    """Measure the bytes of memory that this process takes now."""
    try:
        sizes_in_pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        n_resident_pages = int(sizes_in_pages[1])
        return n_resident_pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _USUAL_RESIDENT  # other systems do not report it


# Errors of a disk without room.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def map_file(n_bytes: int, folder: str | Path | None = None) -> mmap.mmap:
    """Map a temporary file of so many bytes into memory: the system may drop its pages.

    It is in `folder`, or where the system has such files. All its bytes are reserved, so that a
    disk that is too small is found here and not later. With 0 bytes, only the folder is tested.
    """
    place = Path(tempfile.gettempdir() if folder is None else folder)
    if not place.is_dir():
        why = " is not a folder; create it, or name another"
        raise IcscmError(Parameter("temp_dir", str(folder)), why)

    n_free_bytes = shutil.disk_usage(place).free
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            if n_bytes == 0:
                return mmap.mmap(-1, 1)  # an empty map cannot be made
            if n_bytes > n_free_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            _reserve(file, n_bytes)
            return mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        if error.errno in _FULL:
            why = (
                f"the disk is full: the temporary store needs {format_size(n_bytes)} in {place}, "
                f"which has {format_size(n_free_bytes)} left"
            )
        else:
            why = f"the temporary store in {place} cannot be written: {error.strerror}"
        advice = "; name a folder on another disk with "
        raise IcscmError(why + advice, Parameter("temp_dir")) from error


# Bytes written at a time where the system cannot reserve them.
_CHUNK = 2**20


def _reserve(file: IO[bytes], n_bytes: int) -> None:
    """Reserve the bytes of an empty file on the disk; where the system cannot, write zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, _CHUNK):
        file.write(bytes(min(_CHUNK, n_bytes - start)))
    file.flush()


# Bytes of arithmetic on one hash while copies are numbered.
_BYTES_PER_HASH = 64


def read_ranges(hashes: Sequence[Hashes], max_bytes: int) -> Iterator[Hashes]:
    """Yield all hashes in ascending order, in ranges for which there is room.

    Hashes are spread evenly over all numbers of 64 bits, so ranges of equal width hold about
    equally many. Equal ones are in the same range, so each range can be processed alone.
    """
    n_hashes = sum(map(len, hashes))
    n_bytes = n_hashes * _BYTES_PER_HASH
    n_ranges = divide_up(n_bytes, max(1, max_bytes))
    for number in range(n_ranges):
        lowest = np.uint64(number * 2**64 // n_ranges)
        highest = np.uint64((number + 1) * 2**64 // n_ranges - 1)
        in_range = [batch[(batch >= lowest) & (batch <= highest)] for batch in hashes]
        yield np.sort(np.concatenate(in_range))


def choose_rows(hashes: Sequence[Hashes], max_bytes: int) -> Sample:
    """Choose the sample from the hashes of all rows, in little memory: a range of them at a time.

    Without copies it is the rows of lowest hash. Copies of a row have one hash, so where there are
    any, each is mixed with the number of its copy, and the lowest of the mixed hashes are taken.
    This is the sample that `sampling.choose_sample` chooses from all hashes at once.
    """
    # Ranges come in ascending order: once the lowest are full, others matter only for copies.
    n_rows = sum(map(len, hashes))
    has_any_copies = False
    lowest: Hashes = np.empty(0, dtype=np.uint64)
    for ordered in read_ranges(hashes, max_bytes):
        has_any_copies |= has_copies(ordered)
        candidates = np.append(lowest, ordered[: sampling.QUANTILE_SAMPLE])
        lowest = candidates[: sampling.QUANTILE_SAMPLE]

    if has_any_copies and is_sampled(n_rows):
        return _choose_among_copies(hashes, max_bytes)
    return Sample.make(lowest)


def _choose_among_copies(hashes: Sequence[Hashes], max_bytes: int) -> Sample:
    """Choose the rows of lowest mixed hash, in which copies of a row differ."""
    lowest_mixed: Hashes = np.empty(0, dtype=np.uint64)
    hash_of_lowest: Hashes = np.empty(0, dtype=np.uint64)
    for ordered in read_ranges(hashes, max_bytes):
        mixed = np.append(lowest_mixed, mix_copies(ordered))
        hash_of_mixed = np.append(hash_of_lowest, ordered)
        n_kept = min(sampling.QUANTILE_SAMPLE, len(mixed))
        kept = np.argpartition(mixed, n_kept - 1)[:n_kept]
        lowest_mixed = mixed[kept]
        hash_of_lowest = hash_of_mixed[kept]
        del mixed, hash_of_mixed  # they are as large as a range
    return Sample.make(hash_of_lowest)


def find_rows(hashes: Sequence[Hashes], sample: Sample) -> IntArray:
    """Find a row for each hash of the sample, in the order of the sample; of copies the last one.

    `hashes` has the hash of each row of the table, by batch. Rows of equal hash have equal values,
    so that any of them will do.
    """
    row_of_hash = np.full(len(sample.hashes), -1, dtype=np.int64)
    n_rows_before = 0
    for batch in hashes:
        sampled_rows = sample.find_rows(batch)
        places_in_sample = np.searchsorted(sample.hashes, batch[sampled_rows])
        row_of_hash[places_in_sample] = n_rows_before + sampled_rows
        n_rows_before += len(batch)
    return row_of_hash


class CodeFile:
    """Codes (column, row) in a temporary file, filled a batch of rows at a time, then read.

    Rows are sorted by segment. A batch may have rows of every segment, which go to as many places:

        segments of a batch     b a b a a
        sorted                  a a a b b
        file                    a a a a . . | b b b . .      . is where rows are to come
                                        ^           ^        where the next rows go
    """

    def __init__(
        self, n_columns: int, rows: Rows, folder: str | Path | None = None, n_threads: int = 1
    ) -> None:
        self.rows = rows
        self.n_threads = n_threads
        #: where the next row of each segment goes
        self._next_of_segment = rows.bounds[:-1].copy()
        n_cells = n_columns * len(rows)
        self._map = map_file(n_cells, folder)
        codes = np.frombuffer(self._map, CODE_DTYPE, n_cells)
        self.codes: Array = codes.reshape(n_columns, len(rows))

    def write(self, codes: Array, segments: Array) -> None:
        """Write the codes (column, row) of some rows, which are sorted by segment first.

        So all rows of a segment are written together.
        """
        order = np.argsort(segments, kind="stable")
        n_rows_of_segment = np.bincount(segments, minlength=len(self._next_of_segment))
        runs = self._find_runs(n_rows_of_segment)

        sorted_columns = run_ahead(methodcaller("take", order), codes, self.n_threads)
        for column, sorted_codes in enumerate(sorted_columns):
            for run in runs:
                self.codes[column, run.in_file] = sorted_codes[run.in_batch]
            self.release()  # else the pages of all columns would be resident
        self._next_of_segment += n_rows_of_segment

    def _find_runs(self, n_rows_of_segment: IntArray) -> "list[_Run]":
        """Find where the sorted rows of each segment of a batch are, and where they go."""
        stops_in_batch = np.cumsum(n_rows_of_segment)
        runs = []
        for segment in np.flatnonzero(n_rows_of_segment).tolist():
            n_rows = int(n_rows_of_segment[segment])
            stop = int(stops_in_batch[segment])
            first = int(self._next_of_segment[segment])
            run = _Run(in_batch=slice(stop - n_rows, stop), in_file=slice(first, first + n_rows))
            runs.append(run)
        return runs

    def release(self) -> None:
        """Release all pages."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file, so that its space is free."""
        self.codes = np.empty((0, 0), dtype=CODE_DTYPE)
        with suppress(BufferError):  # an array over it is still in use
            self._map.close()


@dataclass(frozen=True)
class _Run:
    """The rows of one segment: in a batch whose rows are sorted, and in the file."""

    in_batch: slice
    in_file: slice


@dataclass(eq=False)
class MappedStore(CodeStore):
    """Columns of one layout in a code file; `block_columns` of them are resident at a time."""

    file: CodeFile
    block_columns: int

    def release(self) -> None:
        """Release the pages of all columns."""
        self.file.release()

    def _count_into(self, counts: CountArray, block: slice, rows: Rows) -> None:
        """Count a block of columns in parts, and release the pages of each when it is counted."""
        n_parts = divide_up(len(counts), self.block_columns)
        for part in split_evenly(len(counts), n_parts):
            columns = slice(block.start + part.start, block.start + part.stop)
            super()._count_into(counts[part], columns, rows)
            self.release()


def make_mapped_source(
    info: SourceInfo,
    columns: Sequence[int],
    file: CodeFile,
    position: Array,
    *,
    block_bytes: int,
    device: str = "cpu",
    clusters: Clusters | None = None,
) -> StoredSource:
    """Make a filled file countable: a store for each layout of its columns.

    A `Layout` says how the bins of a column are to be read, which must be the same for all columns
    of a store. The file has the columns of a layout next to each other, so that a store is a range
    of it:

        row of `file.codes`    0        1        2        3
        columns                4        7        0        2        numbers in the table
        layout                 ordered  ordered  nominal  nominal
        store                  codes[0:2]        codes[2:4]

    Rows of the table are sorted by outcome and environment in the file. The source does not own the
    file: `close_source` closes both.

    Parameters
    ----------
    info : SourceInfo
        The columns of the whole table, its classes and its environments.
    columns : sequence of int
        The column of the table that each row of `file.codes` is.
    file : CodeFile
        The bins (column, sorted row).
    position : array of shape (n_rows,)
        Where each row of the table is among the sorted rows.
    block_bytes : int
        Bytes of the file that may be resident at a time; a column is always read whole.
    device : {"cpu", "cuda", "auto"}
        Where the rows are counted. To count them on a card, the bins are copied there.
    clusters : Clusters, optional
        The cluster of each sorted row; None if all rows are independent.
    """
    bytes_of_column = max(1, len(file.rows))  # a bin is a byte
    block_columns = max(1, block_bytes // bytes_of_column)
    columns_in_file = np.array(columns, dtype=np.int64)

    layouts = [info.columns.find_layout(column) for column in columns]
    different_layouts = dict.fromkeys(layouts)  # in the order of the file

    stores = []
    for layout in different_layouts:
        start = layouts.index(layout)
        stop = start + layouts.count(layout)
        columns_of_store = columns_in_file[start:stop]
        n_bins_of_columns = info.columns.count_bins(columns_of_store)
        store = MappedStore(
            columns=columns_of_store,
            codes=file.codes[start:stop],
            n_bins=int(n_bins_of_columns.max()),
            n_threads=file.n_threads,
            layout=layout,
            file=file,
            block_columns=block_columns,
        )
        stores.append(store)

    placed_stores = place(stores, file.rows, info.columns, device=device)
    return StoredSource(info, placed_stores, file.rows, position, clusters)


def close_source(source: StoredSource, file: CodeFile) -> None:
    """Close the file; the source cannot count afterwards."""
    source.close()
    file.close()
