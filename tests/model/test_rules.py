"""Rules and rule sets by themselves: truth, text, and sentences for columns that do not suit."""

import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from icscm import SCMClassifier
from icscm.exceptions import IcscmError, UnseenMissingWarning
from icscm.formatting import format_json, make_plain
from icscm.model.rules import CategoryRule, MissingRule, PresenceRule, ThresholdRule, make_rule
from icscm.model.saved import check_fitted, check_learner
from icscm.model.splits import freeze_counts, walk
from icscm.model.tree import make_chain

ABOVE = ThresholdRule(1, "age", 63.5, above=True)
LEVEL = CategoryRule(0, "city", ("Bonn",), equal=True)
POOLED = CategoryRule(0, "city", ("Bonn", "Ulm"), equal=True, pooled=True, missing=True)
MISSING = MissingRule(0, "city", is_missing=True)
PRESENT = PresenceRule(1, "gene", present=True)
RULES = [ABOVE, LEVEL, POOLED, MISSING, PRESENT]


def assert_says(kind, sentence, call, *arguments):
    with pytest.raises(kind) as caught:
        call(*arguments)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_plain_values_make_the_same_rule(rule):
    assert make_rule(rule.to_dict()) == rule
    assert rule.to_dict()["kind"] == rule.kind
    assert rule.negate() != rule == rule.negate().negate()


def test_texts():
    pairs = [(str(rule), str(rule.negate())) for rule in RULES]
    assert pairs == [
        ("age > 63.5", "age <= 63.5"),
        ("city == Bonn", "city != Bonn"),
        ("city in 2 rare levels (missing: true)", "city not in 2 rare levels (missing: false)"),
        ("city is missing", "city is present"),
        ("gene present", "gene absent"),
    ]


@pytest.mark.parametrize(
    ("rule", "values", "truth"),
    [
        (ThresholdRule(0, "x", 1.5, above=True), [1.0, 1.5, 2.0], [False, False, True]),
        (ThresholdRule(0, "x", 1.5, above=False), [1.0, 1.5, 2.0], [True, True, False]),
        (ThresholdRule(0, "x", 1, above=True, missing=True), [1.0, 2, None], [False, True, True]),
        (ThresholdRule(0, "x", 1, above=True, missing=False), [1.0, 2, None], [False, True, False]),
        (CategoryRule(0, "x", ("a",), equal=True), ["a", "b", "c"], [True, False, False]),
        (CategoryRule(0, "x", ("a", "c"), equal=False), ["a", "b", "c"], [False, True, False]),
        (
            CategoryRule(0, "x", ("a",), False, missing=False),
            ["b", "a", None],
            [True, False, False],
        ),
        (CategoryRule(0, "x", ("a",), True, missing=True), ["b", "a", None], [False, True, True]),
        (CategoryRule(0, "x", (2, 3), equal=True), [1.0, 2.0, 3.0], [False, True, True]),
        (MissingRule(0, "x", is_missing=True), [1.0, None, 2.0], [False, True, False]),
        (MissingRule(0, "x", is_missing=False), ["a", None, "b"], [True, False, True]),
        (MissingRule(0, "x", is_missing=True), [1.0, 2.0], [False, False]),
        (PresenceRule(0, "x", present=True), [0, 1, 2], [False, True, True]),
        (PresenceRule(0, "x", present=False), [True, False], [False, True]),
        (PresenceRule(0, "x", present=True), [True, False], [True, False]),
    ],
)
def test_truth(rule, values, truth):
    X = pd.DataFrame({"other": [0] * len(values), "x": values})
    assert rule.mask(X).tolist() == truth
    assert rule.mask(X).dtype == bool
    if None not in values:
        assert rule.negate().mask(X).tolist() == [not each for each in truth]


def test_thresholds_are_not_rounded_to_narrow_columns():
    """0.1 as float32 is above 0.1, and a rule learned on float64 must see that."""
    rule = ThresholdRule(0, "x", 0.1, above=True)
    assert rule.mask(np.array([[0.1]], dtype=np.float32)).tolist() == [True]
    assert rule.mask(np.array([[0.1]])).tolist() == [False]


@pytest.mark.parametrize("rule", [ABOVE, PresenceRule(1, "age", present=True)])
def test_columns_without_any_value(rule):
    X = pd.DataFrame({"age": pd.Series([None, None], dtype=object)})
    with pytest.warns(UnseenMissingWarning):
        assert rule.mask(X).tolist() == [False, False]


def test_unseen_missing_values_are_told():
    X = pd.DataFrame({"age": [None] * 1234 + [70.0]})
    with pytest.warns(UnseenMissingWarning) as told:
        assert ABOVE.mask(X).sum() == 1
    assert [str(each.message) for each in told] == [
        "Column 'age' is missing in 1,234 rows but never was at fitting: "
        "'age > 63.5' is neither true nor false there, and the prediction is the mean of both "
        "branches."
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ThresholdRule(0, "age", 63.5, above=True, missing=False).mask(X)


DATES = pd.DataFrame({"age": [datetime(2020, 1, 1)], "city": [datetime(2020, 1, 1)]})
TEXT = pd.DataFrame({"age": ["old"], "city": ["Bonn"]})
NUMBERS = pd.DataFrame({"age": [3.0], "city": [3.0]})
NO_NUMBERS = "column 'age' held numbers at fitting and holds {} now; give numbers"
HELD = "column 'city' held categories at fitting and holds {} now; give it as text, or as the type"


@pytest.mark.parametrize(
    ("rule", "X", "sentence"),
    [
        (
            ABOVE,
            TEXT,
            "column 'age' held numbers at fitting and holds categories now; give numbers",
        ),
        (ABOVE, DATES, "column 'age' held numbers at fitting and holds dates now; give numbers"),
        (LEVEL, DATES, HELD.format("dates") + " it had"),
        (LEVEL, NUMBERS, HELD.format("numbers") + " it had"),
        (MISSING, DATES, "column 'city' holds dates now; give the type it had at fitting"),
        (
            LEVEL,
            pd.DataFrame({"city": [True, False]}),
            "column 'city' held levels of kind text at fitting and holds boolean now; "
            "give it as the type it had",
        ),
    ],
)
def test_columns_of_another_type(rule, X, sentence):
    assert_says(IcscmError, sentence, rule.mask, X)


def test_unknown_kinds():
    known = "['category', 'missing', 'presence', 'threshold']"
    sentence = f"unknown kind of rule 'eval'; this version knows {known}"
    assert_says(IcscmError, sentence, make_rule, {"kind": "eval"})
    sentence = f"unknown kind of rule None; this version knows {known}"
    assert_says(IcscmError, sentence, make_rule, {})


# --- rule sets ------------------------------------------------------------------------------------

LEAVES = (((5, 1), (2, 0)), ((3, 0), (0, 1)), ((1, 1), (4, 6)))
FIRST = ThresholdRule(0, None, 0, above=True)
SECOND = ThresholdRule(1, None, 0, above=True)
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def test_conjunctions():
    model = make_chain("conjunction", (FIRST, SECOND), LEAVES)
    assert model.find_leaves(X).tolist() == [0, 0, 1, 2]
    assert model.predict(X).tolist() == [False, False, False, True]
    assert model.leaf_probabilities() == pytest.approx([3 / 10, 2 / 6, 11 / 14])
    assert model.predict_proba(X) == pytest.approx([3 / 10, 3 / 10, 2 / 6, 11 / 14])
    assert model.compute_importances() == pytest.approx([6 / 9, 3 / 9])
    assert model.leaf_texts == ("not met: x0 > 0", "not met: x1 > 0", "all rules met")
    assert (str(model), len(model)) == ("x0 > 0 and x1 > 0", 2)


def test_disjunctions():
    model = make_chain("disjunction", (FIRST, SECOND), LEAVES)
    assert model.find_leaves(X).tolist() == [2, 1, 0, 0]
    assert model.predict(X).tolist() == [False, True, True, True]
    assert model.compute_importances() == pytest.approx([2 / 3, 1 / 3])
    assert model.leaf_texts == ("met: x0 > 0", "met: x1 > 0", "no rule met")
    assert str(model) == "x0 > 0 or x1 > 0"


def test_rules_that_settle_nothing_rightly_have_no_importance():
    assert make_chain(
        "conjunction", (FIRST,), (((0,), (3,)), ((1,), (1,)))
    ).compute_importances() == [0.0]
    assert len(make_chain("conjunction", (), LEAVES[:1]).compute_importances()) == 0


def test_leaves_must_be_one_more_than_rules():
    sentence = "a conjunction of 2 rules has 3 leaves, got counts for 2"
    assert_says(IcscmError, sentence, make_chain, "conjunction", (FIRST, SECOND), LEAVES[:2])


def test_frozen_counts():
    frozen = freeze_counts(np.array([[1, 2], [3, 4]]))
    assert frozen == ((1, 2), (3, 4)) == freeze_counts([[1.0, np.int64(2)], (3, True + 3)])
    assert all(type(n) is int for row in frozen for n in row)


# --- learners -------------------------------------------------------------------------------------


def test_only_learners():
    sentence = (
        "estimator must be an ICSCMClassifier, SCMClassifier, InvariantTreeClassifier, "
        "InvariantForestClassifier or InvariantScoreClassifier; got dict"
    )
    assert_says(IcscmError, sentence, check_learner, {})
    assert_says(IcscmError, sentence, check_fitted, {})
    with pytest.raises(NotFittedError):
        check_fitted(SCMClassifier())
    learner = SCMClassifier()
    learner.classes_ = np.array([0, 1])  # fitted only in part
    with pytest.raises(NotFittedError):
        check_fitted(learner)


# --- JSON -----------------------------------------------------------------------------------------


class Own:
    """What JSON cannot hold."""


def test_plain_values():
    value = {
        1: (1, 2.5, None, True, "x"),
        "whole": [2**64 - 1, 2**64, 1 - 2**64, -(2**64)],
        "floats": [np.float64(0.5), float("inf"), float("nan"), np.nan],
        "arrays": [np.arange(2), np.int8(3), np.bool_(True)],
        "series": pd.Series([1.5, 2.5], index=["a", "b"]),
        "own": Own(),
    }
    assert make_plain(value) == {
        "1": [1, 2.5, None, True, "x"],
        "whole": [2**64 - 1, str(2**64), 1 - 2**64, str(-(2**64))],
        "floats": [0.5, "inf", "nan", "nan"],
        "arrays": [[0, 1], 3, True],
        "series": {"a": 1.5, "b": 2.5},
        "own": "Own",
    }
    assert make_plain([{"a": Own()}], lambda each: f"<{type(each).__name__}>") == [{"a": "<Own>"}]


def test_layout_of_json():
    """What fits a line of 100 characters is on one; else it is spread, three levels deep."""
    fits = {"a": "x" * 91}
    assert format_json(fits) == '{"a": "' + "x" * 91 + '"}\n'
    longer = {"a": "x" * 92, "é": [1, {"b": None}]}
    assert format_json(longer) == ('{\n  "a": "' + "x" * 92 + '",\n  "é": [1, {"b": null}]\n}\n')
    deep = {"a": [{"b": [["x" * 60, "y" * 60]]}]}
    assert format_json(deep) == (
        '{\n  "a": [\n    {\n      "b": [["' + "x" * 60 + '", "' + "y" * 60 + '"]]\n    }\n  ]\n}\n'
    )
    for n, is_one_line in ((20, True), (100, False)):
        assert (format_json({"a": [1] * n}).count("\n") == 1) == is_one_line


def test_indented_lines_count_their_indent():
    assert format_json({"a": ["x" * 95]}) == '{\n  "a": [\n    "' + "x" * 95 + '"\n  ]\n}\n'
    assert format_json({"a": ["x" * 94]}) == '{\n  "a": ["' + "x" * 94 + '"]\n}\n'


@pytest.mark.parametrize(
    ("name", "written"),
    [("é", "é"), ("\x7f", "\\u007f"), ("\u202e", "\\u202e"), ("\u00a0", "\\u00a0"), ("a b", "a b")],
)
def test_no_character_is_unprintable(name, written):
    assert format_json({"a": name}) == f'{{"a": "{written}"}}\n'


@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_paths_of_a_chain_are_in_the_order_of_its_leaves(kind):
    covered, uncovered = (
        (FIRST.negate(), FIRST) if kind == "conjunction" else (FIRST, FIRST.negate())
    )
    second = SECOND.negate() if kind == "conjunction" else SECOND
    splits = make_chain(kind, (FIRST, SECOND), LEAVES).splits
    nodes = dict(walk(splits, (), lambda path, rule: (*path, rule)))
    paths = [nodes[~leaf] for leaf in range(3)]
    assert paths == [(covered,), (uncovered, second), (uncovered, second.negate())]


def test_several_rules_on_an_unseen_missing_value_are_named_in_one_warning():
    rules = [ThresholdRule(0, "age", level, above=True) for level in (10, 20)]
    X = pd.DataFrame({"age": [None, 70.0]})
    leaves = (((1,), (1,)),) * 3
    with pytest.warns(UnseenMissingWarning) as told:
        make_chain("conjunction", rules, leaves).predict(X)
    assert "Column 'age' is missing in 1 row but never was at fitting: " in str(told[0].message)
