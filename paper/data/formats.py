"""Formats of single publishers: College Scorecard and MEPS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.datasets._files import RawFile, Source, match_columns
from icscm.exceptions import IcscmError
from paper.data.tasks import MEPS, MEPS_UTILISATION, SHIFTED_CARNEGIE_CLASSES


def find_scorecard(source: Source, home: Path, year: str) -> Path:
    """The file of an academic year; the error names the other years that are there."""
    path = f"college_scorecard/MERGED{year}_PP.csv"
    file = RawFile(path, others=(f"{path}.bz2", f"{path}.gz", f"{path}.zip"))
    others = sorted(each.name for each in (home / "college_scorecard").glob("MERGED*"))
    if others and file.find(home) is None:
        raise IcscmError(
            f"{str(home / path)!r} was not found; of other years there are {', '.join(others)}, "
            f"which are selected by year={others[0][6:13]!r}, for example"
        )
    return source.locate(file, home)


def find_shifted_colleges(table: pd.DataFrame) -> NDArray[np.int64]:
    """Environment 1 for colleges of the Carnegie classes held out.

    Files do not name the edition of the codes: in that of 2010 no public college is in the
    classes 9, 10 and 14; later, many are.
    """
    codes = pd.to_numeric(table["CCBASIC"].astype(object), errors="coerce")
    control = table["CONTROL"][codes.isin([9, 10, 14])].astype(str)
    edition = 2018 if (control == "1").any() or control.empty else 2010
    shifted: NDArray[np.int64] = codes.isin(SHIFTED_CARNEGIE_CLASSES[edition]).to_numpy(np.int64)
    return shifted


def read_meps(source: Source, home: Path) -> pd.DataFrame:
    """Features and utilisation from the publisher's Stata file, as codes."""
    path = source.locate(source.files[0], home)
    with source.open(path, ".dta") as stream:
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
