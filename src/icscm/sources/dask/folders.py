"""Files that the workers of a Dask cluster read: Parquet by Dask, text by our own reader.

    every file        where lines start, about every `_PARTITION_BYTES`      icscm-cut
    every partition   what its columns can be                                icscm-kinds
    joined here       the type of each column
    every partition   read as that, whenever Dask asks for it

A file is one partition if it is packed, or if quotes in it could hold ends of lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import pyarrow

from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.lines import Lines
from icscm.io.locating import PACKED_ENDINGS, TEXT_ENDINGS, Source, find_ending, find_sources
from icscm.io.streams import TextFiles
from icscm.sources.dask.source import Tasks, compute

_PARTITION_BYTES = 2**26


def read_folder(path: str | Path, text: TextFormat | None = None) -> Any:
    """A Dask DataFrame over a Parquet or text file, or a folder of either, anywhere Dask reads.

    Its columns are typed as the same files would be in memory.
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
    parts = [*chain.from_iterable(compute(tasks.map("cut", cut_lines, files.files)))]
    find = partial(Lines.find_kinds, names=files.names)
    schema = files.make_schema(files.names, compute(tasks.map("kinds", find, parts)))
    meta = schema.empty_table().to_pandas(types_mapper=pandas.ArrowDtype)
    return dask.dataframe.from_map(partial(read_part, schema), parts, meta=meta)


def cut_lines(lines: Lines) -> list[Lines]:
    """Pieces of about so many bytes; a single one where the file must stay whole."""
    source, size = lines.source, _PARTITION_BYTES
    is_plain = source.member is None and source.remote is None
    if (
        not is_plain
        or source.path.suffix.lower() in PACKED_ENDINGS
        or source.path.stat().st_size <= size
        or "\n".encode(lines.form.encoding) != b"\n"
    ):
        return [lines]
    with source.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        if content.find(b'"') >= 0:
            return [lines]
        end = len(content)
        starts = {content.find(b"\n", place) + 1 for place in range(size, end, size)}
    return [_take_part(lines, span) for span in pairwise(sorted(starts | {0, end}))]


def _take_part(lines: Lines, span: tuple[int, int]) -> Lines:
    if span[0] == 0:
        return replace(lines, source=replace(lines.source, span=span))
    source = replace(lines.source, span=span, member=f"from byte {span[0]:,}")
    return replace(lines, source=source, header=replace(lines.header, n_rows=0))


def read_part(schema: pyarrow.Schema, part: Lines, columns: Sequence[str] | None = None) -> Any:
    """The rows of one partition, some columns of them, as a pandas frame of Arrow's types."""
    import pandas

    wanted = schema if columns is None else pyarrow.schema([schema.field(n) for n in columns])
    tables = [wanted.empty_table(), *part.read(wanted)]
    return pyarrow.concat_tables(tables).to_pandas(types_mapper=pandas.ArrowDtype)
