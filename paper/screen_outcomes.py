"""Columns screened for outcomes that are numbers or several classes, in environments left out.

Eight outcomes are columns of three real tables. Into each, columns are planted that follow the
outcome in the training environments and are reversed in the environment left out
(`paper.outcome_shortcuts`). Compared is the score in the environment left out: R^2 of a number, or
the mean over classes of the AUC of each against the others.

    all columns         boosting
    screened            boosting on the columns that `InvariantFeatureSelector` keeps
    forward selection   boosting on those of `paper.forward`, by internal-external cross-validation
    anchor boosting     `paper.anchor`, of numbers, if the package anchorboosting is installed
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icscm import InvariantFeatureSelector
from icscm.estimators.learners import TableClassifier, TableRegressor
from icscm.exceptions import IcscmError
from paper import anchor
from paper.base import Options, Summary, Table, make_long_plan
from paper.forward import SCORE_OF_CLASSES, SCORE_OF_NUMBERS, select_forward
from paper.outcome_shortcuts import (
    CLASS_KINDS,
    CLEAN,
    NUMBER_KINDS,
    plant_for_classes,
    plant_for_numbers,
)
from paper.runner import Plan, Row, Rows, Task, make_seed, split_failed
from paper.screen_tables import find_tables, load
from paper.selection import compute_auc
from paper.shares import find_mean, group_rows

if TYPE_CHECKING:
    import pandas

TITLE = "Columns screened for numbers and several classes"
DESCRIPTION = (
    "Outcomes that are numbers or several classes, columns of real tables. Planted columns follow "
    "the outcome in the training environments, and are reversed in the environment left out."
)

ALL, SCREENED, FORWARD, ANCHOR = "all columns", "screened", "forward selection", "anchor boosting"
METHODS = (ALL, SCREENED, FORWARD, ANCHOR)
COLUMNS_OUT = ("score", "columns", "planted", "kept", "rejected", "rounds", "seconds")
# Environments with fewer rows are dropped, and rows of all but so many classes.
MIN_ROWS = 100
MAX_CLASSES = 4
# A model is right if its score is at most so far below that of all columns without a planted one.
FROM_CLEAN = 0.02


@dataclass(frozen=True)
class OutcomeStudy:
    """An outcome: a column of a table of `paper.screen_tables`, and the environments left out.

    `dropped` are columns that contain the outcome.
    """

    title: str
    table: str
    outcome: str
    is_number: bool
    left_out: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """The kinds of planted column, and that of none."""
        return [CLEAN, *(NUMBER_KINDS if self.is_number else CLASS_KINDS)]


STATES = ("ME", "RI", "WV")
SOURCES = ("1", "7", "17")
HOSPITALS = ("cleveland", "hungarian", "va")
STUDIES = {
    "acs-hours": OutcomeStudy("ACS, hours worked", "acs", "WKHP", is_number=True, left_out=STATES),
    "acs-age": OutcomeStudy("ACS, age", "acs", "AGEP", is_number=True, left_out=STATES),
    # the relation to the householder names husbands and wives
    "acs-marital": OutcomeStudy(
        "ACS, marital status", "acs", "MAR", is_number=False, left_out=STATES, dropped=("RELP",)
    ),
    "acs-worker": OutcomeStudy(
        "ACS, class of worker", "acs", "COW", is_number=False, left_out=STATES
    ),
    "diabetes-drugs": OutcomeStudy(
        "Diabetes, medications", "diabetes", "num_medications", is_number=True, left_out=SOURCES
    ),
    "diabetes-age": OutcomeStudy(
        "Diabetes, age group", "diabetes", "age", is_number=False, left_out=SOURCES
    ),
    "heart-rate": OutcomeStudy(
        "Heart disease, heart rate", "heart", "thalach", is_number=True, left_out=HOSPITALS
    ),
    "heart-pain": OutcomeStudy(
        "Heart disease, chest pain", "heart", "cp", is_number=False, left_out=HOSPITALS
    ),
}


@dataclass(frozen=True, eq=False)
class OutcomeData:
    """Columns, outcome and environments; classes are numbered from 0."""

    X: pandas.DataFrame
    y: NDArray[Any]
    environments: NDArray[np.str_]


def make_plan(options: Options) -> Plan:
    """A task for each outcome, environment left out, kind and method."""
    present = find_tables(options)
    studies = {name: study for name, study in STUDIES.items() if study.table in present}
    if not studies:
        raise IcscmError("none of the tables acs, diabetes and heart is at hand")
    n_kinds = 2 if options.quick else None
    n_out = 1 if options.quick else options.max_out
    tasks = [
        {
            "seed": options.seed,
            "rows": options.max_rows,
            "study": name,
            "out": out,
            "kind": kind,
            "method": method,
        }
        for name, study in studies.items()
        for out in study.left_out[:n_out]
        for kind in study.kinds[:n_kinds]
        for method in list_methods(study)
    ]
    return make_long_plan(options, tasks, partial(run_task, options=options), COLUMNS_OUT)


def list_methods(study: OutcomeStudy) -> list[str]:
    """The methods that can learn the outcome, and whose packages are installed."""
    has_anchor = study.is_number and anchor.is_installed()
    return [method for method in METHODS if method != ANCHOR or has_anchor]


def load_outcome(study: OutcomeStudy, options: Options) -> OutcomeData:
    """Take a column of a table for the outcome; rows without it are dropped."""
    data = load(study.table, options)
    values = data.X[study.outcome]
    X = data.X.drop(columns=[study.outcome, *study.dropped])
    if study.is_number:
        has_outcome = values.notna().to_numpy()
    else:
        frequent = values.value_counts().index[:MAX_CLASSES]
        has_outcome = values.isin(frequent).to_numpy()

    environments = data.environments
    names, counts = np.unique(environments[has_outcome], return_counts=True)
    is_used = has_outcome & np.isin(environments, names[counts >= MIN_ROWS])
    y = values[is_used].to_numpy()
    if study.is_number:
        y = y.astype(np.float64)
    else:
        y = np.unique(y.astype(str), return_inverse=True)[1]
    return OutcomeData(X=X[is_used].reset_index(drop=True), y=y, environments=environments[is_used])


def run_task(task: Task, _: int, options: Options) -> Row:
    """Learn in the other environments, by one of the methods, and test in the one left out."""
    study = STUDIES[task["study"]]
    split = split_table(
        task["study"], out=task["out"], kind=task["kind"], seed=task["seed"], options=options
    )
    start = perf_counter()
    if task["method"] == ANCHOR:
        model = anchor.AnchorBoosting().fit(split.X, split.y, split.environments)
        columns = list(split.X)
        n_rounds = 0
        seconds = perf_counter() - start
        score = measure_score(model, split.X_out, split.y_out, study)
    else:
        columns, n_rounds = choose_columns(task["method"], split, study)
        seconds = perf_counter() - start
        score = fit_and_score(split, columns, study)

    return {
        "score": score,
        "columns": split.X.shape[1] - len(split.planted),
        "planted": " ".join(split.planted),
        "kept": " ".join(name for name in split.planted if name in columns),
        "rejected": " ".join(
            name for name in split.X if name not in columns and name not in split.planted
        ),
        "rounds": n_rounds,
        "seconds": seconds,
    }


@dataclass(frozen=True, eq=False)
class Split:
    """A table with planted columns: rows to learn from, and rows of the environment left out."""

    X: pandas.DataFrame
    y: NDArray[Any]
    environments: NDArray[np.str_]
    X_out: pandas.DataFrame
    y_out: NDArray[Any]
    planted: list[str]


def split_table(name: str, *, out: str, kind: str, seed: int, options: Options) -> Split:
    """Plant columns of a kind in the table of an outcome, and leave an environment out."""
    study = STUDIES[name]
    data = load_outcome(study, options)
    planted_seed = make_seed(seed, name, kind, out)
    plant = plant_for_numbers if study.is_number else plant_for_classes
    X = plant(data.X, data.y, data.environments, out=out, kind=kind, seed=planted_seed)
    is_out = data.environments == out
    return Split(
        X=X[~is_out].reset_index(drop=True),
        y=data.y[~is_out],
        environments=data.environments[~is_out],
        X_out=X[is_out],
        y_out=data.y[is_out],
        planted=[column for column in X if column not in data.X],
    )


def make_learner(study: OutcomeStudy) -> Any:
    """Boosting, for the kind of the outcome."""
    make = TableRegressor if study.is_number else TableClassifier
    return make("hgb", random_state=0)


def choose_columns(method: str, split: Split, study: OutcomeStudy) -> tuple[list[str], int]:
    """The columns that a method keeps, and its rounds."""
    if method == SCREENED:
        selector = InvariantFeatureSelector(make_learner(study), random_state=0, n_jobs=1)
        selector.fit(split.X, split.y, environments=split.environments)
        return selector.kept_, len(selector.rounds_)
    if method == FORWARD:
        columns = select_forward(split.X, split.y, split.environments, is_number=study.is_number)
        return columns, len(columns)
    return list(split.X), 0


def fit_and_score(split: Split, columns: list[str], study: OutcomeStudy) -> float:
    """Fit the learner on some columns, and test it in the environment left out."""
    if not columns:
        return SCORE_OF_NUMBERS if study.is_number else SCORE_OF_CLASSES
    learner = make_learner(study).fit(split.X[columns], split.y)
    return measure_score(learner, split.X_out[columns], split.y_out, study)


def measure_score(learner: Any, X: pandas.DataFrame, y: NDArray[Any], study: OutcomeStudy) -> float:
    """R^2 of a number; of classes, the mean AUC of those that are there."""
    if study.is_number:
        residuals = y - learner.predict(X)
        return float(1.0 - (residuals**2).mean() / y.var())
    probabilities = learner.predict_proba(X)
    aucs = [
        compute_auc((y == label).astype(np.int64), probabilities[:, position])
        for position, label in enumerate(learner.classes_)
        if 0 < (y == label).sum() < len(y)
    ]
    return float(np.mean(aucs))


# --- summary --------------------------------------------------------------------------------------


def summarise(rows: Rows) -> Summary:
    """Scores by outcome and method, kinds missed, innocent columns rejected, and time."""
    rows, failures = split_failed(rows)
    tables = [_compare(rows), _show_kinds(rows), _count_rejected(rows)]
    return Summary(tables, (), [*_find(rows), *failures])


def _compare(rows: Rows) -> Table:
    lines: list[list[str]] = []
    cells = group_rows(rows, "study", "method")
    for name, study in STUDIES.items():
        clean_scores = find_clean_scores(rows, name)
        for method in METHODS:
            cell = cells.get((name, method), [])
            if not cell:
                continue
            clean, planted = _split(cell)
            right = count_right(planted, clean_scores)
            means = [_format_score(part) for part in (clean, planted)]
            measure = "R2" if study.is_number else "mean AUC"
            lines.append([study.title, measure, method, *means, *_find_worst(planted), right])
    header = ["outcome", "score", "method", "clean", "planted", "worst", "worst kind", "right"]
    caption = (
        "Score in the environment left out: means over environments, and over kinds of planted "
        f"column. Right: at most {FROM_CLEAN:g} below that of all columns without a planted one."
    )
    return Table("screen-outcomes", caption, header, lines)


def _split(rows: Rows) -> tuple[Rows, Rows]:
    """Rows with nothing planted, and the others."""
    clean = [row for row in rows if row["kind"] == CLEAN]
    planted = [row for row in rows if row["kind"] != CLEAN]
    return clean, planted


def find_clean_scores(rows: Rows, study: str) -> dict[str, float]:
    """The score of all columns, with nothing planted, by environment left out."""
    return {
        row["out"]: float(row["score"])
        for row in rows
        if (row["study"], row["kind"], row["method"]) == (study, CLEAN, ALL)
    }


def is_right(row: Row, clean_scores: dict[str, float]) -> bool:
    """Whether a model is at most `FROM_CLEAN` worse than that of all columns, nothing planted."""
    return round(clean_scores[row["out"]] - float(row["score"]), 3) <= FROM_CLEAN


def count_right(rows: Rows, clean_scores: dict[str, float]) -> str:
    """How many models are right, of those whose environment has a clean score."""
    known = [row for row in rows if row["out"] in clean_scores]
    n_right = sum(is_right(row, clean_scores) for row in known)
    return f"{n_right} of {len(known)}"


def _format_score(rows: Rows) -> str:
    return f"{find_mean(rows, 'score'):.3f}" if rows else "-"


def _find_worst(rows: Rows) -> Sequence[str]:
    """The lowest mean score of a kind, and the kind."""
    if not rows:
        return "-", "-"
    means = {kind: find_mean(cell, "score") for kind, cell in group_rows(rows, "kind").items()}
    worst = min(means, key=lambda kind: means[kind])
    return f"{means[worst]:.3f}", worst


def _show_kinds(rows: Rows) -> Table:
    """For each kind: how often screened models are right, and planted columns kept."""
    lines: list[list[str]] = []
    for is_number, kinds in ((True, NUMBER_KINDS), (False, CLASS_KINDS)):
        names = [name for name, study in STUDIES.items() if study.is_number == is_number]
        for kind, description in kinds.items():
            cell = [row for row in rows if row["study"] in names and row["kind"] == kind]
            screened = [row for row in cell if row["method"] == SCREENED]
            if not screened:
                continue
            clean_scores = {name: find_clean_scores(rows, name) for name in names}
            known = [row for row in screened if row["out"] in clean_scores[row["study"]]]
            n_right = sum(is_right(row, clean_scores[row["study"]]) for row in known)
            n_planted = sum(len(row["planted"].split()) for row in screened)
            n_kept = sum(len(row["kept"].split()) for row in screened)
            outcome = "number" if is_number else "classes"
            right = f"{n_right} of {len(known)}"
            lines.append([outcome, kind, right, f"{n_kept} of {n_planted}", description])
    header = ["outcome", "kind", "right", "planted columns kept", "what it is"]
    caption = "Screened models, over outcomes and environments left out."
    return Table("screen-outcome-kinds", caption, header, lines)


def _count_rejected(rows: Rows) -> Table:
    """Columns that were there before, and were rejected; and the time of the screen."""
    lines: list[list[str]] = []
    for name, study in STUDIES.items():
        screened = [row for row in rows if (row["study"], row["method"]) == (name, SCREENED)]
        if not screened:
            continue
        means = [_mean_rejected(part) for part in _split(screened)]
        seconds = f"{find_mean(screened, 'seconds'):.1f}"
        lines.append([study.title, screened[0]["columns"], *means, seconds])
    header = ["outcome", "columns", "rejected, clean", "rejected, planted", "seconds"]
    caption = "Columns of the table that were rejected, mean number; seconds of a screen."
    return Table("screen-outcome-rejected", caption, header, lines)


def _mean_rejected(rows: Rows) -> str:
    if not rows:
        return "-"
    return f"{np.mean([len(row['rejected'].split()) for row in rows]):.2f}"


def _find(rows: Rows) -> Iterator[str]:
    """How many models are right, outcomes that cannot be predicted, and a method left out."""
    yield from _count_by_outcome(rows)
    yield from _count_by_method(rows)
    yield from _name_unpredictable(rows)
    if not any(row["method"] == ANCHOR for row in rows):
        yield "Anchor boosting was left out: the package anchorboosting is not installed."


def _count_by_outcome(rows: Rows) -> Iterator[str]:
    """For each outcome, how many screened models are right."""
    cells = group_rows(rows, "study", "method")
    for name, study in STUDIES.items():
        clean_scores = find_clean_scores(rows, name)
        screened = cells.get((name, SCREENED), [])
        if not screened or not clean_scores:
            continue
        clean, planted = _split(screened)
        everything = _split(cells[name, ALL])[1]
        yield (
            f"{study.title}: right without planted columns in {count_right(clean, clean_scores)}, "
            f"with planted columns in {count_right(planted, clean_scores)} (all columns: "
            f"{count_right(everything, clean_scores)})."
        )


def _count_by_method(rows: Rows) -> Iterator[str]:
    """For numbers and for classes, how many models of each method are right."""
    cells = group_rows(rows, "study", "method")
    for is_number, outcomes in ((True, "Numbers"), (False, "Several classes")):
        names = [name for name, study in STUDIES.items() if study.is_number == is_number]
        for method in METHODS:
            rights: dict[bool, list[bool]] = {True: [], False: []}
            for name in names:
                clean_scores = find_clean_scores(rows, name)
                for row in cells.get((name, method), []):
                    if row["out"] in clean_scores:
                        rights[row["kind"] == CLEAN].append(is_right(row, clean_scores))
            if rights[True] or rights[False]:
                yield (
                    f"{outcomes}, {method}: right without planted columns in {sum(rights[True])} "
                    f"of {len(rights[True])}, with planted columns in {sum(rights[False])} of "
                    f"{len(rights[False])}."
                )


def _name_unpredictable(rows: Rows) -> Iterator[str]:
    """Outcomes that all columns predict worse than none: there every empty model is right."""
    for name, study in STUDIES.items():
        nothing = SCORE_OF_NUMBERS if study.is_number else SCORE_OF_CLASSES
        scores = find_clean_scores(rows, name).values()
        n_worse = sum(score < nothing for score in scores)
        if n_worse:
            yield (
                f"{study.title}: with nothing planted, all columns are worse than none in "
                f"{n_worse} of {len(scores)} environments left out; there a model is right if it "
                "has no columns."
            )
