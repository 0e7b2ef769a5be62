"""Tables in memory: checked, binned, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from icscm.engine.stores import Store, sort_rows
from icscm.engine.threads import count_threads
from icscm.exceptions import IcscmError
from icscm.sources.countable import SAMPLED, BinningConfig, Countable
from icscm.sources.stored import StoredSource, place
from icscm.tables.coded import CodedTable, find_missing
from icscm.tables.columns import bring, is_dask
from icscm.tables.labels import (
    check_labels,
    encode_environments,
    find_weighted_rows,
    number_environments,
    take_environments,
)
from icscm.tables.parsing import ParsedTable, make_dense, read_table

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
        Design weights, any numbers from 0 on; only their ratios matter.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as the visits of a patient; as `environments`.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The rows, for `fit_counts` of learners.

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

    >>> countable = open_memory(data.X, data.y, environments=data.environments)
    >>> print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    config = preparation or BinningConfig()
    if is_dask(X):
        raise IcscmError("X is a Dask collection, which only fit and predict take; use X.compute()")
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    y, environments, sample_weight, groups = map(bring, (y, environments, sample_weight, groups))
    given: ParsedTable | CardValues | None = None
    if config.device != "cpu":
        from icscm.sources.gpu.values import put_values  # needs CuPy

        given = put_values(X, config.device, config.max_thresholds)
    if given is None:
        given = read_table(X)
    rows = None if sample_weight is None else find_weighted_rows(sample_weight, given.n_rows)
    labels, classes = check_labels(y, given.n_rows, rows)
    numbers, places = number_environments(environments, given.n_rows, rows)
    options: dict[str, Any] = {"max_thresholds": config.max_thresholds, "n_jobs": config.n_jobs}
    options |= {"classes": classes.tolist(), "environment_labels": places, "device": config.device}
    if groups is not None:
        options["groups"] = encode_environments(groups, given.n_rows, rows, "groups")[0]
    unit = 1.0 if rows is None or sample_weight is None else len(rows) / len(np.unique(rows))
    if unit > 1:  # a row that is repeated is one sample, however often
        options = {"groups": rows, **options, "unit": unit}
    counted = labels, numbers, options
    try:
        source, table = _count(given, rows, *counted, config)
    except NotBinaryError:  # a sparse matrix; known only after a full scan
        assert isinstance(given, ParsedTable)
        source, table = _count(read_table(make_dense(given.content, rows)), rows, *counted, config)
    if config.missing == "error":
        table.reject_missing()
    sizes = table.n_columns, environments is not None
    return Countable(source, table, table.names, classes, *sizes, config=config)


def _count(
    given: ParsedTable | CardValues,
    rows: Array | None,
    labels: IntArray,
    environments: IntArray,
    options: Mapping[str, Any],
    config: BinningConfig,
) -> tuple[StoredSource, CodedTable]:
    """A source over the rows that count, and what is known of its columns."""
    binned: CodedTable | CardValues
    if isinstance(given, ParsedTable):
        table = given.code(config.max_thresholds, rows)
        if config.missing == "error" and given.whole is not None:  # before columns are dropped
            table = replace(table, has_missing=find_missing(table.values, table.names))
            table.reject_missing()
        checked = labels, environments, rows, config.keep_columns
        table = binned = given.drop_suspicious(table, *checked)
    else:
        binned = given if rows is None else given.take(rows)
        table = CodedTable(np.empty((0, len(given.values)), dtype=given.values.dtype))
    source = make_memory_source(binned, labels, environments, **options)
    # where all are 0 or 1 there may be no thresholds
    known = getattr(source.columns, "has_missing", table.has_missing)
    none = np.empty((0, table.n_columns), dtype=table.values.dtype)  # its rows are not needed
    return source, replace(table, values=none, has_missing=known)


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
    """Bin a table and make it countable.

    An array holds numbers, and NaN where one is missing; infinities are rejected. Zeros and ones
    only go straight to bits, and so do sparse matrices, which hold nothing else. Values on a card
    are binned there. For each row of X, `labels` holds 0 or 1, `environments` a position in
    `environment_labels`, and `groups` the number of the group that it belongs to. `unit` is how
    many rows stand for one sample.
    """
    position, rows = sort_rows(labels, environments, len(environment_labels))
    n_threads = count_threads(n_jobs)
    candidates: BinnedColumns
    stores: Sequence[Store]
    if not (isinstance(X, CodedTable | np.ndarray) or is_sparse(X)):
        assert max_thresholds is not None
        candidates, stores = X.encode(position, rows, max_thresholds, n_threads)
    else:
        table = X if isinstance(X, CodedTable) else CodedTable(X)
        packed = pack_binary(table, position, rows, n_threads)
        if packed is not None:
            candidates, stores = packed[0], [packed[1]]
        elif is_sparse(table.values):
            raise NotBinaryError("X is sparse and holds values other than 0 and 1; make it dense")
        else:
            candidates, stores = encode(table, position, rows, max_thresholds, n_threads)
        stores = place(stores, rows, candidates, device=device)
    notes = [SAMPLED] if isinstance(candidates, Binning) and candidates.sampled else []
    if unit > 1:
        note = f"Rows have weights. Counts are in units of weight, on average {unit:.1f} per row"
        notes.append(f"{note}; tests and intervals are for the effective number of rows.")
    info = SourceInfo(candidates, classes, environment_labels, notes)
    clusters = None
    if groups is not None:
        n_environments = len(environment_labels)
        clusters = number_clusters(groups, environments, n_environments, position, unit)
    return StoredSource(info, stores, rows, position, clusters)
