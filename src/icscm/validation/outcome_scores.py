"""Scores of predictions of an outcome of any kind: a score, of which more is better, and a loss.

    two classes        AUC                                          log loss
    several classes    mean AUC of each class against the others    log loss
    numbers            R2                                           RMSE

R2 is 1 less the ratio of the squared errors to those of the mean of the rows that are scored. Rows
may have weights w, of sum W. Intervals of 95 % are those of linearized estimates, as with groups in
`icscm.validation.scores`, which has more metrics of two classes: with the influence values

    a mean of losses       w (loss - mean) / W
    an AUC                 w (V - auc) / W_1 of a row of the class, w (V - auc) / W_0 of the others

where V is the placement of the row (`icscm.stats.ranking`), and W_1 and W_0 are the weights of the
rows of the class and of the others.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.stats.ranking import compute_placements
from icscm.tables.outcomes import OutcomeKind
from icscm.validation.cohort import Cohort
from icscm.validation.scores import TITLES, Score, compute_group_variance, score_ratio


@dataclass(frozen=True)
class ScoreKeys:
    """The names of the score and of the loss of a kind of outcome."""

    score: str
    loss: str


SCORES: Final = {
    OutcomeKind.TWO_CLASSES: ScoreKeys("auc", "log_loss"),
    OutcomeKind.SEVERAL_CLASSES: ScoreKeys("mean_auc", "log_loss"),
    OutcomeKind.NUMBER: ScoreKeys("r2", "rmse"),
}
# Names as printed of scores that two classes do not have.
OUTCOME_TITLES: Final = {**TITLES, "mean_auc": "Mean AUC", "r2": "R2", "rmse": "RMSE"}
# The probability of an outcome counts as at least this, so that its log loss is finite.
MIN_PROBABILITY: Final = float(np.finfo(np.float64).eps)


def score_rows(estimator: Any, rows: Cohort) -> dict[str, Score | None]:
    """Score a fitted estimator on rows; None where a score is undefined."""
    weights = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    groups = np.arange(len(rows)) if rows.group_codes is None else rows.group_codes
    if rows.kind is OutcomeKind.NUMBER:
        predicted = np.asarray(estimator.predict(rows.X), dtype=np.float64)
        return score_numbers(rows.y, predicted, weights=weights, groups=groups)

    keys = SCORES[rows.kind]
    is_of_class = rows.y[:, np.newaxis] == rows.classes
    ranking = rank_classes(estimator, rows)
    if rows.kind is OutcomeKind.TWO_CLASSES:  # either class ranks the rows alike
        score = score_ranking(is_of_class[:, 1:], ranking[:, 1:], weights=weights, groups=groups)
    else:
        score = score_ranking(is_of_class, ranking, weights=weights, groups=groups)
    loss = None
    if hasattr(estimator, "predict_proba"):
        loss = score_log_loss(is_of_class, ranking, weights=weights, groups=groups)
    return {keys.score: score, keys.loss: loss}


def rank_classes(estimator: Any, rows: Cohort) -> FloatArray:
    """Return by (row, class) the probability or, of estimators without any, the decision value.

    It is 0 for a class that the estimator has not seen in training.
    """
    by_known_class: FloatArray
    if hasattr(estimator, "predict_proba"):
        by_known_class = np.asarray(estimator.predict_proba(rows.X))
    else:
        by_known_class = np.asarray(estimator.decision_function(rows.X))
        if by_known_class.ndim == 1:  # of two classes there is one value, that of the second
            by_known_class = np.column_stack((-by_known_class, by_known_class))

    ranking = np.zeros((len(rows), len(rows.classes)))
    known_classes = np.asarray(estimator.classes_).tolist()
    for position, label in enumerate(rows.classes.tolist()):
        if label in known_classes:
            ranking[:, position] = by_known_class[:, known_classes.index(label)]
    return ranking


def score_numbers(
    y: FloatArray, predicted: FloatArray, *, weights: FloatArray, groups: IntArray
) -> dict[str, Score | None]:
    """Compute R2 and RMSE; without spread of the outcome there is no R2."""
    squares = (y - predicted) ** 2
    squares_of_mean = (y - np.average(y, weights=weights)) ** 2
    r2 = None
    ratio = score_ratio(weights * squares, weights * squares_of_mean, groups)
    if ratio is not None:
        r2 = Score(1.0 - ratio.value, low=1.0 - ratio.high, high=1.0 - ratio.low)

    mean_square = bound_mean(squares, weights=weights, groups=groups)
    root_ends = (mean_square.value, max(mean_square.low, 0.0), mean_square.high)
    return {"r2": r2, "rmse": Score(*(float(end**0.5) for end in root_ends))}


def score_log_loss(
    is_of_class: BoolArray, probabilities: FloatArray, *, weights: FloatArray, groups: IntArray
) -> Score:
    """Compute the mean of -log(probability of the row's own class), both by (row, class)."""
    own_probabilities = np.where(is_of_class, probabilities, 0.0).sum(axis=1)
    losses = -np.log(np.maximum(own_probabilities, MIN_PROBABILITY))
    return bound_mean(losses, weights=weights, groups=groups)


def bound_mean(values: FloatArray, *, weights: FloatArray, groups: IntArray) -> Score:
    """Return the mean of values with its interval."""
    mean = float(np.average(values, weights=weights))
    influence = weights * (values - mean) / weights.sum()
    half_width = compute_group_variance(influence, groups).half_width
    return Score(mean, low=mean - half_width, high=mean + half_width)


def score_ranking(
    is_of_class: BoolArray, ranking: FloatArray, *, weights: FloatArray, groups: IntArray
) -> Score | None:
    """Compute the mean AUC over classes; None if no class has rows and others without it."""
    aucs = []
    influences = []
    for is_positive, values in zip(is_of_class.T, ranking.T, strict=True):
        placements = compute_placements(is_positive, values, weights)
        if placements is None:
            continue
        W_1 = weights[is_positive].sum()
        W_0 = weights[~is_positive].sum()
        auc = float(np.average(placements.positive, weights=weights[is_positive]))
        influence = np.empty(len(values))
        influence[is_positive] = weights[is_positive] * (placements.positive - auc) / W_1
        influence[~is_positive] = weights[~is_positive] * (placements.negative - auc) / W_0
        aucs.append(auc)
        influences.append(influence)
    if not aucs:
        return None

    mean = float(np.mean(aucs))
    influence_on_mean = np.mean(influences, axis=0)
    half_width = compute_group_variance(influence_on_mean, groups).half_width
    return Score(mean, low=max(mean - half_width, 0.0), high=min(mean + half_width, 1.0))
