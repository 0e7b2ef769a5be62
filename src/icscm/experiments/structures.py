"""Conjunctions, disjunctions and trees of several parents, binary and continuous features."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.datasets import make_conjunction
from icscm.estimators.cover import ICSCMClassifier
from icscm.experiments.base import (
    Experiment,
    Options,
    Summary,
    Table,
    compute_share,
    format_share,
    group_rows,
    list_values,
)
from icscm.experiments.identification import N_SAMPLES
from icscm.experiments.methods import fit_invariant, take_training_part
from icscm.experiments.runner import Plan, Row, Task

STRUCTURES = (
    *(("conjunction", n) for n in (1, 2, 3, 4)),
    *(("disjunction", n) for n in (1, 2, 3, 4)),
    *(("tree", n) for n in (3, 7)),
)
N_DISTRACTORS = 5
FEATURES = ("binary", "continuous")


def make_plan(options: Options) -> Plan:
    """One task per structure, kind of feature and repetition."""
    structures = (("conjunction", 2), ("tree", 3)) if options.quick else STRUCTURES
    tasks = [
        {
            "seed": options.seed,
            "n_samples": 1_000 if options.quick else N_SAMPLES,
            "structure": structure,
            "n_parents": n_parents,
            "features": features,
            "run": run,
        }
        for structure, n_parents in structures
        for features in FEATURES
        for run in range(options.choose_runs(100))
    ]
    return Plan("structures", tasks, run_task, ("exact", "no non-parent"))


def run_task(task: Task, seed: int) -> Row:
    """Whether ICSCM (p = 1) uses exactly the parents, and whether it uses nothing else."""
    data = make_conjunction(
        task["n_samples"],
        N_DISTRACTORS,
        n_parents=task["n_parents"],
        model_type=task["structure"],
        continuous=task["features"] == "continuous",
        random_state=seed,
    )
    train = take_training_part(data, seed)
    is_disjunction = task["structure"] == "disjunction"
    learner = ICSCMClassifier(
        model_type="disjunction" if is_disjunction else "conjunction", n_jobs=1
    )
    found, parents = fit_invariant(learner, train), set(data.parents)
    return {"exact": int(found == parents), "no non-parent": int(found <= parents)}


def summarise(rows: Sequence[Row]) -> Summary:
    """Shares for each structure."""
    cells = group_rows(rows, "structure", "n_parents", "features")
    keys = dict.fromkeys((row["structure"], row["n_parents"]) for row in rows)
    columns = [(kind, measure) for kind in list_values(rows, "features") for measure in _MEASURES]
    table = Table(
        "structures",
        "Share of runs in which ICSCM uses exactly the parents, and uses no non-parent.",
        ["structure", "parents", *(f"{kind}, {measure}" for kind, measure in columns)],
        [
            [
                *key,
                *(
                    format_share(*compute_share(cells[(*key, kind)], measure))
                    for kind, measure in columns
                ),
            ]
            for key in keys
        ],
    )
    findings = []
    for kind in list_values(rows, "features"):
        alike = [row for row in rows if row["features"] == kind]
        trees = [row for row in alike if row["structure"] == "tree"]
        others = [row for row in alike if row["structure"] != "tree"]
        findings.append(
            f"{kind.capitalize()} features: exactly the parents in "
            f"{compute_share(others, 'exact')[0]:.2f} of all runs with conjunctions and "
            f"disjunctions, in {compute_share(trees, 'exact')[0]:.2f} with trees, which break the "
            "assumption on the functional form."
        )
    return Summary([table], findings=findings)


_MEASURES = ("exact", "no non-parent")

EXPERIMENT = Experiment(
    "structures",
    "Other structures",
    "Conjunctions and disjunctions of 1 to 4 parents, trees of 3 and 7 decisions.",
    make_plan,
    summarise,
)
