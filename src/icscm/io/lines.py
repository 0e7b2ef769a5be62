"""The lines of a text file, cut into cells: the one place where text is parsed.

Lines.find_kinds   what the columns of this file can be          joined over files by `&`
Lines.read         cells as what the columns of all files are
"""

from __future__ import annotations

import mmap
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow
import pyarrow.csv

from icscm.exceptions import IcscmError
from icscm.io.cells import ANYTHING, Kinds, clean, convert, find_kinds
from icscm.io.formats import TextFormat
from icscm.io.headers import Header
from icscm.io.locating import Source, translate_errors

# What is read at a time: at least so many bytes, and many rows however wide they are.
MIN_BLOCK = 2**21
_MAX_BLOCK, _ROWS_IN_BLOCK = 2**30, 32
# Address space that the threads of pyarrow's reader may take besides: stacks and heaps.
_ROOM = 2**27
# What pyarrow says of a row with too few or too many fields; only one thread knows its number.
_BAD_ROW = r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)"


@dataclass
class Lines:
    """The lines of a text file below its header; `misread` are the texts that meant missing."""

    source: Source
    form: TextFormat
    header: Header
    misread: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_kinds(self, names: Sequence[str]) -> Kinds:
        """What these columns can be, by all rows."""
        kinds = np.full(len(names), ANYTHING, dtype=np.uint8)
        for table in self.stream(names):
            kinds &= find_kinds(clean(table, self.form, self.misread), self.form)
        return kinds

    def read(self, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
        """The columns of a schema as what it says they are, a block of rows at a time."""
        for table in self.stream(schema.names):
            yield convert(clean(table, self.form), schema.types, self.form)

    def stream(self, columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Cells as text, a block of rows at a time.

        Blocks grow at a row too long for one: the first lines, which tell their size, may be short.
        """
        block, n_given = max(MIN_BLOCK, _ROWS_IN_BLOCK * self.header.longest), 0
        with translate_errors(self.source, self.form.encoding):
            while not self.header.is_alone:
                try:
                    for batch in self._parse(columns, block, n_given):
                        n_given += len(batch)
                        yield pyarrow.Table.from_batches([batch])
                    return
                except pyarrow.ArrowInvalid as error:
                    if re.match(_BAD_ROW, str(error)):
                        self._refuse_row(columns, block)
                    if "straddling" not in str(error) or block >= _MAX_BLOCK:
                        raise
                    block = min(8 * block, _MAX_BLOCK)

    def _parse(
        self, columns: Sequence[str], block: int, n_skipped: int = 0, *, use_threads: bool = True
    ) -> Iterator[pyarrow.RecordBatch]:
        names = self.header.names
        read = pyarrow.csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=self.header.n_rows,
            encoding=self.form.encoding,
            use_threads=use_threads,
            block_size=block,
        )
        parse = pyarrow.csv.ParseOptions(
            delimiter=self.header.delimiter,
            newlines_in_values=True,
            # in a single column an empty line is a missing value
            ignore_empty_lines=len(names) > 1,
        )
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            include_columns=list(dict.fromkeys(columns)),
            null_values=[""],  # other texts that mean missing are counted as they are taken out
            strings_can_be_null=True,
        )
        _check_room(block)
        with (
            self.source.open() as stream,
            pyarrow.csv.open_csv(stream, read, parse, convert) as reader,
        ):
            for batch in reader:
                if n_skipped < len(batch):
                    yield batch[n_skipped:]
                n_skipped = max(0, n_skipped - len(batch))

    def _refuse_row(self, columns: Sequence[str], block: int) -> None:
        """Read once more by one thread, and raise for the row."""
        try:
            for _ in self._parse(columns, block, use_threads=False):
                pass
        except pyarrow.ArrowInvalid as error:
            if found := re.match(_BAD_ROW, str(error)):
                number, expected, actual = (int(each or 0) for each in found.groups())
                below = f"row {number - self.header.n_rows:,} below the header"
                raise IcscmError(
                    f"{below if number else 'a row'} of {self.source} has {actual} fields where "
                    f"the header has {expected} (delimiter {self.header.delimiter!r}); mend it, or "
                    "quote fields that hold the delimiter"
                ) from None


def _check_room(block: int) -> None:
    """Raise where threads could not be started: pyarrow's reader would wait for them for ever."""
    try:
        mmap.mmap(-1, _ROOM + 4 * block).close()
    except OSError as error:
        raise MemoryError(str(error)) from error
