"""The time of a screen and of the fits that it needs: python benchmarks/screen.py.

The rounds of `InvariantFeatureSelector` on a wide and on a long table: the time of the fits, of
contributions (predictions with permuted columns) and of everything else, in one process.
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


def measure(n_rows: int, n_columns: int, estimator: Any) -> dict[str, Any]:
    """Seconds by part, and the columns rejected."""
    X, y, environments = make_table(n_rows, n_columns)
    seconds = {"fits": 0.0, "contributions": 0.0}

    def time_calls(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            start = perf_counter()
            result = function(*args)
            seconds[part] += perf_counter() - start
            return result

        return timed

    from icscm.screening import cross_fitting

    with ExitStack() as patches:
        for part, name in (("fits", "fit_clone"), ("contributions", "score_shuffled")):
            timed = time_calls(part, getattr(cross_fitting, name))
            patches.enter_context(patch.object(cross_fitting, name, timed))
        start = perf_counter()
        selector = InvariantFeatureSelector(estimator, random_state=0, n_jobs=1)
        selector.fit(X, y, environments=environments)
        total = perf_counter() - start
    seconds["everything else"] = total - sum(seconds.values())
    return {**seconds, "rounds": len(selector.rounds_), "rejected": selector.rejected_}


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], default=[*TABLES])
    for name in parser.parse_args().tables:
        n_rows, n_columns = TABLES[name]
        result = measure(n_rows, n_columns, None)
        screening = result["contributions"] + result["everything else"]
        parts = ("fits", "contributions", "everything else")
        times = ", ".join(f"{part} {result[part]:.1f} s" for part in parts)
        print(
            f"{n_rows:,} x {n_columns:,}, boosting, {result['rounds']} rounds: {times}; "
            f"screening is {screening / result['fits']:.2f} of the fits; "
            f"rejected {result['rejected']}"
        )


if __name__ == "__main__":
    main()
