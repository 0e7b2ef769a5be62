"""Values that the user declares missing are missing in all types of columns and files."""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.io.formats import TextFormat
from icscm.io.streams import load_table, read_file


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_na_applies_to_all_kinds_of_columns_of_binary_files(tmp_path, ending):
    """--na -9 left categories and numbers of Parquet files alone."""
    kinds = {
        "level": pa.array(["a", "-9", None, "a"]).dictionary_encode(),
        "text": pa.array(["a", "-9", None, "?"]),
        "whole": pa.array([1, -9, None, 2], type=pa.int8()),
        "unsigned": pa.array([1, 9, None, 2], type=pa.uint8()),
        "float": pa.array([1.5, -9.0, None, 2.0], type=pa.float32()),
        "coded": pa.array([1, -9, None, 1]).dictionary_encode(),
        "decimal": pa.array([Decimal("1.50"), Decimal("-9.00"), None, Decimal("2.00")]),
        "flag": pa.array([True, False, None, True]),
    }
    table = pa.table(kinds)
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        table = table.append_column("view", pa.array(["a", "-9", None, "b"], pa.string_view()))
        pa.feather.write_feather(table, path)
    found = read_file(path, na=["-9", "?"]).to_pydict()
    assert found["level"] == ["a", None, None, "a"]
    assert found["text"] == ["a", None, None, None]
    assert found["whole"] == [1, None, None, 2]
    assert found["unsigned"] == [1, 9, None, 2]
    assert found["float"] == [1.5, None, None, 2.0]
    assert found["coded"] == [1, None, None, 1]
    assert found["decimal"] == [Decimal("1.50"), None, None, Decimal("2.00")]
    assert found["flag"] == [True, False, None, True]
    assert found.get("view", ["a", None, None, "b"]) == ["a", None, None, "b"]
    kept = read_file(path, na=["-9"]).schema.field("level").type
    assert kept == table.schema.field("level").type


def test_na_that_is_a_number_however_it_is_written(tmp_path):
    """--na -9 is meant for -9.0 as well, in text as in Parquet files."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n-9,-9.0\n1,2.5\n")
    assert read_file(path, na=["-9"]).to_pydict() == {"a": [None, 1], "b": [None, 2.5]}


LARGE = ["9223372036854775808", "-9223372036854775809", "9" * 30, "9" * 400, "9" * 5000]


@pytest.mark.parametrize("na", [*LARGE, "1e19", "1e300", "1e400", "nan", "nan(x)", "inf", ""])
def test_na_that_columns_cannot_hold(tmp_path, na):
    """--na 9223372036854775808 was an OverflowError where a column holds whole numbers."""
    kinds = {
        "whole": pa.array([1, 2]),
        "unsigned": pa.array([2**63, 2], type=pa.uint64()),
        "float": pa.array([2.0**63, float("inf")], type=pa.float32()),
        "half": pa.array(np.array([1.5, 2.5], dtype=np.float16)),
        "decimal": pa.array([Decimal("1.50"), Decimal("2.00")]),
    }
    pq.write_table(pa.table(kinds), tmp_path / "t.parquet")
    found = read_file(tmp_path / "t.parquet", na=[na]).to_pydict()
    first = None if na == LARGE[0] else 2**63
    expected = {name: column.to_pylist() for name, column in kinds.items()}
    assert found == expected | {"unsigned": [first, 2], "float": [first, float("inf")]}
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n1,1.5,{na}\n2,2.5,\n")
    found = read_file(path, na=[na]).to_pydict()
    assert found == {"a": [1, 2], "b": [1.5, 2.5], "c": [None, None]}


def test_texts_that_mean_missing_are_counted(tmp_path):
    """A category "None" was lost in 2,296 cells, and no word was said."""
    path = tmp_path / "table.csv"
    path.write_text("smoker,age,ill\nNone,1,0\n None ,?,1\nyes,,0\nNA,?,1\n")
    loaded = load_table(path, TextFormat(na=["?"]))
    assert loaded.table.column("smoker").to_pylist() == [None, None, "yes", None]
    assert loaded.misread == {("smoker", "None"): 2, ("smoker", "NA"): 1, ("age", "?"): 2}
    kept = load_table(path, TextFormat(na=["?"], default_na=False)).misread
    assert kept == {("age", "?"): 2}


@pytest.mark.parametrize("is_read_in_passes", [False, True])
def test_none_beside_empty_cells_is_asked_about(tmp_path, monkeypatch, is_read_in_passes):
    """A level `None`, with a death rate of its own, was read as missing, and a line said so only.

    In a column that leaves other cells empty it is probably a level, so the user is asked.
    """
    path = tmp_path / "table.csv"
    smokers = ["None", "yes", "former", ""]
    rows = [f"{smokers[i % 4]},{['None', 1, ''][i % 3]},{i % 2},{i % 5 // 2}\n" for i in range(300)]
    path.write_text("smoker,dose,ill,site\n" + "".join(rows))
    if is_read_in_passes:
        monkeypatch.setattr("icscm.cli.routes._find_route", lambda *_: "passes")
    words = ["fit", str(path), "--target", "ill", "--environment", "site", "--stability", "0", "-q"]
    shown = " ".join(CliRunner().invoke(main, words).stdout.split())
    assert "'None' in 2 columns (175 cells), read as missing; --no-default-na" in shown
    # a number is no category, so that its None can mean nothing else
    assert "Question is 'None' a level of smoker, where other cells are empty? If it is," in shown
    shown = " ".join(CliRunner().invoke(main, [*words, "--no-default-na"]).stdout.split())
    assert "Question" not in shown


def test_check_and_fit_tell_which_texts_were_read_as_missing(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    rows = [f"{'None' if i % 5 else 'yes'},{i % 7 if i % 3 else '?'},{i % 2},{i % 4 // 2}\n"
            for i in range(200)]  # fmt: skip
    path.write_text("smoker,age,ill,site\n" + "".join(rows))
    words = [str(path), "--target", "ill", "--environment", "site", "--na", "?", "-q"]
    wanted = "'None' in smoker (160 cells), '?' in age (67 cells), read as missing; --no-default-na"
    for command in ("check", "fit"):
        done = CliRunner().invoke(main, [command, *words])
        assert done.exit_code == 0, done.stderr
        assert wanted in " ".join(done.stdout.split())
    monkeypatch.setattr("icscm.cli.routes._find_route", lambda *_: "passes")
    done = CliRunner().invoke(main, ["fit", *words])
    assert wanted in " ".join(done.stdout.split())
    done = CliRunner().invoke(main, ["check", *words, "--json"])
    assert json.loads(done.stdout)["read_as_missing"] == {"smoker": {"None": 160}, "age": {"?": 67}}
