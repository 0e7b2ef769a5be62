"""Identification over the number of samples."""

from __future__ import annotations

from icscm import ICSCMClassifier
from paper.base import Options, Summary, cross
from paper.methods import N_DISTRACTORS, find_features, fit_invariant, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, group_rows, show_shares

TITLE = "How many samples it takes"
DESCRIPTION = "Identification over 300 to 100,000 samples per environment. Not in the paper."

SIZES = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
METHODS = ("ICSCM", "ICP")


def make_plan(options: Options) -> Plan:
    """One task per data set."""
    cells = cross(n_samples=SIZES[:2] if options.quick else SIZES)
    return Plan(options.repeat(cells), run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """1 for each method that uses exactly the parents (ICSCM with p = 1)."""
    train = simulate(task, seed, share=1.0)
    return {
        "ICSCM": int(fit_invariant(ICSCMClassifier(n_jobs=1), train) == train.parents),
        "ICP": int(find_features("ICP", train) == train.parents),
    }


def summarise(rows: Rows) -> Summary:
    """Shares by number of samples."""
    caption = (
        "Share of runs that use exactly the parents, by samples per environment, "
        f"{N_DISTRACTORS} distractors."
    )
    cells = group_rows(rows, "n_samples")
    findings = [
        f"{int(n):,} samples per environment: ICSCM {find_mean(cell, 'ICSCM'):.2f}, "
        f"ICP {find_mean(cell, 'ICP'):.2f}."
        for n, cell in cells.items()
    ]
    return show_shares(cells, "samples", caption, METHODS, findings)
