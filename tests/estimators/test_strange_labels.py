"""Degenerate or unknown classes, environments and labels raise one clear error."""

from datetime import date
from decimal import Decimal
from functools import partial

import dask.dataframe
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
        with pytest.raises(IcscmError, match="not among the classes of the model, 'ill' and 'we"):
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


@pytest.mark.parametrize(
    "classes",
    [
        (Decimal(1), Decimal(2)),
        (date(2020, 1, 1), date(2021, 1, 1)),
        (pd.Timestamp(2020, 1, 1), pd.Timestamp(2021, 1, 1)),
        (frozenset({1}), frozenset({1, 2})),
        (2**70, 2**71),
        ("\ud800", "ill"),  # text that is not Unicode: an error of PyArrow
    ],
)
def test_labels_that_fit_takes_are_scored(classes):
    """score raised an error of scikit-learn for labels that it does not know and fit does."""
    X, y, _ = make_table()
    labels = [classes[each == "ill"] for each in y]
    model = SCMClassifier().fit(X, labels)
    wrong = [classes[0], *labels[1:]] if labels[0] == classes[1] else [classes[1], *labels[1:]]
    for form in (list, partial(pd.Series, dtype=object)):
        assert model.score(X, form(labels)) == 1
        assert model.score(X, form(wrong)) == 1 - 1 / len(y)
        assert model.score(X, form(wrong), sample_weight=np.arange(len(y))) == 1


def test_labels_that_are_not_unicode_are_scored():
    """score raised an error of PyArrow for text with a lone surrogate, which fit takes."""
    X, y, _ = make_table()
    labels = np.where(y == "ill", "\ud800", "well").astype(object)
    assert SCMClassifier().fit(X, labels).score(X, labels) == 1


def test_large_whole_labels_in_many_rows():
    """fit raised an OverflowError for uint64 labels above 2**63 in 2**16 rows or more."""
    X = (np.arange(2**16) % 7)[:, np.newaxis]
    y = np.where(X.ravel() > 3, np.uint64(2**63 + 9), np.uint64(2**63 + 5))
    model = SCMClassifier().fit(X, y)
    assert model.classes_.tolist() == [2**63 + 5, 2**63 + 9]
    assert model.score(X, y) == 1


def test_score_of_a_dask_frame():
    """scikit-learn raised a raw TypeError for the labels of a Dask collection."""
    X, y, _ = make_table()
    model = SCMClassifier().fit(X, y)
    parts, labels = (dask.dataframe.from_pandas(each, npartitions=3) for each in (X, pd.Series(y)))
    assert model.score(parts, labels) == model.score(parts, y) == model.score(X, labels) == 1
    with pytest.raises(IcscmError, match="y has 59 entries but X has 60 rows; give one per row"):
        model.score(parts, y[1:])
