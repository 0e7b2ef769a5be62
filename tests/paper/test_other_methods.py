"""Forward selection by least squares, and anchor boosting with environments as anchors."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from paper import anchor, forward, screen_outcomes
from paper.screen_outcomes import ANCHOR, STUDIES


def make_table(seed=0):
    """Two causes, noise, a category, and a number that serves two of five environments."""
    rng = np.random.default_rng(seed)
    n_rows = 2_000
    places = np.repeat(list("abcde"), n_rows // 5)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["cause", "cause2", "noise"])
    X["level"] = pd.Categorical(rng.choice(["u", "v", "w"], n_rows))
    X.loc[::7, "noise"] = np.nan
    y = (X["cause"] + 0.7 * X["cause2"] + rng.normal(size=n_rows)).to_numpy()
    sign = np.where(np.isin(places, ["a", "b"]), 1.0, -1.0)
    X["shortcut"] = sign * y + rng.normal(size=n_rows)
    return X, y, places


def test_forward_selection_of_numbers_adds_what_generalises():
    X, y, places = make_table()
    assert forward.select_forward(X, y, places, is_number=True) == ["cause", "cause2"]


def test_forward_selection_of_classes_adds_what_generalises():
    X, y, places = make_table()
    classes = np.digitize(y, [-0.7, 0.7])
    chosen = forward.select_forward(X, classes, places, is_number=False)
    assert chosen[:2] == ["cause", "cause2"]
    assert "shortcut" not in chosen


def test_a_regression_from_sums_is_that_of_the_other_rows():
    """The slow twin: fit on the rows of the other environments, test on those left out."""
    X, y, places = make_table()
    Z = np.column_stack((np.ones(len(y)), X["cause"], X["cause2"]))
    parts = forward.leave_out(Z, forward.as_outputs(y, is_number=True), places)
    penalty = np.diag([1e-6, forward.RIDGE, forward.RIDGE])
    scores = []
    for name in np.unique(places):
        inside, outside = places != name, places == name
        beta = np.linalg.solve(Z[inside].T @ Z[inside] + penalty, Z[inside].T @ y[inside])
        residuals = y[outside] - Z[outside] @ beta
        scores.append(1 - (residuals**2).mean() / y[outside].var())
    wanted = np.mean(scores) - np.std(scores, ddof=1)
    assert forward.validate(parts, [0, 1, 2], is_number=True) == pytest.approx(wanted)


def test_an_outcome_that_does_not_vary_in_any_environment_selects_nothing():
    X, _, places = make_table()
    assert forward.select_forward(X, np.ones(len(X)), places, is_number=True) == []


# --- anchor boosting ------------------------------------------------------------------------------


def test_levels_that_were_not_learned_are_missing():
    X = pd.DataFrame({"a": [1.0, np.nan], "b": pd.Categorical(["u", "v"]), "c": [True, False]})
    codes = anchor.Codes.learn(X)
    assert codes.categorical == [1]
    other = pd.DataFrame({"a": [2.0, 3.0], "b": ["v", "new"], "c": [False, True]})
    expected = [[2.0, codes.levels["b"].index("v"), 0.0], [3.0, np.nan, 1.0]]
    np.testing.assert_array_equal(codes.encode(other), expected)


class FakeBooster:
    """Predicts the mean, and more the larger gamma is and the more trees there are."""

    def __init__(self, gamma, num_boost_round, **_options):
        self.gamma = gamma
        self.n_trees = num_boost_round

    def fit(self, X, y, Z, categorical_feature):
        assert len(X) == len(y) == len(Z)
        assert set(Z) == set(range(Z.max() + 1))
        self.mean = y.mean()
        return self

    def predict(self, X, num_iteration):
        is_best = (self.gamma, num_iteration) == (5.0, 30)
        return np.full(len(X), self.mean + (0.0 if is_best else 1.0))


@pytest.fixture
def fake_package(monkeypatch):
    package = ModuleType("anchorboosting")
    package.AnchorBooster = FakeBooster
    package.__spec__ = ModuleSpec("anchorboosting", None)
    monkeypatch.setitem(sys.modules, "anchorboosting", package)


@pytest.mark.usefixtures("fake_package")
def test_gamma_and_trees_are_those_that_do_best_in_environments_left_out():
    X, y, places = make_table()
    model = anchor.AnchorBoosting().fit(X, y, places)
    assert (model.gamma_, model.n_trees_) == (5.0, 30)
    assert model.predict(X) == pytest.approx(np.full(len(X), y.mean()))
    assert ANCHOR in screen_outcomes.list_methods(STUDIES["heart-rate"])
    assert ANCHOR not in screen_outcomes.list_methods(STUDIES["heart-pain"])


def test_anchor_boosting_is_left_out_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(anchor, "find_spec", lambda _name: None)
    assert ANCHOR not in screen_outcomes.list_methods(STUDIES["heart-rate"])
    assert "Anchor boosting was left out" in [*screen_outcomes._find([])][-1]


def test_anchor_boosting_itself():
    pytest.importorskip("anchorboosting")
    X, y, places = make_table()
    model = anchor.AnchorBoosting().fit(X.drop(columns="shortcut"), y, places)
    residuals = y - model.predict(X.drop(columns="shortcut"))
    assert (residuals**2).mean() < 0.7 * y.var()
