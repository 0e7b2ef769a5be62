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
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.report.page import make_report
from icscm.sources.memory import open_memory
from icscm.validation.path import compute_alpha_path

# Numbers of environments, and of columns.
ENVIRONMENTS = (1_000, 10_000)
COLUMNS = (20_000, 200_000)
QUICK_ENVIRONMENTS = (200, 400)
QUICK_COLUMNS = (500, 1_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    data = make_conjunction(random_state=1)  # compiles what is not in the cache
    ICSCMClassifier(n_jobs=-1).fit(data.X, data.y, environments=data.environments)
    print("| table | fit | CPU | report | CPU | growth over size |")
    print("|---|---|---|---|---|---|", flush=True)
    n_rows = 5_000 if quick else 300_000
    measure(
        f"environments, {n_rows:,} rows",
        sizes=QUICK_ENVIRONMENTS if quick else ENVIRONMENTS,
        make_table=partial(make_places, n_rows),
    )
    for kind in ("bits", "floats"):
        for form in ("array", "frame"):
            measure(
                f"columns of {kind} in {'a frame' if form == 'frame' else 'an array'}",
                sizes=QUICK_COLUMNS if quick else COLUMNS,
                make_table=partial(make_wide, kind, form),
            )


class Table(NamedTuple):
    X: Any
    y: Any
    environments: Any


def make_places(n_rows: int, n_environments: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n_rows, 20))
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(n_rows) < 0.1)
    return Table(X, y, environments=rng.integers(0, n_environments, n_rows))


def make_wide(kind: str, form: str, n_columns: int) -> Table:
    rng = np.random.default_rng(0)
    shape = 200, n_columns
    X = rng.integers(0, 2, shape) if kind == "bits" else rng.normal(size=shape).round(3)
    y = (X[:, 0] > 0) & (X[:, 1] > 0)
    environments = rng.integers(0, 2, len(y))
    if form == "frame":
        X = pd.DataFrame(X, columns=[f"g{j}" for j in range(n_columns)])
    return Table(X, y.astype(int), environments)


def measure(name: str, sizes: tuple[int, ...], make_table: Callable[[int], Table]) -> None:
    """Print a line for each size, with the growth of the CPU time since the one before."""
    size_before = None
    cpu_before = 0.0
    for size in sizes:
        table = make_table(size)
        fit = clock(lambda table=table: learn(table))
        report = clock(lambda fitted=fit.result: write_report(fitted))
        cpu = fit.cpu + report.cpu
        growth = ""
        if size_before is not None:
            growth = f"{cpu / cpu_before / (size / size_before):.2f}"
        size_before = size
        cpu_before = cpu
        times = [fit.wall, fit.cpu, report.wall, report.cpu]
        cells = " | ".join(f"{seconds:.2f} s" for seconds in times)
        print(f"| {size:,} {name} | {cells} | {growth} |", flush=True)


class Fitted(NamedTuple):
    learner: ICSCMClassifier
    countable: Any


def learn(table: Table) -> Fitted:
    learner = ICSCMClassifier(n_jobs=-1)
    countable = open_memory(
        table.X, table.y, environments=table.environments, preparation=learner.prepare()
    )
    return Fitted(learner.fit_counts(countable), countable)


def write_report(fitted: Fitted) -> str:
    settings = fitted.learner.make_settings(fitted.countable)
    path = compute_alpha_path(fitted.countable.source, settings)
    return make_report(fitted.learner, path=path).to_html()


class Timed(NamedTuple):
    """The result of a call, its seconds, and the CPU seconds of all cores."""

    result: Any
    wall: float
    cpu: float


def clock(work: Callable[[], Any]) -> Timed:
    wall_start = time.perf_counter()
    cpu_start = time.process_time()
    result = work()
    return Timed(result, wall=time.perf_counter() - wall_start, cpu=time.process_time() - cpu_start)


if __name__ == "__main__":
    main()
