"""The levels and ranges that a model keeps are the same wherever its rows were."""

import numpy as np
import pandas as pd
import pytest

from icscm import SCMClassifier
from icscm.model.novelty import Range
from icscm.sources import open_memory
from icscm.sources.sites import LocalSite, make_agreement, open_sites


def make_table(n_rows):
    """Numbers of many and of few values, some of them missing, and a category with a rare level."""
    rng = np.random.default_rng(0)
    glucose = rng.lognormal(np.log(110), 0.3, n_rows)
    visits = rng.integers(0, 9, n_rows).astype(float)
    visits[::50] = np.nan
    smoker = rng.choice(["no", "light", "heavy"], n_rows)
    smoker[n_rows // 2] = "pipe"
    is_ill = (glucose > 130) | (visits > 5) | (smoker == "heavy")
    X = pd.DataFrame({"glucose": glucose, "visits": visits, "smoker": smoker})
    return X, np.where(is_ill ^ (rng.random(n_rows) < 0.02), "ill", "well")


def make_learner():
    return SCMClassifier(model_type="disjunction", max_rules=3, p=0.1)


@pytest.mark.parametrize("n_rows", [900, 20_000])
def test_files_keep_what_memory_keeps(n_rows, tmp_path):
    """Of 20,000 rows thresholds come from a sample, and so do ranges."""
    X, y = make_table(n_rows)
    in_memory = make_learner().fit(X, y)
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    of_files = make_learner().fit_dataset(tmp_path / "rows.parquet", "y")
    training_values = in_memory.model_.training_values
    assert of_files.model_.training_values == training_values
    kept = {values.name: values for values in training_values}
    assert kept["smoker"].levels == ("heavy", "light", "no", "pipe")
    assert kept["visits"].range == Range(0, 0, 8, 8)
    glucose = kept["glucose"].range
    assert X.glucose.min() <= glucose.lowest < glucose.low < glucose.high < glucose.highest
    low, high = np.quantile(X.glucose, [1 / 51, 50 / 51])
    assert (glucose.low, glucose.high) == (
        pytest.approx(low, rel=0.05),
        pytest.approx(high, rel=0.05),
    )


def test_dask_keeps_what_memory_keeps():
    dask_frame = pytest.importorskip("dask.dataframe")
    X, y = make_table(900)
    collection = dask_frame.from_pandas(X.assign(y=y), npartitions=3)
    of_dask = make_learner().fit(collection[list(X)], collection["y"])
    assert of_dask.model_.training_values == make_learner().fit(X, y).model_.training_values


def test_sites_keep_the_agreed_levels_and_no_ranges():
    """Agreed thresholds are no quantiles, so that they say nothing of the range."""
    X, y = make_table(900)
    X = X.assign(visits=X.visits.fillna(0))
    agreed = make_agreement(
        {"glucose": [110, 130, 150], "visits": [2, 6], "smoker": ["no", "light", "heavy", "pipe"]},
        classes=("ill", "well"),
        environments=("a", "b"),
    )
    sites = [
        LocalSite(X[part], y[part], environments=place, agreement=agreed)
        for place, part in (("a", slice(450)), ("b", slice(450, 900)))
    ]
    with open_sites(sites, agreed) as countable:
        learner = make_learner().fit_counts(countable)
    kept = {values.name: values for values in learner.model_.training_values}
    assert kept.keys() <= {"smoker"}


def test_zeros_and_ones_have_a_range():
    """Stored as bits they have no thresholds, and codes 1 and 2 at another site are told."""
    X, y = make_table(900)
    binary = (X[["glucose"]] > 130).astype(float)
    with open_memory(binary, y) as countable:
        learner = SCMClassifier().fit_counts(countable)
    assert learner.model_.training_values[0].range == Range(0, 0, 1, 1)
