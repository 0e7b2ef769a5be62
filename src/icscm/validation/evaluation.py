"""External validation: the performance of a fitted model on new rows.

`scores` has the metrics, `curves` calibration and decision curves, `leaf_calibration` the rates of
leaves, `predictions` how rows and models of all kinds are read.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._types import BoolArray, FloatArray
from icscm.formatting import as_text, make_plain
from icscm.model.saved import make_label
from icscm.progress import track
from icscm.report.content.evaluation import EvaluationContent
from icscm.report.evaluation import draw_evaluation, render_evaluation_page, render_text
from icscm.report.formatting import Plain
from icscm.report.page import make_frame
from icscm.report.wording import evaluation as wording
from icscm.tables.labels import find_series_names
from icscm.validation.curves import Curves, Points, choose_thresholds, compute_curves
from icscm.validation.leaf_calibration import LeafCalibration, NewEnvironment, calibrate_leaves
from icscm.validation.predictions import Predicted, predict_rows
from icscm.validation.scores import (
    ALPHA,
    PROBABILITY_METRICS,
    TITLES,
    LossComparison,
    Score,
    compare_losses,
    compute_scores,
)

if TYPE_CHECKING:
    from icscm.drawing import Figure

_UNDEFINED = Score(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Performance:
    """Scores of a model and of the majority-class baseline in one environment, or overall.

    Attributes
    ----------
    environment, n_samples, n_positive : label or None, int, int
        None for all rows; the number of rows, and of those of the positive class.
    is_new : bool or None
        Whether the environment did not occur in training; None if unknown.
    scores, baseline : dict of Score or None, by the names of `icscm.validation.scores.TITLES`
        Of the model and of the majority-class baseline; None where a metric is undefined.
    calibration_curve : tuple of pairs
        Probability and smoothed rate of the positive class; empty where it is undefined.
    net_benefit, treat_all : tuple of float
        Net benefit of the model and of treating all rows, at `Evaluation.thresholds`.
    """

    environment: Any
    n_samples: int
    n_positive: int
    is_new: bool | None
    scores: dict[str, Score | None]
    baseline: dict[str, Score | None]
    calibration_curve: Points = ()
    net_benefit: tuple[float, ...] = ()
    treat_all: tuple[float, ...] = ()

    def to_row(self) -> Plain:
        """Return the row of `Evaluation.to_frame`, with NaN where a metric is undefined."""
        row: Plain = {
            "environment": self.environment,
            "n_samples": self.n_samples,
            "n_positive": self.n_positive,
            "is_new": self.is_new,
        }
        for name in TITLES:
            score = self.scores[name] or _UNDEFINED
            baseline = self.baseline[name] or _UNDEFINED
            row[name] = score.value
            row[f"{name}_low"] = score.low
            row[f"{name}_high"] = score.high
            row[f"{name}_baseline"] = baseline.value
        return row


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The performance of a model on new rows; see `evaluate`. Displayed in notebooks.

    Attributes
    ----------
    model, classes : str, tuple of two labels
        The rule, or the name of the classifier; the second class is the positive one.
    baseline, baseline_from : label, str
        The class that the majority-class baseline predicts, and whether it is the majority in
        `"training"` or, where that is unknown, in `"these data"`.
    verdict, p_value : str, float
        `"better"` than the baseline, `"not shown to be better"` or `"no better"`, by the Brier
        score and a paired test (level 0.05); without probabilities, by the error.
    overall, environments : Performance, tuple of Performance
        Of all rows, and of each environment; empty where none were given.
    leaves : tuple of LeafCalibration
        Of rule sets and trees; empty for other models.
    notes : tuple of str
        Remarks: new environments, absent classes, values that did not occur in training.
    target, environment, data : str or None
        Names of label, environments and rows.
    threshold : float or None
        Probability from which on rows are predicted positive, for error, sensitivity and the
        like; None where the model predicts otherwise, as rules do.
    thresholds : tuple of float
        Those of the decision curve, in order; empty without probabilities.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, evaluate
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> evaluation = evaluate(learner, data.X, data.y, environments=data.environments)
    >>> evaluation.verdict, evaluation.overall.n_samples
    ('better', 2000)
    >>> [performance.environment for performance in evaluation.environments]
    [0, 1]
    """

    model: str
    classes: tuple[Any, Any]
    baseline: Any
    baseline_from: str
    verdict: str
    p_value: float
    overall: Performance
    environments: tuple[Performance, ...] = ()
    leaves: tuple[LeafCalibration, ...] = ()
    notes: tuple[str, ...] = ()
    target: str | None = None
    environment: str | None = None
    data: str | None = None
    threshold: float | None = None
    thresholds: tuple[float, ...] = ()

    @property
    def headline(self) -> str:
        """The verdict in a sentence or two."""
        return wording.describe_evaluation(
            self.overall,
            verdict=self.verdict,
            p_value=self.p_value,
            at=self._describe_threshold(),
            baseline_class=self._name_class(self.baseline),
            baseline_is_of_training=self.baseline_from == "training",
        )

    def _describe_threshold(self) -> str:
        if self.threshold is None:
            return "by the model's own predictions"
        return f"at threshold {self.threshold:.3g}"

    def _name_class(self, label: Any) -> str:
        """Name a class, with the name of the outcome's column where it is known."""
        if self.target is None:
            return as_text(label)
        return f"{as_text(self.target)} = {as_text(label)}"

    def to_frame(self) -> pd.DataFrame:
        """Return a row for all rows together and one for each environment.

        Returns
        -------
        pandas.DataFrame
            `error`, `error_low`, `error_high`, `error_baseline` and so on for each metric; NaN
            where it is undefined.
        """
        performances = (self.overall, *self.environments)
        frame = pd.DataFrame([performance.to_row() for performance in performances])
        # as objects: None among numbers would turn them to floats
        labels = [performance.environment for performance in performances]
        return frame.assign(environment=pd.Series(labels, dtype=object))

    def to_decision_frame(self) -> pd.DataFrame:
        """Return the decision curve: a row for each threshold, overall and by environment.

        Returns
        -------
        pandas.DataFrame
            `environment` (None for all rows), `threshold`, and the `net_benefit` of the model
            and of treating all rows, `treat_all`; that of treating none is 0.
        """
        frames = []
        for performance in (self.overall, *self.environments):
            columns = {
                "threshold": self.thresholds,
                "net_benefit": performance.net_benefit,
                "treat_all": performance.treat_all,
            }
            frame = pd.DataFrame(columns, dtype=float)
            labels = pd.Series([performance.environment] * len(frame), dtype=object)
            frame.insert(0, "environment", labels)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> Plain:
        """Return the whole evaluation, as a report shows it.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        values = {
            "headline": self.headline,
            **asdict(self),
            "positive": self._name_class(self.classes[1]),
            "measures": _list_measures(),
            "correction": "holm",
            "alpha": ALPHA,
            "at": self._describe_threshold(),
        }
        plain: Plain = make_plain(values, str)
        return plain

    def make_content(self) -> EvaluationContent:
        """Return the records that a report on the evaluation shows, with names on one line."""
        by_environment = [
            replace(performance, environment=as_text(performance.environment))
            for performance in self.environments
        ]
        return EvaluationContent(
            headline=self.headline,
            model=self.model,
            positive=self._name_class(self.classes[1]),
            baseline=as_text(self.baseline),
            baseline_from=self.baseline_from,
            at=self._describe_threshold(),
            measures=_list_measures(),
            overall=self.overall,
            environments=by_environment,
            leaves=self.leaves,
            notes=self.notes,
            environment=None if self.environment is None else as_text(self.environment),
            data=None if self.data is None else as_text(self.data),
            thresholds=self.thresholds,
        )

    def plot(self) -> "Figure":
        """Draw calibration, decision curve, AUC by environment and the rates of leaves.

        Returns
        -------
        icscm.drawing.Figure
            Thin lines are environments; dots have 95% intervals, circles are rates in training.
        """
        return draw_evaluation(self.make_content())

    def to_html(self) -> str:
        """Return a page with all results.

        Returns
        -------
        str
            Self-contained HTML.
        """
        return render_evaluation_page(self.make_content())

    def __repr__(self) -> str:
        return render_text(self.make_content())

    def _repr_html_(self) -> str:
        return make_frame(self.headline, self.to_html())


def _list_measures() -> dict[str, str]:
    """Return the title of each measure, those of probabilities first."""
    return {name: TITLES[name] for name in dict.fromkeys((*PROBABILITY_METRICS, *TITLES))}


@data_by_name
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    threshold: float | str | None = None,
) -> Evaluation:
    """Evaluate a fitted model on new rows (external validation).

    Parameters
    ----------
    model : SavedModel, SCMClassifier, ICSCMClassifier or any classifier
        Fitted, for two classes. Without `predict_proba`, AUC, Brier score and log loss are
        undefined. With a `SavedModel` of `icscm fit`, environments are merged and excluded as
        they were for training.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The new rows, as for the model's `predict`.
    y : array of shape (n_samples,)
        Their true labels, among the model's classes; one class alone is allowed.
    environments : array of shape (n_samples,), optional
        The environment of each row; they need not occur in the training data.
    groups : array of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient. Intervals and tests then treat
        groups as independent, not rows.
    sample_weight : array of shape (n_samples,), optional
        Design weights, any numbers from 0 on; only their ratios matter. Rows are repeated in
        proportion, as by `fit` of our learners; intervals and tests allow for that.
    threshold : float or str, optional
        Predict positive from this probability on: a number, or `"costs=1:10"`, the costs of a
        false positive and of a false negative. By default as the model predicts.

    Returns
    -------
    Evaluation
        Scores with 95% intervals and those of the majority-class baseline, the calibration curve
        and the decision curve, overall and for each environment, and the calibration of each leaf
        of our models, with `to_frame()`, `plot()` and `to_html()`.

    Raises
    ------
    IcscmError
        If y holds labels that are not classes of the model, lengths differ, there is no row, or
        the threshold would be chosen on the rows that it is evaluated on.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, evaluate
    >>> from icscm.datasets import make_conjunction
    >>> old, new = make_conjunction(random_state=1), make_conjunction(random_state=2)
    >>> learner = ICSCMClassifier().fit(old.X, old.y, environments=old.environments)
    >>> evaluation = evaluate(learner, new.X, new.y, environments=new.environments)
    >>> evaluation.verdict, [leaf.has_moved for leaf in evaluation.leaves]
    ('better', [False, False, False])
    """
    predicted = predict_rows(
        model,
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
        threshold=threshold,
    )
    rows = predicted.rows
    has_probabilities = predicted.probability is not None
    thresholds = np.array([])
    if predicted.probability is not None:
        thresholds = choose_thresholds(predicted.probability)

    performances = []
    for code, label in track(enumerate(rows.environment_labels), len(rows.environment_labels)):
        is_in_environment = rows.environment_codes == code
        performance = _measure(predicted, is_in_environment, thresholds, environment=label)
        performances.append(performance)
    every_row = np.ones(len(rows), dtype=np.bool_)
    overall = _measure(predicted, every_row, thresholds, environment=None)

    comparison = _compare_with_baseline(predicted)
    names = find_series_names(y, environments)
    notes = [
        *predicted.notes,
        *wording.note_single_classes(overall, performances, predicted.classes),
        *wording.note_no_better(performances, has_probabilities=has_probabilities),
        *wording.note_new_environments(performances),
    ]
    return Evaluation(
        model=predicted.name,
        classes=predicted.classes,
        baseline=predicted.classes[predicted.baseline.majority],
        baseline_from=predicted.baseline.source,
        verdict=comparison.verdict,
        p_value=comparison.p_value,
        overall=overall,
        environments=tuple(performances),
        leaves=_calibrate_leaves(predicted, performances),
        notes=tuple(notes),
        target=names["target"],
        environment=names["environment"],
        threshold=predicted.threshold,
        thresholds=tuple(thresholds.tolist()),
    )


def _measure(
    predicted: Predicted,
    is_selected: BoolArray,
    thresholds: FloatArray,
    *,
    environment: Any,
) -> Performance:
    """Measure the performance in selected rows: of an environment, or of all with the label None.

    The baseline is scored on the same rows, since scores of environments with different rates are
    only comparable by what they gain on it.
    """
    rows = predicted.rows
    is_positive = rows.is_positive[is_selected]
    groups = None if rows.group_codes is None else rows.group_codes[is_selected]
    probability = None if predicted.probability is None else predicted.probability[is_selected]
    scores = compute_scores(
        is_positive, predicted.predicted[is_selected], probability, groups=groups
    )

    n_rows = len(is_positive)
    baseline = predicted.baseline
    baseline_scores = compute_scores(
        is_positive,
        np.full(n_rows, baseline.majority),
        np.full(n_rows, baseline.rate),
        groups=groups,
    )

    curves = Curves()
    if probability is not None:
        curves = compute_curves(is_positive, probability, thresholds)
    return Performance(
        environment=environment,
        n_samples=n_rows,
        n_positive=int(is_positive.sum()),
        is_new=_is_new(environment, predicted.known_environments),
        scores=scores,
        baseline=baseline_scores,
        calibration_curve=curves.calibration_curve,
        net_benefit=curves.net_benefit,
        treat_all=curves.treat_all,
    )


def _is_new(environment: Any, known_environments: set[Any] | None) -> bool | None:
    """Tell whether an environment did not occur in training; None where that is not known."""
    if environment is None or known_environments is None:
        return None
    return make_label(environment) not in known_environments


def _compare_with_baseline(predicted: Predicted) -> LossComparison:
    """Compare the Brier scores with the baseline's or, without probabilities, the errors.

    Both are means over rows, of (y - p)^2 or of whether the prediction is wrong, so that a paired
    test of the rows' differences applies.
    """
    is_positive = predicted.rows.is_positive
    groups = predicted.rows.group_codes
    baseline = predicted.baseline
    if predicted.probability is None:
        is_wrong = predicted.predicted != is_positive
        is_baseline_wrong = is_positive != baseline.majority
        return compare_losses(is_wrong, is_baseline_wrong, groups)

    squared_errors = (is_positive - predicted.probability) ** 2
    baseline_squared_errors = (is_positive - baseline.rate) ** 2
    return compare_losses(squared_errors, baseline_squared_errors, groups)


def _calibrate_leaves(
    predicted: Predicted, performances: Sequence[Performance]
) -> tuple[LeafCalibration, ...]:
    """Calibrate the leaves of a model of ours; other models have none."""
    if predicted.leaves is None:
        return ()

    rows = predicted.rows
    if rows.environment_labels:
        new_environments = [
            NewEnvironment(code, performance.environment)
            for code, performance in enumerate(performances)
            if performance.is_new
        ]
    else:  # rows without environments count as those of a new one
        new_environments = [NewEnvironment(0, None)]
    return calibrate_leaves(
        predicted.model,
        predicted.leaves,
        rows.is_positive,
        environment_codes=rows.environment_codes,
        new_environments=new_environments,
        groups=rows.group_codes,
    )
