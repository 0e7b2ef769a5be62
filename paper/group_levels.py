"""How often learners find something in pure noise whose rows come in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
)
from icscm._types import Array
from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.shares import find_mean, group_rows

TITLE = "Noise whose rows come in groups"
DESCRIPTION = (
    "Columns that have nothing to do with the outcome, constant within groups of five rows whose "
    "outcomes are alike: how often a learner has a rule, a split or points, and how often the "
    "screen rejects a column. Groups lie within environments, across them, or both."
)

N_GROUPS = 240
N_ROWS_OF_GROUP = 5
N_COLUMNS = 10
N_VALUES = 10
# Log odds of the outcome in a group: their mean, and their deviation between groups.
BASELINE = -0.5
SPREAD = 1.5
N_RUNS = 200

LAYOUTS = ("within", "across", "mixed")
# The most noise runs in which something may be found.
GOAL = 0.10
GOAL_OF_SCREEN = 0.05


class GroupedNoise(NamedTuple):
    """Columns, outcome, environment and group of each row."""

    X: Array
    y: Array
    environments: Array
    groups: Array


class Learner(NamedTuple):
    """A learner, whether a fitted one has found something, and how often it may in noise."""

    make: Callable[[], Any]
    has_found: Callable[[Any], bool]
    goal: float = GOAL


def has_rules(learner: Any) -> bool:
    """Whether a rule was found."""
    return bool(learner.rules_)


def has_splits(learner: Any) -> bool:
    """Whether a split was made."""
    return bool(learner.model_.splits)


def has_split_trees(learner: Any) -> bool:
    """Whether any tree has a split."""
    return any(tree.splits for tree in learner.model_.trees)


def has_points(learner: Any) -> bool:
    """Whether any column got points."""
    return bool(learner.model_.terms)


def has_rejected(screen: Any) -> bool:
    """Whether a column was rejected."""
    return bool(screen.rejected_)


LEARNERS = {
    "rules": Learner(lambda: ICSCMClassifier(n_jobs=1), has_rules),
    "rules, balanced": Learner(lambda: ICSCMClassifier(p="balanced", n_jobs=1), has_rules),
    "rules, exhaustive": Learner(lambda: ICSCMClassifier(search="exhaustive", n_jobs=1), has_rules),
    "tree": Learner(lambda: InvariantTreeClassifier(n_jobs=1), has_splits),
    "tree, equal rates": Learner(
        lambda: InvariantTreeClassifier(invariance="rate", n_jobs=1), has_splits
    ),
    "forest": Learner(lambda: InvariantForestClassifier(n_jobs=1, random_state=0), has_split_trees),
    "score": Learner(lambda: InvariantScoreClassifier(n_jobs=1, random_state=0), has_points),
    "screen": Learner(
        lambda: InvariantFeatureSelector(n_jobs=1, random_state=0),
        has_rejected,
        goal=GOAL_OF_SCREEN,
    ),
}


def make_plan(options: Options) -> Plan:
    """A task for each simulated table and learner."""
    cells = cross(environments=[2, 4], layout=LAYOUTS, learner=[*LEARNERS])
    return make_long_plan(options, options.repeat(cells, N_RUNS), run_task, ("found",))


def simulate(layout: str, n_environments: int, seed: int) -> GroupedNoise:
    """Simulate noise: values of the columns, and the risk, are those of the group.

    The environment is drawn by group (`within`), by row (`across`), or by row for half of the
    groups (`mixed`).

    >>> noise = simulate("across", 4, seed=0)
    >>> noise.X.shape, len(np.unique(noise.environments[noise.groups == 0])) > 1
    ((1200, 10), True)
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(N_GROUPS), N_ROWS_OF_GROUP)
    risks = expit(rng.normal(BASELINE, SPREAD, N_GROUPS))
    columns = rng.integers(0, N_VALUES, (N_GROUPS, N_COLUMNS)).astype(np.float64)

    environment_of_group = rng.integers(0, n_environments, N_GROUPS)
    environment_of_row = rng.integers(0, n_environments, len(groups))
    is_across = {
        "within": np.zeros(N_GROUPS, dtype=np.bool_),
        "across": np.ones(N_GROUPS, dtype=np.bool_),
        "mixed": np.arange(N_GROUPS) % 2 == 0,
    }[layout]
    return GroupedNoise(
        X=columns[groups],
        y=(rng.random(len(groups)) < risks[groups]).astype(np.int64),
        environments=np.where(is_across[groups], environment_of_row, environment_of_group[groups]),
        groups=groups,
    )


def has_found_in_noise(name: str, noise: GroupedNoise) -> bool:
    """Fit a learner to noise, and tell whether it has found something."""
    learner = LEARNERS[name]
    fitted = learner.make().fit(
        noise.X, noise.y, environments=noise.environments, groups=noise.groups
    )
    return learner.has_found(fitted)


def run_task(task: Task, seed: int) -> Row:
    """Whether a learner has found something in one table, the same for all learners."""
    seed = make_seed(task["seed"], task["environments"], task["layout"], task["run"])
    noise = simulate(task["layout"], task["environments"], seed)
    return {"found": int(has_found_in_noise(task["learner"], noise))}


def summarise(rows: Rows) -> Summary:
    """The share of noise runs by learner, layout and number of environments."""
    rows, failures = split_failed(rows)
    cells = group_rows(rows, "learner", "environments", "layout")
    designs = [(n_environments, layout) for n_environments in ("2", "4") for layout in LAYOUTS]
    lines = []
    for name in LEARNERS:
        counts = [cells.get((name, *design), []) for design in designs]
        shares = [f"{find_mean(cell, 'found'):.3f}" if cell else "-" for cell in counts]
        lines.append([name, str(min(map(len, counts))), *shares])
    caption = (
        f"{N_GROUPS} groups of {N_ROWS_OF_GROUP} rows, {N_COLUMNS} columns of noise: share of runs "
        "in which a learner has a rule, a split or points, or the screen rejects a column."
    )
    header = ["learner", "runs", *(f"{layout}, {n} environments" for n, layout in designs)]
    table = Table("group-levels", caption, header, lines)
    return Summary([table], (), [*_find_exceeded(rows), *failures])


def _find_exceeded(rows: Rows) -> Iterator[str]:
    """Say where a learner finds something more often than it may, or that none does."""
    exceeded = []
    for (name, n_environments, layout), cell in group_rows(
        rows, "learner", "environments", "layout"
    ).items():
        share = find_mean(cell, "found")
        goal = LEARNERS[name].goal
        if share > goal:
            exceeded.append(
                f"{name}, {n_environments} environments, groups {layout}: {share:.3f}, above the "
                f"goal of {goal:.2f}."
            )
    if not exceeded:
        yield (
            f"No learner finds something in more than {GOAL:.0%} of the runs, and the screen in "
            f"no more than {GOAL_OF_SCREEN:.0%}."
        )
    yield from exceeded
