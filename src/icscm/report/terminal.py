"""Documents on the terminal, as rich renderables.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from icscm.formatting import clip
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
from icscm.report.content.learner import LearnerContent
from icscm.report.documents.learner import write_document
from icscm.report.wording.facts import Fact

# Characters of a table's cell, of its indent, and of a text, such as a rule; files have all of it.
_MAX_CELL, _MAX_INDENT, MAX_TEXT = 200, 16, 2_000
_INDENT = 2


def make_fact_table(facts: Iterable[Fact]) -> RichTable:
    """Return a table with a term and its explanation on each line."""
    table = RichTable.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for term, text in facts:
        table.add_row(Text(clip(term, _MAX_CELL)), Text(clip(text, MAX_TEXT)))
    return table


def render_learner(
    content: LearnerContent, *, with_rejected: bool = False
) -> Iterator[RenderableType]:
    """Return the short form of a report, optionally with the rejected candidates of each scan."""
    return render_blocks(write_document(content, is_brief=True, with_rejected=with_rejected))


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
            return Group("", Text(clip(text, _MAX_CELL), style="bold underline"))
        case Paragraph(text) | Code(text):
            return Text(text)
        case Note(text):
            return Text(text, style="dim")
        case Facts(facts):
            return make_fact_table(facts)
        case Bullets(points):
            return make_fact_table(Fact("-", point) for point in points)
        case Table():
            return render_table(block)
    raise TypeError(f"the terminal cannot show {type(block).__name__}")


def render_table(table: Table) -> RichTable:
    """Return a table without lines; only very long cells are cut."""
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        justify = "right" if column.is_number else "left"
        shown.add_column(Text(column.title), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in table.rows:
        shown.add_row(*map(render_cell, row))
    return shown


def render_cell(cell: Cell) -> Padding:
    """Return a cell whose lines are all indented by its level."""
    indent = min(_INDENT * cell.level, _MAX_INDENT)
    return Padding(Text(clip(cell.text, _MAX_CELL)), (0, 0, 0, indent))
