"""`--weight` of commands: a column of the file has the weights of the rows."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm import check_environments, evaluate, load
from icscm.cli import main

ROLES = ("--target", "ill", "--environment", "site", "--quiet")
QUICK = ("--no-validation", "--stability", "0")


def run(*arguments, status=0):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == status, done.output
    return done


def make_table(n=600):
    rng = np.random.default_rng(0)
    age = rng.integers(20, 90, n)
    ill = (age > 60) ^ (rng.random(n) < np.where(age > 80, 0.6, 0.1))
    return pd.DataFrame(
        {
            "age": age,
            "noise": rng.normal(size=n).round(2),
            "site": rng.choice(["north", "south", "west"], n),
            "w": rng.integers(1, 4, n),
            "patient": np.arange(n) // 2,
            "ill": np.where(ill, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with weights, and the same with each row as often as its weight says."""
    folder = tmp_path_factory.mktemp("weight")
    table = make_table()
    table.to_csv(folder / "t.csv", index=False)
    repeated = table.loc[table.index.repeat(table["w"])].rename_axis("row").reset_index()
    repeated.drop(columns="w").to_csv(folder / "repeated.csv", index=False)
    (folder / "parts").mkdir()
    table.to_csv(folder / "parts" / "a.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        drop = ("--drop", "patient", *QUICK)
        run("fit", "t.csv", *ROLES, *drop, "--weight", "w", "--out", "weighted.json")
        run("fit", "repeated.csv", *ROLES, *drop, "--group", "row", "--out", "repeated.json")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return pd.read_csv("t.csv")


def test_a_model_is_that_of_repeated_rows(here):
    del here
    weighted, repeated = load("weighted.json"), load("repeated.json")
    assert str(weighted.model) == str(repeated.model)
    assert list(weighted.model.leaf_probabilities()) == list(repeated.model.leaf_probabilities())


@pytest.mark.parametrize("model", ["rule", "scm", "tree", "score"])
def test_every_model_takes_weights_and_the_facts_name_them(here, model):
    shown = run("fit", "t.csv", *ROLES, *QUICK, "--weight", "w", "--model", model).stdout
    assert "600 rows" in shown
    assert "Weights" in shown
    share = np.average(here["ill"] == "yes", weights=here["w"])
    assert f"in {share:.1%} of the rows" in shown


def test_a_validation_is_weighted(here):
    del here
    quick = ("--validation", "--stability", "0", "--drop", "patient", "--json")
    arguments = ("fit", "t.csv", *ROLES, *quick)
    weighted = json.loads(run(*arguments, "--weight", "w").stdout)["validation"]
    plain = json.loads(run(*arguments, "--drop", "w").stdout)["validation"]
    assert weighted["lines"] != plain["lines"]
    for own, other in zip(weighted["environments"], plain["environments"], strict=True):
        assert own["n_samples"] == other["n_samples"]
        assert own["scores"]["brier"] != other["scores"]["brier"]


def test_an_evaluation_is_weighted(here):
    found = json.loads(run("evaluate", "weighted.json", "t.csv", "--weight", "w", "--json").stdout)
    expected = evaluate(
        load("weighted.json"),
        here,
        here["ill"],
        environments=here["site"],
        sample_weight=here["w"],
    ).to_dict()
    assert found["overall"] == json.loads(json.dumps(expected["overall"]))
    assert any("Rows count by their weights: 600 rows as" in note for note in found["notes"])


def test_a_check_up_is_weighted_and_grouped(here):
    options = ("--weight", "w", "--group", "patient")
    shown = run("check", "t.csv", *ROLES, *options).stdout
    expected = check_environments(
        here[["age", "noise"]],
        here["ill"],
        environments=here["site"],
        sample_weight=here["w"],
        groups=here["patient"],
    )
    for place in expected.environments:
        line = next(line for line in shown.splitlines() if line.startswith(str(place.label)))
        assert f"{place.rate:.1%}" in line
    assert "rows with the same patient belong together" in shown
    assert "With groups or weights, 600 rows tell as much" in " ".join(shown.split())


ERRORS = {
    "passes": (("fit", "parts", *ROLES, "--weight", "w"), "which is learned from in passes"),
    "subsamples": (
        ("fit", "t.csv", *ROLES, "--weight", "w", "--stability", "5"),
        "--stability does not go with --weight",
    ),
    "text": (("fit", "t.csv", *ROLES, *QUICK, "--weight", "site"), "--weight is 'site', target or"),
    "no column": (("check", "t.csv", *ROLES, "--weight", "weights"), "weights"),
    "not numbers": (
        ("evaluate", "weighted.json", "t.csv", "--weight", "ill"),
        "must hold finite numbers",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_weights_that_cannot_be_used(here, case):
    del here
    arguments, text = ERRORS[case]
    assert text in run(*arguments, status=2).stderr
