"""More than two parents, and continuous ones: the best accepted set, its label, and the level."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from icscm import ICSCMClassifier, InvariantCausalPrediction
from icscm.datasets import make_conjunction
from icscm.engine.counts import BinnedRule
from icscm.exceptions import IcscmWarning, NothingAcceptedWarning, UntestedSetsWarning
from icscm.search.cut_bounds import find_cut_bounds
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.sets import find_best
from icscm.search.settings import Settings
from icscm.search.tree_sets import TreeTester, TreeTestSettings
from icscm.sources.memory import make_memory_source
from icscm.stats.independence import GTest
from support.fitting import fit_quietly


def make_source(X, y, environments):
    names = np.unique(environments).tolist()
    return make_memory_source(X, y, environments, environment_labels=names, n_jobs=1)


# --- the level, where a true threshold lies inside a bin ----------------------------------------


@pytest.mark.thorough
def test_the_level_of_rules_on_continuous_parents():
    """The true set was rejected in about 0.4 of these runs: a threshold lies inside a bin, and
    with 10,000 samples an environment the test detected the few on the wrong side of the cut."""
    n_runs, rejected, wrong = 100, 0, 0
    for seed in range(n_runs):
        data = make_conjunction(10_000, 0, n_children=0, continuous=True, random_state=seed)
        source = make_source(data.X.to_numpy(), data.y, data.environments)
        _, trace = learn_exhaustively(source, Settings(test=GTest()))
        p_values = {frozenset(each.features): each.p_value for each in trace.sets}
        rejected += p_values[frozenset((0, 1))] <= 0.05
        wrong += max(p for features, p in p_values.items() if len(features) < 2) <= 0.05
    assert binom.sf(rejected - 1, n_runs, 0.05) > 0.01
    assert wrong == n_runs


@pytest.mark.thorough
def test_the_level_of_trees_on_continuous_parents():
    """The true set was rejected in about 0.75 of these runs, for the same reason."""
    n_runs, rejected, wrong = 40, 0, 0
    for seed in range(n_runs):
        data = make_conjunction(10_000, 0, n_children=0, continuous=True, random_state=seed)
        source = make_source(data.X.to_numpy(), data.y, data.environments)
        tester = TreeTester(source, (0, 1), TreeTestSettings(seed=seed))
        rejected += tester.compute_p_value((0, 1)) <= 0.05
        wrong += max(tester.compute_p_value((0,)), tester.compute_p_value((1,))) <= 0.05
    assert binom.sf(rejected - 1, n_runs, 0.05) > 0.01
    assert wrong == n_runs


@pytest.mark.parametrize(
    ("values", "cut", "wanted"),
    [
        (np.arange(160) % 16, 5, None),  # each bin is a value
        (np.arange(170) % 17, 5, (5, 6)),
        (np.repeat([0, *range(1, 17)], [100, *[10] * 16]), 0, (1,)),  # many zeros are one value
    ],
)
def test_bins_beside_a_cut(values, cut, wanted):
    y = np.arange(len(values)) % 2
    source = make_source(values[:, np.newaxis].astype(float), y, y[::-1].copy())
    satisfied = np.arange(len(np.unique(values))) > cut
    (bounds,) = find_cut_bounds(source, [BinnedRule(0, satisfied)])
    if wanted is None:
        assert bounds is None
    else:
        wide, narrow = bounds.wide, bounds.narrow
        assert tuple(np.flatnonzero(wide.satisfied != narrow.satisfied)) == wanted
        assert (narrow.satisfied <= satisfied).all()
        assert (satisfied <= wide.satisfied).all()


def test_a_category_or_a_missing_value_has_no_neighbours():
    rng = np.random.default_rng(0)
    x = rng.random(400)
    x[:50] = np.nan
    y = rng.integers(0, 2, 400)
    source = make_source(x[:, np.newaxis], y, rng.integers(0, 2, 400))
    n_bins = int(source.columns.count_bins(np.array([0]))[0])
    is_present = np.arange(n_bins) > 0
    above = np.arange(n_bins) > 20
    above[0] = True
    present, bounds = find_cut_bounds(source, [BinnedRule(0, is_present), BinnedRule(0, above)])
    assert present is None
    assert bounds is not None
    assert np.flatnonzero(bounds.wide.satisfied != bounds.narrow.satisfied).tolist() == [20, 21]


# --- the best of the accepted sets --------------------------------------------------------------


@pytest.mark.parametrize(
    "selector",
    [
        InvariantCausalPrediction(conclusion="best"),
        InvariantCausalPrediction(model="tree", conclusion="best", random_state=2),
    ],
)
def test_selectors_conclude_alike(selector):
    data = make_conjunction(2_000, 2, n_parents=4, random_state=1)
    selector.fit(data.X, data.y, environments=data.environments)
    assert selector.parents_ == tuple(data.parents)
    assert selector.bic_.keys() == selector.accepted_sets_.keys()
    assert min(selector.bic_, key=selector.bic_.get) == selector.parents_
    assert "conclusion='best'" in repr(selector)
    bics = selector.bic_
    selector.set_params(conclusion="intersection")
    selector.fit(data.X, data.y, environments=data.environments)
    assert selector.bic_ == {}
    assert set(selector.parents_) == set.intersection(*map(set, bics))


def test_ties_and_no_accepted_set():
    assert find_best({(1, 2): 5.0, (0, 3): 5.0 + 1e-9, (0,): 6.0}) == {0, 3}
    assert find_best({(): 5.0, (0,): 5.0}) == set()
    assert find_best({}) is None
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 500)
    y = (rng.random(1000) < 0.3 + 0.4 * environments).astype(int)
    X = np.column_stack([y ^ (rng.random(1000) < 0.3), rng.random(1000)])
    learner = ICSCMClassifier(search="exhaustive")
    assert fit_quietly(learner, X, y, environments).trace_.stop_reason == "all_rejected"
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        selector = InvariantCausalPrediction(model="tree", conclusion="best").fit(
            X, y, environments=environments
        )
    assert selector.parents_ is None


def test_features_beyond_the_limit_are_a_warning():
    data = make_conjunction(2_000, 0, n_parents=4, random_state=1)
    selector = InvariantCausalPrediction(
        model="tree", max_features=4, random_state=4, conclusion="best"
    )
    with (
        pytest.warns(NothingAcceptedWarning),
        pytest.warns(UntestedSetsWarning, match="any of 1 weaker feature beyond max_features"),
    ):
        selector.fit(data.X, data.y, environments=data.environments)
