"""The estimators as scikit-learn users meet them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning, NoEnvironmentsWarning, NothingFoundWarning
from icscm.model.saved import load
from icscm.model.tree import make_chain
from icscm.stats.independence import ChiSquaredTest

ESTIMATORS = [SCMClassifier(), ICSCMClassifier()]


def test_frames_keep_their_names(frame, data):
    fitted = ICSCMClassifier().fit(frame, data.y, environments=data.environments)
    assert str(fitted.model_) == "A1 > 0 and A2 > 0"
    assert fitted.features_used_ == ["A1", "A2"]
    assert fitted.feature_names_in_.tolist() == list(data.X.columns)
    np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(data.X))


def test_arrays_have_positions(data):
    fitted = ICSCMClassifier().fit(data.X.to_numpy(), data.y, environments=data.environments)
    assert str(fitted.model_) == "x0 > 0 and x1 > 0"
    assert fitted.features_used_ == [0, 1]
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize(
    "make_labels",
    [
        lambda e: np.array(["north", "south"])[e],
        lambda e: [("clinic", int(i)) for i in e],
        lambda e: pd.Series(e, index=np.arange(len(e)) + 7).map({0: "a", 1: "b"}),
        lambda e: pd.Categorical.from_codes(e, ["a", "b"]),
        lambda e: pl.Series(e),
        lambda e: e.astype(bool),
        lambda e: [0 if i == 0 else "one" for i in e],
        lambda e: np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]")[e],
    ],
    ids=["strings", "tuples", "series", "categorical", "polars", "booleans", "mixed", "dates"],
)
def test_any_hashable_environments(make_labels, data):
    labels = make_labels(data.environments)
    fitted = ICSCMClassifier().fit(data.X, data.y, environments=labels)
    assert len(fitted.environments_) == 2
    assert str(fitted.model_) == "A1 > 0 and A2 > 0"
    wanted = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    assert fitted.trace_.steps == wanted.trace_.steps


def test_labels_may_be_strings(data):
    y = np.where(data.y == 1, "ill", "healthy")
    fitted = ICSCMClassifier().fit(data.X, y, environments=data.environments)
    assert fitted.classes_.tolist() == ["healthy", "ill"]
    assert set(fitted.predict(data.X)) == {"healthy", "ill"}
    assert fitted.score(data.X, y) > 0.95
    assert "covered healthy in 0" in fitted.trace_.to_frame()


def test_a_disjunction_is_the_mirror_image():
    data = make_conjunction(10_000, 3, model_type="disjunction", random_state=1)
    learner = ICSCMClassifier(model_type="disjunction")
    fitted = learner.fit(data.X, data.y, environments=data.environments)
    assert str(fitted.model_) == "A1 > 0 or A2 > 0"
    assert fitted.model_.kind == "disjunction"
    mirrored = ICSCMClassifier().fit(1 - data.X, 1 - data.y, environments=data.environments)
    assert str(mirrored.model_) == "A1 > 0 and A2 > 0"
    np.testing.assert_array_equal(mirrored.predict(1 - data.X), 1 - fitted.predict(data.X))


def test_predict_needs_only_the_model(data, tmp_path):
    fitted = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    X = data.X.to_numpy()
    fitted.save(tmp_path / "model.json")
    rebuilt = load(tmp_path / "model.json").model
    assert rebuilt == fitted.model_
    verdict = (X[:, 0] > 0) & (X[:, 1] > 0)
    np.testing.assert_array_equal(rebuilt.predict(X), verdict)
    np.testing.assert_array_equal(fitted.predict(data.X), verdict.astype(int))


def test_probabilities_are_smoothed_leaf_frequencies(data):
    fitted = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    X = data.X.to_numpy()
    for in_leaf in (X[:, 0] == 0, (X[:, 0] == 1) & (X[:, 1] == 0), (X[:, 0] == 1) & (X[:, 1] == 1)):
        wanted = (data.y[in_leaf].sum() + 1) / (in_leaf.sum() + 2)
        np.testing.assert_allclose(fitted.predict_proba(data.X)[in_leaf, 1], wanted)
    np.testing.assert_allclose(fitted.predict_proba(data.X).sum(axis=1), 1.0)


@pytest.mark.parametrize("pruning", [True, False])
@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_leaf_counts_are_those_of_the_model(data, pruning):
    learner = ICSCMClassifier(stop="coverage", pruning=pruning)
    fitted = learner.fit(data.X, data.y, environments=data.environments)
    leaf = fitted.model_.find_leaves(data.X.to_numpy())
    for number, counts in enumerate(fitted.model_.leaves):
        for label in (0, 1):
            for environment in (0, 1):
                cell = (leaf == number) & (data.y == label) & (data.environments == environment)
                assert counts[label][environment] == cell.sum()


def test_importances_are_shares_of_what_is_settled_correctly(data):
    fitted = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    X = data.X.to_numpy()
    first = ((X[:, 0] == 0) & (data.y == 0)).sum()
    second = ((X[:, 0] == 1) & (X[:, 1] == 0) & (data.y == 0)).sum()
    wanted = np.array([first, second]) / (first + second)
    np.testing.assert_allclose(fitted.rule_importances_, wanted)


def test_equivalent_rules_settle_the_same_samples(data):
    """Same counts are not enough: the copy and the inverted copy settle the same samples, a
    shuffled column with equal counts does not."""
    X = data.X.assign(copy=data.X["A1"], inverse=1 - data.X["A1"], other=0)
    rng = np.random.default_rng(0)
    for label in (0, 1):
        for environment in (0, 1):
            cell = np.flatnonzero((data.y == label) & (data.environments == environment))
            X.loc[cell, "other"] = X.loc[rng.permutation(cell), "A1"].to_numpy()
    fitted = ICSCMClassifier().fit(X, data.y, environments=data.environments)
    assert str(fitted.rules_[0]) == "A1 > 0"
    assert [str(rule) for rule in fitted.equivalent_rules_[0]] == ["copy > 0", "inverse <= 0"]
    assert fitted.trace_.steps[0].n_tied == 4
    assert len(fitted.equivalent_rules_) == len(fitted.rules_)


class TwiceAsStrict:
    """A user's own test."""

    def compute_p_values(self, tables):
        return ChiSquaredTest().compute_p_values(tables) / 2


def test_own_test(data):
    own = ICSCMClassifier(test=TwiceAsStrict(), alpha=0.05)
    own.fit(data.X, data.y, environments=data.environments)
    named = ICSCMClassifier(alpha=0.1, pruning=False)
    named.fit(data.X, data.y, environments=data.environments)
    assert own.trace_.steps[0].chosen.rule == named.trace_.steps[0].chosen.rule
    assert own.trace_.steps[0].chosen.p_value == named.trace_.steps[0].chosen.p_value / 2


def test_more_than_255_bins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 1] > 0.123) ^ (rng.random(2000) < 0.05)
    environments = rng.integers(0, 2, 2000)
    cuts = {}
    for max_thresholds in (50, 255, 256, 1000, None):
        learner = ICSCMClassifier(max_thresholds=max_thresholds, max_rules=1)
        rule = learner.fit(X, y, environments=environments).rules_[0]
        assert rule.column == 1
        assert rule.threshold in X[:, 1]
        cuts[max_thresholds] = abs(rule.threshold - 0.123)
    assert cuts[None] <= cuts[50]


def test_nothing_found():
    """With the child alone every rule is rejected; the trace has the reasons."""
    data = make_conjunction(5000, 0, random_state=0)
    X = data.X[["C1"]]
    with pytest.warns(NothingFoundWarning, match="no acceptable candidate rule was left"):
        fitted = ICSCMClassifier(alpha=0.5).fit(X, data.y, environments=data.environments)
    assert fitted.model_ == make_chain("conjunction", (), fitted.model_.leaves)
    assert (
        str(fitted.model_)
        == "no rule holds in every environment and does better than always negative"
    )
    assert not fitted.predict(X).any()
    assert fitted.rule_importances_.tolist() == []
    assert fitted.equivalent_rules_ == fitted.features_used_ == []
    refused = fitted.trace_.last_scan.best_rejected
    assert refused
    assert {refusal.reason for refusal in refused} == {"dependent"}
    nearest = [refusal.candidate.p_value for refusal in fitted.trace_.nearest]
    assert nearest == sorted(nearest, reverse=True)
    assert len(fitted.trace_.to_frame("rejected")) == len(refused)
    with pytest.warns(NothingFoundWarning, match="always positive"):
        either = ICSCMClassifier(alpha=0.5, model_type="disjunction").fit(
            X, 1 - data.y, environments=data.environments
        )
    assert either.predict(X).all()


def test_no_environments(data):
    with pytest.warns(NoEnvironmentsWarning, match="nothing can be tested"):
        fitted = ICSCMClassifier().fit(data.X, data.y)
    assert fitted.environments_ is None
    plain = SCMClassifier().fit(data.X, data.y)
    assert fitted.model_ == plain.model_
    assert fitted.trace_ == plain.trace_
    assert "p_value" not in fitted.trace_.to_frame()


def test_environments_do_not_change_the_plain_learner(data):
    without = SCMClassifier().fit(data.X, data.y)
    with_them = SCMClassifier().fit(data.X, data.y, environments=data.environments)
    assert str(with_them.model_) == str(without.model_)
    assert with_them.trace_.environments == (0, 1)


@pytest.mark.parametrize("learner", ESTIMATORS, ids=repr)
def test_fit_changes_no_parameter(learner, data):
    own_test = ChiSquaredTest()
    learner = clone(learner)
    if "test" in learner.get_params():
        learner.set_params(test=own_test)
    before = dict(learner.get_params())
    learner.fit(data.X, data.y, environments=data.environments)
    after = learner.get_params()
    assert all(after[name] is before[name] for name in before)


def test_clone_keeps_every_parameter():
    changed = {
        "p": 2.0,
        "model_type": "disjunction",
        "max_rules": 3,
        "max_thresholds": None,
        "n_jobs": 1,
        "alpha": 0.01,
        "test": "fisher",
        "stop": "coverage",
        "pruning": False,
        "min_replication": 0.5,
        "min_utility": None,
        "search": "exhaustive",
        "margin": 0.1,
        "device": "auto",
    }
    learner = ICSCMClassifier(**changed)
    assert set(changed) == set(learner.get_params())
    assert clone(learner).get_params() == changed


@pytest.mark.parametrize("with_routing", [True, False])
def test_model_selection(data, with_routing):
    """The environments reach every inner fit, whether metadata routing is on or off."""
    learner = ICSCMClassifier()
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", IcscmWarning)
        if with_routing:
            learner.set_fit_request(environments=True)
        parameters = {"environments": data.environments}
        scores = cross_validate(learner, data.X, data.y, cv=3, params=parameters)
        assert (scores["test_score"] > 0.95).all()
        search = GridSearchCV(learner, {"p": [0.5, 1.0]}, cv=3)
        search.fit(data.X, data.y, environments=data.environments)
        assert search.best_estimator_.features_used_ == ["A1", "A2"]


@pytest.mark.parametrize("with_routing", [True, False])
def test_pipeline(data, with_routing):
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", IcscmWarning)
        learner = ICSCMClassifier()
        name = "icscmclassifier__environments"
        if with_routing:
            learner.set_fit_request(environments=True)
            name = "environments"
        pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), learner)
        pipeline.fit(data.X, data.y, **{name: data.environments})
        assert pipeline[-1].features_used_ == ["A1", "A2"]
        search = GridSearchCV(pipeline, {"icscmclassifier__alpha": [0.01, 0.05]}, cv=3)
        search.fit(data.X, data.y, **{name: data.environments})
        assert search.best_score_ > 0.95


def test_folds_by_group_still_work(data):
    """Environments are no groups: any splitter may be used beside them."""
    groups = np.arange(len(data.y)) % 7
    search = GridSearchCV(ICSCMClassifier(), {"alpha": [0.01, 0.05]}, cv=GroupKFold(3))
    search.fit(data.X, data.y, groups=groups, environments=data.environments)
    assert search.best_score_ > 0.95


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
def test_order_of_rows_and_number_of_threads_do_not_matter(model_type):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=(20_000, 8)), rng.integers(0, 3, size=(20_000, 60))))
    y = ((X[:, 0] > 0.3) & (X[:, 8] > 0)) ^ (rng.random(20_000) < 0.1)
    environments = rng.integers(0, 3, 20_000)
    learner = ICSCMClassifier(model_type=model_type, stop="coverage", n_jobs=1)
    wanted = learner.fit(X, y, environments=environments)
    for n_jobs in (2, 8):
        order = rng.permutation(len(X))
        other = ICSCMClassifier(model_type=model_type, stop="coverage", n_jobs=n_jobs)
        other.fit(X[order], y[order], environments=environments[order])
        assert other.model_ == wanted.model_
        assert other.trace_ == wanted.trace_


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.bool_, object, np.float16])
def test_dtypes_give_the_same_model(data, dtype):
    wanted = ICSCMClassifier().fit(data.X.to_numpy(float), data.y, environments=data.environments)
    X = data.X.to_numpy().astype(dtype)
    fitted = ICSCMClassifier().fit(X, data.y, environments=data.environments)
    words = str(wanted.model_).replace(" > 0", " present") if dtype is np.bool_ else wanted.model_
    assert str(fitted.model_) == str(words)
    np.testing.assert_array_equal(fitted.predict(X), wanted.predict(data.X.to_numpy(float)))
    for layout in (np.asfortranarray(X), X[::-1][::-1]):
        again = ICSCMClassifier().fit(layout, data.y, environments=data.environments)
        assert again.trace_ == fitted.trace_


def test_huge_integers_are_compared_exactly():
    """Neighbouring integers beyond 2**53 are one number as float64."""
    big = 2**60
    X = np.array([[big], [big + 1]] * 20)
    y = np.array([0, 1] * 20)
    fitted = SCMClassifier().fit(X, y)
    assert str(fitted.model_) == f"x0 > {big}"
    assert fitted.score(X, y) == 1.0
