"""Values to bin numbers, zeros and ones to bits, from arrays and from text.

Bits are stored 64 to a word: bit b is bit b % 64 of word b // 64, written `b & BIT_MASK` and
`b >> WORD_SHIFT`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from typing import NamedTuple

import numpy as np

from icscm._constants import CODED_COLUMNS, CODED_ROWS, PACKED_COLUMNS, ROW_BLOCK
from icscm.compiling import compiled
from icscm.engine._kernels.hashing import BIT_MASK, ONE, WORD_SHIFT

# Rows and columns copied at a time: as many values as a cache line of float64 holds.
_TILE = 8
_BITS_PER_BYTE = 8
_BYTES_PER_WORD = 8
_BITS_PER_WORD = 64
# Four cells of text and the tab after each, read as one word: 0\t0\t0\t0\t; and the bits in which a
# 1 differs from a 0.
_FOUR_ZEROS = np.uint64(0x0930093009300930)
_FOUR_ONES = np.uint64(0x0001000100010001)
# Multiplied by the first, a word has its bits 0, 16, 32 and 48 side by side, from bit 48 on.
_GATHER = np.uint64(2**48 + 2**33 + 2**18 + 2**3)
_GATHERED = np.uint64(48)
_TAB = 9
_NEWLINE = 10
_RETURN = 13
_ZERO = 48


@compiled
def _count_present(ordered):
    """Count the values that are not NaN; NaN comes last."""
    n = ordered.shape[0]
    while n > 0 and ordered[n - 1] != ordered[n - 1]:
        n -= 1
    return n


@compiled
def choose_edges(ordered, max_edges, edges, n_edges, is_complete, highest):
    """Choose edges as `binning.choose_edges`, for each row of `ordered`, missing values last.

    Row k's edges are the first `n_edges[k]` of `edges[k]`, which has room for one more than
    `max_edges`; `highest[k]` is its greatest value, unless all are missing. Edge p of more values
    than edges tell apart is the quantile at p / (max_edges + 1):

        values[ceil(p n / (max_edges + 1)) - 1]    of n values, counted from 0
    """
    for k in range(ordered.shape[0]):
        values = ordered[k]
        edges_of_row = edges[k]
        n_present = _count_present(values)
        if n_present > 0:
            highest[k] = values[n_present - 1]

        # every distinct value below the highest, if these are not too many
        n = 0
        for i in range(n_present):
            if values[i] < highest[k] and (n == 0 or values[i] != edges_of_row[n - 1]):
                edges_of_row[n] = values[i]
                n += 1
                if n > max_edges:
                    break
        is_complete[k] = n <= max_edges
        if is_complete[k]:
            n_edges[k] = n
            continue

        # else quantiles, but no highest value: it cuts nothing off
        second = n_present - 1
        while values[second] == highest[k]:
            second -= 1
        n = 0
        for part in range(1, max_edges + 1):
            rank = (part * n_present + max_edges) // (max_edges + 1) - 1
            edge = min(values[rank], values[second])
            if n == 0 or edge != edges_of_row[n - 1]:
                edges_of_row[n] = edge
                n += 1
        n_edges[k] = n


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Behind its `n_edges[k]` edges, `edges[k]` is padded with the dtype's greatest value to a power
    of two and one more.

    Where `scale[k]` is not 0, the bin of a value x is guessed: it goes to a slot,

        slot(x) = (x - low[k]) * scale[k],    cut off at 0 and at the last slot

    and `guess[k][slot]` is the number of edges in earlier slots. At most `n_shared[k]` edges share
    a slot, one or two, so as many comparisons correct the guess. It is exact, since the line never
    decreases, rounded or not: an edge in an earlier slot is below x, in a later one above.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    n_shared: np.ndarray


@compiled
def _find_slots(values, low, scale, last, slots):
    """slots[i] = the slot of values[i]. A loop without the lookup, as this goes in lanes."""
    zero = low - low  # of the same precision
    for i in range(values.shape[0]):
        slots[i] = np.uint16(np.int32(min(max((values[i] - low) * scale, zero), last)))


@compiled
def _correct_once(values, slots, edges, guess, codes):
    """codes[i] = number of edges below values[i], where no two edges share a slot."""
    for i in range(values.shape[0]):
        n_before = guess[np.uint64(slots[i])]
        codes[i] = n_before + np.uint8(values[i] > edges[np.uint64(n_before)])


@compiled
def _correct_twice(values, slots, edges, guess, codes):
    """codes[i] = number of edges below values[i], where two edges may share a slot."""
    for i in range(values.shape[0]):
        n_before = guess[np.uint64(slots[i])]
        first = np.uint64(n_before)  # of the edges in the slot
        second = first + np.uint64(1)
        codes[i] = (
            n_before + np.uint8(values[i] > edges[first]) + np.uint8(values[i] > edges[second])
        )


@compiled
def _search_edges(values, edges, n_edges, codes):
    """codes[i] = number of edges below values[i], by halving, one step of all values at a time."""
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
def _has_unexpected(values, edges, n_edges, highest, codes):
    """Check whether any value is neither one of the edges nor the highest.

    Missing values are expected where the first edge, minus infinity, sets the others apart.
    """
    may_be_missing = edges[0] == -np.inf
    n_unexpected = 0
    for i in range(values.shape[0]):
        is_edge = (codes[i] < n_edges) & (values[i] == edges[codes[i]])
        is_expected_gap = may_be_missing & (values[i] != values[i])
        n_unexpected += (not is_edge) & (values[i] != highest) & (not is_expected_gap)
    return n_unexpected > 0


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
def _find_codes(values, table, k, slots, codes):
    """codes[i] = number of the edges of column k below values[i]; `slots` is room to work in."""
    edges = table.edges[k]
    guess = table.guess[k]
    if table.scale[k] == 0.0:
        _search_edges(values, edges, table.n_edges[k], codes)
        return
    last = table.low.dtype.type(guess.shape[0] - 1)
    _find_slots(values, table.low[k], table.scale[k], last, slots)
    if table.n_shared[k] == 1:
        _correct_once(values, slots, edges, guess, codes)
    else:
        _correct_twice(values, slots, edges, guess, codes)


@compiled
def code_columns(
    X, position, columns, table, is_complete, highest, start, stop, codes, is_unexpected
):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by outcome, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    The bin of x is the number of edges below x. Rows start .. stop are coded, a block of them and
    of columns at a time, which stays in the second-level cache.
    Where `is_complete[k]`, the column was taken to hold just its edges and `highest[k]`;
    `is_unexpected[k]` is set when it does not.
    """
    slots = np.empty(CODED_ROWS, np.uint16)
    block_codes = np.empty(CODED_ROWS, np.uint8)
    # columns a power of two apart would all lie in the same few lines of the cache
    block = np.empty((CODED_COLUMNS, CODED_ROWS + _TILE), X.dtype)
    is_by_row = X.strides[0] > X.strides[1]
    for first_row in range(start, stop, CODED_ROWS):
        n_rows = min(CODED_ROWS, stop - first_row)
        targets = position[first_row : first_row + n_rows]
        for first in range(0, columns.shape[0], CODED_COLUMNS):
            block_columns = columns[first : first + CODED_COLUMNS]
            n_columns = block_columns.shape[0]
            are_neighbours = True
            for c in range(1, n_columns):
                are_neighbours &= block_columns[c] == block_columns[c - 1] + 1
            is_tiled = is_by_row & are_neighbours
            if is_tiled:
                _take_tiles(X, first_row, n_rows, block_columns[0], n_columns, block)

            for c in range(n_columns):
                k = first + c
                values = block[c, :n_rows]
                if not is_tiled:
                    for i in range(n_rows):
                        values[i] = X[first_row + i, block_columns[c]]
                bins = block_codes[:n_rows]
                _find_codes(values, table, k, slots, bins)
                if is_complete[k] and _has_unexpected(
                    values, table.edges[k], table.n_edges[k], highest[k], bins
                ):
                    is_unexpected[k] = True
                codes_of_column = codes[k]
                for i in range(n_rows):
                    codes_of_column[targets[i]] = bins[i]


@compiled
def pack_columns(X, bit_position, columns, edge, is_complete, highest, words, is_unexpected):
    """Set the bit of each row whose value is above the column's one edge.

    Where `is_complete[k]`, the column was taken to hold just its edge and `highest[k]`;
    `is_unexpected[k]` is set when it does not. Missing values are expected only where the edge is
    minus infinity, which sets the others apart.
    """
    for start in range(0, X.shape[0], ROW_BLOCK):
        stop = min(X.shape[0], start + ROW_BLOCK)
        for k in range(columns.shape[0]):
            column = columns[k]
            words_of_column = words[k]
            may_be_missing = edge[k] == -np.inf
            n_unexpected = 0
            for i in range(start, stop):
                value = X[i, column]
                is_expected_gap = may_be_missing & (value != value)
                n_unexpected += (value != edge[k]) & (value != highest[k]) & (not is_expected_gap)
                bit = bit_position[i]
                is_above = np.uint64(value > edge[k])
                words_of_column[bit >> WORD_SHIFT] |= is_above << np.uint64(bit & BIT_MASK)
            if is_complete[k] and n_unexpected > 0:
                is_unexpected[k] = True


@compiled
def _add_row(values, bit, lane, not_binary):
    """Set `bit` in byte c of `lane` if value c is 1, of `not_binary` if it is not 0 either."""
    zero = np.uint8(0)
    for c in range(values.shape[0]):
        value = values[c]
        # choices, not shifts: these compile to lanes
        lane[c] |= bit if value == 1 else zero
        not_binary[c] |= bit if (value != 0) & (value != 1) else zero


@compiled
def _fill_lanes(X, row_of_bit, first_column, n_columns, lanes, not_binary):
    """Write the 64 rows of a word to eight lanes; bit b goes to bit b % 8 of lane b // 8."""
    lanes[:] = 0
    last_column = first_column + n_columns
    for lane_number in range(_BYTES_PER_WORD):
        lane = lanes[lane_number]
        for bit_in_byte in range(_BITS_PER_BYTE):
            row = row_of_bit[lane_number * _BITS_PER_BYTE + bit_in_byte]
            if row >= 0:
                bit = np.uint8(1 << bit_in_byte)
                _add_row(X[row, first_column:last_column], bit, lane, not_binary)


@compiled
def _join_bytes(lanes, column):
    """Join the bytes that a column has in the eight lanes to a word, the lowest byte first."""
    word = np.uint64(0)
    for lane_number in range(_BYTES_PER_WORD):
        byte = np.uint64(lanes[lane_number, column])
        word |= byte << np.uint64(_BITS_PER_BYTE * lane_number)
    return word


@compiled
def pack_rows(X, row_of_bit, first, last, words):
    """Pack columns first .. last of a row-major table; False if any value is not 0 or 1.

    A *lane* holds eight rows of a block of columns, a byte for each column and a bit of it for each
    row. Eight lanes are 64 rows, and the eight bytes of a column are its word:

        64 rows of X             eight lanes                 words
                 a b c                     a     b     c
        rows  0 ..  7            lane 0    byte  byte  byte      a: its bytes of lanes 0 .. 7
        rows  8 .. 15       -->  lane 1    byte  byte  byte  --> b: ...
        ...                      ...                             c: ...
        rows 56 .. 63            lane 7    byte  byte  byte

    Whole rows go through, many columns at once, which processors are good at. The rows of
    words[:, w] are row_of_bit[64 w], ..., row_of_bit[64 w + 63], -1 where a bit belongs to no row.
    """
    lanes = np.zeros((_BYTES_PER_WORD, PACKED_COLUMNS), np.uint8)
    not_binary = np.zeros(PACKED_COLUMNS, np.uint8)
    for first_of_block in range(first, last, PACKED_COLUMNS):
        n_columns = min(PACKED_COLUMNS, last - first_of_block)
        for w in range(words.shape[1]):
            rows_of_word = row_of_bit[_BITS_PER_WORD * w : _BITS_PER_WORD * (w + 1)]
            _fill_lanes(X, rows_of_word, first_of_block, n_columns, lanes, not_binary)
            if not_binary.any():
                return False
            for c in range(n_columns):
                words[first_of_block + c, w] = _join_bytes(lanes, c)
    return True


@compiled
def pack_sparse_columns(values, rows, starts, bit_position, first, last, words):
    """Pack columns first .. last of a CSC matrix; False if any value is not 0 or 1.

    The entries of column c are starts[c] .. starts[c + 1], each a value and its row.
    """
    for c in range(first, last):
        for entry in range(starts[c], starts[c + 1]):
            if values[entry] == 1:
                bit = bit_position[rows[entry]]
                word = bit >> WORD_SHIFT
                mask = ONE << np.uint64(bit & BIT_MASK)
                words[c, word] |= mask
            elif values[entry] != 0:
                return False
    return True


@compiled
def pack_sparse_rows(values, columns, starts, bit_position, first, last, words):
    """Pack columns first .. last of a CSR matrix; False if any value is not 0 or 1.

    The entries of row r are starts[r] .. starts[r + 1], each a value and its column, by ascending
    columns. All rows go through a block of columns together, each from where it stopped at the last
    block, next_entry[r]: the words of a block stay in the cache.
    """
    n_rows = starts.shape[0] - 1
    next_entry = np.empty(n_rows, np.int64)
    for r in range(n_rows):
        columns_of_row = columns[starts[r] : starts[r + 1]]
        next_entry[r] = starts[r] + np.searchsorted(columns_of_row, first)

    for first_of_block in range(first, last, PACKED_COLUMNS):
        end_of_block = min(last, first_of_block + PACKED_COLUMNS)
        for r in range(n_rows):
            bit = bit_position[r]
            word = bit >> WORD_SHIFT
            mask = ONE << np.uint64(bit & BIT_MASK)
            entry = next_entry[r]
            while entry < starts[r + 1] and columns[entry] < end_of_block:
                if values[entry] == 1:
                    words[columns[entry], word] |= mask
                elif values[entry] != 0:
                    return False
                entry += 1
            next_entry[r] = entry
    return True


@compiled
def _skip_returns(text, start):
    """Find the first byte from `start` on that is no carriage return; bad copies have two."""
    at = start
    while text[at] == _RETURN and at + 1 < text.shape[0]:
        at += 1
    return at


@compiled
def parse_lines(text, n_cells, words, names, ends):
    r"""Read lines of a name and `n_cells` zeros and ones, all set apart by tabs.

    Bits go to `words`, a row for each line; names to `names`, one after the other, that of line i
    up to ends[i]. Returns the number of lines, at most as many as there are rows, and where in
    the text they end: before the first that is not as it should be.

        name\t0\t1\t1\t0\t1\n
            ^              ^
            name_end       line_end = name_end + 2 n_cells, if all is well
    """
    n_lines = 0
    line_start = 0
    names_end = 0
    n_groups = (n_cells - 1) // 4
    while n_lines < words.shape[0] and line_start < text.shape[0]:
        name_end = _skip_returns(text, line_start)
        if text[name_end] == _NEWLINE:  # an empty line
            line_start = name_end + 1
            continue
        while name_end < text.shape[0] and text[name_end] != _TAB and text[name_end] != _NEWLINE:
            name_end += 1
        line_end = name_end + 2 * n_cells
        if line_end >= text.shape[0] or text[name_end] != _TAB:
            break

        wrong = np.uint64(0)  # any bit is set if anything is not as it should be
        # four cells and the tabs between them are a word
        groups = text[name_end + 1 : name_end + 1 + 8 * n_groups].view(np.uint64)
        for g in range(n_groups):
            wrong |= (groups[g] ^ _FOUR_ZEROS) & ~_FOUR_ONES
            bits = ((groups[g] & _FOUR_ONES) * _GATHER) >> _GATHERED
            words[n_lines, g >> 4] |= (bits & np.uint64(15)) << np.uint64(4 * (g & 15))
        # the cells that are left, one by one
        for c in range(4 * n_groups, n_cells):
            separator = text[name_end + 2 * c]
            cell = text[name_end + 2 * c + 1]
            wrong |= np.uint64((separator != _TAB) | (cell < _ZERO) | (cell > _ZERO + 1))
            words[n_lines, c >> 6] |= np.uint64(cell & 1) << np.uint64(c & 63)
        line_end = _skip_returns(text, line_end)
        if wrong > 0 or text[line_end] != _NEWLINE:
            words[n_lines] = 0
            break

        for i in range(line_start, name_end):
            names[names_end] = text[i]
            names_end += 1
        ends[n_lines] = names_end
        n_lines += 1
        line_start = line_end + 1
    return n_lines, line_start
