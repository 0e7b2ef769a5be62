"""The inner loops from bins and bits to counts, and from rows to those that are still counted.

Rows are sorted by outcome and environment, into *segments*, see `icscm.engine.stores`: segment s
are the rows from bounds[s] to bounds[s + 1]. Bits are stored 64 to a word: bit b is bit b & 63 of
word b >> 6.

Files of bits are counted in *tiles*: 64 columns by 64 rows, a word for each column.

Where the compiler does not find the fastest instructions by itself, an *intrinsic* writes them. Its
inner function `codegen` gets LLVM's `builder`, each of whose methods adds one instruction.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, index"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from icscm._constants import SHORT_SEGMENT
from icscm.compiling import compiled

# Types of LLVM: a word of 64 bits.
_WORD = ir.IntType(64)
# Sixteen counters of a byte, these widened to two bytes, and the sum of all.
_BYTES = ir.VectorType(ir.IntType(8), 16)
_WIDE_BYTES = ir.VectorType(ir.IntType(16), 16)
_SUM = ir.IntType(16)
# Words that go side by side. Eight vectors of them, and masks, fit the registers.
_LANES = 8
_VECTOR = ir.VectorType(_WORD, _LANES)

# Pairs of words until a counter of a byte, at most 8 more each time, may be full.
_MAX_PAIRS = 31


def _point(context, builder, array_type, array, *indices, vector=_VECTOR):
    """Make the pointer to array[indices] and the words after it, to be used as one vector."""
    struct = context.make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, struct.shape)
    # the offset of [i, j] in an array of n columns is i n + j
    offset = indices[0]
    for index, size in zip(indices[1:], shape[1:], strict=True):
        offset = builder.add(builder.mul(offset, size), index)
    return builder.bitcast(builder.gep(struct.data, [offset]), vector.as_pointer())


def _load(builder, pointer):
    """Read a vector of words, which may start at any of them."""
    vector = builder.load(pointer)
    vector.align = 8
    return vector


@intrinsic
def _popcount(typingctx, word):
    """Count the bits that are 1, by the processor's own instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _count_pairs(typingctx, a, i, b, start, n_pairs):
    """Count the bits that are 1 in both, in 2 * n_pairs words of row i of `a` and of row 0 of `b`.

    From word `start` on, a pair of words at a time, which is a vector of sixteen bytes. Each byte
    of the vector has a counter:

        pair of a    AND    pair of b    --ones of each byte, 0 .. 8-->    added to 16 counters

    The counters are bytes, too, which bounds the number of pairs. Left to itself, the compiler
    widens each count to a word first and takes twice as long.
    """

    def codegen(context, builder, signature, args):
        rows_a, i, rows_b, start, n_pairs = args

        count_bits_of_bytes = _declare(builder, "llvm.ctpop.v16i8", _BYTES, _BYTES)
        add_up = _declare(builder, "llvm.vector.reduce.add.v16i16", _SUM, _WIDE_BYTES)
        type_a, _, type_b, _, _ = signature.args
        zero = ir.Constant(i.type, 0)
        first_pair_a = _point(context, builder, type_a, rows_a, i, start, vector=_BYTES)
        first_pair_b = _point(context, builder, type_b, rows_b, zero, start, vector=_BYTES)
        counters = cgutils.alloca_once_value(builder, ir.Constant(_BYTES, None))
        with cgutils.for_range(builder, n_pairs) as loop:
            pair_a = _load(builder, builder.gep(first_pair_a, [loop.index]))
            pair_b = _load(builder, builder.gep(first_pair_b, [loop.index]))
            ones = builder.call(count_bits_of_bytes, [builder.and_(pair_a, pair_b)])
            builder.store(builder.add(builder.load(counters), ones), counters)
        wide_counters = builder.zext(builder.load(counters), _WIDE_BYTES)
        return builder.zext(builder.call(add_up, [wide_counters]), _WORD)

    return types.uint64(a, types.intp, b, types.intp, types.intp), codegen


def _declare(builder, name, result, argument):
    """Declare one of LLVM's own functions, of one argument."""
    function_type = ir.FunctionType(result, [argument])
    return cgutils.get_or_insert_function(builder.module, function_type, name)


@register_jitable
def _find_row(rows, i):
    """Return row i of those listed; None are all, which is known when this is compiled."""
    return i if rows is None else rows[i]


@compiled
def count_codes(codes, rows, bounds, out):
    """out[column, bin, segment] += 1 for each row of the segment in that bin.

    `rows` lists the rows, segment by segment; None means all of them, in their order.

        codes[column]     0 2 2 | 1 2        rows 0 .. 2 are segment 0, rows 3 and 4 segment 1
        out[column]       bin 0: 1 0    bin 1: 0 1    bin 2: 2 1

    A long segment is counted in four histograms, each of every fourth row, so that of equal bins in
    neighbouring rows none waits for the increment of the other.
    """
    histograms = np.zeros((4, out.shape[1]), np.int64)
    for j in range(codes.shape[0]):
        column = codes[j]
        for s in range(bounds.shape[0] - 1):
            i = bounds[s]
            stop = bounds[s + 1]
            if stop - i < SHORT_SEGMENT:  # clearing histograms would take longer than counting
                while i < stop:
                    out[j, column[_find_row(rows, i)], s] += 1
                    i += 1
                continue

            while i + 4 <= stop:
                histograms[0, column[_find_row(rows, i)]] += 1
                histograms[1, column[_find_row(rows, i + 1)]] += 1
                histograms[2, column[_find_row(rows, i + 2)]] += 1
                histograms[3, column[_find_row(rows, i + 3)]] += 1
                i += 4
            while i < stop:
                histograms[0, column[_find_row(rows, i)]] += 1
                i += 1

            for b in range(out.shape[1]):
                out[j, b, s] += (
                    histograms[0, b] + histograms[1, b] + histograms[2, b] + histograms[3, b]
                )
            histograms[:] = 0


@compiled
def sort_cells(labels, environments, n_environments, position, bounds):
    """Sort rows by segment: row i goes to position[i], and segment s begins at bounds[s].

    A counting sort: rows of a segment keep their order. `bounds` are zeros before.

        segment of row    1 0 1 0
        bounds            0 2 4            rows before each segment, and all rows
        position          2 0 3 1
    """
    for i in range(labels.shape[0]):
        segment = labels[i] * n_environments + environments[i]
        bounds[segment + 1] += 1
    for s in range(1, bounds.shape[0]):
        bounds[s] += bounds[s - 1]

    next_free = bounds.copy()
    for i in range(labels.shape[0]):
        segment = labels[i] * n_environments + environments[i]
        position[i] = next_free[segment]
        next_free[segment] += 1


@compiled
def split_rows(rows, bounds, covered, stay, left, left_bounds):
    """List the rows that stay apart from those that are covered and leave.

    Segment s of the latter is left[left_bounds[s]:left_bounds[s + 1]].

        rows           4  5  7  9        stay    4  7  0        the last place of each list is spare
        covered        no yes no yes     left    5  9  0

    Each row is written to both lists, and only the list that it belongs to goes on to its next
    place; so both need a place to spare. A branch would be guessed wrongly half the time.
    """
    n_stay = 0
    n_left = 0
    for s in range(bounds.shape[0] - 1):
        left_bounds[s] = n_left
        for i in range(bounds[s], bounds[s + 1]):
            row = _find_row(rows, i)
            stay[n_stay] = row
            left[n_left] = row
            n_left += covered[i]
            n_stay += not covered[i]
    left_bounds[-1] = n_left
    stay[n_stay] = 0
    left[n_left] = 0


@compiled
def count_bits(words, in_play, word_bounds, n_in_play, out):
    """out[column, bin, segment] = counted rows of the segment, by their bit.

    Each segment has words of its own, from word_bounds[s] to word_bounds[s + 1]. The mask
    `in_play`, a single row, has the bits of the rows that are counted, of which there are
    n_in_play[s] in a segment.
    """
    for j in range(words.shape[0]):
        for s in range(word_bounds.shape[0] - 1):
            w = word_bounds[s]
            stop = word_bounds[s + 1]
            ones = np.uint64(0)
            while w + 2 <= stop:
                n_pairs = min((stop - w) // 2, _MAX_PAIRS)
                ones += _count_pairs(words, j, in_play, w, n_pairs)
                w += 2 * n_pairs
            if w < stop:
                ones += _popcount(words[j, w] & in_play[0, w])
            out[j, 1, s] = ones
            out[j, 0, s] = n_in_play[s] - np.int64(ones)


def _swap_bits(builder, lower_row, upper_row, shift):
    """Swap the upper bits of one row's words with the lower bits of another's; return both rows.

    Of each 2 * shift bits, with XOR instead of a third word:

        differing = (lower_row >> shift  XOR  upper_row) AND lower bits
        upper_row = upper_row XOR differing
        lower_row = lower_row XOR (differing << shift)
    """

    def repeat(value):
        return ir.Constant(_VECTOR, [value] * _LANES)

    lower_bits = sum(((1 << shift) - 1) << start for start in range(0, 64, 2 * shift))
    moved = builder.lshr(lower_row, repeat(shift))
    differing = builder.and_(builder.xor(moved, upper_row), repeat(lower_bits))
    new_upper_row = builder.xor(upper_row, differing)
    new_lower_row = builder.xor(lower_row, builder.shl(differing, repeat(shift)))
    return new_lower_row, new_upper_row


def _make_turn(step):
    """Make a function that transposes eight rows, `step` apart, of bits in groups of `step`.

    What stood in group k of row j, stands in group j of row k. It does so by halves: the upper
    right quarter of a square changes places with the lower left one, then in each quarter likewise.

        a b c d        a b | i j        a e | i m
        e f g h        e f | m n        b f | j n
        i j k l   ->   ----+----   ->   ----+----
        m n o p        c d | k l        c g | k o
                       g h | o p        d h | l p

    A square of eight takes three such steps. Eight words of each row go through at once.
    """

    @intrinsic
    def turn(typingctx, rows, first, start):
        def codegen(context, builder, signature, args):
            rows, first, start = args
            row_numbers = [builder.add(first, ir.Constant(first.type, step * k)) for k in range(8)]
            pointers = [
                _point(context, builder, signature.args[0], rows, row_number, start)
                for row_number in row_numbers
            ]
            vectors = [_load(builder, pointer) for pointer in pointers]
            for half in (4, 2, 1):
                for k in range(8):
                    if not k & half:
                        vectors[k], vectors[k + half] = _swap_bits(
                            builder, vectors[k], vectors[k + half], shift=half * step
                        )
            for vector, pointer in zip(vectors, pointers, strict=True):
                builder.store(vector, pointer).align = 8
            return context.get_dummy_value()

        return types.void(rows, types.intp, types.intp), codegen

    return turn


_turn_squares = _make_turn(8)
_turn_bits = _make_turn(1)


@compiled
def _transpose(tiles):
    """Transpose 64 rows of words: bit c of a word in row r goes to bit r of the word in row c.

    64 by 64 bits are 8 by 8 squares of 8 by 8 bits. First the squares change places, for which rows
    8 apart are turned in groups of 8 bits; then the bits in each square.
    """
    for w in range(0, tiles.shape[1], _LANES):
        for first_row in range(8):
            _turn_squares(tiles, first_row, w)
        for first_row in range(0, 64, 8):
            _turn_bits(tiles, first_row, w)


@compiled
def sort_bits(words, source, tiles):
    """tiles[group, w, p], bit b = bit source[64 w + b] of column 64 group + p.

        64 columns            64 rows each             sorted              64 columns
        a  0110.. 1010..      0  a0 b0 c0 .. 1st       0  e.g. row 7       a  01..
        b  0010.. 0110..  ->  1  a1 b1 c1 ..       ->  1  row 64       ->  b  11..
        c  1101.. 0100..      2  a2 b2 c2 ..           2  row 3            c  10..

    Between the two transpositions a row's bits of all the columns are one word, which is what
    moves. Columns beyond the last have zeros.
    """
    n_words = words.shape[1]
    n_sorted = tiles.shape[1]
    # whole vectors of words
    width = _LANES * -(-n_words // _LANES)
    sorted_width = _LANES * -(-n_sorted // _LANES)
    # 64 columns as (column, word), or transposed as (bit of a word, word)
    raw = np.zeros((64, width), np.uint64)
    ordered = np.zeros((64, sorted_width), np.uint64)
    flat_raw = raw.ravel()
    flat_ordered = ordered.ravel()
    moved_from = _list_moves(source, width, sorted_width)

    for group in range(tiles.shape[0]):
        first = 64 * group
        n_columns = min(64, words.shape[0] - first)
        raw[n_columns:] = 0
        for p in range(n_columns):
            for w in range(n_words):
                raw[p, w] = words[first + p, w]

        _transpose(raw)
        for i in range(moved_from.shape[0]):
            flat_ordered[i] = flat_raw[moved_from[i]]
        _transpose(ordered)

        for w in range(n_sorted):
            for p in range(64):
                tiles[group, w, p] = ordered[p, w]


@compiled
def _list_moves(source, width, sorted_width):
    """List for each word of the sorted rows (bit, word) the one of the unsorted that moves there.

    Words are numbered bit * width + word; those that belong to no row get the first.
    """
    moved_from = np.zeros((64, sorted_width), np.uint32)
    for i in range(source.shape[0]):
        unsorted_bit = source[i] & 63
        unsorted_word = source[i] >> 6
        moved_from[i & 63, i >> 6] = unsorted_bit * width + unsorted_word
    return moved_from.ravel()


@compiled
def lay_bits(words, tiles):
    """tiles[group, w, p] = word w of column 64 group + p: rows stay in their order."""
    for group in range(tiles.shape[0]):
        first = 64 * group
        n_columns = min(64, words.shape[0] - first)
        for w in range(tiles.shape[1]):
            for p in range(n_columns):
                tiles[group, w, p] = words[first + p, w]
            for p in range(n_columns, 64):
                tiles[group, w, p] = 0


@compiled
def count_tiles(tiles, mask_words, masks, bounds, n_in_play, out):
    """out[column, bin, segment] = counted rows of the segment, by their bit.

    The counted rows of segment s, `n_in_play[s]` of them, are those that `masks[k]` selects in word
    `mask_words[k]`, for k from bounds[s] to bounds[s + 1].
    """
    ones = np.zeros(64, np.int64)
    for group in range(tiles.shape[0]):
        first = 64 * group
        for s in range(n_in_play.shape[0]):
            ones[:] = 0
            for k in range(bounds[s], bounds[s + 1]):
                word = mask_words[k]
                mask = masks[k]
                for p in range(64):
                    ones[p] += np.int64(_popcount(tiles[group, word, p] & mask))
            for p in range(min(64, out.shape[0] - first)):
                out[first + p, 1, s] = ones[p]
                out[first + p, 0, s] = n_in_play[s] - ones[p]


@compiled
def add_values(codes, environments, values, sums):
    """Add each row's values (row, value) to sums[bin, value, environment]."""
    for i in range(codes.shape[0]):
        for v in range(values.shape[1]):
            sums[codes[i], v, environments[i]] += values[i, v]


@compiled
def count_clusters(covered, clusters, n_negative, n, p):
    """Count the covered rows of each cluster into `n`, and the positive ones into `p`.

    Rows from `n_negative` on are positive.
    """
    n[:] = 0
    p[:] = 0
    for i in range(covered.shape[0]):
        if covered[i]:
            n[clusters[i]] += 1
            p[clusters[i]] += i >= n_negative


@compiled
def add_moments(n, p, starts, n_clusters, sum_nn, sum_np, sum_pp):
    """Add up n > 0, n n, n p and p p over the clusters of each environment into four arrays.

    Those of environment e are numbered from `starts[e]` on.
    """
    for e in range(len(n_clusters)):
        for c in range(starts[e], starts[e + 1]):
            n_clusters[e] += n[c] > 0
            sum_nn[e] += n[c] * n[c]
            sum_np[e] += n[c] * p[c]
            sum_pp[e] += p[c] * p[c]
