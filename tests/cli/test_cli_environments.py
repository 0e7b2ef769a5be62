"""Environments as the command line makes them, by every route the same."""

import json
import re
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.datasets import make_conjunction


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A table of three regions and two years, some labels missing."""
    folder = tmp_path_factory.mktemp("visits")
    data = make_conjunction(900, 2, random_state=3)
    n, numbers = len(data.y), np.arange(len(data.y))
    frame = data.X.assign(
        y=np.where(data.y, "yes", np.where(numbers % 2, "no", "never")),
        region=np.where(numbers % 3 == 0, "west", np.where(data.environments, "north", "south")),
        year=2019 + numbers // 7 % 2,
    )
    frame.loc[numbers % 50 == 0, "y"] = None
    assert n == 1800
    (folder / "parts").mkdir()
    for k in range(2):
        frame[k::2].to_csv(folder / "parts" / f"{k}.csv", index=False)
    frame.to_csv(folder / "all.csv", index=False)
    return folder


ASKED = (
    *("--target", "y", "--positive", "yes", "--drop-missing"),
    *("--environment", "region,year", "--exclude-environment", "west / 2020"),
    *("--merge-environments", "south / 2019+south / 2020=south"),
)

MADE = ["north / 2019", "north / 2020", "south", "west / 2019"]


def test_every_route_makes_the_same_environments(visits, tmp_path, monkeypatch):
    """Dask refused --positive, --drop-missing, --only and --drop, and no route could merge."""
    routes = {
        "memory": (visits / "all.csv",),
        "passes": (visits / "parts",),
        "dask": (visits / "parts",),
    }
    monkeypatch.setattr("icscm.sources.dask.client.open_client", lambda *_: nullcontext())
    models = {}
    for name, words in routes.items():
        out = tmp_path / f"{name}.json"
        monkeypatch.setattr("icscm.cli.routes._find_route", lambda *_, name=name: name)
        done = run("fit", *words, *ASKED, "--drop", "C1", "--stop", "coverage", "--out", out, "-q")
        assert done.exit_code == 0, (name, done.stderr)
        shown = " ".join(done.stdout.split())
        assert "Environments 4, by region / year" in shown, name
        assert re.search(r"Excluded 29\d rows of west / 2020", shown)
        assert "Merged south / 2019, south / 2020 as south" in shown
        models[name] = json.loads(out.read_text())
    told = models["memory"]["settings"]["table"]
    assert told["environment"] == "region / year"
    assert told["environment_columns"] == ["region", "year"]
    assert told["exclude_environment"] == ["west / 2020"]
    assert told["merge_environments"] == ["south / 2019+south / 2020=south"]
    same = [(each["model"], each["environments"], each["classes"]) for each in models.values()]
    assert same[0] == same[1] == same[2]
    assert models["memory"]["environments"] == [
        "north / 2019",
        "north / 2020",
        "south",
        "west / 2019",
    ]


def test_check_looks_at_the_same_environments(visits):
    done = run("check", visits / "all.csv", *ASKED, "--json", "-q")
    assert done.exit_code == 0, done.stderr
    labels = [each["label"] for each in json.loads(done.stdout)["environments"]]
    assert labels == MADE


@pytest.mark.parametrize("words", [("all.csv",), ("parts",)])
def test_an_unknown_environment_is_named_with_near_ones(visits, words):
    done = run("fit", visits / words[0], *ASKED[:-2], "--exclude-environment", "sout / 2019", "-q")
    assert done.exit_code == 2
    assert "has no value 'sout / 2019'; did you mean 'south / 2019'" in done.stderr


def test_evaluate_joins_the_columns_of_fit(visits, tmp_path):
    model = tmp_path / "model.json"
    words = (*ASKED[:-4], "--drop", "C1", "--out", model, "-q")
    assert run("fit", visits / "all.csv", *words).exit_code == 0
    for more in ((), ("--environment", "region,year")):
        done = run("evaluate", model, visits / "all.csv", "--drop-missing", *more, "--json", "-q")
        assert done.exit_code == 0, done.stderr
        assert "west / 2020" in done.stdout


def test_a_folder_without_rows_is_told(tmp_path):
    """`fit` on a folder of Feather files without rows ended with "something unforeseen"."""
    import pyarrow
    from pyarrow import feather

    (tmp_path / "parts").mkdir()
    table = pyarrow.table({"x": [], "y": pyarrow.array([], "string"), "place": []})
    feather.write_feather(table, tmp_path / "parts" / "0.arrow")
    words = "--target", "y", "--environment", "place", "--positive", "yes"
    done = run("fit", tmp_path / "parts", *words)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "Error: the data has no rows"
