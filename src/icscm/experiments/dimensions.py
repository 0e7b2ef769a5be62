"""Table 5: identification by ICSCM as the number of distractors grows to thousands."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.datasets import make_conjunction
from icscm.experiments.base import (
    Experiment,
    Options,
    Summary,
    Table,
    compare_with_published,
    compute_share,
    format_share,
    group_rows,
    list_values,
)
from icscm.experiments.identification import N_SAMPLES
from icscm.experiments.methods import find_features, take_training_part
from icscm.experiments.runner import Plan, Row, Task

PUBLISHED = {
    1: 0.96,
    2: 0.97,
    3: 0.99,
    4: 0.96,
    5: 0.97,
    6: 0.96,
    7: 0.96,
    10: 0.89,
    15: 0.89,
    20: 0.86,
    25: 0.96,
    50: 0.90,
    100: 0.91,
    200: 0.94,
}
# Not in the paper, with a tenth of the runs.
BEYOND = (1_000, 10_000)


def make_plan(options: Options) -> Plan:
    """One task per data set."""
    runs = options.choose_runs(100)
    sizes = dict.fromkeys((3, 20) if options.quick else PUBLISHED, runs)
    if not options.quick:
        sizes |= dict.fromkeys(BEYOND, max(1, runs // 10))
    n_samples = 1_000 if options.quick else N_SAMPLES
    tasks = [
        {"seed": options.seed, "n_samples": n_samples, "n_distractors": n, "run": run}
        for n, n_runs in sizes.items()
        for run in range(n_runs)
    ]
    return Plan("dimensions", tasks, run_task, ("ICSCM",))


def run_task(task: Task, seed: int) -> Row:
    """1 if ICSCM uses exactly the parents."""
    data = make_conjunction(task["n_samples"], task["n_distractors"], random_state=seed)
    found = find_features("ICSCM", take_training_part(data, seed))
    return {"ICSCM": int(found == set(data.parents))}


def summarise(rows: Sequence[Row]) -> Summary:
    """Our shares beside the paper's."""
    sizes = list_values(rows, "n_distractors")
    cells = group_rows(rows, "n_distractors")
    found = {int(size): compute_share(cells[(size,)], "ICSCM") for size in sizes}
    table = Table(
        "dimensions",
        "Share of runs in which ICSCM uses exactly the causal parents.",
        ["distractors", "runs", "here", "paper"],
        [
            [
                f"{size:,}",
                str(len(cells[(size,)])),
                format_share(*found[size]),
                f"{PUBLISHED[size]:.2f}" if size in PUBLISHED else "-",
            ]
            for size in found
        ],
    )
    known = [size for size in found if size in PUBLISHED]
    finding = compare_with_published(
        "ICSCM",
        [f"{size} distractors" for size in known],
        [found[size] for size in known],
        [PUBLISHED[size] for size in known],
        n_runs=len(cells[(known[0],)]),
    )
    return Summary([table], findings=[finding])


EXPERIMENT = Experiment(
    "dimensions",
    "Many distractors (Table 5)",
    "Identification by ICSCM with 1 to 10,000 distractors.",
    make_plan,
    summarise,
)
