"""Real data from their publishers' own files: the six of the paper, and two that are small.

raw files -> raw table -> rows of the task, label, environments -> prepared columns

The files lie in a folder that the caller names; `catalogue` says which and where to get them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.datasets import _census, _features, _formats, _preparation
from icscm.datasets._features import MEPS, SACHS_PARENTS, Task
from icscm.datasets._files import PathLike, RawFiles, find_data_home
from icscm.datasets._preparation import Prepared, code_quantiles, prepare_one_hot, relabel
from icscm.datasets._sources import SOURCES
from icscm.parameters import check_value, one_of


class RealData(NamedTuple):
    """A real data set.

    Attributes
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The label, 0 or 1.
    environments : ndarray of shape (n_samples,)
        The environment of each row.
    causal : list of str
        The columns of X that are, or come from, features known to be causes of the label.

    Examples
    --------
    >>> from icscm.datasets import load_sachs
    >>> X, y, environments, causal = load_sachs("data")  # doctest: +SKIP
    >>> X.shape, causal  # doctest: +SKIP
    ((6564, 10), ['Mek', 'PKA'])
    """

    X: pd.DataFrame
    y: NDArray[np.int64]
    environments: NDArray[Any]
    causal: list[str]


def load_diabetes_readmission(
    data_home: PathLike | None = None, *, download: bool = False, prepared: bool = True
) -> RealData:
    """Whether a diabetes patient was readmitted (UCI 296, 130 US hospitals, 1999-2008).

    Rows whose race is unknown are left out. Environments: 1 for patients admitted through the
    emergency room, 0 for all others.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds the raw files, by default that of the environment variable
        ICSCM_DATA. `icscm.datasets.list_datasets` names the files.
    download : bool, default=False
        Fetch files that are not there; nothing is ever downloaded without this.
    prepared : bool, default=True
        As in the paper: a column `<feature>_<value>` for each value of a category (those that
        fewer than 1 % of the rows have share `<feature>_rare`), columns with 50 or more distinct
        values as 50 quantile codes, without the column that the environments come from. False:
        the raw table, with that column, categories as pandas categories, and missing values as
        NaN; for other preparations and other environments.

    Returns
    -------
    RealData
        Features, label, environments, and the causal columns.

    Raises
    ------
    IcscmError
        Where a file is absent, damaged or of another edition; so for all loaders.

    Examples
    --------
    >>> from icscm.datasets import load_diabetes_readmission
    >>> load_diabetes_readmission("data").X.shape  # doctest: +SKIP
    (99493, 187)
    """
    task = _features.DIABETES
    table = _open("diabetes_readmission", data_home, download).read(
        [*task.features, "readmitted"],
        suffix="diabetic_data.csv",
        dtype=dict.fromkeys((*task.categories, "readmitted"), "category"),
        keep_default_na=False,  # "None" says that no test was made, which is not missing
        na_values="?",
    )
    table = _keep(table, table["race"].notna())
    prepare = _prepare_with_rare_values_pooled if prepared else None
    return _finish(task, table, table["readmitted"] != "NO", prepare)


def load_acs_income(
    data_home: PathLike | None = None,
    *,
    download: bool = False,
    prepared: bool = True,
    states: Sequence[str] | None = None,
) -> RealData:
    """Whether a working adult earns over 56,000 dollars (American Community Survey 2018).

    Persons over 16 with an income over 100 dollars, working hours and a weight. Environments: 1
    for New England (division 1), 0 for all others.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        Likewise, except that no value is rare. Prepared places of birth are states and parts of
        the world, occupations are the Census Bureau's groups, and what was not asked is code 00.
    states : sequence of str, optional
        Two-letter codes; by default all states whose files are in the folder (with `download`,
        all 50 and Puerto Rico, as in the paper).

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_acs_income
    >>> X, y, environments, causal = load_acs_income("data", states=["MA"])  # doctest: +SKIP
    """
    task, files = _features.ACS_INCOME, _open("acs_income", data_home, download)
    columns = [name for name in task.features if name != "ACS_YEAR"]
    table = _census.read_persons(files, states, [*columns, "PINCP", "PWGTP"])
    adult = (table["AGEP"] > 16) & (table["PINCP"] > 100)
    table = _keep(table, adult & (table["WKHP"] > 0) & (table["PWGTP"] >= 1))
    return _finish_acs(task, table, table["PINCP"] > 56_000, prepared)


def load_acs_foodstamps(
    data_home: PathLike | None = None,
    *,
    download: bool = False,
    prepared: bool = True,
    states: Sequence[str] | None = None,
) -> RealData:
    """Whether a household receives food stamps (American Community Survey 2018).

    Persons of 18 to 61 with an income of 30,000 dollars or less, in households whose children
    are recorded (or that there are none). Environments: 1 for the East South Central states
    (division 6), 0 for all others. Needs the files of households beside those of persons.

    Parameters
    ----------
    data_home, download, prepared, states : path, bool, bool, sequence of str
        As in `load_acs_income`.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_acs_foodstamps
    >>> X, y, environments, causal = load_acs_foodstamps("data", states=["AL"])  # doctest: +SKIP
    """
    task, files = _features.ACS_FOODSTAMPS, _open("acs_foodstamps", data_home, download)
    of_households = ["FS", "HUPAC", "WIF"]
    columns = [name for name in task.features if name not in ("ACS_YEAR", *of_households)]
    table = _census.read_persons(files, states, [*columns, "PINCP"], of_households)
    of_age = (table["AGEP"] >= 18) & (table["AGEP"] < 62)
    table = _keep(table, of_age & (table["PINCP"] <= 30_000) & (table["HUPAC"] >= 1))
    return _finish_acs(task, table, table["FS"] == 1, prepared)


def load_college_scorecard(
    data_home: PathLike | None = None,
    *,
    download: bool = False,
    prepared: bool = True,
    year: str = "2018_19",
) -> RealData:
    """Whether more than half of a US college's students complete (College Scorecard).

    A completion rate (C150_4) that is not given counts as 0, as in the paper. Environments: 1
    for colleges of the Carnegie classes that the paper's benchmark holds out, 0 for all others.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        As in the paper: categories as the ranks of their values, numbers in 100 quantile bins,
        missing values -1, and of columns with 50 or more distinct values 50 quantile codes.
        False: the raw table, as in `load_diabetes_readmission`.
    year : str, default="2018_19"
        The academic year of the file. The paper has all from 1996 to 2013 in one table.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_college_scorecard
    >>> load_college_scorecard("data").X.shape  # doctest: +SKIP
    (6806, 118)
    """
    task, files = _features.COLLEGE_SCORECARD, _open("college_scorecard", data_home, download)
    table = files.read(
        [*task.features, "C150_4"],
        _formats.find_scorecard(files, year),
        dtype=dict.fromkeys(task.categories, "category"),
        na_values=["NULL", "PrivacySuppressed", "PS"],
        low_memory=False,
    )
    environments = _formats.find_shifted_colleges(table)
    prepare = _prepare_ordinal if prepared else None
    return _finish(task, table, table["C150_4"] > 0.5, prepare, environments)


def load_assistments(
    data_home: PathLike | None = None, *, download: bool = False, prepared: bool = True
) -> RealData:
    """Whether a pupil solves a problem at the first attempt (ASSISTments 2012-13, with affect).

    Only answers that are right or wrong, none in between. Environments: 1 for the ten schools
    that the paper's benchmark holds out, 0 for all others.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        Likewise, except that no value is rare, and that rows in which a number is missing
        (mostly the skill) are left out, as in the paper.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_assistments
    >>> X, y, environments, causal = load_assistments("data")  # doctest: +SKIP
    """
    task, files = _features.ASSISTMENTS, _open("assistments", data_home, download)
    kinds = dict.fromkeys(task.categories, "category")
    table = files.read([*task.features, "correct"], dtype=kinds)
    table = _keep(table, table["correct"].isin([0, 1]))
    if prepared:
        table = _keep(table, table[list(task.numbers)].notna().all(axis=1))
    return _finish(task, table, table["correct"] == 1, _prepare if prepared else None)


def load_meps(
    data_home: PathLike | None = None, *, download: bool = False, prepared: bool = True
) -> RealData:
    """Whether a person uses health care more than three times a year (MEPS 2019, HC-216).

    Use: visits, hospital nights and days of home care together. Uninsured persons are left out.
    Environments: 1 for persons with any private insurance, 0 for those with public only.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        Likewise, except that no value is rare. The publisher's negative codes (-1 inapplicable,
        -7 refused, -8 not known) are values like others. In the raw table, negative numbers are
        missing instead.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_meps
    >>> X, y, environments, causal = load_meps("data")  # doctest: +SKIP
    """
    table = _formats.read_meps(_open("meps", data_home, download))
    table = _keep(table, table[MEPS.environment].isin([1, 2]))
    used = table[list(_features.MEPS_UTILISATION)].sum(axis=1) > 3
    environments = _find_shifted(MEPS, table)
    table = relabel(table, MEPS.categories, _formats.label_numbers)
    if not prepared:
        table = relabel(table, MEPS.numbers, lambda numbers: numbers.where(numbers >= 0))
    return _finish(MEPS, table, used, _prepare if prepared else None, environments)


def load_heart_disease(
    data_home: PathLike | None = None, *, download: bool = False, prepared: bool = True
) -> RealData:
    """Whether a coronary artery is narrowed (UCI 45: four hospitals, each an environment).

    Not in the paper. Environments: the hospitals. A blood pressure or cholesterol of 0 is taken
    as missing. What a hospital did not measure (mostly `ca`, `thal` and `slope` outside
    Cleveland) tells it apart from the others; the columns `<feature>_missing` show that.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        A column for each value of a category; for missing numbers the median of all hospitals,
        with a column `<feature>_missing`; numbers in their own units, so that rules can be read.
        False: the raw table, with the hospital as a column.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_heart_disease
    >>> load_heart_disease("data").X.shape  # doctest: +SKIP
    (920, 32)
    """
    files = _open("heart_disease", data_home, download)
    hospitals = zip(files.source.files, _features.HEART_DISEASE_HOSPITALS, strict=True)
    tables = [_formats.read_hospital(files, file, hospital) for file, hospital in hospitals]
    table = pd.concat(tables, ignore_index=True)
    table = relabel(table, ["cp", "restecg", "slope", "thal"], _preparation.label_codes)
    environments = table["hospital"].to_numpy(dtype=str)
    table["hospital"] = table["hospital"].astype("category")
    prepare = _prepare_with_medians if prepared else None
    return _finish(_features.HEART_DISEASE, table, table["num"] > 0, prepare, environments)


def load_sachs(
    data_home: PathLike | None = None,
    *,
    download: bool = False,
    prepared: bool = True,
    target: str = "Erk",
) -> RealData:
    """Whether a signalling protein is above its median (Sachs et al. 2005, T cells).

    Not in the paper. Environments: the experiments 1 and 3 to 9 (stimulated cells; Akt
    inhibitor, G0076, psitectorigenin, U0126, LY294002; PMA, beta2cAMP). Causal: the parents in
    the accepted network. Experiments on the target itself are not expected to leave it
    invariant; on Erk there are none.

    Parameters
    ----------
    data_home, download : path and bool, optional
        As in `load_diabetes_readmission`.
    prepared : bool, default=True
        The other ten proteins, as in the file. False: with the number of the experiment.
    target : str, default="Erk"
        The protein whose level is the label.

    Returns
    -------
    RealData
        Features, labels, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_sachs
    >>> load_sachs("data").X.shape  # doctest: +SKIP
    (6564, 10)
    """
    check_value("target", target, one_of(*SACHS_PARENTS))
    table = _open("sachs", data_home, download).read([*SACHS_PARENTS, "experiment"])
    features = (*(name for name in SACHS_PARENTS if name != target), "experiment")
    task = Task(features, frozenset(), "experiment", SACHS_PARENTS[target])
    label = table[target] > table[target].median()
    environments = table["experiment"].to_numpy(dtype=np.int64)
    return _finish(task, table, label, prepare_one_hot if prepared else None, environments)


def _open(name: str, data_home: PathLike | None, download: bool) -> RawFiles:
    return RawFiles(SOURCES[name], find_data_home(data_home), download)


def _keep(table: pd.DataFrame, rows: pd.Series) -> pd.DataFrame:
    return table[rows].reset_index(drop=True)


def _find_shifted(task: Task, table: pd.DataFrame) -> NDArray[np.int64]:
    """Environment 1 for rows out of distribution, 0 for the others."""
    shifted: NDArray[np.int64] = table[task.environment].isin(task.shifted).to_numpy(np.int64)
    return shifted


def _finish(
    task: Task,
    table: pd.DataFrame,
    label: pd.Series,
    prepare: Callable[[pd.DataFrame], Prepared] | None,
    environments: NDArray[Any] | None = None,
) -> RealData:
    """The data as prepared, or raw; environments, unless given, from the task's own column."""
    y = label.to_numpy(dtype=np.int64)
    if environments is None:
        environments = _find_shifted(task, table)
    if prepare is None:
        return RealData(table[list(task.features)], y, environments, list(task.causal))
    ready = prepare(table[[name for name in task.features if name != task.environment]])
    return RealData(ready.to_frame(), y, environments, ready.find_columns_of(task.causal))


def _finish_acs(task: Task, table: pd.DataFrame, label: pd.Series, prepared: bool) -> RealData:
    environments = _find_shifted(task, table)
    if prepared:
        table = _census.label_coarse(table, task)
    else:  # the codes as the file has them
        table = relabel(table, task.categories, _preparation.label_codes)
    table = table.assign(ACS_YEAR=_census.YEAR)
    return _finish(task, table, label, _prepare if prepared else None, environments)


def _prepare(table: pd.DataFrame) -> Prepared:
    return code_quantiles(prepare_one_hot(table))


def _prepare_with_rare_values_pooled(table: pd.DataFrame) -> Prepared:
    return code_quantiles(prepare_one_hot(table, rare_below=0.01))


def _prepare_ordinal(table: pd.DataFrame) -> Prepared:
    return code_quantiles(_preparation.prepare_ordinal(table, n_bins=100))


def _prepare_with_medians(table: pd.DataFrame) -> Prepared:
    return prepare_one_hot(_preparation.fill_missing_numbers(table))
