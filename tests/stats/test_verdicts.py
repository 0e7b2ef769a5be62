"""Verdicts: intervals that cover, a power that is reached, and three conclusions."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import TooLittleDataWarning
from icscm.search.settings import Settings
from icscm.stats.criteria import EquivalenceCriterion, PValueCriterion
from icscm.stats.independence import ChiSquaredTest, find_independent, make_test
from icscm.stats.verdicts import (
    Verdicts,
    compute_differences,
    compute_minimum_detectable_difference,
    compute_wilson,
    make_verdicts,
)

TEST = ChiSquaredTest(yates=False)


def simulate(rng, n_tables, sizes, rates):
    """Tables of independent environments with these sizes and label rates."""
    positives = rng.binomial(sizes, rates, size=(n_tables, len(sizes)))
    return np.stack((np.asarray(sizes) - positives, positives), axis=1)


def judge(*table, **options):
    (verdict,) = make_verdicts([table], TEST, 0.05, 0.05, **options)
    return verdict


@pytest.mark.parametrize(("positives", "size"), [(0, 10), (3, 10), (10, 10), (420, 1000)])
def test_wilson_equals_scipy(positives, size):
    wanted = stats.binomtest(positives, size).proportion_ci(0.95, method="wilson")
    found = compute_wilson(np.array(positives), np.array(size), stats.norm.ppf(0.975))
    assert found == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_difference_equals_the_published_example():
    """Newcombe (1998), method 10, of 56/70 and 48/80: 0.0524 to 0.3339."""
    tables = np.array([[[14, 32], [56, 48]]])
    found = compute_differences(tables, 0.025)
    assert found.largest[0] == pytest.approx(0.2)
    assert found.high[0] == pytest.approx(0.3339, abs=5e-5)
    # the lower end is corrected for both directions: that of level 0.05 is the published one
    assert compute_differences(tables, 0.05).low[0] == pytest.approx(0.0524, abs=5e-5)


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.3, 0.42), (0.1, 0.12, 0.2), (0.5, 0.5, 0.5, 0.5)])
def test_interval_of_the_largest_difference_covers(rates):
    """Each end misses the true largest difference in at most alpha of the runs."""
    rng = np.random.default_rng(0)
    n_runs, alpha = 4000, 0.05
    sizes = rng.integers(150, 400, size=len(rates))
    found = compute_differences(simulate(rng, n_runs, sizes, rates), alpha)
    truth = max(rates) - min(rates)
    for n_missed in ((found.high < truth).sum(), (found.low > truth).sum()):
        assert stats.binomtest(int(n_missed), n_runs, alpha, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("n_environments", [2, 4])
def test_detectable_difference_is_seen_with_the_stated_power(n_environments):
    rng = np.random.default_rng(1)
    n_runs, alpha, rate = 4000, 0.05, 0.4
    sizes = np.array([900, 600, 300, 200][:n_environments])
    typical = np.stack((sizes * (1 - rate), sizes * rate)).astype(int)
    difference = compute_minimum_detectable_difference(typical[np.newaxis], alpha)[0]
    rates = np.full(n_environments, rate)
    rates[0] += difference * sizes[1] / sizes[:2].sum()
    rates[1] -= difference * sizes[0] / sizes[:2].sum()
    tables = simulate(rng, n_runs, sizes, rates)
    power = (~find_independent(TEST, tables, alpha)).mean()
    assert power == pytest.approx(0.8, abs=0.03)


def test_detectable_difference_of_two_environments_in_closed_form():
    table = np.array([[[699, 699], [300, 300]]])
    rate = 601 / 2000
    needed = stats.norm.isf(0.025) + stats.norm.ppf(0.8)
    wanted = needed * math.sqrt(rate * (1 - rate) * 2 / 999) + 1 / 999
    assert compute_minimum_detectable_difference(table, 0.05)[0] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("n", "rate"), [(40, 0.5), (60, 0.3), (200, 0.1), (200, 0.5), (1000, 0.3)])
def test_the_test_that_is_used_has_the_power_it_is_said_to_have(n, rate):
    """Yates' correction was left out of account: the power was 0.66 to 0.77, not 0.8."""
    positives = round(n * rate)
    table = np.array([[[n - positives] * 2, [positives] * 2]])
    difference = compute_minimum_detectable_difference(table, 0.05)[0]
    low, high = rate - difference / 2, rate + difference / 2
    chances = stats.binom.pmf(np.arange(n + 1), n, low)[:, None] * stats.binom.pmf(
        np.arange(n + 1), n, high
    )
    first, second = np.divmod(np.arange((n + 1) ** 2), n + 1)
    tables = np.stack(
        (np.column_stack((n - first, n - second)), np.column_stack((first, second))), axis=1
    )
    rejected = ChiSquaredTest().compute_p_values(tables) <= 0.05
    assert 0.78 <= chances.ravel()[rejected].sum() <= 0.86


@pytest.mark.parametrize(("n", "rate"), [(40, 0.5), (60, 0.3), (200, 0.5)])
def test_only_a_corrected_test_needs_more(n, rate):
    """Yates' shift was added for every test: of G, which has none, the detectable difference was
    told too large by 1 / n, and its power there was 0.88 and more."""
    positives = round(n * rate)
    table = np.array([[[n - positives] * 2, [positives] * 2]])
    detectable = {
        name: make_verdicts(table, make_test(name), 0.05, 0.05)[0].minimum_detectable_difference
        for name in ("g", "chi2", "fisher")
    }
    uncorrected = make_verdicts(table, TEST, 0.05, 0.05)[0].minimum_detectable_difference
    assert detectable["g"] == uncorrected
    assert detectable["chi2"] == detectable["fisher"] == pytest.approx(uncorrected + 1 / n)


def test_a_verdict_tells_its_level():
    """p = 0.02 is *not invariant* at 0.05, and not at 0.01: with the level the detectable grows."""
    table = [[60, 75], [40, 25]]
    (usual,) = make_verdicts([table], TEST, 0.05, 0.05)
    same, strict = make_verdicts([table, table], TEST, 0.05, 0.05, levels=[0.05, 0.01])
    assert same == usual
    assert 0.01 < usual.p_value < 0.05
    assert (usual.conclusion, usual.alpha) == ("not invariant", 0.05)
    assert (strict.conclusion, strict.alpha) == ("too little data to tell", 0.01)
    assert strict.minimum_detectable_difference > usual.minimum_detectable_difference
    assert strict.difference_interval == usual.difference_interval


@pytest.mark.parametrize("n_environments", [2, 4])
def test_level_of_the_equivalence_criterion(n_environments):
    """A leaf whose rates differ by the margin is accepted in at most alpha of the runs."""
    rng = np.random.default_rng(2)
    n_runs, alpha, margin = 4000, 0.05, 0.05
    rates = np.full(n_environments, 0.2)
    rates[0] += margin
    tables = simulate(rng, n_runs, [1500] * n_environments, rates)
    n_accepted = int(EquivalenceCriterion(alpha, margin).find_accepted(tables).sum())
    assert stats.binomtest(n_accepted, n_runs, alpha, alternative="greater").pvalue > 1e-4


def test_equivalence_gains_power_with_samples_where_p_values_lose_patience():
    """Rates 0.300 and 0.305: the test comes to reject what equivalence comes to accept."""
    rng = np.random.default_rng(3)
    shown, passed = [], []
    for size in (200, 2000, 200_000):
        tables = simulate(rng, 500, [size, size], [0.300, 0.305])
        shown.append(EquivalenceCriterion(0.05, 0.05).find_accepted(tables).mean())
        passed.append(PValueCriterion(TEST, 0.05).find_accepted(tables).mean())
    assert shown[0] < 0.05 < shown[1] < shown[2] == 1.0
    assert passed[0] > 0.9 > passed[2]


def test_three_conclusions():
    assert judge([7000, 7000], [3000, 3010]).conclusion == "invariant"
    assert judge([700, 500], [300, 500]).conclusion == "not invariant"
    assert judge([70, 71], [30, 29]).conclusion == "too little data to tell"


def test_real_but_trivial_difference():
    table = [700_000, 704_000], [300_000, 296_000]
    assert judge(*table).p_value < 1e-6
    assert judge(*table).conclusion == "not invariant"
    assert judge(*table, trivial_is_invariant=True).conclusion == "invariant"


def test_environment_without_samples():
    """Nothing is known there, so nothing is shown, however well the others agree."""
    verdict = judge([7000, 0, 7000], [3000, 0, 3010])
    assert verdict.conclusion == "too little data to tell"
    assert verdict.rates[1] is None
    assert verdict.rate_intervals[1] is None
    assert verdict.difference == pytest.approx(3010 / 10010 - 0.3)
    assert verdict.difference_interval[1] == 1.0


@pytest.mark.parametrize("table", [([0, 0], [0, 0]), ([5, 0], [0, 0]), ([3], [2])])
def test_nothing_to_compare(table):
    verdict = judge(*table)
    assert verdict.conclusion == "too little data to tell"
    assert (
        verdict.difference
        is verdict.difference_interval
        is verdict.minimum_detectable_difference
        is None
    )


def test_leaves_are_numbered_from_one():
    """The numbers are those of the leaves in the printed model."""
    table = (np.array([40, 42]), np.array([60, 58]))
    verdicts = Verdicts(make_verdicts([table, table], TEST, 0.05, 0.05))

    rows = [line.split() for line in str(verdicts).splitlines()]

    numbers = [row[0] for row in rows if row and row[0].isdigit()]
    assert numbers == ["1", "2"]


def test_no_leaves():
    assert make_verdicts([], TEST, 0.05, 0.05) == ()


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3, 0.9])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), n_environments=st.integers(1, 5))
def test_never_nan_and_in_order(alpha, seed, n_environments):
    tables = np.random.default_rng(seed).integers(0, 9, size=(6, 2, n_environments))
    for verdict in make_verdicts(tables, TEST, alpha, 0.05):
        text = json.dumps(asdict(verdict), allow_nan=False)
        assert json.loads(text)["conclusion"] == verdict.conclusion
        for rate, bounds in zip(verdict.rates, verdict.rate_intervals, strict=True):
            assert rate is None or bounds[0] <= rate + 1e-12 <= bounds[1] + 2e-12
        if verdict.difference is not None:
            low, high = verdict.difference_interval
            assert 0 <= low <= verdict.difference + 1e-12 <= high + 2e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5))
def test_which_label_is_positive_and_the_order_of_environments_do_not_matter(seed, n_environments):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 3000, size=(20, 2, n_environments))
    criterion = EquivalenceCriterion(0.05, 0.3)
    wanted = criterion.find_accepted(tables)
    shuffled = tables[:, :, rng.permutation(n_environments)]
    np.testing.assert_array_equal(criterion.find_accepted(tables[:, ::-1]), wanted)
    np.testing.assert_array_equal(criterion.find_accepted(shuffled), wanted)


def test_criteria_by_name():
    given = Settings(test=TEST, alpha=0.05)
    assert given.make_criterion() == PValueCriterion(TEST, 0.05)
    assert replace(given, margin=0.1).make_criterion() == EquivalenceCriterion(0.05, 0.1)
    assert Settings().make_criterion() is None


@pytest.mark.parametrize("search", ["greedy", "exhaustive"])
def test_a_verdict_for_each_leaf_of_the_model(search):
    data = make_conjunction(2000, random_state=1)
    learner = ICSCMClassifier(search=search).fit(data.X, data.y, environments=data.environments)
    assert len(learner.verdicts_) == len(learner.rules_) + 1
    for verdict, leaf in zip(learner.verdicts_, learner.model_.leaves, strict=True):
        negatives, positives = map(np.array, leaf)
        assert verdict.rates == pytest.approx(positives / (negatives + positives))
    for step in learner.trace_.steps:
        assert step.chosen.verdict.p_value == step.chosen.p_value
    assert learner.trace_.to_dict()["verdicts"][0]["conclusion"] in (
        "invariant",
        "too little data to tell",
    )


def test_fit_warns_of_leaves_that_cannot_tell():
    data = make_conjunction(20, random_state=1)
    with pytest.warns(TooLittleDataWarning, match="leaf of .*would likely not be detected"):
        ICSCMClassifier().fit(data.X, data.y, environments=data.environments)


def test_no_difference_is_minus_zero():
    """A pair of environments without samples gave a difference of at least -0.0%."""
    tables = [[[38, 12, 31, 0], [0, 0, 0, 0]]]
    found = Verdicts(make_verdicts(tables, make_test("chi2"), 0.05, 0.1))
    assert "0.0%" in repr(found)
    assert "-0.0%" not in repr(found)
