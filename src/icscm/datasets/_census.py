"""American Community Survey 2018: reading the states' files, and the groups of their codes.

Codes: US Census Bureau, PUMS Data Dictionary 2018,
https://www2.census.gov/programs-surveys/acs/tech_docs/pums/data_dict/PUMS_Data_Dictionary_2018.pdf
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from icscm.datasets._features import Task
from icscm.datasets._files import RawFiles, find_raw_file
from icscm.datasets._preparation import label_codes, relabel
from icscm.datasets._sources import PAPER_STATES, STATES, RawFile, Source, make_census_file
from icscm.exceptions import IcscmError

YEAR = 2018
_POSTAL = {number: state for state, number in STATES.items()}
_TERRITORIES = {60, 66, 69, 78}

# The first code of each group of occupations, by the letters that the dictionary gives it.
_OCCUPATIONS = {
    10: "MGR", 500: "BUS", 800: "FIN", 1000: "CMM", 1300: "ENG", 1600: "SCI", 2000: "CMS",
    2100: "LGL", 2200: "EDU", 2600: "ENT", 3000: "MED", 3600: "HLS", 3700: "PRT", 4000: "EAT",
    4200: "CLN", 4300: "PRS", 4700: "SAL", 5000: "OFF", 6000: "FFF", 6200: "CON", 6800: "EXT",
    7000: "RPR", 7700: "PRD", 9000: "TRN", 9800: "MIL", 9920: "UNEMPLOYED",
}  # fmt: skip

# The first code of each part of the world, and the codes that the benchmark files elsewhere:
# Russia, Ukraine and the USSR; Cyprus and Turkey; western and central Asia.
_REGIONS = {
    100: "EUROPE", 200: "ASIA", 300: "CARIBBEAN", 301: "CANADA", 303: "MEXICO",
    310: "CENTRALAMERICA", 321: "CARIBBEAN", 360: "SOUTHAMERICA", 400: "AFRICA", 500: "OCEANIA",
}  # fmt: skip
_ELSEWHERE = {
    **dict.fromkeys((163, 164, 165), "ASIA"),
    **dict.fromkeys((208, 243), "EUROPE"),
    **dict.fromkeys((200, 212, 213, 214, 216, 218, 219, 222, 224, 245, 246, 248), "MIDDLEEAST"),
}


def read_persons(
    files: RawFiles,
    states: Sequence[str] | None,
    columns: Sequence[str],
    household_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """These columns of the persons of all the states, with those of their households."""
    tables = []
    for state in _find_states(files, states):
        table = _read_state(files, make_census_file("p", state), columns)
        if household_columns:
            households = _read_state(files, make_census_file("h", state), household_columns)
            table = table.merge(households, on="SERIALNO", how="left", validate="many_to_one")
        tables.append(table.drop(columns="SERIALNO"))
    return pd.concat(tables, ignore_index=True)


def label_coarse(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Categories as the paper has them, places of birth and occupations in groups.

    Nothing is missing then: a question that was not asked is code 0, as is a number not given.
    """
    special = {"POBP": group_birthplace, "OCCP": group_occupation, "ST": _POSTAL.__getitem__}

    def label(codes: pd.Series) -> pd.Series:
        return label_codes(codes, special.get(codes.name, "{:02d}".format), "00")

    table = relabel(table, task.categories, label)
    return relabel(table, task.numbers, lambda numbers: numbers.fillna(0).astype(np.int64))


def group_birthplace(code: int) -> str:
    """The state, or the part of the world, of a place of birth.

    >>> [group_birthplace(code) for code in (54, 72, 66, 110, 243, 207, 303, 554)]
    ['WV', 'PR', 'USTERR', 'EUROPE', 'EUROPE', 'ASIA', 'MEXICO', 'OCEANIA']
    """
    if code in _TERRITORIES:
        return "USTERR"
    if code < min(_REGIONS):
        return _POSTAL[code]
    return _ELSEWHERE.get(code) or _find_group(_REGIONS, code)


def group_occupation(code: int) -> str:
    """The group of an occupation.

    >>> [group_occupation(code) for code in (10, 440, 500, 3255, 9830, 9920)]
    ['MGR', 'MGR', 'BUS', 'MED', 'MIL', 'UNEMPLOYED']
    """
    return _find_group(_OCCUPATIONS, code)


def _find_group(groups: dict[int, str], code: int) -> str:
    return list(groups.values())[bisect_right(list(groups), code) - 1]


def check_states(states: Sequence[str]) -> list[str]:
    """The states asked for, each once and in capitals; all must exist."""
    chosen = [str(state).upper() for state in ([states] if isinstance(states, str) else states)]
    unknown = [state for state in chosen if state not in STATES]
    if unknown or not chosen:
        raise IcscmError(
            "states must be two-letter codes of US states, such as ['ME', 'VT']; got "
            + (", ".join(map(repr, unknown)) if unknown else "none")
        )
    return list(dict.fromkeys(chosen))


def find_present_states(source: Source, home: Path) -> list[str]:
    """The states of the paper of which the data folder holds all files."""
    absent = {file.state for file in source.files if find_raw_file(file, home) is None}
    return [state for state in PAPER_STATES if state not in absent]


def _find_states(files: RawFiles, states: Sequence[str] | None) -> list[str]:
    """The states asked for; otherwise all of the paper's, or without download those present."""
    if states is not None:
        return check_states(states)
    present = [] if files.download else find_present_states(files.source, files.home)
    return present or list(PAPER_STATES)


def _read_state(files: RawFiles, file: RawFile, columns: Sequence[str]) -> pd.DataFrame:
    """Household numbers begin with the year of the survey; columns differ between years."""
    path = files.obtain(file)
    first = files.read_first_row(path)
    number = str(first["SERIALNO"].iloc[0]) if "SERIALNO" in first and len(first) else "none"
    if not number.startswith(str(YEAR)):
        raise IcscmError(
            f"{str(path)!r} is not of {YEAR}: its first household number is {number}; expected "
            f"the American Community Survey's 1-Year file of {YEAR}"
        )
    return files.read(["SERIALNO", *columns], path, dtype={"SERIALNO": str})
