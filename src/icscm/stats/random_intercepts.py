"""A joint model of the rates of several leaves in several environments, with random intercepts.

Model. In leaf l of environment e the log odds are theta_le = mu_l + b_e + c_le, with an intercept
b_e ~ N(0, tau_b^2) that the leaves of an environment share, and c_le ~ N(0, tau_c^2) of each leaf;
of its n_le rows k_le ~ Binomial(n_le, expit(theta_le)) are positive. The heterogeneity
tau = sqrt(tau_b^2 + tau_c^2) is that of every leaf: few environments carry little information on
it, so all leaves are used.

Given tau_b and tau_c, all theta and mu are integrated out by Laplace's approximation, mu over
Jeffreys' prior of a rate, which keeps leaves of a single class finite. What remains is the
*restricted* likelihood of (tau_b, tau_c), and a normal distribution of the mu. Log odds are never
estimated one environment at a time: with rates of 2 % most would have none to estimate.

Prior: tau is half-t of 4 degrees of freedom and scale 1. How it divides is an angle, uniform from 0
(all is tau_b) to a right one (all is tau_c). With the distribution function F of tau, the prior is
uniform on the rectangle of all (F(tau), angle):

    1.  Points on an even grid show in which part of the rectangle the likelihood is not negligible.
    2.  Nodes of Gauss and Legendre are put on this part: sums over them, with their weights, are
        integrals over the prior.

tau is where the restricted likelihood, integrated over the angle, is largest. Its 95 % interval is
where twice the log of it is within 3.84 of the largest.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import CountArray, FloatArray, IntArray

# The level of the interval of tau.
CONFIDENCE: Final = 0.95
# Largest spread of log odds: beyond it, rates are 0 in some environments and 1 in others.
MAX_TAU: Final = 10.0
# Degrees of freedom of the prior of tau, a half-t distribution of scale 1.
PRIOR_DF: Final = 4

# Even nodes of F(tau) and of the angle, to find where the likelihood is not negligible. Tests hold
# the result to that of a much finer grid.
N_EVEN_NODES: Final = (10, 6)
# A likelihood is negligible if its log is so far below the peak.
NEGLIGIBLE_LOG: Final = 9.0
# The rectangle is made smaller at most so often, as long as a side shrinks to less than this share.
MAX_ZOOMS: Final = 6
MAX_SHRINKING: Final = 0.85
# Gauss-Legendre nodes in (-1, 1) and their weights, of F(tau) and of the angle.
TAU_NODES, TAU_WEIGHTS = np.polynomial.legendre.leggauss(16)
ANGLE_NODES, ANGLE_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Steps of Newton's method: from the pooled rates, and from the modes in a larger rectangle.
N_FIRST_STEPS: Final = 8
N_MORE_STEPS: Final = 5
# The longest step of log odds.
MAX_STEP: Final = 2.0
# Least working weight, of environments without rows in a leaf.
MIN_WEIGHT: Final = 1e-10
# Nodes, times environments and leaves, worked on at once.
MAX_CELLS: Final = 2**20
# Shares of the range of F(tau) at which the restricted likelihood is read.
FINE_SHARES = np.linspace(0.0, 1.0, 513)


@dataclass(frozen=True, eq=False)
class Binomials:
    """Positive rows k and all rows n (environment, leaf)."""

    k: FloatArray
    n: FloatArray


@dataclass(frozen=True, eq=False)
class Variances:
    """tau_b^2, of what the leaves share, and tau_c^2, of each leaf, at some nodes (node,)."""

    shared: FloatArray
    separate: FloatArray

    def split(self, n_parts: int) -> list["Variances"]:
        """Split the nodes into parts of nearly the same size."""
        shared_parts = np.array_split(self.shared, n_parts)
        separate_parts = np.array_split(self.separate, n_parts)
        return [
            Variances(shared=shared, separate=separate)
            for shared, separate in zip(shared_parts, separate_parts, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Modes:
    """Where the likelihood is largest: mu (leaf,) and theta (environment, leaf).

    Those of several nodes have the node as their first axis.
    """

    mu: FloatArray
    theta: FloatArray

    def repeat(self, n_nodes: int) -> "Modes":
        """Return these modes for each of several nodes."""
        return Modes(
            mu=np.repeat(self.mu[np.newaxis], n_nodes, axis=0),
            theta=np.repeat(self.theta[np.newaxis], n_nodes, axis=0),
        )


@dataclass(frozen=True, eq=False)
class Nodes:
    """Laplace's approximation at each node.

    Attributes
    ----------
    log_likelihoods : array of shape (n_nodes,)
        The restricted likelihood; at Gauss-Legendre nodes times their weight.
    mu : array of shape (n_nodes, n_leaves)
        The mean of the log odds of each leaf.
    covariances : array of shape (n_nodes, n_leaves, n_leaves)
        Those of mu.
    theta : array of shape (n_nodes, n_environments, n_leaves)
        The modes of the log odds in each environment.
    """

    log_likelihoods: FloatArray
    mu: FloatArray
    covariances: FloatArray
    theta: FloatArray

    def find_mode(self) -> Modes:
        """Return the modes at the node of the largest likelihood."""
        best = self.log_likelihoods.argmax()
        return Modes(mu=self.mu[best], theta=self.theta[best])


@dataclass(frozen=True, eq=False)
class RandomInterceptFit:
    """The fitted model.

    Attributes
    ----------
    nodes, variances : Nodes, Variances
        At the Gauss-Legendre nodes of (tau_b, tau_c).
    shares : array of shape (n_environments, n_leaves)
        Of the leaves in the rows of each environment.
    tau, tau_interval : float, (float, float)
        The spread of log odds between environments, and its 95 % interval.
    """

    nodes: Nodes
    variances: Variances
    shares: FloatArray
    tau: float
    tau_interval: tuple[float, float]

    def compute_variances_in_new_environment(self) -> FloatArray:
        """Compute the variance of log odds in a new environment (node, leaf).

        var(mu_l) + tau_b^2 + tau_c^2
        """
        of_mu = np.diagonal(self.nodes.covariances, axis1=1, axis2=2)
        between = self.variances.shared + self.variances.separate
        return of_mu + between[:, np.newaxis]


def fit_random_intercepts(tables: CountArray) -> RandomInterceptFit:
    """Fit the model to leaves given by (leaf, outcome, environment)."""
    has_rows = tables.sum(axis=(0, 1)) > 0
    with_rows = np.asarray(tables, dtype=np.float64)[:, :, has_rows]
    counts = Binomials(k=with_rows[:, 1].T, n=with_rows.sum(axis=1).T)

    region = _find_region(counts)
    tau_shares = (1 + TAU_NODES) / 2
    angle_shares = (1 + ANGLE_NODES) / 2
    variances = region.rectangle.place_nodes(tau_shares, angle_shares)
    nodes = _compute_nodes(counts, variances, start=region.modes, n_steps=N_MORE_STEPS)
    node_weights = np.outer(TAU_WEIGHTS, ANGLE_WEIGHTS).ravel()
    weighted = replace(nodes, log_likelihoods=nodes.log_likelihoods + np.log(node_weights))

    # The likelihood of tau alone: the sum over the angles, which change fastest.
    by_tau = weighted.log_likelihoods.reshape(len(TAU_NODES), -1)
    restricted = np.logaddexp.reduce(by_tau, axis=1) - np.log(TAU_WEIGHTS)
    tau = _read_tau(restricted, region.rectangle)
    return RandomInterceptFit(
        nodes=weighted,
        variances=variances,
        shares=counts.n / counts.n.sum(axis=1, keepdims=True),
        tau=tau.estimate,
        tau_interval=tau.interval,
    )


# --- where the likelihood is not negligible -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A part of the coordinates (x, angle) of (tau_b, tau_c), from `low` to `high`.

    x is F(tau): 2 T(tau) - 1 with the distribution function T of Student's t, since tau is half-t.
    The angle is a share of a right one.
    """

    low: FloatArray
    high: FloatArray

    def place_nodes(self, tau_shares: FloatArray, angle_shares: FloatArray) -> Variances:
        """Place nodes at these shares of the sides, the angle changing fastest."""
        x = self.low[0] + (self.high[0] - self.low[0]) * tau_shares
        angle = self.low[1] + (self.high[1] - self.low[1]) * angle_shares
        tau_squared = special.stdtrit(PRIOR_DF, (1 + x) / 2)[:, np.newaxis] ** 2
        return Variances(
            shared=(tau_squared * np.cos(np.pi / 2 * angle) ** 2).ravel(),
            separate=(tau_squared * np.sin(np.pi / 2 * angle) ** 2).ravel(),
        )

    def shrink(self, is_near: FloatArray) -> "Rectangle":
        """Return the part around the even nodes (x, angle) that are near the peak.

        A half of a cell more is kept on each side.
        """
        cell = (self.high - self.low) / N_EVEN_NODES
        near_by_axis = [np.flatnonzero(is_near.any(axis=1 - axis)) for axis in (0, 1)]
        first = np.array([near[0] for near in near_by_axis])
        last = np.array([near[-1] for near in near_by_axis])
        start = np.maximum(first - 0.5, 0)
        low = self.low + start * cell
        high = np.minimum(low + (last - start + 1.5) * cell, self.high)
        return Rectangle(low=low, high=high)


@dataclass(frozen=True, eq=False)
class _Region:
    """Where the likelihood is not negligible, and the modes at its largest even node."""

    rectangle: Rectangle
    modes: Modes


def _find_region(counts: Binomials) -> _Region:
    """Find where the likelihood is not negligible, by ever smaller rectangles around its peak."""
    pooled_mu = special.logit((counts.k.sum(axis=0) + 0.5) / (counts.n.sum(axis=0) + 1))
    modes = Modes(mu=pooled_mu, theta=np.broadcast_to(pooled_mu, counts.k.shape))
    n_steps = N_FIRST_STEPS
    max_x = 2 * special.stdtr(PRIOR_DF, MAX_TAU) - 1
    rectangle = Rectangle(low=np.zeros(2), high=np.array([max_x, 1.0]))
    even_tau, even_angle = [(np.arange(n) + 0.5) / n for n in N_EVEN_NODES]
    for _ in range(MAX_ZOOMS):
        variances = rectangle.place_nodes(even_tau, even_angle)
        nodes = _compute_nodes(counts, variances, start=modes, n_steps=n_steps)
        modes = nodes.find_mode()
        n_steps = N_MORE_STEPS

        peak = nodes.log_likelihoods.max()
        is_near = (nodes.log_likelihoods > peak - NEGLIGIBLE_LOG).reshape(N_EVEN_NODES)
        size_before = rectangle.high - rectangle.low
        rectangle = rectangle.shrink(is_near)
        if (rectangle.high - rectangle.low > MAX_SHRINKING * size_before).all():
            break
    return _Region(rectangle=rectangle, modes=modes)


def _make_interpolation() -> FloatArray:
    """Make the matrix that takes values at Legendre's nodes to values at the fine shares.

    The polynomial through the values is a sum of Legendre's. The inverse matrix finds how much of
    each there is from the values at the nodes; the other one adds them up at the fine shares.
    """
    degree = len(TAU_NODES) - 1
    values_at_nodes = np.polynomial.legendre.legvander(TAU_NODES, degree)
    values_at_fine_shares = np.polynomial.legendre.legvander(2 * FINE_SHARES - 1, degree)
    return np.asarray(values_at_fine_shares @ np.linalg.inv(values_at_nodes))


_INTERPOLATION = _make_interpolation()


@dataclass(frozen=True)
class _Tau:
    """The estimate of tau, with its 95 % interval."""

    estimate: float
    interval: tuple[float, float]


def _read_tau(restricted: FloatArray, rectangle: Rectangle) -> _Tau:
    """Read tau where the restricted likelihood is largest, and where its interval ends.

    `restricted` holds its logarithm at each Legendre node of F(tau). In between it is that of the
    polynomial through these values.
    """
    log_likelihoods = _INTERPOLATION @ restricted
    low_x, high_x = rectangle.low[0], rectangle.high[0]
    tau = special.stdtrit(PRIOR_DF, (1 + low_x + (high_x - low_x) * FINE_SHARES) / 2)

    drop = special.chdtri(1, 1 - CONFIDENCE) / 2
    inside: IntArray = np.flatnonzero(log_likelihoods >= log_likelihoods.max() - drop)
    return _Tau(
        estimate=float(tau[log_likelihoods.argmax()]),
        interval=(float(tau[inside[0]]), float(tau[inside[-1]])),
    )


# --- Laplace's approximation ----------------------------------------------------------------------


def _compute_nodes(counts: Binomials, variances: Variances, *, start: Modes, n_steps: int) -> Nodes:
    """Compute the approximation at each node, as many at once as memory should hold."""
    n_cells = len(variances.shared) * counts.k.size
    n_parts = math.ceil(n_cells / MAX_CELLS)
    parts = [
        _approximate(counts, part, start=start, n_steps=n_steps)
        for part in variances.split(n_parts)
    ]
    return Nodes(
        log_likelihoods=np.concatenate([part.log_likelihoods for part in parts]),
        mu=np.concatenate([part.mu for part in parts]),
        covariances=np.concatenate([part.covariances for part in parts]),
        theta=np.concatenate([part.theta for part in parts]),
    )


def _approximate(counts: Binomials, variances: Variances, *, start: Modes, n_steps: int) -> Nodes:
    """Find the modes of theta and mu by Newton's method, then the likelihood around them."""
    modes = start.repeat(n_nodes=len(variances.shared))
    for _ in range(n_steps - 1):
        modes = _make_step(counts, variances, modes).modes
    last_step = _make_step(counts, variances, modes)

    modes = last_step.modes
    expansion = _expand(counts, variances, modes)
    return Nodes(
        log_likelihoods=_compute_log_likelihoods(
            counts, variances, modes, expansion, pull=last_step.pull
        ),
        mu=modes.mu,
        covariances=expansion.mu_covariances,
        theta=modes.theta,
    )


@dataclass(frozen=True, eq=False)
class _Expansion:
    """The likelihood around some theta and mu, to second order; see `_expand`.

    Attributes
    ----------
    rates, weights, precisions : array of shape (n_nodes, n_environments, n_leaves)
        Of the rows of each leaf in each environment.
    total_precisions, shrinkages : array of shape (n_nodes, n_environments)
        Of each environment, whose leaves share an intercept.
    mean_rates : array of shape (n_nodes, n_leaves)
        Rates at the mean log odds mu.
    mu_precisions, mu_covariances : arrays of shape (n_nodes, n_leaves, n_leaves)
        The matrices of mu, inverse to each other.
    """

    rates: FloatArray
    weights: FloatArray
    precisions: FloatArray
    total_precisions: FloatArray
    shrinkages: FloatArray
    mean_rates: FloatArray
    mu_precisions: FloatArray
    mu_covariances: FloatArray


def _expand(counts: Binomials, variances: Variances, modes: Modes) -> _Expansion:
    """Expand the likelihood around theta and mu; the nodes are values of (tau_b, tau_c).

    To second order, rows are like one observation of theta with the variance 1 / weight, where
    weight = n rate (1 - rate). Around mu the observations of an environment have the covariance
    diag(1 / weight + tau_c^2) + tau_b^2, of which the inverse is, by Sherman and Morrison,

        diag(precision) - shrinkage precision precision'

        precision = weight / (1 + tau_c^2 weight)                           of each leaf
        shrinkage = tau_b^2 / (1 + tau_b^2 sum of precision over leaves)    of the environment

    and finite without rows, too. The precision of mu is its sum over environments, and that of
    Jeffreys' prior, mean rate (1 - mean rate), on the diagonal.
    """
    tau_b2 = variances.shared[:, np.newaxis]
    tau_c2 = variances.separate[:, np.newaxis, np.newaxis]

    # by (node, environment, leaf)
    rates = special.expit(modes.theta)
    weights = np.maximum(counts.n * rates * (1 - rates), MIN_WEIGHT)
    precisions = weights / (1 + tau_c2 * weights)
    # by (node, environment)
    total_precisions = precisions.sum(axis=2)
    shrinkages = tau_b2 / (1 + tau_b2 * total_precisions)
    # by (node, leaf)
    mean_rates = special.expit(modes.mu)

    # By (node, leaf, leaf): the matrix product adds up over environments.
    shrunk_precisions = precisions * shrinkages[..., np.newaxis]
    mu_precisions = -np.swapaxes(shrunk_precisions, 1, 2) @ precisions
    diagonal = np.arange(mean_rates.shape[1])
    of_prior = mean_rates * (1 - mean_rates)
    mu_precisions[:, diagonal, diagonal] += precisions.sum(axis=1) + of_prior
    return _Expansion(
        rates=rates,
        weights=weights,
        precisions=precisions,
        total_precisions=total_precisions,
        shrinkages=shrinkages,
        mean_rates=mean_rates,
        mu_precisions=mu_precisions,
        mu_covariances=np.linalg.inv(mu_precisions),
    )


def _compute_pull(counts: Binomials, modes: Modes, expansion: _Expansion) -> FloatArray:
    """Compute how rows pull theta from mu (node, environment, leaf).

    It is the precision matrix of an environment, see `_expand`, times the residuals by which the
    observations that rows are like differ from mu:

        residual = theta + (k - n rate) / weight - mu
        pull     = precision (residual - shrinkage sum of precision residual over leaves)
    """
    excess = counts.k - counts.n * expansion.rates  # of positive rows
    residuals = modes.theta + excess / expansion.weights - modes.mu[:, np.newaxis]
    of_environments = expansion.shrinkages * (expansion.precisions * residuals).sum(axis=2)
    pull: FloatArray = expansion.precisions * (residuals - of_environments[..., np.newaxis])
    return pull


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of Newton's method: where it leads, and the pull (node, environment, leaf) it obeys.

    At the modes, theta - mu is the pull times the variances.
    """

    modes: Modes
    pull: FloatArray


def _make_step(counts: Binomials, variances: Variances, modes: Modes) -> _Step:
    """Make a step of Newton's method from some theta and mu, towards the modes.

        theta = mu + tau_c^2 pull + tau_b^2 sum of pull over leaves
        step of mu = covariances of mu times its gradient,
                     sum of pull over environments + 1/2 - mean rate

    the last two terms being those of Jeffreys' prior.
    """
    expansion = _expand(counts, variances, modes)
    pull = _compute_pull(counts, modes, expansion)

    tau_b2 = variances.shared[:, np.newaxis]
    tau_c2 = variances.separate[:, np.newaxis, np.newaxis]
    deviation = tau_c2 * pull + (tau_b2 * pull.sum(axis=2))[..., np.newaxis]
    theta_step = modes.mu[:, np.newaxis] + deviation - modes.theta

    mu_gradient = pull.sum(axis=1) + 0.5 - expansion.mean_rates
    mu_step = (expansion.mu_covariances @ mu_gradient[..., np.newaxis])[..., 0]
    next_modes = Modes(
        mu=modes.mu + np.clip(mu_step, -MAX_STEP, MAX_STEP),
        theta=modes.theta + np.clip(theta_step, -MAX_STEP, MAX_STEP),
    )
    return _Step(modes=next_modes, pull=pull)


def _compute_log_likelihoods(
    counts: Binomials,
    variances: Variances,
    modes: Modes,
    expansion: _Expansion,
    pull: FloatArray,
) -> FloatArray:
    """Compute the restricted log likelihood of each node, but for a constant.

    of rows            sum k theta - n log(1 + exp(theta))
    of theta           - sum pull (theta - mu) / 2
    theta integrated   - sum log(1 + tau_c^2 weight) / 2
                       - sum log(1 + tau_b^2 sum of precision over leaves) / 2
    Jeffreys' prior    sum log(mean rate (1 - mean rate)) / 2
    mu integrated      - log det(precision of mu) / 2
    """
    k, n = counts.k, counts.n
    mu, theta = modes.mu, modes.theta
    tau_b2 = variances.shared[:, np.newaxis]
    tau_c2 = variances.separate[:, np.newaxis, np.newaxis]

    deviation = theta - mu[:, np.newaxis]
    of_modes = k * theta - n * np.logaddexp(0, theta) - pull * deviation / 2
    log_determinant_of_theta = (
        np.log1p(tau_c2 * expansion.weights).sum(axis=(1, 2)) / 2
        + np.log1p(tau_b2 * expansion.total_precisions).sum(axis=1) / 2
    )
    log_prior = (special.log_expit(mu) + special.log_expit(-mu)).sum(axis=1) / 2
    _, log_determinant_of_mu = np.linalg.slogdet(expansion.mu_precisions)
    log_likelihoods: FloatArray = (
        of_modes.sum(axis=(1, 2)) - log_determinant_of_theta + log_prior - log_determinant_of_mu / 2
    )
    return log_likelihoods
