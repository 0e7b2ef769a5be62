"""Hashes of rows, columns, names and patterns."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from icscm._constants import LARGEST_EXACT

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
LOW_HALF = np.uint64(2**32 - 1)
ONE = np.uint64(1)
WORD_SHIFT = np.uint32(6)
BIT_MASK = np.uint32(63)
_LOW_BITS = 0xFFFF


@register_jitable
def mix(bits):
    bits = bits * _MULTIPLIER
    return bits ^ (bits >> _HALF)


def _clear_low_bits(value):
    """A large whole number without the bits that float64 may not hold; a float as it is."""


def _hash_low_bits(value, salt):
    """A hash of the bits that `_clear_low_bits` clears; 0 for a float."""


@overload(_clear_low_bits)
def _overload_clear_low_bits(value):
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
    if value > LARGEST_EXACT or value < -LARGEST_EXACT:
        hashed = _hash_low_bits(value, salt)
        value = _clear_low_bits(value)
    # + 0.0 makes -0.0 and 0.0 the same bits; NaN has many patterns, and becomes infinity
    number = value + 0.0
    if number != number:
        number = np.inf
    return hashed + mix(np.float64(number).view(np.uint64) ^ salt)


@njit(cache=True, nogil=True)
def hash_rows(X, columns, salt, start, stop, out):
    """out[i] = a hash of row i, the same whatever the dtype of X and the order of the rows."""
    for i in range(start, stop):
        total = np.uint64(0)
        for j in columns:
            total += _hash_value(X[i, j], salt[j])
        out[i] = total


@njit(cache=True, nogil=True)
def hash_column(values, salt, out):
    """out[i] += what one column adds to the hash of row i; the order of the columns is free."""
    for i in range(values.shape[0]):
        out[i] += _hash_value(values[i], salt)


@njit(cache=True, nogil=True)
def hash_patterns(words, out):
    """out[i] = a hash of row i of the words."""
    for i in range(words.shape[0]):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total = mix(total ^ words[i, w]) + _MULTIPLIER
        out[i] = total


@njit(cache=True, nogil=True)
def number_patterns(words, hashes, stored, slots, known, first, numbers):
    """numbers[i] = the number of the pattern in row i; patterns count from their first row on.

    Those in `stored` have their numbers already; `first` lists the rows of the new ones. `slots`
    is a table of numbers plus one, 0 where free, at most half full, by the patterns' `known`
    hashes. Equal hashes are not enough: all words are compared. Returns the number of new ones.
    """
    n_new = 0
    last_slot = np.uint64(slots.shape[0] - 1)
    for i in range(words.shape[0]):
        slot = hashes[i] & last_slot
        while True:
            number = np.int64(slots[slot]) - 1
            if number < 0:
                number = stored.shape[0] + n_new
                slots[slot] = number + 1
                known[number] = hashes[i]
                first[n_new] = i
                n_new += 1
                break
            if known[number] == hashes[i]:
                if number < stored.shape[0]:
                    is_same = np.array_equal(stored[number], words[i])
                else:
                    is_same = np.array_equal(words[first[number - stored.shape[0]]], words[i])
                if is_same:
                    break
            slot = (slot + ONE) & last_slot
        numbers[i] = number
    return n_new


@njit(cache=True, nogil=True)
def list_members(numbers, offsets, members):
    """members[offsets[k] : offsets[k + 1]] = the places of k in `numbers`, ascending."""
    at = offsets.copy()
    for i in range(numbers.shape[0]):
        members[at[numbers[i]]] = i
        at[numbers[i]] += 1


@njit(cache=True, nogil=True)
def hash_names(names, ends, out):
    """out[i] = a hash of name i, which ends at ends[i]."""
    start = 0
    for i in range(ends.shape[0]):
        total = np.uint64(ends[i] - start)
        for b in range(start, ends[i]):
            total = mix(total ^ np.uint64(names[b]))
        out[i] = total
        start = ends[i]


@njit(cache=True, nogil=True)
def fill_slots(known, slots):
    """Enter patterns 0, 1, ... with these hashes into an empty table."""
    last_slot = np.uint64(slots.shape[0] - 1)
    for number in range(known.shape[0]):
        slot = known[number] & last_slot
        while slots[slot] > 0:
            slot = (slot + ONE) & last_slot
        slots[slot] = number + 1
