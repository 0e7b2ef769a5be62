"""Rules: frozen statements about one feature, true or false for every sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icscm.exceptions import IcscmError

BoolArray = NDArray[np.bool_]


@runtime_checkable
class Rule(Protocol):
    """What the model asks of a rule."""

    @property
    def feature(self) -> str | int:
        """The feature's name where the data had names, its position otherwise."""
        ...

    def mask(self, X: NDArray[Any]) -> BoolArray:
        """Truth of the rule for each row of `X`."""
        ...

    def negate(self) -> Rule:
        """The rule that is true exactly where this one is false."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `make_rule` turns back into this rule."""
        ...


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """`x > threshold`, or `x <= threshold` when `above` is false.

    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> print(rule, "|", rule.negate())
    age > 63 | age <= 63
    """

    column: int
    name: str | None
    threshold: float
    above: bool

    @property
    def feature(self) -> str | int:
        return self.column if self.name is None else self.name

    def mask(self, X: NDArray[Any]) -> BoolArray:
        above: BoolArray = X[:, self.column] > self.threshold
        return above if self.above else ~above

    def negate(self) -> ThresholdRule:
        return replace(self, above=not self.above)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "threshold",
            "column": self.column,
            "name": self.name,
            "threshold": self.threshold,
            "above": self.above,
        }

    def __str__(self) -> str:
        subject = f"x{self.column}" if self.name is None else self.name
        return f"{subject} {'>' if self.above else '<='} {format_number(self.threshold)}"


_KINDS = {"threshold": ThresholdRule}


def make_rule(fields: dict[str, Any]) -> Rule:
    """The rule that `to_dict` described.

    >>> rule = ThresholdRule(column=1, name=None, threshold=0.5, above=False)
    >>> make_rule(rule.to_dict()) == rule
    True
    """
    fields = dict(fields)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise IcscmError(f"unknown kind of rule {kind!r}; this version knows {sorted(_KINDS)}")
    return _KINDS[kind](**fields)


def format_number(value: float) -> str:
    """The shortest text that reads back as `value`, whole numbers without a point.

    >>> format_number(63.0), format_number(0.1), format_number(1e300)
    ('63', '0.1', '1e+300')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
