"""Prediction intervals for the rates of a model's leaves in a new environment, from their counts.

Model. In leaf l of environment e the log odds are theta_le = mu_l + b_e + c_le, with an intercept
b_e ~ N(0, tau_b^2) that the leaves of an environment share, and c_le ~ N(0, tau_c^2) of each leaf;
of its n_le samples k_le ~ Binomial(n_le, expit(theta_le)) are positive. A new environment draws
its b and c from the same distributions. The heterogeneity tau = sqrt(tau_b^2 + tau_c^2) is that of
every leaf: few environments carry little information on it, so all leaves are used.

Methods.

- Given tau_b and tau_c, all theta and mu are integrated out by Laplace's approximation, mu over
  Jeffreys' prior of a rate, which keeps leaves of a single class finite. What remains is the
  *restricted* likelihood of (tau_b, tau_c), and a normal distribution of the mu. Log odds are never
  estimated one environment at a time: with rates of 2 % most would have none to estimate.
- Prior: tau is half-t of 4 degrees of freedom and scale 1, the angle of (tau_b, tau_c) uniform. In
  the coordinates (F(tau), angle), F its distribution function, that is uniform on a rectangle, on
  which Gauss-Legendre nodes are put.
- tau is where the restricted likelihood, integrated over the angle, is largest. Its 95 % interval
  is where twice the log of it is within 3.84 of the largest. I2 is tau^2 / (tau^2 + s^2), s^2 being
  the typical sampling variance of the leaf's log odds (Higgins and Thompson) at its pooled rate.
- The prediction interval of a leaf at a new site holds 95 % of a mixture over the nodes: normal
  distributions of mean mu_l and variance var(mu_l) + tau_b^2 + tau_c^2.
- Where the rate of the site as a whole is known, its log odds differ from those expected with
  training's mean shares of the leaves by z. To first order

      z = b + sum_l v_l (c_l + error of mu_l) + d,

  v_l being the leaves' shares in the variance of the label, and d the effect of other shares of
  the leaves, whose variance is that in training (of K - 1 degrees of freedom: five quantiles of
  chi-squared stand for it). The mixture is then that of theta_l given z.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._lazy import special
from icscm._repr import Display, DisplayMixin
from icscm._types import CountArray, FloatArray
from icscm.exceptions import IcscmError

# Environments with samples that a leaf needs: with two, spread and chance cannot be separated.
LEAST_ENVIRONMENTS = 3
_TOO_FEW = "No environment has", "Only one environment has", "Only two environments have"
_LEAST_NEEDED = "an interval needs at least three."
# The level of all intervals here.
CONFIDENCE = 0.95
# Largest spread of log odds: beyond it, rates are 0 in some environments and 1 in others.
MAX_TAU = 10.0
# Degrees of freedom of the prior of tau, a half-t distribution of scale 1.
PRIOR_DF = 4

# Nodes of tau and of the angle: even ones to find where the likelihood is not negligible (this far
# below its peak), as long as that shrinks the rectangle, then Gauss-Legendre. Tests hold the
# result to that of a much finer grid.
_N_ROUGH, _N_ZOOMS, _DEEP, _SMALLER = (10, 6), 6, 9.0, 0.85
_LEGENDRE = [np.polynomial.legendre.leggauss(n) for n in (16, 8)]
# Steps of Newton's method: at first, in a smaller rectangle, and for z.
_N_STEPS, _N_MORE_STEPS, _N_SHIFTS = 8, 5, 20
# Parts of a mixture with less weight are dropped.
_NEGLIGIBLE = 1e-9
# Nodes, times environments and leaves, worked on at once.
_MAX_CELLS = 2**20
_N_BISECTIONS, _N_BINS = 30, 256
# Shares of the distribution of a variance that stand for it.
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
# Shares of the range of tau at which the restricted likelihood is read, and the matrix that takes
# values at Legendre's nodes to those of their polynomial there.
_FINE = np.linspace(0.0, 1.0, 513)
_BASIS, _FINE_BASIS = (
    np.polynomial.legendre.legvander(at, len(_LEGENDRE[0][0]) - 1)
    for at in (_LEGENDRE[0][0], 2 * _FINE - 1)
)
_Pair = tuple[FloatArray, FloatArray]
_REFINING = _FINE_BASIS @ np.linalg.inv(_BASIS)


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


class _Predictive(NamedTuple):
    """The mixture from which new log odds are drawn: weights (part,), normals (part, leaf)."""

    weights: FloatArray
    centres: FloatArray
    spreads: FloatArray

    def compute_below(self, theta: FloatArray) -> FloatArray:
        """(leaf,): the chance that the log odds of a new environment are below theta."""
        return np.asarray(self.weights @ special.ndtr((theta - self.centres) / self.spreads))

    def find_quantile(self, share: float) -> FloatArray:
        """(leaf,): log odds below which those of a new environment are with this chance."""
        reach = 12.0 * self.spreads
        low, high = (self.centres - reach).min(axis=0), (self.centres + reach).max(axis=0)
        for _ in range(_N_BISECTIONS):
            middle = (low + high) / 2
            is_below = self.compute_below(middle) < share
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return np.asarray((low + high) / 2)

    def find_rates(self, *shares: float) -> FloatArray:
        """(leaf, share): the same as rates."""
        return np.asarray(special.expit([self.find_quantile(share) for share in shares]).T)


def _mix(logs: FloatArray, centres: FloatArray, variances: FloatArray) -> _Predictive:
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    kept = weights > _NEGLIGIBLE
    spreads = np.sqrt(np.maximum(variances[kept], 1e-10))
    return _Predictive(weights[kept] / weights[kept].sum(), centres[kept], spreads)


class _Nodes(NamedTuple):
    """Log likelihoods (node,), log odds (node, leaf), their errors squared (node, leaf, leaf)."""

    values: FloatArray
    mu: FloatArray
    errors: FloatArray
    modes: FloatArray  # of theta (node, environment, leaf)


class _Fit(NamedTuple):
    """Nodes with their weights, squares of tau_b and tau_c (node,), and what is known of tau."""

    nodes: _Nodes
    squares: _Pair
    shares: FloatArray  # of the leaves in each environment
    tau: float
    tau_interval: tuple[float, float]

    def compute_variances(self) -> FloatArray:
        """(node, leaf): of log odds in a new environment."""
        own = np.diagonal(self.nodes.errors, axis1=1, axis2=2)
        return own + np.add(*self.squares)[:, np.newaxis]

    def predict(self) -> _Predictive:
        return _mix(self.nodes.values, self.nodes.mu, self.compute_variances())

    def predict_known(self, prevalence: float) -> _Predictive:
        """Log odds in a new environment where this is the rate of all samples."""
        (values, mu, errors, _), (shared, own) = self.nodes, self.squares
        n, mean = len(self.shares), self.shares.mean(axis=0)
        z = np.zeros((len(mu), 1))
        for _ in range(_N_SHIFTS):
            rates = special.expit(mu + z)
            weights = mean * rates * (1 - rates)
            gap = (mean * rates).sum(axis=1) - prevalence
            z = z - np.clip(gap / weights.sum(axis=1), -1, 1)[:, np.newaxis]
        weights /= weights.sum(axis=1, keepdims=True)
        rates = special.expit(mu)
        mixes = rates @ (self.shares - mean).T / (rates * (1 - rates) @ mean)[:, np.newaxis]
        of_mu = (errors @ weights[..., np.newaxis])[..., 0]
        common = shared[:, np.newaxis] + weights * own[:, np.newaxis] + of_mu
        parts = []
        for share in _SHARES:
            of_mix = (mixes**2).sum(axis=1) * (1 + 1 / n) / special.chdtri(n - 1, 1 - share)
            total = shared + own * (weights**2).sum(axis=1) + of_mix + (weights * of_mu).sum(axis=1)
            gain, logs = common / total[:, np.newaxis], np.log(total) + z[:, 0] ** 2 / total
            variances = self.compute_variances() - gain * common
            parts.append((values - logs / 2, mu + gain * z, variances))
        return _mix(*map(np.concatenate, zip(*parts, strict=True)))


def make_expectations(
    tables: Sequence[Any] | CountArray, prevalence: float | None = None
) -> tuple[Expectation, ...]:
    """The expected rate of each leaf of a model, given by label and environment.

    `prevalence` is the rate of all samples in a new environment, by default that in training.
    """
    if prevalence is not None and not 0 < prevalence < 1:
        raise IcscmError(f"prevalence must be a rate between 0 and 1; got {prevalence!r}")
    tables = np.asarray(tables)
    if len(tables) == 0:
        return ()
    n_seen = (tables.sum(axis=1) > 0).sum(axis=1).tolist()
    found: list[Expectation] = []
    for n in n_seen:
        reason = f"{_TOO_FEW[n]} samples here: {_LEAST_NEEDED}" if n < len(_TOO_FEW) else None
        if tables.shape[2] < 2:
            reason = "The data have no environments, so no interval can be computed."
        found.append(Expectation(n, reason=reason))
    if max(n_seen) < LEAST_ENVIRONMENTS:
        return tuple(found)
    fit = _fit(tables)
    rate = (tables[:, 1].sum() + 0.5) / (tables.sum() + 1) if prevalence is None else prevalence
    tail = (1 - CONFIDENCE) / 2
    ends = fit.predict().find_rates(tail, 0.5, 1 - tail).tolist()
    known = fit.predict_known(float(rate)).find_rates(tail, 1 - tail).tolist()
    i2 = (fit.tau**2 / (fit.tau**2 + _compute_typical_variance(tables))).tolist()
    for i, (low, middle, high) in enumerate(ends):
        if found[i].reason is None:
            of_known = tuple(known[i]) if len(tables) > 1 else None
            own = i2[i], middle, (low, high), of_known
            found[i] = Expectation(n_seen[i], fit.tau, fit.tau_interval, *own)
    return tuple(found)


def compute_surprise(
    tables: CountArray, positives: NDArray[np.int64], sizes: NDArray[np.int64]
) -> FloatArray:
    """p-values (leaf, new environment) of the counts there; NaN without an estimate or samples.

    Twice the smaller of the chances that fewer positives, or more, come of `sizes` samples of an
    environment not seen, with half of the chance of just as many added to each (mid-p). This
    accounts for the spread between environments, its uncertainty and the sampling error of the new
    rows. Above 0.05, the rate is within the prediction interval.
    """
    p_values = np.full(sizes.shape, np.nan)
    is_known = (tables.sum(axis=1) > 0).sum(axis=1) >= LEAST_ENVIRONMENTS
    if not is_known.any():
        return p_values
    drawn = _fit(tables).predict()
    ends = drawn.find_quantile(1e-6), drawn.find_quantile(1 - 1e-6)
    edges = np.linspace(*ends, _N_BINS + 1, axis=1)
    chances = np.diff([drawn.compute_below(each) for each in edges.T], axis=0).T
    rates = special.expit((edges[:, 1:] + edges[:, :-1]) / 2)
    for new in range(sizes.shape[1]):
        k, n = positives[:, new, np.newaxis], sizes[:, new, np.newaxis]
        at_most, more = special.bdtr(k, n, rates), special.bdtrc(k, n, rates)
        fewer = np.where(k > 0, special.bdtr(np.maximum(k - 1, 0), n, rates), 0.0)
        below = (chances * (fewer + at_most) / 2).sum(axis=1)
        above = (chances * (2 * more + at_most - fewer) / 2).sum(axis=1)
        found = np.clip(2 * np.minimum(below, above), 0.0, 1.0)
        p_values[:, new] = np.where(is_known & (n[:, 0] > 0), found, np.nan)
    return p_values


def _fit(tables: CountArray) -> _Fit:
    """The joint model of the leaves (leaf, label, environment)."""
    seen = np.asarray(tables, dtype=np.float64)[:, :, tables.sum(axis=(0, 1)) > 0]
    counts = seen[:, 1].T, seen.sum(axis=1).T  # positives and all, (environment, leaf)
    mu = special.logit((counts[0].sum(axis=0) + 0.5) / (counts[1].sum(axis=0) + 1))
    start, n_steps = (mu, np.broadcast_to(mu, counts[0].shape)), _N_STEPS
    low, high = np.zeros(2), np.array([2 * special.stdtr(PRIOR_DF, MAX_TAU) - 1, 1.0])
    for _ in range(_N_ZOOMS):
        at = [(np.arange(n) + 0.5) / n for n in _N_ROUGH]
        nodes = _compute_nodes(counts, _place_nodes(low, high, at), start, n_steps)
        best, n_steps = nodes.values.argmax(), _N_MORE_STEPS
        start = nodes.mu[best], nodes.modes[best]
        is_near = (nodes.values > nodes.values[best] - _DEEP).reshape(_N_ROUGH)
        places = [np.flatnonzero(is_near.any(axis=1 - axis)) for axis in (0, 1)]
        step = (high - low) / _N_ROUGH
        first, last = np.array([(each[0], each[-1]) for each in places]).T
        old, low, high = high - low, low + np.maximum(first - 0.5, 0) * step, high
        high = np.minimum(low + (last - np.maximum(first - 0.5, 0) + 1.5) * step, high)
        if ((high - low) > _SMALLER * old).all():
            break
    at = [(1 + each) / 2 for each, _ in _LEGENDRE]
    squares = _place_nodes(low, high, at)
    nodes = _compute_nodes(counts, squares, start, n_steps)
    weights = np.log(np.outer(*(each for _, each in _LEGENDRE))).ravel()
    weighted = nodes._replace(values=nodes.values + weights)
    restricted = np.logaddexp.reduce(weighted.values.reshape(len(at[0]), -1), axis=1)
    tau = _read_tau(restricted - np.log(_LEGENDRE[0][1]), low[0], high[0])
    return _Fit(weighted, squares, (counts[1] / counts[1].sum(axis=1, keepdims=True)), *tau)


def _place_nodes(low: FloatArray, high: FloatArray, at: Sequence[FloatArray]) -> _Pair:
    """tau_b^2 and tau_c^2 at these shares of the rectangle, the angle changing fastest."""
    x, angle = (a + (b - a) * share for a, b, share in zip(low, high, at, strict=True))
    square = special.stdtrit(PRIOR_DF, (1 + x) / 2)[:, np.newaxis] ** 2
    shared, own = square * np.cos(np.pi / 2 * angle) ** 2, square * np.sin(np.pi / 2 * angle) ** 2
    return shared.ravel(), own.ravel()


def _compute_typical_variance(tables: CountArray) -> FloatArray:
    """Higgins and Thompson's: between that of the largest environments and that of the mean one."""
    sizes = tables.sum(axis=1)
    pooled = (tables[:, 1].sum(axis=1) + 0.5) / (sizes.sum(axis=1) + 1)
    precisions = sizes * (pooled * (1 - pooled))[:, np.newaxis]
    total, squares = precisions.sum(axis=1), (precisions**2).sum(axis=1)
    n_others = np.maximum((precisions > 0).sum(axis=1) - 1, 1)
    typical: FloatArray = n_others * total / np.maximum(total**2 - squares, 1e-300)
    return np.maximum(typical, 1e-300)


def _compute_nodes(counts: _Pair, squares: _Pair, start: _Pair, n_steps: int) -> _Nodes:
    """Laplace's approximation at each node, as many at once as memory should hold."""
    n_parts = -(-len(squares[0]) * counts[0].size // _MAX_CELLS)
    pairs = zip(*(np.array_split(each, n_parts) for each in squares), strict=True)
    parts = [_approximate(counts, pair, start, n_steps) for pair in pairs]
    return _Nodes(*map(np.concatenate, zip(*parts, strict=True)))


def _approximate(counts: _Pair, squares: _Pair, start: _Pair, n_steps: int) -> _Nodes:
    """Newton's method for all theta and mu; then the likelihood and the errors of mu.

    From positives and sizes (environment, leaf), squares of tau_b and tau_c, first mu and theta.
    With the working weights w of the samples, those of an environment's working log odds around
    mu are diag(d) - a d d', where d = w / (1 + tau_c^2 w) and a = tau_b^2 / (1 + tau_b^2 sum d):
    the inverse of diag(1 / w + tau_c^2) + tau_b^2, which stays finite without samples.
    """
    k, n = counts
    shared, own = squares[0][:, np.newaxis], squares[1][:, np.newaxis, np.newaxis]
    mu, theta = (np.repeat(each[np.newaxis], len(own), axis=0) for each in start)
    diagonal = np.arange(mu.shape[1])
    for step in range(n_steps + 1):
        rate, typical = special.expit(theta), special.expit(mu)
        weight = np.maximum(n * rate * (1 - rate), 1e-10)
        d = weight / (1 + own * weight)
        total = d.sum(axis=2)
        a = shared / (1 + shared * total)
        precision = -np.swapaxes(d * a[..., np.newaxis], 1, 2) @ d
        precision[:, diagonal, diagonal] += d.sum(axis=1) + typical * (1 - typical)
        errors = np.linalg.inv(precision)
        if step == n_steps:
            break
        residual = theta + (k - n * rate) / weight - mu[:, np.newaxis]
        pull = d * (residual - (a * (d * residual).sum(axis=2))[..., np.newaxis])
        deviation = own * pull + (shared * pull.sum(axis=2))[..., np.newaxis]
        theta = theta + np.clip(mu[:, np.newaxis] + deviation - theta, -2, 2)
        slope = pull.sum(axis=1) + 0.5 - typical
        mu = mu + np.clip((errors @ slope[..., np.newaxis])[..., 0], -2, 2)
    deviation = theta - mu[:, np.newaxis]
    values = (k * theta - n * np.logaddexp(0, theta) - pull * deviation / 2).sum(axis=(1, 2))
    values -= np.log1p(own * weight).sum(axis=(1, 2)) / 2 + np.log1p(shared * total).sum(axis=1) / 2
    values += (special.log_expit(mu) + special.log_expit(-mu)).sum(axis=1) / 2
    values -= np.linalg.slogdet(precision)[1] / 2
    return _Nodes(values, mu, errors, theta)


def _read_tau(restricted: FloatArray, low: float, high: float) -> tuple[float, tuple[float, float]]:
    """tau of the largest restricted likelihood, and the ends of its interval."""
    finer = _REFINING @ restricted
    tau = special.stdtrit(PRIOR_DF, (1 + low + (high - low) * _FINE) / 2)
    inside = np.flatnonzero(finer >= finer.max() - special.chdtri(1, 1 - CONFIDENCE) / 2)
    return float(tau[finer.argmax()]), (float(tau[inside[0]]), float(tau[inside[-1]]))
