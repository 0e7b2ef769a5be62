"""Fisher's exact test, two-sided: the chance of all tables that are no likelier than the observed.

Given its margins, the n_k rows of each environment and the p positives of all n rows, a table with
p_k positives in environment k has the chance

    C(n_1, p_1) C(n_2, p_2) ... C(n_K, p_K) / C(n, p)

All tables of these margins are visited, one after the other.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from math import exp, lgamma

import numpy as np

from icscm._constants import MAX_EXACT_TABLES
from icscm.compiling import compiled

# Tables whose chance exceeds the observed one by less than this factor count as equal to it:
# products of the same factors in another order differ in the last digits.
_SLACK = 1.0 + 1e-7
# A term that adds less than this share to a sum does not change its digits.
_NEGLIGIBLE_SHARE = 1e-18


@compiled
def compute_exact(tables, p_values):
    """Fill in the p-value of each table (table, outcome, environment); NaN if it takes too long."""
    for n in range(tables.shape[0]):
        sizes = tables[n, 0] + tables[n, 1]
        has_rows = sizes > 0
        sizes = sizes[has_rows]
        positives = tables[n, 1][has_rows]
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
    """Compute log C(n, k), of the ways to choose k of n."""
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


@compiled
def _bound_tables(sizes, n_positive):
    """Bound the number of tables with these margins.

    Each environment has at most so many values as it has room for the rarer outcome. That of one of
    them, here the largest, follows from all others.
    """
    n_rarer = min(n_positive, sizes.sum() - n_positive)
    product = 1.0
    widest = 1.0
    for size in sizes:
        width = min(size, n_rarer) + 1.0
        product *= width
        widest = max(widest, width)
    return product / widest


@compiled
def _compute_ratio_up(x, first, second, n_positive):
    """Compute P(x + 1) / P(x), see `_compute_2x2`."""
    return (first - x) * (n_positive - x) / ((x + 1.0) * (second - n_positive + x + 1.0))


@compiled
def _compute_ratio_down(x, first, second, n_positive):
    """Compute P(x - 1) / P(x), see `_compute_2x2`."""
    return x * (second - n_positive + x) / ((first - x + 1.0) * (n_positive - x + 1.0))


@compiled
def _compute_2x2(first, second, observed, n_positive):
    """Compute the p-value of a table of two environments, of `first` and `second` rows.

    Of all rows `n_positive` are positive, `observed` of them in the first environment. The chance
    P(x) of x in their place rises up to the mode and then falls:

        x       lowest  ...  mode  ...  highest
        P(x)      <- falls          falls ->

    The p-value is the sum of all P(x) up to P(observed). It goes outwards from the mode both ways,
    from one term to the next by their ratio.
    """
    lowest = max(0, n_positive - second)
    highest = min(n_positive, first)
    mode = (n_positive + 1) * (first + 1) // (first + second + 2)
    mode = min(max(mode, lowest), highest)

    log_all = _log_choose(first + second, n_positive)
    at_mode = exp(_log_choose(first, mode) + _log_choose(second, n_positive - mode) - log_all)
    at_observed = exp(
        _log_choose(first, observed) + _log_choose(second, n_positive - observed) - log_all
    )
    limit = _SLACK * at_observed

    p_value = at_mode if at_mode <= limit else 0.0
    for direction in (-1, 1):
        x = mode
        term = at_mode
        while lowest <= x + direction <= highest:
            if direction == 1:
                term *= _compute_ratio_up(x, first, second, n_positive)
            else:
                term *= _compute_ratio_down(x, first, second, n_positive)
            x += direction
            if term <= limit:
                p_value += term
                # terms fall ever faster: all that follow are as negligible
                if term < _NEGLIGIBLE_SHARE * p_value:
                    break
            if term == 0.0:
                break
    return min(p_value, 1.0)


@compiled
def _compute_2xk(sizes, positives):
    """Compute the p-value of a table of more than two environments.

    Positives are placed in one environment after the other in all possible ways, which are listed
    like the numbers on a counter: its last digit is raised until it is at its highest, then the one
    before it by 1, and so on. A digit is the positives of an environment. The last environment has
    no digit, since it gets the positives that are left.

        environment            k = 0   1   2
        placed                     2   1
        left, before k             5   3   2   -> in environment 2
        log_chance, before k       log of the factors of the chance so far
    """
    n_environments = sizes.shape[0]
    n_positive = positives.sum()
    log_all = _log_choose(sizes.sum(), n_positive)
    log_observed = -log_all
    for k in range(n_environments):
        log_observed += _log_choose(sizes[k], positives[k])
    limit = _SLACK * exp(log_observed)

    # rows of environment k and of those after it, which can take as many positives
    room_from = np.zeros(n_environments + 1, np.int64)
    for k in range(n_environments - 1, -1, -1):
        room_from[k] = room_from[k + 1] + sizes[k]

    placed = np.zeros(n_environments, np.int64)
    left = np.zeros(n_environments + 1, np.int64)
    log_chance = np.zeros(n_environments + 1)
    left[0] = n_positive
    log_chance[0] = -log_all

    p_value = 0.0
    k = 0
    placed[0] = max(0, n_positive - room_from[1]) - 1  # one below the lowest: it is raised first
    while k >= 0:
        placed[k] += 1
        if placed[k] > min(sizes[k], left[k]):
            k -= 1
            continue

        left[k + 1] = left[k] - placed[k]
        log_chance[k + 1] = log_chance[k] + _log_choose(sizes[k], placed[k])
        has_next_digit = k + 2 < n_environments
        if has_next_digit:
            k += 1
            placed[k] = max(0, left[k] - room_from[k + 1]) - 1
            continue

        last = k + 1
        chance = exp(log_chance[last] + _log_choose(sizes[last], left[last]))
        if chance <= limit:
            p_value += chance
    return min(p_value, 1.0)
