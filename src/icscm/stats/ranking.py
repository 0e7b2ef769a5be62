"""Area under the ROC curve: how well a score ranks rows with different outcomes.

The *placement* of a row is the share of rows of the other outcome that the score ranks on the
correct side of it, below a positive row and above a negative one; ties count half. The area under
the ROC curve (AUC) is the mean placement of the positive rows, and as well that of the negative
ones (DeLong, DeLong and Clarke-Pearson 1988): the probability that a positive row has the higher
score.
"""

from dataclasses import dataclass

import numpy as np

from icscm._types import Array, BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Placements:
    """Placements of the positive and of the negative rows, each in the order of the rows."""

    positive: FloatArray
    negative: FloatArray


def compute_placements(
    is_positive: BoolArray, scores: FloatArray, weights: Array | None = None
) -> Placements | None:
    """Compute the placement of each row; None if all rows have the same outcome.

    `weights` are how many rows each stands for, by default 1. Rows of weight 0 do not exist, but
    have a placement.
    """
    row_weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    values, codes = np.unique(scores, return_inverse=True)
    positive_weights = np.bincount(codes[is_positive], row_weights[is_positive], len(values))
    negative_weights = np.bincount(codes[~is_positive], row_weights[~is_positive], len(values))
    n_positive = positive_weights.sum()
    n_negative = negative_weights.sum()
    if not n_positive or not n_negative:
        return None

    # of each distinct score: the rows below it, and half of those that have it
    positives_below = np.cumsum(positive_weights) - positive_weights / 2
    negatives_below = np.cumsum(negative_weights) - negative_weights / 2
    return Placements(
        positive=negatives_below[codes[is_positive]] / n_negative,
        negative=1.0 - positives_below[codes[~is_positive]] / n_positive,
    )


def compute_auc(
    is_positive: BoolArray, scores: FloatArray, weights: Array | None = None
) -> float | None:
    """Compute the area under the ROC curve; None if all rows have the same outcome.

    `weights` are how many rows each stands for, by default 1.

    >>> compute_auc(np.array([False, False, True, True]), np.array([1.0, 2.0, 2.0, 3.0]))
    0.875
    """
    placements = compute_placements(is_positive, scores, weights)
    if placements is None:
        return None
    if weights is None:
        return float(placements.positive.mean())
    return float(np.average(placements.positive, weights=np.asarray(weights)[is_positive]))


def compute_auc_of_counts(counts: Array, scores: FloatArray) -> float | None:
    """Compute the area under the ROC curve of rows that were counted by score and outcome.

    `counts` has the axes (score, outcome) and may hold weights.

    >>> compute_auc_of_counts(np.array([[3, 1], [1, 3]]), np.array([0.2, 0.8]))
    0.75
    """
    is_positive = np.tile([False, True], len(scores))
    return compute_auc(is_positive, np.repeat(scores, 2), weights=np.ravel(counts))


def rank_with_ties(numbers: FloatArray) -> FloatArray:
    """Rank numbers from 0; those that are equal get the mean of their ranks.

    >>> rank_with_ties(np.array([5.0, 1.0, 5.0]))
    array([1.5, 0. , 1.5])
    """
    _, codes, n_equal = np.unique(numbers, return_inverse=True, return_counts=True)
    n_below = np.cumsum(n_equal) - n_equal
    mean_ranks = n_below + (n_equal - 1) / 2
    return np.asarray(mean_ranks[codes])
