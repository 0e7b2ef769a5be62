"""The raw files of real data sets, as `sources.toml` lists them: finding, downloading, reading."""

import importlib
import os
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import pandas as pd

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list

DATA_VARIABLE = "ICSCM_DATA"
PathLike = str | os.PathLike[str]

# Errors of readers for a file that is truncated, in another format, or has text for numbers.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError)


def find_data_home(data_home: PathLike | None) -> Path:
    """The folder of the raw files: given, that of the environment variable, or the user's cache."""
    chosen = os.environ.get(DATA_VARIABLE) if data_home is None else data_home
    return Path(chosen).expanduser() if chosen else Path(_import_pooch().os_cache("icscm"))


def _import_pooch() -> Any:
    try:
        return importlib.import_module("pooch")
    except ImportError:
        how = f"or pass data_home or set the environment variable {DATA_VARIABLE}"
        raise IcscmError(f"this needs pooch: pip install 'icscm[data]', {how}") from None


@dataclass(frozen=True)
class RawFile:
    """A file in the data folder, and where it is published.

    `others` are alternative names for it there, such as the unpacked file. `state` is set where
    each US state has a file of its own.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    others: Sequence[str] = ()
    state: str | None = None

    def find(self, home: Path) -> Path | None:
        """The file in the data folder under any of its names, or None."""
        paths = (home / name for name in (self.path, *self.others))
        return next((path for path in paths if path.is_file()), None)


@dataclass(frozen=True)
class Source:
    """A published data set: its description, its raw files and the columns to read of them."""

    name: str
    title: str
    n_samples: int
    citation: str
    page: str
    licence: str
    files: Sequence[RawFile]
    columns: Sequence[str] = ()

    def locate(self, file: RawFile, home: Path) -> Path:
        """The path of a required file."""
        path = file.find(home)
        if path is None:
            why = f"{str(home / file.path)!r} was not found; it is a file of {self.name!r}"
            place = f"{file.url} or by fetch({self.name!r})" if file.url else self.page
            raise IcscmError(f"{why} ({self.citation}), available from {place}")
        return path

    def download(self, file: RawFile, home: Path) -> Path:
        """Download a file into the data folder, unless a copy with the right checksum is there."""
        target = home / file.path
        if file.url is None:
            what = f"{self.name!r} cannot be downloaded by a program; get it from {self.page}"
            raise IcscmError(f"{what} and save it as {str(target)!r}")
        try:
            _import_pooch().retrieve(file.url, file.sha256, target.name, target.parent)
        except (OSError, ValueError) as error:
            why = f"could not download {file.url}: {_describe(error)}; try again later, or save the"
            raise IcscmError(f"{why} file by hand as {str(target)!r}") from error
        return target

    @contextmanager
    def open(self, path: Path, suffix: str = ".csv") -> Iterator[Path | IO[bytes]]:
        """Input for pandas: the path, or the first member of a zip that ends in `suffix`."""
        try:
            if path.suffix != ".zip":
                yield path
                return
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.lower().endswith(suffix)]
                if not names:
                    raise IcscmError(f"{str(path)!r} holds no file that ends in {suffix!r}")
                with archive.open(names[0]) as stream:
                    yield stream
        except IcscmError:
            raise
        except _DAMAGE as error:
            why = f"{str(path)!r} is damaged or cannot be read ({_describe(error)})"
            expected = f"expected the file of {self.name!r} as published at {self.page}"
            raise IcscmError(f"{why}; {expected}; download it again") from error

    def read(
        self, path: Path, columns: Sequence[str], suffix: str = ".csv", **options: Any
    ) -> pd.DataFrame:
        """Columns of a CSV file in this order and spelling; case in the file is ignored."""
        wanted = {name.lower() for name in columns}
        # in one part: pandas 3.0 cannot join the parts of a category if one is all missing
        options = {"low_memory": False, "encoding": "utf-8-sig"} | options
        with self.open(path, suffix) as stream:
            table = pd.read_csv(stream, usecols=lambda n: n.strip().lower() in wanted, **options)
        spelling = match_columns(table, columns, path)
        return table[[*spelling.values()]].set_axis([*spelling], axis=1)


def match_columns(table: pd.DataFrame, wanted: Sequence[str], path: Path) -> dict[str, str]:
    """The table's spelling of each wanted column; raises if any is missing."""
    by_lower = {str(name).strip().lower(): name for name in table}
    missing = [name for name in wanted if name.lower() not in by_lower]
    if missing:
        names = shorten_list([repr(name) for name in missing])
        why = f"{str(path)!r} lacks {len(missing)} of the {len(wanted)} expected columns: {names}"
        raise IcscmError(f"{why}; the file may be of another year or edition")
    return {name: by_lower[name.lower()] for name in wanted}


def _describe(error: Exception) -> str:
    """Why a download or a reader failed, in a few words."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    if hasattr(error, "request"):
        return "there is no connection to the server"
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


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
    return RawFile(
        path=f"acs2018/{name}",
        url=f"{_CENSUS['url']}/{name}",
        sha256=_CENSUS[kind].get(state),
        state=state,
    )


def make_source(name: str, facts: dict[str, Any]) -> Source:
    """A source from its entry in `sources.toml`."""
    raw_files = [RawFile(**file) for file in facts.pop("files", ())]
    kinds = facts.pop("kinds", "")
    raw_files += [make_census_file(kind, state) for state in STATES for kind in kinds]
    columns = facts.pop("columns", "").split()
    return Source(name, files=raw_files, columns=columns, **facts)


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
        got = ", ".join(map(repr, unknown)) or "none"
        what = "states must be two-letter codes of US states, such as ['ME', 'VT']"
        raise IcscmError(f"{what}; got {got}")
    return list(dict.fromkeys(chosen))


def find_present(source: Source, home: Path) -> list[str | None]:
    """The states of which the data folder holds all files; [None] for data without states."""
    absent = {file.state for file in source.files if file.find(home) is None}
    states = DEFAULT_STATES if source.files[0].state else (None,)
    return [state for state in states if state not in absent]


def find_states(source: Source, home: Path, states: Sequence[str] | None = None) -> list[str]:
    """The given states; by default those in the data folder, or all if there are none."""
    if states is not None:
        return check_states(states)
    return [state for state in find_present(source, home) if state] or list(DEFAULT_STATES)
