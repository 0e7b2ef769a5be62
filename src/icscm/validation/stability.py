"""Stability selection: how often features and rules are chosen on random subsamples.

The table is binned once; each subsample is a selection of its rows.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.engine.bits import expand
from icscm.engine.threads import count_threads, run_tasks
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError, IcscmWarning, UnstableModelWarning, warn
from icscm.formatting import clip, count, format_name
from icscm.model.forest import Forest, Model
from icscm.model.saved import check_learner
from icscm.model.splits import CHAINS
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.sources.memory import open_memory
from icscm.sources.stored import StoredSource
from icscm.tables.labels import encode_environments, number_environments, take_environments
from icscm.validation.fitting import describe_model

Feature = str | int

# Defaults for the line on stability in a report: subsamples, and the steps of a scan (see
# `count_steps`) up to which they take no longer than reading the table and learning from it.
N_BRIEF = 20
MAX_BRIEF_STEPS = 5 * 10**6


@dataclass(frozen=True)
class ResampledModel:
    """A model of one or more subsamples, whatever the order of its rules.

    Attributes
    ----------
    text, features : str, frozenset
        The model, of a tree or forest its columns, and the features that it uses.
    frequency, is_own : float, bool
        Share of subsamples with this model, and whether it is the model of all samples.
    """

    text: str
    features: frozenset[Feature]
    frequency: float
    is_own: bool


@dataclass(frozen=True, repr=False)
class StabilitySelection(DisplayMixin):
    """Frequencies of features, rules and models; see `stability_selection`.

    Attributes
    ----------
    feature_frequencies, rule_frequencies : dict
        Share of subsamples in which each feature was chosen, in the order of the columns, and
        each rule that was chosen at least once, the most frequent first.
    stable_features : list
        Features chosen in at least `threshold` of the subsamples, the most frequent first.
    model, models : Tree or Forest, tuple of ResampledModel
        The model of all samples, and those of the subsamples, the most frequent first. Forests of
        the same columns are one model, and have no rules here.
    n_resamples, threshold : int, float
        The parameters.
    mean_features, error_bound : float
        Mean number q of features chosen in a subsample, and a bound on the expected number of
        falsely stable features.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, stability_selection
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, random_state=1)
    >>> found = stability_selection(
    ...     ICSCMClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     n_resamples=5,
    ...     random_state=0,
    ... )
    >>> found.n_resamples, [*found.feature_frequencies]
    (5, ['A1', 'A2', 'B1', 'B2', 'B3', 'C1'])
    """

    feature_frequencies: dict[Feature, float]
    rule_frequencies: dict[str, float]
    stable_features: list[Feature]
    model: Model
    models: tuple[ResampledModel, ...]
    n_resamples: int
    threshold: float
    mean_features: float
    error_bound: float

    @property
    def model_frequency(self) -> float:
        """Share of subsamples with the model of all samples."""
        return sum(each.frequency for each in self.models if each.is_own)

    @property
    def columns_frequency(self) -> float:
        """Share of subsamples with a model of the same features, whatever its rules."""
        own = {rule.feature for rule in self.model.rules}
        return sum(each.frequency for each in self.models if each.features == own)

    def describe(self) -> dict[str, Any]:
        """Plain values for a report; only what was chosen at least once is listed."""
        rules = {str(rule) for rule in self.model.rules}
        own = {rule.feature for rule in self.model.rules}
        ranked = _rank(self.feature_frequencies)
        lists: dict[str, list[tuple[str, float, bool]]] = {
            "models": [(each.text, each.frequency, each.is_own) for each in self.models],
            "rules": [(text, n, text in rules) for text, n in self.rule_frequencies.items()],
            "features": [(format_name(j), n, j in own) for j, n in ranked.items() if n],
        }
        names = "text", "frequency", "is_own"
        shares = "n_resamples", "model_frequency", "columns_frequency"
        return {name: getattr(self, name) for name in shares} | {
            kind: [dict(zip(names, each, strict=True)) for each in listed]
            for kind, listed in lists.items()
        }

    def _display(self) -> Display:
        stable = ", ".join(map(format_name, self.stable_features)) or "none"
        line = f"Stable features in {self.n_resamples:,} subsamples: {stable}"
        return display_frame(line, self.to_frame())

    def to_frame(self) -> pd.DataFrame:
        """A row for each feature, the most frequent first."""
        ranked = _rank(self.feature_frequencies)
        frame = pd.DataFrame(ranked.items(), columns=["feature", "frequency"])
        return frame.assign(stable=frame["frequency"] >= self.threshold)


def _rank(frequencies: dict[Any, float]) -> dict[Any, float]:
    """The most frequent first; ties in the order given."""
    return dict(sorted(frequencies.items(), key=lambda item: -item[1]))


@data_by_name
def stability_selection(
    estimator: BaseRuleClassifier,
    X: Any,
    y: Any,
    *,
    environments: Any,
    n_resamples: int = 100,
    threshold: float = 0.6,
    random_state: int | np.random.Generator | None = None,
    groups: Any = None,
) -> StabilitySelection:
    """How often each feature, rule and model is chosen on random subsamples of half the rows.

    Each subsample holds half of the rows of each environment (rounded down, at least one), drawn
    without replacement; with groups, half of the groups of each environment (of their first row),
    all rows of each. A subsample without one of the classes counts as choosing nothing. The
    thresholds are those of the whole table, so that rules of subsamples can be compared.

    `error_bound` is that of Meinshausen and Buehlmann (2010): q^2 / ((2 threshold - 1) p) for p
    features. It assumes that all unrelated features are equally likely to be chosen, and that the
    learner is no worse than random guessing. It does not hold for children of the label, which are
    related to it.

    Warns if the model of all samples is found in fewer than half of the subsamples; of trees and
    forests, one of the same features.

    Parameters
    ----------
    estimator : SCMClassifier, ICSCMClassifier, InvariantTreeClassifier or InvariantForestClassifier
        The learner; it is not changed. A forest chooses the features that any of its trees use.
    X, y, environments : as for `fit`
        The samples; environments may be None for an `SCMClassifier`.
    n_resamples : int, default=100
        Number of subsamples.
    threshold : float, default=0.6
        Share of subsamples above which a feature is stable; more than 0.5.
    random_state : int or numpy.random.Generator, optional
        Random seed or generator.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient: in a subsample or out of it.

    Returns
    -------
    StabilitySelection
        The frequency of each feature, rule and model.

    Raises
    ------
    IcscmError
        If a number is not allowed, or an `ICSCMClassifier` is given no environments.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, stability_selection
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> found = stability_selection(
    ...     ICSCMClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     n_resamples=20,
    ...     random_state=0,
    ... )
    >>> sorted(found.stable_features)
    ['A1', 'A2']
    """
    check_learner(estimator)
    check_value("n_resamples", n_resamples, allow("int [1, 100000]"))
    check_value("threshold", threshold, allow("float (0.5, 1]"))
    if environments is None and estimator.tests_invariance:
        name = type(estimator).__name__
        raise IcscmError(f"environments is None, but {name} needs them; give a label per row")
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    samples = open_memory(
        X, y, environments=environments, groups=groups, preparation=estimator.prepare()
    )
    estimator.make_settings(samples)  # raises for parameters that cannot be used
    source = samples.source
    n_rows = int(source.count_rows().sum())
    # by first appearance: names do not matter
    numbers = pd.factorize(number_environments(environments, n_rows)[0])[0]
    codes = np.arange(n_rows)
    if groups is not None:
        codes = pd.factorize(encode_environments(groups, n_rows, what="groups")[0])[0]
        numbers = numbers[np.unique(codes, return_index=True)[1]]  # of each group
    units = [np.flatnonzero(numbers == k) for k in range(len(source.environments))]
    n_usable, n_threads = _count_usable(source), count_threads(estimator.n_jobs)

    def learn(part: StoredSource) -> Model:
        """The model of some rows, binned like all rows."""
        fitted = clone(estimator).fit_counts(replace(samples, source=part, is_part=True))
        model: Model = fitted.model_
        return model

    def learn_drawn(drawn: NDArray[np.intp]) -> Model | None:
        rows = drawn if groups is None else np.flatnonzero(np.isin(codes, drawn))
        part = source.rows.take(rows, n_threads=1)
        return learn(part) if part.count_rows().any(axis=1).all() else None

    rng = make_generator(random_state)
    subsamples = (draw_subsample(units, rng) for _ in range(n_resamples))
    models: list[Model | None] = []
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # of every subsample
        starts = range(0, n_resamples, n_threads)
        for _ in track(starts, len(starts)):  # not all at once: each takes memory
            models += run_tasks(learn_drawn, islice(subsamples, n_threads), n_threads)
        own = learn(source)
    names: Sequence[Feature] = samples.names or range(samples.n_features)
    found = _summarize(own, models, names, threshold, n_usable)
    share = found.model_frequency if own.kind in CHAINS else found.columns_frequency
    if share < 0.5:
        text = str(own) if own.kind in CHAINS else f"one on the columns of the {own.kind}"
        warn(
            f"The model of all samples ({clip(text, 200)}) was found in "
            f"{round(share * n_resamples):,} of {count(n_resamples, 'random subsample')}; see "
            "models for the others.",
            UnstableModelWarning,
        )
    return found


def draw_subsample(units: Sequence[NDArray[np.intp]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Half of the rows or groups of each environment, rounded down but at least one, ascending."""
    drawn = [rng.permutation(own)[: max(1, len(own) // 2)] for own in units]
    return np.sort(np.concatenate(drawn))


def _count_usable(source: StoredSource) -> int:
    """The number of features with a candidate rule: not dropped or constant."""
    usable: set[int] = set()
    for cube in source.count_cubes():
        cube = expand(cube, source.columns)
        n_values = (cube.counts.sum(axis=(2, 3)) > 0).sum(axis=1)
        usable.update(cube.features[n_values > 1].tolist())
    return len(usable)


def _summarize(
    own: Model,
    models: Sequence[Model | None],
    names: Sequence[Feature],
    threshold: float,
    n_usable: int,
) -> StabilitySelection:
    rules = [model.rules if model is not None else () for model in models]
    n_models = len(models)
    by_feature = Counter(feature for chosen in rules for feature in {r.feature for r in chosen})
    listed = [] if isinstance(own, Forest) else rules  # those of a forest are too many
    by_rule = Counter(text for chosen in listed for text in dict.fromkeys(map(str, chosen)))
    frequencies = {name: by_feature[name] / n_models for name in names}
    mean_features = by_feature.total() / n_models
    sets: list[frozenset[Any]] = [_identify(model) for model in models]
    own_set = _identify(own)
    texts = {each: _name(model) for each, model in zip(sets, models, strict=True)}
    texts |= {own_set: _name(own)}
    ranked = []
    for chosen, n in Counter(sets).most_common():
        features = frozenset(getattr(each, "feature", each) for each in chosen)
        ranked.append(ResampledModel(texts[chosen], features, n / n_models, chosen == own_set))
    return StabilitySelection(
        feature_frequencies=frequencies,
        rule_frequencies=_rank({text: n / n_models for text, n in sorted(by_rule.items())}),
        stable_features=[name for name, share in _rank(frequencies).items() if share >= threshold],
        model=own,
        models=tuple(ranked),
        n_resamples=n_models,
        threshold=threshold,
        mean_features=mean_features,
        error_bound=mean_features**2 / ((2 * threshold - 1) * max(n_usable, 1)),
    )


def _identify(model: Model | None) -> frozenset[Any]:
    """The rules of a model, whatever their order; of a forest its columns."""
    rules = () if model is None else model.rules
    return frozenset(r.feature for r in rules) if isinstance(model, Forest) else frozenset(rules)


def _name(model: Model | None) -> str:
    """A model in a line."""
    if model is None or not model.rules:
        return "no rule"
    return describe_model(model)
