"""Figure 3: time of a fit against the number of distractors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
from icscm.estimators.icp import InvariantCausalPrediction
from icscm.experiments.base import Experiment, Figure, Options, Summary, Table
from icscm.experiments.methods import Training, simulate
from icscm.experiments.runner import Plan, Row, Task
from icscm.experiments.shares import group_rows, read_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 30, 100, 300, 1_000)
# Distractors beyond which the exponential method is not asked.
MOST_FOR_ICP = 13
METHODS = ("SCM", "DT", "ICP", "ICSCM")


def make_plan(options: Options) -> Plan:
    """One task per data set, all methods timed one after the other."""
    tasks = options.vary_distractors((1, 3) if options.quick else SIZES, full=5)
    return Plan(tasks, run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """Seconds of one fit with default settings; empty where a method is not asked."""
    train = simulate(task, seed)
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
    cells = group_rows(rows, "n_distractors")
    medians = {
        method: {
            size: float(np.median(values))
            for size, cell in cells.items()
            if len(values := read_numbers(cell, method))
        }
        for method in METHODS
    }
    lines = [
        [f"{int(size):,}", *(_format(medians[method].get(size)) for method in METHODS)]
        for size in cells
    ]
    table = Table("runtime", "Median seconds of one fit.", ["distractors", *METHODS], lines)
    figure = Figure("runtime", "Time of a fit by number of distractors.", lambda: _draw(medians))
    findings = []
    for method, times in medians.items():
        (first, start), (last, end) = (list(times.items())[at] for at in (0, -1))
        findings.append(
            f"{method}: {start * 1e3:.1f} ms at {first}, {end * 1e3:.1f} ms at {last} distractors."
        )
    findings.append("The paper shows ICP growing exponentially and ICSCM linearly (Figure 3).")
    return Summary([table], [figure], findings)


def _format(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.4f}"


def _draw(medians: dict[str, dict[str, float]]) -> MatplotlibFigure:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for method, times in medians.items():
        axes.plot(list(map(int, times)), list(times.values()), marker="o", label=method)
    axes.set(xscale="log", yscale="log", xlabel="distractors", ylabel="seconds per fit")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


EXPERIMENT = Experiment(
    "runtime",
    "Time of a fit (Figure 3)",
    "Seconds per fit of every method as distractors are added, one process at a time.",
    make_plan,
    summarise,
    is_serial=True,
)
