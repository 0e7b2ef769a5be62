"""The choice of a threshold on predictions of models that did not see the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from icscm.exceptions import IcscmError, IcscmWarning
from icscm.model.thresholds import find_threshold, read_threshold
from icscm.studies.folds import (
    check_classifier,
    find_least_environments,
    fit_and_score,
    make_cohort,
)
from icscm.studies.tuning import N_FOLDS, assign_folds


def choose_threshold(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any = None,
    threshold: float | str = "youden",
    groups: Any = None,
    seed: int = 0,
) -> float:
    """Choose from which probability on a row is predicted positive.

    The estimator is fitted without each of five folds and predicts the rows of the fold: whole
    environments where enough of them remain to learn from, else rows.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`; it is cloned.
    X, y, environments : as for `fit`
        The rows to learn from.
    threshold : {"youden", "sensitivity=0.95", "specificity=0.9", "costs=1:10"} or float
        What is chosen: the largest sum of sensitivity and specificity; the largest threshold with
        at least this sensitivity; the smallest with at least this specificity. The costs of a
        false positive and of a false negative, here 1/11, and a number need no rows.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together.
    seed : int, default=0
        Random seed of folds of rows.

    Returns
    -------
    float
        For `SavedModel.set_threshold`, `evaluate` or `icscm predict --threshold`.

    Raises
    ------
    IcscmError
        If the threshold is not one of these, or a fold cannot be learned without.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier, choose_threshold
    >>> from icscm.datasets import make_hospitals
    >>> data = make_hospitals(n_rows=4_000, random_state=1)
    >>> rows = data.X, data.y, data.environments
    >>> found = choose_threshold(InvariantTreeClassifier(), *rows, "sensitivity=0.9")
    >>> 0 < found < 0.5
    True
    """
    criterion = read_threshold(threshold)
    if not isinstance(criterion, tuple):
        return criterion
    check_classifier(estimator)
    cohort = make_cohort(X, y, environments, groups, may_lack=True)
    is_enough = len(cohort.labels) >= find_least_environments(estimator)
    kind = "environments" if is_enough else "rows"
    fold_of = assign_folds(estimator, cohort, kind, N_FOLDS, seed)
    probability = np.empty(len(cohort.y))
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        for fold in range(int(fold_of.max()) + 1):
            train, test = cohort.split(fold_of == fold)
            (found,) = fit_and_score([estimator], train, None, {}, "cannot choose a threshold")
            if not hasattr(found.fitted, "predict_proba"):
                raise IcscmError(f"{type(estimator).__name__} has no predict_proba to choose from")
            probability[fold_of == fold] = found.fitted.predict_proba(test.X)[:, 1]
    return find_threshold(criterion, cohort.is_positive, probability)
