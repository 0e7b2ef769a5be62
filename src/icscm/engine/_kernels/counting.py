"""Bins and bits to counts, and rows to those that are still counted."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, index"
# ruff: noqa: ARG001 (numba prescribes the arguments of an intrinsic)

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from icscm._constants import SHORT_SEGMENT
from icscm.compiling import compiled
from icscm.engine._kernels.hashing import BIT_MASK, ONE, WORD_SHIFT

_BYTES = ir.VectorType(ir.IntType(8), 16)
_WIDE_BYTES = ir.VectorType(ir.IntType(16), 16)
_SUM, _WORD = ir.IntType(16), ir.IntType(64)


# Pairs of words until a counter of a byte, at most 8 more each time, may be full.
_MAX_PAIRS = 31


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
        other = point(rows_b, signature.args[2], ir.Constant(i.type, 0))
        total = cgutils.alloca_once_value(builder, ir.Constant(_BYTES, None))
        with cgutils.for_range(builder, n_pairs) as loop:
            common = builder.and_(load(one, loop.index), load(other, loop.index))
            ones = builder.call(count, [common])
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
def count_codes(codes, rows, bounds, sign, out):
    """out[feature, bin, segment] += sign for each sample of the segment in that bin.

    `rows` lists the samples, segment by segment; None means all of them, in their order.
    """
    local = np.zeros((4, out.shape[1]), np.int64)
    for f in range(codes.shape[0]):
        column = codes[f]
        for s in range(bounds.shape[0] - 1):
            i, stop = bounds[s], bounds[s + 1]
            if stop - i < SHORT_SEGMENT:
                while i < stop:
                    out[f, column[_find_row(rows, i)], s] += sign
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
                out[f, b, s] += sign * (local[0, b] + local[1, b] + local[2, b] + local[3, b])
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


@compiled
def clear_bits(words, bits):
    """Turn the listed bits off."""
    for bit in bits:
        words[bit >> WORD_SHIFT] &= ~(ONE << np.uint64(bit & BIT_MASK))
