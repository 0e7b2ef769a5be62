"""Sends columns to the card: while some are on their way, the next ones are read.

The processor reads columns into a *staging buffer*. Its memory is pinned, which means that the card
can copy from it while the processor does something else. There are two, used in turn:

    buffer 0    read part 0 | send part 0 | read part 2 | send part 2 | ...
    buffer 1                | read part 1 | send part 1 | read part 3 | ...

Columns of bits are sorted by the card once they are there, see `UnsortedBits`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from threading import Lock
from typing import Any, Final

import numpy as np

from icscm._types import Array
from icscm.engine.threads import count_threads, run_tasks, split_evenly
from icscm.sources.gpu.card import Card
from icscm.sources.gpu.launching import count_padded

# Bytes of a staging buffer: much more than it costs to start a transfer.
BUFFER_BYTES: Final = 2**27
# Threads that read: with so many, the connection to the card is what takes the time.
MAX_READERS: Final = 8
# Buffers hold words of 32 bits, whatever is sent.
_WORD_BYTES = 4


# --- floats --------------------------------------------------------------------------------------


def send_plain(card: Card, array: Array) -> Any:
    """Return an array of floats, which must be contiguous, on the card.

    It is sent in parts, through two buffers in turn: while one is on its way, the next part is
    copied into the other. `wait` returns once a buffer has been sent.
    """
    on_card = card.xp.empty(array.shape, dtype=array.dtype)
    words = array.reshape(-1).view(np.uint32)
    words_on_card = on_card.reshape(-1).view(np.uint32)

    n_at_a_time = min(len(words), BUFFER_BYTES // _WORD_BYTES)
    buffers = card.kernels.make_staging_buffers((n_at_a_time,))
    for start, buffer in zip(range(0, len(words), n_at_a_time), cycle(buffers), strict=False):
        part = slice(start, start + n_at_a_time)
        buffer.wait()
        _copy_by_threads(words[part], buffer.host)
        buffer.send(words_on_card[part])
    for buffer in buffers:
        buffer.wait()
    return on_card


def _copy_by_threads(words: Array, target: Array) -> None:
    """Copy words to the beginning of another array."""

    def copy_part(part: slice) -> None:
        target[part] = words[part]

    n_threads = _count_readers()
    run_tasks(copy_part, split_evenly(len(words), n_threads), n_threads)


def _count_readers() -> int:
    return min(MAX_READERS, count_threads(-1))


# --- bits ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnsortedBits:
    """Columns of bits as they are in memory or in a file, where rows are in another order.

    On the card a column has its rows sorted by outcome and environment: row i is at bit i there,
    and at bit `bit_of_row[i]` here.

        a column here        0 1 1 0 1
        bit_of_row           4 0 2            rows at the bits 1 and 3 are not wanted
        ... on the card      1 0 1

    Parameters
    ----------
    n_columns : int
        The number of columns.
    n_words : int
        Words of 32 bits of a column.
    read : callable
        Returns the words (column, word) of some columns, a slice.
    bit_of_row : array of int
        The bit of each of the sorted rows.
    block_columns : int
        How many columns make a block: a file is read the fastest in whole blocks.
    """

    n_columns: int
    n_words: int
    read: Callable[[slice], Array]
    bit_of_row: Array
    block_columns: int = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the columns on the card."""
        return self.n_columns * count_padded(len(self.bit_of_row)) // 8


class Sender:
    """Sends any of some columns of bits to the card, where their rows are sorted."""

    def __init__(self, card: Card, unsorted: UnsortedBits) -> None:
        self.unsorted = unsorted
        #: how many columns are sent at a time
        self.n_at_a_time = _count_columns_at_a_time(unsorted)

        self._card = card
        self._bit_of_row = card.send(np.asarray(unsorted.bit_of_row, dtype=np.uint32))
        buffer_shape = self.n_at_a_time, unsorted.n_words
        self._buffers = cycle(card.kernels.make_staging_buffers(buffer_shape))
        # several threads may ask a source, but only one at a time may fill a buffer
        self._lock = Lock()

    def send(self, columns: Any) -> Any:
        """Return the words (column, word) of some columns on the card, their rows sorted.

        `columns` is a slice, or an array of their numbers. They are sent in parts, through two
        buffers in turn: while one is sent and sorted, the next part is read into the other.
        """
        numbers: Sequence[int]
        if isinstance(columns, slice):
            numbers = range(columns.start, columns.stop)
        else:
            numbers = self._card.bring(columns).tolist()

        n_sorted_words = count_padded(len(self.unsorted.bit_of_row)) // 32
        on_card = self._card.xp.empty((len(numbers), n_sorted_words), dtype=np.uint32)
        for start in range(0, len(numbers), self.n_at_a_time):
            part = slice(start, min(len(numbers), start + self.n_at_a_time))
            with self._lock:
                buffer = next(self._buffers)
                buffer.wait()
                self._read_into(buffer.host, numbers[part])
                buffer.send_and_sort(part.stop - part.start, self._bit_of_row, on_card[part])
        return on_card

    def _read_into(self, host: Array, numbers: Sequence[int]) -> None:
        """Read some columns into the first rows of a buffer."""
        if isinstance(numbers, range):
            self._read_neighbours_into(host, numbers)
            return
        for place, column in enumerate(numbers):
            words = self.unsorted.read(slice(column, column + 1))
            host[place : place + 1] = words.view(np.uint32)

    def _read_neighbours_into(self, host: Array, numbers: range) -> None:
        """Read columns that follow each other, by several threads."""

        def read_part(part: slice) -> None:
            columns = slice(numbers.start + part.start, numbers.start + part.stop)
            host[part] = self.unsorted.read(columns).view(np.uint32)

        n_threads = _count_readers()
        parts = split_evenly(len(numbers), n_threads, multiple=self.unsorted.block_columns)
        run_tasks(read_part, parts, n_threads)


def _count_columns_at_a_time(unsorted: UnsortedBits) -> int:
    """Count the columns that fit in a buffer: whole blocks, at least one, but not more than all."""
    column_bytes = max(1, _WORD_BYTES * unsorted.n_words)
    n_blocks = max(1, BUFFER_BYTES // column_bytes // unsorted.block_columns)
    n_at_a_time = n_blocks * unsorted.block_columns
    return max(1, min(n_at_a_time, unsorted.n_columns))
