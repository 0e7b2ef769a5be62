"""Files that the workers of a Dask cluster read: Parquet by Dask, text by our own reader.

    every file        where lines start, about every `_PARTITION_BYTES`      icscm-cut
    every partition   what its columns can be                                icscm-kinds
    joined here       the type of each column
    every partition   read as that, whenever Dask asks for it

A file is one partition if it is packed, or if quotes in it could hold ends of lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import pyarrow

from icscm.exceptions import IcscmError
from icscm.io.cells import Kinds
from icscm.io.formats import TextFormat
from icscm.io.lines import Lines
from icscm.io.locating import PACKED_ENDINGS, TEXT_ENDINGS, Source, find_ending, find_sources
from icscm.io.streams import TextFiles
from icscm.sources.dask.source import Tasks, compute

_PARTITION_BYTES = 2**26


def read_folder(path: str | Path, text: TextFormat | None = None) -> Any:
    """A Dask DataFrame over a Parquet or text file, or a folder of either.

    Parameters
    ----------
    path : str or Path
        Anything that Dask can read, such as s3://...
    text : TextFormat, optional
        How text files are to be read.

    Returns
    -------
    dask.dataframe.DataFrame
        Typed as the same files would be in memory.

    Raises
    ------
    IcscmError
        If the files cannot be read.
    """
    import dask.dataframe

    try:
        sources = _find_texts(str(path))
        if not sources:
            return dask.dataframe.read_parquet(str(path))
    except (OSError, ValueError) as error:
        raise IcscmError(f"cannot read {path} as Parquet or CSV: {error}") from error
    return _read_texts(TextFiles(sources, text or TextFormat(), {}))


def _find_texts(path: str) -> list[Source]:
    """Text files; those elsewhere, and patterns of names, as fsspec finds them."""
    if Path(path).exists():
        return [source for source in find_sources(Path(path)) if source.kind == "text"]
    if find_ending(path) not in TEXT_ENDINGS:
        return []
    from fsspec import open_files  # type: ignore[import-untyped]

    found = [(Path(file.path), file) for file in open_files(path, compression="infer")]
    return [Source(where, where.name, "text", remote=file) for where, file in found]


def _read_texts(files: TextFiles) -> Any:
    import dask.dataframe
    import pandas

    tasks = Tasks()
    cuts = compute(tasks.map("cut", find_cuts, files.files))
    parts = [
        _Part(lines, *span)
        for lines, starts in zip(files.files, cuts, strict=True)
        for span in pairwise([0, *starts, -1])
    ]
    find = partial(_Part.find_kinds, names=files.names)
    schema = files.make_schema(files.names, compute(tasks.map("kinds", find, parts)))
    meta = schema.empty_table().to_pandas(types_mapper=pandas.ArrowDtype)
    return dask.dataframe.from_map(partial(read_part, schema), parts, meta=meta)


def find_cuts(lines: Lines) -> list[int]:
    """Where lines start, about every so many bytes; none where the file must stay whole."""
    source, size = lines.source, _PARTITION_BYTES
    is_plain = source.member is None and source.remote is None
    if (
        not is_plain
        or source.path.suffix.lower() in PACKED_ENDINGS
        or source.path.stat().st_size <= size
        or "\n".encode(lines.form.encoding) != b"\n"
    ):
        return []
    with source.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        if content.find(b'"') >= 0:
            return []
        starts = {content.find(b"\n", place) + 1 for place in range(size, len(content), size)}
        return sorted(starts - {0, len(content)})


@dataclass(frozen=True)
class _Part:
    """The bytes of a text file from a line's start up to another's, -1 being the end."""

    lines: Lines
    start: int
    stop: int

    def open(self) -> Lines:
        lines, source = self.lines, self.lines.source
        if (self.start, self.stop) == (0, -1):
            return lines
        with source.path.open("rb") as file:
            file.seek(self.start)
            content = file.read(max(-1, self.stop - self.start))
        where = f"from byte {self.start:,}" if self.start else None
        header = replace(lines.header, n_rows=0) if self.start else lines.header
        return replace(lines, source=replace(source, member=where, content=content), header=header)

    def find_kinds(self, names: Sequence[str]) -> Kinds:
        return self.open().find_kinds(names)


def read_part(schema: pyarrow.Schema, part: _Part, columns: Sequence[str] | None = None) -> Any:
    """The rows of one partition, some columns of them, as a pandas frame of Arrow's types."""
    import pandas

    wanted = schema if columns is None else pyarrow.schema([schema.field(n) for n in columns])
    tables = [wanted.empty_table(), *part.open().read(wanted)]
    return pyarrow.concat_tables(tables).to_pandas(types_mapper=pandas.ArrowDtype)
