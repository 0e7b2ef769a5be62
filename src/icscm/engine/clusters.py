"""Rows that belong together: the visits of a patient, the genomes of a lineage.

A cluster is a group within one environment. A leaf takes some rows of each cluster; what a test
needs to know of these are four sums over the clusters of an environment
(`icscm.stats.design_effects.ClusterMoments`).
"""

from collections.abc import Sequence

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, FloatArray, IntArray
from icscm.engine import _kernels
from icscm.engine.counts import BinnedRule
from icscm.engine.counts import ClusterPatterns as ClusterPatterns
from icscm.engine.counts import Clusters as Clusters
from icscm.engine.patterns import find_patterns
from icscm.engine.pieces import Piece
from icscm.engine.stores import Rows
from icscm.stats.design_effects import ClusterMoments, ClusterSums

# Covers every row: a feature that is in no store has one bin.
EVERY_ROW = BinnedRule(-1, np.zeros(1, dtype=np.bool_))


def number_clusters(
    groups: Array, environments: Array, n_environments: int, position: Array, unit: float = 1.0
) -> Clusters:
    """Number the clusters, given the number of the group and of the environment of each row.

    Rows are in any order; `position` says where each of them is among the sorted ones.
    """
    n_groups = int(groups.max(initial=0)) + 1
    pairs = environments.astype(np.int64) * n_groups + groups
    pairs_of_clusters, codes = np.unique(pairs, return_inverse=True)

    sorted_codes = np.empty(len(codes), dtype=np.int32)
    sorted_codes[position] = codes
    first_pairs = np.arange(n_environments + 1) * n_groups
    return Clusters(
        codes=sorted_codes,
        starts=np.searchsorted(pairs_of_clusters, first_pairs),
        groups=pairs_of_clusters % n_groups,
        unit=unit,
    )


def count_moments(
    piece: Piece, rows: Rows, clusters: Clusters, rules: Sequence[BinnedRule]
) -> ClusterMoments:
    """Count the moments (rule, environment) of what each rule covers of some rows."""
    codes = rows.take(clusters.codes)
    n_negative = int(rows.bounds[piece.n_environments])
    shape = len(rules), piece.n_environments
    moments = ClusterMoments(
        n_clusters=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_nn=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_np=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_pp=np.zeros(shape, dtype=COUNT_DTYPE),
    )
    # n and p of each cluster, for the kernel to work with
    n, p = np.empty((2, int(clusters.starts[-1])), dtype=COUNT_DTYPE)
    for number, rule in enumerate(rules):
        is_covered = piece.find_covered(rows, rule)
        _kernels.count_clusters(is_covered, codes, n_negative, n, p)
        _kernels.add_moments(
            n,
            p,
            clusters.starts,
            moments.n_clusters[number],
            moments.sum_nn[number],
            moments.sum_np[number],
            moments.sum_pp[number],
        )
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
    """Count all rows by cluster and pattern; patterns are numbered as in `count_patterns`."""
    rows = piece.rows
    n_clusters = int(clusters.starts[-1])
    truths = [~piece.find_covered(rows, rule) for rule in rules]
    patterns = find_patterns(truths, len(rows))

    pairs_of_rows = patterns.numbers * n_clusters + rows.take(clusters.codes)
    pairs, numbers = np.unique(pairs_of_rows, return_inverse=True)
    # negatives come first in the order of the rows
    n_negative = int(rows.bounds[piece.n_environments])
    negatives = np.bincount(numbers[:n_negative], minlength=len(pairs))
    positives = np.bincount(numbers[n_negative:], minlength=len(pairs))
    return ClusterPatterns(
        patterns=pairs // n_clusters,
        clusters=pairs % n_clusters,
        counts=np.column_stack((negatives, positives)),
        starts=clusters.starts,
    )
