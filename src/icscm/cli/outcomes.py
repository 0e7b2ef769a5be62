"""Outcomes of any kind: what the target is taken for, and a line that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from icscm._types import Array, FloatArray
from icscm.formatting import as_text
from icscm.io.roles import Roles
from icscm.report.wording import data as wording
from icscm.report.wording.facts import Fact

# What the fact adds if the kind of the outcome was seen from the data, by the other kind.
_OTHER_KIND: Final = "; --outcome {} takes it for {}"


@dataclass(frozen=True, eq=False)
class TargetValues:
    """The outcome of each row, and what it was taken for.

    Parameters
    ----------
    y : of each row.
    is_number : whether it is a number; else it is classes.
    is_inferred : whether that was seen from the data, and not said by --outcome.
    """

    y: Array
    is_number: bool
    is_inferred: bool

    @property
    def has_two_classes(self) -> bool:
        """Whether one of the classes is the positive one."""
        return not self.is_number and len(np.unique(self.y)) == 2

    def describe(self, roles: Roles, weights: FloatArray | None = None) -> list[Fact]:
        """Say what the outcome is, as facts about the data; rows may have weights."""

        def compute_share(label: Any) -> float:
            return float(np.average(self.y == label, weights=weights))

        if self.is_number:
            hint = _OTHER_KIND.format("classes", "classes") if self.is_inferred else ""
            numbers = np.asarray(self.y, dtype=np.float64)
            mean = float(np.average(numbers, weights=weights))
            variance = float(np.average((numbers - mean) ** 2, weights=weights))
            return wording.describe_number(
                roles.target,
                mean=mean,
                deviation=variance**0.5,
                hint=hint,
            )

        classes = np.unique(self.y)
        if len(classes) == 2:
            share = compute_share(classes[1])
            return wording.describe_positive_share(roles.positive_text, share)
        can_be_number = self.is_inferred and self.y.dtype.kind in "iuf"
        hint = _OTHER_KIND.format("number", "a number") if can_be_number else ""
        shares = {as_text(label): compute_share(label) for label in classes}
        return wording.describe_classes(roles.target, shares, hint)


def find_outcome(y: Array, outcome: str | None) -> TargetValues:
    """Find what the outcome is: as --outcome says, or by its values."""
    from icscm.tables.outcomes import is_numeric_outcome

    is_number = is_numeric_outcome(y) if outcome is None else outcome == "number"
    return TargetValues(y=y, is_number=is_number, is_inferred=outcome is None)
