"""What training had of the values of a column, and what new rows hold that it had not.

A new site may write a level in another way, or measure in another unit. A rule cannot know that:

    smoker == None      is false of "none"
    glucose > 140       is false of every glucose in mmol/l

So a model keeps for each column that it uses the levels or the range of numbers in training
(`TrainingValues`). A level that is not among them is *unknown*: it is treated as missing, never as
another level. Numbers far outside the range are counted and told, and predicted as any other.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from icscm._types import Array, BoolArray
from icscm.exceptions import IcscmError, Parameter, RangeWarning, UnknownLevelWarning, warn
from icscm.formatting import (
    MAX_WHOLE,
    clip,
    count,
    format_name,
    format_number,
    shorten_list,
)
from icscm.model.splits import MAX_RULE
from icscm.tables.columns import Column, Level, Levels, Numbers, find_levels, sort_key

# Levels of a column that a model keeps. Of a column with more it keeps none, and cannot tell which
# are unknown: such columns are codes, of which new ones are usual.
MAX_KEPT_LEVELS: Final = 10_000

# Of this share of the rows or less, an unknown level in a column is told; of more, it is an error.
_MAX_UNKNOWN_SHARE: Final = 0.5

# Numbers far outside the range are told where they are at least so many, and this share.
_MIN_FAR: Final = 5
_MIN_FAR_SHARE: Final = 0.1
# Rows of a large column that show whether it is worth counting all.
_FIRST_LOOK_ROWS: Final = 10_000


# --- what training had ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fences:
    """The bounds beyond which a number is far outside of a range."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Range:
    """The numbers of a column in training: nearly all from `low` to `high`, and the extremes.

    `low` and `high` are the first and the last threshold where these are quantiles, about the 2 %
    and the 98 % point by default; with few thresholds they are the extremes. Of a large table they
    are those of the sample that thresholds come from.
    """

    lowest: float
    low: float
    high: float
    highest: float

    def find_fences(self) -> Fences:
        """Find the bounds beyond which a number is far outside.

        lower = low - (high - low) / 2,   where low > 0 at least   low * sqrt(low / high)

        and upper likewise. The square root is half the range on a logarithmic scale: without it, no
        positive number would be far below the range of a column that begins near 0.
        """
        if self.low == self.high:
            return Fences(lower=self.lowest, upper=self.highest)
        return Fences(
            lower=_find_lower_fence(self.low, self.high),
            upper=-_find_lower_fence(-self.high, -self.low),
        )


def _find_lower_fence(low: float, high: float) -> float:
    """Find the lower fence of a range, see `Range.find_fences`."""
    fence = low - (high / 2 - low / 2)  # halves first: the difference may overflow
    if low > 0:
        fence = max(fence, low * math.sqrt(low / high))
    return fence


@dataclass(frozen=True)
class TrainingValues:
    """The values of one column in training: levels of a category, or the range of numbers.

    What is not known is None, as in models that were saved before version 0.4.
    """

    column: int
    name: str | None
    levels: tuple[Level, ...] | None = None
    range: Range | None = None

    @property
    def feature(self) -> str | int:
        """The column's name where the data had names, its position otherwise."""
        return self.column if self.name is None else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a model file, in which features have the names."""
        plain: dict[str, Any] = {"column": self.column}
        if self.levels is not None:
            plain["levels"] = list(self.levels)
        if self.range is not None:
            plain["range"] = list(astuple(self.range))
        return plain


def keep_levels(levels: tuple[Level, ...]) -> tuple[Level, ...] | None:
    """Return the levels of a column as a model keeps them; None if they are too many for that.

    Numbers must be such as a model file can hold.
    """
    numbers = [level for level in levels if not isinstance(level, str | bool)]
    are_finite = all(math.isfinite(number) and abs(number) <= MAX_WHOLE for number in numbers)
    return levels if 0 < len(levels) <= MAX_KEPT_LEVELS and are_finite else None


# --- unknown levels -------------------------------------------------------------------------------

Treatment = Literal["raise", "allow"]
_TREATMENTS: Final = ("raise", "allow")

# What to do where more than half of the rows have an unknown level.
_treatment: ContextVar[Treatment] = ContextVar("treatment of unknown levels", default="raise")


@contextmanager
def treat_unknown(unknown: Treatment) -> Iterator[None]:
    """Predict inside the block with this treatment of columns that are mostly unknown.

    It is a context since predictions pass through learners that know no such option: pipelines,
    searches, and whatever else is fitted in the folds of a validation. What an outer block allows
    stays allowed.
    """
    if unknown not in _TREATMENTS:
        known = " or ".join(map(repr, _TREATMENTS))
        raise IcscmError(Parameter("unknown"), f" must be {known}, got {unknown!r}")
    is_allowed = "allow" in (unknown, _treatment.get())
    token = _treatment.set("allow" if is_allowed else "raise")
    try:
        yield
    finally:
        _treatment.reset(token)


@dataclass(frozen=True, eq=False)
class UnknownLevels:
    """The levels of a column that training did not have, and which rows have one of them."""

    training: TrainingValues
    levels: tuple[Level, ...]
    is_unknown: BoolArray

    @property
    def n_rows(self) -> int:
        """How many rows have an unknown level."""
        return int(np.count_nonzero(self.is_unknown))

    @property
    def are_too_many(self) -> bool:
        """Whether more than half of the rows have an unknown level."""
        return self.n_rows > _MAX_UNKNOWN_SHARE * len(self.is_unknown)

    def describe(self) -> str:
        """Describe them: the column, how many rows, and the levels with those that are like them.

        Such as `'sex' has levels in 3 of 9 rows that training did not have: 'F' (did you mean
        'f'?)`.
        """
        n_all = len(self.is_unknown)
        similar_levels = SimilarLevels(self.training.levels or ())
        texts = [repr(level) + similar_levels.suggest(level) for level in self.levels]
        return (
            f"{self.training.feature!r} has levels in {self.n_rows:,} of {count(n_all, 'row')} "
            f"that training did not have: {shorten_list(texts)}"
        )


def find_unknown(column: Column, training: TrainingValues) -> UnknownLevels | None:
    """Find the levels of a column that training did not have; None if there is none.

    A column of another kind, such as booleans instead of text, is left to the rules, which raise.
    """
    if training.levels is None:
        return None
    if isinstance(column, Levels):
        return _find_unknown_levels(column, training, training.levels)
    if isinstance(column, Numbers):
        return _find_unknown_numbers(column, training, training.levels)
    return None


def _find_unknown_levels(
    column: Levels, training: TrainingValues, known_levels: Sequence[Level]
) -> UnknownLevels | None:
    is_known = find_levels(column, known_levels)
    if is_known.all() or not _have_same_kind(column.levels, known_levels):
        return None
    is_unknown_by_code = np.append(~is_known, False)  # code -1, missing, is the last entry
    is_unknown = is_unknown_by_code[column.codes]
    if not is_unknown.any():  # a part of a table may keep levels that no row of it has
        return None
    unknown_levels = [
        level for level, known in zip(column.levels, is_known, strict=True) if not known
    ]
    return UnknownLevels(training, tuple(unknown_levels), is_unknown)


def _find_unknown_numbers(
    column: Numbers, training: TrainingValues, known_levels: Sequence[Level]
) -> UnknownLevels | None:
    """Find the unknown levels of a category of numbers that is now a column of numbers."""
    if any(isinstance(level, str | bool) for level in known_levels):
        return None
    is_unknown = ~np.isin(column.values, known_levels)
    if column.missing is not None:
        is_unknown &= ~column.missing
    if not is_unknown.any():
        return None
    unknown_levels = np.unique(column.values[is_unknown]).tolist()
    return UnknownLevels(training, tuple(unknown_levels), is_unknown)


def _have_same_kind(levels: Sequence[Level], known_levels: Sequence[Level]) -> bool:
    """Return whether any level is of the kind of the known ones: text, numbers or booleans."""
    kinds = {sort_key(level)[0] for level in levels}
    known_kinds = {sort_key(level)[0] for level in known_levels}
    return not kinds.isdisjoint(known_kinds)


def drop_unknown(column: Column, unknown: UnknownLevels) -> Column:
    """Return a column in which unknown levels are missing."""
    if isinstance(column, Levels):
        codes = np.where(unknown.is_unknown, np.int32(-1), column.codes)
        return replace(column, codes=codes)
    assert isinstance(column, Numbers)  # see `find_unknown`
    is_missing = unknown.is_unknown
    if column.missing is not None:
        is_missing = is_missing | column.missing
    return replace(column, missing=is_missing)


def report_unknown(findings: Sequence[UnknownLevels]) -> None:
    """Warn of the unknown levels of each column; raise if one of them is mostly unknown."""
    are_allowed = _treatment.get() == "allow"
    mostly_unknown = [unknown for unknown in findings if unknown.are_too_many]
    if mostly_unknown and not are_allowed:
        described = "; column ".join(unknown.describe() for unknown in mostly_unknown)
        raise IcscmError(
            f"column {described}; write them as in training, or predict with ",
            Parameter("unknown", "allow"),
            ", which treats them as missing",
        )
    for unknown in findings:
        warn(f"Column {unknown.describe()}; they are treated as missing.", UnknownLevelWarning)


def name_column(feature: str | int) -> str:
    """Name a column as the texts of predictions do, on one line and not too long."""
    return clip(format_name(feature), MAX_RULE)


def name_unknown(findings: Sequence[UnknownLevels], n_rows: int) -> Array:
    """Name in each row the columns that have an unknown level: `sex, smoker`; empty where none.

    Exports return the same text.
    """
    texts = np.full(n_rows, "", dtype=object)
    for unknown in findings:
        rows = np.flatnonzero(unknown.is_unknown)
        separators = np.where(texts[rows] == "", "", ", ").astype(object)
        texts[rows] = texts[rows] + separators + name_column(unknown.training.feature)
    return texts


# --- levels that are written in another way -------------------------------------------------------

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
# Characters of a text that is read as a number.
_MAX_DIGITS: Final = 40
_LONG_BOOLEANS: Final = {"t": "true", "f": "false"}


def fold_level(level: Level) -> str | float:
    """Return what levels have in common that differ in case, spaces or the form of a number.

    >>> [fold_level(level) for level in ("None ", "NONE", "01", "1.0", "1,0", 1, True, "t")]
    ['none', 'none', 1.0, 1.0, 1.0, 1.0, 'true', 'true']
    """
    normalized = unicodedata.normalize("NFKC", str(level)).casefold()
    text = " ".join(normalized.split())
    with_point = text.replace(",", ".")
    if len(text) <= _MAX_DIGITS and _NUMBER.fullmatch(with_point):
        return float(with_point)
    return _LONG_BOOLEANS.get(text, text)


class SimilarLevels:
    """The levels of training, by what they have in common with others that mean the same."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels: dict[str | float, Level] = {}
        for level in levels:
            self._levels.setdefault(fold_level(level), level)

    def suggest(self, level: Level) -> str:
        """Return ` (did you mean ...?)` with the level that is written in another way, or ''."""
        similar = self._levels.get(fold_level(level))
        return "" if similar is None else f" (did you mean {similar!r}?)"


# --- numbers far outside the range ----------------------------------------------------------------


@dataclass(frozen=True)
class FarNumbers:
    """How many of a column's numbers are beyond a fence of the range in training.

    `n_extreme` of them are beyond the smallest, or the largest, of training, too.
    """

    n_present: int
    n_far: int
    n_extreme: int

    @property
    def may_be_many(self) -> bool:
        """Whether it is worth counting all rows, if these are some of them."""
        return self.n_far > 0 and self.n_far >= _MIN_FAR_SHARE / 2 * self.n_present

    @property
    def is_shifted(self) -> bool:
        """Whether more than half of the numbers are beyond the fence."""
        return self.n_far >= _MIN_FAR and self.n_far > self.n_present / 2

    @property
    def is_mixed(self) -> bool:
        """Whether a tenth of the numbers are beyond the fence, and such as training had none."""
        return self.n_extreme >= _MIN_FAR and self.n_extreme >= _MIN_FAR_SHARE * self.n_present


def warn_of_far(column: Column, training: TrainingValues) -> None:
    """Warn of numbers far outside the range of training, if they are many.

    Single extreme values are usual, and nothing is said of them. Few rows tell nothing, either.
    """
    if training.range is None or not isinstance(column, Numbers) or len(column) < _MIN_FAR:
        return
    for count_far, describe in ((_count_below, _describe_below), (_count_above, _describe_above)):
        first_look = count_far(_take_some(column), training.range)
        if first_look.may_be_many:  # of usual rows this is all it takes
            _warn_of_side(training, count_far(column, training.range), describe=describe)


def _take_some(column: Numbers) -> Numbers:
    """Take rows of a large column at equal distances; of a small one all."""
    step = max(1, len(column) // _FIRST_LOOK_ROWS)
    missing = None if column.missing is None else column.missing[::step]
    return Numbers(column.values[::step], missing)


def _count_below(column: Numbers, training_range: Range) -> FarNumbers:
    """Count the numbers below a range."""
    fence = training_range.find_fences().lower
    return _count_far(column, column.values < fence, column.values < training_range.lowest)


def _count_above(column: Numbers, training_range: Range) -> FarNumbers:
    """Count the numbers above a range."""
    fence = training_range.find_fences().upper
    return _count_far(column, column.values > fence, column.values > training_range.highest)


def _count_far(column: Numbers, is_far: BoolArray, is_beyond_extreme: BoolArray) -> FarNumbers:
    """Count the numbers that are far, apart from missing ones, whose values mean nothing."""
    missing = column.missing
    n_missing = 0
    if missing is not None:
        is_far = is_far & ~missing
        n_missing = int(np.count_nonzero(missing))
    return FarNumbers(
        n_present=len(column) - n_missing,
        n_far=int(np.count_nonzero(is_far)),
        n_extreme=int(np.count_nonzero(is_far & is_beyond_extreme)),
    )


def _warn_of_side(
    training: TrainingValues, far: FarNumbers, describe: Callable[[Range], str]
) -> None:
    """Warn of the numbers on one side of the range, if they are many."""
    assert training.range is not None  # see `warn_of_far`
    if far.is_shifted:
        n_told, question = far.n_far, "another unit?"
    elif far.is_mixed:
        n_told, question = far.n_extreme, "another unit in these rows?"
    else:
        return
    values = count(far.n_present, "value")
    warn(
        f"Column {training.feature!r}: {n_told:,} of {values} are {describe(training.range)}: "
        f"{question}",
        RangeWarning,
    )


def _describe_below(training_range: Range) -> str:
    """Describe numbers that are below a range."""
    smallest = format_number(training_range.lowest)
    if training_range.low == training_range.lowest:
        return f"far below the smallest of training ({smallest})"
    low = format_number(training_range.low)
    return f"far below those of training (few under {low}, smallest {smallest})"


def _describe_above(training_range: Range) -> str:
    """Describe numbers that are above a range."""
    largest = format_number(training_range.highest)
    if training_range.high == training_range.highest:
        return f"far above the largest of training ({largest})"
    high = format_number(training_range.high)
    return f"far above those of training (few over {high}, largest {largest})"
