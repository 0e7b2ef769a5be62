"""Learning from files larger than memory: the table is read two or three times, never held.

    pass one       types, levels, distinct values; labels, environments and row hashes
    sampled rows   the values of some rows, where thresholds are quantiles, if rows have copies
    pass two       one byte for each cell, in a temporary file, sorted by label and environment

The search then walks the temporary file. What it finds, and the trace, are those of the same table
in memory: thresholds depend on the rows only, not on how they are stored.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray
from pyarrow import types

from icscm._constants import MAX_NARROW_BINS, QUANTILE_SAMPLE, ROW_DTYPE
from icscm.columns import CodedTable
from icscm.engine.binning import Binning
from icscm.engine.mapped import CodeFile, MappedSource, make_mapped_source
from icscm.engine.memory import SAMPLED
from icscm.engine.rows import Rows
from icscm.engine.sampling import Candidates, HashFile, choose_hashes, find_rows
from icscm.engine.scratch import ScratchFile
from icscm.engine.survey import (
    Groups,
    PieceCoder,
    Survey,
    describe_survey,
    find_sampled,
    find_suspicious,
    hash_piece,
    merge_surveys,
    plan_from_survey,
    read_numbers,
    survey_piece,
)
from icscm.engine.threads import count_threads, run_in_parts
from icscm.environments import encode_environments
from icscm.exceptions import IcscmError
from icscm.intake import leave_out, refuse_missing
from icscm.streams import TableReader, open_table
from icscm.table import Column, Numbers, read_arrow
from icscm.text import shorten_list
from icscm.validation import check_labels

Array = NDArray[Any]

_log = logging.getLogger(__name__)

# Memory that a row takes beyond what is read and written: its number while it is in play, and
# again while those that leave are told from those that stay; its label and environment.
_BYTES_PER_ROW = 16
# Memory of the process before it reads anything, where the system does not tell.
_USUAL_RESIDENT = 2**28
# Memory for counts and for arithmetic on a block of candidates.
_SEARCH_BYTES = 2**26
# Rows read at a time: enough to keep threads busy, few enough to stay near the cache.
_MOST_BATCH_ROWS = 2**16
_LEAST_BATCH_ROWS = 2**8
# Rows coded before they are written: runs of many kilobytes even with many environments.
_BUFFER_ROWS = 2**20
# Labels of environments are few; a column with more values is something else.
_MOST_ENVIRONMENTS = 2**16

# How pandas names the numbers of rows that it writes as a column.
_INDEX = re.compile(r"__index_level_\d+__$")

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass(frozen=True)
class Request:
    """What `fit_dataset` was asked for, and the learner's parameters that reading depends on."""

    target: str
    environments: str | None
    columns: Sequence[str] | None
    positive: Any
    max_memory: int | str
    temp_dir: str | Path | None
    max_thresholds: int | None
    refuses_missing: bool
    keep_columns: Any
    n_threads: int


class CountableFiles(NamedTuple):
    """Files made countable, and what the learner keeps of how they are."""

    source: MappedSource
    table: CodedTable
    names: tuple[str, ...]
    classes: Array


def parse_size(size: int | str) -> int:
    """A size in bytes: a whole number, or a number with a unit.

    >>> parse_size("2GiB"), parse_size("500 MB"), parse_size(1000)
    (2147483648, 500000000, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    n_bytes = int(float(found[1]) * _UNITS.get(found[2].upper(), 0)) if found else 0
    if n_bytes == 0:
        raise IcscmError(
            "max_memory must be a number of bytes, or a size such as '2GiB' or '500MB'; got "
            f"{size!r}"
        )
    return n_bytes


def make_request(learner: Any, **asked: Any) -> Request:
    """The wishes of a caller of `fit_dataset`, with the learner's parameters."""
    most = learner.max_thresholds
    if most is None or most >= MAX_NARROW_BINS:
        raise IcscmError(
            f"files are binned to one byte a value: max_thresholds must be at most "
            f"{MAX_NARROW_BINS - 1} here; got {most!r}"
        )
    return Request(
        **asked,
        max_thresholds=most,
        refuses_missing=learner.missing == "error",
        keep_columns=learner.keep_columns,
        n_threads=count_threads(learner.n_jobs),
    )


@contextmanager
def open_countable(data: Any, request: Request) -> Iterator[CountableFiles]:
    """Read the files and make them countable; the temporary store lasts as long as the context."""
    reader = open_table(data)
    names = _choose_features(reader.schema, request)
    budget = _Budget.make(request.max_memory, reader, len(names))
    first = _read_first(reader, names, request, budget)
    with first.hash_file:
        cells = _Cells.make(first, request.positive)
        budget.check_rows(first.survey.n_rows)
        table = _describe(first.survey, names, request)
        binned = _plan(reader, first, table, budget)
    features = _choose_stored(binned, table)
    with ScratchFile(request.temp_dir) as scratch:
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
        try:
            yield CountableFiles(source, table, names, cells.classes)
        finally:
            source.close()


# --- what was asked for --------------------------------------------------------


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
        chosen = [name for name in schema.names if name not in special and not _INDEX.match(name)]
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


@dataclass(frozen=True)
class _Budget:
    """How the memory is shared out: `share` bytes for each of what is held at the same time."""

    limit: int
    used: int
    batch_rows: int
    share: int

    @classmethod
    def make(cls, max_memory: int | str, reader: TableReader, n_columns: int) -> _Budget:
        limit, used = parse_size(max_memory), _measure_resident()
        share = (limit - used - reader.estimate_bytes() - _SEARCH_BYTES) // 4
        row_bytes = 3 * 8 * n_columns  # as read, as numbers, and once more while they are looked at
        if share < _LEAST_BATCH_ROWS * row_bytes:
            least = used + reader.estimate_bytes() + _SEARCH_BYTES + 2**10 * row_bytes
            raise IcscmError(
                f"max_memory={max_memory!r} is too little: the process takes {used / 1e6:,.0f} MB "
                f"before it reads anything, and reading and searching {n_columns:,} columns more; "
                f"allow at least {least / 1e6:,.0f} MB"
            )
        return cls(limit, used, min(_MOST_BATCH_ROWS, share // row_bytes), share)

    def can_hold(self, n_columns: int, n_rows: int) -> bool:
        """Whether the numbers of so many rows fit."""
        return 8 * n_columns * n_rows <= self.share

    def check_rows(self, n_rows: int) -> None:
        """Raise if so many rows cannot be searched within the limit."""
        least = self.used + _SEARCH_BYTES + n_rows * _BYTES_PER_ROW
        if least > self.limit:
            raise IcscmError(
                f"max_memory is too little for {n_rows:,} rows: allow at least "
                f"{least / 1e6:,.0f} MB"
            )
        if n_rows > np.iinfo(ROW_DTYPE).max:
            raise IcscmError(
                f"{n_rows:,} rows are more than the {np.iinfo(ROW_DTYPE).max:,} at most"
            )


def _measure_resident() -> int:
    """Bytes of memory that this process takes now."""
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return n_pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _USUAL_RESIDENT  # other systems do not tell


# --- pass one --------------------------------------------------------------------


class _GroupReader:
    """Numbers the values of the column of labels, or of environments, as they turn up."""

    def __init__(self, name: str, role: str, most: int) -> None:
        self._name = name
        self._role = role
        self._most = most
        self._parts: list[Array] = []
        self._n_rows = 0
        self.known: pyarrow.Array | None = None

    def read(self, array: pyarrow.Array) -> Groups:
        """The next rows."""
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        self._check_present(array)
        known = array.slice(0, 0) if self.known is None else self.known
        codes = pyarrow.compute.index_in(array, value_set=known)
        if codes.null_count:
            new = pyarrow.compute.unique(array.filter(codes.is_null()))
            known = pyarrow.concat_arrays([known, new])
            codes = pyarrow.compute.index_in(array, value_set=known)
        self.known = known
        if len(known) > self._most:
            self._refuse(known)
        numbers = codes.to_numpy(zero_copy_only=False).astype(np.min_scalar_type(len(known)))
        self._parts.append(numbers)
        self._n_rows += len(numbers)
        return Groups(numbers, known.to_pylist())

    def take_parts(self) -> Iterator[Array]:
        """The number of each row's value, batch by batch, given away."""
        self._parts.reverse()
        while self._parts:
            yield self._parts.pop()

    def _check_present(self, array: pyarrow.Array) -> None:
        is_missing = array.is_null(nan_is_null=types.is_floating(array.type))
        if is_missing.true_count:
            first = is_missing.index(True).as_py() + self._n_rows
            raise IcscmError(
                f"column {self._name!r}, the {self._role}, is missing (null or NaN) in row "
                f"{first:,}; drop such rows" + self._advice()
            )

    def _advice(self) -> str:
        return "" if self._role == "target" else " or give them a label of their own"

    def _refuse(self, known: pyarrow.Array) -> None:
        some = shorten_list([repr(value) for value in known[:3].to_pylist()])
        what = "classes; merge them into two, or fit one model per class"
        if self._role != "target":
            what = "environments; group them"
        raise IcscmError(
            f"column {self._name!r}, the {self._role}, holds {some} and more: over "
            f"{self._most:,} {what}"
        )


class _FirstPass(NamedTuple):
    survey: Survey
    labels: _GroupReader
    environments: _GroupReader | None
    hashes: HashFile
    hash_file: ScratchFile
    candidates: Candidates | None


def _read_first(
    reader: TableReader, names: tuple[str, ...], request: Request, budget: _Budget
) -> _FirstPass:
    """Pass one."""
    started = time.perf_counter()
    labels = _GroupReader(request.target, "target", 2)
    environments = None
    if request.environments is not None:
        environments = _GroupReader(request.environments, "environment", _MOST_ENVIRONMENTS)
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
                max_thresholds=request.max_thresholds,
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
    return _FirstPass(survey, labels, environments, hashes, hash_file, candidates)


def _read_columns(batch: pyarrow.RecordBatch, names: Sequence[str], n_threads: int) -> list[Column]:
    return run_in_parts(lambda name: read_arrow(batch.column(name), name), names, n_threads)


def _find_numbers(columns: Sequence[Column]) -> dict[int, Array]:
    """Whole numbers stay exact for as long as none is missing, as they would in memory."""
    return {
        j: read_numbers(column, is_exact=True)
        for j, column in enumerate(columns)
        if isinstance(column, Numbers)
    }


# --- between the passes ------------------------------------------------------------


class _Cells(NamedTuple):
    """Each row's segment - label, then environment - in the order of the files."""

    segments: Array
    rows: Rows
    classes: Array
    environment_labels: tuple[Any, ...]

    @classmethod
    def make(cls, first: _FirstPass, positive: Any) -> _Cells:
        """Number labels and environments as `fit` does."""
        label_ranks, classes = _rank_labels(first.labels, positive)
        n_rows = first.survey.n_rows
        ranks, found = np.zeros(1, dtype=np.int64), ("all",)
        parts: Iterator[Array] | None = None
        if first.environments is not None:
            known = pyarrow.chunked_array([first.environments.known])
            ranks, found = encode_environments(known, len(known))
            parts = first.environments.take_parts()
        n_segments = 2 * len(found)
        segments = np.empty(n_rows, dtype=np.min_scalar_type(n_segments))
        start = 0
        for labels in first.labels.take_parts():
            own = ranks[0] if parts is None else ranks[next(parts)]
            segments[start : start + len(labels)] = label_ranks[labels] * len(found) + own
            start += len(labels)
        bounds = np.zeros(n_segments + 1, dtype=np.int64)
        np.cumsum(_count_each(segments, n_segments), out=bounds[1:])
        return cls(segments, Rows(None, bounds), classes, found)


def _count_each(segments: Array, n_segments: int) -> NDArray[np.int64]:
    """As `bincount`, without eight bytes a row."""
    parts = range(0, len(segments), 2**20)
    counts = [np.bincount(segments[i : i + 2**20], minlength=n_segments) for i in parts]
    return np.asarray(np.sum(counts, axis=0, dtype=np.int64))


def _rank_labels(labels: _GroupReader, positive: Any) -> tuple[NDArray[np.int64], Array]:
    """0 or 1 for each value of the label, and the two classes in this order."""
    assert labels.known is not None
    found = labels.known.to_pylist()
    if len(found) == 1:
        raise IcscmError(f"the target holds one class only, {found[0]!r}; learning needs two")
    ranks, classes = check_labels(labels.known.to_numpy(zero_copy_only=False), len(found))
    if positive is None or positive == classes[1]:
        return ranks, classes
    if positive != classes[0]:
        raise IcscmError(
            f"positive={positive!r} is none of the classes, {' and '.join(map(repr, found))}"
        )
    return 1 - ranks, classes[::-1]


def _describe(survey: Survey, names: tuple[str, ...], request: Request) -> CodedTable:
    """The columns, those that no rule should be made of left out."""
    table = describe_survey(survey, names)
    if request.refuses_missing:
        refuse_missing(table)
    return leave_out(table, find_suspicious(survey, table), request.keep_columns, stacklevel=9)


def _plan(reader: TableReader, first: _FirstPass, table: CodedTable, budget: _Budget) -> Binning:
    """Choose thresholds, if need be from the values of sampled rows."""
    started = time.perf_counter()
    survey, columns = first.survey, find_sampled(first.survey, table)
    sample = _find_sample(reader, first, table, columns, budget) if columns else {}
    binned = plan_from_survey(survey, table, sample)
    _log.info("sampled rows: %.2f s", time.perf_counter() - started)
    return binned


def _find_sample(
    reader: TableReader,
    first: _FirstPass,
    table: CodedTable,
    columns: Sequence[int],
    budget: _Budget,
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
            f"{n_bins[wide].max()} bins; use a smaller max_thresholds"
        )
    stored = [j for j in numbers.tolist() if j not in table.left_out and n_bins[j] > 1]
    return sorted(stored, key=lambda j: (binned.find_layout(j), j))


# --- pass two ----------------------------------------------------------------------


def _write_codes(
    reader: TableReader,
    file: CodeFile,
    coder: PieceCoder,
    names: Sequence[str],
    cells: _Cells,
    request: Request,
    budget: _Budget,
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
