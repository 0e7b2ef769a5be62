"""The level of the leaf test with groups and weights, in a small version of the study."""

import numpy as np
import pytest
from scipy import stats

from paper import levels
from paper.base import Options
from paper.runner import run_plan

N_TABLES = 160


@pytest.mark.parametrize("name", ["5 visits", "20 patients an environment", "survey weights"])
def test_the_level_holds_where_the_naive_one_does_not(name):
    """At a level of 5 %, more than 17 of 160 tables are rejected with a chance of 0.1 %."""
    assert stats.binom.sf(17, N_TABLES, 0.05) < 0.002
    rng = np.random.default_rng(0)
    found = [levels.reject_leaf(levels.DESIGNS[name], 0.0, rng) for _ in range(N_TABLES)]
    naive, corrected = np.sum(found, axis=0)
    assert corrected <= 17 < 40 < naive


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
