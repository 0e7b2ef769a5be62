"""Models with a threshold: text, `decided_by`, `show` and exports agree with the predictions."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import InvariantTreeClassifier, load
from icscm.cli import main
from icscm.exceptions import IcscmError, ThresholdWarning
from icscm.validation.tuning import choose_threshold

ROLES = "--target", "ill", "--environment", "site"
ONCE = "--no-validation", "--stability", "0"


def run(*arguments, status=0):
    done = CliRunner().invoke(main, [str(each) for each in arguments], env={"COLUMNS": "400"})
    assert done.exit_code == status, done.output
    return done


def squeeze(done):
    return " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of four sites; ill are 9 % of the young and 30 % of the old, more with fever."""
    folder, rng = tmp_path_factory.mktemp("thresholds"), np.random.default_rng(0)
    age, fever, site = rng.integers(20, 90, 2000), rng.random(2000) < 0.4, np.arange(2000) % 4
    ill = rng.random(2000) < 0.09 + 0.15 * (age > 60) + 0.15 * fever * (age > 60)
    frame = pd.DataFrame({"age": age, "fever": fever, "site": site, "ill": ill.astype(int)})
    frame.to_csv(folder / "all.csv", index=False)
    for model in ("tree", "forest"):
        few = ["--n-estimators", "5"] * (model == "forest")
        words = "--model", model, *few, *ONCE, "--threshold", "sensitivity=0.9"
        run("fit", folder / "all.csv", *ROLES, *words, "--out", folder / f"{model}.json")
    return folder


def predict(path, data):
    return [*csv.DictReader(run("predict", path, data).stdout.splitlines())]


def fit_rule(folder, tmp_path, *more):
    words = "--model", "icscm", "--p", "balanced", *ONCE, "--threshold", "costs=1:15", *more
    made = "--out", tmp_path / "m.json", "--report", tmp_path / "r.md"
    return squeeze(run("fit", folder / "all.csv", *ROLES, *words, *made))


def test_a_rule_with_a_threshold_does_not_contradict_its_predictions(folder, tmp_path):
    """It read `positive where age > 60` and `no rule met`, though all were predicted positive."""
    told = fit_rule(folder, tmp_path, "--model-type", "disjunction")
    rows = predict(tmp_path / "m.json", folder / "all.csv")
    assert {row["prediction"] for row in rows} == {"1"}  # all leaves are above 1 / 16
    assert {row["decided_by"].split("; ")[1] for row in rows} == {"reaches threshold 0.0625"}
    assert any(row["decided_by"].startswith("no rule met") for row in rows)
    text = str(load(tmp_path / "m.json"))
    assert text.endswith("; predicts positive from a probability of 0.0625 on")
    assert f"Rule {text}" in told
    assert "Threshold 0.0625 (costs=1:15)" in told
    assert "Warning the rule" not in told  # its error is not that at 0.5
    shown = squeeze(run("show", tmp_path / "m.json"))
    assert f"Rule {text}" in shown
    assert "at threshold 0.0625 (" in shown
    for each in (told, shown, (tmp_path / "r.md").read_text()):
        assert "positive where" not in each.replace("ill is 1", "")
        assert "; otherwise" not in each
    for language in ("sql", "python", "r", "json", "text"):
        exported = run("export", tmp_path / "m.json", "--to", language).stdout
        assert "no rule met; reaches threshold 0.0625" in exported


def test_an_empty_rule_with_a_threshold(folder, tmp_path):
    """It read: no rule holds in every environment and does better than always positive."""
    limits = ("--alpha", "0.999999", "--model-type", "conjunction")
    told = fit_rule(folder, tmp_path, "--only", "fever", *limits)
    (row, *_) = predict(tmp_path / "m.json", folder / "all.csv")
    always = "no rule was found (always positive at threshold 0.0625)"
    assert (row["prediction"], row["decided_by"]) == ("1", always)
    assert always in told
    assert "samples at threshold 0.0625" in told
    report = (tmp_path / "r.md").read_text().partition("\n## ")[0]  # others are of other alphas
    assert "does better" not in told + report
    assert "Predict ill = 1 for every sample at threshold 0.0625" in report


def test_votes_of_a_forest_do_not_contradict_its_prediction(folder):
    """`0 of 100 trees` stood beside prediction 1: votes at 0.5, whatever the threshold."""
    rows = predict(folder / "forest.json", folder / "all.csv")
    assert {"0 of 5 trees above 0.5"} == {row["decided_by"] for row in rows}
    assert "1" in {row["prediction"] for row in rows}
    assert "predicts positive from a probability of" in run("show", folder / "forest.json").stdout


def test_show_states_the_threshold_of_the_model(folder):
    """It said `at threshold 0.5` of the errors at another threshold."""
    shown, saved = squeeze(run("show", folder / "tree.json")), load(folder / "tree.json")
    assert f"samples at threshold {saved.model.threshold:.3g} (" in shown
    assert "at threshold 0.5 " not in shown


def test_out_of_bag_errors_of_a_forest_are_those_at_one_half(folder, tmp_path):
    """They were said to be those at the threshold."""
    words = "--model", "forest", "--n-estimators", "5", *ONCE, "--threshold", "0.1"
    told = squeeze(run("fit", folder / "all.csv", *ROLES, *words, "--out", tmp_path / "f.json"))
    assert "samples at threshold 0.5 (" in told


@pytest.mark.parametrize(("threshold", "is_useless"), [("sensitivity=0.9", False), ("0.9", True)])
def test_predictions_above_a_threshold_are_useful(folder, threshold, is_useless):
    """With leaves above the threshold the report said that none predicts the rarer class."""
    words = "--model", "tree", *ONCE, "--threshold", threshold
    told = squeeze(run("fit", folder / "all.csv", *ROLES, *words))
    assert ("none predicts the rarer class" in told) == is_useless
    assert ("even though the predictions are not" in told) == is_useless


def test_what_a_criterion_reaches_is_printed_kept_and_in_doubt_after_a_shift(folder, tmp_path):
    """The criterion and its held-out sensitivity and specificity were printed nowhere."""
    words = "--model", "tree", *ONCE, "--threshold", "sensitivity=0.9"
    told = squeeze(run("fit", folder / "all.csv", *ROLES, *words))
    saved = load(folder / "tree.json")
    kept = saved.settings["threshold"]
    assert kept["criterion"] == "sensitivity=0.9"
    assert kept["sensitivity"] >= 0.9
    line = (
        "{:.3g} (sensitivity=0.9): sensitivity {:.2f}, specificity {:.2f} in held-out environments"
    )
    reached = kept["sensitivity"], kept["specificity"]
    assert f"Threshold {line.format(saved.model.threshold, *reached)}" in told
    assert "criterion sensitivity=0.9, sensitivity" in squeeze(run("show", folder / "tree.json"))
    with pytest.warns(ThresholdWarning, match=r"was chosen by sensitivity=0\.9 before the shift"):
        saved.recalibrate(prevalence=0.05)
    rows = pd.read_csv(folder / "all.csv")
    chosen = choose_threshold(
        InvariantTreeClassifier(), rows[["age"]], rows["ill"], environments=rows["site"]
    )
    assert saved.set_threshold(chosen).settings["threshold"]["criterion"] == "youden"
    fixed = saved.set_threshold("costs=1:10")  # costs hold for any probabilities
    assert "threshold" not in fixed.settings
    fixed.recalibrate(prevalence=0.05)
    out = "--prevalence", "0.05", "--out", tmp_path / "m.json"
    assert "was chosen by" in run("recalibrate", folder / "tree.json", *out).stderr


def test_subsamples_of_a_model_with_a_threshold(folder):
    """It ended in: stability was computed with other settings or data than fit."""
    words = "--model", "tree", "--no-validation", "--stability", "2", "--threshold", "0.1"
    assert "subsamples" in run("fit", folder / "all.csv", *ROLES, *words).stdout


def test_the_brier_score_is_compared_with_the_constant_rate(folder):
    """Its baseline was called `always ill = 0`, whose Brier score is larger."""
    told = squeeze(run("evaluate", folder / "tree.json", folder / "all.csv"))
    assert "than that of the constant rate of training, 0.1" in told
    assert "majority-class baseline (always ill = 0)" in told


@pytest.mark.usefixtures("few_rounds")
def test_a_score_is_fitted(folder, tmp_path):
    pd.read_csv(folder / "all.csv")[:600].to_csv(tmp_path / "some.csv", index=False)
    words = "--model", "score", "--tolerance", "none", *ONCE, "--out", tmp_path / "m.json"
    told = squeeze(run("fit", tmp_path / "some.csv", *ROLES, *words))
    first_line, *_ = str(load(tmp_path / "m.json").model).splitlines()
    assert first_line.startswith("score of 2 columns")
    assert first_line in told


def test_sizes_of_a_score_can_be_chosen(folder, monkeypatch):
    """`--cv max_terms=` was refused."""
    grids = []

    def stop(_learner, *, grid, **_):
        grids.append(grid)
        raise IcscmError("stopped")

    monkeypatch.setattr("icscm.validation.tuning.grid_search", stop)
    words = "--model", "score", "--cv", "max_terms=1,2", "--cv", "max_points=3"
    assert run("fit", folder / "all.csv", *ROLES, *words, status=2).stderr == "Error: stopped\n"
    assert grids == [{"max_terms": [1, 2], "max_points": [3]}]


@pytest.mark.thorough
@pytest.mark.usefixtures("few_rounds")
def test_sizes_of_a_score_are_chosen(folder, tmp_path):
    words = "--model", "score", "--no-validation", "--cv", "max_terms=1,2", "--cv", "max_points=3"
    words += "--cv-folds", "environments", "--exclude-environment", "3"
    pd.read_csv(folder / "all.csv")[:600].to_csv(tmp_path / "some.csv", index=False)
    run("fit", tmp_path / "some.csv", *ROLES, *words, "--out", tmp_path / "m.json")
    settings = json.loads((tmp_path / "m.json").read_text())["settings"]
    assert settings["max_terms"] in (1, 2)
    assert settings["max_points"] == 3


def test_the_first_screen_names_what_there_is():
    """`icscm --help` named rules only, not the screen, and `an outcome of two kinds`."""
    told = squeeze(run("--help"))
    assert told.index("icscm screen data.csv") < told.index("icscm fit data.csv")
    for word in ("shortcuts", "any classifier", "tree", "forest", "points score"):
        assert word in told.partition("A first session")[0]
