"""scikit-learn's classifiers that choose a threshold or calibrate, around our learners."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import TunedThresholdClassifierCV

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    evaluate,
)
from icscm.datasets import make_hospitals

LEARNERS = {
    "rules": ICSCMClassifier(),
    "plain rules": SCMClassifier(),
    "tree": InvariantTreeClassifier(),
    "forest": InvariantForestClassifier(n_estimators=5, random_state=0),
}
# Plain rules fit and predict as rules do.
NAMES = ["rules", "tree", "forest", pytest.param("plain rules", marks=pytest.mark.thorough)]


@pytest.fixture(scope="module")
def data():
    return make_hospitals(n_rows=4_000, random_state=2)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_a_threshold_is_tuned_on_held_out_rows(data, name):
    learner = sklearn.clone(LEARNERS[name]).set_fit_request(environments=True)
    tuned = TunedThresholdClassifierCV(
        learner, scoring="balanced_accuracy", thresholds=20, cv=2, random_state=0
    )
    tuned.fit(data.X, data.y, environments=data.environments)
    assert tuned.estimator_.environments_ == tuple(np.unique(data.environments).tolist())
    positive = tuned.predict_proba(data.X)[:, 1] >= tuned.best_threshold_
    assert (tuned.predict(data.X) == positive).all()
    assert evaluate(tuned, data.X, data.y).threshold is None  # it decides itself


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_calibrated_on_held_out_rows(data, name):
    learner = sklearn.clone(LEARNERS[name]).set_fit_request(environments=True)
    calibrated = CalibratedClassifierCV(learner, cv=3)
    calibrated.fit(data.X, data.y, environments=data.environments)
    found = evaluate(calibrated, data.X, data.y, environments=data.environments)
    assert found.overall.scores["observed_expected"].value == pytest.approx(1, abs=0.1)
    assert found.overall.calibration_curve
