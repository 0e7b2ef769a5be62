"""How a tree depends on its tolerance, here and in environments left out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from icscm._constants import DEFAULT_TOLERANCES
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.report.tolerance import HeldOut, TolerancePath, compute_tolerance_path, grow_along
from icscm.sources.countable import Countable
from icscm.sources.memory import open_memory
from icscm.studies.classifiers import Cohort, check_two_classes, make_cohort
from icscm.studies.scores import compute_auc
from icscm.studies.transfer import check_enough


def tolerance_path(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
) -> TolerancePath:
    """Grow a tree at several tolerances, on all environments and without each of them.

    An environment left out shows no shift worse than those between the environments at hand: a
    loose tolerance that does well here may fail where a shortcut turns round. Of tolerances that
    do about as well, prefer the strict one; the default of trees is not chosen this way.

    Parameters
    ----------
    estimator : InvariantTreeClassifier
        What to grow; it is not changed, and need not be fitted.
    X, y, environments : as for `InvariantTreeClassifier.fit`
        The samples, of at least three environments.
    tolerances : iterable of float or None, optional
        Those to try; None is a plain tree. The estimator's own is always among them.

    Returns
    -------
    TolerancePath
        For each tolerance the tree of all samples, and the AUC in each environment of the tree
        grown without it; `to_frame()` and `plot()` show it, and a tree's `report` takes it.

    Raises
    ------
    IcscmError
        If the estimator is no tree or a plain one, there are too few environments, or a class is
        absent without one of them.

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
    check_enough(estimator, cohort.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)  # `fit` says it, once
        samples = _open(estimator, cohort)
        settings = estimator.make_settings(samples)
        path = compute_tolerance_path(samples.source, settings, tolerances)
        asked = [point.tolerance for point in path.points]
        places = range(len(cohort.labels))
        scores = [_leave_out(estimator, cohort, place, asked) for place in places]
    held_out = [HeldOut(each) for each in zip(*scores, strict=True)]
    points = zip(path.points, held_out, strict=True)
    return replace(
        path,
        points=tuple(replace(point, held_out=each) for point, each in points),
        seconds=time.perf_counter() - started,
    )


def _open(estimator: Any, cohort: Cohort) -> Countable[Any]:
    known = cohort.X, cohort.y, cohort.environments
    return open_memory(*known, preparation=estimator.prepare())


def _leave_out(
    estimator: Any, cohort: Cohort, place: int, tolerances: Sequence[float | None]
) -> list[float | None]:
    """The AUC in one environment of the trees grown without it; None if it has one class."""
    inside, outside = cohort.part(place)
    try:
        check_two_classes(inside)
        samples = _open(estimator, inside)
    except IcscmError as error:
        name = cohort.labels[place]
        raise IcscmError(f"cannot learn without environment {name!r}: {error}") from None
    found = []
    for model, _ in grow_along(samples.source, estimator.make_settings(samples), tolerances):
        score = compute_auc(outside.is_positive, model.predict_proba(outside.X))
        found.append(None if score is None else score.value)
    return found
