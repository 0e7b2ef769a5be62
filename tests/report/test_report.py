"""One report as a page, as Markdown and as JSON."""

import json
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from icscm import ICSCMClassifier, SCMClassifier
from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls
from icscm.report.markdown import escape_markdown
from icscm.report.page import MAX_HTML_BYTES, make_report
from support.fitting import PAPER
from support.reports import HOSTILE, REPORTED, find_path, fit, fit_reported, make_noise, report_on


class Page(HTMLParser):
    """Every tag, attribute and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts = Counter(), set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= set(attrs)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", REPORTED)
def test_every_kind_of_learner_has_a_page(name):
    report = report_on(name)
    page = report.to_html()
    text = " ".join("".join(Page(page).texts).split())
    summary = report.to_dict()
    assert summary["headline"]["error"]["answer"] in text
    assert summary["nodes"]["stop_text"] in text
    for leaf in summary["leaves"]:
        assert leaf["condition"] in text
    for line in summary["advice"]["does_not_show"]:
        assert line in text
        assert escape_markdown(line) in report.to_markdown()
    assert json.loads(report.to_json()) == summary
    assert "with the most samples" not in page


def test_the_page_is_whole_in_itself(hostile_report):
    page = Page(hostile_report.to_html())
    assert not page.tags.keys() & {
        "img",
        "iframe",
        "object",
        "embed",
        "audio",
        "video",
        "base",
        "form",
    }
    loading = {value for name, value in page.attributes if name in ("src", "href", "action")}
    assert {value for value in loading if not value.startswith("#")} == {"data:,"}
    assert not {name for name, _ in page.attributes if name.startswith("on") or name == "style"}
    (policy,) = (value for _, value in page.attributes if value and "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_the_style_and_script_load_nothing():
    page = make_report(fit(SCMClassifier(), [[0], [1]] * 9, [0, 1] * 9)).to_html()
    style, script = (
        re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1] for tag in ("style", "script")
    )
    assert not re.search(r"url\(|@import|@font-face", style)
    assert not re.search(r"fetch|XMLHttp|import|innerHTML|eval|document\.write", script)


def test_hostile_names_are_text(hostile, hostile_report):
    html = hostile_report.to_html()
    page = Page(html)
    text = "".join(page.texts)
    assert "<script>alert(1)</script> > 0" in text
    assert "<script>alert('data')</script>.csv" in text
    assert "{{ 7 * 7 }} {% raw %} &lt; > 0" in text
    assert len(re.findall("<script", html)) == len(re.findall("</script", html)) == 1


def test_hostile_names_change_no_markup(hostile, hostile_report):
    """The same data under harmless names that sort alike have the same elements."""
    X, y, environments = hostile
    tame = X.set_axis([f"column {i}" for i in range(X.shape[1])], axis="columns")
    _, sites = np.unique(environments, return_inverse=True)
    samples = tame, y != "<i>no</i>", sites
    learner = fit(ICSCMClassifier(stop="coverage", **PAPER), *samples)
    report = make_report(
        learner, data_name="a", dropped={"b": "c"}, path=find_path(learner, *samples)
    )
    wanted, found = Page(report.to_html()).tags, Page(hostile_report.to_html()).tags
    lines = "tspan"  # longer names take more lines in the drawing
    assert {tag: n for tag, n in found.items() if tag != lines} == {
        tag: n for tag, n in wanted.items() if tag != lines
    }


@pytest.mark.parametrize("kind", ["commonmark", "gfm-like"])
def test_markdown_shows_names_as_text(kind, hostile_report):
    parser = MarkdownIt(kind, {"linkify": False}).enable("table")
    html = parser.render(hostile_report.to_markdown())
    allowed = {"h1", "h2", "h3", "p", "ul", "li", "strong", "blockquote"}
    allowed |= {"table", "thead", "tbody", "tr", "th", "td"}
    page = Page(html)
    assert page.tags.keys() <= allowed
    text = "".join(page.texts)
    for name in HOSTILE[:5]:
        assert f"{escape_controls(name)} " in text
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.S)
    assert len(rows) > 50
    assert not any("<td></td>" * 2 in row for row in rows)


def test_markdown_tables_keep_their_columns(hostile_report):
    tables = re.split(r"\n\n", hostile_report.to_markdown())
    n_tables = 0
    for table in tables:
        lines = table.splitlines()
        if len(lines) > 2 and lines[1].startswith("|-"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(widths) == 1, table
            n_tables += 1
    assert n_tables > 10


@pytest.mark.thorough
def test_sixty_environments_and_ten_rules_stay_small():
    samples = make_noise(6_000, 60)
    settings = {**PAPER, "pruning": False}
    learner = fit(ICSCMClassifier(stop="coverage", max_thresholds=10, **settings), *samples)
    assert len(learner.model_) == 10
    page = make_report(learner, path=find_path(learner, *samples)).to_html()
    assert len(page.encode()) < MAX_HTML_BYTES / 3
    assert "with the most samples" not in page


@pytest.mark.parametrize(
    ("n_rows", "n_drawn", "n_environments"),
    [(2_000, 210, 210), pytest.param(9_000, 3_000, 2_853, marks=pytest.mark.thorough)],
)
def test_very_many_environments_are_cut_short_and_said_to_be(n_rows, n_drawn, n_environments):
    learner = fit(SCMClassifier(max_rules=2, max_thresholds=5), *make_noise(n_rows, n_drawn))
    report = make_report(learner)
    page, summary = report.to_html(), report.to_dict()
    assert len(page.encode()) < MAX_HTML_BYTES
    assert f"Shown are the 200 with the most samples of {n_environments:,}" in " ".join(
        page.split()
    )
    for table in page.split("<table")[1:]:
        assert table.split("</table>")[0].count("<tr") <= 202  # with those of titles and of all
    assert summary["task"]["n_environments"] == n_environments
    assert len(summary["leaves"][0]["environments"]) == n_environments


@pytest.mark.parametrize(
    ("n_columns", "n_environments"), [(20, 60), pytest.param(80, 300, marks=pytest.mark.thorough)]
)
def test_absurd_names_and_numbers_of_rules_stay_below_the_limit(n_columns, n_environments):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (1_500, n_columns)))
    X.columns = [f"{i} " + "<x&" * 3_000 for i in range(n_columns)]
    y, environments = rng.integers(0, 2, 1_500), rng.integers(0, n_environments, 1_500)
    learner = fit(SCMClassifier(max_rules=80), X, y, [f"{k} " + "&" * 2_000 for k in environments])
    assert len(learner.model_) > 6
    assert len(make_report(learner).to_html().encode()) < MAX_HTML_BYTES


def test_a_page_is_no_shorter_than_it_must_be(monkeypatch, hostile_report):
    """Limits are halved only while the page is too large."""
    whole = hostile_report.to_html()
    n_bytes = len(whole.encode())
    monkeypatch.setattr("icscm.report.page.MAX_HTML_BYTES", n_bytes)
    assert hostile_report.to_html() == whole
    monkeypatch.setattr("icscm.report.page.MAX_HTML_BYTES", n_bytes - 1)
    assert len(hostile_report.to_html().encode()) < n_bytes
    monkeypatch.setattr("icscm.report.page.MAX_HTML_BYTES", 1)  # impossible: as short as can be
    assert len(hostile_report.to_html()) < 0.8 * len(whole)


@pytest.mark.parametrize("ending", [".html", ".md", ".json", ".HTML"])
def test_save_writes_by_the_ending(ending, tmp_path):
    path = tmp_path / f"report{ending}"
    report = report_on("greedy")
    assert report.save(path) == path
    texts = {".html": report.to_html(), ".md": report.to_markdown(), ".json": report.to_json()}
    assert path.read_text(encoding="utf-8") == texts[ending.lower()]
    with pytest.raises(IcscmError, match="exists"):
        report.save(path)
    report.save(str(path), force=True)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_save_refuses_other_endings_before_writing(tmp_path):
    with pytest.raises(IcscmError, match=r"as \.html, \.md or \.json; 'report\.pdf'"):
        report_on("greedy").save(tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())


def test_the_same_learner_gives_the_same_page():
    again = make_report(fit_reported("greedy"))
    assert again.to_html() == report_on("greedy").to_html()


def test_to_dict_is_a_copy():
    report = report_on("greedy")
    report.to_dict()["model"]["text"] = "changed"
    assert report.to_dict()["model"]["text"] != "changed"


def test_in_a_notebook_it_is_a_frame_around_the_page(hostile_report):
    inline = hostile_report._repr_html_()
    page = Page(inline)
    assert page.tags == {"div": 1, "p": 1, "iframe": 1}
    attributes = dict(page.attributes)
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == hostile_report.to_html()
    assert "Trust this notebook" in unescape(inline)
    assert repr(hostile_report).startswith("<icscm report: ")


def test_headings_descend_one_at_a_time():
    for name in REPORTED:
        levels = [int(level) for level in re.findall(r"<h([1-6])", report_on(name).to_html())]
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_ids_are_unique_and_references_resolve(hostile_report):
    html = hostile_report.to_html()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for attribute in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
        for value in re.findall(rf'\b{attribute}="([^"]+)"', html):
            assert set(value.split()) <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_every_table_has_a_caption_and_headers_with_scope(hostile_report):
    html = hostile_report.to_html()
    assert html.count("<caption") == html.count("<table") > 8
    assert not re.findall(r"<th(?![^>]*scope=)[ >]", html)


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
    samples = simulation.X, simulation.y, simulation.environments
    page = make_report(fit(SCMClassifier(max_rules=2), *samples)).to_html()
    chosen, folded = page[page.index('id="task"') :].split("<details>", 1)
    assert re.findall(r"<code>(\w+)</code>", chosen) == ["max_rules"]
    assert "<code>model_type</code>" in folded
    plain = report_on("plain").to_html()
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
