"""Fewer rules that are equivalent: several rules on one column joined into one.

`age > 19 and age > 45` is `age > 45`. Only words are made of it: the model keeps its rules, since
each has a leaf of its own. Joined rules are true of exactly the samples that those before were true
of, missing values among them.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace

from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.tables.columns import sort_key


def simplify(rules: Sequence[Rule], *, all_hold: bool) -> tuple[Rule, ...]:
    """Equivalent rules, as few as possible, of which all must hold, or any one.

    >>> rules = [ThresholdRule(0, "age", level, above=True) for level in (19, 45, 21)]
    >>> [[str(rule) for rule in simplify(rules, all_hold=way)] for way in (True, False)]
    [['age > 45'], ['age > 19']]
    """
    kept: tuple[Rule, ...] = ()
    for rule in rules:
        kept = add_rule(kept, rule, all_hold=all_hold)
    return kept


def add_rule(simple: Sequence[Rule], rule: Rule, *, all_hold: bool) -> tuple[Rule, ...]:
    """Simplified rules and one more, simplified."""
    kept = list(simple)
    _add(rule, kept, len(kept), all_hold=all_hold)
    return tuple(kept)


def _add(rule: Rule, kept: list[Rule], place: int, *, all_hold: bool) -> None:
    """Join a rule to one of those kept, or keep it; the joined rule may join others in turn."""
    for i, other in enumerate(kept):
        joined = _join(other, rule, all_hold=all_hold)
        if joined is not None:
            del kept[i]
            return _add(joined, kept, min(i, place), all_hold=all_hold)
    kept.insert(place, rule)
    return None


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
        return first if second.missing else None  # never true: left as it is
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
