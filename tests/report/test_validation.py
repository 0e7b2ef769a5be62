"""The page of an evaluation, in a real browser."""

import pytest
from test_browser import open_page

from icscm import ICSCMClassifier, evaluate
from support.fitting import PAPER
from support.reports import fit


@pytest.fixture(scope="module")
def page_file(hostile, tmp_path_factory):
    """A model under hostile names, judged on the data it was learned from."""
    X, y, environments = hostile
    found = evaluate(fit(ICSCMClassifier(**PAPER), X, y, environments), X, y, environments)
    path = tmp_path_factory.mktemp("evaluation") / "page.html"
    path.write_text(found.to_html(), encoding="utf-8")
    return path


def test_it_loads_in_silence_and_hostile_names_do_nothing(browser, page_file):
    with open_page(browser, page_file) as page:
        page.wait_for_timeout(200)
        assert page.record == [f"request: {page_file.as_uri()}"]
        assert page.locator("script, img").count() == 0
        assert page.locator("circle.one").count() > 5
        assert page.locator("circle.beside").count() > 3
        assert page.locator("polyline").count() > 5
        assert "<script>" in page.locator("main").inner_text()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_colours_follow(browser, page_file, width, scheme):
    with open_page(browser, page_file, width=width, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(21, 23, 26)") == (scheme == "dark")
