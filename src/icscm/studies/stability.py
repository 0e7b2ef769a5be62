"""Stability selection: which features and rules keep being chosen on random halves.

The table is binned once; a resample is then only a choice of which rows count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icscm._repr import Display, DisplayMixin, display_frame
from icscm.engine.bits import expand
from icscm.engine.threads import count_threads, run_tasks
from icscm.estimators.base import CoverClassifier
from icscm.exceptions import IcscmError, UnstableModelWarning, warn
from icscm.formatting import clip, count, format_name
from icscm.model.learner import check_learner
from icscm.model.rules import Rule
from icscm.model.tree import Tree
from icscm.parameters import MAJORITY, check_value, whole_number
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.sources.memory import MemorySource, open_memory
from icscm.tables.labels import number_environments, take_environments

if TYPE_CHECKING:
    import pandas

Feature = str | int


@dataclass(frozen=True)
class ResampledModel:
    """A model that halves of the samples gave; the order of its rules does not matter.

    Attributes
    ----------
    text, features : str, frozenset
        The model, and the features that it uses.
    frequency, is_own : float, bool
        Share of resamples that gave it, and whether all samples together give it.
    """

    text: str
    features: frozenset[Feature]
    frequency: float
    is_own: bool


@dataclass(frozen=True, repr=False)
class StabilitySelection(DisplayMixin):
    """How often features, rules and models were chosen; see `stability_selection`.

    Attributes
    ----------
    feature_frequencies, rule_frequencies : dict
        Share of resamples in which each feature was chosen, in the order of the columns, and each
        rule that was chosen at all, the most frequent first.
    stable_features : list
        Features chosen in at least `threshold` of the resamples, the most frequent first.
    model, models : Tree, tuple of ResampledModel
        What all samples together give, and what the resamples gave, the most frequent first.
    n_resamples, threshold : int, float
        As asked for.
    mean_features, error_bound : float
        Average number q of features chosen in a resample, and a bound on the expected number of
        features that are stable but should not be.
    """

    feature_frequencies: dict[Feature, float]
    rule_frequencies: dict[str, float]
    stable_features: list[Feature]
    model: Tree
    models: tuple[ResampledModel, ...]
    n_resamples: int
    threshold: float
    mean_features: float
    error_bound: float

    @property
    def model_frequency(self) -> float:
        """Share of resamples that gave the model that all samples give."""
        return sum(each.frequency for each in self.models if each.is_own)

    @property
    def columns_frequency(self) -> float:
        """Share of resamples that gave a model of the same features, whatever its rules."""
        own = {rule.feature for rule in self.model.rules}
        return sum(each.frequency for each in self.models if each.features == own)

    def describe(self) -> dict[str, Any]:
        """What a report says of it, in plain values; only what was chosen at all is listed."""
        rules = set(map(str, self.model.rules))
        features = {rule.feature for rule in self.model.rules}
        chosen = {name: n for name, n in _rank(self.feature_frequencies).items() if n}
        parts = {
            "models": [(each.text, each.frequency, each.is_own) for each in self.models],
            "rules": [(text, n, text in rules) for text, n in self.rule_frequencies.items()],
            "features": [(format_name(name), n, name in features) for name, n in chosen.items()],
        }
        keys = "text", "frequency", "is_own"
        return {
            "n_resamples": self.n_resamples,
            "model_frequency": self.model_frequency,
            "columns_frequency": self.columns_frequency,
            **{
                name: [dict(zip(keys, each, strict=True)) for each in parts[name]] for name in parts
            },
        }

    def _display(self) -> Display:
        stable = ", ".join(map(format_name, self.stable_features)) or "none"
        told = f"Stable in {self.n_resamples:,} resamples: {stable}"
        return display_frame(told, self.to_frame())

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
    estimator: CoverClassifier,
    X: Any,
    y: Any,
    environments: Any,
    n_resamples: int = 100,
    threshold: float = 0.6,
    random_state: int | np.random.Generator | None = None,
) -> StabilitySelection:
    """How often each feature, rule and model is chosen when learning from random halves.

    Each resample holds half of the samples of each environment (rounded down, at least one),
    drawn without replacement. One that lacks a class is counted as choosing nothing. Thresholds
    are those of the whole table: a rule has to mean the same in every resample to be counted.

    `error_bound` is that of Meinshausen and Buehlmann (2010): q^2 / ((2 threshold - 1) p) for p
    features. It assumes that all unrelated features are equally likely to be chosen, and that the
    learner does no worse than guessing; a child of the label is not unrelated, so for a learner
    that is drawn to children it says nothing about them.

    Warns where the model that all samples give comes back in under half of the resamples.

    Parameters
    ----------
    estimator : SCMClassifier or ICSCMClassifier
        What to learn with; it is not changed.
    X, y, environments : as for `fit`
        The samples; environments may be None for an `SCMClassifier`.
    n_resamples : int, default=100
        How many halves are drawn.
    threshold : float, default=0.6
        Share of resamples from which on a feature is stable, above 0.5.
    random_state : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    StabilitySelection
        How often each feature and rule was chosen.

    Raises
    ------
    IcscmError
        Where a number is not allowed, or an `ICSCMClassifier` is given no environments.

    Examples
    --------
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
    if not isinstance(estimator, CoverClassifier):
        raise IcscmError(
            "stability_selection counts how often rules come back, so it needs an ICSCMClassifier "
            f"or SCMClassifier; got {type(estimator).__name__}"
        )
    check_value("n_resamples", n_resamples, whole_number(1))
    check_value("threshold", threshold, MAJORITY)
    if environments is None and estimator.tests_invariance:
        raise IcscmError("environments is None: ICSCMClassifier has nothing to test without them")
    X, environments = take_environments(X, environments)
    samples = open_memory(X, y, environments, preparation=estimator.prepare())
    settings = estimator.make_settings(samples)
    names: Sequence[Feature] = samples.names or range(samples.n_features)
    usable = _find_usable(samples.source, settings)
    rng = np.random.default_rng(random_state)
    halves = _draw_halves(samples.source, environments, n_resamples, rng)
    models = _learn_resamples(samples.source, settings, halves, count_threads(estimator.n_jobs))
    own = find_model(samples.source.start_again(), settings)[0]
    found = _summarize(own, models, list(names), threshold, len(usable))
    _warn_of_others(found)
    return found


def _warn_of_others(found: StabilitySelection) -> None:
    if found.model_frequency < 0.5:
        n, halves = round(found.model_frequency * found.n_resamples), found.n_resamples
        warn(
            f"The model that all samples give ({clip(str(found.model), 200)}) came back on {n:,} "
            f"of {count(halves, 'random half')}; see models for those that came instead.",
            UnstableModelWarning,
        )


def _find_usable(source: MemorySource, settings: Settings) -> set[int]:
    """The features of which any rule could be made: not left out, constant or of weight 0."""
    usable: set[int] = set()
    for cube in source.counts():
        cube = expand(cube, source.candidates)
        n_values = (cube.counts.sum(axis=(2, 3)) > 0).sum(axis=1)
        usable.update(cube.features[n_values > 1].tolist())
    weights = settings.feature_weights
    return {j for j in usable if weights is None or weights[j] > 0}


def _draw_halves(
    source: MemorySource, environments: Any, n_resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    n_samples = int(source.count_totals().sum())
    numbers, _ = number_environments(environments, n_samples)
    members = [np.flatnonzero(numbers == k) for k in range(len(source.environments))]
    return (draw_half(members, rng) for _ in range(n_resamples))


def _learn_resamples(
    source: MemorySource, settings: Settings, halves: Iterator[NDArray[np.intp]], n_threads: int
) -> list[Tree | None]:
    """The model of each resample, a thread each; None where a class is absent."""

    def learn(rows: NDArray[np.intp]) -> Tree | None:
        half = source.take(rows, n_threads=1)
        has_both = half.count_totals().any(axis=1).all()
        return find_model(half, settings)[0] if has_both else None

    models: list[Tree | None] = []
    while some := list(islice(halves, n_threads)):  # not all at once: each takes memory
        models += run_tasks(learn, some, n_threads)
    return models


def draw_half(members: list[NDArray[np.intp]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Half of each group of rows, rounded down but at least one, ascending."""
    halves = [rng.permutation(rows)[: max(1, len(rows) // 2)] for rows in members]
    return np.sort(np.concatenate(halves))


def _summarize(
    own: Tree, models: list[Tree | None], names: list[Feature], threshold: float, n_usable: int
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
        model=own,
        models=_count_models(own, rules, models),
        n_resamples=len(models),
        threshold=threshold,
        mean_features=mean_features,
        error_bound=mean_features**2 / ((2 * threshold - 1) * max(n_usable, 1)),
    )


def _count_models(
    own: Tree, rules: Sequence[tuple[Rule, ...]], models: Sequence[Tree | None]
) -> tuple[ResampledModel, ...]:
    """The distinct models, the most frequent first; the order of rules does not matter."""
    sets = [frozenset(each) for each in rules]
    texts = {chosen: str(model) for chosen, model in zip(sets, models, strict=True) if chosen}
    texts[frozenset(own.rules)] = str(own)
    return tuple(
        ResampledModel(
            texts[chosen] if chosen else "no rule",
            frozenset(rule.feature for rule in chosen),
            n / len(models),
            chosen == frozenset(own.rules),
        )
        for chosen, n in Counter(sets).most_common()
    )


def _rank(frequencies: dict[Any, float]) -> dict[Any, float]:
    """The most frequent first; equal ones in the order given."""
    return dict(sorted(frequencies.items(), key=lambda item: -item[1]))
