"""Labels and environments of files: numbered as they turn up, ordered at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from pyarrow import types

from icscm._types import Array, IntArray
from icscm.engine.stores import Rows
from icscm.engine.survey import Groups
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.tables.columns import read_arrow_groups
from icscm.tables.errors import make_missing_error
from icscm.tables.labels import check_labels, encode_environments, number_environments


class GroupReader:
    """Numbers the values of the column of labels, or of environments, as they turn up."""

    def __init__(self, name: str, role: str, most: int) -> None:
        self.name, self._role, self._most = name, role, most
        self._parts: list[Array] = []
        self._n_rows = 0
        self.known: pyarrow.Array | None = None

    def read(self, array: pyarrow.Array) -> Groups:
        """The next rows."""
        what = f"column {self.name!r}, the {self._role},"
        array = read_arrow_groups(array, what)
        is_missing = array.is_null(nan_is_null=types.is_floating(array.type))
        if is_missing.true_count:
            where = f"row {is_missing.index(True).as_py() + self._n_rows:,}"
            raise make_missing_error(what, where, is_label=self._role == "target")
        known = array.slice(0, 0) if self.known is None else self.known
        codes = pyarrow.compute.index_in(array, value_set=known)
        if codes.null_count:
            new = pyarrow.compute.unique(array.filter(codes.is_null()))
            known = pyarrow.concat_arrays([known, new])
            codes = pyarrow.compute.index_in(array, value_set=known)
        self.known = known
        if len(known) > self._most:
            some = shorten_list([repr(value) for value in known[:3].to_pylist()])
            advice = "environments; group them"
            if self._role == "target":
                advice = "classes; merge them into two, or fit one model per class"
            raise IcscmError(f"{what} holds {some} and more: over {self._most:,} {advice}")
        numbers = codes.to_numpy(zero_copy_only=False).astype(np.min_scalar_type(len(known)))
        self._parts.append(numbers)
        self._n_rows += len(numbers)
        return Groups(numbers, known.to_pylist())

    def take_parts(self) -> Iterator[Array]:
        """The number of each row's value, batch by batch, given away."""
        self._parts.reverse()
        while self._parts:
            yield self._parts.pop()


def number_segments(
    label_ranks: IntArray, labels: GroupReader, places: GroupReader | None, n_rows: int
) -> tuple[Array, Rows, tuple[Any, ...]]:
    """Each row's segment - label, then environment - as the files have them and sorted.

    Environments are numbered as `fit` does; their labels come last.
    """
    ranks, found = number_environments(None, 1)
    parts: Iterator[Array] | None = None
    if places is not None:
        known = pyarrow.chunked_array([places.known])
        ranks, found = encode_environments(known, len(known))
        parts = places.take_parts()
    n_segments = 2 * len(found)
    segments = np.empty(n_rows, dtype=np.min_scalar_type(n_segments))
    bounds = np.zeros(n_segments + 1, dtype=np.int64)
    start = 0
    for numbers in labels.take_parts():
        own = ranks[0] if parts is None else ranks[next(parts)]
        here = segments[start : start + len(numbers)]
        here[:] = label_ranks[numbers] * len(found) + own
        bounds[1:] += np.bincount(here, minlength=n_segments)
        start += len(numbers)
    return segments, Rows(None, np.cumsum(bounds)), found


def rank_labels(labels: GroupReader, positive: Any) -> tuple[IntArray, Array]:
    """0 or 1 for each value of the label, and the two classes in this order."""
    assert labels.known is not None
    found = labels.known.to_pylist()
    if len(found) == 1:
        raise IcscmError(f"the target holds one class only, {found[0]!r}; learning needs two")
    ranks, classes = check_labels(labels.known.to_numpy(zero_copy_only=False), len(found))
    if positive is None or positive == classes[1]:
        return ranks, classes
    if positive != classes[0]:
        raise IcscmError(
            f"positive={positive!r} is none of the classes, {' and '.join(map(repr, found))}"
        )
    return 1 - ranks, classes[::-1]
