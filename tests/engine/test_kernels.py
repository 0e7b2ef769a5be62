"""Each compiled kernel equals its twin in plain NumPy."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine import _kernels, _reference

KERNELS = [name for name, _ in inspect.getmembers(_reference, inspect.isfunction)]
DTYPES = [np.float64, np.float32, np.int64, np.int8, np.uint8]


def test_every_kernel_has_a_twin():
    compiled = {name for name in dir(_kernels) if hasattr(getattr(_kernels, name), "py_func")}
    public = {name for name in compiled if not name.startswith("_")}
    assert public == set(KERNELS)
    assert len(public) == 8


def run_both(name, make_arguments):
    """Call both twins, each on its own copy of the arguments; return what they wrote to."""
    fast, slow = make_arguments(), make_arguments()
    getattr(_kernels, name)(*fast)
    getattr(_reference, name)(*slow)
    for found, wanted in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(found, wanted)
    return fast


@st.composite
def value_tables(draw):
    dtype = draw(st.sampled_from(DTYPES))
    n_rows, n_columns = draw(st.integers(1, 300)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, draw(st.sampled_from([2, 3, 100])), size=(n_rows, n_columns)).astype(dtype)
    return np.asfortranarray(X) if draw(st.booleans()) else X


seeds = st.integers(0, 2**32)
bounded = settings(max_examples=60, deadline=None)


@bounded
@given(value_tables(), seeds)
def test_hash_rows(X, seed):
    salt = np.random.default_rng(seed).integers(2**64, size=X.shape[1], dtype=np.uint64)
    run_both("hash_rows", lambda: (X, salt, 0, len(X), np.zeros(len(X), np.uint64)))


def test_hash_does_not_depend_on_dtype_or_on_the_sign_of_zero():
    salt = np.array([3, 5], dtype=np.uint64)
    hashes = np.zeros((3, 2), np.uint64)
    _kernels.hash_rows(np.array([[0, 1], [2, 3]]), salt, 0, 2, hashes[0])
    _kernels.hash_rows(np.array([[-0.0, 1.0], [2.0, 3.0]]), salt, 0, 2, hashes[1])
    _kernels.hash_rows(np.array([[0, 1], [2, 3]], dtype=np.float32), salt, 0, 2, hashes[2])
    assert (hashes == hashes[0]).all()
    assert hashes[0, 0] != hashes[0, 1]


@bounded
@given(value_tables())
def test_find_extremes(X):
    columns = np.ascontiguousarray(X.T)
    n = len(columns)
    run_both(
        "find_extremes",
        lambda: (columns, np.empty(n, X.dtype), np.empty(n, X.dtype), np.empty(n, np.bool_)),
    )


@bounded
@given(value_tables(), seeds, st.integers(1, 255))
def test_code_columns(X, seed, most_edges):
    rng = np.random.default_rng(seed)
    columns = rng.permutation(X.shape[1])
    edges = [np.unique(rng.choice(X[:, j], size=min(most_edges, len(X)))) for j in columns]
    n_edges = np.array([len(each) for each in edges])
    padded = np.full((len(columns), 256), np.inf if X.dtype.kind == "f" else np.iinfo(X.dtype).max)
    padded = padded.astype(X.dtype)
    for row, each in zip(padded, edges, strict=True):
        row[: len(each)] = each
    known = rng.random(len(columns)) < 0.5
    highest = X.max(axis=0)[columns]
    position = rng.permutation(len(X)).astype(np.uint32)
    run_both(
        "code_columns",
        lambda: (
            X,
            position,
            columns,
            padded,
            n_edges,
            known,
            highest,
            np.zeros((len(columns), len(X)), np.uint8),
            np.zeros(len(columns), np.bool_),
        ),
    )


@bounded
@given(value_tables(), seeds)
def test_pack_columns(X, seed):
    rng = np.random.default_rng(seed)
    columns = rng.permutation(X.shape[1])
    n_words = len(X) // 64 + 2
    bit_position = rng.permutation(n_words * 64)[: len(X)].astype(np.uint32)
    known = rng.random(len(columns)) < 0.5
    run_both(
        "pack_columns",
        lambda: (
            X,
            bit_position,
            columns,
            X.min(axis=0)[columns],
            known,
            X.max(axis=0)[columns],
            np.zeros((len(columns), n_words), np.uint64),
            np.zeros(len(columns), np.bool_),
        ),
    )


@pytest.mark.parametrize("n_rows", [1, 63, 3000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_count_codes(n_rows, dtype):
    rng = np.random.default_rng(n_rows)
    n_bins = 7 if dtype == np.uint8 else 300
    codes = rng.integers(0, n_bins, size=(5, n_rows)).astype(dtype)
    bounds = np.sort(np.concatenate(([0, n_rows], rng.integers(0, n_rows + 1, 3))))
    _, _, cube = run_both(
        "count_codes", lambda: (codes, bounds, np.zeros((5, n_bins, 4), np.int64))
    )
    assert cube.sum() == 5 * n_rows

    rows = np.flatnonzero(rng.random(n_rows) < 0.6).astype(np.uint32)
    row_bounds = np.searchsorted(rows, bounds)
    left = run_both("count_codes_of_rows", lambda: (codes, rows, row_bounds, -1, cube.copy()))[-1]
    others = np.setdiff1d(np.arange(n_rows), rows).astype(np.uint32)
    stayed = np.zeros_like(cube)
    _kernels.count_codes_of_rows(codes, others, np.searchsorted(others, bounds), 1, stayed)
    np.testing.assert_array_equal(left, stayed)  # everything minus those that left


@bounded
@given(seeds, st.integers(1, 20))
def test_count_and_clear_bits(seed, n_words):
    rng = np.random.default_rng(seed)
    words = rng.integers(2**64, size=(3, n_words), dtype=np.uint64)
    in_play = rng.integers(2**64, size=n_words, dtype=np.uint64)
    bounds = np.array([0, n_words // 2, n_words // 2, n_words])
    run_both("count_bits", lambda: (words, in_play, bounds, np.zeros((3, 3), np.int64)))
    bits = rng.permutation(n_words * 64)[: 10 * n_words].astype(np.uint32)
    run_both("clear_bits", lambda: (in_play.copy(), bits))
