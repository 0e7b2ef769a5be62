"""Stores on the card: columns of bits or of bin numbers, counted where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from icscm._constants import BLOCK_CELLS, COUNT_DTYPE
from icscm._types import Array, CountArray, IntArray
from icscm.engine.counts import ORDERED, CountCube, Layout
from icscm.engine.stores import Rows
from icscm.engine.threads import split_evenly
from icscm.sources.gpu.card import Card, told_plainly
from icscm.sources.gpu.screening import CardStore
from icscm.sources.gpu.segments import CHUNK_BITS, DeviceQuery, Segments, count_chunks, find_tiles
from icscm.sources.gpu.sending import Sender

# Numbers to a look at binned features that the card judges: more are counted in blocks.
_MOST_JUDGED = 2**28


class CardBits(CardStore):
    """Two-valued columns, a bit a sample in the order of the sorted rows.

    `words` are uint32 (feature, word) on the card, 16 bytes at a time; `n_alike` is how many
    identical features each stands for.
    """

    def __init__(
        self,
        card: Card,
        features: IntArray,
        words: Any,
        rows: Rows,
        layout: Layout = ORDERED,
        n_alike: IntArray | None = None,
    ) -> None:
        self.card, self.features, self.words = card, features, words
        self.layout, self._n_samples, self._bounds = layout, len(rows), rows.bounds
        self._n_alike = n_alike
        self.n_alike = None if n_alike is None else card.send(n_alike)
        self.n_threads = 1
        self._set_in_play(rows)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def n_bytes(self) -> int:
        return int(self.words.nbytes)

    def find_codes(self, feature: int) -> Array:
        at = np.searchsorted(self.features, [feature])
        (words,) = self.card.bring(self._take(at))
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: self._n_samples]

    def _set_in_play(self, rows: Rows) -> None:
        bits = np.zeros(count_chunks(self._n_samples) * CHUNK_BITS, dtype=np.uint8)
        bits[slice(len(rows)) if rows.index is None else rows.index] = 1
        mask = np.packbits(bits, bitorder="little").view(np.uint32)
        n_in_play = np.diff(rows.bounds)
        tiles = find_tiles(self._bounds, self._n_samples)
        places = mask, self._bounds.astype(np.int32), tiles
        mask, bounds, tiles, in_play = map(self.card.send, (*places, n_in_play.astype(np.int32)))
        negatives, positives = n_in_play.reshape(2, -1).sum(axis=1).tolist()
        self.segments = Segments(
            mask, bounds, tiles, in_play, len(n_in_play) // 2, (negatives, positives)
        )
        self._in_play = n_in_play

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        size = max(1, most or len(self))
        for start in range(0, len(self), size):
            part = slice(start, min(len(self), start + size))
            yield part, self.words[part]

    def _take(self, columns: Any) -> Any:
        """Some columns on the card."""
        return self.words[self.card.send(columns)]

    def _can_judge(self) -> bool:
        return self.layout == ORDERED

    def judge(self, words: Any, query: DeviceQuery, *out: Any) -> None:
        self.card.kernels.judge_bits(words, self.segments, query, *out)

    def widen(self, columns: IntArray) -> IntArray:
        return columns

    def count(self, columns: Any) -> Any:
        return self._count(self._take(columns))

    def _count(self, words: Any) -> Any:
        out = self.card.xp.empty((len(words), len(self._in_play)), dtype=np.int32)
        self.card.kernels.count_bits(words, self.segments, out)
        return out

    def counts(self) -> Iterator[CountCube]:
        with told_plainly():
            yield from self.make_cubes(None)

    def make_cubes(self, columns: IntArray | None) -> Iterator[CountCube]:
        """The counts of some columns, or of all, a block at a time."""
        n, n_segments = len(self) if columns is None else len(columns), len(self._in_play)
        if columns is None:
            for at, words in self.parts(max(1, BLOCK_CELLS // (2 * n_segments))):
                yield self._make_cube(at, words)
        else:
            for block in split_evenly(n, -(-n * 2 * n_segments // BLOCK_CELLS)):
                yield self._make_cube(columns[block], self._take(columns[block]))

    def _make_cube(self, columns: Any, words: Any) -> CountCube:
        ones = self.card.bring(self._count(words)).astype(COUNT_DTYPE)
        cube = np.stack((self._in_play - ones, ones), axis=1)
        n_alike = None if self._n_alike is None else self._n_alike[columns]
        counts = cube.reshape(len(cube), 2, 2, -1)
        return CountCube(self.features[columns], counts, self.layout, n_alike)


class StreamedBits(CardBits):
    """Columns that are too many for the card: `words` is the `Sender` that sends them on demand."""

    words: Sender

    @property
    def n_bytes(self) -> int:
        return self.words.unsorted.n_bytes

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        size = min(most or len(self), self.words.size)
        room = self.words.make_room(size)
        for start in range(0, len(self), size):
            part = slice(start, min(len(self), start + size))
            words = room[: part.stop - start]
            self.words.send(part, words)
            yield part, words

    def _take(self, columns: Any) -> Any:
        return self.words.send_some(self.card.bring(columns))


@dataclass(eq=False)
class CardCodes(CardStore):
    """Columns as bin numbers, uint8 (feature, row) on the card, in the order of the sorted rows.

    For judging, each cut of a feature is a column of its own: the ones lie above it.
    """

    card: Card
    features: IntArray
    codes: Any
    n_bins: int
    rows: Rows
    layout: Layout
    n_threads: int = 1
    n_alike: None = None

    def __post_init__(self) -> None:
        self._set_in_play(self.rows)

    @property
    def n_bytes(self) -> int:
        return int(self.codes.nbytes)

    def find_codes(self, feature: int) -> Array:
        return self.card.bring(self.codes[int(np.searchsorted(self.features, feature))])

    def _set_in_play(self, rows: Rows) -> None:
        self._bounds = self.card.send(rows.bounds)
        self._index = None if rows.index is None else self.card.send(rows.index)
        n_in_play = np.diff(rows.bounds)
        self._n_segments = len(n_in_play)
        n_by_label = tuple(n_in_play.reshape(2, -1).sum(axis=1).tolist())
        in_play = self.card.send(n_in_play.astype(np.int32))
        self.segments = Segments(None, None, None, in_play, self._n_segments // 2, n_by_label)
        self._seen: tuple[Any, Any] | None = None

    def counts(self) -> Iterator[CountCube]:
        n_cells = len(self.features) * self.n_bins * self._n_segments
        with told_plainly():
            for block in split_evenly(len(self.features), -(-n_cells // BLOCK_CELLS)):
                yield self._make_cube(block, self._count(block))

    def _count(self, block: slice) -> Any:
        shape = block.stop - block.start, self.n_bins, self._n_segments
        out = self.card.xp.empty(shape, dtype=np.int32)
        self.card.kernels.count_codes(self.codes[block], self._index, self._bounds, out)
        return out

    def _make_cube(self, block: Any, found: Any) -> CountCube:
        counts: CountArray = self.card.bring(found).astype(COUNT_DTYPE)
        shape = *counts.shape[:2], 2, -1
        return CountCube(self.features[block], counts.reshape(shape), self.layout)

    # --- judging: a column for each cut -----------------------------------------

    def __len__(self) -> int:
        return len(self.features) * (self.n_bins - 1)

    def _can_judge(self) -> bool:
        return self.layout == ORDERED and len(self) * self._n_segments <= _MOST_JUDGED

    def _look(self) -> tuple[Any, Any]:
        """The counts of all features, and each cut's ones up to the start of each segment."""
        if self._seen is None:
            xp, counts = self.card.xp, self._count(slice(0, len(self.features)))
            above = xp.cumsum(counts[:, :0:-1], axis=1, dtype=np.int32)[:, ::-1]
            ones = xp.zeros((len(self), self._n_segments + 1), dtype=np.int32)
            ones[:, 1:] = xp.cumsum(above.reshape(len(self), -1), axis=1, dtype=np.int32)
            self._seen = counts, ones
        return self._seen

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        _, ones = self._look()
        for start in range(0, len(self), most or len(self)):
            part = slice(start, min(len(self), start + (most or len(self))))
            yield part, ones[part]

    def judge(self, words: Any, query: DeviceQuery, *out: Any) -> None:
        self.card.kernels.judge_counts(words, self.segments, query, *out)

    def widen(self, columns: IntArray) -> IntArray:
        n_cuts = self.n_bins - 1
        features = np.unique(columns // n_cuts)
        return (features[:, np.newaxis] * n_cuts + np.arange(n_cuts)).ravel()

    def count(self, columns: Any) -> Any:
        _, ones = self._look()
        return self.card.xp.diff(ones[self.card.send(columns)], axis=1)

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        counts, _ = self._look()
        features = np.unique(columns // (self.n_bins - 1))
        if len(features):
            yield self._make_cube(features, counts[self.card.send(features)])
