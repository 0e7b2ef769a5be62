"""Calls that version 0.3 understood get one sentence that says what to write instead."""

import inspect

import pytest

import icscm
from icscm.datasets import make_conjunction
from icscm.sources import open_memory

DATA = make_conjunction(200, 0, n_environments=3, random_state=1)


@pytest.mark.parametrize(
    "learner",
    [
        icscm.ICSCMClassifier(),
        icscm.InvariantTreeClassifier(),
        icscm.InvariantFeatureSelector(),
        icscm.InvariantCausalPrediction(),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_environments_by_position(learner):
    """Groups were taken for weights by some learners, and weights for groups by others."""
    with pytest.raises(TypeError, match=r"fit takes X, y by position .*: pass environments=\.\.\."):
        learner.fit(DATA.X, DATA.y, DATA.environments)


@pytest.mark.parametrize("study", [icscm.check_environments, icscm.compare, open_memory])
def test_environments_of_studies_by_position(study):
    with pytest.raises(TypeError, match=r"takes X, y by position .*: pass environments=\.\.\."):
        study(DATA.X, DATA.y, DATA.environments)


def test_signatures_show_present_arguments_only():
    parameters = inspect.signature(icscm.ICSCMClassifier.fit).parameters
    assert [*parameters][:6] == ["self", "X", "y", "environments", "groups", "sample_weight"]
    assert parameters["environments"].kind is inspect.Parameter.KEYWORD_ONLY
