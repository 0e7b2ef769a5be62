"""The rows whose quantiles are the thresholds of a large table: a sample, by a hash of content.

    rows -> hashes -> choose_sample                           where all rows are in memory
    rows -> hashes -> Sample, then the values of its rows     where they lie in pieces

The rows of least hash are sampled. So the sample, and with it the model, depends neither on the
order of the rows nor on how they are cut into pieces. Only columns of numbers count for it.

*Copies* are rows of equal content, which have equal hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import QUANTILE_SAMPLE as QUANTILE_SAMPLE
from icscm._types import Array, Hashes, IntArray
from icscm.engine import _kernels
from icscm.engine.threads import run_tasks, split_rows
from icscm.tables.columns import Column, Columns, Dates, Numbers, read_numbers

# Seeds the hash that picks the sample; any number would do, but always the same.
_SAMPLE_SEED = 20250721
# Odd numbers with mixed bits.
_MULTIPLIERS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0x9E3779B97F4A7C15))


def is_sampled(n_rows: int) -> bool:
    """Whether a table has too many rows to scan all of them for quantiles."""
    return n_rows > QUANTILE_SAMPLE


def hash_rows(X: Array, columns: IntArray, n_threads: int) -> Hashes:
    """Hash each row's values, the same for integers and for floats of equal value."""
    salt = make_salt(X.shape[1])
    hashes = np.empty(len(X), dtype=np.uint64)

    def hash_part(rows: slice) -> None:
        _kernels.hash_rows(X, columns, salt, rows.start, rows.stop, hashes)

    run_tasks(hash_part, split_rows(len(X), n_threads), n_threads)
    return hashes


def hash_piece(columns: Sequence[Column], n_rows: int, n_threads: int = 1) -> Hashes:
    """Hash each row of a piece, as `hash_rows` does in the whole table.

    Whole numbers beyond 2**53 are hashed exactly where all columns of the piece are whole numbers,
    none missing, and as float64 holds them beside others.
    """
    is_exact = all(
        isinstance(column, Numbers) and column.values.dtype.kind in "iub" and column.missing is None
        for column in columns
    )
    salt = make_salt(len(columns))

    def hash_columns(positions: range) -> Hashes:
        sums = np.zeros(n_rows, dtype=np.uint64)
        for position in positions:
            column = columns[position]
            if isinstance(column, Dates):  # they are zeros in a table of numbers
                _kernels.hash_column(np.zeros(n_rows), salt[position], sums)
            elif isinstance(column, Numbers):
                _kernels.hash_column(read_numbers(column, is_exact), salt[position], sums)
        return sums

    # a row's hash is the sum of those of its values, so each thread adds up some columns
    parts = [range(start, len(columns), n_threads) for start in range(n_threads)]
    sums_of_parts = run_tasks(hash_columns, parts, n_threads)
    return np.asarray(np.sum(sums_of_parts, axis=0, dtype=np.uint64))


def make_salt(n_columns: int) -> Array:
    """Make the numbers that set the hashes of equal values in different columns apart."""
    rng = np.random.default_rng((_SAMPLE_SEED, 0))
    return np.asarray(rng.integers(2**64, size=n_columns, dtype=np.uint64))


def choose_sample(hashes: Hashes) -> Array:
    """Choose the rows of the sample, from the hash of each; all if there are no more than it holds.

    Of copies the hashes are made different first, so that each is chosen by itself.
    """
    if not is_sampled(len(hashes)):
        return np.arange(len(hashes))

    ordered = np.sort(hashes)
    if not has_copies(ordered):
        return _find_least(hashes, ordered)

    mixed = np.empty_like(hashes)
    mixed[np.argsort(hashes, kind="stable")] = mix_copies(ordered)
    return _find_least(mixed, np.sort(mixed))


def _find_least(hashes: Hashes, ordered: Hashes) -> Array:
    """Find the rows of least hash, as many as the sample holds."""
    largest_of_sample = ordered[QUANTILE_SAMPLE - 1]
    return np.flatnonzero(hashes <= largest_of_sample)[:QUANTILE_SAMPLE]


def has_copies(ordered: Hashes) -> bool:
    """Check whether any two of sorted hashes are equal."""
    return bool((ordered[1:] == ordered[:-1]).any())


def mix_copies(ordered: Hashes) -> Hashes:
    """Make new hashes of sorted ones, from each hash and the number of the copy: 0, 1, ...

        sorted hashes     3 5 5 5 8
        number of copy    0 0 1 2 0

    Else all copies of a row would enter the sample together or not at all, and a value that
    half of the rows have could fill it. Which copy gets which number makes no difference.
    """
    n_rows = len(ordered)
    is_first_copy = np.append(True, ordered[1:] != ordered[:-1])[:n_rows]
    first_copies = np.flatnonzero(is_first_copy)
    n_copies = np.diff(np.append(first_copies, n_rows))
    number_of_copy = np.arange(n_rows) - np.repeat(first_copies, n_copies)

    mixed = ordered ^ (number_of_copy.astype(np.uint64) * _MULTIPLIERS[0])
    mixed *= _MULTIPLIERS[1]
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


@dataclass(frozen=True)
class SampledRows:
    """The values of some rows, by column; of copies one row, in ascending order of hashes."""

    hashes: Hashes
    values: Mapping[int, Array]

    def __sizeof__(self) -> int:
        """Return the bytes, which a scheduler of tasks weighs before it moves them."""
        n_bytes = self.hashes.nbytes + sum(values.nbytes for values in self.values.values())
        return int(n_bytes)


def take_rows(
    columns: Columns, wanted_columns: Iterable[int], hashes: Hashes, rows: Array
) -> SampledRows:
    """Take some rows of a piece: the columns that are numbers, NaN where missing."""
    distinct_hashes, first_copies = np.unique(hashes[rows], return_index=True)
    rows_without_copies = rows[first_copies]
    values = {}
    for position in wanted_columns:
        column = columns[position]
        if isinstance(column, Numbers):  # of a piece without rows the kind is unknown
            values[position] = read_numbers(column.take(rows_without_copies), is_exact=True)
    return SampledRows(hashes=distinct_hashes, values=values)


def merge_sampled(parts: Sequence[SampledRows]) -> SampledRows:
    """Merge the rows of several pieces and keep those of least hash, as many as a sample holds.

        hashes of the pieces     3 8 | 5 8            the row of hash 8 is in both
        places of least hash     0 2 1                hashes 3, 5 and 8, of copies the first

    Copies count once, so a merge of merged pieces is the merge of all.
    """
    # a piece without rows does not know which of its columns are numbers, and may lack their values
    parts_with_rows = [part for part in parts if len(part.hashes)]
    if not parts_with_rows:
        return parts[0]

    hashes = np.concatenate([part.hashes for part in parts_with_rows])
    distinct_hashes, first_copies = np.unique(hashes, return_index=True)
    places_of_least = first_copies[:QUANTILE_SAMPLE]

    values = {}
    for column in parts_with_rows[0].values:
        values_of_column = np.concatenate([part.values[column] for part in parts_with_rows])
        values[column] = values_of_column[places_of_least]
    return SampledRows(hashes=distinct_hashes[:QUANTILE_SAMPLE], values=values)


@dataclass(frozen=True)
class Sample:
    """The rows of the sample by their hash, ascending, and how many copies of each belong to it.

    Only rows whose hash begins with `n_zero_bits` zero bits were counted, to choose it.
    """

    hashes: Hashes
    n_copies: IntArray
    n_zero_bits: int = 0

    @classmethod
    def make(cls, hashes: Hashes, n_zero_bits: int = 0) -> Sample:
        """Make it from a hash for each row of the sample."""
        distinct_hashes, n_copies = np.unique(hashes, return_counts=True)
        return cls(hashes=distinct_hashes, n_copies=n_copies, n_zero_bits=n_zero_bits)

    def find_rows(self, hashes: Hashes) -> Array:
        """Find which of the rows with these hashes have the content of a sampled row."""
        last_position = len(self.hashes) - 1
        first_not_below = np.searchsorted(self.hashes, hashes)
        positions = np.minimum(first_not_below, last_position)
        is_sampled_content = self.hashes[positions] == hashes
        return np.flatnonzero(is_sampled_content)

    def repeat(self, rows: SampledRows) -> dict[int, Array]:
        """Return the values of all rows of the sample, copies included."""
        return {column: np.repeat(values, self.n_copies) for column, values in rows.values.items()}
