"""Parameters and thresholds of a learner, chosen by cross-validation."""

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
from icscm._types import IntArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.model.saved import check_learner
from icscm.model.thresholds import Threshold, find_threshold, read_threshold
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.validation import folds as core
from icscm.validation.folds import Cohort, Scorer, fit_and_score, make_cohort

# As in the paper.
N_FOLDS = 5
# The first is the default.
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
    >>> found = grid_search(
    ...     SCMClassifier(), data.X, data.y, environments=data.environments, grid=grid
    ... )
    >>> found.best in found.tried, found.beats_baseline
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
        gain = self.scores[self.tried.index(self.best)] - self.baseline
        return (-gain if self.is_loss else gain) > 0

    def to_frame(self) -> pd.DataFrame:
        """A row for each combination, and the baseline in the last row."""
        rows = [
            {**each, "score": score, "chosen": each == self.best}
            for each, score in zip(self.tried, self.scores, strict=True)
        ]
        return pd.DataFrame([*rows, {"score": self.baseline, "chosen": False}])


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
        The samples; environments may be None for an `SCMClassifier`.
    grid : mapping of str to sequence
        The values of each parameter, such as `{"p": [0.1, 1, "balanced"]}`; every combination is
        tried.
    scorer : {"balanced_accuracy", "auc", "log_loss", "accuracy"} or callable
        The metric. A callable is called with a fitted classifier, rows and labels, as
        scikit-learn's scorers are; larger is better.
    folds : {"rows", "environments"}, default="rows"
        What is held out: rows, stratified by label and environment, or whole environments, which
        estimates the performance in a new environment.
    n_folds : int, default=5
        As in the paper; fewer where there are fewer environments to hold out.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: never in training and test rows of
        one fold.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the folds of rows.

    Returns
    -------
    GridSearch
        The score of each combination and of the majority-class baseline, and the best.

    Raises
    ------
    IcscmError
        If a parameter or its value is not allowed, or the samples are too few for the folds.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> grid = {"model_type": ["conjunction", "disjunction"]}
    >>> found = grid_search(
    ...     ICSCMClassifier(), data.X, data.y, environments=data.environments, grid=grid
    ... )
    >>> found.best, [round(score, 2) for score in (*found.scores, found.baseline)]
    ({'model_type': 'conjunction'}, [0.91, 0.5, 0.5])
    """
    check_learner(learner)
    check_value("folds", folds, allow(*FOLDS))
    check_value("n_folds", n_folds, allow("int [2, inf)"))
    if not callable(scorer):
        check_value("scorer", scorer, allow(*SCORERS))
    tried = list_combinations(learner, grid)
    candidates = [clone(learner).set_params(**each) for each in tried]
    for each in candidates:
        each.prepare()
    cohort = make_cohort(X, y, environments=environments, groups=groups, may_lack=True)
    fold_of = assign_folds(learner, cohort, folds, n_folds, random_state)
    estimators = [*candidates, dummy.DummyClassifier(strategy="prior")]
    metrics = {"score": "error" if scorer == "accuracy" else scorer}
    scores = []
    # the score shows folds with few samples or without a rule
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        n_made = int(fold_of.max()) + 1
        for fold in track(range(n_made), n_made):
            parts = cohort.split(fold_of == fold)
            found = fit_and_score(
                estimators, *parts, metrics, "cannot learn from all folds but one"
            )
            scores.append([each.scores and each.scores["score"] for each in found])
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "score")
    values = np.array(scores, dtype=np.float64)  # NaN where undefined
    has_value = ~np.isnan(values).any(axis=1)
    if not has_value.any():
        raise IcscmError(f"{name} is undefined on every fold: each holds a single class")
    values = 1.0 - values if scorer == "accuracy" else values
    *own, baseline = values[has_value].mean(axis=0).tolist()
    is_loss = scorer == "log_loss"  # a function of that name is a score: larger is better
    # rounded: the same predictions in other folds must tie
    losses = [round(mean if is_loss else -mean, 12) for mean in own]
    costs = [getattr(each, "p", 1.0) for each in candidates]  # "balanced" after all numbers
    far = [abs(np.log(p)) if isinstance(p, int | float) else np.inf for p in costs]
    best = tried[min(zip(losses, far, range(len(tried)), strict=True))[-1]]
    known = tuple(tried), tuple(own), best, baseline
    return GridSearch(*known, name, folds, len(scores), is_loss)


def list_combinations(
    learner: BaseRuleClassifier, grid: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Every combination of the values in a grid; raise for what the learner does not have."""
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


def assign_folds(
    learner: BaseRuleClassifier, cohort: Cohort, folds: str, n_folds: int, random_state: Any
) -> IntArray:
    """The fold of each row: environments, or the rows of each label in each, are dealt out."""
    if folds == "environments":
        cohort.check_environments(learner, Parameter("folds", "environments"))
        numbers = cohort.number_places()
        order = np.argsort(-np.bincount(numbers), kind="stable")  # the largest first
        return np.asarray(np.argsort(order)[numbers] % n_folds)
    cohort.check_folds(n_folds)
    return cohort.deal(n_folds, random_state)


@data_by_name
def choose_threshold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    threshold: float | str = "youden",
    groups: Any = None,
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
    random_state : int, RandomState, Generator or None, default=0
        Random seed of folds of rows.

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
    >>> from icscm import InvariantTreeClassifier, choose_threshold
    >>> from icscm.datasets import make_hospitals
    >>> data = make_hospitals(n_rows=4_000, random_state=1)
    >>> found = choose_threshold(
    ...     InvariantTreeClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     threshold="sensitivity=0.9",
    ... )
    >>> 0 < found < 0.5, found.sensitivity >= 0.9, found.held_out
    (True, True, 'environments')
    """
    criterion = read_threshold(threshold)
    name = None if isinstance(threshold, float | int) else str(threshold)
    if not isinstance(criterion, tuple):
        return Threshold(criterion, name if "costs" in str(name) else None)
    core.check_classifier(estimator)
    cohort = make_cohort(X, y, environments=environments, groups=groups, may_lack=True)
    is_enough = len(cohort.labels) >= core.find_least_environments(estimator)
    kind = "environments" if is_enough else "rows"
    fold_of = assign_folds(estimator, cohort, kind, N_FOLDS, make_generator(random_state))
    probability = np.empty(len(cohort.y))
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        n_made = int(fold_of.max()) + 1
        for fold in track(range(n_made), n_made):
            train, test = cohort.split(fold_of == fold)
            (found,) = fit_and_score([estimator], train, None, {}, "cannot choose a threshold")
            if not hasattr(found.fitted, "predict_proba"):
                raise IcscmError(f"{type(estimator).__name__} has no predict_proba to choose from")
            probability[fold_of == fold] = found.fitted.predict_proba(test.X)[:, 1]
    cut = find_threshold(criterion, cohort.is_positive, probability)
    above, y = probability >= cut, cohort.is_positive
    shares = {"sensitivity": float(above[y].mean()), "specificity": float((~above)[~y].mean())}
    return Threshold(cut, name, **shares, held_out=kind)
