"""The binomial-normal model by brute force: sums over fine, even grids, one environment at a time.

No modes, no quadrature rules, no approximations to start from; for leaves of few samples, half a
second each.
"""

import numpy as np
from scipy import special, stats

from icscm.stats.new_environments import LEAST_PRECISION, MAX_TAU, TAIL

Z = np.linspace(-7.5, 7.5, 401)
DENSITY = stats.norm.pdf(Z) * (Z[1] - Z[0])


def compute_log_marginal(k, n, mu, tau):
    """(mu,): log of the integral of Binomial(k; n, expit(theta)) over N(theta; mu, tau)."""
    theta = mu[:, np.newaxis] + tau * Z
    exponent = k * theta + n * special.log_expit(-theta)
    top = exponent.max(axis=1)
    return top + np.log(np.exp(exponent - top[:, np.newaxis]) @ DENSITY)


def compute_log_prior_tau(tau, precisions):
    variances = [min(1 / w, 1 / LEAST_PRECISION) for w in precisions]
    jeffreys = np.sqrt(sum((tau / (tau**2 + v)) ** 2 for v in variances))
    return np.log(jeffreys / (1 + (tau / TAIL) ** 4))


def expect_slowly(negatives, positives, n_tau=48, n_mu=61):
    """tau, its interval and the quantiles 2.5, 50 and 97.5 % of a new environment's rate."""
    pairs = [(k, k + m) for m, k in zip(negatives, positives, strict=True) if k + m]
    k_all, n_all = sum(k for k, _ in pairs), sum(n for _, n in pairs)
    pooled = (k_all + 0.5) / (n_all + 1)
    precisions = [n * pooled * (1 - pooled) for _, n in pairs]
    taus = np.geomspace(0.01, MAX_TAU, n_tau)
    restricted, weights, centres = [], [], []
    for tau in taus:
        reach = 9 * np.sqrt(tau**2 / len(pairs) + 1 / max(min(k_all, n_all - k_all), 0.4))
        mu = special.logit(pooled) + np.linspace(-reach, reach, n_mu)
        log_joint = sum(compute_log_marginal(k, n, mu, tau) for k, n in pairs)
        log_joint += np.log(np.sqrt(special.expit(mu) * special.expit(-mu)))  # Jeffreys'
        log_joint += np.log(mu[1] - mu[0])
        restricted.append(special.logsumexp(log_joint))
        # even in log tau: tau itself is the width of a step
        weights.append(log_joint + compute_log_prior_tau(tau, precisions) + np.log(tau))
        centres.append(mu)
    weights, centres = special.softmax(np.array(weights)), np.array(centres)

    def find_quantile(share):
        low, high = -60.0, 60.0
        while high - low > 1e-7:
            middle = (low + high) / 2
            below = np.sum(weights * special.ndtr((middle - centres) / taus[:, np.newaxis]))
            low, high = (middle, high) if below < share else (low, middle)
        return special.expit(low)

    restricted = np.array(restricted)
    inside = taus[restricted >= restricted.max() - stats.chi2.ppf(0.95, 1) / 2]
    quantiles = [find_quantile(share) for share in (0.025, 0.5, 0.975)]
    return taus[restricted.argmax()], (inside[0], inside[-1]), quantiles
