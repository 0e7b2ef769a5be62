"""The rounds of a screen: judge all columns, reject the worst, and again without it.

A *shortcut* is a column whose effect on the outcome differs between environments. In each round a
model is cross-fitted on the columns that are left (`icscm.screening.cross_fitting`), each column
that the model uses is judged (`icscm.screening.evidence`), and of those that fail the one whose
worth differs most is rejected. Only one at a time: while a shortcut is in the model, the worth of
all other columns is measured beside it. If none fails, groups of columns are judged
(`icscm.screening.copies`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._types import CountArray, FloatArray, IntArray
from icscm.interruptions import ending_early, is_ctrl_c
from icscm.screening.content import number_by_appearance
from icscm.screening.contrasts import Contrast, find_contrast
from icscm.screening.copies import MIN_ENVIRONMENTS, find_groups
from icscm.screening.cross_fitting import CrossFit, cross_fit, run_in_threads
from icscm.screening.evidence import (
    REVERSED_BELOW,
    Evidence,
    Reason,
    Standard,
    find_reason,
    is_undecided,
)
from icscm.screening.giveaways import Giveaways, find_giveaways, pool_lone_levels
from icscm.screening.outcomes import Numbers, Outcome, compute_deviance
from icscm.screening.own_effects import (
    NullModel,
    OwnEffect,
    compute_own_effects,
    find_strongest,
    fit_null_model,
    measure_own_effect,
)
from icscm.screening.screened_table import ScreenedTable
from icscm.screening.worth import Worth, fit_joint_worth, fit_worth, pool_worth
from icscm.stats.replication import find_lone_environment

# Columns whose own effects are measured, and columns that a model is fitted on: of a wide table
# those that say most by themselves.
MAX_MEASURED: Final = 1_000
MAX_MODELLED: Final = 100
# More rows would not change a verdict.
MAX_ROWS: Final = 200_000
# The model explains at least this part of the null deviance, where a share of it is asked for.
MIN_EXPLAINED: Final = 0.02
N_GROUP_DRAWS: Final = 2
# A contribution that varies less is none.
MIN_SPREAD: Final = 1e-9


@dataclass(frozen=True, eq=False)
class JudgedColumn:
    """A column in the last round that judged it.

    `worth` is by environment. Times the difference of `contrast` it is the effect of a rule there.
    """

    evidence: Evidence
    worth: Worth
    contrast: Contrast
    round: int
    is_undecided: bool
    reason: Reason | None


@dataclass(frozen=True)
class ScreenRound:
    """One round: the model of the columns that were left, and the columns that were rejected."""

    number: int
    n_columns: int
    explained: float
    scores: FloatArray = field(repr=False, compare=False)
    rejected: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class FinishedScreen:
    """All that a screen has found, by the number of the column.

    Attributes
    ----------
    n_columns : int
        The number of columns that were screened.
    giveaways : Giveaways
        What gives the environment away.
    own_effects : dict of OwnEffect
        What columns say by themselves; of a wide table those that say most.
    judged : dict of JudgedColumn
        Columns that a model used, in the last round that judged them.
    rejected : dict of (column, round)
        The round that rejected a column; 0 for what determines the environment.
    groups : dict of list
        For a column that was rejected with others, all columns of the group.
    rounds : list of ScreenRound
        In their order.
    is_complete : bool
        Whether the last round rejected nothing; False if the screen was interrupted.
    lone_environment : int or None
        The environment that has nearly all information on the outcome: nothing can be compared
        then, and nothing was screened.
    """

    n_columns: int
    giveaways: Giveaways = field(default_factory=lambda: Giveaways([], [], {}))
    own_effects: dict[int, OwnEffect] = field(default_factory=dict)
    judged: dict[int, JudgedColumn] = field(default_factory=dict)
    rejected: dict[int, int] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    rounds: list[ScreenRound] = field(default_factory=list)
    is_complete: bool = True
    lone_environment: int | None = None


def run_screen(
    outcome: Outcome,
    table: ScreenedTable,
    *,
    fold_numbers: IntArray,
    tolerance: float,
    seed: int,
    n_jobs: int | None,
    announce: Callable[[FinishedScreen], None] = lambda _: None,
) -> FinishedScreen:
    """Screen the columns of a table; `announce` is told of the rounds that are done.

    Ctrl-C after the first round ends the screen with the rounds that are done.
    """
    lone = find_lone_environment(count_classes(outcome, table))
    if lone is not None:
        return FinishedScreen(n_columns=table.n_columns, lone_environment=lone)
    giveaways = find_giveaways(table)
    table = pool_lone_levels(table, giveaways.pooled_levels)
    null = fit_null_model(outcome, table)
    own_effects = measure_own_effects(outcome, table, null, giveaways, n_jobs=n_jobs)
    screen = FinishedScreen(
        n_columns=table.n_columns,
        giveaways=giveaways,
        own_effects=own_effects,
        rejected=dict.fromkeys(giveaways.determining, 0),
    )
    while True:
        columns = choose_columns(screen)
        if not len(columns):
            return screen
        run_next_round = partial(
            run_round,
            screen,
            outcome,
            table,
            columns,
            null=null,
            fold_numbers=fold_numbers,
            tolerance=tolerance,
            seed=seed,
            n_jobs=n_jobs,
        )
        if not screen.rounds:
            screen = run_next_round()
        else:
            try:
                with ending_early():
                    screen = run_next_round()
            except KeyboardInterrupt as stopped:
                if not is_ctrl_c(stopped):
                    raise
                return replace(screen, is_complete=False)
        announce(screen)
        if not screen.rounds[-1].rejected:
            return screen


def count_classes(outcome: Outcome, table: ScreenedTable) -> CountArray:
    """Count rows by (class, environment); of several classes the first against the others.

    A number has no classes: its rows are counted as if half of them were of each.
    """
    n_rows = np.bincount(table.places.numbers, minlength=table.places.count)
    if isinstance(outcome, Numbers):
        return np.stack((n_rows, n_rows))
    n_of_class = table.places.add_up(outcome.targets[:, 0]).astype(np.int64)
    return np.stack((n_rows - n_of_class, n_of_class))


def measure_own_effects(
    outcome: Outcome,
    table: ScreenedTable,
    null: NullModel,
    giveaways: Giveaways,
    *,
    n_jobs: int | None,
) -> dict[int, OwnEffect]:
    """Measure what columns say by themselves: of a wide table those that say most."""
    candidates = list(range(table.n_columns))
    if table.n_columns > MAX_MEASURED:
        candidates = find_strongest(outcome, table, null, n_columns=MAX_MEASURED)
    determining = set(giveaways.determining)
    measured = [column for column in candidates if column not in determining]
    effects = run_in_threads(
        lambda column: measure_own_effect(outcome, table, column, null), measured, n_jobs
    )
    return dict(zip(measured, effects, strict=True))


def choose_columns(screen: FinishedScreen) -> IntArray:
    """Choose the columns of the next round: those left that say most by themselves."""
    remaining = [column for column in screen.own_effects if column not in screen.rejected]
    largest = [
        max(effect.strength, effect.worth.excess)
        for effect in (screen.own_effects[column] for column in remaining)
    ]
    strongest = np.argsort(-np.array(largest), kind="stable")[:MAX_MODELLED]
    return np.sort(np.array(remaining, dtype=np.int64)[strongest])


# --- a round --------------------------------------------------------------------------------------


def run_round(
    screen: FinishedScreen,
    outcome: Outcome,
    table: ScreenedTable,
    columns: IntArray,
    *,
    null: NullModel,
    fold_numbers: IntArray,
    tolerance: float,
    seed: int,
    n_jobs: int | None,
) -> FinishedScreen:
    """Judge the columns that are left, and reject the worst of those that fail."""
    number = len(screen.rounds) + 1
    fitted = cross_fit(outcome, table, columns, fold_numbers, n_jobs=n_jobs)
    model = measure_model(outcome, table, fitted, null)
    standard = Standard(
        tolerance=tolerance,
        n_columns=len(columns),
        n_environments=table.places.count,
        has_several_classes=outcome.n_outputs > 1,
    )
    judged = judge_columns(
        screen, outcome, table, fitted, model=model, standard=standard, number=number, n_jobs=n_jobs
    )

    failed = {
        column: result.evidence.excess
        for column, result in judged.items()
        if result.reason is not None
    }
    rejected: list[int] = []
    if failed:
        rejected = [max(failed, key=failed.__getitem__)]
    elif table.places.count >= MIN_ENVIRONMENTS:
        rejected = find_failing_group(
            judged, outcome, table, fitted, null=null, model=model, standard=standard, seed=seed
        )
    groups = dict.fromkeys(rejected, rejected) if len(rejected) > 1 else {}
    screen_round = ScreenRound(
        number=number,
        n_columns=len(columns),
        explained=model.explained,
        scores=fitted.scores,
        rejected=tuple(rejected),
    )
    return replace(
        screen,
        judged=screen.judged | judged,
        rejected=screen.rejected | dict.fromkeys(rejected, number),
        groups=screen.groups | groups,
        rounds=[*screen.rounds, screen_round],
    )


@dataclass(frozen=True, eq=False)
class ModelFit:
    """How well a cross-fitted model describes the outcome: variances, and deviance explained."""

    variances: FloatArray
    explained: float
    scale: float


def measure_model(
    outcome: Outcome, table: ScreenedTable, fitted: CrossFit, null: NullModel
) -> ModelFit:
    """Measure the deviance that a model explains within environments.

    `scale` is what shares refer to: the explained deviance, but at least `MIN_EXPLAINED` of all.
    """
    places = table.places
    variances = outcome.measure_variances(fitted.scores, places)
    unexplained = compute_deviance(outcome, fitted.scores, variances=variances, places=places)
    null_deviance = compute_deviance(outcome, null.scores, variances=variances, places=places)
    explained = null_deviance - unexplained
    scale = max(explained, MIN_EXPLAINED * null_deviance)
    return ModelFit(variances=variances, explained=explained, scale=scale)


def judge_columns(
    screen: FinishedScreen,
    outcome: Outcome,
    table: ScreenedTable,
    fitted: CrossFit,
    *,
    model: ModelFit,
    standard: Standard,
    number: int,
    n_jobs: int | None,
) -> dict[int, JudgedColumn]:
    """Judge each column that the model uses."""
    contributions = fitted.compute_contributions(table, n_jobs=n_jobs)
    used = [
        position
        for position, contribution in enumerate(contributions)
        if np.ptp(contribution) > MIN_SPREAD
    ]
    if not used:
        return {}
    used_contributions = [contributions[position] for position in used]

    def fit(position: int) -> Worth:
        return fit_worth(
            outcome, table, fitted.scores, contributions[position], variances=model.variances
        )

    separate = run_in_threads(fit, used, n_jobs)
    joint = fit_joint_worth(
        outcome, table, fitted.scores, used_contributions, variances=model.variances
    )

    judged: dict[int, JudgedColumn] = {}
    for position, worth, joint_worth in zip(used, separate, joint, strict=True):
        column = int(fitted.columns[position])
        pooled = pool_worth(worth)
        evidence = Evidence(
            separate=pooled,
            joint=None if joint_worth is None else pool_worth(joint_worth),
            own=screen.own_effects[column],
            share=pooled.excess / model.scale,
            stake=float(worth.information.sum()) / model.scale,
        )
        judged[column] = JudgedColumn(
            evidence=evidence,
            worth=worth,
            contrast=find_contrast(table, column, contributions[position]),
            round=number,
            is_undecided=is_undecided(evidence, standard),
            reason=find_reason(evidence, standard),
        )
    return judged


def find_failing_group(
    judged: dict[int, JudgedColumn],
    outcome: Outcome,
    table: ScreenedTable,
    fitted: CrossFit,
    *,
    null: NullModel,
    model: ModelFit,
    standard: Standard,
    seed: int,
) -> list[int]:
    """Find the group of doubtful columns whose common worth differs most, if any fails."""
    bound = standard.needed - REVERSED_BELOW
    doubtful = [
        column
        for column, result in judged.items()
        if standard.is_own_below(result.evidence.own, bound)
    ]
    effects = {column: compute_own_effects(outcome, table, column, null) for column in doubtful}
    failing: dict[tuple[int, ...], float] = {}
    for group in find_groups(effects, table.places):
        positions = np.searchsorted(fitted.columns, group).tolist()
        contribution = fitted.compute_joint_contribution(
            table, positions, n_draws=N_GROUP_DRAWS, seed=seed
        )
        worth = fit_worth(outcome, table, fitted.scores, contribution, variances=model.variances)
        pooled = pool_worth(worth)
        if (
            pooled.p_value < CHANCE_LEVEL / standard.n_columns
            and pooled.low_share < standard.needed
        ):
            failing[tuple(group)] = pooled.excess
    if not failing:
        return []
    worst = max(failing, key=failing.__getitem__)
    return list(worst)


def deal_rows(
    table: ScreenedTable,
    *,
    classes: IntArray | None,
    groups: IntArray | None,
    n_folds: int,
    seed: int,
) -> IntArray:
    """Deal the rows to folds at random, groups as a whole; return the fold of each row.

    Rows of each class and environment are dealt in turn, so that folds are alike.
    """
    rng = np.random.default_rng(seed)
    if groups is not None:
        n_groups = int(np.max(groups)) + 1
        fold_of_group = np.empty(n_groups, dtype=np.int64)
        fold_of_group[rng.permutation(n_groups)] = np.arange(n_groups) % n_folds
        return np.asarray(fold_of_group[groups])

    # by appearance, since environments are numbered by their names
    strata = number_by_appearance(table.places.numbers)
    if classes is not None:
        strata = strata * (int(classes.max()) + 1) + classes
    order = np.lexsort((rng.random(table.n_rows), strata))
    fold_numbers = np.empty(table.n_rows, dtype=np.int64)
    fold_numbers[order] = np.arange(table.n_rows) % n_folds
    return fold_numbers
