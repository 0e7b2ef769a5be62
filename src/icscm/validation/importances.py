"""Permutation importance within environments: how much worse a model predicts without a column.

The values of the column are permuted among the rows of each environment, so they tell nothing about
the outcome there, but are as frequent as before:

    environment        a   a   a   b   b
    column             1   2   3   8   9
    permuted           3   1   2   9   8

So differences between the environments, which a classifier may have learned from the column, do not
count. `sklearn.inspection.permutation_importance` permutes across environments and scores all rows
at once; applied to each environment's rows it gives no loss over all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from icscm._changes import data_by_name
from icscm._lazy import is_sparse, sparse
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.report.importances import METRICS, PermutationImportance
from icscm.stats.ranking import compute_auc
from icscm.tables.columns import StoredTable, find_names, is_frame, open_frame
from icscm.tables.environments import ALL_SAMPLES, shuffle_within
from icscm.validation.cohort import Cohort, make_cohort
from icscm.validation.fitting import predict_probability


@data_by_name
def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    n_repeats: int = 5,
    max_rows: int | None = None,
    random_state: Any = 0,
) -> PermutationImportance:
    """How much worse a classifier predicts where a column is permuted within environments.

    On rows that it was not fitted on this measures what the classifier needs the column for; on
    its training rows also what it has memorized. Of two columns that carry the same information
    each may seem unimportant. Results depend on positions of rows and columns, not on names.

    Parameters
    ----------
    model : classifier
        Any fitted one with `predict_proba`.
    X, y, environments : as for `fit`
        Rows, labels and environments; without environments, all rows are permuted together.
    n_repeats : int, default=5
        Permutations of each column.
    max_rows : int, optional
        Draw at most this many rows.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the permutations. By default a study has the same each time, so that
        columns and models are compared on the same permutations; None draws others.

    Returns
    -------
    PermutationImportance
        Loss of AUC and of log loss for each column, pooled and by environment.

    Raises
    ------
    IcscmError
        If the model gives no probabilities, or the labels are not its two classes.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.validation.importances import permutation_importance
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> importances = permutation_importance(
    ...     learner, data.X, data.y, environments=data.environments
    ... )
    >>> importances.to_frame()[["feature", "auc"]].round(2).head(3)
      feature   auc
    0      A2  0.50
    1      A1  0.22
    2      B1  0.00
    """
    check_value("n_repeats", n_repeats, allow("int [1, 100000]"))
    if isinstance(X, StoredTable):  # its columns cannot be permuted
        raise X.make_error()
    seed = _draw_seed(random_state)
    cohort = make_cohort(X, y, environments=environments, may_lack=True)
    if max_rows is not None and max_rows < len(cohort):
        shuffled = np.random.default_rng(seed).permutation(len(cohort))
        cohort = cohort.take(np.sort(shuffled[:max_rows]))
    _check_model(model, cohort.classes)

    names: tuple[str | int, ...] = find_names(cohort.X) or tuple(range(cohort.X.shape[1]))
    used_names = model.features_used_ if isinstance(model, BaseRuleClassifier) else names
    is_used = [name in used_names for name in names]
    increases = _measure_increases(model, cohort, is_used, n_repeats=n_repeats, seed=seed)
    return PermutationImportance(
        features=names,
        environments=cohort.environment_labels or (ALL_SAMPLES,),
        pooled=increases[..., 0],
        by_environment=increases[..., 1:],
        n_rows=len(cohort),
    )


def _draw_seed(random_state: Any) -> int:
    """Return the number that seeds the permutations: a number itself, else one that is drawn."""
    rng = make_generator(random_state)  # which raises for what is no random state
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(rng.integers(2**31 - 1))


def _check_model(model: Any, classes: Array) -> None:
    """Raise unless the model gives probabilities of these two classes."""
    is_fitted = hasattr(model, "predict_proba") and hasattr(model, "classes_")
    if not is_fitted or set(classes.tolist()) != set(np.asarray(model.classes_).tolist()):
        raise IcscmError("permutation_importance needs a fitted classifier of these two classes")


def _measure_increases(
    model: Any, cohort: Cohort, is_used: Sequence[bool], *, n_repeats: int, seed: int
) -> FloatArray:
    """Return by how much losses increase, by (metric, column, repetition, part); see `_list_parts`.

    Columns that the model does not use are not permuted, since that would change nothing.
    """
    parts = _list_parts(cohort)
    positive_class = cohort.classes[1]
    observed_losses = _compute_losses(model, cohort.X, parts, positive_class=positive_class)

    # a loss that is undefined in a part has no increase there, whatever the column
    no_increase = np.where(np.isnan(observed_losses), np.nan, 0.0)
    increases = np.empty((len(METRICS), len(is_used), n_repeats, len(parts)))
    increases[:] = no_increase[:, np.newaxis, np.newaxis, :]

    used_columns = np.flatnonzero(is_used).tolist()
    for column in track(used_columns, len(used_columns)):
        for repeat in range(n_repeats):
            # seeded by the column, so that its permutations are the same whatever else is used
            rng = np.random.default_rng([seed, column, repeat])
            order = shuffle_within(cohort.environment_codes, rng)
            permuted = _permute_column(cohort.X, column, order)
            losses = _compute_losses(model, permuted, parts, positive_class=positive_class)
            increases[:, column, repeat] = losses - observed_losses
    return increases


def _permute_column(table: Any, position: int, order: Array) -> Any:
    """Return the table with the rows of one column in another order."""
    if is_frame(table):
        frame = open_frame(table)
        permuted_column = frame[:, position][order.tolist()]
        return frame.with_columns(permuted_column).to_native()

    if is_sparse(table):
        columns_before = table[:, :position]
        permuted_column = table[order][:, [position]]
        columns_after = table[:, position + 1 :]
        return sparse.hstack([columns_before, permuted_column, columns_after], format="csr")

    permuted = table.copy()
    permuted[:, position] = table[order, position]
    return permuted


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows whose losses are computed together, and whether each of them is positive."""

    rows: IntArray
    is_positive: BoolArray


def _list_parts(cohort: Cohort) -> list[_Part]:
    """List the parts of a cohort: all rows, then the rows of each environment."""
    n_environments = len(cohort.environment_labels) or 1
    every_row = np.arange(len(cohort))
    rows_of_environments = [
        np.flatnonzero(cohort.environment_codes == code) for code in range(n_environments)
    ]
    is_positive = cohort.is_positive
    return [
        _Part(rows=rows, is_positive=is_positive[rows])
        for rows in (every_row, *rows_of_environments)
    ]


def _compute_losses(
    model: Any, table: Any, parts: Sequence[_Part], *, positive_class: Any
) -> FloatArray:
    """Predict a table, and return the losses by (metric, part): minus the AUC, and the log loss.

    The AUC is NaN in a part without one of the classes.
    """
    probability = predict_probability(model, table, positive_class=positive_class)
    assert probability is not None  # the model was checked

    losses = np.empty((len(METRICS), len(parts)))
    for number, part in enumerate(parts):
        probability_in_part = probability[part.rows]
        auc = compute_auc(part.is_positive, probability_in_part)
        losses[0, number] = np.nan if auc is None else -auc
        losses[1, number] = _compute_log_loss(part.is_positive, probability_in_part)
    return losses


def _compute_log_loss(is_positive: BoolArray, probability: FloatArray) -> float:
    """Return the mean of -log P(outcome), finite also for an outcome of probability 0."""
    probability_of_outcome = np.where(is_positive, probability, 1 - probability)
    smallest = np.finfo(np.float64).eps
    return float(-np.log(np.clip(probability_of_outcome, smallest, 1)).mean())
