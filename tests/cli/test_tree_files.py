"""`icscm show`, `predict`, `evaluate` and `export` with files of trees and forests."""

import csv
import io

import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.validation.evaluation import evaluate
from support.exported_models import run_python
from support.saved_models import make_grown, make_mixed_table


@pytest.fixture(params=[None, 3], ids=["tree", "forest"])
def grown(request, tmp_path):
    """A model file, the model and rows for it."""
    saved = make_grown(request.param)
    saved = type(saved)(**{**vars(saved), "classes": ("healthy", "ill")})
    saved.save(tmp_path / "m.json")
    X, y, places = make_mixed_table(60)
    X.assign(y=y, place=places).to_parquet(tmp_path / "data.parquet")
    return tmp_path, saved, X, y


def run(*arguments, status=0):
    done = CliRunner().invoke(main, [str(each) for each in arguments], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done


def test_show(grown):
    folder, saved, *_ = grown
    shown = run("show", folder / "m.json").stdout
    every = run("show", folder / "m.json", "--all").stdout
    assert max(map(len, every.splitlines())) <= 80
    first = str(saved.model).partition("\n")[0]
    assert first in shown
    if saved.model.kind == "tree":
        assert "tree of 6 splits" in shown
        assert every.count("Leaf ") == 7
    else:
        assert "forest of 3 trees" in shown
        assert every.count("\nTree ") == 3
    told = run("show", folder / "m.json", "--fasta", status=2).output
    assert f"this model is a {saved.model.kind}" in told


def test_predict(grown):
    folder, saved, X, _ = grown
    text = run("predict", folder / "m.json", folder / "data.parquet", "--quiet").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    prediction, probability, decided_by = saved.decide(X)
    assert [row["prediction"] for row in rows] == prediction.tolist()
    assert [float(row["probability"]) for row in rows] == pytest.approx(probability.tolist())
    assert [row["decided_by"] for row in rows] == decided_by.tolist()
    source = run("export", folder / "m.json", "--to", "python").stdout
    columns = {
        name: (None, X[name].astype(object).where(X[name].notna(), None).tolist()) for name in X
    }
    found = run_python(source, columns, missing=None)
    assert found == list(zip(*(each.tolist() for each in saved.decide(X)), strict=True))


def test_evaluate(grown):
    folder, saved, X, y = grown
    found = evaluate(saved, X, y)
    assert found.model == ("tree of 6 splits" if len(found.leaves) == 7 else "forest of 3 trees")
    assert len(found.leaves) == (7 if saved.model.kind == "tree" else 0)
    run("evaluate", folder / "m.json", folder / "data.parquet", "--target", "y", "--quiet")
