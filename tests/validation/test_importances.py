"""Permutation importance: the loss of a classifier whose column is permuted in each environment."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from icscm import ICSCMClassifier, InvariantForestClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.validation.importances import permutation_importance


@pytest.fixture(scope="module")
def data():
    return make_conjunction(300, 1, n_environments=3, random_state=2)


def test_each_loss_is_that_of_a_permuted_table(data):
    """The same, permuted and scored literally, one environment after the other."""
    X, y, places = data[:3]
    model = LogisticRegression().fit(X, y)
    found = permutation_importance(model, X, y, environments=places, n_repeats=2, random_state=3)
    own = model.predict_proba(X)[:, 1]
    for j, name in enumerate(X.columns):
        for repeat in range(2):
            key = np.random.default_rng([3, j, repeat]).random(len(y))
            changed = X.copy()
            for place in np.unique(places):
                rows = np.flatnonzero(places == place)
                changed.loc[rows, name] = X.loc[rows[np.argsort(key[rows])], name].to_numpy()
                assert sorted(changed.loc[rows, name]) == sorted(X.loc[rows, name])
            p = model.predict_proba(changed)[:, 1]
            wanted = roc_auc_score(y, own) - roc_auc_score(y, p), log_loss(y, p) - log_loss(y, own)
            assert found.pooled[:, j, repeat] == pytest.approx(wanted)
            for k, place in enumerate(np.unique(places)):
                part = places == place
                fall = roc_auc_score(y[part], own[part]) - roc_auc_score(y[part], p[part])
                assert found.by_environment[0, j, repeat, k] == pytest.approx(fall)
    frame = found.to_frame("environments")
    assert len(frame) == 3 * X.shape[1]
    assert frame["auc"].to_numpy() == pytest.approx(found.by_environment[0].mean(axis=1).ravel())


def test_a_mark_of_the_environment_is_not_important():
    """Permuted over all rows, a column that only tells the environments apart seems important."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 2, 2000)
    y = (rng.random(2000) < np.array([0.1, 0.9])[place]).astype(int)
    X = place[:, np.newaxis].astype(float)
    model = LogisticRegression().fit(X, y)
    assert permutation_importance(model, X, y, environments=place).pooled.max() == 0
    assert permutation_importance(model, X, y).pooled[0].mean() > 0.3


def test_any_table_and_any_names_of_environments(data):
    X, y, places = data[:3]
    learner = InvariantForestClassifier(n_estimators=5, random_state=0).fit(
        X, y, environments=places
    )
    wanted = permutation_importance(learner, X, y, environments=places, n_repeats=2).pooled
    others = [X.set_index(np.arange(len(X))[::-1]), pl.from_pandas(X), pa.Table.from_pandas(X)]
    for table in others:
        assert (
            permutation_importance(learner, table, y, environments=places, n_repeats=2).pooled
            == wanted
        ).all()
    renamed = np.array(["c", "a", "b"])[places]
    assert (
        permutation_importance(learner, X, y, environments=renamed, n_repeats=2).pooled == wanted
    ).all()
    numbers = X.to_numpy(dtype=float)
    learner.fit(numbers, y, environments=places)
    for table in (numbers, csr_matrix(numbers)):
        found = permutation_importance(learner, table, y, environments=places, n_repeats=2)
        assert found.features == tuple(range(X.shape[1]))
        assert (found.pooled == wanted).all()


def test_columns_that_a_model_does_not_use_lose_nothing(data):
    X, y, places = data[:3]
    learner = ICSCMClassifier().fit(X, y, environments=places)
    found = permutation_importance(
        learner, X, np.where(places == 0, 0, y), environments=places, max_rows=500
    )
    unused = [name not in learner.features_used_ for name in X.columns]
    assert (found.pooled[:, unused] == 0).all()
    assert np.isnan(found.by_environment[0, ..., 0]).all()  # one class
    assert found.n_rows == 500
    assert str(found).startswith("Losses with a column permuted within environments, 500 rows")


def test_errors(data):
    X, y, places = data[:3]
    with pytest.raises(IcscmError, match="needs a fitted classifier of these two classes"):
        permutation_importance(LogisticRegression(), X, y, environments=places)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(IcscmError, match="of these two classes"):
        permutation_importance(model, X, pd.Series(y).map({0: "a", 1: "b"}), environments=places)
    with pytest.raises(IcscmError, match="n_repeats must be"):
        permutation_importance(model, X, y, environments=places, n_repeats=0)


def test_random_states_of_all_kinds(data):
    """A Generator, a RandomState and None were rejected."""
    learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    own = data.X, data.y, data.environments
    for make in (np.random.default_rng, np.random.RandomState):
        one, two = (
            permutation_importance(
                learner, *own[:2], environments=own[2], n_repeats=1, random_state=make(3)
            ).to_frame()
            for _ in range(2)
        )
        pd.testing.assert_frame_equal(one, two)
    assert len(
        permutation_importance(
            learner, *own[:2], environments=own[2], n_repeats=1, random_state=None
        ).to_frame()
    )


def test_more_repeats_than_memory_holds_are_rejected():
    """The result for all repeats was made at once: 10**12 of them ended in a MemoryError."""
    with pytest.raises(IcscmError, match="n_repeats must be a whole number from 1 to 100000"):
        permutation_importance(None, [[1]], [1], n_repeats=10**12)
