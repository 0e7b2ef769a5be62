"""The tree and the leaf rates as a figure."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from icscm import SCMClassifier
from icscm.drawing import Figure
from icscm.drawing.axes import Scale, make_share_axis
from icscm.drawing.shapes import Role
from icscm.exceptions import IcscmError
from icscm.report.figures import draw_model
from support.drawings import find_dots, find_texts, list_shapes, parse
from support.reports import ZOO, fit, fit_reported, make_noise


@cache
def draw_reported(name):
    """The figure of a learner that reports are made of, drawn once."""
    return draw_model(fit_reported(name))


@pytest.mark.parametrize("name", ZOO)
def test_every_kind_of_learner_is_drawn(name):
    learner, figure = fit_reported(name), draw_reported(name)
    assert isinstance(figure, Figure)
    parse(figure)
    texts = find_texts(figure)
    for rule in learner.rules_:
        assert f"{rule}?" in texts
    n_leaves = len(learner.model_) + 1
    assert sum(text.startswith("leaf ") for text in texts) == n_leaves
    assert sum(text == "4" for text in texts) == n_leaves  # an environment's name


def test_dots_stand_at_the_rates():
    figure = draw_reported("greedy")
    rates = [rate for verdict in fit_reported("greedy").verdicts_ for rate in verdict.rates]
    ticks = find_ticks(figure)
    low, high = min(ticks), max(ticks)
    scale = Scale(make_share_axis([low, high]), start=ticks[low], end=ticks[high])
    dots = [dot.centre.x for dot in find_dots(figure)]
    assert dots == pytest.approx([scale.place(rate) for rate in rates])


def find_ticks(figure):
    """The marks of the axis of rates: each share with its position."""
    texts = [shape for shape in list_shapes(figure) if getattr(shape, "role", "") is Role.TICK]
    return {float(text.text.rstrip("%")) / 100: text.position.x for text in texts}


def test_without_environments_and_without_rules():
    plain = draw_reported("without environments")
    assert any(text.startswith("leaf 1") for text in find_texts(plain))
    empty = draw_reported("nothing found")
    parse(empty)
    assert any("not invariant" in text for text in find_texts(empty))


def test_many_environments_are_named():
    """From the thirteenth environment on, no dot had a name."""
    learner = fit(SCMClassifier(max_rules=1, max_thresholds=5), *make_noise(1_500, 60))
    figure = draw_model(learner)
    assert [text for text in find_texts(figure) if text.isdecimal()] == [*map(str, range(60))] * 2


def make_rare(names=("r10", "r2", "r1")):
    """A rate of 4 %, in three environments of different sizes."""
    rng = np.random.default_rng(4)
    environments = np.array(names)[rng.choice(3, 9_000, p=[0.2, 0.5, 0.3])]
    x = rng.integers(0, 2, 9_000)
    y = rng.random(9_000) < np.select(
        [environments == "r10", environments == "r2"], [0.05, 0.04], 0.03
    )
    return pd.DataFrame({"x": x}), y.astype(int), environments


def find_names(figure):
    """What stands beside the dots of the first leaf."""
    shapes = list_shapes(figure)
    return [each.text for each in shapes if getattr(each, "anchor", "") == "end"][:3]


@pytest.mark.parametrize(
    ("order", "names"), [("name", "r1 r2 r10"), ("size", "r2 r1 r10"), ("rate", "r1 r2 r10")]
)
def test_environments_stand_in_the_order_asked_for(order, names):
    """r10 stood before r2, and there was no other order."""
    learner = fit(SCMClassifier(max_rules=1, p=0.01), *make_rare())
    assert find_names(draw_model(learner, order=order)) == names.split()


def test_the_axis_is_as_wide_as_the_rates():
    """On an axis from 0 to 100 % the environments of a rare disease were one line."""
    figure = draw_model(fit(SCMClassifier(max_rules=1, p=0.01), *make_rare()))
    assert {*find_ticks(figure)} == {0.0, 0.02, 0.04, 0.06, 0.08, 0.1}


def test_an_unknown_order():
    with pytest.raises(IcscmError, match="order must be one of 'name', 'size', 'rate'; got 'big'"):
        fit_reported("plain").plot(order="big")


def test_columns_name_the_label_and_the_environment():
    """Report and figure said `label` and `environment` of a Series called otherwise."""
    X, y, environments = make_rare()
    columns = pd.Series(y, name="ill"), pd.Series(environments, name="region")
    learner = fit(SCMClassifier(max_rules=1, p=0.01), X, *columns)
    asked = learner.report().to_dict()["task"]
    assert (asked["target"], asked["environment"]) == ("ill", "region")
    asked = learner.report(target="sick").to_dict()["task"]
    assert (asked["target"], asked["environment"]) == ("sick", "region")
    assert fit(learner, X, y, environments).report().to_dict()["task"]["target"] == "label"


def test_names_are_text_whatever_they_hold():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"$\\frac{1}$ \\oops {": x})
    y = np.array(["$\\no$", "$\\yes$"])[x ^ (rng.random(200) < 0.1)]
    figure = draw_model(fit(SCMClassifier(), frame, y, ["$\\a$", "$\\b$"] * 100))
    assert any("\\oops" in text for text in find_texts(figure))


def test_of_very_many_environments_the_largest_are_drawn():
    """Ten thousand environments were drawn as a black bar, two lines and minutes for each leaf."""
    rng = np.random.default_rng(0)
    environments = np.repeat(np.arange(70), np.arange(70) // 10 + 5)
    X = rng.integers(0, 2, (len(environments), 2))
    learner = fit(SCMClassifier(max_rules=1), X, X[:, 0] & X[:, 1], environments)
    figure = draw_model(learner)
    assert 0 < len(find_dots(figure)) <= 60 * (len(learner.model_) + 1)
    assert "the 60 largest of 70 environments" in find_texts(figure)
