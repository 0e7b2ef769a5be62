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
    """Compute probabilities (leaf, environment) of a tree's leaves (leaf, outcome, environment).

    A leaf has the log odds of its rate, with half a row of each outcome added so that they are
    finite, and each environment an intercept.
    """
    by_outcome = leaves.sum(axis=2) + 0.5
    rates = by_outcome[:, 1] / by_outcome.sum(axis=1)
    return fit_intercepts(special.logit(rates), leaves)


def fit_intercepts(log_odds: FloatArray, counts: CountArray) -> FloatArray:
    """Fit an intercept for each environment around known log odds by group.

    Returns the probabilities (group, environment), with which each environment expects as many
    positives as it has. `counts` has the axes (group, outcome, environment). In an environment of
    one outcome, which would have an infinite intercept, that outcome is nearly certain.
    """
    sizes = counts.sum(axis=1)
    positives = counts[:, 1]
    n_positive = positives.sum(axis=0)
    is_mixed = (n_positive > 0) & (n_positive < sizes.sum(axis=0))

    # A row of the regression is a group in an environment; it has no columns, only an offset.
    n_groups = len(counts)
    n_mixed = int(is_mixed.sum())
    fit = fit_logistic_regression(
        columns=np.empty((n_groups * n_mixed, 0)),
        positives=positives[:, is_mixed].ravel(),
        environments=np.tile(np.arange(n_mixed), n_groups),
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

    over groups, outcomes and environments, with n the `counts` (group, outcome, environment), P the
    probability of the outcome and R its rate in the environment. Terms of no rows are 0.
    """
    sizes = counts.sum(axis=(0, 1))
    rates = counts[:, 1].sum(axis=0) / np.maximum(sizes, 1)
    with np.errstate(all="ignore"):
        of_positives = counts[:, 1] * np.log(probabilities / rates)
        of_negatives = counts[:, 0] * np.log((1.0 - probabilities) / (1.0 - rates))
    return float(2.0 * (_sum_finite(of_positives) + _sum_finite(of_negatives)))


def _sum_finite(terms: FloatArray) -> float:
    return float(np.where(np.isfinite(terms), terms, 0.0).sum())
