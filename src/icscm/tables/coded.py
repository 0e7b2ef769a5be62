"""From columns as they come to a table of numbers that can be binned.

    age   sex   glucose           age   sex   glucose
    63    "f"   140               63    0     140
    70    "m"   None      -->     70    1     nan
    41    "f"   95                41    0     95

A category becomes the number of its level, a missing value NaN. Levels too rare for a rule of
their own share one number. Columns that no rule should be made of are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.columns import Column, Dates, Level, Levels, read_numbers
from icscm.tables.errors import name_columns

# Why a column is dropped. The words complete "column 'x' is ...".
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
    NaN, as far as is known; `dropped` why a column makes no rules, by column. Where the table
    `is_presence` its values, which may be a sparse matrix, are 0 and 1 for absent and present.
    """

    values: Array
    names: tuple[str, ...] | None = None
    levels: Mapping[int, LevelBins] = field(default_factory=dict)
    has_missing: BoolArray | None = None
    dropped: Mapping[int, str] = field(default_factory=dict)
    is_presence: bool = False

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1])

    def find_missing(self) -> BoolArray:
        """Which columns hold missing values."""
        none = np.zeros(self.n_columns, dtype=np.bool_)
        return none if self.has_missing is None else self.has_missing

    def find_numbers(self) -> IntArray:
        """The columns of numbers, those dropped included."""
        return np.setdiff1d(np.arange(self.n_columns), np.array([*self.levels], dtype=np.int64))

    def list_types(self) -> tuple[str, ...]:
        """What each column is: "number", "category" or "left_out"."""
        if not self.dropped and not self.levels:  # there may be millions
            return ("number",) * self.n_columns
        return tuple(
            "left_out" if j in self.dropped else "category" if j in self.levels else "number"
            for j in range(self.n_columns)
        )

    def reject_missing(self) -> None:
        """Raise if anything is missing (`missing="error"`)."""
        columns = np.flatnonzero(self.find_missing()).tolist()
        if columns:
            raise IcscmError(
                Parameter("X"),
                f" contains NaN or other missing values in {name_columns(columns, self.names)}; "
                "fill them in, or let rules decide with ",
                Parameter("missing", "candidate"),
            )


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
    dropped: dict[int, str] = {}
    for j, column in enumerate(columns):
        if isinstance(column, Dates):
            dropped[j] = DATES
        elif isinstance(column, Levels):
            values[:, j], levels[j] = _code_levels(column, max_levels, rows)
        else:
            values[:, j] = read_numbers(column if rows is None else column.take(rows))
    return CodedTable(values, names, levels, find_missing(values), dropped)


def are_finite(values: Array) -> bool:
    """A quick look: if this is true all numbers are finite; False may be a false alarm."""
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is the fastest
        return values.dtype.kind != "f" or bool(np.isfinite(np.sum(values)))


def find_missing(values: Array) -> BoolArray | None:
    """Which columns hold NaN; None if none does."""
    if are_finite(values):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        found: BoolArray = np.isnan(values.sum(axis=0))
    for j in np.flatnonzero(found):  # or infinities that cancelled out
        found[j] = np.isnan(values[:, j]).any()
    return found if found.any() else None


def _code_levels(
    column: Levels, max_levels: int | None, rows: NDArray[np.intp] | None
) -> tuple[FloatArray, LevelBins]:
    codes = column.codes if rows is None else column.codes[rows]
    n_rows = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    kept, pool = choose_levels(n_rows, max_levels)
    number = np.full(len(column.levels) + 1, np.nan)  # the last entry stands for missing
    number[kept] = np.arange(len(kept))
    number[pool] = len(kept)
    bins = LevelBins(tuple(column.levels[i] for i in kept), tuple(column.levels[i] for i in pool))
    return number[codes], bins


def choose_levels(
    n_rows: IntArray, max_levels: int | None
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
