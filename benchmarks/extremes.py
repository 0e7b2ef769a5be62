"""Time of a model and its report with very many environments, or very many columns.

    python benchmarks/extremes.py            300,000 rows from up to 10,000 environments, and
                                             200 rows of up to 200,000 columns; some minutes
    python benchmarks/extremes.py --quick    small sizes, some seconds

*fit* is from an array or a frame to the model, *report* the models at other levels and the page.
CPU is the time of all cores together, which other load affects less. Both should grow with the
size, not with its square: the last column is the ratio of CPU to the previous case of the same kind
of table, divided by the ratio of the sizes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.report.page import make_report
from icscm.sources.memory import open_memory
from icscm.validation.path import compute_alpha_path

ENVIRONMENTS, COLUMNS = (1_000, 10_000), (20_000, 200_000)
QUICK_ENVIRONMENTS, QUICK_COLUMNS = (200, 400), (500, 1_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    data = make_conjunction(random_state=1)  # compiles what is not in the cache
    ICSCMClassifier(n_jobs=-1).fit(data.X, data.y, environments=data.environments)
    print("| table | fit | CPU | report | CPU | growth over size |")
    print("|---|---|---|---|---|---|", flush=True)
    sizes = QUICK_ENVIRONMENTS if quick else ENVIRONMENTS
    n_rows = 5_000 if quick else 300_000
    measure("{:,} environments, " + f"{n_rows:,} rows", sizes, lambda n: make_places(n_rows, n))
    for kind in ("bits", "floats"):
        for form in ("array", "frame"):
            name = f"{{:,}} columns of {kind} in {'a frame' if form == 'frame' else 'an array'}"
            sizes = QUICK_COLUMNS if quick else COLUMNS
            measure(name, sizes, lambda n, k=kind, f=form: make_wide(n, k, f))


Table = tuple[Any, Any, Any]


def make_places(n_rows: int, n_environments: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n_rows, 20))
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(n_rows) < 0.1)
    return X, y, rng.integers(0, n_environments, n_rows)


def make_wide(n_columns: int, kind: str, form: str) -> Table:
    rng = np.random.default_rng(0)
    shape = 200, n_columns
    X = rng.integers(0, 2, shape) if kind == "bits" else rng.normal(size=shape).round(3)
    y = (X[:, 0] > 0) & (X[:, 1] > 0)
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(n_columns)]) if form == "frame" else X
    return table, y.astype(int), rng.integers(0, 2, len(y))


def measure(name: str, sizes: tuple[int, ...], make: Callable[[int], Table]) -> None:
    before = None
    for size in sizes:
        (learner, samples), *fit = clock(learn, *make(size))
        _, *report = clock(write_report, learner, samples)
        cpu = fit[1] + report[1]
        growth = "" if before is None else f"{cpu / before[1] / (size / before[0]):.2f}"
        before = size, cpu
        times = " | ".join(f"{each:.2f} s" for each in (*fit, *report))
        print(f"| {name.format(size)} | {times} | {growth} |", flush=True)


def learn(X: Any, y: Any, environments: Any) -> tuple[ICSCMClassifier, Any]:
    learner = ICSCMClassifier(n_jobs=-1)
    samples = open_memory(X, y, environments=environments, preparation=learner.prepare())
    return learner.fit_counts(samples), samples


def write_report(learner: ICSCMClassifier, samples: Any) -> str:
    path = compute_alpha_path(samples.source, learner.make_settings(samples))
    return make_report(learner, path=path).to_html()


def clock(work: Callable[..., Any], *given: Any) -> tuple[Any, float, float]:
    """The result of a call, its seconds, and the CPU seconds of all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work(*given)
    return done, time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
