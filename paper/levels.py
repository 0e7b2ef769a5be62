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

ALPHA, RATE, DIFFERENCE = 0.05, 0.3, 0.8
# Tasks of so many tables each; goal: the level is between these.
N_TASKS, N_TABLES, LEAST, MOST = 40, 50, 0.035, 0.065
KINDS = {"level": 0.0, "power": DIFFERENCE}


class Design(NamedTuple):
    """Groups in each environment, rows of each, and how alike the labels of a group are.

    `sizes` are the same for all groups, drawn for each, or five times as large for a tenth of
    them. The feature is `constant` within a group or not. Weights are whole numbers.
    """

    groups: tuple[int, ...]
    rows: int = 1
    likeness: tuple[float, ...] = (0.3,)
    constant: bool = True
    sizes: str = "same"
    weights: str = "none"


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


def simulate(design: Design, difference: float, rng: np.random.Generator) -> tuple[Array, ...]:
    """Feature, label, environment, group and weight of each row.

    >>> [len(each) for each in simulate(DESIGNS["1 visit"], 0.0, np.random.default_rng(0))]
    [800, 800, 800, 800, 800]
    """
    place = np.repeat(np.arange(len(design.groups)), design.groups)
    n_groups, likeness = len(place), np.resize(design.likeness, len(design.groups))[place]
    shift = np.linspace(-difference / 2, difference / 2, len(design.groups))[place]
    rate, spread = expit(logit(RATE) + shift), 1.0 / np.maximum(likeness, 1e-6) - 1.0
    of_group = np.where(likeness > 0, rng.beta(rate * spread, (1 - rate) * spread), rate)
    sizes = {
        "same": np.full(n_groups, design.rows),
        "drawn": np.minimum(rng.geometric(1 / design.rows, n_groups), 6 * design.rows),
        "uneven": np.where(rng.random(n_groups) < 0.1, 5, 1) * design.rows,
    }[design.sizes]
    group = np.repeat(np.arange(n_groups), sizes)
    is_out = rng.integers(0, 2, n_groups)[group]
    if not design.constant:
        is_out = rng.integers(0, 2, len(group))
    y = rng.random(len(group)) < np.where(is_out, 0.9, of_group[group])
    weights = np.full(len(group), 20 if design.weights == "equal" else 1)
    if design.weights == "survey":
        weights = 1 + (10 * rng.lognormal(0.0, 0.8, len(group))).astype(np.int64)
    return is_out, y.astype(np.int64), place[group], group, weights


def reject_leaf(design: Design, difference: float, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the leaf of the rule is rejected, weights taken for counts, and corrected."""
    feature, y, place, group, weights = simulate(design, difference, rng)
    n_places, inside = len(design.groups), feature == 0
    cells = (y * n_places + place)[inside]
    table = np.bincount(cells, weights[inside], 2 * n_places).reshape(1, 2, n_places)
    naive = ChiSquaredTest().compute_p_values(table)
    is_single = design.rows == 1 and design.sizes == "same"
    own = {"sample_weight": weights, "groups": None if is_single else group}
    source = open_memory(feature[:, np.newaxis], y, environments=place, **own).source
    rule = BinnedRule(0, np.array([False, True]))
    (cube,) = source.count_cubes()
    leaf, effects = cube.counts[:, 0], None
    if source.clusters is not None:
        effects = compute_leaf_design_effects(leaf, source.clusters.count_moments((), [rule]))
    corrected = compute_corrected(ChiSquaredTest(), leaf, effects)
    return bool(naive[0] <= ALPHA), bool(corrected[0] <= ALPHA)


def run_task(task: Task, seed: int, n_tables: int = N_TABLES) -> Row:  # noqa: ARG001
    """Shares of tables whose leaf is rejected."""
    rng = np.random.default_rng(make_seed(*task.values()))
    own = DESIGNS[task["design"]], KINDS[task["kind"]], rng
    naive, corrected = np.mean([reject_leaf(*own) for _ in range(n_tables)], axis=0)
    return {"naive": naive, "corrected": corrected}


def summarise(rows: Rows) -> Summary:
    """Level and power of each design."""
    rows, failures = split_failed(rows)
    cells, lines = group_rows(rows, "design", "kind"), []
    for design in DESIGNS:
        both = [cells.get((design, kind), []) for kind in KINDS]
        shares = [
            f"{find_mean(own, way):.3f}" if own else "-"
            for own in both
            for way in ("naive", "corrected")
        ]
        lines.append([design, f"{N_TABLES * len(both[0]):,}", *shares])
    caption = (
        "Share of simulated tables in which the leaf of the true rule is rejected at 5 %, with "
        "equal rates (level) and with rates that differ between environments (power)."
    )
    header = ["design", "tables", "level, naive", "level", "power, naive", "power"]
    return Summary([Table("levels", caption, header, lines)], (), [*_find(rows), *failures])


def _find(rows: Rows) -> Iterator[str]:
    for (design, kind), own in group_rows(rows, "design", "kind").items():
        level = round(find_mean(own, "corrected"), 3)  # as the table shows it
        if kind == "level" and not LEAST <= level <= MOST:
            yield f"{design}: the level is {level:.3f}, outside {LEAST} to {MOST}."
