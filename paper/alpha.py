"""Identification over the level alpha of the tests."""

from __future__ import annotations

from typing import Any

from icscm import ICSCMClassifier
from paper.base import Options, Summary, cross
from paper.methods import N_DISTRACTORS, fit_invariant, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, group_rows, show_shares

TITLE = "The level of the tests"
DESCRIPTION = "Identification over alpha, under each reading of the generator's noise and child."

ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# The generator's readings, noise/child. The paper's numbers come from the first.
READINGS: dict[str, dict[str, Any]] = {
    "coin/code": {"noise": "coin", "child": "code"},
    "flip/text": {"noise": "flip", "child": "text"},
    "coin/text": {"noise": "coin", "child": "text"},
}


def make_plan(options: Options) -> Plan:
    """One task per alpha and repetition; each reading has its own data."""
    alphas = (0.01, 0.05) if options.quick else ALPHAS
    cells = cross(n_samples=[options.n_samples], alpha=alphas)
    return Plan(options.repeat(cells), run_task, tuple(READINGS))


def run_task(task: Task, seed: int) -> Row:
    """1 for each reading under which ICSCM (p = 1) uses exactly the parents."""
    row: Row = {}
    for name, reading in READINGS.items():
        train = simulate(task, seed, **reading)
        features = fit_invariant(ICSCMClassifier(alpha=task["alpha"], n_jobs=1), train)
        row[name] = int(features == train.parents)
    return row


def summarise(rows: Rows) -> Summary:
    """Shares by alpha under each reading of the generator."""
    caption = (
        f"Share of runs in which ICSCM uses exactly the parents, by alpha, {N_DISTRACTORS} "
        "distractors, for three readings of the generator (noise/child)."
    )
    cells = group_rows(rows, "alpha")
    findings = []
    for name in READINGS:
        shares = {alpha: find_mean(cell, name) for alpha, cell in cells.items()}
        best = max(shares, key=lambda alpha: shares[alpha])
        findings.append(f"{name}: best at alpha {best} ({shares[best]:.2f}).")
    findings.append("The paper fixes alpha at 0.05.")
    return show_shares(cells, "alpha", caption, tuple(READINGS), findings)
