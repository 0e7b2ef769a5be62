"""Thresholds, and their evaluation."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import icscm
from icscm import InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier, evaluate
from icscm.cli import main
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.model.saved import make_saved_model
from icscm.model.thresholds import Criterion, find_threshold, read_threshold
from icscm.validation.tuning import choose_threshold

ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.8])), min_size=2, max_size=40
)


@given(ROWS, st.sampled_from(["youden", "sensitivity", "specificity"]), st.floats(0.01, 0.99))
@settings(max_examples=150, deadline=None)
def test_thresholds_are_those_of_a_search_over_all(rows, name, least):
    y, p = map(np.array, zip(*rows, strict=True))
    if y.all() or not y.any():
        with pytest.raises(IcscmError, match="rows of a single class"):
            find_threshold(Criterion(name, least), y, p)
        return
    found = []
    for cut in [0.025, 0.075, 0.2, 0.4, 0.65, 0.9]:  # between the values, whether they occur or not
        shares = (p >= cut)[y].mean(), (p < cut)[~y].mean()
        found.append((cut, *shares))
    cut = find_threshold(Criterion(name, least), y, p)
    own = (p >= cut)[y].mean(), (p < cut)[~y].mean()
    if name == "youden":
        assert sum(own) == pytest.approx(max(a + b for _, a, b in found))
    elif name == "sensitivity":
        assert own[0] >= least
        assert own[1] == max(b for _, a, b in found if a >= least)
    else:
        assert own[1] >= least
        assert own[0] == max(a for _, a, b in found if b >= least)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (0.2, 0.2),
        (" 0.2", 0.2),
        ("costs=1:9", 0.1),
        ("costs=2.5:2.5", 0.5),
        ("specificity=0.9", ("specificity", 0.9)),
    ],
)
def test_forms_of_a_threshold(given, found):
    assert read_threshold(given) == found


@pytest.mark.parametrize(
    "given",
    [
        *(0, 1, True, "nan", "", "youden=1", "costs=1", "costs=0:1", "costs=-1:-3", "auc=3", None),
        *("sensitivity", "sensitivity=95", "costs=1:2:3", "costs=inf:1"),
    ],
)
def test_other_forms_are_one_sentence(given):
    message = "threshold must be a number between 0 and 1, costs=1:10, youden, sens"
    with pytest.raises(IcscmError, match=message):
        read_threshold(given)


def make_rows(seed, n=4_000, rate=-3.1):
    """A rare outcome at four sites, ranked well and never likely."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    odds = rate + 0.9 * X["a"] + 0.7 * X["b"]
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int), rng.integers(0, 4, n)


@pytest.fixture(scope="module")
def rows():
    return make_rows(0)


@pytest.fixture(scope="module")
def forest(rows):
    X, y, e = rows
    learner = InvariantForestClassifier(n_estimators=20, random_state=0)
    return learner.fit(X, y, environments=e)


def test_a_forest_is_judged_by_what_it_ranks_and_predicts_not_by_errors_at_half(forest):
    """A forest of AUC .82 was "better than always saying 0: wrong for 7.1 % where the constant is
    for 7.1 %", and of its calibration was said that "This model has no leaves".
    """
    X, y, e = make_rows(1)
    found = evaluate(forest, X, pd.Series(y, name="dead"), environments=e)
    assert found.overall.scores["auc"].value > 0.7
    error, other = (each["error"].value for each in (found.overall.scores, found.overall.baseline))
    assert error == pytest.approx(other, abs=0.01)
    assert found.verdict == "better"
    assert found.headline.startswith("AUC 0.7")
    assert "Calibration: slope " in found.headline
    assert "Brier score 0.0" in found.headline
    assert "Error at threshold 0.5: " in found.headline
    page = found.to_html()
    assert "no leaves" not in page
    assert (
        page.count('class="curve environment"') == 8 + 2
    )  # four sites, calibration and gain, keys
    assert len(found.overall.calibration_curve) > 20


@pytest.mark.parametrize("kind", ["rules", "tree", "forest", "logistic"])
def test_every_kind_of_model_has_curves_and_a_threshold(rows, forest, kind):
    X, y, e = rows
    if kind == "logistic":
        model = LogisticRegression().fit(X, y)
    elif kind == "forest":
        model = forest
    else:
        learner = {"rules": SCMClassifier(), "tree": InvariantTreeClassifier()}[kind]
        model = learner.fit(X, y, environments=e)
    found = evaluate(model, X, y, environments=e, threshold="costs=1:9")
    predicted = model.predict_proba(X)[:, 1] >= 0.1
    assert found.threshold == 0.1
    assert found.overall.scores["sensitivity"].value == pytest.approx(predicted[y == 1].mean())
    assert "Error at threshold 0.1: " in found.headline
    curve = found.to_decision_frame()
    assert len(curve) == 5 * 50
    assert curve["threshold"].iloc[0] == pytest.approx(min(0.01, found.thresholds[-1] / 10))
    assert (curve["net_benefit"][:50] >= -1e-9).any()
    assert found.overall.calibration_curve
    # as decided, at that threshold
    cut = int(np.searchsorted(found.thresholds, 0.1))
    if cut < 50:
        assert found.overall.treat_all[cut] < y.mean()


def test_a_threshold_is_not_chosen_on_the_rows_that_are_evaluated(rows, forest):
    X, y, e = rows
    with pytest.raises(IcscmError, match="threshold='youden' would be chosen on the rows it is"):
        evaluate(forest, X, y, environments=e, threshold="youden")
    with pytest.raises(IcscmError, match="threshold needs probabilities; LinearSVC has none"):
        evaluate(LinearSVC().fit(X, y), X, y, threshold=0.2)


def test_a_saved_model_is_given_a_threshold(rows, forest, tmp_path):
    X = rows[0]
    saved = make_saved_model(forest)
    p = saved.predict_proba(X)[:, 1]
    assert (saved.set_threshold(0.08).predict(X) == (p >= 0.08)).all()
    new, labels, _ = make_rows(2)
    chosen = saved.set_threshold("sensitivity=0.9", X=new, y=labels)
    found = chosen.predict(new)[labels == 1].mean()
    of_new = saved.predict_proba(new)[:, 1]
    lowest = of_new[of_new >= chosen.model.threshold].min()
    assert found >= 0.9 > (of_new > lowest)[labels == 1].mean()  # a higher one has too little
    chosen.save(tmp_path / "model.json")
    again = icscm.load(tmp_path / "model.json")
    assert again.model.threshold == chosen.model.threshold
    evaluation = evaluate(again, new, labels)
    assert evaluation.threshold == chosen.model.threshold
    with pytest.raises(IcscmError, match="pass X and y that the model was not learned from"):
        saved.set_threshold("youden")
    with pytest.raises(IcscmError, match="y has 3 entries but X has"):
        saved.set_threshold("youden", X=new, y=[0, 1, 0])


@pytest.mark.parametrize("criterion", ["youden", "sensitivity=0.9", "specificity=0.8"])
def test_a_threshold_is_chosen_on_environments_left_out(rows, criterion):
    """Four sites, of which the classifier learns from three; as a loop over them finds it."""
    X, y, e = rows
    left_out = np.empty(len(y))
    for site in range(4):
        fitted = LogisticRegression().fit(X[e != site], y[e != site])
        left_out[e == site] = fitted.predict_proba(X[e == site])[:, 1]
    chosen = choose_threshold(LogisticRegression(), X, y, environments=e, threshold=criterion)
    assert chosen == find_threshold(read_threshold(criterion), y == 1, left_out)
    assert chosen.held_out == "environments"
    assert chosen.sensitivity == pytest.approx((left_out >= chosen)[y == 1].mean())
    assert chosen.specificity == pytest.approx((left_out < chosen)[y == 0].mean())


@pytest.mark.thorough
def test_a_chosen_threshold_has_its_sensitivity_in_new_rows():
    """Chosen on held-out environments, in four tables: four standard errors, and two points more,

    since the final forest has learned from more rows than those that chose the threshold.
    """
    kept, n = 0, 0
    for seed in range(4):
        X, y, e = make_rows(10 + seed, 2_500, -2.0)
        learner = InvariantForestClassifier(n_estimators=10, random_state=0)
        cut = choose_threshold(learner, X, y, environments=e, threshold="sensitivity=0.9")
        learner.fit(X, y, environments=e)
        new, labels, _ = make_rows(50 + seed, 2_500, -2.0)
        kept += (learner.predict_proba(new)[labels == 1, 1] >= cut).sum()
        n += labels.sum()
    assert n > 1_000
    assert abs(kept / n - 0.9) < 4 * np.sqrt(0.9 * 0.1 / n) + 0.02


def test_without_enough_environments_rows_are_held_out(rows):
    X, y, _ = rows
    cut = choose_threshold(LogisticRegression(), X, y, threshold="youden")
    assert 0.01 < cut < 0.2
    assert cut.held_out == "rows"
    assert cut != choose_threshold(LogisticRegression(), X, y, random_state=1)
    assert choose_threshold(None, None, None, threshold="costs=1:3") == 0.25
    with pytest.raises(IcscmError, match="LinearSVC has no predict_proba"):
        choose_threshold(LinearSVC(), X, y)


def run(*arguments, status=0):
    done = CliRunner().invoke(main, [*map(str, arguments)], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("decisions")
    X, y, e = rows
    X.assign(dead=y, site=[f"s{k}" for k in e]).to_csv(folder / "data.csv", index=False)
    words = "--target", "dead", "--environment", "site", "--model", "tree", "-q"
    more = "--threshold", "sensitivity=0.8", "--out", folder / "model.json"
    run("fit", folder / "data.csv", *words, *more)
    return folder


def test_fit_keeps_the_threshold_that_it_chose(folder, rows):
    X, y, _ = rows
    saved = icscm.load(folder / "model.json")
    assert 0.01 < saved.model.threshold < 0.2
    told = json.loads(run("evaluate", folder / "model.json", folder / "data.csv", "--json").stdout)
    assert told["threshold"] == saved.model.threshold
    assert saved.predict(X)[y == 1].mean() > 0.7


def test_predict_and_export_take_another_threshold(folder):
    frames = []
    for more in ((), ("--threshold", "costs=1:3")):
        out = folder / f"p{len(frames)}.csv"
        run("predict", folder / "model.json", folder / "data.csv", "--out", out, "-q", *more)
        frames.append(pd.read_csv(out))
    assert (frames[1]["prediction"] == (frames[1]["probability"] >= 0.25)).all()
    assert frames[0]["prediction"].sum() > frames[1]["prediction"].sum()
    code: dict[str, object] = {}
    exec(run("export", folder / "model.json", "--to", "python", "--threshold", 0.25).stdout, code)
    row = pd.read_csv(folder / "data.csv").iloc[0].to_dict()
    assert code["predict"](row)[0] == frames[1]["prediction"][0]


@pytest.mark.parametrize("command", ["predict", "export", "evaluate", "fit"])
def test_thresholds_that_cannot_be_are_one_line(folder, command):
    model, data = folder / "model.json", folder / "data.csv"
    words = {
        "predict": (model, data),
        "export": (model, "--to", "sql"),
        "evaluate": (model, data),
        "fit": (data, "--target", "dead", "--environment", "site"),
    }[command]
    done = run(command, *words, "--threshold", "1.5", status=2)
    assert "--threshold must be a number between 0 and 1, costs=1:10, youden" in done.stderr
    if command in ("predict", "export"):
        done = run(command, *words, "--threshold", "youden", status=2)
        assert "--threshold youden needs labelled rows; choose it with icscm fit" in (
            " ".join(done.stderr.split())
        )
    elif command == "evaluate":
        done = run(command, *words, "--threshold", "youden", status=2)
        assert "would be chosen on the rows it is evaluated on" in (" ".join(done.stderr.split()))


def test_a_model_of_rules_names_no_threshold_unless_it_has_one(rows):
    X, y, e = rows
    learner = SCMClassifier(p="balanced").fit(X, y, environments=e)
    assert "Error by the model's own predictions: " in evaluate(learner, X, y).headline
    saved = make_saved_model(learner)
    moved = replace(saved, model=replace(saved.model, threshold=0.05))
    assert "Error at threshold 0.05: " in evaluate(moved, X, y).headline


def test_a_leaf_predicts_at_a_named_threshold():
    """A leaf with 33 % mortality "predicts negative", as if that were known of its patients."""
    X, y, e = make_rows(3, 3_000, -2.0)
    learner = InvariantTreeClassifier().fit(X, y, environments=e)
    report = learner.report()
    for text in (report.to_html(), report.to_markdown()):
        assert "predicts label = 0 at threshold 0.5" in text
        assert text.count("redicts label = 0") == text.count("redicts label = 0 at threshold 0.5")
    assert "probabilities from " in report.summary["model"]["sentence"]
    assert report.summary["model"]["sentence"].endswith(" at threshold 0.5.")
    learner.model_ = replace(learner.model_, threshold=0.25)
    assert "predicts label = 1 at threshold 0.25" in learner.report().to_html()


def test_rows_given_by_position_are_one_sentence():
    """Environments given by position were taken for a threshold: NumPy's error on truth values."""
    data = make_conjunction(100, 2, random_state=1)
    groups = np.arange(len(data.y))
    with pytest.raises(TypeError, match=r"all other arguments by name: pass environments=\.\.\."):
        choose_threshold(SCMClassifier(), data.X, data.y, data.environments, groups)
    with pytest.raises(IcscmError, match=r"threshold must be a number between 0 and 1"):
        choose_threshold(SCMClassifier(), data.X, data.y, threshold=data.environments)
