"""A points score from counts: terms one by one, then whole points for all of them.

    log odds of a row in environment e  =  intercept_e + sum of the effects of its true terms

A *term* is a set of bins of one column: values above a threshold, or some levels of a category. It
is true of the rows in these bins.

1. Terms are added one by one. Given the terms so far, the gradients g and the hessians h of all
   rows, summed by column, bin and environment, give the *gain* of each further term: the deviance
   that one Newton step of its effect and of the intercepts explains. The first must explain more
   than the best of all terms does by chance, so that noise gives no score; further ones are added
   while the best explains more than a single one does by chance. Then each may be exchanged.
2. All other steps need only the counts of the patterns of true terms:

       terms   --count_patterns-->   (pattern, outcome, environment)   --Newton-->   effects

3. Effects times a factor are rounded to whole points, and each is moved by 1 while that lowers the
   log loss.
4. Rows are counted by their total of points. A line or a parabola through the log odds of the
   totals gives the risk of each.

A score is a table of points: of each column the first line that is true of a row counts.

    age         > 70  3 points     > 50  1 point      else  0 points     missing  1 point
    smoker      yes   2 points                        else  0 points
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._lazy import isotonic, special
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import MISSINGNESS, BinnedRule, Cut, Layout, PatternTable, RowSource
from icscm.engine.pieces import make_key
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.model.score import Score, Term, find_max_total
from icscm.model.splits import freeze_counts
from icscm.stats.logistic import InterceptPrior, fit_logistic_regression
from icscm.stats.random_effects import pool_effects
from icscm.stats.splits import find_quantile

# Precision of the normal prior of an effect, around 0: effects of few rows are shrunken.
EFFECT_PRECISION: Final = 1.0
# Precision of the prior of an intercept, around the log odds of its environment.
INTERCEPT_PRECISION: Final = 0.1
# Precision of the prior of an effect of totals: next to none, since many rows determine it.
TOTAL_PRECISION: Final = 1e-6
# Log loss that the exchange of a term must gain, and how many are made at most.
MIN_EXCHANGE_GAIN: Final = 0.5
MAX_EXCHANGES: Final = 5
# Rounds in which all points are moved, at most.
MAX_ROUNDS: Final = 20
# Missing values of a column from which on they have their own points instead of the mean.
MIN_MISSING: Final = 20
# Number of classes of totals, of about equal size.
N_CLASSES: Final = 8
# Levels of a category with more than so many are also joined, those of the largest residuals first.
MAX_SINGLE_LEVELS: Final = 3
# Keeps the number of sets of levels finite: 2 to this power is more than any evidence outweighs.
MAX_EXPONENT: Final = 500
# Rows that pull the rate of a level towards that of all.
LEVEL_PRIOR: Final = 5.0
# Digits of residuals, by which levels are sorted.
RESIDUAL_DECIMALS: Final = 9
# Keeps divisors above 0: sums of hessians, and effects.
TINY: Final = 1e-9
# Digits to which a mean of points is rounded before it is rounded up.
_MEAN_DECIMALS: Final = 9


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of the search for a score.

    `columns` may be used; `min_information` is what a term must have, its hessian within
    environments. With groups of rows, deviance by chance is `design` times as large.
    """

    columns: IntArray
    max_terms: int = 12
    max_points: int = 5
    min_information: float = 1.0
    design: float = 1.0


# --- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EffectFit:
    """A regression on terms: log odds of the environments and effects of the terms.

    Attributes
    ----------
    intercepts : array of float, (environment)
        The log odds of a row of which no term is true.
    effects : array of float, (term)
        What a term adds to the log odds.
    probabilities : array of float, (pattern, environment)
        The probability of a positive.
    loss : float
        The log loss, summed over all rows.
    """

    intercepts: FloatArray
    effects: FloatArray
    probabilities: FloatArray
    loss: float


def fit_effects(terms: Array, counts: CountArray, precision: float = EFFECT_PRECISION) -> EffectFit:
    """Fit effects of the terms that are common to all environments, and their intercepts.

    `terms` has the axes (pattern, term), `counts` (pattern, outcome, environment). With x_it the
    value of term t in pattern i,

        log odds_ie = intercept_e + sum over t of x_it effect_t

    Effects have a normal prior around 0, of this precision, and intercepts one around the log odds
    of their environment. The log loss of the fit, without the priors, is

        loss = sum over i, e of  negatives_ie log(1 + exp(log odds_ie))
                               + positives_ie log(1 + exp(-log odds_ie))
    """
    x = terms.astype(float)
    # each by (pattern, environment)
    negatives = counts[:, 0]
    positives = counts[:, 1]
    sizes = negatives + positives
    n_patterns, n_environments = sizes.shape

    # Half a positive and half a negative row more keep the log odds finite.
    environment_rates = (positives.sum(axis=0) + 0.5) / (sizes.sum(axis=0) + 1.0)
    intercept_prior = InterceptPrior(
        means=special.logit(environment_rates), precision=INTERCEPT_PRECISION
    )

    # A row of the regression is a pattern in an environment.
    regression = fit_logistic_regression(
        columns=np.repeat(x, n_environments, axis=0),
        positives=positives.ravel(),
        environments=np.tile(np.arange(n_environments), n_patterns),
        n_environments=n_environments,
        sizes=sizes.ravel(),
        ridge=precision,
        intercept_prior=intercept_prior,
    )
    assert regression is not None  # with a ridge, slopes are always determined

    sum_of_effects = x @ regression.slopes
    log_odds = sum_of_effects[:, np.newaxis] + regression.intercepts
    losses = negatives * np.logaddexp(0, log_odds) + positives * np.logaddexp(0, -log_odds)
    return EffectFit(
        intercepts=regression.intercepts,
        effects=regression.slopes,
        probabilities=special.expit(log_odds),
        loss=round(float(losses.sum()), DEVIANCE_DECIMALS),
    )


# --- terms ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnResiduals:
    """Sums of gradients and of hessians of one column, by (bin, environment)."""

    gradients: FloatArray
    hessians: FloatArray
    layout: Layout


class BestTerm(NamedTuple):
    """The term that explains most given others, and the deviance that it explains."""

    rule: BinnedRule
    gain: float


def find_terms(source: RowSource, settings: ScoreSettings) -> list[BinnedRule]:
    """Find the terms of a score: the best is added, again and again, then each may be exchanged.

    A term that was added early may be of no use given those that were added later.
    """
    terms: list[BinnedRule] = []
    while len(terms) < settings.max_terms:
        # Where nothing is known to explain anything, the best of many terms may be so by chance.
        n_possible = 1.0 if terms else _count_possible_terms(source, settings.columns)
        n_compared = max(n_possible, 1.0)
        gain_by_chance = settings.design * find_quantile(CHANCE_LEVEL / n_compared, 1)
        best = _find_best_term(source, settings, terms)
        if best is None or best.gain <= gain_by_chance:
            break
        terms.append(best.rule)

    for _ in range(MAX_EXCHANGES):
        exchanged = _exchange_term(source, settings, terms)
        if exchanged is None:
            break
        terms = exchanged
    return terms


def _count_possible_terms(source: RowSource, columns: IntArray) -> float:
    """Count the terms that some columns may give: sets of bins, by which rows may be divided.

    There is one for each threshold, and one for missing values. Of L levels any set may be joined,
    since they are sorted by the outcome: they can be divided in 2^(L - 1) - 1 ways. The number is a
    float, as it may be very large.
    """
    n_terms = 0.0
    if not len(columns):
        return n_terms
    for column, n_bins in zip(columns.tolist(), source.columns.count_bins(columns), strict=True):
        layout = source.columns.find_layout(column)
        n_cuts = int(n_bins) - int(layout.has_missing) - 1
        if layout.nominal:
            n_terms += 2.0 ** min(n_cuts, MAX_EXPONENT) - 1.0
        else:
            n_terms += n_cuts
        n_terms += layout.has_missing
    return max(n_terms, 1.0)


def _exchange_term(
    source: RowSource, settings: ScoreSettings, terms: Sequence[BinnedRule]
) -> list[BinnedRule] | None:
    """Exchange the first term for which the best other one has a lower log loss; else None."""
    loss_to_beat = _fit_terms(source, terms).loss - MIN_EXCHANGE_GAIN
    for number in range(len(terms)):
        others = [*terms[:number], *terms[number + 1 :]]
        best = _find_best_term(source, settings, others)
        if best is None:
            continue
        exchanged = [*others, best.rule]
        if _fit_terms(source, exchanged).loss < loss_to_beat:
            return exchanged
    return None


def _fit_terms(source: RowSource, terms: Sequence[BinnedRule]) -> EffectFit:
    """Fit the effects of some terms together."""
    table = source.count_patterns(terms)
    return fit_effects(table.patterns, table.counts)


def _find_best_term(
    source: RowSource, settings: ScoreSettings, terms: Sequence[BinnedRule]
) -> BestTerm | None:
    """Find the term that explains most given the others, the first of ties; None if none does."""
    used_keys = {make_key(term) for term in terms}
    residuals_by_column = _sum_residuals(source, settings, terms)
    best: BestTerm | None = None
    for column, residuals in sorted(residuals_by_column.items()):
        sets_of_bins = list_sets(
            residuals.layout,
            g=residuals.gradients.sum(axis=1),
            h=residuals.hessians.sum(axis=1),
        )
        candidates = [BinnedRule(column, bins) for bins in sets_of_bins]
        if not candidates:
            continue

        gains = _compute_gains(sets_of_bins, residuals, min_information=settings.min_information)
        is_used = [make_key(candidate) in used_keys for candidate in candidates]
        gains[is_used] = 0.0

        best_of_column = int(gains.argmax())
        gain = float(gains[best_of_column])
        gain_to_beat = 0.0 if best is None else best.gain
        if gain > gain_to_beat:
            best = BestTerm(candidates[best_of_column], gain=gain)
    return best


def _sum_residuals(
    source: RowSource, settings: ScoreSettings, terms: Sequence[BinnedRule]
) -> dict[int, ColumnResiduals]:
    """Sum what the fit of the terms leaves unexplained, by column."""
    assert source.rows is not None, "residuals are summed over rows in this process"
    probabilities = _fit_terms(source, terms).probabilities
    residuals_by_column: dict[int, ColumnResiduals] = {}
    for cube in source.rows.sum_residuals(terms, probabilities, settings.columns):
        all_n_bins = source.columns.count_bins(cube.columns).tolist()
        for number, column in enumerate(cube.columns.tolist()):
            n_bins = all_n_bins[number]  # a cube has as many as its widest column
            residuals_by_column[column] = ColumnResiduals(
                gradients=cube.gradients[number, :n_bins],
                hessians=cube.hessians[number, :n_bins],
                layout=cube.layout,
            )
    return residuals_by_column


def list_sets(layout: Layout, g: FloatArray, h: FloatArray) -> BoolArray:
    """List the terms of a column as sets of bins: (term, bin), true for the bins in the set.

    Values above each threshold, or sets of levels; missing values are a term of their own. `g` and
    `h` are the sums of gradients and hessians by bin. For thresholds t0 and t1, for example:

                missing   up to t0   t0 to t1   above
        > t0    no        no         yes        yes
        > t1    no        no         no         yes
        missing yes       no         no         no
    """
    bins = np.arange(len(g))
    first_value = int(layout.has_missing)
    if layout.nominal:
        sets = _list_level_sets(g, h, first_level=first_value)
    else:
        thresholds = bins[first_value:-1]
        sets = bins > thresholds[:, np.newaxis]

    if not layout.has_missing:
        return sets
    is_missing = bins == 0
    return np.vstack((sets, is_missing))


def _list_level_sets(g: FloatArray, h: FloatArray, *, first_level: int) -> BoolArray:
    """List sets of levels (set, bin): each alone and, of many, also those of the largest residuals.

    By Fisher (1958) the best set of levels holds all above some residual, so no others are tried. A
    residual g / h is pulled towards 0 by a prior, since that of few rows may be large by chance.
    """
    bins = np.arange(len(g))
    levels = bins[first_level:]
    single_levels: BoolArray = bins == levels[:, np.newaxis]
    if len(levels) <= MAX_SINGLE_LEVELS:
        return single_levels

    residuals = np.where(bins < first_level, -np.inf, g / (h + LEVEL_PRIOR))
    # They are rounded, so that the order in which rows were added up decides nothing.
    ascending = np.argsort(residuals.round(RESIDUAL_DECIMALS), kind="stable")
    rank = np.argsort(ascending, kind="stable")
    # All but the two lowest levels, all but the three lowest, and so on, down to the two highest.
    highest_left_out = bins[first_level + 1 : -2]
    joined_levels = rank > highest_left_out[:, np.newaxis]
    return np.vstack((single_levels, joined_levels))


def _compute_gains(
    sets: BoolArray, residuals: ColumnResiduals, *, min_information: float
) -> FloatArray:
    """Compute the deviance that each term (term, bin) explains in one Newton step.

    With G and H the sums of g and h over an environment, and G_t and H_t those over the term's bins
    in it, the intercepts profiled out:

        slope = sum over e (G_t - H_t G / H)        information = sum over e (H_t - H_t^2 / H)
        gain  = slope^2 / (information + precision of the prior)

    A term with too little information gains 0.
    """
    # by (bin, environment), by (environment), and by (term, environment)
    g = residuals.gradients
    h = residuals.hessians
    G = g.sum(axis=0)
    H = np.maximum(h.sum(axis=0), TINY)
    G_t = sets @ g
    H_t = sets @ h

    slope = (G_t - H_t * (G / H)).sum(axis=1)
    information = (H_t - H_t**2 / H).sum(axis=1)
    gains = slope**2 / (information + EFFECT_PRECISION)
    gains_of_enough = np.where(information >= min_information, gains, 0.0)
    return np.asarray(gains_of_enough.round(DEVIANCE_DECIMALS))


# --- points ---------------------------------------------------------------------------------------


class TotalCounts(NamedTuple):
    """The totals that occur, ascending, and their rows (total, outcome, environment)."""

    totals: IntArray
    counts: CountArray


def find_points(table: PatternTable, max_points: int) -> IntArray:
    """Find whole points of the terms: rounded effects, moved by 1 while that lowers the loss.

    Rounding alone may be far from the best points, since the errors of several terms add up.
    """
    points = _round_effects(table, max_points)
    loss = _compute_loss(table, points)

    one_more = np.eye(len(points), dtype=np.int64)  # line t adds a point to term t
    for _ in range(MAX_ROUNDS):
        loss_before = loss
        for change in (*one_more, *-one_more):
            moved = points + change
            if np.abs(moved).max() > max_points:
                continue

            moved_loss = _compute_loss(table, moved)
            if moved_loss < loss:
                points = moved
                loss = moved_loss
        if loss == loss_before:
            break
    return points


def _round_effects(table: PatternTable, max_points: int) -> IntArray:
    """Round the effects times the factor with the lowest log loss.

    The factors give the largest effect 1, 1.5, 2, ... up to the maximum of points.
    """
    effects = fit_effects(table.patterns, table.counts).effects
    largest_effect = max(np.abs(effects).max(initial=0.0), TINY)
    points_of_largest = np.arange(2, 2 * max_points + 1) / 2
    factors = points_of_largest / largest_effect

    candidates: list[IntArray] = [np.rint(effects * factor).astype(np.int64) for factor in factors]
    losses = [_compute_loss(table, points) for points in candidates]
    return candidates[int(np.argmin(losses))]


def _compute_loss(table: PatternTable, points: IntArray) -> float:
    """Compute the log loss of some points, with the best common factor of them."""
    return fit_totals(*count_totals(table, points)).loss


def count_totals(table: PatternTable, points: IntArray) -> TotalCounts:
    """Count the rows by their total of points: the sum of those of the terms that are true."""
    total_of_pattern = table.patterns @ points
    totals, number_of_pattern = np.unique(total_of_pattern, return_inverse=True)
    counts = np.zeros((len(totals), *table.counts.shape[1:]), dtype=np.int64)
    np.add.at(counts, number_of_pattern, table.counts)
    return TotalCounts(totals, counts)


def fit_totals(totals: IntArray, counts: CountArray) -> EffectFit:
    """Fit the common effect of a point, and the intercepts of the environments.

    The total of points is the only term.
    """
    return fit_effects(totals[:, np.newaxis], counts, TOTAL_PRECISION)


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnPoints:
    """The points that the terms of one column give together.

    Attributes
    ----------
    column : int
        The column.
    of_values : array of int, (bin of values)
        The points of a row in each bin.
    value_sizes : array of int, (bin of values)
        The number of rows in each bin.
    of_missing : int
        The points of missing values.
    """

    column: int
    of_values: IntArray
    value_sizes: CountArray
    of_missing: int

    @property
    def lowest(self) -> int:
        """The lowest points of a row."""
        return min(self.of_missing, int(self.of_values.min()))

    @property
    def commonest(self) -> int:
        """The points that most rows have; unknown levels of a category get these."""
        return int(np.bincount(self.of_values, self.value_sizes).argmax())

    def start_at_0(self) -> "ColumnPoints":
        """Return the same points less the lowest, as a model has them."""
        return replace(
            self,
            of_values=self.of_values - self.lowest,
            of_missing=self.of_missing - self.lowest,
        )


def find_score(source: RowSource, settings: ScoreSettings) -> Score:
    """Find the model: terms, points, and the risk of each total."""
    found_terms = find_terms(source, settings)
    binned_terms = _add_terms_of_missing(source, found_terms)
    table = source.count_patterns(binned_terms)
    fitted_points = find_points(table, settings.max_points)

    # Where few values are missing, these get the mean points of their column.
    columns = _sum_points_by_column(source, binned_terms, fitted_points)
    term_points = _replace_points_of_missing(source, binned_terms, fitted_points, columns=columns)
    totals, counts = count_totals(table, term_points)

    # In the model the lowest points of each column are 0, so every total is lower by their sum.
    lowest_total = sum(column.lowest for column in columns)
    terms = [term for column in columns for term in _make_terms(source, column.start_at_0())]
    return make_score(terms, totals - lowest_total, counts)


def _sum_points_by_column(
    source: RowSource, binned_terms: Sequence[BinnedRule], term_points: IntArray
) -> list[ColumnPoints]:
    """Sum the points of the terms that are true in a bin, for all bins of each column."""
    columns = []
    for column, bin_sizes in _count_bins(source, binned_terms).items():
        numbers = [k for k, term in enumerate(binned_terms) if term.column == column]
        is_true = np.array([binned_terms[k].satisfied for k in numbers])  # (term, bin)
        bin_points = term_points[numbers] @ is_true

        # Missing values, if there are any, are in bin 0, before the bins of values.
        has_missing = source.columns.find_layout(column).has_missing
        first_value = int(has_missing)
        value_points = bin_points[first_value:]
        value_sizes = bin_sizes[first_value:]
        if has_missing and bin_sizes[0] >= MIN_MISSING:
            missing_points = int(bin_points[0])
        else:
            missing_points = _compute_mean_points(value_points, value_sizes)

        columns.append(
            ColumnPoints(
                column=column,
                of_values=value_points,
                value_sizes=value_sizes,
                of_missing=missing_points,
            )
        )
    return columns


def _compute_mean_points(points: IntArray, sizes: CountArray) -> int:
    """Compute the mean points of the rows, rounded up.

    Missing values get them where there are too few to know points of their own.
    """
    mean = float(np.average(points, weights=sizes))
    return ceil(round(mean, _MEAN_DECIMALS))  # an error in the last digit would round 2 up to 3


def _replace_points_of_missing(
    source: RowSource,
    binned_terms: Sequence[BinnedRule],
    term_points: IntArray,
    *,
    columns: Sequence[ColumnPoints],
) -> IntArray:
    """Return the points of the terms; terms of missing values have those of their column.

    By `_add_terms_of_missing` such a term is the only one of its column that is true of these.
    """
    replaced = term_points.copy()
    points_of_missing = {points.column: points.of_missing for points in columns}
    for number, term in enumerate(binned_terms):
        has_missing = source.columns.find_layout(term.column).has_missing
        if has_missing and term.satisfied[0]:
            replaced[number] = points_of_missing[term.column]
    return replaced


def _add_terms_of_missing(source: RowSource, terms: Sequence[BinnedRule]) -> list[BinnedRule]:
    """Return the terms, followed by one of missing values for each column that has any.

    Such a column needs points for them, whether or not the search found that term.
    """
    term_of_missing = {}
    for term in terms:
        if source.columns.find_layout(term.column).has_missing:
            is_missing = np.arange(len(term.satisfied)) == 0
            term_of_missing[term.column] = BinnedRule(term.column, is_missing)

    terms_of_values = []
    for term in terms:
        is_true_of_missing = term.column in term_of_missing and term.satisfied[0]
        if not is_true_of_missing:
            terms_of_values.append(term)
    return [*terms_of_values, *term_of_missing.values()]


def _count_bins(source: RowSource, terms: Sequence[BinnedRule]) -> dict[int, CountArray]:
    """Count the rows by bin, of the columns of some terms, in the order of the terms."""
    if not terms:
        return {}
    n_bins_of_column = {term.column: len(term.satisfied) for term in terms}
    sizes_of_column = {}
    for cube in source.count_cubes(()):
        for column, counts in zip(cube.columns.tolist(), cube.counts, strict=True):
            if column in n_bins_of_column:
                n_bins = n_bins_of_column[column]
                sizes_of_column[column] = counts.sum(axis=(1, 2))[:n_bins]
    return {column: sizes_of_column[column] for column in n_bins_of_column}


class PointsRule(NamedTuple):
    """A rule on the values of a column, and the points of rows for which it is the first true."""

    rule: Rule
    points: int


def _make_terms(source: RowSource, points: ColumnPoints) -> Iterator[Term]:
    """Make the terms of a column in the model, of which the first one that is true counts.

    Missing values come first, then thresholds from the highest down, or levels; finally all other
    values.
    """
    is_missing = Cut(points.column, MISSINGNESS, negated=False)
    missing_rule = source.columns.make_rule(is_missing)
    if isinstance(missing_rule, MissingRule):  # a presence or absence is never missing
        yield Term(missing_rule, points.of_missing)

    if source.columns.find_layout(points.column).nominal:
        rules = _list_level_rules(source, points)
        other_points = points.commonest
    else:
        rules = _list_threshold_rules(source, points)
        other_points = int(points.of_values[0])

    for rule, rule_points in rules:
        yield Term(_exclude_missing(rule), rule_points)
    # As the first true term counts, the negation of the last rule stands for all other values.
    last_rule = rules[-1].rule if rules else missing_rule
    yield Term(_exclude_missing(last_rule.negate()), other_points)


def _list_level_rules(source: RowSource, points: ColumnPoints) -> list[PointsRule]:
    """List a rule for each level whose points are not the commonest."""
    rules = []
    for level, level_points in enumerate(points.of_values.tolist()):
        if level_points != points.commonest:
            is_level = Cut(points.column, level, negated=False)
            rules.append(PointsRule(source.columns.make_rule(is_level), level_points))
    return rules


def _list_threshold_rules(source: RowSource, points: ColumnPoints) -> list[PointsRule]:
    """List a rule for each threshold at which the points change, the highest first."""
    rules = []
    changes = np.flatnonzero(np.diff(points.of_values)).tolist()
    for cut in reversed(changes):
        is_above = Cut(points.column, cut, negated=False)
        points_above = int(points.of_values[cut + 1])
        rules.append(PointsRule(source.columns.make_rule(is_above), points_above))
    return rules


def _exclude_missing(rule: Rule) -> Rule:
    """Return the rule, false for missing values, which have points of their own."""
    if isinstance(rule, ThresholdRule | CategoryRule) and rule.missing:
        return replace(rule, missing=False)
    return rule


# --- the risk of each total -----------------------------------------------------------------------


def make_score(terms: Sequence[Term], totals: IntArray, counts: CountArray) -> Score:
    """Make a score: the risk of each total, the same in all environments but for a shift.

    `counts` are those of each total that occurs, (total, outcome, environment). The leaves of the
    model, on which it is assessed, are classes of neighbouring totals.
    """
    log_odds = find_log_odds(totals, counts, find_max_total(terms))
    bounds = _find_class_bounds(totals, sizes=counts.sum(axis=(1, 2)), log_odds=log_odds)

    class_of_total = np.searchsorted(bounds, totals, side="right")
    leaves = np.zeros((len(bounds) + 1, *counts.shape[1:]), dtype=np.int64)
    np.add.at(leaves, class_of_total, counts)
    return Score(
        terms=tuple(terms),
        log_odds=tuple(log_odds.tolist()),
        bounds=tuple(bounds.tolist()),
        leaves=freeze_counts(leaves),
    )


def _find_class_bounds(totals: IntArray, *, sizes: CountArray, log_odds: FloatArray) -> IntArray:
    """Find the first total of each class but the lowest: of about equal size, and of one verdict.

    The verdict of a total is positive where its log odds are above 0. `sizes` are the rows of each
    total that occurs, `log_odds` those of all totals from 0 on.
    """
    n_below = np.cumsum(sizes) - sizes
    class_by_size = N_CLASSES * n_below // sizes.sum()
    is_positive = log_odds[totals] > 0
    # Totals of another verdict are in another class: their numbers start beyond those by size.
    class_of_total = class_by_size + 2 * N_CLASSES * is_positive
    is_new_class = np.diff(class_of_total) > 0
    bounds: IntArray = totals[1:][is_new_class]
    return bounds


def find_log_odds(totals: IntArray, counts: CountArray, max_total: int) -> FloatArray:
    """Find the log odds in a new environment of all totals up to the largest; they never fall.

    With z = (total - mean) / sd over all rows,

        log odds = intercept + effect_1 z                    a line, or
        log odds = intercept + effect_1 z + effect_2 z^2     where it fits better than by chance

    The effects of columns need not add up, hence the parabola. The intercept is the random-effects
    mean of those of the environments. `counts` has the axes (total, outcome, environment).
    """
    # every total up to the largest, whether or not it occurs
    every_total = np.arange(max_total + 1.0)
    sizes = np.bincount(totals, counts.sum(axis=(1, 2)), max_total + 1)
    mean = float(np.average(every_total, weights=sizes))
    variance = float(np.average((every_total - mean) ** 2, weights=sizes))
    sd = variance**0.5 or 1.0
    z = (every_total - mean) / sd
    powers = z[:, np.newaxis] ** [1, 2]

    fit = _fit_line_or_parabola(powers[totals], counts)
    n_powers = len(fit.effects)
    curve = _pool_intercepts(fit, counts) + powers[:, :n_powers] @ fit.effects

    log_odds: FloatArray = isotonic.isotonic_regression(curve, sample_weight=sizes + TINY)
    return np.maximum.accumulate(log_odds)  # against falls by rounding


def _fit_line_or_parabola(powers: FloatArray, counts: CountArray) -> EffectFit:
    """Fit z or, if that explains more deviance than chance, z and z^2.

    `powers` are those of each total that occurs, (total, power).
    """
    line = fit_effects(powers[:, :1], counts, TOTAL_PRECISION)
    if len(powers) <= 2:  # a line goes through two points
        return line

    parabola = fit_effects(powers, counts, TOTAL_PRECISION)
    explained_deviance = 2.0 * (line.loss - parabola.loss)
    is_better = explained_deviance > find_quantile(CHANCE_LEVEL, 1)
    return parabola if is_better else line


def _pool_intercepts(fit: EffectFit, counts: CountArray) -> float:
    """Pool the environments' intercepts by random effects: what to expect in a new environment."""
    n_rows = counts.sum(axis=1)
    p = fit.probabilities
    information = (n_rows * p * (1.0 - p)).sum(axis=0)
    standard_errors = np.maximum(information, TINY) ** -0.5
    pooled = pool_effects(fit.intercepts, standard_errors)
    return float(fit.intercepts[0]) if pooled is None else pooled.mean
