"""The rounds of a screen of columns: test all, reject the worst, and again without it.

A *shortcut* is a column whose effect on the outcome differs between environments. In each round a
learner is cross-fitted on the columns that are left, each column is tested given that model
(`icscm.screening`), and the one whose effect differs most is rejected. Only one at a time: while a
shortcut is in the model, the tests of all other columns are given a model that contains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._types import BoolArray, IntArray
from icscm.engine.counts import Cut
from icscm.estimators.learners import TableClassifier, limit_threads
from icscm.screening.binned_table import BinnedTable, ColumnStrength
from icscm.screening.column_tests import (
    ColumnResult,
    RoundResults,
    measure_performance,
    run_column_tests,
)
from icscm.screening.cross_fitting import MAX_COLUMNS, CrossFitting
from icscm.stats.splits import find_quantile


@dataclass(frozen=True)
class ScreenRound:
    """One round: the model of the columns that were left, and the column that was rejected.

    `auc` and `log_loss` are cross-validated. `rejected` is None in the last round.
    """

    round: int
    n_columns: int
    auc: float
    log_loss: float
    deviance_explained: float
    rejected: str | int | None


@dataclass(frozen=True, eq=False)
class FinishedScreen:
    """All that a screen has found, by the number of the column.

    Attributes
    ----------
    n_columns : int
        The number of columns that were screened.
    results : dict of ColumnResult
        The last tests of each column that was tested.
    strengths : dict of ColumnStrength
        What each column explains by itself; a constant column has none.
    rejection_reasons : dict of str
        Why each of the rejected columns was rejected.
    rounds : list of ScreenRound
        In their order.
    """

    n_columns: int
    results: dict[int, ColumnResult] = field(default_factory=dict)
    strengths: dict[int, ColumnStrength] = field(default_factory=dict)
    rejection_reasons: dict[int, str] = field(default_factory=dict)
    rounds: list[ScreenRound] = field(default_factory=list)

    def find_kept(self) -> BoolArray:
        """Return whether each column is kept."""
        is_kept = np.ones(self.n_columns, dtype=np.bool_)
        is_kept[list(self.rejection_reasons)] = False
        return is_kept

    def get_result(self, column: int) -> ColumnResult:
        """Return the tests of a column; without any, those of a column that was never tested."""
        return self.results.get(column, ColumnResult())

    def get_replication(self, column: int) -> float:
        """Return in how many environments a column is informative; NaN where that is unknown."""
        if column not in self.strengths:
            return np.nan
        return self.strengths[column].replication


def run_screen(
    X: Any,
    table: BinnedTable,
    *,
    names: Sequence[str | int],
    learner: Any,
    cross_fitting: CrossFitting,
    tolerance: float,
    min_replication: float,
) -> FinishedScreen:
    """Screen the columns of X, whose rows are those of `table`.

    Columns that are informative in too few environments are rejected before the first round: there
    is nothing to compare their effect with. Then each round tests the columns that remain, until
    the effect of none of them differs by more than the tolerance. Without folds nothing is tested.
    """
    n_columns = len(names)
    strengths = table.measure_strengths()
    unreplicated = find_unreplicated(
        strengths, n_columns=n_columns, min_replication=min_replication
    )
    rejection_reasons = dict.fromkeys(unreplicated, "informative in too few environments")
    results: dict[int, ColumnResult] = {}
    rounds: list[ScreenRound] = []

    remaining = np.setdiff1d(np.arange(n_columns), unreplicated)
    while cross_fitting.folds and len(remaining):
        learners = combine_with_boosting(learner, remaining, strengths)
        tests = run_round(X, table, remaining, learners=learners, cross_fitting=cross_fitting)
        worst = tests.find_worst(tolerance)

        round_number = len(rounds) + 1
        for column, result in tests.columns.items():
            results[column] = replace(result, round=round_number)
        performance = measure_performance(table, tests.probabilities)
        screen_round = ScreenRound(
            round=round_number,
            n_columns=len(remaining),
            auc=performance.auc,
            log_loss=performance.log_loss,
            deviance_explained=tests.explained,
            rejected=None if worst is None else names[worst],
        )
        rounds.append(screen_round)
        if worst is None:
            break

        rejected_before = list(rejection_reasons)
        original = find_rejected_original(worst, table, results=results, rejected=rejected_before)
        rejection_reasons[worst] = explain_rejection(None if original is None else names[original])
        remaining = remaining[remaining != worst]

    return FinishedScreen(
        n_columns=n_columns,
        results=results,
        strengths=strengths,
        rejection_reasons=rejection_reasons,
        rounds=rounds,
    )


def explain_rejection(original: str | int | None) -> str:
    """Say why a column is rejected: for its own effect, or as a copy of the rejected original."""
    if original is None:
        return "its effect differs"
    return f"carries the same as {original}, which was rejected"


def find_unreplicated(
    strengths: dict[int, ColumnStrength], *, n_columns: int, min_replication: float
) -> list[int]:
    """Find the columns that explain the outcome, but in too few environments to be compared.

    A column explains it if it does so better than chance, corrected for the number of columns.
    """
    chance_deviance = find_quantile(CHANCE_LEVEL / max(n_columns, 1), 1)
    return [
        column
        for column, strength in strengths.items()
        if strength.replication < min_replication and strength.deviance > chance_deviance
    ]


def combine_with_boosting(
    learner: Any, columns: IntArray, strengths: dict[int, ColumnStrength]
) -> list[Any]:
    """Return the learners of a round: the user's, and boosting unless that is the user's.

    Both are combined: effects that a learner of the wrong form has missed must not look like
    differences between environments. Of many columns boosting uses those that explain most by
    themselves.
    """
    if isinstance(learner, TableClassifier) and learner.kind == "hgb":
        return [learner]

    # a constant column has no strength
    deviances = [
        strengths[column].deviance if column in strengths else 0.0 for column in columns.tolist()
    ]
    strongest_first = np.argsort([-deviance for deviance in deviances])
    strongest = np.sort(strongest_first[:MAX_COLUMNS])
    return [learner, TableClassifier("hgb", random_state=0, columns=strongest)]


def run_round(
    X: Any,
    table: BinnedTable,
    columns: IntArray,
    *,
    learners: list[Any],
    cross_fitting: CrossFitting,
) -> RoundResults:
    """Cross-fit the learners on some columns, and test each of these given the others."""
    n_cells = len(table.outcomes) * len(columns)
    with limit_threads(n_cells):
        fitted = cross_fitting.fit(learners, X, columns=columns, table=table)
    return run_column_tests(table, columns, fitted.scores, fitted.contributions)


def find_rejected_original(
    column: int, table: BinnedTable, *, results: dict[int, ColumnResult], rejected: list[int]
) -> int | None:
    """Find the first of the rejected columns that a column nearly copies.

    A column that was rejected before the first round was not tested, so it has no cut to compare.
    """
    rejected_cuts: list[tuple[int, Cut]] = []
    for rejected_column in rejected:
        if rejected_column not in results:
            continue
        cut = results[rejected_column].cut
        if cut is not None:
            rejected_cuts.append((rejected_column, cut))
    return table.find_copied(column, rejected_cuts)
