"""Columns that no rule should be made of: identifiers, constants, copies.

rows in memory   -->  ColumnFacts of each column  --.
                                                     --> find_reasons: column -> reason
a survey of rows -->  ColumnFacts of each column  --'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    COPY_ROWS,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    LARGEST_EXACT,
    LEAST_HUGE_NUMBER,
    MIN_CHANCE_PAIRS,
    NUMBERED_IDENTIFIER_SHARE,
    SUSPICION_ROWS,
)
from icscm._types import Array, BoolArray, IntArray
from icscm.exceptions import IcscmError, LeftOutWarning, Parameter, warn
from icscm.formatting import shorten_list
from icscm.tables.coded import CONSTANT, ENVIRONMENT_COPY, IDENTIFIER, LABEL_COPY, CodedTable
from icscm.tables.columns import Numbers
from icscm.tables.errors import make_rounded_error, name_columns
from icscm.tables.parsing import ParsedTable

# Columns checked at a time: their first rows stay near the cache.
_CHECKED_TOGETHER = 2**10


class ColumnFacts(NamedTuple):
    """The facts that decide whether a column is suspicious.

    `n_distinct` are the different values of the `n_present` rows that have one: an estimate, or
    any larger number, where that cannot make it an identifier. `is_whole` are numbers that are all
    whole; `copied` is why the column is a copy, if it is one.
    """

    n_rows: int
    n_present: int
    n_distinct: float
    is_category: bool = False
    is_whole: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    copied: str | None = None

    def find_reason(self) -> str | None:
        """Why no rule should be made of the column; None if nothing is wrong with it."""
        if self.copied is not None:
            return self.copied
        if self.n_distinct == 0 or (self.n_distinct == 1 and self.n_present == self.n_rows):
            return CONSTANT
        is_one = self.is_numbering()
        if self.is_category:
            is_one = self.n_distinct > IDENTIFIER_SHARE * self.n_present
        return IDENTIFIER if is_one and self.n_rows >= IDENTIFIER_ROWS else None

    def is_numbering(self) -> bool:
        """Whether whole numbers are an identifier rather than something measured.

        Nearly all must differ, and repeats must be expected by chance: of n numbers measured at
        random in a range of R, n^2 / 2R pairs would be equal. If there are far fewer, they were
        assigned one by one. Numbers beyond a thousand million were not measured in any case.
        """
        n_repeated = self.n_present - self.n_distinct
        most_repeated = (1 - NUMBERED_IDENTIFIER_SHARE) * self.n_present
        if not self.is_whole or self.n_present < IDENTIFIER_ROWS or n_repeated > most_repeated:
            return False
        n_expected = self.n_present**2 / (2 * (self.highest - self.lowest + 1))
        is_telling = n_expected >= MIN_CHANCE_PAIRS and n_repeated <= n_expected / 10
        return is_telling or self.highest >= LEAST_HUGE_NUMBER


def find_reasons(facts: Mapping[int, ColumnFacts], dropped: Mapping[int, str]) -> dict[int, str]:
    """Columns that no rule should be made of, and why; those dropped already come first."""
    reasons = {j: why for j, each in facts.items() if (why := each.find_reason()) is not None}
    order = (LABEL_COPY, ENVIRONMENT_COPY)  # all others last
    rank = {why: order.index(why) if why in order else len(order) for why in reasons.values()}
    return {**dropped, **dict(sorted(reasons.items(), key=lambda each: rank[each[1]]))}


def drop_suspicious(
    parsed: ParsedTable,
    table: CodedTable,
    labels: IntArray,
    environments: IntArray,
    rows: NDArray[np.intp] | None,
    keep: Any,
) -> CodedTable:
    """Drop columns that no rule should be made of, with a warning, unless the user keeps them.

    Arrays come from users who prepared them, and are taken as they are. Rows that count several
    times are checked once.
    """
    for j, column in enumerate(parsed.content if isinstance(parsed.content, list) else ()):
        # whole numbers that float64 would round, beside other kinds: identifiers, or an error
        if not isinstance(column, Numbers) or column.values.dtype.kind not in "iu":
            continue
        if (np.abs(table.values[:, j]) >= LARGEST_EXACT).any():  # NaN is not
            present = column.values if column.missing is None else column.values[~column.missing]
            if not gather_number_facts(present).is_numbering():
                raise make_rounded_error(name_columns([j], table.names))
            table = replace(table, dropped={**table.dropped, j: IDENTIFIER})
    if parsed.whole is None:
        return table
    once = slice(None) if rows is None else np.unique(rows, return_index=True)[1]
    checked = replace(table, values=table.values[once])
    found = find_suspicious(checked, labels[once], environments[once], parsed.whole)
    return drop_columns(table, found, keep)


def drop_columns(table: CodedTable, found: Mapping[int, str], keep: Any) -> CodedTable:
    """Drop what was found, with a warning, unless the user keeps them."""
    kept = _find_kept(table, keep)
    for j in sorted(kept & {*table.dropped}):
        why = f" asks for {name_columns([j], table.names)}, which is {table.dropped[j]}"
        raise IcscmError(Parameter("keep_columns"), why)
    by_reason: dict[str, list[int]] = {}
    for j, why in found.items():
        if j not in kept:
            by_reason.setdefault(why, []).append(j)
    listed = "; ".join(f"{name_columns(by_reason[why], table.names)} ({why})" for why in by_reason)
    if sum(map(len, by_reason.values())) == table.n_columns:
        raise IcscmError(
            Parameter("X"),
            f" has no column to make rules of: {listed}. Give other columns, or keep these with ",
            Parameter("keep_columns", "all"),
        )
    if listed:
        what = f"Dropped: {listed}. Name columns in keep_columns to keep them."
        warn(what, LeftOutWarning)
    dropped = {j: why for j, why in found.items() if j not in kept}
    return replace(table, dropped={**table.dropped, **dropped})


def _find_kept(table: CodedTable, keep: Any) -> set[int]:
    """The columns to keep, by name, or by position where there are no names."""
    if keep is None:
        return set()
    if isinstance(keep, str) and keep == "all":
        return set(range(table.n_columns)) - {*table.dropped}
    keep = [keep] if isinstance(keep, str) else list(keep)
    known = {name: j for j, name in enumerate(table.names or range(table.n_columns))}
    unknown = [repr(name) for name in keep if name not in known]
    if unknown:
        what = f" names columns that X does not have: {shorten_list(unknown)}"
        raise IcscmError(Parameter("keep_columns"), what)
    return {known[name] for name in keep}


def find_suspicious(
    table: CodedTable, labels: IntArray, environments: IntArray, whole: BoolArray
) -> dict[int, str]:
    """Columns of a table in memory that no rule should be made of, and why.

    `whole` says which columns hold whole numbers by their type: a measurement with decimals may
    well be different in every row.
    """
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    copied: dict[int, str] = {}
    for groups, reason in ((environments, ENVIRONMENT_COPY), (labels, LABEL_COPY)):
        copied |= dict.fromkeys({*_find_copies(table.values, groups)} - pooled, reason)
    facts = {
        j: _gather_facts(table, j, bool(whole[j]), copied.get(j))
        for j in sorted({*_find_doubtful(table.values, whole), *table.levels, *copied})
        if j not in table.dropped
    }
    return find_reasons(facts, table.dropped)


def _find_doubtful(values: Array, whole: BoolArray) -> Iterator[int]:
    """Columns of numbers that the first rows do not clear of suspicion.

    Clear are those with several values, and with decimals or too many repeats for an identifier.
    """
    most_repeated = (1 - NUMBERED_IDENTIFIER_SHARE) * len(values)
    for start in range(0, values.shape[1], _CHECKED_TOGETHER):
        part = slice(start, start + _CHECKED_TOGETHER)
        some = np.sort(values[:SUSPICION_ROWS, part].T)  # missing ones last, and equal to none
        is_varied = ((some != some[:, :1]) & (some == some)).any(axis=1)
        has_decimals = ((some != np.floor(some)) & (some == some)).any(axis=1)
        n_repeated = (some[:, 1:] == some[:, :-1]).sum(axis=1)
        is_clear = is_varied & ((has_decimals & ~whole[part]) | (n_repeated > most_repeated))
        yield from (start + np.flatnonzero(~is_clear)).tolist()


def _gather_facts(table: CodedTable, j: int, is_whole: bool, copied: str | None) -> ColumnFacts:
    column, bins = table.values[:, j], table.levels.get(j)
    n_rows, first = len(column), column[0]
    if copied is not None:
        return ColumnFacts(n_rows, n_rows, 1, copied=copied)
    if _are_equal(column[-1], first) and _are_equal(column, first).all():
        return ColumnFacts(n_rows, n_rows, int(first == first))
    if bins is not None:
        n_present = n_rows - int(np.isnan(column).sum())
        return ColumnFacts(n_rows, n_present, len(bins.levels) + len(bins.pool), is_category=True)
    return gather_number_facts(column, is_whole)


def _find_copies(values: Array, groups: IntArray) -> list[int]:
    """Columns that identify the groups: one value in each, another in every other."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) < 2 or len(groups) < COPY_ROWS:
        return []
    some = slice(0, SUSPICION_ROWS)
    alike = np.flatnonzero(_are_equal(values[some], values[first[number[some]]]).all(axis=0))
    differ = [j for j in alike.tolist() if len(np.unique(values[first, j])) == len(first)]
    return [j for j in differ if _are_equal(values[:, j], values[first, j][number]).all()]


def _are_equal(one: Any, other: Any) -> Any:
    """Where values are equal, or both are missing."""
    return (one == other) | ((one != one) & (other != other))


def gather_number_facts(column: Array, is_whole: bool = True) -> ColumnFacts:
    """The facts of a column of numbers that is not constant.

    Some rows suffice to tell most columns from an identifier; all rows take long.
    """
    some, n_rows = column[:SUSPICION_ROWS], len(column)
    none = ColumnFacts(n_rows, n_rows, np.inf)
    if not is_whole and (some != np.floor(some)).any(where=some == some):
        return none
    some = column[: max(SUSPICION_ROWS, n_rows // 50)]
    seen = some[some == some]
    if len(seen) - len(np.unique(seen)) > (1 - NUMBERED_IDENTIFIER_SHARE) * n_rows:
        return none
    present = column[column == column]
    if len(present) == 0 or (present != np.floor(present)).any():
        return none
    n_distinct, extremes = len(np.unique(present)), (float(present.min()), float(present.max()))
    return ColumnFacts(n_rows, len(present), n_distinct, False, True, *extremes)
