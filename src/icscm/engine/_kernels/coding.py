"""The inner loops from values to bin numbers, and from zeros and ones to bits.

An *edge* is a value that a column is cut at; the bin number, or *code*, of a value is the number of
edges below it. Where values may be missing (NaN), the first edge is minus infinity: all values but
the missing ones are above it, so that these have bin 0 to themselves.

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
# Characters of a text, as bytes.
_TAB = 9
_NEWLINE = 10
_RETURN = 13
_ZERO = 48
# Four cells of text, each with the tab after it, are read as one word, the first in its lowest
# bits. All of them 0 they are this word; a 1 differs from a 0 in the lowest bit of its byte.
_CELLS_PER_WORD = 4
_FOUR_ZEROS = np.uint64(0x0930093009300930)
_FOUR_ONES = np.uint64(0x0001000100010001)
# Multiplied by the first, a word has its bits 0, 16, 32 and 48 side by side, from bit 48 on.
_GATHER = np.uint64(2**48 + 2**33 + 2**18 + 2**3)
_GATHERED = np.uint64(48)
_LOWEST_FOUR_BITS = np.uint64(15)


# --- choosing edges ------------------------------------------------------------------------------


@compiled
def choose_edges(ordered, max_edges, edges, n_edges, is_complete, highest):
    """Choose edges for some columns, as `binning.choose_edges` says.

    Row k of `ordered` holds the values of column k, ascending, NaN last. What is chosen goes to
    place k of the last four arguments, where `edges` has room for one more than `max_edges`. With
    max_edges = 2, for example:

        ordered[k]                edges[k]   n_edges[k]   is_complete[k]   highest[k]
        1  1  2  5  5  NaN        1  2  .    2            True             5
        1  2  3  4  5  6          2  4  .    2            False            6

    All distinct values but the highest are edges, as nothing is above that one. If these are too
    many, the column is not complete, and cut at quantiles instead.
    """
    for k in range(ordered.shape[0]):
        n_present = _count_present(ordered[k])
        if n_present == 0:
            n_edges[k] = 0
            is_complete[k] = True
            continue

        values = ordered[k, :n_present]
        highest[k] = values[n_present - 1]

        n_distinct = _write_distinct(values, max_edges + 1, edges[k])
        is_complete[k] = n_distinct <= max_edges
        if is_complete[k]:
            n_edges[k] = n_distinct
        else:
            n_edges[k] = _write_quantiles(values, max_edges, edges[k])


@compiled
def _count_present(ordered):
    """Count the values that are not NaN, where NaN comes last."""
    n_present = ordered.shape[0]
    while n_present > 0 and np.isnan(ordered[n_present - 1]):
        n_present -= 1
    return n_present


@compiled
def _write_distinct(ordered, max_written, out):
    """Write the distinct values but the highest to `out`, ascending; return how many were written.

    It stops at `max_written` of them.
    """
    n_written = 0
    for i in range(ordered.shape[0] - 1):
        is_last_of_equals = ordered[i] != ordered[i + 1]
        if is_last_of_equals:
            out[n_written] = ordered[i]
            n_written += 1
            if n_written == max_written:
                break
    return n_written


@compiled
def _write_quantiles(ordered, n_quantiles, out):
    """Write the distinct quantiles of n sorted values to `out`; return how many were written.

    Quantile p of q is the smallest value that at least a share p / (q + 1) of the values does not
    exceed (definition 1 of Hyndman and Fan, 1996). Counted from 1, it has the

        rank = ceil(p n / (q + 1))

    The highest value, which cuts nothing off, is replaced by the next lower one. There must be one.
    """
    n_values = ordered.shape[0]
    n_parts = n_quantiles + 1

    second_highest = n_values - 1
    while ordered[second_highest] == ordered[n_values - 1]:
        second_highest -= 1

    n_written = 0
    for p in range(1, n_parts):
        rank = -(-p * n_values // n_parts)  # rounded up
        quantile = min(ordered[rank - 1], ordered[second_highest])
        if n_written == 0 or quantile != out[n_written - 1]:
            out[n_written] = quantile
            n_written += 1
    return n_written


# --- values to bin numbers -----------------------------------------------------------------------


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Where a column has enough edges, the bin of a value x is guessed. A line sends x to a *slot*,

        slot(x) = (x - low) * scale,    cut off to a whole number from 0 to the last slot

    and the guess is the number of edges in earlier slots. Of the edges 2, 5, 5.5 and 11, with four
    slots, low = 2 and scale = 3 / (11 - 2):

        slot        0       1           2       3
        edges       2       5   5.5             11
        guess       0       1           3       3

    For 5.2, in slot 1, the guess is 1. Comparing it with the two edges in the slot corrects that:
    it is above 5, and not above 5.5, so its bin is 1 + 1 = 2. The result is exact, rounded or not,
    as the line never decreases: an edge in an earlier slot is below x, one in a later slot above.

    Attributes
    ----------
    edges : array, (column, edge)
        The edges, and behind them the dtype's greatest value, up to a power of two and one more.
    n_edges : array of int, (column,)
        How many of these are edges.
    guess : array of uint8, (column, slot)
        The number of edges in earlier slots.
    low, scale : arrays of float, (column,)
        The line; the scale is 0 where bins are not guessed but searched for.
    n_shared : array of int, (column,)
        How many edges may share a slot, one or two: so many comparisons correct a guess.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    n_shared: np.ndarray


@compiled
def code_columns(
    X, position, columns, table, is_complete, highest, start, stop, codes, is_unexpected
):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by outcome, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    Rows start .. stop are coded, a block of them and of columns at a time, which stays in the
    second-level cache. Column k of `codes`, and of all that has a row or a number for each column,
    is column columns[k] of X.

    Where `is_complete[k]`, the column was taken to hold just its edges and `highest[k]`;
    `is_unexpected[k]` is set when it does not.
    """
    # room to work in: a block of values (column, row), and the slots and codes of one column of it
    # columns a power of two apart would all lie in the same few lines of the cache
    block = np.empty((CODED_COLUMNS, CODED_ROWS + _TILE), X.dtype)
    slots = np.empty(CODED_ROWS, np.uint16)
    codes_in_block = np.empty(CODED_ROWS, np.uint8)

    is_by_row = X.strides[0] > X.strides[1]
    for first_row in range(start, stop, CODED_ROWS):
        n_rows = min(CODED_ROWS, stop - first_row)
        targets = position[first_row : first_row + n_rows]

        for first in range(0, columns.shape[0], CODED_COLUMNS):
            block_columns = columns[first : first + CODED_COLUMNS]
            n_columns = block_columns.shape[0]

            # values that lie side by side in X are copied together, others a column at a time
            is_tiled = is_by_row & _are_neighbours(block_columns)
            if is_tiled:
                _take_tiles(X, first_row, n_rows, block_columns[0], n_columns, block)

            for c in range(n_columns):
                values = block[c, :n_rows]
                if not is_tiled:
                    for i in range(n_rows):
                        values[i] = X[first_row + i, block_columns[c]]

                k = first + c
                bins = codes_in_block[:n_rows]
                _find_codes(values, table, k, slots, bins)

                if is_complete[k] and _has_unexpected(
                    values, table.edges[k], table.n_edges[k], highest[k], bins
                ):
                    is_unexpected[k] = True

                # each row to its sorted position
                codes_of_column = codes[k]
                for i in range(n_rows):
                    codes_of_column[targets[i]] = bins[i]


@compiled
def _are_neighbours(columns):
    """Check whether each column follows the one before."""
    are_neighbours = True
    for c in range(1, columns.shape[0]):
        are_neighbours &= columns[c] == columns[c - 1] + 1
    return are_neighbours


@compiled
def _take_tiles(X, first_row, n_rows, first_column, n_columns, block):
    """block[c, r] = X[first_row + r, first_column + c], of a row-major X.

    Copied in tiles of eight by eight, since eight values are a cache line: of a row where they are
    read, of a column where they are written. Of 18 rows and 19 columns, for example:

                       columns 0 .. 7    columns 8 .. 15    columns 16 .. 18
        rows  0 ..  7  a tile            a tile             left over
        rows  8 .. 15  a tile            a tile             left over
        rows 16 .. 17  left over         left over          left over
    """
    n_tiled_rows = n_rows - n_rows % _TILE
    n_tiled_columns = n_columns - n_columns % _TILE
    for tile_row in range(0, n_tiled_rows, _TILE):
        for tile_column in range(0, n_tiled_columns, _TILE):
            for r in range(tile_row, tile_row + _TILE):
                for c in range(tile_column, tile_column + _TILE):
                    block[c, r] = X[first_row + r, first_column + c]
        for r in range(tile_row, tile_row + _TILE):
            for c in range(n_tiled_columns, n_columns):
                block[c, r] = X[first_row + r, first_column + c]

    for r in range(n_tiled_rows, n_rows):
        for c in range(n_columns):
            block[c, r] = X[first_row + r, first_column + c]


@compiled
def _find_codes(values, table, k, slots, codes):
    """codes[i] = number of the edges of column k below values[i]; `slots` is room to work in."""
    edges = table.edges[k]
    guess = table.guess[k]
    is_guessed = table.scale[k] != 0.0
    if not is_guessed:
        _search_edges(values, edges, table.n_edges[k], codes)
        return

    last_slot = table.low.dtype.type(guess.shape[0] - 1)
    _find_slots(values, table.low[k], table.scale[k], last_slot, slots)
    if table.n_shared[k] == 1:
        _correct_once(values, slots, edges, guess, codes)
    else:
        _correct_twice(values, slots, edges, guess, codes)


@compiled
def _find_slots(values, low, scale, last_slot, slots):
    """slots[i] = the slot of values[i], see `SearchTable`.

    In a loop of its own, since without looking anything up it compiles to vector instructions.
    """
    zero = low - low  # of the same precision
    for i in range(values.shape[0]):
        slots[i] = np.uint16(np.int32(min(max((values[i] - low) * scale, zero), last_slot)))


@compiled
def _correct_once(values, slots, edges, guess, codes):
    """codes[i] = number of edges below values[i], where no two edges share a slot."""
    for i in range(values.shape[0]):
        n_before = guess[np.uint64(slots[i])]
        in_slot = np.uint64(n_before)
        codes[i] = n_before + np.uint8(values[i] > edges[in_slot])


@compiled
def _correct_twice(values, slots, edges, guess, codes):
    """codes[i] = number of edges below values[i], where two edges may share a slot."""
    for i in range(values.shape[0]):
        n_before = guess[np.uint64(slots[i])]
        first_in_slot = np.uint64(n_before)
        second_in_slot = first_in_slot + np.uint64(1)
        is_above_first = np.uint8(values[i] > edges[first_in_slot])
        is_above_second = np.uint8(values[i] > edges[second_in_slot])
        codes[i] = n_before + is_above_first + is_above_second


@compiled
def _search_edges(values, edges, n_edges, codes):
    """codes[i] = number of edges below values[i], by halving, one step of all values at a time.

    With 5 edges the steps are 4, 2 and 1. A value goes a step on if it is above the last edge that
    it would pass; those behind the fifth are padding, which no value is above.
    """
    codes[: values.shape[0]] = 0
    step = 1
    while 2 * step <= n_edges:
        step *= 2
    while step > 0:
        for i in range(values.shape[0]):
            # in unsigned bytes: any wider arithmetic here compiles to a branch
            last_passed = edges[np.uint64(codes[i]) + np.uint64(step - 1)]
            codes[i] += np.uint8(step) * np.uint8(values[i] > last_passed)
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


# --- zeros and ones to bits ----------------------------------------------------------------------


@compiled
def pack_columns(X, bit_position, columns, edge, is_complete, highest, words, is_unexpected):
    """Set the bit of each row whose value is above the column's one edge.

    The bit of row i is bit_position[i], in the words of each column. With edge[k] = 0.5:

        X[:, columns[k]]    0.2  0.9  0.5  0.7
        bit_position        2    0    3    1
        words[k]            bits 0 and 1 are set

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
                # without a branch, which would be guessed wrongly half the time
                is_above = np.uint64(value > edge[k])
                bit = bit_position[i]
                words_of_column[bit >> WORD_SHIFT] |= is_above << np.uint64(bit & BIT_MASK)
            if is_complete[k] and n_unexpected > 0:
                is_unexpected[k] = True


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
def _add_row(values, bit, lane, not_binary):
    """Set `bit` in byte c of `lane` if value c is 1, of `not_binary` if it is not 0 either."""
    zero = np.uint8(0)
    for c in range(values.shape[0]):
        value = values[c]
        # choices, not shifts: these compile to vector instructions
        lane[c] |= bit if value == 1 else zero
        not_binary[c] |= bit if (value != 0) & (value != 1) else zero


@compiled
def _join_bytes(lanes, column):
    """Join the bytes that a column has in the eight lanes to a word, the lowest byte first."""
    word = np.uint64(0)
    for lane_number in range(_BYTES_PER_WORD):
        byte = np.uint64(lanes[lane_number, column])
        word |= byte << np.uint64(_BITS_PER_BYTE * lane_number)
    return word


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
    columns. All rows go through a block of columns together, so that the words of a block stay in
    the cache; `next_entry[r]` is where row r goes on at the next block:

        columns of row 0    3  40  1999 | 2500        | ends the first block, of 2048 columns
        columns of row 1    7 | 2900  3000            next: the entries of 2500 and of 2900
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


# --- text to bits --------------------------------------------------------------------------------


@compiled
def parse_lines(text, n_cells, words, names, ends):
    r"""Read lines of a name and `n_cells` zeros and ones, all set apart by tabs.

        name\t0\t1\t1\t0\t1\n
            ^              ^
            name_end       cells_end = name_end + 2 n_cells, if all is well

    Bits go to `words`, a row for each line; names to `names`, one after the other, that of line i
    up to ends[i]. Returns the number of lines, at most as many as there are rows, and where in
    the text they end: before the first that is not as it should be, or not all there. Empty lines
    are skipped.
    """
    n_lines = 0
    line_start = 0
    names_end = 0
    while n_lines < words.shape[0] and line_start < text.shape[0]:
        name_end = _skip_returns(text, line_start)
        is_empty = text[name_end] == _NEWLINE
        if is_empty:
            line_start = name_end + 1
            continue

        while name_end < text.shape[0] and text[name_end] != _TAB and text[name_end] != _NEWLINE:
            name_end += 1
        cells_end = name_end + 2 * n_cells
        has_all_cells = cells_end < text.shape[0] and text[name_end] == _TAB
        if not has_all_cells:
            break

        are_right = _read_cells(text, name_end, n_cells, words[n_lines])
        line_end = _skip_returns(text, cells_end)
        if not are_right or text[line_end] != _NEWLINE:
            words[n_lines] = 0
            break

        for i in range(line_start, name_end):
            names[names_end] = text[i]
            names_end += 1
        ends[n_lines] = names_end
        n_lines += 1
        line_start = line_end + 1
    return n_lines, line_start


@compiled
def _read_cells(text, name_end, n_cells, bits):
    r"""Set the bits of a line's cells, each a tab and a 0 or 1; False if any is something else.

    Cells are read four at a time, with the tabs after them, as one word:

        0\t1\t1\t0\t    XOR 0\t0\t0\t0\t    leaves the lowest bits of the second and third cell

    The last one to four, of which one has no tab after it, are read by themselves. What is wrong
    anywhere is collected in `wrong`: a test for each line is faster than one for each cell.
    """
    wrong = np.uint64(0)
    n_groups = (n_cells - 1) // _CELLS_PER_WORD
    cells_start = name_end + 1
    groups = text[cells_start : cells_start + _BYTES_PER_WORD * n_groups].view(np.uint64)
    for g in range(n_groups):
        difference = groups[g] ^ _FOUR_ZEROS
        wrong |= difference & ~_FOUR_ONES
        four_bits = (((difference & _FOUR_ONES) * _GATHER) >> _GATHERED) & _LOWEST_FOUR_BITS
        # a word of bits has room for 16 groups
        bits[g >> 4] |= four_bits << np.uint64(4 * (g & 15))

    for c in range(_CELLS_PER_WORD * n_groups, n_cells):
        separator = text[name_end + 2 * c]
        cell = text[name_end + 2 * c + 1]
        wrong |= np.uint64((separator != _TAB) | (cell < _ZERO) | (cell > _ZERO + 1))
        bits[c >> WORD_SHIFT] |= np.uint64(cell & 1) << np.uint64(c & BIT_MASK)
    return wrong == 0


@compiled
def _skip_returns(text, start):
    """Find the first byte from `start` on that is no carriage return; bad copies have two."""
    position = start
    while text[position] == _RETURN and position + 1 < text.shape[0]:
        position += 1
    return position
