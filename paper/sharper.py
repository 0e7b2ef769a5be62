"""How many samples each search needs: greedy, greedy with memory, exhaustive, and ICP."""

from __future__ import annotations

from icscm import ICSCMClassifier
from paper.alpha import READINGS
from paper.base import Options, Summary, Table, cross
from paper.methods import Training, find_features, fit_invariant, simulate
from paper.runner import Plan, Row, Rows, Task
from paper.shares import find_mean, format_means, group_rows

TITLE = "Searches compared"
DESCRIPTION = (
    "Identification by samples per environment: the paper's greedy search, the "
    "exhaustive search (alpha auto), and ICP where it can run."
)

SIZES = (500, 1_000, 2_000, 5_000, 10_000)
DISTRACTORS = (5, 50, 200)
# One default for all cells; continuous features need finer thresholds, see docs/theory.md.
MAX_THRESHOLDS = 250
LEARNERS = {
    "greedy (paper)": {},
    "exhaustive": {"search": "exhaustive", "alpha": "auto"},
}
METHODS = (*LEARNERS, "ICP")
SHARES = tuple(f"{method}: {what}" for method in METHODS for what in ("exact", "non-parent"))
# Beyond this many features ICP cannot test all sets.
MOST_FOR_ICP = 10

PAPER = {"n_parents": 2, "n_environments": 2, "features": "binary"}
# One thing changed at a time.
VARIATIONS: tuple[Task, ...] = ({"n_parents": 4}, {"n_environments": 5}, {"features": "continuous"})
KEYS = ("reading", "n_parents", "n_environments", "features", "n_distractors")


def make_plan(options: Options) -> Plan:
    """The paper's structure under every reading and number of distractors, then variations."""
    cells = [
        {"reading": reading, **PAPER, "n_distractors": n}
        for reading in READINGS
        for n in DISTRACTORS
    ]
    cells += [
        {"reading": "coin/code", **PAPER, **change, "n_distractors": 50} for change in VARIATIONS
    ]
    if options.quick:
        cells = [cells[0], cells[-1]]
    sizes = cross(n_samples=SIZES[:2] if options.quick else SIZES)
    tasks = options.repeat(cell | size for cell in cells for size in sizes)
    return Plan(tasks, run_task, SHARES)


def run_task(task: Task, seed: int) -> Row:
    """For each method: exactly the parents? any non-parent? Empty where it is not run."""
    train = simulate(task, seed, share=1.0, **READINGS[task["reading"]])
    is_for_icp = task["n_distractors"] <= MOST_FOR_ICP and task["features"] == "binary"
    row: Row = dict.fromkeys(SHARES, "")
    for method in METHODS if is_for_icp else LEARNERS:
        features = _find_features(method, train)
        row[f"{method}: exact"] = int(features == train.parents)
        row[f"{method}: non-parent"] = int(bool(features - train.parents))
    return row


def _find_features(method: str, train: Training) -> set[str]:
    """The features that a method relies on."""
    if method == "ICP":
        return find_features("ICP", train) or set()
    learner = ICSCMClassifier(max_thresholds=MAX_THRESHOLDS, n_jobs=1)
    return fit_invariant(learner.set_params(**LEARNERS[method]), train)


def summarise(rows: Rows) -> Summary:
    """One table per structure: methods and distractors down, samples across."""
    captions = {
        "exact": "Share of runs that find exactly the parents, by samples per environment.",
        "non-parent": "Share of runs that report any non-parent.",
    }
    wrong = find_mean(rows, "exhaustive: non-parent")
    findings = [
        _compare_with_greedy(rows),
        f"The exhaustive search reported a non-parent in {wrong:.1%} of all runs.",
    ]
    tables = [_make_table(rows, what, caption) for what, caption in captions.items()]
    return Summary(tables, findings=findings)


def _make_table(rows: Rows, what: str, caption: str) -> Table:
    lines = []
    for key, cell in group_rows(rows, *KEYS).items():
        rows_by_size = group_rows(cell, "n_samples")
        for method in METHODS:
            column = f"{method}: {what}"
            is_run = cell[0][column] != ""
            if is_run:
                lines.append([*key, method, *format_means(rows_by_size, column)])
    header = [*(key.removeprefix("n_") for key in KEYS), "method", *group_rows(rows, "n_samples")]
    return Table(f"sharper-{what}", caption, header, lines)


def _compare_with_greedy(rows: Rows) -> str:
    """Where the exhaustive search does worst, beside the greedy one."""
    leads = {}
    for key, cell in group_rows(rows, *KEYS, "n_samples").items():
        exhaustive = find_mean(cell, "exhaustive: exact")
        greedy = find_mean(cell, "greedy (paper): exact")
        leads[", ".join(key)] = exhaustive - greedy
    where = min(leads, key=lambda key: leads[key])
    if leads[where] >= 0.0:
        return "The exhaustive search is nowhere below the greedy one."
    lead = f"by {-leads[where]:.2f}, at {where}"
    return f"The exhaustive search is furthest below the greedy one, {lead}."
