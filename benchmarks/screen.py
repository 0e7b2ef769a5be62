"""The time of a screen by its parts: python benchmarks/screen.py.

The rounds of `InvariantFeatureSelector` on a wide and on a long table: the time of the own effects
of columns, of the cross-fitted trees, of judging columns, and of everything else, in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from icscm import InvariantFeatureSelector
from icscm.screening import measuring, rounds

TABLES = {"wide": (5_000, 10_000), "long": (1_000_000, 100)}
N_ENVIRONMENTS = 10


def make_table(n_rows: int, n_columns: int) -> tuple[Any, Any, Any]:
    """Four causes, one shortcut that fades from environment to environment, and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    environments = rng.integers(N_ENVIRONMENTS, size=n_rows)
    chance = 1.0 / (1.0 + np.exp(-X[:, :4].sum(axis=1)))
    y = (rng.random(n_rows) < chance).astype(np.int64)
    X[:, 4] += (2 * y - 1) * np.linspace(1.5, 0.0, N_ENVIRONMENTS, dtype=np.float32)[environments]
    return X, y, environments


# Functions with their modules, by the part of a screen that they are.
PARTS = {
    "own effects": (rounds, "measure_own_effects"),
    "trees": (measuring, "cross_fit"),
    "judging": (measuring, "measure_columns"),
}
REST = "everything else"


def measure(n_rows: int, n_columns: int) -> dict[str, Any]:
    """Seconds by part, and the columns rejected."""
    X, y, environments = make_table(n_rows, n_columns)
    seconds = dict.fromkeys(PARTS, 0.0)

    def time_calls(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            start = perf_counter()
            result = function(*args, **options)
            seconds[part] += perf_counter() - start
            return result

        return timed

    with ExitStack() as patches:
        for part, (module, name) in PARTS.items():
            timed = time_calls(part, getattr(module, name))
            patches.enter_context(patch.object(module, name, timed))
        start = perf_counter()
        selector = InvariantFeatureSelector(random_state=0, n_jobs=1)
        selector.fit(X, y, environments=environments)
        total = perf_counter() - start
    seconds[REST] = total - sum(seconds.values())
    return {**seconds, "rounds": len(selector.rounds_), "rejected": selector.rejected_}


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], default=[*TABLES])
    for name in parser.parse_args().tables:
        n_rows, n_columns = TABLES[name]
        result = measure(n_rows, n_columns)
        times = ", ".join(f"{part} {result[part]:.1f} s" for part in (*PARTS, REST))
        print(
            f"{n_rows:,} x {n_columns:,}, {result['rounds']} rounds: {times}; "
            f"rejected {result['rejected']}"
        )


if __name__ == "__main__":
    main()
