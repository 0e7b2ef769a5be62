"""Measures the parts of the time of a fit on a Dask cluster, and tests a model that predicts it.

    python benchmarks/cluster.py            four sizes on two workers, a few minutes
    python benchmarks/cluster.py --quick    small sizes, half a minute

Three sizes give the constants of the cost model of docs/scaling.md; with them it predicts a fourth
of another shape, which is then measured. At the end the constants are carried over to a large
cluster, on paper. Tables are printed as they stand in docs/scaling.md.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from unittest import mock

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream, wait

from icscm import ICSCMClassifier
from icscm.exceptions import TooLittleDataWarning
from icscm.sources.dask import client
from icscm.sources.dask.client import FAN_IN
from icscm.sources.dask.opening import MAX_HASHES, open_dask

N_WORKERS = 2
N_ROUNDS = 3
PASSES = ("survey", "sample", "bin")
# of the machines in the example on paper
NETWORK = 1.25e9  # bytes per second: 10 Gbit/s
STORAGE = 1e9  # bytes per second that one machine reads
DISPATCH = 1e-3  # seconds of the scheduler for a task: the upper end of what Dask's manual gives
MEMORY_ADD = 1e-9  # seconds to add a cell of one cube to another


class Size(NamedTuple):
    n_rows: int
    n_columns: int
    n_environments: int
    n_partitions: int

    @property
    def cube_cells(self) -> int:
        return self.n_columns * 51 * 2 * self.n_environments


FULL = [Size(400_000, 20, 4, 4), Size(800_000, 20, 4, 8), Size(200_000, 100, 64, 4)]
FULL_FOURTH = Size(1_000_000, 50, 16, 8)
QUICK = [Size(20_000, 10, 4, 4), Size(60_000, 10, 4, 6), Size(40_000, 20, 8, 4)]
QUICK_FOURTH = Size(100_000, 15, 4, 8)


def make_block(size: Size, number: int) -> np.ndarray:
    """Rows of a noisy conjunction; the last two columns are label and environment."""
    rng = np.random.default_rng(number)
    block = rng.random((size.n_rows // size.n_partitions, size.n_columns + 2))
    y = (block[:, :3] > 0.4).all(axis=1) ^ (rng.random(len(block)) < 0.1)
    block[:, -2] = y
    block[:, -1] = rng.integers(0, size.n_environments, len(block))
    return block


def make_table(size: Size) -> da.Array:
    """A table made on the workers, as if read there."""
    shape = (size.n_rows // size.n_partitions, size.n_columns + 2)
    make = dask.delayed(partial(make_block, size))
    blocks = [da.from_delayed(make(i), shape, np.float64) for i in range(size.n_partitions)]
    table = da.concatenate(blocks).persist()
    wait(table)
    return table


@dataclass
class Run:
    """One fit: seconds in total and by kind of work."""

    size: Size
    wall: float
    passes: float  # of which before the first scan
    busy: dict[str, float]  # seconds of all workers together, by kind of task
    choosing: float
    n_tasks: int
    n_looks: int
    cells_counted: int

    @property
    def counting(self) -> float:
        return self.busy["count"] + self.busy["keep"]

    @property
    def picking(self) -> float:
        """Of the sample: hashes merged and chosen from, most of it on one worker."""
        return self.busy["merge"] + self.busy["choose"]

    @property
    def moving(self) -> float:
        return self.busy["transfer"] + self.busy["sum"]

    @property
    def idle(self) -> float:
        """The remaining wall time: the scheduler, and workers that wait for each other."""
        busy = sum(self.busy[each] for each in PASSES) + self.counting
        return max(0.0, self.wall - busy / N_WORKERS - self.picking - self.moving - self.choosing)


def measure(cluster: Client, size: Size) -> Run:
    table = make_table(size)
    X, y, e = table[:, :-2], table[:, -2].astype(int), table[:, -1].astype(int)
    learner = ICSCMClassifier(stop="coverage", max_rules=5, pruning=False, n_jobs=-1)
    in_source: list[float] = []
    start = time.perf_counter()
    with get_task_stream(cluster) as stream, timing(in_source):
        countable = open_dask(X, y, environments=e, preparation=learner.prepare())
        opened = time.perf_counter()
        in_source.clear()
        learner.fit_counts(countable)
    end = time.perf_counter()
    busy, n_tasks = add_up(stream.data)
    scans = [*learner.trace_.steps, *[learner.trace_.last_scan] * bool(learner.trace_.last_scan)]
    return Run(
        size,
        end - start,
        opened - start,
        busy,
        end - opened - sum(in_source),
        n_tasks,
        len(scans),
        count_cells(learner, size),
    )


@contextmanager
def timing(seconds: list[float]) -> Iterator[None]:
    """Notes the seconds that the source waits for the cluster: each of its methods ends there."""

    def time_it(function):
        def timed(tasks):
            start = time.perf_counter()
            found = function(tasks)
            seconds.append(time.perf_counter() - start)
            return found

        return timed

    timed = {name: time_it(getattr(client, name)) for name in ("compute", "persist")}
    with mock.patch.multiple(client, **timed):
        yield


def add_up(tasks: list[dict]) -> tuple[dict[str, float], int]:
    """Seconds by kind of task, transfers apart; and the number of tasks."""
    busy: dict[str, float] = defaultdict(float)
    for task in tasks:
        name = task["key"][0] if isinstance(task["key"], tuple) else str(task["key"])
        kind = name.split("-")[1] if str(name).startswith("icscm-") else "other"
        for part in task["startstops"]:
            what = kind if part["action"] == "compute" else "transfer"
            busy[what] += part["stop"] - part["start"]
    return busy, len(tasks)


def count_cells(learner: ICSCMClassifier, size: Size) -> int:
    """Cells of the table that were counted: all rows, then the smaller side of every rule."""
    steps = learner.trace_.steps
    sides = [min(np.sum(step.chosen.covered), np.sum(step.uncovered)) for step in steps]
    has_last_look = learner.trace_.last_scan is not None
    return int(size.n_rows + sum(sides if has_last_look else sides[:-1])) * size.n_columns


# --- the model of cost ---------------------------------------------------------


@dataclass
class Constants:
    """Seconds for each unit of work, and how much of it there is."""

    passes: dict[str, float]  # a cell of the table, in each of the three passes
    pick: float  # a row, whose hash is merged with others and chosen from
    count: float  # a cell that is counted
    n_counted: float  # how often each cell is counted in a fit
    move: float  # a cell of the cube, each scan: added up and moved
    choose: float  # a cell of the cube, each scan: utilities and tests
    task: float  # a task: the scheduler's and the workers' own time
    n_tasks: float  # of each partition, a pass or a scan

    def predict(self, size: Size, n_looks: int) -> float:
        """Predicted seconds of a fit, from its size and number of scans only."""
        cells = size.n_rows * size.n_columns
        return (
            cells * sum(self.passes.values()) / N_WORKERS
            + size.n_rows * self.pick
            + cells * self.n_counted * self.count / N_WORKERS
            + n_looks * size.cube_cells * (self.move + self.choose)
            + count_questions(size, n_looks) * self.n_tasks * self.task
        )


def count_questions(size: Size, n_looks: int) -> int:
    """Tasks: each partition has one per pass and two per scan, to keep and to count."""
    return size.n_partitions * (len(PASSES) + 2 * n_looks)


def find_constants(runs: list[Run]) -> Constants:
    """Each as the total seconds over the total work of the runs it comes from."""
    cells = sum(run.size.n_rows * run.size.n_columns for run in runs)
    counted = sum(run.cells_counted for run in runs)
    cubes = sum(run.n_looks * run.size.cube_cells for run in runs)
    tasks = sum(run.n_tasks for run in runs)
    return Constants(
        {each: sum(run.busy[each] for run in runs) / cells for each in PASSES},
        sum(run.picking for run in runs) / sum(run.size.n_rows for run in runs),
        sum(run.counting for run in runs) / counted,
        counted / cells,
        sum(run.moving for run in runs) / cubes,
        sum(run.choosing for run in runs) / cubes,
        sum(run.idle for run in runs) / tasks,
        tasks / sum(count_questions(run.size, run.n_looks) for run in runs),
    )


# --- tables --------------------------------------------------------------------


def print_split(runs: list[Run]) -> None:
    print(
        "| rows x columns, environments, partitions | scans | three passes | picking the sample "
        "| counting | moving and adding cubes | choosing | scheduling, waiting | wall |"
        f"\n{'|---' * 9}|"
    )
    for run in runs:
        size = run.size
        passes = sum(run.busy[each] for each in PASSES) / N_WORKERS
        print(
            f"| {size.n_rows:,} x {size.n_columns}, {size.n_environments}, {size.n_partitions} "
            f"| {run.n_looks} | {passes:.2f} | {run.picking:.2f} "
            f"| {run.counting / N_WORKERS:.2f} | {run.moving:.2f} "
            f"| {run.choosing:.2f} | {run.idle:.2f} | {run.wall:.2f} s |"
        )


def print_constants(found: Constants) -> None:
    print("\n| constant | measured |\n|---|---|")
    for name, seconds in found.passes.items():
        print(f"| {name}, a cell | {seconds * 1e9:.1f} ns |")
    print(f"| picking the sample, a row | {found.pick * 1e9:.0f} ns |")
    print(f"| counting, a cell | {found.count * 1e9:.2f} ns |")
    print(f"| times that a cell is counted in a fit | {found.n_counted:.2f} |")
    print(f"| adding and moving, a cell of the cube, a scan | {found.move * 1e9:.0f} ns |")
    print(f"| choosing, a cell of the cube, a scan | {found.choose * 1e9:.0f} ns |")
    print(f"| a task | {found.task * 1e3:.1f} ms |")
    print(f"| tasks for a partition in a pass or a question | {found.n_tasks:.1f} |")


def print_prediction(found: Constants, runs: list[Run], fourth: Run) -> None:
    print("\n| size | predicted | measured | ratio |\n|---|---|---|---|")
    for run in (*runs, fourth):
        size, predicted = run.size, found.predict(run.size, run.n_looks)
        what = " (not used for the constants)" if run is fourth else ""
        print(
            f"| {size.n_rows:,} x {size.n_columns}, {size.n_environments}{what} "
            f"| {predicted:.2f} s | {run.wall:.2f} s | {predicted / run.wall:.2f} |"
        )


def print_large(found: Constants) -> None:
    """10^9 rows x 500 columns, 64 environments, 100 machines of 16 cores, ten scans."""
    size, n_machines, n_cores, n_looks = Size(10**9, 500, 64, 1600), 100, 16, 10
    cells, cube = size.n_rows * size.n_columns, 8 * size.cube_cells
    levels = math.ceil(math.log(n_machines, FAN_IN))
    tasks = 2 * size.n_partitions + size.n_partitions * 2 // FAN_IN
    all_cores = n_machines * n_cores
    added = n_cores + levels * (FAN_IN - 1)  # cubes on the way from a core to the client
    seconds = {
        "reading, each of three passes": 8 * cells / (n_machines * STORAGE),
        "working on what was read, three passes": cells * sum(found.passes.values()) / all_cores,
        "picking the sample": 2 * 2 * MAX_HASHES * found.pick,
        "counting, at most twice the table, all scans": 2 * cells * found.count / all_cores,
        "moving cubes, a scan": (levels * (FAN_IN - 1) + 1) * cube / NETWORK,
        "adding cubes, a scan": added * size.cube_cells * MEMORY_ADD,
        "choosing, a scan": size.cube_cells * found.choose,
        "scheduling, a scan": tasks * DISPATCH,
    }
    print("\n| on paper | |\n|---|---|")
    print(f"| bytes of a cube | {cube / 1e6:.1f} MB |")
    print(f"| codes on one machine | {cells / n_machines / 1e9:.1f} GB |")
    print(f"| cubes that leave a machine, a scan | 1 of {n_machines} |")
    print(f"| bytes moved, a scan | {(n_machines - 1) * cube / 1e9:.1f} GB |")
    print(f"| levels of the tree between machines | {levels} |")
    print(f"| tasks, a scan | {tasks:,} |")
    for what, value in seconds.items():
        print(f"| {what} | {value:.1f} s |")
    each_look = sum(value for what, value in seconds.items() if what.endswith("a scan"))
    once = sum(value for what, value in seconds.items() if not what.endswith("a scan"))
    whole = once + 2 * seconds["reading, each of three passes"] + n_looks * each_look
    print(f"| a fit with {n_looks} scans | {whole:.0f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", TooLittleDataWarning)
    sizes, fourth = (QUICK, QUICK_FOURTH) if quick else (FULL, FULL_FOURTH)
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=N_WORKERS, **options) as machine, Client(machine) as cluster:
        measure(cluster, QUICK[0])  # compiles, imports
        # sizes alternate, so that other load affects all of them
        rounds = [[measure(cluster, size) for size in (*sizes, fourth)] for _ in range(N_ROUNDS)]
    *runs, last = (min(turns, key=lambda run: run.wall) for turns in zip(*rounds, strict=True))
    print(f"{N_WORKERS} workers of one thread; best of {N_ROUNDS} rounds, seconds\n")
    print_split([*runs, last])
    found = find_constants(runs)
    print_constants(found)
    print_prediction(found, runs, last)
    print_large(found)


if __name__ == "__main__":
    main()
