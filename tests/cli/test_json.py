"""With --json every command prints only its result, as JSON, on standard output."""

import json
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main

pytestmark = pytest.mark.usefixtures("few_rounds")

ROLES = ("--target", "ill", "--environment", "site")
# Of each command: arguments, and a key of its document.
CASES = {
    "demo": (["--n-samples", "200", "--no-report"], "learners"),
    "check": (["t.csv", *ROLES], "environments"),
    "screen": (["t.csv", *ROLES, "--estimator", "logistic", "--cv", "2", "--no-path"], "kept"),
    "fit": (["t.csv", *ROLES, "--no-validation", "--stability", "0"], "model"),
    "compare": (["t.csv", *ROLES, "--candidates", "scm", "--n-folds", "2"], "candidates"),
    "show": (["model.json"], "model"),
    "evaluate": (["model.json", "t.csv"], "environments"),
    "recalibrate": (["model.json", "t.csv", "--out", "site.json"], "recalibration"),
    "predict": (["model.json", "t.parquet", "--keep-columns", "day"], "predictions"),
    "export": (["model.json", "--to", "sql"], "text"),
    "pack": (["genes.tsv", "--out", "genes.bits"], "written"),
    "simulate": (["--n-samples", "20", "--out", "s.csv"], "written"),
    "datasets": ([], "datasets"),
}


def run(*arguments, status=0):
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == status, done.output
    return done


def reject(constant):
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with dates, a model of it, and genes."""
    folder = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    site, age = rng.choice(["north", "south", "west"], 900), rng.integers(20, 90, 900)
    ill = (age > 60) ^ (rng.random(900) < 0.05)
    frame = pd.DataFrame({"age": age, "noise": rng.normal(size=900), "site": site, "ill": ill})
    frame["day"] = pd.date_range("2020-01-01", periods=900, freq="D")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    (folder / "genes.tsv").write_text("gene\ta\tb\ng1\t0\t1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("fit", "t.csv", *ROLES, "--no-validation", "--stability", "0", "--out", "model.json")
    return folder


def test_every_command_has_a_case():
    assert set(CASES) == set(main.list_commands(click.Context(main)))


@pytest.mark.parametrize("command", CASES)
def test_standard_output_is_one_json_document(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    arguments, key = CASES[command]
    document = json.loads(run(command, *arguments, "--json").stdout, parse_constant=reject)
    assert document[key]


def test_files_are_listed_also_when_quiet(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = run("pack", "genes.tsv", "--out", "q.bits", "--json", "-q")
    assert json.loads(found.stdout) == {"written": ["q.bits"]}
    assert not found.stderr
    found = run("export", "model.json", "--to", "r", "--out", "model.R", "--json")
    assert json.loads(found.stdout) == {"written": ["model.R"]}


def test_predictions_are_those_of_the_csv(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = "predict", "model.json", "t.parquet", "--keep-columns", "day", "-q"
    document = json.loads(run(*words, "--json").stdout)
    run(*words, "--out", "p.csv")
    frame = pd.read_csv("p.csv")
    assert pd.DataFrame(document["predictions"]).equals(frame)


@pytest.mark.parametrize("command", ["fit", "screen", "simulate"])
def test_two_results_do_not_share_standard_output(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    data = [] if command == "simulate" else ["t.csv", *ROLES]
    done = run(command, *data, "--out", "-", "--json", status=2)
    assert "--json prints to standard output; give a file name instead of -" in done.stderr
    assert not done.stdout


def test_an_error_leaves_standard_output_empty(folder):
    done = run("show", str(Path(folder) / "absent.json"), "--json", status=2)
    assert not done.stdout
