"""Columns screened for any learner of two classes, tested in environments left out.

`InvariantFeatureSelector` beside all columns, and beside three other ways to choose columns, with
and without planted shortcuts. `paper.screen_outcomes` has other outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paper.base import Options, Summary, Table, make_long_plan
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.screen_tables import TITLES, list_cells, load
from paper.selection import LEARNERS, METHODS, PEERS, Sample, compute_auc, make_learner
from paper.shares import find_mean, group_rows
from paper.shortcuts import KINDS, plant

if TYPE_CHECKING:
    import pandas

TITLE = "Columns screened for any learner"
DESCRIPTION = (
    "Each environment is left out in turn and used for testing; columns are chosen, and a learner "
    "is fitted on them, in the others. Planted columns predict the label there, and its opposite "
    "in the environment left out."
)

# Forward selection fits thousands of regressions a table: these kinds only.
FORWARD_KINDS = ("clean", "one", "half", "numeric", "leaky_copy")
# Of a method that chooses without the learner one task has the AUC of every learner.
ANY = "any"
COLUMNS_OUT = (*LEARNERS, "columns", "planted", "kept", "rejected", "rounds", "seconds")
# Goals: how far below all columns screened ones may be, clean, and planted below clean.
FROM_ALL = 0.005
FROM_CLEAN = 0.01
# A model is right if its AUC is at most so far below that of all columns without a planted one.
RIGHT = 0.02


def make_plan(options: Options) -> Plan:
    """A task for each table, environment left out, kind, method and learner."""
    kinds = [*KINDS]
    methods = [*METHODS]
    cells = list_cells(options)
    if options.quick:
        kinds = ["clean", "one"]
        methods = ["all columns", "screened", "stability selection"]
        cells = [cell for cell in cells if cell["table"] in ("heart", "hospitals")]
    tasks = [
        {**cell, "kind": kind, "method": method, "learner": learner}
        for cell in cells
        for kind in kinds
        for method in methods
        for learner in ((ANY,) if method in PEERS else LEARNERS)
        if method != "forward selection" or kind in FORWARD_KINDS
    ]
    return make_long_plan(options, tasks, partial(run_task, options=options), COLUMNS_OUT)


def run_task(task: Task, _: int, options: Options) -> Row:
    """Choose columns in the other environments, fit, and test in the one left out."""
    data = load(task["table"], options)
    out = task["out"]
    seed = make_seed(task["seed"], task["table"], task["kind"], out)
    X = plant(data.X, data.y, data.environments, out, task["kind"], seed)
    is_out = data.environments == out
    sample = Sample(
        X=X[~is_out].reset_index(drop=True),
        y=data.y[~is_out],
        environments=data.environments[~is_out],
    )

    start = perf_counter()
    choose_columns = METHODS[task["method"]]
    chosen = choose_columns(sample, task["learner"])
    seconds = perf_counter() - start

    learners = LEARNERS if task["learner"] == ANY else (task["learner"],)
    aucs = {
        learner: _test(learner, sample, chosen.columns, X[is_out], data.y[is_out])
        for learner in learners
    }

    planted = [name for name in X if name not in data.X]
    rejected = [name for name in data.X if name not in chosen.columns]
    return {
        **dict.fromkeys(LEARNERS, ""),
        **aucs,
        "columns": data.X.shape[1],
        "planted": " ".join(planted),
        "kept": " ".join(name for name in planted if name in chosen.columns),
        "rejected": " ".join(rejected),
        "rounds": chosen.n_rounds,
        "seconds": seconds,
    }


def _test(
    learner: str, sample: Sample, columns: list[str], X: pandas.DataFrame, y: NDArray[np.int64]
) -> float:
    """AUC; 0.5 where no column was kept."""
    if not columns or len(np.unique(y)) < 2:
        return 0.5
    model = make_learner(learner).fit(sample.X[columns], sample.y)
    return compute_auc(y, model.predict_proba(X[columns])[:, 1])


def unfold(rows: Rows) -> Iterator[Row]:
    """A row for each table, learner, kind, environment left out and method, with its `auc`."""
    for row in rows:
        for learner in LEARNERS:
            if row[learner] != "":
                yield {**row, "learner": learner, "auc": row[learner]}


def summarise(rows: Rows) -> Summary:
    """AUC clean and planted, kinds kept, innocent columns rejected; and missed goals."""
    rows, failures = split_failed(rows)
    unfolded = list(unfold(rows))
    tables = [
        _compare(unfolded),
        _show_kinds(unfolded),
        _count_right(unfolded),
        _count_kept(rows),
        _count_rejected(rows),
    ]
    return Summary(tables, (), [*_find(unfolded), *failures])


def _compare(rows: Rows) -> Table:
    """Means over environments left out; methods in the same environments of the same kinds."""
    lines: list[list[str]] = []
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        rows_by_method = group_rows(cell, "method")
        for method in METHODS:
            if method in rows_by_method:
                aucs = _describe_aucs(rows_by_method[method])
                lines.append([TITLES[table], learner, method, *aucs])
    header = ["table", "learner", "method", "clean", "planted", "worst", "worst kind", "kinds"]
    caption = (
        "AUC in the environment left out, mean over environments, clean and mean over the kinds "
        f"of planted column. Forward selection: {', '.join(FORWARD_KINDS[1:])} only."
    )
    return Table("screen-auc", caption, header, sorted(lines, key=_sort_key))


def _describe_aucs(rows: Rows) -> list[str]:
    """The mean AUC clean and planted; of the worst kind; the kind; and the number of kinds."""
    aucs = {kind: find_mean(cell, "auc") for kind, cell in group_rows(rows, "kind").items()}
    planted = {kind: auc for kind, auc in aucs.items() if kind != "clean"}
    clean_text = f"{aucs['clean']:.3f}" if "clean" in aucs else "-"
    if not planted:
        return [clean_text, "-", "-", "-", "-"]
    worst = min(planted, key=lambda kind: planted[kind])
    mean = float(np.mean(list(planted.values())))
    return [clean_text, f"{mean:.3f}", f"{planted[worst]:.3f}", worst, str(len(planted))]


def _sort_key(line: Sequence[str]) -> tuple[int, int, int]:
    """The order of lines that begin with a table's title, a learner and a method."""
    title, learner, method, *_ = line
    return list(TITLES.values()).index(title), LEARNERS.index(learner), list(METHODS).index(method)


def _show_kinds(rows: Rows) -> Table:
    """The mean AUC of each method with each kind of planted column."""
    lines: list[list[str]] = []
    for kind, description in KINDS.items():
        rows_of_kind = [row for row in rows if row["kind"] == kind]
        rows_by_method = group_rows(rows_of_kind, "method")
        aucs = [
            f"{find_mean(rows_by_method[method], 'auc'):.3f}" if method in rows_by_method else "-"
            for method in METHODS
        ]
        lines.append([kind, *aucs, description])
    caption = "AUC in the environment left out, mean over tables, environments and learners."
    return Table("screen-kinds", caption, ["kind", *METHODS, "what it is"], lines)


def _count_kept(rows: Rows) -> Table:
    """Shares of the planted columns."""
    lines: list[list[str]] = []
    for kind in KINDS:
        if kind == "clean":
            continue
        rows_of_kind = [row for row in rows if row["kind"] == kind]
        cells = group_rows(rows_of_kind, "method")
        lines.append([kind, *(_share_kept(cells.get(method, [])) for method in PEERS)])
    caption = "Share of the planted columns that were kept, over tables and environments left out."
    return Table("screen-kept", caption, ["kind", *PEERS], lines)


def _share_kept(rows: Rows) -> str:
    n_planted = sum(len(row["planted"].split()) for row in rows)
    n_kept = sum(len(row["kept"].split()) for row in rows)
    return f"{n_kept / n_planted:.3f} ({n_kept} of {n_planted})" if n_planted else "-"


def _count_rejected(rows: Rows) -> Table:
    """Columns that were there before, and were not kept."""
    lines: list[list[str]] = []
    cells = group_rows(rows, "table", "method")
    tables = {row["table"] for row in rows}
    for table in (name for name in TITLES if name in tables):
        for method in PEERS:
            cell = cells.get((table, method), [])
            clean = [row for row in cell if row["kind"] == "clean"]
            planted = [row for row in cell if row["kind"] != "clean"]
            means = [_mean_rejected(clean), _mean_rejected(planted)]
            lines.append([TITLES[table], method, *means, _list_rejected(cell)])
    header = ["table", "method", "clean", "planted", "most often"]
    caption = "Columns of the table that were rejected: mean number, clean and with planted ones."
    return Table("screen-rejected", caption, header, lines)


def _mean_rejected(rows: Rows) -> str:
    if not rows:
        return "-"
    numbers = [len(row["rejected"].split()) for row in rows]
    return f"{np.mean(numbers):.2f} of {rows[0]['columns']}"


def _list_rejected(rows: Rows) -> str:
    """The three columns that are rejected most often, and how often."""
    names = [name for row in rows for name in row["rejected"].split()]
    counts = [(names.count(name), name) for name in set(names)]
    most_frequent = sorted(counts, reverse=True)[:3]
    return ", ".join(f"{name} ({n} of {len(rows)})" for n, name in most_frequent) or "-"


def _count_right(rows: Rows) -> Table:
    """How many models are at most `RIGHT` below all columns with nothing planted."""
    lines: list[list[str]] = []
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        clean_aucs = {
            row["out"]: float(row["auc"])
            for row in cell
            if (row["method"], row["kind"]) == ("all columns", "clean")
        }
        for method, method_rows in group_rows(cell, "method").items():
            is_right: dict[str, list[bool]] = {"clean": [], "planted": []}
            for row in method_rows:
                if row["out"] in clean_aucs:
                    loss = clean_aucs[row["out"]] - float(row["auc"])
                    part = "clean" if row["kind"] == "clean" else "planted"
                    is_right[part].append(round(loss, 3) <= RIGHT)
            texts = [f"{sum(part)} of {len(part)}" for part in is_right.values()]
            lines.append([TITLES[table], learner, method, *texts])
    header = ["table", "learner", "method", "clean", "planted"]
    caption = (
        f"Models whose AUC is at most {RIGHT:g} below that of all columns with nothing planted, "
        "over kinds and environments left out."
    )
    return Table("screen-right", caption, header, sorted(lines, key=_sort_key))


def _find(rows: Rows) -> Iterator[str]:
    """The goals of the screen, by table and learner, over the environments that both have."""
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        cells = group_rows(cell, "method", "kind")
        screened = cells.get(("screened", "clean"), [])
        loss_of_clean = _compare_rows(cells.get(("all columns", "clean"), []), screened)
        if loss_of_clean is None:
            continue
        text = f"{TITLES[table]}, {learner}: clean, all columns less screened "
        text += f"{loss_of_clean:+.3f}, {_judge(loss_of_clean, FROM_ALL)}"

        losses: dict[str, float] = {}
        for kind in KINDS:
            loss = _compare_rows(screened, cells.get(("screened", kind), []))
            if kind != "clean" and loss is not None:
                losses[kind] = loss
        if losses:
            worst = max(losses, key=lambda kind: losses[kind])
            n_met = sum(round(loss, 3) <= FROM_CLEAN for loss in losses.values())
            text += f"; planted, at worst {losses[worst]:.3f} below clean ({worst}), within "
            text += f"{FROM_CLEAN:g} in {n_met} of {len(losses)} kinds"
        yield f"{text}."


def _compare_rows(rows: Rows, others: Rows) -> float | None:
    """The mean difference of AUCs over the environments left out that both have."""
    auc = {row["out"]: float(row["auc"]) for row in rows}
    auc_of_others = {row["out"]: float(row["auc"]) for row in others}
    differences = [auc[out] - auc_of_others[out] for out in auc if out in auc_of_others]
    return float(np.mean(differences)) if differences else None


def _judge(loss: float, within: float) -> str:
    return f"within {within:g}" if round(loss, 3) <= within else f"NOT within {within:g}"
