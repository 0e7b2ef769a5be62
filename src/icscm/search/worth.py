"""What a column says by itself, and what that is worth in each environment: from counts.

The *own effect* of a column in environment e is that of each of its bins: the positives there in
the *other* environments, O of n rows, against the number E that the rates of these environments
alone would predict. With two rows more in each bin, that are positive with the overall rate r, so
that rare bins have small effects,

    effect = log (O + 2 r) / (E + 2 r)  -  log (n - O + 2 (1 - r)) / (n - E + 2 (1 - r))

which is a log odds ratio. Its *worth* s_e in environment e is how much of it is true there, given a
level of the environment:

    log odds of a row in e = level_e + s_e effect

    s_e = s + U_e / J_e        variance 1 / J_e

with one common slope s and one step of Newton's method from it: U_e is the derivative of the
log-likelihood of environment e by the slope, and J_e its information. `icscm.stats.worth` pools
s_e over environments. `icscm.screening.own_effects` does the same with rows, for any outcome.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from icscm._types import BoolArray, FloatArray
from icscm.engine.counts import CountCube, Layout
from icscm.stats.worth import PooledWorth, Worth, pool_worth

# Bins of a numeric column whose effects are estimated.
MAX_BINS: Final = 12
# Rows that a bin is shrunk by, towards no effect.
PRIOR_ROWS: Final = 2.0
# An effect that varies less between bins is none.
MIN_SPREAD: Final = 1e-12
# Steps of Newton's method for the common slope and the levels, and how far one goes at most.
N_STEPS: Final = 8
MAX_STEP: Final = 1.0
MAX_LEVEL_STEP: Final = 2.0
# Beyond it a worth is meaningless.
MAX_WORTH: Final = 20.0
# The variance of a row under the model, and the information of an environment, are at least this.
MIN_VARIANCE: Final = 1e-6
MIN_INFORMATION: Final = 1e-9


@dataclass(frozen=True, eq=False)
class OwnWorth:
    """The worth of what a column says by itself, over environments and in a new one.

    `part` is its heterogeneity beyond chance, as a part of the deviance of a model that knows the
    environments alone. Of a column that says nothing, no worth is known.
    """

    worth: PooledWorth = field(default_factory=PooledWorth)
    part: float = 0.0


class Counted(Protocol):
    """What counts all rows, block of columns by block; a node at the root of a search."""

    def count_cubes(self) -> Iterable[CountCube]: ...


class OwnWorths:
    """The worth of what columns say by themselves, measured for those that are asked for.

    Rows that come in groups count as fewer, by the design effect of each environment.
    """

    def __init__(self, rows: Counted, design_effects: FloatArray | None) -> None:
        self._rows = rows
        self._design_effects = design_effects
        self._worth_by_column: dict[int, Worth] = {}
        self._null_deviance = 0.0
        self.n_columns = 0

    def measure(self, columns: Iterable[int]) -> None:
        """Measure the worth of columns that were not measured before, in one pass over the counts.

        Afterwards `n_columns` is known, how many columns there are in all.
        """
        wanted = [column for column in columns if column not in self._worth_by_column]
        if not wanted:
            return
        self.n_columns = 0
        for cube in self._rows.count_cubes():
            self.n_columns += len(cube.columns)
            is_wanted = np.isin(cube.columns, wanted)
            if is_wanted.any():
                self._measure_cube(cube, is_wanted)

    def _measure_cube(self, cube: CountCube, is_wanted: BoolArray) -> None:
        """Measure the worth of some columns of a cube."""
        counts = np.asarray(cube.counts[is_wanted], dtype=np.float64)
        if self._design_effects is not None:
            counts = counts / self._design_effects
        self._null_deviance = compute_null_deviance(counts[0].sum(axis=0))
        worths = fit_own_worth(merge_bins(counts, cube.layout))
        self._worth_by_column |= zip(cube.columns[is_wanted].tolist(), worths, strict=True)

    def pool(self, column: int) -> OwnWorth:
        """Pool the worth of a measured column over environments."""
        worth = pool_worth(self._worth_by_column[column])
        return OwnWorth(worth=worth, part=worth.excess / max(self._null_deviance, MIN_INFORMATION))


def merge_bins(counts: FloatArray, layout: Layout) -> FloatArray:
    """Merge the bins of numeric columns to at most `MAX_BINS` of about as many rows.

    Counts are by (column, bin, outcome, environment). Missing values keep their bin, and so do the
    levels of a category.
    """
    first = int(layout.has_missing)
    n_columns, n_bins = counts.shape[:2]
    if layout.nominal or layout.is_pair or n_bins - first <= MAX_BINS:
        return counts

    n_rows = counts[:, first:].sum(axis=(2, 3))
    middles = n_rows.cumsum(axis=1) - n_rows / 2
    totals = np.maximum(n_rows.sum(axis=1, keepdims=True), 1.0)
    merged_bins = np.minimum((middles / totals * MAX_BINS).astype(np.int64), MAX_BINS - 1)
    numbers = np.zeros((n_columns, n_bins), dtype=np.int64)
    numbers[:, first:] = merged_bins + first
    merged = np.zeros((n_columns, MAX_BINS + first, *counts.shape[2:]))
    np.add.at(merged, (np.arange(n_columns)[:, np.newaxis], numbers), counts)
    return merged


def fit_own_worth(counts: FloatArray) -> list[Worth]:
    """Fit the worth of what columns say by themselves, in each environment.

    Counts are by (column, bin, outcome, environment). Environments with one outcome only say
    nothing of effects: no worth is known there.
    """
    n_of_outcome = counts[0].sum(axis=0)
    has_both = (n_of_outcome > 0).all(axis=0)
    positives = counts[:, :, 1, has_both]
    n = counts.sum(axis=2)[:, :, has_both]
    rates = n_of_outcome[1, has_both] / n_of_outcome[:, has_both].sum(axis=0)

    effects = compute_own_effects(positives, n, rates)
    fitted = fit_slopes(positives, n, rates=rates, effects=effects)
    says_something = np.ptp(effects, axis=(1, 2)) >= MIN_SPREAD
    worths: list[Worth] = []
    for column in range(len(counts)):
        values = np.full(len(has_both), np.nan)
        information = np.zeros(len(has_both))
        if says_something[column]:
            values[has_both] = fitted.values[column]
            information[has_both] = fitted.information[column]
        errors = 1.0 / np.sqrt(np.maximum(information, MIN_INFORMATION))
        worths.append(Worth(values=values, errors=errors, information=information))
    return worths


def compute_own_effects(positives: FloatArray, n: FloatArray, rates: FloatArray) -> FloatArray:
    """Compute the effect of each bin on the log odds, from the environments other than e.

    Positives and rows `n` are by (column, bin, environment), and so are the effects. The formula is
    above.
    """
    observed = sum_others(positives)
    expected = sum_others(n * rates)
    n_others = sum_others(n)
    prior = PRIOR_ROWS * float(positives[0].sum() / max(n[0].sum(), 1.0))
    negative_prior = PRIOR_ROWS - prior
    of_positives = np.log((observed + prior) / (expected + prior))
    unexpected = n_others - expected + negative_prior
    of_negatives = np.log((n_others - observed + negative_prior) / unexpected)
    return np.asarray(of_positives - of_negatives)


def sum_others(values: FloatArray) -> FloatArray:
    """Add up values (column, bin, environment) over all other environments."""
    return np.asarray(values.sum(axis=2, keepdims=True) - values)


@dataclass(frozen=True, eq=False)
class FittedSlopes:
    """What the effects of columns are worth by (column, environment), and the information on it."""

    values: FloatArray
    information: FloatArray


def fit_slopes(
    positives: FloatArray, n: FloatArray, *, rates: FloatArray, effects: FloatArray
) -> FittedSlopes:
    """Fit what the effects are worth in each environment.

    All but the rates of the environments are by (column, bin, environment). Common slope and levels
    are fitted by Newton's method; then each environment takes one step.
    """
    base = np.log(rates / (1.0 - rates))
    slopes = np.ones((len(effects), 1, 1))
    levels = np.zeros((len(effects), 1, len(rates)))
    for step in range(N_STEPS + 1):
        scores = base + levels + slopes * effects
        p = 1.0 / (1.0 + np.exp(-scores))
        gradients = positives - n * p
        hessians = n * np.maximum(p * (1.0 - p), MIN_VARIANCE)

        # What the effects say beyond the level of the environment.
        total_hessians = hessians.sum(axis=1, keepdims=True) + MIN_INFORMATION
        centres = (hessians * effects).sum(axis=1, keepdims=True) / total_hessians
        deviations = effects - centres
        U = (gradients * deviations).sum(axis=1, keepdims=True)
        J = (hessians * deviations**2).sum(axis=1, keepdims=True) + MIN_INFORMATION
        if step == N_STEPS:
            break
        moves = U.sum(axis=2, keepdims=True) / J.sum(axis=2, keepdims=True)
        moves = np.clip(moves, -MAX_STEP, MAX_STEP)
        slopes = np.clip(slopes + moves, -MAX_WORTH, MAX_WORTH)
        level_steps = gradients.sum(axis=1, keepdims=True) / total_hessians
        levels += np.clip(level_steps, -MAX_LEVEL_STEP, MAX_LEVEL_STEP) - centres * moves

    values = np.clip(slopes + U / J, -MAX_WORTH, MAX_WORTH)
    return FittedSlopes(values=values[:, 0], information=J[:, 0])


def compute_null_deviance(n_of_outcome: FloatArray) -> float:
    """Compute the deviance of a model that knows the environments: -2 sum n log(n / total).

    `n_of_outcome` is by (outcome, environment).
    """
    totals = np.maximum(n_of_outcome.sum(axis=0), 1.0)
    shares = np.maximum(n_of_outcome / totals, np.finfo(np.float64).tiny)
    return float(-2.0 * (n_of_outcome * np.log(shares)).sum())
