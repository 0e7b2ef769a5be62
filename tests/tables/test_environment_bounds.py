"""Environments: from how few samples on they are complained of."""

import warnings

import numpy as np
import pytest

from icscm._constants import SPARSE_ENVIRONMENT
from icscm.exceptions import IcscmError, SparseEnvironmentWarning
from icscm.tables import suspicion
from icscm.tables.coded import CodedTable
from icscm.tables.environments import check_several, encode_environments, warn_of_sparse
from icscm.tables.suspicion import CONSTANT, IDENTIFIER


def test_as_many_samples_as_the_limit_are_enough():
    """One fewer are not; the limit itself was tested by nothing."""
    enough = np.array([[1, 50], [SPARSE_ENVIRONMENT - 1, 50]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_sparse(enough, ("small", "large"), ("well", "ill"))
    with pytest.warns(SparseEnvironmentWarning, match=r"'small' holds only 4 samples\."):
        warn_of_sparse(enough - [[0, 0], [1, 0]], ("small", "large"), ("well", "ill"))


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 0], "'here' holds only 1 sample\\."),
        ([0, 1], "'here' holds only 1 sample\\."),
        ([0, 5], "'here' holds no sample of class 'well'"),
        ([5, 0], "'here' holds no sample of class 'ill'"),
    ],
)
def test_what_is_said_of_them(counts, message):
    totals = np.array([counts, [40, 40]]).T
    with pytest.warns(SparseEnvironmentWarning, match=message):
        warn_of_sparse(totals, ("here", "there"), ("well", "ill"))


def test_two_environments_are_several():
    check_several(("a", "b"))
    with pytest.raises(IcscmError, match="a single environment, 'a'"):
        check_several(("a",))


def test_the_first_missing_label_is_named():
    for row in (0, 3):
        labels = ["a", "b", "a", "b"]
        labels[row] = None
        with pytest.raises(IcscmError, match=f"in 1 rows, the first of them row {row}"):
            encode_environments(labels, 4)


def test_only_doubtful_columns_are_looked_at_one_by_one(monkeypatch):
    """200,000 columns took a minute to be cleared: each was sorted by itself, thrice."""
    rng = np.random.default_rng(0)
    X = np.hstack((rng.integers(0, 2, (100, 3000)), np.arange(100)[:, None], np.ones((100, 1))))
    table, looked_at, gather = CodedTable(X), [], suspicion._gather_facts
    monkeypatch.setattr(
        suspicion,
        "_gather_facts",
        lambda table, j, *more: looked_at.append(j) or gather(table, j, *more),
    )
    whole = np.ones(X.shape[1], dtype=bool)
    labels, environments = np.arange(100) % 2, np.arange(100) // 50
    found = suspicion.find_suspicious(table, labels, environments, whole=whole, declared=())
    assert found == {3000: IDENTIFIER, 3001: CONSTANT}
    assert looked_at == [3000, 3001]
