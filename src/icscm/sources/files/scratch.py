"""Temporary files that cannot be left behind: they have no name.

The file is taken out of its folder as soon as it is made, so that its space is free again when it
is closed or the process ends, in whatever way. One holds the hashes of all rows, from which the
sample of `sampling.choose_sample` is taken though the rows do not fit in memory:

all rows -> HashFile -> choose_rows ------> Sample: the hashes of the sampled rows
all rows, while they are read ------------> those of least hash: the sample, if no row has a copy
all rows once more -> find_rows ----------> their values, otherwise
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from icscm._types import Array, Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.sampling import Sample, has_copies, is_sampled, mix_copies
from icscm.exceptions import IcscmError, Parameter
from icscm.writing import format_size

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
