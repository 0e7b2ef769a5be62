"""Learning from files larger than memory: the table is read two or three times, never held.

    of text        a pass before all others finds what its columns are
    pass one       types, levels, distinct values; labels, environments and row hashes
    sampled rows   the values of some rows, where thresholds are quantiles, if rows have copies
    pass two       one byte for each cell, in a temporary file, sorted by label and environment

The search then walks the temporary file. What it finds, and the trace, are those of the same table
in memory: thresholds depend on the rows only, not on how they are stored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from icscm._constants import MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import Array, Hashes
from icscm.engine.binning import Binning, find_sampled, plan_from_survey
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import SourceInfo
from icscm.engine.sampling import Sample, SampledRows, hash_piece, merge_sampled, take_rows
from icscm.engine.survey import Survey, merge_surveys, survey_piece
from icscm.engine.threads import count_threads, read_ahead, run_in_parts
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list
from icscm.io.formats import TextFormat
from icscm.io.naming import is_index
from icscm.io.streams import TableReader, open_table
from icscm.sources.countable import SAMPLED, BinningConfig, Countable, describe_columns
from icscm.sources.files.budget import Budget
from icscm.sources.files.groups import GroupReader, number_segments, rank_labels
from icscm.sources.files.hashes import HashFile, choose_rows, find_rows
from icscm.sources.files.scratch import ScratchFile
from icscm.sources.files.source import CodeFile, MappedSource, make_mapped_source
from icscm.tables.coded import CodedTable
from icscm.tables.columns import Column, read_arrow
from icscm.tables.errors import name_columns

_log = logging.getLogger(__name__)

# Labels of environments are few; a column with more values is something else.
_MOST_ENVIRONMENTS = 2**16


def open_files(
    data: Any,
    target: str,
    environments: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    positive: Any = None,
    max_memory: int | str = "2GiB",
    temp_dir: str | Path | None = None,
    text: TextFormat | None = None,
    preparation: BinningConfig | None = None,
) -> Countable[MappedSource]:
    """Read files that need not fit in memory, and make their rows countable.

    Parameters
    ----------
    data : str, Path, pyarrow.dataset.Dataset or TableReader
        A Parquet or CSV file, or a folder of such files.
    target : str
        The column of labels.
    environments : str, optional
        The column of environments.
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
    ...     with open_files(path, "y", "site") as countable:
    ...         print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    asked = preparation or BinningConfig()
    _check_narrow(asked.max_thresholds)
    reader = open_table(data, text)
    names = _choose_features(reader.schema.names, target, environments, columns)
    budget = Budget.make(max_memory, reader, len(names))
    table_file = TableFile(reader, names, budget, count_threads(asked.n_jobs))
    with ScratchFile(temp_dir) as hash_file:
        first = FirstPass(hash_file, target, environments, asked.max_thresholds)
        with _time("pass one"):
            first.read(table_file)
        ranks, classes = rank_labels(first.labels, positive)
        groups = first.labels, first.environments
        segments, rows, places = number_segments(ranks, *groups, first.survey.n_rows)
        budget.check_rows(first.survey.n_rows)
        table = describe_columns(first.survey, names, asked)
        with _time("sampled rows"):
            binned = _plan(table_file, first, table)
    features = _choose_stored(binned, table)
    with ExitStack() as stack:
        scratch = stack.enter_context(ScratchFile(temp_dir))
        file = CodeFile(scratch, len(features), rows, table_file.n_threads)
        with _time("pass two"):
            _write_codes(table_file, file, PieceCoder(binned, features), segments)
        info = SourceInfo(binned, classes.tolist(), places, [SAMPLED] if binned.sampled else [])
        sizes = {"n_threads": table_file.n_threads, "block_bytes": budget.share}
        source = make_mapped_source(info, features, file, rows, **sizes, device=asked.device)
        stack.callback(source.close)
        close, has_environments = stack.pop_all().close, environments is not None
        return Countable(source, table, names, classes, len(names), has_environments, close, asked)


@contextmanager
def _time(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    _log.info("%s: %.2f s", what, time.perf_counter() - started)


def _check_narrow(max_thresholds: int | None) -> None:
    if max_thresholds is None or max_thresholds >= MAX_NARROW_BINS:
        raise IcscmError(
            "files are binned to one byte a value: ",
            Parameter("max_thresholds"),
            f" must be at most {MAX_NARROW_BINS - 1} here; got {max_thresholds!r}",
        )


def _choose_features(
    found: Sequence[str], target: str, environments: str | None, columns: Sequence[str] | None
) -> tuple[str, ...]:
    """The names of the columns to make rules of, among those found."""
    for role, name in (("target", target), ("environments", environments)):
        if name is not None and name not in found:
            names = shorten_list([repr(each) for each in found])
            raise IcscmError(f"{role}={name!r} is no column of the data, which has {names}")
    if target == environments:
        raise IcscmError(f"target and environments are both {target!r}; name two columns")
    special = {target, environments}
    if columns is None:
        chosen = [name for name in found if name not in special and not is_index(name)]
    else:
        chosen = list(columns)
        unknown = [repr(name) for name in chosen if name not in found]
        if unknown:
            raise IcscmError(f"columns names what the data does not have: {shorten_list(unknown)}")
        wrong = [repr(name) for name in chosen if name in special or chosen.count(name) > 1]
        if wrong:
            what = "the target, the environments, or a column twice"
            raise IcscmError(f"columns names {what}: {shorten_list(wrong)}")
    if not chosen:
        raise IcscmError("the data has no column to make rules of beside target and environments")
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
        return run_in_parts(
            lambda name: read_arrow(batch.column(name), name), names, self.n_threads
        )


class FirstPass:
    """What pass one finds, in `survey` and others; hashes go to a file."""

    survey: Survey
    #: the rows of least hash: the sample, unless rows have copies
    least: SampledRows | None = None

    def __init__(
        self, hash_file: ScratchFile, target: str, environments: str | None, most: int | None
    ) -> None:
        self.labels = GroupReader(target, "target", 2)
        self.environments: GroupReader | None = None
        if environments is not None:
            self.environments = GroupReader(environments, "environment", _MOST_ENVIRONMENTS)
        self.hashes = HashFile(hash_file)
        self._max_thresholds = most

    def read(self, table: TableFile) -> None:
        """All rows."""
        groups = [each for each in (self.labels, self.environments) if each is not None]
        keeps_least = table.budget.can_hold(len(table.names), 4 * QUANTILE_SAMPLE)
        for batch in table.read([*table.names, *(each.name for each in groups)]):
            columns = table.read_columns(batch, table.names)
            labels, *places = [each.read(batch.column(each.name)) for each in groups]
            survey = survey_piece(
                columns,
                len(batch),
                labels,
                places[0] if places else None,
                max_thresholds=self._max_thresholds,
                names=table.names,
                n_threads=table.n_threads,
            )
            is_first = len(self.hashes) == 0
            self.survey = survey if is_first else merge_surveys(self.survey, survey, table.names)
            hashes = hash_piece(columns, len(batch), table.n_threads)
            self.hashes.append(hashes)
            if keeps_least:
                self.least = _add_least(self.least, columns, hashes)
        if len(self.hashes) == 0:
            raise IcscmError("the data has no rows")


def _add_least(least: SampledRows | None, columns: Sequence[Column], hashes: Hashes) -> SampledRows:
    """The rows of least hash so far, with their values: the sample, unless rows have copies.

    Which copies of a row are in the sample depends on their number, known only at the end.
    """
    rows = np.arange(len(hashes))
    if least is not None and least.is_full:
        rows = np.flatnonzero(hashes < least.hashes[-1])
        if len(rows) == 0:
            return least
    found = take_rows(columns, range(len(columns)), hashes, rows)
    return (found if least is None else merge_sampled([least, found])).keep_least()


def _plan(file: TableFile, first: FirstPass, table: CodedTable) -> Binning:
    """Choose thresholds, if need be from sampled rows, read again unless pass one kept them."""
    columns = find_sampled(first.survey, table)
    if not columns:
        return plan_from_survey(first.survey, table, {})
    sample, least = choose_rows(first.hashes, file.budget.share), first.least
    if least is None or not np.array_equal(least.hashes, sample.hashes):
        least = _read_sample(file, columns, sample, find_rows(first.hashes, sample))
    return plan_from_survey(first.survey, table, sample.repeat(least))


def _read_sample(
    file: TableFile, columns: Sequence[int], sample: Sample, rows: Array
) -> SampledRows:
    """The values of some columns in the sample's rows."""
    names = [file.names[j] for j in columns]
    order = np.argsort(rows)
    found: list[SampledRows] = []
    start = 0
    for batch in file.read(names):
        first, last = np.searchsorted(rows[order], (start, start + len(batch)))
        here = order[first:last]
        taken = file.read_columns(batch.take(pyarrow.array(rows[here] - start)), names)
        by_number = dict(zip(columns, taken, strict=True))
        found.append(take_rows(by_number, columns, sample.hashes[here], np.arange(len(here))))
        start += len(batch)
    return merge_sampled(found)


def _choose_stored(binned: Binning, table: CodedTable) -> list[int]:
    """The features that have anything to count, neighbours of one layout."""
    n_bins = binned.count_bins(np.arange(binned.n_features))
    usable = [j for j in range(binned.n_features) if j not in table.dropped and n_bins[j] > 1]
    wide = [j for j in usable if n_bins[j] > MAX_NARROW_BINS]
    if wide:
        raise IcscmError(
            f"files are binned to one byte a value, and {name_columns(wide, table.names)} would "
            f"need {n_bins[wide].max()} bins; use a smaller ",
            Parameter("max_thresholds"),
        )
    return sorted(usable, key=lambda j: (binned.find_layout(j), j))


def _write_codes(table: TableFile, file: CodeFile, coder: PieceCoder, segments: Array) -> None:
    """Pass two."""
    wanted = {table.names[j]: j for j in coder.features}
    most = max(table.budget.batch_rows, table.budget.share // (len(wanted) + 1))
    buffer, start = _CodeBuffer(file, len(wanted), most), 0
    for batch in table.read([*wanted]) if wanted else ():
        if start + len(batch) > len(segments):
            break
        found = table.read_columns(batch, [*wanted])
        columns = dict(zip(wanted.values(), found, strict=True))
        buffer.add(coder, columns, segments[start : start + len(batch)], table.n_threads)
        start += len(batch)
    buffer.flush()
    if wanted and start != len(segments):
        raise IcscmError("the files changed while they were read; nothing was learned")
    pyarrow.default_memory_pool().release_unused()


class _CodeBuffer:
    """Codes on their way to the file: long runs of each segment are quicker to write."""

    def __init__(self, file: CodeFile, n_features: int, n_rows: int) -> None:
        self._file = file
        self._codes = np.empty((n_features, n_rows), dtype=np.uint8)
        self._segments: list[Array] = []
        self._n_rows = 0

    def add(
        self, coder: PieceCoder, columns: Mapping[int, Column], segments: Array, n_threads: int
    ) -> None:
        if self._n_rows + len(segments) > self._codes.shape[1]:
            self.flush()
        here = self._codes[:, self._n_rows : self._n_rows + len(segments)]
        coder.code(columns, here, n_threads)
        self._segments.append(segments)
        self._n_rows += len(segments)

    def flush(self) -> None:
        if self._n_rows:
            self._file.write(self._codes[:, : self._n_rows], np.concatenate(self._segments))
        self._segments, self._n_rows = [], 0
