"""Each compiled kernel equals its twin in plain NumPy."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine import _kernels
from icscm.engine.coding import make_search_table
from icscm.engine.stores import sort_rows
from support.literal import kernels as _reference

KERNELS = [name for name, _ in inspect.getmembers(_reference, inspect.isfunction) if name[0] != "_"]
# Compiling a kernel for one more type takes seconds.
DTYPES = [
    np.float64,
    np.float32,
    np.int64,
    *(pytest.param(dtype, marks=pytest.mark.thorough) for dtype in (np.int8, np.uint8)),
]


def test_every_kernel_has_a_twin():
    compiled = {name for name in dir(_kernels) if hasattr(getattr(_kernels, name), "py_func")}
    public = {name for name in compiled if not name.startswith("_")}
    assert public == set(KERNELS)
    assert len(public) == 26


def run_both(name, make_arguments):
    """Call both twins, each on its own copy of the arguments; return what they wrote to."""
    fast, slow = make_arguments(), make_arguments()
    assert getattr(_kernels, name)(*fast) == getattr(_reference, name)(*slow)
    for found, wanted in zip(fast, slow, strict=True):
        if not isinstance(found, tuple):
            np.testing.assert_array_equal(found, wanted)
    return fast


@st.composite
def value_tables(draw):
    n_rows, n_columns = draw(st.integers(1, 300)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, draw(st.sampled_from([2, 3, 100])), size=(n_rows, n_columns))
    return np.asfortranarray(X) if draw(st.booleans()) else X


seeds = st.integers(0, 2**32)
bounded = settings(max_examples=60, deadline=None)
# each of the types is compiled by itself
of_each_type = pytest.mark.parametrize("dtype", DTYPES)
for_a_type = settings(max_examples=20, deadline=None)


@of_each_type
@for_a_type
@given(X=value_tables(), seed=seeds)
def test_hash_rows(dtype, X, seed):
    X = X.astype(dtype)
    salt = np.random.default_rng(seed).integers(2**64, size=X.shape[1], dtype=np.uint64)
    for columns in (np.flatnonzero(salt % np.uint64(4)), np.arange(X.shape[1])):
        own = X, columns, salt, 0, len(X)
        run_both("hash_rows", lambda own=own: (*own, np.zeros(len(X), np.uint64)))


@of_each_type
@for_a_type
@given(X=value_tables(), seed=seeds)
def test_hash_column(dtype, X, seed):
    X = X.astype(dtype)
    salt = np.random.default_rng(seed).integers(2**64, size=X.shape[1], dtype=np.uint64)
    run_both("hash_column", lambda: (X[:, 0], salt[0], np.full(len(X), 7, np.uint64)))
    by_column, by_row = np.zeros((2, len(X)), np.uint64)
    for j in range(X.shape[1]):
        _kernels.hash_column(X[:, j], salt[j], by_column)
    _kernels.hash_rows(X, np.arange(X.shape[1]), salt, 0, len(X), by_row)
    np.testing.assert_array_equal(by_column, by_row)


EDGE = 2**53
HARD_TO_HASH = {
    np.int64: [0, 1, EDGE - 1, EDGE, EDGE + 1, -EDGE, -EDGE - 1, 2**62 + 7, -(2**63), 2**63 - 1],
    # hashes of unsigned numbers beyond 2**53 were those of rounded ones, and not as in int64
    np.uint64: [0, 1, EDGE - 1, EDGE, EDGE + 1, EDGE + 2, 2**63 - 1, 2**63, 2**64 - 1],
    np.int32: [0, 1, -1, 2**31 - 1, -(2**31)],
    np.float64: [0.0, -0.0, 0.5, np.nan, -np.nan, np.inf, -np.inf, 2.0**53, 2.0**60, 5e-324],
    np.float32: [0.0, -0.0, 0.1, np.nan, np.inf, 3e38],
}


@pytest.mark.parametrize("dtype", HARD_TO_HASH)
def test_hashes_of_extreme_values(dtype):
    """Whole numbers beyond 2**53, which float64 rounds, and floats that have several patterns."""
    X = np.array(HARD_TO_HASH[dtype], dtype=dtype)[:, np.newaxis].repeat(3, axis=1)
    X[:, 1] = X[::-1, 1]
    salt = np.random.default_rng(0).integers(2**64, size=3, dtype=np.uint64)
    own = X, np.array([0, 2]), salt, 1, len(X) - 1
    *_, hashes = run_both("hash_rows", lambda: (*own, np.full(len(X), 9, "u8")))
    assert hashes[0] == hashes[-1] == 9, "rows outside start and stop are left alone"
    *_, hashes = run_both("hash_column", lambda: (X[:, 0], salt[0], np.zeros(len(X), np.uint64)))
    distinct = {math.inf if math.isnan(value) else value for value in X[:, 0].tolist()}
    assert len(np.unique(hashes)) == len(distinct)


@of_each_type
@for_a_type
@given(X=value_tables(), most=st.sampled_from([1, 2, 51, 256]))
def test_tally_values(dtype, X, most):
    X = X.astype(dtype)
    values = X[:, 0].copy()
    if values.dtype.kind == "f":
        values[::2] *= -1  # -0.0 and 0.0 are one value
    arguments = run_both(
        "tally_values", lambda: (values, np.zeros(most, X.dtype), np.zeros(most, np.int64))
    )
    n_found = _kernels.tally_values(*arguments)
    assert n_found == min(len(np.unique(values)), most + 1)


def test_rows_that_differ_in_signs_or_in_small_numbers_have_other_hashes():
    """Rows (1, 0.5) and (-1, -0.5) had one hash, so that files and Dask counted them as copies of
    each other, and found other thresholds than memory did."""
    values = np.array([-2, -1, -0.5, 0, 0.5, 1, 2, 3])
    X = np.stack(np.meshgrid(*[values] * 4), axis=-1).reshape(-1, 4)
    salt = np.random.default_rng(0).integers(2**64, size=4, dtype=np.uint64)
    hashes = np.zeros(len(X), np.uint64)
    _kernels.hash_rows(X, np.arange(4), salt, 0, len(X), hashes)
    assert len(np.unique(hashes)) == len(X)


def test_hash_does_not_depend_on_dtype_or_on_the_sign_of_zero():
    salt, both = np.array([3, 5], dtype=np.uint64), np.arange(2)
    hashes = np.zeros((3, 2), np.uint64)
    whole = np.array([[0, 1], [2, 3]])
    signed = np.array([[-0.0, 1.0], [2.0, 3.0]])
    for X, out in zip((whole, signed, whole.astype(np.float32)), hashes, strict=True):
        _kernels.hash_rows(X, both, salt, 0, 2, out)
    assert (hashes == hashes[0]).all()
    assert hashes[0, 0] != hashes[0, 1]


@of_each_type
@for_a_type
@given(X=value_tables(), seed=seeds, most_edges=st.integers(1, 255))
def test_code_columns(dtype, X, seed, most_edges):
    X = X.astype(dtype)
    rng = np.random.default_rng(seed)
    columns = rng.permutation(X.shape[1])
    edges = [np.unique(rng.choice(X[:, j], size=min(most_edges, len(X)))) for j in columns]
    table = make_search_table(edges, X.dtype)
    known = rng.random(len(columns)) < 0.5
    highest = X.max(axis=0)[columns]
    n_environments = rng.choice([1, 3, 100])
    labels, environments = rng.integers(0, 2, len(X)), rng.integers(0, n_environments, len(X))
    position, _ = sort_rows(labels, environments, n_environments)
    run_both(
        "code_columns",
        lambda: (
            X,
            position,
            columns,
            table,
            known,
            highest,
            len(X) // 7,
            len(X),
            np.zeros((len(columns), len(X)), np.uint8),
            np.zeros(len(columns), np.bool_),
        ),
    )


@of_each_type
@for_a_type
@given(X=value_tables(), most=st.integers(1, 20))
def test_choose_edges(dtype, X, most):
    X = X.astype(dtype)
    if X.dtype.kind == "f":
        X[: len(X) // 3, 0] = X[:, -1] = np.nan
    ordered = np.sort(np.ascontiguousarray(X.T), axis=1)
    n = len(ordered)

    def make():
        found = np.zeros((n, most + 1), X.dtype), np.zeros(n, np.int64), np.zeros(n, np.bool_)
        return ordered, most, *found, ordered[:, -1].copy()

    fast, slow = make(), make()
    _kernels.choose_edges(*fast)
    _reference.choose_edges(*slow)
    for found, wanted in zip(fast[3:], slow[3:], strict=True):
        np.testing.assert_array_equal(found, wanted)
    for found, wanted, size in zip(fast[2], slow[2], slow[3], strict=True):
        np.testing.assert_array_equal(found[:size], wanted[:size])


@bounded
@given(st.integers(0, 200), st.integers(1, 5), seeds)
def test_sort_cells(n_rows, n_environments, seed):
    rng = np.random.default_rng(seed)
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, n_environments, n_rows)
    own = labels, environments, n_environments
    n_bounds = 2 * n_environments + 1
    run_both(
        "sort_cells", lambda: (*own, np.zeros(n_rows, np.uint32), np.zeros(n_bounds, np.int64))
    )


@of_each_type
@for_a_type
@given(X=value_tables(), seed=seeds)
def test_pack_columns(dtype, X, seed):
    X = X.astype(dtype)
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
    cube = run_both(
        "count_codes", lambda: (codes, None, bounds, np.zeros((5, n_bins, 4), np.int64))
    )[-1]
    assert cube.sum() == 5 * n_rows

    rows = np.flatnonzero(rng.random(n_rows) < 0.6).astype(np.uint32)
    row_bounds = np.searchsorted(rows, bounds)
    left = run_both("count_codes", lambda: (codes, rows, row_bounds, np.zeros_like(cube)))[-1]
    others = np.setdiff1d(np.arange(n_rows), rows).astype(np.uint32)
    stayed = np.zeros_like(cube)
    _kernels.count_codes(codes, others, np.searchsorted(others, bounds), stayed)
    np.testing.assert_array_equal(cube - left, stayed)  # everything minus those that left


@bounded
@given(seeds, st.integers(0, 300), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans())
def test_split_rows(seed, n_rows, share, are_all):
    rng = np.random.default_rng(seed)
    settled = rng.random(n_rows) < share
    rows = None if are_all else np.sort(rng.permutation(3 * n_rows)[:n_rows]).astype(np.uint32)
    bounds = np.sort(np.concatenate(([0, n_rows], rng.integers(0, n_rows + 1, 3))))

    def make_arguments():
        sizes = n_rows - settled.sum() + 1, settled.sum() + 1
        lists = [np.full(size, 7, np.uint32) for size in sizes]
        return rows, bounds, settled, *lists, np.full(len(bounds), 7)

    run_both("split_rows", make_arguments)


@bounded
@given(seeds, st.integers(1, 20))
def test_count_bits(seed, n_words):
    rng = np.random.default_rng(seed)
    words = rng.integers(2**64, size=(3, n_words), dtype=np.uint64)
    in_play = rng.integers(2**64, size=n_words, dtype=np.uint64)
    bounds = np.array([0, n_words // 2, n_words // 2, n_words])
    run_both(
        "count_bits",
        lambda: (words, in_play[np.newaxis], bounds, np.arange(3), np.zeros((3, 2, 3), np.int64)),
    )


HARD_TO_GUESS = {
    "uniform": lambda rng: rng.random(2000),
    "normal": lambda rng: rng.normal(size=2000),
    "heavy tails": lambda rng: rng.standard_cauchy(2000) ** 3,
    "huge": lambda rng: rng.random(2000) * 1.7e308 * rng.choice([-1, 1], 2000),
    "tiny": lambda rng: rng.random(2000) * 5e-324,
    "neighbours": lambda rng: 1.0 + rng.integers(0, 300, 2000) * np.finfo(float).eps,
    "two scales": lambda rng: np.concatenate((rng.random(1000), 1e12 + rng.random(1000))),
    "whole numbers": lambda rng: rng.integers(-(2**63), 2**63 - 1, 2000),
    "beyond 2**53": lambda rng: 2**60 + rng.integers(0, 300, 2000),
}


@pytest.mark.parametrize("name", HARD_TO_GUESS)
@pytest.mark.parametrize("n_edges", [3, 50, 255])
def test_guessed_bins_are_exact(name, n_edges):
    """The guess is only a start: rounding, overflow and uneven edges must not move a value."""
    rng = np.random.default_rng(n_edges)
    values = HARD_TO_GUESS[name](rng)
    edges = [np.unique(rng.choice(values, n_edges))]
    X = np.concatenate((values, edges[0]))
    if X.dtype.kind == "f":
        above, below = np.nextafter(edges[0], np.inf), np.nextafter(edges[0], -np.inf)
        X = np.concatenate((X, above, below, [np.finfo(float).max, -np.finfo(float).max]))
    X = X[:, np.newaxis]
    codes, surprised = np.zeros((1, len(X)), np.uint8), np.zeros(1, np.bool_)
    table = make_search_table(edges, X.dtype)
    position, column = np.arange(len(X), dtype=np.uint32), np.zeros(1, np.int64)
    no, top = np.zeros(1, np.bool_), X.max(axis=0)
    own = position, column, table, no, top, 0, len(X)
    _kernels.code_columns(X, *own, codes, surprised)
    np.testing.assert_array_equal(codes[0], np.searchsorted(edges[0], X[:, 0], side="left"))
    if name in ("uniform", "normal") and n_edges == 50:
        assert table.scale[0] > 0, "the guess is not used where it should be"


def test_add_values():
    rng = np.random.default_rng(0)
    codes, environments = rng.integers(0, 5, 200), rng.integers(0, 3, 200)
    values = rng.normal(size=(200, 2))

    def make_arguments():
        return codes.astype(np.uint8), environments.copy(), values.copy(), np.zeros((5, 2, 3))

    run_both("add_values", make_arguments)
