"""Text files: parses the header, and splits the lines below it into cells.

open_lines         delimiter and names of the columns, by the first lines
Lines.find_kinds   possible types of the columns of this file     joined over files by `&`
Lines.read         cells as the types of the columns of all files
"""

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow
import pyarrow.csv

from icscm.exceptions import IcscmError
from icscm.io.cells import ANYTHING, Kinds, clean, convert, find_kinds
from icscm.io.formats import NUMBER_PATTERN, Source, TextFormat, find_ending, translate_errors
from icscm.io.naming import check_names
from icscm.progress import track

_TAB_ENDINGS = (".tsv", ".tab", ".rtab")
_DELIMITERS = ",\t;|"
# A field in quotes, which may extend over several lines, or beyond those inspected.
_QUOTED = rf'"(?<![^\r\n {_DELIMITERS}]")[^"]*(?:""[^"]*)*(?:"|\Z)'
# Lines after the header that are inspected before reading, and the longest possible header.
_N_LINES_SEEN = 20
_MAX_HEADER = 2**28
# Size of a block: at least so many bytes, and several rows even if they are wide.
MIN_BLOCK = 2**21
_MAX_BLOCK, _ROWS_IN_BLOCK = 2**30, 32
# Address space for stacks and heaps of the threads of pyarrow's reader.
_ROOM = 2**27
# pyarrow's message for a row with too few or too many fields; the number only with one thread.
_BAD_ROW = r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)"


def open_lines(source: Source, form: TextFormat) -> "Lines":
    """Parse the first lines."""
    # a byte-order mark is not part of a name
    is_utf8 = form.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    with translate_errors(source, form.encoding), source.open() as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig" if is_utf8 else form.encoding, newline="")
        first, n_blank = "", 0
        while not first.strip():
            first = lines.readline(_MAX_HEADER)
            if not first:
                raise IcscmError(f"{source} is empty")
            n_blank += not first.strip()
        if "\0" in first:
            why = f"{source} holds NUL characters, so it is not text: it is damaged"
            raise IcscmError(f"{why}, or in another encoding (--encoding utf-16)")
        if len(first) >= _MAX_HEADER:
            raise IcscmError(f"{source} has no end of line in its first {_MAX_HEADER:,} characters")
        seen = [first, *(lines.readline(_MAX_HEADER) for _ in range(_N_LINES_SEEN))]
        delimiter = form.delimiter or _find_delimiter(source, seen, form.decimal)
        cells = next(csv.reader(chain(seen, lines), delimiter=delimiter))
    names = [name.strip() or f"column {i}" for i, name in enumerate(cells, start=1)]
    check_names(names, source)
    if all(re.match(NUMBER_PATTERN, name) for name in names):
        why = f"the first line of {source} holds numbers, not names"
        raise IcscmError(f"{why}; add a header line that names the columns")
    longest = max(len(line.encode(errors="replace")) for line in seen)
    commas = delimiter != "," and any(re.search(r"\d,\d", line) for line in seen[1:])
    return Lines(source, form, delimiter, names, n_blank + 1, longest, commas, is_empty=not seen[1])


def _find_delimiter(source: Source, lines: Sequence[str], decimal: str) -> str:
    """The delimiter that occurs in the header, and equally often in the lines after it.

    Text in quotes is part of a cell. Of several candidates the most frequent one is chosen, a comma
    last if it is the decimal mark.
    """
    if find_ending(source.name) in _TAB_ENDINGS:
        return "\t"
    bare = re.sub(_QUOTED, "", "".join(lines))
    first, *others = bare.replace("\r", "\n").split("\n")
    found = [each for each in _DELIMITERS if each in first]

    def rank(delimiter: str) -> tuple[bool, int, int]:
        n = first.count(delimiter)
        return delimiter != decimal, sum(line.count(delimiter) == n for line in others), n

    return max(found, key=rank, default=",")


@dataclass
class Lines:
    """The lines of a text file below its header; `misread` are the texts that meant missing."""

    source: Source
    form: TextFormat
    delimiter: str
    names: list[str]
    n_header: int  # lines of the header, blank ones included
    longest: int  # bytes of the longest of the first lines
    has_commas: bool  # digits with a comma between, where commas do not delimit
    is_empty: bool  # nothing comes after the header
    misread: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_kinds(self, names: Sequence[str]) -> Kinds:
        """The possible types of these columns, from all rows."""
        kinds = np.full(len(names), ANYTHING, dtype=np.uint8)
        for table in self.stream(names):
            kinds &= find_kinds(clean(table, self.form, self.misread), self.form)
        return kinds

    def read(self, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
        """The columns of a schema in its types, a block of rows at a time."""
        for table in self.stream(schema.names):
            yield convert(clean(table, self.form), schema.types, self.form)

    def stream(self, columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Cells as text, a block of rows at a time.

        Blocks grow at a row that is too long, since their size was estimated from the first lines.
        """
        block, n_given = max(MIN_BLOCK, _ROWS_IN_BLOCK * self.longest), 0
        size = self.source.find_size()
        with translate_errors(self.source, self.form.encoding):
            while not self.is_empty:
                try:
                    n_blocks = None if size is None else -(-size // block)
                    for batch in track(self._parse(columns, block, n_given), n_blocks):
                        n_given += len(batch)
                        yield pyarrow.Table.from_batches([batch])
                    return
                except pyarrow.ArrowInvalid as error:
                    if re.match(_BAD_ROW, str(error)):
                        self._reject_row(columns, block)
                    if "straddling" not in str(error) or block >= _MAX_BLOCK:
                        raise
                    block = min(8 * block, _MAX_BLOCK)

    def _parse(
        self, columns: Sequence[str], block: int, n_skipped: int = 0, *, use_threads: bool = True
    ) -> Iterator[pyarrow.RecordBatch]:
        how = {"encoding": self.form.encoding, "use_threads": use_threads, "block_size": block}
        read = pyarrow.csv.ReadOptions(skip_rows_after_names=self.n_header, **how)
        read.column_names = self.names
        parse = pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        # in a single column an empty line is a missing value
        parse.ignore_empty_lines = len(self.names) > 1
        # other texts that mean missing are counted as they are taken out
        convert = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        convert.column_types = dict.fromkeys(self.names, pyarrow.string())
        convert.include_columns = list(dict.fromkeys(columns))
        try:  # where threads cannot be started, pyarrow's reader would wait for them for ever
            mmap.mmap(-1, _ROOM + 4 * block).close()
        except OSError as error:
            raise MemoryError(str(error)) from error
        with (
            self.source.open() as stream,
            pyarrow.csv.open_csv(stream, read, parse, convert) as reader,
        ):
            for batch in reader:
                if n_skipped < len(batch):
                    yield batch[n_skipped:]
                n_skipped = max(0, n_skipped - len(batch))

    def _reject_row(self, columns: Sequence[str], block: int) -> None:
        """Read again with one thread, and raise for the row."""
        try:
            for _ in self._parse(columns, block, use_threads=False):
                pass
        except pyarrow.ArrowInvalid as error:
            if found := re.match(_BAD_ROW, str(error)):
                number, expected, actual = (int(each or 0) for each in found.groups())
                below = f"row {number - self.n_header:,} below the header"
                where = f"{below if number else 'a row'} of {self.source}"
                why = f"the header has {expected} (delimiter {self.delimiter!r}); fix it, or quote"
                what = f"{where} has {actual} fields where {why} fields that hold the delimiter"
                raise IcscmError(what) from None
