"""The screen of columns in words: its result, verdicts, tolerance, costs, validation and limits.

A worth in a new environment is told as "above 0.89 in 19 of 20 new environments". With few
environments it is 10 of 11 or 13 of 14 (`icscm.screening.worth`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from icscm.formatting import count
from icscm.report.content.screen import (
    CANNOT_TELL,
    KEPT,
    RoundCost,
    ScreenedColumn,
    ScreenTask,
)
from icscm.report.formatting import format_p, format_ratio, format_score, format_value
from icscm.report.wording.validation import list_dropped
from icscm.screening import reasons
from icscm.screening.evidence import MIN_STAKE
from icscm.stats.worth import compute_coverage
from icscm.tables.outcomes import OutcomeKind

LIMITS = (
    "Rejection protects against shortcuts that differ between the environments at hand; it does "
    "not forecast which columns will fail at a new site.",
    "A shortcut that is equally strong in all environments is not detected.",
    "With few environments or few rows only large differences are detected: kept means that no "
    "difference beyond the tolerance was found, not that the effect is the same everywhere.",
)
TWO_ENVIRONMENTS = (
    "Two environments show one difference, which any cause may have: no column is rejected for "
    "it, only columns that tell the environments apart. Use three or more."
)


def list_limits(n_environments: int) -> list[str]:
    """Return what the screen cannot find, with what two environments mean if there are two."""
    return [TWO_ENVIRONMENTS, *LIMITS] if n_environments == 2 else [*LIMITS]


# --- scores and effects by the kind of outcome ----------------------------------------------------


@dataclass(frozen=True)
class ScoreNames:
    """How a score is called, of which more is better, and a loss."""

    score: str
    loss: str
    loss_note: str = ""


SCORE_NAMES = {
    OutcomeKind.TWO_CLASSES: ScoreNames("AUC", "log loss"),
    OutcomeKind.SEVERAL_CLASSES: ScoreNames("mean AUC", "log loss"),
    OutcomeKind.NUMBER: ScoreNames(
        "R2", "RMSE", "The RMSE is in standard deviations of the outcome."
    ),
}


def name_effect(outcome: OutcomeKind) -> str:
    """Return what the effect of a column is called."""
    return "difference" if outcome is OutcomeKind.NUMBER else "odds ratio"


def format_effect(effect: float | None, outcome: OutcomeKind) -> str:
    """Return an effect as text.

    >>> format_effect(2.104, OutcomeKind.TWO_CLASSES), format_effect(-0.512, OutcomeKind.NUMBER)
    ('2.1', '-0.51')
    """
    if outcome is not OutcomeKind.NUMBER:
        return format_ratio(effect)
    return format_worth(effect)


def format_effect_interval(interval: Sequence[float] | None, outcome: OutcomeKind) -> str:
    """Return the ends of an interval of effects."""
    if interval is None:
        return "-"
    return " to ".join(format_effect(end, outcome) for end in interval)


def format_worth(worth: float | None) -> str:
    """Return a worth, with two decimals.

    >>> format_worth(0.9567), format_worth(-0.001), format_worth(None)
    ('0.96', '0.00', '-')
    """
    return "-" if worth is None else f"{worth:z.2f}"


def format_worth_interval(interval: Sequence[float] | None) -> str:
    """Return the ends of an interval of worths."""
    return "-" if interval is None else " to ".join(map(format_worth, interval))


def format_worth_in_new(column: ScreenedColumn) -> str:
    """Return what a column is worth in a new environment, in words if it says nothing anyway."""
    return "says nothing" if column.says_nothing else format_worth(column.worth_low)


def describe_effect(column: ScreenedColumn, outcome: OutcomeKind) -> str:
    """Return what the effects of a column are, after their name: the rule, and of which class."""
    held_fixed = "other columns held fixed"
    if outcome is OutcomeKind.NUMBER:
        return f"if {column.rule}, in standard deviations of the outcome, {held_fixed}"
    of_class = "" if column.output is None else f"of {column.output} "
    return f"{of_class}if {column.rule}, {held_fixed}"


# --- new environments -----------------------------------------------------------------------------


class NewEnvironments(NamedTuple):
    """Of so many new environments, so many exceed the worth that is given for a new one."""

    n_above: int
    n_all: int

    @property
    def above(self) -> str:
        """The part above: `19 of 20 new environments`."""
        return f"{self.n_above} of {self.n_all} new environments"

    @property
    def below(self) -> str:
        """The part below: `1 of 20 new environments`."""
        return f"1 of {self.n_all} new environments"


def count_new_environments(n_environments: int) -> NewEnvironments:
    """Return how many new environments exceed what is given for a new one.

    >>> [count_new_environments(n).below for n in (3, 4, 12)]
    ['1 of 11 new environments', '1 of 14 new environments', '1 of 20 new environments']
    """
    coverage = compute_coverage(max(n_environments - 1, 1))
    n_all = round(1.0 / (1.0 - coverage))
    return NewEnvironments(n_above=n_all - 1, n_all=n_all)


def describe_worth(column: ScreenedColumn) -> str:
    """Return the worth of a column on average and in a new environment."""
    if column.worth is None:
        return "not used by the model"
    average = f"worth {format_worth(column.worth)} on average"
    if column.says_nothing:
        return f"{average}, no more than chance: it says nothing beside the others"
    if column.worth_low is None:
        return average
    new = count_new_environments(column.n_known)
    return f"{average}, above {format_worth(column.worth_low)} in {new.above}"


# --- the result -----------------------------------------------------------------------------------


def describe_screen(n_rejected: int, n_columns: int, tolerance: float) -> str:
    """Return how many columns were rejected.

    >>> describe_screen(2, 10, 0.5)
    '2 of 10 columns are rejected at tolerance 0.5.'
    """
    verb = "are" if n_rejected > 1 else "is"
    columns = f"{n_rejected or 'None'} of {count(n_columns, 'column')}"
    return f"{columns} {verb} rejected at tolerance {format_value(tolerance)}."


def describe_interruption(task: ScreenTask) -> str:
    """Return what an interrupted screen lacks; an empty text if it is complete."""
    if task.is_complete:
        return ""
    return (
        f"The screen was interrupted after {count(task.n_rounds, 'round')}: what is rejected stays "
        "rejected, and more columns may be shortcuts."
    )


def describe_tolerance(task: ScreenTask) -> str:
    """Return what the tolerance of a screen means."""
    new = count_new_environments(len(task.environments))
    if task.needed > 0:
        needed = format_value(task.needed)
        loss = f"may be less than {needed} of what it is here in {new.below}"
    elif task.needed == 0:
        loss = f"may be lost or reversed in {new.below}"
    else:
        loss = f"may be reversed, below {format_value(task.needed)}, in {new.below}"
    halved = ""
    if task.outcome is OutcomeKind.SEVERAL_CLASSES and task.needed > 0:
        halved = " Of several classes half of what the tolerance leaves is enough."
    return (
        f"Tolerance {format_value(task.tolerance)}: a column is rejected if its worth differs "
        f"between environments and {loss}.{halved}"
    )


def find_needed(column: ScreenedColumn, task: ScreenTask) -> float:
    """Return the worth that a column needs: more of one that is worth more than 1 on average."""
    return task.needed * max(column.worth or 1.0, 1.0)


def explain_worth(n_environments: int) -> str:
    """Return what the numbers of a table of columns are."""
    new = count_new_environments(n_environments)
    return (
        "worth: how much of what the model has learned from the column is true in an environment, "
        "1 all of it, 0 nothing, below 0 the reverse; the mean over environments. in new: exceeded "
        f"in {new.above}; says nothing: beside the others, its worth is no more than chance. "
        "stake: the part of what the model explains that depends on the column."
    )


def explain_verdict(column: ScreenedColumn, task: ScreenTask) -> str:
    """Return why a column has its verdict, with the numbers that decided."""
    if column.verdict == KEPT:
        return explain_kept(column, task)
    if column.verdict == CANNOT_TELL:
        return explain_undecided(column, task)
    if column.reason in (reasons.ONE_DIFFERENCE, reasons.TOO_LITTLE_DATA, reasons.INTERRUPTED):
        return f"{explain_undecided(column, task)} What cannot be told was to be rejected."
    return explain_rejection(column, task)


def list_reasons(columns: Sequence[ScreenedColumn], task: ScreenTask) -> list[str]:
    """Return why columns are rejected or cannot be judged; an interruption is told elsewhere."""
    return [
        f"{column.column}: {explain_verdict(column, task)}"
        for column in columns
        if column.verdict != KEPT and column.reason != reasons.INTERRUPTED
    ]


def explain_rejection(column: ScreenedColumn, task: ScreenTask) -> str:
    """Return why a column was rejected."""
    if column.reason == reasons.DETERMINES:
        return "It tells the environments apart: there is nothing to compare its effect with."

    new = count_new_environments(column.n_known)
    needed = f"{format_worth(find_needed(column, task))} is needed"
    differs = f"{describe_range(column)} (p = {format_p(column.p_value)})"
    low = format_worth(column.worth_low)
    joint_low = format_worth(column.joint_low)
    if column.reason == reasons.DIFFERS_JOINTLY:
        return (
            "Beside the other columns that contribute most, its worth differs between environments "
            f"by more than chance, and may be below {joint_low} in {new.below}; {needed}."
        )
    if column.reason == reasons.MAY_BE_REVERSED:
        return (
            f"By itself it may be worth less than {format_worth(column.own_low)} in {new.below}, "
            f"and beside the other columns less than {low}; {needed}."
        )
    if column.reason == reasons.DIFFERS:
        return f"Its worth is {differs}, and may be below {low} in {new.below}; {needed}."
    # of a group of columns, which the reason names
    return f"{column.reason[0].upper()}{column.reason[1:]}: each carries a part of the shortcut."


def describe_range(column: ScreenedColumn) -> str:
    """Return the lowest and the highest worth over environments, and where they are."""
    known = [effect for effect in column.environments if effect.worth is not None]
    if not known:
        return "not known in any environment"
    lowest = min(known, key=lambda effect: effect.worth or 0.0)
    highest = max(known, key=lambda effect: effect.worth or 0.0)
    return (
        f"{format_worth(lowest.worth)} in {lowest.environment} and "
        f"{format_worth(highest.worth)} in {highest.environment}"
    )


def explain_undecided(column: ScreenedColumn, task: ScreenTask) -> str:
    """Return why the screen cannot tell whether a column is a shortcut."""
    if column.reason == reasons.NO_ENVIRONMENTS:
        return "Without environments there is nothing to compare."
    if column.reason == reasons.INTERRUPTED:
        return "The screen was interrupted before it could decide."
    if column.reason == reasons.ONE_DIFFERENCE:
        return f"It is {describe_range(column)}: two environments show one difference."

    if column.reason != reasons.TOO_LITTLE_DATA:
        return f"{column.reason[0].upper()}{column.reason[1:]}."

    new = count_new_environments(column.n_known)
    lows = [low for low in (column.worth_low, column.joint_low) if low is not None]
    low = format_worth(min(lows, default=None))
    return (
        f"It may be worth less than {low} in {new.below}, where "
        f"{format_worth(find_needed(column, task))} is needed, but its differences may be "
        f"chance.{describe_power(column)}"
    )


def describe_power(column: ScreenedColumn) -> str:
    """Return which differences of a column would have been significant, as a further sentence."""
    if column.detectable is None:
        return ""
    return (
        " With these rows, the worth must have a standard deviation between environments of "
        f"{format_worth(column.detectable)} to show."
    )


def explain_kept(column: ScreenedColumn, task: ScreenTask) -> str:
    """Return what a column that is kept is worth, and why it is kept if that may be little."""
    if column.worth is None:
        return "The model does not use it."
    worth = describe_worth(column)
    text = f"{worth[0].upper()}{worth[1:]}."
    if column.says_nothing:
        return text
    if column.stake is not None and column.stake <= MIN_STAKE:
        return f"{text} Hardly anything depends on it: it is no shortcut of any weight."
    lows = [low for low in (column.worth_low, column.joint_low) if low is not None]
    needed = find_needed(column, task)
    if min(lows, default=needed) >= needed:
        return text
    return f"{text} The differences between environments are small or may be chance."


def format_stake(stake: float | None) -> str:
    """Return the stake of a column as a percentage; columns that interact may have more than all.

    >>> format_stake(0.4123), format_stake(0.0004), format_stake(1.3), format_stake(None)
    ('41%', '<0.1%', '100%', '-')
    """
    if stake is None:
        return "-"
    if 0 < stake < 0.001:
        return "<0.1%"
    return f"{min(stake, 1.0):.0%}" if stake >= 0.1 or stake == 0 else f"{stake:.1%}"


def describe_stake(column: ScreenedColumn) -> str:
    """Return how much depends on a column, and how much of that differs."""
    if column.worth is None or column.stake is None or column.share is None:
        return ""
    return (
        f"Of what the model explains, {format_stake(column.stake)} depends on this column; "
        f"heterogeneity beyond chance is {format_stake(column.share)}."
    )


# --- costs ----------------------------------------------------------------------------------------


def describe_costs(outcome: OutcomeKind) -> str:
    """Return what scores at the training environments mean."""
    names = SCORE_NAMES[outcome]
    text = (
        "Cross-validated within these environments, where shortcuts help, by the boosted trees of "
        f"the screen. A lower {names.score} is the cost of rejecting them; it does not mean that "
        f"they help at a new site. {names.loss_note}"
    )
    return text.rstrip()


class CostJudgement(NamedTuple):
    """What the screen costs at the training environments, and what that means."""

    answer: str
    detail: str


def judge_costs(costs: Sequence[RoundCost], outcome: OutcomeKind) -> CostJudgement:
    """Return the score at the training environments before and after the rounds of the screen."""
    if not costs:
        return CostJudgement("Unknown", "Cross-validated.")
    name = SCORE_NAMES[outcome].score
    first_round = costs[0]
    last_round = costs[-1]
    first_score = f"{name} {format_score(first_round.score)}"
    without = f"without {first_round.without}" if first_round.without else ""
    if len(costs) == 1:
        rejected = f" {without}" if without else "; nothing was rejected"
        return CostJudgement(first_score, f"Cross-validated{rejected}.")

    last_score = format_score(last_round.score)
    if last_round.score is None:
        last_score = "no model" if last_round.n_columns == 0 else "unknown"
    return CostJudgement(
        answer=f"{first_score} {without or 'with all columns'}, {last_score} screened",
        detail=f"Cross-validated. Shortcuts help here, so rejecting them lowers the {name}.",
    )


# --- environments left out, and other tolerances --------------------------------------------------


def describe_screen_validation(
    gains: Sequence[float],
    score_all: float,
    score_screened: float,
    *,
    negligible: float,
    n_environments: int | None = None,
    outcome: OutcomeKind = OutcomeKind.TWO_CLASSES,
    dropped: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return what the screen changed in environments left out.

    `gains` are the changes of the score by environment, of which negligible ones count as none.
    `dropped` are columns that hold no value without an environment, by its name.
    """
    name = SCORE_NAMES[outcome].score
    if not gains:
        return f"The {name} is undefined in every environment left out."
    n_higher = sum(gain > negligible for gain in gains)
    n_lower = sum(gain < -negligible for gain in gains)
    sentences = [
        f"{name} in the environment left out, on average: {format_score(score_all)} with all "
        f"columns, {format_score(score_screened)} with the screened ones; higher in {n_higher} of "
        f"{len(gains)} environments, lower in {n_lower}."
    ]
    if score_screened < score_all - negligible:
        sentences.append(
            "The rejected columns still helped there, more in some environments than in others: "
            "keep them only if the next site is like these."
        )
    if n_environments == 3:
        sentences.append(
            "Without one of three environments two remain, which show one difference: no column "
            "was rejected there for it."
        )
    if dropped:
        sentences.append(f"Dropped in single folds: {list_dropped(dropped)}.")
    sentences.append(
        "These scores cover no shift larger than those between the environments at hand; where a "
        "shortcut reverses, a model that uses it fails."
    )
    return " ".join(sentences)


PATH = (
    "The columns were screened again at each tolerance. An effect that truly varies looks like a "
    "shortcut; the tolerance decides which risk is preferred."
)


def describe_round(names: Sequence[str], *, n_rejected: int, number: int) -> str:
    """Return what a round has rejected, while the screen goes on.

    >>> describe_round(["billing_code"], n_rejected=2, number=2)
    'Round 2: billing_code rejected (2 so far)'
    """
    if not names:
        return f"Round {number}: nothing rejected, the screen is done"
    return f"Round {number}: {', '.join(names)} rejected ({n_rejected} so far)"
