"""Tables in memory: checked, binned, and made countable.

Learners count rows by the bin of each column, by outcome and environment. `open_memory` makes that
possible in three steps:

    X                        _read_table      numbers and levels; X may be on a graphics card
    y, environments, groups  _label_rows      a number for each row, without rows of weight 0
    all of them              _make_countable  bins in stores, sorted by outcome and environment

A *store* holds the bins of some columns, for all rows, in one format. Other sources that have
numbers already use `make_memory_source`, the main part of the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._changes import data_by_name
from icscm._lazy import is_sparse
from icscm._types import Array, IntArray
from icscm.engine.binning import Binning
from icscm.engine.bits import NotBinaryError, pack_binary
from icscm.engine.clusters import number_clusters
from icscm.engine.coding import encode
from icscm.engine.counts import BinnedColumns, SourceInfo
from icscm.engine.stores import Rows, Store, sort_rows
from icscm.engine.threads import count_threads
from icscm.sources.countable import SAMPLED, BinningConfig, Countable
from icscm.sources.stored import StoredSource, place
from icscm.tables.coded import CodedTable
from icscm.tables.columns import bring, check_in_memory
from icscm.tables.environments import encode_environments, number_environments, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.parsing import ParsedTable, make_dense, read_table
from icscm.tables.weights import find_weighted_rows

if TYPE_CHECKING:
    from icscm.sources.gpu.values import CardValues


@data_by_name
def open_memory(
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    preparation: BinningConfig | None = None,
) -> Countable[StoredSource]:
    """Check a table, outcomes and environments in memory, and make its rows countable.

    Parameters
    ----------
    X : array, frame or sparse matrix of shape (n_samples, n_features)
        The columns. A sparse matrix of other numbers than 0 and 1 is made dense.
    y : array-like of shape (n_samples,)
        Outcomes of two classes.
    environments : array-like of shape (n_samples,), str or list of str, optional
        The environment of each row, or the column of a frame that holds it; several are joined.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as the visits of a patient; as `environments`.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights, any numbers from 0 on; only their ratios matter.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The rows, for `fit_counts` of learners.

    Raises
    ------
    IcscmError
        If the table, the outcomes or the environments cannot be used.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_memory
    >>> data = make_conjunction(random_state=1)

    >>> countable = open_memory(data.X, data.y, environments=data.environments)
    >>> print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    config = preparation or BinningConfig()
    check_in_memory(X)

    # Environments and groups may be names of columns of X, which are not learned from then.
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")

    table = _read_table(X, config)
    labels = _label_rows(
        bring(y),
        table.n_rows,
        environments=bring(environments),
        groups=bring(groups),
        sample_weight=bring(sample_weight),
    )

    try:
        countable_rows = _make_countable(table, labels, config)
    except NotBinaryError:
        # A sparse matrix is packed as bits, and only then a number other than 0 and 1 shows.
        assert isinstance(table, ParsedTable), "only a ParsedTable holds a sparse matrix"
        dense_table = read_table(make_dense(table.content, labels.table_rows))
        countable_rows = _make_countable(dense_table, labels, config)

    source = countable_rows.source
    columns = countable_rows.columns
    return Countable(
        source,
        table=columns,
        names=columns.names,
        classes=labels.classes,
        n_features=columns.n_columns,
        has_environments=environments is not None,
        config=config,
    )


@dataclass(frozen=True, eq=False)
class _LabelledRows:
    """The rows that count, with what is known of each besides its columns.

    A row of weight 3 counts as three rows would, one of weight 0 not at all:

        weights of 4 rows    1 0 3 1
        table_rows           0 2 2 2 3      the rows that count, all arrays below are by these
        outcomes             0 1 1 1 0

    Attributes
    ----------
    table_rows : array, optional
        Their numbers in the table, repeated as their weights say; None if all rows count once.
    outcomes : array
        0 or 1.
    classes : array of shape (2,)
        What the two outcomes are called.
    environments : array
        The number of each row's environment.
    environment_names : sequence
        The name of each environment.
    groups : array, optional
        The number of each row's group; None if all rows are independent.
    unit : float
        How often a row is repeated by its weight, on average; 1 without weights.
    """

    table_rows: Array | None
    outcomes: IntArray
    classes: Array
    environments: IntArray
    environment_names: Sequence[Any]
    groups: Array | None
    unit: float


def _read_table(X: Any, config: BinningConfig) -> ParsedTable | CardValues:
    """Read a table, on the card if that is where it belongs."""
    if config.device != "cpu":
        from icscm.sources.gpu.values import put_values  # needs CuPy

        values = put_values(X, config.device, config.max_thresholds)
        if values is not None:
            return values
    return read_table(X)


def _label_rows(
    y: Any, n_rows: int, *, environments: Any, groups: Any, sample_weight: Any
) -> _LabelledRows:
    """Check and number the outcomes, environments and groups of the rows that count.

    The copies of a row that its weight repeats are a group, unless groups are given: tests must
    not take them for independent rows.
    """
    table_rows = None
    unit = 1.0
    if sample_weight is not None:
        table_rows = find_weighted_rows(sample_weight, n_rows)
    if table_rows is not None:
        n_different_rows = len(np.unique(table_rows))
        unit = len(table_rows) / n_different_rows

    outcomes, classes = check_labels(y, n_rows, table_rows)
    environment_of_row, environment_names = number_environments(environments, n_rows, table_rows)

    group_of_row = None
    if groups is not None:
        group_of_row = encode_environments(groups, n_rows, table_rows, "groups")[0]
    elif unit > 1:
        group_of_row = table_rows

    return _LabelledRows(
        table_rows=table_rows,
        outcomes=outcomes,
        classes=classes,
        environments=environment_of_row,
        environment_names=environment_names,
        groups=group_of_row,
        unit=unit,
    )


@dataclass(frozen=True, eq=False)
class _CountableRows:
    """The rows that count, made countable.

    Attributes
    ----------
    source : StoredSource
        Holds the rows, as bins.
    columns : CodedTable
        What is known of the columns: names, levels, which have missing values, and which are
        dropped and why. It has no rows.
    """

    source: StoredSource
    columns: CodedTable


def _make_countable(
    table: ParsedTable | CardValues, labels: _LabelledRows, config: BinningConfig
) -> _CountableRows:
    """Make a source of the rows that count, and describe the columns of their table.

        table          values of the rows that count    columns as described
        ParsedTable    coded: a number for each         names, levels, what is dropped and why
        CardValues     taken, on the card               how many, and their type

    All rows are first taken as `labels.table_rows` lists them, since the other arrays of `labels`
    have an entry for each of these. From then on the source owns the rows, as bins: the description
    is a `CodedTable` with columns but no rows, so that the memory of the values can be freed.

    Raises
    ------
    NotBinaryError
        If the table is sparse and holds other numbers than 0 and 1.
    """
    counted_values: CodedTable | CardValues
    if isinstance(table, ParsedTable):
        coded_table = table.code(max_levels=config.max_thresholds, rows=labels.table_rows)
        columns = table.drop_unusable(
            coded_table,
            labels=labels.outcomes,
            environments=labels.environments,
            rows=labels.table_rows,
            drop_suspicious=config.drop_suspicious,
        )
        counted_values = columns
    else:
        n_columns = len(table.values)  # they are (column, row) on a card
        columns = CodedTable(np.empty((0, n_columns), dtype=table.values.dtype))
        counted_values = table
        if labels.table_rows is not None:
            counted_values = table.take(labels.table_rows)

    source = make_memory_source(
        counted_values,
        labels.outcomes,
        labels.environments,
        classes=labels.classes.tolist(),
        environment_labels=labels.environment_names,
        max_thresholds=config.max_thresholds,
        n_jobs=config.n_jobs,
        device=config.device,
        groups=labels.groups,
        unit=labels.unit,
    )

    # Binning found which columns have missing values; bits, for a table of 0 and 1, have none.
    if isinstance(source.columns, Binning):
        columns = replace(columns, has_missing=source.columns.has_missing)
    no_rows = np.empty((0, columns.n_columns), dtype=columns.values.dtype)
    return _CountableRows(source=source, columns=replace(columns, values=no_rows))


def make_memory_source(
    X: Any,
    labels: Array,
    environments: Array,
    *,
    classes: Sequence[Any] = (0, 1),
    environment_labels: Sequence[Any],
    max_thresholds: int | None = 50,
    n_jobs: int | None = None,
    device: str = "cpu",
    groups: Array | None = None,
    unit: float = 1.0,
) -> StoredSource:
    """Bin a table and make a source of its rows, sorted by outcome and environment.

    Every learner counts in such a source, whatever the table was; here its values, outcomes and
    environments are numbers already.

    Parameters
    ----------
    X : array, sparse matrix, CodedTable or CardValues
        An array holds numbers, and NaN where one is missing; infinities are rejected. A sparse
        matrix holds zeros and ones only.
    labels, environments, groups : arrays with a value for each row of X
        The outcome, 0 or 1; a position in `environment_labels`; the number of its group.
    unit : float
        How often a row is repeated by its weight, on average.
    """
    n_environments = len(environment_labels)
    # `position[i]` is the place of row i of X once rows are sorted by outcome and environment.
    position, sorted_rows = sort_rows(labels, environments, n_environments)
    binned = _bin_values(
        X,
        position,
        sorted_rows,
        max_thresholds=max_thresholds,
        n_threads=count_threads(n_jobs),
        device=device,
    )
    clusters = None
    if groups is not None:
        clusters = number_clusters(groups, environments, n_environments, position, unit)
    info = SourceInfo(
        columns=binned.columns,
        classes=classes,
        environments=environment_labels,
        notes=list_notes(binned.columns, unit),
    )
    return StoredSource(info, binned.stores, sorted_rows, position, clusters)


@dataclass(frozen=True, eq=False)
class _BinnedTable:
    """How the columns were binned, and the stores that hold the sorted rows of those that vary."""

    columns: BinnedColumns
    stores: Sequence[Store]


def _bin_values(
    X: Any,
    position: Array,
    sorted_rows: Rows,
    *,
    max_thresholds: int | None,
    n_threads: int,
    device: str,
) -> _BinnedTable:
    """Bin values where they are: those on a card there, all others in memory.

    Stores made in memory are then placed on the device that counts. `position` has the place of
    each row of X among the sorted rows.
    """
    is_in_memory = isinstance(X, CodedTable | np.ndarray) or is_sparse(X)
    if not is_in_memory:
        assert max_thresholds is not None  # `put_values` leaves other tables in memory
        columns, stores = X.encode(position, sorted_rows, max_thresholds, n_threads)
        return _BinnedTable(columns, stores)

    table = X if isinstance(X, CodedTable) else CodedTable(X)
    binned = _bin_in_memory(
        table, position, sorted_rows, max_thresholds=max_thresholds, n_threads=n_threads
    )
    placed_stores = place(binned.stores, sorted_rows, binned.columns, device=device)
    return _BinnedTable(binned.columns, placed_stores)


def _bin_in_memory(
    table: CodedTable,
    position: Array,
    sorted_rows: Rows,
    *,
    max_thresholds: int | None,
    n_threads: int,
) -> _BinnedTable:
    """Pack a table as bits if all values are 0 or 1, which needs no thresholds; else bin it."""
    packed = pack_binary(table, position, sorted_rows, n_threads)
    if packed is not None:
        packed_columns, bits = packed
        return _BinnedTable(packed_columns, stores=[bits])

    if is_sparse(table.values):
        raise NotBinaryError("X is sparse and holds values other than 0 and 1; make it dense")

    columns, stores = encode(table, position, sorted_rows, max_thresholds, n_threads)
    return _BinnedTable(columns, stores)


def list_notes(columns: BinnedColumns, unit: float) -> list[str]:
    """List the remarks on sampled thresholds and on weights."""
    notes = []
    if isinstance(columns, Binning) and columns.sampled:
        notes.append(SAMPLED)
    if unit > 1:
        notes.append(
            f"Rows have weights. Counts are in units of weight, on average {unit:.1f} per row; "
            "tests and intervals are for the effective number of rows."
        )
    return notes
