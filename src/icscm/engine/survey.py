"""What must be known of a table that is read in pieces before its values can be binned.

    piece 1 -> survey_piece -> Survey --.
    piece 2 -> survey_piece -> Survey ----> merge_surveys -> Survey of the whole table
    piece 3 -> survey_piece -> Survey --'

    describe_survey          Survey -> CodedTable without rows: levels, missing values, dates
    find_suspicious          Survey -> columns to leave out, and why
    find_sampled             Survey -> columns whose thresholds come from sampled rows
    plan_from_survey         Survey + the sampled rows' values of these columns -> Binning
    PieceCoder, code_piece   a piece + Binning -> its bin numbers

Surveys can be merged in any order and grouping, and end up equal. With the same rows in the
sample, the thresholds are those that `encoding.encode` chooses for the whole table in memory.
The sampled rows are found from the hashes of all rows, which `hash_piece` computes and
`binning.choose_sample` takes in any order; with no more than `QUANTILE_SAMPLE` rows, all rows are
the sample.

What differs from a table in memory, since not all distinct values can be kept: whether a column of
whole numbers, or a category of more than `MAX_SURVEYED_LEVELS` levels, is an identifier is told
from how often some thousands of its values occur, picked by their hash.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    CODE_DTYPE,
    COPY_ROWS,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    LARGEST_EXACT,
    MAX_NARROW_BINS,
    MAX_SURVEYED_LEVELS,
    QUANTILE_SAMPLE,
    ROW_DTYPE,
    SUSPICION_ROWS,
    VALUE_SAMPLE,
)
from icscm.columns import (
    CONSTANT,
    DATES,
    ENVIRONMENT_COPY,
    IDENTIFIER,
    LABEL_COPY,
    CodedTable,
    LevelBins,
    choose_levels,
    is_handed_out,
)
from icscm.engine import _kernels
from icscm.engine._kernels import SearchTable
from icscm.engine.binning import Binning, choose_edges, extend_edges, make_salt
from icscm.engine.encoding import make_search_table
from icscm.engine.threads import run_in_parts, run_tasks
from icscm.exceptions import IcscmError
from icscm.table import Column, Dates, Level, Levels, Numbers, sort_key

Array = NDArray[Any]
Hashes = NDArray[np.uint64]
Key = TypeVar("Key", bound=Hashable)


# What a column holds. Whole numbers and others are told apart by type, as identifiers are made
# of the former only; levels by what they are.
WHOLE_NUMBERS, OTHER_NUMBERS, DATE = "whole numbers", "numbers", "dates"
LEVEL_KINDS = {"text": "text", "boolean": "booleans", "number": "categories that are numbers"}
NO_LEVELS = "nothing"  # a category all of whose values are missing


class Groups(NamedTuple):
    """Which group - label, or environment - each row of a piece belongs to.

    `codes[i]` is a position in `values`; the same value means the same group in every piece.
    """

    codes: NDArray[np.integer[Any]]
    values: Sequence[Hashable]

    def count_rows(self) -> dict[Hashable, int]:
        """Rows of each group that has any."""
        n_rows = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return {value: n for value, n in zip(self.values, n_rows, strict=True) if n}


@dataclass(frozen=True, eq=False)
class ValueSample:
    """Some of a column's distinct values, those of least hash, by hash, and the rows of each.

    A value among those of least hash in the whole is so in every piece it occurs in: merging
    loses no rows of the values that are left.
    """

    hashes: Hashes
    n_rows: NDArray[np.int64]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ValueSample)
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.n_rows, other.n_rows)
        )

    def estimate_distinct(self, n_rows: int) -> float:
        """Distinct values among so many rows; exact if they are all here."""
        return len(self.hashes) * n_rows / max(1, int(self.n_rows.sum()))


@dataclass(frozen=True)
class ColumnSurvey:
    """What is known of one column.

    numbers   `values` are all that occur, ascending; None if they are more than thresholds can
              tell apart. `lowest` and `highest` are None where all are missing.
    levels    `levels` holds the rows of each; None if there are more than can be kept.

    `samples` tells identifiers: of whole numbers, and of levels that are too many to keep.
    `label_values` holds the one value of each label while the column may be an exact copy of
    the label, else None; `environment_values` likewise.
    """

    kind: str
    n_missing: int
    dtype: np.dtype[Any] | None = None
    values: tuple[float, ...] | None = ()
    lowest: float | None = None
    highest: float | None = None
    levels: Mapping[Level, int] | None = None
    samples: ValueSample | None = None
    label_values: Mapping[Hashable, Level | None] | None = None
    environment_values: Mapping[Hashable, Level | None] | None = None

    @property
    def is_number(self) -> bool:
        return self.kind in (WHOLE_NUMBERS, OTHER_NUMBERS)

    @property
    def is_category(self) -> bool:
        return not self.is_number and self.kind != DATE

    @property
    def is_large(self) -> bool:
        """Whether it holds whole numbers that float64 would round."""
        if self.kind != WHOLE_NUMBERS or self.lowest is None or self.highest is None:
            return False
        return max(-float(self.lowest), float(self.highest)) >= LARGEST_EXACT


@dataclass(frozen=True)
class Survey:
    """What is known of some rows: of each column, and how many rows each group has.

    `most_values` are the distinct values that thresholds can tell apart, None meaning any number.
    """

    n_rows: int
    most_values: int | None
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
        floats = np.dtype(np.float64)
        types = [each.dtype for each in self.columns if each.dtype is not None]
        has_others = len(types) < len(self.columns) or any(each.n_missing for each in self.columns)
        if has_others or not types:
            return floats
        common = np.result_type(*types)
        return common if common.kind in "iu" else floats


# --- one piece ---------------------------------------------------------------


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
    """Look at some rows, all columns of them; `names` are for errors."""
    most_values = None if max_thresholds is None else max_thresholds + 1
    groups = [
        None if each is None or n_rows == 0 else _FirstRows.find(each)
        for each in (labels, environments)
    ]

    def survey_column(j: int) -> ColumnSurvey:
        column = columns[j]
        if isinstance(column, Dates):
            return ColumnSurvey(DATE, 0)
        if isinstance(column, Levels):
            found = _survey_levels(column)
        else:
            found = _survey_numbers(column, most_values, _name(names, j))
        label_values, environment_values = (_find_copied(column, each) for each in groups)
        return replace(found, label_values=label_values, environment_values=environment_values)

    return Survey(
        n_rows,
        most_values,
        tuple(run_in_parts(survey_column, range(len(columns)), n_threads)),
        labels.count_rows(),
        {} if environments is None else environments.count_rows(),
    )


def _survey_numbers(column: Numbers, most_values: int | None, name: str) -> ColumnSurvey:
    values = _as_plain_numbers(column.values)
    present = values if column.missing is None else values[~column.missing]
    is_whole = values.dtype.kind in "iu"
    lowest = present.min().item() if len(present) else None
    highest = present.max().item() if len(present) else None
    if lowest == -np.inf or highest == np.inf:
        raise IcscmError(f"X contains infinity in column {name}; fill in or drop these values")
    found = _tally(present, most_values)
    samples = None
    if is_whole or _are_whole(present):
        samples = _sample_numbers(present) if found is None else _make_sample(*_hash_found(found))
    return ColumnSurvey(
        WHOLE_NUMBERS if is_whole else OTHER_NUMBERS,
        len(values) - len(present),
        values.dtype,
        None if found is None else tuple(sorted(found[0].tolist())),
        lowest,
        highest,
        samples=samples,
    )


def _are_whole(values: Array) -> bool:
    """Whether floats are all whole numbers, as those of a table with missing values come."""
    for rows in (slice(0, SUSPICION_ROWS), slice(None)):  # nearly all fail the first look
        if (np.abs(values[rows]) >= LARGEST_EXACT).any() or (
            values[rows] != np.floor(values[rows])
        ).any():
            return False
    return True


def _as_plain_numbers(values: Array) -> Array:
    """What the kernels read: booleans as bytes, floats of 32 or 64 bits."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64):
        return values.astype(np.float64)
    return values


def _tally(present: Array, most_values: int | None) -> tuple[Array, NDArray[np.int64]] | None:
    """The distinct values and the rows of each; None if they are too many."""
    if most_values is None:
        distinct, counts = np.unique(present, return_counts=True)
        return distinct, counts
    found = np.zeros(most_values, dtype=present.dtype)
    n_rows = np.zeros(most_values, dtype=np.int64)
    n_found = _kernels.tally_values(present, found, n_rows)
    return None if n_found > most_values else (found[:n_found], n_rows[:n_found])


def _survey_levels(column: Levels) -> ColumnSurvey:
    n_rows = np.bincount(column.codes + 1, minlength=len(column.levels) + 1).tolist()
    levels = dict(zip(column.levels, n_rows[1:], strict=True))
    kinds = {sort_key(level)[0] for level in levels}
    kind = LEVEL_KINDS[kinds.pop()] if kinds else NO_LEVELS
    return _limit_levels(ColumnSurvey(kind, n_rows[0], values=None, levels=levels))


def _limit_levels(column: ColumnSurvey) -> ColumnSurvey:
    """A sample in the place of levels that are too many to keep."""
    if column.levels is None or len(column.levels) <= MAX_SURVEYED_LEVELS:
        return column
    return replace(column, levels=None, samples=_sample_levels(column))


def _sample_levels(column: ColumnSurvey) -> ValueSample:
    if column.levels is None:
        assert column.samples is not None
        return column.samples
    hashes = np.array([_hash_level(level) for level in column.levels], dtype=np.uint64)
    return _make_sample(hashes, np.array([*column.levels.values()], dtype=np.int64))


def _hash_level(level: Level) -> int:
    # Python's own hash of a text is another one in every process
    digest = blake2b(repr(level).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _sample_numbers(values: Array) -> ValueSample:
    """The values of least hash; counting the rows of all values would take most of the time."""
    hashes = _hash_numbers(values)
    if len(hashes) > 8 * VALUE_SAMPLE:
        low = hashes[hashes <= np.uint64(2**64 // (len(hashes) // (4 * VALUE_SAMPLE)) - 1)]
        found = _make_sample(*np.unique(low, return_counts=True))
        if len(found.hashes) == VALUE_SAMPLE:  # else values occur too often for the shortcut
            return found
    return _make_sample(*np.unique(hashes, return_counts=True))


def _hash_found(found: tuple[Array, NDArray[np.int64]]) -> tuple[Hashes, NDArray[np.int64]]:
    return _hash_numbers(found[0]), found[1]


def _hash_numbers(values: Array) -> Hashes:
    """Whole numbers of any type, hashed by value (the steps of splitmix64)."""
    bits = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashes: Hashes = bits ^ (bits >> np.uint64(31))
    return hashes


def _make_sample(hashes: Hashes, n_rows: NDArray[np.int64]) -> ValueSample:
    """Those of least hash, rows of equal ones added up."""
    order = np.argsort(hashes)
    hashes, n_rows = hashes[order], n_rows[order]
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])) if len(hashes) else order
    starts = starts[: VALUE_SAMPLE + 1]
    totals = np.add.reduceat(n_rows, starts) if len(starts) else n_rows
    return ValueSample(hashes[starts][:VALUE_SAMPLE], totals[:VALUE_SAMPLE])


class _FirstRows(NamedTuple):
    """The groups of a piece: of each row, and for each group its first row."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[Hashable]
    first: NDArray[np.intp]

    @classmethod
    def find(cls, groups: Groups) -> _FirstRows:
        first = np.full(len(groups.values), -1, dtype=np.intp)
        first[groups.codes[::-1]] = np.arange(len(groups.codes))[::-1]  # the last to write stays
        return cls(groups.codes, groups.values, first)


def _find_copied(
    column: Numbers | Levels, groups: _FirstRows | None
) -> Mapping[Hashable, Level | None] | None:
    """The value of each group if the column has one in each, another in every other.

    Being missing counts as a value, None.
    """
    if groups is None:
        return None
    values = column.values if isinstance(column, Numbers) else column.codes
    missing = np.zeros(len(values), np.bool_) if column.missing is None else column.missing
    for rows in (slice(0, SUSPICION_ROWS), slice(None)):  # nearly all fail the first look
        first = groups.first[groups.codes[rows]]
        if (missing[rows] != missing[first]).any():
            return None
        if ((values[rows] != values[first]) & ~missing[rows]).any():
            return None
    present = np.flatnonzero(groups.first >= 0).tolist()
    first = groups.first[present]
    found = values[first].tolist()
    if isinstance(column, Levels):
        found = [column.levels[code] if code >= 0 else None for code in found]
    found = [None if gone else value for gone, value in zip(missing[first], found, strict=True)]
    return _if_all_differ(dict(zip((groups.values[i] for i in present), found, strict=True)))


def _if_all_differ(
    values: dict[Hashable, Level | None],
) -> Mapping[Hashable, Level | None] | None:
    return values if len({*values.values()}) == len(values) else None


# --- pieces together ---------------------------------------------------------


def merge_surveys(a: Survey, b: Survey, names: Sequence[str] | None = None) -> Survey:
    """The survey of the rows of both."""
    if len(a.columns) != len(b.columns):
        raise IcscmError(
            f"one piece of the data has {len(a.columns)} columns, another {len(b.columns)}; all "
            "pieces must have the same columns"
        )
    # types of a piece without rows say nothing: an empty text file has none, for one
    if a.n_rows == 0 or b.n_rows == 0:
        return b if a.n_rows == 0 else a
    merged = (
        _merge_columns(one, other, a.most_values, _name(names, j))
        for j, (one, other) in enumerate(zip(a.columns, b.columns, strict=True))
    )
    return Survey(
        a.n_rows + b.n_rows,
        a.most_values,
        tuple(merged),
        _add_counts(a.labels, b.labels),
        _add_counts(a.environments, b.environments),
    )


def _merge_columns(
    a: ColumnSurvey, b: ColumnSurvey, most_values: int | None, name: str
) -> ColumnSurvey:
    merged = ColumnSurvey(
        _join_kinds(a, b, name),
        a.n_missing + b.n_missing,
        label_values=_merge_copied(a.label_values, b.label_values),
        environment_values=_merge_copied(a.environment_values, b.environment_values),
    )
    if merged.is_number:
        return _merge_numbers(merged, a, b, most_values)
    return _merge_levels(merged, a, b) if merged.is_category else merged


def _join_kinds(a: ColumnSurvey, b: ColumnSurvey, name: str) -> str:
    if a.kind == b.kind:
        return a.kind
    if NO_LEVELS in (a.kind, b.kind) and a.is_category and b.is_category:
        return b.kind if a.kind == NO_LEVELS else a.kind
    raise IcscmError(
        f"column {name} holds {a.kind} in one piece of the data and {b.kind} in another; give it "
        "one type in all of them, or leave it out"
    )


def _merge_numbers(
    merged: ColumnSurvey, a: ColumnSurvey, b: ColumnSurvey, most_values: int | None
) -> ColumnSurvey:
    assert a.dtype is not None
    assert b.dtype is not None
    values = None
    if a.values is not None and b.values is not None:
        values = tuple(sorted({*a.values, *b.values}))
        values = values if most_values is None or len(values) <= most_values else None
    lowest = [each.lowest for each in (a, b) if each.lowest is not None]
    highest = [each.highest for each in (a, b) if each.highest is not None]
    return replace(
        merged,
        dtype=np.result_type(a.dtype, b.dtype),
        values=values,
        lowest=min(lowest, default=None),
        highest=max(highest, default=None),
        samples=_merge_samples(a.samples, b.samples),
    )


def _merge_levels(merged: ColumnSurvey, a: ColumnSurvey, b: ColumnSurvey) -> ColumnSurvey:
    merged = replace(merged, values=None)
    if a.levels is not None and b.levels is not None:
        return _limit_levels(replace(merged, levels=_add_counts(a.levels, b.levels)))
    return replace(merged, samples=_merge_samples(_sample_levels(a), _sample_levels(b)))


def _merge_samples(a: ValueSample | None, b: ValueSample | None) -> ValueSample | None:
    if a is None or b is None:
        return None
    return _make_sample(np.concatenate((a.hashes, b.hashes)), np.concatenate((a.n_rows, b.n_rows)))


def _merge_copied(
    a: Mapping[Hashable, Level | None] | None, b: Mapping[Hashable, Level | None] | None
) -> Mapping[Hashable, Level | None] | None:
    if a is None or b is None or any(a[group] != b[group] for group in {*a} & {*b}):
        return None
    return _if_all_differ({**a, **b})


def _add_counts(a: Mapping[Key, int], b: Mapping[Key, int]) -> dict[Key, int]:
    total = dict(a)
    for key, n in b.items():
        total[key] = total.get(key, 0) + n
    return total


# --- what follows for the columns --------------------------------------------


def describe_survey(survey: Survey, names: tuple[str, ...] | None = None) -> CodedTable:
    """The table as it would be in memory, but without its rows.

    Dates are left out already, and whole numbers that float64 would round: those can only be
    identifiers, else they are an error.
    """
    most_levels = None if survey.most_values is None else survey.most_values - 1
    levels: dict[int, LevelBins] = {}
    left_out: dict[int, str] = {}
    for j, column in enumerate(survey.columns):
        if column.kind == DATE:
            left_out[j] = DATES
        elif column.is_category:
            levels[j] = _choose_level_bins(column, most_levels)
        elif column.is_large and not survey.is_exact:
            _check_numbering(column, survey.n_rows, _name(names, j))
            left_out[j] = IDENTIFIER
    has_missing = np.array([column.n_missing > 0 for column in survey.columns], dtype=np.bool_)
    values = np.empty((0, len(survey.columns)), dtype=survey.dtype)
    return CodedTable(values, names, levels, has_missing, left_out)


def _choose_level_bins(column: ColumnSurvey, most_levels: int | None) -> LevelBins:
    if column.levels is None:
        return LevelBins(())  # too many, see `find_suspicious`
    ordered = sorted(column.levels, key=sort_key)
    kept, pool = choose_levels(np.array([column.levels[k] for k in ordered]), most_levels)
    return LevelBins(tuple(ordered[i] for i in kept), tuple(ordered[i] for i in pool))


def _check_numbering(column: ColumnSurvey, n_rows: int, name: str) -> None:
    if not _is_numbering(column, n_rows):
        raise IcscmError(
            f"X holds integers beyond 2**53 in column {name}, which would be rounded beside "
            "columns of other kinds; rescale them, leave them out, or give them as text"
        )


def _is_numbering(column: ColumnSurvey, n_rows: int) -> bool:
    """Whether whole numbers look like an identifier, as `columns.is_numbering`."""
    if column.samples is None or column.lowest is None or column.highest is None:
        return False
    n_present = n_rows - column.n_missing
    n_repeated = n_present - column.samples.estimate_distinct(n_present)
    return is_handed_out(n_present, n_repeated, float(column.lowest), float(column.highest))


def find_suspicious(survey: Survey, table: CodedTable) -> dict[int, str]:
    """Columns that no rule should be made of, and why; those left out already included.

    `table` is what `describe_survey` made of the survey. As `columns.find_suspicious`.
    """
    found = dict(table.left_out)
    for number, reason in enumerate((LABEL_COPY, ENVIRONMENT_COPY)):
        for j in _find_copies(survey, table, number):
            found.setdefault(j, reason)
    for j, column in enumerate(survey.columns):
        if j not in found and _is_constant(column):
            found[j] = CONSTANT
        elif j not in found and _is_identifier(column, survey.n_rows):
            found[j] = IDENTIFIER
    return found


def _find_copies(survey: Survey, table: CodedTable, number: int) -> list[int]:
    groups = (survey.labels, survey.environments)[number]
    if len(groups) < 2 or survey.n_rows < COPY_ROWS:
        return []
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    copied = [(each.label_values, each.environment_values)[number] for each in survey.columns]
    return [j for j, values in enumerate(copied) if values is not None and j not in pooled]


def _is_constant(column: ColumnSurvey) -> bool:
    values = column.values if column.is_number else column.levels
    if values is None:
        return False
    return len(values) == 0 or (len(values) == 1 and column.n_missing == 0)


def _is_identifier(column: ColumnSurvey, n_rows: int) -> bool:
    if n_rows < IDENTIFIER_ROWS:
        return False
    if column.is_number:
        return _is_numbering(column, n_rows)
    n_present = n_rows - column.n_missing
    n_levels: float = 0 if column.levels is None else len(column.levels)
    if column.levels is None and column.samples is not None:
        n_levels = column.samples.estimate_distinct(n_present)
    return n_levels > IDENTIFIER_SHARE * n_present


def find_sampled(survey: Survey, table: CodedTable) -> list[int]:
    """The columns of many values, whose thresholds come from the sampled rows' values.

    `table` says which columns are left out; so does it in `plan_from_survey`.
    """
    return [
        j
        for j, column in enumerate(survey.columns)
        if column.is_number and column.values is None and j not in table.left_out
    ]


def plan_from_survey(survey: Survey, table: CodedTable, sample: Mapping[int, Array]) -> Binning:
    """The thresholds of all columns.

    `sample` holds, for each of `find_sampled`'s columns, its values in the sampled rows, in any
    order; NaN where missing.
    """
    most = None if survey.most_values is None else survey.most_values - 1
    is_sampled = survey.n_rows > QUANTILE_SAMPLE and bool(find_sampled(survey, table))
    if is_sampled and (most is None or most >= MAX_NARROW_BINS):
        raise IcscmError(
            f"max_thresholds={most} would need all values of a column at once; use at most "
            f"{MAX_NARROW_BINS - 1}"
        )
    edges = [
        _choose_column_edges(survey, table, j, sample).astype(survey.dtype)
        for j in range(len(survey.columns))
    ]
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in edges], out=offsets[1:])
    return Binning(
        table.names,
        np.concatenate(edges),
        offsets,
        is_sampled,
        table.find_missing(),
        table.levels,
    )


def _choose_column_edges(
    survey: Survey, table: CodedTable, j: int, sample: Mapping[int, Array]
) -> Array:
    column = survey.columns[j]
    if j in table.left_out:
        return np.empty(0)
    if column.is_category:
        _check_kept(column, _name(table.names, j))
        return np.arange(table.levels[j].n_bins - 1)
    if column.values is not None:
        return np.array(column.values[:-1], dtype=survey.dtype)
    assert survey.most_values is not None  # else `values` are all there are
    return _cut_as_sample(sample[j], column.highest, survey.most_values - 1)


def _cut_as_sample(values: Array, highest: float | None, max_thresholds: int) -> Array:
    """As `ColumnPlan.cut_unknown_as`: the sample may hold few values of a column of many."""
    present = np.sort(values[values == values])
    if len(present) == 0:
        return present
    edges, is_few = choose_edges(present, max_thresholds)
    return extend_edges(edges, present[-1], highest, max_thresholds) if is_few else edges


def _check_kept(column: ColumnSurvey, name: str) -> None:
    if column.levels is None:
        raise IcscmError(
            f"column {name} has more than {MAX_SURVEYED_LEVELS:,} levels, too many to read from "
            "pieces; leave it out, or group its levels"
        )


# --- hashes and codes of a piece ---------------------------------------------


def hash_piece(columns: Sequence[Column], n_rows: int, n_threads: int = 1) -> Hashes:
    """The hash of each row, by which the sample is chosen: as `binning.hash_rows` of the table.

    Whole numbers beyond 2**53 are hashed exactly where all columns of the piece are whole numbers,
    none missing, and as float64 holds them beside others.
    """
    is_exact = all(
        isinstance(each, Numbers) and each.values.dtype.kind in "iub" and each.missing is None
        for each in columns
    )
    salt = make_salt(len(columns))

    def hash_some(part: range) -> Hashes:
        hashes = np.zeros(n_rows, dtype=np.uint64)
        for j in part:
            column = columns[j]
            if isinstance(column, Dates):  # they are zeros in a table of numbers
                _kernels.hash_column(np.zeros(n_rows), salt[j], hashes)
            elif isinstance(column, Numbers):
                _kernels.hash_column(read_numbers(column, is_exact), salt[j], hashes)
        return hashes

    parts = [range(start, len(columns), n_threads) for start in range(n_threads)]
    total = np.zeros(n_rows, dtype=np.uint64)
    for hashes in run_tasks(hash_some, parts, n_threads):
        total += hashes
    return total


def read_numbers(column: Numbers, is_exact: bool) -> Array:
    """The values of a column as numbers of the table: NaN where missing, floats unless exact."""
    values = _as_plain_numbers(column.values)
    if column.missing is None:
        return values if is_exact or values.dtype.kind == "f" else values.astype(np.float64)
    values = values.astype(np.float64)
    values[column.missing] = np.nan
    return values


class PieceCoder:
    """Turns pieces into bin numbers, for some features of a binning, as `encode` would."""

    def __init__(self, binned: Binning, features: Sequence[int]) -> None:
        self.features = features
        self._n_bins = binned.count_bins(np.array(features, dtype=np.int64))
        self._lookups = {
            j: _LevelLookup.make(binned, j) if j in binned.levels else _EdgeSearch.make(binned, j)
            for j in features
        }

    @property
    def dtype(self) -> np.dtype[Any]:
        """One byte where that is enough for all features, else two or four."""
        return np.min_scalar_type(max(1, *self._n_bins.tolist(), MAX_NARROW_BINS) - 1)

    def code(
        self,
        columns: Sequence[Column] | Mapping[int, Column],
        out: Array | None = None,
        n_threads: int = 1,
    ) -> Array:
        """Bin numbers (feature, row), written to `out` if given.

        `columns` are the columns of the piece by position; only the features' own are needed.
        """
        if out is None:
            n_rows = _count_rows(columns[self.features[0]]) if self.features else 0
            out = np.empty((len(self.features), n_rows), dtype=self.dtype)

        def code_feature(k: int) -> None:
            self._lookups[self.features[k]].code(columns[self.features[k]], out[k])

        run_in_parts(code_feature, range(len(self.features)), n_threads)
        return out


def code_piece(columns: Sequence[Column], binned: Binning, features: Sequence[int]) -> Array:
    """Bin numbers (feature, row) of a piece; many pieces are quicker with one `PieceCoder`."""
    return PieceCoder(binned, features).code(columns)


def _count_rows(column: Column) -> int:
    assert not isinstance(column, Dates)
    return len(column.values if isinstance(column, Numbers) else column.codes)


class _LevelLookup(NamedTuple):
    """The bin of each level of a category."""

    bins: Mapping[tuple[str, Level], int]
    has_missing: bool

    @classmethod
    def make(cls, binned: Binning, feature: int) -> _LevelLookup:
        levels, has_missing = binned.levels[feature], bool(binned.has_missing[feature])
        numbers = {sort_key(level): k for k, level in enumerate(levels.levels)}
        numbers |= {sort_key(level): len(levels.levels) for level in levels.pool}
        return cls({key: k + has_missing for key, k in numbers.items()}, has_missing)

    def code(self, column: Column, out: Array) -> None:
        assert isinstance(column, Levels)
        bins = [self.bins[sort_key(level)] for level in column.levels]
        out[:] = np.array([*bins, 0], dtype=out.dtype)[column.codes]  # the last is for missing


class _EdgeSearch(NamedTuple):
    """The thresholds of a column of numbers, made ready to be searched.

    Where values are missing a threshold of minus infinity comes first, which all others exceed.
    """

    edges: Array
    table: SearchTable | None

    @classmethod
    def make(cls, binned: Binning, feature: int) -> _EdgeSearch:
        edges = binned.find_edges(feature)
        if binned.has_missing[feature]:
            edges = np.concatenate((np.array([-np.inf], dtype=edges.dtype), edges))
        is_searched = 1 < len(edges) < MAX_NARROW_BINS  # else NumPy is as quick
        return cls(edges, make_search_table([edges], edges.dtype) if is_searched else None)

    def code(self, column: Column, out: Array) -> None:
        assert isinstance(column, Numbers)
        values = read_numbers(column, is_exact=self.edges.dtype.kind in "iu")
        values = values.astype(self.edges.dtype, copy=False)
        if self.table is None or out.dtype != CODE_DTYPE:
            out[:] = np.where(values != values, 0, np.searchsorted(self.edges, values, "left"))
            return
        in_place, first = np.arange(len(values), dtype=ROW_DTYPE), np.zeros(1, dtype=np.int64)
        nothing = np.zeros(1, dtype=np.bool_)
        _kernels.code_columns(
            values[:, np.newaxis],
            in_place,
            first,
            self.table,
            nothing,
            self.edges[:1],
            out[np.newaxis],
            nothing,
        )


def _name(names: Sequence[str] | None, j: int) -> str:
    return repr(j if names is None else names[j])
