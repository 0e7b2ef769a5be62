"""The sample that places quantiles: its limits, exactly."""

from unittest import mock

import numpy as np
import pytest

from icscm.engine import sampling
from icscm.sources.dask.opening import HashCounts, choose_rows, merge_hash_counts, tally_hashes

SPREAD = np.sort(np.random.default_rng(0).integers(2**64, size=40, dtype=np.uint64))


def test_as_many_contents_as_the_limit_are_all_kept():
    """However they are cut: pieces that share contents look like more than there are."""
    whole = tally_hashes(SPREAD, max_hashes=40)
    assert (whole.n_zero_bits, len(whole.hashes)) == (0, 40)
    merged = merge_hash_counts([tally_hashes(SPREAD, 40), tally_hashes(SPREAD, 40)], max_hashes=40)
    assert merged.n_zero_bits == 0
    np.testing.assert_array_equal(merged.hashes, SPREAD)
    assert set(merged.n_rows) == {2}
    fewer = merge_hash_counts([whole, whole], max_hashes=39)
    assert fewer.n_zero_bits == 1
    np.testing.assert_array_equal(fewer.hashes, SPREAD[SPREAD < 2**63])


@pytest.mark.parametrize("bits", [1, 5, 63])
def test_a_hash_at_the_limit_has_one_zero_bit_less(bits):
    limit = np.uint64(2 ** (64 - bits))
    hashes = np.array([limit - np.uint64(1), limit], dtype=np.uint64)
    counts = HashCounts(hashes, np.array([3, 4]))
    assert counts.thin(bits).hashes.tolist() == [int(limit) - 1]
    assert counts.thin(bits - 1).hashes.tolist() == hashes.tolist()
    assert counts.thin(bits).thin(bits).n_rows.tolist() == [3]


def test_no_more_rows_than_the_sample_holds_are_all_in_it():
    counts = tally_hashes(np.repeat(SPREAD, 2))
    with mock.patch.object(sampling, "QUANTILE_SAMPLE", 80):
        assert choose_rows(counts).n_copies.tolist() == [2] * 40
    with mock.patch.object(sampling, "QUANTILE_SAMPLE", 79):
        assert sorted(choose_rows(counts).n_copies.tolist()) == [1] + [2] * 39


def test_rows_of_a_piece_beyond_the_last_of_the_sample():
    sample = choose_rows(tally_hashes(SPREAD[:-1]))
    assert sample.find_rows(SPREAD[-3:]).tolist() == [0, 1]
