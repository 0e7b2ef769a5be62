"""Golden files: the exact text of reports, models, exports and studies is in `files/`.

Numbers in JSON may differ by 1e-9 of their size, everything else not at all. Where a change is
meant, write the files anew and read the difference before committing it:

    ICSCM_WRITE_GOLDEN=1 python -m pytest tests/golden -q
    git diff --word-diff tests/golden/files
"""

import difflib
import json
import math
import os
import re
from pathlib import Path

import pytest
from artefacts import ARTEFACTS, mask_text, write_json
from zoo import CASES

FILES = Path(__file__).parent / "files"
IS_WRITING = os.environ.get("ICSCM_WRITE_GOLDEN") == "1"
MAX_LINES = 60  # of a difference that is shown
# Keys whose values change from run to run, or with a release.
VOLATILE = {"seconds", "version", "fit_seconds", "predict_seconds"}


def make(name, artefact):
    text = ARTEFACTS[name, artefact]()
    if artefact.endswith(".json"):
        return write_json(mask(json.loads(text)))
    return mask_text(text)


def mask(value):
    if isinstance(value, dict):
        return {key: None if key in VOLATILE else mask(each) for key, each in value.items()}
    if isinstance(value, list):
        return [mask(each) for each in value]
    return mask_text(value) if isinstance(value, str) else value


@pytest.mark.parametrize(("name", "artefact"), ARTEFACTS, ids=map(".".join, ARTEFACTS))
def test_says_the_same(name, artefact):
    found, path = make(name, artefact), FILES / f"{name}.{artefact}"
    if IS_WRITING:
        FILES.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
        return
    held = path.read_text(encoding="utf-8")
    if artefact.endswith(".json"):
        same = is_close(json.loads(found), json.loads(held))
    else:
        same = found == held
    if not same:
        pytest.fail(show_difference(held, found, path.name), pytrace=False)


def is_close(found, held):
    """The same, but for the last digits of numbers."""
    if isinstance(found, float) or isinstance(held, float):
        both = isinstance(found, int | float) and isinstance(held, int | float)
        return both and math.isclose(found, held, rel_tol=1e-9, abs_tol=1e-12)
    if type(found) is not type(held):
        return False
    if isinstance(found, dict):
        # the order of keys is held too: it is that of lines in a file
        return list(found) == list(held) and all(is_close(found[key], held[key]) for key in held)
    if isinstance(found, list):
        return len(found) == len(held) and all(map(is_close, found, held))
    return found == held


def show_difference(held, found, name):
    lines = held.splitlines(), found.splitlines()
    shown = list(difflib.unified_diff(*lines, f"held/{name}", f"now/{name}", n=1, lineterm=""))
    more = [f"... and {len(shown) - MAX_LINES} lines more"] * (len(shown) > MAX_LINES)
    return "\n".join([*(line[:200] for line in shown[:MAX_LINES]), *more])


def test_all_kinds_are_held():
    """An empty zoo, or one that lost a kind, must not pass."""
    assert len(CASES) >= 35
    assert len(ARTEFACTS) >= 540
    kinds = {artefact for _, artefact in ARTEFACTS}
    assert {"report.json", "report.md", "report.html.txt", "terminal.txt", "model.json"} <= kinds
    assert {"drawn.txt", "svg.txt", "figure.txt"} <= kinds
    for name in CASES:
        assert sum(each == name for each, _ in ARTEFACTS) >= 12, name


def test_every_file_is_asked_for():
    """A file that nobody compares with holds nothing."""
    wanted = {f"{name}.{artefact}" for name, artefact in ARTEFACTS}
    there = {path.name for path in FILES.iterdir()}
    if IS_WRITING:
        for name in there - wanted:
            (FILES / name).unlink()
        return
    assert there == wanted


def test_no_file_tells_of_a_machine():
    """Neither paths nor times are held."""
    for path in FILES.iterdir():
        assert not re.search(r"/tmp/|/home/|/work/", path.read_text(encoding="utf-8")), path.name


def test_a_difference_is_found():
    assert is_close({"a": [1, 2.0]}, {"a": [1, 2.0 + 1e-10]})
    assert not is_close({"a": [1, 2.0]}, {"a": [1, 2.001]})
    assert not is_close({"a": 1}, {"a": 2})
    assert not is_close({"a": True}, {"a": 1})
    assert not is_close({"a": 1}, {"b": 1})
    shown = show_difference("one\ntwo", "one\nthree", "x.txt")
    assert "-two" in shown
    assert "+three" in shown
