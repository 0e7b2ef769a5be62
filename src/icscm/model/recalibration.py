"""Recalibration for a site: shifts the intercept of a model, by rows of the site or a base rate.

    log odds at the site = shift + slope * log odds of the model

The shift is estimated with the slope kept at 1, by maximum likelihood with Jeffreys' prior, so
that it is finite without a positive row and its interval has coverage at any rate. With few rows
it is imprecise: the applied shift is shrunk towards 0 as if sites varied by `SITE_SPREAD`.
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
_Z: Final = 1.959964
_BOUNDS: Final = (-80.0, 80.0)


class Shift(NamedTuple):
    """The shift of the log odds of a model for a site.

    `intercept` and `slope` are applied. `estimate` is the shift with the slope kept, with its
    standard error and 95% interval, None for a base rate that is taken as exact. `rate` is that of
    the label at the site, `n` the rows.
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
            text += f" (estimate {self.estimate:+.2f}, 95% interval {self.low:+.2f} to "
            text += f"{self.high:+.2f})"
        slope = "kept" if self.slope == 1 else f"multiplied by {self.slope:.2f}"
        return f"{text}; the slope is {slope}."


def fit_shift(log_odds: FloatArray, y: Array) -> Shift:
    """The shift of a site from labelled rows.

    >>> found = fit_shift(np.zeros(40), np.arange(40) < 30)
    >>> print(f"{found.estimate:.2f} from {found.low:.2f} to {found.high:.2f}")
    1.07 from 0.36 to 1.78
    """

    def measure(shift: float) -> float:
        p, weight = predict_with_variance(shift + log_odds)
        return float((y - p).sum() + (weight @ (1.0 - 2.0 * p)) / (2.0 * weight.sum()))

    estimate = float(optimize.brentq(measure, *_BOUNDS))
    error = float(predict_with_variance(estimate + log_odds)[1].sum() ** -0.5)
    intercept, slope = estimate * SITE_SPREAD**2 / (SITE_SPREAD**2 + error**2), 1.0
    if min(y.sum(), len(y) - y.sum()) >= MIN_FOR_SLOPE:
        fit = fit_logistic_regression(
            log_odds[:, np.newaxis],
            y,
            np.zeros(len(y), dtype=np.intp),
            n_environments=1,
            initial_slope=1.0,
        )
        if fit is not None:
            slope = float(fit.slopes[0])
            intercept = float(fit.intercepts[0])
    ends = estimate - _Z * error, estimate + _Z * error
    return Shift(intercept, slope, estimate, error, *ends, float(np.mean(y)), len(y))


def find_shift(prevalence: float, rate: float, log_odds: FloatArray | None) -> Shift:
    """The shift from a rate to a base rate or, with rows, to that mean prediction.

    >>> print(find_shift(0.2, 0.5, None))
    The log odds are shifted by -1.39; the slope is kept.
    """
    if not 0 < prevalence < 1:
        raise IcscmError(f"prevalence is between 0 and 1, both excluded; got {prevalence}")
    if log_odds is None:
        shift = float(special.logit(prevalence) - special.logit(rate))
        return Shift(shift, 1.0, shift, None, None, None, prevalence, 0)
    shift = float(
        optimize.brentq(lambda a: special.expit(a + log_odds).mean() - prevalence, *_BOUNDS)
    )
    p, weight = predict_with_variance(shift + log_odds)
    error = float(p.std() / np.sqrt(len(p)) / weight.mean())
    ends = shift - _Z * error, shift + _Z * error
    return Shift(shift, 1.0, shift, error, *ends, prevalence, len(p))


def move(saved: Any, X: Any, y: Any, prevalence: float | None) -> tuple[Any, Shift]:
    """The model of a saved model, recalibrated, and the shift."""
    if (y is None) == (prevalence is None) or (y is not None and X is None):
        raise IcscmError(
            "recalibrate takes labelled rows of the site, recalibrate(X, y), or its base rate, "
            "recalibrate(prevalence=0.12), with unlabelled rows X or without"
        )
    log_odds = np.empty(0) if X is None else special.logit(saved.decide(X).probability)
    n_labels = len(log_odds) if y is None else len(y)
    if X is not None and (not n_labels or n_labels != len(log_odds)):
        raise IcscmError(
            f"X has {len(log_odds):,} rows with {n_labels:,} labels; give a label for each row"
        )
    if prevalence is None:
        shift = fit_shift(log_odds, code_known(y, np.array(saved.classes)))
    else:
        own = None if X is None else log_odds
        shift = find_shift(float(prevalence), _find_rate(saved), own)
    intercept, slope = saved.model.calibration
    moved = shift.intercept + shift.slope * intercept, shift.slope * slope
    return replace(saved.model, calibration=moved), shift


def _find_rate(saved: Any) -> float:
    """The rate of the site of the last recalibration, else the rate in training."""
    known = saved.settings.get("recalibration")
    rate = known.get("rate") if isinstance(known, dict) else None
    if isinstance(rate, float) and 0 < rate < 1:
        return rate
    return float(saved.model.make_baseline().leaf_probabilities()[0])
