"""The report, the figures, the path and the validation of a screen of columns."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from icscm import InvariantFeatureSelector
from icscm.exceptions import IcscmError
from icscm.report.wording.screening import LIMITS
from icscm.screening import rounds as screening_rounds
from icscm.stats.random_effects import pool_effects
from icscm.validation.path import tolerance_path
from icscm.validation.screening import validate_screen
from support.drawings import find_texts

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")

SITES = ("Ash", "Birch", "Cedar", "Elm")


def make_table(n=150, seed=0, reverse=False):
    """A cause, noise, and a billing code that follows the label less from site to site."""
    rng = np.random.default_rng(seed)
    site = np.repeat(SITES, n)
    age, noise = rng.normal(size=(2, 4 * n)).round(2)
    ill = (rng.random(4 * n) < 1 / (1 + np.exp(-1.5 * age))).astype(int)
    error = np.repeat([0.02, 0.15, 0.3, 0.98 if reverse else 0.45], n)
    code = np.where(rng.random(4 * n) < error, 1 - ill, ill)
    late = np.where(rng.random(4 * n) < np.repeat([0.25, 0.3, 0.35, 0.5], n), 1 - ill, ill)
    columns = {"age": age, "noise": noise, "code": code, "late": late}
    return pd.DataFrame(columns), ill, site


@pytest.fixture(scope="module")
def data():
    return make_table()


def follow(selector, X, y, site, **options):
    return tolerance_path(selector, X, y, environments=site, **options)


@pytest.fixture(scope="module")
def selector(data):
    return InvariantFeatureSelector(cv=2, random_state=0).fit(*data[:2], environments=data[2])


@pytest.fixture(scope="module")
def path(data):
    screen = InvariantFeatureSelector(cv=2, random_state=0)
    return follow(screen, *data, tolerances=[1.5, 0.1])


@pytest.fixture(scope="module")
def validation():
    learner = InvariantFeatureSelector(LogisticRegression(), cv=2, random_state=0)
    X, y, site = make_table(200, reverse=True)
    return validate_screen(learner, X, y, environments=site)


def test_every_tolerance_of_the_path_is_the_screen_at_that_tolerance(data, selector, path):
    assert [point.tolerance for point in path.points] == [1.5, 0.5, 0.1]
    assert path.own == selector.tolerance == 0.5
    for point in path.points:
        screen = clone(selector).set_params(tolerance=point.tolerance)
        screen.fit(*data[:2], environments=data[2])
        assert list(point.kept) == screen.kept_
        assert list(point.rejected) == screen.rejected_
        assert point.score == pytest.approx(screen.rounds_["score"].iloc[-1])
        assert point.loss == pytest.approx(screen.rounds_["loss"].iloc[-1])


def test_the_path_has_a_row_for_each_tolerance(path):
    frame = path.to_frame()
    assert frame["tolerance"].tolist() == [1.5, 0.5, 0.1]
    assert frame["score_left_out"].between(0, 1).all()
    assert (frame["worst_score_left_out"] <= frame["score_left_out"]).all()
    assert all(len(point.scores_left_out) == len(SITES) for point in path.points)
    assert "screened again at each tolerance" in " ".join(repr(path).split())
    assert "training environments, cross-validated" in find_texts(path.plot())


def test_a_path_needs_environments_and_tolerances(data):
    with pytest.raises(IcscmError, match="needs environments"):
        follow(InvariantFeatureSelector(), data[0], data[1], None)
    with pytest.raises(IcscmError, match="tolerance"):
        follow(InvariantFeatureSelector(), *data, tolerances=[-1.0])


def test_pooled_effects_equal_the_closed_form():
    """DerSimonian and Laird, and Higgins' prediction interval, of a worked example."""
    effects, errors = np.array([0.1, 0.9, 0.4, 1.4]), np.array([0.2, 0.25, 0.15, 0.3])
    w = errors**-2
    q = (w * (effects - (w * effects).sum() / w.sum()) ** 2).sum()
    tau2 = (q - 3) / (w.sum() - (w**2).sum() / w.sum())
    w = 1 / (errors**2 + tau2)
    mean = (w * effects).sum() / w.sum()
    reach = stats.t.ppf(0.975, 2) * np.sqrt(tau2 + 1 / w.sum())
    found = pool_effects(effects, errors)
    assert found.mean == pytest.approx(mean)
    assert found.tau == pytest.approx(np.sqrt(tau2))
    assert found.interval == pytest.approx((mean - reach, mean + reach))
    assert pool_effects(effects[:2], errors[:2]).interval is None
    assert pool_effects(np.array([np.nan]), np.array([np.nan])) is None
    assert pool_effects(np.array([0.3]), np.array([0.1])).tau == 0.0


def test_the_screen_inside_each_fold_protects_where_a_shortcut_reverses(validation):
    by_site = {each.environment: each for each in validation.held_out}
    assert [*by_site] == [*SITES]
    assert by_site["Elm"].score_all < 0.5 < 0.7 < by_site["Elm"].score_screened
    assert by_site["Elm"].loss_screened < by_site["Elm"].loss_all
    assert all("code" in each.rejected for each in validation.held_out)
    assert "AUC in the environment left out, on average" in validation.text
    assert validation.to_frame().shape == (4, 8)
    assert "left out" in repr(validation)


def test_the_validation_equals_a_screen_and_fit_by_hand(validation):
    X, y, site = make_table(200, reverse=True)
    is_training = site != "Elm"
    X_new, y_new = X[~is_training], y[~is_training]
    learner = InvariantFeatureSelector(LogisticRegression(), cv=2, random_state=0)
    learner.fit(X[is_training], y[is_training], environments=site[is_training])
    auc = roc_auc_score(y_new, learner.predict_proba(X_new)[:, 1])
    assert validation.held_out[-1].score_screened == pytest.approx(auc)
    assert list(validation.held_out[-1].rejected) == learner.rejected_
    plain = clone(learner.estimator).fit(X[is_training], y[is_training])
    auc = roc_auc_score(y_new, plain.predict_proba(X_new)[:, 1])
    assert validation.held_out[-1].score_all == pytest.approx(auc)


def test_a_validation_needs_three_environments(data):
    X, y, site = data
    own = np.isin(site, SITES[:2])
    with pytest.raises(IcscmError, match="at least 3 environments"):
        validate_screen(InvariantFeatureSelector(), X[own], y[own], environments=site[own])


def test_a_validation_of_three_environments_says_that_two_reject_nothing(data):
    """Its screens see two environments each, so that both columns of scores are the same."""
    X, y, site = data
    in_three = site != "Birch"
    selector = InvariantFeatureSelector(cv=2, random_state=0)
    validation = validate_screen(selector, X[in_three], y[in_three], environments=site[in_three])
    assert all(each.rejected == () for each in validation.held_out)
    assert "two remain, which show one difference" in validation.text


def test_the_summary_holds_everything_as_json(selector, path, validation):
    report = selector.report(path=path, validation=validation, data_name="sites.csv", target="ill")
    found = json.loads(report.to_json())
    assert found["rejected"] == selector.rejected_
    assert found["kept"] == selector.kept_
    assert found["columns"][0]["column"] == "code"
    assert found["columns"][0]["verdict"] == "rejected"
    assert len(found["columns"][0]["environments"]) == len(SITES)
    assert found["columns"][0]["worth_low"] < found["columns"][0]["worth"]
    assert found["columns"][0]["why"].startswith("Its worth is ")
    assert (found["score"], found["loss"]) == ("AUC", "log loss")
    assert [each["score"] for each in found["costs"]] == selector.rounds_["score"].tolist()
    assert [each["without"] for each in found["costs"]][1:] == selector.rejected_
    assert len(found["path"]) == 3
    assert len(found["validation"]["environments"]) == 4
    assert found["limits_of_the_screen"] == list(LIMITS)
    assert repr(report).startswith("<icscm report: ")


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_page_shows_verdicts_forests_costs_and_limits(selector, path, validation, tmp_path):
    report = selector.report(path=path, validation=validation, environment="site")
    page = report.save(tmp_path / "screen.html").read_text("utf-8")
    tags = Tags(page).found
    ids = {attrs.get("id") for _, attrs in tags}
    assert {"verdicts", "costs", "validation", "effects", "path"} <= ids
    n_forests = sum(tag == "details" for tag, _ in tags)
    assert n_forests == selector.screen_["worth"].notna().sum()
    assert sum("open" in attrs for tag, attrs in tags if tag == "details") == len(
        selector.rejected_
    )
    n_nothing = sum(column["says_nothing"] for column in report.to_dict()["columns"])
    assert page.count(">new environment<") == n_forests - n_nothing
    for sentence in LIMITS:
        assert sentence in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_the_markdown_has_the_same(selector, tmp_path):
    text = selector.report().save(tmp_path / "screen.md").read_text("utf-8")
    assert "are rejected at tolerance 0.5" in text or "is rejected at tolerance 0.5" in text
    assert "## Limits" in text
    assert "## Cost at the training environments" in text
    assert "Leave-one-environment-out" not in text  # not validated


def test_names_are_text_on_the_page():
    X, y, site = make_table(100)
    X.columns = ["<b>age</b>", "a|b", "code*", "$late$"]
    found = InvariantFeatureSelector(cv=2, random_state=0).fit(X, y, environments=site)
    report = found.report(data_name="<script>")
    page = report.to_html()
    assert "<b>age" not in page
    assert "&lt;script&gt;" in page
    assert r"a\|b" in report.to_markdown()
    found.plot()


def test_a_forest_plot_of_a_column_and_of_the_worst(selector):
    texts = find_texts(selector.plot("code"))
    names = [text for text in texts if text in (*SITES, "mean", "new environment")]
    assert names == [*SITES, "mean", "new environment"]
    assert texts[0].startswith("code")
    n_known = selector.screen_["worth"].notna().sum()
    assert find_texts(selector.plot()).count("mean") == n_known
    with pytest.raises(IcscmError, match="no column 'cod'"):
        selector.plot("cod")


def test_without_environments_there_is_nothing_to_draw(data):
    with pytest.warns(UserWarning, match="No environments"):
        found = InvariantFeatureSelector(cv=2).fit(data[0], data[1])
    assert "cannot tell" in found.report().to_html()
    assert found.report().to_dict()["path"] is None
    with pytest.raises(IcscmError, match="no effect is known"):
        found.plot()


def test_arrays_have_positions_for_names(data):
    frame, y, site = data
    X = frame[["age", "code"]].to_numpy()
    found = InvariantFeatureSelector(cv=2, random_state=0).fit(X, y, environments=site)
    facts = found.report().to_dict()
    assert facts["columns"][0]["column"] == "x1"
    assert facts["costs"][1]["without"] == "x1"
    validation = validate_screen(found, X, y, environments=site)
    assert "x1" in validation.to_dict()["environments"][1]["rejected"]
    assert "x1" in found.report(validation=validation).to_html()
    points = follow(found, X, y, site, tolerances=[1.0], leave_one_out=False).points
    assert [point.tolerance for point in points] == [1.0, 0.5]


def test_a_frame_of_which_every_column_is_rejected(data):
    """The frame without columns had no rows, and the fit failed in scikit-learn's words."""
    X, y, site = data
    with pytest.warns(UserWarning, match="Every column was rejected"):
        found = InvariantFeatureSelector(cv=2, random_state=0).fit(
            X[["code"]], y, environments=site
        )
    assert found.rejected_ == ["code"]
    assert len(found.predict(X)) == len(X)
    costs = found.report().to_dict()["costs"]
    assert [each["n_columns"] for each in costs] == [1, 0]
    assert costs[-1]["score"] is None
    assert "no model" in found.report().to_html()
    path = follow(found, X[["code"]], y, site)
    assert path.points[-1].kept == ()
    assert path.points[-1].score is None
    assert path.to_frame()["n_columns"].iloc[-1] == 0


# --- outcomes of other kinds, and screens that are not complete -----------------------------------


def make_number_table(n=1200, n_sites=6):
    """A cause of a number, noise, and a code whose relation to it reverses from site to site."""
    rng = np.random.default_rng(0)
    site = np.arange(n) % n_sites
    cause, noise = rng.normal(size=(2, n))
    y = cause + rng.normal(size=n)
    code = np.linspace(1.5, -1.0, n_sites)[site] * y + rng.normal(size=n)
    return pd.DataFrame({"cause": cause, "noise": noise, "code": code}).round(2), y, site


@pytest.mark.parametrize(
    ("has_classes", "names", "effect"),
    [(False, ("R2", "RMSE"), "difference"), (True, ("mean AUC", "log loss"), "odds ratio")],
)
def test_a_report_names_the_scores_and_effects_of_its_outcome(has_classes, names, effect):
    X, y, site = make_number_table()
    if has_classes:
        y = np.array(["low", "middle", "high"])[np.digitize(y, [-0.6, 0.6])]
    found = InvariantFeatureSelector(cv=2, random_state=0).fit(X, y, environments=site)
    assert "code" in found.rejected_
    report = found.report()
    facts = report.to_dict()
    assert (facts["score"], facts["loss"]) == names
    for text in (report.to_html(), report.to_markdown()):
        assert names[0] in text
        assert f"{effect} " in text
        assert ("odds ratio" in text) == has_classes
    outputs = {each["output"] for each in facts["columns"]}
    assert outputs <= ({"low", "middle", "high", None} if has_classes else {None})
    found.plot()


def test_an_interrupted_screen_says_so_at_the_top(data, monkeypatch):
    """Ctrl-C threw away the rounds that were done."""

    def run_round(screen, *args, **options):
        if screen.rounds:
            raise KeyboardInterrupt
        return plain_run_round(screen, *args, **options)

    plain_run_round = screening_rounds.run_round
    monkeypatch.setattr(screening_rounds, "run_round", run_round)
    selector = InvariantFeatureSelector(cv=2, random_state=0)
    with pytest.warns(UserWarning, match="interrupted after round 1"):
        selector.fit(*data[:2], environments=data[2])
    report = selector.report()
    assert not selector.is_complete_
    assert "interrupted after 1 round" in report.to_html()
    assert "interrupted after 1 round" in report.to_markdown()
    assert report.to_dict()["costs"][-1]["score"] is None
    assert report.to_dict()["task"]["is_complete"] is False


def test_a_study_ends_when_its_screen_is_interrupted(data, monkeypatch):
    """A validation would have gone on with the next environment."""

    def give_up(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(screening_rounds, "run_round", give_up)
    with pytest.raises(KeyboardInterrupt):
        validate_screen(InvariantFeatureSelector(cv=2), *data[:2], environments=data[2])


def test_noise_that_is_kept_says_nothing_on_every_page():
    """Its worth in a new environment was -1.6 on all pages, as if it were a shortcut."""
    rng = np.random.default_rng(3)
    site = np.repeat(np.arange(5), 160)
    age = rng.normal(size=800)
    noise = rng.normal(size=(800, 3))
    y = rng.random(800) < 1 / (1 + np.exp(-2 * age))
    X = pd.DataFrame({"age": age, "a": noise[:, 0], "b": noise[:, 1], "c": noise[:, 2]})
    selector = InvariantFeatureSelector(cv=2, random_state=0).fit(X, y, environments=site)
    screen = selector.screen_.set_index("column")
    is_chance = (screen["worth"] < 2 * screen["worth_error"]) & (screen["verdict"] == "kept")
    chance = screen.index[is_chance]
    assert set(chance) >= {"a", "b"}
    report = selector.report()
    for column in report.to_dict()["columns"]:
        assert column["says_nothing"] == (column["column"] in chance)
    assert "says nothing beside the others" in report.to_markdown()
    cells = {"| says nothing |": report.to_markdown(), ">says nothing</td>": report.to_html()}
    for cell, text in cells.items():
        assert text.count(cell) == len(chance)
    assert "says nothing beside the others" in selector.plot("a").to_svg()
