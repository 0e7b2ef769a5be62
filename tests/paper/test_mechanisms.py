"""The study of mechanisms, artefacts and noise, in a small version."""

import pytest

from paper import mechanisms
from paper.base import Options
from paper.runner import run_plan


@pytest.mark.thorough
def test_the_study_runs(tmp_path):
    choose = {"table": ["tuberculosis"], "learner": ["tree", "plain tree"]}
    plan = mechanisms.make_plan(Options(runs=2, choose=choose))
    assert len(plan.tasks) == 4
    rows = run_plan(plan, tmp_path / "rows.csv", n_jobs=1)
    (table,) = mechanisms.summarise(rows).tables
    cells = {line[1]: line[2:5] for line in table.rows}
    assert cells["tree"] == ["2", "1.00 ± 0.00", "0.00 ± 0.00"]
    assert cells["plain tree"] == ["2", "0.00 ± 0.00", "1.00 ± 0.00"]


@pytest.mark.parametrize("name", mechanisms.MAKERS)
def test_tables_have_two_classes_and_several_environments(name):
    X, y, places, groups = mechanisms.MAKERS[name](0)
    assert len(X) == len(y) == len(places)
    assert {*y} == {0, 1}
    assert len({*places}) > 3
    assert (groups is not None) == (name == "noise, ten visits")
    has_mechanism = any(each.startswith("mechanism") for each in X.columns)
    assert has_mechanism != name.startswith("noise")
