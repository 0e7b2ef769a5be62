"""Permutation importance within environments: the loss where a column's values are permuted.

Values are permuted among the rows of each environment, so that differences between the
environments, which a classifier may have learned from the column, do not count.
`sklearn.inspection.permutation_importance` permutes across environments and scores all rows at
once; applied to each environment's rows it gives no loss over all of them.
"""

from numbers import Integral
from typing import Any

import numpy as np

from icscm._changes import data_by_name
from icscm._lazy import is_sparse, sparse
from icscm._types import Array, BoolArray, FloatArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.report.importances import METRICS, PermutationImportance
from icscm.stats.ranking import compute_auc
from icscm.tables.columns import count_rows, find_names, is_frame, open_frame, take_rows
from icscm.tables.environments import number_environments, shuffle_within, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.parsing import read_table
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
    seed = _draw_seed(random_state)
    X, environments = take_environments(X, environments)
    X = X if is_frame(X) or isinstance(X, np.ndarray) else read_table(X).rows
    n_rows = count_rows(X)
    outcome_codes, classes = check_labels(y, n_rows)
    environment_codes, environment_labels = number_environments(environments, n_rows)
    if max_rows is not None and max_rows < n_rows:
        drawn = np.sort(np.random.default_rng(seed).permutation(n_rows)[:max_rows])
        X = take_rows(X, drawn)
        outcome_codes = outcome_codes[drawn]
        environment_codes = environment_codes[drawn]
    _check_model(model, classes)
    is_positive = outcome_codes == 1
    parts = [np.ones(len(is_positive), dtype=np.bool_)]
    parts += [environment_codes == code for code in range(len(environment_labels))]

    def measure(rows: Any) -> FloatArray:
        """Return the losses in all rows and in each environment: (metric, part)."""
        p = predict_probability(model, rows, positive_class=classes[1])
        assert p is not None  # the model was checked
        return np.array([_compute_losses(is_positive[part], p[part]) for part in parts]).T

    names: tuple[str | int, ...] = find_names(X) or (*range(X.shape[1]),)
    used_names = model.features_used_ if isinstance(model, BaseRuleClassifier) else names
    positions = [position for position, name in enumerate(names) if name in used_names]
    observed = measure(X)
    # columns that the model does not use lose nothing; NaN where a loss is undefined
    losses = np.zeros((len(METRICS), len(names), n_repeats, len(parts)))
    losses += 0 * observed[:, np.newaxis, np.newaxis]
    for position in track(positions, len(positions)):
        for repeat in range(n_repeats):
            rng = np.random.default_rng([seed, position, repeat])
            order = shuffle_within(environment_codes, rng)
            losses[:, position, repeat] = measure(_permute(X, position, order)) - observed
    return PermutationImportance(
        features=names,
        environments=tuple(environment_labels),
        pooled=losses[..., 0],
        by_environment=losses[..., 1:],
        n_rows=len(is_positive),
    )


def _draw_seed(random_state: Any) -> int:
    """Return a seed for the generators of each column and repetition; a number is its own."""
    drawn = int(make_generator(random_state).integers(2**31 - 1))
    return int(random_state) if isinstance(random_state, Integral) else drawn


def _check_model(model: Any, classes: Array) -> None:
    """Raise unless the model gives probabilities of these two classes."""
    is_fitted = hasattr(model, "predict_proba") and hasattr(model, "classes_")
    if not is_fitted or {*classes.tolist()} != {*np.asarray(model.classes_).tolist()}:
        raise IcscmError("permutation_importance needs a fitted classifier of these two classes")


def _permute(X: Any, position: int, order: Array) -> Any:
    """Return the table with the rows of one column in another order."""
    if is_frame(X):
        frame = open_frame(X)
        return frame.with_columns(frame[:, position][order.tolist()]).to_native()
    if is_sparse(X):
        columns = X[:, :position], X[order][:, [position]], X[:, position + 1 :]
        return sparse.hstack(columns, format="csr")
    permuted = X.copy()
    permuted[:, position] = X[order, position]
    return permuted


def _compute_losses(is_positive: BoolArray, p: FloatArray) -> tuple[float, float]:
    """Return minus the AUC, NaN where a class is absent, and the log loss."""
    auc = compute_auc(is_positive, p)
    probability_of_outcome = np.where(is_positive, p, 1 - p)
    log_loss = -np.log(np.clip(probability_of_outcome, np.finfo(np.float64).eps, 1)).mean()
    return np.nan if auc is None else -auc, float(log_loss)
