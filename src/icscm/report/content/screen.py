"""A screen of columns: verdicts, worth and effects by environment, costs, and other tolerances.

A column's worth says how much of what the model has learned from it is true: 1 all of it, 0
nothing, and below 0 the reverse (`icscm.screening.worth`). Times the contrast of the column's rule
it is an effect: an odds ratio for classes, a standardised difference for numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Protocol

import numpy as np
import pandas as pd

from icscm.formatting import as_text, format_name, make_plain
from icscm.screening.evidence import NEEDED_OF_SEVERAL_CLASSES, says_nothing
from icscm.tables.outcomes import OutcomeKind

REJECTED, CANNOT_TELL, KEPT = "rejected", "cannot tell", "kept"
# The order in which a report lists the verdicts.
VERDICTS = (REJECTED, CANNOT_TELL, KEPT)
# The half-width of a 95% interval in standard errors.
Z = 1.959964
# Odds ratios beyond exp(50) are all the same.
MAX_LOG_RATIO = 50.0


@dataclass(frozen=True, kw_only=True)
class EnvironmentEffect:
    """The worth and the effect of a column in an environment; None where they are not known.

    Intervals are of 95 %. The `effect` is an odds ratio or, of a number, a difference in standard
    deviations of the outcome.
    """

    environment: str
    worth: float | None
    worth_interval: list[float] | None
    effect: float | None
    effect_interval: list[float] | None


@dataclass(frozen=True, kw_only=True)
class ScreenedColumn:
    """The verdict on a column, with the numbers behind it.

    Numbers are as in `screen_` of the selector; None where they are not known. `n_known` is the
    number of environments in which the worth is known. A kept column `says_nothing` if its worth is
    no more than chance: `worth_low` is then low only because the worth is known so inexactly.
    `output` is the class that the effects are about, of several. The `lowest` and the `highest`
    effect are None where none is known.
    """

    column: str
    verdict: str
    reason: str
    round: int
    worth: float | None
    worth_error: float | None
    worth_low: float | None
    says_nothing: bool
    tau: float | None
    p_value: float | None
    joint_low: float | None
    own_low: float | None
    share: float | None
    stake: float | None
    detectable: float | None
    n_known: int
    rule: str | None
    output: str | None
    environments: list[EnvironmentEffect]
    lowest: EnvironmentEffect | None
    highest: EnvironmentEffect | None


@dataclass(frozen=True, kw_only=True)
class RoundCost:
    """Scores before a round of the screen: the columns left, and those just rejected.

    `again` names columns that were rejected in an earlier round and are left again.
    """

    n_columns: int
    without: str | None
    again: str | None
    score: float | None
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class ToleranceLevel:
    """The screen at one tolerance: what it rejects, and the scores of the columns left.

    `leave` are the columns that the next larger tolerance does not reject.
    """

    tolerance: float
    name: str
    is_own: bool
    n_columns: int
    rejected: list[str]
    leave: list[str]
    score: float | None
    loss: float | None
    score_left_out: float | None
    worst_score_left_out: float | None


class LeftOutScreen(Protocol):
    """The learner on all columns and on screened ones, in an environment that neither saw."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def score_all(self) -> float | None: ...
    @property
    def score_screened(self) -> float | None: ...
    @property
    def loss_all(self) -> float | None: ...
    @property
    def loss_screened(self) -> float | None: ...
    @property
    def rejected(self) -> tuple[Any, ...]: ...


class ScreenValidationRecord(Protocol):
    """What a screen changes in environments left out; `icscm.validation.screening` measures it."""

    @property
    def held_out(self) -> Sequence[LeftOutScreen]: ...
    @property
    def means(self) -> Mapping[str, float | None]: ...
    @property
    def text(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class ScreenTask:
    """What was screened, and for which learner; names are None where they were not given."""

    data: str | None
    target: str | None
    environment: str | None
    environments: list[str]
    outcome: OutcomeKind
    estimator: str
    tolerance: float
    n_rounds: int
    is_complete: bool

    @property
    def needed(self) -> float:
        """The worth that a column needs in nearly all new environments."""
        return compute_needed_worth(self.tolerance, self.outcome)


def compute_needed_worth(tolerance: float, outcome: OutcomeKind) -> float:
    """Return the worth that a tolerance leaves; `icscm.screening.evidence` has the reasons."""
    needed = 1.0 - tolerance
    if outcome is OutcomeKind.SEVERAL_CLASSES and needed > 0:
        return NEEDED_OF_SEVERAL_CLASSES * needed
    return needed


@dataclass(frozen=True, kw_only=True)
class ScreenContent:
    """What a report on a screen of columns shows.

    Parameters
    ----------
    task : ScreenTask
        Data, outcome, learner and tolerance.
    columns : list of ScreenedColumn
        Those rejected in the order of rejection, then the others by what depends on them.
    kept, rejected : list
        Names of columns as JSON holds them, in the order of the table.
    costs : list of RoundCost
        Scores with all columns, and after each rejection.
    levels : list of ToleranceLevel
        Other tolerances, from loose to strict; empty where they are not known.
    validation : ScreenValidationRecord or None
        What the screen changes in environments left out.
    """

    task: ScreenTask
    columns: list[ScreenedColumn]
    kept: list[Any]
    rejected: list[Any]
    costs: list[RoundCost]
    levels: list[ToleranceLevel]
    validation: ScreenValidationRecord | None

    def count_verdict(self, verdict: str) -> int:
        """Return the number of columns with a verdict."""
        return sum(column.verdict == verdict for column in self.columns)


def make_screen_content(
    selector: Any,
    *,
    learner_name: str,
    levels: list[ToleranceLevel],
    validation: ScreenValidationRecord | None,
    data_name: str | None,
    target: str | None,
    environment: str | None,
) -> ScreenContent:
    """Return what a report on a fitted `InvariantFeatureSelector` shows."""
    outcome = selector.outcome_kind_
    return ScreenContent(
        task=ScreenTask(
            data=write_name(data_name),
            target=write_name(target),
            environment=write_name(environment),
            environments=[as_text(label) for label in selector.environments_ or ()],
            outcome=outcome,
            estimator=learner_name,
            tolerance=selector.tolerance,
            n_rounds=len(selector.rounds_),
            is_complete=selector.is_complete_,
        ),
        columns=make_columns(selector.screen_, selector.effects_, outcome),
        kept=make_plain([*selector.kept_], str),
        rejected=make_plain([*selector.rejected_], str),
        costs=make_costs(selector.rounds_, selector.screen_),
        levels=levels,
        validation=validation,
    )


def write_name(name: str | None) -> str | None:
    """Return a name made safe for one line of text, or None."""
    return None if name is None else as_text(name)


# --- columns and their effects --------------------------------------------------------------------


def make_columns(
    screen: pd.DataFrame, effects: pd.DataFrame, outcome: OutcomeKind
) -> list[ScreenedColumn]:
    """Return every column: the rejected ones by round, then the others by their stake."""
    verdict = screen["verdict"].map(VERDICTS.index)
    rejection_round = screen["round"].where(verdict == VERDICTS.index(REJECTED))
    ordered = screen.assign(verdict_order=verdict, rejection_round=rejection_round).sort_values(
        ["verdict_order", "rejection_round", "stake"],
        ascending=[True, True, False],
        kind="stable",
    )
    return [make_column(row, effects, outcome) for row in ordered.to_dict("records")]


def make_column(
    row: Mapping[Any, Any], effects: pd.DataFrame, outcome: OutcomeKind
) -> ScreenedColumn:
    """Return a column, given its row of `screen_` and the effects of all columns."""
    rows_of_column = effects[effects["column"] == row["column"]].to_dict("records")
    environments = [make_environment_effect(effect, outcome) for effect in rows_of_column]
    known = [effect for effect in environments if effect.effect is not None]
    return ScreenedColumn(
        column=format_name(row["column"]),
        verdict=row["verdict"],
        reason=row["reason"],
        round=int(row["round"]),
        worth=to_finite(row["worth"]),
        worth_error=to_finite(row["worth_error"]),
        worth_low=to_finite(row["worth_low"]),
        says_nothing=bool(
            row["verdict"] == KEPT and says_nothing(row["worth"], row["worth_error"])
        ),
        tau=to_finite(row["tau"]),
        p_value=to_finite(row["p_value"]),
        joint_low=to_finite(row["joint_low"]),
        own_low=to_finite(row["own_low"]),
        share=to_finite(row["share"]),
        stake=to_finite(row["stake"]),
        detectable=to_finite(row["detectable"]),
        n_known=len(known),
        rule=row["rule"] or None,
        output=None if row["output"] is None else as_text(row["output"]),
        environments=environments,
        lowest=min(known, key=get_effect, default=None),
        highest=max(known, key=get_effect, default=None),
    )


def get_effect(record: EnvironmentEffect) -> float:
    """Return an effect that is known."""
    assert record.effect is not None
    return record.effect


def make_environment_effect(row: Mapping[Any, Any], outcome: OutcomeKind) -> EnvironmentEffect:
    """Return the worth and the effect in an environment, given a row of `effects_`."""
    worth_ends = find_ends(row["worth"], row["worth_error"])
    effect_ends = find_ends(row["effect"], row["standard_error"])
    effect = to_finite(row["effect"])
    if outcome is not OutcomeKind.NUMBER:
        effect = None if effect is None else to_odds_ratio(effect)
        effect_ends = None if effect_ends is None else list(map(to_odds_ratio, effect_ends))
    return EnvironmentEffect(
        environment=as_text(row["environment"]),
        worth=to_finite(row["worth"]),
        worth_interval=worth_ends,
        effect=effect,
        effect_interval=effect_ends,
    )


def find_ends(value: float, error: float) -> list[float] | None:
    """Return the ends of the 95% interval of a value with this standard error; None if unknown."""
    if not np.isfinite(value) or not np.isfinite(error):
        return None
    return [float(value - Z * error), float(value + Z * error)]


def to_odds_ratio(log_ratio: float) -> float:
    """Return the odds ratio of a log odds ratio, within limits."""
    return exp(min(max(log_ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO))


def to_finite(value: Any) -> float | None:
    """Return a number as a float, None where it is NaN or infinite."""
    return float(value) if np.isfinite(value) else None


# --- costs ----------------------------------------------------------------------------------------


def make_costs(rounds: pd.DataFrame, screen: pd.DataFrame) -> list[RoundCost]:
    """Return the scores with all columns, and after each rejection.

    Columns of round 0 were rejected before any model saw them.
    """
    costs = []
    rejected_before = name_rejected(screen, round_number=0)
    for row in rounds.to_dict("records"):
        costs.append(
            RoundCost(
                n_columns=int(row["n_columns"]),
                without=rejected_before or None,
                again=row["allowed"] if isinstance(row["allowed"], str) else None,
                score=to_finite(row["score"]),
                loss=to_finite(row["loss"]),
            )
        )
        rejected_before = row["rejected"] if isinstance(row["rejected"], str) else ""
    if rejected_before:  # every column was rejected, or the next round was interrupted
        n_left = int((screen["verdict"] != REJECTED).sum())
        costs.append(
            RoundCost(n_columns=n_left, without=rejected_before, again=None, score=None, loss=None)
        )
    return costs


def name_rejected(screen: pd.DataFrame, *, round_number: int) -> str:
    """Return the names of the columns that a round rejected."""
    is_rejected = (screen["verdict"] == REJECTED) & (screen["round"] == round_number)
    return ", ".join(map(format_name, screen.loc[is_rejected, "column"]))
