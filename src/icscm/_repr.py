"""Display of results: a line and a table, as text and as HTML in a notebook."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from icscm.formatting import escape_controls

# Rows of a table that are shown as text, and in a notebook.
_MAX_TEXT_ROWS = 30
_MAX_HTML_ROWS = 200

# The start of a heading that marks a column of numbers.
_NUMBER_MARK = ">"


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
        display = self._display()
        lines = [display.line]
        if display.columns:
            names = _name_columns(display)
            n_text = len(names) - sum(_list_is_number(display))
            lines += align([names, *display.rows[:_MAX_TEXT_ROWS]], n_text=n_text)
        lines += _count_hidden(display, _MAX_TEXT_ROWS)
        return escape_controls("\n".join(lines), keep="\n")

    def _repr_html_(self) -> str:
        display = self._display()
        line = escape(escape_controls(display.line, keep="\n"))
        parts = [f"<p>{line}</p>"]
        if display.columns:
            parts.append(_make_html_table(display))
        parts += [f"<p>{rest}</p>" for rest in _count_hidden(display, _MAX_HTML_ROWS)]
        return "".join(parts)


def display_frame(line: str, frame: Any) -> Display:
    """A line and a pandas frame below it, its columns of text first."""
    text_names = [name for name in frame if not _holds_numbers(frame[name])]
    number_names = [name for name in frame if _holds_numbers(frame[name])]
    headings = [*text_names, *(f"{_NUMBER_MARK}{name}" for name in number_names)]
    texts_by_column = [
        *(frame[name].map(str) for name in text_names),
        *(frame[name].map(_format_number) for name in number_names),
    ]
    return Display(line, columns=headings, rows=list(zip(*texts_by_column, strict=True)))


def _holds_numbers(column: Any) -> bool:
    return column.dtype.kind in "iuf"  # signed, unsigned and floating-point numbers


def _format_number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _name_columns(display: Display) -> list[str]:
    """The headings of the table, without marks."""
    return [column.removeprefix(_NUMBER_MARK) for column in display.columns]


def _list_is_number(display: Display) -> list[bool]:
    """Whether each column of the table holds numbers."""
    return [column.startswith(_NUMBER_MARK) for column in display.columns]


def _count_hidden(display: Display, max_rows: int) -> list[str]:
    """A line on rows that are not shown, if there are any."""
    n_hidden = len(display.rows) - max_rows
    return [f"and {n_hidden:,} more"] if n_hidden > 0 else []


def _make_html_table(display: Display) -> str:
    sides = ["right" if is_number else "left" for is_number in _list_is_number(display)]
    head = _make_html_row("th", _name_columns(display), sides)
    body = "".join(_make_html_row("td", row, sides) for row in display.rows[:_MAX_HTML_ROWS])
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _make_html_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    marked_up = []
    for cell, side in zip(cells, sides, strict=True):
        style = f"text-align:{side};white-space:pre-wrap"
        marked_up.append(f'<{tag} style="{style}">{escape(escape_controls(cell))}</{tag}>')
    return f"<tr>{''.join(marked_up)}</tr>"


def align(rows: Sequence[Sequence[str]], *, n_text: int) -> list[str]:
    """A table as lines of text: its first `n_text` columns aligned left, numbers right.

    >>> align([["rule", "n"], ["age > 45", "9"]], n_text=1)
    ['rule      n', 'age > 45  9']
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    are_texts = [position < n_text for position in range(len(widths))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(row, widths, are_texts, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
