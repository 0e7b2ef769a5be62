"""Compiled code is kept where it can be, and never where others could put theirs."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import icscm
from icscm import compiling
from strangers import run_as_stranger

USE = "from icscm.stats import _kernels; from icscm.engine import _kernels as more; "
CALL = "import numpy; print(more.clear_bits(numpy.zeros(1, 'u8'), numpy.zeros(1, 'u4')))"


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


@pytest.mark.skipif(os.name != "posix", reason="rights are told otherwise")
@pytest.mark.parametrize("is_safe", [True, False], ids=["temporary folder", "nowhere"])
def test_neither_package_nor_home_can_be_written(read_only, is_safe):
    """In a container with a random user every command ended in "no locator available"."""
    temporary = read_only / "temporary"
    temporary.chmod(0o1777 if is_safe else 0o777)  # without the bit others may rename what is ours
    environment = {
        "HOME": "/nonexistent",
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(read_only),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = run_as_stranger([sys.executable, "-c", USE + CALL], env=environment)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    kept = [*temporary.rglob("*.nbi")]
    assert bool(kept) == is_safe
    assert done.stderr.count("compiled code cannot be kept") == (not is_safe)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in temporary.iterdir()} == {0o700}


@pytest.mark.skipif(os.name != "posix", reason="rights are told otherwise")
@pytest.mark.parametrize("trap", ["open", "link", "others"])
def test_a_folder_that_others_could_have_filled_is_not_used(tmp_path, monkeypatch, trap):
    """What is read from it is run."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    find = compiling._make_private_folder.__wrapped__
    folder = find()
    assert folder.parent == tmp_path
    assert find() == folder
    if trap == "open":
        folder.chmod(0o770)
    elif trap == "link":
        folder.rename(tmp_path / "mine")
        folder.symlink_to(tmp_path / "mine")
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        (tmp_path / f".icscm-compiled-{other}").mkdir(mode=0o700)
    assert find() is None


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
