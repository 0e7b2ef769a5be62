"""Stability selection: how often columns and rules are chosen on random subsamples.

A rule that is only found in some halves of the rows owes its place to chance. The table is binned
once, and each subsample is a selection of its rows: so all models have the same thresholds, and can
be compared.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin, display_frame
from icscm._types import IntArray
from icscm.engine.bits import expand
from icscm.engine.threads import count_threads, run_tasks
from icscm.estimators.base import BaseRuleClassifier, find_opener
from icscm.exceptions import IcscmError, IcscmWarning, UnstableModelWarning, warn
from icscm.formatting import clip, count, format_name
from icscm.model.forest import Forest, Model
from icscm.model.rules import Rule
from icscm.model.saved import check_learner
from icscm.model.splits import CHAINS
from icscm.parameters import allow, check_value, make_generator
from icscm.progress import track
from icscm.report.content.stability import Frequency, Stability
from icscm.sources.countable import Countable
from icscm.sources.stored import StoredSource
from icscm.tables.columns import StoredTable, check_in_memory
from icscm.tables.environments import encode_environments, number_environments, take_environments
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
    >>> selection = stability_selection(
    ...     ICSCMClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     n_resamples=5,
    ...     random_state=0,
    ... )
    >>> selection.n_resamples, list(selection.feature_frequencies)
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
        return sum(model.frequency for model in self.models if model.is_own)

    @property
    def columns_frequency(self) -> float:
        """Share of subsamples with a model of the same features, whatever its rules."""
        columns = {rule.feature for rule in self.model.rules}
        return sum(model.frequency for model in self.models if model.features == columns)

    def make_content(self) -> Stability:
        """Return the record of a report; only what was chosen at least once is listed."""
        own_rules = {str(rule) for rule in self.model.rules}
        own_columns = {rule.feature for rule in self.model.rules}
        return Stability(
            n_resamples=self.n_resamples,
            model_frequency=self.model_frequency,
            columns_frequency=self.columns_frequency,
            models=[
                Frequency(text=model.text, frequency=model.frequency, is_own=model.is_own)
                for model in self.models
            ],
            rules=[
                Frequency(text=text, frequency=frequency, is_own=text in own_rules)
                for text, frequency in self.rule_frequencies.items()
            ],
            features=[
                Frequency(
                    text=format_name(column), frequency=frequency, is_own=column in own_columns
                )
                for column, frequency in _rank(self.feature_frequencies).items()
                if frequency
            ],
        )

    def describe(self) -> dict[str, Any]:
        """Return plain values for a report; only what was chosen at least once is listed."""
        return asdict(self.make_content())

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
    """Sort by frequency, the highest first; ties stay in the order given."""
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
    random_state: Any = 0,
    groups: Any = None,
) -> StabilitySelection:
    """Count how often each column, rule and model is chosen on subsamples of half the rows.

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
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the subsamples. By default they are the same each time, so that learners
        are compared on the same subsamples; None draws others.
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
    >>> selection = stability_selection(
    ...     ICSCMClassifier(),
    ...     data.X,
    ...     data.y,
    ...     environments=data.environments,
    ...     n_resamples=20,
    ...     random_state=0,
    ... )
    >>> sorted(selection.stable_features)
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
    check_in_memory(X)
    open_table = find_opener(X)
    samples = open_table(
        X, y, environments=environments, groups=groups, preparation=estimator.prepare()
    )
    n_rows = int(samples.source.count_rows().sum())
    units = _list_units(environments, groups, n_rows=n_rows)

    rng = make_generator(random_state)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # of every subsample
        models = _learn_from_subsamples(estimator, samples, units, n_resamples=n_resamples, rng=rng)
        model_of_all_rows = _learn(estimator, samples, samples.source)

    names = X.names if isinstance(X, StoredTable) else samples.names
    selection = _summarize(
        models,
        model_of_all_rows,
        names=names or range(samples.n_features),
        threshold=threshold,
        n_usable=count_usable_columns(samples.source),
    )
    _warn_if_unstable(selection)
    return selection


# --- subsamples -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Units:
    """What a subsample is drawn of: rows or, where some belong together, groups of rows.

    Attributes
    ----------
    of_rows : array of int
        The number of each row's unit.
    of_environments : list of arrays of int
        The numbers of each environment's units.
    """

    of_rows: IntArray
    of_environments: list[IntArray]


def _list_units(environments: Any, groups: Any, *, n_rows: int) -> Units:
    """List the units of each environment; a group is of the environment of its first row.

    Groups and environments are numbered as they appear, so that the same rows are drawn whatever
    their names. With rows 2 and 3 in one group:

        row            0  1  2  3  4        of_rows            0  1  2  2  3
        environment    a  b  a  a  b        of_environments    [0, 2], [1, 3]
    """
    environment_numbers, _ = number_environments(environments, n_rows)
    environment_of_row, _ = pd.factorize(environment_numbers)
    if groups is None:
        unit_of_row = np.arange(n_rows)
        environment_of_unit = environment_of_row
    else:
        group_numbers, _ = encode_environments(groups, n_rows, what="groups")
        unit_of_row, _ = pd.factorize(group_numbers)
        _, first_row_of_unit = np.unique(unit_of_row, return_index=True)
        environment_of_unit = environment_of_row[first_row_of_unit]

    n_environments = int(environment_of_row.max()) + 1
    units_of_environments = [
        np.flatnonzero(environment_of_unit == environment) for environment in range(n_environments)
    ]
    return Units(of_rows=unit_of_row, of_environments=units_of_environments)


def draw_subsample(units: Units, rng: np.random.Generator) -> IntArray:
    """Return the rows of half of the units of each environment, rounded down but at least one."""
    drawn_units = []
    for units_of_environment in units.of_environments:
        n_drawn = max(1, len(units_of_environment) // 2)
        shuffled = rng.permutation(units_of_environment)
        drawn_units.append(shuffled[:n_drawn])
    is_drawn = np.isin(units.of_rows, np.concatenate(drawn_units))
    return np.flatnonzero(is_drawn)


def _learn_from_subsamples(
    estimator: BaseRuleClassifier,
    samples: Countable[StoredSource],
    units: Units,
    *,
    n_resamples: int,
    rng: np.random.Generator,
) -> list[Model | None]:
    """Learn a model from each subsample; None for one that lacks a class, which chooses nothing.

    As many subsamples as threads are drawn at a time, since each takes memory.
    """

    def learn_from_rows(rows: IntArray) -> Model | None:
        subsample = samples.source.rows.take(rows, n_threads=1)
        has_both_classes = subsample.count_rows().any(axis=1).all()
        return _learn(estimator, samples, subsample) if has_both_classes else None

    models: list[Model | None] = []
    subsamples = (draw_subsample(units, rng) for _ in range(n_resamples))
    n_threads = count_threads(estimator.n_jobs)
    batches = range(0, n_resamples, n_threads)
    for _ in track(batches, len(batches)):
        subsamples_of_batch = islice(subsamples, n_threads)
        models += run_tasks(learn_from_rows, subsamples_of_batch, n_threads)
    return models


def _learn(
    estimator: BaseRuleClassifier, samples: Countable[StoredSource], source: StoredSource
) -> Model:
    """Learn from a source with all or some of the samples, which are binned alike."""
    fitted = clone(estimator).fit_counts(replace(samples, source=source, is_part=True))
    model: Model = fitted.model_
    return model


# --- results --------------------------------------------------------------------------------------


def count_usable_columns(source: StoredSource) -> int:
    """Count the columns that have a candidate rule: not dropped, and of two bins at least."""
    usable: set[int] = set()
    for packed_cube in source.count_cubes():
        cube = expand(packed_cube, source.columns)
        rows_by_bin = cube.counts.sum(axis=(2, 3))  # over labels and environments
        n_bins_in_use = (rows_by_bin > 0).sum(axis=1)
        usable.update(cube.columns[n_bins_in_use > 1].tolist())
    return len(usable)


def _summarize(
    models: Sequence[Model | None],
    model_of_all_rows: Model,
    *,
    names: Sequence[Feature],
    threshold: float,
    n_usable: int,
) -> StabilitySelection:
    """Count columns, rules and models over the subsamples; None is one that chooses nothing.

    With q columns chosen on average of p usable ones, the expected number of columns that are
    chosen in a share pi of the subsamples by chance is at most  q^2 / ((2 pi - 1) p)  (Meinshausen
    and Buehlmann 2010).
    """
    n_models = len(models)
    column_counts: Counter[Feature] = Counter()
    rule_counts: Counter[str] = Counter()
    for model in models:
        rules = () if model is None else model.rules
        column_counts.update({rule.feature for rule in rules})
        if not isinstance(model_of_all_rows, Forest):  # whose rules are too many
            rule_counts.update({str(rule) for rule in rules})

    frequencies = {name: column_counts[name] / n_models for name in names}
    rule_frequencies = {text: n / n_models for text, n in sorted(rule_counts.items())}
    stable = [name for name, share in _rank(frequencies).items() if share >= threshold]

    q = column_counts.total() / n_models
    p = max(n_usable, 1)
    return StabilitySelection(
        feature_frequencies=frequencies,
        rule_frequencies=_rank(rule_frequencies),
        stable_features=stable,
        model=model_of_all_rows,
        models=_count_models(models, model_of_all_rows),
        n_resamples=n_models,
        threshold=threshold,
        mean_features=q,
        error_bound=q**2 / ((2 * threshold - 1) * p),
    )


@dataclass(frozen=True)
class _Identity:
    """What makes two models the same: their rules in any order; of forests their columns."""

    columns: frozenset[Feature]
    rules: frozenset[Rule]


def _identify(model: Model | None) -> _Identity:
    """Return what makes a model the same as another; None stands for a model without rules."""
    rules = frozenset() if model is None else frozenset(model.rules)
    columns = frozenset(rule.feature for rule in rules)
    if isinstance(model, Forest):
        return _Identity(columns, rules=frozenset())
    return _Identity(columns, rules)


def _count_models(
    models: Sequence[Model | None], model_of_all_rows: Model
) -> tuple[ResampledModel, ...]:
    """Return the different models of the subsamples, the most frequent first.

    The same rules in another order are the same model; so that it is shown as in the report, the
    text of the model of all rows replaces theirs.
    """
    identities = []
    texts = {}
    for model in models:
        identity = _identify(model)
        identities.append(identity)
        texts[identity] = _describe(model)

    identity_of_all_rows = _identify(model_of_all_rows)
    texts[identity_of_all_rows] = _describe(model_of_all_rows)

    return tuple(
        ResampledModel(
            text=texts[identity],
            features=identity.columns,
            frequency=n / len(models),
            is_own=identity == identity_of_all_rows,
        )
        for identity, n in Counter(identities).most_common()
    )


def _describe(model: Model | None) -> str:
    """Describe a model in a line."""
    if model is None or not model.rules:
        return "no rule"
    return describe_model(model)


def _warn_if_unstable(selection: StabilitySelection) -> None:
    """Warn if the model of all rows is found in fewer than half of the subsamples.

    Trees and forests differ in some rule nearly always: theirs is found where a model has the same
    columns.
    """
    model = selection.model
    if model.kind in CHAINS:
        share = selection.model_frequency
        text = str(model)
    else:
        share = selection.columns_frequency
        text = f"one on the columns of the {model.kind}"
    if share >= 0.5:
        return

    n_found = round(share * selection.n_resamples)
    warn(
        f"The model of all samples ({clip(text, 200)}) was found in {n_found:,} of "
        f"{count(selection.n_resamples, 'random subsample')}; see models for the others.",
        UnstableModelWarning,
    )
