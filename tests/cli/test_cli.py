"""Every command, from a file to a rule, predictions and code."""

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from icscm import ICSCMClassifier
from icscm.cli import main
from icscm.datasets import load_heart_by_hospital, make_conjunction, make_hospitals
from icscm.io.streams import read_file
from support.processes import PATIENCE, run_program

DATA = Path(__file__).parents[3] / "shared" / "data"


def run(*arguments, status=0, width=80):
    """Run a command in this process; its output must fit so many columns, and be text only."""
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    assert "\x1b" not in done.output
    if arguments[0] not in ("export", "predict") and "--json" not in arguments:
        assert max(map(len, done.stdout.splitlines()), default=0) <= width, done.stdout
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_clinics(n=4000, seed=0):
    """Categories, numbers, missing values; ill where age > 60 and smoker is yes, mostly."""
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south", "west"], n)
    age = rng.integers(20, 70, n) + np.where(site == "north", 25, 5)
    smoker = np.where(rng.random(n) < np.where(site == "south", 0.6, 0.2), "yes", "no")
    ill = ((age > 60) & (smoker == "yes")) ^ (rng.random(n) < 0.02)
    lab = np.where((site == "west") & (rng.random(n) < 0.9), np.nan, rng.normal(size=n).round(3))
    effect = np.where(rng.random(n) < np.where(site == "west", 0.3, 0.02), ~ill, ill)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": age,
            "smoker": smoker,
            "lab": lab,
            "effect": np.where(effect, "high", "low"),
            "site": site,
            "ill": np.where(ill, "yes", "no"),
        }
    )


@cache
def write_clinics():
    return make_clinics().to_csv(index=False, na_rep="?")


@pytest.fixture
def clinics(here):
    """The clinics as CSV, with ? for missing."""
    (here / "clinics.csv").write_text(write_clinics())
    return make_clinics()


FIT = ("fit", "clinics.csv", "--target", "ill", "--environment", "site", "--na", "?")
# one fit instead of some thirty, where the others are not what is tested
ONCE = ("--no-validation", "--stability", "0")
QUICK = (*FIT, *ONCE, "--model-type", "conjunction")


def test_no_arguments_show_the_help():
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 0
    assert "A first session" in done.stdout
    assert CliRunner().invoke(main, ["--help"]).stdout == done.stdout
    assert CliRunner().invoke(main, ["--version"]).stdout.startswith("icscm, version ")


def test_check(clinics):
    done = run("check", "clinics.csv", "--target", "ill", "--environment", "site", "--na", "?")
    assert "clinics.csv: 4,000 rows, 4 columns to learn from" in done.stdout
    assert "ill is yes, in" in done.stdout
    assert re.search(r"id +different in nearly every row", done.stdout)
    assert re.search(r"lab +0\.\d+ +0\.9\d", done.stdout)
    assert "Minimum detectable differences" in done.stdout
    assert done.stderr == ""  # progress is for terminals
    quiet = run(
        "check", "clinics.csv", "--target", "ill", "--environment", "site", "--na", "?", "-q"
    )
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_check_as_json(clinics):
    done = run("check", "clinics.csv", "--target", "ill", "--environment", "site", "--json")
    found = json.loads(done.stdout)
    assert [each["label"] for each in found["environments"]] == ["north", "south", "west"]


def test_check_of_many_environments(here):
    frame = make_clinics()
    frame["site"] = np.arange(len(frame)) % 90
    frame.to_csv("clinics.csv", index=False)
    arguments = ("check", "clinics.csv", "--target", "ill", "--environment", "site")
    done = run(*arguments)
    assert "and 75 more environments; --all shows them" in done.stdout
    assert len(done.stdout.splitlines()) < 90 < len(run(*arguments, "--all").stdout.splitlines())


def test_fit_show_predict_export(clinics, here):
    """The whole way, held against the same in Python."""
    done = run(*FIT, "--validation", "--out", "model.json", "--report", "report.html")
    assert re.search(r"Rule +positive where smoker == yes and age > 60", done.stdout)
    assert "Dropped       id: different in nearly every row" in done.stdout
    assert re.search(r"AUC .* in \d environments\s+left out", done.stdout)
    assert "Search" in done.stdout
    assert "invariant?" in done.stdout
    assert "Written: model.json\nWritten: report.html\n" in done.stderr
    assert "Warning" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == [
        "clinics.csv",
        "model.json",
        "report.html",
    ]
    page = (here / "report.html").read_text()
    assert page.startswith("<!")
    assert "smoker" in page

    X = clinics[["age", "smoker", "lab", "effect"]]
    expected = ICSCMClassifier().fit(X, clinics["ill"], environments=clinics["site"])
    shown = json.loads(run("show", "model.json", "--json").stdout)
    assert shown["model"]["leaves"] == expected.model_.to_dict()["leaves"]
    assert shown["classes"] == ["no", "yes"]

    shuffled = clinics.sample(frac=1, random_state=0)[["effect", "lab", "id", "smoker", "age"]]
    shuffled.to_csv("new.csv", index=False, na_rep="?")
    run("predict", "model.json", "new.csv", "--keep-columns", "id", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    added = ["prediction", "probability", "decided_by", "unknown_levels"]
    assert list(found.columns) == ["id", *added]
    assert found["id"].tolist() == shuffled["id"].tolist()
    assert found["prediction"].tolist() == expected.predict(shuffled).tolist()
    np.testing.assert_allclose(found["probability"], expected.predict_proba(shuffled)[:, 1])
    assert set(found["decided_by"]) == {
        "not met: smoker == yes",
        "not met: age > 60",
        "all rules met",
    }

    run("predict", "model.json", "new.csv", "--out", "p.parquet")
    assert (
        pq.read_table("p.parquet").column("prediction").to_pylist() == found["prediction"].tolist()
    )
    piped = run("predict", "model.json", "new.csv", "-q")
    rows = list(csv.DictReader(io.StringIO(piped.stdout)))
    assert [row["prediction"] for row in rows] == found["prediction"].tolist()

    sql = run("export", "model.json", "--to", "sql", "--table", "new").stdout
    with sqlite3.connect(":memory:") as connection:
        shuffled.to_sql("new", connection, index=False)
        answer = pd.read_sql(sql, connection)
    assert answer["prediction"].tolist() == found["prediction"].tolist()
    for to, ending in (("python", "py"), ("json", "json"), ("text", "txt")):
        name = f"export.{ending}"
        assert f"Written: {name}" in run("export", "model.json", "--to", to, "--out", name).stderr
        assert (here / name).read_text() == run("export", "model.json", "--to", to).stdout


def test_show(clinics):
    run(*QUICK, "--out", "model.json")
    done = run("show", "model.json")
    assert re.search(r"Target +ill", done.stdout)
    assert re.search(r"Environments +3, by site", done.stdout)
    assert "Leaf 3: else" in done.stdout
    assert re.search(r"the probability of yes is 0\.9\d\d; predicts yes", done.stdout)
    assert re.search(r"alpha +0\.05", done.stdout)
    assert re.search(r"Version +icscm \d", done.stdout)


def test_every_option_of_fit(clinics):
    done = run(
        *FIT, *ONCE, "--model-type", "disjunction", "--p", "2", "--alpha", "auto",
        "--max-rules", "2",
        "--max-thresholds", "none", "--test", "g", "--stop", "coverage", "--pruning", "false",
        "--categories", "id", "--n-jobs", "1",
        "--only", "age,smoker", "--only", "id", "--out", "m.json", "--quiet",
    )  # fmt: skip
    assert done.stderr == ""
    settings = json.loads(Path("m.json").read_text())["settings"]
    assert (
        settings
        | {
            "model_type": "disjunction",
            "p": 2.0,
            "alpha": "auto",
            "max_rules": 2,
            "max_thresholds": None,
            "test": "g",
            "stop": "coverage",
            "pruning": False,
            "n_jobs": 1,
        }
        == settings
    )
    assert "Dropped" not in done.stdout


def test_cross_validation_of_p(clinics):
    done = run(*QUICK, "--cv", "0.5,2", "--out", "m.json", "--random-state", "3")
    assert "p by cross-validation" in done.stdout
    assert done.stdout.count("<- chosen") == 1
    chosen = float(re.search(r"([\d.]+) +[\d.]+%  <- chosen", done.stdout)[1])
    assert json.loads(Path("m.json").read_text())["settings"]["p"] == chosen
    assert re.search(r"baseline +50\.00% *\n", done.stdout)


def test_cross_validation_of_several_parameters(clinics):
    done = run(*FIT, *ONCE, "--cv", "model_type=conjunction,disjunction", "--cv", "p=1,balanced",
               "--cv-scorer", "log_loss", "--out", "m.json")  # fmt: skip
    assert "type, p by cross-validation" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "<- chosen" in line]
    kind, p, *_ = line.split()
    settings = json.loads(Path("m.json").read_text())["settings"]
    assert settings["model_type"] == kind
    assert settings["p"] == (p if p == "balanced" else float(p))
    assert re.search(r"baseline +0\.\d{4} *\n", done.stdout)


def test_stability_is_told(clinics):
    done = run(*QUICK, "--stability", "4", "--report", "r.json", "--no-path")
    assert "Stability" in done.stdout
    assert "Of 4 random subsamples with half of the samples" in " ".join(done.stdout.split())
    told = json.loads(Path("r.json").read_text())["stability"]
    assert told["n_resamples"] == 4
    assert f"{told['models'][0]['frequency']:.0%}" in done.stdout


def test_the_plain_learner_needs_no_environments(clinics):
    done = run(*FIT[:4], *ONCE, "--model", "scm", "--na", "?",
               "--drop", "site", "--out", "m.json", "--report", "r.md")  # fmt: skip
    assert "invariant?" not in done.stdout
    assert "Rule" in done.stdout
    assert "none: nothing was tested" in run("show", "m.json").stdout
    assert run("predict", "m.json", "clinics.csv", "-q").stdout.count("\n") == 4001


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_reports_of_each_kind(clinics, ending):
    run(*QUICK, "--report", f"r.{ending}", "--no-path")
    text = Path(f"r.{ending}").read_text()
    assert "smoker" in text
    if ending == "json":
        report = json.loads(text)
        assert report["path"] is None
        run(*QUICK, "--report", "with.json")
        assert json.loads(Path("with.json").read_text())["path"]


def test_positive_values_and_missing_labels(here):
    frame = make_clinics()
    frame["ill"] = frame["ill"].map({"yes": "<30", "no": "NO"})
    frame.loc[::3, "ill"] = frame.loc[::3, "ill"].replace("<30", ">30")
    frame.loc[5, "ill"] = None
    frame.to_csv("clinics.csv", index=False)
    done = run(
        *QUICK, "--positive", "<30", "--positive", ">30", "--drop-missing", "--out", "m.json"
    )
    assert 'Positive      ill is "<30" or ">30"' in done.stdout
    assert "Dropped       1 row " in done.stdout
    assert re.search(r"Target +ill, positive where it is <30 or >30", run("show", "m.json").stdout)
    predicted = run("predict", "m.json", "clinics.csv", "-q").stdout.splitlines()
    assert {line.split(",")[0] for line in predicted[1:]} == {"True", "False"}


def test_nothing_found_says_why_and_what_to_try(here):
    """Exit status 0: that no rule is invariant is an answer."""
    rng = np.random.default_rng(0)
    n = 4000
    site = np.arange(n) % 2
    x = rng.integers(0, 2, n)
    y = np.where(rng.random(n) < np.where(site == 1, 0.1, 0.5), 1 - x, x)
    pd.DataFrame({"x": x, "same": 1, "site": site, "y": y}).to_csv("t.csv", index=False)
    fit = ("fit", "t.csv", "--target", "y", "--environment", "site", *ONCE)
    done = run(*fit, "--out", "m.json", "--report", "r.html")
    assert re.search(r"Rule +none: no rule holds in every environment", done.stdout)
    assert "Why no rule was found" in done.stdout
    assert "2 of 2 candidates were rejected: 2 because the label depends" in " ".join(
        done.stdout.split()
    )
    assert re.search(r"x > 0 +\S+ +\S+ +\de-\d+ +the rate of y = 1 differs, from", done.stdout)
    assert "Suggestions\n-  Grow a tree, which allows each environment its own rate" in done.stdout
    assert "Warning" not in done.stderr
    assert "no rule holds in every" in run("predict", "m.json", "t.csv", "-q").stdout
    run("show", "m.json")
    sets = run(*fit, "--search", "exhaustive")
    assert "all sets were tested" in sets.stdout
    assert "set of columns" in sets.stdout


def test_many_environments_stay_readable(here):
    frame = make_clinics(4000)
    frame["site"] = [f"Hospital of the very long name number {i % 60}" for i in range(len(frame))]
    frame.to_csv("clinics.csv", index=False)
    done = run(*QUICK, "--out", "m.json")
    assert re.search("lowest +highest +invariant", done.stdout)
    assert "icscm show --all for a saved model, list all" in " ".join(done.stdout.split())
    assert "and 50 more; --all shows them" in run("show", "m.json").stdout
    n_leaves = len(json.loads(run("show", "m.json", "--json").stdout)["model"]["leaves"])
    assert run("show", "m.json", "--all").stdout.count("name number 17 ") == n_leaves > 1


HOSTILE = {
    "age": "[red]age[/red]",
    "smoker": "<script>alert(1)</script>",
    "lab": '"; DROP TABLE x; --',
    "effect": "a\x1b[2Jb\nc",
}


def test_hostile_names_are_text(here):
    """Names that are markup, escape sequences or code stay text, in and out."""
    frame = make_clinics().rename(columns=HOSTILE)
    frame["ill"] = frame["ill"].map({"yes": "[bold]\x07yes", "no": "[blink]\nno"})
    frame["site"] = frame["site"].map(
        {"north": "[link=x]\x1b[31m", "south": "\u202esouth", "west": "west\r\n"}
    )
    frame.to_csv("clinics.csv", index=False)
    run("check", "clinics.csv", "--target", "ill", "--environment", "site", "--all")
    # names of environments side by side are longer than a line, and are not split
    outputs = ["--out", "m.json", "--report", "r.html"]
    done = run(*QUICK, "--max-thresholds", "20", *outputs, width=90)
    assert "<script>alert(1)</script> == yes and [red]age[/red] >" in " ".join(done.stdout.split())
    assert "\u202e" not in done.stdout
    shown = run("show", "m.json")
    assert "[bold]\\x07yes" in shown.stdout
    run("predict", "m.json", "clinics.csv", "--out", "p.csv", "--keep-columns", "a\x1b[2Jb\nc")
    back = read_file("p.csv")
    assert back.column_names[0] == HOSTILE["effect"]
    assert set(back.column("prediction").to_pylist()) == {"[bold]\x07yes", "[blink]\nno"}
    missing = run("fit", "clinics.csv", "--target", "\x1b[2J", status=2)
    assert missing.stderr.count("\n") == 1


SHARES = ([0.6, 0.2, 0.2], [0.3, 0.4, 0.3])


def test_categories_that_look_like_numbers_are_read_as_text_again(here):
    """In the file for predicting every code is a number; in that for fitting one was not."""
    rng = np.random.default_rng(0)
    n = 3000
    site = np.arange(n) % 2
    code = np.where(site == 1, *(rng.choice(["7", "8", "V27"], n, p=p) for p in SHARES))
    flag = rng.random(n) < np.where(site == 1, 0.8, 0.3)
    y = ((code == "7") & flag) ^ (rng.random(n) < 0.03)
    frame = pd.DataFrame({"code": code, "flag": flag, "site": site, "y": y.astype(int)})
    frame.to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "--target", "y", "--environment", "site", "--out", "m.json", *ONCE)
    assert 'code == "7"' in done.stdout.partition("How it was found")[0]
    assert "flag == True" in done.stdout.partition("How it was found")[0]
    frame[(frame["code"] != "V27") & frame["flag"]].to_csv("new.csv", index=False)
    run("predict", "m.json", "new.csv", "--out", "p.csv")
    found = pd.read_csv("p.csv")["prediction"]
    rows = frame[(frame["code"] != "V27") & frame["flag"]]
    assert found.tolist() == (rows["code"] == "7").astype(int).tolist()


def test_what_meant_missing_at_fitting_does_so_when_predicting(here):
    rng = np.random.default_rng(0)
    n = 3000
    lab = rng.choice(["low", "high", "?"], n)
    y = (lab == "?") ^ (rng.random(n) < 0.03)
    frame = pd.DataFrame({"lab": lab, "site": np.arange(n) % 2, "y": y.astype(int)})
    frame.to_csv("t.csv", index=False)
    fit = ("fit", "t.csv", "--target", "y", "--environment", "site", "--na", "?", *ONCE)
    done = run(*fit, "--out", "m.json")
    assert "lab is missing" in done.stdout
    run("predict", "m.json", "t.csv", "--out", "p.csv")
    assert pd.read_csv("p.csv")["prediction"].tolist() == (lab == "?").astype(int).tolist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_simulate(here, ending):
    done = run("simulate", "--out", f"d.{ending}", "--n-samples", "300", "--n-environments", "3",
               "--n-distractors", "2", "--random-state", "5", "--child", "text", "--noise", "flip",
               "--model-type", "disjunction", "--n-parents", "3", "--n-children", "0")  # fmt: skip
    assert f"Written: d.{ending} (900 rows; causes: A1, A2, A3)" in done.stderr
    expected = make_conjunction(
        300, 2, n_environments=3, random_state=5, child="text", noise="flip",
        model_type="disjunction", n_parents=3, n_children=0,
    )  # fmt: skip
    table = read_file(f"d.{ending}").to_pandas()
    assert list(table.columns) == ["A1", "A2", "A3", "B1", "B2", "y", "environment"]
    np.testing.assert_array_equal(table[expected.X.columns], expected.X)
    np.testing.assert_array_equal(table["y"], expected.y)
    np.testing.assert_array_equal(table["environment"], expected.environments)


def test_simulate_then_fit(here):
    run("simulate", "--out", "d.parquet")
    done = run("fit", "d.parquet", "--target", "y", "--environment", "environment", *ONCE)
    assert "positive where A1 > 0 and A2 > 0" in done.stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_simulate_hospitals(here, ending):
    done = run("simulate", "--hospitals", "--out", f"d.{ending}", "--new-hospital", f"n.{ending}",
               "--n-rows", "300", "--n-environments", "3", "--n-parents", "3",
               "--model-type", "disjunction", "--shortcut-strength", "0.5", "--missing", "0.2",
               "--missing-when", "random", "--label-shift", "0.3",
               "--random-state", "5")  # fmt: skip
    assert f"Written: d.{ending} (300 rows, simulated;" in done.stderr
    assert "causes: age, lactate, admission; shortcuts: billing_code" in done.stderr
    assert f"Written: n.{ending} (2,000 rows, simulated;" in done.stderr
    expected = make_hospitals(
        300, 3, n_causes=3, model_type="disjunction", shortcut_strength=0.5, missing=0.2,
        missing_when="random", label_shift=0.3, random_state=5,
    )  # fmt: skip
    home, new = (read_file(f"{name}.{ending}").to_pandas() for name in "dn")
    assert home["hospital"].tolist() == expected.environments.tolist()
    assert set(new["hospital"]) == {"New"}
    for table, X, y in ((home, expected.X, expected.y), (new, expected.X_new, expected.y_new)):
        assert table["deteriorated"].tolist() == y.tolist()
        pd.testing.assert_frame_equal(table[X.columns], X, check_dtype=False)


def test_simulated_hospitals_on_standard_output_are_data_only(here):
    """What was said of the new hospital's file was the last lines of the data."""
    done = run("simulate", "--hospitals", "--n-rows", "20", "--out", "-", "--new-hospital", "n.csv")
    assert "Written: n.csv" in done.stderr
    assert "Written" not in done.stdout


def test_simulate_hospitals_then_fit(here):
    run("simulate", "--hospitals", "--n-rows", "5000", "--out", "d.csv")
    done = run("fit", "d.csv", "--target", "deteriorated", "--environment", "hospital", *ONCE)
    assert "positive where age > 66 and lactate > 2 (missing: false)" in done.stdout


def test_demo_writes_a_report_and_keeps_it(here):
    done = run("demo", "--n-samples", "400")
    assert "Written: icscm-demo.html" in done.stderr
    report = here / "icscm-demo.html"
    assert "A1" in report.read_text()
    report.write_text("mine")
    again = run("demo", "--n-samples", "400")
    assert "icscm-demo.html exists and was kept; --force" in again.stderr
    assert report.read_text() == "mine"
    run("demo", "--n-samples", "400", "--force")
    assert report.read_text() != "mine"
    named = run("demo", "--n-samples", "400", "--report", "icscm-demo.html", status=2)
    assert "icscm-demo.html exists" in named.stderr
    report.unlink()
    run("demo", "--n-samples", "400", "--no-report")
    assert not report.exists()


def test_datasets():
    """The list named the data sets but not how to get them."""
    told = CliRunner().invoke(main, ["datasets", "--data", "raw"]).stdout
    wanted = "icscm.datasets.fetch('diabetes_readmission', 'FOLDER') saves it as FOLDER/diabetes/"
    assert wanted in told
    page = "https://doi.org/10.1126/science.1105809"
    assert f"download it from {page} and save it as FOLDER/sachs/sachs_conditions.csv" in told
    assert "FOLDER holds the raw files; here raw." in told


def test_a_file_that_is_not_there(clinics):
    wrong = run("fit", "clinic.csv", "--target", "ill", "--model", "scm", status=2)
    assert wrong.stdout == ""
    assert wrong.stderr.splitlines()[-1] == (
        "Error: there is no file clinic.csv; did you mean 'clinics.csv'?"
    )


# --- in processes of their own ----------------------------------------------


def test_a_console_that_cannot_show_a_name(here):
    """A name that the console's encoding lacks ended the command before anything was written."""
    frame = make_clinics().rename(columns={"smoker": "räuchert 日"})
    frame.to_csv("clinics.csv", index=False, na_rep="?")
    console = {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = run_program(*QUICK, "--out", "m.json", environment=console)
    assert done.returncode == 0, done.stderr
    assert "positive where r\\xe4uchert \\u65e5 == yes and age > 60" in done.stdout
    assert "日" in Path("m.json").read_text(encoding="utf-8")


def test_a_closed_pipe_is_no_error(clinics):
    run(*QUICK, "--out", "m.json")
    command = f"{sys.executable} -m icscm predict m.json clinics.csv -q | head -n 1"
    pipe = {"shell": True, "capture_output": True, "text": True, "timeout": PATIENCE}
    done = subprocess.run(command, **pipe)
    assert done.stdout == "prediction,probability,decided_by,unknown_levels\n"
    assert "Traceback" not in done.stderr


# --- real data --------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.skipif(
    not (DATA / "heart_disease").is_dir(), reason="the heart disease files are not at hand"
)
def test_heart_disease_in_four_hospitals(here):
    """A rule, or a clear statement that none is invariant and why."""
    data = load_heart_by_hospital(DATA)
    data.X.assign(hospital=data.environments, ill=data.y).to_csv("heart.csv", index=False)
    columns = ("--target", "ill", "--environment", "hospital")
    assert (
        "Missing values depend on the environment: ca, thal"
        in run("check", "heart.csv", *columns).stdout
    )
    columns += ONCE
    done = run("fit", "heart.csv", *columns, "--report", "r.html", "--out", "m.json")
    assert "positive where " in done.stdout
    assert "too little data to tell" in done.stdout
    none = run("fit", "heart.csv", *columns, "--search", "exhaustive", "--alpha", "auto")
    assert "Why no rule was found" in none.stdout
    assert "Suggestions" in none.stdout


@pytest.mark.thorough
@pytest.mark.skipif(
    not (DATA / "diabetes" / "dataset_diabetes.zip").exists(),
    reason="the diabetes file is not at hand",
)
def test_raw_diabetes_table(here):
    """49 columns and the label as they are, `?` for missing, three values of the target."""
    with zipfile.ZipFile(DATA / "diabetes" / "dataset_diabetes.zip") as archive:
        lines = archive.read("dataset_diabetes/diabetic_data.csv").decode().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if line.split(",")[2] != "?")]
    (here / "diabetes.csv").write_text("\n".join(kept))
    # in a process of its own: the tests after it check the memory of this one
    done = run_program(
        "fit", "diabetes.csv", "--target", "readmitted", "--positive", "<30", "--positive", ">30",
        "--environment", "admission_source_id", "--na", "?", "--out", "m.json",
        "--report", "r.html", "--max-rules", "3", "--no-validation", "--model-type", "conjunction",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "99,493 rows, 44 columns to learn from" in done.stdout
    assert "17, by admission_source_id" in done.stdout
    assert "encounter_id: different in nearly every row" in done.stdout
    assert (here / "r.html").stat().st_size < 2_000_000
    predicted = run_program("predict", "m.json", "diabetes.csv", "--out", "p.parquet")
    assert "(99,493 rows)" in predicted.stderr


# --- what a review found --------------------------------------------------------------------------


def test_criteria_of_invariance(clinics):
    """Python had margins, the command line had not."""
    run(*QUICK, "--margin", "0.2", "--out", "m.json")
    assert json.loads(Path("m.json").read_text())["settings"]["margin"] == 0.2
    done = run(*QUICK, "--margin", "0.1", "--out", "m2.json")
    assert json.loads(Path("m2.json").read_text())["settings"]["margin"] == 0.1
    assert "10 points" in " ".join(done.stdout.split())


def test_data_from_standard_input(clinics, here):
    """Data could not be piped into a command."""
    text = (here / "clinics.csv").read_text()
    arguments = ["-" if each == "clinics.csv" else each for each in QUICK]
    done = CliRunner().invoke(main, [*arguments, "--out", "m.json"], input=text)
    assert done.exit_code == 0, done.output
    assert "standard input: 4,000 rows" in done.stdout
    piped = CliRunner().invoke(main, ["predict", "m.json", "-"], input=text)
    assert piped.stdout == CliRunner().invoke(main, ["predict", "m.json", "clinics.csv"]).stdout


def test_a_member_of_an_archive(clinics, here):
    """An archive of several tables had to be unpacked."""
    with zipfile.ZipFile("t.zip", "w") as archive:
        archive.write("clinics.csv", "data/clinics.csv")
        archive.writestr("data/codes.csv", "a,b\n1,2\n")
    arguments = ["t.zip" if each == "clinics.csv" else each for each in QUICK]
    done = run(*arguments, status=2)
    assert "name the one to read with --member" in done.stderr
    assert "smoker == yes and age > 60" in run(*arguments, "--member", "data/clinics.csv").stdout


def test_decimal_commas_are_remembered(here):
    """A column of 1,5 and 2,5 became a category; a model reads new files as its own was read."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400).round(2), "site": np.arange(400) % 2})
    frame["y"] = np.where((frame["x"] > 0.5) ^ (rng.random(400) < 0.05), "yes", "no")
    frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    fit = ("fit", "t.csv", "--target", "y", "--environment", "site", *ONCE)
    assert "numbers with decimal commas" in run(*fit).stderr
    done = run(*fit, "--decimal", ",", "--out", "m.json", "--model", "scm")
    assert re.search(r"positive where x > \d\.\d", done.stdout)
    assert "Warning" not in done.stderr
    assert len(run("predict", "m.json", "t.csv").stdout.splitlines()) == 401


def test_a_leaf_of_one_environment(here):
    """A leaf with one hospital's rows has p = 1 by definition, which read like evidence."""
    rng = np.random.default_rng(0)
    n = 6000
    site, cause = rng.choice(["A", "B", "C"], n), rng.integers(0, 2, n)
    rate = np.select([site == "A", site == "B"], [0.15, 0.5], 0.6) * 0.6 + 0.3 * cause
    frame = pd.DataFrame({"cause": cause, "kit": np.where(site == "A", "old", "new")})
    frame = frame.assign(site=site, ill=(rng.random(n) < rate).astype(int))
    frame.to_csv("proxy.csv", index=False)
    done = run(
        "fit", "proxy.csv", "--target", "ill", "--environment", "site", "--report", "r.md",
        "--min-replication", "0", "--min-utility", "none", *ONCE,
    )  # fmt: skip
    said = "covers samples from one environment only, A: no test was possible"
    assert f"kit == new {said}" in " ".join(done.stdout.split())
    assert f"kit == new {said}" in Path("r.md").read_text()


def test_positive_values_in_the_report(here):
    """The report said "readmitted is <30 or >30 = True"."""
    frame = make_clinics()
    frame["ill"] = np.where(frame["ill"] == "yes", np.arange(len(frame)) % 2 + 1, 0)
    frame.to_csv("clinics.csv", index=False)
    run(
        "fit", "clinics.csv", "--target", "ill", "--environment", "site", "--positive", "1",
        "--positive", "2", "--report", "r.json", *ONCE,
    )  # fmt: skip
    text = Path("r.json").read_text()
    assert "= True" not in text
    report = json.loads(text)
    assert report["task"]["positive"] == "ill = 1 or 2"
    assert report["task"]["negative"] == "ill = 0"
    assert report["model"]["sentence"].endswith("; otherwise ill = 0.")


def test_files_are_written_before_results_are_printed(clinics, monkeypatch):
    """A terminal that fails must not lose a model that took hours."""

    def fail(*_):
        raise OSError("the terminal is gone")

    monkeypatch.setattr("icscm.cli.fit.print_fit", fail)
    assert "the terminal is gone" in run(*QUICK, "--out", "m.json", status=2).stderr
    assert Path("m.json").exists()


def test_suggestions_of_the_report_name_options(here):
    """A report that the command line wrote said margin=0.05."""
    rng = np.random.default_rng(1)
    site = rng.integers(0, 3, 3000)
    frame = pd.DataFrame({"mark": rng.integers(0, 4, 3000), "site": site})
    frame.assign(y=(rng.random(3000) < 0.2 + 0.25 * site).astype(int)).to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "y", "--environment", "site", "--report", "r.md", *ONCE)
    text = Path("r.md").read_text()
    assert "--margin 0.05 accepts" in text
    assert "margin=0.05" not in text


def test_a_schema_of_the_table(clinics):
    """`--table schema.table` named no table."""
    run(*QUICK, "--out", "m.json")
    text = run("export", "m.json", "--to", "sql", "--table", "t", "--schema", "s").stdout
    assert text.endswith('FROM "s"."t" AS d;\n')
    assert "-- each of these texts" in text


@pytest.mark.parametrize("words", [("--type", "disjunction"), ("--jobs", "1"), ("--keep", "id")])
def test_names_of_options_of_version_02_are_gone(clinics, words):
    """They were kept for two versions with a warning."""
    assert f"No such option '{words[0]}'" in run(*FIT, *words, status=2).stderr


def test_the_papers_learner_has_two_names(clinics):
    """`rule` says what comes out, `icscm` is the name of the method."""
    run(*FIT, *ONCE, "--model", "rule", "--out", "rule.json")
    run(*FIT, *ONCE, "--model", "icscm", "--out", "icscm.json")
    assert Path("rule.json").read_text() == Path("icscm.json").read_text()


def test_all_cores_are_used(clinics):
    """On the command line; in Python n_jobs has scikit-learn's default."""
    run(*FIT, *ONCE, "--out", "m.json")
    assert json.loads(Path("m.json").read_text())["settings"]["n_jobs"] == -1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
@pytest.mark.parametrize("command", ["fit", "check"])
def test_the_table_is_opened_once(clinics, command):
    """`icscm fit` opened it up to four times: a pipe, which can be read once only, had no cells."""
    os.mkfifo("pipe.csv")
    text = Path("clinics.csv").read_text()
    writer = threading.Thread(target=Path("pipe.csv").write_text, args=[text])
    writer.start()
    words = [word.replace("clinics", "pipe") for word in FIT[1:]]
    done = run(command, *words, *(ONCE if command == "fit" else ()))
    writer.join()
    assert "4 columns to learn from" in done.stdout
