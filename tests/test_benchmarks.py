"""The benchmarks of scale run, in small sizes, and print their tables."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

QUICK = {
    "files.py": (("--folder", "{scratch}"), "rate of files / rate in memory"),
    "packed.py": (("--scratch", "{scratch}"), "of bandwidth"),
    "cluster.py": ((), "not used for the constants"),
    "trees.py": ((), "invariant forest, 100 x 32 leaves"),
    "small.py": ((), "| met |"),
    "extremes.py": ((), "columns of floats in a frame"),
}


@pytest.mark.parametrize("name", QUICK)
def test_quick(name, tmp_path):
    options, expected = QUICK[name]
    words = [word.format(scratch=tmp_path) for word in options]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), "--quick", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert expected in done.stdout
    assert not list(tmp_path.iterdir())
