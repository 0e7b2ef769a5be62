"""The rounds of a screen: judge all columns, reject the worst, and again without it.

A *shortcut* is a column whose effect on the outcome differs between environments. The *worth* of a
column in an environment is the part of what a model says of the column that is true there: 1 if all
of it is, 0 if nothing, and below 0 if the effect is reversed (`icscm.screening.worth`).

In each round a model is cross-fitted on the columns that are left, and what each column that it
uses is worth is measured (`icscm.screening.measuring`). Each is judged
(`icscm.screening.evidence`), and of those that fail the one whose worth differs most is rejected.
Only one at a time: while a shortcut is in the model, the worth of all other columns is measured
beside it. If none fails, groups of columns are judged (`icscm.screening.copies`). In the end,
columns that were rejected early are allowed again if they do not fail without those that were
rejected later (`allow_again`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._types import CountArray, FloatArray, IntArray
from icscm.interruptions import ending_early, is_ctrl_c
from icscm.screening.content import number_by_appearance
from icscm.screening.contrasts import Contrast
from icscm.screening.copies import MIN_ENVIRONMENTS, find_groups
from icscm.screening.cross_fitting import run_in_threads
from icscm.screening.evidence import (
    REVERSED_BELOW,
    Evidence,
    Reason,
    Standard,
    find_reason,
    is_undecided,
)
from icscm.screening.giveaways import Giveaways, find_giveaways, pool_lone_levels
from icscm.screening.measuring import (
    Baseline,
    MeasuredRound,
    MeasuredRounds,
    ScreenedRows,
    measure_round,
)
from icscm.screening.outcomes import Numbers, Outcome
from icscm.screening.own_effects import (
    NullModel,
    OwnEffect,
    compute_own_effects,
    find_strongest,
    fit_null_model,
    measure_own_effect,
)
from icscm.screening.screened_table import ScreenedTable
from icscm.stats.replication import find_lone_environment
from icscm.stats.worth import Worth

# Columns whose own effects are measured, and columns that a model is fitted on: of a wide table
# those that say most by themselves.
MAX_MEASURED: Final = 1_000
MAX_MODELLED: Final = 100
# More rows would not change a verdict.
MAX_ROWS: Final = 200_000


@dataclass(frozen=True, eq=False)
class JudgedColumn:
    """A column in the last round that judged it.

    `worth` is by environment, and `contrast` is about a rule such as `age > 63`. In environment e

        effect of the rule = worth.values[e] * contrast.difference

    is the difference in score between rows where the rule is true and rows where it is false, all
    other columns held fixed.
    """

    evidence: Evidence
    worth: Worth
    contrast: Contrast
    round: int
    is_undecided: bool
    reason: Reason | None


@dataclass(frozen=True)
class ScreenRound:
    """One round: the model of the columns that were left, and the columns that were rejected.

    `allowed` are columns that an earlier round rejected, and that do not fail any more.
    """

    number: int
    n_columns: int
    explained: float
    scores: FloatArray = field(repr=False, compare=False)
    rejected: tuple[int, ...] = ()
    allowed: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class ScreenState:
    """All that a screen has found so far, by the number of the column.

    Each round makes a new state from the one before; the state after the last is the result.

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
        False if Ctrl-C ended the screen before its end, which comes when a round rejects nothing or
        no column is left. A state before the end says True.
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
    announce: Callable[[ScreenState], None] = lambda _: None,
    memory: MeasuredRounds | None = None,
) -> ScreenState:
    """Screen the columns of a table; `announce` is told of the rounds that are done.

    Screens of the same rows at other tolerances may share a `memory` of the rounds that they have
    measured. Ctrl-C after the first round ends the screen with the rounds that are done.
    """
    lone = find_lone_environment(count_classes(outcome, table))
    if lone is not None:
        return ScreenState(n_columns=table.n_columns, lone_environment=lone)
    rows = ScreenedRows(outcome, table, fold_numbers, seed=seed)
    baseline = recall_baseline(memory, rows, n_jobs=n_jobs)
    state = ScreenState(
        n_columns=table.n_columns,
        giveaways=baseline.giveaways,
        own_effects=baseline.own_effects,
        rejected=dict.fromkeys(baseline.giveaways.determining, 0),
    )
    judge = RoundJudge(baseline, tolerance=tolerance, n_jobs=n_jobs, memory=memory)
    states = iterate_rounds(state, judge)

    # The first round is outside of `try`: Ctrl-C must raise there, since there is nothing to show.
    first = next(states, None)
    if first is None:
        return state
    state = first
    announce(state)
    try:
        with ending_early():
            for state in states:
                announce(state)
            return allow_again(state, judge)
    except KeyboardInterrupt as stopped:
        if not is_ctrl_c(stopped):
            raise
        return replace(state, is_complete=False)


def iterate_rounds(start: ScreenState, judge: "RoundJudge") -> Iterator[ScreenState]:
    """Run rounds until one rejects nothing or no column is left; yield the state after each.

    It yields instead of returning the last, so that an interrupted screen has the rounds so far.
    """
    state = start
    while True:
        columns = choose_columns(state)
        if not len(columns):
            return
        state = run_round(state, columns, judge)
        yield state
        if not state.rounds[-1].rejected:
            return


def recall_baseline(
    memory: MeasuredRounds | None, rows: ScreenedRows, *, n_jobs: int | None
) -> Baseline:
    """Return what is measured before the first round, from the memory if it is there."""
    measure = partial(measure_baseline, rows, n_jobs=n_jobs)
    return measure() if memory is None else memory.recall_baseline(rows, measure)


def measure_baseline(rows: ScreenedRows, *, n_jobs: int | None) -> Baseline:
    """Find what gives the environment away, and measure what columns say by themselves."""
    giveaways = find_giveaways(rows.table)
    table = pool_lone_levels(rows.table, giveaways.pooled_levels)
    null_model = fit_null_model(rows.outcome, table)
    own_effects = measure_own_effects(rows.outcome, table, null_model, giveaways, n_jobs=n_jobs)
    return Baseline(
        rows=replace(rows, table=table),
        giveaways=giveaways,
        null_model=null_model,
        own_effects=own_effects,
    )


def count_classes(outcome: Outcome, table: ScreenedTable) -> CountArray:
    """Count rows by (class, environment), with two classes: 0 for "no" and 1 for "yes".

    Of several classes "yes" is the first of them, and "no" all others. A number has no classes: as
    if half of its rows were of each, all rows are counted for both. That is twice as many as there
    are, but only proportions matter to `find_lone_environment`.
    """
    n_rows = np.bincount(table.places.numbers, minlength=table.places.count)
    if isinstance(outcome, Numbers):
        return np.stack((n_rows, n_rows))
    n_of_class = table.places.add_up(outcome.targets[:, 0]).astype(np.int64)
    return np.stack((n_rows - n_of_class, n_of_class))


def measure_own_effects(
    outcome: Outcome,
    table: ScreenedTable,
    null_model: NullModel,
    giveaways: Giveaways,
    *,
    n_jobs: int | None,
) -> dict[int, OwnEffect]:
    """Measure what columns say by themselves: of a wide table those that say most."""
    candidates = list(range(table.n_columns))
    if table.n_columns > MAX_MEASURED:
        candidates = find_strongest(outcome, table, null_model, n_columns=MAX_MEASURED)
    determining = set(giveaways.determining)
    measured = [column for column in candidates if column not in determining]
    effects = run_in_threads(
        lambda column: measure_own_effect(outcome, table, column, null_model), measured, n_jobs
    )
    return dict(zip(measured, effects, strict=True))


def choose_columns(state: ScreenState) -> IntArray:
    """Choose the columns of the next round: those left that say most by themselves."""
    remaining = [column for column in state.own_effects if column not in state.rejected]
    largest = [
        max(effect.strength, effect.worth.excess)
        for effect in (state.own_effects[column] for column in remaining)
    ]
    strongest = np.argsort(-np.array(largest), kind="stable")[:MAX_MODELLED]
    return np.sort(np.array(remaining, dtype=np.int64)[strongest])


# --- a round --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JudgedRound:
    """What a model of some columns says of them.

    Attributes
    ----------
    columns : dict of JudgedColumn
        The columns that the model uses.
    worst : list of int
        What must be rejected: the column whose worth differs most of those that fail, or else a
        group of columns; empty if none fails.
    measured : MeasuredRound
        What they were judged by.
    """

    columns: dict[int, JudgedColumn]
    worst: list[int]
    measured: MeasuredRound


@dataclass(frozen=True, eq=False)
class RoundJudge:
    """Judges the columns that are left in a round, at one tolerance.

    Screens of the same rows at other tolerances may share the `memory` of measured rounds.
    """

    baseline: Baseline
    tolerance: float
    n_jobs: int | None
    memory: MeasuredRounds | None

    def judge(self, columns: IntArray, *, number: int) -> JudgedRound:
        """Measure a round in which these columns are left, and find what must be rejected."""
        measured = recall_round(self.memory, self.baseline, columns, n_jobs=self.n_jobs)
        rows = self.baseline.rows
        standard = Standard(
            tolerance=self.tolerance,
            n_columns=len(columns),
            n_environments=rows.table.places.count,
            has_several_classes=rows.outcome.n_outputs > 1,
        )
        judged = judge_columns(measured, standard, number=number)
        failed = {
            column: result.evidence.excess
            for column, result in judged.items()
            if result.reason is not None
        }
        worst: list[int] = []
        if failed:
            worst = [max(failed, key=failed.__getitem__)]
        elif standard.n_environments >= MIN_ENVIRONMENTS:
            worst = find_failing_group(measured, standard)
        return JudgedRound(columns=judged, worst=worst, measured=measured)


def run_round(state: ScreenState, columns: IntArray, judge: RoundJudge) -> ScreenState:
    """Judge the columns that are left, and reject the worst of those that fail."""
    number = len(state.rounds) + 1
    judged = judge.judge(columns, number=number)
    rejected = judged.worst
    groups = dict.fromkeys(rejected, rejected) if len(rejected) > 1 else {}
    screen_round = make_round(judged, number=number, rejected=tuple(rejected))
    return replace(
        state,
        judged=state.judged | judged.columns,
        rejected=state.rejected | dict.fromkeys(rejected, number),
        groups=state.groups | groups,
        rounds=[*state.rounds, screen_round],
    )


def allow_again(state: ScreenState, judge: RoundJudge) -> ScreenState:
    """Allow columns that were rejected early but do not fail without those rejected later.

    While a shortcut is in the model, the worth of a cause beside it may differ, too. Each column
    that was rejected by itself, but in the last round that rejected any, is put back to those that
    are left. If none fails then, it is allowed.
    """
    last_round = max(state.rejected.values(), default=0)
    early = [
        column
        for column, number in state.rejected.items()
        if 0 < number < last_round and column not in state.groups
    ]
    for column in early:
        rejected = {other: state.rejected[other] for other in state.rejected if other != column}
        without = replace(state, rejected=rejected)
        columns = choose_columns(without)
        if column not in columns:
            continue
        number = len(state.rounds) + 1
        judged = judge.judge(columns, number=number)
        if judged.worst:
            continue
        state = replace(
            without,
            judged=state.judged | judged.columns,
            rounds=[*state.rounds, make_round(judged, number=number, allowed=(column,))],
        )
    return state


def make_round(
    judged: JudgedRound,
    *,
    number: int,
    rejected: tuple[int, ...] = (),
    allowed: tuple[int, ...] = (),
) -> ScreenRound:
    """Make what a screen keeps of a round."""
    measured = judged.measured
    return ScreenRound(
        number=number,
        n_columns=len(measured.fitted.columns),
        explained=measured.model.explained,
        scores=measured.fitted.scores,
        rejected=rejected,
        allowed=allowed,
    )


def recall_round(
    memory: MeasuredRounds | None, baseline: Baseline, columns: IntArray, *, n_jobs: int | None
) -> MeasuredRound:
    """Return what is measured while these columns are left, from the memory if it is there."""
    measure = partial(measure_round, baseline, columns, n_jobs=n_jobs)
    return measure() if memory is None else memory.recall_round(columns, measure)


def judge_columns(
    measured: MeasuredRound, standard: Standard, *, number: int
) -> dict[int, JudgedColumn]:
    """Judge each column that the model uses."""
    return {
        column: JudgedColumn(
            evidence=measurement.evidence,
            worth=measurement.worth,
            contrast=measurement.contrast,
            round=number,
            is_undecided=is_undecided(measurement.evidence, standard),
            reason=find_reason(measurement.evidence, standard),
        )
        for column, measurement in measured.columns.items()
    }


def find_failing_group(measured: MeasuredRound, standard: Standard) -> list[int]:
    """Find the group of doubtful columns whose common worth differs most, if any fails."""
    baseline = measured.baseline
    rows = baseline.rows
    bound = standard.needed - REVERSED_BELOW
    doubtful = [
        column
        for column, measurement in measured.columns.items()
        if standard.is_own_below(measurement.evidence.own, bound)
    ]
    effects = {
        column: compute_own_effects(rows.outcome, rows.table, column, baseline.null_model)
        for column in doubtful
    }
    failing: dict[tuple[int, ...], float] = {}
    for group in map(tuple, find_groups(effects, rows.table.places)):
        pooled = measured.recall_group(group)
        if (
            pooled.p_value < CHANCE_LEVEL / standard.n_columns
            and pooled.low_share < standard.needed
        ):
            failing[group] = pooled.excess
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
