"""Metrics of predictions: each with its 95% interval, None where it is undefined.

A metric takes the true labels (True or 1 is positive) and either the predicted labels or the
probabilities of the positive class.

Methods. Proportions (error, sensitivity, specificity, PPV, NPV) have Wilson's score interval.
Balanced accuracy is the mean of two independent proportions: the distances to their Wilson bounds
add up like standard errors (as in Newcombe's interval of a difference). The AUC has DeLong's
interval on the scale of log odds; where his variance vanishes or is not defined (all pairs in
order, one sample of a class), Wilson's with as many samples as the rarer class has, since the
variance of an AUC is at most auc (1 - auc) / min(positives, negatives). The Brier score and the
log loss are means over samples and have the normal interval. Its variance is the observed one, or
the one that the probabilities themselves imply where that is larger: a few samples with the
expected label contain little information about losses that are rare and large.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import binomtest, rankdata

from icscm._constants import VERDICT_CONFIDENCE
from icscm._types import BoolArray, FloatArray
from icscm.stats.verdicts import compute_wilson

# Level of the tests of differences.
ALPHA = 0.05
BETTER, UNCLEAR, NO_BETTER = "better", "not shown to be better", "no better"
Z = float(ndtri((1 + VERDICT_CONFIDENCE) / 2))

# Names as printed, in the order of tables.
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
# Metrics computed from probabilities; the others use predicted labels.
PROBABILITY_METRICS = "auc", "brier", "log_loss"


@dataclass(frozen=True)
class Score:
    """The value of a metric and its 95% interval."""

    value: float
    low: float
    high: float


def compute_scores(y: Any, predicted: Any, probability: Any = None) -> dict[str, Score | None]:
    """Every metric by name; without probabilities those that need them are None.

    >>> scores = compute_scores([0, 1, 1], [0, 1, 0])
    >>> print(scores["npv"].value, scores["auc"])
    0.5 None
    """
    y, predicted = np.asarray(y).astype(bool), np.asarray(predicted).astype(bool)
    sensitivity, specificity = _compute_share(predicted[y]), _compute_share(~predicted[~y])
    scores = {
        "error": _compute_share(y != predicted),
        "balanced_accuracy": _average_shares(sensitivity, specificity),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": _compute_share(y[predicted]),
        "npv": _compute_share(~y[~predicted]),
    }
    if probability is None:
        return scores | dict.fromkeys(PROBABILITY_METRICS)
    p = np.asarray(probability, dtype=np.float64)
    # as scikit-learn does: probabilities of 0 and 1 become the nearest that have a logarithm
    inner = np.clip(p, np.finfo(np.float64).eps, 1 - np.finfo(np.float64).eps)
    losses = -np.log(np.where(y, inner, 1 - inner))
    return scores | {
        "auc": score_auc(y, p),
        "brier": _compute_mean((y - p) ** 2, p, 1 - 2 * p, most=1.0),
        "log_loss": _compute_mean(losses, inner, logit(inner), most=np.inf),
    }


def score_auc(y: Any, ranking: Any) -> Score | None:
    """Area under the ROC curve, of labels and probabilities or decision values; ties count half.

    >>> print(score_auc([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).value)
    0.75
    """
    is_positive, values = np.asarray(y).astype(bool), np.asarray(ranking, dtype=np.float64)
    positive, negative = values[is_positive], values[~is_positive]
    if not len(positive) or not len(negative):
        return None
    ranks = rankdata(values)
    # of each sample, the share of the other class that is ranked on the correct side of it
    above = (ranks[is_positive] - rankdata(positive)) / len(negative)
    below = 1 - (ranks[~is_positive] - rankdata(negative)) / len(positive)
    value, rarer = float(above.mean()), min(len(positive), len(negative))
    variance = 0.0
    if rarer > 1:
        variance = float(above.var(ddof=1) / len(positive) + below.var(ddof=1) / len(negative))
    if not 0 < value < 1 or variance <= 0:
        return _bound(value, *compute_wilson(np.array(value * rarer), np.array(rarer), Z))
    reach = Z * np.sqrt(variance) / (value * (1 - value))
    return _bound(value, expit(logit(value) - reach), expit(logit(value) + reach))


def compare_errors(wrong: BoolArray, baseline_wrong: BoolArray) -> tuple[str, float]:
    """Whether a model is better than the baseline, and the p-value of McNemar's exact test."""
    only_model = int((wrong & ~baseline_wrong).sum())
    only_baseline = int((baseline_wrong & ~wrong).sum())
    n = only_model + only_baseline
    p_value = float(binomtest(only_model, n).pvalue) if n else 1.0
    if only_model >= only_baseline:
        return NO_BETTER, p_value
    return BETTER if p_value <= ALPHA else UNCLEAR, p_value


def _bound(value: Any, low: Any, high: Any, most: float = 1.0) -> Score:
    """Within the range of the metric, and around the value whatever rounding did."""
    value = float(value)
    return Score(value, max(min(float(low), value), 0.0), min(max(float(high), value), most))


def _compute_share(hits: BoolArray) -> Score | None:
    if not len(hits):
        return None
    n_hits, n = int(hits.sum()), len(hits)
    return _bound(n_hits / n, *compute_wilson(np.array(n_hits), np.array(n), Z))


def _average_shares(first: Score | None, second: Score | None) -> Score | None:
    if first is None or second is None:
        return None
    value, low, high = np.array([astuple(first), astuple(second)]).T
    middle = value.mean()
    return _bound(
        middle, middle - np.hypot(*(value - low)) / 2, middle + np.hypot(*(high - value)) / 2
    )


def _compute_mean(losses: FloatArray, p: FloatArray, gap: FloatArray, most: float) -> Score | None:
    """The mean of losses; `gap` is the difference between the losses of the two labels."""
    n = len(losses)
    if not n:
        return None
    least = 1 / (n + 2)  # n samples cannot show smaller probabilities
    chance = np.clip(p, least, 1 - least)
    implied = (chance * (1 - chance) * gap**2).mean()
    mean, variance = losses.mean(), max(losses.var(ddof=min(1, n - 1)), implied)
    reach = Z * np.sqrt(variance / n)
    return _bound(mean, mean - reach, mean + reach, most)
