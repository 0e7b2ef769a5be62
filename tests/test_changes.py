"""Calls that version 0.3 understood get one sentence that says what to write instead."""

import importlib
import inspect

import pytest
from sklearn.base import clone

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


@pytest.mark.parametrize(
    ("learner", "option", "told"),
    [
        (icscm.ICSCMClassifier, "criterion", "margin=0.05 requires equivalence"),
        (icscm.ICSCMClassifier, "correction", "a smaller alpha"),
        (icscm.SCMClassifier, "feature_weights", "drop the columns"),
        (icscm.InvariantForestClassifier, "resample", "each tree is grown on some of the rows"),
        (icscm.InvariantFeatureSelector, "min_replication", "columns that determine the environ"),
        (icscm.InvariantScoreClassifier, "min_replication", "columns that determine the environ"),
        (icscm.InvariantTreeClassifier, "missing", "missing values are candidates"),
    ],
)
def test_options_that_went(learner, option, told):
    assert option not in inspect.signature(learner).parameters
    with pytest.raises(TypeError, match=f"{learner.__name__} has no parameter {option}: {told}"):
        learner(**{option: None})


def test_rows_that_count_several_times_are_repeated():
    with pytest.raises(TypeError, match="fit has no argument frequency_weight: repeat the rows"):
        icscm.ICSCMClassifier().fit(DATA.X, DATA.y, frequency_weight=[1] * len(DATA.y))


def test_learners_are_cloned_as_before():
    learner = icscm.ICSCMClassifier(margin=0.1)
    assert clone(learner).get_params() == learner.get_params()
    assert len(inspect.signature(icscm.ICSCMClassifier).parameters) == len(learner.get_params())


@pytest.mark.parametrize(("name", "home"), [("Tree", "model"), ("choose_threshold", "validation")])
def test_names_that_moved(name, home):
    message = f"icscm has no {name} any more: it is in icscm.{home}"
    with pytest.raises(AttributeError, match=message):
        getattr(icscm, name)
    assert not hasattr(icscm, name)
    assert getattr(importlib.import_module(f"icscm.{home}"), name) is not None


def test_the_names_at_the_top_fit_in_the_head():
    names = [name for name in icscm.__all__ if not name.startswith("__")]
    assert len(names) <= 18
