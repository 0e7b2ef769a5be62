"""`icscm screen`, run on files: what it prints, and what it writes."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.screening import rounds
from icscm.sources.bits import opening
from icscm.sources.bits.packing import pack_table

pytestmark = pytest.mark.usefixtures("few_rounds")

ROLES = ("--target", "ill", "--environment", "site")
QUICK = ("--cv", "2", "--quiet", "--no-path")


def make_table(n=300, n_sites=4, seed=0):
    """A cause with gaps, a category, and a code that follows the label less from site to site."""
    rng = np.random.default_rng(seed)
    site = np.repeat([f"S{k}" for k in range(n_sites)], n)
    age = rng.normal(60, 10, size=len(site)).round(0)
    ill = rng.random(len(site)) < 1 / (1 + np.exp(-(age - 60) / 6))
    error = np.repeat(np.linspace(0.02, 0.45, n_sites), n)
    code = np.where(rng.random(len(site)) < error, ~ill, ill)
    age[rng.random(len(site)) < 0.05] = np.nan
    columns = {
        "id": np.arange(len(site)) + 10_000,
        "age": age,
        "sex": rng.choice(["female", "male"], len(site)),
        "billing": np.where(code, "R57", "A41"),
        "patient": np.arange(len(site)) // 2,
        "site": site,
        "ill": np.where(ill, "yes", "no"),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screen")
    table = make_table()
    table.to_csv(folder / "t.csv", index=False)
    make_table(n_sites=3).to_csv(folder / "three.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    table[table["site"].isin(["S0", "S3"])].to_csv(folder / "two.csv", index=False)
    return folder


def run(*args, **more):
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["screen", *map(str, args)], **more)


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["screened", "validated"],
)
def whole(folder, request):
    """One run with everything on, if asked for validated, and the files that it wrote."""
    outputs = {"--out": "kept.txt", "--report": "s.html"}
    files = [part for name, file in outputs.items() for part in (name, folder / file)]
    more = ["--group", "patient", "--estimator", "tree", "--cv", "2", "--force"]
    more += ["--validate"] * request.param
    return run(folder / "three.csv", *ROLES, *files, *more), folder, request.param


def test_the_terminal_has_the_verdicts_at_80_columns(whole):
    result, _, is_validated = whole
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "1 of 3 columns is rejected at tolerance 0.5" in result.stdout
    assert any(line.split()[:2] == ["billing", "rejected"] for line in lines)
    assert any(line.split()[:2] == ["age", "kept"] for line in lines)
    assert "Cost at the training environments" in result.stdout
    assert ("Leave-one-environment-out" in result.stdout) == is_validated
    assert "is not detected" in result.stdout
    assert "id (" in result.stdout  # dropped, with the reason


def test_kept_columns_are_one_per_line(whole):
    _, folder, _ = whole
    assert (folder / "kept.txt").read_text("utf-8") == "age\nsex\n"


def test_the_page_names_the_columns(whole):
    _, folder, is_validated = whole
    page = (folder / "s.html").read_text("utf-8")
    assert "billing" in page
    assert page.count("<details") == 3
    assert ('id="validation"' in page) == is_validated


def test_csv_and_parquet_give_the_same(folder):
    found = []
    for name in ("t.csv", "t.parquet"):
        more = "--drop", "patient", "--estimator", "tree"
        result = run(folder / name, *ROLES, *QUICK, *more, "--json")
        assert result.exit_code == 0, result.stderr
        found.append(json.loads(result.stdout))
        assert found[-1]["task"].pop("data") == name
    assert found[0] == found[1]
    assert (found[0]["rejected"], found[0]["kept"]) == (["billing"], ["age", "sex"])


def test_a_learner_of_ones_own_and_text_columns(folder):
    """A random tree takes no text: categories reach it as numbers."""
    name = "sklearn.tree:ExtraTreeClassifier"
    result = run(folder / "t.csv", *ROLES, *QUICK, "--drop", "patient", "--estimator", name)
    assert result.exit_code == 0, result.stderr
    assert "ExtraTreeClassifier" in result.stdout


def test_two_environments_are_screened_but_not_validated(folder):
    result = run(folder / "two.csv", *ROLES, *QUICK, "--drop", "patient")
    assert result.exit_code == 0, result.stderr
    assert "Two environments show one difference" in " ".join(result.stdout.split())
    result = run(folder / "two.csv", *ROLES, *QUICK, "--drop", "patient", "--validate")
    assert result.exit_code == 2
    assert "at least 3 environments" in result.stderr


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--estimator", "svm"), "hgb, linear, logistic, tree, or module:Class"),
        (("--estimator", "nowhere:Class"), "cannot be imported"),
        (("--group", "pateint"), "patient"),
        (("--group", "site"), "name another column"),
        (("--weight", "ill"), "name another column"),
        (("--weight", "sex"), "must hold finite numbers"),
        (("--outcome", "number"), "the target holds text"),
        (("--min-replication", "0.2"), "columns that determine the environment are rejected"),
        (("--tolerance", "-1"), "--tolerance"),
        (("--cv", "1"), "--cv"),
        (("--report", "page.pdf"), ".html"),
    ],
)
def test_errors_are_one_sentence(folder, args, text):
    result = run(folder / "t.csv", *ROLES, *QUICK, *args)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert text in line


def test_files_are_not_overwritten(folder):
    taken = folder / "taken.txt"
    taken.write_text("mine", "utf-8")
    result = run(folder / "t.csv", *ROLES, *QUICK, "--out", taken)
    assert result.exit_code == 2
    assert taken.read_text("utf-8") == "mine"


def test_standard_input_and_standard_output(folder, monkeypatch, capfd):
    """Standard output is for the names then, standard error for the verdicts."""
    command = ["screen", "-", *ROLES, *QUICK, "--drop", "patient,sex", "--out", "-"]
    with (folder / "t.csv").open(encoding="utf-8") as table:
        monkeypatch.setattr(sys, "stdin", table)
        with pytest.raises(SystemExit) as ended:
            main(command)
    assert ended.value.code == 0
    names, verdicts = capfd.readouterr()
    assert names.split() == ["age"]
    assert "is rejected at tolerance 0.5" in verdicts


def test_a_function_of_a_module_in_the_folder_gets_the_table_as_it_is(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = [
        "from sklearn.compose import make_column_transformer",
        "from sklearn.linear_model import LogisticRegression",
        "from sklearn.pipeline import make_pipeline",
        "from sklearn.preprocessing import OneHotEncoder",
        "def make():",
        "    encode = make_column_transformer((OneHotEncoder(), lambda X: [*X.columns]))",
        "    return make_pipeline(encode, LogisticRegression())",
    ]
    (folder / "my_screen_models.py").write_text("\n".join(code), "utf-8")
    more = ("--only", "sex,billing", "--estimator", "my_screen_models:make")
    result = run("t.csv", *ROLES, *QUICK, *more)
    assert result.exit_code == 0, result.stderr
    assert "LogisticRegression" in result.stdout


def make_graded_table(n=300, n_sites=4):
    """A grade of eleven steps that follows age, and a code that follows it less by site."""
    table = make_table(n, n_sites).drop(columns=["ill", "id", "patient"])
    rng = np.random.default_rng(1)
    number = np.arange(len(table)) // n
    grade = (table["age"].fillna(60) + rng.normal(0, 5, len(table)) - 30) / 5
    noise = rng.normal(size=len(table))
    code = np.linspace(2, -1, n_sites)[number] * (grade - grade.mean()) + noise
    weight = rng.integers(1, 4, len(table))
    return table.assign(grade=grade.round(2), code=code.round(2), weight=weight)


def test_numbers_and_several_classes_are_screened(folder):
    """A target of three values needed --positive, and a number could not be screened."""
    table = make_graded_table()
    table.to_csv(folder / "number.csv", index=False)
    roles = ("--target", "grade", "--environment", "site", "--weight", "weight")
    more = ("--drop", "billing", "--estimator", "linear")
    done = run(folder / "number.csv", *roles, *QUICK, *more)
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    assert "grade, a number: mean" in shown
    assert "--outcome classes takes it for classes" in shown
    assert "ridge regression" in shown
    assert "RMSE" in shown
    assert any(line.split()[:2] == ["code", "rejected"] for line in done.stdout.splitlines())
    assert "Weights" in shown

    table["grade"] = pd.cut(table["grade"], 3, labels=["low", "middle", "high"])
    table.to_csv(folder / "classes.csv", index=False)
    # with two folds it is a matter of the draw whether the code is rejected
    more = ("--cv", "5", "--quiet", "--no-path", "--drop", "billing", "--json")
    done = run(folder / "classes.csv", *roles, *more)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["task"]["outcome"] == "several classes"
    assert found["score"] == "mean AUC"
    assert "code" in found["rejected"]


def test_ctrl_c_shows_the_rounds_that_are_done(folder, monkeypatch, tmp_path):
    """It threw them away; the exit status is that of a program that Ctrl-C ended."""
    plain_run_round = rounds.run_round

    def run_round(screen, *args, **options):
        if screen.rounds:
            raise KeyboardInterrupt
        return plain_run_round(screen, *args, **options)

    monkeypatch.setattr(rounds, "run_round", run_round)
    out, page = tmp_path / "kept.txt", tmp_path / "s.html"
    files = "--out", out, "--report", page, "--validate"
    done = run(folder / "t.csv", *ROLES, *QUICK, "--drop", "patient", *files)
    assert done.exit_code == 130
    assert "interrupted after 1 round" in " ".join(done.stdout.split())
    assert "interrupted after 1 round" in page.read_text("utf-8")
    assert out.read_text("utf-8").split() == ["age", "sex"]
    assert "Leave-one-environment-out" not in done.stdout


@pytest.fixture(scope="module")
def genomes(tmp_path_factory):
    """A gene that causes resistance, twice; one that follows it less from country to country."""
    folder, rng = tmp_path_factory.mktemp("genomes"), np.random.default_rng(0)
    country = np.repeat(np.arange(4), 200)
    cause = rng.random(800) < 0.4
    resistant = rng.random(800) < np.where(cause, 0.85, 0.15)
    lineage = resistant ^ (rng.random(800) < np.linspace(0.02, 0.45, 4)[country])
    genes = {"katG": cause, "inhA": cause, "lineage": lineage}
    genes |= {f"n{i}": rng.random(800) < 0.5 for i in range(3)}
    table = pd.DataFrame(genes, index=[f"g{i}" for i in range(800)]).astype(int).T
    table.to_csv(folder / "genes.Rtab", sep="\t", index_label="Gene")
    labels = {"genome": table.columns, "country": country, "resistant": resistant.astype(int)}
    # in another order than the genomes, of which some have no label
    pd.DataFrame(labels)[:0:-1].to_csv(folder / "labels.csv", index=False)
    pack_table(folder / "genes.Rtab", folder / "genes.bits")
    return folder


@pytest.mark.parametrize("name", ["genes.bits", "genes.Rtab"])
def test_genomes_are_screened(genomes, name, tmp_path):
    """Genes that are present in the same genomes are one column, by the name of the first."""
    roles = (
        "--labels",
        genomes / "labels.csv",
        "--target",
        "resistant",
        "--environment",
        "country",
    )
    done = run(genomes / name, *roles, *QUICK, "--drop", "n2", "--out", tmp_path / "kept.txt")
    assert done.exit_code == 0, done.output
    assert "1 of 4 columns is rejected" in done.output
    assert "799 rows" in done.output
    assert (tmp_path / "kept.txt").read_text().split() == ["katG", "n0", "n1"]


def test_genomes_that_cannot_be_screened(genomes, folder, monkeypatch):
    roles = "--target", "resistant", "--environment", "country"
    done = run(genomes / "genes.bits", *roles)
    assert "needs --labels, the table of target and environment" in done.output
    done = run(folder / "t.csv", *ROLES, "--labels", genomes / "labels.csv")
    assert "--labels is for genomes" in done.output
    roles = *roles, "--labels", genomes / "labels.csv"
    done = run(genomes / "genes.bits", *roles, "--sample-column", "nothing")
    assert "labels.csv has no column 'nothing'" in done.output
    monkeypatch.setattr(opening, "_MAX_READ_CELLS", 1_000)
    done = run(genomes / "genes.bits", *roles)
    assert "has 5 patterns of 799 genomes, too many to read into memory" in done.output
