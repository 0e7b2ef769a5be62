"""Stores on the card: columns of bits or of bin numbers, which are counted where they are.

A store never changes. `CountedBits` and `CountedCodes` are a store's columns over some rows. They
have the methods of `ExaminedColumns`, in two groups:

    count      rows by column, bin, outcome and environment, as a `CountCube` in this memory
    examine    which rules on the columns are good, found by the card, so that no counts are sent

Rows are sorted by outcome and environment on the card; those of the same two are a *segment*. What
is typed `Any` is an array on the card.

    store in memory    store on the card    over some rows
    BitStore       ->  CardBits         ->  CountedBits
                       StreamedBits     ->  CountedBits       where the columns do not fit
    CodeStore      ->  CardCodes        ->  CountedCodes
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from icscm._constants import BLOCK_CELLS, COUNT_DTYPE
from icscm._types import Array, CountArray, IntArray
from icscm.engine.counts import ORDERED, BinnedColumns, CountCube, Layout
from icscm.engine.stores import BitStore, CodeStore, Rows, Store
from icscm.engine.threads import divide_up, split_evenly
from icscm.exceptions import StreamedWarning, warn
from icscm.sources.gpu import card as cards
from icscm.sources.gpu.card import Card, translate_card_errors
from icscm.sources.gpu.launching import DeviceQuery, Segments, count_padded, find_tiles
from icscm.sources.gpu.sending import Sender, UnsortedBits
from icscm.sources.gpu.shortlisting import CardShortlister, ExaminedColumns

# Counts of a scan of binned columns up to which the card examines them; more come in blocks.
MAX_EXAMINED_COUNTS: Final = 2**28
# Bytes a second from this memory to the card, read, sent and sorted: as measured, low.
SENT_BYTES_PER_SECOND: Final = 8e9


# --- columns of bits --------------------------------------------------------------


@dataclass(eq=False)
class CardBits(Store):
    """Columns of two bins on the card.

    `words` are uint32 (column, word): a bit for each of the sorted rows, padded to a multiple of 16
    bytes. `n_copies` is how many identical columns each stands for, None where no two are.
    """

    card: Card
    columns: IntArray
    words: Any
    rows: Rows
    layout: Layout = ORDERED
    n_copies: Any = None
    n_bins: int = 2
    n_threads: int = 1
    has_shortlister: bool = True

    def __post_init__(self) -> None:
        if self.n_copies is not None:
            self.n_copies = self.card.send(self.n_copies)

    @property
    def n_bytes(self) -> int:
        return int(self.words.nbytes)

    def find_codes(self, column: int) -> Array:
        (words,) = self.card.bring(self.read_words(np.searchsorted(self.columns, [column])))
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: len(self.rows)]

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        return CountedBits(self, rows).make_all_cubes()

    def make_shortlister(self, rows: Rows) -> CardShortlister:
        return CardShortlister(CountedBits(self, rows))

    def read_words(self, columns: Any) -> Any:
        """Return the words of some columns, a slice or an array, on the card."""
        return self.card.take(self.words, columns)

    @property
    def n_read_at_once(self) -> int:
        """How many columns to read at a time, at the most."""
        return max(1, len(self.columns))


@dataclass(eq=False)
class StreamedBits(CardBits):
    """Columns that are too many for the card, and are sent whenever they are read.

    In place of the words there is a `Sender`, which knows where they lie in this memory.
    """

    words: Sender

    @property
    def n_bytes(self) -> int:
        return self.words.unsorted.n_bytes

    def read_words(self, columns: Any) -> Any:
        return self.words.send(columns)

    @property
    def n_read_at_once(self) -> int:
        return self.words.n_at_a_time


class CountedBits(ExaminedColumns):
    """Columns of bits, counted over some rows."""

    def __init__(self, store: CardBits, rows: Rows) -> None:
        self.card = store.card
        self._store = store
        #: the counted rows of each segment, in this memory
        self._n_rows = rows.sizes

        all_rows = store.rows
        mask = _make_mask(rows, n_rows_in_all=len(all_rows))
        self.segments = Segments(
            n_rows=self.card.send(rows.sizes.astype(np.int32)),
            n_environments=len(rows.sizes) // 2,
            n_by_outcome=count_by_outcome(rows),
            mask=self.card.send(mask),
            bounds=self.card.send(all_rows.bounds.astype(np.int32)),
            tiles=self.card.send(find_tiles(all_rows)),
        )

    def __len__(self) -> int:
        return len(self._store.columns)

    @property
    def can_be_examined(self) -> bool:
        return self._store.layout == ORDERED

    @property
    def n_copies(self) -> Any:
        return self._store.n_copies

    def read_parts(self, size: int | None = None) -> Iterator[tuple[slice, Any]]:
        size = min(size or len(self), self._store.n_read_at_once)
        for start in range(0, len(self), max(1, size)):
            part = slice(start, min(len(self), start + size))
            yield part, self._store.read_words(part)

    def examine(self, content: Any, query: DeviceQuery, *results: Any) -> None:
        self.card.kernels.judge_bits(content, self.segments, query, *results)

    def count_ones(self, columns: Any) -> Any:
        return self._count_ones_of(self._store.read_words(columns))

    def _count_ones_of(self, words: Any) -> Any:
        """Count the ones of some columns, given by their words, by (column, segment)."""
        ones = self.card.xp.empty((len(words), len(self._n_rows)), dtype=np.int32)
        self.card.kernels.count_bits(words, self.segments, ones)
        return ones

    def widen(self, columns: IntArray) -> IntArray:
        return columns

    def make_all_cubes(self) -> Iterator[CountCube]:
        with translate_card_errors():
            size = max(1, BLOCK_CELLS // (2 * len(self._n_rows)))
            for part, words in self.read_parts(size):
                yield self._make_cube(part, words)

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        with translate_card_errors():
            n_cells = len(columns) * 2 * len(self._n_rows)
            for block in split_evenly(len(columns), divide_up(n_cells, BLOCK_CELLS)):
                yield self._make_cube(columns[block], self._store.read_words(columns[block]))

    def _make_cube(self, columns: Any, words: Any) -> CountCube:
        """Make the counts of some columns, given by their numbers and their words."""
        ones = self.card.bring(self._count_ones_of(words)).astype(COUNT_DTYPE)
        zeros = self._n_rows - ones
        # the first bin is that of the zeros; segments are (outcome, environment)
        by_segment = np.stack((zeros, ones), axis=1)
        by_outcome = by_segment.reshape(len(by_segment), 2, 2, -1)
        return CountCube(self._store.columns[columns], by_outcome, self._store.layout)


def _make_mask(rows: Rows, *, n_rows_in_all: int) -> Array:
    """Make words with a bit for each of all rows, set for some of them, in whole chunks."""
    bits = np.zeros(count_padded(n_rows_in_all), dtype=np.uint8)
    bits[:n_rows_in_all] = rows.mark(n_rows_in_all)
    return np.packbits(bits, bitorder="little").view(np.uint32)


# --- columns of bin numbers -------------------------------------------------------


@dataclass(eq=False)
class CardCodes(Store):
    """Columns of at most 256 bins on the card: `codes` are uint8 (column, sorted row)."""

    card: Card
    columns: IntArray
    codes: Any
    rows: Rows
    layout: Layout
    n_bins: int
    n_threads: int = 1
    has_shortlister: bool = True

    @property
    def n_bytes(self) -> int:
        return int(self.codes.nbytes)

    def find_codes(self, column: int) -> Array:
        return self.card.bring(self.codes[int(np.searchsorted(self.columns, column))])

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        return CountedCodes(self, rows).make_all_cubes()

    def make_shortlister(self, rows: Rows) -> CardShortlister:
        return CardShortlister(CountedCodes(self, rows))


class CountedCodes(ExaminedColumns):
    """Columns of bin numbers, counted over some rows.

    They are examined as columns of zeros and ones, one for each cut: the ones lie above it. With
    bins 0, 1 and 2, for example:

        column of the store      0                   1
        cut                      0 | 1, 0 1 | 2      0 | 1, 0 1 | 2
        examined column          0      1            2      3
    """

    n_copies = None

    def __init__(self, store: CardCodes, rows: Rows) -> None:
        self.card = store.card
        self._store = store
        self._n_segments = len(rows.sizes)
        self._n_cuts = store.n_bins - 1
        self._bounds = self.card.send(rows.bounds)
        self._index = None if rows.index is None else self.card.send(rows.index)
        self.segments = Segments(
            n_rows=self.card.send(rows.sizes.astype(np.int32)),
            n_environments=len(rows.sizes) // 2,
            n_by_outcome=count_by_outcome(rows),
        )

    def __len__(self) -> int:
        return len(self._store.columns) * self._n_cuts

    @property
    def can_be_examined(self) -> bool:
        return self._store.layout == ORDERED and len(self) * self._n_segments <= MAX_EXAMINED_COUNTS

    def read_parts(self, size: int | None = None) -> Iterator[tuple[slice, Any]]:
        size = max(1, size or len(self))
        for start in range(0, len(self), size):
            part = slice(start, min(len(self), start + size))
            yield part, self._ones_before[part]

    def examine(self, content: Any, query: DeviceQuery, *results: Any) -> None:
        self.card.kernels.judge_counts(content, self.segments, query, *results)

    def count_ones(self, columns: Any) -> Any:
        return self.card.xp.diff(self.card.take(self._ones_before, columns), axis=1)

    def widen(self, columns: IntArray) -> IntArray:
        # the search sees all cuts of a column together
        columns_of_store = self._find_columns_of_store(columns)
        first_cuts = columns_of_store[:, np.newaxis] * self._n_cuts
        return (first_cuts + np.arange(self._n_cuts)).ravel()

    def _find_columns_of_store(self, columns: IntArray) -> IntArray:
        """Find the columns of the store of which some examined columns are cuts."""
        return np.unique(columns // self._n_cuts)

    def make_all_cubes(self) -> Iterator[CountCube]:
        n_columns = len(self._store.columns)
        n_cells = n_columns * self._store.n_bins * self._n_segments
        with translate_card_errors():
            for block in split_evenly(n_columns, divide_up(n_cells, BLOCK_CELLS)):
                yield self._make_cube(block, self._count(block))

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        with translate_card_errors():
            columns_of_store = self._find_columns_of_store(columns)
            if len(columns_of_store):
                counts = self._counts[self.card.send(columns_of_store)]
                yield self._make_cube(columns_of_store, counts)

    @cached_property
    def _counts(self) -> Any:
        """The counts of all columns by (column, bin, segment), on the card."""
        return self._count(slice(0, len(self._store.columns)))

    @cached_property
    def _ones_before(self) -> Any:
        """The ones of each cut before the start of each segment, and of all, on the card.

        counts of a column            rows above each cut         ones before each segment
                 segment 0   1                  0   1                       0   1   end
        bin 0            5   1        0 | 1     6   3              0 | 1    0   6   9
        bin 1            4   2        0 1 | 2   2   1              0 1 | 2  0   2   3
        bin 2            2   1
        """
        xp = self.card.xp
        # Above a cut are all bins after it: sums from the highest bin down to the second.
        highest_bin_first = self._counts[:, 1:][:, ::-1]
        n_above_highest_first = xp.cumsum(highest_bin_first, axis=1, dtype=np.int32)
        n_above = n_above_highest_first[:, ::-1]
        by_cut = n_above.reshape(len(self), -1)

        ones_before = xp.zeros((len(self), self._n_segments + 1), dtype=np.int32)
        ones_before[:, 1:] = xp.cumsum(by_cut, axis=1, dtype=np.int32)
        return ones_before

    def _count(self, block: slice) -> Any:
        """Count some columns by (column, bin, segment), on the card."""
        shape = (block.stop - block.start, self._store.n_bins, self._n_segments)
        counts = self.card.xp.empty(shape, dtype=np.int32)
        codes = self._store.codes[block]
        self.card.kernels.count_codes(codes, self._index, self._bounds, counts)
        return counts

    def _make_cube(self, columns: Any, counts_on_card: Any) -> CountCube:
        """Make a cube of the counts of some columns, given by their numbers."""
        counts: CountArray = self.card.bring(counts_on_card).astype(COUNT_DTYPE)
        by_outcome = counts.reshape(*counts.shape[:2], 2, -1)
        return CountCube(self._store.columns[columns], by_outcome, self._store.layout)


def count_by_outcome(rows: Rows) -> tuple[int, int]:
    """Count some rows by outcome."""
    n_negative, n_positive = rows.sizes.reshape(2, -1).sum(axis=1).tolist()
    return n_negative, n_positive


# --- moving stores to the card ----------------------------------------------------


def put_on_card(card: Card, store: Store, rows: Rows, columns: BinnedColumns) -> Store:
    """Return a store of the same columns on the card, which counts them faster.

    The card's kernels read bits, and bin numbers of a byte: a store of more than 256 bins is
    returned as it is, and counted by the processor.
    """
    if isinstance(store, BitStore):
        return _put_bit_store(card, store, rows, n_copies=columns.count_copies(store.columns))
    if isinstance(store, CodeStore) and store.codes.dtype == np.uint8:
        return _put_code_store(card, store, rows)
    return store


def _put_bit_store(card: Card, store: BitStore, rows: Rows, *, n_copies: IntArray) -> CardBits:
    """Put columns of bits, which are words of 64 bits in memory and of 32 on the card."""
    n_columns, n_long_words = store.words.shape
    unsorted = UnsortedBits(
        n_columns=n_columns,
        n_words=2 * n_long_words,
        read=store.words.__getitem__,
        bit_of_row=store.bits,
    )
    return put_bits(card, store.columns, unsorted, rows, store.layout, n_copies)


def _put_code_store(card: Card, store: CodeStore, rows: Rows) -> CardCodes:
    """Put columns of bin numbers; raises where they do not fit."""
    cards.check_room(card, store.codes.nbytes)
    with translate_card_errors():
        codes = card.send(store.codes)
    return CardCodes(
        card=card,
        columns=store.columns,
        codes=codes,
        rows=rows,
        layout=store.layout,
        n_bins=store.n_bins,
    )


def put_bits(
    card: Card,
    columns: IntArray,
    unsorted: UnsortedBits,
    rows: Rows,
    layout: Layout = ORDERED,
    n_copies: IntArray | None = None,
) -> CardBits:
    """Put columns of bits on the card, or send them for each scan where they do not fit.

    Their bits are sorted by outcome and environment on the card. `n_copies` is how many identical
    columns of the table each of them stands for; None means one.
    """
    has_copies = n_copies is not None and not (n_copies == 1).all()
    kept_copies = n_copies if has_copies else None
    with translate_card_errors():
        sender = Sender(card, unsorted)
        if cards.has_room(card, unsorted.n_bytes):
            return CardBits(
                card=card,
                columns=columns,
                words=sender.send(slice(0, unsorted.n_columns)),
                rows=rows,
                layout=layout,
                n_copies=kept_copies,
            )

        _warn_that_bits_are_streamed(card, unsorted.n_bytes)
        return StreamedBits(
            card=card,
            columns=columns,
            words=sender,
            rows=rows,
            layout=layout,
            n_copies=kept_copies,
        )


def _warn_that_bits_are_streamed(card: Card, n_bytes: int) -> None:
    """Warn that columns do not fit on the card, and how long it takes to send them each time."""
    seconds = n_bytes / SENT_BYTES_PER_SECOND
    warn(
        f"The columns take {n_bytes / 1e9:,.1f} GB and {card.count_free() / 1e9:,.1f} "
        "GB of the card's memory are free: they are sent to it again for each rule, which "
        f"takes about {seconds:,.1f} s each time.",
        StreamedWarning,
    )
