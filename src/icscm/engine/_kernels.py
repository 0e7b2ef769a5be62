"""The inner loops, compiled. Each has a twin in plain NumPy in `_reference.py`.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic, overload, register_jitable

from icscm._constants import LARGEST_EXACT, PACKED_COLUMNS, ROW_BLOCK, SHORT_SEGMENT

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring values
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)
_ONE = np.uint64(1)
_WORD_SHIFT = np.uint32(6)
_BIT_MASK = np.uint32(63)
_LOW_BITS = 0xFFFF
_BYTES = ir.VectorType(ir.IntType(8), 16)
_WIDE_BYTES = ir.VectorType(ir.IntType(16), 16)
_SUM, _WORD = ir.IntType(16), ir.IntType(64)
# Four cells of text and their tabs, read as one word: 0\t0\t0\t0\t, and where the ones differ.
_FOUR_ZEROS = np.uint64(0x0930093009300930)
_FOUR_ONES = np.uint64(0x0001000100010001)
# Multiplied by the first, bits 0, 16, 32 and 48 stand side by side from the second on.
_GATHER = np.uint64(2**48 + 2**33 + 2**18 + 2**3)
_GATHERED = np.uint64(48)
_TAB, _NEWLINE, _RETURN, _ZERO = 9, 10, 13, 48
# Pairs of words until a counter of a byte, at most 8 more each time, may be full.
_MAX_PAIRS = 31


@intrinsic
def _popcount(typingctx, word):
    """Number of one bits, as the processor's own instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _make_counter(n_rows):
    """A function that counts the one bits which words of two arrays have in common.

    It takes 2 * n_pairs words of row i of `a` from `start` on with those of each of `n_rows` rows
    of `b` from j on, and returns the counts side by side in one word, row j lowest.

    Sixteen bytes at a time, in counters of a byte, which bounds the number of pairs: left to
    itself, the compiler widens each count to a word first and takes twice as long.
    """

    @intrinsic
    def count_pairs(typingctx, a, i, b, j, start, n_pairs):
        def codegen(context, builder, signature, args):
            rows_a, i, rows_b, j, start, n_pairs = args

            def point(rows, kind, row):
                array = context.make_array(kind)(context, builder, rows)
                width = cgutils.unpack_tuple(builder, array.shape)[1]
                place = builder.add(builder.mul(row, width), start)
                return builder.bitcast(builder.gep(array.data, [place]), _BYTES.as_pointer())

            def load(pointer, at):
                found = builder.load(builder.gep(pointer, [at]))
                found.align = 8
                return found

            count = _declare(builder, "llvm.ctpop.v16i8", _BYTES, _BYTES)
            add_up = _declare(builder, "llvm.vector.reduce.add.v16i16", _SUM, _WIDE_BYTES)
            one = point(rows_a, signature.args[0], i)
            numbers = [builder.add(j, ir.Constant(j.type, k)) for k in range(n_rows)]
            others = [point(rows_b, signature.args[2], number) for number in numbers]
            zeros = ir.Constant(_BYTES, None)
            totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(n_rows)]
            with cgutils.for_range(builder, n_pairs) as loop:
                words = load(one, loop.index)
                for other, total in zip(others, totals, strict=True):
                    common = builder.and_(words, load(other, loop.index))
                    ones = builder.call(count, [common])
                    builder.store(builder.add(builder.load(total), ones), total)
            result = ir.Constant(_WORD, 0)
            for k, total in enumerate(totals):
                wide = builder.zext(builder.load(total), _WIDE_BYTES)
                found = builder.zext(builder.call(add_up, [wide]), _WORD)
                shift = ir.Constant(_WORD, k * 64 // n_rows)
                result = builder.or_(result, builder.shl(found, shift))
            return result

        whole = types.intp
        return types.uint64(a, whole, b, whole, whole, whole), codegen

    return count_pairs


def _declare(builder, name, result, argument):
    kind = ir.FunctionType(result, [argument])
    return cgutils.get_or_insert_function(builder.module, kind, name)


_count_pairs = _make_counter(1)
_count_pairs_twice = _make_counter(2)


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
    if value > LARGEST_EXACT or value < -LARGEST_EXACT:
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
def _add_row(values, bit, lane, others):
    """Set `bit` in the bytes of `lane` where the value is 1, and `others` where it is not 0."""
    zero = np.uint8(0)
    for c in range(values.shape[0]):
        value = values[c]
        # choices, not shifts: these compile to lanes
        lane[c] |= bit if value == 1 else zero
        others[c] |= bit if (value != 0) & (value != 1) else zero


@njit(cache=True, nogil=True)
def pack_rows(X, row_of_bit, first, last, words):
    """Pack columns first .. last of a row-major table of zeros and ones; False if it is not.

        X, sorted        lanes                       words
        row 0  1 0 1     byte 0 of a, of b, of c     a: bytes 0 .. 7
        ...           -> ...                      -> b: bytes 0 .. 7
        row 63 0 0 1     byte 7 of a, of b, of c     c: bytes 0 .. 7

    Whole rows go through in lanes of bytes, which processors are good at. `row_of_bit` is -1
    where a bit belongs to no row.
    """
    lanes = np.zeros((8, PACKED_COLUMNS), np.uint8)
    others = np.zeros(PACKED_COLUMNS, np.uint8)
    for start in range(first, last, PACKED_COLUMNS):
        size = min(PACKED_COLUMNS, last - start)
        for w in range(words.shape[1]):
            lanes[:] = 0
            for bit in range(64):
                row = row_of_bit[64 * w + bit]
                if row >= 0:
                    values = X[row, start : start + size]
                    _add_row(values, np.uint8(1 << (bit & 7)), lanes[bit >> 3], others)
            if others.any():
                return False
            for c in range(size):
                word = np.uint64(0)
                for b in range(8):
                    word |= np.uint64(lanes[b, c]) << np.uint64(8 * b)
                words[start + c, w] = word
    return True


@njit(cache=True, nogil=True)
def pack_sparse_columns(values, rows, starts, bit_position, first, last, words):
    """Set the bits of columns first .. last of a CSC matrix; False if any value is not 0 or 1."""
    for c in range(first, last):
        for i in range(starts[c], starts[c + 1]):
            if values[i] == 1:
                bit = bit_position[rows[i]]
                words[c, bit >> _WORD_SHIFT] |= _ONE << np.uint64(bit & _BIT_MASK)
            elif values[i] != 0:
                return False
    return True


@njit(cache=True, nogil=True)
def pack_sparse_rows(values, columns, starts, bit_position, first, last, words):
    """The same of a CSR matrix whose columns are sorted within each row.

    All rows go through a block of columns together, each from where it stopped at the last
    block: the words of a block stay in the cache.
    """
    at = np.empty(starts.shape[0] - 1, np.int64)
    for r in range(at.shape[0]):
        at[r] = starts[r] + np.searchsorted(columns[starts[r] : starts[r + 1]], first)
    for start in range(first, last, PACKED_COLUMNS):
        stop = min(last, start + PACKED_COLUMNS)
        for r in range(at.shape[0]):
            bit = bit_position[r]
            word, mask = bit >> _WORD_SHIFT, _ONE << np.uint64(bit & _BIT_MASK)
            i = at[r]
            while i < starts[r + 1] and columns[i] < stop:
                if values[i] == 1:
                    words[columns[i], word] |= mask
                elif values[i] != 0:
                    return False
                i += 1
            at[r] = i
    return True


@njit(cache=True, nogil=True)
def hash_patterns(words, out):
    """out[i] = a hash of row i of the words."""
    for i in range(words.shape[0]):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total = _mix(total ^ words[i, w]) + _MULTIPLIER
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
            slot = (slot + _ONE) & last_slot
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
def sum_words(words, sums):
    """Carry on a checksum: the sum of the words, and the sum of the sums so far."""
    total, order = sums[0], sums[1]
    for word in words:
        total += word
        order += total
    sums[0], sums[1] = total, order


@njit(cache=True, nogil=True)
def parse_lines(text, n_samples, words, names, ends):
    """Read lines of a name and `n_samples` zeros and ones, all set apart by tabs.

    Bits go to `words`, a row for each line; names to `names`, one after the other, that of line i
    up to ends[i]. Returns the number of lines, at most as many as there are rows, and where in
    the text they end: before the first that is not as it should be.
    """
    n_lines = at = name_end = 0
    n_groups = (n_samples - 1) // 4
    while n_lines < words.shape[0] and at < text.shape[0]:
        if text[at] == _NEWLINE:  # an empty line
            at += 1
            continue
        first = at
        while first < text.shape[0] and text[first] != _TAB and text[first] != _NEWLINE:
            first += 1
        last = first + 2 * n_samples  # the end of the line, if all is well
        if last >= text.shape[0] or text[first] != _TAB:
            break
        wrong = np.uint64(0)
        # four cells and their tabs are a word
        groups = text[first + 1 : first + 1 + 8 * n_groups].view(np.uint64)
        for g in range(n_groups):
            wrong |= (groups[g] ^ _FOUR_ZEROS) & ~_FOUR_ONES
            bits = ((groups[g] & _FOUR_ONES) * _GATHER) >> _GATHERED
            words[n_lines, g >> 4] |= (bits & np.uint64(15)) << np.uint64(4 * (g & 15))
        for c in range(4 * n_groups, n_samples):
            before, value = text[first + 2 * c], text[first + 2 * c + 1]
            wrong |= np.uint64((before != _TAB) | (value < _ZERO) | (value > _ZERO + 1))
            words[n_lines, c >> 6] |= np.uint64(value & 1) << np.uint64(c & 63)
        if text[last] == _RETURN and last + 1 < text.shape[0]:
            last += 1
        if wrong > 0 or text[last] != _NEWLINE:
            words[n_lines] = 0
            break
        for i in range(at, first):
            names[name_end] = text[i]
            name_end += 1
        ends[n_lines] = name_end
        n_lines += 1
        at = last + 1
    return n_lines, at


@njit(cache=True, nogil=True)
def hash_names(names, ends, out):
    """out[i] = a hash of name i, which ends at ends[i]."""
    start = 0
    for i in range(ends.shape[0]):
        total = np.uint64(ends[i] - start)
        for b in range(start, ends[i]):
            total = _mix(total ^ np.uint64(names[b]))
        out[i] = total
        start = ends[i]


@njit(cache=True, nogil=True)
def fill_slots(known, slots):
    """Enter patterns 0, 1, ... with these hashes into an empty table."""
    last_slot = np.uint64(slots.shape[0] - 1)
    for number in range(known.shape[0]):
        slot = known[number] & last_slot
        while slots[slot] > 0:
            slot = (slot + _ONE) & last_slot
        slots[slot] = number + 1


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
def count_bits(words, in_play, word_bounds, n_in_play, out):
    """out[feature, bin, segment] = samples in play of the segment, by their bit.

    Each segment has words of its own; `in_play` is a single row.
    """
    for f in range(words.shape[0]):
        for s in range(word_bounds.shape[0] - 1):
            w, stop = word_bounds[s], word_bounds[s + 1]
            ones = np.uint64(0)
            while w + 2 <= stop:
                n_pairs = min((stop - w) // 2, _MAX_PAIRS)
                ones += _count_pairs(words, f, in_play, 0, w, n_pairs)
                w += 2 * n_pairs
            if w < stop:
                ones += _popcount(words[f, w] & in_play[0, w])
            out[f, 1, s] = ones
            out[f, 0, s] = n_in_play[s] - np.int64(ones)


@njit(cache=True, nogil=True)
def count_masked_bits(words, masks, n_in_play, out):
    """out[feature, bin, segment] = samples in play of the segment, by their bit.

    Row s of `masks` has the bits of the samples in play of segment s. Their number and that of
    the words are even. (What this and `count_bits` share, called as a function, would cost
    more than the counting.)
    """
    for f in range(words.shape[0]):
        for s in range(0, masks.shape[0], 2):
            both = np.uint64(0)
            for w in range(0, words.shape[1], 2 * _MAX_PAIRS):
                n_pairs = min((words.shape[1] - w) // 2, _MAX_PAIRS)
                both += _count_pairs_twice(words, f, masks, s, w, n_pairs)
            for k in range(2):
                ones = np.int64((both >> np.uint64(32 * k)) & _LOW_HALF)
                out[f, 1, s + k] = ones
                out[f, 0, s + k] = n_in_play[s + k] - ones


@njit(cache=True, nogil=True)
def weigh_leaves(tables, p, n_in_play, n_least, utility, margin, is_candidate, is_small):
    """What each leaf is worth: |A| - p |B| and |A| - |B|, for A its negatives and B its positives.

    It is a candidate if it has negatives and leaves samples; a small one if it has, or leaves,
    fewer than `n_least`.
    """
    for i in range(tables.shape[0]):
        negatives = positives = 0
        for k in range(tables.shape[2]):
            negatives += tables[i, 0, k]
            positives += tables[i, 1, k]
        size = negatives + positives
        utility[i] = negatives - p * positives
        margin[i] = negatives - positives
        is_candidate[i] = (negatives > 0) & (size < n_in_play)
        is_small[i] = is_candidate[i] & (min(size, n_in_play - size) < n_least)


@njit(cache=True, nogil=True)
def compute_pearson(tables, yates, statistics, dof):
    """Pearson's statistic of each 2 x K table, and its degrees of freedom.

    With `yates`, Yates' correction where there is one degree of freedom.
    """
    for i in range(tables.shape[0]):
        table = tables[i]
        negatives = positives = n_columns = 0
        for k in range(table.shape[1]):
            negatives += table[0, k]
            positives += table[1, k]
            n_columns += table[0, k] + table[1, k] > 0
        dof[i] = n_columns - 1 if negatives > 0 and positives > 0 else 0
        statistics[i] = 0.0
        if dof[i] == 0:
            continue
        shift = 0.5 if yates and dof[i] == 1 else 0.0
        rate = positives / (negatives + positives)
        total = 0.0
        for k in range(table.shape[1]):
            size = table[0, k] + table[1, k]
            if size > 0:
                # both rows are off by the same amount, in opposite directions
                off = max(abs(table[1, k] - size * rate) - shift, 0.0)
                total += off * off / size
        statistics[i] = total / (rate * (1.0 - rate))


@njit(cache=True, nogil=True)
def compute_likelihood_ratio(tables, statistics, dof):
    """G = 2 sum n log(n / expected) of each 2 x K table, and its degrees of freedom."""
    for i in range(tables.shape[0]):
        table = tables[i]
        rows = (table[0].sum(), table[1].sum())
        n_columns = 0
        total = 0.0
        for k in range(table.shape[1]):
            size = table[0, k] + table[1, k]
            n_columns += size > 0
            for label in range(2):
                n = table[label, k]
                if n > 0:
                    # as a ratio, not as a difference of large logarithms: exactly 0 where n is
                    # as expected
                    expected = float(size) * rows[label]
                    total += n * np.log(float(n) * (rows[0] + rows[1]) / expected)
        dof[i] = n_columns - 1 if rows[0] > 0 and rows[1] > 0 else 0
        # rounding may leave a hair below zero
        statistics[i] = max(2.0 * total, 0.0)


@njit(cache=True, nogil=True)
def clear_bits(words, bits):
    """Turn the listed bits off."""
    for bit in bits:
        words[bit >> _WORD_SHIFT] &= ~(_ONE << np.uint64(bit & _BIT_MASK))
