"""The study's data: numbers that the real files must give, made files for those absent, errors."""

import functools
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from icscm.datasets import _files, load_heart_by_hospital
from icscm.exceptions import IcscmError
from paper.data import LOADERS, census, fetch, find_present, preparation, tasks
from paper.data.loaders import (
    load_acs_foodstamps,
    load_acs_income,
    load_assistments,
    load_college_scorecard,
    load_meps,
)
from support.raw_files import (
    expect_one_clear_sentence,
    make_persons,
    to_csv,
    write_state,
    write_zip,
)

BESIDE_CHECKOUT = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("ICSCM_DATA") or BESIDE_CHECKOUT)
PRESENT = find_present(DATA)
SIX_STATES = ["ID", "ME", "NH", "RI", "VT", "WV"]


def needs(name):
    reason = f"the raw files of {name} are not in {DATA}"
    return pytest.mark.skipif(name not in PRESENT, reason=reason)


def need_file(name):
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not in {DATA}")
    return DATA / name


@functools.cache
def load(name):
    states = {"states": SIX_STATES} if name == "acs_income" else {}
    return LOADERS[name](DATA, **states)


# rows, share of label 1, rows of each environment; columns and causal ones.
# The paper has 183 (37) for diabetes; 187 (39) is what all rows give.
# Six of 51 states: 45 columns fewer than the whole of the income data has.
FACTS = {
    "diabetes_readmission": (99_493, 0.4641, {0: 42_861, 1: 56_632}, (187, 39)),
    "acs_income": (40_815, 0.2918, {0: 16_368, 1: 24_447}, (185, 66)),
    "college_scorecard": (6_806, 0.1704, {0: 5_587, 1: 1_219}, (118, 11)),
    "heart_disease": (
        920,
        0.5533,
        {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200},
        (32, 5),
    ),
    "sachs": (
        6_564,
        0.4985,
        {1: 853, 3: 911, 4: 723, 5: 810, 6: 799, 7: 848, 8: 913, 9: 707},
        (10, 2),
    ),
}


QUICK_TO_READ = "heart_disease", "sachs"
REAL = [
    pytest.param(
        name, marks=[needs(name), *([] if name in QUICK_TO_READ else [pytest.mark.thorough])]
    )
    for name in FACTS
]


@pytest.mark.parametrize("name", REAL)
def test_the_numbers_of_real_files(name):
    n_rows, rate, environments, (n_columns, n_causal) = FACTS[name]
    data = load(name)
    assert data.X.shape == (n_rows, n_columns)
    assert len(data.causal) == n_causal
    assert data.y.dtype == np.int64
    assert set(np.unique(data.y)) == {0, 1}
    assert data.y.mean() == pytest.approx(rate, abs=5e-5)
    assert dict(zip(*np.unique(data.environments, return_counts=True), strict=True)) == environments
    assert data.X.columns.is_unique
    assert set(data.causal) <= set(data.X.columns)
    assert list(data.X.index) == list(range(n_rows))


@pytest.mark.parametrize("name", REAL)
def test_prepared_columns_can_be_learned_from(name):
    X = load(name).X
    assert all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in X.dtypes)
    assert not X.isna().any().any()
    if name not in ("heart_disease", "sachs"):  # which keep their units
        assert X.nunique().max() <= 50
        assert all(dtype.kind in "iu" for dtype in X.dtypes)


@pytest.mark.thorough
@needs("diabetes_readmission")
def test_diabetes_columns():
    X = load("diabetes_readmission").X
    races = [name for name in X if name.startswith("race_")]
    assert races[:2] == ["race_AfricanAmerican", "race_Caucasian"]
    assert "race_rare" in races  # Asian patients are less than 1 %
    assert (X[races].sum(axis=1) == 1).all()
    assert "admission_source_id" not in X
    assert 40 < X["num_lab_procedures"].nunique() <= 50, "118 values, some on several quantiles"
    assert X["time_in_hospital"].max() == 14
    assert "max_glu_serum_None" in X, "no test made is a value, not a gap"


@pytest.mark.thorough
@needs("acs_income")
def test_income_columns():
    X = load("acs_income").X
    assert {"POBP_ME", "POBP_MIDDLEEAST", "OCCP_MGR", "ST_VT", "SCHL_21", "ENG_00"} <= set(X)
    assert not [name for name in X if name.startswith("DIVISION")]
    assert len([name for name in X if name.startswith("POBP_")]) == 63
    assert len([name for name in X if name.startswith("OCCP_")]) == 25
    one_state = load_acs_income(DATA, states=["vt"])
    assert [name for name in one_state.X if name.startswith("ST_")] == ["ST_VT"]
    assert len(one_state.y) == X["ST_VT"].sum()
    assert set(one_state.environments) == {1}


@pytest.mark.thorough
@needs("college_scorecard")
def test_scorecard_codes():
    X = load("college_scorecard").X
    path = DATA / "college_scorecard" / "MERGED2018_19_PP.csv.bz2"
    missing = ["NULL", "PrivacySuppressed", "PS"]
    raw = pd.read_csv(path, usecols=["HIGHDEG", "SATVRMID"], na_values=missing)
    ranked = pd.crosstab(raw["HIGHDEG"].astype(float), X["HIGHDEG"])
    assert (np.count_nonzero(ranked, axis=1) == 1).all(), "a rank for each degree, in order"
    assert np.array_equal(ranked.to_numpy().argmax(axis=1), np.arange(5))
    assert (X["SATVRMID"][raw["SATVRMID"].isna()] == X["SATVRMID"].min()).all()


@needs("heart_disease")
def test_heart_disease_gaps_are_visible():
    prepared, raw = load("heart_disease").X, load_heart_by_hospital(DATA).X
    switzerland = load("heart_disease").environments == "switzerland"
    assert raw["chol"].isna()[switzerland].all(), "a cholesterol of 0 is missing"
    assert (prepared["chol_missing"][switzerland] == 1).all()
    assert raw["chol"].min() > 0
    assert not set(load("heart_disease").causal) & {"chol_missing", "ca"}


SPECIFIED = {
    "acsfoodstamps": tasks.ACS_FOODSTAMPS,
    "acsincome": tasks.ACS_INCOME,
    "assistments": tasks.ASSISTMENTS,
    "college_scorecard": tasks.COLLEGE_SCORECARD,
    "diabetes_readmission": tasks.DIABETES,
    "meps": tasks.MEPS,
}


@pytest.mark.parametrize("name", SPECIFIED)
def test_features_are_those_specified(name):
    wanted = json.loads(need_file("tableshift_features.json").read_text())[name]
    spell = str.upper if name == "college_scorecard" else str
    task = SPECIFIED[name]
    assert list(task.features) == [spell(feature) for feature in wanted["features"]]
    kinds = {spell(feature): kind for feature, kind in wanted["kinds"].items()}
    assert task.categories == {feature for feature, kind in kinds.items() if kind == "category"}
    assert list(task.causal) == [spell(each) for each in wanted["causal_without_domain_variable"]]
    assert task.environment == wanted["domain_split_variable"]
    if name == "meps":
        assert task.shifted == (wanted["ood_values"][0] + 1,)  # the file counts from 1
    elif name != "college_scorecard":
        assert set(task.shifted) == {float(value) for value in wanted["ood_values"]}


def make_households(n, year=2018, **columns):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "SERIALNO": [f"{year}HU{i:07d}" for i in range(n)],
            "FS": rng.choice([1, 2], n),
            "HUPAC": rng.choice([1, 2, 3, 4], n),
            "WIF": rng.choice([0, 1, 2, np.nan], n),
        }
    ).assign(**columns)


def test_foodstamps(tmp_path):
    n = 200
    alabama, maine = make_persons(n), make_persons(n, DIVISION=1, ST=23)
    alabama.loc[0, "AGEP"], alabama.loc[1, "AGEP"], alabama.loc[2, "PINCP"] = 17, 62, 30_001
    households = make_households(n, HUPAC=lambda t: t["HUPAC"].where(t.index != 3))
    write_state(tmp_path, "al", 1, alabama, households)
    write_state(tmp_path, "me", 23, maine, make_households(n))
    data = load_acs_foodstamps(tmp_path)
    assert len(data.y) == 2 * n - 4, "too young, too old, too rich, not in a household"
    assert np.bincount(data.environments).tolist() == [n, n - 4]
    assert data.y[: n - 4].tolist() == (households["FS"][4:] == 1).astype(int).tolist()
    assert not data.X.isna().any().any()
    assert {"WIF", "HUPAC", "OCCP_UNEMPLOYED", "OCCP_00", "POBP_MS", "ENG_00"} <= set(data.X)
    assert {"AGEP", "POBP_MEXICO", "ST_AL", "DREM_02"} <= set(data.causal)
    assert not {"OCCP_MGR", "PUBCOV_01", "ACS_YEAR"} & set(data.causal)
    only_maine = load_acs_foodstamps(tmp_path, states="me")
    assert len(only_maine.y) == n


def test_states_without_all_their_files_are_not_taken_by_default(tmp_path):
    write_state(tmp_path, "al", 1, make_persons(20), make_households(20))
    write_state(tmp_path, "me", 23, make_persons(20, ST=23))
    assert len(load_acs_foodstamps(tmp_path).y) == 20
    with pytest.raises(IcscmError, match=re.escape("csv_hme.zip' was not found; it is a file of")):
        load_acs_foodstamps(tmp_path, states=["AL", "ME"])


def make_assistments(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "problem_log_id": np.arange(n),
            "skill": "Area, of a\ncircle",
            **{name: rng.random(n) for name in tasks.ASSISTMENTS.features[:4]},
            "attempt_count": rng.integers(0, 5, n),
            "hint_count": rng.integers(0, 5, n),
            "school_id": rng.choice([5040, 11502, 73, 76], n),
            "skill_id": rng.choice([54, 279, np.nan], n),
            "problem_type": rng.choice(["algebra", "choose_1"], n),
            "bottom_hint": rng.choice([0.0, 1.0], n),
            "ms_first_response": rng.integers(0, 10**6, n),
            "tutor_mode": rng.choice(["tutor", "test"], n),
            "position": rng.integers(1, 30, n),
            "type": "MasterySection",
            "overlap_time": rng.integers(0, 10**6, n),
            "first_action": rng.integers(0, 3, n),
            "correct": rng.choice([0.0, 0.5, 1.0], n),
        }
    )


ASSISTMENTS_FILE = "assistments/2012-2013-data-with-predictions-4-final"


def test_assistments(tmp_path):
    table = make_assistments(600)
    path = tmp_path / f"{ASSISTMENTS_FILE}.csv"
    path.parent.mkdir()
    table.to_csv(path, index=False)
    kept = table[(table["correct"] != 0.5) & table["skill_id"].notna()]
    data = load_assistments(tmp_path)
    assert data.y.tolist() == kept["correct"].tolist()
    assert data.environments.tolist() == kept["school_id"].isin([5040, 11502]).tolist()
    assert data.X.shape == (len(kept), 12 + 2 + 2 + 1)
    assert len(data.causal) == 6 + 2 + 2 + 1
    assert "type_MasterySection" in data.causal
    assert data.X["ms_first_response"].nunique() == 50


def test_assistments_may_stay_zipped(tmp_path):
    write_zip(tmp_path / f"{ASSISTMENTS_FILE}.zip", "2012/data.csv", to_csv(make_assistments(50)))
    assert load_assistments(tmp_path).X.shape[0] > 0


def make_meps(n, year=19):
    rng = np.random.default_rng(0)
    columns = {name: rng.choice([-1, 1, 2], n) for name in tasks.MEPS.features}
    columns |= {name: rng.integers(0, 3, n) for name in tasks.MEPS_UTILISATION}
    columns |= {"INSCOV19": rng.choice([1, 2, 3], n), "AGE31X": rng.integers(-1, 85, n)}
    columns |= {"HRWG31X": rng.choice([-1, 7.25, 40], n), "DUPERSID": np.arange(n)}
    table = pd.DataFrame(columns | {"TOTEXP19": rng.integers(0, 10**4, n)})
    return table.rename(columns={name: name.replace("19", str(year)) for name in table})


def write_meps(home, table):
    stream = io.BytesIO()
    table.to_stata(stream, write_index=False)
    write_zip(home / "meps" / "h216dta.zip", "h216.dta", stream.getvalue())


def test_meps(tmp_path):
    table = make_meps(300)
    write_meps(tmp_path, table)
    kept = table[table["INSCOV19"] != 3]
    data = load_meps(tmp_path)
    used = kept[list(tasks.MEPS_UTILISATION)].sum(axis=1)
    assert data.y.tolist() == (used > 3).tolist()
    assert data.environments.tolist() == (kept["INSCOV19"] == 1).tolist()
    # each of the 214 categories has three values, four features are numbers
    assert data.X.shape == (len(kept), 214 * 3 + 4)
    assert {"HRWG31X_7.25", "HRWG31X_-1", "HRWG31X_40"} <= set(data.X)
    assert len(data.causal) == 19 * 3 + 1
    assert not data.X.isna().any().any()


def make_colleges(codes, control):
    table = pd.DataFrame("NULL", range(len(codes)), tasks.COLLEGE_SCORECARD.features)
    table["C150_4"] = "PrivacySuppressed"
    return table.assign(CCBASIC=codes, CONTROL=control)


@pytest.mark.parametrize(
    ("control", "shifted"),
    [
        ([1, 2, 3, 3, 1, 2], [0, 1, 0, 1, 0, 1]),  # 2010: 9 and 14 are private classes
        ([1, 1, 3, 1, 1, 2], [0, 0, 0, 0, 0, 1]),
    ],
    ids=["2010", "2018"],
)
def test_carnegie_editions(tmp_path, control, shifted):
    table = make_colleges(["1", "9", "10", "14", "NULL", "22"], control)
    path = tmp_path / "college_scorecard" / "MERGED2012_13_PP.csv"
    path.parent.mkdir()
    table.rename(columns=str.lower).to_csv(path, index=False)
    data = load_college_scorecard(tmp_path, year="2012_13")
    assert data.environments.tolist() == shifted
    assert data.y.tolist() == [0] * 6, "a rate not given counts as 0"
    assert (data.X["SATVRMID"] == -1).all()


FIRST_FILES = {
    "diabetes_readmission": "diabetes/dataset_diabetes.zip",
    "acs_income": "acs2018/csv_pal.zip",
    "acs_foodstamps": "acs2018/csv_pal.zip",
    "college_scorecard": "college_scorecard/MERGED2018_19_PP.csv",
    "assistments": f"{ASSISTMENTS_FILE}.csv",
    "meps": "meps/h216dta.zip",
    "heart_disease": "heart_disease/processed.cleveland.data",
    "sachs": "sachs/sachs_conditions.csv",
}


def test_no_folder_and_no_pooch(monkeypatch):
    monkeypatch.delenv("ICSCM_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    for loader in LOADERS.values():
        with pytest.raises(IcscmError, match="pass data_home or set the environment variable"):
            loader()
    with pytest.raises(IcscmError, match="pass data_home or set the environment variable"):
        find_present(None)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files(name, tmp_path):
    path = str(tmp_path / FIRST_FILES[name])
    expect_one_clear_sentence(
        lambda: LOADERS[name](tmp_path), f"{path!r} was not found; it is a file of {name!r}"
    )


def test_truncated_bz2(tmp_path):
    path = tmp_path / "college_scorecard" / "MERGED2018_19_PP.csv.bz2"
    path.parent.mkdir()
    make_colleges(np.random.default_rng(0).random(500), 1).to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[:-500])
    expect_one_clear_sentence(lambda: load_college_scorecard(tmp_path), str(path), "is damaged")


def test_zip_of_something_else(tmp_path):
    path = tmp_path / FIRST_FILES["meps"]
    write_zip(path, "h216.xlsx", "")
    expect_one_clear_sentence(
        lambda: load_meps(tmp_path), f"{str(path)!r} holds no file that ends in '.dta'"
    )


def test_truncated_stata_file(tmp_path):
    path = tmp_path / "meps" / "h216.dta"
    path.parent.mkdir()
    stream = io.BytesIO()
    make_meps(50).to_stata(stream, write_index=False)
    path.write_bytes(stream.getvalue()[:3000])
    expect_one_clear_sentence(lambda: load_meps(tmp_path), str(path), "is damaged")


def test_columns_that_are_gone(tmp_path):
    write_state(tmp_path, "id", 16, make_persons(20).drop(columns=["RELP", "WKW"]))
    path = str(tmp_path / "acs2018" / "csv_pid.zip")
    expect_one_clear_sentence(
        lambda: load_acs_income(tmp_path, states=["ID"]),
        f"{path!r} lacks 8 of the 26 expected columns: 'COW', 'HINS1',",
        "and 3 more; the file may be of another year or edition",
    )
    path = tmp_path / FIRST_FILES["assistments"]
    path.parent.mkdir()
    make_assistments(9).drop(columns="Average_confidence(BORED)").to_csv(path, index=False)
    expect_one_clear_sentence(
        lambda: load_assistments(tmp_path),
        f"{str(path)!r} lacks 1 of the 17 expected columns",
        "'Average_confidence(BORED)'",
    )
    write_meps(tmp_path, make_meps(20).drop(columns="PAYDR31"))
    expect_one_clear_sentence(lambda: load_meps(tmp_path), "h216dta.zip", "'PAYDR31'")


def test_files_of_another_year(tmp_path):
    write_state(tmp_path, "al", 1, make_persons(20), make_households(20, year=2017))
    path = str(tmp_path / "acs2018" / "csv_hal.zip")
    expect_one_clear_sentence(
        lambda: load_acs_foodstamps(tmp_path),
        f"{path!r} is not of 2018: its first household number is 2017HU0000000",
    )
    newer = make_persons(20, year=2019).rename(columns={"RELP": "RELSHIPP"})
    write_state(tmp_path, "id", 16, newer)
    expect_one_clear_sentence(
        lambda: load_acs_income(tmp_path, states=["ID"]),
        "csv_pid.zip' is not of 2018: its first household number is 2019HU0000000",
        "expected the American Community Survey's 1-Year file of 2018",
    )
    write_meps(tmp_path, make_meps(20, year=20))
    expect_one_clear_sentence(
        lambda: load_meps(tmp_path), "h216dta.zip' is of 2020; expected", "2019 (HC-216)"
    )
    (tmp_path / "college_scorecard").mkdir()
    (tmp_path / "college_scorecard" / "MERGED2016_17_PP.csv").write_text("UNITID\n")
    expect_one_clear_sentence(
        lambda: load_college_scorecard(tmp_path),
        "MERGED2018_19_PP.csv' was not found; of other years there are MERGED2016_17_PP.csv",
        "year='2016_17'",
    )


@pytest.mark.parametrize("states", [["ME", "XX"], ["Maine"], [], [7]])
def test_unknown_states(states, tmp_path):
    for call in (load_acs_income, load_acs_foodstamps, functools.partial(fetch, "acs_income")):
        with pytest.raises(IcscmError, match="states must be two-letter codes of US states"):
            call(data_home=tmp_path, states=states)


@pytest.mark.parametrize("name", ["college_scorecard", "assistments", "sachs"])
def test_fetch_by_hand_only(name, tmp_path):
    path = str(tmp_path / FIRST_FILES[name])
    expect_one_clear_sentence(
        lambda: fetch(name, tmp_path), "get it from https://", f"save it as {path!r}"
    )


def test_fetch_takes_the_states_asked_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(_files.Source, "download", lambda _, file, __: asked.append(file.path))
    fetch("acs_foodstamps", tmp_path, states=["me"])
    assert asked == ["acs2018/csv_pme.zip", "acs2018/csv_hme.zip"]


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.sampled_from([*"abcdefgh", None]), min_size=1, max_size=60),
    rare_below=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
)
def test_one_hot_agrees_with_scikit_learn(values, rare_below):
    table = pd.DataFrame({"x": pd.Categorical(values)})
    ours = preparation.prepare_one_hot(table, rare_below).to_frame()
    filled = np.array([value or "missing" for value in values], dtype=object)[:, None]
    theirs = OneHotEncoder(min_frequency=rare_below or None, sparse_output=False)
    wanted = theirs.fit_transform(filled)
    names = [name.removeprefix("x0_") for name in theirs.get_feature_names_out()]
    names = [f"x_{'rare' if name == 'infrequent_sklearn' else name}" for name in names]
    assert sorted(ours) == sorted(names)
    assert np.array_equal(ours[names].to_numpy(), wanted)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 300)), min_size=1, max_size=400))
def test_quantile_codes_keep_the_order(values):
    numbers = pd.Series(values, dtype=float, name="x")
    ordinal = preparation.prepare_ordinal(numbers.to_frame(), n_bins=100)
    coded = preparation.code_quantiles(ordinal).columns["x"]
    assert len(np.unique(coded)) <= 50
    order = np.argsort(numbers.fillna(-1).to_numpy(), kind="stable")
    assert (np.diff(coded[order].astype(int)) >= 0).all()
    bins = ordinal.columns["x"]
    assert ((bins == -1) == numbers.isna()).all()
    assert bins.max() <= 99


def test_numbers_with_few_values_stay():
    values = np.arange(49.0).repeat(3) / 2
    prepared = preparation.Prepared({"x": values}, {"x": "x"})
    assert np.array_equal(preparation.code_quantiles(prepared).columns["x"], values)


def test_all_codes_of_birthplaces_and_occupations_have_groups():
    numbers = [*_files.STATES.values(), 60, 66, 69, 78, *range(100, 170), *range(200, 555)]
    groups = {census.group_birthplace(code) for code in numbers}
    assert len(groups) == 63
    assert len({census.group_occupation(code) for code in range(10, 9921)}) == 26
