"""Stores on the card: columns of bits or of bin numbers, sent there, sorted and counted there."""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from icscm._constants import BLOCK_CELLS, COUNT_DTYPE
from icscm._types import Array, CountArray, IntArray
from icscm.engine.counts import CountCube
from icscm.engine.stores import BitStore, CodeStore, Rows, Store
from icscm.engine.threads import count_threads, run_tasks, split_evenly
from icscm.exceptions import StreamedWarning, warn
from icscm.sources.gpu import card as cards
from icscm.sources.gpu.card import Card, CardBits, translate_card_errors
from icscm.sources.gpu.launching import DeviceQuery, count_padded

# Bytes on one way at a time.
_SENT_BYTES = 2**27
# Threads that read: they outrun the bus.
_MOST_READERS = 8


def send_plain(card: Card, array: Array) -> Any:
    """An array of floats, contiguous, on the card: while some is copied, some is on its way."""
    out = card.xp.empty(array.shape, dtype=array.dtype)
    given, taken = array.reshape(-1).view(np.uint32), out.reshape(-1).view(np.uint32)
    size, n_threads = min(len(given), _SENT_BYTES // 4), min(_MOST_READERS, count_threads(None))
    lanes = card.kernels.make_lanes((size,))
    for number, start in enumerate(range(0, len(given), size)):
        some, lane = given[start : start + size], lanes[number % len(lanes)]
        lane.wait()

        def copy(part: slice, some: Array = some, host: Array = lane.host) -> None:
            host[part] = some[part]

        run_tasks(copy, split_evenly(len(some), n_threads), n_threads)
        lane.put(taken[start : start + size])
    for lane in lanes:
        lane.wait()
    return out


class Unsorted(NamedTuple):
    """Columns as they lie in memory or in a file.

    `read` gives the words of some columns, a slice; slices that start at multiples of `multiple`
    are read the fastest. A column has `n_words` of 32 bits; sorted row i is its bit `source[i]`.
    """

    n_columns: int
    n_words: int
    read: Callable[[slice], Array]
    source: Array
    multiple: int = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the columns on the card."""
        return self.n_columns * count_padded(len(self.source)) // 8


class Sender:
    """Sends columns to the card: while some are read, others are on their way."""

    def __init__(self, card: Card, unsorted: Unsorted) -> None:
        self._card, self.unsorted = card, unsorted
        most = max(1, _SENT_BYTES // max(1, 4 * unsorted.n_words))
        most = max(1, most // unsorted.multiple) * unsorted.multiple
        #: columns that go at a time
        self.size = max(1, min(most, unsorted.n_columns))
        self._lanes = card.kernels.make_lanes((self.size, unsorted.n_words))
        self._source = card.send(np.asarray(unsorted.source, dtype=np.uint32))
        self._n_sent, self._lock = 0, Lock()
        self._n_threads = min(_MOST_READERS, count_threads(None))

    def send(self, columns: Any) -> Any:
        """Some columns, a slice or an array of their numbers, sorted, on the card."""
        numbers: Sequence[int]
        if isinstance(columns, slice):
            numbers = range(columns.start, columns.stop)
        else:
            numbers = self._card.bring(columns).tolist()
        shape = len(numbers), count_padded(len(self.unsorted.source)) // 32
        out = self._card.xp.empty(shape, dtype=np.uint32)
        for start in range(0, len(numbers), self.size):
            part = slice(start, min(len(numbers), start + self.size))
            with self._lock:  # trees of a forest may call it at the same time
                lane = self._lanes[self._n_sent % len(self._lanes)]
                self._n_sent += 1
                lane.wait()
                self._read(numbers[part], lane.host)
                lane.sort(part.stop - start, self._source, out[part])
        return out

    def _read(self, numbers: Sequence[int], host: Array) -> None:
        """Columns from anywhere one at a time, neighbours by several threads."""

        def read_part(part: slice) -> None:
            own = slice(numbers[part][0], numbers[part][-1] + 1)
            host[part] = self.unsorted.read(own).view(np.uint32)

        n_threads, sizes = 1, (len(numbers), 1)
        if isinstance(numbers, range):
            n_threads, sizes = self._n_threads, (self._n_threads, self.unsorted.multiple)
        run_tasks(read_part, split_evenly(len(numbers), *sizes), n_threads)


# Counts of a scan of binned features up to which the card screens them; more come in blocks.
_MOST_JUDGED = 2**28


class StreamedBits(CardBits):
    """Columns that are too many for the card: `words` is the `Sender` that sends them on demand."""

    words: Sender

    @property
    def n_bytes(self) -> int:
        return self.words.unsorted.n_bytes

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        return super().parts(min(most or len(self), self.words.size))

    def take(self, columns: Any) -> Any:
        return self.words.send(columns)


class CardCodes(CardBits):
    """Columns as bin numbers: `words` are uint8 (feature, row), in the order of the sorted rows.

    For judging, each cut of a feature is a column of its own: the ones lie above it.
    """

    def find_codes(self, feature: int) -> Array:
        return self.card.bring(self.words[int(np.searchsorted(self.features, feature))])

    def _set_in_play(self, rows: Rows) -> None:
        self._bounds = self.card.send(rows.bounds)
        self._index = None if rows.index is None else self.card.send(rows.index)
        self._n_segments = len(rows.bounds) - 1
        self.segments = self.make_segments(rows)
        self._seen: tuple[Any, Any] | None = None

    def counts(self) -> Iterator[CountCube]:
        n_cells = len(self.features) * self.n_bins * self._n_segments
        with translate_card_errors():
            for block in split_evenly(len(self.features), -(-n_cells // BLOCK_CELLS)):
                yield self._make_cube(block, self._count(block))

    def _count(self, block: slice) -> Any:
        shape = block.stop - block.start, self.n_bins, self._n_segments
        out = self.card.xp.empty(shape, dtype=np.int32)
        self.card.kernels.count_codes(self.words[block], self._index, self._bounds, out)
        return out

    def _make_cube(self, block: Any, found: Any) -> CountCube:
        counts: CountArray = self.card.bring(found).astype(COUNT_DTYPE)
        shape = *counts.shape[:2], 2, -1
        return CountCube(self.features[block], counts.reshape(shape), self.layout)

    # --- judging: a column for each cut -----------------------------------------

    def __len__(self) -> int:
        return len(self.features) * (self.n_bins - 1)

    def _can_judge(self) -> bool:
        return super()._can_judge() and len(self) * self._n_segments <= _MOST_JUDGED

    def _look(self) -> tuple[Any, Any]:
        """The counts of all features, and each cut's ones up to the start of each segment."""
        if self._seen is None:
            xp, counts = self.card.xp, self._count(slice(0, len(self.features)))
            above = xp.cumsum(counts[:, :0:-1], axis=1, dtype=np.int32)[:, ::-1]
            ones = xp.zeros((len(self), self._n_segments + 1), dtype=np.int32)
            ones[:, 1:] = xp.cumsum(above.reshape(len(self), -1), axis=1, dtype=np.int32)
            self._seen = counts, ones
        return self._seen

    def take(self, columns: Any) -> Any:
        return self.card.take(self._look()[1], columns)

    def judge(self, words: Any, query: DeviceQuery, *out: Any) -> None:
        self.card.kernels.judge_counts(words, self.segments, query, *out)

    def widen(self, columns: IntArray) -> IntArray:
        n_cuts = self.n_bins - 1
        features = np.unique(columns // n_cuts)
        return (features[:, np.newaxis] * n_cuts + np.arange(n_cuts)).ravel()

    def count(self, columns: Any) -> Any:
        return self.card.xp.diff(self.take(columns), axis=1)

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        counts, _ = self._look()
        features = np.unique(columns // (self.n_bins - 1))
        if len(features):
            yield self._make_cube(features, counts[self.card.send(features)])


# Bytes a second from this memory to the card, read, sent and sorted: as measured, low.
_SENT_EACH_SECOND = 8e9


def put_on_card(card: Card, store: Store, rows: Rows) -> Store:
    """The same columns on the card; those of more than 256 bins stay where they are."""
    if isinstance(store, BitStore):
        shape = len(store.words), 2 * store.words.shape[1]
        unsorted = Unsorted(*shape, store.words.__getitem__, store.bits)
        return put_bits(card, store.features, unsorted, rows, store.layout, store.n_alike)
    if isinstance(store, CodeStore) and store.codes.dtype == np.uint8:
        cards.check_room(card, store.codes.nbytes)
        with translate_card_errors():
            own = store.features, card.send(store.codes), rows, store.layout
            return CardCodes(card, *own, n_bins=store.n_bins)
    return store


def put_bits(card: Card, features: IntArray, unsorted: Unsorted, *more: Any) -> CardBits:
    """Columns of bits on the card, or sent to it for each scan where they do not fit.

    The other arguments are those of `CardBits`.
    """
    with translate_card_errors():
        sender = Sender(card, unsorted)
        if cards.has_room(card, unsorted.n_bytes):
            return CardBits(card, features, sender.send(slice(0, unsorted.n_columns)), *more)
        warn(
            f"The columns take {unsorted.n_bytes / 1e9:,.1f} GB and {card.count_free() / 1e9:,.1f} "
            "GB of the card's memory are free: they are sent to it again for each rule, which "
            f"takes about {unsorted.n_bytes / _SENT_EACH_SECOND:,.1f} s each time.",
            StreamedWarning,
        )
        return StreamedBits(card, features, sender, *more)
