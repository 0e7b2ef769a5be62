"""Environments: from any hashable values to numbers and labels, and warnings about few of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from numbers import Real
from typing import Any, Final

import numpy as np

from icscm import exceptions
from icscm._constants import JOINT, MANY_ENVIRONMENTS, SPARSE_ENVIRONMENT
from icscm._lazy import nw
from icscm._types import Array, CountArray, IntArray
from icscm.exceptions import IcscmError, warn
from icscm.formatting import count, format_number, shorten_list
from icscm.tables.columns import count_rows, is_dask, is_frame, list_names, open_frame
from icscm.tables.errors import describe_many
from icscm.tables.labels import number_groups

# The label of the only environment where no environments were given.
ALL_SAMPLES: Final = "all"

# Kinds of labels that are ordered throughout: sets compare, for example, but are not.
_ORDERED_KINDS: Final = (str, Real, date, tuple)


# --- numbers and labels --------------------------------------------------------------------------


def encode_environments(
    environments: Any, n_rows: int, rows: Array | None = None, what: str = "environments"
) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the number of each row's environment, and the label of each number.

    `rows` are those that count, as often as they are named; None means each once. `what` names
    the values in errors.

    Labels are in their natural order where they have one, by type and text otherwise, so
    that the result does not depend on the order of the rows.

    >>> encode_environments(["b", "a", "b"], n_rows=3)
    (array([1, 0, 1]), ('a', 'b'))
    """
    import pandas

    # `codes` number the labels in the order in which they occur in the rows.
    values = _as_one_dimensional(environments, what)
    codes, distinct = number_groups(values, n_rows, rows, what)
    is_plain = isinstance(distinct, np.ndarray) and distinct.dtype.kind in "biu"
    labels = (distinct if is_plain else pandas.Index(distinct)).tolist()

    # So they are numbered anew, in the order of the labels.
    codes_in_order = _sort(labels)
    number_of_code = np.empty(len(labels), dtype=np.int64)
    number_of_code[codes_in_order] = np.arange(len(labels))
    sorted_labels = tuple(labels[code] for code in codes_in_order)
    return number_of_code[codes], sorted_labels


def number_environments(
    environments: Any, n_rows: int, rows: Array | None = None
) -> tuple[IntArray, tuple[Any, ...]]:
    """Encode environments; where none were given all rows are in one."""
    if environments is not None:
        return encode_environments(environments, n_rows, rows)
    n_counted = n_rows if rows is None else len(rows)
    return np.zeros(n_counted, dtype=np.int64), (ALL_SAMPLES,)


def shuffle_within(environments: Array, rng: np.random.Generator) -> Array:
    """Return a permutation of the rows that keeps each in its environment.

    Rows are sorted by environment twice, once in their order and once at random; a row takes the
    place of the one that comes at the same point of the other list.
    """
    random_keys = rng.random(len(environments))
    rows_in_order = np.argsort(environments, kind="stable")
    rows_at_random = np.lexsort((random_keys, environments))
    permutation = np.empty(len(environments), dtype=np.intp)
    permutation[rows_in_order] = rows_at_random
    return permutation


def _as_one_dimensional(environments: Any, what: str) -> Any:
    """Return something that `pandas.factorize` takes, with tuples kept as labels."""
    if is_frame(environments):
        raise IcscmError(f"{what} must be one column of labels, not a table")
    values = environments
    if not isinstance(values, np.ndarray) and nw.dependencies.is_into_series(values):
        values = nw.from_native(values, series_only=True).to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim == 1:
            return values
        raise IcscmError(f"{what} must be one-dimensional, got the shape {values.shape}")
    try:
        return np.fromiter(values, dtype=object)
    except TypeError:
        kind = type(values).__name__
        raise IcscmError(f"{what} must hold one label per row, got {kind}") from None


def _sort(labels: list[Any]) -> list[int]:
    """Return the order of labels: by value where all are of one kind that has an order.

    Others are ordered by type and text.
    """
    numbers = range(len(labels))
    for kind in _ORDERED_KINDS:
        if all(isinstance(label, kind) for label in labels):
            with suppress(TypeError):  # such as of tuples that hold texts and numbers
                return sorted(numbers, key=labels.__getitem__)

    type_and_text = [(type(label).__name__, repr(label)) for label in labels]
    return sorted(numbers, key=type_and_text.__getitem__)


# --- environments that are columns of the table --------------------------------------------------


def take_environments(X: Any, environments: Any, what: str = "environments") -> tuple[Any, Any]:
    """Return X without the columns that `environments`, or groups, name, and what is in them.

    A text names a column of a frame, a list of such texts several that are joined (a list as long
    as the frame is labels, as an array or a Series always is). All else stays as it is.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [1, 2, 3], "region": list("abb"), "year": [8, 8, 9]})
    >>> X, environments = take_environments(frame, ["region", "year"])
    >>> list(X), list(environments)
    (['age'], ['a / 8', 'b / 8', 'b / 9'])
    """
    is_one_name = isinstance(environments, str)
    names = [environments] if is_one_name else environments
    is_list = isinstance(names, list | tuple)
    can_be_names = is_list and all(isinstance(name, str) for name in names)
    if not can_be_names:
        return X, environments

    # A single text is a name in any case; a list may hold the labels of rows.
    has_column_names = is_frame(X) or (is_dask(X) and hasattr(X, "columns"))
    if is_one_name and not has_column_names:
        raise IcscmError(
            f"{what}={environments!r} names a column, but X has no column names; give a DataFrame, "
            "or one label for each row"
        )
    if not has_column_names:
        return X, environments

    columns = list(X.columns) if is_dask(X) else list_names(X)
    absent = [name for name in names if name not in columns]
    if not is_one_name and _are_labels(names, absent, X):
        return X, environments
    if absent:
        listed = shorten_list([repr(name) for name in columns])
        raise IcscmError(f"{what} names {absent[0]!r}, but X has only the columns {listed}")
    return _take_columns_of_dask(X, names) if is_dask(X) else _take_columns(X, names)


def _are_labels(names: Sequence[str], absent: Sequence[str], X: Any) -> bool:
    """Tell whether a list of texts holds a label for each row, rather than names of columns."""
    if not names or absent == names:
        return True
    return not is_dask(X) and len(names) == count_rows(X)


def _take_columns(X: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Return a frame without the columns of these names, and what is in them."""
    frame = open_frame(X)
    others = frame.drop(*names).to_native()
    if len(names) == 1:
        return others, frame[names[0]].to_native()
    return others, join_columns(frame.select(*names).to_native())


def _take_columns_of_dask(X: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Return a Dask frame without the columns of these names, and what is in them."""
    others = X.drop(columns=list(names))
    if len(names) == 1:
        return others, X[names[0]]
    named = X[list(names)]
    return others, named.map_partitions(join_columns, meta=join_columns(named._meta))


def join_columns(frame: Any) -> Any:
    """Return `north / 2019` for each row; None where a value is missing."""
    import pandas

    narwhals_frame = nw.from_native(frame, eager_only=True)
    columns = [column.to_list() for column in narwhals_frame.iter_columns()]
    joined: list[str | None] = []
    for values in zip(*columns, strict=True):
        is_missing = any(value is None or value != value for value in values)  # or NaN
        texts = [format_number(v) if isinstance(v, float) else str(v) for v in values]
        joined.append(None if is_missing else JOINT.join(texts))
    return pandas.Series(joined, index=getattr(frame, "index", None), dtype=object)


# --- few environments, and few rows in them ------------------------------------------------------


def check_several(labels: Sequence[Any]) -> None:
    """Raise unless there are environments to compare."""
    if len(labels) < 2:
        raise IcscmError(
            f"environments holds a single environment, {labels[0]!r}; invariance needs at least "
            "two to compare"
        )


def warn_of_sparse(totals: CountArray, labels: Sequence[Any], classes: Sequence[Any]) -> None:
    """Warn of few rows, or too many environments; `totals` are by (outcome, environment).

    There is one warning at most, of the gravest.
    """
    sparse = _describe_sparse(totals, labels, classes)
    sizes = totals.sum(axis=0).tolist()
    advice_on_many = describe_many(labels, sizes, max_environments=MANY_ENVIRONMENTS)
    if not sparse and not advice_on_many:
        return

    has_both_classes = (totals > 0).all(axis=0)
    if not has_both_classes.any():
        message = "Every environment holds samples of one class only, so no rule can be compared."
    elif advice_on_many:
        message = advice_on_many
    else:
        listed = shorten_list(sparse, "; ")
        message = f"Some environments have few samples to compare: {listed}."
    warn(message, exceptions.SparseEnvironmentWarning)


def _describe_sparse(
    totals: CountArray, labels: Sequence[Any], classes: Sequence[Any]
) -> list[str]:
    """Describe the environments that have few rows, or none of a class."""
    sparse = []
    for environment, (n_negative, n_positive) in zip(labels, totals.T.tolist(), strict=True):
        n_rows = n_negative + n_positive
        if n_rows < SPARSE_ENVIRONMENT:
            sparse.append(f"{environment!r} holds only {count(n_rows, 'sample')}")
        elif n_negative == 0:
            sparse.append(f"{environment!r} holds no sample of class {classes[0]!r}")
        elif n_positive == 0:
            sparse.append(f"{environment!r} holds no sample of class {classes[1]!r}")
    return sparse


def warn_of_two(labels: Sequence[Any]) -> None:
    """Warn where there are two environments only."""
    if len(labels) == 2:
        warn(
            "Two environments show only one difference: a shortcut that both share is not "
            "rejected. Use three or more.",
            exceptions.FewEnvironmentsWarning,
        )
