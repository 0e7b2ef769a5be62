"""`icscm fit` of packed genomes leaves environments out, as it does of a table."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import InvariantForestClassifier, InvariantTreeClassifier, leave_one_environment_out
from icscm.cli import main
from icscm.cli.learners import MODELS
from icscm.sources.bits.packing import pack_matrix

WITH_ALL_FITS = True
N_ROWS, N_COLUMNS = 300, 12


def run(*words, status=0):
    done = CliRunner().invoke(main, [str(word) for word in words], env={"COLUMNS": "200"})
    assert done.exit_code == status, done.output
    return done


@pytest.fixture(scope="module")
def table():
    """Genes 0 and 1 cause resistance in three countries; lineages lie in one of them."""
    rng = np.random.default_rng(5)
    X = rng.random((N_ROWS, N_COLUMNS)) < 0.5
    country = rng.integers(0, 3, N_ROWS)
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(N_ROWS) < 0.05)
    labels = pd.DataFrame(
        {
            "genome": [f"g{row}" for row in range(N_ROWS)],
            "kind": np.where(y, "R", "S"),
            "country": np.array(["fr", "it", "uk"])[country],
            "lineage": 30 * country + rng.integers(0, 30, N_ROWS),
        }
    )
    return X, labels


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    X, labels = table
    folder = tmp_path_factory.mktemp("genomes")
    names = [f"gene{column}" for column in range(N_COLUMNS)]
    pack_matrix(X, folder / "g.bits", names=names, samples=labels["genome"].tolist())
    genes = pd.DataFrame(X.T.astype(int), columns=labels["genome"])
    genes.insert(0, "Gene", names)
    genes.to_csv(folder / "g.rtab", sep="\t", index=False)
    # the order of the labels does not matter
    labels.sample(frac=1, random_state=0).to_csv(folder / "labels.csv", index=False)
    return folder


def ask(folder):
    words = "--labels", folder / "labels.csv", "--target", "kind", "--environment", "country"
    return (*words, "-q")


@pytest.mark.parametrize("name", ["g.bits", "g.rtab"])
def test_the_headline_is_of_environments_left_out(folder, name):
    """It was the AUC in training: the validation "needs a table in memory"."""
    told = " ".join(run("fit", folder / name, *ask(folder)).stdout.split())
    assert "in 3 environments left out" in told
    assert "not validated" not in told
    assert "gene0 present" in told or "gene0 absent" in told
    assert "== True" not in told
    assert "gene0 >" not in told


@pytest.mark.parametrize(
    ("words", "learner"),
    [
        (["--model", "tree"], InvariantTreeClassifier()),
        (
            ["--model", "forest", "--n-estimators", "5"],
            InvariantForestClassifier(n_estimators=5, random_state=0),
        ),
    ],
)
def test_scores_are_those_of_the_table_in_memory(table, folder, tmp_path, words, learner):
    """With groups: a lineage with a genome in the country left out is not learned from."""
    X, labels = table
    report = tmp_path / "report.json"
    run("fit", folder / "g.bits", *ask(folder), "--group", "lineage", *words, "--report", report)
    validation = json.loads(report.read_text())["validation"]
    expected = leave_one_environment_out(
        learner,
        X,
        labels["kind"],
        environments=labels["country"],
        groups=labels["lineage"],
    ).to_dict()
    assert validation["pooled"] == json.loads(json.dumps(expected["pooled"]))


def test_parameters_thresholds_and_subsamples(folder):
    """--cv, --stability and a threshold by a criterion were errors."""
    words = ("--cv", "max_rules=1,2", "--stability", "3", "--threshold", "youden")
    told = " ".join(run("fit", folder / "g.bits", *ask(folder), *words).stdout.split())
    assert "max_rules" in told
    assert "gene0" in told
    assert "youden" in told.lower()


def test_large_stores_are_validated_on_request(folder, monkeypatch):
    """Bits are counted many at a time: a step is for 256 cells, and one for each number."""
    n_steps = 3 * (-(-N_ROWS * N_COLUMNS // 256) + 2 * N_COLUMNS * 3)
    limited = replace(MODELS["rule"], max_validation_steps=n_steps - 1)
    monkeypatch.setattr("icscm.cli.learning.MODELS", {"rule": limited})
    told = " ".join(run("fit", folder / "g.bits", *ask(folder)).stdout.split())
    assert f"({n_steps:,} steps, by default at most {n_steps - 1:,}); --validation" in told
    told = run("fit", folder / "g.bits", *ask(folder), "--validation").stdout
    assert "in 3 environments left out" in " ".join(told.split())
    assert "not validated" not in told


@pytest.mark.parametrize("model", ["rule", "tree"])
def test_genomes_of_the_usual_size_are_validated(model):
    """1,000 x 200,000 in five environments, which rules and trees are learned from in seconds."""
    n_steps_of_fit = 1_000 * 200_000 // 256 + 2 * 200_000 * 5
    assert 5 * n_steps_of_fit <= MODELS[model].max_validation_steps
