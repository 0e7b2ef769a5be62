"""The benchmarks of scale run, in small sizes, and print their tables."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support.processes import PATIENCE

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

QUICK = {
    "files.py": (("--folder", "{scratch}"), "rate of files / rate in memory"),
    "packed.py": (("--scratch", "{scratch}"), "of bandwidth"),
    "cluster.py": ((), "not used for the constants"),
    "trees.py": ((), "invariant forest, 100 x 32 leaves"),
    "small.py": ((), "| met |"),
    "extremes.py": ((), "columns of floats in a frame"),
}


def run_benchmark(name, *words):
    command = [sys.executable, str(BENCHMARKS / name), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK)
def test_quick(name, tmp_path):
    options, expected = QUICK[name]
    done = run_benchmark(name, "--quick", *(word.format(scratch=tmp_path) for word in options))
    assert done.returncode == 0, done.stderr[-2000:]
    assert expected in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_calls_are_traced():
    """Each way is there, with some calls in some modules."""
    done = run_benchmark("trace_calls.py")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split("|")[2:5] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 3
    for row in rows:
        n_calls, n_functions, n_modules = (int(each.replace(",", "")) for each in row)
        assert n_calls > n_functions > n_modules > 10


def test_benchmarks_import_in_one_direction():
    """`asked.py`, `run.py`, `small.py` and `trees.py` imported each other in circles."""
    names = {path.stem for path in BENCHMARKS.glob("*.py")}
    below = {}
    for name in names:
        tree = ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"))
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module)
        below[name] = found & names
    TopologicalSorter(below).prepare()  # raises CycleError
