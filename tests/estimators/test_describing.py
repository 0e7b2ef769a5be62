"""`describe_leaves`: the leaves as a frame, and what to expect of them elsewhere."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.stats.new_environments import make_expectations

NUMBERS = ["tau", "tau_low", "tau_high", "i2", "new_low", "new_high", "known_low", "known_high"]
COLUMNS = ["leaf", "rule", "n", "rate", *NUMBERS, "verdict", "note"]


def make_table(n_environments, n=3000):
    """A rule that holds everywhere, with rates that differ from place to place."""
    rng = np.random.default_rng(0)
    x, e = rng.integers(0, 2, n), rng.integers(0, n_environments, n)
    log_odds = np.where(x, 1.5, -2.0) + rng.normal(0, 0.4, n_environments)[e]
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return np.column_stack((x, rng.integers(0, 2, n))), y, e


def test_columns_rows_and_numbers():
    X, y, e = make_table(8)
    learner = SCMClassifier(max_rules=1).fit(X, np.where(y, "well", "ill"), environments=e)
    found = learner.describe_leaves()
    assert list(found) == COLUMNS
    assert found["leaf"].tolist() == [1, 2]
    assert found["rule"].tolist() == list(learner.model_.leaf_texts)
    assert found["n"].sum() == len(y)
    leaves = learner.model_.find_leaves(X)
    # the positive class is the second in order, whatever it is called
    assert found["rate"].tolist() == pytest.approx([y[leaves == i].mean() for i in (0, 1)])
    for row, wanted in zip(
        found.itertuples(), make_expectations(learner.model_.leaves), strict=True
    ):
        assert (row.new_low, row.new_high) == wanted.interval
        assert (row.known_low, row.known_high) == wanted.known_interval
        assert (row.tau, row.i2, row.note) == (wanted.tau, wanted.i2, None)
        assert row.new_low < row.rate < row.new_high
        assert row.tau_low <= row.tau <= row.tau_high


def test_two_environments_cannot_tell():
    data = make_conjunction(random_state=1)
    learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    found = learner.describe_leaves()
    assert found[NUMBERS].isna().all(axis=None)
    assert found["note"].str.contains("at least three").all()
    assert found["verdict"].tolist() == [each.conclusion for each in learner.verdicts_]


def test_without_environments_it_says_so():
    X, y, _ = make_table(2)
    found = SCMClassifier().fit(X, y).describe_leaves()
    assert found[NUMBERS].isna().all(axis=None)
    assert found["verdict"].tolist() == [None] * len(found)
    assert found["note"].str.contains("no environments").all()


def test_a_learner_that_tests_nothing_is_judged_afterwards():
    X, y, e = make_table(8)
    found = SCMClassifier(max_rules=1).fit(X, y, environments=e).describe_leaves()
    assert "not invariant" in set(found["verdict"])


def test_a_model_without_rules_has_one_leaf():
    rng = np.random.default_rng(0)
    X, y, e = rng.random((200, 1)), rng.random(200) < 0.1, rng.integers(0, 4, 200)
    with pytest.warns(UserWarning, match="."):
        learner = ICSCMClassifier().fit(X, y, environments=e)
    assert len(learner.describe_leaves()) == 1


def test_unfitted():
    with pytest.raises(NotFittedError):
        SCMClassifier().describe_leaves()


def test_a_known_prevalence_moves_one_interval():
    X, y, e = make_table(8)
    learner = SCMClassifier(max_rules=1).fit(X, y, environments=e)
    typical, high = learner.describe_leaves(), learner.describe_leaves(prevalence=0.8)
    assert (high["known_low"] > typical["known_low"]).all()
    assert high["new_low"].equals(typical["new_low"])
    with pytest.raises(IcscmError, match="prevalence must be a rate"):
        learner.describe_leaves(prevalence=80)
