"""Real data: the numbers that the files must give, made files for those absent, clear errors."""

import functools
import gc
import hashlib
import http.server
import io
import json
import os
import re
import socket
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from icscm.datasets import (
    _census,
    _features,
    _files,
    _preparation,
    _sources,
    fetch,
    list_datasets,
    load_acs_foodstamps,
    load_acs_income,
    load_assistments,
    load_college_scorecard,
    load_diabetes_readmission,
    load_heart_disease,
    load_meps,
    load_sachs,
    several,
)
from icscm.exceptions import IcscmError

BESIDE_CHECKOUT = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("ICSCM_DATA") or BESIDE_CHECKOUT)
PRESENT = {info.name for info in list_datasets(DATA) if info.present}
SIX_STATES = ["ID", "ME", "NH", "RI", "VT", "WV"]

LOADERS = {info.name: info.loader for info in list_datasets()} | {
    "acs_income": functools.partial(load_acs_income, states=SIX_STATES)
}


def needs(name):
    reason = f"the raw files of {name} are not in {DATA}"
    return pytest.mark.skipif(name not in PRESENT, reason=reason)


def need_file(name):
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not in {DATA}")
    return DATA / name


@functools.cache
def load_once(name, prepared):
    return LOADERS[name](DATA, prepared=prepared)


def load(name, prepared=True):
    return load_once(name, prepared)


# rows, share of label 1, rows of each environment; columns and causal ones, prepared and raw.
# The paper has 183 (37) for diabetes; 187 (39) is what all rows give.
# Six of 51 states: 45 columns fewer than the whole of the income data has.
FACTS = {
    "diabetes_readmission": (99_493, 0.4641, {0: 42_861, 1: 56_632}, (187, 39), (47, 5)),
    "acs_income": (40_815, 0.2918, {0: 16_368, 1: 24_447}, (185, 66), (24, 4)),
    "college_scorecard": (6_806, 0.1704, {0: 5_587, 1: 1_219}, (118, 11), (119, 11)),
    "heart_disease": (
        920,
        0.5533,
        {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200},
        (32, 5),
        (14, 5),
    ),
    "sachs": (
        6_564,
        0.4985,
        {1: 853, 3: 911, 4: 723, 5: 810, 6: 799, 7: 848, 8: 913, 9: 707},
        (10, 2),
        (11, 2),
    ),
}
REAL = [pytest.param(name, marks=needs(name)) for name in FACTS]


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "raw"])
@pytest.mark.parametrize("name", REAL)
def test_the_numbers_of_real_files(name, prepared):
    n_rows, rate, environments, *shapes = FACTS[name]
    start = time.perf_counter()
    data = load(name, prepared)
    assert time.perf_counter() - start < 30, "loading takes seconds"
    n_columns, n_causal = shapes[0 if prepared else 1]
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


RAW = {
    "diabetes_readmission": _features.DIABETES,
    "acs_income": _features.ACS_INCOME,
    "college_scorecard": _features.COLLEGE_SCORECARD,
    "heart_disease": _features.HEART_DISEASE,
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in RAW])
def test_the_raw_table_keeps_categories_and_gaps(name):
    X, task = load(name, prepared=False).X, RAW[name]
    assert X.columns.tolist() == list(task.features)
    for column, dtype in X.dtypes.items():
        assert isinstance(dtype, pd.CategoricalDtype) == (column in task.categories), column
    assert X.isna().any().any()


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


@needs("college_scorecard")
def test_scorecard_codes():
    X = load("college_scorecard").X
    raw = load("college_scorecard", prepared=False).X
    ranked = pd.crosstab(raw["HIGHDEG"].astype(float), X["HIGHDEG"])
    assert (np.count_nonzero(ranked, axis=1) == 1).all(), "a rank for each degree, in order"
    assert np.array_equal(ranked.to_numpy().argmax(axis=1), np.arange(5))
    assert (X["SATVRMID"][raw["SATVRMID"].isna()] == X["SATVRMID"].min()).all()


@needs("heart_disease")
def test_heart_disease_gaps_are_visible():
    prepared, raw = load("heart_disease").X, load("heart_disease", prepared=False).X
    switzerland = load("heart_disease").environments == "switzerland"
    assert raw["chol"].isna()[switzerland].all(), "a cholesterol of 0 is missing"
    assert (prepared["chol_missing"][switzerland] == 1).all()
    assert raw["chol"].min() > 0
    assert not set(load("heart_disease").causal) & {"chol_missing", "ca"}


@needs("heart_disease")
def test_heart_disease_as_uci_publishes_it(tmp_path):
    """UCI's own files have no line of names."""
    (tmp_path / "heart_disease").mkdir()
    for path in (DATA / "heart_disease").glob("*.data"):
        lines = [line for line in path.read_text().splitlines(True) if not line.startswith("age")]
        (tmp_path / "heart_disease" / path.name).write_text("".join(lines))
    assert load_heart_disease(tmp_path).X.equals(load_heart_disease(DATA).X)


@needs("sachs")
@pytest.mark.parametrize("target", _features.SACHS_PARENTS)
def test_sachs_targets(target):
    data = load_sachs(DATA, target=target)
    assert target not in data.X
    assert data.causal == [
        name for name in _features.SACHS_PARENTS if name in _features.SACHS_PARENTS[target]
    ]
    assert data.y.mean() == pytest.approx(0.5, abs=0.01)


def test_sachs_network_is_the_accepted_one():
    edges = pd.read_csv(need_file("sachs/consensus_edges.csv"))
    short = {name.lower().removesuffix("g"): name for name in _features.SACHS_PARENTS}
    accepted = {(short[parent], short[child]) for parent, child in edges.to_numpy()}
    assert accepted == {(p, c) for c, parents in _features.SACHS_PARENTS.items() for p in parents}


SPECIFIED = {
    "acsfoodstamps": _features.ACS_FOODSTAMPS,
    "acsincome": _features.ACS_INCOME,
    "assistments": _features.ASSISTMENTS,
    "college_scorecard": _features.COLLEGE_SCORECARD,
    "diabetes_readmission": _features.DIABETES,
    "meps": _features.MEPS,
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


# ------------------------------------------------------------------- files made for the test


def write_zip(path, member, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README.pdf", "not this one")
        archive.writestr(member, text)


def to_csv(table):
    return table.to_csv(index=False)


def make_persons(n, year=2018, **columns):
    """Persons who all belong to the food stamps task, unless `columns` say otherwise."""
    rng = np.random.default_rng(0)
    codes = {
        "ENG": [1, 2, None],
        "FER": [1, 2, None],
        "NWLA": [1, 2, 3],
        "NWLK": [1, 2, 3],
        "OCCP": [10, 3255, 9920, None],
        "POBP": [1, 28, 303, 207],
        "RELP": [0, 1, 2],
        "WKHP": [10, 40, None],
        "WKW": [1, 6, None],
        "WRK": [1, 2, None],
        "DIS": [1, 2],
        "MIL": [2, 4],
        "ANC": [1, 2, 4],
        "NATIVITY": [1, 2],
        "DEAR": [1, 2],
        "DEYE": [1, 2],
        "DREM": [1, 2],
        "PUBCOV": [1, 2],
        "AGEP": [18, 30, 61],
        "SEX": [1, 2],
        "MAR": [1, 5],
        "CIT": [1, 4],
        "RAC1P": [1, 2, 9],
        "SCHL": [16, 21],
        "PINCP": [0, 12_000, 30_000],
    }
    table = {name: rng.choice(np.array(values, float), n) for name, values in codes.items()}
    return pd.DataFrame(
        {"SERIALNO": [f"{year}HU{i:07d}" for i in range(n)], "DIVISION": 6, "ST": 1, **table}
    ).assign(**columns)


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


def write_state(home, state, number, persons, households=None):
    path = home / "acs2018" / f"csv_p{state}.zip"
    write_zip(path, f"psam_p{number:02d}.csv", to_csv(persons))
    if households is not None:
        path = home / "acs2018" / f"csv_h{state}.zip"
        write_zip(path, f"psam_h{number:02d}.csv", to_csv(households))


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
    raw = load_acs_foodstamps(tmp_path, prepared=False)
    assert raw.X["POBP"].dtype == "category"
    assert raw.X["OCCP"].isna().any()
    assert list(raw.X) == list(_features.ACS_FOODSTAMPS.features)
    assert len(raw.causal) == 12
    only_maine = load_acs_foodstamps(tmp_path, states="me")
    assert len(only_maine.y) == n


def test_states_without_all_their_files_are_not_taken_by_default(tmp_path):
    write_state(tmp_path, "al", 1, make_persons(20), make_households(20))
    write_state(tmp_path, "me", 23, make_persons(20, ST=23))
    assert len(load_acs_foodstamps(tmp_path).y) == 20
    with pytest.raises(IcscmError, match=re.escape("csv_hme.zip' is not there; expected a file")):
        load_acs_foodstamps(tmp_path, states=["AL", "ME"])


def make_assistments(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "problem_log_id": np.arange(n),
            "skill": "Area, of a\ncircle",
            **{name: rng.random(n) for name in _features.ASSISTMENTS.features[:4]},
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
    kept = table[table["correct"] != 0.5]
    raw = load_assistments(tmp_path, prepared=False)
    assert raw.X.shape == (len(kept), 16)
    assert raw.X["skill_id"].isna().sum() == kept["skill_id"].isna().sum() > 0
    kept = kept[kept["skill_id"].notna()]
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
    columns = {name: rng.choice([-1, 1, 2], n) for name in _features.MEPS.features}
    columns |= {name: rng.integers(0, 3, n) for name in _features.MEPS_UTILISATION}
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
    used = kept[list(_features.MEPS_UTILISATION)].sum(axis=1)
    assert data.y.tolist() == (used > 3).tolist()
    assert data.environments.tolist() == (kept["INSCOV19"] == 1).tolist()
    # each of the 214 categories has three values, four features are numbers
    assert data.X.shape == (len(kept), 214 * 3 + 4)
    assert {"HRWG31X_7.25", "HRWG31X_-1", "HRWG31X_40"} <= set(data.X)
    assert len(data.causal) == 19 * 3 + 1
    assert not data.X.isna().any().any()
    raw = load_meps(tmp_path, prepared=False)
    assert raw.X.shape == (len(kept), 219)
    assert raw.X["AGE31X"].isna().sum() == (kept["AGE31X"] < 0).sum()
    assert "-1" in raw.X["SEX"].cat.categories


def make_colleges(codes, control):
    table = pd.DataFrame("NULL", range(len(codes)), _features.COLLEGE_SCORECARD.features)
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


# --------------------------------------------------------------------------- clear errors


def test_no_folder(monkeypatch):
    monkeypatch.delenv("ICSCM_DATA", raising=False)
    for loader in LOADERS.values():
        with pytest.raises(IcscmError, match="give data_home, or set the environment variable"):
            loader()
    assert not any(info.present for info in list_datasets())


@needs("sachs")
def test_folder_from_the_environment(monkeypatch):
    monkeypatch.setenv("ICSCM_DATA", str(DATA))
    assert len(load_sachs().y) == 6_564
    assert {info.name for info in list_datasets() if info.present} == PRESENT


FIRST_FILES = {
    "diabetes_readmission": "diabetes/dataset_diabetes.zip",
    "acs_income": "acs2018/csv_pid.zip",
    "acs_foodstamps": "acs2018/csv_pal.zip",
    "college_scorecard": "college_scorecard/MERGED2018_19_PP.csv",
    "assistments": f"{ASSISTMENTS_FILE}.csv",
    "meps": "meps/h216dta.zip",
    "heart_disease": "heart_disease/processed.cleveland.data",
    "sachs": "sachs/sachs_conditions.csv",
}


def expect_one_clear_sentence(call, *parts):
    with pytest.raises(IcscmError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files(name, tmp_path):
    path = str(tmp_path / FIRST_FILES[name])
    expect_one_clear_sentence(
        lambda: LOADERS[name](tmp_path), f"{path!r} is not there; expected a file of {name!r}"
    )


def load_one_state(name, home):
    if not name.startswith("acs"):
        return LOADERS[name](home)
    loader = {"acs_income": load_acs_income, "acs_foodstamps": load_acs_foodstamps}[name]
    return loader(home, states=[FIRST_FILES[name][-6:-4]])


@pytest.mark.parametrize("name", [name for name in LOADERS if FIRST_FILES[name].endswith("zip")])
@pytest.mark.parametrize("cut", [0, 40, -30], ids=["empty", "stub", "tail"])
def test_truncated_zips(name, cut, tmp_path):
    path = tmp_path / FIRST_FILES[name]
    write_zip(path, "psam_p01.csv", "SERIALNO\n2018\n" * 100)
    path.write_bytes(path.read_bytes()[:cut])
    expect_one_clear_sentence(
        lambda: load_one_state(name, tmp_path),
        f"{str(path)!r} is damaged or cannot be read (BadZipFile",
        f"expected the file of {name!r} as published at https://",
    )


def test_zip_with_broken_content(tmp_path):
    """The list of contents is whole, the contents are not."""
    path = tmp_path / FIRST_FILES["diabetes_readmission"]
    write_zip(path, "diabetic_data.csv", "race,age\n" + "Other,7\n" * 1000)
    content = bytearray(path.read_bytes())
    content[120:2000] = bytes(1880)
    path.write_bytes(content)
    expect_one_clear_sentence(lambda: load_diabetes_readmission(tmp_path), str(path), "is damaged")


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
        f"{path!r} lacks 8 of the 26 columns that are expected in it: 'COW', 'HINS1',",
        "and 3 more; it may be of another year or edition",
    )
    path = tmp_path / FIRST_FILES["assistments"]
    path.parent.mkdir()
    make_assistments(9).drop(columns="Average_confidence(BORED)").to_csv(path, index=False)
    expect_one_clear_sentence(
        lambda: load_assistments(tmp_path),
        f"{str(path)!r} lacks 1 of the 17 columns",
        "'Average_confidence(BORED)'",
    )
    write_meps(tmp_path, make_meps(20).drop(columns="PAYDR31"))
    expect_one_clear_sentence(lambda: load_meps(tmp_path), "h216dta.zip", "'PAYDR31'")


def test_heart_disease_with_other_columns(tmp_path):
    path = tmp_path / FIRST_FILES["heart_disease"]
    path.parent.mkdir()
    for hospital in _features.HEART_DISEASE_HOSPITALS:
        (path.parent / f"processed.{hospital}.data").write_text("63,1,1\n")
    expect_one_clear_sentence(
        lambda: load_heart_disease(tmp_path), f"{str(path)!r} has 3 columns; expected the 14"
    )
    path.write_text("63,many" + ",1" * 12)
    expect_one_clear_sentence(lambda: load_heart_disease(tmp_path), str(path), "'many'")


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
        "MERGED2018_19_PP.csv' is not there; of other years there are MERGED2016_17_PP.csv",
        "year='2016_17'",
    )


@pytest.mark.parametrize("states", [["ME", "XX"], ["Maine"], [], [7]])
def test_unknown_states(states, tmp_path):
    for call in (load_acs_income, load_acs_foodstamps, functools.partial(fetch, "acs_income")):
        with pytest.raises(IcscmError, match="states must be two-letter codes of US states"):
            call(data_home=tmp_path, states=states)


def test_unknown_protein(tmp_path):
    with pytest.raises(IcscmError, match=r"target must be one of 'Raf', 'Mek'.*; got 'erk'"):
        load_sachs(tmp_path, target="erk")


# ------------------------------------------------------------------- the list, and fetching


def test_the_list(tmp_path):
    infos = list_datasets(tmp_path)
    assert [info.name for info in infos] == list(LOADERS)
    assert not any(info.present for info in infos)
    for info in infos:
        assert "https://" in info.source
        assert info.licence
        assert info.n_samples > 0
        assert info.loader.__name__ == f"load_{info.name}"
    assert infos[2].files == ("acs2018/csv_p??.zip", "acs2018/csv_h??.zip")
    write_state(tmp_path, "me", 23, make_persons(5))
    present = [info.name for info in list_datasets(tmp_path) if info.present]
    assert present == ["acs_income"], "food stamps need the households too"


def test_known_checksums_are_right():
    sums = need_file("SHA256SUMS").read_text().split()
    wanted = dict(zip(sums[1::2], sums[::2], strict=True))
    files = {file.path: file for source in _sources.SOURCES.values() for file in source.files}
    known = {path: file.sha256 for path, file in files.items() if file.sha256}
    assert len(known) == 7
    assert known.items() <= wanted.items()
    assert all(file.url for file in files.values() if file.sha256)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server on this machine, and the folder that it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", folder
        running.shutdown()
        thread.join()
    with warnings.catch_warnings():  # pooch leaves connections to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def replace_source(monkeypatch, url, sha256=None, name="diabetes_readmission"):
    old = _sources.SOURCES[name]
    file = _sources.RawFile(old.files[0].path, url, sha256)
    facts = {**old.__dict__, "files": (file,)}
    monkeypatch.setitem(_sources.SOURCES, name, _sources.Source(**facts))


def make_patients():
    table = pd.DataFrame("No", range(40), [*_features.DIABETES.features, "readmitted"])
    numbers = dict.fromkeys(_features.DIABETES.numbers, 7)
    return table.assign(**numbers, race="Other", readmitted=["NO", "<30"] * 20)


def test_fetch(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    url, folder = server
    write_zip(folder / "patients.zip", "diabetic_data.csv", to_csv(make_patients()))
    content = (folder / "patients.zip").read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    replace_source(monkeypatch, f"{url}/patients.zip", checksum)
    home = tmp_path / "home"
    with pytest.raises(IcscmError, match="is not there"):
        load_diabetes_readmission(home)  # nothing is fetched without being asked for
    assert not home.exists()
    assert len(load_diabetes_readmission(home, download=True).y) == 40
    (target,) = fetch("diabetes_readmission", home)
    assert target == home / "diabetes" / "dataset_diabetes.zip"
    assert target.read_bytes() == content
    target.write_bytes(content[:50])
    fetch("diabetes_readmission", home)
    assert target.read_bytes() == content, "a damaged copy is fetched anew"


def test_fetch_keeps_nothing_with_a_wrong_checksum(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    url, folder = server
    (folder / "patients.zip").write_text("not what it was")
    replace_source(monkeypatch, f"{url}/patients.zip", "0" * 64)
    expect_one_clear_sentence(
        lambda: fetch("diabetes_readmission", tmp_path),
        "/patients.zip: what arrived does not have the known checksum; try again later, or save",
    )
    assert not (tmp_path / "diabetes" / "dataset_diabetes.zip").exists()


def test_fetch_of_what_the_server_lacks(server, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    replace_source(monkeypatch, f"{server[0]}/gone.zip")
    expect_one_clear_sentence(
        lambda: fetch("diabetes_readmission", tmp_path), "/gone.zip: the server answered 404;"
    )


def test_fetch_without_network(tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    replace_source(monkeypatch, f"http://127.0.0.1:{port}/patients.zip")
    expect_one_clear_sentence(
        lambda: load_diabetes_readmission(tmp_path, download=True),
        f"could not download http://127.0.0.1:{port}/patients.zip: there is no connection to the "
        "server; try again later, or save the file by hand as",
    )


def test_fetch_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(IcscmError, match=re.escape("pip install 'icscm[data]'")):
        fetch("heart_disease", tmp_path)


@pytest.mark.parametrize("name", ["college_scorecard", "assistments", "sachs"])
def test_fetch_by_hand_only(name, tmp_path):
    path = str(tmp_path / FIRST_FILES[name])
    for call in (fetch, lambda name, home: LOADERS[name](home, download=True)):
        expect_one_clear_sentence(
            lambda call=call: call(name, tmp_path), "get it from https://", f"save it as {path!r}"
        )


def test_fetch_of_an_unknown_name(tmp_path):
    with pytest.raises(IcscmError, match=r"name must be one of 'diabetes_readmission'.*got 'iris'"):
        fetch("iris", tmp_path)


def test_fetch_takes_the_states_asked_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "icscm.datasets.catalogue.fetch_raw_file", lambda file, *_: asked.append(file.path)
    )
    fetch("acs_foodstamps", tmp_path, states=["me"])
    assert asked == ["acs2018/csv_pme.zip", "acs2018/csv_hme.zip"]
    asked.clear()
    fetch("acs_income", tmp_path)
    assert len(asked) == 51
    assert "acs2018/csv_pdc.zip" not in asked, "the paper leaves the District out"


# ---------------------------------------------------------------------------- preparation


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.sampled_from([*"abcdefgh", None]), min_size=1, max_size=60),
    rare_below=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
)
def test_one_hot_agrees_with_scikit_learn(values, rare_below):
    table = pd.DataFrame({"x": pd.Categorical(values)})
    ours = _preparation.prepare_one_hot(table, rare_below).to_frame()
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
    ordinal = _preparation.prepare_ordinal(numbers.to_frame(), n_bins=100)
    coded = _preparation.code_quantiles(ordinal).columns["x"]
    assert len(np.unique(coded)) <= 50
    order = np.argsort(numbers.fillna(-1).to_numpy(), kind="stable")
    assert (np.diff(coded[order].astype(int)) >= 0).all()
    bins = ordinal.columns["x"]
    assert ((bins == -1) == numbers.isna()).all()
    assert bins.max() <= 99


def test_numbers_with_few_values_stay():
    values = np.arange(49.0).repeat(3) / 2
    prepared = _preparation.Prepared({"x": values}, {"x": "x"})
    assert np.array_equal(_preparation.code_quantiles(prepared).columns["x"], values)


def test_all_codes_of_birthplaces_and_occupations_have_groups():
    numbers = [*_sources.STATES.values(), 60, 66, 69, 78, *range(100, 170), *range(200, 555)]
    groups = {_census.group_birthplace(code) for code in numbers}
    assert len(groups) == 63
    assert len({_census.group_occupation(code) for code in range(10, 9921)}) == 26


def test_data_folder_may_start_with_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    assert _files.find_data_home("~/raw") == Path("/somewhere/raw")


@pytest.mark.parametrize(
    ("title", "shape", "n_environments"),
    [
        pytest.param("ACS income by state", (40_815, 18), 6, marks=needs("acs_income")),
        pytest.param(
            "Diabetes by source of admission", (99_493, 46), 7, marks=needs("diabetes_readmission")
        ),
        pytest.param("Heart disease by hospital", (920, 13), 4, marks=needs("heart_disease")),
        pytest.param("Sachs by experiment", (6_564, 10), 8, marks=needs("sachs")),
    ],
)
def test_tables_by_environment(title, shape, n_environments):
    data = several.TABLES[title][1](DATA)
    assert data.X.shape[1] == shape[1]
    assert data.X.shape[0] == len(data.y) == len(data.environments) <= shape[0]
    names, n = np.unique(data.environments, return_counts=True)
    assert len(names) == n_environments
    assert min(n) > 100
