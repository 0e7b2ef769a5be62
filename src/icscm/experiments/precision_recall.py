"""Figure 7: precision and recall of the parents, ICP and ICSCM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icscm.datasets import make_conjunction
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
from icscm.experiments.methods import find_features, take_training_part
from icscm.experiments.runner import Plan, Row, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

METHODS = ("ICP", "ICP, nominal dof", "ICSCM")
MEASURES = ("precision", "recall")


def make_plan(options: Options) -> Plan:
    """One task per data set."""
    tasks = [
        {
            "seed": options.seed,
            "n_samples": 1_000 if options.quick else N_SAMPLES,
            "n_distractors": n,
            "run": run,
        }
        for n in ((1, 3) if options.quick else range(1, 8))
        for run in range(options.choose_runs(100))
    ]
    columns = [f"{method}: {measure}" for method in METHODS for measure in MEASURES]
    return Plan("precision-recall", tasks, run_task, columns)


def run_task(task: Task, seed: int) -> Row:
    """Precision and recall of each method. Nothing found is precise, and recalls nothing."""
    data = make_conjunction(task["n_samples"], task["n_distractors"], random_state=seed)
    train = take_training_part(data, seed)
    row: Row = {}
    for method in METHODS:
        found = find_features(method, train) or set()
        n_right = len(found & set(data.parents))
        row[f"{method}: precision"] = n_right / len(found) if found else 1.0
        row[f"{method}: recall"] = n_right / len(data.parents)
    return row


def summarise(rows: Sequence[Row]) -> Summary:
    """Means with standard errors, and the curves."""
    sizes = list_values(rows, "n_distractors")
    cells = group_rows(rows, "n_distractors")

    def mean(size: str, column: str) -> tuple[float, float]:
        values = np.array([float(row[column]) for row in cells[(size,)]])
        return float(values.mean()), float(values.std() / np.sqrt(len(values)))

    table = Table(
        "precision-recall",
        "Mean precision and recall of the causal parents (± standard error).",
        ["method", "", *sizes],
        [
            [
                method,
                measure,
                *("{:.2f} ± {:.2f}".format(*mean(size, f"{method}: {measure}")) for size in sizes),
            ]
            for method in METHODS
            for measure in MEASURES
        ],
    )

    def draw() -> MatplotlibFigure:
        from matplotlib.figure import Figure as NewFigure

        figure = NewFigure(figsize=(8, 3.2), layout="constrained")
        for axes, measure in zip(figure.subplots(1, 2, sharey=True), MEASURES, strict=True):
            for method in METHODS:
                points = [mean(size, f"{method}: {measure}") for size in sizes]
                axes.errorbar(
                    [int(size) for size in sizes],
                    [point[0] for point in points],
                    [point[1] for point in points],
                    marker="o",
                    capsize=2,
                    label=method,
                )
            axes.set(xlabel="distractors", ylabel=measure, ylim=(-0.03, 1.05))
        figure.axes[0].legend()
        return figure

    caption = "Precision and recall of the causal parents by number of distractors."
    last, first = sizes[-1], sizes[0]
    findings = [
        f"{method}: recall {mean(first, f'{method}: recall')[0]:.2f} at {first} and "
        f"{mean(last, f'{method}: recall')[0]:.2f} at {last} distractors, precision "
        f"{mean(last, f'{method}: precision')[0]:.2f} there."
        for method in METHODS
    ]
    findings.append(
        "The paper reports (in a figure, without numbers) that ICP's recall drops from 6 "
        "distractors on while precision stays, and that both stay high for ICSCM."
    )
    return Summary([table], [Figure("precision-recall", caption, draw)], findings)


EXPERIMENT = Experiment(
    "precision-recall",
    "Precision and recall of the parents (Figure 7)",
    "How much of what ICP and ICSCM find are parents, and how many of the parents they find.",
    make_plan,
    summarise,
)
