"""The shape of a rule set, chosen where samples are held out."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.search import shape as shapes
from icscm.sources import open_memory
from paper.mechanisms import make_rifampicin
from support.fitting import fit_quietly


def test_resistance_by_several_mutations_is_a_disjunction():
    """The rule for rifampicin was katG S315T, a marker of another drug: resistance is a disjunction
    of mutations, and the default a conjunction."""
    X, y, country, _ = make_rifampicin()
    conjunction = fit_quietly(ICSCMClassifier(), X, y, country)
    assert conjunction.features_used_[0] == "katG_S315T"
    found = fit_quietly(ICSCMClassifier(model_type="auto"), X, y, country)
    assert found.model_.kind == found.shape_.chosen == "disjunction"
    assert found.shape_.held_out == "environments"
    assert set(found.features_used_) >= {f"mechanism_rpoB_{k}" for k in range(6)}
    assert found.shape_.scores["disjunction"] > found.shape_.scores["conjunction"] + 0.05
    named = fit_quietly(ICSCMClassifier(model_type="disjunction"), X, y, country)
    assert (named.model_, named.trace_) == (found.model_, found.trace_)


@pytest.mark.parametrize("n_environments", [2, 7])
@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_the_shape_of_the_simulation_is_found(kind, n_environments):
    data = make_conjunction(1_000, model_type=kind, n_environments=n_environments, random_state=3)
    learner = ICSCMClassifier(model_type="auto")
    found = fit_quietly(learner, data.X, data.y, data.environments)
    assert found.shape_.chosen == found.model_.kind == kind
    assert ("tree" in found.shape_.scores) == (n_environments > 2)
    assert found.shape_.held_out == ("rows" if n_environments == 2 else "environments")


def test_scores_are_those_of_models_learned_without_an_environment():
    """As by hand: for each environment the learner is fitted on the others."""
    data = make_conjunction(600, n_environments=4, random_state=5)
    found = fit_quietly(SCMClassifier(model_type="auto"), data.X, data.y, data.environments)
    X, y, environments = map(np.asarray, (data.X, data.y, data.environments))
    for kind in ("conjunction", "disjunction"):
        scores, weights = [], []
        for e in np.unique(environments):
            out = environments == e
            other = SCMClassifier(model_type=kind)
            other = fit_quietly(other, X[~out], y[~out], environments[~out])
            scores.append(roc_auc_score(y[out], other.predict_proba(X[out])[:, 1]))
            weights.append(y[out].sum() * (1 - y[out]).sum() / out.sum())
        assert found.shape_.scores[kind] == pytest.approx(np.average(scores, weights=weights))


def test_a_shape_needs_rows_that_can_be_held_out():
    countable = SimpleNamespace(source=SimpleNamespace(rows=None))
    with pytest.raises(IcscmError, match="model_type='auto' holds out rows"):
        ICSCMClassifier(model_type="auto")._make_settings(countable)


def test_the_steps_of_a_scan():
    """A cell is one step; each number that is counted, of a bin and environment, is more."""
    data = make_conjunction(600, 0, n_environments=4, random_state=5)
    X = np.asarray(data.X)
    samples = open_memory(X, data.y, environments=data.environments)
    n_bins = sum(len(np.unique(column)) for column in X.T)
    assert shapes.count_steps(samples, len(X)) == X.size + 20 * 4 * n_bins
    assert shapes.count_steps(samples, len(X), n_steps_of_number=0) == X.size


def test_trees_are_not_grown_for_many_environments(monkeypatch):
    """2,000 rows, 200 columns, 500 environments took over five minutes: the limit on trees, 20
    subsamples and validation counted the cells of the table only, and the time is in the counts."""
    data = make_conjunction(600, 0, n_environments=4, random_state=5)
    samples = open_memory(data.X, data.y, environments=data.environments)
    found = {}
    n_steps = shapes.count_steps(samples, len(data.y))
    for most in (n_steps, n_steps - 1):
        monkeypatch.setattr(shapes, "MAX_TREE_STEPS", most)
        again = replace(samples, source=samples.source)
        found[most] = SCMClassifier(model_type="auto").fit_counts(again).shape_.scores
    assert [*map(len, found.values())] == [3, 2]


def test_shapes_are_compared_once_and_without_trees_in_folds(monkeypatch):
    """`fit_counts` compared all shapes twice, and every fold and subsample grew trees, of which
    only the report of a fit says anything."""
    seen = []

    def note(countable, chains):
        seen.append(countable.is_part)
        return shapes.choose_shape(countable, chains)

    monkeypatch.setattr("icscm.estimators.cover.choose_shape", note)
    data = make_conjunction(600, 0, n_environments=4, random_state=5)
    learner = SCMClassifier(model_type="auto")
    learner.fit_counts(open_memory(data.X, data.y, environments=data.environments))
    assert seen == [False]
    assert "tree" in learner.shape_.scores
    leave_one_environment_out(learner, data.X, data.y, environments=data.environments)
    assert seen == [False] + 4 * [True]
    part = replace(open_memory(data.X, data.y, environments=data.environments), is_part=True)
    assert "tree" not in learner.fit_counts(part).shape_.scores


def test_a_tree_is_preferred_only_where_it_is_better():
    scores = {"conjunction": 0.8, "disjunction": 0.805, "tree": 0.809}
    found = shapes.ShapeChoice(scores, "environments")
    assert found.chosen == "conjunction"
    assert not found.prefers_tree
    assert shapes.ShapeChoice({**scores, "tree": 0.9}, "environments").prefers_tree
    assert shapes.ShapeChoice({**scores, "disjunction": 0.9}, "rows").chosen == "disjunction"
