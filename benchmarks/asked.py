"""Every number that was asked of this machine, what was measured, and whether it is met.

    python benchmarks/asked.py --scratch FOLDER            a quarter of an hour, 20 GB of disk
    python benchmarks/asked.py --scratch FOLDER --quick    small sizes: whether it runs, no more

Small things are measured by `small.py`, bits by `packed.py`, files by `files.py`, and what all
cores do by `cores.py`. What is asked of a graphics card is `gpu.py`'s to measure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import files
import packed
import small
from run import format_seconds

HERE = Path(__file__).parent
# A measured number, and the most that was asked for; a share, and the least.
Line = tuple[str, float, float]
LEAST = "share of "
SECONDS = "seconds "


def measure_all(scratch: Path, *, is_quick: bool = False) -> list[str]:
    """A Markdown table, printed as it grows, and what `cores.py` prints."""
    lines = ["### What was asked for", "", *list_lines(measure(scratch, is_quick=is_quick)), ""]
    if (HERE / "cores.py").exists():
        quick = ["--rows", "20000", "--columns", "20"] if is_quick else []
        command = [sys.executable, str(HERE / "cores.py"), *quick]
        cores = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(cores, flush=True)
        lines += [*cores.splitlines(), ""]
    return lines


def measure(scratch: Path, *, is_quick: bool) -> Iterator[Line]:
    yield from small.measure(is_quick=is_quick)
    yield from measure_bits(scratch, is_quick=is_quick)
    yield measure_files(scratch, is_quick=is_quick)


def measure_bits(scratch: Path, *, is_quick: bool) -> Iterator[Line]:
    for case in packed.QUICK[-1:] if is_quick else packed.FILES:
        for found in packed.run_worker(*case, scratch):
            where = f"{case[1]:,} x {case[2]:,} `.bits`, {found['n_environments']} environments"
            share = packed.find_share(found, "counting")
            yield f"{LEAST}the memory's bandwidth, counting {where}", share, 1 / 3


def measure_files(scratch: Path, *, is_quick: bool) -> Line:
    words = ["--folder", str(scratch), *(["--quick"] if is_quick else [])]
    arguments = files.parse_arguments(words)
    what = f"{arguments.rows:,} x {arguments.columns} Parquet"
    return (
        f"{LEAST}the rate of reading into memory and fitting, {what}",
        files.measure(arguments),
        0.95,
    )


def list_lines(measured: Iterable[Line]) -> list[str]:
    """The table, printed line by line."""
    warnings.simplefilter("ignore")
    lines = ["| what | measured | asked for | met |", "|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for what, found, asked in measured:
        show = format_seconds if what.startswith(SECONDS) else "{:.2f}".format
        is_met = found >= asked if what.startswith(LEAST) else found <= asked
        told = what.removeprefix(SECONDS)
        lines.append(f"| {told} | {show(found)} | {show(asked)} | {'yes' if is_met else 'no'} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    asked = parser.parse_args()
    measure_all(asked.scratch, is_quick=asked.quick)


if __name__ == "__main__":
    main()
