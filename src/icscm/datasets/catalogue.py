"""The catalogue of real data sets: which are present, and downloading them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from icscm.datasets._files import (
    SOURCES,
    PathLike,
    RawFile,
    Source,
    fetch_files,
    find_data_home,
    is_present,
)
from icscm.datasets.real import LOADERS, RealData
from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value


@dataclass(frozen=True)
class DatasetInfo:
    """A data set's description.

    Attributes
    ----------
    name, title, source, licence : str
        Its name, its topic, its publisher with the address, and its licence.
    n_samples : int
        Rows of the complete data.
    files : tuple of str
        The files expected in the data folder (`??` is a state).
    present : bool
        Whether `loader` finds the files it needs, possibly for some states only.
    loader : callable
        The function that loads it.
    advice : str
        How to get it, and the file name to save it under.

    Examples
    --------
    >>> from icscm.datasets import list_datasets
    >>> sachs = list_datasets()[-1]
    >>> sachs.name, sachs.n_samples, sachs.loader.__name__
    ('sachs', 6564, 'load_sachs')
    """

    name: str
    title: str
    n_samples: int
    source: str
    licence: str
    files: tuple[str, ...]
    present: bool
    loader: Callable[..., RealData]
    advice: str


def list_datasets(data_home: PathLike | None = None) -> list[DatasetInfo]:
    """All real data sets, present or not.

    Parameters
    ----------
    data_home : path, optional
        The folder of the raw files, by default that of the environment variable ICSCM_DATA.

    Returns
    -------
    list of DatasetInfo
        One for each data set.

    Examples
    --------
    >>> [info.name for info in list_datasets("no such folder") if info.present]
    []
    """
    try:
        home = find_data_home(data_home)
    except IcscmError:  # without a folder nothing is present, but all can be listed
        home = None
    infos = []
    for name, source in SOURCES.items():
        shown = tuple(dict.fromkeys(_show(file) for file in source.files))
        infos.append(
            DatasetInfo(
                name,
                source.title,
                source.n_samples,
                f"{source.citation}, {source.page}",
                source.licence,
                shown,
                home is not None and is_present(source, home),
                LOADERS[name],
                _advise(source, shown),
            )
        )
    return infos


def fetch(
    name: str, data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> list[Path]:
    """Download the raw files of a data set into the data folder.

    Files that are already there are kept if their checksum is right or unknown. Needs the package
    pooch and a network connection.

    Parameters
    ----------
    name : str
        One of the names in `list_datasets`.
    data_home : path, optional
        The folder, by default that of the environment variable ICSCM_DATA.
    states : sequence of str, optional
        Of the American Community Survey, only these states; by default the 50 states and Puerto
        Rico.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    IcscmError
        If a download fails, or if the publisher offers no address for programs; the message then
        names the page to get the files from.

    Examples
    --------
    >>> from icscm.datasets import fetch
    >>> fetch("heart_disease", "data")  # doctest: +SKIP
    """
    check_value("name", name, allow(*SOURCES))
    return fetch_files(SOURCES[name], find_data_home(data_home), states)


def _show(file: RawFile) -> str:
    return file.path.replace(f"{file.state.lower()}.zip", "??.zip") if file.state else file.path


def _advise(source: Source, shown: Sequence[str]) -> str:
    targets = " and ".join(f"FOLDER/{name}" for name in shown)
    if any(file.url is None for file in source.files):
        return f"download it from {source.page} and save it as {targets}"
    states = ", states=['AL', 'CA']" if source.files[0].state else ""
    return f"icscm.datasets.fetch('{source.name}', 'FOLDER'{states}) saves it as {targets}"
