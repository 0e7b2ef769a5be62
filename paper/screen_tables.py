"""The tables of the studies of the screen, from prepared files or from the publishers' own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm.datasets import RealData, make_hospitals
from icscm.exceptions import IcscmError
from paper.base import Options
from paper.data import TABLES, find_present

# Short names, which prepared files have, and titles.
TITLES = {
    "heart": "Heart disease by hospital",
    "sachs": "Sachs by experiment",
    "hospitals": "Simulated hospitals",
    "acs": "ACS income by state",
    "diabetes": "Diabetes by source of admission",
}
# Columns of a prepared file with the label, 0 or 1, and the environment.
LABEL, ENVIRONMENT = "_y", "_e"


def find_tables(options: Options) -> list[str]:
    """Short names of the tables at hand."""
    if options.tables is not None:
        found = [name for name in TITLES if _find_file(options.tables, name).exists()]
        if not found:
            raise IcscmError(f"{options.tables} holds none of {', '.join(TITLES)} (.parquet)")
        return found
    present = find_present(options.data_home)
    return [name for name in TITLES if name == "hospitals" or TABLES[TITLES[name]][0] in present]


def list_cells(options: Options, tables: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """A cell for each table (of those at hand, or some of them) and environment to be left out."""
    present = find_tables(options)
    return [
        {"seed": options.seed, "rows": options.max_rows, "table": table, "out": out}
        for table in present
        if tables is None or table in tables
        for out in list_environments(load(table, options))[: options.max_out]
    ]


def list_environments(data: RealData) -> list[str]:
    """Their labels, in order."""
    names: list[str] = np.unique(data.environments).tolist()
    return names


def load(name: str, options: Options) -> RealData:
    """A table, of which at most `max_rows` rows are drawn; environments are text."""
    return _load(name, options.tables, options.data_home, options.max_rows)


@lru_cache(maxsize=len(TITLES))
def _load(name: str, tables: Path | None, data_home: Path | None, max_rows: int) -> RealData:
    data = _read(name, tables, data_home)
    if len(data.y) <= max_rows:
        return data
    rows = np.sort(np.random.default_rng(0).choice(len(data.y), max_rows, replace=False))
    X = data.X.iloc[rows].reset_index(drop=True)
    return RealData(X, data.y[rows], data.environments[rows], data.causal)


def _read(name: str, tables: Path | None, data_home: Path | None) -> RealData:
    if tables is not None:
        return read_prepared(_find_file(tables, name))
    if name != "hospitals":
        data = TABLES[TITLES[name]][1](data_home)
        return data._replace(environments=_to_text(data.environments))
    hospitals = make_hospitals(random_state=0)
    X = hospitals.X.drop(columns=hospitals.shortcuts)
    X = X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category"))
    return RealData(X, hospitals.y, _to_text(hospitals.environments), list(hospitals.parents))


def read_prepared(path: Path) -> RealData:
    """A Parquet file of features, `_y` and `_e`."""
    import pandas

    X = pandas.read_parquet(path)
    y = X.pop(LABEL).to_numpy(dtype=np.int64)
    environments = _to_text(X.pop(ENVIRONMENT))
    return RealData(X, y, environments, [])


def _find_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _to_text(environments: Any) -> NDArray[np.str_]:
    return np.asarray(environments, dtype=object).astype(str)
