"""A points score: what it learns, prints, saves, and does with missing values and shortcuts."""

import io

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from icscm import InvariantScoreClassifier, load
from icscm.cli import main
from icscm.cli.show import render_saved
from icscm.drawing.shapes import Role
from icscm.exceptions import IcscmError, NothingFoundWarning, UnseenMissingWarning
from icscm.model.saved import make_saved_model
from support.drawings import find_curves, find_texts

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.NoEnvironmentsWarning")


def make_visits(n=2_400, seed=0):
    """Age, sex and job act alike at all sites; the code is reversed at the last one."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, 4, n), rng.integers(20, 90, n).astype(float)
    sex, job = rng.choice(["f", "m"], n), rng.choice(list("abcdef"), n)
    odds = -3 + 1.2 * (age > 50) + 1.2 * (age > 70) + 0.9 * (sex == "m") + np.isin(job, ["a", "b"])
    ill = rng.random(n) < 1 / (1 + np.exp(-odds - 0.3 * site))
    code = ill ^ (rng.random(n) < np.array([0.02, 0.1, 0.25, 0.95])[site])
    age[rng.random(n) < 0.1] = np.nan
    X = pd.DataFrame({"age": age, "sex": sex, "job": job, "code": code.astype(int)})
    return X, np.where(ill, "yes", "no"), np.array(["n", "e", "s", "w"])[site]


@pytest.fixture(scope="module")
def visits():
    X, y, places = make_visits()
    learner = InvariantScoreClassifier(random_state=0, n_jobs=1).fit(X, y, environments=places)
    return learner, X, y, places


def test_a_reversing_shortcut_gets_no_points(visits):
    learner, X, y, _ = visits
    assert {*learner.features_used_} == {"age", "sex", "job"}
    assert [each.rule.feature for each in learner.trace_.rejected_columns] == ["code"]
    screen = learner.screen_.set_index("column")
    assert screen.loc["code", "verdict"] == "rejected"
    assert screen.loc["code", "rule"] == "code > 0"
    assert roc_auc_score(y, learner.predict_proba(X)[:, 1]) > 0.7


def test_the_screen_is_that_of_columns(visits):
    """The tolerance is the worth that a column may lose in a new environment."""
    learner, X, y, places = visits
    assert learner.tolerance_ == InvariantScoreClassifier().tolerance == 0.5
    (record,) = learner.trace_.rejected_columns
    row = learner.screen_.set_index("column").loc["code"]
    assert (record.reason, record.round) == ("heterogeneous", row["round"])
    assert record.heterogeneity_share == row["share"]
    assert record.p_value == row["p_value"]
    assert row["worth_low"] < 0.5
    assert learner.screen_["column"].tolist() == ["age", "sex", "job", "code"]
    lenient = clone(learner).set_params(tolerance=50.0).fit(X, y, environments=places)
    assert lenient.trace_.rejected_columns == ()
    assert "code" in lenient.features_used_
    with pytest.raises(TypeError, match="has no parameter min_replication: columns that determ"):
        InvariantScoreClassifier(min_replication=0.1)


def test_points_are_whole_and_the_table_is_complete(visits):
    model = visits[0].model_
    rows = {(row.column, row.value): row.points for row in model.list_rows()}
    assert rows["sex", "other"] == 0 < rows["sex", "m"]
    others = pd.concat([visits[1][:1]] * 3).assign(job=["c", "a", "b"])
    assert model.add_points(others).argmin() == 0
    assert min(points for (column, _), points in rows.items() if column == "age") == 0
    assert ("age", "missing") in rows
    risks = model.compute_risks()
    assert (np.diff(risks) > 0).all()
    assert len(risks) == model.max_total + 1
    text = str(model)
    assert all(f"{risk:.1%}" in text for risk in risks)
    assert "<td" in model._repr_html_()


def test_counts_of_classes_are_those_of_the_training_rows(visits):
    learner, X, y, places = visits
    leaves = learner.model_.find_leaves(X)
    for number, counts in enumerate(learner.model_.leaves):
        for label, row in zip(("no", "yes"), counts, strict=True):
            found = [((leaves == number) & (y == label) & (places == e)).sum() for e in "ensw"]
            assert found == [row[learner.environments_.index(e)] for e in "ensw"]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
def test_a_missing_value_is_not_the_low_side(visits):
    """A missing age had the points of the youngest; no sex was missing in training."""
    learner, X, *_ = visits
    rows = pd.concat([X[:1]] * 3, ignore_index=True)
    rows["age"] = [25.0, np.nan, 85.0]
    low, missing, high = learner.model_.add_points(rows)
    assert low < missing < high
    rows["age"], rows["sex"] = 60.0, pd.Series(["f", None, "m"], dtype=object)
    low, missing, high = learner.model_.add_points(rows)
    assert low < missing <= high


@pytest.mark.thorough  # the column that `visits` rejects is one of numbers, too
def test_numbers_and_missingness_are_recorded_where_rejected():
    """A rejected column of numbers raised IndexError: it has one threshold fewer than bins."""
    rng = np.random.default_rng(0)
    site, age = rng.integers(0, 4, 1_200), rng.integers(20, 90, 1_200)
    ill = rng.random(1_200) < np.where(age > 60, 0.8, 0.2)
    level = rng.normal(size=1_200) + np.where(site == 3, -3, 3) * ill
    X = pd.DataFrame({"age": age, "level": level})
    learner = InvariantScoreClassifier(random_state=0, n_jobs=1).fit(X, ill, environments=site)
    (rejected,) = learner.trace_.rejected_columns
    assert rejected.rule.feature == "level"
    assert str(rejected.rule) == learner.screen_.set_index("column").loc["level", "rule"]
    assert learner.features_used_ == ["age"]


def test_only_missing_values_differ():
    """The points of present values were lost where all of them have the same."""
    rng = np.random.default_rng(0)
    site, weight = rng.integers(0, 3, 1_500), rng.choice(["low", "high"], 1_500).astype(object)
    weight[rng.random(1_500) < 0.5] = None
    ill = rng.random(1_500) < np.where(pd.isna(weight), 0.1, 0.7)
    X = pd.DataFrame({"weight": weight})
    model = InvariantScoreClassifier(random_state=0, n_jobs=1).fit(X, ill, environments=site).model_
    present, missing = model.add_points(pd.DataFrame({"weight": ["low", None]}, dtype=object))
    assert missing == 0 < present
    assert model.predict_proba(X)[~pd.isna(weight)] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("tolerance", [None, pytest.param(0.5, marks=pytest.mark.thorough)])
def test_names_of_environments_do_not_matter(tolerance):
    X, y, places = make_visits(1_200 if tolerance is None else 2_400)
    learner = InvariantScoreClassifier(tolerance=tolerance, random_state=0, n_jobs=1)
    names = {"n": "z", "e": "a", "s": "m", "w": "k"}
    renamed = clone(learner).fit(X, y, environments=[names[place] for place in places]).model_
    model = learner.fit(X, y, environments=places).model_
    assert renamed.terms == model.terms
    assert renamed.log_odds == pytest.approx(model.log_odds)


def test_saved_and_loaded(visits, tmp_path):
    learner, X, *_ = visits
    learner.save(tmp_path / "score.json")
    saved = load(tmp_path / "score.json")
    assert saved.model == learner.model_
    assert (saved.predict(X) == learner.predict(X)).all()
    whole = X["age"].notna().to_numpy()
    totals = {f"total of {n}" for n in range(learner.model_.max_total + 1)}
    assert {*saved.explain(X[whole])} <= totals
    assert {*saved.explain(X[~whole])} <= {f"age missing: {each}" for each in totals}
    assert make_saved_model(learner) == saved


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"points": 0', '"points": -1', "points must be a whole number from 0 to 10000"),
        ('"points": 0', '"points": 10000', "totals, and bounds of their classes, are at"),
        ('"log_odds": [', '"log_odds": [99.0, ', "a number for each total, and must not fall"),
        ('"bounds": [', '"bounds": [9999, ', "bounds of the classes|entries instead of"),
    ],
)
def test_damaged_files_are_rejected(visits, tmp_path, old, new, match):
    text = make_saved_model(visits[0]).to_json()
    assert old in text
    (tmp_path / "damaged.json").write_text(text.replace(old, new, 1))
    with pytest.raises(IcscmError, match=match):
        load(tmp_path / "damaged.json")


def test_files_give_the_same_score(visits, tmp_path):
    """Residuals are summed by the source, so that rows need not be in memory."""
    learner, X, y, places = visits
    X.assign(y=y, place=places).to_parquet(tmp_path / "visits.parquet")
    plain = clone(learner).set_params(tolerance=None)
    again = clone(plain).fit_dataset(tmp_path / "visits.parquet", "y", environments="place")
    assert again.model_ == plain.fit(X, y, environments=places).model_


def test_report_shows_points_first_and_the_figure_is_drawn(visits):
    learner = visits[0]
    report = learner.report()
    text = report.to_markdown()
    assert 0 < text.index("## Points") < text.index("## Leaves")
    assert "| sex | m |" in text
    assert report.to_dict()["model"]["risks"] == learner.model_.compute_risks().tolist()
    assert "Risk of each total" in report.to_html()
    figure = learner.plot()
    texts = find_texts(figure)
    for row in learner.model_.list_rows():
        assert {row.value, str(row.points)} <= {*texts}
    (curve,) = find_curves(figure, Role.OVERALL_CURVE)
    assert len(curve.points) == len(learner.model_.compute_risks())
    # a box for each class, and a line in the key
    assert len(find_curves(figure, Role.ENVIRONMENT_CURVE)) == 1 + len(learner.model_.leaves)
    assert {"new_low", "new_high"} <= {*learner.describe_leaves()}


def test_texts_are_about_scores(visits):
    """Reports of scores told the effect of each split, and `icscm show` promised trees."""
    learner = visits[0]
    text = learner.report().to_markdown()
    assert "The effect of each column on the odds" in text
    assert "split" not in text
    saved = make_saved_model(learner)
    short, whole = (print_plainly(render_saved(saved, most)) for most in (3, None))
    assert "--all shows the classes of totals by environment" in short
    assert f"Leaf {len(learner.model_.leaves)}: " in whole
    assert "tree" not in short + whole


def print_plainly(blocks):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(*blocks)
    return console.export_text()


def test_no_column_gets_points(visits):
    _, _, y, places = visits
    X = np.random.default_rng(0).integers(0, 2, (len(y), 1))
    with pytest.warns(NothingFoundWarning, match="No column got points"):
        learner = InvariantScoreClassifier(tolerance=None).fit(X, y, environments=places)
    assert str(learner.model_).startswith("no term was found")
    assert len(np.unique(learner.predict_proba(X))) == 2
    assert "No column got points" in learner.report().to_markdown()


def test_rows_of_one_group_count_as_one():
    """Copies of rows that belong together make no weak term significant."""
    X, y, places = make_visits(700)
    plain = InvariantScoreClassifier(tolerance=None, max_terms=20)
    columns = X[["age", "sex", "job"]]
    once = clone(plain).fit(columns, y, environments=places)
    copied = pd.concat([columns] * 6), np.tile(y, 6)
    groups = np.tile(np.arange(700), 6)
    together = clone(plain).fit(*copied, environments=np.tile(places, 6), groups=groups)
    apart = clone(plain).fit(*copied, environments=np.tile(places, 6))
    n_terms = [len(each.model_.list_rows()) for each in (once, together, apart)]
    assert n_terms[1] < n_terms[2]


def test_values_missing_for_the_first_time_are_named_and_warned_of():
    """They got the points of an average sample, rounded up, and nothing was said of it."""
    X, y, places = make_visits(600)
    name = "age"
    full = X.assign(age=X["age"].fillna(40.0))
    score = InvariantScoreClassifier(tolerance=None, max_terms=4)
    model = score.fit(full, y, environments=places).model_
    assert name in model.averaged
    with pytest.warns(
        UnseenMissingWarning, match=f"'{name}' is missing in 1 row but never .* aver"
    ):
        texts = model.decide(full[:2].assign(age=[np.nan, 70.0])).decided_by
    assert texts[0].startswith(f"{name} missing (average)")
    assert "missing (average)" in str(model)


def test_from_the_command_line(tmp_path, monkeypatch):
    """The same score as in Python, predicted with and exported."""
    monkeypatch.chdir(tmp_path)
    X, y, places = make_visits(600)
    X.assign(y=y, place=places, visit=np.arange(600) // 2).to_csv("visits.csv", index=False)
    roles = ["--target", "y", "--positive", "yes", "--environment", "place", "--group", "visit"]
    fitting = ["fit", "visits.csv", *roles, "--model", "score", "--tolerance", "none"]
    run(*fitting, "--max-terms", "4", "--no-validation", "--out", "score.json")
    plain = InvariantScoreClassifier(tolerance=None, max_terms=4)
    plain.fit(X, y, environments=places, groups=np.arange(600) // 2)
    assert load("score.json").model == plain.model_
    assert "total of" in run("predict", "score.json", "visits.csv")
    assert "add_points <- function" in run("export", "score.json", "--to", "r")
    assert "Leaf 1: 0 " in run("show", "score.json", "--all")


def run(*arguments):
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout
