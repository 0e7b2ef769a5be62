"""Prediction intervals for the rates of a model's leaves in a new environment, from their counts.

`icscm.stats.random_intercepts` has the model: in leaf l of environment e the log odds are

    theta_le = mu_l + b_e + c_le

with intercepts b that the leaves of an environment share, of variance tau_b^2, and c of each leaf,
of variance tau_c^2. It is fitted at some *nodes*, pairs (tau_b, tau_c), each with its likelihood. A
new environment draws its b and c from the same distributions, so its log odds are a mixture of
normal distributions, one for each node:

- Nothing is known of the environment: mean mu_l, variance var(mu_l) + tau_b^2 + tau_c^2.
- The rate of all its rows is known. Its log odds then differ from those expected with training's
  mean shares of the leaves by a known z, and the mixture is that of theta_l given z. To first order

      z = b + sum_l v_l (c_l + error of mu_l) + d,

  v_l being the leaves' shares in the variance of the outcome, and d the effect of other shares of
  the leaves, whose variance is that in training (of K - 1 degrees of freedom: five quantiles of
  chi-squared stand for it).

A prediction interval holds 95 % of the mixture. I2 is tau^2 / (tau^2 + s^2), with s^2 the typical
sampling variance of the leaf's log odds at its pooled rate (Higgins and Thompson 2002).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from icscm._lazy import special
from icscm._repr import Display, DisplayMixin
from icscm._types import CountArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.stats.random_intercepts import CONFIDENCE as CONFIDENCE
from icscm.stats.random_intercepts import RandomInterceptFit, fit_random_intercepts

# Environments with rows that a leaf needs: with two, spread and chance cannot be separated.
LEAST_ENVIRONMENTS: Final = 3
_TOO_FEW: Final = ("No environment has", "Only one environment has", "Only two environments have")
_LEAST_NEEDED: Final = "an interval needs at least three."
_NO_ENVIRONMENTS: Final = "The data have no environments, so no interval can be computed."

# Parts of a mixture with less weight are dropped.
NEGLIGIBLE_WEIGHT: Final = 1e-9
# The least variance of a part, which is divided by its root.
MIN_VARIANCE: Final = 1e-10
# Keeps divisions by weights finite where there are none.
_TINY: Final = 1e-300
# A quantile is searched within so many standard deviations, by so many bisections.
N_DEVIATIONS: Final = 12.0
N_BISECTIONS: Final = 30
# Steps of Newton's method for z; a longer one than MAX_SHIFT would overshoot.
N_SHIFTS: Final = 20
MAX_SHIFT: Final = 1.0
# Shares of the distribution of a variance that stand for it.
VARIANCE_SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
# Bins of the distribution of log odds in which counts are compared with their chance, and the
# probability left out at each end.
N_BINS: Final = 256
TAIL: Final = 1e-6


@dataclass(frozen=True, repr=False)
class Expectation(DisplayMixin):
    """The expected rate of one leaf in a new environment.

    Parameters
    ----------
    n_environments : int
        Those with rows in the leaf.
    tau : float or None
        Standard deviation of the log odds between environments, that of all leaves; None, as all
        that follows, where it cannot be estimated.
    tau_interval : (float, float) or None
        Of tau, 95 %.
    i2 : float or None
        Share of the variance between the leaf's observed log odds that is not sampling error.
    middle : float or None
        The median rate in a new environment.
    interval : (float, float) or None
        95 % prediction interval of the rate in a new environment.
    known_interval : (float, float) or None
        The same once the rate of all rows of that environment is known; None also where the leaf
        has all rows.
    reason : str or None
        Why it cannot be estimated.
    """

    n_environments: int
    tau: float | None = None
    tau_interval: tuple[float, float] | None = None
    i2: float | None = None
    middle: float | None = None
    interval: tuple[float, float] | None = None
    known_interval: tuple[float, float] | None = None
    reason: str | None = None

    def _display(self) -> Display:
        if self.interval is None or self.tau is None:
            return Display(f"<no estimate: {self.reason}>")
        low, high = self.interval
        return Display(f"<a new environment: rate {low:.1%} to {high:.1%}, tau {self.tau:.2f}>")


# --- distributions in a new environment -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of normal distributions from which new log odds are drawn.

    `weights` are (part,), `means` and `deviations` (part, leaf).
    """

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray

    @classmethod
    def make(cls, log_weights: FloatArray, means: FloatArray, variances: FloatArray) -> "Mixture":
        """Make a mixture of the parts whose weight is not negligible."""
        weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        is_kept = weights > NEGLIGIBLE_WEIGHT
        return cls(
            weights=weights[is_kept] / weights[is_kept].sum(),
            means=means[is_kept],
            deviations=np.sqrt(np.maximum(variances[is_kept], MIN_VARIANCE)),
        )

    def compute_below(self, theta: FloatArray) -> FloatArray:
        """Compute by leaf the probability that new log odds are below theta."""
        return np.asarray(self.weights @ special.ndtr((theta - self.means) / self.deviations))

    def find_quantile(self, share: float) -> FloatArray:
        """Find by leaf the log odds below which new ones are with this probability."""
        reach = N_DEVIATIONS * self.deviations
        low = (self.means - reach).min(axis=0)
        high = (self.means + reach).max(axis=0)
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            is_below = self.compute_below(middle) < share
            low = np.where(is_below, middle, low)
            high = np.where(is_below, high, middle)
        return np.asarray((low + high) / 2)

    def find_rates(self, shares: Sequence[float]) -> FloatArray:
        """Find the same as rates (leaf, share)."""
        return np.asarray(special.expit([self.find_quantile(share) for share in shares]).T)


def predict(fit: RandomInterceptFit) -> Mixture:
    """Return the distribution of log odds in a new environment."""
    variances = fit.compute_variances_in_new_environment()
    return Mixture.make(fit.nodes.log_likelihoods, fit.nodes.mu, variances)


def predict_given_rate(fit: RandomInterceptFit, rate: float) -> Mixture:
    """Return the distribution of log odds where the rate of a new environment's rows is known.

    From the rate follows z, by how much the log odds of the environment differ from those of
    training: it is the environment's intercept b, the mean of its c_l and of the errors of mu_l,
    weighted by the leaves' shares v_l of the variance, and an effect d of other shares of the
    leaves. A leaf's log odds theta_l = mu_l + b + c_l and z are jointly normal, with

        cov(theta_l, z) = tau_b^2 + v_l tau_c^2 + cov(mu_l, sum v mu)
        var(z)          = tau_b^2 + tau_c^2 sum v^2 + var(d) + var(sum v mu)

    Given z,

        mean      mu_l + gain_l z                       gain_l = cov(theta_l, z) / var(z)
        variance  var(theta_l) - gain_l cov(theta_l, z)

    and each node counts by the density of z. One part of the mixture is a node of (tau_b, tau_c)
    with one of the quantiles of var(d).
    """
    mu = fit.nodes.mu
    tau_b2 = fit.variances.shared
    tau_c2 = fit.variances.separate
    shift = _find_shift(mu, fit.shares.mean(axis=0), rate)
    z = shift.z
    v = shift.variance_shares

    # cov(mu_l, sum v mu) and var(sum v mu), of v as weights of the leaves
    cov_mu = (fit.nodes.covariances @ v[..., np.newaxis])[..., 0]
    var_mean_mu = (v * cov_mu).sum(axis=1)

    var_theta = fit.compute_variances_in_new_environment()
    cov_theta_z = tau_b2[:, np.newaxis] + v * tau_c2[:, np.newaxis] + cov_mu

    log_weights, means, variances = [], [], []
    for var_d in _list_variances_of_d(fit):
        var_z = tau_b2 + tau_c2 * (v**2).sum(axis=1) + var_d + var_mean_mu
        log_density_of_z = -(np.log(var_z) + z**2 / var_z) / 2
        gain = cov_theta_z / var_z[:, np.newaxis]

        log_weights.append(fit.nodes.log_likelihoods + log_density_of_z)
        means.append(mu + gain * z[:, np.newaxis])
        variances.append(var_theta - gain * cov_theta_z)
    return Mixture.make(
        log_weights=np.concatenate(log_weights),
        means=np.concatenate(means),
        variances=np.concatenate(variances),
    )


def _list_variances_of_d(fit: RandomInterceptFit) -> list[FloatArray]:
    """List quantiles of the variance of d (node,), the effect of other shares of the leaves.

    With p_l = expit(mu_l) and the shares s_el of the leaves in environment e of K in training,

        d_e    = sum over l of p_l (s_el - mean s_l) / sum over l of p_l (1 - p_l) mean s_l
        var(d) = sum d_e^2 (1 + 1 / K) / chi-squared with K - 1 degrees of freedom
    """
    mean_shares = fit.shares.mean(axis=0)
    n_environments = len(fit.shares)
    p = special.expit(fit.nodes.mu)
    slopes = p * (1 - p) @ mean_shares
    d = p @ (fit.shares - mean_shares).T / slopes[:, np.newaxis]
    d_squares = (d**2).sum(axis=1) * (1 + 1 / n_environments)

    chi_squared = [special.chdtri(n_environments - 1, 1 - share) for share in VARIANCE_SHARES]
    return [d_squares / quantile for quantile in chi_squared]


@dataclass(frozen=True, eq=False)
class Shift:
    """The shift z of the log odds of all leaves with which their mean rate is the known one.

    `z` is (node,), and `variance_shares` are v (node, leaf), the leaves' shares in the variance of
    the outcome after the shift.
    """

    z: FloatArray
    variance_shares: FloatArray


def _find_shift(mu: FloatArray, mean_shares: FloatArray, rate: float) -> Shift:
    """Find the shift by Newton's method. With p_l = expit(mu_l + z), z solves

    sum over l of share_l p_l = rate,               v_l ~ share_l p_l (1 - p_l)
    """
    z = np.zeros((len(mu), 1))
    for _ in range(N_SHIFTS):
        p = special.expit(mu + z)
        slopes = mean_shares * p * (1 - p)
        excess = (mean_shares * p).sum(axis=1) - rate
        step = np.clip(excess / slopes.sum(axis=1), -MAX_SHIFT, MAX_SHIFT)
        z = z - step[:, np.newaxis]
    return Shift(z=z[:, 0], variance_shares=slopes / slopes.sum(axis=1, keepdims=True))


# --- what a model says of it ----------------------------------------------------------------------


def make_expectations(
    tables: Sequence[Any] | CountArray, prevalence: float | None = None
) -> tuple[Expectation, ...]:
    """Make the expected rate of each leaf of a model in a new environment.

    `tables` has the axes (leaf, outcome, environment). `prevalence` is the rate of all rows in a
    new environment, by default that in training.
    """
    if prevalence is not None and not 0 < prevalence < 1:
        raise IcscmError(f"prevalence must be a rate between 0 and 1; got {prevalence!r}")
    tables = np.asarray(tables)
    if len(tables) == 0:
        return ()

    n_environments = _count_environments(tables).tolist()
    has_environments = tables.shape[2] > 1
    reasons = [_explain_missing(n, has_environments=has_environments) for n in n_environments]
    if None not in reasons:
        return tuple(
            Expectation(n, reason=reason) for n, reason in zip(n_environments, reasons, strict=True)
        )

    # Leaves with few environments take part, as all of them inform tau.
    estimates = _estimate_rates(tables, prevalence)
    return tuple(
        estimate if reason is None else Expectation(estimate.n_environments, reason=reason)
        for estimate, reason in zip(estimates, reasons, strict=True)
    )


def _estimate_rates(tables: CountArray, prevalence: float | None) -> list[Expectation]:
    """Estimate the rate of each leaf in a new environment, from few environments or many.

    One interval is for a new environment of which nothing is known, a narrower one (`known`) for
    one whose rate of all rows is the `prevalence`. I2 is the share of the differences between
    environments that sampling does not explain.
    """
    if prevalence is None:
        prevalence = float((tables[:, 1].sum() + 0.5) / (tables.sum() + 1))
    fit = fit_random_intercepts(tables)
    tail = (1 - CONFIDENCE) / 2
    # by (leaf, quantile)
    rates = predict(fit).find_rates([tail, 0.5, 1 - tail]).tolist()
    known_rates = predict_given_rate(fit, prevalence).find_rates([tail, 1 - tail]).tolist()
    # by (leaf)
    sampling_variances = _compute_typical_variance(tables)
    i2 = (fit.tau**2 / (fit.tau**2 + sampling_variances)).tolist()

    estimates = []
    for leaf, n_environments in enumerate(_count_environments(tables).tolist()):
        low, middle, high = rates[leaf]
        known_low, known_high = known_rates[leaf]
        estimates.append(
            Expectation(
                n_environments=n_environments,
                tau=fit.tau,
                tau_interval=fit.tau_interval,
                i2=i2[leaf],
                middle=middle,
                interval=(low, high),
                # The only leaf has all rows, so its rate is the known one.
                known_interval=(known_low, known_high) if len(tables) > 1 else None,
            )
        )
    return estimates


def _explain_missing(n_environments: int, *, has_environments: bool) -> str | None:
    """Say why the rate of a leaf cannot be estimated; None if it can."""
    if not has_environments:
        return _NO_ENVIRONMENTS
    if n_environments < LEAST_ENVIRONMENTS:
        return f"{_TOO_FEW[n_environments]} samples here: {_LEAST_NEEDED}"
    return None


def _count_environments(tables: CountArray) -> NDArray[np.int64]:
    """Count the environments in which each leaf has rows."""
    return np.asarray((tables.sum(axis=1) > 0).sum(axis=1))


def _compute_typical_variance(tables: CountArray) -> FloatArray:
    """Compute Higgins and Thompson's typical sampling variance of each leaf's log odds.

        (K - 1) sum w / ((sum w)^2 - sum w^2)

    with w the precisions of the K environments: n p (1 - p) at the pooled rate.
    """
    n = tables.sum(axis=1)
    p = (tables[:, 1].sum(axis=1) + 0.5) / (n.sum(axis=1) + 1)
    w = n * (p * (1 - p))[:, np.newaxis]
    sum_w = w.sum(axis=1)
    sum_ww = (w**2).sum(axis=1)
    n_others = np.maximum((w > 0).sum(axis=1) - 1, 1)
    typical: FloatArray = n_others * sum_w / np.maximum(sum_w**2 - sum_ww, _TINY)
    return np.maximum(typical, _TINY)


# --- counts in a new environment ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RateDistribution:
    """The distribution of the rate of each leaf in a new environment, in narrow bins.

    `rates` are those in the middle of the bins, `probabilities` those of the bins (leaf, bin).
    """

    rates: FloatArray
    probabilities: FloatArray


def compute_surprise(
    tables: CountArray, positives: NDArray[np.int64], sizes: NDArray[np.int64]
) -> FloatArray:
    """Compute p-values (leaf, new environment) of counts in environments that were left out.

    They tell how surprising the counts are for a model fitted to `tables` (leaf, outcome,
    environment): twice the smaller of the chances that fewer `positives`, or more, come of `sizes`
    rows, with half of the chance of just as many added to each (mid-p). This accounts for the
    spread between environments, its uncertainty and the sampling error of the new rows. Above 0.05,
    the rate is within the prediction interval. NaN without an estimate or rows.
    """
    p_values = np.full(sizes.shape, np.nan)
    has_estimate = _count_environments(tables) >= LEAST_ENVIRONMENTS
    if not has_estimate.any():
        return p_values

    distribution = bin_rates(predict(fit_random_intercepts(tables)))
    n_new_environments = sizes.shape[1]
    for new in range(n_new_environments):
        has_p_value = has_estimate & (sizes[:, new] > 0)
        mid_p = compute_mid_p(positives[:, new], sizes[:, new], distribution)
        p_values[:, new] = np.where(has_p_value, mid_p, np.nan)
    return p_values


def bin_rates(mixture: Mixture) -> RateDistribution:
    """Divide the log odds of each leaf, but for both tails, into bins of equal width."""
    lowest = mixture.find_quantile(TAIL)
    highest = mixture.find_quantile(1 - TAIL)
    edges = np.linspace(lowest, highest, N_BINS + 1, axis=1)
    bin_middles = (edges[:, 1:] + edges[:, :-1]) / 2

    below_edges = [mixture.compute_below(edge) for edge in edges.T]
    return RateDistribution(
        rates=special.expit(bin_middles), probabilities=np.diff(below_edges, axis=0).T
    )


def compute_mid_p(
    positives: NDArray[np.int64], sizes: NDArray[np.int64], distribution: RateDistribution
) -> FloatArray:
    """Compute the two-sided mid-p value of each leaf's positives k, of n rows.

    At a rate the positives K of n rows are binomial. With P(K = k) = P(K <= k) - P(K < k),

        lower = P(K < k) + P(K = k) / 2 = P(K < k) / 2 + P(K <= k) / 2
        upper = P(K > k) + P(K = k) / 2 = P(K > k) + P(K <= k) / 2 - P(K < k) / 2
        p     = 2 min(mean of lower, mean of upper)

    the means being over the rates in a new environment.
    """
    k = positives[:, np.newaxis]
    n = sizes[:, np.newaxis]
    rates = distribution.rates
    less_than_k = np.where(k > 0, special.bdtr(np.maximum(k - 1, 0), n, rates), 0.0)
    at_most_k = special.bdtr(k, n, rates)
    more_than_k = special.bdtrc(k, n, rates)

    lower = less_than_k / 2 + at_most_k / 2
    upper = more_than_k + at_most_k / 2 - less_than_k / 2
    mean_lower = (distribution.probabilities * lower).sum(axis=1)
    mean_upper = (distribution.probabilities * upper).sum(axis=1)
    p_values: FloatArray = np.clip(2 * np.minimum(mean_lower, mean_upper), 0.0, 1.0)
    return p_values
