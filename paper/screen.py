"""Columns screened for any learner, tested in environments left out, clean and planted.

`InvariantFeatureSelector` beside all columns, and beside three other ways to choose columns.
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
from paper.shares import find_mean, group_rows, read_numbers
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
COLUMNS_OUT = (*LEARNERS, "columns", "planted", "kept", "rejected", "rounds", "seconds", "fit")
# Goals: how far below all columns screened ones may be, clean, and planted below clean.
FROM_ALL, FROM_CLEAN = 0.005, 0.01
N_FOLDS = 5  # of the selector


def make_plan(options: Options) -> Plan:
    """A task for each table, environment left out, kind, method and learner."""
    kinds, methods, cells = [*KINDS], [*METHODS], list_cells(options)
    if options.quick:
        kinds, methods = ["clean", "one"], ["all columns", "screened", "stability selection"]
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
    data, out = load(task["table"], options), task["out"]
    seed = make_seed(task["seed"], task["table"], task["kind"], out)
    X, is_out = plant(*data[:3], out, task["kind"], seed), data.environments == out
    sample = Sample(X[~is_out].reset_index(drop=True), data.y[~is_out], data.environments[~is_out])
    start = perf_counter()
    chosen = METHODS[task["method"]](sample, task["learner"])
    seconds, start = perf_counter() - start, perf_counter()
    aucs = {
        learner: _test(learner, sample, chosen.columns, X[is_out], data.y[is_out])
        for learner in (LEARNERS if task["learner"] == ANY else (task["learner"],))
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
        "fit": perf_counter() - start,
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
    """AUC clean and planted, kinds kept, innocent columns rejected, time; and missed goals."""
    rows, failures = split_failed(rows)
    unfolded = list(unfold(rows))
    tables = [
        _compare(unfolded),
        _show_kinds(unfolded),
        _count_kept(rows),
        _count_rejected(rows),
        _compare_times(unfolded),
    ]
    return Summary(tables, (), [*_find(unfolded), *failures])


def _compare(rows: Rows) -> Table:
    """Means over environments left out; methods in the same environments of the same kinds."""
    lines: list[list[str]] = []
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        methods = group_rows(cell, "method")
        for method in (each for each in METHODS if each in methods):
            own = group_rows(methods[method], "kind")
            planted = {
                kind: find_mean(each, "auc") for kind, each in own.items() if kind != "clean"
            }
            clean = f"{find_mean(own['clean'], 'auc'):.3f}" if "clean" in own else "-"
            shown = ["-"] * 4
            if planted:
                worst = min(planted, key=lambda kind: planted[kind])
                mean = float(np.mean(list(planted.values())))
                shown = [f"{mean:.3f}", f"{planted[worst]:.3f}", worst, str(len(planted))]
            lines.append([TITLES[table], learner, method, clean, *shown])
    header = ["table", "learner", "method", "clean", "planted", "worst", "worst kind", "kinds"]
    caption = (
        "AUC in the environment left out, mean over environments, clean and mean over the kinds "
        f"of planted column. Forward selection: {', '.join(FORWARD_KINDS[1:])} only."
    )
    return Table("screen-auc", caption, header, sorted(lines, key=_sort_key))


def _sort_key(line: Sequence[str]) -> tuple[int, int, int]:
    places = list(TITLES.values()), LEARNERS, list(METHODS)
    table, learner, method = (own.index(each) for own, each in zip(places, line, strict=False))
    return table, learner, method


def _show_kinds(rows: Rows) -> Table:
    lines: list[list[str]] = []
    for kind in KINDS:
        own = group_rows([row for row in rows if row["kind"] == kind], "method")
        shown = [f"{find_mean(own[each], 'auc'):.3f}" if each in own else "-" for each in METHODS]
        lines.append([kind, *shown, KINDS[kind]])
    caption = "AUC in the environment left out, mean over tables, environments and learners."
    return Table("screen-kinds", caption, ["kind", *METHODS, "what it is"], lines)


def _count_kept(rows: Rows) -> Table:
    """Shares of the planted columns."""
    lines: list[list[str]] = []
    for kind in KINDS:
        cells = group_rows([row for row in rows if row["kind"] == kind], "method", "learner")
        shown = [_share_kept(cells.get(key, [])) for key in _list_variants()]
        if kind != "clean":
            lines.append([kind, *shown])
    names = [m if learner == ANY else f"{m}, {learner}" for m, learner in _list_variants()]
    caption = "Share of the planted columns that were kept, over tables and environments left out."
    return Table("screen-kept", caption, ["kind", *names], lines)


def _list_variants() -> list[tuple[str, str]]:
    return [*(("screened", learner) for learner in LEARNERS), *((each, ANY) for each in PEERS)]


def _share_kept(rows: Rows) -> str:
    n_planted = sum(len(row["planted"].split()) for row in rows)
    n_kept = sum(len(row["kept"].split()) for row in rows)
    return f"{n_kept / n_planted:.3f} ({n_kept} of {n_planted})" if n_planted else "-"


def _count_rejected(rows: Rows) -> Table:
    """Columns that were there before, and were not kept."""
    lines: list[list[str]] = []
    for table in (each for each in TITLES if any(row["table"] == each for row in rows)):
        for method, learner in _list_variants():
            key = {"table": table, "method": method, "learner": learner}
            own = [row for row in rows if all(row[name] == each for name, each in key.items())]
            shown = [
                _mean_rejected([row for row in own if (row["kind"] == "clean") == is_clean])
                for is_clean in (True, False)
            ]
            lines.append([TITLES[table], method, learner, *shown, _list_rejected(own)])
    header = ["table", "method", "learner", "clean", "planted", "most often"]
    caption = "Columns of the table that were rejected: mean number, clean and with planted ones."
    return Table("screen-rejected", caption, header, lines)


def _mean_rejected(rows: Rows) -> str:
    if not rows:
        return "-"
    numbers = [len(row["rejected"].split()) for row in rows]
    return f"{np.mean(numbers):.2f} of {rows[0]['columns']}"


def _list_rejected(rows: Rows) -> str:
    names = [name for row in rows for name in row["rejected"].split()]
    counts = sorted(((names.count(each), each) for each in set(names)), reverse=True)[:3]
    return ", ".join(f"{name} ({n} of {len(rows)})" for n, name in counts) or "-"


def _compare_times(rows: Rows) -> Table:
    """Seconds, and fits of the learner on all columns that take as long."""
    lines: list[list[str]] = []
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        methods = group_rows(cell, "method")
        if "all columns" not in methods:
            continue
        fit = find_mean(methods["all columns"], "fit")
        for method in (each for each in METHODS if each in methods and each != "all columns"):
            own = methods[method]
            seconds, n_fits = find_mean(own, "seconds"), "-"
            if method == "screened":
                n_fits = f"{(N_FOLDS * read_numbers(own, 'rounds')).mean():.1f}"
            shown = [f"{fit:.2f}", f"{seconds:.1f}", f"{seconds / fit:.1f}", n_fits]
            lines.append([TITLES[table], learner, method, *shown])
    header = ["table", "learner", "method", "one fit (s)", "choice (s)", "in fits", "fits needed"]
    caption = (
        "Time to choose the columns, in seconds on one core and as multiples of one fit of the "
        f"learner on all columns. The screen needs {N_FOLDS} fits a round, and for learners other "
        "than boosting as many fits of boosting."
    )
    return Table("screen-time", caption, header, sorted(lines, key=_sort_key))


def _find(rows: Rows) -> Iterator[str]:
    """The goals of the screen, by table and learner, over the environments that both have."""
    for (table, learner), cell in group_rows(rows, "table", "learner").items():
        auc = {(row["method"], row["kind"], row["out"]): float(row["auc"]) for row in cell}
        clean = _compare_pairs(auc, ("all columns", "clean"), ("screened", "clean"))
        if clean is None:
            continue
        text = f"{TITLES[table]}, {learner}: clean, all columns less screened "
        text += f"{clean:+.3f}, {_judge(clean, FROM_ALL)}"
        losses = {
            kind: loss
            for kind in KINDS
            if kind != "clean"
            and (loss := _compare_pairs(auc, ("screened", "clean"), ("screened", kind))) is not None
        }
        missed = [kind for kind, loss in losses.items() if round(loss, 3) > FROM_CLEAN]
        if losses:
            worst = max(losses, key=lambda kind: losses[kind])
            text += f"; planted, at worst {losses[worst]:.3f} below clean ({worst}), within "
            text += f"{FROM_CLEAN:g} in {len(losses) - len(missed)} of {len(losses)} kinds"
        yield f"{text}."


def _compare_pairs(
    auc: dict[tuple[str, str, str], float], first: tuple[str, str], second: tuple[str, str]
) -> float | None:
    """Mean difference over the environments of which both are known."""
    places = {out for *_, out in auc}
    pairs = [((*first, out), (*second, out)) for out in places]
    known = [auc[a] - auc[b] for a, b in pairs if a in auc and b in auc]
    return float(np.mean(known)) if known else None


def _judge(loss: float, within: float) -> str:
    return f"within {within:g}" if round(loss, 3) <= within else f"NOT within {within:g}"
