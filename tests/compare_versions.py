"""Fit some 400 small tables and settings with version 0.3.0 and with the working tree; compare.

    python tests/compare_versions.py                         all cases
    python tests/compare_versions.py --only 'tree/*'         cases by name; --list shows the names
    python tests/compare_versions.py --base HEAD~3           another base: a commit or a wheel
    python tests/compare_versions.py --ignore '*texts*'      without the words of reports

It holds a refactoring to its promise that results stay as they are: models, probabilities, traces,
verdicts, reports, studies and commands are compared as plain facts. Whole numbers, texts and rules
must be equal, floats up to rounding; an error is a fact as well. Every case that differs is shown
with the first differences, then a table of all; the exit status is 1 if any differs.

Results of the base are kept in `.versions/`, by the definition of the case and its table. After a
change of how a case is run or read, `--refresh` computes them again. Where the working tree has
other names than 0.3.0, `versions/names.py` and `versions/reading.py` say so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from versions.building import ROOT, install_base
from versions.cases import CASES, Case, fingerprint_case
from versions.comparing import TOLERANCE, compare

# The last commit of version 0.3.0: the package in `src` has not changed since, and there is no tag.
BASE = "732c2d00"
TESTS = Path(__file__).parent
N_SHOWN = 4  # differences of a case
# Packages on which the digits of a result may depend.
NUMERICAL = ("numpy", "scipy", "scikit-learn", "pandas", "numba")

# How the results of a case compare.
EQUAL, DIFFERENT, NOT_COMPARED = "equal", "different", "not compared"
BASE_FAILS, TREE_FAILS = "error in base only", "error in working tree only"
OUTCOMES = (EQUAL, DIFFERENT, BASE_FAILS, TREE_FAILS, NOT_COMPARED)
WRONG = (DIFFERENT, BASE_FAILS, TREE_FAILS)


@dataclass(frozen=True)
class Side:
    """One of the two versions: where to import the package from, and where its results go."""

    name: str
    package: Path
    results: Path

    def find_result(self, case: Case) -> Path:
        return self.results / f"{fingerprint_case(case)}.json"

    def load(self, case: Case) -> Any:
        """The facts of a case; an error if its process died."""
        path = self.find_result(case)
        if not path.exists():
            return {"error": {"kind": "crash", "text": "the process ended without a result"}}
        return json.loads(path.read_text(encoding="utf-8"))["facts"]


def main() -> int:
    options = parse_arguments()
    cases = [case for case in CASES if matches(case, options.only)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if not cases:
        sys.exit(f"no case is called {options.only!r}; --list shows all names")

    package = install_base(options.base)
    with TemporaryDirectory() as temporary:
        base = Side("base", package, package.parent / "results" / fingerprint_conditions())
        out = Path(options.out or temporary).resolve()
        tree = Side("working tree", ROOT / "src", out / "tree")
        for case in cases:
            tree.find_result(case).unlink(missing_ok=True)
            if options.refresh:
                base.find_result(case).unlink(missing_ok=True)
        run_all([base, tree], cases, n_jobs=options.jobs)
        if options.out:
            copy_results(base, cases, out / "base")
        return report(base, tree, cases, options)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default=BASE, help="a commit or a wheel (default: 0.3.0)")
    parser.add_argument("--only", metavar="PATTERN", default="", help="cases whose name matches")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="relative, of floats")
    parser.add_argument("--ignore", metavar="PATTERN", action="append", help="paths left out")
    parser.add_argument("--out", metavar="FOLDER", help="keep the results of both versions here")
    parser.add_argument("--refresh", action="store_true", help="compute the base again")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    return parser.parse_args()


def matches(case: Case, pattern: str) -> bool:
    return fnmatch(case.name, f"*{pattern}*")


def fingerprint_conditions() -> str:
    """A digest of what results depend on besides the case: the platform and other packages."""
    parts = [platform.machine(), platform.python_version(), *map(version, NUMERICAL)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


# --- running --------------------------------------------------------------------------------------


def run_all(sides: Sequence[Side], cases: Sequence[Case], *, n_jobs: int) -> None:
    """Compute the cases that have no result yet, in processes of one version each."""
    batches: list[tuple[Side, list[Case]]] = []
    for side in sides:
        side.results.mkdir(parents=True, exist_ok=True)
        missing = [case for case in cases if not side.find_result(case).exists()]
        known = len(cases) - len(missing)
        print(f"{side.name}: {len(missing)} cases to run, {known} known", flush=True)
        # in turn, so that slow cases, which are neighbours, are shared
        batches += [(side, missing[start::n_jobs]) for start in range(n_jobs)]
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(lambda batch: run_batch(*batch), batches))


def run_batch(side: Side, cases: Sequence[Case]) -> None:
    """One process for some cases; where it dies, the next one goes on after the case at fault."""
    remaining = list(cases)
    while remaining:
        with TemporaryDirectory() as home:
            command = [sys.executable, "-P", "-m", "versions.worker"]
            command += ["--package", str(side.package), "--out", str(side.results)]
            names = "\n".join(case.name for case in remaining)
            done = subprocess.run(
                command, input=names, text=True, cwd=home, env=make_environment(side.package)
            )
        if done.returncode == 0:
            return
        if done.returncode > 0:  # not killed by a signal: no fault of the case
            sys.exit(f"{side.name}: the process failed, see above")
        n_finished = sum(side.find_result(case).exists() for case in remaining)
        remaining = remaining[n_finished + 1 :]


def make_environment(package: Path) -> dict[str, str]:
    """Variables of a process that imports this package before any that is installed."""
    path = os.pathsep.join([str(package), str(TESTS)])
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return {**os.environ, **single, "PYTHONPATH": path, "MPLBACKEND": "agg"}


def copy_results(side: Side, cases: Iterable[Case], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        path = side.find_result(case)
        if path.exists():
            (folder / path.name).write_bytes(path.read_bytes())


# --- reporting ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """How the two results of a case compare: one of `OUTCOMES`, and what to tell about it."""

    outcome: str
    lines: Sequence[str] = ()
    largest_gap: float = 0.0


def report(base: Side, tree: Side, cases: Sequence[Case], options: argparse.Namespace) -> int:
    """Print every case that differs, and a table of all; 1 if any differs, else 0."""
    counts: dict[str, Counter[str]] = {}
    largest_gap = 0.0
    for case in cases:
        judgement = judge(case, base.load(case), tree.load(case), options)
        counts.setdefault(case.group, Counter())[judgement.outcome] += 1
        largest_gap = max(largest_gap, judgement.largest_gap)
        if judgement.lines:
            print(f"\n{case.name}", *judgement.lines, sep="\n  ")

    print_table(counts)
    print(f"largest relative difference of two numbers: {largest_gap:.1e}")
    total = sum(counts.values(), Counter())
    return int(any(total[outcome] for outcome in WRONG))


def judge(case: Case, base: Any, tree: Any, options: argparse.Namespace) -> Judgement:
    for facts in (base, tree):
        if "gone" in facts:
            return Judgement(NOT_COMPARED, [f"not compared: {facts['gone']}"])
    if "error" in base and "error" not in tree:
        return Judgement(BASE_FAILS, [f"{BASE_FAILS}: {describe_error(base)}"])
    if "error" in tree and "error" not in base:
        return Judgement(TREE_FAILS, [f"{TREE_FAILS}: {describe_error(tree)}"])

    found = compare(base, tree, tolerance=options.tolerance, ignored=options.ignore)
    if found.differences:
        return Judgement(DIFFERENT, list_differences(found.differences), found.largest_gap)
    lines = []
    if has_failed(base) and not case.fails:  # a case that shows less than it should
        lines.append(f"fails in both versions: {describe_error(base)}")
    return Judgement(EQUAL, lines, found.largest_gap)


def list_differences(differences: Sequence[Any]) -> list[str]:
    """The first differences, a line each, and how many there are besides."""
    lines = [str(difference) for difference in differences[:N_SHOWN]]
    if len(differences) > N_SHOWN:
        lines.append(f"... and {len(differences) - N_SHOWN} more")
    return lines


def has_failed(facts: Any) -> bool:
    return "error" in facts or any(step["status"] for step in facts.get("steps", ()))


def describe_error(facts: Any) -> str:
    """The error of a case, in a line."""
    if "error" in facts:
        return " ".join(f"{facts['error']['kind']}: {facts['error']['text']}".split())
    failed = [step for step in facts["steps"] if step["status"]]
    return " ".join(line for step in failed for line in step["stderr"])


def print_table(counts: dict[str, Counter[str]]) -> None:
    """A line for each kind of case: how many there are, and how they compare."""
    rows = [["kind", "cases", *OUTCOMES]]
    for kind, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        rows.append([kind, str(count.total()), *(str(count[name] or "-") for name in OUTCOMES)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for kind, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([kind.ljust(widths[0]), *aligned]))


if __name__ == "__main__":
    sys.exit(main())
