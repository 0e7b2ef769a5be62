"""Learning from files gives what learning in memory gives, and leaves nothing behind."""

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import ICSCMClassifier, SCMClassifier, _constants
from icscm.engine import pieces, sampling
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.sources.files import opening
from icscm.sources.files import source as mapped
from icscm.sources.files.opening import _add_lowest, open_files
from icscm.sources.files.source import choose_rows, find_rows, map_file, parse_size
from icscm.tables.columns import Numbers
from support.processes import PATIENCE

KINDS = ["few", "many", "heavy", "whole", "id", "text", "bool", "empty", "label", "date"]


def make_array(kind, labels, rng):
    """A column of one kind that has something to do with the label."""
    n_rows, noise = len(labels), rng.random(len(labels))
    made = {
        "few": lambda: pa.array(np.round(noise + labels, 0)),
        "many": lambda: pa.array(noise + labels / 2),
        "heavy": lambda: pa.array(np.where(noise < 0.9, 0.0, noise)),
        "whole": lambda: pa.array((noise * 90).astype(np.int32) + 5 * labels.astype(np.int32)),
        "id": lambda: pa.array(rng.permutation(n_rows)),
        "text": lambda: pa.array(
            np.array(["low", "mid", "high", "top", "rare"])[
                np.minimum(4, (noise * 3 + labels).astype(int))
            ]
        ),
        "bool": lambda: pa.array(noise + labels / 2 > 0.7),
        "empty": lambda: pa.nulls(n_rows, pa.float64()),
        "label": lambda: pa.array(labels.astype(float)),
        "date": lambda: pa.array((noise * 9).astype(np.int32)).cast(pa.date32()),
    }
    array = made[kind]()
    if kind in ("id", "label", "date") or rng.random() < 0.5:
        return array
    missing = rng.random(n_rows) < 0.2
    if kind == "many":  # NaN is missing too
        values = array.to_numpy(zero_copy_only=False).copy()
        values[rng.random(n_rows) < 0.1] = np.nan
        array = pa.array(values)
    return pa.array(array.to_pylist(), array.type, mask=missing)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(4, 250))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
    labels[:2], environments[:2] = [0, 1], [0, 1]
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    kinds = ["many", *kinds]
    table = pa.table(
        {f"x{j} {kind}": make_array(kind, labels, rng) for j, kind in enumerate(kinds)}
    )
    if draw(st.booleans()):  # files that miss an environment, or a class
        order = np.argsort(draw(st.sampled_from([labels, environments])), kind="stable")
        table, labels, environments = table.take(order), labels[order], environments[order]
    table = table.append_column("site", pa.array(np.array(["a", "b", "c"])[environments]))
    table = table.append_column("y", pa.array(np.array(["no", "yes"])[labels]))
    return table, draw(st.integers(1, 4)), draw(st.sampled_from([1, 7, 1000])), rng


def write_parts(folder, table, n_files, group_rows, rng):
    cuts = np.sort(rng.integers(0, len(table) + 1, n_files - 1)).tolist()
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        path = folder / f"part{number}.parquet"
        pq.write_table(table.slice(a, b - a), path, row_group_size=group_rows)


def fit_both(learner, path, table, **options):
    """Warnings, or the error, of both; and the fitted learners."""
    results = []
    features = table.drop_columns(["y", "site"])
    for fit in (
        lambda: learner().fit(features, table["y"], environments=table["site"]),
        lambda: learner().fit_dataset(path, target="y", environments="site", **options),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted = fit()
            except IcscmError as error:
                fitted = str(error)
        ours = [each for each in caught if issubclass(each.category, IcscmWarning)]
        assert all(each.filename == __file__ for each in ours)  # they point to the caller
        results.append((fitted, sorted(str(each.message) for each in ours)))
    return results


def assert_same(in_memory, from_files):
    (one, warned), (other, warned_too) = in_memory, from_files
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert other.model_ == one.model_
    assert other.trace_ == one.trace_
    assert str(other.model_) == str(one.model_)
    assert warned_too == warned
    assert other.dropped_columns_ == one.dropped_columns_
    assert other.feature_types_ == one.feature_types_
    assert other.classes_.tolist() == one.classes_.tolist()
    assert other.feature_names_in_.tolist() == one.feature_names_in_.tolist()
    assert other.n_features_in_ == one.n_features_in_
    assert other.environments_ == one.environments_


@contextmanager
def small_sample():
    """Tables of some hundred rows are larger than the sample."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "QUANTILE_SAMPLE", 60)
        patch.setattr(_constants, "FIRST_LOOK_ROWS", 8)
        patch.setattr(pieces, "ROW_CHUNK", 50)
        yield


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([3, 50]), st.sampled_from(["conjunction", "disjunction"]))
def test_files_and_memory_learn_the_same(tmp_path_factory, made, most, model_type):
    table, n_files, group_rows, rng = made
    folder = tmp_path_factory.mktemp("parts")
    write_parts(folder, table, n_files, group_rows, rng)

    def learner():
        return ICSCMClassifier(max_thresholds=most, model_type=model_type, n_jobs=1)

    with small_sample():
        in_memory, from_files = fit_both(learner, folder, table, max_memory="8GiB")
    assert_same(in_memory, from_files)


def make_table(n_rows=3000, seed=0, n_environments=2):
    rng = np.random.default_rng(seed)
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, n_environments, n_rows)
    return pa.table(
        {
            "cause": rng.normal(size=n_rows) + labels,
            "effect": rng.normal(size=n_rows) + labels + environments,
            "colour": pa.array(np.array(["red", "green", "blue"])[rng.integers(0, 3, n_rows)]),
            "count": rng.integers(0, 9, n_rows),
            "site": environments,
            "y": labels,
        }
    )


OPTIONS = {"target": "y", "environments": "site", "max_memory": "8GiB"}


@pytest.fixture
def table():
    return make_table()


@pytest.fixture
def path(table, tmp_path):
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=500)
    return tmp_path / "table.parquet"


@pytest.fixture
def scratch(tmp_path):
    """An empty folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.mark.filterwarnings("ignore::icscm.exceptions.NothingFoundWarning")
def test_all_kinds_of_files_give_the_same(table, path, tmp_path):
    """Parquet, CSV, TSV, a partitioned folder, a dataset; an exhaustive search too."""
    frame = table.to_pandas()
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_csv(tmp_path / "table.tsv", index=False, sep="\t")
    ds.write_dataset(
        table,
        tmp_path / "hive",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("site", pa.int64())]), flavor="hive"),
    )
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3):
        frame[number * 1000 :][:1000].to_csv(many / f"{number}.csv.gz", index=False)
    (many / "_SUCCESS").write_text("")
    sources = [path, str(path), tmp_path / "table.csv", tmp_path / "table.tsv", tmp_path / "hive"]
    sources += [many, ds.dataset(path)]
    for search in ("greedy", "exhaustive"):
        models = [ICSCMClassifier(search=search).fit_dataset(each, **OPTIONS) for each in sources]
        assert len({str(each.model_) for each in models}) == 1
        assert all(each.trace_ == models[0].trace_ for each in models)
        in_memory = ICSCMClassifier(search=search).fit(
            table.drop_columns(["y", "site"]), table["y"], environments=table["site"]
        )
        assert models[0].trace_ == in_memory.trace_
        assert models[0].predict(table).tolist() == in_memory.predict(table).tolist()


def test_many_blocks_of_columns(path, table, monkeypatch):
    monkeypatch.setattr("icscm.sources.files.source._MAX_BATCH_ROWS", 128)
    monkeypatch.setattr("icscm.engine.pieces.ROW_CHUNK", 100)
    make = mapped.make_mapped_source
    monkeypatch.setattr(
        "icscm.sources.files.source.make_mapped_source",
        lambda *args, **options: make(*args, **options | {"block_bytes": 1}),
    )
    found = ICSCMClassifier().fit_dataset(path, **OPTIONS)
    in_memory = ICSCMClassifier().fit(
        table.drop_columns(["y", "site"]), table["y"], environments=table["site"]
    )
    assert found.trace_ == in_memory.trace_


def test_columns_and_the_positive_label_can_be_chosen(path, table):
    chosen = SCMClassifier().fit_dataset(path, "y", columns=["count", "cause"], positive=0)
    assert chosen.feature_names_in_.tolist() == ["count", "cause"]
    assert chosen.classes_.tolist() == [1, 0]
    flipped = SCMClassifier().fit(
        table.select(["count", "cause"]), pd.Series(table["y"]).map({0: "b", 1: "a"})
    )
    assert chosen.model_ == flipped.model_
    assert {*chosen.predict(table).tolist()} == {0, 1}


@pytest.mark.parametrize("kind", [pa.int8(), pa.float32(), pa.string(), pa.bool_()])
def test_classes_keep_the_type_of_the_labels(path, table, kind, tmp_path):
    labels = table["y"].cast(kind) if kind != pa.bool_() else pc.equal(table["y"], 1)
    typed = table.set_column(table.schema.get_field_index("y"), "y", labels)
    pq.write_table(typed, tmp_path / "typed.parquet")
    found = SCMClassifier(max_rules=1).fit_dataset(
        tmp_path / "typed.parquet", "y", columns=["cause"]
    )
    in_memory = SCMClassifier(max_rules=1).fit(table.select(["cause"]), typed["y"].to_pandas())
    assert found.classes_.dtype == in_memory.classes_.dtype
    assert found.classes_.tolist() == in_memory.classes_.tolist()


def test_hashes_larger_than_memory_give_the_same_sample():
    rng = np.random.default_rng(0)
    for hashes in (
        rng.integers(2**64, size=50_000, dtype=np.uint64),
        rng.integers(2**64, size=900, dtype=np.uint64)[rng.integers(0, 900, 50_000)],
        np.concatenate(
            (np.full(30_000, 7, np.uint64), rng.integers(2**64, size=20_000, dtype=np.uint64))
        ),
    ):
        wanted = np.sort(hashes[sampling.choose_sample(hashes)])
        for max_bytes in (2**30, 100_000):
            parts = np.array_split(hashes, 7)
            found = choose_rows(parts, max_bytes)
            rows = find_rows(parts, found)
            np.testing.assert_array_equal(np.repeat(found.hashes, found.n_copies), wanted)
            np.testing.assert_array_equal(hashes[rows], found.hashes)
        lowest = None
        for part in np.array_split(hashes, 7):
            lowest = _add_lowest(lowest, [Numbers(part.view(np.int64))], part)
        np.testing.assert_array_equal(lowest.hashes, np.unique(hashes)[: sampling.QUANTILE_SAMPLE])
        np.testing.assert_array_equal(lowest.values[0].view(np.uint64), lowest.hashes)


# --- errors -------------------------------------------------------------------


def replace_column(table, name, values):
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


def spoil(kind, table, folder):
    """Something wrong with the data, or with what is asked of it."""
    part = folder / "part.parquet"
    asked = dict(OPTIONS)
    if kind == "label with nulls":
        values = table["y"].to_pylist()
        values[17] = None
        pq.write_table(replace_column(table, "y", values), part)
    elif kind == "environment with nulls":
        values = [None if i == 3 else "ab"[i % 2] for i in range(len(table))]
        pq.write_table(replace_column(table, "site", values), part)
    elif kind == "one class":
        pq.write_table(replace_column(table, "y", [1] * len(table)), part)
    elif kind == "three classes":
        pq.write_table(replace_column(table, "y", np.arange(len(table)) % 3), part)
    elif kind == "one environment":
        pq.write_table(replace_column(table, "site", [1] * len(table)), part)
    elif kind == "another type":
        pq.write_table(table, part)
        text = [str(value) for value in table["count"].to_pylist()]
        pq.write_table(replace_column(table, "count", text), folder / "part2.parquet")
    elif kind == "other columns":
        pq.write_table(table, part)
        pq.write_table(table.drop_columns(["count"]), folder / "part2.parquet")
    elif kind == "infinity":
        pq.write_table(replace_column(table, "cause", [np.inf] * len(table)), part)
    elif kind == "corrupt":
        pq.write_table(table, part)
        part.write_bytes(part.read_bytes()[:-200])
    elif kind == "spoilt pages":
        pq.write_table(table, part, compression="snappy")
        content = bytearray(part.read_bytes())
        content[4:3000] = bytes(2996)
        part.write_bytes(content)
    elif kind == "no rows":
        pq.write_table(table.slice(0, 0), part)
    elif kind == "ragged":
        (folder / "part.csv").write_text("y,site,a\n1,0,2\n1,1\n")
    elif kind == "two kinds":
        pq.write_table(table, part)
        (folder / "other.csv").write_text("a,b\n1,2\n")
    elif kind != "empty folder":
        pq.write_table(table, part)
        asked |= {
            "no target": {"target": "z"},
            "no environments": {"environments": "z"},
            "same": {"environments": "y"},
            "unknown columns": {"columns": ["cause", "z"]},
            "target as column": {"columns": ["cause", "y"]},
            "positive": {"positive": "yes"},
            "memory": {"max_memory": "1MB"},
            "unit": {"max_memory": "2 apples"},
            "no temp": {"temp_dir": folder / "nowhere"},
            "nothing": {"columns": []},
        }[kind]
    return asked


ERRORS = {
    "label with nulls": "column 'y', the target, is missing .* in row 17",
    "environment with nulls": "column 'site', the environment, is missing .* in row 3",
    "one class": "one class only, 1",
    "three classes": "column 'y', the target, holds 0, 1, 2 and more",
    "one environment": "a single environment",
    "another type": "part2.parquet has other types than .* count has .*: int64 vs string",
    "other columns": "part2.parquet and .* have different columns: 'count'",
    "infinity": "infinity in column 'cause'",
    "corrupt": "part.parquet cannot be read",
    "spoilt pages": "part.parquet cannot be read",
    "no rows": "no rows",
    "ragged": "row 2 below the header of .*part.csv has 2 fields where the header has 3",
    "two kinds": "holds Parquet and text files",
    "empty folder": "holds no data",
    "no target": "the data has no column 'z'; there are 'cause'",
    "no environments": "the data has no column 'z'",
    "same": "'y' is named twice among target, environments, groups and columns",
    "unknown columns": "the data has no column 'z'",
    "target as column": "'y' is named twice",
    "positive": "positive='yes' is not one of the classes",
    "memory": "max_memory='1MB' is too little",
    "unit": "max_memory must be",
    "no temp": "is not a folder",
    "nothing": "no column besides the target",
}


@pytest.mark.parametrize("kind", ERRORS)
def test_one_clear_error(kind, table, tmp_path, scratch):
    folder = tmp_path / "data"
    folder.mkdir()
    asked = spoil(kind, table, folder)
    learner = ICSCMClassifier()
    with pytest.raises(IcscmError, match=ERRORS[kind]) as caught:
        learner.fit_dataset(folder, **{"temp_dir": scratch, **asked})
    assert "\n" not in str(caught.value)
    assert not hasattr(learner, "model_")
    assert_clean(scratch)


def test_text_late_in_a_column_makes_it_text(tmp_path, monkeypatch):
    """A column whose first megabytes, blocks of the reader, are numbers could not be learned from
    at all, where in memory it is text.
    """
    monkeypatch.setattr("icscm.io.lines.MIN_BLOCK", 2**12)
    lines = ["y,site,a,b", *(f"{i % 2},{i % 3},{i % 7},{i % 5}" for i in range(9_000))]
    (tmp_path / "part.csv").write_text("\n".join([*lines, "1,1,many,2"]))
    learner = SCMClassifier(max_rules=1)
    learner.fit_dataset(tmp_path, "y", environments="site", max_memory="8GiB")
    assert learner.feature_types_ == ("category", "number")


def assert_clean(folder):
    assert not list(folder.iterdir())
    assert not count_deleted_files(folder)


def count_deleted_files(folder):
    """Files of a folder that this process holds open though they have no name any more."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += str(folder) in os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # closed meanwhile
            continue
    return found


def test_what_is_no_data_is_refused(tmp_path):
    with pytest.raises(IcscmError, match="no file or folder"):
        ICSCMClassifier().fit_dataset(tmp_path / "nowhere", **OPTIONS)
    with pytest.raises(IcscmError, match="data must be the path"):
        ICSCMClassifier().fit_dataset(make_table(), **OPTIONS)


@pytest.mark.parametrize("most", [None, 256, 1000])
def test_more_bins_than_a_byte_are_refused(path, most):
    with pytest.raises(IcscmError, match="max_thresholds must be at most 255"):
        ICSCMClassifier(max_thresholds=most).fit_dataset(path, **OPTIONS)


def test_a_bin_for_missing_values_counts_too(tmp_path):
    values = [None, *np.random.default_rng(0).random(2999)]
    pq.write_table(replace_column(make_table(), "cause", values), tmp_path / "a.parquet")
    with pytest.raises(IcscmError, match="'cause' would need 257 bins"):
        ICSCMClassifier(max_thresholds=255).fit_dataset(tmp_path, **OPTIONS)


def test_a_file_that_holds_nothing_in_a_column_has_its_type_from_the_others(tmp_path):
    table = make_table()
    pq.write_table(replace_column(table, "colour", [None] * len(table)), tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet")
    fitted = ICSCMClassifier().fit_dataset(tmp_path, **OPTIONS)
    assert fitted.feature_types_ == ("number", "number", "category", "number")


@pytest.mark.parametrize(
    ("code", "message"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "cannot be written")]
)
def test_a_disk_that_refuses_to_reserve(path, scratch, monkeypatch, code, message):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(IcscmError, match=message):
        ICSCMClassifier().fit_dataset(path, **OPTIONS, temp_dir=scratch)
    assert_clean(scratch)


def test_a_disk_that_fills_up_while_writing(path, scratch):
    """Files may not grow beyond a limit: the system then behaves as if the disk were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(IcscmError, match="the disk is full"):
            ICSCMClassifier().fit_dataset(path, **OPTIONS, temp_dir=scratch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_clean(scratch)


def test_space_is_asked_for_before_writing(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(IcscmError, match=r"needs 2\.0 MB"):
        map_file(2_000_000, tmp_path)


def test_sizes():
    assert parse_size("1.5 gb") == 1_500_000_000
    assert parse_size(" 1GiB") == 2**30
    for wrong in ("", "GiB", "-1", "1 2", "0", 0, -5, True, None):
        with pytest.raises(IcscmError, match="max_memory must be"):
            parse_size(wrong)


# --- memory, and nothing left behind -----------------------------------------------


def run(script, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


MEASURE = """
    import sys
    import warnings
    from icscm import ICSCMClassifier

    def read_status(what):
        for line in open("/proc/self/status"):
            if line.startswith(what):
                return int(line.split()[1]) * 1024

    def fit(path, limit):
        ICSCMClassifier(max_rules=3).fit_dataset(
            path, target="y", environments="site", max_memory=limit
        )

    warnings.simplefilter("ignore")
    fit(sys.argv[1], "8GiB")  # compiles the kernels
    before = read_status("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    limit = before + 150_000_000
    fit(sys.argv[2], limit)
    print(limit, read_status("VmHWM"))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("ending", "n_rows"), [("parquet", 100_000), ("csv", 30_000)])
def test_memory_stays_below_the_limit(tmp_path, ending, n_rows):
    """A table of 320 MB, whose codes alone take 40 MB, within 150 MB; text of 100 MB, too."""
    pq.write_table(make_table(), tmp_path / "small.parquet")
    make_table().to_pandas().to_csv(tmp_path / "small.csv", index=False)
    rng = np.random.default_rng(0)
    folder = tmp_path / "large"
    folder.mkdir()
    for number in range(4):
        labels, sites = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
        columns = {f"x{j}": rng.normal(size=n_rows) + labels * (j < 4) for j in range(100)}
        part = pa.table({**columns, "site": sites, "y": labels})
        if ending == "parquet":
            pq.write_table(part, folder / f"{number}.parquet", row_group_size=10_000)
        else:
            pa.csv.write_csv(part, folder / f"{number}.csv")
    process = run(MEASURE, tmp_path / f"small.{ending}", folder)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    limit, peak = map(int, output.split())
    assert peak < limit, f"{peak:,}, {limit:,}"


@pytest.mark.thorough
def test_the_choice_of_a_shape_takes_no_memory_of_its_own(tmp_path):
    """`icscm fit FOLDER` took 745 MB where 400 were allowed: the choice between conjunction and
    disjunction numbered all rows, by 70 bytes each. Now it takes half a million of them.
    """
    n_rows, rng = 600_000, np.random.default_rng(0)
    folder = tmp_path / "long"
    folder.mkdir()
    for number in range(5):
        a, e = rng.random(n_rows, dtype=np.float32), rng.integers(0, 4, n_rows).astype(np.int8)
        columns = {"a": a, "y": a + rng.random(n_rows) > 1, "e": e}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=100_000)
    script = """
        import resource, sys, warnings
        from icscm import ICSCMClassifier
        warnings.simplefilter("ignore")
        learner = ICSCMClassifier(model_type=sys.argv[2])
        learner.fit_dataset(sys.argv[1], "y", environments="e", max_memory="600MB")
        print(hasattr(learner, "shape_"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    peaks = []
    for shape, is_chosen in (("conjunction", "False"), ("auto", "True")):
        output, errors = run(script, folder, shape).communicate(timeout=PATIENCE)
        found, peak = output.split() or [errors, 0]
        assert found == is_chosen
        peaks.append(1024 * int(peak))
    assert peaks[1] - peaks[0] < 100_000_000, peaks


@pytest.mark.thorough
def test_memory_of_a_row(tmp_path, monkeypatch):
    """With `max_memory` of 400 MB a fit took 510: rows were sorted by 16 bytes each, buffers were
    as large as if there were no rows, and rows took 18 bytes where 16 were allowed for.
    """
    resident = 2**28  # what the process takes depends on what ran before
    monkeypatch.setattr(mapped, "_measure_resident", lambda: resident)
    n_rows, rng = 300_000, np.random.default_rng(0)
    columns = {name: rng.integers(0, 3, n_rows).astype(np.int8) for name in ("a", "b", "site")}
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({**columns, "y": columns["a"] > 1}), path, row_group_size=10_000)
    open_files(path, "y", environments="site").close()  # compiles the kernels
    limit = resident + mapped._SEARCH_BYTES + n_rows * (mapped._BYTES_PER_ROW + 4)
    tracemalloc.start()
    try:
        with open_files(path, "y", environments="site", max_memory=limit):
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n_rows * mapped._BYTES_PER_ROW


STOPPED = """
    import sys
    import time
    import icscm.sources.files.opening
    from icscm import ICSCMClassifier

    def dawdle(*_, **__):
        print("there", flush=True)
        time.sleep(3600)

    if sys.argv[3] == "writing":
        icscm.sources.files.opening._write_codes = dawdle
    else:
        ICSCMClassifier._learn = dawdle
    ICSCMClassifier().fit_dataset(
        sys.argv[1], target="y", environments="site", temp_dir=sys.argv[2], max_memory="8GiB"
    )
"""


@pytest.mark.parametrize("where", ["_write_codes", "learn"])
def test_nothing_is_left_behind_when_interrupted(path, scratch, monkeypatch, where):
    """The temporary file is closed whatever ends the fit."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    if where == "learn":
        monkeypatch.setattr(ICSCMClassifier, "_learn", interrupt)
    else:
        monkeypatch.setattr(opening, where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        ICSCMClassifier().fit_dataset(path, **OPTIONS, temp_dir=scratch)
    assert_clean(scratch)


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["writing", "searching"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind_when_stopped(path, scratch, sent, where):
    process = run(STOPPED, path, scratch, where)
    assert process.stdout.readline() == "there\n"
    process.send_signal(sent)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert not list(scratch.iterdir())
