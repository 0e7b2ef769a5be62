"""How a tree depends on its tolerance, on all samples and by leave-one-environment-out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from icscm._constants import DEFAULT_TOLERANCES
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.report.tolerance import HeldOut, TolerancePath, compute_tolerance_path
from icscm.sources.memory import open_memory
from icscm.studies.folds import fit_and_score, leave_out_environments, make_cohort


def tolerance_path(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
) -> TolerancePath:
    """Grow a tree at several tolerances, on all environments and by leave-one-environment-out.

    A held-out environment shows no larger shift than those between the environments of the data:
    a loose tolerance with a high AUC here may fail where a shortcut reverses. Of tolerances with
    about the same AUC prefer the strictest; the default of trees is not chosen this way.

    Parameters
    ----------
    estimator : InvariantTreeClassifier
        The tree; it is not changed and need not be fitted.
    X, y, environments : as for `InvariantTreeClassifier.fit`
        The samples, of at least three environments.
    tolerances : iterable of float or None, optional
        Tolerances to try; None is a plain tree. The estimator's own is always added.

    Returns
    -------
    TolerancePath
        For each tolerance the tree of all samples, and the AUC in each environment of the tree
        grown without it, with `to_frame()` and `plot()`; a tree's `report` accepts it.

    Raises
    ------
    IcscmError
        If the estimator is not a tree or a plain one, there are too few environments, or a class
        occurs in only one of them.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier, tolerance_path
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(2_000, n_environments=4, random_state=1)
    >>> tree = InvariantTreeClassifier(max_leaves=4)
    >>> path = tolerance_path(tree, data.X, data.y, data.environments, [None, 0.03])
    >>> [len(each.held_out.aucs) for each in path.points]
    [4, 4]
    """
    if not hasattr(estimator, "tolerance_path"):
        raise IcscmError(
            f"estimator must be an InvariantTreeClassifier; got {type(estimator).__name__}"
        )
    started = time.perf_counter()
    cohort = make_cohort(X, y, environments)
    folds = leave_out_environments(estimator, cohort)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns, once
        samples = open_memory(
            cohort.X, cohort.y, cohort.environments, preparation=estimator.prepare()
        )
        path = compute_tolerance_path(samples.source, estimator.make_settings(samples), tolerances)
        trees = [clone(estimator).set_params(tolerance=each.tolerance) for each in path.points]
        aucs = []  # (environment, tolerance)
        for _, train, test, context in folds:
            found = fit_and_score(trees, train, test, {"auc": "auc"}, context)
            aucs.append([each.scores and each.scores["auc"] for each in found])
    points = zip(path.points, zip(*aucs, strict=True), strict=True)
    return replace(
        path,
        points=tuple(replace(point, held_out=HeldOut(each)) for point, each in points),
        seconds=time.perf_counter() - started,
    )
