"""Three to seven parents: the intersection of the accepted sets, the best of them, a rate tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from icscm import ICSCMClassifier, InvariantCausalPrediction
from icscm.exceptions import IcscmError
from icscm.search.tree_sets import TreeTester, TreeTestSettings
from icscm.sources.memory import make_memory_source
from paper.base import Options, Summary, Table, cross
from paper.methods import Training, fit_rate_tree, simulate
from paper.runner import Plan, Row, Rows, Task, make_seed, run_or_record, split_failed
from paper.shares import Cells, find_mean, format_mean, group_rows, read_numbers

TITLE = "More than two parents"
DESCRIPTION = (
    "Three to seven parents among 10 or 50 distractors and a child: exactly the parents, a "
    "non-parent, or nothing, by the intersection of all accepted sets, by the accepted set of "
    "lowest BIC, and by a rate tree; how often the parents' own set is rejected. Before: samples "
    "in the bins beside a cut are tested, too. Not in the paper."
)

PARENTS = (3, 4, 5, 6, 7)
DISTRACTORS = (10, 50)
FEATURES = ("binary", "continuous")
SIZES = (500, 1_000)
LARGE = 10_000
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
    *(f"{way}: truth rejected" for way in LEVELS),
)
KEYS = ("features", "n_samples", "n_distractors", "n_parents")


def make_plan(options: Options) -> Plan:
    """One task per cell and repetition; 10,000 samples for the level, in random order."""
    cells = cross(features=FEATURES, n_samples=SIZES, n_distractors=DISTRACTORS, n_parents=PARENTS)
    cells += cross(
        features=FEATURES, n_samples=[LARGE], n_distractors=DISTRACTORS[:1], n_parents=PARENTS
    )
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
    columns_found: dict[str, set[str]] = {"rate tree": fit_rate_tree(train)}

    suffixes = ("", ", before") if task["features"] == "continuous" else ("",)
    for suffix in suffixes:
        is_before = suffix != ""
        with _test_all_samples() if is_before else nullcontext():
            rules = _fit_rules(train)
            row[f"trees{suffix}: truth rejected"] = int(_test_parents(train) <= ALPHA)
        columns_found[f"rules, intersection{suffix}"] = _intersect(rules.accepted)
        columns_found[f"rules, best{suffix}"] = rules.best
        row[f"rules{suffix}: truth rejected"] = rules.is_truth_rejected

    if task["n_samples"] != LARGE:
        selector = InvariantCausalPrediction(
            model="tree", alpha=ALPHA, conclusion="best", random_state=seed % 2**32
        )
        selector.fit(train.X, train.y, environments=train.environments)
        columns_found["trees, best"] = train.name(selector.parents_ or ())
        accepted = [train.name(columns) for columns in selector.accepted_sets_]
        columns_found["trees, intersection"] = _intersect(accepted)

    for method, columns in columns_found.items():
        row[f"{method}: exact"] = int(columns == train.parents)
        row[f"{method}: false"] = int(bool(columns - train.parents))
        row[f"{method}: nothing"] = int(not columns)
    return row


@contextmanager
def _test_all_samples() -> Iterator[None]:
    """Test samples beside a cut, too, as before."""

    def find_no_bounds(_: object, rules: Sequence[object]) -> list[None]:
        return [None] * len(rules)

    with (
        patch("icscm.search.exhaustive.find_cut_bounds", find_no_bounds),
        patch("icscm.search.tree_sets.find_cut_bounds", find_no_bounds),
    ):
        yield


def _intersect(sets: Sequence[set[str]]) -> set[str]:
    """The columns that all sets have; none if there are no sets."""
    return set.intersection(*sets) if sets else set()


class FittedRules(NamedTuple):
    """The accepted sets of columns, the best of them, and whether the parents' own is rejected.

    The last is an empty text where the parents were not all screened.
    """

    accepted: list[set[str]]
    best: set[str]
    is_truth_rejected: int | str


def _fit_rules(train: Training) -> FittedRules:
    """Run the exhaustive search, which tests sets of columns."""
    learner = ICSCMClassifier(search="exhaustive", alpha=ALPHA, min_utility=None, n_jobs=1)
    with patch("icscm.search.exhaustive.N_CANDIDATES", N_CANDIDATES):
        learner.fit(train.X, train.y, environments=train.environments)
    tests = learner.trace_.sets
    accepted = [test for test in tests if test.accepted]
    best = min(accepted, key=lambda test: (test.bic, len(test.features)), default=None)
    of_parents = [test for test in tests if train.name(test.features) == train.parents]
    return FittedRules(
        accepted=[train.name(test.features) for test in accepted],
        best=set() if best is None else train.name(best.features),
        is_truth_rejected=int(not of_parents[0].accepted) if of_parents else "",
    )


def _test_parents(train: Training) -> float:
    """p-value of the parents' set by trees."""
    names, numbers = np.unique(train.environments, return_inverse=True)
    source = make_memory_source(
        train.X, train.y, numbers, environment_labels=names.tolist(), n_jobs=1
    )
    parents = [train.names.index(name) for name in sorted(train.parents)]
    settings = TreeTestSettings(seed=train.seed % 2**32)
    return TreeTester(source, parents, settings).compute_p_value(parents)


def summarise(rows: Rows) -> Summary:
    """What each method finds in each cell, and the levels."""
    done, failures = split_failed(rows)
    findings = [*failures, *_find_outcomes(done), *_find_levels(done)]
    return Summary([_show_outcomes(done), _show_levels(done)], findings=findings)


def _group_cells(rows: Rows) -> Cells:
    """The rows of each cell, from small ones to large ones."""
    cells = group_rows(rows, *KEYS)
    keys = sorted(cells, key=lambda key: (key[0], *map(int, key[1:])))
    return {key: cells[key] for key in keys}


def _show_outcomes(rows: Rows) -> Table:
    """What each method finds, by cell."""
    methods = [method for method in METHODS if "before" not in method]
    lines = []
    for key, cell in _group_cells(rows).items():
        lines.append([*key, *(_describe_outcomes(cell, method) for method in methods)])
    caption = (
        "Share of runs in which exactly the parents are found, and in which any non-parent is."
    )
    header = [key.removeprefix("n_") for key in KEYS]
    return Table("more-parents", caption, [*header, *methods], lines)


def _show_levels(rows: Rows) -> Table:
    """How often the truth is rejected, by cell."""
    lines = []
    for key, cell in _group_cells(rows).items():
        lines.append([*key, *(_format(cell, f"{way}: truth rejected") for way in LEVELS)])
    caption = f"Share of runs in which the parents' own set is rejected at alpha {ALPHA}."
    header = [key.removeprefix("n_") for key in KEYS]
    return Table("more-parents-level", caption, [*header, *LEVELS], lines)


def _find_outcomes(rows: Rows) -> Iterator[str]:
    """What each method finds, over all cells."""
    for method in METHODS:
        if not _has_numbers(rows, f"{method}: exact"):
            continue
        shares = [
            f"{find_mean(rows, f'{method}: {outcome}'):.2f} {outcome}" for outcome in OUTCOMES
        ]
        yield f"{method}: {', '.join(shares)} over all cells."


def _find_levels(rows: Rows) -> Iterator[str]:
    """How often the truth is rejected, by kind of features and number of samples."""
    cells = group_rows(rows, "features", "n_samples")
    for features, n_samples in sorted(cells, key=lambda key: (key[0], int(key[1]))):
        cell = cells[features, n_samples]
        shares = [
            f"{way} {find_mean(cell, f'{way}: truth rejected'):.3f}"
            for way in LEVELS
            if _has_numbers(cell, f"{way}: truth rejected")
        ]
        yield f"Truth rejected, {features}, {n_samples} samples: {', '.join(shares)}."


def _has_numbers(rows: Rows, column: str) -> bool:
    return len(read_numbers(rows, column)) > 0


def _format(rows: Rows, column: str) -> str:
    return format_mean(read_numbers(rows, column)) if _has_numbers(rows, column) else ""


def _describe_outcomes(rows: Rows, method: str) -> str:
    """Shares of exactly the parents, and of any non-parent."""
    if not _has_numbers(rows, f"{method}: exact"):
        return ""
    return ", ".join(f"{find_mean(rows, f'{method}: {outcome}'):.2f}" for outcome in OUTCOMES[:2])
