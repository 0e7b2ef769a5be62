"""Test statistics and deviances of leaves, and of the halves of splits.

Tables have the axes (outcome, environment), negatives before positives. Each kernel fills in the
arrays that are its last arguments, an entry for each table.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

import numpy as np

from icscm.compiling import compiled


@compiled
def _count_margins(table):
    """Count negatives, positives, and degrees of freedom: 0 unless both outcomes occur."""
    negatives = 0
    positives = 0
    n_environments = 0
    for k in range(table.shape[1]):
        negatives += table[0, k]
        positives += table[1, k]
        n_environments += table[0, k] + table[1, k] > 0
    dof = n_environments - 1 if negatives > 0 and positives > 0 else 0
    return negatives, positives, dof


@compiled
def measure_evidence(tables, in_play, evidence):
    """Measure how far each leaf has fewer positives than chance gives it: half a deviance, in nats.

    `in_play` are all rows of which a leaf has some. Chance permutes outcomes within environments,
    and would so give the leaf a number of positives that is larger by a shift. With n of the four
    cells, positives and negatives in the leaf and outside of it,

        evidence = sum n log(n / m)

    where m is n + shift for positives in the leaf and negatives outside, n - shift for the others.
    It is 0 for a leaf that has as many positives as by chance, or more.
    """
    all_negatives, all_positives, _ = _count_margins(in_play)
    for i in range(tables.shape[0]):
        negatives = 0
        positives = 0
        expected = 0.0
        for k in range(tables.shape[2]):
            negatives += tables[i, 0, k]
            positives += tables[i, 1, k]
            size = tables[i, 0, k] + tables[i, 1, k]
            if size > 0:
                expected += size * (in_play[1, k] / (in_play[0, k] + in_play[1, k]))

        evidence[i] = 0.0
        if positives < expected:
            shift = expected - positives
            cells = (
                (positives, shift),
                (negatives, -shift),
                (all_positives - positives, -shift),
                (all_negatives - negatives, shift),
            )
            for n, shift_of_cell in cells:
                if n > 0:
                    by_chance = max(n + shift_of_cell, 1e-300)
                    evidence[i] += n * np.log(n / by_chance)


@compiled
def compute_pearson(yates, tables, statistics, dof):
    """Compute Pearson's statistic of each 2 x K table, and its degrees of freedom.

    With `yates`, it has Yates' correction where there is one degree of freedom. In environment k,
    positives and negatives differ by the same amount from the n_k r and n_k (1 - r) expected at the
    rate r of all rows, so the two terms are one:

        sum (p_k - n_k r)^2 / (n_k r (1 - r))
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
                difference = max(abs(table[1, k] - size * rate) - shift, 0.0)
                total += difference * difference / size
        statistics[i] = total / (rate * (1.0 - rate))


@compiled
def compute_likelihood_ratio(tables, statistics, dof):
    """Compute G = 2 sum n log(n / m) of each 2 x K table, and its degrees of freedom."""
    for i in range(tables.shape[0]):
        table = tables[i]
        negatives, positives, dof[i] = _count_margins(table)
        statistics[i] = 0.0
        if dof[i] == 0:
            continue
        n_rows = negatives + positives
        rows_of_outcome = (negatives, positives)
        total = 0.0
        for k in range(table.shape[1]):
            size = table[0, k] + table[1, k]
            for outcome in range(2):
                n = table[outcome, k]
                if n > 0:
                    # as a ratio, not as a difference of large logarithms: exactly 0 where n is
                    # as expected
                    expected_times_n_rows = float(size) * rows_of_outcome[outcome]
                    total += n * np.log(float(n) * n_rows / expected_times_n_rows)
        # rounding may leave a hair below zero
        statistics[i] = max(2.0 * total, 0.0)


@compiled
def _compute_log_likelihood(negatives, positives):
    """Compute the log-likelihood of the outcomes of some rows at their own rate."""
    total = 0.0
    for n in (negatives, positives):
        if n > 0:
            total += n * np.log(np.float64(n))
    size = negatives + positives
    return total - size * np.log(np.float64(size)) if size > 0 else 0.0


@compiled
def measure_rates(tables, node, n_least, pooled, within, dof):
    """Measure the deviance that each split explains: over all rows, and within environments.

    `tables` (split, outcome, environment) are one half of each, `node` all rows (outcome,
    environment). Where the half or the rest is smaller than `n_least`, both deviances are -1. `dof`
    is the number of environments that a split divides. A deviance is

        2 (log-likelihood of half and rest at their own rates - that of the node at its rate)

    over all rows together (`pooled`), or in each environment, and these added up (`within`).
    """
    n_environments = node.shape[1]
    before = 0.0
    for k in range(n_environments):
        before += _compute_log_likelihood(node[0, k], node[1, k])
    negatives, positives, _ = _count_margins(node)
    before_pooled = _compute_log_likelihood(negatives, positives)

    for i in range(tables.shape[0]):
        table = tables[i]
        n_negative, n_positive, _ = _count_margins(table)
        n_half = n_negative + n_positive
        n_rest = negatives + positives - n_half
        pooled[i] = -1.0
        within[i] = -1.0
        dof[i] = 0
        if min(n_half, n_rest) < n_least:
            continue

        after = 0.0
        for k in range(n_environments):
            half_negatives = table[0, k]
            half_positives = table[1, k]
            rest_negatives = node[0, k] - half_negatives
            rest_positives = node[1, k] - half_positives
            of_half = _compute_log_likelihood(half_negatives, half_positives)
            of_rest = _compute_log_likelihood(rest_negatives, rest_positives)
            after += of_half + of_rest
            has_half = half_negatives + half_positives > 0
            has_rest = rest_negatives + rest_positives > 0
            dof[i] += has_half and has_rest
        after_pooled = _compute_log_likelihood(n_negative, n_positive)
        after_pooled += _compute_log_likelihood(negatives - n_negative, positives - n_positive)
        pooled[i] = max(2.0 * (after_pooled - before_pooled), 0.0)
        within[i] = max(2.0 * (after - before), 0.0)
