"""Bugs of what estimators check, keep and warn of, each with what went wrong."""

import warnings

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from sklearn.base import clone

from icscm import InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.exceptions import IcscmError, IcscmWarning, warn
from icscm.model.saved import make_saved_model
from icscm.sources.memory import open_memory
from support.fitting import fit_all_columns


@pytest.mark.parametrize(
    "learner", [InvariantTreeClassifier(), InvariantForestClassifier(n_estimators=2)]
)
def test_a_single_environment_is_an_error(learner):
    """Trees and forests given one environment fitted a plain model without a word."""
    X, y = np.arange(200).reshape(-1, 1), np.arange(200) > 80
    with pytest.raises(IcscmError, match="environments holds a single environment, 'here'"):
        learner.fit(X, y, environments=["here"] * 200)
    plain = clone(learner).set_params(tolerance=None)
    assert plain.fit(X, y, environments=["here"] * 200).tolerance_ is None


def test_names_of_an_earlier_fit_are_forgotten():
    """`fit_counts` after `fit` with a Series kept the name of the earlier label."""
    X, y = np.arange(40).reshape(-1, 1), np.arange(40) > 20
    places = np.arange(40) % 2
    learner = SCMClassifier().fit(
        X, pd.Series(y, name="disease"), environments=pd.Series(places, name="clinic")
    )
    assert learner._series_names_ == {"target": "disease", "environment": "clinic"}
    assert "disease" in str(learner.report().to_dict())
    for refit in (
        lambda: learner.fit(X, y, environments=places),
        lambda: learner.fit_counts(open_memory(X, y, environments=places)),
    ):
        learner.fit(X, pd.Series(y, name="disease"), environments=pd.Series(places, name="clinic"))
        refit()
        assert learner._series_names_ == {"target": None, "environment": None}
        assert "clinic" not in str(learner.report().to_dict())


def test_a_warning_is_shown_in_each_context():
    """A warning shown once was hidden from every later `catch_warnings` at the same line."""

    def count_warnings():
        with warnings.catch_warnings(record=True) as found:
            warnings.resetwarnings()
            for _ in range(2):
                warn("Look out.", IcscmWarning)
        return len(found)

    assert [count_warnings(), count_warnings()] == [1, 1]


def make_infinite(X, kind):
    if kind == "frame":
        return pd.DataFrame(X, columns=["a", "b"])
    if kind == "polars":
        return polars.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    if kind == "sparse":
        return sparse.csr_matrix(X)
    return X.tolist() if kind == "list" else X


@pytest.mark.parametrize("kind", ["array", "frame", "polars", "sparse", "list"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_infinity_is_rejected_wherever_it_is(kind):
    """`predict(array)` raised, as `fit` does, while frames and saved models were answered."""
    X, y = np.c_[np.arange(40.0), np.zeros(40)], np.arange(40) > 20
    learner = fit_all_columns(SCMClassifier(), make_infinite(X, kind), y)
    saved = make_saved_model(learner)
    assert saved.predict(make_infinite(X, kind)).tolist() == y.tolist()
    X[3, 0] = -np.inf
    column = "'a'" if kind in ("frame", "polars") else "0"
    message = f"X contains infinity in column {column}; fill in or drop these values"
    for predict in (learner.predict, learner.predict_proba, saved.predict, saved.explain):
        with pytest.raises(IcscmError, match=f"^{message}$"):
            predict(make_infinite(X, kind))
