"""The tables in which `InvariantFeatureSelector` shows the result of its screen, and the verdicts.

`screen_` has a row for each column, `effects_` one for each column and environment, and `rounds_`
one for each round of the screen (`icscm.estimators.selector_rounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm.estimators.selector_rounds import FinishedScreen
from icscm.screening.binned_table import BinnedTable
from icscm.screening.column_tests import ColumnResult
from icscm.stats.splits import find_extreme_environments

if TYPE_CHECKING:
    import pandas

# The verdict is "cannot tell" if even a share of so many times the tolerance would not have been
# significant.
MAX_DETECTABLE_RATIO: Final = 5.0


@dataclass(frozen=True)
class ColumnVerdict:
    """Whether a column is kept or rejected, or cannot be judged, and why."""

    verdict: str
    reason: str


def decide(
    screen: FinishedScreen, column: int, *, tolerance: float, has_environments: bool
) -> ColumnVerdict:
    """Decide on a column; it is kept only if the data would have shown that it is a shortcut."""
    if column in screen.rejection_reasons:
        return ColumnVerdict("rejected", screen.rejection_reasons[column])
    if not has_environments:
        return ColumnVerdict("cannot tell", "no environments")

    detectable_share = screen.get_result(column).detectable_share
    if detectable_share == np.inf:
        return ColumnVerdict("cannot tell", "informative in fewer than two environments")
    if detectable_share > MAX_DETECTABLE_RATIO * tolerance:
        return ColumnVerdict("cannot tell", "too little data")
    if isnan(screen.get_replication(column)):
        return ColumnVerdict("cannot tell", "one environment holds nearly all information")
    return ColumnVerdict("kept", "")


@dataclass(frozen=True, eq=False)
class ScreenTables:
    """The tables of a screen: `screen_`, `effects_` and `rounds_` of the selector."""

    screen: pandas.DataFrame
    effects: pandas.DataFrame
    rounds: pandas.DataFrame


def make_tables(
    screen: FinishedScreen,
    table: BinnedTable,
    *,
    names: Sequence[str | int],
    environments: Sequence[Any] | None,
    tolerance: float,
) -> ScreenTables:
    """Make the tables of a screen, with columns by name and environments by label."""
    import pandas  # slow to import

    labels = environments or ()
    column_rows: list[dict[str, Any]] = []
    effect_rows: list[dict[str, Any]] = []
    for column, name in enumerate(names):
        result = screen.get_result(column)
        decision = decide(
            screen, column, tolerance=tolerance, has_environments=environments is not None
        )
        column_rows.append(
            {
                "column": name,
                "verdict": decision.verdict,
                "reason": decision.reason,
                "round": result.round,
                "share": result.share,
                "p_value": result.p_value,
                "question": result.question,
                "rule": "" if result.cut is None else str(table.columns.make_rule(result.cut)),
                **describe_extremes(result, labels),
                "tau": result.tau,
                "i2": result.i2,
                "replication": screen.get_replication(column),
            }
        )
        effect_rows += list_effects(result, name=name, environments=labels)

    effect_columns = ["column", "environment", "effect", "standard_error"]
    return ScreenTables(
        screen=pandas.DataFrame(column_rows),
        effects=pandas.DataFrame(effect_rows, columns=effect_columns),
        rounds=pandas.DataFrame([asdict(screen_round) for screen_round in screen.rounds]),
    )


def describe_extremes(result: ColumnResult, environments: Sequence[Any]) -> Mapping[str, Any]:
    """Return the lowest and the highest effect of a column, and where they were measured."""
    effects = [] if result.effects is None else result.effects.tolist()
    known_effects = [None if isnan(effect) else effect for effect in effects]
    extremes = find_extreme_environments(known_effects)
    if extremes is None:
        return {
            "lowest_effect": np.nan,
            "lowest_environment": None,
            "highest_effect": np.nan,
            "highest_environment": None,
        }
    lowest, highest = extremes
    return {
        "lowest_effect": effects[lowest],
        "lowest_environment": environments[lowest],
        "highest_effect": effects[highest],
        "highest_environment": environments[highest],
    }


def list_effects(
    result: ColumnResult, *, name: str | int, environments: Sequence[Any]
) -> list[dict[str, Any]]:
    """List the effects of a column by environment, with their standard errors.

    The weight of an effect is the inverse of its variance, so its error is weight ** -1/2.
    """
    if result.effects is None:
        return []
    effects = result.effects.tolist()
    weights = np.zeros(len(effects)) if result.weights is None else result.weights
    return [
        {
            "column": name,
            "environment": environment,
            "effect": effect,
            "standard_error": weight**-0.5 if weight > 0 else np.nan,
        }
        for environment, effect, weight in zip(environments, effects, weights, strict=True)
    ]
