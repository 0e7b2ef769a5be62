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
from icscm.stats.heterogeneity import compute_excess
from icscm.stats.independence import GTest, TableStatistics
from icscm.stats.replication import count_effective

# Stands for the deviance of a split of which a half has too few rows: no deviance is negative.
NOT_MEASURED: Final = -1.0
# The odds ratio of a split that changes nothing.
_NO_EFFECT: Final = 1.0
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
    """Measure the effects of the splits of a node, all splits at once.

    A split divides the rows of the node into a half and the rest. Its effect is the odds ratio of a
    positive outcome between the two, which is compared within environments. `tables` are the halves
    (split, outcome, environment), `node` all rows (outcome, environment), and `n_least` the rows
    that the half and the rest need, or the split is not measured. The steps are:

    1.  The deviance that a split explains if its effect may be another in each environment.
    2.  The odds ratio that is common to the environments (Mantel and Haenszel 1959).
    3.  What of the deviance is due to environments that differ from it: the statistic Q (Breslow
        and Day 1980). The heterogeneity is what chance does not explain of Q.
    4.  What is left of the deviance is that of the common effect.
    5.  The heterogeneity as a share of it, see `_compute_share`.
    """
    halves = _make_halves(tables, node)

    # Step 1
    explained_with_differences = measure_rates(tables, node, n_least).within
    is_large_enough = explained_with_differences >= 0.0  # else it is NOT_MEASURED

    # Step 2: a ratio is unknown where no environment can be compared.
    estimated_ratios = _estimate_odds_ratios(halves)
    is_estimated = is_large_enough & ~np.isnan(estimated_ratios)
    odds_ratios = np.where(is_estimated, estimated_ratios, _NO_EFFECT)

    # Step 3: at least two environments are needed to differ, that is a degree of freedom.
    n_compared = halves.is_compared.sum(axis=1)
    dof = np.where(is_estimated, n_compared - 1, 0)
    Q = np.where(dof > 0, _compute_breslow_day(halves, odds_ratios), 0.0)
    heterogeneity = np.maximum(compute_excess(Q, dof), 0.0)

    # Step 4
    explained_in_common = np.maximum(explained_with_differences - Q, 0.0)
    deviance_explained = np.where(is_large_enough, explained_in_common, NOT_MEASURED)

    # The ratios are those of the half against the rest; reported is the rest against the half,
    # which has the other sign. Subtracted from 0, no effect remains 0.0, and is not -0.0.
    log_odds_ratio_of_rest = 0.0 - np.log(odds_ratios)

    return Effects(
        deviance_explained=deviance_explained,
        heterogeneity=heterogeneity,
        heterogeneity_share=_compute_share(heterogeneity, deviance_explained, halves),
        log_odds_ratio=log_odds_ratio_of_rest,
    )


@dataclass(frozen=True)
class Effect:
    """The effect of one split; see `Effects`."""

    deviance_explained: float
    heterogeneity: float
    heterogeneity_share: float
    log_odds_ratio: float


def measure_effect(half: CountArray, node: CountArray, n_least: int = 0) -> Effect:
    """Measure the effect of one split, given a half and all rows (outcome, environment)."""
    effects = measure_effects(half[np.newaxis], node, n_least)
    return Effect(
        deviance_explained=effects.deviance_explained.item(),
        heterogeneity=effects.heterogeneity.item(),
        heterogeneity_share=effects.heterogeneity_share.item(),
        log_odds_ratio=effects.log_odds_ratio.item(),
    )


@dataclass(frozen=True, eq=False)
class _Halves:
    """The 2 x 2 table of each split in each environment.

                  positive           negative
        half      half_positives     half_negatives     half_size
        rest      rest_positives     rest_negatives
                  positives                             n

    The cells and `half_size` are (split, environment), `positives` and `n` (environment).
    """

    half_positives: FloatArray
    half_negatives: FloatArray
    rest_positives: FloatArray
    rest_negatives: FloatArray
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
        """Compute the weight of each environment, its information on the effect of a split.

        It is the product of the four margins of its table, divided by n^3.
        """
        of_halves = self.half_size * (self.n - self.half_size)
        return of_halves * self.positives * (self.n - self.positives) / self.n**3


def _make_halves(tables: CountArray, node: CountArray) -> _Halves:
    """Make the 2 x 2 tables of splits, given one half of each and the rows of the node."""
    half_negatives = tables[:, 0].astype(np.float64)
    half_positives = tables[:, 1].astype(np.float64)
    return _Halves(
        half_positives=half_positives,
        half_negatives=half_negatives,
        rest_positives=node[1] - half_positives,
        rest_negatives=node[0] - half_negatives,
        half_size=half_positives + half_negatives,
        positives=node[1],
        n=np.maximum(node.sum(axis=0), 1.0),
    )


def _estimate_odds_ratios(halves: _Halves) -> FloatArray:
    """Estimate the odds ratio of each split that is common to all environments.

                      sum half_positives rest_negatives / n
        odds ratio = ---------------------------------------        Mantel and Haenszel (1959)
                      sum half_negatives rest_positives / n

    over the environments that are compared. A split that separates the outcomes in all of them has
    a ratio as good as 0 or infinite; the ratio is NaN if both sums are 0.
    """
    numerator = halves.sum_compared(halves.half_positives * halves.rest_negatives / halves.n)
    denominator = halves.sum_compared(halves.half_negatives * halves.rest_positives / halves.n)
    ratios = numerator / np.maximum(denominator, TINY)
    is_defined = numerator + denominator > 0
    return np.where(is_defined, ratios.clip(MIN_ODDS_RATIO, MAX_ODDS_RATIO), np.nan)


def _compute_breslow_day(halves: _Halves, odds_ratios: FloatArray) -> FloatArray:
    """Compute how far the environments are from the common odds ratio of each split.

        Q = sum (observed - expected)^2 / expected

    over the environments that are compared and the four cells of their tables (Breslow and Day
    1980). The expected cells have the margins of the observed ones, and the common odds ratio. In a
    table all four differences are equal but for the sign.
    """
    half_positives = _expect_half_positives(halves, odds_ratios[:, np.newaxis])
    half_negatives = halves.half_size - half_positives
    rest_positives = halves.positives - half_positives
    rest_negatives = halves.n - halves.half_size - halves.positives + half_positives

    cells = np.stack((half_positives, half_negatives, rest_positives, rest_negatives))
    expected = np.maximum(cells, MIN_CELL)
    squared_difference = (halves.half_positives - half_positives) ** 2
    return halves.sum_compared((squared_difference / expected).sum(axis=0))


def _expect_half_positives(halves: _Halves, r: FloatArray) -> FloatArray:
    """Compute the positives x of each half if tables keep their margins and have the odds ratio r.

    The table is then

                  positive           negative
        half      x                  half_size - x
        rest      positives - x      n - half_size - positives + x

    By the definition of the odds ratio,  x (n - half_size - positives + x)  is r times the product
    of the other two cells, so x is a root of

        (1 - r) x^2 + s x - r half_size positives = 0
        s = n - half_size - positives + r (half_size + positives)

    There are two forms of the root that lies within the margins. The one is taken in which no
    digits cancel, which depends on the sign of s.
    """
    margins = halves.half_size + halves.positives
    s = halves.n - halves.half_size - halves.positives + r * margins
    discriminant = s**2 + 4.0 * (1.0 - r) * r * halves.half_size * halves.positives
    root = np.sqrt(np.maximum(discriminant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        if_s_is_positive = 2.0 * r * halves.half_size * halves.positives / (s + root)
        if_s_is_negative = (root - s) / (2.0 * (1.0 - r))  # only for an odds ratio below 1
    return np.where(s < 0.0, if_s_is_negative, if_s_is_positive)


def _compute_share(
    heterogeneity: FloatArray, deviance_explained: FloatArray, halves: _Halves
) -> FloatArray:
    """Compute the square of the coefficient of variation of each split's effect.

        share = heterogeneity / (evenness deviance)        evenness = 1 - 1 / effective number

    of environments, counted by their weights. If effects vary by tau around the common one, the
    heterogeneity is about  tau^2 evenness sum of weights  (DerSimonian and Laird 1986), and the
    deviance about  effect^2 sum of weights.  Their ratio is that of tau^2 to effect^2.
    """
    evenness = 1.0 - 1.0 / count_effective(halves.compute_weights())
    share = heterogeneity / np.maximum(evenness * deviance_explained, MIN_CELL)
    return np.minimum(share, _MAX_SHARE)


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
