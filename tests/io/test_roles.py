"""A table is split as the options require, and p is chosen by cross-validation."""

import re

import pyarrow as pa
import pytest

from icscm.exceptions import IcscmError
from icscm.io.roles import read_samples, split_names


def make_table(**columns):
    base = {
        "age": [63, 41, 50, 70],
        "sex": ["f", "m", "f", None],
        "ill": [1, 0, 1, 0],
        "site": ["a", "b", "a", "b"],
    }
    return pa.table(base | columns)


def test_numbers_of_rows_that_pandas_wrote_are_no_feature():
    """In memory rules were made of them, from a folder they were not."""
    table = pa.table({"x": [1, 2], "y": ["a", "b"], "__index_level_0__": [5, 6]})
    assert read_samples(table, "y").X.column_names == ["x"]


def test_taking_a_table_apart():
    samples = read_samples(make_table(), "ill", "site")
    assert samples.X.column_names == ["age", "sex"]
    assert samples.y.tolist() == [1, 0, 1, 0]
    assert samples.environments.tolist() == ["a", "b", "a", "b"]
    assert (samples.positive_text, samples.n_dropped) == ("ill is 1", 0)
    assert read_samples(make_table(), "ill").environments is None
    assert read_samples(make_table(), "ill").X.column_names == ["age", "sex", "site"]


def test_choosing_columns():
    table = make_table(**{"a,b": [1, 2, 3, 4]})
    assert read_samples(table, "ill", "site", drop=["sex,age"]).X.column_names == ["a,b"]
    chosen = read_samples(table, "ill", "site", only=["sex", "a,b"])
    assert chosen.X.column_names == ["sex", "a,b"]
    assert split_names(["age, sex,"], table.column_names, "it") == ["age", "sex"]


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        (["<30", ">30", "NO", "NO"], ["<30", ">30"], [True, True, False, False]),
        (["well", "ill", "well", "ill"], ["ill"], [False, True, False, True]),
        ([0, 1, 2, 1], ["1", "2"], [False, True, True, True]),
        ([0.0, 1.5, 0.0, 1.5], ["1.5"], [False, True, False, True]),
        ([0.0, 1.0, 0.0, 1.0], ["1"], [False, True, False, True]),
        ([True, False, True, False], ["False"], [False, True, False, True]),
        ([True, False, True, False], ["true"], [True, False, True, False]),
    ],
)
def test_positive_values(values, positive, expected):
    samples = read_samples(make_table(ill=values), "ill", "site", positive=positive)
    assert samples.y.tolist() == expected
    assert samples.positive_text.startswith("ill is ")


def test_rows_without_label_or_environment():
    table = make_table(ill=[1, 0, None, 0], site=["a", None, "b", "b"])
    with pytest.raises(IcscmError, match=r"target 'ill' is missing in 1 of 4 rows; .*--drop-miss"):
        read_samples(table, "ill", "site")
    samples = read_samples(table, "ill", "site", drop_missing=True)
    assert (samples.n_dropped, samples.y.tolist()) == (2, [1, 0])
    assert samples.X.column("age").to_pylist() == [63, 70]


def test_an_identifier_is_no_environment():
    table = pa.table({"id": range(40), "x": range(40), "y": [0, 1] * 20})
    with pytest.raises(IcscmError, match="the environment 'id' has 40 values in 40 rows; name a"):
        read_samples(table, "y", "id")


def test_environments_of_any_kind_become_plain_values():
    dates = pa.array(["2020-01-01", "2021-01-01"] * 2).cast(pa.date32())
    samples = read_samples(make_table(site=dates), "ill", "site")
    assert samples.environments.tolist() == ["2020-01-01", "2021-01-01"] * 2
    levels = pa.array(["a", "b"] * 2).dictionary_encode()
    assert read_samples(make_table(site=levels), "ill", "site").environments.tolist() == list(
        "abab"
    )


BAD = [
    ({"target": "Ill"}, {}, "has no column 'Ill'; did you mean 'ill'?"),
    ({"environment": "hospital"}, {}, "has no column 'hospital'; there are 'age', 'sex'"),
    ({"environment": "ill"}, {}, "target and environment are both 'ill'"),
    ({"drop": ["agee"]}, {}, "has no column 'agee'; did you mean 'age'?"),
    ({"only": ["ill"]}, {}, "'ill' is the target and cannot be a feature, too"),
    ({"only": ["site"]}, {}, "'site' is the environment and cannot"),
    ({"only": ["age"], "drop": ["age"]}, {}, "'age' is both to be used and to be dropped"),
    ({"drop": ["age", "sex"]}, {}, "has no column left to learn from"),
    ({}, {"ill": [None] * 4}, "the target 'ill' is missing in every row"),
    ({}, {"ill": [1, 1, 1, 1]}, "the target 'ill' has one value only (1); learning needs two"),
    (
        {},
        {"ill": ["a", "b", "c", "c"]},
        "has 3 values (a, b, c); name those that count as positive",
    ),
    ({"positive": ["2"]}, {}, "the target 'ill' has no value '2'; there are '0', '1'"),
    ({"positive": ["0", "1"]}, {}, "every value of the target 'ill' is named positive"),
    (
        {"drop_missing": True},
        {"ill": [1, None, 0, None], "site": [None, "a", None, "b"]},
        "no row has both",
    ),
]


@pytest.mark.parametrize(("options", "columns", "message"), BAD, ids=lambda each: str(each)[:40])
def test_bad_choices(options, columns, message):
    arguments = {"target": "ill", "environment": "site"} | options
    with pytest.raises(IcscmError, match=re.escape(message)):
        read_samples(make_table(**columns), where="it", **arguments)


def test_names_of_classes_that_stand_for_several_values():
    """The report called them True and False: "ill is 1 or 2 = True"."""
    table = pa.table({"x": [1, 2, 3, 4, 5], "ill": ["a", "b", "c", "d", "e"]})
    assert read_samples(table, "ill", positive=["b", "a"]).class_names == ("c or d or e", "b or a")
    assert read_samples(table, "ill", positive=["a"]).class_names == ("anything else", "a")
    two = pa.table({"x": [1, 2], "ill": ["a", "b"]})
    assert read_samples(two, "ill").class_names is None
