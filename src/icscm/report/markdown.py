"""Documents as Markdown."""

import re
from collections.abc import Sequence

from icscm.formatting import as_text, escape_controls
from icscm.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    Table,
)

# Markdown syntax within a line; a colon matters only in addresses and in :names: of emoji.
_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#]|:(?=//|\w+:)|(?<=www)\.)")
# Markdown removes blanks at the start of a cell.
_INDENT = "&emsp;"


def escape_markdown(value: object) -> str:
    r"""Return text on one line, with the syntax of all dialects of Markdown escaped.

    >>> print(escape_markdown("a|b *c* <i>d</i>"), escape_markdown("e\nf"))
    a\|b \*c\* &lt;i>d&lt;/i> e\\nf
    """
    text = as_text(value).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", text)


def fence_code(text: str) -> list[str]:
    """Return lines of code between fences that are longer than any run of backticks in them."""
    longest_run = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return [fence, escape_controls(text, keep="\n"), fence]


def render_markdown(document: Document) -> str:
    """Return a document as Markdown."""
    parts: list[str] = []
    for block in document:
        if parts:
            parts.append("\n" if block.is_tight else "\n\n")
        parts.append("\n".join(render_lines(block)))
    return "".join(parts) + "\n"


def render_lines(block: Block) -> list[str]:
    """Return the lines of a block."""
    match block:
        case Heading(text, level):
            return [f"{'#' * level} {escape_markdown(text)}"]
        case Paragraph(text):
            lines = [escape_markdown(line) for line in text.split("\n")]
            return ["  \n".join(lines)]
        case Note(text):
            return [f"> {escape_markdown(text)}"]
        case Code(text):
            return fence_code(text)
        case Facts(facts):
            return [
                f"- **{escape_markdown(term)}**: {escape_markdown(text)}" for term, text in facts
            ]
        case Bullets(points):
            return [f"- {escape_markdown(point)}" for point in points]
        case Table():
            return render_table(block)
    raise TypeError(f"no Markdown is known for {type(block).__name__}")


def render_table(table: Table) -> list[str]:
    """Return the lines of a table."""
    titles = [escape_markdown(column.title) for column in table.columns]
    sides = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [[render_cell(cell) for cell in row] for row in table.rows]
    return [join_cells(titles), f"|{'|'.join(sides)}|", *map(join_cells, rows)]


def render_cell(cell: Cell) -> str:
    """Return a cell, indented by its level."""
    return _INDENT * cell.level + escape_markdown(cell.text)


def join_cells(cells: Sequence[str]) -> str:
    """Return a row of a table; an empty cell has one blank."""
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
