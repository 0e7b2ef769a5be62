"""The columns of a table in bins, without an outcome: for whoever brings one of another kind.

Counts are by outcome, which must have two classes. The screen of columns takes any outcome and adds
up values of its own; it needs bins and environments only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from icscm._types import IntArray
from icscm.engine.bits import NotBinaryError
from icscm.exceptions import IcscmError
from icscm.sources.memory import make_memory_source
from icscm.sources.stored import StoredSource
from icscm.tables.coded import CodedTable
from icscm.tables.columns import bring, is_dask
from icscm.tables.environments import encode_environments, number_environments
from icscm.tables.parsing import make_dense, read_table
from icscm.tables.suspicion import find_empty


@dataclass(frozen=True, eq=False)
class OpenColumns:
    """A table in bins, with what is known of its rows and of columns that have no bins.

    Attributes
    ----------
    source : StoredSource
        The bins of the columns, and the environments.
    n_rows : int
        The number of rows.
    has_environments : bool
        Whether environments were given.
    groups : array of int or None
        The number of the group of each row, if there are groups.
    empty_columns : list of int
        Columns without any value.
    date_columns : list of int
        Columns of dates, which are not binned.
    """

    source: StoredSource
    n_rows: int
    has_environments: bool
    groups: IntArray | None
    empty_columns: list[int]
    date_columns: list[int]


def open_columns(
    X: Any, *, environments: Any, groups: Any, max_thresholds: int | None, n_jobs: int | None
) -> OpenColumns:
    """Check a table and its environments, and bin all columns; no column is dropped."""
    if is_dask(X):
        raise IcscmError("X is a Dask collection, which a screen does not take; use X.compute()")
    table = read_table(X)
    numbers, labels = number_environments(bring(environments), table.n_rows)
    group_numbers = None
    if groups is not None:
        group_numbers = encode_environments(bring(groups), table.n_rows, what="groups")[0]

    coded = table.code(max_thresholds, None)
    try:
        source = _bin(coded, numbers, labels, max_thresholds=max_thresholds, n_jobs=n_jobs)
    except NotBinaryError:  # a sparse matrix of other numbers than 0 and 1
        table = read_table(make_dense(table.content))
        coded = table.code(max_thresholds, None)
        source = _bin(coded, numbers, labels, max_thresholds=max_thresholds, n_jobs=n_jobs)
    date_columns = sorted(coded.dropped)
    return OpenColumns(
        source=source,
        n_rows=table.n_rows,
        has_environments=environments is not None,
        groups=group_numbers,
        empty_columns=find_empty(coded),
        date_columns=date_columns,
    )


def _bin(
    columns: CodedTable,
    environments: IntArray,
    labels: Any,
    *,
    max_thresholds: int | None,
    n_jobs: int | None,
) -> StoredSource:
    """Bin all columns; dates, which have no order that a rule could use, are constants."""
    no_outcome = np.zeros(len(environments), dtype=np.int64)
    return make_memory_source(
        columns,
        no_outcome,
        environments,
        environment_labels=labels,
        max_thresholds=max_thresholds,
        n_jobs=n_jobs,
    )
