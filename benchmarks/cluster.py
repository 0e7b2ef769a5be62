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
# Of the machines in the example on paper.
NETWORK = 1.25e9  # bytes per second: 10 Gbit/s
STORAGE = 1e9  # bytes per second that one machine reads
DISPATCH = 1e-3  # seconds of the scheduler for a task: the upper end of what Dask's manual gives
MEMORY_ADD = 1e-9  # seconds to add a cell of one cube to another


class Size(NamedTuple):
    """The size of a table, of which a partition is what one task reads."""

    n_rows: int
    n_columns: int
    n_environments: int
    n_partitions: int

    @property
    def n_cells(self) -> int:
        return self.n_rows * self.n_columns

    @property
    def cube_cells(self) -> int:
        """Counts by column, bin, label and environment: what each scan adds up and moves."""
        return self.n_columns * 51 * 2 * self.n_environments

    @property
    def block_shape(self) -> tuple[int, int]:
        """Of a partition, which has two columns more, for label and environment."""
        return self.n_rows // self.n_partitions, self.n_columns + 2


FULL = [Size(400_000, 20, 4, 4), Size(800_000, 20, 4, 8), Size(200_000, 100, 64, 4)]
FULL_FOURTH = Size(1_000_000, 50, 16, 8)
QUICK = [Size(20_000, 10, 4, 4), Size(60_000, 10, 4, 6), Size(40_000, 20, 8, 4)]
QUICK_FOURTH = Size(100_000, 15, 4, 8)


def make_block(size: Size, number: int) -> np.ndarray:
    """Rows of a noisy conjunction; the last two columns are label and environment."""
    rng = np.random.default_rng(number)
    block = rng.random(size.block_shape)
    y = (block[:, :3] > 0.4).all(axis=1) ^ (rng.random(len(block)) < 0.1)
    block[:, -2] = y
    block[:, -1] = rng.integers(0, size.n_environments, len(block))
    return block


def make_table(size: Size) -> da.Array:
    """A table made on the workers, as if read there."""
    make = dask.delayed(partial(make_block, size))
    blocks = [
        da.from_delayed(make(number), size.block_shape, np.float64)
        for number in range(size.n_partitions)
    ]
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
    n_scans: int
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
        working = sum(self.busy[name] for name in PASSES) + self.counting
        explained = working / N_WORKERS + self.picking + self.moving + self.choosing
        return max(0.0, self.wall - explained)


def measure(cluster: Client, size: Size) -> Run:
    """Fit once, and divide the time by kind of work."""
    table = make_table(size)
    X = table[:, :-2]
    y = table[:, -2].astype(int)
    environments = table[:, -1].astype(int)
    learner = ICSCMClassifier(stop="coverage", max_rules=5, pruning=False, n_jobs=-1)

    waiting: list[float] = []  # seconds in which the search waits for the cluster
    start = time.perf_counter()
    with get_task_stream(cluster) as stream, noting_waits(waiting):
        countable = open_dask(X, y, environments=environments, preparation=learner.prepare())
        opened = time.perf_counter()
        waiting.clear()
        learner.fit_counts(countable)
    end = time.perf_counter()

    n_last_scans = 0 if learner.trace_.last_scan is None else 1  # one that chose no rule
    return Run(
        size=size,
        wall=end - start,
        passes=opened - start,
        busy=sum_seconds(stream.data),
        choosing=end - opened - sum(waiting),
        n_tasks=len(stream.data),
        n_scans=len(learner.trace_.steps) + n_last_scans,
        cells_counted=count_cells(learner, size),
    )


@contextmanager
def noting_waits(seconds: list[float]) -> Iterator[None]:
    """Notes the seconds that the source waits for the cluster: each of its methods ends there."""

    def time_calls(function):
        def timed(tasks):
            start = time.perf_counter()
            result = function(tasks)
            seconds.append(time.perf_counter() - start)
            return result

        return timed

    timed = {name: time_calls(getattr(client, name)) for name in ("compute", "persist")}
    with mock.patch.multiple(client, **timed):
        yield


def sum_seconds(tasks: list[dict]) -> dict[str, float]:
    """Seconds by kind of task, transfers apart. Our keys are such as icscm-count-3f2a."""
    busy: dict[str, float] = defaultdict(float)
    for task in tasks:
        key = task["key"]
        name = str(key[0] if isinstance(key, tuple) else key)
        kind = name.split("-")[1] if name.startswith("icscm-") else "other"
        for interval in task["startstops"]:
            activity = kind if interval["action"] == "compute" else "transfer"
            busy[activity] += interval["stop"] - interval["start"]
    return busy


def count_cells(learner: ICSCMClassifier, size: Size) -> int:
    """Cells of the table that were counted: all rows, then the smaller side of every rule."""
    steps = learner.trace_.steps
    smaller_sides = [min(np.sum(step.chosen.covered), np.sum(step.uncovered)) for step in steps]
    if learner.trace_.last_scan is None:  # nothing was counted after the last rule
        smaller_sides = smaller_sides[:-1]
    return int(size.n_rows + sum(smaller_sides)) * size.n_columns


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

    def predict(self, size: Size, n_scans: int) -> float:
        """Predicted seconds of a fit, from its size and number of scans only."""
        passes = size.n_cells * sum(self.passes.values()) / N_WORKERS
        picking = size.n_rows * self.pick
        counting = size.n_cells * self.n_counted * self.count / N_WORKERS
        adding_and_choosing = n_scans * size.cube_cells * (self.move + self.choose)
        scheduling = count_questions(size, n_scans) * self.n_tasks * self.task
        return passes + picking + counting + adding_and_choosing + scheduling


def count_questions(size: Size, n_scans: int) -> int:
    """What each partition is asked: one thing in a pass, two in a scan, to keep and to count."""
    return size.n_partitions * (len(PASSES) + 2 * n_scans)


def find_constants(runs: list[Run]) -> Constants:
    """Each as the total seconds over the total work of the runs it comes from."""
    rows = sum(run.size.n_rows for run in runs)
    cells = sum(run.size.n_cells for run in runs)
    counted = sum(run.cells_counted for run in runs)
    cube_cells = sum(run.n_scans * run.size.cube_cells for run in runs)
    tasks = sum(run.n_tasks for run in runs)
    questions = sum(count_questions(run.size, run.n_scans) for run in runs)
    return Constants(
        passes={name: sum(run.busy[name] for run in runs) / cells for name in PASSES},
        pick=sum(run.picking for run in runs) / rows,
        count=sum(run.counting for run in runs) / counted,
        n_counted=counted / cells,
        move=sum(run.moving for run in runs) / cube_cells,
        choose=sum(run.choosing for run in runs) / cube_cells,
        task=sum(run.idle for run in runs) / tasks,
        n_tasks=tasks / questions,
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
        passes = sum(run.busy[name] for name in PASSES) / N_WORKERS
        print(
            f"| {size.n_rows:,} x {size.n_columns}, {size.n_environments}, {size.n_partitions} "
            f"| {run.n_scans} | {passes:.2f} | {run.picking:.2f} "
            f"| {run.counting / N_WORKERS:.2f} | {run.moving:.2f} "
            f"| {run.choosing:.2f} | {run.idle:.2f} | {run.wall:.2f} s |"
        )


def print_constants(constants: Constants) -> None:
    print("\n| constant | measured |\n|---|---|")
    for name, seconds in constants.passes.items():
        print(f"| {name}, a cell | {seconds * 1e9:.1f} ns |")
    print(f"| picking the sample, a row | {constants.pick * 1e9:.0f} ns |")
    print(f"| counting, a cell | {constants.count * 1e9:.2f} ns |")
    print(f"| times that a cell is counted in a fit | {constants.n_counted:.2f} |")
    print(f"| adding and moving, a cell of the cube, a scan | {constants.move * 1e9:.0f} ns |")
    print(f"| choosing, a cell of the cube, a scan | {constants.choose * 1e9:.0f} ns |")
    print(f"| a task | {constants.task * 1e3:.1f} ms |")
    print(f"| tasks for a partition in a pass or a question | {constants.n_tasks:.1f} |")


def print_prediction(constants: Constants, runs: list[Run], fourth: Run) -> None:
    print("\n| size | predicted | measured | ratio |\n|---|---|---|---|")
    for run in (*runs, fourth):
        size = run.size
        predicted = constants.predict(size, run.n_scans)
        note = " (not used for the constants)" if run is fourth else ""
        print(
            f"| {size.n_rows:,} x {size.n_columns}, {size.n_environments}{note} "
            f"| {predicted:.2f} s | {run.wall:.2f} s | {predicted / run.wall:.2f} |"
        )


def print_large(constants: Constants) -> None:
    """10^9 rows x 500 columns, 64 environments, 100 machines of 16 cores, ten scans."""
    size = Size(n_rows=10**9, n_columns=500, n_environments=64, n_partitions=1600)
    n_machines = 100
    n_cores_of_machine = 16
    n_scans = 10
    n_cores = n_machines * n_cores_of_machine
    cube_bytes = 8 * size.cube_cells

    # Cubes are added up in a tree: each machine receives and adds those of some others.
    n_levels = math.ceil(math.log(n_machines, FAN_IN))
    n_received = n_levels * (FAN_IN - 1)
    n_added = n_cores_of_machine + n_received  # on the way from a core to the client
    n_tasks = 2 * size.n_partitions + size.n_partitions * 2 // FAN_IN

    reading_once = 8 * size.n_cells / (n_machines * STORAGE)
    seconds_of_fit = {
        "reading, each of three passes": reading_once,
        "working on what was read, three passes": size.n_cells
        * sum(constants.passes.values())
        / n_cores,
        "picking the sample": 2 * 2 * MAX_HASHES * constants.pick,
        "counting, at most twice the table, all scans": 2
        * size.n_cells
        * constants.count
        / n_cores,
    }
    seconds_of_scan = {
        "moving cubes, a scan": (n_received + 1) * cube_bytes / NETWORK,
        "adding cubes, a scan": n_added * size.cube_cells * MEMORY_ADD,
        "choosing, a scan": size.cube_cells * constants.choose,
        "scheduling, a scan": n_tasks * DISPATCH,
    }

    print("\n| on paper | |\n|---|---|")
    print(f"| bytes of a cube | {cube_bytes / 1e6:.1f} MB |")
    print(f"| codes on one machine | {size.n_cells / n_machines / 1e9:.1f} GB |")
    print(f"| cubes that leave a machine, a scan | 1 of {n_machines} |")
    print(f"| bytes moved, a scan | {(n_machines - 1) * cube_bytes / 1e9:.1f} GB |")
    print(f"| levels of the tree between machines | {n_levels} |")
    print(f"| tasks, a scan | {n_tasks:,} |")
    for what, seconds in {**seconds_of_fit, **seconds_of_scan}.items():
        print(f"| {what} | {seconds:.1f} s |")
    further_reading = 2 * reading_once  # of the three passes, one is among the above
    once = sum(seconds_of_fit.values()) + further_reading
    total = once + n_scans * sum(seconds_of_scan.values())
    print(f"| a fit with {n_scans} scans | {total:.0f} s |")


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
    runs_by_size = zip(*rounds, strict=True)
    *runs, fourth_run = (min(runs, key=lambda run: run.wall) for runs in runs_by_size)
    print(f"{N_WORKERS} workers of one thread; best of {N_ROUNDS} rounds, seconds\n")
    print_split([*runs, fourth_run])
    constants = find_constants(runs)
    print_constants(constants)
    print_prediction(constants, runs, fourth_run)
    print_large(constants)


if __name__ == "__main__":
    main()
