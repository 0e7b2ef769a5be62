"""`icscm fit` leads with the performance in environments left out."""

import json
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.cli.learners import MODELS

ASKED = "--target", "ill", "--environment", "site", "--model", "tree"
WITH_ALL_FITS = True


def run(*arguments):
    done = CliRunner().invoke(main, [str(each) for each in arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 90, 1200), "site": np.arange(1200) % 4})
    frame["ill"] = (rng.random(1200) < np.where(frame["age"] > 60, 0.7, 0.2)).astype(int)
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[frame["site"] < 2].to_csv(tmp_path / "two.csv", index=False)
    return tmp_path


def test_environments_left_out_come_before_training(folder):
    """The terminal and the report had training figures only."""
    done = run("fit", folder / "all.csv", *ASKED, "--report", folder / "r.json")
    told = " ".join(done.stdout.split())
    assert told.index("in 4 environments left out") < told.index("In training AUC")
    assert "Validating" not in done.stderr  # a person reads how long, a program does not
    found = json.loads((folder / "r.json").read_text())
    assert len(found["validation"]["environments"]) == 4
    assert found["validation"]["pooled"]["auc"]["new_low"] < found["errors"]["auc"]
    assert found["validation"]["lines"][0].startswith("Discrimination: AUC 0.7")


@pytest.mark.parametrize(
    ("file", "options", "reason"),
    [
        ("all.csv", ["--no-validation"], "--no-validation"),
        ("two.csv", [], "needs at least 3 environments for InvariantTreeClassifier"),
    ],
)
def test_what_is_not_validated_says_why(folder, file, options, reason):
    done = run("fit", folder / file, *ASKED, *options)
    told = " ".join(done.stdout.split())
    assert f"New sites not validated by leave-one-environment-out: {reason}" in told.replace(
        "leave-one-environment-out needs", "needs"
    )


def test_long_validations_are_for_those_who_want_them(folder, monkeypatch):
    """The limit did not count the environments' numbers: 400 environments took many minutes."""
    n = 4 * (1_200 + 4 * 4 * 51)  # cells, and four steps for each bin of each environment
    limited = replace(MODELS["tree"], max_validation_steps=n - 1)
    monkeypatch.setattr("icscm.cli.learning.MODELS", {"tree": limited})
    told = " ".join(run("fit", folder / "all.csv", *ASKED).stdout.split())
    assert f"too many cells and environments ({n:,} steps, by default at most {n - 1:,})" in told
    assert (
        "in 4 environments left out"
        in run("fit", folder / "all.csv", *ASKED, "--validation").stdout
    )


def test_whether_models_are_validated_does_not_depend_on_the_clock(folder, monkeypatch):
    """On a busy machine the same command left the validation out."""
    times = count(step=1e6)
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    assert "in 4 environments left out" in run("fit", folder / "all.csv", *ASKED).stdout


@pytest.mark.parametrize("model", MODELS)
def test_usual_tables_are_validated(model):
    """Forests and scores of 20,000 rows and 20 columns of 10 hospitals were not."""
    assert MODELS[model].max_validation_steps >= 20_000 * 20 * 10


@pytest.mark.parametrize("ending", ["md", "html"])
def test_the_checklist_is_filled_as_far_as_the_data_tell(folder, ending):
    run("fit", folder / "all.csv", *ASKED, "--tripod", folder / f"t.{ending}")
    text = (folder / f"t.{ending}").read_text()
    assert "1,200 samples" in text
    assert "0: 300 samples" in text  # outcome and size by environment
    assert "Discrimination: AUC 0.7" in text
    assert text.count("to be filled by the authors") > 20
    items = [line for line in text.splitlines() if line.startswith(("| ", "<tr><td>"))]
    assert len(items) == (47 if ending == "md" else 46)
