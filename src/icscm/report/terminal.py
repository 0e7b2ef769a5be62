"""A summary on the terminal: the short form of the Markdown report, as rich renderables.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from icscm.formatting import clip
from icscm.report.formatting import Plain
from icscm.report.page import render_markdown

# Characters of a table's cell, and of a text, such as a rule; files have all of it.
_MAX_CELL, MAX_TEXT = 200, 2_000


def make_heading(text: str) -> Group:
    """A heading with an empty line before it."""
    return Group("", Text(clip(text, _MAX_CELL), style="bold underline"))


def make_note(text: str) -> Text:
    """An explanation of a table."""
    return Text(text, style="dim")


def make_table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows under headings; a heading after > is one of numbers. Only very long cells are cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_number = column.startswith(">")
        heading = Text(clip(column.removeprefix(">"), _MAX_CELL))
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clip(cell, _MAX_CELL)) for cell in row))
    return table


def make_fact_table(facts: Iterable[tuple[str, str]]) -> Table:
    """A term and its explanation on each line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for term, text in facts:
        table.add_row(Text(clip(term, _MAX_CELL)), Text(clip(text, MAX_TEXT)))
    return table


def make_list(points: Iterable[str]) -> Table:
    """Sentences, each after a dash."""
    return make_fact_table(("-", point) for point in points)


def make_environment_table(leaf: Plain, most: int | None = None) -> Table:
    """One leaf, an environment on each line, the largest first; `most` limits the lines."""
    rows = []
    for each in sorted(leaf["environments"], key=lambda each: -each["n"])[:most]:
        rate = f"{each['rate']:.1%}" if each["n"] else "-"
        rows.append((each["environment"], f"{each['n']:,}", f"{each['n_positive']:,}", rate))
    return make_table(("environment", ">samples", ">positive", ">rate"), rows)


def render_summary(summary: Plain, *, with_rejected: bool = False) -> Iterator[RenderableType]:
    """The short form of a report, optionally with the rejected candidates of each scan."""
    return render_blocks(render_markdown(summary, brief=True, with_rejected=with_rejected))


def render_blocks(markdown: str) -> Iterator[RenderableType]:
    """Markdown of our own templates: headings, tables, lists, terms, notes and paragraphs."""
    is_first = True
    for block in filter(None, map(str.strip, re.split(r"\n{2,}", markdown))):
        lines = block.splitlines()
        if block.startswith("#"):
            yield make_heading(_unescape(block.lstrip("# ")))
            is_first = True
            continue
        if not is_first:
            yield ""
        is_first = False
        if block.startswith("|"):
            names, sides, *rows = map(_split_cells, lines)
            numbers = [">" * side.endswith(":") for side in sides]
            columns = [number + name for number, name in zip(numbers, names, strict=True)]
            yield make_table(columns, rows)
        elif block.startswith("- **"):
            pairs = (line.removeprefix("- **").split("**: ", 1) for line in lines)
            yield make_fact_table((_unescape(term), _unescape(text)) for term, text in pairs)
        elif block.startswith("- "):
            yield make_list(_unescape(line.removeprefix("- ")) for line in lines)
        elif block.startswith("> "):
            yield make_note(_unescape(block.removeprefix("> ")))
        else:
            yield Text(_unescape(" ".join(lines)))


def _split_cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [_unescape(cell.strip(" ")) for cell in cells]


def _unescape(text: str) -> str:
    """The reverse of `page.escape_markdown`; an indent is two blanks."""
    plain = re.sub(r"\\([\\`*_{}\[\]|~$#:.])", r"\1", text.replace("&emsp;", "  "))
    return unescape(plain)
