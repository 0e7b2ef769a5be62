"""The parts of a text document, which the terminal and Markdown render: headings, tables, lists.

Texts in blocks are plain: a renderer escapes what has a meaning in its format.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from icscm.formatting import clip
from icscm.report.wording.facts import Fact

# Characters of a name and of a sentence that holds names; longer ones are cut in the middle.
MAX_NAME = 160
MAX_SENTENCE = 8 * MAX_NAME


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a document; `is_tight` is whether no blank line parts it from the one before."""

    is_tight: bool = False


@dataclass(frozen=True)
class Heading(Block):
    """A title; 1 is the level of the document's own."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph(Block):
    """Text; a line break in it is kept."""

    text: str


@dataclass(frozen=True)
class Note(Block):
    """A remark on the block before."""

    text: str


@dataclass(frozen=True)
class Code(Block):
    """Text whose lines and blanks are kept."""

    text: str


@dataclass(frozen=True)
class Facts(Block):
    """Terms with their texts."""

    facts: Sequence[Fact]


@dataclass(frozen=True)
class Bullets(Block):
    """A list of points."""

    points: Sequence[str]


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers are aligned to the right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Cell:
    """The text of a cell, as far to the right as its level, such as a node of a tree."""

    text: str
    level: int = 0


@dataclass(frozen=True)
class Table(Block):
    """Rows of cells below the titles of their columns."""

    columns: Sequence[Column]
    rows: list[list[Cell]] = field(default_factory=list)


Document = list[Block]


def make_columns(titles: Iterable[str]) -> list[Column]:
    """Return the columns of a table; the title of one of numbers begins with `>`."""
    return [Column(title.removeprefix(">"), title.startswith(">")) for title in titles]


def make_table(
    columns: Iterable[str], rows: Iterable[Sequence[str | Cell]], *, is_tight: bool = False
) -> Table:
    """Return a table; the title of a column of numbers begins with `>`.

    >>> table = make_table(["leaf", ">rate"], [["1", "20%"]])
    >>> table.columns[1], table.rows[0][1].text
    (Column(title='rate', is_number=True), '20%')
    """
    return Table(
        make_columns(columns),
        [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows],
        is_tight=is_tight,
    )


def note_more(n_more: int, text: str, *, is_tight: bool = False) -> list[Block]:
    """Return a note on what is not listed; nothing where all is."""
    return [Note(text, is_tight=is_tight)] if n_more > 0 else []


def shorten_name(text: str) -> str:
    """Return a name or rule without the middle, if it is very long."""
    return clip(text, MAX_NAME)


def shorten_sentence(text: str) -> str:
    """Return a sentence that holds names without the middle, if it is very long."""
    return clip(text, MAX_SENTENCE)
