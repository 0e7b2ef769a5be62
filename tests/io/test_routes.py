"""One reader of text: a file gives the same columns, types and model by whatever route it comes."""

import csv
import gzip
import io
import shutil
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import SCMClassifier
from icscm.exceptions import IcscmError
from icscm.io import lines
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


@dataclass(frozen=True)
class TextFolder:
    """A folder of text files of one table, and what its reader is told of them.

    Each column has a kind of `PLAIN`, a share of missing cells, and a last cell that may be a
    surprise; a target `y` and environments `e` come last.
    """

    kinds: tuple[str, ...]
    n_rows: int = 30
    n_files: int = 1
    seed: int = 0
    missing_share: float = 0.0
    surprises: tuple[str | None, ...] = (None,)  # repeated for all columns
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    byte_order_mark: bytes = b""
    quoting: int = csv.QUOTE_MINIMAL
    is_packed: bool = False
    na: tuple[str, ...] = ()
    default_na: bool = True
    is_delimiter_told: bool = False

    @property
    def ending(self):
        return ".csv.gz" if self.is_packed else ".csv"

    @property
    def options(self):
        """Arguments of the reader."""
        return {
            "na": list(self.na),
            "default_na": self.default_na,
            "delimiter": self.delimiter if self.is_delimiter_told else None,
            "encoding": self.encoding,
            "decimal": self.decimal,
        }

    def draw_columns(self):
        """The cells of each column, as text."""
        rng = np.random.default_rng(self.seed)
        columns = {}
        surprises = cycle(self.surprises)
        for j, kind in enumerate(self.kinds):
            cells = rng.choice(PLAIN[kind] or [""], self.n_rows).tolist()
            for i in np.flatnonzero(rng.random(self.n_rows) < self.missing_share):
                cells[i] = str(rng.choice(MISSING))
            if (surprise := next(surprises)) is not None:
                cells[-1] = surprise
            columns[f"{kind} {j}"] = cells
        columns["y"] = ["0", "1", *rng.integers(0, 2, self.n_rows - 2).astype(str)]
        columns["e"] = ["a", "b", *rng.choice(["a", "b"], self.n_rows - 2)]
        return columns

    def make_files(self):
        """The bytes of each file; one may have a header and no rows."""
        columns = self.draw_columns()
        inner_cuts = np.random.default_rng(self.seed).integers(0, self.n_rows + 1, self.n_files - 1)
        cuts = [0, *sorted(inner_cuts.tolist()), self.n_rows]
        files = []
        for k, (start, stop) in enumerate(pairwise(cuts)):
            names = [*columns] if k % 2 == 0 else [*columns][::-1]  # order does not matter
            stream = io.StringIO()
            layout = {"delimiter": self.delimiter, "quoting": self.quoting}
            writer = csv.writer(stream, lineterminator="\n", **layout)
            writer.writerow(names)
            writer.writerows(zip(*(columns[name][start:stop] for name in names), strict=True))
            content = self.byte_order_mark + stream.getvalue().encode(self.encoding)
            files.append(gzip.compress(content) if self.is_packed else content)
        return files

    def list_features(self):
        """What makes this folder hard to read alike, to count what a property has tried."""
        features = {
            "tab": self.delimiter == "\t",
            "semicolon": self.delimiter == ";",
            "missing": self.missing_share > 0,
            "late surprise": any(self.surprises),
            "leading zeros": "code" in self.kinds,
            "decimal comma": "comma" in self.kinds and self.decimal == ",",
            "several files": self.n_files > 1,
            "mark": bool(self.byte_order_mark),
            "gz": self.is_packed,
        }
        return [name for name, is_there in features.items() if is_there]


@st.composite
def text_folders(draw):
    decimal, delimiter = draw(st.sampled_from([(",", ";"), (".", ","), (".", ";"), (".", "\t")]))
    encoding, mark = draw(
        st.sampled_from([("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("cp1252", b"")])
    )
    kinds = draw(st.lists(st.sampled_from([*PLAIN]), min_size=1, max_size=4))
    kinds += ["comma"] * (decimal == ",") + ["code"] * draw(st.booleans())
    surprise = st.sampled_from([None] * len(SURPRISES) + SURPRISES)
    return TextFolder(
        kinds=tuple(kinds),
        n_rows=draw(st.integers(12, 60)),
        n_files=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 2**32 - 1)),
        missing_share=draw(st.sampled_from([0, 0.2])),
        surprises=tuple(draw(surprise) for _ in kinds),
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        byte_order_mark=mark,
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        is_packed=draw(st.booleans()),
        na=draw(st.sampled_from([(), ("?", "-9")])),
        default_na=draw(st.booleans()),
        is_delimiter_told=draw(st.booleans()),
    )


@contextmanager
def small_pieces():
    """A few rows are a block, a batch and a partition, so that surprises come late."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(lines, "MIN_BLOCK", 1)
        patch.setattr(lines, "_ROWS_IN_BLOCK", 2)
        patch.setattr(frames, "_PARTITION_BYTES", 200)
        patch.setattr("icscm.sources.files.source._MAX_BATCH_ROWS", 7)
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


def fit_on_dask(path, form):
    return SCMClassifier(n_jobs=1).fit_counts(open_dask_files(path, "y", "e", text=form))


def check_routes(text_folder):
    """Assert that all routes read the folder alike; return the learner's description or error."""
    form = TextFormat(**text_folder.options)
    folder = Path(tempfile.mkdtemp())
    files = text_folder.make_files()
    for k, content in enumerate(files):
        (folder / f"part{k}{text_folder.ending}").write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = read_file(folder, **text_folder.options)
            model = describe(fit_table, expected)
        with small_pieces():
            first_file = folder / f"part0{text_folder.ending}"
            paths = [folder, first_file] if len(files) == 1 else [folder]
            for path in paths:
                tables = (
                    read_file(path, **text_folder.options),
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
    return model


FOLDERS = {
    "decimal commas": TextFolder(
        kinds=("comma", "code", "text"), n_files=3, delimiter=";", decimal=",", encoding="cp1252",
        missing_share=0.2, na=("?", "-9"), surprises=(None, "x", None),
    ),
    "packed": TextFolder(
        kinds=("whole", "boolean", "number"), is_packed=True, byte_order_mark=b"\xef\xbb\xbf",
        surprises=("99999999999999999999", None, "007"),
    ),
    "late surprises": TextFolder(
        kinds=("whole", "code", "date", "boolean"), missing_share=0.2,
        surprises=("1.5", "-9", "2020-13-31", "text"),
    ),
    "codes that become text": TextFolder(
        kinds=("code", "number", "text", "whole"), n_files=4, delimiter=";", missing_share=0.1,
        default_na=False, surprises=("text", "1,5", "x", "0x10"),
    ),
    "tabs": TextFolder(
        kinds=("zoned", "empty", "code", "number"), n_files=2, delimiter="\t",
        quoting=csv.QUOTE_ALL, missing_share=0.2, na=("?", "-9"), is_delimiter_told=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_every_route_reads_alike(name):
    """Three readers of text disagreed about types, missing words, delimiters and encodings."""
    model = check_routes(FOLDERS[name])
    assert not isinstance(model, str), f"nothing was learned: {model}"


@pytest.mark.thorough
def test_every_route_reads_any_folder_alike():
    """The same of drawn folders, among which are all that were hard to read alike."""
    tried = Counter()

    @settings(max_examples=30, deadline=None)
    @given(text_folders())
    def check(text_folder):
        model = check_routes(text_folder)
        tried.update(text_folder.list_features())
        tried["a model"] += not isinstance(model, str)

    check()
    wanted = ["late surprise", "leading zeros", "decimal comma", "gz", "several files", "mark"]
    wanted += ["missing", "tab", "semicolon", "a model"]
    assert all(tried[name] for name in wanted), tried


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
