"""A document is the same content in Markdown and on the terminal; names mean nothing in either."""

import io

import pytest
from rich.console import Console

from icscm.report.blocks import (
    Bullets,
    Cell,
    Code,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
)
from icscm.report.markdown import escape_markdown, render_markdown
from icscm.report.terminal import render_blocks

DOCUMENT = [
    Heading("A title", level=1),
    Paragraph("First line\nsecond line"),
    Facts([["Model", "age > 63"], ["Error", "12%"]]),
    Heading("A part"),
    Bullets(["one", "two"]),
    make_table(["node", ">rate"], [["all", "20%"], [Cell("age > 63", level=1), ""]]),
    Note("a remark", is_tight=True),
    Code("if x:\n    y"),
]


def print_plainly(document, width=80):
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    for part in render_blocks(document):
        console.print(part)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_markdown_of_names_with_line_breaks_and_fences():
    """A line break in a name ended a row or a heading, and backticks ended a block of code."""
    name = "a\nb\u202e"
    document = [
        Heading(name), Note(name), Bullets([name]), make_table([name], [[name]]),
        Code("x\n```\ny\x1b"),
    ]  # fmt: skip
    lines = [line for line in render_markdown(document).split("\n") if line]
    assert lines == [
        r"## a\\nb\\u202e",
        r"> a\\nb\\u202e",
        r"- a\\nb\\u202e",
        r"| a\\nb\\u202e |",
        "|---|",
        r"| a\\nb\\u202e |",
        "````",
        "x",
        "```",
        r"y\x1b",
        "````",
    ]


def test_markdown_of_every_kind_of_block():
    assert render_markdown(DOCUMENT).split("\n") == [
        "# A title",
        "",
        "First line  ",
        "second line",
        "",
        "- **Model**: age > 63",
        "- **Error**: 12%",
        "",
        "## A part",
        "",
        "- one",
        "- two",
        "",
        "| node | rate |",
        "|---|---:|",
        "| all | 20% |",
        "| &emsp;age > 63 | |",
        "> a remark",
        "",
        "```",
        "if x:",
        "    y",
        "```",
        "",
    ]


def test_terminal_of_every_kind_of_block():
    assert print_plainly(DOCUMENT) == [
        "",
        "A title",
        "First line",
        "second line",
        "",
        "Model  age > 63",
        "Error  12%",
        "",
        "A part",
        "-  one",
        "-  two",
        "",
        "node        rate",
        "all          20%",
        "  age > 63",
        "a remark",
        "",
        "if x:",
        "    y",
    ]


@pytest.mark.parametrize(
    "name", ["a|b", "*a*", "<i>a</i>", "[a](b)", "[bold]a[/bold]", "`a`", ":smile:", "$a$", "\\"]
)
def test_names_are_text_in_every_block(name):
    document = [
        Heading(name),
        Paragraph(name),
        Facts([[name, name]]),
        Bullets([name]),
        make_table([name], [[name]]),
        Note(name),
    ]
    markdown = render_markdown(document)
    assert markdown.count(escape_markdown(name)) == 8
    shown = "\n".join(print_plainly(document))
    assert shown.count(name) == 8
