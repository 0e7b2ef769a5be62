"""Frequency weights are repeated rows, to the last bit of the trace; design weights are not."""

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
        learner.fit(
            [[0], [1], [0], [1]], [0, 1, 0, 1], environments=list("eeff"), frequency_weight=weights
        )


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


# --- design weights -----------------------------------------------------------


def make_survey(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X, places = rng.integers(0, 2, (n_rows, 3)), rng.integers(0, 4, n_rows)
    y = (rng.random(n_rows) < np.where(X[:, 0] == 1, 0.7, 0.2)).astype(int)
    return X, y, places, rng.lognormal(0, 0.8, n_rows)


def fit_weighted(X, y, places, weights, **more):
    return ICSCMClassifier().fit(X, y, environments=places, sample_weight=weights, **more)


@pytest.mark.parametrize("weight", [20, 7.5, 1e-3, 1e12])
def test_equal_weights_change_nothing(weight):
    """Weight 20 on every row was 20 times as many samples, and every leaf was rejected."""
    X, y, places, _ = make_survey(800)
    assert fit_weighted(X, y, places, np.full(800, weight)).trace_ == (
        fit_weighted(X, y, places, None).trace_
    )


def test_only_ratios_matter_and_the_order_of_rows_does_not():
    X, y, places, weights = make_survey(800)
    order = np.random.default_rng(1).permutation(800)
    found = fit_weighted(X, y, places, weights)
    assert fit_weighted(X, y, places, 1000 * weights).trace_ == found.trace_
    assert fit_weighted(X[order], y[order], places[order], weights[order]).trace_ == found.trace_


def test_effective_sizes_are_those_of_kish():
    """Where weights are independent of the label, the design effect is n sum w^2 / (sum w)^2."""
    X, y, places, weights = make_survey(4000)
    found = fit_weighted(X, y, places, weights)
    assert found.features_used_[0] == 0
    (note,) = [note for note in found.trace_.notes if "design effect" in note]
    kish = len(weights) * (weights**2).sum() / weights.sum() ** 2
    assert float(note.split()[-1][:-1]) == pytest.approx(kish, rel=0.15)
    covered = found.model_.find_leaves(X) == 0
    rate = np.average(y[covered], weights=weights[covered])
    negatives, positives = map(sum, found.model_.leaves[0])
    assert positives / (negatives + positives) == pytest.approx(rate, abs=0.01)


def test_weights_and_groups_together():
    """Groups are the clusters then; with whole weights they are those of the repeated rows."""
    X, y, places, _ = make_survey(600)
    weights, groups = 1 + np.arange(600) % 3, np.arange(600) // 4
    rows = np.repeat(np.arange(600), weights)
    found = fit_weighted(X, y, places, weights, groups=groups)
    wanted = fit_weighted(X[rows], y[rows], places[rows], None, groups=groups[rows])
    assert found.rules_ == wanted.rules_
    for one, other in zip(found.verdicts_, wanted.verdicts_, strict=True):
        assert one == other


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -0.5, 1, 1], "finite numbers, 0 or more; got -0.5 in row 1"),
        ([1, np.inf, 1, 1], "got inf in row 1"),
        ([1, 1], r"each of the 4 rows of X, got shape \(2,\)"),
        ([0, 0, 0, 0], "sample_weight is zero in every row"),
    ],
)
def test_errors_of_design_weights(weights, message):
    table = [[0], [1], [0], [1]], [0, 1, 0, 1], list("eeff")
    with pytest.raises(IcscmError, match=message):
        ICSCMClassifier().fit(*table[:2], environments=table[2], sample_weight=weights)
    with pytest.raises(IcscmError, match="both given"):
        ICSCMClassifier().fit(
            *table[:2], environments=table[2], sample_weight=np.ones(4), frequency_weight=np.ones(4)
        )
