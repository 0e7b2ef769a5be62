"""The inner loops of the screen's boosted trees, compiled.

`tests/support/literal/boosting.py` has their NumPy twins. Bins of rows are bytes, by (column, row)
where trees are grown and by (row, column) where rows run through trees.

A tree is five arrays with an entry for each node: `column` (-1 for a leaf) and `cut`, by which
rows of bins up to the cut go to `left` and all others to `right`, and the `value` of a leaf.
Children come after their parents. Histograms have the axes (column, bin, moment), where the moments
are the gradients of all outputs and then their hessians.
"""

# mypy: disable-error-code="no-untyped-def, assignment"

import numpy as np

from icscm.compiling import compiled

# Nodes of a tree that may wait at a time: as many as a tree has leaves at most.
MAX_PENDING = 64


@compiled
def _add_histogram(bins, rows, moments, histogram):
    """Add the moments of some rows to a histogram."""
    n_moments = moments.shape[1]
    for column in range(len(bins)):
        bins_of_column = bins[column]
        for row in rows:
            cell = histogram[column, bins_of_column[row]]
            for moment in range(n_moments):
                cell[moment] += moments[row, moment]


@compiled
def _find_best_split(histogram, n_bins, ridge, min_hessian):
    """Find the split that gains most: (gain, column, cut), with the column -1 if none gains.

    Splitting a node with gradients G and hessians H gains, summed over outputs,

        G_left^2 / (H_left + ridge) + G_right^2 / (H_right + ridge) - G^2 / (H + ridge)
    """
    n_moments = histogram.shape[2]
    n_outputs = n_moments // 2
    total = np.zeros(n_moments)
    for cell in histogram[0]:
        total += cell
    explained_unsplit = 0.0
    for output in range(n_outputs):
        explained_unsplit += total[output] ** 2 / (total[n_outputs + output] + ridge)

    best_gain = 0.0
    best_column = -1
    best_cut = -1
    left = np.zeros(n_moments)
    for column in range(len(histogram)):
        left[:] = 0.0
        for cut in range(n_bins[column] - 1):
            for moment in range(n_moments):
                left[moment] += histogram[column, cut, moment]
            hessian_left = 0.0
            hessian_right = 0.0
            gain = -explained_unsplit
            for output in range(n_outputs):
                H_left = left[n_outputs + output]
                H_right = total[n_outputs + output] - H_left
                hessian_left += H_left
                hessian_right += H_right
                gain += left[output] ** 2 / (H_left + ridge)
                gain += (total[output] - left[output]) ** 2 / (H_right + ridge)
            if hessian_left < min_hessian or hessian_right < min_hessian:
                continue
            if gain > best_gain:
                best_gain = gain
                best_column = column
                best_cut = cut
    return best_gain, best_column, best_cut


@compiled
def _partition(bins, cut, rows, buffer):
    """Put the rows of bins up to the cut first, each side in its order; return their number."""
    n_left = 0
    n_right = 0
    for row in rows:
        if bins[row] <= cut:
            rows[n_left] = row
            n_left += 1
        else:
            buffer[n_right] = row
            n_right += 1
    rows[n_left:] = buffer[:n_right]
    return n_left


@compiled
def grow_tree(bins, moments, n_bins, max_leaves, min_rows, ridge, min_hessian, learning_rate):
    """Grow a tree leaf by leaf: the leaf is split next whose best split gains most.

    Of two children the one of fewer rows is counted; the histogram of the other is the parent's
    less that. Returns the five arrays of the tree, the rows sorted by leaf, and where the rows of
    each node start and stop among them.
    """
    n_columns, n_rows = bins.shape
    n_moments = moments.shape[1]
    n_outputs = n_moments // 2
    max_nodes = 2 * max_leaves - 1
    column = np.full(max_nodes, -1, np.int32)
    cut = np.zeros(max_nodes, np.int32)
    left = np.full(max_nodes, -1, np.int32)
    right = np.full(max_nodes, -1, np.int32)
    value = np.zeros((max_nodes, n_outputs))
    start = np.zeros(max_nodes, np.int64)
    stop = np.zeros(max_nodes, np.int64)

    # of each node that may still be split, its best split and where its histogram is
    gain = np.zeros(max_nodes)
    best_column = np.zeros(max_nodes, np.int32)
    best_cut = np.zeros(max_nodes, np.int32)
    place = np.zeros(max_nodes, np.int32)
    histograms = np.zeros((max_leaves, n_columns, n_bins.max(), n_moments))

    rows = np.arange(n_rows).astype(np.int32)
    buffer = np.empty(n_rows, np.int32)
    stop[0] = n_rows
    n_nodes = 1
    n_leaves = 1
    _add_histogram(bins, rows, moments, histograms[0])
    gain[0], best_column[0], best_cut[0] = _find_best_split(
        histograms[0], n_bins, ridge, min_hessian
    )

    while n_leaves < max_leaves:
        node = gain[:n_nodes].argmax()
        if gain[node] <= 0.0:
            break
        rows_of_node = rows[start[node] : stop[node]]
        n_left = _partition(bins[best_column[node]], best_cut[node], rows_of_node, buffer)
        n_right = len(rows_of_node) - n_left
        gain[node] = 0.0
        if n_left < min_rows or n_right < min_rows:
            continue

        column[node] = best_column[node]
        cut[node] = best_cut[node]
        left_node = n_nodes
        right_node = n_nodes + 1
        n_nodes += 2
        left[node] = left_node
        right[node] = right_node
        start[left_node] = start[node]
        stop[left_node] = start[node] + n_left
        start[right_node] = start[node] + n_left
        stop[right_node] = stop[node]

        small, large = left_node, right_node
        if n_right < n_left:
            small, large = right_node, left_node
        place[large] = place[node]
        place[small] = n_leaves
        n_leaves += 1
        _add_histogram(bins, rows[start[small] : stop[small]], moments, histograms[place[small]])
        histograms[place[large]] -= histograms[place[small]]
        for child in (left_node, right_node):
            gain[child], best_column[child], best_cut[child] = _find_best_split(
                histograms[place[child]], n_bins, ridge, min_hessian
            )

    for node in range(n_nodes):
        if column[node] >= 0:
            continue
        totals = np.zeros(n_moments)
        for cell in histograms[place[node], 0]:
            totals += cell
        for output in range(n_outputs):
            hessian = totals[n_outputs + output] + ridge
            value[node, output] = learning_rate * totals[output] / hessian
    return (
        column[:n_nodes],
        cut[:n_nodes],
        left[:n_nodes],
        right[:n_nodes],
        value[:n_nodes],
        rows,
        start[:n_nodes],
        stop[:n_nodes],
    )


@compiled
def add_leaf_values(scores, column, value, rows, start, stop):
    """Add to the scores (row, output) the value of each row's leaf."""
    for node in range(len(column)):
        if column[node] >= 0:
            continue
        for row in rows[start[node] : stop[node]]:
            for output in range(scores.shape[1]):
                scores[row, output] += value[node, output]


@compiled
def add_scores(bins, roots, column, cut, left, right, value, scores):
    """Add to the scores (row, output) those of trees, which begin at the nodes `roots`."""
    for root in roots:
        for row in range(len(bins)):
            node = root
            while column[node] >= 0:
                node = left[node] if bins[row, column[node]] <= cut[node] else right[node]
            for output in range(scores.shape[1]):
                scores[row, output] += value[node, output]


@compiled
def _average_over_bins(
    bins, node, drawn, shares, column, cut, left, right, value, contributions, pending
):
    """Subtract from the contributions of a row the mean value of the leaves below a node.

    The bin of the column `drawn` is not the row's own but any bin of its environment. Where the
    column is cut the row takes both ways, each with the interval of bins [low, high) that leads
    there; one of them waits in `pending`, as (node, low, high). The share of an interval is
    shares[high] - shares[low].
    """
    pending[0, 0] = node
    pending[0, 1] = 0
    pending[0, 2] = len(shares) - 1
    n_pending = 1
    while n_pending > 0:
        n_pending -= 1
        node = pending[n_pending, 0]
        low = pending[n_pending, 1]
        high = pending[n_pending, 2]
        while column[node] >= 0:
            if column[node] != drawn:
                node = left[node] if bins[column[node]] <= cut[node] else right[node]
                continue
            middle = cut[node] + 1
            if middle <= low:
                node = right[node]
            elif middle >= high:
                node = left[node]
            else:
                pending[n_pending, 0] = right[node]
                pending[n_pending, 1] = middle
                pending[n_pending, 2] = high
                n_pending += 1
                node = left[node]
                high = middle
        share = shares[high] - shares[low]
        for output in range(len(contributions)):
            contributions[output] -= share * value[node, output]


@compiled
def add_contributions(
    bins, environments, drawn, shares, roots, column, cut, left, right, value, contributions
):
    """Add to the contributions (row, output) those of the column `drawn` to the scores of trees.

    A contribution is the score less the mean score with the column drawn from the rows of the
    environment. `shares` (environment, bin) are cumulative, from 0. Down to the first node that
    cuts the column both are the same; where a row meets none, the column contributes nothing.
    """
    pending = np.empty((MAX_PENDING, 3), np.int64)
    for root in roots:
        for row in range(len(bins)):
            own = bins[row]
            node = root
            while column[node] >= 0 and column[node] != drawn:
                node = left[node] if own[column[node]] <= cut[node] else right[node]
            if column[node] < 0:
                continue

            first = node
            while column[node] >= 0:
                node = left[node] if own[column[node]] <= cut[node] else right[node]
            for output in range(contributions.shape[1]):
                contributions[row, output] += value[node, output]
            _average_over_bins(
                own,
                first,
                drawn,
                shares[environments[row]],
                column,
                cut,
                left,
                right,
                value,
                contributions[row],
                pending,
            )
