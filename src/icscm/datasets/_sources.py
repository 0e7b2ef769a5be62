"""The published sources of the real data sets, as `sources.toml` beside this file lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from icscm.datasets._files import RawFile, Source
from icscm.exceptions import IcscmError

_FACTS = tomllib.loads((files("icscm.datasets") / "sources.toml").read_text(encoding="utf-8"))
_CENSUS = _FACTS.pop("census")
# Two-letter codes of the states, with their numbers in the Census Bureau's files.
STATES: dict[str, int] = _CENSUS["states"]
DEFAULT_STATES = tuple(state for state in STATES if state != "DC")  # as in the paper
# Protein -> its parents in the consensus network.
SACHS_PARENTS = {name: parents.split() for name, parents in _FACTS.pop("sachs_parents").items()}


def make_census_file(kind: str, state: str) -> RawFile:
    """The 2018 American Community Survey's file of a state's persons ("p") or households ("h")."""
    name = f"csv_{kind}{state.lower()}.zip"
    checksum = _CENSUS[kind].get(state)
    return RawFile(f"acs2018/{name}", f"{_CENSUS['url']}/{name}", checksum, state=state)


def make_source(name: str, facts: dict[str, Any]) -> Source:
    """A source from its entry in `sources.toml`."""
    listed, kinds = facts.pop("files", ()), facts.pop("kinds", "")
    columns = tuple(facts.pop("columns", "").split())
    found = [RawFile(**file | {"others": tuple(file.get("others", ()))}) for file in listed]
    found += [make_census_file(kind, state) for state in STATES for kind in kinds]
    return Source(name, files=tuple(found), columns=columns, **facts)


SOURCES = {name: make_source(name, facts) for name, facts in _FACTS.items()}


def fetch_files(source: Source, home: Path, states: Sequence[str] | None = None) -> list[Path]:
    """Download the files of a source, of the given states where each has its own."""
    wanted = {None, *(DEFAULT_STATES if states is None else check_states(states))}
    return [source.download(file, home) for file in source.files if file.state in wanted]


def check_states(states: Sequence[str]) -> list[str]:
    """Two-letter codes of states, each once and in capitals."""
    chosen = [str(state).upper() for state in ([states] if isinstance(states, str) else states)]
    unknown = [state for state in chosen if state not in STATES]
    if unknown or not chosen:
        raise IcscmError(
            "states must be two-letter codes of US states, such as ['ME', 'VT']; got "
            + (", ".join(map(repr, unknown)) if unknown else "none")
        )
    return list(dict.fromkeys(chosen))


def find_present_states(source: Source, home: Path) -> list[str]:
    """The states of which the data folder holds all files."""
    absent = {file.state for file in source.files if file.find(home) is None}
    return [state for state in DEFAULT_STATES if state not in absent]


def find_states(source: Source, home: Path, states: Sequence[str] | None = None) -> list[str]:
    """The given states; by default those in the data folder, or all if there are none."""
    if states is not None:
        return check_states(states)
    return find_present_states(source, home) or list(DEFAULT_STATES)


def is_present(source: Source, home: Path) -> bool:
    """Whether all files are in the data folder, or those of at least one state."""
    if source.files[0].state:
        return bool(find_present_states(source, home))
    return all(file.find(home) is not None for file in source.files)
