"""What results show of themselves: readable as text, and in a notebook."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out, stability_selection
from icscm._repr import Display, DisplayMixin
from icscm.datasets import make_conjunction
from icscm.model.rules import CategoryRule
from icscm.model.tree import make_chain
from icscm.validation.checkup import check_environments


@pytest.fixture(scope="module")
def data():
    return make_conjunction(1_000, 2, n_environments=4, random_state=1)


@pytest.fixture(scope="module")
def learner(data):
    return ICSCMClassifier().fit(data.X, data.y, environments=data.environments)


@pytest.fixture(scope="module")
def results(data, learner):
    asked = data.X, data.y, data.environments
    plain = SCMClassifier(max_rules=2)
    return {
        "model": learner.model_,
        "trace": learner.trace_,
        "verdicts": learner.verdicts_,
        "verdict": learner.verdicts_[0],
        "transfer": leave_one_environment_out(plain, *asked[:2], environments=asked[2]),
        "stability": stability_selection(
            plain, *asked[:2], environments=asked[2], n_resamples=4, random_state=0
        ),
        "check-up": check_environments(*asked[:2], environments=asked[2]),
    }


@pytest.mark.parametrize(
    "name", ["model", "trace", "verdicts", "verdict", "transfer", "stability", "check-up"]
)
def test_results_are_readable(name, results):
    """Each was one line of nested tuples, thousands of characters long."""
    text, page = repr(results[name]), results[name]._repr_html_()
    assert len(text.splitlines()) < 30
    assert max(map(len, text.splitlines())) < 160 or name == "check-up"
    assert "=" not in text.splitlines()[0]
    assert page.startswith("<p>")


def test_lines_end_in_a_notebook_without_saying_so():
    r"""A notebook said of a path "this one's tolerance.\nAn environment left out shows"."""

    class Result(DisplayMixin):
        def _display(self):
            return Display("one\ntwo\x1b", ["name"], [["a\nb"]])

    page = Result()._repr_html_()
    assert "<p>one\ntwo\\x1b</p>" in page
    assert "a\\nb" in page  # a name is one line, whatever it holds


def test_a_model_tells_its_leaves(results):
    line, header, *rows = repr(results["model"]).splitlines()
    assert line == "Conjunction: A1 > 0 and C1 > 0"
    assert header.split() == ["leaf", "predicts", "samples", "positive", "rate"]
    assert len(rows) == 3
    assert rows[0].startswith("not met: A1 > 0  negative")


def test_verdicts_are_still_a_tuple(learner):
    assert learner.verdicts_ == learner.trace_.verdicts
    assert pickle.loads(pickle.dumps(learner.verdicts_)) == learner.verdicts_
    assert copy.deepcopy(learner.verdicts_) == learner.verdicts_


def test_hostile_names_are_text():
    rule = CategoryRule(0, "<script>\x1b[2J", ("<b>",), equal=True)
    model = make_chain("conjunction", (rule,), (((1, 1), (0, 0)), ((0, 0), (1, 1))))
    assert "<script>" not in model._repr_html_()
    assert "\x1b" not in repr(model) + model._repr_html_()


def test_long_tables_say_that_they_are_cut():
    X = pd.DataFrame({"x": np.arange(4_000) % 2})
    rng = np.random.default_rng(0)
    found = check_environments(X, rng.integers(0, 2, 4_000), environments=np.arange(4_000) % 40)
    assert repr(found).endswith("and 10 more")
