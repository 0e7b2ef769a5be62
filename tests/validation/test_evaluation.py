"""External validation: what is said of a model on new rows."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

import icscm
from icscm import ICSCMClassifier, SCMClassifier, evaluate
from icscm.datasets import make_conjunction
from icscm.drawing.shapes import Role
from icscm.exceptions import IcscmError
from icscm.formatting import dump_json
from icscm.model.saved import make_saved_model
from icscm.stats.criteria import adjust_holm
from icscm.validation.leaf_calibration import calibrate_leaves
from icscm.validation.scores import TITLES, compute_scores
from support.drawings import find_curves, find_texts, parse
from support.fitting import fit_all_columns


@pytest.fixture(scope="module")
def new():
    return make_conjunction(1_000, 2, n_environments=3, random_state=8)


@pytest.fixture(scope="module")
def learner():
    old = make_conjunction(1_000, 2, n_environments=3, random_state=7)
    return ICSCMClassifier(alpha=0.01).fit(old.X, old.y, environments=old.environments)


@pytest.fixture(scope="module")
def found(learner, new):
    return evaluate(learner, new.X, new.y, environments=new.environments)


def test_scores_are_those_of_the_rows(learner, new, found):
    predicted, p = learner.predict(new.X), learner.predict_proba(new.X)[:, 1]
    assert found.overall.scores == compute_scores(new.y, predicted, p)
    assert found.overall.scores["auc"].value == pytest.approx(roc_auc_score(new.y, p))
    assert list(found.overall.scores) == list(TITLES)
    for each in found.environments:
        rows = np.asarray(new.environments) == each.environment
        assert each.n_samples == rows.sum()
        assert each.scores == compute_scores(new.y[rows], predicted[rows], p[rows])


def test_a_saved_model_is_judged_as_its_learner(tmp_path, learner, new, found):
    learner.save(tmp_path / "model.json")
    assert (
        evaluate(icscm.load(tmp_path / "model.json"), new.X, new.y, environments=new.environments)
        == found
    )


def test_the_baseline_is_the_majority_class_of_training():
    """Not the one in the new data, which nobody knew when the model was made."""
    X = pd.DataFrame({"x": [0, 0, 0, 1, 1]})
    learner = SCMClassifier().fit(X, [0, 0, 0, 1, 1])
    found = evaluate(learner, pd.DataFrame({"x": [1, 1, 0]}), [1, 1, 1])
    assert (found.baseline, found.baseline_from) == (0, "training")
    assert found.overall.baseline["error"].value == 1.0


def test_of_other_classifiers_the_baseline_comes_from_the_new_data(new):
    model = LogisticRegression().fit(new.X, new.y)
    found = evaluate(model, new.X, new.y)
    assert found.baseline_from == "these data"
    assert found.baseline == int(2 * new.y.sum() > len(new.y))
    assert "these data (that of training is not known)" in " ".join(repr(found).split())
    assert found.leaves == ()
    assert found.model == "LogisticRegression"


def test_without_predict_proba_what_needs_probabilities_is_none(new):
    found = evaluate(LinearSVC().fit(new.X, new.y), new.X, new.y, environments=new.environments)
    assert found.overall.scores["error"] is not None
    assert found.overall.scores["auc"] is None
    assert "AUC" in repr(found)
    assert found.to_html()


@pytest.mark.parametrize("strategy", ["most_frequent", "uniform"])
def test_a_model_no_better_than_the_baseline_is_called_that(new, strategy):
    model = DummyClassifier(strategy=strategy, random_state=0).fit(new.X, new.y)
    found = evaluate(model, new.X, new.y)
    assert found.verdict == "no better"
    said = "no better than that of the constant rate of these data, "
    assert said in " ".join(repr(found).split())
    assert said in found.to_dict()["headline"]


def test_a_model_that_errs_more_but_has_better_probabilities_is_better():
    """A rare outcome found at the price of false alarms: more errors, and of use all the same."""
    rng = np.random.default_rng(0)
    x = rng.random(4_000)
    y = (rng.random(4_000) < 0.1 * x).astype(int)
    learner = SCMClassifier(p="balanced").fit(x[:, None], y)
    found = evaluate(learner, x[:, None], y)
    error, other = (each["error"].value for each in (found.overall.scores, found.overall.baseline))
    assert error > other
    assert found.verdict == "better"
    assert found.headline.startswith("AUC 0.6")


def test_little_data_do_not_show_that_a_model_is_better(learner, new):
    is_right = learner.predict(new.X) == new.y
    few = np.flatnonzero(is_right & (new.y == 1))[:2].tolist()
    few += np.flatnonzero(is_right & (new.y == 0))[:2].tolist()
    found = evaluate(learner, new.X.iloc[few], new.y[few])
    assert found.verdict == "not shown to be better"
    assert "not shown to be better than that of the constant rate of" in found.headline
    assert f", p = {found.p_value:.2f}." in found.headline


def test_without_probabilities_better_is_by_rows_in_which_only_one_is_wrong(new):
    model = LinearSVC().fit(new.X, new.y)
    found = evaluate(model, new.X, new.y)
    wrong, alike = model.predict(new.X) != new.y, found.baseline != new.y
    b, c = (wrong & ~alike).sum(), (alike & ~wrong).sum()
    assert found.p_value == pytest.approx(binomtest(int(b), int(b + c)).pvalue)
    assert found.verdict == "better"
    assert found.headline.startswith("Error by the model's own predictions: ")


def test_leaves_are_compared_with_training(learner, new, found):
    leaves = learner.model_.find_leaves(new.X)
    p_values = []
    for i, each in enumerate(found.leaves):
        old = np.array([sum(row) for row in learner.model_.leaves[i]])
        now = np.bincount(new.y[leaves == i], minlength=2)
        assert each.expected == pytest.approx(old[1] / old.sum())
        assert each.observed == pytest.approx(now[1] / now.sum())
        assert (each.n_training, each.n_samples) == (old.sum(), now.sum())
        p_values.append(fisher_exact([old, now]).pvalue)
    assert len(p_values) > 1
    assert [each.p_value for each in found.leaves] == pytest.approx(p_values, rel=0.2)


def test_a_rate_that_moved_is_seen_and_one_that_did_not_is_not():
    """At level 0.05 over all leaves together: held in simulation."""
    rng = np.random.default_rng(0)
    x = np.repeat([0, 1], 500)
    learner = SCMClassifier().fit(x[:, None], rng.random(1000) < np.where(x, 0.7, 0.2))
    new = np.repeat([0, 1], 300)[:, None]
    leaves = learner.model_.find_leaves(new)
    # the training rates themselves: no more than chance is between the two
    rates = learner.model_.leaf_probabilities()[leaves]
    runs = [calibrate_leaves(learner.model_, leaves, rng.random(600) < rates) for _ in range(500)]
    n_false = sum(any(leaf.has_moved for leaf in run) for run in runs)
    assert n_false / 500 < 0.05
    moved = evaluate(learner, new, rng.random(600) < 0.2)
    assert sorted(leaf.has_moved for leaf in moved.leaves) == [False, True]


@pytest.mark.parametrize("seed", range(20))
def test_holms_corrected_p_values_reject_as_his_procedure_does(seed):
    """The smallest is compared with alpha / 6, the next with alpha / 5, up to the first kept."""
    p_values = np.random.default_rng(seed).random(6) ** 3
    rejected = np.zeros(6, dtype=bool)
    for n_left, at in zip(range(6, 0, -1), np.argsort(p_values), strict=True):
        if p_values[at] > 0.05 / n_left:
            break
        rejected[at] = True
    assert ((adjust_holm(p_values) <= 0.05) == rejected).all()


def test_a_leaf_without_rows_is_not_compared(learner, new):
    leaves = learner.model_.find_leaves(new.X)
    found = evaluate(learner, new.X[leaves == 0], new.y[leaves == 0])
    assert found.leaves[1].has_moved is None
    assert found.leaves[1].observed is None
    assert found.to_html()
    assert "no samples" in repr(found)


def test_new_environments_are_noted(learner, new):
    found = evaluate(
        learner, new.X, new.y, environments=np.where(new.environments == 0, "abroad", "x")
    )
    assert [each.is_new for each in found.environments] == [True, True]
    assert f"Not in the training data, {len(new.y):,} samples: abroad, x." in found.notes
    assert "abroad (new)" in repr(found)


def test_one_class_is_a_note(learner, new):
    rows = new.y == 1
    found = evaluate(learner, new.X[rows], new.y[rows], environments=new.environments[rows])
    assert found.overall.scores["auc"] is None
    assert found.overall.scores["sensitivity"] is not None
    assert any(note.startswith("All samples are 1:") for note in found.notes)
    assert found.to_html()
    assert dump_json(found.to_dict())


def test_an_environment_of_one_class_is_a_note(learner, new):
    names = np.where((new.environments == 0) & (new.y == 1), "lone", "rest")
    found = evaluate(learner, new.X, new.y, environments=names)
    assert "One class only, so AUC and balanced accuracy are undefined: lone." in found.notes


def test_environments_in_which_the_baseline_is_as_good_are_noted(learner, new):
    is_wrong = learner.predict(new.X) != new.y
    found = evaluate(learner, new.X, new.y, environments=np.where(is_wrong, "bad", "good"))
    said = "environments the Brier score is not below that of the constant rate: bad."
    assert f"In 1 of 2 {said}" in found.notes


def test_labels_that_the_model_does_not_know_are_named(learner, new):
    with pytest.raises(IcscmError, match=r"y holds labels .* \(0 and 1\): 2; drop these rows"):
        evaluate(learner, new.X, np.where(new.y == 1, 2, 0))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearRegression().fit([[0], [1]], [0, 1]), "LinearRegression has no classes"),
        (LogisticRegression().fit([[0], [1], [2]], [0, 1, 2]), "model has 3 classes; only"),
        ("model.json", "a model read by icscm.load; str has no classes"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(model, message):
    with pytest.raises(IcscmError, match=message):
        evaluate(model, [[0]], [0])


def test_rows_and_labels_must_fit(learner, new):
    with pytest.raises(IcscmError, match="y has 3 entries but X has"):
        evaluate(learner, new.X, [0, 1, 0])
    with pytest.raises(IcscmError, match="X has no rows"):
        evaluate(learner, new.X[:0], [])


def make_smokers(levels):
    return pd.DataFrame({"smoker": np.repeat(levels, 20)})


def test_levels_of_rules_that_no_row_has_are_noted():
    """A site that writes Yes for yes: the model predicted one class for all rows, silently."""
    y = np.repeat([True, False], 20)
    learner = fit_all_columns(SCMClassifier(), make_smokers(["yes", "no"]), y)
    found = evaluate(learner, make_smokers(["Yes", "No"]), y)
    (note,) = [each for each in found.notes if "does not contain" in each]
    assert (
        note == f"Column 'smoker' does not contain {learner.rules_[0].levels[0]}, which the rules "
        "use; it contains No, Yes."
    )


def test_values_missing_as_never_before_are_a_note_and_no_warning():
    y = np.repeat([True, False], 20)
    learner = fit_all_columns(SCMClassifier(), make_smokers(["yes", "no"]), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(learner, make_smokers(["yes", None]), y)
    assert any("is missing in 20 rows but never was at fitting" in each for each in found.notes)


def test_names_of_series_are_used(learner, new):
    y, places = pd.Series(new.y, name="ill"), pd.Series(new.environments, name="hospital")
    found = evaluate(learner, new.X, y, environments=places)
    assert "(always ill = " in found.headline
    assert "By hospital, the worst first" in repr(found)


def test_a_frame_has_a_row_for_each_environment(found):
    frame = found.to_frame()
    assert len(frame) == 4
    assert frame["environment"].tolist() == [None, 0, 1, 2]
    assert frame.loc[0, "error"] == found.overall.scores["error"].value
    assert frame.loc[0, "npv_baseline"] == pytest.approx(found.overall.baseline["npv"].value)


def test_the_text_fits_80_columns_and_names_the_worst_and_the_best(learner, new):
    names = np.array([f"a place of a very long name number {i}" for i in range(30)])
    found = evaluate(learner, new.X, new.y, environments=names[np.arange(len(new.y)) % 30])
    lines = repr(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("..." in line for line in lines) == 1
    values = [each.scores["auc"].value for each in found.environments if each.scores["auc"]]
    first = next(i for i, line in enumerate(lines) if line.startswith("environment")) + 1
    assert f"{min(values):.3f}" in " ".join(lines[first : first + 2])


def test_a_model_without_rules_is_judged_too(new):
    model = make_saved_model(SCMClassifier().fit([[0], [1]], [0, 1])).model.make_baseline()
    saved = make_saved_model(SCMClassifier().fit(new.X, new.y))
    empty = type(saved)(**{**vars(saved), "model": model})
    found = evaluate(empty, new.X, new.y, environments=new.environments)
    assert found.verdict == "no better"
    assert len(found.leaves) == 1


def test_it_plots_and_shows_itself(found):
    figure = found.plot()
    texts = find_texts(figure)
    assert texts.count("predicted probability") == 1
    assert texts.count("threshold") == 2
    # of three environments, calibration and gain, and a line in each key
    assert len(find_curves(figure, Role.ENVIRONMENT_CURVE)) == 2 * (3 + 1)
    assert sum(" (n = " in text for text in texts) == 4 + len(found.leaves)
    assert "<iframe" in found._repr_html_()


def test_names_on_the_page_are_text_whatever_they_hold(learner, new):
    names = np.where(new.environments == 0, "<script>alert(1)</script>", "$x_{$")
    found = evaluate(learner, new.X, pd.Series(new.y, name="<b>ill"), environments=names)
    page = found.to_html()
    assert "<script>alert" not in page
    assert "<b>ill" not in page
    parse(found.plot())


def test_names_of_environments_stay_on_their_line_and_print(learner, new):
    """A line break or an escape sequence in an environment's name reached the page."""
    name = "north\nwing\r\x1b[31m\x9b\u202e\u200b\ufeff"
    shown = r"north\nwing\r\x1b[31m\x9b\u202e\u200b\ufeff"
    names = np.where(new.environments == 0, name, "south")
    y = pd.Series(new.y, name=name)
    found = evaluate(learner, new.X, y, environments=pd.Series(names, name=name))
    pages = [repr(found), found.to_html(), found.plot().to_svg()]
    for page in pages:
        assert shown in page
        assert "north\nwing" not in page
        assert {char for char in page if not char.isprintable()} <= {"\n", "\xa0"}
    assert found.environments[0].environment == name  # as data it is what it was


@pytest.mark.parametrize("n_names", [210, pytest.param(700, marks=pytest.mark.thorough)])
def test_very_many_environments_keep_the_page_small(n_names, learner, new):
    names = np.arange(len(new.y)) % n_names
    page = evaluate(learner, new.X, new.y, environments=names).to_html()
    assert len(page.encode()) < 2_000_000
    for table in page.split("<table")[1:]:
        assert table.split("</table>")[0].count("<tr") <= 202  # with those of titles and of all


def make_labels(kind, names):
    if kind == "tuple":
        return [("site", name) for name in names]
    days = pd.to_datetime([f"2020-01-0{ord(name) - 96}" for name in names])
    return (
        days.to_numpy()
        if kind == "datetime64"
        else list(days if kind == "Timestamp" else days.date)
    )


@pytest.mark.parametrize("kind", ["date", "Timestamp", "datetime64", "tuple"])
def test_labels_that_a_file_cannot_hold_are_recognized(kind, tmp_path):
    """Date, Timestamp and tuple environments of the training data were all reported as new.

    They were compared with the text that the model file holds instead of them.
    """
    y, names = np.arange(90) % 2, list("abc" * 30)
    X = y[:, np.newaxis]
    learner = SCMClassifier().fit(X, y, environments=make_labels(kind, names))
    learner.save(tmp_path / "model.json")
    new = make_labels(kind, ["b"] * 45 + ["d"] * 45)
    for model in (learner, icscm.load(tmp_path / "model.json")):
        found = evaluate(model, X, y, environments=new)
        assert [each.is_new for each in found.environments] == [False, True]
        assert [len(leaf.interval_checks) for leaf in found.leaves] == [1, 1]


def make_merged(**options):
    """A model as `icscm fit` saves it: b and c merged, d excluded."""
    y = np.arange(120) % 2
    places = np.repeat(["a", "b + c", "b + c", "a"], 30)
    saved = make_saved_model(SCMClassifier().fit(y[:, np.newaxis], y, environments=places))
    table = {"merge_environments": ["b+c=b + c"], "exclude_environment": ["d"]} | options
    return replace(saved, settings={**saved.settings, "table": table})


def test_environments_are_merged_and_excluded_as_in_training():
    """Merged environments were reported as new, and excluded ones were scored."""
    y = np.arange(100) % 2
    y[75:] = 0  # of the excluded environment: scored, they would count as wrong
    places = np.repeat(["b", "c", "new", "d"], 25)
    X = (np.arange(100) % 2)[:, np.newaxis]
    found = evaluate(
        make_merged(), X, pd.Series(y, name="ill"), environments=pd.Series(places, name="place")
    )
    assert [(e.environment, e.n_samples, e.is_new) for e in found.environments] == [
        ("b + c", 50, False),
        ("new", 25, True),
    ]
    assert found.overall.n_samples == 75
    assert found.overall.scores["error"].value == 0.0
    assert (found.target, found.environment) == ("ill", "place")
    assert "Excluded: 25 samples of environments that were excluded in training." in found.notes


def test_environments_absent_from_the_new_rows_need_no_merging():
    y = np.arange(50) % 2
    found = evaluate(make_merged(), y[:, np.newaxis], y, environments=["c"] * 50)
    assert [(e.environment, e.is_new) for e in found.environments] == [("b + c", False)]
    assert not found.notes


def test_rows_of_excluded_environments_alone_are_those_of_a_new_one():
    """A hospital that was left out of the fit could not be evaluated: an error said that all its
    rows were excluded."""
    y = np.arange(50) % 2
    found = evaluate(make_merged(), y[:, np.newaxis], y, environments=["d"] * 50)
    assert [(e.environment, e.n_samples, e.is_new) for e in found.environments] == [("d", 50, True)]


def test_an_evaluation_in_a_notebook_is_its_text(monkeypatch):
    """In Jupyter `repr` displayed seventeen pieces and returned an empty text."""
    y = np.arange(50) % 2
    found = evaluate(make_merged(), y[:, np.newaxis], y)
    plain = repr(found)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(found) == plain != ""


@pytest.mark.parametrize("odd", [None, 3, "b+c=e", [1, None], {"b": "c"}])
def test_odd_settings_of_a_model_file_are_ignored(odd):
    """A model file may hold anything as its settings."""
    y = np.arange(50) % 2
    saved = make_merged(merge_environments=odd, exclude_environment=odd)
    assert len(evaluate(saved, y[:, np.newaxis], y, environments=["b"] * 50).environments) == 1


def test_visits_of_a_patient_do_not_move_a_leaf():
    """Rates of a leaf that hold on average: with groups rejected in about 5 %, without far more.

    200 new samples of 40 patients with 10 visits each, whose own rates differ.
    """
    rng = np.random.default_rng(0)
    X, patients = np.zeros((4000, 1)), np.repeat(np.arange(40), 10)
    X[:2000] = 1
    y = np.where(X[:, 0] == 1, rng.random(4000) < 0.7, rng.random(4000) < 0.2)
    model = SCMClassifier(max_rules=1).fit(X, y).model_
    n_moved = np.zeros(2)
    for _ in range(200):
        new = rng.integers(0, 2, 40)[patients]
        rate = rng.beta(np.where(new[::10] == 1, 1.4, 0.4), np.where(new[::10] == 1, 0.6, 1.6))
        label = rng.random(400) < rate[patients]
        leaves = model.find_leaves(new[:, np.newaxis].astype(float))
        for way, groups in enumerate((patients, None)):
            found = calibrate_leaves(model, leaves, label, groups=groups)
            n_moved[way] += any(each.has_moved for each in found)
    assert n_moved[0] <= 200 * 0.05 + 4 * np.sqrt(200 * 0.05 * 0.95)
    assert n_moved[1] > 60


def test_an_evaluation_with_groups_has_wider_intervals_and_a_note(learner, new, found):
    groups = [f"patient {k}" for k in np.argsort(np.argsort(new.y, kind="stable")) // 50]
    grouped = evaluate(learner, new.X, new.y, environments=new.environments, groups=groups)
    assert any("Intervals and tests are those of" in each for each in grouped.notes)
    for one, other in zip(
        (found.overall, *found.environments), (grouped.overall, *grouped.environments), strict=True
    ):
        assert one.scores["error"].value == other.scores["error"].value
        widths = [each.scores["brier"].high - each.scores["brier"].low for each in (one, other)]
        assert widths[0] < widths[1]
    with pytest.raises(IcscmError, match="groups has 3 entries"):
        evaluate(learner, new.X, new.y, environments=new.environments, groups=[1, 2, 3])


def test_a_rate_without_an_interval_is_drawn():
    """Two rows in two groups have rates without intervals; the page of the evaluation failed."""
    data = make_conjunction(200, random_state=1)
    learner = SCMClassifier().fit(data.X, data.y)
    rows = [int(np.flatnonzero(data.y == k)[0]) for k in (0, 1)]
    X, y, places = data.X.iloc[rows], data.y[rows], np.array(["north", "south"])
    found = evaluate(learner, X, y, environments=places, groups=y)
    assert "north" in found.to_html()
