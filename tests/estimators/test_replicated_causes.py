"""Replication is judged where there is power, by one definition for every learner."""

import warnings

import pytest
from sklearn.linear_model import LogisticRegression

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantTreeClassifier,
)
from icscm.exceptions import FewEnvironmentsWarning
from paper.mechanisms import make_coli, make_gonorrhoea

LEARNERS = {
    "rule": ICSCMClassifier(model_type="disjunction"),
    "exhaustive": ICSCMClassifier(model_type="disjunction", search="exhaustive"),
    "tree": InvariantTreeClassifier(),
    "forest": InvariantForestClassifier(n_estimators=5, max_features=1.0, random_state=0),
    "selector": InvariantFeatureSelector(LogisticRegression(), cv=2, random_state=0),
}


def fit(learner, X, y, place):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner.fit(X, y, environments=place)


def check_first(fitted):
    """The mechanism is the first rule, the first split of every tree, or a column kept."""
    if isinstance(fitted, InvariantFeatureSelector):
        assert "mechanism" in fitted.kept_
    elif isinstance(fitted, InvariantForestClassifier):
        assert {tree.splits[0].rule.feature for tree in fitted.model_.trees} == {"mechanism"}
    else:
        assert fitted.model_.splits[0].rule.feature == "mechanism"


@pytest.mark.parametrize("name", LEARNERS)
def test_continents_without_cases_do_not_count_against_a_mutation(name):
    """A 23S mutation explained resistance in gonorrhoea with an error of 5.5 % and no
    heterogeneity. Tree and forest rejected it as "in too few environments", since three of
    five continents had no cases, and found nothing: AUC .500 instead of .955. The carriers, which
    a rule covers, lie in two continents, nearly all in one."""
    data = make_gonorrhoea()[:3]
    fitted = fit(LEARNERS[name], *data)
    check_first(fitted)
    if name == "rule":
        assert fitted.trace_.steps[0].chosen.replication > 0.5


@pytest.mark.parametrize("name", LEARNERS)
def test_years_that_had_every_chance_count_against_an_artefact(name):
    """In E. coli by year `aac(3)-II` was rejected, and artefacts of sequencing in one year were
    the most informative columns of all: cases of the other years, which could have shown their
    effect, have none of them."""
    X, y, year, _ = make_coli()
    best = InvariantTreeClassifier(tolerance=None).fit(X, y, environments=year).model_
    assert best.splits[0].rule.feature == "artefact"
    fitted = fit(LEARNERS[name], X, y, year)
    check_first(fitted)
    if name == "selector":
        row = fitted.screen_.set_index("column").loc["artefact"]
        assert row["verdict"] == "rejected"
        assert row["reason"] == "determines the environment"
        return
    assert "artefact" not in fitted.features_used_
    if name == "exhaustive":
        return
    assert fitted.rejected_[0] == "artefact"
    first = fitted.trace_.to_frame("columns").iloc[0]
    assert (first["feature"], first["reason"]) == ("artefact", "determines the environment")
    told = fitted.report().summary
    assert told["nodes"]["rejected_columns"][0]["feature"] == "artefact"
    facts = dict(told["headline"]["facts"])
    assert facts["Rejected"].endswith("artefact, since it determines the environment")


@pytest.mark.parametrize("name", LEARNERS)
def test_one_continent_with_all_cases_is_named_and_nothing_is_rejected(name):
    """With one continent left out a single one informs. Nothing can be told of replication then;
    the mutation was rejected instead (AUC .50, a plain tree has .98)."""
    data = make_gonorrhoea()[:3]
    X, y, place = (each[data[2] != "America"] for each in data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = LEARNERS[name].fit(X, y, environments=place)
    lone = [each for each in caught if issubclass(each.category, FewEnvironmentsWarning)]
    (text,) = [str(each.message) for each in lone if "nearly all information" in str(each.message)]
    assert text.startswith("One environment (Europe) has nearly all information on the label")
    assert "add cases from others" in text
    check_first(fitted)
    if name == "selector":
        assert fitted.screen_["verdict"].eq("cannot tell").all()
        return
    assert fitted.trace_.lone_environment == "Europe"
    if name != "forest":
        assert all(step.chosen.replication is None for step in fitted.trace_.steps)
    report = fitted.report().summary
    assert text in report["advice"]["warnings"]
