"""Shapes as SVG, within a page or as a figure that stands alone.

All text passes `escape` here and nowhere else, so that no name of a column can break a page. A
shape is one element, whose class is the shape's role:

    <circle cx="25" cy="50" r="4" class="dot"/>
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from markupsafe import Markup

from icscm.drawing.shapes import Circle, Curve, Group, Line, Panel, Rectangle, Shape, Text
from icscm.drawing.style import make_file_style
from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls
from icscm.writing import check_free, write_text

# Room around a figure that stands alone.
_MARGIN = 16.0


@dataclass(frozen=True)
class Figure:
    """A drawing that notebooks display, and that can be saved as SVG.

    Parameters
    ----------
    panel : Panel
        What is drawn.
    description : str
        What it shows, in words; for those who do not see it.

    Examples
    --------
    >>> from icscm.drawing.shapes import Panel, Point, Role, Text
    >>> figure = Figure(Panel(100, 20, [Text(Point(0, 12), "a < b", Role.NAME)]), "A rule.")
    >>> figure
    <figure: A rule.>
    >>> print(figure.to_svg()[-38:])
    class="name">a &lt; b</text></g></svg>
    """

    panel: Panel
    description: str

    def to_svg(self) -> str:
        """Return the figure as the text of an SVG file.

        Returns
        -------
        str
            It loads nothing, and its text is text, not outlines.
        """
        return self._render(has_dark=False)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the figure to a file, whole or not at all.

        Parameters
        ----------
        path : str or path
            It ends in `.svg`.
        force : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        IcscmError
            If the file exists, or its name has another ending.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise IcscmError(
                f"a figure is written as .svg, and {path.name!r} has another ending; browsers and "
                "drawing programs convert it to PNG or PDF"
            )
        check_free(path, force=force)
        write_text(path, self.to_svg())
        return path

    def __repr__(self) -> str:
        return f"<figure: {self.description}>"

    def _repr_html_(self) -> str:
        """Return the figure as an image, so that its style does not affect the notebook."""
        encoded = base64.b64encode(self._render(has_dark=True).encode()).decode()
        description = escape(self.description)
        source = f"data:image/svg+xml;base64,{encoded}"
        return f'<img alt="{description}" style="max-width: 100%" src="{source}">'

    def _render(self, *, has_dark: bool) -> str:
        """Return the SVG file, with a margin around the panel and a style of its own."""
        width = format_number(self.panel.width + 2 * _MARGIN)
        height = format_number(self.panel.height + 2 * _MARGIN)
        margin = format_number(_MARGIN)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">'
            f"<title>{escape(self.description)}</title>"
            f"<style>{make_file_style(has_dark=has_dark)}</style>"
            f'<rect width="100%" height="100%" class="paper"/>'
            f'<g transform="translate({margin} {margin})">'
            f"{render_shapes(self.panel.shapes)}</g></svg>"
        )


def render_panel(panel: Panel, *, label: str) -> Markup:
    """Return a panel as part of a page, as wide as the page allows."""
    view_box = f"0 0 {format_number(panel.width)} {format_number(panel.height)}"
    return Markup(
        f'<svg class="panel" viewBox="{view_box}" role="img" aria-label="{escape(label)}">'
        f"{render_shapes(panel.shapes)}</svg>"
    )


def render_cell(
    shapes: Sequence[Shape],
    *,
    css_class: str = "plot",
    width: str = "",
    x_unit: str = "%",
) -> Markup:
    """Return shapes as a cell of a table; positions are percentages of its width and height.

    It is hidden from screen readers: the row has the numbers. With an `x_unit` of "" positions
    along the width are pixels.
    """
    size = f' width="{width}"' if width else ""
    return Markup(
        f'<svg class="{css_class}"{size} aria-hidden="true">'
        f"{render_shapes(shapes, x_unit=x_unit, y_unit='%')}</svg>"
    )


def render_shapes(shapes: Sequence[Shape], *, x_unit: str = "", y_unit: str = "") -> str:
    """Return the elements of shapes, one after the other."""
    return "".join(_render_shape(shape, x_unit=x_unit, y_unit=y_unit) for shape in shapes)


def _render_shape(shape: Shape, *, x_unit: str, y_unit: str) -> str:
    """Return the element of a shape; positions are in the units, radii in pixels."""

    def x(value: float) -> str:
        return f"{format_number(value)}{x_unit}"

    def y(value: float) -> str:
        return f"{format_number(value)}{y_unit}"

    match shape:
        case Line(start, end, role):
            ends = f'x1="{x(start.x)}" y1="{y(start.y)}" x2="{x(end.x)}" y2="{y(end.y)}"'
            return f'<line {ends} class="{role}"/>'

        case Curve(points, role):
            # always in pixels: SVG has no curves in percent
            pairs = [f"{format_number(point.x)},{format_number(point.y)}" for point in points]
            return f'<polyline points="{" ".join(pairs)}" class="{role}"/>'

        case Circle(centre, radius, role, tooltip):
            position = f'cx="{x(centre.x)}" cy="{y(centre.y)}" r="{format_number(radius)}"'
            if not tooltip:
                return f'<circle {position} class="{role}"/>'
            return f'<circle {position} class="{role}"><title>{escape(tooltip)}</title></circle>'

        case Rectangle(corner, width, height, role, rounding):
            position = f'x="{x(corner.x)}" y="{y(corner.y)}"'
            size = f'width="{x(width)}" height="{y(height)}"'
            corners = f' rx="{format_number(rounding)}"' if rounding else ""
            return f'<rect {position} {size}{corners} class="{role}"/>'

        case Text(start, text, role, anchor, is_upright):
            position = f'x="{x(start.x)}" y="{y(start.y)}"'
            text_anchor = f' text-anchor="{anchor}"' if anchor != "start" else ""
            pivot = f"{format_number(start.x)} {format_number(start.y)}"
            rotation = f' transform="rotate(-90 {pivot})"' if is_upright else ""
            return f'<text {position}{text_anchor}{rotation} class="{role}">{escape(text)}</text>'

        case Group(offset, shapes):
            translation = f"translate({format_number(offset.x)} {format_number(offset.y)})"
            elements = render_shapes(shapes, x_unit=x_unit, y_unit=y_unit)
            return f'<g transform="{translation}">{elements}</g>'


def escape(text: str) -> str:
    r"""Escape what XML could misread, and characters that it cannot hold.

    >>> escape('<b> & "c"\x1b')
    '&lt;b&gt; &amp; &#34;c&#34;\\x1b'
    """
    return str(Markup.escape(escape_controls(text)))


def format_number(value: float) -> str:
    """Write a position with at most two decimals.

    >>> format_number(12.5), format_number(3.0), format_number(-0.001)
    ('12.5', '3', '0')
    """
    # z: no negative zero
    text = f"{value:z.2f}"
    return text.rstrip("0").rstrip(".")
