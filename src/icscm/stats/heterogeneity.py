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
from typing import Final, NamedTuple

import numpy as np

from icscm._lazy import special
from icscm._types import Array, CountArray, FloatArray, IntArray
from icscm.stats.independence import compute_upper_tail

# Heterogeneity counts from so many standard deviations of chance on.
_CHANCE: Final = 3.0
# Numbers from here on are not squared.
_MAX_SQUARED: Final = 1e100
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
    total = weights.sum(axis=1)
    off = known - _average(known, weights)[:, np.newaxis]
    statistic = (weights * off**2).sum(axis=1)
    dof = np.maximum(np.count_nonzero(weights, axis=1) - 1, 0)
    excess = np.maximum(statistic - dof - _CHANCE * np.sqrt(2.0 * dof), 0.0)
    spread = total - (weights**2).sum(axis=1) / np.maximum(total, 1e-300)
    tau_squared = np.where(dof > 0, excess / np.maximum(spread, 1e-12), 0.0)
    return Heterogeneity(effects, weights, statistic, dof, tau_squared)


class PooledEffect(NamedTuple):
    """A random-effects mean with its error, tau, prediction interval and confidence interval."""

    mean: float
    standard_error: float
    tau: float
    interval: tuple[float, float] | None
    confidence: tuple[float, float] | None


def pool_effects(effects: FloatArray, standard_errors: FloatArray) -> PooledEffect | None:
    """The mean effect by DerSimonian and Laird, with the 95% interval for a new environment.

    The interval is that of Higgins, Thompson and Spiegelhalter (2009), by Student's t with two
    degrees of freedom less than there are environments; of fewer than three there is none. The
    confidence interval of the mean is that of Hartung and Knapp, never with less than the usual
    variance, by Student's t with one degree of freedom less; of one environment there is none.
    Environments with NaN, or where squares overflow, are ignored; None if nothing is known.

    >>> found = pool_effects(np.array([0.8, 1.0, 1.2, np.nan]), np.array([0.1, 0.1, 0.1, np.nan]))
    >>> print(f"{found.mean:.2f} {found.tau:.2f}")
    1.00 0.17
    >>> [round(each, 2) for each in found.interval]
    [-1.65, 3.65]
    """
    is_known = (np.abs(effects) < _MAX_SQUARED) & (standard_errors < _MAX_SQUARED)
    effects, variances = effects[is_known], standard_errors[is_known] ** 2
    if not len(effects):
        return None
    dof = len(effects) - 1
    weights = 1.0 / variances
    mean = float(np.average(effects, weights=weights))
    spread = weights.sum() - (weights**2).sum() / weights.sum()
    excess = float((weights * (effects - mean) ** 2).sum()) - dof
    tau_squared = float(max(excess, 0.0) / spread) if dof else 0.0
    weights = 1.0 / (variances + tau_squared)
    mean, variance = float(np.average(effects, weights=weights)), float(1.0 / weights.sum())
    ends: list[tuple[float, float] | None] = [None, None]
    scatter = float((weights * (effects - mean) ** 2).sum()) / max(dof, 1)
    squares = tau_squared + variance, max(scatter, 1.0) * variance
    for i, (n, square) in enumerate(zip((dof - 1, dof), squares, strict=True)):
        reach = float(special.stdtrit(max(n, 1), 0.975)) * square**0.5
        ends[i] = (mean - reach, mean + reach) if n > 0 else None
    return PooledEffect(mean, variance**0.5, tau_squared**0.5, *ends)


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
    """Probabilities (group, environment) at given log odds by group, plus environment intercepts.

    `counts` (group, label, environment): in each environment as many positives are expected as
    there are. Environments of one label have the probability of that label.
    """
    sizes, positives = counts.sum(axis=1).astype(float), counts[:, 1].sum(axis=0).astype(float)
    both = (positives > 0) & (positives < sizes.sum(axis=0))
    intercepts = np.where(both, 0.0, np.where(positives > 0, 30.0, -30.0))
    for _ in range(_MAX_ROUNDS):
        p = special.expit(log_odds[:, np.newaxis] + intercepts)
        slope = np.maximum((sizes * p * (1.0 - p)).sum(axis=0), 1e-12)
        step = np.where(both, (positives - (sizes * p).sum(axis=0)) / slope, 0.0).clip(-2.0, 2.0)
        intercepts = intercepts + step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
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
