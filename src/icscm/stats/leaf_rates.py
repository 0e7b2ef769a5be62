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
    positives as it has. `counts` has the axes (group, outcome, environment).

    The intercept of an environment of one outcome would be infinite. It is set to a large number,
    with which that outcome is nearly certain; all others are fitted.
    """
    n_negative, n_positive = counts.sum(axis=0)  # by environment
    has_both_outcomes = (n_positive > 0) & (n_negative > 0)

    intercepts = np.where(n_positive > 0, PURE_INTERCEPT, -PURE_INTERCEPT)
    intercepts[has_both_outcomes] = _fit_finite_intercepts(
        log_odds, counts[:, :, has_both_outcomes]
    )
    return np.asarray(special.expit(log_odds[:, np.newaxis] + intercepts))


def _fit_finite_intercepts(log_odds: FloatArray, counts: CountArray) -> FloatArray:
    """Fit an intercept for each environment, all of which have rows of both outcomes.

    It is a logistic regression without columns, of which an observation is a group in an
    environment, with the log odds of the group as its offset.
    """
    n_groups, _, n_environments = counts.shape
    by_group_and_environment = (n_groups, n_environments)
    environments = np.broadcast_to(np.arange(n_environments), by_group_and_environment)
    offsets = np.broadcast_to(log_odds[:, np.newaxis], by_group_and_environment)
    no_columns = np.empty((n_groups * n_environments, 0))
    fit = fit_logistic_regression(
        columns=no_columns,
        positives=counts[:, 1].ravel(),
        environments=environments.ravel(),
        n_environments=n_environments,
        sizes=counts.sum(axis=1).ravel(),
        offsets=offsets.ravel(),
    )
    assert fit is not None  # there are no slopes to be undetermined
    return fit.intercepts


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
