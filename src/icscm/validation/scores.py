"""Metrics of predictions, each with its 95% interval.

A metric takes the true outcomes (True or 1 is positive) and either the predicted classes or the
probabilities of the positive class; it is None where it is undefined. Without groups all rows are
independent; groups are rows that belong together, such as those of a patient.

Intervals of independent rows
-----------------------------
- Shares (error, sensitivity, specificity, PPV, NPV): Wilson's score interval (Wilson 1927).
- Balanced accuracy, the mean of two independent shares: the distances to their Wilson bounds add up
  like standard errors, as in Newcombe's interval of a difference (Newcombe 1998).
- AUC: DeLong's interval (DeLong, DeLong and Clarke-Pearson 1988) on the scale of log odds. Where
  his variance vanishes or is undefined (all pairs in order, one row of a class), Wilson's with as
  many rows as the rarer class has, since the variance of an AUC is at most
  auc (1 - auc) / min(positives, negatives).
- Brier score and log loss, means over rows: the normal interval. The variance is the observed one,
  or the one that the probabilities imply where that is larger: a few rows with the expected outcome
  say little about losses that are rare and large.
- Calibration intercept and slope, from the log odds x of the probabilities: the intercept a of
  logit P(y) = a + x (calibration in the large, 0 at best; above it risks are too low) and the slope
  b of logit P(y) = a + b x (1 at best; below it predictions are too extreme), as in Cox (1958).
  Normal interval of the inverse information.
- Ratios (observed over expected, and the skill, which is 1 less a ratio of Brier scores): the
  normal interval of the linearized logarithm.

Intervals with groups
---------------------
An estimate is linearized, that is written as a sum of *influence values*, one a row, such as
(hit - share) / n. With U_g the sum of those of group g, of G groups,

    variance = G / (G - 1) sum_g U_g^2                   (Liang and Zeger 1986)

which for the AUC, with DeLong's placements, is Obuchowski's (1997). Student's t with G - 1 degrees
of freedom replaces the normal quantile. Wilson's interval then has the effective number of rows
share (1 - share) / variance; where the variance vanishes, a group counts as one row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from icscm._constants import VERDICT_CONFIDENCE
from icscm._lazy import optimize, special, stats
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.stats.design_effects import estimate_variances
from icscm.stats.logistic import fit_logistic_regression
from icscm.stats.ranking import Placements, compute_placements
from icscm.stats.verdicts import compute_wilson

# Level of the tests of differences.
ALPHA = 0.05
# Verdicts on a model against the majority-class baseline.
BETTER = "better"
UNCLEAR = "not shown to be better"
NO_BETTER = "no better"
# The normal quantile of a 95% interval.
Z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
# Log ratios beyond this would overflow.
MAX_LOG_RATIO = 500.0
# Of the search for the calibration intercept: rounding may put the root on an end.
BRACKET_MARGIN = 1e-3

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
# Metrics computed from probabilities; the others use predicted classes.
PROBABILITY_METRICS = "auc", "brier", "log_loss", "slope", "intercept", "observed_expected"


@dataclass(frozen=True)
class Score:
    """The value of a metric and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """Intercept (slope fixed at 1) and slope of calibration, each None where it is undefined."""

    intercept: Score | None
    slope: Score | None


@dataclass(frozen=True)
class GroupVariance:
    """The variance of an estimate over groups, and Student's quantile of its 95% interval."""

    variance: float
    quantile: float

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return self.quantile * float(np.sqrt(self.variance))


@dataclass(frozen=True)
class LossComparison:
    """The verdict on a model against the baseline, and the p-value of a paired test."""

    verdict: str
    p_value: float


def compute_scores(
    y: Any,
    predicted: Any,
    probability: Any = None,
    *,
    groups: IntArray | None = None,
    rate: float | None = None,
) -> dict[str, Score | None]:
    """Compute every metric, by name; those of probabilities are None without them.

    `groups` are numbers of the rows that belong together. With the `rate` of positive rows in
    training there is also the `skill`: by which share the Brier score is below that of this rate as
    the probability of every row.

    >>> scores = compute_scores([0, 1, 1], [0, 1, 0])
    >>> print(scores["npv"].value, scores["auc"])
    0.5 None
    """
    is_positive = np.asarray(y).astype(bool)
    is_predicted = np.asarray(predicted).astype(bool)
    scores = _score_classes(is_positive, is_predicted, groups)
    if probability is None:
        scores |= dict.fromkeys(PROBABILITY_METRICS)
        if rate is not None:
            scores["skill"] = None
        return scores

    p = np.asarray(probability, dtype=np.float64)
    scores |= _score_probabilities(is_positive, p, groups)
    if rate is not None:
        scores["skill"] = _score_skill(is_positive, p, groups, rate=rate)
    return scores


def _score_classes(
    is_positive: BoolArray, is_predicted: BoolArray, groups: IntArray | None
) -> dict[str, Score | None]:
    """Compute the metrics of predicted classes, each a share of hits among some of the rows."""
    every_row = np.ones(len(is_positive), dtype=np.bool_)
    is_wrong = is_positive != is_predicted
    sensitivity = _score_share(is_predicted, among=is_positive, groups=groups)
    specificity = _score_share(~is_predicted, among=~is_positive, groups=groups)
    return {
        "error": _score_share(is_wrong, among=every_row, groups=groups),
        "balanced_accuracy": _score_balanced_accuracy(
            sensitivity, specificity, is_positive, is_predicted, groups
        ),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": _score_share(is_positive, among=is_predicted, groups=groups),
        "npv": _score_share(~is_positive, among=~is_predicted, groups=groups),
    }


def _score_share(is_hit: BoolArray, *, among: BoolArray, groups: IntArray | None) -> Score | None:
    """Compute the share of hits among the rows of a mask; None without any.

    Influence of a row on it:  (hit - share) / n
    """
    hits = is_hit[among]
    n = len(hits)
    if n == 0:
        return None
    n_hits = int(hits.sum())
    share = n_hits / n
    if groups is None:
        return _bound_by_wilson(share, n_hits=n_hits, n_rows=n, quantile=Z)
    influence = (hits - share) / n
    return _bound_share(share, influence, groups[among])


def _score_balanced_accuracy(
    sensitivity: Score | None,
    specificity: Score | None,
    is_positive: BoolArray,
    is_predicted: BoolArray,
    groups: IntArray | None,
) -> Score | None:
    """Compute the mean of sensitivity and specificity; None unless both are defined."""
    if sensitivity is None or specificity is None:
        return None
    if groups is None:
        return _average_shares(sensitivity, specificity)
    is_right = is_positive == is_predicted
    return _average_shares_of_groups(sensitivity, specificity, is_positive, is_right, groups)


def _average_shares(first: Score, second: Score) -> Score:
    """Average two independent shares; distances to their bounds add up like standard errors."""
    mean = (first.value + second.value) / 2
    below = np.hypot(first.value - first.low, second.value - second.low)
    above = np.hypot(first.high - first.value, second.high - second.value)
    return _bound(mean, mean - below / 2, mean + above / 2)


def _average_shares_of_groups(
    sensitivity: Score,
    specificity: Score,
    is_positive: BoolArray,
    is_right: BoolArray,
    groups: IntArray,
) -> Score:
    """Average sensitivity and specificity, of which a group may contribute to both.

    Influence of a row of class c:  (right - share_c) / (2 n_c)
    """
    mean = (sensitivity.value + specificity.value) / 2
    share_of_class = np.where(is_positive, sensitivity.value, specificity.value)
    size_of_class = np.where(is_positive, is_positive.sum(), (~is_positive).sum())
    influence = (is_right - share_of_class) / (2 * size_of_class)
    return _bound_share(mean, influence, groups)


def _score_probabilities(
    is_positive: BoolArray, p: FloatArray, groups: IntArray | None
) -> dict[str, Score | None]:
    """Compute the metrics of probabilities.

    Brier score: mean of (y - p)^2; log loss: mean of -log(p) if y, else -log(1 - p).
    """
    brier_losses = (is_positive - p) ** 2
    # losses of a negative row less those of a positive one:  p^2 - (1 - p)^2
    brier_gap = 2 * p - 1
    brier = _score_mean_loss(brier_losses, p, gap=brier_gap, highest=1.0, groups=groups)

    inner_p = _clip_probability(p)  # strictly between 0 and 1, so that losses are finite
    log_losses = -np.log(np.where(is_positive, inner_p, 1 - inner_p))
    # the same of log losses:  -log(1 - p) + log(p)
    log_gap = special.logit(inner_p)
    log_loss = _score_mean_loss(log_losses, inner_p, gap=log_gap, highest=np.inf, groups=groups)

    calibration = score_calibration(is_positive, p, groups)
    return {
        "auc": score_auc(is_positive, p, groups),
        "brier": brier,
        "log_loss": log_loss,
        "slope": calibration.slope,
        "intercept": calibration.intercept,
        "observed_expected": score_ratio(is_positive, p, groups),
    }


def _score_skill(
    is_positive: BoolArray, p: FloatArray, groups: IntArray | None, *, rate: float
) -> Score | None:
    """Compute 1 - (Brier score) / (Brier score of the rate of training)."""
    losses = (is_positive - p) ** 2
    losses_of_rate = (is_positive - rate) ** 2
    ratio = score_ratio(losses, losses_of_rate, groups)
    if ratio is None:
        return None
    return Score(1 - ratio.value, low=1 - ratio.high, high=1 - ratio.low)


def score_auc(y: Any, ranking: Any, groups: IntArray | None = None) -> Score | None:
    """Compute the area under the ROC curve of probabilities or decision values; ties count half.

    Its interval is made on the scale of log odds, where an AUC near 1 has a symmetric one; where
    there is no variance to make it of, it is Wilson's (see the docstring of the module).

    >>> print(score_auc([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).value)
    0.75
    """
    is_positive = np.asarray(y).astype(bool)
    placements = compute_placements(is_positive, np.asarray(ranking, dtype=np.float64))
    if placements is None:
        return None
    auc = float(placements.positive.mean())
    if groups is None:
        spread = _measure_auc_spread_of_rows(placements)
    else:
        spread = _measure_auc_spread_of_groups(auc, placements, is_positive, groups)

    if not 0 < auc < 1 or spread.variance <= 0:
        return _bound_by_wilson(
            auc,
            n_hits=auc * spread.n_rarer,
            n_rows=spread.n_rarer,
            quantile=spread.quantile,
        )

    # the error of the log odds is that of the AUC times their derivative, 1 / (auc (1 - auc))
    log_odds = special.logit(auc)
    half_width = spread.quantile * np.sqrt(spread.variance) / (auc * (1 - auc))
    return _bound(auc, special.expit(log_odds - half_width), special.expit(log_odds + half_width))


@dataclass(frozen=True)
class _AucSpread:
    """What the interval of an AUC needs.

    `n_rarer` is how many rows, or groups, the rarer class has; `quantile` is the normal one, or
    Student's over groups. The variance is 0 where a class has a single row.
    """

    variance: float
    quantile: float
    n_rarer: int


def _measure_auc_spread_of_rows(placements: Placements) -> _AucSpread:
    """Estimate the variance of an AUC from the placements V and W of both classes.

    With V of the n1 positive and W of the n0 negative rows (DeLong and others 1988)

        variance = var(V) / n1 + var(W) / n0
    """
    V = placements.positive
    W = placements.negative
    n_rarer = min(len(V), len(W))
    if n_rarer < 2:
        return _AucSpread(variance=0.0, quantile=Z, n_rarer=n_rarer)
    variance = V.var(ddof=1) / len(V) + W.var(ddof=1) / len(W)
    return _AucSpread(variance=float(variance), quantile=Z, n_rarer=n_rarer)


def _measure_auc_spread_of_groups(
    auc: float, placements: Placements, is_positive: BoolArray, groups: IntArray
) -> _AucSpread:
    """Estimate the variance of an AUC over groups (Obuchowski 1997).

    The influence of a positive row is (V - auc) / n1, of a negative one (W - auc) / n0, with the
    placements V and W.
    """
    V = placements.positive
    W = placements.negative
    influence = np.empty(len(is_positive))
    influence[is_positive] = (V - auc) / len(V)
    influence[~is_positive] = (W - auc) / len(W)
    over_groups = compute_group_variance(influence, groups)

    n_positive_groups = len(np.unique(groups[is_positive]))
    n_negative_groups = len(np.unique(groups[~is_positive]))
    return _AucSpread(
        variance=over_groups.variance,
        quantile=over_groups.quantile,
        n_rarer=min(n_positive_groups, n_negative_groups),
    )


def score_calibration(y: Any, probability: Any, groups: IntArray | None = None) -> Calibration:
    """Compute intercept and slope of calibration, from the log odds of the probabilities.

    Neither is defined with one class, nor the slope where the classes are separated or all
    probabilities are equal.

    >>> truth, probability = [0, 0, 1, 0, 1, 1], [0.3, 0.4, 0.4, 0.6, 0.6, 0.7]
    >>> calibration = score_calibration(truth, probability)
    >>> print(f"{calibration.intercept.value:.2f} {calibration.slope.value:.2f}")
    0.00 1.86
    """
    is_positive = np.asarray(y).astype(bool)
    log_odds = special.logit(_clip_probability(np.asarray(probability, dtype=np.float64)))
    if is_positive.all() or not is_positive.any():
        return Calibration(intercept=None, slope=None)
    return Calibration(
        intercept=_score_calibration_intercept(is_positive, log_odds, groups),
        slope=_score_calibration_slope(is_positive, log_odds, groups),
    )


def _score_calibration_intercept(
    is_positive: BoolArray, log_odds: FloatArray, groups: IntArray | None
) -> Score:
    """Solve sum expit(a + x) = sum y for the intercept a, with the log odds x as offset.

    If all rows had the same x, a would be what their rate's log odds have beyond it; so the root is
    between these differences for the largest and the smallest x.
    """
    n_positive = int(is_positive.sum())
    log_odds_of_rate = special.logit(is_positive.mean())
    lowest = log_odds_of_rate - log_odds.max() - BRACKET_MARGIN
    highest = log_odds_of_rate - log_odds.min() + BRACKET_MARGIN

    def compute_excess(intercept: float) -> float:
        return float(special.expit(intercept + log_odds).sum() - n_positive)

    intercept = optimize.brentq(compute_excess, lowest, highest)
    return _bound_coefficient(
        intercept,
        design=np.ones((len(log_odds), 1)),
        is_positive=is_positive,
        p=special.expit(intercept + log_odds),
        groups=groups,
    )


def _score_calibration_slope(
    is_positive: BoolArray, log_odds: FloatArray, groups: IntArray | None
) -> Score | None:
    """Fit the slope b of logit P(y) = a + b x; None where the outcomes are separated by x."""
    positive = log_odds[is_positive]
    negative = log_odds[~is_positive]
    is_separated = positive.min() >= negative.max() or negative.min() >= positive.max()
    if is_separated:  # the likelihood would grow with the slope for ever
        return None

    # centred and scaled, so that few steps are needed whatever the spread of the predictions
    spread = log_odds.std()
    centred = log_odds - log_odds.mean()
    fit = fit_logistic_regression(
        centred[:, np.newaxis] / spread,
        is_positive,
        np.zeros(len(centred), dtype=np.intp),
        n_environments=1,
        initial_slope=1.0,
    )
    if fit is None:
        return None
    slope = float(fit.slopes[0]) / spread
    return _bound_coefficient(
        slope,
        design=np.column_stack((np.ones(len(centred)), centred)),
        is_positive=is_positive,
        p=special.expit(fit.intercepts[0] + slope * centred),
        groups=groups,
    )


def _bound_coefficient(
    value: float,
    *,
    design: FloatArray,
    is_positive: BoolArray,
    p: FloatArray,
    groups: IntArray | None,
) -> Score:
    """Bound the last coefficient of a logistic regression with fitted probabilities p.

    Of a design with the row x_i for each row of the data, the information is
    I = sum p_i (1 - p_i) x_i x_i'. The variance of the coefficient is the last entry of I^-1, and
    the influence of row i on it is (y_i - p_i) times the last entry of I^-1 x_i.
    """
    information = design.T * (p * (1 - p)) @ design
    last_column_of_inverse = np.linalg.inv(information)[:, -1]
    if groups is None:
        half_width = Z * np.sqrt(last_column_of_inverse[-1])
    else:
        influence = (is_positive - p) * (design @ last_column_of_inverse)
        half_width = compute_group_variance(influence, groups).half_width
    return _bound(value, value - half_width, value + half_width, lowest=-np.inf, highest=np.inf)


def _score_mean_loss(
    losses: FloatArray,
    p: FloatArray,
    *,
    gap: FloatArray,
    highest: float,
    groups: IntArray | None,
) -> Score | None:
    """Compute the mean of losses; None without rows.

    `gap` is the difference between the losses of the two outcomes. The loss of a row that is
    positive with probability p has the variance  p (1 - p) gap^2.  This implied variance is used
    where it is larger than the observed one: a few rows that all have the expected outcome do not
    show how large a loss can be.
    """
    n = len(losses)
    if n == 0:
        return None
    mean = losses.mean()
    if groups is None:
        observed_variance = losses.var(ddof=min(1, n - 1))
        quantile = Z
    else:
        # n times the variance of the mean, as if it were that of a row
        over_groups = compute_group_variance((losses - mean) / np.sqrt(n), groups)
        observed_variance = over_groups.variance
        quantile = over_groups.quantile

    # n rows cannot show smaller probabilities than this
    smallest_p = 1 / (n + 2)
    shown_p = np.clip(p, smallest_p, 1 - smallest_p)
    implied_variance = (shown_p * (1 - shown_p) * gap**2).mean()

    half_width = quantile * np.sqrt(max(observed_variance, implied_variance) / n)
    return _bound(mean, mean - half_width, mean + half_width, highest=highest)


def score_ratio(numerators: Any, denominators: Any, groups: IntArray | None) -> Score | None:
    """Compute the ratio of two sums over rows, with the normal interval of its logarithm.

    Influence of a row on the logarithm:  (numerator - ratio denominator) / (sum of numerators)
    """
    numerator = float(numerators.sum())
    denominator = float(denominators.sum())
    if not numerator or not denominator:
        return None
    ratio = numerator / denominator
    influence = (numerators - ratio * denominators) / numerator
    if groups is None:  # each row is a group of its own
        groups = np.arange(len(numerators))
    over_groups = compute_group_variance(influence, groups)
    factor = np.exp(min(over_groups.half_width, MAX_LOG_RATIO))
    return _bound(ratio, ratio / factor, ratio * factor, highest=np.inf)


def compute_group_variance(influence: FloatArray, groups: IntArray) -> GroupVariance:
    """Compute G / (G - 1) sum_g U_g^2, with U_g the sum of the influence values of group g.

    >>> influence = np.array([1.0, -1.0, 1.0, -1.0])
    >>> two_groups = compute_group_variance(influence, np.array([0, 1, 0, 1]))
    >>> print(two_groups.variance)  # not 16 / 3: the rows of a group are equal
    16.0
    """
    _, group_numbers = np.unique(groups, return_inverse=True)
    sums = np.bincount(group_numbers, influence)
    n_groups = len(sums)
    if n_groups < 2:
        return GroupVariance(variance=np.inf, quantile=Z)
    return GroupVariance(
        variance=float(estimate_variances(sums @ sums, n_groups)),
        quantile=float(special.stdtrit(n_groups - 1, (1 + VERDICT_CONFIDENCE) / 2)),
    )


def compare_losses(
    losses: Any, baseline_losses: Any, groups: IntArray | None = None
) -> LossComparison:
    """Decide whether a model is better than the baseline by the losses of the same rows.

    Errors of independent rows are compared by McNemar's exact test (1947). Other losses, or those
    of groups, by Student's t with n - 1 degrees of freedom of

        t = sum_g D_g / sqrt(sum_g D_g^2)

    with D_g the difference of the losses, summed over the rows of a group.
    """
    gains = np.asarray(baseline_losses, dtype=np.float64) - losses
    are_errors = np.asarray(losses).dtype == bool
    if groups is not None:
        gains_of_groups = np.bincount(groups, gains).astype(np.float64)
        p_value = _compute_paired_p_value(gains_of_groups)
    elif are_errors and gains.any():
        n_worse = int((gains < 0).sum())
        n_different = np.count_nonzero(gains)
        p_value = float(stats.binomtest(n_worse, n_different).pvalue)
    else:
        p_value = _compute_paired_p_value(gains)

    if gains.sum() <= 0:
        return LossComparison(NO_BETTER, p_value)
    if p_value <= ALPHA:
        return LossComparison(BETTER, p_value)
    return LossComparison(UNCLEAR, p_value)


def _compute_paired_p_value(gains: FloatArray) -> float:
    """Return the two-sided p-value of the sum of independent gains; 1 where it has no spread.

    t = sum D / sqrt(sum D^2) has n - 1 degrees of freedom for the gains D of n groups or rows.
    """
    n = len(gains)
    root_of_squares = float(np.sqrt(gains @ gains))
    if not root_of_squares or n < 2:
        return 1.0
    t = gains.sum() / root_of_squares
    return float(2 * special.stdtr(n - 1, -abs(t)))


def _clip_probability(p: FloatArray) -> FloatArray:
    """Replace 0 and 1 by the nearest probabilities that have finite log odds, as scikit-learn."""
    smallest = np.finfo(np.float64).eps
    return np.clip(p, smallest, 1 - smallest)


def _bound_share(share: float, influence: FloatArray, groups: IntArray) -> Score:
    """Bound a share by Wilson's interval for the effective number of rows.

    So many independent rows, share (1 - share) / variance, would give the share the same variance.
    Where it has none, a group counts as one row.
    """
    over_groups = compute_group_variance(influence, groups)
    variance_of_row = share * (1 - share)
    n_effective: float = len(np.unique(groups))
    if variance_of_row > 0 and over_groups.variance > 0:
        n_effective = variance_of_row / over_groups.variance
    return _bound_by_wilson(
        share, n_hits=share * n_effective, n_rows=n_effective, quantile=over_groups.quantile
    )


def _bound_by_wilson(share: float, *, n_hits: float, n_rows: float, quantile: float) -> Score:
    """Bound a share of rows, or of an effective number of them, by Wilson's score interval."""
    low, high = compute_wilson(np.array(n_hits), np.array(n_rows), quantile)
    return _bound(share, low, high)


def _bound(value: Any, low: Any, high: Any, *, lowest: float = 0.0, highest: float = 1.0) -> Score:
    """Return the interval within the range of the metric, and around the value despite rounding."""
    value = float(value)
    return Score(
        value,
        low=max(min(float(low), value), lowest),
        high=min(max(float(high), value), highest),
    )
