"""Clusters on workers: rows that belong together, of which several partitions may have some.

The sums over a cluster are squared only when those of all partitions were added up. So each piece
counts its rows by part, cluster and outcome, these counts are added up, and the moments of clusters
follow from the sum (`icscm.engine.counts.ClusterPatterns`). A *part* is what rows are counted by,
besides their cluster: the rows that one rule covers, a leaf of a tree, or a pattern.

    piece 1                                       piece 2
    part  cluster  negatives  positives           part  cluster  negatives  positives
    0     3        2          1                   0     3        1          1
    0     5        1          0                   1     3        4          2

    added up
    part  cluster  negatives  positives
    0     3        3          2
    0     5        1          0
    1     3        4          2
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
    # Three lists in the same order, that of the set: the label of each cluster, and the numbers of
    # its group and of its environment.
    label_list = list(labels)
    groups = [group for _, group in label_list]
    group_numbers, _ = encode_environments(groups, len(groups), what="groups")
    number_of_environment = {environment: number for number, environment in enumerate(environments)}
    environment_numbers = np.array(
        [number_of_environment[environment] for environment, _ in label_list]
    )

    # The order of the clusters' numbers: by environment (the last key is the first to count), then
    # by group. Cluster 0 is at position order[0] of the three lists.
    order = np.lexsort((group_numbers, environment_numbers))
    starts = np.searchsorted(environment_numbers[order], np.arange(len(environments) + 1))
    number_of_label = {
        label_list[position]: number for number, position in enumerate(order.tolist())
    }
    return ClusterNumbers(number_of_label=number_of_label, starts=starts)


# --- cells: a part and a cluster as one number ----------------------------------------------------


def encode_cells(parts: int | IntArray, clusters: Array, n_clusters: int) -> IntArray:
    """Return the cell of each row, given its cluster and its part, or the part of all rows.

    A cell is a pair of a part and a cluster as one number, by which rows are sorted and counted:

        cell = part * n_clusters + cluster

    It has 64 bits, whatever the clusters come as: the product may be too large for 32.

    >>> encode_cells(np.array([0, 0, 1]), np.array([3, 5, 3]), n_clusters=6)
    array([3, 5, 9])
    """
    wide_clusters = clusters.astype(np.int64, copy=False)
    cells: IntArray = np.asarray(parts, dtype=np.int64) * n_clusters + wide_clusters
    return cells


def decode_cells(cells: IntArray, n_clusters: int) -> tuple[IntArray, IntArray]:
    """Return the parts and the clusters of cells: the inverse of `encode_cells`.

    >>> decode_cells(np.array([3, 5, 9]), n_clusters=6)
    (array([0, 0, 1]), array([3, 5, 3]))
    """
    return cells // n_clusters, cells % n_clusters


# --- counts of a piece ----------------------------------------------------------------------------


class ClusterCounts(NamedTuple):
    """Rows by part and cluster: how many are negative, and how many positive.

    `cells` are the pairs of a part and a cluster that occur (`encode_cells`), in ascending order;
    `counts` are (cell, outcome), negatives first. Like everything that workers send, it is a tuple.
    """

    cells: IntArray
    counts: CountArray


def make_empty_counts() -> ClusterCounts:
    """Make the counts of no rows."""
    return ClusterCounts(
        cells=np.empty(0, dtype=np.int64),
        counts=np.empty((0, 2), dtype=COUNT_DTYPE),
    )


def count_cells(cell_of_row: IntArray, is_positive: BoolArray) -> ClusterCounts:
    """Count rows by the cell of each, and by outcome: negative and positive ones."""
    cells, position_of_row = np.unique(cell_of_row, return_inverse=True)
    negatives = np.bincount(position_of_row[~is_positive], minlength=len(cells))
    positives = np.bincount(position_of_row[is_positive], minlength=len(cells))
    counts = np.column_stack((negatives, positives)).astype(COUNT_DTYPE)
    return ClusterCounts(cells, counts)


def add_cluster_counts(counts_of_pieces: Sequence[ClusterCounts]) -> ClusterCounts:
    """Add up the counts of several pieces, or of several parts of one."""
    stacked_cells = np.concatenate([counted.cells for counted in counts_of_pieces])
    stacked_counts = np.concatenate([counted.counts for counted in counts_of_pieces])
    cells, positions = np.unique(stacked_cells, return_inverse=True)
    sums = np.zeros((len(cells), 2), dtype=COUNT_DTYPE)
    np.add.at(sums, positions, stacked_counts)
    return ClusterCounts(cells, sums)


def find_positive(piece: Piece, rows: Rows) -> BoolArray:
    """Find which of some rows are positive: they come last."""
    return np.arange(len(rows)) >= find_first_positive(rows, piece.n_environments)


def count_covered_clusters(
    piece: Piece, codes: Array, rows: Rows, *, rules: Sequence[BinnedRule], n_clusters: int
) -> ClusterCounts:
    """Count some rows by cluster, with what each rule covers as a part.

    `codes` are the clusters of all rows of the piece. A row is counted once for each rule that
    covers it.
    """
    cluster_of_row = rows.take(codes)
    is_positive = find_positive(piece, rows)

    counts_of_rules = [make_empty_counts()]  # without a rule there is something to add up, too
    for part, rule in enumerate(rules):
        is_covered = piece.find_covered(rows, rule)
        cell_of_row = encode_cells(part, cluster_of_row[is_covered], n_clusters)
        counts_of_rules.append(count_cells(cell_of_row, is_positive[is_covered]))
    return add_cluster_counts(counts_of_rules)


def count_leaf_clusters(
    piece: Piece, codes: Array, *, splits: Sequence[BinnedSplit], n_clusters: int
) -> ClusterCounts:
    """Count all rows by cluster, with the leaves of a tree as parts."""
    rows = piece.rows
    leaf_of_row = find_leaves(splits, len(rows), partial(piece.find_covered, rows))
    cell_of_row = encode_cells(leaf_of_row, rows.take(codes), n_clusters)
    return count_cells(cell_of_row, find_positive(piece, rows))


def count_pattern_clusters(
    piece: Piece,
    codes: Array,
    *,
    rules: Sequence[BinnedRule],
    patterns: BoolArray,
    n_clusters: int,
) -> ClusterCounts:
    """Count all rows by cluster, with patterns, the truths of all rules, as parts.

    `patterns` (pattern, rule) are those of all pieces, so that all number them alike; a piece may
    lack some of them.
    """
    rows = piece.rows
    if len(rows) == 0:
        return make_empty_counts()

    # a rule covers the rows of which it is false
    is_true_by_rule = [~piece.find_covered(rows, rule) for rule in rules]
    patterns_here = find_patterns(is_true_by_rule, len(rows))

    # from the piece's own numbers of patterns to those that all pieces share
    number_of_pattern = {pattern.tobytes(): number for number, pattern in enumerate(patterns)}
    shared_numbers = np.array(
        [number_of_pattern[pattern.tobytes()] for pattern in patterns_here.patterns],
        dtype=np.int64,
    )
    pattern_of_row = shared_numbers.take(patterns_here.numbers)
    cell_of_row = encode_cells(pattern_of_row, rows.take(codes), n_clusters)
    return count_cells(cell_of_row, find_positive(piece, rows))


# --- what follows from the counts of all pieces ---------------------------------------------------


def make_cluster_patterns(counted: ClusterCounts, starts: IntArray) -> ClusterPatterns:
    """Make the table of parts and clusters from the counts of all pieces.

    Each part, be it a pattern or not, takes the place of a pattern in this table.
    """
    parts, clusters = decode_cells(counted.cells, n_clusters=int(starts[-1]))
    return ClusterPatterns(
        patterns=parts,
        clusters=clusters,
        counts=counted.counts,
        starts=starts,
    )


def square_leaf_residuals(leaves: ClusterPatterns, p: FloatArray) -> ClusterSums:
    """Square the clusters' sums of outcome - p, with p (leaf, environment), by environment.

    `leaves` has a leaf in the place of each pattern. Its pairs are of a leaf and a cluster.
    """
    n_clusters = int(leaves.starts[-1])
    n_environments = len(leaves.starts) - 1
    environment_of_cluster = np.repeat(np.arange(n_environments), np.diff(leaves.starts))

    leaf_of_pair = leaves.patterns
    cluster_of_pair = leaves.clusters
    negatives, positives = leaves.counts.T
    p_of_pair = p[leaf_of_pair, environment_of_cluster[cluster_of_pair]]
    residuals = positives - (negatives + positives) * p_of_pair
    sums = np.bincount(cluster_of_pair, residuals, n_clusters)
    return ClusterSums(
        squares=np.bincount(environment_of_cluster, sums**2, n_environments).astype(np.float64),
        n_groups=np.diff(leaves.starts).astype(np.float64),
    )
