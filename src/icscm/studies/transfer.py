"""Leave one environment out: does what was learned elsewhere hold where it was not learned?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm.estimators.base import CoverClassifier
from icscm.exceptions import IcscmError
from icscm.model.learner import check_learner
from icscm.parameters import check_matplotlib
from icscm.tables.columns import count_rows, is_frame, open_frame
from icscm.tables.environments import encode_environments
from icscm.tables.intake import read_table
from icscm.tables.labels import check_labels

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class HeldOutEnvironment:
    """What was learned without one environment, and how it does there.

    `majority_accuracy` is that of always saying the class more frequent in the other
    environments: what a model has to beat.
    """

    environment: Any
    n_samples: int
    accuracy: float
    error: float
    majority_accuracy: float
    training_accuracy: float
    model: str


@dataclass(frozen=True)
class Transfer:
    """One entry for each environment, in their order; see `leave_one_environment_out`."""

    held_out: tuple[HeldOutEnvironment, ...]

    @property
    def mean_accuracy(self) -> float:
        """Average over environments, whatever their sizes."""
        return float(np.mean([each.accuracy for each in self.held_out]))

    @property
    def worst_accuracy(self) -> float:
        """Accuracy in the environment that came off worst."""
        return min(each.accuracy for each in self.held_out)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each environment held out."""
        import pandas

        return pandas.DataFrame([asdict(each) for each in self.held_out])

    def plot(self) -> Figure:
        """Accuracy in each environment held out, beside that where the model was learned."""
        check_matplotlib()
        from matplotlib.figure import Figure as NewFigure

        places = np.arange(len(self.held_out))
        figure = NewFigure(figsize=(7.0, 1.6 + 0.45 * len(places)), layout="constrained")
        axes = figure.subplots()
        axes.barh(places, [e.accuracy for e in self.held_out], color="#9db7d8", height=0.6)
        for name, marker, size, label in _MARKS:
            values = [getattr(each, name) for each in self.held_out]
            axes.plot(values, places, marker, color="black", markersize=size, label=label)
        names = [f"{each.environment} (n = {each.n_samples:,})" for each in self.held_out]
        axes.set_yticks(places, labels=names)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("accuracy in the environment held out")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return figure


_MARKS = (
    ("training_accuracy", "|", 16, "where it was learned"),
    ("majority_accuracy", ".", 9, "always the more frequent class"),
)


def leave_one_environment_out(
    estimator: CoverClassifier, X: Any, y: Any, environments: Any
) -> Transfer:
    """Learn without each environment in turn and score what was learned on it.

    `SCMClassifier` needs two environments, `ICSCMClassifier` three: of two, one would remain and
    its invariance could not be tested. All that is learned, thresholds included, comes from
    the other environments. `estimator` is not changed.

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
    samples = _Samples(rows, classes[codes], numbers)
    return Transfer(
        tuple(_hold_out(clone(estimator), samples, labels, number) for number in range(len(labels)))
    )


class _Samples(NamedTuple):
    """Rows of a frame or an array, with what is known of each."""

    X: Any
    y: NDArray[Any]
    environments: NDArray[np.int64]

    def select(self, rows: NDArray[np.intp]) -> _Samples:
        X = _select_rows(self.X, rows) if is_frame(self.X) else self.X[rows]
        return _Samples(X, self.y[rows], self.environments[rows])


def _select_rows(frame: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of a frame of any kind, which keeps its names and types."""
    return open_frame(frame)[rows].to_native()


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
    learner: CoverClassifier, samples: _Samples, labels: tuple[Any, ...], number: int
) -> HeldOutEnvironment:
    """Learn without environment `number` and score on it."""
    is_out = samples.environments == number
    inside, outside = (samples.select(np.flatnonzero(rows)) for rows in (~is_out, is_out))
    try:
        learner.fit(inside.X, inside.y, environments=[labels[k] for k in inside.environments])
    except IcscmError as error:
        raise IcscmError(f"cannot learn without environment {labels[number]!r}: {error}") from None
    accuracy = learner.score(outside.X, outside.y)
    is_positive = inside.y == learner.classes_[1]
    majority = learner.classes_[int(2 * is_positive.sum() > len(is_positive))]
    return HeldOutEnvironment(
        environment=labels[number],
        n_samples=len(outside.y),
        accuracy=float(accuracy),
        error=1.0 - float(accuracy),
        majority_accuracy=float(np.mean(outside.y == majority)),
        training_accuracy=float(learner.score(inside.X, inside.y)),
        model=str(learner.model_),
    )
