"""A points score from counts: terms one by one, then whole points for all of them.

    log odds of a row in environment e  =  intercept_e + sum of the effects of its true terms

A term is a set of bins of one column: values above a threshold, or some levels of a category. Given
the terms so far, the residuals g and hessians h of all rows, summed by (feature, bin, environment),
give the gain of each further term: one Newton step of its effect and of the intercepts. The best
is added while it explains more than chance; then each term may be exchanged. All other steps need
only the counts of the patterns of true terms, and finally the counts of the totals:

    terms   --count_patterns-->   (pattern, label, environment)   --Newton-->   effects
    effects times a factor, rounded, each moved by 1 while that lowers the log loss   -->   points
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._lazy import isotonic, special
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import MISSINGNESS, BinnedRule, Cut, Layout, PatternTable, RowSource
from icscm.model.rules import MissingRule
from icscm.model.score import Score, Term, find_max_total
from icscm.model.splits import freeze_counts
from icscm.stats.logistic import InterceptPrior, fit_logistic_regression
from icscm.stats.random_effects import pool_effects
from icscm.stats.splits import find_quantile

# Precision of the prior of an effect, around 0, and of an intercept, around the environment's rate.
_RIDGE: Final = 1.0
_OF_INTERCEPT: Final = 0.1
# Log loss that the exchange of a term must gain, and how many are made at most.
_LEAST_GAIN: Final = 0.5
_MAX_EXCHANGES: Final = 5
# Rounds in which all points are moved, at most.
_MAX_ROUNDS: Final = 20
# Missing values of a column from which on they have their own points instead of the mean.
_FEW: Final = 20
# Number of classes of totals, of about equal size.
_N_CLASSES: Final = 8


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of the search for a score.

    `features` may be used; `least` is the least information of a term, its hessian within
    environments. With groups of rows, deviance by chance is `design` times as large.
    """

    features: IntArray
    max_terms: int = 12
    max_points: int = 5
    least: float = 1.0
    design: float = 1.0


class Fit(NamedTuple):
    """Log odds of the environments and of the terms, probabilities (pattern, environment), loss."""

    intercepts: FloatArray
    effects: FloatArray
    p: FloatArray
    loss: float


def fit_effects(terms: Array, counts: CountArray, ridge: float = _RIDGE) -> Fit:
    """Fit effects of the terms that are common to all environments, and their intercepts.

    `terms` has the axes (pattern, term), `counts` (pattern, label, environment). Each row of the
    regression is a pattern in an environment.
    """
    sizes = counts.sum(axis=1)
    positives = counts[:, 1]
    n_patterns, n_environments = sizes.shape
    rates = (positives.sum(axis=0) + 0.5) / (sizes.sum(axis=0) + 1.0)
    regression = fit_logistic_regression(
        np.repeat(terms.astype(float), n_environments, axis=0),
        positives.ravel(),
        np.tile(np.arange(n_environments), n_patterns),
        n_environments=n_environments,
        sizes=sizes.ravel(),
        ridge=ridge,
        intercept_prior=InterceptPrior(means=special.logit(rates), precision=_OF_INTERCEPT),
    )
    assert regression is not None  # with a ridge, slopes are always determined
    effects = regression.slopes
    intercepts = regression.intercepts

    log_odds = (terms.astype(float) @ effects)[:, np.newaxis] + intercepts
    losses = counts[:, 0] * np.logaddexp(0, log_odds) + positives * np.logaddexp(0, -log_odds)
    loss = round(float(losses.sum()), DEVIANCE_DECIMALS)
    return Fit(intercepts=intercepts, effects=effects, p=special.expit(log_odds), loss=loss)


# --- terms ----------------------------------------------------------------------------------------


def find_terms(source: Any, settings: ScoreSettings) -> list[BinnedRule]:
    """The terms of a score: the best is added, again and again, then each may be exchanged."""
    terms: list[BinnedRule] = []
    chance = settings.design * find_quantile(CHANCE_LEVEL, 1)
    while len(terms) < settings.max_terms:
        gain, best = _find_best(source, settings, terms)
        if best is None or gain <= chance:
            break
        terms.append(best)
    for _ in range(_MAX_EXCHANGES):
        loss = _fit_terms(source, terms).loss - _LEAST_GAIN
        for place in range(len(terms)):
            others = [*terms[:place], *terms[place + 1 :]]
            _, best = _find_best(source, settings, others)
            if best is not None and _fit_terms(source, [*others, best]).loss < loss:
                terms = [*others, best]
                break
        else:
            break
    return terms


def _fit_terms(source: RowSource, terms: Sequence[BinnedRule]) -> Fit:
    table = source.count_patterns(terms)
    return fit_effects(table.patterns, table.counts)


def _find_best(
    source: Any, settings: ScoreSettings, terms: Sequence[BinnedRule]
) -> tuple[float, BinnedRule | None]:
    """The term that explains most given the others, the first of ties, and its gain."""
    best: tuple[float, BinnedRule | None] = 0.0, None
    used = {(each.feature, each.satisfied.tobytes()) for each in terms}
    cubes = [*source.rows.sum_residuals(terms, _fit_terms(source, terms).p, settings.features)]
    places = [(feature, k, cube) for cube in cubes for k, feature in enumerate(cube.features)]
    for feature, k, cube in sorted(places, key=lambda each: each[0]):
        n_bins = int(source.columns.count_bins(np.array([feature]))[0])
        g, h = cube.counts[k, :n_bins].swapaxes(0, 1)
        sets = list_sets(cube.layout, g.sum(axis=1), h.sum(axis=1))
        is_used = [(feature, each.tobytes()) in used for each in sets]
        gains = np.where(is_used, 0.0, _compute_gains(sets, g, h, settings.least))
        if len(gains) and (gain := float(gains.max())) > best[0]:
            best = gain, BinnedRule(int(feature), sets[int(gains.argmax())])
    return best


def list_sets(layout: Layout, g: FloatArray, h: FloatArray) -> BoolArray:
    """The terms (term, bin) of a column, as sets of bins.

    Values above each threshold; each level of a category, and levels with the largest residuals.
    Missing values are a term of their own.
    """
    bins, first = np.arange(len(g)), int(layout.has_missing)
    sets = bins == bins[first:, np.newaxis]
    if not layout.nominal:
        sets = bins > bins[first:-1, np.newaxis]
    elif len(sets) > 3:
        shrunken = np.where(bins < first, -np.inf, g / (h + 5.0))
        place = np.argsort(np.argsort(shrunken, kind="stable"), kind="stable")
        sets = np.vstack((sets, place > bins[first + 1 : -2, np.newaxis]))
    return np.vstack((sets, bins == 0)) if first else sets


def _compute_gains(sets: BoolArray, g: FloatArray, h: FloatArray, least: float) -> FloatArray:
    """Deviance that each term explains in one Newton step; 0 with too little information."""
    weights, totals = sets @ h, np.maximum(h.sum(axis=0), 1e-9)
    information = (weights - weights**2 / totals).sum(axis=1)
    slope = (sets @ g - weights * (g.sum(axis=0) / totals)).sum(axis=1)
    gains: FloatArray = np.where(information >= least, slope**2 / (information + _RIDGE), 0.0)
    return gains.round(DEVIANCE_DECIMALS)


# --- points ---------------------------------------------------------------------------------------


def find_points(table: PatternTable, max_points: int) -> IntArray:
    """Whole points of the terms: effects times the best factor, each then moved by 1."""
    effects = fit_effects(table.patterns, table.counts).effects
    factors = np.arange(2, 2 * max_points + 1) / 2 / max(np.abs(effects).max(initial=0.0), 1e-9)
    tried: list[IntArray] = [np.rint(effects * each).astype(np.int64) for each in factors]
    losses = [fit_totals(*count_totals(table, points)).loss for points in tried]
    points, loss = tried[int(np.argmin(losses))], min(losses)
    for _ in range(_MAX_ROUNDS):
        before = loss
        for step in (*np.eye(len(points), dtype=np.int64), *-np.eye(len(points), dtype=np.int64)):
            moved = points + step
            own = fit_totals(*count_totals(table, moved)).loss
            if np.abs(moved).max() <= max_points and own < loss:
                points, loss = moved, own
        if loss == before:
            break
    return points


def count_totals(table: PatternTable, points: IntArray) -> tuple[IntArray, CountArray]:
    """The totals that occur, ascending, and their samples (total, label, environment)."""
    totals, places = np.unique(table.patterns @ points, return_inverse=True)
    counts = np.zeros((len(totals), *table.counts.shape[1:]), dtype=np.int64)
    np.add.at(counts, places, table.counts)
    return totals, counts


def fit_totals(totals: IntArray, counts: CountArray) -> Fit:
    """The common effect of a point, and the intercepts of the environments."""
    return fit_effects(totals[:, np.newaxis], counts, 1e-6)


# --- the model ------------------------------------------------------------------------------------


def find_score(source: Any, settings: ScoreSettings) -> Score:
    """The model: terms, points, and the risk of each total."""
    terms = _add_missing(source, find_terms(source, settings))
    table = source.count_patterns(terms)
    points = find_points(table, settings.max_points)
    rows, lowest = list[Term](), 0
    for feature, sizes in _count_bins(source, terms).items():
        own = [place for place, each in enumerate(terms) if each.feature == feature]
        by_bin = points[own] @ np.array([terms[place].satisfied for place in own])
        first = int(source.columns.find_layout(feature).has_missing)
        values, weights = by_bin[first:], sizes[first:]
        mean = ceil(round(float(np.average(values, weights=weights)), 9))
        missing = int(by_bin[0]) if first and sizes[0] >= _FEW else mean
        points[own[-1]] += first * (missing - by_bin[0])  # the last term is that of missing values
        lowest += (least := min(missing, int(values.min())))
        rows += _make_terms(source, feature, values - least, weights, missing - least)
    totals, counts = count_totals(table, points)
    return make_score(rows, totals - lowest, counts)


def _add_missing(source: RowSource, terms: Sequence[BinnedRule]) -> list[BinnedRule]:
    """The terms, followed by one of missing values for each column that has any."""
    missing = {}
    for each in terms:
        if source.columns.find_layout(each.feature).has_missing:
            missing[each.feature] = BinnedRule(each.feature, np.arange(len(each.satisfied)) == 0)
    others = [each for each in terms if each.feature not in missing or not each.satisfied[0]]
    return [*others, *missing.values()]


def _count_bins(source: RowSource, terms: Sequence[BinnedRule]) -> dict[int, CountArray]:
    """Samples by bin, of the columns of some terms, in their order."""
    n_bins = {each.feature: len(each.satisfied) for each in terms}
    found = {}
    for cube in source.count_cubes(()) if terms else ():
        for feature, counts in zip(cube.features.tolist(), cube.counts, strict=True):
            if feature in n_bins:
                found[feature] = counts.sum(axis=(1, 2))[: n_bins[feature]]
    return {feature: found[feature] for feature in n_bins}


def _make_terms(
    source: RowSource, feature: int, points: IntArray, sizes: CountArray, missing: int
) -> Iterator[Term]:
    """The terms of a column in the model; the first one that is true counts.

    Missing values, then thresholds from the highest down, or levels; finally all other values.
    """
    make, values = source.columns.make_rule, points.tolist()
    rule = make(Cut(feature, MISSINGNESS, False))
    if isinstance(rule, MissingRule):  # a presence or absence is never missing
        yield Term(rule, missing)
    if source.columns.find_layout(feature).nominal:
        other = int(np.bincount(points, sizes).argmax())  # unknown levels: as most samples
        changes = [(cut, own) for cut, own in enumerate(values) if own != other]
    else:
        steps = [k for k in range(len(values) - 1) if values[k] != values[k + 1]]
        changes, other = [(k, values[k + 1]) for k in reversed(steps)], values[0]
    rules = [(make(Cut(feature, cut, False)), own) for cut, own in changes]
    rules += [((rules[-1][0] if rules else rule).negate(), other)]
    for rule, own in rules:  # false for missing values, which have their own row
        yield Term(replace(rule, missing=False) if getattr(rule, "missing", None) else rule, own)  # type: ignore[call-arg]


def make_score(terms: Sequence[Term], totals: IntArray, counts: CountArray) -> Score:
    """The risk of each total, the same in all environments but for a shift, and classes."""
    sizes, highest = counts.sum(axis=(1, 2)), find_max_total(terms)
    log_odds = find_log_odds(totals, counts, highest)
    before = np.cumsum(sizes) - sizes
    number = _N_CLASSES * before // sizes.sum() + 2 * _N_CLASSES * (log_odds[totals] > 0)
    bounds = totals[1:][np.diff(number) > 0]
    leaves = np.zeros((len(bounds) + 1, *counts.shape[1:]), dtype=np.int64)
    np.add.at(leaves, np.searchsorted(bounds, totals, side="right"), counts)
    own = tuple(log_odds.tolist()), tuple(bounds.tolist()), freeze_counts(leaves)
    return Score(tuple(terms), *own)


def find_log_odds(totals: IntArray, counts: CountArray, highest: int) -> FloatArray:
    """Log odds in a new environment for all totals up to the highest; they never fall.

    A line, or a parabola where it fits better than by chance: the effects of columns need not add
    up.
    """
    n, every = counts.sum(axis=1), np.arange(highest + 1.0)
    sizes = np.bincount(totals, n.sum(axis=1), highest + 1)
    middle = float(np.average(every, weights=sizes))
    spread = float(np.average((every - middle) ** 2, weights=sizes)) ** 0.5 or 1.0
    shape = ((every - middle) / spread)[:, np.newaxis] ** [1, 2]
    found = fit_effects(shape[totals, :1], counts, 1e-6)
    if len(totals) > 2:
        curved = fit_effects(shape[totals], counts, 1e-6)
        if 2.0 * (found.loss - curved.loss) > find_quantile(CHANCE_LEVEL, 1):
            found = curved
    weights = (n * found.p * (1.0 - found.p)).sum(axis=0)
    pooled = pool_effects(found.intercepts, np.maximum(weights, 1e-9) ** -0.5)
    intercept = float(found.intercepts[0]) if pooled is None else pooled.mean
    curve = intercept + shape[:, : len(found.effects)] @ found.effects
    log_odds: FloatArray = isotonic.isotonic_regression(curve, sample_weight=sizes + 1e-9)
    return np.maximum.accumulate(log_odds)  # against falls by rounding
