"""Design effects: by how much rows that belong together inflate variances.

Residuals of G groups of rows sum up to s_1, .., s_G in an environment. G / (G - 1) sum s^2 is
the variance of their total, which would be the hessian, sum p (1 - p), were the rows independent.
Both functions compare the two, and differ in what is divided by the result:

    columns   sums of g and h by environment, each divided by the effect of its environment: how
              much environments differ is weighed by their own variances
    leaves    one statistic of all environments, Pearson's or G, which a single number divides: the
              mean effect of the environments, weighted as they enter the mean of the statistic (Rao
              and Scott 1981, to first order). Effects of its few groups in each environment would
              vary too much.
"""

from dataclasses import dataclass

import numpy as np

from icscm._types import Array, CountArray, FloatArray


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over groups of rows, by environment: of s^2, and the number of groups.

    s is the sum of the residuals of a group.
    """

    squares: FloatArray
    n_groups: FloatArray


def compute_design_effects(sums: ClusterSums, hessians: Array, sizes: Array) -> FloatArray:
    """Compute by how much groups of rows that belong together inflate variances, by environment.

        G / (G - 1) sum s^2 / hessian,  at least 1

    `sizes` are the rows. It is the design effect of a column that is constant within groups; for
    columns that vary within groups it is too large, and their tests are conservative. Where it is
    undefined (a single group, one label), a group counts as one row.

    >>> sums = ClusterSums(squares=np.array([2.0]), n_groups=np.array([2.0]))
    >>> compute_design_effects(sums, hessians=np.array([1.0]), sizes=np.array([4])).tolist()
    [4.0]
    """
    is_known = (sums.n_groups > 1) & (hessians > 0)
    variances = estimate_variances(sums.squares, sums.n_groups)
    effects = variances / np.where(is_known, hessians, 1.0)
    rows_per_group = sizes / np.maximum(sums.n_groups, 1)
    return np.maximum(np.where(is_known, effects, rows_per_group), 1.0)


def compute_leaf_design_effects(tables: CountArray, moments: CountArray) -> FloatArray:
    """By how much similarity within clusters inflates the statistic of each table, at least 1.

    With r_e the rate of an environment of n_e samples, V_e the variance of its positives, and all
    n samples: Pearson's statistic has the mean sum (1 - n_e / n) V_e / n_e / (r (1 - r)) instead of
    K - 1, and is divided by the ratio of the two. `moments` are those of `icscm.engine.clusters`;
    environments of a single cluster have no information.
    """
    n, positives = tables.sum(axis=1).astype(np.float64), tables[:, 1]
    rates = positives / np.maximum(n, 1.0)
    n_clusters, nn, n_p, pp = np.moveaxis(moments, 2, 0)
    squares = pp - 2.0 * rates * n_p + rates**2 * nn
    variances = estimate_variances(squares, n_clusters) / np.maximum(n, 1.0)
    weights = np.where(n_clusters > 1, n.sum(axis=1, keepdims=True) - n, 0.0)
    expected = (weights * rates * (1.0 - rates)).sum(axis=1)
    found = (weights * variances).sum(axis=1) / np.where(expected > 0, expected, 1.0)
    return np.where(expected > 0, np.maximum(found, 1.0), 1.0)


def estimate_variances(squares: Array, n_groups: Array) -> FloatArray:
    """Estimate the variance of a total from the sums of its groups: G / (G - 1) sum s^2."""
    return np.asarray(n_groups / np.maximum(n_groups - 1, 1) * squares)
