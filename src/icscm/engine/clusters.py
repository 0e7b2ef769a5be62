"""Rows that belong together: the visits of a patient, the genomes of a lineage.

A cluster is a group within one environment. A leaf takes some rows of each cluster; what a test
needs to know of these are four sums over the clusters of an environment
(`icscm.stats.design_effects.ClusterMoments`). Where rows of all environments are added up, the
clusters of a group are one.

Clusters are numbered by environment, and by group within it:

    cluster        0  1  2 | 3  4        starts    0  3  5
    environment    a  a  a | b  b
    group          0  1  2 | 0  2        a group with rows in a and in b makes two clusters
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

# Covers every row: a column that is in no store has one bin.
EVERY_ROW = BinnedRule(-1, np.zeros(1, dtype=np.bool_))


def number_clusters(
    groups: Array, environments: Array, n_environments: int, position: Array, unit: float = 1.0
) -> Clusters:
    """Number the clusters, given the number of the group and of the environment of each row.

    Rows are in any order; `position` says where each of them is among the sorted ones.
    """
    n_groups = int(groups.max(initial=0)) + 1
    pairs = find_pairs(environments, groups, n_seconds=n_groups)

    cluster_of_sorted_row = np.empty(len(pairs.number_of_row), dtype=np.int32)
    cluster_of_sorted_row[position] = pairs.number_of_row
    # the clusters, as pairs, are sorted by environment
    starts = np.searchsorted(pairs.first, np.arange(n_environments + 1))
    return Clusters(codes=cluster_of_sorted_row, starts=starts, groups=pairs.second, unit=unit)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of two numbers that occur among rows, in ascending order, and that of each row."""

    first: IntArray
    second: IntArray
    number_of_row: IntArray

    def __len__(self) -> int:
        return len(self.first)


def find_pairs(first: Array, second: Array, *, n_seconds: int) -> Pairs:
    """Find which pairs of two numbers occur, given both for each row; the second is < `n_seconds`.

    A pair is sorted as one number:    pair = first * n_seconds + second

    >>> pairs = find_pairs(np.array([1, 0, 1]), np.array([0, 2, 0]), n_seconds=3)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.number_of_row.tolist()
    ([0, 1], [2, 0], [1, 0, 1])
    """
    pair_of_row = first.astype(np.int64, copy=False) * n_seconds + second
    pairs, number_of_row = np.unique(pair_of_row, return_inverse=True)
    return Pairs(
        first=pairs // n_seconds,
        second=pairs % n_seconds,
        number_of_row=number_of_row,
    )


def count_moments(
    piece: Piece, rows: Rows, clusters: Clusters, rules: Sequence[BinnedRule]
) -> ClusterMoments:
    """Count the moments (rule, environment) of what each rule covers of some rows.

    Of the rows of a cluster that a rule covers, n in all and p positive ones are counted. The
    moments are the sums of  1 if n > 0,  n n,  n p  and  p p  over the clusters of an environment.
    """
    cluster_of_row = rows.take(clusters.codes)
    n_clusters = int(clusters.starts[-1])
    first_positive = find_first_positive(rows, piece.n_environments)
    moments = make_zero_moments(n_rules=len(rules), n_environments=piece.n_environments)

    # by cluster; written anew for each rule, as there may be millions of clusters
    n_covered = np.empty(n_clusters, dtype=COUNT_DTYPE)
    n_covered_positives = np.empty(n_clusters, dtype=COUNT_DTYPE)
    for number, rule in enumerate(rules):
        is_covered = piece.find_covered(rows, rule)
        _kernels.count_clusters(
            is_covered, cluster_of_row, first_positive, n_covered, n_covered_positives
        )
        _kernels.add_moments(
            n_covered,
            n_covered_positives,
            clusters.starts,
            moments.n_clusters[number],
            moments.sum_nn[number],
            moments.sum_np[number],
            moments.sum_pp[number],
        )
    return moments


def make_zero_moments(*, n_rules: int, n_environments: int) -> ClusterMoments:
    """Make moments (rule, environment) of 0, for a kernel to add to."""
    shape = n_rules, n_environments
    return ClusterMoments(
        n_clusters=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_nn=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_np=np.zeros(shape, dtype=COUNT_DTYPE),
        sum_pp=np.zeros(shape, dtype=COUNT_DTYPE),
    )


def find_first_positive(rows: Rows, n_environments: int) -> int:
    """Find the place of the first positive row: as many negative rows all come before it.

    Rows are sorted into segments by outcome and environment, so the first `n_environments` segments
    are the negative ones.
    """
    first_positive_segment = n_environments
    return int(rows.bounds[first_positive_segment])


def square_sums(values: FloatArray, clusters: Clusters) -> ClusterSums:
    """Square the clusters' sums of the values of their rows, and add up the squares.

    They are added up by environment, and once more over groups, whose clusters are added up before
    they are squared: see `ClusterSums`. Clusters without a row do not count.

    >>> clusters = Clusters(
    ...     codes=np.array([0, 1, 0, 2]), starts=np.array([0, 2, 3]), groups=np.array([0, 1, 0])
    ... )
    >>> sums = square_sums(np.array([1.0, -3.0, 2.0, 5.0]), clusters)
    >>> sums.squares.tolist(), sums.n_groups.tolist(), sums.shared
    ([18.0, 25.0], [2.0, 1.0], 30.0)
    """
    n_clusters = int(clusters.starts[-1])
    n_environments = len(clusters.starts) - 1
    sums = np.bincount(clusters.codes, weights=values, minlength=n_clusters)
    has_rows = np.bincount(clusters.codes, minlength=n_clusters) > 0

    environment_of_cluster = np.repeat(np.arange(n_environments), np.diff(clusters.starts))
    squares = np.bincount(environment_of_cluster, weights=sums**2, minlength=n_environments)
    n_groups = np.bincount(environment_of_cluster, weights=has_rows, minlength=n_environments)

    # Of a group in one environment the two are equal to the last bit, and it shares nothing.
    squares_of_sums = np.bincount(clusters.groups, weights=sums) ** 2
    sums_of_squares = np.bincount(clusters.groups, weights=sums**2)
    return ClusterSums(
        squares=np.asarray(squares, np.float64),
        n_groups=np.asarray(n_groups, np.float64),
        shared=float((squares_of_sums - sums_of_squares).sum()),
    )


def count_cluster_patterns(
    piece: Piece, clusters: Clusters, rules: Sequence[BinnedRule]
) -> ClusterPatterns:
    """Count all rows by cluster and pattern; patterns are numbered as in `count_patterns`."""
    rows = piece.rows
    n_clusters = int(clusters.starts[-1])
    truths = [~piece.find_covered(rows, rule) for rule in rules]
    pattern_of_row = find_patterns(truths, len(rows)).numbers
    cluster_of_row = rows.take(clusters.codes)
    pairs = find_pairs(pattern_of_row, cluster_of_row, n_seconds=n_clusters)

    first_positive = find_first_positive(rows, piece.n_environments)
    pairs_of_negatives = pairs.number_of_row[:first_positive]
    pairs_of_positives = pairs.number_of_row[first_positive:]
    negatives = np.bincount(pairs_of_negatives, minlength=len(pairs))
    positives = np.bincount(pairs_of_positives, minlength=len(pairs))
    return ClusterPatterns(
        patterns=pairs.first,
        clusters=pairs.second,
        counts=np.column_stack((negatives, positives)),
        starts=clusters.starts,
    )
