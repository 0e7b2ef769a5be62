"""The card, and screening on it: from all candidates to the few that the search must test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from icscm._constants import BLOCK_CELLS, COUNT_DTYPE
from icscm._lazy import special
from icscm._types import Array, IntArray
from icscm.engine.counts import (
    ORDERED,
    CandidateCriteria,
    CountCube,
    Layout,
    Shortlist,
    ShortlistOrder,
    ShortlistQuery,
)
from icscm.engine.stores import Rows, Store
from icscm.engine.threads import split_evenly
from icscm.exceptions import IcscmError, Parameter
from icscm.sources.gpu import launching
from icscm.sources.gpu.launching import DeviceQuery, Key, Segments, count_padded, find_tiles

# Bytes of columns from which on a search on the card is faster.
_WORTH_SENDING = 2**27
# Memory for screening in addition to a share of the columns: p-values, and columns being sent.
_COMPUTED_BYTES = 2**30
_CUDA, _CPU = Parameter("device", "cuda"), Parameter("device", "cpu")


class Card(NamedTuple):
    """A card, or a substitute in tests: `xp` is CuPy or NumPy, `kernels` as in `launching`."""

    xp: Any
    special: Any
    kernels: Any
    count_free: Callable[[], int]

    def send(self, array: Array) -> Any:
        """The array on the card."""
        return self.xp.asarray(array)

    def take(self, array: Any, rows: Any) -> Any:
        """Some rows of an array on the card: a slice, or their numbers, wherever they are."""
        return array[rows if isinstance(rows, slice) else self.send(rows)]

    def bring(self, array: Any) -> Array:
        """The array in this memory."""
        return np.asarray(array.get() if hasattr(array, "get") else array)


def choose_card(device: str, n_bytes: int) -> Card | None:
    """The card for so many bytes of columns; None where they stay with the processor.

    `"auto"` means a card if there is one that has room for them, and they are enough to pay.
    """
    if device == "cpu" or (device == "auto" and n_bytes < _WORTH_SENDING):
        return None
    try:
        card = find_card()
    except IcscmError:
        if device == "auto":
            return None
        raise
    return card if device == "cuda" or has_room(card, n_bytes) else None


def has_room(card: Card, n_bytes: int) -> bool:
    """Whether columns of so many bytes fit, with the results computed from them."""
    return n_bytes + n_bytes // 16 + _COMPUTED_BYTES <= card.count_free()


def check_room(card: Card, n_bytes: int) -> None:
    """Raise if a table that must be on the card at once does not fit."""
    if not has_room(card, n_bytes):
        size = f"the table takes {n_bytes / 1e9:,.1f} GB of the card's memory, of which "
        free = f"{card.count_free() / 1e9:,.1f} GB are free; give fewer columns, or leave "
        raise IcscmError(size, free, _CPU)


@cache
def find_card() -> Card:
    """The first card of this machine.

    Raises
    ------
    IcscmError
        If there is none that can be used; the message says why.
    """
    try:
        import cupy
        from cupyx.scipy import special as on_card
    except ImportError:
        why = " needs CuPy, which is not installed: pip install 'icscm[cuda]'"
        raise IcscmError(_CUDA, why) from None
    check_card(cupy)
    with translate_card_errors():
        kernels = launching.CompiledKernels(cupy)
    pool = cupy.get_default_memory_pool()
    device = cupy.cuda.Device
    return Card(cupy, on_card, kernels, lambda: int(device().mem_info[0] + pool.free_bytes()))


def check_card(cupy: Any) -> None:
    """Raise if CuPy finds no card that it can use."""
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        why = str(error).partition(":")[2].strip() or str(error)
        reason = f" found no NVIDIA card that it can use ({why}); check the driver with "
        raise IcscmError(_CUDA, reason, "nvidia-smi, or leave ", _CPU) from None
    if n_cards == 0:
        raise IcscmError(_CUDA, " found no NVIDIA card; leave ", _CPU)


@contextmanager
def translate_card_errors() -> Iterator[None]:
    """Turn CuPy's errors for a full or failing card into one clear sentence."""
    try:
        yield
    except Exception as error:
        kind = type(error).__name__
        if kind == "OutOfMemoryError":
            full = f"the card's memory is full ({error}); free some, or leave "
            raise IcscmError(full, _CPU) from None
        if kind in ("CUDARuntimeError", "CUDADriverError", "CompileException", "NVRTCError"):
            failed = f"the card failed ({str(error).strip().splitlines()[0]})"
            raise IcscmError(f"{failed}; update its driver, or leave ", _CPU) from None
        raise


# Columns that tie compared at a time.
_COMPARED = 2**14
# Columns whose p-values are held at a time.
_TESTED = 2**22
# Numbers whose logarithms are sent along: leaves are seldom larger.
_LOGARITHMS = 2**16
# p-values computed on the card that differ by less may be ordered differently on the processor.
_P_VALUE_SLACK = 1e-6


class Screened(NamedTuple):
    """Results for all candidates, on the card: ones by label, and codes, of each column."""

    totals: Any
    codes: Any
    query: DeviceQuery

    def take(self, columns: Any) -> "Screened":
        """Those of some columns."""
        return Screened(self.totals[columns], self.codes[columns], self.query)

    def count_ties(self, n_alike: Any, best: Key) -> int:
        """Rules that tie with the best, identical ones included."""
        n_ties = 0
        for sign in (0, 1):
            utility, margin = launching.compute_keys(self.totals, self.query, sign)
            is_tied = (self.codes >> (4 * sign)) & 15 == launching.ALLOWED
            is_tied = is_tied & (utility == best.utility) & (margin == best.margin)
            n_ties += int((is_tied if n_alike is None else is_tied * n_alike).sum())
        return n_ties


@dataclass(eq=False)
class CardBits(Store):
    """Two-valued columns on the card, which also examines candidates: a `Shortlister`.

    `words` are uint32 (feature, word), a bit a sample in the order of the sorted rows, 16 bytes at
    a time; `n_alike` is how many identical features each stands for.
    """

    card: Card
    features: IntArray
    words: Any
    rows: Rows
    layout: Layout = ORDERED
    n_alike: Any = None
    n_bins: int = 2
    n_threads: int = 1
    has_shortlister: bool = True

    def __post_init__(self) -> None:
        self.n_alike = None if self.n_alike is None else self.card.send(self.n_alike)
        self._set_in_play(self.rows)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def n_bytes(self) -> int:
        return int(self.words.nbytes)

    def find_codes(self, feature: int) -> Array:
        at = np.searchsorted(self.features, [feature])
        (words,) = self.card.bring(self.take(at))
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: len(self.rows)]

    def restrict(self, rows: Rows) -> Self:
        """The same columns with just these rows in play; the two share the columns."""
        restricted = copy(self)
        restricted._set_in_play(rows)
        return restricted

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        return self.restrict(rows).counts()

    def _set_in_play(self, rows: Rows) -> None:
        bits = np.zeros(count_padded(len(self.rows)), dtype=np.uint8)
        bits[slice(len(rows)) if rows.index is None else rows.index] = 1
        mask = np.packbits(bits, bitorder="little").view(np.uint32)
        bounds, tiles = self.rows.bounds.astype(np.int32), find_tiles(self.rows)
        self.segments = self.make_segments(rows, mask, bounds, tiles)
        self._in_play = rows.sizes

    def take(self, columns: Any) -> Any:
        """What is judged of some columns, a slice or an array, on the card."""
        return self.card.take(self.words, columns)

    def judge(self, words: Any, query: DeviceQuery, *out: Any) -> None:
        """Code the two rules on each of some columns."""
        self.card.kernels.judge_bits(words, self.segments, query, *out)

    def count(self, columns: Any) -> Any:
        """Ones in play of some columns, by segment; on the card."""
        return self._count(self.take(columns))

    def _count(self, words: Any) -> Any:
        out = self.card.xp.empty((len(words), len(self._in_play)), dtype=np.int32)
        self.card.kernels.count_bits(words, self.segments, out)
        return out

    def counts(self) -> Iterator[CountCube]:
        """The counts of all columns over the rows in play."""
        with translate_card_errors():
            for part, words in self.parts(max(1, BLOCK_CELLS // (2 * len(self._in_play)))):
                yield self._make_cube(part, words)

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        """The counts of some columns, for the search."""
        n_cells = len(columns) * 2 * len(self._in_play)
        for block in split_evenly(len(columns), -(-n_cells // BLOCK_CELLS)):
            yield self._make_cube(columns[block], self.take(columns[block]))

    def _make_cube(self, columns: Any, words: Any) -> CountCube:
        ones = self.card.bring(self._count(words)).astype(COUNT_DTYPE)
        cube = np.stack((self._in_play - ones, ones), axis=1)
        n_alike = None
        if self.n_alike is not None:
            n_alike = self.card.bring(self.card.take(self.n_alike, columns))
        counts = cube.reshape(len(cube), 2, 2, -1)
        return CountCube(self.features[columns], counts, self.layout, n_alike)

    def widen(self, columns: IntArray) -> IntArray:
        """These, and all others that the search will see with them."""
        return columns

    def _can_judge(self) -> bool:
        return self.layout == ORDERED

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        """What is judged of all columns, so many at a time."""
        size = max(1, most or len(self))
        for start in range(0, len(self), size):
            part = slice(start, min(len(self), start + size))
            yield part, self.take(part)

    def make_segments(self, rows: Rows, *places: Array) -> Segments:
        """Where the samples in play are; `places` are those of bits."""
        n_in_play = rows.sizes
        n_by_label = tuple(n_in_play.reshape(2, -1).sum(axis=1).tolist())
        in_play, *more = map(self.card.send, (n_in_play.astype(np.int32), *places))
        return Segments(in_play, len(n_in_play) // 2, n_by_label, *more)

    def make_query(self, criteria: CandidateCriteria) -> DeviceQuery:
        """Send the arrays of the criteria to the card."""
        n_negative, n_positive = self.segments.n_by_label[:: -1 if criteria.is_inverted else 1]
        n_logarithms = 1
        if criteria.statistic == "g":
            n_logarithms = min(_LOGARITHMS, n_negative + n_positive + 1)
        numbers = np.arange(n_logarithms)
        return DeviceQuery(
            criteria=criteria,
            passes_below=self.card.send(criteria.passes_below),
            fails_from=self.card.send(criteria.fails_from),
            logarithms=self.card.send(special.xlogy(numbers, numbers)),
            replication_factors=self.card.send(criteria.replication_factors),
            positive_rates=self.card.send(criteria.positive_rates),
            n_negative=n_negative,
            n_positive=n_positive,
        )

    def screen(self, criteria: CandidateCriteria) -> "Screened":
        """One scan of all columns."""
        query = self.make_query(criteria)
        totals = self.card.xp.empty((len(self), 2), dtype=np.int32)
        codes = self.card.xp.empty(len(self), dtype=np.uint8)
        for part, words in self.parts():
            self.judge(words, query, totals[part], codes[part])
        return Screened(totals, codes, query)

    def make_shortlister(self, rows: Rows) -> "CardBits":
        return self.restrict(rows)

    @translate_card_errors()
    def shortlist(self, query: ShortlistQuery) -> Shortlist:
        """List the columns that can matter to a search; all where it cannot decide."""
        if not self._can_judge():
            return Shortlist(cubes=self.counts())
        if query.order is ShortlistOrder.P_VALUE:
            return Shortlist(cubes=self._list_nearest(query.criteria, query.n_rejected))
        return self._list_best(query)

    def _list_best(self, question: ShortlistQuery) -> Shortlist:
        """List what may be chosen, and the rejected of largest utility."""
        screened, kernels = self.screen(question.criteria), self.card.kernels
        best = kernels.find_next(*screened, (launching.ALLOWED,), launching.FIRST)
        n_ties, tied = self._list_ties(screened, best, question.n_ties)
        rejected, key = [], launching.FIRST  # those of largest utility
        for _ in range(question.n_rejected):
            key = kernels.find_next(*screened, launching.REJECTED, key)
            if key is None:
                break
            rejected.append(key.order // 2)
        open_ones = self.card.bring(kernels.list_columns(*screened, (launching.OPEN,)))
        some = np.concatenate((open_ones, tied, np.array(rejected, dtype=np.int64)))
        listed = self.widen(np.unique(some))
        # listed candidates are in the counts; the tally is of all others
        at = self.card.send(listed)
        own, n_alike = screened.take(at), None if self.n_alike is None else self.n_alike[at]
        tally = kernels.tally_codes(screened.codes, self.n_alike)
        tally = tally - kernels.tally_codes(own.codes, n_alike)
        refused = {launching.CODES[code]: int(tally[code]) for code in launching.REJECTED}
        n_candidates = int(tally.sum() - tally[launching.NONE])
        n_ties -= 0 if best is None else own.count_ties(n_alike, best)
        own_key = None if best is None else (best.utility, best.margin)
        return Shortlist(
            cubes=self.make_cubes(listed),
            n_candidates=n_candidates,
            n_rejected=refused,
            n_ties=n_ties,
            best=own_key,
        )

    def _list_ties(self, screened: "Screened", best: Key | None, most: int) -> tuple[int, IntArray]:
        """How many rules tie with the best, and the first of those with the same leaf."""
        if best is None:
            return 0, np.empty(0, dtype=np.int64)
        holders = self.card.kernels.list_columns(*screened, (launching.ALLOWED,), best)
        n_alike = None if self.n_alike is None else self.n_alike[holders]
        n_ties = screened.take(holders).count_ties(n_alike, best)
        in_play, (leaf,) = self.segments.in_play, self.count(holders[:1])
        first, sign = divmod(best.order, 2)
        assert first == int(holders[0])
        leaf = leaf if sign else in_play - leaf
        alike = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(holders), _COMPARED):
            some = holders[start : start + _COMPARED]
            ones = self.count(some)
            is_alike = (ones == leaf).all(axis=1) | (in_play - ones == leaf).all(axis=1)
            alike.append(self.card.bring(some[is_alike]))
            if sum(map(len, alike)) >= most:
                break
        return n_ties, np.concatenate(alike)[:most]

    def _list_nearest(self, criteria: CandidateCriteria, n: int) -> Iterator[CountCube]:
        """The columns of the n rules that the test rejects, or may, with the largest p-values."""
        card, query = self.card, self.make_query(criteria)
        found: list[tuple[IntArray, Array]] = []
        opened = [np.empty(0, dtype=np.int64)]
        for part, words in self.parts(_TESTED):
            shape = len(words), 2
            totals, codes = card.xp.empty(shape, np.int32), card.xp.empty(len(words), np.uint8)
            statistics, dofs = card.xp.empty(shape), card.xp.empty(shape, dtype=np.int32)
            self.judge(words, query, totals, codes, statistics, dofs)
            p_values = card.special.chdtrc(card.xp.maximum(dofs, 1), statistics)
            halves = card.xp.stack((codes & 15, codes >> 4), axis=1)
            p_values = card.xp.where(halves == launching.DEPENDENT, p_values, -1.0).max(axis=1)
            last = min(n, len(words)) - 1
            least = -card.xp.partition(-p_values, last)[last]
            is_near = (p_values >= least * (1 - _P_VALUE_SLACK)) & (p_values >= 0)
            near = card.xp.flatnonzero(is_near)
            found.append((part.start + card.bring(near), card.bring(p_values[near])))
            is_open = (halves == launching.OPEN).any(axis=1)
            opened.append(part.start + card.bring(card.xp.flatnonzero(is_open)))
        near, p_values = (np.concatenate(each) for each in zip(*found, strict=True))
        if len(near) > n:
            least = np.partition(p_values, -n)[-n]
            near = near[p_values >= least * (1 - _P_VALUE_SLACK)]
        return self.make_cubes(np.union1d(near, np.concatenate(opened)))
