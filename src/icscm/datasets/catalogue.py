"""Which real data sets there are, where they come from, and fetching them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from icscm.datasets import loaders
from icscm.datasets._census import check_states, find_present_states
from icscm.datasets._files import PathLike, fetch_raw_file, find_data_home, find_raw_file
from icscm.datasets._sources import PAPER_STATES, SOURCES, RawFile, Source
from icscm.exceptions import IcscmError
from icscm.parameters import check_value, one_of


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set without loading it.

    Attributes
    ----------
    name, title, source, licence : str
        What it is called, what it is about, who published it where, and on what terms.
    n_samples : int
        Rows of the complete data.
    files : tuple of str
        What has to lie in the data folder (`??` is a state).
    present : bool
        Whether `loader` finds there what it needs, be it for some states only.
    loader : callable
        The function that loads it.
    advice : str
        How to get it, and under what name to save it.

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
    loader: Callable[..., loaders.RealData]
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
        One for each data set, those of the paper first.

    Examples
    --------
    >>> [info.name for info in list_datasets("no such folder") if info.present]
    []
    """
    try:
        home = find_data_home(data_home)
    except IcscmError:  # no folder is named: then nothing is present, but all can be listed
        home = None
    return [_describe(source, home) for source in SOURCES.values()]


def fetch(
    name: str, data_home: PathLike | None = None, *, states: Sequence[str] | None = None
) -> list[Path]:
    """Download the raw files of a data set into the data folder, and say where they are.

    Files that are there already are kept if their checksum is right or not known. Needs the
    package pooch and a network.

    Parameters
    ----------
    name : str
        One of the names that `list_datasets` gives.
    data_home : path, optional
        The folder, by default that of the environment variable ICSCM_DATA.
    states : sequence of str, optional
        Of the American Community Survey, only these states; by default all of the paper's.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    IcscmError
        Where a download fails, or the publisher has no address for programs; the error then says
        where to get the files.

    Examples
    --------
    >>> from icscm.datasets import fetch
    >>> fetch("heart_disease", "data")  # doctest: +SKIP
    """
    check_value("name", name, one_of(*SOURCES))
    home, source = find_data_home(data_home), SOURCES[name]
    wanted = {None, *(PAPER_STATES if states is None else check_states(states))}
    return [fetch_raw_file(file, source, home) for file in source.files if file.state in wanted]


def _describe(source: Source, home: Path | None) -> DatasetInfo:
    return DatasetInfo(
        source.name,
        source.title,
        source.n_samples,
        f"{source.citation}, {source.page}",
        source.licence,
        files=tuple(dict.fromkeys(_show(file) for file in source.files)),
        present=home is not None and _is_present(source, home),
        loader=getattr(loaders, f"load_{source.name}"),
        advice=_advise(source),
    )


def _advise(source: Source) -> str:
    shown = " and ".join(dict.fromkeys(f"FOLDER/{_show(file)}" for file in source.files))
    if any(file.url is None for file in source.files):
        return f"download it from {source.page} and save it as {shown}"
    states = ", states=['AL', 'CA']" if source.files[0].state else ""
    return f"icscm.datasets.fetch('{source.name}', 'FOLDER'{states}) saves it as {shown}"


def _show(file: RawFile) -> str:
    return file.path.replace(f"{file.state.lower()}.zip", "??.zip") if file.state else file.path


def _is_present(source: Source, home: Path) -> bool:
    if source.files[0].state:
        return bool(find_present_states(source, home))
    return all(find_raw_file(file, home) is not None for file in source.files)
