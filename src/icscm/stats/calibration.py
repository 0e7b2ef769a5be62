"""Calibration of predicted probabilities on rows that the model was not fitted on.

The log odds of the label are an intercept for each environment plus a slope, common to all, times
the log odds that were predicted. A new environment gets the random-effects mean of the intercepts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit

from icscm._types import Array, BoolArray, FloatArray
from icscm.model.calibration import MAX_INTERCEPT, MAX_SLOPE
from icscm.stats.heterogeneity import PooledEffect, pool_effects

# Slopes that are applied: below, predictions hardly rank the labels; above, they separate them.
SLOPES: Final = (0.1, MAX_SLOPE)
# Steps of Newton's method, and the most that a coefficient changes in one.
_MAX_STEPS, _MAX_STEP = 100, 1.0


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
        lowest, highest = SLOPES
        is_finite = abs(self.pooled.mean) <= MAX_INTERCEPT
        return is_finite and lowest <= self.slope <= highest

    @property
    def calibration(self) -> tuple[float, float]:
        """Intercept and slope in a new environment, in so many digits as exports can show."""
        return round(self.pooled.mean, 6), round(self.slope, 6)


def fit_recalibration(
    labels: Array, environments: Array, log_odds: FloatArray, n_environments: int
) -> Recalibration | None:
    """Fit by Newton's method; None where the labels, or predictions, do not determine a slope.

    Rows of NaN are left out. Each step solves for the slope with the intercepts profiled out, so
    that its cost does not grow with the number of environments.

    >>> labels, x = np.array([0, 0, 1, 0, 1, 1]), np.array([-1.0, 0.0, 0.0, 1.0, 1.0, 2.0])
    >>> found = fit_recalibration(labels, np.zeros(6, int), x, 1)
    >>> print(f"{found.pooled.mean:.2f} {found.slope:.2f}")
    -0.71 1.43
    """
    by_label = [
        np.bincount(environments[~np.isnan(log_odds) & (labels == k)], minlength=n_environments)
        for k in (0, 1)
    ]
    both: BoolArray = (by_label[0] > 0) & (by_label[1] > 0)
    own = both[environments] & ~np.isnan(log_odds)
    y, e, x = labels[own], environments[own], log_odds[own]
    intercepts, slope = np.where(both, 0.0, np.nan), 1.0
    for _ in range(_MAX_STEPS):
        p = expit(intercepts[e] + slope * x)
        rest, weight = y - p, p * (1.0 - p)
        g, h, cross = (np.bincount(e, each, n_environments) for each in (rest, weight, weight * x))
        h = np.where(both, np.maximum(h, 1e-300), 1.0)
        curvature = weight @ (x * x) - (cross**2 / h).sum()
        if curvature <= 1e-9 * len(x):  # one value in every environment, or labels separated by it
            return None
        step = float(np.clip((rest @ x - (cross * g / h).sum()) / curvature, -_MAX_STEP, _MAX_STEP))
        steps = np.clip((g - cross * step) / h, -_MAX_STEP, _MAX_STEP)
        slope, intercepts = slope + step, intercepts + steps
        if max(abs(step), np.abs(steps).max()) < 1e-10:
            break
    errors = np.where(both, 1.0 / np.sqrt(h), np.nan)
    pooled = pool_effects(intercepts, errors)
    return None if pooled is None else Recalibration(slope, intercepts, errors, pooled)
