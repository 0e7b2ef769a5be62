"""Conjunctions, disjunctions and trees of several parents, binary and continuous features."""

from __future__ import annotations

from icscm.estimators.cover import ICSCMClassifier
from icscm.experiments.base import Options, Summary, Table, cross
from icscm.experiments.methods import fit_invariant, simulate
from icscm.experiments.runner import Plan, Row, Rows, Task
from icscm.experiments.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "Other structures"
DESCRIPTION = "Conjunctions and disjunctions of 1 to 4 parents, trees of 3 and 7 decisions."

N_PARENTS = {"conjunction": (1, 2, 3, 4), "disjunction": (1, 2, 3, 4), "tree": (3, 7)}
QUICK = {"conjunction": (2,), "tree": (3,)}
FEATURES = ("binary", "continuous")
MEASURES = ("exact", "no non-parent")


def make_plan(options: Options) -> Plan:
    """One task per structure, kind of feature and repetition."""
    cells: list[Task] = []
    n_samples = [options.n_samples]
    for name, sizes in (QUICK if options.quick else N_PARENTS).items():
        cells += cross(n_samples=n_samples, structure=[name], n_parents=sizes, features=FEATURES)
    return Plan(options.repeat(cells), run_task, MEASURES)


def run_task(task: Task, seed: int) -> Row:
    """Whether ICSCM (p = 1) uses exactly the parents, and whether it uses nothing else."""
    structure = task["structure"]
    train = simulate(task, seed, model_type=structure)
    learned = "disjunction" if structure == "disjunction" else "conjunction"
    found = fit_invariant(ICSCMClassifier(model_type=learned, n_jobs=1), train)
    return {"exact": int(found == train.parents), "no non-parent": int(found <= train.parents)}


def summarise(rows: Rows) -> Summary:
    """Shares for each structure."""
    by_kind = group_rows(rows, "features")
    columns = [(kind, measure) for kind in by_kind for measure in MEASURES]
    lines = []
    for key, cell in group_rows(rows, "structure", "n_parents").items():
        parts = group_rows(cell, "features")
        shares = [format_mean(read_numbers(parts[kind], measure)) for kind, measure in columns]
        lines.append([*key, *shares])
    table = Table(
        "structures",
        "Share of runs in which ICSCM uses exactly the parents, and uses no non-parent.",
        ["structure", "parents", *(f"{kind}, {measure}" for kind, measure in columns)],
        lines,
    )
    findings = []
    for kind, alike in by_kind.items():
        trees = [row for row in alike if row["structure"] == "tree"]
        others = [row for row in alike if row["structure"] != "tree"]
        findings.append(
            f"{kind.capitalize()} features: exactly the parents in "
            f"{find_mean(others, 'exact'):.2f} of all runs with conjunctions and "
            f"disjunctions, in {find_mean(trees, 'exact'):.2f} with trees, which break the "
            "assumption on the functional form."
        )
    return Summary([table], findings=findings)
