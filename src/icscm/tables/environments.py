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

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import CountArray, IntArray
from icscm.exceptions import IcscmError, SparseEnvironmentWarning, warn
from icscm.tables.labels import number_groups
from icscm.text import shorten_list

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
    if complaints:
        listed = shorten_list(complaints, "; ")
        what = f"Some environments can say little about invariance: {listed}."
        warn(what, SparseEnvironmentWarning)


def _as_one_dimensional(environments: Any, what: str) -> Any:
    """Something `pandas.factorize` takes, with tuples kept as labels."""
    if nw.dependencies.is_into_dataframe(environments):
        raise IcscmError(f"{what} must be one column of labels, not a table")
    if nw.dependencies.is_into_series(environments):
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
