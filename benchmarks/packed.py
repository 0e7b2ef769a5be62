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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

CASES = [("bool", 5_000, 50_000), ("bool", 2_000, 1_000_000), ("csr", 2_000, 1_000_000)]
FILES = [("file", 2_000, 1_000_000), ("file", 10_000, 200_000)]
HUGE = [("file", 2_000, 20_000_000)]
N_ENVIRONMENTS = [2, 10, 50]
QUICK = [("bool", 500, 5_000), ("csr", 500, 5_000), ("file", 500, 50_000)]
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
    cases = QUICK if options.quick else CASES + FILES + HUGE * options.huge
    cases = HUGE if options.only_huge else cases
    print("| table | environments | fit | rules | beyond the input | look | counting ", end="")
    print("| its CPU | bandwidth |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for case in cases:
        for found in run_worker(*case, options.scratch):
            print(describe(*case, found), flush=True)


def run_worker(kind: str, n_rows: int, n_columns: int, scratch: Path) -> list[dict[str, float]]:
    """The results for each number of environments."""
    command = [sys.executable, __file__, "worker", kind, str(n_rows), str(n_columns), str(scratch)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def find_share(found: dict[str, float], what: str) -> float:
    """The share of the memory bandwidth."""
    return found["bit_bytes"] / found[what] / found["bandwidth"]


def describe(kind: str, n_rows: int, n_columns: int, found: dict[str, float]) -> str:
    def rate(name: str) -> str:
        cells = n_rows * n_columns / found[name]
        share = find_share(found, name)
        return f"{found[name]:.3f} s, {cells:.2g} cells/s, {share:.2f} of bandwidth"

    return (
        f"| {n_rows:,} x {n_columns:,} {kind} | {found['n_environments']} | "
        f"{found['fit']:.2f} s | {found['n_rules']} | "
        f"{found['extra_bytes'] / 1e6:,.0f} MB (bits: {found['bit_bytes'] / 1e6:,.0f}) | "
        f"{rate('look')} | {rate('counting')} | {found['cpu']:.3f} s | "
        f"{found['bandwidth'] / 1e9:.1f} GB/s |"
    )


# --- in a separate process -----------------------------------------------------


def work(kind: str, n_rows: int, n_columns: int, scratch: Path) -> None:
    from icscm import ICSCMClassifier

    warnings.simplefilter("ignore")
    learner = ICSCMClassifier(stop="coverage", pruning=False, n_jobs=-1)
    prepare = prepare_file if kind == "file" else prepare_array
    for fit, _ in prepare(kind, 200, 1000, scratch):
        fit(learner)  # compiles the kernels
    fits = prepare(kind, n_rows, n_columns, scratch)
    found = [measure(learner, n_rows, n_columns, *each) for each in fits]
    numbers = [{"n_environments": n} for n in N_ENVIRONMENTS]
    print(json.dumps([one | number for one, number in zip(found, numbers, strict=False)]))


def measure(learner, n_rows: int, n_columns: int, fit, make_source) -> dict[str, float]:
    before = read_resident_bytes()
    reset_peak()
    seconds = min(take_time(lambda: fit(learner)) for _ in range(REPEATS))
    extra_bytes = read_peak_bytes() - before
    source = make_source(learner)
    return {
        "fit": seconds,
        "n_rules": len(learner.trace_.steps),
        "extra_bytes": extra_bytes,
        "bit_bytes": n_columns * 8 * -(-n_rows // 64),
        **measure_rates(source),
    }


def measure_rates(source) -> dict[str, float]:
    """The best of some alternating rounds, so that other load affects all alike."""
    found = {"bandwidth": 0.0, "look": np.inf, "counting": np.inf, "cpu": np.inf}
    for _ in range(2 * REPEATS):
        found["bandwidth"] = max(found["bandwidth"], measure_bandwidth())
        found["look"] = min(found["look"], take_time(lambda: look(source)))
        start = time.process_time()
        found["counting"] = min(found["counting"], take_time(lambda: count(source)))
        found["cpu"] = min(found["cpu"], time.process_time() - start)
    return found


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


def prepare_array(kind: str, n_rows: int, n_columns: int, _: Path):
    from icscm.sources import open_memory

    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_columns), dtype=np.bool_)
    for row in X:
        row[:] = rng.random(n_columns, dtype=np.float32) < (0.05 if kind == "csr" else 0.5)
    y, (e, *_) = label(X[:, :3], rng)
    if kind == "csr":
        import scipy.sparse as sp

        X = sp.csr_array(X)
    return [
        (
            lambda learner: learner.fit(X, y, environments=e),
            lambda learner: open_memory(X, y, environments=e, preparation=learner.prepare()).source,
        )
    ]


def prepare_file(_: str, n_rows: int, n_columns: int, scratch: Path):
    import pandas as pd

    from icscm.sources import open_bits
    from icscm.sources.bits.store import open_store

    path = scratch / "benchmark.bits"
    first = make_file(path, n_rows, n_columns)
    bits = open_store(path)
    path.unlink()  # it stays readable until the end of this process
    y, places = label(first, np.random.default_rng(1))
    frames = [pd.DataFrame({"genome": bits.samples, "y": y, "e": e}) for e in places]
    return [
        (
            lambda learner, frame=frame: learner.fit_counts(
                open_bits(bits, frame, "y", environments="e")
            ),
            lambda _, frame=frame: open_bits(bits, frame, "y", environments="e").source,
        )
        for frame in frames
    ]


def make_file(path: Path, n_rows: int, n_columns: int) -> np.ndarray:
    """A store of random patterns; returns its first features."""
    from icscm.sources.bits.packing import write_bits
    from icscm.sources.bits.store import count_words

    n_words = count_words(n_rows)
    n_bytes = n_columns * n_words * 8
    free = shutil.disk_usage(path.parent).free
    if free < 2 * n_bytes:
        raise SystemExit(f"{path.parent} has {free:,} bytes free; {2 * n_bytes:,} are wanted")
    rng = np.random.default_rng(0)
    used = np.zeros(n_words * 64, dtype=np.uint8)
    used[:n_rows] = 1
    used = np.packbits(used, bitorder="little").view(np.uint64)
    first = []

    def fill(writer) -> None:
        for start in range(0, n_columns, BATCH):
            size = min(BATCH, n_columns - start)
            words = rng.integers(2**64, size=(size, n_words), dtype=np.uint64) & used
            first.extend(words[:3] if start == 0 else [])
            writer.add(words)

    write_bits(path, [f"g{i}" for i in range(n_rows)], fill)
    bits = [np.unpackbits(each.view(np.uint8), bitorder="little")[:n_rows] for each in first]
    return np.column_stack(bits).astype(np.bool_)


def label(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """A conjunction of three features, a tenth of the labels inverted; few or many environments."""
    truth = (~X).all(axis=1) if X.mean() < 0.25 else X.all(axis=1)
    y = truth ^ (rng.random(len(X)) < 0.1)
    return y, [rng.integers(0, n, len(X)) for n in N_ENVIRONMENTS]


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
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
