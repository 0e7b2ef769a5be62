"""Where tables are: files, folders, members of archives, standard input; and opening them."""

from __future__ import annotations

import csv
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, NoReturn

from icscm.exceptions import IcscmError, is_short_of_memory
from icscm.formatting import shorten_list
from icscm.io.naming import suggest

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".rtab", ".txt", ".data")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
ARROW_ENDINGS = (".feather", ".arrow")
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
# Compressed text; a Parquet file is compressed inside.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PACKED_ENDINGS = (*_COMPRESSIONS, ".zip")
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
    """Where the bytes of a table are: a file, a member of an archive, or content in memory.

    Attributes
    ----------
    path : Path
        The file, or the archive.
    name : str
        The name of the file, or of the member.
    kind : str
        The format: "text", "parquet" or "arrow".
    member : str, optional
        The member of an archive.
    content : bytes, optional
        Content that is in memory already.
    remote : file of fsspec, optional
        A remote file.
    span : pair of int, optional
        Only the bytes of the file from one position up to another are read.
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
        """Return the bytes of a file that is not packed; None for others."""
        is_part = any((self.content, self.remote, self.member, self.span))
        is_packed = self.path.suffix.lower() in PACKED_ENDINGS
        if is_part or is_packed or not self.path.is_file():
            return None
        return self.path.stat().st_size

    def open(self) -> IO[bytes]:
        """Open a stream of the bytes, unpacked."""
        import pyarrow

        if self.content is not None:
            return io.BytesIO(self.content)
        if self.span is not None:
            start, end = self.span
            with self.path.open("rb") as file:
                file.seek(start)
                return io.BytesIO(file.read(end - start))
        if self.member is not None:
            with _open_archive(self.path) as archive:  # the member keeps it open
                return archive.open(self.member)
        if self.remote is not None:
            return self.remote.open()  # type: ignore[no-any-return]

        compression = _COMPRESSIONS.get(self.path.suffix.lower())
        file = self.path.open("rb")  # not by pyarrow: it cannot open a pipe
        if compression is None:
            return file
        stream: IO[bytes] = pyarrow.input_stream(file, compression=compression)
        return stream


def find_sources(path: Path, member: str | None = None) -> list[Source]:
    """Find the files to read: one, or all tables of a folder, which must have the same format."""
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
        _reject_absent(path)
    if path.is_file() and path.stat().st_size == 0:
        raise IcscmError(f"{path} is empty")
    if path.suffix.lower() == ".zip":
        return [_find_member(path, member)]
    return [Source(path, path.name, find_kind(str(path)))]


def _reject_absent(path: Path) -> NoReturn:
    """Raise for a file that does not exist, with similar names in its folder."""
    folder = path.parent
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(path.name, names, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    what = "file" if path.suffix else "file or folder"
    raise IcscmError(f"there is no {what} {path}{hint}")


def find_format(path: Path, member: str | None = None) -> str:
    """Find the format of a file or folder: `"text"`, `"parquet"` or `"arrow"`."""
    return "text" if path == STANDARD_INPUT else find_sources(path, member)[0].kind


def find_kind(name: str) -> str:
    """Find the format of a file by its ending: `"text"`, `"parquet"` or `"arrow"`."""
    last_ending = Path(name).suffix.lower()
    ending = find_ending(name)
    if last_ending in PACKED_ENDINGS:
        if ending in (*PARQUET_ENDINGS, *ARROW_ENDINGS):
            raise IcscmError(f"{name} is a compressed {ending} file; decompress it")
        return "text"
    if ending in TEXT_ENDINGS:
        return "text"
    if ending in PARQUET_ENDINGS:
        return "parquet"
    if ending in ARROW_ENDINGS:
        return "arrow"
    what = f"ending {last_ending!r}" if last_ending else "no ending"
    known = ", ".join(TABLE_ENDINGS)
    raise IcscmError(f"{name} has {what}, which is not a known format; known are {known}")


def find_ending(name: str) -> str:
    """Find the ending that determines the format, without that of a compression.

    >>> find_ending("Visits.CSV.gz")
    '.csv'
    """
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in PACKED_ENDINGS else path.suffix


def describe_path(path: Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def name_data(path: Path) -> str:
    """Return the name of the data in a file."""
    return describe_path(path) if path == STANDARD_INPUT else path.name


def _list_folder(folder: Path) -> list[Source]:
    """List the tables of a folder and of those in it, in a fixed order."""
    paths = [path for path in sorted(folder.rglob("*")) if _is_table(path, folder)]
    # a .txt or .data may be notes; it is taken for a table only if there is nothing else
    sure_paths = [path for path in paths if find_ending(path.name) not in _VAGUE_ENDINGS]
    table_paths = sure_paths or paths
    sources = [Source(path, path.name, find_kind(str(path))) for path in table_paths]

    kinds = sorted({source.kind.capitalize() for source in sources})
    if not kinds:
        known = ", ".join(TABLE_ENDINGS)
        raise IcscmError(f"{folder} holds no data: no file in it ends in {known}")
    if len(kinds) > 1:
        what = " and ".join(kinds).replace("Text", "text")
        raise IcscmError(f"{folder} holds {what} files; name a folder with one format")
    return sources


def _is_table(path: Path, folder: Path) -> bool:
    """Return whether a path in a folder is a table: no hidden file, no marker such as _SUCCESS."""
    if find_ending(path.name) not in TABLE_ENDINGS or path.suffix.lower() == ".zip":
        return False
    is_hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not is_hidden and path.is_file()


def _find_member(path: Path, wanted: str | None) -> Source:
    """Find the only table in an archive, or the named one."""
    with _open_archive(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        is_locked = any(info.flag_bits & 1 for info in archive.infolist())
    if is_locked:
        raise IcscmError(f"{path} is protected by a password; extract it first")

    members = [name for name in names if not name.startswith("__MACOSX/")]  # added by macOS
    if wanted is not None:
        if wanted not in members:
            raise IcscmError(f"{path} has no member {wanted!r}{suggest(wanted, members)}")
        return Source(path, wanted, find_kind(wanted), wanted)

    tables = [name for name in members if name.lower().endswith(TABLE_ENDINGS)]
    if len(tables) == 1:
        return Source(path, tables[0], find_kind(tables[0]), tables[0])
    if len(members) == 1:
        return Source(path, members[0], "text", members[0])
    raise IcscmError(
        f"{path} holds {len(members)} files ({shorten_list(members)}); "
        "name the one to read with --member"
    )


def _open_archive(path: Path) -> zipfile.ZipFile:
    """Open a .zip archive; raise if it is damaged."""
    try:
        return zipfile.ZipFile(path)
    except _DAMAGES:
        raise IcscmError(f"{path} is not a zip archive, or is damaged") from None


@contextmanager
def translate_errors(what: object, encoding: str = "", kind: str = "") -> Iterator[None]:
    """Turn errors of decoders and parsers into one clear sentence, about the file `what`.

    `encoding` is that of a text file, `kind` the format of another. A lack of memory is no fault of
    the file, and becomes a `MemoryError`.
    """
    import pyarrow

    try:
        yield
    except (*_DAMAGES, pyarrow.ArrowException, csv.Error, OSError) as error:
        if is_short_of_memory(error):
            raise MemoryError(str(error)) from error
        if encoding and (isinstance(error, UnicodeError) or "UTF8" in str(error)):
            advice = "name its encoding (--encoding cp1252 for older Windows programs)"
            why = f"{what} is not {encoding} text; save it as UTF-8, or {advice}"
            raise IcscmError(why) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        manner = f" as {kind.capitalize()}" if kind else ""
        raise IcscmError(f"{what} cannot be read{manner}: {reason}") from error
