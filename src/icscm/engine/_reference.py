"""The kernels once more in plain NumPy: slow, short, and what the tests hold the fast ones to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm.engine._kernels import SearchTable

Array = NDArray[Any]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def hash_rows(X: Array, columns: Array, salt: Array, start: int, stop: int, out: Array) -> None:
    values = X[start:stop, columns]
    hashes = np.zeros(values.shape, dtype=np.uint64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:  # narrower ones are exact
        is_large = (values > 2**53) | (values < -(2**53))
        low = np.where(is_large, values & values.dtype.type(0xFFFF), 0).astype(np.uint64)
        hashes += np.where(is_large, _mix(low ^ ~salt[columns]), np.uint64(0))
        values = values - low.astype(values.dtype)
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.inf
    hashes += _mix(numbers.view(np.uint64) ^ salt[columns])
    out[start:stop] = hashes.sum(axis=1, dtype=np.uint64)


def hash_column(values: Array, salt: np.uint64, out: Array) -> None:
    hashes = np.empty_like(out)
    hash_rows(values[:, np.newaxis], np.array([0]), np.array([salt]), 0, len(values), hashes)
    out += hashes


def tally_values(values: Array, found: Array, n_rows: Array) -> int:
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    found[:], n_rows[:] = 0, 0
    if len(distinct) > len(found):
        return len(found) + 1
    order = np.argsort(first)
    found[: len(distinct)], n_rows[: len(distinct)] = values[first[order]], counts[order]
    return len(distinct)


def _mix(bits: Array) -> Array:
    bits = bits * _MULTIPLIER
    mixed: Array = bits ^ (bits >> np.uint64(32))
    return mixed


def find_extremes(columns: Array, lowest: Array, highest: Array, two_valued: Array) -> None:
    lowest[:] = columns.min(axis=1)
    highest[:] = columns.max(axis=1)
    two_valued[:] = [len(np.unique(column)) <= 2 for column in columns]


def code_columns(
    X: Array,
    position: Array,
    columns: Array,
    table: SearchTable,
    known: Array,
    highest: Array,
    codes: Array,
    surprised: Array,
) -> None:
    for k, column in enumerate(columns):
        values = X[:, column]
        own_edges = table.edges[k, : table.n_edges[k]]
        is_missing = np.isnan(values)
        codes[k, position] = np.where(is_missing, 0, np.searchsorted(own_edges, values, "left"))
        expected = is_missing | np.isin(values, np.append(own_edges, highest[k]))
        if known[k] and not expected.all():
            surprised[k] = True


def pack_columns(
    X: Array,
    bit_position: Array,
    columns: Array,
    edge: Array,
    known: Array,
    highest: Array,
    words: Array,
    surprised: Array,
) -> None:
    for k, column in enumerate(columns):
        values = X[:, column]
        bits = np.zeros(words.shape[1] * 64, dtype=np.uint8)
        bits[bit_position] = values > edge[k]
        words[k] = np.packbits(bits, bitorder="little").view(np.uint64)
        if known[k] and not (np.isnan(values) | np.isin(values, [edge[k], highest[k]])).all():
            surprised[k] = True


def count_codes(codes: Array, bounds: Array, out: Array) -> None:
    every_row = np.arange(codes.shape[1])
    count_codes_of_rows(codes, every_row, bounds, 1, out)


def count_codes_of_rows(codes: Array, rows: Array, bounds: Array, sign: int, out: Array) -> None:
    for f in range(codes.shape[0]):
        for s in range(len(bounds) - 1):
            segment = codes[f, rows[bounds[s] : bounds[s + 1]]]
            out[f, :, s] += sign * np.bincount(segment, minlength=out.shape[1])


def count_bits(words: Array, in_play: Array, word_bounds: Array, out: Array) -> None:
    ones = np.bitwise_count(words & in_play).astype(np.int64)
    for s in range(len(word_bounds) - 1):
        out[:, s] = ones[:, word_bounds[s] : word_bounds[s + 1]].sum(axis=1)


def clear_bits(words: Array, bits: Array) -> None:
    for bit in bits.tolist():
        words[bit // 64] &= ~np.uint64(1 << (bit % 64))
