"""What the counts of a leaf let one expect of its rate in an environment not seen.

Model. Environment e has its own log odds theta_e, drawn from a normal distribution of mean mu and
standard deviation tau; of its n_e samples k_e ~ Binomial(n_e, expit(theta_e)) are positive. An
environment not seen draws its theta from the same distribution. Log odds are never estimated one
environment at a time: with rates of 2 % most environments would have none to estimate.

Methods, all on one grid of (tau, mu).

- The likelihood of (mu, tau) integrates each theta_e out, by Gauss-Hermite quadrature around its
  mode (adaptive quadrature).
- tau is where the *restricted* likelihood is largest: that in which mu is integrated out, too,
  over Jeffreys' prior of a rate, which keeps leaves of a single class finite. Its 95 % interval is
  where twice the log of it is within 3.84 of the largest.
- I2 is tau^2 / (tau^2 + s^2), s^2 being the typical sampling variance of a log odds (Higgins and
  Thompson) at the pooled rate.
- The prediction interval holds 95 % of the predictive distribution, a mixture of the normal
  distributions (mu, tau), weighted by the likelihood times the prior of mu and a prior of tau:
  Jeffreys' (the reference prior), as if the log odds were measured with the variances s_e^2,

      p(tau) ~ sqrt(sum_e (tau / (tau^2 + min(s_e^2, 1/4)))^2) / (1 + (tau / 4)^4).

  With many samples this is nearly the t interval of K - 1 degrees of freedom, which is exact; and
  it does not collapse where tau is estimated as 0. Where hardly a sample is positive, Jeffreys'
  prior alone would take the sampling error for the spread: hence the 1/4, and the divisor, which
  keeps leaves of a single class from allowing for everything; for a tau of 1 it does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from icscm._repr import Display, DisplayMixin
from icscm._types import CountArray, FloatArray

# Environments with samples that a leaf needs: two do not separate spread from chance.
LEAST_ENVIRONMENTS = 3
_TOO_FEW = "No environment has", "Only one environment has", "Only two environments have"
_LEAST_NEEDED = "how much environments differ takes at least three to tell."
# Of every interval here.
CONFIDENCE = 0.95
# Log odds that spread more are no longer told apart from this: rates of 0 and of 1 side by side.
MAX_TAU = 10.0
# Of the prior of tau: the least precision of a log odds, and where its tail begins.
LEAST_PRECISION, TAIL = 4.0, 4.0

# Places of the grid: of tau (Gauss-Legendre), of mu given tau (evenly, in standard deviations to
# either side) and of theta given both. Tests hold the result to that of much finer ones.
_N_TAU, _N_MU, _N_THETA, _SPAN = 16, 13, 9, 6.0
# Where tau is searched first, by the normal approximation, and how far below its peak.
_N_ROUGH, _DEEP = 96, 14.0
# Steps of Newton's method for the modes of all thetas and mu, and from there of theta given mu.
_N_JOINT_STEPS, _N_STEPS = 12, 4
# Cells of the grid, times environments, worked on at once.
_MAX_CELLS = 2**17
_N_BISECTIONS, _N_BINS = 40, 256

_LEGENDRE = np.polynomial.legendre.leggauss(_N_TAU)
_HERMITE = np.polynomial.hermite_e.hermegauss(_N_THETA)
_STEPS = np.linspace(-_SPAN, _SPAN, _N_MU)
# Shares of the range of tau at which the restricted likelihood is read, and the matrix that takes
# values at Legendre's nodes to those of their polynomial there.
_FINE = np.linspace(0.0, 1.0, 513)
_BASIS, _FINE_BASIS = (
    np.polynomial.legendre.legvander(at, _N_TAU - 1) for at in (_LEGENDRE[0], 2 * _FINE - 1)
)
_REFINING = _FINE_BASIS @ np.linalg.inv(_BASIS)


@dataclass(frozen=True, repr=False)
class Expectation(DisplayMixin):
    """What to expect of one leaf in an environment not seen.

    Parameters
    ----------
    n_environments : int
        Those with samples in the leaf.
    tau : float or None
        Standard deviation of the log odds between environments; None, as all that follows, where
        it cannot be estimated.
    tau_interval : (float, float) or None
        Of tau, 95 %.
    i2 : float or None
        Share of the variance between observed log odds that is not sampling error.
    middle : float or None
        The rate that a new environment exceeds as often as not.
    interval : (float, float) or None
        Holds the rate in an environment not seen with probability 95 %.
    reason : str or None
        Why it cannot be estimated.
    """

    n_environments: int
    tau: float | None = None
    tau_interval: tuple[float, float] | None = None
    i2: float | None = None
    middle: float | None = None
    interval: tuple[float, float] | None = None
    reason: str | None = None

    def _display(self) -> Display:
        if self.interval is None or self.tau is None:
            return Display(f"<no estimate: {self.reason}>")
        low, high = self.interval
        return Display(f"<a new environment: rate {low:.1%} to {high:.1%}, tau {self.tau:.2f}>")


class _Predictive(NamedTuple):
    """The mixture from which new log odds are drawn, (leaf, part), and what is known of tau."""

    weights: FloatArray
    centres: FloatArray
    spreads: FloatArray
    tau: FloatArray
    tau_low: FloatArray
    tau_high: FloatArray
    i2: FloatArray

    def compute_below(self, theta: FloatArray) -> FloatArray:
        """(leaf,): the chance that the log odds of a new environment are below theta."""
        z = (theta[:, np.newaxis] - self.centres) / self.spreads
        below: FloatArray = (self.weights * special.ndtr(z)).sum(axis=1)
        return below

    def find_quantile(self, share: float) -> FloatArray:
        """(leaf,): log odds below which those of a new environment are with this chance."""
        reach = 12.0 * self.spreads
        low, high = (self.centres - reach).min(axis=1), (self.centres + reach).max(axis=1)
        for _ in range(_N_BISECTIONS):
            middle = (low + high) / 2
            is_below = self.compute_below(middle) < share
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        quantile: FloatArray = (low + high) / 2
        return quantile


def make_expectations(tables: Sequence[Any] | CountArray) -> tuple[Expectation, ...]:
    """What to expect of each of several leaves, given by label and environment."""
    tables = np.asarray(tables, dtype=np.int64)
    if len(tables) == 0:
        return ()
    n_seen = (tables.sum(axis=1) > 0).sum(axis=1).tolist()
    found: list[Expectation] = []
    for n in n_seen:
        reason = f"{_TOO_FEW[n]} samples here: {_LEAST_NEEDED}" if n < len(_TOO_FEW) else None
        if tables.shape[2] < 2:
            reason = "The data name no environments, so that nothing is known of another one."
        found.append(Expectation(n, reason=reason))
    tail = (1 - CONFIDENCE) / 2
    for part, fitted in _fit_all(tables):
        rates = [special.expit(fitted.find_quantile(q)) for q in (tail, 0.5, 1 - tail)]
        columns = (fitted.tau, fitted.tau_low, fitted.tau_high, fitted.i2, *rates)
        for i, numbers in zip(part.tolist(), np.column_stack(columns).tolist(), strict=True):
            tau, tau_low, tau_high, i2, low, middle, high = numbers
            found[i] = Expectation(n_seen[i], tau, (tau_low, tau_high), i2, middle, (low, high))
    return tuple(found)


def compute_surprise(
    tables: CountArray, positives: NDArray[np.int64], sizes: NDArray[np.int64]
) -> FloatArray:
    """p-values (leaf, new environment) of the counts there; NaN without an estimate or samples.

    Twice the smaller of the chances that fewer positives, or more, come of `sizes` samples of an
    environment not seen, half of the chance of just as many added to each (mid-p): the spread
    between environments, what is not known of it and the sampling error of the new rows are all
    accounted for. Above 0.05, the rate is where the prediction interval said that it would be.
    """
    tables = np.asarray(tables, dtype=np.int64)
    p_values = np.full(sizes.shape, np.nan)
    for part, fitted in _fit_all(tables):
        ends = fitted.find_quantile(1e-6), fitted.find_quantile(1 - 1e-6)
        edges = np.linspace(*ends, _N_BINS + 1, axis=1)
        chances = np.diff([fitted.compute_below(each) for each in edges.T], axis=0).T
        rates = special.expit((edges[:, 1:] + edges[:, :-1]) / 2)
        for new in range(sizes.shape[1]):
            k, n = positives[part, new, np.newaxis], sizes[part, new, np.newaxis]
            at_most, more = special.bdtr(k, n, rates), special.bdtrc(k, n, rates)
            fewer = np.where(k > 0, special.bdtr(np.maximum(k - 1, 0), n, rates), 0.0)
            below = (chances * (fewer + at_most) / 2).sum(axis=1)
            above = (chances * (2 * more + at_most - fewer) / 2).sum(axis=1)
            found = np.clip(2 * np.minimum(below, above), 0.0, 1.0)
            p_values[part, new] = np.where(n[:, 0] > 0, found, np.nan)
    return p_values


def _fit_all(tables: CountArray) -> Iterator[tuple[NDArray[np.intp], _Predictive]]:
    """The leaves in enough environments, as many at once as memory should hold."""
    leaves = np.flatnonzero((tables.sum(axis=1) > 0).sum(axis=1) >= LEAST_ENVIRONMENTS)
    most = max(_MAX_CELLS // (_N_TAU * _N_MU * tables.shape[2]), 1)
    for start in range(0, len(leaves), most):
        part = leaves[start : start + most]
        yield part, _fit(tables[part])


def _fit(tables: CountArray) -> _Predictive:
    """The posterior of each leaf (label, environment) on its grid (leaf, tau, mu)."""
    positives, sizes = tables[:, 1].astype(np.float64), tables.sum(axis=1).astype(np.float64)
    pooled = (positives.sum(axis=1) + 0.5) / (sizes.sum(axis=1) + 1)
    precisions = sizes * (pooled * (1 - pooled))[:, np.newaxis]
    scale, start, end = _find_range(positives, sizes, precisions)
    # Gauss-Legendre in x, where tau = scale x / (1 - x): the places, and the width of each
    at, shares = _LEGENDRE
    half = (end - start)[:, np.newaxis] / 2
    x = start[:, np.newaxis] + half * (1 + at)
    tau = scale[:, np.newaxis] * x / (1 - x)
    widths = half * shares * scale[:, np.newaxis] / (1 - x) ** 2
    centre, error, modes = _place_mu(positives, sizes, pooled, tau)
    mu = centre[..., np.newaxis] + error[..., np.newaxis] * _STEPS
    log_weights = _compute_log_likelihood(positives, sizes, mu, tau, modes)
    log_weights += (special.log_expit(mu) + special.log_expit(-mu)) / 2  # Jeffreys' of a rate
    log_weights += np.log(error)[..., np.newaxis]
    restricted = special.logsumexp(log_weights, axis=2)
    log_weights += (_compute_log_prior(precisions, tau) + np.log(widths))[..., np.newaxis]
    parts = log_weights.reshape(len(tables), -1)
    spreads = np.broadcast_to(tau[..., np.newaxis], mu.shape).reshape(parts.shape)
    best, low, high = _read_restricted(restricted, scale, start, end)
    i2 = best**2 / (best**2 + _compute_typical_variance(precisions))
    centres, weights = mu.reshape(parts.shape), special.softmax(parts, axis=1)
    return _Predictive(weights, centres, spreads, best, low, high, i2)


def _compute_typical_variance(precisions: FloatArray) -> FloatArray:
    """Higgins and Thompson's: between that of the largest environments and that of the mean one."""
    total, squares = precisions.sum(axis=1), (precisions**2).sum(axis=1)
    n_others = (precisions > 0).sum(axis=1) - 1
    typical: FloatArray = n_others * total / (total**2 - squares)
    return typical


def _compute_log_prior(precisions: FloatArray, tau: FloatArray) -> FloatArray:
    """The prior of tau, the log odds being measured with these precisions."""
    weights = np.where(precisions > 0, np.maximum(precisions, LEAST_PRECISION), 0.0)
    parts = weights[:, np.newaxis] / (1 + tau[..., np.newaxis] ** 2 * weights[:, np.newaxis])
    norm: FloatArray = np.sqrt((parts**2).sum(axis=2))
    return np.log(tau * norm) - np.log1p((tau / TAIL) ** 4)


def _find_range(
    positives: FloatArray, sizes: FloatArray, precisions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where to search for tau = scale x / (1 - x): the scale, and x from where to where.

    By the likelihood of empirical log odds as if these were normal, which is near enough for that.
    """
    shift = np.where(sizes > 0, 0.5, np.inf)  # an environment without samples has no weight
    variances = 1 / (positives + shift) + 1 / (sizes - positives + shift)
    variances = np.where(sizes > 0, variances, np.inf)
    log_odds = np.log((positives + 0.5) / (sizes - positives + 0.5))
    weights = 1 / variances
    mean = (weights * log_odds).sum(axis=1) / weights.sum(axis=1)
    n_seen = (sizes > 0).sum(axis=1)
    spread = ((log_odds - mean[:, np.newaxis]) ** 2 * (sizes > 0)).sum(axis=1) / (n_seen - 1)
    scale = np.sqrt(spread + _compute_typical_variance(precisions))
    top = MAX_TAU / (MAX_TAU + scale)
    x = top[:, np.newaxis] * (np.arange(_N_ROUGH) + 0.5) / _N_ROUGH
    tau = scale[:, np.newaxis] * x / (1 - x)
    w = 1 / (variances[:, np.newaxis] + tau[..., np.newaxis] ** 2)
    total = w.sum(axis=2)
    means = (w * log_odds[:, np.newaxis]).sum(axis=2) / total
    misfit = (w * (log_odds[:, np.newaxis] - means[..., np.newaxis]) ** 2).sum(axis=2)
    logs = np.where(sizes[:, np.newaxis] > 0, np.log(w, where=w > 0, out=np.zeros_like(w)), 0.0)
    rough = (logs.sum(axis=2) - np.log(total) - misfit) / 2 + _compute_log_prior(precisions, tau)
    is_near = rough > rough.max(axis=1, keepdims=True) - _DEEP
    first, last = is_near.argmax(axis=1), _N_ROUGH - 1 - is_near[:, ::-1].argmax(axis=1)
    slack = 1 + 0.1 * (last - first)
    start = np.maximum(first - slack, 0) / _N_ROUGH * top
    return scale, start, np.minimum(last + 1 + slack, _N_ROUGH) / _N_ROUGH * top


def _place_mu(
    positives: FloatArray, sizes: FloatArray, pooled: FloatArray, tau: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """About where mu lies given tau, its error, and the log odds (leaf, tau, environment) there.

    By penalised quasi-likelihood.
    """
    k, n = positives[:, np.newaxis], sizes[:, np.newaxis]
    mu = np.repeat(special.logit(pooled)[:, np.newaxis], tau.shape[1], axis=1)
    theta = np.repeat(mu[..., np.newaxis], k.shape[2], axis=2)
    square = tau[..., np.newaxis] ** 2
    for _ in range(_N_JOINT_STEPS):
        rate = special.expit(theta)
        weight = np.maximum(n * rate * (1 - rate), 1e-12)
        working = theta + (k - n * rate) / weight
        joint = weight / (1 + weight * square)
        typical = special.expit(mu)
        gain = (joint * (working - mu[..., np.newaxis])).sum(axis=2) + 0.5 - typical
        information = joint.sum(axis=2) + typical * (1 - typical)
        mu = mu + np.clip(gain / information, -2, 2)
        wanted = (working * weight * square + mu[..., np.newaxis]) / (1 + weight * square)
        theta = theta + np.clip(wanted - theta, -2, 2)
    return mu, 1 / np.sqrt(information), theta


def _compute_log_likelihood(
    positives: FloatArray, sizes: FloatArray, mu: FloatArray, tau: FloatArray, modes: FloatArray
) -> FloatArray:
    """(leaf, tau, mu): the environments' own log odds integrated out, each around its mode.

    `modes` are those at the middle mu; from there each place starts from its neighbour's.
    """
    k, n, precision = positives[:, np.newaxis], sizes[:, np.newaxis], 1 / tau[..., np.newaxis] ** 2

    def compute_exponent(theta: FloatArray, mu: FloatArray) -> FloatArray:
        """Log of what is integrated over theta, but for what does not depend on it."""
        # not log1p, which is slow; what is lost beside 1 is lost beside the sum, too
        softplus = np.maximum(theta, 0) + np.log(1 + np.exp(-np.abs(theta)))
        exponent: FloatArray = k * theta - n * softplus - (theta - mu) ** 2 * precision / 2
        return exponent

    found, middle = np.empty_like(mu), _N_MU // 2
    for places in (range(middle, _N_MU), range(middle - 1, -1, -1)):
        theta = modes
        for place in places:
            centre = mu[:, :, place, np.newaxis]
            for _ in range(_N_STEPS):  # Newton's method for the mode
                rate = special.expit(theta)
                slope = k - n * rate - (theta - centre) * precision
                theta = theta + np.clip(slope / (n * rate * (1 - rate) + precision), -2, 2)
            rate = special.expit(theta)
            width = 1 / np.sqrt(n * rate * (1 - rate) + precision)
            peak = compute_exponent(theta, centre)
            total = np.zeros_like(theta)
            for at, share in zip(*_HERMITE, strict=True):
                exponent = compute_exponent(theta + at * width, centre)
                total += share * np.exp(exponent - peak + at**2 / 2)
            found[:, :, place] = (peak + np.log(total * width)).sum(axis=2)
    found -= np.log(tau)[..., np.newaxis] * n.shape[2]
    return found


def _read_restricted(
    restricted: FloatArray, scale: FloatArray, start: FloatArray, end: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """tau of the largest restricted likelihood, and the ends of its interval."""
    finer = restricted @ _REFINING.T
    x = start[:, np.newaxis] + (end - start)[:, np.newaxis] * _FINE
    tau = scale[:, np.newaxis] * x / (1 - x)
    best = finer.argmax(axis=1)
    limit = special.chdtri(1, 1 - CONFIDENCE) / 2
    is_inside = finer >= finer.max(axis=1, keepdims=True) - limit
    ends = is_inside.argmax(axis=1), len(_FINE) - 1 - is_inside[:, ::-1].argmax(axis=1)
    rows = np.arange(len(tau))
    return tau[rows, best], tau[rows, ends[0]], tau[rows, ends[1]]
