"""What each column says by itself, and what that is worth in each environment.

The *own effect* of a column on a row in environment e is that of its bin: what the outcome was in
this bin in the *other* environments, against what their levels alone would predict. Its worth in e
is fitted as that of a contribution (`icscm.screening.worth`). A column whose own effect may be
worth less than nothing in a new environment is *doubtful*: it may be a shortcut, or a cause whose
relation to other columns differs between environments. Alone this rejects nothing, but it supports
other evidence.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icscm._types import Array, FloatArray
from icscm.screening.outcomes import Outcome, compute_deviance, compute_null_scores
from icscm.screening.screened_table import ScreenedTable, merge_bins
from icscm.screening.worth import fit_worth
from icscm.stats.worth import PooledWorth, Worth, pool_worth

# Bins of a numeric column whose effects are estimated.
MAX_OWN_BINS: Final = 12
# An effect that varies less is none.
MIN_SPREAD: Final = 1e-12


@dataclass(frozen=True, eq=False)
class OwnEffect:
    """What a column says by itself.

    Attributes
    ----------
    worth : PooledWorth
        The worth of the own effect over environments and in a new one.
    part : float
        Heterogeneity beyond chance as a part of the null deviance.
    strength : float
        How much the column says, in the same or another way in each environment: the sum of
        squares of worth / error, less the number of environments.
    """

    worth: PooledWorth = field(default_factory=PooledWorth)
    part: float = 0.0
    strength: float = 0.0


@dataclass(frozen=True, eq=False)
class NullModel:
    """A model that knows the environment of a row and nothing else."""

    scores: FloatArray
    variances: FloatArray
    deviance: float


def fit_null_model(outcome: Outcome, table: ScreenedTable) -> NullModel:
    """Fit the levels of the environments."""
    places = table.places
    scores = compute_null_scores(outcome, places)
    variances = outcome.measure_variances(scores, places)
    deviance = compute_deviance(outcome, scores, variances=variances, places=places)
    return NullModel(scores=scores, variances=variances, deviance=deviance)


def measure_own_effect(
    outcome: Outcome, table: ScreenedTable, column: int, null: NullModel
) -> OwnEffect:
    """Measure what a column says by itself; a column that says nothing has a worth of NaN."""
    effects = compute_own_effects(outcome, table, column, null)
    if np.ptp(effects) < MIN_SPREAD:
        return OwnEffect()
    worth = fit_worth(outcome, table, null.scores + effects, effects, variances=null.variances)
    pooled = pool_worth(worth)
    return OwnEffect(
        worth=pooled,
        part=pooled.excess / null.deviance,
        strength=measure_strength(worth),
    )


def compute_own_effects(
    outcome: Outcome, table: ScreenedTable, column: int, null: NullModel
) -> FloatArray:
    """Return the own effect of a column on each row (row, output)."""
    places = table.places
    bins = merge_bins(table, column, max_bins=MAX_OWN_BINS)
    observed = sum_in_others(outcome.targets, bins, table=table, weights=outcome.weights)
    means = outcome.compute_means(null.scores)
    expected = sum_in_others(means, bins, table=table, weights=outcome.weights)
    ones = np.ones((table.n_rows, 1))
    n_rows = sum_in_others(ones, bins, table=table, weights=outcome.weights)
    effects = outcome.compare_bins(observed, expected, n_rows)
    return np.asarray(effects[places.numbers, bins])


def sum_in_others(
    values: FloatArray, bins: Array, *, table: ScreenedTable, weights: FloatArray
) -> FloatArray:
    """Add up values (row, output) by bin in all *other* environments.

    The sums have the axes (environment, bin, output); those of an environment leave it out.
    """
    places = table.places
    n_bins = int(bins.max(initial=0)) + 1
    cells = places.numbers * n_bins + bins
    sums = [
        np.bincount(cells, column * weights, places.count * n_bins).reshape(-1, n_bins)
        for column in values.T
    ]
    by_environment = np.stack(sums, axis=-1)
    return np.asarray(by_environment.sum(axis=0) - by_environment)


def measure_strength(worth: Worth) -> float:
    """Return the sum of (worth / error)^2 over environments, less its mean by chance."""
    is_known = worth.is_known
    ratios = worth.values[is_known] / worth.errors[is_known]
    return float((ratios**2).sum() - is_known.sum())


# --- of many columns ------------------------------------------------------------------------------


def find_strongest(
    outcome: Outcome, table: ScreenedTable, null: NullModel, *, n_columns: int
) -> list[int]:
    """Find the columns whose bins say most about the outcome, alike everywhere or not.

    The score test of all effects by environment, for each column, with residuals g and hessians h:

        sum over environments and bins  (sum g)^2 / sum h        less the number of cells

    Of a wide table only these columns are looked at closely: this takes one pass over each.
    """
    places = table.places
    weights = (outcome.weights / null.variances[places.numbers])[:, np.newaxis]
    means = outcome.compute_means(null.scores)
    g = weights * (outcome.targets - means)
    h = weights * outcome.compute_variances(means)

    statistics = np.zeros(table.n_columns)
    for column in range(table.n_columns):
        n_bins = int(table.columns.n_bins[column])
        cells = places.numbers * n_bins + table.columns.bins[column]
        n_cells = places.count * n_bins
        for output in range(outcome.n_outputs):
            sum_g = np.bincount(cells, g[:, output], n_cells)
            sum_h = np.bincount(cells, h[:, output], n_cells)
            is_filled = sum_h > 0
            statistics[column] += (sum_g[is_filled] ** 2 / sum_h[is_filled]).sum()
            statistics[column] -= np.count_nonzero(is_filled)
    strongest = np.argsort(-statistics, kind="stable")[:n_columns]
    return sorted(strongest.tolist())
