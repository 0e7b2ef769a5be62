"""Rows with known labels, and what a fitted model predicts for them."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import as_text, format_level, shorten_list
from icscm.io.naming import find_renamed
from icscm.model.forest import Forest, describe_size
from icscm.model.rules import CategoryRule, Rule
from icscm.model.saved import SavedModel, check_fitted, get_table_settings, make_label
from icscm.model.splits import CHAINS
from icscm.model.thresholds import fix_threshold
from icscm.report.wording import predictions as wording
from icscm.tables.columns import Levels, count_rows, find_levels, is_dask, read_column
from icscm.tables.labels import encode_environments, take_environments
from icscm.validation.folds import Cohort

_OPTIMISTIC = (
    "would be chosen on the rows it is evaluated on, which is optimistic; choose it at fitting or "
    "on other rows, and give the number"
)


class Predicted(NamedTuple):
    """Rows with their labels, environments and groups, and the predictions of a model for them.

    `own` is a model of this package or None, `known` are its training environments, `rate` and
    `majority` are what the majority-class baseline predicts; `leaves` are those of a tree. Without
    `threshold`, the model decides otherwise.
    """

    own: Any
    name: str
    classes: tuple[Any, Any]
    known: set[Any] | None
    rows: Cohort
    predicted: BoolArray
    probability: FloatArray | None
    leaves: IntArray | None
    threshold: float | None
    majority: int
    rate: float
    notes: list[str]


def predict_rows(
    model: Any, X: Any, y: Any, *, environments: Any, groups: Any, threshold: Any
) -> Predicted:
    """What a model predicts for rows, with the given threshold or its own."""
    own, classes, known, settings = _open_model(model)
    cut = None if threshold is None else fix_threshold(threshold, _OPTIMISTIC)
    if cut is not None and own is not None:
        own = replace(own, threshold=cut)
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    is_positive, together = _read_labels(X, y, classes), None
    n_rows = len(is_positive)
    places: tuple[IntArray, tuple[Any, ...]] = np.zeros(n_rows, dtype=np.int64), ()
    if groups is not None:
        together, _ = encode_environments(groups, n_rows, what="groups")
    if environments is not None:
        places = _read_environments(environments, n_rows, settings)
    rows = Cohort(X, is_positive, np.array([False, True]), *places, together)
    n_excluded = int((rows.numbers < 0).sum())
    rows = rows.take(rows.numbers >= 0) if n_excluded else rows
    n_groups = None if rows.groups is None else len(np.unique(rows.groups))
    notes = [*wording.note_excluded_rows(n_excluded), *wording.note_groups(n_groups)]
    predicted, probability, leaves, unusual = _predict(model, own, rows.X, classes, settings)
    rate = float(rows.y.mean())
    majority, name = int(rate > 0.5), type(model).__name__
    if own is not None:
        bare = own.make_baseline()
        majority, rate = int(bare.leaf_verdicts[0]), float(bare.leaf_probabilities()[0])
        name = as_text(own) if own.kind in CHAINS else describe_size(own)
        cut = own.decision_threshold
    elif cut is not None:
        if probability is None:
            raise IcscmError(Parameter("threshold"), f" needs probabilities; {name} has none")
        predicted = probability >= cut
    found = predicted, probability, leaves, cut, majority, rate, notes + unusual
    return Predicted(own, name, classes, known, rows, *found)


def _open_model(model: Any) -> tuple[Any, tuple[Any, Any], set[Any] | None, dict[str, Any]]:
    """The tree or forest (None for other classifiers), classes, environments and settings.

    The environments are those of training, as a model file holds them; the settings are those with
    which `icscm fit` read its table.
    """
    if isinstance(model, SavedModel):
        known = None if model.environments is None else {*model.environments}
        return model.model, model.classes, known, get_table_settings(model)
    is_ours = hasattr(model, "fit_counts")
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
    labels = model.environments_ if is_ours else None
    known = None if labels is None else {make_label(each) for each in labels}
    return model.model_ if is_ours else None, (classes[0], classes[1]), known, {}


def _read_labels(X: Any, y: Any, classes: Sequence[Any]) -> BoolArray:
    """Which rows are positive."""
    if is_dask(X):
        raise IcscmError("X is a Dask collection; evaluate needs its rows in memory: X.compute()")
    n_rows = count_rows(X)
    if not n_rows:
        raise IcscmError("X has no rows; there is nothing to evaluate the model on")
    codes, labels = encode_environments(y, n_rows, what="y")
    unknown = [repr(label) for label in labels if not any(label == each for each in classes)]
    if unknown:
        raise IcscmError(
            Parameter("y"),
            f" holds labels that are not among the model's classes ({classes[0]!r} and "
            f"{classes[1]!r}): {shorten_list(unknown)}; drop these rows, or give the labels "
            "as they were in training",
        )
    return np.array([label == classes[1] for label in labels])[codes]


def _read_environments(
    environments: Any, n_rows: int, settings: dict[str, Any]
) -> tuple[IntArray, tuple[Any, ...]]:
    """As `encode_environments`, merged and excluded as `icscm fit` did; excluded rows have -1."""
    numbers, labels = encode_environments(environments, n_rows)
    options = [settings.get(name) for name in ("exclude_environment", "merge_environments")]
    names = [[e for e in o if isinstance(e, str)] if isinstance(o, list) else [] for o in options]
    renamed = find_renamed(labels, "", *names, may_lack=True)
    kept = [k for k, label in enumerate(labels) if renamed and renamed[label] is not None]
    if not kept:  # all were excluded in training: new environments, to evaluate the model in
        return numbers, labels
    codes, labels = encode_environments([renamed[labels[k]] for k in kept], len(kept))
    number_of = np.full(len(renamed), -1)
    number_of[kept] = codes
    return number_of[numbers], labels


def _predict(
    model: Any, own: Any, X: Any, classes: Sequence[Any], settings: dict[str, Any]
) -> tuple[BoolArray, FloatArray | None, IntArray | None, list[str]]:
    """Predictions, probabilities, leaves of a tree, and notes on unusual values."""
    if own is None:
        chances = model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else None
        return np.asarray(model.predict(X)) == classes[1], chances, None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IcscmWarning)
        rows = model._check_rows(X)
        predicted, probability, _ = own.decide(rows)
        leaves = None if isinstance(own, Forest) else own.find_leaves(rows)
    notes = [str(each.message) for each in caught if issubclass(each.category, IcscmWarning)]
    for each in caught:
        if not issubclass(each.category, IcscmWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    levels = settings.get("levels")
    notes += _note_levels(own.rules, rows, levels if isinstance(levels, dict) else {})
    return predicted, probability, leaves, list(dict.fromkeys(notes))


def _note_levels(rules: Sequence[Rule], X: Any, training: dict[Any, Any]) -> Iterator[str]:
    """Levels of rules that no row has, and levels that did not occur in training.

    Often these are different spellings of one level.
    """
    categories = [rule for rule in rules if isinstance(rule, CategoryRule)]
    for feature, rule in {rule.feature: rule for rule in categories}.items():
        column = read_column(X, rule.column, rule.name)
        if not isinstance(column, Levels):
            continue
        used = [each.levels for each in categories if each.feature == feature]
        absent = [own[0] for own in used if not find_levels(column, own).any()]
        lists: dict[str, Sequence[Any]] = {"absent": absent, "present": column.levels, "new": []}
        n_rows, seen = 0, training.get(feature)
        if isinstance(seen, list):
            known = [each for each in seen if isinstance(each, str | int | float)]
            is_new = ~find_levels(column, known)
            n_rows = int(np.append(is_new, False)[column.codes].sum())
            lists["new"] = [each for each, new in zip(column.levels, is_new, strict=True) if new]
        texts = {name: [*map(format_level, levels)] for name, levels in lists.items()}
        name = repr(feature)
        yield from wording.note_absent_levels(name, texts["absent"], texts["present"])
        yield from wording.note_new_levels(name, texts["new"], n_rows)
