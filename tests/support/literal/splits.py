"""The numbers of one split, straight from the formulas: whole numbers, fractions and many digits.

A split is a list with one 2 x 2 table (a, b, c, d) for each environment: positives and negatives
of the half for which the rule is false, then of the half for which it is true. Nothing here is
shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

# An odds ratio of 0 or infinity is as good as these.
LEAST, MOST = Fraction(1, 10**9), Fraction(10**9)


def weigh(*counts):
    """Log-likelihood of labels at their own rate."""
    size = math.fsum(counts)
    return math.fsum(n * math.log(n / size) for n in counts if n)


def measure_gain(split):
    """Twice the log-likelihood that two rates bring over one, environment by environment."""
    gains = [weigh(a, b) + weigh(c, d) - weigh(a + c, b + d) for a, b, c, d in split]
    return max(2 * math.fsum(gains), 0.0)


def list_compared(split):
    """The environments in which both halves and both labels occur."""
    return [t for t in split if all((t[0] + t[1], t[2] + t[3], t[0] + t[2], t[1] + t[3]))]


def find_odds_ratio(split):
    """Mantel and Haenszel's, of the first half against the second; None if there is none."""
    compared = list_compared(split)
    above = sum(Fraction(a * d, a + b + c + d) for a, b, c, d in compared)
    below = sum(Fraction(b * c, a + b + c + d) for a, b, c, d in compared)
    if above == below == 0:
        return None
    return MOST if below == 0 else min(max(above / below, LEAST), MOST)


def fit_cell(table, ratio):
    """The a for which a d = ratio b c in a table of the same margins: a root of a quadratic."""
    a, b, c, d = table
    r = Decimal(ratio.numerator) / Decimal(ratio.denominator)
    if r == 1:
        return Decimal((a + b) * (a + c)) / (a + b + c + d)
    linear = d - a + r * (2 * a + b + c)
    root = (linear * linear + 4 * (1 - r) * r * (a + b) * (a + c)).sqrt()
    return (root - linear) / (2 * (1 - r))


def measure_heterogeneity(split):
    """Breslow and Day's statistic around that odds ratio; one table differs from no other."""
    ratio = find_odds_ratio(split)
    if len(list_compared(split)) < 2:
        return 0.0
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for a, b, c, d in list_compared(split):
            x = fit_cell((a, b, c, d), ratio)
            total += (a - x) ** 2 * (1 / x + 1 / (a + b - x) + 1 / (a + c - x) + 1 / (d - a + x))
        return float(total)


def measure_split(split, n_least):
    """All of it, in plain numbers; None if a half is too small."""
    sizes = sum(a + b for a, b, _, _ in split), sum(c + d for _, _, c, d in split)
    if min(sizes) < n_least:
        return None
    compared = list_compared(split)
    heterogeneity = measure_heterogeneity(split)
    ratio = find_odds_ratio(split)
    information = max(measure_gain(split) - heterogeneity, 0.0)
    dof = len(compared) - 1 if ratio is not None else 0
    excess = max(heterogeneity - dof - 3 * math.sqrt(2 * dof), 0.0)
    # (n_L n_R / n) p (1 - p) of each environment
    weights = [
        Fraction((a + b) * (c + d) * (a + c) * (b + d), (a + b + c + d) ** 3)
        for a, b, c, d in compared
    ]
    spread = Fraction(0)
    if ratio is not None:
        spread = 1 - sum(w * w for w in weights) / sum(weights) ** 2
    at_least = max(float(spread) * information, 1e-12)
    return {
        "deviance_explained": information,
        "heterogeneity": excess,
        "heterogeneity_share": min(excess / at_least, 100.0),
        "log_odds_ratio": 0.0 if ratio is None else -math.log(ratio),
    }


def measure_rates(split):
    """Deviance gains over all samples together and within environments; divided environments."""
    pooled = [tuple(map(sum, zip(*split, strict=True)))]
    n_divided = sum(1 for a, b, c, d in split if a + b and c + d)
    return measure_gain(pooled), measure_gain(split), n_divided


def measure_dependence(positives, negatives):
    """G of label against environment."""
    rates = math.fsum(weigh(a, b) for a, b in zip(positives, negatives, strict=True))
    return 2 * (rates - weigh(sum(positives), sum(negatives)))
