"""Time one fit in a process of its own, and print seconds and memory as JSON.

    python -P paper/timed.py '{"fit": "screen", "rows": 2000, "columns": 1000, ...}'

`paper.screen_times` starts it: with the threads that are allowed in its environment, so that the
memory is that of the fit, and perhaps with an earlier version of icscm. Therefore it imports none
of the modules beside it.
"""

import json
import os
import resource
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

N_CAUSES = 4
MEGABYTE = 1024.0  # in the unit of ru_maxrss on Linux, which is a kilobyte
# A shortcut fades from one environment to the next, from this shift to none.
SHIFT = 1.5
N_ITERATIONS = 60
WARM_ROWS = 400


@dataclass(frozen=True, eq=False)
class TimedTable:
    """A simulated table."""

    X: Any
    y: Any
    environments: Any


def make_table(
    n_rows: int, n_columns: int, n_environments: int, *, has_shortcut: bool
) -> TimedTable:
    """Four causes, noise, and perhaps a shortcut; two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    environments = rng.integers(n_environments, size=n_rows)
    chance = 1.0 / (1.0 + np.exp(-X[:, :N_CAUSES].sum(axis=1)))
    y = (rng.random(n_rows) < chance).astype(np.int64)
    if has_shortcut:
        shifts = np.linspace(SHIFT, 0.0, n_environments, dtype=np.float32)
        X[:, N_CAUSES] += (2 * y - 1) * shifts[environments]
    return TimedTable(X, y, environments)


def fit_boosting(X: Any, y: Any, _environments: Any, _n_jobs: int) -> int:
    """Fit scikit-learn's boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    HistGradientBoostingClassifier(max_iter=N_ITERATIONS, early_stopping=False, random_state=0).fit(
        X, y
    )
    return 0


def fit_screen(X: Any, y: Any, environments: Any, n_jobs: int) -> int:
    """Fit the screen and boosting behind it; return the number of rounds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from icscm import InvariantFeatureSelector

    learner = HistGradientBoostingClassifier(
        max_iter=N_ITERATIONS, early_stopping=False, random_state=0
    )
    selector = InvariantFeatureSelector(learner, random_state=0, n_jobs=n_jobs)
    selector.fit(X, y, environments=environments)
    return len(selector.rounds_)


FITS: dict[str, Callable[[Any, Any, Any, int], int]] = {
    "boosting": fit_boosting,
    "screen": fit_screen,
}


def main() -> None:
    """Compile and load everything with a small table, and time the fit."""
    warnings.simplefilter("ignore")
    task = json.loads(sys.argv[1])
    fit = FITS[task["fit"]]
    n_environments = task["environments"]
    small = make_table(WARM_ROWS, 6, n_environments, has_shortcut=True)
    fit(small.X, small.y, small.environments, task["n_jobs"])

    table = make_table(task["rows"], task["columns"], n_environments, has_shortcut=task["shortcut"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    n_rounds = fit(table.X, table.y, table.environments, task["n_jobs"])
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    measured = {
        "seconds": seconds,
        "rounds": n_rounds,
        "input_mb": table.X.nbytes / 1e6,
        "peak_mb": peak / MEGABYTE,
        "beyond_mb": (peak - before) / MEGABYTE,
        "cores": os.cpu_count(),
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
