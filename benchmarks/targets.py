"""All performance targets of this machine, what was measured, and whether they are met.

    python benchmarks/targets.py --scratch FOLDER            a quarter of an hour, 20 GB of disk
    python benchmarks/targets.py --scratch FOLDER --quick    small sizes, as a smoke test

Small tables are measured by `small.py`, bits by `packed.py`, files by `files.py`, and all cores by
`cores.py`. The targets of a graphics card are measured by `gpu.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import files
import packed
import small
from common import HERE, LEAST, Target, print_targets


def measure_all(scratch: Path, *, is_quick: bool = False) -> list[str]:
    """A Markdown table, printed as it grows, and what `cores.py` prints."""
    lines = ["**Targets**", "", *print_targets(measure(scratch, is_quick=is_quick)), ""]
    if (HERE / "cores.py").exists():
        quick = ["--rows", "20000", "--columns", "20"] if is_quick else []
        command = [sys.executable, str(HERE / "cores.py"), *quick]
        cores = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(cores, flush=True)
        lines += [*cores.splitlines(), ""]
    return lines


def measure(scratch: Path, *, is_quick: bool) -> Iterator[Target]:
    yield from small.measure(is_quick=is_quick)
    yield from measure_bits(scratch, is_quick=is_quick)
    yield measure_files(scratch, is_quick=is_quick)


def measure_bits(scratch: Path, *, is_quick: bool) -> Iterator[Target]:
    for case in packed.QUICK[-1:] if is_quick else packed.FILES:
        for result in packed.run_worker(case, scratch):
            table = f"{case.n_rows:,} x {case.n_columns:,} `.bits`"
            yield Target(
                f"{LEAST}the memory's bandwidth, counting {table}, "
                f"{result['n_environments']} environments",
                measured=packed.find_share(result, "counting"),
                target=1 / 3,
            )


def measure_files(scratch: Path, *, is_quick: bool) -> Target:
    words = ["--folder", str(scratch)]
    if is_quick:
        words.append("--quick")
    arguments = files.parse_arguments(words)
    table = f"{arguments.rows:,} x {arguments.columns} Parquet"
    return Target(
        f"{LEAST}the rate of reading into memory and fitting, {table}",
        measured=files.measure(arguments),
        target=0.95,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    measure_all(options.scratch, is_quick=options.quick)


if __name__ == "__main__":
    main()
