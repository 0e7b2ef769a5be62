"""A short version of `make fuzz`: some cases of every area; the harness sees what it should see."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import judging
from fuzz.areas import AREAS
from fuzz.processes import Outcome
from fuzz.readable import find_reading_faults
from fuzz.shrinking import shrink
from support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
SHARE = "0.001"  # of the cases of each area, at least one
RUN_PATIENCE = 10 * PATIENCE  # seconds: each of the cases may take some time


def run_trial(*words):
    """As `make fuzz` runs it: apart from the tests, which have threads."""
    return subprocess.run(
        [sys.executable, "tests/fuzz", *map(str, words)],
        cwd=ROOT, capture_output=True, text=True, timeout=RUN_PATIENCE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    areas = "calls,models,stores,files,names,roles,kills,disk,sites,threads,dask"
    words = ("--areas", areas, "--share", SHARE, "--jobs", "1", "--folder", folder)
    return run_trial(*words), folder, words


@pytest.mark.thorough
def test_nothing_is_violated(tried):
    done, _, words = tried
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| calls |" in done.stdout
    assert "| all | | 0 |" not in done.stdout
    assert done.stdout.count("\n| ") == len(words[1].split(",")) + 1


@pytest.mark.thorough
def test_a_run_goes_on_where_it_was(tried):
    _, folder, words = tried
    known = json.loads((folder / "state-0.json").read_text())
    assert known["areas"]["calls"]["tried"] == round(AREAS["calls"].n_cases * float(SHARE))
    again = run_trial(*words)
    assert "\n0 cases in" in again.stdout, again.stdout + again.stderr
    page = folder / "page.md"
    page.write_text("before\n<!-- tried: written by make fuzz -->\nold\n"
                    "<!-- end of what make fuzz writes -->\nafter\n")  # fmt: skip
    run_trial("--folder", folder, "--table", page)
    text = page.read_text()
    assert "| calls |" in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text


def make_outcome(status=0, out=b"", err=b"", **more):
    return Outcome(["fit"], status, out, err, 0.1, **more)


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (make_outcome(-11), "died by signal 11"),
        (make_outcome(1, err=b"Error: x"), "ended with 1"),
        (make_outcome(2), "without a sentence"),
        (make_outcome(2, err=b"Traceback (most recent call last):\nError: x"), "Traceback"),
        (make_outcome(2, err=b"Error: unexpected error (KeyError)"), "unexpected"),
        (make_outcome(2, err=b"Error: " + b"x" * 2000), "2007 characters"),
        (make_outcome(0, err="\x9b2J".encode()), "raw"),
        (make_outcome(0, err="\u202e".encode()), "raw"),
        (make_outcome(0, hung=True), "hangs"),
        (make_outcome(0, orphans=2), "left running"),
        (make_outcome(0, out=b'{"a": Infinity}'), "no JSON"),
    ],
)
def test_what_a_violation_is(outcome, fault):
    found = judging.find_faults(outcome, is_json=outcome.out != b"")
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.txt", "one\n\u202etwo", "unprintable '\\u202e'"),
        ("a.txt", "alphaline \n betaline", "a name on two lines"),
        ("a.html", "<p><img src=x></p>", "became <img>"),
        ("a.md", "<script>alert(1)</script>", "became a script"),
        ("a.md", "[x](http://evil.example)", "a link or emphasis"),
        ("a.md", "| a | b |\n|---|---|\n| a|b | c |", "4 bars below one of 3"),
        ("a.svg", "<svg><b></svg>", "no XML"),
        ("a.svg", "<svg><image/></svg>", "an element <image>"),
        ("a.json", "NaN", "no JSON"),
    ],
)
def test_what_people_must_not_read(tmp_path, name, text, fault):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert [fault in told for told in find_reading_faults(path)].count(True) == 1


def test_what_people_may_read(tmp_path):
    texts = {
        "a.html": "<h1>a</h1>\n<p>12\xa0%</p>",
        "a.md": r"| a\|b | c |" + "\n|---|---|\n| a | b |",
        "a.svg": "<svg><text>a</text></svg>",
        "a.txt": r"alphaline\nbetaline",
        "a.json": "[1]",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
        assert find_reading_faults(tmp_path / name) == []


def test_what_is_none():
    assert judging.find_faults(make_outcome(0)) == []
    assert judging.find_faults(make_outcome(2, err=b"Error: no column 'x'")) == []
    assert judging.find_faults(make_outcome(-9), signalled=signal.SIGKILL) == []
    stopped = make_outcome(130, err=b"Stopped.")
    assert judging.find_faults(stopped, signalled=signal.SIGINT) == []
    assert judging.find_faults(stopped) != []


def test_the_smallest_input_is_found():
    spec = {"rows": list(range(100)), "options": [["--a"], ["--b", "1"]], "seed": 3}
    smallest = shrink(spec, lambda case: 42 in case["rows"], seconds=PATIENCE)
    assert smallest == {"rows": [42], "options": [], "seed": 3}


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_a_planted_fault_is_seen_kept_and_replayed(tmp_path):
    """Each kind of end that must not be, from a process that is really forked."""
    code = (
        "import sys, os; sys.path.insert(0, 'tests')\n"
        "from pathlib import Path\n"
        "from fuzz import areas, calls, processes\n"
        "processes._run_module = lambda argv: os.abort()\n"
        "spec = areas.draw_case(0, 'models', 0)\n"
        "import fuzz.models; fuzz.models.make_model = lambda number: b'{}'\n"
        "faults = areas.run_case('models', spec)\n"
        "assert 'died by signal 6' in faults[0], faults\n"
        f"areas.keep_smallest('models', spec, faults, Path({str(tmp_path)!r}))\n"
    )
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=ROOT, check=True, env=alone, timeout=RUN_PATIENCE)
    (kept,) = tmp_path.glob("models-*")
    assert "died by signal 6" in json.loads((kept / "case.json").read_text())["faults"][0]
    replayed = run_trial("--replay", kept)
    assert replayed.stdout == "Nothing was violated.\n", replayed.stderr
