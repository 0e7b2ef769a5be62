"""The exhaustive search equals its description, and its guarantee holds as a statistic."""

import itertools
import math
import re
import warnings
from collections import Counter
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning, NothingFoundWarning, UntestedSetsWarning
from icscm.search import exhaustive
from support.fitting import PAPER, fit_quietly
from support.literal.giveaways import find_determining
from support.literal.learner import compute_statistic, find_beside, is_replicated, tabulate


def search_slowly(
    X,
    y,
    environments,
    alpha,
    n_candidates,
    inverted,
    max_rules=10,
    min_samples_leaf=1,
    min_replication=0.25,
    weights=None,
    conclusion="intersection",
):
    """Screen, join copies, test every subset leaf by leaf, conclude: straight from rows."""
    y = 1 - y if inverted else y
    weights = [1.0] * X.shape[1] if weights is None else weights
    best, n_tried = {}, 0
    determining = []
    if min_replication > 0:
        determining = find_determining(X.tolist(), environments.tolist(), max_thresholds=50)
    for feature in range(X.shape[1]):
        if feature in determining:
            continue
        for threshold in np.unique(X[:, feature])[:-1]:
            above = X[:, feature] > threshold
            sense = y[above].mean() > y[~above].mean()
            if y[above].mean() == y[~above].mean() or weights[feature] == 0:
                continue
            if min(above.sum(), (~above).sum()) < min_samples_leaf:
                continue
            own = {*np.flatnonzero(above).tolist()}, set(range(len(y))), y, environments.tolist()
            if not is_replicated(*own, min_replication):
                continue
            n_tried += 1
            table = [[int(((y == a) & (above == b)).sum()) for b in (True, False)] for a in (0, 1)]
            statistic, _ = compute_statistic(table, "pearson")
            if feature not in best or statistic > best[feature][0] + 1e-9:
                best[feature] = (statistic, threshold, bool(sense))
    passed = [
        (statistic * weights[feature], feature, threshold, sense)
        for feature, (statistic, threshold, sense) in best.items()
        if special.chdtrc(1, statistic) * n_tried <= 0.05
    ]
    passed = sorted(passed, key=lambda each: (-round(each[0], 9), each[1]))
    truth = {f: (X[:, f] > t) == sense for _, f, t, sense in passed}
    alike = {}  # the first of those that settle the same samples stands for the others
    for feature, settled in truth.items():
        first = next((f for f in alike if (truth[f] == settled).all()), feature)
        alike.setdefault(first, []).append(feature)
    passed = [each for each in passed if each[1] in list(alike)[:n_candidates]]
    order = [f for _, f, _, _ in passed]
    beside = {f: find_beside(X[:, f], t) for _, f, t, _ in passed}
    p_values, bics, known_leaves = {}, {}, {}
    for size in range(min(len(order), max_rules) + 1):
        for subset in itertools.combinations(order, size):
            forms = [find_leaves(len(y), subset, truth, beside, f) for f in (None, True, False)]
            tested = np.where(forms[1] == forms[2], forms[0], -1)
            by_leaf = [
                compute_leaf_g(tested == leaf, y, environments, known_leaves)
                for leaf in range(size + 1)
            ]
            statistic, dof = map(sum, zip(*by_leaf, strict=True))
            p_values[subset] = float(special.chdtrc(dof, statistic)) if dof else 1.0
            bics[subset] = sum(
                compute_leaf_deviance(y[forms[0] == leaf]) + math.log(len(y))
                for leaf in set(forms[0].tolist())
            )
    accepted = [set(subset) for subset, p in p_values.items() if p > alpha]
    chosen = set.intersection(*accepted) if accepted else None
    if conclusion == "best" and accepted:
        rank = {s: (round(bics[s], 6), len(s), [order.index(f) for f in s]) for s in p_values}
        chosen = set(min((s for s in p_values if set(s) in accepted), key=rank.get))
    equivalent = {f: sorted(set(alike[f]) - {f}) for f in order}
    return p_values, bics, chosen, [(f, t, sense) for _, f, t, sense in passed], equivalent


def find_leaves(n_rows, subset, truth, beside, form):
    """The first rule that is false of each sample, where those beside a cut have this truth."""
    leaves = np.full(n_rows, len(subset))
    for number, feature in reversed([*enumerate(subset)]):
        is_true = truth[feature].copy()
        if form is not None:
            is_true[beside[feature]] = form
        leaves[~is_true] = number
    return leaves


def compute_leaf_g(is_in_leaf, y, environments, known):
    """G of label against environment in a leaf and its degrees of freedom; `known` remembers."""
    key = is_in_leaf.tobytes()
    if key not in known:
        labels, places = y[is_in_leaf].tolist(), environments[is_in_leaf].tolist()
        table = tabulate(zip(labels, places, strict=True))
        has_two = len(table) > 1 and len(table[0]) > 1
        known[key] = compute_statistic(table, "g") if has_two else (0.0, 0)
    return known[key]


def compute_leaf_deviance(labels):
    rate = labels.mean()
    return -2 * len(labels) * (special.xlogy(rate, rate) + special.xlogy(1 - rate, 1 - rate))


def draw_options(rng):
    return {
        "alpha": float(rng.choice([0.05, 0.3])),
        "n_candidates": int(rng.choice([2, 8])),
        "max_rules": int(rng.choice([1, 2, 10])),
        "min_replication": float(rng.choice([0.0, 0.25, 0.9])),
    }


# How often each must be reached in 50 tables: about half of what it is.
LEAST = {
    "equivalent": 5,
    "found": 15,
    "set aside": 1,
    "bounded": 8,
    "all_rejected": 5,
    "intersection": 8,
    "empty_intersection": 4,
    "nothing_associated": 1,
    "many values": 4,
}


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 150), marks=pytest.mark.thorough)], ids=str
)
@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
def test_equals_the_literal_search(model_type, seeds):
    reached = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n_environments, n_values = int(rng.integers(2, 5)), int(rng.choice([1, 2, 4, 40]))
        X, y, environments = make_table(rng, n_environments, n_values)
        options = draw_options(rng)
        learner_options = {name: each for name, each in options.items() if name != "n_candidates"}
        learner = ICSCMClassifier(
            search="exhaustive",
            model_type=model_type,
            p=float(rng.choice([1.0, 20.0])),
            **learner_options,
        )
        with mock.patch.object(exhaustive, "N_CANDIDATES", options["n_candidates"]):
            fit_quietly(learner, X, y, environments)
        inverted = model_type == "disjunction"
        p_values, bics, chosen, screened, equivalent = search_slowly(
            X, y, environments, inverted=inverted, **options
        )
        assert [
            (each.rule.column, each.rule.threshold, each.rule.above != inverted)
            for each in learner.trace_.screening
        ] == screened
        found = {test.features: test.p_value for test in learner.trace_.sets}
        assert found.keys() == p_values.keys()
        for subset, p_value in p_values.items():
            assert found[subset] == pytest.approx(p_value, rel=1e-9, abs=1e-9)
        found = {test.features: test.bic for test in learner.trace_.sets}
        assert found == {subset: pytest.approx(bic) for subset, bic in bics.items()}
        found = learner.trace_.discarded or learner.model_
        assert {rule.feature for rule in found.rules} == (chosen or set())
        reached["set aside"] += learner.trace_.discarded is not None
        assert (learner.trace_.stop_reason == "all_rejected") == (bool(screened) and chosen is None)
        for step in learner.trace_.steps:
            columns = [rule.column for rule in step.equivalent]
            assert columns == equivalent[step.chosen.rule.column]
            reached["equivalent"] += bool(columns)
        reached["found"] += bool(learner.rules_)
        reached["many values"] += n_values == 40 and bool(learner.rules_)
        reached["bounded"] += len(screened) > options["max_rules"]
        reached[learner.trace_.stop_reason] += 1
    assert {name: reached[name] for name in LEAST if reached[name] < LEAST[name]} == {}


def make_table(rng, n_environments, n_values):
    """Six features: two parents that the environment moves, a copy, and an inverted one."""
    n_rows = int(rng.integers(30, 250))
    X = rng.integers(0, n_values + 1, size=(n_rows, 6)).astype(float)
    environments = rng.integers(0, n_environments, n_rows)
    environments[:2] = [0, 1]
    X[:, 0] += environments % 2 * max(1, n_values // 4)
    X[:, 4] = X[:, 1]
    X[:, 5] = -X[:, 0]
    y = ((X[:, 0] > max(1, n_values // 3)) & (X[:, 1] > n_values // 8)) ^ (rng.random(n_rows) < 0.1)
    y = y.astype(int)
    y[:2] = [0, 1]
    return X, y, environments


@pytest.mark.parametrize("in_front", [False, True])
def test_a_parent_that_has_a_copy_is_not_lost(in_front):
    """`A1_again = A1`: each of the two could stand in for the other, so that the accepted sets
    shared neither, and the model was `A2 > 0` alone, without equivalent rules."""
    data = make_conjunction(1_000, 5, random_state=3)
    again = data.X[["A1"]].rename(columns={"A1": "A1_again"})
    X = pd.concat([again, data.X] if in_front else [data.X, again], axis=1)
    data = data._replace(X=X)
    learner = fit(data)
    names = ("A1_again", "A1") if in_front else ("A1", "A1_again")
    assert learner.features_used_ == [names[0], "A2"]
    assert [list(map(str, rules)) for rules in learner.equivalent_rules_] == [
        [f"{names[1]} > 0"],
        [],
    ]
    assert [step.n_tied for step in learner.trace_.steps] == [2, 1]


def test_copies_of_presence_are_joined_too():
    """Columns of bits are stored once for all copies; the result is that of numbers."""
    data = make_conjunction(1_000, 3, random_state=3)
    X = data.X.to_numpy()[:, [0, 1, 0, 2, 1, 0]]
    found = []
    for table in (X.astype(float), X.astype(bool)):
        learner = ICSCMClassifier(search="exhaustive", alpha="auto")
        learner.fit(table, data.y, environments=data.environments)
        columns = [[rule.column for rule in rules] for rules in learner.equivalent_rules_]
        found.append((learner.features_used_, columns, learner.trace_.steps[0].n_candidates))
    assert found[0] == found[1]
    assert found[0][:2] == ([0, 1], [[2, 5], [4]])


def test_max_rules_bounds_the_sets():
    """It was ignored without a word: a model of two rules came with `max_rules=1`."""
    data = make_conjunction(1_000, 5, random_state=3)
    assert fit(data, max_rules=2).features_used_ == ["A1", "A2"]
    learner = fit(data, max_rules=1)
    assert len(learner.rules_) <= 1
    assert max(len(test.features) for test in learner.trace_.sets) == 1
    assert learner.trace_.notes[-1].startswith("Sets of more than 1 of the ")
    with mock.patch.object(exhaustive, "N_CANDIDATES", 2):
        trace = fit(data, max_rules=2).trace_
    n_beyond = len(fit(data).trace_.screening) - 2
    assert n_beyond > 0
    assert trace.untested == trace.notes[-1]
    assert trace.untested.startswith(f"Sets with any of {n_beyond} weaker rule")
    learner = ICSCMClassifier(search="exhaustive")
    with (
        mock.patch.object(exhaustive, "N_CANDIDATES", 2),
        pytest.warns(NothingFoundWarning),
        pytest.warns(UntestedSetsWarning, match=re.escape(trace.untested)),
    ):
        learner.fit(data.X, data.y, environments=data.environments)


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
        pytest.param({"continuous": True}, marks=pytest.mark.thorough),
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
    with pytest.warns(NothingFoundWarning, match="the accepted sets share no rule"):
        empty = ICSCMClassifier(search="exhaustive").fit(X, y, environments=shuffled)
    assert () in empty.accepted_sets_


@pytest.mark.thorough
@pytest.mark.parametrize("n_children", [1, 2, 3])
def test_a_non_parent_is_reported_in_at_most_alpha_of_the_runs(n_children):
    n_runs, alpha = 1000, 0.05
    n_wrong = 0
    for seed in range(n_runs):
        data = make_conjunction(1_000, 5, n_children=n_children, random_state=(n_children, seed))
        n_wrong += bool(set(fit(data, alpha=alpha).features_used_) - set(data.parents))
    assert stats.binomtest(n_wrong, n_runs, alpha, alternative="greater").pvalue > 1e-3


@pytest.mark.thorough
def test_needs_far_fewer_samples_than_the_greedy_search():
    n_exhaustive, n_greedy, n_runs = 0, 0, 60
    for seed in range(n_runs):
        data = make_conjunction(1_000, 50, random_state=seed)
        n_exhaustive += set(fit(data).features_used_) == set(data.parents)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            greedy = ICSCMClassifier(**PAPER).fit(data.X, data.y, environments=data.environments)
        n_greedy += set(greedy.features_used_) == set(data.parents)
    assert n_exhaustive >= 0.75 * n_runs
    assert n_greedy <= 0.45 * n_runs
