"""The sample that places the quantiles, from rows that lie in many places.

    hashes of a piece --.
    hashes of a piece ----> (hash, rows) of all --> Sample: which rows, how often
    hashes of a piece --'                              |
                                 every piece: values of those that it holds

Rows of equal content are told apart by their number, as `binning.choose_sample` does, so all that
must be known is how often each content occurs. Up to `MAX_HASHES` different contents the sample
is the one that a table in memory would give; of more, only those count whose hash begins with
enough zero bits, however the rows are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import QUANTILE_SAMPLE
from icscm.engine.binning import choose_sample

Array = NDArray[Any]
Hashes = NDArray[np.uint64]

# Contents that are merged: 256 MB, most of what one task should hold.
MAX_HASHES = 2**24


@dataclass(frozen=True)
class HashCounts:
    """How many rows have each hash, ascending; only hashes that begin with so many zero bits."""

    hashes: Hashes
    n_rows: NDArray[np.int64]
    n_zero_bits: int = 0

    def __sizeof__(self) -> int:
        return int(self.hashes.nbytes + self.n_rows.nbytes)

    def thin(self, n_zero_bits: int) -> HashCounts:
        """Those that begin with at least so many zero bits."""
        if n_zero_bits <= self.n_zero_bits:
            return self
        end = np.searchsorted(self.hashes, np.uint64(2 ** (64 - n_zero_bits)))
        return HashCounts(self.hashes[:end], self.n_rows[:end], n_zero_bits)

    def limit(self, most: int) -> HashCounts:
        """At most so many hashes. The whole decides how many bits that takes, not its pieces."""
        found = self
        while len(found.hashes) > most:
            found = found.thin(found.n_zero_bits + 1)
        return found


@dataclass(frozen=True)
class Sample:
    """The rows of the sample by their hash, ascending, and how many copies of each belong to it."""

    hashes: Hashes
    n_copies: NDArray[np.int64]
    n_zero_bits: int


@dataclass(frozen=True)
class SampledRows:
    """Values (row, column) of some of the sample's rows, each content once."""

    hashes: Hashes
    values: Array

    def __sizeof__(self) -> int:
        return int(self.hashes.nbytes + self.values.nbytes)


def tally_hashes(hashes: Hashes, most: int = MAX_HASHES) -> HashCounts:
    """How often each hash occurs in a piece."""
    found, n_rows = np.unique(hashes, return_counts=True)
    return HashCounts(found, n_rows.astype(np.int64)).limit(most)


def merge_hash_counts(parts: Sequence[HashCounts], most: int = MAX_HASHES) -> HashCounts:
    """How often each hash occurs in several pieces."""
    n_zero_bits = max(part.n_zero_bits for part in parts)
    thinned = [part.thin(n_zero_bits) for part in parts]
    hashes = np.concatenate([part.hashes for part in thinned])
    n_rows = np.concatenate([part.n_rows for part in thinned])
    if len(hashes) == 0:
        return HashCounts(hashes, n_rows, n_zero_bits)
    order = np.argsort(hashes, kind="stable")  # quick with runs that are sorted already
    hashes = hashes[order]
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    return HashCounts(hashes[starts], np.add.reduceat(n_rows[order], starts), n_zero_bits).limit(
        most
    )


def choose_rows(counts: HashCounts) -> Sample:
    """The rows of the sample; all where there are no more than it holds."""
    rows = np.repeat(counts.hashes, counts.n_rows)
    if len(rows) > QUANTILE_SAMPLE:
        rows = rows[choose_sample(rows)]
    hashes, n_copies = np.unique(rows, return_counts=True)
    return Sample(hashes, n_copies.astype(np.int64), counts.n_zero_bits)


def take_rows(hashes: Hashes, values: Array, sample: Sample) -> SampledRows:
    """Those of a piece's rows that belong to the sample, from the hash and the values of each."""
    found, first = np.unique(hashes, return_index=True)
    is_sampled = np.isin(found, sample.hashes)
    return SampledRows(found[is_sampled], values[first[is_sampled]])


def merge_sampled(parts: Sequence[SampledRows]) -> SampledRows:
    """The rows of several pieces, those of equal content once."""
    hashes, first = np.unique(np.concatenate([part.hashes for part in parts]), return_index=True)
    return SampledRows(hashes, np.concatenate([part.values for part in parts])[first])


def repeat_copies(rows: SampledRows, sample: Sample) -> Array:
    """The values (row, column) of all rows of the sample."""
    repeated: Array = np.repeat(rows.values, sample.n_copies, axis=0)
    return repeated
