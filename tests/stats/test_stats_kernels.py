"""The kernels of statistics equal their twins in plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.stats import _kernels
from support.literal import statistics as _reference

bounded = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def test_every_kernel_has_a_twin():
    compiled = {
        name
        for name in dir(_kernels)
        if hasattr(getattr(_kernels, name), "py_func") and not name.startswith("_")
    } - {"compute_exact"}  # which is held against SciPy
    statistics = {"compute_pearson", "compute_likelihood_ratio"}
    assert compiled == statistics | {"measure_rates", "measure_evidence"}
    assert all(hasattr(_reference, name) for name in compiled)


def run_both(name, make_arguments, rtol=0.0, atol=0.0):
    """Both twins write and return the same."""
    fast, slow = make_arguments(), make_arguments()
    assert getattr(_kernels, name)(*fast) == getattr(_reference, name)(*slow)
    for found, wanted in zip(fast, slow, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol) if rtol else (
            np.testing.assert_array_equal(found, wanted)
        )


@pytest.mark.parametrize("largest", [1, 20, 1000])
@bounded
@given(seed=seeds, n_environments=st.integers(1, 5))
def test_statistics(largest, seed, n_environments):
    tables = np.random.default_rng(seed).integers(0, largest + 1, size=(40, 2, n_environments))
    tables[:5] //= largest
    tables[0] = 0

    def make():
        return tables, np.zeros(40), np.zeros(40, np.int64)

    run_both("compute_likelihood_ratio", make, rtol=1e-9) if largest < 1000 else None
    run_both("compute_pearson", lambda: (False, tables, *make()[1:]), rtol=1e-12)
    run_both("compute_pearson", lambda: (True, tables, *make()[1:]), rtol=1e-12)


@pytest.mark.parametrize("largest", [1, 20, 1000])
@bounded
@given(seed=seeds, n_environments=st.integers(1, 8), n_least=st.sampled_from([0, 1, 30]))
def test_splits(largest, seed, n_environments, n_least):
    rng = np.random.default_rng(seed)
    node = rng.integers(0, largest + 1, size=(2, n_environments))
    tables = rng.integers(0, node + 1, size=(40, 2, n_environments))
    tables[:4, :, rng.random(n_environments) < 0.5] = 0
    tables[4:8, 0], tables[8:12, 1] = 0, node[1]
    tables[12:16, :, 0], tables[16] = node[:, 0], node

    def make():
        return tables, node, n_least, *np.full((2, 40), np.nan), np.full(40, -9)

    run_both("measure_evidence", lambda: (tables, node, np.zeros(40)), rtol=1e-9, atol=1e-9)
    rounding = {"rtol": 1e-7, "atol": 1e-7 * largest}
    run_both("measure_rates", make, **rounding)
