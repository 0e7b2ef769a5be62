"""Measures of predictions: against literal twins, and their intervals as statistics."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binomtest, t
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from icscm.validation.scores import (
    PROBABILITY_METRICS,
    TITLES,
    Calibration,
    LossComparison,
    compare_losses,
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


def list_losses(y, p):
    """By metric: the loss of each row, and what it would be for the other label."""
    brier = (y - p) ** 2, (1 - y - p) ** 2
    log_loss = -np.log(np.where(y, p, 1 - p)), -np.log(np.where(y, 1 - p, p))
    return {"brier": brier, "log_loss": log_loss}


def compute_implied_variance(loss, other, y, p):
    """The variance of a loss if p is true, with at least a label of each kind in n + 2 rows."""
    n = len(y)
    chance = np.clip(p, 1 / (n + 2), 1 - 1 / (n + 2))
    return np.mean(chance * (1 - chance) * (loss - other) ** 2)


def test_means_of_losses_have_normal_intervals():
    y, p = np.array([0, 0, 0, 1, 1]), np.array([0.2, 0.1, 0.9, 0.6, 0.1])
    for name, (losses, _) in list_losses(y, p).items():
        reach = Z * losses.std(ddof=1) / np.sqrt(5)
        low, high = max(losses.mean() - reach, 0), losses.mean() + reach
        assert astuple(compute_scores(y, y, p)[name])[1:] == pytest.approx((low, high)), name


def test_losses_that_happen_to_be_equal_have_the_variance_that_probabilities_imply():
    """With 2 % positive, 30 samples often hold none: the observed variance alone is nothing."""
    y, p = np.zeros(30), np.full(30, 0.02)
    for name, (losses, others) in list_losses(y, p).items():
        reach = Z * np.sqrt(compute_implied_variance(losses, others, y, p) / 30)
        assert compute_scores(y, y, p)[name].high == pytest.approx(losses[0] + reach), name


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
    found = score_calibration(y, p)
    intercept, slope = (each and each.value for each in (found.intercept, found.slope))
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
    slope, intercept, ratio = (found[name] for name in ("slope", "intercept", "observed_expected"))
    assert slope.high - slope.value == pytest.approx(Z * variance**0.5, rel=1e-3)
    assert slope.value - slope.low == pytest.approx(Z * variance**0.5, rel=1e-3)
    at_slope_one = expit(intercept.value + x)
    reach = Z / np.sqrt((at_slope_one * (1 - at_slope_one)).sum())
    ends = intercept.value - reach, intercept.value + reach
    assert (intercept.low, intercept.high) == pytest.approx(ends)
    # observed / expected: the delta method on the scale of the logarithm
    assert ratio.value == pytest.approx(y.sum() / expit(x).sum())
    t_reach = t.ppf(0.975, 399) * np.sqrt(400 / 399 * ((y - ratio.value * expit(x)) ** 2).sum())
    assert np.log(ratio.high / ratio.value) == pytest.approx(t_reach / y.sum())
    assert np.log(ratio.value / ratio.low) == pytest.approx(t_reach / y.sum())


@pytest.mark.parametrize("p", [[0.3] * 4, [0.1, 0.2, 0.8, 0.9], [0.9, 0.8, 0.2, 0.1]])
def test_calibration_slope_is_undefined_without_overlap(p):
    found = compute_scores([0, 0, 1, 1], [0, 0, 1, 1], p)
    assert found["slope"] is None
    assert found["intercept"] is not None
    assert score_calibration([1, 1, 1, 1], p) == Calibration(intercept=None, slope=None)


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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_intervals_of_losses_hold_for_rare_outcomes_in_small_samples():
    """With 2 % positive, 30 samples often hold none: the observed variance alone is nothing."""
    held = cover(
        lambda rng: (rng.random(30) < 0.02, np.zeros(30), np.full(30, 0.02)),
        {"brier": 0.02 * 0.98, "log_loss": -0.02 * np.log(0.02) - 0.98 * np.log(0.98)},
        n_runs=500,
    )
    assert min(held.values()) > 0.9


@pytest.mark.thorough
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


def sum_by_group(influence, groups):
    """The variance of a sum, from a loop over its groups, and their number."""
    sums = [influence[groups == group].sum(axis=0) for group in sorted(set(groups.tolist()))]
    n = len(sums)
    return n / (n - 1) * sum(np.multiply.outer(row, row) for row in sums), n


def score_shares_literally(y, predicted, groups):
    """By metric: a share, its variance and the number of groups that have such rows."""
    chosen_rows = {
        "error": np.ones_like(y),
        "sensitivity": y,
        "specificity": ~y,
        "ppv": predicted,
        "npv": ~predicted,
    }
    shares = {}
    for name, rows in chosen_rows.items():
        hits = (y != predicted) if name == "error" else (y == predicted)
        mean = hits[rows].mean()
        shares[name] = mean, *sum_by_group((hits[rows] - mean) / rows.sum(), groups[rows])
    (sensitivity, *_), (specificity, *_) = shares["sensitivity"], shares["specificity"]
    off = np.where(y, (predicted - sensitivity) / y.sum(), (~predicted - specificity) / (~y).sum())
    balanced = (sensitivity + specificity) / 2, *sum_by_group(off / 2, groups)
    return shares | {"balanced_accuracy": balanced}


def score_auc_literally(y, p, groups):
    wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    auc, influence = wins.mean(), np.empty(len(y))
    influence[y] = (wins.mean(axis=1) - auc) / y.sum()
    influence[~y] = (wins.mean(axis=0) - auc) / (~y).sum()
    return auc, *sum_by_group(influence, groups)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_with_groups_are_those_of_the_groups_sums(seed):
    """Each share, loss and coefficient, with the t distribution of as many groups."""
    y, predicted, p, patients = make_visits(np.random.default_rng(seed), 12, 4)
    scores = compute_scores(y, predicted, p, groups=patients)
    z = t.ppf(0.975, 11)

    for name, (value, variance, n_groups) in score_shares_literally(y, predicted, patients).items():
        score, n = scores[name], value * (1 - value) / variance
        assert score.value == pytest.approx(value)
        for bound in (score.low, score.high):  # Wilson's interval solves a quadratic equation
            distance = t.ppf(0.975, n_groups - 1) ** 2 * bound * (1 - bound) / n
            assert (bound - value) ** 2 == pytest.approx(distance), name

    auc, variance, _ = score_auc_literally(y, p, patients)
    reach = z * variance**0.5 / (auc * (1 - auc))
    assert scores["auc"].value == pytest.approx(auc)
    assert logit(scores["auc"].high) - logit(auc) == pytest.approx(reach)
    assert logit(auc) - logit(scores["auc"].low) == pytest.approx(reach)

    for name, (losses, others) in list_losses(y, p).items():
        mean = losses.mean()
        variance, _ = sum_by_group((losses - mean) / len(y), patients)
        reach = z * max(variance, compute_implied_variance(losses, others, y, p) / len(y)) ** 0.5
        assert astuple(scores[name]) == pytest.approx((mean, max(mean - reach, 0), mean + reach))

    expected = {"intercept": np.ones((len(y), 1)), "slope": np.column_stack((y >= 0, logit(p)))}
    for name, design in expected.items():  # the sandwich of White, summed by group
        score, shift = scores[name], scores["intercept"].value
        offset = shift if name == "intercept" else find_level(score.value, logit(p), y)
        fitted = expit(offset + (1 if name == "intercept" else score.value) * logit(p))
        bread = np.linalg.inv((design.T * fitted * (1 - fitted)) @ design)
        meat, _ = sum_by_group((y - fitted)[:, None] * design, patients)
        reach = z * (bread @ meat @ bread)[-1, -1] ** 0.5
        ends = score.value - reach, score.value + reach
        assert (score.low, score.high) == pytest.approx(ends, rel=1e-4), name

    ratio = scores["observed_expected"]
    variance, _ = sum_by_group((y - ratio.value * p) / y.sum(), patients)
    assert np.log(ratio.high / ratio.value) == pytest.approx(z * variance**0.5)


def find_level(slope, x, y):
    """The intercept at which a logistic regression of this slope sums to the positives."""
    return brentq(lambda level: expit(level + slope * x).sum() - y.sum(), -1e3, 1e3)


@pytest.mark.thorough
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
            found = compute_scores(*samples, groups=groups)
            covered[way] += [found[n].low <= truth[n].value <= found[n].high for n in names]
    with_groups, without = covered / 300
    assert with_groups.min() >= 0.90, dict(zip(names, with_groups, strict=True))
    assert np.median(with_groups) <= 0.985
    assert max(without) < 0.88


def test_a_single_group_shows_nothing():
    y, predicted, p = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), np.array([0.1, 0.9, 0.4, 0.5])
    found = compute_scores(y, predicted, p, groups=np.zeros(4, dtype=int))
    assert (found["error"].low, found["error"].high) == (0.0, 1.0)
    assert (found["auc"].low, found["auc"].high) == (0.0, 1.0)


def test_losses_of_groups_are_compared_by_their_sums():
    """The t test of the sums' mean about 0; without groups, of errors, McNemar's exact one."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(12), 5)
    wrong, baseline = rng.random((2, 60)) < np.array([[0.2], [0.5]])
    found = compare_losses(wrong, baseline, patients)
    sums = [float((baseline[patients == k] * 1 - wrong[patients == k]).sum()) for k in range(12)]
    assert found.p_value == pytest.approx(
        2 * t.sf(abs(sum(sums)) / np.sqrt(np.square(sums).sum()), 11)
    )
    assert found.verdict == "better"
    swapped = compare_losses(baseline, wrong, patients)
    assert swapped.verdict == "no better"
    assert swapped.p_value == pytest.approx(found.p_value)
    only_one, only_other = (wrong & ~baseline).sum(), (baseline & ~wrong).sum()
    exact = binomtest(int(only_one), int(only_one + only_other)).pvalue
    assert compare_losses(wrong, baseline).p_value == pytest.approx(exact)
    assert compare_losses(wrong, wrong) == LossComparison("no better", 1.0)


@pytest.mark.thorough
def test_mcnemar_with_groups_has_its_level_and_its_power():
    """Equal errors on average: rejected in 5 % with groups, far more often without."""
    rng = np.random.default_rng(0)
    rejected = np.zeros(3)
    for _ in range(400):
        patients = np.repeat(np.arange(60), 8)
        better, helped = rng.integers(0, 2, (2, 60, 1)).astype(bool)
        wrong = np.repeat(np.concatenate((better, ~better), axis=1), 8, axis=0).T
        rejected[0] += compare_losses(*wrong, patients).p_value <= 0.05
        rejected[1] += compare_losses(*wrong).p_value <= 0.05
        is_helped = np.repeat(helped | better, 8, axis=0)[:, 0]
        rejected[2] += compare_losses(~is_helped, is_helped, patients).verdict == "better"
    assert rejected[0] <= 400 * 0.05 + 4 * np.sqrt(400 * 0.05 * 0.95)
    assert rejected[1] > 100
    assert rejected[2] > 380
