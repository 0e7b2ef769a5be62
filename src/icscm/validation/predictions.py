"""Rows with known labels, and what a fitted model predicts for them."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import as_text, format_level, shorten_list
from icscm.io.environments import find_renamed
from icscm.model.forest import Forest, describe_size
from icscm.model.rules import CategoryRule, Rule
from icscm.model.saved import SavedModel, check_fitted, get_table_settings, make_label
from icscm.model.splits import CHAINS
from icscm.model.thresholds import fix_threshold
from icscm.report.wording import predictions as wording
from icscm.tables.columns import Level, Levels, count_rows, find_levels, is_dask, read_column
from icscm.tables.environments import encode_environments, take_environments
from icscm.validation.cohort import Cohort
from icscm.validation.fitting import predict_probability

_OPTIMISTIC = (
    "would be chosen on the rows it is evaluated on, which is optimistic; choose it at fitting or "
    "on other rows, and give the number"
)


@dataclass(frozen=True)
class Baseline:
    """The majority-class baseline: whether it predicts the positive class, and its probability.

    `source` says whether the majority is that of `"training"` or, where that is unknown, of
    `"these data"`.
    """

    majority: int
    rate: float
    source: str


@dataclass(frozen=True, eq=False)
class Predicted:
    """Rows with known outcomes, and what a model predicts for them.

    Attributes
    ----------
    model, name : Tree, Forest, Score or None, str
        A model of this package, None for other classifiers; its text or the classifier's name.
    classes : tuple of two labels
        Those of the model; the second is the positive one.
    known_environments : set or None
        Those of training, None where they are not known.
    rows : Cohort
        The rows; their outcome is whether they are positive.
    predicted, probability : array of bool, array of float or None
        The predicted classes, and the probability of the positive one.
    leaves : array of int or None
        The leaf of each row, for models that have leaves.
    threshold : float or None
        The probability from which on a row is predicted positive; None where the model decides
        otherwise.
    baseline : Baseline
        The majority-class baseline.
    notes : list of str
        Remarks on the rows.
    """

    model: Any
    name: str
    classes: tuple[Any, Any]
    known_environments: set[Any] | None
    rows: Cohort
    predicted: BoolArray
    probability: FloatArray | None
    leaves: IntArray | None
    threshold: float | None
    baseline: Baseline
    notes: list[str]


def predict_rows(
    model: Any, X: Any, y: Any, *, environments: Any, groups: Any, threshold: Any
) -> Predicted:
    """Predict rows with known outcomes, with the given threshold or the model's own."""
    opened = _open_model(model)
    own_model = opened.model
    given_threshold = None if threshold is None else fix_threshold(threshold, _OPTIMISTIC)
    if given_threshold is not None and own_model is not None:
        own_model = replace(own_model, threshold=given_threshold)

    rows, notes = _read_rows(opened, X, y, environments=environments, groups=groups)
    if own_model is not None:
        predictions = _predict_with_ours(model, own_model, rows.X, opened.table_settings)
        return Predicted(
            model=own_model,
            name=as_text(own_model) if own_model.kind in CHAINS else describe_size(own_model),
            classes=opened.classes,
            known_environments=opened.known_environments,
            rows=rows,
            predicted=predictions.predicted,
            probability=predictions.probability,
            leaves=predictions.leaves,
            threshold=own_model.decision_threshold,
            baseline=_find_training_baseline(own_model),
            notes=notes + predictions.notes,
        )

    name = type(model).__name__
    predicted = np.asarray(model.predict(rows.X)) == opened.classes[1]
    probability = predict_probability(model, rows.X, positive_class=opened.classes[1])
    if given_threshold is not None:
        if probability is None:
            raise IcscmError(Parameter("threshold"), f" needs probabilities; {name} has none")
        predicted = probability >= given_threshold
    return Predicted(
        model=None,
        name=name,
        classes=opened.classes,
        known_environments=opened.known_environments,
        rows=rows,
        predicted=predicted,
        probability=probability,
        leaves=None,
        threshold=given_threshold,
        baseline=_find_baseline_of_rows(rows),
        notes=notes,
    )


def _find_training_baseline(model: Any) -> Baseline:
    """Return the baseline of the rows that a model of ours was learned from."""
    bare = model.make_baseline()
    return Baseline(
        majority=int(bare.leaf_verdicts[0]),
        rate=float(bare.leaf_probabilities()[0]),
        source="training",
    )


def _find_baseline_of_rows(rows: Cohort) -> Baseline:
    """Return the baseline of new rows, since those of training are not known."""
    rate = float(rows.y.mean())
    return Baseline(majority=int(rate > 0.5), rate=rate, source="these data")


@dataclass(frozen=True)
class _OpenedModel:
    """What is known of a fitted model.

    `model` is the tree, forest or score of ours, None for other classifiers. The environments are
    those of training; the settings are those with which `icscm fit` read its table.
    """

    model: Any
    classes: tuple[Any, Any]
    known_environments: set[Any] | None
    table_settings: dict[str, Any]


def _open_model(model: Any) -> _OpenedModel:
    """Check that a model is fitted, for two classes."""
    if isinstance(model, SavedModel):
        known = None if model.environments is None else {*model.environments}
        return _OpenedModel(model.model, model.classes, known, get_table_settings(model))
    is_ours = isinstance(model, BaseRuleClassifier)
    if is_ours:
        check_fitted(model)
    elif not hasattr(model, "classes_") or not hasattr(model, "predict"):
        raise IcscmError(
            "model must be a fitted classifier or a model read by icscm.load; "
            f"{type(model).__name__} has no classes_ or no predict method"
        )
    classes = np.asarray(model.classes_).tolist()
    if len(classes) != 2:
        raise IcscmError(
            f"model has {len(classes)} class{'es' * (len(classes) != 1)}; only classifiers "
            "with two can be evaluated"
        )
    known = None
    if is_ours and model.environments_ is not None:
        known = {make_label(label) for label in model.environments_}
    return _OpenedModel(
        model=model.model_ if is_ours else None,
        classes=(classes[0], classes[1]),
        known_environments=known,
        table_settings={},
    )


def _read_rows(
    opened: _OpenedModel, X: Any, y: Any, *, environments: Any, groups: Any
) -> tuple[Cohort, list[str]]:
    """Return the rows, without those of environments that were excluded in training, and notes."""
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    is_positive = _read_labels(X, y, opened.classes)
    n_rows = len(is_positive)

    environment_codes = np.zeros(n_rows, dtype=np.int64)
    environment_labels: tuple[Any, ...] = ()
    group_codes = None
    if groups is not None:
        group_codes, _ = encode_environments(groups, n_rows, what="groups")
    if environments is not None:
        environment_codes, environment_labels = _read_environments(
            environments, n_rows, opened.table_settings
        )
    rows = Cohort(
        X=X,
        y=is_positive,
        classes=np.array([False, True]),
        environment_codes=environment_codes,
        environment_labels=environment_labels,
        group_codes=group_codes,
    )
    is_kept = environment_codes >= 0
    if not is_kept.all():
        rows = rows.take(is_kept)
    n_groups = None if rows.group_codes is None else len(np.unique(rows.group_codes))
    n_excluded = int((~is_kept).sum())
    notes = [*wording.note_excluded_rows(n_excluded), *wording.note_groups(n_groups)]
    return rows, notes


def _read_labels(X: Any, y: Any, classes: Sequence[Any]) -> BoolArray:
    """Return which rows are positive; raise for labels that are not classes of the model."""
    if is_dask(X):
        raise IcscmError("X is a Dask collection; evaluate needs its rows in memory: X.compute()")
    n_rows = count_rows(X)
    if not n_rows:
        raise IcscmError("X has no rows; there is nothing to evaluate the model on")
    codes, labels = encode_environments(y, n_rows, what="y")
    unknown = [repr(label) for label in labels if label not in classes]
    if unknown:
        raise IcscmError(
            Parameter("y"),
            f" holds labels that are not among the model's classes ({classes[0]!r} and "
            f"{classes[1]!r}): {shorten_list(unknown)}; drop these rows, or give the labels "
            "as they were in training",
        )
    return np.array([label == classes[1] for label in labels])[codes]


def _read_environments(
    environments: Any, n_rows: int, table_settings: dict[str, Any]
) -> tuple[IntArray, tuple[Any, ...]]:
    """Return codes and labels, merged and excluded as `icscm fit` did; excluded rows have -1."""
    codes, labels = encode_environments(environments, n_rows)
    renamed = find_renamed(
        labels,
        "",
        _list_texts(table_settings.get("exclude_environment")),
        _list_texts(table_settings.get("merge_environments")),
        may_lack=True,
    )
    if not renamed:
        return codes, labels
    kept_codes = [code for code, label in enumerate(labels) if renamed[label] is not None]
    if not kept_codes:  # all were excluded in training: new environments, to evaluate the model in
        return codes, labels
    merged_names = [renamed[labels[code]] for code in kept_codes]
    merged_codes, merged_labels = encode_environments(merged_names, len(kept_codes))
    code_of_label = np.full(len(labels), -1)
    code_of_label[kept_codes] = merged_codes
    return code_of_label[codes], merged_labels


def _list_texts(value: Any) -> list[str]:
    """Return the texts in a list of a model file; none in anything else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


@dataclass(frozen=True)
class _OwnPredictions:
    """What a model of ours predicts, with notes on unusual values in the rows."""

    predicted: BoolArray
    probability: FloatArray
    leaves: IntArray | None
    notes: list[str]


def _predict_with_ours(
    fitted: Any, model: Any, X: Any, table_settings: dict[str, Any]
) -> _OwnPredictions:
    """Predict with a model of ours; its warnings about the rows become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IcscmWarning)
        rows = fitted._check_rows(X)
        predicted, probability, _ = model.decide(rows)
        leaves = None if isinstance(model, Forest) else model.find_leaves(rows)
    notes = []
    for warning in caught:
        if issubclass(warning.category, IcscmWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    levels = table_settings.get("levels")
    notes += _note_levels(model.rules, rows, levels if isinstance(levels, dict) else {})
    return _OwnPredictions(predicted, probability, leaves, notes=list(dict.fromkeys(notes)))


def _note_levels(rules: Sequence[Rule], X: Any, training: dict[Any, Any]) -> Iterator[str]:
    """Note levels of rules that no row has, and levels that did not occur in training.

    Often these are different spellings of one level. `training` are the levels of columns there.
    """
    rules_of_columns: dict[Any, list[CategoryRule]] = {}
    for rule in rules:
        if isinstance(rule, CategoryRule):
            rules_of_columns.setdefault(rule.feature, []).append(rule)
    for feature, own_rules in rules_of_columns.items():
        column = read_column(X, own_rules[0].column, own_rules[0].name)
        if not isinstance(column, Levels):
            continue
        name = repr(feature)
        absent = [
            rule.levels[0] for rule in own_rules if not find_levels(column, rule.levels).any()
        ]
        yield from wording.note_absent_levels(
            name, _format_levels(absent), _format_levels(column.levels)
        )
        levels_of_training = training.get(feature)
        if isinstance(levels_of_training, list):
            new_levels, n_rows = _find_new_levels(column, levels_of_training)
            yield from wording.note_new_levels(name, _format_levels(new_levels), n_rows)


def _find_new_levels(column: Levels, training: list[Any]) -> tuple[list[Level], int]:
    """Return the levels that did not occur in training, and the number of rows that have one."""
    known = [level for level in training if isinstance(level, str | int | float)]
    is_new = ~find_levels(column, known)
    new_levels = [level for level, new in zip(column.levels, is_new, strict=True) if new]
    is_new_or_missing = np.append(is_new, False)  # missing values have the code -1
    return new_levels, int(is_new_or_missing[column.codes].sum())


def _format_levels(levels: Sequence[Level]) -> list[str]:
    return [format_level(level) for level in levels]
