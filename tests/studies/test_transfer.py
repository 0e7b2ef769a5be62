"""Learning without an environment and scoring on it."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError

# that data are few, or that nothing was found, is not the matter here
pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

NAMES = np.array(["north", "south", "west"])


@pytest.fixture(scope="module")
def data():
    return make_conjunction(3000, 2, n_environments=3, random_state=2)


@pytest.mark.parametrize("learner", [SCMClassifier(), ICSCMClassifier()], ids=repr)
def test_each_entry_is_a_fit_without_and_a_score_on(learner, data):
    environments = NAMES[data.environments]
    found = leave_one_environment_out(learner, data.X, data.y, environments)
    assert not hasattr(learner, "model_")
    assert [each.environment for each in found.held_out] == NAMES.tolist()
    for each in found.held_out:
        out = environments == each.environment
        learner.fit(data.X[~out], data.y[~out], environments=environments[~out])
        assert each.model == str(learner.model_)
        assert each.accuracy == learner.score(data.X[out], data.y[out])
        assert each.error == 1 - each.accuracy
        assert each.training_accuracy == learner.score(data.X[~out], data.y[~out])
        assert each.n_samples == out.sum()
        most = np.bincount(data.y[~out]).argmax()
        assert each.majority_accuracy == (data.y[out] == most).mean()
    assert found.worst_accuracy == found.to_frame()["accuracy"].min()
    assert found.mean_accuracy == pytest.approx(found.to_frame()["accuracy"].mean())
    assert found.to_frame()["environment"].tolist() == NAMES.tolist()
    del learner.model_


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pd.DataFrame(columns).to_numpy()],
    ids=["pandas", "polars", "arrow", "array"],
)
def test_any_table(make, data):
    X = make({name: data.X[name].to_numpy() for name in data.X.columns})
    wanted = leave_one_environment_out(ICSCMClassifier(), data.X, data.y, data.environments)
    found = leave_one_environment_out(ICSCMClassifier(), X, data.y, data.environments)
    assert [e.accuracy for e in found.held_out] == [e.accuracy for e in wanted.held_out]
    if not isinstance(X, np.ndarray):
        assert found == wanted


def test_lists():
    environments = [("e", 1), ("e", 1), ("e", 2), ("e", 2)]
    found = leave_one_environment_out(SCMClassifier(), [[0], [1]] * 2, list("abab"), environments)
    assert [each.environment for each in found.held_out] == [("e", 1), ("e", 2)]
    assert found.mean_accuracy == 1.0


def test_an_environment_of_one_class_has_an_accuracy(data):
    kept = (data.environments != 1) | (data.y == 1)
    X, y, environments = data.X[kept], data.y[kept], data.environments[kept]
    found = leave_one_environment_out(SCMClassifier(), X, y, environments)
    assert 0 < found.held_out[1].accuracy <= 1
    assert found.held_out[1].n_samples == (environments == 1).sum()


def test_two_environments(data):
    two = data.environments < 2
    X, y, environments = data.X[two], data.y[two], data.environments[two]
    assert len(leave_one_environment_out(SCMClassifier(), X, y, environments).held_out) == 2
    with pytest.raises(IcscmError, match=r"at least 3.*single one left.*cannot be tested"):
        leave_one_environment_out(ICSCMClassifier(), X, y, environments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"environments": np.zeros(9000)}, "at least 2 .*nothing is left"),
        ({"environments": None}, "one label per row"),
        ({"y": np.zeros(9000)}, "one class only"),
        ({"y": np.zeros(3)}, "3 entries but X has 9000 rows"),
        ({"estimator": LogisticRegression()}, "LogisticRegression"),
    ],
)
def test_errors(arguments, message, data):
    usual = {
        "estimator": SCMClassifier(),
        "X": data.X,
        "y": data.y,
        "environments": data.environments,
    }
    with pytest.raises(IcscmError, match=message):
        leave_one_environment_out(**(usual | arguments))


def test_a_class_that_only_one_environment_has(data):
    y = np.where(data.environments == 2, data.y, 0)
    with pytest.raises(IcscmError, match="without environment 'west': y holds one class only"):
        leave_one_environment_out(SCMClassifier(), data.X, y, NAMES[data.environments])


def test_the_plot_names_each_environment(data):
    found = leave_one_environment_out(SCMClassifier(), data.X, data.y, NAMES[data.environments])
    (axes,) = found.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{name} (n = 3,000)" for name in NAMES
    ]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [each.accuracy for each in found.held_out]


def test_without_matplotlib(data, monkeypatch):
    found = leave_one_environment_out(SCMClassifier(), data.X, data.y, data.environments)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(IcscmError, match=r"icscm\[plot\]"):
        found.plot()
