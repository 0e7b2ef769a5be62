"""Columns that rules should not use: identifiers, constants, and copies of outcome or environment.

That a column is an identifier is a guess from its values. A user who knows better gives the column
as a category, by its type in the table; constants and copies are dropped whatever their type.

rows in memory   -->  ColumnFacts of each column  --.
                                                     --> find_reasons: column -> reason
a survey of rows -->  ColumnFacts of each column  --'
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from icscm import _constants as limits
from icscm._lazy import is_sparse
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, LeftOutWarning, Parameter, warn
from icscm.tables.coded import CodedTable
from icscm.tables.errors import name_columns

# Why a column is dropped; each text completes "column 'x' is ...".
IDENTIFIER: Final = "different in nearly every row, as an identifier is"
EMPTY: Final = "all values are missing"
CONSTANT: Final = "the same in every row"
LABEL_COPY: Final = "an exact copy of the label"
ENVIRONMENT_COPY: Final = "an exact copy of the environment"
DATES: Final = (
    "a date, a time or a duration, which rules cannot use; convert it to numbers such as years or "
    "days"
)

# Advice where a column is dropped as an identifier.
_KEEP_IDENTIFIER: Final = (
    " An identifier that should be used must be ",
    Parameter("a categorical column"),
    ".",
)

# Columns checked at a time: their first rows stay near the cache.
_CHECKED_TOGETHER: Final = 2**10
# Errors of a linear function that are rounding, relative to its values.
_ROUNDING: Final = 1e-9
# One row in so many is looked at before all are.
_ROWS_PER_SAMPLED: Final = 50


@dataclass(frozen=True)
class ColumnFacts:
    """The facts that decide whether a column is suspicious.

    Attributes
    ----------
    n_rows, n_present : int
        All rows, and those of them that have a value.
    n_distinct : float
        Different values: an estimate, or any larger number, where that cannot make the column an
        identifier.
    is_category, is_declared : bool
        Whether the column is a category, and whether it is one by its type in the table.
    is_whole : bool
        Whether all values are whole numbers.
    lowest, highest : float
        Of whole numbers.
    copied : str or None
        Why the column is a copy, if it is one.
    """

    n_rows: int
    n_present: int
    n_distinct: float
    is_category: bool = False
    is_declared: bool = False
    is_whole: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    copied: str | None = None

    def find_reason(self) -> str | None:
        """Return why rules should not use the column; None if they may."""
        if self.copied is not None:
            return self.copied
        has_all = self.n_present == self.n_rows
        if self.n_distinct == 0:
            return EMPTY
        if self.n_distinct == 1 and has_all:
            return CONSTANT
        if self.is_declared or self.n_rows < limits.IDENTIFIER_ROWS:
            return None
        if self.is_category:
            is_identifier = self.n_distinct > limits.IDENTIFIER_SHARE * self.n_present
        else:
            is_identifier = self.is_numbering()
        return IDENTIFIER if is_identifier else None

    def is_numbering(self) -> bool:
        """Whether whole numbers are an identifier rather than something measured.

        Nearly all must differ although repeats would be expected by chance: of n numbers measured
        at random in a range of R, n^2 / 2R pairs would be equal. If there are far fewer, they were
        assigned one by one. Numbers beyond a billion are never measurements.
        """
        n_repeated = self.n_present - self.n_distinct
        if not self.is_whole or n_repeated > count_tolerated_repeats(self.n_present):
            return False
        if self.n_present < limits.IDENTIFIER_ROWS:
            return False

        value_range = self.highest - self.lowest + 1
        n_expected = self.n_present**2 / (2 * value_range)
        is_telling = n_expected >= limits.MIN_CHANCE_PAIRS
        is_assigned = is_telling and n_repeated <= n_expected / 10
        return is_assigned or self.highest >= limits.LEAST_HUGE_NUMBER


def count_tolerated_repeats(n_rows: int) -> float:
    """Return how many rows of an identifier may repeat a value of another row."""
    return (1 - limits.NUMBERED_IDENTIFIER_SHARE) * n_rows


def find_reasons(facts: Mapping[int, ColumnFacts], dropped: Mapping[int, str]) -> dict[int, str]:
    """Return why rules should not use columns; those already dropped come first, then copies."""
    reasons = {}
    for position, column in facts.items():
        reason = column.find_reason()
        if reason is not None:
            reasons[position] = reason

    copies_first = {
        position: reasons[position]
        for wanted in (LABEL_COPY, ENVIRONMENT_COPY)
        for position in reasons
        if reasons[position] == wanted
    }
    return {**dropped, **copies_first, **reasons}


# --- dropping ------------------------------------------------------------------------------------


def drop_columns(table: CodedTable, reasons: Mapping[int, str]) -> CodedTable:
    """Drop columns for these reasons, with a warning; raise if no column is left."""
    listed = _list_dropped(table, reasons)
    advice = _KEEP_IDENTIFIER if IDENTIFIER in reasons.values() else ()
    if len(reasons) == table.n_columns:
        why = f" has no column that rules can use: {listed}. Give other columns."
        raise IcscmError(Parameter("X"), why, *advice)
    if listed:
        warn((f"Dropped: {listed}.", *advice), LeftOutWarning)
    return replace(table, dropped={**table.dropped, **reasons})


def _list_dropped(table: CodedTable, dropped: Mapping[int, str]) -> str:
    """List the columns that are dropped, by reason."""
    columns_by_reason: dict[str, list[int]] = {}
    for position, reason in dropped.items():
        columns_by_reason.setdefault(reason, []).append(position)
    parts = [
        f"{name_columns(positions, table.names)} ({reason})"
        for reason, positions in columns_by_reason.items()
    ]
    return "; ".join(parts)


# --- columns of a table in memory ----------------------------------------------------------------


def find_empty(table: CodedTable) -> list[int]:
    """Find the columns without any value, such as what none of these hospitals measured."""
    if is_sparse(table.values) or len(table.values) == 0:
        return []
    candidates = np.flatnonzero(np.isnan(table.values[0]))
    is_empty = np.isnan(table.values[:, candidates]).all(axis=0)
    empty: list[int] = candidates[is_empty].tolist()
    return [column for column in empty if column not in table.dropped]


def find_suspicious(
    table: CodedTable,
    labels: IntArray,
    environments: IntArray,
    *,
    whole: BoolArray,
    declared: Container[int],
) -> dict[int, str]:
    """Return why rules should not use columns of a table in memory.

    `whole` marks the columns of whole numbers by their type: a measurement with decimals may be
    different in every row. `declared` are the columns that are categories by their type.
    """
    # a bin that levels share identifies nothing
    pooled = {position for position, bins in table.levels.items() if bins.pool}
    environment_copies = {*_find_copies(table.values, environments)} - pooled
    label_copies = {*_find_copies(table.values, labels)} - pooled
    # where outcomes and environments are the same, the outcome is the reason
    copied = {
        **dict.fromkeys(environment_copies, ENVIRONMENT_COPY),
        **dict.fromkeys(label_copies, LABEL_COPY),
    }

    # of very many columns only some need all of their rows
    checked = {*_find_doubtful(table.values, whole), *table.levels, *copied}
    facts = {
        position: replace(
            _gather_facts(table, position, copied.get(position)), is_declared=position in declared
        )
        for position in sorted(checked)
        if position not in table.dropped
    }
    return find_reasons(facts, table.dropped)


def _find_doubtful(values: Array, whole: BoolArray) -> Iterator[int]:
    """Find the columns of numbers that may be suspicious, judged by the first rows.

    Suspicious are constants and identifiers. The first rows can clear a column of both: if they
    have two values, and decimals or too many repeats for an identifier.
    """
    tolerated_repeats = count_tolerated_repeats(len(values))
    for start in range(0, values.shape[1], _CHECKED_TOGETHER):
        columns = slice(start, start + _CHECKED_TOGETHER)
        # By (column, row), each column sorted. Missing values are NaN, which is sorted last and
        # equal to nothing, not even to itself.
        first_rows = np.sort(values[: limits.SUSPICION_ROWS, columns].T)
        lowest = first_rows[:, :1]
        is_present = first_rows == first_rows
        is_varied = ((first_rows != lowest) & is_present).any(axis=1)
        has_decimals = ((first_rows != np.floor(first_rows)) & is_present).any(axis=1)
        n_repeated = (first_rows[:, 1:] == first_rows[:, :-1]).sum(axis=1)

        is_measured = has_decimals & ~whole[columns]
        has_many_repeats = n_repeated > tolerated_repeats
        is_clear = is_varied & (is_measured | has_many_repeats)
        yield from (start + np.flatnonzero(~is_clear)).tolist()


def _gather_facts(table: CodedTable, position: int, copied: str | None) -> ColumnFacts:
    """Gather the facts of a column of numbers or of a category.

    `copied` says why it is a copy of outcome or environment, if it is one; then nothing else
    matters. A missing value is NaN, which is not equal to itself.
    """
    column = table.values[:, position]
    n_rows = len(column)
    if copied is not None:
        return ColumnFacts(n_rows, n_present=n_rows, n_distinct=1, copied=copied)

    # The last row tells of most columns that they are not constant, so that few are compared whole.
    first = column[0]
    is_constant = _are_equal(column[-1], first) and _are_equal(column, first).all()
    if is_constant:
        is_present = bool(first == first)
        return ColumnFacts(n_rows, n_present=n_rows, n_distinct=int(is_present))

    bins = table.levels.get(position)
    if bins is not None:
        n_present = n_rows - int(np.isnan(column).sum())
        n_levels = len(bins.levels) + len(bins.pool)
        return ColumnFacts(n_rows, n_present, n_levels, is_category=True)
    return gather_number_facts(column)


def _find_copies(values: Array, groups: IntArray) -> list[int]:
    """Find the columns that identify the groups: one value in each, and different ones in all.

    `groups` has the number of each row's group, such as its environment. The value of a group is
    that of its first row, which all of its rows must have:

        groups              0   1   0   2
        a copy              5   8   5   3
        no copies           5   8   6   3       5   8   5   8
    """
    occurring = np.flatnonzero(np.bincount(groups))
    if len(occurring) < 2 or len(groups) < limits.COPY_ROWS:
        return []

    # Written backwards, so that of the rows of a group the first is written last, and stays.
    row_numbers = np.arange(len(groups))
    first_row_of_group = np.zeros(occurring[-1] + 1, dtype=np.int64)
    first_row_of_group[groups[::-1]] = row_numbers[::-1]

    # The start of the table excludes most columns, without reading all of their rows.
    start = slice(0, limits.SUSPICION_ROWS)
    expected_at_start = values[first_row_of_group[groups[start]]]
    is_candidate = _are_equal(values[start], expected_at_start).all(axis=0)
    copies = []
    for column in np.flatnonzero(is_candidate).tolist():
        value_of_group = values[first_row_of_group, column]
        groups_differ = len(np.unique(value_of_group[occurring])) == len(occurring)
        if groups_differ and _are_equal(values[:, column], value_of_group[groups]).all():
            copies.append(column)
    return copies


def find_copies_of_numbers(table: CodedTable, numbers: FloatArray) -> list[int]:
    """Return the columns of numbers that are the outcome itself, also in other units.

    Such a column is a linear function of the outcome, up to rounding.
    """
    if not isinstance(table.values, np.ndarray) or len(numbers) < limits.COPY_ROWS:
        return []
    y = _scale_deviations(numbers)
    copies = []
    for position in range(table.n_columns):
        if position in table.levels or position in table.dropped:
            continue
        column = np.asarray(table.values[:, position], dtype=np.float64)
        deviations = _scale_deviations(column)  # NaN where any value is missing
        slope = deviations @ y / (y @ y)
        largest_error = np.abs(deviations - slope * y).max()
        if largest_error <= _ROUNDING and slope != 0:
            copies.append(position)
    return copies


def _scale_deviations(numbers: FloatArray) -> FloatArray:
    """Return numbers less their mean, the largest of size 1, so that their squares are finite."""
    largest = np.abs(numbers).max() or 1.0
    scaled = numbers / largest
    deviations = scaled - scaled.mean()
    return np.asarray(deviations / (np.abs(deviations).max() or 1.0))


def _are_equal(values: Any, others: Any) -> Any:
    """Return where values are equal, or both are missing."""
    are_missing = (values != values) & (others != others)
    return (values == others) | are_missing


def gather_number_facts(column: Array) -> ColumnFacts:
    """Gather the facts of a column of numbers that is not constant.

    Most columns repeat values too often for an identifier in the first rows already; to count the
    different values of all rows takes long. `n_distinct` is infinite where it need not be known.
    """
    n_rows = len(column)
    unsuspicious = ColumnFacts(n_rows, n_present=n_rows, n_distinct=np.inf)

    # The first rows; NaN is not equal to itself.
    n_first = max(limits.SUSPICION_ROWS, n_rows // _ROWS_PER_SAMPLED)
    first_rows = column[:n_first]
    present_in_first = first_rows[first_rows == first_rows]
    n_repeated = len(present_in_first) - len(np.unique(present_in_first))
    if n_repeated > count_tolerated_repeats(n_rows):
        return unsuspicious

    present = column[column == column]
    if len(present) == 0 or (present != np.floor(present)).any():
        return unsuspicious
    return ColumnFacts(
        n_rows,
        n_present=len(present),
        n_distinct=len(np.unique(present)),
        is_whole=True,
        lowest=float(present.min()),
        highest=float(present.max()),
    )
