"""`icscm evaluate`: from a model file and a table to the truth about it."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import load
from icscm.cli import main
from icscm.datasets import make_conjunction
from icscm.validation.evaluation import evaluate


def run(*arguments, status=0):
    done = CliRunner().invoke(main, [*map(str, arguments), "-q"], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    if "--json" not in arguments:
        lines = done.stdout.splitlines()
        assert max(map(len, lines), default=0) <= 80
    return done


def make_frame(seed):
    data = make_conjunction(400, 2, n_environments=3, random_state=seed)
    rng = np.random.default_rng(seed)
    return data.X.assign(
        job=np.where(data.y ^ (rng.random(len(data.y)) < 0.02), "nurse", "cook"),
        ill=np.where(data.y, "yes", "no"),
        place=np.array(["01", "02", "03"])[data.environments],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose rule asks for a category, and new rows."""
    folder = tmp_path_factory.mktemp("evaluate")
    make_frame(1).to_csv(folder / "old.csv", index=False)
    make_frame(2).to_csv(folder / "new.csv", index=False)
    words = "--target", "ill", "--environment", "place", "--model", "scm", "--max-rules", 2
    run("fit", folder / "old.csv", *words, "--out", folder / "model.json")
    return folder


def save(folder, tmp_path, change):
    path = tmp_path / "changed.csv"
    change(pd.read_csv(folder / "new.csv", dtype=str)).to_csv(path, index=False)
    return path


def test_target_and_environment_are_those_of_the_model(folder):
    done = run("evaluate", folder / "model.json", folder / "new.csv")
    assert done.stdout.startswith("AUC 0.9")
    text = " ".join(done.stdout.split())
    assert "better than that of the constant rate of training, " in text
    assert "By place, the worst first" in done.stdout
    assert "Calibration by leaf" in done.stdout
    assert "never seen" not in done.stdout.lower()


def test_the_json_is_what_python_says(folder):
    done = run("evaluate", folder / "model.json", folder / "new.csv", "--json")
    told, new = json.loads(done.stdout), make_frame(2)
    found = evaluate(load(folder / "model.json"), new, new["ill"], environments=new["place"])
    assert told == {**found.to_dict(), "data": "new.csv"}


def test_the_page_is_written_whole_and_not_twice(folder, tmp_path):
    page = tmp_path / "page.html"
    words = "evaluate", folder / "model.json", folder / "new.csv", "--report", page
    run(*words)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "--force" in run(*words, status=2).stderr
    run(*words, "--force")
    done = run(*words[:-1], tmp_path / "page.pdf", status=2)
    assert "must end in .html" in done.stderr


def test_other_names_of_columns_can_be_given(folder, tmp_path):
    names = {"ill": "sick", "place": "site"}
    path = save(folder, tmp_path, lambda frame: frame.rename(columns=names))
    assert "has no column 'ill'" in run("evaluate", folder / "model.json", path, status=2).stderr
    done = run("evaluate", folder / "model.json", path, "--target", "sick", "--environment", "site")
    assert "(always sick = " in " ".join(done.stdout.split())
    assert "By site, the worst first" in done.stdout


def test_a_table_without_environments_is_judged_as_a_whole(folder, tmp_path):
    path = save(folder, tmp_path, lambda frame: frame.drop(columns="place"))
    done = run("evaluate", folder / "model.json", path)
    assert "There is no column 'place'" in done.stdout
    done = run("evaluate", folder / "model.json", path, "--environment", "place", status=2)
    assert "has no column 'place'" in done.stderr


def test_environments_keep_their_leading_zeros(folder, tmp_path):
    """Rows of 02 alone: read as the number 2 it would be a new environment."""
    path = save(folder, tmp_path, lambda frame: frame[frame["place"] == "02"])
    assert "Not in the training data" not in run("evaluate", folder / "model.json", path).stdout


def test_environments_are_merged_and_excluded_as_for_fit(folder, tmp_path):
    """Merged environments were reported as new, and excluded ones were evaluated."""
    words = "--target", "ill", "--environment", "place", "--model", "scm"
    options = "--merge-environments", "01+02=0102", "--exclude-environment", "03"
    frame = make_frame(1).assign(place=lambda f: np.where(f.index % 4, f["place"], "04"))
    frame.to_csv(tmp_path / "old.csv", index=False)
    run("fit", tmp_path / "old.csv", *words, *options, "--out", tmp_path / "model.json")
    told = json.loads(run("evaluate", tmp_path / "model.json", folder / "new.csv", "--json").stdout)
    assert [(e["environment"], e["is_new"]) for e in told["environments"]] == [("0102", False)]
    assert told["overall"]["n_samples"] == 800
    assert "Excluded: 400 samples of environments that were excluded in training." in told["notes"]


def test_new_environments_and_levels_are_noted_with_their_rows(folder, tmp_path):
    def change(frame):
        frame.loc[:29, "job"] = "poet"
        frame.loc[:9, "place"] = "abroad"
        return frame

    done = run("evaluate", folder / "model.json", save(folder, tmp_path, change))
    text = " ".join(done.stdout.split())
    assert "Column 'job' has levels in 30 of 1,200 rows that training did not have: 'poet'" in text
    assert "Not in the training data, 10 samples: abroad." in text


def test_unknown_labels_are_named(folder, tmp_path):
    path = save(folder, tmp_path, lambda frame: frame.replace({"ill": {"yes": "maybe"}}))
    done = run("evaluate", folder / "model.json", path, status=2)
    assert "the target holds labels that are not among the model's classes" in done.stderr
    assert "'maybe'" in done.stderr


def test_one_class_is_no_error(folder, tmp_path):
    path = save(folder, tmp_path, lambda frame: frame[frame["ill"] == "no"])
    done = run("evaluate", folder / "model.json", path)
    assert "All samples are no" in done.stdout


def test_missing_labels_stop_or_are_left_out(folder, tmp_path):
    def change(frame):
        frame.loc[:4, "ill"] = None
        return frame

    path = save(folder, tmp_path, change)
    done = run("evaluate", folder / "model.json", path, status=2)
    assert "is missing in 5 of 1,200 rows" in done.stderr
    done = run("evaluate", folder / "model.json", path, "--drop-missing")
    assert "Dropped: 5 rows without target or environment." in done.stdout


def test_positive_values_are_those_of_the_model_even_if_some_are_absent(tmp_path):
    """A year without `<30`, one of positives only, and one of none: all can be judged."""
    frame = make_frame(1)
    rng = np.random.default_rng(0)
    early = rng.random(len(frame)) < 0.5
    frame["ill"] = np.where(frame["ill"] == "no", "NO", np.where(early, "<30", ">30"))
    frame.to_csv(tmp_path / "old.csv", index=False)
    words = "--target", "ill", "--positive", "<30", "--positive", ">30", "--environment", "place"
    run("fit", tmp_path / "old.csv", *words, "--out", tmp_path / "model.json")
    for kept, positive in ((["NO", ">30"], None), ([">30"], 1.0), (["NO"], 0.0)):
        part = frame[frame["ill"].isin(kept)]
        part.to_csv(tmp_path / "new.csv", index=False)
        done = run("evaluate", tmp_path / "model.json", tmp_path / "new.csv", "--json")
        told = json.loads(done.stdout)
        share = (part["ill"] != "NO").mean() if positive is None else positive
        assert told["overall"]["n_positive"] == round(share * len(part))
        assert told["positive"] == 'ill = "<30" or ">30"'


def test_many_environments_are_cut_to_the_worst_and_best_unless_all_are_asked_for(folder, tmp_path):
    def change(frame):
        return frame.assign(place=[f"p{i % 25}" for i in range(len(frame))])

    path = save(folder, tmp_path, change)
    short = run("evaluate", folder / "model.json", path).stdout
    assert "\n..." in short
    lines = run("evaluate", folder / "model.json", path, "--all").stdout.splitlines()
    assert sum(line[:1] == "p" and line[1:2].isdigit() for line in lines) == 25


def test_genomes_need_their_labels(tmp_path):
    rng = np.random.default_rng(0)
    genes = rng.random((3, 60)) < 0.5
    names = [f"g{i}" for i in range(60)]
    table = pd.DataFrame(genes.astype(int), columns=names, index=["tetA", "blaTEM", "x"])
    table.rename_axis("Gene").to_csv(tmp_path / "genes.Rtab", sep="\t")
    labels = pd.DataFrame({"genome": names, "resistant": genes[0], "place": np.arange(60) % 2})
    labels.loc[:2, "resistant"] ^= True
    labels.to_csv(tmp_path / "labels.csv", index=False)
    run("pack", tmp_path / "genes.Rtab", "--out", tmp_path / "genes.bits")
    words = "--labels", tmp_path / "labels.csv"
    roles = "--target", "resistant", "--environment", "place"
    run("fit", tmp_path / "genes.bits", *words, *roles, "--out", tmp_path / "model.json")
    for name in ("genes.bits", "genes.Rtab"):
        done = run("evaluate", tmp_path / "model.json", tmp_path / name, *words)
        assert "own predictions: 5.0%, majority-class baseline" in " ".join(done.stdout.split())
        done = run("evaluate", tmp_path / "model.json", tmp_path / name, status=2)
        assert "needs --labels" in done.stderr
    labels.assign(genome="other").to_csv(tmp_path / "labels.csv", index=False)
    done = run("evaluate", tmp_path / "model.json", tmp_path / "genes.bits", *words, status=2)
    assert "names genomes that" in done.stderr


def test_a_model_saved_from_python_asks_for_the_target(folder, tmp_path):
    from icscm import SCMClassifier

    frame = make_frame(1)
    SCMClassifier().fit(frame[["A1", "A2"]], frame["ill"]).save(tmp_path / "bare.json")
    done = run("evaluate", tmp_path / "bare.json", folder / "new.csv", status=2)
    assert "name it with --target" in done.stderr
    done = run("evaluate", tmp_path / "bare.json", folder / "new.csv", "--target", "ill")
    assert "(always ill = no)" in " ".join(done.stdout.split())


def test_a_positive_value_that_never_occurs_is_an_error(tmp_path):
    """`--positive TYPO` made every row negative, and nonsense was scored with exit code 0."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 2, 400), "site": rng.integers(0, 2, 400)})
    is_often = rng.random(400) < np.where(frame["x"] == 1, 0.9, 0.1)
    frame["y"] = np.where(is_often, "often", np.where(rng.random(400) < 0.5, "no", "rare"))
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = [str(tmp_path / "data.csv"), "--target", "y", "--environment", "site", "-q"]
    model = str(tmp_path / "m.json")
    fit = CliRunner().invoke(main, ["fit", *words, "--positive", "often", "--out", model])
    assert fit.exit_code == 0, fit.stderr
    done = CliRunner().invoke(main, ["evaluate", model, words[0], "--positive", "oftn"])
    assert done.exit_code == 2
    assert "the target 'y' has no value 'oftn'; did you mean 'often'?" in done.stderr
    new = frame[frame["y"] != "often"]  # a stored value may be absent from new rows
    new.to_csv(tmp_path / "new.csv", index=False)
    done = CliRunner().invoke(main, ["evaluate", model, str(tmp_path / "new.csv"), "--json"])
    assert done.exit_code == 0, done.stderr


def test_groups_of_rows_widen_the_intervals(folder, tmp_path):
    """Rows alike in label and job, 20 to a patient: as if there were few patients."""

    def add_patients(frame):
        return frame.sort_values(["ill", "job"]).assign(patient=np.arange(len(frame)) // 20)

    path, widths = save(folder, tmp_path, add_patients), []
    for more in ((), ("--group", "patient")):
        done = run("evaluate", folder / "model.json", path, *more, "--json")
        score = json.loads(done.stdout)["overall"]["scores"]["brier"]
        widths.append(score["high"] - score["low"])
    assert widths[1] > 1.5 * widths[0]
    assert "60 groups of rows" in done.stdout
    done = run("evaluate", folder / "model.json", path, "--group", "patent", status=2)
    assert "patient" in done.stderr
