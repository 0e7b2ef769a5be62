"""Learning from files larger than memory, which are read two or three times in batches.

    of text        a pass before all others finds the types of the columns
    pass one       types, levels, distinct values; labels, environments and row hashes
    sampled rows   the values of some rows, where thresholds are quantiles, if rows have copies
    pass two       one byte for each cell, in a temporary file, sorted by label and environment

The search then counts in the temporary file. Its model and trace equal those of the same table in
memory: thresholds depend on the rows only, not on how they are stored.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from pyarrow import types

from icscm._changes import data_by_name
from icscm._constants import MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import Array, Hashes, IntArray
from icscm.engine.binning import Binning
from icscm.engine.clusters import number_clusters
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import SourceInfo
from icscm.engine.sampling import SampledRows, hash_piece, is_sampled, merge_sampled, take_rows
from icscm.engine.stores import sort_rows
from icscm.engine.survey import Groups, Survey, merge_surveys, survey_piece
from icscm.engine.survey_binning import find_sampled, plan_from_survey
from icscm.engine.threads import count_threads, read_ahead, run_in_parts
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list
from icscm.io.formats import TextFormat
from icscm.io.naming import check_columns, is_index
from icscm.io.streams import TableReader, open_table
from icscm.sources import countable
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.files import source as mapped
from icscm.sources.files.source import Budget, CodeFile
from icscm.sources.stored import StoredSource
from icscm.tables.coded import CodedTable
from icscm.tables.columns import Column, read_arrow, read_arrow_groups
from icscm.tables.environments import number_environments
from icscm.tables.errors import make_missing_error, name_columns
from icscm.tables.labels import check_labels

# Most values of the columns of environments and labels.
_MOST_VALUES = {"target": 2, "environments": 2**16, "groups": 2**31}


class GroupReader:
    """Numbers the values of the column of labels, or of environments, as they turn up."""

    def __init__(self, name: str, role: str) -> None:
        self.name, self._role, self._most = name, role.rstrip("s"), _MOST_VALUES[role]
        self._parts: list[Array] = []
        self.known: pyarrow.Array | None = None

    def read(self, array: pyarrow.Array) -> Groups:
        """The next rows."""
        what = f"column {self.name!r}, the {self._role},"
        array = read_arrow_groups(array, what)
        is_missing = array.is_null(nan_is_null=types.is_floating(array.type))
        if is_missing.true_count:
            where = f"row {is_missing.index(True).as_py() + sum(map(len, self._parts)):,}"
            raise make_missing_error(what, where, is_label=self._role == "target")
        known = array.slice(0, 0) if self.known is None else self.known
        codes = pyarrow.compute.index_in(array, value_set=known)
        if codes.null_count:
            new = pyarrow.compute.unique(array.filter(codes.is_null()))
            known = pyarrow.concat_arrays([known, new])
            codes = pyarrow.compute.index_in(array, value_set=known)
        self.known = known
        if len(known) > self._most:
            some = shorten_list([repr(value) for value in known[:3].to_pylist()])
            advice = "environments; group them"
            if self._role == "target":
                advice = "classes; merge them into two, or fit one model per class"
            raise IcscmError(f"{what} holds {some} and more: over {self._most:,} {advice}")
        numbers = codes.to_numpy(zero_copy_only=False).astype(np.min_scalar_type(len(known)))
        self._parts.append(numbers)
        return Groups(numbers, known.to_pylist())

    def list_numbers(self) -> Array:
        """The number of each row's value."""
        return np.concatenate(self._parts)


def number_segments(ranks: IntArray, readers: Mapping[str, GroupReader]) -> tuple[Array, Any]:
    """Each row's segment - label, then environment - as the files have them.

    Environments are numbered as `fit` does; their labels come last.
    """
    places = readers.get("environments")
    known = None if places is None else pyarrow.chunked_array([places.known])
    place_ranks, found = number_environments(known, 1 if known is None else len(known))
    kind = np.min_scalar_type(2 * len(found))  # a byte or two for each row, also on the way
    segments = (ranks * len(found)).astype(kind)[readers["target"].list_numbers()]
    if places is not None:
        segments += place_ranks.astype(kind)[places.list_numbers()]
    return segments, found


def rank_labels(labels: GroupReader, positive: Any) -> tuple[IntArray, Array]:
    """0 or 1 for each value of the label, and the two classes in this order."""
    assert labels.known is not None
    found = labels.known.to_pylist()
    if len(found) == 1:
        raise IcscmError(f"the target holds one class only, {found[0]!r}; learning needs two")
    ranks, classes = check_labels(labels.known.to_numpy(zero_copy_only=False), len(found))
    if positive is None or positive == classes[1]:
        return ranks, classes
    if positive != classes[0]:
        listed = " and ".join(map(repr, found))
        raise IcscmError(f"positive={positive!r} is not one of the classes, {listed}")
    return 1 - ranks, classes[::-1]


@data_by_name
def open_files(
    data: Any,
    target: str,
    *,
    environments: str | None = None,
    groups: str | None = None,
    columns: Sequence[str] | None = None,
    positive: Any = None,
    max_memory: int | str = "2GiB",
    temp_dir: str | Path | None = None,
    text: TextFormat | None = None,
    preparation: BinningConfig | None = None,
) -> Countable[StoredSource]:
    """Read files that need not fit in memory, and make their rows countable.

    Parameters
    ----------
    data : str, Path, pyarrow.dataset.Dataset or TableReader
        A Parquet or CSV file, or a folder of such files.
    target : str
        The column of labels.
    environments : str, optional
        The column of environments.
    groups : str, optional
        The column of groups: rows that belong together, such as the visits of a patient.
    columns : sequence of str, optional
        The columns to make rules of; by default all others.
    positive : object, optional
        The label to be predicted; by default the second in order.
    max_memory : int or str
        Bound on the memory of the whole process, in bytes or as `"2GiB"`.
    temp_dir : str or Path, optional
        Where a byte for each cell is written; the file is gone when the result is closed.
    text : TextFormat, optional
        How text files are to be read.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The samples, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If the files cannot be read, or not within `max_memory`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_files
    >>> data = make_conjunction(random_state=1)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.parquet")
    ...     data.X.assign(y=data.y, site=data.environments).to_parquet(path)
    ...     with open_files(path, "y", environments="site") as countable:
    ...         print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    config = preparation or BinningConfig()
    if config.max_thresholds is None or config.max_thresholds >= MAX_NARROW_BINS:
        why = f" must be at most {MAX_NARROW_BINS - 1} here; got {config.max_thresholds!r}"
        name = Parameter("max_thresholds")
        raise IcscmError("files are binned to one byte per value: ", name, why)
    reader, n_threads = open_table(data, text), count_threads(config.n_jobs)
    special = {"target": target, "environments": environments, "groups": groups}
    names = _choose_features(reader.schema.names, special, columns)
    budget = Budget.make(max_memory, reader, len(names))
    file = TableFile(reader, names, budget, n_threads)
    mapped.map_file(0, temp_dir).close()  # so that an unusable folder is found before pass one
    readers, survey, hashes, least = _survey(file, special, config.max_thresholds)
    ranks, classes = rank_labels(readers["target"], positive)
    segments, places = number_segments(ranks, readers)
    budget = budget.divide(len(segments), has_groups=groups is not None)
    file = replace(file, budget=budget)
    table = countable.describe_columns(survey, names, config)
    sampled = find_sampled(survey, table)
    values = _read_sample(file, sampled, hashes, least) if sampled else {}
    binned = plan_from_survey(survey, table, values)
    del hashes, least
    n = len(places)
    position, rows = sort_rows(segments // n, segments % n, n)
    features = _choose_stored(binned, table)
    codes = CodeFile(len(features), rows, temp_dir, n_threads)
    with ExitStack() as stack:
        stack.callback(codes.close)
        _write_codes(file, codes, PieceCoder(binned, features), segments)
        info = SourceInfo(binned, classes.tolist(), places, [countable.SAMPLED] * binned.sampled)
        clusters = None
        if groups is not None:
            numbers = readers["groups"].list_numbers()
            clusters = number_clusters(numbers, segments % n, n, position)
        source = mapped.make_mapped_source(
            info,
            features,
            codes,
            position,
            block_bytes=budget.share,
            device=config.device,
            clusters=clusters,
        )
        stack.pop_all()
    close, has_environments = partial(mapped.close_source, source, codes), environments is not None
    return Countable(source, table, names, classes, len(names), has_environments, close, config)


def _choose_features(
    found: Sequence[str], roles: Mapping[str, str | None], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """The names of the columns to make rules of, among those found."""
    special = [name for name in roles.values() if name is not None]
    chosen = [name for name in found if name not in special and not is_index(name)]
    chosen = chosen if columns is None else list(columns)
    check_columns([*special, *chosen], found, "the data")
    twice = [repr(name) for name, n in Counter([*special, *chosen]).items() if n > 1]
    if twice:
        why = f"{shorten_list(twice)} is named twice among target, environments, groups and columns"
        raise IcscmError(f"{why}; a column can have one role only")
    if not chosen:
        raise IcscmError("the data has no column besides the target, environments and groups")
    return tuple(chosen)


@dataclass(frozen=True)
class TableFile:
    """A table in files, the features to be read from it, and with what."""

    reader: TableReader
    names: tuple[str, ...]
    budget: Budget
    n_threads: int

    def read(self, names: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """All rows of some columns, some rows at a time."""
        return read_ahead(self.reader.read(names, self.budget.batch_rows), self.n_threads)

    def read_columns(self, batch: pyarrow.RecordBatch, names: Sequence[str]) -> list[Column]:
        return run_in_parts(lambda n: read_arrow(batch.column(n), n), names, self.n_threads)


def _survey(
    file: TableFile, roles: Mapping[str, str | None], most: int
) -> tuple[dict[str, GroupReader], Survey, list[Hashes], SampledRows | None]:
    """Pass one: survey the columns, number labels and environments, hash the rows.

    The rows of least hash come last: they are the sample, unless rows have copies.
    """
    readers = {role: GroupReader(name, role) for role, name in roles.items() if name is not None}
    survey: Survey | None = None
    hashes: list[Hashes] = []
    least: SampledRows | None = None
    keeps_least = 8 * len(file.names) * 4 * QUANTILE_SAMPLE <= file.budget.share
    for batch in file.read([*file.names, *(each.name for each in readers.values())]):
        if not len(batch):
            continue
        columns, n_rows = file.read_columns(batch, file.names), len(batch)
        read = {role: each.read(batch.column(each.name)) for role, each in readers.items()}
        labels, places = read["target"], read.get("environments")
        how: dict[str, Any] = {"max_thresholds": most, "names": file.names}
        found = survey_piece(columns, n_rows, labels, places, n_threads=file.n_threads, **how)
        survey = found if survey is None else merge_surveys(survey, found, file.names)
        file.budget.divide(survey.n_rows, has_groups="groups" in readers)
        hashes.append(hash_piece(columns, n_rows, file.n_threads))
        if keeps_least:
            least = _add_least(least, columns, hashes[-1])
    if survey is None:
        raise IcscmError("the data has no rows")
    return readers, survey, hashes, least


def _add_least(least: SampledRows | None, columns: Sequence[Column], hashes: Hashes) -> SampledRows:
    """The rows of least hash so far, with their values: the sample, unless rows have copies.

    Which copies of a row are in the sample depends on their number, known only at the end.
    """
    rows = np.arange(len(hashes))
    if least is not None and is_sampled(len(least.hashes) + 1):  # it is full
        rows = np.flatnonzero(hashes < least.hashes[-1])
        if len(rows) == 0:
            return least
    found = take_rows(columns, range(len(columns)), hashes, rows)
    return merge_sampled([found] if least is None else [least, found])


def _read_sample(
    file: TableFile, columns: Sequence[int], hashes: Sequence[Hashes], least: SampledRows | None
) -> dict[int, Array]:
    """The values of some columns in the sample's rows, read again unless pass one kept them."""
    sample = mapped.choose_rows(hashes, file.budget.share)
    if least is not None and np.array_equal(least.hashes, sample.hashes):
        return sample.repeat(least)
    names, rows = [file.names[j] for j in columns], mapped.find_rows(hashes, sample)
    order, start = np.argsort(rows), 0
    found: list[SampledRows] = []
    for batch in file.read(names):
        first, last = np.searchsorted(rows[order], (start, start + len(batch)))
        here = order[first:last]
        taken = file.read_columns(batch.take(pyarrow.array(rows[here] - start)), names)
        by_number = dict(zip(columns, taken, strict=True))
        found.append(take_rows(by_number, columns, sample.hashes[here], np.arange(len(here))))
        start += len(batch)
    return sample.repeat(merge_sampled(found))


def _choose_stored(binned: Binning, table: CodedTable) -> list[int]:
    """The features that have anything to count, neighbours of one layout."""
    n_bins = binned.count_bins(np.arange(binned.n_features))
    usable = [j for j in range(binned.n_features) if j not in table.dropped and n_bins[j] > 1]
    wide = [j for j in usable if n_bins[j] > MAX_NARROW_BINS]
    if wide:
        why = f"files are binned to one byte a value, but {name_columns(wide, table.names)} would "
        advice = f"need {n_bins[wide].max()} bins; use a smaller ", Parameter("max_thresholds")
        raise IcscmError(why, *advice)
    return sorted(usable, key=lambda j: (binned.find_layout(j), j))


def _write_codes(table: TableFile, file: CodeFile, coder: PieceCoder, segments: Array) -> None:
    """Pass two. Codes are buffered: long runs of each segment are quicker to write."""
    wanted = {table.names[j]: j for j in coder.features}
    # 16 bytes of each row for sorting it
    most = max(table.budget.batch_rows, table.budget.share // (len(wanted) + 16))
    buffer, first, start = np.empty((len(wanted), most), dtype=np.uint8), 0, 0
    for batch in table.read([*wanted]) if wanted else ():
        stop = start + len(batch)
        if stop > len(segments):
            break
        if stop - first > most:
            file.write(buffer[:, : start - first], segments[first:start])
            first = start
        columns = dict(zip(wanted.values(), table.read_columns(batch, [*wanted]), strict=True))
        coder.code(columns, buffer[:, start - first : stop - first], table.n_threads)
        start = stop
    file.write(buffer[:, : start - first], segments[first:start])
    if wanted and start != len(segments):
        raise IcscmError("the files changed while they were read; nothing was learned")
    pyarrow.default_memory_pool().release_unused()
