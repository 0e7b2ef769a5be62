"""`icscm recalibrate`: a model file moved to a site."""

import numpy as np
import pytest
from click.testing import CliRunner

from icscm import load
from icscm.cli import main
from icscm.datasets import make_conjunction


def run(*arguments, status=0):
    words = [*map(str, arguments), *(["-q"] if arguments[0] != "show" else [])]
    done = CliRunner().invoke(main, words, env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and rows of a site, labelled and not."""
    folder = tmp_path_factory.mktemp("recalibrate")
    data = make_conjunction(300, 2, n_environments=3, random_state=1)
    table = data.X.assign(ill=np.where(data.y, "yes", "no"), place=data.environments)
    table.to_csv(folder / "old.csv", index=False)
    site = table.drop(columns="place")[:80]
    site.to_csv(folder / "site.csv", index=False)
    site.drop(columns="ill").to_csv(folder / "unlabelled.csv", index=False)
    words = "--target", "ill", "--environment", "place", "--model", "tree"
    run("fit", folder / "old.csv", *words, "--out", folder / "model.json")
    return folder


def test_from_rows(folder, tmp_path):
    done = run("recalibrate", folder / "model.json", folder / "site.csv", "--out", tmp_path / "m")
    text = " ".join(done.stdout.split())
    assert "The log odds are shifted by" in text
    assert "from 80 rows (estimate" in text
    saved, moved = load(folder / "model.json"), load(tmp_path / "m")
    record = moved.settings["recalibration"]
    assert moved.model.calibration[0] == saved.model.calibration[0] + record["intercept"]
    shown = " ".join(run("show", tmp_path / "m").stdout.split())
    assert "Calibration" in shown
    assert "recalibration" in shown


def test_exported_code_says_that_it_is_recalibrated(folder, tmp_path):
    """Its comments had the rates of training only, which contradict the threshold."""
    run("recalibrate", folder / "model.json", "--prevalence", 0.9, "--out", tmp_path / "m.json")
    done = CliRunner().invoke(main, ["export", str(tmp_path / "m.json"), "--to", "sql"])
    assert "Recalibrated: log odds = " in done.stdout
    done = CliRunner().invoke(main, ["export", str(folder / "model.json"), "--to", "sql"])
    assert "Recalibrated" not in done.stdout


@pytest.mark.parametrize("rows", [[], ["unlabelled.csv"]])
def test_from_a_base_rate(folder, tmp_path, rows):
    words = [folder / each for each in ["model.json", *rows]]
    done = run("recalibrate", *words, "--prevalence", 0.12, "--out", tmp_path / "m.json")
    moved = load(tmp_path / "m.json")
    assert moved.settings["recalibration"]["rate"] == 0.12
    assert ("95% interval" in " ".join(done.stdout.split())) == bool(rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give DATA (rows of the site with their outcome) or --prevalence"),
        (["--prevalence", 2], "prevalence is between 0 and 1"),
        (["--prevalence", 0.1, "--target", "ill"], "omit --target and --positive"),
        (["unlabelled.csv"], "has no column 'ill'"),
        (["site.csv", "--target", "sick"], "has no column 'sick'"),
        (["model.json"], "which is not a known format"),
    ],
)
def test_what_is_rejected(folder, tmp_path, words, message):
    given = [folder / each if str(each).endswith((".csv", ".json")) else each for each in words]
    done = run("recalibrate", folder / "model.json", *given, "--out", tmp_path / "m.json", status=2)
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "m.json").exists()


def test_a_file_is_not_overwritten(folder):
    words = "recalibrate", folder / "model.json", "--prevalence", 0.1, "--out"
    assert "model.json" in run(*words, folder / "model.json", status=2).stderr
