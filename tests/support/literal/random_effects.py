"""The joint model of the leaves, literally: dense matrices, one node of an even grid at a time.

No working weights, no inverses of low rank, no search for where the likelihood is large; for few
leaves in few environments, half a second each. For a single leaf also without Laplace's
approximation.
"""

import numpy as np
from scipy import optimize, special, stats

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
    """Log likelihood by Laplace, mu and their covariance; k and n are (environment, leaf)."""
    n_environments, n_leaves = k.shape
    cells = [(e, leaf) for e in range(n_environments) for leaf in range(n_leaves) if n[e, leaf]]
    k, n = (np.array([each[cell] for cell in cells], dtype=float) for each in (k, n))
    is_same = [[(a[0] == b[0], a == b) for b in cells] for a in cells]
    covariance = np.array(is_same, dtype=float) @ [tau_b**2, tau_c**2]
    prior = np.linalg.inv(covariance)
    to_mu = np.array([[cell[1] == leaf for leaf in range(n_leaves)] for cell in cells], float)
    difference = np.hstack((-to_mu, np.eye(len(cells))))  # theta less its mu
    fixed = difference.T @ prior @ difference
    totals = to_mu.T @ np.stack((k, n), axis=1)
    mu = special.logit((totals[:, 0] + 0.5) / (totals[:, 1] + 1))
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
    value = (k * theta - n * np.logaddexp(0, theta)).sum() - x @ fixed @ x / 2
    value += (special.log_expit(mu) + special.log_expit(-mu)).sum() / 2
    value -= (np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(hessian)[1]) / 2
    return value, mu, np.linalg.inv(hessian)[:n_leaves, :n_leaves]


def find_shift(mu, shares, prevalence):
    return optimize.brentq(lambda z: shares @ special.expit(mu + z) - prevalence, -60, 60)


def condition(mu, errors, tau_b, tau_c, shares, z, mix_scale):
    """Log density of the prevalence, means and variances of theta given it.

    `mix_scale` times the sum of squares in training is the variance of the mix of leaves.
    """
    n_environments, n_leaves = shares.shape
    mean = shares.mean(axis=0)
    rates, now = special.expit(mu), special.expit(mu + z)
    weights = mean * now * (1 - now) / (mean * now * (1 - now)).sum()
    mixes = (shares - mean) @ rates / (mean @ (rates * (1 - rates)))
    of_mix = mix_scale * (mixes @ mixes) * (1 + 1 / n_environments)
    # of the errors of mu, b, all c, and the mix of leaves
    parts = np.zeros((2 * n_leaves + 2,) * 2)
    parts[:n_leaves, :n_leaves], parts[n_leaves, n_leaves] = errors, tau_b**2
    parts[n_leaves + 1 : -1, n_leaves + 1 : -1] = tau_c**2 * np.eye(n_leaves)
    parts[-1, -1] = of_mix
    one, none = np.ones((n_leaves, 1)), np.zeros((n_leaves, 1))
    to_theta = np.hstack((np.eye(n_leaves), one, np.eye(n_leaves), none))
    to_z = np.concatenate((weights, [1], weights, [1]))
    variance, common = to_z @ parts @ to_z, to_theta @ parts @ to_z
    variances = np.diag(to_theta @ parts @ to_theta.T) - common**2 / variance
    log_density = -(z**2 / variance + np.log(variance)) / 2  # but for a constant
    return log_density, mu + common / variance * z, variances


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
            given = mu, errors, tau_b, tau_c, shares, z, mix_scale
            log_density, means, variances = condition(*given)
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
    k_all, n_all = sum(k for k, _ in pairs), sum(n for _, n in pairs)
    pooled, parts = (k_all + 0.5) / (n_all + 1), []
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
            (log, [at], [tau**2]) for log, at in zip(log_joint.tolist(), mu.tolist(), strict=True)
        ]
    return find_quantiles(parts, (0.025, 0.5, 0.975))[:, 0]
