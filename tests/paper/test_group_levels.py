"""Noise whose rows come in groups: what is simulated, and how often learners find something."""

import numpy as np
import pytest
from scipy import stats

from paper import group_levels
from paper.base import Options
from paper.runner import run_plan

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

# Probability that a learner whose level is the goal fails a test.
SURE = 0.001


def count_environments_of_groups(noise):
    return np.array(
        [len(np.unique(noise.environments[noise.groups == g])) for g in range(noise.groups[-1] + 1)]
    )


def test_groups_lie_as_the_layout_says():
    within, across, mixed = (
        count_environments_of_groups(group_levels.simulate(layout, 4, seed=0))
        for layout in group_levels.LAYOUTS
    )
    assert (within == 1).all()
    assert (across > 1).mean() > 0.95
    assert (mixed[1::2] == 1).all()
    assert (mixed[::2] > 1).mean() > 0.95


def test_outcomes_of_a_group_are_alike():
    noise = group_levels.simulate("across", 4, seed=0)
    rates = np.bincount(noise.groups, noise.y) / group_levels.N_ROWS_OF_GROUP
    variance_if_independent = noise.y.mean() * (1 - noise.y.mean()) / group_levels.N_ROWS_OF_GROUP
    assert rates.var() > 1.5 * variance_if_independent


def count_found(name, layout, n_runs, n_environments=4):
    tables = [group_levels.simulate(layout, n_environments, seed) for seed in range(n_runs)]
    return sum(group_levels.has_found_in_noise(name, noise) for noise in tables)


@pytest.mark.parametrize(("name", "n_runs"), [("rules, balanced", 20), ("tree", 30), ("forest", 6)])
def test_groups_across_environments_count_as_wholes(name, n_runs):
    """A group cut by environments was several for the bound of chance.

    Rules were found in 22 of 60 tables, splits in 5 of 60, and a forest had them in 5 of 20.
    """
    assert count_found(name, "across", n_runs) <= stats.binom.isf(SURE, n_runs, 0.05)


def test_a_score_of_noise_has_no_points():
    """A term only had to explain more than a single one does by chance: every score had some."""
    assert count_found("score", "within", 4) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("layout", group_levels.LAYOUTS)
@pytest.mark.parametrize("name", [*group_levels.LEARNERS])
def test_levels_hold_in_each_layout(name, layout):
    """No more runs than the goal allows: 10 %, and 5 % for the screen."""
    n_runs = 40
    n_found = count_found(name, layout, n_runs)
    assert n_found <= stats.binom.isf(SURE, n_runs, group_levels.LEARNERS[name].goal)


@pytest.mark.thorough
def test_the_study_runs(tmp_path):
    choose = {"learner": ["tree", "rules"], "environments": ["4"]}
    plan = group_levels.make_plan(Options(runs=1, choose=choose))
    assert len(plan.tasks) == 6
    rows = run_plan(plan, tmp_path / "rows.csv", n_jobs=1)
    summary = group_levels.summarise(rows)
    lines = {line[0]: line for line in summary.tables[0].rows}
    assert {*lines} == {*group_levels.LEARNERS}
    assert lines["tree"][2:5] == ["-", "-", "-"]
    assert all(0 <= float(share) <= 1 for share in lines["tree"][5:])
