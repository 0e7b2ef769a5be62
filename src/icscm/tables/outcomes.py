"""Outcomes of any kind, checked: classes with their labels, or numbers.

Learners from counts need two classes (`icscm.tables.labels`). The screen of columns takes what
scikit-learn's classifiers and regressors take.
"""

from collections.abc import Sized
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from icscm._lazy import multiclass
from icscm._types import Array, FloatArray, IntArray
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.columns import bring
from icscm.tables.labels import as_one_dimensional, number_groups

# An outcome of numbers with at most so many distinct values is taken for classes.
MAX_CLASSES_OF_NUMBERS: Final = 10
# More classes than this are surely not meant.
MAX_CLASSES: Final = 50


class OutcomeKind(StrEnum):
    """What an outcome is: it decides how models are scored, and in which words."""

    TWO_CLASSES = "two classes"
    SEVERAL_CLASSES = "several classes"
    NUMBER = "number"


def find_kind(classes: Sized | None) -> OutcomeKind:
    """Find the kind of an outcome of these classes; None means a number.

    >>> find_kind(np.array(["no", "yes"])), find_kind(None)
    (<OutcomeKind.TWO_CLASSES: 'two classes'>, <OutcomeKind.NUMBER: 'number'>)
    """
    if classes is None:
        return OutcomeKind.NUMBER
    return OutcomeKind.TWO_CLASSES if len(classes) == 2 else OutcomeKind.SEVERAL_CLASSES


@dataclass(frozen=True, eq=False)
class OutcomeValues:
    """The outcome of each row: a number, or the number of its class.

    `classes` are the labels of the classes in their order; None for numbers.
    """

    values: Array
    classes: Array | None

    @property
    def is_number(self) -> bool:
        return self.classes is None

    @property
    def kind(self) -> OutcomeKind:
        return find_kind(self.classes)


def is_numeric_outcome(y: Any) -> bool:
    """Return whether an outcome looks like a number: numbers of more than ten distinct values.

    >>> is_numeric_outcome([0.5 * k for k in range(20)]), is_numeric_outcome(["a", "b", "a"])
    (True, False)
    """
    values = np.asarray(bring(y))
    if values.dtype.kind not in "iuf":
        return False
    return len(np.unique(values)) > MAX_CLASSES_OF_NUMBERS


def read_outcome(y: Any, n_rows: int, *, is_number: bool) -> OutcomeValues:
    """Check the outcome of each row, and number its classes."""
    values = as_one_dimensional(bring(y))
    if is_number:
        return OutcomeValues(values=read_numbers(values, n_rows), classes=None)
    codes, classes = number_classes(values, n_rows)
    return OutcomeValues(values=codes, classes=classes)


def check_weighted(outcome: OutcomeValues, weights: FloatArray) -> None:
    """Raise unless each class, or two distinct numbers, have rows of a positive weight."""
    weighted = np.unique(outcome.values[weights > 0])
    if outcome.classes is None:
        if len(weighted) < 2:
            raise IcscmError("y is the same in every row of a positive sample_weight")
        return
    absent = np.setdiff1d(np.arange(len(outcome.classes)), weighted)
    if len(absent):
        label = outcome.classes.tolist()[absent[0]]
        raise IcscmError(
            f"sample_weight is 0 in every row of class {label!r}; drop these rows, or weight them"
        )


def read_numbers(values: Any, n_rows: int) -> FloatArray:
    """Return the numbers of an outcome; raises unless all are finite and they differ."""
    if len(values) != n_rows:
        raise IcscmError(f"y has {len(values)} entries but X has {n_rows} rows; give one per row")
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise IcscmError(
            Parameter("y"), " holds text; a learner of numbers needs numbers"
        ) from None
    if n_rows == 1:
        raise IcscmError("X has one row (n_samples = 1); learning needs more")
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        first = int(is_wrong.argmax())
        what = "NaN, a missing value," if np.isnan(numbers[first]) else "infinity"
        raise IcscmError(
            f"y contains {what} in {is_wrong.sum()} rows, the first of them row {first}; "
            "drop these rows"
        )
    if numbers.min() == numbers.max():
        raise IcscmError(f"y is {numbers[0]:g} in every row; there is nothing to predict")
    return numbers


def number_classes(values: Any, n_rows: int) -> tuple[IntArray, Array]:
    """Number the classes of an outcome in the order of their labels."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise IcscmError("y contains infinity; labels must be finite")
    codes, distinct = number_groups(values, n_rows, None, "y")
    if array.dtype.kind == "f":  # of which some may be no labels
        if multiclass.type_of_target(array).startswith("continuous"):
            raise IcscmError(
                "Unknown label type: continuous, since ",
                Parameter("y"),
                " holds numbers with decimals, which are no classes; if it is a number, use ",
                Parameter("a regressor"),
            )
        multiclass.check_classification_targets(array)
    labels = np.asarray(distinct)
    if len(labels) < 2:
        what = f"one class only, {labels.tolist()[0]!r}" if len(labels) else "no class"
        raise IcscmError(f"y holds {what}; learning needs two")
    if len(labels) > MAX_CLASSES:
        raise IcscmError(
            Parameter("y"),
            f" holds {len(labels):,} classes; at most {MAX_CLASSES} are screened. If it is a "
            "number, use ",
            Parameter("a regressor"),
        )
    try:
        order = np.argsort(labels, kind="stable")
    except TypeError:
        raise IcscmError("y mixes labels that cannot be ordered; use labels of one kind") from None
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], labels[order]
