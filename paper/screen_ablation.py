"""What each part of the rule of the screen is good for: the screen without it.

A part is left out by replacing functions or constants of `icscm.screening` for the time of a screen
(`unittest.mock.patch.object`); the package itself has no switch for it. All screens of a task see
the same table, and share the memory of what they have measured (`icscm.screening.measuring`): only
what the rule makes of it differs.

There are three kinds of table: those of `paper.screen` (two classes, boosting) and of
`paper.screen_outcomes` (numbers and several classes), with and without planted columns; and
simulated ones (`paper.causes`), in which every cause must be kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from icscm.estimators.selector import make_verdicts
from icscm.screening import evidence, rounds
from icscm.screening.measuring import MeasuredRounds
from paper.base import Options, Summary, Table, cross, make_long_plan
from paper.causes import OUTCOMES, simulate_causes
from paper.outcome_shortcuts import CLEAN
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.screen_outcomes import STUDIES, fit_and_score, split_table
from paper.screen_tables import find_tables, list_cells, load
from paper.selection import compute_auc, make_learner, make_screen
from paper.shares import group_rows
from paper.shortcuts import KINDS, plant

if TYPE_CHECKING:
    import pandas

TITLE = "Parts of the rule of the screen"
DESCRIPTION = (
    "Each part of the rule is left out in turn: which tables with planted columns are lost without "
    "it, and in how many simulated tables more causes are rejected."
)

TWO_CLASSES, MORE_OUTCOMES, SIMULATED = "two classes", "numbers and classes", "simulated"
# A model is right if its score is at most so far below that of all columns without a planted one.
FROM_CLEAN = 0.02
# Simulated tables in which causes must be kept.
FORMS = ("noise", "sum", "both", "strong", "varies by 20 %", "confounded")
PLACES = (3, 8)
ROWS = 400
QUICK_ROWS = 150
N_RUNS = 10
COLUMNS_OUT = ("causes", "results")


@dataclass(frozen=True)
class Replacement:
    """A function or a constant of a module, and what takes its place."""

    module: Any
    name: str
    value: Any


def fail_never(_evidence: Any, _standard: Any) -> bool:
    """In place of a test that rejects columns."""
    return False


def is_always_learned(_worth: Any, _own: Any, _standard: Any) -> bool:
    """In place of the question whether a model has learned something of a column."""
    return True


def find_no_group(*_arguments: Any, **_options: Any) -> list[int]:
    """In place of the search for groups of copies."""
    return []


def allow_none(screen: Any, *_arguments: Any) -> Any:
    """In place of allowing columns again."""
    return screen


FULL = "full rule"
PARTS: dict[str, list[Replacement]] = {
    FULL: [],
    "separately": [Replacement(evidence, "fails_separately", fail_never)],
    "jointly": [Replacement(evidence, "fails_jointly", fail_never)],
    "supported": [Replacement(evidence, "fails_with_support", fail_never)],
    "is learned": [Replacement(evidence, "is_learned", is_always_learned)],
    "least share": [Replacement(evidence, "MIN_SHARE", 0.0)],
    "least joint excess": [Replacement(evidence, "MIN_JOINT_EXCESS", 0.0)],
    "less of several classes": [Replacement(evidence, "NEEDED_OF_SEVERAL_CLASSES", 1.0)],
    "groups of copies": [Replacement(rounds, "find_failing_group", find_no_group)],
    "allowed again": [Replacement(rounds, "allow_again", allow_none)],
}


# --- screens without a part -----------------------------------------------------------------------


def screen_without(
    part: str,
    X: pandas.DataFrame,
    y: NDArray[Any],
    environments: NDArray[Any],
    *,
    is_number: bool,
    memory: MeasuredRounds,
) -> list[str]:
    """Return the columns that the screen keeps without a part of its rule."""
    selector = make_verdicts(make_screen(is_number=is_number), memory)
    with ExitStack() as patches:
        for replacement in PARTS[part]:
            patches.enter_context(
                patch.object(replacement.module, replacement.name, replacement.value)
            )
        selector.fit(X, y, environments=environments)
    return list(selector.kept_)


# --- tasks ----------------------------------------------------------------------------------------


def make_plan(options: Options) -> Plan:
    """A task for each table, environment left out and kind, and for each simulated table."""
    tasks = [*_list_two_classes(options), *_list_outcomes(options), *_list_simulated(options)]
    return make_long_plan(options, tasks, partial(run_task, options=options), COLUMNS_OUT)


def _list_two_classes(options: Options) -> list[Task]:
    kinds: Sequence[str] = list(KINDS)
    tables = None
    if options.quick:
        kinds = (CLEAN, "half")
        tables = ("heart",)
        options = replace(options, max_out=1)
    cells = list_cells(options, tables)
    return [
        {**_name_source(options, TWO_CLASSES), **cell, "kind": kind, "run": 0}
        for cell in cells
        for kind in kinds
    ]


def _list_outcomes(options: Options) -> list[Task]:
    present = find_tables(options)
    n_out = 1 if options.quick else options.max_out
    n_kinds = 2 if options.quick else None
    names = [name for name, study in STUDIES.items() if study.table in present]
    if options.quick:
        names = [name for name in names if name == "heart-rate"]
    return [
        {
            **_name_source(options, MORE_OUTCOMES),
            "table": name,
            "out": out,
            "kind": kind,
            "run": 0,
        }
        for name in names
        for out in STUDIES[name].left_out[:n_out]
        for kind in STUDIES[name].kinds[:n_kinds]
    ]


def _list_simulated(options: Options) -> list[Task]:
    """The table is a form of effect, what is left out the outcome, the kind the environments."""
    cells = cross(
        table=FORMS[:3:2] if options.quick else FORMS,
        out=OUTCOMES[:1] if options.quick else OUTCOMES,
        kind=PLACES[:1] if options.quick else PLACES,
    )
    tasks = options.repeat(cells, N_RUNS)
    return [{**_name_source(options, SIMULATED), **task} for task in tasks]


def _name_source(options: Options, source: str) -> Task:
    return {"seed": options.seed, "rows": options.max_rows, "source": source}


@dataclass(frozen=True, eq=False)
class Ablated:
    """A table to be screened; `score` measures a model of some columns, None of simulated ones."""

    X: pandas.DataFrame
    y: NDArray[Any]
    environments: NDArray[Any]
    is_number: bool
    causes: Sequence[str] = ()
    score: Callable[[list[str]], float] | None = None
    clean_score: float = 0.0


def run_task(task: Task, _: int, options: Options) -> Row:
    """Screen a table with the full rule and without each part; the results as JSON."""
    make = {
        TWO_CLASSES: make_two_classes,
        MORE_OUTCOMES: make_outcome,
        SIMULATED: make_simulated,
    }[task["source"]]
    table = make(task, options)
    memory = MeasuredRounds()
    scores: dict[tuple[str, ...], float] = {}
    results = {}
    for part in PARTS:
        kept = screen_without(
            part,
            table.X,
            table.y,
            table.environments,
            is_number=table.is_number,
            memory=memory,
        )
        result: dict[str, Any] = {"rejected": [name for name in table.X if name not in kept]}
        if table.score is not None:
            if tuple(kept) not in scores:
                scores[tuple(kept)] = table.score(kept)
            result["loss"] = round(table.clean_score - scores[tuple(kept)], 4)
        results[part] = result
    return {"causes": " ".join(table.causes), "results": json.dumps(results)}


def make_two_classes(task: Task, options: Options) -> Ablated:
    """A table of `paper.screen`, with the same planted columns."""
    data = load(task["table"], options)
    out = task["out"]
    seed = make_seed(task["seed"], task["table"], task["kind"], out)
    X = plant(data.X, data.y, data.environments, out, task["kind"], seed)
    is_out = data.environments == out

    def score(columns: list[str]) -> float:
        if not columns or len(np.unique(data.y[is_out])) < 2:
            return 0.5
        learner = make_learner("boosting").fit(X.loc[~is_out, columns], data.y[~is_out])
        return compute_auc(data.y[is_out], learner.predict_proba(X.loc[is_out, columns])[:, 1])

    return Ablated(
        X=X[~is_out].reset_index(drop=True),
        y=data.y[~is_out],
        environments=data.environments[~is_out],
        is_number=False,
        score=score,
        clean_score=score(list(data.X)),
    )


def make_outcome(task: Task, options: Options) -> Ablated:
    """A table of `paper.screen_outcomes`, with the same planted columns."""
    study = STUDIES[task["table"]]
    split = split_table(
        task["table"], out=task["out"], kind=task["kind"], seed=task["seed"], options=options
    )
    score = partial(fit_and_score, split, study=study)
    return Ablated(
        X=split.X,
        y=split.y,
        environments=split.environments,
        is_number=study.is_number,
        score=score,
        clean_score=score([name for name in split.X if name not in split.planted]),
    )


def make_simulated(task: Task, options: Options) -> Ablated:
    """A simulated table."""
    table = simulate_causes(
        task["table"],
        task["out"],
        n_places=task["kind"],
        n_rows=QUICK_ROWS if options.quick else ROWS,
        seed=make_seed(task["seed"], *(task[key] for key in ("table", "out", "kind", "run"))),
    )
    return Ablated(
        X=table.X,
        y=table.y,
        environments=table.environments,
        is_number=task["out"] == "number",
        causes=table.causes,
    )


# --- summary --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effect:
    """What leaving out a part does to the tables of one source.

    `n_right` of `n` models are right, or simulated tables lose no cause. `broken` and `mended` are
    the tables that are right only with, or only without, the part.
    """

    n: int
    n_right: int
    broken: list[str]
    mended: list[str]


def summarise(rows: Rows) -> Summary:
    """For each part, the tables that break without it, by source."""
    rows, failures = split_failed(rows)
    effects = {
        (source, part): measure_effect(cell, part)
        for source, cell in group_rows(rows, "source").items()
        for part in PARTS
    }
    sources = [
        source for source in (TWO_CLASSES, MORE_OUTCOMES, SIMULATED) if (source, FULL) in effects
    ]
    tables = [_count_broken(effects, sources), _name_broken(effects, sources)]
    return Summary(tables, (), [*_find(effects, sources), *failures])


def measure_effect(rows: Rows, part: str) -> Effect:
    """Compare the screens without a part with those of the full rule."""
    broken = []
    mended = []
    n_right = 0
    for row in rows:
        results = json.loads(row["results"])
        right = is_right(row, results[part])
        was_right = is_right(row, results[FULL])
        n_right += right
        name = f"{row['table']}, {row['kind']}"
        if was_right and not right:
            broken.append(name)
        if right and not was_right:
            mended.append(name)
    return Effect(n=len(rows), n_right=n_right, broken=broken, mended=mended)


def is_right(row: Row, result: dict[str, Any]) -> bool:
    """Whether a model is near clean; of a simulated table, whether no cause is rejected.

    Of a simulated table without causes no column may be rejected.
    """
    if row["source"] != SIMULATED:
        return bool(round(result["loss"], 3) <= FROM_CLEAN)
    rejected = set(result["rejected"])
    causes = set(row["causes"].split())
    return not (rejected & causes if causes else rejected)


Effects = dict[tuple[str, str], Effect]


def _count_broken(effects: Effects, sources: list[str]) -> Table:
    lines = []
    for part in PARTS:
        line = [part if part == FULL else f"without *{part}*"]
        for source in sources:
            effect = effects[source, part]
            counts = "" if part == FULL else f" (-{len(effect.broken)} +{len(effect.mended)})"
            line.append(f"{effect.n_right} of {effect.n}{counts}")
        lines.append(line)
    caption = (
        f"Tables that are right: the model is at most {FROM_CLEAN:g} below that of all columns "
        "without a planted one; of simulated tables, no cause is rejected. In brackets: tables "
        "that are right only with the part, and only without it."
    )
    return Table("screen-ablation", caption, ["rule", *sources], lines)


def _name_broken(effects: Effects, sources: list[str]) -> Table:
    """The tables and kinds that a part is needed for."""
    lines = []
    for part in PARTS:
        for source in sources:
            effect = effects[source, part]
            for change, names in (("lost", effect.broken), ("won", effect.mended)):
                if names:
                    counted = Counter(names).most_common()
                    text = "; ".join(f"{name} ({n})" for name, n in counted)
                    lines.append([part, source, change, text])
    caption = "The tables that are lost, and won, without a part: name, kind, and how many."
    return Table("screen-ablation-cells", caption, ["without", "source", "", "tables"], lines)


def _find(effects: Effects, sources: list[str]) -> Iterator[str]:
    """For each part, what is lost without it."""
    for part in PARTS:
        if part == FULL:
            continue
        n_lost = {source: len(effects[source, part].broken) for source in sources}
        n_won = sum(len(effects[source, part].mended) for source in sources)
        if any(n_lost.values()):
            lost = ", ".join(f"{n} of {source}" for source, n in n_lost.items() if n)
            yield f"Without *{part}* these tables are lost: {lost}; {n_won} are won."
        else:
            yield f"Without *{part}* no table is lost; {n_won} are won."
