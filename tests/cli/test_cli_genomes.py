"""Genomes on the command line: checked, learned from with gaps in the labels, their sequences."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from icscm.cli import main


def run(*words, status=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == status, done.output
    return done


@pytest.fixture(scope="module")
def genomes(tmp_path_factory):
    """Unitigs of 300 genomes: the first two the same and the cause, the third the country."""
    folder = tmp_path_factory.mktemp("genomes")
    rng = np.random.default_rng(0)
    country = np.arange(300) % 2
    cause = rng.random(300) < np.where(country, 0.3, 0.6)
    rows = {"ACGTACGT": cause, "GGGTTTAC": cause, "TTTTCCCC": country}
    rows |= {f"{'ACGT'[i % 4]}{'CATG'[i // 4]}CCA": rng.random(300) < 0.5 for i in range(16)}
    lines = [" ".join(["unitig", *(f"g{i}" for i in range(300))])]
    lines += [" ".join([name, *map(str, np.asarray(x).astype(int))]) for name, x in rows.items()]
    (folder / "unitigs.rtab").write_text("\n".join(lines))
    run("pack", folder / "unitigs.rtab", "--out", folder / "unitigs.bits", "-q")
    kind = np.where(cause ^ (rng.random(300) < 0.05), "R", "S").astype(object)
    kind[:5], place = "", np.where(country, "fr", "it").astype(object)
    place[5:8] = ""
    table = "".join(f"g{i}\t{kind[i]}\t{place[i]}\t{2019 + i % 3 // 2}\n" for i in range(300))
    (folder / "labels.tsv").write_text(f"genome\tkind\tcountry\tyear\n{table}")
    return folder


def ask(folder, *, drop=True):
    words = "--labels", folder / "labels.tsv", "--target", "kind", "--environment", "country"
    return (*words, *(("--drop-missing",) if drop else ()), "-q")


def test_genomes_without_label_or_environment_are_left_out(genomes):
    """--drop-missing did nothing for .bits: the fit ended with "y is missing in 5 rows"."""
    done = run("fit", genomes / "unitigs.bits", *ask(genomes, drop=False), status=2)
    assert "'kind' is missing in 5 of 300 rows" in done.stderr
    assert "--drop-missing" in done.stderr
    done = run("fit", genomes / "unitigs.bits", *ask(genomes))
    shown = " ".join(done.stdout.split())
    assert "292 rows, 19 columns to learn from" in shown
    assert "Dropped 8 rows without target or environment" in shown


def test_labels_take_all_options_of_columns(genomes, tmp_path):
    """--positive was passed over with .bits without a word."""
    words = ("--labels", genomes / "labels.tsv", "--target", "kind", "--drop-missing", "-q")
    more = ("--environment", "country,year", "--exclude-environment", "it / 2020")
    out = ("--out", tmp_path / "m.json")
    done = run("fit", genomes / "unitigs.bits", *words, *more, "--positive", "R", *out)
    assert "kind is R" in done.stdout
    saved = json.loads((tmp_path / "m.json").read_text())
    assert saved["environments"] == ["fr / 2019", "fr / 2020", "it / 2019"]


@pytest.mark.parametrize("name", ["unitigs.bits", "unitigs.rtab"])
def test_check_of_genomes(genomes, name):
    """check knew no --labels, so that genomes could not be looked at before fitting."""
    done = run("check", genomes / name, *ask(genomes))
    assert "19 columns to learn from" in done.stdout
    assert "TTTTCCCC" in done.stdout
    assert "Determines the environment: TTTTCCCC" in done.stdout.replace("\n ", "")
    found = json.loads(run("check", genomes / name, *ask(genomes), "--json").stdout)
    assert found["associations"][0] == {
        "column": "TTTTCCCC",
        "values": 1.0,
        "missingness": None,
        "decided": 0.0,
        "determines": True,
        "is_nearly_determining": False,
    }
    assert [each["n_rows"] for each in found["environments"]] == [146, 146]


def test_check_of_genomes_needs_labels_and_tables_none(genomes):
    roles = ("--target", "kind", "--environment", "country")
    assert "needs --labels" in run("check", genomes / "unitigs.bits", *roles, status=2).stderr
    labels = genomes / "labels.tsv"
    done = run("check", labels, "--labels", labels, *roles, status=2)
    assert "--labels is for genomes" in done.stderr


def test_sequences_of_rules_and_of_their_equivalents(genomes, tmp_path):
    model = tmp_path / "model.json"
    words = ("--max-rules", "1", "--out", model)
    run("fit", genomes / "unitigs.bits", *ask(genomes), "--positive", "R", *words)
    assert run("show", model, "--fasta").stdout == (
        ">rule1 present\nACGTACGT\n>rule1.1 present, covers the same genomes as rule1\nGGGTTTAC\n"
    )
    assert run("show", model).exit_code == 0
    told = json.loads(model.read_text())
    told["settings"]["table"]["equivalents"] = [["blaTEM present"]]
    model.write_text(json.dumps(told))
    done = run("show", model, "--fasta", status=2)
    assert "'blaTEM' names no sequence of nucleotides" in done.stderr
    assert "omit --json" in run("show", model, "--fasta", "--json", status=2).stderr


def test_genes_in_the_same_genomes_are_named(genomes):
    """The report named the genes that no data can distinguish, the terminal only the first."""
    done = run("fit", genomes / "unitigs.bits", *ask(genomes))
    shown = " ".join(done.stdout.split())
    assert "ACGTACGT absent, cannot be distinguished from GGGTTTAC absent" in shown
    assert "it covers those where it is false" in shown


def test_fit_of_a_table_of_genes_packs_it(genomes, tmp_path):
    """`icscm fit genes.rtab` said to pack it first; check, screen and predict packed it."""
    models = []
    for name in ("unitigs.rtab", "unitigs.bits"):
        out = tmp_path / f"{name}.json"
        run("fit", genomes / name, *ask(genomes), "--out", out)
        models.append(json.loads(out.read_text()))
    assert models[0] == models[1]
    # without --labels the error was that the file has no column of the target's name
    done = run("fit", genomes / "unitigs.rtab", *ask(genomes)[2:], status=2)
    assert "needs --labels, the table of target and environment" in done.stderr


def test_names_that_do_not_match_are_shown_with_those_of_the_file(genomes, tmp_path):
    """The error had the names of the labels only, and the parameter of Python."""
    labels = (genomes / "labels.tsv").read_text().replace("\ng", "\nG-")
    (tmp_path / "labels.tsv").write_text(labels)
    done = run(
        "check",
        genomes / "unitigs.bits",
        "--labels",
        tmp_path / "labels.tsv",
        *ask(genomes)[2:],
        status=2,
    )
    assert "'G-99'" in done.stderr or "'G-8'" in done.stderr
    assert "--sample-column" in done.stderr
    assert "has genomes such as 'g0'" in done.stderr


def test_rows_that_belong_together_are_stated(genomes):
    """Nothing in the output showed that --group had been applied."""
    done = run("fit", genomes / "unitigs.bits", *ask(genomes), "--group", "year", "--model", "tree")
    assert "rows with the same year belong together" in " ".join(done.stdout.split())
