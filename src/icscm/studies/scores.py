"""How good predictions are: each measure with its 95 % interval, None where it has no value.

A measure takes the true labels (True or 1 is positive) and either the predicted ones or the
probabilities of the positive class.

Methods. Shares (error, sensitivity, specificity, PPV, NPV) have Wilson's score interval. Balanced
accuracy is the mean of two independent shares: the distances to their Wilson bounds add up like
standard errors (as in Newcombe's interval of a difference). The AUC has DeLong's interval on the
scale of log odds; where his variance vanishes or is not defined (all pairs in order, one sample of
a class), Wilson's with as many samples as the rarer class has, since the variance of an AUC is at
most auc (1 - auc) / min(positives, negatives). The Brier score and the log loss are means over
samples and have the normal interval. Its variance is the observed one, or the one that the
probabilities themselves imply where that is larger: a few samples that all came out as expected
say little of losses that are rare and large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from icscm._constants import VERDICT_CONFIDENCE
from icscm._types import BoolArray, FloatArray
from icscm.stats.verdicts import compute_wilson

Z = float(ndtri((1 + VERDICT_CONFIDENCE) / 2))


class Score(NamedTuple):
    """A measure's value and its 95 % interval."""

    value: float
    low: float
    high: float


def compute_error(y: Any, predicted: Any) -> Score | None:
    """Share of samples that are predicted wrongly.

    >>> print(compute_error([1, 1, 0, 0], [1, 0, 0, 0]).value)
    0.25
    """
    return _compute_share(_as_bool(y) != _as_bool(predicted))


def compute_sensitivity(y: Any, predicted: Any) -> Score | None:
    """Share of the positive samples that are predicted positive."""
    return _compute_share(_as_bool(predicted)[_as_bool(y)])


def compute_specificity(y: Any, predicted: Any) -> Score | None:
    """Share of the negative samples that are predicted negative."""
    return _compute_share(~_as_bool(predicted)[~_as_bool(y)])


def compute_ppv(y: Any, predicted: Any) -> Score | None:
    """Positive predictive value: share of the positive among those predicted positive."""
    return _compute_share(_as_bool(y)[_as_bool(predicted)])


def compute_npv(y: Any, predicted: Any) -> Score | None:
    """Negative predictive value: share of the negative among those predicted negative."""
    return _compute_share(~_as_bool(y)[~_as_bool(predicted)])


def compute_balanced_accuracy(y: Any, predicted: Any) -> Score | None:
    """Mean of sensitivity and specificity; None with one class only."""
    parts = compute_sensitivity(y, predicted), compute_specificity(y, predicted)
    if parts[0] is None or parts[1] is None:
        return None
    value, low, high = (np.array([getattr(p, f) for p in parts]) for f in Score._fields)
    middle = value.mean()
    return _bound(
        middle, middle - np.hypot(*(value - low)) / 2, middle + np.hypot(*(high - value)) / 2
    )


def compute_auc(y: Any, probability: Any) -> Score | None:
    """Chance that a positive sample has the higher probability of the two, ties counted half.

    >>> print(compute_auc([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).value)
    0.75
    """
    is_positive, p = _as_bool(y), np.asarray(probability, dtype=np.float64)
    positive, negative = p[is_positive], p[~is_positive]
    if not len(positive) or not len(negative):
        return None
    ranks = rankdata(p)
    # of each sample, the share of the other class on its proper side
    above = (ranks[is_positive] - rankdata(positive)) / len(negative)
    below = 1 - (ranks[~is_positive] - rankdata(negative)) / len(positive)
    value, rarer = float(above.mean()), min(len(positive), len(negative))
    variance = 0.0
    if rarer > 1:
        variance = float(above.var(ddof=1) / len(positive) + below.var(ddof=1) / len(negative))
    if not 0 < value < 1 or variance <= 0:
        low, high = compute_wilson(np.array(value * rarer), np.array(rarer), Z)
        return _bound(value, low, high)
    reach = Z * np.sqrt(variance) / (value * (1 - value))
    return _bound(value, expit(logit(value) - reach), expit(logit(value) + reach))


def compute_brier(y: Any, probability: Any) -> Score | None:
    """Mean square of label less probability."""
    p = np.asarray(probability, dtype=np.float64)
    return _compute_mean((_as_bool(y) - p) ** 2, p, 1 - 2 * p, most=1.0)


def compute_log_loss(y: Any, probability: Any) -> Score | None:
    """Mean of minus the log of the probability given to what came true.

    Probabilities of 0 and 1 are taken as the nearest that has a logarithm, as scikit-learn does.
    """
    least = np.finfo(np.float64).eps
    p = np.clip(np.asarray(probability, dtype=np.float64), least, 1 - least)
    return _compute_mean(-np.log(np.where(_as_bool(y), p, 1 - p)), p, logit(p), most=np.inf)


Measure = Callable[[Any, Any], Score | None]

# Of the labels and the predicted ones.
OF_PREDICTIONS: dict[str, Measure] = {
    "error": compute_error,
    "balanced_accuracy": compute_balanced_accuracy,
    "sensitivity": compute_sensitivity,
    "specificity": compute_specificity,
    "ppv": compute_ppv,
    "npv": compute_npv,
}
# Of the labels and the probabilities.
OF_PROBABILITIES: dict[str, Measure] = {
    "auc": compute_auc,
    "brier": compute_brier,
    "log_loss": compute_log_loss,
}

# What people call them, in the order in which they are shown.
TITLES = {
    "error": "Error",
    "balanced_accuracy": "Balanced accuracy",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
    "ppv": "PPV",
    "npv": "NPV",
    "auc": "AUC",
    "brier": "Brier score",
    "log_loss": "Log loss",
}


def compute_scores(y: Any, predicted: Any, probability: Any = None) -> dict[str, Score | None]:
    """Every measure, by its name; without probabilities those that ask for them are None.

    >>> scores = compute_scores([0, 1, 1], [0, 1, 0])
    >>> print(scores["npv"].value, scores["auc"])
    0.5 None
    """
    scores = {name: measure(y, predicted) for name, measure in OF_PREDICTIONS.items()}
    for name, measure in OF_PROBABILITIES.items():
        scores[name] = None if probability is None else measure(y, probability)
    return scores


def _as_bool(labels: Any) -> BoolArray:
    return np.asarray(labels).astype(bool)


def _bound(value: Any, low: Any, high: Any, most: float = 1.0) -> Score:
    """Within the measure's range, and around the value whatever rounding did."""
    value = float(value)
    return Score(value, max(min(float(low), value), 0.0), min(max(float(high), value), most))


def _compute_share(hits: BoolArray) -> Score | None:
    if not len(hits):
        return None
    n_hits, n = int(hits.sum()), len(hits)
    return _bound(n_hits / n, *compute_wilson(np.array(n_hits), np.array(n), Z))


def _compute_mean(losses: FloatArray, p: FloatArray, gap: FloatArray, most: float) -> Score | None:
    """The mean of losses; `gap` is how far those of the two labels lie apart."""
    n = len(losses)
    if not n:
        return None
    sure = 1 / (n + 2)  # no more than n samples can show
    chance = np.clip(p, sure, 1 - sure)
    implied = (chance * (1 - chance) * gap**2).mean()
    mean, variance = losses.mean(), max(losses.var(ddof=min(1, n - 1)), implied)
    reach = Z * np.sqrt(variance / n)
    return _bound(mean, mean - reach, mean + reach, most)
