"""Heterogeneity: how much an effect differs between environments, beyond chance.

An *effect* is any number that is estimated in each environment by itself, such as the difference in
log odds between the high and the low values of a column. Its *weight* in an environment is the
inverse of the variance of the estimate. With effect d_e and weight w_e in environment e, and W the
sum of the weights (DerSimonian and Laird 1986):

    mean    = sum w_e d_e / W
    Q       = sum w_e (d_e - mean)^2               Cochran's statistic
    excess  = Q - dof - 3 sqrt(2 dof)              what chance does not explain; at least 0
    tau^2   = excess / (W - sum w_e^2 / W)         variance of the true effects

If all true effects are equal, Q is chi-squared with mean `dof`, the number of environments less 1,
and standard deviation sqrt(2 dof). Three of these are subtracted besides the mean
(`icscm.stats.random_effects` does not), since otherwise the largest tau^2 of many effects would
never be 0.

The *heterogeneity* is tau^2 W. It is a deviance: by about so much the deviance of a model falls if
each environment gets its true effect instead of the mean. So it can be compared with the deviance
that the whole model explains.

Effects of cuts. A model leaves gradients g (outcome less probability) and hessians h (probability
times its complement). To raise the log odds of some rows by d changes their log-likelihood by about
G d - H d^2 / 2, with G and H the sums of g and h; it is largest at d = G / H, an estimate with
variance 1 / H. So the effect of a cut in an environment, with its weight, is

    d_e = G_true / H_true - G_false / H_false
    w_e = 1 / (1 / H_true + 1 / H_false) = H_true H_false / (H_true + H_false)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from icscm._types import FloatArray, IntArray
from icscm.stats.independence import compute_upper_tail
from icscm.stats.random_effects import estimate_tau_squared

# Standard deviations of Q that are put down to chance; see above.
N_STANDARD_DEVIATIONS: Final = 3.0
# An environment with less weight counts as having no information: the standard error of its effect
# is above 1, much for a difference in log odds.
MIN_WEIGHT: Final = 1.0
# Effects of bins and of environments are fitted in turn until they change by less, or so often.
MAX_CHANGE: Final = 1e-9
MAX_ITERATIONS: Final = 50
# Keeps divisions by a sum of hessians, or of weights, finite where there are no rows.
MIN_HESSIAN: Final = 1e-12
TINY: Final = 1e-300


# --- differences between environments -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EffectHeterogeneity:
    """How much one effect differs between environments; the fields are those of `Heterogeneity`."""

    effects: FloatArray
    weights: FloatArray
    dof: int
    tau_squared: float
    deviance: float
    p_value: float
    i_squared: float

    def compute_detectable_deviance(self, critical_value: float) -> float:
        """Compute the heterogeneity if Q were the critical value of a test.

        It shows how much a test without a finding could have missed; infinite if fewer than two
        environments can be compared.
        """
        if self.dof == 0:
            return np.inf
        excess = compute_excess(critical_value, self.dof)
        tau_squared = estimate_tau_squared(excess, self.dof, self.weights)
        return float(tau_squared * self.weights.sum())


@dataclass(frozen=True, eq=False)
class Heterogeneity:
    """How much each of several effects differs between environments.

    Attributes
    ----------
    effects : array of shape (n_effects, n_environments)
        The effect in each environment; NaN where there is no information.
    weights : array of shape (n_effects, n_environments)
        The inverse of the variance of each effect; 0 where there is no information.
    statistic, dof : array of shape (n_effects,)
        Cochran's Q, and its degrees of freedom: the environments with information, less 1.
    tau_squared : array of shape (n_effects,)
        The variance of the true effects between environments.
    """

    effects: FloatArray
    weights: FloatArray
    statistic: FloatArray
    dof: IntArray
    tau_squared: FloatArray

    @cached_property
    def deviance(self) -> FloatArray:
        """The heterogeneity, tau^2 W."""
        return np.asarray(self.tau_squared * self.weights.sum(axis=1))

    @cached_property
    def p_values(self) -> FloatArray:
        """The probability of so large a Q if all true effects are equal."""
        return compute_upper_tail(self.statistic, self.dof)

    @cached_property
    def i_squared(self) -> FloatArray:
        """The share of the differences that is not chance: (Q - dof) / Q, at least 0."""
        beyond = np.maximum(self.statistic - self.dof, 0.0)
        return beyond / np.maximum(self.statistic, TINY)

    @cached_property
    def mean(self) -> FloatArray:
        """The effect common to all environments."""
        return compute_weighted_mean(np.nan_to_num(self.effects), self.weights)

    def select(self, index: int) -> EffectHeterogeneity:
        """Return one of the effects."""
        return EffectHeterogeneity(
            effects=self.effects[index],
            weights=self.weights[index],
            dof=int(self.dof[index]),
            tau_squared=float(self.tau_squared[index]),
            deviance=float(self.deviance[index]),
            p_value=float(self.p_values[index]),
            i_squared=float(self.i_squared[index]),
        )


def compare_effects(effects: FloatArray, weights: FloatArray) -> Heterogeneity:
    """Measure how much each of several effects differs between environments.

    `effects` and `weights` have a row for each effect and a column for each environment. With
    effect d_e and weight w_e in the environments with information, and W the sum of the weights,

        mean  = sum w_e d_e / W
        Q     = sum w_e (d_e - mean)^2
        dof   = environments with information - 1
        tau^2 = max(0, Q - dof - 3 sqrt(2 dof)) / (W - sum w_e^2 / W)

    >>> effects = np.array([[0.5, 0.5, 0.5], [2.0, 0.0, -2.0]])
    >>> heterogeneity = compare_effects(effects, weights=np.full((2, 3), 10.0))
    >>> heterogeneity.deviance.round(2).tolist()
    [0.0, 108.0]
    """
    has_information = weights >= MIN_WEIGHT
    known_effects = np.where(has_information, effects, np.nan)
    w = np.where(has_information, weights, 0.0)
    d = np.nan_to_num(known_effects)  # 0 where the weight is 0, too, so that sums are finite

    mean = compute_weighted_mean(d, w)
    deviations = d - mean[:, np.newaxis]
    Q = (w * deviations**2).sum(axis=1)
    n_environments = np.count_nonzero(w, axis=1)
    dof = np.maximum(n_environments - 1, 0)
    excess = compute_excess(Q, dof)
    return Heterogeneity(
        effects=known_effects,
        weights=w,
        statistic=Q,
        dof=dof,
        tau_squared=estimate_tau_squared(excess, dof, w),
    )


def compute_excess(Q: FloatArray | float, dof: IntArray | int) -> FloatArray:
    """Compute what chance does not explain of Q: Q - dof - 3 sqrt(2 dof)."""
    return np.asarray(Q - dof - N_STANDARD_DEVIATIONS * np.sqrt(2.0 * dof))


def compute_weighted_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute the weighted mean of each row."""
    return np.asarray((weights * values).sum(axis=1) / np.maximum(weights.sum(axis=1), TINY))


# --- effects of cuts ------------------------------------------------------------------------------


def compare_cut_effects(
    gradients_false: FloatArray,
    hessians_false: FloatArray,
    *,
    total_gradients: FloatArray,
    total_hessians: FloatArray,
) -> Heterogeneity:
    """Compute the effects d_e of cuts with their weights w_e, and how much they differ.

    The sums are (cut, environment) over the rows for which each cut is false, and the totals
    (environment) over all rows.

    >>> heterogeneity = compare_cut_effects(
    ...     np.array([[-4.0, 4.0, -4.0]]),
    ...     np.array([[10.0, 10.0, 10.0]]),
    ...     total_gradients=np.zeros(3),
    ...     total_hessians=np.full(3, 20.0),
    ... )
    >>> heterogeneity.effects.round(2).tolist(), heterogeneity.statistic.round(2).tolist()
    ([[0.8, -0.8, 0.8]], [8.53])
    """
    G_false = gradients_false
    H_false = hessians_false
    G_true = total_gradients - G_false
    H_true = total_hessians - H_false

    # Where no row is on one side, the weight is 0 and the effect is not compared.
    with np.errstate(all="ignore"):
        effects = G_true / H_true - G_false / H_false
        weights = H_false * H_true / (H_false + H_true)
    has_both_sides = (H_false > 0) & (H_true > 0)
    return compare_effects(effects, np.where(has_both_sides, weights, 0.0))


# --- effects that are common to all environments --------------------------------------------------


@dataclass(frozen=True, eq=False)
class CommonEffects:
    """Effects of bins (column, bin, 1), and levels of environments (column, 1, environment)."""

    of_bins: FloatArray
    levels: FloatArray


def fit_common_effects(
    gradients: FloatArray, hessians: FloatArray, prior: float = 0.0
) -> CommonEffects:
    """Fit the effect of each bin that is common to all environments, and their levels.

    The sums G and H are (column, bin, environment), and the regression of each column is

        G = H (effect of the bin + level of the environment)

    Effects and levels are fitted in turn, which avoids a large system of equations: each is the sum
    of G - H x (the other) over the sum of H, until nothing changes. `prior` is added to the hessian
    of each bin, so that rare ones have small effects.
    """
    G = gradients
    H = hessians
    H_of_bins = np.maximum(H.sum(axis=2) + prior, MIN_HESSIAN)
    H_of_environments = np.maximum(H.sum(axis=1), MIN_HESSIAN)

    n_columns, n_bins, n_environments = G.shape
    of_bins = np.zeros((n_columns, n_bins, 1))
    levels = np.zeros((n_columns, 1, n_environments))
    # Every column by itself: the result must not depend on what else is in the block.
    active = np.arange(n_columns)
    for _ in range(MAX_ITERATIONS):
        previous = of_bins[active]
        without_levels = (G[active] - H[active] * levels[active]).sum(axis=2)
        of_bins[active] = (without_levels / H_of_bins[active])[:, :, np.newaxis]
        without_bins = (G[active] - H[active] * of_bins[active]).sum(axis=1)
        levels[active] = (without_bins / H_of_environments[active])[:, np.newaxis]

        change = np.abs(of_bins[active] - previous).max(axis=(1, 2), initial=0.0)
        active = active[change >= MAX_CHANGE]
        if not len(active):
            break
    return CommonEffects(of_bins=of_bins, levels=levels)


def remove_common_effects(gradients: FloatArray, hessians: FloatArray) -> FloatArray:
    """Return the gradients less what effects common to all environments explain.

    A model may have missed an effect of the column. If that effect is the same everywhere it is no
    heterogeneity, but it would look like one where environments differ in their distribution over
    the bins. So each sum G is replaced by what the regression of `fit_common_effects` leaves of it.
    """
    common = fit_common_effects(gradients, hessians)
    return np.asarray(gradients - hessians * (common.of_bins + common.levels))
