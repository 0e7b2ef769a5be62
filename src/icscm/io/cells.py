"""Types of text columns, the same wherever their rows come from.

Text files have no types, so the type of a column is inferred from all its cells: whole numbers,
numbers, booleans or dates where every value is one, and text otherwise. The possible types of some
rows are a set of bits, and those of all rows are the `&` of these sets: rows may come in batches,
from several files, or from many workers, and the type is the same.

    clean         cells trimmed, null where they mean missing
    find_kinds    possible types: & over batches and files
    choose_type   the type, once all rows were read
    convert       cells of that type
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute, types

from icscm.engine.threads import count_threads, run_tasks
from icscm.exceptions import IcscmError, IcscmWarning, warn
from icscm.formatting import escape_controls, shorten_list
from icscm.io import formats
from icscm.io.formats import BOOLEAN, CATEGORY, NUMBER, TextFormat, find_numbers

Kinds = NDArray[np.uint8]
Result = TypeVar("Result")

# Possible types of a column. Whole numbers that start with 0 are codes, not numbers.
_WHOLE, _UNPADDED, _NUMBER, _BOOLEAN, _DATE, _ZONED, _MISSING = (1 << i for i in range(7))
ANYTHING = 2**7 - 1
_SHORT_WHOLE = 2**7  # fits int64 whatever its digits; known of distinct texts only

_DATES = {_DATE: pyarrow.timestamp("us"), _ZONED: pyarrow.timestamp("us", tz="UTC")}
_BOOLEANS = pyarrow.array(["true", "false", None])
_DATE_PATTERN = r"^\d{4}-\d\d-\d\d"
# Digits that an int64 holds whatever they are.
_SHORT_PATTERN = r"^-?0*[0-9]{1,18}$"
# Numbers with a decimal comma: surely such ones, and everything that may be in their columns.
_COMMA_FRACTION = r"^-?([0-9]{1,3}(\.?[0-9]{3})*|[0-9]+),[0-9]+$"
_COMMA_NUMBER = r"(?i)^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]*)(,[0-9]*)?(e[+-]?[0-9]+)?$"
# Share of a column's values that look like numbers with decimal commas from which to warn.
_NEARLY_ALL = 0.95
# Columns up to so many rows are processed together, up to so many cells: calls for each short
# column alone take longer than the work.
_SHORT, _RUN_CELLS = 2**8, 2**16

# The bytes of plain numbers are + , - . / and digits: the first of them, and how many.
_FIRST, _N_PLAIN = ord("+"), 15


def clean(
    table: pyarrow.Table, form: TextFormat, misread: Counter[tuple[str, str]] | None = None
) -> pyarrow.Table:
    """Texts without spaces around them, null where they then mean missing.

    The number of cells by column and text that means missing is added to `misread`.
    """
    names, missing = table.column_names, pyarrow.array(form.missing_texts)
    marks = np.zeros(256, dtype=np.bool_)  # a missing text, a space or a non-ASCII letter holds one
    marks[[max(text.encode()) for text in form.missing_texts if text]] = True
    marks[:33] = marks[127:] = True

    def clean_run(cells: Any, part: slice) -> list[Any]:
        columns = _cut(cells, part.stop - part.start)
        if not _may_hold(cells, marks):
            return columns
        cells = compute.utf8_trim_whitespace(cells)
        is_missing = compute.is_in(cells, value_set=missing)
        if misread is not None:
            trimmed, gone = _cut(cells, len(columns)), _cut(is_missing, len(columns))
            for name, texts, mask in zip(names[part], trimmed, gone, strict=True):
                for found in texts.filter(mask).value_counts().to_pylist():
                    if found["values"]:  # an empty cell is no text
                        misread[name, found["values"]] += found["counts"]
        kept = compute.if_else(is_missing, pyarrow.scalar(None, type=cells.type), cells)
        return _cut(kept, len(columns))

    return _map_columns(clean_run, table)


def _may_hold(cells: Any, marks: NDArray[np.bool_]) -> bool:
    """Whether any of these bytes occurs: much quicker to find out than where."""
    buffers = [chunk.buffers()[2] or b"" for chunk in getattr(cells, "chunks", [cells])]
    found = [np.frombuffer(each, np.uint8) for each in buffers]
    if not marks[_FIRST : _FIRST + _N_PLAIN].any():  # quicker still: only numbers
        found = [each for each in found if (each - np.uint8(_FIRST) >= _N_PLAIN).any()]
    return any(marks[each].any() for each in found)


def find_kinds(table: pyarrow.Table, form: TextFormat) -> Kinds:
    """The possible types of each column, from its cleaned cells."""
    found = _map_runs(lambda cells, part: _find_run(cells, part.stop - part.start, form), table)
    return np.concatenate([np.empty(0, np.uint8), *found])


def choose_type(kinds: int, wanted: str | None = None) -> Any:
    """The Arrow type of a column by its possible types; None if it cannot be the wanted one."""
    if wanted == CATEGORY or (wanted is None and kinds & _MISSING):
        return pyarrow.string()
    if wanted == BOOLEAN:
        return pyarrow.bool_() if kinds & _BOOLEAN else None
    if kinds & _WHOLE and kinds & _NUMBER and (kinds & _UNPADDED or wanted == NUMBER):
        return pyarrow.int64()
    if kinds & _NUMBER and not kinds & _WHOLE:
        return pyarrow.float64()
    if wanted == NUMBER:
        return None
    if kinds & _BOOLEAN:
        return pyarrow.bool_()
    return next((kind for bit, kind in _DATES.items() if kinds & bit), pyarrow.string())


def convert(table: pyarrow.Table, kinds: Sequence[Any], form: TextFormat) -> pyarrow.Table:
    """Cleaned cells converted to the types of their columns."""

    def convert_run(cells: Any, part: slice) -> list[Any]:
        own = kinds[part]
        if len(own) > 1 and all(kind == own[0] for kind in own):
            coded = cells.dictionary_encode(null_encoding="encode")  # each text once, in one call
            return _cut(_convert(coded.dictionary, own[0], form).take(coded.indices), len(own))
        columns = _cut(cells, len(own))
        return [_convert(column, kind, form) for column, kind in zip(columns, own, strict=True)]

    return _map_columns(convert_run, table)


# --- columns together ---------------------------------------------------------


def _map_columns(
    function: Callable[[Any, slice], list[Any]], table: pyarrow.Table
) -> pyarrow.Table:
    arrays = [array for run in _map_runs(function, table) for array in run]
    return pyarrow.table(arrays, names=table.column_names)


def _map_runs(function: Callable[[Any, slice], Result], table: pyarrow.Table) -> list[Result]:
    """`function` of the concatenated cells of neighbouring columns, and their positions."""
    columns = table.columns  # makes a list of all
    is_short = table.num_rows <= _SHORT
    size = max(1, _RUN_CELLS // max(1, table.num_rows)) if is_short else 1

    def run(start: int) -> Result:
        part = slice(start, min(start + size, len(columns)))
        chunks = [chunk for column in columns[part] for chunk in column.chunks]
        # a long column is not joined: it may hold more text than one array can
        return function(pyarrow.concat_arrays(chunks) if size > 1 else columns[start], part)

    return run_tasks(run, range(0, len(columns), size), count_threads(None))


def _cut(texts: Any, n_columns: int) -> list[Any]:
    if n_columns == 1:
        return [texts]
    n_rows = len(texts) // n_columns
    return [texts[i * n_rows : (i + 1) * n_rows] for i in range(n_columns)]


def _find_run(texts: Any, n_columns: int, form: TextFormat) -> Kinds:
    """The possible types of several concatenated columns, by regular expressions.

    Cells repeat, and each distinct text is matched once.
    """
    if n_columns == 1 or len(texts) == 0:
        return np.full(n_columns, _find_one(texts, form), dtype=np.uint8)
    columns, coded = texts, texts.dictionary_encode(null_encoding="encode")
    texts, match = coded.dictionary, compute.match_substring_regex
    plain = texts if form.decimal == "." else _replace_commas(texts)
    is_number = match(plain, formats.NUMBER_PATTERN)
    if form.decimal == ",":
        is_number = compute.and_(is_number, match(texts, _COMMA_NUMBER))
    tests = {
        _NUMBER: is_number,
        _WHOLE: compute.and_(is_number, match(plain, formats.WHOLE_PATTERN)),
        _UNPADDED: compute.invert(_find_padded(texts)),
        _BOOLEAN: compute.is_in(compute.utf8_lower(texts), value_set=_BOOLEANS),
        _DATE: match(texts, _DATE_PATTERN),
        _SHORT_WHOLE: match(plain, _SHORT_PATTERN),
    }
    bits = np.zeros(len(texts), dtype=np.uint8)
    for bit, test in tests.items():  # a missing value may be of any type
        bits |= bit * compute.fill_null(test, True).to_numpy(zero_copy_only=False).astype(np.uint8)
    places = coded.indices.to_numpy().reshape(n_columns, -1)
    kinds: Kinds = np.bitwise_and.reduce(bits[places], axis=1)
    # whole numbers that may be too large, dates, and columns in which all is missing
    is_doubtful = (kinds & (_WHOLE | _SHORT_WHOLE) == _WHOLE) | (kinds & _DATE > 0)
    parts = _cut(columns, n_columns) if is_doubtful.any() else []
    for i in np.flatnonzero(is_doubtful):
        kinds[i] = _find_one(parts[i], form)
    return kinds & np.uint8(ANYTHING)


# --- one column -----------------------------------------------------------------


def _find_one(texts: Any, form: TextFormat) -> int:
    """The possible types of one column, by casts: quicker than expressions where it is long."""
    if texts.null_count == len(texts):
        return ANYTHING
    plain, kinds = texts if form.decimal == "." else _replace_commas(texts), 0
    matches = compute.match_substring_regex
    if form.decimal == "." or compute.all(matches(texts, _COMMA_NUMBER)).as_py():
        is_whole = _can_cast(plain, pyarrow.int64())
        is_padded = is_whole and compute.any(_find_padded(texts)).as_py()
        # every whole number is a number, except for 0x10
        is_number = (is_whole and not is_padded) or _can_cast(plain, pyarrow.float64())
        kinds = _UNPADDED * (not is_padded) | (_NUMBER | _WHOLE * is_whole) * bool(is_number)
    if kinds & _NUMBER:
        return kinds
    if compute.all(compute.is_in(compute.utf8_lower(texts), value_set=_BOOLEANS)).as_py():
        return kinds | _BOOLEAN
    # the shape of one value first: timestamps are slow to parse, and few columns are dates
    if compute.any(matches(texts.drop_null()[:1], _DATE_PATTERN)).as_py():
        kinds |= sum(bit for bit, kind in _DATES.items() if _can_cast(texts, kind))
    return kinds


def _find_padded(texts: Any) -> Any:
    is_long = compute.greater(compute.binary_length(texts), 1)
    return compute.and_(compute.starts_with(texts, "0"), is_long)


def _convert(texts: Any, kind: Any, form: TextFormat) -> Any:
    if types.is_string(kind):
        return texts
    if types.is_boolean(kind):
        return compute.equal(compute.utf8_lower(texts), "true")
    if types.is_temporal(kind):
        return compute.cast(texts, kind)
    numbers = compute.cast(texts if form.decimal == "." else _replace_commas(texts), kind)
    return _drop_numbers(numbers, find_numbers(form.na))


def _can_cast(texts: Any, kind: Any) -> bool:
    try:
        compute.cast(texts[:64], kind)  # first a few: it fails slowly, cell by cell
        compute.cast(texts, kind)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _replace_commas(texts: Any) -> Any:
    """Numbers with decimal commas as with points."""
    return compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")


# --- messages -------------------------------------------------------------------


def warn_of_commas(table: pyarrow.Table, where: object) -> None:
    """Warn where numbers with decimal commas were read as text."""
    found = []
    for name, array in zip(table.column_names, table.columns, strict=True):
        n_present = len(array) - array.null_count
        if types.is_string(array.type) and n_present:
            n = compute.sum(compute.match_substring_regex(array, _COMMA_FRACTION)).as_py()
            found += [repr(name)] * (n >= _NEARLY_ALL * n_present)
    if found:
        what = f"{where} seems to hold numbers with decimal commas, which are read as text, in "
        advice = "; read them as numbers with --decimal , (decimal=',')"
        warn(f"{what}{shorten_list(found)}{advice}", IcscmWarning)


def warn_of_question_marks(table: pyarrow.Table, where: object) -> None:
    """Warn where `?`, which means missing in many files, is read as a category."""
    columns = [name for name in table.column_names if types.is_string(table[name].type)]
    found = [name for name in columns if "?" in table[name].unique().to_pylist()]
    if found:
        advice = "if it means missing, give --na '?' (na='?')"
        warn(f"{where} has '?' as a category of {shorten_list(found)}; {advice}", IcscmWarning)


def reject_kind(texts: Any, name: str, wanted: str, form: TextFormat, where: object) -> None:
    """Raise for the first value that cannot be of the type that a model needs."""
    for example in texts.drop_null().unique().to_pylist():
        if choose_type(_find_one(pyarrow.array([example]), form), wanted) is not None:
            continue
        is_comma = wanted == NUMBER and form.decimal == "." and re.match(_COMMA_FRACTION, example)
        hint = f"this means missing (--na {escape_controls(repr(example))})"
        hint = "its decimals have commas (--decimal ,)" if is_comma else hint
        why = f"column {name!r} of {where} held {wanted}s at fitting and holds {example!r} now"
        raise IcscmError(f"{why}; correct it, or declare that {hint}")


# --- missing values of typed tables ---------------------------------------------


def drop_missing(table: pyarrow.Table, form: TextFormat) -> pyarrow.Table:
    """A typed table with null in place of the values that the user declared missing."""
    arrays = [_drop_values(column, form) for column in table.columns]
    fields = [each.with_type(array.type) for each, array in zip(table.schema, arrays, strict=True)]
    return pyarrow.table(arrays, schema=pyarrow.schema(fields, table.schema.metadata))


def _drop_values(column: Any, form: TextFormat) -> Any:
    kind = column.type
    if types.is_dictionary(kind):  # the same categories; rows of those that mean missing have none
        chunks = []
        for chunk in column.chunks:
            kept = _drop_values(pyarrow.chunked_array([chunk.dictionary]), form)
            is_kept = compute.is_valid(kept).combine_chunks().take(chunk.indices)
            none = pyarrow.scalar(None, chunk.indices.type)
            codes = compute.if_else(is_kept, chunk.indices, none)
            own = codes, chunk.dictionary
            chunks.append(pyarrow.DictionaryArray.from_arrays(*own, ordered=kind.ordered))
        return pyarrow.chunked_array(chunks, type=kind)
    if types.is_string_view(kind):
        column = column.cast(pyarrow.large_string())
    if types.is_string_view(kind) or types.is_string(kind) or types.is_large_string(kind):
        is_missing = compute.is_in(column, value_set=pyarrow.array(form.na, type=column.type))
        return compute.if_else(is_missing, pyarrow.scalar(None, type=column.type), column)
    return _drop_numbers(column, find_numbers(form.na))


def _drop_numbers(column: Any, numbers: Sequence[float]) -> Any:
    """Null in place of these numbers; columns of other types are unchanged."""
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return column
    if types.is_float16(kind):  # which pyarrow cannot compare
        return _drop_numbers(column.cast(pyarrow.float32()), numbers)
    for number in numbers:
        value = _make_scalar(number, kind)
        if value is not None:
            is_missing = compute.fill_null(compute.equal(column, value), False)
            column = compute.if_else(is_missing, pyarrow.scalar(None, type=kind), column)
    return column


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
