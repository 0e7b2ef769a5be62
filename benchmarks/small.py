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

from common import SECONDS, Target, make_few_valued, make_floats, print_targets
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


def measure(*, is_quick: bool = False) -> Iterator[Target]:
    yield from measure_fits(is_quick=is_quick)
    yield measure_subsamples(is_quick=is_quick)
    yield measure_imports(is_quick=is_quick)
    yield from measure_commands()
    yield from measure_more_rules(is_quick=is_quick)


def measure_fits(*, is_quick: bool) -> Iterator[Target]:
    table = make_few_valued(1_000 if is_quick else 16_000, 10, 2)
    for name, learner, target in (
        ("10 rules, tests, verdicts, pruning", ICSCMClassifier(**FULL), 0.008),
        ("the default ICSCM fit", ICSCMClassifier(n_jobs=-1), 0.004),
    ):
        fit = make_fit(learner, table)
        (seconds,) = find_best([fit], repeats=3 if is_quick else 60, clock=time.process_time)
        yield Target(f"{SECONDS}{describe(table)} binary, {name}", seconds, target)


def measure_subsamples(*, is_quick: bool) -> Target:
    table = make_floats(1_000, 20) if is_quick else make_floats(100_000, 200)
    select = partial(
        stability_selection,
        ICSCMClassifier(n_jobs=-1),
        table["X"],
        table["y"],
        environments=table["e"],
        random_state=0,
    )
    (seconds,) = find_best([select], repeats=1)
    what = f"{SECONDS}stability_selection, 100 subsamples of {describe(table)}"
    return Target(what, seconds, target=2.0)


def measure_imports(*, is_quick: bool) -> Target:
    ours = "from icscm import ICSCMClassifier"
    imports = [partial(run, ours), partial(run, PEERS)]
    our_seconds, seconds_of_peers = find_best(imports, repeats=1 if is_quick else 10)
    return Target(f"`{ours}` over `{PEERS}`", our_seconds / seconds_of_peers, target=1.0)


def measure_commands() -> Iterator[Target]:
    """1 for a command that imports numba, 0 for one that does not."""
    data = make_few_valued(200, 3, 2)
    frame = pd.DataFrame(data["X"], columns=["a", "b", "c"])
    with TemporaryDirectory() as folder:
        model = f"{folder}/model.json"
        table = f"{folder}/new.csv"
        SCMClassifier(n_jobs=-1).fit(frame, data["y"]).save(model)
        frame.to_csv(table, index=False)
        commands = {
            "show": [model],
            "predict": [model, table, "--out", f"{folder}/out.csv"],
        }
        for command, words in commands.items():
            call = [sys.executable, "-c", USES_NUMBA, command, *words]
            done = subprocess.run(call, check=False, capture_output=True)
            yield Target(f"`icscm {command}` imports numba", done.returncode, target=0)


def measure_more_rules(*, is_quick: bool) -> Iterator[Target]:
    """The time of a hundred rules relative to ten."""
    table = make_floats(5_000, 20) if is_quick else make_floats(200_000, 100)
    for p in (1, 10):
        fits = [
            make_fit(SCMClassifier(p=p, max_rules=max_rules, n_jobs=-1), table)
            for max_rules in (100, 10)
        ]
        seconds_of_100, seconds_of_10 = find_best(fits, repeats=1 if is_quick else 6)
        what = f"{describe(table)} floats, p = {p}, max_rules=100 over 10"
        yield Target(what, seconds_of_100 / seconds_of_10, target=1.3)


def describe(data: dict[str, np.ndarray]) -> str:
    return " x ".join(f"{n:,}" for n in data["X"].shape)


def make_fit(learner: SCMClassifier, data: dict[str, np.ndarray]) -> Callable[[], object]:
    return lambda: learner.fit(data["X"], data["y"], environments=data["e"])


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def find_best(
    tasks: list[Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The best time of each task, once warm; they take turns."""
    times_by_task: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats + 1):
        for task, times in zip(tasks, times_by_task, strict=True):
            start = clock()
            task()
            times.append(clock() - start)
    return [min(times[1:]) for times in times_by_task]


if __name__ == "__main__":
    main()
