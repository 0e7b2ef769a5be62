"""The count source over a packed store: its bits sorted by label and environment, then counted.

Samples without a label are in no tile; those that leave are taken out of the masks. See `tiles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    COUNT_DTYPE,
    MIN_THREADED_CELLS,
    PACKED_BLOCK_CELLS,
    WORD_BITS,
    WORD_DTYPE,
)
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.engine import _kernels
from icscm.engine.bits import CollapsedMap, PresenceMap
from icscm.engine.counts import BinnedRule, CountCube, PatternTable, SourceInfo
from icscm.engine.pieces import BinnedSplit, count_patterns, find_leaves
from icscm.engine.stores import Rows
from icscm.engine.threads import count_threads, run_ahead, split_evenly
from icscm.sources.bits.footer import BLOCK_PATTERNS
from icscm.sources.bits.store import BitFile
from icscm.sources.bits.tiles import Pieces, Tiles, sort_samples
from icscm.sources.gpu.card import choose_card
from icscm.sources.gpu.opening import put_bits
from icscm.sources.gpu.sending import Unsorted
from icscm.sources.stored import StoredSource

Words = NDArray[np.uint64]


class PackedSource:
    """Counts over a packed store; see `make_packed_source`."""

    def __init__(
        self,
        bits: BitFile,
        segments: IntArray,
        info: SourceInfo,
        n_threads: int,
        tiles: Tiles | None = None,
    ) -> None:
        self._info = info
        self.candidates, self.classes, self.environments, self.notes = info
        self._bits = bits
        self._segments = segments
        self._n_segments = 2 * len(info.environments)
        self._tiles = tiles or Tiles(bits, segments, self._n_segments)
        self._n_threads = n_threads
        is_member = np.zeros(bits.n_words * WORD_BITS, dtype=np.bool_)
        is_member[: len(segments)] = segments >= 0
        self._every: Words = np.packbits(is_member, bitorder="little").view(WORD_DTYPE)
        self._in_play = self._every

    def draw(self, wanted: BoolArray) -> PackedSource:
        """A source over some of the samples in the order of `list_cells`, for one thread."""
        segments, drawn = np.full_like(self._segments, -1), sort_samples(self._segments)[wanted]
        segments[drawn] = self._segments[drawn]
        return PackedSource(self._bits, segments, self._info, 1, self._tiles)

    def move(self, device: str) -> PackedSource | StoredSource:
        """This source, or on the card one of the same samples in order."""
        order, n_patterns = sort_samples(self._segments), self._bits.n_patterns
        sizes = n_patterns, 2 * self._bits.n_words
        unsorted = Unsorted(*sizes, self._read_halves, order, BLOCK_PATTERNS)
        card = choose_card(device, unsorted.n_bytes)
        if card is None:
            return self
        rows = Rows(None, np.concatenate(([0], np.cumsum(self.count_totals()))))
        first, n_alike = self._bits.copies.describe(slice(0, n_patterns))
        alike = None if (n_alike == 1).all() else n_alike
        store = put_bits(card, first, unsorted, rows, n_alike=alike)
        return StoredSource(self._info, [store], rows)

    def _read_halves(self, patterns: slice) -> Array:
        return self._bits.read_words(patterns).view(np.uint32)

    def list_cells(self) -> tuple[IntArray, IntArray]:
        """Number of the label and of the environment of each sample, sorted by the two."""
        cells = self._segments[sort_samples(self._segments)]
        return cells // len(self.environments), cells % len(self.environments)

    def find_leaves(self, splits: Sequence[BinnedSplit], left_out: BoolArray) -> IntArray:
        """The leaf of a tree that each sorted sample falls in, for those left out; else -1."""
        leaves = np.full(len(left_out), -1, dtype=np.int64)
        samples, n = sort_samples(self._segments)[left_out], len(self._segments)
        leaves[left_out] = find_leaves(
            splits, len(samples), lambda rule: unpack(self._find_satisfied(rule), n)[samples]
        )
        return leaves

    def count_totals(self) -> CountArray:
        labelled = self._segments[self._segments >= 0]
        totals = np.bincount(labelled, minlength=self._n_segments).astype(COUNT_DTYPE)
        return totals.reshape(2, len(self.environments))

    def counts(self) -> Iterator[CountCube]:
        return self._count(self._in_play)

    def count_node(self, path: Sequence[BinnedRule]) -> Iterator[CountCube]:
        return self._count(reduce(np.bitwise_and, map(self._find_satisfied, path), self._every))

    def _count(self, in_play: Words) -> Iterator[CountCube]:
        """The samples in play, a bit each."""
        n_cells = self._bits.n_patterns * self._bits.n_words
        n_threads = self._n_threads if n_cells >= MIN_THREADED_CELLS else 1
        pieces = self._tiles.find_pieces(unpack(in_play, len(self._segments)))
        return run_ahead(partial(self._count_block, pieces), self._list_blocks(), n_threads)

    def _count_block(self, pieces: Pieces, block: slice) -> CountCube:
        cube = np.empty((block.stop - block.start, 2, self._n_segments), dtype=COUNT_DTYPE)
        _kernels.count_tiles(self._tiles.read(block), *pieces, cube)
        first, n_alike = self._bits.copies.describe(block)
        counts = cube.reshape(len(cube), 2, 2, -1)
        return CountCube(first, counts, n_alike=None if (n_alike == 1).all() else n_alike)

    def _list_blocks(self) -> list[slice]:
        """Whole tiles; checksums are of `BLOCK_PATTERNS` patterns: some of these, or a part."""
        n_patterns = self._bits.n_patterns
        size = max(1, PACKED_BLOCK_CELLS // (2 * self._n_segments))
        multiple = max(BLOCK_PATTERNS, WORD_BITS) if size >= BLOCK_PATTERNS else WORD_BITS
        return split_evenly(n_patterns, -(-n_patterns // size), multiple)

    def keep(self, rule: BinnedRule) -> None:
        self._in_play = self._in_play & self._find_satisfied(rule)

    def find_same_coverage(self, rule: BinnedRule, others: Sequence[BinnedRule]) -> BoolArray:
        satisfied, in_play = self._find_satisfied(rule), self._in_play
        same = [not ((satisfied ^ self._find_satisfied(other)) & in_play).any() for other in others]
        return np.array(same, dtype=np.bool_)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        labelled = self._segments >= 0
        n = len(self._segments)
        truths = [unpack(self._find_satisfied(rule), n)[labelled] for rule in rules]
        return count_patterns(truths, self._segments[labelled], len(self.environments))

    def _find_satisfied(self, rule: BinnedRule) -> Words:
        """A bit for each sample, set where the rule is true; beyond the samples anything."""
        words = self._bits.read_feature(rule.feature)
        absent, present = (np.uint64(2**64 - 1) * np.uint64(each) for each in rule.satisfied)
        satisfied: Words = (~words & absent) | (words & present)
        return satisfied


def unpack(words: Words, n_samples: int) -> BoolArray:
    """The bit of each sample."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:n_samples].astype(np.bool_)


def make_packed_source(
    bits: BitFile,
    labels: Array,
    environments: Array,
    *,
    classes: Sequence[Any] = (0, 1),
    environment_labels: Sequence[Any],
    n_jobs: int | None = None,
    notes: Sequence[str] = (),
) -> PackedSource:
    """Make a packed store countable.

    For each sample of the store, `labels` holds 0 or 1, or -1 for one that does not count, and
    `environments` a position in `environment_labels`.
    """
    segments = np.where(labels < 0, -1, labels * len(environment_labels) + environments)
    candidates = CollapsedMap(PresenceMap(bits.names), bits.copies)
    info = SourceInfo(candidates, classes, environment_labels, notes)
    return PackedSource(bits, segments, info, count_threads(n_jobs))
