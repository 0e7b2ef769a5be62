"""A whole table into memory: from text, Parquet or Arrow files, or a folder of them.

A model's file remembers what its columns were, and `types` makes a later file be read alike: a
code such as `7` that was text stays text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.locating import Source, describe_path, find_sources, translate_errors
from icscm.io.naming import check_columns, check_names

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
        `"boolean"`; others are read as what they look like.
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
    form, path = TextFormat(**text), Path(path)
    sources = find_sources(path, member)
    if sources[0].kind == "text":
        from icscm.io.streams import TextFiles

        table = TextFiles(sources, form, types, columns).load()
    elif path.is_dir():
        table = _read_folder(path, form, columns)
    else:
        table = _read_binary(sources[0], columns, form)
    if table.num_rows == 0:
        raise IcscmError(f"{describe_path(path)} has a header but no rows")
    return table


def _read_folder(path: Path, form: TextFormat, columns: Sequence[str] | None) -> pyarrow.Table:
    import pyarrow

    from icscm.io.streams import open_table

    reader = open_table(path, form)
    wanted = reader.names if columns is None else list(columns)
    check_columns(wanted, reader.names, str(path))
    schema = pyarrow.schema([reader.schema.field(name) for name in wanted])
    return pyarrow.Table.from_batches(reader.read(wanted, 2**16), schema)


def _read_binary(source: Source, columns: Sequence[str] | None, form: TextFormat) -> pyarrow.Table:
    from pyarrow import feather, parquet

    from icscm.io.cells import drop_missing

    file: Any = source.path  # or a member in memory: pyarrow reads at any place
    if source.member is not None:
        with source.open() as stream:
            file = io.BytesIO(stream.read())
    chosen = None if columns is None else list(columns)
    with translate_errors(source, kind=source.kind.capitalize()):
        if source.kind == "parquet":
            # no dataset: partition folders in the path must not become columns
            with parquet.ParquetFile(file) as opened:
                _check(opened.schema_arrow.names, chosen, source)
                table = opened.read(chosen)
        else:
            table = feather.read_table(file)
            _check(table.column_names, chosen, source)
    table = table if chosen is None else table.select(chosen)
    return drop_missing(table, form) if form.na else table


def _check(names: Sequence[str], columns: Sequence[str] | None, source: Source) -> None:
    check_names(names, source)
    check_columns(columns or (), names, str(source))
