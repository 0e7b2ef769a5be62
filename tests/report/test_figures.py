"""The tree and the leaf rates as a figure."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_samples import ZOO, fit, make_noise, make_shifted
from sklearn.base import clone

from icscm import ICSCMClassifier, SCMClassifier
from icscm.report.figures import draw_model


def find_texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def draw(figure):
    """The figure's pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


@pytest.mark.parametrize("name", ZOO)
def test_every_kind_of_learner_is_drawn(name, simulation):
    learner = fit(clone(ZOO[name]), simulation.X, simulation.y, simulation.environments)
    figure = draw_model(learner)
    assert isinstance(figure, Figure)
    assert draw(figure).std() > 5
    texts = find_texts(figure)
    for rule in learner.rules_:
        assert f"{rule}?" in texts
    n_leaves = len(learner.model_) + 1
    assert sum(text.startswith("leaf ") for text in texts) == n_leaves
    assert sum(text == "4" for text in texts) == n_leaves  # an environment's name


def test_dots_stand_at_the_rates(simulation):
    learner = fit(ICSCMClassifier(), simulation.X, simulation.y, simulation.environments)
    _, plot = draw_model(learner).axes
    dots = [line.get_xdata()[0] for line in plot.lines if line.get_marker() == "o"]
    rates = [rate for verdict in learner.verdicts_ for rate in verdict.rates]
    assert dots == pytest.approx(rates)


def test_without_environments_and_without_rules(simulation):
    draw(draw_model(fit(SCMClassifier(), simulation.X, simulation.y)))
    empty = draw_model(fit(ICSCMClassifier(), *make_shifted()))
    draw(empty)
    assert any("not invariant" in text for text in find_texts(empty))


def test_many_environments_are_not_named():
    X, y, environments = make_noise(6_000, 60)
    figure = draw_model(fit(SCMClassifier(max_rules=3, max_thresholds=5), X, y, environments))
    draw(figure)
    assert "59" not in find_texts(figure)
    assert figure.get_size_inches()[1] < 15


def test_a_dollar_starts_no_formula():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"$\\frac{1}$ \\oops {": x})
    y = np.array(["$\\no$", "$\\yes$"])[x ^ (rng.random(200) < 0.1)]
    figure = draw_model(fit(SCMClassifier(), frame, y, ["$\\a$", "$\\b$"] * 100))
    draw(figure)  # a formula that makes no sense would raise
    assert any("\\oops" in text for text in find_texts(figure))


def test_of_very_many_environments_the_largest_are_drawn():
    """Ten thousand environments were drawn as a black bar, two lines and minutes for each leaf."""
    rng = np.random.default_rng(0)
    environments = np.repeat(np.arange(300), np.arange(300) // 30 + 5)
    X = rng.integers(0, 2, (len(environments), 2))
    learner = fit(SCMClassifier(max_rules=1), X, X[:, 0] & X[:, 1], environments)
    _, plot = draw_model(learner).axes
    n_dots = sum(line.get_marker() == "o" for line in plot.lines)
    assert 0 < n_dots <= 200 * (len(learner.model_) + 1)
    assert "in the 200 largest of 300 environments" in plot.get_xlabel()
