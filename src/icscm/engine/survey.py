"""What must be known of a table that is read in pieces before its values can be binned.

    piece 1 -> survey_piece -> Survey --.
    piece 2 -> survey_piece -> Survey ----> merge_surveys -> Survey of the whole table
    piece 3 -> survey_piece -> Survey --'

Surveys can be merged in any order and grouping, and end up equal. `binning` makes thresholds of
them; with the same rows in the sample, those that `coding.encode` chooses for the whole table.

Unlike in memory, not all distinct values can be kept: whether a column of whole numbers, or a
category of more than `MAX_SURVEYED_LEVELS` levels, is an identifier is estimated from how often
some thousands of its values occur, picked by their hash.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np

from icscm._constants import LARGEST_EXACT, MAX_SURVEYED_LEVELS, SUSPICION_ROWS, VALUE_SAMPLE
from icscm._types import Array, Hashes, IntArray
from icscm.engine import _kernels
from icscm.engine.threads import run_in_parts
from icscm.exceptions import IcscmError
from icscm.tables.columns import Column, Dates, Level, Levels, Numbers, as_plain_numbers, sort_key
from icscm.tables.errors import make_infinity_error, name_columns
from icscm.tables.suspicion import ColumnFacts

Key = TypeVar("Key", bound=Hashable)
Copied = Mapping[Hashable, Level | None] | None

# What a column holds. Whole numbers and others are distinguished by type, as only
# whole numbers can be identifiers; levels by their kind.
WHOLE_NUMBERS, OTHER_NUMBERS, DATE = "whole numbers", "numbers", "dates"
LEVEL_KINDS = {"text": "text", "boolean": "booleans", "number": "categories that are numbers"}
NO_LEVELS = "nothing"  # a category all of whose values are missing


class Groups(NamedTuple):
    """Which group - label, or environment - each row of a piece belongs to.

    `codes[i]` is a position in `values`; the same value means the same group in every piece.
    """

    codes: Array
    values: Sequence[Hashable]

    def find_first(self) -> Array:
        """The first row of each group; -1 where it has none."""
        first = np.full(len(self.values), -1, dtype=np.intp)
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]  # the last to write stays
        return first

    def count_rows(self) -> dict[Hashable, int]:
        """Rows of each group that has any."""
        n_rows = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return {value: n for value, n in zip(self.values, n_rows, strict=True) if n}


class ValueSample(NamedTuple):
    """Some of a column's distinct values, those of least hash, by hash, and the rows of each.

    A value among those of least hash in the whole is so in every piece it occurs in: merging
    loses no rows of the values that are left.
    """

    hashes: Hashes
    n_rows: IntArray


@dataclass(frozen=True)
class ColumnSurvey:
    """What is known of one column.

    `values` holds the rows of each number or level; None if they are more than thresholds can tell
    apart, or than can be kept. Of numbers `lowest` and `highest` are None where all are missing,
    and `is_whole` says that all are whole. `samples` serve to recognise identifiers among whole
    numbers, and among levels, where there are too many values. `copied` holds the one value of each
    label while the column may be an exact copy of the label, else None; then those of the
    environments likewise.
    """

    kind: str
    n_missing: int
    values: Mapping[Level, int] | None = field(default_factory=dict)
    dtype: np.dtype[Any] | None = None
    lowest: float | None = None
    highest: float | None = None
    is_whole: bool = False
    samples: ValueSample | None = None
    copied: tuple[Copied, Copied] = (None, None)

    @property
    def is_number(self) -> bool:
        return self.kind in (WHOLE_NUMBERS, OTHER_NUMBERS)

    @property
    def is_category(self) -> bool:
        return not self.is_number and self.kind != DATE

    @property
    def is_large(self) -> bool:
        """Whether it holds whole numbers that float64 would round."""
        largest = max(-float(self.lowest or 0), float(self.highest or 0))
        return self.kind == WHOLE_NUMBERS and largest >= LARGEST_EXACT

    def gather_facts(self, n_rows: int) -> ColumnFacts:
        """The facts that decide whether it is suspicious, among so many rows."""
        n_present = n_rows - self.n_missing
        n_distinct = np.inf if self.values is None else len(self.values)
        if self.samples is not None:  # exact if all values are in the sample
            n_sampled = max(1, int(self.samples.n_rows.sum()))
            n_distinct = len(self.samples.hashes) * n_present / n_sampled
        extremes = float(self.lowest or 0), float(self.highest or 0)
        kind = self.is_category, self.is_whole
        return ColumnFacts(n_rows, n_present, n_distinct, *kind, *extremes)


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
        types = [None if each.n_missing else each.dtype for each in self.columns]
        common = np.result_type(*types) if types and None not in types else np.dtype(np.float64)
        return common if common.kind in "iu" else np.dtype(np.float64)


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
    given = (labels, environments) if n_rows else (None, None)
    groups = [None if each is None else (each, each.find_first()) for each in given]

    def survey_column(j: int) -> ColumnSurvey:
        column = columns[j]
        if isinstance(column, Dates):
            return ColumnSurvey(DATE, 0)
        if isinstance(column, Levels):
            found = _survey_levels(column)
        else:
            found = _survey_numbers(column, max_thresholds)
        if np.inf in (found.highest, -(found.lowest or 0)):
            raise make_infinity_error(name_columns([j], names))
        of_label, of_environment = (_find_copied(column, each) for each in groups)
        return replace(found, copied=(of_label, of_environment))

    surveyed = tuple(run_in_parts(survey_column, range(len(columns)), n_threads))
    by_environment = {} if environments is None else environments.count_rows()
    return Survey(n_rows, max_thresholds, surveyed, labels.count_rows(), by_environment)


def _survey_numbers(column: Numbers, max_thresholds: int | None) -> ColumnSurvey:
    values = as_plain_numbers(column.values)
    present = values if column.missing is None else values[~column.missing]
    kind = WHOLE_NUMBERS if values.dtype.kind in "iu" else OTHER_NUMBERS
    # floats may be whole numbers, too: those of a table with missing values come so
    is_whole = kind == WHOLE_NUMBERS or not any(
        (np.abs(some) >= LARGEST_EXACT).any() or (some != np.floor(some)).any()
        for some in (present[:SUSPICION_ROWS], present)  # nearly all fail in the first rows
    )
    found, n_missing = _tally(present, max_thresholds), len(values) - len(present)
    low, high = (present.min().item(), present.max().item()) if len(present) else (None, None)
    samples = _sample_numbers(present) if is_whole and found is None else None
    return ColumnSurvey(kind, n_missing, found, values.dtype, low, high, is_whole, samples)


def _tally(present: Array, max_thresholds: int | None) -> dict[Level, int] | None:
    """The rows of each value; None if there are too many values."""
    if max_thresholds is None:
        found, n_rows = np.unique(present, return_counts=True)
    else:
        most = max_thresholds + 1
        found, n_rows = np.zeros(most, present.dtype), np.zeros(most, np.int64)
        n_found = _kernels.tally_values(present, found, n_rows)
        if n_found > most:
            return None
        found, n_rows = found[:n_found], n_rows[:n_found]
    return dict(zip(found.tolist(), n_rows.tolist(), strict=True))


def _survey_levels(column: Levels) -> ColumnSurvey:
    n_rows = np.bincount(column.codes + 1, minlength=len(column.levels) + 1).tolist()
    levels = dict(zip(column.levels, n_rows[1:], strict=True))
    kinds = {sort_key(level)[0] for level in levels}
    kind = LEVEL_KINDS[kinds.pop()] if kinds else NO_LEVELS
    return _limit_values(ColumnSurvey(kind, n_rows[0], levels), None)


def _limit_values(column: ColumnSurvey, max_thresholds: int | None) -> ColumnSurvey:
    """A sample in the place of values that are too many to keep."""
    most = max_thresholds if column.is_number else MAX_SURVEYED_LEVELS - 1
    if column.values is None or most is None or len(column.values) <= most + 1:
        return column
    return replace(column, values=None, samples=_sample_values(column))


def _sample_values(column: ColumnSurvey) -> ValueSample | None:
    """A sample of a column's values, made now unless it is there already; None of fractions."""
    if column.values is None or (column.is_number and not column.is_whole):
        return column.samples
    if column.is_number:
        hashes = _hash_numbers(np.array([int(v) % 2**64 for v in column.values], dtype=np.uint64))
    else:
        # Python's own hash of a text is another one in every process
        texts = [repr(level).encode("utf-8", "surrogatepass") for level in column.values]
        digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
        hashes = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
    return _make_sample(hashes, np.array([*column.values.values()], dtype=np.int64))


def _sample_numbers(values: Array) -> ValueSample:
    """The values of least hash; counting the rows of all values would take most of the time."""
    hashes = _hash_numbers(values)
    if len(hashes) > 8 * VALUE_SAMPLE:
        low = hashes[hashes <= np.uint64(2**64 // (len(hashes) // (4 * VALUE_SAMPLE)) - 1)]
        found = _make_sample(*np.unique(low, return_counts=True))
        if len(found.hashes) == VALUE_SAMPLE:  # else values occur too often for the shortcut
            return found
    return _make_sample(*np.unique(hashes, return_counts=True))


def _hash_numbers(values: Array) -> Hashes:
    """Whole numbers of any type, hashed by value (the steps of splitmix64)."""
    bits = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _make_sample(hashes: Hashes, n_rows: IntArray) -> ValueSample:
    """Those of least hash, rows of equal ones added up."""
    distinct, number = np.unique(hashes, return_inverse=True)
    totals = np.bincount(number, n_rows, len(distinct)).astype(np.int64)
    return ValueSample(distinct[:VALUE_SAMPLE], totals[:VALUE_SAMPLE])


def _find_copied(column: Numbers | Levels, groups: tuple[Groups, Array] | None) -> Copied:
    """The value of each group if the column has one in each, another in every other.

    Being missing counts as a value, None. With the groups comes the first row of each.
    """
    if groups is None:
        return None
    (codes, names), first_rows = groups
    values = column.values if isinstance(column, Numbers) else column.codes
    missing = np.zeros(len(values), np.bool_) if column.missing is None else column.missing
    for rows in (slice(0, SUSPICION_ROWS), slice(None)):  # nearly all fail in the first rows
        first = first_rows[codes[rows]]
        differs = (values[rows] != values[first]) & ~missing[rows]
        if (differs | (missing[rows] != missing[first])).any():
            return None
    found: dict[Hashable, Level | None] = {}
    for name, row in zip(names, first_rows.tolist(), strict=True):
        if row >= 0:
            value = None if missing[row] else values[row].item()
            if value is not None and isinstance(column, Levels):
                value = column.levels[value]
            found[name] = value
    return _if_all_differ(found)


def _if_all_differ(values: dict[Hashable, Level | None]) -> Copied:
    """The values, if no two groups share one."""
    return values if len({*values.values()}) == len(values) else None


def merge_surveys(a: Survey, b: Survey, names: Sequence[str] | None = None) -> Survey:
    """The survey of the rows of both."""
    if len(a.columns) != len(b.columns):
        why = f"one piece of the data has {len(a.columns)} columns, another {len(b.columns)}"
        raise IcscmError(f"{why}; all pieces must have the same columns")
    # types of a piece without rows are unknown, as in an empty text file
    if a.n_rows == 0 or b.n_rows == 0:
        return b if a.n_rows == 0 else a
    merged = tuple(
        _merge_columns(one, other, a.max_thresholds, name_columns([j], names))
        for j, (one, other) in enumerate(zip(a.columns, b.columns, strict=True))
    )
    groups = _add_counts(a.labels, b.labels), _add_counts(a.environments, b.environments)
    return Survey(a.n_rows + b.n_rows, a.max_thresholds, merged, *groups)


def _merge_columns(
    a: ColumnSurvey, b: ColumnSurvey, max_thresholds: int | None, name: str
) -> ColumnSurvey:
    kind, is_whole = _join_kinds(a, b, name), a.is_whole and b.is_whole
    dtype = None if a.dtype is None or b.dtype is None else np.result_type(a.dtype, b.dtype)
    low = min((each.lowest for each in (a, b) if each.lowest is not None), default=None)
    high = max((each.highest for each in (a, b) if each.highest is not None), default=None)
    copied = _merge_copied(a.copied[0], b.copied[0]), _merge_copied(a.copied[1], b.copied[1])
    facts = a.n_missing + b.n_missing, None, dtype, low, high, is_whole
    merged = ColumnSurvey(kind, *facts, copied=copied)
    if a.values is not None and b.values is not None:
        values = _add_counts(a.values, b.values)
        return _limit_values(replace(merged, values=values), max_thresholds)
    one, other = _sample_values(a), _sample_values(b)
    if one is None or other is None:  # there are fractions
        return merged
    hashes = np.concatenate((one.hashes, other.hashes))
    return replace(merged, samples=_make_sample(hashes, np.append(one.n_rows, other.n_rows)))


def _join_kinds(a: ColumnSurvey, b: ColumnSurvey, name: str) -> str:
    if a.kind == b.kind:
        return a.kind
    if NO_LEVELS in (a.kind, b.kind) and a.is_category and b.is_category:
        return b.kind if a.kind == NO_LEVELS else a.kind
    why = f"{name} holds {a.kind} in one piece of the data and {b.kind} in another"
    raise IcscmError(f"{why}; give it one type in all of them, or drop it")


def _merge_copied(a: Copied, b: Copied) -> Copied:
    if a is None or b is None or any(a[group] != b[group] for group in {*a} & {*b}):
        return None
    return _if_all_differ({**a, **b})


def _add_counts(a: Mapping[Key, int], b: Mapping[Key, int]) -> dict[Key, int]:
    return {key: a.get(key, 0) + b.get(key, 0) for key in {**a, **b}}
