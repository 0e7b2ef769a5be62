"""What the order of rows and of columns decides: rows nothing, columns only between equals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from icscm import (
    ICSCMClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

LEARNERS = {
    "rules": ICSCMClassifier(min_utility=0.0, n_jobs=1),
    "exhaustive": ICSCMClassifier(search="exhaustive", n_jobs=1),
    "plain rules": SCMClassifier(model_type="disjunction", n_jobs=1),
    "tree": InvariantTreeClassifier(n_jobs=1),
    "tree of equal rates": InvariantTreeClassifier(invariance="rate", n_jobs=1),
    "score": InvariantScoreClassifier(tolerance=None, max_terms=4, n_jobs=1),
}


def make_frame(seed, n_rows=200):
    """Categories and numbers of few values, so that many rules, splits and terms are tied."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefgh"))
    frame = pd.DataFrame(
        {
            "ward": letters[rng.integers(0, 8, n_rows)],
            "dose": rng.integers(0, 4, n_rows),
            "smokes": rng.integers(0, 2, n_rows),
            "age": rng.normal(size=n_rows).round(1),
        }
    )
    log_odds = 1.5 * frame["ward"].isin(["b", "e"]) + 1.2 * frame["smokes"] - 1.0
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))).astype(int).to_numpy()
    return frame, y, rng.integers(0, 3, n_rows)


@pytest.mark.parametrize("name", [*LEARNERS])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), order_seed=st.integers(0, 2**32))
@example(seed=0, order_seed=0)
def test_the_order_of_rows_changes_no_bit(name, seed, order_seed):
    frame, y, places = make_frame(seed)
    order = np.random.default_rng(order_seed).permutation(len(y))
    first = clone(LEARNERS[name]).fit(frame, y, environments=places)
    second = clone(LEARNERS[name]).fit(
        frame.iloc[order].reset_index(drop=True), y[order], environments=places[order]
    )
    assert second.model_ == first.model_
    assert second.predict_proba(frame).tolist() == first.predict_proba(frame).tolist()


@pytest.mark.parametrize("name", [*LEARNERS])
def test_without_ties_the_order_of_columns_does_not_matter(name):
    frame, y, places = make_frame(1, n_rows=2_000)
    reversed_frame = frame[frame.columns[::-1]]
    first = clone(LEARNERS[name]).fit(frame, y, environments=places)
    second = clone(LEARNERS[name]).fit(reversed_frame, y, environments=places)
    assert set(second.features_used_) == set(first.features_used_)
    assert first.features_used_ or name == "exhaustive"  # whose accepted sets may share no rule
    np.testing.assert_allclose(
        second.predict_proba(reversed_frame), first.predict_proba(frame), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("name", ["rules", "plain rules", "tree"])
def test_of_equals_the_first_column_of_the_table_is_used(name):
    """Two columns that say the same: which of them comes first in the table decides."""
    rng = np.random.default_rng(0)
    smokes = rng.integers(0, 2, 400)
    y = np.where(rng.random(400) < 0.1, 1 - smokes, smokes)
    places = rng.integers(0, 3, 400)
    frame = pd.DataFrame({"z": smokes, "a": smokes, "noise": rng.integers(0, 2, 400)})
    for columns in (["z", "a", "noise"], ["noise", "a", "z"]):
        learner = clone(LEARNERS[name]).fit(frame[columns], y, environments=places)
        first_of_equals = next(column for column in columns if column != "noise")
        assert learner.features_used_[0] == first_of_equals


def test_the_rules_on_the_other_columns_are_listed():
    rng = np.random.default_rng(0)
    smokes = rng.integers(0, 2, 400)
    y = np.where(rng.random(400) < 0.1, 1 - smokes, smokes)
    frame = pd.DataFrame({"z": smokes, "a": smokes})
    learner = ICSCMClassifier(n_jobs=1).fit(frame, y, environments=rng.integers(0, 3, 400))
    assert [str(rule) for rule in learner.equivalent_rules_[0]] == ["a > 0"]
