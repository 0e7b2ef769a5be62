"""Leave one environment out: does what was learned elsewhere hold where it was not learned?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from icscm._repr import Display, DisplayMixin, display_frame
from icscm.exceptions import IcscmError
from icscm.parameters import check_matplotlib
from icscm.report.canvas import make_figure
from icscm.studies.classifiers import (
    Cohort,
    Scorer,
    Scorers,
    Scores,
    check_classifier,
    check_two_classes,
    compute_scores_of,
    find_rules,
    fit_classifier,
    make_cohort,
    name_scorers,
    predict_positive,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


# What is asked unless others are named.
DEFAULT_SCORERS = ("error", "balanced_accuracy", "auc")


@dataclass(frozen=True)
class HeldOutEnvironment:
    """What was learned without one environment, and how it does there.

    Attributes
    ----------
    environment, n_samples : label, int
        The environment held out, and its rows.
    scores : dict
        There: what each scorer gave, None where it has no value, such as an AUC of one class.
    accuracy, majority_accuracy : float
        There: of the model, and of always saying the class that is more frequent in the other
        environments, which a model has to beat.
    training_accuracy, model : float, str or None
        Accuracy where the model was learned, and its rules; None of other classifiers.
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
        """Share of wrong predictions in the environment held out."""
        return 1.0 - self.accuracy


@dataclass(frozen=True, repr=False)
class Transfer(DisplayMixin):
    """What holds elsewhere; see `leave_one_environment_out`.

    Attributes
    ----------
    held_out : tuple of HeldOutEnvironment
        One for each environment, in their order.
    """

    held_out: tuple[HeldOutEnvironment, ...]

    @property
    def mean_accuracy(self) -> float:
        """Average over environments, whatever their sizes."""
        return float(np.mean([each.accuracy for each in self.held_out]))

    @property
    def worst_accuracy(self) -> float:
        """Accuracy in the environment that came off worst."""
        return min(each.accuracy for each in self.held_out)

    @property
    def mean_scores(self) -> Scores:
        """Of each scorer the average over the environments in which it has a value."""
        return average([each.scores for each in self.held_out])

    def _display(self) -> Display:
        accuracies = f"{self.mean_accuracy:.1%} on average, {self.worst_accuracy:.1%} at worst"
        return display_frame(f"Accuracy in environments held out: {accuracies}", self.to_frame())

    def to_frame(self) -> pandas.DataFrame:
        """A row for each environment held out, a column for each scorer."""
        import pandas

        names = "accuracy", "majority_accuracy", "training_accuracy", "model"
        return pandas.DataFrame(
            {"environment": each.environment, "n_samples": each.n_samples}
            | each.scores
            | {name: getattr(each, name) for name in names}
            for each in self.held_out
        )

    def plot(self) -> Figure:
        """Accuracy in each environment held out, beside that where the model was learned."""
        check_matplotlib()
        places = np.arange(len(self.held_out))
        height = 1.6 + 0.45 * len(places)
        figure = make_figure((7.0, height), is_registered=True, layout="constrained")
        axes = figure.subplots()
        axes.barh(places, [e.accuracy for e in self.held_out], color="#9db7d8", height=0.6)
        for name, marker, size, label in (
            ("training_accuracy", "|", 16, "where it was learned"),
            ("majority_accuracy", ".", 9, "always the more frequent class"),
        ):
            values = [getattr(each, name) for each in self.held_out]
            axes.plot(values, places, marker, color="black", markersize=size, label=label)
        names = [f"{each.environment} (n = {each.n_samples:,})" for each in self.held_out]
        axes.set_yticks(places, labels=names)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("accuracy in the environment held out")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return figure


def average(scores: Sequence[Scores]) -> Scores:
    """Of each scorer the mean of its values; None where it has none."""
    values = {name: [each[name] for each in scores] for name in scores[0]}
    known = {name: [v for v in each if v is not None] for name, each in values.items()}
    return {name: float(np.mean(each)) if each else None for name, each in known.items()}


def leave_one_environment_out(
    estimator: Any, X: Any, y: Any, environments: Any, scorers: Scorers = DEFAULT_SCORERS
) -> Transfer:
    """Learn without each environment in turn and score what was learned on it.

    Any classifier needs two environments, `ICSCMClassifier` three: of two, one would remain and
    its invariance could not be tested. All that is learned, thresholds included, comes from
    the other environments. Environments are passed to `fit` where it takes them: in a pipeline
    to the steps that do, and with scikit-learn's metadata routing to those that request them.

    Parameters
    ----------
    estimator : classifier
        What to learn with: any of scikit-learn's form, pipelines too; it is not changed.
    X : array or frame of shape (n_samples, n_features)
        The features, handed to the estimator as they are.
    y, environments : as for `ICSCMClassifier.fit`
        Labels of two classes, and where each sample comes from.
    scorers : sequence or dict, default=("error", "balanced_accuracy", "auc")
        What to compute on the environment left out. By name: those, "sensitivity",
        "specificity", "ppv", "npv", "brier", "log_loss", or scikit-learn's names; or functions of
        (fitted estimator, X, y), such as its scorers. A dict gives them names.

    Returns
    -------
    Transfer
        Scores and models; `to_frame()` and `plot()` show them.

    Raises
    ------
    IcscmError
        Where there are too few environments, or a class is absent without one of them.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> learner = ICSCMClassifier(search="exhaustive", alpha="auto")
    >>> found = leave_one_environment_out(learner, data.X, data.y, data.environments)
    >>> found.to_frame()["model"].tolist()
    ['A2 > 0 and A1 > 0', 'A1 > 0 and A2 > 0', 'A1 > 0 and A2 > 0']

    Others are judged alike:

    >>> from sklearn.linear_model import LogisticRegression
    >>> found = leave_one_environment_out(LogisticRegression(), *data[:3], scorers=["auc"])
    >>> print(f"{found.mean_scores['auc']:.2f}")
    0.99
    """
    check_classifier(estimator)
    named = name_scorers(scorers)
    cohort = make_cohort(X, y, environments)
    check_enough(estimator, cohort.labels)
    places = range(len(cohort.labels))
    return Transfer(tuple(_hold_out(clone(estimator), cohort, named, k) for k in places))


def check_enough(estimator: Any, labels: tuple[Any, ...]) -> None:
    """Raise unless something can be learned, and compared, without one of the environments."""
    least = 3 if getattr(estimator, "tests_invariance", False) else 2
    if len(labels) >= least:
        return
    why = "without one of them" + (
        " there is a single one left, in which invariance cannot be tested"
        if len(labels) == 2
        else " nothing is left to learn from"
    )
    raise IcscmError(
        f"leaving one environment out needs at least {least} of them for "
        f"{type(estimator).__name__}; environments holds {len(labels)}, and {why}"
    )


def _hold_out(
    estimator: Any, cohort: Cohort, scorers: Mapping[str, Scorer], out: int
) -> HeldOutEnvironment:
    """Learn without environment number `out` and score on it."""
    name = cohort.labels[out]
    inside, outside = cohort.part(out)
    try:
        check_two_classes(inside)
        fit_classifier(estimator, inside)
    except IcscmError as error:
        raise IcscmError(f"cannot learn without environment {name!r}: {error}") from None
    accuracy, training_accuracy = (
        float((predict_positive(estimator, each) == each.is_positive).mean())
        for each in (outside, inside)
    )
    majority = 2 * inside.is_positive.sum() > len(inside.y)
    return HeldOutEnvironment(
        environment=name,
        n_samples=len(outside.y),
        scores=compute_scores_of(estimator, outside, scorers),
        accuracy=accuracy,
        majority_accuracy=float(np.mean(outside.is_positive == majority)),
        training_accuracy=training_accuracy,
        model=find_rules(estimator),
    )
