"""Prediction intervals for the rates of a model's leaves in a new environment, from their counts.

`icscm.stats.random_intercepts` has the model: in leaf l of environment e the log odds are
mu_l + b_e + c_le, with intercepts b that the leaves of an environment share, of variance tau_b^2,
and c of each leaf, of variance tau_c^2. A new environment draws its b and c from the same
distributions.

- The prediction interval of a leaf in a new environment holds 95 % of a mixture over the nodes of
  (tau_b, tau_c): normal distributions of mean mu_l and variance var(mu_l) + tau_b^2 + tau_c^2.
- Where the rate of the environment as a whole is known, its log odds differ from those expected
  with training's mean shares of the leaves by z. To first order

      z = b + sum_l v_l (c_l + error of mu_l) + d,

  v_l being the leaves' shares in the variance of the outcome, and d the effect of other shares of
  the leaves, whose variance is that in training (of K - 1 degrees of freedom: five quantiles of
  chi-squared stand for it). The mixture is then that of theta_l given z.
- I2 is tau^2 / (tau^2 + s^2), s^2 being the typical sampling variance of the leaf's log odds
  (Higgins and Thompson 2002) at its pooled rate.
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

# Parts of a mixture with less weight are dropped; the least variance of a part.
NEGLIGIBLE_WEIGHT: Final = 1e-9
MIN_VARIANCE: Final = 1e-10
# A quantile is searched within so many standard deviations, by so many bisections.
N_DEVIATIONS: Final = 12.0
N_BISECTIONS: Final = 30
# Steps of Newton's method for z, and the longest.
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
        Those with samples in the leaf.
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
        The same once the rate of all samples of that environment is known; None also where the
        leaf has all samples.
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
    """Return the distribution where the rate of all rows of the new environment is known.

    theta_l and z are jointly normal, with z as in the module's formula. Given z,

        mean      mu_l + gain_l z                       gain_l = cov(theta_l, z) / var(z)
        variance  var(theta_l) - gain_l cov(theta_l, z)

    and each node counts by the density of z.
    """
    mu = fit.nodes.mu
    tau_b2 = fit.variances.shared
    tau_c2 = fit.variances.separate
    mean_shares = fit.shares.mean(axis=0)
    n_environments = len(fit.shares)
    z, v = _find_shift(mu, mean_shares, rate)

    # cov(theta_l, z) = tau_b^2 + v_l tau_c^2 + cov(mu_l, sum v mu)
    covariances_of_mu = (fit.nodes.covariances @ v[..., np.newaxis])[..., 0]
    covariances = tau_b2[:, np.newaxis] + v * tau_c2[:, np.newaxis] + covariances_of_mu

    # d, the effect of other shares of the leaves, as the training environments have them
    p = special.expit(mu)
    slopes = p * (1 - p) @ mean_shares
    d = p @ (fit.shares - mean_shares).T / slopes[:, np.newaxis]
    d_squares = (d**2).sum(axis=1) * (1 + 1 / n_environments)

    variances = fit.compute_variances_in_new_environment()
    log_weights, means, conditional_variances = [], [], []
    for share in VARIANCE_SHARES:
        variance_of_d = d_squares / special.chdtri(n_environments - 1, 1 - share)
        variance_of_z = tau_b2 + tau_c2 * (v**2).sum(axis=1) + variance_of_d
        variance_of_z = variance_of_z + (v * covariances_of_mu).sum(axis=1)
        gain = covariances / variance_of_z[:, np.newaxis]
        log_density = -(np.log(variance_of_z) + z[:, 0] ** 2 / variance_of_z) / 2
        log_weights.append(fit.nodes.log_likelihoods + log_density)
        means.append(mu + gain * z)
        conditional_variances.append(variances - gain * covariances)
    return Mixture.make(
        np.concatenate(log_weights), np.concatenate(means), np.concatenate(conditional_variances)
    )


def _find_shift(
    mu: FloatArray, mean_shares: FloatArray, rate: float
) -> tuple[FloatArray, FloatArray]:
    """Find the shift z (node, 1) of mu with which the mean rate is as known.

    By Newton's method. Also returns v, the leaves' shares in the variance of the outcome.
    """
    z = np.zeros((len(mu), 1))
    for _ in range(N_SHIFTS):
        p = special.expit(mu + z)
        hessians = mean_shares * p * (1 - p)
        gap = (mean_shares * p).sum(axis=1) - rate
        z = z - np.clip(gap / hessians.sum(axis=1), -MAX_SHIFT, MAX_SHIFT)[:, np.newaxis]
    return z, hessians / hessians.sum(axis=1, keepdims=True)


# --- what a model says of it ----------------------------------------------------------------------


def make_expectations(
    tables: Sequence[Any] | CountArray, prevalence: float | None = None
) -> tuple[Expectation, ...]:
    """The expected rate of each leaf of a model, given by label and environment.

    `prevalence` is the rate of all rows in a new environment, by default that in training.
    """
    if prevalence is not None and not 0 < prevalence < 1:
        raise IcscmError(f"prevalence must be a rate between 0 and 1; got {prevalence!r}")
    tables = np.asarray(tables)
    if len(tables) == 0:
        return ()

    n_environments = (tables.sum(axis=1) > 0).sum(axis=1).tolist()
    reasons = [_explain_missing(n, has_environments=tables.shape[2] > 1) for n in n_environments]
    if max(n_environments) < LEAST_ENVIRONMENTS:
        return tuple(
            Expectation(n, reason=reason) for n, reason in zip(n_environments, reasons, strict=True)
        )

    fit = fit_random_intercepts(tables)
    if prevalence is None:
        prevalence = float((tables[:, 1].sum() + 0.5) / (tables.sum() + 1))
    tail = (1 - CONFIDENCE) / 2
    rates = predict(fit).find_rates([tail, 0.5, 1 - tail]).tolist()
    known_rates = predict_given_rate(fit, prevalence).find_rates([tail, 1 - tail]).tolist()
    i2 = (fit.tau**2 / (fit.tau**2 + _compute_typical_variance(tables))).tolist()

    expectations = []
    for leaf, (n, reason) in enumerate(zip(n_environments, reasons, strict=True)):
        if reason is not None:
            expectations.append(Expectation(n, reason=reason))
            continue
        low, middle, high = rates[leaf]
        known_low, known_high = known_rates[leaf]
        expectations.append(
            Expectation(
                n_environments=n,
                tau=fit.tau,
                tau_interval=fit.tau_interval,
                i2=i2[leaf],
                middle=middle,
                interval=(low, high),
                # a leaf with all rows has the rate of all rows
                known_interval=(known_low, known_high) if len(tables) > 1 else None,
            )
        )
    return tuple(expectations)


def _explain_missing(n_environments: int, *, has_environments: bool) -> str | None:
    """Say why the rate of a leaf cannot be estimated; None if it can."""
    if not has_environments:
        return _NO_ENVIRONMENTS
    if n_environments < LEAST_ENVIRONMENTS:
        return f"{_TOO_FEW[n_environments]} samples here: {_LEAST_NEEDED}"
    return None


def compute_surprise(
    tables: CountArray, positives: NDArray[np.int64], sizes: NDArray[np.int64]
) -> FloatArray:
    """p-values (leaf, new environment) of the counts there; NaN without an estimate or rows.

    Twice the smaller of the chances that fewer positives, or more, come of `sizes` rows of an
    environment not seen, with half of the chance of just as many added to each (mid-p). This
    accounts for the spread between environments, its uncertainty and the sampling error of the new
    rows. Above 0.05, the rate is within the prediction interval.
    """
    p_values = np.full(sizes.shape, np.nan)
    is_known = (tables.sum(axis=1) > 0).sum(axis=1) >= LEAST_ENVIRONMENTS
    if not is_known.any():
        return p_values

    # the distribution of log odds in narrow bins (leaf, bin)
    mixture = predict(fit_random_intercepts(tables))
    ends = mixture.find_quantile(TAIL), mixture.find_quantile(1 - TAIL)
    edges = np.linspace(*ends, N_BINS + 1, axis=1)
    chances = np.diff([mixture.compute_below(edge) for edge in edges.T], axis=0).T
    rates = special.expit((edges[:, 1:] + edges[:, :-1]) / 2)

    for new in range(sizes.shape[1]):
        k = positives[:, new, np.newaxis]
        n = sizes[:, new, np.newaxis]
        at_most = special.bdtr(k, n, rates)
        more = special.bdtrc(k, n, rates)
        fewer = np.where(k > 0, special.bdtr(np.maximum(k - 1, 0), n, rates), 0.0)
        below = (chances * (fewer + at_most) / 2).sum(axis=1)
        above = (chances * (2 * more + at_most - fewer) / 2).sum(axis=1)
        two_sided = np.clip(2 * np.minimum(below, above), 0.0, 1.0)
        p_values[:, new] = np.where(is_known & (n[:, 0] > 0), two_sided, np.nan)
    return p_values


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
    typical: FloatArray = n_others * sum_w / np.maximum(sum_w**2 - sum_ww, 1e-300)
    return np.maximum(typical, 1e-300)
