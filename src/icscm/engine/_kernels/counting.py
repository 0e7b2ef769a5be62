"""Bins and bits to counts, and rows to those that are still counted.

Packed stores are counted in tiles: 64 features by 64 samples, a word for each feature.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, index"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from icscm._constants import SHORT_SEGMENT
from icscm.compiling import compiled

_BYTES = ir.VectorType(ir.IntType(8), 16)
_WIDE_BYTES = ir.VectorType(ir.IntType(16), 16)
_SUM, _WORD = ir.IntType(16), ir.IntType(64)
# Words that go side by side. Eight vectors of them, and masks, fit the registers.
_LANES = 8
_VECTOR = ir.VectorType(ir.IntType(64), _LANES)

# Pairs of words until a counter of a byte, at most 8 more each time, may be full.
_MAX_PAIRS = 31


def _point(context, builder, kind, array, *at, vector=_VECTOR):
    """Where some words of an array begin, to be read or written as one vector."""
    made = context.make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, made.shape)
    place = at[0]
    for index, size in zip(at[1:], shape[1:], strict=True):
        place = builder.add(builder.mul(place, size), index)
    return builder.bitcast(builder.gep(made.data, [place]), vector.as_pointer())


def _load(builder, pointer):
    found = builder.load(pointer)
    found.align = 8
    return found


@intrinsic
def _popcount(typingctx, word):
    """Number of one bits, as the processor's own instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _count_pairs(typingctx, a, i, b, start, n_pairs):
    """Count the one bits which 2 * n_pairs words of row i of `a` and of row 0 of `b` share.

    From `start` on, sixteen bytes at a time, in counters of a byte, which bounds the number of
    pairs: left to itself, the compiler widens each count to a word first and takes twice as long.
    """

    def codegen(context, builder, signature, args):
        rows_a, i, rows_b, start, n_pairs = args

        count = _declare(builder, "llvm.ctpop.v16i8", _BYTES, _BYTES)
        add_up = _declare(builder, "llvm.vector.reduce.add.v16i16", _SUM, _WIDE_BYTES)
        kinds, zero = signature.args, ir.Constant(i.type, 0)
        one = _point(context, builder, kinds[0], rows_a, i, start, vector=_BYTES)
        other = _point(context, builder, kinds[2], rows_b, zero, start, vector=_BYTES)
        total = cgutils.alloca_once_value(builder, ir.Constant(_BYTES, None))
        with cgutils.for_range(builder, n_pairs) as loop:
            pair = (_load(builder, builder.gep(each, [loop.index])) for each in (one, other))
            ones = builder.call(count, [builder.and_(*pair)])
            builder.store(builder.add(builder.load(total), ones), total)
        wide = builder.zext(builder.load(total), _WIDE_BYTES)
        return builder.zext(builder.call(add_up, [wide]), _WORD)

    whole = types.intp
    return types.uint64(a, whole, b, whole, whole), codegen


def _declare(builder, name, result, argument):
    kind = ir.FunctionType(result, [argument])
    return cgutils.get_or_insert_function(builder.module, kind, name)


@register_jitable
def _find_row(rows, i):
    return i if rows is None else rows[i]  # which of the two is known when this is compiled


@compiled
def count_codes(codes, rows, bounds, out):
    """out[feature, bin, segment] += 1 for each sample of the segment in that bin.

    `rows` lists the samples, segment by segment; None means all of them, in their order.
    """
    local = np.zeros((4, out.shape[1]), np.int64)
    for f in range(codes.shape[0]):
        column = codes[f]
        for s in range(bounds.shape[0] - 1):
            i, stop = bounds[s], bounds[s + 1]
            if stop - i < SHORT_SEGMENT:
                while i < stop:
                    out[f, column[_find_row(rows, i)], s] += 1
                    i += 1
                continue
            # four histograms: equal neighbours do not wait for each other's increment
            while i + 4 <= stop:
                local[0, column[_find_row(rows, i)]] += 1
                local[1, column[_find_row(rows, i + 1)]] += 1
                local[2, column[_find_row(rows, i + 2)]] += 1
                local[3, column[_find_row(rows, i + 3)]] += 1
                i += 4
            while i < stop:
                local[0, column[_find_row(rows, i)]] += 1
                i += 1
            for b in range(out.shape[1]):
                out[f, b, s] += local[0, b] + local[1, b] + local[2, b] + local[3, b]
                local[0, b] = local[1, b] = local[2, b] = local[3, b] = 0


@compiled
def sort_cells(labels, environments, n_environments, position, bounds):
    """Where each row goes when sorted by (label, environment), and where each of these begins."""
    for i in range(labels.shape[0]):
        bounds[labels[i] * n_environments + environments[i] + 1] += 1
    for s in range(1, bounds.shape[0]):
        bounds[s] += bounds[s - 1]
    free = bounds.copy()
    for i in range(labels.shape[0]):
        cell = labels[i] * n_environments + environments[i]
        position[i] = free[cell]
        free[cell] += 1


@compiled
def split_rows(rows, bounds, covered, stay, left, left_bounds):
    """List the rows that stay apart from those that are covered and leave.

    Segment s of the latter is left[left_bounds[s]:left_bounds[s + 1]]. Both lists have a place to
    spare, which is 0 in the end: each row is written to both, and only the list that it belongs to
    goes on to its next place. A branch would be guessed wrongly half the time.
    """
    n_stay = n_left = 0
    for s in range(bounds.shape[0] - 1):
        left_bounds[s] = n_left
        for i in range(bounds[s], bounds[s + 1]):
            stay[n_stay] = left[n_left] = _find_row(rows, i)
            n_left += covered[i]
            n_stay += not covered[i]
    left_bounds[-1] = n_left
    stay[n_stay] = left[n_left] = 0


@compiled
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
                ones += _count_pairs(words, f, in_play, w, n_pairs)
                w += 2 * n_pairs
            if w < stop:
                ones += _popcount(words[f, w] & in_play[0, w])
            out[f, 1, s] = ones
            out[f, 0, s] = n_in_play[s] - np.int64(ones)


def _swap_bits(builder, one, other, shift):
    """The upper half of the bits of the one against the lower half of the other's."""

    def repeat(value):
        return ir.Constant(_VECTOR, [value] * _LANES)

    low = repeat(sum(((1 << shift) - 1) << at for at in range(0, 64, 2 * shift)))
    differing = builder.xor(builder.lshr(one, repeat(shift)), other)
    differing = builder.and_(differing, low)
    other = builder.xor(other, differing)
    return builder.xor(one, builder.shl(differing, repeat(shift))), other


def _make_turn(step):
    """A function that turns eight words of each of eight rows, `step` apart, bit by bit: what
    stood in column k of row j, stands in column j of row k.
    """

    @intrinsic
    def turn(typingctx, rows, first, at):
        def codegen(context, builder, signature, args):
            rows, first, at = args
            own = context, builder, signature.args[0], rows
            starts = [builder.add(first, ir.Constant(first.type, step * k)) for k in range(8)]
            pointers = [_point(*own, start, at) for start in starts]
            vectors = [_load(builder, pointer) for pointer in pointers]
            for half in (4, 2, 1):
                for k in range(8):
                    if not k & half:
                        pair = vectors[k], vectors[k + half]
                        vectors[k], vectors[k + half] = _swap_bits(builder, *pair, half * step)
            for vector, pointer in zip(vectors, pointers, strict=True):
                builder.store(vector, pointer).align = 8
            return context.get_dummy_value()

        return types.void(rows, types.intp, types.intp), codegen

    return turn


_turn_far, _turn_near = _make_turn(8), _make_turn(1)


@compiled
def _transpose(tiles):
    """Rows r of 64 words, bit c of word w: to bit r of the same word in row c."""
    for w in range(0, tiles.shape[1], _LANES):
        for r in range(8):
            _turn_far(tiles, r, w)
        for r in range(0, 64, 8):
            _turn_near(tiles, r, w)


@compiled
def sort_bits(words, source, tiles):
    """tiles[group, w, p], bit b = bit source[64 w + b] of feature 64 group + p.

        64 features           64 samples each          sorted              64 features
        a  0110.. 1010..      0  a0 b0 c0 .. 1st       0  e.g. sample 7    a  01..
        b  0010.. 0110..  ->  1  a1 b1 c1 ..       ->  1  sample 64    ->  b  11..
        c  1101.. 0100..      2  a2 b2 c2 ..           2  sample 3         c  10..

    Between the two turns a sample's bits of all the features are one word, which is what moves.
    Features beyond the last have zeros.
    """
    n_words, n_sorted = words.shape[1], tiles.shape[1]
    width, sorted_width = _LANES * -(-n_words // _LANES), _LANES * -(-n_sorted // _LANES)
    raw, ordered = np.zeros((64, width), np.uint64), np.zeros((64, sorted_width), np.uint64)
    places = np.zeros((64, sorted_width), np.uint32)
    for i in range(source.shape[0]):
        places[i & 63, i >> 6] = (source[i] & 63) * width + (source[i] >> 6)
    flat_raw, flat_ordered, flat_places = raw.ravel(), ordered.ravel(), places.ravel()
    for group in range(tiles.shape[0]):
        first = 64 * group
        n_features = min(64, words.shape[0] - first)
        raw[n_features:] = 0
        for p in range(n_features):
            for w in range(n_words):
                raw[p, w] = words[first + p, w]
        _transpose(raw)
        for i in range(flat_places.shape[0]):
            flat_ordered[i] = flat_raw[flat_places[i]]
        _transpose(ordered)
        for w in range(n_sorted):
            for p in range(64):
                tiles[group, w, p] = ordered[p, w]


@compiled
def lay_bits(words, tiles):
    """The same as they are: tiles[group, w, p] = word w of feature 64 group + p."""
    for group in range(tiles.shape[0]):
        first = 64 * group
        n_features = min(64, words.shape[0] - first)
        for w in range(tiles.shape[1]):
            for p in range(n_features):
                tiles[group, w, p] = words[first + p, w]
            for p in range(n_features, 64):
                tiles[group, w, p] = 0


@compiled
def count_tiles(tiles, places, masks, bounds, n_in_play, out):
    """out[feature, bin, segment] = samples in play of the segment, by their bit.

    Segment s is in play in pieces bounds[s] .. bounds[s + 1]: in words `places` under `masks`.
    """
    ones = np.zeros(64, np.int64)
    for group in range(tiles.shape[0]):
        feature = 64 * group
        for s in range(n_in_play.shape[0]):
            ones[:] = 0
            for k in range(bounds[s], bounds[s + 1]):
                word, mask = places[k], masks[k]
                for p in range(64):
                    ones[p] += np.int64(_popcount(tiles[group, word, p] & mask))
            for p in range(min(64, out.shape[0] - feature)):
                out[feature + p, 1, s] = ones[p]
                out[feature + p, 0, s] = n_in_play[s] - ones[p]


@compiled
def add_values(codes, environments, values, sums):
    """Add each row's values (row, value) to sums[bin, value, environment]."""
    for i in range(codes.shape[0]):
        for v in range(values.shape[1]):
            sums[codes[i], v, environments[i]] += values[i, v]


@compiled
def add_moments(covered, clusters, n_negative, starts, n, p, moments):
    """Add up clusters, n n, n p and p p over the clusters of each environment.

    Of the covered rows of a cluster there are n, of which p are positive: rows from `n_negative`
    on are. `n` and `p` are the places where they are counted.
    """
    n[:] = 0
    p[:] = 0
    for i in range(covered.shape[0]):
        if covered[i]:
            n[clusters[i]] += 1
            p[clusters[i]] += i >= n_negative
    for e in range(moments.shape[0]):
        for c in range(starts[e], starts[e + 1]):
            moments[e, 0] += n[c] > 0
            moments[e, 1] += n[c] * n[c]
            moments[e, 2] += n[c] * p[c]
            moments[e, 3] += p[c] * p[c]
