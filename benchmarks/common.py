"""Shared code of the benchmarks: data, workers in separate processes, and printed tables."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
WORK = HERE / ".work"


class Peer(NamedTuple):
    """A package with a virtual environment of its own: what is installed there first, and then."""

    module: str
    requirements: list[str]
    package: str


PEERS = {
    "pyscm": Peer("pyscm", ["numpy<2", "scikit-learn", "setuptools", "wheel"], "pyscm-ml"),
    "LightGBM, 1 tree": Peer("lightgbm", ["numpy"], "lightgbm"),
    "XGBoost, 1 tree": Peer("xgboost", ["numpy"], "xgboost-cpu"),
}
# How descriptions of targets begin that are a minimum, and of those that are seconds.
LEAST = "share of "
SECONDS = "seconds "


class Target(NamedTuple):
    """A description, the measured number and its target: a maximum or, for a share, a minimum."""

    what: str
    measured: float
    target: float

    @property
    def is_met(self) -> bool:
        if self.what.startswith(LEAST):
            return self.measured >= self.target
        return self.measured <= self.target


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
    """What a worker measures in a process of its own; None if the contender cannot run here."""
    if python is None:
        python = find_python(contender) if contender in PEERS else sys.executable
    if python is None:
        return None
    worker = HERE / "worker.py"
    command = [str(python), str(worker), contender, str(data), str(repeats), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


@cache
def find_python(name: str) -> Path | None:
    """The interpreter of a peer's virtual environment, created on first use."""
    peer = PEERS[name]
    folder = WORK / f"{peer.module}-venv"
    python = folder / "bin" / "python"
    if not python.exists() and not install_peer(peer, folder):
        print(f"{peer.module} could not be installed and is left out", file=sys.stderr)
        return None
    return python if succeeds([python, "-c", f"import {peer.module}"]) else None


def install_peer(peer: Peer, folder: Path) -> bool:
    """Create a virtual environment with a peer; whether all went well."""
    print(f"setting up {peer.module} ...", flush=True)
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    return (
        succeeds([sys.executable, "-m", "venv", folder])
        and succeeds([*install, *peer.requirements])
        and succeeds([*install, "--no-build-isolation", peer.package])
    )


def succeeds(command: list) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def find_version(name: str) -> str | None:
    """Name and version of a peer, as installed."""
    python = find_python(name)
    if python is None:
        return None
    package = PEERS[name].package
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return f"{package} {done.stdout.strip()}"


def format_seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def print_targets(targets: Iterable[Target]) -> list[str]:
    """A Markdown table of measured numbers and targets, printed line by line."""
    warnings.simplefilter("ignore")
    lines = ["| what | measured | target | met |", "|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for target in targets:
        has_seconds = target.what.startswith(SECONDS)
        show = format_seconds if has_seconds else "{:.2f}".format
        title = target.what.removeprefix(SECONDS)
        verdict = "yes" if target.is_met else "no"
        lines.append(f"| {title} | {show(target.measured)} | {show(target.target)} | {verdict} |")
        print(lines[-1], flush=True)
    return lines
