"""Golden files: results of models and studies, each held for a reason that `catalogue.py` gives.

Numbers in JSON may differ by 1e-9 of their size, everything else not at all. Where a change is
meant, write the files anew and read the difference before committing it:

    ICSCM_WRITE_GOLDEN=1 python -m pytest tests/golden -q
    git diff tests/golden/files
"""

import difflib
import json
import os
import re
from pathlib import Path

import pytest

from golden.catalogue import GOLDENS
from golden.writing import is_close, mask_text, simplify, write_json

FILES = Path(__file__).parent / "files"
IS_WRITING = os.environ.get("ICSCM_WRITE_GOLDEN") == "1"
MAX_FILES = 100
MAX_LINES_SHOWN = 60


@pytest.mark.parametrize("name", GOLDENS)
def test_the_result_is_that_of_the_file(name):
    path = FILES / name
    is_json = path.suffix == ".json"
    result = GOLDENS[name].make()

    value = simplify(result) if is_json else mask_text(result)
    text = write_json(value) + "\n" if is_json else value
    if IS_WRITING:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return

    expected = path.read_text(encoding="utf-8")
    is_same = is_close(value, json.loads(expected)) if is_json else text == expected
    if not is_same:
        pytest.fail(describe_difference(name, expected, text), pytrace=False)


def describe_difference(name, expected, actual):
    """Return the lines that differ, as far as a person reads them in a log."""
    lines = list(
        difflib.unified_diff(
            expected.splitlines(),
            actual.splitlines(),
            f"expected/{name}",
            f"actual/{name}",
            n=1,
            lineterm="",
        )
    )
    n_more = len(lines) - MAX_LINES_SHOWN
    shown = [line[:200] for line in lines[:MAX_LINES_SHOWN]]
    return "\n".join(shown + [f"... and {n_more} lines more"] * (n_more > 0))


def test_every_file_is_in_the_catalogue_with_a_reason():
    """A file that nothing is compared with holds nothing; one without a reason is not reviewed."""
    names = {path.relative_to(FILES).as_posix() for path in FILES.rglob("*") if path.is_file()}
    if IS_WRITING:
        for name in names - GOLDENS.keys():
            (FILES / name).unlink()
        return
    assert names == GOLDENS.keys()
    assert len(names) <= MAX_FILES
    for name, golden in GOLDENS.items():
        assert len(golden.why.split()) >= 3, f"{name} needs a reason"
    reasons = [golden.why for golden in GOLDENS.values()]
    assert len(set(reasons)) == len(reasons), "two files are held for one reason"


def test_no_file_tells_of_a_machine():
    for path in FILES.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/tmp/|/home/|/work/|/root/", text), path.name


def test_values_of_json_are_compared_up_to_rounding():
    expected = {"a": [1, 2.0], "b": "x"}
    assert is_close({"a": [1, 2.0 + 1e-10], "b": "x"}, expected)
    for different in (
        {"a": [1, 2.001], "b": "x"},
        {"a": [1, 2.0, 3], "b": "x"},
        {"a": [True, 2.0], "b": "x"},
        {"a": [1, 2.0], "b": "y"},
        {"a": [1, 2.0]},
        {"b": "x", "a": [1, 2.0]},
    ):
        assert not is_close(different, expected)


def test_json_is_written_with_few_lines_for_a_record():
    record = {"rule": "x > 1", "covered": [[10, 20], [30, 40]], "verdict": "invariant", "p": 0.25}
    value = {"rows": [record, record], "numbers": [0.5] * 30, "words": "é" * 60}
    assert write_json(value).splitlines() == [
        "{",
        ' "rows": [',
        '  {"rule": "x > 1", "covered": [[10, 20], [30, 40]], "verdict": "invariant", "p": 0.25},',
        '  {"rule": "x > 1", "covered": [[10, 20], [30, 40]], "verdict": "invariant", "p": 0.25}',
        " ],",
        f' "numbers": [{", ".join(["0.5"] * 17)},',
        f"  {', '.join(['0.5'] * 13)}],",
        f' "words": "{"é" * 60}"',
        "}",
    ]


@pytest.mark.parametrize("value", [{}, [], [{}], {"a": [1.5] * 200}, {"a": {"b": "c" * 300}}])
def test_json_is_read_as_it_was_written(value):
    assert json.loads(write_json(value)) == value


def test_a_difference_is_shown_by_line():
    shown = describe_difference("x.txt", "one\ntwo", "one\nthree")
    assert "-two" in shown
    assert "+three" in shown
