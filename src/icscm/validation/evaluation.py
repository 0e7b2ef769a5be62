"""External validation: the performance of a fitted model on new rows.

The calibration curve is a local linear regression of the label on the probability, weighted by the
tricube of the distance (lowess without robustness steps, Austin and Steyerberg 2014). Each point
uses three quarters of the rows, and a smaller share, by the fifth root, of more than 1,000.

The net benefit of a decision at threshold t is TP/n - FP/n * t / (1 - t): a false positive costs
t / (1 - t) times what a true positive gains (Vickers and Elkin 2006).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._types import BoolArray, FloatArray
from icscm.formatting import as_text, make_plain
from icscm.model.saved import make_label
from icscm.progress import track
from icscm.report.formatting import Plain
from icscm.report.page import make_frame
from icscm.report.validation import draw_validation, render_page_of, render_text
from icscm.report.wording import evaluation as wording
from icscm.tables.labels import find_series_names
from icscm.validation import scores as metrics
from icscm.validation.predictions import Predicted, predict_rows
from icscm.validation.scores import PROBABILITY_METRICS, TITLES, LeafCalibration, Score

if TYPE_CHECKING:
    from icscm.drawing import Figure

# Points of a curve, groups of rows of similar probability that it is computed from, and rows of the
# rarer class below which an environment has no calibration curve of its own.
N_POINTS, _N_BINS, _N_LEAST = 50, 500, 10
# Thresholds of the decision curve: these, but none beyond 99% of the probabilities.
LOWEST, HIGHEST, _QUANTILE = 0.01, 0.5, 0.99

Points = tuple[tuple[float, float], ...]

_UNDEFINED = Score(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Performance:
    """Scores of a model and of the majority-class baseline in one environment, or overall.

    Attributes
    ----------
    environment, n_samples, n_positive : label or None, int, int
        None for all samples; rows, and those of the positive class.
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
    >>> found = evaluate(learner, data.X, data.y, environments=data.environments)
    >>> found.verdict, found.overall.n_samples, [each.environment for each in found.environments]
    ('better', 2000, [0, 1])
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
            baseline_class=self._name(self.baseline),
            baseline_is_of_training=self.baseline_from == "training",
        )

    def _describe_threshold(self) -> str:
        if self.threshold is None:
            return "by the model's own predictions"
        return f"at threshold {self.threshold:.3g}"

    def _name(self, label: Any) -> str:
        return f"{as_text(self.target)} = " * (self.target is not None) + as_text(label)

    def to_frame(self) -> pd.DataFrame:
        """A row for all samples and one for each environment.

        Returns
        -------
        pandas.DataFrame
            `error`, `error_low`, `error_high`, `error_baseline` and so on for each metric; NaN
            where it is undefined.
        """
        rows, places = [], (self.overall, *self.environments)
        for place in places:
            names = "environment", "n_samples", "n_positive", "is_new"
            row: Plain = {name: getattr(place, name) for name in names}
            for name in TITLES:
                found, other = (s[name] or _UNDEFINED for s in (place.scores, place.baseline))
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                row[f"{name}_baseline"] = other.value
            rows.append(row)
        # as objects: None among numbers would turn them to floats
        labels = pd.Series([each.environment for each in places], dtype=object)
        return pd.DataFrame(rows).assign(environment=labels)

    def to_decision_frame(self) -> pd.DataFrame:
        """The decision curve: a row for each threshold, of all samples and of each environment.

        Returns
        -------
        pandas.DataFrame
            `environment` (None for all samples), `threshold`, and the `net_benefit` of the model
            and of treating all rows, `treat_all`; that of treating none is 0.
        """
        rows = [
            (place.environment, *each)
            for place in (self.overall, *self.environments)
            for each in zip(self.thresholds, place.net_benefit, place.treat_all, strict=True)
        ]
        return pd.DataFrame(rows, columns=["environment", "threshold", "net_benefit", "treat_all"])

    def to_dict(self) -> Plain:
        """The whole evaluation.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        own = {"headline": self.headline, **asdict(self), "positive": self._name(self.classes[1])}
        measures = {name: TITLES[name] for name in dict.fromkeys((*PROBABILITY_METRICS, *TITLES))}
        own |= {"measures": measures, "correction": "holm", "alpha": metrics.ALPHA}
        own["at"] = self._describe_threshold()
        return make_plain(own, str)  # type: ignore[no-any-return]

    def plot(self) -> "Figure":
        """Calibration, decision curve, AUC by environment, and each leaf's rate with training.

        Returns
        -------
        icscm.drawing.Figure
            Thin lines are environments; dots have 95% intervals, circles are rates of training.
        """
        return draw_validation(self.to_dict())

    def to_html(self) -> str:
        """A page with all results.

        Returns
        -------
        str
            Self-contained HTML.
        """
        return render_page_of(self.to_dict())

    def __repr__(self) -> str:
        return render_text(self.to_dict())

    def _repr_html_(self) -> str:
        return make_frame(self.headline, self.to_html())


@data_by_name
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    groups: Any = None,
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
    >>> found = evaluate(learner, new.X, new.y, environments=new.environments)
    >>> found.verdict, [each.has_moved for each in found.leaves]
    ('better', [False, False, False])
    """
    found = predict_rows(model, X, y, environments=environments, groups=groups, threshold=threshold)
    rows, majority = found.rows, found.majority
    is_positive = rows.is_positive
    cuts = None if found.probability is None else choose_thresholds(found.probability)
    labels = track(enumerate(rows.labels), len(rows.labels))
    places = [_measure(found, e, rows.numbers == k, cuts) for k, e in labels]
    # rows without environments are treated as one new environment
    new = [(k, each.environment) for k, each in enumerate(places) if each.is_new]
    new = new if rows.labels else [(0, None)]
    losses: tuple[Any, Any] = found.predicted != is_positive, is_positive != majority
    if found.probability is not None:
        losses = (is_positive - found.probability) ** 2, (is_positive - found.rate) ** 2
    overall = _measure(found, None, np.ones(len(is_positive), dtype=np.bool_), cuts)
    of_rows = [
        *wording.note_single_classes(overall, places, found.classes),
        *wording.note_no_better(places, has_probabilities=found.probability is not None),
        *wording.note_new_environments(places),
    ]
    verdict, p_value = metrics.compare_losses(*losses, rows.groups)
    rates = is_positive, rows.numbers, new, rows.groups
    leaves = () if found.leaves is None else metrics.calibrate(found.own, found.leaves, *rates)
    return Evaluation(
        model=found.name,
        classes=found.classes,
        baseline=found.classes[majority],
        baseline_from="these data" if found.own is None else "training",
        verdict=verdict,
        p_value=p_value,
        overall=overall,
        environments=tuple(places),
        leaves=leaves,
        notes=(*found.notes, *of_rows),
        **find_series_names(y, environments),
        threshold=found.threshold,
        thresholds=() if cuts is None else tuple(cuts.tolist()),
    )


def _measure(
    found: Predicted, label: Any, wanted: BoolArray, cuts: FloatArray | None
) -> Performance:
    """The performance in an environment, or with the label None in all rows."""
    truth, n = found.rows.is_positive[wanted], int(wanted.sum())
    p = None if found.probability is None else found.probability[wanted]
    groups = None if found.rows.groups is None else found.rows.groups[wanted]
    constant = np.full(n, found.majority), np.full(n, found.rate)
    known = None if label is None else found.known
    return Performance(
        environment=label,
        n_samples=n,
        n_positive=int(truth.sum()),
        is_new=None if known is None else make_label(label) not in known,
        scores=metrics.compute_scores(truth, found.predicted[wanted], p, groups),
        baseline=metrics.compute_scores(truth, *constant, groups),
        **({} if p is None or cuts is None else compute_curves(truth, p, cuts)),
    )


def compute_curves(is_positive: BoolArray, p: FloatArray, cuts: FloatArray) -> dict[str, Any]:
    """The calibration curve and, at these thresholds, the net benefit and that of treating all."""
    curves: dict[str, Any] = {"calibration_curve": compute_calibration_curve(is_positive, p)}
    for name, chance in (("net_benefit", p), ("treat_all", np.ones(len(p)))):
        curves[name] = tuple(compute_net_benefit(is_positive, chance, cuts).tolist())
    return curves


def compute_calibration_curve(is_positive: BoolArray, probability: FloatArray) -> Points:
    """Pairs of probability and smoothed rate of positives; empty with too few rows of a class.

    >>> y, p = np.repeat([False, True, False, True], 20), np.repeat([0.2, 0.8], 40)
    >>> [tuple(map(round, each, (1, 1))) for each in compute_calibration_curve(y, p)]
    [(0.2, 0.5), (0.8, 0.5)]
    """
    n = len(is_positive)
    if min(is_positive.sum(), n - is_positive.sum()) < _N_LEAST:
        return ()
    # rows of equal probability are one group, or else of neighbouring quantiles
    edges = np.unique(probability)
    if len(edges) > _N_BINS:
        ends = np.linspace(0, 1, _N_BINS)
        edges = np.unique(np.quantile(probability, ends, method="inverted_cdf"))
    numbers = np.searchsorted(edges, probability)
    sizes = np.bincount(numbers).astype(np.float64)
    positives, total = (np.bincount(numbers, each) for each in (is_positive, probability))
    values, rates = total / sizes, positives / sizes
    ends = np.linspace(0.01, 0.99, N_POINTS)
    grid = np.unique(np.quantile(probability, ends, method="inverted_cdf"))
    distance = np.abs(grid[:, np.newaxis] - values)  # (point, group)
    order = np.argsort(distance, axis=1)
    n_near = 0.75 * n * min(1.0, (1000 / n) ** 0.2)
    last = (np.cumsum(sizes[order], axis=1) < n_near).sum(axis=1)
    reach = np.take_along_axis(distance, order, axis=1)[np.arange(len(grid)), last]
    # slightly wider, so that the last group has a weight
    reach = np.maximum(1.001 * reach, 1e-9)[:, np.newaxis]
    weights = np.maximum(1 - (distance / reach) ** 3, 0) ** 3 * sizes
    weights /= weights.sum(axis=1, keepdims=True)
    centre, level = weights @ values, weights @ rates
    off = values - centre[:, np.newaxis]
    spread = (weights * off**2).sum(axis=1)
    slope = (weights * off) @ rates / np.where(spread > 1e-9 * reach[:, 0] ** 2, spread, np.inf)
    observed = np.clip(level + slope * (grid - centre), 0, 1)
    return tuple(zip(grid.tolist(), observed.tolist(), strict=True))


def choose_thresholds(probability: FloatArray) -> FloatArray:
    """Thresholds of a decision curve, evenly spaced over the range that is stated with it."""
    high = float(np.clip(np.quantile(probability, _QUANTILE), 1e-6, HIGHEST))
    return np.asarray(np.linspace(min(LOWEST, high / 10), high, N_POINTS))


def compute_net_benefit(
    is_positive: BoolArray, probability: FloatArray, thresholds: Sequence[float] | FloatArray
) -> FloatArray:
    """Net benefit, per row, of treating the rows whose probability is at least the threshold.

    >>> y, p = np.array([True, False, True, False]), np.array([0.9, 0.6, 0.4, 0.1])
    >>> compute_net_benefit(y, p, [0.05, 0.5]).round(3).tolist()
    [0.474, 0.0]
    """
    t = np.asarray(thresholds, dtype=np.float64)
    n_true, n_false = (
        np.count_nonzero(own) - np.searchsorted(np.sort(probability[own]), t)
        for own in (is_positive, ~is_positive)
    )
    return np.asarray((n_true - n_false * t / (1 - t)) / len(is_positive))
