"""Tables in files: CSV and its kin, Parquet, Arrow; and predictions out again.

A text file says nothing of types, so they are read off the whole column: numbers where every
value is one, booleans, dates, and text otherwise. A model's file remembers what its columns were,
and `types` makes a later file be read alike: a code such as `7` that was text stays text.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from icscm.exceptions import IcscmError
from icscm.rules import escape_controls
from icscm.text import shorten_list

if TYPE_CHECKING:
    import pyarrow

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data")
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

_DELIMITERS = ",\t;|"


@dataclass(frozen=True)
class TextFormat:
    """How a text file is to be read.

    Parameters
    ----------
    na : texts that stand for missing, besides the empty one.
    default_na : whether `MISSING_TEXTS` do so, too.
    delimiter : None takes it from the ending and the header.
    encoding : of the text.
    """

    na: tuple[str, ...] = ()
    default_na: bool = True
    delimiter: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
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


def read_table(
    path: str | Path,
    *,
    na: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    default_na: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> pyarrow.Table:
    """The table in a file, whose ending tells its format.

    Parameters
    ----------
    path : .csv, .tsv, .tab, .txt, .data (also .gz, .bz2, .zst, or a .zip that holds one such
        file), .parquet, .pq, .feather or .arrow. Text files need a header line.
    na : texts that mean "missing" besides an empty cell and, with `default_na`, NA, N/A, NaN,
        null, None and the like. In Parquet and Arrow files, which know missing values, these
        alone are looked for, in text columns.
    columns : only these, in this order; all must be there.
    types : for text files, columns that must be read as `"number"`, `"category"` (text) or
        `"boolean"`; others are read as what they look like.
    delimiter : of text files; by default a tab for .tsv and .tab, else a comma, or what the header
        has instead of one.
    encoding : of text files.
    """
    path = Path(path)
    form = TextFormat(tuple(na), default_na, delimiter, encoding)
    kind = find_kind(path)
    _check_there(path)
    if kind == "text":
        table = _read_text(path, form, columns, types or {})
    else:
        table = _read_binary(path, kind, columns, form.na)
    if table.num_rows == 0:
        raise IcscmError(f"{path} has a header but no rows")
    return table


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
    absent = [name for name in dict.fromkeys(wanted) if name not in set(there)]
    if len(absent) == 1:
        raise IcscmError(f"{where} has no column {absent[0]!r}{suggest(absent[0], there)}")
    if absent:
        names = shorten_list([repr(name) for name in absent])
        raise IcscmError(f"{where} lacks {len(absent)} columns: {names}")


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise IcscmError(f"{path} is a folder; name a file in it")
    if not path.exists():
        folder = path.parent
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        near = get_close_matches(path.name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise IcscmError(f"there is no file {path}{hint}")
    if path.stat().st_size == 0:
        raise IcscmError(f"{path} is empty")


# --- Parquet and Arrow ------------------------------------------------------


def _read_binary(
    path: Path, kind: str, columns: Sequence[str] | None, na: Sequence[str]
) -> pyarrow.Table:
    import pyarrow

    try:
        table = _read_parquet(path, columns) if kind == "parquet" else _read_arrow(path, columns)
    except (pyarrow.ArrowException, OSError) as error:
        raise IcscmError(
            f"{path} cannot be read as {kind.capitalize()}: {_first_line(error)}"
        ) from error
    return _replace_missing(table, na) if na else table


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pyarrow.Table:
    from pyarrow import parquet

    # a ParquetFile, not a dataset: partition folders in the path must not become columns
    with parquet.ParquetFile(path) as file:
        _check_names(list(file.schema_arrow.names), path)
        if columns is not None:
            check_columns(columns, file.schema_arrow.names, str(path))
        table = file.read(None if columns is None else list(columns))
        return table if columns is None else table.select(list(columns))


def _read_arrow(path: Path, columns: Sequence[str] | None) -> pyarrow.Table:
    from pyarrow import feather

    table = feather.read_table(path)
    _check_names(table.column_names, path)
    if columns is None:
        return table
    check_columns(columns, table.column_names, str(path))
    return table.select(list(columns))


def _replace_missing(table: pyarrow.Table, na: Sequence[str]) -> pyarrow.Table:
    """Null where a text column holds one of the texts that the user says mean it."""
    from pyarrow import types

    for number, field in enumerate(table.schema):
        if types.is_string(field.type) or types.is_large_string(field.type):
            table = table.set_column(number, field.name, _drop_texts(table.column(number), na))
    return table


def _drop_texts(column: Any, texts: Sequence[str]) -> Any:
    import pyarrow
    from pyarrow import compute

    is_missing = compute.is_in(column, value_set=pyarrow.array(texts, type=column.type))
    return compute.if_else(is_missing, pyarrow.scalar(None, type=column.type), column)


# --- text -------------------------------------------------------------------


def _read_text(
    path: Path, form: TextFormat, columns: Sequence[str] | None, types: Mapping[str, str]
) -> pyarrow.Table:
    """header -> all columns as text -> each column as what it is."""
    import pyarrow

    delimiter, names, n_header_rows = _read_header(path, form)
    if columns is not None:
        check_columns(columns, names, str(path))
    raw = _read_cells(path, form, delimiter, names, n_header_rows, columns)

    def convert(name: str) -> Any:
        return _convert(raw.column(name), name, types.get(name), form, path)

    with ThreadPoolExecutor() as pool:  # pyarrow lets go of the interpreter's lock
        return pyarrow.table(
            dict(zip(raw.column_names, pool.map(convert, raw.column_names), strict=True))
        )


def _open(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked."""
    import pyarrow

    packing = path.suffix.lower()
    if packing == ".zip":
        return _open_zip(path)
    stream: IO[bytes] = pyarrow.input_stream(
        str(path), compression={".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(packing)
    )
    return stream


def _open_zip(path: Path) -> IO[bytes]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise IcscmError(f"{path} is no zip archive, or a damaged one") from None
    members = [each for each in archive.namelist() if not each.endswith("/")]
    if len(members) != 1:
        archive.close()
        raise IcscmError(
            f"{path} holds {len(members)} files ({shorten_list(members)}); unpack the one to read"
        )
    with archive:  # the member stays open, and the archive with it
        return archive.open(members[0])


def _read_header(path: Path, form: TextFormat) -> tuple[str, list[str], int]:
    """Delimiter, names of the columns, and how many rows the header is deep."""
    with _translate_errors(path, form), _open(path) as stream:
        lines = io.TextIOWrapper(stream, _decoding(form), newline="")
        first = ""
        n_blank = 0
        while not first.strip():
            first = lines.readline()
            if not first:
                raise IcscmError(f"{path} is empty")
            n_blank += not first.strip()
        delimiter = form.delimiter or _find_delimiter(path, first)
        rest = (line for part in ([first], lines) for line in part)
        cells = next(csv.reader(rest, delimiter=delimiter))
    names = [name.strip() or f"column {i}" for i, name in enumerate(cells, start=1)]
    _check_names(names, path)
    if all(map(_is_number, names)):
        raise IcscmError(
            f"the first line of {path} holds numbers, not names; add a header line that names "
            "the columns"
        )
    return delimiter, names, n_blank + 1


def _find_delimiter(path: Path, header: str) -> str:
    endings = {each.lower() for each in path.suffixes}
    if endings & {".tsv", ".tab"}:
        return "\t"
    return max(_DELIMITERS, key=header.count) if "," not in header else ","


def _read_cells(
    path: Path,
    form: TextFormat,
    delimiter: str,
    names: list[str],
    n_header_rows: int,
    columns: Sequence[str] | None,
) -> pyarrow.Table:
    """All cells as text."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    bad_rows: list[Any] = []

    def refuse(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pyarrow.string()),
        include_columns=None if columns is None else list(dict.fromkeys(columns)),
        strings_can_be_null=False,
    )
    parse = arrow_csv.ParseOptions(
        delimiter=delimiter,
        newlines_in_values=True,
        invalid_row_handler=refuse,
        ignore_empty_lines=len(names) > 1,  # in a single column an empty line is a missing value
    )

    def read(*, use_threads: bool) -> pyarrow.Table:
        options = arrow_csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=n_header_rows,
            encoding=form.encoding,
            use_threads=use_threads,
        )
        with _open(path) as stream:
            return arrow_csv.read_csv(stream, options, parse, convert)

    with _translate_errors(path, form):
        try:
            return read(use_threads=True)
        except pyarrow.ArrowInvalid:
            if not bad_rows:
                raise
            bad_rows.clear()
            with _ignore_arrow_errors():
                read(use_threads=False)  # only one thread knows the number of a row
            _refuse_row(path, bad_rows, delimiter)


def _refuse_row(path: Path, bad_rows: list[Any], delimiter: str) -> NoReturn:
    row = bad_rows[0]
    where = f"row {row.number - 1:,} below the header" if row.number else "a row"
    raise IcscmError(
        f"{where} of {path} has {row.actual_columns} fields where the header has "
        f"{row.expected_columns} (delimiter {delimiter!r}); mend it, or quote fields that hold "
        "the delimiter"
    )


class _translate_errors:  # noqa: N801 (reads as a statement)
    """Turn what decoders and parsers raise into one clear sentence."""

    def __init__(self, path: Path, form: TextFormat) -> None:
        self.path, self.form = path, form

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        import pyarrow

        if error is None or isinstance(error, IcscmError):
            return
        is_encoding = isinstance(error, UnicodeError) or "UTF8" in str(error)
        if is_encoding:
            raise IcscmError(
                f"{self.path} is not {self.form.encoding} text; save it as UTF-8, or name its "
                "encoding (--encoding cp1252 is that of older Windows programs)"
            ) from error
        if isinstance(error, pyarrow.ArrowException | csv.Error | OSError | EOFError):
            raise IcscmError(f"{self.path} cannot be read: {_first_line(error)}") from error


class _ignore_arrow_errors:  # noqa: N801 (reads as a statement)
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> bool:
        import pyarrow

        return kind is not None and issubclass(kind, pyarrow.ArrowException)


def _convert(column: Any, name: str, wanted: str | None, form: TextFormat, path: Path) -> Any:
    """A column of text as what it is, or as what it must be."""
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(column)
    texts = _drop_texts(trimmed, form.missing_texts)
    if wanted == CATEGORY:
        return texts
    if wanted is None:
        return _infer(texts)
    found = _as_numbers(texts) if wanted == NUMBER else _as_booleans(texts)
    if found is None:
        _refuse_kind(texts, name, wanted, path)
    return found


def _infer(texts: Any) -> Any:
    """Numbers, booleans or dates where all values are; text otherwise."""
    if texts.null_count == len(texts):
        return texts
    for read in (_as_plain_numbers, _as_booleans, _as_dates):
        found = read(texts)
        if found is not None:
            return found
    return texts


def _as_plain_numbers(texts: Any) -> Any:
    """Numbers, unless whole ones start with 0: such are codes, and the 0 is part of them."""
    from pyarrow import compute, types

    numbers = _as_numbers(texts)
    if numbers is None or not types.is_integer(numbers.type):
        return numbers
    padded = compute.and_(
        compute.starts_with(texts, "0"), compute.greater(compute.binary_length(texts), 1)
    )
    return None if compute.any(padded).as_py() else numbers


def _as_numbers(texts: Any) -> Any:
    import pyarrow

    numbers = _try_cast(texts, pyarrow.float64())
    if numbers is None:
        return None
    whole = _try_cast(texts, pyarrow.int64())
    return numbers if whole is None else whole


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
    looks_so = compute.match_substring_regex(texts.drop_null()[:1], r"^\d{4}-\d\d-\d\d")
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


def _refuse_kind(texts: Any, name: str, wanted: str, path: Path) -> NoReturn:
    read = {NUMBER: _as_numbers, BOOLEAN: _as_booleans}[wanted]
    values = texts.drop_null().unique().to_pylist()
    example = next(value for value in values if read(_one(value)) is None)
    raise IcscmError(
        f"column {name!r} of {path} held {wanted}s at fitting and holds {example!r} now; mend it, "
        f"or say that this means missing (--na {escape_controls(repr(example))})"
    )


def _one(value: str) -> Any:
    import pyarrow

    return pyarrow.chunked_array([[value]])


# --- small things -----------------------------------------------------------


def _check_names(names: Sequence[str], path: Path) -> None:
    if not names:
        raise IcscmError(f"{path} has no columns")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise IcscmError(
            f"{path} has several columns called {shorten_list([repr(name) for name in twice])}; "
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
