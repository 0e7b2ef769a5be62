"""The sample of `sampling.choose_sample`, from more rows than memory holds.

all rows -> HashFile -> choose_rows ------> Sample: the hashes of the sampled rows
all rows, while they are read ------------> those of least hash, which are it if no row has a copy
all rows once more -> find_rows ----------> their values, otherwise
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from icscm._types import Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.sampling import Sample, has_copies, is_sampled, mix_copies
from icscm.sources.files.scratch import ScratchFile

# Bytes of arithmetic on one hash while copies are told apart.
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

        Equal ones come together, so each part needs to know only itself.
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
