"""The sample that places the quantiles, from rows that lie in many places.

    hashes of a piece --.
    hashes of a piece ----> (hash, rows) of all --> Sample: which rows, how often
    hashes of a piece --'                              |
                                 every piece: values of those that it holds

Rows of equal content are told apart by their number, as `sampling.choose_sample` does, so all that
must be known is how often each content occurs. Up to `MAX_HASHES` different contents the sample
is the one that a table in memory would give; of more, only those count whose hash begins with
enough zero bits, however the rows are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._types import Hashes, IntArray
from icscm.engine.sampling import Sample, choose_sample

# Contents that are merged: 256 MB, most of what one task should hold.
MAX_HASHES = 2**24


@dataclass(frozen=True)
class HashCounts:
    """How many rows have each hash, ascending; only hashes that begin with so many zero bits."""

    hashes: Hashes
    n_rows: IntArray
    n_zero_bits: int = 0

    def __sizeof__(self) -> int:
        return int(self.hashes.nbytes + self.n_rows.nbytes)

    def thin(self, n_zero_bits: int) -> HashCounts:
        """Those that begin with at least so many zero bits."""
        if n_zero_bits <= self.n_zero_bits:
            return self
        end = self._find_end(n_zero_bits)
        return HashCounts(self.hashes[:end], self.n_rows[:end], n_zero_bits)

    def take_only(self, n_zero_bits: int) -> HashCounts:
        """Those that begin with so many zero bits and then a one."""
        part = slice(self._find_end(n_zero_bits + 1), self._find_end(n_zero_bits))
        return HashCounts(self.hashes[part], self.n_rows[part], n_zero_bits)

    def _find_end(self, n_zero_bits: int) -> int:
        if n_zero_bits == 0:
            return len(self.hashes)
        return int(np.searchsorted(self.hashes, np.uint64(2 ** (64 - n_zero_bits))))


def tally_hashes(hashes: Hashes, most: int = MAX_HASHES) -> HashCounts:
    """How often each hash occurs in a piece."""
    found, n_rows = np.unique(hashes, return_counts=True)
    return merge_hash_counts([HashCounts(found, n_rows.astype(np.int64))], most)


def merge_hash_counts(parts: Sequence[HashCounts], most: int = MAX_HASHES) -> HashCounts:
    """How often each hash occurs in several pieces: at most so many, with the fewest zero bits.

    That number of bits is the same however the rows are cut: it depends on the different hashes
    of the whole. To sort few, those with enough bits come first, then one bit less at a time.
    """
    least = max(part.n_zero_bits for part in parts)
    n_zero_bits = least
    while sum(len(part.thin(n_zero_bits).hashes) for part in parts) > most:
        n_zero_bits += 1
    merged = _merge([part.thin(n_zero_bits) for part in parts])
    while n_zero_bits > least:
        more = _merge([part.take_only(n_zero_bits - 1) for part in parts])
        if len(merged.hashes) + len(more.hashes) > most:
            break
        merged = _merge([merged, more])
        n_zero_bits -= 1
    return HashCounts(merged.hashes, merged.n_rows, n_zero_bits)


def _merge(parts: Sequence[HashCounts]) -> HashCounts:
    """All hashes, ascending, rows of equal ones added up."""
    hashes = np.concatenate([part.hashes for part in parts])
    n_rows = np.concatenate([part.n_rows for part in parts])
    order = np.argsort(hashes, kind="stable")  # quick with runs that are sorted already
    hashes = hashes[order]
    is_first = np.ones(len(hashes), dtype=np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    starts = np.flatnonzero(is_first)
    totals = np.add.reduceat(n_rows[order], starts) if len(starts) else n_rows
    return HashCounts(hashes[starts], totals)


def choose_rows(counts: HashCounts) -> Sample:
    """The rows of the sample."""
    rows = np.repeat(counts.hashes, counts.n_rows)
    return Sample.make(rows[choose_sample(rows)], counts.n_zero_bits)
