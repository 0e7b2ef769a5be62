"""How `tests/compare_versions.py` compares two versions, and that its cases can be run."""

import argparse
import math
from collections import Counter

import pandas as pd
import pytest

import compare_versions
from versions import comparing
from versions.cases import CASES, Fit, describe_case
from versions.running import run_case
from versions.tables import FORMS, TABLES

ERROR = {"error": {"kind": "IcscmError", "text": "too few rows"}}


def find_paths(base, tree, **options):
    return [each.path for each in comparing.compare(base, tree, **options).differences]


@pytest.mark.parametrize(
    ("base", "tree", "path"),
    [
        ({"n": 3}, {"n": 4}, "n"),
        ({"rule": "age > 63"}, {"rule": "age >= 63"}, "rule"),
        ({"p": 0.5}, {"p": 0.5 + 1e-11}, "p"),
        ({"p": 0.5}, {"p": math.nan}, "p"),
        ({"p": 0.5}, {"p": None}, "p"),
        ({"p": 0.0}, {"p": 1e-300}, "p"),
        ({"is_kept": True}, {"is_kept": 1}, "is_kept"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b"),
        ({"a": {}}, {"a": {"b": None}}, "a.b"),
        ({"leaves": [[1, 2], [3]]}, {"leaves": [[1, 2], [4]]}, "leaves[1][0]"),
        ({"leaves": [1, 2]}, {"leaves": [1]}, "leaves.length"),
        ({"leaves": []}, {"leaves": {}}, "leaves"),
    ],
)
def test_a_difference_is_found(base, tree, path):
    assert find_paths(base, tree) == [path]


def test_rounding_is_no_difference_but_is_measured():
    found = comparing.compare({"p": [0.1, math.nan, 2]}, {"p": [0.1 * (1 + 1e-13), math.nan, 2]})

    assert found.differences == []
    assert 5e-14 < found.largest_gap < 2e-13


def test_the_tolerance_and_ignored_places_are_the_callers():
    base = {"p": 0.5, "report": {"texts": {"title": "Old"}, "numbers": {"n": 1}}}
    tree = {"p": 0.51, "report": {"texts": {"title": "New"}, "numbers": {"n": 1}}}

    assert find_paths(base, tree) == ["p", "report.texts.title"]
    assert find_paths(base, tree, tolerance=0.1, ignored=["*.texts.*"]) == []


def test_a_difference_is_shown_in_a_line():
    (difference,) = comparing.compare({"p": 0.5}, {"p": 0.25}).differences

    assert str(difference) == "p: 0.5 -> 0.25 (relative difference 5.0e-01)"


@pytest.mark.parametrize(
    ("base", "tree", "outcome"),
    [
        ({"n": 1}, {"n": 1}, "equal"),
        ({"n": 1}, {"n": 2}, "different"),
        ({"n": 1}, ERROR, "error in working tree only"),
        (ERROR, {"n": 1}, "error in base only"),
        (ERROR, ERROR, "equal"),
        (ERROR, {"error": {"kind": "IcscmError", "text": "too many rows"}}, "different"),
        ({"n": 1}, {"gone": "option a: use b"}, "not compared"),
    ],
)
def test_errors_are_compared_too(base, tree, outcome):
    options = argparse.Namespace(tolerance=comparing.TOLERANCE, ignore=None)

    judgement = compare_versions.judge(Fit("rules", "network"), base, tree, options)

    assert judgement.outcome == outcome
    is_silent = base == {"n": 1} == tree
    assert bool(judgement.lines) != is_silent


def test_cases_have_names_of_their_own_and_use_all_tables_and_forms():
    names = Counter(case.name for case in CASES)
    used = " ".join(map(describe_case, CASES))

    assert len(CASES) > 200
    assert [name for name, n in names.items() if n > 1] == []
    assert [table for table in TABLES if f'"{table}"' not in used] == []
    assert {case.form for case in CASES if isinstance(case, Fit)} == set(FORMS)


@pytest.mark.thorough
def test_tables_do_not_change():
    """Both versions are fitted to what two processes make from the same seeds."""
    for make in TABLES.values():
        pd.testing.assert_frame_equal(make().file, make().file)


@pytest.mark.parametrize("kind", ["rules", "tree", "rate tree", "icp"])
def test_a_case_runs_with_this_version(kind):
    """A new name in the package that the comparison does not know shows here first."""
    facts = run_case(Fit(kind, "network-small"))

    assert "error" not in facts, facts["error"]
    assert find_paths(facts, run_case(Fit(kind, "network-small"))) == []


def test_an_error_is_a_fact():
    facts = run_case(Fit("rules", "one-class"))

    assert facts["error"]["kind"] == "IcscmError"
    assert "one class only" in facts["error"]["text"]
