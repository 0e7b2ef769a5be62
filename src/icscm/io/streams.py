"""Tables in files: opened, checked, and read a batch of rows at a time.

Parquet files are read by pyarrow's streaming reader, which holds a page of each column, and text
files by our reader, which infers types from all rows of all files in a first pass. Other formats
are read by the scanner of `pyarrow.dataset`, which holds whole row groups.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow
import pyarrow.feather
from pyarrow.parquet import ParquetFile

from icscm._lazy import arrow_dataset
from icscm.exceptions import IcscmError
from icscm.io import cells
from icscm.io.formats import Source, TextFormat, describe_path, find_sources, translate_errors
from icscm.io.lines import MIN_BLOCK, Lines, open_lines
from icscm.io.naming import check_names, check_same_names
from icscm.progress import track

# Bytes read ahead of one column; less where there are many columns.
_COLUMN_BUFFER = 2**20
_SMALLEST_BUFFER = 2**12
# Rows of a batch where all of them are loaded.
_LOADED_ROWS = 2**20
# The usual size of a page of a Parquet column.
_PAGE_BYTES = 2**20


class TableReader(Protocol):
    """A table that can be read again and again, each time in the same order of rows."""

    @property
    def names(self) -> list[str]:
        """Names of the columns, known before anything else is read."""

    @property
    def schema(self) -> pyarrow.Schema:
        """Names and types of the columns."""

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows in order, some columns of them, in batches of about so many rows."""

    def estimate_bytes(self) -> int:
        """Memory that `read` takes in addition to the batches."""


@dataclass(frozen=True)
class LoadedTable:
    """All rows of a file, or of the files in a folder."""

    table: pyarrow.Table
    #: cells that were read as missing, by column and text
    misread: Counter[tuple[str, str]]


def read_file(
    path: str | Path,
    *,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
    **text: Any,
) -> pyarrow.Table:
    """The table in a file, as `load_table` reads it; `text` are parameters of `TextFormat`."""
    return load_table(path, TextFormat(**text), types=types, member=member).table


def load_table(
    path: str | Path,
    form: TextFormat,
    *,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
) -> LoadedTable:
    """The table in a file, whose ending determines its format, or in the files of a folder.

    Columns of a text file named in `types` are read as `"number"`, `"category"` (text) or
    `"boolean"`; the types of others are inferred. `member` is a file in a .zip with several. Of
    `form` only `na` applies to Parquet and Arrow.
    """
    reader = open_table(Path(path), form, member=member, types=types)
    if isinstance(reader, TextFiles):
        table = reader.load()
    else:
        table = pyarrow.Table.from_batches(reader.read(reader.names, _LOADED_ROWS), reader.schema)
    if table.num_rows == 0:
        raise IcscmError(f"{describe_path(Path(path))} has a header but no rows")
    return LoadedTable(table=table, misread=get_misread(reader))


def get_misread(reader: TableReader) -> Counter[tuple[str, str]]:
    """Texts that were read as missing, by column; empty for other than text files."""
    files = reader.files if isinstance(reader, TextFiles) else []
    return sum((file.misread for file in files), start=Counter())


def open_table(
    data: Any,
    form: TextFormat | None = None,
    *,
    member: str | None = None,
    types: Mapping[str, str] | None = None,
) -> TableReader:
    """A reader of a file, a folder of files, or a `pyarrow.dataset.Dataset`."""
    form = form or TextFormat()
    if hasattr(data, "estimate_bytes"):
        opened: TableReader = data
        return opened
    if "pyarrow.dataset" in sys.modules and isinstance(data, arrow_dataset.Dataset):
        reader: TableReader = DatasetReader(data, "the dataset")
    elif isinstance(data, str | Path) and "://" in str(data):
        reader = _open_dataset(str(data), data, partitioning="hive")
    elif isinstance(data, str | Path):
        sources = find_sources(Path(data), member)
        if sources[0].kind == "text":
            return TextFiles(sources, form, types or {})
        reader = _open_binary(sources, Path(data))
    else:
        why = "data must be the path of a file or folder, or a pyarrow Dataset"
        raise IcscmError(f"{why}; got {type(data).__name__}")
    check_names(reader.names, data)
    return ChangedReader(reader, partial(cells.drop_missing, form=form)) if form.na else reader


def _open_binary(sources: Sequence[Source], path: Path) -> TableReader:
    first = sources[0]
    if first.member is not None:
        with translate_errors(first, kind=first.kind), first.open() as stream:
            content = io.BytesIO(stream.read())
            if first.kind == "arrow":
                return _open_dataset(pyarrow.feather.read_table(content), first, first.kind)
        return ParquetFiles({str(first): content})
    files = {str(source): source.path for source in sources}
    is_partitioned = path.is_dir() and "=" in str(first.path.relative_to(path).parent)
    if first.kind == "parquet" and not is_partitioned:
        return ParquetFiles(files)
    # folders such as country=fr hold a column
    layout = {"partitioning": "hive", "partition_base_dir": str(path)} if is_partitioned else {}
    checked = arrow_dataset.ParquetFileFormat(page_checksum_verification=True)
    form = checked if first.kind == "parquet" else "feather"
    return _open_dataset([*files], path, kind=first.kind, format=form, **layout)


def _open_dataset(files: Any, where: object, kind: str = "", **options: Any) -> DatasetReader:
    with translate_errors(where, kind=kind):
        return DatasetReader(arrow_dataset.dataset(files, **options), where, kind)


class ParquetFiles:
    """Parquet files with the same columns."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self._files = files
        schemas = {}
        for name in files:
            with self._open(name) as opened:
                schemas[name] = opened.schema_arrow.remove_metadata()
                check_names(schemas[name].names, name)
        self.schema = _join_schemas(schemas)
        self.names = self.schema.names

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        schema = _select(self.schema, columns)
        buffer = max(_SMALLEST_BUFFER, _COLUMN_BUFFER * 64 // max(64, len(columns)))
        for name in track(self._files, len(self._files)):
            with self._open(name, buffer_size=buffer, pre_buffer=False) as file:
                batches = file.iter_batches(batch_size=batch_rows, columns=list(columns))
                for batch in track(batches, -(-file.metadata.num_rows // batch_rows)):
                    # in the given order; a column that is empty in this file has its type
                    yield _check(batch).select(list(columns)).cast(schema)

    @contextmanager
    def _open(self, name: str, **options: Any) -> Iterator[ParquetFile]:
        # no dataset: partition folders in the path must not become columns
        with (
            translate_errors(name, kind="parquet"),
            ParquetFile(self._files[name], page_checksum_verification=True, **options) as file,
        ):
            yield file

    def estimate_bytes(self) -> int:
        with self._open(next(iter(self._files))) as file:
            about = file.metadata
        if about.num_row_groups == 0:
            return 0
        group = about.row_group(0)
        chunks = [group.column(j).total_uncompressed_size for j in range(group.num_columns)]
        # a page compressed and uncompressed, and the bytes read ahead
        return sum(min(3 * _PAGE_BYTES, 3 * size) for size in chunks)


class TextFiles:
    """Text files with the same columns. Types are inferred from all cells in all files."""

    def __init__(
        self, sources: Sequence[Source], form: TextFormat, types: Mapping[str, str]
    ) -> None:
        self._form, self._types = form, types
        self.files = [open_lines(source, form) for source in sources]
        first = self.files[0]
        self.names = first.names
        for other in self.files[1:]:
            check_same_names(self.names, other.names, first.source, other.source)

    @cached_property
    def schema(self) -> pyarrow.Schema:
        kinds = [file.find_kinds(self.names) for file in self._track_files()]
        pyarrow.default_memory_pool().release_unused()
        return self.make_schema(self.names, kinds)

    def make_schema(self, names: Sequence[str], kinds: Sequence[cells.Kinds]) -> pyarrow.Schema:
        """The types of columns from their possible types in each piece."""
        fields = {}
        for name, joined in zip(names, np.bitwise_and.reduce(kinds).tolist(), strict=True):
            wanted = self._types.get(name)
            fields[name] = cells.choose_type(joined, wanted)
            if fields[name] is None:
                for file in self.files:
                    for table in file.stream([name]):
                        texts = cells.clean(table, self._form).column(0)
                        cells.reject_kind(texts, name, wanted or "", self._form, file.source)
        schema, first = pyarrow.schema(list(fields.items())), self.files[0]
        if self._form.decimal == "." and first.has_commas:
            for table in islice(first.read(schema), 1):  # the first rows suffice
                cells.warn_of_commas(table, first.source)
        if not self._types and pyarrow.string() in schema.types:
            for table in islice(first.read(schema), 1):
                cells.warn_of_question_marks(table, first.source)
        return schema

    def _track_files(self) -> Iterator[Lines]:
        return track(self.files, len(self.files))

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        for file in self._track_files():
            for table in file.read(_select(self.schema, columns)):
                yield from _cut(table.to_batches(), batch_rows)

    def load(self) -> pyarrow.Table:
        """All rows at once, read a single time."""
        tables = [table for file in self._track_files() for table in file.stream(self.names)]
        if not tables:
            raise IcscmError(f"{self.files[0].source} has a header but no rows")
        # cleaned together: calls for short columns cost more than the work
        joined = pyarrow.concat_tables(tables)
        texts = cells.clean(joined, self._form, self.files[0].misread)
        schema = self.make_schema(self.names, [cells.find_kinds(texts, self._form)])
        return cells.convert(texts, schema.types, self._form)

    def estimate_bytes(self) -> int:
        return 32 * MIN_BLOCK


class DatasetReader:
    """A `pyarrow.dataset.Dataset`, read by its own scanner."""

    def __init__(self, dataset: pyarrow.dataset.Dataset, where: object, kind: str = "") -> None:
        self._dataset, self._where, self._kind = dataset, where, kind
        self.schema = dataset.schema.remove_metadata()
        self.names = self.schema.names

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        with translate_errors(self._where, kind=self._kind):
            ahead = {"batch_readahead": 1, "fragment_readahead": 1}
            batches = self._dataset.to_batches(list(columns), batch_size=batch_rows, **ahead)
            yield from _cut(map(_check, batches), batch_rows)

    def estimate_bytes(self) -> int:
        return 0  # the scanner does not report it


class ChangedReader:
    """A table whose rows are changed as they are read; the change needs the columns `needs`."""

    def __init__(
        self,
        reader: TableReader,
        change: Callable[[pyarrow.Table], pyarrow.Table],
        needs: Sequence[str] = (),
    ) -> None:
        self._reader, self._change, self._needs = reader, change, needs
        self.names, self.estimate_bytes = reader.names, reader.estimate_bytes

    @cached_property
    def schema(self) -> pyarrow.Schema:
        return self._change(self._reader.schema.empty_table()).schema

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        known = {*self._reader.names}  # the change may have added columns of its own
        needed = [name for name in dict.fromkeys((*columns, *self._needs)) if name in known]
        for batch in self._reader.read(needed, batch_rows):
            table = self._change(pyarrow.Table.from_batches([batch]))
            yield from table.select(list(columns)).combine_chunks().to_batches()


def _check(rows: Any) -> Any:
    """Validated rows: wrong offsets in a damaged file would crash the process."""
    rows.validate(full=True)
    return rows


def _cut(batches: Iterable[pyarrow.RecordBatch], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
    """Batches of no more than so many rows."""
    for batch in batches:
        for start in range(0, len(batch), batch_rows):
            yield batch.slice(start, batch_rows)


def _select(schema: pyarrow.Schema, columns: Sequence[str]) -> pyarrow.Schema:
    return pyarrow.schema([schema.field(name) for name in columns])


def _join_schemas(schemas: Mapping[str, pyarrow.Schema]) -> pyarrow.Schema:
    """The schema of all files; raise unless they have the same columns of the same types."""
    (first, joined), *others = schemas.items()
    for path, schema in others:
        check_same_names(joined.names, schema.names, first, path)
        try:
            joined = pyarrow.unify_schemas([joined, schema])
        except pyarrow.ArrowException as error:
            why = f"{path} has other types than the files before it: {error}"
            raise IcscmError(f"{why}; use the same types in all files, or remove it") from None
    return joined
