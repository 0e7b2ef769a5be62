"""Raw files in the data folder: finding them, fetching them when asked to, reading columns."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import pandas as pd

from icscm.datasets._sources import RawFile, Source
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list

DATA_VARIABLE = "ICSCM_DATA"
PathLike = str | os.PathLike[str]

# What readers raise for a file that is cut off, is something else, or holds text for numbers.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError)


def find_data_home(data_home: PathLike | None) -> Path:
    """The folder with the raw files: the one given, or that of the environment variable."""
    chosen = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    if not chosen:
        raise IcscmError(
            "no folder with raw data is known; give data_home, or set the environment variable "
            f"{DATA_VARIABLE} to the folder that holds the files"
        )
    return Path(chosen).expanduser()


def find_raw_file(file: RawFile, home: Path) -> Path | None:
    """The file in the data folder under any of its names, or None."""
    paths = (home / name for name in (file.path, *file.others))
    return next((path for path in paths if path.is_file()), None)


@dataclass(frozen=True)
class RawFiles:
    """The files of one data set in the data folder; absent ones are fetched if the user asked."""

    source: Source
    home: Path
    download: bool = False

    def obtain(self, file: RawFile) -> Path:
        """Where the file is."""
        path = find_raw_file(file, self.home)
        if path is not None:
            return path
        if self.download:
            return fetch_raw_file(file, self.source, self.home)
        how = (
            f"which is to be had from {self.source.page}"
            if file.url is None
            else f"which download=True fetches from {file.url}"
        )
        raise IcscmError(
            f"{str(self.home / file.path)!r} is not there; expected a file of "
            f"{self.source.name!r} ({self.source.citation}), {how}"
        )

    @contextlib.contextmanager
    def open(self, path: Path, suffix: str) -> Iterator[IO[bytes]]:
        """The bytes of a file; every way in which reading them can fail becomes one error."""
        try:
            with _unpack(path, suffix) as stream:
                yield stream
        except IcscmError:
            raise
        except _DAMAGE as error:
            raise IcscmError(
                f"{str(path)!r} is damaged or cannot be read ({_describe(error)}); expected the "
                f"file of {self.source.name!r} as published at {self.source.page}; get it anew"
            ) from error

    def read(
        self,
        columns: Iterable[str],
        path: Path | None = None,
        suffix: str = ".csv",
        dtype: Mapping[str, Any] = MappingProxyType({}),
        **options: Any,
    ) -> pd.DataFrame:
        """These columns of a CSV file, in this order and spelling, whatever capitals it uses.

        By default of the only file. The first line's names are checked before all is read.
        """
        path = path or self.obtain(self.source.files[0])
        spelling = match_columns(self.read_first_row(path, suffix), list(columns), path)
        kinds = {spelling[name]: kind for name, kind in dtype.items()}
        # whole, not in parts: pandas 3.0 cannot join a category's parts if one is all missing
        options = {"low_memory": False, **options}
        with self.open(path, suffix) as stream:
            table = pd.read_csv(
                stream, usecols=[*spelling.values()], dtype=kinds, encoding="utf-8-sig", **options
            )
        return table[[*spelling.values()]].set_axis([*spelling], axis=1)

    def read_first_row(self, path: Path, suffix: str = ".csv") -> pd.DataFrame:
        """The names of the columns and the first row, as text."""
        with self.open(path, suffix) as stream:
            return pd.read_csv(stream, nrows=1, dtype=str, encoding="utf-8-sig")


@contextlib.contextmanager
def _unpack(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """The file as it is or decompressed; of a zip, the first member whose name ends in `suffix`."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.lower().endswith(suffix)]
            if not members:
                raise IcscmError(f"{str(path)!r} holds no file that ends in {suffix!r}")
            with archive.open(members[0]) as stream:
                yield stream
    else:
        opener: Any = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
        with opener(path, "rb") as stream:
            yield stream


def fetch_raw_file(file: RawFile, source: Source, home: Path) -> Path:
    """Download the file into the data folder; a copy that is there and whole is kept."""
    target = home / file.path
    if file.url is None:
        raise IcscmError(
            f"{source.name!r} has no address that a program could download it from; get it from "
            f"{source.page} and save it as {str(target)!r}"
        )
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise IcscmError(
            "downloading data needs the package pooch; install it with pip install 'icscm[data]'"
        ) from None
    try:
        pooch.retrieve(file.url, known_hash=file.sha256, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise IcscmError(
            f"could not download {file.url}: {_explain(error)}; try again later, or save the file "
            f"by hand as {str(target)!r}"
        ) from error
    return target


def match_columns(table: pd.DataFrame, wanted: Sequence[str], path: Path) -> dict[str, str]:
    """How the table spells each of the wanted columns; all must be there."""
    by_lower = {str(name).strip().lower(): name for name in table}
    gone = [name for name in wanted if name.lower() not in by_lower]
    if gone:
        raise IcscmError(
            f"{str(path)!r} lacks {len(gone)} of the {len(wanted)} columns that are expected in "
            f"it: {shorten_list([repr(name) for name in gone])}; it may be of another year or "
            "edition"
        )
    return {name: by_lower[name.lower()] for name in wanted}


def _explain(error: Exception) -> str:
    """Why a download failed, in the user's words rather than those of the network's layers."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    if hasattr(error, "request"):
        return "there is no connection to the server"
    if isinstance(error, ValueError):
        return "what arrived does not have the known checksum"
    return _describe(error)


def _describe(error: Exception) -> str:
    """The first line of an error: what libraries add below is for their own developers."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
