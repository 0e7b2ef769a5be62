"""Display of results: a line and a table, as text and as HTML in a notebook."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from icscm.formatting import escape_controls

# Rows of a table that are shown as text, and in a notebook.
_N_TEXT, _N_HTML = 30, 200

_STYLE = "text-align:{};white-space:pre-wrap"


class Display(NamedTuple):
    """A line and a table below it; a heading that starts with > marks a column of numbers."""

    line: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class DisplayMixin:
    """A result that is shown as text and as HTML; a subclass defines `_display`."""

    def _display(self) -> Display:
        raise NotImplementedError

    def __repr__(self) -> str:
        line, columns, rows = self._display()
        names = [column.removeprefix(">") for column in columns]
        n_text = sum(not column.startswith(">") for column in columns)
        table = align([names, *rows[:_N_TEXT]], n_text=n_text) if columns else []
        return escape_controls("\n".join([line, *table, *_count_hidden(rows, _N_TEXT)]), keep="\n")

    def _repr_html_(self) -> str:
        line, columns, rows = self._display()
        sides = ["right" if column.startswith(">") else "left" for column in columns]
        head = _make_row("th", [column.removeprefix(">") for column in columns], sides)
        body = "".join(_make_row("td", row, sides) for row in rows[:_N_HTML])
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>" if columns else ""
        shown = escape(escape_controls(line, keep="\n"))
        parts = [f"<p>{shown}</p>", table]
        return "".join([*parts, *(f"<p>{rest}</p>" for rest in _count_hidden(rows, _N_HTML))])


def display_frame(line: str, frame: Any) -> Display:
    """A pandas frame, its columns of text first."""
    is_number = {name: frame[name].dtype.kind in "iuf" for name in frame}
    names = sorted(frame, key=is_number.__getitem__)
    cells = [frame[name].map(_format_number if is_number[name] else str) for name in names]
    columns = [f"{'>' * is_number[name]}{name}" for name in names]
    return Display(line, columns, list(zip(*cells, strict=True)))


def _format_number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _make_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    texts = (escape(escape_controls(cell)) for cell in cells)
    pairs = zip(texts, sides, strict=True)
    marked = (f'<{tag} style="{_STYLE.format(side)}">{text}</{tag}>' for text, side in pairs)
    return f"<tr>{''.join(marked)}</tr>"


def _count_hidden(rows: Sequence[Sequence[str]], most: int) -> list[str]:
    return [f"and {len(rows) - most:,} more"] if len(rows) > most else []


def align(rows: Sequence[Sequence[str]], *, n_text: int) -> list[str]:
    """Columns under each other: the first few are text, to the left, the others numbers.

    >>> align([["rule", "n"], ["age > 45", "9"]], n_text=1)
    ['rule      n', 'age > 45  9']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if number < n_text else ">" for number in range(len(widths))]
    line = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return [line.format(*row).rstrip() for row in rows]
