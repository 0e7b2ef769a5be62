"""Probabilities of the leaves of a tree in each environment, and the deviance that they explain.

Environments may differ in their rate of the outcome; only effects must not. So the tree's log odds,
one for each leaf, get an intercept for each environment.
"""

from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import CountArray, FloatArray
from icscm.stats.logistic import fit_logistic_regression

# Intercept of an environment all of whose rows are positive; its negative if none is.
PURE_INTERCEPT: Final = 30.0


def predict_leaves(leaves: CountArray) -> FloatArray:
    """Compute probabilities (leaf, environment) from a tree's leaves (leaf, label, environment).

    The log odds of a leaf's rate, with half a row of each label added, and an intercept for each
    environment.
    """
    by_label = leaves.sum(axis=2) + 0.5
    rates = by_label[:, 1] / by_label.sum(axis=1)
    return fit_intercepts(special.logit(rates), leaves)


def fit_intercepts(log_odds: FloatArray, counts: CountArray) -> FloatArray:
    """Fit an intercept for each environment around known log odds by group.

    Returns the probabilities (group, environment). `counts` has the axes (group, label,
    environment): each environment expects as many positives as it has. In an environment of one
    label, which would have an infinite intercept, that label is nearly certain.
    """
    sizes = counts.sum(axis=1)
    positives = counts[:, 1]
    n_positive = positives.sum(axis=0)
    is_mixed = (n_positive > 0) & (n_positive < sizes.sum(axis=0))

    # A row of the regression is a group in an environment.
    n_groups = len(counts)
    n_mixed = int(is_mixed.sum())
    fit = fit_logistic_regression(
        np.empty((n_groups * n_mixed, 0)),
        positives[:, is_mixed].ravel(),
        np.tile(np.arange(n_mixed), n_groups),
        n_environments=n_mixed,
        sizes=sizes[:, is_mixed].ravel(),
        offsets=np.repeat(log_odds, n_mixed),
    )
    assert fit is not None  # there are no slopes to be undetermined

    intercepts = np.where(n_positive > 0, PURE_INTERCEPT, -PURE_INTERCEPT)
    intercepts[is_mixed] = fit.intercepts
    return np.asarray(special.expit(log_odds[:, np.newaxis] + intercepts))


def compute_explained_deviance(counts: CountArray, probabilities: FloatArray) -> float:
    """Compute the deviance that probabilities (group, environment) explain within environments.

        2 sum n log(P / R)

    over groups, labels and environments, with n the `counts` (group, label, environment), P the
    probability of the label and R its rate in the environment.
    """
    sizes = counts.sum(axis=(0, 1))
    rates = counts[:, 1].sum(axis=0) / np.maximum(sizes, 1)
    with np.errstate(all="ignore"):
        of_positives = counts[:, 1] * np.log(probabilities / rates)
        of_negatives = counts[:, 0] * np.log((1.0 - probabilities) / (1.0 - rates))
    gains = [np.where(np.isfinite(each), each, 0.0).sum() for each in (of_positives, of_negatives)]
    return float(2.0 * sum(gains))
