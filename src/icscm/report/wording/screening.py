"""The screen of columns: its result, what a tolerance means, its limits, its validation."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from icscm.formatting import count
from icscm.report.content.screen import RoundCost
from icscm.report.formatting import format_heterogeneity, format_score, format_value

# Shares of the model's information that a column may carry, and how they are called.
INFORMATION = {1.0: "it carries all of it", 0.1: "a tenth", 0.01: "1 percent"}

LIMITS = (
    "Rejection protects against shortcuts that differ between the environments at hand; it does "
    "not forecast which columns will fail at a new site.",
    "A shortcut that is equally strong in all environments is not detected.",
    "With few environments or few rows only large differences are detected, and two environments "
    "show little: kept means that no difference beyond the tolerance was found, not that the "
    "effect is the same everywhere.",
)


def describe_screen(n_rejected: int, n_columns: int, tolerance: float) -> str:
    """Return how many columns were rejected.

    >>> describe_screen(2, 10, 0.01)
    '2 of 10 columns are rejected at tolerance 0.01.'
    """
    verb = "are" if n_rejected > 1 else "is"
    columns = f"{n_rejected or 'None'} of {count(n_columns, 'column')}"
    return f"{columns} {verb} rejected at tolerance {format_value(tolerance)}."


def describe_price(tolerance: float) -> str:
    """Return by how much an effect may vary at a tolerance.

    A column with the share s of the model's information may have an effect whose coefficient of
    variation over environments is sqrt(tolerance / s).
    """
    level = format_value(tolerance)
    cases = ", ".join(
        f"by {sqrt(tolerance / share):.0%} if {text}" for share, text in INFORMATION.items()
    )
    return (
        f"At tolerance {level}, a column that carries a share s of the model's information may "
        f"have an effect that varies by sqrt({level} / s) between environments: {cases}."
    )


def describe_screen_validation(
    gains: Sequence[float], auc_all: float, auc_screened: float, negligible: float
) -> str:
    """Return what the screen changed in environments left out.

    `gains` are the changes of the AUC by environment, of which negligible ones count as none.
    """
    if not gains:
        return "The AUC is undefined in every environment held out."
    n_higher = sum(gain > negligible for gain in gains)
    n_lower = sum(gain < -negligible for gain in gains)
    sentences = [
        f"Mean AUC in the environment held out: {format_score(auc_all)} with all columns, "
        f"{format_score(auc_screened)} with the screened ones; higher in {n_higher} of "
        f"{len(gains)} environments, lower in {n_lower}."
    ]
    if auc_screened < auc_all - negligible:
        sentences.append(
            "The rejected columns still helped there, more in some environments than in others: "
            "keep them only if the next site is like these."
        )
    sentences.append(
        "These scores cover no shift larger than those between the environments at hand; where a "
        "shortcut reverses, a model that uses it fails."
    )
    return " ".join(sentences)


PRICE_OF_TRUTH = (
    "An effect that truly varies looks like a shortcut; the tolerance decides which risk is "
    "preferred."
)
# The default learner is that of the screen itself.
BOOSTING = "histogram gradient boosting"
OBVIOUS_REASON = "its effect differs"


def explain_share(tolerance: float) -> str:
    """Return what the share of heterogeneity of a column is, and when it is rejected."""
    return (
        "share: heterogeneity of the column's effect between environments beyond chance, given all "
        "other columns, relative to the deviance that the model explains; rejected above "
        f"{format_heterogeneity(tolerance)} if significant."
    )


def describe_costs(estimator: str) -> str:
    """Return what scores at the training environments mean."""
    whose = "" if estimator == BOOSTING else " for the learner and boosting combined"
    return (
        f"Cross-validated{whose} within these environments, where shortcuts help. A lower AUC is "
        "the cost of rejecting them; it does not mean that they help at a new site."
    )


class CostJudgement(NamedTuple):
    """What the screen costs at the training environments, and what that means."""

    answer: str
    detail: str


def judge_costs(costs: Sequence[RoundCost]) -> CostJudgement:
    """Return the AUC at the training environments before and after the rounds of the screen."""
    if not costs:
        return CostJudgement("Unknown", "Cross-validated.")
    first_round = costs[0]
    last_round = costs[-1]
    first_auc = f"AUC {format_score(first_round.auc)}"
    without = f"without {first_round.without}" if first_round.without else ""
    if len(costs) == 1:
        rejected = f" {without}" if without else "; nothing was rejected"
        return CostJudgement(first_auc, f"Cross-validated{rejected}.")

    last_auc = format_score(last_round.auc) if last_round.auc else "no model"
    return CostJudgement(
        answer=f"{first_auc} {without or 'with all columns'}, {last_auc} screened",
        detail="Cross-validated. Shortcuts help here, so rejecting them lowers the AUC.",
    )


def needs_reason(verdict: str, reason: str | None) -> bool:
    """Return whether a verdict is given with its reason: not the usual one of a rejection."""
    return bool(reason) and verdict != "kept" and reason != OBVIOUS_REASON


def shows_effects(verdict: str, share: float | None, tolerance: float) -> bool:
    """Return whether the effects of a column are listed: those rejected and near the tolerance."""
    return verdict != "kept" or (share is not None and share > tolerance / 2)
