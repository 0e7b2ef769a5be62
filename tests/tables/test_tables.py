"""Tables of any kind: columns, labels and environments are read and checked."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icscm.exceptions import IcscmError, LeftOutWarning
from icscm.tables import parsing
from icscm.tables.coded import CodedTable, LevelBins
from icscm.tables.columns import (
    Dates,
    Levels,
    Numbers,
    find_names,
    read_arrow,
    read_column,
    read_numbers,
)
from icscm.tables.environments import encode_environments
from icscm.tables.errors import name_columns
from icscm.tables.labels import check_labels
from icscm.tables.parsing import read_table
from icscm.tables.suspicion import (
    CONSTANT,
    EMPTY,
    ENVIRONMENT_COPY,
    IDENTIFIER,
    LABEL_COPY,
    ColumnFacts,
    _find_copies,
    drop_columns,
    find_reasons,
    find_suspicious,
    gather_number_facts,
)

N = 400


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (ColumnFacts(N, N, 1), CONSTANT),
        (ColumnFacts(N, N - 5, 1), None),  # being missing is a second value
        (ColumnFacts(N, 0, 0), EMPTY),
        (ColumnFacts(N, N, 1, copied=LABEL_COPY), LABEL_COPY),
        (ColumnFacts(N, N, N, is_category=True), IDENTIFIER),
        (ColumnFacts(N, N, N, is_category=True, is_declared=True), None),
        (ColumnFacts(N, N, 1, is_category=True, is_declared=True), CONSTANT),
        (ColumnFacts(N, N // 2, 191, is_category=True), IDENTIFIER),  # above 95 % of those present
        (ColumnFacts(N, N // 2, 190, is_category=True), None),
        (ColumnFacts(49, 49, 49, is_category=True), None),  # too few to tell
        (ColumnFacts(N, N, N, is_whole=True, lowest=1, highest=N), IDENTIFIER),
        (ColumnFacts(N, N, N - 5, is_whole=True, lowest=1, highest=N), None),
        (ColumnFacts(N, N, N, is_whole=True, lowest=1, highest=10**8), None),  # no pair expected
        (ColumnFacts(N, N, N, is_whole=True, lowest=1, highest=10**9), IDENTIFIER),
        (ColumnFacts(N, N, N, is_whole=False, lowest=1, highest=N), None),
        (ColumnFacts(N, 49, 49, is_whole=True, lowest=1, highest=49), None),
    ],
)
def test_a_column_is_judged_by_its_facts(facts, reason):
    assert facts.find_reason() == reason


def test_copies_are_named_before_other_reasons():
    facts = {
        0: ColumnFacts(N, N, 1),
        1: ColumnFacts(N, N, 2, copied=ENVIRONMENT_COPY),
        2: ColumnFacts(N, N, 2, copied=LABEL_COPY),
        3: ColumnFacts(N, N, 7),
    }
    found = find_reasons(facts, {4: "a date"})
    wanted = {4: "a date", 2: LABEL_COPY, 1: ENVIRONMENT_COPY, 0: CONSTANT}
    assert list(found.items()) == list(wanted.items())


def test_rows_in_memory_are_looked_at_no_longer_than_needed():
    late = np.arange(float(N))
    late[-1] += 0.5  # a fraction that the first look does not see
    for column in (late, np.arange(N) % 7, np.full(N, np.nan), late + 0.25):
        assert not gather_number_facts(column).is_numbering()
    assert gather_number_facts(np.arange(N)).is_numbering()
    with_missing = np.where(np.arange(N) % 9, np.arange(float(N)), np.nan)
    facts = gather_number_facts(with_missing)
    assert (facts.n_present, facts.n_distinct) == (355, 355)
    assert facts.is_numbering()


def test_a_table_in_memory_is_judged():
    rng = np.random.default_rng(0)
    labels, places = rng.integers(0, 2, N), rng.integers(0, 3, N)
    columns = {
        "label": 1 - labels,
        "place": np.where(places == 2, np.nan, places),  # missing in one place, and only there
        "empty": np.full(N, np.nan),
        "same": np.ones(N),
        "name": np.arange(N),
        "pooled": labels,
        "number": np.arange(N),
        "plain": rng.normal(size=N),
    }
    levels = {
        4: LevelBins(tuple(f"n{k}" for k in range(3)), tuple(f"n{k}" for k in range(3, N))),
        5: LevelBins(("a",), ("b", "c")),
    }
    table = CodedTable(np.column_stack([*columns.values()]), levels=levels)
    whole = np.ones(len(columns), dtype=bool)
    found = find_suspicious(table, labels, places, whole=whole, declared=())
    assert found == {
        0: LABEL_COPY,
        1: ENVIRONMENT_COPY,
        2: EMPTY,
        3: CONSTANT,
        4: IDENTIFIER,
        6: IDENTIFIER,
    }


def test_dropping_columns():
    table = CodedTable(np.zeros((3, 2)), ("a", "b"), dropped={1: "a date"})
    with pytest.raises(IcscmError, match="X has no column that rules can use: columns 'a', 'b'"):
        drop_columns(table, {0: "odd", 1: "odd"})
    with pytest.warns(LeftOutWarning, match=r"^Dropped: column 'b' \(a date\)\.$"):
        assert drop_columns(table, {1: "a date"}).dropped == {1: "a date"}
    with pytest.warns(LeftOutWarning, match="should be used must be a categorical column"):
        drop_columns(table, {1: IDENTIFIER})


def test_columns_of_frames_go_by_position_without_names():
    frame = pd.DataFrame({"a": [1.5, None], "b": ["u", None]})
    assert np.isnan(read_numbers(read_column(frame, 0, None))[1])
    assert read_column(frame, 1, None).levels == ("u",)
    with pytest.raises(IcscmError, match="no column 'c', which the model needs"):
        read_column(frame, 0, "c")
    assert find_names(frame) == ("a", "b")
    assert find_names(np.zeros((2, 2))) is None


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.longdouble])
def test_numbers_of_any_type_are_read(dtype):
    values = np.array([0, 1, 1], dtype=dtype)
    found = read_numbers(Numbers(values), is_exact=True)
    assert found.dtype in (np.uint8, np.int8, np.float32, np.float64)
    np.testing.assert_array_equal(found, [0, 1, 1])
    missing = read_numbers(Numbers(values, np.array([False, True, False])))
    np.testing.assert_array_equal(missing, [0, np.nan, 1])


def test_arrow_columns():
    chunked = pa.chunked_array([["u"], ["v", None]])
    assert read_arrow(chunked, "x").levels == ("u", "v")
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["u", "u", None]))
    found = read_arrow(twice, "x")
    assert found.levels == ("u",)
    assert found.codes.tolist() == [0, 0, -1]
    dated = pa.array([1, 2], pa.int32()).cast(pa.date32()).dictionary_encode()
    assert isinstance(read_arrow(dated, "x"), Dates)
    assert isinstance(read_arrow(pa.nulls(2), "x"), Levels)
    with pytest.raises(IcscmError, match="column 'x' is of type list"):
        read_arrow(pa.array([[1], [2]]), "x")


def test_labels_and_environments_are_refused_in_the_same_words():
    for read, what in ((check_labels, "y"), (encode_environments, "environments")):
        with pytest.raises(IcscmError, match=f"{what} has 1 entries but X has 2 rows"):
            read(np.array([1]), 2)
        with pytest.raises(IcscmError, match=f"{what} is missing .* in 1 rows, the first .* row 1"):
            read(np.array([1.0, np.nan, 2.0]), 3)
    with pytest.raises(IcscmError, match="environments must be one column of labels, not a table"):
        encode_environments(pl.DataFrame({"a": [1]}), 1)
    with pytest.raises(IcscmError, match="environments must hold one label per row, got int"):
        encode_environments(3, 1)


def test_free_memory_is_asked_for(monkeypatch):
    assert 0 < parsing._count_free_bytes() < np.inf

    def fail(*_, **__):
        raise OSError

    monkeypatch.setattr(parsing.Path, "read_text", fail)
    assert parsing._count_free_bytes() == np.inf


def test_names_are_listed():
    assert name_columns([0], None) == "column 0"
    assert name_columns(range(7), "abcdefg") == "columns 'a', 'b', 'c', 'd', 'e' and 2 more"


def test_a_frame_needs_rows_and_columns():
    for frame in (pd.DataFrame({"a": []}), pd.DataFrame(index=[0, 1])):
        with pytest.raises(IcscmError, match="Found array with 0"):
            read_table(frame)


@given(
    groups=st.lists(st.sampled_from([0, 2, 3]), min_size=20, max_size=40),
    seed=st.integers(0, 99),
    is_copy=st.booleans(),
)
def test_copies_of_groups_are_those_with_a_value_for_each(groups, seed, is_copy):
    """Also where a number of a group does not occur; the twin compares sets of pairs."""
    column = np.random.default_rng(seed).integers(0, 3, len(groups)).astype(float)
    values = np.array(groups) * 7.0 if is_copy else column
    pairs = {*zip(groups, values.tolist(), strict=True)}
    is_one = len(pairs) == len({*groups}) == len({*values.tolist()}) > 1
    assert _find_copies(values[:, np.newaxis], np.array(groups)) == [0] * is_one
