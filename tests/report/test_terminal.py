"""Documents on the terminal: where lines are broken, and what does not print."""

import io

import pytest
from rich.console import Console

from icscm.report.blocks import Bullets, Code, Facts, Heading, Note, Paragraph, make_table
from icscm.report.terminal import print_parts, render_blocks
from icscm.report.wording.facts import Fact

NAME = "ZellerG_2014.metaphlan_bugs_list.stool_of_the_second_visit_in_the_year_2014_or_later"


def show(document, width=80):
    """What a console of some width shows of a document."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    print_parts(console, render_blocks(document))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_blocks_are_parted_by_empty_lines_but_for_the_first():
    document = [Paragraph("one two"), Paragraph("three"), Heading("four"), Paragraph("five")]
    assert show(document) == ["one two", "", "three", "", "four", "five"]


@pytest.mark.parametrize(
    "block",
    [
        Paragraph(f"Lines are broken between words, whatever {NAME} is called."),
        Note(f"Not in the training data: {NAME}."),
        Facts([Fact("Data", f"{NAME}: 156 rows, 30 columns, and more words than fit on a line")]),
        Bullets([f"a point on {NAME} with so many words that it has several lines"]),
        Heading(NAME),
        make_table(["environment", ">samples", ">95% interval"], [[NAME, "156", "1 to 2"]]),
        make_table(["the least AUC", ">n"], [[f"0.512 ({NAME})", "156"]]),
    ],
    ids=lambda block: type(block).__name__,
)
def test_no_name_is_broken(block):
    """A name longer than the terminal was split: `ZellerG_2014.metaph / lan_bugs`."""
    assert any(NAME in line for line in show([block]))


def test_names_go_before_other_columns_where_a_line_is_short():
    """A name that fits the terminal was split to leave room for titles that have several words."""
    name = NAME[:50]
    titles = ["environment", ">share of positive rows", ">95% interval of the share"]
    lines = show([make_table(titles, [[name, "12.3%", "10.0% to 15.0%"]])], width=80)
    assert any(line.startswith(f"{name}  ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_other_lines_are_as_wide_as_the_terminal():
    words = "word " * 40
    assert max(map(len, show([Paragraph(words)], width=30))) <= 30
    assert max(map(len, show([Facts([Fact("term", words)])], width=30))) <= 30


def test_what_does_not_print_is_escaped():
    """Names of environments reached the terminal of `icscm evaluate` with all their codes."""
    name = "a\nb\r\x1b[31m\x9b\u202e\u200b\ufeff"
    shown = r"a\nb\r\x1b[31m\x9b\u202e\u200b\ufeff"
    document = [
        Heading(name), Note(f"a {name}"), Bullets([name]), Facts([Fact(name, name)]),
        make_table([name], [[name]]),
    ]  # fmt: skip
    lines = show(document)
    assert sum(line.count(shown) for line in lines) == 7
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("make_block", [Paragraph, Code])
def test_lines_of_a_paragraph_are_kept(make_block):
    assert show([make_block("one\n  two\x1b")]) == ["one", r"  two\x1b"]


@pytest.mark.parametrize("width", [1, 5, 80])
def test_narrow_terminals_and_empty_tables_lose_no_word(width):
    document = [
        make_table(["a", ">", ""], [["x y", "", ""]]), make_table([], []), make_table(["a"], []),
        Paragraph(""), Facts([]), Code("  if x:\n      y = 1"), Bullets([""]),
    ]  # fmt: skip
    lines = show(document, width=width)
    words = [word for line in lines for word in line.split()]
    assert words == ["a", "x", "y", "a", "if", "x:", "y", "=", "1", "-"]
