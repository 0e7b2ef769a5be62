"""Test statistics and deviances of leaves, and of the halves of splits.

A *leaf* is the rows that a rule covers, a *half* the rows on one side of a split. Either is a table
of counts (outcome, environment): `table[0]` are the negatives, `table[1]` the positives.

    environment    0    1    2
    table[0]      80   90    0
    table[1]      20   10    0        an environment without rows counts for nothing

A kernel takes many tables at once, by (table, outcome, environment). Its last arguments are arrays
with an entry for each table, which it fills in. `tests/support/literal/statistics.py` has a plain
twin of each.

Loops go over i, the table, and k, the environment. In formulas n is the count of a cell, and m the
count that would be expected of it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

import numpy as np

from icscm.compiling import compiled


@compiled
def _count_margins(table):
    """Count negatives, positives, and the degrees of freedom of a test of independence.

    These are the environments with rows less one; or 0 if all rows have the same outcome, where
    there is nothing to test.
    """
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

    `in_play` (outcome, environment) are the rows of which a leaf has some. Chance permutes outcomes
    within environments. So of n_k rows in environment k, with the rate r_k of the rows in play, the
    leaf would have n_k r_k positives, and in all

        shift = sum over k of n_k r_k  -  its positives

    more than it has. The evidence compares, over all environments together, four cells with what
    chance gives them:

        cell                         n                             m
        positives in the leaf        positives                     n + shift
        negatives in the leaf        negatives                     n - shift
        positives outside of it      all_positives - positives     n - shift
        negatives outside of it      all_negatives - negatives     n + shift

        evidence = sum of n log(n / m)

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
    """Compute G = 2 sum n log(n / m) of each 2 x K table, and its degrees of freedom.

    The sum is over the cells; m = (rows of the environment) (rows of the outcome) / (all rows) is
    the count expected if the outcome does not depend on the environment.
    """
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
                    # n / m = n n_rows / (m n_rows): the log of a ratio of whole numbers, which is
                    # exactly 0 where n is as expected, not a difference of large logarithms
                    expected_times_n_rows = float(size) * rows_of_outcome[outcome]
                    total += n * np.log(float(n) * n_rows / expected_times_n_rows)
        # rounding may leave a hair below zero
        statistics[i] = max(2.0 * total, 0.0)


@compiled
def _compute_log_likelihood(negatives, positives):
    """Compute the log-likelihood of the outcomes of some rows at the rate that they have.

    l(a, b) = a log(a / (a + b)) + b log(b / (a + b))
            = a log(a) + b log(b) - (a + b) log(a + b),      with 0 log 0 = 0
    """
    total = 0.0
    for n in (negatives, positives):
        if n > 0:
            total += n * np.log(np.float64(n))
    size = negatives + positives
    return total - size * np.log(np.float64(size)) if size > 0 else 0.0


@compiled
def measure_rates(tables, node, n_least, pooled, within, dof):
    """Measure the deviance that each split explains: over all rows, and within environments.

    A split divides the rows of a node, by (outcome, environment), into a half and the rest.
    `tables` (split, outcome, environment) has one half of each split. With the log-likelihood l of
    rows at their own rate (`_compute_log_likelihood`), the deviance of a split is

        D = 2 (l(half) + l(rest) - l(node))

    Two of them are filled in: `pooled` is D of all rows together, `within` the sum of D over the
    environments. `dof` is the number of environments that have rows on both sides. Where the half
    or the rest has fewer than `n_least` rows, both deviances are -1 and `dof` is 0.
    """
    n_environments = node.shape[1]
    node_negatives, node_positives, _ = _count_margins(node)

    # l(node): of all rows together, and the sum over environments
    pooled_of_node = _compute_log_likelihood(node_negatives, node_positives)
    within_of_node = 0.0
    for k in range(n_environments):
        within_of_node += _compute_log_likelihood(node[0, k], node[1, k])

    for i in range(tables.shape[0]):
        half = tables[i]
        half_negatives, half_positives, _ = _count_margins(half)
        rest_negatives = node_negatives - half_negatives
        rest_positives = node_positives - half_positives
        n_half = half_negatives + half_positives
        n_rest = node_negatives + node_positives - n_half
        pooled[i] = -1.0
        within[i] = -1.0
        dof[i] = 0
        if min(n_half, n_rest) < n_least:
            continue

        # l(half) + l(rest): of all rows together, and the sum over environments
        pooled_of_sides = _compute_log_likelihood(half_negatives, half_positives)
        pooled_of_sides += _compute_log_likelihood(rest_negatives, rest_positives)
        within_of_sides = 0.0
        for k in range(n_environments):
            half_0 = half[0, k]
            half_1 = half[1, k]
            rest_0 = node[0, k] - half_0
            rest_1 = node[1, k] - half_1
            of_half = _compute_log_likelihood(half_0, half_1)
            of_rest = _compute_log_likelihood(rest_0, rest_1)
            within_of_sides += of_half + of_rest
            is_divided = half_0 + half_1 > 0 and rest_0 + rest_1 > 0
            dof[i] += is_divided

        # rounding may leave a hair below zero
        pooled[i] = max(2.0 * (pooled_of_sides - pooled_of_node), 0.0)
        within[i] = max(2.0 * (within_of_sides - within_of_node), 0.0)
