"""Fitting and scoring over folds: the core that all studies share.

A study makes a cohort of its samples, takes folds of it (by rows or by environment) and passes
each to `fit_and_score`, which fits every estimator on the training part and scores it on the rest.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object

from icscm._lazy import metrics
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, LeftOutWarning, Parameter
from icscm.formatting import format_name, shorten_list
from icscm.model.forest import Model, describe_size
from icscm.model.splits import CHAINS
from icscm.parameters import make_generator
from icscm.progress import track
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.memory import open_memory
from icscm.sources.stored import StoredSource
from icscm.tables.columns import count_rows, is_frame, open_frame, take_rows
from icscm.tables.labels import check_labels, encode_environments, take_environments
from icscm.tables.parsing import read_table
from icscm.validation.scores import METRICS, PROBABILITY_METRICS, Score, compute_scores, score_auc

# A name of ours or of scikit-learn's, or a function of (estimator, X, y), as its scorers are.
Scorer = str | Callable[[Any, Any, Any], float]
Scorers = Iterable[Scorer] | Mapping[str, Scorer]
Scores = dict[str, float | None]

# Keywords of `fit` for what a row has besides its features and label.
ROUTED = "environments", "groups"


class Cohort(NamedTuple):
    """Samples of two classes and their environments.

    `numbers` are positions in `labels`, those of the environments; without environments there are
    no labels. `groups` numbers the rows that belong together, if any do.
    """

    X: Any
    y: Array
    classes: Array
    numbers: IntArray
    labels: tuple[Any, ...]
    groups: IntArray | None = None

    @property
    def is_positive(self) -> BoolArray:
        """Which samples are of the second class."""
        return np.asarray(self.y == self.classes[1])

    @property
    def environments(self) -> Array | None:
        """The label of each sample's environment; tuples stay whole."""
        return np.fromiter(self.labels, dtype=object)[self.numbers] if self.labels else None

    def number_places(self) -> IntArray:
        """The number of each row's environment by first appearance, whatever their names."""
        return np.asarray(pd.factorize(self.numbers)[0])

    def split(self, is_test: BoolArray) -> "tuple[Cohort, Cohort]":
        """The training and the test part of a fold; groups of the test part are not trained on."""
        is_train = ~is_test
        if self.groups is not None:
            is_train &= ~np.isin(self.groups, self.groups[is_test])
        return self.take(is_train), self.take(is_test)

    def take(self, wanted: BoolArray) -> "Cohort":
        """Some of the samples."""
        own = {name: getattr(self, name) for name in ("y", "numbers", "groups")}
        parts = {name: each[wanted] for name, each in own.items() if each is not None}
        return self._replace(X=take_rows(self.X, np.flatnonzero(wanted)), **parts)

    def deal(self, n_folds: int, random_state: Any) -> IntArray:
        """The fold of each row: rows, or groups, are distributed by label and environment.

        Groups of one class come first and those of the other last, so that each fold has both; rows
        are sorted by label, then by environment, for the same reason.
        """
        rng, numbers = make_generator(random_state), self.number_places()
        if self.groups is None:
            cells = [self.is_positive, numbers]
            rows = pd.Series(cells[0]).groupby(cells).indices
            order = np.concatenate([rng.permutation(rows[cell]) for cell in sorted(rows)])
            return np.asarray(np.argsort(order) % n_folds)
        groups = pd.factorize(self.groups)[0]
        _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
        share = np.bincount(groups, self.is_positive) / sizes
        order = np.ceil(share) + np.floor(share)
        dealt = np.argsort(np.lexsort((rng.random(len(sizes)), sizes, numbers[first], order)))
        return np.asarray((dealt % n_folds)[groups])

    def open(self, preparation: BinningConfig) -> Countable[StoredSource]:
        """The samples binned, for learners that share this preparation."""
        return open_memory(
            self.X,
            self.y,
            environments=self.environments,
            groups=self.groups,
            preparation=preparation,
        )

    def check_folds(self, n_folds: int) -> None:
        """Raise unless each fold of rows can hold both classes."""
        units = np.arange(len(self.y)) if self.groups is None else self.groups
        smallest = min(len(set(units[each])) for each in (self.is_positive, ~self.is_positive))
        if smallest < n_folds:
            what = "rows" if self.groups is None else "groups with rows"
            raise IcscmError(
                f"cross-validation with {n_folds} folds needs {n_folds} {what} of each class; one "
                f"has {smallest}; use fewer folds"
            )

    def check_environments(self, estimator: Any, what: str | Parameter) -> None:
        """Raise if too few environments would remain to learn from when one is held out."""
        least = find_least_environments(estimator)
        if len(self.labels) < least:
            raise IcscmError(
                what,
                f" needs at least {least} environments for {type(estimator).__name__}, so that "
                f"{least - 1} remain to learn from; got {len(self.labels)}",
            )


def find_least_environments(estimator: Any) -> int:
    """The least number of environments to hold one out: testing invariance needs two more."""
    return 3 if getattr(estimator, "tests_invariance", False) else 2


def make_cohort(
    X: Any, y: Any, *, environments: Any, groups: Any = None, may_lack: bool = False
) -> "Cohort":
    """Check labels, environments and groups; a table or an array stays as it is."""
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    rows = X if is_frame(X) or isinstance(X, np.ndarray) else read_table(X).rows
    n_rows = count_rows(rows)
    codes, classes = check_labels(y, n_rows)
    places: tuple[IntArray, tuple[Any, ...]] = np.zeros(n_rows, dtype=np.int64), ()
    if environments is not None or not may_lack:
        places = encode_environments(environments, n_rows)
    own = None if groups is None else encode_environments(groups, n_rows, what="groups")[0]
    return Cohort(rows, classes[codes], classes, *places, own)


def drop_columns(cohort: "Cohort", keep: Any) -> "tuple[Cohort, dict[str, str]]":
    """Without the columns that our learners drop, such as a copy of the label."""
    if not is_frame(cohort.X):
        return cohort, {}
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        samples = cohort.open(BinningConfig(keep_columns=keep))
    frame = open_frame(cohort.X)
    found = {} if samples.table is None else samples.table.dropped
    dropped = {frame.columns[j]: why for j, why in found.items()}
    return cohort._replace(X=frame.drop(list(dropped)).to_native()), dropped


def leave_out_environments(
    estimator: Any, cohort: "Cohort"
) -> "Iterator[tuple[Any, Cohort, Cohort]]":
    """Each environment, the samples outside of it and those in it."""
    cohort.check_environments(estimator, "leave-one-environment-out")
    places = track(enumerate(cohort.labels), len(cohort.labels))
    return ((e, *cohort.split(cohort.numbers == k)) for k, e in places)


class FoldResult(NamedTuple):
    """One estimator on one fold; `failure` is the error that its fit raised, if any.

    `measured` are the scores with their intervals, which those of callers' functions lack, and
    `probability` is that of the positive class, where a score needs it.
    """

    fitted: Any = None
    seconds: float = np.nan
    failure: Exception | None = None
    scores: Scores | None = None
    is_wrong: BoolArray = np.empty(0, dtype=np.bool_)
    measured: dict[str, Score | None] | None = None
    probability: FloatArray | None = None


def fit_and_score(
    estimators: Iterable[Any],
    train: "Cohort",
    test: "Cohort | None",
    scorers: Mapping[str, Scorer],
    context: str | None = None,
) -> Iterator[FoldResult]:
    """Fit a clone of each estimator and score it; the rows are binned once for all alike.

    Errors are recorded or, where `context` is given, raised after it, as is a single class.
    """
    opened: dict[str, tuple[Any, float]] = {}
    for estimator in estimators:
        learner: Any = clone(estimator)
        try:
            if context is not None:
                check_labels(train.y, len(train.y))
            seconds = _fit(learner, train, opened)
        except MemoryError:
            raise
        except Exception as error:  # other estimators may raise anything
            if context is None:
                yield FoldResult(failure=error)
                continue
            if isinstance(error, IcscmError):
                raise IcscmError(f"{context}: {error}") from None
            raise
        rate = float(train.is_positive.mean())
        scored = () if test is None else score_classifier(learner, test, scorers, rate)
        yield FoldResult(learner, seconds, None, *scored)


def _fit(learner: Any, train: "Cohort", opened: dict[str, tuple[Any, float]]) -> float:
    """Fit, and measure the seconds, including binning that is shared with others."""
    start = perf_counter()
    if not hasattr(learner, "fit_counts"):
        known: dict[str, Any] = {}
        for each in ROUTED if train.groups is not None else ROUTED[:1]:
            known |= dict.fromkeys(name_keywords(learner, each), getattr(train, each))
        learner.fit(train.X, train.y, **known)
        return perf_counter() - start
    preparation = learner.prepare()
    if repr(preparation) not in opened:
        opened[repr(preparation)] = train.open(preparation), perf_counter() - start
        start = perf_counter()
    samples, seconds = opened[repr(preparation)]
    learner.fit_counts(replace(samples, source=samples.source, is_part=True))
    return seconds + perf_counter() - start


def name_keywords(estimator: Any, what: str) -> list[str]:
    """The keywords of `fit` that pass environments or groups to the estimators that use them.

    >>> from icscm import ICSCMClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> name_keywords(make_pipeline(StandardScaler(), ICSCMClassifier()), "environments")
    ['icscmclassifier__environments']
    """
    if not hasattr(estimator, "fit"):  # "passthrough", None
        return []
    taken = inspect.signature(estimator.fit).parameters
    if what in taken:
        return [what]
    if get_config()["enable_metadata_routing"]:
        return [what] if get_routing_for_object(estimator).consumes("fit", [what]) else []
    if hasattr(estimator, "steps"):  # a pipeline
        return [f"{name}__{n}" for name, step in estimator.steps for n in name_keywords(step, what)]
    passes_on = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())
    return name_keywords(getattr(estimator, "estimator", None), what) if passes_on else []


def check_classifier(estimator: Any, what: str = "estimator") -> None:
    """Raise unless it is an object with fit and predict."""
    if isinstance(estimator, type) or not all(hasattr(estimator, n) for n in ("fit", "predict")):
        raise IcscmError(
            f"{what} must be a classifier, an object with fit and predict; got {estimator!r}"
        )


def describe_model(fitted: Any) -> str | None:
    """The model of a learner of ours, alone or last in a pipeline, in a line."""
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    return format_model(last.model_) if hasattr(last, "fit_counts") else None


def format_model(model: Model) -> str:
    """The rules of a rule set; the size of a tree or forest, and its columns."""
    if model.kind in CHAINS:
        return str(model)
    features = dict.fromkeys(rule.feature for rule in model.rules)
    used = shorten_list([format_name(each) for each in features])
    return f"{describe_size(model)}{f' on {used}' if used else ''}"


def name_scorers(scorers: Scorers) -> dict[str, Scorer]:
    """Each scorer by its name, checked."""
    named: Any = [scorers] if isinstance(scorers, str) or callable(scorers) else scorers
    if not isinstance(named, Mapping):
        named = {str(getattr(each, "__name__", each)): each for each in named}
    found: dict[str, Scorer] = dict(named)
    for name, each in found.items():
        try:
            found[name] = each if callable(each) or each in METRICS else metrics.get_scorer(each)
        except ValueError:
            raise IcscmError(
                f"there is no scorer {each!r}; use one of {', '.join(METRICS)}, one of "
                "scikit-learn's names, or a function of (estimator, X, y)"
            ) from None
    return found


def score_classifier(
    fitted: Any, test: "Cohort", scorers: Mapping[str, Scorer], rate: float | None = None
) -> tuple[Scores, BoolArray, dict[str, Score | None], FloatArray | None]:
    """Values of the scorers (None if undefined), wrong samples, the intervals, probabilities.

    Without `predict_proba` the AUC is that of `decision_function`. `rate` is that of training.
    """
    predicted = np.asarray(fitted.predict(test.X)) == test.classes[1]
    wanted = {each for each in scorers.values() if not callable(each)}
    probability = None
    if wanted & {*PROBABILITY_METRICS, "skill"} and hasattr(fitted, "predict_proba"):
        is_second = np.asarray(fitted.classes_) == test.classes[1]
        probability = np.asarray(fitted.predict_proba(test.X))[:, is_second].sum(axis=1)
    own = compute_scores(test.is_positive, predicted, probability, test.groups, rate)
    if "auc" in wanted and probability is None and hasattr(fitted, "decision_function"):
        own["auc"] = score_auc(test.is_positive, fitted.decision_function(test.X), test.groups)
    measured: dict[str, Score | None] = {}
    for name, scorer in scorers.items():
        if callable(scorer):
            measured[name] = Score(float(scorer(fitted, test.X, test.y)), np.nan, np.nan)
        else:
            measured[name] = own.get(scorer)
    return get_values(measured), predicted != test.is_positive, measured, probability


def get_values(measured: Mapping[str, Score | None]) -> Scores:
    """The scores without their intervals."""
    return {name: None if each is None else each.value for name, each in measured.items()}


def average_scores(scores: Sequence[Scores | None], names: Iterable[str]) -> Scores:
    """The mean of each score where it is defined; None where it never is, or a fit failed."""
    # a mean over some folds could not be compared with those of other estimators
    known = [] if None in scores else [each for each in scores if each is not None]
    values = {name: [v for each in known if (v := each[name]) is not None] for name in names}
    return {name: float(np.mean(each)) if each else None for name, each in values.items()}
