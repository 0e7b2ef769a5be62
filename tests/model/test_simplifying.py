"""Rules in the fewest words: true of the same samples, missing values among them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icscm.exceptions import UnseenMissingWarning
from icscm.model.rules import CategoryRule, MissingRule, PresenceRule, ThresholdRule, simplify
from icscm.model.tree import make_chain

BOTH = pytest.mark.parametrize("kind", ["conjunction", "disjunction"])


def make_model(kind, rules):
    return make_chain(kind, tuple(rules), tuple(((i, 1), (2, i)) for i in range(len(rules) + 1)))


def above(threshold, missing=None):
    return ThresholdRule(0, "age", threshold, above=True, missing=missing)


def is_level(*levels, equal=True, missing=None):
    return CategoryRule(0, "city", levels, equal, pooled=len(levels) > 1, missing=missing)


def test_what_a_user_saw():
    """A model of three steps on one column read `age > 19 and age > 21 and age > 45`."""
    rules = [above(19), above(21), above(45)]
    assert str(make_model("conjunction", rules)) == "age > 45"
    assert str(make_model("disjunction", rules)) == "age > 19"
    assert len(make_model("conjunction", rules)) == 3
    assert make_model("conjunction", rules).leaf_texts[1] == "not met: age > 21"


@pytest.mark.parametrize(
    ("rules", "conjunction", "disjunction"),
    [
        ([above(3), above(7).negate()], "age > 3 and age <= 7", "age > 3 or age <= 7"),
        ([above(3).negate(), above(7).negate()], "age <= 3", "age <= 7"),
        (
            [above(3, missing=True), above(5, missing=False)],
            "age > 5 (missing: false)",
            "age > 3 (missing: true)",
        ),
        (
            [above(3, missing=True), MissingRule(0, "age", is_missing=False)],
            "age > 3 (missing: false)",
            "age > 3 (missing: true) or age is present",
        ),
        (
            [above(3, missing=False), MissingRule(0, "age", is_missing=True)],
            "age > 3 (missing: false) and age is missing",
            "age > 3 (missing: true)",
        ),
        ([is_level("Ulm"), is_level("Ulm")], "city == Ulm", "city == Ulm"),
        ([is_level("Ulm"), is_level("Bonn", equal=False)], "city == Ulm", "city != Bonn"),
        (
            [is_level("Ulm"), is_level("Bonn")],
            "city == Ulm and city == Bonn",
            "city == Ulm or city == Bonn",
        ),
        ([is_level("Ulm", "Bonn"), is_level("Ulm")], "city == Ulm", "city in 2 rare levels"),
        (
            [above(3), PresenceRule(1, "gene", present=True), above(5)],
            "age > 5 and gene present",
            "age > 3 or gene present",
        ),
    ],
)
def test_words(rules, conjunction, disjunction):
    assert str(make_model("conjunction", rules)) == conjunction
    assert str(make_model("disjunction", rules)) == disjunction


def test_true_and_1_are_two_levels():
    rules = [is_level(True), is_level(1)]
    assert simplify(rules, all_hold=True) == tuple(rules)


TRUTHS = st.sampled_from([True, False])
NUMBERS = st.one_of(
    st.builds(
        ThresholdRule,
        st.just(0),
        st.just("x"),
        st.integers(0, 4),
        TRUTHS,
        st.sampled_from([None, True, False]),
    ),
    st.builds(MissingRule, st.just(0), st.just("x"), TRUTHS),
)
LEVELS = st.one_of(
    st.builds(
        CategoryRule,
        st.just(1),
        st.just("c"),
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map(tuple),
        TRUTHS,
        st.just(True),
        st.sampled_from([None, True, False]),
    ),
    st.builds(MissingRule, st.just(1), st.just("c"), TRUTHS),
)
GENES = st.builds(PresenceRule, st.just(2), st.just("g"), TRUTHS)
ROWS = pd.DataFrame(
    [(x, c, g) for x in (*range(6), None) for c in (*"abcde", None) for g in (0, 1)],
    columns=["x", "c", "g"],
)


@BOTH
@given(rules=st.lists(st.one_of(NUMBERS, LEVELS, GENES), max_size=7))
def test_predictions_are_the_same(kind, rules):
    """But where a value is missing of which a rule says nothing: there all leaves count."""
    model = make_model(kind, rules)
    short = make_model(kind, model.simple_rules)
    assert len(short) <= len(model)
    assert short.simple_rules == short.rules
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenMissingWarning)
        if rules:
            unsure = [rule.name for rule in rules if rule.is_unsure]
            rows = ROWS[ROWS[unsure].notna().all(axis=1)]
            assert np.array_equal(model.predict(rows), short.predict(rows))
