"""Loaders of the study on real data.

raw files -> raw table -> rows of the task, label, environments -> prepared columns
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.datasets import (
    RealData,
    load_diabetes_by_source,
    load_heart_by_hospital,
    load_income_by_state,
    load_sachs,
)
from icscm.datasets import _files as library
from icscm.datasets._files import PathLike, Source, find_data_home
from icscm.datasets.real import read_diabetes
from icscm.parameters import allow, check_value
from paper.data import census, formats, tasks
from paper.data.preparation import (
    Prepared,
    code_quantiles,
    fill_missing_numbers,
    prepare_one_hot,
    prepare_ordinal,
    relabel,
)
from paper.data.tasks import MEPS, Task

_FACTS = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
_OWN = {name: library.make_source(name, facts) for name, facts in _FACTS.items()}
SOURCES: dict[str, Source] = library.SOURCES | _OWN

# Risk factors that precede the disease (Wilson et al. 1998, Circulation 97:1837,
# https://doi.org/10.1161/01.CIR.97.18.1837); the other features are symptoms and findings.
_HEART_CAUSES = ("age", "sex", "trestbps", "chol", "fbs")


def load_diabetes_readmission(data_home: PathLike | None = None) -> RealData:
    """Readmission of diabetes patients; environment 1 was admitted through the emergency room.

    One-hot columns, values of fewer than 1 % of the rows pooled, 50 quantile codes.
    """
    table = read_diabetes(data_home)
    return _finish(
        tasks.DIABETES,
        table,
        label=table["readmitted"] != "NO",
        prepare=lambda features: _prepare(features, rare_below=0.01),
    )


def load_acs_income(
    data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> RealData:
    """Income over 56,000 dollars of working adults; environment 1 is New England."""
    task = tasks.ACS_INCOME
    source = SOURCES["acs_income"]
    home = find_data_home(data_home)
    columns = [name for name in task.features if name != "ACS_YEAR"]
    table = census.read_persons(source, home, states, [*columns, "PINCP", "PWGTP"])
    adult = (table["AGEP"] > 16) & (table["PINCP"] > 100)
    table = _keep(table, adult & (table["WKHP"] > 0) & (table["PWGTP"] >= 1))
    return _finish_acs(task, table, table["PINCP"] > 56_000)


def load_acs_foodstamps(
    data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> RealData:
    """Food stamps of households with low income; environment 1 is East South Central.

    Persons of 18 to 61 with an income of 30,000 dollars or less, in households whose number of
    children is recorded.
    """
    task = tasks.ACS_FOODSTAMPS
    source = SOURCES["acs_foodstamps"]
    home = find_data_home(data_home)
    of_households = ["FS", "HUPAC", "WIF"]
    columns = [name for name in task.features if name not in ("ACS_YEAR", *of_households)]
    table = census.read_persons(source, home, states, [*columns, "PINCP"], of_households)
    of_age = (table["AGEP"] >= 18) & (table["AGEP"] < 62)
    table = _keep(table, of_age & (table["PINCP"] <= 30_000) & (table["HUPAC"] >= 1))
    return _finish_acs(task, table, table["FS"] == 1)


def load_college_scorecard(data_home: PathLike | None = None, *, year: str = "2018_19") -> RealData:
    """Completion rates over one half of US colleges; environment 1 are some Carnegie classes.

    A missing completion rate counts as 0. Categories as ranks, numbers in 100 quantile bins,
    missing values -1, then 50 quantile codes. The paper has all years from 1996 to 2013.
    """
    task = tasks.COLLEGE_SCORECARD
    source = SOURCES["college_scorecard"]
    table = source.read(
        formats.find_scorecard(source, find_data_home(data_home), year),
        [*task.features, "C150_4"],
        dtype=dict.fromkeys(task.categories, "category"),
        na_values=["NULL", "PrivacySuppressed", "PS"],
    )
    environments = formats.find_shifted_colleges(table)

    def prepare(table: pd.DataFrame) -> Prepared:
        return code_quantiles(prepare_ordinal(table, n_bins=100))

    return _finish(task, table, table["C150_4"] > 0.5, prepare, environments)


def load_assistments(data_home: PathLike | None = None) -> RealData:
    """Problems solved at the first attempt; environment 1 are ten schools.

    Answers that are partly right, and rows with a missing number, are dropped.
    """
    task = tasks.ASSISTMENTS
    source = SOURCES["assistments"]
    path = source.locate(source.files[0], find_data_home(data_home))
    kinds = dict.fromkeys(task.categories, "category")
    table = source.read(path, [*task.features, "correct"], dtype=kinds)
    is_complete = table[list(task.numbers)].notna().all(axis=1)
    table = _keep(table, table["correct"].isin([0, 1]) & is_complete)
    return _finish(task, table, table["correct"] == 1)


def load_meps(data_home: PathLike | None = None) -> RealData:
    """More than three uses of health care in 2019; environment 1 has a private insurance.

    Uses: visits, hospital nights and days of home care. Uninsured persons are dropped. The
    publisher's negative codes (-1 inapplicable, -7 refused, -8 not known) are values like others.
    """
    table = formats.read_meps(SOURCES["meps"], find_data_home(data_home))
    table = _keep(table, table[MEPS.environment].isin([1, 2]))
    used = table[list(tasks.MEPS_UTILISATION)].sum(axis=1) > 3
    environments = _find_shifted(MEPS, table)
    table = relabel(table, MEPS.categories, formats.label_numbers)
    return _finish(MEPS, table, used, environments=environments)


def load_heart_disease(data_home: PathLike | None = None) -> RealData:
    """Narrowed coronary arteries at four hospitals; not in the paper.

    Medians for missing numbers, with columns `<feature>_missing`; numbers in their own units.
    """
    data = load_heart_by_hospital(data_home)
    prepared = prepare_one_hot(fill_missing_numbers(data.X))
    return data._replace(X=prepared.to_frame(), causal=prepared.find_columns_of(_HEART_CAUSES))


# By the name of the source, in the order of the tables.
LOADERS: dict[str, Callable[..., RealData]] = {
    "diabetes_readmission": load_diabetes_readmission,
    "acs_income": load_acs_income,
    "acs_foodstamps": load_acs_foodstamps,
    "college_scorecard": load_college_scorecard,
    "assistments": load_assistments,
    "meps": load_meps,
    "heart_disease": load_heart_disease,
    "sachs": load_sachs,
}

# Tables with several environments, by title: the name of the source, and the loader.
TABLES: dict[str, tuple[str, Callable[[PathLike | None], RealData]]] = {
    "ACS income by state": ("acs_income", load_income_by_state),
    "Diabetes by source of admission": ("diabetes_readmission", load_diabetes_by_source),
    "Heart disease by hospital": ("heart_disease", load_heart_by_hospital),
    "Sachs by experiment": ("sachs", load_sachs),
}


def find_present(data_home: PathLike | None) -> list[str]:
    """The data sets whose files are in the folder, possibly of some states only."""
    home = find_data_home(data_home)
    return [name for name in LOADERS if library.find_present(SOURCES[name], home)]


def fetch(
    name: str, data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> list[Path]:
    """Download the raw files of a data set, as `icscm.datasets.fetch` does."""
    check_value("name", name, allow(*LOADERS))
    return library.fetch_files(SOURCES[name], find_data_home(data_home), states)


def _keep(table: pd.DataFrame, rows: pd.Series) -> pd.DataFrame:
    return table[rows].reset_index(drop=True)


def _find_shifted(task: Task, table: pd.DataFrame) -> NDArray[np.int64]:
    """Environment 1 for rows out of distribution, 0 for the others."""
    shifted: NDArray[np.int64] = table[task.environment].isin(task.shifted).to_numpy(np.int64)
    return shifted


def _prepare(table: pd.DataFrame, rare_below: float = 0.0) -> Prepared:
    return code_quantiles(prepare_one_hot(table, rare_below))


def _finish(
    task: Task,
    table: pd.DataFrame,
    label: pd.Series,
    prepare: Callable[[pd.DataFrame], Prepared] = _prepare,
    environments: NDArray[Any] | None = None,
) -> RealData:
    """The prepared data; environments, unless given, from the task's own column."""
    if environments is None:
        environments = _find_shifted(task, table)
    features = [name for name in task.features if name != task.environment]
    prepared = prepare(table[features])
    return RealData(
        X=prepared.to_frame(),
        y=label.to_numpy(dtype=np.int64),
        environments=environments,
        causal=prepared.find_columns_of(task.causal),
    )


def _finish_acs(task: Task, table: pd.DataFrame, label: pd.Series) -> RealData:
    environments = _find_shifted(task, table)
    table = census.label_coarse(table, task).assign(ACS_YEAR=2018)
    return _finish(task, table, label, environments=environments)
