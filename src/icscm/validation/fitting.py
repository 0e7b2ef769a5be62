"""Fit on some rows, score on others: the core of every study.

`fit_fold` fits estimators to the training rows of a fold, `score_fold` scores one of them on the
test rows. Estimators are ours, scikit-learn's, or any with `fit` and `predict`; the environments
go to those that take them, and rows are binned once for all of ours that bin alike.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.utils.metadata_routing import get_routing_for_object

from icscm._lazy import metrics
from icscm._types import BoolArray, FloatArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.estimators.selector_views import SelectorViews
from icscm.exceptions import IcscmError
from icscm.formatting import format_name, shorten_list
from icscm.model.forest import Model, describe_size
from icscm.model.splits import CHAINS
from icscm.progress import track
from icscm.report.formatting import join_words
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.stored import StoredSource
from icscm.tables.outcomes import OutcomeKind
from icscm.validation.cohort import Cohort, make_any_cohort, make_cohort
from icscm.validation.folds import Fold
from icscm.validation.outcome_scores import OUTCOME_TITLES, score_rows
from icscm.validation.scores import METRICS, PROBABILITY_METRICS, Score, compute_scores, score_auc

# A name of ours or of scikit-learn's, or a function of (estimator, X, y), as its scorers are.
Scorer = str | Callable[[Any, Any, Any], float]
Scorers = Iterable[Scorer] | Mapping[str, Scorer]
# Values of scores by name, None where one is undefined.
Values = dict[str, float | None]


@dataclass(frozen=True)
class Fitted:
    """A clone of an estimator, fitted to the training rows of a fold.

    Attributes
    ----------
    estimator : estimator or None
        None if its fit failed.
    seconds, positive_rate : float
        The time of the fit, and the share of positive rows among the training rows; NaN if it
        failed.
    failure : Exception or None
        What the fit raised.
    """

    estimator: Any = None
    seconds: float = np.nan
    positive_rate: float = np.nan
    failure: Exception | None = None


@dataclass(frozen=True, eq=False)
class FoldScores:
    """The scores of a fitted estimator on the test rows of a fold.

    Attributes
    ----------
    scores : dict of Score or None
        Each score with its interval (NaN for a caller's function); None where it is undefined.
    is_positive, is_wrong : array of bool
        Whether each test row is positive, and whether it is predicted wrongly.
    probability : array of float or None
        That of the positive class; None where no score needs it, or the estimator gives none.
    """

    scores: dict[str, Score | None]
    is_positive: BoolArray
    is_wrong: BoolArray
    probability: FloatArray | None

    @property
    def values(self) -> Values:
        """The scores without their intervals."""
        return get_values(self.scores)


def fit_fold(
    estimators: Iterable[Any], cohort: Cohort, fold: Fold, *, context: str | None = None
) -> Iterator[Fitted]:
    """Fit a clone of each estimator to the training rows.

    An error of a fit is recorded, so that other candidates of a comparison go on. With a `context`
    it is raised instead, with that before the message, and so is an outcome of a single class.
    """
    train = cohort.take(fold.train_rows)
    bins = _SharedBins(train)
    for estimator in estimators:
        learner: Any = clone(estimator)
        try:
            if context is not None:
                train.check_outcome()
            seconds = _fit(learner, train, bins)
        except MemoryError:
            raise
        except Exception as error:  # any estimator may raise anything
            if context is None:
                yield Fitted(failure=error)
                continue
            if isinstance(error, IcscmError):
                raise IcscmError(f"{context}: {error}") from None
            raise
        yield Fitted(learner, seconds, positive_rate=train.positive_rate)


def make_cohort_for(
    estimator: Any, X: Any, y: Any, *, environments: Any, groups: Any = None
) -> Cohort:
    """Make a cohort of the outcomes that an estimator may have: ours has two classes."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if isinstance(last, BaseRuleClassifier):
        return make_cohort(X, y, environments=environments, groups=groups)
    return make_any_cohort(
        X, y, environments=environments, groups=groups, is_number=takes_numbers(estimator, y)
    )


def takes_numbers(estimator: Any, y: Any) -> bool:
    """Return whether the outcome is a number: for a regressor, or a screen that takes it for one.

    What is neither a regressor nor a screen predicts classes.
    """
    if isinstance(estimator, SelectorViews):
        return estimator.takes_numbers(y)
    return bool(is_regressor(estimator))


@dataclass(frozen=True)
class _BinnedRows:
    """Training rows that were binned, and the seconds that it took."""

    countable: Countable[StoredSource]
    seconds: float


class _SharedBins:
    """Training rows that are binned once for all of our learners that bin alike."""

    def __init__(self, train: Cohort) -> None:
        self._train = train
        self._binned: dict[str, _BinnedRows] = {}

    def get(self, preparation: BinningConfig) -> _BinnedRows:
        """Return the rows as they are binned for some learners; bin them for the first of these."""
        key = repr(preparation)
        if key not in self._binned:
            start = perf_counter()
            countable = self._train.open(preparation)
            self._binned[key] = _BinnedRows(countable, seconds=perf_counter() - start)
        return self._binned[key]


def _fit(learner: Any, train: Cohort, bins: _SharedBins) -> float:
    """Fit a learner, and return the seconds that it takes, with those of bins that it shares."""
    if isinstance(learner, BaseRuleClassifier):
        binned = bins.get(learner.prepare())
        start = perf_counter()
        learner.fit_counts(replace(binned.countable, is_part=True))
        return binned.seconds + perf_counter() - start

    arguments = _make_fit_arguments(learner, train)
    start = perf_counter()
    learner.fit(train.X, train.y, **arguments)
    seconds = perf_counter() - start
    # a screen that is interrupted returns what it has, but the study is to end
    if isinstance(learner, SelectorViews) and not learner.is_complete_:
        raise KeyboardInterrupt
    return seconds


def _make_fit_arguments(learner: Any, train: Cohort) -> dict[str, Any]:
    """Return the arguments of `fit` that pass environments, groups and weights to who uses them."""
    arguments = dict.fromkeys(name_keywords(learner, "environments"), train.environments)
    if train.group_codes is not None:
        arguments |= dict.fromkeys(name_keywords(learner, "groups"), train.group_codes)
    if train.sample_weight is not None:
        arguments |= dict.fromkeys(name_keywords(learner, "sample_weight"), train.sample_weight)
    return arguments


def name_keywords(estimator: Any, what: str) -> list[str]:
    """Return the keywords of `fit` that pass environments, groups or weights to those within.

    With scikit-learn's metadata routing they are those that were requested.

    >>> from icscm import ICSCMClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> name_keywords(make_pipeline(StandardScaler(), ICSCMClassifier()), "environments")
    ['icscmclassifier__environments']
    """
    if not hasattr(estimator, "fit"):  # a step may be "passthrough" or None
        return []
    parameters = inspect.signature(estimator.fit).parameters
    if what in parameters:
        return [what]
    if get_config()["enable_metadata_routing"]:
        is_requested = get_routing_for_object(estimator).consumes("fit", [what])
        return [what] if is_requested else []
    if hasattr(estimator, "steps"):  # a pipeline; its class is slow to import
        return [
            f"{name}__{keyword}"
            for name, step in estimator.steps
            for keyword in name_keywords(step, what)
        ]
    kinds = [parameter.kind for parameter in parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:  # a meta-estimator that passes them on
        return name_keywords(getattr(estimator, "estimator", None), what)
    return []


def score_fold(
    fitted: Fitted, cohort: Cohort, fold: Fold, scorers: Mapping[str, Scorer]
) -> FoldScores:
    """Score a fitted estimator on the test rows.

    Where an estimator gives no probabilities, the AUC is that of its `decision_function`.
    """
    test = cohort.take(fold.test_rows)
    estimator = fitted.estimator
    if cohort.kind is not OutcomeKind.TWO_CLASSES:
        return _score_other_outcome(estimator, test, scorers)
    predicted = np.asarray(estimator.predict(test.X)) == test.classes[1]

    metric_names = {scorer for scorer in scorers.values() if isinstance(scorer, str)}
    needs_probability = metric_names & {*PROBABILITY_METRICS, "skill"}
    probability = None
    if needs_probability:
        probability = predict_probability(estimator, test.X, positive_class=test.classes[1])
    metrics_by_name = compute_scores(
        test.is_positive,
        predicted,
        probability,
        groups=test.group_codes,
        rate=fitted.positive_rate,
    )
    if "auc" in metric_names and probability is None and hasattr(estimator, "decision_function"):
        decision_values = estimator.decision_function(test.X)
        metrics_by_name["auc"] = score_auc(test.is_positive, decision_values, test.group_codes)

    scores: dict[str, Score | None] = {}
    for name, scorer in scorers.items():
        if isinstance(scorer, str):
            scores[name] = metrics_by_name.get(scorer)
        else:
            value = float(scorer(estimator, test.X, test.y))
            scores[name] = Score(value, low=np.nan, high=np.nan)
    return FoldScores(
        scores=scores,
        is_positive=test.is_positive,
        is_wrong=predicted != test.is_positive,
        probability=probability,
    )


def _score_other_outcome(estimator: Any, test: Cohort, scorers: Mapping[str, Scorer]) -> FoldScores:
    """Score an estimator of several classes or numbers; it has no probability of one class."""
    scores_by_name = score_rows(estimator, test)
    scores: dict[str, Score | None] = {}
    for name, scorer in scorers.items():
        if not isinstance(scorer, str):
            scores[name] = Score(float(scorer(estimator, test.X, test.y)), low=np.nan, high=np.nan)
        elif scorer in scores_by_name:
            scores[name] = scores_by_name[scorer]
        else:
            raise IcscmError(
                f"{scorer!r} is a score of two classes, and the outcome is {test.kind}; use "
                f"{join_words([repr(known) for known in scores_by_name])}, or a function of "
                "(estimator, X, y)"
            )
    no_row = np.zeros(0, dtype=np.bool_)
    return FoldScores(scores=scores, is_positive=no_row, is_wrong=no_row, probability=None)


def predict_probability(estimator: Any, X: Any, *, positive_class: Any) -> FloatArray | None:
    """Return the probability of the positive class in each row; None if the estimator has none.

    It is 0 for an estimator that has not seen the class in training.
    """
    if not hasattr(estimator, "predict_proba"):
        return None
    is_positive_class = np.asarray(estimator.classes_) == positive_class
    by_class = np.asarray(estimator.predict_proba(X))
    return np.asarray(by_class[:, is_positive_class].sum(axis=1))


def predict_left_out(
    estimator: Any, cohort: Cohort, folds: Sequence[Fold], *, context: str
) -> FloatArray:
    """Return the probability of the positive class, predicted for each row when it is left out."""
    probability = np.empty(len(cohort))
    for fold in track(folds, len(folds)):
        (fitted,) = fit_fold([estimator], cohort, fold, context=context)
        test = cohort.take(fold.test_rows)
        predicted = predict_probability(fitted.estimator, test.X, positive_class=cohort.classes[1])
        if predicted is None:
            raise IcscmError(f"{type(estimator).__name__} has no predict_proba to choose from")
        probability[fold.test_rows] = predicted
    return probability


def get_values(scores: Mapping[str, Score | None]) -> Values:
    """Return scores without their intervals."""
    return {name: None if score is None else score.value for name, score in scores.items()}


def average_values(values_of_folds: Sequence[Values | None], names: Iterable[str]) -> Values:
    """Average each score over the folds where it is defined.

    All are None if a fit failed: a mean over some folds could not be compared with that of another
    estimator.
    """
    known_folds = [values for values in values_of_folds if values is not None]
    if len(known_folds) < len(values_of_folds):
        return dict.fromkeys(names)

    means: Values = {}
    for name in names:
        values_of_score = [values[name] for values in known_folds]
        known_values = [value for value in values_of_score if value is not None]
        means[name] = float(np.mean(known_values)) if known_values else None
    return means


def name_scorers(scorers: Scorers) -> dict[str, Scorer]:
    """Return each scorer by its name: one of our metrics, or a function of (estimator, X, y)."""
    if isinstance(scorers, Mapping):
        return {name: _find_scorer(scorer) for name, scorer in scorers.items()}
    listed: Iterable[Scorer] = scorers
    if isinstance(scorers, str) or callable(scorers):
        listed = [scorers]
    return {_name_scorer(scorer): _find_scorer(scorer) for scorer in listed}


def _name_scorer(scorer: Scorer) -> str:
    """Name a metric as it is, and a function as it is defined."""
    return scorer if isinstance(scorer, str) else str(getattr(scorer, "__name__", scorer))


def _find_scorer(scorer: Scorer) -> Scorer:
    """Return a function or one of our metrics as it is, else scikit-learn's scorer of the name."""
    if callable(scorer) or scorer in METRICS or scorer in OUTCOME_TITLES:
        return scorer
    try:
        scorer_of_sklearn: Scorer = metrics.get_scorer(scorer)
    except ValueError:
        raise IcscmError(
            f"there is no scorer {scorer!r}; use one of {', '.join(METRICS)}, one of "
            "scikit-learn's names, or a function of (estimator, X, y)"
        ) from None
    return scorer_of_sklearn


def check_classifier(estimator: Any, what: str = "estimator") -> None:
    """Raise unless it is an object with fit and predict."""
    is_class = isinstance(estimator, type)
    if is_class or not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
        raise IcscmError(
            f"{what} must be a classifier, an object with fit and predict; got {estimator!r}"
        )


def describe_estimator(fitted: Any) -> str | None:
    """Return the model of a learner of ours in a line, alone or last in a pipeline."""
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    return describe_model(last.model_) if isinstance(last, BaseRuleClassifier) else None


def describe_model(model: Model) -> str:
    """Return the rules of a rule set, or the size of a tree or forest with its columns."""
    if model.kind in CHAINS:
        return str(model)
    columns = dict.fromkeys(rule.feature for rule in model.rules)
    if not columns:
        return describe_size(model)
    return f"{describe_size(model)} on {shorten_list([format_name(name) for name in columns])}"
