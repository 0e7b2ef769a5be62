"""Tables in files: opened, checked, and read a batch of rows at a time.

Parquet and CSV files are read by their own streaming readers, which hold a page of each column;
the scanner of `pyarrow.dataset`, which holds whole row groups, is left to datasets that the
caller made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from pyarrow import types

from icscm.exceptions import IcscmError
from icscm.text import shorten_list

PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz")
# What stands for a missing value in a text file, as pandas has it.
NULL_VALUES = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]
# Bytes of a text file whose values tell the types of its columns.
_TEXT_BLOCK = 2**22
# Bytes read ahead of one column; less where there are many columns.
_COLUMN_BUFFER = 2**20
_SMALLEST_BUFFER = 2**12
# A page of a Parquet column: what its writers aim for.
_PAGE_BYTES = 2**20


class TableReader(Protocol):
    """A table that can be read again and again, each time in the same order of rows."""

    schema: pyarrow.Schema

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows in order, some columns of them, in batches of about so many rows."""
        ...

    def estimate_bytes(self) -> int:
        """Memory that reading takes besides the batches."""
        ...


def open_table(data: Any) -> TableReader:
    """A file, a folder of files of one kind, or a `pyarrow.dataset.Dataset`."""
    if isinstance(data, pyarrow.dataset.Dataset):
        reader: TableReader = DatasetReader(data)
    elif isinstance(data, str | Path) and "://" in str(data):
        with _one_clear_error(str(data)):
            reader = DatasetReader(pyarrow.dataset.dataset(str(data), partitioning="hive"))
    elif isinstance(data, str | Path):
        reader = _open_path(Path(data))
    else:
        raise IcscmError(
            "data must be the path of a file or folder, or a pyarrow Dataset; got "
            f"{type(data).__name__}"
        )
    _check_names(reader.schema.names)
    return reader


def _open_path(path: Path) -> TableReader:
    if not path.exists():
        raise IcscmError(f"there is no file or folder {path}")
    if path.is_file():
        is_text = path.name.lower().endswith(TEXT_ENDINGS)
        return TextFiles([path]) if is_text else ParquetFiles([path])
    parquet, text = _list_files(path, PARQUET_ENDINGS), _list_files(path, TEXT_ENDINGS)
    if parquet and text:
        raise IcscmError(f"{path} holds Parquet and text files; name a folder of one kind")
    if not parquet and not text:
        endings = ", ".join(PARQUET_ENDINGS + TEXT_ENDINGS)
        raise IcscmError(f"{path} holds no data: no file in it ends in {endings}")
    if parquet and any("=" in part for part in parquet[0].relative_to(path).parts[:-1]):
        with _one_clear_error(str(path)):  # folders such as country=fr hold a column
            files = [str(each) for each in parquet]
            dataset = pyarrow.dataset.dataset(
                files, format="parquet", partitioning="hive", partition_base_dir=str(path)
            )
        return DatasetReader(dataset)
    return ParquetFiles(parquet) if parquet else TextFiles(text)


def _list_files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Files of a kind, in a fixed order, without hidden ones and the marks that writers leave."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.name.lower().endswith(endings)
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )


class ParquetFiles:
    """Parquet files with the same columns, one after the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        schemas = {}
        for path in paths:
            with _one_clear_error(str(path)):
                schemas[path] = pyarrow.parquet.read_schema(path).remove_metadata()
        self.schema = _join_schemas(schemas)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        wanted = pyarrow.schema([self.schema.field(name) for name in columns])
        buffer = max(_SMALLEST_BUFFER, _COLUMN_BUFFER * 64 // max(64, len(columns)))
        for path in self._paths:
            with (
                _one_clear_error(str(path)),
                pyarrow.parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False) as file,
            ):
                for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
                    yield _conform(batch, wanted)

    def estimate_bytes(self) -> int:
        with _one_clear_error(str(self._paths[0])):
            about = pyarrow.parquet.read_metadata(self._paths[0])
            if about.num_row_groups == 0:
                return 0
            group = about.row_group(0)
            chunks = [group.column(j).total_uncompressed_size for j in range(group.num_columns)]
        # a page as it is in the file and unpacked, and what was read ahead
        return sum(min(3 * _PAGE_BYTES, 3 * size) for size in chunks)


class TextFiles:
    """Text files - values separated by commas or tabs, names in the first line - in a row."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._schemas = {}
        for path in paths:
            with _one_clear_error(str(path)), self._open(path, None, None) as reader:
                self._schemas[path] = reader.schema
        self.schema = _join_schemas(self._schemas, numbers_may_mix=True)

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        column_types = {name: self.schema.field(name).type for name in columns}
        for path, own_schema in self._schemas.items():
            with (
                _one_clear_error(str(path), own_schema.names),
                self._open(path, columns, column_types) as reader,
            ):
                yield from _cut(reader, batch_rows)

    def estimate_bytes(self) -> int:
        return 16 * _TEXT_BLOCK

    def _open(
        self, path: Path, columns: Sequence[str] | None, column_types: Mapping[str, Any] | None
    ) -> pyarrow.csv.CSVStreamingReader:
        is_tabbed = path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        return pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=_TEXT_BLOCK),
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t" if is_tabbed else ","),
            convert_options=pyarrow.csv.ConvertOptions(
                null_values=NULL_VALUES,
                strings_can_be_null=True,
                include_columns=columns,
                column_types=column_types,
            ),
        )


class DatasetReader:
    """A `pyarrow.dataset.Dataset`, read by its own scanner."""

    def __init__(self, dataset: pyarrow.dataset.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema.remove_metadata()

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pyarrow.RecordBatch]:
        with _one_clear_error("the dataset"):
            batches = self._dataset.to_batches(
                columns=list(columns),
                batch_size=batch_rows,
                batch_readahead=1,
                fragment_readahead=1,
            )
            yield from _cut(batches, batch_rows)

    def estimate_bytes(self) -> int:
        return 0  # the scanner does not tell


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


def _join_schemas(
    schemas: Mapping[Path, pyarrow.Schema], *, numbers_may_mix: bool = False
) -> pyarrow.Schema:
    """The schema of all files; raise unless they have the same columns of the same types."""
    first, *others = schemas
    joined = {field.name: field.type for field in schemas[first]}
    _check_names(schemas[first].names)
    for path in others:
        _check_same_names(schemas[first].names, schemas[path].names, first, path)
        for field in schemas[path]:
            known = joined[field.name]
            joined[field.name] = _join_types(known, field.type, numbers_may_mix)
            if joined[field.name] is None:
                raise IcscmError(
                    f"column {field.name!r} is {field.type} in {path} and {known} in the files "
                    "before it; write it as one type in all of them, or leave it out"
                )
    return pyarrow.schema(list(joined.items()))


def _join_types(a: Any, b: Any, numbers_may_mix: bool) -> Any:
    """The type that both can be read as; None if there is none."""
    if a == b or types.is_null(b):
        return a
    if types.is_null(a):
        return b
    if numbers_may_mix and {str(a), str(b)} == {"int64", "double"}:
        return pyarrow.float64()
    return None


def _check_same_names(a: Sequence[str], b: Sequence[str], first: Path, other: Path) -> None:
    different = sorted({*a} ^ {*b}) or [name for name in b if list(b).count(name) > 1]
    if different:
        raise IcscmError(
            f"{other} has not the same columns as {first}: they differ in "
            f"{shorten_list([repr(name) for name in different])}; all files must have the same"
        )


def _check_names(names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise IcscmError(
            "the table has more than one column of the same name "
            f"({shorten_list([repr(name) for name in repeated])}); names must differ, since rules "
            "go by them"
        )


@contextmanager
def _one_clear_error(what: str, names: Sequence[str] = ()) -> Iterator[None]:
    """Whatever pyarrow raises, as one line that names the file, and the column if it can.

    `names` are those of a text file's columns, which pyarrow knows by number.
    """
    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        conflict = re.search(r"CSV column #(\d+):.*conversion error to (\S+): (.*)", reason)
        if conflict and names:
            raise IcscmError(
                f"column {names[int(conflict[1])]!r} of {what} looked like {conflict[2]} at first, "
                f"but holds an {conflict[3]}. Make it one kind, leave it out, or give a pyarrow "
                "dataset whose schema says its type"
            ) from None
        raise IcscmError(f"{what} cannot be read: {reason}") from error
