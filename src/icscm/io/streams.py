"""Tables in files: loaded at once, or read a batch of rows at a time.

    load_table   all rows, from files that are opened once each
    open_table   a reader of tables that may be larger than memory, again and again

A reader is a `TableReader`, of which there are four:

    ParquetFiles    Parquet, by pyarrow's streaming reader, which holds a page of each column
    TextFiles       text, by `lines`
    DatasetReader   any other format, by the scanner of `pyarrow.dataset`, which holds row groups
    ChangedReader   one of the others, whose rows are changed as they are read
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.feather
from pyarrow.parquet import ParquetFile

from icscm._lazy import arrow_dataset
from icscm.exceptions import IcscmError
from icscm.io import cells
from icscm.io.cells import Kind, Misread
from icscm.io.formats import NONE, TextFormat
from icscm.io.lines import MIN_BLOCK, Lines, load_lines, open_lines
from icscm.io.locating import Source, describe_path, find_sources, translate_errors
from icscm.io.missing import drop_missing
from icscm.io.naming import check_names, check_same_names
from icscm.progress import track

# Bytes read ahead of one column; less of each where there are more columns than so many.
_COLUMN_BUFFER = 2**20
_FEW_COLUMNS = 64
_SMALLEST_BUFFER = 2**12
# Rows of a batch where all of them are loaded.
_LOADED_ROWS = 2**20
# The usual size of a page, a part of a Parquet column.
_PAGE_BYTES = 2**20
# Pages of a column in memory: one compressed, the same uncompressed, and what is read ahead.
_PAGES_HELD = 3
# Memory for reading text, in blocks: of its bytes, and of the cells that are parsed from them.
_BLOCKS_HELD = 32


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
        """Bytes of memory that `read` takes in addition to the batches, for any columns."""


@dataclass(frozen=True)
class LoadedTable:
    """All rows of a file, or of the files in a folder."""

    table: pyarrow.Table
    #: cells that were read as missing, by column and text; "" are empty ones beside `None`
    misread: Misread


def read_file(
    path: str | Path,
    *,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
    **text: Any,
) -> pyarrow.Table:
    """Read the table in a file, as `load_table` does; `text` are parameters of `TextFormat`."""
    return load_table(path, TextFormat(**text), types=types, member=member).table


def load_table(
    path: str | Path,
    form: TextFormat,
    *,
    types: Mapping[str, str] | None = None,
    member: str | None = None,
) -> LoadedTable:
    """Read the table in a file, whose ending determines its format, or in the files of a folder.

    Columns of a text file named in `types` are read as `"number"`, `"category"` (text) or
    `"boolean"`; the types of others are inferred. `member` is a file in a .zip with several. Of
    `form` only `na` applies to Parquet and Arrow.
    """
    sources = find_sources(Path(path), member)
    if sources[0].kind == "text":
        loaded = TextFiles(sources, form, types or {}).load()
    else:
        table = _open_binary(sources, Path(path)).load()
        check_names(table.column_names, path)
        categories = form.find_categories(table.column_names, describe_path(Path(path)))
        loaded = LoadedTable(_change_typed(table, form, categories), Misread())
    if loaded.table.num_rows == 0:
        raise IcscmError(f"{describe_path(Path(path))} has a header but no rows")
    return loaded


def get_misread(reader: TableReader) -> Misread:
    """Return the texts that were read as missing, by column; none for other than text files."""
    misread = Misread()
    if isinstance(reader, TextFiles):
        for file in reader.files:
            misread.update(file.misread)
    return _keep_told(misread, reader.schema)


def _keep_told(misread: Misread, schema: pyarrow.Schema) -> Misread:
    """Keep what users are told of: of empty cells, those beside a text that may be a level."""
    kept = Misread()
    for (column, text), n_cells in misread.items():
        is_text = pyarrow.types.is_string(schema.field(column).type)
        is_beside_none = is_text and (column, NONE) in misread
        if text or is_beside_none:
            kept[column, text] = n_cells
    return kept


def open_table(
    data: Any,
    form: TextFormat | None = None,
    *,
    member: str | None = None,
    types: Mapping[str, str] | None = None,
) -> TableReader:
    """Open a reader of a file, a folder of files, or a `pyarrow.dataset.Dataset`.

    `form` says how text is read, and what means missing in any file; `types` are the types that
    columns of text must have, and `member` is a file in a .zip with several.
    """
    form = form or TextFormat()
    if isinstance(data, ParquetFiles | TextFiles | DatasetReader | ChangedReader):
        return data

    reader: TableReader
    if _is_dataset(data):
        reader = DatasetReader(data, "the dataset")
    elif not isinstance(data, str | Path):
        raise IcscmError(
            "data must be the path of a file or folder, or a pyarrow Dataset; "
            f"got {type(data).__name__}"
        )
    elif "://" in str(data):
        reader = _open_dataset(str(data), data, partitioning="hive")
    else:
        sources = find_sources(Path(data), member)
        if sources[0].kind == "text":
            return TextFiles(sources, form, types or {})
        reader = _open_binary(sources, Path(data))

    # Cells of these have types; what the user declared is applied as they are read.
    check_names(reader.names, data)
    categories = form.find_categories(reader.names, data)
    if not form.na and not categories:
        return reader
    return ChangedReader(reader, partial(_change_typed, form=form, categories=categories))


def _is_dataset(data: Any) -> bool:
    """Return whether data are a `pyarrow.dataset.Dataset`, without loading that module."""
    return "pyarrow.dataset" in sys.modules and isinstance(data, arrow_dataset.Dataset)


def _change_typed(
    table: pyarrow.Table, form: TextFormat, categories: Container[str]
) -> pyarrow.Table:
    """Apply to a table whose cells have types what the user declared missing or a category."""
    if form.na:
        table = drop_missing(table, form)
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in categories and not pyarrow.types.is_dictionary(column.type):
            table = table.set_column(position, name, column.dictionary_encode())
    return table


def _open_binary(sources: Sequence[Source], path: Path) -> ParquetFiles | DatasetReader:
    """Open a reader of Parquet or Arrow files."""
    first = sources[0]
    if first.member is not None:
        return _open_member(first)
    # folders such as country=fr hold a column
    is_partitioned = path.is_dir() and "=" in str(first.path.relative_to(path).parent)
    if first.kind == "parquet" and not is_partitioned:
        return ParquetFiles({str(source): source.path for source in sources})
    return _open_dataset(
        [str(source.path) for source in sources],
        path,
        kind=first.kind,
        format=_choose_dataset_format(first.kind),
        partitioning="hive" if is_partitioned else None,
        partition_base_dir=str(path) if is_partitioned else None,
    )


def _open_member(source: Source) -> ParquetFiles | DatasetReader:
    """Open a reader of a file in an archive, which is unpacked to memory."""
    with translate_errors(source, kind=source.kind), source.open() as stream:
        content = io.BytesIO(stream.read())
        if source.kind == "arrow":
            table = pyarrow.feather.read_table(content)
            return _open_dataset(table, source, source.kind)
    return ParquetFiles({str(source): content})


def _choose_dataset_format(kind: str) -> Any:
    """Choose the format of a dataset; the pages of Parquet files are checked."""
    if kind == "arrow":
        return "feather"
    return arrow_dataset.ParquetFileFormat(page_checksum_verification=True)


def _open_dataset(files: Any, where: object, kind: str = "", **options: Any) -> DatasetReader:
    """Open a reader of what pyarrow takes for a dataset; `where` is its name in errors."""
    with translate_errors(where, kind=kind):
        return DatasetReader(arrow_dataset.dataset(files, **options), where, kind)


class ParquetFiles:
    """Parquet files with the same columns, by name; a value is a path, or content in memory."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self._files = files

    @cached_property
    def schema(self) -> pyarrow.Schema:
        schemas = {}
        for name in self._files:
            with self._open(name) as file:
                schemas[name] = _read_schema(file, name)
        return _join_schemas(schemas)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def load(self) -> pyarrow.Table:
        """Load all rows; each file is opened once."""
        schemas = {}
        tables = []
        for name in track(self._files, len(self._files)):
            with self._open(name) as file:
                schemas[name] = _read_schema(file, name)
                batches = self._read_batches(file, schemas[name].names, _LOADED_ROWS)
                tables.append(pyarrow.Table.from_batches(batches, schemas[name]))
        schema = _join_schemas(schemas)
        return pyarrow.concat_tables([table.select(schema.names).cast(schema) for table in tables])

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        schema = _select(self.schema, columns)
        column_buffer = _COLUMN_BUFFER * _FEW_COLUMNS // max(_FEW_COLUMNS, len(columns))
        buffer_size = max(_SMALLEST_BUFFER, column_buffer)
        for name in track(self._files, len(self._files)):
            with self._open(name, buffer_size=buffer_size, pre_buffer=False) as file:
                for batch in self._read_batches(file, columns, batch_rows):
                    # a column that is empty in this file has its type in others
                    yield batch.cast(schema)

    def _read_batches(
        self, file: ParquetFile, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a file, with the columns in the given order."""
        batches = file.iter_batches(batch_size=batch_rows, columns=list(columns))
        n_batches = math.ceil(file.metadata.num_rows / batch_rows)
        for batch in track(batches, n_batches):
            yield _check(batch).select(list(columns))

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
            metadata = file.metadata
        if metadata.num_row_groups == 0:
            return 0
        # Row groups are alike, and one of them is read at a time: the first stands for all.
        first_group = metadata.row_group(0)
        n_bytes = 0
        for column in range(first_group.num_columns):
            column_bytes = first_group.column(column).total_uncompressed_size
            page_bytes = min(_PAGE_BYTES, column_bytes)
            n_bytes += _PAGES_HELD * page_bytes
        return n_bytes


class TextFiles:
    """Text files with the same columns. Types are inferred from all cells in all files."""

    def __init__(
        self, sources: Sequence[Source], form: TextFormat, types: Mapping[str, str]
    ) -> None:
        self._sources = sources
        self._form = form
        self._types = types

    @cached_property
    def files(self) -> list[Lines]:
        """The files with their headers; the columns may come in another order in each."""
        files = [open_lines(source, self._form) for source in self._sources]
        _check_same_columns(files)
        return files

    @property
    def names(self) -> list[str]:
        return self.files[0].names

    @cached_property
    def schema(self) -> pyarrow.Schema:
        kinds = [file.find_kinds(self.names) for file in self._track_files()]
        pyarrow.default_memory_pool().release_unused()
        return self.make_schema(self.names, kinds)

    def make_schema(self, names: Sequence[str], kinds: Sequence[Sequence[Kind]]) -> pyarrow.Schema:
        """Choose the types of columns, by what their cells can be in each part of the files."""
        schema = self._choose_types(names, kinds)
        first = self.files[0]
        for table in islice(first.read(schema), 1):  # the first rows suffice
            self._warn_of_texts(table, first)
        return schema

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        for file in self._track_files():
            for table in file.read(_select(self.schema, columns)):
                yield from _cut(table.to_batches(), batch_rows)

    def load(self) -> LoadedTable:
        """Load all rows; each file is opened once, so it may be a pipe."""
        files = []
        blocks = []
        for source in track(self._sources, len(self._sources)):
            file, blocks_of_file = load_lines(source, self._form)
            files.append(file)
            blocks += blocks_of_file
        _check_same_columns(files)
        self.files = files
        if not blocks:
            raise IcscmError(f"{files[0].source} has a header but no rows")

        texts = pyarrow.concat_tables([block.select(self.names) for block in blocks])
        cleaned = cells.clean(texts, self._form)
        kinds = cells.find_kinds(cleaned.table, self._form)
        schema = self._choose_types(self.names, [kinds])
        table = cells.convert(cleaned.table, schema.types, self._form)

        first_rows = table.slice(0, len(blocks[0]))
        self._warn_of_texts(first_rows, files[0])
        return LoadedTable(table=table, misread=_keep_told(cleaned.misread, schema))

    def _choose_types(
        self, names: Sequence[str], kinds: Sequence[Sequence[Kind]]
    ) -> pyarrow.Schema:
        """Choose the types of columns; raise if one cannot have the type that a model needs."""
        categories = self._form.find_categories(names, self._sources[0])
        types = {}
        for name, kind in zip(names, cells.join_kinds(kinds), strict=True):
            if name in categories:
                types[name] = cells.DECLARED_CATEGORY
                continue
            types[name] = cells.choose_type(kind, self._types.get(name))
            if types[name] is None:
                self._reject_column(name)
        return pyarrow.schema(list(types.items()))

    def _reject_column(self, name: str) -> None:
        """Raise for the first cell of a column that is not of the wanted type."""
        for file in self.files:
            for table in file.stream([name]):
                texts = cells.clean(table, self._form).table.column(0)
                cells.reject_kind(texts, name, self._types[name], self._form, file.source)

    def _warn_of_texts(self, table: pyarrow.Table, first: Lines) -> None:
        """Warn of columns that were read as text and may be meant otherwise."""
        if self._form.decimal == "." and first.has_commas:
            cells.warn_of_commas(table, first.source)
        if not self._types:  # a model's own types are as they were
            cells.warn_of_question_marks(table, first.source)

    def _track_files(self) -> Iterator[Lines]:
        """Yield the files, and show how many of them are read."""
        return track(self.files, len(self.files))

    def estimate_bytes(self) -> int:
        return _BLOCKS_HELD * MIN_BLOCK


class DatasetReader:
    """A `pyarrow.dataset.Dataset`, read by its own scanner."""

    def __init__(self, dataset: pyarrow.dataset.Dataset, where: object, kind: str = "") -> None:
        self._dataset = dataset
        self._where = where
        self._kind = kind
        self.schema = dataset.schema.remove_metadata()
        self.names = self.schema.names

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        with translate_errors(self._where, kind=self._kind):
            batches = self._dataset.to_batches(
                list(columns), batch_size=batch_rows, batch_readahead=1, fragment_readahead=1
            )
            yield from _cut(map(_check, batches), batch_rows)

    def load(self) -> pyarrow.Table:
        """Load all rows."""
        return pyarrow.Table.from_batches(self.read(self.names, _LOADED_ROWS), self.schema)

    def estimate_bytes(self) -> int:
        return 0  # the scanner does not report it


class ChangedReader:
    """A table whose rows are changed as they are read.

    The change takes and returns a table. It needs the columns `needs`, which are read even if they
    are not asked for.
    """

    def __init__(
        self,
        reader: TableReader,
        change: Callable[[pyarrow.Table], pyarrow.Table],
        needs: Sequence[str] = (),
    ) -> None:
        self._reader = reader
        self._change = change
        self._needs = needs
        self.names = reader.names

    def estimate_bytes(self) -> int:
        return self._reader.estimate_bytes()

    @cached_property
    def schema(self) -> pyarrow.Schema:
        return self._change(self._reader.schema.empty_table()).schema

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        wanted = dict.fromkeys((*columns, *self._needs))
        stored = {*self._reader.names}
        needed = [name for name in wanted if name in stored]  # the change may add others
        for batch in self._reader.read(needed, batch_rows):
            table = self._change(pyarrow.Table.from_batches([batch]))
            yield from table.select(list(columns)).combine_chunks().to_batches()


def _check(rows: Any) -> Any:
    """Return rows if they are valid: wrong offsets in a damaged file would crash the process."""
    rows.validate(full=True)
    return rows


def _cut(batches: Iterable[pyarrow.RecordBatch], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
    """Cut batches into some of no more than so many rows."""
    for batch in batches:
        for start in range(0, len(batch), batch_rows):
            yield batch.slice(start, batch_rows)


def _read_schema(file: ParquetFile, name: str) -> pyarrow.Schema:
    """Read names and types of the columns of a Parquet file."""
    schema = file.schema_arrow.remove_metadata()
    check_names(schema.names, name)
    return schema


def _check_same_columns(files: Sequence[Lines]) -> None:
    """Raise unless all text files have the columns of the first, in whatever order."""
    first = files[0]
    for other in files[1:]:
        check_same_names(first.names, other.names, first=first.source, where=other.source)


def _select(schema: pyarrow.Schema, columns: Sequence[str]) -> pyarrow.Schema:
    """Select some columns of a schema, in this order."""
    return pyarrow.schema([schema.field(name) for name in columns])


def _join_schemas(schemas: Mapping[str, pyarrow.Schema]) -> pyarrow.Schema:
    """Join the schemas of all files; raise unless they have the same columns of the same types.

    A column that is empty in one file, and has no type there, takes that of the others.
    """
    (first_file, joined), *others = schemas.items()
    for file, schema in others:
        check_same_names(joined.names, schema.names, first=first_file, where=file)
        try:
            joined = pyarrow.unify_schemas([joined, schema])
        except pyarrow.ArrowException as error:
            why = f"{file} has other types than the files before it: {error}"
            raise IcscmError(f"{why}; use the same types in all files, or remove it") from None
    return joined
