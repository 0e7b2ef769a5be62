"""The benchmarks of scale run, in small sizes, and print their tables."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
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


def test_lines_of_code(tmp_path):
    """Docstrings, comments and blank lines do not count; limits fail only when asked for."""
    source = tmp_path / "package" / "module.py"
    source.parent.mkdir()
    source.write_text(
        '"""Two\n\nlines."""\n\n# a comment\nX = """text\n\nof three"""\n\n\n'
        'def f():\n    """Docstring."""\n    # why\n    y = (\n        1\n    )\n    return y\n'
    )
    command = [sys.executable, str(BENCHMARKS / "count_lines.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:3] == ["package", "8", "1"]
    assert "body, maximum       4" in done.stdout
    assert subprocess.run([*command, "--check"], capture_output=True).returncode == 0
    done = subprocess.run([*command, "--check", "--code", "7"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "above the limits: code 8 > 7" in done.stderr


def test_calls_are_traced():
    """Each way is there, with some calls in some modules."""
    command = [sys.executable, str(BENCHMARKS / "trace_calls.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
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
