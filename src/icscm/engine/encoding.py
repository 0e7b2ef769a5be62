"""From values to stores: every column coded once, in the order of the sorted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    CODE_DTYPE,
    FIRST_LOOK_ROWS,
    GUESS_PLACES,
    MAX_NARROW_BINS,
    MIN_THREADED_CELLS,
    QUANTILE_SAMPLE,
)
from icscm._types import Array
from icscm.engine import _kernels
from icscm.engine._kernels.coding import SearchTable
from icscm.engine.binning import (
    Binning,
    ColumnPlan,
    find_layout,
    make_binning,
    plan_columns,
    plan_levels,
    sample_rows,
)
from icscm.engine.counts import ORDERED, Layout
from icscm.engine.rows import Rows
from icscm.engine.stores import BitStore, CodeStore, Store
from icscm.engine.threads import run_tasks, split_columns
from icscm.tables.coding import CodedTable

Columns = NDArray[np.int64]

# Cells compared at a time when constant columns are confirmed.
_CONSTANT_CELLS = 2**20


def encode(
    table: CodedTable,
    position: NDArray[np.uint32],
    rows: Rows,
    *,
    max_thresholds: int | None,
    n_threads: int,
) -> tuple[Binning, list[Store]]:
    """Choose thresholds for the columns and store each in the fewest bits that hold it.

    Categories come as they are. For the others, each look settles some columns and leaves the
    rest to the next, which sees more rows. A column of few values is settled when all rows
    confirm, while they are coded, that it has no others; one of many values when the look's
    quantiles are those we want. Which rows the first look sees makes no difference to the
    outcome: columns of few values are cut at each of them, all others as the sample says.
    """
    X = table.values
    n_threads = n_threads if X.size >= MIN_THREADED_CELLS else 1
    coder = _Coder(table, position, rows, n_threads)
    edges: list[Array] = [np.empty(0, X.dtype)] * X.shape[1]

    def code(plan: ColumnPlan) -> Columns:
        for column, column_edges in zip(plan.columns, plan.edges, strict=True):
            edges[column] = column_edges
        return coder.code(plan)

    code(plan_levels(table, np.array(sorted({*table.levels} - {*table.left_out}), dtype=np.int64)))
    sample: ColumnPlan | None = None
    is_sampled = False
    numbers, has_missing = table.find_numbers(), table.find_missing()
    left = np.setdiff1d(numbers, np.array([*table.left_out], dtype=np.int64))
    for look in _list_looks(X, numbers, max_thresholds, n_threads):
        if len(left) == 0:
            break
        plan = plan_columns(X, left, has_missing, look.find_rows(), look.max_thresholds, n_threads)
        if look.is_sample:
            sample = plan
        elif sample is not None:
            plan = plan.cut_unknown_as(sample, max_thresholds)
        ready = plan if look.settles_many else plan.select(plan.known)
        is_sampled |= sample is not None and not plan.known.all()
        left = np.union1d(np.setdiff1d(left, ready.columns), code(ready))
    return make_binning(edges, table, is_sampled), coder.stores


class _Look(NamedTuple):
    """Some rows to plan columns from, and whether they settle columns of many values."""

    find_rows: Callable[[], Any]
    max_thresholds: int | None
    settles_many: bool
    is_sample: bool


def _list_looks(
    X: Array, numbers: Columns, max_thresholds: int | None, n_threads: int
) -> Iterator[_Look]:
    step = len(X) // FIRST_LOOK_ROWS
    if step >= 8:  # else all rows are nearly as quick to look at
        few = min(max_thresholds or MAX_NARROW_BINS, MAX_NARROW_BINS) - 1
        yield _Look(lambda: slice(None, None, step), few, settles_many=False, is_sample=False)
    # more thresholds than a byte can tell apart want more than a sample
    if len(X) > QUANTILE_SAMPLE and (max_thresholds or MAX_NARROW_BINS) < MAX_NARROW_BINS:
        yield _Look(
            lambda: sample_rows(X, numbers, n_threads), max_thresholds, True, is_sample=True
        )
    yield _Look(lambda: slice(None), max_thresholds, settles_many=True, is_sample=False)


class _Coder:
    """Turns planned columns into stores; tells which were not as planned."""

    def __init__(
        self, table: CodedTable, position: NDArray[np.uint32], rows: Rows, n_threads: int
    ) -> None:
        self._X = table.values
        self._has_missing = table.find_missing()
        self._levels = table.levels
        self._position = position
        self._rows = rows
        self._n_threads = n_threads
        self.stores: list[Store] = []

    def code(self, plan: ColumnPlan) -> Columns:
        """Store the columns; return those that hold values which the plan did not know of."""
        if not self._levels and not self._has_missing.any():
            return np.concatenate(self._code_alike(plan, ORDERED))
        layouts = [find_layout(j, self._levels, self._has_missing) for j in plan.columns.tolist()]
        surprises = [plan.columns[:0]]
        for layout in sorted(set(layouts)):
            alike = plan.select(np.array([each == layout for each in layouts], dtype=np.bool_))
            surprises += self._code_alike(alike, layout)
        return np.concatenate(surprises)

    def _code_alike(self, plan: ColumnPlan, layout: Layout) -> list[Columns]:
        """Columns of one layout, each in the narrowest kind of store."""
        n_bins = np.array([len(edges) + 1 for edges in plan.edges], dtype=np.int64)
        is_narrow = (n_bins > 2) & (n_bins <= MAX_NARROW_BINS)
        return [
            self._code_singly(plan.select(n_bins > MAX_NARROW_BINS), layout),
            self._check_constant(plan.select(n_bins == 1)),
            self._pack(plan.select(n_bins == 2), layout),
            self._code(plan.select(is_narrow), layout),
        ]

    def _check_constant(self, plan: ColumnPlan) -> Columns:
        """Constant columns are not stored, but are they constant?"""
        surprised = np.zeros(len(plan.columns), dtype=np.bool_)
        size = max(1, _CONSTANT_CELLS // len(self._X))
        for start in range(0, len(surprised), size):
            part = slice(start, start + size)
            surprised[part] = (self._X[:, plan.columns[part]] != plan.highest[part]).any(axis=0)
        return plan.columns[surprised]

    def _pack(self, plan: ColumnPlan, layout: Layout) -> Columns:
        """Columns of two bins, a bit a cell."""
        if len(plan.columns) == 0:
            return plan.columns
        store = BitStore(plan.columns, self._rows, self._n_threads, layout)
        bit_position = store.bits[self._position]
        edge = np.concatenate(plan.edges)
        surprised = np.zeros(len(plan.columns), dtype=np.bool_)

        def pack_part(part: slice) -> None:
            _kernels.pack_columns(
                self._X,
                bit_position,
                plan.columns[part],
                edge[part],
                plan.known[part],
                plan.highest[part],
                store.words[part],
                surprised[part],
            )

        self._run(pack_part, len(plan.columns))
        self._keep(store.select(~surprised))
        return plan.columns[surprised]

    def _code(self, plan: ColumnPlan, layout: Layout) -> Columns:
        """Columns of up to 256 bins, a byte a cell."""
        if len(plan.columns) == 0:
            return plan.columns
        table = make_search_table(plan.edges, self._X.dtype)
        codes = np.empty((len(plan.columns), len(self._X)), dtype=CODE_DTYPE)
        surprised = np.zeros(len(plan.columns), dtype=np.bool_)

        def code_part(part: slice) -> None:
            _kernels.code_columns(
                self._X,
                self._position,
                plan.columns[part],
                SearchTable(*(each[part] for each in table)),
                plan.known[part],
                plan.highest[part],
                codes[part],
                surprised[part],
            )

        self._run(code_part, len(plan.columns))
        if surprised.any():
            codes = codes[~surprised]
        n_bins = int(table.n_edges.max()) + 1
        columns = plan.columns[~surprised]
        self._keep(CodeStore(columns, codes, n_bins, self._rows, self._n_threads, layout))
        return plan.columns[surprised]

    def _code_singly(self, plan: ColumnPlan, layout: Layout) -> Columns:
        """Columns of any number of bins, each a store of its own, two or four bytes a cell."""
        surprised = np.zeros(len(plan.columns), dtype=np.bool_)
        for k, (column, edges) in enumerate(zip(plan.columns, plan.edges, strict=True)):
            values = self._X[:, column]
            is_missing = values != values
            codes = np.where(is_missing, 0, np.searchsorted(edges, values, side="left"))
            levels = np.append(edges, plan.highest[k])
            surprised[k] = plan.known[k] and ((levels[codes] != values) & ~is_missing).any()
            if not surprised[k]:
                ordered = np.empty((1, len(codes)), dtype=np.min_scalar_type(len(edges)))
                ordered[0, self._position] = codes
                one, n_bins = np.array([column]), len(edges) + 1
                self._keep(CodeStore(one, ordered, n_bins, self._rows, self._n_threads, layout))
        return plan.columns[surprised]

    def _run(self, function: Callable[[slice], None], n_columns: int) -> None:
        run_tasks(function, split_columns(n_columns, self._n_threads), self._n_threads)

    def _keep(self, store: Store) -> None:
        if len(store.features):
            self.stores.append(store)


def make_search_table(edges: list[Array], dtype: np.dtype[Any]) -> SearchTable:
    """The edges of some columns as the coding kernel wants them."""
    n_edges = np.array([len(part) for part in edges])
    width = 2 ** int(n_edges.max()).bit_length() + 1
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padded = np.full((len(edges), width), greatest, dtype=dtype)
    for row, part in zip(padded, edges, strict=True):
        row[: len(part)] = part
    guess = np.zeros((len(edges), GUESS_PLACES), dtype=CODE_DTYPE)
    low, scale = np.zeros((2, len(edges)))
    for k, part in enumerate(edges):
        low[k], scale[k] = _fill_guess(part.astype(np.float64), guess[k])
    return SearchTable(padded, n_edges, guess, low, scale)


def _fill_guess(edges: NDArray[np.float64], guess: NDArray[np.uint8]) -> tuple[float, float]:
    """Line the edges up on the places of `guess`; scale 0 where more than two would share one."""
    last = GUESS_PLACES - 1
    with np.errstate(over="ignore", divide="ignore"):
        scale = last / (edges[-1] - edges[0])
    if len(edges) < 4 or not 0 < scale < np.inf:
        return 0.0, 0.0
    places = np.clip((edges - edges[0]) * scale, 0, last).astype(np.intp)
    if np.bincount(places).max() > 2:
        return 0.0, 0.0
    guess[:] = np.searchsorted(places, np.arange(GUESS_PLACES), side="left")
    return float(edges[0]), float(scale)
