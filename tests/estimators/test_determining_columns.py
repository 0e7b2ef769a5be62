"""Columns that determine the environment: every learner rejects them, from any source."""

import warnings

import numpy as np
import pandas as pd
import pytest

from icscm import (
    ICSCMClassifier,
    InvariantCausalPrediction,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
)
from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.sources import open_bits, open_files
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.sites import LocalSite, make_agreement, open_sites
from support.fitting import fit_quietly

LEARNERS = {
    "rule": ICSCMClassifier(),
    "disjunction": ICSCMClassifier(model_type="disjunction"),
    "exhaustive": ICSCMClassifier(search="exhaustive"),
    "tree": InvariantTreeClassifier(),
    "rates": InvariantTreeClassifier(invariance="rate"),
    "forest": InvariantForestClassifier(n_estimators=3, random_state=0),
    "score": InvariantScoreClassifier(random_state=0),
}
GIVEAWAYS = ["region", "device", "only_a", "flag", "latitude"]


def make_frame(n_rows=1200, n_environments=4):
    """A cause, a column that tells nothing, and five that determine the environment."""
    rng = np.random.default_rng(0)
    site = rng.choice(list("abcd")[:n_environments], n_rows)
    age = rng.normal(60, 10, n_rows).round()
    y = (rng.random(n_rows) < 1 / (1 + np.exp((60 - age) / 4))).astype(int)
    is_a = site == "a"
    frame = pd.DataFrame({"age": age, "coin": rng.integers(0, 2, n_rows)})
    frame["region"] = pd.Series(site).map({"a": "n", "b": "n", "c": "s", "d": "s"})
    frame["device"] = np.char.add(site.astype("U1"), rng.integers(0, 3, n_rows).astype("U1"))
    frame["only_a"] = np.where(is_a, y + rng.normal(size=n_rows), np.nan)
    frame["flag"] = np.where(is_a, 1.0, np.nan)
    latitude = pd.Series(site).map({"a": 50.0, "b": 10.0, "c": 20.0, "d": 70.0})
    frame["latitude"] = latitude + rng.integers(0, 3, n_rows)
    return frame, y, site


FRAME, Y, SITE = make_frame()


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_rejects_them_by_name(name):
    """A column that was there at one hospital only, or named the region, was kept by some learners.

    The score crashed on a column of one value that is missing elsewhere ("index 0 is out of
    bounds"), since such a column has no threshold to name.
    """
    learner = LEARNERS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(FRAME, Y, environments=SITE)
    left_out = [str(each.message) for each in caught if each.category is LeftOutWarning]
    assert left_out == [
        "Rejected: region, device, only_a, flag, latitude each determine the environment, so that "
        "there is nothing to compare their effects with."
    ]
    assert learner.rejected_[:5] == GIVEAWAYS
    assert {*learner.features_used_}.isdisjoint(GIVEAWAYS)
    columns = learner.trace_.to_frame("columns").set_index("feature")
    assert {*columns.loc[GIVEAWAYS, "reason"]} == {"determines the environment"}
    facts = dict(learner.report().summary["headline"]["facts"])
    assert facts["Rejected"].endswith(
        "region, device, only_a, flag and latitude, since each determines the environment"
    )


def test_a_screen_rejects_the_same_columns():
    selector = fit_quietly(InvariantFeatureSelector(random_state=0, cv=2), FRAME, Y, SITE)
    assert selector.rejected_ == GIVEAWAYS


@pytest.mark.parametrize("name", ["rule", "tree", "score"])
def test_columns_of_arrays_are_rejected_too(name):
    """An array has no types, so that copies of the environment in it were used in rules."""
    codes = FRAME.assign(
        region=FRAME["region"].map({"n": 0, "s": 1}), device=FRAME["device"].factorize()[0]
    )
    learner = fit_quietly(LEARNERS[name], codes.to_numpy(dtype=float), Y, SITE)
    # in the order of their levels, numbers such as of devices are cut into the same bins
    assert learner.rejected_ == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", LEARNERS)
def test_two_environments(name):
    """What is constant in both is rejected; what varies in one of two only may be compared."""
    frame, y, site = make_frame(n_environments=2)
    frame["b_only"] = np.where(site == "b", np.arange(len(site)) % 2, 0)
    learner = fit_quietly(LEARNERS[name], frame.drop(columns="flag"), y, site)
    assert learner.rejected_[:3] == ["device", "only_a", "latitude"]
    assert "b_only" not in learner.rejected_[:3]


@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(ICSCMClassifier(min_replication=0), id="rule"),
        pytest.param(InvariantTreeClassifier(min_replication=0), id="tree"),
        pytest.param(InvariantTreeClassifier(tolerance=None), id="plain tree"),
        pytest.param(SCMClassifier(), id="scm"),
    ],
)
def test_nothing_is_rejected_where_nothing_must_be_replicated(learner):
    """As in the paper, whose experiments use min_replication=0."""
    fitted = fit_quietly(learner, FRAME, Y, SITE)
    assert {*fitted.rejected_}.isdisjoint(GIVEAWAYS)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_table_of_nothing_else_gives_no_model(name):
    learner = fit_quietly(LEARNERS[name], FRAME[["region", "device"]], Y, SITE)
    assert (learner.rejected_, learner.features_used_) == (["region", "device"], [])


def test_of_very_many_columns_a_hundred_are_named():
    many = {f"x{j}": (SITE == "a") * (1 + np.arange(len(SITE)) % 2) for j in range(150)}
    frame = pd.DataFrame({"age": FRAME["age"]} | many)
    learner = fit_quietly(ICSCMClassifier(), frame, Y, SITE)
    assert len(learner.rejected_) == 100
    note = "150 columns determine the environment and are rejected; 100 of them are named."
    assert note in learner.trace_.notes


def test_a_column_that_nearly_does_is_noted():
    rng = np.random.default_rng(1)
    near = np.where(rng.random(len(SITE)) < 0.03, rng.choice(list("abcd"), len(SITE)), SITE)
    learner = fit_quietly(ICSCMClassifier(), FRAME[["age"]].assign(near=near), Y, SITE)
    assert learner.rejected_ == []
    assert learner.trace_.notes[0].startswith("The environment can nearly be told from near")


# --- sources --------------------------------------------------------------------------------------


def test_files_reject_the_same(tmp_path):
    path = tmp_path / "rows.parquet"
    FRAME.assign(y=Y, site=SITE).to_parquet(path)
    expected = fit_quietly(ICSCMClassifier(), FRAME, Y, SITE)
    with warnings.catch_warnings(), open_files(path, "y", environments="site") as countable:
        warnings.simplefilter("ignore")
        learner = ICSCMClassifier().fit_counts(countable)
    assert learner.rejected_ == GIVEAWAYS
    assert learner.trace_ == expected.trace_


def test_dask_collections_reject_the_same():
    dd = pytest.importorskip("dask.dataframe")
    table = dd.from_pandas(FRAME.assign(y=Y, site=SITE), npartitions=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = ICSCMClassifier().fit(table[[*FRAME]], table["y"], environments=table["site"])
    assert learner.rejected_ == GIVEAWAYS


def test_sites_reject_the_same():
    """No site can tell by itself: each has one value."""
    agreement = make_agreement(
        {"age": [50, 55, 60, 65, 70], "region": ["n", "s"]},
        classes=(0, 1),
        environments=("a", "b", "c", "d"),
    )
    sites = [
        LocalSite(FRAME[name == SITE], Y[name == SITE], environments=name, agreement=agreement)
        for name in "abcd"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = InvariantTreeClassifier().fit_counts(open_sites(sites, agreement))
    assert learner.rejected_ == ["region"]
    assert learner.features_used_ == ["age"]


def test_packed_stores_reject_the_same(tmp_path):
    """Genes of one country, of which some are identical."""
    rng = np.random.default_rng(0)
    genes = pd.DataFrame({"cause": (FRAME["age"] > 60) * 1, "coin": FRAME["coin"]})
    genes["local"] = (SITE == "a") & (rng.random(len(SITE)) < 0.5)
    genes["same"] = genes["local"]
    genes = genes.astype(int)
    pack_matrix(genes, tmp_path / "genes.bits", names=list(genes))
    labels = pd.DataFrame({"genome": np.arange(len(Y)), "y": Y, "site": SITE})
    countable = open_bits(tmp_path / "genes.bits", labels, "y", environments="site")
    with countable, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = ICSCMClassifier().fit_counts(countable)
    assert learner.rejected_ == ["local", "same"]
    assert learner.features_used_ == ["cause"]


# --- sets of columns ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["table", "tree"])
def test_causal_prediction_leaves_them_out(model):
    """Given a column that determines the environment nothing could be tested.

    Every set with it was accepted, and the accepted sets shared nothing.
    """
    X = pd.DataFrame({"cause": (FRAME["age"] > 60) * 1.0, "site": pd.factorize(SITE)[0]})
    selector = InvariantCausalPrediction(model=model, random_state=0)
    with pytest.warns(LeftOutWarning, match="Rejected: site determines the environment"):
        selector.fit(X, Y, environments=SITE)
    assert selector.rejected_ == ["site"]
    assert not any("site" in columns for columns in selector.accepted_sets_)
    assert selector.p_values_.shape == (2,)
    with pytest.raises(IcscmError, match="each column of X determines the environment"):
        selector.fit(X[["site"]], Y, environments=SITE)
