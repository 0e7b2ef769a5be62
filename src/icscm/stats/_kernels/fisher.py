"""Fisher's exact test, two-sided: all tables of the same margins, one after the other."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from math import exp, lgamma

import numpy as np

from icscm._constants import MAX_EXACT_TABLES
from icscm.compiling import compiled

# Tables whose probability exceeds the observed one by less than this factor count as equal
# to it: products of the same factors in another order differ in the last digits.
_SLACK = 1.0 + 1e-7


@compiled
def compute_exact(tables, p_values):
    for n in range(tables.shape[0]):
        sizes = tables[n, 0] + tables[n, 1]
        present = sizes > 0
        sizes = sizes[present]
        positives = tables[n, 1][present]
        if sizes.shape[0] < 2:
            p_values[n] = 1.0
        elif sizes.shape[0] == 2:
            p_values[n] = _compute_2x2(sizes[0], sizes[1], positives[0], positives.sum())
        elif _bound_tables(sizes, positives.sum()) > MAX_EXACT_TABLES:
            p_values[n] = np.nan
        else:
            p_values[n] = _compute_2xk(sizes, positives)


@compiled
def _log_choose(n, k):
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


@compiled
def _bound_tables(sizes, total):
    """At most so many tables have these margins: all but one column are free in their range."""
    fewer = min(total, sizes.sum() - total)
    product, widest = 1.0, 1.0
    for size in sizes:
        width = min(size, fewer) + 1.0
        product *= width
        widest = max(widest, width)
    return product / widest


@compiled
def _compute_2x2(first, second, observed, total):
    """Walk out from the mode both ways, each time from one term to the next by their ratio."""
    low, high = max(0, total - second), min(total, first)
    mode = min(max((total + 1) * (first + 1) // (first + second + 2), low), high)
    everything = _log_choose(first + second, total)
    at_mode = exp(_log_choose(first, mode) + _log_choose(second, total - mode) - everything)
    limit = _SLACK * exp(
        _log_choose(first, observed) + _log_choose(second, total - observed) - everything
    )
    p_value = at_mode if at_mode <= limit else 0.0
    for direction in (-1, 1):
        x, term = mode, at_mode
        while low <= x + direction <= high:
            if direction == 1:
                term *= (first - x) * (total - x) / ((x + 1.0) * (second - total + x + 1.0))
            else:
                term *= x * (second - total + x) / ((first - x + 1.0) * (total - x + 1.0))
            x += direction
            if term <= limit:
                p_value += term
                # terms fall ever faster: what is left is below the last digit
                if term < 1e-18 * p_value:
                    break
            if term == 0.0:
                break
    return min(p_value, 1.0)


@compiled
def _compute_2xk(sizes, positives):
    """Sum over all ways to place the positives, listed like the digits of a counter."""
    n_columns = sizes.shape[0]
    total = positives.sum()
    everything = _log_choose(sizes.sum(), total)
    limit = -everything
    for k in range(n_columns):
        limit += _log_choose(sizes[k], positives[k])
    limit = _SLACK * exp(limit)

    room_after = np.zeros(n_columns + 1, np.int64)  # positives that the later columns can take
    for k in range(n_columns - 1, -1, -1):
        room_after[k] = room_after[k + 1] + sizes[k]
    placed = np.zeros(n_columns, np.int64)
    left = np.zeros(n_columns + 1, np.int64)  # positives not yet placed before column k
    log_term = np.zeros(n_columns + 1)
    left[0], log_term[0] = total, -everything
    placed[0] = max(0, total - room_after[1]) - 1
    p_value, k = 0.0, 0
    while k >= 0:
        placed[k] += 1
        if placed[k] > min(sizes[k], left[k]):
            k -= 1
            continue
        left[k + 1] = left[k] - placed[k]
        log_term[k + 1] = log_term[k] + _log_choose(sizes[k], placed[k])
        if k + 2 < n_columns:
            k += 1
            placed[k] = max(0, left[k] - room_after[k + 1]) - 1
            continue
        last = log_term[k + 1] + _log_choose(sizes[k + 1], left[k + 1])
        term = exp(last)
        if term <= limit:
            p_value += term
    return min(p_value, 1.0)
