"""The check-up of environments agrees with the counts."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats

from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.datasets import load_heart_by_hospital
from icscm.exceptions import IcscmError, LeftOutWarning, SparseEnvironmentWarning
from icscm.report.documents.checkup import write_document
from icscm.report.markdown import render_markdown
from icscm.report.summary import make_summary
from icscm.validation.checkup import check_environments, compute_cramers_v

DATA = Path(__file__).parents[3] / "shared" / "data"


def make_frame(n=600, seed=0):
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south", "west"], n)
    y = rng.random(n) < np.where(site == "north", 0.3, 0.6)
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "colour": rng.choice(["red", "blue"], n),
            "code": np.where(site == "north", "N", np.where(site == "south", "S", "W")),
            "lab": np.where(site == "north", np.nan, rng.normal(size=n)),
            "shifted": rng.normal(size=n) + 8 * (site == "west"),
            "id": np.arange(n),
            "const": 1.0,
        }
    )
    return frame, y.astype(int), site


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_environments_are_counted(kind):
    frame, y, site = make_frame()
    found = check_environments(kind(frame.to_dict("list")), y, environments=site)
    assert (found.n_rows, found.n_columns, found.classes) == (600, 7, (0, 1))
    assert [each.label for each in found.environments] == ["north", "south", "west"]
    for each in found.environments:
        rows = site == each.label
        assert each.n_rows == rows.sum()
        assert each.n_positive == y[rows].sum()
        assert each.rate == y[rows].mean()
        expected = stats.binomtest(each.n_positive, each.n_rows).proportion_ci(method="wilson")
        assert each.rate_interval == pytest.approx((expected.low, expected.high))
    missing = {each.label: each.missing for each in found.environments}
    assert missing == {"north": 1 / 7, "south": 0, "west": 0}
    table = pd.crosstab(y, site).to_numpy()
    assert found.p_value == pytest.approx(stats.chi2_contingency(table).pvalue)


def test_associations_with_the_environment():
    frame, y, site = make_frame()
    found = check_environments(frame, y, environments=site)
    by_name = {each.column: each for each in found.associations}
    assert {"noise", "colour", "lab", "shifted"} == set(by_name)
    assert by_name["noise"].values < 0.15
    assert by_name["lab"].missingness > 0.95
    assert by_name["lab"].values < 0.2
    assert by_name["shifted"].values > 0.6
    assert [each.column for each in found.strong_associations] == ["lab", "shifted"]
    advice = " ".join(found.advice)
    assert "Missing values depend on the environment: lab." in advice
    assert "Strongly associated with the environment: shifted." in advice


@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_dropped_columns_are_those_of_fit():
    frame, y, site = make_frame()
    with pytest.warns(LeftOutWarning):
        learner = ICSCMClassifier(min_utility=0.0).fit(frame, y, environments=site)
    found = check_environments(frame, y, environments=site)
    assert found.dropped == learner.dropped_columns_
    assert set(found.dropped) == {"code", "id", "const"}
    categories = frame.astype(dict.fromkeys(["code", "id", "const"], "category"))
    kept = check_environments(categories, y, environments=site)
    assert set(kept.dropped) == {"code", "const"}


def test_copies_in_arrays_are_told():
    """Columns of arrays are not dropped as copies, but every learner rejects them."""
    frame, y, site = make_frame()
    X = np.column_stack((frame["noise"], np.unique(site, return_inverse=True)[1]))
    found = check_environments(X, y, environments=site)
    (copy,) = [each for each in found.associations if each.determines]
    assert (copy.column, copy.values) == (1, 1.0)
    assert any("Determines the environment: 1" in text for text in found.advice)


def test_columns_that_decide_the_label_are_told():
    """Working hours that are missing meant a low income, in 100% of the rows, without a warning."""
    rng = np.random.default_rng(0)
    hours = np.where(rng.random(900) < 0.4, np.nan, rng.integers(10, 60, 900))
    X = pd.DataFrame({"hours": hours, "noise": rng.normal(size=900)})
    y, e = (rng.random(900) < 0.4) & ~np.isnan(hours), np.arange(900) % 3
    found = check_environments(X, y, environments=e)
    decided = {each.column: each.decided for each in found.associations}
    assert decided == {"hours": np.isnan(hours).mean(), "noise": 0.0}
    assert any(
        each.startswith("Determines the label of many rows by itself: ") for each in found.advice
    )
    tree = InvariantTreeClassifier(max_leaves=2).fit(X, y, environments=e)
    warning, *_ = make_summary(tree)["advice"]["warnings"]
    assert warning.startswith("hours is missing: this alone determines the label (0% of 3")
    # a conjunction of one rule, whose uncovered samples are all positive, gave no warning
    y = (rng.random(900) < 0.3) | np.isnan(hours)
    rule = ICSCMClassifier().fit(X, y, environments=e)
    assert str(rule.model_) == "hours is missing"
    warning, *_ = make_summary(rule)["advice"]["warnings"]
    assert warning.startswith("hours is missing: this alone determines the label (100% of 3")


@pytest.mark.parametrize("kind", [int, str])
def test_very_many_environments_are_told(kind):
    """An age as the environment, 82 values, was taken without a word."""
    rng = np.random.default_rng(0)
    ages = np.arange(2_000) % 82 + 17
    X = rng.normal(size=(2_000, 2))
    y = X[:, 0] + rng.normal(size=2_000) > 0
    advice = "The 82 environments are numbers: if they are a measurement, such as age"
    if kind is str:
        advice = "Group the 82 environments, for example by region: half of them have 24 rows"
    found = check_environments(X, y, environments=ages.astype(kind))
    assert any(each.startswith(advice) for each in found.advice)
    with pytest.warns(SparseEnvironmentWarning, match=advice):
        InvariantTreeClassifier(max_leaves=2).fit(X, y, environments=ages.astype(kind))


def test_columns_of_arrays_are_not_dropped():
    rng = np.random.default_rng(1)
    X, y, environments = rng.normal(size=(200, 3)), np.arange(200) % 2, np.arange(200) // 100
    found = check_environments(X, y, environments=environments)
    assert sorted(each.column for each in found.associations) == [0, 1, 2]
    assert found.dropped == {}


def test_sparse_cells_and_many_environments():
    rng = np.random.default_rng(0)
    n = 300
    environments = rng.integers(0, 40, n)
    y = rng.integers(0, 2, n)
    y[environments == 3] = 1
    found = check_environments(
        pd.DataFrame({"a": rng.normal(size=n)}), y, environments=environments
    )
    assert (3, 0, 0) in [(cell.environment, cell.label, cell.n_rows) for cell in found.sparse]
    table = pd.crosstab(y, environments).to_numpy()
    assert len(found.sparse) == (table < 5).sum()
    advice = " ".join(found.advice)
    assert "Merge or exclude environments with fewer than 5 rows" in advice
    assert "Group the 40 environments" in advice


def test_power_grows_with_rows_and_shrinks_with_the_leaf():
    differences = []
    for n in (400, 40_000):
        y, environments = np.arange(n) % 2, np.arange(n) // 2 % 2
        found = check_environments(
            np.random.default_rng(0).normal(size=(n, 1)), y, environments=environments
        )
        whole, half, tenth = found.power
        assert whole.difference < half.difference < tenth.difference
        assert (whole.n_rows, half.n_rows, tenth.n_rows) == (n, n // 2, n // 10)
        # Yates' correction takes (1/n1 + 1/n2) / 2 off, here 2 / n
        differences.append(whole.difference - 2 / n)
        # two environments: each is compared with the other, as the whole table is
        assert [each.min_detectable for each in found.environments] == pytest.approx(
            [whole.difference] * 2
        )
    assert differences[0] == pytest.approx(10 * differences[1], rel=1e-3)


def test_advice_on_too_little_and_too_much():
    y, environments = np.arange(60) % 2, np.arange(60) // 2 % 2
    little = check_environments(np.arange(60.0)[:, None] % 7, y, environments=environments)
    assert any("Even in the whole table a difference of" in text for text in little.advice)
    assert any("does not differ significantly between env" in text for text in little.advice)
    n = 2_000_000
    y, environments = np.arange(n) % 2, np.arange(n) // 2 % 2
    much = check_environments((np.arange(n) % 3)[:, None], y, environments=environments)
    assert any("too small to matter" in text for text in much.advice)
    y = np.arange(1000) % 2
    lopsided = check_environments(
        (np.arange(1000) % 3)[:, None], y, environments=np.arange(1000) < 980
    )
    assert any("One environment holds 98.0% of the rows" in text for text in lopsided.advice)


def test_to_dict_is_json():
    frame, y, site = make_frame()
    found = check_environments(frame, y, environments=site)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["environments"][0]["label"] == "north"
    assert plain["dropped"] == found.dropped
    assert len(plain["associations"]) == 4


def test_bad_input():
    frame, y, site = make_frame()
    with pytest.raises(IcscmError, match="alpha must be a number between 0 and 1"):
        check_environments(frame, y, environments=site, alpha=1)
    with pytest.raises(IcscmError, match="single environment"):
        check_environments(frame, y, environments=["north"] * len(y))


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (5, 2), (16, 6)])
def test_cramers_v(shape):
    """Equal to the plain one where the correction vanishes; near 0 where nothing is related."""
    rng = np.random.default_rng(0)
    table = rng.integers(1, 9, shape) * 10**6
    expected = stats.contingency.association(table, method="cramer")
    assert compute_cramers_v(table) == pytest.approx(expected, abs=1e-3)
    chance = [
        compute_cramers_v(
            rng.multinomial(200, np.full(shape[0] * shape[1], 1 / np.prod(shape))).reshape(shape)
        )
        for _ in range(200)
    ]
    assert np.mean(chance) < 0.08
    assert compute_cramers_v(np.diag([50, 30, 20])) == pytest.approx(1.0)
    assert compute_cramers_v(np.zeros((2, 3), dtype=int)) == 0.0


def test_the_column_with_everything_missing():
    frame, y, site = make_frame()
    X = np.column_stack((frame["noise"], np.full(len(frame), np.nan)))
    found = check_environments(X, y, environments=site)
    assert found.dropped == {1: "all values are missing"}
    assert [each.column for each in found.associations] == [0]


def test_sparse_matrices_and_dates():
    """A sparse matrix, which the learners accept, raised an error of NumPy."""
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 2, (200, 3))
    y, environments = np.arange(200) % 2, np.arange(200) // 100
    found = check_environments(sparse.csr_array(dense), y, environments=environments)
    assert found == check_environments(dense, y, environments=environments)
    dated = pd.DataFrame(dense, columns=list("abc")).assign(day=pd.Timestamp("2020-01-31"))
    seen = check_environments(dated, y, environments=environments)
    assert (seen.n_columns, {each.column for each in seen.associations}) == (4, {"a", "b", "c"})


@pytest.mark.skipif(
    not (DATA / "heart_disease").is_dir(), reason="the heart disease files are not at hand"
)
def test_heart_disease():
    """Values that hospitals did not measure are associated with them, and the check-up lists it."""
    data = load_heart_by_hospital(DATA)
    found = check_environments(data.X, data.y, environments=data.environments)
    assert [each.n_rows for each in found.environments] == [303, 294, 123, 200]
    assert {each.column for each in found.strong_associations} >= {"ca", "thal", "chol"}
    assert all(each.missingness > each.values for each in found.strong_associations)
    with_hospital = data.X.assign(hospital=data.environments)
    whole = check_environments(with_hospital, data.y, environments=data.environments)
    assert whole.dropped == {"hospital": "an exact copy of the environment"}


# --- several classes and numbers ------------------------------------------------------------------


def make_numbers(site, seed=5):
    return 3 + 2 * (site == "west") + np.random.default_rng(seed).normal(size=len(site))


def make_grades(site, seed=5):
    rng = np.random.default_rng(seed)
    shares = {"north": [0.6, 0.3, 0.1], "south": [0.3, 0.4, 0.3], "west": [0.2, 0.2, 0.6]}
    return np.array([rng.choice(["mild", "none", "severe"], p=shares[name]) for name in site])


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, pl.Series])
def test_a_number_has_a_mean_in_each_environment(kind):
    """Of two classes alone could environments be checked."""
    frame, _, site = make_frame()
    y = make_numbers(site)
    found = check_environments(frame, kind(y), environments=site)
    assert (found.kind, found.classes) == ("number", None)
    for place in found.environments:
        numbers = y[site == place.label]
        assert place.n_rows == len(numbers)
        assert place.mean == pytest.approx(numbers.mean())
        assert place.deviation == pytest.approx(numbers.std(ddof=1))
        assert place.mean_interval[0] < numbers.mean() < place.mean_interval[1]
    assert found.p_value < 1e-9
    assert found.sparse == ()
    assert [association.column for association in found.strong_associations] == ["lab", "shifted"]
    advice = " ".join(found.advice)
    assert "Of a number, InvariantFeatureSelector finds shortcuts" in advice
    assert "rule on" not in advice


def test_what_is_detectable_of_a_number_is_in_standard_deviations():
    """A unit changes neither what is detectable nor how sure a difference is."""
    frame, _, site = make_frame()
    y = make_numbers(site)
    found = check_environments(frame, y, environments=site)
    scaled = check_environments(frame, 1e200 * y, environments=site)
    assert [leaf.difference for leaf in scaled.power] == [leaf.difference for leaf in found.power]
    assert scaled.p_value == pytest.approx(found.p_value)
    deviation = found.environments[0].deviation
    assert scaled.environments[0].deviation == pytest.approx(1e200 * deviation)
    whole, half, tenth = (leaf.difference for leaf in found.power)
    assert whole < half < tenth
    assert half == pytest.approx(whole * np.sqrt(2), rel=0.02)


def test_several_classes_have_shares_in_each_environment():
    frame, _, site = make_frame()
    y = make_grades(site)
    found = check_environments(frame, y, environments=site)
    assert (found.kind, found.classes) == ("several classes", ("mild", "none", "severe"))
    expected = pd.crosstab(site, y, normalize="index")
    for place in found.environments:
        assert place.shares == pytest.approx(tuple(expected.loc[place.label]))
    assert found.p_value == pytest.approx(stats.chi2_contingency(pd.crosstab(y, site)).pvalue)
    # the power is that of the largest class as the positive one of two
    largest = pd.Series(y).value_counts().index[0]
    of_two = check_environments(frame, y == largest, environments=site)
    assert found.power == of_two.power
    assert [place.min_detectable for place in found.environments] == [
        place.min_detectable for place in of_two.environments
    ]


def test_rare_classes_are_told_by_environment():
    frame, _, site = make_frame()
    y = make_grades(site)
    y[(site == "south") & (y == "severe")] = "none"
    found = check_environments(frame, y, environments=site)
    (cell,) = found.sparse
    assert (cell.environment, cell.label, cell.n_rows) == ("south", "severe", 0)


def test_small_environments_of_a_number_are_told():
    frame, _, site = make_frame()
    site[:1] = "east"
    found = check_environments(frame, make_numbers(site), environments=site)
    (cell,) = found.sparse
    assert (cell.environment, cell.label, cell.n_rows) == ("east", None, 1)
    east = found.environments[0]
    assert (east.mean_interval, east.deviation) == (None, None)
    assert any("fewer than 5 rows: east." in advice for advice in found.advice)
    assert "east" in repr(found)


@pytest.mark.parametrize("kind", ["number", "several classes"])
def test_columns_that_decide_any_outcome_are_told(kind):
    """A column that is the outcome in other units is dropped; one that nearly is one is named."""
    frame, _, site = make_frame()
    y = make_numbers(site) if kind == "number" else make_grades(site)
    codes = y if kind == "number" else np.unique(y, return_inverse=True)[1]
    frame["near"] = codes + 0.001 * np.random.default_rng(0).normal(size=len(y))
    found = check_environments(frame, y, environments=site)
    decided = {association.column: association.decided for association in found.associations}
    assert decided["near"] > 0.5
    assert max(share for name, share in decided.items() if name != "near") == 0
    frame["copy"] = 2 * codes + 1 if kind == "number" else codes
    assert check_environments(frame, y, environments=site).dropped["copy"] == (
        "an exact copy of the label"
    )


def test_outliers_do_not_make_noise_decide_a_number():
    """One row had nearly all of the variance, so that every bin of any column had little."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=900)
    y[0] = 1e9
    X = pd.DataFrame({"noise": rng.normal(size=900)})
    found = check_environments(X, y, environments=np.arange(900) % 3)
    assert found.associations[0].decided == 0


def test_the_kind_of_the_outcome_can_be_said():
    frame, _, site = make_frame()
    whole = np.random.default_rng(0).integers(0, 20, len(site))
    assert check_environments(frame, whole, environments=site).kind == "number"
    as_classes = check_environments(frame, whole, environments=site, outcome="classes")
    assert len(as_classes.classes) == 20
    few = whole % 3
    assert check_environments(frame, few, environments=site).kind == "several classes"
    assert check_environments(frame, few, environments=site, outcome="number").kind == "number"
    with pytest.raises(IcscmError, match="outcome must be one of 'number', 'classes', None"):
        check_environments(frame, few, environments=site, outcome="counts")
    with pytest.raises(IcscmError, match="y holds text; a learner of numbers needs numbers"):
        check_environments(frame, make_grades(site), environments=site, outcome="number")


@pytest.mark.parametrize("make", [make_numbers, make_grades])
def test_any_check_up_is_json_and_text(make):
    frame, _, site = make_frame()
    found = check_environments(frame, make(site), environments=site)
    plain = json.loads(json.dumps(found.to_dict()))
    document = write_document(plain, facts=[], n_strong=2, n_listed=15)
    text = render_markdown(document)
    for place in found.environments:
        assert place.label in text
        assert place.label in repr(found)
    assert "Minimum detectable differences" in text
    assert "Columns that screen drops" in text


def test_names_of_groups_change_no_digit():
    """A rate of 51.25 % was shown as 51.2 or 51.3 %, by the order of the names of the groups."""
    frame, y, site = make_frame(n=240, seed=4)
    group = np.random.default_rng(1).integers(0, 48, len(site))
    names = np.random.default_rng(2).permutation(48)
    checkups = [
        check_environments(frame, y, environments=site, groups=groups).to_dict()
        for groups in (group, names[group])
    ]
    assert checkups[0] == checkups[1]
