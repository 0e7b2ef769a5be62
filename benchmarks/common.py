"""Shared code of the benchmarks: data, workers in separate processes, and printed tables."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
WORK = HERE / ".work"
# Peers with a separate virtual environment: its name, the import, the packages to install.
PEERS = {
    "pyscm": ("pyscm", ["numpy<2", "scikit-learn", "setuptools", "wheel"], ["pyscm-ml"]),
    "LightGBM, 1 tree": ("lightgbm", ["numpy"], ["lightgbm"]),
    "XGBoost, 1 tree": ("xgboost", ["numpy"], ["xgboost-cpu"]),
}
# A description, the measured number and its target: a maximum or, for a share, a minimum.
Target = tuple[str, float, float]
LEAST = "share of "
SECONDS = "seconds "


def make_floats(n_rows: int, n_columns: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return label(rng.random((n_rows, n_columns)), 0.4, rng)


def make_few_valued(n_rows: int, n_columns: int, n_values: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return label(rng.integers(0, n_values, size=(n_rows, n_columns)) / n_values, 0.4, rng)


def label(X: np.ndarray, cut: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A noisy conjunction of three features, for which ten rules are found."""
    y = (X[:, :3] > cut).all(axis=1) ^ (rng.random(len(X)) < 0.1)
    return {"X": X, "y": y.astype(np.int64), "e": rng.integers(0, 2, len(X))}


def run_worker(
    contender: str, data: Path, repeats: int, *options: str, python: str | Path | None = None
) -> dict | None:
    """One process; None if the contender cannot run here."""
    python = python or (find_python(contender) if contender in PEERS else sys.executable)
    if python is None:
        return None
    command = [str(python), str(HERE / "worker.py"), contender, str(data), str(repeats), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


@cache
def find_python(peer: str) -> Path | None:
    """The interpreter of a peer's virtual environment, created on first use."""
    module, needed, packages = PEERS[peer]
    python = WORK / f"{module}-venv" / "bin" / "python"
    if not python.exists():
        print(f"setting up {module} ...", flush=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        steps = [
            [sys.executable, "-m", "venv", python.parent.parent],
            [*install, *needed],
            [*install, "--no-build-isolation", *packages],
        ]
        for step in steps:
            if subprocess.run(step, check=False, capture_output=True).returncode != 0:
                print(f"{module} could not be installed and is left out", file=sys.stderr)
                return None
    probe = subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True)
    return python if probe.returncode == 0 else None


def find_version(peer: str) -> str | None:
    """Name and version of a peer, as installed."""
    python, package = find_python(peer), PEERS[peer][2][0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    found = python and subprocess.run([python, "-c", code], capture_output=True, text=True)
    return f"{package} {found.stdout.strip()}" if found else None


def format_seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def print_targets(measured: Iterable[Target]) -> list[str]:
    """A Markdown table of measured numbers and targets, printed line by line."""
    warnings.simplefilter("ignore")
    lines = ["| what | measured | target | met |", "|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for what, found, target in measured:
        show = format_seconds if what.startswith(SECONDS) else "{:.2f}".format
        is_met = found >= target if what.startswith(LEAST) else found <= target
        title = what.removeprefix(SECONDS)
        lines.append(f"| {title} | {show(found)} | {show(target)} | {'yes' if is_met else 'no'} |")
        print(lines[-1], flush=True)
    return lines
