"""Bits sorted and counted in tiles: 64 features by 64 samples, a word for each feature."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from icscm.compiling import compiled
from icscm.engine._kernels.counting import _popcount

# Words that go side by side. Eight vectors of them, and masks, fit the registers.
_LANES = 8
_VECTOR = ir.VectorType(ir.IntType(64), _LANES)


def _point(context, builder, kind, array, *at):
    """Where eight words of an array begin, to be read or written as one vector."""
    made = context.make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, made.shape)
    place = at[0]
    for index, size in zip(at[1:], shape[1:], strict=True):
        place = builder.add(builder.mul(place, size), index)
    return builder.bitcast(builder.gep(made.data, [place]), _VECTOR.as_pointer())


def _load(builder, pointer):
    found = builder.load(pointer)
    found.align = 8
    return found


def _step(builder, start, k):
    return builder.add(start, ir.Constant(start.type, k))


def _swap_bits(builder, one, other, shift):
    """The upper half of the bits of the one against the lower half of the other's."""

    def repeat(value):
        return ir.Constant(_VECTOR, [value] * _LANES)

    low = repeat(sum(((1 << shift) - 1) << at for at in range(0, 64, 2 * shift)))
    differing = builder.xor(builder.lshr(one, repeat(shift)), other)
    differing = builder.and_(differing, low)
    other = builder.xor(other, differing)
    return builder.xor(one, builder.shl(differing, repeat(shift))), other


def _swap_words(builder, one, other, shift):
    """The same of whole words."""

    def pick(from_one, from_other):
        at = [from_other(k) + _LANES if k & shift else from_one(k) for k in range(_LANES)]
        kind = ir.VectorType(ir.IntType(32), _LANES)
        return builder.shuffle_vector(one, other, ir.Constant(kind, at))

    return pick(lambda k: k, lambda k: k - shift), pick(lambda k: k + shift, lambda k: k)


def _turn(builder, vectors, swap, step=1):
    """Eight vectors turned: what stood in column k of row j, stands in column j of row k."""
    for half in (4, 2, 1):
        for k in range(8):
            if not k & half:
                pair = vectors[k], vectors[k + half]
                vectors[k], vectors[k + half] = swap(builder, *pair, half * step)


def _make_turn(step):
    """A function that turns eight words of each of eight rows, `step` apart, bit by bit."""

    @intrinsic
    def turn(typingctx, rows, first, at):
        def codegen(context, builder, signature, args):
            rows, first, at = args
            pointers = [
                _point(
                    context, builder, signature.args[0], rows, _step(builder, first, step * k), at
                )
                for k in range(8)
            ]
            vectors = [_load(builder, pointer) for pointer in pointers]
            _turn(builder, vectors, _swap_bits, step)
            for vector, pointer in zip(vectors, pointers, strict=True):
                builder.store(vector, pointer).align = 8
            return context.get_dummy_value()

        return types.void(rows, types.intp, types.intp), codegen

    return turn


_turn_far, _turn_near = _make_turn(8), _make_turn(1)


@intrinsic
def _put_counts(typingctx, ones, at, totals, out, feature, segment):
    """Ones of eight segments, for eight features from `at` on, and what they leave of the totals.

    To `out` (feature, bin, segment), whose lines of memory are best written whole.
    """

    def codegen(context, builder, signature, args):
        _, at, _, _, feature, segment = args

        def point(k, *place):
            return _point(context, builder, signature.args[k], args[k], *place)

        whole = [ir.Constant(at.type, k) for k in range(8)]
        vectors = [_load(builder, point(0, j, at)) for j in whole]
        _turn(builder, vectors, _swap_words)
        total = _load(builder, point(2, segment))
        for k, found in enumerate(vectors):
            row = _step(builder, feature, k)
            builder.store(found, point(3, row, whole[1], segment)).align = 8
            rest = builder.sub(total, found)
            builder.store(rest, point(3, row, whole[0], segment)).align = 8
        return context.get_dummy_value()

    whole = types.intp
    return types.void(ones, whole, totals, out, whole, whole), codegen


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
    n_segments = n_in_play.shape[0]
    ones = np.zeros((8, 64), np.int64)
    for group in range(tiles.shape[0]):
        feature = 64 * group
        n_features = min(64, out.shape[0] - feature)
        for first in range(0, n_segments, 8):
            n_counted = min(8, n_segments - first)
            ones[:] = 0
            for j in range(n_counted):
                for k in range(bounds[first + j], bounds[first + j + 1]):
                    word, mask = places[k], masks[k]
                    for p in range(64):
                        ones[j, p] += np.int64(_popcount(tiles[group, word, p] & mask))
            n_put = n_features // 8 * 8 if n_counted == 8 else 0
            for p in range(0, n_put, 8):
                _put_counts(ones, p, n_in_play, out, feature + p, first)
            for p in range(n_put, n_features):
                for j in range(n_counted):
                    out[feature + p, 1, first + j] = ones[j, p]
                    out[feature + p, 0, first + j] = n_in_play[first + j] - ones[j, p]
