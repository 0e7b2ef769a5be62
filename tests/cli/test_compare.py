"""`icscm compare`, from a file to a table, a figure and sentences."""

import json

import numpy as np
import pandas as pd
import pytest
from test_cli import make_clinics, run

from icscm.validation.candidates import make_candidates

pytestmark = pytest.mark.usefixtures("few_rounds")

COLUMNS = ("--target", "ill", "--environment", "site", "--na", "?")


@pytest.fixture(autouse=True)
def clinics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_clinics(1500).to_csv("clinics.csv", index=False, na_rep="?")


def test_tables_rules_and_sentences():
    done = run("compare", "clinics.csv", *COLUMNS, "--candidates", "icscm,tree")
    for text in (
        "1,500 rows, 4 columns",
        "id, for all candidates",
        "By rows: 3 folds",
        "Leave-one-environment-out: 3 environments",
        "Learned from all rows",
        "Conclusions",
        "has the smallest error",
    ):
        assert text in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    lines = [line.split()[0] for line in done.stdout.splitlines() if line.endswith(("0", "1"))]
    assert {"baseline", "icscm", "tree"} >= {*lines}


def test_the_help_names_every_candidate():
    """`score` was missing in the list."""
    told = " ".join(run("compare", "--help").stdout.split())
    for name in make_candidates():
        assert f" {name.removesuffix('-or')}" in told, name


def test_files():
    outputs = ("--out", "table.csv", "--plot", "figure.svg")
    done = run("compare", "clinics.csv", *COLUMNS, "--candidates", "scm", *outputs, "-q")
    assert done.stderr == ""
    table = pd.read_csv("table.csv")
    assert table["candidate"].tolist() == ["baseline", "scm"]
    assert {"rows_error", "environments_auc", "worst_error", "fit_seconds"} <= {*table.columns}
    with open("figure.svg") as figure:
        assert "<svg" in figure.read()
    done = run("compare", "clinics.csv", *COLUMNS, *outputs, status=2)
    assert "table.csv exists" in done.stderr
    arguments = ("--candidates", "scm", "--out", "table.md", "--min-rows", 100_000)
    done = run("compare", "clinics.csv", *COLUMNS, *arguments)
    assert "too small: north" in done.stdout
    with open("table.md") as page:
        assert "## By rows: 3 folds" in page.read()


def test_json():
    done = run("compare", "clinics.csv", *COLUMNS, "--candidates", "scm", "--json", "--n-folds", 2)
    found = json.loads(done.stdout)
    assert [each["name"] for each in found["candidates"]] == ["baseline", "scm"]
    by_environment = found["candidates"][1]["by_environment"]
    assert [each["environment"] for each in by_environment] == ["north", "south", "west"]
    assert found["n_folds"] == 2
    assert found["conclusions"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--candidates", "jungle"), "there is no candidate 'jungle'"),
        (("--out", "table.txt"), "table.txt must end in .csv, .tsv, .parquet, .md"),
        (("--plot", "figure.gif"), "figure.gif must end in .svg"),
        (("--plot", "clinics.csv"), "must end in"),
        (("--n-folds", "1"), "--n-folds"),
    ],
)
def test_errors(arguments, message):
    done = run("compare", "clinics.csv", *COLUMNS, *arguments, status=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_visits_of_a_patient_are_in_one_fold():
    """A tree knows the patient by his age: without groups it predicts his other visits."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(150), 8)
    pd.DataFrame(
        {
            "ill": rng.integers(0, 2, 150)[patient],
            "site": rng.integers(0, 3, 150)[patient],
            "age": rng.permutation(150)[patient],
            "patient": patient,
        }
    ).to_csv("visits.csv", index=False)
    words = "compare", "visits.csv", *COLUMNS, "--candidates", "boosting", "--json"
    found = [
        json.loads(run(*words, *more).stdout)["candidates"][1]
        for more in (("--drop", "patient"), ("--group", "patient"))
    ]
    assert found[0]["rows"]["auc"] > 0.8
    assert found[1]["rows"]["auc"] < 0.6
    widths = [each["gain"][2] - each["gain"][1] for each in found]
    assert widths[1] > 1.5 * widths[0]


def test_packed_genomes():
    """They were not read: `compare` had no --labels."""
    rng = np.random.default_rng(0)
    genes = rng.integers(0, 2, (4, 300))
    names = [f"g{i}" for i in range(300)]
    table = pd.DataFrame(genes, columns=names)
    table.insert(0, "Gene", list("abcd"))
    table.to_csv("genes.Rtab", sep="\t", index=False)
    ill = np.where(rng.random(300) < 0.1, 1 - genes[0], genes[0])
    labels = {"genome": names, "ill": ill, "site": rng.choice(["n", "s", "w"], 300)}
    pd.DataFrame(labels).to_csv("labels.csv", index=False)
    run("pack", "genes.Rtab", "--out", "genes.bits")
    more = "--labels", "labels.csv", "--candidates", "tree", "--min-rows", 50, "--json"
    for data in ("genes.Rtab", "genes.bits"):
        found = json.loads(run("compare", data, *COLUMNS, *more).stdout)
        assert [each["environments"]["error"] < 0.2 for each in found["candidates"][1:]] == [1]
    done = run("compare", "genes.bits", *COLUMNS, status=2)
    assert "genes.bits needs --labels" in done.stderr
