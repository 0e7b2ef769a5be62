"""Two numbers for every split of a node, from counts: deviance explained and heterogeneity.

With the models of a node's labels *null < leaf < leaf + environment < leaf x environment*, all
deviances nest. An **effect** differs if an environment changes one half of the split and not the
other: Breslow and Day's statistic around the odds ratio of Mantel and Haenszel measures
it. All that an environment does to the **rates** of a node is its G statistic.

And what reports and studies share: the environments of the lowest and the highest value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import CountArray, FloatArray, IntArray
from icscm.stats import _kernels
from icscm.stats.independence import GTest
from icscm.stats.replication import count_effective

# Heterogeneity counts from so many standard deviations of chance on.
_CHANCE: Final = 3.0
# Odds ratios of splits that separate the outcomes in every environment.
MIN_ODDS_RATIO: Final = 1e-9
MAX_ODDS_RATIO: Final = 1e9
# Keep divisions by cells, and by sums of them, finite.
MIN_CELL: Final = 1e-12
TINY: Final = 1e-300
# The largest share: beyond it there is no common effect to compare with.
_MAX_SHARE: Final = 100.0


@dataclass(frozen=True)
class Effects:
    """Splits of one node by their effect within environments, as deviances.

    `deviance_explained` is that of an effect common to all environments, -1 where a half is too
    small. `heterogeneity` is by how much the effect differs between them beyond chance.
    `heterogeneity_share` is the square of its coefficient of variation, after DerSimonian and
    Laird: unlike heterogeneity / deviance it does not shrink where one environment holds most of
    the samples. `log_odds_ratio` is the common effect.
    """

    deviance_explained: FloatArray
    heterogeneity: FloatArray
    heterogeneity_share: FloatArray
    log_odds_ratio: FloatArray


def measure_effects(tables: CountArray, node: CountArray, n_least: int) -> Effects:
    """Measure the effects of splits, given one half of each (split, label, environment).

    In an environment with n rows, the half has a positive and b negative ones, the rest c and d:

        odds ratio     r = sum(a d / n) / sum(b c / n)                    Mantel and Haenszel (1959)
        heterogeneity  Q = sum (a - A)^2 (1/A + 1/B + 1/C + 1/D)          Breslow and Day (1980)

    with A, B, C and D the cells of the same margins whose odds ratio is r, so that
    (a - A)^2 / A and the other three are summed. Beyond chance it is Q - dof - 3 sqrt(2 dof). The
    share is that over spread x deviance explained, with the spread 1 - sum w^2 / (sum w)^2 over the
    weights w of the environments, (a + b) (c + d) (a + c) (b + d) / n^3.
    """
    gain = measure_rates(tables, node, n_least).within
    a = tables[:, 1].astype(np.float64)
    b = tables[:, 0].astype(np.float64)
    c = node[1] - a
    d = node[0] - b
    n = np.maximum(node.sum(axis=0), 1.0)
    in_half = a + b
    positives = node[1]
    is_compared = (in_half > 0) & (in_half < n) & (positives > 0) & (positives < n)

    sum_ad = np.where(is_compared, a * d / n, 0.0).sum(axis=1)
    sum_bc = np.where(is_compared, b * c / n, 0.0).sum(axis=1)
    is_measured = (gain >= 0) & (sum_ad + sum_bc > 0)
    # Where one cell is empty everywhere, the ratio is as good as infinite.
    r = np.where(is_measured, sum_ad / np.maximum(sum_bc, TINY), 1.0)
    r = r.clip(MIN_ODDS_RATIO, MAX_ODDS_RATIO)

    dof = np.where(is_measured, is_compared.sum(axis=1) - 1, 0)
    A = _fit_cells(r[:, np.newaxis], in_half, positives, n)
    expected = np.stack((A, in_half - A, positives - A, n - in_half - positives + A))
    terms = ((a - A) ** 2 / np.maximum(expected, MIN_CELL)).sum(axis=0)
    Q = np.where(is_compared & (dof > 0)[:, np.newaxis], terms, 0.0).sum(axis=1)
    heterogeneity = np.maximum(Q - dof - _CHANCE * np.sqrt(2.0 * dof), 0.0)

    w = in_half * (n - in_half) * positives * (n - positives) / n**3
    spread = 1.0 - 1.0 / count_effective(w)
    explained = np.where(gain < 0.0, -1.0, np.maximum(gain - Q, 0.0))
    share = heterogeneity / np.maximum(spread * explained, MIN_CELL)
    return Effects(
        deviance_explained=explained,
        heterogeneity=heterogeneity,
        heterogeneity_share=np.minimum(share, _MAX_SHARE),
        log_odds_ratio=0.0 - np.log(r),  # of the rest against the half
    )


def _fit_cells(
    ratio: FloatArray, row: FloatArray, column: CountArray, size: FloatArray
) -> FloatArray:
    """Find the cell of 2 x 2 tables of these margins with which the odds ratio is as given.

    It is the root of

        (1 - r) A^2 + linear A - r row column = 0
        linear = size - row - column + r (row + column)

    that is a cell, in the one of two forms that does not cancel.
    """
    linear = size - row - column + ratio * (row + column)
    root = np.sqrt(np.maximum(linear**2 + 4.0 * (1.0 - ratio) * ratio * row * column, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = 2.0 * ratio * row * column / (linear + root)
        falling = (root - linear) / (2.0 * (1.0 - ratio))  # only for an odds ratio below 1
    return np.where(linear < 0.0, falling, rising)


def measure_balance(totals: CountArray) -> float:
    """Share of pairs of samples from two environments, relative to that of equally large ones.

    >>> measure_balance(np.array([[50, 50], [0, 0]]))
    1.0
    >>> round(measure_balance(np.array([[50, 10], [40, 0]])), 2)
    0.36
    """
    sizes = totals.sum(axis=0).astype(np.float64)
    n_present = int(np.count_nonzero(sizes))
    if n_present < 2:
        return 1.0
    return float((1.0 - 1.0 / count_effective(sizes[np.newaxis])[0]) / (1.0 - 1.0 / n_present))


@dataclass(frozen=True)
class Rates:
    """Splits of one node by the deviance of the label that they explain; -1 where a half is small.

    `pooled` is over all samples, `within` over those of each environment by themselves, of which
    a split divides `n_divided`.
    """

    pooled: FloatArray
    within: FloatArray
    n_divided: IntArray


def measure_rates(tables: CountArray, node: CountArray, n_least: int) -> Rates:
    """The deviance that splits explain, given one half of each (split, label, environment)."""
    pooled, within = np.empty((2, len(tables)))
    n_divided = np.empty(len(tables), dtype=np.int64)
    tables = np.ascontiguousarray(tables)
    _kernels.measure_rates(tables, node, n_least, pooled, within, n_divided)
    return Rates(pooled, within, n_divided)


def compute_rate_heterogeneity(nodes: CountArray) -> tuple[FloatArray, IntArray]:
    """G of label against environment in each node, and its degrees of freedom."""
    return GTest().compute_statistics(nodes)


@lru_cache(maxsize=4096)
def find_quantile(level: float, dof: int) -> float:
    """The value that a chi-squared statistic exceeds with this probability; 0 without freedom."""
    return float(special.chdtri(dof, level)) if dof > 0 else 0.0


def find_quantiles(level: float, most: int) -> FloatArray:
    """The same for 0 to so many degrees of freedom; without any nothing is beyond chance."""
    quantiles: FloatArray = special.chdtri(np.arange(most + 1), level)
    quantiles[0] = np.inf
    return quantiles


def find_extreme_environments(values: Sequence[float | None]) -> tuple[int, int] | None:
    """Positions of the lowest and the highest value, the first of equals; None without any.

    >>> find_extreme_environments([0.3, None, 0.1, 0.3])
    (2, 0)
    """
    known = [(value, k) for k, value in enumerate(values) if value is not None]
    if not known:
        return None
    return min(known)[1], max(known, key=lambda each: each[0])[1]
