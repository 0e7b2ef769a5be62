"""Environment labels: any hashable values in, numbers 0 .. K - 1 and their labels out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from icscm._constants import JOINT, SPARSE_ENVIRONMENT
from icscm._types import CountArray, IntArray
from icscm.exceptions import IcscmError, SparseEnvironmentWarning, warn
from icscm.formatting import format_number, shorten_list
from icscm.tables.columns import count_rows, is_dask, is_frame, list_names, open_frame
from icscm.tables.labels import number_groups

# Stands for everything in counts by environment where no environments were given.
ALL_SAMPLES = "all"


def encode_environments(
    environments: Any, n_rows: int, rows: NDArray[np.intp] | None = None, what: str = "environments"
) -> tuple[IntArray, tuple[Any, ...]]:
    """The number of each row's environment, and the label of each number.

    `rows` are those that count, as often as they are named; None means each once. Errors say `what`
    was wrong.

    Labels are in their natural order where they have one, by type and text otherwise, so
    that the result does not depend on the order of the rows.

    >>> encode_environments(["b", "a", "b"], n_rows=3)
    (array([1, 0, 1]), ('a', 'b'))
    """
    import pandas

    values = _as_one_dimensional(environments, what)
    codes, labels = number_groups(values, n_rows, rows, what)
    plain = pandas.Index(labels).tolist()
    order = sorted(range(len(plain)), key=_make_sort_key(plain))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], tuple(plain[i] for i in order)


def take_environments(X: Any, environments: Any) -> tuple[Any, Any]:
    """X without the columns that `environments` names, and what is in them.

    A text names a column of a frame, a list of such texts several that are joined (a list as long
    as the frame is labels, as an array or a Series always is). All else stays as it is.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [1, 2, 3], "region": list("abb"), "year": [8, 8, 9]})
    >>> X, environments = take_environments(frame, ["region", "year"])
    >>> list(X), list(environments)
    (['age'], ['a / 8', 'b / 8', 'b / 9'])
    """
    names = [environments] if isinstance(environments, str) else environments
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return X, environments
    is_lazy = is_dask(X)
    if not is_frame(X) and not (is_lazy and hasattr(X, "columns")):
        if names is environments:  # labels
            return X, environments
        raise IcscmError(
            f"environments={environments!r} names a column, and X has no names; give a DataFrame, "
            "or one label for each row"
        )
    known = list(X.columns) if is_lazy else list_names(X)
    absent = [name for name in names if name not in known]
    if names is environments and (not names or absent == names or len(names) == _count(X, is_lazy)):
        return X, environments
    if absent:
        there = shorten_list([repr(name) for name in known])
        what = f"environments names {absent[0]!r}, and X has no such column; it has {there}"
        raise IcscmError(what)
    if is_lazy:
        part, rest = X[list(names)], X.drop(columns=list(names))
        if len(names) == 1:
            return rest, X[names[0]]
        return rest, part.map_partitions(join_columns, meta=join_columns(part._meta))
    frame = open_frame(X)
    rest = frame.drop(*names).to_native()
    if len(names) == 1:
        return rest, frame[names[0]].to_native()
    return rest, join_columns(frame.select(*names).to_native())


def _count(X: Any, is_lazy: bool) -> int:
    return -1 if is_lazy else count_rows(X)


def join_columns(frame: Any) -> Any:
    """`north / 2019` of each row; None where a value is missing."""
    import pandas

    columns = [each.to_list() for each in open_frame(frame).iter_columns()]
    joined = [
        None if any(each is None or each != each for each in row) else JOINT.join(map(_write, row))
        for row in zip(*columns, strict=True)
    ]
    return pandas.Series(joined, index=getattr(frame, "index", None), dtype=object)


def _write(value: Any) -> str:
    return format_number(value) if isinstance(value, float) else str(value)


def number_environments(
    environments: Any, n_rows: int, rows: NDArray[np.intp] | None = None
) -> tuple[IntArray, tuple[Any, ...]]:
    """As `encode_environments`; where none were given all samples are in one."""
    if environments is not None:
        return encode_environments(environments, n_rows, rows)
    return np.zeros(n_rows if rows is None else len(rows), dtype=np.int64), (ALL_SAMPLES,)


def check_several(labels: Sequence[Any]) -> None:
    """Raise unless there are environments to compare."""
    if len(labels) < 2:
        raise IcscmError(
            f"environments holds a single environment, {labels[0]!r}; invariance needs at least "
            "two to compare"
        )


def warn_of_sparse(totals: CountArray, labels: Sequence[Any], classes: Sequence[Any]) -> None:
    """Warn of environments that can say little; `totals` are samples by (label, environment)."""
    complaints = []
    for environment, (negatives, positives) in zip(labels, totals.T.tolist(), strict=True):
        if negatives + positives < SPARSE_ENVIRONMENT:
            n = negatives + positives
            complaints.append(f"{environment!r} holds only {n} sample{'s' * (n != 1)}")
        elif 0 in (negatives, positives):
            absent = classes[0 if negatives == 0 else 1]
            complaints.append(f"{environment!r} holds no sample of class {absent!r}")
    if not (totals > 0).all(axis=0).any():
        what = (
            "Every environment holds samples of one class only: they cannot tell a rule that holds "
            "in all of them from one that does not."
        )
        warn(what, SparseEnvironmentWarning)
    elif complaints:
        listed = shorten_list(complaints, "; ")
        what = f"Some environments can say little about invariance: {listed}."
        warn(what, SparseEnvironmentWarning)


def _as_one_dimensional(environments: Any, what: str) -> Any:
    """Something `pandas.factorize` takes, with tuples kept as labels."""
    if is_frame(environments):
        raise IcscmError(f"{what} must be one column of labels, not a table")
    if not isinstance(environments, np.ndarray) and nw.dependencies.is_into_series(environments):
        environments = nw.from_native(environments, series_only=True).to_numpy()
    if isinstance(environments, np.ndarray):
        shape = environments.shape
        if len(shape) != 1:
            raise IcscmError(f"{what} must be one-dimensional, got an array of shape {shape}")
        return environments
    try:
        labels = list(environments)
    except TypeError:
        kind = type(environments).__name__
        raise IcscmError(f"{what} must hold one label per row, got {kind}") from None
    values = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        values[i] = label
    return values


def _make_sort_key(labels: list[Any]) -> Any:
    """By value where the labels have one natural order, by type and text otherwise.

    Only for kinds known to be ordered throughout: sets, say, compare, but are not.
    """
    for kind in (str, Real, date, tuple):
        if all(isinstance(label, kind) for label in labels):
            with suppress(TypeError):
                sorted(labels)
                return lambda i: labels[i]
    return lambda i: (type(labels[i]).__name__, repr(labels[i]))
