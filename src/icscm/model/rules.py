"""Rules: frozen statements about one feature, true or false for every sample.

The truth of a rule for a missing value is part of it: `missing`. It is
None where no value was missing at fitting; such a rule and its negation are both false for a
missing value that turns up later, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray
from icscm.exceptions import IcscmError, UnseenMissingWarning, warn
from icscm.formatting import count, format_level, format_name, format_number, shorten_list
from icscm.tables.columns import (
    Column,
    Dates,
    Level,
    Levels,
    Numbers,
    find_levels,
    read_column,
    sort_key,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A statement about one column: its position, and its name if it has one.

    A kind of rule adds its own fields. The boolean one that `sense` names turns it into its
    negation.
    """

    column: int
    name: str | None

    kind: ClassVar[str]
    sense: ClassVar[str]

    @property
    def feature(self) -> str | int:
        """The feature's name where the data had names, its position otherwise."""
        return self.column if self.name is None else self.name

    def mask(self, X: Any) -> BoolArray:
        """Truth of the rule for each row of `X`, an array or any kind of table."""
        column = read_column(X, self.column, self.name)
        truth = self.judge(column)
        warn_of_unseen([self], column)
        return truth

    def judge(self, column: Column) -> BoolArray:
        """Truth of the rule for each row of its column; no warning of missing values."""
        raise NotImplementedError

    def negate(self) -> Self:
        """The rule that is true exactly where this one is false."""
        changes: dict[str, Any] = {self.sense: not getattr(self, self.sense)}
        if (missing := getattr(self, "missing", None)) is not None:
            changes["missing"] = not missing
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `make_rule` turns back into this rule."""
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in values}
        return {"kind": self.kind, **plain}


@dataclass(frozen=True, slots=True)
class ThresholdRule(Rule):
    """`x > threshold`, or `x <= threshold` when `above` is false.

    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(rule, "|", rule.negate())
    age > 63 | age <= 63
    >>> print(ThresholdRule(0, "glucose", 140, above=True, missing=True).negate())
    glucose <= 140 (missing: false)
    """

    threshold: float
    above: bool
    missing: bool | None = None

    kind: ClassVar[str] = "threshold"
    sense: ClassVar[str] = "above"

    def judge(self, column: Column) -> BoolArray:
        values, missing = _read_numbers(column, self)
        # as float64: else NumPy rounds the threshold to the narrower type of the values
        narrow = values.dtype.kind == "f" and values.dtype.itemsize < 8
        above: BoolArray = values > (np.float64(self.threshold) if narrow else self.threshold)
        return _set_missing(above if self.above else ~above, missing, self)

    def __str__(self) -> str:
        sign = ">" if self.above else "<="
        text = f"{format_name(self.feature)} {sign} {format_number(self.threshold)}"
        return text + _missing_text(self)


@dataclass(frozen=True, slots=True)
class CategoryRule(Rule):
    """`x == level`, or `x != level` when `equal` is false.

    With `pooled` the levels are those too rare for a rule of their own, which act as one. A level
    not seen at fitting equals none.

    >>> rule = CategoryRule(column=0, name="smoker", levels=("yes",), equal=True)
    >>> print(rule, "|", rule.negate())
    smoker == yes | smoker != yes
    >>> print(CategoryRule(0, "code", ("V57", "V58"), equal=True, pooled=True, missing=False))
    code in 2 rare levels (missing: false)
    """

    levels: tuple[Level, ...]
    equal: bool
    pooled: bool = False
    missing: bool | None = None

    kind: ClassVar[str] = "category"
    sense: ClassVar[str] = "equal"

    def judge(self, column: Column) -> BoolArray:
        is_level = self._find_equal(column)
        missing = None if isinstance(column, Dates) else column.missing
        return _set_missing(is_level if self.equal else ~is_level, missing, self)

    def _find_equal(self, column: Column) -> BoolArray:
        if isinstance(column, Levels):
            self._check_kind(column)
            truth = np.append(find_levels(column, self.levels), False)
            equal: BoolArray = truth[column.codes]  # -1, missing, is the last entry
            return equal
        numbers = [level for level in self.levels if not isinstance(level, str | bool)]
        if isinstance(column, Dates) or (len(numbers) < len(self.levels) and len(column.values)):
            raise IcscmError(
                f"{_describe(self)} held categories at fitting and holds {_kind_of(column)} now; "
                "give it as text, or as the type it had"
            )
        return np.isin(column.values, numbers)

    def _check_kind(self, column: Levels) -> None:
        """Raise if no level could ever be equal: a boolean never equals a text."""
        kinds = {sort_key(level)[0] for level in column.levels}
        wanted = {sort_key(level)[0] for level in self.levels}
        if kinds and not kinds & wanted:
            raise IcscmError(
                f"{_describe(self)} held levels of kind {', '.join(sorted(wanted))} at fitting and "
                f"holds {', '.join(sorted(kinds))} now; give it as the type it had"
            )

    def __str__(self) -> str:
        if self.pooled:
            verb = "in" if self.equal else "not in"
            value = f"{verb} {count(len(self.levels), 'rare level')}"
        else:
            value = f"{'==' if self.equal else '!='} {format_level(self.levels[0])}"
        return f"{format_name(self.feature)} {value}{_missing_text(self)}"


@dataclass(frozen=True, slots=True)
class MissingRule(Rule):
    """`x is missing`, or `x is present` when `is_missing` is false.

    >>> rule = MissingRule(column=0, name="thal", is_missing=True)
    >>> print(rule, "|", rule.negate())
    thal is missing | thal is present
    """

    is_missing: bool

    kind: ClassVar[str] = "missing"
    sense: ClassVar[str] = "is_missing"

    def judge(self, column: Column) -> BoolArray:
        if isinstance(column, Dates):
            raise IcscmError(f"{_describe(self)} holds dates now; give the type it had at fitting")
        n_rows = len(column.codes if isinstance(column, Levels) else column.values)
        missing = column.missing
        found = np.zeros(n_rows, dtype=np.bool_) if missing is None else missing
        return found if self.is_missing else ~found

    def __str__(self) -> str:
        return f"{format_name(self.feature)} is {'missing' if self.is_missing else 'present'}"


@dataclass(frozen=True, slots=True)
class PresenceRule(Rule):
    """`x present`, a value above 0, or `x absent` when `present` is false.

    >>> rule = PresenceRule(column=0, name="blaTEM", present=True)
    >>> print(rule, "|", rule.negate(), "|", PresenceRule(3, None, present=True))
    blaTEM present | blaTEM absent | x3 present
    """

    present: bool

    kind: ClassVar[str] = "presence"
    sense: ClassVar[str] = "present"
    missing: ClassVar[None] = None  # what may be missing is no presence or absence

    def judge(self, column: Column) -> BoolArray:
        values, missing = _read_presence(column, self)
        present: BoolArray = values > 0
        return _set_missing(present if self.present else ~present, missing, self)

    def __str__(self) -> str:
        return f"{format_name(self.feature)} {'present' if self.present else 'absent'}"


AnyRule = ThresholdRule | CategoryRule | MissingRule | PresenceRule

RULE_KINDS: dict[str, type[AnyRule]] = {
    each.kind: each for each in (ThresholdRule, CategoryRule, MissingRule, PresenceRule)
}


def make_rule(plain: dict[str, Any]) -> Rule:
    """The rule that `to_dict` described.

    >>> rule = ThresholdRule(column=1, name=None, threshold=0.5, above=False)
    >>> make_rule(rule.to_dict()) == rule
    True
    """
    values = dict(plain)
    kind = values.pop("kind", None)
    if kind not in RULE_KINDS:
        raise IcscmError(f"unknown kind of rule {kind!r}; this version knows {sorted(RULE_KINDS)}")
    if "levels" in values:
        values["levels"] = tuple(values["levels"])
    return RULE_KINDS[kind](**values)


def _describe(rule: Rule) -> str:
    return f"column {rule.feature!r}"


def _missing_text(rule: ThresholdRule | CategoryRule) -> str:
    return "" if rule.missing is None else f" (missing: {str(rule.missing).lower()})"


def _kind_of(column: Column) -> str:
    if isinstance(column, Dates):
        return "dates"
    return "numbers" if isinstance(column, Numbers) else "categories"


def _read_presence(column: Column, rule: PresenceRule) -> tuple[NDArray[Any], BoolArray | None]:
    """Numbers, or booleans, which tables keep as levels."""
    if isinstance(column, Levels) and all(isinstance(level, bool) for level in column.levels):
        return np.append(column.levels, False)[column.codes], column.missing
    return _read_numbers(column, rule)


def _read_numbers(
    column: Column, rule: ThresholdRule | PresenceRule
) -> tuple[NDArray[Any], BoolArray | None]:
    if isinstance(column, Numbers):
        return column.values, column.missing
    if isinstance(column, Levels) and not column.levels:  # nothing at all in this column
        return np.zeros(len(column.codes)), column.missing
    raise IcscmError(
        f"{_describe(rule)} held numbers at fitting and holds {_kind_of(column)} now; give numbers"
    )


def _set_missing(
    truth: BoolArray, missing: BoolArray | None, rule: ThresholdRule | CategoryRule | PresenceRule
) -> BoolArray:
    """The rule's truth, with its `missing` where values are missing."""
    if missing is None or not missing.any():
        return truth
    return np.where(missing, bool(rule.missing), truth)


def warn_of_unseen(rules: Sequence[Any], column: Column) -> None:
    """Warn of missing values in a column that had none at fitting."""
    missing = None if isinstance(column, Dates) else column.missing
    unsure = [rule for rule in rules if getattr(rule, "missing", True) is None]
    if missing is None or not unsure or not missing.any():
        return
    texts = [f"'{rule}'" for rule in dict.fromkeys(unsure)]
    where = count(int(missing.sum()), "row")
    warn(
        f"Column {unsure[0].feature!r} is missing in {where} and never was at fitting: "
        f"{shorten_list(texts)} count{'s' * (len(texts) == 1)} as false there.",
        UnseenMissingWarning,
    )
