"""Frequency weights are repeated rows, to the last bit of the trace."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.engine import sampling
from icscm.exceptions import IcscmError, NoEnvironmentsWarning

# that data are few, or that nothing was found, is not the matter here
pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

LEARNERS = [
    SCMClassifier(max_thresholds=3),
    SCMClassifier(model_type="disjunction", max_thresholds=None),
    ICSCMClassifier(max_thresholds=3),
    ICSCMClassifier(stop="coverage", max_thresholds=5),
    ICSCMClassifier(search="exhaustive", alpha="auto"),
]


def assert_same_as_repeated(learner, X, y, environments, weights):
    """Whether it is a model, a trace or an error."""
    rows = np.repeat(np.arange(len(X)), np.asarray(weights, dtype=int))
    weighted, repeated = clone(learner), clone(learner)
    try:
        repeated.fit(X[rows], y[rows], environments=environments[rows])
    except IcscmError as error:
        wanted = str(error)
        with pytest.raises(IcscmError) as caught:
            weighted.fit(X, y, environments=environments, frequency_weight=weights)
        assert str(caught.value) == wanted
        return
    weighted.fit(X, y, environments=environments, frequency_weight=weights)
    assert weighted.model_ == repeated.model_
    assert weighted.trace_ == repeated.trace_
    assert weighted.classes_.tolist() == repeated.classes_.tolist()
    assert getattr(weighted, "environments_", None) == getattr(repeated, "environments_", None)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(LEARNERS),
    st.integers(2, 80),
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_weights_are_repeated_rows(learner, n_rows, most, seed, as_floats):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.normal(size=(n_rows, 2)), rng.integers(0, 2, (n_rows, 2))))
    y = np.where((X[:, 0] > 0) ^ (rng.random(n_rows) < 0.2), "yes", "no")
    environments = rng.integers(0, 3, n_rows)
    weights = rng.integers(0, most + 1, n_rows)
    weights[0] = 1  # all zero is another error
    if as_floats:
        weights = weights.astype(float)
    assert_same_as_repeated(learner, X, y, environments, weights)


def test_quantiles_from_a_sample_count_weights_too(monkeypatch):
    monkeypatch.setattr(sampling, "QUANTILE_SAMPLE", 200)
    rng = np.random.default_rng(0)
    X, environments = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    y = X[:, 0] > 0.3
    assert_same_as_repeated(
        ICSCMClassifier(max_thresholds=9), X, y, environments, rng.integers(0, 4, 500)
    )


def test_weights_of_one_change_nothing_and_copy_nothing():
    data = make_conjunction(500, 2, random_state=0)
    plain = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    for ones in (np.ones(len(data.y)), np.ones(len(data.y), dtype=bool), [1] * len(data.y)):
        weighted = ICSCMClassifier().fit(
            data.X, data.y, environments=data.environments, frequency_weight=ones
        )
        assert weighted.trace_ == plain.trace_


def test_classes_and_environments_of_no_weight_are_not_there():
    X = np.array([[0], [1], [0], [1], [5], [6]])
    y = np.array(["a", "b", "a", "b", "c", "a"])
    environments = ["e", "e", "f", "f", "f", "g"]
    weights = [10, 10, 10, 10, 0, 0]
    fitted = ICSCMClassifier().fit(X, y, environments=environments, frequency_weight=weights)
    assert fitted.classes_.tolist() == ["a", "b"]
    assert fitted.environments_ == ("e", "f")


@pytest.mark.parametrize("learner", [SCMClassifier(), ICSCMClassifier()], ids=repr)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, 0.5, 1], "whole numbers.* got 0.5 in row 2"),
        ([1, -1, 1, 1], "got -1 in row 1"),
        ([1, 1, 1, np.nan], "got nan in row 3"),
        ([1, np.inf, 1, 1], "got inf in row 1"),
        (["1", "2", "2", "1"], "got '1' in row 0"),
        ([1, 1e300, 1, 1], r"adds up to 1e\+300 samples"),
        ([1, None, 1, 1], "got None in row 1"),
        ([1, 1], r"each of the 4 rows of X, got shape \(2,\)"),
        (np.ones((4, 1)), r"got shape \(4, 1\)"),
        (2, r"got shape \(\)"),
        ([0, 0, 0, 0], "zero in every row"),
        ([1, 0, 1, 0], "one class only, 0"),
    ],
)
def test_other_weights_are_errors(learner, weights, message):
    with pytest.raises(IcscmError, match=message):
        learner.fit([[0], [1], [0], [1]], [0, 1, 0, 1], list("eeff"), frequency_weight=weights)


def test_a_frame_and_a_series():
    data = make_conjunction(500, 2, random_state=0)
    weights = pd.Series(np.arange(len(data.y)) % 3, index=np.arange(len(data.y))[::-1])
    rows = np.repeat(np.arange(len(data.y)), weights.to_numpy())
    weighted = SCMClassifier().fit(data.X, data.y, frequency_weight=weights)
    assert weighted.trace_ == SCMClassifier().fit(data.X.iloc[rows], data.y[rows]).trace_
    assert weighted.feature_names_in_.tolist() == list(data.X.columns)


@pytest.mark.parametrize("with_routing", [True, False])
def test_weights_are_routed_as_environments_are(with_routing):
    data = make_conjunction(5000, 2, random_state=1)
    weights = np.ones(len(data.y), dtype=int)
    weights[::2] = 0
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", NoEnvironmentsWarning)
        learner = ICSCMClassifier()
        if with_routing:
            learner.set_fit_request(environments=True, frequency_weight=True)
            learner.set_score_request(sample_weight=True)
        search = GridSearchCV(learner, {"alpha": [0.05]}, cv=2)
        search.fit(data.X, data.y, environments=data.environments, frequency_weight=weights)
        totals = np.sum(search.best_estimator_.model_.leaves)
    assert totals == weights.sum()
