"""The kernels of bits and tables equal their twins in plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_kernels import bounded, seeds

from icscm.engine import _kernels
from icscm.engine.bits import Copies
from support.literal import kernels as _reference


def run_both(name, make_arguments, rtol=0.0):
    """Both twins write and return the same."""
    fast, slow = make_arguments(), make_arguments()
    assert getattr(_kernels, name)(*fast) == getattr(_reference, name)(*slow)
    for found, wanted in zip(fast, slow, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol) if rtol else (
            np.testing.assert_array_equal(found, wanted)
        )
    return fast


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
@bounded
@given(seed=seeds, n_rows=st.integers(1, 90), is_spoilt=st.booleans())
def test_pack_rows(seed, n_rows, dtype, is_spoilt):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n_rows, 11)).astype(dtype)
    if is_spoilt:
        X[rng.integers(n_rows), 5] = 2
    row_of_bit = np.full(128, -1)
    row_of_bit[np.sort(rng.permutation(128)[:n_rows])] = rng.permutation(n_rows)
    fast = (X, row_of_bit, 2, 9, np.zeros((11, 2), np.uint64))
    slow = (X, row_of_bit, 2, 9, np.zeros((11, 2), np.uint64))
    assert _kernels.pack_rows(*fast) == _reference.pack_rows(*slow) == (not is_spoilt)
    if not is_spoilt:
        np.testing.assert_array_equal(fast[-1], slow[-1])


@pytest.mark.parametrize("form", ["csr", "csc"])
@bounded
@given(seed=seeds, is_spoilt=st.booleans())
def test_pack_sparse(seed, form, is_spoilt):
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.random((100, 13)) < 0.2).astype(np.int64).asformat(form)
    X.data[rng.random(len(X.data)) < 0.1] = 0  # stored, and still nothing
    if is_spoilt and len(X.data):
        X.data[:] = 3
    bit_position = rng.permutation(128)[:100].astype(np.uint32)
    name = "pack_sparse_rows" if form == "csr" else "pack_sparse_columns"

    def make():
        words = np.zeros((13, 2), np.uint64)
        return X.data, X.indices, X.indptr, bit_position, 3, 13, words

    fast, slow = make(), make()
    is_right = getattr(_kernels, name)(*fast)
    assert is_right == getattr(_reference, name)(*slow)
    if is_right:
        np.testing.assert_array_equal(fast[-1], slow[-1])


@bounded
@given(seeds, st.integers(1, 70))
def test_patterns(seed, n_words):
    rng = np.random.default_rng(seed)
    words = rng.integers(3, size=(60, 2 * n_words)).astype(np.uint64)
    words[:, 1:] = 0
    hashes = run_both("hash_patterns", lambda: (words, np.zeros(60, np.uint64)))[1]
    stored = np.unique(words[:5], axis=0)
    known = np.zeros(100, np.uint64)
    _kernels.hash_patterns(stored, known[: len(stored)])
    slots = run_both("fill_slots", lambda: (known[: len(stored)], np.zeros(256, np.uint32)))[1]

    def make():
        first, numbers = np.zeros(60, np.int64), np.zeros(60, np.uint32)
        return words, hashes, stored, slots.copy(), known.copy(), first, numbers

    numbers = run_both("number_patterns", make)[-1]
    offsets = np.append(0, np.cumsum(np.bincount(numbers)))
    members = run_both("list_members", lambda: (numbers, offsets, np.zeros(60, np.uint32)))[2]
    check_groups(rng, numbers, offsets, members)
    full = rng.integers(2**64, size=(60, 2 * n_words), dtype=np.uint64)
    run_both("sum_words", lambda: (full.ravel(), np.array([2**63, 5], dtype=np.uint64)))


@bounded
@given(seeds, st.sampled_from([1, 63, 64, 129]), st.integers(1, 20), st.integers(1, 20))
def test_tiles(seed, n_features, n_pairs, n_segments):
    """Any bits in any order, and pieces of words in any place."""
    rng = np.random.default_rng(seed)
    n_tiles = -(-n_features // 64)
    words = rng.integers(2**64, size=(n_features, 2 * n_pairs), dtype=np.uint64)
    n_words = int(rng.integers(1, 2 * n_pairs + 1))
    source = rng.integers(128 * n_pairs, size=64 * n_words).astype(np.uint32)
    empty = np.zeros((n_tiles, n_words, 64), np.uint64)
    tiles = run_both("sort_bits", lambda: (words, source, empty.copy()))[2]
    run_both("lay_bits", lambda: (words, np.ones((n_tiles, 2 * n_pairs, 64), np.uint64)))
    bounds = np.sort(rng.integers(30, size=n_segments + 1))
    places = rng.integers(n_words, size=30).astype(np.uint32)
    masks = rng.integers(2**64, size=30, dtype=np.uint64)
    n_in_play, out = rng.integers(9999, size=n_segments), np.zeros((n_features, 2, n_segments), int)
    run_both("count_tiles", lambda: (tiles, places, masks, bounds, n_in_play, out.copy()))


def check_groups(rng, numbers, offsets, members):
    """Groups are recognised, as are those in another order or with any number changed."""
    order = np.unique(members[offsets[:-1]], return_inverse=True)[1].astype(np.uint32)
    numbers = order[numbers]
    offsets = np.append(0, np.cumsum(np.bincount(numbers)))
    groups = numbers, offsets, np.argsort(numbers, kind="stable").astype(np.uint32)
    assert Copies(*groups).is_whole()
    assert _reference._are_groups(*groups)
    for k in (0, 1, 2, 2):
        changed = [part.copy() for part in groups]
        changed[k][rng.integers(len(groups[k]))] = rng.choice([0, 1, 2, 59, 60, 2**31])
        assert Copies(*changed).is_whole() == _reference._are_groups(*changed)
    renumbered = rng.permutation(len(offsets) - 1).astype(np.uint32)[numbers]
    offsets = np.append(0, np.cumsum(np.bincount(renumbered)))
    listed = np.argsort(renumbered, kind="stable").astype(np.uint32)
    again = renumbered, offsets, listed
    assert Copies(*again).is_whole() == _reference._are_groups(*again)


LINES = [b"a\t0\t1\t1\n", b"b c\t1\t1\t0\r\n", b"\n", b"\t0\t0\t0\n", "é\t1\t0\t1\n".encode()]
LINES += [b"e\t1\t1\t0\r\r\n", b"\r\n", b"\rf\t1\t0\t1\r\n"]
WRONG = [b"d\t0\t1\n", b"d\t0\t1\t1\t1\n", b"d\t0\t2\t1\n", b"d\t0\t1\t9\n", b"d\t0\t1\t1", b"d\n"]
WRONG += [b"d\t0\t1\t1\r", b"\r", b"d\r\t0\t1\t\r1\n"]


@bounded
@given(st.lists(st.sampled_from(LINES + WRONG), max_size=8), st.integers(0, 9))
def test_parse_lines(lines, n_rows):
    text = np.frombuffer(b"".join(lines), dtype=np.uint8)

    def make():
        names, ends = np.zeros(100, np.uint8), np.zeros(n_rows, np.int64)
        return text, 3, np.zeros((n_rows, 2), np.uint64), names, ends

    *_, names, ends = run_both("parse_lines", make)
    ends = np.maximum.accumulate(np.append(ends, 1))
    run_both("hash_names", lambda: (names, ends, np.zeros(n_rows + 1, np.uint64)))


@pytest.mark.parametrize("n_samples", range(1, 140, 3))
def test_parse_long_lines(n_samples):
    rng = np.random.default_rng(n_samples)
    cells = rng.integers(0, 2, size=(20, n_samples))
    lines = ["\t".join([f"gene{i}", *map(str, row)]) + "\n" for i, row in enumerate(cells)]
    text = np.frombuffer("".join(lines).encode(), dtype=np.uint8)
    n_words = 2 * -(-n_samples // 128)
    run_both(
        "parse_lines",
        lambda: (
            text,
            n_samples,
            np.zeros((25, n_words), np.uint64),
            np.zeros(len(text), np.uint8),
            np.zeros(25, np.int64),
        ),
    )
