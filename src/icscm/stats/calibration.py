"""Calibration of predicted probabilities on rows that the model was not fitted on.

The log odds of the label are an intercept for each environment plus a slope, common to all, times
the log odds that were predicted. A new environment gets the random-effects mean of the intercepts.
"""

from typing import Final, NamedTuple

import numpy as np

from icscm._types import Array, BoolArray, FloatArray
from icscm.model.calibration import MAX_INTERCEPT, MAX_SLOPE
from icscm.model.recalibration import fit_line
from icscm.stats.heterogeneity import PooledEffect, pool_effects

# Slopes that are applied: below, predictions hardly rank the labels; above, they separate them.
SLOPES: Final = (0.1, MAX_SLOPE)


class Recalibration(NamedTuple):
    """A logistic regression on predicted log odds: one slope, an intercept for each environment.

    `intercepts` and their standard errors are NaN where an environment has one label only; `pooled`
    is their random-effects mean, for a new environment.
    """

    slope: float
    intercepts: FloatArray
    standard_errors: FloatArray
    pooled: PooledEffect

    @property
    def is_usable(self) -> bool:
        """Whether predictions rank the labels, and the coefficients are not those of separation."""
        return abs(self.pooled.mean) <= MAX_INTERCEPT and SLOPES[0] <= self.slope <= SLOPES[1]

    @property
    def calibration(self) -> tuple[float, float]:
        """Intercept and slope in a new environment, in so many digits as exports can show."""
        return round(self.pooled.mean, 6), round(self.slope, 6)


def fit_recalibration(
    labels: Array, environments: Array, log_odds: FloatArray, n_environments: int
) -> Recalibration | None:
    """Fit to predicted log odds; None where labels, or predictions, do not determine a slope.

    Rows of NaN, and of environments with one label, are left out.

    >>> labels, x = np.array([0, 0, 1, 0, 1, 1]), np.array([-1.0, 0.0, 0.0, 1.0, 1.0, 2.0])
    >>> found = fit_recalibration(labels, np.zeros(6, int), x, 1)
    >>> print(f"{found.pooled.mean:.2f} {found.slope:.2f}")
    -0.69 1.39
    """
    is_known = ~np.isnan(log_odds)
    cells = 2 * environments[is_known] + labels[is_known]
    counts = np.bincount(cells, minlength=2 * n_environments).reshape(-1, 2)
    both: BoolArray = counts.min(axis=1) > 0
    own = both[environments] & is_known
    line = fit_line(log_odds[own], labels[own], environments[own], n_environments)
    if line is None:
        return None
    (slope,), intercepts, information = line
    errors = np.where(both, 1.0 / np.sqrt(information), np.nan)
    intercepts = np.where(both, intercepts, np.nan)
    pooled = pool_effects(intercepts, errors)
    return None if pooled is None else Recalibration(float(slope), intercepts, errors, pooled)
