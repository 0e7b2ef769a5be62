"""What a column says by itself, and what that is worth in each environment: from counts.

The *own effect* of a column in environment e is that of each of its bins, as the *other*
environments show it. With n rows there, of which `observed` are positive, and `expected` as many
as the rates of these environments alone predict, it is the log odds ratio

    effect = log (observed + 2 r) / (expected + 2 r)
           - log (n - observed + 2 (1 - r)) / (n - expected + 2 (1 - r))

Two rows more in each bin, positive with the overall rate r, make the effects of rare bins small.

The *worth* s_e is how much of these effects is true in environment e, with a level of its own:

    log odds of a row in e = log odds of the rate of e + level_e + s_e effect

One slope s for all environments and their levels are fitted first. Then each environment takes one
step of Newton's method from there, with the derivative U_e of its log-likelihood by the slope and
its information J_e:

    s_e = s + U_e / J_e        variance 1 / J_e

`icscm.stats.worth` pools s_e over environments. `icscm.screening.own_effects` does the same with
rows, for any outcome.
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
    """What a column says by itself is worth this, pooled over environments.

    `heterogeneity_part` is by how much the worth differs between environments beyond chance, as a
    part of the deviance of a model that knows the environments alone. Of a column that says
    nothing, no worth is known.
    """

    pooled: PooledWorth = field(default_factory=PooledWorth)
    heterogeneity_part: float = 0.0


class Counted(Protocol):
    """What counts all rows, block of columns by block; a node at the root of a search."""

    def count_cubes(self) -> Iterable[CountCube]: ...


class OwnWorthMeter:
    """Measures what columns say by themselves, of those columns that are asked for.

    Rows that come in groups count as fewer, by the design effect of each environment.
    """

    def __init__(self, rows: Counted, design_effects: FloatArray | None) -> None:
        self._rows = rows
        self._design_effects = design_effects
        self._worth_by_column: dict[int, Worth] = {}
        self._null_deviance = 0.0
        self._n_columns = 0

    @property
    def n_columns(self) -> int:
        """The number of all columns; known once a column was measured."""
        return self._n_columns

    def measure(self, columns: Iterable[int]) -> None:
        """Measure columns that were not measured before, in one pass over the counts."""
        wanted = [column for column in columns if column not in self._worth_by_column]
        if not wanted:
            return
        n_columns = 0
        for cube in self._rows.count_cubes():
            n_columns += len(cube.columns)
            is_wanted = np.isin(cube.columns, wanted)
            if is_wanted.any():
                self._measure_cube(cube, is_wanted)
        self._n_columns = n_columns

    def _measure_cube(self, cube: CountCube, is_wanted: BoolArray) -> None:
        """Measure some columns of a cube."""
        counts = np.asarray(cube.counts[is_wanted], dtype=np.float64)
        if self._design_effects is not None:
            counts = counts / self._design_effects
        # Each column counts all rows, so that this is the same for every cube.
        self._null_deviance = compute_null_deviance(count_outcomes(counts))
        worths = fit_own_worth(merge_bins(counts, cube.layout))
        self._worth_by_column |= zip(cube.columns[is_wanted].tolist(), worths, strict=True)

    def pool(self, column: int) -> OwnWorth:
        """Pool the worth of a measured column over environments."""
        pooled = pool_worth(self._worth_by_column[column])
        null_deviance = max(self._null_deviance, MIN_INFORMATION)
        return OwnWorth(pooled=pooled, heterogeneity_part=pooled.excess / null_deviance)


def count_outcomes(counts: FloatArray) -> FloatArray:
    """Count the rows by (outcome, environment), from counts by (column, bin, outcome, environment).

    Each column counts all rows: the first one is as good as any.
    """
    return np.asarray(counts[0].sum(axis=0))


def merge_bins(counts: FloatArray, layout: Layout) -> FloatArray:
    """Merge the bins of numeric columns to at most `MAX_BINS` of about as many rows.

    Counts are by (column, bin, outcome, environment). Missing values keep their bin, the first, and
    so do the levels of a category. If the rows are ranked by their bin, the rank in the middle of a
    bin says where it goes.

    >>> one_row_in_each_of_24_bins = np.full((1, 24, 2, 1), 0.5)
    >>> merge_bins(one_row_in_each_of_24_bins, Layout()).sum(axis=(2, 3)).tolist()
    [[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]]
    """
    n_missing_bins = int(layout.has_missing)
    n_columns, n_bins = counts.shape[:2]
    if layout.nominal or layout.is_pair or n_bins - n_missing_bins <= MAX_BINS:
        return counts

    n_rows = counts[:, n_missing_bins:].sum(axis=(2, 3))
    middle_ranks = n_rows.cumsum(axis=1) - n_rows / 2
    n_ranked = np.maximum(n_rows.sum(axis=1, keepdims=True), 1.0)
    place = (middle_ranks / n_ranked * MAX_BINS).astype(np.int64)
    new_bin = np.zeros((n_columns, n_bins), dtype=np.int64)
    new_bin[:, n_missing_bins:] = np.minimum(place, MAX_BINS - 1) + n_missing_bins

    merged = np.zeros((n_columns, n_missing_bins + MAX_BINS, *counts.shape[2:]))
    column = np.arange(n_columns)[:, np.newaxis]
    np.add.at(merged, (column, new_bin), counts)
    return merged


def fit_own_worth(counts: FloatArray) -> list[Worth]:
    """Fit the worth of what columns say by themselves, in each environment.

    Counts are by (column, bin, outcome, environment). Environments with one outcome only say
    nothing of effects: no worth is known there.
    """
    n_of_outcome = count_outcomes(counts)
    has_both = np.asarray((n_of_outcome > 0).all(axis=0))
    bins = CountedBins(
        positives=counts[:, :, 1, has_both],
        n_rows=counts.sum(axis=2)[:, :, has_both],
        rates=n_of_outcome[1, has_both] / n_of_outcome[:, has_both].sum(axis=0),
    )
    effects = compute_own_effects(bins)
    fitted = fit_slopes(bins, effects)
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


@dataclass(frozen=True, eq=False)
class CountedBins:
    """Rows of bins by (column, bin, environment), and the rate of positives of each environment."""

    positives: FloatArray
    n_rows: FloatArray
    rates: FloatArray


def compute_own_effects(bins: CountedBins) -> FloatArray:
    """Compute the effect of each bin on the log odds, as the *other* environments show it.

    The effects are by (column, bin, environment):

        log (observed + 2 r) / (expected + 2 r)
        - log (n - observed + 2 (1 - r)) / (n - expected + 2 (1 - r))
    """
    observed = sum_others(bins.positives)
    expected = sum_others(bins.n_rows * bins.rates)
    n = sum_others(bins.n_rows)

    # Each column counts all rows, so that the overall rate is that of the first.
    r = float(bins.positives[0].sum() / max(bins.n_rows[0].sum(), 1.0))
    prior_positives = PRIOR_ROWS * r
    prior_negatives = PRIOR_ROWS * (1.0 - r)
    ratio_of_positives = (observed + prior_positives) / (expected + prior_positives)
    ratio_of_negatives = (n - observed + prior_negatives) / (n - expected + prior_negatives)
    return np.asarray(np.log(ratio_of_positives) - np.log(ratio_of_negatives))


def sum_others(values: FloatArray) -> FloatArray:
    """Add up values (column, bin, environment) over all other environments."""
    return np.asarray(values.sum(axis=2, keepdims=True) - values)


@dataclass(frozen=True, eq=False)
class FittedSlopes:
    """What the effects of columns are worth by (column, environment), and the information on it."""

    values: FloatArray
    information: FloatArray


def fit_slopes(bins: CountedBins, effects: FloatArray) -> FittedSlopes:
    """Fit what the effects are worth in each environment.

    First one slope for each column and a level for each of its environments, by Newton's method;
    then each environment takes one step of its own.
    """
    n_columns, _, n_environments = effects.shape
    slopes = np.ones((n_columns, 1, 1))
    levels = np.zeros((n_columns, 1, n_environments))
    for _ in range(N_STEPS):
        here = differentiate(bins, effects, slopes=slopes, levels=levels)
        moves = here.U.sum(axis=2, keepdims=True) / here.J.sum(axis=2, keepdims=True)
        moves = np.clip(moves, -MAX_STEP, MAX_STEP)
        slopes = np.clip(slopes + moves, -MAX_WORTH, MAX_WORTH)
        # The mean effect of an environment is a matter of its level, not of the slope.
        level_steps = np.clip(here.level_steps, -MAX_LEVEL_STEP, MAX_LEVEL_STEP)
        levels += level_steps - here.centres * moves

    here = differentiate(bins, effects, slopes=slopes, levels=levels)
    values = np.clip(slopes + here.U / here.J, -MAX_WORTH, MAX_WORTH)
    return FittedSlopes(values=values[:, 0], information=here.J[:, 0])


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives of the log-likelihood at some slopes and levels, by (column, 1, environment).

    Attributes
    ----------
    U, J : arrays of float
        The first derivative by the slope, and the information on it, beyond the level.
    centres : array of float
        The mean effect of the rows, weighted by their information.
    level_steps : array of float
        The step of Newton's method for the level.
    """

    U: FloatArray
    J: FloatArray
    centres: FloatArray
    level_steps: FloatArray


def differentiate(
    bins: CountedBins, effects: FloatArray, *, slopes: FloatArray, levels: FloatArray
) -> Derivatives:
    """Differentiate the log-likelihood by the slope and by the levels.

    With g = positives - n p and h = n p (1 - p) of a bin, and d its effect less the centre,

        U = sum over bins of g d          J = sum over bins of h d^2
    """
    n = bins.n_rows
    log_odds = np.log(bins.rates / (1.0 - bins.rates)) + levels + slopes * effects
    p = 1.0 / (1.0 + np.exp(-log_odds))
    g = bins.positives - n * p
    h = n * np.maximum(p * (1.0 - p), MIN_VARIANCE)

    total_h = h.sum(axis=1, keepdims=True) + MIN_INFORMATION
    centres = (h * effects).sum(axis=1, keepdims=True) / total_h
    d = effects - centres
    return Derivatives(
        U=(g * d).sum(axis=1, keepdims=True),
        J=(h * d**2).sum(axis=1, keepdims=True) + MIN_INFORMATION,
        centres=centres,
        level_steps=g.sum(axis=1, keepdims=True) / total_h,
    )


def compute_null_deviance(n_of_outcome: FloatArray) -> float:
    """Compute the deviance of a model that knows the environments: -2 sum n log(n / total).

    `n_of_outcome` is by (outcome, environment).
    """
    totals = np.maximum(n_of_outcome.sum(axis=0), 1.0)
    shares = np.maximum(n_of_outcome / totals, np.finfo(np.float64).tiny)
    return float(-2.0 * (n_of_outcome * np.log(shares)).sum())
