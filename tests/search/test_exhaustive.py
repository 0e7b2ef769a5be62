"""The exhaustive search equals its description, and its guarantee holds as a statistic."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning, NothingFoundWarning


def search_slowly(X, y, environments, alpha, n_candidates, inverted):
    """Screen, test every subset leaf by leaf, intersect: straight from rows."""
    y = 1 - y if inverted else y
    best, n_tried = {}, 0
    for feature in range(X.shape[1]):
        for threshold in np.unique(X[:, feature])[:-1]:
            above = X[:, feature] > threshold
            sense = y[above].mean() > y[~above].mean()
            if y[above].mean() == y[~above].mean():
                continue
            n_tried += 1
            table = [[(above & (y == a)).sum(), (~above & (y == a)).sum()] for a in (0, 1)]
            statistic = stats.chi2_contingency(table, correction=False).statistic
            if feature not in best or statistic > best[feature][0] + 1e-9:
                best[feature] = (statistic, threshold, bool(sense))
    passed = [
        (statistic, feature, threshold, sense)
        for feature, (statistic, threshold, sense) in best.items()
        if stats.chi2.sf(statistic, 1) * n_tried <= 0.05
    ]
    passed = sorted(passed, key=lambda each: (-round(each[0], 9), each[1]))[:n_candidates]
    truth = {f: (X[:, f] > t) == sense for _, f, t, sense in passed}
    order = [f for _, f, _, _ in passed]
    p_values = {}
    for size in range(len(order) + 1):
        for subset in itertools.combinations(order, size):
            p_values[subset] = compute_leaves_p_value(subset, truth, y, environments)
    accepted = [set(subset) for subset, p in p_values.items() if p > alpha]
    shared = set.intersection(*accepted) if accepted else None
    return p_values, shared, [(f, t, sense) for _, f, t, sense in passed]


def compute_leaves_p_value(subset, truth, y, environments):
    statistic, dof = 0.0, 0
    left = np.ones(len(y), dtype=bool)
    for leaf in [*(~truth[feature] for feature in subset), np.ones(len(y), dtype=bool)]:
        rows = left & leaf
        left &= ~leaf
        if len(set(y[rows])) < 2 or len(set(environments[rows])) < 2:
            continue
        places = np.unique(environments[rows])
        table = [[((y == a) & (environments == e))[rows].sum() for e in places] for a in (0, 1)]
        result = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        statistic, dof = statistic + result.statistic, dof + result.dof
    return float(stats.chi2.sf(statistic, dof)) if dof else 1.0


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 4),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.05, 0.3]),
    st.sampled_from([2, 8]),
    st.sampled_from(["conjunction", "disjunction"]),
)
def test_equals_the_literal_search(seed, n_environments, n_values, alpha, n_candidates, model_type):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(30, 200))
    X = rng.integers(0, n_values + 1, size=(n_rows, 4)).astype(float)
    environments = rng.integers(0, n_environments, n_rows)
    environments[:2] = [0, 1]
    X[:, 0] += environments % 2
    y = ((X[:, 0] > 1) & (X[:, 1] > 0)) ^ (rng.random(n_rows) < 0.1)
    y = y.astype(int)
    y[:2] = [0, 1]
    learner = ICSCMClassifier(
        search="exhaustive", alpha=alpha, n_candidates=n_candidates, model_type=model_type
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        learner.fit(X, y, environments=environments)
    inverted = model_type == "disjunction"
    p_values, shared, screened = search_slowly(X, y, environments, alpha, n_candidates, inverted)
    assert [
        (each.rule.column, each.rule.threshold, each.rule.above != inverted)
        for each in learner.trace_.screening
    ] == screened
    found = {test.features: test.p_value for test in learner.trace_.sets}
    assert found.keys() == p_values.keys()
    for subset, p_value in p_values.items():
        assert found[subset] == pytest.approx(p_value, rel=1e-9, abs=1e-9)
    assert set(learner.features_used_) == (shared or set())
    assert (learner.trace_.stop_reason == "all_rejected") == (bool(screened) and shared is None)


def fit(data, **parameters):
    learner = ICSCMClassifier(search="exhaustive", **{"alpha": "auto", **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        return learner.fit(data.X, data.y, environments=data.environments)


def test_what_is_kept_for_the_user():
    data = make_conjunction(1_000, 50, random_state=3)
    learner = fit(data)
    assert str(learner.model_) == "A1 > 0 and A2 > 0"
    assert learner.alpha_ == 0.05
    assert all(set(features) >= {"A1", "A2"} for features in learner.accepted_sets_)
    assert max(learner.p_values_["A1"], learner.p_values_["A2"]) <= learner.alpha_
    assert learner.p_values_["C1"] > learner.alpha_
    leaf = learner.model_.find_leaves(data.X.to_numpy())
    assert [np.sum(counts) for counts in learner.model_.leaves] == np.bincount(leaf).tolist()
    assert len(learner.trace_.to_frame("sets")) == 2 ** len(learner.trace_.screening)
    assert len(learner.trace_.steps) == 2
    assert learner.equivalent_rules_ == [(), ()]


@pytest.mark.parametrize(
    "options",
    [
        {"continuous": True},
        {"model_type": "disjunction"},
        {"n_environments": 4},
        {"n_children": 3},
        {"n_parents": 3},
    ],
    ids=str,
)
def test_other_structures(options):
    n_found = 0
    for seed in range(10):
        data = make_conjunction(5_000, 10, **options, random_state=seed)
        model_type = options.get("model_type", "conjunction")
        # cuts fine enough that the true one is nearly among them
        learner = fit(data, model_type=model_type, max_thresholds=250)
        n_found += set(learner.features_used_) == set(data.parents)
    assert n_found >= 8


def test_nothing_associated():
    rng = np.random.default_rng(0)
    X, y, environments = rng.random((300, 3)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    with pytest.warns(NothingFoundWarning, match="no feature is significantly associated"):
        learner = ICSCMClassifier(search="exhaustive").fit(X, y, environments=environments)
    assert learner.trace_.sets[0].features == ()


def test_every_set_rejected_is_not_the_empty_set():
    """The environment itself decides the label: no set of features makes them independent."""
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 2, 2000)
    y = environments ^ (rng.random(2000) < 0.2)
    X = np.column_stack((y ^ (rng.random(2000) < 0.3), rng.integers(0, 2, 2000)))
    with pytest.warns(NothingFoundWarning, match="every one was rejected"):
        rejected = ICSCMClassifier(search="exhaustive").fit(X, y, environments=environments)
    assert rejected.trace_.stop_reason == "all_rejected"
    assert rejected.accepted_sets_ == {}
    shuffled = rng.permutation(environments)
    with pytest.warns(NothingFoundWarning, match="those accepted share no rule"):
        empty = ICSCMClassifier(search="exhaustive").fit(X, y, environments=shuffled)
    assert () in empty.accepted_sets_


@pytest.mark.slow
@pytest.mark.parametrize("n_children", [1, 2, 3])
def test_a_non_parent_is_reported_in_at_most_alpha_of_the_runs(n_children):
    n_runs, alpha = 1000, 0.05
    n_wrong = 0
    for seed in range(n_runs):
        data = make_conjunction(1_000, 5, n_children=n_children, random_state=(n_children, seed))
        n_wrong += bool(set(fit(data, alpha=alpha).features_used_) - set(data.parents))
    assert stats.binomtest(n_wrong, n_runs, alpha, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_needs_far_fewer_samples_than_the_greedy_search():
    n_exhaustive, n_greedy, n_runs = 0, 0, 60
    for seed in range(n_runs):
        data = make_conjunction(1_000, 50, random_state=seed)
        n_exhaustive += set(fit(data).features_used_) == set(data.parents)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            greedy = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
        n_greedy += set(greedy.features_used_) == set(data.parents)
    assert n_exhaustive >= 0.75 * n_runs
    assert n_greedy <= 0.45 * n_runs


@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_cumulative_evidence_never_takes_what_was_refused_before():
    data = make_conjunction(10_000, 20, random_state=5)
    for evidence in ("step", "cumulative"):
        learner = ICSCMClassifier(alpha=0.3, stop="coverage", pruning=False, evidence=evidence)
        learner.fit(data.X, data.y, environments=data.environments)
        alone = ICSCMClassifier(alpha=0.3, max_rules=1, pruning=False)
        alone.fit(data.X, data.y, environments=data.environments)
        first_refused = alone.trace_.steps[0].look.n_refused["dependent"]
        taken = [step.chosen.rule for step in learner.trace_.steps]
        was_refused = []
        for rule in taken:
            above = data.X[rule.feature].to_numpy() > rule.threshold
            settled = ~above if rule.above else above
            table = np.array(
                [
                    [(settled & (data.y == a) & (data.environments == e)).sum() for e in (0, 1)]
                    for a in (0, 1)
                ]
            )
            was_refused.append(stats.chi2_contingency(table).pvalue <= 0.3)
        assert first_refused > 0
        assert any(was_refused) == (evidence == "step")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_cumulative_evidence_helps_where_the_paper_says_it_should():
    """At a small alpha the greedy search collects what it refused at first; with memory not."""
    n_found = {"step": 0, "cumulative": 0}
    for seed in range(40):
        data = make_conjunction(10_000, 50, random_state=(7, seed))
        for evidence in n_found:
            learner = ICSCMClassifier(alpha=0.001, evidence=evidence)
            learner.fit(data.X, data.y, environments=data.environments)
            n_found[evidence] += set(learner.features_used_) == set(data.parents)
    assert n_found["cumulative"] >= 36
    assert n_found["step"] < n_found["cumulative"]
