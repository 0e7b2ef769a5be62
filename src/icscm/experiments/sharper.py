"""How many samples each search needs: greedy, greedy with memory, exhaustive, and ICP."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.datasets import make_conjunction
from icscm.estimators.cover import ICSCMClassifier
from icscm.experiments.alpha import READINGS
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
from icscm.experiments.methods import Training, find_features, fit_invariant, take_training_part
from icscm.experiments.runner import Plan, Row, Task

SIZES = (500, 1_000, 2_000, 5_000, 10_000)
DISTRACTORS = (5, 50, 200)
# One default for all cells; continuous features need finer thresholds, see docs/theory.md.
MAX_THRESHOLDS = 250
METHODS = ("greedy (paper)", "greedy, cumulative", "exhaustive", "ICP")
SHARES = tuple(f"{method}: {what}" for method in METHODS for what in ("exact", "non-parent"))
# Beyond this many features ICP cannot test all sets.
MOST_FOR_ICP = 10

# (parents, environments, features): the paper's, then one thing changed at a time.
VARIATIONS = (
    (2, 2, "binary"),
    (4, 2, "binary"),
    (2, 5, "binary"),
    (2, 2, "continuous"),
)


def make_plan(options: Options) -> Plan:
    """The paper's structure under every reading and number of distractors, then variations."""
    sizes = (500, 1_000) if options.quick else SIZES
    cells = [(reading, *VARIATIONS[0], n) for reading in READINGS for n in DISTRACTORS]
    cells += [("coin/code", *variation, 50) for variation in VARIATIONS[1:]]
    if options.quick:
        cells = [cells[0], cells[-1]]
    tasks = [
        {
            "seed": options.seed,
            "reading": reading,
            "n_parents": n_parents,
            "n_environments": n_environments,
            "features": features,
            "n_distractors": n_distractors,
            "n_samples": n_samples,
            "run": run,
        }
        for reading, n_parents, n_environments, features, n_distractors in cells
        for n_samples in sizes
        for run in range(options.choose_runs(100))
    ]
    return Plan("sharper", tasks, run_task, SHARES)


def run_task(task: Task, seed: int) -> Row:
    """For each method: exactly the parents? any non-parent? Empty where it is not asked."""
    noise, child = READINGS[task["reading"]]
    data = make_conjunction(
        task["n_samples"],
        task["n_distractors"],
        n_parents=task["n_parents"],
        n_environments=task["n_environments"],
        continuous=task["features"] == "continuous",
        noise=noise,
        child=child,
        random_state=seed,
    )
    train = take_training_part(data, seed, share=1.0)
    parents = set(data.parents)
    row: Row = dict.fromkeys(SHARES, "")
    for method in METHODS:
        if method == "ICP" and (
            task["n_distractors"] > MOST_FOR_ICP or task["features"] != "binary"
        ):
            continue
        found = _find(method, train)
        row[f"{method}: exact"] = int(found == parents)
        row[f"{method}: non-parent"] = int(bool(found - parents))
    return row


def _find(method: str, train: Training) -> set[str]:
    learners = {
        "greedy (paper)": ICSCMClassifier(),
        "greedy, cumulative": ICSCMClassifier(evidence="cumulative", alpha="auto"),
        "exhaustive": ICSCMClassifier(search="exhaustive", alpha="auto"),
    }
    if method == "ICP":
        return find_features("ICP", train) or set()
    learner = learners[method].set_params(max_thresholds=MAX_THRESHOLDS, n_jobs=1)
    return fit_invariant(learner, train)


def summarise(rows: Sequence[Row]) -> Summary:
    """One table per structure: methods and distractors down, samples across."""
    keys = ("reading", "n_parents", "n_environments", "features", "n_distractors")
    sizes = list_values(rows, "n_samples")
    tables, findings = [], []
    for what, caption in (
        ("exact", "Share of runs that find exactly the parents, by samples per environment."),
        ("non-parent", "Share of runs that report any non-parent."),
    ):
        lines = []
        for key, cell in group_rows(rows, *keys).groups.items():
            by_size = group_rows(cell, "n_samples")
            for method in METHODS:
                column = f"{method}: {what}"
                if cell[0][column] == "":
                    continue
                shares = [format_share(*compute_share(by_size[(n,)], column)) for n in sizes]
                lines.append([*key, method, *shares])
        header = ["reading", "parents", "environments", "features", "distractors", "method", *sizes]
        tables.append(Table(f"sharper-{what}", caption, header, lines))
    findings.append(_compare_with_greedy(rows, keys))
    wrong = compute_share(rows, "exhaustive: non-parent")[0]
    findings.append(f"The exhaustive search reported a non-parent in {wrong:.1%} of all runs.")
    return Summary(tables, findings=findings)


def _compare_with_greedy(rows: Sequence[Row], keys: Sequence[str]) -> str:
    worst, where = 0.0, ""
    for key, cell in group_rows(rows, *keys, "n_samples").groups.items():
        lead = (
            compute_share(cell, "exhaustive: exact")[0]
            - compute_share(cell, "greedy (paper): exact")[0]
        )
        if lead < worst:
            worst, where = lead, ", ".join(key)
    if not where:
        return "The exhaustive search is nowhere below the greedy one."
    return f"The exhaustive search is furthest below the greedy one, by {-worst:.2f}, at {where}."


EXPERIMENT = Experiment(
    "sharper",
    "Sharper than the paper",
    "Identification by samples per environment: the paper's greedy search, with cumulative "
    "evidence (alpha auto), the exhaustive search (alpha auto), and ICP where it can run.",
    make_plan,
    summarise,
)
