"""Shortcuts of every kind reverse where left out; forward selection and the study choose right."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from icscm.exceptions import IcscmError
from paper import screen, screen_levels, screen_shifts, screen_tables, selection
from paper.base import Options
from paper.blind_shortcuts import BLIND
from paper.runner import Plan, run_plan
from paper.selection import Chosen, Sample, select_forward, select_stable
from paper.shortcuts import KINDS, SHIFTS, plant

N = 20_000


@pytest.fixture(scope="module")
def many():
    """A label of rate 0.4 in five environments, and two columns unrelated to it."""
    rng = np.random.default_rng(0)
    y = (rng.random(N) < 0.4).astype(np.int64)
    X = pd.DataFrame({"x": rng.normal(size=N), "level": rng.choice(list("uv"), N)})
    return X, y, rng.choice(list("abcde"), N)


@pytest.mark.parametrize("kind", SHIFTS)
def test_a_numeric_shortcut_fades_and_reverses(many, kind):
    _, y, places = many
    value = plant(*many, "c", kind, 1)["shortcut"].to_numpy()
    shifts = {
        each: value[(places == each) & (y == 1)].mean() - value[(places == each) & (y == 0)].mean()
        for each in "abcde"
    }
    first, last = SHIFTS[kind]
    wanted = dict(zip("abde", np.linspace(first, last, 4), strict=True)) | {"c": -first}
    assert shifts == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind == "one" else pytest.mark.thorough)
        for kind in KINDS
        if kind != "clean"
    ],
)
def test_a_learner_of_any_planted_kind_fails_where_left_out(many, kind):
    """Above chance in other rows of the training environments, below it in the one left out."""
    X, y, places = many
    planted = plant(*many, "c", kind, 1)
    new = [name for name in planted if name not in X]
    assert new
    assert all(name.startswith("shortcut") for name in new)
    assert planted[list(X)].equals(X)
    assert planted.equals(plant(*many, "c", kind, 1))
    assert not planted.equals(plant(*many, "c", kind, 2))
    is_out, is_odd = places == "c", np.arange(N) % 2 == 1
    train = ~is_out & is_odd
    model = selection.make_learner("boosting").fit(planted[train], y[train])
    inside, outside = ~is_out & ~is_odd, is_out
    aucs = [
        selection.compute_auc(y[rows], model.predict_proba(planted[rows])[:, 1])
        for rows in (inside, outside)
    ]
    assert aucs[0] > 0.55
    assert aucs[1] < 0.47


def test_blind_shortcuts_of_a_table_without_numbers():
    """A copy is then one of codes; of a table whose columns are constant, of noise."""
    y, places = np.arange(60) % 2, np.repeat(list("abc"), 20)
    for values in (list("uvw") * 20, ["u"] * 60):
        X = pd.DataFrame({"level": pd.Categorical(values)})
        for kind in BLIND:
            assert len(plant(X, y, places, "b", kind, 1)) == 60


def make_sample(seed=0, n=3000):
    """Two causes, noise, and a shortcut whose sign differs between five environments."""
    rng = np.random.default_rng(seed)
    places = np.repeat(list("abcde"), n // 5)
    X = pd.DataFrame({name: rng.normal(size=n) for name in ("cause", "cause2", "noise", "noise2")})
    X["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], n))
    X.loc[::7, "noise"] = np.nan
    y = (rng.random(n) < expit(1.5 * X["cause"] + X["cause2"])).astype(np.int64).to_numpy()
    sign = np.where(np.isin(places, ["a", "b"]), 2.0, -2.0)
    return Sample(X.assign(shortcut=rng.normal(size=n) + sign * (y - 0.5)), y, places)


def test_forward_selection_adds_what_generalises():
    chosen = select_forward(make_sample(), "any")
    assert chosen == Chosen(["cause", "cause2"], 2)


def test_forward_selection_keeps_a_shortcut_that_serves_every_site():
    """What it optimises is performance at the sites at hand."""
    sample = make_sample()
    X = plant(sample.X, sample.y, sample.environments, "none", "one", 1)
    assert "shortcut" in select_forward(sample._replace(X=X), "any").columns


def test_forward_selection_penalises_heterogeneity(monkeypatch):
    """Without the penalty a predictor is added that helps at some sites only."""
    aucs = iter([[0.9, 0.5], [0.69, 0.69]])

    def compute(*_):
        return next(values)

    monkeypatch.setattr(selection, "compute_auc", compute)
    y, Z = np.array([0, 1] * 4), np.ones((8, 2))
    is_left_out = [np.arange(8) < 4, np.arange(8) >= 4]
    scores = []
    for each in aucs:
        values = iter(each)
        scores.append(selection._cross_validate(Z, y, is_left_out, [np.zeros(1)] * 2)[0])
    assert scores == pytest.approx([0.7 - np.std([0.9, 0.5], ddof=1), 0.69])


def test_regression_by_newton_equals_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    sample = make_sample()
    Z = sample.X[["cause", "cause2"]].to_numpy()
    design = np.column_stack((np.ones(len(Z)), Z))
    ours = selection.fit_logistic(design, sample.y, np.zeros(1))
    theirs = LogisticRegression(C=1.0, tol=1e-8).fit(Z, sample.y)
    assert ours == pytest.approx([*theirs.intercept_, *theirs.coef_[0]], abs=1e-3)


def test_stability_selection_keeps_causes_only():
    sample = make_sample()
    X = sample.X.drop(columns="shortcut")
    kept = select_stable(sample._replace(X=X), "any").columns
    assert {"cause", "cause2"} <= set(kept)
    assert len(kept) < X.shape[1]


@pytest.fixture
def prepared(tmp_path):
    """A folder with one small prepared table."""
    sample = make_sample(n=600)
    X = sample.X.drop(columns="shortcut")
    X.assign(_y=sample.y, _e=sample.environments).to_parquet(tmp_path / "heart.parquet")
    screen_tables._load.cache_clear()
    yield tmp_path
    screen_tables._load.cache_clear()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_every_method_is_tested_where_it_did_not_learn(prepared):
    choose = {"kind": ["clean", "one"], "learner": ["logistic regression", "any"]}
    options = Options(tables=prepared, max_rows=500, max_out=1, choose=choose)
    plan = screen.make_plan(options)
    assert len(plan.tasks) == 2 * (1 + len(selection.PEERS))
    assert {task["out"] for task in plan.tasks} == {"a"}
    rows = run_plan(plan, prepared / "screen.csv", n_jobs=1)
    found = {(row["method"], row["kind"], row["learner"]): row for row in screen.unfold(rows)}
    assert float(found["all columns", "one", "logistic regression"]["auc"]) < 0.4
    assert float(found["all columns", "clean", "logistic regression"]["auc"]) > 0.7
    assert found["all columns", "one", "logistic regression"]["kept"] == "shortcut"
    assert found["forward selection", "one", "boosting"]["auc"] != ""
    assert {row["columns"] for row in rows} == {"5"}
    summary = screen.summarise(rows)
    assert [table.name for table in summary.tables] == [
        *("screen-auc", "screen-kinds", "screen-right", "screen-kept", "screen-rejected")
    ]
    (text,) = summary.findings
    assert text.startswith("Heart disease by hospital, logistic regression: clean, all columns")


def test_a_method_that_fails_does_not_end_the_study(prepared, monkeypatch):
    def fail(*_):
        raise ValueError("no columns")

    monkeypatch.setitem(selection.METHODS, "invariant forest", fail)
    choose = {"kind": ["clean"], "method": ["invariant forest", "stability selection"]}
    plan = screen.make_plan(Options(tables=prepared, max_out=1, choose=choose))
    rows = run_plan(plan, prepared / "screen.csv", n_jobs=1)
    texts = screen.summarise(rows).findings
    assert texts == ["1 tasks failed: ValueError: no columns"]


def test_tables_and_tasks_that_are_absent(tmp_path, prepared):
    (tmp_path / "none").mkdir()
    with pytest.raises(IcscmError, match="holds none of heart, sachs"):
        screen.make_plan(Options(tables=tmp_path / "none"))
    with pytest.raises(IcscmError, match="no task has the values given with --choose"):
        screen.make_plan(Options(tables=prepared, choose={"table": ["acs"]}))


def test_hospitals_need_no_file(tmp_path):
    options = Options(data_home=tmp_path, max_rows=1000)
    assert screen_tables.find_tables(options) == ["hospitals"]
    data = screen_tables.load("hospitals", options)
    assert len(data.y) == 1000
    assert not {"troponin", "billing_code"} & set(data.X)
    screen_tables._load.cache_clear()


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_a_time_limit_keeps_what_is_done(tmp_path, n_jobs):
    plan = Plan([{"task": k} for k in range(4)], _never_mind, ["result"])
    assert run_plan(plan, tmp_path / "all.csv", n_jobs=n_jobs, until=0.0) == []
    assert len(run_plan(plan, tmp_path / "all.csv", n_jobs=n_jobs)) == 4


def _never_mind(task, seed):
    return {"result": task["task"]}


@pytest.mark.parametrize("structure", screen_levels.N_CAUSES)
def test_simulated_causes_have_the_same_effect_everywhere(structure):
    """Within an environment the label depends on the causes only, and everywhere alike."""
    X, y, places, _ = screen_levels.simulate(structure, 3, 20_000, 0)
    n_causes = screen_levels.N_CAUSES[structure]
    by_cell = pd.Series(y).groupby([places, *(X[f"x{k}"] for k in range(n_causes))]).mean()
    odds = np.log(by_cell / (1 - by_cell)).unstack(0)
    centred = (odds - odds.mean()).to_numpy()
    assert np.abs(centred - centred.mean(axis=1, keepdims=True)).max() < 0.35
    noise = pd.Series(y).groupby([places, *(X[k] for k in ("x0", "x1", "x2", "x3", "x7"))]).mean()
    assert noise.unstack().diff(axis=1).iloc[:, 1].abs().mean() < 0.05


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_levels_and_power(tmp_path):
    choose = {"places": ["3", "8"], "kind": ["clean", "one"]}
    plan = screen_levels.make_plan(Options(runs=1, quick=True, choose=choose))
    assert len(plan.tasks) == 4
    rows = run_plan(plan, tmp_path / "levels.csv", n_jobs=1)
    assert [row["shortcut"] for row in rows if row["kind"] == "one"] == ["1"]
    summary = screen_levels.summarise(rows)
    assert [table.name for table in summary.tables] == ["screen-levels", "screen-power"]
    assert len(summary.findings) == 2
    assert summary.tables[1].rows[0][:5] == ["3", "300", "1", "1.00 ± 0.00", "-"]


def test_the_effect_of_a_column_alone_and_given_the_others():
    """A copy of a cause has an effect alone; a shortcut reverses where it was left out."""
    sample = make_sample(n=10_000)
    X = plant(sample.X, sample.y, sample.environments, "c", "numeric", 1)
    rng = np.random.default_rng(2)  # not that of the shortcut, whose noise it would reveal
    X["copy"] = X["cause"] + 0.3 * rng.normal(size=len(X))
    found = screen_shifts.measure_effects(X, sample.y, sample.environments, "c")
    assert set(found) == set(X)
    alone, given = (
        {name: screen_shifts.judge_pair(found[name][view]) for name in X}
        for view in screen_shifts.VIEWS
    )
    assert alone["shortcut"]["both"] == given["shortcut"]["both"] == 1
    assert alone["cause"]["both"] == given["cause"]["both"] == 0
    assert found["copy"]["alone"][0] > 1.0
    assert abs(found["copy"]["given the others"][0]) < 0.25


def test_an_effect_is_the_log_odds_ratio_of_its_cut():
    cut = np.repeat([True, False], 400)
    y = np.concatenate((np.tile([1, 1, 1, 0], 100), np.tile([1, 0, 0, 0], 100)))
    effect = screen_shifts.fit_effect(cut, y, np.zeros(800))
    assert effect.value == pytest.approx(np.log(9), abs=1e-3)
    assert effect.error == pytest.approx(np.sqrt(2 / 300 + 2 / 100), rel=1e-3)
    shifted = screen_shifts.fit_effect(cut, y, np.where(cut, 1.0, 0.0))
    assert shifted.value == pytest.approx(np.log(9) - 1.0, abs=1e-3)


def test_an_effect_is_found_where_the_offset_is_far_off():
    """The label is nearly separated, the wrong way round; the cut has no effect."""
    rng = np.random.default_rng(0)
    cut, y = np.arange(2000) % 2 == 0, (rng.random(2000) < 0.5).astype(np.int64)
    offset = -6.0 * (y - 0.5) + rng.normal(size=2000) - 4.0
    effect = screen_shifts.fit_effect(cut, y, offset)
    assert abs(effect.value) < 3 * effect.error


@pytest.mark.parametrize(
    ("effect", "failed"),
    [
        ([1.0, 0.1, 1.1, 0.1], (0, 0, 0)),
        ([1.0, 0.1, 2.0, 0.1], (0, 1, 0)),
        ([0.1, 0.1, -0.1, 0.1], (1, 0, 0)),
        ([1.0, 0.1, -1.0, 0.1], (1, 1, 1)),
    ],
)
def test_failures(effect, failed):
    found = screen_shifts.judge_pair(effect)
    assert tuple(found[each] for each in screen_shifts.FAILURES) == failed


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_shifts_of_a_table(prepared):
    plan = screen_shifts.make_plan(Options(tables=prepared, max_out=2))
    rows = run_plan(plan, prepared / "shifts.csv", n_jobs=1)
    pairs = list(screen_shifts.unfold(rows))
    assert len(pairs) == 2 * 5 * 2
    (table,) = screen_shifts.summarise(rows).tables
    assert len(table.rows) == 1 + 2 * 3
    cause = [pair for pair in pairs if pair["column"] == "cause"]
    assert not any(pair["both"] for pair in cause)


def test_predictors_of_failing():
    pairs = [
        {"both": k % 2, "lost worth": k % 2, "rejected": 0, "weakness": -k % 2} for k in range(6)
    ]
    found = [screen_shifts._predict(pairs, "both", each) for each in screen_shifts.PREDICTORS]
    assert found == [1.0, 0.5, 1.0]
    assert screen_shifts._predict(pairs[::2], "both", "lost worth") is None
