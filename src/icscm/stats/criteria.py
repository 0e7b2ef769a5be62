"""What makes a leaf count as invariant: not refuted, or shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from icscm._types import BoolArray, CountArray
from icscm.stats.independence import IndependenceTest, find_independent, find_independent_at
from icscm.stats.verdicts import find_shown


class Criterion(Protocol):
    """Decides which leaves, given as tables (n, 2, K), are accepted as invariant."""

    def find_accepted(self, tables: CountArray) -> BoolArray: ...


@dataclass(frozen=True)
class PValueCriterion:
    """The paper's: accepted while the test does not reject independence at alpha."""

    test: IndependenceTest
    alpha: float

    def find_accepted(self, tables: CountArray) -> BoolArray:
        return find_independent(self.test, tables, self.alpha)


@dataclass(frozen=True)
class EquivalenceCriterion:
    """Accepted when shown invariant: all environments lie inside the margin of each other.

    For each pair of environments the 1 - 2 alpha interval of the difference must lie inside
    +-margin: two one-sided tests, each at alpha. All pairs must pass, and the chance that all do
    is at most that of the pair which truly lies outside (intersection-union), so that the error
    stays at alpha without a correction for the number of pairs.
    """

    alpha: float
    margin: float
    margin_on: str = "rate"

    def find_accepted(self, tables: CountArray) -> BoolArray:
        return find_shown(tables, self.alpha, self.margin, self.margin_on)


def find_accepted_by(
    criteria: Sequence[Criterion | None], tables: CountArray
) -> Iterator[BoolArray]:
    """What each criterion accepts, None everything; the same test at several levels is run once."""
    by_p = [each for each in criteria if isinstance(each, PValueCriterion)]
    if len(by_p) == len(criteria) and len({id(each.test) for each in by_p}) == 1:
        yield from find_independent_at(by_p[0].test, tables, [each.alpha for each in by_p])
        return
    for each in criteria:
        yield np.ones(len(tables), np.bool_) if each is None else each.find_accepted(tables)


def make_criterion(
    name: str, test: IndependenceTest, alpha: float, margin: float, margin_on: str = "rate"
) -> Criterion:
    """The criterion of that name, `"pvalue"` or `"equivalence"`."""
    if name == "equivalence":
        return EquivalenceCriterion(alpha, margin, margin_on)
    return PValueCriterion(test, alpha)
