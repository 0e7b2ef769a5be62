"""Where the raw files of each data set come from, as `sources.toml` beside this file says."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

# Two-letter codes of the states, the District of Columbia and Puerto Rico, with the numbers that
# the Census Bureau gives them. The paper's data are without the District.
STATES = {
    "AL": 1, "AK": 2, "AZ": 4, "AR": 5, "CA": 6, "CO": 8, "CT": 9, "DE": 10, "DC": 11, "FL": 12,
    "GA": 13, "HI": 15, "ID": 16, "IL": 17, "IN": 18, "IA": 19, "KS": 20, "KY": 21, "LA": 22,
    "ME": 23, "MD": 24, "MA": 25, "MI": 26, "MN": 27, "MS": 28, "MO": 29, "MT": 30, "NE": 31,
    "NV": 32, "NH": 33, "NJ": 34, "NM": 35, "NY": 36, "NC": 37, "ND": 38, "OH": 39, "OK": 40,
    "OR": 41, "PA": 42, "RI": 44, "SC": 45, "SD": 46, "TN": 47, "TX": 48, "UT": 49, "VT": 50,
    "VA": 51, "WA": 53, "WV": 54, "WI": 55, "WY": 56, "PR": 72,
}  # fmt: skip
PAPER_STATES = tuple(state for state in STATES if state != "DC")


@dataclass(frozen=True)
class RawFile:
    """One file in the data folder, and where it can be had.

    `others` are names under which it may also lie there, unpacked or packed differently. `state`
    is that of a file of which each state has one.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    others: tuple[str, ...] = ()
    state: str | None = None


@dataclass(frozen=True)
class Source:
    """What is known of a data set without opening it."""

    name: str
    title: str
    n_samples: int
    citation: str
    page: str
    licence: str
    files: tuple[RawFile, ...]


_FACTS = tomllib.loads((files("icscm.datasets") / "sources.toml").read_text(encoding="utf-8"))
_CENSUS = _FACTS.pop("census")


def make_census_file(kind: str, state: str) -> RawFile:
    """The 2018 American Community Survey's file of a state's persons ("p") or households ("h")."""
    name = f"csv_{kind}{state.lower()}.zip"
    checksum = _CENSUS[kind].get(state)
    return RawFile(f"acs2018/{name}", f"{_CENSUS['url']}/{name}", checksum, state=state)


def make_scorecard_file(year: str) -> RawFile:
    """The College Scorecard's file of one academic year, such as 2018_19."""
    path = f"college_scorecard/MERGED{year}_PP.csv"
    return RawFile(path, others=(f"{path}.bz2", f"{path}.gz", f"{path}.zip"))


def _read_source(name: str, facts: dict[str, Any]) -> Source:
    listed, kinds = facts.pop("files", ()), facts.pop("kinds", "")
    found = [RawFile(**file | {"others": tuple(file.get("others", ()))}) for file in listed]
    found += [make_census_file(kind, state) for state in STATES for kind in kinds]
    return Source(name, files=tuple(found), **facts)


SOURCES = {name: _read_source(name, facts) for name, facts in _FACTS.items()}
