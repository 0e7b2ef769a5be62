"""Tables in files: CSV and its kin, Parquet, Arrow; and predictions out again.

A text file says nothing of types, so they are read off the whole column: numbers where every
value is one, booleans, dates, and text otherwise. A model's file remembers what its columns were,
and `types` makes a later file be read alike: a code such as `7` that was text stays text.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from icscm.exceptions import IcscmError, IcscmWarning
from icscm.text import escape_controls, shorten_list

if TYPE_CHECKING:
    import pyarrow

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".rtab", ".txt", ".data")
TAB_ENDINGS = {".tsv", ".tab", ".rtab"}
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow")
# Compressed text; a Parquet file is compressed inside.
PACKED_ENDINGS = (".gz", ".bz2", ".zst", ".zip")

# What stands for "missing" in text files besides an empty cell. "none" and "na" are not among
# them: in lower case they are levels ("none", "mild", "severe") as often as not.
MISSING_TEXTS = (
    "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT",
)  # fmt: skip

# Kinds of columns that `types` may ask for.
NUMBER, CATEGORY, BOOLEAN = "number", "category", "boolean"

# Instead of a file: the text that another program pipes in.
STANDARD_INPUT = Path("-")

_DELIMITERS = ",\t;|"

# Lines after the header that are looked at before reading, and the longest header that is one.
_N_LINES_SEEN = 20
_MAX_HEADER = 2**28
# What pyarrow reads at a time: at least its own default, and many rows however wide they are.
_MIN_BLOCK, _MAX_BLOCK, _ROWS_IN_BLOCK = 2**20, 2**30, 8
# Cells of columns that are converted together: a short column alone takes longer to hand over
# than to convert.
_RUN_CELLS = 2**16

# How whole numbers look, and (at least) all that pyarrow takes for numbers.
_WHOLE = r"^-?[0-9]+$"
_NUMBER = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^[+-]?(inf|nan).*$"
_DATE = r"^\d{4}-\d\d-\d\d"
# Numbers with a decimal comma: what only such can be, and all that may stand in their columns.
_COMMA_FRACTION = r"^-?([0-9]{1,3}(\.?[0-9]{3})*|[0-9]+),[0-9]+$"
_COMMA_NUMBER = r"(?i)^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]*)(,[0-9]*)?(e[+-]?[0-9]+)?$"
# Share of a column's values that look like numbers with decimal commas before a word is said.
_NEARLY_ALL = 0.95


@dataclass(frozen=True)
class TextFormat:
    """How a text file is to be read.

    Parameters
    ----------
    na : texts that stand for missing, besides the empty one.
    default_na : whether `MISSING_TEXTS` do so, too.
    delimiter : None takes it from the ending and the first lines.
    encoding : of the text.
    decimal : the mark before the fraction of a number, "." or ",".
    """

    na: tuple[str, ...] = ()
    default_na: bool = True
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise IcscmError(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise IcscmError(f"delimiter must be one character; got {self.delimiter!r}")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise IcscmError(
                f"there is no encoding {self.encoding!r}; utf-8, latin-1 and cp1252 are usual"
            ) from None

    @property
    def missing_texts(self) -> list[str]:
        """All texts that stand for missing."""
        return ["", *(text.strip() for text in self.na), *(MISSING_TEXTS * self.default_na)]

    @property
    def missing_numbers(self) -> list[float]:
        """Texts of the user that are numbers, as such: -9 is missing as -9.0, too."""
        return find_numbers(self.na)


def find_numbers(texts: Iterable[str]) -> list[float]:
    """The numbers among texts.

    >>> find_numbers(["?", "-9", "99.5", "nan"])
    [-9, 99.5]
    """
    plain = [text.strip() for text in texts if re.match(_NUMBER, text.strip())]
    numbers = [int(text) if re.match(_WHOLE, text) else float(text) for text in plain]
    return [number for number in dict.fromkeys(numbers) if abs(number) < float("inf")]


def read_table(
    path: str | Path,
    *,
    na: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    default_na: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    member: str | None = None,
) -> pyarrow.Table:
    """The table in a file, whose ending tells its format.

    Parameters
    ----------
    path : .csv, .tsv, .tab, .rtab, .txt, .data (also .gz, .bz2, .zst, or in a .zip), .parquet,
        .pq, .feather or .arrow; `-` is CSV from standard input. Text files need a header line.
    na : texts that mean "missing" besides an empty cell and, with `default_na`, NA, N/A, NaN,
        null, None and the like. Those that are numbers mean so in columns of numbers, however
        they are written. In Parquet and Arrow files, which know missing values, these alone are
        looked for.
    columns : only these, in this order; all must be there.
    types : for text files, columns that must be read as `"number"`, `"category"` (text) or
        `"boolean"`; others are read as what they look like.
    delimiter : of text files; by default a tab for .tsv, .tab and .rtab, else that of comma, tab,
        semicolon and bar which the first lines agree on.
    encoding : of text files.
    decimal : of text files, "." or ",": the mark before the fraction of a number.
    member : of a .zip with several files, the one to read.
    """
    form = TextFormat(tuple(na), default_na, delimiter, encoding, decimal)
    source = _find_source(Path(path), member)
    if source.kind == "text":
        table = _read_text(source, form, columns, types or {})
    else:
        table = _read_binary(source, columns, form)
    if table.num_rows == 0:
        raise IcscmError(f"{source} has a header but no rows")
    return table


def describe_path(path: Path) -> str:
    """What to call a file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def name_data(path: Path) -> str:
    """What to call the data in a file."""
    return describe_path(path) if path == STANDARD_INPUT else path.name


def find_format(path: Path, member: str | None = None) -> str:
    """`"text"`, `"parquet"` or `"arrow"`: what a file that can be read holds."""
    return "text" if path == STANDARD_INPUT else _find_source(path, member).kind


def find_kind(path: Path) -> str:
    """`"text"`, `"parquet"` or `"arrow"`, by the file's ending."""
    endings = [ending.lower() for ending in path.suffixes]
    last = endings[-1] if endings else ""
    inner = endings[-2] if last in PACKED_ENDINGS and len(endings) > 1 else ".csv"
    if inner in (*PARQUET_ENDINGS, *ARROW_ENDINGS):
        raise IcscmError(f"{path} is a packed {inner} file; unpack it, or write it unpacked")
    if last in TEXT_ENDINGS or last in PACKED_ENDINGS:
        return "text"
    if last in PARQUET_ENDINGS:
        return "parquet"
    if last in ARROW_ENDINGS:
        return "arrow"
    known = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS))
    what = f"ending {last!r}" if last else "no ending"
    raise IcscmError(f"{path} has {what}, which tells no format; known are {known}")


def check_output_kind(path: Path) -> None:
    """Raise unless tables can be written to a file of this name."""
    if path.suffix.lower() not in (".csv", ".tsv", *PARQUET_ENDINGS):
        raise IcscmError(
            f"{path} must end in .csv, .tsv or .parquet, which tells the format to write"
        )


def make_table_writer(table: pyarrow.Table, path: Path) -> Callable[[Path], None]:
    """What fills a file with the table, in the format that `path` names."""
    check_output_kind(path)

    def write(partial: Path) -> None:
        from pyarrow import parquet

        if path.suffix.lower() in PARQUET_ENDINGS:
            parquet.write_table(table, partial)
        else:
            with partial.open("w", encoding="utf-8", newline="") as stream:
                write_text_table(table, stream, "\t" if path.suffix.lower() == ".tsv" else ",")

    return write


def write_text_table(table: pyarrow.Table, stream: IO[str], delimiter: str = ",") -> None:
    """The table as delimited text: quoted only where needed, which pyarrow's writer cannot do."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def suggest(name: str, names: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest names, or what there is.

    >>> suggest("Age", ["age", "sex"]), suggest("xyz", ["age", "sex"])
    ("; did you mean 'age'?", "; there are 'age', 'sex'")
    """
    known = list(names)
    by_lower = {each.lower(): each for each in known}
    near = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; there are {shorten_list([repr(each) for each in known])}" if known else ""


def check_columns(wanted: Iterable[str], there: Sequence[str], where: str) -> None:
    """Raise unless all columns are there; names the near ones."""
    known = set(there)
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if len(absent) == 1:
        raise IcscmError(f"{where} has no column {absent[0]!r}{suggest(absent[0], there)}")
    if absent:
        names = shorten_list([repr(name) for name in absent])
        raise IcscmError(f"{where} lacks {len(absent)} columns: {names}")


# --- where the bytes are ----------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A file, a member of an archive, or all of standard input; `name` tells its format."""

    path: Path
    name: str
    kind: str
    member: str | None = None
    content: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return describe_path(self.path) + (f" ({self.member})" if self.member else "")

    @property
    def endings(self) -> list[str]:
        return [each.lower() for each in Path(self.name).suffixes]

    def open(self) -> IO[bytes]:
        """The bytes, unpacked."""
        import pyarrow

        if self.content is not None:
            return io.BytesIO(self.content)
        if self.member is not None:
            with _open_archive(self.path) as archive:  # the member keeps it open
                return archive.open(self.member)
        packing = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(self.path.suffix.lower())
        stream: IO[bytes] = pyarrow.input_stream(str(self.path), compression=packing)
        return stream


def _find_source(path: Path, member: str | None) -> _Source:
    if member is not None and path.suffix.lower() != ".zip":
        raise IcscmError(f"{describe_path(path)} is no .zip archive, so it has no member {member}")
    if path == STANDARD_INPUT:
        content = sys.stdin.buffer.read()
        if not content:
            raise IcscmError("standard input is empty")
        return _Source(path, "input.csv", "text", content=content)
    _check_there(path)
    if path.suffix.lower() == ".zip":
        return _find_member(path, member)
    return _Source(path, path.name, find_kind(path))


def _find_member(path: Path, wanted: str | None) -> _Source:
    """The one table in an archive, or the one that is asked for."""
    with _open_archive(path) as archive:
        there = [each for each in archive.namelist() if not each.endswith("/")]
        is_locked = any(each.flag_bits & 1 for each in archive.infolist())
    if is_locked:
        raise IcscmError(f"{path} is locked with a password; unpack it")
    members = [each for each in there if not each.startswith("__MACOSX/")]
    if wanted is not None:
        if wanted not in members:
            raise IcscmError(f"{path} has no member {wanted!r}{suggest(wanted, members)}")
        return _Source(path, wanted, find_kind(Path(wanted)), wanted)
    endings = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    tables = [each for each in members if each.lower().endswith(endings)]
    if len(tables) == 1:
        return _Source(path, tables[0], find_kind(Path(tables[0])), tables[0])
    if len(members) == 1:
        return _Source(path, members[0], "text", members[0])
    raise IcscmError(
        f"{path} holds {len(members)} files ({shorten_list(members)}); name the one to read with "
        "--member"
    )


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise IcscmError(f"{path} is no zip archive, or a damaged one") from None


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise IcscmError(f"{path} is a folder; name a file in it")
    if not path.exists():
        folder = path.parent
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        near = get_close_matches(path.name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise IcscmError(f"there is no file {path}{hint}")
    if path.is_file() and path.stat().st_size == 0:
        raise IcscmError(f"{path} is empty")


# --- Parquet and Arrow ------------------------------------------------------


def _read_binary(source: _Source, columns: Sequence[str] | None, form: TextFormat) -> pyarrow.Table:
    import pyarrow

    read = _read_parquet if source.kind == "parquet" else _read_arrow
    try:
        table = read(source, columns)
    except (pyarrow.ArrowException, OSError) as error:
        raise IcscmError(
            f"{source} cannot be read as {source.kind.capitalize()}: {_first_line(error)}"
        ) from error
    if not form.na:
        return table
    arrays = [_drop_missing(column, form) for column in table.columns]
    fields = [each.with_type(array.type) for each, array in zip(table.schema, arrays, strict=True)]
    return pyarrow.table(arrays, schema=pyarrow.schema(fields, table.schema.metadata))


def _get_file(source: _Source) -> Any:
    """What pyarrow reads at any place: the file itself, or a member in memory."""
    if source.member is None:
        return source.path
    with source.open() as stream:
        return io.BytesIO(stream.read())


def _read_parquet(source: _Source, columns: Sequence[str] | None) -> pyarrow.Table:
    from pyarrow import parquet

    # a ParquetFile, not a dataset: partition folders in the path must not become columns
    with parquet.ParquetFile(_get_file(source)) as file:
        _check_names(list(file.schema_arrow.names), source)
        if columns is not None:
            check_columns(columns, file.schema_arrow.names, str(source))
        table = file.read(None if columns is None else list(columns))
        return table if columns is None else table.select(list(columns))


def _read_arrow(source: _Source, columns: Sequence[str] | None) -> pyarrow.Table:
    from pyarrow import feather

    table = feather.read_table(_get_file(source))
    _check_names(table.column_names, source)
    if columns is None:
        return table
    check_columns(columns, table.column_names, str(source))
    return table.select(list(columns))


def _drop_missing(column: Any, form: TextFormat) -> Any:
    """Null where a column of text, numbers or categories holds what the user says means it."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        chunks = [_drop_entries(chunk, form) for chunk in column.chunks]
        return pyarrow.chunked_array(chunks, type=kind)
    if types.is_string_view(kind):
        column = column.cast(pyarrow.large_string())
    if types.is_string_view(kind) or types.is_string(kind) or types.is_large_string(kind):
        return _drop_texts(column, form.na)
    return _drop_numbers(column, form.missing_numbers)


def _drop_entries(chunk: Any, form: TextFormat) -> Any:
    """The same categories; rows of those that mean missing have none."""
    import pyarrow
    from pyarrow import compute

    kept = _drop_missing(pyarrow.chunked_array([chunk.dictionary]), form)
    is_kept = compute.take(compute.is_valid(kept).combine_chunks(), chunk.indices)
    codes = compute.if_else(is_kept, chunk.indices, pyarrow.scalar(None, chunk.indices.type))
    return pyarrow.DictionaryArray.from_arrays(codes, chunk.dictionary, ordered=chunk.type.ordered)


def _drop_texts(column: Any, texts: Sequence[str]) -> Any:
    import pyarrow
    from pyarrow import compute

    is_missing = compute.is_in(column, value_set=pyarrow.array(texts, type=column.type))
    return compute.if_else(is_missing, pyarrow.scalar(None, type=column.type), column)


def _drop_numbers(column: Any, numbers: Sequence[float]) -> Any:
    """Null where a column of numbers holds one of these; others stay as they are."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return column
    for number in numbers:
        try:
            is_decimal = types.is_decimal(kind)
            value = pyarrow.scalar(Decimal(str(number)) if is_decimal else number)
            value = value if is_decimal else value.cast(kind)
        except pyarrow.ArrowInvalid:  # no column of this type can hold it
            continue
        is_missing = compute.fill_null(compute.equal(column, value), False)
        column = compute.if_else(is_missing, pyarrow.scalar(None, type=kind), column)
    return column


# --- text -------------------------------------------------------------------


def _read_text(
    source: _Source, form: TextFormat, columns: Sequence[str] | None, types: Mapping[str, str]
) -> pyarrow.Table:
    """header -> all columns as text -> each column as what it is."""
    import pyarrow

    header = _read_header(source, form)
    if columns is not None:
        check_columns(columns, header.names, str(source))
    raw = _read_cells(source, form, header, columns)
    arrays = _convert_all(raw, types, form, source)
    if form.decimal == "." and header.delimiter != "," and header.has_commas:
        _warn_of_commas(raw.column_names, arrays, source)
    return pyarrow.table(arrays, names=raw.column_names)


@dataclass(frozen=True)
class _Header:
    """What the first lines tell.

    Parameters
    ----------
    delimiter : between cells.
    names : of the columns.
    n_rows : how many rows the header is deep, blank ones included.
    longest : bytes of the longest of the first lines.
    has_commas : whether digits with a comma between are among them.
    """

    delimiter: str
    names: list[str]
    n_rows: int
    longest: int
    has_commas: bool


def _read_header(source: _Source, form: TextFormat) -> _Header:
    with _translate_errors(source, form), source.open() as stream:
        lines = io.TextIOWrapper(stream, _decoding(form), newline="")
        first, n_blank = "", 0
        while not first.strip():
            first = lines.readline(_MAX_HEADER)
            if not first:
                raise IcscmError(f"{source} is empty")
            n_blank += not first.strip()
        _check_is_text(first, source)
        seen = [first, *(lines.readline(_MAX_HEADER) for _ in range(_N_LINES_SEEN))]
        delimiter = form.delimiter or _find_delimiter(source, seen, form.decimal)
        cells = next(csv.reader(chain(seen, lines), delimiter=delimiter))
    names = [name.strip() or f"column {i}" for i, name in enumerate(cells, start=1)]
    _check_names(names, source)
    if all(map(_is_number, names)):
        raise IcscmError(
            f"the first line of {source} holds numbers, not names; add a header line that names "
            "the columns"
        )
    return _Header(
        delimiter,
        names,
        n_blank + 1,
        longest=max(len(line.encode(errors="replace")) for line in seen),
        has_commas=any(re.search(r"\d,\d", line) for line in seen[1:]),
    )


def _check_is_text(first: str, source: _Source) -> None:
    if "\0" in first:
        raise IcscmError(
            f"{source} holds NUL characters, so it is no text: a damaged file, a copy that was "
            "broken off, or text in another encoding (--encoding utf-16)"
        )
    if len(first) >= _MAX_HEADER:
        raise IcscmError(f"{source} has no end of line in its first {_MAX_HEADER:,} characters")


def _find_delimiter(source: _Source, lines: Sequence[str], decimal: str) -> str:
    """That which occurs in the header, and as often in the lines after it.

    What stands in quotes is part of a name. Of several the more frequent one; a comma last if it
    is the mark of decimals.
    """
    if TAB_ENDINGS & {*source.endings}:
        return "\t"
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    found = [each for each in _DELIMITERS if each in bare[0]]

    def rank(delimiter: str) -> tuple[bool, int, int]:
        counts = [line.count(delimiter) for line in bare]
        return delimiter != decimal, sum(n == counts[0] for n in counts[1:]), counts[0]

    return max(found, key=rank, default=",")


def _read_cells(
    source: _Source, form: TextFormat, header: _Header, columns: Sequence[str] | None
) -> pyarrow.Table:
    """All cells as text."""
    import pyarrow

    bad_rows: list[Any] = []

    def refuse(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    block = max(_MIN_BLOCK, _ROWS_IN_BLOCK * header.longest)
    read = _make_reader(source, form, header, columns, refuse)
    with _translate_errors(source, form):
        while True:
            try:
                return read(block, use_threads=True)
            except pyarrow.ArrowInvalid as error:
                if bad_rows:
                    bad_rows.clear()
                    with _ignore_arrow_errors():
                        read(block, use_threads=False)  # only one thread knows a row's number
                    _refuse_row(source, bad_rows, header.delimiter)
                # a row longer than a block; the first lines may be short ones
                if "straddling" not in str(error) or block >= _MAX_BLOCK:
                    raise
                block = min(8 * block, _MAX_BLOCK)


def _make_reader(
    source: _Source,
    form: TextFormat,
    header: _Header,
    columns: Sequence[str] | None,
    refuse: Callable[[Any], str],
) -> Callable[..., pyarrow.Table]:
    import pyarrow
    from pyarrow import csv as arrow_csv

    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(header.names, pyarrow.string()),
        include_columns=None if columns is None else list(dict.fromkeys(columns)),
        strings_can_be_null=False,
    )
    parse = arrow_csv.ParseOptions(
        delimiter=header.delimiter,
        newlines_in_values=True,
        invalid_row_handler=refuse,
        # in a single column an empty line is a missing value
        ignore_empty_lines=len(header.names) > 1,
    )

    def read(block_size: int, *, use_threads: bool) -> pyarrow.Table:
        options = arrow_csv.ReadOptions(
            column_names=header.names,
            skip_rows_after_names=header.n_rows,
            encoding=form.encoding,
            use_threads=use_threads,
            block_size=block_size,
        )
        with source.open() as stream:
            return arrow_csv.read_csv(stream, options, parse, convert)

    return read


def _refuse_row(source: _Source, bad_rows: list[Any], delimiter: str) -> NoReturn:
    row = bad_rows[0]
    where = f"row {row.number - 1:,} below the header" if row.number else "a row"
    raise IcscmError(
        f"{where} of {source} has {row.actual_columns} fields where the header has "
        f"{row.expected_columns} (delimiter {delimiter!r}); mend it, or quote fields that hold "
        "the delimiter"
    )


class _translate_errors:  # noqa: N801 (reads as a statement)
    """Turn what decoders and parsers raise into one clear sentence."""

    def __init__(self, source: _Source, form: TextFormat) -> None:
        self.source, self.form = source, form

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        import pyarrow

        if error is None or isinstance(error, IcscmError):
            return
        is_encoding = isinstance(error, UnicodeError) or "UTF8" in str(error)
        if is_encoding:
            raise IcscmError(
                f"{self.source} is not {self.form.encoding} text; save it as UTF-8, or name its "
                "encoding (--encoding cp1252 is that of older Windows programs)"
            ) from error
        kinds = pyarrow.ArrowException, csv.Error, OSError, EOFError, zipfile.BadZipFile
        if isinstance(error, kinds):
            raise IcscmError(f"{self.source} cannot be read: {_first_line(error)}") from error


class _ignore_arrow_errors:  # noqa: N801 (reads as a statement)
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> bool:
        import pyarrow

        return kind is not None and issubclass(kind, pyarrow.ArrowException)


def _convert_all(
    raw: pyarrow.Table, types: Mapping[str, str], form: TextFormat, source: _Source
) -> list[Any]:
    """Every column of text as what it is; neighbours that may be anything in one go."""
    columns, names = raw.columns, raw.column_names  # each makes a list of all

    def convert(run: tuple[int, int]) -> list[Any]:
        start, end = run
        if end - start > 1:
            return _infer_run(_clean(_join(columns[start:end]), form), raw.num_rows, form)
        return [_convert(columns[start], names[start], types.get(names[start]), form, source)]

    runs = _cut_runs(names, raw.num_rows, types, form)
    with ThreadPoolExecutor() as pool:  # pyarrow lets go of the interpreter's lock
        return [array for part in pool.map(convert, runs) for array in part]


def _cut_runs(
    names: Sequence[str], n_rows: int, types: Mapping[str, str], form: TextFormat
) -> list[tuple[int, int]]:
    """Where neighbours that are converted together start and end."""
    n_columns = len(names)
    longest = _RUN_CELLS // max(n_rows, 1)
    if form.decimal != "." or longest < 2 or n_rows == 0:
        return [(i, i + 1) for i in range(n_columns)]
    is_told = [name in types for name in names]
    runs, start = [], 0
    for i in range(1, n_columns + 1):
        if i == n_columns or i - start == longest or is_told[i] or is_told[start]:
            runs.append((start, i))
            start = i
    return runs


def _join(columns: Sequence[Any]) -> Any:
    """Columns below each other."""
    import pyarrow

    chunks = [chunk for column in columns for chunk in column.chunks]
    return pyarrow.concat_arrays(chunks)


def _clean(texts: Any, form: TextFormat) -> Any:
    """Without spaces around them; null where they mean missing."""
    from pyarrow import compute

    return _drop_texts(compute.utf8_trim_whitespace(texts), form.missing_texts)


def _convert(column: Any, name: str, wanted: str | None, form: TextFormat, source: _Source) -> Any:
    """A column of text as what it is, or as what it must be."""
    texts = _clean(column, form)
    if wanted == CATEGORY:
        return texts
    if wanted is None:
        return _infer(texts, form)
    found = _as_numbers(texts, form) if wanted == NUMBER else _as_booleans(texts)
    if found is None:
        _refuse_kind(texts, name, wanted, form, source)
    return found


def _infer(texts: Any, form: TextFormat) -> Any:
    """Numbers, booleans or dates where all values are; text otherwise."""
    if texts.null_count == len(texts):
        return texts
    found = _as_plain_numbers(texts, form)
    for read in (_as_booleans, _as_dates):
        found = read(texts) if found is None else found
    return texts if found is None else found


def _infer_run(texts: Any, n_rows: int, form: TextFormat) -> list[Any]:
    """What `_infer` makes of each of several columns that stand below each other.

    Columns that look alike are converted at once, and cut in halves where that fails.
    """
    n_columns = len(texts) // n_rows
    if n_columns == 1:
        return [_infer(texts, form)]
    looks = _find_looks(texts, n_rows)
    if (looks == looks[0]).all():
        return _infer_alike(texts, n_rows, str(looks[0]), form)
    found: list[Any] = [None] * n_columns
    for look in np.unique(looks):
        places = np.flatnonzero(looks == look)
        parts = _infer_alike(_take_columns(texts, n_rows, places), n_rows, str(look), form)
        for place, part in zip(places.tolist(), parts, strict=True):
            found[place] = part
    return found


def _find_looks(texts: Any, n_rows: int) -> NDArray[np.str_]:
    """Of each column whether all its texts look like numbers, and all like whole ones."""
    from pyarrow import compute

    def holds(test: Any) -> NDArray[np.bool_]:
        each = compute.fill_null(test, True).to_numpy(zero_copy_only=False)
        in_all: NDArray[np.bool_] = each.reshape(-1, n_rows).all(axis=1)
        return in_all

    is_whole = holds(compute.match_substring_regex(texts, _WHOLE))
    is_number = is_whole | holds(compute.match_substring_regex(texts, _NUMBER))
    lower = compute.utf8_lower(texts)
    is_special = compute.or_(
        compute.is_in(lower, value_set=_list("true", "false")),
        compute.match_substring_regex(texts, _DATE),
    )
    is_text = ~is_number & holds(compute.invert(is_special))
    return np.select([is_whole, is_number, is_text], ["whole", "number", "text"], "other")


def _infer_alike(texts: Any, n_rows: int, look: str, form: TextFormat) -> list[Any]:
    n_columns = len(texts) // n_rows
    if n_columns == 1:
        return [_infer(texts, form)]
    if look == "text":
        return _cut(texts, n_rows)
    numbers = _as_plain_numbers(texts, form) if look in ("whole", "number") else None
    # one long number would make wholes beside it floats
    if numbers is None or (look == "whole") != _are_whole(numbers):
        half = n_columns // 2 * n_rows
        parts = texts[:half], texts[half:]
        return [each for part in parts for each in _infer_alike(part, n_rows, look, form)]
    pairs = zip(_cut(numbers, n_rows), _cut(texts, n_rows), strict=True)
    return [text if text.null_count == n_rows else number for number, text in pairs]


def _are_whole(numbers: Any) -> bool:
    """Whether their type is one of whole numbers."""
    from pyarrow import types

    return bool(types.is_integer(numbers.type))


def _cut(texts: Any, n_rows: int) -> list[Any]:
    return [texts[i : i + n_rows] for i in range(0, len(texts), n_rows)]


def _take_columns(texts: Any, n_rows: int, places: NDArray[np.intp]) -> Any:
    rows = (places[:, None] * n_rows + np.arange(n_rows)).ravel()
    return texts.take(rows)


def _as_plain_numbers(texts: Any, form: TextFormat) -> Any:
    """Numbers, unless whole ones start with 0: such are codes, and the 0 is part of them."""
    from pyarrow import compute

    numbers = _as_numbers(texts, form)
    if numbers is None or not _are_whole(numbers):
        return numbers
    padded = compute.and_(
        compute.starts_with(texts, "0"), compute.greater(compute.binary_length(texts), 1)
    )
    return None if compute.any(padded).as_py() else numbers


def _as_numbers(texts: Any, form: TextFormat) -> Any:
    import pyarrow

    plain = texts if form.decimal == "." else _use_points(texts)
    numbers = None if plain is None else _try_cast(plain, pyarrow.float64())
    if numbers is None:
        return None
    whole = _try_cast(plain, pyarrow.int64())
    return _drop_numbers(numbers if whole is None else whole, form.missing_numbers)


def _use_points(texts: Any) -> Any:
    """Numbers with decimal commas as with points; None where one is no such number."""
    from pyarrow import compute

    if compute.all(compute.match_substring_regex(texts, _COMMA_NUMBER)).as_py() is False:
        return None
    return compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")


def _warn_of_commas(names: Sequence[str], arrays: Sequence[Any], source: _Source) -> None:
    """Say where numbers with decimal commas were taken for text."""
    from pyarrow import compute, types

    found = []
    for name, array in zip(names, arrays, strict=True):
        n_present = len(array) - array.null_count
        if types.is_string(array.type) and n_present:
            n = compute.sum(compute.match_substring_regex(array, _COMMA_FRACTION)).as_py()
            found += [repr(name)] * (n >= _NEARLY_ALL * n_present)
    if found:
        warnings.warn(
            f"{source} seems to hold numbers with decimal commas, which are taken for text, in "
            f"{shorten_list(found)}; read them as numbers with --decimal ,",
            IcscmWarning,
            stacklevel=4,
        )


def _as_booleans(texts: Any) -> Any:
    from pyarrow import compute

    lower = compute.utf8_lower(texts)
    is_true, is_false = compute.equal(lower, "true"), compute.equal(lower, "false")
    is_either = compute.all(compute.or_(is_true, is_false)).as_py()
    return is_true if is_either is not False else None


def _as_dates(texts: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    # a look at the shape first: timestamps are slow to parse, and few columns are dates
    looks_so = compute.match_substring_regex(texts.drop_null()[:1], _DATE)
    if not compute.any(looks_so).as_py():
        return None
    dates = _try_cast(texts, pyarrow.timestamp("us"))
    return dates if dates is not None else _try_cast(texts, pyarrow.timestamp("us", tz="UTC"))


def _try_cast(texts: Any, kind: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    try:
        return compute.cast(texts, kind)
    except pyarrow.ArrowInvalid:
        return None


def _refuse_kind(texts: Any, name: str, wanted: str, form: TextFormat, source: _Source) -> NoReturn:
    def can_be(value: str) -> bool:
        one = _list(value)
        read = _as_numbers(one, form) if wanted == NUMBER else _as_booleans(one)
        return read is not None

    values = texts.drop_null().unique().to_pylist()
    example = next(value for value in values if not can_be(value))
    is_comma = wanted == NUMBER and form.decimal == "." and re.match(_COMMA_FRACTION, example)
    hint = (
        "its decimals have commas (--decimal ,)"
        if is_comma
        else f"this means missing (--na {escape_controls(repr(example))})"
    )
    raise IcscmError(
        f"column {name!r} of {source} held {wanted}s at fitting and holds {example!r} now; mend "
        f"it, or say that {hint}"
    )


def _list(*values: str) -> Any:
    import pyarrow

    return pyarrow.array(values)


# --- small things -----------------------------------------------------------


def _check_names(names: Sequence[str], source: _Source) -> None:
    if not names:
        raise IcscmError(f"{source} has no columns")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise IcscmError(
            f"{source} has several columns called {shorten_list([repr(name) for name in twice])}; "
            "rename them: rules are told by names"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decoding(form: TextFormat) -> str:
    """The encoding for reading the header: a mark of byte order is no part of a name."""
    is_utf8 = form.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    return "utf-8-sig" if is_utf8 else form.encoding


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
