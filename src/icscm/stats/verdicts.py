"""Invariance of a leaf: a verdict instead of a p-value.

A p-value above alpha may mean *the label's rate is the same everywhere* or *there was too little
data to detect a difference*. A verdict distinguishes the two by the largest difference that the
data do not exclude, and by the minimum detectable difference.

Methods. The rate of one environment has Wilson's score interval. The difference of two rates has
Newcombe's interval, which joins the Wilson intervals of the two. The *largest* difference between
any two of K environments is bounded

- from above by the largest upper bound of all pairs, each at level 1 - alpha. No correction is
  needed: the pair that truly differs most is one of them, and its bound holds with that chance;
- from below by the largest lower bound of all pairs, each at 1 - alpha / (K (K - 1)), Bonferroni's
  correction for taking the largest of all pairs in both directions.

Together this is an interval at level 1 - 2 alpha, and requiring that its upper end lie inside the
margin is the two one-sided tests of equivalence, for all pairs.

Two values with their intervals differ by x - y, at most by x - y + hypot(above x, below y), and at
least by x - y - hypot(below x, above y): the distances to the ends of the intervals add up like
standard errors. All pairs are compared; of very many values only those that can be part of an
extreme pair, and so the result is the same to the last digit.

    K values, with distances below and above          (300,000 rows in 10,000 environments)
      -> at most two of a kind                        (counts repeat)
      -> those whose best conceivable partner would take them beyond a pair already seen
      -> all pairs of these                           (a few dozen)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm import _constants as limits
from icscm._lazy import special
from icscm._repr import Display, DisplayMixin
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.stats.independence import IndependenceTest, compute_corrected, exceeds, is_corrected

INVARIANT = "invariant"
NOT_INVARIANT = "not invariant"
TOO_LITTLE_DATA = "too little data to tell"

# Seen from each of a few angles t the distances are plain sums, a cos t + b sin t. The largest of
# them is at most hypot(a, b), and at least this share of it.
_SIN = np.sin(np.linspace(0.0, np.pi / 2, limits.PAIR_ANGLES))[:, np.newaxis]
_COS = _SIN[::-1]
_SHARE = float(np.cos(np.pi / 4 / (limits.PAIR_ANGLES - 1)))
# Far above what sums lose to rounding, relative to the numbers at hand.
_SLACK = 1e-9


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
        Share of positive labels in each environment; None without samples.
    rate_intervals : tuple of (float, float) or None
        Wilson's interval of each rate, 95 %.
    difference : float or None
        The largest between two environments; None if fewer than two have samples.
    difference_interval : (float, float) or None
        Of the largest difference, level 1 - 2 alpha; the upper end is 1 where an environment has
        no samples.
    minimum_detectable_difference : float or None
        The smallest difference that the test detects with 80 % power; None if it detects none.
    alpha : float or None
        The level of the test: *not invariant* are p-values up to it. With a correction for many
        candidates this is what the correction left for the step in which the leaf was tested.
    design_effect : float or None
        Where rows have groups or weights: the factor by which these inflate the variance. All of
        the above use the number of samples divided by it.
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
        for number, each in enumerate(self, start=1):
            low, high = each.difference_interval or (None, None)
            shares = each.difference, low, high, each.minimum_detectable_difference
            cells = ("-" if share is None else f"{share:.1%}" for share in shares)
            rows.append((str(number), each.conclusion, f"{each.p_value:.2g}", *cells))
        columns = "leaf", "verdict", ">p", ">difference", ">at least", ">at most", ">detectable"
        line = "Invariance of the label's rate in each leaf"
        return Display(line, columns, rows) if rows else Display("No verdicts: nothing was tested.")


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
    """The verdict on each of several leaves, given by label and environment.

    `levels` are those of the tests where they are not alpha, as after a correction for many
    tests; intervals are at alpha all the same. `effects` are the design effects of the leaves.

    With very many samples a test also rejects differences that are shown to lie inside the
    margin. They count as *not invariant*, or as *invariant* with `trivial_is_invariant`.
    """
    tables = np.asarray(tables, dtype=np.int64)
    if len(tables) == 0:
        return ()
    tested_at = np.full(len(tables), alpha) if levels is None else np.asarray(levels)
    p_values = compute_corrected(test, tables, effects)
    tables = deflate(tables, effects)
    differences = compute_differences(tables, alpha)
    is_shown = _is_inside(differences.high, margin)  # an upper bound is 1 where there is a gap
    is_rejected = ~exceeds(p_values, tested_at)
    wins = is_shown if trivial_is_invariant else is_shown & ~is_rejected
    conclusions = np.where(wins, INVARIANT, np.where(is_rejected, NOT_INVARIANT, TOO_LITTLE_DATA))
    smallest = compute_minimum_detectable_difference(tables, tested_at, is_corrected(test))
    detectable = [each if np.isfinite(each) else None for each in smallest.tolist()]
    sizes = tables.sum(axis=1)
    rates = _divide(tables[:, 1], sizes)
    quantile = _find_quantile((1 - limits.VERDICT_CONFIDENCE) / 2)
    bounds = compute_wilson(tables[:, 1], sizes, quantile)
    verdicts = []
    for i, is_seen in enumerate((sizes > 0).tolist()):
        largest, low, high = (float(each[i]) for each in differences)
        intervals = zip(bounds[0][i].tolist(), bounds[1][i].tolist(), strict=True)
        has_pair = sum(is_seen) > 1
        verdict = Verdict(
            conclusion=str(conclusions[i]),
            p_value=float(p_values[i]),
            rates=_blank(rates[i].tolist(), is_seen),
            rate_intervals=_blank(intervals, is_seen),
            difference=largest if has_pair else None,
            difference_interval=(low, high) if has_pair else None,
            minimum_detectable_difference=detectable[i],
            alpha=float(tested_at[i]),
            design_effect=None if effects is None else float(effects[i]),
        )
        verdicts.append(verdict)
    return tuple(verdicts)


def deflate(tables: CountArray, effects: Iterable[float | None] | None) -> Array:
    """Effective counts: those of each leaf divided by its design effect, where it has one."""
    factors = [1.0 if each is None else each for each in (() if effects is None else effects)]
    if all(each == 1.0 for each in factors):
        return tables
    return np.asarray(tables / np.array(factors)[:, np.newaxis, np.newaxis])


def deflate_alike(tables: CountArray, verdicts: Sequence[Verdict]) -> Array:
    """Counts divided by the mean design effect of all leaves, whose shares stay as they are."""
    effects = [each.design_effect for each in verdicts if each.design_effect is not None]
    return deflate(tables, [sum(effects) / len(effects)] * len(tables) if effects else None)


def _divide(positives: Array, sizes: Array) -> FloatArray:
    """Rates; 0 without samples."""
    return positives / np.where(sizes > 0, sizes, 1)


def _blank(values: Iterable[Any], is_seen: Sequence[bool]) -> tuple[Any, ...]:
    """The values of each environment, None where it has no samples."""
    return tuple(value if seen else None for value, seen in zip(values, is_seen, strict=True))


def compute_wilson(
    positives: CountArray, sizes: CountArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a rate; from 0 to 1 without samples."""
    positives = np.asarray(positives, dtype=np.float64)
    sizes = np.asarray(sizes, dtype=np.float64)
    variance = positives * (sizes - positives) / np.where(sizes > 0, sizes, 1.0)
    # z = 0 is the interval that has shrunk to the rate itself
    weight = np.maximum(sizes + z**2, 1e-300)
    centre = (positives + z**2 / 2) / weight
    half = z * np.sqrt(variance + z**2 / 4) / weight
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def compute_differences(tables: CountArray, alpha: float) -> "Differences":
    """The largest difference of rates between environments, with its 1 - 2 alpha interval.

    An environment without samples allows any difference, so the upper bound is 1 then.
    """
    n_environments = tables.shape[2]
    n_ordered_pairs = max(n_environments * (n_environments - 1), 1)
    largest, _, high = _bound_pairs(tables, _find_quantile(alpha))
    _, low, _ = _bound_pairs(tables, _find_quantile(alpha / n_ordered_pairs))
    return Differences(largest, low, np.where(_has_gap(tables), 1.0, high))


def find_shown(tables: CountArray, alpha: float, margin: float) -> BoolArray:
    """Find the leaves that are shown invariant: rates of all pairs differ by at most the margin."""
    bounds = _bound_pairs(tables, _find_quantile(alpha)).high
    return _is_inside(bounds, margin) & ~_has_gap(tables)


def _is_inside(bounds: FloatArray, limit: float) -> BoolArray:
    """Whether bounds are within a limit; the last digits of a sum must not decide."""
    return np.round(bounds, limits.P_VALUE_DECIMALS) <= limit


def _has_gap(tables: CountArray) -> BoolArray:
    """Whether an environment has no samples, or there is nothing to compare it with."""
    return np.asarray((tables.sum(axis=1) == 0).any(axis=1) | (tables.shape[2] < 2))


def _bound_pairs(tables: CountArray, z: float) -> "Differences":
    """Largest difference, lower and upper bound over all pairs of environments with samples."""
    sizes = tables.sum(axis=1)
    rates = _divide(tables[:, 1], sizes)
    low, high = compute_wilson(tables[:, 1], sizes, z)
    return bound_pairs(rates, rates - low, high - rates, sizes > 0)


def compute_minimum_detectable_difference(
    tables: CountArray, alpha: float | FloatArray, corrected: bool = True
) -> FloatArray:
    """The smallest difference that a chi-squared test detects with 80 % power; inf if none is.

    It is between the two environments with the most samples (in harmonic mean), the others being
    at the common rate r. A difference d between these makes Pearson's statistic noncentral
    chi-squared, with K - 1 degrees of freedom and noncentrality

        d^2 n1 n2 / (n1 + n2) / (r (1 - r)).

    The common rate is taken as (positives + 1) / (samples + 2): a leaf without positives has a
    small rate, not the rate 0. With two environments a test that is `corrected` (by Yates, or
    Fisher's) takes (1/n1 + 1/n2) / 2 off any difference first, so that much more is needed.
    """
    sizes = tables.sum(axis=1)
    largest = np.sort(sizes, axis=1)[:, -2:].astype(np.float64)
    if largest.shape[1] < 2:
        return np.full(len(tables), np.inf)
    rate = (tables[:, 1].sum(axis=1) + 1) / (sizes.sum(axis=1) + 2)
    n_seen = (sizes > 0).sum(axis=1)
    levels = np.broadcast_to(alpha, len(tables)).tolist()
    dof = np.maximum(n_seen - 1, 1).tolist()
    needed = np.array([_find_noncentrality(*each) for each in zip(dof, levels, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = (1 / largest).sum(axis=1)  # inf if fewer than two environments have samples
        detectable = np.sqrt(needed * rate * (1 - rate) * errors)
    detectable += np.where(corrected & (n_seen == 2), 0.5 * errors, 0.0)
    return np.where(detectable <= 1.0, detectable, np.inf)


@lru_cache(maxsize=256)
def _find_noncentrality(dof: int, alpha: float) -> float:
    """The noncentrality at which a chi-squared test at level alpha has the wanted power."""
    if alpha >= limits.VERDICT_POWER:
        return 0.0
    critical = special.chdtri(dof, alpha)
    return float(special.chndtrinc(critical, dof, 1 - limits.VERDICT_POWER))


def _find_quantile(tail: float) -> float:
    """The normal quantile that leaves `tail` above it, at least 0."""
    return max(-float(special.ndtri(tail)), 0.0)


# --- the largest difference between any two of many values --------------------


class Differences(NamedTuple):
    """The largest difference between two values in each of several rows, and its bounds."""

    largest: FloatArray
    low: FloatArray
    high: FloatArray


def bound_pairs(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray
) -> "Differences":
    """Largest difference, lower and upper bound over all pairs that exist; rows are independent."""
    if values.shape[1] <= limits.MAX_PAIRED:
        return compare_all(values, below, above, exists)
    found = Differences(*np.zeros((3, len(values))))
    for row, *parts in zip(range(len(values)), values, below, above, exists, strict=True):
        is_there = parts.pop()
        points = np.stack([part[is_there] for part in parts])
        kept = points[:, find_extreme(points)][:, np.newaxis]
        for so_far, value in zip(found, compare_all(*kept), strict=True):
            so_far[row] = value[0]
    return found


def compare_all(
    values: FloatArray, below: FloatArray, above: FloatArray, exists: BoolArray | None = None
) -> "Differences":
    """The same, by comparing all pairs.

    One value against all later ones at a time, so that memory grows with K, not K^2.
    """
    found = Differences(*np.zeros((3, len(values))))
    for i in range(values.shape[1] - 1):
        one, others = slice(i, i + 1), slice(i + 1, None)
        difference = values[:, one] - values[:, others]
        upper = difference + np.hypot(above[:, one], below[:, others])
        lower = difference - np.hypot(below[:, one], above[:, others])
        both = 1 if exists is None else exists[:, one] & exists[:, others]
        pairs = np.abs(difference), np.maximum(lower, -upper), np.maximum(upper, -lower)
        for so_far, bounds in zip(found, pairs, strict=True):
            np.maximum(so_far, (bounds * both).max(axis=1) + 0.0, out=so_far)  # not -0.0
    return found


def find_extreme(points: FloatArray) -> NDArray[np.intp]:
    """Which of the points (value, below, above) can be part of an extreme pair, and a few more.

    For each point, and in either place of a pair, the best possible partner gives a bound. Points
    whose bound is below the best of some pairs tried first are omitted.
    """
    # at most two of a kind: a pair may be of two alike, and more add nothing
    order = np.lexsort(points)
    is_new = np.ones(len(order), dtype=bool)
    is_new[2:] = (points[:, order[2:]] != points[:, order[:-2]]).any(axis=0)
    distinct = order[is_new]
    values, below, above = points[:, distinct]
    # what each point adds to a pair in either place, by angle
    higher = values + _COS / _SHARE * above, -values + _SIN / _SHARE * below
    lower = values - _COS * below, -values - _SIN * above
    # the two largest from each angle: where one point is best in both places, it needs another
    tried = np.arange(len(distinct))
    if len(distinct) > 2:
        parts = [np.argpartition(each, -2, axis=1)[:, -2:] for each in (*higher, *lower)]
        tried = np.unique(np.concatenate(parts))
    (_, low, high) = compare_all(*points[:, distinct[tried]][:, np.newaxis])
    slack = _SLACK * max(1.0, float(np.abs(points).max(initial=0.0)))
    is_kept = np.zeros(len(values), dtype=bool)
    is_kept[tried] = True  # among them the ends of the values, seen where a distance has no weight
    for one, other in (higher, higher[::-1]):  # the hypotenuse is below its view from *some* angle
        best = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).max(axis=0)
        is_kept |= best >= high - slack
    for one, other in (lower, lower[::-1]):  # and above that from *each*
        best = (one + other.max(axis=1, keepdims=True, initial=-np.inf)).min(axis=0)
        is_kept |= best >= low - slack
    return distinct[is_kept]
