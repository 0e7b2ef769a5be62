"""Sets of features tested by trees: whether the level is held, and what is found beside ICP."""

from __future__ import annotations

import numpy as np

from icscm import InvariantCausalPrediction
from icscm.search.tree_sets import TreeTester, TreeTestSettings
from icscm.sources.memory import make_memory_source
from paper.alpha import READINGS
from paper.base import Options, Summary, Table
from paper.methods import Training, find_features, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "Trees with a guarantee"
DESCRIPTION = "How often the parents' own set is rejected, and what is found. Not in the paper."

N_DISTRACTORS = 3
ALPHA = 0.05
PAPER: Task = {
    "reading": "coin/code",
    "structure": "conjunction",
    "n_parents": 2,
    "n_environments": 2,
    "features": "binary",
}
# One thing changed at a time, with samples per environment.
SETTINGS: tuple[Task, ...] = (
    *({"n_samples": n} for n in (300, 1_000, 10_000)),
    *({"reading": "flip/text", "n_samples": n} for n in (1_000, 10_000)),
    *({"reading": "coin/text", "n_samples": n} for n in (1_000, 10_000)),
    {"n_parents": 4, "n_samples": 10_000},
    *({"structure": "disjunction", "n_parents": 3, "n_samples": n} for n in (1_000, 10_000)),
    *({"structure": "tree", "n_parents": 3, "n_samples": n} for n in (1_000, 10_000)),
    *({"n_environments": 5, "n_samples": n} for n in (300, 1_000)),
    *({"n_environments": 10, "n_samples": n} for n in (300, 1_000)),
    *({"features": "continuous", "n_samples": n} for n in (1_000, 10_000)),
)
MEASURES = ("truth rejected", "exact", "non-parent", "ICP: exact", "ICP: non-parent")


def make_plan(options: Options) -> Plan:
    """One task per setting and repetition."""
    cells = [PAPER | {"n_distractors": N_DISTRACTORS} | change for change in SETTINGS]
    if options.quick:
        cells = [cell for cell in cells if cell["n_samples"] == 300]
    tasks = [
        task
        for cell in cells
        for task in options.repeat([cell], full=500 if cell["n_samples"] <= 1_000 else 200)
    ]
    return Plan(tasks, run_task, MEASURES)


def run_task(task: Task, seed: int) -> Row:
    """Whether the parents' own set is rejected; what is found, and by ICP for binary features."""
    knobs = {**READINGS[task["reading"]], "model_type": task["structure"]}
    train = simulate(task, seed, share=1.0, **knobs)
    row: Row = dict.fromkeys(MEASURES, "")
    row["truth rejected"] = int(_test_parents(train) <= ALPHA)
    selector = InvariantCausalPrediction(model="tree", alpha=ALPHA, random_state=seed % 2**32)
    selector.fit(train.X, train.y, environments=train.environments)
    features_by_prefix = {"": train.name(selector.parents_ or ())}
    if task["features"] == "binary":
        features_by_prefix["ICP: "] = find_features("ICP", train) or set()
    for prefix, features in features_by_prefix.items():
        row[f"{prefix}exact"] = int(features == train.parents)
        row[f"{prefix}non-parent"] = int(bool(features - train.parents))
    return row


def _test_parents(train: Training) -> float:
    """p-value of the parents' set."""
    names, numbers = np.unique(train.environments, return_inverse=True)
    source = make_memory_source(
        train.X, train.y, numbers, environment_labels=names.tolist(), n_jobs=1
    )
    parents = [train.names.index(name) for name in sorted(train.parents)]
    settings = TreeTestSettings(seed=train.seed % 2**32)
    return TreeTester(source, parents, settings).compute_p_value(parents)


def summarise(rows: Rows) -> Summary:
    """A line for each setting."""
    keys = *PAPER, "n_samples"
    lines = []
    for key, cell in group_rows(rows, *keys).items():
        values_by_measure = [read_numbers(cell, measure) for measure in MEASURES]
        shares = [format_mean(values) if len(values) else "" for values in values_by_measure]
        lines.append([*key, *shares])
    caption = (
        "Share of runs in which the parents' own set is rejected at alpha 0.05, in which exactly "
        f"the parents are found, and in which a non-parent is; {N_DISTRACTORS} distractors."
    )
    header = [*(key.removeprefix("n_") for key in keys), *MEASURES]
    binary = [row for row in rows if row["features"] == "binary"]
    rejected = [find_mean(cell, MEASURES[0]) for cell in group_rows(binary, *keys).values()]
    findings = [
        f"Binary features, {len(rejected)} settings: the parents' set was rejected in "
        f"{np.mean(rejected):.3f} of the runs, in at most {max(rejected):.3f} of one setting.",
        f"A non-parent was reported in {find_mean(rows, 'non-parent'):.3f} of all runs.",
    ]
    return Summary([Table("guarantee", caption, header, lines)], findings=findings)
