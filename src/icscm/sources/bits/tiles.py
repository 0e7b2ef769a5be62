"""The bits of a packed store sorted by label and environment, in tiles of 64 samples.

samples, sorted     0 1 2 ... 63 | 64 65 ... 127 | 128 ...      tiles: a word of each pattern
segments            a a a ...  a |  a  b ...   b |   b ...
pieces              a            |  a  b         |   b          words under masks, by segment
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE, MAX_MAPPED_BYTES, ROW_DTYPE, WORD_BITS, WORD_DTYPE
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.engine import _kernels
from icscm.sources.bits.store import BitFile


class Pieces(NamedTuple):
    """Where the samples in play stand in the tiles; see `count_tiles`."""

    places: NDArray[np.uint32]
    masks: NDArray[np.uint64]
    bounds: IntArray
    n_in_play: CountArray


# Segments up to which words counted once for each, as they are, cost less than sorting them.
_MAX_UNSORTED = 8


def sort_samples(segments: IntArray) -> IntArray:
    """The samples that count, by label and environment; -1 stands for those that do not."""
    counted = np.flatnonzero(segments >= 0)
    order: IntArray = counted[np.argsort(segments[counted], kind="stable")]
    return order


class Tiles:
    """The sorted bits, a block of patterns made when it is first asked for.

    They are kept unless they are too many, and then made anew for each look, and left in their
    order if segments are few; of the file nothing stays in memory. `segments` is -1 for samples
    that do not count.
    """

    def __init__(self, bits: BitFile, segments: IntArray, n_segments: int) -> None:
        self._bits = bits
        #: the samples that count, sorted
        self.order = sort_samples(segments)
        self._segments, self._n_segments = segments[self.order], n_segments
        n_words = -(-len(self.order) // WORD_BITS)
        self._kept: dict[int, Array] | None = None
        if 8 * bits.n_patterns * n_words <= MAX_MAPPED_BYTES:
            self._kept = {}
        self._source: Array | None = None
        at = self.order
        if self._kept is not None or n_segments > _MAX_UNSORTED:
            at = np.arange(len(self.order))
            self._source = np.zeros(n_words * WORD_BITS, dtype=ROW_DTYPE)
            self._source[: len(at)] = self.order
        self._n_words = bits.n_words if self._source is None else n_words
        #: where each of the samples stands
        self._word, self._bit = at // WORD_BITS, np.uint64(1) << (at % WORD_BITS).astype(WORD_DTYPE)
        is_first = np.diff(self._word, prepend=-1) != 0
        is_first |= np.diff(self._segments, prepend=-1) > 0
        self._starts = np.flatnonzero(is_first)

    def read(self, block: slice) -> Array:
        """Tiles (group, word, pattern) of a block of patterns, of which each has always the same.

        Two threads may make the same one; they make it alike.
        """
        kept = None if self._kept is None else self._kept.get(block.start)
        if kept is not None:
            return kept
        n_groups = -(-(block.stop - block.start) // WORD_BITS)
        tiles = np.empty((n_groups, self._n_words, WORD_BITS), dtype=WORD_DTYPE)
        words = self._bits.read_words(block)
        if self._source is None:
            _kernels.lay_bits(words, tiles)
        else:
            _kernels.sort_bits(words, self._source, tiles)
        self._bits.release(block)
        if self._kept is not None:
            self._kept[block.start] = tiles
        return tiles

    def find_pieces(self, in_play: BoolArray) -> Pieces:
        """Where those of the samples that are in play stand."""
        is_in_play = in_play[self.order]
        masks = np.bitwise_or.reduceat(np.where(is_in_play, self._bit, 0), self._starts)
        used = np.flatnonzero(masks)
        starts = self._starts[used]
        bounds = np.searchsorted(self._segments[starts], np.arange(self._n_segments + 1))
        n_in_play = np.bincount(self._segments[is_in_play], minlength=self._n_segments)
        places = self._word[starts].astype(np.uint32)
        return Pieces(places, masks[used], bounds, n_in_play.astype(COUNT_DTYPE))
