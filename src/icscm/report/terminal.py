"""A summary on the terminal: the short form of the Markdown report, as rich renderables.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from icscm.formatting import clip
from icscm.report.formatting import Plain
from icscm.report.page import render_markdown

# Characters of a table's cell, of its indent, and of a text, such as a rule; files have all of it.
_MAX_CELL, _MAX_INDENT, MAX_TEXT = 200, 16, 2_000


def make_fact_table(facts: Iterable[Sequence[str]]) -> Table:
    """A term and its explanation on each line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for term, text in facts:
        table.add_row(Text(clip(term, _MAX_CELL)), Text(clip(text, MAX_TEXT)))
    return table


def render_summary(summary: Plain, *, with_rejected: bool = False) -> Iterator[RenderableType]:
    """The short form of a report, optionally with the rejected candidates of each scan."""
    return render_blocks(render_markdown(summary, brief=True, with_rejected=with_rejected))


def render_blocks(markdown: str) -> Iterator[RenderableType]:
    """Markdown of our own templates: headings, tables, lists, terms, notes, code, paragraphs."""
    is_first = True
    for block in filter(None, map(str.strip, re.split(r"\n{2,}", markdown))):
        if not is_first and not block.startswith("#"):
            yield ""
        is_first = block.startswith("#")
        if block.startswith("```"):
            yield Text(_unescape(block[4:-4]))
            continue
        for start, lines in groupby(block.splitlines(), _find_start):
            yield _render_lines(start, [*lines])


def _find_start(line: str) -> str:
    """What a line starts with that means something in Markdown."""
    return next((each for each in ("#", "|", "- **", "- ", "> ") if line.startswith(each)), "")


def _render_lines(start: str, lines: Sequence[str]) -> RenderableType:
    if start == "#":
        title = _unescape(lines[0].lstrip("# "))
        return Group("", Text(clip(title, _MAX_CELL), style="bold underline"))
    if start == "|":
        table = Table(box=None, pad_edge=False, header_style="bold")
        names, sides, *rows = map(_split_cells, lines)
        for name, side in zip(names, sides, strict=True):
            is_number = side.endswith(":")
            table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(_indent, row))
        return table
    if start == "- **":
        pairs = (line.removeprefix(start).split("**: ", 1) for line in lines)
        return make_fact_table((_unescape(term), _unescape(text)) for term, text in pairs)
    if start == "- ":
        return make_fact_table(("-", _unescape(line.removeprefix(start))) for line in lines)
    text = "".join(f"{line[:-2]}\n" if line.endswith("  ") else f"{line} " for line in lines)
    return Text(_unescape(text.strip().removeprefix(start)), style="dim" if start else "")


def _split_cells(line: str) -> list[str]:
    """The cells of a row; only very long ones are cut."""
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [clip(_unescape(cell.strip(" ")), _MAX_CELL) for cell in cells]


def _indent(cell: str) -> Padding:
    """A cell whose lines are all indented as its first, such as a node of a tree."""
    indent = min(len(cell) - len(cell.lstrip(" ")), _MAX_INDENT)
    return Padding(Text(cell[indent:]), (0, 0, 0, indent))


def _unescape(text: str) -> str:
    """The reverse of `page.escape_markdown`; an indent is two blanks."""
    plain = re.sub(r"\\([\\`*_{}\[\]|~$#:.])", r"\1", text.replace("&emsp;", "  "))
    return unescape(plain)
