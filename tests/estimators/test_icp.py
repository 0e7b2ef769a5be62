"""Invariant causal prediction: equal to its definition, and right about simulated parents."""

import re
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import icscm
from icscm.datasets import make_conjunction
from icscm.engine.levels import make_level_counts
from icscm.estimators.icp import InvariantCausalPrediction
from icscm.exceptions import IcscmError, IcscmWarning, NothingAcceptedWarning
from icscm.search import sets, table_sets
from support.literal.icp import predict_slowly

# --- equal to the definition ------------------------------------------------


@st.composite
def tables(draw):
    """Small tables with unequal numbers of levels, copies, constant columns and few samples."""
    n_rows = draw(st.integers(4, 80))
    n_environments = draw(st.integers(2, 4))
    n_values = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 9]), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = np.column_stack([rng.integers(0, n, size=n_rows) for n in n_values]).astype(float)
    if draw(st.booleans()):
        X[:, -1] = X[:, 0]
    environments = rng.integers(0, n_environments, n_rows)
    cause = draw(st.sampled_from(["none", "feature", "environment", "both"]))
    y = rng.integers(0, 2, n_rows)
    strength = draw(st.sampled_from([0.3, 1.0]))
    if cause in ("feature", "both"):
        y = np.where(rng.random(n_rows) < strength, X[:, 0] > X[0, 0], y)
        X[:, 0] += environments * (rng.random(n_rows) < 0.5)
    if cause in ("environment", "both"):
        y = np.where(rng.random(n_rows) < strength, environments > 0, y)
    y = y.astype(int)
    y[:2] = environments[:2] = [0, 1]
    return X, y, environments


PARAMETERS = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.01, 0.05, 0.3]),
        "test": st.sampled_from(["g", "chi2"]),
        "max_set_size": st.sampled_from([None, 1, 2, 3, 9]),
        "dof": st.sampled_from(["adjusted", "nominal"]),
        "max_levels": st.sampled_from([2, 3, 4, 20]),
        "conclusion": st.sampled_from(["intersection", "best"]),
    }
)


@settings(max_examples=400, deadline=None)
@given(table=tables(), parameters=PARAMETERS, n_cells=st.sampled_from([1, 60, 400, 2**18]))
def test_equals_the_definition(table, parameters, n_cells):
    """Whatever the size of the batches."""
    X, y, environments = table
    with mock.patch.object(table_sets, "_BATCH_CELLS", n_cells):
        fitted = fit_quietly(X, y, environments, **parameters)
    expected = predict_slowly(X.tolist(), y.tolist(), environments.tolist(), **parameters)
    assert fitted.parents_ == expected["parents"]
    assert list(fitted.accepted_sets_) == list(expected["accepted"])
    np.testing.assert_allclose(
        list(fitted.accepted_sets_.values()), list(expected["accepted"].values()), rtol=1e-9
    )
    assert fitted.n_sets_tested_ == expected["n_tested"]
    assert fitted.bic_ == {each: pytest.approx(bic) for each, bic in expected["bics"].items()}
    np.testing.assert_allclose(fitted.p_values_, expected["p_values"], rtol=1e-9, atol=1e-300)


def fit_quietly(X, y, environments, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingAcceptedWarning)
        return InvariantCausalPrediction(**parameters).fit(X, y, environments=environments)


@settings(max_examples=100, deadline=None)
@given(tables(), PARAMETERS)
def test_parents_follow_from_the_p_values(table, parameters):
    fitted = fit_quietly(*table, **parameters)
    if fitted.parents_ is None:
        assert fitted.accepted_sets_ == {}
        assert (fitted.p_values_ <= parameters["alpha"]).all()
    else:
        wanted = tuple(np.flatnonzero(fitted.p_values_ <= parameters["alpha"]))
        is_best = parameters["conclusion"] == "best"
        assert is_best == (len(fitted.bic_) > 0)
        assert set(wanted) <= set(fitted.parents_) if is_best else fitted.parents_ == wanted
        assert set(wanted) == set.intersection(*map(set, fitted.accepted_sets_))


@settings(max_examples=60, deadline=None)
@given(tables(), PARAMETERS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, parameters, random):
    order = list(range(len(table[1])))
    random.shuffle(order)
    fitted = fit_quietly(*table, **parameters)
    other = fit_quietly(*(each[order] for each in table), **parameters)
    assert other.accepted_sets_ == fitted.accepted_sets_
    assert other.n_sets_tested_ == fitted.n_sets_tested_
    np.testing.assert_array_equal(other.p_values_, fitted.p_values_)


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_every_set_is_visited_once(n, size):
    size = min(n, size)
    counts = make_level_counts(np.zeros((4, n)), *np.zeros((2, 4), dtype=int), 1, max_levels=2)
    found = [table.columns for table in table_sets._walk_all(counts, size)]
    assert len(found) == len(set(found)) == sets.count_sets(n, size)
    assert sorted(found) == sorted(sets.list_subsets(n, size))


# --- right about simulated parents ------------------------------------------


@pytest.mark.parametrize(
    ("test", "n_runs"),
    [
        ("g", 40),
        pytest.param("g", 300, marks=pytest.mark.thorough),
        pytest.param("chi2", 300, marks=pytest.mark.thorough),
    ],
)
def test_level(test, n_runs):
    """The parents' set is accepted in at least 1 - alpha of the runs, within binomial error,
    and then nothing but parents is selected."""
    alpha, n_accepted = 0.05, 0
    for seed in range(n_runs):
        data = make_conjunction(2_000, 3, random_state=seed)
        fitted = fit_quietly(data.X, data.y, data.environments, alpha=alpha, test=test)
        if ("A1", "A2") in fitted.accepted_sets_:
            n_accepted += 1
            assert set(fitted.parents_) <= {"A1", "A2"}
    assert stats.binomtest(n_accepted, n_runs, 1 - alpha, alternative="less").pvalue > 1e-3
    assert n_accepted < n_runs


@pytest.mark.thorough
def test_identification_collapses_with_nominal_degrees_of_freedom_only():
    """The paper's simulation with 7 distractors, where it reports 0.00 for this method."""
    n_found = {"adjusted": 0, "nominal": 0}
    for seed in range(20):
        data = make_conjunction(10_000, 7, random_state=(7, seed))
        rows = np.random.default_rng(seed).permutation(20_000)[:16_000]
        X, y, environments = data.X.iloc[rows], data.y[rows], data.environments[rows]
        for dof in n_found:
            fitted = fit_quietly(X, y, environments, dof=dof)
            n_found[dof] += fitted.parents_ == ("A1", "A2")
    assert n_found["adjusted"] >= 18
    assert n_found["nominal"] <= 2


def test_more_environments():
    data = make_conjunction(5_000, 2, n_environments=4, random_state=0)
    labels = np.array(["n", "e", "s", "w"])[data.environments]
    fitted = InvariantCausalPrediction().fit(data.X, data.y, environments=labels)
    assert fitted.environments_ == ("e", "n", "s", "w")
    assert fitted.parents_ == ("A1", "A2")


def test_continuous_features_are_binned():
    """At quantiles that are observed values; the cut of the cause at 0 is within one level, so
    few levels do not separate its two sides and even the cause is rejected."""
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 5_000)
    X = rng.normal(size=(10_000, 2))
    X[:, 1] += environments
    y = (X[:, 1] > 0) ^ (rng.random(10_000) < 0.1)
    fitted = InvariantCausalPrediction(max_levels=40).fit(X, y, environments=environments)
    assert fitted.parents_ == (1,)
    shares = np.arange(1, 40) / 40
    cuts = np.quantile(X, shares, axis=0, method="inverted_cdf")
    levels = np.column_stack([np.searchsorted(cuts[:, j], X[:, j]) for j in (0, 1)])
    assert len(np.unique(levels)) == 40
    again = InvariantCausalPrediction(max_levels=40).fit(levels, y, environments=environments)
    assert again.accepted_sets_ == fitted.accepted_sets_
    with pytest.warns(NothingAcceptedWarning, match="binned too coarsely"):
        InvariantCausalPrediction(max_levels=2).fit(X, y, environments=environments)


# --- nothing accepted, and the empty set ------------------------------------


def test_every_set_rejected():
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 500)
    X, y = rng.integers(0, 2, size=(1000, 3)), rng.random(1000) < 0.2 + 0.5 * environments
    selector = InvariantCausalPrediction()
    with pytest.warns(NothingAcceptedWarning, match="All 8 sets of features were rejected") as seen:
        selector.fit(X, y, environments=environments)
    assert seen[0].filename == __file__
    for advice in ("smaller alpha", "more features", "environments", "hidden", "directly"):
        assert advice in str(seen[0].message)
    assert selector.parents_ is None
    assert selector.accepted_sets_ == {}
    assert not selector.get_support().any()
    assert selector.n_sets_tested_ == 8
    assert selector.p_values_.shape == (3,)
    assert (selector.p_values_ <= 0.05).all()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (1000, 0)


def test_the_empty_set_is_not_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, size=(1000, 3)), rng.integers(0, 2, 1000)
    selector = InvariantCausalPrediction()
    selector.fit(X, y, environments=np.arange(1000) % 2)
    assert selector.parents_ == ()
    assert () in selector.accepted_sets_
    assert not selector.get_support().any()
    assert selector.n_sets_tested_ == 8


# --- as scikit-learn users meet it ------------------------------------------


def test_frames_keep_their_names(frame, data):
    fitted = InvariantCausalPrediction().fit(frame, data.y, environments=data.environments)
    assert fitted.parents_ == ("A1", "A2")
    assert fitted.get_feature_names_out().tolist() == ["A1", "A2"]
    assert fitted.n_features_in_ == 6
    np.testing.assert_array_equal(fitted.transform(frame), data.X[["A1", "A2"]])
    assert all(set(features) >= {"A1", "A2"} for features in fitted.accepted_sets_)


def test_arrays_have_positions(data):
    fitted = InvariantCausalPrediction().fit(
        data.X.to_numpy(), data.y, environments=data.environments
    )
    assert fitted.parents_ == (0, 1)
    assert fitted.get_support().tolist() == [True, True, False, False, False, False]
    assert fitted.get_support(indices=True).tolist() == [0, 1]
    assert not hasattr(fitted, "feature_names_in_")
    named = InvariantCausalPrediction().fit(data.X, data.y, environments=data.environments)
    assert list(named.accepted_sets_.values()) == list(fitted.accepted_sets_.values())


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.bool_, object, np.float16])
def test_dtypes_and_layouts_give_the_same_sets(data, dtype):
    wanted = InvariantCausalPrediction().fit(
        data.X.to_numpy(float), data.y, environments=data.environments
    )
    X = data.X.to_numpy().astype(dtype)
    for layout in (X, np.asfortranarray(X), X[::-1][::-1]):
        fitted = InvariantCausalPrediction().fit(layout, data.y, environments=data.environments)
        assert fitted.accepted_sets_ == wanted.accepted_sets_


def test_labels_may_be_strings(data):
    wanted = InvariantCausalPrediction().fit(data.X, data.y, environments=data.environments)
    y = np.where(data.y == 1, "ill", "healthy")
    fitted = InvariantCausalPrediction().fit(data.X, y, environments=data.environments)
    assert fitted.accepted_sets_ == wanted.accepted_sets_


@pytest.mark.parametrize("with_routing", [True, False])
def test_pipeline(data, with_routing):
    """The paper's baseline: a tree on what was selected."""
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", IcscmWarning)
        selector = InvariantCausalPrediction()
        name = "invariantcausalprediction__environments"
        if with_routing:
            selector.set_fit_request(environments=True)
            name = "environments"
        pipeline = make_pipeline(selector, DecisionTreeClassifier())
        pipeline.fit(data.X, data.y, **{name: data.environments})
        assert pipeline[0].parents_ == ("A1", "A2")
        assert pipeline[1].n_features_in_ == 2
        assert pipeline.score(data.X, data.y) > 0.95
        search = GridSearchCV(pipeline, {"invariantcausalprediction__alpha": [0.01, 0.05]}, cv=3)
        search.fit(data.X, data.y, **{name: data.environments})
        assert search.best_score_ > 0.95
        assert selector.fit_transform(data.X, data.y, environments=data.environments).shape[1] == 2


def test_output_may_be_a_frame(data):
    selector = InvariantCausalPrediction().set_output(transform="pandas")
    selected = selector.fit_transform(data.X, data.y, environments=data.environments)
    pd.testing.assert_frame_equal(selected, data.X[["A1", "A2"]])


def test_clone_keeps_every_parameter():
    changed = {"alpha": 0.01, "test": "chi2", "max_set_size": 3, "dof": "nominal", "max_levels": 2}
    changed |= {"conclusion": "best", "model": "tree", "max_features": 3, "max_leaves": 4}
    changed |= {"min_samples_leaf": 0.1, "max_thresholds": None, "random_state": 1}
    selector = InvariantCausalPrediction(**changed)
    assert set(changed) == set(selector.get_params())
    assert clone(selector).get_params() == changed


def test_the_old_name_says_what_to_use():
    with pytest.raises(AttributeError, match=r'use InvariantCausalPrediction\(model="tree"\)'):
        _ = icscm.TreeCausalPrediction


# --- errors -----------------------------------------------------------------

N = 40


def make_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["age", "dose", "sodium"])
    return X, rng.integers(0, 2, N), np.arange(N) % 2


def test_environments_are_required():
    X, y, _ = make_table()
    with pytest.raises(IcscmError, match=r"environments are missing.*pass fit\(X, y, environ"):
        InvariantCausalPrediction().fit(X, y)
    with pytest.raises(IcscmError, match="a single environment, 'north'; invariance needs") as seen:
        InvariantCausalPrediction().fit(X, y, environments=["north"] * N)
    assert "set covering machine" not in str(seen.value)
    with pytest.raises(IcscmError, match="environments has 3 entries but X has 40 rows"):
        InvariantCausalPrediction().fit(X, y, environments=[1, 2, 3])


def test_bad_data():
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match="X contains NaN in column 'dose'"):
        InvariantCausalPrediction().fit(X.assign(dose=np.nan), y, environments=environments)
    with pytest.raises(IcscmError, match=r"neither numbers nor booleans: 'sex' \(String\)"):
        InvariantCausalPrediction().fit(X.assign(sex="f"), y, environments=environments)
    with pytest.raises(IcscmError, match="Only binary classification is supported"):
        InvariantCausalPrediction().fit(X, np.arange(N) % 3, environments=environments)
    with pytest.raises(IcscmError, match="y holds one class only"):
        InvariantCausalPrediction().fit(X, np.ones(N), environments=environments)
    with pytest.raises(NotFittedError):
        InvariantCausalPrediction().get_support()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be a number between 0 and 1, both excluded; got 0"),
        ({"test": "fisher"}, "test must be one of 'g', 'chi2'; got 'fisher'"),
        ({"max_set_size": 0}, "max_set_size must be a whole number of at least 1, or None; got 0"),
        ({"dof": "exact"}, "dof must be one of 'adjusted', 'nominal'; got 'exact'"),
        ({"max_levels": 1}, "max_levels must be a whole number of at least 2; got 1"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match=re.escape(message)):
        InvariantCausalPrediction(**parameters).fit(X, y, environments=environments)


@pytest.mark.parametrize(
    ("n_features", "n_values", "parameters", "message"),
    [
        (21, 2, {}, "21 features make 2,097,152 sets to test, more than 1,048,576 (all sets of 20"),
        (21, 2, {}, "screen the features first, or set max_set_size=10 or less"),
        (200, 2, {"max_set_size": 3}, "make 1,333,501 sets of up to 3 to test"),
        (200, 2, {"max_set_size": 3}, "or set max_set_size=2 or less"),
        (15, 4, {}, "the joint table of 15 features would have 4,294,967,296 cells, more than"),
        (15, 4, {}, "choose a smaller max_levels, or set max_set_size=11 or less"),
        (2, 4000, {"max_levels": 4000}, "or set max_set_size=1 or less"),
    ],
)
def test_more_than_can_be_afforded(n_features, n_values, parameters, message):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(np.arange(4000) % n_values) for _ in range(n_features)])
    y = rng.integers(0, 2, 4000)
    with pytest.raises(IcscmError, match=re.escape(message)) as caught:
        InvariantCausalPrediction(**parameters).fit(X, y, environments=np.arange(4000) % 2)
    assert "\n" not in str(caught.value)


def test_many_features_with_a_bound_on_the_size():
    data = make_conjunction(2_000, 60, random_state=0)
    selector = InvariantCausalPrediction(max_set_size=2)
    selector.fit(data.X, data.y, environments=data.environments)
    assert selector.parents_ == ("A1", "A2")
    assert selector.n_sets_tested_ == 1 + 63 + 63 * 62 // 2


def test_constant_columns_carry_nothing(data):
    """A hundred of them: their table has few cells, but more dimensions than NumPy allows."""
    X = np.column_stack((data.X, np.ones((len(data.X), 100))))
    selector = InvariantCausalPrediction(max_set_size=2)
    selector.fit(X, data.y, environments=data.environments)
    assert selector.parents_ == (0, 1)
    without = InvariantCausalPrediction(max_set_size=2)
    without.fit(data.X.to_numpy(), data.y, environments=data.environments)
    assert selector.p_values_[:6].tolist() == without.p_values_.tolist()


def test_a_failed_fit_leaves_it_unfitted():
    X, y, _ = make_table()
    selector = InvariantCausalPrediction()
    with pytest.raises(IcscmError):
        selector.fit(X, y)
    with pytest.raises(NotFittedError):
        selector.transform(X.to_numpy())


def test_a_fit_forgets_the_one_before():
    """Names of a frame must not survive a second fit on an array, nor anything else."""
    X, y, environments = make_table()
    selector = InvariantCausalPrediction(alpha=1e-6).fit(X, y, environments=environments)
    assert hasattr(selector, "feature_names_in_")
    selector.fit(X.to_numpy(), y, environments=environments)
    fresh = InvariantCausalPrediction(alpha=1e-6)
    fresh.fit(X.to_numpy(), y, environments=environments)
    assert vars(selector).keys() == vars(fresh).keys()
    assert selector.parents_ == fresh.parents_


# --- groups ---------------------------------------------------------------------------------------


def make_visits(n_patients=150, n_visits=6, seed=0):
    """Visits of patients: the outcome depends on a cause, and on the patient."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), n_visits)
    hospital = patient % 3
    cause = np.repeat(rng.integers(0, 2, n_patients), n_visits)
    other = rng.integers(0, 2, len(patient))
    tendency = np.repeat(rng.normal(0, 1.5, n_patients), n_visits)
    chance = 1 / (1 + np.exp(-(2.0 * cause - 1 + tendency)))
    y = (rng.random(len(patient)) < chance).astype(int)
    return pd.DataFrame({"cause": cause, "other": other}), y, hospital, patient


def test_groups_keep_the_level():
    """Six visits of a patient counted as six patients: the set of the causes was rejected."""
    n_rejected = {"grouped": 0, "alone": 0}
    for seed in range(60):
        X, y, hospital, patient = make_visits(seed=seed)
        for name, groups in (("grouped", patient), ("alone", None)):
            with warnings.catch_warnings(action="ignore"):
                icp = InvariantCausalPrediction().fit(X, y, environments=hospital, groups=groups)
            n_rejected[name] += ("cause",) not in icp.accepted_sets_
    assert n_rejected["grouped"] <= 8
    assert n_rejected["alone"] >= 18


def test_groups_of_single_rows_change_nothing_much_and_may_be_a_column():
    X, y, hospital, patient = make_visits()
    with warnings.catch_warnings(action="ignore"):
        alone = InvariantCausalPrediction().fit(X, y, environments=hospital)
        single = InvariantCausalPrediction().fit(
            X, y, environments=hospital, groups=np.arange(len(y))
        )
        grouped = InvariantCausalPrediction().fit(X, y, environments=hospital, groups=patient)
        named = InvariantCausalPrediction().fit(
            X.assign(patient=patient), y, environments=hospital, groups="patient"
        )
    assert single.n_sets_tested_ == alone.n_sets_tested_
    for p_alone, p_single in zip(alone.p_values_, single.p_values_, strict=True):
        assert p_single == pytest.approx(p_alone, abs=0.01)
    assert (named.p_values_ == grouped.p_values_).all()
    assert (grouped.p_values_ >= alone.p_values_).all()


def test_strata_of_rows_are_those_of_the_tables():
    rng = np.random.default_rng(0)
    columns = np.column_stack([rng.integers(0, n, 200) for n in (2, 3, 4, 2)])
    outcomes, environments = rng.integers(0, 2, 200), rng.integers(0, 3, 200)
    counts = make_level_counts(columns, outcomes, environments, 3, 4)
    n_tables = 0
    for table in table_sets._walk_all(counts, 3):
        strata = table_sets.number_strata(counts, table.columns)
        n_rows = np.bincount(strata, minlength=len(table.strata))
        assert (n_rows == table.strata.sum(axis=(1, 2))).all()
        n_tables += 1
    assert n_tables == 15


def test_trees_take_no_groups():
    X, y, hospital, patient = make_visits()
    with pytest.raises(IcscmError, match="groups cannot be used with model='tree'"):
        InvariantCausalPrediction(model="tree").fit(X, y, environments=hospital, groups=patient)
