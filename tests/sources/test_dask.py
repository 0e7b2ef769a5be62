"""Dask: the same model and trace as in memory, wherever the rows are."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import warnings
from itertools import pairwise
from unittest import mock

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.sizeof import sizeof
from distributed import Client, LocalCluster, Worker, wait
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from icscm import ICSCMClassifier, SCMClassifier, __version__, stability_selection
from icscm.engine import sampling
from icscm.engine.counts import Cut
from icscm.engine.pieces import negate
from icscm.exceptions import IcscmError, LeftOutWarning, NothingFoundWarning
from icscm.sources.dask import client as engine
from icscm.sources.dask.client import DaskSource, explain_failures, open_client
from icscm.sources.dask.opening import THINNED, merge_hash_counts, open_dask, tally_hashes
from icscm.sources.memory import make_memory_source
from icscm.testing import check_row_source
from support.dask_files import open_dask_files
from support.processes import PATIENCE
from support.sources import code_literally, make_dask_source, make_literal

pytestmark = [
    # threads of the cluster draw random numbers while a table is drawn
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
    pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning"),
    pytest.mark.filterwarnings("ignore::icscm.exceptions.SparseEnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::icscm.exceptions.FewEnvironmentsWarning"),
]
ON_THIS_THREAD = {"scheduler": "synchronous"}
LOCAL = {"threads_per_worker": 1, "dashboard_address": ":0"}


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.thorough)])
def client(request):
    """A client of two workers, which are threads of this process or processes."""
    shared = request.getfixturevalue(request.param)
    with shared.as_current():
        yield shared


@pytest.fixture(scope="module")
def threads():
    """Two workers in threads; processes can join them."""
    yield from start_cluster(2, processes=False, protocol="tcp://")


@pytest.fixture(scope="module")
def processes(request):
    """Worker processes, to which all that is sent must be possible to pickle.

    Each takes five seconds to import everything: in `make test` there is one.
    """
    yield from start_cluster(2 if request.config.getoption("--thorough") else 1, processes=True)


def start_cluster(n_workers, **settings):
    """Yield a client that only those tests use that ask for it.

    No worker takes tasks of another, so that it can be told what moves.
    """
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=n_workers, **LOCAL, **settings) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def quietly():
    """Tables made by chance leave out columns and find nothing more often than not."""
    with warnings.catch_warnings():
        for category in (LeftOutWarning, NothingFoundWarning):
            warnings.simplefilter("ignore", category)
        yield


def cut_frame(frame, cuts):
    """A Dask DataFrame cut at these rows; a row named twice makes an empty partition."""
    bounds = [0, *sorted(cuts), len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(bounds)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def fit_cut(learner, frame, cuts):
    """Fit to the columns of a frame, cut at these rows."""
    table = cut_frame(frame, cuts)
    features = [name for name in frame.columns if name not in ("y", "e")]
    return learner.fit(table[features], table["y"], environments=table["e"])


def fit_whole(learner, frame):
    return learner.fit(frame.drop(columns=["y", "e"]), frame["y"], environments=frame["e"])


def assert_same_fit(found, expected):
    assert str(found.model_) == str(expected.model_)
    assert found.model_ == expected.model_
    assert found.trace_ == expected.trace_
    for name in ("feature_types_", "dropped_columns_", "n_features_in_", "environments_"):
        assert getattr(found, name, None) == getattr(expected, name, None)
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.classes_.dtype == expected.classes_.dtype


def make_patients(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, n)
    smoker = np.where(rng.random(n) < 0.4 + 0.1 * place, "yes", rng.choice(["no", "ex"], n))
    age = np.where(rng.random(n) < 0.2, np.nan, rng.integers(20, 60, n) + 10 * place)
    ill = ((smoker == "yes") & ~(age <= 40)) ^ (rng.random(n) < 0.02)
    frame = pd.DataFrame({"smoker": smoker, "age": age, "dose": rng.normal(size=n)})
    frame["smokes"] = frame["smoker"].astype("category")
    return frame.assign(y=np.where(ill, "ill", "well"), e=np.array(["a", "b", "c"])[place])


# --- tables by chance --------------------------------------------------------

COLUMNS = {
    "few": st.integers(0, 3),
    "many": st.integers(-40, 40),
    "float": st.sampled_from([0.5, -0.0, 0.0, 1e300, 3.25, np.nan]),
    "measure": st.floats(-2, 2, width=16),
    "text": st.sampled_from(["u", "v", "w", "x", None]),
    "flag": st.booleans(),
}


@st.composite
def cut_tables(draw):
    """A frame with label and environment, and the rows at which it is cut."""
    n = draw(st.integers(8, 40))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    table = {
        f"{kind}{j}": draw(st.lists(COLUMNS[kind], min_size=n, max_size=n))
        for j, kind in enumerate(kinds)
    }
    label = draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))
    place = draw(st.lists(st.sampled_from("abc"), min_size=n - 2, max_size=n - 2))
    cuts = draw(st.lists(st.integers(0, n), max_size=6))
    # sorted, partitions lack classes and environments
    order = draw(st.sampled_from(["as drawn", "y", "e"]))
    frame = pd.DataFrame(table).assign(y=[*label, True, False], e=[*place, "a", "b"])
    return frame if order == "as drawn" else frame.sort_values(order, kind="stable"), cuts


def compare(frame, cuts, learner):
    """The same fit, or the same complaint."""
    with quietly():
        try:
            expected = fit_whole(learner, frame)
        except IcscmError as error:
            with pytest.raises(IcscmError, match=re.escape(str(error))):
                fit_cut(learner, frame, cuts)
            return
        found = fit_cut(ICSCMClassifier(**learner.get_params()), frame, cuts)
        assert_same_fit(found, expected)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cut_tables(),
    st.sampled_from([1, 3, 50, None]),
    st.sampled_from(["conjunction", "disjunction"]),
    st.sampled_from([7, sampling.QUANTILE_SAMPLE]),
)
def test_any_table_cut_anywhere_gives_the_model_and_trace_of_memory(
    drawn, max_thresholds, model_type, sample_size
):
    """Where thresholds are from a sample, rows of equal content may be in it and not."""
    learner = ICSCMClassifier(
        max_thresholds=3 if sample_size == 7 else max_thresholds,
        model_type=model_type,
        stop="coverage",
        pruning=model_type == "disjunction",
    )
    with (
        dask.config.set(ON_THIS_THREAD),
        mock.patch("icscm.engine.sampling.QUANTILE_SAMPLE", sample_size),
    ):
        compare(*drawn, learner)


@pytest.mark.thorough
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(cut_tables())
def test_so_does_a_cluster(processes, drawn):
    with processes.as_current():
        compare(*drawn, ICSCMClassifier(max_thresholds=3, stop="coverage"))


@pytest.fixture(scope="module")
def patients():
    """A table and the model that is learned from it in memory."""
    frame = make_patients()
    learned = fit_whole(ICSCMClassifier(), frame)
    assert len(learned.rules_) > 1
    return frame, learned


def check_mixed_table(patients, cuts):
    """Fit, and predict, on the pieces of a table with columns of several types."""
    frame, expected = patients
    table = cut_frame(frame, cuts)
    found = fit_cut(ICSCMClassifier(), frame, cuts)
    assert_same_fit(found, expected)
    lazy = found.predict(table)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), expected.predict(frame))
    np.testing.assert_array_equal(
        found.predict_proba(table).compute(), expected.predict_proba(frame)
    )


@pytest.mark.parametrize(
    "cuts", [[], [3, 3, 290, 440, 600, 760, 930, 1100, 1499]], ids=["one piece", "ten pieces"]
)
def test_mixed_tables_without_a_cluster(patients, cuts):
    with dask.config.set(scheduler="threads"):
        check_mixed_table(patients, cuts)


def test_mixed_tables_in_other_processes(patients, processes):
    with processes.as_current():
        check_mixed_table(patients, [10, 400])


def make_array(n=40_000, dtype=np.float64):
    """More rows than the sample, a thousand of them alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    X[1000:2000] = X[0]
    X[:, 3] = rng.integers(0, 2, n)
    X[rng.random(n) < 0.1, 4] = np.nan
    e = rng.integers(0, 3, n)
    y = ((X[:, 0] > 0.3 - e) & (X[:, 3] > 0)).astype(int)
    return X.astype(dtype), y, e


def cut_array(rows, *arrays):
    return [da.from_array(each, chunks=(rows, *each.shape[1:])) for each in arrays]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_more_rows_than_the_sample(dtype):
    arrays = make_array(dtype=dtype)
    expected = ICSCMClassifier().fit(*arrays[:2], environments=arrays[2])
    assert expected.trace_.notes
    with dask.config.set(scheduler="threads"):
        X, y, e = cut_array(7000, *arrays)
        found = ICSCMClassifier().fit(X, y, environments=e)
        assert_same_fit(found, expected)
        np.testing.assert_array_equal(found.predict(X).compute(), expected.predict(arrays[0]))


def test_exhaustive_search_and_plain_learner_and_no_environments():
    frame = make_patients()
    table = cut_frame(frame, [100, 700])
    X, bare = table[["smoker", "age"]], frame[["smoker", "age"]]
    with dask.config.set(ON_THIS_THREAD), quietly():
        found = ICSCMClassifier(search="exhaustive").fit(X, table["y"], environments=table["e"])
        assert_same_fit(
            found, ICSCMClassifier(search="exhaustive").fit(bare, frame.y, environments=frame.e)
        )
        assert_same_fit(SCMClassifier().fit(X, table["y"]), SCMClassifier().fit(bare, frame.y))


def test_warnings_point_to_the_caller():
    frame = make_patients().assign(id=np.arange(1500), site=lambda table: table["e"] + "!")
    with dask.config.set(ON_THIS_THREAD), pytest.warns(LeftOutWarning) as caught:
        found = fit_cut(ICSCMClassifier(), frame, [100])
    assert {each.filename for each in caught} == {__file__}
    assert [*found.dropped_columns_] == ["site", "id"]


def test_a_thinned_sample_does_not_depend_on_the_pieces():
    hashes = np.random.default_rng(0).integers(2**64, size=3000, dtype=np.uint64)
    hashes[500:900] = hashes[0]
    whole = tally_hashes(hashes, 200)
    pieces = [tally_hashes(part, 200) for part in np.array_split(hashes, 13)]
    nested = [merge_hash_counts(pieces[:5], 200), merge_hash_counts(pieces[5:], 200)]
    for merged in (merge_hash_counts(pieces, 200), merge_hash_counts(nested, 200)):
        assert merged.n_zero_bits == whole.n_zero_bits > 0
        np.testing.assert_array_equal(merged.hashes, whole.hashes)
        np.testing.assert_array_equal(merged.n_rows, whole.n_rows)
    distinct = np.unique(hashes)
    limits = [np.uint64(2 ** (64 - bits)) for bits in (whole.n_zero_bits, whole.n_zero_bits - 1)]
    assert (distinct < limits[0]).sum() == len(whole.hashes) <= 200
    assert (distinct < limits[1]).sum() > 200


def test_a_thinned_sample_is_told_of():
    X, y, e = cut_array(7000, *make_array())
    small = {
        "icscm.sources.dask.opening.tally_hashes": tally_hashes,
        "icscm.sources.dask.opening.merge_hash_counts": None,
    }
    with dask.config.set(ON_THIS_THREAD), contextlib.ExitStack() as stack:
        for name, function in small.items():
            function = function or merge_hash_counts
            limited = mock.Mock(side_effect=lambda part, *_, to=function: to(part, 20_000))
            stack.enter_context(mock.patch(name, limited))
        notes = ICSCMClassifier().fit(X, y, environments=e).trace_.notes
    assert notes[-1] == THINNED.format(1)


# --- the source --------------------------------------------------------------


def make_sources(n=200):
    """A source over uneven pieces of numbers, and its literal twin."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=(n, 2)), rng.integers(0, 2, n), np.zeros(n)))
    rows = rng.integers(0, 2, n), rng.integers(0, 3, n)
    memory = make_memory_source(X, *rows, environment_labels="abc", max_thresholds=5)
    codes, cuts = code_literally(X, memory.columns), (0, 1, 90, 90)
    source = make_dask_source(memory.columns, codes, *rows, environment_labels="abc", cuts=cuts)
    return source, make_literal(memory, X, *rows)


@pytest.mark.thorough
def test_counts_on_a_cluster(client):
    rules = [Cut(0, 4, negated=True), Cut(2, 0, negated=False)]
    check_row_source(*make_sources(), rules)


def test_workers_split_the_rows_of_a_path_once(monkeypatch):
    """Both halves are kept, and are all that is: four bytes of each row."""
    n_split = []
    with dask.config.set(ON_THIS_THREAD):
        source, _ = make_sources()
        split = source._rows_of_paths._split
        monkeypatch.setattr(
            source._rows_of_paths, "_split", lambda *how: n_split.append(1) or split(*how)
        )
        rule = source.columns.make_binned_rule(Cut(0, 2, negated=False))
        halves = (rule,), (negate(rule),)
        counts = [source.count_rows(path) for path in halves]
        for path, rows in zip(halves, counts, strict=True):
            for cube in source.count_cubes(path):
                np.testing.assert_array_equal(cube.counts[0].sum(axis=0), rows)
        np.testing.assert_array_equal(sum(counts), source.count_rows())
    assert len(n_split) == 1
    assert len(source._rows_of_paths._parts) == 2


# --- what moves --------------------------------------------------------------


def test_only_counts_move_and_tasks_are_named(client):
    """No row, code or piece goes from one worker to another, and none comes here."""
    n = 20_000
    arrays = make_array(n)
    frame = pd.DataFrame(arrays[0], columns=list("abcdf")).assign(y=arrays[1], e=arrays[2])
    table = cut_frame(frame, range(0, n, 5000)).persist()
    wait(table)
    client.run(lambda dask_worker: dask_worker.transfer_incoming_log.clear())
    brought = []
    compute = dask.compute

    def spy(*args):
        found = compute(*args)
        brought.extend(map(sizeof, found))
        return found

    with mock.patch("dask.compute", spy):
        found = ICSCMClassifier().fit(table[list("abcdf")], table["y"], environments=table["e"])
    assert_same_fit(found, fit_whole(ICSCMClassifier(), frame))
    logs = client.run(lambda dask_worker: list(dask_worker.transfer_incoming_log))
    moved = [key for log in logs.values() for entry in log for key in entry["keys"]]
    names = {str(key[0] if isinstance(key, tuple) else key).rpartition("-")[0] for key in moved}
    allowed = ("survey", "merge", "sample", "count", "sum", "total", "all", "pattern")
    assert names <= {f"icscm-{what}" for what in (*allowed, "compare", "choose")}
    # the largest answer that came here: the sample's hashes and copies, or a cube
    assert max(brought) < 2**14 * 16 + 10_000
    after = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.task_prefixes])
    assert {f"icscm-{each}" for each in ("survey", "bin", "rows", "split", "count", "sum")} <= {
        *after
    }
    assert not any(name.startswith("repartition") or "rechunk" in name for name in after)


def test_each_worker_sends_one_cube_for_each_block(client):
    X, y, e = (part.persist() for part in cut_array(500, *make_array(3000)))
    client.run(lambda dask_worker: dask_worker.transfer_incoming_log.clear())
    source = open_dask(X, y, environments=e).source
    list(source.count_cubes())
    logs = client.run(lambda dask_worker: list(dask_worker.transfer_incoming_log))
    moved = [str(key[0]) for log in logs.values() for entry in log for key in entry["keys"]]
    assert not [name for name in moved if name.startswith("icscm-count")]


# --- workers that die --------------------------------------------------------


@contextlib.contextmanager
def after_the_first_rule(action):
    """Do something in the middle of a fit."""
    split, done = DaskSource._split, []

    def split_and_act(self, rows, rule):
        halves = split(self, rows, rule)
        if not done:
            done.append(True)
            wait(dask.persist(*halves[0], *halves[1]))
            action()
        return halves

    with mock.patch.object(DaskSource, "_split", split_and_act):
        yield
    assert done


def test_a_lost_worker_changes_nothing_and_a_dead_scheduler_is_told_of(patients):
    """What a worker held is computed again elsewhere."""
    frame, expected = patients
    with LocalCluster(n_workers=2, processes=False, **LOCAL) as cluster, Client(cluster) as client:
        lost, _ = cluster.workers.values()
        held = []

        def close_worker():
            held.extend(key for key in lost.data if "icscm-true" in str(key))
            cluster.sync(lost.close, executor_wait=False)

        with after_the_first_rule(close_worker):
            found = fit_cut(ICSCMClassifier(), frame, [10, 400, 401, 900])
        assert held
        assert len(client.scheduler_info()["workers"]) == 1
        assert_same_fit(found, expected)
        with (
            after_the_first_rule(cluster.close),
            pytest.raises(IcscmError, match=r"check that .* is running"),
        ):
            fit_cut(ICSCMClassifier(), frame, [10, 400])
        with pytest.raises(IcscmError, match=r"the Dask client is|check that .* is running"):
            fit_cut(ICSCMClassifier(), frame, [10, 400])


def kill_one_worker(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


@contextlib.contextmanager
def add_worker(client, before="pass"):
    """One more worker, that nobody starts again when it is gone."""
    n_workers = len(client.scheduler_info()["workers"])
    code = f"{before}; from distributed.cli.dask_worker import main; main()"
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen(
        [sys.executable, "-c", code, client.scheduler.address, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client.wait_for_workers(n_workers + 1, timeout=PATIENCE)
        yield worker
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.thorough
def test_a_worker_that_is_killed_and_comes_back_changes_nothing(patients, processes):
    frame, expected = patients
    with processes.as_current(), after_the_first_rule(lambda: kill_one_worker(processes)):
        found = fit_cut(ICSCMClassifier(), frame, [10, 400, 401, 900])
    assert_same_fit(found, expected)
    processes.wait_for_workers(2, timeout=PATIENCE)


@pytest.mark.thorough
def test_a_worker_that_is_killed_for_good_changes_nothing(patients, threads):
    frame, expected = patients
    with threads.as_current(), add_worker(threads) as worker, after_the_first_rule(worker.kill):
        found = fit_cut(ICSCMClassifier(), frame, range(10, 1400, 100))
    assert_same_fit(found, expected)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("import icscm; icscm.__version__ = '0'", f"icscm is 0 at .*, and {__version__} here"),
        ("import sys; sys.modules['icscm'] = None", "cannot import icscm; install the same"),
    ],
)
def test_workers_without_the_package_or_with_another_version(threads, before, message):
    with (
        threads.as_current(),
        add_worker(threads, before),
        pytest.raises(IcscmError, match=message),
    ):
        fit_cut(ICSCMClassifier(), make_patients(100), [50])


def tell_other_version(_, dask_worker):
    """The answer of workers that have another version than the scheduler, which is asked first."""
    return "0" if isinstance(dask_worker, Worker) else __version__


def fail_to_import(_, dask_worker):
    if isinstance(dask_worker, Worker):
        raise ModuleNotFoundError("No module named 'icscm'", name="icscm")
    return __version__


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (tell_other_version, f"icscm is 0 at the Dask tcp://.*, and {__version__} here"),
        (fail_to_import, r"cannot import icscm; install the same .* \(tcp://.*: No module"),
    ],
)
def test_answers_of_workers_that_do_not_suit(threads, monkeypatch, answer, message):
    """The two cases of the test before, without another process."""
    monkeypatch.setattr(engine, "resolve_name", answer)
    with threads.as_current(), pytest.raises(IcscmError, match=message):
        engine.check_cluster()


def test_failures_of_the_cluster_are_explained_and_others_are_not():
    missing = ModuleNotFoundError("No module named 'icscm'", name="icscm.engine")
    with pytest.raises(IcscmError, match="cannot import icscm"), explain_failures():
        raise missing
    with pytest.raises(ZeroDivisionError), explain_failures():
        raise ZeroDivisionError


# --- what cannot be used -----------------------------------------------------


def take(frame, cuts=(30,)):
    table = cut_frame(frame, cuts)
    return table[["smoker", "age"]], table["y"], table["e"]


def with_value(frame, column, value, row=40):
    changed = frame.astype({column: object})
    changed.loc[row, column] = value
    return changed


def cut_unequally(frame):
    return [take(frame)[0], take(frame, (29,))[1], take(frame)[2]]


def mix_schemas(frame, change):
    parts = [frame.iloc[:50], change(frame.iloc[50:])]
    X = dd.from_map(lambda part: part, parts, meta=frame.iloc[:0], enforce_metadata=False)
    return X, *take(frame, (50,))[1:]


WRONG = {
    "label missing": (
        lambda t: take(with_value(t, "y", None)),
        r"y is missing \(None or NaN\) in 1 rows; drop",
    ),
    "environment missing": (
        lambda t: take(with_value(t, "e", None)),
        "environments is missing .* in 1 rows",
    ),
    "unequal partitions": (
        lambda t: (take(t)[0], take(t, (3, 30))[1], take(t)[2]),
        "y has 3 partitions but X has 2",
    ),
    "unequal rows": (cut_unequally, r"y has (29|71) rows in partition \d, but X has [37]0"),
    "divisions": (
        lambda t: (
            dd.from_pandas(t[["age"]], npartitions=2),
            dd.from_pandas(t["y"].iloc[10:], npartitions=2),
            None,
        ),
        "y and X are partitioned at different rows: take y from the same Dask DataFrame",
    ),
    "in memory": (lambda t: (take(t)[0], t["y"], None), "X is a Dask collection but y is not"),
    "three classes": (lambda t: take(with_value(t, "y", "other")), "binary classification"),
    "one class": (lambda t: take(t.assign(y="well")), "y holds one class only, 'well'"),
    "one environment": (lambda t: take(t.assign(e="a")), "a single environment, 'a'"),
    "no rows": (lambda t: take(t[:0], ()), "0 sample"),
    "label table": (lambda t: (take(t)[0], take(t)[0], None), "y must be one column of labels"),
    "series": (lambda t: (take(t)[1], take(t)[1], None), "X must be a table"),
    "column kinds": (
        lambda t: mix_schemas(
            t[["smoker", "age"]].assign(y=t.y, e=t.e), lambda p: p.assign(age="x")
        ),
        "column 'age' holds .* in one piece of the data and .* in another",
    ),
    "columns": (
        lambda t: mix_schemas(t, lambda p: p.rename(columns={"age": "years"})),
        "partition 1 of X has the columns .*'years'",
    ),
    "infinity": (lambda t: take(t.assign(age=np.inf)), "infinity in column 'age'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_frames_get_one_clear_error(case):
    make, message = WRONG[case]
    with dask.config.set(ON_THIS_THREAD):
        X, y, environments = make(make_patients(100))
        with pytest.raises(IcscmError, match=message):
            ICSCMClassifier().fit(X, y, environments=environments)


def test_wrong_arrays_get_one_clear_error():
    X, y, e = cut_array(40, *make_array(100))
    for (features, outcome, environments, *weights), message in (
        ((X.rechunk((40, 2)), y, e), r"chunks, but rows must be in one; call X = X.rechunk\(\{1:"),
        (
            (X, y.rechunk(((50, 30, 20),)), e),
            r"y and X are partitioned.*y = y.rechunk\(\(X.chunks\[0\],",
        ),
        ((X, y.rechunk(100), e), "y has 1 partitions but X has 3"),
        ((X.astype(str), y, e), "give numbers, or a Dask DataFrame"),
        ((X, y, e, np.ones(100)), "weights cannot be used with Dask"),
    ):
        options = {"sample_weight": weights[0]} if weights else {}
        with dask.config.set(ON_THIS_THREAD), pytest.raises(IcscmError, match=message):
            ICSCMClassifier().fit(features, outcome, environments=environments, **options)
    with dask.config.set(ON_THIS_THREAD), pytest.raises(IcscmError, match="rows must be in one"):
        SCMClassifier().fit(X, y).predict(X.rechunk((40, 2)))
    with pytest.raises(IcscmError, match="which only fit and predict take"):
        stability_selection(ICSCMClassifier(), X, y, environments=e, n_resamples=2)


# --- the command line's part -------------------------------------------------


def check_folder(folder, kind):
    """Learn from a folder of three files what is learned from the whole table."""
    frame = make_patients()[["smoker", "age", "y", "e"]]
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        path = folder / f"part{number}.{kind}"
        rows = frame.iloc[part]
        rows.to_parquet(path) if kind == "parquet" else rows.to_csv(path, index=False)
    expected = fit_whole(ICSCMClassifier(), frame)
    fitted = ICSCMClassifier().fit_counts(open_dask_files(folder, "y", "e"))
    assert str(fitted.model_) == str(expected.model_)
    with pytest.raises(IcscmError, match="has no column 'z'; there are 'smoker'"):
        open_dask_files(folder, "z")
    with pytest.raises(IcscmError, match=r"cannot read .* as Parquet or CSV"):
        open_dask_files(folder / "none", "y")


def test_folders_are_read_by_the_workers(client, tmp_path):
    check_folder(tmp_path, "parquet")


def test_folders_of_text_files(tmp_path):
    with dask.config.set(ON_THIS_THREAD):
        check_folder(tmp_path, "csv")


@pytest.mark.thorough
def test_folders_of_text_files_are_read_by_the_workers(processes, tmp_path):
    with processes.as_current():
        check_folder(tmp_path, "csv")


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr("icscm.sources.dask.client.PATIENCE", 0.5)
    with (
        pytest.raises(IcscmError, match="no Dask scheduler answers at tcp"),
        open_client("tcp://127.0.0.1:9"),
    ):
        pass


def test_an_unfitted_learner_says_so():
    """`predict` of a Dask collection raised AttributeError: it asked for `classes_` first."""
    X = da.zeros((4, 2), chunks=(2, 2))
    for learner in (SCMClassifier(), ICSCMClassifier()):
        for method in (learner.predict, learner.predict_proba):
            with pytest.raises(NotFittedError):
                method(X)


@pytest.mark.parametrize("dtype", ["int8", "Int8", "boolean", "float32"])
def test_classes_keep_the_type_of_the_labels(dtype):
    frame = make_patients(100)[["age", "y", "e"]]
    frame["y"] = (frame["y"] == "ill").astype("int8").astype(dtype)
    with quietly():
        assert_same_fit(fit_cut(SCMClassifier(), frame, [50]), fit_whole(SCMClassifier(), frame))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask, by pandas
def test_dates_are_labels(tmp_path):
    """A date as target was a KeyError: on the way it had become a time."""
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[[0, 1] * 20].tolist()
    table = pa.table({"a": [0, 1, 1, 1, 0] * 8, "y": days, "e": [0, 0, 1, 1] * 10})
    pq.write_table(table, tmp_path / "x.parquet")
    with quietly(), dask.config.set(scheduler="synchronous"):
        fitted = SCMClassifier().fit_counts(open_dask_files(tmp_path / "x.parquet", "y", "e"))
    assert fitted.classes_.tolist() == days[:2]
