"""Recalibration for a site: shifts the intercept of a model, by rows of the site or a base rate.

    log odds at the site = a + b x,    with the log odds x of the model, the shift a, and slope b

With b = 1, the shift is estimated by maximum likelihood with Jeffreys' prior (Firth 1993), so that
it is finite without a positive row and its interval has coverage at any rate. Of rows i with the
outcomes y_i, probabilities p_i = expit(a + x_i) and weights v_i = p_i (1 - p_i), it solves

    sum (y_i - p_i) + sum v_i (1 - 2 p_i) / (2 sum v_i) = 0        variance of a: s^2 = 1 / sum v_i

With few rows a is imprecise. So it is shrunk towards 0, as if sites varied by tau, `SITE_SPREAD`:

    applied shift = a tau^2 / (tau^2 + s^2)

With many rows, both a and b are those of a logistic regression of y on x.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._lazy import optimize, special
from icscm._types import Array, FloatArray
from icscm.exceptions import IcscmError
from icscm.stats.logistic import fit_logistic_regression, predict_with_variance
from icscm.tables.labels import code_known

# Standard deviation of the shifts of sites: two of them are odds 2.7 times as high.
SITE_SPREAD: Final = 0.5
# Rows of each label from which the slope is estimated, too: its standard error is then .1 to .15.
MIN_FOR_SLOPE: Final = 100
# The normal quantile of a 95% interval.
_Z: Final = 1.959964
# Log odds of float64 lie within 37 of 0, so all shifts between them do within these bounds.
_LOWEST_SHIFT: Final = -80.0
_HIGHEST_SHIFT: Final = 80.0


class Shift(NamedTuple):
    """How the log odds of a model are changed for a site, and how sure that is.

    The model predicts  intercept + slope x  there, where it had predicted the log odds x.

    Attributes
    ----------
    intercept, slope : float
        As they are applied. With few rows the slope is 1, and the intercept is the estimate after
        it was shrunk towards 0; with many, both are those of a logistic regression.
    estimate : float
        The intercept with a slope of 1, before it is shrunk.
    standard_error, low, high : float, optional
        Of the estimate, with the ends of its 95% interval; None where it comes from a base rate
        that is taken as exact.
    rate : float
        The share of positives at the site.
    n : int
        The number of rows of the site; 0 for a base rate without rows.
    """

    intercept: float
    slope: float
    estimate: float
    standard_error: float | None
    low: float | None
    high: float | None
    rate: float
    n: int

    def __str__(self) -> str:
        rows = f" from {self.n:,} rows" if self.n else ""
        text = f"The log odds are shifted by {self.intercept:+.2f}{rows}"
        if self.low is not None and self.high is not None:
            text += (
                f" (estimate {self.estimate:+.2f}, 95% interval {self.low:+.2f} to "
                f"{self.high:+.2f})"
            )
        slope = "kept" if self.slope == 1 else f"multiplied by {self.slope:.2f}"
        return f"{text}; the slope is {slope}."


def _make_shift(a: float, standard_error: float, *, applied: float, rate: float, n: int) -> Shift:
    """Make the shift of an estimate a, with its 95% interval a -+ 1.96 standard errors."""
    return Shift(
        intercept=applied,
        slope=1.0,
        estimate=a,
        standard_error=standard_error,
        low=a - _Z * standard_error,
        high=a + _Z * standard_error,
        rate=rate,
        n=n,
    )


def fit_shift(log_odds: FloatArray, y: Array) -> Shift:
    """Fit the change of a model's log odds for a site, to rows of it with their outcomes, 0 or 1.

    With few rows of either outcome only an intercept is fitted, and shrunk towards 0, since a slope
    would be too imprecise. With many, the applied intercept and slope are those of a logistic
    regression of the outcomes on the log odds; the estimate and its interval stay as they are.

    >>> shift = fit_shift(np.zeros(40), np.arange(40) < 30)
    >>> print(f"{shift.estimate:.2f} from {shift.low:.2f} to {shift.high:.2f}")
    1.07 from 0.36 to 1.78
    """
    shift_with_slope_1 = _fit_intercept(log_odds, y)
    n_positives = y.sum()
    n_negatives = len(y) - n_positives
    if min(n_positives, n_negatives) < MIN_FOR_SLOPE:
        return shift_with_slope_1

    line = fit_logistic_regression(
        columns=log_odds[:, np.newaxis],
        positives=y,
        environments=np.zeros(len(y), dtype=np.intp),  # the site is the only one
        n_environments=1,
        initial_slope=1.0,
    )
    if line is None:  # all predictions are equal, or separate the outcomes
        return shift_with_slope_1
    return shift_with_slope_1._replace(
        intercept=float(line.intercepts[0]), slope=float(line.slopes[0])
    )


def _fit_intercept(log_odds: FloatArray, y: Array) -> Shift:
    """Fit the shift a of the log odds x_i with a slope of 1, and shrink it towards 0.

    It is the maximum of the likelihood with Jeffreys' prior (Firth 1993), which is finite even if
    all outcomes y_i are equal. With p_i = expit(a + x_i) and v_i = p_i (1 - p_i), a solves

        sum (y_i - p_i) + sum v_i (1 - 2 p_i) / (2 sum v_i) = 0,

    where the first sum is the score, and the rest the penalty of the prior. With few rows a is
    imprecise, so it is shrunk by its variance s^2, as if sites varied by tau, `SITE_SPREAD`:

        s^2 = 1 / sum v_i        applied shift = a tau^2 / (tau^2 + s^2)
    """

    def compute_penalized_score(a: float) -> float:
        p, v = predict_with_variance(a + log_odds)
        score = (y - p).sum()
        penalty = (v @ (1.0 - 2.0 * p)) / (2.0 * v.sum())
        return float(score + penalty)

    a = float(optimize.brentq(compute_penalized_score, _LOWEST_SHIFT, _HIGHEST_SHIFT))
    _, v = predict_with_variance(a + log_odds)
    s = float(v.sum() ** -0.5)
    shrunken = a * SITE_SPREAD**2 / (SITE_SPREAD**2 + s**2)
    return _make_shift(a, s, applied=shrunken, rate=float(np.mean(y)), n=len(y))


def find_shift(prevalence: float, rate: float, log_odds: FloatArray | None) -> Shift:
    """Find the shift from a rate to a base rate or, with rows, to that mean prediction.

    >>> print(find_shift(0.2, 0.5, None))
    The log odds are shifted by -1.39; the slope is kept.
    """
    if not 0 < prevalence < 1:
        raise IcscmError(f"prevalence is between 0 and 1, both excluded; got {prevalence}")
    if log_odds is None:
        return _find_shift_between_rates(prevalence, rate)
    return _find_shift_of_predictions(prevalence, log_odds)


def _find_shift_between_rates(prevalence: float, rate: float) -> Shift:
    """Find a = logit(prevalence) - logit(rate), which is taken as exact."""
    a = float(special.logit(prevalence) - special.logit(rate))
    return Shift(
        intercept=a,
        slope=1.0,
        estimate=a,
        standard_error=None,
        low=None,
        high=None,
        rate=prevalence,
        n=0,
    )


def _find_shift_of_predictions(prevalence: float, log_odds: FloatArray) -> Shift:
    """Find the shift a of n log odds x_i with which the mean prediction is the prevalence.

    With p_i = expit(a + x_i) and v_i = p_i (1 - p_i), a solves  mean p_i = prevalence.  By the
    delta method it has

        standard error = sd(p) / sqrt(n) / mean v
    """

    def compute_excess(a: float) -> float:
        p = special.expit(a + log_odds)
        return float(p.mean() - prevalence)

    a = float(optimize.brentq(compute_excess, _LOWEST_SHIFT, _HIGHEST_SHIFT))
    p, v = predict_with_variance(a + log_odds)
    n = len(p)
    standard_error = float(p.std() / np.sqrt(n) / v.mean())
    return _make_shift(a, standard_error, applied=a, rate=prevalence, n=n)


def move(saved: Any, X: Any, y: Any, prevalence: float | None) -> tuple[Any, Shift]:
    """Return the model of a saved model, recalibrated for a site, and the shift."""
    is_one_given = (y is None) != (prevalence is None)
    if not is_one_given or (y is not None and X is None):
        raise IcscmError(
            "recalibrate takes labelled rows of the site, recalibrate(X, y), or its base rate, "
            "recalibrate(prevalence=0.12), with unlabelled rows X or without"
        )
    log_odds = None if X is None else special.logit(saved.decide(X).probability)
    if log_odds is not None:
        _check_lengths(n_rows=len(log_odds), n_labels=len(log_odds) if y is None else len(y))

    if prevalence is None:
        assert log_odds is not None
        shift = fit_shift(log_odds, code_known(y, np.array(saved.classes)))
    else:
        shift = find_shift(float(prevalence), _find_rate(saved), log_odds)

    # The line of the site, applied to that of the model: a + b (intercept + slope x).
    intercept, slope = saved.model.calibration
    calibration = shift.intercept + shift.slope * intercept, shift.slope * slope
    return replace(saved.model, calibration=calibration), shift


def _check_lengths(n_rows: int, n_labels: int) -> None:
    """Raise unless there is a label for each row, and at least one row."""
    if n_labels == 0 or n_labels != n_rows:
        raise IcscmError(
            f"X has {n_rows:,} rows with {n_labels:,} labels; give a label for each row"
        )


def _find_rate(saved: Any) -> float:
    """Return the rate that the model is for: of its last recalibration, else of training."""
    recalibration = saved.settings.get("recalibration")
    rate = recalibration.get("rate") if isinstance(recalibration, dict) else None
    if isinstance(rate, float) and 0 < rate < 1:
        return rate
    return float(saved.model.make_baseline().leaf_probabilities()[0])
