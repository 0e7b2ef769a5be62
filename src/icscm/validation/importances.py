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
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.report.importances import PermutationImportance
from icscm.stats.ranking import compute_auc
from icscm.tables.columns import count_rows, find_names, is_frame, open_frame, take_rows
from icscm.tables.labels import check_labels, number_environments, shuffle_within, take_environments
from icscm.tables.parsing import read_table


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
        Random seed.

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
    >>> found = permutation_importance(learner, data.X, data.y, environments=data.environments)
    >>> found.to_frame()[["feature", "auc"]].round(2).head(3)
      feature   auc
    0      A2  0.50
    1      A1  0.22
    2      B1  0.00
    """
    check_value("n_repeats", n_repeats, allow("int [1, 100000]"))
    drawn_seed = int(make_generator(random_state).integers(2**31 - 1))
    seed = int(random_state) if isinstance(random_state, Integral) else drawn_seed
    X, environments = take_environments(X, environments)
    X = X if is_frame(X) or isinstance(X, np.ndarray) else read_table(X).rows
    n_rows = count_rows(X)
    codes, classes = check_labels(y, n_rows)
    numbers, places = number_environments(environments, n_rows)
    if max_rows is not None and max_rows < n_rows:
        drawn = np.sort(np.random.default_rng(seed).permutation(n_rows)[:max_rows])
        X, codes, numbers = take_rows(X, drawn), codes[drawn], numbers[drawn]
    known = getattr(model, "classes_", ())
    if not hasattr(model, "predict_proba") or {*classes.tolist()} != {*np.asarray(known).tolist()}:
        raise IcscmError("permutation_importance needs a fitted classifier of these two classes")
    is_second = np.asarray(known) == classes[1]
    parts = [np.ones(len(codes), dtype=np.bool_), *(numbers == k for k in range(len(places)))]

    def score(rows: Any) -> FloatArray:
        """Minus the AUC, and the log loss: (metric, all rows and each environment)."""
        p = np.asarray(model.predict_proba(rows))[:, is_second][:, 0]
        return np.array([_score(codes[part] == 1, p[part]) for part in parts]).T

    names: tuple[str | int, ...] = find_names(X) or (*range(X.shape[1]),)
    used = getattr(model, "features_used_", names)  # others cannot matter
    own = score(X)
    found = np.zeros((2, len(names), n_repeats, 1)) + 0 * own[:, np.newaxis, np.newaxis]  # or NaN
    places_used = [j for j, name in enumerate(names) if name in used]
    for j in track(places_used, len(places_used)):
        for repeat in range(n_repeats):
            order = shuffle_within(numbers, np.random.default_rng([seed, j, repeat]))
            found[:, j, repeat] = score(_permute(X, j, order)) - own
    return PermutationImportance(names, tuple(places), found[..., 0], found[..., 1:], len(codes))


def _permute(X: Any, column: int, order: Array) -> Any:
    """The table with the rows of one column in another order."""
    if is_frame(X):
        frame = open_frame(X)
        return frame.with_columns(frame[:, column][order.tolist()]).to_native()
    if is_sparse(X):
        parts = X[:, :column], X[order][:, [column]], X[:, column + 1 :]
        return sparse.hstack(parts, format="csr")
    changed = X.copy()
    changed[:, column] = X[order, column]
    return changed


def _score(is_positive: BoolArray, p: FloatArray) -> tuple[float, float]:
    """Minus the AUC, NaN where a class is absent, and the log loss."""
    auc = compute_auc(is_positive, p)
    right = np.clip(np.where(is_positive, p, 1 - p), np.finfo(np.float64).eps, 1)
    return np.nan if auc is None else -auc, float(-np.log(right).mean())
