"""Tables in files: opened, checked, and read a batch of rows at a time.

Parquet files are read by their own streaming reader, which holds a page of each column, and text
by ours, which types its columns by all rows of all files in a pass of its own. The scanner of
`pyarrow.dataset`, which holds whole row groups, is left to what else there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

from icscm.exceptions import IcscmError
from icscm.io.cells import (
    Kinds,
    choose_type,
    convert,
    drop_missing,
    find_kinds,
    refuse_kind,
    warn_of_commas,
)
from icscm.io.formats import TextFormat
from icscm.io.headers import read_header
from icscm.io.lines import MIN_BLOCK, Lines
from icscm.io.locating import Source, find_sources, translate_errors
from icscm.io.naming import check_columns, check_names, check_same_names

# Bytes read ahead of one column; less where there are many columns.
_COLUMN_BUFFER = 2**20
_SMALLEST_BUFFER = 2**12
# A page of a Parquet column: what its writers aim for.
_PAGE_BYTES = 2**20


class TableReader(Protocol):
    """A table that can be read again and again, each time in the same order of rows."""

    @property
    def names(self) -> list[str]:
        """Names of the columns, known before anything else is read."""
        ...

    @property
    def schema(self) -> pyarrow.Schema:
        """Names and types of the columns."""
        ...

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows in order, some columns of them, in batches of about so many rows."""
        ...

    def estimate_bytes(self) -> int:
        """Memory that reading takes besides the batches."""
        ...


def open_table(
    data: Any, form: TextFormat | None = None, *, member: str | None = None
) -> TableReader:
    """A file, a folder of files of one kind, a `pyarrow.dataset.Dataset`, or what is open."""
    form = form or TextFormat()
    if hasattr(data, "estimate_bytes"):
        opened: TableReader = data
        return opened
    if isinstance(data, pyarrow.dataset.Dataset):
        reader: TableReader = DatasetReader(data)
    elif isinstance(data, str | Path) and "://" in str(data):
        with translate_errors(data):
            reader = DatasetReader(pyarrow.dataset.dataset(str(data), partitioning="hive"))
    elif isinstance(data, str | Path):
        reader = _open_sources(find_sources(Path(data), member), Path(data), form)
    else:
        raise IcscmError(
            "data must be the path of a file or folder, or a pyarrow Dataset; got "
            f"{type(data).__name__}"
        )
    check_names(reader.names, "the table")
    is_typed = not isinstance(reader, TextFiles)
    return _WithoutMissing(reader, form) if form.na and is_typed else reader


def _open_sources(sources: list[Source], path: Path, form: TextFormat) -> TableReader:
    kind, paths = sources[0].kind, [source.path for source in sources]
    if kind == "text":
        return TextFiles(sources, form)
    if sources[0].member is not None:
        raise IcscmError(f"{sources[0]} is a packed {kind} file; unpack it, or write it unpacked")
    is_partitioned = path.is_dir() and any("=" in part for part in paths[0].relative_to(path).parts)
    if kind == "parquet" and not is_partitioned:
        return ParquetFiles(paths)
    with translate_errors(path):  # folders such as country=fr hold a column
        files = [str(each) for each in paths]
        layout = {"partitioning": "hive", "partition_base_dir": str(path)} if is_partitioned else {}
        ending = "feather" if kind == "arrow" else kind
        return DatasetReader(pyarrow.dataset.dataset(files, format=ending, **layout))


class ParquetFiles:
    """Parquet files with the same columns, one after the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        schemas = {}
        for path in paths:
            with translate_errors(path):
                schemas[path] = pyarrow.parquet.read_schema(path).remove_metadata()
        self.schema = _join_schemas(schemas)
        self.names = self.schema.names

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        wanted = pyarrow.schema([self.schema.field(name) for name in columns])
        buffer = max(_SMALLEST_BUFFER, _COLUMN_BUFFER * 64 // max(64, len(columns)))
        for path in self._paths:
            with (
                translate_errors(path),
                pyarrow.parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False) as file,
            ):
                for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
                    yield _conform(batch, wanted)

    def estimate_bytes(self) -> int:
        with translate_errors(self._paths[0]):
            about = pyarrow.parquet.read_metadata(self._paths[0])
            if about.num_row_groups == 0:
                return 0
            group = about.row_group(0)
            chunks = [group.column(j).total_uncompressed_size for j in range(group.num_columns)]
        # a page as it is in the file and unpacked, and what was read ahead
        return sum(min(3 * _PAGE_BYTES, 3 * size) for size in chunks)


class TextFiles:
    """Text files in a row. A column's type is told by all its cells in all files."""

    def __init__(
        self,
        sources: Sequence[Source],
        form: TextFormat,
        types: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._form, self._types = form, types or {}
        self.files = [Lines(source, form, read_header(source, form)) for source in sources]
        first = self.files[0]
        self.names = first.header.names
        if columns is not None:
            check_columns(columns, self.names, str(first.source))
        for other in self.files[1:]:
            check_same_names(self.names, other.header.names, first.source, other.source)
        self.names = self.names if columns is None else list(columns)

    @cached_property
    def schema(self) -> pyarrow.Schema:
        kinds = [file.find_kinds(self.names) for file in self.files]
        pyarrow.default_memory_pool().release_unused()
        return self.make_schema(kinds)

    def make_schema(self, kinds: Sequence[Kinds]) -> pyarrow.Schema:
        """The types by what the columns can be in each piece."""
        joined = np.bitwise_and.reduce(kinds).tolist()
        fields = {
            n: choose_type(k, self._types.get(n)) for n, k in zip(self.names, joined, strict=True)
        }
        for name in [name for name, kind in fields.items() if kind is None]:
            for file in self.files:
                for table in file.stream([name]):
                    refuse_kind(table.column(0), name, self._types[name], self._form, file.source)
        schema, first = pyarrow.schema(list(fields.items())), self.files[0]
        if self._form.decimal == "." and first.header.has_commas:
            for table in islice(first.read(schema), 1):  # the first rows tell enough
                warn_of_commas(table, first.source)
        return schema

    def load(self) -> pyarrow.Table:
        """All rows at once, read a single time."""
        tables = [table for file in self.files for table in file.stream(self.names)]
        if not tables:
            raise IcscmError(f"{self.files[0].source} has a header but no rows")
        texts = pyarrow.concat_tables(tables)
        schema = self.make_schema([find_kinds(texts, self._form)])
        return convert(texts, schema.types, self._form)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        schema = pyarrow.schema([self.schema.field(name) for name in columns])
        for file in self.files:
            for table in file.read(schema):
                yield from _cut(table.to_batches(), batch_rows)

    def estimate_bytes(self) -> int:
        return 32 * MIN_BLOCK


class DatasetReader:
    """A `pyarrow.dataset.Dataset`, read by its own scanner."""

    def __init__(self, dataset: pyarrow.dataset.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema.remove_metadata()
        self.names = self.schema.names

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        with translate_errors("the dataset"):
            batches = self._dataset.to_batches(
                columns=list(columns),
                batch_size=batch_rows,
                batch_readahead=1,
                fragment_readahead=1,
            )
            yield from _cut(batches, batch_rows)

    def estimate_bytes(self) -> int:
        return 0  # the scanner does not tell


class _WithoutMissing:
    """A table that has types, null where it holds what the user says means missing."""

    def __init__(self, reader: TableReader, form: TextFormat) -> None:
        self._reader, self._form = reader, form
        self.schema = drop_missing(reader.schema.empty_table(), form).schema
        self.names, self.estimate_bytes = reader.names, reader.estimate_bytes

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        for batch in self._reader.read(columns, batch_rows):
            table = drop_missing(pyarrow.Table.from_batches([batch]), self._form)
            yield from table.combine_chunks().to_batches()


def _cut(batches: Iterable[pyarrow.RecordBatch], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
    """Batches of no more than so many rows."""
    for batch in batches:
        for start in range(0, len(batch), batch_rows):
            yield batch.slice(start, batch_rows)


def _conform(batch: pyarrow.RecordBatch, wanted: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Columns in the order asked for; one that holds nothing in this file gets its type."""
    arrays = []
    for field in wanted:
        array = batch.column(field.name)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pyarrow.RecordBatch.from_arrays(arrays, schema=wanted)


def _join_schemas(schemas: Mapping[Path, pyarrow.Schema]) -> pyarrow.Schema:
    """The schema of all files; raise unless they have the same columns of the same types."""
    first, *others = schemas
    check_names(schemas[first].names, first)
    joined = {field.name: field.type for field in schemas[first]}
    for path in others:
        check_names(schemas[path].names, path)
        check_same_names(schemas[first].names, schemas[path].names, first, path)
        for field in schemas[path]:
            known = joined[field.name]
            if pyarrow.types.is_null(known):
                joined[field.name] = field.type
            elif known != field.type and not pyarrow.types.is_null(field.type):
                raise IcscmError(
                    f"column {field.name!r} is {field.type} in {path} and {known} in the files "
                    "before it; write it as one type in all of them, or leave it out"
                )
    return pyarrow.schema(list(joined.items()))
