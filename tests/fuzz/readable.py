"""Texts that people read: what a name must not have brought into a terminal, a page or a figure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from fuzz.judging import find_json_faults

# A name of two lines, as `support.hostile.ROLE_NAMES` has them, that was broken between the two.
_BROKEN_NAME = re.compile(r"alphaline\s*[\n\r]\s*betaline")
# A bar between two cells of a table in Markdown.
_BAR = re.compile(r"(?<!\\)\|")


def find_reading_faults(path: Path) -> list[str]:
    """What is wrong with a file that was written for people, by its ending."""
    text = path.read_bytes().decode("utf-8")
    if path.suffix == ".json":
        return find_json_faults(text, path.name)
    faults = find_text_faults(text)
    if path.suffix == ".html":
        faults += find_page_faults(text)
    elif path.suffix == ".md":
        faults += find_markdown_faults(text)
    elif path.suffix == ".svg":
        faults += find_svg_faults(text)
    return [f"{fault} in a file {path.suffix}" for fault in faults]


def find_text_faults(text: str) -> list[str]:
    """Characters that do not print, and names that are broken over two lines."""
    faults = []
    allowed = {"\n", "\xa0"}  # our pages keep numbers and their units together
    unprintable = sorted({char for char in text if not char.isprintable()} - allowed)
    if unprintable:
        faults.append(f"unprintable {''.join(unprintable)!r}")
    if _BROKEN_NAME.search(text):
        faults.append("a name on two lines")
    return faults


def find_page_faults(text: str) -> list[str]:
    """Elements and scripts that no template has."""
    page = _Page()
    page.feed(text)
    return page.faults


def find_markdown_faults(text: str) -> list[str]:
    """Elements that Markdown made of names, and tables whose rows differ in their cells."""
    from markdown_it import MarkdownIt

    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    faults = find_page_faults(page)
    if re.search("<(a|em)[ >]", page):
        faults.append("a name became a link or emphasis")

    n_bars_above = None
    for line in text.splitlines():
        n_bars = len(_BAR.findall(line)) if line.startswith("|") else None
        if None not in (n_bars, n_bars_above) and n_bars != n_bars_above:
            faults.append(f"a row of {n_bars} bars below one of {n_bars_above}")
            break
        n_bars_above = n_bars
    return faults


def find_svg_faults(text: str) -> list[str]:
    """No XML, or elements that no figure has."""
    try:
        figure = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [f"no XML: {error}"]
    tags = {element.tag.rpartition("}")[2] for element in figure.iter()}
    return [f"an element <{tag}>" for tag in sorted(tags & {"script", "img", "a", "image"})]


class _Page(HTMLParser):
    """Looks for what a name must not have brought into a page."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        if tag == "img" or any(name.startswith("on") for name, _ in attrs):
            self.faults.append(f"a name became <{tag}> in the report: {attrs!r:.100}")

    def handle_data(self, data: str) -> None:
        if self._tag == "script" and "alert(1)" in data and "<script>" not in data:
            self.faults.append("a name became a script in the report")
