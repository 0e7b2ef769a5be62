"""Every hostile name, as an environment, a column and a level, in a page, Markdown and a figure."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from icscm import ICSCMClassifier
from icscm.formatting import as_text, clip
from icscm.report.figures import draw_model
from icscm.report.page import make_report
from support.hostile import HOSTILE_NAMES
from support.reports import fit


def learn(names, n_each=40):
    """A rule on a column and one on a level that have these names, which are environments too."""
    rng = np.random.default_rng(0)
    n = n_each * len(names)
    first, last = names[0], names[-1]
    X = pd.DataFrame({first: rng.integers(0, 2, n), last: rng.choice([first, "other"], n)})
    y = ((X[first] == 1) & (X[last] == first)) ^ (rng.random(n) < 0.02)
    learner = ICSCMClassifier(stop="coverage", pruning=False)
    return fit(learner, X, np.where(y, last, "no"), np.repeat(names, n_each))


def list_tags(html):
    return re.findall(r"<(/?[a-zA-Z]+)", html)


@pytest.fixture(scope="module")
def report():
    return make_report(learn(HOSTILE_NAMES), data_name=HOSTILE_NAMES[1])


def test_pages_hold_every_name_as_text(report):
    tame = make_report(learn([f"name {i}" for i in range(len(HOSTILE_NAMES))]), data_name="tame")
    page = report.to_html()
    drawn = {"tspan", "/tspan"}  # longer names take more lines
    wanted, found = (
        sorted(tag for tag in list_tags(html) if tag not in drawn)
        for html in (tame.to_html(), page)
    )
    assert found == wanted
    texts = unescape(re.sub(r"<[^>]*>", "\0", page))
    for name in HOSTILE_NAMES:
        assert clip(as_text(name), 160) in texts
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawing)


def test_markdown_holds_every_name_as_text(report):
    html = MarkdownIt("gfm-like", {"linkify": False}).render(report.to_markdown())
    assert not {*list_tags(html)} & {"script", "img", "svg", "a", "title", "style", "em", "code"}
    texts = " ".join(unescape(re.sub(r"<[^>]*>", "\0", html)).split())
    for name in HOSTILE_NAMES:
        assert " ".join(clip(as_text(name), 160).split()) in texts


def is_special(name):
    """Whether a name holds what could be read as mathematics, or what XML cannot hold."""
    return "$" in name or "\\" in name or not name.isprintable()


BATCHES = [pytest.param([*filter(is_special, HOSTILE_NAMES)], id="special")]
BATCHES += [
    pytest.param(HOSTILE_NAMES[i : i + 16], id=str(i), marks=pytest.mark.thorough)
    for i in range(0, len(HOSTILE_NAMES), 16)
]


@pytest.mark.parametrize("names", BATCHES)
def test_figures_draw_every_name(names):
    ElementTree.fromstring(draw_model(learn(["$\\frac{$", *names])).to_svg())
