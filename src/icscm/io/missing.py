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
    """Put null in place of the values that the user declared missing, in a typed table."""
    columns = [_drop_values(column, form) for column in table.columns]
    fields = [
        field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)
    ]
    return pyarrow.table(columns, schema=pyarrow.schema(fields, table.schema.metadata))


def drop_numbers(column: Any, numbers: Sequence[float]) -> Any:
    """Put null in place of these numbers; a column of another type is unchanged."""
    arrow_type = column.type
    is_number = (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
    )
    if not is_number:
        return column
    if types.is_float16(arrow_type):  # which pyarrow cannot compare
        return drop_numbers(column.cast(pyarrow.float32()), numbers)

    kept = column
    for number in numbers:
        value = _make_scalar(number, arrow_type)
        if value is not None:
            is_missing = compute.fill_null(compute.equal(kept, value), False)
            kept = _set_null(kept, is_missing)
    return kept


def _drop_values(column: Any, form: TextFormat) -> Any:
    """Put null in place of what is declared missing, whatever the type of the column."""
    if types.is_dictionary(column.type):
        chunks = [_drop_levels(chunk, form) for chunk in column.chunks]
        return pyarrow.chunked_array(chunks, type=column.type)
    if types.is_string_view(column.type):  # which pyarrow cannot look up
        return _drop_texts(column.cast(pyarrow.large_string()), form)
    if types.is_string(column.type) or types.is_large_string(column.type):
        return _drop_texts(column, form)
    return drop_numbers(column, find_numbers(form.na))


def _drop_texts(column: Any, form: TextFormat) -> Any:
    """Put null in place of the texts that are declared missing."""
    declared = pyarrow.array(form.na, type=column.type)
    return _set_null(column, compute.is_in(column, value_set=declared))


def _drop_levels(chunk: Any, form: TextFormat) -> Any:
    """Put null in the rows whose category is declared missing; all categories stay."""
    levels = _drop_values(pyarrow.chunked_array([chunk.dictionary]), form)
    is_level_missing = compute.is_null(levels).combine_chunks()
    codes = _set_null(chunk.indices, is_level_missing.take(chunk.indices))
    return pyarrow.DictionaryArray.from_arrays(codes, chunk.dictionary, ordered=chunk.type.ordered)


def _set_null(column: Any, is_missing: Any) -> Any:
    """Put null in some rows of a column."""
    return compute.if_else(is_missing, pyarrow.scalar(None, type=column.type), column)


def _make_scalar(number: float, arrow_type: Any) -> Any:
    """Make a scalar of this type; None where the type cannot hold the number."""
    try:
        if types.is_decimal(arrow_type):
            return pyarrow.scalar(Decimal(str(number)))
        if types.is_integer(arrow_type) and isinstance(number, int):
            return pyarrow.scalar(number, type=arrow_type)
        value = pyarrow.scalar(float(number)).cast(arrow_type)
    except (pyarrow.ArrowInvalid, OverflowError):
        return None
    return value if math.isfinite(value.as_py()) else None
