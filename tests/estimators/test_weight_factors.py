"""Weights times a factor: the same model, to the last bit."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

FACTORS = st.floats(1e-9, 1e12)
EXPONENTS = st.integers(-29, 39)

FAST = {
    "rules": ICSCMClassifier(n_jobs=1),
    "exhaustive": ICSCMClassifier(search="exhaustive", alpha="auto", n_jobs=1),
    "utility": ICSCMClassifier(min_utility=5.0, n_jobs=1),
    "plain rules": SCMClassifier(n_jobs=1),
    "tree": InvariantTreeClassifier(n_jobs=1),
    "balanced tree": InvariantTreeClassifier(probabilities="balanced", invariance="rate", n_jobs=1),
    "forest": InvariantForestClassifier(n_estimators=3, random_state=0, n_jobs=1),
}
SLOW = {
    "score": InvariantScoreClassifier(random_state=0, n_jobs=1),
    "selector": InvariantFeatureSelector(random_state=0, n_jobs=1),
    "selector of a regression": InvariantFeatureSelector(
        LogisticRegression(), random_state=0, n_jobs=1
    ),
}


@cache
def make_table():
    """A table of two causes, and a shortcut; weights as in a survey of strata."""
    rng = np.random.default_rng(0)
    n_rows = 600
    places = rng.integers(0, 3, n_rows)
    X = rng.normal(size=(n_rows, 4))
    log_odds = 2.0 * (X[:, 0] > 0) + 1.5 * (X[:, 1] > 0.5) - 1.5
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))).astype(int)
    agreement = np.array([0.95, 0.75, 0.5])[places]
    X[:, 3] = np.where(rng.random(n_rows) < agreement, y, 1 - y)
    return X, y, places


@cache
def make_weights(kind):
    rng = np.random.default_rng(1)
    if kind == "whole":
        return rng.integers(0, 8, 600).astype(float)
    return rng.lognormal(0.0, 0.8, 600)


@cache
def fit(name, kind, factor):
    X, y, places = make_table()
    learner = clone((FAST | SLOW)[name])
    learner.fit(X, y, environments=places, sample_weight=make_weights(kind) * factor)
    probabilities = learner.predict_proba(X)[:, 1]
    text = str(learner.kept_) if name.startswith("selector") else str(learner.model_)
    return text, probabilities


def check_factor(name, kind, factor, *, is_exact):
    text, probabilities = fit(name, kind, 1.0)
    scaled_text, scaled_probabilities = fit(name, kind, factor)
    assert scaled_text == text
    if is_exact:
        assert scaled_probabilities.tolist() == probabilities.tolist()
    np.testing.assert_allclose(scaled_probabilities, probabilities, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["whole", "drawn"])
@pytest.mark.parametrize("name", [*FAST])
@settings(max_examples=3)
@given(factor=FACTORS, exponent=EXPONENTS)
@example(factor=0.1, exponent=-20)
def test_only_ratios_matter(name, kind, factor, exponent):
    """Weights of 1 to 7 and a tenth of them gave other rules, splits and probabilities."""
    check_factor(name, kind, factor, is_exact=False)
    check_factor(name, kind, 2.0**exponent, is_exact=True)


@pytest.mark.parametrize("name", ["score", "selector of a regression"])
def test_only_ratios_matter_to_scores_and_screens(name):
    """A score had another table of points, and a selector handed the weights on as they were.

    A tenth of the weights changed probabilities by up to 0.36 and 0.02.
    """
    check_factor(name, "whole", 0.1, is_exact=False)
    check_factor(name, "whole", 2.0**-20, is_exact=True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["whole", "drawn"])
@pytest.mark.parametrize("name", [*SLOW])
@settings(max_examples=6)
@given(factor=FACTORS, exponent=EXPONENTS)
@example(factor=1e-9, exponent=39)
@example(factor=1e12, exponent=-29)
def test_only_ratios_matter_to_scores_and_screens_at_any_factor(name, kind, factor, exponent):
    check_factor(name, kind, factor, is_exact=False)
    check_factor(name, kind, 2.0**exponent, is_exact=True)


@pytest.mark.parametrize("factor", [0.1, 2.0**30])
def test_only_ratios_matter_to_accuracy(factor):
    X, y, places = make_table()
    learner = InvariantTreeClassifier(n_jobs=1).fit(X, y, environments=places)
    weights = make_weights("drawn")
    assert learner.score(X, y, sample_weight=weights * factor) == pytest.approx(
        learner.score(X, y, sample_weight=weights), abs=1e-12
    )
