"""Compiled code is cached where that is possible, and faults of the cache cost time only."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import icscm
from icscm import compiling
from support.processes import run_as_stranger

USE = "from icscm.stats import _kernels; from icscm.engine import _kernels as more; "
CALL = "import numpy; print(more.sum_words(numpy.zeros(1, 'u8'), numpy.zeros(2, 'u8')))"


@pytest.fixture
def read_only():
    """A folder with the package, which nobody may write to, and one below that all may."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(
        Path(icscm.__file__).parent,
        folder / "icscm",
        ignore=shutil.ignore_patterns("__pycache__", "templates"),
    )
    (folder / "temporary").mkdir()
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        each.chmod(0o555)
    yield folder
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        each.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions differ")
@pytest.mark.parametrize(
    "named",
    [
        pytest.param(True, id="NUMBA_CACHE_DIR", marks=pytest.mark.thorough),
        pytest.param(False, id="nowhere"),
    ],
)
def test_neither_package_nor_home_can_be_written(read_only, named):
    """In a container with a random user every command ended in "no locator available"."""
    temporary = read_only / "temporary"
    temporary.chmod(0o1777)
    environment = {
        "HOME": "/nonexistent",
        "PYTHONPATH": str(read_only),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if named:
        environment["NUMBA_CACHE_DIR"] = str(temporary)
    done = run_as_stranger([sys.executable, "-c", USE + CALL], env=environment)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert bool([*temporary.rglob("*.nbi")]) == named
    assert done.stderr.count("compiled code cannot be cached") == (not named)


@pytest.mark.parametrize("damage", ["cut off", "full"])
def test_a_damaged_cache_costs_time_only(tmp_path, monkeypatch, damage):
    """A cache file that was cut off ended every command in "Stopped."; a full disk ended it too."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def compute(x):
        return x + 1

    assert compiling.compiled(compute)(np.int64(1)) == 2
    (index,) = tmp_path.rglob("*.nbi")
    if damage == "cut off":
        index.write_bytes(index.read_bytes()[:10])
    else:
        index.unlink()

        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_index", fail)
    assert compiling.compiled(compute)(np.int64(1)) == 2
    if damage == "cut off":
        assert len(index.read_bytes()) > 10


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_compiling_is_announced_on_a_terminal(tmp_path, monkeypatch, capsys, is_terminal):
    """The first fit ever showed nothing for some ten seconds."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    compiling._announce_compilation.cache_clear()

    def compute(x):
        return x + 1

    for _ in range(2):  # the second is read
        assert compiling.compiled(compute)(np.int64(1)) == 2
    assert capsys.readouterr().err.count("Compiling kernels") == is_terminal
