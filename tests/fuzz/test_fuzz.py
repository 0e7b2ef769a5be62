"""A short version of `make fuzz`: some cases of every area; the harness sees what it should see."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import judging, newcomers, surveys
from fuzz.areas import AREAS, draw_case
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
    areas = "calls,models,stores,files,names,roles,newcomers,surveys,kills,disk,sites,threads,dask"
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


# --- new sites, weights and groups: planted faults are seen ---------------------------------------


def make_case(area, **settings):
    """A case that is tried in Python, by rules unless said otherwise, with these settings."""
    plain = {"way": "python", "model": "rule", "validated": False, "layout": None, "holes": 0}
    return draw_case(0, area, 0) | plain | settings


LEVELS = {"what": "levels", "recoding": "case"}
UNITS = {"what": "units", "column": "age", "share": 1.0, "factor": 18.0, "model": "forest"}
PLANTED_FAULTS = {
    "another level": (
        newcomers.try_levels,
        make_case("newcomers", **LEVELS, share=0.3),
        "icscm.model.routes.drop_unknown",
        lambda column, unknown: column,
        "not predicted as missing",
    ),
    "silence": (
        newcomers.try_levels,
        make_case("newcomers", **LEVELS, share=0.3),
        "icscm.model.routes.report_unknown",
        lambda findings: None,
        "is not said",
    ),
    "no error": (
        newcomers.try_levels,
        make_case("newcomers", **LEVELS, share=1.0),
        "icscm.model.routes.report_unknown",
        lambda findings: None,
        "raised ''",
    ),
    "unit": (
        newcomers.try_units,
        make_case("newcomers", **UNITS),
        "icscm.model.routes.warn_of_far",
        lambda column, training: None,
        "far outside: True",
    ),
    "reason": (
        newcomers.try_absent,
        make_case("newcomers", what="absent", where="never", column="noise"),
        "icscm.tables.suspicion.EMPTY",
        "of no use",
        "dropped: {'noise': 'of no use'}",
    ),
    "ratios": (
        surveys.try_weights,
        make_case("surveys", what="weights", weights="drawn", factor=7.0),
        "icscm.tables.weights.make_relative",
        lambda weights: weights,
        "differ",
    ),
}


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize(
    "name",
    [
        *(name for name in PLANTED_FAULTS if name != "ratios"),
        pytest.param("ratios", marks=pytest.mark.thorough),  # two fits, scores and evaluations
    ],
)
def test_planted_faults_of_new_sites_and_weights_are_seen(name, monkeypatch):
    judge, case, target, replacement, fault = PLANTED_FAULTS[name]
    assert judge(case) == []
    monkeypatch.setattr(target, replacement)
    assert fault in " ".join(judge(case))


@pytest.mark.parametrize("size", [1, 5, 500])
def test_groups_lie_as_their_layout_says(size):
    spec = make_case("surveys", what="groups", layout="within") | {"size": size}
    rows = newcomers.make_rows(spec)

    def count_spanning(layout):
        groups = surveys.draw_groups(spec | {"layout": layout}, rows)
        sites = {}
        for group, site in zip(groups, rows["site"], strict=True):
            sites.setdefault(group, set()).add(site)
        return sum(len(each) > 1 for each in sites.values()), len(sites)

    assert count_spanning("within")[0] == 0
    n_across, n_groups = count_spanning("across")
    assert n_across > n_groups / 4
    assert 0 <= count_spanning("mixed")[0] <= n_across
