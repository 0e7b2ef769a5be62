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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from icscm.datasets._sources import RawFile, Source
from icscm.exceptions import IcscmError

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
    for name in (file.path, *file.others):
        if (home / name).is_file():
            return home / name
    return None


def obtain_raw_file(file: RawFile, source: Source, home: Path, download: bool) -> Path:
    """The file in the data folder, fetched first if it is not there and the user asked for that."""
    path = find_raw_file(file, home)
    if path is not None:
        return path
    if download:
        return fetch_raw_file(file, source, home)
    raise IcscmError(
        f"{str(home / file.path)!r} is not there; expected a file of {source.name!r} "
        f"({source.citation}), {_tell_how_to_get(file, source)}"
    )


def fetch_raw_file(file: RawFile, source: Source, home: Path) -> Path:
    """Download the file into the data folder; a copy that is there and whole is kept."""
    target = home / file.path
    if file.url is None:
        raise IcscmError(
            f"{source.name!r} has no address that a program could download it from; get it from "
            f"{source.page} and save it as {str(target)!r}"
        )
    pooch = _import_pooch()
    try:
        pooch.retrieve(file.url, known_hash=file.sha256, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise IcscmError(
            f"could not download {file.url}: {_explain(error)}; try again later, or save the file "
            f"by hand as {str(target)!r}"
        ) from error
    return target


@contextlib.contextmanager
def blame(path: Path, source: Source) -> Iterator[None]:
    """Turn every way in which a damaged file can fail into one error that names it."""
    try:
        yield
    except IcscmError:
        raise
    except _DAMAGE as error:
        raise IcscmError(
            f"{str(path)!r} is damaged or cannot be read ({_describe(error)}); expected the file "
            f"of {source.name!r} as published at {source.page}; get it anew"
        ) from error


@contextlib.contextmanager
def open_raw_file(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """The bytes of the file; of a zip, those of the first member whose name ends in `suffix`."""
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


def read_columns(
    path: Path, source: Source, columns: Iterable[str], suffix: str = ".csv", **options: Any
) -> pd.DataFrame:
    """These columns of a CSV file, in this order and spelling, whatever capitals the file uses."""
    wanted = list(columns)
    spelling = match_columns(read_header(path, source, suffix), wanted, path)
    if "dtype" in options:
        options["dtype"] = {spelling[name]: kind for name, kind in options["dtype"].items()}
    with blame(path, source), open_raw_file(path, suffix) as stream:
        table = pd.read_csv(
            stream, usecols=list(spelling.values()), encoding="utf-8-sig", **options
        )
    return table[[spelling[name] for name in wanted]].set_axis(wanted, axis=1)


def read_header(path: Path, source: Source, suffix: str = ".csv") -> list[str]:
    """The names of the columns of a CSV file."""
    with blame(path, source), open_raw_file(path, suffix) as stream:
        return list(pd.read_csv(stream, nrows=0, encoding="utf-8-sig").columns)


def match_columns(present: Sequence[str], wanted: Sequence[str], path: Path) -> dict[str, str]:
    """How the file spells each of the wanted columns; all must be there."""
    by_lower = {name.strip().lower(): name for name in present}
    gone = [name for name in wanted if name.lower() not in by_lower]
    if gone:
        shown = ", ".join(map(repr, gone[:5])) + (f" and {len(gone) - 5} more" * (len(gone) > 5))
        raise IcscmError(
            f"{str(path)!r} lacks {len(gone)} of the {len(wanted)} columns that are expected in "
            f"it: {shown}; it may be of another year or edition"
        )
    return {name: by_lower[name.lower()] for name in wanted}


def _import_pooch() -> Any:
    try:
        return importlib.import_module("pooch")
    except ImportError:
        raise IcscmError(
            "downloading data needs the package pooch; install it with pip install 'icscm[data]'"
        ) from None


def _tell_how_to_get(file: RawFile, source: Source) -> str:
    if file.url is None:
        return f"which is to be had from {source.page}"
    return f"which download=True fetches from {file.url}"


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
