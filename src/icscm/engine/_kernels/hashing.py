"""Hashes of rows, columns, names and patterns, and checksums; what all kernels know of words."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable

from icscm._constants import HASHED_ROWS, INFINITE, LARGEST_EXACT, MISSING
from icscm.compiling import compiled

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
ONE = np.uint64(1)
WORD_SHIFT = np.uint32(6)
BIT_MASK = np.uint32(63)
_LOW_BITS = 0xFFFF


@register_jitable
def mix(bits):
    bits = bits * _MULTIPLIER
    return bits ^ (bits >> _HALF)


def _is_large(value):
    """Whether it may be a whole number that float64 does not hold.

    Beside a signed number numba takes an unsigned one of 64 bits for a float, and rounds it; so
    unsigned ones have branches of their own.
    """


def _clear_low_bits(value):
    """A large whole number without the bits that float64 may not hold; a float as it is."""


def _hash_low_bits(value, salt):
    """A hash of the bits that `_clear_low_bits` clears; 0 for a float."""


@overload(_is_large)
def _overload_is_large(value):
    if value in types.unsigned_domain:
        return lambda value: value > np.uint64(LARGEST_EXACT)
    return lambda value: value > LARGEST_EXACT or value < -LARGEST_EXACT


@overload(_clear_low_bits)
def _overload_clear_low_bits(value):
    if value in types.unsigned_domain:
        return lambda value: value - (value & np.uint64(_LOW_BITS))
    if isinstance(value, types.Integer):
        return lambda value: value - (value & _LOW_BITS)
    return lambda value: value


@overload(_hash_low_bits)
def _overload_hash_low_bits(value, salt):
    if isinstance(value, types.Integer):
        return lambda value, salt: mix(np.uint64(value & _LOW_BITS) ^ ~salt)
    return lambda value, salt: np.uint64(0)  # noqa: ARG005 (both must take the same)


@register_jitable
def _hash_value(value, salt):
    hashed = np.uint64(0)
    if _is_large(value):
        hashed = _hash_low_bits(value, salt)
        value = _clear_low_bits(value)
    # + 0.0 makes -0.0 and 0.0 the same bits; NaN has many patterns, and becomes infinity
    number = value + 0.0
    if number != number:
        number = np.inf
    # twice: once leaves a difference in the highest bits, such as a sign, up there, where those of
    # two columns cancel
    return hashed + mix(mix(np.float64(number).view(np.uint64) ^ salt))


@compiled
def _hash_run(values, salt, total):
    """`total` and the hashes of neighbouring values of a row; and whether all are finite."""
    n_odd = 0
    for j in range(values.shape[0]):
        total += _hash_value(values[j], salt[j])
        n_odd += values[j] - values[j] != 0  # NaN where not finite
    return total, n_odd == 0


@compiled
def _mark_odd(values, odd):
    """odd[j] |= MISSING or INFINITE where a value is."""
    for j in range(values.shape[0]):
        is_infinite = (values[j] == values[j]) & (values[j] - values[j] != 0)
        odd[j] |= MISSING * np.uint8(values[j] != values[j]) | INFINITE * np.uint8(is_infinite)


@compiled
def hash_column(values, salt, out):
    """out[i] += what one column adds to the hash of row i; and whether all values are finite.

    The order of the columns is free.
    """
    n_odd = 0
    for i in range(values.shape[0]):
        out[i] += _hash_value(values[i], salt)
        n_odd += values[i] - values[i] != 0  # NaN where not finite
    return n_odd == 0


@compiled
def _hash_block(X, runs, salt, start, stop, out, odd):
    """`hash_rows` of rows start .. stop, column by column."""
    out[start:stop] = 0
    for first, last in runs:
        for j in range(first, last):
            values = X[start:stop, j]
            if not hash_column(values, salt[j], out[start:stop]):
                _mark_odd_column(values, odd[j : j + 1])


@compiled
def _mark_odd_column(values, odd):
    for i in range(values.shape[0]):
        _mark_odd(values[i : i + 1], odd)


@compiled
def hash_rows(X, runs, salt, start, stop, out, odd):
    """out[i] = a hash of row i, the same whatever the dtype of X and the order of the rows.

    Of columns first .. last of each of the `runs`; odd[j] |= what column j holds beside finite
    numbers, MISSING or INFINITE.
    """
    if X.strides[0] <= X.strides[1]:
        for begin in range(start, stop, HASHED_ROWS):
            _hash_block(X, runs, salt, begin, min(stop, begin + HASHED_ROWS), out, odd)
        return
    for i in range(start, stop):
        total = np.uint64(0)
        for first, last in runs:
            values = X[i][first:last]
            total, is_finite = _hash_run(values, salt[first:last], total)
            if not is_finite:
                _mark_odd(values, odd[first:last])
        out[i] = total


@compiled
def hash_patterns(words, out):
    """out[i] = a hash of row i of the words."""
    for i in range(words.shape[0]):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total = mix(total ^ words[i, w]) + _MULTIPLIER
        out[i] = total


@compiled
def hash_names(names, ends, out):
    """out[i] = a hash of name i, which ends at ends[i]."""
    start = 0
    for i in range(ends.shape[0]):
        total = np.uint64(ends[i] - start)
        for b in range(start, ends[i]):
            total = mix(total ^ np.uint64(names[b]))
        out[i] = total
        start = ends[i]


@compiled
def sum_words(words, sums):
    """Carry on a checksum: the sum of the words, and the sum of the sums so far."""
    total, order = sums[0], sums[1]
    for word in words:
        total += word
        order += total
    sums[0], sums[1] = total, order
