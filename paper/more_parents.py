"""Three to seven parents: the intersection of the accepted sets, the best of them, a rate tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from unittest.mock import patch

import numpy as np

from icscm import ICSCMClassifier, InvariantCausalPrediction
from icscm.exceptions import IcscmError
from icscm.search.tree_sets import TreeTester, TreeTestSettings
from icscm.sources.memory import make_memory_source
from paper.base import Options, Summary, Table, cross
from paper.methods import Training, fit_rate_tree, simulate
from paper.runner import Plan, Row, Rows, Task, make_seed, run_or_record, split_failed
from paper.shares import find_mean, format_mean, group_rows, read_numbers

TITLE = "More than two parents"
DESCRIPTION = (
    "Three to seven parents among 10 or 50 distractors and a child: exactly the parents, a "
    "non-parent, or nothing, by the intersection of all accepted sets, by the accepted set of "
    "lowest BIC, and by a rate tree; how often the parents' own set is rejected. Before: samples "
    "in the bins beside a cut are tested, too. Not in the paper."
)

PARENTS, DISTRACTORS, FEATURES = (3, 4, 5, 6, 7), (10, 50), ("binary", "continuous")
SIZES, LARGE = (500, 1_000), 10_000
ALPHA = 0.05
# Candidates: seven parents, the child, and a distractor or two that pass the screen by chance.
N_CANDIDATES = 10
METHODS = (
    *("rules, intersection", "rules, intersection, before", "rules, best", "rules, best, before"),
    *("trees, intersection", "trees, best", "rate tree"),
)
OUTCOMES = ("exact", "false", "nothing")
LEVELS = ("rules", "rules, before", "trees", "trees, before")
COLUMNS = (
    *(f"{method}: {outcome}" for method in METHODS for outcome in OUTCOMES),
    *(f"{each}: truth rejected" for each in LEVELS),
)
KEYS = ("features", "n_samples", "n_distractors", "n_parents")


def make_plan(options: Options) -> Plan:
    """One task per cell and repetition; 10,000 samples for the level, in random order."""
    own = {"n_distractors": DISTRACTORS, "n_parents": PARENTS}
    cells = cross(features=FEATURES, n_samples=SIZES, **own)
    cells += cross(features=FEATURES, n_samples=[LARGE], **own | {"n_distractors": DISTRACTORS[:1]})
    if options.quick:
        cells = [cell for cell in cells if cell["n_samples"] == SIZES[0] and cell["n_parents"] < 5]
    tasks = options.filter(options.repeat(cells))
    if not tasks:
        raise IcscmError("no task has the values given with --choose")
    tasks.sort(key=lambda task: make_seed(0, *task.values()))
    run = partial(run_or_record, run=run_task, columns=COLUMNS)
    return Plan(tasks, run, (*COLUMNS, "error"))


def run_task(task: Task, seed: int) -> Row:
    """What each method finds, and whether it rejects the parents' own set.

    With 10,000 samples trees test the parents' set alone. Empty where the parents were not all
    screened, and for binary features before, which nothing has changed for.
    """
    train = simulate(task, seed, share=1.0)
    row: Row = dict.fromkeys(COLUMNS, "")
    found: dict[str, set[str]] = {"rate tree": fit_rate_tree(train)}
    for name in ("", ", before") if task["features"] == "continuous" else ("",):
        with _test_all_samples() if name else nullcontext():
            accepted, best, rejected = _fit_rules(train)
            row[f"trees{name}: truth rejected"] = int(_test_parents(train) <= ALPHA)
        found |= {f"rules, intersection{name}": _intersect(accepted), f"rules, best{name}": best}
        row[f"rules{name}: truth rejected"] = rejected
    if task["n_samples"] != LARGE:
        selector = InvariantCausalPrediction(
            model="tree", alpha=ALPHA, conclusion="best", random_state=seed % 2**32
        )
        selector.fit(train.X, train.y, environments=train.environments)
        found["trees, best"] = train.name(selector.parents_ or ())
        found["trees, intersection"] = _intersect(map(train.name, selector.accepted_sets_))
    for method, features in found.items():
        row[f"{method}: exact"] = int(features == train.parents)
        row[f"{method}: false"] = int(bool(features - train.parents))
        row[f"{method}: nothing"] = int(not features)
    return row


@contextmanager
def _test_all_samples() -> Iterator[None]:
    """Test samples beside a cut, too, as before."""
    with (
        patch("icscm.search.exhaustive.find_cut_bounds", lambda _, rules: [None] * len(rules)),
        patch("icscm.search.tree_sets.find_cut_bounds", lambda _, rules: [None] * len(rules)),
    ):
        yield


def _intersect(sets: Iterable[set[str]]) -> set[str]:
    every = [*sets]
    return set.intersection(*every) if every else set()


def _fit_rules(train: Training) -> tuple[list[set[str]], set[str], int | str]:
    """The accepted sets, the best of them, and whether the parents' own set is rejected."""
    learner = ICSCMClassifier(search="exhaustive", alpha=ALPHA, min_utility=None, n_jobs=1)
    with patch("icscm.search.exhaustive.N_CANDIDATES", N_CANDIDATES):
        learner.fit(train.X, train.y, environments=train.environments)
    tests = learner.trace_.sets
    accepted = [test for test in tests if test.accepted]
    best = min(accepted, key=lambda test: (test.bic, len(test.features)), default=None)
    of_parents = [test for test in tests if train.name(test.features) == train.parents]
    return (
        [train.name(test.features) for test in accepted],
        set() if best is None else train.name(best.features),
        int(not of_parents[0].accepted) if of_parents else "",
    )


def _test_parents(train: Training) -> float:
    """p-value of the parents' set by trees."""
    names, numbers = np.unique(train.environments, return_inverse=True)
    own = train.X, train.y, numbers
    source = make_memory_source(*own, environment_labels=names.tolist(), n_jobs=1)
    parents = [train.names.index(name) for name in sorted(train.parents)]
    settings = TreeTestSettings(seed=train.seed % 2**32)
    return TreeTester(source, parents, settings).compute_p_value(parents)


def summarise(rows: Rows) -> Summary:
    """What each method finds in each cell, and the levels."""
    done, findings = split_failed(rows)
    cells = group_rows(done, *KEYS)
    order = sorted(cells, key=lambda key: (key[0], *map(int, key[1:])))
    header = [key.removeprefix("n_") for key in KEYS]
    methods = [each for each in METHODS if "before" not in each]
    outcomes = [[*key, *(_describe(cells[key], each) for each in methods)] for key in order]
    columns = [f"{each}: truth rejected" for each in LEVELS]
    levels = [[*key, *(_format(cells[key], each) for each in columns)] for key in order]
    for method in METHODS:
        if len(read_numbers(done, f"{method}: exact")):
            shares = (f"{find_mean(done, f'{method}: {each}'):.2f} {each}" for each in OUTCOMES)
            findings.append(f"{method}: {', '.join(shares)} over all cells.")
    for (features, n_samples), own in sorted(
        group_rows(done, "features", "n_samples").items(),
        key=lambda each: (each[0][0], int(each[0][1])),
    ):
        known = [each for each in LEVELS if len(read_numbers(own, f"{each}: truth rejected"))]
        shares = (f"{each} {find_mean(own, f'{each}: truth rejected'):.3f}" for each in known)
        findings.append(f"Truth rejected, {features}, {n_samples} samples: {', '.join(shares)}.")
    captions = (
        "Share of runs in which exactly the parents are found, and in which any non-parent is.",
        f"Share of runs in which the parents' own set is rejected at alpha {ALPHA}.",
    )
    tables = [
        Table("more-parents", captions[0], [*header, *methods], outcomes),
        Table("more-parents-level", captions[1], [*header, *LEVELS], levels),
    ]
    return Summary(tables, findings=findings)


def _format(rows: Rows, column: str) -> str:
    numbers = read_numbers(rows, column)
    return format_mean(numbers) if len(numbers) else ""


def _describe(rows: Rows, method: str) -> str:
    """Shares of the first two outcomes."""
    numbers = [read_numbers(rows, f"{method}: {each}") for each in OUTCOMES[:2]]
    return ", ".join(f"{each.mean():.2f}" for each in numbers) if len(numbers[0]) else ""
