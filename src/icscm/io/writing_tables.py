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
    """The table as delimited text: quoted only where needed, which pyarrow's writer cannot do."""
    writer = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


class _Lines(io.TextIOBase):
    r"""Rows ended by \n: a csv writer with this line terminator would leave a lone \r unquoted."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, row: str) -> int:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


def disarm_formulas(table: pyarrow.Table) -> pyarrow.Table:
    """The table with an apostrophe before names and texts that a spreadsheet would compute."""
    import pyarrow
    from pyarrow import types

    columns = []
    for column in table.columns:
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        columns.append(_disarm(column) if is_text else column)
    names = _disarm(pyarrow.array(table.column_names, pyarrow.string()))
    return pyarrow.table(columns, names=names.to_pylist())


def _disarm(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    texts = column.cast(pyarrow.large_string())
    marked = compute.replace_substring_regex(texts, _FORMULA, r"'\1")
    return compute.if_else(compute.match_substring_regex(texts, _NUMBER), texts, marked)
