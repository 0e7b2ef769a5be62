"""The time and memory of a screen, one fit after the other, each in a process of its own.

Beside each screen stands a fit of scikit-learn's boosting on the same table with the same cores,
in units of which its time is shown. `ICSCM_BEFORE`, the folder `src` of an earlier version of this
project, adds that version on the same tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import icscm
from icscm.exceptions import IcscmError
from paper.base import Options, Summary, Table, make_long_plan
from paper.runner import Plan, Row, Rows, Task, split_failed
from paper.shares import find_mean, group_rows

TITLE = "The time of a screen"
DESCRIPTION = (
    "Seconds of `fit` on simulated tables of two classes, in fits of HistGradientBoosting with 60 "
    "iterations, and the memory it needs; with one core and with four."
)
IS_SERIAL = True

WORKER = Path(__file__).with_name("timed.py")
# The variable that names the sources of an earlier version.
BEFORE_VARIABLE = "ICSCM_BEFORE"
NOW, BEFORE = "now", "before"
N_ENVIRONMENTS = 8
# A fit that takes longer is ended.
MAX_SECONDS = 600
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
)
COLUMNS_OUT = ("seconds", "rounds", "input_mb", "peak_mb", "beyond_mb", "cores")


@dataclass(frozen=True)
class Size:
    """A table to be timed. `goal` is in seconds of one core, or in fits of boosting."""

    rows: int
    columns: int
    goal: float
    is_in_fits: bool = False

    def describe_goal(self, n_rejecting: int) -> str:
        """The goal as text; in fits, five more for each round that rejects."""
        if self.is_in_fits:
            return f"{self.goal + 5 * n_rejecting:g} fits"
        return f"{self.goal:g} s"


SIZES = {
    "20,000 x 20": Size(20_000, 20, goal=10, is_in_fits=True),
    "2,000 x 1,000": Size(2_000, 1_000, goal=60),
    "2,000 x 5,000": Size(2_000, 5_000, goal=300),
    "1,000,000 x 50": Size(1_000_000, 50, goal=600),
}
QUICK_SIZES = {"2,000 x 20": Size(2_000, 20, goal=10, is_in_fits=True)}
CORES = (1, 4)


def make_plan(options: Options) -> Plan:
    """A task for each size, table with and without a shortcut, number of cores, and fit."""
    sizes = QUICK_SIZES if options.quick else SIZES
    versions = [NOW] if not os.environ.get(BEFORE_VARIABLE) else [NOW, BEFORE]
    tasks = [
        {
            "seed": options.seed,
            "table": table,
            "shortcut": shortcut,
            "n_jobs": n_jobs,
            "fit": fit,
            "version": version,
        }
        for table in sizes
        for shortcut in ("no", "yes")
        for n_jobs in (CORES[:1] if options.quick else CORES)
        for fit in ("boosting", "screen")
        for version in (versions if fit == "screen" else [NOW])
        if version == NOW or n_jobs == 1
    ]
    return make_long_plan(options, tasks, run_task, COLUMNS_OUT)


def run_task(task: Task, _: int) -> Row:
    """Time a fit in a process of its own."""
    size = {**SIZES, **QUICK_SIZES}[task["table"]]
    request = {
        "fit": task["fit"],
        "rows": size.rows,
        "columns": size.columns,
        "environments": N_ENVIRONMENTS,
        "shortcut": task["shortcut"] == "yes",
        "n_jobs": task["n_jobs"],
    }
    sources = find_sources(task["version"])
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    environment.update(dict.fromkeys(THREAD_VARIABLES, str(task["n_jobs"])))
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(WORKER), json.dumps(request)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {**dict.fromkeys(COLUMNS_OUT, ""), "seconds": MAX_SECONDS}
    if done.returncode:
        last_line = done.stderr.strip().splitlines()[-1:]
        raise IcscmError(f"a timed fit failed: {' '.join(last_line)}")
    measured: Row = json.loads(done.stdout)
    return measured


def find_sources(version: str) -> Path:
    """The folder from which a version of icscm is imported."""
    if version == BEFORE:
        return Path(os.environ[BEFORE_VARIABLE]).resolve()
    return Path(icscm.__file__).parents[1]


# --- summary --------------------------------------------------------------------------------------


def summarise(rows: Rows) -> Summary:
    """Seconds, fits and memory of each screen; what more cores help; and the goals."""
    rows, failures = split_failed(rows)
    cells = group_rows(rows, "table", "shortcut", "n_jobs", "fit", "version")
    lines = [describe_screen(*key, cells=cells) for key in cells if key[3] == "screen"]
    cores = sorted({row["cores"] for row in rows if row["cores"]})
    caption = (
        f"Seconds of `fit`, {N_ENVIRONMENTS} environments, two classes, on a machine of "
        f"{' or '.join(cores)} cores; a fit is one of HistGradientBoosting with 60 iterations on "
        "the same table and cores, and the learner behind the screen. Memory: peak of the "
        "process, and beyond what it had with the table loaded."
    )
    header = ["table", "shortcut", "version", "cores", "seconds", "fits", "rounds", "goal",
              "peak (MB)", "beyond (MB)"]  # fmt: skip
    return Summary(
        [Table("screen-times", caption, header, sorted(lines, key=_sort_key))],
        (),
        [*_compare_cores(cells), *failures],
    )


Cells = dict[tuple[str, ...], list[Row]]


def describe_screen(
    table: str, shortcut: str, n_jobs: str, fit: str, version: str, *, cells: Cells
) -> list[str]:
    """A line of the table of times."""
    cell = cells[table, shortcut, n_jobs, fit, version]
    if not cell[0]["rounds"]:
        times = [f"more than {MAX_SECONDS}", "-", "-", "-"]
        return [table, shortcut, version, n_jobs, *times, "-", "-"]
    seconds = find_mean(cell, "seconds")
    boosting = cells.get((table, shortcut, n_jobs, "boosting", NOW))
    n_fits = f"{seconds / find_mean(boosting, 'seconds'):.1f}" if boosting else "-"
    rounds = int(cell[0]["rounds"])
    size = {**SIZES, **QUICK_SIZES}[table]
    goal = size.describe_goal(rounds - 1) if n_jobs == "1" else "-"
    memory = [f"{find_mean(cell, column):,.0f}" for column in ("peak_mb", "beyond_mb")]
    return [table, shortcut, version, n_jobs, f"{seconds:.1f}", n_fits, str(rounds), goal, *memory]


def _sort_key(line: Sequence[str]) -> tuple[int, str, str, int]:
    table, shortcut, version, n_jobs, *_ = line
    return [*SIZES, *QUICK_SIZES].index(table), shortcut, version, int(n_jobs)


def _compare_cores(cells: Cells) -> Iterator[str]:
    """How many times faster a screen is with more cores."""
    one, more = (str(n) for n in CORES)
    for table, shortcut, n_jobs, fit, version in list(cells):
        key = (table, shortcut, more, fit, version)
        if n_jobs == one and fit == "screen" and key in cells:
            seconds = [
                find_mean(cells[table, shortcut, n, fit, version], "seconds") for n in (one, more)
            ]
            ratio = seconds[0] / seconds[1]
            name = f"{table}, {'with' if shortcut == 'yes' else 'without'} a shortcut"
            yield f"{name}: {ratio:.1f} times faster on {more} cores."
