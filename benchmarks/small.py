"""Costs of small fits, resamples, imports and more rules, against their targets.

    python benchmarks/small.py            half a minute
    python benchmarks/small.py --quick    small sizes, to see that it runs

Small fits are CPU time, the best of 60, which neighbours on a busy machine disturb least; the rest
is wall time, or a ratio of two things that took turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from common import make_few_valued, make_floats, print_targets
from icscm import ICSCMClassifier, SCMClassifier, stability_selection

# As in the paper, with tests, verdicts and pruning.
FULL = {"stop": "coverage", "pruning": "always", "min_replication": 0, "min_utility": None}
PEERS = "import sklearn, numba, pandas"
USES_NUMBA = """
import sys
from icscm.cli import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code, stop.code
sys.exit("numba" in sys.modules)
"""


def main() -> None:
    print_targets(measure(is_quick="--quick" in sys.argv))


def measure(*, is_quick: bool = False) -> Iterator[tuple[str, float, float]]:
    yield from measure_fits(is_quick=is_quick)
    many = make_floats(*((1_000, 20) if is_quick else (100_000, 200)))
    learner = ICSCMClassifier(n_jobs=-1)
    select = partial(
        stability_selection, learner, many["X"], many["y"], environments=many["e"], random_state=0
    )
    (seconds,) = find_best([select], 1)
    yield f"seconds stability_selection, 100 subsamples of {describe(many)}", seconds, 2.0
    imports = ["from icscm import ICSCMClassifier", PEERS]
    own, peers = find_best([partial(run, code) for code in imports], 1 if is_quick else 10)
    yield f"`{imports[0]}` over `{PEERS}`", own / peers, 1.0
    yield from measure_commands()
    floats = make_floats(*((5_000, 20) if is_quick else (200_000, 100)))
    for p in (1, 10):
        fits = [make_fit(SCMClassifier(p=p, max_rules=n, n_jobs=-1), floats) for n in (100, 10)]
        hundred, ten = find_best(fits, 1 if is_quick else 6)
        yield f"{describe(floats)} floats, p = {p}, max_rules=100 over 10", hundred / ten, 1.3


def measure_fits(*, is_quick: bool) -> Iterator[tuple[str, float, float]]:
    few = make_few_valued(1_000 if is_quick else 16_000, 10, 2)
    for name, learner, target in (
        ("10 rules, tests, verdicts, pruning", ICSCMClassifier(**FULL), 0.008),
        ("the default ICSCM fit", ICSCMClassifier(n_jobs=-1), 0.004),
    ):
        (seconds,) = find_best([make_fit(learner, few)], 3 if is_quick else 60, time.process_time)
        yield f"seconds {describe(few)} binary, {name}", seconds, target


def measure_commands() -> Iterator[tuple[str, float, float]]:
    """1 for a command that imports numba, 0 for one that does not."""
    data = make_few_valued(200, 3, 2)
    with TemporaryDirectory() as folder:
        model, table, out = (f"{folder}/{name}" for name in ("model.json", "new.csv", "out.csv"))
        frame = pd.DataFrame(data["X"], columns=["a", "b", "c"])
        SCMClassifier(n_jobs=-1).fit(frame, data["y"]).save(model)
        frame.to_csv(table, index=False)
        for command, *words in (("show", model), ("predict", model, table, "--out", out)):
            call = [sys.executable, "-c", USES_NUMBA, command, *words]
            done = subprocess.run(call, check=False, capture_output=True)
            yield f"`icscm {command}` imports numba", done.returncode, 0


def describe(data: dict[str, np.ndarray]) -> str:
    return " x ".join(f"{n:,}" for n in data["X"].shape)


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
