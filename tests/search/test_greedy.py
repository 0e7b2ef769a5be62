"""The fast learner and the literal one choose the same rules for the same reasons."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import ICSCMClassifier, SCMClassifier
from support.fitting import assert_same, fit_all_columns, fit_quietly
from support.literal.learner import is_true, learn_slowly


@st.composite
def tables(draw):
    """Small tables with ties, duplicates, constant columns and unequal environments."""
    n_rows = draw(st.integers(4, 40))
    n_environments = draw(st.integers(2, 5))
    n_features = draw(st.integers(1, 5))
    n_values = draw(st.sampled_from([1, 2, 3, 8]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, n_values + 1, size=(n_rows, n_features)).astype(float)
    if draw(st.booleans()):
        X[:, -1] = X[:, 0]
    if draw(st.booleans()):
        X = np.repeat(X[: (n_rows + 1) // 2], 2, axis=0)[:n_rows]
    y = rng.integers(0, 2, n_rows)
    if draw(st.booleans()):
        y = (X[:, 0] > X[0, 0]) ^ (rng.random(n_rows) < 0.1)
    y = y.astype(int)
    y[:2] = [0, 1]
    environments = rng.integers(0, n_environments, n_rows)
    environments[:2] = [0, 1]
    return X, y, environments


PARAMETERS = st.fixed_dictionaries(
    {
        "p": st.sampled_from([0.1, 0.5, 1.0, 2.5]),
        "model_type": st.sampled_from(["conjunction", "disjunction"]),
        "max_rules": st.sampled_from([1, 2, 10]),
        "max_thresholds": st.sampled_from([1, 2, 3, 50, None]),
    }
)
INVARIANT_PARAMETERS = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.01, 0.05, 0.3]),
        "stop": st.sampled_from(["independence", "coverage"]),
        "pruning": st.sampled_from([True, False, "always"]),
        "min_replication": st.sampled_from([0.0, 0.25, 0.5]),
        "min_utility": st.sampled_from([None, 0.0, 2.0, "auto"]),
    }
)
CRITERIA = [
    {"test": "chi2"},
    {"test": "g"},
    {"test": "fisher"},
    # wide, since the tables are small
    {"test": "g", "margin": 0.5},
    {"test": "g", "margin": 0.8},
]


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@settings(max_examples=40, deadline=None)
@given(table=tables(), shared=PARAMETERS, invariant=INVARIANT_PARAMETERS)
def test_icscm_equals_the_literal_learner(criterion, table, shared, invariant):
    X, y, environments = table
    invariant = invariant | criterion
    fitted = fit_quietly(ICSCMClassifier(**shared, **invariant), X, y, environments)
    expected = learn_slowly(X.tolist(), y.tolist(), environments.tolist(), **shared, **invariant)
    assert_same(fitted, expected, shared["model_type"] == "disjunction", environments)


@settings(max_examples=100, deadline=None)
@given(tables(), PARAMETERS)
def test_scm_equals_the_literal_learner(table, shared):
    X, y, environments = table
    fitted = fit_quietly(SCMClassifier(**shared), X, y, environments)
    expected = learn_slowly(X.tolist(), y.tolist(), environments.tolist(), **shared)
    assert_same(fitted, expected, shared["model_type"] == "disjunction", environments)


@st.composite
def mixed_tables(draw):
    """Frames of numbers and categories with missing values, of every kind of library."""
    X, y, environments = draw(tables())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = {}
    for j in range(X.shape[1]):
        values = X[:, j].tolist()
        if draw(st.booleans()):
            words = ["", "a", "b", "c", "No", "Yes", "ü", "'", "x y"]
            values = [words[int(value) % len(words)] for value in values]
        share = draw(st.sampled_from([0.0, 0.0, 0.2, 0.9, 1.0]))
        columns[f"f{j}"] = [None if rng.random() < share else value for value in values]
    if not any(value is not None for column in columns.values() for value in column):
        columns["f0"] = X[:, 0].tolist()  # a table without any value is an error
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    make = draw(st.sampled_from([make_pandas, make_polars, pa.table]))
    return make(columns), rows, y, environments


def make_pandas(columns):
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})


def make_polars(columns):
    return pl.DataFrame(columns, strict=False)


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@settings(max_examples=50, deadline=None)
@given(
    table=mixed_tables(),
    shared=PARAMETERS,
    invariant=INVARIANT_PARAMETERS,
    test=st.sampled_from(["chi2", "g", "fisher"]),
)
def test_mixed_data_equal_the_literal_learner(model_type, table, shared, invariant, test):
    """Categories and missing values: the same counts, rules, ties and reasons."""
    frame, rows, y, environments = table
    shared = shared | {"model_type": model_type}
    options = shared | invariant | {"test": test}
    if options["min_utility"] == "auto":  # the number of rules is counted on numbers only
        options["min_utility"] = 0.0
    fitted = fit_all_columns(ICSCMClassifier(**options), frame, y, environments)
    expected = learn_slowly(rows, y.tolist(), environments.tolist(), **options)
    inverted = shared["model_type"] == "disjunction"
    positions = {f"f{j}": j for j in range(len(rows[0]))}
    assert_same(fitted, expected, inverted, environments, positions)
    chosen = [
        rule if not inverted else (*rule[:3], not rule[3], invert(rule[4]))
        for rule in expected["kept"]
    ]
    hits = [[is_true(rule[1:], row[rule[0]]) for rule in chosen] for row in rows]
    verdict = [any(row) if inverted else all(row) for row in hits]
    if expected["set_aside"] or not chosen:
        verdict = [2 * sum(y) > len(y)] * len(rows)
    assert fitted.predict(frame).tolist() == [int(each) for each in verdict]


def invert(side):
    return None if side is None else not side


def test_equivalence_accepts_only_what_is_shown():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(200, 3))
    y, environments = X[:, 0] ^ (rng.random(200) < 0.2), rng.integers(0, 2, 200)
    few = fit_quietly(ICSCMClassifier(margin=0.05, test="g"), X, y, environments)
    assert few.rules_ == ()
    assert {each.candidate.verdict.conclusion for each in few.trace_.nearest} == {
        "too little data to tell"
    }
    X, y, environments = (np.repeat(each, 100, axis=0) for each in (X, y, environments))
    wide = ICSCMClassifier(test="g", margin=0.2)
    many = fit_quietly(wide, X, y, environments)
    assert many.rules_
    assert {step.chosen.verdict.conclusion for step in many.trace_.steps} == {"invariant"}
