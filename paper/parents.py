"""Parents found by a tree of invariant rates, which assumes no functional form."""

from __future__ import annotations

from paper.alpha import READINGS
from paper.base import Options, Summary, Table, cross
from paper.methods import fit_rate_tree, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "Parents by a tree"
DESCRIPTION = "Identification by a tree of invariant rates under each reading. Not in the paper."

SIZES = (1_000, 10_000)
DISTRACTORS = (10, 50)
MEASURES = {
    "exact": "Share of runs in which the rate tree uses exactly the parents.",
    "child": "Share of runs in which it uses the child.",
    "distractor": "Share of runs in which it uses a distractor.",
}


def make_plan(options: Options) -> Plan:
    """One task per size, number of distractors, reading and repetition."""
    sizes = SIZES[:1] if options.quick else SIZES
    cells = cross(reading=READINGS, n_distractors=DISTRACTORS, n_samples=sizes)
    return Plan(options.repeat(cells), run_task, tuple(MEASURES))


def run_task(task: Task, seed: int) -> Row:
    """Exactly the parents? The child? A distractor?"""
    train = simulate(task, seed, share=1.0, **READINGS[task["reading"]])
    features = fit_rate_tree(train)
    wrong = features - train.parents
    return {
        "exact": int(features == train.parents),
        "child": int("C1" in wrong),
        "distractor": int(bool(wrong - {"C1"})),
    }


def summarise(rows: Rows) -> Summary:
    """Shares by samples per environment and distractors."""
    lines = []
    for key, cell in group_rows(rows, "n_samples", "n_distractors", "reading").items():
        lines.append([*key, *(format_mean(read_numbers(cell, name)) for name in MEASURES)])
    table = Table(
        "parents",
        " ".join(MEASURES.values()),
        ["samples", "distractors", "reading", *MEASURES],
        sorted(lines, key=lambda line: (int(line[0]), int(line[1]))),
    )
    findings = [
        f"{int(n):,} samples per environment: exactly the parents in "
        f"{find_mean(cell, 'exact'):.2f}, the child in {find_mean(cell, 'child'):.3f} of all runs."
        for n, cell in group_rows(rows, "n_samples").items()
    ]
    return Summary([table], findings=findings)
