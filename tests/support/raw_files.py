"""Raw data files made for tests, of the same shape as the publishers' files."""

import zipfile

import numpy as np
import pandas as pd
import pytest

from icscm.exceptions import IcscmError


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


def write_state(home, state, number, persons, households=None):
    path = home / "acs2018" / f"csv_p{state}.zip"
    write_zip(path, f"psam_p{number:02d}.csv", to_csv(persons))
    if households is not None:
        path = home / "acs2018" / f"csv_h{state}.zip"
        write_zip(path, f"psam_h{number:02d}.csv", to_csv(households))


def expect_one_clear_sentence(call, *parts):
    with pytest.raises(IcscmError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
