"""Invariance of a leaf: a verdict instead of a p-value.

A p-value above alpha may mean *the rate of positives is the same everywhere* or *there was too
little data to detect a difference*. A verdict distinguishes the two by the largest difference that
the data do not exclude, and by the minimum detectable difference:

    not invariant              the test rejects at level alpha
    invariant                  it does not, and the largest difference is bounded by the margin
    too little data to tell    neither

Intervals:

    rate of one environment                    Wilson's score interval
    difference of two rates                    Newcombe's, which joins their Wilson intervals
    largest difference of K environments
        upper bound    the largest upper bound of all pairs, each at level 1 - alpha
        lower bound    the largest lower bound of all pairs, each at level 1 - alpha / (K (K - 1))

The upper bound needs no correction: the pair that truly differs most is among the pairs, and its
bound holds with that chance. The lower bound has Bonferroni's correction, as it is the largest of
all pairs in both directions, of which there are K (K - 1).

Both bounds together are an interval at level 1 - 2 alpha. If its upper end is within the margin,
the two one-sided tests of equivalence reject for all pairs.

`icscm.stats.pairs` compares all pairs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from icscm import _constants as limits
from icscm._lazy import special
from icscm._repr import Display, DisplayMixin
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.stats.independence import IndependenceTest, compute_corrected, exceeds, is_corrected
from icscm.stats.pairs import Differences, bound_pairs

INVARIANT = "invariant"
NOT_INVARIANT = "not invariant"
TOO_LITTLE_DATA = "too little data to tell"

# Keeps divisions finite.
_TINY: Final = 1e-300


@dataclass(frozen=True, repr=False)
class Verdict(DisplayMixin):
    """The verdict on the invariance of one leaf.

    Parameters
    ----------
    conclusion : {"invariant", "not invariant", "too little data to tell"}
        The verdict itself.
    p_value : float
        Of the test of independence.
    rates : tuple of float or None
        Share of positive rows in each environment; None without rows.
    rate_intervals : tuple of (float, float) or None
        Wilson's interval of each rate, 95 %.
    difference : float or None
        The largest between two environments; None if fewer than two have rows.
    difference_interval : (float, float) or None
        Of the largest difference, level 1 - 2 alpha; the upper end is 1 where an environment has
        no rows.
    minimum_detectable_difference : float or None
        The smallest difference that the test detects with 80 % power; None if it detects none.
    alpha : float or None
        The level of the test: *not invariant* are p-values up to it. With a correction for many
        candidates this is what the correction left for the step in which the leaf was tested.
    design_effect : float or None
        Where rows have groups or weights: the factor by which these inflate the variance. All of
        the above use the number of rows divided by it.
    """

    conclusion: str
    p_value: float
    rates: tuple[float | None, ...]
    rate_intervals: tuple[tuple[float, float] | None, ...]
    difference: float | None
    difference_interval: tuple[float, float] | None
    minimum_detectable_difference: float | None
    alpha: float | None = None
    design_effect: float | None = None

    def _display(self) -> Display:
        apart = "nothing to compare"
        if self.difference is not None and self.difference_interval is not None:
            low, high = self.difference_interval
            apart = f"rates differ by {self.difference:.1%} ({low:.1%} to {high:.1%})"
        return Display(f"<{self.conclusion}: p {self.p_value:.2g}, {apart}>")


class Verdicts(tuple[Verdict, ...], DisplayMixin):
    """The verdicts on a model's leaves, in their order; shown as a table."""

    __slots__ = ()
    __repr__ = DisplayMixin.__repr__

    def _display(self) -> Display:
        rows = []
        for number, verdict in enumerate(self, start=1):
            low, high = verdict.difference_interval or (None, None)
            row = (
                str(number),
                verdict.conclusion,
                f"{verdict.p_value:.2g}",
                _format_share(verdict.difference),
                _format_share(low),
                _format_share(high),
                _format_share(verdict.minimum_detectable_difference),
            )
            rows.append(row)
        if not rows:
            return Display("No verdicts: nothing was tested.")
        columns = "leaf", "verdict", ">p", ">difference", ">at least", ">at most", ">detectable"
        line = "Invariance of the label's rate in each leaf"
        return Display(line, columns, rows)


def _format_share(share: float | None) -> str:
    """Write a share in percent; a dash where it is unknown."""
    return "-" if share is None else f"{share:.1%}"


def make_verdicts(
    tables: Sequence[Any] | CountArray,
    test: IndependenceTest,
    alpha: float,
    margin: float = limits.DEFAULT_MARGIN,
    *,
    trivial_is_invariant: bool = False,
    levels: Sequence[float] | None = None,
    effects: FloatArray | None = None,
) -> tuple[Verdict, ...]:
    """Make the verdict on each of several leaves, given by (leaf, outcome, environment).

    `levels` are those of the tests where they are not alpha, as after a correction for many
    tests; intervals are at alpha all the same. `effects` are the design effects of the leaves.

    With very many rows a test also rejects differences that are shown to lie inside the margin.
    They count as *not invariant*, or as *invariant* with `trivial_is_invariant`.
    """
    tables = np.asarray(tables, dtype=np.int64)
    if len(tables) == 0:
        return ()
    tested_at = np.full(len(tables), alpha) if levels is None else np.asarray(levels)
    p_values = compute_corrected(test, tables, effects)
    is_rejected = ~exceeds(p_values, tested_at)

    effective_tables = deflate(tables, effects)
    differences = compute_differences(effective_tables, alpha)
    # an upper bound is 1 where an environment has no rows
    is_within_margin = _is_inside(differences.high, margin)
    is_invariant = is_within_margin if trivial_is_invariant else is_within_margin & ~is_rejected

    detectable = compute_minimum_detectable_difference(
        effective_tables, tested_at, is_corrected(test)
    )

    verdicts = []
    for leaf, rates in enumerate(_measure_rates(effective_tables)):
        largest = float(differences.largest[leaf])
        interval = float(differences.low[leaf]), float(differences.high[leaf])
        is_detectable = np.isfinite(detectable[leaf])
        verdicts.append(
            Verdict(
                conclusion=_conclude(is_invariant[leaf], is_rejected[leaf]),
                p_value=float(p_values[leaf]),
                rates=rates.rates,
                rate_intervals=rates.intervals,
                difference=largest if rates.have_pair else None,
                difference_interval=interval if rates.have_pair else None,
                minimum_detectable_difference=float(detectable[leaf]) if is_detectable else None,
                alpha=float(tested_at[leaf]),
                design_effect=None if effects is None else float(effects[leaf]),
            )
        )
    return tuple(verdicts)


def _conclude(is_invariant: bool, is_rejected: bool) -> str:
    """Return the verdict in words."""
    if is_invariant:
        return INVARIANT
    return NOT_INVARIANT if is_rejected else TOO_LITTLE_DATA


@dataclass(frozen=True)
class _LeafRates:
    """The rate of a leaf in each environment, and its interval; None where it has no rows."""

    rates: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]

    @property
    def have_pair(self) -> bool:
        """Whether two environments have rows, so that there is a difference."""
        n_known = len(self.rates) - self.rates.count(None)
        return n_known > 1


def _measure_rates(tables: CountArray) -> list[_LeafRates]:
    """Measure the rates of each leaf, with Wilson's intervals."""
    sizes = tables.sum(axis=1)
    positives = tables[:, 1]
    rates = _divide(positives, sizes)
    z = _find_quantile((1 - limits.VERDICT_CONFIDENCE) / 2)
    intervals = compute_wilson(positives, sizes, z)

    leaves = []
    for leaf, has_rows in enumerate((sizes > 0).tolist()):
        ends = zip(intervals.low[leaf].tolist(), intervals.high[leaf].tolist(), strict=True)
        leaves.append(
            _LeafRates(
                rates=_keep_known(rates[leaf].tolist(), has_rows),
                intervals=_keep_known(ends, has_rows),
            )
        )
    return leaves


def _keep_known(values: Iterable[Any], has_rows: Sequence[bool]) -> tuple[Any, ...]:
    """Keep the values of environments that have rows; None takes the place of the others."""
    return tuple(
        value if is_known else None for value, is_known in zip(values, has_rows, strict=True)
    )


def deflate(tables: CountArray, effects: Iterable[float | None] | None) -> Array:
    """Compute effective counts: those of each leaf divided by its design effect, if it has one."""
    if effects is None:
        return tables
    factors = [1.0 if effect is None else effect for effect in effects]
    if all(factor == 1.0 for factor in factors):
        return tables
    return np.asarray(tables / np.array(factors)[:, np.newaxis, np.newaxis])


def deflate_alike(tables: CountArray, verdicts: Sequence[Verdict]) -> Array:
    """Divide counts by the mean design effect of the leaves, whose shares stay as they are."""
    effects = [verdict.design_effect for verdict in verdicts if verdict.design_effect is not None]
    if not effects:
        return tables
    mean_effect = sum(effects) / len(effects)
    return deflate(tables, [mean_effect] * len(tables))


def _divide(positives: Array, sizes: Array) -> FloatArray:
    """Compute rates; 0 without rows."""
    return positives / np.where(sizes > 0, sizes, 1)


class Interval(NamedTuple):
    """The ends of the interval of each of several rates."""

    low: FloatArray
    high: FloatArray


def compute_wilson(positives: CountArray, sizes: CountArray, z: float) -> Interval:
    """Compute Wilson's score interval of a rate; from 0 to 1 without rows.

    Of k positives among n rows, with the normal quantile z:

        centre      = (k + z^2 / 2) / (n + z^2)
        half-width  = z sqrt(k (n - k) / n + z^2 / 4) / (n + z^2)
    """
    positives = np.asarray(positives, dtype=np.float64)
    sizes = np.asarray(sizes, dtype=np.float64)
    variance = positives * (sizes - positives) / np.where(sizes > 0, sizes, 1.0)
    # with z = 0, the interval is the rate itself, and without rows nothing
    divisor = np.maximum(sizes + z**2, _TINY)
    centre = (positives + z**2 / 2) / divisor
    half_width = z * np.sqrt(variance + z**2 / 4) / divisor
    return Interval(
        low=np.maximum(centre - half_width, 0.0),
        high=np.minimum(centre + half_width, 1.0),
    )


def compute_differences(tables: CountArray, alpha: float) -> Differences:
    """Compute the largest difference of rates between environments, with its 1 - 2 alpha interval.

    An environment without rows allows any difference, so the upper bound is 1 then.
    """
    n_environments = tables.shape[2]
    n_ordered_pairs = max(n_environments * (n_environments - 1), 1)
    uncorrected = _bound_pairs(tables, _find_quantile(alpha))
    corrected = _bound_pairs(tables, _find_quantile(alpha / n_ordered_pairs))
    return Differences(
        largest=uncorrected.largest,
        low=corrected.low,
        high=np.where(_has_gap(tables), 1.0, uncorrected.high),
    )


def find_shown(tables: CountArray, alpha: float, margin: float) -> BoolArray:
    """Find the leaves that are shown invariant: rates of all pairs differ by at most the margin."""
    bounds = _bound_pairs(tables, _find_quantile(alpha)).high
    return _is_inside(bounds, margin) & ~_has_gap(tables)


def _is_inside(bounds: FloatArray, limit: float) -> BoolArray:
    """Tell whether bounds are within a limit; they are rounded, for sums differ in last digits."""
    return np.round(bounds, limits.P_VALUE_DECIMALS) <= limit


def _has_gap(tables: CountArray) -> BoolArray:
    """Tell of each leaf whether an environment has no rows, or nothing to be compared with."""
    n_environments = tables.shape[2]
    has_empty_environment = (tables.sum(axis=1) == 0).any(axis=1)
    return np.asarray(has_empty_environment | (n_environments < 2))


def _bound_pairs(tables: CountArray, z: float) -> Differences:
    """Bound the difference of rates over all pairs of environments that have rows."""
    sizes = tables.sum(axis=1)
    rates = _divide(tables[:, 1], sizes)
    intervals = compute_wilson(tables[:, 1], sizes, z)
    return bound_pairs(
        rates, below=rates - intervals.low, above=intervals.high - rates, exists=sizes > 0
    )


def compute_minimum_detectable_difference(
    tables: CountArray, alpha: float | FloatArray, corrected: bool = True
) -> FloatArray:
    """Compute the smallest difference that a test detects with 80 % power; inf if none is.

    It is between the two environments with the most rows, n1 and n2; the others are at the common
    rate r. A difference d between the two makes Pearson's statistic noncentral chi-squared with
    K - 1 degrees of freedom. The noncentrality, and the d that reaches a needed one, are

        noncentrality = d^2 / (r (1 - r) (1/n1 + 1/n2))
        d             = sqrt(noncentrality r (1 - r) (1/n1 + 1/n2))

    with r = (positives + 1) / (rows + 2): a leaf without positives has a small rate, not the rate
    0. With two environments a test that is `corrected` (by Yates, or Fisher's) first takes
    (1/n1 + 1/n2) / 2 off any difference, and d is larger by that.
    """
    sizes = tables.sum(axis=1)
    if sizes.shape[1] < 2:
        return np.full(len(tables), np.inf)
    largest_sizes = np.sort(sizes, axis=1)[:, -2:].astype(np.float64)
    rates = (tables[:, 1].sum(axis=1) + 1) / (sizes.sum(axis=1) + 2)

    n_seen = (sizes > 0).sum(axis=1)
    n_dof = np.maximum(n_seen - 1, 1).tolist()
    levels = np.broadcast_to(alpha, len(tables)).tolist()
    noncentralities = np.array(
        [_find_noncentrality(dof, level) for dof, level in zip(n_dof, levels, strict=True)]
    )

    with np.errstate(divide="ignore", invalid="ignore"):
        # inf if fewer than two environments have rows
        inverse_sizes = (1 / largest_sizes).sum(axis=1)
        detectable = np.sqrt(noncentralities * rates * (1 - rates) * inverse_sizes)
    detectable += np.where(corrected & (n_seen == 2), 0.5 * inverse_sizes, 0.0)
    return np.where(detectable <= 1.0, detectable, np.inf)


def compute_minimum_detectable_shift(sizes: FloatArray, alpha: float) -> float:
    """Compute the smallest difference of two means that a test detects with 80 % power.

    It is in standard deviations of a number within environments, between the two environments
    with the most rows, n1 and n2, as in `compute_minimum_detectable_difference`:

        d = sqrt(noncentrality (1/n1 + 1/n2)),  with K - 1 degrees of freedom

    A slope on a column of standard deviation 1 has the same variance as a mean, so that d is also
    the smallest difference of two such effects. It is inf if fewer than two environments have rows.
    """
    present_sizes = np.sort(sizes[sizes > 0])
    if len(present_sizes) < 2:
        return np.inf
    noncentrality = _find_noncentrality(len(present_sizes) - 1, alpha)
    inverse_sizes = float((1 / present_sizes[-2:]).sum())
    return float(np.sqrt(noncentrality * inverse_sizes))


@lru_cache(maxsize=256)
def _find_noncentrality(dof: int, alpha: float) -> float:
    """Find the noncentrality at which a chi-squared test at level alpha has the wanted power."""
    if alpha >= limits.VERDICT_POWER:
        return 0.0
    critical = special.chdtri(dof, alpha)
    return float(special.chndtrinc(critical, dof, 1 - limits.VERDICT_POWER))


def _find_quantile(tail: float) -> float:
    """Find the normal quantile that leaves `tail` above it, at least 0."""
    return max(-float(special.ndtri(tail)), 0.0)
