"""Tables written to files, in the format of the file's ending."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.io.locating import PARQUET_ENDINGS
from icscm.writing import STDOUT, write_whole

if TYPE_CHECKING:
    import pyarrow

# First characters of text that spreadsheets read as a formula (also full-width); numbers are safe.
_FORMULA = r"\A([=+\-@\t\r\n＝＋－＠])"  # noqa: RUF001
_NUMBER = r"\A[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z"


def check_output_kind(path: Path) -> None:
    """Raise unless tables can be written to a file of this name."""
    if path != STDOUT and path.suffix.lower() not in (".csv", ".tsv", *PARQUET_ENDINGS):
        raise IcscmError(f"{path} must end in .csv, .tsv or .parquet, which determines the format")


def write_table(table: pyarrow.Table, path: Path) -> None:
    """Write the table completely or not at all, in the format of the file's ending."""
    from pyarrow import parquet

    check_output_kind(path)
    ending = path.suffix.lower()

    def fill(file: IO[bytes]) -> None:
        if ending in PARQUET_ENDINGS:
            parquet.write_table(table, file)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        write_text_table(table, text, "\t" if ending == ".tsv" else ",")
        text.detach()

    write_whole(path, fill)


def write_text_table(table: pyarrow.Table, stream: IO[str], delimiter: str = ",") -> None:
    """Write a table as delimited text.

    It is quoted only where needed, which pyarrow's writer cannot do.
    """
    writer = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))


class _Lines(io.TextIOBase):
    r"""A stream for a csv writer that ends rows by \r\n, on which they end by \n.

    Told to end them by \n itself, the writer would leave a lone \r in a cell unquoted.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, row: str) -> int:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


def disarm_formulas(table: pyarrow.Table) -> pyarrow.Table:
    """Put an apostrophe before names and texts that a spreadsheet would compute."""
    import pyarrow

    columns = [_disarm(column) if _is_text(column.type) else column for column in table.columns]
    names = _disarm(pyarrow.array(table.column_names, pyarrow.string()))
    return pyarrow.table(columns, names=names.to_pylist())


def _is_text(arrow_type: Any) -> bool:
    """Return whether cells of this type are texts, or categories that are texts."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return _is_text(arrow_type.value_type)
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    )


def _disarm(texts: Any) -> Any:
    """Put an apostrophe before texts that are formulas; numbers such as -5 are none."""
    import pyarrow
    from pyarrow import compute

    plain_texts = texts.cast(pyarrow.large_string())
    marked = compute.replace_substring_regex(plain_texts, _FORMULA, r"'\1")
    is_number = compute.match_substring_regex(plain_texts, _NUMBER)
    return compute.if_else(is_number, plain_texts, marked)
