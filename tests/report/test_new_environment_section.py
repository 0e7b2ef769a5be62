"""The report's part on an environment not seen: on the page, in Markdown and on the terminal."""

import numpy as np
import pytest

from icscm import SCMClassifier
from icscm.cli.show import render_saved
from icscm.model.saved import make_saved_model
from icscm.stats.new_environments import make_expectations
from support.reports import print_parts, print_report

TITLE = "rediction interval"


def fit(n_environments, n=4000):
    rng = np.random.default_rng(0)
    x, e = rng.integers(0, 2, n), rng.integers(0, n_environments, n)
    log_odds = np.where(x, 1.5, -2.0) + rng.normal(0, 0.4, n_environments)[e]
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return SCMClassifier(max_rules=1).fit(x[:, np.newaxis], y, environments=e)


@pytest.fixture(scope="module")
def learner():
    return fit(7)


def test_the_summary_holds_the_intervals(learner):
    summary = learner.report().to_dict()
    wanted = make_expectations(learner.model_.leaves)
    for leaf, expected in zip(summary["leaves"], wanted, strict=True):
        assert tuple(leaf["new_interval"]) == expected.interval
        assert tuple(leaf["known_interval"]) == expected.known_interval
        assert (leaf["tau"], leaf["i2"], leaf["new_reason"]) == (expected.tau, expected.i2, None)
    assert summary["new_environments"]["leaves"] == [1, 2]
    totals = np.array(learner.model_.leaves).sum(axis=0)
    (overall,) = make_expectations([totals])
    assert tuple(summary["new_environments"]["overall"]["new_interval"]) == overall.interval


def test_page_markdown_and_terminal_say_the_same(learner):
    report = learner.report()
    leaf = report.to_dict()["leaves"][0]
    ends = leaf["new_interval"], leaf["known_interval"]
    texts = [f"{low:.1%} to {high:.1%}" for low, high in ends]
    shown = print_report(report)
    for rendering in (report.to_html(), report.to_markdown(), shown):
        assert TITLE in rendering
        assert all(text in rendering for text in texts)
        assert "at a new site" in " ".join(rendering.split()).lower()
        assert "measured or selected differently" in " ".join(rendering.split())


def test_two_environments_say_that_they_cannot_tell():
    report = fit(2).report()
    assert report.to_dict()["new_environments"]["leaves"] == []
    shown = print_report(report)
    for rendering in (report.to_html(), report.to_markdown(), shown):
        assert "No prediction interval from 2 environments" in " ".join(rendering.split())


def test_no_environments_say_so():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (100, 1))
    report = SCMClassifier().fit(x, x[:, 0] ^ (rng.random(100) < 0.1)).report()
    assert "the data have no environments" in report.to_dict()["new_environments"]["text"]
    assert TITLE in report.to_html()


def test_leaves_that_too_few_environments_share_are_counted():
    """Three environments have samples, but only one leaf has samples of all of them."""
    rng = np.random.default_rng(0)
    x, e = np.repeat([0, 1, 0, 1], 60), np.repeat([0, 0, 1, 2], 60)
    x[130:140] = 1
    y = rng.random(240) < 0.2 + 0.6 * x
    report = SCMClassifier(max_rules=1).fit(x[:, np.newaxis], y, environments=e).report()
    elsewhere = report.to_dict()["new_environments"]
    assert len(elsewhere["leaves"]) == 1
    assert "no interval: fewer than three" in elsewhere["unknown_text"]
    assert elsewhere["unknown_text"] in report.to_html()


def test_show_says_it_for_each_leaf(learner):
    shown = print_parts(render_saved(make_saved_model(learner), 3))
    assert shown.count("95% prediction interval at a new site:") == 2
    assert " ".join(shown.split()).count("at a new site with the rate of training:") == 2
    assert "no prediction interval for a new environment: Only two environments" in " ".join(
        print_parts(render_saved(make_saved_model(fit(2)), 3)).split()
    )
