"""From columns of any type to a table of numbers that can be binned.

    age   sex   glucose           age   sex   glucose
    63    "f"   140               63    0     140
    70    "m"   None      -->     70    1     nan
    41    "f"   95                41    0     95

A category becomes the number of its level, a missing value NaN. Rare levels share one number.
Columns that rules should not use (identifiers, constants, copies) are dropped:

rows in memory   -->  ColumnFacts of each column  --.
                                                     --> find_reasons: column -> reason
a survey of rows -->  ColumnFacts of each column  --'
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from icscm import _constants as limits
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, LeftOutWarning, Parameter, reject_unknown, warn
from icscm.tables.columns import Level, Levels
from icscm.tables.errors import name_columns, reject_infinity

# Why a column is dropped; each text completes "column 'x' is ...".
IDENTIFIER = "different in nearly every row, as an identifier is"
CONSTANT = "the same in every row"
LABEL_COPY = "an exact copy of the label"
ENVIRONMENT_COPY = "an exact copy of the environment"
DATES = "a date or time, which rules cannot use; convert it to numbers such as years"
# Columns checked at a time: their first rows stay near the cache.
_CHECKED_TOGETHER = 2**10
# Cells searched for missing and infinite values at a time: as many as the cache holds.
_CHECKED_CELLS = 2**18


class LevelBins(NamedTuple):
    """The levels of a category that have a bin of their own, then those that share the last.

    Of ordered levels a rule takes all above a cut.
    """

    levels: tuple[Level, ...]
    pool: tuple[Level, ...] = ()
    is_ordered: bool = False

    @property
    def n_bins(self) -> int:
        return len(self.levels) + bool(self.pool)

    def find_levels(self, number: int) -> tuple[Level, ...]:
        """The levels of one bin or, if they are ordered, those after it."""
        if self.is_ordered:
            return self.levels[number + 1 :]
        return (self.levels[number],) if number < len(self.levels) else self.pool


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
            why = f" contains NaN or other missing values in {name_columns(columns, self.names)}"
            advice = "; fill them in, or let rules decide with ", Parameter("missing", "candidate")
            raise IcscmError(Parameter("X"), why, *advice)


def are_finite(values: Array) -> bool:
    """A quick check: if True, all numbers are finite; False may be a false alarm."""
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is the fastest
        return values.dtype.kind != "f" or bool(np.isfinite(np.sum(values)))


def find_missing(
    values: Array, names: Sequence[str] | None, part: slice = slice(None)
) -> BoolArray:
    """Which columns hold NaN in a part of the rows; raises for infinities."""
    first, stop, _ = part.indices(len(values))
    found = np.zeros(values.shape[1], dtype=np.bool_)
    step = max(1, _CHECKED_CELLS // max(1, len(found)))
    for start in range(first, stop, step):
        rows = values[start : min(start + step, stop)]
        if are_finite(rows):
            continue
        if not found.all():
            found |= np.isnan(rows).any(axis=0)
        if np.isinf(rows).any():
            reject_infinity(values, names)
    return found


def code_levels(
    column: Levels, max_levels: int | None, rows: Array | None
) -> tuple[FloatArray, LevelBins]:
    """The number of each row's level, NaN where it is missing, and the levels."""
    codes = column.codes if rows is None else column.codes[rows]
    n_rows = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    kept, pool = choose_levels(n_rows, max_levels)
    number = np.full(len(column.levels) + 1, np.nan)  # the last entry stands for missing
    number[kept] = np.arange(len(kept))
    number[pool] = len(kept)
    own, shared = (tuple(column.levels[i] for i in part) for part in (kept, pool))
    # two levels have one cut in any case, and the levels of a pool are not adjacent
    is_ordered = column.is_ordered and len(kept) > 2 and not len(pool)
    return number[codes], LevelBins(own, shared, is_ordered)


def choose_levels(n_rows: IntArray, max_levels: int | None) -> tuple[Array, Array]:
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
        """Why rules should not use the column; None if they may."""
        if self.copied is not None:
            return self.copied
        if self.n_distinct == 0 or (self.n_distinct == 1 and self.n_present == self.n_rows):
            return CONSTANT
        is_one = self.is_numbering()
        if self.is_category:
            is_one = self.n_distinct > limits.IDENTIFIER_SHARE * self.n_present
        return IDENTIFIER if is_one and self.n_rows >= limits.IDENTIFIER_ROWS else None

    def is_numbering(self) -> bool:
        """Whether whole numbers are an identifier rather than something measured.

        Nearly all must differ although repeats would be expected by chance: of n numbers measured
        at random in a range of R, n^2 / 2R pairs would be equal. If there are far fewer, they were
        assigned one by one. Numbers beyond a billion are never measurements.
        """
        n_repeated = self.n_present - self.n_distinct
        most_repeated = (1 - limits.NUMBERED_IDENTIFIER_SHARE) * self.n_present
        may_number = self.is_whole and n_repeated <= most_repeated
        if not may_number or self.n_present < limits.IDENTIFIER_ROWS:
            return False
        n_expected = self.n_present**2 / (2 * (self.highest - self.lowest + 1))
        is_telling = n_expected >= limits.MIN_CHANCE_PAIRS and n_repeated <= n_expected / 10
        return is_telling or self.highest >= limits.LEAST_HUGE_NUMBER


def find_reasons(facts: Mapping[int, ColumnFacts], dropped: Mapping[int, str]) -> dict[int, str]:
    """Columns that rules should not use, and why; those already dropped come first."""
    reasons = {j: why for j, each in facts.items() if (why := each.find_reason()) is not None}
    order = (LABEL_COPY, ENVIRONMENT_COPY)  # all others last
    rank = {why: order.index(why) if why in order else len(order) for why in reasons.values()}
    return {**dropped, **dict(sorted(reasons.items(), key=lambda each: rank[each[1]]))}


def drop_columns(table: CodedTable, found: Mapping[int, str], keep: Any) -> CodedTable:
    """Drop what was found, with a warning, unless the user keeps them."""
    kept = find_kept(table, keep)
    for j in sorted(kept & {*table.dropped}):
        why = f" names {name_columns([j], table.names)}, which is {table.dropped[j]}"
        raise IcscmError(Parameter("keep_columns"), why)
    dropped = {j: why for j, why in found.items() if j not in kept}
    by_reason: dict[str, list[int]] = {}
    for j, why in dropped.items():
        by_reason.setdefault(why, []).append(j)
    listed = "; ".join(f"{name_columns(by_reason[why], table.names)} ({why})" for why in by_reason)
    if len(dropped) == table.n_columns:
        advice = ". Give other columns, or keep these with ", Parameter("keep_columns", "all")
        raise IcscmError(Parameter("X"), f" has no column that rules can use: {listed}", *advice)
    if listed:
        warn(f"Dropped: {listed}. Name columns in keep_columns to keep them.", LeftOutWarning)
    return replace(table, dropped={**table.dropped, **dropped})


def find_kept(table: CodedTable, keep: Any) -> set[int]:
    """The columns to keep, by name, or by position where there are no names."""
    if keep is None:
        return set()
    if isinstance(keep, str) and keep == "all":
        return set(range(table.n_columns)) - {*table.dropped}
    keep = [keep] if isinstance(keep, str) else list(keep)
    known = {name: j for j, name in enumerate(table.names or range(table.n_columns))}
    reject_unknown(keep, known, Parameter("keep_columns"), " names columns that X does not have: ")
    return {known[name] for name in keep}


def find_suspicious(
    table: CodedTable, labels: IntArray, environments: IntArray, whole: BoolArray
) -> dict[int, str]:
    """Columns of a table in memory that rules should not use, and why.

    `whole` marks the columns of whole numbers by their type: a measurement with decimals may be
    different in every row.
    """
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    copied: dict[int, str] = {}
    for groups, reason in ((environments, ENVIRONMENT_COPY), (labels, LABEL_COPY)):
        copied |= dict.fromkeys({*_find_copies(table.values, groups)} - pooled, reason)
    facts = {
        j: _gather_facts(table, j, copied.get(j))
        for j in sorted({*_find_doubtful(table.values, whole), *table.levels, *copied})
        if j not in table.dropped
    }
    return find_reasons(facts, table.dropped)


def _find_doubtful(values: Array, whole: BoolArray) -> Iterator[int]:
    """Columns of numbers that may be suspicious, judged by the first rows.

    Not suspicious are columns of several values with decimals, or with too many repeats for an
    identifier.
    """
    most_repeated = (1 - limits.NUMBERED_IDENTIFIER_SHARE) * len(values)
    for start in range(0, values.shape[1], _CHECKED_TOGETHER):
        part = slice(start, start + _CHECKED_TOGETHER)
        some = np.sort(values[: limits.SUSPICION_ROWS, part].T)  # missing last, equal to none
        is_varied = ((some != some[:, :1]) & (some == some)).any(axis=1)
        has_decimals = ((some != np.floor(some)) & (some == some)).any(axis=1)
        n_repeated = (some[:, 1:] == some[:, :-1]).sum(axis=1)
        is_clear = is_varied & ((has_decimals & ~whole[part]) | (n_repeated > most_repeated))
        yield from (start + np.flatnonzero(~is_clear)).tolist()


def _gather_facts(table: CodedTable, j: int, copied: str | None) -> ColumnFacts:
    column, bins = table.values[:, j], table.levels.get(j)
    n_rows, first = len(column), column[0]
    if copied is not None:
        return ColumnFacts(n_rows, n_rows, 1, copied=copied)
    if _are_equal(column[-1], first) and _are_equal(column, first).all():
        return ColumnFacts(n_rows, n_rows, int(first == first))
    if bins is not None:
        n_present = n_rows - int(np.isnan(column).sum())
        return ColumnFacts(n_rows, n_present, len(bins.levels) + len(bins.pool), is_category=True)
    return gather_number_facts(column)


def _find_copies(values: Array, groups: IntArray) -> list[int]:
    """Columns that identify the groups: one value in each, and different values in all."""
    occurring = np.flatnonzero(np.bincount(groups))
    if len(occurring) < 2 or len(groups) < limits.COPY_ROWS:
        return []
    first = np.zeros(occurring[-1] + 1, dtype=np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]  # the last value written is kept
    some = slice(0, limits.SUSPICION_ROWS)
    alike = np.flatnonzero(_are_equal(values[some], values[first[groups[some]]]).all(axis=0))
    n, own = len(occurring), first[occurring]
    differ = [j for j in alike.tolist() if len(np.unique(values[own, j])) == n]
    return [j for j in differ if _are_equal(values[:, j], values[first, j][groups]).all()]


def _are_equal(one: Any, other: Any) -> Any:
    """Where values are equal, or both are missing."""
    return (one == other) | ((one != one) & (other != other))


def gather_number_facts(column: Array) -> ColumnFacts:
    """The facts of a column of numbers that is not constant.

    Some rows suffice to exclude an identifier in most columns; all rows take long.
    """
    n_rows, none = len(column), ColumnFacts(len(column), len(column), np.inf)
    some = column[: max(limits.SUSPICION_ROWS, n_rows // 50)]
    seen = some[some == some]
    if len(seen) - len(np.unique(seen)) > (1 - limits.NUMBERED_IDENTIFIER_SHARE) * n_rows:
        return none
    present = column[column == column]
    if len(present) == 0 or (present != np.floor(present)).any():
        return none
    n_distinct, extremes = len(np.unique(present)), (float(present.min()), float(present.max()))
    return ColumnFacts(n_rows, len(present), n_distinct, False, True, *extremes)
