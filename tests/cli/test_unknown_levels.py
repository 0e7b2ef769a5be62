"""`icscm predict` and `evaluate` at a site that writes levels otherwise, or has another unit."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.cli.model_files import find_types
from icscm.model.novelty import Range, TrainingValues
from icscm.model.parsing import Feature
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import load
from support.saved_models import make_saved

RULES = (
    CategoryRule(1, "smoker", ("None",), equal=False, missing=False),
    ThresholdRule(0, "glucose", 110, above=True, missing=False),
)
LEVELS = TrainingValues(1, "smoker", levels=("None", "heavy", "light"))
RANGE = TrainingValues(0, "glucose", range=Range(lowest=44, low=62, high=290, highest=400))
N_ROWS = 40


@pytest.fixture
def site(tmp_path):
    """A model file, and rows that are as in training; a test changes them."""
    write_model(tmp_path, (LEVELS, RANGE))
    glucose = np.linspace(70, 250, N_ROWS).round()
    smoker = np.resize(["None", "light", "heavy", "None"], N_ROWS)
    rows = pd.DataFrame({"smoker": smoker, "glucose": glucose})
    return tmp_path, rows.assign(y=np.where(glucose > 110, "yes", "no"))


def write_model(folder, training_values):
    saved = make_saved(RULES, [Feature("glucose", "number"), Feature("smoker", "category")])
    model = replace(saved.model, training_values=training_values)
    saved = replace(saved, model=model, settings={"table": {"target": "y"}})
    saved.save(folder / "m.json", force=True)


def run(command, folder, rows, *options, status=0):
    rows.to_csv(folder / "rows.csv", index=False)
    arguments = [command, folder / "m.json", folder / "rows.csv", "--no-default-na", "-q", *options]
    done = CliRunner().invoke(main, [str(each) for each in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done


def read_rows(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_rows_as_in_training_are_silent(site):
    folder, rows = site
    done = run("predict", folder, rows)
    assert done.stderr == ""
    assert {row["unknown_levels"] for row in read_rows(done)} == {""}


def test_unknown_levels_are_told_and_flagged(site):
    """`none` for `None` gave the safest score, and nothing said so."""
    folder, rows = site
    rows.loc[:9, "smoker"] = rows.smoker[:10].str.lower().str.replace("light", "x")
    done = run("predict", folder, rows)
    assert done.stderr == (
        "Warning: Column 'smoker' has levels in 8 of 40 rows that training did not have: 'none' "
        "(did you mean 'None'?), 'x'; they are treated as missing.\n"
    )
    found = read_rows(done)
    assert list(found[0]) == ["prediction", "probability", "decided_by", "unknown_levels"]
    is_unknown = rows.smoker.isin(["none", "x"])
    assert [row["unknown_levels"] for row in found] == np.where(is_unknown, "smoker", "").tolist()
    predictions = np.array([row["prediction"] for row in found])
    assert {*predictions[is_unknown]} == {"no"}


def test_mostly_unknown_levels_stop_it(site):
    folder, rows = site
    rows["smoker"] = rows.smoker.str.upper()
    done = run("predict", folder, rows, status=2)
    assert done.stdout == ""
    assert "'smoker' has levels in 40 of 40 rows that training did not have: 'HEAVY'" in done.stderr
    assert "or predict with --allow-unknown, which treats them as missing" in done.stderr
    done = run("predict", folder, rows, "--allow-unknown")
    assert "they are treated as missing" in done.stderr
    assert [row["unknown_levels"] for row in read_rows(done)] == ["smoker"] * N_ROWS


def test_another_unit_is_told(site):
    folder, rows = site
    rows["glucose"] = (rows.glucose / 18).round(1)
    told = (
        "Column 'glucose': 40 of 40 values are far below those of training (few under 62, "
        "smallest 44): another unit?"
    )
    assert run("predict", folder, rows).stderr == f"Warning: {told}\n"
    evaluated = run("evaluate", folder, rows, "--json")
    assert told in json.loads(evaluated.stdout)["notes"]


def test_an_evaluation_goes_on(site):
    folder, rows = site
    rows["smoker"] = rows.smoker.str.upper()
    notes = json.loads(run("evaluate", folder, rows, "--json").stdout)["notes"]
    told = [note for note in notes if "has levels in 40 of 40 rows" in note]
    assert len(told) == 1
    assert "'NONE' (did you mean 'None'?)" in told[0]


def test_a_column_of_that_name_cannot_be_kept(site):
    folder, rows = site
    done = run(
        "predict",
        folder,
        rows.assign(unknown_levels=1),
        "--keep-columns",
        "unknown_levels",
        status=2,
    )
    assert "both have a column 'unknown_levels'" in done.stderr


def test_files_of_older_versions_say_that_they_cannot_tell(site):
    folder, rows = site
    write_model(folder, ())
    rows.loc[0, "smoker"] = "none"
    done = run("predict", folder, rows)
    assert "does not say which levels 'smoker' had in training" in done.stderr
    assert list(read_rows(done)[0]) == ["prediction", "probability", "decided_by"]
    document = json.loads((folder / "m.json").read_text()) | {"schema": 4}
    (folder / "m.json").write_text(json.dumps(document))
    assert load(folder / "m.json").list_unknowable() == ["smoker"]


def test_booleans_of_a_rule_on_missing_values_are_read_as_booleans():
    """Its column was read as text, so that its levels would be others than those of training."""
    values = TrainingValues(1, "smoker", levels=(False, True))
    saved = make_saved([MissingRule(1, "smoker", is_missing=True)])
    model = replace(saved.model, training_values=(values,))
    assert find_types(replace(saved, model=model)) == {"smoker": "boolean"}
