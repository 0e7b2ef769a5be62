"""How the memory of a fit from files is divided."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from icscm._constants import ROW_DTYPE
from icscm.exceptions import IcscmError, Parameter
from icscm.io.streams import TableReader

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

    def can_hold(self, n_columns: int, n_rows: int) -> bool:
        """Whether the numbers of so many rows fit."""
        return 8 * n_columns * n_rows <= self.share

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
