"""What the cells of a text file mean: missing values, and the types of columns.

Text files have no types. pyarrow reads every cell as text and casts columns to types; on top of it
there are these rules, the same for all rows wherever they come from:

    missing    an empty cell, `MISSING_TEXTS` (NA, NaN, None, ..) and the texts that the user names,
               without the spaces around them; a number named so is missing however it is written
    number     what pyarrow reads as a whole number, or else as a number, in every cell of a column
    text       whole numbers if one begins with 0: in 007 the 0 is a part of the code
    boolean    true and false, in small and large letters; yes and no are text
    date       2020-01-31, with or without a time
    text       everything else, and columns in which all cells are missing

Which types are possible for some rows is a set of flags (`Kind`), and for all rows it is the `&` of
these sets. So rows may come in batches, from several files or from many workers:

    cells of a batch      7  12        NUMBER, WHOLE, UNPADDED
    of another batch      3  4.5       NUMBER, UNPADDED
    of both                            NUMBER, UNPADDED: not whole, so the column is of floats

    clean         cells without spaces, null where they mean missing
    find_kinds    flags of each column, to be joined by & over batches and files
    choose_type   the type, once all rows were read
    convert       cells of that type

pyarrow's own inference cannot replace this: its streaming reader looks at the first block only, it
reads 007 as 7, and it does not count the texts that it takes for missing.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import reduce
from operator import and_
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute, types

from icscm.engine.threads import count_threads, run_in_parts, run_tasks
from icscm.exceptions import IcscmError, IcscmWarning, warn
from icscm.formatting import escape_controls, shorten_list
from icscm.io.formats import BOOLEAN, CATEGORY, NUMBER, TextFormat, find_numbers
from icscm.io.missing import drop_numbers

Task = TypeVar("Task")
Result = TypeVar("Result")
Misread = Counter[tuple[str, str]]


class Kind(IntFlag):
    """What all cells of a column can be read as: flags, of which any may be set."""

    #: whole numbers, as pyarrow reads them: 007 and 0x10 are among them
    WHOLE = auto()
    #: no whole number begins with 0
    UNPADDED = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    DATE = auto()
    ZONED_DATE = auto()
    #: all cells are missing
    MISSING = auto()


# The flags of a column without any value, all set: `&` with it changes nothing.
ANYTHING = ~Kind(0)

_DATE_TYPES = {
    Kind.DATE: pyarrow.timestamp("us"),
    Kind.ZONED_DATE: pyarrow.timestamp("us", tz="UTC"),
}
_BOOLEANS = pyarrow.array(["true", "false", None])
_DATE_PATTERN = r"^\d{4}-\d\d-\d\d"
_PADDED_PATTERN = r"^0."
# Numbers with a decimal comma: surely such ones, and everything that may be in their columns.
_COMMA_FRACTION = r"^-?([0-9]{1,3}(\.?[0-9]{3})*|[0-9]+),[0-9]+$"
_COMMA_NUMBER = r"(?i)^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]*)(,[0-9]*)?(e[+-]?[0-9]+)?$"
# Share of a column's values that look like numbers with decimal commas from which to warn.
_NEARLY_ALL = 0.95
# A cast is tried with so many cells first: it fails slowly, cell by cell.
_N_TRIED = 64
# Columns of so many rows take less time than to give them to a thread.
_SHORT = 2**8
# The last byte of ASCII, a control character.
_LAST_ASCII = 127


# --- missing cells ------------------------------------------------------------------


@dataclass(frozen=True)
class CleanTable:
    """Cells as text, null where they mean missing."""

    table: pyarrow.Table
    #: cells that are missing, by column and text; "" where they were empty
    misread: Misread


def clean(table: pyarrow.Table, form: TextFormat) -> CleanTable:
    """Take spaces off the cells, and set to null those that mean missing."""
    missing = pyarrow.array(form.missing_texts)
    suspect_bytes = _find_suspect_bytes(form.missing_texts)

    def clean_column(cells: Any) -> _CleanColumn:
        empty_cells = Counter({"": cells.null_count})
        if not _holds_bytes(cells, suspect_bytes):
            return _CleanColumn(cells, misread=empty_cells)
        trimmed = compute.utf8_trim_whitespace(cells)
        is_missing = compute.is_in(trimmed, value_set=missing)
        kept = compute.if_else(is_missing, pyarrow.scalar(None, type=cells.type), trimmed)
        misread = empty_cells + _count_texts(trimmed.filter(is_missing))
        return _CleanColumn(kept, misread=misread)

    columns = _map_columns(clean_column, table)
    misread = Misread()
    for name, column in zip(table.column_names, columns, strict=True):
        misread.update({(name, text): n for text, n in column.misread.items() if n > 0})
    clean_cells = [column.cells for column in columns]
    return CleanTable(pyarrow.table(clean_cells, names=table.column_names), misread)


@dataclass(frozen=True)
class _CleanColumn:
    """The cells of a column, and the number of those that are missing, by their text."""

    cells: Any
    misread: Counter[str]


def _count_texts(cells: Any) -> Counter[str]:
    """Count the cells of each text."""
    if len(cells) == 0:
        return Counter()
    counts = cells.value_counts().to_pylist()
    return Counter({count["values"]: count["counts"] for count in counts})


def _find_suspect_bytes(missing_texts: Sequence[str]) -> NDArray[np.bool_]:
    """Find the bytes of which a cell holds one if it has spaces around it or means missing.

    A missing text is told by its largest byte, say the `a` of NaN: few numbers or names hold it.
    Spaces are all bytes up to the blank, and whatever is not ASCII may be one.
    """
    is_suspect = np.zeros(256, dtype=np.bool_)
    is_suspect[[max(text.encode()) for text in missing_texts if text]] = True
    is_suspect[: ord(" ") + 1] = True
    is_suspect[_LAST_ASCII:] = True
    return is_suspect


def _holds_bytes(cells: Any, is_wanted: NDArray[np.bool_]) -> bool:
    """Return whether any of these bytes occurs in a column: much quicker than to find out where."""
    for chunk in cells.chunks:
        text_buffer = chunk.buffers()[2]  # after those of nulls and of offsets
        content = np.frombuffer(text_buffer or b"", np.uint8)
        if is_wanted[content].any():
            return True
    return False


# --- types of columns ---------------------------------------------------------------


def find_kinds(table: pyarrow.Table, form: TextFormat) -> list[Kind]:
    """Find what the cells of each column can be, once they are clean."""
    return _map_columns(lambda cells: _find_kind(cells, form), table)


def join_kinds(parts: Sequence[Sequence[Kind]]) -> list[Kind]:
    """Find what the cells of each column can be in all of several parts of a table."""
    return [reduce(and_, kinds_of_column) for kinds_of_column in zip(*parts, strict=True)]


def choose_type(kind: Kind, wanted: str | None = None) -> Any:
    """Choose the Arrow type of a column; None if it cannot be the type that a model needs.

    `kind` has a flag for each type that all cells can be read as, `wanted` is the type that the
    column had when the model was fitted. If none is wanted, a column becomes numbers, booleans or
    dates if it can, in this order, and text otherwise, as it does if all cells are missing.
    """
    if wanted == CATEGORY:
        return pyarrow.string()
    if wanted == BOOLEAN:
        return pyarrow.bool_() if Kind.BOOLEAN in kind else None
    if wanted == NUMBER:
        return _choose_number_type(kind)
    if Kind.MISSING in kind:
        return pyarrow.string()

    is_whole = Kind.WHOLE | Kind.NUMBER in kind
    is_code = is_whole and Kind.UNPADDED not in kind  # such as 007
    if not is_code:
        number_type = _choose_number_type(kind)
        if number_type is not None:
            return number_type
    if Kind.BOOLEAN in kind:
        return pyarrow.bool_()
    for date, date_type in _DATE_TYPES.items():
        if date in kind:
            return date_type
    return pyarrow.string()


def _choose_number_type(kind: Kind) -> Any:
    """Choose the type of a column of numbers; None if it holds anything else."""
    if Kind.NUMBER not in kind:
        return None
    return pyarrow.int64() if Kind.WHOLE in kind else pyarrow.float64()


# The type of a column of text that is declared a category.
DECLARED_CATEGORY: Final = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())


def convert(table: pyarrow.Table, arrow_types: Sequence[Any], form: TextFormat) -> pyarrow.Table:
    """Convert clean cells to the types of their columns."""
    missing_numbers = find_numbers(form.na)

    def convert_column(column_and_type: tuple[Any, Any]) -> Any:
        texts, arrow_type = column_and_type
        if types.is_string(arrow_type):
            return texts
        if types.is_dictionary(arrow_type):
            return texts.dictionary_encode()
        if types.is_boolean(arrow_type):
            return compute.equal(compute.utf8_lower(texts), "true")
        if types.is_temporal(arrow_type):
            return compute.cast(texts, arrow_type)
        numbers = compute.cast(_write_points(texts, form), arrow_type)
        return drop_numbers(numbers, missing_numbers)

    columns_and_types = list(zip(table.columns, arrow_types, strict=True))
    columns = _run(convert_column, columns_and_types, n_rows=table.num_rows)
    return pyarrow.table(columns, names=table.column_names)


def _find_kind(texts: Any, form: TextFormat) -> Kind:
    """Find what all cells of a column can be; numbers first, which most columns are."""
    if texts.null_count == len(texts):
        return ANYTHING
    kind = _find_number_kind(texts, form)
    if Kind.NUMBER in kind:
        return kind
    is_boolean = compute.is_in(compute.utf8_lower(texts), value_set=_BOOLEANS)
    if compute.all(is_boolean).as_py():
        return kind | Kind.BOOLEAN
    # one value first: timestamps are slow to parse, and few columns are dates
    if _matches_any(texts.drop_null()[:1], _DATE_PATTERN):
        for date, date_type in _DATE_TYPES.items():
            if _can_cast(texts, date_type):
                kind |= date
    return kind


def _find_number_kind(texts: Any, form: TextFormat) -> Kind:
    """Find which flags of numbers a column has: what is true of all of its cells.

    cells       flags
    7, 12       NUMBER, WHOLE, UNPADDED
    7.5, 12     NUMBER, UNPADDED
    007, 012    NUMBER, WHOLE               codes, such as of a post office
    0x10        none                        pyarrow reads it as a whole number
    a, b        UNPADDED
    """
    if form.decimal == ",":
        are_numbers = compute.match_substring_regex(texts, _COMMA_NUMBER)
        if not compute.all(are_numbers).as_py():
            return Kind(0)

    plain = _write_points(texts, form)
    is_whole = _can_cast(plain, pyarrow.int64())
    is_padded = is_whole and _matches_any(texts, _PADDED_PATTERN)
    if is_whole and not is_padded:
        return Kind.NUMBER | Kind.WHOLE | Kind.UNPADDED

    # Unlike whole numbers, floats are not read from texts such as 0x10.
    is_number = _can_cast(plain, pyarrow.float64())
    if is_padded:
        return Kind.NUMBER | Kind.WHOLE if is_number else Kind(0)
    return Kind.NUMBER | Kind.UNPADDED if is_number else Kind.UNPADDED


def _matches_any(texts: Any, pattern: str) -> bool:
    """Return whether any cell matches a regular expression."""
    return bool(compute.any(compute.match_substring_regex(texts, pattern)).as_py())


def _can_cast(texts: Any, arrow_type: Any) -> bool:
    """Return whether all cells can be read as a type."""
    try:
        if len(texts) > _N_TRIED:
            compute.cast(texts[:_N_TRIED], arrow_type)
        compute.cast(texts, arrow_type)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _write_points(texts: Any, form: TextFormat) -> Any:
    """Write numbers with decimal points: 1.234,5 of a file with decimal commas is 1234.5."""
    if form.decimal == ".":
        return texts
    without_points = compute.replace_substring(texts, ".", "")
    return compute.replace_substring(without_points, ",", ".")


def _map_columns(function: Callable[[Any], Result], table: pyarrow.Table) -> list[Result]:
    """Return the function of each column, computed by several threads."""
    return _run(function, table.columns, n_rows=table.num_rows)


def _run(function: Callable[[Task], Result], tasks: Sequence[Task], n_rows: int) -> list[Result]:
    """Return the function of each task; short columns are many, and go to threads in few parts."""
    run = run_in_parts if n_rows <= _SHORT else run_tasks
    return run(function, tasks, count_threads(-1))


# --- messages -----------------------------------------------------------------------


def warn_of_commas(table: pyarrow.Table, where: object) -> None:
    """Warn where numbers with decimal commas were read as text."""
    suspects = []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        n_present = len(cells) - cells.null_count
        if n_present == 0 or not types.is_string(cells.type):
            continue
        is_fraction = compute.match_substring_regex(cells, _COMMA_FRACTION)
        n_fractions = compute.sum(is_fraction).as_py()
        if n_fractions >= _NEARLY_ALL * n_present:
            suspects.append(repr(name))
    if suspects:
        warn(
            f"{where} seems to hold numbers with decimal commas, which are read as text, in "
            f"{shorten_list(suspects)}; read them as numbers with --decimal , (decimal=',')",
            IcscmWarning,
        )


def warn_of_question_marks(table: pyarrow.Table, where: object) -> None:
    """Warn where `?`, which means missing in many files, is read as a category."""
    question_mark = pyarrow.array(["?"])
    suspects = []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        if not types.is_string(cells.type):
            continue
        is_question_mark = compute.is_in(cells, value_set=question_mark)
        if compute.any(is_question_mark).as_py():
            suspects.append(name)
    if suspects:
        advice = "if it means missing, give --na '?' (na='?')"
        warn(f"{where} has '?' as a category of {shorten_list(suspects)}; {advice}", IcscmWarning)


def reject_kind(texts: Any, name: str, wanted: str, form: TextFormat, where: object) -> None:
    """Raise for the first value that cannot be of the type that a model needs."""
    for example in texts.drop_null().unique().to_pylist():
        kind = _find_kind(pyarrow.chunked_array([[example]]), form)
        if choose_type(kind, wanted) is not None:
            continue
        hint = f"this means missing (--na {escape_controls(repr(example))})"
        if wanted == NUMBER and form.decimal == "." and re.match(_COMMA_FRACTION, example):
            hint = "its decimals have commas (--decimal ,)"
        raise IcscmError(
            f"column {name!r} of {where} held {wanted}s at fitting and holds {example!r} now; "
            f"correct it, or declare that {hint}"
        )
