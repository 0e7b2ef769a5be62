"""Files of tables: options for reading text, where the bytes are, and writing."""

from __future__ import annotations

import csv
import io
import lzma
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from icscm.exceptions import IcscmError, is_short_of_memory
from icscm.formatting import shorten_list
from icscm.io.naming import suggest
from icscm.writing import STDOUT, write_whole

if TYPE_CHECKING:
    import pyarrow


# Texts that mean "missing", like an empty cell. "none" and "na" are not among them: in lower
# case they are often levels ("none", "mild", "severe").
MISSING_TEXTS = (
    "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT",
)  # fmt: skip

# Types of columns that a model may need.
NUMBER, CATEGORY, BOOLEAN = "number", "category", "boolean"

# Whole numbers, and everything that pyarrow parses as a number.
WHOLE_PATTERN = r"^-?[0-9]+$"
_FINITE_PATTERN = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
NUMBER_PATTERN = _FINITE_PATTERN + r"|^[+-]?(inf|infinity|nan(\([a-z0-9_]*\))?)$"
# Digits of the longest whole numbers that a column can hold; Python reads no more than some 4,000.
_MAX_DIGITS = 76


@dataclass(frozen=True)
class TextFormat:
    """How a text file is to be read.

    Parameters
    ----------
    na : sequence of str
        Texts that mean missing, in addition to the empty one.
    default_na : bool
        Whether `MISSING_TEXTS` mean missing, too.
    delimiter : str, optional
        By default it is detected from the ending and the first lines.
    encoding : str
        Encoding of the text.
    decimal : {".", ","}
        The mark before the fraction of a number.
    """

    na: Sequence[str] = ()
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
            why = f"there is no encoding {self.encoding!r}"
            raise IcscmError(f"{why}; utf-8, latin-1 and cp1252 are usual") from None

    @property
    def missing_texts(self) -> list[str]:
        """All texts that stand for missing."""
        return ["", *(text.strip() for text in self.na), *(MISSING_TEXTS * self.default_na)]


def find_numbers(texts: Iterable[str]) -> list[float]:
    """The numbers among texts that mean missing: -9 is missing as -9.0, too.

    >>> find_numbers(["?", "-9", "99.5", "nan"])
    [-9, 99.5]
    """
    plain = [text.strip() for text in texts if re.match(_FINITE_PATTERN, text.strip())]
    is_whole = [re.match(WHOLE_PATTERN, text) and len(text) <= _MAX_DIGITS for text in plain]
    numbers = [int(t) if whole else float(t) for t, whole in zip(plain, is_whole, strict=True)]
    return [number for number in dict.fromkeys(numbers) if abs(number) < float("inf")]


TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".rtab", ".txt", ".data")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
ARROW_ENDINGS = (".feather", ".arrow")
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
# Compressed text; a Parquet file is compressed inside.
PACKED_ENDINGS = (".gz", ".bz2", ".zst", ".zip")
# Ignored in a folder that holds other tables.
_VAGUE_ENDINGS = (".txt", ".data")

# Errors raised for damaged archives and compressed files, in addition to OSError.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, UnicodeError, NotImplementedError),
    *(struct.error, OverflowError),
)

# The path that stands for standard input.
STANDARD_INPUT = Path("-")


@dataclass(frozen=True)
class Source:
    """A file, a member of an archive, or content in memory; `name` determines its format.

    `remote` is a remote file, opened by fsspec; with `span`, only the bytes of the file from one
    position up to another are read.
    """

    path: Path
    name: str
    kind: str
    member: str | None = None
    content: bytes | None = field(default=None, repr=False)
    remote: Any = None
    span: tuple[int, int] | None = None

    def __str__(self) -> str:
        where = describe_path(self.path) if self.remote is None else self.remote.full_name
        return where + (f" ({self.member})" if self.member else "")

    def find_size(self) -> int | None:
        """Bytes of a file that is not packed; None for others."""
        parts = self.content, self.remote, self.member, self.span
        is_plain = not any(parts) and self.path.suffix.lower() not in PACKED_ENDINGS
        return self.path.stat().st_size if is_plain and self.path.is_file() else None

    def open(self) -> IO[bytes]:
        """The bytes, unpacked."""
        import pyarrow

        if self.content is not None:
            return io.BytesIO(self.content)
        if self.span is not None:
            with self.path.open("rb") as file:
                file.seek(self.span[0])
                return io.BytesIO(file.read(self.span[1] - self.span[0]))
        if self.member is not None:
            with _open_archive(self.path) as archive:  # the member keeps it open
                return archive.open(self.member)
        if self.remote is not None:
            return self.remote.open()  # type: ignore[no-any-return]
        packing = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(self.path.suffix.lower())
        stream: IO[bytes] = pyarrow.input_stream(str(self.path), compression=packing)
        return stream


def find_sources(path: Path, member: str | None = None) -> list[Source]:
    """The files to read: one, or all tables of a folder, which must have the same format."""
    if member is not None and path.suffix.lower() != ".zip":
        raise IcscmError(f"{describe_path(path)} is not a .zip archive; --member is for these only")
    if path == STANDARD_INPUT:
        content = sys.stdin.buffer.read()
        if not content:
            raise IcscmError("standard input is empty")
        return [Source(path, "input.csv", "text", content=content)]
    if path.is_dir():
        return _list_folder(path)
    if not path.exists():
        names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        near = get_close_matches(path.name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise IcscmError(f"there is no {'file' if path.suffix else 'file or folder'} {path}{hint}")
    if path.is_file() and path.stat().st_size == 0:
        raise IcscmError(f"{path} is empty")
    if path.suffix.lower() == ".zip":
        return [_find_member(path, member)]
    return [Source(path, path.name, find_kind(str(path)))]


def find_format(path: Path, member: str | None = None) -> str:
    """The format of a file or folder: `"text"`, `"parquet"` or `"arrow"`."""
    return "text" if path == STANDARD_INPUT else find_sources(path, member)[0].kind


def find_kind(name: str) -> str:
    """`"text"`, `"parquet"` or `"arrow"`, by the file's ending."""
    last, inner = Path(name).suffix.lower(), find_ending(name)
    if last in PACKED_ENDINGS and inner in (*PARQUET_ENDINGS, *ARROW_ENDINGS):
        raise IcscmError(f"{name} is a compressed {inner} file; decompress it")
    if last in TEXT_ENDINGS or last in PACKED_ENDINGS:
        return "text"
    if inner in TABLE_ENDINGS:
        return "parquet" if inner in PARQUET_ENDINGS else "arrow"
    what = f"ending {last!r}" if last else "no ending"
    known = ", ".join(TABLE_ENDINGS)
    raise IcscmError(f"{name} has {what}, which is not a known format; known are {known}")


def find_ending(name: str) -> str:
    """The ending that determines the format, without that of a compression."""
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in PACKED_ENDINGS else path.suffix


def describe_path(path: Path) -> str:
    """The name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def name_data(path: Path) -> str:
    """The name of the data in a file."""
    return describe_path(path) if path == STANDARD_INPUT else path.name


def _list_folder(folder: Path) -> list[Source]:
    """Tables in a fixed order, without hidden files and markers such as _SUCCESS."""
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if find_ending(path.name) in TABLE_ENDINGS
        and path.suffix.lower() != ".zip"
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    sure = [path for path in paths if find_ending(path.name) not in _VAGUE_ENDINGS]
    sources = [Source(path, path.name, find_kind(str(path))) for path in sure or paths]
    kinds = sorted({source.kind.capitalize() for source in sources})
    if not kinds:
        known = ", ".join(TABLE_ENDINGS)
        raise IcscmError(f"{folder} holds no data: no file in it ends in {known}")
    if len(kinds) > 1:
        what = " and ".join(kinds).replace("Text", "text")
        raise IcscmError(f"{folder} holds {what} files; name a folder with one format")
    return sources


def _find_member(path: Path, wanted: str | None) -> Source:
    """The only table in an archive, or the named one."""
    with _open_archive(path) as archive:
        there = [each for each in archive.namelist() if not each.endswith("/")]
        is_locked = any(each.flag_bits & 1 for each in archive.infolist())
    if is_locked:
        raise IcscmError(f"{path} is protected by a password; extract it first")
    members = [each for each in there if not each.startswith("__MACOSX/")]
    if wanted is not None:
        if wanted not in members:
            raise IcscmError(f"{path} has no member {wanted!r}{suggest(wanted, members)}")
        return Source(path, wanted, find_kind(wanted), wanted)
    tables = [each for each in members if each.lower().endswith(TABLE_ENDINGS)]
    if len(tables) == 1:
        return Source(path, tables[0], find_kind(tables[0]), tables[0])
    if len(members) == 1:
        return Source(path, members[0], "text", members[0])
    why = f"{path} holds {len(members)} files ({shorten_list(members)})"
    raise IcscmError(f"{why}; name the one to read with --member")


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _DAMAGES:
        raise IcscmError(f"{path} is not a zip archive, or is damaged") from None


@contextmanager
def translate_errors(what: object, encoding: str = "", kind: str = "") -> Iterator[None]:
    """Turn errors of decoders and parsers into one clear sentence."""
    import pyarrow

    try:
        yield
    except (*_DAMAGES, pyarrow.ArrowException, csv.Error, OSError) as error:
        if is_short_of_memory(error):  # not an error of the file
            raise MemoryError(str(error)) from error
        if encoding and (isinstance(error, UnicodeError) or "UTF8" in str(error)):
            advice = "name its encoding (--encoding cp1252 for older Windows programs)"
            why = f"{what} is not {encoding} text; save it as UTF-8, or {advice}"
            raise IcscmError(why) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        manner = f" as {kind.capitalize()}" if kind else ""
        raise IcscmError(f"{what} cannot be read{manner}: {reason}") from error


# First characters of text that spreadsheets read as a formula (also full-width); numbers are safe.
_FORMULA = r"\A([=+\-@\t\r\n＝＋－＠])"  # noqa: RUF001
_NUMBER = r"\A[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z"


def check_output_kind(path: Path) -> None:
    """Raise unless tables can be written to a file of this name."""
    if path != STDOUT and path.suffix.lower() not in (".csv", ".tsv", *PARQUET_ENDINGS):
        raise IcscmError(f"{path} must end in .csv, .tsv or .parquet, which determines the format")


def write_table(table: pyarrow.Table, path: Path) -> None:
    """Write the table completely or not at all, in the format of the file's ending."""
    from pyarrow import parquet

    check_output_kind(path)
    ending = path.suffix.lower()

    def fill(file: IO[bytes]) -> None:
        if ending in PARQUET_ENDINGS:
            parquet.write_table(table, file)
            return
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        write_text_table(table, text, "\t" if ending == ".tsv" else ",")
        text.detach()

    write_whole(path, fill)


def write_text_table(table: pyarrow.Table, stream: IO[str], delimiter: str = ",") -> None:
    """The table as delimited text: quoted only where needed, which pyarrow's writer cannot do."""
    writer = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


class _Lines(io.TextIOBase):
    r"""Rows ended by \n: a csv writer with this line terminator would leave a lone \r unquoted."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, row: str) -> int:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


def disarm_formulas(table: pyarrow.Table) -> pyarrow.Table:
    """The table with an apostrophe before names and texts that a spreadsheet would compute."""
    import pyarrow
    from pyarrow import types

    columns = list(table.columns)
    for i, kind in enumerate(table.schema.types):
        plain = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain):
            columns[i] = _disarm(columns[i])
    names = _disarm(pyarrow.array(table.column_names, pyarrow.string()))
    return pyarrow.table(columns, names=names.to_pylist())


def _disarm(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    texts = column.cast(pyarrow.large_string())
    marked = compute.replace_substring_regex(texts, _FORMULA, r"'\1")
    return compute.if_else(compute.match_substring_regex(texts, _NUMBER), texts, marked)
