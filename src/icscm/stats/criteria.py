"""Criteria by which a leaf is accepted as invariant, corrections, and outlying environments.

Leaves are tables of counts (leaf, outcome, environment). Where rows come in clusters, a design
effect of each leaf says by what factor these inflate its statistic.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._lazy import special
from icscm._types import BoolArray, CountArray, FloatArray
from icscm.stats.independence import IndependenceTest, compute_corrected, exceeds, find_independent
from icscm.stats.verdicts import deflate, find_shown

# Environments that are tried at each removal: those that stand out most.
_N_TRIED: Final = 16
# Above 0 where a leaf has one outcome only, so that its statistic is 0 and not NaN.
_TINY: Final = 1e-300


class Criterion(Protocol):
    """Decides which leaves are accepted as invariant."""

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray:
        """Find the leaves that are accepted; `effects` are their design effects, if any."""


@dataclass(frozen=True)
class PValueCriterion:
    """The criterion of the paper: accepted unless the test rejects independence at alpha."""

    test: IndependenceTest
    alpha: float

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray:
        """Find the leaves whose p-value is above alpha."""
        if effects is None:
            return find_independent(self.test, tables, self.alpha)
        return np.asarray(exceeds(compute_corrected(self.test, tables, effects), self.alpha))


@dataclass(frozen=True)
class EquivalenceCriterion:
    """Accepted when shown invariant: the rates of all environments differ by less than a margin.

    For each pair of environments the 1 - 2 alpha interval of the difference of their rates must lie
    inside +-margin: two one-sided tests, each at alpha (Schuirmann 1987). All pairs must pass, and
    the chance that all do is at most that of the pair which truly lies outside (intersection-union,
    Berger 1982), so that the error stays at alpha without a correction for the number of pairs.
    """

    alpha: float
    margin: float

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray:
        """Find the leaves that are shown to be invariant."""
        return find_shown(deflate(tables, effects), self.alpha, self.margin)


# --- many candidates at once ---------------------------------------------------


def find_least_evidence(n_rules: int) -> float:
    """Find the evidence (`LeafTables.compute_evidence`) that the best of so many rules must have.

        z^2 / 2,  with z the normal quantile of level / n_rules        (Bonferroni)

    Evidence is half a deviance, whose signed root is nearly normal even for a leaf of few rows.

    >>> round(find_least_evidence(2_000), 2)
    8.22
    """
    z = special.ndtri(CHANCE_LEVEL / max(n_rules, 1))
    return float(z**2 / 2)


def adjust_holm(p_values: FloatArray) -> FloatArray:
    """Correct p-values by Holm (1979): at most alpha where his procedure rejects at alpha.

    Of d p-values in ascending order, the i-th becomes

        max over j <= i of  min((d + 1 - j) p_j, 1)

    >>> adjust_holm(np.array([0.04, 0.01, 0.5])).round(3).tolist()
    [0.08, 0.03, 0.5]
    """
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


# --- outliers -----------------------------------------------------------------


def find_outlier_environments(
    table: CountArray,
    criterion: Criterion,
    *,
    max_outliers: int | None = None,
    effect: float | None = None,
) -> list[int] | None:
    """Find the environments to omit from a leaf (outcome, environment) for it to pass, in order.

    They are omitted one by one, each time the one without which outcome and environment depend
    least on each other. None if half of the environments, or more than `max_outliers`, would have
    to be omitted: then they are not outliers. `effect` is the design effect of the leaf.
    """
    effects = None if effect is None else np.array([effect])
    remaining = np.flatnonzero(table.sum(axis=0))
    outliers: list[int] = []
    while len(remaining) > 1:
        leaf = table[:, remaining]
        if criterion.find_accepted(leaf[np.newaxis], effects)[0]:
            return outliers

        position = _find_most_dependent(leaf)
        outliers.append(int(remaining[position]))
        remaining = np.delete(remaining, position)
        are_half = len(outliers) >= len(remaining)
        are_too_many = max_outliers is not None and len(outliers) > max_outliers
        if are_half or are_too_many:
            return None
    return None


def _find_most_dependent(leaf: CountArray) -> int:
    """Find the position of the environment without which Pearson's statistic is smallest.

    To try all of many environments would take long: only those that add most to it are tried.
    """
    most_dependent_first = np.argsort(-_split_pearson(leaf), kind="stable")
    tried = most_dependent_first[:_N_TRIED]
    statistics = [_split_pearson(np.delete(leaf, position, axis=1)).sum() for position in tried]
    return int(tried[np.argmin(statistics)])


def _split_pearson(table: CountArray) -> FloatArray:
    """Compute what each environment adds to Pearson's statistic.

    With p_e of n_e rows positive, and the rate r of all:  (p_e - n_e r)^2 / (n_e r (1 - r)).
    """
    n_e = table.sum(axis=0).astype(np.float64)
    p_e = table[1]
    r = p_e.sum() / n_e.sum()
    return np.asarray((p_e - n_e * r) ** 2 / (n_e * max(r * (1 - r), _TINY)))
