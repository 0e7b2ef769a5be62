"""The tables in which `InvariantFeatureSelector` shows the result of its screen, and the verdicts.

`screen_` has a row for each column, `effects_` one for each column and environment, and `rounds_`
one for each round of the screen (`icscm.screening.rounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.engine.counts import BinnedColumns
from icscm.formatting import format_name, shorten_list
from icscm.screening.evidence import MIN_ENVIRONMENTS, Reason, Verdict
from icscm.screening.outcomes import Outcome
from icscm.screening.performance import measure_performance
from icscm.screening.reasons import (
    DETERMINES,
    DIFFERS,
    DIFFERS_JOINTLY,
    INTERRUPTED,
    MAY_BE_REVERSED,
    NO_ENVIRONMENTS,
    ONE_DIFFERENCE,
    ONE_INFORMS,
    TOO_LITTLE_DATA,
)
from icscm.screening.rounds import JudgedColumn, ScreenState
from icscm.tables.suspicion import EMPTY

if TYPE_CHECKING:
    import pandas

# What a column is rejected for, in words.
REASONS = {
    Reason.SEPARATELY: DIFFERS,
    Reason.JOINTLY: DIFFERS_JOINTLY,
    Reason.SUPPORTED: MAY_BE_REVERSED,
}
IS_DATE = "dates are not screened"


@dataclass(frozen=True)
class ColumnVerdict:
    """Whether a column is kept or rejected, or cannot be judged, and why."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, eq=False)
class ScreenTables:
    """The tables of a screen: `screen_`, `effects_` and `rounds_` of the selector."""

    screen: pandas.DataFrame
    effects: pandas.DataFrame
    rounds: pandas.DataFrame


def decide(
    screen: ScreenState,
    column: int,
    *,
    names: Sequence[str | int],
    n_environments: int,
    rejects_undecided: bool,
    empty_columns: Sequence[int] = (),
    date_columns: Sequence[int] = (),
) -> ColumnVerdict:
    """Decide on a column; it is kept only if the data would have shown that it is a shortcut.

    A column without any value is rejected in any case, since many learners take none.
    """
    if column in empty_columns:
        return ColumnVerdict(Verdict.REJECTED, EMPTY)
    if n_environments == 0 or screen.lone_environment is not None:
        obstacle = NO_ENVIRONMENTS if n_environments == 0 else ONE_INFORMS
        return ColumnVerdict(Verdict.CANNOT_TELL, obstacle)
    if column in screen.giveaways.determining:
        return ColumnVerdict(Verdict.REJECTED, DETERMINES)
    if column in screen.rejected:
        return ColumnVerdict(Verdict.REJECTED, explain_rejection(screen, column, names))

    reason = ""
    judged = screen.judged.get(column)
    if column in date_columns:
        reason = IS_DATE
    elif judged is not None and not screen.is_complete:
        reason = INTERRUPTED
    elif judged is not None and judged.is_undecided:
        reason = ONE_DIFFERENCE if n_environments < MIN_ENVIRONMENTS else TOO_LITTLE_DATA
    if not reason:
        return ColumnVerdict(Verdict.KEPT)
    return ColumnVerdict(Verdict.REJECTED if rejects_undecided else Verdict.CANNOT_TELL, reason)


def explain_rejection(screen: ScreenState, column: int, names: Sequence[str | int]) -> str:
    """Return why a round rejected a column."""
    if column in screen.groups:
        others = [format_name(names[other]) for other in screen.groups[column] if other != column]
        return f"its effect differs, together with {shorten_list(others)}"
    reason = screen.judged[column].reason
    assert reason is not None, "a column that was rejected alone has failed"
    return REASONS[reason]


def make_tables(
    screen: ScreenState,
    outcome: Outcome,
    columns: BinnedColumns,
    *,
    names: Sequence[str | int],
    environments: Sequence[Any] | None,
    rejects_undecided: bool,
    empty_columns: Sequence[int] = (),
    date_columns: Sequence[int] = (),
    classes: Sequence[Any] | None = None,
) -> ScreenTables:
    """Make the tables of a screen, with columns by name and environments by label.

    `classes` are those of an outcome of several classes: effects are about one of them.
    """
    import pandas  # slow to import

    labels = tuple(environments or ())
    column_rows: list[dict[str, Any]] = []
    effect_rows: list[dict[str, Any]] = []
    for column, name in enumerate(names):
        decision = decide(
            screen,
            column,
            names=names,
            n_environments=len(labels),
            rejects_undecided=rejects_undecided,
            empty_columns=empty_columns,
            date_columns=date_columns,
        )
        row = {
            "column": name,
            "verdict": str(decision.verdict),
            "reason": decision.reason,
            "round": 0,
        }
        judged = screen.judged.get(column)
        effects: list[dict[str, Any]] = []
        if judged is not None:
            effects = list_effects(judged, name=name, environments=labels)
        column_rows.append(
            row
            | describe_worth(judged, columns)
            | {"output": find_output(judged, classes)}
            | describe_extremes(effects)
        )
        effect_rows += effects

    return ScreenTables(
        screen=pandas.DataFrame(column_rows),
        effects=pandas.DataFrame(effect_rows, columns=[*EFFECT_COLUMNS]),
        rounds=pandas.DataFrame(list_rounds(screen, outcome, names)),
    )


# --- a column -------------------------------------------------------------------------------------


def describe_worth(judged: JudgedColumn | None, columns: BinnedColumns) -> dict[str, Any]:
    """Return the numbers of `screen_` on the worth of a column; NaN if no model used it."""
    if judged is None:
        measures = (
            "worth",
            "worth_error",
            "worth_low",
            "tau",
            "p_value",
            "joint_low",
            "own_low",
            "detectable",
        )
        return dict.fromkeys(measures, np.nan) | {"share": 0.0, "stake": 0.0, "rule": ""}
    evidence = judged.evidence
    separate = evidence.separate
    return {
        "round": judged.round,
        "worth": separate.mean,
        "worth_error": separate.error,
        "worth_low": separate.low,
        "tau": separate.tau,
        "p_value": separate.p_value,
        "joint_low": np.nan if evidence.joint is None else evidence.joint.low,
        "own_low": evidence.own.worth.low,
        "share": evidence.share,
        "stake": evidence.stake,
        "detectable": separate.detectable_tau,
        "rule": str(columns.make_rule(judged.contrast.cut)),
    }


def find_output(judged: JudgedColumn | None, classes: Sequence[Any] | None) -> Any:
    """Return the class that the effects of a column are about, of several; else None."""
    if judged is None or classes is None:
        return None
    return classes[judged.contrast.output]


EFFECT_COLUMNS = (
    "column",
    "environment",
    "worth",
    "worth_error",
    "effect",
    "standard_error",
)


def list_effects(
    judged: JudgedColumn, *, name: str | int, environments: Sequence[Any]
) -> list[dict[str, Any]]:
    """List what a column is worth in each environment, and the effect of its rule there.

    The worth is 1 where the column says what the model has learned, and 0 where it says nothing.
    Times the contrast of the rule, which is the difference that the model makes between rows where
    it is true and where it is false, it is the effect of the rule. NaN stands where the worth is
    not known.
    """
    difference = judged.contrast.difference
    is_known = judged.worth.is_known
    worth = np.where(is_known, judged.worth.values, np.nan)
    errors = np.where(is_known, judged.worth.errors, np.nan)
    return [
        {
            "column": name,
            "environment": environment,
            "worth": worth_there,
            "worth_error": error,
            "effect": worth_there * difference,
            "standard_error": error * abs(difference),
        }
        for environment, worth_there, error in zip(
            environments, worth.tolist(), errors.tolist(), strict=True
        )
    ]


def describe_extremes(effects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the lowest and the highest effect of a column, and where they were measured."""
    known = [row for row in effects if np.isfinite(row["effect"])]
    if not known:
        return {
            "lowest_effect": np.nan,
            "lowest_environment": None,
            "highest_effect": np.nan,
            "highest_environment": None,
        }
    lowest = min(known, key=lambda row: row["effect"])
    highest = max(known, key=lambda row: row["effect"])
    return {
        "lowest_effect": lowest["effect"],
        "lowest_environment": lowest["environment"],
        "highest_effect": highest["effect"],
        "highest_environment": highest["environment"],
    }


# --- rounds ---------------------------------------------------------------------------------------


def list_rounds(
    screen: ScreenState,
    outcome: Outcome,
    names: Sequence[str | int],
) -> list[dict[str, Any]]:
    """List the rounds, with the performance of the model at the training environments."""
    rows = []
    for screen_round in screen.rounds:
        performance = measure_performance(outcome, screen_round.scores)
        rejected = [format_name(names[column]) for column in screen_round.rejected]
        allowed = [format_name(names[column]) for column in screen_round.allowed]
        rows.append(
            {
                "round": screen_round.number,
                "n_columns": screen_round.n_columns,
                "score": performance.score,
                "loss": performance.loss,
                "deviance_explained": screen_round.explained,
                "rejected": ", ".join(rejected) or None,
                "allowed": ", ".join(allowed) or None,
            }
        )
    return rows
