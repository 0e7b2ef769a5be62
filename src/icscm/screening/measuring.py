"""What the screen measures before the first round and in each, whatever the tolerance.

A round cross-fits a model on the columns that are left and measures what each of them is worth: the
part of what the model says of a column that is true in an environment (`icscm.screening.worth`).
Only what follows, which column fails, depends on the tolerance (`icscm.screening.rounds`). So
screens of the same rows at several tolerances measure the same wherever the same columns are left,
the first round at least. `MeasuredRounds` remembers that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
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

# Shares refer to the deviance that the model explains, but at least to this part of the null
# deviance: of a model that explains next to nothing, every trifle would be a large share.
MIN_EXPLAINED: Final = 0.02
# How often the columns of a group are drawn from other rows, to measure what they contribute
# together: it is the mean of so many draws.
N_GROUP_DRAWS: Final = 2
# A column whose contribution to the score has a smaller range is not used by the model.
MIN_SPREAD: Final = 1e-9
# The size of all rounds that are remembered, at most: some ten rounds of the largest table.
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
        """Compute a digest of all that a measurement depends on.

        The names of the columns are left out: they label what is measured, and change nothing.
        """
        without_names = replace(self, table=replace(self.table, names=()))
        digest = blake2b(digest_size=16)
        add_to_digest(digest, without_names)
        return digest.digest()


def add_to_digest(digest: blake2b, value: Any) -> None:
    """Add a value to a digest: a number, a text, None, an array, or a record or tuple of these.

    Records are dataclasses, and each of their fields counts. Any other type is an error, since what
    `repr` abridges would make different rows look equal.
    """
    if is_dataclass(value) and not isinstance(value, type):
        digest.update(f"record {type(value).__name__} ".encode())
        for record_field in fields(value):
            digest.update(f"field {record_field.name} ".encode())
            add_to_digest(digest, getattr(value, record_field.name))
    elif isinstance(value, tuple):
        digest.update(f"tuple {len(value)} ".encode())
        for item in value:
            add_to_digest(digest, item)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"array {value.shape} {value.dtype} ".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif value is None or isinstance(value, str | bool | int | float | np.number | np.bool_):
        digest.update(f"{value!r} ".encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no digest")


@dataclass(frozen=True, eq=False)
class Baseline:
    """What is measured before the first round, and what each round builds on.

    Attributes
    ----------
    rows : ScreenedRows
        The rows, with levels pooled that give an environment away.
    giveaways : Giveaways
        What gives the environment away.
    null_model : NullModel
        The model that knows the environment of a row and nothing else.
    own_effects : dict of OwnEffect
        What columns say by themselves; of a wide table those that say most.
    """

    rows: ScreenedRows
    giveaways: Giveaways
    null_model: NullModel
    own_effects: dict[int, OwnEffect]


# --- a round --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelFit:
    """How well a cross-fitted model describes the outcome.

    Attributes
    ----------
    variances : array of shape (n_environments,)
        The variance of the residuals in each environment; 1 for classes.
    explained : float
        The deviance that the model explains beyond the null model.
    reference_deviance : float
        What shares of deviance refer to: the explained deviance, but at least the part
        `MIN_EXPLAINED` of the null deviance.
    """

    variances: FloatArray
    explained: float
    reference_deviance: float


@dataclass(frozen=True, eq=False)
class MeasuredColumn:
    """What a round measures of a column that the model uses."""

    evidence: Evidence
    worth: Worth
    contrast: Contrast


@dataclass(eq=False)
class MeasuredRound:
    """A cross-fitted model of the columns left, and what it measures of those that it uses.

    The worth of groups of columns is measured only when it is asked for. It is remembered here, so
    that screens at other tolerances, which share the round, do not measure it again.

    Attributes
    ----------
    baseline : Baseline
        What was measured before the first round.
    fitted : CrossFit
        The cross-fitted model.
    model : ModelFit
        How well it describes the outcome.
    columns : dict of MeasuredColumn
        The columns that it uses, by their number in the table.
    group_worths : dict of PooledWorth
        The groups that were measured so far; `recall_group` adds to it.
    """

    baseline: Baseline
    fitted: CrossFit
    model: ModelFit
    columns: dict[int, MeasuredColumn]
    group_worths: dict[tuple[int, ...], PooledWorth] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """The size of its largest arrays: bins and scores of all rows."""
        arranged = sum(fold.arranged.nbytes + fold.scores.nbytes for fold in self.fitted.folds)
        return arranged + self.fitted.scores.nbytes

    def recall_group(self, group: tuple[int, ...]) -> PooledWorth:
        """Return the common worth of several columns, or measure and remember it."""
        if group not in self.group_worths:
            self.group_worths[group] = self.measure_group(group)
        return self.group_worths[group]

    def measure_group(self, group: tuple[int, ...]) -> PooledWorth:
        """Measure the common worth of several columns, as if they were one."""
        rows = self.baseline.rows
        columns = self.fitted.columns.tolist()
        contribution = self.fitted.compute_joint_contribution(
            rows.table,
            [columns.index(column) for column in group],
            n_draws=N_GROUP_DRAWS,
            seed=rows.seed,
        )
        worth = fit_worth(
            rows.outcome,
            rows.table,
            self.fitted.scores,
            contribution,
            variances=self.model.variances,
        )
        return pool_worth(worth)


def measure_round(baseline: Baseline, columns: IntArray, *, n_jobs: int | None) -> MeasuredRound:
    """Fit a model on the columns that are left, and measure the worth of each that it uses."""
    rows = baseline.rows
    fitted = cross_fit(rows.outcome, rows.table, columns, rows.fold_numbers, n_jobs=n_jobs)
    model = measure_model(rows.outcome, rows.table, fitted, baseline.null_model)
    return MeasuredRound(
        baseline=baseline,
        fitted=fitted,
        model=model,
        columns=measure_columns(baseline, fitted, model, n_jobs=n_jobs),
    )


def measure_model(
    outcome: Outcome, table: ScreenedTable, fitted: CrossFit, null_model: NullModel
) -> ModelFit:
    """Measure the deviance that a model explains within environments.

    The null model knows the environment of a row, so differences in level explain nothing.
    """
    places = table.places
    variances = outcome.measure_variances(fitted.scores, places)
    unexplained = compute_deviance(outcome, fitted.scores, variances=variances, places=places)
    null_deviance = compute_deviance(outcome, null_model.scores, variances=variances, places=places)
    explained = null_deviance - unexplained
    return ModelFit(
        variances=variances,
        explained=explained,
        reference_deviance=max(explained, MIN_EXPLAINED * null_deviance),
    )


def measure_columns(
    baseline: Baseline, fitted: CrossFit, model: ModelFit, *, n_jobs: int | None
) -> dict[int, MeasuredColumn]:
    """Measure the worth of each column that the model uses, separately and jointly."""
    outcome = baseline.rows.outcome
    table = baseline.rows.table
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
            own=baseline.own_effects[column],
            share=pooled.excess / model.reference_deviance,
            stake=float(worth.information.sum()) / model.reference_deviance,
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
        self._baseline: Baseline | None = None
        self._rounds: dict[tuple[int, ...], MeasuredRound] = {}

    @property
    def n_bytes(self) -> int:
        """The size of the rounds that are remembered."""
        return sum(measured.n_bytes for measured in self._rounds.values())

    def recall_baseline(self, rows: ScreenedRows, measure: Callable[[], Baseline]) -> Baseline:
        """Return what was measured before the first round of these rows, or measure it."""
        digest = rows.compute_digest()
        if self._baseline is None or digest != self._digest:
            self._rounds = {}
            self._baseline = measure()
            self._digest = digest
        return self._baseline

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
