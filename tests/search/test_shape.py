"""The shape of a rule set, chosen where samples are held out."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.search import shape as shapes
from literal import fit_quietly
from paper.mechanisms import make_rifampicin


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
    class Counted:
        def __getattr__(self, name):
            raise AttributeError(name)

    countable = type("Countable", (), {"source": Counted()})()
    with pytest.raises(IcscmError, match="model_type='auto' holds out rows"):
        ICSCMClassifier(model_type="auto")._choose_shape(countable)


def test_a_tree_is_preferred_only_where_it_is_better():
    scores = {"conjunction": 0.8, "disjunction": 0.805, "tree": 0.809}
    found = shapes.ShapeChoice(scores, "environments")
    assert found.chosen == "conjunction"
    assert not found.prefers_tree
    assert shapes.ShapeChoice({**scores, "tree": 0.9}, "environments").prefers_tree
    assert shapes.ShapeChoice({**scores, "disjunction": 0.9}, "rows").chosen == "disjunction"
