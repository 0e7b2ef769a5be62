"""`icscm fit` where the data are no table in memory: the same model from every source."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.datasets import make_conjunction


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def read_rules(path):
    return json.loads(path.read_text())["model"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = make_conjunction(1000, 2, random_state=3)
    frame = data.X.assign(y=np.where(data.y, "yes", "no"), place=data.environments)
    (folder / "parts").mkdir()
    for k in range(3):
        part = pa.Table.from_pandas(frame[k::3], preserve_index=False)
        pq.write_table(part, folder / "parts" / f"{k}.parquet")
    frame.to_csv(folder / "all.csv", index=False)
    return folder


ASKED = ("--target", "y", "--environment", "place")


def test_every_way_gives_the_same_model(folder, tmp_path):
    ways = {
        "memory": (folder / "all.csv",),
        "passes": (folder / "parts",),
        "large file": (folder / "all.csv", "--max-memory", "3GB"),
        "dask": (folder / "parts", "--workers", "1"),
    }
    models = {}
    for name, words in ways.items():
        out = tmp_path / f"{name}.json"
        done = run("fit", *words, *ASKED, "--out", out, "--report", tmp_path / f"{name}.html", "-q")
        assert done.exit_code == 0, (name, done.stderr)
        assert "2,000 rows, 5 columns to learn from" in done.stdout
        models[name] = read_rules(out)
    assert models["passes"] == models["memory"] == models["large file"] == models["dask"]


def test_a_large_file_is_read_in_passes(folder, monkeypatch):
    from icscm.cli import scale

    monkeypatch.setattr(scale, "_ROOM", 10**9)
    done = run("fit", folder / "all.csv", *ASKED, "--drop", "B1,B2", "--positive", "yes", "-q")
    assert done.exit_code == 0, done.stderr
    assert "2,000 rows, 3 columns to learn from" in done.stdout


@pytest.fixture(scope="module")
def genomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genomes")
    rng = np.random.default_rng(0)
    has = rng.random((40, 300)) < 0.5
    resistant = (has[3] & has[7]) ^ (rng.random(300) < 0.02)
    names = [f"g{i}" for i in range(300)]
    lines = ["\t".join(["Gene", *names])]
    lines += ["\t".join([f"gene{j}", *map(str, row.astype(int))]) for j, row in enumerate(has)]
    (folder / "genes.Rtab").write_text("\n".join(lines) + "\n")
    rows = [f"g{i}\t{'RS'[not r]}\t{'ab'[i % 2]}" for i, r in enumerate(resistant)]
    (folder / "labels.tsv").write_text("\n".join(["genome\tkind\tcountry", *rows]) + "\n")
    done = run("pack", folder / "genes.Rtab", "--out", folder / "genes.bits", "-q")
    assert done.exit_code == 0, done.stderr
    return folder


def test_genomes_from_table_to_prediction(genomes, tmp_path):
    labels = ("--labels", genomes / "labels.tsv", "--target", "kind", "--environment", "country")
    model = tmp_path / "model.json"
    words = ("--type", "disjunction", "--stop", "coverage", "--no-pruning", "--out", model)
    done = run(
        "fit", genomes / "genes.bits", *labels, *words, "--report", tmp_path / "r.html", "-q"
    )
    assert done.exit_code == 0, done.stderr
    assert "gene3 absent or gene7 absent" in done.stdout or "gene7 absent or gene3" in done.stdout
    tables = []
    for name in ("genes.Rtab", "genes.bits"):
        done = run("predict", model, genomes / name, "-q")
        assert done.exit_code == 0, done.stderr
        tables.append(done.stdout)
    assert tables[0] == tables[1]
    assert tables[0].startswith("genome,")
    exported = run("export", model, "--to", "python").stdout
    made = {}
    exec(compile(exported, "exported", "exec"), made)
    row = {rule["name"]: 1 for rule in read_rules(model)["rules"]}
    assert made["predict"](row)[0] == "R"


ERRORS = [
    (("fit", "{bits}", *ASKED), "needs --labels, the table of target and environment"),
    (("fit", "{csv}", *ASKED, "--labels", "{csv}"), "--labels is for data made by icscm pack"),
    (("fit", "{parts}", *ASKED, "--cv", "1,2"), "--cv needs the table in memory"),
    (("fit", "{parts}", *ASKED, "--workers", "1", "--drop", "B1"), "--only, --drop and --keep"),
    (("fit", "{parts}", "--target", "z", "--environment", "place"), "'z'"),
    (("fit", "{parts}", *ASKED, "--max-memory", "lots"), "max_memory"),
    (("fit", "{parts}", *ASKED, "--dask", "tcp://127.0.0.1:9"), "no Dask scheduler answers"),
    (("pack", "{csv}", "--out", "x.zip"), "must end in .bits"),
    (("pack", "{csv}", "--out", "{bits}", "--force"), "does not begin with a line of genome names"),
]


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=lambda each: str(each)[:40])
def test_errors_are_one_line(words, message, folder, genomes, tmp_path, monkeypatch):
    monkeypatch.setattr("icscm.sources.dask.opening.PATIENCE", 2, raising=False)
    places = {
        "bits": genomes / "genes.bits",
        "csv": folder / "all.csv",
        "parts": folder / "parts",
    }
    before = places["bits"].read_bytes()
    done = run(*(word.format(**places) for word in words))
    assert done.exit_code == 2, done.stdout
    last = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(last) == 1
    assert message in last[0]
    assert places["bits"].read_bytes() == before
