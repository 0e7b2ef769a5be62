"""The same tree, bit for bit, wherever the rows lie and however they are counted."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from icscm import InvariantTreeClassifier
from icscm.search import nodes
from icscm.sources.bits.opening import open_bits
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.sites import LocalSite, make_agreement, open_sites

SITES = ("east", "north", "south", "west")
pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")


@pytest.fixture(scope="module")
def frame():
    """Two causes, one of them missing at times, a habit, something local, and a copy."""
    rng = np.random.default_rng(3)
    n = 3000
    place = rng.integers(0, 4, n)
    age, smoker = rng.integers(20, 60, n).astype(float), rng.random(n) < 0.4
    log_odds = (age - 40) / 8 + 2 * smoker - 1 + rng.normal(0, 0.5, 4)[place]
    ill = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    habit = np.where(rng.random(n) < np.linspace(0.9, 0.1, 4)[place], ill, rng.random(n) < 0.5)
    made = pd.DataFrame({"age": np.where(rng.random(n) < 0.1, np.nan, age)})
    made["smoker"] = np.where(smoker, "yes", rng.choice(["no", "ex"], n))
    made["habit"] = np.round(habit + rng.normal(0, 0.6, n))
    made["local"] = np.where(place == 1, ill ^ (rng.random(n) < 0.1), 0).astype(float)
    made.loc[np.flatnonzero(place == 2)[:3], "local"] = 1.0  # or it would determine the site
    made["again"] = made["habit"]
    made["noise"] = np.round(rng.normal(size=n), 1)
    return made.assign(site=np.array(SITES)[place], y=ill.astype(int))


def split_frame(frame):
    return frame.drop(columns=["site", "y"]), frame["y"], frame["site"]


def fit_frame(learner, frame):
    X, y, site = split_frame(frame)
    return learner.fit(X, y, environments=site)


@pytest.fixture(scope="module")
def expected(frame):
    fitted = fit_frame(InvariantTreeClassifier(n_jobs=1), frame)
    reasons = {why for look in fitted.trace_.splits for why, n in look.n_rejected.items() if n}
    assert reasons == {"unreplicated", "heterogeneous"}
    rejected = fitted.trace_.rejected_columns
    assert [each.rule.feature for each in rejected] == ["local", "habit", "again"]
    assert fitted.features_used_ == ["age", "smoker"]
    assert len(fitted.model_) > 5
    return fitted


def assert_same(found, expected):
    assert found.model_ == expected.model_
    assert found.trace_ == expected.trace_
    assert str(found.model_) == str(expected.model_)
    assert found.tolerance_ == expected.tolerance_


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_and_the_order_of_rows(frame, expected, n_jobs):
    shuffled = frame.sample(frac=1, random_state=n_jobs)
    assert_same(fit_frame(InvariantTreeClassifier(n_jobs=n_jobs), shuffled), expected)


def test_files(frame, expected, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, part in enumerate((frame[:1000], frame[1000:1001], frame[1001:])):
        part.to_parquet(parts / f"{number}.parquet", row_group_size=300)
    for path in (tmp_path / "rows.csv", parts):
        found = InvariantTreeClassifier().fit_dataset(
            path, "y", environments="site", max_memory="8GiB"
        )
        assert_same(found, expected)


def test_kinds_of_frames(frame, expected):
    X, y, sites = split_frame(frame)
    assert_same(
        InvariantTreeClassifier().fit(pa.Table.from_pandas(X), y, environments=sites), expected
    )
    assert_same(
        InvariantTreeClassifier().fit(frame.drop(columns="y"), y, environments="site"), expected
    )


def test_dask(frame, expected):
    table = dd.from_pandas(frame, npartitions=5, sort=False)
    with dask.config.set(scheduler="sync"):
        found = fit_frame(InvariantTreeClassifier(), table)
        assert_same(found, expected)
        X = split_frame(frame)[0]
        lazy = found.predict_proba(split_frame(table)[0])
        np.testing.assert_array_equal(lazy.compute(), expected.predict_proba(X))


def test_sites(frame):
    X, y, sites = split_frame(frame)
    columns = {
        name: sorted(set(X[name].dropna()))[: None if name == "smoker" else -1] for name in X
    }
    agreement = make_agreement(columns, classes=(0, 1), environments=SITES, missing=["age"])
    parts = [
        LocalSite(X[sites == s], y[sites == s], environments=s, agreement=agreement) for s in SITES
    ]
    whole = InvariantTreeClassifier(max_thresholds=None)
    assert_same(
        InvariantTreeClassifier().fit_counts(open_sites(parts, agreement)),
        whole.fit(X, y, environments=sites),
    )


def make_arrays():
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(2000, 6)), 1)
    X[:, 4], X[:, 5] = X[:, 0], rng.integers(0, 2, 2000)
    place = rng.integers(0, 3, 2000)
    y = rng.random(2000) < 1 / (1 + np.exp(-2 * X[:, 0] - 2 * X[:, 5] - place))
    return X, y.astype(int), place


def test_layouts_and_types_of_arrays():
    X, y, place = make_arrays()
    wanted = InvariantTreeClassifier().fit(X, y, environments=place)
    assert len(wanted.model_) > 3
    for other in (np.asfortranarray(X), sp.csr_array(X), X[::-1][::-1]):
        assert_same(InvariantTreeClassifier().fit(other, y, environments=place), wanted)
    with dask.config.set(scheduler="sync"):
        lazy = [da.from_array(each, chunks=(300, *each.shape[1:])) for each in (X, y, place)]
        assert_same(InvariantTreeClassifier().fit(*lazy[:2], environments=lazy[2]), wanted)
    halves = np.round(2 * X) / 2  # the same numbers in fewer digits
    assert_same(
        InvariantTreeClassifier().fit(halves.astype(np.float32), y, environments=place),
        InvariantTreeClassifier().fit(halves, y, environments=place),
    )


def test_the_order_of_environments_does_not_matter(frame, expected):
    """Other names in another order: the counts move, and what is found stays."""
    X, y, sites = split_frame(frame)
    renamed = sites.map(dict(zip(SITES, "dbca", strict=True)))
    found = InvariantTreeClassifier().fit(X, y, environments=renamed)
    assert found.model_.rules == expected.model_.rules
    order = [3, 1, 2, 0]
    assert np.array_equal(
        np.array(found.model_.leaves)[..., order], np.array(expected.model_.leaves)
    )
    for one, other in zip(found.trace_.splits, expected.trace_.splits, strict=True):
        assert (one.n_candidates, one.n_rejected) == (other.n_candidates, other.n_rejected)
        assert one.chosen.heterogeneity_share == pytest.approx(
            other.chosen.heterogeneity_share, abs=1e-9
        )
        assert [each.reason for each in one.best_rejected] == [
            each.reason for each in other.best_rejected
        ]


def test_packed_genomes(tmp_path):
    """Genes of which some are copies, or habits: the store and the array give one tree."""
    rng = np.random.default_rng(1)
    X = (rng.random((1200, 40)) < 0.4).astype(np.uint8)
    place = rng.integers(0, 3, 1200)
    y = (rng.random(1200) < np.where(X[:, 3], 0.8, 0.3)).astype(int)
    X[:, 9] = np.where(rng.random(1200) < np.array([0.9, 0.5, 0.0])[place], y, X[:, 9])
    X[:, 20:23], X[:, 30] = X[:, [9]], X[:, 3]
    names = [f"g{j}" for j in range(40)]
    samples = [f"s{i}" for i in range(1200)]
    pack_matrix(X, tmp_path / "genes.bits", names=names, samples=samples)
    labels = pd.DataFrame({"genome": samples, "y": y, "site": place})
    found = InvariantTreeClassifier().fit_counts(
        open_bits(tmp_path / "genes.bits", labels, "y", environments="site")
    )
    wanted = InvariantTreeClassifier().fit(X.astype(bool), y, environments=place)
    assert found.model_.leaves == wanted.model_.leaves
    one, other = (list_refused(each.trace_) for each in (found, wanted))
    assert [rule.column for rule in one] == [rule.column for rule in other]
    assert [*map(str, one)][:4] == ["g9 present", "g20 present", "g21 present", "g22 present"]
    genes = pd.DataFrame(X.astype(bool), columns=names)
    np.testing.assert_array_equal(found.predict(genes), wanted.predict(X.astype(bool)))


def list_refused(trace):
    return [each.candidate.rule for look in trace.splits for each in look.best_rejected]


# --- what is counted, and what is kept ----------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [0, 1, 20_000, 60_000])
def test_any_bound_on_what_is_kept(monkeypatch, frame, expected, n_bytes):
    monkeypatch.setattr(nodes, "MAX_KEPT_CUBE_BYTES", n_bytes)
    assert_same(fit_frame(InvariantTreeClassifier(), frame), expected)
