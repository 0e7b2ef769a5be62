"""The inner loops, compiled. Each has a twin in plain NumPy in `_reference.py`.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import intrinsic, overload, register_jitable

from icscm._constants import ROW_BLOCK, SHORT_SEGMENT

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_WORD_SHIFT = np.uint32(6)
_BIT_MASK = np.uint32(63)
# Whole numbers beyond this are not all held by float64.
_LARGEST_EXACT = 2**53
_LOW_BITS = 0xFFFF


@intrinsic
def _popcount(typingctx, word):
    """Number of one bits, as the processor's own instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@register_jitable
def _mix(bits):
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
        return lambda value, salt: _mix(np.uint64(value & _LOW_BITS) ^ ~salt)
    return lambda value, salt: np.uint64(0)  # noqa: ARG005 (both must take the same)


@register_jitable
def _hash_value(value, salt):
    hashed = np.uint64(0)
    if value > _LARGEST_EXACT or value < -_LARGEST_EXACT:
        hashed = _hash_low_bits(value, salt)
        value = _clear_low_bits(value)
    # + 0.0 makes -0.0 and 0.0 the same bits; NaN has many patterns, and becomes infinity
    number = value + 0.0
    if number != number:
        number = np.inf
    return hashed + _mix(np.float64(number).view(np.uint64) ^ salt)


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
        place = _mix(np.float64(value + 0.0).view(np.uint64)) & last
        while at_place[place] >= 0 and found[at_place[place]] != value:
            place = (place + _ONE) & last
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


@njit(cache=True, nogil=True)
def find_extremes(columns, lowest, highest, two_valued):
    """Least and greatest value of each row of `columns`, and whether there is none between."""
    for k in range(columns.shape[0]):
        column = columns[k]
        low = column[0]
        high = column[0]
        for i in range(column.shape[0]):
            value = column[i]
            low = min(low, value)
            high = max(high, value)
        n_between = 0
        for i in range(column.shape[0]):
            n_between += (column[i] != low) & (column[i] != high)
        lowest[k] = low
        highest[k] = high
        two_valued[k] = n_between == 0


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Behind its `n_edges[k]` edges, `edges[k]` is padded with the dtype's greatest value to a power
    of two and one more. Where `scale[k]` is not 0, the line (x - low[k]) * scale[k] sends values
    to the places of `guess[k]`, which holds the number of edges that go to earlier places; at
    most two edges share a place, so two comparisons correct the guess. The line never
    decreases, rounded or not: an edge at an earlier place is below x, at a later one above.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray


@njit(cache=True, nogil=True)
def _guess_codes(values, edges, guess, low, scale, codes):
    """codes[i] = number of edges below values[i], by a guess and two comparisons."""
    last = np.float64(guess.shape[0] - 1)
    for i in range(values.shape[0]):
        place = min(max((values[i] - low) * scale, 0.0), last)
        first = guess[np.uint64(place)]
        at = np.uint64(first)
        codes[i] = (
            first + np.uint8(values[i] > edges[at]) + np.uint8(values[i] > edges[at + np.uint64(1)])
        )


@njit(cache=True, nogil=True)
def _search_edges(values, edges, n_edges, codes):
    """codes[i] = number of edges below values[i], by halving, all values a level at a time."""
    codes[: values.shape[0]] = 0
    step = 1
    while 2 * step <= n_edges:
        step *= 2
    while step > 0:
        for i in range(values.shape[0]):
            # in unsigned bytes: any wider arithmetic here compiles to a branch
            edge = edges[np.uint64(codes[i]) + np.uint64(step - 1)]
            codes[i] += np.uint8(step) * np.uint8(values[i] > edge)
        step >>= 1


@njit(cache=True, nogil=True)
def _has_surprise(values, edges, n_edges, highest, codes):
    """Whether any value is neither one of the edges nor the highest; missing ones are neither."""
    n_surprises = 0
    for i in range(values.shape[0]):
        is_edge = (codes[i] < n_edges) & (values[i] == edges[codes[i]])
        is_value = values[i] == values[i]
        n_surprises += (not is_edge) & (values[i] != highest) & is_value
    return n_surprises > 0


@njit(cache=True, nogil=True)
def code_columns(X, position, columns, table, known, highest, codes, surprised):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by label, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    The bin of x is the number of edges below x. A block of rows goes through a column
    together, to keep many loads under way.
    Where `known[k]` is set, the column was taken to hold just its edges and `highest[k]`;
    `surprised[k]` is set when it does not.
    """
    block_codes = np.empty(ROW_BLOCK, np.uint8)
    block_values = np.empty(ROW_BLOCK, X.dtype)
    for start in range(0, X.shape[0], ROW_BLOCK):
        size = min(ROW_BLOCK, X.shape[0] - start)
        for k in range(columns.shape[0]):
            column = columns[k]
            edges, n_edges = table.edges[k], table.n_edges[k]
            for i in range(size):
                block_values[i] = X[start + i, column]
            values = block_values[:size]
            if table.scale[k] > 0.0:
                _guess_codes(
                    values, edges, table.guess[k], table.low[k], table.scale[k], block_codes
                )
            else:
                _search_edges(values, edges, n_edges, block_codes)
            if known[k] and _has_surprise(values, edges, n_edges, highest[k], block_codes):
                surprised[k] = True
            out = codes[k]
            for i in range(size):
                out[position[start + i]] = block_codes[i]


@njit(cache=True, nogil=True)
def pack_columns(X, bit_position, columns, edge, known, highest, words, surprised):
    """Set the bit of each sample whose value is above the column's one edge.

    Where `known[k]` is set, the column was taken to hold just its edge and `highest[k]`;
    `surprised[k]` is set when it does not.
    """
    for start in range(0, X.shape[0], ROW_BLOCK):
        stop = min(X.shape[0], start + ROW_BLOCK)
        for k in range(columns.shape[0]):
            column = columns[k]
            out = words[k]
            n_surprises = 0
            for i in range(start, stop):
                value = X[i, column]
                n_surprises += (value != edge[k]) & (value != highest[k]) & (value == value)
                bit = bit_position[i]
                is_above = np.uint64(value > edge[k])
                out[bit >> _WORD_SHIFT] |= is_above << np.uint64(bit & _BIT_MASK)
            if known[k] and n_surprises > 0:
                surprised[k] = True


@njit(cache=True, nogil=True)
def count_codes(codes, bounds, out):
    """out[feature, bin, segment] = samples of the segment in that bin, all samples counted."""
    local = np.zeros((4, out.shape[1]), np.int64)
    for f in range(codes.shape[0]):
        column = codes[f]
        for s in range(bounds.shape[0] - 1):
            i, stop = bounds[s], bounds[s + 1]
            if stop - i < SHORT_SEGMENT:
                while i < stop:
                    out[f, column[i], s] += 1
                    i += 1
                continue
            # four histograms: equal neighbours do not wait for each other's increment
            while i + 4 <= stop:
                local[0, column[i]] += 1
                local[1, column[i + 1]] += 1
                local[2, column[i + 2]] += 1
                local[3, column[i + 3]] += 1
                i += 4
            while i < stop:
                local[0, column[i]] += 1
                i += 1
            for b in range(out.shape[1]):
                out[f, b, s] += local[0, b] + local[1, b] + local[2, b] + local[3, b]
                local[0, b] = local[1, b] = local[2, b] = local[3, b] = 0


@njit(cache=True, nogil=True)
def count_codes_of_rows(codes, rows, bounds, sign, out):
    """out[feature, bin, segment] += sign for each listed sample of the segment in that bin."""
    local = np.zeros((4, out.shape[1]), np.int64)
    for f in range(codes.shape[0]):
        column = codes[f]
        for s in range(bounds.shape[0] - 1):
            i, stop = bounds[s], bounds[s + 1]
            if stop - i < SHORT_SEGMENT:
                while i < stop:
                    out[f, column[rows[i]], s] += sign
                    i += 1
                continue
            while i + 4 <= stop:
                local[0, column[rows[i]]] += 1
                local[1, column[rows[i + 1]]] += 1
                local[2, column[rows[i + 2]]] += 1
                local[3, column[rows[i + 3]]] += 1
                i += 4
            while i < stop:
                local[0, column[rows[i]]] += 1
                i += 1
            for b in range(out.shape[1]):
                out[f, b, s] += sign * (local[0, b] + local[1, b] + local[2, b] + local[3, b])
                local[0, b] = local[1, b] = local[2, b] = local[3, b] = 0


@njit(cache=True, nogil=True)
def count_bits(words, in_play, word_bounds, out):
    """out[feature, segment] = one bits among the samples in play of the segment."""
    for f in range(words.shape[0]):
        column = words[f]
        for s in range(word_bounds.shape[0] - 1):
            total = np.uint64(0)
            for w in range(word_bounds[s], word_bounds[s + 1]):
                total += _popcount(column[w] & in_play[w])
            out[f, s] = total


@njit(cache=True, nogil=True)
def clear_bits(words, bits):
    """Turn the listed bits off."""
    for bit in bits:
        words[bit >> _WORD_SHIFT] &= ~(_ONE << np.uint64(bit & _BIT_MASK))
