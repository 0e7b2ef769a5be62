"""Speed and memory of fits from a folder of Parquet files larger than the memory limit.

    python benchmarks/files.py                       20 million rows x 50 columns, 8 GB
    python benchmarks/files.py --quick               a small one, for CI
    python benchmarks/files.py --folder /data/tmp    where the files are made, and removed again

Fits run in separate processes, so that the peak of resident memory (VmHWM) is theirs alone.
The rate in memory is measured in the same run, on the first of the same files.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icscm import ICSCMClassifier
from icscm.sources.files import opening

N_SITES = 4


def main():
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(WORKERS[arguments.worker](arguments)))
    else:
        measure(arguments)


def measure(arguments):
    """The rate of files as a share of that of reading them into memory and fitting there."""
    folder = Path(tempfile.mkdtemp(prefix="icscm-benchmark-", dir=arguments.folder))
    try:
        return compare(arguments, folder)
    finally:
        shutil.rmtree(folder)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--file-rows", type=int, default=1_000_000)
    parser.add_argument("--memory-files", type=int, default=2, help="files that are read whole")
    parser.add_argument("--max-memory", default="2GiB")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.rows = 400_000
        arguments.file_rows = 100_000
    return arguments


def compare(arguments, folder):
    started = time.perf_counter()
    size = write_files(folder, arguments)
    print(
        f"{arguments.rows:,} rows x {arguments.columns} float64 columns, {size / 1e9:.2f} GB, "
        f"written in {time.perf_counter() - started:.0f} s"
    )
    files = run_worker("files", folder, arguments)
    memory = run_worker("memory", folder, arguments)
    for line in files["passes"]:
        print(f"  {line}")
    print(f"  search: {files['seconds'] - files['passes_seconds']:.2f} s")
    print(f"  model: {files['model']}")
    print_rate("files", files)
    print_rate("memory, files read", memory)
    print_rate("memory, from an array", {**memory, "seconds": memory["array_seconds"]})

    rate = files["rows"] / files["seconds"]
    share_of_files_read = rate * memory["seconds"] / memory["rows"]
    share_of_array = rate * memory["array_seconds"] / memory["rows"]
    print(f"rate of files / rate in memory, files read: {share_of_files_read:.2f}")
    print(f"rate of files / rate in memory, from an array: {share_of_array:.2f}")
    return share_of_files_read


def print_rate(what, result):
    n_rows = result["rows"]
    seconds = result["seconds"]
    print(
        f"{what}: {n_rows:,} rows in {seconds:.1f} s, {n_rows / seconds:,.0f} rows "
        f"per second, peak {result['peak'] / 2**20:,.0f} MiB"
    )


def write_files(folder, arguments):
    """Rows whose label depends on two columns, and an effect of it that differs by site."""
    rng = np.random.default_rng(0)
    size = 0
    for number, start in enumerate(range(0, arguments.rows, arguments.file_rows)):
        n_rows = min(arguments.file_rows, arguments.rows - start)
        site = rng.integers(0, N_SITES, n_rows)
        columns = {f"x{j}": rng.standard_normal(n_rows) for j in range(arguments.columns)}
        columns["x0"] += 0.3 * site
        label = (columns["x0"] > 0) & (columns["x1"] > -0.5)
        label ^= rng.random(n_rows) < 0.1
        columns["x2"] += label * (1 + site)
        path = folder / f"part{number:03}.parquet"
        table = pa.table({**columns, "site": site, "y": label})
        pq.write_table(table, path, use_dictionary=["site", "y"])
        size += path.stat().st_size
    return size


def run_worker(worker, folder, arguments):
    command = [sys.executable, __file__, "--worker", worker, "--folder", str(folder)]
    command += ["--memory-files", str(arguments.memory_files)]
    command += ["--max-memory", arguments.max_memory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


# The functions that read the files, with what they are called in the output.
PASSES = {"_survey": "pass one", "_read_sample": "sampled rows", "_write_codes": "pass two"}


def fit_files(arguments):
    """Fit in passes, and time each of them."""
    warm_up()
    passes = {}
    for name, title in PASSES.items():
        setattr(opening, name, take_time(getattr(opening, name), title, passes))
    started = time.perf_counter()
    fitted = ICSCMClassifier(n_jobs=-1).fit_dataset(
        arguments.folder, target="y", environments="site", max_memory=arguments.max_memory
    )
    return {
        "seconds": time.perf_counter() - started,
        "passes": [f"{title}: {seconds:.2f} s" for title, seconds in passes.items()],
        "passes_seconds": sum(passes.values()),
        "rows": int(np.sum(fitted.model_.leaves)),
        "model": str(fitted.model_),
        "peak": read_peak(),
    }


def take_time(function, title, passes):
    """The function, which then also records its time under a title."""

    def timed(*arguments):
        started = time.perf_counter()
        result = function(*arguments)
        passes[title] = time.perf_counter() - started
        return result

    return timed


def fit_memory(arguments):
    """The best of some rounds, which is the strictest reference."""
    warm_up()
    rounds = [fit_memory_once(arguments) for _ in range(3)]
    return {key: min(result[key] for result in rounds) for key in rounds[0]}


def fit_memory_once(arguments):
    """Read files and fit, then fit again from an array."""
    started = time.perf_counter()
    paths = sorted(Path(arguments.folder).iterdir())[: arguments.memory_files]
    table = pa.concat_tables([pq.read_table(path) for path in paths])
    X = table.drop_columns(["y", "site"])
    y = table["y"]
    site = table["site"]
    ICSCMClassifier(n_jobs=-1).fit(X, y, environments=site)
    seconds = time.perf_counter() - started
    peak = read_peak()

    array = as_array(X)
    started = time.perf_counter()
    ICSCMClassifier(n_jobs=-1).fit(array, y, environments=site)
    array_seconds = time.perf_counter() - started
    return {"seconds": seconds, "array_seconds": array_seconds, "rows": len(table), "peak": peak}


def as_array(table):
    return np.column_stack([column.to_numpy() for column in table.columns])


WORKERS = {"files": fit_files, "memory": fit_memory}


def warm_up():
    """Load the compiled kernels of both ways, which are not part of the measurement."""
    rng = np.random.default_rng(0)
    n_rows = 20_000
    label = rng.random(n_rows) < 0.5
    table = pa.table({"x": rng.random(n_rows), "site": np.arange(n_rows) % 2, "y": label})
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        pq.write_table(table, Path(folder) / "a.parquet")
        ICSCMClassifier(n_jobs=-1).fit_dataset(folder, target="y", environments="site")
        frame = table.select(["x"])
        for X in (frame, as_array(frame)):
            ICSCMClassifier(n_jobs=-1).fit(X, table["y"], environments=table["site"])


def read_peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell the peak of resident memory")


if __name__ == "__main__":
    main()
