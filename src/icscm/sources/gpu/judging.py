"""From columns that the card judged to the few that the search must see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import special

from icscm._types import Array, CountArray, IntArray
from icscm.engine.counts import CountCube, ScreenQuery, Shortlist
from icscm.sources.gpu.card import Card
from icscm.sources.gpu.segments import (
    ALLOWED,
    CODES,
    DEPENDENT,
    FIRST,
    NONE,
    OPEN,
    REFUSED,
    DeviceQuery,
    Key,
    Segments,
    compute_keys,
)

# Columns that tie looked at together.
_COMPARED = 2**14
# Columns whose p-values are held together.
_TESTED = 2**22
# Numbers whose logarithms are sent along: leaves are seldom larger.
_LOGARITHMS = 2**16
# p-values computed on the card that differ by less may be in another order here.
_P_VALUE_SLACK = 1e-6


class Columns(Protocol):
    """Columns that can be brought before the kernels: of bits, or all cuts of binned features."""

    card: Card
    n_alike: Any
    segments: Segments

    def __len__(self) -> int: ...

    def parts(self, most: int | None = None) -> Iterator[tuple[slice, Any]]:
        """All columns on the card, some after the other."""
        ...

    def judge(self, words: Any, query: DeviceQuery, *out: Any) -> None:
        """What becomes of the two rules on each of some columns."""
        ...

    def widen(self, columns: IntArray) -> IntArray:
        """These, and all others that the search will see with them."""
        ...

    def count(self, columns: Any) -> Array:
        """Ones in play of some columns, by segment; on the card."""
        ...

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        """The counts of some columns, for the search."""
        ...


class Judged(NamedTuple):
    """What became of all candidates: ones by label, and codes, of each column; on the card."""

    totals: Any
    codes: Any
    query: DeviceQuery


def make_query(columns: Columns, question: ScreenQuery) -> DeviceQuery:
    """The question with its critical values on the card."""
    n_by_label = columns.segments.n_by_label[:: -1 if question.inverted else 1]
    numbers = np.arange(min(_LOGARITHMS, sum(n_by_label) + 1) if question.test == "g" else 1)
    known = question.lower, question.upper, special.xlogy(numbers, numbers)
    return DeviceQuery(question, *map(columns.card.send, known), *n_by_label)


def judge(columns: Columns, question: ScreenQuery) -> Judged:
    """One look at all columns."""
    card, query = columns.card, make_query(columns, question)
    totals = card.xp.empty((len(columns), 2), dtype=np.int32)
    codes = card.xp.empty(len(columns), dtype=np.uint8)
    for part, words in columns.parts():
        out = totals[part], codes[part]
        columns.judge(words, query, *out)
    return Judged(totals, codes, query)


def shorten(columns: Columns, question: ScreenQuery) -> Shortlist:
    """The columns that can matter, and what the others amount to."""
    judged, kernels = judge(columns, question), columns.card.kernels
    best = kernels.find_next(*judged, (ALLOWED,), FIRST)
    n_ties, tied = _list_ties(columns, judged, best)
    open_ones = columns.card.bring(kernels.list_columns(*judged, (OPEN,)))
    listed = np.unique(np.concatenate((open_ones, tied, _list_refused(columns, judged))))
    listed = columns.widen(listed)
    tally = kernels.tally_codes(judged.codes, columns.n_alike)
    own, n_alike = _take(columns, judged, listed)
    tally = tally - _tally(own.codes, n_alike)
    n_ties -= 0 if best is None else _count_ties(own, n_alike, best)
    refused = {CODES[code]: int(tally[code]) for code in REFUSED}
    key = None if best is None else (best.utility, best.margin)
    n_candidates = int(tally.sum() - tally[NONE])
    return Shortlist(columns.make_cubes(listed), n_candidates, refused, n_ties, key)


def _list_refused(columns: Columns, judged: Judged) -> IntArray:
    """The columns of the refused rules of largest utility."""
    found, last = [], FIRST
    for _ in range(judged.query.question.n_rejected):
        key = columns.card.kernels.find_next(*judged, REFUSED, last)
        if key is None:
            break
        found.append(key.order // 2)
        last = key
    return np.array(found, dtype=np.int64)


def _list_ties(columns: Columns, judged: Judged, best: Key | None) -> tuple[int, IntArray]:
    """How many rules tie with the best, and the first of those that have its leaf."""
    if best is None:
        return 0, np.empty(0, dtype=np.int64)
    card = columns.card
    holders = card.kernels.list_columns(*judged, (ALLOWED,), best)
    own = Judged(judged.totals[holders], judged.codes[holders], judged.query)
    n_alike = None if columns.n_alike is None else columns.n_alike[holders]
    n_ties = _count_ties(own, n_alike, best)
    in_play, (leaf,) = columns.segments.in_play, columns.count(holders[:1])
    first, sign = divmod(best.order, 2)
    assert first == int(holders[0])
    leaf = leaf if sign else in_play - leaf
    alike, most = [np.empty(0, dtype=np.int64)], judged.query.question.n_ties
    for start in range(0, len(holders), _COMPARED):
        some = holders[start : start + _COMPARED]
        ones = columns.count(some)
        is_alike = (ones == leaf).all(axis=1) | (in_play - ones == leaf).all(axis=1)
        alike.append(card.bring(some[is_alike]))
        if sum(map(len, alike)) >= most:
            break
    return n_ties, np.concatenate(alike)[:most]


def _take(columns: Columns, judged: Judged, listed: IntArray) -> tuple[Judged, IntArray]:
    """What became of some columns, and how many identical ones each stands for; in this memory."""
    card, at = columns.card, columns.card.send(listed)
    own = Judged(card.bring(judged.totals[at]), card.bring(judged.codes[at]), judged.query)
    if columns.n_alike is None:
        return own, np.ones(len(listed), dtype=np.int64)
    return own, card.bring(columns.n_alike[at])


def _tally(codes: Array, n_alike: IntArray) -> CountArray:
    halves = np.concatenate((codes & 15, codes >> 4))
    found = np.bincount(halves, np.tile(n_alike, 2).astype(np.float64), len(CODES))
    return found.astype(np.int64)


def _count_ties(judged: Judged, n_alike: Any, best: Key) -> int:
    """Rules that tie with the best, identical ones included."""
    n_ties = 0
    for sign in (0, 1):
        utility, margin = compute_keys(judged.totals, judged.query, sign)
        is_tied = (judged.codes >> (4 * sign)) & 15 == ALLOWED
        is_tied = is_tied & (utility == best.utility) & (margin == best.margin)
        n_ties += int((is_tied if n_alike is None else is_tied * n_alike).sum())
    return n_ties


def list_nearest(columns: Columns, question: ScreenQuery) -> Iterator[CountCube]:
    """The columns of rules that the test refuses, or may refuse, with the largest p-values."""
    card, query, n = columns.card, make_query(columns, question), question.n_rejected
    found: list[tuple[IntArray, Array]] = []
    opened = [np.empty(0, dtype=np.int64)]
    for part, words in columns.parts(_TESTED):
        shape = len(words), 2
        totals, codes = card.xp.empty(shape, dtype=np.int32), card.xp.empty(len(words), np.uint8)
        statistics, dofs = card.xp.empty(shape), card.xp.empty(shape, dtype=np.int32)
        columns.judge(words, query, totals, codes, statistics, dofs)
        p_values = card.special.chdtrc(card.xp.maximum(dofs, 1), statistics)
        halves = card.xp.stack((codes & 15, codes >> 4), axis=1)
        p_values = card.xp.where(halves == DEPENDENT, p_values, -1.0).max(axis=1)
        last = min(n, len(words)) - 1
        least = -card.xp.partition(-p_values, last)[last]
        near = card.xp.flatnonzero((p_values >= least * (1 - _P_VALUE_SLACK)) & (p_values >= 0))
        found.append((part.start + card.bring(near), card.bring(p_values[near])))
        opened.append(part.start + card.bring(card.xp.flatnonzero((halves == OPEN).any(axis=1))))
    near, p_values = (np.concatenate(each) for each in zip(*found, strict=True))
    if len(near) > n:
        least = np.partition(p_values, -n)[-n]
        near = near[p_values >= least * (1 - _P_VALUE_SLACK)]
    return columns.make_cubes(np.union1d(near, np.concatenate(opened)))
