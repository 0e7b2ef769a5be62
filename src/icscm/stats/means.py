"""Means of a number in several environments: whether they differ, and how surely each is known."""

import numpy as np

from icscm._lazy import special
from icscm._types import FloatArray

# Variances below this share of the largest one are taken for rounding.
_MIN_VARIANCE_SHARE = 1e-12


def compute_welch_p_value(sizes: FloatArray, means: FloatArray, variances: FloatArray) -> float:
    """Compute the p-value of Welch's test (1951) that all environments have the same mean.

    With n_k rows, mean m_k and variance v_k in environment k of K,

        w_k = n_k / v_k,  w = sum w_k,  m = sum w_k m_k / w
        c   = sum (1 - w_k / w)^2 / (n_k - 1)
        F   = [sum w_k (m_k - m)^2 / (K - 1)] / [1 + 2 (K - 2) c / (K^2 - 1)]

    is compared with F of K - 1 and (K^2 - 1) / (3 c) degrees of freedom. Environments of one row
    have no variance and do not count; p is 1 if fewer than two are left.
    """
    is_usable = sizes > 1
    n, m, v = sizes[is_usable], means[is_usable], variances[is_usable]
    k = len(n)
    if k < 2:
        return 1.0
    largest_variance = float(v.max())
    if largest_variance == 0:
        return 1.0 if np.ptp(m) == 0 else 0.0

    weights = n / np.maximum(v, _MIN_VARIANCE_SHARE * largest_variance)
    shares = weights / weights.sum()
    mean = shares @ m
    c = float(((1 - shares) ** 2 / (n - 1)).sum())
    between = float(weights @ (m - mean) ** 2) / (k - 1)
    statistic = between / (1 + 2 * (k - 2) * c / (k**2 - 1))
    return float(special.fdtrc(k - 1, (k**2 - 1) / (3 * c), statistic))


def compute_mean_interval(
    size: float, mean: float, variance: float, *, confidence: float
) -> tuple[float, float] | None:
    """Compute Student's interval of a mean, m +- t sqrt(v / n); None for a single row."""
    if size <= 1:
        return None
    quantile = float(special.stdtrit(size - 1, (1 + confidence) / 2))
    half_width = quantile * float(np.sqrt(variance / size))
    return mean - half_width, mean + half_width
