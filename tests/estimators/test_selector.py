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
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from icscm import InvariantFeatureSelector
from icscm.estimators import selector as selector_module
from icscm.estimators.learners import LevelEncoder, TableClassifier, TableRegressor, make_estimator
from icscm.exceptions import (
    FewEnvironmentsWarning,
    IcscmError,
    NoEnvironmentsWarning,
    NotInvariantWarning,
    TooLittleDataWarning,
)
from icscm.screening import measuring, rounds
from icscm.tables.weights import make_relative

LOGISTIC = TableClassifier("logistic")
thorough = pytest.mark.thorough


def make_data(seed=0, n=600, n_sites=4, *, outcome="two", with_shortcut=True):
    """age and smoker cause the outcome; the code follows it, less and less from site to site."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, n_sites, n)
    age, noise = rng.normal(size=n), rng.normal(size=n)
    smoker = rng.random(n) < np.linspace(0.2, 0.6, n_sites)[site]
    score = 1.4 * age + 1.2 * smoker - 0.8
    X = pd.DataFrame({"age": age, "smoker": np.where(smoker, "yes", "no"), "noise": noise})
    if outcome == "number":
        y = score + rng.normal(size=n)
        code = np.linspace(1.0, 0.0, n_sites)[site] * y + 1.5 * rng.normal(size=n)
    else:
        n_classes = {"two": 2, "three": 3}[outcome]
        y = (rng.random(n) < expit(score)).astype(int)
        if n_classes == 3:
            y += rng.random(n) < expit(score)
        is_copy = rng.random(n) < np.linspace(0.97, 0.1, n_sites)[site]
        code = np.where(is_copy, y, rng.integers(0, n_classes, n))
    if with_shortcut:
        X["code"] = code
    return X, y, site


def fit(X, y, site, estimator=LOGISTIC, cv=2, *, groups=None, sample_weight=None, **parameters):
    selector = InvariantFeatureSelector(estimator, cv=cv, random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selector.fit(X, y, environments=site, groups=groups, sample_weight=sample_weight)


def find_row(selector, column):
    """Return the row of `screen_` on a column."""
    return selector.screen_.set_index("column").loc[column]


@pytest.fixture(scope="module")
def screened():
    """A selector that must not be changed, with its data."""
    X, y, site = make_data()
    return fit(X, y, site), X, y, site


# --- what is rejected -----------------------------------------------------------------------------


def test_a_fading_shortcut_is_rejected_and_causes_stay(screened):
    selector = screened[0]
    assert selector.kept_ == ["age", "smoker", "noise"]
    assert selector.rejected_ == ["code"]
    assert selector.get_support().tolist() == [True, True, True, False]
    assert list(selector.get_feature_names_out()) == selector.kept_
    row = find_row(selector, "code")
    assert (row["verdict"], row["reason"]) == ("rejected", "its effect differs")
    assert row["rule"] == "code > 0"
    assert row["round"] == 1
    assert row["p_value"] < 0.01
    assert row["worth_low"] < 0.5
    assert row["tau"] > row["detectable"]
    assert (row["lowest_environment"], row["highest_environment"]) == (3, 0)
    assert row["lowest_effect"] < row["highest_effect"]
    assert find_row(selector, "age")["worth_low"] > 0.5


def test_the_effects_are_a_row_for_each_column_and_environment(screened):
    effects = screened[0].effects_
    code = effects[effects["column"] == "code"]
    assert code["environment"].tolist() == [0, 1, 2, 3]
    assert code["worth"].iloc[0] > code["worth"].iloc[3]
    ratio = code["effect"] / code["worth"]
    assert np.ptp(ratio) == pytest.approx(0.0, abs=1e-9)  # the contrast of the rule
    assert (code["standard_error"] / code["worth_error"]).to_numpy() == pytest.approx(
        np.abs(ratio).to_numpy()
    )


def test_cost_at_the_training_sites_is_shown(screened):
    shown = screened[0].rounds_
    assert shown["n_columns"].tolist() == [4, 3]
    assert shown["rejected"].tolist()[0] == "code"
    assert shown["score"].iloc[0] > shown["score"].iloc[1] > 0.7
    assert shown["loss"].iloc[0] < shown["loss"].iloc[1]
    assert shown["deviance_explained"].iloc[0] > shown["deviance_explained"].iloc[1] > 0


def test_without_a_shortcut_nothing_is_rejected():
    assert fit(*make_data(with_shortcut=False)).rejected_ == []


@pytest.mark.parametrize(
    ("outcome", "estimator"),
    [
        ("three", LOGISTIC),
        ("number", TableRegressor("linear")),
        pytest.param("three", None, marks=thorough),
        pytest.param("number", None, marks=thorough),
    ],
)
def test_outcomes_of_any_kind(outcome, estimator):
    X, y, site = make_data(n=1200, outcome=outcome)
    selector = fit(X, y, site, estimator)
    assert selector.rejected_ == ["code"]
    assert selector.score(X, y) > 0.5
    assert hasattr(selector, "classes_") == (outcome == "three")
    if outcome == "three":
        assert selector.predict_proba(X).shape == (1200, 3)
        assert selector.classes_.tolist() == [0, 1, 2]
    assert selector.rounds_["score"].between(0.3, 1).all()


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
    for method in ("predict_proba", "decision_function"):
        assert hasattr(selector, method) == hasattr(selector.estimator_, method)


@pytest.mark.parametrize(
    "name", [pytest.param("lightgbm:LGBMClassifier", marks=thorough), "xgboost:XGBClassifier"]
)
def test_learners_of_other_packages(name):
    learner = make_estimator(name)
    # threads of LightGBM spin while they wait: on busy cores a fit takes 10 s of CPU, not 0.1
    learner[-1].set_params(n_estimators=40, n_jobs=1)
    assert fit(*make_data(), learner).rejected_ == ["code"]


@pytest.mark.parametrize(
    ("y", "is_number"),
    [
        pytest.param(np.tile(["ill", "well"], 150), False, id="text"),
        pytest.param(np.tile([True, False], 150), False, id="booleans"),
        pytest.param(np.tile(np.arange(10), 30), False, id="ten values"),
        pytest.param(np.tile(np.arange(11), 28)[:300], True, id="eleven values"),
        pytest.param(np.linspace(0, 1, 300), True, id="numbers"),
    ],
)
def test_without_a_learner_boosting_takes_the_kind_of_the_outcome(y, is_number):
    X = make_data(n=300)[0]
    with pytest.warns(NoEnvironmentsWarning):
        selector = InvariantFeatureSelector().fit(X, y)
    assert isinstance(selector.estimator_, TableRegressor if is_number else TableClassifier)
    assert hasattr(selector, "classes_") != is_number
    assert hasattr(InvariantFeatureSelector(), "predict_proba")


def test_a_regressor_takes_few_numbers_for_numbers():
    X, _, site = make_data(n=300)
    y = np.tile([0, 1, 2], 100)
    selector = fit(X, y, site, TableRegressor("linear"))
    assert not hasattr(selector, "classes_")
    assert not hasattr(selector, "predict_proba")


def test_two_columns_whose_difference_is_a_shortcut():
    """Each time alone is weak: what the model makes of it was compared alone, and both stayed."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(6), 300)
    cause = rng.normal(size=len(site))
    y = (rng.random(len(site)) < expit(cause)).astype(int)
    strength = np.linspace(1.0, 0.0, 6)[site]
    centre, lag = 2.0 * rng.normal(size=len(site)), rng.normal(size=len(site))
    lag += 1.5 * strength * (2 * y - 1)
    X = np.column_stack((cause, centre - lag / 2, centre + lag / 2))
    selector = fit(X, y, site)
    assert selector.rejected_
    assert set(selector.rejected_) <= {1, 2}


@thorough
def test_a_shortcut_behind_a_column_that_identifies_sites_is_rejected():
    """A flexible learner learns its effect at each site, and leaves no residual to judge by."""
    X, y, site = make_data(n=4000)
    X = X.assign(lab=np.where(site < 2, np.nan, 1.0) + (site % 2) * 3.0)
    X = X.assign(ward=site * 1.0)
    selector = fit(X, y, site)
    assert "code" in selector.rejected_
    assert "age" in selector.kept_
    assert find_row(selector, "ward")["reason"] == "determines the environment"


def test_copies_of_a_rejected_column_are_rejected():
    X, y, site = make_data()
    selector = fit(X.assign(again=X["code"] * 10.0 + 3), y, site)
    assert set(selector.rejected_) == {"code", "again"}


def test_a_column_that_determines_the_environment_is_rejected_before_the_first_round():
    X, y, site = make_data(with_shortcut=False)
    region = np.array(["n", "n", "s", "w"])[site]
    device = np.where(site == 1, np.arange(len(y)) % 3, 0)
    selector = fit(X.assign(region=region, device=device), y, site)
    assert selector.rejected_ == ["region", "device"]
    rows = selector.screen_.set_index("column").loc[["region", "device"]]
    assert rows["reason"].tolist() == ["determines the environment"] * 2
    assert rows["round"].tolist() == [0, 0]


def test_levels_of_one_environment_are_pooled_and_named():
    X, y, site = make_data(with_shortcut=False)
    ward = np.where(np.arange(len(y)) % 2, np.array(["A", "B", "C", "D"])[site], "general")
    ward = np.where(np.arange(len(y)) % 5 == 0, "other", ward)
    selector = fit(X.assign(ward=ward), y, site)
    assert set(selector.pooled_levels_) == {"ward"}
    assert [str(level) for level in selector.pooled_levels_["ward"]] == [
        f"ward == {name}" for name in "ABCD"
    ]


# --- what is undecided ----------------------------------------------------------------------------


def test_little_data_cannot_tell():
    X, y, site = make_data(n=250)
    selector = fit(X, y, site)
    undecided = selector.screen_[selector.screen_["verdict"] == "cannot tell"]
    assert len(undecided)
    assert set(undecided["reason"]) == {"its effect may differ: too little data"}
    assert set(undecided["column"]) <= set(selector.kept_)

    strict = fit(X, y, site, on_undecided="reject")
    assert set(undecided["column"]) <= set(strict.rejected_)
    assert set(strict.screen_["verdict"]) <= {"kept", "rejected"}


def test_the_tolerance_decides(screened):
    _, *table = screened
    assert fit(*table, tolerance=3.0).rejected_ == []


def test_two_environments_reject_nothing_for_heterogeneity():
    X, y, site = make_data(n=1600)
    selector = InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0)
    with pytest.warns(FewEnvironmentsWarning, match="Two environments show one difference"):
        selector.fit(X, y, environments=site % 2)
    assert selector.rejected_ == []
    assert "two environments show one difference" in set(selector.screen_["reason"])


def test_no_environments_warn():
    X, y, _ = make_data(n=300)
    with pytest.warns(NoEnvironmentsWarning, match="no column can be rejected"):
        selector = InvariantFeatureSelector(LOGISTIC).fit(X, y)
    assert selector.get_support().all()
    assert set(selector.screen_["reason"]) == {"no environments"}
    assert selector.environments_ is None
    assert len(selector.rounds_) == 0


def test_an_interrupted_screen_keeps_its_rounds(monkeypatch):
    X, y, site = make_data()
    calls = []
    cross_fit = measuring.cross_fit

    def interrupt_the_second(*arguments, **options):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return cross_fit(*arguments, **options)

    monkeypatch.setattr(measuring, "cross_fit", interrupt_the_second)
    selector = InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0)
    with pytest.warns(TooLittleDataWarning, match="interrupted after round 1"):
        selector.fit(X, y, environments=site)
    assert not selector.is_complete_
    assert selector.rejected_ == ["code"]
    assert find_row(selector, "age")["reason"] == "the screen was interrupted"
    assert selector.predict(X).shape == y.shape


# --- rows: weights, groups, folds -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-9, 1e12])
def test_weights_times_a_factor_give_the_same_verdicts(factor):
    X, y, site = make_data()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    plain = fit(X, y, site, sample_weight=weights)
    scaled = fit(X, y, site, sample_weight=weights * factor)
    assert plain.rejected_ == ["code"]
    pd.testing.assert_frame_equal(plain.screen_, scaled.screen_, rtol=1e-6)


def test_rows_of_weight_zero_do_not_count():
    """A shortcut that only rows without weight show is none."""
    X, y, site = make_data(n=1200)
    is_shown = np.arange(1200) % 2 == 0
    X["code"] = np.where(is_shown, X["code"], np.random.default_rng(0).integers(0, 2, 1200))
    assert fit(X, y, site).rejected_ == ["code"]
    assert fit(X, y, site, sample_weight=1.0 - is_shown).rejected_ == []


def test_the_learner_gets_the_weights_or_says_that_it_takes_none():
    X, y, site = make_data()
    weights = np.where(y == 1, 5.0, 1.0)
    weighted = fit(X, y, site, sample_weight=weights)
    assert weighted.predict(X).mean() > fit(X, y, site).predict(X).mean() + 0.1

    numeric = X.assign(smoker=(X["smoker"] == "yes") * 1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    weighted = fit(numeric, y, site, pipeline, sample_weight=weights)
    alone = clone(pipeline).fit(
        numeric[weighted.kept_], y, logisticregression__sample_weight=make_relative(weights)
    )
    assert np.array_equal(weighted.predict(numeric), alone.predict(numeric[weighted.kept_]))

    class Unweighted(TableClassifier):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(IcscmError, match="Unweighted takes no sample_weight"):
        fit(X, y, site, Unweighted("logistic"), sample_weight=weights)


def test_groups_stay_in_one_fold_and_count_as_one(monkeypatch):
    """Copies of rows in one group find no more than the rows themselves."""
    X, y, site = make_data(n=150)
    seen = []
    cross_fit = measuring.cross_fit

    def look(outcome, table, columns, fold_numbers, **options):
        if table.clusters is not None:
            # each group lies within an environment, so it is a cluster
            seen.append((table.clusters.numbers, fold_numbers))
        return cross_fit(outcome, table, columns, fold_numbers, **options)

    monkeypatch.setattr(measuring, "cross_fit", look)
    copies = np.tile(np.arange(150), 8)
    together = fit(X.iloc[copies], y[copies], site[copies], groups=copies)
    assert seen
    for clusters, folds in seen:
        assert len(np.unique(clusters)) == 150
        assert all(np.ptp(folds[clusters == number]) == 0 for number in range(150))
    apart = fit(X.iloc[copies], y[copies], site[copies])
    errors = [
        selector.effects_.set_index("column").loc["code", "worth_error"].median()
        for selector in (together, apart)
    ]
    assert errors[0] > 1.8 * errors[1]


def test_folds_may_be_those_of_a_splitter():
    X, y, site = make_data(n=300)
    groups = np.arange(300) // 3
    selector = fit(X, y, site, cv=GroupKFold(3), groups=groups)
    assert len(selector.rounds_)
    halves = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    assert len(fit(X, y, site, cv=halves).rounds_)
    with pytest.raises(IcscmError, match="cv must put each row into one fold"):
        fit(X, y, site, cv=halves[:1])


def test_of_very_many_rows_some_are_screened(monkeypatch):
    X, y, site = make_data(n=1200)
    for module in (rounds, selector_module):
        monkeypatch.setattr(module, "MAX_ROWS", 800)
    selector = fit(X, y, site)
    assert selector.rejected_ == ["code"]
    assert selector.predict(X).shape == (1200,)


# --- as scikit-learn has it -----------------------------------------------------------------------


def test_predictions_are_those_of_the_learner_on_the_columns_kept(screened):
    selector, X, y, _ = screened
    alone = clone(LOGISTIC).fit(X[selector.kept_], y)
    assert np.array_equal(selector.predict_proba(X), alone.predict_proba(X[selector.kept_]))
    # rejected columns may be absent, and the environment is never used
    assert np.array_equal(selector.predict(X[selector.kept_]), selector.predict(X))
    with pytest.raises(IcscmError, match="X lacks columns that the selector kept: 'age'"):
        selector.predict(X.drop(columns="age"))


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
    # rows are dealt otherwise, since environments come in another order
    assert np.allclose(named.screen_["worth"], selector.screen_["worth"], atol=0.6)


def test_frames_of_other_kinds_give_the_same(screened):
    polars = pytest.importorskip("polars")
    expected, X, y, site = screened
    frame = polars.from_pandas(X)
    selector = fit(frame, y, site)
    pd.testing.assert_frame_equal(selector.screen_, expected.screen_)
    assert selector.transform(frame).columns == selector.kept_
    assert isinstance(selector.set_output(transform="pandas").transform(X), pd.DataFrame)


def test_a_fitted_selector_is_cloned_unfitted(screened):
    copy = clone(screened[0])
    assert copy.get_params()["cv"] == 2
    assert not hasattr(copy, "screen_")


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


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_grid_search_of_a_pipeline(pipeline):
    X, y, site = make_data(n=600)
    parameters = {"invariantfeatureselector__tolerance": [0.5, 100.0]}
    search = GridSearchCV(pipeline, parameters, cv=2, error_score="raise")
    search.fit(X, y, environments=site, groups=np.arange(len(y)) // 2)
    assert search.best_params_["invariantfeatureselector__tolerance"] == 100.0  # same sites


# --- odd tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param(np.nan, id="number"),
        pytest.param(pd.Series([None] * 600, dtype=object), id="object"),
        pytest.param(pd.Categorical([None] * 600, ["a", "b"]), id="category"),
    ],
)
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(HistGradientBoostingClassifier(max_iter=5), id="boosting"),
        pytest.param(make_pipeline(SimpleImputer(), LogisticRegression()), id="imputed"),
    ],
)
def test_a_column_without_any_value_is_kept_from_the_learner(empty, estimator):
    """Boosting failed: window shape cannot be larger than input array shape."""
    X, y, site = make_data(with_shortcut=False)
    X = X.drop(columns="smoker").assign(empty=empty)
    selector = fit(X, y, site, estimator)
    assert selector.rejected_ == ["empty"]
    assert find_row(selector, "empty")["reason"] == "all values are missing"
    assert selector.predict(X).shape == y.shape
    without_environments = fit(X, y, None, estimator)
    assert without_environments.rejected_ == ["empty"]


@pytest.mark.parametrize("make", [TableClassifier, TableRegressor])
def test_learners_of_tables_take_columns_without_values(make):
    """In a fold that lacks a test, boosting failed: window shape cannot be larger than ..."""
    X, y, _ = make_data(n=100)
    X = X.assign(lab=np.nan)
    for kind in ("hgb", "linear", "tree"):
        learner = make(kind).fit(X, y)
        assert np.isfinite(learner.predict(X.assign(lab=1.0))).all()


def test_a_column_may_be_missing_in_whole_environments():
    X, y, site = make_data(n=1200)
    lab = np.where(site < 2, np.random.default_rng(0).normal(size=1200), np.nan)
    selector = fit(X.assign(lab=lab, age=np.where(site == 3, np.nan, X["age"])), y, site)
    assert selector.rejected_ == ["code"]
    assert selector.effects_.notna().any().all()


def test_columns_that_say_nothing_are_kept():
    X, y, site = make_data()
    selector = fit(X.assign(one=1.0, text="a", truth=np.arange(600) % 2 == 0), y, site)
    assert selector.rejected_ == ["code"]
    assert {"one", "text", "truth"} <= set(selector.kept_)
    assert np.isnan(find_row(selector, "one")["worth"])


def test_dates_are_not_screened_and_that_is_said():
    """They had the verdict kept, though nothing had looked at them."""
    X, y, site = make_data()
    X["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(600) % 300, "D")
    row = find_row(fit(X, y, site), "seen")
    assert (row["verdict"], row["reason"]) == ("cannot tell", "dates are not screened")
    assert "seen" in fit(X, y, site, on_undecided="reject").rejected_


class ScreenAlone(InvariantFeatureSelector):
    """Fits no learner: few take such numbers."""

    _fits_learner = False


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_outcomes_in_any_unit(factor):
    """Numbers of 1e300 and of 1e-300 divided by zero."""
    X, y, site = make_data(outcome="number")
    X = X.drop(columns="smoker")
    plain = fit(X, y, site, TableRegressor("tree"))
    scaled = ScreenAlone(TableRegressor("tree"), cv=2, random_state=0)
    scaled.fit(X, y * factor, environments=site)
    assert scaled.rejected_ == plain.rejected_
    assert scaled.screen_["worth"].to_numpy() == pytest.approx(plain.screen_["worth"].to_numpy())


NUMBERS = np.linspace(-1, 1, 300)
LINEAR = TableRegressor("linear")


@pytest.mark.parametrize(
    ("y", "estimator", "match"),
    [
        (np.where(NUMBERS > 0.9, np.inf, NUMBERS), None, "y contains infinity in 15 rows"),
        (np.where(NUMBERS > 0.9, np.nan, NUMBERS), LINEAR, "y contains NaN, a missing value"),
        (np.where(NUMBERS > 0, np.inf, 0.0), LOGISTIC, "labels must be finite"),
        (np.zeros(300), LINEAR, "y is 0 in every row; there is nothing to predict"),
        (np.zeros(300), None, "y holds one class only, 0.0; learning needs two"),
        (np.repeat(["a", "b"], 150), LINEAR, "y holds text; a learner of numbers needs numbers"),
        (np.arange(300) // 5, LOGISTIC, "y holds 60 classes; at most 50"),
        (NUMBERS, LOGISTIC, "Unknown label type: continuous"),
        (np.zeros(299), LINEAR, "y has 299 entries but X has 300 rows"),
        (np.tile([0, 1], 149), LOGISTIC, "y has 298 entries but X has 300 rows"),
        (np.zeros((300, 2)), LOGISTIC, "y should be a 1d array"),
        (pd.Series([[1]] * 300), LOGISTIC, "y holds labels that are not hashable"),
        (pd.Series(["a", 1] * 150, dtype=object), LOGISTIC, "labels that cannot be ordered"),
        (np.eye(300)[0].astype(int), LOGISTIC, "two rows of each class, and two groups; got 1"),
    ],
)
def test_outcomes_that_cannot_be_used(y, estimator, match):
    """Labels of several kinds were a TypeError of NumPy."""
    X, _, site = make_data(n=300)
    with pytest.raises(ValueError, match=match):
        fit(X, y, site, estimator)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"site": np.zeros(300)}, "single environment"),
        ({"site": np.arange(299) % 3}, "environments has 299 entries but X has 300 rows"),
        ({"site": pd.Series([[1]] * 300)}, "environments holds labels that are not hashable"),
        ({"groups": np.zeros(300)}, "two groups; got 1"),
        ({"groups": np.arange(299)}, "groups has 299 entries"),
        ({"sample_weight": np.ones(299)}, "one weight for each of the 300 rows"),
        ({"sample_weight": np.zeros(300)}, "sample_weight is zero in every row"),
        ({"sample_weight": -np.ones(300)}, "finite numbers, 0 or more"),
        ({"tolerance": -1}, "tolerance must be a finite number"),
        ({"on_undecided": "drop"}, "on_undecided must be"),
    ],
)
def test_options_that_cannot_be_used(options, match):
    X, y, site = make_data(n=300)
    with pytest.raises(IcscmError, match=match):
        fit(X, y, **{"site": site} | options)


def test_no_rows():
    """They were an IndexError."""
    X, y, site = make_data(n=10)
    with pytest.raises(IcscmError, match="y holds no class"):
        fit(X[:0], y[:0], site[:0])


@pytest.mark.parametrize("outcome", ["two", "three"])
def test_each_class_needs_a_row_of_positive_weight(outcome):
    """A logarithm of 0 made every effect NaN, and everything was kept."""
    X, y, site = make_data(n=300, outcome=outcome)
    with pytest.raises(IcscmError, match="sample_weight is 0 in every row of class 1"):
        fit(X, y, site, sample_weight=(y != 1) * 1.0)
    numbers = np.where(np.arange(300) < 150, 0.0, NUMBERS)
    weights = (np.arange(300) < 150) * 1.0
    with pytest.raises(IcscmError, match="same in every row of a positive sample_weight"):
        fit(X, numbers, site, LINEAR, sample_weight=weights)


def test_an_option_that_went():
    with pytest.raises(
        TypeError, match="has no parameter min_replication: columns that determine the environment"
    ):
        InvariantFeatureSelector(min_replication=0.1)


def test_every_column_may_be_rejected():
    X, y, site = make_data(n=1600)
    selector = InvariantFeatureSelector(LOGISTIC, cv=2, random_state=0)
    with pytest.warns(NotInvariantWarning, match="Every column was rejected"):
        selector.fit(X[["code"]], y, environments=site)
    assert np.allclose(selector.predict_proba(X)[:, 1], y.mean())
    assert selector.transform(X).shape == (1600, 0)
    number = fit(*make_data(n=100, outcome="number"), TableRegressor("linear"))
    assert number.make_learner(0).fit(np.empty((2, 0)), [1.0, 2.0]).predict([[]]) == [1.5]


def test_a_transformed_array_is_checked_as_the_learner_would():
    """A learner that takes no missing values was said to take them."""
    X, y, site = make_data(n=300)
    numbers = X[["age", "noise"]].to_numpy().copy()
    selector = fit(numbers, y, site, LogisticRegression())
    numbers[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        selector.transform(numbers)
    assert fit(numbers, y, site, LOGISTIC).transform(numbers).shape == (300, 2)


def test_learners_by_name():
    with pytest.raises(IcscmError, match="'nothing' is not an estimator"):
        make_estimator("nothing")
    with pytest.raises(IcscmError, match="cannot be imported"):
        make_estimator("nothing:Here")


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
