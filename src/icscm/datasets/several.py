"""Real tables with several environments each, as they are: for questions about one left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from icscm.datasets import _census
from icscm.datasets._files import PathLike, RawFiles, find_data_home
from icscm.datasets._preparation import MISSING, label_codes, relabel
from icscm.datasets._sources import SOURCES, STATES
from icscm.datasets.loaders import (
    RealData,
    load_diabetes_readmission,
    load_heart_disease,
    load_sachs,
)

# Environments with fewer rows, or fewer positive ones, say too little of themselves.
MIN_ROWS, MIN_POSITIVES = 200, 20

_NUMBERS = ["AGEP", "WKHP", "SCHL"]
_CODES = [
    "COW", "MAR", "OCCP", "POBP", "RELP", "SEX", "RAC1P", "WKW", "HINS1", "HINS2", "HINS4", "CIT",
    "DIS", "ENG", "JWTR",
]  # fmt: skip


def load_income_by_state(data_home: PathLike | None = None) -> RealData:
    """Whether a working adult earns over 56,000 dollars, by state (as `load_acs_income`, 2018).

    Age, hours and schooling as numbers, 15 codes as categories (of occupations the first two
    digits), a missing one being a level. Environments: the states whose files are there.

    Parameters
    ----------
    data_home : path, optional
        As in `load_diabetes_readmission`.

    Returns
    -------
    RealData
        Features, labels and environments; no column is called a cause.

    Examples
    --------
    >>> from icscm.datasets import load_income_by_state
    >>> X, y, states, _ = load_income_by_state("data")  # doctest: +SKIP
    """
    files = RawFiles(SOURCES["acs_income"], find_data_home(data_home), False)
    table = _census.read_persons(files, None, ["ST", "PINCP", *_NUMBERS, *_CODES])
    kept = (table["AGEP"] > 16) & (table["PINCP"] > 100) & (table["WKHP"] > 0)
    table = table[kept].reset_index(drop=True)
    table["OCCP"] //= 100  # the first two digits of four
    states = table["ST"].map({code: name for name, code in STATES.items()}).to_numpy()
    y = (table["PINCP"] > 56_000).to_numpy(dtype=np.int64)
    codes = relabel(table, _CODES, lambda each: label_codes(each, "{:02d}".format, MISSING))
    return RealData(codes[[*_NUMBERS, *_CODES]], y, states, [])


def load_diabetes_by_source(data_home: PathLike | None = None) -> RealData:
    """Whether a diabetes patient was readmitted, by the source of the admission.

    All columns as they are, the kinds of admission and discharge as categories. Sources with fewer
    than 200 rows or 20 readmitted patients are not used.

    Parameters
    ----------
    data_home : path, optional
        As in `load_diabetes_readmission`.

    Returns
    -------
    RealData
        Features, labels and environments; no column is called a cause.

    Examples
    --------
    >>> from icscm.datasets import load_diabetes_by_source
    >>> load_diabetes_by_source("data").X.shape  # doctest: +SKIP
    (99050, 46)
    """
    data = load_diabetes_readmission(data_home, prepared=False)
    sources = data.X["admission_source_id"].to_numpy()
    X = data.X.drop(columns="admission_source_id")
    X = X.astype(dict.fromkeys(["admission_type_id", "discharge_disposition_id"], "category"))
    names, numbers = np.unique(sources, return_inverse=True)
    n, n_positive = np.bincount(numbers), np.bincount(numbers, weights=data.y)
    kept = np.isin(sources, names[(n >= MIN_ROWS) & (n_positive >= MIN_POSITIVES)])
    return RealData(X[kept].reset_index(drop=True), data.y[kept], sources[kept], [])


def load_heart_by_hospital(data_home: PathLike | None = None) -> RealData:
    """Whether a coronary artery is narrowed, by hospital: `load_heart_disease` as measured.

    Parameters
    ----------
    data_home : path, optional
        As in `load_diabetes_readmission`.

    Returns
    -------
    RealData
        Features, labels and environments; no column is called a cause.

    Examples
    --------
    >>> from icscm.datasets import load_heart_by_hospital
    >>> load_heart_by_hospital("data").X.shape  # doctest: +SKIP
    (920, 13)
    """
    data = load_heart_disease(data_home, prepared=False)
    return RealData(data.X.drop(columns="hospital"), data.y, data.environments, [])


# By the title of each: the name of its source in the catalogue, and the loader.
TABLES: dict[str, tuple[str, Callable[[PathLike | None], RealData]]] = {
    "ACS income by state": ("acs_income", load_income_by_state),
    "Diabetes by source of admission": ("diabetes_readmission", load_diabetes_by_source),
    "Heart disease by hospital": ("heart_disease", load_heart_by_hospital),
    "Sachs by experiment": ("sachs", load_sachs),
}
