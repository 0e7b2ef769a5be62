"""Corrections for testing many candidates at once."""

from __future__ import annotations

import numpy as np

from icscm._types import FloatArray

METHODS = (None, "bonferroni", "holm", "bh")

# A bound is reached by exact p-values (ratios of whole numbers) more often than by chance; its
# own rounding must not decide then.
_SLACK = 1.0 + 1e-12


def find_cutoff(p_values: FloatArray, alpha: float, method: str | None) -> float:
    """The p-value up to which tests are rejected, so that all together keep to alpha.

    `"bonferroni"` and `"holm"` bound the chance of any false rejection, `"bh"` (Benjamini and
    Hochberg) the expected share of false ones among the rejections. None changes nothing.

    Let p(1) <= ... <= p(n), and s(i) the share of alpha that the method grants the i-th: 1 / n for
    Bonferroni, 1 / (n - i + 1) for Holm, i / n for Benjamini and Hochberg. Holm rejects the first
    k, up to the first p(i) > alpha s(i), so p(k + 1) > alpha s(k + 1): alpha s(k + 1) parts the
    two groups. Benjamini and Hochberg reject up to the last p(i) <= alpha s(i), so alpha s(k)
    does. For Bonferroni all s(i) are the same.
    """
    n = len(p_values)
    if n == 0:
        return alpha
    bounds = alpha * _compute_shares(n, method) * _SLACK
    is_below = np.sort(p_values) <= bounds
    if method == "holm":
        n_rejected = n if is_below.all() else int(np.argmin(is_below))
        return float(bounds[min(n_rejected, n - 1)])
    if method == "bh":
        last = np.flatnonzero(is_below)
        # with none rejected no p-value is at or below the first bound either
        return float(bounds[last[-1] if len(last) else 0])
    return float(bounds[0])


def _compute_shares(n: int, method: str | None) -> FloatArray:
    """The share of alpha that the i-th smallest of n p-values is compared with."""
    ranks = np.arange(1, n + 1)
    if method == "bonferroni":
        return np.full(n, 1.0 / max(n, 1))
    if method == "holm":
        return 1.0 / (n - ranks + 1)
    if method == "bh":
        return ranks / max(n, 1)
    if method is None:
        return np.ones(n)
    raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
