"""SQL, Python and JSON predict the same as the model, for all names and values."""

import ast
import csv
import json
import math
import sqlite3
import struct
from dataclasses import replace
from decimal import Decimal

import duckdb
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icscm import SCMClassifier
from icscm.cli.model_files import find_types
from icscm.exceptions import IcscmError
from icscm.export import export_model
from icscm.export.programs import quote_python
from icscm.export.sql.literals import format_sql_number
from icscm.io.streams import read_file
from icscm.model.novelty import TrainingValues
from icscm.model.parsing import Feature
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import make_saved_model
from support.exported_models import (
    CLASSES,
    COLUMN_TYPES,
    COUNTS,
    FLOATS,
    assert_exports_agree,
    decide,
    know_levels,
    make_frame,
    quote,
    rules_on,
    run_json,
    run_python,
    run_sql,
    tables,
)
from support.hostile import HOSTILE_NAMES, SQL_NAMES
from support.saved_models import make_mixed_table, make_saved

pytestmark = [
    pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning"),
    pytest.mark.filterwarnings("ignore::icscm.exceptions.UnknownLevelWarning"),
]

# --- random models on random tables ---------------------------------------------------------------


@st.composite
def cases(draw):
    """A model and a table that it can predict."""
    columns = draw(tables())
    rules = draw(st.lists(rules_on(columns), max_size=4))
    leaf = st.tuples(st.tuples(COUNTS), st.tuples(COUNTS))
    leaves = draw(st.lists(leaf, min_size=len(rules) + 1, max_size=len(rules) + 1))
    saved = make_saved(
        rules,
        [Feature(name, COLUMN_TYPES[kind].model) for name, (kind, _) in columns.items()],
        kind=draw(st.sampled_from(["conjunction", "disjunction"])),
        leaves=tuple(leaves),
        environments=None,
        classes=draw(st.sampled_from(CLASSES)),
    )
    return know_levels(draw, saved, columns), columns


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_exports_agree_on_random_tables(engines, case):
    assert_exports_agree(engines, *case)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_text_of_any_model_prints(case):
    saved, _ = case
    text = export_model(saved, "text")
    assert all(line.isprintable() for line in text.split("\n"))
    assert all(str(rule) in text for rule in saved.model.rules)


# A rule and its opposite, and either kind of rule set.
ASKED = pytest.mark.parametrize(
    ("kind", "is_positive"),
    [
        ("conjunction", True),
        ("disjunction", False),
        pytest.param("conjunction", False, marks=pytest.mark.thorough),
        pytest.param("disjunction", True, marks=pytest.mark.thorough),
    ],
)

# --- cases with names -----------------------------------------------------------------------------


@ASKED
@pytest.mark.parametrize("missing", [None, True, False])
def test_missing_values(engines, kind, missing, is_positive):
    """Every way in which a rule can meet NULL and NaN, alone."""
    columns = {
        "n": ("float", [None, 1.0, 2.0, math.inf, -math.inf]),
        "t": ("text", [None, "a", "b", "c", ""]),
        "b": ("boolean", [None, True, False, True, False]),
        "c": ("coded", [None, 1.0, 2.0, 3.0, -1.0]),
    }
    rules = [
        ThresholdRule(0, "n", 1.0, is_positive, missing),
        CategoryRule(1, "t", ("a",), is_positive, missing=missing),
        CategoryRule(1, "t", ("a", "c"), is_positive, pooled=True, missing=missing),
        CategoryRule(2, "b", (True,), is_positive, missing=missing),
        CategoryRule(3, "c", (1, 3.0), is_positive, pooled=True, missing=missing),
        CategoryRule(3, "c", (2,), is_positive, missing=missing),
        MissingRule(0, "n", is_positive),
        MissingRule(1, "t", is_positive),
    ]
    features = [Feature(name, COLUMN_TYPES[each].model) for name, (each, _) in columns.items()]
    for rule in rules:
        saved = make_saved([rule], features, kind=kind)
        results = assert_exports_agree(engines, saved, columns, ("float", "coded"))
        assert len(set(results)) == 2 + rule.is_unsure, "the rule tells rows apart"


@pytest.mark.parametrize("name", SQL_NAMES)
def test_hostile_names(engines, name):
    """Names, levels and classes are text in every export, and do nothing."""
    columns = {name: ("text", [name, "other", None])}
    rule = CategoryRule(0, name, (name,), equal=True)
    saved = make_saved([rule], [Feature(name, "category")], classes=("no", name), version=name)
    results = assert_exports_agree(engines, saved, columns)
    assert [label for label, _, _ in results] == [name, "no", "no"]
    for to in ("sql", "python", "json", "text"):
        for line in export_model(saved, to).split("\n"):
            is_sql_data = to == "sql"  # where quoted names stand as they are
            assert line.isprintable() or is_sql_data


def test_hostile_table_names():
    saved = make_saved([ThresholdRule(0, "age", 1, above=True)])
    for name in SQL_NAMES:
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE TABLE {quote(name)} (age REAL)")
        connection.execute(f"INSERT INTO {quote(name)} VALUES (2)")
        query = export_model(saved, "sql", table=name)
        assert connection.execute(query).fetchone()[1] == "yes"
        connection.close()


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_what_sql_cannot_hold(name):
    rules = {
        "column": MissingRule(0, name, is_missing=True),
        "level": CategoryRule(0, "x", (name,), equal=True),
    }
    for rule in rules.values():
        saved = make_saved([rule], [Feature(rule.name, "category")])
        with pytest.raises(IcscmError, match="which SQL cannot; rename it, or export to 'python'"):
            export_model(saved, "sql")
        source = export_model(saved, "python")
        assert (
            run_python(source, {rule.name: ("text", [name])}, missing=None)[0][0] in saved.classes
        )
        assert run_json(export_model(saved, "json"), {rule.name: ("text", [name])})
    with pytest.raises(IcscmError, match="which SQL cannot"):
        export_model(make_saved(), "sql", table=name)


def test_empty_column_name(engines):
    """SQLite has columns without a name, DuckDB has none."""
    saved = make_saved([ThresholdRule(0, "", 1, above=True)], [Feature("", "number")])
    columns = {"": ("float", [0.5, 2.0])}
    results = run_sql(engines["sqlite"], columns, export_model(saved, "sql"))
    assert [label for label, _, _ in results] == ["no", "yes"]
    assert run_python(export_model(saved, "python"), columns, missing=None) == results
    assert '"" > 1' in export_model(saved, "text")  # a rule without a name said "> 1"


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_column_that_is_not_there(engines, engine):
    """SQLite takes a quoted name for text where there is no such column, and predicted from it."""
    query = export_model(make_saved([ThresholdRule(0, "age", 1, above=True)]), "sql")
    with pytest.raises((sqlite3.Error, duckdb.Error), match="age"):
        run_sql(engines[engine], {"weight": ("float", [1.0])}, query)


def test_numbers_stored_as_text(engines):
    """Tables made from CSV files by SQLite's shell hold text; '9' > '63' there."""
    saved = make_saved([ThresholdRule(0, "age", 63, above=True)])
    columns = {"age": ("text", ["9", "64", None])}
    results = run_sql(engines["sqlite"], columns, export_model(saved, "sql"))
    assert [label for label, _, _ in results] == ["no", "yes", "no"]


def test_booleans_as_numbers(engines):
    """A model fitted on an array has thresholds on what is a boolean in DuckDB."""
    query = export_model(make_saved([ThresholdRule(0, "age", 0, above=True)]), "sql")
    columns = {"age": ("boolean", [True, False, None])}
    results = run_sql(engines["duckdb"], columns, query)
    assert [label for label, _, _ in results] == ["yes", "no", "no"]


def test_a_column_called_true(engines):
    """SQLite takes TRUE to be a column where there is one of that name."""
    columns = {"TRUE": ("float", [5.0, 5.0]), "b": ("boolean", [True, False])}
    rule = CategoryRule(1, "b", (True,), equal=True)
    features = [Feature("TRUE", "number"), Feature("b", "category")]
    saved = make_saved([rule], features, classes=(False, True))
    results = assert_exports_agree(engines, saved, columns)
    assert [label for label, _, _ in results] == [True, False]


def test_levels_that_an_enum_lacks(engines):
    connection = engines["duckdb"]
    connection.execute("CREATE TYPE answer AS ENUM ('yes', 'no')")
    connection.execute("CREATE TABLE answers (smoker answer)")
    connection.execute("INSERT INTO answers VALUES ('yes'), (NULL), ('no')")
    rule = CategoryRule(1, "smoker", ("maybe", "yes"), equal=True, pooled=True)
    query = export_model(make_saved([rule]), "sql", table="answers")
    assert [row[1] for row in connection.execute(query).fetchall()] == ["yes", "no", "no"]


def test_columns_of_the_same_name_as_the_results(engines):
    """The result of the query may be queried again."""
    columns = {"age": ("float", [1.0, 3.0]), "prediction": ("text", ["x", "y"])}
    saved = make_saved([ThresholdRule(0, "age", 2, above=True)])
    for connection in engines.values():
        results = run_sql(connection, columns, export_model(saved, "sql"))
        assert [label for label, _, _ in results] == ["no", "yes"]


@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_empty_model(engines, kind):
    columns = {"age": ("float", [None, 1.0])}
    results = assert_exports_agree(engines, make_saved(kind=kind), columns)
    nothing = "no rule holds in every environment and does better than always negative"
    assert {text for _, _, text in results} == {nothing}


def test_columns_without_names(engines):
    """By position in Python and JSON; x0, x1 and so on in SQL, which has names only."""
    rule = ThresholdRule(1, None, 0.5, above=True)
    saved = make_saved([rule], [Feature(None, "number")] * 2)
    module = {}
    exec(export_model(saved, "python"), module)
    assert module["predict"]([0, 1])[0] == module["predict"]({1: 1})[0] == "yes"
    columns = {"x0": ("float", [0.0]), "x1": ("float", [1.0])}
    for connection in engines.values():
        assert run_sql(connection, columns, export_model(saved, "sql"))[0][0] == "yes"
    assert json.loads(export_model(saved, "json"))["splits"][0]["position"] == 1


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
def test_fitted_models(engines, model_type):
    """Models as they are learned, on the table that they were learned from."""
    X, y, _ = make_mixed_table()
    learner = SCMClassifier(model_type=model_type, max_thresholds=3).fit(X, y)
    saved = make_saved_model(learner)
    kinds = ["float", "whole", "text", "boolean", "text"]
    columns = {
        name: (kind, [None if pd.isna(each) else each for each in X[name].tolist()])
        for name, kind in zip(X, kinds, strict=True)
    }
    results = assert_exports_agree(engines, saved, columns)
    assert [label for label, *_ in results] == learner.predict(X).tolist()


# --- tables that hold the text of a file ----------------------------------------------------------

TOLD = {"target": "y", "na": ["?", "-9"], "default_na": True, "format": "text"}
TEXT_CELLS = {
    "number": ["", "?", " ? ", "NA", "63", "64.5", " 70", "-9", "-9.0", "nan", "0", "1e2", "N/A"],
    "text": ["", "?", " ?", "NA", "None", "none", "yes", " yes ", "no", "Yes", "-9"],
    "boolean": ["", "?", "true", "FALSE", "True ", "null"],
}


def run_text_json(text, rows):
    """As `run_json`, for samples that are text."""
    model = json.loads(text)
    for row in rows:
        for each in model["splits"]:
            name, value = each["column"], row[each["column"]]
            value = value.strip() if isinstance(value, str) else "done"
            if value == "done":
                continue
            if value in model["missing_texts"]:
                row[name] = None
            elif each["type"] == "number":
                number = float(value)
                is_absent = number in model["missing_numbers"] or math.isnan(number)
                row[name] = None if is_absent else number
            elif isinstance((each["value"] or [""])[0], bool):
                row[name] = value.lower() == "true"
            else:
                row[name] = value
    columns = {name: ("text", [row[name] for row in rows]) for name in rows[0]}
    return run_json(text, columns)


def assert_text_agrees(engines, saved, columns, folder):
    """Exports on the text of a CSV file against what `icscm predict` makes of the file."""
    path = folder / "t.csv"
    names = list(columns)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*names, "number of row"])
        writer.writeheader()
        writer.writerows({**row, "number of row": i} for i, row in enumerate(rows))
    table = read_file(path, na=saved.settings["table"]["na"], types=find_types(saved))
    decisions = [part.tolist() for part in saved.decide(table, unknown="allow")]
    unknown = [saved.find_unknown_levels(table).tolist()] if saved.knows_levels else []
    expected = list(zip(*decisions, *unknown, strict=True))
    query = export_model(saved, "sql")
    texts = {name: ("text", values) for name, values in columns.items()}
    assert run_sql(engines["sqlite"], texts, query) == expected
    assert run_sql(engines["duckdb"], texts, query) == expected
    module = {}
    exec(export_model(saved, "python"), module)
    assert [module["predict"](row) for row in rows] == expected
    assert run_text_json(export_model(saved, "json"), [dict(row) for row in rows]) == expected
    return expected


def list_text_rules(is_positive, missing):
    return [
        ThresholdRule(0, "n", 64, is_positive, missing),
        CategoryRule(1, "t", ("yes",), is_positive, missing=missing),
        CategoryRule(1, "t", ("yes", "none"), is_positive, pooled=True, missing=missing),
        CategoryRule(2, "b", (True,), is_positive, missing=missing),
        CategoryRule(2, "b", (False,), is_positive, missing=missing),
        MissingRule(0, "n", is_positive),
        MissingRule(1, "t", is_positive),
    ]


TEXT_LEVELS = (
    TrainingValues(1, "t", levels=("yes", "none")),
    TrainingValues(2, "b", levels=(False, True)),
)
TEXT_FEATURES = [Feature("n", "number"), Feature("t", "category"), Feature("b", "category")]


@ASKED
@pytest.mark.parametrize("missing", [None, True, False])
def test_text_that_means_missing(engines, tmp_path, kind, missing, is_positive):
    """Exports took '' and '?' for values where `icscm predict` reads missing ones: SQLite read ''
    as 0, and DuckDB stopped at it.
    """
    longest = max(map(len, TEXT_CELLS.values()))
    columns = {
        name: (cells * longest)[:longest]
        for name, cells in zip("ntb", TEXT_CELLS.values(), strict=True)
    }
    for rule in list_text_rules(is_positive, missing):
        saved = make_saved([rule], TEXT_FEATURES, kind=kind, settings={"table": TOLD})
        results = assert_text_agrees(engines, saved, columns, tmp_path)
        assert len(set(results)) == 2 + rule.is_unsure, "the rule tells rows apart"


def test_duckdb_with_its_optimizer(default_engines, tmp_path):
    """It must not move a cast out of the guard that keeps text which is no number from it."""
    columns = {name: cells[:6] for name, cells in zip("ntb", TEXT_CELLS.values(), strict=True)}
    for rule in list_text_rules(is_positive=True, missing=None):
        saved = make_saved([rule], TEXT_FEATURES, settings={"table": TOLD})
        assert_text_agrees(default_engines, saved, columns, tmp_path)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_text_tables_at_random(engines, tmp_path, data):
    """Several rules on the same all-text table; the bug is that of the test before."""
    rules = data.draw(
        st.lists(
            st.builds(
                lambda number, a, b: list_text_rules(a, b)[number],
                st.integers(0, 6), st.booleans(), st.sampled_from([None, True, False]),
            ),
            min_size=1, max_size=4,
        )
    )  # fmt: skip
    n_rows = data.draw(st.integers(1, 6))
    columns = {
        name: data.draw(st.lists(st.sampled_from(cells), min_size=n_rows, max_size=n_rows))
        for name, cells in zip("ntb", TEXT_CELLS.values(), strict=True)
    }
    kind = data.draw(st.sampled_from(["conjunction", "disjunction"]))
    saved = make_saved(rules, TEXT_FEATURES, kind=kind, settings={"table": TOLD})
    assert_text_agrees(engines, saved, columns, tmp_path)
    knowing = replace(saved.model, training_values=TEXT_LEVELS)
    assert_text_agrees(engines, replace(saved, model=knowing), columns, tmp_path)


@ASKED
@pytest.mark.parametrize("missing", [None, True, False])
def test_typed_columns_behind_the_guard(engines, kind, missing, is_positive):
    """The same statements serve tables with types, NaN and NULL included, and -9 as a number."""
    columns = {
        "n": ("float", [None, 63.0, 64.5, -9.0, math.inf]),
        "t": ("text", [None, "yes", "none", "no", "yes"]),
        "b": ("boolean", [None, True, False, True, False]),
    }
    absent = {**columns, "n": ("float", [None if x == -9 else x for x in columns["n"][1]])}
    for rule in list_text_rules(is_positive, missing):
        saved = make_saved([rule], TEXT_FEATURES, kind=kind, settings={"table": TOLD})
        expected = decide(saved, make_frame(absent))
        query = export_model(saved, "sql")
        assert run_sql(engines["sqlite"], columns, query) == expected
        assert run_sql(engines["duckdb"], columns, query) == expected
        assert run_sql(engines["duckdb"], columns, query, ("float",)) == expected
        assert run_python(export_model(saved, "python"), columns, missing=math.nan) == expected


def test_a_binary_file_knows_missing_values():
    """Of a Parquet file only the user's own texts meant missing at fitting: NA may be Namibia."""
    rule = CategoryRule(1, "t", ("NA",), equal=False, missing=False)
    told = {"na": [], "default_na": True, "format": "parquet"}
    plain = make_saved([rule], TEXT_FEATURES)
    assert export_model(make_saved([rule], TEXT_FEATURES, settings={"table": told}), "sql") == (
        export_model(plain, "sql")
    )
    told = {**told, "na": ["?"]}
    query = export_model(make_saved([rule], TEXT_FEATURES, settings={"table": told}), "sql")
    assert "CAST(d.\"t\" AS VARCHAR) IN ('NA', '?') OR" in query


def test_the_header_says_what_is_missing():
    """The header did not state that an empty text is not a missing value."""
    assert "-- Missing must be NULL" in export_model(
        make_saved([MissingRule(0, "age", True)]), "sql"
    )
    saved = make_saved([MissingRule(0, "age", True)], settings={"table": TOLD})
    query = export_model(saved, "sql")
    assert (
        "each of these texts, spaces around it aside:\n--     '', '?', '-9', 'NA', 'N/A'" in query
    )
    assert "-- and in columns of numbers -9.\n" in query
    told = {**TOLD, "decimal": ","}
    query = export_model(make_saved([MissingRule(0, "age", True)], settings={"table": told}), "sql")
    assert "-- Numbers that are held as text need decimal points here" in query
    assert max(map(len, query.partition("SELECT")[0].splitlines())) <= 100


def test_decimals_compare_as_floats():
    """Decimal("0.1") is below the float 0.1, and fell on the wrong side of that threshold."""
    saved = make_saved([ThresholdRule(0, "age", 0.1, above=False)])
    module = {}
    exec(export_model(saved, "python"), module)
    below, above = Decimal("0.1"), Decimal("0.1000000000000000055511151231257827021181583404541015")
    results = [module["predict"]({"age": age, "smoker": "x"})[0] for age in (0.1, below, above)]
    assert results == ["yes", "yes", "yes"]
    coded = make_saved([CategoryRule(1, "smoker", (0.1,), equal=True)])
    exec(export_model(coded, "python"), module)
    assert module["predict"]({"smoker": Decimal("0.1")})[0] == "yes"


@pytest.mark.parametrize("to", ["sql", "python", "json", "text"])
def test_exports_say_that_missing_values_are_refused(to):
    """A model that refuses missing values cannot do so in SQL; nothing said so."""
    rules = [ThresholdRule(0, "age", 1, above=True)]
    text = export_model(make_saved(rules, settings={"missing": "error"}), to)
    assert "fitted without missing values and rejects them" in text
    assert "rejects them" not in export_model(make_saved(rules), to)


def test_a_schema(engines):
    """`--table schema.table` was quoted as one name, which no table has."""
    saved = make_saved([ThresholdRule(0, "age", 1, above=True)])
    connection = engines["duckdb"]
    connection.execute('CREATE SCHEMA IF NOT EXISTS "a b"')
    connection.execute('CREATE OR REPLACE TABLE "a b"."x.y" AS SELECT 2 AS age')
    query = export_model(saved, "sql", table="x.y", schema="a b")
    assert connection.execute(query).fetchone()[1] == "yes"


# --- how they look --------------------------------------------------------------------------------

READABLE = make_saved(
    [
        ThresholdRule(0, "age", 63, above=True),
        CategoryRule(1, "smoker", ("V57", "V58"), equal=False, pooled=True, missing=False),
    ],
    leaves=(((30, 10), (2, 3)), ((1200, 0), (0, 0)), ((4, 5), (60, 70))),
)


def test_sql_reads_well():
    assert (
        export_model(READABLE, "sql", table="patients")
        == """\
-- Learned by icscm 0.1.0 from 1,384 samples in 2 environments, at level alpha = 0.05.
--
--     age > 63 and smoker not in 2 rare levels (missing: false)
--
-- For SQLite and DuckDB. To the columns of the table it adds three (put what you need in place of
-- d.*, such as d."id"): the class (prediction), the probability of yes, and what decided
-- (decided_by).
-- Missing must be NULL (an empty text is a value like any other) or, in columns of numbers, NaN,
-- which DuckDB holds to be above infinity (9e999).
SELECT
  d.*,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 63
      THEN 'no'
    WHEN d."smoker" IN ('V57', 'V58') OR d."smoker" IS NULL
      THEN 'no'
    ELSE 'yes'
  END, CASE WHEN CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (1089291889640371e0 / 1125899906842624e0 /* 0.9674855491329479 */) WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 1 ELSE 0 END * (131e0 / 141e0)
    + CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 0 ELSE 1 END * (1e0 / 1202e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (36608017202253e0 / 1125899906842624e0 /* 0.03251445086705207 */) WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (6e0 / 47e0) > 0.5e0 THEN 'yes' ELSE 'no' END) AS prediction,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 63
      THEN 6e0 / 47e0
    WHEN d."smoker" IN ('V57', 'V58') OR d."smoker" IS NULL
      THEN 1e0 / 1202e0
    ELSE 131e0 / 141e0
  END, CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (1089291889640371e0 / 1125899906842624e0 /* 0.9674855491329479 */) WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 1 ELSE 0 END * (131e0 / 141e0)
    + CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 0 ELSE 1 END * (1e0 / 1202e0))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN (36608017202253e0 / 1125899906842624e0 /* 0.03251445086705207 */) WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (6e0 / 47e0)) AS probability,
  COALESCE(CASE
    WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999
      THEN NULL
    WHEN CAST(d."age" AS DOUBLE) <= 63
      THEN 'not met: age > 63'
    WHEN d."smoker" IN ('V57', 'V58') OR d."smoker" IS NULL
      THEN 'not met: smoker not in 2 rare levels (missing: false)'
    ELSE 'all rules met'
  END, SUBSTR(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN ', age missing' ELSE '' END, 3) || ': ' || 'mean of ' || CAST(CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 1 ELSE 0 END * (CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 1 ELSE 0 END * (1)
    + CASE WHEN d."smoker" NOT IN ('V57', 'V58') THEN 0 ELSE 1 END * (1))
    + CASE WHEN d."age" IS NULL OR CAST(d."age" AS DOUBLE) > 9e999 THEN 1 WHEN CAST(d."age" AS DOUBLE) > 63 AND CAST(d."age" AS DOUBLE) <= 9e999 THEN 0 ELSE 1 END * (1) AS VARCHAR) || ' leaves') AS decided_by
FROM "patients" AS d;
"""  # noqa: E501 - the mean over leaves
    )


def test_python_reads_well():
    source = export_model(READABLE, "python")
    assert (
        source.split('"""\n', 1)[1]
        == '''
from collections import namedtuple

Decision = namedtuple("Decision", "prediction probability decided_by")


def is_missing(value):
    """Return whether a value is None or NaN, the only value that does not equal itself."""
    return value is None or value != value


def as_number(value):
    """Return a number to compare: a float, since a Decimal has digits that no threshold has."""
    if value is not None and not hasattr(value, "__index__"):
        value = float(value)
    return value


def as_it_is(value):
    """Return a value as it is."""
    return value


# For each rule: its column, how to read it, the comparison and its value, and the truth for a
# missing value, None where no value was missing at fitting.
RULES = [
    ("age", as_number, ">", 63, None),
    ("smoker", as_it_is, "not in", {"V57", "V58"}, False),
]

# Columns that had no missing values at fitting, how to read them, and their names in messages.
UNSURE = [
    ("age", as_number, "age missing"),
]

# For each tree: its splits and its leaves. A split has the number of a rule, the node to go to if
# the rule is true, the node if it is false, and the share of training rows where it was true.
# Nodes from 0 are splits, each before its children; -1 is the first leaf, -2 the second and so on.
# A leaf has its probability, its class, and what it is named when it decides.
TREES = [
    (
        [
            (0, 1, -1, 0.9674855491329479),
            (1, -3, -2, 0.10380881254667662),
        ],
        [
            (6 / 47, "no", "not met: age > 63"),
            (1 / 1202, "no", "not met: smoker not in 2 rare levels (missing: false)"),
            (131 / 141, "yes", "all rules met"),
        ],
    ),
]


def is_true(rule, row):
    """Return whether a rule is true of a row; None where a missing value leaves it open."""
    column, read, operator, compared, if_missing = rule
    value = read(row[column])
    if is_missing(value):
        return if_missing
    if operator == ">":
        return value > compared
    if operator == "<=":
        return value <= compared
    if operator == "in":
        return value in compared
    return value not in compared


# What follows for a row from a node on: the probability, the number of leaves that it may fall in,
# and its leaf, None if there are several.
Result = namedtuple("Result", "probability n_leaves leaf")


def find_truths(splits, row):
    """Return the truth of each split that a row reaches, by the number of the split.

    It is None where a value is missing that was never missing at fitting; then the row reaches
    both children.
    """
    truths = {}
    nodes = [0] if splits else []
    for node in nodes:  # children are appended while it is read
        rule, if_true, if_false, _ = splits[node]
        truth = is_true(RULES[rule], row)
        truths[node] = truth
        if if_true >= 0 and (truth is None or truth):
            nodes.append(if_true)
        if if_false >= 0 and (truth is None or not truth):
            nodes.append(if_false)
    return truths


def follow(splits, leaves, row):
    """Return what follows for a row from the first node on.

    Where the truth of a split is not known, the probability is the mean of both branches, weighted
    by their shares of the training rows.
    """
    truths = find_truths(splits, row)
    results = {}

    def get_result(node):
        if node >= 0:
            return results[node]
        leaf = leaves[-node - 1]
        return Result(leaf[0], 1, leaf)

    for node in sorted(truths, reverse=True):  # children before the split that they are of
        _, if_true, if_false, share = splits[node]
        if truths[node] is None:
            true = get_result(if_true)
            false = get_result(if_false)
            probability = share * true.probability + (1 - share) * false.probability
            results[node] = Result(probability, true.n_leaves + false.n_leaves, None)
        elif truths[node]:
            results[node] = get_result(if_true)
        else:
            results[node] = get_result(if_false)
    return get_result(0 if splits else -1)


def name_missing(row):
    """Name the columns that are missing here but were never missing at fitting."""
    names = [name for column, read, name in UNSURE if is_missing(read(row[column]))]
    return ", ".join(names) + ": "


def predict(row):
    """Return the class, the probability of the positive one, and what decided."""
    splits, leaves = TREES[0]
    probability, n_leaves, leaf = follow(splits, leaves, row)
    if leaf is not None:
        _, label, text = leaf
        return Decision(label, probability, text)
    label = "yes" if probability > 0.5 else "no"
    return Decision(label, probability, name_missing(row) + f"mean of {n_leaves} leaves")
'''
    )
    tree = ast.parse(source)
    assert "age > 63 and smoker not in 2 rare levels" in ast.get_docstring(tree)
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    assert [each.module for each in imports] == ["collections"]
    module = {}
    exec(source, module)
    with pytest.raises(KeyError, match="age"):
        module["predict"]({})


def test_text_reads_well():
    assert (
        export_model(READABLE, "text")
        == """\
Predicts yes where

    age > 63
    and smoker not in 2 rare levels (missing: false)

and no elsewhere.

The rare levels of smoker: V57, V58.

decided by                                             predicts  probability of yes     no  yes
not met: age > 63                                      no                    0.1277     40    5
not met: smoker not in 2 rare levels (missing: false)  no                    0.0008  1,200    0
all rules met                                          yes                   0.9291      9  130

The first line that is true of a sample decides. The probability is
(samples of yes + 1) / (samples + 2).

Where a value is missing that never was at fitting, both branches are weighted by their samples.

Samples of yes / all samples, by environment and line of the table above:

environment  line 1     line 2   line 3
north        2 / 32  0 / 1,200  60 / 64
south        3 / 13      0 / 0  70 / 75

Learned by icscm 0.1.0 from 1,384 samples in 2 environments, at level alpha = 0.05.
"""
    )


def test_text_of_an_empty_model():
    saved = make_saved(kind="disjunction", environments=None, leaves=(((1,), (1,)),), alpha=None)
    text = export_model(saved, "text")
    assert text.startswith("Predicts no for every sample: no rule was found (always negative).\n")
    assert text.endswith("Learned by icscm 0.1.0 from 2 samples.\n")


def test_json_reads_well():
    document = json.loads(export_model(READABLE, "json"))
    assert document["classes"] == ["no", "yes"]
    assert document["splits"][1] == {
        "column": "smoker",
        "position": 1,
        "type": "category",
        "operator": "not in",
        "value": ["V57", "V58"],
        "if_missing": False,
        "if_true": -3,
        "if_false": -2,
        "share_true": 139 / 1339,
    }
    assert document["leaves"][1] == {
        "prediction": "no",
        "probability": 1 / 1202,
        "decided_by": "not met: smoker not in 2 rare levels (missing: false)",
        "training_samples": [1200, 0],
    }


def test_words_are_short_and_code_is_exact(engines):
    """Three steps on one column, at 775.6999999999999, read as all three with all digits."""
    rules = [ThresholdRule(0, "age", each, above=True) for each in (19, 21.5, 775.6999999999999)]
    saved = make_saved(rules)
    columns = {"age": ("float", [19.0, 21.5, 22.0, 775.6999999999999, 775.7, None])}
    results = assert_exports_agree(engines, saved, columns)
    assert [label for label, _, _ in results][3:5] == ["no", "yes"]
    assert len({chance for _, chance, _ in results[:-1]}) == 4  # a leaf for each step
    exports = {to: export_model(saved, to) for to in ("sql", "python", "json", "text")}
    assert exports["sql"].splitlines()[2] == "--     age > 775.7"
    assert "\n    age > 775.7\n" in exports["python"]
    assert '">", 775.6999999999999, None' in exports["python"]
    assert json.loads(exports["json"])["rule"] == "age > 775.7"
    assert json.loads(exports["json"])["splits"][2]["value"] == 775.6999999999999
    assert exports["text"].startswith("Predicts yes where\n\n    age > 775.7\n\nand no elsewhere.")


def test_unknown_target():
    with pytest.raises(IcscmError, match="'json', 'text'; not 'cobol'"):
        export_model(READABLE, "cobol")


# --- literals -------------------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(FLOATS))
def test_numbers_are_read_exactly(engines, number):
    """SQLite 3.40 reads some floats that are written with 17 digits off by one bit."""
    for connection in engines.values():
        (found,) = connection.execute(f"SELECT {format_sql_number(number)}").fetchone()
        assert struct.pack("d", found + 0.0) == struct.pack("d", number + 0.0)


@given(st.text() | st.sampled_from(HOSTILE_NAMES))
def test_python_literals(text):
    assert ast.literal_eval(quote_python(text)) == text


@pytest.mark.parametrize("is_used", [True, False])
def test_sql_has_no_capitals(is_used):
    """Of columns 'Dose' and 'dose' SQL reads the same one for both: predictions were wrong."""
    features = [Feature("Dose", "number"), Feature("dose", "number"), Feature("Age", "number")]
    rules = [ThresholdRule(0, "Dose", 1, above=True), ThresholdRule(1, "dose", 2, above=True)]
    saved = make_saved(rules[: 1 + is_used], features)
    with pytest.raises(IcscmError, match=r"'[Dd]ose' and '[Dd]ose' are the same name to SQL"):
        export_model(saved, "sql")
    columns = {"Dose": ("float", [2.0, 2.0]), "dose": ("float", [3.0, 0.0])}
    found = run_python(export_model(saved, "python"), columns, missing=None)
    assert [label for label, *_ in found] == ["yes", "no" if is_used else "yes"]
    unharmed = make_saved([ThresholdRule(2, "Age", 1, above=True)], features)
    assert 'd."Age"' in export_model(unharmed, "sql")
