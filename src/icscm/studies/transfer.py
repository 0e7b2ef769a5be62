"""Leave one environment out: does what was learned elsewhere hold where it was not learned?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm._types import Array
from icscm.estimators.base import CoverClassifier
from icscm.exceptions import IcscmError
from icscm.model.learner import check_learner
from icscm.parameters import check_matplotlib
from icscm.showing import Shown, Told, tell_frame
from icscm.tables.columns import count_rows, take_rows
from icscm.tables.environments import encode_environments
from icscm.tables.intake import read_table
from icscm.tables.labels import check_labels

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class HeldOutEnvironment:
    """What was learned without one environment, and how it does there.

    Attributes
    ----------
    environment, n_samples : label, int
        The environment held out, and its rows.
    accuracy, error, majority_accuracy : float
        There: of the model, 1 less that, and of always saying the class that is more frequent in
        the other environments, which a model has to beat.
    training_accuracy, model : float, str
        Accuracy where the model was learned, and the model.
    """

    environment: Any
    n_samples: int
    accuracy: float
    error: float
    majority_accuracy: float
    training_accuracy: float
    model: str


@dataclass(frozen=True, repr=False)
class Transfer(Shown):
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

    def _tell(self) -> Told:
        accuracies = f"{self.mean_accuracy:.1%} on average, {self.worst_accuracy:.1%} at worst"
        return tell_frame(f"Accuracy in environments held out: {accuracies}", self.to_frame())

    def to_frame(self) -> pandas.DataFrame:
        """A row for each environment held out."""
        import pandas

        return pandas.DataFrame([asdict(each) for each in self.held_out])

    def plot(self) -> Figure:
        """Accuracy in each environment held out, beside that where the model was learned."""
        check_matplotlib()
        from icscm.report.notebooks import NotebookFigure as NewFigure

        places = np.arange(len(self.held_out))
        figure = NewFigure(figsize=(7.0, 1.6 + 0.45 * len(places)), layout="constrained")
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


def leave_one_environment_out(
    estimator: CoverClassifier, X: Any, y: Any, environments: Any
) -> Transfer:
    """Learn without each environment in turn and score what was learned on it.

    `SCMClassifier` needs two environments, `ICSCMClassifier` three: of two, one would remain and
    its invariance could not be tested. All that is learned, thresholds included, comes from
    the other environments.

    Parameters
    ----------
    estimator : SCMClassifier or ICSCMClassifier
        What to learn with; it is not changed.
    X, y, environments : as for `fit`
        The samples.

    Returns
    -------
    Transfer
        Accuracies and models; `to_frame()` and `plot()` show them.

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
    """
    check_learner(estimator)
    rows = read_table(X).rows
    n_rows = count_rows(rows)
    codes, classes = check_labels(y, n_rows)
    numbers, labels = encode_environments(environments, n_rows)
    _check_enough(estimator, labels)
    samples = (rows, classes[codes], numbers, labels)
    return Transfer(tuple(_hold_out(clone(estimator), *samples, k) for k in range(len(labels))))


def _check_enough(estimator: CoverClassifier, labels: tuple[Any, ...]) -> None:
    least = 3 if estimator.tests_invariance else 2
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
    learner: CoverClassifier,
    X: Any,
    y: Array,
    numbers: NDArray[np.int64],
    labels: Sequence[Any],
    out: int,
) -> HeldOutEnvironment:
    """Learn without environment number `out` and score on it."""
    inside, outside = np.flatnonzero(numbers != out), np.flatnonzero(numbers == out)
    X_inside, y_inside = take_rows(X, inside), y[inside]
    try:
        learner.fit(X_inside, y_inside, environments=[labels[k] for k in numbers[inside]])
    except IcscmError as error:
        raise IcscmError(f"cannot learn without environment {labels[out]!r}: {error}") from None
    accuracy = float(learner.score(take_rows(X, outside), y[outside]))
    is_positive = y_inside == learner.classes_[1]
    majority = learner.classes_[int(2 * is_positive.sum() > len(is_positive))]
    return HeldOutEnvironment(
        environment=labels[out],
        n_samples=len(outside),
        accuracy=accuracy,
        error=1.0 - accuracy,
        majority_accuracy=float(np.mean(y[outside] == majority)),
        training_accuracy=float(learner.score(X_inside, y_inside)),
        model=str(learner.model_),
    )
