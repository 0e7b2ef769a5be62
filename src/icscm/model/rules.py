"""Rules: frozen statements about one column, true or false for every row.

A rule says what it is for a missing value, too: `missing` is True or False, or None where no value
of the column was missing at fitting. Such an *unsure* rule and its negation are both false for a
missing value that turns up later, and a model takes the mean of both branches
(`icscm.model.routes.blend`).
"""

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

    Every kind of rule comes in two forms, one the negation of the other, such as `x > t` and
    `x <= t`. The first one is called affirmative. Each kind adds its fields, one of which says
    which form it is.
    """

    column: int
    name: str | None

    kind: ClassVar[str]
    # Whether the rule compares levels of a category, for which text and booleans are no numbers.
    compares_levels: ClassVar[bool] = False

    @property
    def feature(self) -> str | int:
        """The column's name where the data had names, its position otherwise."""
        return self.column if self.name is None else self.name

    @property
    def is_affirmative(self) -> bool:
        """Whether it is the first of the two forms of its kind, such as `x > t`."""
        raise NotImplementedError

    @property
    def truth_of_missing(self) -> bool | None:
        """Whether the rule is true for a missing value; None if none was missing at fitting."""
        raise NotImplementedError

    @property
    def is_unsure(self) -> bool:
        """Whether the truth for a missing value is undefined."""
        return self.truth_of_missing is None

    def negate(self) -> Self:
        """Return the rule that is true exactly where this one is false."""
        raise NotImplementedError

    # --- rows -----------------------------------------------------------------------------------

    def mask(self, X: Any) -> BoolArray:
        """Find for which rows of `X`, an array or any kind of table, the rule is true."""
        column = read_column(X, self.column, self.name)
        truth = self.judge(column)
        warn_of_unseen([self], column)
        return truth

    def judge(self, column: Column) -> BoolArray:
        """Find for which rows of its column the rule is true; no warning of missing values."""
        is_affirmed = self._find_affirmed(column)
        truth = is_affirmed if self.is_affirmative else ~is_affirmed

        is_missing = column.missing
        if is_missing is None or not is_missing.any():
            return truth
        return np.where(is_missing, bool(self.truth_of_missing), truth)

    def _find_affirmed(self, column: Column) -> BoolArray:
        """Find the rows for which the affirmative form is true, as if no value were missing."""
        raise NotImplementedError

    # --- text and files -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `make_rule` turns back into this rule."""
        plain: dict[str, Any] = {"kind": self.kind}
        for each_field in fields(self):
            value = getattr(self, each_field.name)
            plain[each_field.name] = list(value) if isinstance(value, tuple) else value
        return plain

    def __str__(self) -> str:
        return f"{format_name(self.feature)} {self.format_condition()}{self._format_note()}"

    def format_condition(self) -> str:
        """Write what the rule says of its column, such as `> 63`."""
        raise NotImplementedError

    def _format_note(self) -> str:
        """Write what the rule says of a missing value, where its condition does not."""
        return ""


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

    @property
    def is_affirmative(self) -> bool:
        """Whether it is `x > threshold`."""
        return self.above

    @property
    def truth_of_missing(self) -> bool | None:
        """Whether the rule is true for a missing number."""
        return self.missing

    def negate(self) -> Self:
        return replace(self, above=not self.above, missing=_negate_truth(self.missing))

    def _find_affirmed(self, column: Column) -> BoolArray:
        values = _read_numbers(column, self)
        is_narrow_float = values.dtype.kind == "f" and values.dtype.itemsize < 8
        if is_narrow_float:
            # As float64: else NumPy rounds the threshold to the narrower type of the values.
            return values > np.float64(self.threshold)
        return values > self.threshold

    def format_condition(self) -> str:
        sign = ">" if self.above else "<="
        return f"{sign} {format_number(self.threshold)}"

    def _format_note(self) -> str:
        return _format_missing(self.missing)


@dataclass(frozen=True, slots=True)
class CategoryRule(Rule):
    """`x == level`, or `x != level` when `equal` is false.

    With `pooled`, the levels are rare ones that count as one. Otherwise, several levels are those
    above a cut of an ordered category. A level that training did not have equals none; a model
    reads it as missing (`icscm.model.novelty`).

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
    compares_levels: ClassVar[bool] = True

    @property
    def is_affirmative(self) -> bool:
        """Whether it is `x == level`."""
        return self.equal

    @property
    def truth_of_missing(self) -> bool | None:
        """Whether the rule is true for a missing level."""
        return self.missing

    def negate(self) -> Self:
        return replace(self, equal=not self.equal, missing=_negate_truth(self.missing))

    def _find_affirmed(self, column: Column) -> BoolArray:
        if isinstance(column, Levels):
            self._check_kinds_of_levels(column)
            is_wanted = find_levels(column, self.levels)
            is_wanted_by_code = np.append(is_wanted, False)  # code -1, missing, is the last entry
            return np.asarray(is_wanted_by_code[column.codes])

        numbers = [level for level in self.levels if not isinstance(level, str | bool)]
        # a column without any value, as at a site that did not measure it, is read as numbers
        has_no_value = column.missing is not None and bool(column.missing.all())
        can_be_numbers = len(numbers) == len(self.levels) or not len(column) or has_no_value
        if isinstance(column, Numbers) and can_be_numbers:
            return np.isin(column.values, numbers)

        kind = "numbers" if isinstance(column, Numbers) else "dates"
        raise IcscmError(
            f"column {self.feature!r} held categories at fitting and holds {kind} now; give it as "
            "text, or as the type it had"
        )

    def _check_kinds_of_levels(self, column: Levels) -> None:
        """Raise if no level can equal one of the rule: a boolean never equals a text."""
        kinds_now = {sort_key(level)[0] for level in column.levels}
        kinds_at_fitting = {sort_key(level)[0] for level in self.levels}
        if kinds_now and not kinds_now & kinds_at_fitting:
            raise IcscmError(
                f"column {self.feature!r} held levels of kind {', '.join(sorted(kinds_at_fitting))}"
                f" at fitting and holds {', '.join(sorted(kinds_now))} now; give it as the type it "
                "had"
            )

    def _format_note(self) -> str:
        return _format_missing(self.missing)

    def format_condition(self) -> str:
        verb = "in" if self.equal else "not in"
        if self.pooled:
            return f"{verb} {count(len(self.levels), 'rare level')}"
        if len(self.levels) > 1:
            return f"{verb} {{{', '.join(map(format_level, self.levels))}}}"
        sign = "==" if self.equal else "!="
        return f"{sign} {format_level(self.levels[0])}"


@dataclass(frozen=True, slots=True)
class MissingRule(Rule):
    """`x is missing`, or `x is present` when `is_missing` is false.

    >>> rule = MissingRule(column=0, name="thal", is_missing=True)
    >>> print(rule, "|", rule.negate())
    thal is missing | thal is present
    """

    is_missing: bool

    kind: ClassVar[str] = "missing"

    @property
    def is_affirmative(self) -> bool:
        """Whether it is `x is missing`."""
        return self.is_missing

    @property
    def truth_of_missing(self) -> bool:
        """Whether the rule is true for a missing value."""
        return self.is_missing

    def negate(self) -> Self:
        return replace(self, is_missing=not self.is_missing)

    def _find_affirmed(self, column: Column) -> BoolArray:
        if not isinstance(column, Numbers | Levels):
            raise IcscmError(
                f"column {self.feature!r} holds dates now; give the type it had at fitting"
            )
        if column.missing is None:
            return np.zeros(len(column), dtype=np.bool_)
        return column.missing

    def format_condition(self) -> str:
        return "is missing" if self.is_missing else "is present"


@dataclass(frozen=True, slots=True)
class PresenceRule(Rule):
    """`x present`, a value above 0, or `x absent` when `present` is false.

    >>> rule = PresenceRule(column=0, name="blaTEM", present=True)
    >>> print(rule, "|", rule.negate(), "|", PresenceRule(3, None, present=True))
    blaTEM present | blaTEM absent | x3 present
    """

    present: bool

    kind: ClassVar[str] = "presence"

    @property
    def is_affirmative(self) -> bool:
        """Whether it is `x present`."""
        return self.present

    @property
    def truth_of_missing(self) -> None:
        """Undefined: at fitting, a presence or absence is never missing."""
        return None

    def negate(self) -> Self:
        return replace(self, present=not self.present)

    def _find_affirmed(self, column: Column) -> BoolArray:
        if isinstance(column, Levels) and all(isinstance(level, bool) for level in column.levels):
            is_present_by_code = np.append(column.levels, False).astype(np.bool_)
            return is_present_by_code[column.codes]
        return _read_numbers(column, self) > 0

    def format_condition(self) -> str:
        return "present" if self.present else "absent"


def _negate_truth(truth: bool | None) -> bool | None:
    """Return the truth of the negated rule; what is undefined stays so."""
    return None if truth is None else not truth


def _format_missing(missing: bool | None) -> str:
    """Write what a rule says of a missing value; nothing where this is undefined."""
    return "" if missing is None else f" (missing: {str(missing).lower()})"


RULE_KINDS: dict[str, type[Rule]] = {
    rule_class.kind: rule_class
    for rule_class in (ThresholdRule, CategoryRule, MissingRule, PresenceRule)
}


def make_rule(plain: dict[str, Any]) -> Rule:
    """Make the rule that `to_dict` described.

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
    """Return the numbers of a column; raise where it holds none, but did at fitting."""
    if isinstance(column, Numbers):
        return column.values
    if isinstance(column, Levels) and not column.levels:  # a column without any value
        return np.zeros(len(column.codes))
    kind = "categories" if isinstance(column, Levels) else "dates"
    raise IcscmError(
        f"column {rule.feature!r} held numbers at fitting and holds {kind} now; give numbers"
    )


def warn_of_unseen(rules: Sequence[Rule], column: Column) -> BoolArray | None:
    """Find where a column lacks values though it had all at fitting, and warn; None if nowhere."""
    is_missing = column.missing
    unsure_rules = [rule for rule in rules if rule.is_unsure]
    if is_missing is None or not unsure_rules or not is_missing.any():
        return None

    is_score = any(isinstance(rule, MissingRule) for rule in rules)
    if is_score:
        effect = "these rows get the points of an average sample, rounded up."
    else:
        texts = [f"'{rule}'" for rule in dict.fromkeys(unsure_rules)]
        verb = "is" if len(texts) == 1 else "are"
        effect = (
            f"{shorten_list(texts)} {verb} neither true nor false there, and the prediction is "
            "the mean of both branches."
        )
    n_rows = count(int(is_missing.sum()), "row")
    name = unsure_rules[0].feature
    warn(
        f"Column {name!r} is missing in {n_rows} but never was at fitting: {effect}",
        UnseenMissingWarning,
    )
    return is_missing


# --- simplifying: for display only, since each rule of a model has its own leaf -------------------


def simplify(rules: Sequence[Rule], *, all_hold: bool) -> tuple[Rule, ...]:
    """Find the fewest rules equivalent to these, of which all must hold, or any one.

    >>> rules = [ThresholdRule(0, "age", level, above=True) for level in (19, 45, 21)]
    >>> [[str(rule) for rule in simplify(rules, all_hold=each)] for each in (True, False)]
    [['age > 45'], ['age > 19']]
    """
    kept: tuple[Rule, ...] = ()
    for rule in rules:
        kept = add_rule(kept, rule, all_hold=all_hold)
    return kept


def add_rule(simple: Sequence[Rule], rule: Rule, *, all_hold: bool) -> tuple[Rule, ...]:
    """Add a rule to simplified rules, and simplify again.

    The rule replaces the first one that it can be joined with. The joined rule may join others in
    turn, so the search begins again; it stands where the first of them stood.
    """
    kept = list(simple)
    new_rule = rule
    position = len(kept)
    while (join := _find_join(kept, new_rule, all_hold=all_hold)) is not None:
        del kept[join.position]
        new_rule = join.rule
        position = min(position, join.position)
    kept.insert(position, new_rule)
    return tuple(kept)


@dataclass(frozen=True)
class _Join:
    """The rule that results when a new rule is joined with the one at a position."""

    position: int
    rule: Rule


def _find_join(kept: Sequence[Rule], new_rule: Rule, *, all_hold: bool) -> _Join | None:
    """Find the first kept rule that can be joined with a new one."""
    for position, kept_rule in enumerate(kept):
        joined = _join(kept_rule, new_rule, all_hold=all_hold)
        if joined is not None:
            return _Join(position, joined)
    return None


def _join(first: Rule, second: Rule, *, all_hold: bool) -> Rule | None:
    """Join two rules into one: true where both are, or where any is; None if there is none."""
    if first.feature != second.feature:
        return None
    if all_hold:
        return _join_both(first, second)
    neither_holds = _join_both(first.negate(), second.negate())  # De Morgan
    return None if neither_holds is None else neither_holds.negate()


def _join_both(first: Rule, second: Rule) -> Rule | None:
    """Join two rules on a column into one that is true where both are; None if there is none.

    Such as `age > 45` and `age > 40`, of which the first is enough; or `age > 45 (missing: true)`
    and `age is present`, which together are `age > 45 (missing: false)`.
    """
    if isinstance(second, MissingRule):  # if one of them is, it comes first
        first, second = second, first
    if not isinstance(second, ThresholdRule | CategoryRule):
        return first if first == second else None

    if isinstance(first, MissingRule) and second.missing is not None:
        if not first.is_missing:
            return replace(second, missing=False)
        # Missing values satisfy both rules, or nothing does: then the rules stay as they are.
        return first if second.missing else None

    if not isinstance(first, ThresholdRule | CategoryRule):
        return None
    if first.is_unsure != second.is_unsure:  # only one of them knows what missing values mean
        return None
    return _find_stronger(first, second)


def _find_stronger(
    first: ThresholdRule | CategoryRule, second: ThresholdRule | CategoryRule
) -> Rule | None:
    """Find which of two rules implies the other; for missing values both must be true."""
    if _implies(first, second):
        stronger = first
    elif _implies(second, first):
        stronger = second
    else:
        return None
    if stronger.is_unsure:
        return stronger
    return replace(stronger, missing=bool(first.missing and second.missing))


def _implies(premise: Rule, conclusion: Rule) -> bool:
    """Whether the conclusion is true wherever the premise is, missing values apart.

    Of rules on one column, for example:

        age > 45        implies    age > 40
        in {a}          implies    in {a, b}
        in {a}          implies    not in {b, c}
        not in {a, b}   implies    not in {a}
    """
    if isinstance(premise, ThresholdRule) and isinstance(conclusion, ThresholdRule):
        if premise.above != conclusion.above:
            return False
        if premise.above:
            return premise.threshold >= conclusion.threshold
        return premise.threshold <= conclusion.threshold

    if not (isinstance(premise, CategoryRule) and isinstance(conclusion, CategoryRule)):
        return False
    premised = {sort_key(level) for level in premise.levels}
    concluded = {sort_key(level) for level in conclusion.levels}
    if premise.equal and conclusion.equal:
        return premised <= concluded
    if premise.equal and not conclusion.equal:
        return premised.isdisjoint(concluded)
    if not premise.equal and not conclusion.equal:
        return concluded <= premised
    return False  # levels that are left over may be any, also some that are not known
