"""Zeros and ones to bits, from arrays and from text."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import numpy as np

from icscm._constants import PACKED_COLUMNS, ROW_BLOCK
from icscm.compiling import compiled
from icscm.engine._kernels.hashing import BIT_MASK, ONE, WORD_SHIFT

# Four cells of text and their tabs, read as one word: 0\t0\t0\t0\t, and where the ones differ.
_FOUR_ZEROS = np.uint64(0x0930093009300930)
_FOUR_ONES = np.uint64(0x0001000100010001)
# Multiplied by the first, bits 0, 16, 32 and 48 stand side by side from the second on.
_GATHER = np.uint64(2**48 + 2**33 + 2**18 + 2**3)
_GATHERED = np.uint64(48)
_TAB, _NEWLINE, _RETURN, _ZERO = 9, 10, 13, 48


@compiled
def pack_columns(X, bit_position, columns, edge, known, highest, words, surprised):
    """Set the bit of each sample whose value is above the column's one edge.

    Where `known[k]` is set, the column was taken to hold just its edge and `highest[k]`;
    `surprised[k]` is set when it does not. Missing values are a surprise unless the edge is minus
    infinity, which has them below it.
    """
    for start in range(0, X.shape[0], ROW_BLOCK):
        stop = min(X.shape[0], start + ROW_BLOCK)
        for k in range(columns.shape[0]):
            column = columns[k]
            out = words[k]
            may_miss = edge[k] == -np.inf
            n_surprises = 0
            for i in range(start, stop):
                value = X[i, column]
                is_gap = may_miss & (value != value)
                n_surprises += (value != edge[k]) & (value != highest[k]) & (not is_gap)
                bit = bit_position[i]
                is_above = np.uint64(value > edge[k])
                out[bit >> WORD_SHIFT] |= is_above << np.uint64(bit & BIT_MASK)
            if known[k] and n_surprises > 0:
                surprised[k] = True


@compiled
def _add_row(values, bit, lane, others):
    """Set `bit` in the bytes of `lane` where the value is 1, and `others` where it is not 0."""
    zero = np.uint8(0)
    for c in range(values.shape[0]):
        value = values[c]
        # choices, not shifts: these compile to lanes
        lane[c] |= bit if value == 1 else zero
        others[c] |= bit if (value != 0) & (value != 1) else zero


@compiled
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


@compiled
def pack_sparse_columns(values, rows, starts, bit_position, first, last, words):
    """Set the bits of columns first .. last of a CSC matrix; False if any value is not 0 or 1."""
    for c in range(first, last):
        for i in range(starts[c], starts[c + 1]):
            if values[i] == 1:
                bit = bit_position[rows[i]]
                words[c, bit >> WORD_SHIFT] |= ONE << np.uint64(bit & BIT_MASK)
            elif values[i] != 0:
                return False
    return True


@compiled
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
            word, mask = bit >> WORD_SHIFT, ONE << np.uint64(bit & BIT_MASK)
            i = at[r]
            while i < starts[r + 1] and columns[i] < stop:
                if values[i] == 1:
                    words[columns[i], word] |= mask
                elif values[i] != 0:
                    return False
                i += 1
            at[r] = i
    return True


@compiled
def _pass_returns(text, at):
    """The first place from there on without a carriage return, of which bad copies have two."""
    while text[at] == _RETURN and at + 1 < text.shape[0]:
        at += 1
    return at


@compiled
def parse_lines(text, n_samples, words, names, ends):
    """Read lines of a name and `n_samples` zeros and ones, all set apart by tabs.

    Bits go to `words`, a row for each line; names to `names`, one after the other, that of line i
    up to ends[i]. Returns the number of lines, at most as many as there are rows, and where in
    the text they end: before the first that is not as it should be.
    """
    n_lines = at = name_end = 0
    n_groups = (n_samples - 1) // 4
    while n_lines < words.shape[0] and at < text.shape[0]:
        first = _pass_returns(text, at)
        if text[first] == _NEWLINE:  # an empty line
            at = first + 1
            continue
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
        last = _pass_returns(text, last)
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
