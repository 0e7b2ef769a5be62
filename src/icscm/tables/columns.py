"""Tables of any kind (arrays, pandas, polars, Arrow), read one column at a time.

A column holds numbers, or levels of a category (text, booleans, categoricals). Missing values
(NaN, None, null) are stored separately.

    array ---------------------------read_array--> Numbers
    frame --narwhals--> Series --read_series--> Numbers, Dates
                                    |--read_arrow--> Numbers, Levels, Dates
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from icscm._lazy import is_sparse, nw
from icscm._types import Array, BoolArray, IntArray
from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    import pyarrow


# What a category's level can be. Booleans are never equal to numbers here.
Level = str | bool | int | float


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; `missing` marks missing ones, None if there are none.

    `values` is NaN or undefined where a number is missing.
    """

    values: Array
    missing: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Array) -> Numbers:
        """Select rows."""
        missing = None if self.missing is None else self.missing[rows]
        return Numbers(self.values[rows], missing)


@dataclass(frozen=True)
class Levels:
    """A column of categories: the number of each row's level, -1 where it is missing.

    Levels are sorted, or in the order that the table gives them, and each occurs. A category
    `is_declared` by its type in the table (categorical, Enum, dictionary); plain text is not.
    """

    codes: NDArray[np.int32]
    levels: tuple[Level, ...]
    is_ordered: bool = False
    is_declared: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> BoolArray | None:
        """Where the level is missing; None if nowhere."""
        is_missing: BoolArray = self.codes < 0
        return is_missing if is_missing.any() else None

    def take(self, rows: Array) -> Levels:
        """Select rows, and keep all levels, also those that no longer occur."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True)
class Dates:
    """A column of dates, times or durations, which rules cannot use: the unit is not known."""

    missing: ClassVar[None] = None  # nobody asks for it, since no rule can use a date

    def __len__(self) -> int:
        return 0

    def take(self, rows: Array) -> Dates:  # noqa: ARG002 - as the others
        """Return the column, since it holds no values."""
        return self


Column = Numbers | Levels | Dates
# By position; of a mapping only those that are needed.
Columns = Sequence[Column] | Mapping[int, Column]


class StoredTable(ABC):
    """A table that stays where it is stored: rows of it can be taken, and single columns read.

    It has too many columns to read all of them. Learners count in the store, and models need only
    the columns of their rules.
    """

    @property
    @abstractmethod
    def names(self) -> Sequence[str] | None:
        """The names of the columns; None where they go by their positions."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it is, as errors name it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> Array:
        """Raise with one sentence: other estimators ask for an array of all cells."""
        raise self.make_error()

    def make_error(self) -> IcscmError:
        """Make the error for what needs all cells."""
        return IcscmError(
            f"X is {self.description}, of which rules, trees, forests and scores are learned; all "
            "else needs a table in memory"
        )

    @abstractmethod
    def take_rows(self, rows: IntArray) -> Self:
        """Return the table of some rows, given by their positions."""

    @abstractmethod
    def read_column(self, position: int, name: str | None) -> Column:
        """Read a column: by name where the table has names and one is given, else by position."""


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns."""
    if isinstance(X, np.ndarray):  # the usual case: narwhals would be slow to say so
        return False
    return bool(nw.dependencies.is_into_dataframe(X)) or _is_record_batch(X)


def _is_record_batch(X: Any) -> bool:
    """Return whether X is a part of an Arrow table, which narwhals does not know."""
    return type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow")


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


def open_frame(X: Any) -> nw.DataFrame[Any]:
    """Open a frame of any kind behind one interface; names that are not text become text."""
    if _is_record_batch(X):
        import pyarrow

        native = pyarrow.Table.from_batches([X])
    elif nw.dependencies.is_pandas_dataframe(X):
        native = _name_by_text(X)
    else:
        native = X
    try:
        return nw.from_native(native, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        # narwhals lists the names below its message, each after a dash
        _, _, listed = str(error).partition("\n- ")
        names = ", ".join(listed.split("\n- "))
        raise IcscmError(
            f"the table has more than one column of the same name ({names}); rename them: rules "
            "refer to columns by name"
        ) from None


def _name_by_text(frame: Any) -> Any:
    """Return a pandas frame whose columns are named by text, or by position as pandas does.

    Names of several levels are joined. Names that are positions stay, since they are none.
    """
    names = list(frame.columns)
    are_positions = names == list(range(len(names)))
    are_texts = all(isinstance(name, str) for name in names)
    if are_positions or are_texts:
        return frame

    texts = []
    for name in names:
        levels_of_name = name if isinstance(name, tuple) else (name,)
        texts.append("_".join(map(str, levels_of_name)))
    return frame.set_axis(texts, axis=1)


def count_rows(X: Any) -> int:
    """Count the rows of any kind of table."""
    if is_frame(X):
        return len(open_frame(X))
    return int(np.shape(X)[0])


def check_in_memory(X: Any) -> None:
    """Raise if the table is a Dask collection, which learners take, but no study."""
    if is_dask(X):
        raise IcscmError("X is a Dask collection, which only fit and predict take; use X.compute()")


def take_rows(X: Any, rows: Array) -> Any:
    """Select rows of any kind of table, which keeps its names and types."""
    if isinstance(X, StoredTable):
        return X.take_rows(rows)
    if is_frame(X):
        return open_frame(X)[rows].to_native()
    return X[rows]


def take_columns(X: Any, columns: Array) -> Any:
    """Select columns of any kind of table, by their positions."""
    if is_frame(X):
        return open_frame(X)[:, columns.tolist()].to_native()
    return X[:, columns]


def find_empty_columns(X: Any) -> list[int]:
    """Find the columns of any kind of table that hold no value, by their positions.

    Stored tables and sparse matrices have a value in each cell.
    """
    if isinstance(X, StoredTable) or is_sparse(X) or count_rows(X) == 0:
        return []
    if is_frame(X):
        frame = open_frame(X)
        return [
            position
            for position, series in enumerate(frame.iter_columns())
            if _is_empty(series[:1]) and _is_empty(series)
        ]

    import pandas

    candidates = np.flatnonzero(pandas.isna(X[0]))
    is_empty = pandas.isna(X[:, candidates]).all(axis=0)
    empty: list[int] = candidates[is_empty].tolist()
    return empty


def _is_empty(series: nw.Series[Any]) -> bool:
    """Return whether a column of a frame holds no value; of floats, NaN is none."""
    is_missing = series.is_null()
    if series.dtype.is_float():
        is_missing = is_missing | series.is_nan().fill_null(value=True)
    return bool(is_missing.all())


def fill_numbers(X: Any, columns: Sequence[int]) -> Any:
    """Return a table in which these columns of numbers are 0 in each row; others stay as they are.

    So learners that cannot take a column without any value learn nothing from it.
    """
    if not columns:
        return X
    if is_frame(X):
        frame = open_frame(X)
        names = [frame.columns[position] for position in columns]
        zeros = [nw.lit(0.0).alias(name) for name in names if frame.schema[name].is_numeric()]
        return frame.with_columns(zeros).to_native() if zeros else X
    if X.dtype.kind != "f":
        return X
    filled = X.copy()
    filled[:, columns] = 0.0
    return filled


def find_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns; None where these are positions, or X is an array."""
    if not is_frame(X):
        return None
    names: list[Any] = open_frame(X).columns
    if not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def list_names(X: Any) -> list[str]:
    """List the names of a frame's columns, as text."""
    return [str(name) for name in open_frame(X).columns]


def read_column(X: Any, position: int, name: str | None) -> Column:
    """Read a column: by name where the table has names and one is given, else by position."""
    if isinstance(X, StoredTable):
        return X.read_column(position, name)
    description = f"column {position}"
    if is_sparse(X):
        values = X[:, [position]].toarray().ravel()
        return read_array(values, description)
    if not is_frame(X):
        values = bring(X[:, position]) if is_on_card(X) else np.asarray(X)[:, position]
        return read_array(values, description)

    frame = open_frame(X)
    if name is None:
        return read_series(frame[:, position])
    if name not in frame.columns:
        raise IcscmError(f"the table has no column {name!r}, which the model needs")
    return read_series(frame[name])


def read_array(values: Array, what: str) -> Column:
    """Read a column of an array; `what` names it in errors."""
    if values.dtype.kind in "OUS":
        import pandas

        series = pandas.Series(values.tolist(), name=what)
        return read_series(nw.from_native(series, series_only=True))
    if values.dtype.kind != "f":
        return Numbers(values)
    is_missing = np.isnan(values)
    return Numbers(values, is_missing if is_missing.any() else None)


def read_numbers(column: Numbers, is_exact: bool = False) -> Array:
    """Return the values of a column as numbers of a table, NaN where they are missing.

    They are floats, unless whole numbers are to stay exact and none is missing.
    """
    values = as_plain_numbers(column.values)
    if column.missing is not None:
        with_gaps = values.astype(np.float64)
        with_gaps[column.missing] = np.nan
        return with_gaps
    if is_exact or values.dtype.kind == "f":
        return values
    return values.astype(np.float64)


def as_plain_numbers(values: Array) -> Array:
    """Return numbers of a type that kernels read: booleans as bytes, floats of 32 or 64 bits."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64):
        return values.astype(np.float64)
    return values


def read_series(series: nw.Series[Any]) -> Column:
    """Read a column of a frame.

    Numbers are read as an array, without a copy where there is nothing missing. All else goes by
    Arrow, which knows the types of every kind of frame.
    """
    dtype = series.dtype
    # the type in the frame's own library: narwhals does not know periods and sparse columns
    native_type = str(getattr(series.to_native(), "dtype", dtype))
    if dtype.is_temporal() or native_type.startswith("period"):
        return Dates()
    if native_type.startswith("Sparse"):
        dense = series.to_native().sparse.to_dense()
        return read_series(nw.from_native(dense, series_only=True))

    if dtype.is_float() or (dtype.is_integer() and not series.is_null().any()):
        values = _convert(series, native_type, lambda: series.to_numpy())
        if values.dtype.kind in "iuf" and values.dtype.itemsize <= 8:
            return read_array(values, series.name)
    return read_arrow(_convert(series, native_type, series.to_arrow), series.name)


def _convert(series: nw.Series[Any], native_type: str, convert: Callable[[], Any]) -> Any:
    """Convert a column; raise with its name and type if that is not possible."""
    try:
        return convert()
    except Exception as error:  # pyarrow, pandas and polars raise many kinds
        what = f"is of type {native_type}, which cannot be read; convert it"
        if native_type == "object":
            what = "mixes types, such as text and numbers, or holds objects; use one type"
        raise IcscmError(f"column {series.name!r} {what}, or drop it") from error


def read_arrow(array: pyarrow.Array | pyarrow.ChunkedArray, name: str) -> Column:
    """Read a column of Arrow; `name` names it in errors."""
    import pyarrow
    from pyarrow import types

    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    is_category = types.is_dictionary(array.type)
    kind = array.type.value_type if is_category else array.type
    if types.is_temporal(kind):
        return Dates()
    if types.is_null(array.type):
        all_missing = np.full(len(array), -1, dtype=np.int32)
        return Levels(codes=all_missing, levels=())

    if not is_category and types.is_decimal(kind):
        # via text, which is read as the nearest float; the direct cast is off by one bit
        return _read_numbers(array.cast(pyarrow.string()).cast(pyarrow.float64()))
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not is_category and is_number:
        return _read_numbers(array)

    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if is_text or types.is_boolean(kind) or is_number:
        return _read_levels(array)
    raise IcscmError(
        f"column {name!r} is of type {kind}; rules use numbers, text, booleans and categories: "
        "convert or drop it"
    )


def _read_numbers(array: pyarrow.Array) -> Column:
    """Read a column of numbers of Arrow, whose missing values may be null or NaN."""
    if array.null_count == 0:
        return read_array(array.to_numpy(zero_copy_only=False), "")
    missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return Numbers(array.fill_null(0).to_numpy(zero_copy_only=False), missing)


def read_arrow_groups(array: Any, what: str) -> Any:
    """Cast outcomes or environments in an Arrow column to a type that pandas can read.

    `what` names them in errors.
    """
    import pyarrow
    from pyarrow import types

    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    is_nested = types.is_nested(kind) or types.is_run_end_encoded(kind)
    if is_nested or types.is_interval(kind):
        raise IcscmError(
            f"{what} is of type {kind}; convert it to text, numbers, booleans or dates, or name "
            "another column"
        )
    plain_kinds = {
        pyarrow.string_view(): pyarrow.string(),
        pyarrow.binary_view(): pyarrow.binary(),
        pyarrow.float16(): pyarrow.float32(),
    }
    plain_kind = plain_kinds.get(kind, kind)
    return array if plain_kind == array.type else array.cast(plain_kind)


def _read_levels(array: pyarrow.Array) -> Levels:
    """Read a column of categories; levels that do not occur, or are missing, are left out.

    Arrow encodes a category by positions in a dictionary, which may hold values that no row has,
    a missing value, and the same value twice. So the levels get codes of their own:

        dictionary       rows as positions     levels       codes
        b, a, NaN, b     1, 0, 3, 2            a, b         0, 1, 1, -1
    """
    from pyarrow import types

    # The position of each row's value in the dictionary, -1 where it is null.
    encoded = array.dictionary_encode()  # a dictionary as it is, else the distinct values
    dictionary = encoded.dictionary.to_pylist()
    indices = encoded.indices.cast("int32")  # they may be unsigned
    position_of_row = indices.fill_null(-1).to_numpy(zero_copy_only=False)

    # The values that occur, and where each is in the dictionary. Counts begin with those of null.
    n_rows_of_values = np.bincount(position_of_row + 1, minlength=len(dictionary) + 1)[1:]
    positions_of_level: dict[tuple[str, Level], list[int]] = {}
    for position in np.flatnonzero(n_rows_of_values).tolist():
        value = dictionary[position]
        is_missing = value is None or value != value  # NaN does not equal itself
        if not is_missing:
            positions_of_level.setdefault(sort_key(value), []).append(position)
    is_ordered = bool(encoded.type.ordered)  # pandas' ordered categories, polars' Enum
    keys = list(positions_of_level) if is_ordered else sorted(positions_of_level)

    # The code by position; null, at the position -1, has the last entry, and stays -1.
    code_at_position = np.full(len(dictionary) + 1, -1, dtype=np.int32)
    for code, key in enumerate(keys):
        code_at_position[positions_of_level[key]] = code
    levels = tuple(level for _, level in keys)
    return Levels(
        codes=code_at_position[position_of_row],
        levels=levels,
        is_ordered=is_ordered,
        is_declared=types.is_dictionary(array.type),
    )


def sort_key(level: Level) -> tuple[str, Level]:
    """Return the key that sorts booleans, then numbers, then text, and tells 1 from True."""
    if isinstance(level, bool):
        return "boolean", level
    if isinstance(level, str):
        return "text", level
    return "number", level


def find_levels(column: Levels, wanted: Sequence[Level]) -> BoolArray:
    """Return for each of the column's levels whether it is one of the wanted ones."""
    keys = {sort_key(level) for level in wanted}
    return np.array([sort_key(level) in keys for level in column.levels], dtype=np.bool_)


# DLPack's device type of NVIDIA cards.
_DLPACK_CUDA = 2


def is_on_card(X: Any) -> bool:
    """Return whether X is an array in the memory of a graphics card, of CuPy or by DLPack."""
    if type(X) in (np.ndarray, list):  # the usual case
        return False
    if hasattr(X, "__cuda_array_interface__"):
        return True
    if not hasattr(X, "__dlpack_device__") or not hasattr(X, "shape"):
        return False
    device_type, _ = X.__dlpack_device__()
    return bool(device_type == _DLPACK_CUDA)


def open_on_card(X: Any) -> Any:
    """Return values on a card as a CuPy array, without a copy."""
    if hasattr(X, "get") and hasattr(X, "ravel"):  # CuPy's own
        return X
    import cupy

    return cupy.asarray(X) if hasattr(X, "__cuda_array_interface__") else cupy.from_dlpack(X)


def bring(values: Any) -> Any:
    """Copy values from a card to memory; return all others unchanged."""
    if values is None or type(values) is np.ndarray or not is_on_card(values):
        return values
    return open_on_card(values).get()
