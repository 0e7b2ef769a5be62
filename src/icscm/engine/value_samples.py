"""A sample of a column's distinct values, and how often each of them occurs.

Whether a column is an identifier depends on how many distinct values it has. These can be too many
to be kept, so only the values of least hash are, and the rows of each are counted:

    distinct values of the column  ~  rows with a value * sampled values / rows of sampled values

A value of least hash in the whole table has one of the least in every piece that it occurs in. So
the samples of pieces can be merged in any order, and no row of a sampled value is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from icscm._constants import VALUE_SAMPLE
from icscm._types import Array, Hashes, IntArray
from icscm.tables.columns import Level

# Rows with fewer hashes than this many samples are not worth the shortcut of `sample_numbers`.
_MIN_SAMPLES_FOR_SHORTCUT = 8
# Samples that the hashes below the shortcut's bound would fill if every row had a value of its own.
_SAMPLES_BELOW_BOUND = 4


@dataclass(frozen=True, eq=False)
class ValueSample:
    """The hashes of the sampled values, ascending, and the number of rows of each."""

    hashes: Hashes
    n_rows: IntArray

    def estimate_distinct(self, n_present: int) -> float:
        """Estimate how many distinct values some rows have, none missing; exact if all are here."""
        n_sampled_rows = max(1, int(self.n_rows.sum()))
        return len(self.hashes) * n_present / n_sampled_rows


def sample_numbers(values: Array) -> ValueSample:
    """Sample the values of some rows, which are whole numbers.

    Counting the rows of all values would take most of the time. So where there are many rows, only
    hashes below a bound are counted, which leaves enough of them unless values occur often.
    """
    hashes = _hash_numbers(values)
    if len(hashes) > _MIN_SAMPLES_FOR_SHORTCUT * VALUE_SAMPLE:
        n_times_too_many = len(hashes) // (_SAMPLES_BELOW_BOUND * VALUE_SAMPLE)
        bound = np.uint64(2**64 // n_times_too_many - 1)
        sample = _count_least_hashes(hashes[hashes <= bound])
        if len(sample.hashes) == VALUE_SAMPLE:
            return sample
    return _count_least_hashes(hashes)


def sample_counted_numbers(n_rows_of_value: Mapping[Level, int]) -> ValueSample:
    """Sample whole numbers whose rows are counted already."""
    bits = np.array([int(value) % 2**64 for value in n_rows_of_value], dtype=np.uint64)
    return _keep_least(_hash_numbers(bits), _list_counts(n_rows_of_value))


def sample_counted_levels(n_rows_of_level: Mapping[Level, int]) -> ValueSample:
    """Sample the levels of a category, whose rows are counted already."""
    # Python's own hash of a text is another one in every process
    texts = [repr(level).encode("utf-8", "surrogatepass") for level in n_rows_of_level]
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    hashes = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
    return _keep_least(hashes, _list_counts(n_rows_of_level))


def merge_samples(first: ValueSample, second: ValueSample) -> ValueSample:
    """Make the sample of the rows of both."""
    hashes = np.concatenate((first.hashes, second.hashes))
    n_rows = np.concatenate((first.n_rows, second.n_rows))
    return _keep_least(hashes, n_rows)


def _hash_numbers(values: Array) -> Hashes:
    """Hash whole numbers of any type by value, with the steps of splitmix64."""
    integer_type = np.uint64 if values.dtype.kind == "u" else np.int64
    bits = values.astype(integer_type).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _count_least_hashes(hashes_of_rows: Hashes) -> ValueSample:
    """Make a sample, given the hash of each row's value."""
    hashes, n_rows = np.unique(hashes_of_rows, return_counts=True)
    return _keep_least(hashes, n_rows)


def _keep_least(hashes: Hashes, n_rows: IntArray) -> ValueSample:
    """Keep the values of least hash, with the rows of equal hashes added up."""
    distinct, number = np.unique(hashes, return_inverse=True)
    totals = np.bincount(number, n_rows, len(distinct)).astype(np.int64)
    return ValueSample(hashes=distinct[:VALUE_SAMPLE], n_rows=totals[:VALUE_SAMPLE])


def _list_counts(n_rows_of_value: Mapping[Level, int]) -> IntArray:
    return np.array([*n_rows_of_value.values()], dtype=np.int64)
