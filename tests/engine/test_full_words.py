"""Counting bits in counters of a byte: they must be emptied before they are full."""

import numpy as np
import pytest

from icscm.engine import _kernels

FULL = np.uint64(2**64 - 1)


@pytest.mark.parametrize("n_words", [1, 2, 61, 62, 63, 64, 65, 124, 126, 200])
def test_words_of_ones_do_not_overflow(n_words):
    """31 pairs of full words make 248, 32 make 256: one pair more at a time went unnoticed."""
    words = np.full((3, n_words), FULL)
    in_play = np.full((1, n_words), FULL)
    out = np.zeros((3, 2, 1), np.int64)
    n_samples = np.array([64 * n_words])
    _kernels.count_bits(words, in_play, np.array([0, n_words]), n_samples, out)
    assert out[:, :, 0].tolist() == [[0, 64 * n_words]] * 3
