"""`icscm fit --model tree` and `forest`: from every kind of file, to a model that others read."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import InvariantForestClassifier, InvariantTreeClassifier
from icscm.cli import main
from icscm.model.saved import load

ASKED = ("--target", "ill", "--environment", "site")


def run(*arguments, status=0):
    done = CliRunner().invoke(main, [str(each) for each in arguments], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Age tells everywhere, a code at some sites more than at others; some cells are empty."""
    folder = tmp_path_factory.mktemp("trees")
    rng = np.random.default_rng(0)
    n = 1500
    site, age = rng.integers(0, 3, n), rng.integers(20, 90, n).astype(float)
    ill = rng.random(n) < np.where(age > 60, 0.7, 0.2)
    code = np.where(rng.random(n) < np.array([0.95, 0.6, 0.1])[site], ill, rng.random(n) < 0.4)
    age[rng.random(n) < 0.05] = np.nan
    frame = pd.DataFrame({"age": age, "code": np.where(code, "x", "y")})
    frame = frame.assign(ill=np.where(ill, "yes", "no"), site=np.array(["a", "b", "c"])[site])
    frame.to_csv(folder / "all.csv", index=False)
    (folder / "parts").mkdir()
    frame.to_parquet(folder / "parts" / "0.parquet", index=False)
    return folder


@pytest.mark.parametrize("model", ["tree", "forest"])
def test_from_file_to_prediction(folder, tmp_path, model):
    more = ("--n-estimators", 5, "--random-state", 3) if model == "forest" else ()
    done = run("fit", folder / "all.csv", *ASKED, "--model", model, *more, "--out", tmp_path / "m",
               "--report", tmp_path / "r.html")  # fmt: skip
    assert "Errors on the" in (tmp_path / "r.html").read_text()
    told = " ".join(done.stdout.split())
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80  # but for the path of a temporary folder
    assert "1,500 rows, 2 columns to learn from" in told
    assert "Purpose prediction at a new site" in told
    assert re.search(r'code == "?[xy]"?: the effect of its column differs between env', told)
    assert "majority-class baseline, negative" in told
    frame = pd.read_csv(folder / "all.csv")
    own = {
        "tree": InvariantTreeClassifier(),
        "forest": InvariantForestClassifier(n_estimators=5, random_state=3),
    }
    fitted = own[model].fit(frame[["age", "code"]], frame["ill"], environments=frame["site"])
    assert str(load(tmp_path / "m").model) == str(fitted.model_)
    run("predict", tmp_path / "m", folder / "all.csv", "--out", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == fitted.predict(frame).tolist()
    run("show", tmp_path / "m")
    run("evaluate", tmp_path / "m", folder / "all.csv", "--target", "ill")
    for to in ("sql", "python", "json", "text"):
        run("export", tmp_path / "m", "--to", to)


@pytest.mark.parametrize(
    "words", [("tree",), ("forest", "--n-estimators", 3)], ids=["tree", "forest"]
)
def test_the_same_from_files_read_in_passes(folder, tmp_path, words):
    found = []
    for data in ("all.csv", "parts"):
        run("fit", folder / data, *ASKED, "--model", *words, "--out", tmp_path / data, "-q")
        found.append(json.loads((tmp_path / data).read_text())["model"])
    assert found[0] == found[1]


def test_bits(tmp_path):
    rng = np.random.default_rng(1)
    genes, names = rng.integers(0, 2, (6, 300)), [f"s{i}" for i in range(300)]
    ill = genes[0] ^ (rng.random(300) < 0.1)
    pd.DataFrame(genes, [f"g{i}" for i in range(6)], names).to_csv(tmp_path / "g.tsv", sep="\t")
    labels = pd.DataFrame({"sample": names, "ill": ill, "site": rng.integers(0, 3, 300)})
    labels.to_csv(tmp_path / "l.csv", index=False)
    run("pack", tmp_path / "g.tsv", "--out", tmp_path / "g.bits", "-q")
    words = "fit", tmp_path / "g.bits", "--labels", tmp_path / "l.csv", *ASKED, "-q", "--model"
    run(*words, "tree", "--out", tmp_path / "m.json")
    assert load(tmp_path / "m.json").model.rules[0].feature == "g0"
    told = run("predict", tmp_path / "m.json", tmp_path / "g.bits", "-q").stdout
    assert len(told.splitlines()) == 301
    run(*words, "forest", "--n-estimators", 3)


def test_every_option_reaches_the_learner(folder, tmp_path):
    shared = (
        "--invariance", "rate", "--tolerance", "0.1", "--max-leaves", "4", "--min-samples-leaf",
        "0.1", "--probabilities", "balanced", "--max-thresholds", "9",
        "--n-jobs", "1", "-q", "--out", tmp_path / "m",
    )  # fmt: skip
    own = (
        "--n-estimators",
        "3",
        "--max-features",
        "0.5",
        "--random-state",
        "7",
    )
    wanted = {
        "invariance": "rate", "tolerance": 0.1, "max_leaves": 4, "min_samples_leaf": 0.1,
        "probabilities": "balanced", "max_thresholds": 9, "n_jobs": 1,
    }  # fmt: skip
    run("fit", folder / "all.csv", *ASKED, "--model", "tree", *shared)
    assert load(tmp_path / "m").settings.items() >= wanted.items()
    run("fit", folder / "all.csv", *ASKED, "--model", "forest", *shared, *own, "--force")
    wanted |= {"n_estimators": 3, "max_features": 0.5}
    assert load(tmp_path / "m").settings.items() >= (wanted | {"random_state": 7}).items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model tree --alpha 0.1", "--alpha is for --model rule, not for tree"),
        ("--max-leaves 3", "--max-leaves is for --model tree or forest, not for rule"),
        (
            "--model scm --tolerance 0.1",
            "--tolerance is for --model tree, forest or score, not for scm",
        ),
        ("--model scm --alpha 0.1", "--alpha is for --model rule, not for scm"),
        (
            "--model scm --min-samples-leaf 0.3",
            "is for --model tree, forest or score, not for",
        ),
        ("--model tree --n-estimators 3", "--n-estimators is for --model forest, not for tree"),
        ("--model tree --model-type disjunction", "--model-type is for --model rule or scm"),
        ("--model tree --cv 0.5,1", "--cv p= is not for --model tree"),
        ("--cv max_leaves=2,4", "--cv max_leaves= is not for --model rule"),
        ("--model forest --workers 1", "--model forest draws rows"),
        ("--min-samples-leaf 0.5", "--min-samples-leaf is for --model tree, forest or score"),
        ("--model tree --min-samples-leaf 1.5", "is not a share from 0 to 1"),
        ("--model tree --tolerance -1", "is not 'auto', none or a finite number"),
    ],
)
def test_what_does_not_go_together(folder, tmp_path, words, said):
    done = run("fit", folder / "all.csv", *ASKED, *words.split(), "--out", tmp_path / "m", status=2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("model", ["tree", pytest.param("forest", marks=pytest.mark.thorough)])
def test_cross_validation_and_stability(folder, tmp_path, model):
    """`--cv` and `--stability` were refused for trees and forests; a forest had no importances."""
    words = "--model", model, "--cv", "max_leaves=2,4", "--stability", 3, "--no-path"
    words = words if model == "tree" else (*words[:-1], "--n-estimators", 3)
    report = tmp_path / "report.html"
    files = "--out", tmp_path / "m", "--report", report
    done = run("fit", folder / "all.csv", *ASKED, *words, *files)
    assert "max_leaves" in done.stdout
    assert "Of 3 random subsamples with half of the samples" in " ".join(done.stdout.split())
    assert load(tmp_path / "m").settings["max_leaves"] in (2, 4)
    if model == "forest":
        page = report.read_text()
        assert "loss of AUC" in page
        assert "permuted among the rows of each environment" in page


def test_without_environments_only_a_plain_tree(folder):
    words = "fit", folder / "all.csv", "--target", "ill", "--drop", "site", "--model", "tree"
    assert "or learn without them with --tolerance none" in run(*words, status=2).stderr
    done = run(*words, "--tolerance", "none")
    assert "a plain model" in done.stdout
    assert "Warning" not in done.stderr


def test_a_report_of_a_forest(folder, tmp_path):
    """A forest had none, and later one without importances."""
    words = "--n-estimators", 3, "--report", tmp_path / "forest.md", "-q"
    run("fit", folder / "all.csv", *ASKED, "--model", "forest", *words)
    text = (tmp_path / "forest.md").read_text()
    assert "3 trees with" in text
    assert "loss of AUC" in text
    assert "permuted among the rows of each environment" in text


@pytest.mark.parametrize("model", ["tree", "forest"])
def test_two_environments_say_what_they_cannot_show(folder, model):
    done = run("fit", folder / "all.csv", *ASKED, "--model", model, "--exclude-environment", "c")
    assert "Two environments show only one difference" in " ".join(done.stdout.split())
    assert "Warning" not in done.stderr


def test_nothing_found_says_so(folder):
    words = "fit", folder / "all.csv", *ASKED, "--model", "tree", "--only", "code"
    told = " ".join(run(*words).stdout.split())
    assert "no split was found" in told


def test_a_report_of_a_tree(folder, tmp_path):
    page = tmp_path / "tree.html"
    run("fit", folder / "all.csv", *ASKED, "--model", "tree", "--report", page, "-q")
    text = page.read_text()
    assert "age" in text
    assert "tolerance" in text.lower()
    run(
        "fit", folder / "all.csv", *ASKED, "--model", "tree", "--report", page, "-q", "--force",
        "--no-path",
    )  # fmt: skip
    assert len(page.read_text()) < len(text)
