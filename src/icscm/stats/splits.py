"""What a split of a node explains, and how much its effect differs between environments.

A split divides the rows of a node into two halves, not always of equal size. All is computed from
counts of one half of each split, and of the node, by outcome and environment.

Each of these models of a node's outcomes contains the one before, so their deviances add up:

    null  <  half  <  half + environment  <  half x environment

An *effect* differs between environments if the last model is better than the one before: if an
environment changes the rate of one half and not, in the same way, that of the other. Breslow and
Day's statistic around the odds ratio of Mantel and Haenszel measures it. All that an environment
does to the *rates* of a node is its G statistic.

And what reports and studies share: the environments of the lowest and the highest value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from icscm._lazy import special
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.stats import _kernels
from icscm.stats.independence import GTest, TableStatistics
from icscm.stats.replication import count_effective

# Heterogeneity counts from so many standard deviations of chance on.
_CHANCE: Final = 3.0
# Odds ratios of splits that separate the outcomes in every environment.
MIN_ODDS_RATIO: Final = 1e-9
MAX_ODDS_RATIO: Final = 1e9
# Keep divisions by cells, and by sums of them, finite where there are no rows.
MIN_CELL: Final = 1e-12
TINY: Final = 1e-300
# The largest share: beyond it there is no common effect to compare with.
_MAX_SHARE: Final = 100.0


@dataclass(frozen=True)
class Effects:
    """The effects of the splits of one node within environments, as deviances.

    Attributes
    ----------
    deviance_explained : array of shape (n_splits,)
        That of an effect common to all environments; -1 where a half is too small.
    heterogeneity : array of shape (n_splits,)
        By how much the effect differs between environments, beyond chance.
    heterogeneity_share : array of shape (n_splits,)
        The square of the effect's coefficient of variation, after DerSimonian and Laird: unlike
        heterogeneity / deviance it does not shrink where one environment has most of the rows.
    log_odds_ratio : array of shape (n_splits,)
        The common effect.
    """

    deviance_explained: FloatArray
    heterogeneity: FloatArray
    heterogeneity_share: FloatArray
    log_odds_ratio: FloatArray


def measure_effects(tables: CountArray, node: CountArray, n_least: int) -> Effects:
    """Measure the effects of splits, given one half of each (split, outcome, environment).

    `node` are all rows (outcome, environment), and `n_least` the rows that a half needs. In an
    environment with n rows, the half has a positive and b negative ones, the rest c and d:

        odds ratio     r = sum(a d / n) / sum(b c / n)                    Mantel and Haenszel (1959)
        heterogeneity  Q = sum (a - A)^2 (1/A + 1/B + 1/C + 1/D)          Breslow and Day (1980)

    with A, B, C and D the cells of the same margins whose odds ratio is r, so that
    (a - A)^2 / A and the other three are summed. Beyond chance it is Q - dof - 3 sqrt(2 dof). The
    share is that over spread x deviance explained, with the spread 1 - sum w^2 / (sum w)^2 over the
    weights w of the environments, (a + b) (c + d) (a + c) (b + d) / n^3.
    """
    gain = measure_rates(tables, node, n_least).within
    halves = _make_halves(tables, node)

    sum_ad = halves.sum_compared(halves.a * halves.d / halves.n)
    sum_bc = halves.sum_compared(halves.b * halves.c / halves.n)
    is_measured = (gain >= 0) & (sum_ad + sum_bc > 0)
    # Where one cell is empty everywhere, the ratio is as good as infinite.
    r = np.where(is_measured, sum_ad / np.maximum(sum_bc, TINY), 1.0)
    r = r.clip(MIN_ODDS_RATIO, MAX_ODDS_RATIO)

    n_compared = halves.is_compared.sum(axis=1)
    dof = np.where(is_measured, n_compared - 1, 0)
    Q = np.where(dof > 0, _compute_breslow_day(halves, r), 0.0)
    heterogeneity = np.maximum(Q - dof - _CHANCE * np.sqrt(2.0 * dof), 0.0)

    spread = 1.0 - 1.0 / count_effective(halves.compute_weights())
    explained = np.where(gain < 0.0, -1.0, np.maximum(gain - Q, 0.0))
    share = heterogeneity / np.maximum(spread * explained, MIN_CELL)
    return Effects(
        deviance_explained=explained,
        heterogeneity=heterogeneity,
        heterogeneity_share=np.minimum(share, _MAX_SHARE),
        log_odds_ratio=0.0 - np.log(r),  # of the rest against the half
    )


@dataclass(frozen=True, eq=False)
class _Halves:
    """The 2 x 2 table of each split in each environment.

                  positive   negative
        half          a          b       half_size
        rest          c          d
                  positives              n

    The cells and `half_size` are (split, environment), `positives` and `n` (environment,).
    """

    a: FloatArray
    b: FloatArray
    c: FloatArray
    d: FloatArray
    half_size: FloatArray
    positives: CountArray
    n: FloatArray

    @cached_property
    def is_compared(self) -> BoolArray:
        """Where an environment has rows of both outcomes in the node, and rows of both halves."""
        has_both_halves = (self.half_size > 0) & (self.half_size < self.n)
        has_both_outcomes = (self.positives > 0) & (self.positives < self.n)
        return np.asarray(has_both_halves & has_both_outcomes)

    def sum_compared(self, terms: FloatArray) -> FloatArray:
        """Sum terms (split, environment) over the environments that are compared."""
        return np.asarray(np.where(self.is_compared, terms, 0.0).sum(axis=1))

    def compute_weights(self) -> FloatArray:
        """Compute the weight of each environment, (a + b) (c + d) (a + c) (b + d) / n^3."""
        of_halves = self.half_size * (self.n - self.half_size)
        return of_halves * self.positives * (self.n - self.positives) / self.n**3


def _make_halves(tables: CountArray, node: CountArray) -> _Halves:
    """Make the 2 x 2 tables of splits, given one half of each and the rows of the node."""
    a = tables[:, 1].astype(np.float64)
    b = tables[:, 0].astype(np.float64)
    return _Halves(
        a=a,
        b=b,
        c=node[1] - a,
        d=node[0] - b,
        half_size=a + b,
        positives=node[1],
        n=np.maximum(node.sum(axis=0), 1.0),
    )


def _compute_breslow_day(halves: _Halves, odds_ratios: FloatArray) -> FloatArray:
    """Compute the statistic Q of each split around its odds ratio, see `measure_effects`."""
    A = _fit_cells(halves, odds_ratios[:, np.newaxis])
    B = halves.half_size - A
    C = halves.positives - A
    D = halves.n - halves.half_size - halves.positives + A
    expected = np.maximum(np.stack((A, B, C, D)), MIN_CELL)
    return halves.sum_compared(((halves.a - A) ** 2 / expected).sum(axis=0))


def _fit_cells(halves: _Halves, r: FloatArray) -> FloatArray:
    """Find the cell A of tables with the margins of the halves and the odds ratio r.

    By the definition of the odds ratio, A D = r B C, it is a root of

        (1 - r) A^2 + s A - r half_size positives = 0
        s = n - half_size - positives + r (half_size + positives)

    the one that is a cell, in that of its two forms in which no digits cancel.
    """
    margins = halves.half_size + halves.positives
    s = halves.n - halves.half_size - halves.positives + r * margins
    discriminant = s**2 + 4.0 * (1.0 - r) * r * halves.half_size * halves.positives
    root = np.sqrt(np.maximum(discriminant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        if_s_is_positive = 2.0 * r * halves.half_size * halves.positives / (s + root)
        if_s_is_negative = (root - s) / (2.0 * (1.0 - r))  # only for an odds ratio below 1
    return np.where(s < 0.0, if_s_is_negative, if_s_is_positive)


def measure_balance(totals: CountArray) -> float:
    """Compute how evenly rows (outcome, environment) lie in environments: 1 if these are equal.

    It is the share of pairs of rows that are from two environments, relative to that of equally
    large environments.

    >>> measure_balance(np.array([[50, 50], [0, 0]]))
    1.0
    >>> round(measure_balance(np.array([[50, 10], [40, 0]])), 2)
    0.36
    """
    sizes = totals.sum(axis=0).astype(np.float64)
    n_present = int(np.count_nonzero(sizes))
    if n_present < 2:
        return 1.0
    n_effective = count_effective(sizes[np.newaxis])[0]
    return float((1.0 - 1.0 / n_effective) / (1.0 - 1.0 / n_present))


@dataclass(frozen=True)
class Rates:
    """The deviance of the outcome that the splits of a node explain; -1 where a half is too small.

    `pooled` is over all rows, `within` over those of each environment by themselves, of which a
    split divides `n_divided`.
    """

    pooled: FloatArray
    within: FloatArray
    n_divided: IntArray


def measure_rates(tables: CountArray, node: CountArray, n_least: int) -> Rates:
    """Measure the deviance that splits explain, given one half of each.

    `tables` has the axes (split, outcome, environment), `node` (outcome, environment).
    """
    n_splits = len(tables)
    rates = Rates(
        pooled=np.empty(n_splits),
        within=np.empty(n_splits),
        n_divided=np.empty(n_splits, dtype=np.int64),
    )
    # The compiled loop fills the arrays.
    _kernels.measure_rates(
        np.ascontiguousarray(tables), node, n_least, rates.pooled, rates.within, rates.n_divided
    )
    return rates


def compute_rate_heterogeneity(nodes: CountArray) -> TableStatistics:
    """Compute G of outcome against environment in each node, and its degrees of freedom."""
    return GTest().compute_statistics(nodes)


@lru_cache(maxsize=4096)
def find_quantile(level: float, dof: int) -> float:
    """Find the value that chi-squared exceeds with this probability; 0 without a degree of freedom.

    Each is computed once: the search asks for few different ones, very often.
    """
    return float(special.chdtri(dof, level)) if dof > 0 else 0.0


def find_quantiles(level: float, most: int) -> FloatArray:
    """Find such values for 0 degrees of freedom up to `most`.

    Without a degree of freedom it is infinite: nothing is beyond chance.
    """
    quantiles: FloatArray = special.chdtri(np.arange(most + 1), level)
    quantiles[0] = np.inf
    return quantiles


def find_extreme_environments(values: Sequence[float | None]) -> tuple[int, int] | None:
    """Find the positions of the lowest and of the highest value; None if all are unknown.

    Of equal values it is the first.

    >>> find_extreme_environments([0.3, None, 0.1, 0.3])
    (2, 0)
    """
    known = {position: value for position, value in enumerate(values) if value is not None}
    if not known:
        return None
    return min(known, key=known.__getitem__), max(known, key=known.__getitem__)
