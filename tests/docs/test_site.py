"""The built site, by its links and in a real browser; `make docs` builds it."""

import functools
import http.server
import importlib.util
import os
import re
import sys
import threading
from pathlib import Path

import pytest

from support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
SCREENSHOTS = ROOT / "docs" / "_build" / "screenshots"
# One of each kind.
PAGES = {
    "home": "index.html",
    "section": "background/index.html",
    "long": "reproduction.html",
    "example": "gallery/settings/power.html",
    "class": "api/generated/icscm.ICSCMClassifier.html",
}
MORE_PAGES = ["cli.html", "gallery/index.html", "api/closer.html", "changelog.html", "search.html"]


@pytest.fixture(scope="module")
def checker():
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "docs" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def site():
    """Where the site is; ICSCM_NEED_SITE makes its absence an error."""
    if not (SITE / "index.html").exists():
        give_up = pytest.fail if os.environ.get("ICSCM_NEED_SITE") else pytest.skip
        give_up("the site is not built: make docs")
    return SITE


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Tests have no use for it."""


@pytest.fixture(scope="module")
def address(site):
    """Where a plain server shows the site."""
    handler = functools.partial(Silent, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def open_page(browser):
    """Opens a page in a window of its own; whatever it complains of fails the test."""
    contexts, complaints = [], []

    def open_one(url, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    # from file:// a page may not read another, so that what is found comes without an excerpt
    assert [each for each in complaints if not each.startswith(("file:", "Failed to fetch"))] == []


@pytest.mark.thorough
def test_links_lead_somewhere_and_public_names_are_in_the_reference(site, checker):
    pages = checker.read_pages(site.resolve())
    assert len(pages) > 100
    assert list(checker.find_faults(pages)) == []


def test_a_broken_link_is_found(tmp_path, checker):
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "page.html").write_text(
        '<a href="other.html#here">good</a> <a href="other.html#gone">bad</a>'
        '<a href="gone.html">bad</a> <script src="https://example.org/x.js"></script>'
    )
    found = checker.find_faults(checker.read_pages(tmp_path.resolve()))
    faults = [fault.partition(": ")[2] for fault in found]
    assert faults[:3] == [
        "https://example.org/x.js would be fetched from elsewhere",
        "other.html#gone leads nowhere",
        "gone.html leads nowhere",
    ]
    assert len(faults) > 3  # no name is in this reference


def test_the_first_commands_are_those_of_the_readme_which_are_run():
    said = [
        re.search(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[1]
        for page in (ROOT / "docs" / "index.md", ROOT / "README.md")
    ]
    assert said[0].replace("\\\n", "").split() == said[1].split()


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_a_page_without_a_network(scheme, site, address, open_page):
    start = address if scheme == "http" else site.as_uri()
    page = open_page(f"{start}/search.html?q=stability_selection")
    page.locator("#search-results li a").first.wait_for()
    found = page.locator("#search-results li a").evaluate_all("all => all.map(each => each.href)")
    assert any("icscm.stability_selection.html" in each for each in found)


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_reader_prefers(scheme, address, open_page):
    page = open_page(f"{address}/theory.html", color_scheme=scheme)
    shade = "body => getComputedStyle(body).backgroundColor.match(/\\d+/g).map(Number)"
    brightness = sum(page.locator("body").evaluate(shade)[:3]) / 3
    assert brightness > 200 if scheme == "light" else brightness < 60


@pytest.mark.thorough
def test_the_reader_can_switch_to_dark(address, open_page):
    page = open_page(f"{address}/index.html", color_scheme="light")
    html = page.locator("html")
    page.locator(".theme-switch-button:visible").click()
    page.get_by_text("Dark", exact=True).locator("visible=true").click()
    assert html.get_attribute("data-theme") == "dark"


@pytest.mark.thorough
@pytest.mark.parametrize("path", [*PAGES.values(), *MORE_PAGES])
def test_a_telephone_need_not_scroll_sideways(path, address, open_page):
    page = open_page(f"{address}/{path}", width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    outside = """all => all.filter(e => e.getBoundingClientRect().right > 391
        && !e.closest('pre, table, .highlight, .pst-scrollable-table-container, dialog'))
        .map(e => e.outerHTML.slice(0, 80))"""
    assert page.locator(".bd-article *").evaluate_all(outside) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_five_pages_to_look_at(name, address, open_page):
    SCREENSHOTS.mkdir(exist_ok=True)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = open_page(f"{address}/{PAGES[name]}", width=width, color_scheme=scheme)
        shot = page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png")
        assert len(shot) > 10_000  # a blank page takes less
