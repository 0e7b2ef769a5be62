"""Ways to run an exported model, and tables and rules of all kinds to run it on."""

import functools
import json
import math
import operator
import sqlite3
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import pytest
from hypothesis import strategies as st

from icscm.export import export_model
from icscm.formatting import format_name
from icscm.model.forest import Forest
from icscm.model.novelty import TrainingValues, treat_unknown
from icscm.model.routes import name_missing as name_one
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from support.hostile import SQL_NAMES

# --- four ways to run a model ---------------------------------------------------------------------


class ColumnType(NamedTuple):
    """What a kind of column is called in pandas, SQLite and DuckDB, and in the model."""

    pandas: str
    sqlite: str
    duckdb: str
    model: str


COLUMN_TYPES = {
    "float": ColumnType("float64", "REAL", "DOUBLE", "number"),
    "whole": ColumnType("Int64", "INTEGER", "BIGINT", "number"),
    "text": ColumnType("str", "TEXT", "VARCHAR", "category"),
    "boolean": ColumnType("boolean", "INTEGER", "BOOLEAN", "category"),
    "coded": ColumnType("category", "REAL", "DOUBLE", "category"),
}


def make_frame(columns):
    """A pandas table of {name: (kind, values)}."""
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=COLUMN_TYPES[kind].pandas)
            for name, (kind, values) in columns.items()
        }
    )


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def fill(connection, columns, nan_kinds=()):
    """Put columns, and one of row numbers, into the table `data`; NaN for None in some kinds."""
    is_sqlite = isinstance(connection, sqlite3.Connection)
    fields = ['"row number" INTEGER']
    values_by_column = []
    for name, (kind, values) in columns.items():
        column_type = COLUMN_TYPES[kind]
        sql_type = column_type.sqlite if is_sqlite else column_type.duckdb
        fields.append(f"{quote(name)} {sql_type}")
        missing = math.nan if kind in nan_kinds else None
        values_by_column.append([missing if value is None else value for value in values])
    rows = [(number, *row) for number, row in enumerate(zip(*values_by_column, strict=True))]

    connection.execute("DROP TABLE IF EXISTS data")
    connection.execute(f"CREATE TABLE data ({', '.join(fields)})")
    marks = ", ".join("?" * len(fields))
    connection.executemany(f"INSERT INTO data VALUES ({marks})", rows)


def run_sql(connection, columns, query, nan_kinds=()):
    """Prediction, probability, what decided and any unknown levels, in the order of the rows."""
    fill(connection, columns, nan_kinds)
    rows = connection.execute(query).fetchall()
    row_numbers = [row[0] for row in rows]
    assert row_numbers == list(range(len(rows)))
    n_read = 1 + len(columns)
    return [row[n_read:] for row in rows]


def run_python(source, columns, *, missing):
    module = {}
    exec(compile(source, "model.py", "exec"), module)  # the export is a program; this is its test
    return [module["predict"](row) for row in list_rows(columns, missing)]


def list_rows(columns, missing=None):
    """A dict of values for each row, with something else for None."""
    values_by_column = [
        [missing if value is None else value for value in values] for _, values in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values_by_column, strict=True)]


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
    kind = model["format"].rpartition("-")[2]
    decide_row = {"tree": follow_tree, "forest": follow_forest, "score": follow_score}[kind]
    decisions = []
    for row in list_rows(columns):
        unknown = drop_unknown(model, row)
        named = (", ".join(map(format_name, unknown)),) if model["levels"] else ()
        decisions.append((*decide_row(model, row), *named))
    return decisions


def drop_unknown(model, row):
    """Make the levels of a row missing that training did not have; return their columns."""
    unknown = [
        known["column"]
        for known in model["levels"]
        if row[known["column"]] is not None and row[known["column"]] not in known["levels"]
    ]
    for column in unknown:
        row[column] = None
    return unknown


def holds(condition, row):
    """Whether a condition is true of a row; None where it says nothing of a missing value."""
    value = row[condition["column"]]
    if value is None:
        return condition["if_missing"]
    return OPERATORS[condition["operator"]](value, condition["value"])


class Reached(NamedTuple):
    """What a row reaches in a tree: the mean of some leaves, and the leaf if it is one."""

    probability: float
    n_leaves: int
    leaf: dict | None


def follow(tree, row, number):
    """What a row reaches from a node; negative numbers are those of leaves."""
    if number < 0:
        leaf = tree["leaves"][-number - 1]
        return Reached(leaf["probability"], n_leaves=1, leaf=leaf)
    split = tree["splits"][number]
    truth = holds(split, row)
    if truth is not None:
        return follow(tree, row, split["if_true"] if truth else split["if_false"])

    if_true = follow(tree, row, split["if_true"])
    if_false = follow(tree, row, split["if_false"])
    share = split["share_true"]
    return Reached(
        probability=share * if_true.probability + (1 - share) * if_false.probability,
        n_leaves=if_true.n_leaves + if_false.n_leaves,
        leaf=None,
    )


def follow_root(tree, row):
    return follow(tree, row, 0 if tree["splits"] else -1)


def name_missing(trees, row):
    """The columns that are missing in a row, and of which a split says nothing."""
    splits = [split for tree in trees for split in tree["splits"]]
    undecided = {split["column"] for split in splits if split["if_missing"] is None}
    names = dict.fromkeys(split["column"] for split in splits)
    lacking = [name for name in names if name in undecided and row[name] is None]
    return f"{', '.join(map(name_one, lacking))}: "


def follow_tree(model, row):
    """Prediction, probability and what decided."""
    reached = follow_root(model, row)
    if reached.leaf is not None:
        return reached.leaf["prediction"], reached.probability, reached.leaf["decided_by"]
    threshold = model.get("threshold")
    if threshold is None:
        is_positive = reached.probability > 0.5
    else:
        is_positive = reached.probability >= threshold
    text = f"{name_missing([model], row)}mean of {reached.n_leaves} leaves"
    return model["classes"][is_positive], reached.probability, text


def follow_score(model, row):
    """Prediction, probability and what decided: the points of each column's first true term."""
    total = 0
    for terms in model["columns"]:
        points = [term["points"] for term in terms if holds(term, row)]
        total += points[0] if points else 0

    conditions = [term for terms in model["columns"] for term in terms]
    named = {}  # in order: the columns with points of their own where they are missing
    averaged = set()  # those of which a condition says nothing there
    for condition in conditions:
        if condition["operator"] == "is missing":
            named[condition["column"]] = None
        elif condition["operator"] != "is present" and condition["if_missing"] is None:
            averaged.add(condition["column"])
    lacking = ", ".join(name_one(name, averaged) for name in named if row[name] is None)
    text = f"{lacking}: total of {total}" if lacking else f"total of {total}"
    return model["classes"][total >= model["cut"]], model["risks"][total], text


def add_in_order(numbers):
    """The sum as SQL and NumPy compute it; `sum` of Python 3.12 compensates for rounding."""
    return functools.reduce(operator.add, numbers, 0.0)


def follow_forest(model, row):
    """Prediction, probability and what decided: the mean of the trees, then calibrated."""
    reached_by_tree = [follow_root(tree, row) for tree in model["trees"]]
    n_trees = len(reached_by_tree)
    mean = add_in_order(reached.probability for reached in reached_by_tree) / n_trees
    positive = model["classes"][1]
    n_votes = sum(votes_for(positive, reached) for reached in reached_by_tree)
    text = f"{n_votes} of {n_trees} tree{'' if n_trees == 1 else 's'} above 0.5"
    if any(reached.leaf is None for reached in reached_by_tree):
        text = name_missing(model["trees"], row) + text
    if "calibration" not in model:
        return model["classes"][mean > 0.5], mean, text

    a, b = model["calibration"]
    if (a, b) == (0, 1):
        probability = mean
    else:
        odds = math.exp(a + b * math.log(mean / (1 - mean)))
        probability = odds / (1 + odds)
    return model["classes"][mean >= model["cut"]], probability, text


def votes_for(positive, reached):
    """Whether a tree is above 0.5; a leaf's own prediction settles ties."""
    if reached.leaf is None:
        return reached.probability > 0.5
    return reached.leaf["prediction"] == positive


def decide(saved, frame):
    """What the model predicts, infinity included: exports cannot reject it."""
    with treat_unknown("allow"):
        are_positive, probabilities, texts = (part.tolist() for part in saved.model.decide(frame))
    labels = [saved.classes[is_positive] for is_positive in are_positive]
    unknown = [saved.find_unknown_levels(frame).tolist()] if saved.knows_levels else []
    return list(zip(labels, probabilities, texts, *unknown, strict=True))


def assert_exports_agree(engines, saved, columns, nan_kinds=("float",)):
    """To the last bit; the probability of a calibrated forest, an exp, to 12 digits."""
    expected = decide(saved, make_frame(columns))
    assert expected
    if isinstance(saved.model, Forest) and saved.model.is_calibrated:
        expected = [
            (label, pytest.approx(probability, rel=1e-12, abs=0), *texts)
            for label, probability, *texts in expected
        ]
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
    drawn_names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=fold))
    names = [name for name in drawn_names if fold(name) != "row number"] or ["x"]
    n_rows = draw(st.integers(1, 6))
    columns = {}
    for name in names:
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
    held_values = [value for value in values if value is not None and not is_infinite(value)]
    any_value = VALUES[kind].filter(lambda value: not is_infinite(value))
    value = draw(st.sampled_from(held_values) | any_value if held_values else any_value)
    if COLUMN_TYPES[kind].model == "number":
        return ThresholdRule(position, name, value, is_positive, missing)
    others = draw(st.lists(VALUES[kind], max_size=3))
    levels = tuple(dict.fromkeys([value, *others]))
    return CategoryRule(position, name, levels, is_positive, draw(st.booleans()), missing)


def is_infinite(value):
    return isinstance(value, float) and math.isinf(value)


@st.composite
def known_levels(draw, model, columns):
    """Levels that training had of some of the categories that a model uses, others unknown."""
    names_and_kinds = [(name, kind) for name, (kind, _) in columns.items()]
    drawn = []
    for position in sorted({rule.column for rule in model.rules}):
        name, kind = names_and_kinds[position]
        if COLUMN_TYPES[kind].model == "number" or draw(st.booleans()):
            continue
        rules = [rule for rule in model.rules if rule.column == position]
        levels_of_rules = [level for rule in rules for level in getattr(rule, "levels", ())]
        others = draw(st.lists(VALUES[kind], min_size=1, max_size=3))
        levels = tuple(dict.fromkeys([*levels_of_rules, *others]))
        drawn.append(TrainingValues(column=position, name=name, levels=levels))
    return tuple(drawn)


def know_levels(draw, saved, columns):
    """The same model, which knows levels of training."""
    training_values = draw(known_levels(saved.model, columns))
    return replace(saved, model=replace(saved.model, training_values=training_values))


CLASSES = [("no", "yes"), (0, 1), (False, True), (-1.5, 2.0), ("'", '"'), ("\n", "😀")]
COUNTS = st.integers(0, 1000) | st.integers(0, 2**58)
