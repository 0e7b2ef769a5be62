"""The studies of what the screen must keep, of the parts of its rule, and of its time."""

import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from icscm.screening.measuring import MeasuredRounds
from paper import screen_ablation, screen_keep, screen_tables, screen_times
from paper.base import Options
from paper.causes import EFFECTS, FORMS, OUTCOMES, simulate_causes
from paper.runner import run_plan
from paper.screen_ablation import FULL, MORE_OUTCOMES, PARTS, SIMULATED, TWO_CLASSES
from paper.selection import make_screen

# --- simulated causes -----------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_its_outcome(form, outcome):
    table = simulate_causes(form, outcome, n_places=3, n_rows=200, seed=1)
    assert table.X.shape == (600, 8)
    assert len(table.causes) == FORMS[form].n_causes
    n_classes = {"two classes": 2, "three classes": 3}.get(outcome)
    if n_classes:
        assert len(np.unique(table.y)) == n_classes
    same = simulate_causes(form, outcome, n_places=3, n_rows=200, seed=1)
    other = simulate_causes(form, outcome, n_places=3, n_rows=200, seed=2)
    assert np.array_equal(same.y, table.y)
    assert not np.array_equal(other.y, table.y)


@pytest.mark.parametrize("form", ["sum", "shifted", "baselines", "confounded"])
def test_causes_have_the_same_effect_in_every_environment(form):
    table = simulate_causes(form, "number", n_places=4, n_rows=8_000, seed=3)
    for name in np.unique(table.environments):
        rows = table.environments == name
        design = np.column_stack((np.ones(rows.sum()), table.X[rows]))
        effects = np.linalg.lstsq(design, table.y[rows], rcond=None)[0][1:]
        assert effects == pytest.approx([*EFFECTS, 0, 0, 0, 0], abs=0.08)


def test_effects_vary_as_much_as_they_say():
    table = simulate_causes("varies by 30 %", "number", n_places=60, n_rows=400, seed=3)
    effects = []
    for name in np.unique(table.environments):
        rows = table.environments == name
        design = np.column_stack((np.ones(rows.sum()), table.X[rows]))
        effects.append(np.linalg.lstsq(design, table.y[rows], rcond=None)[0][1])
    assert np.std(effects) == pytest.approx(0.3 / np.sqrt(3), abs=0.05)


def test_the_strong_marker_has_odds_ratios_in_the_hundreds():
    table = simulate_causes("strong", "two classes", n_places=4, n_rows=40_000, seed=1)
    marker = table.X["x0"] == 1
    odds = [table.y[rows].mean() / (1 - table.y[rows].mean()) for rows in (marker, ~marker)]
    assert 50 < odds[0] / odds[1] < 3_000


def test_rows_of_a_group_are_the_same():
    table = simulate_causes("noise, groups", "two classes", n_places=3, n_rows=40, seed=1)
    assert len(np.unique(table.groups)) == 30
    assert table.X.groupby(table.groups).nunique().to_numpy().max() == 1
    assert table.weights is None


# --- what must be kept ----------------------------------------------------------------------------


def make_row(form, causes, rejected_causes, rejected_others):
    return {
        "form": form,
        "outcome": "number",
        "places": "3",
        "rows": "400",
        "causes": str(causes),
        "rejected causes": str(rejected_causes),
        "rejected others": str(rejected_others),
        "cannot tell": "0",
        "seconds": "1.0",
        "error": "",
    }


def test_a_table_is_wrong_if_a_cause_or_without_causes_any_column_is_rejected():
    rows = [
        make_row("sum", 4, 1, 0),
        make_row("sum", 4, 0, 1),
        make_row("noise", 0, 0, 1),
        make_row("noise", 0, 0, 0),
        make_row("noise", 0, 0, 0),
        make_row("noise", 0, 0, 0),
    ]
    summary = screen_keep.summarise(rows)
    shown = {line[0]: line[3] for line in summary.tables[0].rows}
    assert shown == {"noise": "0.25 (4)", "sum": "0.50 (2)"}
    assert summary.tables[1].rows[0][:4] == ["number", "3", "6", "0.500"]
    assert "sum: 0.500 of 2 tables (goal at most 0.05, MISSED)" in summary.findings[0]


@pytest.mark.thorough
def test_causes_are_kept(tmp_path):
    choose = {"form": ["both"], "outcome": ["number"]}
    plan = screen_keep.make_plan(Options(runs=1, quick=True, choose=choose))
    rows = run_plan(plan, tmp_path / "keep.csv", n_jobs=1)
    assert [row["rejected causes"] for row in rows] == ["0"]


# --- parts of the rule ----------------------------------------------------------------------------


@pytest.mark.parametrize("part", [part for part in PARTS if part != FULL])
def test_a_part_replaces_something_that_is_there(part):
    """A part that was renamed in the package would be left out without anyone's notice."""
    for replacement in PARTS[part]:
        present = getattr(replacement.module, replacement.name)
        assert present != replacement.value
        assert callable(present) == callable(replacement.value)


def make_shortcut_table():
    """A cause, noise, and a number that follows the label in three of six environments."""
    rng = np.random.default_rng(0)
    places = np.repeat(list("abcdef"), 200)
    X = pd.DataFrame(rng.normal(size=(1_200, 3)), columns=["cause", "noise", "shortcut"])
    y = (rng.random(1_200) < 1 / (1 + np.exp(-1.5 * X["cause"]))).astype(int).to_numpy()
    X["shortcut"] += 3.0 * np.isin(places, list("abc")) * (y - 0.5)
    return X, y, places


@pytest.mark.thorough
def test_the_full_rule_is_the_screen_itself():
    """What is remembered from one screen to the next must not change a verdict."""
    table = make_shortcut_table()
    X, y, places = table
    wanted = make_screen(is_number=False).fit(X, y, environments=places).kept_
    memory = MeasuredRounds()
    kept = {
        part: screen_ablation.screen_without(part, *table, is_number=False, memory=memory)
        for part in PARTS
    }
    again = screen_ablation.screen_without(FULL, *table, is_number=False, memory=memory)
    assert kept[FULL] == again == wanted == ["cause", "noise"]
    direct = screen_ablation.screen_without(
        "separately", *table, is_number=False, memory=MeasuredRounds()
    )
    assert direct == kept["separately"]


def test_nothing_stays_replaced(monkeypatch):
    before = [
        getattr(replacement.module, replacement.name)
        for replacements in PARTS.values()
        for replacement in replacements
    ]

    class Failing:
        def fit(self, *_args, **_options):
            raise ValueError("no columns")

    monkeypatch.setattr(screen_ablation, "make_verdicts", lambda *_: Failing())
    X, y, places = make_shortcut_table()
    for part in PARTS:
        with pytest.raises(ValueError, match="no columns"):
            screen_ablation.screen_without(
                part, X, y, places, is_number=False, memory=MeasuredRounds()
            )
    after = [
        getattr(replacement.module, replacement.name)
        for replacements in PARTS.values()
        for replacement in replacements
    ]
    assert before == after


def make_ablation_row(source, results, causes=""):
    full = dict.fromkeys(PARTS, results[FULL])
    return {
        "source": source,
        "table": "heart",
        "kind": "half",
        "causes": causes,
        "results": json.dumps({**full, **results}),
        "error": "",
    }


def test_tables_that_break_without_a_part_are_counted():
    rows = [
        make_ablation_row(
            TWO_CLASSES,
            {
                FULL: {"rejected": ["shortcut"], "loss": 0.02},
                "jointly": {"rejected": [], "loss": 0.3},
            },
        ),
        make_ablation_row(
            SIMULATED,
            {FULL: {"rejected": ["x0"]}, "supported": {"rejected": ["x7"]}},
            causes="x0 x1",
        ),
        make_ablation_row(SIMULATED, {FULL: {"rejected": []}, "is learned": {"rejected": ["x7"]}}),
    ]
    counts, named = screen_ablation.summarise(rows).tables
    shown = {line[0]: line[1:] for line in counts.rows}
    assert shown[FULL] == ["1 of 1", "1 of 2"]
    assert shown["without *jointly*"] == ["0 of 1 (-1 +0)", "1 of 2 (-0 +0)"]
    assert shown["without *supported*"] == ["1 of 1 (-0 +0)", "2 of 2 (-0 +1)"]
    assert shown["without *is learned*"] == ["1 of 1 (-0 +0)", "0 of 2 (-1 +0)"]
    assert ["jointly", TWO_CLASSES, "lost", "heart, half (1)"] in named.rows
    findings = screen_ablation.summarise(rows).findings
    assert "Without *separately* no table is lost; 0 are won." in findings
    assert "Without *is learned* these tables are lost: 1 of simulated; 0 are won." in findings


@pytest.fixture
def prepared(tmp_path):
    """A folder with one small prepared table, whose heart rate follows from two columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 3)), columns=["age", "chol", "noise"])
    X["thalach"] = X["age"] + 0.7 * X["chol"] + 0.5 * rng.normal(size=len(X))
    X["cp"] = pd.Categorical(pd.cut(X["age"], 3).astype(str))
    hospitals = rng.choice(["cleveland", "hungarian", "rio", "va", "ulm", "oslo"], len(X))
    y = (X["age"] + rng.normal(size=len(X)) > 0).astype(int)
    X.assign(_y=y, _e=hospitals).to_parquet(tmp_path / "heart.parquet")
    screen_tables._load.cache_clear()
    yield tmp_path
    screen_tables._load.cache_clear()


def test_tasks_of_all_sources_have_the_same_keys(prepared):
    plan = screen_ablation.make_plan(Options(tables=prepared, max_out=1, runs=1))
    assert {task["source"] for task in plan.tasks} == {TWO_CLASSES, MORE_OUTCOMES, SIMULATED}
    assert len({tuple(task) for task in plan.tasks}) == 1
    quick = screen_ablation.make_plan(Options(tables=prepared, quick=True))
    assert len(quick.tasks) < 10


@pytest.mark.thorough
def test_parts_left_out_on_every_source(prepared):
    plan = screen_ablation.make_plan(Options(tables=prepared, quick=True, runs=1))
    rows = run_plan(plan, prepared / "ablation.csv", n_jobs=1)
    assert not any(row["error"] for row in rows)
    assert len(screen_ablation.summarise(rows).findings) == len(PARTS) - 1


# --- time and memory ------------------------------------------------------------------------------


def make_times():
    """Rows of a table with and without a shortcut, on one core and on four."""
    rows = []
    for shortcut in ("no", "yes"):
        for n_jobs, seconds in (("1", 8.0), ("4", 2.0)):
            for fit in ("boosting", "screen"):
                row = dict.fromkeys(screen_times.COLUMNS_OUT, "1")
                row |= {"table": "20,000 x 20", "shortcut": shortcut, "n_jobs": n_jobs}
                row |= {"fit": fit, "version": "now", "error": "", "peak_mb": "300"}
                is_screen = fit == "screen"
                row["seconds"] = str(seconds if is_screen else 1.0)
                row["rounds"] = "2" if is_screen and shortcut == "yes" else "1"
                rows.append(row)
    return rows


def test_times_are_shown_in_fits_of_boosting():
    summary = screen_times.summarise(make_times())
    (table,) = summary.tables
    assert [line[:8] for line in table.rows] == [
        ["20,000 x 20", "no", "now", "1", "8.0", "8.0", "1", "10 fits"],
        ["20,000 x 20", "no", "now", "4", "2.0", "2.0", "1", "-"],
        ["20,000 x 20", "yes", "now", "1", "8.0", "8.0", "2", "15 fits"],
        ["20,000 x 20", "yes", "now", "4", "2.0", "2.0", "2", "-"],
    ]
    assert summary.findings[0] == ("20,000 x 20, without a shortcut: 4.0 times faster on 4 cores.")


def test_an_earlier_version_is_timed_beside_this_one(monkeypatch, tmp_path):
    monkeypatch.setenv("ICSCM_BEFORE", str(tmp_path))
    plan = screen_times.make_plan(Options(quick=True))
    assert [task["version"] for task in plan.tasks].count("before") == 2
    assert screen_times.find_sources("before") == tmp_path.resolve()
    monkeypatch.delenv("ICSCM_BEFORE")
    plan = screen_times.make_plan(Options(quick=True))
    assert {task["version"] for task in plan.tasks} == {"now"}


TASK = {
    "seed": 0,
    "table": "2,000 x 20",
    "shortcut": "no",
    "n_jobs": 1,
    "fit": "screen",
    "version": "now",
}


def test_a_fit_that_takes_too_long_is_shown_as_such(monkeypatch):
    def run(*_args, **_options):
        raise subprocess.TimeoutExpired("timed", 1)

    monkeypatch.setattr(screen_times.subprocess, "run", run)
    row = {**TASK, **screen_times.run_task(TASK, 0), "error": ""}
    texts = {name: str(value) for name, value in row.items()}
    (table,) = screen_times.summarise([texts]).tables
    assert table.rows[0][4] == "more than 600"


def test_a_fit_that_fails_says_why(monkeypatch):
    done = SimpleNamespace(returncode=1, stdout="", stderr="Traceback\nMemoryError: no room\n")
    monkeypatch.setattr(screen_times.subprocess, "run", lambda *_args, **_options: done)
    with pytest.raises(screen_times.IcscmError, match="MemoryError: no room"):
        screen_times.run_task(TASK, 0)


@pytest.mark.thorough
def test_a_fit_is_timed_in_a_process_of_its_own():
    measured = screen_times.run_task({**TASK, "fit": "boosting"}, 0)
    assert measured["seconds"] > 0
    assert measured["peak_mb"] > 50
