"""Paths: a learner learned again at other levels alpha or other tolerances.

The table is binned once, and each value costs one more search over the same counts. With
`leave_one_out`, each value is also learned without each environment and scored on it.
`icscm.report.path` and `icscm.report.screen_path` show the result.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from icscm._changes import data_by_name
from icscm._constants import DEFAULT_TOLERANCES
from icscm._types import IntArray
from icscm.engine.counts import RowSource
from icscm.estimators.cover import ICSCMClassifier
from icscm.estimators.selector import (
    InvariantFeatureSelector,
    VerdictsOnly,
    make_verdicts,
)
from icscm.estimators.tree import InvariantTreeClassifier
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.model.tree import Tree
from icscm.parameters import allow, check_value
from icscm.progress import track
from icscm.report.path import Path, PathPoint
from icscm.report.screen_path import SCREEN_TOLERANCES, ScreenPath, ScreenPoint
from icscm.screening.measuring import MeasuredRounds
from icscm.search.columns import ColumnScreen
from icscm.search.grow import TreeSettings
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.trace import Trace
from icscm.search.trees import find_tree
from icscm.sources.memory import open_memory
from icscm.sources.stored import StoredSource
from icscm.tables.columns import take_columns
from icscm.validation.cohort import Cohort, make_any_cohort, make_cohort
from icscm.validation.fitting import fit_fold, score_fold
from icscm.validation.folds import (
    Fold,
    check_environments,
    leave_out_environments,
)
from icscm.validation.leave_one_out import describe_left_out
from icscm.validation.outcome_scores import SCORES, score_rows

# 1, 2, 5 in each decade: even steps on a logarithmic scale, in round numbers.
DEFAULT_ALPHAS = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))

# A score in each environment, by the model that was learned without it; None where undefined.
Values = tuple[float | None, ...]


@data_by_name
def alpha_path(
    estimator: ICSCMClassifier,
    X: Any,
    y: Any,
    *,
    environments: Any,
    alphas: Iterable[float] = DEFAULT_ALPHAS,
    sample_weight: Any = None,
    groups: Any = None,
) -> Path:
    """Learn rules at several levels alpha; all other settings stay as they are.

    Parameters
    ----------
    estimator : ICSCMClassifier
        The learner; it is not changed and need not be fitted.
    X, y, environments, sample_weight, groups : as for `ICSCMClassifier.fit`
        The rows to learn from.
    alphas : iterable of float, optional
        The levels to learn at; the estimator's own is always added.

    Returns
    -------
    Path
        The model and the trace at each level; `estimator.report(path=...)` shows it.

    Raises
    ------
    IcscmError
        If the estimator tests nothing, or a level is not between 0 and 1.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.validation.path import alpha_path
    >>> data = make_conjunction(random_state=1)
    >>> rows = {"X": data.X, "y": data.y, "environments": data.environments}
    >>> path = alpha_path(ICSCMClassifier(), **rows, alphas=[0.001, 0.01, 0.5])
    >>> for point in path.points:
    ...     print(point.value, point.model)
    0.001 A1 > 0 and C1 > 0
    0.01 A1 > 0 and A2 > 0
    0.05 A1 > 0 and A2 > 0
    0.5 no rule holds in every environment and does better than always negative
    """
    if not isinstance(estimator, ICSCMClassifier):
        raise IcscmError(f"estimator must be an ICSCMClassifier; got {type(estimator).__name__}")
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns
        samples = open_memory(
            X,
            y,
            environments=environments,
            sample_weight=sample_weight,
            groups=groups,
            preparation=estimator.prepare(),
        )
        settings = estimator.make_settings(samples)
        return compute_alpha_path(samples.source, settings, alphas)


@data_by_name
def tolerance_path(
    estimator: InvariantTreeClassifier | InvariantFeatureSelector,
    X: Any,
    y: Any,
    *,
    environments: Any,
    tolerances: Iterable[float | None] | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    leave_one_out: bool = True,
) -> Path | ScreenPath:
    """Grow a tree, or screen columns, at several tolerances.

    An environment left out shows no larger shift than those between the environments of the data:
    a loose tolerance with a high AUC here may fail where a shortcut reverses. Of tolerances with
    about the same AUC prefer the strictest; the default of trees is not chosen this way.

    A screen is repeated at each tolerance; rounds in which the same columns are left are measured
    once. For a screen, the tolerance is how much of its worth a column may lose in 1 of 20 new
    environments; `InvariantFeatureSelector` says more.

    Parameters
    ----------
    estimator : InvariantTreeClassifier or InvariantFeatureSelector
        It is not changed and need not be fitted.
    X, y, environments, groups, sample_weight : as for `fit` of the estimator
        The rows; to leave one out, of at least three environments.
    tolerances : iterable of float or None, optional
        Tolerances to try; None among them is a plain tree. The estimator's own is always added.
    leave_one_out : bool, default=True
        Whether to learn without each environment in turn, for the AUC there: the tree, or the
        selector's learner on the columns that the screen of all environments keeps
        (`icscm.validation.screening.validate_screen` repeats the screen instead).

    Returns
    -------
    Path or ScreenPath
        For each tolerance the tree or the columns kept, and the score (AUC, mean AUC over classes
        or R2) in each environment left out, with `to_frame()` and `plot()`;
        `estimator.report(path=...)` shows it.

    Raises
    ------
    IcscmError
        If the estimator is another one or a plain tree, there are too few environments, or a class
        occurs in only one of them.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.validation.path import tolerance_path
    >>> data = make_conjunction(2_000, n_environments=4, random_state=1)
    >>> rows = {"X": data.X, "y": data.y, "environments": data.environments}
    >>> path = tolerance_path(InvariantTreeClassifier(max_leaves=4), **rows, tolerances=[None])
    >>> [(point.value, len(point.aucs)) for point in path.points]
    [(None, 4), (0.01, 4)]
    """
    if isinstance(estimator, InvariantFeatureSelector):
        if environments is None:
            raise IcscmError("a path along the tolerance needs environments to compare")
        wanted = SCREEN_TOLERANCES if tolerances is None else tolerances
        cohort = make_any_cohort(
            X,
            y,
            environments=environments,
            groups=groups,
            sample_weight=sample_weight,
            is_number=estimator.takes_numbers(y),
        )
        return _follow_screen(estimator, cohort, wanted, leave_one_out=leave_one_out)
    if isinstance(estimator, InvariantTreeClassifier):
        wanted = DEFAULT_TOLERANCES if tolerances is None else tolerances
        cohort = make_cohort(
            X, y, environments=environments, groups=groups, sample_weight=sample_weight
        )
        return _follow_tree(estimator, cohort, wanted, leave_one_out=leave_one_out)
    raise IcscmError(
        "estimator must be an InvariantTreeClassifier or an InvariantFeatureSelector; got "
        f"{type(estimator).__name__}"
    )


def _follow_tree(
    estimator: InvariantTreeClassifier,
    cohort: Cohort,
    tolerances: Iterable[float | None],
    *,
    leave_one_out: bool,
) -> Path:
    """Return the trees of all rows, with the AUCs of those that are grown on all but one."""
    if leave_one_out:
        check_environments(cohort, estimator, "leave-one-environment-out")
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns, once
        samples = cohort.open(estimator.prepare())
        settings = estimator.make_settings(samples)
        path = compute_tolerance_path(samples.source, settings, tolerances)
        if not leave_one_out:
            return path

        trees = [clone(estimator).set_params(tolerance=value) for value in path.values]
        aucs_by_tolerance = _score_left_out(trees, cohort, leave_out_environments(cohort))
    points = zip(path.points, aucs_by_tolerance, strict=True)
    return replace(path, points=tuple(replace(point, aucs=aucs) for point, aucs in points))


def _follow_screen(
    selector: InvariantFeatureSelector,
    cohort: Cohort,
    tolerances: Iterable[float | None],
    *,
    leave_one_out: bool,
) -> ScreenPath:
    """Return the screens of all rows, with the scores of learners on the columns that they keep."""
    values = {float(tolerance) for tolerance in tolerances if tolerance is not None}
    values.add(float(selector.tolerance))
    for value in values:
        check_value("each of tolerances", value, allow("float [0, inf)"))
    if leave_one_out:
        check_environments(cohort, selector.make_learner(), "leave-one-environment-out")

    from_loose_to_strict = sorted(values, reverse=True)
    # rounds with the same columns left are the same at every tolerance, and measured once
    memory = MeasuredRounds()
    if isinstance(selector, VerdictsOnly) and selector.memory is not None:
        memory = selector.memory
    screens = []
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns
        for tolerance in track(from_loose_to_strict, len(from_loose_to_strict)):
            screen = make_verdicts(selector, memory).set_params(tolerance=tolerance)
            screen.fit(
                cohort.X,
                cohort.y,
                environments=cohort.environments,
                groups=cohort.group_codes,
                sample_weight=cohort.sample_weight,
            )
            # a screen that is interrupted returns what it has, but the study is to end
            if not screen.is_complete_:
                raise KeyboardInterrupt
            screens.append(screen)
    points = tuple(_make_screen_point(screen) for screen in screens)
    kind = cohort.kind
    if not leave_one_out:
        return ScreenPath(points, own=float(selector.tolerance), outcome=kind)

    learner = screens[0].make_learner()
    folds = leave_out_environments(cohort)
    columns = list(screens[0].screen_["column"])
    # neighbouring tolerances often keep the same columns, which are scored once
    scores_by_kept: dict[tuple[Any, ...], Values] = {}
    for kept in {point.kept for point in points}:
        positions = np.array([columns.index(column) for column in kept], dtype=np.intp)
        scores_by_kept[kept] = _score_columns_left_out(learner, cohort, positions, folds)
    scored = tuple(replace(point, scores_left_out=scores_by_kept[point.kept]) for point in points)
    return ScreenPath(scored, own=float(selector.tolerance), outcome=kind)


def _make_screen_point(screen: InvariantFeatureSelector) -> ScreenPoint:
    """Return a fitted screen as a point of the path, with the scores of its last round.

    They are unknown if the last round rejected all columns.
    """
    has_scores = len(screen.rounds_) > 0 and len(screen.kept_) > 0
    last_round = screen.rounds_.iloc[-1] if has_scores else None
    return ScreenPoint(
        tolerance=float(screen.tolerance),
        kept=tuple(screen.kept_),
        rejected=tuple(screen.rejected_),
        score=None if last_round is None else float(last_round["score"]),
        loss=None if last_round is None else float(last_round["loss"]),
    )


def _score_columns_left_out(
    learner: Any, cohort: Cohort, columns: IntArray, folds: Sequence[Fold]
) -> Values:
    """Return the score of a learner on some columns in each environment; empty without a column."""
    if len(columns) == 0:
        return ()
    # the selector tells its learner neither environments nor groups
    plain_cohort = cohort.without_environments()
    narrowed = replace(plain_cohort, X=take_columns(cohort.X, columns))
    name = SCORES[cohort.kind].score
    scores = []
    for fold in track(folds, len(folds)):
        context = describe_left_out(fold.environment)
        (fitted,) = fit_fold([learner], narrowed, fold, context=context)
        score = score_rows(fitted.estimator, fitted.take_test_rows(narrowed, fold))[name]
        scores.append(None if score is None else score.value)
    return tuple(scores)


def _score_left_out(
    estimators: Sequence[Any], cohort: Cohort, folds: Sequence[Fold]
) -> list[Values]:
    """Return the AUC of each estimator in each environment, learned without it."""
    aucs_of_estimators: list[list[float | None]] = [[] for _ in estimators]
    for fold in track(folds, len(folds)):
        context = describe_left_out(fold.environment)
        fits = fit_fold(estimators, cohort, fold, context=context)
        for aucs, fitted in zip(aucs_of_estimators, fits, strict=True):
            scores = score_fold(fitted, cohort, fold, {"auc": "auc"})
            aucs.append(scores.values["auc"])
    return [tuple(aucs) for aucs in aucs_of_estimators]


def compute_alpha_path(
    source: StoredSource, settings: Settings, alphas: Iterable[float] = DEFAULT_ALPHAS
) -> Path:
    """Search the counts again at each level; that of `settings` is always among them."""
    levels = {*alphas}
    for alpha in sorted(levels):
        check_value("each of alphas", alpha, allow("float (0, 1)"))
    if settings.test is None:
        raise IcscmError(
            "a path along alpha needs an ICSCMClassifier fitted with environments: without them "
            "nothing is tested"
        )

    def learn(alpha: float) -> tuple[Tree, Trace]:
        return find_model(source, replace(settings, alpha=alpha))

    return Path(
        parameter="alpha",
        points=_find_points(learn, sorted({*levels, settings.alpha})),
        own=settings.alpha,
        environments=tuple(source.environments),
    )


def compute_tolerance_path(
    source: RowSource,
    settings: TreeSettings,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
) -> Path:
    """Grow the tree again at each tolerance; that of `settings` is always among them."""
    if settings.tolerance is None:
        raise IcscmError(
            "a path along the tolerance needs a tree grown with environments and a tolerance: a "
            "plain tree rejects nothing"
        )
    screen = ColumnScreen(source, settings)

    def learn(tolerance: float | None) -> tuple[Tree, Trace]:
        # a plain tree rejects no columns, the others share what the screen has counted
        shared = None if tolerance is None else screen
        return find_tree(source, replace(settings, tolerance=tolerance), shared)

    return Path(
        parameter="tolerance",
        points=_find_points(learn, order_tolerances(tolerances, settings.tolerance)),
        own=settings.tolerance,
        environments=tuple(source.environments),
    )


def _find_points(
    learn: Callable[[Any], tuple[Tree, Trace]], values: Sequence[float | None]
) -> tuple[PathPoint, ...]:
    """Learn the model at each value, with the trace of its search."""
    points = []
    for value in track(values, len(values)):
        model, trace = learn(value)
        points.append(PathPoint(value, model, trace))
    return tuple(points)


def order_tolerances(
    tolerances: Iterable[float | None], own: float | None
) -> tuple[float | None, ...]:
    """Return the tolerances from None (plain) to strict, each once, the learner's among them."""
    values = {*tolerances, own}
    for tolerance in values - {None}:
        check_value("each of tolerances", tolerance, allow("float (0, inf)"))
    numbers = [value for value in values if value is not None]
    from_loose_to_strict = sorted(numbers, reverse=True)
    if None in values:
        return None, *from_loose_to_strict
    return tuple(from_loose_to_strict)
