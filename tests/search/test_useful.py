"""Defaults that are safe on real tables: what may be pruned, what must be replicated and help."""

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier
from icscm.exceptions import NothingFoundWarning
from icscm.search.rules import compute_gain
from support.fitting import PAPER, fit_quietly


def make_shifting(n=4_000, seed=0):
    """Two causes of which the environment moves one; what remains depends on it for ever."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 4, n)
    causes = rng.random((2, n)) < [[0.6], [0.7]]
    y = causes.all(axis=0) & (rng.random(n) < 0.75 + 0.06 * site)
    return pd.DataFrame({"a": causes[0], "b": causes[1], "c": rng.random(n)}), y, site


def test_nothing_is_pruned_where_the_search_did_not_end_by_independence():
    """Pruning deleted 9 of 10 rules where the search had ended at max_rules: the error rose from
    6.4 to 36.2 %."""
    table = make_shifting()
    kept = fit_quietly(ICSCMClassifier(min_utility=None), *table)
    pruned = fit_quietly(ICSCMClassifier(min_utility=None, pruning="always"), *table)
    assert kept.trace_.stop_reason == pruned.trace_.stop_reason == "max_rules"
    assert kept.trace_.pruned.outcome == "not_ended"
    assert kept.trace_.pruning == ()
    assert len(kept.rules_) > len(pruned.rules_)
    assert kept.trace_.pruned.n_wrong_before == kept.trace_.pruned.n_wrong_after
    assert sum(pruned.model_.count_wrong()) == pruned.trace_.pruned.n_wrong_after


def test_a_removal_that_breaks_a_leaf_is_undone():
    """Pruning made a leaf not invariant that was invariant before: the conditional test has many
    degrees of freedom, the leaf's test one."""
    n_undone = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        site = rng.integers(0, 2, 800)
        X = rng.integers(0, 2, (800, 4))
        moved = X[:, 0] & (rng.random(800) < 0.85 + 0.1 * site)
        y = moved & X[:, 1]
        fitted = fit_quietly(ICSCMClassifier(min_utility=None), X, y, site)
        undone = [test for test in fitted.trace_.pruning if test.undone]
        n_undone += bool(undone)
        for test in undone:
            assert not test.removed
            assert test.p_value > 0.05
            assert test.feature in fitted.features_used_ or any(
                each.removed and each.feature == test.feature for each in fitted.trace_.pruning
            )
        if fitted.trace_.pruned.outcome != "not_ended":
            conclusions = [verdict.conclusion for verdict in fitted.verdicts_]
            assert "not invariant" not in conclusions
    assert n_undone >= 1


def test_rules_that_do_worse_than_a_constant_are_set_aside():
    """On a census table the conjunction was wrong for 34 % where always "no" is for 29 %."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 3, 3_000)
    risk = rng.random(3_000) < 0.6
    y = (rng.random(3_000) < np.where(risk, 0.3, 0.02)).astype(int)
    X = pd.DataFrame({"risk": risk})
    with pytest.warns(NothingFoundWarning, match=r"The rules found \(risk == True\) do worse"):
        fitted = ICSCMClassifier().fit(X, y, environments=site)
    assert fitted.rules_ == ()
    assert str(fitted.trace_.discarded) == "risk == True"
    assert not fitted.predict(X).any()
    assert len(fitted.verdicts_) == len(fitted.model_.leaves) == 1
    balanced = fit_quietly(ICSCMClassifier(p="balanced"), X, y, site)
    assert str(balanced.model_) == "risk == True"
    asked = fit_quietly(ICSCMClassifier(min_utility=None), X, y, site)
    assert asked.model_ == fitted.trace_.discarded


@pytest.mark.parametrize("p", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_the_gain_is_what_the_utilities_say(kind, p):
    """Over always saying what no rule contradicts, the rules gain the sum of their utilities."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (500, 5))
    y = ((X[:, 0] & X[:, 1]) ^ (rng.random(500) < 0.1)).astype(int)
    learner = ICSCMClassifier(model_type=kind, p=p, alpha=1e-9, stop="coverage", **PAPER)
    fitted = fit_quietly(learner.set_params(pruning=False), X, y, rng.integers(0, 2, 500))
    settled = int(fitted.model_.covers_when)
    n_settled, n_other = (y == settled).sum(), (y != settled).sum()
    total = sum(step.chosen.utility for step in fitted.trace_.steps)
    against_best = total - n_settled + min(n_settled, p * n_other)
    assert float(compute_gain(fitted.model_, p=p)) == pytest.approx(against_best)


def test_balanced_p_is_the_ratio_of_the_classes():
    rng = np.random.default_rng(0)
    X, site = rng.integers(0, 2, (1_000, 3)), rng.integers(0, 2, 1_000)
    y = (X[:, 0] == 1) & (rng.random(1_000) < 0.2)
    ratio = (~y).sum() / y.sum()
    for model_type, p in (("conjunction", ratio), ("disjunction", 1 / ratio)):
        options = {"model_type": model_type, "alpha": 1e-6}
        balanced = fit_quietly(ICSCMClassifier(p="balanced", **options), X, y, site)
        given = fit_quietly(ICSCMClassifier(p=p, **options), X, y, site)
        assert (balanced.model_, balanced.trace_) == (given.model_, given.trace_)


def test_the_environments_that_break_a_rule_are_named():
    """One of eight hospitals codes smoking another way round; the rule holds in the others."""
    rng = np.random.default_rng(0)
    names = np.array(list("abcdefgh"))
    site = rng.integers(0, 8, 8_000)
    smoker = rng.random(8_000) < 0.5
    y = (rng.random(8_000) < np.where(smoker, 0.8, 0.1)).astype(int)
    coded = np.where(site == 5, ~smoker, smoker)
    fitted = fit_quietly(ICSCMClassifier(), pd.DataFrame({"smoker": coded}), y, names[site])
    trace = fitted.trace_
    refused = {str(each.candidate.rule): each.candidate for each in trace.last_scan.best_rejected}
    assert trace.find_outlier_environments(refused["smoker == True"].covered) == ("f",)
    told = trace.to_frame("rejected").set_index("rule")["outlier_environments"]
    assert told["smoker == True"] == ["f"]
