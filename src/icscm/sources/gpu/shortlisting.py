"""Examines candidates on a card: from all rules to the few columns that the search must test.

A column of zeros and ones has two rules: one covers the rows of the zeros, one those of the ones.
A scan of all columns gives each rule a *code*: it is no candidate, allowed, rejected for one of the
reasons, or *open*, if rounding could decide:

    columns on the card  --examine_all-->  two codes for each column  --.---> shortlist: its counts
                                                                         `--> others: a tally

The codes stay on the card. What comes back are the counts of the columns on the shortlist, and how
many of the other rules have each code. Other columns are examined as if each of their cuts were a
column of zeros and ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from icscm._lazy import special
from icscm._types import Array, IntArray
from icscm.engine.counts import (
    CandidateCriteria,
    CountCube,
    Shortlist,
    ShortlistOrder,
    ShortlistQuery,
)
from icscm.sources.gpu import launching
from icscm.sources.gpu.card import Card, translate_card_errors
from icscm.sources.gpu.launching import DeviceQuery, Key, Segments

# Tied columns whose leaves are compared at a time.
COMPARED_COLUMNS: Final = 2**14
# Columns whose p-values are held at a time.
TESTED_COLUMNS: Final = 2**22
# Numbers whose logarithms are sent along: leaves are seldom larger.
N_LOGARITHMS: Final = 2**16
# p-values computed on the card that differ by less may be ordered differently on the processor.
P_VALUE_SLACK: Final = 1e-6


class ExaminedColumns(Protocol):
    """Columns of zeros and ones on a card, counted over some rows; numbered from 0.

    What is examined of columns, their *content*, stays on the card.
    """

    card: Card
    #: the rows that are counted
    segments: Segments

    def __len__(self) -> int:
        """Return the number of columns."""

    @property
    def can_be_examined(self) -> bool:
        """Whether each column has two rules, and there is room for what is computed of them."""

    @property
    def n_copies(self) -> Any:
        """How many identical columns each stands for, on the card; None where no two are."""

    def read_parts(self, size: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield the content of all columns, at most so many at a time."""

    def examine(self, content: Any, query: DeviceQuery, *results: Any) -> None:
        """Write the results for some columns: ones by outcome, codes, statistics, their dofs."""

    def count_ones(self, columns: Any) -> Any:
        """Count the ones of some columns by (column, segment), on the card."""

    def widen(self, columns: IntArray) -> IntArray:
        """Return some columns, and all that the search sees together with them."""

    def make_cubes(self, columns: IntArray) -> Iterator[CountCube]:
        """Make the counts of some columns, for the search."""

    def make_all_cubes(self) -> Iterator[CountCube]:
        """Make the counts of all columns."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What became of the rules on some columns, on the card.

    `totals` are the ones by (column, outcome), `codes` the two codes of each column, in a byte: see
    `launching.unpack_codes`.
    """

    totals: Any
    codes: Any
    query: DeviceQuery

    @property
    def arguments(self) -> tuple[Any, Any, DeviceQuery]:
        """What the kernels take that look for rules."""
        return self.totals, self.codes, self.query

    def take(self, columns: Any) -> "Verdicts":
        """Return those of some columns."""
        return Verdicts(self.totals[columns], self.codes[columns], self.query)

    def count_ties(self, n_copies: Any, best: Key) -> int:
        """Count the allowed rules of the best utility and margin, identical ones included."""
        n_ties = 0
        for covered_bit in (0, 1):
            utility, margin = launching.compute_keys(self.totals, self.query, covered_bit)
            is_allowed = launching.unpack_codes(self.codes, covered_bit) == launching.ALLOWED
            is_tied = is_allowed & (utility == best.utility) & (margin == best.margin)
            n_ties += int((is_tied if n_copies is None else is_tied * n_copies).sum())
        return n_ties


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers of rules, identical ones included.

    `n_by_code` is how many have each code, `n_ties` how many tie with the best allowed one.
    """

    n_by_code: IntArray
    n_ties: int

    def __sub__(self, other: "Tally") -> "Tally":
        """Return the numbers of the rules that are in this tally only."""
        return Tally(
            n_by_code=self.n_by_code - other.n_by_code,
            n_ties=self.n_ties - other.n_ties,
        )

    @property
    def n_candidates(self) -> int:
        """How many are candidates at all."""
        return int(self.n_by_code.sum() - self.n_by_code[launching.NONE])

    @property
    def n_rejected(self) -> dict[str, int]:
        """How many are rejected, by reason."""
        return {launching.CODES[code]: int(self.n_by_code[code]) for code in launching.REJECTED}


@dataclass(frozen=True, eq=False)
class ColumnPValues:
    """What the test says of some columns, on the card.

    `largest` is the larger p-value of the rules on a column that the test rejects, -1 where it
    rejects none; `has_open` says whether rounding could decide on one of them.
    """

    largest: Any
    has_open: Any


class CardShortlister:
    """Makes shortlists of columns on a card; see `icscm.engine.counts.Shortlister`."""

    def __init__(self, columns: ExaminedColumns) -> None:
        self._columns = columns
        self._card = columns.card

    @property
    def n_columns(self) -> int:
        """The number of columns that it examines."""
        return len(self._columns)

    @translate_card_errors()
    def shortlist(self, query: ShortlistQuery) -> Shortlist:
        """List the columns that can matter to a search; all where it cannot decide."""
        if not self._columns.can_be_examined:
            return Shortlist(cubes=self._columns.make_all_cubes())
        if query.order is ShortlistOrder.P_VALUE:
            columns = self._find_largest_p_values(query.criteria, n_wanted=query.n_rejected)
            return Shortlist(cubes=self._columns.make_cubes(columns))
        return self._shortlist_by_utility(query)

    def _shortlist_by_utility(self, query: ShortlistQuery) -> Shortlist:
        """List the columns whose rules the search must count itself, and count the others here.

        These are the columns of rules that the card could not decide (open), of the best allowed
        rule with its ties, and of the rejected rules of largest utility, which a report shows.
        """
        kernels = self._card.kernels
        verdicts = self.examine_all(query.criteria)
        best = kernels.find_next(*verdicts.arguments, (launching.ALLOWED,), launching.FIRST)

        open_columns = kernels.list_columns(*verdicts.arguments, (launching.OPEN,))
        listed_columns = np.concatenate(
            (
                self._card.bring(open_columns),
                self._find_tied_columns(verdicts, best, limit=query.n_ties),
                self._find_first_rejected(verdicts, limit=query.n_rejected),
            )
        )
        listed = self._columns.widen(np.unique(listed_columns))

        # the search counts the candidates on the list itself
        others = self._tally_others(verdicts, best, listed=listed)
        return Shortlist(
            cubes=self._columns.make_cubes(listed),
            n_candidates=others.n_candidates,
            n_rejected=others.n_rejected,
            n_ties=others.n_ties,
            best=None if best is None else (best.utility, best.margin),
        )

    def _tally_others(self, verdicts: Verdicts, best: Key | None, *, listed: IntArray) -> Tally:
        """Count the rules on all columns that are not listed."""
        listed_on_card = self._card.send(listed)
        n_copies = self._columns.n_copies
        n_copies_of_listed = None if n_copies is None else n_copies[listed_on_card]

        all_rules = self._tally(verdicts, n_copies, best)
        listed_rules = self._tally(verdicts.take(listed_on_card), n_copies_of_listed, best)
        return all_rules - listed_rules

    def _tally(self, verdicts: Verdicts, n_copies: Any, best: Key | None) -> Tally:
        """Count the rules of some verdicts, whose columns stand for `n_copies` identical ones."""
        return Tally(
            n_by_code=self._card.kernels.tally_codes(verdicts.codes, n_copies),
            n_ties=0 if best is None else verdicts.count_ties(n_copies, best),
        )

    def examine_all(self, criteria: CandidateCriteria) -> Verdicts:
        """Give each rule its code, in one scan of all columns."""
        query = self.send_criteria(criteria)
        n_columns = len(self._columns)
        totals = self._card.xp.empty((n_columns, 2), dtype=np.int32)
        codes = self._card.xp.empty(n_columns, dtype=np.uint8)
        for part, content in self._columns.read_parts():
            self._columns.examine(content, query, totals[part], codes[part])
        return Verdicts(totals, codes, query)

    def send_criteria(self, criteria: CandidateCriteria) -> DeviceQuery:
        """Send the arrays of the criteria to the card."""
        n_by_outcome = self._columns.segments.n_by_outcome
        n_negative, n_positive = n_by_outcome[::-1] if criteria.is_inverted else n_by_outcome
        n_logarithms = 1
        if criteria.statistic == "g":
            n_logarithms = min(N_LOGARITHMS, n_negative + n_positive + 1)
        numbers = np.arange(n_logarithms)
        return DeviceQuery(
            criteria=criteria,
            passes_below=self._card.send(criteria.passes_below),
            fails_from=self._card.send(criteria.fails_from),
            logarithms=self._card.send(special.xlogy(numbers, numbers)),
            replication_factors=self._card.send(criteria.replication_factors),
            positive_rates=self._card.send(criteria.positive_rates),
            n_negative=n_negative,
            n_positive=n_positive,
        )

    def _find_first_rejected(self, verdicts: Verdicts, limit: int) -> IntArray:
        """Find the columns of the rejected rules of largest utility, one after the other."""
        columns: list[int] = []
        key = launching.FIRST
        for _ in range(limit):
            key = self._card.kernels.find_next(*verdicts.arguments, launching.REJECTED, key)
            if key is None:
                break
            columns.append(key.column)
        return np.array(columns, dtype=np.int64)

    def _find_tied_columns(self, verdicts: Verdicts, best: Key | None, limit: int) -> IntArray:
        """Find the first columns with a rule that ties with the best, and has the same leaf.

        Rules tie if their utility and margin are equal, and then the rule of the first column is
        chosen. The leaf of a rule is the number of rows that it covers in each segment, that is
        outcome and environment: a column of 0 and 1 has a rule for the ones and one for the zeros.
        """
        if best is None:
            return np.empty(0, dtype=np.int64)
        tied = self._card.kernels.list_columns(*verdicts.arguments, (launching.ALLOWED,), best)

        # The first of the tied columns is that of the best rule.
        n_rows = self._columns.segments.n_rows
        (ones_of_best,) = self._columns.count_ones(tied[:1])
        leaf = ones_of_best if best.covers_ones else n_rows - ones_of_best

        columns_of_parts = [np.empty(0, dtype=np.int64)]
        n_found = 0
        for start in range(0, len(tied), COMPARED_COLUMNS):
            part = tied[start : start + COMPARED_COLUMNS]
            ones = self._columns.count_ones(part)
            is_leaf_of_ones = (ones == leaf).all(axis=1)
            is_leaf_of_zeros = (n_rows - ones == leaf).all(axis=1)
            columns = self._card.bring(part[is_leaf_of_ones | is_leaf_of_zeros])
            columns_of_parts.append(columns)
            n_found += len(columns)
            if n_found >= limit:
                break
        return np.concatenate(columns_of_parts)[:limit]

    def _find_largest_p_values(self, criteria: CandidateCriteria, *, n_wanted: int) -> IntArray:
        """Find the columns of the rejected rules with the largest p-values, and all open columns.

        A column belongs to the `n_wanted` of largest p-value in all parts only if it does in its
        own part, so each part sends its own ones, of which then few remain. Those that rounding
        could put among them are listed, too.
        """
        query = self.send_criteria(criteria)
        columns_of_parts: list[IntArray] = []
        p_values_of_parts: list[Array] = []
        open_columns = [np.empty(0, dtype=np.int64)]
        for part, content in self._columns.read_parts(TESTED_COLUMNS):
            p_values = self._compute_p_values(content, query)
            near = self._find_near(p_values.largest, n_wanted)
            columns_of_parts.append(part.start + self._card.bring(near))
            p_values_of_parts.append(self._card.bring(p_values.largest[near]))

            open_in_part = self._card.xp.flatnonzero(p_values.has_open)
            open_columns.append(part.start + self._card.bring(open_in_part))

        columns = np.concatenate(columns_of_parts)
        largest = np.concatenate(p_values_of_parts)
        if len(columns) > n_wanted:
            smallest_wanted = np.partition(largest, -n_wanted)[-n_wanted]
            columns = columns[largest >= smallest_wanted * (1 - P_VALUE_SLACK)]
        return np.union1d(columns, np.concatenate(open_columns))

    def _compute_p_values(self, content: Any, query: DeviceQuery) -> ColumnPValues:
        """Compute the p-values of the rules on some columns: of each column the largest is kept.

        Only p-values of rules that were rejected for dependence count; a column without any has -1.
        A column has two rules, that for the zeros first.
        """
        xp = self._card.xp
        n_columns = len(content)
        totals = xp.empty((n_columns, 2), dtype=np.int32)
        codes = xp.empty(n_columns, dtype=np.uint8)
        statistics = xp.empty((n_columns, 2))
        dofs = xp.empty((n_columns, 2), dtype=np.int32)
        self._columns.examine(content, query, totals, codes, statistics, dofs)

        # by (column, rule), as the statistics
        p_values = self._card.special.chdtrc(xp.maximum(dofs, 1), statistics)
        codes_of_rules = xp.stack(
            (launching.unpack_codes(codes, 0), launching.unpack_codes(codes, 1)), axis=1
        )
        is_dependent = codes_of_rules == launching.DEPENDENT
        return ColumnPValues(
            largest=xp.where(is_dependent, p_values, -1.0).max(axis=1),
            has_open=(codes_of_rules == launching.OPEN).any(axis=1),
        )

    def _find_near(self, p_values: Any, n_wanted: int) -> Any:
        """Find the columns whose p-values are among the largest, or as large but for rounding."""
        last = min(n_wanted, len(p_values)) - 1
        smallest_wanted = -self._card.xp.partition(-p_values, last)[last]
        is_near = (p_values >= smallest_wanted * (1 - P_VALUE_SLACK)) & (p_values >= 0)
        return self._card.xp.flatnonzero(is_near)
