"""Text files: the header, and the lines below it split into cells.

open_lines         delimiter and names of the columns, by the first lines
Lines.find_kinds   what the cells of each column can be, joined over files by `&`
Lines.read         cells of the types of all files, a block of rows at a time
load_lines         all cells as text, from a file that is opened once
"""

import csv
import io
import math
import mmap
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, cast

import pyarrow
import pyarrow.csv

from icscm.exceptions import IcscmError
from icscm.io.cells import ANYTHING, Kind, Misread, clean, convert, find_kinds, join_kinds
from icscm.io.formats import NUMBER_PATTERN, TextFormat
from icscm.io.locating import Source, find_ending, translate_errors
from icscm.io.naming import check_names
from icscm.progress import track

ByteStream = IO[bytes] | io.RawIOBase

_TAB_ENDINGS = (".tsv", ".tab", ".rtab")
_DELIMITERS = ",\t;|"
# A field in quotes, which may extend over several lines, or beyond those inspected.
_QUOTED = rf'"(?<![^\r\n {_DELIMITERS}]")[^"]*(?:""[^"]*)*(?:"|\Z)'
# Lines after the header that are inspected before reading, and the longest possible header.
_N_LINES_SEEN = 20
_MAX_HEADER = 2**28
# Bytes of a block: at least so many, and room for several rows even if they are wide.
MIN_BLOCK = 2**21
_MAX_BLOCK = 2**30
_ROWS_IN_BLOCK = 32
# How much a block grows at a row that is longer than a block.
_GROWTH = 8
# Address space for stacks and heaps of the threads of pyarrow's reader.
_ROOM = 2**27
# pyarrow's message for a row with too few or too many fields; the number only with one thread.
_BAD_ROW = r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)"


def open_lines(source: Source, form: TextFormat) -> "Lines":
    """Parse the first lines of a file."""
    with translate_errors(source, form.encoding), source.open() as stream:
        return _read_header(stream, source, form)


def load_lines(source: Source, form: TextFormat) -> "tuple[Lines, list[pyarrow.Table]]":
    """Parse the first lines of a file, and read all cells as text, in one go.

    The file is opened once, so that it may be a pipe.
    """
    with translate_errors(source, form.encoding), source.open() as opened:
        stream = RereadableStream(opened)
        lines = _read_header(stream, source, form)
        stream.return_to_start()
        return lines, list(lines.stream(lines.names, opened=stream))


class RereadableStream(io.RawIOBase):
    """A stream that can go back to its start once, as a pipe or an unpacked file cannot.

    What is read before is kept for that: it should be little.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = io.BytesIO()
        self._is_keeping = True

    def return_to_start(self) -> None:
        """Go back; from here on nothing is kept."""
        self._kept.seek(0)
        self._is_keeping = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or all (-1): of the kept ones, then of the stream."""
        n_bytes = -1 if size is None else size
        if self._is_keeping:
            content = self._stream.read(n_bytes)
            self._kept.write(content)
            return content

        kept = self._kept.read(n_bytes)
        if len(kept) == n_bytes:
            return kept
        n_missing = -1 if n_bytes < 0 else n_bytes - len(kept)
        return kept + self._stream.read(n_missing)

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _read_header(stream: ByteStream, source: Source, form: TextFormat) -> "Lines":
    """Parse the first lines of a file: the header, and some below it that tell the delimiter.

    Of these lines is also learned what reading the rest needs: how long lines are, and whether
    numbers may have decimal commas.
    """
    # a byte-order mark is not part of a name
    is_utf8 = form.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    encoding = "utf-8-sig" if is_utf8 else form.encoding
    text = io.TextIOWrapper(cast("IO[bytes]", stream), encoding, newline="")
    try:
        header, n_blank = _find_first_line(text, source)
        lines_below = [text.readline(_MAX_HEADER) for _ in range(_N_LINES_SEEN)]
        first_lines = [header, *lines_below]
        delimiter = form.delimiter or _find_delimiter(source, first_lines, form.decimal)
        # a name in quotes may extend over several lines
        cells = next(csv.reader(chain(first_lines, text), delimiter=delimiter))
    finally:
        text.detach()  # or it would close the stream

    names = [name.strip() or f"column {number}" for number, name in enumerate(cells, start=1)]
    check_names(names, source)
    if all(re.match(NUMBER_PATTERN, name) for name in names):
        raise IcscmError(
            f"the first line of {source} holds numbers, not names; "
            "add a header line that names the columns"
        )

    has_commas = any(re.search(r"\d,\d", line) for line in lines_below)
    return Lines(
        source=source,
        form=form,
        delimiter=delimiter,
        names=names,
        n_header=n_blank + 1,
        longest=max(len(line.encode(errors="replace")) for line in first_lines),
        has_commas=delimiter != "," and has_commas,
        is_empty=not lines_below[0],
    )


def _find_first_line(text: io.TextIOWrapper, source: Source) -> tuple[str, int]:
    """Find the first line that is not blank, and the number of blank lines before it."""
    n_blank = 0
    line = text.readline(_MAX_HEADER)
    while line and not line.strip():
        n_blank += 1
        line = text.readline(_MAX_HEADER)
    if not line:
        raise IcscmError(f"{source} is empty")
    if "\0" in line:
        why = f"{source} holds NUL characters, so it is not text: it is damaged"
        raise IcscmError(f"{why}, or in another encoding (--encoding utf-16)")
    if len(line) >= _MAX_HEADER:
        raise IcscmError(f"{source} has no end of line in its first {_MAX_HEADER:,} characters")
    return line, n_blank


def _find_delimiter(source: Source, lines: Sequence[str], decimal: str) -> str:
    """Find the delimiter that occurs in the header, and equally often in the lines after it.

    Text in quotes is part of a cell. Of several candidates the most frequent one is chosen, a comma
    last if it is the decimal mark.
    """
    if find_ending(source.name) in _TAB_ENDINGS:
        return "\t"
    without_quoted = re.sub(_QUOTED, "", "".join(lines))
    header, *lines_below = without_quoted.replace("\r", "\n").split("\n")
    candidates = [delimiter for delimiter in _DELIMITERS if delimiter in header]

    def rank(delimiter: str) -> tuple[bool, int, int]:
        n_in_header = header.count(delimiter)
        n_lines_alike = sum(line.count(delimiter) == n_in_header for line in lines_below)
        return delimiter != decimal, n_lines_alike, n_in_header

    return max(candidates, key=rank, default=",")


@dataclass
class Lines:
    """The lines of a text file below its header."""

    source: Source
    form: TextFormat
    delimiter: str
    names: list[str]
    #: lines of the header, blank ones included
    n_header: int
    #: bytes of the longest of the first lines
    longest: int
    #: whether there are digits with a comma between, where commas do not delimit
    has_commas: bool
    #: whether nothing comes after the header
    is_empty: bool
    #: texts that meant missing, as they are found
    misread: Misread = field(default_factory=Misread)

    def find_kinds(self, names: Sequence[str]) -> list[Kind]:
        """Find what the cells of these columns can be, from all rows."""
        parts = [[ANYTHING] * len(names)]
        for table in self.stream(names):
            cleaned = clean(table, self.form)
            self.misread.update(cleaned.misread)
            parts.append(find_kinds(cleaned.table, self.form))
        return join_kinds(parts)

    def read(self, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
        """Yield the columns of a schema in its types, a block of rows at a time."""
        for table in self.stream(schema.names):
            yield convert(clean(table, self.form).table, schema.types, self.form)

    def stream(
        self, columns: Sequence[str], opened: ByteStream | None = None
    ) -> Iterator[pyarrow.Table]:
        """Yield the cells of some columns as text, a block of rows at a time.

        pyarrow cannot read a row that is longer than a block. The size of blocks is estimated from
        the first lines of the file; at a longer row, the file is read anew with larger blocks, and
        the rows that were yielded before are skipped.

        `opened` is a stream to read from the first time, if the file is open already.
        """
        if self.is_empty:
            return
        block = max(MIN_BLOCK, _ROWS_IN_BLOCK * self.longest)
        n_rows_read = 0
        n_bytes = self.source.find_size()
        with translate_errors(self.source, self.form.encoding):
            while True:
                n_blocks = None if n_bytes is None else math.ceil(n_bytes / block)
                batches = self._parse(columns, block, n_skipped=n_rows_read, opened=opened)
                try:
                    for batch in track(batches, n_blocks):
                        n_rows_read += len(batch)
                        yield pyarrow.Table.from_batches([batch])
                    return
                except pyarrow.ArrowInvalid as error:
                    if re.match(_BAD_ROW, str(error)):
                        self._reject_row(columns, block)
                    is_block_too_short = "straddling" in str(error)
                    if not is_block_too_short or block >= _MAX_BLOCK:
                        raise
                block = min(_GROWTH * block, _MAX_BLOCK)
                opened = None  # the file is opened anew

    def _parse(
        self,
        columns: Sequence[str],
        block: int,
        *,
        n_skipped: int = 0,
        opened: ByteStream | None = None,
        use_threads: bool = True,
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield cells as text, as pyarrow splits lines into them, without the first rows.

        All columns are read as text, since pyarrow would choose types by the first block only.
        """
        read_options = pyarrow.csv.ReadOptions(
            skip_rows_after_names=self.n_header,
            column_names=self.names,
            encoding=self.form.encoding,
            use_threads=use_threads,
            block_size=block,
        )
        parse_options = pyarrow.csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            # in a single column an empty line is a missing value
            ignore_empty_lines=len(self.names) > 1,
        )
        convert_options = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, pyarrow.string()),
            include_columns=list(dict.fromkeys(columns)),
            # other texts that mean missing are counted as they are taken out
            null_values=[""],
            strings_can_be_null=True,
        )
        _check_room(block)
        with (
            self.source.open() if opened is None else nullcontext(opened) as stream,
            pyarrow.csv.open_csv(stream, read_options, parse_options, convert_options) as reader,
        ):
            n_still_skipped = n_skipped
            for batch in reader:
                if n_still_skipped < len(batch):
                    yield batch[n_still_skipped:]
                n_still_skipped = max(0, n_still_skipped - len(batch))

    def _reject_row(self, columns: Sequence[str], block: int) -> None:
        """Read again with one thread, which knows the number of a row, and raise for the row."""
        try:
            for _ in self._parse(columns, block, use_threads=False):
                pass
        except pyarrow.ArrowInvalid as error:
            bad_row = re.match(_BAD_ROW, str(error))
            if bad_row is None:
                return
            number, n_names, n_fields = (int(digits or 0) for digits in bad_row.groups())
            where = f"row {number - self.n_header:,} below the header" if number else "a row"
            raise IcscmError(
                f"{where} of {self.source} has {n_fields} fields where the header has {n_names} "
                f"(delimiter {self.delimiter!r}); "
                "fix it, or quote fields that hold the delimiter"
            ) from None


def _check_room(block: int) -> None:
    """Raise if there is no memory for the threads of pyarrow's reader.

    Where threads cannot be started, it would wait for them for ever.
    """
    try:
        mmap.mmap(-1, _ROOM + 4 * block).close()
    except OSError as error:
        raise MemoryError(str(error)) from error
