"""A screen of columns: verdicts, effects by environment, costs, and other tolerances.

Effects are odds ratios of a column's rule, the other columns held fixed. Scores are those of the
learner, cross-validated at the training environments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Protocol

import numpy as np
import pandas as pd

from icscm.formatting import as_text, format_name, make_plain
from icscm.stats.random_effects import pool_effects

REJECTED, CANNOT_TELL, KEPT = "rejected", "cannot tell", "kept"
# The order in which a report lists the verdicts.
VERDICTS = (REJECTED, CANNOT_TELL, KEPT)
# The half-width of a 95% interval in standard errors.
Z = 1.959964
# Odds ratios beyond exp(50) are all the same.
MAX_LOG_RATIO = 50.0


@dataclass(frozen=True, kw_only=True)
class EnvironmentEffect:
    """The effect of a column in an environment, with its 95% interval; None where not known.

    `effect` is the log odds ratio, with its standard error.
    """

    environment: str
    odds_ratio: float | None
    interval: list[float] | None
    effect: float | None
    standard_error: float | None


@dataclass(frozen=True, kw_only=True)
class PooledEffect:
    """The mean effect over environments (random effects), and in a new environment.

    `tau` is the standard deviation of the log odds ratio between environments; the 95% prediction
    interval is None where there are too few of them.
    """

    odds_ratio: float
    interval: list[float]
    tau: float
    prediction_interval: list[float] | None


@dataclass(frozen=True, kw_only=True)
class ScreenedColumn:
    """The verdict on a column, with the numbers behind it and its effects.

    `round` is that in which it was rejected or tested last; the `lowest` and the `highest` effect
    are None where no environment has a known one.
    """

    column: str
    verdict: str
    reason: str | None
    question: str | None
    rule: str | None
    round: int
    share: float | None
    p_value: float | None
    tau: float | None
    i2: float | None
    replication: float | None
    environments: list[EnvironmentEffect]
    lowest: EnvironmentEffect | None
    highest: EnvironmentEffect | None
    pooled: PooledEffect | None


@dataclass(frozen=True, kw_only=True)
class RoundCost:
    """Scores before a round of the screen: the columns left, and those just rejected."""

    n_columns: int
    without: str | None
    auc: float | None
    log_loss: float | None


@dataclass(frozen=True, kw_only=True)
class ToleranceLevel:
    """The screen at one tolerance: what leaves here, and the scores of the columns left."""

    tolerance: float
    name: str
    is_own: bool
    n_columns: int
    leave: list[str]
    auc: float | None
    log_loss: float | None
    auc_left_out: float | None
    worst_auc_left_out: float | None


class LeftOutScreen(Protocol):
    """The learner on all columns and on screened ones, in an environment that neither saw."""

    @property
    def environment(self) -> Any: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def auc_all(self) -> float | None: ...
    @property
    def auc_screened(self) -> float | None: ...
    @property
    def log_loss_all(self) -> float | None: ...
    @property
    def log_loss_screened(self) -> float | None: ...
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
    """What was screened, by which learner; names are None where they were not given."""

    data: str | None
    target: str | None
    environment: str | None
    environments: list[str]
    estimator: str
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class ScreenContent:
    """What a report on a screen of columns shows.

    Parameters
    ----------
    task : ScreenTask
        Data, learner and tolerance.
    columns : list of ScreenedColumn
        Those rejected in the order of rejection, then the others by their share.
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
    return ScreenContent(
        task=ScreenTask(
            data=write_name(data_name),
            target=write_name(target),
            environment=write_name(environment),
            environments=[as_text(label) for label in selector.environments_ or ()],
            estimator=learner_name,
            tolerance=selector.tolerance,
        ),
        columns=make_columns(selector.screen_, selector.effects_),
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


def make_columns(screen: pd.DataFrame, effects: pd.DataFrame) -> list[ScreenedColumn]:
    """Return every column: the rejected ones by round, then the others by share."""
    verdict = screen["verdict"].map(VERDICTS.index)
    rejection_round = screen["round"].where(verdict == VERDICTS.index(REJECTED))
    ordered = screen.assign(verdict_order=verdict, rejection_round=rejection_round).sort_values(
        ["verdict_order", "rejection_round", "share"],
        ascending=[True, True, False],
        kind="stable",
    )
    return [make_column(row, effects) for row in ordered.to_dict("records")]


def make_column(row: Mapping[Any, Any], effects: pd.DataFrame) -> ScreenedColumn:
    """Return a column, given its row of `screen_` and the effects of all columns."""
    of_column = effects[effects["column"] == row["column"]]
    values = of_column["effect"].to_numpy(dtype=float)
    standard_errors = of_column["standard_error"].to_numpy(dtype=float)
    environments = [
        make_environment_effect(label, value, standard_error)
        for label, value, standard_error in zip(
            of_column["environment"], values, standard_errors, strict=True
        )
    ]
    known = [effect for effect in environments if effect.odds_ratio is not None]
    return ScreenedColumn(
        column=format_name(row["column"]),
        verdict=row["verdict"],
        reason=row["reason"],
        question=row["question"],
        rule=row["rule"],
        round=int(row["round"]),
        share=to_finite(row["share"]),
        p_value=to_finite(row["p_value"]),
        tau=to_finite(row["tau"]),
        i2=to_finite(row["i2"]),
        replication=to_finite(row["replication"]),
        environments=environments,
        lowest=min(known, key=get_odds_ratio, default=None),
        highest=max(known, key=get_odds_ratio, default=None),
        pooled=make_pooled_effect(values, standard_errors),
    )


def get_odds_ratio(effect: EnvironmentEffect) -> float:
    """Return a known odds ratio."""
    assert effect.odds_ratio is not None
    return effect.odds_ratio


def make_environment_effect(label: Any, effect: float, standard_error: float) -> EnvironmentEffect:
    """Return the effect in an environment; without a standard error there is no odds ratio."""
    odds_ratio = None
    interval = None
    if np.isfinite(effect) and np.isfinite(standard_error):
        odds_ratio = to_odds_ratio(effect)
        low, high = effect - Z * standard_error, effect + Z * standard_error
        interval = [to_odds_ratio(low), to_odds_ratio(high)]
    return EnvironmentEffect(
        environment=as_text(label),
        odds_ratio=odds_ratio,
        interval=interval,
        effect=to_finite(effect),
        standard_error=to_finite(standard_error),
    )


def make_pooled_effect(effects: Any, standard_errors: Any) -> PooledEffect | None:
    """Return the random-effects mean, where the effects can be pooled."""
    pooled = pool_effects(effects, standard_errors)
    if pooled is None:
        return None
    half_width = Z * pooled.standard_error
    prediction_interval = None
    if pooled.interval:
        prediction_interval = [to_odds_ratio(end) for end in pooled.interval]
    return PooledEffect(
        odds_ratio=to_odds_ratio(pooled.mean),
        interval=[to_odds_ratio(pooled.mean - half_width), to_odds_ratio(pooled.mean + half_width)],
        tau=pooled.tau,
        prediction_interval=prediction_interval,
    )


def to_odds_ratio(log_ratio: float) -> float:
    """Return the odds ratio of a log odds ratio, within limits."""
    return exp(min(max(log_ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO))


def to_finite(value: Any) -> float | None:
    """Return a number as a float, None where it is NaN or infinite."""
    return float(value) if np.isfinite(value) else None


# --- costs ----------------------------------------------------------------------------------------


def make_costs(rounds: pd.DataFrame, screen: pd.DataFrame) -> list[RoundCost]:
    """Return the scores with all columns, and after each rejection.

    Columns of round 0 were rejected before the learner saw them.
    """
    costs = []
    rejected_before = name_rejected(screen, round_number=0)
    for row in rounds.to_dict("records"):
        costs.append(
            RoundCost(
                n_columns=int(row["n_columns"]),
                without=rejected_before or None,
                auc=to_finite(row["auc"]),
                log_loss=to_finite(row["log_loss"]),
            )
        )
        rejected_before = name_rejected(screen, round_number=row["round"])
    if rejected_before:  # every column was rejected
        costs.append(RoundCost(n_columns=0, without=rejected_before, auc=None, log_loss=None))
    return costs


def name_rejected(screen: pd.DataFrame, *, round_number: int) -> str:
    """Return the names of the columns that a round rejected."""
    is_rejected = (screen["verdict"] == REJECTED) & (screen["round"] == round_number)
    return ", ".join(map(format_name, screen.loc[is_rejected, "column"]))
