"""Comparisons: each number is a fit to the training part and a score on the test part."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import ttest_1samp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    leave_one_environment_out,
)
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.validation.candidates import DEFAULT, TableReader, make_candidates
from icscm.validation.cohort import make_cohort
from icscm.validation.fitting import get_values
from icscm.validation.folds import deal_rows
from icscm.validation.scores import score_calibration
from support.drawings import find_texts

# that data are few, or that nothing was found, is not the matter here
pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

MEASURES = ["auc", "log_loss", "slope", "intercept", "error", "balanced_accuracy"]


@pytest.fixture(scope="module")
def data():
    return make_conjunction(1000, 2, n_environments=3, random_state=2)


@pytest.fixture(scope="module")
def comparison(data):
    """A rule set and a tree of scikit-learn's, in two folds."""
    return compare(*data[:2], environments=data[2], candidates=["icscm", "plain-tree"], n_folds=2)


def make_mixed(n=900, seed=0):
    """Numbers, text, booleans, missing values, an identifier and a rare environment."""
    rng = np.random.default_rng(seed)
    age, kind = rng.normal(50, 10, n).round(), rng.choice(["a", "b", "c"], n)
    y = ((age > 50) & (kind != "a")) ^ (rng.random(n) < 0.1)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "kind": np.where(rng.random(n) < 0.1, None, kind),
            "flag": rng.random(n) < 0.5,
        }
    )
    places = np.array(["north", "south", "west", "tiny"])
    return frame, y.astype(int), places[rng.choice(4, n, p=[0.33, 0.33, 0.33, 0.01])]


def test_every_number_is_a_fit_and_a_score(data):
    own = {"rule": ICSCMClassifier(), "plain": SCMClassifier(), "bayes": GaussianNB()}
    found = compare(data.X, data.y, environments=data.environments, candidates=own)
    dealt = deal_rows(make_cohort(*data[:2], environments=data[2]), 3, 0)
    cells = pd.DataFrame({"fold": dealt, "y": data.y, "place": data.environments}).value_counts()
    assert len(cells) == 18
    assert cells.groupby(["y", "place"]).apply(np.ptp).max() <= 1  # stratified
    out = [dealt == fold for fold in range(3)]
    assert [each.name for each in found.candidates] == ["baseline", *own]
    assert [each.kind for each in found.candidates] == ["baseline", "invariant", "rules", "other"]
    for each in found.candidates:
        estimator = own.get(each.name, DummyClassifier(strategy="prior"))
        wanted = [score_without(estimator, data, rows) for rows in out]
        known = [[v for v in values if v is not None] for values in zip(*wanted, strict=True)]
        means = [np.mean(values) if values else None for values in known]
        assert each.rows == pytest.approx(dict(zip(MEASURES, means, strict=True)))
        elsewhere = leave_one_environment_out(
            estimator, *data[:2], environments=data[2], scorers=MEASURES
        )
        assert each.by_environment == tuple(
            pytest.approx(get_values(place.scores)) for place in elsewhere.held_out
        )
        assert each.environments == pytest.approx(elsewhere.mean_scores)
        errors = [place.scores["error"].value for place in elsewhere.held_out]
        assert each.worst["error"] == pytest.approx(max(errors))
        test = ttest_1samp(errors, 0).confidence_interval()
        assert each.intervals["error"] == pytest.approx((max(test.low, 0), test.high))
        assert each.seconds > 0
    assert found.candidates[1].model == str(
        ICSCMClassifier().fit(data.X, data.y, environments=data.environments).model_
    )
    assert found.candidates[3].model is None
    constant, rule = found.candidates[:2]
    gain, low, high = rule.gain
    assert gain == pytest.approx(constant.rows["error"] - rule.rows["error"], abs=1e-3)
    assert low < gain < high
    assert constant.gain == (0, 0, 0)


def score_without(estimator, data, out):
    known = {"environments": data.environments[~out]} if hasattr(estimator, "fit_counts") else {}
    fitted = estimator.fit(data.X[~out], data.y[~out], **known)
    predicted, chance = fitted.predict(data.X[out]), fitted.predict_proba(data.X[out])[:, 1]
    y = data.y[out]
    found = score_calibration(y, chance)
    calibration = [each and each.value for each in (found.intercept, found.slope)]
    labels = np.mean(predicted != y), balanced_accuracy_score(y, predicted)
    return roc_auc_score(y, chance), log_loss(y, chance), *calibration[::-1], *labels


def test_mixed_tables_of_any_kind():
    X, y, environments = make_mixed()
    names, settings = ["icscm", "logistic"], {"n_folds": 2, "min_rows": 250}
    comparison = compare(X, y, environments=environments, candidates=names, **settings)
    assert list(comparison.dropped) == ["id"]
    assert not any(candidate.failure for candidate in comparison.candidates)
    assert comparison.environments
    assert "tiny" in comparison.kept_in
    frame = comparison.to_frame().drop(columns="fit_seconds")
    baseline, _, logistic = frame["rows_error"]
    assert logistic < 0.3 < baseline
    for table in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        again = compare(
            table, y, environments=environments, candidates=names, **settings
        ).to_frame()
        pd.testing.assert_frame_equal(again.drop(columns="fit_seconds"), frame)


@pytest.mark.parametrize("name", ["plain-tree", "plain-forest", "logistic", "boosting"])
def test_scikit_learns_classifiers_read_mixed_tables(name):
    """Numbers, text, booleans and missing values, and levels that training does not have."""
    X, y, _ = make_mixed(400)
    later = X.assign(kind=X["kind"].replace("c", "new"))
    fitted = make_candidates()[name].fit(X, y)
    for table in (X, pl.from_pandas(X)):
        assert fitted.score(table, y) > 0.7
    assert np.isfinite(fitted.predict_proba(later)).all()


def test_candidates_are_what_their_names_say():
    """Each of ours differs from its default by what the name says, and by nothing else."""
    candidates = make_candidates()
    shared = {"n_jobs": -1}
    assert len(candidates) == 18
    assert {*DEFAULT} <= {*candidates}
    rules = {
        "scm": SCMClassifier(**shared),
        "icscm": ICSCMClassifier(**shared),
        "icscm-balanced": ICSCMClassifier(**shared, p="balanced"),
        "icscm-exhaustive": ICSCMClassifier(**shared, search="exhaustive"),
        "icscm-equivalence": ICSCMClassifier(**shared, margin=0.05),
    }
    disjunctions = {
        f"{name}-or": clone(learner).set_params(model_type="disjunction")
        for name, learner in rules.items()
    }
    others = {
        "tree": InvariantTreeClassifier(**shared),
        "forest": InvariantForestClassifier(**shared, random_state=0),
        "score": InvariantScoreClassifier(**shared, random_state=0),
    }
    for name, learner in (rules | disjunctions | others).items():
        assert repr(candidates[name]) == repr(learner), name
    plain = "plain-tree", "plain-forest", "logistic", "boosting"
    last_steps = {name: candidates[name][-1] for name in plain}
    assert [type(step).__name__ for step in last_steps.values()] == [
        "DecisionTreeClassifier",
        "RandomForestClassifier",
        "LogisticRegression",
        "HistGradientBoostingClassifier",
    ]
    assert last_steps["plain-tree"].max_leaf_nodes == 16
    assert {candidates[name][0].rare for name in plain[:3]} == {0.01}
    assert candidates["boosting"][0].rare == 0.001


@pytest.mark.thorough
def test_every_candidate_has_a_name_and_can_be_fitted(data):
    names = [name for name in make_candidates() if name != "boosting"]
    found = compare(*data[:2], environments=data[2], candidates=names, n_folds=2)
    assert [each.name for each in found.candidates] == names
    assert found.to_frame()["rows_error"].notna().all()


def test_arrays_and_lists(data, comparison):
    for X in (data.X.to_numpy(), data.X.to_numpy().tolist()):
        found = compare(
            X,
            data.y.tolist(),
            environments=data.environments,
            candidates=["icscm", "plain-tree"],
            n_folds=2,
        )
        assert [e.rows for e in found.candidates] == [e.rows for e in comparison.candidates]


def test_what_cannot_be_fitted_says_why_and_stops_nobody(data):
    class Moody(LogisticRegression):
        def fit(self, X, y):
            raise RuntimeError("not today")

    two = data.environments < 2
    X, y, environments = data.X[two], data.y[two], data.environments[two]
    own = {"moody": Moody(), "icscm": ICSCMClassifier(), "bayes": GaussianNB()}
    found = compare(X, y, environments=environments, candidates=own)
    _, moody, icscm, bayes = found.candidates
    assert moody.failure == "RuntimeError: not today"
    assert moody.rows == dict.fromkeys(MEASURES)
    assert moody.gain is None
    assert np.isnan(moody.seconds)
    assert "single environment" in icscm.failure
    assert icscm.rows["error"] < 0.2
    assert icscm.environments == icscm.worst == dict.fromkeys(MEASURES)
    assert bayes.failure is None
    assert not any("moody" in sentence for sentence in found.conclusions)
    assert "| moody | - | - |" in found.to_markdown()
    found.plot()


def test_conclusions_tell_the_truth(data, comparison):
    sentences = comparison.conclusions
    assert any("points less than the baseline" in each for each in sentences)
    noise = np.random.default_rng(0).random((len(data.y), 2))
    own = {"icscm": ICSCMClassifier(), "logistic": LogisticRegression()}
    found = compare(noise, data.y, environments=data.environments, candidates=own, n_folds=2)
    assert (
        "Cross-validation by rows: no candidate has a smaller error at 0.5 than the "
        f"majority-class baseline, {data.y.mean():.1%}."
    ) in found.conclusions
    assert any("has the largest AUC" in each for each in sentences)


def test_conclusions_lead_with_discrimination_and_calibration(data):
    """They led with an error at no named threshold, and called a points score a rule set."""
    own = {
        # without a tolerance no column is screened, which takes seconds
        "points": InvariantScoreClassifier(max_terms=2, tolerance=None, random_state=0),
        "logistic": LogisticRegression(),
        "rules": ICSCMClassifier(),
    }
    found = compare(*data[:2], environments=data[2], candidates=own, n_folds=2)
    assert [each.kind for each in found.candidates[1:]] == ["scores", "other", "invariant"]
    best = max(found.candidates, key=lambda each: each.environments["auc"])
    (low, high), slope = best.intervals["auc"], best.environments["slope"]
    assert found.conclusions[0].startswith(
        f"Leave-one-environment-out: {best.name} has the largest AUC, "
        f"{best.environments['auc']:.3f} ({low:.3f} to {high:.3f}), with calibration slope "
        f"{slope:.2f} ("
    )
    is_about_errors = [" at 0.5" in each for each in found.conclusions]
    assert sum(is_about_errors) > 2
    assert is_about_errors == sorted(is_about_errors)
    told = "\n".join(found.conclusions)
    assert "Best of the rule sets at 0.5: rules" in told
    assert not re.search("rule sets[^:]*: points", told)
    assert not any("error" in each and "at 0.5" not in each for each in found.conclusions)


def test_a_rule_that_is_worse_than_the_baseline_is_named():
    """Without a baseline in the table, a rule with an error of 71% looked acceptable."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    y = (rng.random(2000) < 0.1).astype(int)
    environments = rng.integers(0, 3, 2000)
    contrary = LogisticRegression(class_weight={0: 1, 1: 100})
    found = compare(
        x, y, environments=environments, candidates={"contrary": contrary, "scm": SCMClassifier()}
    )
    worse = found.candidates[1]
    assert worse.gain[2] < 0
    alone = compare(
        x,
        y,
        environments=environments,
        candidates={"rule": SCMClassifier(p=0.05, model_type="disjunction")},
    )
    assert any("points more than the baseline" in each for each in alone.conclusions)


def test_no_environment_is_large_enough():
    X, y, environments = make_mixed()
    found = compare(
        X, y, environments=environments, candidates=["plain-tree"], n_folds=2, min_rows=1000
    )
    assert found.environments == ()
    assert found.candidates[1].environments == dict.fromkeys(MEASURES)
    assert len(found.kept_in) == 4
    assert all("environment" not in each for each in found.conclusions)


def test_many_environments_are_held_out_in_ten_parts():
    """Each is scored by itself, by a model that saw none of its part."""
    rng = np.random.default_rng(0)
    places = np.repeat(np.arange(12), np.arange(40, 64, 2))
    X, y = places[:, np.newaxis].astype(float), rng.integers(0, 2, len(places))
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            seen.append({*np.unique(X).astype(int).tolist()})
            return super().fit(X, y)

    found = compare(
        X, y, environments=places, candidates={"spy": Spy()}, n_folds=2, min_rows=2, min_positives=1
    )
    assert found.environments == tuple(range(12))
    left_out = [{*range(12)} - each for each in seen[2:]]
    assert sorted(left_out, key=min) == [{0, 10}, {1, 11}, *({k} for k in range(2, 10))]
    alone = leave_one_environment_out(GaussianNB(), X, y, environments=places, scorers=["error"])
    for k in range(2, 10):
        own = found.candidates[1].by_environment[k]
        assert own["error"] == pytest.approx(alone.held_out[k].scores["error"].value)


def test_environments_of_the_same_text_stay_apart(data):
    """`to_dict` merged the environments 1 and "1": keys are positions now."""
    places = np.array([1, "1", 2], dtype=object)[data.environments]
    found = compare(data.X, data.y, environments=places, candidates=["scm"], n_folds=2).to_dict()
    assert found["environments"].count("1") == 2
    scores = found["candidates"][1]["by_environment"]
    assert [each["environment"] for each in scores] == found["environments"]
    small = compare(
        data.X, data.y, environments=places, candidates=["scm"], n_folds=2, min_rows=5000
    ).to_dict()
    assert [each["n_rows"] for each in small["kept_in"]] == [1000] * 3


def test_cells_smaller_than_the_number_of_folds():
    """Where no label had 5 rows in any environment, the folds failed with a raw ValueError."""
    rng = np.random.default_rng(0)
    places, y = np.repeat(np.arange(10), 4), np.tile([0, 1, 0, 1], 10)
    found = compare(
        rng.random((40, 2)), y, environments=places, candidates=["plain-tree"], n_folds=5
    )
    assert found.candidates[1].failure is None
    assert 0 <= found.candidates[1].rows["error"] <= 1


def test_two_environments_are_said_to_be_two(data, comparison):
    """Held-out figures came from one environment, and nothing said so."""
    two = data.environments < 2
    own = {"bayes": GaussianNB()}
    found = compare(
        data.X[two], data.y[two], environments=data.environments[two], candidates=own, n_folds=2
    )
    assert (
        "each held-out score comes from a model learned in one environment" in found.conclusions[0]
    )
    assert not any("learned in one environment" in line for line in comparison.conclusions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": ["jungle"]}, "no candidate 'jungle'"),
        ({"candidates": ["tre"]}, "did you mean 'tree'"),
        ({"candidates": {"mine": LogisticRegression}}, "candidate 'mine' must be a classifier"),
        ({"candidates": {"baseline": GaussianNB()}}, "rename the candidate"),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
        ({"min_rows": 0.5}, "min_rows must be"),
        ({"min_positives": -1}, "min_positives must be"),
        ({"y": np.zeros(3000)}, "one class only"),
        ({"y": np.arange(3000) == 7}, "needs 3 rows of each class; one has 1; use fewer folds"),
        ({"environments": None}, "one label per row"),
        ({"environments": np.zeros(3000)}, "single environment"),
    ],
)
def test_errors(arguments, message, data):
    usual = {"X": data.X, "y": data.y, "environments": data.environments}
    with pytest.raises(IcscmError, match=message):
        compare(**(usual | arguments))


def test_the_plot_names_each_candidate(data):
    found = compare(*data[:2], environments=data[2], candidates={"a$b$": GaussianNB()}, n_folds=2)
    texts = find_texts(found.plot())
    assert {"baseline", "a$b$", "AUC", "Log loss", "Calibration slope", "Error"} <= {*texts}


def test_levels_are_pooled_and_missing_ones_kept_apart():
    train = pd.DataFrame({"kind": ["a"] * 50 + ["b"] * 49 + ["c"], "n": np.arange(100.0)})
    reader = TableReader(rare=0.1).fit(train)
    later = pd.DataFrame({"kind": ["b", "c", "new", None], "n": [1, None, 3, 4]})
    read = reader.transform(later)
    assert read["x0"].cat.codes.tolist() == [1, 2, 2, 3]
    assert read["x1"].isna().tolist() == [False, True, False, False]
    nothing = pd.DataFrame({"kind": np.array([np.nan, np.nan], dtype=object), "n": [None, None]})
    read = reader.transform(nothing)
    assert read["x0"].cat.codes.isin([2, 3]).all()
    assert read["x1"].isna().all()


def test_dates_are_nobodys_business():
    X, y, environments = make_mixed()
    X["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(X)) % 9, unit="D")
    found = compare(
        X, y, environments=environments, candidates=["icscm", "logistic"], n_folds=2, min_rows=1000
    )
    assert "when" in found.dropped
    assert not any(each.failure for each in found.candidates)


def test_trees_and_forests_among_the_candidates(data):
    own = {
        "tree": InvariantTreeClassifier(),
        "forest": InvariantForestClassifier(n_estimators=5, random_state=0),
    }
    found = compare(*data[:2], environments=data[2], candidates=own, n_folds=2)
    assert [each.kind for each in found.candidates] == ["baseline", "trees", "trees"]
    assert not any(each.failure for each in found.candidates)
    _, tree, forest = found.candidates
    assert tree.model.startswith(
        "tree of 2 splits on A1, A2"
    )  # a line, where a tree prints as several
    assert forest.model.startswith("forest of 5 trees on ")
    for each in (tree, forest):
        elsewhere = leave_one_environment_out(
            own[each.name], *data[:2], environments=data[2], scorers=list(each.environments)
        )
        assert each.environments == pytest.approx(elsewhere.mean_scores)
        assert elsewhere.to_frame()["model"].str.startswith(each.name).all()


def test_all_of_ours_that_are_worse_than_the_baseline_are_named():
    """Only the best of ours was compared with the baseline; worse ones were not mentioned."""
    rng = np.random.default_rng(3)
    places = np.repeat([0, 1, 2], 300)
    y = (rng.random(900) < 0.3).astype(int)
    shortcut = np.where(places == 2, 1 - y, y)
    X = pd.DataFrame({"shortcut": np.where(rng.random(900) < 0.9, shortcut, rng.random(900) < 0.3)})
    own = {"plain": InvariantTreeClassifier(tolerance=None), "rules": SCMClassifier()}
    sentences = compare(X, y, environments=places, candidates=own, n_folds=2).conclusions
    (told,) = (
        each for each in sentences if each.startswith("Leave-one-environment-out: a larger error")
    )
    assert "plain (by " in told
    assert "rules (by " in told
