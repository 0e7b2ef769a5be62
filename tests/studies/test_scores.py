"""Measures of predictions: against literal twins, and their intervals as statistics."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from icscm.studies.scores import (
    PROBABILITY_METRICS,
    TITLES,
    compute_scores,
    score_auc,
    score_calibration,
)

Z = 1.959963984540054
# Few distinct values: ties are what rules make.
SAMPLES = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.77, 1.0])),
    min_size=1,
    max_size=30,
)


def unzip(samples):
    return [np.array(each) for each in zip(*samples, strict=True)]


@given(SAMPLES)
@settings(max_examples=60, deadline=None)
def test_values_are_those_of_scikit_learn(samples):
    y, predicted, p = unzip(samples)
    found = compute_scores(y, predicted, p)
    assert list(found) == list(TITLES)
    twins = {
        "error": lambda: 1 - metrics.accuracy_score(y, predicted),
        "brier": lambda: metrics.brier_score_loss(y, p, pos_label=True),
        "log_loss": lambda: metrics.log_loss(y, p, labels=[False, True]),
    }
    if y.any():
        twins["sensitivity"] = lambda: metrics.recall_score(y, predicted)
    if not y.all():
        twins["specificity"] = lambda: metrics.recall_score(y, predicted, pos_label=False)
    if y.any() and not y.all():
        twins["balanced_accuracy"] = lambda: metrics.balanced_accuracy_score(y, predicted)
        twins["auc"] = lambda: metrics.roc_auc_score(y, p)
    if predicted.any():
        twins["ppv"] = lambda: metrics.precision_score(y, predicted)
    if not predicted.all():
        twins["npv"] = lambda: metrics.precision_score(y, predicted, pos_label=False)
    for name, score in found.items():
        if name in ("slope", "intercept", "observed_expected"):
            continue
        assert (score is not None) == (name in twins), name
        if score is not None:
            assert score.value == pytest.approx(twins[name](), abs=1e-12), name
            assert 0 <= score.low <= score.value <= score.high, name
            assert score.high <= 1 or name == "log_loss"


def slow_wilson(share, n):
    """Where the share lies exactly Z standard errors away, by its own definition."""
    a, b, c = 1 + Z**2 / n, -(2 * share + Z**2 / n), share**2
    root = np.sqrt(max(b**2 - 4 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


@given(SAMPLES)
@settings(max_examples=200, deadline=None)
def test_intervals_are_those_of_the_direct_formulas(samples):
    y, predicted, p = unzip(samples)
    found = compute_scores(y, predicted, p)
    chosen = {
        "error": (y != predicted),
        "sensitivity": predicted[y],
        "specificity": ~predicted[~y],
        "ppv": y[predicted],
        "npv": ~y[~predicted],
    }
    for name, hits in chosen.items():
        if found[name] is not None:
            assert astuple(found[name])[1:] == pytest.approx(
                slow_wilson(hits.mean(), len(hits)), abs=1e-9
            )
    if y.any() and not y.all():
        s, s_low, s_high = astuple(found["sensitivity"])
        t, t_low, t_high = astuple(found["specificity"])
        below = 0.5 * np.sqrt((s - s_low) ** 2 + (t - t_low) ** 2)
        above = 0.5 * np.sqrt((s_high - s) ** 2 + (t_high - t) ** 2)
        middle = (s + t) / 2
        assert astuple(found["balanced_accuracy"]) == pytest.approx(
            (middle, middle - below, middle + above), abs=1e-9
        )
        assert astuple(found["auc"]) == pytest.approx(slow_auc(y, p), abs=1e-9)


def slow_auc(y, p):
    """DeLong's interval from all pairs, one by one."""
    positives, negatives = p[y], p[~y]
    wins = np.array([[(a > b) + 0.5 * (a == b) for b in negatives] for a in positives])
    auc, (m, n) = wins.mean(), wins.shape
    variance = 0.0
    if min(m, n) > 1:
        variance = wins.mean(1).var(ddof=1) / m + wins.mean(0).var(ddof=1) / n
    if variance < 1e-15 or auc in (0, 1):
        return auc, *slow_wilson(auc, min(m, n))
    reach = Z * np.sqrt(variance) / (auc * (1 - auc))
    odds = auc / (1 - auc) * np.exp([-reach, reach])
    return auc, *(odds / (1 + odds))


def test_means_of_losses_have_normal_intervals():
    y, p = np.array([0, 0, 0, 1, 1]), np.array([0.2, 0.1, 0.9, 0.6, 0.1])
    losses = (y - p) ** 2
    reach = Z * losses.std(ddof=1) / np.sqrt(5)
    low, high = max(losses.mean() - reach, 0), losses.mean() + reach
    assert astuple(compute_scores(y, y, p)["brier"])[1:] == pytest.approx((low, high))


def test_perfect_predictions_of_a_few_samples_are_no_certainty():
    """Intervals of a few correct predictions must not have width 0."""
    found = compute_scores([0, 0, 1, 1], [0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    assert found["auc"].value == 1
    assert found["auc"].low < 0.5
    assert found["brier"].value == 0
    assert found["brier"].high > 0.1
    assert found["log_loss"].high > 1


def test_without_probabilities_their_measures_are_none():
    found = compute_scores([0, 1], [0, 1])
    assert {name for name in found if found[name] is None} == {*PROBABILITY_METRICS}


@given(SAMPLES)
@settings(max_examples=100, deadline=None)
def test_calibration_solves_the_equations_of_logistic_regression(samples):
    """Both likelihoods are concave: where the derivatives vanish is the only solution."""
    y, _, p = unzip(samples)
    x = logit(np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps))
    intercept, slope = (each and each.value for each in score_calibration(y, p))
    if y.all() or not y.any():
        assert intercept is slope is None
        return
    assert expit(intercept + x).sum() == pytest.approx(y.sum(), abs=1e-6)
    is_separated = x[y].min() >= x[~y].max() or x[~y].min() >= x[y].max()
    assert (slope is None) == is_separated
    if not is_separated:
        free = brentq(lambda a: expit(a + slope * x).sum() - y.sum(), -1e5, 1e5)
        assert abs((y - expit(free + slope * x)) @ x) < 1e-5 * abs(x).sum()


def test_calibration_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = rng.random(400) < expit(0.5 + 1.5 * x)
    twin = LogisticRegression(C=np.inf, tol=1e-10).fit(x[:, None], y)
    found = compute_scores(y, y, expit(x))
    assert found["slope"].value == pytest.approx(twin.coef_[0, 0], rel=1e-5)
    design, fitted = np.column_stack((np.ones(400), x)), twin.predict_proba(x[:, None])[:, 1]
    variance = np.linalg.inv((design.T * fitted * (1 - fitted)) @ design)[1, 1]
    assert found["slope"].high - found["slope"].value == pytest.approx(Z * variance**0.5, rel=1e-3)


@pytest.mark.parametrize("p", [[0.3] * 4, [0.1, 0.2, 0.8, 0.9], [0.9, 0.8, 0.2, 0.1]])
def test_calibration_slope_is_undefined_without_overlap(p):
    found = compute_scores([0, 0, 1, 1], [0, 0, 1, 1], p)
    assert found["slope"] is None
    assert found["intercept"] is not None
    assert score_calibration([1, 1, 1, 1], p) == (None, None)


def test_no_samples_have_no_scores():
    assert set(compute_scores([], [], []).values()) == {None}


def cover(make, truth, n_runs=800):
    """How often each measure's interval holds the truth."""
    rng = np.random.default_rng(0)
    hits, tries = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for _ in range(n_runs):
        for name, score in compute_scores(*make(rng)).items():
            if name in truth and score is not None:
                hits[name] += score.low <= truth[name] <= score.high
                tries[name] += 1
    assert min(tries.values()) > n_runs / 2
    return {name: hits[name] / tries[name] for name in truth}


@pytest.mark.parametrize("n", [60, 300])
def test_intervals_hold_the_truth_as_often_as_they_say(n):
    """Three leaves whose probabilities are true: what scores come to is known in closed form."""
    share, rate = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.8])

    def make(rng):
        leaf = rng.choice(3, n, p=share)
        return rng.random(n) < rate[leaf], leaf == 2, rate[leaf]

    positive, negative = share * rate, share * (1 - rate)
    total, rest = positive.sum(), negative.sum()
    sensitivity, specificity = positive[2] / total, negative[:2].sum() / rest
    pairs = sum(
        positive[i] * negative[j] * ((i > j) + 0.5 * (i == j))
        for i, j in itertools.product(range(3), repeat=2)
    )
    truth = {
        "error": positive[:2].sum() + negative[2],
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": rate[2],
        "npv": negative[:2].sum() / share[:2].sum(),
        "auc": pairs / (total * rest),
        "brier": (share * rate * (1 - rate)).sum(),
        "log_loss": -(positive @ np.log(rate) + negative @ np.log(1 - rate)),
        "slope": 1.0,
        "intercept": 0.0,
        "observed_expected": 1.0,
    }
    for name, held in cover(make, truth).items():
        assert 0.925 < held < 0.985, (name, held)


def test_intervals_of_losses_hold_for_rare_outcomes_in_small_samples():
    """With 2 % positive, 30 samples often hold none: the observed variance alone is nothing."""
    held = cover(
        lambda rng: (rng.random(30) < 0.02, np.zeros(30), np.full(30, 0.02)),
        {"brier": 0.02 * 0.98, "log_loss": -0.02 * np.log(0.02) - 0.98 * np.log(0.98)},
        n_runs=500,
    )
    assert min(held.values()) > 0.9


def test_auc_of_nearly_perfect_ranks_is_covered():
    """Few samples, most runs perfect: the interval falls back on the largest variance there is."""
    truth, rng, held = 0.9772498680518208, np.random.default_rng(1), 0  # normal, 2 sqrt 2 apart
    for _ in range(1000):
        y = np.arange(16) < 8
        score = score_auc(y, rng.normal(size=16) + 2 * np.sqrt(2) * y)
        held += score.low <= truth <= score.high
    assert held / 1000 > 0.93


def make_visits(rng, n_patients, n_visits):
    """Labels, predictions, probabilities and patients; the patients' risks and habits differ."""
    patients = np.repeat(np.arange(n_patients), n_visits)
    risk, habit = rng.normal(0, 1.5, (2, n_patients))
    p = 1 / (1 + np.exp(-risk[patients]))
    y = rng.random(len(p)) < 1 / (1 + np.exp(-(risk + habit)[patients]))
    return y, p > 0.5, p, patients


def score_literally(y, predicted, p, groups):
    """Estimates and their variances from a loop over the groups, as the formulas read."""
    n_groups, found = len(set(groups.tolist())), {}
    rows = {
        "error": np.ones_like(y),
        "sensitivity": y,
        "specificity": ~y,
        "ppv": predicted,
        "npv": ~predicted,
    }
    for name, chosen in rows.items():
        hits = (y != predicted) if name == "error" else (y == predicted)
        mean, own = hits[chosen].mean(), sorted(set(groups[chosen].tolist()))
        sums = [(hits[chosen & (groups == g)] - mean).sum() / chosen.sum() for g in own]
        found[name] = mean, len(own) / (len(own) - 1) * sum(s**2 for s in sums)
    for name, loss in (("brier", (y - p) ** 2), ("log_loss", -np.log(np.where(y, p, 1 - p)))):
        sums = [(loss[groups == g] - loss.mean()).sum() / len(y) for g in range(n_groups)]
        found[name] = loss.mean(), n_groups / (n_groups - 1) * sum(s**2 for s in sums)
    wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    auc, total = wins.mean(), 0.0
    for g in range(n_groups):
        above = (wins[groups[y] == g].mean(axis=1) - auc).sum() / y.sum()
        below = (wins[:, groups[~y] == g].mean(axis=0) - auc).sum() / (~y).sum()
        total += (above + below) ** 2
    return found | {"auc": (auc, n_groups / (n_groups - 1) * total)}


@pytest.mark.parametrize("seed", range(5))
def test_variances_with_groups_are_those_of_the_groups_sums(seed):
    from scipy.stats import t

    y, predicted, p, patients = make_visits(np.random.default_rng(seed), 12, 4)
    found, z = compute_scores(y, predicted, p, patients), t.ppf(0.975, 11)
    for name, (value, variance) in score_literally(y, predicted, p, patients).items():
        score = found[name]
        assert score.value == pytest.approx(value)
        if name in ("brier", "log_loss"):
            assert score.high - value >= z * variance**0.5 - 1e-12
            continue
        if name == "auc":
            odds = np.log(score.high / (1 - score.high)) - np.log(value / (1 - value))
            assert odds == pytest.approx(z * variance**0.5 / (value * (1 - value)))
        elif name == "error":  # in all groups; Wilson's interval solves a quadratic equation
            for bound in (score.low, score.high):
                n = value * (1 - value) / variance
                assert (bound - value) ** 2 == pytest.approx(z**2 * bound * (1 - bound) / n)


@pytest.mark.parametrize("n_visits", [5, 10])
def test_intervals_hold_the_truth_with_visits_of_patients(n_visits):
    """Without groups, intervals of 5 or 10 visits a patient are far too narrow.

    300 repetitions: four standard errors of a coverage of 95 % are 5 points.
    """
    rng = np.random.default_rng(n_visits)
    truth = compute_scores(*make_visits(rng, 300_000, 1)[:3])
    names = ("error", "balanced_accuracy", "sensitivity", "ppv", *PROBABILITY_METRICS)
    covered = np.zeros((2, len(names)))
    for _ in range(300):
        *samples, patients = make_visits(rng, 60, n_visits)
        for way, groups in enumerate((patients, None)):
            found = compute_scores(*samples, groups)
            covered[way] += [found[n].low <= truth[n].value <= found[n].high for n in names]
    with_groups, without = covered / 300
    assert with_groups.min() >= 0.90, dict(zip(names, with_groups, strict=True))
    assert np.median(with_groups) <= 0.985
    assert max(without) < 0.88


def test_a_single_group_shows_nothing():
    y, predicted, p = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), np.array([0.1, 0.9, 0.4, 0.5])
    found = compute_scores(y, predicted, p, np.zeros(4, dtype=int))
    assert (found["error"].low, found["error"].high) == (0.0, 1.0)
    assert (found["auc"].low, found["auc"].high) == (0.0, 1.0)


def test_mcnemar_with_groups_has_its_level_and_its_power():
    """Equal errors on average: rejected in 5 % with groups, far more often without."""
    from icscm.studies.scores import compare_losses

    rng = np.random.default_rng(0)
    rejected = np.zeros(3)
    for _ in range(400):
        patients = np.repeat(np.arange(60), 8)
        better, helped = rng.integers(0, 2, (2, 60, 1)).astype(bool)
        wrong = np.repeat(np.concatenate((better, ~better), axis=1), 8, axis=0).T
        rejected[0] += compare_losses(*wrong, patients)[1] <= 0.05
        rejected[1] += compare_losses(*wrong)[1] <= 0.05
        is_helped = np.repeat(helped | better, 8, axis=0)[:, 0]
        rejected[2] += compare_losses(~is_helped, is_helped, patients)[0] == "better"
    assert rejected[0] <= 400 * 0.05 + 4 * np.sqrt(400 * 0.05 * 0.95)
    assert rejected[1] > 100
    assert rejected[2] > 380
