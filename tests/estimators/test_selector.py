"""The screen of columns for any learner."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from icscm import InvariantFeatureSelector
from icscm.estimators.learners import LevelEncoder, TableClassifier, make_estimator
from icscm.exceptions import (
    FewEnvironmentsWarning,
    IcscmError,
    NoEnvironmentsWarning,
    NotInvariantWarning,
    TooLittleDataWarning,
)

LOGISTIC = TableClassifier("logistic")
thorough = pytest.mark.thorough


def make_data(seed=0, n=600, n_sites=4, kind="shortcut"):
    """age and smoker cause the label; the code copies it, less and less from site to site."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, n_sites, n)
    age, noise = rng.normal(size=n), rng.normal(size=n)
    smoker = rng.random(n) < np.linspace(0.2, 0.6, n_sites)[site]
    y = (rng.random(n) < expit(1.4 * age + 1.2 * smoker - 0.8)).astype(int)
    agreement = np.linspace(0.97, 0.55, n_sites)[site]
    code = np.where(rng.random(n) < agreement, y, 1 - y)
    X = pd.DataFrame({"age": age, "smoker": np.where(smoker, "yes", "no"), "noise": noise})
    if kind == "shortcut":
        X["code"] = code
    return X, y, site


def fit(X, y, site, estimator=LOGISTIC, cv=2, **parameters):
    selector = InvariantFeatureSelector(estimator, cv=cv, random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selector.fit(X, y, environments=site)


@pytest.fixture(scope="module")
def screened():
    """A selector that must not be changed, with its data."""
    X, y, site = make_data()
    return fit(X, y, site), X, y, site


def test_a_fading_shortcut_is_rejected_and_causes_stay(screened):
    selector = screened[0]
    assert selector.kept_ == ["age", "smoker", "noise"]
    assert selector.rejected_ == ["code"]
    assert selector.get_support().tolist() == [True, True, True, False]
    assert list(selector.get_feature_names_out()) == selector.kept_
    row = selector.screen_.set_index("column").loc["code"]
    assert row["verdict"] == "rejected"
    assert row["share"] > 0.01
    assert row["p_value"] < 0.05
    assert (row["lowest_environment"], row["highest_environment"]) == (3, 0)
    assert row["lowest_effect"] < row["highest_effect"]
    assert row["round"] == 1


def test_without_a_shortcut_nothing_is_rejected():
    X, y, site = make_data(kind="clean")
    assert fit(X, y, site).rejected_ == []


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(None, id="boosting", marks=thorough),
        pytest.param(make_pipeline(StandardScaler(), LinearSVC()), id="decision function only"),
        pytest.param(
            RandomForestClassifier(30, min_samples_leaf=10, random_state=0),
            id="forest",
            marks=thorough,
        ),
    ],
)
def test_any_learner(estimator):
    X, y, site = make_data()
    X = X.assign(smoker=(X["smoker"] == "yes").astype(float))
    selector = fit(X, y, site, estimator)
    assert selector.rejected_ == ["code"]
    assert selector.score(X, y) > 0.6
    assert hasattr(selector, "predict_proba") == hasattr(selector.estimator_, "predict_proba")


def test_predictions_are_those_of_the_learner_on_the_columns_kept(screened):
    selector, X, y, _ = screened
    alone = clone(LOGISTIC).fit(X[selector.kept_], y)
    assert np.array_equal(selector.predict_proba(X), alone.predict_proba(X[selector.kept_]))
    # rejected columns may be absent, and the environment is never used
    assert np.array_equal(selector.predict(X[selector.kept_]), selector.predict(X))
    with pytest.raises(IcscmError, match="X lacks columns that the selector kept: 'age'"):
        selector.predict(X.drop(columns="age"))


def make_interaction(kind, seed, n_sites=8, n=300, with_shortcut=False):
    """The paper's own setting: causes whose rates differ by site, and act together only."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(n_sites), n)
    rates = rng.uniform(0.2, 0.8, (6, n_sites))
    X = (rng.random((len(site), 6)) < rates[:, site].T).astype(float)
    acts = X[:, 0] * X[:, 1] if kind == "and" else np.where(X[:, 0] > 0, X[:, 1], X[:, 2])
    y = (rng.random(len(site)) < expit(2.2 * acts - 1.5 + rng.normal(0, 0.3, n_sites)[site])) * 1
    if with_shortcut:
        code = np.where(rng.random(len(y)) < np.linspace(0.95, 0.6, n_sites)[site], y, 1 - y)
        X = np.column_stack((X, code))
    return X, y, site


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("if", 200),
        pytest.param("and", 800, marks=thorough),
        pytest.param("if", 800, marks=thorough),
    ],
)
@pytest.mark.parametrize("with_shortcut", [True, pytest.param(False, marks=thorough)])
def test_interacting_causes_stay(kind, n, with_shortcut):
    """Judged by themselves they look heterogeneous: the effect of x1 depends on x0's rate."""
    X, y, site = make_interaction(kind, seed=4, n=n, with_shortcut=with_shortcut)
    expected = [6] if with_shortcut else []
    assert fit(X, y, site, None).rejected_ == expected


def test_two_columns_whose_difference_is_a_shortcut():
    """Each time alone is weak: what the model makes of it was compared alone, and both stayed."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(6), 150)
    cause = rng.normal(size=len(site))
    y = (rng.random(len(site)) < expit(cause)).astype(int)
    strength = np.linspace(1.0, 0.0, 6)[site]
    centre, lag = 3.0 * rng.normal(size=len(site)), rng.normal(size=len(site))
    lag += 1.2 * strength * (2 * y - 1)
    X = np.column_stack((cause, centre - lag / 2, centre + lag / 2))
    selector = fit(X, y, site)
    assert selector.rejected_ in ([1], [2], [1, 2], [2, 1])  # the other time alone is weak
    assert selector.screen_["question"][selector.rejected_[0]] == "contribution"


def test_a_learner_of_the_wrong_form_does_not_reject_causes():
    """Logistic regression misses `x0 and x1`; its residuals alone would reject both."""
    X, y, site = make_interaction("and", seed=5)
    assert fit(X, y, site, LogisticRegression()).rejected_ == []


@thorough
def test_a_shortcut_behind_a_column_that_identifies_sites_is_rejected():
    """A flexible learner learns its effect at each site, and leaves no residual to judge by."""
    X, y, site = make_data(n=4000)
    X = X.assign(lab=np.where(site < 2, np.nan, 1.0) + (site % 2) * 3.0)
    X = X.assign(ward=site * 1.0)
    selector = fit(X, y, site, None)
    assert "code" in selector.rejected_
    assert "age" in selector.kept_


def test_copies_of_a_rejected_column_are_found_and_named():
    X, y, site = make_data()
    X = X.assign(again=X["code"] * 10.0 + 3)
    selector = fit(X, y, site)
    assert set(selector.rejected_) == {"code", "again"}
    second = selector.screen_.set_index("column").loc[selector.rejected_[1]]
    assert second["reason"] == f"carries the same as {selector.rejected_[0]}, which was rejected"


def test_a_column_of_one_site_is_not_replicated():
    X, y, site = make_data(kind="clean")
    rng = np.random.default_rng(1)
    X = X.assign(artefact=np.where(site == 0, np.where(rng.random(len(y)) < 0.9, y, 1 - y), 0))
    selector = fit(X, y, site)
    assert selector.rejected_ == ["artefact"]
    row = selector.screen_.set_index("column").loc["artefact"]
    assert row["reason"] == "informative in too few environments"
    assert row["replication"] < 0.15
    # rejected before the first round: the report said "nothing was rejected"
    assert selector.report().to_dict()["costs"][0]["without"] == "artefact"
    assert "nothing was rejected" not in selector.report().to_html()
    assert fit(X, y, site, min_replication=0).screen_["reason"].tolist()[3] != row["reason"]


def test_little_data_cannot_tell():
    X, y, site = make_data(n=120, kind="clean")
    selector = InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0)
    said = r"^No column has a verdict \(too little data\): all 3 are kept\.$"
    with pytest.warns(TooLittleDataWarning, match=said):
        selector.fit(X, y, environments=site)
    assert set(selector.screen_["verdict"]) == {"cannot tell"}


def test_the_tolerance_decides(screened):
    selector, *table = screened
    share = selector.screen_.set_index("column").loc["code", "share"]
    assert fit(*table, tolerance=share * 1.01).rejected_ == []


def test_cost_at_the_training_sites_is_shown(screened):
    rounds = screened[0].rounds_
    assert rounds["n_columns"].tolist() == [4, 3]
    assert rounds["rejected"].tolist()[0] == "code"
    assert rounds["auc"].iloc[0] > rounds["auc"].iloc[1] > 0.7


def test_groups_are_never_in_two_folds():
    X, y, site = make_data(n=300)
    patient = np.arange(300) // 3
    seen = []

    class Spy(TableClassifier):
        def fit(self, X, y):
            seen.append(set(X["patient"]))
            return super().fit(X.drop(columns="patient"), y)

        def predict_proba(self, X):
            return super().predict_proba(X.drop(columns="patient"))

    selector = InvariantFeatureSelector(Spy("logistic"), cv=3, random_state=0, tolerance=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(X.assign(patient=patient), y, environments=site, groups=patient)
    # each of 100 patients is left out by exactly one of three folds, with all visits
    assert sum(len(each) for each in seen[:3]) == 2 * 100


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=thorough)])
def test_the_result_depends_on_the_seed_only(screened, backend):
    selector, *table = screened
    with parallel_config(backend):
        pd.testing.assert_frame_equal(selector.screen_, fit(*table, n_jobs=2).screen_)


def test_environments_may_be_a_column_and_have_any_names(screened):
    """The column is no feature then, and names change nothing but names."""
    selector, X, y, site = screened
    letters = np.array(["d", "c", "b", "a"])[site]
    named = fit(X.assign(site=letters), y, "site")
    assert named.environments_ == ("a", "b", "c", "d")
    assert named.rejected_ == selector.rejected_
    assert named.screen_["column"].tolist() == selector.screen_["column"].tolist()
    # other rows are drawn, since environments come in another order
    assert np.allclose(named.screen_["share"], selector.screen_["share"], atol=0.05)


def test_frames_of_other_kinds_give_the_same(screened):
    polars = pytest.importorskip("polars")
    expected, X, y, site = screened
    frame = polars.from_pandas(X)
    selector = fit(frame, y, site)
    assert selector.rejected_ == expected.rejected_
    assert selector.transform(frame).columns == selector.kept_
    assert isinstance(selector.set_output(transform="pandas").transform(X), pd.DataFrame)


@pytest.fixture
def pipeline():
    """A screen between an encoder and a learner, with scikit-learn's routing of metadata."""
    encode = make_column_transformer(
        (OneHotEncoder(drop="if_binary"), make_column_selector(dtype_exclude="number")),
        remainder="passthrough",
    )
    with config_context(enable_metadata_routing=True):
        screen = InvariantFeatureSelector(LogisticRegression(), cv=2, random_state=0)
        screen.set_fit_request(environments=True, groups=True)
        yield make_pipeline(encode, screen, LogisticRegression())


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_cross_validation_of_a_pipeline(pipeline):
    """Environments and groups are routed as scikit-learn routes metadata."""
    X, y, site = make_data(n=400)
    routed = {"environments": site, "groups": site}
    scores = cross_validate(
        pipeline, X, y, cv=GroupKFold(2), params=routed, error_score="raise", return_estimator=True
    )
    assert scores["test_score"].shape == (2,)
    for fitted in scores["estimator"]:
        assert len(fitted[1].environments_) == 2


@thorough
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_grid_search_of_a_pipeline(pipeline):
    X, y, site = make_data(n=900)
    parameters = {"invariantfeatureselector__tolerance": [0.01, 100.0]}
    search = GridSearchCV(pipeline, parameters, cv=2, error_score="raise")
    search.fit(X, y, environments=site, groups=np.arange(len(y)) // 2)
    assert search.best_params_["invariantfeatureselector__tolerance"] == 100.0  # same sites


@pytest.mark.parametrize(
    "name", [pytest.param("lightgbm:LGBMClassifier", marks=thorough), "xgboost:XGBClassifier"]
)
def test_learners_of_other_packages(name):
    X, y, site = make_data(n=600)
    learner = make_estimator(name)
    # threads of LightGBM spin while they wait: on busy cores a fit takes 10 s of CPU, not 0.1
    learner[-1].set_params(n_estimators=40, n_jobs=1)
    assert fit(X, y, site, learner).rejected_ == ["code"]


def test_errors_and_warnings_are_sentences():
    X, y, site = make_data(n=300)
    with pytest.warns(NoEnvironmentsWarning, match="no column can be rejected"):
        alone = InvariantFeatureSelector(LOGISTIC).fit(X, y)
    assert alone.get_support().all()
    with pytest.raises(IcscmError, match="single environment"):
        InvariantFeatureSelector(LOGISTIC).fit(X, y, environments=np.zeros(300))
    with pytest.raises(IcscmError, match="tolerance must be a finite number"):
        InvariantFeatureSelector(tolerance=-1).fit(X, y, environments=site)
    with pytest.raises(IcscmError, match="'nothing' is not an estimator"):
        make_estimator("nothing")
    with pytest.raises(IcscmError, match="two groups; got 1"):
        InvariantFeatureSelector(LOGISTIC).fit(X, y, environments=site, groups=np.zeros(300))
    with pytest.raises(IcscmError, match="cannot be imported"):
        make_estimator("nothing:Here")
    X, y, site = make_data(n=1600)
    with pytest.warns(FewEnvironmentsWarning, match="a shortcut that both share is not rejected"):
        InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0).fit(X, y, environments=site % 2)
    with pytest.warns(NotInvariantWarning, match="Every column was rejected"):
        all_bad = InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0).fit(
            X[["code"]], y, environments=site
        )
    assert np.allclose(all_bad.predict_proba(X)[:, 1], y.mean())


def test_levels_are_numbered_as_by_scikit_learn():
    """Numbers of levels were made by `OrdinalEncoder`, twice, for most of the time of a screen."""
    rng = np.random.default_rng(0)
    levels = np.array([f"l{k}" for k in range(300)])
    rare = pd.Categorical(levels[rng.integers(0, 300, 4_000) ** 2 // 300])
    text = pd.Series(rng.choice(["b", "a", "c"], 4_000), dtype=object).replace("c", np.nan)
    X = pd.DataFrame({"x": rng.normal(size=4_000), "rare": rare, "text": text})
    coder = OrdinalEncoder(
        max_categories=250,
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
    )
    wanted = coder.fit(X[:2_000][["rare", "text"]]).transform(X[["rare", "text"]])
    encoder = LevelEncoder(np.array([False, True, True])).fit(X[:2_000])
    np.testing.assert_array_equal(encoder.transform(X), np.c_[wanted, X["x"]])
    boosting = HistGradientBoostingClassifier(
        max_iter=80, categorical_features=[0, 1], early_stopping=False, random_state=0
    )
    labels = np.random.default_rng(1).random(2_000) < 0.5
    boosting.fit(np.c_[wanted, X["x"]][:2_000], labels)
    learner = TableClassifier("hgb", 0).fit(X[:2_000], labels)
    expected = boosting.predict_proba(np.c_[wanted, X["x"]])
    np.testing.assert_array_equal(learner.predict_proba(X), expected)
