"""Documents on the terminal, as rich renderables.

Names come from users, so every text is `Text`, in which nothing is read as markup, and passes
`make_text`, which escapes what could do something to a terminal.

Lines are broken between words only. A name that is wider than the terminal makes its line longer,
so that it can be copied: `print_parts` lets such lines pass.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from icscm.formatting import clip, escape_controls
from icscm.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    Table,
)
from icscm.report.wording.facts import Fact

# Characters of a table's cell, of its indent, and of a text, such as a rule; files have all of it.
_MAX_CELL, _MAX_INDENT, MAX_TEXT = 200, 16, 2_000
_INDENT = 2
# Blanks between columns.
_GAP = 2


def print_parts(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts one below the other; lines with very long names are not cut."""
    for part in parts:
        console.print(part, crop=False)


# --- text in columns ------------------------------------------------------------------------------


def make_text(text: str, *, limit: int | None = MAX_TEXT, style: str = "") -> Text:
    """Return a text for one line, cut in the middle if it is longer than the limit."""
    printable = escape_controls(text)
    return Text(printable if limit is None else clip(printable, limit), style=style)


@dataclass(frozen=True)
class TextColumn:
    """A column of texts, the first of which may be its title; each has an indent of its own."""

    texts: Sequence[Text]
    indents: Sequence[int]
    justify: Literal["left", "right"] = "left"
    style: str = ""

    @property
    def least_width(self) -> int:
        """The width in which no word is split."""
        words = [
            cell_len(word) + indent
            for text, indent in zip(self.texts, self.indents, strict=True)
            for word in text.plain.split()
        ]
        return max(words, default=0)

    @property
    def full_width(self) -> int:
        """The width in which each text has the lines that it came with."""
        lines = [
            cell_len(line) + indent
            for text, indent in zip(self.texts, self.indents, strict=True)
            for line in text.plain.split("\n")
        ]
        return max(lines, default=0)


@dataclass(frozen=True)
class TextColumns:
    """Texts side by side, broken between words only.

    Where the least widths of the columns are more than the terminal has, lines are longer than it.
    """

    columns: Sequence[TextColumn]
    has_titles: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        gaps = _GAP * (len(self.columns) - 1)
        widths = fit_widths(
            least=[column.least_width for column in self.columns],
            full=[column.full_width for column in self.columns],
            available=options.max_width - gaps,
        )
        table = RichTable.grid(padding=(0, _GAP))
        for column, width in zip(self.columns, widths, strict=True):
            table.add_column(
                justify=column.justify, style=column.style, width=width, overflow="fold"
            )
        cells_by_column = [
            [
                Padding(text, (0, 0, 0, indent)) if indent else text
                for text, indent in zip(column.texts, column.indents, strict=True)
            ]
            for column in self.columns
        ]
        for number, cells in enumerate(zip(*cells_by_column, strict=True)):
            is_title = self.has_titles and number == 0
            table.add_row(*cells, style="bold" if is_title else "")

        width_of_lines = max(options.max_width, sum(widths) + gaps)
        rendered = console.render(table, options.update(max_width=width_of_lines))
        for line in Segment.split_lines(rendered):
            yield from _strip_line(line)
            yield Segment.line()


def fit_widths(*, least: Sequence[int], full: Sequence[int], available: int) -> list[int]:
    """Return the widths of columns: the widest ones are narrowed until all fit, to the least.

    >>> fit_widths(least=[9, 3], full=[30, 10], available=30)
    [20, 10]
    >>> fit_widths(least=[25, 3], full=[30, 10], available=30)
    [25, 5]
    >>> fit_widths(least=[40, 3], full=[40, 10], available=30)
    [40, 3]
    """
    for limit in range(available, 0, -1):
        widths = [max(low, min(high, limit)) for low, high in zip(least, full, strict=True)]
        n_left = available - sum(widths)
        if n_left >= 0:
            break
    else:
        return list(least)

    # what is left goes to the first columns, which have names and rules
    for position, full_width in enumerate(full):
        n_added = min(full_width - widths[position], n_left)
        widths[position] += n_added
        n_left -= n_added
    return widths


def _strip_line(line: Sequence[Segment]) -> Sequence[Segment]:
    """Return a line without the blanks at its end, to which a table pads it.

    Where lines are longer than the terminal, each would be followed by an empty one.
    """
    segments = list(line)
    while segments and not segments[-1].text.strip():
        segments.pop()
    if segments:
        text, style, _ = segments.pop()
        segments.append(Segment(text.rstrip(), style))
    return segments


def keep_words(text: Text) -> TextColumns:
    """Return a text that is broken between words only."""
    return TextColumns([TextColumn([text], indents=[0])])


# --- documents ------------------------------------------------------------------------------------


def make_fact_table(facts: Iterable[Fact]) -> TextColumns:
    """Return a table with a term and its explanation on each line."""
    facts = list(facts)
    no_indents = [0] * len(facts)
    terms = [make_text(term, limit=_MAX_CELL) for term, _ in facts]
    texts = [make_text(text) for _, text in facts]
    return TextColumns(
        [
            TextColumn(terms, indents=no_indents, style="bold"),
            TextColumn(texts, indents=no_indents),
        ]
    )


def render_blocks(document: Document) -> Iterator[RenderableType]:
    """Return the blocks of a document, with a blank line between them and above headings."""
    is_below_heading = True
    for block in document:
        is_heading = isinstance(block, Heading)
        if not is_below_heading and not is_heading and not block.is_tight:
            yield ""
        is_below_heading = is_heading
        yield render_block(block)


def render_block(block: Block) -> RenderableType:
    """Return one block."""
    match block:
        case Heading(text):
            title = make_text(text, limit=_MAX_CELL, style="bold underline")
            return Group("", keep_words(title))
        case Paragraph(text) | Code(text):
            return keep_words(Text(escape_controls(text, keep="\n")))
        case Note(text):
            return keep_words(make_text(text, limit=None, style="dim"))
        case Facts(facts):
            return make_fact_table(facts)
        case Bullets(points):
            return make_fact_table(Fact("-", point) for point in points)
        case Table():
            return render_table(block)
    raise TypeError(f"the terminal cannot show {type(block).__name__}")


def render_table(table: Table) -> TextColumns:
    """Return a table without lines; only very long cells are cut."""
    columns = []
    for position, column in enumerate(table.columns):
        cells = [row[position] for row in table.rows]
        texts = [make_text(cell.text, limit=_MAX_CELL) for cell in cells]
        indents = [min(_INDENT * cell.level, _MAX_INDENT) for cell in cells]
        columns.append(
            TextColumn(
                [make_text(column.title), *texts],
                indents=[0, *indents],
                justify="right" if column.is_number else "left",
            )
        )
    return TextColumns(columns, has_titles=True)
