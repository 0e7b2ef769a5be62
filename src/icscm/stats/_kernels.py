"""Arithmetic on many small tables, compiled; its twin in plain NumPy is `_reference.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import numpy as np

from icscm.compiling import compiled


@compiled
def weigh_leaves(tables, num, den, n_in_play, n_least, utility, margin, is_candidate, is_small):
    """What each leaf is worth: den (|A| - p |B|) and |A| - |B|, with p = num / den.

    A are its negatives, B its positives. All in whole numbers, so that equal utilities are equal.
    It is a candidate if it has negatives and leaves samples; a small one if it has, or leaves,
    fewer than `n_least`.
    """
    for i in range(tables.shape[0]):
        negatives = positives = 0
        for k in range(tables.shape[2]):
            negatives += tables[i, 0, k]
            positives += tables[i, 1, k]
        size = negatives + positives
        utility[i] = den * negatives - num * positives
        margin[i] = negatives - positives
        is_candidate[i] = (negatives > 0) & (size < n_in_play)
        is_small[i] = is_candidate[i] & (min(size, n_in_play - size) < n_least)


@compiled
def measure_spread(tables, effective):
    """Effective number of environments of each leaf: (sum n)^2 / sum n^2, at least 1.

    In whole numbers until the last step, so that it does not depend on the order of sums.
    """
    for i in range(tables.shape[0]):
        total = squares = np.uint64(0)
        for k in range(tables.shape[2]):
            size = np.uint64(tables[i, 0, k] + tables[i, 1, k])
            total += size
            squares += size * size
        effective[i] = max((total * total) / squares, 1.0) if squares > 0 else 1.0


@compiled
def _count_margins(table):
    """Negatives, positives, and the degrees of freedom: 0 unless both labels are there."""
    negatives = positives = n_columns = 0
    for k in range(table.shape[1]):
        negatives += table[0, k]
        positives += table[1, k]
        n_columns += table[0, k] + table[1, k] > 0
    return negatives, positives, n_columns - 1 if negatives > 0 and positives > 0 else 0


@compiled
def compute_pearson(tables, yates, statistics, dof):
    """Pearson's statistic of each 2 x K table, and its degrees of freedom.

    With `yates`, Yates' correction where there is one degree of freedom.
    """
    for i in range(tables.shape[0]):
        table = tables[i]
        negatives, positives, dof[i] = _count_margins(table)
        statistics[i] = 0.0
        if dof[i] == 0:
            continue
        shift = 0.5 if yates and dof[i] == 1 else 0.0
        rate = positives / (negatives + positives)
        total = 0.0
        for k in range(table.shape[1]):
            size = table[0, k] + table[1, k]
            if size > 0:
                # both rows are off by the same amount, in opposite directions
                off = max(abs(table[1, k] - size * rate) - shift, 0.0)
                total += off * off / size
        statistics[i] = total / (rate * (1.0 - rate))


@compiled
def compute_likelihood_ratio(tables, statistics, dof):
    """G = 2 sum n log(n / expected) of each 2 x K table, and its degrees of freedom."""
    for i in range(tables.shape[0]):
        table = tables[i]
        negatives, positives, dof[i] = _count_margins(table)
        statistics[i] = 0.0
        if dof[i] == 0:
            continue
        rows = (negatives, positives)
        total = 0.0
        for k in range(table.shape[1]):
            size = table[0, k] + table[1, k]
            for label in range(2):
                n = table[label, k]
                if n > 0:
                    # as a ratio, not as a difference of large logarithms: exactly 0 where n is
                    # as expected
                    expected = float(size) * rows[label]
                    total += n * np.log(float(n) * (negatives + positives) / expected)
        # rounding may leave a hair below zero
        statistics[i] = max(2.0 * total, 0.0)
