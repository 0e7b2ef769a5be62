"""Files are read as what they are, and what cannot be read gets one clear sentence."""

import bz2
import gzip
import io
import os
import re
import threading
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icscm import SCMClassifier
from icscm.exceptions import IcscmError, IcscmWarning, LeftOutWarning
from icscm.io import lines, locating, streams
from icscm.io.formats import MISSING_TEXTS, TextFormat
from icscm.io.naming import check_columns, suggest
from icscm.io.streams import load_table, open_table, read_file
from icscm.io.writing_tables import write_table

PLAIN = "age,site\n63,north\n41,south\n"
EXPECTED = {"age": [63, 41], "site": ["north", "south"]}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def zip_one(text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("folder/inside.csv", text)
    return stream.getvalue()


SAME = {
    "plain.csv": PLAIN,
    "UPPER.CSV": PLAIN,
    "spaces.data": "age, site\n63, north\n 41 ,south \n",
    "quoted.csv": '"age","site"\n"63","north"\n"41","south"\n',
    "windows.csv": PLAIN.replace("\n", "\r\n"),
    "blank_lines.csv": "\n\n" + PLAIN + "\n",
    "no_last_newline.csv": PLAIN.rstrip(),
    "tab.tsv": PLAIN.replace(",", "\t"),
    "tab.tab": PLAIN.replace(",", "\t"),
    "tab.txt": PLAIN.replace(",", "\t"),
    "semicolon.csv": PLAIN.replace(",", ";"),
    "bar.txt": PLAIN.replace(",", "|"),
    "mark.csv": b"\xef\xbb\xbf" + PLAIN.encode(),
    "packed.csv.gz": gzip.compress(PLAIN.encode()),
    "packed.tsv.gz": gzip.compress(PLAIN.replace(",", "\t").encode()),
    "packed.csv.bz2": bz2.compress(PLAIN.encode()),
    "packed.zip": zip_one(PLAIN),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_table_in_many_clothes(tmp_path, name):
    assert read_file(write(tmp_path, name, SAME[name])).to_pydict() == EXPECTED


@pytest.mark.parametrize("ending", ["parquet", "pq", "feather", "arrow"])
def test_binary_files_keep_their_types(tmp_path, ending):
    table = pa.table(
        {
            "code": pa.array(["7", "NA", None]),
            "level": pa.array(["a", "b", "a"]).dictionary_encode(),
            "n": pa.array([1, None, 3], type=pa.int8()),
        }
    )
    path = tmp_path / f"table.{ending}"
    if ending in ("parquet", "pq"):
        pq.write_table(table, path)
    else:
        pa.feather.write_feather(table, path)
    assert read_file(path).equals(table)
    batch = next(open_table(path).read(["n", "code"], 10))
    assert batch.schema.names == ["n", "code"]
    # texts that mean missing are looked for only if named: "NA" may be Namibia
    assert read_file(path, na=["NA"]).column("code").to_pylist() == ["7", None, None]


def test_a_parquet_file_in_a_partition_folder_gains_no_column(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "part.parquet")
    assert read_file(folder / "part.parquet").column_names == ["a"]


KINDS = [
    (["1", "2"], [1, 2]),
    (["1", "2.5"], [1.0, 2.5]),
    (["1e3", "-.5"], [1000.0, -0.5]),
    (["+1", "2"], [1.0, 2.0]),
    (["1", "x"], ["1", "x"]),
    (["0", "1"], [0, 1]),
    (["0.5", "01"], [0.5, 1.0]),
    (["007", "11"], ["007", "11"]),
    (["0x10", "1"], ["0x10", "1"]),
    (["1_000", "1"], ["1_000", "1"]),
    (["TRUE", "false"], [True, False]),
    (["true", "yes"], ["true", "yes"]),
    (["2020-01-31", "2020-13-31"], ["2020-01-31", "2020-13-31"]),
    (["99999999999999999999", "1"], [1e20, 1.0]),
    (["a\nb", 'say "a, b"'], ["a\nb", 'say "a, b"']),
]


@pytest.mark.parametrize(("cells", "values"), KINDS, ids=str)
def test_a_column_is_what_all_its_values_are(tmp_path, cells, values):
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    path = write(tmp_path, "t.csv", "a,b\n" + "".join(f"{cell},1\n" for cell in quoted))
    found = read_file(path).column("a").to_pylist()
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text", ["2020-01-31", "2020-01-31 10:30", "2020-01-31T10:30:00", "2020-01-31T10:30:00Z"]
)
def test_dates_are_dates(tmp_path, text):
    path = write(tmp_path, "t.csv", f"a,b\n{text},1\n,2\n")
    assert pa.types.is_timestamp(read_file(path).column("a").type)


def test_types_are_told_by_the_whole_column(tmp_path):
    """A column whose first megabytes are numbers may hold text further down."""
    lines = "".join(f"{i},{i}\n" for i in range(200_000))
    path = write(tmp_path, "t.csv", f"a,b\n{lines}V27,1\n")
    table = read_file(path)
    assert table.column("a").type == pa.string()
    assert table.column("b").type == pa.int64()
    assert table.num_rows == 200_001


@pytest.mark.parametrize("text", ["", *MISSING_TEXTS, '""', " NA "])
def test_missing_texts(tmp_path, text):
    path = write(tmp_path, "t.csv", f"number,text\n1,a\n{text},{text}\n")
    table = read_file(path)
    assert table.to_pydict() == {"number": [1, None], "text": ["a", None]}


def test_missing_texts_of_the_user(tmp_path):
    path = write(tmp_path, "t.csv", "number,text\n1,a\n?,?\n-9,none\n")
    table = read_file(path, na=["?", "-9"])
    assert table.to_pydict() == {"number": [1, None, None], "text": ["a", None, "none"]}
    path = write(tmp_path, "t.csv", "country,b\nNA,1\n,2\nDE,3\n")
    assert read_file(path, default_na=False).column("country").to_pylist() == ["NA", None, "DE"]


def test_a_single_column_keeps_its_empty_lines(tmp_path):
    path = write(tmp_path, "t.csv", "a\n1\n\n3\n")
    assert read_file(path).to_pydict() == {"a": [1, None, 3]}


def test_a_column_without_a_name_gets_one(tmp_path):
    path = write(tmp_path, "t.csv", ",a\n0,5\n1,6\n")
    assert read_file(path).column_names == ["column 1", "a"]


def test_types_that_a_model_asks_for(tmp_path):
    path = write(tmp_path, "t.csv", "code,flag,dose,other\n7,true,01,1\n8,FALSE,2,2\n")
    types = {"code": "category", "flag": "boolean", "dose": "number", "absent": "number"}
    table = read_file(path, types=types)
    assert table.to_pydict() == {
        "code": ["7", "8"],
        "flag": [True, False],
        "dose": [1, 2],
        "other": [1, 2],
    }
    assert read_file(path, types={"flag": "category"}).column("flag").to_pylist() == [
        "true",
        "FALSE",
    ]


def test_columns_are_chosen_and_ordered(tmp_path):
    path = write(tmp_path, "t.csv", "a,b,c\n1,2,3\n")
    assert next(open_table(path).read(["c", "a"], 10)).to_pydict() == {"c": [3], "a": [1]}


BAD = {
    "empty": ("t.csv", b"", "t.csv is empty"),
    "blank": ("t.csv", b"\n \n", "t.csv is empty"),
    "no_rows": ("t.csv", b"a,b\n", "t.csv has a header but no rows"),
    "twice": ("t.csv", b"a,b,a\n1,2,3\n", "t.csv has several columns called 'a'; rename them"),
    "no_header": ("t.csv", b"1,2\n3,4\n", "holds numbers, not names; add a header line"),
    "short_row": ("t.csv", b"a,b\n1,2\n3\n", "row 2 below the header of"),
    "long_row": ("t.csv", b"a,b\n1,2,3\n", "has 3 fields where the header has 2 (delimiter ',')"),
    "encoding": ("t.csv", b"a,b\n\xff\xfe,2\n", "is not utf-8 text; save it as UTF-8, or name"),
    "encoded_header": ("t.csv", b"\xff,b\n1,2\n", "is not utf-8 text"),
    "utf_16": ("t.csv", "a,b\n1,2\n".encode("utf-16"), "is not utf-8 text"),
    "ending": ("t.xlsx", b"PK", "has ending '.xlsx', which is not a known format; known are .csv"),
    "no_ending": ("table", b"a", "has no ending, which is not a known format"),
    "bad_gz": ("t.csv.gz", b"garbage", "t.csv.gz cannot be read"),
    "bad_zip": ("t.zip", b"garbage", "is not a zip archive"),
    "cut_gz": ("t.csv.gz", gzip.compress(PLAIN.encode() * 99)[:40], "t.csv.gz cannot be read"),
    "bad_parquet": ("t.parquet", b"garbage", "t.parquet cannot be read as Parquet"),
    "bad_arrow": ("t.feather", b"garbage", "t.feather cannot be read as Arrow"),
    "nul": ("t.csv", bytes(5000), "t.csv holds NUL characters, so it is not text"),
    "packed_parquet": ("t.parquet.gz", b"x", "is a compressed .parquet file; decompress it"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case):
    name, content, message = BAD[case]
    with pytest.raises(IcscmError) as caught:
        read_file(write(tmp_path, name, content))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def write_zip(folder, members):
    path = folder / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_zip_of_two_files(tmp_path):
    """The UCI diabetes archive holds two tables; it had to be unpacked by hand."""
    path = write_zip(tmp_path, {"d/a.csv": PLAIN, "d/b.tsv": PLAIN.replace(",", "\t")})
    with pytest.raises(IcscmError, match=r"2 files \(d/a.csv, d/b.tsv\); name .* with --member"):
        read_file(path)
    assert read_file(path, member="d/a.csv").to_pydict() == EXPECTED
    assert read_file(path, member="d/b.tsv").to_pydict() == EXPECTED
    with pytest.raises(IcscmError, match=r"has no member 'a.csv'; did you mean 'd/a.csv'"):
        read_file(path, member="a.csv")
    with pytest.raises(IcscmError, match=r"is not a .zip archive; --member is"):
        read_file(write(tmp_path, "t.csv", PLAIN), member="x")


@pytest.mark.parametrize("name", ["table.csv", "table.Rtab", "table.parquet", "table.feather"])
def test_the_only_table_in_a_zip(tmp_path, name):
    """A read-me beside the table made a zip unreadable."""
    stream = io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(pa.table(EXPECTED), stream)
    elif name.endswith(".feather"):
        pa.feather.write_feather(pa.table(EXPECTED), stream)
    else:
        stream.write(PLAIN.replace(",", "\t" if "Rtab" in name else ",").encode())
    members = {"README": "x", "__MACOSX/._table.csv": "x", name: stream.getvalue()}
    assert read_file(write_zip(tmp_path, members)).to_pydict() == EXPECTED


def test_standard_input(monkeypatch):
    """Data could not be piped in."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert read_file("-").to_pydict() == EXPECTED
    with pytest.raises(IcscmError, match="standard input is empty"):
        read_file("-")


@pytest.mark.parametrize("n", [5_000, pytest.param(50_000, marks=pytest.mark.thorough)])
def test_wide_text_files(tmp_path, n):
    """Headers were searched for repeated names in time that grew with their square, each column
    was converted alone, and a header longer than a megabyte could not be read at all.
    """
    kind = "of_some_kind" * (100_000 // n)
    names = [f"gene_{i:07}_{kind}" for i in range(n)]
    assert len(",".join(names)) > 1_000_000
    cells = {0: "1", 1: "0.5", 2: "A", 3: ""}
    lines = [",".join(cells[(i + k) % 4] for i in range(n)) for k in (0, 0, 0)]
    path = write(tmp_path, "t.csv", ",".join(names) + "\n" + "\n".join(lines) + "\n")
    table = read_file(path)
    assert table.shape == (3, n)
    assert [table.column(i).to_pylist()[0] for i in range(4)] == [1, 0.5, "A", None]
    assert table.column_names == names


def test_a_row_much_longer_than_the_header(tmp_path):
    """Rows must fit what is read at a time, whatever the header's length."""
    long = "x" * 3_000_000
    rows = "".join(f"{i},a\n" for i in range(50))
    path = write(tmp_path, "t.csv", f"a,b\n{rows}51,{long}\n")
    assert read_file(path).column("b").to_pylist()[-1] == long


INFERRED = ["", "NA", "1", "-2", "007", "2.5", "1e3", "+1", "inf", "x", "true", "FALSE", "-9.0"]
INFERRED += ["99999999999999999999", "2020-01-31", "2020-13-31", "nan", ".5", "5.", "-", "-9", "A"]
INFERRED += ["1,5", "1.234,5", "0,5", "1.000", "9223372036854775808", "0x10", "nan(1)", "infinity"]


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from(INFERRED), min_size=n, max_size=n), min_size=2, max_size=8
        )
    ),
    st.sampled_from(".,"),
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_neighbours_do_not_change_a_column(tmp_path, columns, decimal):
    """Columns of a table come out as each does alone."""

    def read(columns):
        text = ";".join(f"c{i}" for i in range(len(columns))) + ";end\n"
        text += "".join(";".join(row) + ";1\n" for row in zip(*columns, strict=True))
        path = write(tmp_path, "t.csv", text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            return read_file(path, na=["-9"], delimiter=";", decimal=decimal)

    together = read(columns)
    for i, column in enumerate(columns):
        alone = read([column]).column(0)
        assert together.column(i).type == alone.type
        assert str(together.column(i).to_pylist()) == str(alone.to_pylist())


@pytest.mark.parametrize("name", ["t.Rtab", "t.rtab"])
def test_presence_tables(tmp_path, name):
    """Roary's .Rtab tables were of no known format."""
    path = write(tmp_path, name, PLAIN.replace(",", "\t"))
    assert read_file(path).to_pydict() == EXPECTED


DELIMITERS = [
    '"a,b";c\n1;2\n',
    '"a;b",c\n1,2\n',
    "weight, kg;age;site\n1;2;3\n",
    "age,note (a|b|c|d)\n1,x\n",
    "a;b;c\n1,5;2,5;3\n",
    'a;note, free;c\n1;"x\ny, z";3\n4;"u\nv, w";6\n',
    '"a,\nb";c;"d, e, f,\ng"\r\n1;"x\r\ny, z";3\r\n',
    'a;pipe, inches;c\n1;5" or, 6;2\n3;4" or, 7;4\n',
]


@pytest.mark.parametrize("text", DELIMITERS)
def test_the_delimiter_is_no_part_of_a_name(tmp_path, text):
    """A comma in a quoted name made a semicolon file one of commas; so did one in a quoted cell
    that goes on over two lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        table = read_file(write(tmp_path, "t.csv", text))
    assert table.num_columns == 3 if text.count(";") > 3 else 2


def test_decimal_commas(tmp_path):
    """Numbers such as 1.234,5 became categories without a word."""
    text = "a;b;c;d\n1,5;1.234,5;x,1;7\n-2,25;3;y;8\n;1.000;z;9\n"
    path = write(tmp_path, "t.csv", text)
    found = read_file(path, decimal=",")
    assert found.to_pydict() == {
        "a": [1.5, -2.25, None],
        "b": [1234.5, 3.0, 1000.0],
        "c": ["x,1", "y", "z"],
        "d": [7, 8, 9],
    }
    with pytest.warns(IcscmWarning, match=r"decimal commas.* in 'a'; .* --decimal ,"):
        assert read_file(path).column("a").to_pylist() == ["1,5", "-2,25", None]
    with pytest.raises(IcscmError, match=r"holds '1,5' now; .* decimals have commas \(--decimal ,"):
        read_file(path, types={"a": "number"})
    quoted = write(tmp_path, "q.csv", 'a,b\n"1,5",2\n')
    assert read_file(quoted, decimal=",").to_pydict() == {"a": [1.5], "b": [2]}
    with pytest.raises(IcscmError, match=r"decimal must be '.' or ','; got ';'"):
        read_file(path, decimal=";")


def test_no_warning_where_commas_are_few_or_delimit(tmp_path):
    """Answers such as "1,2" beside others are lists, not numbers."""
    read_file(write(tmp_path, "t.csv", "a;b\n1,2;x\n3;y\n"))
    read_file(write(tmp_path, "t.csv", 'a,b\n"1,5",x\n'))


def test_question_marks_are_no_category_without_a_word(tmp_path):
    """Of a heart disease file with ? for missing, numbers became categories in silence, and the
    rule found was `oldpeak != "0.0"`."""
    path = write(tmp_path, "t.csv", "a,b,c\n1,x,7\n?,?,8\n2,z,9\n")
    with pytest.warns(IcscmWarning, match=r"has '\?' as a category of a, b; .* --na '\?'"):
        assert read_file(path).column("a").to_pylist() == ["1", "?", "2"]
    assert read_file(path, na=["?"]).column("a").to_pylist() == [1, None, 2]
    types = {"a": "category", "b": "category"}  # as a fitted model reads new rows
    assert read_file(path, types=types).column("b").to_pylist() == ["x", "?", "z"]


def test_files_that_are_not_there(tmp_path):
    write(tmp_path, "patients.csv", PLAIN)
    with pytest.raises(IcscmError, match=r"there is no file .*; did you mean 'patients.csv'"):
        read_file(tmp_path / "patient.csv")
    with pytest.raises(IcscmError, match="there is no file"):
        read_file(tmp_path / "nowhere" / "patients.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IcscmError, match="holds no data: no file in it ends in"):
        read_file(tmp_path / "folder.csv")


def test_a_late_ragged_row_is_named(tmp_path):
    lines = "".join(f"{i},{i}\n" for i in range(100_000))
    path = write(tmp_path, "t.csv", f"a,b\n{lines}7\n")
    with pytest.raises(IcscmError, match="row 100,001 below the header"):
        read_file(path)


def test_a_type_that_is_not_there(tmp_path):
    path = write(tmp_path, "t.csv", "age,b\n63,1\nold,2\n")
    with pytest.raises(
        IcscmError, match=r"column 'age' .* held numbers at fitting and holds 'old'"
    ):
        read_file(path, types={"age": "number"})
    with pytest.raises(IcscmError, match=r"'b' .* held booleans at fitting and holds '1'"):
        read_file(path, types={"b": "boolean"})


def test_bad_ways_of_reading(tmp_path):
    path = write(tmp_path, "t.csv", PLAIN)
    with pytest.raises(IcscmError, match="delimiter must be one character; got ',,'"):
        read_file(path, delimiter=",,")
    with pytest.raises(IcscmError, match="there is no encoding 'utf-9'"):
        read_file(path, encoding="utf-9")
    with pytest.raises(IcscmError, match="has no column 'Age'; did you mean 'age'"):
        check_columns(["Age"], read_file(path).column_names, "t.csv")
    with pytest.raises(IcscmError, match="lacks 2 columns: 'x', 'y'"):
        check_columns(["x", "age", "y"], read_file(path).column_names, "t.csv")
    latin = write(tmp_path, "latin.csv", "a,b\nMüller,1\n".encode("cp1252"))
    assert read_file(latin, encoding="cp1252").column("a").to_pylist() == ["Müller"]


def test_suggestions():
    assert suggest("hospitl", ["hospital", "age"]) == "; did you mean 'hospital'?"
    assert suggest("q", []) == ""
    assert "and 3 more" in suggest("q", list("abcdefgh"))
    check_columns(["a", "a"], ["a"], "it")


def test_no_table_is_written_to_an_unknown_ending(tmp_path):
    with pytest.raises(IcscmError, match=r"must end in .csv, .tsv or .parquet"):
        write_table(pa.table({"a": [1]}), tmp_path / "t.xlsx")


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5).map(str.strip)


@given(
    names=st.lists(CELLS.filter(bool), min_size=2, max_size=3, unique=True),
    rows=st.lists(st.tuples(CELLS, st.integers(-5, 5)), min_size=1, max_size=5),
    ending=st.sampled_from([".csv", ".tsv", ".parquet"]),
)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_written_is_read_back(tmp_path, names, rows, ending):
    """Any text, quotes, delimiters and newlines included; only missing texts turn to missing."""
    texts = [text for text, _ in rows]
    table = pa.table({names[0]: pa.array(texts), names[1]: [number for _, number in rows]})
    path = tmp_path / f"t{ending}"
    write_table(table, path)
    if ending != ".parquet" and all(
        re.match(lines.NUMBER_PATTERN, name.strip()) for name in names[:2]
    ):
        return  # rejected: "0" and "INF" are no names
    back = read_file(path, types={names[0]: "category", names[1]: "number"})
    missing = {"", *MISSING_TEXTS} if ending != ".parquet" else set()
    assert back.column_names == names[:2]
    assert back.column(0).to_pylist() == [None if each in missing else each for each in texts]
    assert back.column(1).to_pylist() == [number for _, number in rows]


def count_openings(monkeypatch):
    """Every file that is opened from now on, by any of the ways in which tables are."""
    opened = []

    def watch(place, owner):
        original = getattr(owner, place)

        def open_and_count(first, *args, **kwargs):
            opened.append(getattr(first, "path", first))
            return original(first, *args, **kwargs)

        monkeypatch.setattr(owner, place, open_and_count)

    watch("open", locating.Source)
    watch("ParquetFile", streams)
    return opened


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_table_is_opened_once(tmp_path, monkeypatch, ending):
    """A text file was opened for its header, its cells, and two more times for warnings."""
    path = tmp_path / f"table.{ending}"
    table = pa.table({"code": ["?", "x"], "dose": ["1,5", "2,5"], "n": [1, 2]})
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        text = b"code;dose;n\n?;1,5;1\nx;2,5;2\n"
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    opened = count_openings(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        assert read_file(path).equals(table)
    assert opened == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_can_be_read(tmp_path):
    """What can be opened only once: the header was read, and then there were no cells."""
    path = tmp_path / "table.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=[PLAIN])
    writer.start()
    assert read_file(path).to_pydict() == EXPECTED
    writer.join()


# --- columns that are declared categories ---------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_declared_categories(tmp_path, ending):
    """Codes written as numbers are levels, whether a table is loaded or read in batches."""
    table = pa.table({"code": [12, 7, None, 12], "a,b": ["x", "y", "x", "y"], "n": [1, 2, 3, 4]})
    path = tmp_path / f"t.{ending}"
    write_file = pa.csv.write_csv if ending == "csv" else pq.write_table
    write_file(table, path)
    form = TextFormat(categories=["code,a,b"])
    loaded = load_table(path, form).table
    reader = open_table(path, form)
    (batch,) = reader.read(["n", "a,b", "code"], 10)
    for name in ("code", "a,b"):
        assert pa.types.is_dictionary(loaded.schema.field(name).type)
        assert pa.types.is_dictionary(reader.schema.field(name).type)
        assert batch.column(name).to_pylist() == loaded.column(name).to_pylist()
    levels = ["12", "7", None, "12"] if ending == "csv" else [12, 7, None, 12]
    assert loaded.column("code").to_pylist() == levels
    assert loaded.schema.field("n").type == pa.int64()
    misspelt = TextFormat(categories=["cod"])
    for read in (load_table, lambda *source: open_table(*source).schema):
        with pytest.raises(IcscmError, match="has no column 'cod'; did you mean 'code'"):
            read(path, misspelt)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.NoEnvironmentsWarning")
def test_a_declared_category_is_learned_from_as_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    code = 10**9 + np.arange(300)
    frame = pd.DataFrame({"code": code, "x": rng.integers(0, 2, 300)})
    frame["y"] = np.where(rng.random(300) < 0.1, 1 - frame["x"], frame["x"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    declared = SCMClassifier().fit_dataset(
        tmp_path / "t.csv", "y", text=TextFormat(categories=["code"])
    )
    assert declared.feature_types_ == ("category", "number")
    texts = frame.assign(code=frame["code"].astype(str).astype("category"))
    in_memory = SCMClassifier().fit(texts[["code", "x"]], frame["y"])
    assert declared.model_ == in_memory.model_
    with pytest.warns(LeftOutWarning, match="column 'code'"):
        plain = SCMClassifier().fit_dataset(tmp_path / "t.csv", "y")
    assert [*plain.dropped_columns_] == ["code"]
