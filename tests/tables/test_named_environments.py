"""Environments named as columns of a frame, on their way through scikit-learn, and what is said."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from icscm import (
    ICSCMClassifier,
    InvariantCausalPrediction,
    SCMClassifier,
    evaluate,
    leave_one_environment_out,
    stability_selection,
)
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.validation.checkup import check_environments


def make_frame():
    data = make_conjunction(500, 2, random_state=3)
    year = np.arange(len(data.y)) % 2 + 2019
    region = np.where(data.environments, "north", "south")
    return data.X, data.y, data.X.assign(region=region, year=year)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_a_name_means_the_column_which_is_then_no_feature(kind):
    """environments='region' was taken for six labels, r, e, g, i, o and n."""
    X, y, frame = make_frame()
    plain = ICSCMClassifier().fit(X.assign(year=frame.year), y, environments=frame.region)
    named = ICSCMClassifier().fit(
        kind(frame) if kind is not pl.DataFrame else pl.from_pandas(frame), y, environments="region"
    )
    assert named.feature_names_in_.tolist() == [*X, "year"]
    assert named.environments_ == ("north", "south")
    assert named.model_ == plain.model_
    assert named.predict(frame).tolist() == plain.predict(frame).tolist()


def test_several_names_are_joined():
    X, y, frame = make_frame()
    named = SCMClassifier().fit(frame, y, environments=["region", "year"])
    wanted = tuple(f"{a} / {b}" for a in ("north", "south") for b in (2019, 2020))
    assert named.environments_ == wanted
    assert named.feature_names_in_.tolist() == [*X]
    found = check_environments(frame, y, environments="region")
    assert [each.label for each in found.environments] == ["north", "south"]
    icp = InvariantCausalPrediction().fit(frame.drop(columns="year"), y, environments="region")
    assert icp.environments_ == ("north", "south")


def test_dask_frames_know_their_columns():
    dd = pytest.importorskip("dask.dataframe")
    _, y, frame = make_frame()
    lazy = dd.from_pandas(frame.assign(y=y), npartitions=2)
    for names in ("region", ["region", "year"]):
        there = SCMClassifier().fit(lazy.drop(columns="y"), lazy["y"], environments=names)
        here = SCMClassifier().fit(frame, y, environments=names)
        assert there.environments_ == here.environments_
        assert there.model_ == here.model_


def test_labels_stay_labels():
    X = pd.DataFrame({"a": [0, 1], "b": [1, 0]})
    assert SCMClassifier().fit(X, [0, 1], environments=["a", "b"]).environments_ == ("a", "b")
    lists = ["p", "q"] * 10
    assert SCMClassifier().fit([[0], [1]] * 10, [0, 1] * 10, environments=lists).environments_ == (
        "p",
        "q",
    )


def test_errors_are_sentences():
    X, y, frame = make_frame()
    with pytest.raises(IcscmError, match="names a column, but X has no column names; give a"):
        ICSCMClassifier().fit(X.to_numpy(), y, environments="region")
    with pytest.raises(IcscmError, match="names 'regio', but X has only the columns 'A1'"):
        ICSCMClassifier().fit(frame, y, environments="regio")
    with pytest.raises(IcscmError, match="names 'yeer', but X has only"):
        ICSCMClassifier().fit(frame, y, environments=["region", "yeer"])


def test_a_pipeline_hands_environments_on_as_the_readme_says():
    """`pipe.fit(X, y, environments=e)` failed, and the README said that it works."""
    X, y, frame = make_frame()
    alone = ICSCMClassifier().fit(X, y, environments=frame.region)
    pipe = make_pipeline(FunctionTransformer(), ICSCMClassifier())
    pipe.fit(X, y, icscmclassifier__environments=frame.region)
    assert pipe[-1].model_ == alone.model_
    with sklearn.config_context(enable_metadata_routing=True):
        step = ICSCMClassifier().set_fit_request(environments=True)
        pipe = make_pipeline(FunctionTransformer(), step).fit(X, y, environments=frame.region)
    assert pipe[-1].model_ == alone.model_


LOOP = """
import warnings
from icscm.exceptions import IcscmWarning, warn
def fit(text):
    warn(text, IcscmWarning)
for _ in range(5):
    with warnings.catch_warnings():
        pass
    fit("said")
fit("said")
for _ in range(2):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        fit("again")
"""


def test_a_warning_is_said_once_a_line():
    """A notebook showed one 38 times: Python forgets what it showed when any filter changes."""
    done = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stderr.count("said") == 2
    assert done.stderr.count("again") == 2


def test_studies_know_the_names_of_columns():
    """A name meant a column to fit, and the letters of the word to the studies of it."""
    X, y, frame = make_frame()
    frame, asked = frame.drop(columns="year"), {"n_resamples": 3, "random_state": 0}
    model = SCMClassifier(max_rules=1).fit(X, y)
    named, plain = (frame, y, "region"), (X, y, frame.region)
    assert [*map(str, [
        leave_one_environment_out(SCMClassifier(max_rules=1), *named[:2], environments=named[2]),
        stability_selection(SCMClassifier(max_rules=1), *named[:2], environments=named[2], **asked),
        evaluate(model, *named[:2], environments=named[2]),
    ])] == [*map(str, [
        leave_one_environment_out(SCMClassifier(max_rules=1), *plain[:2], environments=plain[2]),
        stability_selection(SCMClassifier(max_rules=1), *plain[:2], environments=plain[2], **asked),
        evaluate(model, *plain[:2], environments=plain[2]),
    ])]  # fmt: skip
