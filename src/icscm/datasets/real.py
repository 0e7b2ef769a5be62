"""Real tables with several environments each, from their publishers' own files.

The files lie in one folder; `list_datasets` lists them, `fetch` downloads them.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.datasets import _files
from icscm.datasets._files import SACHS_PARENTS, SOURCES, PathLike, Source, find_data_home
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value

# Smaller environments, by rows or by positive rows, are dropped.
MIN_ROWS: Final = 200
MIN_POSITIVES: Final = 20
# The first columns of the census are numbers, the others codes.
_N_INCOME_NUMBERS: Final = 3
# The outcome there is an income above this, in dollars.
_HIGH_INCOME: Final = 56_000
# Columns of codes in the table on heart disease, and those in which 0 is a missing measurement.
_HEART_CODES: Final = ("cp", "restecg", "slope", "thal")
_HEART_MEASUREMENTS: Final = ("trestbps", "chol")


class RealData(NamedTuple):
    """A real data set.

    Attributes
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        The columns.
    y : ndarray of shape (n_samples,)
        The outcome, 0 or 1.
    environments : ndarray of shape (n_samples,)
        The environment of each row.
    causal : list of str
        The columns of X that are known causes of the outcome; empty where none is known.

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


def load_income_by_state(data_home: PathLike | None = None) -> RealData:
    """Income above 56,000 dollars of working adults, by US state (census survey of 2018).

    Persons over 16 with an income over 100 dollars and working hours. Age, hours and schooling
    are numbers. 15 codes are categories (of occupations the first two digits), with a level for
    missing values. Environments: the states whose files are in the folder.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds the raw files, by default that of the environment variable
        ICSCM_DATA, or else ``pooch.os_cache("icscm")``. `icscm.datasets.list_datasets` names the
        files, and `icscm.datasets.fetch` downloads them where the publisher allows it.

    Returns
    -------
    RealData
        Columns, outcome and environments.

    Raises
    ------
    IcscmError
        If a file is absent, damaged or of another edition. This holds for all loaders.

    Examples
    --------
    >>> from icscm.datasets import load_income_by_state
    >>> X, y, states, _ = load_income_by_state("data")  # doctest: +SKIP
    """
    source = SOURCES["acs_income"]
    home = find_data_home(data_home)
    states = _files.find_states(source, home)
    columns = ["ST", "PINCP", *source.columns]
    persons = pd.concat([read_state(source, home, "p", state, columns) for state in states])

    # AGEP: age, PINCP: income, WKHP: working hours a week, OCCP: occupation, ST: state
    is_working = (persons["AGEP"] > 16) & (persons["PINCP"] > 100) & (persons["WKHP"] > 0)
    table = persons[is_working].reset_index(drop=True)
    table["OCCP"] //= 100  # the first two digits of four

    code_columns = source.columns[_N_INCOME_NUMBERS:]
    categories = {
        name: _make_category(table[name], "{:02.0f}", missing="missing") for name in code_columns
    }
    state_names = {number: name for name, number in _files.STATES.items()}
    return RealData(
        X=table.assign(**categories)[[*source.columns]],
        y=(table["PINCP"] > _HIGH_INCOME).to_numpy(dtype=np.int64),
        environments=table["ST"].map(state_names).to_numpy(),
        causal=[],
    )


def load_diabetes_by_source(data_home: PathLike | None = None) -> RealData:
    """Readmission of diabetes patients, by source of admission (UCI 296, 130 US hospitals).

    Rows whose race is unknown are dropped, as are sources with fewer than 200 rows or 20
    readmitted patients. The types of admission and discharge are categories.

    Parameters
    ----------
    data_home : path, optional
        As in `load_income_by_state`.

    Returns
    -------
    RealData
        Columns, outcome and environments.

    Examples
    --------
    >>> from icscm.datasets import load_diabetes_by_source
    >>> load_diabetes_by_source("data").X.shape  # doctest: +SKIP
    (99050, 46)
    """
    table = read_diabetes(data_home)
    y = (table["readmitted"] != "NO").to_numpy(dtype=np.int64)
    sources = table["admission_source_id"].to_numpy()
    X = table.drop(columns=["admission_source_id", "readmitted"])
    X = X.astype(dict.fromkeys(["admission_type_id", "discharge_disposition_id"], "category"))
    is_kept = _find_large(sources, y)
    return RealData(X[is_kept].reset_index(drop=True), y[is_kept], sources[is_kept], causal=[])


def _find_large(environments: NDArray[Any], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are in an environment that is large enough."""
    names, environment_of_row = np.unique(environments, return_inverse=True)
    n_rows = np.bincount(environment_of_row)
    n_positives = np.bincount(environment_of_row, weights=y)
    is_large = (n_rows >= MIN_ROWS) & (n_positives >= MIN_POSITIVES)
    return np.isin(environments, names[is_large])


def load_heart_by_hospital(data_home: PathLike | None = None) -> RealData:
    """Narrowed coronary arteries, by hospital (UCI 45, four hospitals).

    A blood pressure or cholesterol of 0 is missing. Many values are missing at some hospitals
    (mostly `ca`, `thal` and `slope` outside Cleveland), which identifies them.

    Parameters
    ----------
    data_home : path, optional
        As in `load_income_by_state`.

    Returns
    -------
    RealData
        Columns, outcome and environments.

    Examples
    --------
    >>> from icscm.datasets import load_heart_by_hospital
    >>> load_heart_by_hospital("data").X.shape  # doctest: +SKIP
    (920, 13)
    """
    source = SOURCES["heart_disease"]
    home = find_data_home(data_home)
    table_by_hospital = {}
    for file in source.files:
        path = source.locate(file, home)
        hospital = path.name.split(".")[1]  # processed.cleveland.data
        table_by_hospital[hospital] = _read_heart(source, path)
    hospitals = list(table_by_hospital)
    sizes = [len(table) for table in table_by_hospital.values()]

    table = pd.concat(table_by_hospital.values(), ignore_index=True)
    categories = {name: _make_category(table[name], "{:.0f}") for name in _HEART_CODES}
    measurements = table[[*_HEART_MEASUREMENTS]]
    known_measurements = measurements.mask(measurements == 0)
    return RealData(
        X=table[[*source.columns]].assign(**categories, **known_measurements),
        y=(table["num"] > 0).to_numpy(dtype=np.int64),
        environments=np.repeat(hospitals, sizes),
        causal=[],
    )


def _read_heart(source: Source, path: Path) -> pd.DataFrame:
    """Read the file of a hospital; copies may have a header, UCI's files have none."""
    columns = [*source.columns, "num"]
    with source.open(path) as stream:
        table = pd.read_csv(stream, header=None, na_values="?", skipinitialspace=True)
        n_columns = table.shape[1]
        if n_columns != len(columns):
            raise IcscmError(
                f"{str(path)!r} has {n_columns} columns; expected the {len(columns)} of UCI's "
                f"processed heart disease data: {', '.join(columns)}"
            )
        has_header = table[0].iloc[0] == "age"
        rows = table.iloc[1:] if has_header else table
        return rows.set_axis(columns, axis=1).astype(np.float64)


def load_sachs(data_home: PathLike | None = None, *, target: str = "Erk") -> RealData:
    """A signalling protein above its median, by experiment (Sachs et al. 2005, T cells).

    Environments: the experiments 1 and 3 to 9 (stimulated cells; Akt inhibitor, G0076,
    psitectorigenin, U0126, LY294002; PMA, beta2cAMP). Causal: the parents in the consensus
    network. Experiments on the target itself may violate invariance; there are none on Erk.

    Parameters
    ----------
    data_home : path, optional
        As in `load_income_by_state`.
    target : str, default="Erk"
        The protein whose level is the outcome.

    Returns
    -------
    RealData
        The other ten proteins, outcome, environments and the known causes.

    Examples
    --------
    >>> from icscm.datasets import load_sachs
    >>> load_sachs("data").X.shape  # doctest: +SKIP
    (6564, 10)
    """
    check_value("target", target, allow(*SACHS_PARENTS))
    source = SOURCES["sachs"]
    path = source.locate(source.files[0], find_data_home(data_home))
    table = source.read(path, [*SACHS_PARENTS, "experiment"])
    X = table.drop(columns=[target, "experiment"])
    return RealData(
        X=X,
        y=(table[target] > table[target].median()).to_numpy(dtype=np.int64),
        environments=table["experiment"].to_numpy(dtype=np.int64),
        causal=[name for name in X if name in SACHS_PARENTS[target]],
    )


LOADERS: dict[str, Callable[..., RealData]] = {
    "diabetes_readmission": load_diabetes_by_source,
    "acs_income": load_income_by_state,
    "heart_disease": load_heart_by_hospital,
    "sachs": load_sachs,
}


def read_diabetes(data_home: PathLike | None) -> pd.DataFrame:
    """Read the diabetes table of patients whose race is known; text columns are categories."""
    source = SOURCES["diabetes_readmission"]
    path = source.locate(source.files[0], find_data_home(data_home))
    columns = [*source.columns, "readmitted"]
    # "None" is a value: no test was made
    table = source.read(path, columns, "diabetic_data.csv", keep_default_na=False, na_values="?")
    texts = table.select_dtypes(exclude="number")
    categories = table.astype(dict.fromkeys(texts, "category"))
    return categories[categories["race"].notna()].reset_index(drop=True)


def read_state(
    source: Source, home: Path, kind: str, state: str, columns: Sequence[str]
) -> pd.DataFrame:
    """Read columns of a state's census file of 2018.

    The year is checked first, by a household number, since files of all years have the same name.
    """
    path = source.locate(_files.make_census_file(kind, state), home)
    first_row = source.read(path, ["SERIALNO"], nrows=1)
    household_number = str(first_row["SERIALNO"].iloc[0]) if len(first_row) else "none"
    if not household_number.startswith("2018"):
        raise IcscmError(
            f"{str(path)!r} is not of 2018: its first household number is {household_number}; "
            "expected the American Community Survey's 1-Year file of 2018"
        )
    return source.read(path, columns)


def _make_category(codes: pd.Series, pattern: str, missing: str | None = None) -> pd.Series:
    """Make a category of a column of numeric codes; `missing` is the level of missing ones.

    The levels are the codes as texts: with the pattern "{:02.0f}", 7.0 becomes "07".
    """
    level_of_code = {code: pattern.format(code) for code in codes.dropna().unique()}
    levels = codes.map(level_of_code)
    if missing is not None:
        levels = levels.fillna(missing)
    return levels.astype("category")


@dataclass(frozen=True)
class DatasetInfo:
    """A data set's description.

    Attributes
    ----------
    name, title, source, licence : str
        Name, topic, publisher with address, and licence.
    n_samples : int
        Rows of the complete data.
    files : tuple of str
        The files expected in the data folder (`??` is a state).
    present : bool
        Whether `loader` finds the files it needs, possibly for some states only.
    loader : callable
        The function that loads it.
    advice : str
        How to get it, and the file name to save it under.

    Examples
    --------
    >>> from icscm.datasets import list_datasets
    >>> sachs = list_datasets()[-1]
    >>> sachs.name, sachs.n_samples, sachs.loader.__name__
    ('sachs', 6564, 'load_sachs')
    """

    name: str
    title: str
    n_samples: int
    source: str
    licence: str
    files: tuple[str, ...]
    present: bool
    loader: Callable[..., RealData]
    advice: str


def list_datasets(data_home: PathLike | None = None) -> list[DatasetInfo]:
    """All real data sets, present or not.

    Parameters
    ----------
    data_home : path, optional
        As in `load_income_by_state`.

    Returns
    -------
    list of DatasetInfo
        One for each data set.

    Examples
    --------
    >>> [info.name for info in list_datasets("no such folder") if info.present]
    []
    """
    home = None
    with suppress(IcscmError):  # without a folder all are listed as not present
        home = find_data_home(data_home)
    return [_describe(source, home) for source in SOURCES.values()]


def _describe(source: Source, home: Path | None) -> DatasetInfo:
    """Describe a data set, and say how to get it; a home of None has no files."""
    paths = tuple(dict.fromkeys(_show_path(file) for file in source.files))
    targets = " and ".join(f"FOLDER/{path}" for path in paths)
    can_be_fetched = all(file.url for file in source.files)
    if can_be_fetched:
        states = ", states=['AL', 'CA']" if source.files[0].state else ""
        advice = f"icscm.datasets.fetch('{source.name}', 'FOLDER'{states}) saves it as {targets}"
    else:
        advice = f"download it from {source.page} and save it as {targets}"
    return DatasetInfo(
        name=source.name,
        title=source.title,
        n_samples=source.n_samples,
        source=f"{source.citation}, {source.page}",
        licence=source.licence,
        files=paths,
        present=home is not None and bool(_files.find_present(source, home)),
        loader=LOADERS[source.name],
        advice=advice,
    )


def fetch(
    name: str, data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> list[Path]:
    """Download the raw files of a data set into the data folder.

    Files that are already there are kept if their checksum is right or unknown. Needs the package
    pooch and a network connection.

    Parameters
    ----------
    name : str
        One of the names in `list_datasets`.
    data_home : path, optional
        The folder; by default the same as for the loaders: that of the environment variable
        ICSCM_DATA, or else ``pooch.os_cache("icscm")``.
    states : sequence of str, optional
        Of the American Community Survey, only these states; by default the 50 states and Puerto
        Rico.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    IcscmError
        If a download fails, or if the publisher offers no address for programs; the message then
        names the page to get the files from.

    Examples
    --------
    >>> from icscm.datasets import fetch
    >>> fetch("heart_disease", "data")  # doctest: +SKIP
    """
    check_value("name", name, allow(*SOURCES))
    return _files.fetch_files(SOURCES[name], find_data_home(data_home), states)


def _show_path(file: _files.RawFile) -> str:
    """Return the path of a file; where each state has one, `??` stands for the state."""
    if file.state is None:
        return file.path
    return file.path.replace(f"{file.state.lower()}.zip", "??.zip")
