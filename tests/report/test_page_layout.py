"""What folds on the page and what stays together on paper."""

import re

import pytest
from test_browser import open_page

from icscm import ICSCMClassifier, SCMClassifier
from icscm.report.page import make_report
from support.reports import find_path, fit, make_noise


@pytest.fixture(scope="module")
def long_report():
    """Ten rules, at three levels."""
    data = make_noise(4_000, 4)
    learner = fit(ICSCMClassifier(stop="coverage", max_thresholds=10, pruning=False), *data)
    return make_report(learner, path=find_path(learner, *data, alphas=[1e-6, 0.2, 0.5]))


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


def test_a_rule_that_fits_a_line_is_not_broken(browser, long_report, tmp_path):
    """`age` stood at the end of a line, and `> 66` began the next."""
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        for width in range(400, 1200, 50):
            page.set_viewport_size({"width": width, "height": 800})
            rules = page.locator(".rule code")
            parts = rules.evaluate_all("all => all.map(each => each.getClientRects().length)")
            assert set(parts) <= {0, 1}, width  # none where it is folded
            assert 1 in parts


def test_what_is_folded_is_printed(browser, long_report, tmp_path):
    with open_page(browser, long_report.save(tmp_path / "long.html")) as page:
        n_open = page.locator("details[open]").count()  # the model at the report's own level
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == n_open


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


def test_models_along_alpha_are_summed_up_at_the_top(long_report):
    """That the model is another at every level stood far down the page."""
    page, path = long_report.to_html(), long_report.to_dict()["path"]
    assert len(path["models"]) > 1
    n_shown = len({each["text"] for each in path["models"] if each["n_rules"]})
    assert f"give {n_shown} different models" in path["text"]
    assert page.index(path["text"]) < page.index('id="tree"')
    assert path["text"] in long_report.to_markdown().replace("\\", "")


def test_settings_that_were_chosen_come_first(simulation):
    """Among twenty defaults the two settings that a user had chosen were hard to find."""
    data = simulation.X, simulation.y, simulation.environments
    page = make_report(fit(SCMClassifier(max_rules=2), *data)).to_html()
    chosen, folded = page[page.index('id="task"') :].split("<details>", 1)
    assert re.findall(r"<code>(\w+)</code>", chosen) == ["max_rules"]
    assert "<code>model_type</code>" in folded
    plain = make_report(fit(SCMClassifier(), *data)).to_html()
    assert "The settings of SCMClassifier, all at their defaults" in plain


def test_the_tree_is_told_in_words(long_report):
    """Who does not see the drawing heard that there is a tree, not what is in it."""
    page, summary = long_report.to_html(), long_report.to_dict()
    table = page[page.index("Nodes from the root down") :].split("</table>")[0]
    rows = re.findall(r"<code>(.*?)</code>(?: <small>(.*?)</small>)?", table)
    assert [rule for rule, _ in rows][:2] == ["all samples", rows[1][0]]
    texts = [text for _, text in rows if text]
    leaves = summary["leaves"]
    assert texts == [f"leaf {leaf['number']}: {leaf['predicts']}" for leaf in leaves]
