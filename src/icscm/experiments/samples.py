"""Identification over the number of samples: the first thing a user must know."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.datasets import make_conjunction
from icscm.estimators.cover import ICSCMClassifier
from icscm.experiments.base import Experiment, Options, Summary, compute_share, group_rows
from icscm.experiments.methods import find_features, fit_invariant, take_training_part
from icscm.experiments.runner import Plan, Row, Task
from icscm.experiments.shares import make_share_figure, make_share_table

SIZES = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
METHODS = ("ICSCM", "ICP")
N_DISTRACTORS = 5


def make_plan(options: Options) -> Plan:
    """One task per data set."""
    tasks = [
        {"seed": options.seed, "n_samples": n_samples, "run": run}
        for n_samples in ((300, 1_000) if options.quick else SIZES)
        for run in range(options.choose_runs(100))
    ]
    return Plan("samples", tasks, run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """1 for each method that uses exactly the parents (ICSCM with p = 1)."""
    data = make_conjunction(task["n_samples"], N_DISTRACTORS, random_state=seed)
    train = take_training_part(data, seed, share=1.0)
    return {
        "ICSCM": int(fit_invariant(ICSCMClassifier(n_jobs=1), train) == set(data.parents)),
        "ICP": int(find_features("ICP", train) == set(data.parents)),
    }


def summarise(rows: Sequence[Row]) -> Summary:
    """Shares by number of samples."""
    caption = (
        "Share of runs that use exactly the parents, by samples per environment, "
        f"{N_DISTRACTORS} distractors."
    )
    cells = group_rows(rows, "n_samples")
    findings = [
        f"{int(n):,} samples per environment: ICSCM {compute_share(cell, 'ICSCM')[0]:.2f}, "
        f"ICP {compute_share(cell, 'ICP')[0]:.2f}."
        for (n,), cell in cells.groups.items()
    ]
    return Summary(
        [make_share_table(rows, "samples", caption, "n_samples", METHODS)],
        [make_share_figure(rows, "samples", caption, "n_samples", METHODS)],
        findings,
    )


EXPERIMENT = Experiment(
    "samples",
    "How many samples it takes",
    "Identification over 300 to 100,000 samples per environment. Not in the paper.",
    make_plan,
    summarise,
)
