"""Rows with known outcomes, and what a fitted model predicts for them.

The model is one of ours, fresh or read from a file, or any other classifier. What is known of it
differs, so it is opened first (`_OpenedModel`): of ours the training data are known, which say
which environments are new, and what the majority of training was.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.estimators.base import BaseRuleClassifier
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import as_text, format_level, shorten_list
from icscm.io.environments import find_renamed
from icscm.model.forest import Forest, describe_size
from icscm.model.novelty import treat_unknown
from icscm.model.rules import CategoryRule, Rule
from icscm.model.saved import SavedModel, check_fitted, get_table_settings, make_label
from icscm.model.splits import CHAINS
from icscm.model.thresholds import fix_threshold
from icscm.report.wording import predictions as wording
from icscm.tables.columns import Level, Levels, count_rows, find_levels, is_dask, read_column
from icscm.tables.environments import encode_environments, take_environments
from icscm.tables.labels import ADVICE_ON_OTHER_OUTCOMES
from icscm.tables.weights import read_weights
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
    model: Any,
    X: Any,
    y: Any,
    *,
    environments: Any,
    groups: Any,
    sample_weight: Any,
    threshold: Any,
) -> Predicted:
    """Predict rows with known outcomes, with the given threshold or the model's own.

    The result has rows as often as they count by their weights.
    """
    opened = _open_model(model)
    fixed_threshold = None if threshold is None else fix_threshold(threshold, _OPTIMISTIC)
    rows = _read_rows(
        opened,
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
    )
    predict = _predict_with_classifier if opened.model is None else _predict_with_ours
    return _repeat_by_weight(predict(opened, rows, threshold=fixed_threshold))


def _repeat_by_weight(predicted: Predicted) -> Predicted:
    """Repeat rows and their predictions in proportion to the weights; columns are not needed."""
    rows = predicted.rows
    counted = rows.count_by_weight()
    if counted is None:
        return predicted
    positions = counted.rows
    return replace(
        predicted,
        rows=replace(
            rows,
            X=None,
            y=rows.y[positions],
            environment_codes=rows.environment_codes[positions],
            group_codes=counted.groups,
            sample_weight=None,
        ),
        predicted=predicted.predicted[positions],
        probability=None if predicted.probability is None else predicted.probability[positions],
        leaves=None if predicted.leaves is None else predicted.leaves[positions],
        notes=[*predicted.notes, wording.note_weights(len(rows), n_counted=len(positions))],
    )


# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OpenedModel:
    """What is known of a fitted model.

    Attributes
    ----------
    fitted : SavedModel or classifier
        What the caller gave.
    model : Tree, Forest, Score or None
        The model of this package in it; None in other classifiers.
    classes : tuple of two labels
        The second is the positive one.
    known_environments : set or None
        Those of training, None where they are not known.
    table_settings : dict
        The settings with which `icscm fit` read its table; empty where it did not.
    """

    fitted: Any
    model: Any
    classes: tuple[Any, Any]
    known_environments: set[Any] | None = None
    table_settings: dict[str, Any] = field(default_factory=dict)


def _open_model(fitted: Any) -> _OpenedModel:
    """Open a model, and check that it is fitted and for two classes."""
    if isinstance(fitted, SavedModel):
        return _OpenedModel(
            fitted=fitted,
            model=fitted.model,
            classes=fitted.classes,
            known_environments=None if fitted.environments is None else {*fitted.environments},
            table_settings=get_table_settings(fitted),
        )

    if isinstance(fitted, BaseRuleClassifier):
        check_fitted(fitted)
        known_environments = None
        if fitted.environments_ is not None:
            known_environments = {make_label(label) for label in fitted.environments_}
        return _OpenedModel(
            fitted=fitted,
            model=fitted.model_,
            classes=_read_two_classes(fitted),
            known_environments=known_environments,
        )

    if not hasattr(fitted, "classes_") or not hasattr(fitted, "predict"):
        raise IcscmError(
            "model must be a fitted classifier or a model read by icscm.load; "
            f"{type(fitted).__name__} has no classes_ or no predict method"
        )
    return _OpenedModel(fitted=fitted, model=None, classes=_read_two_classes(fitted))


def _read_two_classes(classifier: Any) -> tuple[Any, Any]:
    """Return the classes of a fitted classifier; raise unless they are two."""
    classes = np.asarray(classifier.classes_).tolist()
    if len(classes) != 2:
        raise IcscmError(
            f"model has {len(classes)} class{'es' * (len(classes) != 1)}; only classifiers "
            "with two can be evaluated"
        )
    return classes[0], classes[1]


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """Rows with known outcomes, which are whether a row is positive, and remarks on them."""

    cohort: Cohort
    notes: list[str]


def _read_rows(
    opened: _OpenedModel,
    X: Any,
    y: Any,
    *,
    environments: Any,
    groups: Any,
    sample_weight: Any,
) -> _KnownRows:
    """Read the rows, without those of environments that were excluded in training."""
    # environments and groups may be given as names of columns, which are then taken out of X
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    is_positive = _read_outcomes(X, y, opened.classes)
    n_rows = len(is_positive)

    group_codes = None
    if groups is not None:
        group_codes, _ = encode_environments(groups, n_rows, what="groups")

    # without environments, all rows are in one that has no label
    environment_codes = np.zeros(n_rows, dtype=np.int64)
    environment_labels: tuple[Any, ...] = ()
    if environments is not None:
        environment_codes, environment_labels = _read_environments(
            environments, n_rows, opened.table_settings
        )

    cohort = Cohort(
        X=X,
        y=is_positive,
        classes=np.array([False, True]),
        environment_codes=environment_codes,
        environment_labels=environment_labels,
        group_codes=group_codes,
        sample_weight=None
        if sample_weight is None
        else read_weights(sample_weight, n_rows, "sample_weight"),
    )

    is_excluded = environment_codes < 0
    if is_excluded.any():
        cohort = cohort.take(~is_excluded)

    n_groups = None if cohort.group_codes is None else len(np.unique(cohort.group_codes))
    notes = [
        *wording.note_excluded_rows(int(is_excluded.sum())),
        *wording.note_groups(n_groups),
    ]
    return _KnownRows(cohort=cohort, notes=notes)


def _read_outcomes(X: Any, y: Any, classes: Sequence[Any]) -> BoolArray:
    """Return whether the outcome of each row is the positive class, the second of the model's.

    Raises for outcomes that are neither class, as they would silently count as negative.
    """
    if is_dask(X):
        raise IcscmError("X is a Dask collection; evaluate needs its rows in memory: X.compute()")
    n_rows = count_rows(X)
    if not n_rows:
        raise IcscmError("X has no rows; there is nothing to evaluate the model on")

    # it numbers the distinct values of any column, and raises for missing ones
    outcome_of_row, distinct_outcomes = encode_environments(y, n_rows, what="y")
    unknown = [repr(outcome) for outcome in distinct_outcomes if outcome not in classes]
    if unknown:
        raise IcscmError(
            Parameter("y"),
            f" holds labels that are not among the model's classes ({classes[0]!r} and "
            f"{classes[1]!r}): {shorten_list(unknown)}; drop these rows, or give the labels "
            "as they were in training",
            *(ADVICE_ON_OTHER_OUTCOMES if len(distinct_outcomes) > 2 else ()),
        )

    positive_class = classes[1]
    positive_numbers = [
        number for number, outcome in enumerate(distinct_outcomes) if outcome == positive_class
    ]
    return np.isin(outcome_of_row, positive_numbers)


def _read_environments(
    environments: Any, n_rows: int, table_settings: dict[str, Any]
) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the number of each row's environment, -1 if it is excluded, and all their labels.

    Environments are merged and excluded as `icscm fit` did in training, by the options that the
    model file keeps; those of other models stay as they are.
    """
    codes, labels = encode_environments(environments, n_rows)
    # the new name of each label, or None if it is excluded; empty without these options
    new_names = find_renamed(
        labels,
        "",
        _list_texts(table_settings.get("exclude_environment")),
        _list_texts(table_settings.get("merge_environments")),
        may_lack=True,
    )
    if not new_names:
        return codes, labels

    kept_codes = [code for code, label in enumerate(labels) if new_names[label] is not None]
    if not kept_codes:  # all were excluded in training: new environments, to evaluate the model in
        return codes, labels

    # several labels may have the same new name, and so the same new code
    names_of_kept = [new_names[labels[code]] for code in kept_codes]
    new_codes_of_kept, new_labels = encode_environments(names_of_kept, len(kept_codes))
    new_code_of_code = np.full(len(labels), -1)
    new_code_of_code[kept_codes] = new_codes_of_kept
    return new_code_of_code[codes], new_labels


def _list_texts(value: Any) -> list[str]:
    """Return the texts in a list of a model file; none in anything else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


# --- predictions ----------------------------------------------------------------------------------


def _predict_with_classifier(
    opened: _OpenedModel, rows: _KnownRows, *, threshold: float | None
) -> Predicted:
    """Predict with a classifier that is not of this package."""
    classifier = opened.fitted
    name = type(classifier).__name__
    X = rows.cohort.X
    positive_class = opened.classes[1]
    with treat_unknown("allow"):  # of a learner of this package in it
        predicted = np.asarray(classifier.predict(X)) == positive_class
    probability = predict_probability(classifier, X, positive_class=positive_class)
    if threshold is not None:
        if probability is None:
            raise IcscmError(Parameter("threshold"), f" needs probabilities; {name} has none")
        predicted = probability >= threshold
    return Predicted(
        model=None,
        name=name,
        classes=opened.classes,
        known_environments=opened.known_environments,
        rows=rows.cohort,
        predicted=predicted,
        probability=probability,
        leaves=None,
        threshold=threshold,
        baseline=_find_baseline_of_rows(rows.cohort),
        notes=rows.notes,
    )


def _find_baseline_of_rows(rows: Cohort) -> Baseline:
    """Return the baseline of new rows, since those of training are not known."""
    rate = float(np.average(rows.y, weights=rows.sample_weight))
    return Baseline(majority=int(rate > 0.5), rate=rate, source="these data")


def _predict_with_ours(
    opened: _OpenedModel, rows: _KnownRows, *, threshold: float | None
) -> Predicted:
    """Predict with a model of this package; its warnings about the rows become notes."""
    model = opened.model
    if threshold is not None:
        model = replace(model, threshold=threshold)

    # an evaluation says what it was made on, however much of it is unknown
    with warnings.catch_warnings(record=True) as caught, treat_unknown("allow"):
        warnings.simplefilter("always", IcscmWarning)
        checked_rows = opened.fitted._check_rows(rows.cohort.X)
        decisions = model.decide(checked_rows)
        # each tree of a forest has leaves of its own
        leaves = None if isinstance(model, Forest) else model.find_leaves(checked_rows)

    # files of version 0.3 have levels in the settings of the table, which may hold anything
    levels = opened.table_settings.get("levels")
    knows_levels = any(values.levels is not None for values in model.training_values)
    training_levels = levels if isinstance(levels, dict) and not knows_levels else {}
    notes = [
        *_take_notes(caught),
        *_note_levels(model.rules, checked_rows, training_levels),
    ]
    # both the decisions and the leaves may warn of the same
    distinct_notes = list(dict.fromkeys(notes))
    return Predicted(
        model=model,
        name=as_text(model) if model.kind in CHAINS else describe_size(model),
        classes=opened.classes,
        known_environments=opened.known_environments,
        rows=rows.cohort,
        predicted=decisions.prediction,
        probability=decisions.probability,
        leaves=leaves,
        threshold=model.decision_threshold,
        baseline=_find_training_baseline(model),
        notes=rows.notes + distinct_notes,
    )


def _find_training_baseline(model: Any) -> Baseline:
    """Return the baseline of the rows that a model of ours was learned from."""
    bare = model.make_baseline()
    return Baseline(
        majority=int(bare.leaf_verdicts[0]),
        rate=float(bare.leaf_probabilities()[0]),
        source="training",
    )


# --- notes ----------------------------------------------------------------------------------------


def _take_notes(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return our own warnings as notes; those of other packages are shown after all."""
    notes = []
    for warning in caught:
        if issubclass(warning.category, IcscmWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return notes


def _note_levels(rules: Sequence[Rule], X: Any, training_levels: dict[Any, Any]) -> Iterator[str]:
    """Note where the levels of a column, such as "yes" and "no", differ from those of the model.

    A level that a rule asks for but no row has, and a level of a row that did not occur in
    training, are often two spellings of one level. `training_levels` is from a model file: the
    levels of a column in training by its name, where the file has them.
    """
    for column_name, column_rules in _group_category_rules(rules).items():
        column = read_column(X, column_rules[0].column, column_rules[0].name)
        if not isinstance(column, Levels):  # it holds numbers now
            continue
        yield from _note_absent_levels(column_name, column, column_rules)

        levels_in_training = training_levels.get(column_name)
        if isinstance(levels_in_training, list):
            yield from _note_new_levels(column_name, column, levels_in_training)


def _group_category_rules(rules: Sequence[Rule]) -> dict[str | int, list[CategoryRule]]:
    """Return the rules on levels of categories, by the name of their column."""
    rules_of_columns: dict[str | int, list[CategoryRule]] = {}
    for rule in rules:
        if isinstance(rule, CategoryRule):
            rules_of_columns.setdefault(rule.feature, []).append(rule)
    return rules_of_columns


def _note_absent_levels(
    name: str | int, column: Levels, rules: Sequence[CategoryRule]
) -> list[str]:
    """Note the rules of which no row has any level; of several levels a rule's first is named."""
    absent_levels = [rule.levels[0] for rule in rules if not find_levels(column, rule.levels).any()]
    return wording.note_absent_levels(
        repr(name), _format_levels(absent_levels), _format_levels(column.levels)
    )


def _note_new_levels(name: str | int, column: Levels, levels_in_training: list[Any]) -> list[str]:
    """Note the levels that did not occur in training, and how many rows have one of them."""
    # a file may hold anything
    known_levels = [level for level in levels_in_training if isinstance(level, str | int | float)]
    is_new_level = ~find_levels(column, known_levels)
    new_levels = [
        level for level, is_new in zip(column.levels, is_new_level, strict=True) if is_new
    ]
    n_rows = int(np.isin(column.codes, np.flatnonzero(is_new_level)).sum())
    return wording.note_new_levels(repr(name), _format_levels(new_levels), n_rows)


def _format_levels(levels: Sequence[Level]) -> list[str]:
    return [format_level(level) for level in levels]
