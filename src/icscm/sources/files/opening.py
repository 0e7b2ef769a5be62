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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from icscm._constants import MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import Array
from icscm.engine.binning import Binning
from icscm.engine.merging import merge_surveys
from icscm.engine.piece_coding import PieceCoder, hash_piece, read_numbers
from icscm.engine.planning import describe_survey, find_sampled, find_suspicious, plan_from_survey
from icscm.engine.survey import Survey, survey_piece
from icscm.engine.threads import count_threads, run_in_parts
from icscm.exceptions import IcscmError, Parameter
from icscm.io.formats import TextFormat
from icscm.io.naming import is_index
from icscm.io.streams import TableReader, open_table
from icscm.sources.countable import SAMPLED, Countable, Preparation
from icscm.sources.files.budget import Budget
from icscm.sources.files.groups import Cells, GroupReader
from icscm.sources.files.sampling import Candidates, HashFile, choose_hashes, find_rows
from icscm.sources.files.scratch import ScratchFile
from icscm.sources.files.source import CodeFile, MappedSource, make_mapped_source
from icscm.tables.coding import CodedTable
from icscm.tables.columns import Column, Numbers, read_arrow
from icscm.tables.intake import leave_out, refuse_missing
from icscm.text import shorten_list

_log = logging.getLogger(__name__)


# Rows coded before they are written: runs of many kilobytes even with many environments.
_BUFFER_ROWS = 2**20
# Labels of environments are few; a column with more values is something else.
_MOST_ENVIRONMENTS = 2**16


@dataclass(frozen=True)
class Request:
    """What was asked for: columns by their roles, memory, and how to prepare the table."""

    target: str
    environments: str | None
    columns: Sequence[str] | None
    positive: Any
    max_memory: int | str
    temp_dir: str | Path | None
    preparation: Preparation

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        return count_threads(self.preparation.n_jobs)


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
    preparation: Preparation | None = None,
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
    preparation : Preparation, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The samples, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If the files cannot be read, or not within `max_memory`.
    """
    asked = preparation or Preparation()
    _check_narrow(asked.max_thresholds)
    request = Request(target, environments, columns, positive, max_memory, temp_dir, asked)
    reader = open_table(data, text)
    names = _choose_features(reader.schema, request)
    budget = Budget.make(request.max_memory, reader, len(names))
    first = _read_first(reader, names, request, budget)
    with first.hash_file:
        cells = Cells.make(first.labels, first.environments, first.survey.n_rows, request.positive)
        budget.check_rows(first.survey.n_rows)
        table = _describe(first.survey, names, asked)
        binned = _plan(reader, first, table, budget)
    features = _choose_stored(binned, table)
    with ExitStack() as stack:
        scratch = stack.enter_context(ScratchFile(temp_dir))
        file = CodeFile(scratch, len(features), cells.rows)
        _write_codes(reader, file, PieceCoder(binned, features), names, cells, request, budget)
        source = make_mapped_source(
            binned,
            features,
            file,
            cells.rows,
            classes=cells.classes.tolist(),
            environment_labels=cells.environment_labels,
            notes=[SAMPLED] if binned.sampled else [],
            n_threads=request.n_threads,
            block_bytes=budget.share,
        )
        stack.callback(source.close)
        return Countable(
            source,
            table,
            names,
            cells.classes,
            len(names),
            has_environments=environments is not None,
            close=stack.pop_all().close,
        )


def _check_narrow(max_thresholds: int | None) -> None:
    if max_thresholds is None or max_thresholds >= MAX_NARROW_BINS:
        raise IcscmError(
            "files are binned to one byte a value: ",
            Parameter("max_thresholds"),
            f" must be at most {MAX_NARROW_BINS - 1} here; got {max_thresholds!r}",
        )


def _choose_features(schema: pyarrow.Schema, request: Request) -> tuple[str, ...]:
    """The names of the columns to make rules of."""
    for role, name in (("target", request.target), ("environments", request.environments)):
        if name is not None and name not in schema.names:
            raise IcscmError(
                f"{role}={name!r} is no column of the data, which has "
                f"{shorten_list([repr(each) for each in schema.names])}"
            )
    special = {request.target, request.environments}
    if request.target == request.environments:
        raise IcscmError(f"target and environments are both {request.target!r}; name two columns")
    if request.columns is None:
        chosen = [name for name in schema.names if name not in special and not is_index(name)]
    else:
        chosen = list(request.columns)
        _check_chosen(chosen, schema, special)
    if not chosen:
        raise IcscmError("the data has no column to make rules of beside target and environments")
    return tuple(chosen)


def _check_chosen(chosen: list[str], schema: pyarrow.Schema, special: set[str | None]) -> None:
    unknown = [repr(name) for name in chosen if name not in schema.names]
    if unknown:
        raise IcscmError(f"columns names what the data does not have: {shorten_list(unknown)}")
    wrong = [repr(name) for name in chosen if name in special or chosen.count(name) > 1]
    if wrong:
        raise IcscmError(
            f"columns names the target, the environments, or a column twice: {shorten_list(wrong)}"
        )


class FirstPass(NamedTuple):
    """What pass one found."""

    survey: Survey
    labels: GroupReader
    environments: GroupReader | None
    hashes: HashFile
    hash_file: ScratchFile
    candidates: Candidates | None


def _read_first(
    reader: TableReader, names: tuple[str, ...], request: Request, budget: Budget
) -> FirstPass:
    """Pass one."""
    started = time.perf_counter()
    labels = GroupReader(request.target, "target", 2)
    environments = None
    if request.environments is not None:
        environments = GroupReader(request.environments, "environment", _MOST_ENVIRONMENTS)
    special = [name for name in (request.target, request.environments) if name is not None]
    survey: Survey | None = None
    hash_file = ScratchFile(request.temp_dir)
    candidates = Candidates() if budget.can_hold(len(names), 4 * QUANTILE_SAMPLE) else None
    try:
        hashes = HashFile(hash_file)
        for batch in reader.read([*names, *special], budget.batch_rows):
            columns = _read_columns(batch, names, request.n_threads)
            groups = labels.read(batch.column(request.target))
            own = None if environments is None else environments.read(batch.column(special[1]))
            piece = survey_piece(
                columns,
                len(batch),
                groups,
                own,
                max_thresholds=request.preparation.max_thresholds,
                names=names,
                n_threads=request.n_threads,
            )
            survey = piece if survey is None else merge_surveys(survey, piece, names)
            hashed = hash_piece(columns, len(batch), request.n_threads)
            hashes.append(hashed)
            if candidates is not None:
                candidates.add(_find_numbers(columns), hashed)
        if survey is None or survey.n_rows == 0:
            raise IcscmError("the data has no rows")
    except BaseException:
        hash_file.close()
        raise
    _log.info("pass one: %d rows in %.2f s", survey.n_rows, time.perf_counter() - started)
    return FirstPass(survey, labels, environments, hashes, hash_file, candidates)


def _read_columns(batch: pyarrow.RecordBatch, names: Sequence[str], n_threads: int) -> list[Column]:
    return run_in_parts(lambda name: read_arrow(batch.column(name), name), names, n_threads)


def _find_numbers(columns: Sequence[Column]) -> dict[int, Array]:
    """Whole numbers stay exact for as long as none is missing, as they would in memory."""
    return {
        j: read_numbers(column, is_exact=True)
        for j, column in enumerate(columns)
        if isinstance(column, Numbers)
    }


def _describe(survey: Survey, names: tuple[str, ...], asked: Preparation) -> CodedTable:
    """The columns, those that no rule should be made of left out."""
    table = describe_survey(survey, names)
    if asked.refuses_missing:
        refuse_missing(table)
    return leave_out(table, find_suspicious(survey, table), asked.keep_columns)


def _plan(reader: TableReader, first: FirstPass, table: CodedTable, budget: Budget) -> Binning:
    """Choose thresholds, if need be from the values of sampled rows."""
    started = time.perf_counter()
    survey, columns = first.survey, find_sampled(first.survey, table)
    sample = _find_sample(reader, first, table, columns, budget) if columns else {}
    binned = plan_from_survey(survey, table, sample)
    _log.info("sampled rows: %.2f s", time.perf_counter() - started)
    return binned


def _find_sample(
    reader: TableReader,
    first: FirstPass,
    table: CodedTable,
    columns: Sequence[int],
    budget: Budget,
) -> Mapping[int, Array]:
    """The values of the sampled rows: kept from pass one where that could be, else read now."""
    wanted = choose_hashes(first.hashes, budget.share)
    kept = None if first.candidates is None else first.candidates.find_values(wanted)
    if kept is not None:
        return kept
    rows = find_rows(first.hashes, wanted)
    return _read_rows(reader, columns, table, rows, budget.batch_rows)


def _read_rows(
    reader: TableReader,
    columns: Sequence[int],
    table: CodedTable,
    rows: NDArray[np.int64],
    batch_rows: int,
) -> dict[int, Array]:
    """The values of some columns in some rows."""
    assert table.names is not None
    names = [table.names[j] for j in columns]
    found: dict[int, list[Array]] = {j: [] for j in columns}
    start = 0
    for batch in reader.read(names, batch_rows):
        first, last = np.searchsorted(rows, (start, start + len(batch)))
        taken = batch.take(pyarrow.array(rows[first:last] - start))
        for j, name in zip(columns, names, strict=True):
            column = read_arrow(taken.column(name), name)
            assert isinstance(column, Numbers)
            found[j].append(read_numbers(column, is_exact=True))
        start += len(batch)
    return {j: np.concatenate(parts) for j, parts in found.items()}


def _choose_stored(binned: Binning, table: CodedTable) -> list[int]:
    """The features that have anything to count, neighbours of one layout."""
    numbers = np.arange(binned.n_features)
    n_bins = binned.count_bins(numbers)
    wide = [j for j in numbers.tolist() if j not in table.left_out and n_bins[j] > MAX_NARROW_BINS]
    if wide:
        names = shorten_list([repr(table.names[j] if table.names else j) for j in wide])
        raise IcscmError(
            f"files are binned to one byte a value, and {names} would need "
            f"{n_bins[wide].max()} bins; use a smaller ",
            Parameter("max_thresholds"),
        )
    stored = [j for j in numbers.tolist() if j not in table.left_out and n_bins[j] > 1]
    return sorted(stored, key=lambda j: (binned.find_layout(j), j))


def _write_codes(
    reader: TableReader,
    file: CodeFile,
    coder: PieceCoder,
    names: Sequence[str],
    cells: Cells,
    request: Request,
    budget: Budget,
) -> None:
    """Pass two."""
    started = time.perf_counter()
    wanted = {names[j]: j for j in coder.features}
    n_rows, start = len(cells.segments), 0
    buffer = _CodeBuffer(
        file, len(wanted), max(budget.batch_rows, budget.share // (len(wanted) + 1))
    )
    for batch in reader.read([*wanted], budget.batch_rows) if wanted else ():
        if start + len(batch) > n_rows:
            break
        columns = dict(
            zip(wanted.values(), _read_columns(batch, [*wanted], request.n_threads), strict=True)
        )
        buffer.add(coder, columns, cells.segments[start : start + len(batch)], request.n_threads)
        start += len(batch)
    buffer.flush()
    if wanted and start != n_rows:
        raise IcscmError("the files changed while they were read; nothing was learned")
    pyarrow.default_memory_pool().release_unused()
    _log.info("pass two: %.2f s", time.perf_counter() - started)


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
