"""Levels and numbers that training did not have: told, treated as missing, never another level."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    evaluate,
    leave_one_environment_out,
    load,
)
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmError, RangeWarning, UnknownLevelWarning, UnseenMissingWarning
from icscm.model.novelty import (
    MAX_KEPT_LEVELS,
    Range,
    SimilarLevels,
    TrainingValues,
    find_unknown,
    fold_level,
    keep_levels,
    warn_of_far,
)
from icscm.model.rules import CategoryRule, MissingRule
from icscm.model.saved import make_saved_model
from icscm.tables.columns import Levels, Numbers
from support.saved_models import make_saved

SMOKER = TrainingValues(1, "smoker", levels=("None", "heavy", "light"))
GLUCOSE = TrainingValues(0, "glucose", range=Range(lowest=44, low=62, high=290, highest=400))


def make_patients(n_rows=1_500, seed=0):
    """Smokers with much glucose are ill, at three sites."""
    rng = np.random.default_rng(seed)
    smoker = rng.choice(["None", "light", "heavy"], n_rows, p=[0.5, 0.3, 0.2])
    glucose = np.round(rng.lognormal(np.log(110), 0.3, n_rows))
    is_ill = (smoker != "None") & (glucose > 100)
    y = np.where(is_ill ^ (rng.random(n_rows) < 0.05), "ill", "well")
    sites = rng.integers(0, 3, n_rows)
    return pd.DataFrame({"smoker": smoker, "glucose": glucose}), y, sites


LEARNERS = {
    "rule": ICSCMClassifier(model_type="conjunction"),
    "tree": InvariantTreeClassifier(max_leaves=4),
    "forest": InvariantForestClassifier(n_estimators=3, random_state=0),
    "score": InvariantScoreClassifier(max_terms=4),
}


@pytest.fixture(scope="module", params=LEARNERS)
def learner(request):
    X, y, sites = make_patients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LEARNERS[request.param].fit(X, y, environments=sites)
    assert "smoker" in fitted.features_used_
    return fitted


def make_missing(X, rows):
    """The same rows, in some of which `smoker` is missing."""
    return X.assign(smoker=X.smoker.where(~rows, None))


# --- levels ---------------------------------------------------------------------------------------


def test_an_unknown_level_is_treated_as_missing(learner):
    """`none` instead of `None` gave 489 of 2,469 patients the safest score, silently."""
    X, _, _ = make_patients(seed=1)
    is_renamed = (X.smoker == "None").to_numpy() & (np.arange(len(X)) % 2 == 0)
    new = X.assign(smoker=X.smoker.where(~is_renamed, "none"))
    told = (
        f"'smoker' has levels in {is_renamed.sum()} of 1,500 rows that training did not have: "
        r"'none' \(did you mean 'None'\?\); they are treated as missing"
    )
    with pytest.warns(UnknownLevelWarning, match=told):
        probabilities = learner.predict_proba(new)
    with pytest.warns(UnseenMissingWarning):
        expected = learner.predict_proba(make_missing(X, is_renamed))
    assert probabilities.tolist() == expected.tolist()
    saved = make_saved_model(learner)
    named = np.where(is_renamed, "smoker", "").tolist()
    assert saved.find_unknown_levels(new).tolist() == named


def test_mostly_unknown_levels_are_an_error(learner, tmp_path):
    """With all levels written otherwise every row was predicted to be negative."""
    X, _, _ = make_patients(seed=1)
    new = X.assign(smoker=X.smoker.str.upper())
    saved = make_saved_model(learner)
    saved.save(tmp_path / "m.json")
    for model in (learner, saved, load(tmp_path / "m.json")):
        for predict in (model.predict, model.predict_proba):
            with pytest.raises(IcscmError, match=r"1,500 of 1,500 rows .*'HEAVY' \(did you mean"):
                predict(new)
            with pytest.warns(UnknownLevelWarning, match="in 1,500 of 1,500 rows"):
                allowed = predict(new, unknown="allow")
            with pytest.warns(UnseenMissingWarning):
                assert allowed.tolist() == predict(new.assign(smoker=None)).tolist()
    with pytest.raises(IcscmError, match="unknown must be 'raise' or 'allow', got 'ignore'"):
        learner.predict(X, unknown="ignore")


def test_half_of_the_rows_are_not_most(learner):
    X, _, _ = make_patients(seed=1)
    is_renamed = np.arange(len(X)) < len(X) / 2
    with pytest.warns(UnknownLevelWarning, match="in 750 of 1,500 rows"):
        learner.predict(X.assign(smoker=X.smoker.where(~is_renamed, "cigars")))


def test_an_evaluation_says_what_it_was_made_on(learner):
    X, y, sites = make_patients(seed=1)
    new = X.assign(smoker=X.smoker.str.lower(), glucose=X.glucose / 18)
    evaluation = evaluate(learner, new, y, environments=sites)
    notes = "\n".join(evaluation.notes)
    assert "'none' (did you mean 'None'?); they are treated as missing" in notes
    if "glucose" in learner.features_used_:
        assert "'glucose': 1,500 of 1,500 values are far below" in notes
        assert notes.count("another unit?") == 1


LEVELS_THAT_ARE_LIKE = [
    ("None", "none"),
    ("None", " None "),
    ("New York", "new  york"),
    ("01", "1"),
    ("1", "1.0"),
    ("1", "01"),
    ("1,5", "1.50"),
    ("True", "true"),
    ("True", "t"),
    ("false", "F"),
    ("\u00e9", "e\u0301"),
    (2, "2.0"),
    (True, "TRUE"),
]


@pytest.mark.parametrize(("known", "new"), LEVELS_THAT_ARE_LIKE)
def test_levels_that_are_written_otherwise(known, new):
    """Case, spaces and the form of a number are told apart from other levels."""
    assert fold_level(known) == fold_level(new)
    assert SimilarLevels(["other", known]).suggest(new) == f" (did you mean {known!r}?)"


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        (["True", "False"], ["t", "f"]),
        (["01", "02"], ["1", "2"]),
        (["1", "2"], ["1.0", "2.0"]),
    ],
)
def test_all_levels_written_otherwise(written, rewritten):
    """Every row was predicted to be negative, and nothing said so."""
    is_first = np.arange(200) % 3 == 0
    y = is_first ^ (np.arange(200) % 17 == 0)
    learner = SCMClassifier().fit(pd.DataFrame({"code": np.where(is_first, *written)}), y)
    assert learner.features_used_ == ["code"]
    told = rf"200 of 200 rows .*{rewritten[0]!r} \(did you mean {written[0]!r}\?\)"
    with pytest.raises(IcscmError, match=told):
        learner.predict(pd.DataFrame({"code": np.where(is_first, *rewritten)}))


@pytest.mark.parametrize("new", ["no", "11", "nan", "inf", "1_0", "", "tr", "9" * 999, "0x1"])
def test_levels_that_are_others(new):
    assert SimilarLevels(["None", "1", "10", "True", "x"]).suggest(new) == ""


def test_many_unknown_levels_are_shortened_and_escaped():
    new = [f"code {number}" for number in range(100)]
    column = Levels(np.arange(100, dtype=np.int32), ("None", "a\x1b[2J\n", *new[2:]))
    text = find_unknown(column, SMOKER).describe()
    assert "has levels in 99 of 100 rows" in text
    assert text.isprintable()
    assert "more" in text
    assert len(text) < 300


@given(st.lists(st.sampled_from(["None", "none", "heavy", "x", None]), max_size=9), st.data())
def test_unknown_levels_row_by_row(texts, data):
    """Codes of levels say the same as the texts themselves."""
    present = sorted({text for text in texts if text is not None})
    codes = [-1 if text is None else present.index(text) for text in texts]
    rows = data.draw(st.lists(st.sampled_from(range(len(texts))))) if texts else []
    column = Levels(np.array(codes, dtype=np.int32), tuple(present)).take(np.array(rows, dtype=int))
    expected = [texts[row] is not None and texts[row] not in SMOKER.levels for row in rows]
    unknown = find_unknown(column, SMOKER)
    assert (unknown is not None) == any(expected)
    if unknown is not None:
        assert unknown.is_unknown.tolist() == expected


def test_a_category_of_numbers_may_be_a_column_of_numbers_now():
    training = TrainingValues(0, "grade", levels=(1, 2.0))
    column = Numbers(np.array([1.0, 2.0, 3.0, np.nan]), np.array([False, False, False, True]))
    unknown = find_unknown(column, training)
    assert unknown.is_unknown.tolist() == [False, False, True, False]
    assert unknown.levels == (3.0,)


def test_a_column_of_another_kind_is_the_error_that_it_was():
    rule = CategoryRule(1, "smoker", ("None",), equal=True)
    model = replace(make_saved([rule]).model, training_values=(SMOKER,))
    with pytest.raises(IcscmError, match="held levels of kind text at fitting and holds boolean"):
        model.predict(pd.DataFrame({"smoker": [True, False]}))
    with pytest.raises(IcscmError, match="held categories at fitting and holds numbers now"):
        model.predict(pd.DataFrame({"smoker": [1, 2]}))


def test_a_rare_level_of_training_is_known():
    """Levels that share a bin were in training; so were those that no rule names."""
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.repeat([f"c{number}" for number in range(30)], 30), ["rare"]])
    y = np.isin(codes, ["c0", "c1", "rare"]) ^ (rng.random(len(codes)) < 0.02)
    X = pd.DataFrame({"code": codes})
    learner = SCMClassifier(max_thresholds=3).fit(X, y)
    learner.predict(X)
    learner.predict(X[-1:])
    (training,) = learner.model_.training_values
    assert {*training.levels} == {*codes}


def test_a_column_of_very_many_levels_keeps_none():
    """Such columns are codes: a list of them would be larger than the model, and never complete."""
    n_levels = MAX_KEPT_LEVELS + 1
    codes = np.repeat(np.arange(n_levels).astype(str), 2)
    X = pd.DataFrame({"code": pd.Categorical([*codes, *["a"] * n_levels])})
    y = (X.code == "a").to_numpy()
    learner = SCMClassifier().fit(X, y)
    saved = make_saved_model(learner)
    assert learner.features_used_ == saved.list_unknowable() == ["code"]
    assert not saved.knows_levels
    assert saved.predict(pd.DataFrame({"code": ["new"]})).tolist() == [False]


def test_levels_that_no_file_can_hold_are_not_kept():
    """A level that no rule names must not make a model that cannot be saved."""
    assert keep_levels((1.0, float("inf"))) is None
    assert keep_levels((1, 2**64)) is None
    assert keep_levels(()) is None
    assert keep_levels((True, False)) == (True, False)
    training = TrainingValues(1, "smoker", levels=("\ud83d\ude00", "None"))  # one character in JSON
    saved = make_saved([CategoryRule(1, "smoker", ("None",), equal=True)])
    saved = replace(saved, model=replace(saved.model, training_values=(training,)))
    with pytest.raises(IcscmError, match="with surrogates in pairs"):
        saved.to_json()


def test_files_without_levels_cannot_tell():
    """Older files predict as they did."""
    saved = make_saved([CategoryRule(1, "smoker", ("None",), equal=True)])
    assert saved.list_unknowable() == ["smoker"]
    assert saved.predict(pd.DataFrame({"smoker": ["none", "None"]})).tolist() == ["no", "yes"]
    assert make_saved([MissingRule(0, "age", is_missing=True)]).list_unknowable() == []


def test_folds_and_pipelines_of_other_libraries_go_on():
    """A level that only one environment has must not stop a validation, in which it is missing."""
    X, y, sites = make_patients(600)
    X = X.assign(smoker=np.where(sites == 2, X.smoker + " (C)", X.smoker))
    for estimator in (SCMClassifier(), make_pipeline(SCMClassifier())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            validation = leave_one_environment_out(estimator, X, y, environments=sites)
        assert validation.to_frame().notna().any(axis=None)


# --- numbers --------------------------------------------------------------------------------------


def tell(values, training=GLUCOSE, missing=None):
    """What is said of some numbers."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_far(Numbers(np.asarray(values), missing), training)
    return [str(warning.message) for warning in told]


def test_another_unit_is_told():
    """Glucose in mmol/l is a number as any other, of which `glucose > 140` is false."""
    values = np.random.default_rng(0).lognormal(np.log(110), 0.3, 500)
    assert tell(values) == []
    assert tell(values / 18.02) == [
        "Column 'glucose': 500 of 500 values are far below those of training (few under 62, "
        "smallest 44): another unit?"
    ]
    assert tell(values * 18.02) == [
        "Column 'glucose': 500 of 500 values are far above those of training (few over 290, "
        "largest 400): another unit?"
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_another_unit_in_some_rows_is_told(dtype):
    values = np.full(200_000, 100, dtype=dtype)
    values[:50_000] = 5
    (text,) = tell(values)
    assert text.startswith("Column 'glucose': 50,000 of 200,000 values are far below")
    assert text.endswith("another unit in these rows?")


@pytest.mark.parametrize("n_rows", [1, 4, 50, 100_000])
def test_single_extreme_values_are_not_told(n_rows):
    values = np.full(n_rows, 100.0)
    values[: max(1, n_rows // 20)] = 1e9
    assert tell(values) == tell(-values[:1]) == []


def test_missing_values_are_not_counted():
    """Their places may hold any number."""
    values = np.array([100.0] * 10 + [0.0] * 90)
    is_missing = values == 0
    assert tell(values, missing=is_missing) == []
    values[:10] = 5.5
    assert tell(values, missing=is_missing)[0].startswith("Column 'glucose': 10 of 10 values")
    assert tell([np.nan] * 50) == []


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        ((44, 60, 240, 400), 30, 330),  # 60 * sqrt(60 / 240)
        ((-9, 0, 10, 99), -5, 15),
        ((-400, -240, -60, -44), -330, -30),
        ((0, 0, 0, 5), 0, 5),
        ((-1.7e308, -1.7e308, 1.7e308, 1.7e308), -np.inf, np.inf),
    ],
)
def test_fences(bounds, lower, upper):
    with np.errstate(over="ignore"):
        fences = Range(*bounds).find_fences()
    assert (fences.lower, fences.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_ranges_of_a_fit_are_those_of_its_rows():
    X, y, _ = make_patients()
    learner = SCMClassifier(max_rules=2, max_thresholds=20).fit(X, y)
    ranges = {values.name: values.range for values in learner.model_.training_values}
    low, high = np.quantile(X.glucose, [1 / 21, 20 / 21], method="inverted_cdf")
    expected = Range(lowest=X.glucose.min(), low=low, high=high, highest=X.glucose.max())
    assert ranges == {"smoker": None, "glucose": expected}
    coarse = SCMClassifier(max_rules=2, max_thresholds=5).fit(X, y)
    (coarse_range,) = [each.range for each in coarse.model_.training_values if each.range]
    assert (coarse_range.low, coarse_range.high) == (X.glucose.min(), X.glucose.max())
    binary = SCMClassifier().fit((X[["glucose"]] > 100).astype(float), y)
    assert binary.model_.training_values[0].range == Range(0, 0, 1, 1)


def test_predictions_do_not_depend_on_the_range():
    X, y, _ = make_patients()
    new = X.assign(glucose=X.glucose * 18)
    model = SCMClassifier(max_rules=2).fit(X, y).model_
    with pytest.warns(RangeWarning, match="'glucose': 1,500 of 1,500 values"):
        predicted = model.predict(new)
    assert predicted.tolist() == replace(model, training_values=()).predict(new).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_rows_are_silent(seed):
    """Folds of tables like real ones: warnings are errors here."""
    data = make_hospitals(random_state=seed)
    learner = SCMClassifier(max_rules=4)
    cross_val_predict(learner, data.X, data.y, cv=5)
    learner.fit(data.X, data.y).predict(data.X_new)
    heavy_tails = np.random.default_rng(seed).standard_cauchy((400, 1))
    cross_val_predict(learner, heavy_tails, heavy_tails[:, 0] > 0.5, cv=10)


# --- model files ----------------------------------------------------------------------------------


def test_a_file_keeps_levels_and_ranges(learner, tmp_path):
    learner.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json").model.training_values == learner.model_.training_values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"column": 9}, "training_values[0].column must be a whole number from 0 to 1"),
        ({"column": 1, "levels": []}, "training_values[0].levels is empty"),
        ({"column": 1, "levels": ["x"]}, "training_values[0].levels lack one that a rule uses"),
        ({"column": 1, "levels": [1]}, "levels are of another kind than an earlier rule's"),
        ({"column": 0, "range": [1, 2, 3]}, "range has 3 entries instead of 4"),
        ({"column": 0, "range": [1, 2, 0, 3]}, "training_values[0].range must not fall"),
        ({"column": 0, "median": 3}, 'does not know, "median"'),
    ],
)
def test_files_with_wrong_levels_and_ranges_are_refused(values, message, tmp_path):
    saved = make_saved([CategoryRule(1, "smoker", ("None",), equal=True)])
    document = saved.to_dict()
    document["model"]["training_values"] = [values]
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(IcscmError, match=re.escape(message)):
        load(tmp_path / "m.json")
