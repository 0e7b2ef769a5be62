"""The first lines of a text file: what stands between cells, and the names of the columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from icscm.exceptions import IcscmError
from icscm.io.formats import TextFormat
from icscm.io.locating import Source, find_ending, translate_errors
from icscm.io.naming import check_names

_TAB_ENDINGS = (".tsv", ".tab", ".rtab")
_DELIMITERS = ",\t;|"
# A field in quotes, which may go on over several lines, or beyond those that are looked at.
_QUOTED = rf'"(?<![^\r\n {_DELIMITERS}]")[^"]*(?:""[^"]*)*(?:"|\Z)'
# Lines after the header that are looked at before reading, and the longest header that is one.
_N_LINES_SEEN = 20
_MAX_HEADER = 2**28


@dataclass(frozen=True)
class Header:
    """What the first lines tell."""

    delimiter: str
    names: list[str]
    n_rows: int  # of the header, blank ones included
    longest: int  # bytes of the longest of the first lines
    has_commas: bool  # digits with a comma between, where commas do not delimit
    is_alone: bool  # nothing comes after it


def read_header(source: Source, form: TextFormat) -> Header:
    """Look at the first lines."""
    # a mark of byte order is no part of a name
    is_utf8 = form.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    with translate_errors(source, form.encoding), source.open() as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig" if is_utf8 else form.encoding, newline="")
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
    check_names(names, source)
    if all(map(_is_number, names)):
        raise IcscmError(
            f"the first line of {source} holds numbers, not names; add a header line that names "
            "the columns"
        )
    return Header(
        delimiter,
        names,
        n_blank + 1,
        longest=max(len(line.encode(errors="replace")) for line in seen),
        has_commas=delimiter != "," and any(re.search(r"\d,\d", line) for line in seen[1:]),
        is_alone=not seen[1],
    )


def _check_is_text(first: str, source: Source) -> None:
    if "\0" in first:
        raise IcscmError(
            f"{source} holds NUL characters, so it is no text: a damaged file, a copy that was "
            "broken off, or text in another encoding (--encoding utf-16)"
        )
    if len(first) >= _MAX_HEADER:
        raise IcscmError(f"{source} has no end of line in its first {_MAX_HEADER:,} characters")


def _find_delimiter(source: Source, lines: Sequence[str], decimal: str) -> str:
    """That which occurs in the header, and as often in the lines after it.

    What stands in quotes is part of a cell. Of several the more frequent one; a comma last if it
    is the mark of decimals.
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
