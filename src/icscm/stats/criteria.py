"""Criteria by which a leaf is accepted as invariant, corrections, and outlying environments."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._lazy import special
from icscm._types import BoolArray, CountArray, FloatArray
from icscm.stats.independence import IndependenceTest, compute_corrected, exceeds, find_independent
from icscm.stats.verdicts import deflate, find_shown

# Environments tried at each removal: those that stand out most.
_N_TRIED = 16


class Criterion(Protocol):
    """Decides which leaves, given as tables (n, 2, K), are accepted as invariant.

    Where samples come in clusters, `effects` are the design effects of the leaves.
    """

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray: ...


@dataclass(frozen=True)
class PValueCriterion:
    """The criterion of the paper: accepted unless the test rejects independence at alpha."""

    test: IndependenceTest
    alpha: float

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray:
        if effects is None:
            return find_independent(self.test, tables, self.alpha)
        return np.asarray(exceeds(compute_corrected(self.test, tables, effects), self.alpha))


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

    def find_accepted(self, tables: CountArray, effects: FloatArray | None = None) -> BoolArray:
        return find_shown(deflate(tables, effects), self.alpha, self.margin)


# --- many candidates at once ---------------------------------------------------


def find_least_evidence(n_rules: int) -> float:
    """The evidence (`LeafTables.compute_evidence`) that the best of so many rules must have.

    Twice the evidence is the square of a normal deviate, nearly so even for a leaf of few samples
    (the signed root of a deviance); the level is divided by the number of rules (Bonferroni).

    >>> round(find_least_evidence(2_000), 2)
    8.22
    """
    return float(special.ndtri(CHANCE_LEVEL / max(n_rules, 1)) ** 2 / 2)


def adjust_holm(p_values: FloatArray) -> FloatArray:
    """Holm's corrected p-values: at most alpha where his procedure rejects at alpha.

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
    table: CountArray, criterion: Criterion, most: int | None = None, effect: float | None = None
) -> list[int] | None:
    """The environments to omit from a leaf (label, environment) for it to pass, in this order.

    They are omitted one by one, each time the one without which label and environment depend least
    on each other. None if half of the environments, or more than `most`, would have to be omitted:
    then they are not outliers. `effect` is the design effect of the leaf.
    """
    effects = None if effect is None else np.array([effect])
    seen = np.flatnonzero(table.sum(axis=0))
    outliers: list[int] = []
    while len(seen) > 1:
        own = table[:, seen]
        if criterion.find_accepted(own[np.newaxis], effects)[0]:
            return outliers
        # that without which Pearson's statistic is smallest, of those that stand out most
        tried = np.argsort(-_split_pearson(own), kind="stable")[:_N_TRIED]
        without = [_split_pearson(np.delete(own, each, axis=1)).sum() for each in tried]
        at = int(tried[np.argmin(without)])
        outliers.append(int(seen[at]))
        seen = np.delete(seen, at)
        if len(outliers) >= len(seen) or (most is not None and len(outliers) > most):
            return None
    return None


def _split_pearson(table: CountArray) -> FloatArray:
    """What each environment adds to Pearson's statistic."""
    n = table.sum(axis=0).astype(np.float64)
    rate = table[1].sum() / n.sum()
    return np.asarray((table[1] - n * rate) ** 2 / (n * max(rate * (1 - rate), 1e-300)))
