"""Leave-one-environment-out: the performance of a classifier where it was not trained.

The classifier is fitted without each environment in turn and scored there, which says what to
expect in an environment of the future. `pooling` makes a mean of the scores.
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin, display_frame
from icscm._types import IntArray
from icscm.drawing import Figure
from icscm.exceptions import IcscmWarning
from icscm.formatting import as_text, format_name, make_plain
from icscm.progress import track
from icscm.report.formatting import Plain
from icscm.report.score_plots import draw_forest_plots
from icscm.report.wording.validation import describe_validation
from icscm.tables.outcomes import OutcomeKind
from icscm.validation.cohort import Cohort
from icscm.validation.curves import Curves, Points, choose_thresholds, compute_curves
from icscm.validation.fitting import (
    Fitted,
    FoldScores,
    Scorers,
    Values,
    average_values,
    check_classifier,
    describe_estimator,
    fit_fold,
    get_values,
    make_cohort_for,
    name_scorers,
    score_fold,
)
from icscm.validation.folds import check_environments, leave_out_environments
from icscm.validation.outcome_scores import OUTCOME_TITLES, SCORES
from icscm.validation.pooling import PooledScore, pool_score
from icscm.validation.scores import METRICS, Score

DEFAULT_SCORERS = ("auc", "slope", "intercept", "brier", "skill")


@dataclass(frozen=True)
class HeldOutEnvironment:
    """A classifier trained without one environment, and its performance there.

    Attributes
    ----------
    environment, n_samples, n_positive : label, int, int or None
        The environment left out, its number of rows, and those of the positive class; None if the
        outcome is of several classes or a number.
    scores : dict of Score or None
        Each score there with its 95% interval (NaN for functions), None where it is undefined,
        such as an AUC of one class.
    model : str or None
        The rules, or the size of a tree or forest; None for other classifiers.
    calibration_curve, net_benefit, treat_all : tuple
        As of `Performance` in `icscm.validation.evaluation`; empty without probabilities.
    dropped : tuple of columns
        Those that hold no value in the other environments, though they do in this one.
    """

    environment: Any
    n_samples: int
    n_positive: int | None
    scores: dict[str, Score | None]
    model: str | None
    calibration_curve: Points = ()
    net_benefit: tuple[float, ...] = ()
    treat_all: tuple[float, ...] = ()
    dropped: tuple[str | int, ...] = ()

    def to_row(self) -> Plain:
        """Return the row of `Validation.to_frame`, with NaN where a score is undefined."""
        row: Plain = {
            "environment": self.environment,
            "n_samples": self.n_samples,
        }
        if self.n_positive is not None:
            row["n_positive"] = self.n_positive
        for name, score in self.scores.items():
            row[name] = np.nan if score is None else score.value
            row[f"{name}_low"] = np.nan if score is None else score.low
            row[f"{name}_high"] = np.nan if score is None else score.high
        row["model"] = self.model
        return row

    def with_curves(self, curves: Curves) -> "HeldOutEnvironment":
        """Return the same scores with curves, whose thresholds depend on all environments."""
        return replace(
            self,
            calibration_curve=curves.calibration_curve,
            net_benefit=curves.net_benefit,
            treat_all=curves.treat_all,
        )


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
        The `calibration_curve`, `net_benefit` and `treat_all` of all rows together, each
        predicted by the model that was trained without its environment.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from icscm import leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, n_environments=3, random_state=1)
    >>> validation = leave_one_environment_out(
    ...     LogisticRegression(), data.X, data.y, environments=data.environments, scorers=["auc"]
    ... )
    >>> validation.to_frame()["n_samples"].tolist(), validation.pooled["auc"].n_environments
    ([1000, 1000, 1000], 3)
    """

    held_out: tuple[HeldOutEnvironment, ...]
    thresholds: tuple[float, ...] = ()
    overall: dict[str, Any] = field(default_factory=dict)

    @property
    def pooled(self) -> dict[str, PooledScore | None]:
        """The random-effects mean of each score; None where it is undefined or has no interval."""
        pooled: dict[str, PooledScore | None] = {}
        for name in self.held_out[0].scores:
            scores = [environment.scores[name] for environment in self.held_out]
            pooled[name] = pool_score(name, scores)
        return pooled

    @property
    def titles(self) -> dict[str, str]:
        """The title of each score."""
        titles = METRICS | OUTCOME_TITLES
        return {name: titles.get(name, name) for name in self.held_out[0].scores}

    @property
    def lines(self) -> list[str]:
        """The sentences of a report on the pooled scores."""
        dropped = {
            as_text(environment.environment): [format_name(name) for name in environment.dropped]
            for environment in self.held_out
            if environment.dropped
        }
        return describe_validation(
            self.pooled, self.titles, n_environments=len(self.held_out), dropped=dropped
        )

    @property
    def curves(self) -> Curves | None:
        """The curves of all rows together; None without probabilities."""
        return Curves(**self.overall) if self.overall else None

    @property
    def mean_scores(self) -> Values:
        """The unweighted mean of each score over the environments in which it is defined."""
        values = [get_values(environment.scores) for environment in self.held_out]
        return average_values(values, names=values[0])

    def _display(self) -> Display:
        """Show the scores in a table, and the sentences of a report above it."""
        columns = ["environment", "n_samples", *self.held_out[0].scores]
        lines = [fill(line, 100, subsequent_indent="  ") for line in self.lines]
        return display_frame("\n".join(lines), self.to_frame()[columns])

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each environment held out.

        Returns
        -------
        pandas.DataFrame
            `auc`, `auc_low`, `auc_high` and so on for each score, NaN where it is undefined.
        """
        return pd.DataFrame([environment.to_row() for environment in self.held_out])

    def to_dict(self) -> Plain:
        """Return the whole result, with the sentences of a report.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        environments = [
            {**asdict(environment), "environment": as_text(environment.environment)}
            for environment in self.held_out
        ]
        pooled_values = {
            name: None if score is None else asdict(score) for name, score in self.pooled.items()
        }
        values = {
            "titles": self.titles,
            "environments": environments,
            "pooled": pooled_values,
            "thresholds": self.thresholds,
            "overall": self.overall,
        }
        plain: Plain = make_plain(values, str)
        return {"lines": self.lines, **plain}

    def plot(self) -> Figure:
        """Draw forest plots: each environment, the pooled score and the prediction interval.

        Returns
        -------
        icscm.drawing.Figure
            A panel each for AUC, calibration slope and intercept and Brier skill.
        """
        return draw_forest_plots(self, titles=METRICS)


@data_by_name
def leave_one_environment_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    environments: Any,
    scorers: Scorers | None = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> Validation:
    """Train without each environment in turn, and score the estimator on it.

    Also known as internal-external cross-validation. Any classifier needs two environments,
    `ICSCMClassifier` three: with a single training environment invariance cannot be tested.
    Everything that is learned, thresholds included, comes from the other environments.
    Environments are passed to `fit` where it accepts them: in a pipeline to the steps that do,
    and with scikit-learn's metadata routing to those that request them.

    Parameters
    ----------
    estimator : classifier or regressor
        Any with scikit-learn's interface, including pipelines; it is not changed.
    X : array or frame of shape (n_samples, n_features)
        The columns, passed to the estimator unchanged. Of our rules, trees, forests and scores
        also genomes of a packed store, from `icscm.sources.open_genomes`.
    y, environments : as for `ICSCMClassifier.fit`
        The outcome and the environment of each row. The outcome has two classes or, for other
        estimators than ours, several; for a regressor it is a number.
    scorers : sequence or dict, optional
        Scores to compute on the environment left out; by default, of several classes "mean_auc"
        and "log_loss", of numbers "r2" and "rmse", of two classes "auc", "slope", "intercept",
        "brier" and "skill": AUC, slope and intercept of calibration,
        Brier score, and by which share that is below the Brier score of the training rate. By name:
        those, "log_loss", and of the predicted classes "error", "balanced_accuracy",
        "sensitivity", "specificity", "ppv", "npv", or scikit-learn's names; or functions of
        (fitted estimator, X, y), such as its scorers. A dict gives them names.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: those of a group with rows in the
        held-out environment are not trained on.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights, any numbers from 0 on; only their ratios matter. They count in the fits and
        in the scores: rows are repeated in proportion, as by `fit` of our learners.

    Returns
    -------
    Validation
        Scores and models by environment and their random-effects summary (`pooled`), with
        `to_frame()`, `plot()` and `to_dict()`.

    Raises
    ------
    IcscmError
        If there are too few environments, or a class occurs in only one of them, or the estimator
        takes no weights where some are given.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> learner = ICSCMClassifier(search="exhaustive", alpha="auto")
    >>> validation = leave_one_environment_out(
    ...     learner, data.X, data.y, environments=data.environments
    ... )
    >>> validation.to_frame()["model"].tolist()
    ['A2 > 0 and A1 > 0', 'A1 > 0 and A2 > 0', 'A1 > 0 and A2 > 0']

    Other classifiers are evaluated in the same way:

    >>> from sklearn.linear_model import LogisticRegression
    >>> validation = leave_one_environment_out(
    ...     LogisticRegression(), data.X, data.y, environments=data.environments, scorers=["auc"]
    ... )
    >>> print(f"{validation.mean_scores['auc']:.2f}")
    0.99
    """
    check_classifier(estimator)
    cohort = make_cohort_for(
        estimator,
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
    )
    scorers_by_name = name_scorers(choose_scorers(cohort.kind) if scorers is None else scorers)
    check_environments(cohort, estimator, "leave-one-environment-out")

    left_out = []
    scores_of_folds = []  # also with what the curves of all environments are made of
    folds = leave_out_environments(cohort)
    # the scores of an environment show what the fit without it warns of
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        for fold in track(folds, len(folds)):
            context = describe_left_out(fold.environment)
            (fitted,) = fit_fold([estimator], cohort, fold, context=context)
            fold_scores = score_fold(fitted, cohort, fold, scorers_by_name)
            environment = HeldOutEnvironment(
                environment=fold.environment,
                n_samples=len(fold.test_rows),
                n_positive=count_positive(cohort, fold.test_rows),
                scores=fold_scores.scores,
                model=describe_estimator(fitted.estimator),
                dropped=name_dropped(fitted, cohort),
            )
            left_out.append(environment)
            scores_of_folds.append(fold_scores)
    return _add_curves(left_out, scores_of_folds)


def choose_scorers(kind: OutcomeKind) -> Sequence[str]:
    """Return the names of the scores that are computed if none are asked for."""
    if kind is OutcomeKind.TWO_CLASSES:
        return DEFAULT_SCORERS
    keys = SCORES[kind]
    return keys.score, keys.loss


def name_dropped(fitted: Fitted, cohort: Cohort) -> tuple[str | int, ...]:
    """Return the columns that hold no value in the training rows of a fold, but do in others."""
    if not fitted.empty_columns:
        return ()
    empty_in_all = cohort.find_empty_columns()
    dropped = [column for column in fitted.empty_columns if column not in empty_in_all]
    return cohort.name_columns(dropped)


def count_positive(cohort: Cohort, rows: IntArray) -> int | None:
    """Count the positive rows among some; None if the outcome has no positive class."""
    if cohort.kind is not OutcomeKind.TWO_CLASSES:
        return None
    return int(cohort.is_positive[rows].sum())


def describe_left_out(environment: Any) -> str:
    """Return what an error in learning without an environment starts with."""
    return f"cannot learn without environment {environment!r}"


def _add_curves(
    left_out: Sequence[HeldOutEnvironment], scores_of_folds: Sequence[FoldScores]
) -> Validation:
    """Add the curves of each environment and of all rows together, at the same thresholds.

    There are none where the classifier has no probabilities.
    """
    outcomes = []
    probabilities = []
    for scores in scores_of_folds:
        if scores.probability is None:
            return Validation(held_out=tuple(left_out))
        outcomes.append(scores.is_positive)
        probabilities.append(scores.probability)

    outcomes_of_all = np.concatenate(outcomes)
    probabilities_of_all = np.concatenate(probabilities)
    thresholds = choose_thresholds(probabilities_of_all)
    overall = compute_curves(outcomes_of_all, probabilities_of_all, thresholds)

    with_curves = []
    for number, environment in enumerate(left_out):
        curves = compute_curves(outcomes[number], probabilities[number], thresholds)
        with_curves.append(environment.with_curves(curves))
    return Validation(
        held_out=tuple(with_curves),
        thresholds=tuple(thresholds.tolist()),
        overall=asdict(overall),
    )
