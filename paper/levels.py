"""Level and power of the test of a leaf where rows come in groups or have weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from icscm._types import Array
from icscm.engine.counts import BinnedRule
from icscm.sources import open_memory
from icscm.stats.design_effects import compute_leaf_design_effects
from icscm.stats.independence import ChiSquaredTest, compute_corrected
from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.shares import find_mean, group_rows

TITLE = "Levels with groups and weights"
DESCRIPTION = (
    "A true rule, whose leaf has the same rate of the label in every environment: how often the "
    "test at 5 % rejects it, rows taken for independent and corrected for groups and weights; and "
    "the same where the rates differ."
)

ALPHA = 0.05
# The rate of the label in the leaf, and how far apart the log odds of environments are.
RATE = 0.3
DIFFERENCE = 0.8
# Tasks, of so many tables each.
N_TASKS = 40
N_TABLES = 50
# Goal: the level is between these.
LEAST = 0.035
MOST = 0.065
KINDS = {"level": 0.0, "power": DIFFERENCE}


class Design(NamedTuple):
    """How a table is simulated.

    Attributes
    ----------
    groups : tuple of int
        Groups in each environment.
    rows : int
        Rows of a group.
    likeness : tuple of float
        How alike the labels of a group are, by environment: their correlation.
    constant : bool
        Whether the column is constant within a group.
    sizes : {"same", "drawn", "uneven"}
        Whether all groups have as many rows, or each draws its number, or a tenth of them have
        five times as many.
    weights : {"none", "equal", "survey"}
        Whole numbers: 1 for all rows, 20 for all, or drawn.
    """

    groups: tuple[int, ...]
    rows: int = 1
    likeness: tuple[float, ...] = (0.3,)
    constant: bool = True
    sizes: str = "same"
    weights: str = "none"


class Simulated(NamedTuple):
    """Column, label, environment, group and weight of each row."""

    column: Array
    y: Array
    environments: Array
    groups: Array
    weights: Array


class Rejection(NamedTuple):
    """Whether a leaf is rejected, weights taken for counts, and corrected."""

    naive: bool
    corrected: bool


DESIGNS = {
    "1 visit": Design((400,) * 2, likeness=(0.0,)),
    "5 visits": Design((200,) * 5, 5),
    "5 visits, feature varies": Design((200,) * 5, 5, constant=False),
    "10 visits, 2 environments": Design((300,) * 2, 10),
    "10 visits, 20 environments": Design((60,) * 20, 10, constant=False),
    "1 to 30 visits": Design((200,) * 5, 5, sizes="drawn"),
    "20 patients an environment": Design((20,) * 10, 5),
    "a tenth with 25 visits": Design((200,) * 5, 5, sizes="uneven"),
    "unequal likeness": Design((400, 200, 100, 80, 60), 5, (0.01, 0.1, 0.3, 0.5, 0.8)),
    "weight 20": Design((400,) * 5, likeness=(0.0,), weights="equal"),
    "survey weights": Design((400,) * 5, likeness=(0.0,), weights="survey"),
    "5 visits and survey weights": Design((200,) * 5, 5, weights="survey"),
}


def make_plan(options: Options) -> Plan:
    """Tasks of some tables each, for each design, with equal and with unequal rates."""
    tasks = options.repeat(cross(design=[*DESIGNS], kind=[*KINDS]), N_TASKS)
    return make_long_plan(options, tasks, run_task, ("naive", "corrected"))


def simulate(design: Design, difference: float, rng: np.random.Generator) -> Simulated:
    """A column of 0 in the leaf and 1 outside, where the label is frequent in all environments.

    In the leaf the labels of a group share a rate, which is drawn from a beta distribution: its
    mean is the rate of the environment, and labels have the correlation `likeness`.

    >>> [len(values) for values in simulate(DESIGNS["1 visit"], 0.0, np.random.default_rng(0))]
    [800, 800, 800, 800, 800]
    """
    # of each group: its environment, the mean and the concentration of its rate
    n_places = len(design.groups)
    place = np.repeat(np.arange(n_places), design.groups)
    n_groups = len(place)
    likeness = np.resize(design.likeness, n_places)[place]
    shift = np.linspace(-difference / 2, difference / 2, n_places)[place]
    mean_rate = expit(logit(RATE) + shift)
    concentration = 1.0 / np.maximum(likeness, 1e-6) - 1.0
    drawn_rate = rng.beta(mean_rate * concentration, (1 - mean_rate) * concentration)
    rate = np.where(likeness > 0, drawn_rate, mean_rate)

    # all are drawn, whichever is used, so that designs of a seed differ in nothing else
    sizes = {
        "same": np.full(n_groups, design.rows),
        "drawn": np.minimum(rng.geometric(1 / design.rows, n_groups), 6 * design.rows),
        "uneven": np.where(rng.random(n_groups) < 0.1, 5, 1) * design.rows,
    }[design.sizes]
    group = np.repeat(np.arange(n_groups), sizes)
    n_rows = len(group)
    is_outside = rng.integers(0, 2, n_groups)[group]
    if not design.constant:
        is_outside = rng.integers(0, 2, n_rows)
    y = rng.random(n_rows) < np.where(is_outside, 0.9, rate[group])

    weights = np.full(n_rows, 20 if design.weights == "equal" else 1)
    if design.weights == "survey":
        weights = 1 + (10 * rng.lognormal(0.0, 0.8, n_rows)).astype(np.int64)
    return Simulated(
        column=is_outside,
        y=y.astype(np.int64),
        environments=place[group],
        groups=group,
        weights=weights,
    )


def reject_leaf(design: Design, difference: float, rng: np.random.Generator) -> Rejection:
    """Test the leaf of the rule on a simulated table, in both ways."""
    rows = simulate(design, difference, rng)
    n_places = len(design.groups)

    # counts (table, label, environment) of the leaf, by weight
    is_inside = rows.column == 0
    cells = (rows.y * n_places + rows.environments)[is_inside]
    table = np.bincount(cells, rows.weights[is_inside], 2 * n_places).reshape(1, 2, n_places)
    naive = ChiSquaredTest().compute_p_values(table)

    has_groups = design.rows > 1 or design.sizes != "same"
    source = open_memory(
        rows.column[:, np.newaxis],
        rows.y,
        environments=rows.environments,
        sample_weight=rows.weights,
        groups=rows.groups if has_groups else None,
    ).source
    rule = BinnedRule(0, np.array([False, True]))
    (cube,) = source.count_cubes()
    leaf = cube.counts[:, 0]
    effects = None
    if source.clusters is not None:
        effects = compute_leaf_design_effects(leaf, source.clusters.count_moments((), [rule]))
    corrected = compute_corrected(ChiSquaredTest(), leaf, effects)
    return Rejection(naive=bool(naive[0] <= ALPHA), corrected=bool(corrected[0] <= ALPHA))


def run_task(task: Task, seed: int, n_tables: int = N_TABLES) -> Row:  # noqa: ARG001
    """Shares of tables whose leaf is rejected."""
    design = DESIGNS[task["design"]]
    difference = KINDS[task["kind"]]
    rng = np.random.default_rng(make_seed(*task.values()))
    rejections = [reject_leaf(design, difference, rng) for _ in range(n_tables)]
    return {
        "naive": np.mean([rejection.naive for rejection in rejections]),
        "corrected": np.mean([rejection.corrected for rejection in rejections]),
    }


def summarise(rows: Rows) -> Summary:
    """Level and power of each design."""
    rows, failures = split_failed(rows)
    cells = group_rows(rows, "design", "kind")
    lines = []
    for design in DESIGNS:
        shares = []
        for kind in KINDS:
            cell = cells.get((design, kind), [])
            shares += [
                f"{find_mean(cell, way):.3f}" if cell else "-" for way in ("naive", "corrected")
            ]
        n_tables = N_TABLES * len(cells.get((design, "level"), []))
        lines.append([design, f"{n_tables:,}", *shares])
    caption = (
        "Share of simulated tables in which the leaf of the true rule is rejected at 5 %, with "
        "equal rates (level) and with rates that differ between environments (power)."
    )
    header = ["design", "tables", "level, naive", "level", "power, naive", "power"]
    return Summary([Table("levels", caption, header, lines)], (), [*_find(rows), *failures])


def _find(rows: Rows) -> Iterator[str]:
    """The designs in which the level is not held."""
    for (design, kind), cell in group_rows(rows, "design", "kind").items():
        level = round(find_mean(cell, "corrected"), 3)  # as the table shows it
        if kind == "level" and not LEAST <= level <= MOST:
            yield f"{design}: the level is {level:.3f}, outside {LEAST} to {MOST}."
