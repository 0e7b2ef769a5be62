"""Conditional heterogeneity: how much the effect of a cut differs by environment, given a model.

A model with an intercept for each environment leaves residuals. With the gradient g (label less
probability) and the hessian h (probability times its complement) of the rows, the one-step effect
of a cut on the residual log odds of environment e is

    d_e = sum g / sum h  where the rule is false, less the same where it is true
    w_e = h_1 h_0 / (h_1 + h_0)          its weight, the inverse of its variance
    Q = sum w_e (d_e - mean)^2           Cochran's statistic
    tau^2 = max(0, Q - dof - 3 sqrt(2 dof)) / (W - sum w_e^2 / W)

with W = sum w_e (DerSimonian and Laird 1986, beyond three standard deviations of chance).
tau^2 W is a deviance: what the environments' own effects would explain. All of it follows from the
sums of g and h by bin and environment, over the leaves of a tree or over rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import Array, CountArray, FloatArray, IntArray
from icscm.stats.independence import compute_upper_tail
from icscm.stats.logistic import fit_logistic_regression
from icscm.stats.random_effects import estimate_tau_squared

# Heterogeneity counts from so many standard deviations of chance on.
_CHANCE: Final = 3.0
# Intercept of an environment all of whose rows are positive; its negative if none is.
_PURE_INTERCEPT: Final = 30.0
# Least weight of an environment (rows times p (1 - p)) that has information on an effect.
_LEAST_WEIGHT: Final = 1.0
# Rounds of fitting bins and environments in turn.
_MAX_ROUNDS: Final = 50


@dataclass(frozen=True)
class Heterogeneity:
    """Effects of cuts by environment (cut, environment), and how much they differ, by cut.

    `effects` are NaN, and `weights` 0, where an environment has no information. `deviance` is the
    heterogeneity tau^2 W.
    """

    effects: FloatArray
    weights: FloatArray
    statistic: FloatArray
    dof: IntArray
    tau_squared: FloatArray

    @cached_property
    def deviance(self) -> FloatArray:
        """Heterogeneity beyond chance as a deviance."""
        return np.asarray(self.tau_squared * self.weights.sum(axis=1))

    @cached_property
    def p_values(self) -> FloatArray:
        """The chance of such differences between equal effects."""
        return compute_upper_tail(self.statistic, self.dof)

    @cached_property
    def i2(self) -> FloatArray:
        """Share of the variance between the environments' effects that is not chance."""
        beyond = np.maximum(self.statistic - self.dof, 0.0)
        return beyond / np.maximum(self.statistic, 1e-300)

    @cached_property
    def mean(self) -> FloatArray:
        """The effect common to all environments."""
        return _average(np.nan_to_num(self.effects), self.weights)


def measure_heterogeneity(halves: Array, totals: Array) -> Heterogeneity:
    """The effects of cuts, given sums of g and h (cut, 2, environment) where each is false.

    `totals` (2, environment) are the sums over all rows.

    >>> halves = np.array([[[4.0, -4.0, 4.0], [10.0, 10.0, 10.0]]])
    >>> found = measure_heterogeneity(halves, np.array([[0.0, 0.0, 0.0], [20.0, 20.0, 20.0]]))
    >>> found.effects.round(2).tolist(), found.statistic.round(2).tolist()
    ([[0.8, -0.8, 0.8]], [8.53])
    """
    g1, h1 = halves[:, 0], halves[:, 1]
    g0, h0 = totals[0] - g1, totals[1] - h1
    with np.errstate(all="ignore"):
        weights = h1 * h0 / (h1 + h0)
        effects = g1 / h1 - g0 / h0
    return compare_effects(effects, np.where((h1 > 0) & (h0 > 0), weights, 0.0))


def compare_effects(effects: FloatArray, weights: FloatArray) -> Heterogeneity:
    """How much effects (cut, environment) differ, given the inverses of their variances.

    Effects of small or no weight are ignored.
    """
    is_known = weights >= _LEAST_WEIGHT
    effects, weights = np.where(is_known, effects, np.nan), np.where(is_known, weights, 0.0)
    known = np.nan_to_num(effects)
    off = known - _average(known, weights)[:, np.newaxis]
    statistic = (weights * off**2).sum(axis=1)
    dof = np.maximum(np.count_nonzero(weights, axis=1) - 1, 0)
    excess = statistic - dof - _CHANCE * np.sqrt(2.0 * dof)
    tau_squared = estimate_tau_squared(excess, dof, weights)
    return Heterogeneity(effects, weights, statistic, dof, tau_squared)


def _average(values: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray((weights * values).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-300))


def fit_shape(sums: Array, prior: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """The common effect of each bin, and each environment's level, of one-step effects g / h.

    From sums of g and h (feature, bin, 2, environment), fitted in turn; `prior` is added to the
    hessian of each bin, so that rare ones have small effects.
    """
    g, h = sums[:, :, 0], sums[:, :, 1]
    by_bin, by_environment = h.sum(axis=2) + prior, h.sum(axis=1)
    levels = np.zeros((len(sums), 1, sums.shape[3]))
    shape = np.zeros((*sums.shape[:2], 1))
    own: Array = np.arange(len(sums))  # of each feature by itself, whatever its block
    for _ in range(_MAX_ROUNDS):
        before = shape[own]
        off = (g[own] - h[own] * levels[own]).sum(axis=2)
        shape[own] = (off / np.maximum(by_bin[own], 1e-12))[:, :, np.newaxis]
        off = (g[own] - h[own] * shape[own]).sum(axis=1)
        levels[own] = (off / np.maximum(by_environment[own], 1e-12))[:, np.newaxis]
        own = own[np.abs(shape[own] - before).max(axis=(1, 2), initial=0.0) >= 1e-9]
        if not len(own):
            break
    return shape, levels


def remove_shape(sums: Array) -> Array:
    """Sums of g and h (feature, bin, 2, environment) less what bins and environments explain.

    A common effect of each bin is not heterogeneity, but looks like it where a model has missed it
    and environments differ in their distribution over the bins.
    """
    shape, levels = fit_shape(sums)
    g, h = sums[:, :, 0], sums[:, :, 1]
    return np.stack((g - h * (shape + levels), h), axis=2)


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

    intercepts = np.where(n_positive > 0, _PURE_INTERCEPT, -_PURE_INTERCEPT)
    intercepts[is_mixed] = fit.intercepts
    return np.asarray(special.expit(log_odds[:, np.newaxis] + intercepts))


def predict_leaves(leaves: CountArray) -> FloatArray:
    """Probabilities by leaf and environment, from a tree's leaves (leaf, label, environment).

    The log odds of a leaf's rate, with half a sample of each label added, and an intercept for
    each environment.
    """
    by_label = leaves.sum(axis=2) + 0.5
    return fit_intercepts(special.logit(by_label[:, 1] / by_label.sum(axis=1)), leaves)


def compute_explained(labels: CountArray, probabilities: FloatArray) -> float:
    """The deviance that probabilities (group, environment) explain within the environments.

    `labels` (group, label, environment) are counts; the reference is each environment's rate.
    """
    sizes = labels.sum(axis=(0, 1))
    rate = labels[:, 1].sum(axis=0) / np.maximum(sizes, 1)
    with np.errstate(all="ignore"):
        gained = (
            labels[:, 1] * np.log(probabilities / rate),
            labels[:, 0] * np.log((1.0 - probabilities) / (1.0 - rate)),
        )
    return float(2.0 * sum(np.where(np.isfinite(each), each, 0.0).sum() for each in gained))
