"""What several test files share."""

import os

# set before scipy is imported: scikit-learn's check of array API input runs only with it
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from icscm.datasets import make_conjunction


@pytest.fixture(scope="module")
def data():
    """The paper's simulation, a seed with which ICSCM and ICP find the parents."""
    return make_conjunction(10_000, 3, random_state=1)


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def frame(request, data):
    """Its features as each kind of table."""
    return request.param({name: data.X[name].to_numpy() for name in data.X.columns})
