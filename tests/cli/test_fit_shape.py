"""What `icscm fit` shows of the shape, of stability, and instead of a rule."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.datasets import make_conjunction

WITH_ALL_FITS = True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A disjunction over three environments, and noise."""
    folder = tmp_path_factory.mktemp("shape")
    data = make_conjunction(1_500, 2, model_type="disjunction", n_environments=3, random_state=1)
    data.X.assign(y=data.y, site=data.environments).to_csv(folder / "any.csv", index=False)
    rng = np.random.default_rng(5)
    noise = pd.DataFrame(rng.integers(0, 2, (300, 5))).add_prefix("g")
    noise = noise.assign(y=rng.integers(0, 2, 300), site=rng.integers(0, 3, 300))
    noise.to_csv(folder / "no rule.csv", index=False)
    return folder


def fit(*words):
    asked = ["fit", *map(str, words), "--target", "y", "--environment", "site", "-q"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_the_shape_and_its_scores_take_one_line(folder, tmp_path):
    report = tmp_path / "report.json"
    shown = fit(folder / "any.csv", "--report", report)
    assert "Rule positive where A1 > 0 or A2 > 0" in shown
    assert "Shape disjunction, by AUC in held-out environments: conjunction 0.5" in shown
    summary = json.loads(report.read_text())
    assert summary["model"]["shape"]["chosen"] == "disjunction"
    n_same, n = summary["n_returned"]
    assert n == 20
    assert f"the same columns in {n_same} of 20 random subsamples" in shown
    assert summary["stability"] is None
    page = tmp_path / "report.html"
    fit(folder / "any.csv", "--report", page, "--no-path", "--no-validation", "--stability", "0")
    assert "Shape: disjunction, by AUC" in page.read_text()


def test_many_environments_and_no_stability(folder, monkeypatch):
    """The limit of the line on stability counted the cells of the table only."""
    monkeypatch.setattr("icscm.validation.stability.MAX_BRIEF_STEPS", 4_500 * 5)
    assert "Stability" not in fit(folder / "any.csv", "--model-type", "disjunction")
    monkeypatch.setattr("icscm.validation.stability.MAX_BRIEF_STEPS", 4_500 * 5 + 20 * 5 * 2 * 3)
    assert "Stability" in fit(folder / "any.csv", "--model-type", "disjunction")


def test_a_named_shape_and_no_stability(folder):
    shown = fit(folder / "any.csv", "--model-type", "disjunction", "--stability", "0")
    assert "Rule positive where A1 > 0 or A2 > 0" in shown
    assert "Shape" not in shown
    assert "Stability" not in shown


def test_without_a_rule_a_tree_is_offered_first(folder):
    shown = fit(folder / "no rule.csv", "--drop", "g4")
    path = f"'{folder / 'no rule.csv'}'"
    asked = f"{path} --target y --environment site --drop g4"
    advice = shown[shown.index("Suggestions") :].replace(" ", "")
    first, second = f"icscm fit {asked} --model tree", f"icscm screen {asked}"
    assert first.replace(" ", "") in advice
    assert second.replace(" ", "") in advice
    assert advice.index(second.replace(" ", "")) < advice.index("--modelscm")
