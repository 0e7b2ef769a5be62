"""Table 5: identification by ICSCM as the number of distractors grows to thousands."""

from __future__ import annotations

from dataclasses import replace

from paper.base import Options, Summary, Table
from paper.methods import find_features, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import (
    compare_with_published,
    find_mean,
    format_mean,
    group_rows,
    read_numbers,
)

TITLE = "Many distractors (Table 5)"
DESCRIPTION = "Identification by ICSCM with 1 to 10,000 distractors."

PUBLISHED = {
    1: 0.96, 2: 0.97, 3: 0.99, 4: 0.96, 5: 0.97, 6: 0.96, 7: 0.96, 10: 0.89, 15: 0.89, 20: 0.86,
    25: 0.96, 50: 0.90, 100: 0.91, 200: 0.94,
}  # fmt: skip
# Not in the paper, with a tenth of the runs.
BEYOND = (1_000, 10_000)


def make_plan(options: Options) -> Plan:
    """One task per data set."""
    tasks = options.vary_distractors((3, 20) if options.quick else PUBLISHED)
    if not options.quick:
        fewer = replace(options, runs=max(1, options.choose_runs(100) // 10))
        tasks += fewer.vary_distractors(BEYOND)
    return Plan(tasks, run_task, ("ICSCM",))


def run_task(task: Task, seed: int) -> Row:
    """1 if ICSCM uses exactly the parents."""
    train = simulate(task, seed)
    return {"ICSCM": int(find_features("ICSCM", train) == train.parents)}


def summarise(rows: Rows) -> Summary:
    """Our shares beside the paper's."""
    cells = {int(size): cell for size, cell in group_rows(rows, "n_distractors").items()}
    published = {size: PUBLISHED[size] for size in cells if size in PUBLISHED}
    lines = []
    for size, cell in cells.items():
        here = format_mean(read_numbers(cell, "ICSCM"))
        paper = f"{published[size]:.2f}" if size in published else "-"
        lines.append([f"{size:,}", str(len(cell)), here, paper])
    table = Table(
        "dimensions",
        "Share of runs in which ICSCM uses exactly the causal parents.",
        ["distractors", "runs", "here", "paper"],
        lines,
    )
    shares = {f"{size} distractors": find_mean(cells[size], "ICSCM") for size in published}
    n_runs = len(cells[next(iter(published))])
    finding = compare_with_published("ICSCM", shares, list(published.values()), n_runs)
    return Summary([table], findings=[finding])
