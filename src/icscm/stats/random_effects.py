"""Random effects: the mean of an effect over environments, and how much it varies between them.

The estimate d_e of an effect in environment e has variance v_e, and its weight is w_e = 1 / v_e.
The true effects vary between environments with variance tau^2, which DerSimonian and Laird (1986)
estimate from Cochran's Q:

    W     = sum w_e
    Q     = sum w_e (d_e - mean)^2,          mean = sum w_e d_e / W
    tau^2 = max(0, Q - dof) / (W - sum w_e^2 / W)

with dof the number of environments less 1. For if all true effects are equal, Q is chi-squared with
mean dof, and otherwise its mean is dof + tau^2 (W - sum w_e^2 / W).

The mean effect is then estimated with the weights u_e = 1 / (v_e + tau^2), and has the variance
V = 1 / sum u_e. Its confidence interval (Hartung and Knapp 2001) is

    mean +- t(dof) sqrt(q V),                q = max(1, sum u_e (d_e - mean)^2 / dof)

and the interval of the effect in a new environment (Higgins, Thompson and Spiegelhalter 2009)

    mean +- t(dof - 1) sqrt(tau^2 + V)

with t(k) the 97.5 % quantile of Student's t with k degrees of freedom.
"""

from typing import Final, NamedTuple

import numpy as np

from icscm._lazy import special
from icscm._types import FloatArray, IntArray

# Effects and errors from here on are ignored, since their squares would overflow.
MAX_SQUARED: Final = 1e100
# Upper quantile of the 95 % intervals.
UPPER_QUANTILE: Final = 0.975
# Keeps the divisor of tau^2 above what rounding leaves of it.
_RELATIVE_ROUNDING: Final = float(np.finfo(np.float64).eps)
_TINY: Final = 1e-280


class PooledEffect(NamedTuple):
    """The mean of an effect over environments.

    `interval` is that of the effect in a new environment, None with fewer than three environments;
    `confidence` is that of the mean, None with one environment.
    """

    mean: float
    standard_error: float
    tau: float
    interval: tuple[float, float] | None
    confidence: tuple[float, float] | None


def pool_effects(effects: FloatArray, standard_errors: FloatArray) -> PooledEffect | None:
    """Estimate the mean of an effect over environments, and how much it varies between them.

    The estimate d of each environment has the variance v, and so the weight w = 1 / v. From Q, the
    weighted squares around their mean, follows tau, the standard deviation of the true effects.
    With it the weights are u = 1 / (v + tau^2), and the mean by these has the variance V. Its
    interval is as much wider as the environments differ more than V explains, by the factor q.

    Environments with NaN, or where squares overflow, are ignored; None if nothing is known.

    >>> pooled = pool_effects(np.array([0.8, 1.0, 1.2, np.nan]), np.array([0.1, 0.1, 0.1, np.nan]))
    >>> print(f"{pooled.mean:.2f} {pooled.tau:.2f}")
    1.00 0.17
    >>> [round(end, 2) for end in pooled.interval]
    [-1.65, 3.65]
    """
    is_known = (np.abs(effects) < MAX_SQUARED) & (standard_errors < MAX_SQUARED)
    d = effects[is_known]
    v = standard_errors[is_known] ** 2
    if not len(d):
        return None

    w = 1.0 / v
    dof = len(d) - 1
    mean_by_w = np.average(d, weights=w)
    Q = float((w * (d - mean_by_w) ** 2).sum())
    tau_squared = float(estimate_tau_squared(Q - dof, dof, w))

    u = 1.0 / (v + tau_squared)
    mean = float(np.average(d, weights=u))
    V = float(1.0 / u.sum())
    q = max(1.0, float((u * (d - mean) ** 2).sum()) / max(dof, 1))
    return PooledEffect(
        mean=mean,
        standard_error=V**0.5,
        tau=tau_squared**0.5,
        interval=_make_interval(mean, variance=tau_squared + V, dof=dof - 1),
        confidence=_make_interval(mean, variance=q * V, dof=dof),
    )


def estimate_tau_squared(
    excess: FloatArray | float, dof: IntArray | int, w: FloatArray
) -> FloatArray:
    """Estimate the variance of true effects: max(0, excess) / (W - sum w_e^2 / W).

    `excess` is what Q has beyond chance, Q - dof. The environments are the last axis of the
    weights `w`; of several effects, `excess` and `dof` are arrays. 0 with a single environment.
    """
    W = w.sum(axis=-1)
    divisor = W - (w**2).sum(axis=-1) / np.maximum(W, _TINY)
    # With one environment, or one that has nearly all weight, rounding could leave nothing.
    divisor = np.maximum(divisor, _RELATIVE_ROUNDING * np.maximum(W, _TINY))
    return np.where(np.asarray(dof) > 0, np.maximum(excess, 0.0) / divisor, 0.0)


def _make_interval(mean: float, *, variance: float, dof: int) -> tuple[float, float] | None:
    """Make an interval by Student's t; None without a degree of freedom."""
    if dof < 1:
        return None
    half_width = float(special.stdtrit(dof, UPPER_QUANTILE)) * variance**0.5
    return mean - half_width, mean + half_width
