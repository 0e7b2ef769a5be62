"""InvariantTreeClassifier as scikit-learn users meet it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import icscm
from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_hospitals
from icscm.exceptions import (
    FewEnvironmentsWarning,
    IcscmError,
    IcscmWarning,
    NoEnvironmentsWarning,
    NothingFoundWarning,
)
from support.fitting import fit_quietly


def make_patients(n=3000, n_places=4, seed=0):
    """Ill by age and smoking; a code that each place uses as it likes."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, n_places, n)
    age, smoker = rng.integers(20, 70, n), rng.random(n) < 0.4
    log_odds = (age - 45) / 10 + 1.5 * smoker - 0.5 + np.linspace(-0.5, 0.5, n_places)[place]
    ill = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    follows = rng.random(n) < np.linspace(0.95, 0.2, n_places)[place]
    code = np.where(follows, ill, rng.random(n) < 0.5)
    X = pd.DataFrame({"age": age, "smoker": np.where(smoker, "yes", "no"), "code": code * 1.0})
    return X, np.where(ill, "ill", "well"), place


@pytest.fixture(scope="module")
def patients():
    return make_patients()


@pytest.fixture(scope="module")
def fitted(patients):
    X, y, place = patients
    return InvariantTreeClassifier().fit(X, y, environments=place)


def test_what_is_fitted(fitted, patients):
    X, y, _ = patients
    assert fitted.features_used_ == ["age", "smoker"]
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert fitted.environments_ == (0, 1, 2, 3)
    assert fitted.tolerance_ == fitted.trace_.tolerance == 0.01
    assert fitted.feature_types_ == ("number", "category", "number")
    assert fitted.score(X, y) > 0.7
    assert len(fitted.verdicts_) == len(fitted.model_.leaves) == len(fitted.trace_.leaves)
    refused = fitted.trace_.to_frame("rejected")
    assert {"code"} <= set(refused.feature)
    columns = fitted.trace_.to_frame("columns")
    assert columns[["feature", "reason", "round"]].values.tolist() == [["code", "heterogeneous", 1]]
    assert columns.highest_environment.tolist() + columns.lowest_environment.tolist() == [3, 0]
    assert len(fitted.trace_.to_frame()) == len(fitted.model_)


def test_deviances_of_features_are_those_of_their_splits(fitted):
    found = fitted.trace_.list_importances()
    names = ["deviance_explained", "rate_heterogeneity"]
    splits = fitted.trace_.to_frame().groupby("feature")[names].sum()
    assert splits.index.tolist() == sorted(found)
    for feature, sums in found.items():
        assert sums == pytest.approx(tuple(splits.loc[feature]))


@pytest.mark.parametrize(
    "learner",
    [
        InvariantTreeClassifier(),
        InvariantForestClassifier(n_estimators=10, random_state=0),
        ICSCMClassifier(),
        SCMClassifier(),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_importances_select_features(learner, patients):
    """`feature_importances_` of a tree was a frame of two columns; forests and rules had none."""
    X, y, place = patients
    select = SelectFromModel(learner, threshold=0.1).fit(X, y, environments=place)
    found = select.estimator_.feature_importances_
    assert found.shape == (3,)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    chosen = X.columns[select.get_support()].tolist()
    assert chosen == X.columns[found >= 0.1].tolist()
    if learner.tests_invariance:
        assert "code" not in chosen


def test_importances_of_a_tree_are_its_deviances(fitted):
    """Up to the rounding of counts, the shares are those that the search recorded."""
    deviances = {name: each for name, (each, _) in fitted.trace_.list_importances().items()}
    shares = [
        deviances.get(name, 0.0) / sum(deviances.values()) for name in ("age", "smoker", "code")
    ]
    np.testing.assert_allclose(fitted.feature_importances_, shares, atol=0.01)


def test_positions_where_there_are_no_names():
    rng = np.random.default_rng(0)
    X, place = rng.integers(0, 3, (600, 2)), rng.integers(0, 3, 600)
    fitted = InvariantTreeClassifier().fit(X, X[:, 1] > 0, environments=place)
    assert fitted.features_used_ == [1]


@pytest.mark.parametrize("probabilities", ["pooled", "balanced"])
def test_probabilities(patients, probabilities):
    X, y, place = patients
    fitted = InvariantTreeClassifier(probabilities=probabilities).fit(X, y, environments=place)
    leaf = fitted.model_.find_leaves(X)
    found = fitted.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for number in range(len(fitted.model_.leaves)):
        groups = [leaf == number]
        if probabilities == "balanced":
            groups = [groups[0] & (place == each) for each in np.unique(place[groups[0]])]
        rates = [((y[rows] == "well").sum() + 1) / (rows.sum() + 2) for rows in groups]
        np.testing.assert_allclose(found[leaf == number, 1], np.mean(rates))
    likelier = fitted.classes_[(found[:, 1] > 0.5).astype(int)]
    np.testing.assert_array_equal(fitted.predict(X), likelier)


def test_no_environments_make_a_plain_tree(patients):
    X, y, place = patients
    with pytest.warns(NoEnvironmentsWarning, match="this is a plain tree"):
        without = InvariantTreeClassifier().fit(X, y)
    plain = InvariantTreeClassifier(tolerance=None).fit(X, y, environments=place)
    assert without.model_.rules == plain.model_.rules
    assert without.environments_ is without.tolerance_ is None
    assert len(without.verdicts_) == 0
    assert plain.features_used_[0] in ("age", "code")
    assert "code" in plain.features_used_
    assert not any(any(look.n_rejected.values()) for look in plain.trace_.splits)
    assert "nothing was rejected" in str(plain.trace_)


def test_two_environments_are_few():
    X, y, place = make_patients(n_places=2)
    with pytest.warns(FewEnvironmentsWarning, match="Use three or more"):
        fitted = InvariantTreeClassifier().fit(X, y, environments=place)
    assert fitted.features_used_ == ["age", "smoker"]


def test_one_label_in_an_environment(patients):
    """It is warned of, and compares with nothing."""
    X, y, place = patients
    y = np.where(place == 3, "ill", y)
    with pytest.warns(IcscmWarning, match="3"):
        fitted = InvariantTreeClassifier().fit(X, y, environments=place)
    assert "code" not in fitted.features_used_
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_nothing_found():
    rng = np.random.default_rng(0)
    X, y, place = rng.normal(size=(300, 3)), rng.integers(0, 2, 300), rng.integers(0, 3, 300)
    with pytest.warns(NothingFoundWarning, match="No split was made"):
        fitted = InvariantTreeClassifier().fit(X, y, environments=place)
    assert len(fitted.model_) == 0
    assert fitted.trace_.leaves[0].end == "uninformative"
    assert len(set(fitted.predict(X))) == 1
    assert fitted.features_used_ == []
    assert len(fitted.trace_.to_frame()) == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"invariance": "cause"}, "invariance must be one of 'effect', 'rate'; got 'cause'"),
        ({"tolerance": 0}, "tolerance must be 'auto', None or a finite number"),
        ({"tolerance": "low"}, "tolerance must be 'auto', None or a finite number"),
        ({"tolerance": np.nan}, "tolerance must be 'auto', None or a finite number"),
        ({"max_leaves": 0}, "max_leaves must be a whole number of at least 1"),
        ({"min_samples_leaf": 1}, "min_samples_leaf must be a share from 0 to 1"),
        ({"min_samples_leaf": -0.1}, "min_samples_leaf must be a share from 0 to 1"),
        ({"max_thresholds": 0}, "max_thresholds must be"),
        ({"probabilities": "mean"}, "probabilities must be one of 'pooled', 'balanced'"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"min_replication": 2}, "min_replication must be"),
    ],
)
def test_parameters_have_one_clear_error(patients, changed, message):
    """And a fit that fails leaves the learner as it was."""
    X, y, place = (values[:300] for values in patients)
    learner = InvariantTreeClassifier(max_leaves=2).fit(X, y, environments=place)
    before = learner.model_
    learner.set_params(**changed)
    with pytest.raises(IcscmError, match=message) as caught:
        learner.fit(X, y, environments=place)
    assert "\n" not in str(caught.value)
    assert learner.model_ is before
    fresh = InvariantTreeClassifier(**changed)
    with pytest.raises(IcscmError, match=message):
        fresh.fit(X, y, environments=place)
    assert not hasattr(fresh, "model_")


def test_data_that_cannot_be_used(fitted, patients):
    X, y, place = patients
    learner = clone(fitted).fit(X, y, environments=place)
    before = dict(vars(learner))
    for bad in ((X, y[:-1], place), (X, y, place[:-1]), (X, np.zeros(len(y)), place)):
        with pytest.raises(IcscmError):
            learner.fit(*bad[:2], environments=bad[2])
        assert vars(learner) == before
    with pytest.raises(IcscmError, match="age"):
        learner.predict(X.drop(columns="age"))


def test_saving_and_loading(fitted, patients, tmp_path):
    X, _, _ = patients
    fitted.save(tmp_path / "tree.json")
    loaded = icscm.load(tmp_path / "tree.json")
    assert loaded.model == fitted.model_
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    copied = pickle.loads(pickle.dumps(fitted))
    assert (copied.model_, copied.trace_) == (fitted.model_, fitted.trace_)
    np.testing.assert_array_equal(copied.predict(X), fitted.predict(X))


def test_only_the_columns_of_the_tree_are_needed(fitted, patients):
    X, _, _ = patients
    wanted = fitted.predict(X)
    np.testing.assert_array_equal(fitted.predict(X[["smoker", "age"]]), wanted)


def test_clone_keeps_every_parameter():
    changed = {
        "invariance": "rate",
        "tolerance": 0.1,
        "max_leaves": 5,
        "min_samples_leaf": 0.07,
        "max_thresholds": None,
        "probabilities": "balanced",
        "n_jobs": 1,
        "device": "auto",
        "min_replication": 0.5,
    }
    learner = InvariantTreeClassifier(**changed)
    assert set(changed) == set(learner.get_params())
    assert clone(learner).get_params() == changed


@pytest.mark.parametrize("with_routing", [True, False])
def test_model_selection(with_routing):
    """The environments reach every inner fit, whether metadata routing is on or off."""
    X, y, place = make_patients(1500)
    learner = InvariantTreeClassifier(max_leaves=4)
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", IcscmWarning)
        if with_routing:
            learner.set_fit_request(environments=True)
        scores = cross_validate(learner, X, y, cv=2, params={"environments": place})
        assert (scores["test_score"] > 0.65).all()
        search = GridSearchCV(learner, {"max_leaves": [2, 8]}, cv=2).fit(X, y, environments=place)
        assert search.best_estimator_.features_used_ == ["age", "smoker"]
        name = "environments" if with_routing else "invarianttreeclassifier__environments"
        pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), learner)
        pipeline.fit(X[["age", "code"]], y, **{name: place})
        assert pipeline[-1].features_used_ == ["age"]


@pytest.mark.parametrize(("least", "n_least"), [(0.05, 150), (0, 1)])
def test_the_least_samples_of_a_leaf(patients, least, n_least):
    X, y, place = patients
    learner = InvariantTreeClassifier(min_samples_leaf=least, tolerance=None, max_leaves=60)
    sizes = np.array(fit_quietly(learner, X, y, place).model_.leaves).sum(axis=(1, 2))
    assert sizes.min() >= n_least
    assert sizes.sum() == len(y)


def test_binary_columns_are_one_candidate_each():
    """Each split on a column of two values counted twice, once as a rule that is not there."""
    rng = np.random.default_rng(0)
    X, place = rng.integers(0, 2, (500, 4)), rng.integers(0, 3, 500)
    y = X[:, 0] ^ (rng.random(500) < 0.1)
    for values in (X, X * 1.5, X.astype(bool)):
        fitted = InvariantTreeClassifier().fit(values, y, environments=place)
        assert fitted.trace_.splits[0].n_candidates == 4


def test_a_leaf_of_one_label_says_so():
    """In a tree that had all its leaves, leaves of one label said that they were too many."""
    rng = np.random.default_rng(0)
    X, place = rng.integers(0, 4, (800, 2)), rng.integers(0, 3, 800)
    y = (X[:, 0] > 0) & (rng.random(800) < np.where(X[:, 1] > 1, 0.9, 0.3))
    learner = InvariantTreeClassifier(max_leaves=3)
    trace = learner.fit(X, y, environments=place).trace_
    pure = [
        look.end
        for look, leaf in zip(trace.leaves, learner.model_.leaves, strict=True)
        if not all(map(sum, leaf))
    ]
    assert pure == ["small"]


# --- statistics as statistics -------------------------------------------------------------------


def simulate(rng, n=1500, n_places=5, habit=False, effect=1.2):
    """Two causes whose effects are the same everywhere, and baselines that are not."""
    place = rng.integers(0, n_places, n)
    X = rng.integers(0, 4, (n, 4)).astype(float)
    log_odds = (
        effect * (X[:, 0] - 1.5) + effect * (X[:, 1] > 1) + rng.normal(0, 0.7, n_places)[place]
    )
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    if habit:  # agrees with the label as often as the place has it
        agrees = rng.random(n) < np.linspace(0.98, 0.55, n_places)[place]
        coin = rng.random(n) < y.mean()
        X[:, 3] = np.where(agrees, y, coin)
    return X, y, place


@pytest.mark.parametrize("n_runs", [40, pytest.param(200, marks=pytest.mark.thorough)])
def test_equal_effects_are_seldom_refused(n_runs):
    """At the root, where the test is strongest: a few of a hundred true features, by chance."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(n_runs):
        learner = InvariantTreeClassifier(max_leaves=2, n_jobs=1)
        trace = fit_quietly(learner, *simulate(rng)).trace_
        told = (trace.splits or trace.leaves)[0].best_rejected
        refused += any(
            each.candidate.rule.column < 2 and each.reason == "heterogeneous" for each in told
        )
    assert refused <= 0.04 * n_runs


@pytest.mark.parametrize("n_runs", [8, pytest.param(40, marks=pytest.mark.thorough)])
def test_a_planted_habit_is_never_used(n_runs):
    rng = np.random.default_rng(1)
    for _ in range(n_runs):
        learner = InvariantTreeClassifier(n_jobs=1)
        fitted = fit_quietly(learner, *simulate(rng, n=4000, habit=True))
        assert 3 not in fitted.features_used_
        assert {0, 1} <= set(fitted.features_used_)
    plain = InvariantTreeClassifier(tolerance=None, max_leaves=2)
    assert fit_quietly(plain, *simulate(rng, n=4000, habit=True)).features_used_ == [3]


def interact(rng, habit):
    """y = x0 and x1, whose rates differ by site (8 x 1,500); noise, and perhaps a fading habit."""
    n, place = 12_000, np.repeat(np.arange(8), 1500)
    x0, x1 = (rng.random(n) < rng.uniform(0.2, 0.8, 8)[place] for _ in range(2))
    y = rng.random(n) < np.where(x0 & x1, 0.8, 0.2)
    X = np.column_stack((x0, x1, rng.normal(size=(n, 3)))).astype(float)
    if habit:
        agrees = rng.random(n) < np.linspace(0.98, 0.55, 8)[place]
        X = np.column_stack((X, np.where(agrees, y, rng.random(n) < y.mean())))
    return X, y, place


@pytest.mark.parametrize("n_runs", [4, pytest.param(20, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("habit", [False, True])
def test_interacting_causes_are_kept_and_a_fading_shortcut_is_not(habit, n_runs):
    """Judged marginally, x1 was rejected: its effect depends on the rate of x0 at the site."""
    rng = np.random.default_rng(3)
    n_kept = 0
    for _ in range(n_runs):
        fitted = fit_quietly(InvariantTreeClassifier(n_jobs=1), *interact(rng, habit))
        n_kept += {0, 1} <= set(fitted.features_used_)
        assert set(fitted.features_used_) <= {0, 1}
        assert [each.rule.column for each in fitted.trace_.rejected_columns] == [5] * habit
    assert n_kept >= 0.95 * n_runs


def test_a_cause_beside_a_shortcut_is_kept():
    """Given a shortcut that is missing at every second site, lactate was the worst column.

    By itself it is worth the same everywhere.
    """
    data = make_hospitals(random_state=1)
    is_in = data.environments != "Ash"
    X, y, place = data.X[is_in], np.asarray(data.y)[is_in], np.asarray(data.environments)[is_in]
    rng, sites = np.random.default_rng(1), np.unique(place)
    agrees = dict(zip(sites, np.linspace(0.98, 0.55, len(sites)), strict=True))
    follows = rng.random(len(y)) < [agrees[each] for each in place]
    shortcut = np.where(follows, y, rng.random(len(y)) < y.mean()).astype(float)
    shortcut[np.isin(place, sites[1::2])] = np.nan
    X = X[["age", "lactate", "heart_rate"]].assign(shortcut=shortcut)
    trace = InvariantTreeClassifier().fit(X, y, environments=place).trace_
    rejected = trace.to_frame("columns")
    assert rejected[["feature", "round"]].values.tolist() == [["shortcut", 1]]
    assert {step.chosen.rule.feature for step in trace.splits} >= {"age", "lactate"}


def test_a_column_of_one_environment_is_not_replicated():
    """Environments without cases do not count against a column; 0 requires nothing."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 5, 5000)
    cause = rng.random(5000) < 0.4
    y = (rng.random(5000) < np.where(cause, 0.6, 0.2)) & (place > 1)
    local = np.where(place == 4, y ^ (rng.random(5000) < 0.05), 0)
    local[np.flatnonzero(place == 3)[:3]] = 1  # or it would determine the environment
    data = np.column_stack((cause, local)).astype(float), y, place
    fitted = fit_quietly(InvariantTreeClassifier(), *data)
    assert fitted.features_used_ == [0]
    (rejected,) = fitted.trace_.rejected_columns
    assert (rejected.rule.column, rejected.reason, rejected.round) == (1, "unreplicated", 0)
    assert rejected.replication < 0.05
    assert (rejected.heterogeneity_share, rejected.lowest) == (None, None)
    loose = fit_quietly(InvariantTreeClassifier(min_replication=0, tolerance=100), *data)
    assert 1 in loose.features_used_
    assert loose.trace_.rejected_columns == ()


@pytest.mark.parametrize(
    "learner",
    [InvariantTreeClassifier(), InvariantForestClassifier(n_estimators=5, random_state=0)],
)
def test_one_environment_with_all_information(learner):
    """Replication cannot be assessed: columns are kept, with a warning."""
    rng = np.random.default_rng(0)
    place = np.repeat([0, 1, 2], [3000, 20, 20])
    X = rng.integers(0, 2, (3040, 2))
    y = rng.random(3040) < np.where(X[:, 0], 0.7, 0.2)
    with pytest.warns(FewEnvironmentsWarning, match=r"^One environment \(0\) has nearly all"):
        fitted = learner.fit(X, y, environments=place)
    assert fitted.features_used_ == [0]


def test_noise_gives_no_split():
    rng = np.random.default_rng(2)
    n_empty = 0
    for _ in range(100):
        X, _, place = simulate(rng, n=600)
        y = rng.random(600) < np.linspace(0.2, 0.6, 5)[place]
        n_empty += not fit_quietly(InvariantTreeClassifier(n_jobs=1), X, y, place).model_.splits
    assert n_empty >= 90
