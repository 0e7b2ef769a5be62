"""The joint model of the leaves, literally: dense matrices, one node of an even grid at a time.

No working weights, no inverses of low rank, no search for where the likelihood is large; for few
leaves in few environments, half a second each. For a single leaf also without Laplace's
approximation.
"""

import numpy as np
from scipy import linalg, optimize, special, stats

from icscm.stats.random_intercepts import MAX_TAU, PRIOR_DF

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
Z = np.linspace(-7.5, 7.5, 401)
DENSITY = stats.norm.pdf(Z) * (Z[1] - Z[0])


def make_grid(n_tau=40, n_angles=8):
    """tau_b and tau_c with equal chances: tau half-t, the angle uniform."""
    top = stats.t.cdf(MAX_TAU, PRIOR_DF) - 0.5
    taus = stats.t.ppf(0.5 + top * (np.arange(n_tau) + 0.5) / n_tau, PRIOR_DF)
    angles = np.pi / 2 * (np.arange(n_angles) + 0.5) / n_angles
    return [(tau * np.cos(angle), tau * np.sin(angle)) for tau in taus for angle in angles]


def approximate(k, n, tau_b, tau_c):
    """Log likelihood by Laplace, mu and their covariance; k and n are (environment, leaf).

    The log odds theta of the cells are normal around the mu of their leaves, with a variance
    tau_b^2 that the cells of an environment share, and tau_c^2 of each. The prior of a mu is worth
    one row, half of it positive. Newton's method finds the most likely mu and theta.
    """
    n_environments, n_leaves = k.shape
    cells = [(e, leaf) for e in range(n_environments) for leaf in range(n_leaves) if n[e, leaf]]
    k = np.array([k[cell] for cell in cells], dtype=float)
    n = np.array([n[cell] for cell in cells], dtype=float)

    is_same_environment = np.array([[a[0] == b[0] for b in cells] for a in cells], dtype=float)
    covariance = tau_b**2 * is_same_environment + tau_c**2 * np.eye(len(cells))
    to_mu = np.array([[cell[1] == leaf for leaf in range(n_leaves)] for cell in cells], float)
    difference = np.hstack((-to_mu, np.eye(len(cells))))  # theta less its mu
    fixed = difference.T @ np.linalg.inv(covariance) @ difference

    pooled_rates = (to_mu.T @ k + 0.5) / (to_mu.T @ n + 1)
    mu = special.logit(pooled_rates)
    x = np.concatenate((mu, to_mu @ mu))
    for _ in range(25):
        mu, theta = x[:n_leaves], x[n_leaves:]
        rates = special.expit(x)
        slope = np.concatenate((0.5 - rates[:n_leaves], k - n * rates[n_leaves:])) - fixed @ x
        weights = np.concatenate((np.ones(n_leaves), n)) * rates * (1 - rates)
        hessian = fixed + np.diag(weights)
        step = np.clip(np.linalg.solve(hessian, slope), -1, 1)
        x = x + step
        if np.abs(step).max() < 1e-9:
            break

    log_likelihood = (k * theta - n * np.logaddexp(0, theta)).sum() - x @ fixed @ x / 2
    log_likelihood += (special.log_expit(mu) + special.log_expit(-mu)).sum() / 2
    log_likelihood -= (np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(hessian)[1]) / 2
    return log_likelihood, mu, np.linalg.inv(hessian)[:n_leaves, :n_leaves]


def find_shift(mu, shares, prevalence):
    return optimize.brentq(lambda z: shares @ special.expit(mu + z) - prevalence, -60, 60)


def condition(mu, errors, tau_b, tau_c, shares, z, mix_scale):
    """Log density of the prevalence, means and variances of theta given it.

    `mix_scale` times the sum of squares in training is the variance of the mix of leaves.
    """
    n_environments, n_leaves = shares.shape
    mean_shares = shares.mean(axis=0)
    rates = special.expit(mu)
    mixes = (shares - mean_shares) @ rates / (mean_shares @ (rates * (1 - rates)))
    variance_of_mix = mix_scale * (mixes @ mixes) * (1 + 1 / n_environments)
    rates_now = special.expit(mu + z)
    weights = mean_shares * rates_now * (1 - rates_now)
    weights = weights / weights.sum()

    # what is uncertain: the errors of mu, b, all c, and the mix of leaves
    covariance = linalg.block_diag(errors, tau_b**2, tau_c**2 * np.eye(n_leaves), variance_of_mix)
    # theta and z as sums of these
    one = np.ones((n_leaves, 1))
    zero = np.zeros((n_leaves, 1))
    to_theta = np.hstack((np.eye(n_leaves), one, np.eye(n_leaves), zero))
    to_z = np.concatenate((weights, [1], weights, [1]))

    variance_of_z = to_z @ covariance @ to_z
    covariances_with_z = to_theta @ covariance @ to_z
    variances_of_theta = np.diag(to_theta @ covariance @ to_theta.T)
    variances = variances_of_theta - covariances_with_z**2 / variance_of_z
    means = mu + covariances_with_z / variance_of_z * z
    log_density = -(z**2 / variance_of_z + np.log(variance_of_z)) / 2  # but for a constant
    return log_density, means, variances


def find_quantiles(parts, shares):
    """(share, leaf): rates of a mixture, of log weights, means and variances (leaf,)."""
    logs, centres, variances = (np.array(each) for each in zip(*parts, strict=True))
    weights = special.softmax(logs)

    def find(leaf, share):
        spreads = np.sqrt(np.maximum(variances[:, leaf], 1e-10))
        return optimize.brentq(
            lambda x: weights @ special.ndtr((x - centres[:, leaf]) / spreads) - share, -99, 99
        )

    n_leaves = centres.shape[1]
    return special.expit([[find(leaf, share) for leaf in range(n_leaves)] for share in shares])


def count_cases(tables):
    """Positives and all samples (environment, leaf), without environments that have none."""
    tables = np.asarray(tables)[:, :, np.sum(tables, axis=(0, 1)) > 0]
    return tables[:, 1].T, tables.sum(axis=1).T


def expect_slowly(tables, prevalence):
    """(3, leaf) and (2, leaf): rates at a new site; and where its prevalence is known."""
    k, n = count_cases(tables)
    shares = n / n.sum(axis=1, keepdims=True)
    mix_scales = 1 / stats.chi2.ppf(SHARES, len(shares) - 1)
    unknown, known = [], []
    for tau_b, tau_c in make_grid():
        value, mu, errors = approximate(k, n, tau_b, tau_c)
        unknown.append((value, mu, np.diag(errors) + tau_b**2 + tau_c**2))
        z = find_shift(mu, shares.mean(axis=0), prevalence)
        for mix_scale in mix_scales:
            log_density, means, variances = condition(
                mu, errors, tau_b, tau_c, shares, z, mix_scale
            )
            known.append((value + log_density, means, variances))
    return find_quantiles(unknown, (0.025, 0.5, 0.975)), find_quantiles(known, (0.025, 0.975))


def weigh_tau(tables, tau, n_angles=8):
    """Log of the restricted likelihood of tau, the angle integrated out, but for a constant."""
    k, n = count_cases(tables)
    angles = np.pi / 2 * (np.arange(n_angles) + 0.5) / n_angles
    pairs = zip(tau * np.cos(angles), tau * np.sin(angles), strict=True)
    return special.logsumexp([approximate(k, n, *pair)[0] for pair in pairs])


def compute_surprise_slowly(tables, positives, sizes):
    """(leaf, new environment): mid-p values of counts there, every theta summed over."""
    k, n = count_cases(tables)
    logs, below = [], []
    for tau_b, tau_c in make_grid(20, 4):
        value, mu, errors = approximate(k, n, tau_b, tau_c)
        spreads = np.sqrt(np.diag(errors) + tau_b**2 + tau_c**2)
        rates = special.expit(mu + spreads * Z[:, np.newaxis])[..., np.newaxis]
        fewer, at_most = (
            np.where(counts < 0, 0.0, special.bdtr(np.maximum(counts, 0), sizes, rates))
            for counts in (positives - 1, positives)
        )
        logs.append(value)
        below.append(np.tensordot(DENSITY, (fewer + at_most) / 2, axes=1))
    chances = np.tensordot(special.softmax(logs), below, axes=1)
    return np.minimum(1.0, 2 * np.minimum(chances, 1 - chances))


def expect_exactly(negatives, positives, n_tau=60, n_mu=81):
    """Of a single leaf: rates at a new site, every theta integrated out by summing."""
    pairs = [(k, k + m) for m, k in zip(negatives, positives, strict=True) if k + m]
    k_all = sum(k for k, _ in pairs)
    n_all = sum(n for _, n in pairs)
    pooled = (k_all + 0.5) / (n_all + 1)
    parts = []
    for tau in sorted({np.hypot(*pair).round(9) for pair in make_grid(n_tau, 1)}):
        reach = 9 * np.sqrt(tau**2 / len(pairs) + 1 / max(min(k_all, n_all - k_all), 0.4))
        mu = special.logit(pooled) + np.linspace(-reach, reach, n_mu)
        theta = mu[:, np.newaxis] + tau * Z
        log_joint = (special.log_expit(mu) + special.log_expit(-mu)) / 2 + np.log(reach)
        for k, n in pairs:
            exponent = k * theta + n * special.log_expit(-theta)
            top = exponent.max(axis=1)
            log_joint += top + np.log(np.exp(exponent - top[:, np.newaxis]) @ DENSITY)
        parts += [
            (log_weight, [mean], [tau**2])
            for log_weight, mean in zip(log_joint.tolist(), mu.tolist(), strict=True)
        ]
    return find_quantiles(parts, (0.025, 0.5, 0.975))[:, 0]
