"""Hold the built site together: every link inside it leads somewhere, and nothing needs a network.

    python docs/check_site.py docs/_build/html

Prints one line for each fault and the number of links looked at; exits with 1 if there is any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from check_docstrings import find_entries

# What a browser fetches by itself, and must find beside the page.
FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it cannot be shown without."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Called for every element."""
        for name, value in attributes:
            if value and (name == "id" or (tag, name) == ("a", "name")):
                self.anchors.add(value)
            elif value and (tag, name) in FETCHED:
                self.fetched.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.append(value)


def read_pages(site: Path) -> dict[Path, Page]:
    """All pages, by their paths."""
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path: Page(path) for path in sorted(paths)}


def find_faults(pages: dict[Path, Page]) -> Iterator[str]:
    """What is wrong, a line each."""
    for path, page in pages.items():
        for link in page.fetched:
            if not is_inside(link) and not link.startswith("data:"):
                yield f"{path}: {link} would be fetched from elsewhere"
        for link in filter(is_inside, (*page.links, *page.fetched)):
            if not leads_somewhere(pages, path, link):
                yield f"{path}: {link} leads nowhere"
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    for name in find_entries():
        if name not in anchors:
            yield f"{name} is public and not in the reference; list it on a page in docs/api"


def is_inside(link: str) -> bool:
    """Whether a link stays on the site."""
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc


def leads_somewhere(pages: dict[Path, Page], path: Path, link: str) -> bool:
    """Whether the file is there, and the anchor in it."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not parts.fragment or target not in pages:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].anchors


def main(site: Path) -> int:
    """Check all, print what is wrong, and return the exit status."""
    pages = read_pages(site.resolve())
    n_links = sum(len(page.links) + len(page.fetched) for page in pages.values())
    assert n_links, f"there is no site in {site}"
    faults = list(find_faults(pages))
    print(*faults, f"{len(pages)} pages, {n_links:,} links, {len(faults)} at fault.", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
