"""What small things cost, beside what was asked for: small fits, resamples, imports, more rules.

    python benchmarks/small.py      half a minute

Small fits are CPU time, the best of 60, which neighbours on a busy machine disturb least; the rest
is wall time, or a ratio of two things that took turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from icscm import ICSCMClassifier, SCMClassifier, stability_selection
from run import format_seconds, make_few_valued, make_floats

# As in the paper, with everything that can be asked for.
FULL = {"stop": "coverage", "pruning": "always", "min_replication": 0, "min_utility": None}
PEERS = "import sklearn, numba, pandas"


def main() -> None:
    warnings.simplefilter("ignore")
    print("| what | measured | asked for | met |\n|---|---|---|---|", flush=True)
    for what, measured, asked in measure():
        show = format_seconds if what.startswith("seconds") else "{:.2f}".format
        told = what.removeprefix("seconds ")
        met = "yes" if measured <= asked else "no"
        print(f"| {told} | {show(measured)} | {show(asked)} | {met} |", flush=True)


def measure() -> Iterator[tuple[str, float, float]]:
    few = make_few_valued(16_000, 10, 2)
    for name, learner, asked in (
        ("10 rules, tests, verdicts, pruning", ICSCMClassifier(**FULL), 0.008),
        ("the default ICSCM fit", ICSCMClassifier(), 0.004),
    ):
        fit = make_fit(learner, few)
        yield (
            f"seconds 16,000 x 10 binary, {name}",
            find_best([fit], 60, time.process_time)[0],
            asked,
        )
    many = make_floats(100_000, 200)
    parts = ICSCMClassifier(), many["X"], many["y"], many["e"]
    (seconds,) = find_best([lambda: stability_selection(*parts, random_state=0)], 2)
    yield "seconds stability_selection, 100 halves of 100,000 x 200", seconds, 2.0
    own, peers = find_best(
        [lambda code=code: run(code) for code in ("from icscm import ICSCMClassifier", PEERS)], 10
    )
    yield f"`from icscm import ICSCMClassifier` over `{PEERS}`", own / peers, 1.0
    floats = make_floats(200_000, 100)
    for p in (1, 10):
        fits = [make_fit(SCMClassifier(p=p, max_rules=n), floats) for n in (100, 10)]
        hundred, ten = find_best(fits, 6)
        yield f"200,000 x 100 floats, p = {p}, max_rules=100 over 10", hundred / ten, 1.3


def make_fit(learner: SCMClassifier, data: dict[str, np.ndarray]) -> Callable[[], object]:
    return lambda: learner.fit(data["X"], data["y"], environments=data["e"])


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def find_best(
    tasks: list[Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The best time of each, once warm; they take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats + 1):
        for task, own in zip(tasks, times, strict=True):
            start = clock()
            task()
            own.append(clock() - start)
    return [min(own[1:]) for own in times]


if __name__ == "__main__":
    main()
