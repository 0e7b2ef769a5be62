"""Figure 3: time of a fit against the number of distractors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.datasets import make_conjunction
from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
from icscm.estimators.icp import InvariantCausalPrediction
from icscm.experiments.base import (
    Experiment,
    Figure,
    Options,
    Summary,
    Table,
    group_rows,
    list_values,
)
from icscm.experiments.identification import N_SAMPLES
from icscm.experiments.methods import Training, take_training_part
from icscm.experiments.runner import Plan, Row, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 30, 100, 300, 1_000)
# Distractors beyond which the exponential method is not asked.
MOST_FOR_ICP = 13
METHODS = ("SCM", "DT", "ICP", "ICSCM")


def make_plan(options: Options) -> Plan:
    """One task per data set, all methods timed one after the other."""
    tasks = [
        {
            "seed": options.seed,
            "n_samples": 1_000 if options.quick else N_SAMPLES,
            "n_distractors": n,
            "run": run,
        }
        for n in ((1, 3) if options.quick else SIZES)
        for run in range(options.choose_runs(5))
    ]
    return Plan("runtime", tasks, run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """Seconds of one fit with default settings; empty where a method is not asked."""
    data = make_conjunction(task["n_samples"], task["n_distractors"], random_state=seed)
    train = take_training_part(data, seed)
    row: Row = {}
    for method, fit in _list_fits().items():
        is_asked = method != "ICP" or task["n_distractors"] <= MOST_FOR_ICP
        row[method] = _time(fit, train) if is_asked else ""
    return row


def _list_fits() -> dict[str, Callable[[Training], Any]]:
    from sklearn.tree import DecisionTreeClassifier

    def fit_invariant(estimator: Any) -> Callable[[Training], Any]:
        return lambda train: estimator.fit(train.X, train.y, environments=train.environments)

    return {
        "SCM": lambda train: SCMClassifier().fit(train.X, train.y),
        "DT": lambda train: DecisionTreeClassifier(max_depth=10).fit(train.X, train.y),
        "ICP": fit_invariant(InvariantCausalPrediction()),
        "ICSCM": fit_invariant(ICSCMClassifier()),
    }


def _time(fit: Callable[[Training], Any], train: Training) -> float:
    """A small fit first, which compiles and loads what must be; then the fit that counts."""
    fit(train._replace(X=train.X[:400], y=train.y[:400], environments=train.environments[:400]))
    start = time.perf_counter()
    fit(train)
    return time.perf_counter() - start


def summarise(rows: Sequence[Row]) -> Summary:
    """Median times, and how they grow."""
    sizes = list_values(rows, "n_distractors")
    cells = group_rows(rows, "n_distractors")

    def median(size: str, method: str) -> float | None:
        values = [float(row[method]) for row in cells[(size,)] if row[method] != ""]
        return float(np.median(values)) if values else None

    table = Table(
        "runtime",
        "Median seconds of one fit.",
        ["distractors", *METHODS],
        [
            [f"{int(size):,}", *(_format(median(size, method)) for method in METHODS)]
            for size in sizes
        ],
    )

    def draw() -> MatplotlibFigure:
        from matplotlib.figure import Figure as NewFigure

        figure = NewFigure(figsize=(5.5, 3.6), layout="constrained")
        axes = figure.subplots()
        for method in METHODS:
            points = [(int(size), value) for size in sizes if (value := median(size, method))]
            axes.plot(*zip(*points, strict=True), marker="o", label=method)
        axes.set(xscale="log", yscale="log", xlabel="distractors", ylabel="seconds per fit")
        axes.grid(alpha=0.3)
        axes.legend()
        return figure

    findings = []
    for method in METHODS:
        points = [(size, value) for size in sizes if (value := median(size, method))]
        (first, start), (last, end) = points[0], points[-1]
        findings.append(
            f"{method}: {start * 1e3:.1f} ms at {first}, {end * 1e3:.1f} ms at {last} distractors."
        )
    findings.append("The paper shows ICP growing exponentially and ICSCM linearly (Figure 3).")
    return Summary(
        [table], [Figure("runtime", "Time of a fit by number of distractors.", draw)], findings
    )


def _format(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.4f}"


EXPERIMENT = Experiment(
    "runtime",
    "Time of a fit (Figure 3)",
    "Seconds per fit of every method as distractors are added, one process at a time.",
    make_plan,
    summarise,
    is_serial=True,
)
