"""The sample of `binning.choose_sample`, from more rows than memory holds.

all rows -> HashFile -> choose_hashes -> hashes of the sampled rows
all rows -> Candidates, while they are read --------> their values, if no row has a copy
all rows once more -> find_rows --------------------> their values, otherwise
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from icscm._constants import QUANTILE_SAMPLE
from icscm._types import Array, Hashes
from icscm.engine.binning import mix_copies, number_copies
from icscm.sources.files.scratch import ScratchFile

# Bytes of arithmetic on one hash while copies are told apart.
_BYTES_PER_HASH = 64
# Hashes read at a time.
_CHUNK = 2**20


class HashFile:
    """The hashes of all rows, in the order of the rows."""

    def __init__(self, file: ScratchFile) -> None:
        self._file = file
        self._n_hashes = 0

    def append(self, hashes: Hashes) -> None:
        """Those of the next rows."""
        self._file.append(hashes)
        self._n_hashes += len(hashes)

    def __len__(self) -> int:
        return self._n_hashes

    def __iter__(self) -> Iterator[Hashes]:
        for start in range(0, self._n_hashes, _CHUNK):
            yield self._file.read(start, min(self._n_hashes, start + _CHUNK), np.uint64)


def choose_hashes(hashes: HashFile, max_bytes: int) -> Hashes:
    """The sample as hashes, sorted, each as often as the sample has copies of its row.

    Equal hashes must meet to be told apart, so the hashes are taken by ranges of their values,
    each of which fits in memory, and each of which needs to know only itself.
    """
    n_ranges = -(-len(hashes) * _BYTES_PER_HASH // max(1, max_bytes))
    ranges = [(number, n_ranges) for number in range(n_ranges)]
    has_copies = False
    least: Hashes = np.empty(0, dtype=np.uint64)
    for each in ranges:
        ordered = np.sort(_read_range(hashes, *each))
        has_copies |= bool((ordered[1:] == ordered[:-1]).any())
        least = np.append(least, ordered[:QUANTILE_SAMPLE])[:QUANTILE_SAMPLE]
    if not has_copies or len(hashes) <= QUANTILE_SAMPLE:
        return least
    mixed = of_mixed = least[:0]
    for each in ranges:
        ordered = np.sort(_read_range(hashes, *each))
        mixed = np.append(mixed, mix_copies(ordered))
        of_mixed = np.append(of_mixed, ordered)
        kept = np.argpartition(mixed, min(QUANTILE_SAMPLE, len(mixed)) - 1)[:QUANTILE_SAMPLE]
        mixed, of_mixed = mixed[kept], of_mixed[kept]
    return np.sort(of_mixed)


def _read_range(hashes: HashFile, number: int, n_ranges: int) -> Hashes:
    """The hashes of one of so many equal ranges of all hashes."""
    lowest = np.uint64(number * 2**64 // n_ranges)
    highest = np.uint64((number + 1) * 2**64 // n_ranges - 1)
    return np.concatenate([each[(each >= lowest) & (each <= highest)] for each in hashes])


def find_rows(hashes: HashFile, wanted: Hashes) -> NDArray[np.int64]:
    """The first rows that have these hashes, each as often as it is wanted."""
    distinct, n_wanted = np.unique(wanted, return_counts=True)
    found, start = [], 0
    for chunk in hashes:
        at = np.minimum(np.searchsorted(distinct, chunk), len(distinct) - 1)
        rows = np.flatnonzero(distinct[at] == chunk)
        rows = rows[np.argsort(at[rows], kind="stable")]
        which = at[rows]
        is_taken = number_copies(which.astype(np.uint64)) < n_wanted[which]
        n_wanted -= np.bincount(which[is_taken], minlength=len(distinct))
        found.append(np.sort(rows[is_taken]) + start)
        start += len(chunk)
    return np.concatenate(found)


class Candidates:
    """The rows of least hash so far, with their values: the sample, unless rows have copies.

    Which copies of a row are in the sample depends on their number, known only at the end.
    """

    def __init__(self) -> None:
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._values: dict[int, Array] = {}
        self._highest = np.uint64(2**64 - 1)

    def add(self, columns: Mapping[int, Array], hashes: Hashes) -> None:
        """More rows: their values by column, NaN where missing, and their hashes."""
        rows = np.flatnonzero(hashes <= self._highest)
        if len(rows) == 0 and self._values:
            return
        none: Array = np.empty(0, dtype=np.uint8)
        self._hashes = np.append(self._hashes, hashes[rows])
        self._values = {
            j: np.append(self._values.get(j, none), values[rows]) for j, values in columns.items()
        }
        if len(self._hashes) > QUANTILE_SAMPLE:
            self._drop()

    def _drop(self) -> None:
        kept = np.argpartition(self._hashes, QUANTILE_SAMPLE - 1)[:QUANTILE_SAMPLE]
        self._hashes = self._hashes[kept]
        self._values = {j: values[kept] for j, values in self._values.items()}
        self._highest = self._hashes.max()

    def find_values(self, wanted: Hashes) -> Mapping[int, Array] | None:
        """The values of the sampled rows if they are all here, else None."""
        return self._values if np.array_equal(np.sort(self._hashes), wanted) else None
