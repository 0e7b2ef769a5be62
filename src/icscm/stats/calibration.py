"""The calibration line of predicted probabilities, on rows that the model was not fitted on.

    log odds of the outcome = intercept of the environment + slope x predicted log odds

(Cox 1958). A model whose probabilities are right everywhere has slope 1 and intercepts 0. A new
environment gets the random-effects mean of the intercepts (`icscm.stats.random_effects`).
"""

from typing import Final, NamedTuple

import numpy as np

from icscm._types import Array, BoolArray, FloatArray
from icscm.stats.logistic import fit_logistic_regression
from icscm.stats.random_effects import PooledEffect, pool_effects

# A line is applied within these limits: with a smaller slope, predictions hardly rank the outcomes;
# with a larger one, or such an intercept, they separate them.
MIN_SLOPE: Final = 0.1
MAX_SLOPE: Final = 10.0
MAX_INTERCEPT: Final = 100.0
# Digits of a calibration that exports can show.
N_DIGITS: Final = 6


class CalibrationLine(NamedTuple):
    """A calibration line: one slope, and an intercept for each environment.

    `intercepts` and their standard errors are NaN where an environment has one outcome only;
    `pooled` is their random-effects mean, for a new environment.
    """

    slope: float
    intercepts: FloatArray
    standard_errors: FloatArray
    pooled: PooledEffect

    @property
    def is_usable(self) -> bool:
        """Whether predictions rank the outcomes, and do not separate them."""
        has_slope = MIN_SLOPE <= self.slope <= MAX_SLOPE
        return has_slope and abs(self.pooled.mean) <= MAX_INTERCEPT

    @property
    def calibration(self) -> tuple[float, float]:
        """Intercept and slope in a new environment, rounded to the digits that exports can show."""
        return round(self.pooled.mean, N_DIGITS), round(self.slope, N_DIGITS)


def fit_calibration_line(
    outcomes: Array, environments: Array, log_odds: FloatArray, n_environments: int
) -> CalibrationLine | None:
    """Fit outcomes to predicted log odds; None if these do not determine a slope.

    Rows whose log odds are NaN, and environments with one outcome, are left out.

    >>> outcomes, log_odds = np.array([0, 0, 1, 0, 1, 1]), np.array([-1.0, 0.0, 0.0, 1.0, 1.0, 2.0])
    >>> line = fit_calibration_line(outcomes, np.zeros(6, int), log_odds, n_environments=1)
    >>> print(f"{line.pooled.mean:.2f} {line.slope:.2f}")
    -0.69 1.39
    """
    is_known = ~np.isnan(log_odds)
    # rows by (environment, outcome)
    cells = 2 * environments[is_known] + outcomes[is_known]
    counts = np.bincount(cells, minlength=2 * n_environments).reshape(-1, 2)
    has_both: BoolArray = counts.min(axis=1) > 0

    is_used = has_both[environments] & is_known
    fit = fit_logistic_regression(
        columns=log_odds[is_used, np.newaxis],
        positives=outcomes[is_used],
        environments=environments[is_used],
        n_environments=n_environments,
        initial_slope=1.0,  # predictions that are right everywhere have this slope
    )
    if fit is None:
        return None

    intercepts = np.where(has_both, fit.intercepts, np.nan)
    errors = np.where(has_both, 1.0 / np.sqrt(fit.intercept_information), np.nan)
    pooled = pool_effects(intercepts, errors)
    if pooled is None:
        return None
    return CalibrationLine(
        slope=float(fit.slopes[0]), intercepts=intercepts, standard_errors=errors, pooled=pooled
    )
