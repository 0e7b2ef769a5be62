"""Scores and losses of a round, against scikit-learn's."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss, mean_squared_error, r2_score, roc_auc_score

from icscm.screening.outcomes import make_outcome
from icscm.screening.performance import measure_performance

RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.5, 2.0, 300)


def test_two_classes():
    y, scores = RNG.integers(0, 2, 300), RNG.normal(size=300)
    outcome = make_outcome(y, WEIGHTS, is_number=False)
    found = measure_performance(outcome, scores[:, np.newaxis])
    assert found.score == pytest.approx(roc_auc_score(y, scores))
    assert found.loss == pytest.approx(log_loss(y, expit(scores), sample_weight=WEIGHTS))


def test_several_classes():
    y, scores = RNG.integers(0, 4, 300), RNG.normal(size=(300, 4))
    outcome = make_outcome(y, None, is_number=False)
    found = measure_performance(outcome, scores)
    aucs = [roc_auc_score(y == label, scores[:, label]) for label in range(4)]
    assert found.score == pytest.approx(np.mean(aucs))
    assert found.loss == pytest.approx(log_loss(y, softmax(scores, axis=1)))


def test_numbers():
    y = RNG.normal(3.0, 5.0, 300)
    predicted = y + RNG.normal(size=300)
    outcome = make_outcome(y, None, is_number=True)
    found = measure_performance(outcome, ((predicted - y.mean()) / y.std())[:, np.newaxis])
    assert found.score == pytest.approx(r2_score(y, predicted))
    assert found.loss == pytest.approx(mean_squared_error(y, predicted) ** 0.5 / y.std())
