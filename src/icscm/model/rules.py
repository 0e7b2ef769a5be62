"""Rules: frozen statements about one feature, true or false for every sample.

The truth of a rule for a missing value is part of it: `missing`. It is None where no value was
missing at fitting. Such a rule and its negation are both false for a missing value that turns up
later, and a model takes the mean of both branches (`icscm.model.splits.blend`).
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray
from icscm.exceptions import IcscmError, UnseenMissingWarning, warn
from icscm.formatting import count, format_level, format_name, format_number, shorten_list
from icscm.tables.columns import Column, Level, Levels, Numbers, find_levels, read_column, sort_key


@dataclass(frozen=True, slots=True)
class Rule:
    """A statement about one column: its position, and its name if it has one.

    Each kind of rule adds its own fields. Inverting the boolean field named by `sense` negates the
    rule.
    """

    column: int
    name: str | None

    kind: ClassVar[str]
    sense: ClassVar[str]

    @property
    def feature(self) -> str | int:
        """The feature's name where the data had names, its position otherwise."""
        return self.column if self.name is None else self.name

    @property
    def is_unsure(self) -> bool:
        """Whether the truth for missing values is undefined."""
        return getattr(self, "missing", True) is None

    def mask(self, X: Any) -> BoolArray:
        """Truth of the rule for each row of `X`, an array or any kind of table."""
        column = read_column(X, self.column, self.name)
        truth = self.judge(column)
        warn_of_unseen([self], column)
        return truth

    def judge(self, column: Column) -> BoolArray:
        """Truth of the rule for each row of its column; no warning of missing values."""
        truth = self._compare(column)
        if not getattr(self, self.sense):
            truth = ~truth
        missing = getattr(column, "missing", None)
        if missing is None or isinstance(self, MissingRule) or not missing.any():
            return truth
        return np.where(missing, bool(getattr(self, "missing", None)), truth)

    def _compare(self, column: Column) -> BoolArray:
        """The comparison for each row, as if `sense` were true and no value missing."""
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

    def __str__(self) -> str:
        missing = getattr(self, "missing", None)
        note = "" if missing is None else f" (missing: {str(missing).lower()})"
        return f"{format_name(self.feature)} {self._format_condition()}{note}"

    def _format_condition(self) -> str:
        raise NotImplementedError


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

    def _compare(self, column: Column) -> BoolArray:
        values = _read_numbers(column, self)
        # as float64: else NumPy rounds the threshold to the narrower type of the values
        narrow = values.dtype.kind == "f" and values.dtype.itemsize < 8
        return values > (np.float64(self.threshold) if narrow else self.threshold)

    def _format_condition(self) -> str:
        return f"{'>' if self.above else '<='} {format_number(self.threshold)}"


@dataclass(frozen=True, slots=True)
class CategoryRule(Rule):
    """`x == level`, or `x != level` when `equal` is false.

    With `pooled`, the levels are rare ones that count as one. Otherwise, several levels are those
    above a cut of an ordered category. A level not seen at fitting equals none.

    >>> rule = CategoryRule(column=0, name="smoker", levels=("yes",), equal=True)
    >>> print(rule, "|", rule.negate())
    smoker == yes | smoker != yes
    >>> print(CategoryRule(0, "code", ("V57", "V58"), equal=True, pooled=True, missing=False))
    code in 2 rare levels (missing: false)
    >>> print(CategoryRule(0, "stage", ("III", "IV"), equal=True))
    stage in {III, IV}
    """

    levels: tuple[Level, ...]
    equal: bool
    pooled: bool = False
    missing: bool | None = None

    kind: ClassVar[str] = "category"
    sense: ClassVar[str] = "equal"

    def _compare(self, column: Column) -> BoolArray:
        if isinstance(column, Levels):
            kinds, wanted = (
                {sort_key(level)[0] for level in levels} for levels in (column.levels, self.levels)
            )
            if kinds and not kinds & wanted:  # a boolean never equals a text
                raise IcscmError(
                    f"column {self.feature!r} held levels of kind {', '.join(sorted(wanted))} at "
                    f"fitting and holds {', '.join(sorted(kinds))} now; give it as the type it had"
                )
            truth = np.append(find_levels(column, self.levels), False)
            return np.asarray(truth[column.codes])  # -1, missing, is the last entry
        numbers = [level for level in self.levels if not isinstance(level, str | bool)]
        if isinstance(column, Numbers) and (len(numbers) == len(self.levels) or not len(column)):
            return np.isin(column.values, numbers)
        kind = "numbers" if isinstance(column, Numbers) else "dates"
        raise IcscmError(
            f"column {self.feature!r} held categories at fitting and holds {kind} now; give it as "
            "text, or as the type it had"
        )

    def _format_condition(self) -> str:
        verb = "in" if self.equal else "not in"
        if self.pooled:
            return f"{verb} {count(len(self.levels), 'rare level')}"
        if len(self.levels) > 1:
            return f"{verb} {{{', '.join(map(format_level, self.levels))}}}"
        return f"{'==' if self.equal else '!='} {format_level(self.levels[0])}"


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

    def _compare(self, column: Column) -> BoolArray:
        if not isinstance(column, Numbers | Levels):
            raise IcscmError(
                f"column {self.feature!r} holds dates now; give the type it had at fitting"
            )
        missing = column.missing
        return np.zeros(len(column), dtype=np.bool_) if missing is None else missing

    def _format_condition(self) -> str:
        return f"is {'missing' if self.is_missing else 'present'}"


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
    missing: ClassVar[None] = None  # a presence or absence is never missing

    def _compare(self, column: Column) -> BoolArray:
        if isinstance(column, Levels) and all(isinstance(level, bool) for level in column.levels):
            return np.append(column.levels, False).astype(np.bool_)[column.codes]
        return _read_numbers(column, self) > 0

    def _format_condition(self) -> str:
        return "present" if self.present else "absent"


RULE_KINDS: dict[str, type[Rule]] = {
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


def _read_numbers(column: Column, rule: Rule) -> NDArray[Any]:
    if isinstance(column, Numbers):
        return column.values
    if isinstance(column, Levels) and not column.levels:  # a column without any value
        return np.zeros(len(column.codes))
    kind = "categories" if isinstance(column, Levels) else "dates"
    raise IcscmError(
        f"column {rule.feature!r} held numbers at fitting and holds {kind} now; give numbers"
    )


def warn_of_unseen(rules: Sequence[Rule], column: Column) -> BoolArray | None:
    """Where a column without missing values at fitting has some, with a warning; else None."""
    missing: BoolArray | None = getattr(column, "missing", None)
    unsure = [rule for rule in rules if rule.is_unsure]
    if missing is None or not unsure or not missing.any():
        return None
    texts = [f"'{rule}'" for rule in dict.fromkeys(unsure)]
    where, verb = count(int(missing.sum()), "row"), "is" if len(texts) == 1 else "are"
    effect = f"{shorten_list(texts)} {verb} neither true nor false there, and the prediction is "
    effect += "the mean of both branches."
    if any(isinstance(rule, MissingRule) for rule in rules):  # of a score
        effect = "these rows get the points of an average sample, rounded up."
    text = f"Column {unsure[0].feature!r} is missing in {where} but never was at fitting: {effect}"
    warn(text, UnseenMissingWarning)
    return missing


# --- simplifying: for display only, since each rule of a model has its own leaf -------------------


def simplify(rules: Sequence[Rule], *, all_hold: bool) -> tuple[Rule, ...]:
    """The fewest rules equivalent to these, of which all must hold, or any one.

    >>> rules = [ThresholdRule(0, "age", level, above=True) for level in (19, 45, 21)]
    >>> [[str(rule) for rule in simplify(rules, all_hold=each)] for each in (True, False)]
    [['age > 45'], ['age > 19']]
    """
    kept: tuple[Rule, ...] = ()
    for rule in rules:
        kept = add_rule(kept, rule, all_hold=all_hold)
    return kept


def add_rule(simple: Sequence[Rule], rule: Rule, *, all_hold: bool) -> tuple[Rule, ...]:
    """Simplified rules and one more, simplified."""
    kept, place, i = list(simple), len(simple), 0
    while i < len(kept):
        joined = _join(kept[i], rule, all_hold=all_hold)
        i += 1
        if joined is not None:  # replaces the rule it was joined with; it may join others in turn
            del kept[i - 1]
            rule, place, i = joined, min(i - 1, place), 0
    kept.insert(place, rule)
    return tuple(kept)


def _join(first: Rule, second: Rule, *, all_hold: bool) -> Rule | None:
    """One rule that is true where both are, or where any of the two is; None if there is none."""
    if first.feature != second.feature:
        return None
    if all_hold:
        return _join_both(first, second)
    neither = _join_both(first.negate(), second.negate())  # De Morgan
    return None if neither is None else neither.negate()


def _join_both(first: Rule, second: Rule) -> Rule | None:
    """One rule that is true where both are."""
    if isinstance(second, MissingRule):
        first, second = second, first
    if not isinstance(second, ThresholdRule | CategoryRule):
        return first if first == second else None
    if isinstance(first, MissingRule) and second.missing is not None:
        if not first.is_missing:
            return replace(second, missing=False)
        return first if second.missing else None  # never true: unchanged
    if not isinstance(first, ThresholdRule | CategoryRule):
        return None
    if (first.missing is None) != (second.missing is None):
        return None
    stronger = first if _implies(first, second) else second if _implies(second, first) else None
    if stronger is None or stronger.missing is None:
        return stronger
    return replace(stronger, missing=bool(first.missing and second.missing))


def _implies(one: Rule, other: Rule) -> bool:
    if isinstance(one, ThresholdRule) and isinstance(other, ThresholdRule):
        further = operator.ge if one.above else operator.le
        return one.above == other.above and further(one.threshold, other.threshold)
    if not (isinstance(one, CategoryRule) and isinstance(other, CategoryRule)):
        return False
    levels, others = ({sort_key(level) for level in rule.levels} for rule in (one, other))
    if one.equal:
        return levels <= others if other.equal else levels.isdisjoint(others)
    return not other.equal and others <= levels
