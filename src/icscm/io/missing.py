"""Values that the user declared missing, in tables whose cells have types: Parquet and Arrow.

Only these are missing there, besides null: "NA" of a Parquet file may be Namibia.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow
from pyarrow import compute, types

from icscm.io.formats import TextFormat, find_numbers


def drop_missing(table: pyarrow.Table, form: TextFormat) -> pyarrow.Table:
    """A typed table with null in place of the values that the user declared missing."""
    columns = [_drop_values(column, form) for column in table.columns]
    fields = [
        field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)
    ]
    return pyarrow.table(columns, schema=pyarrow.schema(fields, table.schema.metadata))


def drop_numbers(column: Any, numbers: Sequence[float]) -> Any:
    """Null in place of these numbers; a column of another type is unchanged."""
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return column
    if types.is_float16(kind):  # which pyarrow cannot compare
        return drop_numbers(column.cast(pyarrow.float32()), numbers)
    for number in numbers:
        value = _make_scalar(number, kind)
        if value is not None:
            is_missing = compute.fill_null(compute.equal(column, value), False)
            column = compute.if_else(is_missing, pyarrow.scalar(None, type=kind), column)
    return column


def _drop_values(column: Any, form: TextFormat) -> Any:
    """Null in place of what is declared missing, whatever the type of the column."""
    kind = column.type
    if types.is_dictionary(kind):
        chunks = [_drop_levels(chunk, form) for chunk in column.chunks]
        return pyarrow.chunked_array(chunks, type=kind)
    if types.is_string_view(kind):  # which pyarrow cannot look up
        column = column.cast(pyarrow.large_string())
    if types.is_string(column.type) or types.is_large_string(column.type):
        declared = pyarrow.array(form.na, type=column.type)
        is_missing = compute.is_in(column, value_set=declared)
        return compute.if_else(is_missing, pyarrow.scalar(None, type=column.type), column)
    return drop_numbers(column, find_numbers(form.na))


def _drop_levels(chunk: Any, form: TextFormat) -> Any:
    """A column of categories: all of them stay, and rows of those that mean missing have none."""
    levels = _drop_values(pyarrow.chunked_array([chunk.dictionary]), form)
    is_kept = compute.is_valid(levels).combine_chunks().take(chunk.indices)
    codes = compute.if_else(is_kept, chunk.indices, pyarrow.scalar(None, chunk.indices.type))
    return pyarrow.DictionaryArray.from_arrays(codes, chunk.dictionary, ordered=chunk.type.ordered)


def _make_scalar(number: float, kind: Any) -> Any:
    """The number as a scalar of this type; None where the type cannot hold it."""
    try:
        if types.is_decimal(kind):
            return pyarrow.scalar(Decimal(str(number)))
        if types.is_integer(kind) and isinstance(number, int):
            return pyarrow.scalar(number, type=kind)
        value = pyarrow.scalar(float(number)).cast(kind)
    except (pyarrow.ArrowInvalid, OverflowError):
        return None
    return value if math.isfinite(value.as_py()) else None
