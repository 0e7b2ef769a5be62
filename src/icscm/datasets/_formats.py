"""What is peculiar to the files of one publisher or another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.datasets._features import HEART_DISEASE, MEPS, MEPS_UTILISATION, SHIFTED_CARNEGIE_CLASSES
from icscm.datasets._files import RawFiles, match_columns
from icscm.datasets._sources import RawFile, make_scorecard_file
from icscm.exceptions import IcscmError


def find_scorecard(files: RawFiles, year: str) -> Path:
    """The file of the year; where only other years are there, the error names them."""
    file = make_scorecard_file(year)
    try:
        return files.obtain(file)
    except IcscmError as error:
        others = sorted(path.name for path in (files.home / "college_scorecard").glob("MERGED*"))
        if not others:
            raise
        raise IcscmError(
            f"{str(files.home / file.path)!r} is not there; of other years there are "
            f"{', '.join(others)}, which year={others[0][6:13]!r} and the like select"
        ) from error


def find_shifted_colleges(table: pd.DataFrame) -> NDArray[np.int64]:
    """Environment 1 for colleges of the classes held out, in whichever edition's codes.

    Files do not say which: in that of 2010, no public college is in the classes 9, 10 and 14;
    later, many are.
    """
    codes = pd.to_numeric(table["CCBASIC"].astype(object), errors="coerce")
    control = table["CONTROL"][codes.isin([9, 10, 14])].astype(str)
    edition = 2018 if (control == "1").any() or control.empty else 2010
    shifted: NDArray[np.int64] = codes.isin(SHIFTED_CARNEGIE_CLASSES[edition]).to_numpy(np.int64)
    return shifted


def read_meps(files: RawFiles) -> pd.DataFrame:
    """Features and utilisation from the publisher's Stata file, as codes."""
    path = files.obtain(files.source.files[0])
    with files.open(path, ".dta") as stream:
        table = pd.read_stata(stream, convert_categoricals=False)
    # names of yearly totals end in the year
    years = {str(name)[-2:] for name in table if str(name).upper()[:-2] == "TOTEXP"}
    if "19" not in years:
        found = f"20{min(years)}" if years else "no year (it has no yearly total TOTEXP19)"
        raise IcscmError(
            f"{str(path)!r} is of {found}; expected the Full Year Consolidated Data File of "
            "2019 (HC-216)"
        )
    spelling = match_columns(table, [*MEPS.features, *MEPS_UTILISATION], path)
    return table[[*spelling.values()]].set_axis([*spelling], axis=1)


def label_numbers(numbers: pd.Series) -> pd.Series:
    """A category from numbers, whole ones without decimals.

    >>> label_numbers(pd.Series([7.25, -1.0])).tolist()
    ['7.25', '-1']
    """
    category = numbers.astype("category")
    return category.cat.rename_categories([f"{value:.12g}" for value in category.cat.categories])


def read_hospital(files: RawFiles, file: RawFile, hospital: str) -> pd.DataFrame:
    """One hospital's rows; UCI's files have no line of names, copies may have one."""
    names = [name for name in HEART_DISEASE.features if name != "hospital"] + ["num"]
    path = files.obtain(file)
    with files.open(path, ".data") as stream:
        table = pd.read_csv(stream, header=None, na_values="?", skipinitialspace=True, dtype=str)
        if table.shape[1] != len(names):
            raise IcscmError(
                f"{str(path)!r} has {table.shape[1]} columns; expected the {len(names)} of UCI's "
                f"processed heart disease data: {', '.join(names)}"
            )
        table = table.set_axis(names, axis=1)
        if table["age"].iloc[0] == "age":
            table = table.iloc[1:]
        table = table.astype(np.float64)
    impossible = (table[["trestbps", "chol"]] == 0).reindex(columns=names, fill_value=False)
    return table.mask(impossible).assign(hospital=hospital)
