"""Shortcuts to numbers and classes reverse where left out; the study finds them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from paper import screen_outcomes, screen_tables
from paper.base import Options
from paper.outcome_shortcuts import (
    CLASS_KINDS,
    NUMBER_KINDS,
    draw_strengths,
    plant_for_classes,
    plant_for_numbers,
)
from paper.runner import run_plan

N = 6_000


@pytest.fixture(scope="module")
def places():
    return np.random.default_rng(0).choice(list("abcdef"), N)


def split(places):
    """Rows to learn from, others of the training environments, and rows of the one left out."""
    is_out, is_odd = places == "c", np.arange(N) % 2 == 1
    return ~is_out & is_odd, ~is_out & ~is_odd, is_out


@pytest.mark.parametrize("kind", NUMBER_KINDS)
def test_a_shortcut_to_numbers_reverses_where_left_out(places, kind):
    rng = np.random.default_rng(1)
    y, X = rng.normal(size=N), pd.DataFrame({"x": rng.normal(size=N)})
    planted = plant_for_numbers(X, y, places, out="c", kind=kind, seed=1)
    new = [name for name in planted if name != "x"]
    assert all(name.startswith("shortcut") for name in new)
    train, inside, outside = split(places)
    model = HistGradientBoostingRegressor(random_state=0).fit(planted[train][new], y[train])
    assert model.score(planted[inside][new], y[inside]) > 0
    assert model.score(planted[outside][new], y[outside]) < -0.05


@pytest.mark.parametrize("kind", CLASS_KINDS)
def test_a_shortcut_to_classes_names_another_class_where_left_out(places, kind):
    rng = np.random.default_rng(1)
    y, X = rng.integers(0, 3, N), pd.DataFrame({"x": rng.normal(size=N)})
    planted = plant_for_classes(X, y, places, out="c", kind=kind, seed=1).drop(columns="x")
    train, inside, outside = split(places)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(planted[train], y[train])
    by_chance = np.bincount(y).max() / N
    assert model.score(planted[inside], y[inside]) > by_chance + 0.03
    assert model.score(planted[outside], y[outside]) < by_chance - 0.03


def test_planting_is_repeatable_and_keeps_the_table(places):
    y, X = np.arange(N) % 3, pd.DataFrame({"x": np.arange(N)})
    assert plant_for_numbers(X, y * 1.0, places, out="c", kind="clean", seed=1) is X
    first, second, third = (
        plant_for_classes(X, y, places, out="c", kind="devices", seed=seed) for seed in (1, 1, 2)
    )
    assert first.equals(second)
    assert not first.equals(third)
    assert first[["x"]].equals(X)


def test_strengths_are_those_of_the_environment(places):
    rng = np.random.default_rng(0)
    graded = draw_strengths(places, "c", "graded", rng)
    by_place = {place: set(graded[places == place]) for place in "abcdef"}
    assert by_place["c"] == {-1.0}
    levels = sorted(min(values) for place, values in by_place.items() if place != "c")
    assert levels == pytest.approx(np.linspace(0.05, 1.0, 5))
    half = draw_strengths(places, "c", "half", rng)
    assert [half[places == place][0] for place in "abdef"] == [1, 0, 1, 0, 1]


@pytest.fixture
def prepared(tmp_path):
    """A folder with one small prepared table, whose heart rate follows from two columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 3)), columns=["age", "chol", "noise"])
    X["thalach"] = X["age"] + 0.7 * X["chol"] + 0.5 * rng.normal(size=len(X))
    X["cp"] = pd.Categorical(pd.cut(X["age"] + 0.3 * rng.normal(size=len(X)), 3).astype(str))
    X.loc[:4, ["thalach", "cp"]] = np.nan
    hospitals = rng.choice(["cleveland", "hungarian", "rio", "va", "ulm", "oslo"], len(X))
    X.assign(_y=np.arange(900) % 2, _e=hospitals).to_parquet(tmp_path / "heart.parquet")
    screen_tables._load.cache_clear()
    yield tmp_path
    screen_tables._load.cache_clear()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_the_study_compares_with_clean(prepared):
    choose = {"kind": ["clean", "half"], "out": ["va"], "method": ["all columns", "screened"]}
    plan = screen_outcomes.make_plan(Options(tables=prepared, choose=choose))
    assert len(plan.tasks) == 2 * 2 * 2
    rows = run_plan(plan, prepared / "outcomes.csv", n_jobs=1)
    summary = screen_outcomes.summarise(rows)
    shown = {(row[0], row[2]): row for row in summary.tables[0].rows}
    for title in ("Heart disease, heart rate", "Heart disease, chest pain"):
        assert shown[title, "all columns"][-1] == "0 of 1"
        assert shown[title, "screened"][-1] == "1 of 1"
    assert [row[3] for row in summary.tables[1].rows] == ["0 of 1", "0 of 1"]
    assert "right without planted columns in 1 of 1" in summary.findings[0]
    numbers = next(text for text in summary.findings if text.startswith("Numbers, screened"))
    assert numbers.endswith(
        "right without planted columns in 1 of 1, with planted columns in 1 of 1."
    )
    assert summary.findings[-1].startswith("Anchor boosting was left out")


def test_forward_selection_is_compared(prepared):
    choose = {"kind": ["clean"], "out": ["va"], "method": ["forward selection"]}
    plan = screen_outcomes.make_plan(Options(tables=prepared, choose=choose))
    rows = run_plan(plan, prepared / "outcomes.csv", n_jobs=1)
    assert [row["error"] for row in rows] == ["", ""]
    rejected = {row["study"]: row["rejected"] for row in rows}
    assert rejected["heart-rate"] == "noise cp"


def test_rows_without_the_outcome_are_left_out(prepared):
    options = Options(tables=prepared)
    numbers = screen_outcomes.load_outcome(screen_outcomes.STUDIES["heart-rate"], options)
    assert len(numbers.X) == len(numbers.y) == 895
    assert "thalach" not in numbers.X
    classes = screen_outcomes.load_outcome(screen_outcomes.STUDIES["heart-pain"], options)
    assert set(classes.y) == {0, 1, 2}
