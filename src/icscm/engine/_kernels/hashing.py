"""Hashes of rows, names and patterns, checksums; equal values and equal patterns numbered."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable

from icscm._constants import HASHED_ROWS, LARGEST_EXACT
from icscm.compiling import compiled

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
ONE = np.uint64(1)
WORD_SHIFT = np.uint32(6)
BIT_MASK = np.uint32(63)
_LOW_BITS, _EXACT = 0xFFFF, 0x10000


@register_jitable
def mix(bits):
    bits = bits * _MULTIPLIER
    return bits ^ (bits >> _HALF)


def _find_low_bits(value):
    """The last bits of a large whole number, which float64 may not hold; `_EXACT` of all others."""


@overload(_find_low_bits)
def _overload_find_low_bits(value):
    # beside a signed number numba takes an unsigned one of 64 bits for a float, and rounds it
    if value in types.unsigned_domain:
        most, low, exact = np.uint64(LARGEST_EXACT), np.uint64(_LOW_BITS), np.uint64(_EXACT)
        return lambda value: value & low if value > most else exact
    if isinstance(value, types.Integer):
        least = -LARGEST_EXACT  # the absolute value of the least integer is itself
        return lambda value: value & _LOW_BITS if not least <= value <= LARGEST_EXACT else _EXACT
    return lambda value: _EXACT  # noqa: ARG005 (as the others)


@register_jitable
def _hash_value(value, salt):
    hashed, low_bits = np.uint64(0), _find_low_bits(value)
    if low_bits != _EXACT:
        hashed = mix(np.uint64(low_bits) ^ ~salt)
        value = value - low_bits
    # + 0.0 makes -0.0 and 0.0 the same bits; NaN has many patterns, and becomes infinity
    number = value + 0.0
    if number != number:
        number = np.inf
    # twice: once leaves a difference in the highest bits, such as a sign, up there, where those of
    # two columns cancel
    return hashed + mix(mix(np.float64(number).view(np.uint64) ^ salt))


@compiled
def hash_column(values, salt, out):
    """out[i] += what one column adds to the hash of row i. The order of the columns is free."""
    for i in range(values.shape[0]):
        out[i] += _hash_value(values[i], salt)


@compiled
def hash_rows(X, columns, salt, start, stop, out):
    """out[i] = a hash of row i, the same whatever the dtype of X and the order of the rows."""
    if X.strides[0] > X.strides[1] and columns.shape[0] == X.shape[1]:
        for i in range(start, stop):
            total = np.uint64(0)
            for j in range(X.shape[1]):
                total += _hash_value(X[i, j], salt[j])
            out[i] = total
        return
    for begin in range(start, stop, HASHED_ROWS):
        end = min(stop, begin + HASHED_ROWS)
        out[begin:end] = 0
        for j in columns:
            hash_column(X[begin:end, j], salt[j], out[begin:end])


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


@compiled
def tally_values(values, found, n_rows):
    """The distinct values, in the order of their first rows, and the rows of each.

    Returns their number; one more than `found` has room for, and zeros, if there are more.
    None of the values may be NaN.
    """
    most = found.shape[0]
    n_places = 64
    while n_places < 4 * most:
        n_places *= 2
    last = np.uint64(n_places - 1)
    at_place = np.full(n_places, -1, np.int64)  # open addressing: the number of a value, or -1
    n_found = 0
    n_rows[:] = 0
    for i in range(values.shape[0]):
        value = values[i]
        # as in `_hash_value`: equal numbers must have equal bits
        place = mix(np.float64(value + 0.0).view(np.uint64)) & last
        while at_place[place] >= 0 and found[at_place[place]] != value:
            place = (place + ONE) & last
        number = at_place[place]
        if number < 0:
            if n_found == most:
                found[:] = 0
                n_rows[:] = 0
                return most + 1
            found[n_found] = value
            at_place[place] = n_found
            number = n_found
            n_found += 1
        n_rows[number] += 1
    return n_found


@compiled
def fill_slots(known, slots):
    """Enter patterns 0, 1, ... with these hashes into an empty table."""
    last_slot = np.uint64(slots.shape[0] - 1)
    for number in range(known.shape[0]):
        slot = known[number] & last_slot
        while slots[slot] > 0:
            slot = (slot + ONE) & last_slot
        slots[slot] = number + 1


@compiled
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


@compiled
def list_members(numbers, offsets, members):
    """members[offsets[k] : offsets[k + 1]] = the places of k in `numbers`, ascending."""
    at = offsets.copy()
    for i in range(numbers.shape[0]):
        members[at[numbers[i]]] = i
        at[numbers[i]] += 1
