"""How often the screen keeps causes, rejects noise, and finds shortcuts, in simulations."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
import pandas as pd
from scipy.special import expit

from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.selection import Sample, screen
from paper.shares import find_mean, format_mean, group_rows, read_numbers
from paper.shortcuts import plant

TITLE = "Levels and power of the screen"
DESCRIPTION = (
    "Eight columns, of which some are causes; baselines and the columns' rates differ between "
    "environments, effects do not. Without a shortcut: causes and noise rejected. With one: how "
    "often it is rejected, by environments and rows."
)

# Causes come first: interactions of x0, x1 (and x2), or four columns that add up.
N_CAUSES = {"x0 and x1": 2, "x0 ? x1 : x2": 3, "sum of four": 4}
N_COLUMNS = 8
EFFECTS = (1.2, -1.0, 0.9, 0.8)
# Interactions: their effect, environments, rows in each, and repetitions.
EFFECT = 2.2
PLACES = 8
ROWS = 1_500
N_RUNS = 100
# Power: kinds of shortcut, numbers of environments and of rows in each, and repetitions.
SHORTCUTS = ("one", "numeric", "faint")
POWER_PLACES = (2, 3, 5, 10, 40)
POWER_ROWS = (300, 1_500)
N_POWER_RUNS = 20
COLUMNS_OUT = ("causes", "noise", "shortcut", "seconds")
# Goals: causes kept, noise rejected.
KEPT = 0.95
REJECTED = 0.05


def make_plan(options: Options) -> Plan:
    """A task for each simulated table."""
    *interactions, additive = N_CAUSES
    level = cross(
        structure=interactions,
        kind=["clean"],
        places=[PLACES],
        rows=[300 if options.quick else ROWS],
    )
    power = cross(
        structure=[additive],
        kind=["clean", *SHORTCUTS],
        places=(2, 3) if options.quick else POWER_PLACES,
        rows=(300,) if options.quick else POWER_ROWS,
    )
    tasks = options.repeat(level, N_RUNS) + options.repeat(power, N_POWER_RUNS)
    return make_long_plan(options, tasks, run_task, COLUMNS_OUT)


def simulate(structure: str, n_places: int, n_rows: int, seed: int) -> Sample:
    """Binary columns with own rates in each environment, which also has its own baseline.

    >>> simulate("x0 and x1", 2, 100, 0).X.shape
    (200, 8)
    """
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(n_places), n_rows)
    rates = rng.uniform(0.2, 0.8, (n_places, N_COLUMNS))
    Z = (rng.random((len(place), N_COLUMNS)) < rates[place]).astype(float)
    score = {
        "x0 and x1": EFFECT * Z[:, 0] * Z[:, 1],
        "x0 ? x1 : x2": EFFECT * np.where(Z[:, 0] > 0, Z[:, 1], Z[:, 2]),
        "sum of four": Z[:, :4] @ np.array(EFFECTS) + 0.5,
    }[structure]
    baseline = rng.normal(0.0, 0.3, n_places) - 1.5
    y = (rng.random(len(place)) < expit(baseline[place] + score)).astype(np.int64)
    names = [f"x{k}" for k in range(N_COLUMNS)]
    return Sample(pd.DataFrame(Z, columns=names), y, np.array([f"e{k:02}" for k in place]))


def run_task(task: Task, seed: int) -> Row:
    """Shares: causes kept, noise rejected, shortcuts rejected (empty where none is planted)."""
    table_keys = [task[name] for name in ("structure", "kind", "places", "rows", "run")]
    seed = make_seed(task["seed"], *table_keys)
    sample = simulate(task["structure"], task["places"], task["rows"], seed)
    X = plant(sample.X, sample.y, sample.environments, None, task["kind"], seed)

    start = perf_counter()
    kept = screen(sample._replace(X=X), "any").columns
    seconds = perf_counter() - start

    names = list(sample.X)
    n_causes = N_CAUSES[task["structure"]]
    return {
        "causes": np.mean([name in kept for name in names[:n_causes]]),
        "noise": np.mean([name not in kept for name in names[n_causes:]]),
        "shortcut": "" if task["kind"] == "clean" else int("shortcut" not in kept),
        "seconds": seconds,
    }


def summarise(rows: Rows) -> Summary:
    """Levels for interacting causes, power for shortcuts."""
    rows, failures = split_failed(rows)
    *interactions, additive = N_CAUSES
    levels = [row for row in rows if row["structure"] in interactions]
    power = [row for row in rows if row["structure"] == additive]
    tables = []
    if levels:
        tables.append(_show_levels(levels))
    if power:
        tables.append(_show_power(power))
    return Summary(tables, (), [*_find(levels), *failures])


def _show_levels(rows: Rows) -> Table:
    lines = []
    for structure, cell in group_rows(rows, "structure").items():
        means = [format_mean(read_numbers(cell, column)) for column in ("causes", "noise")]
        lines.append([structure, str(len(cell)), f"{_find_all_kept(cell):.2f}", *means])
    header = ["structure", "runs", "all causes kept", "causes kept", "noise rejected"]
    caption = (
        f"{rows[0]['places']} environments of {rows[0]['rows']} rows, eight columns, nothing "
        "planted: share of runs that keep all causes, of causes kept, and of noise rejected."
    )
    return Table("screen-levels", caption, header, sorted(lines))


def _find_all_kept(rows: Rows) -> float:
    return float((read_numbers(rows, "causes") == 1.0).mean())


def _show_power(rows: Rows) -> Table:
    cells = group_rows(rows, "places", "rows")
    lines = []
    for n_places, n_rows in sorted(cells, key=lambda key: (int(key[1]), int(key[0]))):
        rows_by_kind = group_rows(cells[n_places, n_rows], "kind")
        power = [_format(rows_by_kind.get(kind, []), "shortcut") for kind in SHORTCUTS]
        clean = rows_by_kind.get("clean", [])
        levels = [_format(clean, column) for column in ("causes", "noise")]
        n_runs = max(len(rows_of_kind) for rows_of_kind in rows_by_kind.values())
        lines.append([n_places, f"{int(n_rows):,}", str(n_runs), *power, *levels])
    header = ["environments", "rows in each", "runs", *(f"{kind} rejected" for kind in SHORTCUTS)]
    caption = (
        "Four causes and four columns of noise: share of runs in which a planted "
        "shortcut was rejected; and without one, of causes kept and of noise rejected."
    )
    return Table("screen-power", caption, [*header, "causes kept", "noise rejected"], lines)


def _format(rows: Rows, column: str) -> str:
    return format_mean(read_numbers(rows, column)) if rows else "-"


def _find(rows: Rows) -> Iterator[str]:
    """The goals on causes and noise, and whether they are reached."""
    for structure, cell in group_rows(rows, "structure").items():
        kept = _find_all_kept(cell)
        rejected = find_mean(cell, "noise")
        yield (
            f"{structure}: all causes kept in {kept:.2f} of {len(cell)} runs (goal "
            f"{KEPT:g}, {_judge(kept >= KEPT)}), {rejected:.3f} of noise columns rejected (goal at "
            f"most {REJECTED:g}, {_judge(rejected <= REJECTED)})."
        )


def _judge(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"
