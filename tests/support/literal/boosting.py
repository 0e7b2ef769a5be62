"""The kernels of the screen's boosted trees once more in plain Python: slow, short, row by row.

A tree is grown by trying every cut of every column on the rows of every leaf. A contribution is
what its definition says: the score, less the mean score with the column set to each bin in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Node:
    """A node of a tree that is being grown, with its rows and the best split that it could have."""

    rows: list[int]
    gain: float
    best_column: int
    best_cut: int
    column: int = -1
    cut: int = 0
    left: int = -1
    right: int = -1


def grow_tree(bins, moments, n_bins, max_leaves, min_rows, ridge, min_hessian, learning_rate):
    def make_node(rows):
        return Node(rows, *_find_best_split(bins, moments, n_bins, rows, ridge, min_hessian))

    nodes = [make_node(list(range(bins.shape[1])))]
    n_leaves = 1
    while n_leaves < max_leaves:
        node = max(nodes, key=lambda node: node.gain)
        if node.gain <= 0:
            break
        node.gain = 0.0
        bins_of_column = bins[node.best_column]
        left_rows = [row for row in node.rows if bins_of_column[row] <= node.best_cut]
        right_rows = [row for row in node.rows if bins_of_column[row] > node.best_cut]
        if min(len(left_rows), len(right_rows)) < min_rows:
            continue
        node.column = node.best_column
        node.cut = node.best_cut
        node.left = len(nodes)
        node.right = len(nodes) + 1
        nodes += [make_node(left_rows), make_node(right_rows)]
        n_leaves += 1

    rows_by_leaf, start, stop = _sort_rows_by_leaf(nodes)
    return (
        np.array([node.column for node in nodes]),
        np.array([node.cut for node in nodes]),
        np.array([node.left for node in nodes]),
        np.array([node.right for node in nodes]),
        np.array([_compute_value(node, moments, ridge, learning_rate) for node in nodes]),
        np.array(rows_by_leaf),
        np.array(start),
        np.array(stop),
    )


def _find_best_split(bins, moments, n_bins, rows, ridge, min_hessian):
    """Return the gain, the column and the cut of the best split of some rows."""
    n_outputs = moments.shape[1] // 2
    total = _add_up(moments, rows)
    best = 0.0, -1, -1
    for column in range(len(bins)):
        for cut in range(n_bins[column] - 1):
            left = _add_up(moments, [row for row in rows if bins[column, row] <= cut])
            right = total - left
            if min(left[n_outputs:].sum(), right[n_outputs:].sum()) < min_hessian:
                continue
            gain = -_sum_explained(total, ridge)
            for output in range(n_outputs):
                gain += left[output] ** 2 / (left[n_outputs + output] + ridge)
                gain += right[output] ** 2 / (right[n_outputs + output] + ridge)
            if gain > best[0]:
                best = gain, column, cut
    return best


def _sum_explained(sums, ridge):
    """Return the sum of G^2 / (H + ridge) over outputs."""
    n_outputs = len(sums) // 2
    explained = 0.0
    for output in range(n_outputs):
        explained += sums[output] ** 2 / (sums[n_outputs + output] + ridge)
    return explained


def _compute_value(node, moments, ridge, learning_rate):
    """Return the value of a leaf, learning_rate G / (H + ridge); 0 for a node that is split."""
    n_outputs = moments.shape[1] // 2
    if node.column >= 0:
        return [0.0] * n_outputs
    sums = _add_up(moments, node.rows)
    return [
        learning_rate * sums[output] / (sums[n_outputs + output] + ridge)
        for output in range(n_outputs)
    ]


def _add_up(moments, rows):
    sums = np.zeros(moments.shape[1])
    for row in rows:
        sums += moments[row]
    return sums


def _sort_rows_by_leaf(nodes):
    """Return the rows from the leftmost leaf to the rightmost, and where those of a node are."""
    rows_by_leaf = []
    start = [0] * len(nodes)
    stop = [0] * len(nodes)

    def visit(number):
        node = nodes[number]
        start[number] = len(rows_by_leaf)
        if node.column < 0:
            rows_by_leaf.extend(node.rows)
        else:
            visit(node.left)
            visit(node.right)
        stop[number] = len(rows_by_leaf)

    visit(0)
    return rows_by_leaf, start, stop


def add_leaf_values(scores, column, value, rows, start, stop):
    for node in range(len(column)):
        if column[node] < 0:
            for position in range(start[node], stop[node]):
                scores[rows[position]] += value[node]


def add_scores(bins, roots, column, cut, left, right, value, scores):
    for root in roots:
        for row in range(len(bins)):
            scores[row] += value[_find_leaf(bins[row], root, column, cut, left, right)]


def add_contributions(
    bins, environments, drawn, shares, roots, column, cut, left, right, value, contributions
):
    def score(bins_of_row, root):
        return value[_find_leaf(bins_of_row, root, column, cut, left, right)]

    for root in roots:
        for row in range(len(bins)):
            share_of_bin = np.diff(shares[environments[row]])
            mean_score = 0.0
            for drawn_bin in range(len(share_of_bin)):
                bins_with_drawn = bins[row].copy()
                bins_with_drawn[drawn] = drawn_bin
                mean_score = mean_score + share_of_bin[drawn_bin] * score(bins_with_drawn, root)
            contributions[row] += score(bins[row], root) - mean_score


def _find_leaf(bins_of_row, root, column, cut, left, right):
    node = root
    while column[node] >= 0:
        node = left[node] if bins_of_row[column[node]] <= cut[node] else right[node]
    return node
