"""Tables as they come - arrays, pandas, polars, Arrow - read one column at a time.

A column holds numbers, or levels of a category (text, booleans, categoricals). Missing values
(NaN, None, null) are kept apart from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    import pyarrow

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]

# What a category's level can be. Booleans are never equal to numbers here.
Level = str | bool | int | float


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; `missing` says where there is none, None that none is missing.

    `values` is NaN, or anything at all, where a number is missing.
    """

    values: Array
    missing: BoolArray | None = None


@dataclass(frozen=True)
class Levels:
    """A column of categories: the number of each row's level, -1 where it is missing.

    Levels are sorted, and each occurs.
    """

    codes: NDArray[np.int32]
    levels: tuple[Level, ...]

    @property
    def missing(self) -> BoolArray | None:
        """Where the level is missing; None if nowhere."""
        is_missing: BoolArray = self.codes < 0
        return is_missing if is_missing.any() else None


@dataclass(frozen=True)
class Dates:
    """A column of dates or times: nothing that rules are made of."""

    dtype: str


Column = Numbers | Levels | Dates


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns."""
    return bool(nw.dependencies.is_into_dataframe(X))


def open_frame(X: Any) -> nw.DataFrame[Any]:
    """A frame of any kind behind one interface."""
    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        names = ", ".join(str(error).partition("\n- ")[2].split("\n- "))
        raise IcscmError(
            f"the table has more than one column of the same name ({names}); names must differ, "
            "since rules go by them"
        ) from None


def count_rows(X: Any) -> int:
    """Number of rows of any kind of table."""
    return len(open_frame(X)) if is_frame(X) else int(np.shape(X)[0])


def list_names(X: Any) -> list[str]:
    """Names of a frame's columns, as text."""
    return [str(name) for name in open_frame(X).columns]


def read_column(X: Any, position: int, name: str | None) -> Column:
    """One column: by name where the table has names and one is given, else by position."""
    if issparse(X):
        return read_array(X[:, [position]].toarray().ravel(), f"column {position}")
    if not is_frame(X):
        return read_array(np.asarray(X)[:, position], f"column {position}")
    frame = open_frame(X)
    if name is None:
        return read_series(frame[:, position])
    if name not in frame.columns:
        raise IcscmError(
            f"the table has no column {name!r}, which the model needs; names matter, order does not"
        )
    return read_series(frame[name])


def read_array(values: Array, what: str) -> Column:
    """One column of an array; `what` names it in errors."""
    if values.dtype.kind in "OUS":
        import pandas

        return read_series(
            nw.from_native(pandas.Series(values.tolist(), name=what), series_only=True)
        )
    if values.dtype.kind != "f":
        return Numbers(values)
    is_missing = np.isnan(values)
    return Numbers(values, is_missing if is_missing.any() else None)


def read_series(series: nw.Series[Any]) -> Column:
    """One column of a frame."""
    dtype = series.dtype
    if dtype.is_temporal():
        return Dates(str(dtype))
    if dtype.is_float() or (dtype.is_integer() and not series.is_null().any()):
        return read_array(series.to_numpy(), series.name)
    return read_arrow(_to_arrow(series), series.name)


def _to_arrow(series: nw.Series[Any]) -> pyarrow.Array | pyarrow.ChunkedArray:
    try:
        return series.to_arrow()
    except Exception as error:  # pyarrow and pandas raise many kinds
        raise IcscmError(
            f"column {series.name!r} mixes kinds of values, such as text and numbers, or holds "
            "objects; make it one kind, or leave it out"
        ) from error


def read_arrow(array: pyarrow.Array | pyarrow.ChunkedArray, name: str) -> Column:
    """One Arrow column."""
    import pyarrow
    from pyarrow import types

    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if types.is_temporal(kind):
        return Dates(str(kind))
    if types.is_null(kind):
        return Levels(np.full(len(array), -1, dtype=np.int32), ())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _read_numbers(array)
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if is_text or types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return _read_levels(array)
    raise IcscmError(
        f"column {name!r} is of type {kind}; rules are made of numbers, text, booleans and "
        "categories, so convert it or leave it out"
    )


def _read_numbers(array: pyarrow.Array) -> Numbers:
    import pyarrow
    from pyarrow import types

    if types.is_decimal(array.type):
        array = array.cast(pyarrow.float64())
    missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if not missing.any():
        return Numbers(array.to_numpy(zero_copy_only=False))
    return Numbers(array.fill_null(0).to_numpy(zero_copy_only=False), missing)


def _read_levels(array: pyarrow.Array) -> Levels:
    encoded = array.dictionary_encode()  # a dictionary as it is, else the distinct values
    found = encoded.dictionary.to_pylist()
    indices = encoded.indices.cast("int32")  # they may be unsigned
    codes = indices.fill_null(-1).to_numpy(zero_copy_only=False)
    occurs = np.bincount(codes + 1, minlength=len(found) + 1)[1:] > 0
    groups: dict[tuple[str, Level], list[int]] = {}  # a dictionary may hold a value twice
    for i in np.flatnonzero(occurs).tolist():
        if found[i] is not None and found[i] == found[i]:
            groups.setdefault(sort_key(found[i]), []).append(i)
    rank = np.full(len(found) + 1, -1, dtype=np.int32)  # the last entry stands for missing
    for number, key in enumerate(sorted(groups)):
        rank[groups[key]] = number
    return Levels(rank[codes], tuple(key[1] for key in sorted(groups)))


def sort_key(level: Level) -> tuple[str, Level]:
    """Booleans, then numbers, then text."""
    if isinstance(level, bool):
        return "boolean", level
    return ("text", level) if isinstance(level, str) else ("number", level)


def find_levels(column: Levels, wanted: Sequence[Level]) -> BoolArray:
    """For each of the column's levels whether it is one of the wanted."""
    keys = {sort_key(level) for level in wanted}
    return np.array([sort_key(level) in keys for level in column.levels], dtype=np.bool_)
