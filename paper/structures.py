"""Conjunctions, disjunctions and trees of several parents, binary and continuous features."""

from __future__ import annotations

from icscm import ICSCMClassifier
from paper.base import Options, Summary, Table, cross
from paper.methods import fit_invariant, fit_rate_tree, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "Other structures"
DESCRIPTION = "Conjunctions and disjunctions of 1 to 4 parents, trees of 3 and 7 decisions."

N_PARENTS = {"conjunction": (1, 2, 3, 4), "disjunction": (1, 2, 3, 4), "tree": (3, 7)}
QUICK = {"conjunction": (2,), "tree": (3,)}
FEATURES = ("binary", "continuous")
METHODS = ("ICSCM", "rate tree")
MEASURES = ("exact", "no non-parent")
COLUMNS = tuple(f"{method}: {measure}" for method in METHODS for measure in MEASURES)


def make_plan(options: Options) -> Plan:
    """One task per structure, kind of feature and repetition."""
    cells: list[Task] = []
    n_samples = [options.n_samples]
    for name, sizes in (QUICK if options.quick else N_PARENTS).items():
        cells += cross(n_samples=n_samples, structure=[name], n_parents=sizes, features=FEATURES)
    return Plan(options.repeat(cells), run_task, COLUMNS)


def run_task(task: Task, seed: int) -> Row:
    """Whether ICSCM (p = 1), and a tree, use exactly the parents, and whether nothing else."""
    structure = task["structure"]
    train = simulate(task, seed, model_type=structure)
    learned = "disjunction" if structure == "disjunction" else "conjunction"
    cover = fit_invariant(ICSCMClassifier(model_type=learned, n_jobs=1), train)
    row: Row = {}
    for method, found in zip(METHODS, (cover, fit_rate_tree(train)), strict=True):
        row[f"{method}: exact"] = int(found == train.parents)
        row[f"{method}: no non-parent"] = int(found <= train.parents)
    return row


def summarise(rows: Rows) -> Summary:
    """Shares for each structure."""
    rows_by_kind = group_rows(rows, "features")
    columns = [(kind, measure) for kind in rows_by_kind for measure in MEASURES]
    lines = []
    for key, cell in group_rows(rows, "structure", "n_parents").items():
        cell_by_kind = group_rows(cell, "features")
        for method in METHODS:
            shares = [
                format_mean(read_numbers(cell_by_kind[kind], f"{method}: {measure}"))
                for kind, measure in columns
            ]
            lines.append([*key, method, *shares])
    table = Table(
        "structures",
        "Share of runs in which a method uses exactly the parents, and uses no non-parent.",
        ["structure", "parents", "method", *(f"{kind}, {measure}" for kind, measure in columns)],
        lines,
    )
    findings = [
        _compare(kind, rows_of_kind, method)
        for kind, rows_of_kind in rows_by_kind.items()
        for method in METHODS
    ]
    return Summary([table], findings=findings)


def _compare(kind: str, rows: Rows, method: str) -> str:
    """What a method makes of trees, beside conjunctions and disjunctions."""
    trees = [row for row in rows if row["structure"] == "tree"]
    others = [row for row in rows if row["structure"] != "tree"]
    share_of_others = find_mean(others, f"{method}: exact")
    share_of_trees = find_mean(trees, f"{method}: exact")
    note = ", which break its assumption on the functional form" if method == "ICSCM" else ""
    return (
        f"{kind.capitalize()} features, {method}: exactly the parents in {share_of_others:.2f} of "
        f"all runs with conjunctions and disjunctions, in {share_of_trees:.2f} with trees{note}."
    )
