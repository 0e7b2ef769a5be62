"""Classes, environments and labels that say nothing, or were never seen: one clear sentence."""

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier, SCMClassifier
from icscm.exceptions import IcscmError, SparseEnvironmentWarning


def make_table(n=60):
    X = pd.DataFrame({"a": np.arange(n) % 7, "b": np.arange(n) % 5})
    return X, np.where(X.a > 3, "ill", "well"), np.arange(n) % 2


def test_one_class_and_three():
    X, y, environments = make_table()
    with pytest.raises(IcscmError, match="y holds one class only, 'ill'; learning needs two"):
        ICSCMClassifier().fit(X, ["ill"] * len(y), environments=environments)
    three = np.where(X.b > 3, "dead", y)
    with pytest.raises(IcscmError, match=r"3 classes \('well', 'dead', 'ill'\); merge .* y == "):
        ICSCMClassifier().fit(X, three, environments=environments)


def test_classes_never_seen():
    """score(X, y) was 0.0 where y had other labels, or said that types are mixed."""
    X, y, _ = make_table()
    model = SCMClassifier().fit(X, y)
    assert model.score(X, y) == 1
    assert model.score(X, pd.Series(y).astype("category")) == 1
    for labels in (np.where(y == "ill", 1, 0), np.where(y == "ill", "sick", "well")):
        with pytest.raises(IcscmError, match="never saw; its classes are 'ill' and 'we"):
            model.score(X, labels)


def test_environments_of_one_class_each():
    """The warning listed each environment, and not that no environment can be compared."""
    X, y, _ = make_table()
    X = X.assign(c=np.arange(len(y)) % 3)
    with (
        pytest.warns(SparseEnvironmentWarning, match="Every environment holds samples of one cl"),
        pytest.warns(UserWarning, match="No rule was found"),
    ):
        ICSCMClassifier().fit(X[["b", "c"]], y, environments=y)
