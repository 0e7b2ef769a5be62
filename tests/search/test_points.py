"""The search of a score: its sums against rows, its log loss against a literal one, its points."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from icscm.engine.counts import Layout, PatternTable
from icscm.search.points import (
    ScoreSettings,
    count_totals,
    find_log_odds,
    find_points,
    find_score,
    find_terms,
    fit_effects,
    fit_totals,
    list_sets,
)
from icscm.sources.memory import make_memory_source


def compute_loss_literally(table, effects, intercepts):
    """Row by row: the logarithm of the probability of each label."""
    loss = 0.0
    for pattern, counts in zip(table.patterns, table.counts, strict=True):
        for label, place in product(range(2), range(counts.shape[1])):
            p = expit(intercepts[place] + sum(effects[pattern]))
            loss -= counts[label, place] * np.log(p if label else 1 - p)
    return loss


@st.composite
def pattern_tables(draw, n_terms=2, n_environments=2):
    patterns = np.array([*product([False, True], repeat=n_terms)])
    shape = len(patterns), 2, n_environments
    n_cells = int(np.prod(shape))
    cells = st.lists(st.integers(1, 60), min_size=n_cells, max_size=n_cells)
    return PatternTable(patterns, np.array(draw(cells)).reshape(shape))


@settings(max_examples=30, deadline=None)
@given(pattern_tables())
def test_effects_have_the_least_log_loss(table):
    """Newton's method against a general optimiser of the literal log loss."""
    found = fit_effects(table.patterns, table.counts, 1e-6)
    assert found.loss == pytest.approx(
        compute_loss_literally(table, found.effects, found.intercepts), abs=1e-4
    )
    best = minimize(lambda x: compute_loss_literally(table, x[:2], x[2:]), np.zeros(4))
    assert found.loss <= best.fun + 0.05  # the weak prior of the intercepts


@pytest.mark.parametrize("max_points", [2, pytest.param(3, marks=pytest.mark.thorough)])
@settings(max_examples=15, deadline=None)
@given(table=pattern_tables(n_terms=3))
def test_points_are_nearly_those_of_an_exhaustive_search(table, max_points):
    """Of all scores of so many points a term at most, none has a log loss lower by 1 %."""
    found = fit_totals(*count_totals(table, find_points(table, max_points))).loss
    every = map(np.array, product(range(-max_points, max_points + 1), repeat=3))
    assert found <= 1.01 * min(fit_totals(*count_totals(table, each)).loss for each in every)


def make_source(n=600, seed=0, order=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    X[rng.random(n) < 0.1, 0] = np.nan
    places = rng.integers(0, 3, n)
    y = rng.random(n) < expit(-1 + 1.5 * (X[:, 0] > 2) + (X[:, 1] > 3) + 0.5 * places)
    order = np.arange(n) if order is None else order
    rows = X[order], y[order].astype(int), places[order]
    return make_memory_source(*rows, environment_labels=list("abc")), rows


def test_sums_of_residuals_are_those_of_the_rows():
    source, (X, y, places) = make_source()
    rules = find_terms(source, ScoreSettings(np.arange(3), max_terms=2))
    assert len(rules) == 2
    p = np.random.default_rng(1).random((len(source.count_patterns(rules).patterns), 3))
    lows = [np.flatnonzero(rule.satisfied)[0] - (rule.column == 0) for rule in rules]
    truths = [X[:, rule.column] >= low for rule, low in zip(rules, lows, strict=True)]
    patterns = [[*row] for row in source.count_patterns(rules).patterns.tolist()]
    # codes of a part are those of all
    for part in (source, source.rows.take(np.arange(0, 600, 2))):
        rows = slice(None) if part is source else slice(None, None, 2)
        group = [patterns.index([*each]) for each in np.array(truths).T[rows].tolist()]
        own, site = p[group, places[rows]], places[rows]
        (cube,) = [c for c in part.rows.sum_residuals(rules, p, np.array([1])) if len(c.columns)]
        for level, place in product(range(6), range(3)):
            at = (X[rows, 1] == level) & (site == place)
            sums = (y[rows] - own)[at].sum(), (own * (1 - own))[at].sum()
            moments = cube.gradients[0, level, place], cube.hessians[0, level, place]
            assert moments == pytest.approx(sums)


def test_the_order_of_rows_does_not_matter():
    shuffled = np.random.default_rng(1).permutation(600)
    first, second = (
        find_score(make_source(order=order)[0], ScoreSettings(np.arange(3)))
        for order in (None, shuffled)
    )
    assert (first.terms, first.bounds, first.leaves) == (second.terms, second.bounds, second.leaves)
    assert first.log_odds == pytest.approx(second.log_odds)
    assert first.terms


def test_levels_are_tried_alone_and_by_their_residuals():
    """Of levels a, b, c, d with residuals 3, 1, 2, 0: each; b, c and a; missing values."""
    from icscm.engine.counts import Layout

    g = np.array([9.0, 3.0, 1.0, 2.0, 0.0])
    sets = list_sets(Layout(nominal=True, has_missing=True), g, np.ones(5)).astype(int).tolist()
    assert sets[:4] == np.eye(5, dtype=int)[1:].tolist()
    assert sets[4:] == [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0]]


def test_the_risk_of_a_total_is_that_of_its_samples():
    """Where two causes act only together, a line gave 12 % for a rate of 5 %."""
    rates, sizes = np.array([0.06, 0.05, 0.86]), np.array([800, 1_400, 700])
    positives = np.repeat(np.rint(rates * sizes).astype(int)[:, np.newaxis], 3, axis=1)
    counts = np.stack((sizes[:, np.newaxis] - positives, positives), axis=1)
    risks = expit(find_log_odds(np.arange(3), counts, 3))
    assert risks[:3] == pytest.approx([0.054, 0.054, 0.86], abs=0.005)
    assert (np.diff(risks) >= 0).all()


def test_additive_risks_are_a_line():
    totals, rng = np.arange(9), np.random.default_rng(0)
    sizes = np.full((9, 4), 200)
    positives = rng.binomial(sizes, expit(-3 + 0.6 * totals[:, np.newaxis] + np.arange(4) / 4))
    log_odds = find_log_odds(totals, np.stack((sizes - positives, positives), axis=1), 12)
    assert np.diff(log_odds) == pytest.approx(np.full(12, 0.6), abs=0.05)


def test_the_last_digits_of_residuals_do_not_decide_between_levels():
    """They depend on the order of the rows: levels of equal counts were joined in either order."""
    layout = Layout(nominal=True)
    h = np.full(6, 10.0)
    g = np.array([1.0, 3.0, 3.0, -2.0, 0.0, -2.0])
    nearly_g = g + np.array([0.0, 4e-16, 0.0, -3e-16, 0.0, 0.0])
    for sums in (g, nearly_g, g[::-1][::-1] + 1e-16):
        assert list_sets(layout, sums, h).tolist() == list_sets(layout, g, h).tolist()
    # of the two highest and the two lowest the first is the lower one
    highest_two = list_sets(layout, g, h)[-1]
    assert highest_two.tolist() == [False, True, True, False, False, False]
