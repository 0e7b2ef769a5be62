"""The study of many parents runs, compares with before, and sums up."""

from paper import find_experiment
from paper.base import Options
from paper.more_parents import KEYS, METHODS, make_plan, run_task, summarise
from paper.runner import run_task as run_quietly


def test_a_task_and_its_summary():
    choose = {"features": ["continuous"], "n_parents": ["3"], "n_samples": ["500"]}
    tasks = make_plan(Options(runs=1, choose=choose)).tasks
    assert [task["n_distractors"] for task in tasks] in ([10, 50], [50, 10])
    row = run_quietly(run_task, tasks[0])
    assert not {key for key, value in row.items() if value == "" and "truth" not in key}
    for method in METHODS:
        assert row[f"{method}: exact"] + row[f"{method}: false"] + row[f"{method}: nothing"] <= 1
    found = summarise([{**tasks[0], **row, "error": ""}, {**tasks[0], "error": "a: b"}])
    outcomes, levels = found.tables
    assert len(outcomes.rows) == 1
    assert len(outcomes.rows[0]) == 4 + sum("before" not in method for method in METHODS)
    assert len(levels.rows) == 1
    assert len(levels.rows[0]) == len(KEYS) + 4
    assert found.findings[0] == "1 tasks failed: a: b"
    assert find_experiment("more-parents").title == "More than two parents"
