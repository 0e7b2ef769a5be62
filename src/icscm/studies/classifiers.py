"""Any scikit-learn classifier: given environments where its `fit` takes them, and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from icscm._types import Array, BoolArray, IntArray
from icscm.exceptions import IcscmError
from icscm.formatting import format_name, shorten_list
from icscm.model.forest import describe_size
from icscm.model.splits import CHAINS
from icscm.studies.scores import OF_PREDICTIONS, OF_PROBABILITIES, TITLES
from icscm.tables.columns import count_rows, is_frame, take_rows
from icscm.tables.environments import encode_environments, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.parsing import read_table

# A name of ours or of scikit-learn's, or what takes (estimator, X, y), as its scorers do.
Scorer = str | Callable[[Any, Any, Any], float]
Scorers = Iterable[Scorer] | Mapping[str, Scorer]
Scores = dict[str, float | None]

ENVIRONMENTS = "environments"


class Cohort(NamedTuple):
    """Samples of two classes, and where each comes from.

    `numbers` are positions in `labels`, those of the environments.
    """

    X: Any
    y: Array
    classes: Array
    numbers: IntArray
    labels: tuple[Any, ...]

    @property
    def is_positive(self) -> BoolArray:
        """Which samples are of the second class."""
        is_second: BoolArray = self.y == self.classes[1]
        return is_second

    @property
    def environments(self) -> Array:
        """The label of each sample's environment; tuples stay whole."""
        labels = np.empty(len(self.labels), dtype=object)
        labels[:] = self.labels
        return labels[self.numbers]

    def take(self, rows: NDArray[np.intp]) -> Cohort:
        """Some of the samples."""
        own = take_rows(self.X, rows), self.y[rows], self.classes, self.numbers[rows]
        return Cohort(*own, self.labels)

    def part(self, environment: int) -> tuple[Cohort, Cohort]:
        """Those outside of an environment, and those in it."""
        is_inside = self.numbers == environment
        return self.take(np.flatnonzero(~is_inside)), self.take(np.flatnonzero(is_inside))


def make_cohort(X: Any, y: Any, environments: Any) -> Cohort:
    """Check labels and environments; a table or an array stays as it is."""
    X, environments = take_environments(X, environments)
    rows = X if is_frame(X) or isinstance(X, np.ndarray) else read_table(X).rows
    n_rows = count_rows(rows)
    codes, classes = check_labels(y, n_rows)
    return Cohort(rows, classes[codes], classes, *encode_environments(environments, n_rows))


def check_two_classes(cohort: Cohort) -> None:
    """Raise where there is nothing to tell apart."""
    check_labels(cohort.y, len(cohort.y))


def check_classifier(estimator: Any, what: str = "estimator") -> None:
    """Raise unless it is an object that can be fitted and predicts."""
    if isinstance(estimator, type) or not all(hasattr(estimator, n) for n in ("fit", "predict")):
        raise IcscmError(
            f"{what} must be a classifier, an object with fit and predict; got {estimator!r}"
        )


def fit_classifier(estimator: Any, cohort: Cohort) -> Any:
    """Fit, with the environments where the estimator, or one inside of it, takes them."""
    known = dict.fromkeys(name_environments(estimator), cohort.environments)
    return estimator.fit(cohort.X, cohort.y, **known)


def name_environments(estimator: Any) -> list[str]:
    """The keywords of `fit` under which environments reach those who take them.

    >>> from icscm import ICSCMClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> name_environments(make_pipeline(StandardScaler(), ICSCMClassifier()))
    ['icscmclassifier__environments']
    """
    if not hasattr(estimator, "fit"):  # "passthrough", None
        return []
    taken = signature(estimator.fit).parameters
    if ENVIRONMENTS in taken:
        return [ENVIRONMENTS]
    if get_config()["enable_metadata_routing"]:
        router = get_routing_for_object(estimator)
        return [ENVIRONMENTS] if router.consumes("fit", [ENVIRONMENTS]) else []
    if isinstance(estimator, Pipeline):
        return [f"{name}__{n}" for name, step in estimator.steps for n in name_environments(step)]
    passes_on = any(each.kind is Parameter.VAR_KEYWORD for each in taken.values())
    return name_environments(getattr(estimator, "estimator", None)) if passes_on else []


def find_rules(fitted: Any) -> str | None:
    """The rules of a fitted learner of ours, or of a pipeline that ends in one; trees in short."""
    last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    if not hasattr(last, "fit_counts"):
        return None
    if last.model_.kind in CHAINS:
        return str(last.model_)
    used = shorten_list([format_name(each) for each in last.features_used_])
    return f"{describe_size(last.model_)}{f' on {used}' if used else ''}"


def name_scorers(scorers: Scorers) -> dict[str, Scorer]:
    """Each scorer by its name, checked."""
    if isinstance(scorers, Mapping):
        return {name: _find_scorer(each) for name, each in scorers.items()}
    several = [scorers] if isinstance(scorers, str) or callable(scorers) else scorers
    return {_name(each): _find_scorer(each) for each in several}


def compute_scores_of(fitted: Any, cohort: Cohort, scorers: Mapping[str, Scorer]) -> Scores:
    """What each scorer gives a fitted classifier on these samples; None where it has no value."""
    predicted, scores = predict_positive(fitted, cohort), Scores()
    find_chance = cache(partial(predict_chance, fitted, cohort))
    for name, scorer in scorers.items():
        if not isinstance(scorer, str):
            scores[name] = float(scorer(fitted, cohort.X, cohort.y))
            continue
        found = None
        if scorer in OF_PREDICTIONS:
            found = OF_PREDICTIONS[scorer](cohort.is_positive, predicted)
        else:
            chance = find_chance()
            if scorer == "auc" and chance is None:
                chance = predict_order(fitted, cohort)
            if chance is not None:
                found = OF_PROBABILITIES[scorer](cohort.is_positive, chance)
        scores[name] = None if found is None else found.value
    return scores


def predict_positive(fitted: Any, cohort: Cohort) -> BoolArray:
    """Which samples are predicted to be of the second class."""
    is_positive: BoolArray = np.asarray(fitted.predict(cohort.X)) == cohort.classes[1]
    return is_positive


def predict_chance(fitted: Any, cohort: Cohort) -> Array | None:
    """The probability of the second class; None where the classifier gives none."""
    if not hasattr(fitted, "predict_proba"):
        return None
    is_second = np.asarray(fitted.classes_) == cohort.classes[1]
    chance: Array = np.asarray(fitted.predict_proba(cohort.X))[:, is_second].sum(axis=1)
    return chance


def predict_order(fitted: Any, cohort: Cohort) -> Array | None:
    """What rises with the chance of the second class, which is all that an AUC needs."""
    if not hasattr(fitted, "decision_function"):
        return None
    return np.asarray(fitted.decision_function(cohort.X))


def _name(scorer: Scorer) -> str:
    return scorer if isinstance(scorer, str) else getattr(scorer, "__name__", repr(scorer))


def _find_scorer(scorer: Any) -> Scorer:
    if callable(scorer) or scorer in TITLES:
        return scorer  # type: ignore[no-any-return]
    try:
        return get_scorer(scorer)  # type: ignore[no-any-return]
    except ValueError:
        raise IcscmError(
            f"there is no scorer {scorer!r}; choose of {', '.join(TITLES)}, of scikit-learn's "
            "names, or give a function of (estimator, X, y)"
        ) from None
