"""Clusters on workers: rows that belong together, of which several partitions may have some.

The sums over a cluster are squared only when those of all partitions were added up. So each piece
counts its rows by part, cluster and outcome, these counts are added up, and the moments of clusters
follow from the sum (`icscm.engine.counts.ClusterPatterns`). A *part* is what a rule covers, a leaf
of a tree, or a pattern.

    piece 1    part  cluster  n  p         piece 2    part  cluster  n  p
               0     3        2  1                    0     3        1  1
               0     5        1  0                    1     3        4  2

    added up   (0, 3): 3 2    (0, 5): 1 0    (1, 3): 4 2
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.clusters import find_first_positive
from icscm.engine.counts import BinnedRule, BinnedSplit, ClusterPatterns
from icscm.engine.patterns import find_patterns
from icscm.engine.pieces import Piece, find_leaves
from icscm.engine.stores import Rows
from icscm.stats.design_effects import ClusterSums
from icscm.tables.environments import encode_environments

# A cluster, by the labels of its environment and of its group.
ClusterLabel = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class ClusterNumbers:
    """The number of each cluster of all partitions, by its labels, as every source numbers them.

    Those of environment e are numbered from `starts[e]` on, by group within it.
    """

    number_of_label: dict[ClusterLabel, int]
    starts: IntArray


def number_cluster_labels(labels: set[ClusterLabel], environments: Sequence[Any]) -> ClusterNumbers:
    """Number the clusters of all partitions."""
    listed = list(labels)
    groups = [group for _, group in listed]
    group_numbers, _ = encode_environments(groups, len(groups), what="groups")
    position_of_environment = {label: position for position, label in enumerate(environments)}
    environment_numbers = np.array([position_of_environment[label] for label, _ in listed])

    order = np.lexsort((group_numbers, environment_numbers))
    starts = np.searchsorted(environment_numbers[order], np.arange(len(environments) + 1))
    number_of_label = {listed[position]: number for number, position in enumerate(order.tolist())}
    return ClusterNumbers(number_of_label=number_of_label, starts=starts)


# --- counts of a piece ----------------------------------------------------------------------------


class ClusterCounts(NamedTuple):
    """Rows by part and cluster, and those of them that are positive.

    A cell is part * n_clusters + cluster; the cells that occur are in ascending order. Like
    everything that workers send, it is a tuple.
    """

    cells: IntArray
    counts: CountArray


def count_cells(cells: IntArray, is_positive: BoolArray) -> ClusterCounts:
    """Count rows by the cell of each, and by outcome: negative and positive ones."""
    distinct_cells, numbers = np.unique(cells, return_inverse=True)
    positives = np.bincount(numbers[is_positive], minlength=len(distinct_cells))
    negatives = np.bincount(numbers[~is_positive], minlength=len(distinct_cells))
    counts = np.column_stack((negatives, positives)).astype(COUNT_DTYPE)
    return ClusterCounts(distinct_cells, counts)


def add_cluster_counts(parts: Sequence[ClusterCounts]) -> ClusterCounts:
    """Add up the counts of several pieces."""
    cells = np.concatenate([part.cells for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    distinct_cells, numbers = np.unique(cells, return_inverse=True)
    sums = np.zeros((len(distinct_cells), 2), dtype=COUNT_DTYPE)
    np.add.at(sums, numbers, counts)
    return ClusterCounts(distinct_cells, sums)


def find_positive(piece: Piece, rows: Rows) -> BoolArray:
    """Find which of some rows are positive: they come last."""
    return np.arange(len(rows)) >= find_first_positive(rows, piece.n_environments)


def count_covered_clusters(
    piece: Piece, codes: Array, rows: Rows, *, rules: Sequence[BinnedRule], n_clusters: int
) -> ClusterCounts:
    """Count what each rule covers of some rows; `codes` are the clusters of all rows."""
    cluster_of_row = rows.take(codes).astype(np.int64)
    is_positive = find_positive(piece, rows)
    parts = [ClusterCounts(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=COUNT_DTYPE))]
    for number, rule in enumerate(rules):
        is_covered = piece.find_covered(rows, rule)
        cells = number * n_clusters + cluster_of_row[is_covered]
        parts.append(count_cells(cells, is_positive[is_covered]))
    return add_cluster_counts(parts)


def count_leaf_clusters(
    piece: Piece, codes: Array, *, splits: Sequence[BinnedSplit], n_clusters: int
) -> ClusterCounts:
    """Count all rows by leaf of a tree."""
    rows = piece.rows
    leaves = find_leaves(splits, len(rows), partial(piece.find_covered, rows))
    cells = leaves * n_clusters + rows.take(codes)
    return count_cells(cells, find_positive(piece, rows))


def count_pattern_clusters(
    piece: Piece,
    codes: Array,
    *,
    rules: Sequence[BinnedRule],
    patterns: BoolArray,
    n_clusters: int,
) -> ClusterCounts:
    """Count all rows by the truth of each rule; `patterns` are those of all pieces, in order."""
    rows = piece.rows
    truths = [~piece.find_covered(rows, rule) for rule in rules]
    patterns_here = find_patterns(truths, len(rows))
    position_of_pattern = {pattern.tobytes(): number for number, pattern in enumerate(patterns)}
    # a piece without rows has a pattern that no row of any piece may have
    positions = [
        position_of_pattern.get(pattern.tobytes(), 0) for pattern in patterns_here.patterns
    ]
    pattern_of_row = np.array(positions, dtype=np.int64).take(patterns_here.numbers)
    cells = pattern_of_row * n_clusters + rows.take(codes)
    return count_cells(cells, find_positive(piece, rows))


# --- what follows from the counts of all pieces ---------------------------------------------------


def make_cluster_patterns(counted: ClusterCounts, starts: IntArray) -> ClusterPatterns:
    """Make the table of parts and clusters from the counts of all pieces."""
    n_clusters = int(starts[-1])
    return ClusterPatterns(
        patterns=counted.cells // n_clusters,
        clusters=counted.cells % n_clusters,
        counts=counted.counts,
        starts=starts,
    )


def square_leaf_residuals(leaves: ClusterPatterns, p: FloatArray) -> ClusterSums:
    """Square the clusters' sums of outcome - p, with p (leaf, environment), by environment."""
    n_clusters = int(leaves.starts[-1])
    n_environments = len(leaves.starts) - 1
    environment_of_cluster = np.repeat(np.arange(n_environments), np.diff(leaves.starts))

    negatives, positives = leaves.counts.T
    p_of_pair = p[leaves.patterns, environment_of_cluster[leaves.clusters]]
    residuals = positives - (negatives + positives) * p_of_pair
    sums = np.bincount(leaves.clusters, residuals, n_clusters)
    return ClusterSums(
        squares=np.bincount(environment_of_cluster, sums**2, n_environments).astype(np.float64),
        n_groups=np.diff(leaves.starts).astype(np.float64),
    )
