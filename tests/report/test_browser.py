"""The pages of a report and of an evaluation in a real browser: one short path, then all of it."""

import io
from contextlib import contextmanager

import pytest
from PIL import Image

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier, evaluate
from icscm.report.page import make_report
from icscm.validation.path import tolerance_path
from support.fitting import PAPER
from support.reports import find_path, fit, make_noise, make_sites


@pytest.fixture(scope="module")
def hostile_file(hostile_report, tmp_path_factory):
    return hostile_report.save(tmp_path_factory.mktemp("report") / "hostile.html")


@contextmanager
def open_page(browser, path, width=1280, **options):
    """A page with a record of all that it did besides showing itself."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    page = context.new_page()
    page.set_default_timeout(600_000)
    page.record = []
    page.on("console", lambda message: page.record.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: page.record.append(f"error: {error}"))
    page.on("request", lambda request: page.record.append(f"request: {request.url}"))
    page.on("dialog", lambda dialog: (page.record.append("dialog"), dialog.dismiss()))
    page.goto(path.as_uri())
    yield page
    context.close()


def list_shown(page):
    return page.eval_on_selector_all(
        "#views > .view", "views => views.filter(v => v.offsetHeight > 0).map(v => v.id)"
    )


# Contrast as WCAG defines it, of every element that holds text itself, against the nearest
# background that is not transparent. Drawings are asked for their fill.
FIND_CONTRASTS = """() => {
  const power = c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const channel = c => power(c / 255);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *:not(script):not(svg *)")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 80)]);
  }
  const paper = light(ground(document.body));
  for (const text of document.querySelectorAll("svg.axis text, svg.tree text:not(.positive)")) {
    if (!text.getClientRects().length) continue;
    const a = light(parse(getComputedStyle(text).fill));
    found.push([(Math.max(a, paper) + 0.05) / (Math.min(a, paper) + 0.05), "svg text"]);
  }
  for (const text of document.querySelectorAll("svg.tree text.positive")) {
    if (!text.getClientRects().length) continue;
    const box = text.previousElementSibling;
    const [a, b] = [text, box].map(e => light(parse(getComputedStyle(e).fill)));
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), "positive leaf"]);
  }
  return found;
}"""


def test_a_report_works_on_a_phone(browser, hostile_file, hostile_report):
    """One page, opened once: silent, fits, models open by key, readable, whole on paper."""
    models = hostile_report.to_dict()["path"]["models"]
    with open_page(browser, hostile_file, width=390) as page:
        page.keyboard.press("Tab")
        assert page.locator(".skip").evaluate("link => link === document.activeElement")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator("h1").inner_text().endswith("in every environment (<u>site)")
        assert "<script>alert(1)</script> > 0" in page.locator(".hero").inner_text()
        assert page.locator("main script, img").count() == 0

        number = next(i for i, model in enumerate(models) if not model["is_own"])
        view = page.locator(f"#view-{number}")
        table = view.get_by_role("table").first
        assert not table.is_visible()
        view.locator("summary").focus()
        page.keyboard.press("Enter")
        assert table.is_visible()

        contrasts = page.evaluate(FIND_CONTRASTS)
        assert len(contrasts) > 200
        assert min(contrasts)[0] >= 4.5, min(contrasts)

        page.emulate_media(media="print")
        assert len(list_shown(page)) == len(models)
        assert not page.locator("nav").is_visible()
        assert page.record == [f"request: {hostile_file.as_uri()}"]


@pytest.mark.thorough
def test_it_loads_in_silence_and_hostile_names_do_nothing(browser, hostile_file):
    with open_page(browser, hostile_file) as page:
        page.wait_for_timeout(300)
        page.focus("#views summary")
        page.keyboard.press("Enter")
        assert page.record == [f"request: {hostile_file.as_uri()}"]
        assert (
            page.locator("h1").inner_text()
            == "A rule tested for invariance in every environment (<u>site)"
        )
        assert "<script>alert(1)</script> > 0" in page.locator(".hero").inner_text()
        assert page.locator("main script").count() == 0
        assert page.locator("img").count() == 0


@pytest.mark.thorough
def test_the_model_of_the_report_is_open_and_others_open_by_key(
    browser, hostile_file, hostile_report
):
    models = hostile_report.to_dict()["path"]["models"]
    assert len(models) > 2
    with open_page(browser, hostile_file) as page:
        views = page.locator("#views > .view")
        assert views.count() == len(models)
        for view, model in zip(views.all(), models, strict=True):
            table = view.get_by_role("table").first
            assert table.is_visible() == model["is_own"]
            if not model["is_own"]:
                view.locator("summary").focus()
                page.keyboard.press("Enter")
                assert table.is_visible()


@pytest.mark.thorough
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_fits_the_screen_and_is_not_blank(width, browser, hostile_file):
    with open_page(browser, hostile_file, width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        picture = Image.open(io.BytesIO(page.screenshot()))
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 20)
        assert len(colours) > 50
        assert max(n for n, _ in colours) < 0.97 * picture.width * picture.height


@pytest.mark.thorough
def test_wide_tables_scroll_by_themselves_and_take_the_focus(browser, hostile_file):
    with open_page(browser, hostile_file, width=320) as page:
        regions = page.eval_on_selector_all(
            ".scroll", "all => all.map(r => [r.tabIndex, r.scrollWidth > r.clientWidth])"
        )
        assert len(regions) > 4
        assert all(index == 0 for index, _ in regions)
        assert any(is_wide for _, is_wide in regions)


@pytest.mark.thorough
def test_the_skip_link_comes_first_and_focus_is_seen(browser, hostile_file):
    with open_page(browser, hostile_file) as page:
        page.keyboard.press("Tab")
        link = page.locator(".skip")
        assert link.evaluate("each => each === document.activeElement")
        assert link.bounding_box()["x"] >= 0
        assert link.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme, browser, hostile_file):
    with open_page(browser, hostile_file, color_scheme=scheme) as page:
        contrasts = page.evaluate(FIND_CONTRASTS)
    assert len(contrasts) > 200
    assert min(contrasts)[0] >= 4.5, min(contrasts)


@pytest.mark.thorough
def test_dark_is_dark(browser, hostile_file):
    grounds = {}
    for scheme in ("light", "dark"):
        with open_page(browser, hostile_file, color_scheme=scheme) as page:
            picture = Image.open(io.BytesIO(page.screenshot())).convert("L")
            grounds[scheme] = picture.getpixel((5, 400))
    assert grounds["light"] > 240
    assert grounds["dark"] < 40


@pytest.mark.thorough
def test_print_shows_every_section_and_no_controls(browser, hostile_file, hostile_report):
    with open_page(browser, hostile_file, color_scheme="dark") as page:
        page.emulate_media(media="print")
        n_models = len(hostile_report.to_dict()["path"]["models"])
        assert len(list_shown(page)) == n_models
        assert not page.locator("nav").is_visible()
        assert page.locator("main > section").count() == 9
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert len(page.pdf()) > 20_000


@pytest.mark.thorough
def test_screen_readers_find_names_and_roles(browser, hostile_file, hostile_report):
    with open_page(browser, hostile_file) as page:
        assert page.get_by_role("navigation", name="Contents").count() == 1
        assert page.get_by_role("main").count() == 1
        nodes = page.get_by_role("table", name="Nodes from the root down")
        n_rules = hostile_report.to_dict()["model"]["n_rules"]
        assert nodes.get_by_role("rowheader").count() == 2 * n_rules + 1
        leaf = page.get_by_role("table", name="in leaf 1")
        assert leaf.get_by_role("rowheader").count() == 6


@pytest.mark.thorough
def test_in_a_notebook_the_frame_works_and_nothing_leaks(browser, hostile_report, tmp_path):
    path = tmp_path / "notebook.html"
    own = "<!DOCTYPE html><meta charset='utf-8'><link rel='icon' href='data:,'><p id='own'>own</p>"
    path.write_text(own + hostile_report._repr_html_(), encoding="utf-8")
    with open_page(browser, path) as page:
        frame = page.frame_locator("iframe")
        frame.locator("#views summary").first.focus()
        page.keyboard.press("Enter")
        assert frame.locator("#view-0 table").first.is_visible()
        font = page.evaluate("getComputedStyle(document.getElementById('own')).fontFamily")
        assert "system-ui" not in font
        own_requests = [f"request: {path.as_uri()}", "request: about:srcdoc"]
        assert [each for each in page.record if each not in own_requests] == []


@pytest.mark.thorough
def test_many_environments_fit_as_well(browser, tmp_path):
    X, y, environments = make_noise(4_000, 60)
    learner = fit(ICSCMClassifier(stop="coverage", max_thresholds=10), X, y, environments)
    report = make_report(learner, path=find_path(learner, X, y, environments, alphas=[0.01]))
    path = report.save(tmp_path / "many.html")
    with open_page(browser, path, width=320) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert page.record == [f"request: {path.as_uri()}"]


@pytest.fixture(scope="module")
def tree_file(tmp_path_factory):
    samples = make_sites()
    tree = fit(InvariantTreeClassifier(), *samples)
    X, y, site = samples
    path = tolerance_path(tree, X, y, environments=site, leave_one_out=False)
    report = tree.report(path=path, data_name="sites")
    return report.save(tmp_path_factory.mktemp("report") / "tree.html")


@pytest.mark.thorough
@pytest.mark.parametrize("width", [320, 400, 1280])
def test_a_tree_fits_the_screen_and_is_drawn(width, browser, tree_file):
    with open_page(browser, tree_file, width=width) as page:
        assert page.record == [f"request: {tree_file.as_uri()}"]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        rows = page.locator(".hero .grown tbody tr")  # first on the page, before any number
        assert rows.count() >= 5
        heights = [rows.nth(i).bounding_box()["height"] for i in range(rows.count())]
        assert max(heights) < 110
        bars = page.eval_on_selector_all(
            ".grown .bar", "all => all.map(each => each.getBoundingClientRect().width)"
        )
        assert len(bars) == rows.count()
        assert max(bars) > 10
        assert page.locator(".effects .dot").count() >= 8
        path = page.locator('svg[aria-label^="Deviance explained"]')
        assert path.locator("circle.pooled").count() == 1
        assert "without code" in path.text_content()


@pytest.mark.thorough
def test_an_evaluation_is_not_cut_off_at_1200_pixels(browser, tmp_path):
    """Twelve measures stood side by side, and the last of them were out of sight."""
    X, y, environments = make_noise(400, 3)
    learner = fit(SCMClassifier(max_rules=2), X, y, environments)
    path = tmp_path / "evaluation.html"
    path.write_text(evaluate(learner, X, y, environments=environments).to_html(), encoding="utf-8")
    with open_page(browser, path, width=1200) as page:
        rooms = page.eval_on_selector_all(
            ".scroll", "all => all.map(each => [each.scrollWidth, each.clientWidth])"
        )
    assert len(rooms) == 3
    assert all(needed <= given for needed, given in rooms)


@pytest.mark.thorough
def test_long_rules_fold(browser, long_report, tmp_path):
    """A rule of ten unitigs filled the whole first screen."""
    rules = long_report.to_dict()["model"]["simple_rules"]
    assert len(rules) > 6
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        hero = page.locator(".rule")
        height = hero.bounding_box()["height"]
        assert height < 200
        assert f"and {len(rules) - 2} more" in hero.inner_text()
        assert rules[-1] not in hero.inner_text()
        page.locator(".rule summary").click()
        assert rules[-1] in hero.inner_text()
        assert hero.bounding_box()["height"] > height


@pytest.mark.thorough
def test_a_rule_that_fits_a_line_is_not_broken(browser, long_report, tmp_path):
    """`age` stood at the end of a line, and `> 66` began the next."""
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        for width in range(400, 1200, 50):
            page.set_viewport_size({"width": width, "height": 800})
            rules = page.locator(".rule code")
            parts = rules.evaluate_all("all => all.map(each => each.getClientRects().length)")
            assert set(parts) <= {0, 1}, width  # none where it is folded
            assert 1 in parts


@pytest.mark.thorough
def test_what_is_folded_is_printed(browser, long_report, tmp_path):
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        n_open = page.locator("details[open]").count()  # the model at the report's own level
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == n_open


@pytest.mark.thorough
def test_labels_and_values_are_not_parted_on_paper(browser, long_report, tmp_path):
    """A page ended after "p-value", and the next began with the number."""
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        page.emulate_media(media="print")
        for selector in ("article.leaf", ".numbers", "tr", "dd"):
            style = "e => getComputedStyle(e).breakInside"
            assert page.locator(selector).first.evaluate(style) == "avoid"
        assert page.locator("dt").first.evaluate("e => getComputedStyle(e).breakAfter") == "avoid"
        row = page.locator(".grown tbody tr").first
        assert row.evaluate("e => getComputedStyle(e).breakInside") == "avoid"


@pytest.fixture(scope="module")
def evaluation_file(hostile, tmp_path_factory):
    """A model under hostile names, judged on the data it was learned from."""
    X, y, environments = hostile
    found = evaluate(
        fit(ICSCMClassifier(**PAPER), X, y, environments), X, y, environments=environments
    )
    path = tmp_path_factory.mktemp("evaluation") / "page.html"
    path.write_text(found.to_html(), encoding="utf-8")
    return path


@pytest.mark.thorough
def test_an_evaluation_loads_in_silence_and_hostile_names_do_nothing(browser, evaluation_file):
    with open_page(browser, evaluation_file) as page:
        page.wait_for_timeout(200)
        assert page.record == [f"request: {evaluation_file.as_uri()}"]
        assert page.locator("script, img").count() == 0
        assert page.locator("circle.dot").count() > 5
        assert page.locator("circle.compared").count() > 3
        assert page.locator("polyline").count() > 5
        assert "<script>" in page.locator("main").inner_text()


@pytest.mark.thorough
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_of_an_evaluation_sticks_out_and_colours_follow(
    browser, evaluation_file, width, scheme
):
    with open_page(browser, evaluation_file, width=width, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(21, 23, 26)") == (scheme == "dark")
