"""Table 1: how often each method relies on exactly the causal parents."""

from __future__ import annotations

from paper.base import Options, Summary, Table
from paper.methods import find_features, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import compare_with_published, find_mean, format_means, group_rows

TITLE = "Identification of the causal parents (Table 1)"
DESCRIPTION = "Share of runs in which each method relies on exactly the parents A1 and A2."

METHODS = ("SCM", "DT", "ICP", "ICP, nominal dof", "ICSCM")

# Table 1 of the paper. Its ICP counts 2**|S| degrees of freedom: our "nominal dof".
PUBLISHED = {
    "SCM": (0.0,) * 7,
    "DT": (0.0,) * 7,
    "ICP, nominal dof": (0.96, 0.98, 0.99, 0.99, 0.97, 0.09, 0.00),
    "ICSCM": (0.96, 0.97, 0.99, 0.96, 0.97, 0.96, 0.96),
}


def make_plan(options: Options) -> Plan:
    """One task per data set; all methods see the same one."""
    sizes = (1, 3) if options.quick else range(1, 8)
    return Plan(options.vary_distractors(sizes), run_task, METHODS)


def run_task(task: Task, seed: int) -> Row:
    """1 for each method that uses exactly the parents."""
    train = simulate(task, seed)
    return {method: int(find_features(method, train) == train.parents) for method in METHODS}


def summarise(rows: Rows) -> Summary:
    """Our shares beside the paper's."""
    cells = group_rows(rows, "n_distractors")
    sizes = list(cells)
    n_runs = len(cells[sizes[0]])
    lines = []
    findings = []
    for method in METHODS:
        lines.append([method, "here", *format_means(cells, method)])
        if method in PUBLISHED:
            paper = [PUBLISHED[method][int(size) - 1] for size in sizes]
            lines.append([method, "paper", *(f"{share:.2f}" for share in paper)])
            shares = {f"{size} distractors": find_mean(cells[size], method) for size in sizes}
            findings.append(compare_with_published(method, shares, paper, n_runs))
    caption = (
        "Share of runs that use exactly the causal parents, by number of distractors "
        "(± binomial standard error)."
    )
    adjusted = find_mean(cells[sizes[-1]], "ICP")
    nominal = find_mean(cells[sizes[-1]], "ICP, nominal dof")
    findings.append(
        f"ICP at {sizes[-1]} distractors: {adjusted:.2f} when only strata that can carry "
        f"information count towards the degrees of freedom, {nominal:.2f} when all 2^|S| do, as "
        "in the paper."
    )
    table = Table("identification", caption, ["method", "", *sizes], lines)
    return Summary([table], findings=findings)
