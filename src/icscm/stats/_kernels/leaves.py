"""Test statistics and deviances of leaves and of the halves of splits."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

import numpy as np

from icscm.compiling import compiled


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
def measure_evidence(tables, in_play, evidence):
    """How far each leaf has fewer positives than chance gives it: half a deviance, in nats.

    That of the labels of the leaf and of the other samples in play, from those expected if labels
    were permuted within environments. 0 for a leaf that has as many positives or more.
    """
    all_negatives, all_positives, _ = _count_margins(in_play)
    for i in range(tables.shape[0]):
        negatives = positives = 0
        expected = 0.0
        for k in range(tables.shape[2]):
            negatives += tables[i, 0, k]
            positives += tables[i, 1, k]
            size = tables[i, 0, k] + tables[i, 1, k]
            if size > 0:
                expected += size * (in_play[1, k] / (in_play[0, k] + in_play[1, k]))
        evidence[i] = 0.0
        if positives < expected:
            found = (positives, negatives, all_positives - positives, all_negatives - negatives)
            shift = expected - positives
            for cell in range(4):
                n = found[cell]
                if n > 0:
                    by_chance = n + shift if cell in (0, 3) else n - shift
                    evidence[i] += n * np.log(n / max(by_chance, 1e-300))


@compiled
def compute_pearson(yates, tables, statistics, dof):
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


@compiled
def _weigh_labels(negatives, positives):
    """Log-likelihood of the labels of some samples at their own rate."""
    total = 0.0
    for n in (negatives, positives):
        if n > 0:
            total += n * np.log(np.float64(n))
    size = negatives + positives
    return total - size * np.log(np.float64(size)) if size > 0 else 0.0


@compiled
def measure_rates(tables, node, n_least, pooled, within, dof):
    """Information of each split over all samples, and within the environments; as deviances.

    `tables` (split, label, environment) are one half of each; for halves smaller than `n_least`
    both are -1. `dof` is the number of environments that a split divides.
    """
    n_environments = node.shape[1]
    before = 0.0
    for k in range(n_environments):
        before += _weigh_labels(node[0, k], node[1, k])
    negatives, positives, _ = _count_margins(node)
    before_pooled = _weigh_labels(negatives, positives)
    for i in range(tables.shape[0]):
        table = tables[i]
        n_negative, n_positive, _ = _count_margins(table)
        n_half = n_negative + n_positive
        pooled[i], within[i], dof[i] = -1.0, -1.0, 0
        if min(n_half, negatives + positives - n_half) < n_least:
            continue
        after = 0.0
        for k in range(n_environments):
            b, a = table[0, k], table[1, k]
            d, c = node[0, k] - b, node[1, k] - a
            after += _weigh_labels(b, a) + _weigh_labels(d, c)
            dof[i] += (a + b > 0) and (c + d > 0)
        after_pooled = _weigh_labels(n_negative, n_positive)
        after_pooled += _weigh_labels(negatives - n_negative, positives - n_positive)
        pooled[i] = max(2.0 * (after_pooled - before_pooled), 0.0)
        within[i] = max(2.0 * (after - before), 0.0)
