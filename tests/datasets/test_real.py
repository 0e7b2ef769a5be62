"""Real data: the numbers that the files must give, clear errors, downloads."""

import functools
import gc
import hashlib
import http.server
import os
import re
import socket
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icscm import datasets
from icscm.datasets import (
    _files,
    fetch,
    list_datasets,
    load_diabetes_by_source,
    load_heart_by_hospital,
    load_income_by_state,
    load_sachs,
)
from icscm.exceptions import IcscmError
from support.raw_files import (
    expect_one_clear_sentence,
    make_persons,
    to_csv,
    write_state,
    write_zip,
)

BESIDE_CHECKOUT = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("ICSCM_DATA") or BESIDE_CHECKOUT)
LOADERS = {info.name: info.loader for info in list_datasets()}
PRESENT = {info.name for info in list_datasets(DATA) if info.present}


def needs(name):
    reason = f"the raw files of {name} are not in {DATA}"
    return pytest.mark.skipif(name not in PRESENT, reason=reason)


@functools.cache
def load(name):
    """Read a dataset that the tests share and do not change."""
    return LOADERS[name](DATA)


def need_file(name):
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not in {DATA}")
    return DATA / name


@needs("diabetes_readmission")
def test_diabetes():
    data = load("diabetes_readmission")
    assert data.X.isna().any().any()
    assert not {"encounter_id", "patient_nbr", "admission_source_id", "readmitted"} & set(data.X)
    kinds = data.X.dtypes.map(lambda dtype: isinstance(dtype, pd.CategoricalDtype))
    assert kinds[["race", "admission_type_id", "discharge_disposition_id"]].all()
    assert not kinds[["time_in_hospital", "number_diagnoses"]].any()
    assert "None" in data.X["max_glu_serum"].cat.categories, "no test made is not missing"


@needs("acs_income")
def test_income():
    data = load("acs_income")
    numbers = ["AGEP", "WKHP", "SCHL"]
    assert list(data.X.columns[:3]) == numbers
    assert all(isinstance(data.X[name].dtype, pd.CategoricalDtype) for name in data.X.columns[3:])
    assert not data.X.isna().any().any(), "a missing code is a level"
    assert "missing" in data.X["JWTR"].cat.categories
    assert data.X["OCCP"].str.len().max() == 2
    if set(data.environments) == {"ID", "ME", "NH", "RI", "VT", "WV"}:
        assert data.y.mean() == pytest.approx(0.2918, abs=5e-5)


@needs("heart_disease")
def test_heart_disease():
    data = load("heart_disease")
    n = dict(zip(*np.unique(data.environments, return_counts=True), strict=True))
    assert n == {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200}
    assert data.y.mean() == pytest.approx(0.5533, abs=5e-5)
    assert data.X["chol"].isna()[data.environments == "switzerland"].all(), "0 is missing"
    assert data.X["chol"].min() > 0
    assert set(data.X["thal"].cat.categories) == {"3", "6", "7"}


@needs("heart_disease")
def test_heart_disease_as_uci_publishes_it(tmp_path):
    """UCI's own files have no line of names."""
    (tmp_path / "heart_disease").mkdir()
    for path in (DATA / "heart_disease").glob("*.data"):
        lines = [line for line in path.read_text().splitlines(True) if not line.startswith("age")]
        (tmp_path / "heart_disease" / path.name).write_text("".join(lines))
    assert load_heart_by_hospital(tmp_path).X.equals(load("heart_disease").X)


@needs("sachs")
@pytest.mark.parametrize("target", _files.SACHS_PARENTS)
def test_sachs_targets(target):
    data = load_sachs(DATA, target=target)
    assert target not in data.X
    assert data.causal == [
        name for name in _files.SACHS_PARENTS if name in _files.SACHS_PARENTS[target]
    ]
    assert data.y.mean() == pytest.approx(0.5, abs=0.01)


def test_sachs_network_is_the_accepted_one():
    edges = pd.read_csv(need_file("sachs/consensus_edges.csv"))
    short = {name.lower().removesuffix("g"): name for name in _files.SACHS_PARENTS}
    accepted = {(short[parent], short[child]) for parent, child in edges.to_numpy()}
    assert accepted == {(p, c) for c, parents in _files.SACHS_PARENTS.items() for p in parents}


def test_no_folder_and_no_pooch(monkeypatch):
    monkeypatch.delenv("ICSCM_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    for loader in LOADERS.values():
        with pytest.raises(IcscmError, match="pass data_home or set the environment variable"):
            loader()
    assert not any(info.present for info in list_datasets())


@pytest.mark.parametrize("name", LOADERS)
def test_the_default_folder_is_a_cache(name, tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("ICSCM_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", tmp_path.joinpath)
    assert not any(info.present for info in list_datasets())
    path = str(tmp_path / "icscm" / FIRST_FILES[name])
    expect_one_clear_sentence(LOADERS[name], f"{path!r} was not found; it is a file of {name!r}")


@needs("sachs")
def test_loaders_read_the_cache(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("ICSCM_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda _: DATA)
    assert len(load_sachs().y) == 6_564


@needs("sachs")
def test_folder_from_the_environment(monkeypatch):
    monkeypatch.setenv("ICSCM_DATA", str(DATA))
    assert len(load_sachs().y) == 6_564
    assert {info.name for info in list_datasets() if info.present} == PRESENT


FIRST_FILES = {
    "diabetes_readmission": "diabetes/dataset_diabetes.zip",
    "acs_income": "acs2018/csv_pal.zip",
    "heart_disease": "heart_disease/processed.cleveland.data",
    "sachs": "sachs/sachs_conditions.csv",
}


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files(name, tmp_path):
    path = str(tmp_path / FIRST_FILES[name])
    expect_one_clear_sentence(
        lambda: LOADERS[name](tmp_path), f"{path!r} was not found; it is a file of {name!r}"
    )


@pytest.mark.parametrize("name", [name for name in LOADERS if FIRST_FILES[name].endswith("zip")])
@pytest.mark.parametrize("cut", [0, 40, -30], ids=["empty", "stub", "tail"])
def test_truncated_zips(name, cut, tmp_path):
    path = tmp_path / FIRST_FILES[name]
    write_zip(path, "psam_p01.csv", "SERIALNO\n2018\n" * 100)
    path.write_bytes(path.read_bytes()[:cut])
    expect_one_clear_sentence(
        lambda: LOADERS[name](tmp_path),
        f"{str(path)!r} is damaged or cannot be read (BadZipFile",
        f"expected the file of {name!r} as published at https://",
    )


def test_zip_with_broken_content(tmp_path):
    """The list of contents is whole, the contents are not."""
    path = tmp_path / FIRST_FILES["diabetes_readmission"]
    write_zip(path, "diabetic_data.csv", "race,age\n" + "Other,7\n" * 1000)
    content = bytearray(path.read_bytes())
    content[120:2000] = bytes(1880)
    path.write_bytes(content)
    expect_one_clear_sentence(lambda: load_diabetes_by_source(tmp_path), str(path), "is damaged")


def test_columns_that_are_gone(tmp_path):
    write_state(tmp_path, "id", 16, make_persons(20).drop(columns=["RELP", "WKW"]))
    path = str(tmp_path / "acs2018" / "csv_pid.zip")
    expect_one_clear_sentence(
        lambda: load_income_by_state(tmp_path),
        f"{path!r} lacks 7 of the 20 expected columns: 'COW', 'RELP',",
        "and 2 more; the file may be of another year or edition",
    )


def test_heart_disease_with_other_columns(tmp_path):
    path = tmp_path / FIRST_FILES["heart_disease"]
    path.parent.mkdir()
    for hospital in ("cleveland", "hungarian", "switzerland", "va"):
        (path.parent / f"processed.{hospital}.data").write_text("63,1,1\n")
    expect_one_clear_sentence(
        lambda: load_heart_by_hospital(tmp_path), f"{str(path)!r} has 3 columns; expected the 14"
    )
    path.write_text("63,many" + ",1" * 12)
    expect_one_clear_sentence(lambda: load_heart_by_hospital(tmp_path), str(path), "'many'")


def test_files_of_another_year(tmp_path):
    newer = make_persons(20, year=2019).rename(columns={"RELP": "RELSHIPP"})
    write_state(tmp_path, "id", 16, newer)
    expect_one_clear_sentence(
        lambda: load_income_by_state(tmp_path),
        "csv_pid.zip' is not of 2018: its first household number is 2019HU0000000",
        "expected the American Community Survey's 1-Year file of 2018",
    )


@pytest.mark.parametrize("states", [["ME", "XX"], ["Maine"], [], [7]])
def test_unknown_states(states, tmp_path):
    with pytest.raises(IcscmError, match="states must be two-letter codes of US states"):
        fetch("acs_income", tmp_path, states=states)


def test_unknown_protein(tmp_path):
    with pytest.raises(IcscmError, match=r"target must be one of 'Raf', 'Mek'.*; got 'erk'"):
        load_sachs(tmp_path, target="erk")


def test_the_list(tmp_path):
    infos = list_datasets(tmp_path)
    assert [info.name for info in infos] == list(LOADERS)
    assert not any(info.present for info in infos)
    for info in infos:
        assert "https://" in info.source
        assert info.licence
        assert info.n_samples > 0
        assert getattr(datasets, info.loader.__name__) is info.loader
    assert infos[1].files == ("acs2018/csv_p??.zip",)
    write_state(tmp_path, "me", 23, make_persons(5))
    present = [info.name for info in list_datasets(tmp_path) if info.present]
    assert present == ["acs_income"]


def test_known_checksums_are_right():
    sums = need_file("SHA256SUMS").read_text().split()
    wanted = dict(zip(sums[1::2], sums[::2], strict=True))
    files = {file.path: file for source in _files.SOURCES.values() for file in source.files}
    known = {path: file.sha256 for path, file in files.items() if file.sha256}
    assert len(known) == 7
    assert known.items() <= wanted.items()
    assert all(file.url for file in files.values() if file.sha256)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server on this machine, and the folder that it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", folder
        running.shutdown()
        thread.join()
    with warnings.catch_warnings():  # pooch leaves connections to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def replace_source(monkeypatch, url, sha256=None, name="diabetes_readmission"):
    old = _files.SOURCES[name]
    file = _files.RawFile(old.files[0].path, url, sha256)
    facts = {**old.__dict__, "files": (file,)}
    monkeypatch.setitem(_files.SOURCES, name, _files.Source(**facts))


def make_patients():
    columns = _files.SOURCES["diabetes_readmission"].columns
    numbers = dict.fromkeys([name for name in columns if re.search("_id$|^num|^time", name)], 7)
    table = pd.DataFrame("No", range(400), [*columns, "readmitted"])
    return table.assign(**numbers, race="Other", readmitted=["NO", "<30"] * 200)


def test_fetch(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    url, folder = server
    write_zip(folder / "patients.zip", "diabetic_data.csv", to_csv(make_patients()))
    content = (folder / "patients.zip").read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    replace_source(monkeypatch, f"{url}/patients.zip", checksum)
    home = tmp_path / "home"
    with pytest.raises(IcscmError, match=r"was not found; .* available from http://127"):
        load_diabetes_by_source(home)  # nothing is downloaded by a loader
    assert not home.exists()
    (target,) = fetch("diabetes_readmission", home)
    assert len(load_diabetes_by_source(home).y) == 400
    assert target == home / "diabetes" / "dataset_diabetes.zip"
    assert target.read_bytes() == content
    target.write_bytes(content[:50])
    fetch("diabetes_readmission", home)
    assert target.read_bytes() == content, "a damaged copy is fetched anew"


def test_fetch_keeps_nothing_with_a_wrong_checksum(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    url, folder = server
    (folder / "patients.zip").write_text("not what it was")
    replace_source(monkeypatch, f"{url}/patients.zip", "0" * 64)
    expect_one_clear_sentence(
        lambda: fetch("diabetes_readmission", tmp_path),
        "/patients.zip: ValueError: SHA256 hash of downloaded file (dataset_diabetes.zip) does not",
    )
    assert not (tmp_path / "diabetes" / "dataset_diabetes.zip").exists()


def test_fetch_of_what_the_server_lacks(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    replace_source(monkeypatch, f"{server[0]}/gone.zip")
    expect_one_clear_sentence(
        lambda: fetch("diabetes_readmission", tmp_path), "/gone.zip: the server answered 404;"
    )


def test_fetch_without_network(tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    replace_source(monkeypatch, f"http://127.0.0.1:{port}/patients.zip")
    expect_one_clear_sentence(
        lambda: fetch("diabetes_readmission", tmp_path),
        f"could not download http://127.0.0.1:{port}/patients.zip: there is no connection to the "
        "server; try again later, or save the file by hand as",
    )


def test_fetch_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(IcscmError, match=re.escape("pip install 'icscm[data]'")):
        fetch("heart_disease", tmp_path)


def test_fetch_by_hand_only(tmp_path):
    path = str(tmp_path / FIRST_FILES["sachs"])
    expect_one_clear_sentence(
        lambda: fetch("sachs", tmp_path), "get it from https://", f"save it as {path!r}"
    )


def test_fetch_of_an_unknown_name(tmp_path):
    with pytest.raises(IcscmError, match=r"name must be one of 'diabetes_readmission'.*got 'iris'"):
        fetch("iris", tmp_path)


def test_fetch_takes_the_states_asked_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(_files.Source, "download", lambda _, file, __: asked.append(file.path))
    fetch("acs_income", tmp_path, states=["me", "ME"])
    assert asked == ["acs2018/csv_pme.zip"]
    asked.clear()
    fetch("acs_income", tmp_path)
    assert len(asked) == 51
    assert "acs2018/csv_pdc.zip" not in asked, "without the District of Columbia by default"


def test_loaders_that_moved():
    """Loaders of the paper's study are no longer part of the package."""
    with pytest.raises(ImportError, match="no load_meps; the loaders of the paper's study are in"):
        from icscm.datasets import load_meps  # noqa: F401
    assert not hasattr(datasets, "nonsense")


def test_data_folder_may_start_with_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    assert _files.find_data_home("~/raw") == Path("/somewhere/raw")


@pytest.mark.parametrize(
    ("name", "shape", "n_environments"),
    [
        pytest.param("acs_income", (40_815, 18), 6, marks=needs("acs_income")),
        pytest.param("diabetes_readmission", (99_050, 46), 7, marks=needs("diabetes_readmission")),
        pytest.param("heart_disease", (920, 13), 4, marks=needs("heart_disease")),
        pytest.param("sachs", (6_564, 10), 8, marks=needs("sachs")),
    ],
)
def test_shapes(name, shape, n_environments):
    data = load(name)
    assert data.X.shape == shape
    assert shape[0] == len(data.y) == len(data.environments)
    assert list(data.X.index) == list(range(shape[0]))
    assert data.y.dtype == np.int64
    assert set(np.unique(data.y)) == {0, 1}
    names, n = np.unique(data.environments, return_counts=True)
    assert len(names) == n_environments
    assert min(n) > 100
