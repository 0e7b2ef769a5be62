"""Frequency weights are repeated rows, to the last bit of the trace; design weights are not."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
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


@pytest.mark.parametrize("with_routing", [True, False])
def test_weights_are_routed_as_environments_are(with_routing):
    data = make_conjunction(5000, 2, random_state=1)
    weights = np.ones(len(data.y), dtype=int)
    weights[::2] = 0
    with sklearn.config_context(enable_metadata_routing=with_routing), warnings.catch_warnings():
        warnings.simplefilter("error", NoEnvironmentsWarning)
        learner = ICSCMClassifier()
        if with_routing:
            learner.set_fit_request(environments=True, sample_weight=True)
            learner.set_score_request(sample_weight=True)
        search = GridSearchCV(learner, {"alpha": [0.05]}, cv=2)
        search.fit(data.X, data.y, environments=data.environments, sample_weight=weights)
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
