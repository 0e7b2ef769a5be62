"""From columns of any type to a table of numbers that can be binned.

    age   sex   glucose           age   sex   glucose
    63    "f"   140               63    0     140
    70    "m"   None      -->     70    1     nan
    41    "f"   95                41    0     95

A category becomes the number of its level, a missing value NaN. Rare levels share one number.
`suspicion` finds the columns that rules should not use.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.tables.columns import Level, Levels
from icscm.tables.errors import reject_infinity

# Cells searched for missing and infinite values at a time: as many as the cache holds.
_CHECKED_CELLS: Final = 2**18
# Durations as text, as pandas and Python write them: 3 days 04:05:06 and 3 days, 4:05:06.
_DURATION: Final = re.compile(r"-?\d+ days?(,? [+-]?\d{1,2}:\d\d:\d\d(\.\d+)?)?")
# So many durations can be the levels of a category.
_MAX_DURATION_LEVELS: Final = 10


@dataclass(frozen=True)
class LevelBins:
    """The levels of a category that have a bin of their own, then those that share the last.

    Of ordered levels a rule takes all above a cut.
    """

    levels: tuple[Level, ...]
    pool: tuple[Level, ...] = ()
    is_ordered: bool = False

    @property
    def n_bins(self) -> int:
        """The number of bins, that of the pool included."""
        return len(self.levels) + bool(self.pool)

    def find_levels(self, number: int) -> tuple[Level, ...]:
        """Return the levels of one bin or, if they are ordered, those after it."""
        if self.is_ordered:
            return self.levels[number + 1 :]
        if number < len(self.levels):
            return (self.levels[number],)
        return self.pool


@dataclass(frozen=True)
class CodedTable:
    """Numbers in rows and columns, and what they mean.

    `levels` holds the levels of each category, by column; `has_missing` says which columns hold
    NaN, None that this is not known yet; `dropped` why a column makes no rules, by column. Where
    the table `is_presence` its values, which may be a sparse matrix, are 0 and 1 for absent and
    present.
    """

    values: Array
    names: tuple[str, ...] | None = None
    levels: Mapping[int, LevelBins] = field(default_factory=dict)
    has_missing: BoolArray | None = None
    dropped: Mapping[int, str] = field(default_factory=dict)
    is_presence: bool = False

    @property
    def n_columns(self) -> int:
        """The number of columns, those dropped included."""
        return int(self.values.shape[1])

    def find_missing(self) -> BoolArray:
        """Return which columns hold missing values."""
        if self.has_missing is None:
            return np.zeros(self.n_columns, dtype=np.bool_)
        return self.has_missing

    def find_numbers(self) -> IntArray:
        """Return the columns of numbers, those dropped included."""
        categories = np.array([*self.levels], dtype=np.int64)
        return np.setdiff1d(np.arange(self.n_columns), categories)

    def list_types(self) -> tuple[str, ...]:
        """Return what each column is: "number", "category" or "left_out"."""
        if not self.dropped and not self.levels:  # there may be millions
            return ("number",) * self.n_columns
        return tuple(self._find_type(column) for column in range(self.n_columns))

    def _find_type(self, column: int) -> str:
        if column in self.dropped:
            return "left_out"
        return "category" if column in self.levels else "number"


def are_finite(values: Array) -> bool:
    """Check quickly whether all numbers are finite; False may be a false alarm.

    A sum is finite only if all of its terms are; that of large numbers may overflow, though.
    """
    if values.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(values)))


def find_missing(
    values: Array, names: Sequence[str] | None, part: slice = slice(None)
) -> BoolArray:
    """Return which columns hold NaN in a part of the rows; raises for infinities."""
    first, stop, _ = part.indices(len(values))
    n_columns = values.shape[1]
    has_missing = np.zeros(n_columns, dtype=np.bool_)
    block_size = max(1, _CHECKED_CELLS // max(1, n_columns))
    for start in range(first, stop, block_size):
        rows = values[start : min(start + block_size, stop)]
        if are_finite(rows):
            continue
        if not has_missing.all():
            has_missing |= np.isnan(rows).any(axis=0)
        if np.isinf(rows).any():
            reject_infinity(values, names)
    return has_missing


def are_durations(bins: LevelBins) -> bool:
    """Return whether a category is in truth a column of durations, as text files hold them.

    As levels nearly all would be rare, and no rule could say `more than three days`. A few levels
    such as `7 days` and `30 days` are a category.

    >>> stays = tuple(f"{days} days 04:00:00" for days in range(20))
    >>> are_durations(LevelBins(stays)), are_durations(LevelBins(("7 days", "30 days")))
    (True, False)
    """
    levels = (*bins.levels, *bins.pool)
    if len(levels) <= _MAX_DURATION_LEVELS:
        return False
    return all(isinstance(level, str) and _DURATION.fullmatch(level) for level in levels)


def code_levels(
    column: Levels, max_levels: int | None, rows: Array | None
) -> tuple[FloatArray, LevelBins]:
    """Return the number of each row's bin as a float, NaN where it is missing, and the bins.

    Frequent levels have a bin each, in their order; rare ones share the last bin. `rows` are those
    that count, as often as they are named; None means each once.

        levels       a  b  c  d          rows of each    40 1 30 2
        bins         0  2  1  2          with max_levels=2
    """
    codes = column.codes if rows is None else column.codes[rows]
    n_levels = len(column.levels)
    n_rows = np.bincount(codes[codes >= 0], minlength=n_levels)
    kept, pooled = choose_levels(n_rows, max_levels)

    # The bin by the code of a level; missing values, whose code is -1, have the last entry.
    bin_of_code = np.full(n_levels + 1, np.nan)
    bin_of_code[kept] = np.arange(len(kept))
    bin_of_code[pooled] = len(kept)

    # Rules cut ordered levels between two. Of two levels there is one cut, ordered or not, and the
    # levels of a pool are not next to each other.
    may_be_ordered = len(kept) > 2 and len(pooled) == 0
    bins = LevelBins(
        levels=tuple(column.levels[code] for code in kept),
        pool=tuple(column.levels[code] for code in pooled),
        is_ordered=column.is_ordered and may_be_ordered,
    )
    return bin_of_code[codes], bins


def choose_levels(n_rows: IntArray, max_levels: int | None) -> tuple[Array, Array]:
    """Choose levels with a bin of their own, and levels that share one, by their number of rows.

    Both are returned by their codes, the positions in `n_rows`; levels without rows are in neither.
    At most `max_levels` have their own: the most frequent; of equally frequent ones those that
    sort first. A single level is never pooled, since its pool would be a bin of its own.

    >>> choose_levels(np.array([5, 9, 1, 0, 1]), max_levels=2)
    (array([0, 1]), array([2, 4]))
    """
    present = np.flatnonzero(n_rows)
    if max_levels is None or len(present) <= max_levels + 1:
        return present, present[:0]
    by_frequency = present[np.argsort(-n_rows[present], kind="stable")]
    return np.sort(by_frequency[:max_levels]), np.sort(by_frequency[max_levels:])
