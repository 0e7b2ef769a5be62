"""American Community Survey 2018: reading persons with households, and groups of codes.

Codes: US Census Bureau, PUMS Data Dictionary 2018,
https://www2.census.gov/programs-surveys/acs/tech_docs/pums/data_dict/PUMS_Data_Dictionary_2018.pdf
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from icscm.datasets._files import STATES, Source, find_states
from icscm.datasets.real import read_state
from paper.data.preparation import label_codes, relabel
from paper.data.tasks import Task

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
    source: Source,
    home: Path,
    states: Sequence[str] | None,
    columns: Sequence[str],
    household_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """Columns of the persons of all the states, and of their households."""
    tables = []
    for state in find_states(source, home, states):
        table = read_state(source, home, "p", state, ["SERIALNO", *columns])
        if household_columns:
            own = ["SERIALNO", *household_columns]
            households = read_state(source, home, "h", state, own)
            table = table.merge(households, on="SERIALNO", how="left", validate="many_to_one")
        tables.append(table.drop(columns="SERIALNO"))
    return pd.concat(tables, ignore_index=True)


def label_coarse(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Categories as the paper has them, places of birth and occupations in groups.

    Missing values become code 00, missing numbers 0.
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
