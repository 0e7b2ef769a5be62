"""Figure 3: time of a fit against the number of distractors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm import ICSCMClassifier, InvariantCausalPrediction, SCMClassifier
from paper.base import Figure, Options, Summary, Table
from paper.methods import PAPER, Training, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import group_rows, read_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

TITLE = "Time of a fit (Figure 3)"
DESCRIPTION = "Seconds per fit of every method as distractors are added, one process at a time."
IS_SERIAL = True

SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 30, 100, 300, 1_000)
# The exponential method is not run with more distractors.
MOST_FOR_ICP = 13
METHODS = ("SCM", "DT", "ICP", "ICSCM")


def make_plan(options: Options) -> Plan:
    """One task per data set, all methods timed one after the other."""
    tasks = options.vary_distractors((1, 3) if options.quick else SIZES, full=5)
    return Plan(tasks, run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """Seconds of one fit with default settings; empty where a method is not run."""
    from sklearn.tree import DecisionTreeClassifier

    train = simulate(task, seed)
    tree = DecisionTreeClassifier(max_depth=10)
    learners = {
        "SCM": SCMClassifier(),
        "DT": tree,
        "ICP": InvariantCausalPrediction(),
        "ICSCM": ICSCMClassifier(**PAPER),
    }
    row: Row = {}
    for method in METHODS:
        if method == "ICP" and task["n_distractors"] > MOST_FOR_ICP:
            row[method] = ""
            continue
        has_environments = method in ("ICP", "ICSCM")
        row[method] = _time(learners[method], train, has_environments=has_environments)
    return row


def _time(learner: Any, train: Training, *, has_environments: bool) -> float:
    """A small fit first, which compiles and loads what must be; then the fit that counts."""
    seconds = 0.0
    for n in (400, len(train.y)):
        environments = {"environments": train.environments[:n]} if has_environments else {}
        start = time.perf_counter()
        learner.fit(train.X[:n], train.y[:n], **environments)
        seconds = time.perf_counter() - start
    return seconds


def summarise(rows: Rows) -> Summary:
    """Median times, and how they grow."""
    cells = group_rows(rows, "n_distractors")
    medians: dict[str, dict[str, float]] = {method: {} for method in METHODS}
    for method in METHODS:
        for size, cell in cells.items():
            seconds = read_numbers(cell, method)
            if len(seconds):
                medians[method][size] = float(np.median(seconds))
    lines = [
        [f"{int(size):,}", *(_format(medians[method].get(size)) for method in METHODS)]
        for size in cells
    ]
    table = Table("runtime", "Median seconds of one fit.", ["distractors", *METHODS], lines)
    figure = Figure("runtime", "Time of a fit by number of distractors.", lambda: _draw(medians))
    findings = []
    for method, times in medians.items():
        sizes = list(times)
        fewest = sizes[0]
        most = sizes[-1]
        findings.append(
            f"{method}: {times[fewest] * 1e3:.1f} ms at {fewest}, {times[most] * 1e3:.1f} ms at "
            f"{most} distractors."
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
