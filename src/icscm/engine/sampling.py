"""Which rows place the quantiles of a large table: a sample by a hash of their content.

    rows -> hashes -> choose_sample                           where all rows are in memory
    rows -> hashes -> Sample, then the values of its rows     where they lie in pieces

So the sample, and with it the model, depends neither on the order of the rows nor on how they are
cut into pieces. Only columns of numbers count for it.
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
    """A hash of each row's values, the same for integers and for floats of equal value."""
    salt, hashes = make_salt(X.shape[1]), np.empty(len(X), dtype=np.uint64)

    def hash_part(rows: slice) -> None:
        _kernels.hash_rows(X, columns, salt, rows.start, rows.stop, hashes)

    run_tasks(hash_part, split_rows(len(X), n_threads), n_threads)
    return hashes


def hash_piece(columns: Sequence[Column], n_rows: int, n_threads: int = 1) -> Hashes:
    """The hash of each row of a piece: as `hash_rows` of the whole table.

    Whole numbers beyond 2**53 are hashed exactly where all columns of the piece are whole numbers,
    none missing, and as float64 holds them beside others.
    """
    is_exact = all(
        isinstance(each, Numbers) and each.values.dtype.kind in "iub" and each.missing is None
        for each in columns
    )
    salt = make_salt(len(columns))

    def hash_some(part: range) -> Hashes:
        hashes = np.zeros(n_rows, dtype=np.uint64)
        for j in part:
            column = columns[j]
            if isinstance(column, Dates):  # they are zeros in a table of numbers
                _kernels.hash_column(np.zeros(n_rows), salt[j], hashes)
            elif isinstance(column, Numbers):
                _kernels.hash_column(read_numbers(column, is_exact), salt[j], hashes)
        return hashes

    parts = [range(start, len(columns), n_threads) for start in range(n_threads)]
    return np.asarray(np.sum(run_tasks(hash_some, parts, n_threads), axis=0, dtype=np.uint64))


def make_salt(n_columns: int) -> Array:
    """What sets the hashes of equal values in different columns apart."""
    rng = np.random.default_rng((_SAMPLE_SEED, 0))
    return np.asarray(rng.integers(2**64, size=n_columns, dtype=np.uint64))


def choose_sample(hashes: Hashes) -> Array:
    """The rows of the sample, from the hash of each; all where there are no more than it holds."""
    if not is_sampled(len(hashes)):
        return np.arange(len(hashes))
    ordered = np.sort(hashes)
    if has_copies(ordered):
        apart = np.empty_like(hashes)
        apart[np.argsort(hashes, kind="stable")] = mix_copies(ordered)
        hashes, ordered = apart, np.sort(apart)
    return np.flatnonzero(hashes <= ordered[QUANTILE_SAMPLE - 1])[:QUANTILE_SAMPLE]


def has_copies(ordered: Hashes) -> bool:
    """Whether any two of sorted hashes are equal."""
    return bool((ordered[1:] == ordered[:-1]).any())


def mix_copies(ordered: Hashes) -> Hashes:
    """New hashes of sorted ones, from each and its number among its equals: 0, 1, ...

    Else all copies of a row would enter the sample together or not at all, and a value that
    half of the rows have could fill it. Which copy gets which number makes no difference.
    """
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    first = np.flatnonzero(is_first)
    sizes = np.diff(np.append(first, len(ordered)))
    number = np.arange(len(ordered)) - np.repeat(first, sizes)
    mixed = ordered ^ (number.astype(np.uint64) * _MULTIPLIERS[0])
    mixed *= _MULTIPLIERS[1]
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


@dataclass(frozen=True)
class SampledRows:
    """Values by column of some rows, each content once, by ascending hash."""

    hashes: Hashes
    values: Mapping[int, Array]

    def __sizeof__(self) -> int:
        """Bytes, which a scheduler weighs before moving it."""
        return int(self.hashes.nbytes + sum(each.nbytes for each in self.values.values()))


def take_rows(
    columns: Columns, features: Iterable[int], hashes: Hashes, rows: Array
) -> SampledRows:
    """Some rows of a piece: the features that are numbers, NaN where missing."""
    distinct, first = np.unique(hashes[rows], return_index=True)
    values = {}
    for j in features:
        column = columns[j]
        if isinstance(column, Numbers):  # of a piece without rows the kind is unknown
            values[j] = read_numbers(column.take(rows[first]), is_exact=True)
    return SampledRows(distinct, values)


def merge_sampled(parts: Sequence[SampledRows]) -> SampledRows:
    """The rows of several pieces, those of equal content once; of least hash, as a sample holds."""
    filled = [part for part in parts if len(part.hashes)] or parts[:1]
    hashes, first = np.unique(np.concatenate([part.hashes for part in filled]), return_index=True)
    every = {j: np.concatenate([part.values[j] for part in filled]) for j in filled[0].values}
    kept = first[:QUANTILE_SAMPLE]
    return SampledRows(hashes[:QUANTILE_SAMPLE], {j: all_[kept] for j, all_ in every.items()})


@dataclass(frozen=True)
class Sample:
    """The rows of the sample by their hash, ascending, and how many copies of each belong to it.

    Only rows counted whose hash begins with so many zero bits.
    """

    hashes: Hashes
    n_copies: IntArray
    n_zero_bits: int = 0

    @classmethod
    def make(cls, hashes: Hashes, n_zero_bits: int = 0) -> Sample:
        """From a hash for each row of the sample."""
        return cls(*np.unique(hashes, return_counts=True), n_zero_bits)

    def find_rows(self, hashes: Hashes) -> Array:
        """Which of the rows with these hashes have the content of a sampled row."""
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.flatnonzero(self.hashes[at] == hashes)

    def repeat(self, rows: SampledRows) -> dict[int, Array]:
        """The values of all rows of the sample, copies included."""
        return {j: np.repeat(each, self.n_copies) for j, each in rows.values.items()}
