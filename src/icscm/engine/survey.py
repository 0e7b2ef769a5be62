"""What must be known of a table that is read in pieces before its values can be binned.

    piece 1 -> survey_piece -> Survey --.
    piece 2 -> survey_piece -> Survey ----> merge_surveys -> Survey of the whole table
    piece 3 -> survey_piece -> Survey --'

Surveys can be merged in any order and grouping, and end up equal. `survey_binning` makes thresholds
of them; with the same rows in the sample, those that `coding.encode` chooses for the whole table.

Unlike in memory, not all distinct values can be kept: whether a column of whole numbers, or a
category of more than `MAX_SURVEYED_LEVELS` levels, is an identifier is estimated from a sample of
its values, see `value_samples`.

A column is a *copy* of the outcome, or of the environment, if it has one value in all rows of a
group (an outcome, an environment), and another one in every other group.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from icscm._constants import LARGEST_EXACT, MAX_SURVEYED_LEVELS, SUSPICION_ROWS
from icscm._types import Array
from icscm.engine import _kernels
from icscm.engine.threads import run_in_parts
from icscm.engine.value_samples import (
    ValueSample,
    merge_samples,
    sample_counted_levels,
    sample_counted_numbers,
    sample_numbers,
)
from icscm.exceptions import IcscmError
from icscm.tables.columns import Column, Dates, Level, Levels, Numbers, as_plain_numbers, sort_key
from icscm.tables.errors import make_infinity_error, name_columns
from icscm.tables.suspicion import ColumnFacts

Key = TypeVar("Key", bound=Hashable)
# The one value that a column has in the rows of each group, by group; None where it is missing.
ValueOfGroup = Mapping[Hashable, Level | None]

# What a column holds. Whole numbers and others are distinguished by type, as only
# whole numbers can be identifiers; levels by their kind.
WHOLE_NUMBERS = "whole numbers"
OTHER_NUMBERS = "numbers"
DATE = "dates"
LEVEL_KINDS = {"text": "text", "boolean": "booleans", "number": "categories that are numbers"}
NO_LEVELS = "nothing"  # a category all of whose values are missing


@dataclass(frozen=True, eq=False)
class Groups:
    """The group - an outcome, or an environment - to which each row of a piece belongs.

    `codes[i]` is a position in `values`; the same value means the same group in every piece.
    """

    codes: Array
    values: Sequence[Hashable]

    @cached_property
    def first_rows(self) -> Array:
        """The first row of each group; -1 where it has none."""
        first_rows = np.full(len(self.values), -1, dtype=np.intp)
        backwards = np.arange(len(self.codes))[::-1]
        first_rows[self.codes[backwards]] = backwards  # of several rows the last one written stays
        return first_rows

    def count_rows(self) -> dict[Hashable, int]:
        """Count the rows of each group that has any."""
        counts = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return {value: n_rows for value, n_rows in zip(self.values, counts, strict=True) if n_rows}


@dataclass(frozen=True)
class ColumnSurvey:
    """What is known of one column.

    Attributes
    ----------
    kind : str
        What it holds: `WHOLE_NUMBERS`, `OTHER_NUMBERS`, `DATE`, `NO_LEVELS` or one of the
        `LEVEL_KINDS`.
    n_missing : int
        The rows where it is missing.
    values : mapping of level to int, optional
        The rows of each number or level; None if they are more than thresholds can tell apart,
        or than can be kept.
    dtype : dtype, optional
        The type of numbers.
    lowest, highest : float, optional
        The extremes of numbers; None if all are missing.
    is_whole : bool
        Whether all numbers are whole, whatever their type.
    is_declared : bool
        Whether the type of the column says that it is a category.
    samples : ValueSample, optional
        Serves to recognise identifiers among whole numbers, and among levels, where there are too
        many values.
    outcome_copy, environment_copy : ValueOfGroup, optional
        Its value in each group, as long as it may be a copy of the outcome or the environment.
    """

    kind: str
    n_missing: int
    values: Mapping[Level, int] | None = field(default_factory=dict)
    dtype: np.dtype[Any] | None = None
    lowest: float | None = None
    highest: float | None = None
    is_whole: bool = False
    is_declared: bool = False
    samples: ValueSample | None = None
    outcome_copy: ValueOfGroup | None = None
    environment_copy: ValueOfGroup | None = None

    @property
    def is_number(self) -> bool:
        return self.kind in (WHOLE_NUMBERS, OTHER_NUMBERS)

    @property
    def is_category(self) -> bool:
        return not self.is_number and self.kind != DATE

    @property
    def has_infinity(self) -> bool:
        return np.inf in (self.highest, -(self.lowest or 0))

    @property
    def is_large(self) -> bool:
        """Whether it holds whole numbers that float64 would round."""
        largest = max(-float(self.lowest or 0), float(self.highest or 0))
        return self.kind == WHOLE_NUMBERS and largest >= LARGEST_EXACT

    def gather_facts(self, n_rows: int) -> ColumnFacts:
        """Gather the facts that decide whether it is suspicious, among so many rows."""
        n_present = n_rows - self.n_missing
        if self.samples is not None:
            n_distinct = self.samples.estimate_distinct(n_present)
        elif self.values is not None:
            n_distinct = len(self.values)
        else:
            n_distinct = np.inf  # fractions, which cannot be an identifier
        return ColumnFacts(
            n_rows=n_rows,
            n_present=n_present,
            n_distinct=n_distinct,
            is_category=self.is_category,
            is_declared=self.is_declared,
            is_whole=self.is_whole,
            lowest=float(self.lowest or 0),
            highest=float(self.highest or 0),
        )


@dataclass(frozen=True)
class Survey:
    """What is known of some rows: of each column, and how many rows each group has.

    `max_thresholds` tell one more distinct value apart; None means any number.
    """

    n_rows: int
    max_thresholds: int | None
    columns: tuple[ColumnSurvey, ...]
    labels: Mapping[Hashable, int]
    environments: Mapping[Hashable, int]

    @property
    def is_exact(self) -> bool:
        """Whether all columns are whole numbers, none missing, that one type can hold."""
        return self.dtype.kind in "iu"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of all values once they are numbers in one table."""
        types = [None if column.n_missing else column.dtype for column in self.columns]
        if not types or None in types:
            return np.dtype(np.float64)
        common: np.dtype[Any] = np.result_type(*types)
        return common if common.kind in "iu" else np.dtype(np.float64)


# --- one piece -----------------------------------------------------------------------------------


def survey_piece(
    columns: Sequence[Column],
    n_rows: int,
    labels: Groups,
    environments: Groups | None,
    *,
    max_thresholds: int | None,
    names: Sequence[str] | None = None,
    n_threads: int = 1,
) -> Survey:
    """Survey all columns of some rows; `names` are for errors."""

    def survey_column(j: int) -> ColumnSurvey:
        column = columns[j]
        if isinstance(column, Dates):
            return ColumnSurvey(DATE, n_missing=0)
        if isinstance(column, Levels):
            survey = _survey_levels(column)
        else:
            survey = _survey_numbers(column, max_thresholds)
        if survey.has_infinity:
            raise make_infinity_error(name_columns([j], names))
        return replace(
            survey,
            outcome_copy=_find_value_of_group(column, labels),
            environment_copy=_find_value_of_group(column, environments),
        )

    surveys = run_in_parts(survey_column, range(len(columns)), n_threads)
    return Survey(
        n_rows=n_rows,
        max_thresholds=max_thresholds,
        columns=tuple(surveys),
        labels=labels.count_rows(),
        environments={} if environments is None else environments.count_rows(),
    )


def _survey_numbers(column: Numbers, max_thresholds: int | None) -> ColumnSurvey:
    """Survey a column of numbers."""
    values = as_plain_numbers(column.values)
    present = values if column.missing is None else values[~column.missing]
    kind = WHOLE_NUMBERS if values.dtype.kind in "iu" else OTHER_NUMBERS
    # floats may be whole numbers, too: those of a table with missing values come so
    is_whole = kind == WHOLE_NUMBERS or _are_whole(present)
    n_rows_of_value = _tally(present, max_thresholds)
    has_too_many_values = n_rows_of_value is None
    return ColumnSurvey(
        kind=kind,
        n_missing=len(values) - len(present),
        values=n_rows_of_value,
        dtype=values.dtype,
        lowest=present.min().item() if len(present) else None,
        highest=present.max().item() if len(present) else None,
        is_whole=is_whole,
        samples=sample_numbers(present) if is_whole and has_too_many_values else None,
    )


def _are_whole(numbers: Array) -> bool:
    """Check whether all floats are whole numbers, and small enough to be exact."""
    for part in (numbers[:SUSPICION_ROWS], numbers):  # nearly all fail in the first rows
        if (np.abs(part) >= LARGEST_EXACT).any() or (part != np.floor(part)).any():
            return False
    return True


def _tally(numbers: Array, max_thresholds: int | None) -> dict[Level, int] | None:
    """Count the rows of each number; None if thresholds cannot tell all of them apart."""
    if max_thresholds is None:
        values, n_rows = np.unique(numbers, return_counts=True)
        return dict(zip(values.tolist(), n_rows.tolist(), strict=True))

    max_values = max_thresholds + 1
    values = np.zeros(max_values, dtype=numbers.dtype)
    n_rows = np.zeros(max_values, dtype=np.int64)
    n_values = _kernels.tally_values(numbers, values, n_rows)
    if n_values > max_values:
        return None
    return dict(zip(values[:n_values].tolist(), n_rows[:n_values].tolist(), strict=True))


def _survey_levels(column: Levels) -> ColumnSurvey:
    """Survey a category."""
    # the code of a missing value is -1
    n_missing, *n_rows = np.bincount(column.codes + 1, minlength=len(column.levels) + 1).tolist()
    type_names = {sort_key(level)[0] for level in column.levels}
    survey = ColumnSurvey(
        kind=LEVEL_KINDS[type_names.pop()] if type_names else NO_LEVELS,
        n_missing=n_missing,
        values=dict(zip(column.levels, n_rows, strict=True)),
        is_declared=column.is_declared,
    )
    return _limit_values(survey, max_thresholds=None)


def _limit_values(column: ColumnSurvey, max_thresholds: int | None) -> ColumnSurvey:
    """Put a sample in the place of values that are too many to keep."""
    most_thresholds = max_thresholds if column.is_number else MAX_SURVEYED_LEVELS - 1
    if column.values is None or most_thresholds is None:
        return column
    if len(column.values) <= most_thresholds + 1:
        return column
    return replace(column, values=None, samples=_sample_values(column))


def _sample_values(column: ColumnSurvey) -> ValueSample | None:
    """Sample a column's values, unless that was done before; None for fractions."""
    is_fractions = column.is_number and not column.is_whole
    if column.values is None or is_fractions:
        return column.samples
    if column.is_number:
        return sample_counted_numbers(column.values)
    return sample_counted_levels(column.values)


def _find_value_of_group(
    column: Numbers | Levels, groups: Groups | None
) -> dict[Hashable, Level | None] | None:
    """Find the value of each group if the column is a copy of the groups, else None.

    Being missing counts as a value, None.
    """
    if groups is None or len(groups.codes) == 0:
        return None

    values = column.values if isinstance(column, Numbers) else column.codes
    is_missing = np.zeros(len(values), np.bool_) if column.missing is None else column.missing
    for rows in (slice(0, SUSPICION_ROWS), slice(None)):  # nearly all fail in the first rows
        # a row is compared with the first row of its group
        first_rows = groups.first_rows[groups.codes[rows]]
        has_other_value = (values[rows] != values[first_rows]) & ~is_missing[rows]
        is_missing_in_one = is_missing[rows] != is_missing[first_rows]
        if (has_other_value | is_missing_in_one).any():
            return None

    value_of_group = {
        group: None if is_missing[row] else _read_value(column, row)
        for group, row in zip(groups.values, groups.first_rows.tolist(), strict=True)
        if row >= 0  # it has rows in this piece
    }
    return value_of_group if _do_all_differ(value_of_group) else None


def _read_value(column: Numbers | Levels, row: int) -> Level:
    """Return the number or the level in one row, where it is not missing."""
    value: Level
    if isinstance(column, Levels):
        value = column.levels[column.codes[row]]
    else:
        value = column.values[row].item()
    return value


def _do_all_differ(value_of_group: ValueOfGroup) -> bool:
    """Check that no two groups share a value."""
    return len({*value_of_group.values()}) == len(value_of_group)


# --- several pieces ------------------------------------------------------------------------------


def merge_surveys(a: Survey, b: Survey, names: Sequence[str] | None = None) -> Survey:
    """Make the survey of the rows of both; `names` are for errors."""
    if len(a.columns) != len(b.columns):
        raise IcscmError(
            f"one piece of the data has {len(a.columns)} columns, another {len(b.columns)}; "
            "all pieces must have the same columns"
        )
    # types of a piece without rows are unknown, as in an empty text file
    if a.n_rows == 0:
        return b
    if b.n_rows == 0:
        return a
    columns = tuple(
        _merge_columns(column_a, column_b, a.max_thresholds, name=name_columns([j], names))
        for j, (column_a, column_b) in enumerate(zip(a.columns, b.columns, strict=True))
    )
    return Survey(
        n_rows=a.n_rows + b.n_rows,
        max_thresholds=a.max_thresholds,
        columns=columns,
        labels=_add_counts(a.labels, b.labels),
        environments=_add_counts(a.environments, b.environments),
    )


def _merge_columns(
    a: ColumnSurvey, b: ColumnSurvey, max_thresholds: int | None, *, name: str
) -> ColumnSurvey:
    """Make the survey of a column in the rows of both."""
    has_dtypes = a.dtype is not None and b.dtype is not None
    all_lowest = [survey.lowest for survey in (a, b) if survey.lowest is not None]
    all_highest = [survey.highest for survey in (a, b) if survey.highest is not None]
    merged = ColumnSurvey(
        kind=_merge_kinds(a, b, name),
        n_missing=a.n_missing + b.n_missing,
        values=None,
        dtype=np.result_type(a.dtype, b.dtype) if has_dtypes else None,
        lowest=min(all_lowest, default=None),
        highest=max(all_highest, default=None),
        is_whole=a.is_whole and b.is_whole,
        is_declared=a.is_declared or b.is_declared,  # a piece without any level has no type
        outcome_copy=_merge_copies(a.outcome_copy, b.outcome_copy),
        environment_copy=_merge_copies(a.environment_copy, b.environment_copy),
    )
    if a.values is not None and b.values is not None:
        values = _add_counts(a.values, b.values)
        return _limit_values(replace(merged, values=values), max_thresholds)

    # one of them has too many values to keep: samples of both remain
    sample_a = _sample_values(a)
    sample_b = _sample_values(b)
    if sample_a is None or sample_b is None:  # there are fractions
        return merged
    return replace(merged, samples=merge_samples(sample_a, sample_b))


def _merge_kinds(a: ColumnSurvey, b: ColumnSurvey, name: str) -> str:
    """Return what both hold; raises if that differs."""
    if a.kind == b.kind:
        return a.kind
    if a.is_category and b.is_category:
        if a.kind == NO_LEVELS:
            return b.kind
        if b.kind == NO_LEVELS:
            return a.kind
    raise IcscmError(
        f"{name} holds {a.kind} in one piece of the data and {b.kind} in another; "
        "give it one type in all of them, or drop it"
    )


def _merge_copies(a: ValueOfGroup | None, b: ValueOfGroup | None) -> ValueOfGroup | None:
    """Return the value of each group in the rows of both, if the column is a copy there, too."""
    if a is None or b is None:
        return None
    if any(a[group] != b[group] for group in {*a} & {*b}):
        return None
    merged = {**a, **b}
    return merged if _do_all_differ(merged) else None


def _add_counts(a: Mapping[Key, int], b: Mapping[Key, int]) -> dict[Key, int]:
    """Add up the rows of each value, or of each group."""
    return {key: a.get(key, 0) + b.get(key, 0) for key in {**a, **b}}
