"""How often the screen rejects a cause, in simulations in which every cause must be kept.

The structures are those of `paper.causes`: causes that interact, bend, vary a little, or decide
nearly alone, in environments that differ in columns and baselines; and tables without any cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.causes import FORMS, OUTCOMES, simulate_causes
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.selection import make_screen
from paper.shares import find_mean, group_rows

TITLE = "What the screen must keep"
DESCRIPTION = (
    "Simulated tables of eight columns, whose causes act alike in every environment or vary a "
    "little: in how many a cause is rejected. Without any cause: in how many a column is rejected."
)

PLACES = (3, 4, 8)
ROWS = 400
QUICK_ROWS = 150
QUICK_FORMS = ("noise", "both")
N_RUNS = 100
COLUMNS_OUT = ("causes", "rejected causes", "rejected others", "cannot tell", "seconds")
# Goals: the share of tables in which a cause, or without causes any column, is rejected.
GOAL = 0.05
GOALS = {"varies by 30 %": 0.15}


def make_plan(options: Options) -> Plan:
    """A task for each simulated table."""
    cells = cross(
        form=QUICK_FORMS if options.quick else FORMS,
        outcome=OUTCOMES,
        places=PLACES[:1] if options.quick else PLACES,
        rows=[QUICK_ROWS if options.quick else ROWS],
    )
    return make_long_plan(options, options.repeat(cells, N_RUNS), run_task, COLUMNS_OUT)


def run_task(task: Task, _: int) -> Row:
    """Screen a table; count the causes and the other columns that are rejected."""
    table = simulate_causes(
        task["form"],
        task["outcome"],
        n_places=task["places"],
        n_rows=task["rows"],
        seed=make_seed(task["seed"], *(task[key] for key in ("form", "outcome", "places", "run"))),
    )
    start = perf_counter()
    selector = make_screen(is_number=task["outcome"] == "number")
    selector.fit(
        table.X,
        table.y,
        environments=table.environments,
        sample_weight=table.weights,
        groups=table.groups,
    )
    rejected = set(table.X) - set(selector.kept_)
    rejected_causes = [name for name in table.causes if name in rejected]
    return {
        "causes": len(table.causes),
        "rejected causes": len(rejected_causes),
        "rejected others": len(rejected) - len(rejected_causes),
        "cannot tell": int((selector.screen_["verdict"] == "cannot tell").sum()),
        "seconds": perf_counter() - start,
    }


# --- summary --------------------------------------------------------------------------------------


def summarise(rows: Rows) -> Summary:
    """The share of tables with a rejection, by form, outcome and number of environments."""
    rows, failures = split_failed(rows)
    places = sorted({int(row["places"]) for row in rows})
    header = ["structure", "outcome", "goal", *(f"{n} environments" for n in places)]
    lines = [
        [form, outcome, f"{GOALS.get(form, GOAL):.2f}", *shares]
        for (form, outcome), shares in _list_shares(rows, places)
    ]
    sizes = ", ".join(sorted({row["rows"] for row in rows}, key=int))
    caption = (
        "Share of the simulated tables in which a cause is rejected (of noise: any column), and "
        f"their number. {sizes} rows in each environment, eight columns."
    )
    tables = [Table("screen-keep", caption, [*header, "what it is"], _describe(lines))]
    tables.append(_count_doubts(rows, places))
    return Summary(tables, (), [*_find(rows), *failures])


def _list_shares(rows: Rows, places: list[int]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """For each form and outcome, the share for each number of environments, as text."""
    cells = group_rows(rows, "form", "outcome", "places")
    for form in FORMS:
        for outcome in OUTCOMES:
            counted = [cells.get((form, outcome, str(n)), []) for n in places]
            if any(counted):
                texts = [
                    f"{measure_rejections(cell):.2f} ({len(cell)})" if cell else "-"
                    for cell in counted
                ]
                yield (form, outcome), texts


def _describe(lines: list[list[str]]) -> list[list[str]]:
    return [[*line, FORMS[line[0]].description] for line in lines]


def measure_rejections(rows: Rows) -> float:
    """The share of tables in which a cause is rejected, or without causes any column."""
    return float(np.mean([is_wrong(row) for row in rows]))


def is_wrong(row: Row) -> bool:
    """Whether the screen rejected a cause of a table, or a column of a table without causes."""
    column = "rejected causes" if int(row["causes"]) else "rejected others"
    return int(row[column]) > 0


def _count_doubts(rows: Rows, places: list[int]) -> Table:
    """Other columns rejected and columns of which the screen says that it cannot tell."""
    lines = []
    cells = group_rows(rows, "outcome", "places")
    for outcome in OUTCOMES:
        for n_places in places:
            cell = cells.get((outcome, str(n_places)), [])
            if cell:
                with_causes = [row for row in cell if int(row["causes"])]
                others = f"{find_mean(with_causes, 'rejected others'):.3f}" if with_causes else "-"
                doubts = f"{find_mean(cell, 'cannot tell'):.2f}"
                seconds = f"{find_mean(cell, 'seconds'):.1f}"
                lines.append([outcome, str(n_places), str(len(cell)), others, doubts, seconds])
    header = ["outcome", "environments", "tables", "others rejected", "cannot tell", "seconds"]
    caption = (
        "Means over all structures: columns rejected that are no causes, beside causes; columns "
        "of which the screen cannot tell; and seconds of a screen on one core."
    )
    return Table("screen-keep-doubts", caption, header, lines)


def _find(rows: Rows) -> Iterator[str]:
    """For each form, over outcomes and environments, the share and whether the goal is reached."""
    for form, cell in group_rows(rows, "form").items():
        goal = GOALS.get(form, GOAL)
        cells = group_rows(cell, "outcome", "places")
        shares = {key: measure_rejections(group) for key, group in cells.items()}
        worst = max(shares, key=lambda key: shares[key])
        outcome, n_places = worst
        share = measure_rejections(cell)
        yield (
            f"{form}: {share:.3f} of {len(cell)} tables (goal at most {goal:g}, "
            f"{'reached' if share <= goal else 'MISSED'}); at worst {shares[worst]:.2f} of "
            f"{len(cells[worst])}: {outcome}, {n_places} environments."
        )
