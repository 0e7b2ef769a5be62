"""Sends columns to the card: while some of them are read, others are on their way.

Two *lanes* lead to the card. Each has pinned memory, from which the card reads while the processor
does something else: it fills the other lane.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np

from icscm._types import Array
from icscm.engine.threads import count_threads, run_tasks, split_evenly
from icscm.sources.gpu.card import Card
from icscm.sources.gpu.launching import count_padded

# Bytes on one lane at a time.
LANE_BYTES: Final = 2**27
# Threads that read: they outrun the bus.
MAX_READERS: Final = 8


def send_plain(card: Card, array: Array) -> Any:
    """Send an array of floats, contiguous, as it is."""
    on_card = card.xp.empty(array.shape, dtype=array.dtype)
    words = array.reshape(-1).view(np.uint32)
    words_on_card = on_card.reshape(-1).view(np.uint32)

    size = min(len(words), LANE_BYTES // 4)
    n_threads = min(MAX_READERS, count_threads(-1))
    lanes = card.kernels.make_lanes((size,))
    for number, start in enumerate(range(0, len(words), size)):
        part = words[start : start + size]
        lane = lanes[number % len(lanes)]
        lane.wait()

        def copy(some: slice, part: Array = part, host: Array = lane.host) -> None:
            host[some] = part[some]

        run_tasks(copy, split_evenly(len(part), n_threads), n_threads)
        lane.put(words_on_card[start : start + size])
    for lane in lanes:
        lane.wait()
    return on_card


@dataclass(frozen=True, eq=False)
class Unsorted:
    """Columns of bits as they are in memory or in a file, where rows are in another order.

    Parameters
    ----------
    n_columns : int
        The number of columns.
    n_words : int
        Words of 32 bits of a column.
    read : callable
        Returns the words of some columns, a slice.
    source : array of int
        The bit of each of the sorted rows.
    multiple : int
        Slices that start at multiples of it are read the fastest.
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
    """Sends columns of bits to the card, where their rows are sorted."""

    def __init__(self, card: Card, unsorted: Unsorted) -> None:
        self.unsorted = unsorted
        self._card = card

        n_at_a_time = max(1, LANE_BYTES // max(1, 4 * unsorted.n_words))
        n_at_a_time = max(1, n_at_a_time // unsorted.multiple) * unsorted.multiple
        #: columns that are sent at a time
        self.size = max(1, min(n_at_a_time, unsorted.n_columns))

        self._lanes = card.kernels.make_lanes((self.size, unsorted.n_words))
        self._source = card.send(np.asarray(unsorted.source, dtype=np.uint32))
        self._n_threads = min(MAX_READERS, count_threads(-1))
        self._n_sent = 0
        self._lock = Lock()

    def send(self, columns: Any) -> Any:
        """Send some columns, a slice or an array of their numbers; they arrive sorted."""
        numbers: Sequence[int]
        if isinstance(columns, slice):
            numbers = range(columns.start, columns.stop)
        else:
            numbers = self._card.bring(columns).tolist()

        n_words = count_padded(len(self.unsorted.source)) // 32
        on_card = self._card.xp.empty((len(numbers), n_words), dtype=np.uint32)
        for start in range(0, len(numbers), self.size):
            part = slice(start, min(len(numbers), start + self.size))
            with self._lock:  # a source may be asked from several threads
                lane = self._lanes[self._n_sent % len(self._lanes)]
                self._n_sent += 1
                lane.wait()
                self._read_into(lane.host, numbers[part])
                lane.sort(part.stop - start, self._source, on_card[part])
        return on_card

    def _read_into(self, host: Array, numbers: Sequence[int]) -> None:
        """Read some columns: neighbours by several threads, others one at a time."""

        def read_part(part: slice) -> None:
            columns = slice(numbers[part][0], numbers[part][-1] + 1)
            host[part] = self.unsorted.read(columns).view(np.uint32)

        if isinstance(numbers, range):
            parts = split_evenly(len(numbers), self._n_threads, self.unsorted.multiple)
            run_tasks(read_part, parts, self._n_threads)
        else:
            run_tasks(read_part, split_evenly(len(numbers), len(numbers), 1), 1)
