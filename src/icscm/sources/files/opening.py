"""Learning from files larger than memory, which are read two or three times in batches.

    of text        a pass before all others finds the types of the columns
    pass one       types, levels, distinct values; outcomes, environments and row hashes
    sampled rows   the values of some rows, where thresholds are quantiles, if rows have copies
    pass two       one byte for each cell, in a temporary file, sorted by outcome and environment

The search then counts in the temporary file. Its model and trace equal those of the same table in
memory: thresholds depend on the rows only, not on how they are stored.

The rows of one outcome and one environment are a *segment*. Segments are numbered
outcome * n_environments + environment, the order in which they lie in the temporary file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow
import pyarrow.compute
from pyarrow import types

from icscm._changes import data_by_name
from icscm._constants import MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import Array, Hashes, IntArray
from icscm.engine.binning import Binning
from icscm.engine.clusters import Clusters, number_clusters
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
from icscm.tables.labels import ADVICE_ON_OTHER_OUTCOMES, check_labels

# How many values the columns of outcomes, environments and groups may have.
_MAX_VALUES = {"target": 2, "environments": 2**16, "groups": 2**31}


class GroupReader:
    """Numbers the values of a column with a role: of outcomes, of environments, or of groups.

    They are numbered as they turn up, so a value has the same number in every batch:

        batches of cells    north north west | west east
        numbers             0     0     1    | 1    2
    """

    def __init__(self, name: str, role: str) -> None:
        self.name = name
        self._role = role.rstrip("s")
        self._max_values = _MAX_VALUES[role]
        self._numbers_of_batches: list[Array] = []
        #: the values that turned up so far; None before the first batch
        self.values: pyarrow.Array | None = None

    def read(self, cells: pyarrow.Array) -> Groups:
        """Number the values of the next rows by their first appearance in the column.

        first rows     b a b     numbers 0 1 0     values b a
        next rows      c b       numbers 2 0       values b a c
        """
        cells = read_arrow_groups(cells, self._describe())
        self._reject_missing(cells)

        no_values = cells.slice(0, 0)
        values = no_values if self.values is None else self.values
        numbers = pyarrow.compute.index_in(cells, value_set=values)
        has_new_values = numbers.null_count > 0
        if has_new_values:
            new_values = pyarrow.compute.unique(cells.filter(numbers.is_null()))
            values = pyarrow.concat_arrays([values, new_values])
            numbers = pyarrow.compute.index_in(cells, value_set=values)
        self.values = values
        self._reject_too_many(values)

        # The numbers of all rows stay in memory, in as few bytes as they need.
        narrow_dtype = np.min_scalar_type(len(values))
        number_of_row = numbers.to_numpy(zero_copy_only=False).astype(narrow_dtype)
        self._numbers_of_batches.append(number_of_row)
        return Groups(number_of_row, values.to_pylist())

    def list_numbers(self) -> Array:
        """List the number of each row's value."""
        return np.concatenate(self._numbers_of_batches)

    def _describe(self) -> str:
        return f"column {self.name!r}, the {self._role},"

    def _reject_missing(self, cells: pyarrow.Array) -> None:
        """Raise if a row has no value; the message names the first such row."""
        is_missing = cells.is_null(nan_is_null=types.is_floating(cells.type))
        if not is_missing.true_count:
            return
        n_rows_before = sum(map(len, self._numbers_of_batches))
        row = n_rows_before + is_missing.index(True).as_py()
        raise make_missing_error(self._describe(), f"row {row:,}", is_label=self._role == "target")

    def _reject_too_many(self, values: pyarrow.Array) -> None:
        """Raise if there are more values than the role allows."""
        if len(values) <= self._max_values:
            return
        examples = shorten_list([repr(value) for value in values[:3].to_pylist()])
        what = f"{self._describe()} holds {examples} and more: over {self._max_values:,}"
        if self._role != "target":
            raise IcscmError(f"{what} environments; group them")
        raise IcscmError(
            f"{what} classes; merge them into two, or fit one model per class",
            *ADVICE_ON_OTHER_OUTCOMES,
        )


@dataclass(frozen=True)
class SegmentedRows:
    """The segment of each row, in the order of the files: its outcome and its environment."""

    segments: Array
    environments: Sequence[Any]

    @property
    def n_environments(self) -> int:
        """How many environments there are."""
        return len(self.environments)

    def list_outcomes(self) -> Array:
        """List the outcome of each row, 0 or 1."""
        outcomes: Array = self.segments // self.n_environments
        return outcomes

    def list_environments(self) -> Array:
        """List the number of each row's environment."""
        environments: Array = self.segments % self.n_environments
        return environments


def number_segments(
    outcome_of_label: IntArray, readers: Mapping[str, GroupReader]
) -> SegmentedRows:
    """Number the segment of each row: outcome * n_environments + environment.

    `readers` have the columns of outcomes ("target") and environments, whose values they numbered
    as they turned up. Here environments get the numbers that `fit` gives them in memory, in the
    order of their names. Segments are computed in as few bytes a row as they need.
    """
    environment_reader = readers.get("environments")
    if environment_reader is None:
        environment_of_value, environments = number_environments(None, 1)
    else:
        values = pyarrow.chunked_array([environment_reader.values])
        environment_of_value, environments = number_environments(values, len(values))

    n_environments = len(environments)
    narrow_dtype = np.min_scalar_type(2 * n_environments)
    first_segment_of_label = (outcome_of_label * n_environments).astype(narrow_dtype)
    segments = first_segment_of_label[readers["target"].list_numbers()]
    if environment_reader is not None:
        segments += environment_of_value.astype(narrow_dtype)[environment_reader.list_numbers()]
    return SegmentedRows(segments, environments)


@dataclass(frozen=True)
class RankedLabels:
    """Which of the two values of the target is outcome 0, and which is outcome 1.

    `outcome_of_label` has the outcome of each value, as the reader numbers them; `classes` are the
    values in the order of their outcomes.
    """

    outcome_of_label: IntArray
    classes: Array


def rank_labels(reader: GroupReader, positive: Any) -> RankedLabels:
    """Find out which of the two labels is outcome 1: `positive`, or else the second in order.

    `reader` numbered the labels as they turned up; the result has the outcome by that number.
    """
    assert reader.values is not None, "there are rows"
    labels = reader.values.to_pylist()
    if len(labels) == 1:
        raise IcscmError(f"the target holds one class only, {labels[0]!r}; learning needs two")

    label_array = reader.values.to_numpy(zero_copy_only=False)
    outcome_of_label, classes = check_labels(label_array, len(labels))
    if positive is None or positive == classes[1]:
        return RankedLabels(outcome_of_label, classes)
    if positive == classes[0]:
        return RankedLabels(outcome_of_label=1 - outcome_of_label, classes=classes[::-1])
    listed = " and ".join(map(repr, labels))
    raise IcscmError(f"positive={positive!r} is not one of the classes, {listed}")


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
        The column of outcomes.
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
        The rows, for `fit_counts` of a learner.

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
    max_thresholds = _check_max_thresholds(config)
    n_threads = count_threads(config.n_jobs)

    # What is read, and in how much memory.
    reader = open_table(data, text)
    roles = {"target": target, "environments": environments, "groups": groups}
    names = _choose_columns(reader.schema.names, roles, columns)
    budget = Budget.make(max_memory, reader, len(names))
    file = TableFile(reader, names, budget, n_threads)
    mapped.map_file(0, temp_dir).close()  # so that an unusable folder is found before pass one

    # Pass one: what the columns hold, and the outcome and environment of each row.
    surveyed = _survey(file, roles, max_thresholds)
    survey = surveyed.survey
    readers = surveyed.readers
    labels = rank_labels(readers["target"], positive)
    rows = number_segments(labels.outcome_of_label, readers)

    # Only now is known how many rows there are, for which memory is set aside.
    budget = budget.divide(survey.n_rows, has_groups=groups is not None)
    file = replace(file, budget=budget)

    # The thresholds; some rows are read again if they are quantiles of sampled rows.
    table = countable.describe_columns(survey, names, config)
    binning = _plan_binning(file, surveyed, table)
    del surveyed  # 8 bytes a row for its hash, which pass two needs

    # Pass two: every value becomes the number of its bin, in a temporary file of sorted rows.
    stored_columns = _choose_stored(binning, table)
    position, sorted_rows = sort_rows(
        rows.list_outcomes(), rows.list_environments(), rows.n_environments
    )
    info = SourceInfo(
        columns=binning,
        classes=labels.classes.tolist(),
        environments=rows.environments,
        notes=[countable.SAMPLED] if binning.sampled else [],
    )
    codes = CodeFile(len(stored_columns), sorted_rows, temp_dir, n_threads)
    with ExitStack() as stack:
        stack.callback(codes.close)  # if anything below fails
        _write_codes(file, codes, PieceCoder(binning, stored_columns), rows.segments)
        source = mapped.make_mapped_source(
            info,
            stored_columns,
            codes,
            position,
            block_bytes=budget.share,
            device=config.device,
            clusters=_number_clusters(readers, rows, position),
        )
        stack.pop_all()  # from here on, the user closes the file

    return Countable(
        source,
        table=table,
        names=names,
        classes=labels.classes,
        n_features=len(names),
        has_environments=environments is not None,
        close=partial(mapped.close_source, source, codes),
        config=config,
    )


def _check_max_thresholds(config: BinningConfig) -> int:
    """Return the number of thresholds; raise if bins could need more than a byte."""
    max_thresholds = config.max_thresholds
    if max_thresholds is None or max_thresholds >= MAX_NARROW_BINS:
        why = f" must be at most {MAX_NARROW_BINS - 1} here; got {max_thresholds!r}"
        name = Parameter("max_thresholds")
        raise IcscmError("files are binned to one byte per value: ", name, why)
    return max_thresholds


def _choose_columns(
    names: Sequence[str], roles: Mapping[str, str | None], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """Choose the columns to make rules of: those that the user named, or all without a role."""
    names_of_roles = [name for name in roles.values() if name is not None]
    if columns is None:
        chosen = [name for name in names if name not in names_of_roles and not is_index(name)]
    else:
        chosen = list(columns)

    named = [*names_of_roles, *chosen]
    check_columns(named, names, "the data")
    repeated = [repr(name) for name, n_times in Counter(named).items() if n_times > 1]
    if repeated:
        raise IcscmError(
            f"{shorten_list(repeated)} is named twice among target, environments, groups and "
            "columns; a column can have one role only"
        )
    if not chosen:
        raise IcscmError("the data has no column besides the target, environments and groups")
    return tuple(chosen)


@dataclass(frozen=True)
class TableFile:
    """A table in files: how it is read, and the names of the columns to make rules of."""

    reader: TableReader
    names: tuple[str, ...]
    budget: Budget
    n_threads: int

    def read(self, names: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Read all rows of some columns, a batch at a time."""
        return read_ahead(self.reader.read(names, self.budget.batch_rows), self.n_threads)

    def read_columns(self, batch: pyarrow.RecordBatch, names: Sequence[str]) -> list[Column]:
        """Turn some columns of a batch into numbers and levels."""
        return run_in_parts(
            lambda name: read_arrow(batch.column(name), name), names, self.n_threads
        )


@dataclass(frozen=True, eq=False)
class SurveyedFile:
    """What pass one finds in all rows.

    Attributes
    ----------
    readers : mapping of str to GroupReader
        The columns with a role, by role, with the number of each row's value.
    survey : Survey
        What the other columns hold.
    hashes : list of array
        The hash of each row, by batch.
    lowest : SampledRows, optional
        The rows of lowest hash with their values, which are the sample unless rows have copies;
        None where they would take too much memory.
    """

    readers: Mapping[str, GroupReader]
    survey: Survey
    hashes: list[Hashes]
    lowest: SampledRows | None


def _survey(file: TableFile, roles: Mapping[str, str | None], max_thresholds: int) -> SurveyedFile:
    """Read all rows once, and find all that is needed to choose the bins of columns: pass one.

    For each batch of rows:

        1. number the outcomes, environments and groups, which are the columns with a role
        2. survey the other columns: their types, levels and distinct values so far
        3. check that there is memory for what is kept of each row so far
        4. hash the rows, since the rows of lowest hash are the sample for thresholds
    """
    readers = {role: GroupReader(name, role) for role, name in roles.items() if name is not None}
    names_of_roles = [reader.name for reader in readers.values()]
    survey: Survey | None = None
    hashes: list[Hashes] = []
    lowest: SampledRows | None = None
    keeps_lowest = _can_keep_lowest(file)

    for batch in file.read([*file.names, *names_of_roles]):
        if len(batch) == 0:
            continue
        columns = file.read_columns(batch, file.names)
        groups = {role: reader.read(batch.column(reader.name)) for role, reader in readers.items()}

        survey_of_batch = survey_piece(
            columns,
            len(batch),
            groups["target"],
            groups.get("environments"),
            max_thresholds=max_thresholds,
            names=file.names,
            n_threads=file.n_threads,
        )
        if survey is None:
            survey = survey_of_batch
        else:
            survey = merge_surveys(survey, survey_of_batch, file.names)

        # Raises as soon as there are too many rows.
        file.budget.divide(survey.n_rows, has_groups="groups" in readers)

        hashes_of_batch = hash_piece(columns, len(batch), file.n_threads)
        hashes.append(hashes_of_batch)
        if keeps_lowest:
            lowest = _add_lowest(lowest, columns, hashes_of_batch)

    if survey is None:
        raise IcscmError("the data has no rows")
    return SurveyedFile(readers=readers, survey=survey, hashes=hashes, lowest=lowest)


# Tables of as many rows as the sample that are held at a time while it is collected: the sample so
# far, the rows of a batch, and twice as many where the two are merged.
_SAMPLES_HELD = 4


def _can_keep_lowest(file: TableFile) -> bool:
    """Return whether there is memory for the values of the rows of lowest hash."""
    bytes_of_row = 8 * len(file.names)
    return _SAMPLES_HELD * QUANTILE_SAMPLE * bytes_of_row <= file.budget.share


def _add_lowest(
    lowest: SampledRows | None, columns: Sequence[Column], hashes: Hashes
) -> SampledRows:
    """Add the rows of a batch to those of lowest hash so far, and keep the lowest of both.

    They are the sample, unless rows have copies: which copies are in it depends on their number,
    known only at the end. `lowest` is None before the first batch; its hashes ascend.
    """
    all_columns = range(len(columns))
    all_rows = np.arange(len(hashes))
    if lowest is None:
        return merge_sampled([take_rows(columns, all_columns, hashes, all_rows)])

    # A full sample takes a row only in place of the one with the highest hash.
    is_full = is_sampled(len(lowest.hashes) + 1)
    candidates = all_rows
    if is_full:
        highest_kept = lowest.hashes[-1]
        candidates = np.flatnonzero(hashes < highest_kept)
    if len(candidates) == 0:
        return lowest
    return merge_sampled([lowest, take_rows(columns, all_columns, hashes, candidates)])


def _plan_binning(file: TableFile, surveyed: SurveyedFile, table: CodedTable) -> Binning:
    """Choose thresholds; files are read again only if some are quantiles of sampled rows."""
    survey = surveyed.survey
    sampled_columns = find_sampled(survey, table)
    values_of_columns: dict[int, Array] = {}
    if sampled_columns:
        values_of_columns = _read_sample(file, sampled_columns, surveyed)
    return plan_from_survey(survey, table, values_of_columns)


def _read_sample(
    file: TableFile, columns: Sequence[int], surveyed: SurveyedFile
) -> dict[int, Array]:
    """Read the sampled rows' values of some columns, unless pass one kept them.

    The sample is in the order of hashes, and the files are read in the order of rows:

        hashes of the sample    3  7  9
        their rows              40 5  12
        as they are read        5  12 40      of hashes 7, 9 and 3
    """
    sample = mapped.choose_rows(surveyed.hashes, file.budget.share)
    lowest = surveyed.lowest
    if lowest is not None and np.array_equal(lowest.hashes, sample.hashes):
        return sample.repeat(lowest)

    row_of_hash = mapped.find_rows(surveyed.hashes, sample)
    order = np.argsort(row_of_hash)
    sampled_rows = row_of_hash[order]
    hash_of_row = sample.hashes[order]

    names = [file.names[column] for column in columns]
    parts: list[SampledRows] = []
    first_row = 0  # of the table, in the batch
    for batch in file.read(names):
        stop_row = first_row + len(batch)
        start, stop = np.searchsorted(sampled_rows, (first_row, stop_row))
        rows_in_batch = pyarrow.array(sampled_rows[start:stop] - first_row)
        values_of_columns = file.read_columns(batch.take(rows_in_batch), names)
        part = take_rows(
            columns=dict(zip(columns, values_of_columns, strict=True)),
            wanted_columns=columns,
            hashes=hash_of_row[start:stop],
            rows=np.arange(len(rows_in_batch)),
        )
        parts.append(part)
        first_row = stop_row
    return sample.repeat(merge_sampled(parts))


def _choose_stored(binning: Binning, table: CodedTable) -> list[int]:
    """Choose the columns that have anything to count, those of one layout next to each other."""
    n_bins = binning.count_bins(np.arange(binning.n_features))
    usable = [
        column
        for column in range(binning.n_features)
        if column not in table.dropped and n_bins[column] > 1
    ]
    too_wide = [column for column in usable if n_bins[column] > MAX_NARROW_BINS]
    if too_wide:
        why = (
            f"files are binned to one byte a value, but {name_columns(too_wide, table.names)} "
            f"would need {n_bins[too_wide].max()} bins; use a smaller "
        )
        raise IcscmError(why, Parameter("max_thresholds"))
    return sorted(usable, key=lambda column: (binning.find_layout(column), column))


def _number_clusters(
    readers: Mapping[str, GroupReader], rows: SegmentedRows, position: Array
) -> Clusters | None:
    """Number the groups of rows in each environment; None if all rows are independent."""
    if "groups" not in readers:
        return None
    groups = readers["groups"].list_numbers()
    return number_clusters(groups, rows.list_environments(), rows.n_environments, position)


# Memory of a row in the buffer besides its codes: what sorting it takes.
_BYTES_TO_SORT = 16


class _CodeBuffer:
    """Collects the codes of several batches before they are written to the code file.

    The file is sorted by segment: the more rows are written together, the longer are the runs of
    each segment, and the quicker is the disk.

    Parameters
    ----------
    file : CodeFile
        Where the codes go.
    segments : array of shape (n_rows,)
        The segment of each row of the table, in the order in which rows are added.
    n_columns : int
        How many codes a row has.
    max_rows : int
        How many rows are collected.
    """

    def __init__(self, file: CodeFile, segments: Array, *, n_columns: int, max_rows: int) -> None:
        self._file = file
        self._segments = segments
        self._codes = np.empty((n_columns, max_rows), dtype=np.uint8)
        self._first_row = 0
        self._stop_row = 0

    @property
    def n_rows_to_come(self) -> int:
        """How many rows of the table have not been added yet."""
        return len(self._segments) - self._stop_row

    def add_rows(self, n_rows: int) -> Array:
        """Make room for the next rows, and return the array (column, row) to fill with their codes.

        Where they do not fit, the rows so far are written first.
        """
        max_rows = self._codes.shape[1]
        n_buffered = self._stop_row - self._first_row
        if n_buffered + n_rows > max_rows:
            self.write()
            n_buffered = 0

        self._stop_row += n_rows
        return self._codes[:, n_buffered : n_buffered + n_rows]

    def write(self) -> None:
        """Write the rows in the buffer, and empty it."""
        n_buffered = self._stop_row - self._first_row
        self._file.write(
            self._codes[:, :n_buffered], self._segments[self._first_row : self._stop_row]
        )
        self._first_row = self._stop_row


def _write_codes(table: TableFile, file: CodeFile, coder: PieceCoder, segments: Array) -> None:
    """Read the table a second time, and write the code of each value, the number of its bin.

    `coder` knows the columns and their bins. `segments` has an entry for each row that was read
    the first time: its outcome and environment, as one number, by which the file is sorted. Raises
    if the table has more or fewer rows now, since then it has changed.
    """
    columns = coder.columns
    if not columns:
        _release_read_memory()
        return

    # As many rows are collected as fit the share of memory that is left for them.
    bytes_of_row = len(columns) + _BYTES_TO_SORT
    rows_in_share = table.budget.share // bytes_of_row
    buffer = _CodeBuffer(
        file,
        segments,
        n_columns=len(columns),
        max_rows=max(table.budget.batch_rows, rows_in_share),
    )

    names = [table.names[column] for column in columns]
    for batch in table.read(names):
        if len(batch) > buffer.n_rows_to_come:
            _reject_changed_files()
        values = table.read_columns(batch, names)
        values_of_columns = dict(zip(columns, values, strict=True))
        codes_to_fill = buffer.add_rows(len(batch))
        coder.code(values_of_columns, out=codes_to_fill, n_threads=table.n_threads)
    buffer.write()

    if buffer.n_rows_to_come > 0:
        _reject_changed_files()
    _release_read_memory()


def _reject_changed_files() -> NoReturn:
    """Raise for a table that does not have the rows that it had when it was first read."""
    raise IcscmError("the files changed while they were read; nothing was learned")


def _release_read_memory() -> None:
    """Give memory back in which batches were read: pyarrow would keep it, and counting needs it."""
    pyarrow.default_memory_pool().release_unused()
