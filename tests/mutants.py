"""Plant bugs, one at a time, and see how many the tests catch: `make mutants`.

    python tests/mutants.py 400     a seeded sample of so many mutants
    python tests/mutants.py all     all of them; hours

mutmut makes the mutants and runs the tests that reach each; this draws the sample and adds up.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

FOLDER = Path("mutants")
SEED = 0
# Exit codes by which mutmut remembers a mutant's fate.
SURVIVED, NO_TEST = 0, 33
LEAST_SHARE = 0.9
MUTMUT = [sys.executable, "-m", "mutmut"]


def main(size: str) -> int:
    """Try some mutants and print what became of them; 0 if enough were caught."""
    make_mutants()
    names = sorted(read_fates())
    chosen = names if size == "all" else random.Random(SEED).sample(names, int(size))
    subprocess.run([*MUTMUT, "run", *chosen], check=False, stdout=subprocess.DEVNULL)
    fates = {name: fate for name, fate in read_fates().items() if name in set(chosen)}
    return report(fates, len(names))


def make_mutants() -> None:
    """Have the mutants written; naming one that is not there tries none."""
    subprocess.run([*MUTMUT, "run", "none-of-them"], check=False, stdout=subprocess.DEVNULL)


def read_fates() -> dict[str, int | None]:
    """The exit code of the tests for each mutant; None if it was not tried."""
    fates: dict[str, int | None] = {}
    for path in FOLDER.rglob("*.meta"):
        fates |= json.loads(path.read_text())["exit_code_by_key"]
    return fates


def report(fates: dict[str, int | None], n_all: int) -> int:
    """Print the survivors and the score by folder."""
    tried = {name: fate for name, fate in fates.items() if fate is not None}
    alive = sorted(name for name, fate in tried.items() if fate in (SURVIVED, NO_TEST))
    for name in alive:
        print("survived:", name)
    folders = Counter(name.split(".")[1] for name in tried)
    for folder, n in sorted(folders.items()):
        n_alive = sum(name.split(".")[1] == folder for name in alive)
        print(f"{folder:8} {n - n_alive:5} of {n:5} caught  {(n - n_alive) / n:.1%}")
    n, n_caught = len(tried), len(tried) - len(alive)
    low, high = binomtest(n_caught, max(n, 1)).proportion_ci(method="wilson")
    print(f"{'all':8} {n_caught:5} of {n:5} caught  {n_caught / max(n, 1):.1%}")
    print(f"95 % interval {low:.1%} to {high:.1%}; {n:,} of {n_all:,} mutants tried, seed {SEED}")
    return int(n == 0 or n_caught < LEAST_SHARE * n)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "400"))
