"""`icscm fit` where the data are no table in memory: the same model from every source."""

import json
from contextlib import nullcontext
from functools import partial
from random import Random

import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.datasets import make_conjunction
from icscm.model.parsing import WrongFileError
from icscm.model.saved import load
from support.damage import flip_word


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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask's, in a worker
@pytest.mark.parametrize(
    "has_worker_processes", [False, pytest.param(True, marks=pytest.mark.thorough)]
)
def test_every_way_gives_the_same_model(folder, tmp_path, monkeypatch, has_worker_processes):
    """The Dask cluster is a real one; by default its worker is a thread of this process."""
    cluster = partial(distributed.LocalCluster, processes=has_worker_processes)
    monkeypatch.setattr("distributed.LocalCluster", cluster)
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
    from icscm.cli import routes

    monkeypatch.setattr(routes, "_ROOM", 10**9)
    done = run("fit", folder / "all.csv", *ASKED, "--drop", "B1,B2", "--positive", "yes", "-q")
    assert done.exit_code == 0, done.stderr
    assert "2,000 rows, 3 columns to learn from" in done.stdout


def write_codes(folder, n_files=1):
    """A folder of `;` files with decimal commas, whose codes start with 0."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for k in range(n_files):
        lines = ["code;x;answer;site"]
        for i in range(300):
            ill = rng.random() < 0.5
            code = "007" if ill ^ (rng.random() < 0.05) else rng.choice(["1", "028", "?"])
            answer = rng.choice(["yes", "often"]) if ill else rng.choice(["no", "rarely"])
            dose = f"{rng.normal() + ill:.2f}".replace(".", ",")
            lines.append(f"{code};{dose};{answer if i else 'NA'};{'ab'[i % 2]}")
        (folder / f"{k}.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_codes_are_codes_on_every_route(tmp_path, monkeypatch):
    """`icscm fit folder/t.csv` learned `code == "007"` and `icscm fit folder` learned `code > 28`;
    a large file gave the second, too, and a folder of `;` files could not be read at all.
    """
    from icscm.cli import routes

    parts = write_codes(tmp_path / "parts")
    asked = ("--target", "answer", "--environment", "site", "--decimal", ",", "--na", "?")
    asked += ("--positive", "yes", "--positive", "often", "--drop-missing", "--max-rules", 1)
    asked += ("--stability", "0", "--no-validation")  # where rows are in memory only
    models, printed = [], []
    for route, room in (("memory", 4), ("folder", 4), ("large", 10**9)):
        monkeypatch.setattr(routes, "_ROOM", room)
        out = tmp_path / f"{route}.json"
        data = parts if route == "folder" else parts / "0.csv"
        done = run("fit", data, *asked, "--out", out, "-q")
        assert done.exit_code == 0, done.stderr
        models.append(json.loads(out.read_text()))
        printed.append(done.stdout.replace("0.csv", "parts").replace(route, ""))
    assert 'code == "007"' in printed[0]
    assert "1 row without target" in printed[0]
    assert printed[0] == printed[1] == printed[2]
    assert models[0] == models[1] == models[2]
    assert models[0]["settings"]["table"]["format"] == "text"
    predicted = [
        run("predict", tmp_path / "memory.json", each, "-q").stdout for each in (parts, data)
    ]
    assert predicted[0] == predicted[1]


def test_text_is_told_to_workers_how_it_is_read(tmp_path, monkeypatch):
    """On Dask codes became numbers, and `;` files one column."""
    # threads of this process are workers, too
    monkeypatch.setattr("icscm.sources.dask.client.open_client", lambda *_: nullcontext())
    parts = write_codes(tmp_path / "parts", 2)
    for path in parts.iterdir():
        text = path.read_text().replace("often", "yes").replace("rarely", "no").replace("NA", "no")
        path.write_text(text)
    asked = ("--target", "answer", "--environment", "site", "--decimal", ",", "--na", "?")
    asked += ("--model-type", "conjunction", "--stability", "0")
    found = []
    for words in ((), ("--workers", "1")):
        out = tmp_path / f"{len(words)}.json"
        done = run("fit", parts, *asked, *words, "--out", out, "-q")
        assert done.exit_code == 0, done.stderr
        found.append(json.loads(out.read_text()))
    assert found[0] == found[1]
    assert "007" in json.dumps(found[0])


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
    words = (
        "--model-type",
        "disjunction",
        "--stop",
        "coverage",
        "--pruning",
        "false",
        "--out",
        model,
    )
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
    row = {rule.name: 1 for rule in load(model).model.rules}
    assert made["predict"](row)[0] == "R"


def test_genomes_without_a_rule_give_a_model(genomes, tmp_path):
    """It "cannot be saved: features is empty", and the report was written all the same."""
    lines = (genomes / "labels.tsv").read_text().splitlines()
    kinds = np.random.default_rng(1).permutation(["R"] * 100 + ["S"] * 200)
    rows = [
        f"{line.split()[0]}\t{kind}\t{kind}1" for line, kind in zip(lines[1:], kinds, strict=True)
    ]
    (tmp_path / "labels.tsv").write_text("\n".join([lines[0], *rows]) + "\n")
    model = tmp_path / "model.json"
    words = ("--labels", tmp_path / "labels.tsv", "--target", "kind", "--environment", "country")
    done = run("fit", genomes / "genes.bits", *words, "--out", model, "-q")
    assert done.exit_code == 0, done.stderr
    assert len(load(model).model.rules) == 0
    predicted = [run("predict", model, genomes / f"genes.{end}") for end in ("bits", "Rtab")]
    assert predicted[0].stdout == predicted[1].stdout
    assert predicted[0].stdout.count(",S,") == 300
    for command in (("show",), ("export", "--to", "sql"), ("export", "--to", "python")):
        assert run(*command[:1], model, *command[1:]).exit_code == 0
    assert load(model).predict(np.zeros((3, 40))).tolist() == ["S"] * 3


def test_where_the_model_cannot_be_saved_no_report_is_written(genomes, tmp_path, monkeypatch):
    def refuse(*_):
        raise WrongFileError("it is too long")

    monkeypatch.setattr("icscm.model.saved.parse_document", refuse)
    labels = ("--labels", genomes / "labels.tsv", "--target", "kind", "--environment", "country")
    outputs = ("--out", tmp_path / "model.json", "--report", tmp_path / "r.html")
    done = run("fit", genomes / "genes.bits", *labels, *outputs, "-q")
    assert done.exit_code == 2
    assert "this model cannot be saved: it is too long" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_is_not_predicted_from(genomes, tmp_path):
    """Of 171 flips of bits that mattered, 171 changed predictions without a word."""
    model, labels = tmp_path / "model.json", genomes / "labels.tsv"
    words = ("--labels", labels, "--target", "kind", "--model", "scm", "--out", model)
    assert run("fit", genomes / "genes.bits", *words, "-q").exit_code == 0
    whole = (genomes / "genes.bits").read_bytes()
    (tmp_path / "damaged.bits").write_bytes(flip_word(whole, Random(0)))
    out = tmp_path / "predictions.csv"
    done = run("predict", model, tmp_path / "damaged.bits", "--out", out)
    assert done.exit_code == 2
    assert "its words have changed; pack the table again" in done.stderr
    assert not out.exists()


ERRORS = [
    (("fit", "{bits}", *ASKED), "needs --labels, the table of target and environment"),
    (
        ("fit", "{csv}", *ASKED, "--labels", "{csv}"),
        "--labels is for genomes (.bits, .rtab, .rtab.gz); pack",
    ),
    (
        ("fit", "{parts}", *ASKED, "--cv", "1,2"),
        "which is learned from in passes: prepare the files, or raise --max-memory",
    ),
    (
        ("fit", "{bits}", *ASKED, "--labels", "{csv}", "--drop", "B1"),
        "is learned from as bits: a store is used with all its genes; take genes out of the table",
    ),
    (
        ("fit", "{bits}", *ASKED, "--labels", "{csv}", "--workers", "2"),
        "--workers does not go with",
    ),
    # was passed over in silence
    (
        ("fit", "{bits}", "--labels", "{csv}", *ASKED, "--member", "a.csv"),
        "--member does not go with",
    ),
    (("fit", "{parts}", "--target", "z", "--environment", "place"), "'z'"),
    (("fit", "{parts}", *ASKED, "--max-memory", "lots"), "--max-memory must be"),
    (("fit", "{parts}", *ASKED, "--dask", "tcp://127.0.0.1:9"), "no Dask scheduler answers"),
    (("pack", "{csv}", "--out", "x.zip"), "must end in .bits"),
    (("pack", "{csv}", "--out", "{bits}", "--force"), "a presence/absence table holds 0"),
    (
        ("pack", "{csv}", "--out", "{bits}", "--force", "--delimiter", "tab"),
        "does not name genomes, separated by tabs",
    ),
]


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=lambda each: str(each)[:40])
def test_errors_are_one_line(words, message, folder, genomes, tmp_path, monkeypatch):
    monkeypatch.setattr("icscm.sources.dask.client.PATIENCE", 0.5)  # nobody will answer
    places = {"bits": genomes / "genes.bits", "csv": folder / "all.csv", "parts": folder / "parts"}
    before = places["bits"].read_bytes()
    done = run(*(word.format(**places) for word in words))
    assert done.exit_code == 2, done.stdout
    last = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(last) == 1
    assert message in last[0]
    assert places["bits"].read_bytes() == before


def test_columns_are_named_alike_for_a_folder(tmp_path):
    """`fit FOLDER --only 'a,b'` looked for a and for b."""
    rng = np.random.default_rng(0)
    y, site = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    x = np.where(rng.random(400) < 0.1, 1 - y, y)
    frame = pd.DataFrame(
        {"a,b": x, "id": np.arange(400), "z": rng.integers(0, 9, 400), "y": y, "site": site}
    )
    (tmp_path / "parts").mkdir()
    frame.to_csv(tmp_path / "parts" / "1.csv", index=False)
    roles = ("--target", "y", "--environment", "site", "-q", "--model", "tree")
    done = run("fit", tmp_path / "parts", *roles, "--categories", "id,a,b")
    assert done.exit_code == 0, done.stderr
    assert "3 columns to learn from" in done.stdout
    done = run("fit", tmp_path / "parts", *roles, "--only", "a,b")
    assert done.exit_code == 0, done.stderr
    assert "1 column to learn from" in done.stdout
    assert "a,b > 0" in done.stdout


def test_a_compressed_file_is_read_in_passes_where_its_table_would_not_fit(tmp_path):
    """A .csv.gz of 21 MB took 570 MB where 300 were allowed: its bytes were taken for its size."""
    from icscm.cli.routes import Route, choose_route

    given = dict.fromkeys(
        ("dask", "workers", "labels", "cv", "stability", "member", "only", "drop")
    )
    given |= {"categories": None, "group": None, "model": "icscm"}
    for name, size, limit, route in (
        ("t.csv.gz", 20e6, "300MB", Route.PASSES),
        ("t.csv.gz", 20e6, "1GB", Route.MEMORY),
        ("t.csv", 20e6, "400MB", Route.PASSES),
        ("t.csv", 20e6, "500MB", Route.MEMORY),
        ("t.csv", 1e6, "100MB", Route.MEMORY),
    ):
        with (tmp_path / name).open("wb") as file:
            file.truncate(int(size))
        assert choose_route(tmp_path / name, given | {"max_memory": limit}) == route
