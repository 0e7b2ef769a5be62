"""The raw files of real data sets, as `sources.toml` lists them: finding, downloading, reading.

A *source* is a published data set of one or more files. They lie in the *data folder*, under the
names of `RawFile.path` or as a user who downloaded and unpacked them by hand may have named them.
"""

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
    """Find the data folder: as given, of the environment variable, or in the user's cache."""
    chosen = os.environ.get(DATA_VARIABLE) if data_home is None else data_home
    if chosen:
        return Path(chosen).expanduser()
    return Path(_import_pooch().os_cache("icscm"))


def _import_pooch() -> Any:
    """Import pooch, which downloads files; it is an optional dependency."""
    try:
        return importlib.import_module("pooch")
    except ImportError:
        raise IcscmError(
            "this needs pooch: pip install 'icscm[data]', or pass data_home or set the "
            f"environment variable {DATA_VARIABLE}"
        ) from None


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
        """Find the file in the data folder under any of its names; None if it is not there."""
        for name in (self.path, *self.others):
            path = home / name
            if path.is_file():
                return path
        return None


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
        """Return the path of a file in the data folder; raise if it is not there."""
        path = file.find(home)
        if path is None:
            origin = f"{file.url} or by fetch({self.name!r})" if file.url else self.page
            raise IcscmError(
                f"{str(home / file.path)!r} was not found; it is a file of {self.name!r} "
                f"({self.citation}), available from {origin}"
            )
        return path

    def download(self, file: RawFile, home: Path) -> Path:
        """Download a file into the data folder, unless a copy with the right checksum is there."""
        target = home / file.path
        if file.url is None:
            raise IcscmError(
                f"{self.name!r} cannot be downloaded by a program; get it from {self.page} and "
                f"save it as {str(target)!r}"
            )
        pooch = _import_pooch()
        try:
            pooch.retrieve(file.url, known_hash=file.sha256, fname=target.name, path=target.parent)
        except (OSError, ValueError) as error:
            raise IcscmError(
                f"could not download {file.url}: {_describe(error)}; try again later, or save the "
                f"file by hand as {str(target)!r}"
            ) from error
        return target

    @contextmanager
    def open(self, path: Path, suffix: str = ".csv") -> Iterator[Path | IO[bytes]]:
        """Open input for pandas: the path, or the first file in a zip that ends in `suffix`.

        What is read in the context may fail, too: then the file is damaged, and the error says so.
        """
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
        except IcscmError:  # which is a ValueError as well
            raise
        except _DAMAGE as error:
            raise IcscmError(
                f"{str(path)!r} is damaged or cannot be read ({_describe(error)}); expected the "
                f"file of {self.name!r} as published at {self.page}; download it again"
            ) from error

    def read(
        self, path: Path, columns: Sequence[str], suffix: str = ".csv", **options: Any
    ) -> pd.DataFrame:
        """Read columns of a CSV file, in this order and spelling; case in the file is ignored.

        The `options` are those of pandas, such as the types of columns.
        """
        columns_in_lower_case = {name.lower() for name in columns}

        def is_read(name: str) -> bool:
            return name.strip().lower() in columns_in_lower_case

        # low_memory=False reads a file in one part: pandas 3.0 cannot join the parts of a category
        # if one is all missing
        all_options = {"low_memory": False, "encoding": "utf-8-sig"} | options
        with self.open(path, suffix) as stream:
            table = pd.read_csv(stream, usecols=is_read, **all_options)
        spellings = match_columns(table, columns, path)
        return table[list(spellings.values())].set_axis(list(spellings), axis=1)


def match_columns(table: pd.DataFrame, wanted: Sequence[str], path: Path) -> dict[str, str]:
    """Return the table's spelling of each wanted column; raise if any is missing."""
    spelling_by_lower = {str(name).strip().lower(): name for name in table}
    missing = [name for name in wanted if name.lower() not in spelling_by_lower]
    if missing:
        names = shorten_list([repr(name) for name in missing])
        raise IcscmError(
            f"{str(path)!r} lacks {len(missing)} of the {len(wanted)} expected columns: {names}; "
            "the file may be of another year or edition"
        )
    return {name: spelling_by_lower[name.lower()] for name in wanted}


def _describe(error: Exception) -> str:
    """Describe in a few words why a download or a reader failed."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    if hasattr(error, "request"):
        return "there is no connection to the server"
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    return f"{kind}: {lines[0][:200]}" if lines else kind


_FACTS = tomllib.loads((files("icscm.datasets") / "sources.toml").read_text(encoding="utf-8"))
_CENSUS = _FACTS.pop("census")
# Two-letter codes of the states, with their numbers in the Census Bureau's files.
STATES: dict[str, int] = _CENSUS["states"]
DEFAULT_STATES = tuple(state for state in STATES if state != "DC")  # as in the paper
# Protein -> its parents in the consensus network.
SACHS_PARENTS = {name: parents.split() for name, parents in _FACTS.pop("sachs_parents").items()}


def make_census_file(kind: str, state: str) -> RawFile:
    """Make the record of the 2018 American Community Survey's file of a state.

    The kind is "p", persons, or "h", households.
    """
    name = f"csv_{kind}{state.lower()}.zip"
    return RawFile(
        path=f"acs2018/{name}",
        url=f"{_CENSUS['url']}/{name}",
        sha256=_CENSUS[kind].get(state),
        state=state,
    )


def make_source(name: str, facts: dict[str, Any]) -> Source:
    """Make a source from its entry in `sources.toml`.

    Files are listed there, or are those of the census: some `kinds` for each state.
    """
    raw_files = [RawFile(**file) for file in facts.get("files", ())]
    for state in STATES:
        raw_files += [make_census_file(kind, state) for kind in facts.get("kinds", "")]
    return Source(
        name=name,
        title=facts["title"],
        n_samples=facts["n_samples"],
        citation=facts["citation"],
        page=facts["page"],
        licence=facts["licence"],
        files=raw_files,
        columns=facts.get("columns", "").split(),
    )


SOURCES = {name: make_source(name, facts) for name, facts in _FACTS.items()}


def fetch_files(source: Source, home: Path, states: Sequence[str] | None = None) -> list[Path]:
    """Download the files of a source, of the given states where each has its own."""
    chosen_states = DEFAULT_STATES if states is None else check_states(states)
    return [
        source.download(file, home)
        for file in source.files
        if file.state is None or file.state in chosen_states
    ]


def check_states(states: Sequence[str]) -> list[str]:
    """Return two-letter codes of states, each once and in capitals; raise for any other."""
    given_states = [states] if isinstance(states, str) else states
    codes = [str(state).upper() for state in given_states]
    unknown_codes = [code for code in codes if code not in STATES]
    if unknown_codes or not codes:
        got = ", ".join(map(repr, unknown_codes)) or "none"
        raise IcscmError(
            f"states must be two-letter codes of US states, such as ['ME', 'VT']; got {got}"
        )
    return list(dict.fromkeys(codes))


def find_present(source: Source, home: Path) -> list[str | None]:
    """Find the states of which the data folder holds all files.

    Data without states count as those of a state None: [None] if they are complete, else [].
    """
    incomplete_states = {file.state for file in source.files if file.find(home) is None}
    has_states = source.files[0].state is not None
    states = DEFAULT_STATES if has_states else (None,)
    return [state for state in states if state not in incomplete_states]


def find_states(source: Source, home: Path, states: Sequence[str] | None = None) -> list[str]:
    """Return the given states; by default those in the data folder, or all if there are none."""
    if states is not None:
        return check_states(states)
    present = [state for state in find_present(source, home) if state is not None]
    return present or list(DEFAULT_STATES)
