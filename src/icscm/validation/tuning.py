"""Parameters and thresholds of a learner, chosen by cross-validation.

scikit-learn's grid search knows neither environments, whose folds it would have to leave out whole,
nor that our learners can share their bins.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from icscm._changes import data_by_name
from icscm._lazy import dummy
from icscm._types import FloatArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.model.saved import check_learner
from icscm.model.thresholds import Criterion, Threshold, find_threshold, read_threshold
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.validation.cohort import Cohort, make_cohort
from icscm.validation.fitting import (
    Scorer,
    check_classifier,
    fit_fold,
    predict_left_out,
    score_fold,
)
from icscm.validation.folds import (
    Fold,
    check_environments,
    count_needed_environments,
    leave_out_many_environments,
    leave_out_rows,
)

# As in the paper.
N_FOLDS = 5
# Of both the first is the default.
SCORERS = ("balanced_accuracy", "auc", "log_loss", "accuracy")
FOLDS = ("rows", "environments")


@dataclass(frozen=True)
class GridSearch:
    """Scores of a grid of parameters; see `grid_search`.

    Attributes
    ----------
    tried, scores : tuple of dict, tuple of float
        Each combination of parameters, and its mean score over the held-out folds.
    best : dict
        The combination with the best score.
    baseline : float
        The score of the majority-class baseline, with the rate of the positive class as the
        probability.
    scorer, folds, n_folds : str, str, int
        The metric, the kind of folds and their number.
    is_loss : bool
        Whether a smaller score is better: that of the scorer "log_loss".

    Examples
    --------
    >>> from icscm import SCMClassifier
    >>> from icscm.validation.tuning import grid_search
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, random_state=1)
    >>> grid = {"max_rules": [1, 2]}
    >>> search = grid_search(
    ...     SCMClassifier(), data.X, data.y, environments=data.environments, grid=grid
    ... )
    >>> search.best in search.tried, search.beats_baseline
    (True, True)
    """

    tried: tuple[dict[str, Any], ...]
    scores: tuple[float, ...]
    best: dict[str, Any]
    baseline: float
    scorer: str
    folds: str
    n_folds: int
    is_loss: bool = False

    @property
    def beats_baseline(self) -> bool:
        """Whether the best combination has a better score than the baseline."""
        best_score = self.scores[self.tried.index(self.best)]
        if self.is_loss:
            return best_score < self.baseline
        return best_score > self.baseline

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each combination, and the baseline in the last row."""
        rows = []
        for combination, score in zip(self.tried, self.scores, strict=True):
            is_best = combination == self.best
            rows.append({**combination, "score": score, "chosen": is_best})
        rows.append({"score": self.baseline, "chosen": False})
        return pd.DataFrame(rows)


@data_by_name
def grid_search(
    learner: BaseRuleClassifier,
    X: Any,
    y: Any,
    *,
    environments: Any,
    grid: Mapping[str, Sequence[Any]],
    scorer: Scorer = SCORERS[0],
    folds: str = FOLDS[0],
    n_folds: int = N_FOLDS,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> GridSearch:
    """Choose parameters of a learner by cross-validation.

    Ties are resolved in favour of the combination whose `p` is nearest 1, then of the first.
    Everything that is learned, thresholds included, comes from the training folds. A fold on which
    the score is undefined, such as balanced accuracy where a class is absent, is skipped.

    Parameters
    ----------
    learner : SCMClassifier, ICSCMClassifier, InvariantTreeClassifier or InvariantForestClassifier
        Its other parameters are kept; it is not changed.
    X, y, environments : as for `fit`
        The rows; environments may be None for an `SCMClassifier`.
    grid : mapping of str to sequence
        The values of each parameter, such as `{"p": [0.1, 1, "balanced"]}`; every combination is
        tried.
    scorer : {"balanced_accuracy", "auc", "log_loss", "accuracy"} or callable
        The metric. A callable is called with a fitted classifier, rows and outcomes, as
        scikit-learn's scorers are; larger is better.
    folds : {"rows", "environments"}, default="rows"
        What is held out: rows, stratified by outcome and environment, or whole environments, which
        estimates the performance in a new environment.
    n_folds : int, default=5
        As in the paper; fewer where there are fewer environments to hold out.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: never in training and test rows of
        one fold.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights of the rows; they count in the fits and in the scores.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the folds of rows. By default they are the same each time, so that settings
        and learners are compared on the same folds; None draws others.

    Returns
    -------
    GridSearch
        The score of each combination and of the majority-class baseline, and the best.

    Raises
    ------
    IcscmError
        If a parameter or its value is not allowed, or the rows are too few for the folds.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> grid = {"model_type": ["conjunction", "disjunction"]}
    >>> search = grid_search(
    ...     ICSCMClassifier(), data.X, data.y, environments=data.environments, grid=grid
    ... )
    >>> search.best
    {'model_type': 'conjunction'}
    >>> [round(score, 2) for score in search.scores], search.baseline
    ([0.91, 0.5], 0.5)
    """
    check_learner(learner)
    check_value("folds", folds, allow(*FOLDS))
    check_value("n_folds", n_folds, allow("int [2, inf)"))
    if not callable(scorer):
        check_value("scorer", scorer, allow(*SCORERS))
    combinations = list_combinations(learner, grid)
    candidates = [clone(learner).set_params(**settings) for settings in combinations]
    for candidate in candidates:
        candidate.prepare()  # which raises for values that are not allowed

    cohort = make_cohort(
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
        may_lack=True,
    )
    cohort_folds = cut_folds(learner, cohort, folds, n_folds=n_folds, random_state=random_state)
    baseline = dummy.DummyClassifier(strategy="prior")
    scores_of_folds = _score_folds([*candidates, baseline], cohort, cohort_folds, scorer)
    *candidate_scores, baseline_score = _average_scores(scores_of_folds, scorer)

    is_loss = scorer == "log_loss"  # a function of that name is a score: larger is better
    losses = [score if is_loss else -score for score in candidate_scores]
    return GridSearch(
        tried=tuple(combinations),
        scores=tuple(candidate_scores),
        best=combinations[_find_best(candidates, losses)],
        baseline=baseline_score,
        scorer=_name_scorer(scorer),
        folds=folds,
        n_folds=len(cohort_folds),
        is_loss=is_loss,
    )


def _score_folds(
    estimators: Sequence[Any], cohort: Cohort, folds: Sequence[Fold], scorer: Scorer
) -> FloatArray:
    """Return scores by (fold, estimator), NaN where one is undefined.

    Of each fold all estimators are fitted together, since ours share its bins.
    """
    # accuracy is not among our metrics: it is 1 - error
    is_accuracy = scorer == "accuracy"
    scorers: dict[str, Scorer] = {"score": "error" if is_accuracy else scorer}
    scores = np.full((len(folds), len(estimators)), np.nan)
    # the score shows folds with few rows or without a rule
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        for fold_number, fold in enumerate(track(folds, len(folds))):
            fits = fit_fold(estimators, cohort, fold, context="cannot learn from all folds but one")
            for estimator_number, fitted in enumerate(fits):
                value = score_fold(fitted, cohort, fold, scorers).values["score"]
                if value is not None:
                    scores[fold_number, estimator_number] = value
    return 1.0 - scores if is_accuracy else scores


def _average_scores(scores: FloatArray, scorer: Scorer) -> list[float]:
    """Average scores (fold, estimator) over the folds on which that of every estimator is defined.

    A fold counts for all or for none, so that all means are over the same rows.
    """
    is_defined = ~np.isnan(scores).any(axis=1)
    if not is_defined.any():
        name = _name_scorer(scorer)
        raise IcscmError(f"{name} is undefined on every fold: each holds a single class")
    means: list[float] = scores[is_defined].mean(axis=0).tolist()
    return means


def _name_scorer(scorer: Scorer) -> str:
    """Name a metric; a callable, such as scikit-learn's scorers, may have no name."""
    return scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "score")


def _find_best(candidates: Sequence[Any], losses: Sequence[float]) -> int:
    """Return the position of the smallest loss; of equal ones that of the p nearest 1, as a ratio.

    Losses are rounded: the same predictions in other folds must tie.
    """

    def make_sort_key(position: int) -> tuple[float, float, int]:
        rounded_loss = round(losses[position], 12)
        p = candidates[position].get_params(deep=False).get("p", 1.0)
        is_number = isinstance(p, int | float)
        distance_from_1 = float(abs(np.log(p))) if is_number else np.inf  # "balanced" comes last
        return rounded_loss, distance_from_1, position

    return min(range(len(candidates)), key=make_sort_key)


def list_combinations(
    learner: BaseRuleClassifier, grid: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """List all combinations of the values in a grid; raise for what the learner does not have."""
    known = learner.get_params(deep=False)
    for name, values in grid.items():
        if name not in known:
            raise IcscmError(
                f"grid names {name!r}, which {type(learner).__name__} does not have; its "
                f"parameters are {', '.join(known)}"
            )
        if isinstance(values, str) or not len(values):
            raise IcscmError(f"grid must give a list of values for {name!r}; got {values!r}")
    if not grid:
        raise IcscmError("grid is empty; name a parameter and its values, as in {'p': [0.5, 1]}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def cut_folds(
    estimator: Any, cohort: Cohort, kind: str, *, n_folds: int, random_state: Any
) -> list[Fold]:
    """Cut folds of rows or of whole environments."""
    if kind == "environments":
        check_environments(cohort, estimator, Parameter("folds", "environments"))
        return leave_out_many_environments(cohort, n_folds)
    return leave_out_rows(cohort, n_folds, random_state)


@data_by_name
def choose_threshold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    threshold: float | str = "youden",
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Threshold:
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
    sample_weight : array-like of shape (n_samples,), optional
        Design weights of the rows; they count in the fits and in what is chosen.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of folds of rows. By default they are the same each time, so that settings and
        learners are compared on the same folds; None draws others.

    Returns
    -------
    Threshold
        A float for `SavedModel.set_threshold`, `evaluate` or `icscm predict --threshold`; with
        attributes `criterion` and, where it was chosen on rows, `sensitivity`, `specificity` and
        `held_out`, the kind of fold; `describe()` is a line of text.

    Raises
    ------
    IcscmError
        If the threshold is not one of these, or a fold cannot be learned without.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_hospitals
    >>> from icscm.validation.tuning import choose_threshold
    >>> data = make_hospitals(n_rows=4_000, random_state=1)
    >>> threshold = choose_threshold(
    ...     InvariantTreeClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     threshold="sensitivity=0.9",
    ... )
    >>> 0 < threshold < 0.5, threshold.sensitivity >= 0.9, threshold.held_out
    (True, True, 'environments')
    """
    criterion = read_threshold(threshold)
    if not isinstance(criterion, Criterion):  # a number, or costs: these need no rows
        is_from_costs = isinstance(threshold, str) and "costs" in threshold
        return Threshold(criterion, str(threshold) if is_from_costs else None)

    check_classifier(estimator)
    cohort = make_cohort(
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
        may_lack=True,
    )
    n_environments = len(cohort.environment_labels)
    has_enough = n_environments >= count_needed_environments(estimator)
    kind = "environments" if has_enough else "rows"
    rng = make_generator(random_state)
    folds = cut_folds(estimator, cohort, kind, n_folds=N_FOLDS, random_state=rng)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        probability = predict_left_out(
            estimator, cohort, folds, context="cannot choose a threshold"
        )

    is_positive = cohort.is_positive
    counted = cohort.count_by_weight()
    if counted is not None:
        is_positive = is_positive[counted.rows]
        probability = probability[counted.rows]
    value = find_threshold(criterion, is_positive, probability)
    is_predicted = probability >= value
    return Threshold(
        value,
        str(threshold),
        sensitivity=float(is_predicted[is_positive].mean()),
        specificity=float((~is_predicted)[~is_positive].mean()),
        held_out=kind,
    )
