"""Stability selection: which features and rules keep being chosen on random halves.

The table is binned once; a resample is then only a choice of which rows count.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from icscm.environments import encode_environments
from icscm.estimators import ICSCMClassifier, Learner, check_learner
from icscm.exceptions import IcscmError, IcscmWarning
from icscm.models import RuleSet
from icscm.validation import MAJORITY, check_value, whole_number

if TYPE_CHECKING:
    import pandas

Feature = str | int


@dataclass(frozen=True)
class StabilitySelection:
    """How often features and rules were chosen; see `stability_selection`.

    `feature_frequencies` has all features, in the order of the columns; `rule_frequencies` the
    rules chosen at least once, the most frequent first. `stable_features` are those chosen in
    at least `threshold` of the resamples, the most frequent first. `mean_features` is the average
    number q of features chosen in a resample.
    """

    feature_frequencies: dict[Feature, float]
    rule_frequencies: dict[str, float]
    stable_features: list[Feature]
    n_resamples: int
    threshold: float
    mean_features: float
    error_bound: float

    def to_frame(self) -> pandas.DataFrame:
        """A row for each feature, the most frequent first."""
        import pandas

        ranked = _rank(self.feature_frequencies)
        return pandas.DataFrame(
            {
                "feature": list(ranked),
                "frequency": list(ranked.values()),
                "stable": [frequency >= self.threshold for frequency in ranked.values()],
            }
        )


def stability_selection(
    estimator: Learner,
    X: Any,
    y: Any,
    environments: Any,
    n_resamples: int = 100,
    threshold: float = 0.6,
    random_state: int | np.random.Generator | None = None,
) -> StabilitySelection:
    """How often each feature and rule is chosen when learning from random halves of the samples.

    Each resample holds half of the samples of each environment (rounded down, at least one),
    drawn without replacement. One that lacks a class is counted as choosing nothing. Thresholds
    are those of the whole table: a rule has to mean the same in every resample to be counted.

    `error_bound` is the bound of Meinshausen and Buehlmann (2010) on the expected number of
    features that are stable but should not be: q^2 / ((2 threshold - 1) p) for p features. It
    assumes that all unrelated features are equally likely to be chosen, and that the learner
    does no worse than guessing; a child of the label is not unrelated, so for a learner
    that is drawn to children it says nothing about them.

    `estimator` is an `SCMClassifier` or `ICSCMClassifier` and is not changed. `environments` may
    be None for the former.

    >>> from icscm import ICSCMClassifier, stability_selection
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> found = stability_selection(
    ...     ICSCMClassifier(), data.X, data.y, data.environments, n_resamples=20, random_state=0
    ... )
    >>> sorted(found.stable_features)
    ['A1', 'A2']
    """
    check_learner(estimator)
    check_value("n_resamples", n_resamples, whole_number(1))
    check_value("threshold", threshold, MAJORITY)
    if environments is None and isinstance(estimator, ICSCMClassifier):
        raise IcscmError("environments is None: ICSCMClassifier has nothing to test without them")
    learner = clone(estimator)
    models = list(_learn_resamples(learner, X, y, environments, n_resamples, random_state))
    names = getattr(learner, "feature_names_in_", np.arange(learner.n_features_in_)).tolist()
    return _summarize(models, names, threshold)


def _learn_resamples(
    learner: Learner,
    X: Any,
    y: Any,
    environments: Any,
    n_resamples: int,
    random_state: int | np.random.Generator | None,
) -> Iterator[RuleSet | None]:
    """The model of each resample; None where a class is absent."""
    source = learner._make_source(X, y, environments)
    n_samples = int(source.count_totals().sum())
    numbers = np.zeros(n_samples, dtype=np.int64)
    if environments is not None:
        numbers, _ = encode_environments(environments, n_samples)
    members = [np.flatnonzero(numbers == k) for k in range(len(source.environments))]
    rng = np.random.default_rng(random_state)
    for _ in range(n_resamples):
        half = source.take(draw_half(members, rng))
        if not half.count_totals().any(axis=1).all():
            yield None
            continue
        with warnings.catch_warnings():
            # that a half has few samples or gives no rule is what the frequencies tell
            warnings.simplefilter("ignore", IcscmWarning)
            yield learner._learn_from(half, has_environments=environments is not None).model_


def draw_half(members: list[NDArray[np.intp]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Half of each group of rows, rounded down but at least one, ascending."""
    halves = [rng.permutation(rows)[: max(1, len(rows) // 2)] for rows in members]
    return np.sort(np.concatenate(halves))


def _summarize(
    models: list[RuleSet | None], names: list[Feature], threshold: float
) -> StabilitySelection:
    rules = [model.rules if model is not None else () for model in models]
    features = [{rule.feature for rule in chosen} for chosen in rules]
    by_feature = Counter(feature for chosen in features for feature in chosen)
    by_rule = Counter(text for chosen in rules for text in dict.fromkeys(map(str, chosen)))
    frequencies = {name: by_feature[name] / len(models) for name in names}
    mean_features = by_feature.total() / len(models)
    return StabilitySelection(
        feature_frequencies=frequencies,
        rule_frequencies=_rank({text: n / len(models) for text, n in sorted(by_rule.items())}),
        stable_features=[name for name, share in _rank(frequencies).items() if share >= threshold],
        n_resamples=len(models),
        threshold=threshold,
        mean_features=mean_features,
        error_bound=mean_features**2 / ((2 * threshold - 1) * len(names)),
    )


def _rank(frequencies: dict[Any, float]) -> dict[Any, float]:
    """The most frequent first; equal ones in the order given."""
    return dict(sorted(frequencies.items(), key=lambda item: -item[1]))
