"""Time invariant trees and forests against scikit-learn's of the same shape, alternating.

    python benchmarks/trees.py            a few minutes on two cores
    python benchmarks/trees.py --quick    small sizes, seconds

From raw floats to the model, binning included, in six environments. The label's odds depend on
ten of the features, so that all leaves are grown. Memory is that of a process beyond its input,
relative to the codes: a byte per cell.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common import format_seconds, run_worker


class Case(NamedTuple):
    """Our learner and theirs, the size of the table, and the target share of their time."""

    ours: str
    theirs: str
    n_rows: int
    n_columns: int
    target: float


CASES = [
    Case("invariant tree, 16 leaves", "sklearn tree, 16 leaves", 200_000, 100, 1 / 10),
    Case(
        "invariant forest, 100 x 32 leaves", "sklearn forest, 100 x 32 leaves", 100_000, 50, 1 / 5
    ),
]
N_ENVIRONMENTS = 6
# Columns that the label depends on.
N_CAUSES = 10
# Peak of memory at most, relative to the codes.
MOST_MEMORY = 2.0


def make_graded(n_rows: int, n_columns: int) -> dict[str, np.ndarray]:
    """Uniform features, ten of which shift the odds alike in all environments."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_columns))
    odds = (X[:, :N_CAUSES] - 0.5) @ np.linspace(4, 1, N_CAUSES)
    y = rng.random(n_rows) < 1 / (1 + np.exp(-odds))
    return {"X": X, "y": y.astype(np.int64), "e": rng.integers(0, N_ENVIRONMENTS, n_rows)}


def measure(*, is_quick: bool = False, rounds: int = 2) -> list[str]:
    """A Markdown table."""
    lines = [
        "**Invariant trees and forests**",
        "",
        f"{N_ENVIRONMENTS} environments. Best of {rounds} rounds.",
        "",
        "| rows x columns | ours | theirs | ours / theirs | target | peak / codes | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        if is_quick:
            case = case._replace(n_rows=2_000, n_columns=12)
        lines.append(compare(case, rounds))
        print(lines[-1], flush=True)
    return [*lines, ""]


def compare(case: Case, rounds: int) -> str:
    """A line of the table, from runs that take turns."""
    our_runs = []
    their_runs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **make_graded(case.n_rows, case.n_columns))
        for _ in range(rounds):
            our_runs.append(run_worker(case.ours, path, 1))
            their_runs.append(run_worker(case.theirs, path, 1))

    our_seconds = min(min(run["seconds"]) for run in our_runs)
    their_seconds = min(min(run["seconds"]) for run in their_runs)
    code_bytes = case.n_rows * case.n_columns
    memory = max(run["extra_bytes"] for run in our_runs) / code_bytes
    return (
        f"| {case.n_rows:,} x {case.n_columns} "
        f"| {case.ours}: {format_seconds(our_seconds)} "
        f"| {case.theirs}: {format_seconds(their_seconds)} "
        f"| {our_seconds / their_seconds:.3f} | {case.target:g} "
        f"| {memory:.1f} | {MOST_MEMORY:g} |"
    )


if __name__ == "__main__":
    is_quick = "--quick" in sys.argv
    measure(is_quick=is_quick, rounds=1 if is_quick else 2)
