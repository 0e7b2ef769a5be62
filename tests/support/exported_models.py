"""Ways to run an exported model, and tables and rules of all kinds to run it on."""

import functools
import json
import math
import operator
import sqlite3

import pandas as pd
import pytest
from hypothesis import strategies as st

from icscm.export import export_model
from icscm.model.forest import Forest
from icscm.model.routes import name_missing as name_one
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from support.hostile import SQL_NAMES

# --- four ways to run a model ---------------------------------------------------------------------

# Of each kind of column: its type in pandas, SQLite and DuckDB, and in the model.
COLUMN_TYPES = {
    "float": ("float64", "REAL", "DOUBLE", "number"),
    "whole": ("Int64", "INTEGER", "BIGINT", "number"),
    "text": ("str", "TEXT", "VARCHAR", "category"),
    "boolean": ("boolean", "INTEGER", "BOOLEAN", "category"),
    "coded": ("category", "REAL", "DOUBLE", "category"),
}


def make_frame(columns):
    """A pandas table of {name: (kind, values)}."""
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=COLUMN_TYPES[kind][0])
            for name, (kind, values) in columns.items()
        }
    )


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def fill(connection, columns, nan_kinds=()):
    """Put columns, and one of row numbers, into the table `data`; NaN for None in some kinds."""
    place = 1 if isinstance(connection, sqlite3.Connection) else 2
    fields = [f"{quote(name)} {COLUMN_TYPES[kind][place]}" for name, (kind, _) in columns.items()]
    connection.execute("DROP TABLE IF EXISTS data")
    connection.execute(f'CREATE TABLE data ("row number" INTEGER, {", ".join(fields)})')
    cells = [
        [math.nan if each is None and kind in nan_kinds else each for each in values]
        for kind, values in columns.values()
    ]
    marks = ", ".join("?" * (len(columns) + 1))
    rows = [(number, *row) for number, row in enumerate(zip(*cells, strict=True))]
    connection.executemany(f"INSERT INTO data VALUES ({marks})", rows)


def run_sql(connection, columns, query, nan_kinds=()):
    """Prediction, probability and what decided, in the order of the rows."""
    fill(connection, columns, nan_kinds)
    found = connection.execute(query).fetchall()
    assert [row[0] for row in found] == list(range(len(found)))
    return [row[-3:] for row in found]


def run_python(source, columns, *, missing):
    module = {}
    exec(compile(source, "model.py", "exec"), module)  # the export is a program; this is its test
    return [module["predict"](row) for row in list_rows(columns, missing)]


def list_rows(columns, missing=None):
    n_rows = len(next(iter(columns.values()))[1])
    return [
        {name: missing if values[i] is None else values[i] for name, (_, values) in columns.items()}
        for i in range(n_rows)
    ]


OPERATORS = {
    ">": lambda x, value: x > value,
    "<=": lambda x, value: x <= value,
    "in": lambda x, value: x in value,
    "not in": lambda x, value: x not in value,
    "is missing": lambda x, value: False,
    "is present": lambda x, value: True,
}


def run_json(text, columns):
    """All that it takes to run the JSON export in another language."""
    model = json.loads(text)
    follow = {"tree": follow_tree, "forest": follow_forest, "score": follow_score}
    each = follow[model["format"].rpartition("-")[2]]
    return [each(model, row) for row in list_rows(columns)]


def holds(condition, row):
    x = row[condition["column"]]
    if x is None:
        return condition["if_missing"]
    return OPERATORS[condition["operator"]](x, condition["value"])


def follow(tree, row, number):
    """Probability, number of leaves, and the leaf if it is one."""
    if number < 0:
        leaf = tree["leaves"][-number - 1]
        return leaf["probability"], 1, leaf
    split = tree["splits"][number]
    truth = holds(split, row)
    if truth is not None:
        return follow(tree, row, split["if_true"] if truth else split["if_false"])
    (p, m, _), (q, n, _) = (follow(tree, row, split[side]) for side in ("if_true", "if_false"))
    return split["share_true"] * p + (1 - split["share_true"]) * q, m + n, None


def follow_root(tree, row):
    return follow(tree, row, 0 if tree["splits"] else -1)


def name_missing(trees, row):
    splits = [split for tree in trees for split in tree["splits"]]
    unsure = {split["column"] for split in splits if split["if_missing"] is None}
    names = dict.fromkeys(split["column"] for split in splits)
    lacking = [name for name in names if name in unsure and row[name] is None]
    return f"{', '.join(map(name_one, lacking))}: "


def follow_tree(model, row):
    probability, n_leaves, leaf = follow_root(model, row)
    if leaf is not None:
        return leaf["prediction"], probability, leaf["decided_by"]
    cut = model.get("threshold")
    verdict = probability > 0.5 if cut is None else probability >= cut
    text = f"{name_missing([model], row)}mean of {n_leaves} leaves"
    return model["classes"][verdict], probability, text


def follow_score(model, row):
    columns = ([each["points"] for each in terms if holds(each, row)] for terms in model["columns"])
    total = sum(points[0] for points in columns if points)
    conditions = [each for terms in model["columns"] for each in terms]
    named = dict.fromkeys(e["column"] for e in conditions if e["operator"] == "is missing")
    averaged = {
        e["column"]
        for e in conditions
        if e["operator"] not in ("is missing", "is present") and e["if_missing"] is None
    }
    lacking = ", ".join(name_one(name, averaged) for name in named if row[name] is None)
    text = f"{lacking}: " * bool(lacking) + f"total of {total}"
    return model["classes"][total >= model["cut"]], model["risks"][total], text


def add_in_order(numbers):
    """The sum as SQL and NumPy compute it; `sum` of Python 3.12 compensates for rounding."""
    return functools.reduce(operator.add, numbers, 0.0)


def follow_forest(model, row):
    found = [follow_root(tree, row) for tree in model["trees"]]
    mean = add_in_order(probability for probability, _, _ in found) / len(found)
    second = model["classes"][1]
    votes = [p > 0.5 if leaf is None else leaf["prediction"] == second for p, _, leaf in found]
    text = f"{sum(votes)} of {len(found)} tree{'s' * (len(found) != 1)} above 0.5"
    if any(leaf is None for _, _, leaf in found):
        text = name_missing(model["trees"], row) + text
    if "calibration" not in model:
        return model["classes"][mean > 0.5], mean, text
    a, b = model["calibration"]
    odds = math.exp(a + b * math.log(mean / (1 - mean)))
    chance = mean if (a, b) == (0, 1) else odds / (1 + odds)
    return model["classes"][mean >= model["cut"]], chance, text


def decide(saved, frame):
    """What the model predicts, infinity included: exports cannot reject it."""
    is_positive, probability, text = (part.tolist() for part in saved.model.decide(frame))
    labels = [saved.classes[each] for each in is_positive]
    return list(zip(labels, probability, text, strict=True))


def assert_exports_agree(engines, saved, columns, nan_kinds=("float",)):
    """To the last bit; the probability of a calibrated forest, an exp, to 12 digits."""
    expected = decide(saved, make_frame(columns))
    assert expected
    if isinstance(saved.model, Forest) and saved.model.is_calibrated:
        expected = [(a, pytest.approx(p, rel=1e-12, abs=0), text) for a, p, text in expected]
    assert run_json(export_model(saved, "json"), columns) == expected
    source = export_model(saved, "python")
    assert run_python(source, columns, missing=None) == expected
    assert run_python(source, columns, missing=math.nan) == expected
    query = export_model(saved, "sql")
    assert run_sql(engines["sqlite"], columns, query) == expected
    assert run_sql(engines["duckdb"], columns, query) == expected
    assert run_sql(engines["duckdb"], columns, query, nan_kinds) == expected
    return expected


# --- random models on random tables ---------------------------------------------------------------

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 0.1 + 0.2, 1 / 3, -2.5, 63.0, 1e-7, 1e22, 123456789.125]
FLOATS += [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 1e-300]
WHOLES = [0, 1, -1, 7, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1, -(2**63)]
TEXTS = ["a", "b", "", " ", "it's", '"', "two\nlines", "é", "e\u0301", "😀", "NaN", "null", "None"]
TEXTS += ["2", "true", "\\", "\\'", "--", "*/", "'; DROP TABLE data; --", "{{7*7}}", "%s ? :x $1"]
VALUES = {
    "float": st.sampled_from([*FLOATS, math.inf, -math.inf]) | st.floats(allow_nan=False),
    "whole": st.sampled_from(WHOLES) | st.integers(-(2**63), 2**63 - 1),
    "text": st.sampled_from(TEXTS),
    "boolean": st.booleans(),
    "coded": st.sampled_from([0.0, 1.0, 2.5, -3.0]),
}

# What neither a pandas table nor an SQL statement can hold is left out; tests of their own follow.
SQL_TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
)
NAMES = st.sampled_from(SQL_NAMES) | SQL_TEXT


def fold(name):
    """Names that SQL takes to be the same fold to the same text."""
    return name.casefold().lower()


@st.composite
def tables(draw):
    """Named columns of all kinds, with missing values."""
    named = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=fold))
    named = [name for name in named if fold(name) != "row number"] or ["x"]
    n_rows = draw(st.integers(1, 6))
    columns = {}
    for name in named:
        kind = draw(st.sampled_from(list(COLUMN_TYPES)))
        value = st.none() | VALUES[kind] | VALUES[kind]
        values = draw(st.lists(value, min_size=n_rows, max_size=n_rows))
        columns[name] = kind, values
    return columns


@st.composite
def rules_on(draw, columns):
    """A rule about one of the columns, often about a value that it holds."""
    position = draw(st.integers(0, len(columns) - 1))
    name, (kind, values) = list(columns.items())[position]
    missing = draw(st.sampled_from([None, True, False]))
    is_positive = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        return MissingRule(position, name, is_positive)
    held = [each for each in values if each is not None and not is_infinite(each)]
    pool = VALUES[kind].filter(lambda each: not is_infinite(each))
    value = draw(st.sampled_from(held) | pool if held else pool)
    if COLUMN_TYPES[kind][3] == "number":
        return ThresholdRule(position, name, value, is_positive, missing)
    others = draw(st.lists(VALUES[kind], max_size=3))
    levels = tuple(dict.fromkeys([value, *others]))
    return CategoryRule(position, name, levels, is_positive, draw(st.booleans()), missing)


def is_infinite(value):
    return isinstance(value, float) and math.isinf(value)


CLASSES = [("no", "yes"), (0, 1), (False, True), (-1.5, 2.0), ("'", '"'), ("\n", "😀")]
COUNTS = st.integers(0, 1000) | st.integers(0, 2**58)
