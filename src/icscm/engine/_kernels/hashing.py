"""The inner loops that hash rows, names and patterns, and number equal values and equal patterns.

Hash tables are arrays of slots, of open addressing: what does not find its slot free goes to the
next free one. With four slots, after values of the hashes 6, 9 and 14 were entered in this order:

    slot         0    1    2    3
    holds             9    6    14        14 & 3 is slot 2, which 6 has

Their sizes are powers of two, so `hash & last_slot` is a slot.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable

from icscm._constants import HASHED_ROWS, LARGEST_EXACT
from icscm.compiling import compiled

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
ONE = np.uint64(1)
# Bit b of packed bits is bit b & BIT_MASK of word b >> WORD_SHIFT.
WORD_SHIFT = np.uint32(6)
BIT_MASK = np.uint32(63)
# The bits of a large whole number that float64 may round away, and a number that is none of these.
_LOW_BITS = 0xFFFF
_EXACT = 0x10000


@register_jitable
def mix(bits):
    """Spread differences of the lower bits over all, by a multiplication, and back by a shift."""
    product = bits * _MULTIPLIER
    return product ^ (product >> _HALF)


def _find_low_bits(value):
    """Return the last bits of a large whole number, which float64 may not hold, else `_EXACT`."""


@overload(_find_low_bits)
def _overload_find_low_bits(value):
    # beside a signed number numba takes an unsigned one of 64 bits for a float, and rounds it
    if value in types.unsigned_domain:
        largest = np.uint64(LARGEST_EXACT)
        low_bits = np.uint64(_LOW_BITS)
        exact = np.uint64(_EXACT)
        return lambda value: value & low_bits if value > largest else exact
    if isinstance(value, types.Integer):
        lowest = -LARGEST_EXACT  # abs() will not do: of the lowest integer it is negative
        return lambda value: value & _LOW_BITS if not lowest <= value <= LARGEST_EXACT else _EXACT
    return lambda value: _EXACT  # noqa: ARG005 (as the others)


@register_jitable
def _hash_value(value, salt):
    """Hash a number by value, whatever its type; `salt` is another one for each column."""
    hash_of_low_bits = np.uint64(0)
    low_bits = _find_low_bits(value)
    if low_bits != _EXACT:
        hash_of_low_bits = mix(np.uint64(low_bits) ^ ~salt)
        value = value - low_bits
    # + 0.0 makes -0.0 and 0.0 the same bits; NaN has many patterns, and becomes infinity
    number = value + 0.0
    if number != number:
        number = np.inf
    # twice: once leaves a difference in the highest bits, such as a sign, up there, where those of
    # two columns cancel
    return hash_of_low_bits + mix(mix(np.float64(number).view(np.uint64) ^ salt))


@compiled
def hash_column(values, salt, out):
    """out[i] += what one column adds to the hash of row i. The order of the columns is free."""
    for i in range(values.shape[0]):
        out[i] += _hash_value(values[i], salt)


@compiled
def hash_rows(X, columns, salt, start, stop, out):
    """out[i] = a hash of row i, the same whatever the dtype of X and the order of the rows.

    It is the sum of the hashes of the row's values, for rows start .. stop.
    """
    is_by_row = X.strides[0] > X.strides[1]
    if is_by_row and columns.shape[0] == X.shape[1]:
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
    """Carry on a checksum: the sum of the words, and the sum of the sums so far.

    The second sees the order of the words.
    """
    sum_of_words = sums[0]
    sum_of_sums = sums[1]
    for word in words:
        sum_of_words += word
        sum_of_sums += sum_of_words
    sums[0] = sum_of_words
    sums[1] = sum_of_sums


@compiled
def _find_slot_of_value(value, distinct, number_in_slot, last_slot):
    """Find the slot of a hash table that a value has, or else the free one that it is to have.

    The search goes from the slot of its hash to the next ones, until one has it or is free.
    """
    # as in `_hash_value`: equal numbers must have equal bits
    slot = mix(np.float64(value + 0.0).view(np.uint64)) & last_slot
    while number_in_slot[slot] >= 0 and distinct[number_in_slot[slot]] != value:
        slot = (slot + ONE) & last_slot
    return slot


@compiled
def tally_values(values, distinct, n_rows):
    """Find the distinct values, in the order of their first rows, and the rows of each.

        values    3 1 3 2 3        distinct    3 1 2        n_rows    3 1 1

    Returns their number; one more than `distinct` has room for, and zeros, if there are more.
    None of the values may be NaN.
    """
    max_distinct = distinct.shape[0]
    n_slots = 64
    while n_slots < 4 * max_distinct:
        n_slots *= 2
    last_slot = np.uint64(n_slots - 1)
    number_in_slot = np.full(n_slots, -1, np.int64)  # the number of a value, -1 where free
    n_distinct = 0
    n_rows[:] = 0
    for i in range(values.shape[0]):
        value = values[i]
        slot = _find_slot_of_value(value, distinct, number_in_slot, last_slot)
        number = number_in_slot[slot]
        is_new = number < 0
        if is_new:
            if n_distinct == max_distinct:
                distinct[:] = 0
                n_rows[:] = 0
                return max_distinct + 1
            number = n_distinct
            distinct[number] = value
            number_in_slot[slot] = number
            n_distinct += 1
        n_rows[number] += 1
    return n_distinct


@compiled
def fill_slots(hash_of_pattern, slots):
    """Enter patterns 0, 1, ... with these hashes into an empty table; see `number_patterns`."""
    last_slot = np.uint64(slots.shape[0] - 1)
    for number in range(hash_of_pattern.shape[0]):
        slot = hash_of_pattern[number] & last_slot
        while slots[slot] > 0:
            slot = (slot + ONE) & last_slot
        slots[slot] = number + 1


@compiled
def number_patterns(words, hashes, stored, slots, hash_of_pattern, rows_of_new, numbers):
    """numbers[i] = the number of the pattern in row i; patterns count from their first row on.

        rows of words    b a c a c        numbers        1 0 2 0 2
        stored           a                rows_of_new    0 2           of the patterns 1 and 2

    Those in `stored` have their numbers already; `rows_of_new` lists the first rows of the others.
    `slots` is a hash table, at most half full, of numbers plus one, 0 where free, and
    `hash_of_pattern` has the hash of each number. Equal hashes are not enough: all words are
    compared. Returns the number of new patterns.
    """
    n_new = 0
    n_stored = stored.shape[0]
    last_slot = np.uint64(slots.shape[0] - 1)
    for i in range(words.shape[0]):
        slot = hashes[i] & last_slot
        while True:  # from slot to slot, until one has the pattern or is free
            number = np.int64(slots[slot]) - 1
            is_new = number < 0
            if is_new:
                number = n_stored + n_new
                slots[slot] = number + 1
                hash_of_pattern[number] = hashes[i]
                rows_of_new[n_new] = i
                n_new += 1
                break
            if hash_of_pattern[number] == hashes[i]:
                # compared here: a function for it would cost a quarter of the time
                if number < n_stored:
                    is_same = np.array_equal(stored[number], words[i])
                else:
                    is_same = np.array_equal(words[rows_of_new[number - n_stored]], words[i])
                if is_same:
                    break
            slot = (slot + ONE) & last_slot
        numbers[i] = number
    return n_new


@compiled
def list_members(numbers, offsets, members):
    """members[offsets[k] : offsets[k + 1]] = all i with numbers[i] == k, ascending.

    numbers    0 1 0 2 1        offsets    0 2 4 5        members    0 2 | 1 4 | 3
    """
    next_free = offsets.copy()
    for i in range(numbers.shape[0]):
        group = numbers[i]
        members[next_free[group]] = i
        next_free[group] += 1
