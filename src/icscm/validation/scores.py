"""Metrics of predictions, each with its 95% interval, and the calibration of leaves.

A metric takes the true labels (True or 1 is positive) and either the predicted labels or the
probabilities of the positive class; it is None where it is undefined.

Methods. Proportions (error, sensitivity, specificity, PPV, NPV) have Wilson's score interval.
Balanced accuracy is the mean of two independent proportions: the distances to their Wilson bounds
add up like standard errors (as in Newcombe's interval of a difference). The AUC has DeLong's
interval on the scale of log odds; where his variance vanishes or is not defined (all pairs in
order, one sample of a class), Wilson's with as many samples as the rarer class has, since the
variance of an AUC is at most auc (1 - auc) / min(positives, negatives). The Brier score and the
log loss are means over samples and have the normal interval. Its variance is the observed one, or
the one that the probabilities themselves imply where that is larger: a few samples with the
expected label contain little information about losses that are rare and large.

Calibration is judged on the log odds of the probabilities: the intercept of a logistic regression
of the label with these as offset (calibration in the large, 0 at best; above it risks are too low),
and the slope of one with these as its only predictor (1 at best; below it predictions are too
extreme). Both have the normal interval of the inverse information. Neither is defined with one
class, nor the slope where the classes are separated or all probabilities are equal. Observed over
expected positives, 1 at best, have the normal interval of the linearized logarithm.

With groups, rows that belong together, an estimate is linearized: it is a sum of influence values,
one a row, such as (hit - share) / n. The groups' sums of these are independent, and the variance is
G / (G - 1) times the sum of their squares (the sandwich; for the AUC, with DeLong's placements,
Obuchowski 1997). Student's t with G - 1 degrees of freedom replaces the normal quantile. Wilson's
interval then has the effective sample size share (1 - share) / variance; where the variance
vanishes, a group counts as one sample.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import VERDICT_CONFIDENCE
from icscm._lazy import optimize, special, stats
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.engine.clusters import number_clusters, square_sums
from icscm.model.tree import Tree
from icscm.report.content.rates import make_rates
from icscm.stats.criteria import adjust_holm
from icscm.stats.design_effects import compute_design_effects
from icscm.stats.independence import make_test
from icscm.stats.logistic import fit_logistic_regression
from icscm.stats.new_environments import compute_surprise, make_expectations
from icscm.stats.ranking import compute_placements
from icscm.stats.verdicts import compute_wilson

# Level of the tests of differences.
ALPHA = 0.05
BETTER, UNCLEAR, NO_BETTER = "better", "not shown to be better", "no better"
Z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))

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
    "slope": "Calibration slope",
    "intercept": "Calibration intercept",
    "observed_expected": "Observed / expected",
}
# With the one that needs the rate of training.
METRICS = {**TITLES, "skill": "Brier skill"}
# Metrics computed from probabilities; the others use predicted labels.
PROBABILITY_METRICS = "auc", "brier", "log_loss", "slope", "intercept", "observed_expected"


@dataclass(frozen=True)
class Score:
    """The value of a metric and its 95% interval."""

    value: float
    low: float
    high: float


def compute_scores(
    y: Any,
    predicted: Any,
    probability: Any = None,
    groups: IntArray | None = None,
    rate: float | None = None,
) -> dict[str, Score | None]:
    """Every metric by name; without probabilities those that need them are None.

    `groups` numbers the rows that belong together; None where all are independent. With the `rate`
    of the positive class in training there is also the `skill`, by which share the Brier score is
    below that of this rate as the probability of every row.

    >>> scores = compute_scores([0, 1, 1], [0, 1, 0])
    >>> print(scores["npv"].value, scores["auc"])
    0.5 None
    """
    y, predicted = np.asarray(y).astype(bool), np.asarray(predicted).astype(bool)

    def share(hits: BoolArray, rows: Any) -> Score | None:
        n_hits, n = int(hits[rows].sum()), len(hits[rows])
        if not n:
            return None
        if groups is not None:
            return _bound_share(n_hits / n, (hits[rows] - n_hits / n) / n, groups[rows])
        return _bound(n_hits / n, *compute_wilson(np.array(n_hits), np.array(n), Z))

    sensitivity, specificity, balanced = share(predicted, y), share(~predicted, ~y), None
    if sensitivity and specificity and groups is not None:
        mean = (sensitivity.value + specificity.value) / 2
        off = (y == predicted) - np.where(y, sensitivity.value, specificity.value)
        balanced = _bound_share(mean, off / np.where(y, 2 * y.sum(), 2 * (~y).sum()), groups)
    elif sensitivity and specificity:
        value, low, high = np.array([astuple(sensitivity), astuple(specificity)]).T
        mean, below, above = value.mean(), np.hypot(*(value - low)), np.hypot(*(high - value))
        balanced = _bound(mean, mean - below / 2, mean + above / 2)
    scores = {
        "error": share(y != predicted, slice(None)),
        "balanced_accuracy": balanced,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": share(y, predicted),
        "npv": share(~y, ~predicted),
    }
    if probability is None:
        known = (*PROBABILITY_METRICS, *(["skill"] if rate is not None else []))
        return scores | dict.fromkeys(known)
    p = np.asarray(probability, dtype=np.float64)
    inner = _clip(p)
    losses = -np.log(np.where(y, inner, 1 - inner))
    intercept, slope = score_calibration(y, p, groups)
    skill = {}
    if rate is not None:
        ratio = _compute_ratio((y - p) ** 2, (y - rate) ** 2, groups)
        skill["skill"] = ratio and Score(1 - ratio.value, 1 - ratio.high, 1 - ratio.low)
    return scores | {
        "auc": score_auc(y, p, groups),
        "brier": _compute_mean((y - p) ** 2, p, 1 - 2 * p, 1.0, groups),
        "log_loss": _compute_mean(losses, inner, special.logit(inner), np.inf, groups),
        "slope": slope,
        "intercept": intercept,
        "observed_expected": _compute_ratio(y, p, groups),
        **skill,
    }


def score_auc(y: Any, ranking: Any, groups: IntArray | None = None) -> Score | None:
    """Area under the ROC curve, of labels and probabilities or decision values; ties count half.

    >>> print(score_auc([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).value)
    0.75
    """
    is_positive, values = np.asarray(y).astype(bool), np.asarray(ranking, dtype=np.float64)
    placements = compute_placements(is_positive, values)
    if placements is None:
        return None
    above, below = placements.positive, placements.negative
    value, rarer = float(above.mean()), min(len(above), len(below))
    variance, z = 0.0, Z
    if groups is not None:
        influence = np.empty(len(values))
        influence[is_positive] = (above - value) / len(above)
        influence[~is_positive] = (below - value) / len(below)
        variance, z = compute_variance(influence, groups)
        rarer = min(len(np.unique(groups[each])) for each in (is_positive, ~is_positive))
    elif rarer > 1:
        variance = float(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
    if not 0 < value < 1 or variance <= 0:
        return _bound(value, *compute_wilson(np.array(value * rarer), np.array(rarer), z))
    reach = z * np.sqrt(variance) / (value * (1 - value))
    return _bound(
        value,
        special.expit(special.logit(value) - reach),
        special.expit(special.logit(value) + reach),
    )


def score_calibration(
    y: Any, probability: Any, groups: IntArray | None = None
) -> tuple[Score | None, Score | None]:
    """Intercept (slope fixed at 1) and slope of calibration, each None where it is undefined.

    >>> truth, probability = [0, 0, 1, 0, 1, 1], [0.3, 0.4, 0.4, 0.6, 0.6, 0.7]
    >>> print("{0.value:.2f} {1.value:.2f}".format(*score_calibration(truth, probability)))
    0.00 1.86
    """
    is_positive = np.asarray(y).astype(bool)
    x = special.logit(_clip(np.asarray(probability, dtype=np.float64)))
    positive, negative = x[is_positive], x[~is_positive]
    if not len(positive) or not len(negative):
        return None, None
    one, rate = np.ones((len(x), 1)), special.logit(is_positive.mean())
    ends = rate - x.max() - 1e-3, rate - x.min() + 1e-3
    shift = optimize.brentq(lambda a: special.expit(a + x).sum() - len(positive), *ends)
    intercept = _bound_coefficient(shift, one, is_positive, special.expit(shift + x), groups)
    if positive.min() >= negative.max() or negative.min() >= positive.max():
        return intercept, None
    spread, centred = x.std(), x - x.mean()
    fit = fit_logistic_regression(
        centred[:, np.newaxis] / spread,
        is_positive,
        np.zeros(len(x), dtype=np.intp),
        n_environments=1,
        initial_slope=1.0,
    )
    if fit is None:
        return intercept, None
    slope = float(fit.slopes[0]) / spread
    p = special.expit(fit.intercepts[0] + slope * centred)
    design = np.column_stack((one, centred))
    return intercept, _bound_coefficient(slope, design, is_positive, p, groups)


def _clip(p: FloatArray) -> FloatArray:
    """Replace 0 and 1 by the nearest probabilities that have finite log odds, as scikit-learn."""
    return np.clip(p, np.finfo(np.float64).eps, 1 - np.finfo(np.float64).eps)


def _bound_coefficient(
    value: float, design: FloatArray, y: BoolArray, p: FloatArray, groups: IntArray | None
) -> Score:
    """The last coefficient of a logistic regression with these fitted probabilities."""
    column = np.linalg.inv(design.T * (p * (1 - p)) @ design)[:, -1]
    variance, z = column[-1], Z
    if groups is not None:
        variance, z = compute_variance((y - p) * (design @ column), groups)
    reach = z * np.sqrt(variance)
    return _bound(value, value - reach, value + reach, np.inf, -np.inf)


def compare_losses(losses: Any, baseline: Any, groups: IntArray | None = None) -> tuple[str, float]:
    """Whether a model is better than the baseline by its losses, and the p-value of a paired test.

    Errors of independent rows are compared by McNemar's exact test, other losses by the sum of the
    differences, of groups if there are any, over the root of the sum of their squares.
    """
    less = np.asarray(baseline, dtype=np.float64) - losses
    sums = less if groups is None else np.bincount(groups, less)
    n, size = len(sums), float(np.sqrt(sums @ sums))
    p_value = float(2 * special.stdtr(n - 1, -abs(sums.sum()) / size)) if size and n > 1 else 1.0
    if groups is None and np.asarray(losses).dtype == bool and less.any():
        p_value = float(stats.binomtest(int((less < 0).sum()), np.count_nonzero(less)).pvalue)
    if less.sum() <= 0:
        return NO_BETTER, p_value
    return BETTER if p_value <= ALPHA else UNCLEAR, p_value


def compute_variance(influence: FloatArray, groups: IntArray) -> tuple[float, float]:
    """The variance of a sum of influence values over groups, and the quantile of its interval.

    >>> variance, _ = compute_variance(np.array([1.0, -1.0, 1.0, -1.0]), np.array([0, 1, 0, 1]))
    >>> print(variance)  # not 16 / 3: two groups of equal rows
    16.0
    """
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], influence)
    n = len(sums)
    if n < 2:
        return np.inf, Z
    quantile = float(special.stdtrit(n - 1, (1 + VERDICT_CONFIDENCE) / 2))
    return n / (n - 1) * float(sums @ sums), quantile


def _bound(value: Any, low: Any, high: Any, most: float = 1.0, least: float = 0.0) -> Score:
    """The interval, within the range of the metric and around the value despite rounding."""
    value = float(value)
    return Score(value, max(min(float(low), value), least), min(max(float(high), value), most))


def _bound_share(value: float, influence: FloatArray, groups: IntArray) -> Score:
    """A share with Wilson's interval for the effective number of samples."""
    variance, z = compute_variance(influence, groups)
    spread = value * (1 - value)
    n = spread / variance if spread > 0 and variance > 0 else len(np.unique(groups))
    return _bound(value, *compute_wilson(np.array(value * n), np.array(n), z))


def _compute_mean(
    losses: FloatArray, p: FloatArray, gap: FloatArray, most: float, groups: IntArray | None
) -> Score | None:
    """The mean of losses; `gap` is the difference between the losses of the two labels."""
    n = len(losses)
    if not n:
        return None
    least = 1 / (n + 2)  # n samples cannot show smaller probabilities
    chance = np.clip(p, least, 1 - least)
    implied = (chance * (1 - chance) * gap**2).mean()
    mean, variance, z = losses.mean(), losses.var(ddof=min(1, n - 1)), Z
    if groups is not None:
        variance, z = compute_variance((losses - mean) / np.sqrt(n), groups)
    reach = z * np.sqrt(max(variance, implied) / n)
    return _bound(mean, mean - reach, mean + reach, most)


def _compute_ratio(observed: Any, expected: Any, groups: IntArray | None) -> Score | None:
    """The sum of one column over that of another, with the normal interval of its logarithm."""
    total, other = float(observed.sum()), float(expected.sum())
    if not total or not other:
        return None
    ratio = total / other
    own = np.arange(len(observed)) if groups is None else groups
    variance, z = compute_variance((observed - ratio * expected) / total, own)
    reach = np.exp(min(z * np.sqrt(variance), 500.0))
    return _bound(ratio, ratio / reach, ratio * reach, np.inf)


@dataclass(frozen=True)
class IntervalCheck:
    """Whether a leaf's rate in a new environment agrees with its 95% prediction interval.

    Attributes
    ----------
    environment : label or None
        None where the rows have no environments and are treated as one.
    n_samples, n_positive : int
        Its rows in the leaf, and the positive ones among them.
    p_value : float
        The two-sided p-value of this number of positives, with the sampling error of these rows.
    is_inside : bool
        Whether the p-value is above 0.05.
    """

    environment: Any
    n_samples: int
    n_positive: int
    p_value: float
    is_inside: bool


@dataclass(frozen=True)
class LeafCalibration:
    """The rate of a leaf in training and in the new rows.

    Attributes
    ----------
    leaf, text : int, str
        Number of the leaf, from 1, and its conditions.
    n_training, expected : int, float or None
        Training rows in it, and the share of positive ones.
    n_samples, n_positive, observed, interval : int, int, float or None, pair of floats or None
        New rows, the positive ones among them, their share and its Wilson interval (95%).
    p_value, adjusted : float or None
        Of Fisher's exact test (Pearson's for large counts) that both rates are equal, raw and
        corrected for the number of leaves (Holm); None where one side has no row.
    has_moved : bool or None
        Whether the corrected p-value is at most 0.05.
    new_interval : pair of floats or None
        95% prediction interval of the rate in a new environment; None where it is undefined.
    interval_checks : tuple of IntervalCheck
        The rate in each new environment against that interval; empty where there is none.
    """

    leaf: int
    text: str
    n_training: int
    expected: float | None
    n_samples: int
    n_positive: int
    observed: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    adjusted: float | None
    has_moved: bool | None
    new_interval: tuple[float, float] | None = None
    interval_checks: tuple[IntervalCheck, ...] = ()


def calibrate(
    model: Tree,
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None = None,
    new: Sequence[tuple[int, Any]] = (),
    groups: IntArray | None = None,
) -> tuple[LeafCalibration, ...]:
    """The rate of each leaf in training and in these rows, which fall in `leaves`.

    `new` are number and label of the environments that did not occur in training. With groups,
    intervals and tests take the counts of these rows over the leaf's design effect.
    """
    places = np.zeros_like(leaves) if environments is None else environments
    training = np.array(model.leaves, dtype=np.int64)  # (leaf, label, environment)
    every = now = np.zeros((len(training), 2, int(places.max()) + 1), dtype=np.int64)
    np.add.at(now, (leaves, is_positive.astype(np.intp), places), 1)
    if groups is not None:
        sizes, rows = now.sum(axis=1), np.arange(len(leaves))
        rate = now[:, 1] / np.maximum(sizes, 1)
        within = number_clusters(groups, leaves, len(training), rows)
        squares = square_sums(is_positive - rate[leaves, places], within.codes, within.starts)
        hessians = (sizes * rate * (1 - rate)).sum(axis=1)
        effects = compute_design_effects(squares, hessians, sizes.sum(axis=1))
        now = np.rint(now / effects[:, np.newaxis, np.newaxis]).astype(np.int64)
    tables = np.stack((training.sum(axis=2), now.sum(axis=2)), axis=2)  # (leaf, label, old or now)
    is_tested = tables.sum(axis=1).min(axis=1) > 0
    p_values = make_test("fisher").compute_p_values(tables[is_tested])
    tested = iter(zip(p_values.tolist(), adjust_holm(p_values).tolist(), strict=True))
    n_rows = tables.sum(axis=1).T.tolist()  # (old or now, leaf)
    rates = [make_rates(k, n) for k, n in zip(tables[:, 1].T.tolist(), n_rows, strict=True)]
    expected = make_expectations(training)
    # (leaf, label, new environment)
    of_new, effective = (each[:, :, [number for number, _ in new]] for each in (every, now))
    sizes, positives = of_new.sum(axis=1), of_new[:, 1]
    surprises = compute_surprise(training, effective[:, 1], effective.sum(axis=1))
    found = []
    for i, (before, after) in enumerate(zip(*rates, strict=True)):
        p_value, adjusted = next(tested) if is_tested[i] else (None, None)
        has_moved = None if adjusted is None else adjusted <= ALPHA
        own = [each[i].tolist() for each in (sizes, positives, surprises)]
        checks = [
            IntervalCheck(label, n, k, p, p > ALPHA)
            for (_, label), n, k, p in zip(new, *own, strict=True)
            if not np.isnan(p)
        ]
        interval = after.rate_interval and tuple(after.rate_interval)
        old = i + 1, model.leaf_texts[i], before.n, before.rate
        n, k = int(every[i].sum()), int(every[i, 1].sum())
        observed = n, k, k / n if n else None, interval
        tests = p_value, adjusted, has_moved, expected[i].interval
        found.append(LeafCalibration(*old, *observed, *tests, tuple(checks)))
    return tuple(found)
