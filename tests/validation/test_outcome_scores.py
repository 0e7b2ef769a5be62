"""Scores of several classes and of numbers, and studies of such outcomes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from icscm import InvariantTreeClassifier, compare, leave_one_environment_out
from icscm.exceptions import IcscmError
from icscm.validation.cohort import drop_columns, make_any_cohort
from icscm.validation.outcome_scores import score_rows


@pytest.fixture(scope="module")
def table():
    """A number that follows a column, in four environments."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    return X, X[:, 0] + rng.normal(size=800), np.arange(800) % 4


def cut(y):
    return np.array(["low", "middle", "high"])[np.digitize(y, [-0.6, 0.6])]


def test_scores_equal_those_of_scikit_learn_with_weights(table):
    X, y, site = table
    weights = np.random.default_rng(1).random(800)
    regression = LinearRegression().fit(X, y)
    rows = make_any_cohort(X, y, environments=site, is_number=True, sample_weight=weights)
    scores = score_rows(regression, rows)
    predicted = regression.predict(X)
    assert scores["r2"].value == pytest.approx(r2_score(y, predicted, sample_weight=weights))
    squares = np.average((y - predicted) ** 2, weights=weights)
    assert scores["rmse"].value == pytest.approx(squares**0.5)
    assert all(score.low < score.value < score.high for score in scores.values())

    classes = cut(y)
    logistic = LogisticRegression().fit(X, classes)
    rows = make_any_cohort(X, classes, environments=site, is_number=False)
    scores = score_rows(logistic, rows)
    probabilities = logistic.predict_proba(X)
    auc = roc_auc_score(classes, probabilities, multi_class="ovr")
    assert scores["mean_auc"].value == pytest.approx(auc)
    assert scores["log_loss"].value == pytest.approx(log_loss(classes, probabilities))


def test_regressors_and_several_classes_are_left_out_environment_by_environment(table):
    X, y, site = table
    validation = leave_one_environment_out(LinearRegression(), X, y, environments=site)
    frame = validation.to_frame()
    is_new = site == 2
    regression = LinearRegression().fit(X[~is_new], y[~is_new])
    assert frame["r2"][2] == pytest.approx(r2_score(y[is_new], regression.predict(X[is_new])))
    assert "n_positive" not in frame
    assert validation.pooled["rmse"].n_environments == 4
    assert "R2: " in validation.lines[0]

    several = leave_one_environment_out(LogisticRegression(), X, cut(y), environments=site)
    assert several.to_frame()["mean_auc"].between(0.6, 1.0).all()
    with pytest.raises(IcscmError, match="'auc' is a score of two classes"):
        leave_one_environment_out(
            LogisticRegression(), X, cut(y), environments=site, scorers=["auc"]
        )


@pytest.mark.parametrize(
    "study",
    [
        lambda X, y, site: InvariantTreeClassifier().fit(X, y, environments=site),
        lambda X, y, site: compare(X, y, environments=site),
        lambda X, y, site: leave_one_environment_out(
            InvariantTreeClassifier(), X, y, environments=site
        ),
    ],
)
def test_what_knows_two_classes_names_the_screen(table, study):
    X, y, site = table
    with pytest.raises(IcscmError, match=r"use InvariantFeatureSelector$"):
        study(X, cut(y), site)


def test_a_copy_of_a_number_in_other_units_is_dropped():
    """A numeric outcome has no classes to be copied; columns without repeats looked like copies."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    X = pd.DataFrame({"inches": y / 2.54 + 1, "age": rng.normal(size=300)})
    cohort = make_any_cohort(X, y, environments=np.arange(300) % 3, is_number=True)
    rest, dropped = drop_columns(cohort)
    assert list(dropped) == ["inches"]
    assert list(rest.X.columns) == ["age"]
