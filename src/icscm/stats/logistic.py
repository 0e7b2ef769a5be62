"""Logistic regression with an intercept for each environment, by Newton's method.

A row i has n_i observations, y_i of them positive, values x_i of some columns, an environment e(i)
and a known offset o_i:

    log odds of row i = o_i + x_i' slopes + intercept of e(i)

Newton's method from gradients g and hessians h of the rows, with p_i the probability of row i:

    g_i = y_i - n_i p_i                     G_e = sum of g over environment e
    h_i = n_i p_i (1 - p_i)                 H_e = sum of h,  C_e = sum of h x

    information     = X' diag(h) X - sum C_e C_e' / H_e
    step of slopes  = information^-1 (X' g - sum C_e G_e / H_e)
    step of e       = (G_e - C_e' step of slopes) / H_e

The intercepts are profiled out, so the cost of a step does not grow with the number of
environments. All logistic regressions of the package are this one: calibration, recalibration, the
scores of cross-fitted learners, points, and the intercepts of environments around a tree.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray

# Steps at most, the longest one, and the largest that counts as none.
MAX_STEPS: Final = 100
MAX_STEP: Final = 1.0
SMALLEST_STEP: Final = 1e-10
# Slopes are undetermined if the least eigenvalue of their information, per row, is at most this.
MIN_INFORMATION: Final = 1e-9


@dataclass(frozen=True, eq=False)
class InterceptPrior:
    """Normal priors of the intercepts around some means, all of the same precision."""

    means: FloatArray
    precision: float


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A fitted logistic regression.

    Attributes
    ----------
    slopes : array of shape (n_columns,)
        Change of the log odds by column.
    intercepts : array of shape (n_environments,)
        Those of environments without information stay where they started.
    intercept_information : array of shape (n_environments,)
        H_e, the inverse variance of each intercept for fixed slopes; 1 without information.
    """

    slopes: FloatArray
    intercepts: FloatArray
    intercept_information: FloatArray


def fit_logistic_regression(
    columns: FloatArray,
    positives: Array,
    environments: IntArray,
    *,
    n_environments: int,
    sizes: Array | float = 1.0,
    offsets: FloatArray | float = 0.0,
    initial_slope: float = 0.0,
    ridge: float = 0.0,
    intercept_prior: InterceptPrior | None = None,
) -> LogisticFit | None:
    """Fit slopes that all environments share, and an intercept for each.

    Parameters
    ----------
    columns : array of shape (n_rows, n_columns)
        X.
    positives : array of shape (n_rows,)
        Positive observations of each row; 0 or 1 where a row is one observation.
    environments : array of int of shape (n_rows,)
        The number of each row's environment, below `n_environments`.
    sizes : array of shape (n_rows,)
        Observations of each row.
    offsets : array of shape (n_rows,)
        Log odds that are known, and not fitted.
    initial_slope : float
        The slope of every column to start from. Columns that are log odds already need few steps
        from slopes that sum to 1.
    ridge : float
        Precision of a normal prior of each slope around 0, which always determines them.
    intercept_prior : InterceptPrior, optional
        Intercepts start from its means, or else from 0.

    Returns
    -------
    LogisticFit or None
        None if the slopes are undetermined: a column is constant in each environment, columns
        depend on each other, or they separate the outcomes.

    Examples
    --------
    >>> x = np.array([[-1.0], [0.0], [0.0], [1.0], [1.0], [2.0]])
    >>> y, environments = np.array([0, 0, 1, 0, 1, 1]), np.zeros(6, dtype=int)
    >>> fit = fit_logistic_regression(x, y, environments, n_environments=1)
    >>> fit.slopes.round(2).tolist(), fit.intercepts.round(2).tolist()
    ([1.39], [-0.69])
    """
    n_rows, n_columns = columns.shape
    slopes = np.full(n_columns, initial_slope)
    intercepts = np.zeros(n_environments)
    if intercept_prior is not None:
        intercepts = intercept_prior.means

    for _ in range(MAX_STEPS):
        log_odds = intercepts[environments] + columns @ slopes + offsets
        p, variance = predict_with_variance(log_odds)
        g = positives - sizes * p
        h = sizes * variance

        G = np.zeros(n_environments)
        G += np.bincount(environments, g, n_environments)
        H = np.zeros(n_environments)
        H += np.bincount(environments, h, n_environments)
        C = np.zeros((n_columns, n_environments))
        for column, weighted in enumerate(columns.T * h):
            C[column] = np.bincount(environments, weighted, n_environments)
        if intercept_prior is not None:
            G = G - intercept_prior.precision * (intercepts - intercept_prior.means)
            H = H + intercept_prior.precision
        H = np.where(H > 0, H, 1.0)

        information = (columns.T * h) @ columns - (C / H) @ C.T
        if not ridge and n_columns:
            least_eigenvalue = np.linalg.eigvalsh(information)[0]
            if least_eigenvalue <= MIN_INFORMATION * n_rows:
                return None

        slope_gradient = columns.T @ g - C @ (G / H) - ridge * slopes
        slope_step = np.linalg.solve(information + ridge * np.eye(n_columns), slope_gradient)
        slope_step = slope_step.clip(-MAX_STEP, MAX_STEP)
        intercept_step = ((G - slope_step @ C) / H).clip(-MAX_STEP, MAX_STEP)

        slopes = slopes + slope_step
        intercepts = intercepts + intercept_step
        largest_step = max(
            np.abs(slope_step).max(initial=0.0), np.abs(intercept_step).max(initial=0.0)
        )
        if largest_step < SMALLEST_STEP:
            break
    return LogisticFit(slopes=slopes, intercepts=intercepts, intercept_information=H)


def predict_with_variance(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return probabilities p and p (1 - p), which is above 0 even where p is rounded to 1."""
    p: FloatArray = special.expit(log_odds)
    return p, p * special.expit(-log_odds)
