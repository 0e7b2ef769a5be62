"""Leave-one-environment-out: the performance of a classifier in environments held out."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._lazy import special
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.drawing import Figure
from icscm.drawing.axes import Scale, make_number_axis
from icscm.drawing.columns import PlotColumn, draw_columns
from icscm.drawing.intervals import Background, IntervalRow, RowKind, draw_row
from icscm.drawing.shapes import Shape
from icscm.exceptions import IcscmWarning
from icscm.formatting import as_text, make_plain
from icscm.progress import track
from icscm.report.formatting import Plain
from icscm.report.wording.validation import describe_validation
from icscm.stats.random_effects import pool_effects
from icscm.validation.cohort import make_cohort
from icscm.validation.curves import Points, choose_thresholds, compute_curves
from icscm.validation.fitting import (
    FoldScores,
    Scorers,
    Values,
    average_values,
    check_classifier,
    describe_estimator,
    fit_fold,
    get_values,
    name_scorers,
    score_fold,
)
from icscm.validation.folds import check_environments, leave_out_environments
from icscm.validation.scores import METRICS, Score, Z

DEFAULT_SCORERS = ("auc", "slope", "intercept", "brier", "skill")
# Metrics that are drawn, and the value without discrimination, skill or need for recalibration.
_DRAWN = {"auc": 0.5, "slope": 1.0, "intercept": 0.0, "skill": 0.0}
# What the values of a metric cannot exceed.
_LIMITS = {"auc": (0.0, 1.0)}
# Standard errors below this share of the largest would give an environment all of the weight.
_MIN_ERROR_SHARE = 0.1


@dataclass(frozen=True)
class HeldOutEnvironment:
    """A classifier trained without one environment, and its performance there.

    Attributes
    ----------
    environment, n_samples, n_positive : label, int, int
        The environment held out, its number of rows, and those of the positive class.
    scores : dict of Score or None
        Each score there with its 95% interval (NaN for functions), None where it is undefined,
        such as an AUC of one class.
    model : str or None
        The rules, or the size of a tree or forest; None for other classifiers.
    calibration_curve, net_benefit, treat_all : tuple
        As of `Performance` in `icscm.validation.evaluation`; empty without probabilities.
    """

    environment: Any
    n_samples: int
    n_positive: int
    scores: dict[str, Score | None]
    model: str | None
    calibration_curve: Points = ()
    net_benefit: tuple[float, ...] = ()
    treat_all: tuple[float, ...] = ()

    def to_row(self) -> Plain:
        """The row of `Validation.to_frame`."""
        row: Plain = {
            "environment": self.environment,
            "n_samples": self.n_samples,
            "n_positive": self.n_positive,
        }
        for name, score in self.scores.items():
            row[name] = np.nan if score is None else score.value
            row[f"{name}_low"] = np.nan if score is None else score.low
            row[f"{name}_high"] = np.nan if score is None else score.high
        row["model"] = self.model
        return row


@dataclass(frozen=True)
class PooledScore(Score):
    """The random-effects mean of a score over environments, with its 95% interval.

    Attributes
    ----------
    value, low, high : float
        The mean and its interval (Hartung and Knapp); of an AUC computed on the scale of log odds.
    new_low, new_high : float
        95% prediction interval for a new environment; NaN with fewer than three.
    tau, n_environments : float, int
        Standard deviation between environments (of an AUC, of its log odds), and how many of
        them have the score.
    """

    new_low: float
    new_high: float
    tau: float
    n_environments: int


@dataclass(frozen=True, repr=False)
class Validation(DisplayMixin):
    """Performance in held-out environments; see `leave_one_environment_out`.

    Attributes
    ----------
    held_out : tuple of HeldOutEnvironment
        One for each environment, in their order.
    thresholds : tuple of float
        Those of the decision curves, in order; empty without probabilities.
    overall : dict
        The `calibration_curve`, `net_benefit` and `treat_all` of all samples together, each
        predicted by the model that was trained without its environment.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from icscm import leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, n_environments=3, random_state=1)
    >>> found = leave_one_environment_out(
    ...     LogisticRegression(), data.X, data.y, environments=data.environments, scorers=["auc"]
    ... )
    >>> found.to_frame()["n_samples"].tolist(), found.pooled["auc"].n_environments
    ([1000, 1000, 1000], 3)
    """

    held_out: tuple[HeldOutEnvironment, ...]
    thresholds: tuple[float, ...] = ()
    overall: dict[str, Any] = field(default_factory=dict)

    @property
    def pooled(self) -> dict[str, PooledScore | None]:
        """The random-effects mean of each score; None where it is undefined or has no interval."""
        names = self.held_out[0].scores
        return {name: _pool(name, [each.scores[name] for each in self.held_out]) for name in names}

    @property
    def mean_scores(self) -> Values:
        """The unweighted mean of each score over the environments in which it is defined."""
        values = [get_values(environment.scores) for environment in self.held_out]
        return average_values(values, names=values[0])

    def _display(self) -> Display:
        shown = self.to_frame()[["environment", "n_samples", *self.held_out[0].scores]]
        lines = [fill(line, 100, subsequent_indent="  ") for line in self.to_dict()["lines"]]
        return display_frame("\n".join(lines), shown)

    def to_frame(self) -> pd.DataFrame:
        """A row for each environment held out.

        Returns
        -------
        pandas.DataFrame
            `auc`, `auc_low`, `auc_high` and so on for each score, NaN where it is undefined.
        """
        return pd.DataFrame([environment.to_row() for environment in self.held_out])

    def to_dict(self) -> Plain:
        """The whole result, with the sentences of a report.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        pooled = self.pooled
        titles = {name: METRICS.get(name, name) for name in pooled}
        environments = [
            {**asdict(environment), "environment": as_text(environment.environment)}
            for environment in self.held_out
        ]
        plain: Plain = make_plain(
            {
                "titles": titles,
                "environments": environments,
                "pooled": {name: score and asdict(score) for name, score in pooled.items()},
                "thresholds": self.thresholds,
                "overall": self.overall,
            },
            str,
        )
        lines = describe_validation(pooled, titles, n_environments=len(self.held_out))
        return {"lines": lines, **plain}

    def plot(self) -> Figure:
        """Forest plots: each environment, the pooled score and the prediction interval.

        Returns
        -------
        icscm.drawing.Figure
            A panel each for AUC, calibration slope and intercept and Brier skill.
        """
        names = [f"{as_text(each.environment)} (n = {each.n_samples:,})" for each in self.held_out]
        columns = [
            self._make_column(name, pooled)
            for name, pooled in self.pooled.items()
            if pooled is not None and name in _DRAWN
        ]
        panel = draw_columns([*names, "random effects", "new environment"], columns, _draw_row)
        return Figure(panel, "Scores in each environment left out, pooled, and in a new one.")

    def _make_column(self, name: str, pooled: PooledScore) -> PlotColumn[IntervalRow]:
        """Make the forest plot of a score; its axis does not follow very wide intervals."""
        scores = [each.scores[name] for each in self.held_out]
        guide = _DRAWN[name]
        known = [guide, *(score.value for score in scores if score is not None)]
        room = 0.1 + max(known) - min(known)
        lowest, highest = _LIMITS.get(name, (-np.inf, np.inf))
        low = max(min(known) - room, lowest)
        high = min(max(known) + room, highest)
        return PlotColumn(
            title=METRICS[name],
            note="95% intervals; cut at edges",
            axis=make_number_axis(low, high),
            background=Background(guide=guide),
            rows=[*map(_make_row, scores), *_make_pooled_rows(pooled)],
        )


def _make_row(score: Score | None) -> IntervalRow:
    """Make the row of an environment; it is empty where the score is undefined."""
    if score is None:
        return IntervalRow("", None, None)
    return IntervalRow("", score.value, _keep_finite(score.low, score.high))


def _make_pooled_rows(pooled: PooledScore) -> Sequence[IntervalRow]:
    """Make the rows of the random-effects mean and of a new environment."""
    interval = _keep_finite(pooled.low, pooled.high)
    prediction = _keep_finite(pooled.new_low, pooled.new_high)
    return [
        IntervalRow("", pooled.value, interval, RowKind.POOLED),
        IntervalRow("", None, prediction, RowKind.PREDICTION),
    ]


def _keep_finite(low: float, high: float) -> tuple[float, float] | None:
    return (low, high) if np.isfinite([low, high]).all() else None


def _draw_row(row: IntervalRow, scale: Scale, y: float) -> Sequence[Shape]:
    return draw_row(row, scale, y=y)


def _pool(name: str, scores: Sequence[Score | None]) -> PooledScore | None:
    """Pool a score by random effects, over the environments in which it is defined.

    An AUC is pooled on the scale of log odds. With two environments there is a mean, but intervals
    would be extremely wide, so they are NaN.
    """
    to_effect, to_value = (special.logit, special.expit) if name == "auc" else (float, float)
    effects = np.full(len(scores), np.nan)
    errors = np.full(len(scores), np.nan)
    for position, score in enumerate(scores):
        if score is None:
            continue
        centre = score.value
        if name == "auc" and centre in (0, 1):  # which have no log odds
            centre = (score.low + score.high) / 2
        effects[position] = to_effect(centre)
        errors[position] = _find_standard_error(score, centre, to_effect)

    n_environments = int(np.isfinite(effects + errors).sum())
    smallest_error = 0.0
    if n_environments:
        smallest_error = max(_MIN_ERROR_SHARE * np.nanmax(errors), 1e-6)
    pooled = pool_effects(effects, np.maximum(errors, smallest_error))
    if pooled is None:
        return None
    undefined = np.nan, np.nan
    has_intervals = n_environments > 2
    confidence = pooled.confidence if has_intervals and pooled.confidence else undefined
    prediction = pooled.interval if has_intervals and pooled.interval else undefined
    return PooledScore(
        value=float(to_value(pooled.mean)),
        low=float(to_value(confidence[0])),
        high=float(to_value(confidence[1])),
        new_low=float(to_value(prediction[0])),
        new_high=float(to_value(prediction[1])),
        tau=pooled.tau,
        n_environments=n_environments,
    )


def _find_standard_error(score: Score, centre: float, to_effect: Callable[[float], float]) -> float:
    """Return the standard error that the longer finite side of an interval stands for."""
    sides = [abs(to_effect(end) - to_effect(centre)) for end in (score.low, score.high)]
    return max((side for side in sides if np.isfinite(side)), default=np.nan) / Z


@data_by_name
def leave_one_environment_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    environments: Any,
    scorers: Scorers = DEFAULT_SCORERS,
    groups: Any = None,
) -> Validation:
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
    scorers : sequence or dict, default=("auc", "slope", "intercept", "brier", "skill")
        Scores to compute on the held-out environment: AUC, slope and intercept of calibration,
        Brier score, and by which share that is below the Brier score of the training rate. By name:
        those, "log_loss", and of the predicted classes "error", "balanced_accuracy",
        "sensitivity", "specificity", "ppv", "npv", or scikit-learn's names; or functions of
        (fitted estimator, X, y), such as its scorers. A dict gives them names.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: those of a group with rows in the
        held-out environment are not trained on.

    Returns
    -------
    Validation
        Scores and models by environment and their random-effects summary (`pooled`), with
        `to_frame()`, `plot()` and `to_dict()`.

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
    >>> found = leave_one_environment_out(learner, data.X, data.y, environments=data.environments)
    >>> found.to_frame()["model"].tolist()
    ['A2 > 0 and A1 > 0', 'A1 > 0 and A2 > 0', 'A1 > 0 and A2 > 0']

    Other classifiers are evaluated in the same way:

    >>> from sklearn.linear_model import LogisticRegression
    >>> found = leave_one_environment_out(
    ...     LogisticRegression(), data.X, data.y, environments=data.environments, scorers=["auc"]
    ... )
    >>> print(f"{found.mean_scores['auc']:.2f}")
    0.99
    """
    check_classifier(estimator)
    named = name_scorers(scorers)
    cohort = make_cohort(X, y, environments=environments, groups=groups)
    check_environments(cohort, estimator, "leave-one-environment-out")
    left_out = []
    fold_scores = []
    folds = leave_out_environments(cohort)
    # the scores of an environment show what the fit without it warns of
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        for fold in track(folds, len(folds)):
            context = describe_left_out(fold.environment)
            (fitted,) = fit_fold([estimator], cohort, fold, context=context)
            scores = score_fold(fitted, cohort, fold, named)
            fold_scores.append(scores)
            left_out.append(
                HeldOutEnvironment(
                    environment=fold.environment,
                    n_samples=len(fold.test_rows),
                    n_positive=int(scores.is_positive.sum()),
                    scores=scores.scores,
                    model=describe_estimator(fitted.estimator),
                )
            )
    return _add_curves(left_out, fold_scores)


def describe_left_out(environment: Any) -> str:
    """Return what an error in learning without an environment starts with."""
    return f"cannot learn without environment {environment!r}"


def _add_curves(
    left_out: Sequence[HeldOutEnvironment], fold_scores: Sequence[FoldScores]
) -> Validation:
    """Compute the curves of each environment and of all rows, at the same thresholds."""
    probabilities = [scores.probability for scores in fold_scores if scores.probability is not None]
    if len(probabilities) < len(fold_scores):
        return Validation(tuple(left_out))
    thresholds = choose_thresholds(np.concatenate(probabilities))
    curves = [
        compute_curves(scores.is_positive, probability, thresholds)
        for scores, probability in zip(fold_scores, probabilities, strict=True)
    ]
    overall = compute_curves(
        np.concatenate([scores.is_positive for scores in fold_scores]),
        np.concatenate(probabilities),
        thresholds,
    )
    environments = zip(left_out, curves, strict=True)
    return Validation(
        held_out=tuple(replace(environment, **vars(own)) for environment, own in environments),
        thresholds=tuple(thresholds.tolist()),
        overall=vars(overall),
    )
