"""Logistic regression with an intercept for each environment, by Newton's method.

A row i has n_i observations, y_i of them positive, values x_i of some columns, an environment e(i)
and a known offset o_i:

    log odds of row i = o_i + x_i' slopes + intercept of e(i)

With p_i the probability of row i at the present slopes and intercepts, and X the rows x_i,

    gradients   g_i = y_i - n_i p_i               G_e = sum of g over environment e
    hessians    h_i = n_i p_i (1 - p_i)           H_e = sum of h,  C_e = sum of h x

A step of Newton's method, d_s of the slopes and d_e of each intercept, solves

    X' diag(h) X d_s + sum C_e d_e = X' g
    C_e' d_s         + H_e d_e     = G_e          for each environment e

There may be thousands of environments, too many to solve this at once. But the last lines give
d_e = (G_e - C_e' d_s) / H_e, and with that the first one has no unknowns but the few slopes (block
elimination; the matrix on the left is the Schur complement):

    information = X' diag(h) X - sum C_e C_e' / H_e
    d_s         = information^-1 (X' g - sum C_e G_e / H_e)

A normal prior adds its precision to the hessians, and draws its mean into the gradients.

All logistic regressions of the package are this one: calibration, recalibration, the scores of
cross-fitted learners, points, and the intercepts of environments around a tree.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from icscm._lazy import special
from icscm._types import Array, FloatArray, IntArray

# Newton's method converges in a few steps, if it does.
MAX_STEPS: Final = 100
# The longest step of a slope or intercept: far from the solution, a full one would overshoot.
MAX_STEP: Final = 1.0
# The largest step that counts as none.
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

    Each step of Newton's method solves equations for the few slopes first, and then for each of the
    intercepts, of which there may be thousands: see the head of the module.

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
    # A prior of precision 0 is none.
    prior = intercept_prior or InterceptPrior(means=np.zeros(n_environments), precision=0.0)
    slopes = np.full(n_columns, initial_slope)
    intercepts = prior.means

    for _ in range(MAX_STEPS):
        log_odds = intercepts[environments] + columns @ slopes + offsets
        p, variances = predict_with_variance(log_odds)
        equations_of_rows = _sum_rows(
            columns,
            environments,
            gradients=positives - sizes * p,
            hessians=sizes * variances,
            n_environments=n_environments,
        )
        equations = _add_prior(equations_of_rows, prior, intercepts)

        slope_equations = equations.eliminate_intercepts()
        # Without a ridge, the likelihood may be flat in some direction, or rise without end.
        if not ridge and slope_equations.are_singular(n_rows):
            return None
        slope_step = slope_equations.solve(slopes, ridge=ridge).clip(-MAX_STEP, MAX_STEP)
        intercept_step = equations.solve_intercepts(slope_step).clip(-MAX_STEP, MAX_STEP)

        slopes = slopes + slope_step
        intercepts = intercepts + intercept_step
        longest_slope_step = np.abs(slope_step).max(initial=0.0)
        longest_intercept_step = np.abs(intercept_step).max(initial=0.0)
        if max(longest_slope_step, longest_intercept_step) < SMALLEST_STEP:
            break
    return LogisticFit(
        slopes=slopes,
        intercepts=intercepts,
        intercept_information=equations.H,
    )


# --- a step of Newton's method --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SlopeEquations:
    """The equations for a step of the slopes, from which the intercepts were eliminated.

    Attributes
    ----------
    information : array of shape (n_columns, n_columns)
        X' diag(h) X - sum C_e C_e' / H_e.
    gradient : array of shape (n_columns,)
        X' g - sum C_e G_e / H_e.
    """

    information: FloatArray
    gradient: FloatArray

    def are_singular(self, n_rows: int) -> bool:
        """Tell whether the slopes are undetermined: in some direction the information is 0."""
        if not len(self.gradient):
            return False
        least_eigenvalue = np.linalg.eigvalsh(self.information)[0]
        return bool(least_eigenvalue <= MIN_INFORMATION * n_rows)

    def solve(self, slopes: FloatArray, *, ridge: float) -> FloatArray:
        """Solve for the step d_s from these slopes, which the ridge draws towards 0."""
        hessian = self.information + ridge * np.eye(len(slopes))
        gradient = self.gradient - ridge * slopes
        return np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _NewtonEquations:
    """The equations for a step of all slopes and intercepts, in the symbols of the module.

    Attributes
    ----------
    Xg : array of shape (n_columns,)
        X' g.
    XhX : array of shape (n_columns, n_columns)
        X' diag(h) X.
    G, H : array of shape (n_environments,)
        Sums of g and of h by environment.
    C : array of shape (n_columns, n_environments)
        Sums of h x by environment.
    """

    Xg: FloatArray
    XhX: FloatArray
    G: FloatArray
    H: FloatArray
    C: FloatArray

    def eliminate_intercepts(self) -> _SlopeEquations:
        """Express the steps of the intercepts by that of the slopes, which alone remains."""
        return _SlopeEquations(
            information=self.XhX - (self.C / self.H) @ self.C.T,
            gradient=self.Xg - self.C @ (self.G / self.H),
        )

    def solve_intercepts(self, slope_step: FloatArray) -> FloatArray:
        """Solve for the steps d_e of the intercepts, once that of the slopes is known."""
        return np.asarray((self.G - slope_step @ self.C) / self.H)


def _sum_rows(
    columns: FloatArray,
    environments: IntArray,
    *,
    gradients: FloatArray,
    hessians: FloatArray,
    n_environments: int,
) -> _NewtonEquations:
    """Sum the rows' gradients g and hessians h to the equations of a step."""
    weighted_columns = columns.T * hessians
    C = np.zeros((len(weighted_columns), n_environments))
    for column, weighted in enumerate(weighted_columns):
        C[column] = _sum_by_environment(weighted, environments, n_environments)
    return _NewtonEquations(
        Xg=columns.T @ gradients,
        XhX=weighted_columns @ columns,
        G=_sum_by_environment(gradients, environments, n_environments),
        H=_sum_by_environment(hessians, environments, n_environments),
        C=C,
    )


def _sum_by_environment(
    values: FloatArray, environments: IntArray, n_environments: int
) -> FloatArray:
    """Sum values of the rows of each environment."""
    # without rows, NumPy returns whole numbers
    return np.asarray(np.bincount(environments, values, n_environments), dtype=np.float64)


def _add_prior(
    equations: _NewtonEquations, prior: InterceptPrior, intercepts: FloatArray
) -> _NewtonEquations:
    """Add gradient and hessian of the intercepts' prior, and make each H_e larger than 0."""
    G = equations.G - prior.precision * (intercepts - prior.means)
    H = equations.H + prior.precision
    # Without information G_e and C_e are 0, too: with any H_e the intercept stays where it is.
    return replace(equations, G=G, H=np.where(H > 0, H, 1.0))


class Predictions(NamedTuple):
    """Probabilities p of rows, and the variances p (1 - p) of their outcomes."""

    p: FloatArray
    variances: FloatArray


def predict_with_variance(log_odds: FloatArray) -> Predictions:
    """Compute p and p (1 - p) of log odds; the variance is above 0 even where p is rounded to 1."""
    p: FloatArray = special.expit(log_odds)
    return Predictions(p=p, variances=p * special.expit(-log_odds))
