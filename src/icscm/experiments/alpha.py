"""Identification over the level alpha of the tests."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.datasets import make_conjunction
from icscm.estimators.cover import ICSCMClassifier
from icscm.experiments.base import Experiment, Options, Summary, compute_share, group_rows
from icscm.experiments.identification import N_SAMPLES
from icscm.experiments.methods import fit_invariant, take_training_part
from icscm.experiments.runner import Plan, Row, Task
from icscm.experiments.shares import make_share_figure, make_share_table

ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# The generator's readings: (noise, child). The paper's numbers come from the first.
READINGS = {
    "coin/code": ("coin", "code"),
    "flip/text": ("flip", "text"),
    "coin/text": ("coin", "text"),
}
N_DISTRACTORS = 5


def make_plan(options: Options) -> Plan:
    """One task per alpha and repetition; each reading has its own data."""
    tasks = [
        {
            "seed": options.seed,
            "n_samples": 1_000 if options.quick else N_SAMPLES,
            "alpha": alpha,
            "run": run,
        }
        for alpha in ((0.01, 0.05) if options.quick else ALPHAS)
        for run in range(options.choose_runs(100))
    ]
    return Plan("alpha", tasks, run_task, tuple(READINGS))


def run_task(task: Task, seed: int) -> Row:
    """1 for each reading under which ICSCM (p = 1) uses exactly the parents."""
    row: Row = {}
    for name, (noise, child) in READINGS.items():
        data = make_conjunction(
            task["n_samples"], N_DISTRACTORS, noise=noise, child=child, random_state=seed
        )
        train = take_training_part(data, seed)
        found = fit_invariant(ICSCMClassifier(alpha=task["alpha"], n_jobs=1), train)
        row[name] = int(found == set(data.parents))
    return row


def summarise(rows: Sequence[Row]) -> Summary:
    """Shares by alpha under each reading of the generator."""
    caption = (
        f"Share of runs in which ICSCM uses exactly the parents, by alpha, {N_DISTRACTORS} "
        "distractors, for three readings of the generator (noise/child)."
    )
    lines = tuple(READINGS)
    cells = group_rows(rows, "alpha")
    findings = []
    for line in lines:
        shares = {key[0]: compute_share(cell, line)[0] for key, cell in cells.groups.items()}
        best = max(shares, key=lambda alpha: shares[alpha])
        findings.append(f"{line}: best at alpha {best} ({shares[best]:.2f}).")
    findings.append("The paper fixes alpha at 0.05.")
    return Summary(
        [make_share_table(rows, "alpha", caption, "alpha", lines)],
        [make_share_figure(rows, "alpha", caption, "alpha", lines)],
        findings,
    )


EXPERIMENT = Experiment(
    "alpha",
    "The level of the tests",
    "Identification over alpha, under each reading of the generator's noise and child.",
    make_plan,
    summarise,
)
