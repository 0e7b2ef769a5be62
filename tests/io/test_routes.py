"""One reader of text: a file gives the same columns, types and model by whatever route it comes."""

import csv
import gzip
import io
import shutil
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import SCMClassifier
from icscm.exceptions import IcscmError
from icscm.io import cells, lines
from icscm.io.formats import TextFormat
from icscm.io.streams import open_table, read_file
from icscm.sources.dask import frames
from support.dask_files import open_dask_files

PLAIN = {
    "whole": ["0", "7", "-3", "12", "9223372036854775807"],
    "code": ["007", "041", "28", "1"],
    "number": ["1.5", "-0.25", "2e3", "01", "5"],
    "comma": ["1,5", "-0,25", "1.234,5", "7"],
    "boolean": ["true", "FALSE", "True"],
    "date": ["2020-01-31", "2021-12-01 10:30"],
    "zoned": ["2020-01-31T10:30Z", "2020-01-31T10:30+01:00"],
    "text": ["a", "b c", 'say "x"', "d,e;f\tg", "two\nlines", " padded ", "Ü"],
    "empty": [],
}
# What may turn up late in a column and make it something else.
SURPRISES = [
    "007",
    "1.5",
    "text",
    "99999999999999999999",
    "true",
    "2020-01-31",
    "0x10",
    "1,5",
    "-9",
]
MISSING = ["", "NA", "nan", "None", "?", "-9"]


@st.composite
def folders_of_text(draw):
    """Files of a folder, each its bytes and ending; how they are to be read; what they have."""
    n = draw(st.integers(12, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    decimal, delimiter = draw(st.sampled_from([(",", ";"), (".", ","), (".", ";"), (".", "\t")]))
    kinds = draw(st.lists(st.sampled_from([*PLAIN]), min_size=1, max_size=4))
    kinds += ["comma"] * (decimal == ",") + ["code"] * draw(st.booleans())
    has = Counter({"tab": delimiter == "\t", "semicolon": delimiter == ";"})
    columns = {}
    for j, kind in enumerate(kinds):
        values = rng.choice(PLAIN[kind], n).tolist() if PLAIN[kind] else [""] * n
        for i in np.flatnonzero(rng.random(n) < draw(st.sampled_from([0, 0.2]))):
            values[i] = str(rng.choice(MISSING))
            has["missing"] += 1
        if draw(st.booleans()):
            values[-1] = draw(st.sampled_from(SURPRISES))
            has["late surprise"] += 1
        has |= {"leading zeros": kind == "code", "decimal comma": (kind, decimal) == ("comma", ",")}
        columns[f"{kind} {j}"] = values
    columns["y"] = ["0", "1", *rng.integers(0, 2, n - 2).astype(str)]
    columns["e"] = ["a", "b", *rng.choice(["a", "b"], n - 2)]
    n_files = draw(st.integers(1, 4))
    cuts = [0, *sorted(rng.integers(0, n + 1, n_files - 1).tolist()), n]
    encoding, mark = draw(
        st.sampled_from([("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("cp1252", b"")])
    )
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    is_packed = draw(st.booleans())
    has |= {"several files": n_files > 1, "mark": bool(mark), "gz": is_packed}
    files = []
    for k in range(n_files):
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator="\n")
        names = [*columns] if k % 2 == 0 else [*columns][::-1]  # order does not matter
        writer.writerow(names)
        writer.writerows(
            zip(*(columns[name][cuts[k] : cuts[k + 1]] for name in names), strict=True)
        )
        content = mark + stream.getvalue().encode(encoding)
        files.append(gzip.compress(content) if is_packed else content)
    text = {
        "na": draw(st.sampled_from([[], ["?", "-9"]])),
        "default_na": draw(st.booleans()),
        "delimiter": draw(st.sampled_from([None, delimiter])),
        "encoding": encoding,
        "decimal": decimal,
    }
    return files, ".csv.gz" if is_packed else ".csv", text, has


@contextmanager
def small_pieces():
    """A few rows are a block, a batch and a partition, so that surprises come late."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(lines, "MIN_BLOCK", 1)
        patch.setattr(lines, "_ROWS_IN_BLOCK", 2)
        patch.setattr(frames, "_PARTITION_BYTES", 200)
        patch.setattr("icscm.sources.files.source._MOST_BATCH_ROWS", 7)
        with dask.config.set(scheduler="synchronous"):
            yield


def describe(fit, *arguments, **options):
    """A fitted learner as far as routes could differ, or the one clear error."""
    try:
        fitted = fit(*arguments, **options)
    except IcscmError as error:
        return type(error).__name__
    names = ("feature_types_", "dropped_columns_", "environments_", "n_features_in_")
    return [
        str(fitted.model_),
        fitted.model_,
        fitted.trace_,
        fitted.classes_.tolist(),
        fitted.feature_names_in_.tolist(),
        *(getattr(fitted, name) for name in names),
    ]


def fit_table(table):
    X = table.drop_columns(["y", "e"])
    return SCMClassifier(n_jobs=1).fit(X, table["y"], environments=table["e"])


def read_in_passes(path, form):
    reader = open_table(path, form)
    return pa.Table.from_batches(reader.read(reader.names, 7), reader.schema)


def read_on_dask(path, form):
    frame = frames.read_folder(path, form).compute()
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


REACHED = Counter()


def check_routes(made):
    files, ending, text, has = made
    REACHED.update(name for name, n in has.items() if n)
    form = TextFormat(**text)
    folder = Path(tempfile.mkdtemp())
    for k, content in enumerate(files):
        (folder / f"part{k}{ending}").write_bytes(content)
    try:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(cells, "_RUN_CELLS", 0)
            expected = read_file(folder, **text)
            model = describe(fit_table, expected)
        REACHED["a model"] += not isinstance(model, str)
        with small_pieces():
            paths = [folder, folder / f"part0{ending}"] if len(files) == 1 else [folder]
            for path in paths:
                tables = (
                    read_file(path, **text),
                    read_in_passes(path, form),
                    read_on_dask(path, form),
                )
                for table in tables:
                    assert table.schema == expected.schema
                    assert str(table.to_pylist()) == str(expected.to_pylist())  # NaN is not itself
                asked = {"target": "y", "environments": "e", "text": form, "max_memory": "8GiB"}
                learner = SCMClassifier(n_jobs=1)
                assert describe(learner.fit_dataset, path, **asked) == model
                assert describe(fit_on_dask, path, form) == model
    finally:
        shutil.rmtree(folder)


def fit_on_dask(path, form):
    return SCMClassifier(n_jobs=1).fit_counts(open_dask_files(path, "y", "e", text=form))


def test_every_route_reads_alike():
    """Three readers of text disagreed about types, missing words, delimiters and encodings."""
    REACHED.clear()
    settings(max_examples=30, deadline=None, derandomize=True)(
        given(folders_of_text())(check_routes)
    )()
    wanted = ["late surprise", "leading zeros", "decimal comma", "gz", "several files", "mark"]
    wanted += ["missing", "tab", "semicolon", "a model"]
    assert all(REACHED[name] for name in wanted), REACHED


@pytest.mark.parametrize("delimiter", [None, ";"])
def test_a_folder_of_semicolons(tmp_path, delimiter):
    """It could not be read, and --delimiter was refused for folders."""
    for k in range(2):
        rows = "".join(f"{i};{i % 3},5;{i % 2};{'ab'[k]}\n" for i in range(30))
        (tmp_path / f"part{k}.csv").write_text("x;z;y;e\n" + rows)
    form = TextFormat(delimiter=delimiter, decimal=",")
    with small_pieces():
        expected = read_file(tmp_path, delimiter=delimiter, decimal=",")
        assert expected.schema.types[:2] == [pa.int64(), pa.float64()]
        assert read_in_passes(tmp_path, form).equals(expected)
        assert read_on_dask(tmp_path, form).equals(expected)
        model = describe(fit_table, expected)
        assert describe(fit_on_dask, tmp_path, form) == model
        asked = {"target": "y", "environments": "e", "text": form, "max_memory": "8GiB"}
        assert describe(SCMClassifier(n_jobs=1).fit_dataset, tmp_path, **asked) == model
