"""Time this package and its peers in one run, and write the tables of README.md.

    python benchmarks/run.py            everything (half an hour on two cores, 20 GB of disk)
    python benchmarks/run.py --quick    small sizes, a minute, writes nothing
    python benchmarks/run.py --against PYTHON    this checkout and the one installed for another
                                        interpreter, alternating; ratios only, writes nothing

Contenders alternate, each in a separate process; the best of all rounds counts. pyscm, which needs
an old NumPy and a compiler, LightGBM and XGBoost get virtual environments under benchmarks/.work,
and are omitted, with a note, where they cannot be installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import runpy
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

import targets
import trees
from common import (
    PEERS,
    WORK,
    find_version,
    format_seconds,
    make_few_valued,
    make_floats,
    run_worker,
)

README = Path(__file__).parent / "README.md"
BOOSTERS = ["HistGradientBoosting, 1 tree", "LightGBM, 1 tree", "XGBoost, 1 tree"]
NEIGHBOURS = ["pyscm", "tree, depth 10", *BOOSTERS, "np.copyto"]
OWN = ["icscm SCM", "icscm ICSCM"]


def compare(
    title: str, data: dict, contenders: list[str], rounds: int, repeats: int, *options: str
) -> list[str]:
    """A Markdown table of all contenders on one data set."""
    print(f"\n{title}", flush=True)
    path = WORK / "data.npz"
    np.savez(path, **data)
    runs_by_name: dict[str, list[dict]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in contenders:
            has_rules = name in (*OWN, "pyscm")
            options_of_worker = [*options, "max_rules=10"] if has_rules else []
            run = run_worker(name, path, repeats, *options_of_worker)
            if run is not None:
                runs_by_name[name].append(run)
    path.unlink()

    best = {name: find_best(runs) for name, runs in runs_by_name.items() if runs}
    n_bytes = data["X"].nbytes
    lines = [
        f"**{title}**",
        "",
        f"Input {n_bytes / 1e6:,.0f} MB. Best of {rounds} rounds of {repeats}.",
        "",
        "| | time | times icscm SCM | times np.copyto | peak memory beyond the input |",
        "|---|---|---|---|---|",
    ]
    for name in contenders:
        if name not in best:
            lines.append(f"| {name} | could not run here | | | |")
            continue
        extra_bytes = max(run["extra_bytes"] for run in runs_by_name[name])
        lines.append(
            f"| {name} | {format_seconds(best[name])} | {best[name] / best['icscm SCM']:.3g} "
            f"| {best[name] / best['np.copyto']:.3g} "
            f"| {extra_bytes / 1e6:,.0f} MB ({extra_bytes / n_bytes:.2f} x input) |"
        )
    print("\n".join(lines[4:]), flush=True)
    return [*lines, ""]


def find_best(runs: list[dict]) -> float:
    """The least seconds of a fit, of all runs."""
    return min(min(run["seconds"]) for run in runs)


def compare_checkouts(other: str, title: str, data: dict, rounds: int, repeats: int) -> None:
    """The time of this checkout's learners, as a multiple of the other's, best of all."""
    path = WORK / "data.npz"
    np.savez(path, **data)
    for name in OWN:
        runs: dict[str, list[dict]] = {sys.executable: [], other: []}
        for _ in range(rounds):
            for python in runs:
                runs[python].append(run_worker(name, path, repeats, "max_rules=10", python=python))
        here = find_best(runs[sys.executable])
        there = find_best(runs[other])
        times = f"{format_seconds(here)} | {format_seconds(there)}"
        print(f"| {title} | {name} | {times} | {here / there:.3f} |", flush=True)
    path.unlink()


def compare_all_with(other: str) -> None:
    print("| data | learner | this checkout | the other | ratio |\n|---|---|---|---|---|")
    compare_checkouts(other, "16,000 x 10 binary", make_few_valued(16_000, 10, 2), 9, 40)
    compare_checkouts(other, "10,000 x 20, 50 values", make_few_valued(10_000, 20, 50), 9, 40)
    compare_checkouts(other, "200,000 x 100 floats", make_floats(200_000, 100), 7, 5)
    compare_checkouts(other, "832,000 x 232 floats", make_floats(832_000, 232), 3, 4)


def measure_scaling(base_rows: int, base_columns: int) -> list[str]:
    """How the time of a fit grows with rows, features and rules, each doubled in turn."""
    print("\nscaling", flush=True)
    cases = [
        ("base", base_rows, base_columns, 10),
        ("2 x rows", 2 * base_rows, base_columns, 10),
        ("4 x rows", 4 * base_rows, base_columns, 10),
        ("2 x features", base_rows, 2 * base_columns, 10),
        ("4 x features", base_rows, 4 * base_columns, 10),
        ("10 x rules", base_rows, base_columns, 100),
    ]
    lines = [
        "**How the cost grows**",
        "",
        "icscm SCM with p = 10, which makes for many small rules. Best of 2 rounds of 3.",
        "",
        "| case | rows | features | max_rules | rules found | time | times base |",
        "|---|---|---|---|---|---|---|",
    ]
    path = WORK / "data.npz"
    base_seconds = None
    for name, n_rows, n_columns, max_rules in cases:
        np.savez(path, **make_floats(n_rows, n_columns))
        options = [f"max_rules={max_rules}", "p=10"]
        runs = [run_worker("icscm SCM", path, 3, *options) for _ in range(2)]
        path.unlink()
        seconds = find_best(runs)
        base_seconds = base_seconds or seconds
        lines.append(
            f"| {name} | {n_rows:,} | {n_columns} | {max_rules} | {runs[0]['n_rules']} "
            f"| {format_seconds(seconds)} | {seconds / base_seconds:.2f} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


# Prints the seconds of the import, and of the first fit.
FIRST_FIT = """
import time
start = time.perf_counter()
import numpy as np
from icscm import ICSCMClassifier
imported = time.perf_counter()

rng = np.random.default_rng(0)
X = np.c_[rng.random((200, 3)), rng.integers(0, 2, (200, 3))]
y, e = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
begin = time.perf_counter()
ICSCMClassifier(stop="coverage").fit(X, y, environments=e)
print(imported - start, time.perf_counter() - begin)
"""


def measure_compilation() -> list[str]:
    """The first fit of a process, with and without compiled kernels on disk."""
    print("\ncompilation", flush=True)
    lines = ["**Compilation**", "", "| process | import | first fit (200 rows) |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as cache:
        for process in ("first ever: compiles", "second: reads the compiled kernels"):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", FIRST_FIT],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            imported, fitted = map(float, done.stdout.split())
            lines.append(f"| {process} | {imported:.2f} s | {fitted:.2f} s |")
            print(lines[-1], flush=True)
    return [*lines, ""]


def describe_machine() -> str:
    cpu = find_cpu_name() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"{name} {version(name)}" for name in ("icscm", "numpy", "numba", "scikit-learn")]
    for peer in PEERS:
        version_of_peer = find_version(peer)
        if version_of_peer is not None:
            versions.append(version_of_peer)
    packages = ", ".join(versions)
    return (
        f"{date.today()}, {len(os.sched_getaffinity(0))} cores of {cpu} ({platform.machine()}), "
        f"{memory:.0f} GiB, Python {platform.python_version()}, {packages}."
    )


def find_cpu_name() -> str | None:
    described = subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    for line in described.splitlines():
        name, _, value = line.partition(":")
        if name == "Model name":
            return value.strip()
    return None


def write_tables(lines: list[str]) -> None:
    """Replace the text between the two marks in README.md."""
    head, rest = README.read_text().split("<!-- tables: made by run.py -->\n")
    _, tail = rest.split("<!-- end of tables -->")
    tables = "\n".join(lines)
    README.write_text(
        f"{head}<!-- tables: made by run.py -->\n{tables}<!-- end of tables -->{tail}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; write nothing")
    parser.add_argument("--against", metavar="PYTHON", help="another checkout's interpreter")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    if options.against:
        compare_all_with(options.against)
        return
    everyone = OWN + NEIGHBOURS
    lines = [describe_machine(), ""]
    if options.quick:
        compare("2,000 x 10 binary", make_few_valued(2_000, 10, 2), everyone, 1, 3)
        compare("20,000 x 20 floats", make_floats(20_000, 20), everyone, 1, 2)
        measure_scaling(10_000, 20)
        return
    lines += compare("16,000 x 10 binary", make_few_valued(16_000, 10, 2), everyone, 3, 20)
    lines += compare("10,000 x 20, 50 values", make_few_valued(10_000, 20, 50), everyone, 3, 10)
    lines += compare("200,000 x 100 floats", make_floats(200_000, 100), everyone, 3, 2)
    own_and_floor = [*OWN, *BOOSTERS, "np.copyto"]
    lines += compare("832,000 x 232 floats", make_floats(832_000, 232), own_and_floor, 2, 3)
    lines += trees.measure()
    lines += measure_scaling(200_000, 100)
    lines += measure_compilation()
    lines += targets.measure_all(WORK)
    write_tables(lines)
    runpy.run_path(str(README.parents[1] / "docs" / "write_benchmarks.py"), run_name="__main__")


if __name__ == "__main__":
    main()
