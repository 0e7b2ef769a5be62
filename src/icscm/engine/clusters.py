"""Rows that belong together: the visits of a patient, the genomes of a lineage.

A cluster is a group within one environment. A leaf takes some rows of each cluster; what a test
needs to know of these are four sums over the clusters of an environment, its moments.

    leaf   environment a             moments of a
           cluster    n  p           clusters  sum n n  sum n p  sum p p
           0          3  2     -->   2         13       8        5
           1          2  1
           2          0  0
"""

from collections.abc import Sequence

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, CountArray, FloatArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import BinnedRule
from icscm.engine.counts import ClusterPatterns as ClusterPatterns
from icscm.engine.counts import Clusters as Clusters
from icscm.engine.pieces import Piece, number_patterns
from icscm.engine.stores import Rows
from icscm.stats.design_effects import ClusterSums

# Covers every row: a feature that is in no store has one bin.
EVERY_ROW = BinnedRule(-1, np.zeros(1, dtype=np.bool_))


def number_clusters(
    groups: Array, environments: Array, n_environments: int, position: Array, unit: float = 1.0
) -> Clusters:
    """Clusters from the number of the group and of the environment of each row, in any order.

    `position` says where each row is among the sorted ones.
    """
    n_groups = int(groups.max(initial=0)) + 1
    pairs = environments.astype(np.int64) * n_groups + groups
    found, codes = np.unique(pairs, return_inverse=True)
    ordered = np.empty(len(codes), dtype=np.int32)
    ordered[position] = codes
    starts = np.searchsorted(found, np.arange(n_environments + 1) * n_groups)
    return Clusters(ordered, starts, found % n_groups, unit)


def count_clusters(
    piece: Piece, rows: Rows, clusters: Clusters, rules: Sequence[BinnedRule]
) -> CountArray:
    """Moments (rule, environment, 4) of what each rule covers of some rows."""
    codes, n_negative = rows.take(clusters.codes), int(rows.bounds[piece.n_environments])
    moments = np.zeros((len(rules), piece.n_environments, 4), dtype=COUNT_DTYPE)
    n, p = np.empty((2, int(clusters.starts[-1])), dtype=COUNT_DTYPE)
    for rule, own in zip(rules, moments, strict=True):
        covered = piece.find_covered(rows, rule)
        _kernels.add_moments(covered, codes, n_negative, clusters.starts, n, p, own)
    return moments


def square_sums(values: FloatArray, codes: Array, starts: IntArray) -> ClusterSums:
    """Square the clusters' sums of values, and add up the squares and clusters by environment.

    >>> values, codes = np.array([1.0, -3.0, 2.0, 5.0]), np.array([0, 1, 0, 2])
    >>> sums = square_sums(values, codes, starts=np.array([0, 2, 3]))
    >>> sums.squares.tolist(), sums.n_groups.tolist()
    ([18.0, 25.0], [2.0, 1.0])
    """
    n_clusters = int(starts[-1])
    n_environments = len(starts) - 1
    sums = np.bincount(codes, values, n_clusters)
    has_rows = np.bincount(codes, minlength=n_clusters) > 0
    environments = np.repeat(np.arange(n_environments), np.diff(starts))
    return ClusterSums(
        squares=np.asarray(np.bincount(environments, sums**2, n_environments), np.float64),
        n_groups=np.asarray(np.bincount(environments, has_rows, n_environments), np.float64),
    )


def count_cluster_patterns(
    piece: Piece, clusters: Clusters, rules: Sequence[BinnedRule]
) -> ClusterPatterns:
    """All rows by cluster and the truth of each rule; patterns are those of `count_patterns`."""
    rows, n_clusters = piece.rows, int(clusters.starts[-1])
    _, patterns = number_patterns([~piece.find_covered(rows, rule) for rule in rules], len(rows))
    own = patterns * n_clusters + rows.take(clusters.codes)
    keys, at = np.unique(own, return_inverse=True)
    halves = np.split(at, [int(rows.bounds[piece.n_environments])])
    counts = np.stack([np.bincount(half, minlength=len(keys)) for half in halves], axis=1)
    return ClusterPatterns(keys // n_clusters, keys % n_clusters, counts, clusters.starts)
