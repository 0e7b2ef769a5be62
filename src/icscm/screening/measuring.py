"""What the screen measures before the first round and in each, whatever the tolerance.

A round cross-fits a model on the columns that are left and measures what each of them is worth.
Only what follows, which column fails, depends on the tolerance (`icscm.screening.rounds`). So
screens of the same rows at several tolerances measure the same wherever the same columns are left,
the first round at least. `MeasuredRounds` remembers that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from icscm._types import FloatArray, IntArray
from icscm.screening.contrasts import Contrast, find_contrast
from icscm.screening.cross_fitting import CrossFit, cross_fit, run_in_threads
from icscm.screening.evidence import Evidence
from icscm.screening.giveaways import Giveaways
from icscm.screening.outcomes import Outcome, compute_deviance
from icscm.screening.own_effects import NullModel, OwnEffect
from icscm.screening.screened_table import ScreenedTable
from icscm.screening.worth import fit_joint_worth, fit_worth
from icscm.stats.worth import PooledWorth, Worth, pool_worth

# The model explains at least this part of the null deviance, where a share of it is asked for.
MIN_EXPLAINED: Final = 0.02
N_GROUP_DRAWS: Final = 2
# A contribution that varies less is none.
MIN_SPREAD: Final = 1e-9
# What is remembered of rounds at most: some ten rounds of the largest table that is screened.
MAX_REMEMBERED_BYTES: Final = 2**28


# --- before the first round -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScreenedRows:
    """The rows of a screen: outcomes, columns, the fold of each row, and a seed for what is drawn.

    Screens of equal rows measure the same.
    """

    outcome: Outcome
    table: ScreenedTable
    fold_numbers: IntArray
    seed: int

    def compute_digest(self) -> bytes:
        """Compute a digest of all that a measurement depends on."""
        table = self.table
        parts: list[Any] = [
            type(self.outcome).__name__,
            *vars(self.outcome).values(),
            *vars(table.columns).values(),
            *vars(table.places).values(),
            *(vars(table.clusters).values() if table.clusters is not None else ()),
            table.has_missing,
            table.is_weighted,
            self.fold_numbers,
            self.seed,
        ]
        digest = blake2b(digest_size=16)
        for part in parts:
            if isinstance(part, np.ndarray):
                digest.update(f"array {part.shape} {part.dtype}".encode())
                digest.update(np.ascontiguousarray(part).data)
            else:
                digest.update(repr(part).encode())
        return digest.digest()


@dataclass(frozen=True, eq=False)
class Start:
    """What is measured before the first round.

    Attributes
    ----------
    rows : ScreenedRows
        The rows, with levels pooled that give an environment away.
    giveaways : Giveaways
        What gives the environment away.
    null : NullModel
        The model that knows the environment of a row and nothing else.
    own_effects : dict of OwnEffect
        What columns say by themselves; of a wide table those that say most.
    """

    rows: ScreenedRows
    giveaways: Giveaways
    null: NullModel
    own_effects: dict[int, OwnEffect]


# --- a round --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelFit:
    """How well a cross-fitted model describes the outcome: variances, and deviance explained."""

    variances: FloatArray
    explained: float
    scale: float


@dataclass(frozen=True, eq=False)
class MeasuredColumn:
    """What a round measures of a column that the model uses."""

    evidence: Evidence
    worth: Worth
    contrast: Contrast


@dataclass(frozen=True, eq=False)
class MeasuredRound:
    """A cross-fitted model of the columns left, and what it measures of those that it uses.

    The worth of groups of columns is measured when it is asked for, and kept in `group_worths`.
    """

    start: Start
    fitted: CrossFit
    model: ModelFit
    columns: dict[int, MeasuredColumn]
    group_worths: dict[tuple[int, ...], PooledWorth] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """The size of its largest arrays: bins and scores of all rows."""
        arranged = sum(fold.arranged.nbytes + fold.scores.nbytes for fold in self.fitted.folds)
        return arranged + self.fitted.scores.nbytes

    def measure_group(self, group: tuple[int, ...]) -> PooledWorth:
        """Measure the common worth of several columns, as if they were one."""
        if group not in self.group_worths:
            rows = self.start.rows
            positions = np.searchsorted(self.fitted.columns, group).tolist()
            contribution = self.fitted.compute_joint_contribution(
                rows.table, positions, n_draws=N_GROUP_DRAWS, seed=rows.seed
            )
            worth = fit_worth(
                rows.outcome,
                rows.table,
                self.fitted.scores,
                contribution,
                variances=self.model.variances,
            )
            self.group_worths[group] = pool_worth(worth)
        return self.group_worths[group]


def measure_round(start: Start, columns: IntArray, *, n_jobs: int | None) -> MeasuredRound:
    """Fit a model on the columns that are left, and measure the worth of each that it uses."""
    rows = start.rows
    fitted = cross_fit(rows.outcome, rows.table, columns, rows.fold_numbers, n_jobs=n_jobs)
    model = measure_model(rows.outcome, rows.table, fitted, start.null)
    return MeasuredRound(
        start=start,
        fitted=fitted,
        model=model,
        columns=measure_columns(start, fitted, model, n_jobs=n_jobs),
    )


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


def measure_columns(
    start: Start, fitted: CrossFit, model: ModelFit, *, n_jobs: int | None
) -> dict[int, MeasuredColumn]:
    """Measure the worth of each column that the model uses, separately and jointly."""
    outcome = start.rows.outcome
    table = start.rows.table
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

    measured: dict[int, MeasuredColumn] = {}
    for position, worth, joint_worth in zip(used, separate, joint, strict=True):
        column = int(fitted.columns[position])
        pooled = pool_worth(worth)
        evidence = Evidence(
            separate=pooled,
            joint=None if joint_worth is None else pool_worth(joint_worth),
            own=start.own_effects[column],
            share=pooled.excess / model.scale,
            stake=float(worth.information.sum()) / model.scale,
        )
        measured[column] = MeasuredColumn(
            evidence=evidence,
            worth=worth,
            contrast=find_contrast(table, column, contributions[position]),
        )
    return measured


# --- the same at another tolerance ----------------------------------------------------------------


class MeasuredRounds:
    """A memory of rounds, by the columns that were left: they are the same at every tolerance.

    It serves screens of the same rows in the same folds, and forgets all of it when other rows
    come. Rounds that no longer fit into it are measured each time. Those that were measured first
    stay, since most screens begin with them.

    Parameters
    ----------
    max_bytes : int
        The size of all rounds that are remembered, at most.
    """

    def __init__(self, max_bytes: int = MAX_REMEMBERED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._digest = b""
        self._start: Start | None = None
        self._rounds: dict[tuple[int, ...], MeasuredRound] = {}

    @property
    def n_bytes(self) -> int:
        """The size of the rounds that are remembered."""
        return sum(measured.n_bytes for measured in self._rounds.values())

    def recall_start(self, rows: ScreenedRows, measure: Callable[[], Start]) -> Start:
        """Return what was measured before the first round of these rows, or measure it."""
        digest = rows.compute_digest()
        if self._start is None or digest != self._digest:
            self._rounds = {}
            self._start = measure()
            self._digest = digest
        return self._start

    def recall_round(
        self, columns: IntArray, measure: Callable[[], MeasuredRound]
    ) -> MeasuredRound:
        """Return the round in which these columns were left, or measure it."""
        key = tuple(columns.tolist())
        if key in self._rounds:
            return self._rounds[key]
        measured = measure()
        if self.n_bytes + measured.n_bytes <= self._max_bytes:
            self._rounds[key] = measured
        return measured
