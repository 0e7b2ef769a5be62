"""Categories, missing values and columns that no rule should be made of."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out, stability_selection
from icscm.exceptions import IcscmError, LeftOutWarning, UnseenMissingWarning
from icscm.formatting import format_level
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule, make_rule
from icscm.tables.coded import choose_levels
from icscm.tables.columns import read_column
from icscm.validation.path import alpha_path
from support.fitting import PAPER

N = 1500
quiet = pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")


def make_patients(seed=0):
    """Ill when a smoker and not known to be young; the hospitals differ in both."""
    rng = np.random.default_rng(seed)
    hospital = rng.integers(0, 3, N)
    smoker = np.where(rng.random(N) < 0.4 + 0.1 * hospital, "yes", rng.choice(["no", "ex"], N))
    age = rng.integers(20, 60, N) + 10 * hospital
    age = np.where(rng.random(N) < 0.2, np.nan, age)
    ill = (smoker == "yes") & ~(age <= 40)
    frame = pd.DataFrame({"smoker": smoker, "age": age, "dose": rng.normal(size=N)})
    return frame, ill ^ (rng.random(N) < 0.02), hospital


KINDS = {
    "pandas": lambda frame: frame,
    "categoricals": lambda frame: frame.astype({"smoker": "category"}),
    "polars": pl.from_pandas,
    "polars categoricals": lambda frame: pl.from_pandas(frame).cast({"smoker": pl.Categorical}),
    "arrow": pa.Table.from_pandas,
    "objects": lambda frame: frame.astype(object).to_numpy(),
}


@pytest.mark.parametrize("kind", KINDS)
@quiet
def test_every_kind_of_table_gives_the_same_rules(kind):
    frame, ill, hospital = make_patients()
    fitted = ICSCMClassifier().fit(KINDS[kind](frame), ill, environments=hospital)
    smoker, age = ("x0", "x1") if kind == "objects" else ("smoker", "age")
    assert str(fitted.model_) == f"{smoker} == yes and {age} > 40 (missing: true)"
    expected = ICSCMClassifier().fit(frame, ill, environments=hospital)
    np.testing.assert_array_equal(fitted.predict(KINDS[kind](frame)), expected.predict(frame))


@quiet
def test_order_and_company_of_columns_do_not_matter_for_predicting():
    frame, ill, hospital = make_patients()
    fitted = ICSCMClassifier().fit(frame, ill, environments=hospital)
    other = frame[["age", "smoker"]].assign(height=1.8)
    np.testing.assert_array_equal(fitted.predict(other), fitted.predict(frame))
    np.testing.assert_array_equal(
        fitted.predict_proba(pl.from_pandas(other)), fitted.predict_proba(frame)
    )


def test_unseen_levels_equal_nothing():
    table = pd.DataFrame({"a": ["x", "new", None]})
    rule = CategoryRule(0, "a", ("x",), equal=True, missing=False)
    assert rule.mask(table).tolist() == [True, False, False]
    assert rule.negate().mask(table).tolist() == [False, True, True]
    pool = CategoryRule(0, "a", ("y", "z"), equal=True, pooled=True, missing=True)
    assert pool.mask(table).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "rule", [ThresholdRule(0, "a", 2, True), ThresholdRule(0, "a", 2, False)], ids=str
)
def test_missing_values_that_no_rule_knows_of_count_as_false_with_a_warning(rule):
    table = pd.DataFrame({"a": [1.0, 3.0, np.nan]})
    with pytest.warns(UnseenMissingWarning, match="Column 'a' is missing in 1 row but never was"):
        truth = rule.mask(table)
    assert truth.tolist() == [not rule.above, rule.above, False]


def test_rare_levels_are_pooled_and_the_pool_is_named():
    rng = np.random.default_rng(0)
    code = np.array([f"c{k:03}" for k in rng.geometric(0.02, 3000)])
    levels, n_rows = np.unique(code, return_counts=True)
    most = levels[np.argmax(n_rows)]
    frame = pd.DataFrame({"code": code})
    (rule,) = SCMClassifier(max_thresholds=1).fit(frame, code != most).rules_
    assert str(rule) == f"code in {len(levels) - 1} rare levels"
    assert set(rule.levels) == set(levels) - {most}


@given(st.lists(st.integers(0, 5), max_size=12), st.one_of(st.none(), st.integers(1, 6)))
def test_pools_hold_the_rarest(n_rows, most):
    kept, pool = choose_levels(np.array(n_rows, dtype=np.int64), most)
    present = [i for i, n in enumerate(n_rows) if n]
    assert sorted([*kept, *pool]) == present
    assert len(pool) != 1
    if len(pool):
        assert len(kept) == most
        assert min(n_rows[i] for i in kept) >= max(n_rows[i] for i in pool)


@quiet
def test_missingness_that_follows_the_site_is_refused():
    """A lab value measured only at one site, whose patients are sicker."""
    rng = np.random.default_rng(1)
    site = rng.integers(0, 2, 4000)
    ill = rng.random(4000) < np.where(site == 1, 0.7, 0.2)
    lab = np.where((site == 1) ^ (rng.random(4000) < 0.02), rng.normal(size=4000), np.nan)
    frame = pd.DataFrame({"lab": lab, "noise": rng.normal(size=4000)})
    assert str(SCMClassifier(max_rules=1).fit(frame, ill).model_) == "lab is present"
    fitted = ICSCMClassifier(**PAPER).fit(frame, ill, environments=site)
    refused = [each.candidate.rule for each in fitted.trace_.steps[0].best_rejected]
    assert MissingRule(0, "lab", is_missing=False) in refused
    assert MissingRule(0, "lab", is_missing=False) not in fitted.rules_


SUSPICIOUS = {
    "id": (lambda n: np.arange(n) * 7, "different in nearly every row"),
    "name": (lambda n: [f"patient {i}" for i in range(n)], "different in nearly every row"),
    "constant": (lambda n: ["a"] * n, "the same in every row"),
    "empty": (lambda n: [None] * n, "all values are missing"),
    "seen": (lambda n: pd.date_range("2020-01-01", periods=n), "a date, a time or a duration"),
    "huge id": (lambda n: 2**62 + np.arange(n), "different in nearly every row"),
    "stay": (lambda n: pd.to_timedelta(np.arange(n) % 40, "D"), "a date, a time or a duration"),
    "stay as text": (
        lambda n: [f"{row % 40} days 04:05:06" for row in range(n)],
        "a date, a time or a duration",
    ),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
@quiet
def test_suspicious_columns_are_left_out_with_a_warning(name):
    make, reason = SUSPICIOUS[name]
    frame, ill, hospital = make_patients()
    frame[name] = make(N)
    with pytest.warns(LeftOutWarning, match=f"Dropped: column '{name}' \\({reason}"):
        fitted = ICSCMClassifier().fit(frame, ill, environments=hospital)
    assert list(fitted.dropped_columns_) == [name]
    assert fitted.feature_types_ == ("category", "number", "number", "left_out")
    assert fitted.features_used_ == ["smoker", "age"]


@quiet
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_durations_in_files_are_left_out(ending, tmp_path):
    """A column of pandas' timedeltas became a category of forty rare levels in a text file."""
    frame, ill, hospital = make_patients()
    frame = frame.assign(ill=ill, site=hospital, stay=pd.to_timedelta(np.arange(N) % 40, "D"))
    write = frame.to_csv if ending == ".csv" else frame.to_parquet
    write(tmp_path / f"t{ending}", index=False)
    with pytest.warns(LeftOutWarning, match="'stay' .a date, a time or a duration"):
        fitted = ICSCMClassifier().fit_dataset(tmp_path / f"t{ending}", "ill", environments="site")
    assert list(fitted.dropped_columns_) == ["stay"]


@pytest.mark.parametrize("make", [lambda levels: levels, pd.Categorical])
@quiet
def test_few_or_declared_durations_are_categories(make):
    """After how many days a patient was seen may be a category like any other."""
    frame, ill, hospital = make_patients()
    n_levels = 3 if make is not pd.Categorical else 20
    frame["seen after"] = make([f"{row % n_levels} days" for row in range(N)])
    assert ICSCMClassifier().fit(frame, ill, environments=hospital).dropped_columns_ == {}


@quiet
def test_copies_of_label_and_environment_are_left_out():
    """Whatever their type: a copy is no guess."""
    frame, ill, hospital = make_patients()
    frame["outcome"] = np.where(ill, "dead", "alive")
    frame["site"] = hospital * 10
    with pytest.warns(LeftOutWarning, match="exact copy of the label.*exact copy of the env"):
        fitted = SCMClassifier().fit(frame, ill, environments=hospital)
    assert not {"outcome", "site"} & {*fitted.features_used_}
    categories = frame.astype({"outcome": "category", "site": "category"})
    with pytest.warns(LeftOutWarning, match="exact copy of the label.*exact copy of the env"):
        again = SCMClassifier().fit(categories, ill, environments=hospital)
    assert again.dropped_columns_ == fitted.dropped_columns_


def test_measurements_are_no_identifiers():
    """Decimals differ in every row and are features all the same."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.normal(size=N), "age": rng.integers(20, 80, N)})
    fitted = SCMClassifier().fit(frame, frame["dose"] > 0)
    assert fitted.dropped_columns_ == {}


@quiet
def test_booleans_are_categories():
    frame = pd.DataFrame({"flag": [True, False, None, True] * 20}, dtype=object)
    y = (frame["flag"] == True).to_numpy()  # noqa: E712 (None is neither)
    fitted = SCMClassifier().fit(frame, y)
    assert str(fitted.model_) == "flag == True (missing: false)"
    assert str(SCMClassifier(model_type="disjunction").fit(frame, y).model_) == str(fitted.model_)


def test_columns_must_keep_their_kind():
    frame = pd.DataFrame({"a": ["1", "2"] * 20, "b": [1.0, 2.0] * 20})
    y = np.array([0, 1] * 10 + [1, 0] * 10)
    by_text = SCMClassifier(max_rules=1).fit(frame[["a"]].assign(c=np.arange(40) % 3), y)
    if by_text.features_used_ == ["a"]:
        with pytest.raises(IcscmError, match="'a' held categories at fitting and holds numbers"):
            by_text.predict(frame.assign(a=1, c=2))
    rule = ThresholdRule(0, "b", 1.5, above=True)
    with pytest.raises(IcscmError, match="'b' held numbers at fitting and holds categories now"):
        rule.mask(frame.astype({"b": str}))
    with pytest.raises(IcscmError, match="'a' held categories at fitting and holds numbers now"):
        CategoryRule(0, "a", ("1",), equal=True).mask(frame.assign(a=1))
    with pytest.raises(IcscmError, match="no column 'z', which the model needs"):
        ThresholdRule(0, "z", 1, above=True).mask(frame)


def test_whole_numbers_of_which_some_are_missing():
    """A missing value hid how large the others are: small ones beside text were refused, and large
    ones beside numbers silently rounded."""
    y = np.arange(40) % 2
    counts = pa.array([None, *range(39)])
    table = pa.table({"count": counts, "colour": ["red", "blue", "red", "red"] * 10})
    assert SCMClassifier().fit(table, y).feature_types_ == ("number", "category")
    large = pa.table({"count": [None, *range(2**60, 2**60 + 39)], "dose": np.arange(40) / 7})
    with pytest.raises(IcscmError, match=r"beyond 2\*\*53 in column 'count'"):
        SCMClassifier().fit(large, y)


@quiet
def test_mixed_tables_in_stability_selection_and_transfer():
    frame, ill, hospital = make_patients()
    found = stability_selection(
        ICSCMClassifier(), frame, ill, environments=hospital, n_resamples=5, random_state=0
    )
    assert {"smoker", "age"} <= {*found.stable_features}
    transfer = leave_one_environment_out(
        ICSCMClassifier(), pl.from_pandas(frame), ill, environments=hospital
    )
    assert all("missing" in each.model or "==" in each.model for each in transfer.held_out)


LEVELS = st.one_of(st.text(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False))


@given(
    st.lists(LEVELS, min_size=1, unique_by=repr),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, True, False]),
)
def test_rules_survive_their_dict_and_print_on_one_line(levels, equal, pooled, missing):
    rule = CategoryRule(3, "a\nb", tuple(levels), equal, pooled, missing)
    assert make_rule(rule.to_dict()) == rule
    assert rule.negate().negate() == rule
    assert str(rule).isprintable()
    assert format_level(levels[0]).isprintable()


def test_nan_in_text_and_dictionaries_with_repeats_are_read():
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "b", "a"]))
    column = read_column(pa.table({"x": odd}), 0, "x")
    assert column.levels == ("a", "b")
    assert column.codes.tolist() == [0, 1, 0, -1]
    mixed = pd.DataFrame({"x": ["a", np.nan, None, pd.NA]}, dtype=object)
    assert read_column(mixed, 0, "x").codes.tolist() == [0, -1, -1, -1]


def test_decimals_fall_on_the_same_side_at_fitting_and_after():
    """Decimals were read off by one bit for predicting, and thresholds sent them to the left."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        values = [Decimal(int(v)).scaleb(-9) for v in rng.integers(0, 10**9, 300)]
        for other in ({}, {"t": ["a", "b", "c"] * 100}):
            frame = pa.table({"hb": pa.array(values, pa.decimal128(38, 9)), **other})
            fitted = SCMClassifier(max_rules=1).fit(frame, np.array(values) > Decimal("0.5"))
            settled = [sum(map(sum, leaf)) for leaf in fitted.model_.leaves]
            leaves = fitted.model_.find_leaves(frame)
            assert np.bincount(leaves, minlength=2).tolist() == settled


def test_names_that_are_no_text_are_names_all_the_same():
    """Frames with years as names went by position, so that reordered columns were mixed up."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({2018: rng.normal(size=200), 2017: rng.normal(size=200)})
    fitted = SCMClassifier(max_rules=1).fit(frame, frame[2018] > 0)
    assert str(fitted.model_).startswith("2018 > ")
    np.testing.assert_array_equal(fitted.predict(frame[[2017, 2018]]), fitted.predict(frame))
    levels = frame.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), axis=1)
    assert SCMClassifier().fit(levels, frame[2018] > 0).features_used_[0] == "a_1"
    mixed = frame.set_axis([0, "b"], axis=1)
    assert SCMClassifier().fit(mixed, frame[2018] > 0).features_used_[0] == "0"


def test_numbered_columns_out_of_order_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)))
    fitted = SCMClassifier().fit(frame, frame[0] > 0)
    assert str(fitted.model_).startswith("x0 > ")
    with pytest.raises(IcscmError, match="numbered but not in order"):
        fitted.predict(frame[[1, 0]])


def test_record_batches_are_tables():
    """They lost their names, and text in them was an error."""
    rng = np.random.default_rng(0)
    batch = pa.record_batch({"a": rng.normal(size=80), "b": ["x", "y"] * 40})
    fitted = SCMClassifier(max_rules=1).fit(batch, batch["a"].to_numpy() > 0)
    assert fitted.features_used_ == ["a"]
    np.testing.assert_array_equal(fitted.predict(batch.select(["b", "a"])), fitted.predict(batch))


@quiet
def test_missingness_that_copies_the_label_is_left_out():
    """A column filled in only where the label is positive gave the perfect rule `is present`."""
    frame, ill, hospital = make_patients()
    frame["died_on_day"] = np.where(ill, 1.0, np.nan)
    with pytest.warns(LeftOutWarning, match=r"'died_on_day' \(an exact copy of the label"):
        ICSCMClassifier().fit(frame, ill, environments=hospital)


@pytest.mark.parametrize("kind", ["one missing", "floats", "weights"])
@quiet
def test_identifiers_in_disguise_are_left_out(kind):
    """One missing value, a type of floats or repeated rows hid an identifier."""
    frame, ill, hospital = make_patients()
    frame["id"] = np.arange(N) + 1000
    if kind == "one missing":
        frame["id"] = frame["id"].astype("Int64")
        frame.loc[3, "id"] = None
    elif kind == "floats":
        frame["id"] = frame["id"].astype(float)
    weights = np.arange(N) % 3 + 1 if kind == "weights" else None
    with pytest.warns(LeftOutWarning, match="'id'"):
        SCMClassifier().fit(frame, ill, environments=hospital, sample_weight=weights)


@pytest.mark.parametrize("largest", [150_000, 400_000])
def test_whole_numbers_that_were_measured_stay(largest):
    """Incomes and platelet counts differ in nearly every row of a small table, too."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, largest, 200), "b": rng.normal(size=200)})
    assert SCMClassifier().fit(frame, frame["income"] > largest / 3).dropped_columns_ == {}


def test_booleans_are_not_text():
    """True where fitting saw "yes" equalled nothing, and predicted nothing, in silence."""
    rule = CategoryRule(0, "a", ("yes",), equal=True)
    with pytest.raises(IcscmError, match="kind text at fitting and holds boolean now"):
        rule.mask(pd.DataFrame({"a": [True, False]}))
    assert len(rule.mask(pd.DataFrame({"a": [True]})[:0])) == 0


@pytest.mark.parametrize("values", [np.arange(N) * 7, [f"ward {i}" for i in range(N)]])
@pytest.mark.parametrize("kind", ["pandas", "polars", "polars Enum", "pyarrow"])
@quiet
def test_a_category_is_no_identifier(kind, values):
    """An identifier is a guess: who gives a column as a category knows better."""
    frame, ill, hospital = make_patients()
    frame["code"] = values
    with pytest.warns(LeftOutWarning, match="must be a categorical column"):
        fitted = SCMClassifier().fit(frame, ill, environments=hospital)
    assert [*fitted.dropped_columns_] == ["code"]
    texts = frame["code"].astype(str)
    table = {
        "pandas": lambda: frame.astype({"code": "category"}),
        "polars": lambda: pl.from_pandas(frame.assign(code=texts.astype("category"))),
        "polars Enum": lambda: pl.from_pandas(frame.assign(code=texts)).with_columns(
            pl.col("code").cast(pl.Enum(sorted(texts)))
        ),
        "pyarrow": lambda: pa.Table.from_pandas(frame.astype({"code": "category"})),
    }[kind]()
    kept = SCMClassifier().fit(table, ill, environments=hospital)
    assert kept.dropped_columns_ == {}
    assert kept.feature_types_[-1] == "category"


def test_a_report_needs_the_data_of_fit():
    """Other data gave a slider that contradicted the report."""
    frame, ill, hospital = make_patients()
    fitted = ICSCMClassifier(max_rules=2).fit(frame, ill, environments=hospital)
    rows = {"X": frame, "y": ill, "environments": hospital, "alphas": [0.2]}
    assert fitted.report(path=alpha_path(fitted, **rows)).to_dict()["path"]
    with pytest.raises(IcscmError, match="path is of other data or settings"):
        fitted.report(path=alpha_path(fitted, **rows | {"X": frame[::-1]}))


def test_odd_types():
    n = 60
    y = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "sparse": pd.arrays.SparseArray(np.arange(n) % 5 // 4),
            "month": pd.period_range("2020-01", periods=n, freq="M"),
            "day": pd.Categorical(pd.date_range("2020-01-01", periods=n)),
        }
    )
    with pytest.warns(LeftOutWarning, match="'month', 'day' .a date, a time or a duration"):
        SCMClassifier(max_rules=1).fit(frame, y)
    for odd, kind in ((np.zeros(n, complex), "complex128"), (np.zeros(n, "S3"), "")):
        with pytest.raises(IcscmError, match=f"column 'odd' .*{kind}"):
            SCMClassifier().fit(pd.DataFrame({"odd": odd, "text": ["a", "b"] * 30}), y)
    exact = pd.DataFrame({"a": [2**53, 2**53 + 1] * 30, "b": np.linspace(0, 1, n)})
    with pytest.raises(IcscmError, match=r"beyond 2\*\*53"):
        SCMClassifier().fit(exact, y)
