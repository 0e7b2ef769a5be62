"""The level of the leaf test with groups and weights, in a small version of the study."""

import numpy as np
import pytest
from scipy import stats

from paper import levels
from paper.base import Options
from paper.runner import run_plan

N_TABLES = 500


@pytest.fixture(scope="module")
def rejected():
    """For each design how many tables are rejected, rows taken for independent and corrected."""
    found = {}
    for name, design in levels.DESIGNS.items():
        rng = np.random.default_rng(0)
        each = [levels.reject_leaf(design, 0.0, rng) for _ in range(N_TABLES)]
        found[name] = np.sum(each, axis=0)
    return found


@pytest.mark.thorough
def test_the_level_holds_in_each_design(rejected):
    """Between 3.5 and 6.5 %, as far as 500 tables can tell: beyond with a chance of 0.1 %."""
    assert len(rejected) == 12
    for name, (_, corrected) in rejected.items():
        assert stats.binom.sf(corrected - 1, N_TABLES, levels.MOST) > 0.001, name
        assert stats.binom.cdf(corrected, N_TABLES, levels.LEAST) > 0.001, name


@pytest.mark.thorough
def test_the_level_holds_over_all_designs(rejected):
    """The mean of 6,000 tables has a standard error of 0.3 points."""
    naive, corrected = np.sum([*rejected.values()], axis=0) / (12 * N_TABLES)
    assert 0.04 <= corrected <= 0.06
    assert naive > 0.5


@pytest.mark.thorough
def test_the_study_runs(tmp_path):
    choose = {"design": ["1 visit", "weight 20"]}
    plan = levels.make_plan(Options(runs=1, choose=choose))
    assert len(plan.tasks) == 4
    rows = run_plan(plan, tmp_path / "rows.csv", n_jobs=1)
    (table,) = levels.summarise(rows).tables
    lines = {line[0]: line for line in table.rows}
    assert {*lines} == {*levels.DESIGNS}
    assert lines["1 visit"][2] == lines["1 visit"][3]  # rows are independent
    assert float(lines["weight 20"][2]) > 0.8 > 0.2 > float(lines["weight 20"][3])
    assert len(levels.DESIGNS) == 12
