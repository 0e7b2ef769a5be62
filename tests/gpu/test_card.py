"""The kernels on a card equal their twins; run by `make test-gpu` where there is a card."""

import numpy as np
import pytest

from icscm.sources.gpu.card import find_card
from support.gpu_sources import (
    check_default_fit,
    check_kernels,
    check_same_counts,
    check_same_search,
    check_same_values,
)


@pytest.mark.parametrize("seed", range(40))
def test_kernels(seed):
    check_kernels(np.random.default_rng(seed), find_card())


@pytest.mark.parametrize("seed", range(40))
def test_counts_as_in_memory(seed):
    check_same_counts(np.random.default_rng(seed), find_card())


@pytest.mark.parametrize("seed", range(100))
def test_same_model_and_trace(seed):
    check_same_search(np.random.default_rng(seed), find_card())


@pytest.mark.parametrize("seed", range(60))
def test_binned_as_in_memory(seed):
    check_same_values(np.random.default_rng(seed), find_card())


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize("seed", range(20))
def test_default_fit(seed):
    check_default_fit(np.random.default_rng(seed), find_card())


def test_tall_tables():
    rng = np.random.default_rng(0)
    for n_rows in (128, 16_384, 40_000, 100_001):
        check_same_search(rng, find_card(), n_rows=n_rows)
