"""From columns as they come to a table of numbers that can be binned.

    age   sex   glucose           age   sex   glucose
    63    "f"   140               63    0     140
    70    "m"   None      -->     70    1     nan
    41    "f"   95                41    0     95

A category becomes the number of its level, a missing value NaN. Levels too rare for a rule of
their own share one number. Columns that no rule should be made of are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    COPY_ROWS,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    LEAST_HUGE_NUMBER,
    MIN_CHANCE_PAIRS,
    NUMBERED_IDENTIFIER_SHARE,
    SUSPICION_ROWS,
)
from icscm.table import Column, Dates, Level, Levels, Numbers

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]

# Why a column is left out. The words complete "column 'x' is ...".
IDENTIFIER = "different in nearly every row, as an identifier is"
CONSTANT = "the same in every row"
LABEL_COPY = "an exact copy of the label"
ENVIRONMENT_COPY = "an exact copy of the environment"
DATES = "a date or time, which rules are not made of; turn it into numbers such as years"


class LevelBins(NamedTuple):
    """The levels of a category that have a bin of their own, then those that share the last."""

    levels: tuple[Level, ...]
    pool: tuple[Level, ...] = ()

    @property
    def n_bins(self) -> int:
        return len(self.levels) + bool(self.pool)

    def find_levels(self, number: int) -> tuple[Level, ...]:
        """The levels of one bin."""
        return (self.levels[number],) if number < len(self.levels) else self.pool


@dataclass(frozen=True)
class CodedTable:
    """Numbers in rows and columns, and what they mean.

    `levels` holds the levels of each category, by column; `has_missing` says which columns hold
    NaN; `left_out` why a column makes no rules, by column. Where the table `is_presence` its
    values, which may be a sparse matrix, are 0 and 1 for absent and present.
    """

    values: Array
    names: tuple[str, ...] | None = None
    levels: Mapping[int, LevelBins] = field(default_factory=dict)
    has_missing: BoolArray | None = None
    left_out: Mapping[int, str] = field(default_factory=dict)
    is_presence: bool = False

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1])

    def find_missing(self) -> BoolArray:
        """Which columns hold missing values."""
        none = np.zeros(self.n_columns, dtype=np.bool_)
        return none if self.has_missing is None else self.has_missing

    def find_numbers(self) -> NDArray[np.int64]:
        """The columns of numbers, those left out included."""
        return np.setdiff1d(np.arange(self.n_columns), np.array([*self.levels], dtype=np.int64))

    def list_types(self) -> tuple[str, ...]:
        """What each column is: "number", "category" or "left_out"."""
        if not self.left_out and not self.levels:  # there may be millions
            return ("number",) * self.n_columns
        return tuple(
            "left_out" if j in self.left_out else "category" if j in self.levels else "number"
            for j in range(self.n_columns)
        )

    def leave_out(self, reasons: Mapping[int, str]) -> CodedTable:
        """This table without rules on some more columns."""
        return replace(self, left_out={**self.left_out, **reasons})


def code_array(values: Array, names: tuple[str, ...] | None = None) -> CodedTable:
    """An array of numbers, NaN where missing."""
    return CodedTable(values, names, has_missing=_find_missing(values))


def _find_missing(values: Array) -> BoolArray | None:
    # a sum is the fastest look for what is not finite; overflow makes it cry wolf, no more
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(np.sum(values)):
            return None
        found: BoolArray = np.isnan(values.sum(axis=0))
    for j in np.flatnonzero(found):  # or infinities that cancelled out
        found[j] = np.isnan(values[:, j]).any()
    return found if found.any() else None


def code_mixed(
    columns: Sequence[Column],
    n_rows: int,
    names: tuple[str, ...] | None,
    max_levels: int | None,
    rows: NDArray[np.intp] | None,
) -> CodedTable:
    """Columns of any kinds; `rows` are those that count, None meaning each once."""
    values = np.zeros((n_rows if rows is None else len(rows), len(columns)), order="F")
    levels: dict[int, LevelBins] = {}
    left_out: dict[int, str] = {}
    for j, column in enumerate(columns):
        if isinstance(column, Dates):
            left_out[j] = DATES
        elif isinstance(column, Levels):
            values[:, j], levels[j] = _code_levels(column, max_levels, rows)
        else:
            values[:, j] = _code_numbers(column, rows)
    return CodedTable(values, names, levels, _find_missing(values), left_out)


def _code_numbers(column: Numbers, rows: NDArray[np.intp] | None) -> NDArray[np.float64]:
    values = column.values.astype(np.float64)
    if column.missing is not None:
        values[column.missing] = np.nan
    return values if rows is None else values[rows]


def _code_levels(
    column: Levels, max_levels: int | None, rows: NDArray[np.intp] | None
) -> tuple[NDArray[np.float64], LevelBins]:
    codes = column.codes if rows is None else column.codes[rows]
    n_rows = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    kept, pool = choose_levels(n_rows, max_levels)
    number = np.full(len(column.levels) + 1, np.nan)  # the last entry stands for missing
    number[kept] = np.arange(len(kept))
    number[pool] = len(kept)
    bins = LevelBins(tuple(column.levels[i] for i in kept), tuple(column.levels[i] for i in pool))
    return number[codes], bins


def choose_levels(
    n_rows: NDArray[np.int64], max_levels: int | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Levels with a bin of their own and levels that share one, from each level's rows.

    At most `max_levels` have their own: the most frequent; of equally frequent ones those that
    sort first. A pool of one is none.

    >>> choose_levels(np.array([5, 9, 1, 0, 1]), max_levels=2)
    (array([0, 1]), array([2, 4]))
    """
    present = np.flatnonzero(n_rows)
    if max_levels is None or len(present) <= max_levels + 1:
        return present, present[:0]
    order = present[np.argsort(-n_rows[present], kind="stable")]
    return np.sort(order[:max_levels]), np.sort(order[max_levels:])


def find_suspicious(
    table: CodedTable,
    labels: NDArray[np.int64],
    environments: NDArray[np.int64],
    whole: BoolArray,
) -> dict[int, str]:
    """Columns that no rule should be made of, and why; those left out already included.

    `whole` says which columns hold whole numbers by their type: a measurement with decimals may
    well be different in every row.
    """
    found = dict(table.left_out)
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    for groups, reason in ((labels, LABEL_COPY), (environments, ENVIRONMENT_COPY)):
        for j in {*_find_copies(table.values, groups)} - pooled:
            found.setdefault(j, reason)
    for j in range(table.n_columns):
        if j not in found and _is_constant(table.values[:, j]):
            found[j] = CONSTANT
        elif j not in found and _is_identifier(table, j, bool(whole[j])):
            found[j] = IDENTIFIER
    return found


def _find_copies(values: Array, groups: NDArray[np.int64]) -> list[int]:
    """Columns that tell the groups exactly: one value in each, another in every other."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) < 2 or len(groups) < COPY_ROWS:
        return []
    some = slice(0, SUSPICION_ROWS)
    alike = _are_equal(values[some], values[first[number[some]]]).all(axis=0)
    alike &= np.array([len(np.unique(column)) == len(first) for column in values[first].T])
    return [
        int(j)
        for j in np.flatnonzero(alike)
        if _are_equal(values[:, j], values[first, j][number]).all()
    ]


def _are_equal(one: Array, other: Array) -> BoolArray:
    """Where values are equal, or both are missing."""
    equal: BoolArray = (one == other) | ((one != one) & (other != other))
    return equal


def _is_constant(column: Array) -> bool:
    first = column[0]
    if first == first:
        return bool(column[-1] == first and (column == first).all())
    return bool(np.isnan(column).all())


def _is_identifier(table: CodedTable, j: int, is_whole: bool) -> bool:
    n_rows = len(table.values)
    if n_rows < IDENTIFIER_ROWS:
        return False
    if j in table.levels:
        bins = table.levels[j]
        n_present = n_rows - int(np.isnan(table.values[:, j]).sum())
        return len(bins.levels) + len(bins.pool) > IDENTIFIER_SHARE * n_present
    return is_numbering(table.values[:, j], is_whole)


def is_numbering(column: Array, is_whole: bool = True) -> bool:
    """Whether whole numbers look like an identifier rather than like something measured."""
    some = column[:SUSPICION_ROWS]
    if not is_whole and (some != np.floor(some)).any(where=some == some):
        return False
    some = column[: max(SUSPICION_ROWS, len(column) // 50)]
    # a look at some rows first: distinct values of all are slow to count
    if _count_repeated(some[some == some]) > (1 - NUMBERED_IDENTIFIER_SHARE) * len(column):
        return False
    present = column[column == column]
    if len(present) == 0 or (present != np.floor(present)).any():
        return False
    bounds = float(present.min()), float(present.max())
    return is_handed_out(len(present), _count_repeated(present), *bounds)


def _count_repeated(values: Array) -> int:
    return len(values) - len(np.unique(values))


def is_handed_out(n_rows: int, n_repeated: float, lowest: float, highest: float) -> bool:
    """Whether so many whole numbers in this range are an identifier.

    Nearly all must differ, and that must say something. Of n numbers measured at random in a range
    of R, n^2 / 2R pairs would be equal by chance: if there are far fewer, they were handed out one
    by one. Numbers beyond a thousand million were not measured in any case.
    """
    if n_rows < IDENTIFIER_ROWS or n_repeated > (1 - NUMBERED_IDENTIFIER_SHARE) * n_rows:
        return False
    n_expected = n_rows**2 / (2 * (highest - lowest + 1))
    is_telling = n_expected >= MIN_CHANCE_PAIRS and n_repeated <= n_expected / 10
    return is_telling or highest >= LEAST_HUGE_NUMBER
