"""The distributions for the package index: built, checked, installed apart from the source."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from icscm import ICSCMClassifier, __version__
from icscm.datasets import make_hospitals
from support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
EXTRAS = "data", "dask", "cuda"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*arguments, **options):
    options["env"] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(each) for each in arguments]
    settings = {"check": True, "capture_output": True, "text": True, "timeout": PATIENCE}
    return subprocess.run(command, **settings, **options).stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def metadata(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(wheel.read(name))


@pytest.mark.thorough
def test_the_index_would_show_the_description(distributions):
    assert (
        run(sys.executable, "-m", "twine", "check", "--strict", *distributions).count("PASSED") == 2
    )


@pytest.mark.thorough
def test_the_description_has_no_link_that_leads_nowhere(metadata):
    """Links and pictures of the README lead into the repository, which the index does not have."""
    text = metadata.get_payload(decode=True).decode()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert all(link.startswith(("https://", "#")) for link in links)
    assert "![" not in text
    assert "pip install icscm" in text


@pytest.mark.thorough
def test_the_description_reads_as_whole_sentences(metadata):
    """Captions and lists of links to pages of the repository were left as fragments."""
    text = metadata.get_payload(decode=True).decode()
    for fragment in ("Simulated admissions (", "Guide to the screen", "From a file", "Where to go"):
        assert fragment not in text
    assert not re.search(r"^ *[.,:]|<!--", text, re.MULTILINE)


@pytest.mark.thorough
def test_metadata(metadata):
    assert metadata["Version"] == __version__
    classifiers = metadata.get_all("Classifier")
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert metadata["Author"]
    assert metadata["License-Expression"] == "BSD-3-Clause"


@pytest.mark.thorough
def test_the_source_distribution_is_whole(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CITATION.cff", "src/icscm/parameters.toml"} <= names
    assert not [
        name for name in names if name.startswith((".ci", ".venv", "shared", "docs/_build"))
    ]


@pytest.mark.thorough
def test_the_wheel_works_apart_from_the_source(distributions, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    options = "--no-deps", "--no-index", "--quiet"
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, distributions[1])
    # what it depends on, without the editable install of this checkout
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(own) / "others.pth").write_text(sysconfig.get_path("purelib"))
    command = tmp_path / "env" / "bin" / "icscm"
    assert __version__ in run(command, "--version", cwd=tmp_path)
    where = run(python, "-c", "import icscm; print(icscm.__file__)", cwd=tmp_path)
    assert str(tmp_path) in where
    data = make_hospitals(500, random_state=0)
    ICSCMClassifier().fit(data.X, data.y, environments=data.environments).save(tmp_path / "m.json")
    data.X.to_csv(tmp_path / "x.csv", index=False)
    assert "conjunction of" in run(command, "show", "m.json", cwd=tmp_path)
    assert "SELECT" in run(command, "export", "m.json", "--to", "sql", cwd=tmp_path)
    assert run(command, "predict", "m.json", "x.csv", cwd=tmp_path).count("\n") == 501


@pytest.mark.thorough
def test_the_wheel_has_every_file_of_the_package(distributions):
    """A template or table of settings that is not in the wheel fails only there."""
    source = ROOT / "src"
    files = [path for path in (source / "icscm").rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(distributions[1]) as wheel:
        assert wanted - {*wheel.namelist()} == set()


def test_every_extra_that_a_message_names_exists():
    """`pip install icscm[...]` in a message of the package is a command that works."""
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"icscm\[([a-z]+)\]", path.read_text(encoding="utf-8")))
    assert {"data", "dask"} <= named <= set(PROJECT["optional-dependencies"])


def test_the_licences_of_all_dependencies_are_listed():
    """If this fails: python docs/write_licences.py"""
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\S+) \|.*\| (.*) \|$", page, re.MULTILINE))
    users = [PROJECT["dependencies"], *map(PROJECT["optional-dependencies"].get, EXTRAS)]
    names = {re.match(r"[\w.-]+", each)[0] for group in users for each in group}
    assert names == rows.keys() - {"package"}
    assert not [name for name, licence in rows.items() if re.search(r"\bA?GPL|unknown", licence)]
