"""Leave-one-environment-out: how a classifier does in an environment it was not trained on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from icscm._constants import DEFAULT_TOLERANCES
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.parameters import check_matplotlib
from icscm.report.canvas import make_figure
from icscm.report.path import Path, compute_tolerance_path
from icscm.studies import folds
from icscm.studies.folds import Scorers, Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CONTEXT = "cannot learn without environment {!r}"
DEFAULT_SCORERS = ("error", "balanced_accuracy", "auc")


@dataclass(frozen=True)
class HeldOutEnvironment:
    """A classifier trained without one environment, and its performance there.

    Attributes
    ----------
    environment, n_samples : label, int
        The environment held out, and its number of rows.
    scores : dict
        The score of each scorer there, None where it is undefined, such as an AUC of one class.
    accuracy, majority_accuracy : float
        Accuracy there of the model and of the majority-class baseline, which predicts the more
        frequent class of the other environments.
    training_accuracy, model : float, str or None
        Accuracy in the training environments, and the rules; None for other classifiers.
    """

    environment: Any
    n_samples: int
    scores: Scores
    accuracy: float
    majority_accuracy: float
    training_accuracy: float
    model: str | None

    @property
    def error(self) -> float:
        """Error in the environment held out."""
        return 1.0 - self.accuracy


@dataclass(frozen=True, repr=False)
class Transfer(DisplayMixin):
    """Performance in held-out environments; see `leave_one_environment_out`.

    Attributes
    ----------
    held_out : tuple of HeldOutEnvironment
        One for each environment, in their order.
    """

    held_out: tuple[HeldOutEnvironment, ...]

    @property
    def mean_accuracy(self) -> float:
        """Unweighted mean over environments."""
        return float(np.mean([each.accuracy for each in self.held_out]))

    @property
    def worst_accuracy(self) -> float:
        """The lowest accuracy of an environment."""
        return min(each.accuracy for each in self.held_out)

    @property
    def mean_scores(self) -> Scores:
        """The mean of each score over the environments in which it is defined."""
        scores = [each.scores for each in self.held_out]
        return folds.average_scores(scores, scores[0])

    def _display(self) -> Display:
        accuracies = f"mean {self.mean_accuracy:.1%}, lowest {self.worst_accuracy:.1%}"
        return display_frame(f"Leave-one-environment-out accuracy: {accuracies}", self.to_frame())

    def to_frame(self) -> pd.DataFrame:
        """A row for each environment held out, a column for each scorer."""
        names = "accuracy", "majority_accuracy", "training_accuracy", "model"
        return pd.DataFrame(
            {"environment": each.environment, "n_samples": each.n_samples}
            | each.scores
            | {name: getattr(each, name) for name in names}
            for each in self.held_out
        )

    def plot(self) -> Figure:
        """Accuracy in each held-out environment, in training, and of the baseline."""
        check_matplotlib()
        frame = self.to_frame()
        height = 1.6 + 0.45 * len(frame)
        figure = make_figure((7.0, height), is_registered=True, layout="constrained")
        axes = figure.subplots()
        axes.barh(frame.index, frame["accuracy"], color="#9db7d8", height=0.6)
        for name, marker, size, label in (
            ("training_accuracy", "|", 16, "training environments"),
            ("majority_accuracy", ".", 9, "majority-class baseline"),
        ):
            axes.plot(frame[name], frame.index, marker, color="black", markersize=size, label=label)
        names = [f"{each.environment} (n = {each.n_samples:,})" for each in self.held_out]
        axes.set_yticks(frame.index, labels=names)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("accuracy in the held-out environment")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return figure


def leave_one_environment_out(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any,
    scorers: Scorers = DEFAULT_SCORERS,
    groups: Any = None,
) -> Transfer:
    """Train without each environment in turn, and score the classifier on it.

    Also known as internal-external cross-validation. Any classifier needs two environments,
    `ICSCMClassifier` three: with a single training environment invariance cannot be tested.
    Everything that is learned, thresholds included, comes from the other environments.
    Environments are passed to `fit` where it accepts them: in a pipeline to the steps that do,
    and with scikit-learn's metadata routing to those that request them.

    Parameters
    ----------
    estimator : classifier
        Any classifier with scikit-learn's interface, including pipelines; it is not changed.
    X : array or frame of shape (n_samples, n_features)
        The features, passed to the estimator unchanged.
    y, environments : as for `ICSCMClassifier.fit`
        Labels of two classes, and the environment of each sample.
    scorers : sequence or dict, default=("error", "balanced_accuracy", "auc")
        Scores to compute on the held-out environment. By name: those, "sensitivity",
        "specificity", "ppv", "npv", "brier", "log_loss", or scikit-learn's names; or functions of
        (fitted estimator, X, y), such as its scorers. A dict gives them names.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: those of a group with rows in the
        held-out environment are not trained on.

    Returns
    -------
    Transfer
        Scores and models, with `to_frame()` and `plot()`.

    Raises
    ------
    IcscmError
        If there are too few environments, or a class occurs in only one of them.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> learner = ICSCMClassifier(search="exhaustive", alpha="auto")
    >>> found = leave_one_environment_out(learner, data.X, data.y, data.environments)
    >>> found.to_frame()["model"].tolist()
    ['A2 > 0 and A1 > 0', 'A1 > 0 and A2 > 0', 'A1 > 0 and A2 > 0']

    Other classifiers are evaluated in the same way:

    >>> from sklearn.linear_model import LogisticRegression
    >>> found = leave_one_environment_out(LogisticRegression(), *data[:3], scorers=["auc"])
    >>> print(f"{found.mean_scores['auc']:.2f}")
    0.99
    """
    folds.check_classifier(estimator)
    named = folds.name_scorers(scorers)
    held_out = []
    cohort = folds.make_cohort(X, y, environments, groups)
    for label, train, test in folds.leave_out_environments(estimator, cohort):
        (found,) = folds.fit_and_score([estimator], train, test, named, CONTEXT.format(label))
        is_right = np.asarray(found.fitted.predict(train.X)) == train.y
        majority = 2 * train.is_positive.sum() > len(train.y)
        each = HeldOutEnvironment(
            environment=label,
            n_samples=len(test.y),
            scores=found.scores or {},
            accuracy=float(np.mean(~found.is_wrong)),
            majority_accuracy=float(np.mean(test.is_positive == majority)),
            training_accuracy=float(is_right.mean()),
            model=folds.describe_model(found.fitted),
        )
        held_out.append(each)
    return Transfer(tuple(held_out))


def tolerance_path(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
    groups: Any = None,
) -> Path:
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
    groups : array-like of shape (n_samples,), str or list of str, optional
        As for `leave_one_environment_out`.

    Returns
    -------
    Path
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
    >>> path = tolerance_path(tree, data.X, data.y, data.environments, [None, 0.01])
    >>> [len(each.aucs) for each in path.points]
    [4, 4]
    """
    if not (hasattr(estimator, "tolerance_path") and hasattr(estimator, "prepare")):
        raise IcscmError(
            f"estimator must be an InvariantTreeClassifier; got {type(estimator).__name__}"
        )
    started = time.perf_counter()
    cohort = folds.make_cohort(X, y, environments, groups)
    held_out = folds.leave_out_environments(estimator, cohort)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns, once
        samples = cohort.open(estimator.prepare())
        path = compute_tolerance_path(samples.source, estimator.make_settings(samples), tolerances)
        trees = [clone(estimator).set_params(tolerance=each.value) for each in path.points]
        aucs = []  # (environment, tolerance)
        for label, train, test in held_out:
            found = folds.fit_and_score(trees, train, test, {"auc": "auc"}, CONTEXT.format(label))
            aucs.append([each.scores and each.scores["auc"] for each in found])
    points = zip(path.points, zip(*aucs, strict=True), strict=True)
    scored = tuple(replace(point, aucs=each) for point, each in points)
    return replace(path, points=scored, seconds=time.perf_counter() - started)
