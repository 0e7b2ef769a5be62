"""What a figure draws: its shapes at their positions, without the groups that move them."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from icscm.drawing import Figure
from icscm.drawing.shapes import Circle, Curve, Group, Line, Point, Rectangle, Role, Shape, Text


def list_shapes(figure: Figure) -> list[Shape]:
    """Return every shape of a figure, in the order in which they are drawn."""
    return [*_walk(figure.panel.shapes, Point(0.0, 0.0))]


def _walk(shapes, offset: Point) -> Iterator[Shape]:
    for shape in shapes:
        match shape:
            case Group(inner_offset, inner):
                total = Point(offset.x + inner_offset.x, offset.y + inner_offset.y)
                yield from _walk(inner, total)
            case Line(start, end, role):
                yield Line(_move(start, offset), _move(end, offset), role)
            case Curve(points, role):
                yield Curve([_move(point, offset) for point in points], role)
            case Circle(centre, radius, role, tooltip):
                yield Circle(_move(centre, offset), radius, role, tooltip)
            case Rectangle(corner, width, height, role, rounding):
                yield Rectangle(_move(corner, offset), width, height, role, rounding)
            case Text(position, text, role, anchor, is_upright):
                yield Text(_move(position, offset), text, role, anchor, is_upright)


def _move(point: Point, offset: Point) -> Point:
    return Point(point.x + offset.x, point.y + offset.y)


def find_texts(figure: Figure, role: Role | None = None) -> list[str]:
    """Return the texts of a figure, or those of a role."""
    texts = [shape for shape in list_shapes(figure) if isinstance(shape, Text)]
    return [shape.text for shape in texts if role is None or shape.role is role]


def find_dots(figure: Figure, role: Role = Role.DOT) -> list[Circle]:
    """Return the dots of a role."""
    shapes = list_shapes(figure)
    return [shape for shape in shapes if isinstance(shape, Circle) and shape.role is role]


def find_curves(figure: Figure, role: Role) -> list[Curve]:
    """Return the curves of a role."""
    shapes = list_shapes(figure)
    return [shape for shape in shapes if isinstance(shape, Curve) and shape.role is role]


def find_boxes(figure: Figure) -> list[Rectangle]:
    """Return the boxes of a tree."""
    return [
        shape
        for shape in list_shapes(figure)
        if isinstance(shape, Rectangle) and shape.role.startswith("box")
    ]


def parse(figure: Figure) -> ElementTree.Element:
    """Parse a figure as XML, as a browser does: what is not well-formed raises."""
    return ElementTree.fromstring(figure.to_svg())
