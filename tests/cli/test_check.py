"""`icscm check` on outcomes of any kind, and commands that take two classes only."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.sources.bits.packing import pack_table

ROLES = ("--environment", "site", "--quiet")


def run(*arguments, status=0):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == status, done.output
    return done


def make_table(n=400):
    rng = np.random.default_rng(0)
    age = rng.normal(60, 10, n).round(0)
    columns = {
        "age": age,
        "sex": rng.choice(["female", "male"], n),
        "stay": np.exp(rng.normal(age / 30, 0.5)).round(1),
        "grade": np.where(age > 65, "severe", np.where(age > 55, "mild", "none")),
        "site": rng.choice(["north", "south", "west"], n),
        "ill": rng.choice(["no", "yes"], n),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    table = make_table()
    table.to_csv(folder / "t.csv", index=False)
    (folder / "parts").mkdir()
    table[:200].to_csv(folder / "parts" / "a.csv", index=False)
    table[200:].to_csv(folder / "parts" / "b.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        quick = ("--no-validation", "--stability", "0", "--drop", "stay,grade")
        run("fit", "t.csv", "--target", "ill", *ROLES, *quick, "--out", "model.json")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return pd.read_csv("t.csv")


def test_a_number(here):
    printed = run("check", "t.csv", "--target", "stay", *ROLES).stdout
    assert "stay, a number: mean" in printed
    assert "--outcome classes" not in printed.split("Environments")[1]
    north = here[here["site"] == "north"]["stay"]
    line = next(line for line in printed.splitlines() if line.startswith("north"))
    assert f"{north.mean():.4g}" in line
    assert f"{north.std():.4g}" in line
    assert "SD" in line
    assert "Test of equal means of the outcome over the environments (Welch)" in printed
    assert "Of a number, icscm screen finds shortcuts" in printed


def test_several_classes(here):
    printed = run("check", "t.csv", "--target", "grade", *ROLES).stdout
    assert "grade, 3 classes" in printed
    south = here[here["site"] == "south"]["grade"]
    line = next(line for line in printed.splitlines() if line.startswith("south"))
    assert f"{(south == 'mild').mean():.1%}" in line
    assert "Test of homogeneous shares of the classes over the environments" in printed


def test_what_the_target_is_can_be_said(here):
    assert here["age"].nunique() > 10
    as_number = run("check", "t.csv", "--target", "age", *ROLES).stdout
    assert "age, a number" in as_number
    assert "--outcome classes takes it for classes" in " ".join(as_number.split())
    as_classes = run("check", "t.csv", "--target", "age", *ROLES, "--outcome", "classes").stdout
    assert f"age, {here['age'].nunique()} classes" in as_classes
    assert "more classes:" in as_classes
    error = run("check", "t.csv", "--target", "stay", *ROLES, "--outcome", "classes", status=2)
    assert "numbers with decimals, which are no classes" in error.stderr
    assert "--outcome number" in error.stderr
    error = run("check", "t.csv", "--target", "grade", *ROLES, "--outcome", "number", status=2)
    assert "the target holds text" in error.stderr


@pytest.mark.parametrize("target", ["stay", "grade"])
def test_json(here, target):
    del here
    found = json.loads(run("check", "t.csv", "--target", target, *ROLES, "--json").stdout)
    key = "mean" if target == "stay" else "shares"
    assert all(key in place for place in found["environments"])
    assert found["classes"] == (None if target == "stay" else ["mild", "none", "severe"])


def test_positive_values_make_two_classes_of_several(here):
    del here
    arguments = ("check", "t.csv", "--target", "grade", *ROLES, "--positive", "severe")
    assert "grade is severe, in" in run(*arguments).stdout


@pytest.mark.parametrize("target", ["stay", pytest.param("grade", marks=pytest.mark.thorough)])
def test_genomes(here, target, tmp_path):
    """Genomes were checked as bits, which hold two classes."""
    names = [f"g{row}" for row in range(len(here))]
    genes = np.random.default_rng(0).integers(0, 2, (6, len(here)))
    rtab = pd.DataFrame(genes, index=[f"gene{row}" for row in range(6)], columns=names)
    rtab.to_csv(tmp_path / "g.Rtab", sep="\t", index_label="Gene")
    pack_table(tmp_path / "g.Rtab", tmp_path / "g.bits")
    labels = here[["stay", "grade", "site"]].set_axis(names).rename_axis("genome").reset_index()
    labels.to_csv(tmp_path / "labels.csv", index=False)
    files = (tmp_path / "g.bits", "--labels", tmp_path / "labels.csv")
    printed = run("check", *files, "--target", target, *ROLES).stdout
    assert "gene" in printed
    assert ("a number: mean" if target == "stay" else "3 classes") in printed


TWO_CLASS_COMMANDS = {
    "rule": ("fit", "t.csv"),
    "tree": ("fit", "t.csv", "--model", "tree"),
    "forest": ("fit", "t.csv", "--model", "forest"),
    "score": ("fit", "t.csv", "--model", "score"),
    "in passes": ("fit", "parts"),
    "compare": ("compare", "t.csv"),
    "evaluate": ("evaluate", "model.json", "t.csv"),
    "recalibrate": ("recalibrate", "model.json", "t.csv", "--out", "site.json"),
}


@pytest.mark.parametrize("target", ["stay", "grade"])
@pytest.mark.parametrize("command", TWO_CLASS_COMMANDS)
def test_commands_of_two_classes_name_the_screen(here, command, target):
    """`fit` of a folder, `evaluate` and `recalibrate` said nothing of what takes the outcome."""
    del here
    roles = () if command == "recalibrate" else ROLES[:2]
    done = run(*TWO_CLASS_COMMANDS[command], "--target", target, *roles, "--quiet", status=2)
    (line,) = done.stderr.splitlines()
    assert "icscm screen" in line
    assert "several classes and numbers" in line
