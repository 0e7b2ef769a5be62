"""Scores of rows whose columns are drawn from other rows."""

import numpy as np
import pandas as pd
import pytest

from icscm.screening.cross_fitting import score_shuffled


@pytest.mark.parametrize("kind", ["array", "pandas", "shuffled index", "polars"])
def test_columns_are_drawn_alike_in_all_tables(kind):
    """Frames were made anew for each column: 200 columns of 200 took a minute, now seconds.

    All are drawn at once; the scores are those of a loop over columns and draws.
    """

    class Sum:
        def decision_function(self, X):
            return np.asarray(X) @ np.arange(1.0, 6.0)

    rng = np.random.default_rng(0)
    X, test, columns = rng.normal(size=(40, 5)), np.arange(5, 25), np.array([1, 2, 4])
    table = X.copy()
    if kind != "array":
        index = rng.permutation(40) if kind == "shuffled index" else None
        table = pd.DataFrame(X, columns=list("abcde"), index=index)
    if kind == "polars":
        table = pytest.importorskip("polars").from_pandas(table)
    draws = [rng.permutation(20) for _ in range(3)]
    found = score_shuffled([Sum()], table, test, columns, np.concatenate(draws))
    slow = []
    for j in columns:
        for order in draws:
            shuffled = X[test]
            shuffled[:, j] = shuffled[order, j]
            slow.append(shuffled @ np.arange(1.0, 6.0))
    assert np.allclose(found[:, 0], np.concatenate(slow))
