"""From values to stores: every column coded once, in the order of the sorted rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import CODE_DTYPE, MAX_NARROW_BINS, MIN_THREADED_CELLS
from icscm.engine import _kernels
from icscm.engine.binning import (
    Binning,
    ColumnPlan,
    choose_edges,
    make_binning,
    plan_columns,
    sample_rows,
)
from icscm.engine.rows import Rows
from icscm.engine.stores import BitStore, CodeStore, Store
from icscm.engine.threads import run_tasks, split_columns

Array = NDArray[Any]
Columns = NDArray[np.int64]


def encode(
    X: Array,
    position: NDArray[np.uint32],
    rows: Rows,
    *,
    names: tuple[str, ...] | None,
    max_thresholds: int | None,
    n_threads: int,
) -> tuple[Binning, list[Store]]:
    """Choose thresholds for the columns of X and store each in the fewest bits that hold it.

    Two-valued columns take a bit a cell, up to 256 bins a byte, more two or four bytes;
    constant columns are not stored. Columns that turn out to hold values which the sample
    lacked are planned again from all their rows.
    """
    n_threads = n_threads if X.size >= MIN_THREADED_CELLS else 1
    sample = None if max_thresholds is None else sample_rows(X, n_threads)
    plan = plan_columns(X, sample, max_thresholds, n_threads)
    coder = _Coder(X, position, rows, plan, n_threads)
    n_bins = np.array([len(edges) + 1 for edges in plan.edges])
    stores = [
        *coder.pack(np.flatnonzero(n_bins == 2)),
        *coder.code(np.flatnonzero((n_bins > 2) & (n_bins <= MAX_NARROW_BINS))),
    ]
    if sample is not None:
        coder.check_constant(np.flatnonzero(n_bins == 1))
    for column in coder.surprises:
        plan.edges[column] = choose_edges(np.sort(X[:, column]), max_thresholds)[0]
    wide = np.flatnonzero(n_bins > MAX_NARROW_BINS)
    stores += coder.code_singly(np.sort(np.append(wide, coder.surprises).astype(np.int64)))
    return make_binning(plan.edges, names, sampled=sample is not None), stores


class _Coder:
    """Turns groups of columns into stores and collects those that were not as planned."""

    def __init__(
        self, X: Array, position: NDArray[np.uint32], rows: Rows, plan: ColumnPlan, n_threads: int
    ) -> None:
        self.X = X
        self.position = position
        self.rows = rows
        self.plan = plan
        self.n_threads = n_threads
        self.surprises: list[int] = []

    def pack(self, columns: Columns) -> list[Store]:
        """Columns of two bins, a bit a cell."""
        if len(columns) == 0:
            return []
        store = BitStore(columns, self.rows, self.n_threads)
        bit_position = store.bits[self.position]
        edge = np.array([self.plan.edges[column][0] for column in columns], dtype=self.X.dtype)
        known, highest = self.plan.known[columns], self.plan.highest[columns]
        surprised = np.zeros(len(columns), dtype=np.bool_)

        def pack_part(part: slice) -> None:
            _kernels.pack_columns(
                self.X,
                bit_position,
                columns[part],
                edge[part],
                known[part],
                highest[part],
                store.words[part],
                surprised[part],
            )

        self._run(pack_part, len(columns))
        self._note(columns[surprised])
        return [store.select(~surprised)]

    def code(self, columns: Columns) -> list[Store]:
        """Columns of up to 256 bins, a byte a cell."""
        if len(columns) == 0:
            return []
        edges, n_edges = _pad_edges([self.plan.edges[column] for column in columns], self.X.dtype)
        codes = np.empty((len(columns), len(self.X)), dtype=CODE_DTYPE)
        known, highest = self.plan.known[columns], self.plan.highest[columns]
        surprised = np.zeros(len(columns), dtype=np.bool_)

        def code_part(part: slice) -> None:
            _kernels.code_columns(
                self.X,
                self.position,
                columns[part],
                edges[part],
                n_edges[part],
                known[part],
                highest[part],
                codes[part],
                surprised[part],
            )

        self._run(code_part, len(columns))
        self._note(columns[surprised])
        if surprised.any():
            columns, codes = columns[~surprised], codes[~surprised]
        return [CodeStore(columns, codes, int(n_edges.max()) + 1, self.rows, self.n_threads)]

    def check_constant(self, columns: Columns) -> None:
        """Columns that were constant in the sample: are they?"""
        for column in columns:
            if (self.X[:, column] != self.plan.highest[column]).any():
                self._note([column])

    def code_singly(self, columns: Columns) -> list[Store]:
        """Columns of any number of bins, one after the other, each a store of its own."""
        return [self._code_column(column) for column in columns]

    def _code_column(self, column: int) -> Store:
        edges = self.plan.edges[column]
        codes = np.empty((1, len(self.X)), dtype=np.min_scalar_type(len(edges)))
        codes[0, self.position] = np.searchsorted(edges, self.X[:, column], side="left")
        return CodeStore(np.array([column]), codes, len(edges) + 1, self.rows, self.n_threads)

    def _run(self, function: Any, n_columns: int) -> None:
        run_tasks(function, split_columns(n_columns, self.n_threads), self.n_threads)

    def _note(self, columns: Any) -> None:
        self.surprises += [int(column) for column in columns]


def _pad_edges(edges: list[Array], dtype: np.dtype[Any]) -> tuple[Array, NDArray[np.int64]]:
    """Thresholds as the coding kernel wants them: one row each, padded to a power of two."""
    n_edges = np.array([len(part) for part in edges])
    width = 2 ** int(n_edges.max()).bit_length()
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padded = np.full((len(edges), width), greatest, dtype=dtype)
    for row, part in zip(padded, edges, strict=True):
        row[: len(part)] = part
    return padded, n_edges
