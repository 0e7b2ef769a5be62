"""The screen over many simulated tables: how often it rejects what it should not, and should."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from icscm import InvariantFeatureSelector
from support.screens import CAUSES, OUTCOMES, SHORTCUTS, make_causes, plant

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

LEVEL = 0.05
SIZES = [(4, 200), (6, 200), (10, 200), (4, 400), (6, 400), (10, 400)]


class ScreenAlone(InvariantFeatureSelector):
    """Fits no learner on the columns kept."""

    _fits_learner = False


def screen(table, outcome):
    learner = LinearRegression() if outcome == "number" else None
    selector = ScreenAlone(learner, random_state=0)
    return selector.fit(table.X, table.y, environments=table.environments)


def simulate(form, outcome, seed):
    n_environments, n_rows = SIZES[seed % len(SIZES)]
    return make_causes(form, outcome, n_environments=n_environments, n_rows=n_rows, seed=seed)


def allow(n_tables, level=LEVEL):
    """Return the number of tables that exceeds the level by three standard errors."""
    return n_tables * level + 3 * np.sqrt(n_tables * level * (1 - level))


@pytest.mark.parametrize("form", ["none", "linear"])
def test_a_few_tables_without_a_shortcut(form):
    rejected = [screen(make_causes(form, seed=seed), "two").rejected_ for seed in range(2)]
    assert rejected == [[], []]


@pytest.mark.parametrize("kind", ["graded", "reversed"])
def test_a_shortcut_is_found(kind):
    table = plant(make_causes("linear", n_rows=250), kind)
    assert screen(table, "two").rejected_ == ["shortcut"]


@pytest.mark.thorough
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_pure_noise(outcome):
    n_tables = 60
    rejections = [screen(simulate("none", outcome, seed), outcome).rejected_ for seed in range(60)]
    assert sum(map(bool, rejections)) <= allow(n_tables)


@pytest.mark.thorough
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("form", ["linear", "varying", "conjunction", "switch", "curved", "strong"])
def test_true_causes(form, outcome):
    if form == "strong" and outcome != "two":
        pytest.skip("odds ratios are of two classes")
    n_tables = 18
    n_rejected = 0
    for seed in range(n_tables):
        rejected = screen(simulate(form, outcome, seed), outcome).rejected_
        n_rejected += bool({*rejected} & {*CAUSES})
    assert n_rejected <= allow(n_tables)


@pytest.mark.thorough
@pytest.mark.parametrize("outcome", ["two", "number"])
@pytest.mark.parametrize("kind", SHORTCUTS)
def test_planted_shortcuts(kind, outcome):
    found, others = [], []
    for seed in range(6):
        table = plant(simulate("linear", outcome, seed), kind, seed=seed)
        rejected = {*screen(table, outcome).rejected_}
        planted = {name for name in table.X if name.startswith("shortcut")}
        found.append(len(rejected & planted) / len(planted))
        others.append(bool(rejected - planted))
    assert np.mean(found) >= 0.8
    assert sum(others) <= 2
