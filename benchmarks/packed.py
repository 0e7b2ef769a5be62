"""Speed and memory of zeros and ones as bits, relative to reading memory.

    python benchmarks/packed.py --scratch FOLDER         in memory, and a million columns in a file
    python benchmarks/packed.py --scratch FOLDER --huge  also 20 million columns: 5 GB of bits
    python benchmarks/packed.py --scratch FOLDER --quick small sizes, some seconds

Each case runs in a separate process, so that its memory can be measured. A *look* is one step of
the search: all candidates are counted, tested and compared; *counting* is its first part, and its
CPU the time of all cores together, which other load affects less.
The bandwidth is that of all cores adding up a large array, measured just before. Files are made
in the scratch folder and deleted. For comparison: pyscm took 20 s and 8.2 GB for 5,000 x 50,000.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A table: a Boolean array, a sparse matrix (csr), or a store in a file."""

    kind: str
    n_rows: int
    n_columns: int


CASES = [
    Case("bool", 5_000, 50_000),
    Case("bool", 2_000, 1_000_000),
    Case("csr", 2_000, 1_000_000),
]
FILES = [Case("file", 2_000, 1_000_000), Case("file", 10_000, 200_000)]
HUGE = [Case("file", 2_000, 20_000_000)]
# A file is measured with each of these, an array with the first.
N_ENVIRONMENTS = [2, 10, 50]
QUICK = [Case("bool", 500, 5_000), Case("csr", 500, 5_000), Case("file", 500, 50_000)]
REPEATS = 3
# Patterns made at a time.
BATCH = 2**17


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--huge", action="store_true", help="also 20 million columns (5 GB)")
    parser.add_argument("--only-huge", action="store_true", help="nothing but these")
    options = parser.parse_args()
    if options.only_huge:
        cases = HUGE
    elif options.quick:
        cases = QUICK
    else:
        cases = CASES + FILES + (HUGE if options.huge else [])
    print("| table | environments | fit | rules | beyond the input | look | counting ", end="")
    print("| its CPU | bandwidth |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for case in cases:
        for result in run_worker(case, options.scratch):
            print(describe(case, result), flush=True)


def run_worker(case: Case, scratch: Path) -> list[dict[str, float]]:
    """The results for each number of environments."""
    command = [sys.executable, __file__, "worker", *map(str, case), str(scratch)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def find_share(result: dict[str, float], what: str) -> float:
    """The share of the memory bandwidth."""
    return result["bit_bytes"] / result[what] / result["bandwidth"]


def describe(case: Case, result: dict[str, float]) -> str:
    """A line of the table."""

    def describe_rate(what: str) -> str:
        seconds = result[what]
        cells = case.n_rows * case.n_columns / seconds
        share = find_share(result, what)
        return f"{seconds:.3f} s, {cells:.2g} cells/s, {share:.2f} of bandwidth"

    return (
        f"| {case.n_rows:,} x {case.n_columns:,} {case.kind} | {result['n_environments']} | "
        f"{result['fit']:.2f} s | {result['n_rules']} | "
        f"{result['extra_bytes'] / 1e6:,.0f} MB (bits: {result['bit_bytes'] / 1e6:,.0f}) | "
        f"{describe_rate('look')} | {describe_rate('counting')} | {result['cpu']:.3f} s | "
        f"{result['bandwidth'] / 1e9:.1f} GB/s |"
    )


# --- in a separate process -----------------------------------------------------


class Task(NamedTuple):
    """How a learner is fitted to a table, and how the table is opened as a source of rows."""

    n_environments: int
    fit: Callable[[Any], Any]
    open_source: Callable[[Any], Any]


def work(case: Case, scratch: Path) -> None:
    """Measure a case, and print the results as JSON."""
    from icscm import ICSCMClassifier

    warnings.simplefilter("ignore")
    learner = ICSCMClassifier(stop="coverage", pruning=False, n_jobs=-1)
    prepare = prepare_file if case.kind == "file" else prepare_array
    small_case = Case(case.kind, n_rows=200, n_columns=1000)
    for task in prepare(small_case, scratch):
        task.fit(learner)  # compiles the kernels
    print(json.dumps([measure(learner, case, task) for task in prepare(case, scratch)]))


def measure(learner, case: Case, task: Task) -> dict[str, float]:
    before = read_resident_bytes()
    reset_peak()
    seconds = min(take_time(partial(task.fit, learner)) for _ in range(REPEATS))
    extra_bytes = read_peak_bytes() - before
    words_of_column = -(-case.n_rows // 64)  # rounded up
    return {
        "n_environments": task.n_environments,
        "fit": seconds,
        "n_rules": len(learner.trace_.steps),
        "extra_bytes": extra_bytes,
        "bit_bytes": case.n_columns * 8 * words_of_column,
        **measure_rates(task.open_source(learner)),
    }


def measure_rates(source) -> dict[str, float]:
    """The best of some alternating rounds, so that other load affects all alike."""
    best = {"bandwidth": 0.0, "look": np.inf, "counting": np.inf, "cpu": np.inf}
    for _ in range(2 * REPEATS):
        bandwidth = measure_bandwidth()
        look_seconds = take_time(partial(look, source))
        cpu_start = time.process_time()
        counting_seconds = take_time(partial(count, source))
        cpu_seconds = time.process_time() - cpu_start

        best["bandwidth"] = max(best["bandwidth"], bandwidth)
        best["look"] = min(best["look"], look_seconds)
        best["counting"] = min(best["counting"], counting_seconds)
        best["cpu"] = min(best["cpu"], cpu_seconds)
    return best


def count(source) -> None:
    for _ in source.count_cubes():
        pass


def look(source) -> None:
    """One step of the search, on a source that stays unchanged."""
    from icscm.search.candidate_scanner import CandidateScanner
    from icscm.search.settings import Settings
    from icscm.search.view import ConjunctionView
    from icscm.stats.independence import ChiSquaredTest

    settings = Settings(test=ChiSquaredTest(), stop="coverage")
    view = ConjunctionView(source, settings)
    root = view.make_root()
    CandidateScanner(view, n_rows=root.n_rows).scan(root)


def prepare_array(case: Case, _: Path) -> list[Task]:
    """One task, on a table in memory."""
    from icscm.sources import open_memory

    rng = np.random.default_rng(0)
    density = 0.05 if case.kind == "csr" else 0.5
    X = np.empty((case.n_rows, case.n_columns), dtype=np.bool_)
    for row in X:
        row[:] = rng.random(case.n_columns, dtype=np.float32) < density
    y = draw_labels(X[:, :3], rng)
    n_environments = N_ENVIRONMENTS[0]
    environments = rng.integers(0, n_environments, case.n_rows)
    if case.kind == "csr":
        import scipy.sparse as sp

        X = sp.csr_array(X)

    def fit(learner):
        return learner.fit(X, y, environments=environments)

    def open_source(learner):
        preparation = learner.prepare()
        return open_memory(X, y, environments=environments, preparation=preparation).source

    return [Task(n_environments, fit, open_source)]


def prepare_file(case: Case, scratch: Path) -> list[Task]:
    """Tasks on a store in a file, for each number of environments."""
    import pandas as pd

    from icscm.sources import open_bits
    from icscm.sources.bits.store import open_store

    path = scratch / "benchmark.bits"
    first_columns = make_file(path, case.n_rows, case.n_columns)
    bits = open_store(path)
    path.unlink()  # it stays readable until the end of this process

    def open_countable(labels):
        return open_bits(bits, labels, "y", environments="e")

    rng = np.random.default_rng(1)
    y = draw_labels(first_columns, rng)
    tasks = []
    for n_environments in N_ENVIRONMENTS:
        environments = rng.integers(0, n_environments, case.n_rows)
        labels = pd.DataFrame({"genome": bits.samples, "y": y, "e": environments})
        task = Task(
            n_environments,
            fit=lambda learner, labels=labels: learner.fit_counts(open_countable(labels)),
            open_source=lambda _, labels=labels: open_countable(labels).source,
        )
        tasks.append(task)
    return tasks


def make_file(path: Path, n_rows: int, n_columns: int) -> np.ndarray:
    """Write a store of random patterns; return its first three columns."""
    from icscm.sources.bits.packing import write_bits
    from icscm.sources.bits.store import count_words

    n_words = count_words(n_rows)
    n_bytes = n_columns * n_words * 8
    free = shutil.disk_usage(path.parent).free
    if free < 2 * n_bytes:
        raise SystemExit(f"{path.parent} has {free:,} bytes free; {2 * n_bytes:,} are wanted")

    is_row = np.arange(n_words * 64) < n_rows  # the last bits of the last word are no rows
    mask = np.packbits(is_row, bitorder="little").view(np.uint64)
    rng = np.random.default_rng(0)
    first_patterns = []

    def fill(writer) -> None:
        for start in range(0, n_columns, BATCH):
            size = min(BATCH, n_columns - start)
            words = rng.integers(2**64, size=(size, n_words), dtype=np.uint64) & mask
            if start == 0:
                first_patterns.extend(words[:3])
            writer.add(words)

    write_bits(path, [f"g{number}" for number in range(n_rows)], fill)
    columns = [
        np.unpackbits(pattern.view(np.uint8), bitorder="little")[:n_rows]
        for pattern in first_patterns
    ]
    return np.column_stack(columns).astype(np.bool_)


def draw_labels(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The conjunction of three columns, or of their negations if ones are rare; 10 % inverted."""
    truth = (~X).all(axis=1) if X.mean() < 0.25 else X.all(axis=1)
    return truth ^ (rng.random(len(X)) < 0.1)


def take_time(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure_bandwidth() -> float:
    """Bytes per second that all cores read together."""
    n_threads = len(os.sched_getaffinity(0))
    parts = np.array_split(np.arange(2**26, dtype=np.uint64), n_threads)
    with ThreadPoolExecutor(n_threads) as pool:
        read = min(take_time(lambda: list(pool.map(np.sum, parts))) for _ in range(REPEATS))
    return 2**26 * 8 / read


def read_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def read_peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        kind, n_rows, n_columns, scratch = sys.argv[2:]
        work(Case(kind, int(n_rows), int(n_columns)), Path(scratch))
    else:
        main()
