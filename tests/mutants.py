"""Plant bugs, one at a time, and see how many the tests catch: `make mutants`.

    python tests/mutants.py 400             a sample of so many mutants
    python tests/mutants.py 400 --seed 1    another one
    python tests/mutants.py all             all of them; hours

mutmut makes the mutants and runs the tests that reach each; this draws the sample and adds up.
`mutmut show NAME` prints what a survivor changes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

FOLDER = Path("mutants")
# What mutmut knows of the tests: which reach what, and how long each takes.
KNOWN = FOLDER / "mutmut-stats.json"
# What exit codes of a mutant's tests mean. Whatever is not listed broke down: a catch as well.
# A mutant is alive if its tests passed, or none reaches it.
FATES = {0: "survived", 1: "caught", 5: "not reached", 33: "not reached", -24: "ran on and on"}
ALIVE = {0, 5, 33}
LEAST_SHARE = 0.9


def main() -> int:
    """Try some mutants and print what became of them; 0 if enough were caught."""
    parser = argparse.ArgumentParser(description="Plant bugs and see how many the tests catch.")
    parser.add_argument("size", nargs="?", default="400", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--max-children", type=int, default=os.cpu_count(), help="at a time")
    options = parser.parse_args()
    names = make_mutants()
    chosen = names
    if options.size != "all":
        chosen = random.Random(options.seed).sample(names, min(int(options.size), len(names)))
    print(f"Trying {len(chosen):,} of {len(names):,} mutants, seed {options.seed}.", flush=True)
    if run_mutmut(f"--max-children={options.max_children}", *chosen).returncode:
        sys.exit("mutmut came to no end: do the tests pass without a mutant?")
    fates = read_fates()
    return report({name: fates[name] for name in chosen})


def make_mutants() -> list[str]:
    """Have all mutants written, and the tests watched; their names."""
    if not is_fresh():
        KNOWN.unlink(missing_ok=True)  # mutants of code that has not changed may stay
        shutil.rmtree(FOLDER / "tests", ignore_errors=True)
        print("Writing the mutants and watching which tests reach them, minutes.", flush=True)
        # naming one that is not there tries none
        made = run_mutmut("none-of-them", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not KNOWN.exists():
            sys.exit(f"mutmut made no mutants:\n{made.stdout}")
    return sorted(read_fates())


def is_fresh() -> bool:
    """Whether the mutants at hand are of the code and the tests as they are now."""
    if not KNOWN.exists():
        return False
    files = [Path("pyproject.toml"), *Path("src").rglob("*.py"), *Path("tests").rglob("*.py")]
    return max(path.stat().st_mtime for path in files) < KNOWN.stat().st_mtime


def run_mutmut(*arguments: str, **options: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", "run", *arguments]
    return subprocess.run(command, check=False, text=True, **options)


def read_fates() -> dict[str, int | None]:
    """The exit code of the tests for each mutant; None if it was not tried."""
    fates: dict[str, int | None] = {}
    for path in FOLDER.rglob("*.meta"):
        if path.relative_to(FOLDER).with_suffix("").exists():  # the code is still there
            fates |= json.loads(path.read_text())["exit_code_by_key"]
    return fates


def report(fates: dict[str, int | None]) -> int:
    """Print the survivors and the score by folder."""
    untried = [name for name, fate in fates.items() if fate is None]
    if untried:
        sys.exit(f"{len(untried)} mutants were not tried, {untried[0]} among them")
    alive = sorted(name for name, fate in fates.items() if fate in ALIVE)
    for name in alive:
        print("survived:", name)
    print(
        *(f"{fate}: {n}" for fate, n in Counter(map(name_fate, fates.values())).items()), sep=", "
    )
    rooms = Counter(map(find_room, fates))
    n_alive = Counter(map(find_room, alive))
    for room, n in sorted(rooms.items()):
        print_score(room, n - n_alive[room], n)
    n_caught = len(fates) - len(alive)
    print_score("all", n_caught, len(fates))
    low, high = binomtest(n_caught, len(fates)).proportion_ci(method="wilson")
    print(f"95 % interval {low:.1%} to {high:.1%}")
    return int(n_caught < LEAST_SHARE * len(fates))


def name_fate(fate: int | None) -> str:
    return FATES.get(fate, f"broke down ({fate})")


def find_room(name: str) -> str:
    return name.split(".")[1]


def print_score(what: str, n_caught: int, n: int) -> None:
    print(f"{what:8} {n_caught:5} of {n:5} caught  {n_caught / n:.1%}")


if __name__ == "__main__":
    sys.exit(main())
