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

Which types are possible for some rows is a set of flags, and for all rows it is the `&` of these
sets. So rows may come in batches, from several files or from many workers:

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
    """What all cells of a column can be read as."""

    WHOLE = auto()
    #: no whole number begins with 0
    UNPADDED = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    DATE = auto()
    ZONED_DATE = auto()
    MISSING = auto()


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


# --- missing cells ------------------------------------------------------------------


@dataclass(frozen=True)
class CleanTable:
    """Cells as text, null where they mean missing."""

    table: pyarrow.Table
    #: cells that were not empty and are missing, by column and text
    misread: Misread


def clean(table: pyarrow.Table, form: TextFormat) -> CleanTable:
    """Take spaces off the cells, and set to null those that mean missing."""
    missing = pyarrow.array(form.missing_texts)
    suspects = _find_suspect_bytes(form.missing_texts)

    def clean_column(cells: Any) -> tuple[Any, dict[str, int]]:
        if not _holds_bytes(cells, suspects):
            return cells, {}
        trimmed = compute.utf8_trim_whitespace(cells)
        is_missing = compute.is_in(trimmed, value_set=missing)
        kept = compute.if_else(is_missing, pyarrow.scalar(None, type=cells.type), trimmed)
        return kept, _count_texts(trimmed.filter(is_missing))

    cleaned = _map_columns(clean_column, table)
    misread = Misread()
    for name, (_, counts) in zip(table.column_names, cleaned, strict=True):
        misread.update({(name, text): n_cells for text, n_cells in counts.items()})
    columns = [cells for cells, _ in cleaned]
    return CleanTable(pyarrow.table(columns, names=table.column_names), misread)


def _count_texts(cells: Any) -> dict[str, int]:
    """The number of cells of each text; an empty cell has none."""
    if len(cells) == 0:
        return {}
    counts = cells.value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counts if each["values"]}


def _find_suspect_bytes(missing_texts: Sequence[str]) -> NDArray[np.bool_]:
    """Bytes of which a cell holds one if it has spaces around it or means missing.

    That is a space, a letter that is not ASCII, or the largest byte of a missing text.
    """
    suspects = np.zeros(256, dtype=np.bool_)
    suspects[[max(text.encode()) for text in missing_texts if text]] = True
    suspects[: ord(" ") + 1] = True
    suspects[127:] = True
    return suspects


def _holds_bytes(cells: Any, suspects: NDArray[np.bool_]) -> bool:
    """Whether any of these bytes occurs: much quicker to find out than where."""
    for chunk in cells.chunks:
        content = np.frombuffer(chunk.buffers()[2] or b"", np.uint8)
        if suspects[content].any():
            return True
    return False


# --- types of columns ---------------------------------------------------------------


def find_kinds(table: pyarrow.Table, form: TextFormat) -> list[Kind]:
    """What the cells of each column can be, once they are clean."""
    return _map_columns(lambda cells: _find_kind(cells, form), table)


def join_kinds(parts: Sequence[Sequence[Kind]]) -> list[Kind]:
    """What the cells of each column can be in all of several parts of a table."""
    joined = list(parts[0])
    for kinds in parts[1:]:
        joined = [before & kind for before, kind in zip(joined, kinds, strict=True)]
    return joined


def choose_type(kind: Kind, wanted: str | None = None) -> Any:
    """The Arrow type of a column; None if it cannot be the wanted one."""
    if wanted == CATEGORY or (wanted is None and Kind.MISSING in kind):
        return pyarrow.string()
    if wanted == BOOLEAN:
        return pyarrow.bool_() if Kind.BOOLEAN in kind else None
    is_code = Kind.UNPADDED not in kind and wanted != NUMBER
    if Kind.WHOLE | Kind.NUMBER in kind and not is_code:
        return pyarrow.int64()
    if Kind.NUMBER in kind and Kind.WHOLE not in kind:
        return pyarrow.float64()
    if wanted == NUMBER:
        return None
    if Kind.BOOLEAN in kind:
        return pyarrow.bool_()
    for date, date_type in _DATE_TYPES.items():
        if date in kind:
            return date_type
    return pyarrow.string()


# The type of a column of text that is declared a category.
DECLARED_CATEGORY: Final = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())


def convert(table: pyarrow.Table, arrow_types: Sequence[Any], form: TextFormat) -> pyarrow.Table:
    """Clean cells converted to the types of their columns."""
    missing_numbers = find_numbers(form.na)

    def convert_column(task: tuple[Any, Any]) -> Any:
        texts, arrow_type = task
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

    tasks = list(zip(table.columns, arrow_types, strict=True))
    columns = _run(convert_column, tasks, n_rows=table.num_rows)
    return pyarrow.table(columns, names=table.column_names)


def _find_kind(texts: Any, form: TextFormat) -> Kind:
    """What all cells of a column can be."""
    if texts.null_count == len(texts):
        return ANYTHING
    kind = _find_number_kind(texts, form)
    if Kind.NUMBER in kind:
        return kind
    if compute.all(compute.is_in(compute.utf8_lower(texts), value_set=_BOOLEANS)).as_py():
        return kind | Kind.BOOLEAN
    # one value first: timestamps are slow to parse, and few columns are dates
    if _matches_any(texts.drop_null()[:1], _DATE_PATTERN):
        for date, date_type in _DATE_TYPES.items():
            if _can_cast(texts, date_type):
                kind |= date
    return kind


def _find_number_kind(texts: Any, form: TextFormat) -> Kind:
    """Whether all cells of a column are numbers, whole, and without a 0 before them."""
    if form.decimal == ",":
        are_numbers = compute.match_substring_regex(texts, _COMMA_NUMBER)
        if not compute.all(are_numbers).as_py():
            return Kind(0)
    plain = _write_points(texts, form)
    is_whole = _can_cast(plain, pyarrow.int64())
    if not is_whole:
        is_number = _can_cast(plain, pyarrow.float64())
        return Kind.UNPADDED | Kind.NUMBER if is_number else Kind.UNPADDED
    if not _matches_any(texts, _PADDED_PATTERN):
        return Kind.UNPADDED | Kind.NUMBER | Kind.WHOLE
    # 007 is a number, but 0x10, which pyarrow reads as a whole number, is none
    is_number = _can_cast(plain, pyarrow.float64())
    return Kind.NUMBER | Kind.WHOLE if is_number else Kind(0)


def _matches_any(texts: Any, pattern: str) -> bool:
    return bool(compute.any(compute.match_substring_regex(texts, pattern)).as_py())


def _can_cast(texts: Any, arrow_type: Any) -> bool:
    """Whether all cells can be read as a type."""
    try:
        if len(texts) > _N_TRIED:
            compute.cast(texts[:_N_TRIED], arrow_type)
        compute.cast(texts, arrow_type)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _write_points(texts: Any, form: TextFormat) -> Any:
    """Numbers with decimal points; those of a file with decimal commas may have 1.234,5."""
    if form.decimal == ".":
        return texts
    return compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")


def _map_columns(function: Callable[[Any], Result], table: pyarrow.Table) -> list[Result]:
    """The function of each column, computed by several threads."""
    return _run(function, table.columns, n_rows=table.num_rows)


def _run(function: Callable[[Task], Result], tasks: Sequence[Task], n_rows: int) -> list[Result]:
    """The function of each task; short columns are many, and go to the threads in few parts."""
    run = run_in_parts if n_rows <= _SHORT else run_tasks
    return run(function, tasks, count_threads(-1))


# --- messages -----------------------------------------------------------------------


def warn_of_commas(table: pyarrow.Table, where: object) -> None:
    """Warn where numbers with decimal commas were read as text."""
    suspects = []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        n_present = len(cells) - cells.null_count
        if types.is_string(cells.type) and n_present:
            n_fractions = compute.sum(compute.match_substring_regex(cells, _COMMA_FRACTION)).as_py()
            if n_fractions >= _NEARLY_ALL * n_present:
                suspects.append(repr(name))
    if suspects:
        what = f"{where} seems to hold numbers with decimal commas, which are read as text, in "
        advice = "; read them as numbers with --decimal , (decimal=',')"
        warn(f"{what}{shorten_list(suspects)}{advice}", IcscmWarning)


def warn_of_question_marks(table: pyarrow.Table, where: object) -> None:
    """Warn where `?`, which means missing in many files, is read as a category."""
    question_mark = pyarrow.array(["?"])
    suspects = []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        is_text = types.is_string(cells.type)
        if is_text and compute.any(compute.is_in(cells, value_set=question_mark)).as_py():
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
        is_comma = wanted == NUMBER and form.decimal == "." and re.match(_COMMA_FRACTION, example)
        hint = f"this means missing (--na {escape_controls(repr(example))})"
        hint = "its decimals have commas (--decimal ,)" if is_comma else hint
        why = f"column {name!r} of {where} held {wanted}s at fitting and holds {example!r} now"
        raise IcscmError(f"{why}; correct it, or declare that {hint}")
