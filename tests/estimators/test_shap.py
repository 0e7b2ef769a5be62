"""SHAP explains the probability functions of our learners."""

import warnings

import numpy as np
import pytest

from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier
from icscm.datasets import make_conjunction

with warnings.catch_warnings():  # of its own use of matplotlib
    warnings.simplefilter("ignore")
    shap = pytest.importorskip("shap")


@pytest.mark.thorough  # shap compiles its kernels in every process
@pytest.mark.parametrize(
    "learner",
    [
        InvariantTreeClassifier(),
        InvariantForestClassifier(n_estimators=3, random_state=0),
        ICSCMClassifier(),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_values_add_up_to_the_probability(learner):
    data = make_conjunction(300, 1, n_environments=3, random_state=0)
    learner.fit(data.X, data.y, environments=data.environments)
    rows = data.X[:3]
    explain = shap.Explainer(learner.predict_proba, data.X[:20], algorithm="permutation", seed=0)
    found = explain(rows, silent=True)
    totals = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(totals, learner.predict_proba(rows), atol=1e-9)
    unused = [name not in learner.features_used_ for name in data.X.columns]
    assert (found.values[:, unused] == 0).all()
    assert (found.values != 0).any()
