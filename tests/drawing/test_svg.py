"""Shapes as SVG: escaping, numbers, style, files."""

import base64
import re
from xml.etree import ElementTree

import pytest

from icscm.drawing import Figure
from icscm.drawing.shapes import (
    Circle,
    Curve,
    Group,
    Line,
    Panel,
    Point,
    Rectangle,
    Role,
    Text,
    place_below,
    place_beside,
)
from icscm.drawing.style import DARK, LIGHT, make_file_style, make_page_style, read_rules
from icscm.drawing.svg import render_cell, render_panel, render_shapes
from icscm.exceptions import IcscmError
from support.hostile import HOSTILE_NAMES

ORIGIN = Point(0.0, 0.0)


def make_figure(*shapes, description="A figure."):
    return Figure(Panel(100.0, 50.0, shapes), description)


@pytest.mark.parametrize(
    ("shape", "markup"),
    [
        (
            Line(ORIGIN, Point(1.5, 2.0), Role.GRID),
            '<line x1="0" y1="0" x2="1.5" y2="2" class="grid"/>',
        ),
        (
            Curve([ORIGIN, Point(1.0, 2.126)], Role.OVERALL_CURVE),
            '<polyline points="0,0 1,2.13" class="curve overall"/>',
        ),
        (Circle(ORIGIN, 4.0, Role.DOT), '<circle cx="0" cy="0" r="4" class="dot"/>'),
        (
            Circle(ORIGIN, 4.0, Role.DOT, tooltip="a < b"),
            '<circle cx="0" cy="0" r="4" class="dot"><title>a &lt; b</title></circle>',
        ),
        (
            Rectangle(ORIGIN, 3.0, 2.0, Role.BAND),
            '<rect x="0" y="0" width="3" height="2" class="band"/>',
        ),
        (
            Text(Point(1.0, 2.0), "<b>", Role.NOTE, anchor="end"),
            '<text x="1" y="2" text-anchor="end" class="note">&lt;b&gt;</text>',
        ),
        (
            Text(Point(1.0, 2.0), "up", Role.NOTE, is_upright=True),
            '<text x="1" y="2" transform="rotate(-90 1 2)" class="note">up</text>',
        ),
        (
            Group(Point(3.0, 4.0), [Line(ORIGIN, ORIGIN, Role.GRID)]),
            '<g transform="translate(3 4)"><line x1="0" y1="0" x2="0" y2="0" class="grid"/></g>',
        ),
    ],
)
def test_every_shape_is_an_element(shape, markup):
    assert render_shapes([shape]) == markup


def test_positions_in_a_cell_are_shares_of_it():
    cell = render_cell([Line(Point(25.0, 50.0), Point(75.0, 50.0), Role.INTERVAL)])
    assert cell == (
        '<svg class="plot" aria-hidden="true">'
        '<line x1="25%" y1="50%" x2="75%" y2="50%" class="interval"/></svg>'
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_breaks_a_drawing(name):
    """A column may be called `<script>`; a drawing holds it as text."""
    texts = Text(ORIGIN, name, Role.NAME), Circle(ORIGIN, 1.0, Role.DOT, tooltip=name)
    figure = make_figure(*texts, description=name)
    root = ElementTree.fromstring(figure.to_svg())
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text", "circle"}
    assert not any(key.startswith("on") for element in root.iter() for key in element.attrib)
    ElementTree.fromstring(render_panel(figure.panel, label=name))


def test_a_figure_has_a_title_for_screen_readers():
    root = ElementTree.fromstring(make_figure(description="Rates by hospital.").to_svg())
    assert root.get("role") == "img"
    assert root.find("{*}title").text == "Rates by hospital."
    html = make_figure(description='Rates of "a" & b.')._repr_html_()
    assert 'alt="Rates of &#34;a&#34; &amp; b."' in html


def test_every_role_has_a_rule_and_every_colour_a_value():
    rules = read_rules()
    for role in Role:
        base = role.split()[0]
        assert re.search(rf"\.{base}\b", rules), role
    assert LIGHT.keys() == DARK.keys()
    assert {*re.findall(r"var\(--([\w-]+)\)", rules)} <= LIGHT.keys()
    for colour in LIGHT:
        assert make_page_style().count(f"--{colour}:") == 2


def test_a_file_has_its_colours_written_out():
    """Inkscape and LaTeX know no variables: drawings would be black."""
    assert "var(" not in make_file_style(has_dark=True)
    assert "prefers-color-scheme" not in make_figure().to_svg()
    html = make_figure()._repr_html_()
    encoded = re.search(r"base64,([^\"]*)", html)[1]
    assert "prefers-color-scheme: dark" in base64.b64decode(encoded).decode()


def test_a_figure_is_saved_once(tmp_path):
    path = make_figure().save(tmp_path / "figure.svg")
    assert path.read_text(encoding="utf-8") == make_figure().to_svg()
    with pytest.raises(IcscmError, match="exists"):
        make_figure().save(path)
    assert make_figure().save(path, force=True) == path


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(IcscmError, match=r"'figure.png' has another ending; browsers"):
        make_figure().save(tmp_path / "figure.png")


def test_panels_are_placed_next_to_each_other():
    small, large = Panel(10.0, 20.0, []), Panel(30.0, 5.0, [])
    below = place_below([small, large], gap=2.0)
    assert (below.width, below.height) == (30.0, 27.0)
    assert [group.offset for group in below.shapes] == [Point(0.0, 0.0), Point(0.0, 22.0)]
    beside = place_beside([small, large], gap=2.0)
    assert (beside.width, beside.height) == (42.0, 20.0)
    assert [group.offset for group in beside.shapes] == [Point(0.0, 0.0), Point(12.0, 0.0)]
