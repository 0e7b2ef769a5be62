"""Tables in memory: checked, binned, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm._types import Array
from icscm.engine.binning import Binning
from icscm.engine.bits import NotBinaryError, pack_binary
from icscm.engine.coding import encode
from icscm.engine.counts import SourceInfo
from icscm.engine.stores import Rows, Store, sort_rows
from icscm.engine.threads import count_threads
from icscm.exceptions import IcscmError
from icscm.sources.countable import SAMPLED, BinningConfig, Countable
from icscm.sources.stored import StoredSource, place
from icscm.tables.arrays import make_dense
from icscm.tables.coded import CodedTable, code_array, look_for_missing
from icscm.tables.columns import bring, is_dask
from icscm.tables.environments import number_environments, take_environments
from icscm.tables.labels import check_labels, find_counted_rows
from icscm.tables.parsing import ParsedTable, drop_suspicious, read_table, reject_missing

if TYPE_CHECKING:
    from icscm.sources.gpu.values import CardValues


class MemorySource(StoredSource):
    """Counts over binned columns held in memory; see `make_memory_source`.

    `position` says where each row of the table is among the sorted ones.
    """

    def __init__(
        self, info: SourceInfo, stores: Sequence[Store], rows: Rows, position: NDArray[np.uint32]
    ) -> None:
        super().__init__(info, stores, rows)
        self.position = position

    def take(self, rows: NDArray[np.intp], n_threads: int | None = None) -> MemorySource:
        """A source over some rows, given by their distinct numbers in the table.

        Thresholds and codes are this source's own, so nothing is binned again: what a
        resample costs is counting it. Neither source sees what the other one keeps.
        """
        wanted = np.zeros(len(self.position), dtype=np.bool_)
        wanted[self.position[rows]] = True
        taken, _ = self.piece.rows.split(~self.piece.rows.take(wanted))
        stores = [store.restrict(taken) for store in self.piece.stores]
        for store in stores:
            store.n_threads = n_threads or store.n_threads
        return MemorySource(self.info, stores, taken, self.position)

    def start_again(self) -> MemorySource:
        """A source over the same samples, all of them in play."""
        return self.take(np.arange(len(self.position)))


def open_memory(
    X: Any,
    y: Any,
    environments: Any = None,
    sample_weight: Any = None,
    *,
    preparation: BinningConfig | None = None,
) -> Countable[MemorySource]:
    """Check a table, labels and environments in memory, and make them countable.

    Parameters
    ----------
    X : array, frame or sparse matrix of shape (n_samples, n_features)
        The features. A sparse matrix of other numbers than 0 and 1 is made dense.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    environments : array-like of shape (n_samples,), str or list of str, optional
        The environment of each row, or the column of a frame that holds it; several are joined.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts: whole numbers.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The samples, for `fit_counts` of a learner; its source can be taken apart and searched
        again.

    Raises
    ------
    IcscmError
        If the table, the labels or the environments cannot be used.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_memory
    >>> data = make_conjunction(random_state=1)

    >>> countable = open_memory(data.X, data.y, data.environments)
    >>> print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    asked = preparation or BinningConfig()
    if is_dask(X):
        raise IcscmError(
            "X is a Dask collection, which only fit and predict take; bring it into memory "
            "with X.compute() if it fits"
        )
    X, environments = take_environments(X, environments)
    y, environments, sample_weight = map(bring, (y, environments, sample_weight))
    values = _put_on_card(X, asked)
    if values is not None:
        return _count_on_card(values, y, environments, sample_weight, asked)
    intake = read_table(bring(X))
    rows = find_counted_rows(sample_weight, intake.n_rows)
    labels, classes = check_labels(y, intake.n_rows, rows)
    numbers, environment_labels = number_environments(environments, intake.n_rows, rows)

    def count(intake: ParsedTable) -> Countable[MemorySource]:
        table = intake.code(asked.max_thresholds, rows)
        if asked.missing == "error":
            # of an array, binning finds out; of a frame, columns are judged before that
            reject_missing(table if intake.whole is None else look_for_missing(table))
        table = drop_suspicious(intake, table, labels, numbers, rows, asked.keep_columns)
        source = make_memory_source(
            table,
            labels,
            numbers,
            classes=classes.tolist(),
            environment_labels=environment_labels,
            max_thresholds=asked.max_thresholds,
            n_jobs=asked.n_jobs,
            device=asked.device,
        )
        known, has_environments = table.drop_rows(), environments is not None
        if isinstance(source.candidates, Binning):  # else all are 0 or 1
            known = replace(known, has_missing=source.candidates.has_missing)
        if asked.missing == "error":
            reject_missing(known)
        return Countable(
            source, known, table.names, classes, table.n_columns, has_environments, config=asked
        )

    try:
        return count(intake)
    except NotBinaryError:  # a sparse matrix; known only when all of it was looked at
        return count(read_table(make_dense(intake.content, rows)))


def _put_on_card(X: Any, asked: BinningConfig) -> CardValues | None:
    if asked.device == "cpu":
        return None
    from icscm.sources.gpu.values import put_values  # most never ask for it

    return put_values(X, asked.device, asked.max_thresholds)


def _count_on_card(
    values: CardValues, y: Any, environments: Any, sample_weight: Any, asked: BinningConfig
) -> Countable[MemorySource]:
    """The same of a plain table of floats, which is binned where it will be counted."""
    counted = find_counted_rows(sample_weight, values.n_rows)
    labels, classes = check_labels(y, values.n_rows, counted)
    numbers, environment_labels = number_environments(environments, values.n_rows, counted)
    if counted is not None:
        values = values.take(counted)
    known = np.empty((0, values.n_columns), dtype=values.values.dtype)
    table = CodedTable(known, has_missing=values.has_missing if values.has_missing.any() else None)
    if asked.missing == "error":
        reject_missing(table)
    position, rows = sort_rows(labels, numbers, len(environment_labels))
    assert asked.max_thresholds is not None
    sizes = asked.max_thresholds, count_threads(asked.n_jobs)
    binning, stores = values.encode(position, rows, *sizes)
    notes = [SAMPLED] if binning.sampled else []
    info = SourceInfo(binning, classes.tolist(), environment_labels, notes)
    source = MemorySource(info, stores, rows, position)
    has_environments = environments is not None
    return Countable(source, table, None, classes, table.n_columns, has_environments, config=asked)


def make_memory_source(
    X: Array | CodedTable,
    labels: Array,
    environments: Array,
    *,
    classes: Sequence[Any] = (0, 1),
    environment_labels: Sequence[Any],
    max_thresholds: int | None = 50,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> MemorySource:
    """Bin a table and make it countable.

    An array holds numbers, and NaN where one is missing; infinities are refused. Zeros and ones
    only go straight to bits, and so do sparse matrices, which hold nothing else. For each row of
    X, `labels` holds 0 or 1 and `environments` a position in `environment_labels`.
    """
    table = X if isinstance(X, CodedTable) else code_array(X)
    position, rows = sort_rows(labels, environments, len(environment_labels))
    own = table, position, rows
    n_threads = count_threads(n_jobs)
    packed = pack_binary(*own, n_threads)
    if packed is not None:
        info = SourceInfo(packed[0], classes, environment_labels)
        return MemorySource(info, place([packed[1]], rows, device), rows, position)
    if issparse(table.values):
        raise NotBinaryError("X is sparse and holds other values than 0 and 1; give a dense array")
    binning, stores = encode(*own, max_thresholds=max_thresholds, n_threads=n_threads)
    info = SourceInfo(binning, classes, environment_labels, [SAMPLED] if binning.sampled else [])
    return MemorySource(info, place(stores, rows, device), rows, position)
