"""Templates place sentences and numbers: they compare, compute and decide nothing."""

from importlib.resources import files

import pytest
from jinja2 import Environment, nodes
from markupsafe import Markup

from icscm.report.rendering import make_environment

FOLDER = files("icscm.report") / "templates"
TEMPLATES = sorted(
    path.name for path in FOLDER.iterdir() if path.name.endswith((".html", ".md", ".jinja"))
)
# A comparison, a number computed from others, a test such as `is none`, a choice among several.
FORBIDDEN = (nodes.Compare, nodes.BinExpr, nodes.Neg, nodes.Pos, nodes.Test)


def find_decisions(source):
    """Return the lines on which a template compares, computes, or asks more than for a field."""
    tree = Environment().parse(source)
    lines = {node.lineno for kind in FORBIDDEN for node in tree.find_all(kind)}
    for node in tree.find_all((nodes.If, nodes.CondExpr)):
        if not is_field(node.test):
            lines.add(node.lineno)
    for node in tree.find_all(nodes.For):
        if node.test is not None and not is_field(node.test):
            lines.add(node.lineno)
    return sorted(lines)


def is_field(node):
    """Whether a condition asks for the presence, or the absence, of a field."""
    if isinstance(node, nodes.Not):
        node = node.node
    while isinstance(node, nodes.Getattr):
        node = node.node
    return isinstance(node, nodes.Name)


def test_templates_place_text_that_prints():
    """Whatever a layout forgets to escape is escaped where a template places it."""
    template = make_environment(0, autoescape=True).from_string("{{ name }} {{ markup }} {{ n }}")
    page = template.render(name="<b>\n\u202e\xa0%", markup=Markup("<i>\n</i>"), n=3)
    assert page == "&lt;b&gt;\\n\\u202e\xa0% <i>\n</i> 3"


def test_there_are_templates():
    assert "report.html" in TEMPLATES


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_decides_nothing(name):
    source = (FOLDER / name).read_text(encoding="utf-8")
    found = find_decisions(source)
    lines = source.splitlines()
    assert not found, "\n".join(f"{number}: {lines[number - 1]}" for number in found)


@pytest.mark.parametrize(
    "planted",
    [
        "{% if errors.error > 0.5 %}poor{% endif %}",
        "{% if leaves|length %}leaves{% endif %}",
        "{% if model and leaves %}both{% endif %}",
        "{% if share is none %}none{% endif %}",
        "{{ 'one' if model.noun == 'rule' else 'two' }}",
        "{{ n_rows - n_shown }}",
        "{{ -n_rows }}",
        "{{ columns + scores }}",
        "{% for leaf in leaves if leaf.rate < 1 %}{{ leaf }}{% endfor %}",
        "{% set is_large = n_rows * 2 %}",
        "{% macro m(n) %}{% if n in (1, 2) %}{% endif %}{% endmacro %}",
    ],
)
def test_a_planted_decision_is_found(planted):
    assert find_decisions(f"<p>\n{planted}\n</p>") == [2]


@pytest.mark.parametrize(
    "harmless",
    [
        "{{ text }}",
        "{% if text %}{{ text }}{% else %}-{% endif %}",
        "{% if not model.rules %}none{% endif %}",
        "{% for row in table.rows if row.text %}{{ row.text }}{% endfor %}",
        "{{ 'a' ~ name }}",
        "{{ rate|share }}",
    ],
)
def test_placing_is_no_decision(harmless):
    assert find_decisions(harmless) == []
