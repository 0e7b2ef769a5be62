"""Tables out to files: predictions and simulated data."""

from __future__ import annotations

import csv
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING

from icscm.exceptions import IcscmError
from icscm.io.locating import PARQUET_ENDINGS
from icscm.writing import STDOUT, write_whole

if TYPE_CHECKING:
    import pyarrow


def check_output_kind(path: Path) -> None:
    """Raise unless tables can be written to a file of this name."""
    if path != STDOUT and path.suffix.lower() not in (".csv", ".tsv", *PARQUET_ENDINGS):
        raise IcscmError(
            f"{path} must end in .csv, .tsv or .parquet, which tells the format to write"
        )


def write_table(table: pyarrow.Table, path: Path) -> None:
    """The table in a file, whole or not at all, in the format that its name tells."""
    check_output_kind(path)
    write_whole(path, partial(_fill, table, path.suffix.lower()))


def _fill(table: pyarrow.Table, ending: str, file: IO[bytes]) -> None:
    from pyarrow import parquet

    if ending in PARQUET_ENDINGS:
        parquet.write_table(table, file)
        return
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    write_text_table(table, text, "\t" if ending == ".tsv" else ",")
    text.detach()


def write_text_table(table: pyarrow.Table, stream: IO[str], delimiter: str = ",") -> None:
    """The table as delimited text: quoted only where needed, which pyarrow's writer cannot do."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
