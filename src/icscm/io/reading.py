"""A whole table into memory: from text, Parquet or Arrow files, or a folder of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.locating import describe_path
from icscm.io.naming import check_columns

if TYPE_CHECKING:
    import pyarrow


def read_file(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
    **text: Any,
) -> pyarrow.Table:
    """The table in a file, whose ending tells its format, or in the files of a folder.

    Parameters
    ----------
    path : str or Path
        .csv, .tsv, .tab, .rtab, .txt, .data (also .gz, .bz2, .zst, or in a .zip), .parquet,
        .parq, .pq, .feather or .arrow; `-` is CSV from standard input. Text files need a header
        line.
    columns : sequence of str, optional
        Only these, in this order; all must be there.
    types : mapping of str to str, optional
        For text files, columns that must be read as `"number"`, `"category"` (text) or
        `"boolean"`, as a model's file remembers them; others are read as what they look like.
    member : str, optional
        Of a .zip with several files, the one to read.
    **text : Any
        Parameters of `TextFormat`. In Parquet and Arrow files, which know missing values, only
        those of `na` are looked for.

    Returns
    -------
    pyarrow.Table
        All rows, at least one.

    Raises
    ------
    IcscmError
        If the file cannot be read, or lacks a column.
    """
    from icscm.io.streams import open_table

    where = describe_path(Path(path))
    reader = open_table(Path(path), TextFormat(**text), member=member, types=types)
    check_columns(columns or (), reader.names, where)
    table = reader.load(reader.names if columns is None else list(columns))
    if table.num_rows == 0:
        raise IcscmError(f"{where} has a header but no rows")
    return table
