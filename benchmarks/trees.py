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

import numpy as np

from common import format_seconds, run_worker

# Ours and theirs, rows, columns, and the target share of their time.
CASES = [
    ("invariant tree, 16 leaves", "sklearn tree, 16 leaves", 200_000, 100, 1 / 10),
    ("invariant forest, 100 x 32 leaves", "sklearn forest, 100 x 32 leaves", 100_000, 50, 1 / 5),
]
N_ENVIRONMENTS, N_TELLING = 6, 10
MOST_MEMORY = 2.0


def make_graded(n_rows: int, n_columns: int) -> dict[str, np.ndarray]:
    """Uniform features, ten of which shift the odds alike in all environments."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_columns))
    odds = (X[:, :N_TELLING] - 0.5) @ np.linspace(4, 1, N_TELLING)
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
    for ours, theirs, n_rows, n_columns, target in CASES:
        n_rows, n_columns = (2_000, 12) if is_quick else (n_rows, n_columns)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.npz"
            np.savez(path, **make_graded(n_rows, n_columns))
            runs = [(run_worker(ours, path, 1), run_worker(theirs, path, 1)) for _ in range(rounds)]
        seconds = [min(min(run[k]["seconds"]) for run in runs) for k in (0, 1)]
        memory = max(run[0]["extra_bytes"] for run in runs) / (n_rows * n_columns)
        shown = " | ".join(
            f"{name}: {format_seconds(each)}"
            for name, each in zip((ours, theirs), seconds, strict=True)
        )
        lines.append(
            f"| {n_rows:,} x {n_columns} | {shown} | {seconds[0] / seconds[1]:.3f} | {target:g} "
            f"| {memory:.1f} | {MOST_MEMORY:g} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


if __name__ == "__main__":
    measure(is_quick="--quick" in sys.argv, rounds=1 if "--quick" in sys.argv else 2)
