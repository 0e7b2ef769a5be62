"""Values to bin numbers, zeros and ones to bits, from arrays and from text."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from typing import NamedTuple

import numpy as np

from icscm._constants import CODED_COLUMNS, CODED_ROWS, PACKED_COLUMNS, ROW_BLOCK
from icscm.compiling import compiled
from icscm.engine._kernels.hashing import BIT_MASK, ONE, WORD_SHIFT

# Rows and columns taken at a time: as many values as a cache line of float64 holds.
_TILE = 8
# Four cells of text and their tabs, read as one word: 0\t0\t0\t0\t, and where the ones differ.
_FOUR_ZEROS = np.uint64(0x0930093009300930)
_FOUR_ONES = np.uint64(0x0001000100010001)
# Multiplied by the first, bits 0, 16, 32 and 48 stand side by side from the second on.
_GATHER = np.uint64(2**48 + 2**33 + 2**18 + 2**3)
_GATHERED = np.uint64(48)
_TAB, _NEWLINE, _RETURN, _ZERO = 9, 10, 13, 48


@compiled
def _count_present(ordered):
    n = ordered.shape[0]
    while n > 0 and ordered[n - 1] != ordered[n - 1]:
        n -= 1
    return n


@compiled
def choose_edges(ordered, most, edges, n_edges, known, highest):
    """`binning.choose_edges` of each row of `ordered`, whose missing values come last.

    Row k's edges are the first `n_edges[k]` of `edges[k]`, which has a place to spare;
    `highest[k]` is its greatest value, unless all are missing.
    """
    for k in range(ordered.shape[0]):
        values, own = ordered[k], edges[k]
        n, n_found = _count_present(values), 0
        if n > 0:
            highest[k] = values[n - 1]
        for i in range(n):
            if values[i] < highest[k] and (n_found == 0 or values[i] != own[n_found - 1]):
                own[n_found] = values[i]
                n_found += 1
                if n_found > most:
                    break
        known[k] = n_found <= most
        if n_found > most:
            below = n - 1
            while values[below] == highest[k]:
                below -= 1
            n_found = 0
            for part in range(1, most + 1):
                rank = (part * n + most) // (most + 1) - 1  # the greatest value cuts nothing off
                pick = min(values[rank], values[below])
                if n_found == 0 or pick != own[n_found - 1]:
                    own[n_found] = pick
                    n_found += 1
        n_edges[k] = n_found


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Behind its `n_edges[k]` edges, `edges[k]` is padded with the dtype's greatest value to a power
    of two and one more. Where `scale[k]` is not 0, the line (x - low[k]) * scale[k] sends values
    to the places of `guess[k]`, which holds the number of edges that go to earlier places; at
    most `n_shared[k]` edges share a place, one or two, so as many comparisons correct the guess.
    The line never decreases, rounded or not: an edge at an earlier place is below x, at a later
    one above.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    n_shared: np.ndarray


@compiled
def _find_places(values, low, scale, last, places):
    """places[i] = where the line sends values[i]. Apart from the lookup, as this goes in lanes."""
    zero = low - low  # of the same precision
    for i in range(values.shape[0]):
        places[i] = np.uint16(np.int32(min(max((values[i] - low) * scale, zero), last)))


@compiled
def _correct_once(values, places, edges, guess, codes):
    """codes[i] = number of edges below values[i], where no two edges share a place."""
    for i in range(values.shape[0]):
        first = guess[np.uint64(places[i])]
        codes[i] = first + np.uint8(values[i] > edges[np.uint64(first)])


@compiled
def _correct_twice(values, places, edges, guess, codes):
    """The same where two edges may share a place."""
    for i in range(values.shape[0]):
        first = guess[np.uint64(places[i])]
        at = np.uint64(first)
        codes[i] = (
            first + np.uint8(values[i] > edges[at]) + np.uint8(values[i] > edges[at + np.uint64(1)])
        )


@compiled
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


@compiled
def _has_surprise(values, edges, n_edges, highest, codes):
    """Whether any value is neither one of the edges nor the highest.

    Missing ones are neither, and no surprise where the first edge has them below it.
    """
    may_miss = edges[0] == -np.inf
    n_surprises = 0
    for i in range(values.shape[0]):
        is_edge = (codes[i] < n_edges) & (values[i] == edges[codes[i]])
        is_gap = may_miss & (values[i] != values[i])
        n_surprises += (not is_edge) & (values[i] != highest) & (not is_gap)
    return n_surprises > 0


@compiled
def _take_tiles(X, start, size, first, n_columns, block):
    """block[k, i] = X[start + i, first + k], of a row-major X.

    A cache line of eight rows at a time: the rows stream in, and whole lines are written.
    """
    i = 0
    while i + _TILE <= size:
        k = 0
        while k + _TILE <= n_columns:
            for r in range(_TILE):
                for c in range(_TILE):
                    block[k + c, i + r] = X[start + i + r, first + k + c]
            k += _TILE
        for r in range(_TILE):
            for c in range(k, n_columns):
                block[c, i + r] = X[start + i + r, first + c]
        i += _TILE
    for r in range(i, size):
        for c in range(n_columns):
            block[c, r] = X[start + r, first + c]


@compiled
def _find_codes(values, table, k, places, codes):
    """codes[i] = number of the edges of column k below values[i]."""
    edges, guess = table.edges[k], table.guess[k]
    if table.scale[k] == 0.0:
        _search_edges(values, edges, table.n_edges[k], codes)
        return
    last = table.low.dtype.type(guess.shape[0] - 1)
    _find_places(values, table.low[k], table.scale[k], last, places)
    if table.n_shared[k] == 1:
        _correct_once(values, places, edges, guess, codes)
    else:
        _correct_twice(values, places, edges, guess, codes)


@compiled
def code_columns(X, position, columns, table, known, highest, start, stop, codes, surprised):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by label, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    The bin of x is the number of edges below x. Rows start .. stop are coded, a block of them and
    of columns at a time, which stays in the second-level cache.
    Where `known[k]` is set, the column was taken to hold just its edges and `highest[k]`;
    `surprised[k]` is set when it does not.
    """
    places = np.empty(CODED_ROWS, np.uint16)
    block_codes = np.empty(CODED_ROWS, np.uint8)
    # columns a power of two apart would all lie in the same few lines of the cache
    block = np.empty((CODED_COLUMNS, CODED_ROWS + _TILE), X.dtype)
    is_by_row = X.strides[0] > X.strides[1]
    for begin in range(start, stop, CODED_ROWS):
        size = min(CODED_ROWS, stop - begin)
        targets = position[begin : begin + size]
        for first in range(0, columns.shape[0], CODED_COLUMNS):
            some = columns[first : first + CODED_COLUMNS]
            is_tiled = is_by_row
            for c in range(1, some.shape[0]):
                is_tiled &= some[c] == some[c - 1] + 1
            if is_tiled:
                _take_tiles(X, begin, size, some[0], some.shape[0], block)
            for c in range(some.shape[0]):
                k, values, own = first + c, block[c, :size], block_codes[:size]
                if not is_tiled:
                    for i in range(size):
                        values[i] = X[begin + i, some[c]]
                _find_codes(values, table, k, places, own)
                if known[k] and _has_surprise(
                    values, table.edges[k], table.n_edges[k], highest[k], own
                ):
                    surprised[k] = True
                out = codes[k]
                for i in range(size):
                    out[targets[i]] = own[i]


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
