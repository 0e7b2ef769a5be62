"""Columns on their way to the card: read where they lie, sent, and sorted there."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from icscm._types import Array, IntArray
from icscm.engine.threads import count_threads, run_tasks, split_evenly
from icscm.sources.gpu.card import Card
from icscm.sources.gpu.segments import count_chunks

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

    `read` gives the uint32 words of some columns, a slice; slices that start at multiples of
    `multiple` are read the fastest. Sorted row i is bit `source[i]` of a column.
    """

    n_columns: int
    n_words: int
    read: Callable[[slice], Array]
    source: Array
    multiple: int = 1

    @property
    def n_bytes(self) -> int:
        """What they take on the card."""
        return 16 * self.n_columns * count_chunks(len(self.source))


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

    def make_room(self, n_columns: int) -> Any:
        """Memory on the card for so many sorted columns."""
        n_words = 4 * count_chunks(len(self.unsorted.source))
        return self._card.xp.empty((n_columns, n_words), dtype=np.uint32)

    def send_all(self) -> Any:
        """All columns on the card."""
        out = self.make_room(self.unsorted.n_columns)
        for start in range(0, len(out), self.size):
            part = slice(start, min(len(out), start + self.size))
            self.send(part, out[part])
        return out

    def send(self, columns: slice, out: Any) -> None:
        """Some columns, no more than go at a time, sorted into memory on the card."""
        self._go(out, lambda host: self._read(columns, host))

    def send_some(self, columns: IntArray) -> Any:
        """Columns from anywhere, on the card."""
        out = self.make_room(len(columns))
        for start in range(0, len(columns), self.size):
            some = columns[start : start + self.size].tolist()

            def read(host: Array, some: list[int] = some) -> None:
                for row, column in zip(host, some, strict=True):
                    row[:] = self.unsorted.read(slice(column, column + 1))[0]

            self._go(out[start : start + len(some)], read)
        return out

    def _go(self, out: Any, read: Callable[[Array], None]) -> None:
        with self._lock:  # trees of a forest may ask at the same time
            lane = self._lanes[self._n_sent % len(self._lanes)]
            self._n_sent += 1
            lane.wait()
            read(lane.host[: len(out)])
            lane.sort(len(out), self._source, out)

    def _read(self, columns: slice, host: Array) -> None:
        def read_part(part: slice) -> None:
            own = slice(columns.start + part.start, columns.start + part.stop)
            host[part] = self.unsorted.read(own)

        parts = split_evenly(len(host), self._n_threads, self.unsorted.multiple)
        run_tasks(read_part, parts, self._n_threads)
