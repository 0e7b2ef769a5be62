"""Temporary files that nobody can forget: they have no name.

The file is taken out of its folder as soon as it is made, so that its space is free again when it
is closed or the process ends, in whatever way.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from icscm._types import Array
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
        """Make the file this long; raise now rather than later if the disk is too small."""
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
        """Write behind what there is."""
        self.write(self._size, values)
        self._size += values.nbytes

    def write(self, at: int, values: Array) -> None:
        """Write at a byte of the file."""
        left = np.ascontiguousarray(values).view(np.uint8).data
        try:
            self._file.seek(at)
            while len(left):  # a disk that fills up takes a part before it refuses
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
        """The file as memory, to be read; the pages are the system's to drop."""
        return mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)

    def close(self) -> None:
        """Give the space back."""
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
