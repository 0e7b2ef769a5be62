"""A cohort: rows with their outcomes, environments and groups.

Every study makes a cohort of the data that it is given, and from then on selects rows of it. Most
studies are of two classes; those that take several classes or numbers, too, ask for it.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.estimators.base import find_opener
from icscm.exceptions import LeftOutWarning
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.stored import StoredSource
from icscm.tables.columns import (
    StoredTable,
    check_in_memory,
    count_rows,
    fill_numbers,
    find_empty_columns,
    find_names,
    is_frame,
    open_frame,
    take_rows,
)
from icscm.tables.environments import encode_environments, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.outcomes import OutcomeKind, read_outcome
from icscm.tables.parsing import read_table
from icscm.tables.suspicion import LABEL_COPY, find_copies_of_numbers
from icscm.tables.weights import find_weighted_rows, read_weights


@dataclass(frozen=True, eq=False)
class CountedRows:
    """The rows of a cohort, as often as they count by their weights, and the group of each.

    The copies of a row are a group unless groups are given: no interval may take them for
    independent rows.
    """

    rows: IntArray
    groups: IntArray


@dataclass(frozen=True, eq=False)
class Cohort:
    """Rows with their outcomes, environments and groups.

    Attributes
    ----------
    X : table or array
        The rows, as they were given.
    y, classes : array
        The outcome of each row: one of the `classes`, of two of which the second is the positive
        one, or a number; numbers have no classes.
    environment_codes, environment_labels : array of int, tuple
        The position of each row's environment among the labels; without environments all rows
        have 0, and there are no labels.
    group_codes : array of int or None
        A number for the rows that belong together; None where each row is a group of its own.
    sample_weight : array of float or None
        Design weights, as for `fit` of our learners, relative: of all rows above 0 the mean is 1.
    """

    X: Any
    y: Array
    classes: Array
    environment_codes: IntArray
    environment_labels: tuple[Any, ...]
    group_codes: IntArray | None = None
    sample_weight: FloatArray | None = None
    kind: OutcomeKind = OutcomeKind.TWO_CLASSES

    def __len__(self) -> int:
        return len(self.y)

    @property
    def is_positive(self) -> BoolArray:
        """Whether each row has the second class, of two."""
        assert self.kind is OutcomeKind.TWO_CLASSES, "other outcomes have no positive class"
        return np.asarray(self.y == self.classes[1])

    @property
    def positive_rate(self) -> float:
        """The share of the positive rows; NaN if the outcome is of another kind."""
        if self.kind is not OutcomeKind.TWO_CLASSES:
            return np.nan
        return float(np.average(self.is_positive, weights=self.sample_weight))

    def check_outcome(self) -> None:
        """Raise unless there is something to learn: two classes or more, or different numbers."""
        if self.kind is OutcomeKind.TWO_CLASSES:
            check_labels(self.y, len(self))
        else:
            read_outcome(self.y, len(self), is_number=self.kind is OutcomeKind.NUMBER)

    @property
    def environments(self) -> Array | None:
        """The label of each row's environment, also where it is a tuple; None without any."""
        if not self.environment_labels:
            return None
        return np.fromiter(self.environment_labels, dtype=object)[self.environment_codes]

    @property
    def environment_ranks(self) -> IntArray:
        """Environments numbered by first appearance, so that their names do not matter."""
        return np.asarray(pd.factorize(self.environment_codes)[0])

    def take(self, rows: IntArray | BoolArray) -> "Cohort":
        """Select rows, by position or by a mask."""
        positions = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(
            self,
            X=take_rows(self.X, positions),
            y=self.y[positions],
            environment_codes=self.environment_codes[positions],
            group_codes=None if self.group_codes is None else self.group_codes[positions],
            sample_weight=None if self.sample_weight is None else self.sample_weight[positions],
        )

    def count_by_weight(self) -> CountedRows | None:
        """Return the rows as often as they count; None if each counts once.

        So a measure of rows and groups becomes one of weighted rows, as learners take weights.
        """
        if self.sample_weight is None:
            return None
        rows = find_weighted_rows(self.sample_weight, len(self))
        if rows is None:
            return None
        groups = rows if self.group_codes is None else self.group_codes[rows]
        return CountedRows(rows=rows, groups=groups)

    def find_empty_columns(self) -> tuple[int, ...]:
        """Return the columns that hold no value in these rows, by their positions."""
        return tuple(find_empty_columns(self.X))

    def fill_numbers(self, columns: Sequence[int]) -> "Cohort":
        """The same rows with columns of numbers that are 0 in each, for learners of others.

        They may not be able to take a column without any value, and learn nothing from this.
        """
        return replace(self, X=fill_numbers(self.X, columns))

    def name_columns(self, columns: Sequence[int]) -> tuple[str | int, ...]:
        """Return the names of columns, or their positions where they have no names."""
        names = find_names(self.X)
        return tuple(columns) if names is None else tuple(names[column] for column in columns)

    def without_environments(self) -> "Cohort":
        """The same rows for a learner that is told neither environments nor groups."""
        return replace(
            self,
            environment_codes=np.zeros_like(self.environment_codes),
            environment_labels=(),
            group_codes=None,
        )

    def open(self, preparation: BinningConfig) -> Countable[StoredSource]:
        """Bin the rows, for our learners that share this preparation."""
        open_table = find_opener(self.X)
        return open_table(
            self.X,
            self.y,
            environments=self.environments,
            groups=self.group_codes,
            sample_weight=self.sample_weight,
            preparation=preparation,
        )


def make_cohort(
    X: Any,
    y: Any,
    *,
    environments: Any,
    groups: Any = None,
    sample_weight: Any = None,
    may_lack: bool = False,
) -> Cohort:
    """Make a cohort of the data that a study of two classes is given, and check these.

    Environments may be None only if they `may_lack`. Environments and groups that are named as
    columns are taken out of the table.
    """
    return _make_cohort(
        X,
        y,
        _read_two_classes,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
        may_lack=may_lack,
    )


def make_any_cohort(
    X: Any,
    y: Any,
    *,
    environments: Any,
    is_number: bool,
    groups: Any = None,
    sample_weight: Any = None,
) -> Cohort:
    """Make a cohort of the data that a study of any outcome is given: classes, or numbers."""

    def read(values: Any, n_rows: int) -> _ReadOutcome:
        outcome = read_outcome(values, n_rows, is_number=is_number)
        if outcome.kind is OutcomeKind.TWO_CLASSES:
            return _read_two_classes(values, n_rows)
        if outcome.classes is None:
            return _ReadOutcome(outcome.values, np.array([]), outcome.kind)
        return _ReadOutcome(outcome.classes[outcome.values], outcome.classes, outcome.kind)

    return _make_cohort(
        X, y, read, environments=environments, groups=groups, sample_weight=sample_weight
    )


@dataclass(frozen=True, eq=False)
class _ReadOutcome:
    """The outcome of each row, checked, with its classes and its kind."""

    y: Array
    classes: Array
    kind: OutcomeKind


def _read_two_classes(y: Any, n_rows: int) -> _ReadOutcome:
    """Check outcomes of two classes."""
    codes, classes = check_labels(y, n_rows)
    return _ReadOutcome(classes[codes], classes, OutcomeKind.TWO_CLASSES)


def _make_cohort(
    X: Any,
    y: Any,
    read: Callable[[Any, int], _ReadOutcome],
    *,
    environments: Any,
    groups: Any,
    sample_weight: Any,
    may_lack: bool = False,
) -> Cohort:
    """Make a cohort whose outcomes are read by a function of (y, number of rows)."""
    check_in_memory(X)
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    # lists and sparse matrices become what rows can be taken of
    can_be_taken = is_frame(X) or isinstance(X, np.ndarray | StoredTable)
    rows = X if can_be_taken else read_table(X).rows
    n_rows = count_rows(rows)
    outcome = read(y, n_rows)

    environment_codes = np.zeros(n_rows, dtype=np.int64)
    environment_labels: tuple[Any, ...] = ()
    if environments is not None or not may_lack:
        environment_codes, environment_labels = encode_environments(environments, n_rows)

    group_codes = None
    if groups is not None:
        group_codes, _ = encode_environments(groups, n_rows, what="groups")

    weights = None
    if sample_weight is not None:
        weights = read_weights(sample_weight, n_rows, "sample_weight")
    return Cohort(
        X=rows,
        y=outcome.y,
        classes=outcome.classes,
        environment_codes=environment_codes,
        environment_labels=environment_labels,
        group_codes=group_codes,
        sample_weight=weights,
        kind=outcome.kind,
    )


def drop_columns(cohort: Cohort) -> tuple[Cohort, dict[str, str]]:
    """Drop the columns that our learners drop, such as a copy of the outcome.

    Returns the rest and why each column was dropped, so that all candidates of a comparison have
    the same columns. Columns of arrays are never dropped.
    """
    if not is_frame(cohort.X):
        return cohort, {}
    parsed = read_table(cohort.X)
    # coded as by `fit`: how many levels are kept apart decides which columns are dropped
    table = parsed.code(BinningConfig().max_thresholds, None)
    is_number = cohort.kind is OutcomeKind.NUMBER
    no_classes = np.zeros(len(cohort), dtype=np.int64)
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        usable = parsed.drop_unusable(
            table,
            labels=no_classes if is_number else pd.factorize(cohort.y)[0],
            environments=cohort.environment_codes,
            rows=None,
            drop_suspicious=True,
        )
    reasons = dict(usable.dropped)
    if is_number:
        copies = find_copies_of_numbers(table, np.asarray(cohort.y, dtype=np.float64))
        reasons |= dict.fromkeys(copies, LABEL_COPY)
    frame = open_frame(cohort.X)
    dropped = {frame.columns[position]: reason for position, reason in reasons.items()}
    return replace(cohort, X=frame.drop(list(dropped)).to_native()), dropped
