"""Columns that hold no value: in the whole table, in a fold, at a new site."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    evaluate,
    leave_one_environment_out,
)
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.sources import open_files
from icscm.validation.screening import validate_screen
from support.fitting import fit_quietly

OURS = {
    "rule": ICSCMClassifier(),
    "scm": SCMClassifier(),
    "tree": InvariantTreeClassifier(),
    "score": InvariantScoreClassifier(random_state=0),
}


def make_frame():
    """Three hospitals, of which the first alone measures lactate; none measures ph."""
    rng = np.random.default_rng(0)
    site = np.repeat(["a", "b", "c"], 200)
    age = rng.normal(60, 10, 600).round()
    y = (rng.random(600) < 1 / (1 + np.exp((60 - age) / 4))).astype(int)
    frame = pd.DataFrame({"age": age, "noise": rng.normal(size=600)})
    frame["ph"] = np.nan
    frame["lactate"] = np.where(site == "a", y + rng.normal(size=600), np.nan)
    return frame, y, site


FRAME, Y, SITE = make_frame()
BOOSTING = HistGradientBoostingClassifier(max_iter=5)
KINDS = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME, nan_to_null=False),
    "nulls": pl.from_pandas(FRAME),
    "array": FRAME.to_numpy(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_another_learner_is_validated_without_what_a_fold_lacks(kind):
    """scikit-learn's boosting raised "window shape cannot be larger than input array shape"."""
    validation = leave_one_environment_out(BOOSTING, KINDS[kind], Y, environments=SITE)
    name = 3 if kind == "array" else "lactate"
    assert [environment.dropped for environment in validation.held_out] == [(name,), (), ()]
    text = "x3" if kind == "array" else "lactate"
    assert f"Dropped: {text} without a (all values are missing)" in validation.lines
    assert f"Dropped: {text} without a" in repr(validation)
    assert validation.to_dict()["environments"][0]["dropped"] == [name]
    assert validation.held_out[0].scores["auc"].value > 0.7


@pytest.mark.parametrize("name", OURS)
def test_our_learners_drop_it_in_that_fold(name):
    """The fit on all rows drops what is missing everywhere, and says so by name."""
    learner = OURS[name]
    validation = leave_one_environment_out(learner, FRAME, Y, environments=SITE)
    assert [environment.dropped for environment in validation.held_out] == [("lactate",), (), ()]
    fitted = fit_quietly(learner, FRAME, Y, SITE)
    assert fitted.dropped_columns_ == {"ph": "all values are missing"}


def test_nothing_is_said_where_nothing_is_dropped():
    learner = InvariantTreeClassifier()
    validation = leave_one_environment_out(learner, FRAME[["age"]], Y, environments=SITE)
    assert not any(line.startswith("Dropped") for line in validation.lines)
    # what all folds lack is said by the fit on all rows
    validation = leave_one_environment_out(learner, FRAME[["age", "ph"]], Y, environments=SITE)
    assert not any(line.startswith("Dropped") for line in validation.lines)


@pytest.mark.parametrize("kind", ["pandas", "array"])
def test_a_screen_is_validated_without_what_a_fold_lacks(kind):
    """The learner on all columns crashed in the fold, and `icscm screen --validate` with it."""
    selector = InvariantFeatureSelector(BOOSTING, random_state=0, cv=2)
    validation = validate_screen(selector, KINDS[kind], Y, environments=SITE)
    names = ("x3", "x2") if kind == "array" else ("lactate", "ph")
    assert [environment.dropped_names for environment in validation.held_out] == [
        [names[0]],
        [],
        [],
    ]
    assert f"Dropped in single folds: {names[0]} without a (all values are" in validation.text
    assert validation.to_frame()["dropped"].tolist() == [names[0], "", ""]
    assert all(names[1] in environment.rejected_names for environment in validation.held_out)


def test_all_candidates_of_a_comparison_are_scored():
    """Boosting "failed on some folds": those without the only hospital that measures lactate."""
    comparison = compare(
        FRAME,
        Y,
        environments=SITE,
        candidates={"tree": InvariantTreeClassifier(), "boosting": BOOSTING},
        n_folds=3,
    )
    assert all(each.failure is None for each in comparison.candidates)


@pytest.mark.parametrize("kind", ["array", "file"])
def test_arrays_and_files_drop_it_too(kind, tmp_path):
    """Columns of arrays were not dropped, and files said that it was "the same in every row"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if kind == "array":
            learner = InvariantTreeClassifier().fit(FRAME.to_numpy(), Y, environments=SITE)
        else:
            FRAME.assign(y=Y, site=SITE).to_parquet(tmp_path / "rows.parquet")
            with open_files(tmp_path / "rows.parquet", "y", environments="site") as countable:
                learner = InvariantTreeClassifier().fit_counts(countable)
    name = 2 if kind == "array" else "ph"
    assert learner.dropped_columns_ == {name: "all values are missing"}
    left_out = [str(each.message) for each in caught if each.category is LeftOutWarning]
    assert left_out[0].startswith("Dropped: column ")
    assert left_out[0].endswith(" (all values are missing).")


# --- a new site -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text_model():
    """A tree on a number and a text."""
    rng = np.random.default_rng(1)
    sex = np.where(rng.random(600) < 0.5, "f", "m")
    y = (rng.random(600) < np.where(sex == "m", 0.9, 0.2)) | (FRAME["age"] > 75)
    X = pd.DataFrame({"age": FRAME["age"], "sex": sex, "unused": rng.normal(size=600)})
    learner = fit_quietly(InvariantTreeClassifier(), X, y.astype(int), SITE)
    assert {*learner.features_used_} == {"age", "sex"}
    return learner, X, y.astype(int)


@pytest.mark.parametrize("make", [np.array, pd.Series], ids=["numbers", "text"])
def test_a_text_that_a_site_does_not_record_is_missing_there(text_model, make):
    """A column of nothing is read as numbers: it "held categories at fitting and holds numbers"."""
    learner, X, y = text_model
    nothing = make([np.nan] * len(X)) if make is np.array else make([None] * len(X), dtype=object)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        predicted = learner.predict_proba(X.assign(sex=nothing))[:, 1]
        assert learner.predict(X.assign(sex=nothing).to_numpy(dtype=object)).shape == (600,)
        assert evaluate(learner, X.assign(sex=nothing), y).overall.n_samples == 600
    assert 0.2 < predicted.mean() < 0.9


def test_absent_columns_are_named_unless_the_model_does_not_use_them(text_model):
    learner, X, y = text_model
    assert learner.predict(X[["sex", "age"]]).shape == (600,)
    assert evaluate(learner, X[["sex", "age"]], y).overall.n_samples == 600
    used = ", ".join(map(repr, learner.features_used_))
    for predict in (learner.predict, lambda rows: evaluate(learner, rows, y)):
        with pytest.raises(IcscmError, match=f"X lacks columns {used}, which the model uses"):
            predict(X[["unused"]])
