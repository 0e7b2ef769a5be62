"""A whole table into memory: from text, Parquet or Arrow files, or a folder of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.locating import describe_path

if TYPE_CHECKING:
    import pyarrow


def read_file(
    path: str | Path,
    *,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
    **text: Any,
) -> pyarrow.Table:
    """The table in a file, whose ending tells its format, or in the files of a folder.

    Columns of a text file named in `types` are read as `"number"`, `"category"` (text) or
    `"boolean"`, others as what they look like; `member` is of a .zip with several files, and
    `text` are parameters of `TextFormat`, of which only `na` matters to Parquet and Arrow.
    """
    from icscm.io.streams import open_table

    reader = open_table(Path(path), TextFormat(**text), member=member, types=types)
    table = reader.load(reader.names)
    if table.num_rows == 0:
        raise IcscmError(f"{describe_path(Path(path))} has a header but no rows")
    return table
