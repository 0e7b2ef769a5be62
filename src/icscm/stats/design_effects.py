"""Design effects: by how much rows that belong together inflate variances.

Residuals of G groups of rows sum up to s_1, .., s_G in an environment. G / (G - 1) sum s^2 is
the variance of their total, which would be the hessian, sum p (1 - p), were the rows independent.
All functions compare the two, and differ in what is divided by the result:

    columns   sums of g and h by environment, each divided by the effect of its environment: how
              much environments differ is weighed by their own variances
    leaves    one statistic of all environments, Pearson's or G, which a single number divides: the
              mean effect of the environments, weighted as they enter the mean of the statistic (Rao
              and Scott 1981, to first order). Effects of its few groups in each environment would
              vary too much.
    chance    what a rule, a split or a term must exceed to be better than chance. It adds up rows
              of all environments, so that a group with rows in several of them counts as a whole.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import Array, CountArray, FloatArray, IntArray

# Weights are divided by; an environment whose rows all have weight 0 has none.
MIN_WEIGHT = 1e-300

# A weight above 0 for environments with one outcome, so that a mean is always defined.
_MIN_WEIGHT: Final = 1e-9


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over groups of rows, whose residuals add up to s_ge in environment e.

    A group may have rows in several environments. What its parts share is known from the difference
    between the square of a sum and the sum of squares:

        group   s in a   s in b          squares of a, b    10, 4
        0       3        2       --->    n_groups           2, 1
        1       1        -               shared             (3 + 2)^2 - 3^2 - 2^2 = 12

    Attributes
    ----------
    squares, n_groups : array of float, (environment)
        The sum of s_ge^2 over the groups with rows in an environment, and the number of these.
    shared : float
        The sum over all groups of  (sum_e s_ge)^2 - sum_e s_ge^2;  0 if each group lies within one
        environment.
    """

    squares: FloatArray
    n_groups: FloatArray
    shared: float = 0.0


@dataclass(frozen=True, eq=False)
class ClusterMoments:
    """Sums over the clusters of an environment that have rows in a leaf, by (leaf, environment).

    Of the n rows of a cluster in the leaf, p are positive. From these sums follows the sum of
    squares (p - r n)^2 for any rate r, so a source may count before the rate is known.

        leaf   environment a             moments of a
               cluster    n  p           n_clusters  sum_nn  sum_np  sum_pp
               0          3  2     -->   2           13      8       5
               1          2  1
               2          0  0
    """

    n_clusters: CountArray
    sum_nn: CountArray
    sum_np: CountArray
    sum_pp: CountArray


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


def compute_overall_design_effect(sums: ClusterSums, hessians: Array, sizes: Array) -> float:
    """Compute by how much whole groups inflate the variance of a sum over all environments.

        D = (sum_e h_e D_e + max(S, 0)) / sum_e h_e

    with the hessian h_e and the design effect D_e of environment e (`compute_design_effects`), and
    S what the parts of groups in several environments share (`ClusterSums.shared`). It is the
    design effect of a column that is constant within groups. Without S, rows of a group in two
    environments would count as independent: with groups of five rows over four environments, rules
    of noise were found in a fifth of tables. A negative S is not used: the column may be constant
    within an environment's part of a group only.

    >>> sums = ClusterSums(np.array([10.0, 10.0]), n_groups=np.array([5.0, 5.0]), shared=15.0)
    >>> compute_overall_design_effect(sums, hessians=np.array([5.0, 5.0]), sizes=np.array([20, 20]))
    4.0
    """
    effects = compute_design_effects(sums, hessians, sizes)
    weights = np.maximum(hessians, _MIN_WEIGHT)
    return float(np.average(effects, weights=weights) + max(sums.shared, 0.0) / weights.sum())


def compute_leaf_design_effects(tables: CountArray, moments: ClusterMoments) -> FloatArray:
    """Compute by how much clusters inflate the statistic of each leaf (leaf, outcome, environment).

    Of the n_e rows of environment e a share r_e is positive; n are the rows of all environments,
    and V_e is the variance of the positives of e, from its G_e clusters:

        V_e = G_e / (G_e - 1) sum (p - r_e n)^2       over the clusters

    Pearson's statistic is in the mean proportional to  sum_e (1 - n_e / n) V_e / n_e,  where
    V_e / n_e = r_e (1 - r_e) if rows are independent. The design effect is the ratio of the two,
    at least 1 (Rao and Scott 1981). Environments of a single cluster have no information.
    """
    n_e = tables.sum(axis=1).astype(np.float64)
    n = n_e.sum(axis=1, keepdims=True)
    r_e = tables[:, 1] / np.maximum(n_e, 1.0)

    squares = moments.sum_pp - 2.0 * r_e * moments.sum_np + r_e**2 * moments.sum_nn
    V_e = estimate_variances(squares, moments.n_clusters)
    weights = np.where(moments.n_clusters > 1, n - n_e, 0.0)

    if_independent = (weights * r_e * (1.0 - r_e)).sum(axis=1)
    in_clusters = (weights * (V_e / np.maximum(n_e, 1.0))).sum(axis=1)
    is_known = if_independent > 0
    effects = in_clusters / np.where(is_known, if_independent, 1.0)
    return np.where(is_known, np.maximum(effects, 1.0), 1.0)


def estimate_variances(squares: Array | float, n_groups: Array | float) -> FloatArray:
    """Estimate the variance of a total from the sums of its groups: G / (G - 1) sum s^2."""
    return np.asarray(n_groups / np.maximum(n_groups - 1, 1) * squares)


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows of environments with their weights, and the number of the cluster of each."""

    environments: IntArray
    n_environments: int
    weights: FloatArray
    clusters: IntArray

    def add_up(self, values: FloatArray) -> FloatArray:
        """Add up values of rows, times their weights, by environment."""
        sums = np.bincount(self.environments, self.weights * values, self.n_environments)
        return np.asarray(sums)


def compute_effective_sizes(outputs: FloatArray, rows: SampledRows) -> FloatArray:
    """Compute how many independent rows tell as much about the means of each environment.

    `outputs` are numbers y by (row, output), of classes their indicators. In an environment with
    weights w of the sum W, weighted means m and C clusters,

        V = C / (C - 1)  sum over clusters (sum w (y - m))^2 / W^2       the variance of m
        n = (sum over outputs of the variance of y) / (sum over outputs of V)

    but no more than its rows. Where the outcome does not vary, or there is one cluster, it is
    Kish's (sum W_c)^2 / sum W_c^2, with the sums of weights of the clusters.

    >>> rows = SampledRows(np.zeros(6, int), 1, np.ones(6), clusters=np.array([0, 0, 1, 1, 2, 2]))
    >>> outcomes = np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [1.0]])
    >>> compute_effective_sizes(outcomes, rows).round(6).tolist()
    [2.0]
    """
    n_rows = np.bincount(rows.environments, minlength=rows.n_environments)
    W = np.maximum(rows.add_up(np.ones(len(outputs))), MIN_WEIGHT)

    # a group in two environments is a cluster in each
    pairs = rows.environments * (int(rows.clusters.max(initial=0)) + 1) + rows.clusters
    cluster_of_row, first_rows = _number_by_first_rows(pairs)
    environment_of_cluster = rows.environments[first_rows]

    def add_up_squares(values: FloatArray) -> FloatArray:
        """Add up values by cluster, and the squares of these sums by environment."""
        sums = np.bincount(cluster_of_row, rows.weights * values)
        squares = np.bincount(environment_of_cluster, sums**2, rows.n_environments)
        return np.asarray(squares)

    variances = np.zeros(rows.n_environments)
    variances_of_means = np.zeros(rows.n_environments)
    C = np.bincount(environment_of_cluster, minlength=rows.n_environments)
    for y in outputs.T:
        m = rows.add_up(y) / W
        deviations = y - m[rows.environments]
        variances += rows.add_up(deviations**2) / W
        variances_of_means += estimate_variances(add_up_squares(deviations), C) / W**2

    kish_sizes = W**2 / np.maximum(add_up_squares(np.ones(len(outputs))), MIN_WEIGHT)
    is_known = (C > 1) & (variances_of_means > 0)
    sizes = variances / np.where(is_known, variances_of_means, 1.0)
    return np.minimum(np.where(is_known, sizes, kish_sizes), n_rows)


def _number_by_first_rows(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Number distinct labels in the order of their first rows; return these, too.

    Sums over clusters in the order of their labels would differ in the last bit if groups were
    named otherwise.

    >>> numbers, first_rows = _number_by_first_rows(np.array([7, 7, 2, 7, 5]))
    >>> numbers.tolist(), first_rows.tolist()
    ([0, 0, 1, 0, 2], [0, 2, 4])
    """
    _, first_rows, places = np.unique(labels, return_index=True, return_inverse=True)
    number_of_place = np.empty(len(first_rows), dtype=np.int64)
    number_of_place[np.argsort(first_rows)] = np.arange(len(first_rows))
    return number_of_place[places], np.sort(first_rows)
