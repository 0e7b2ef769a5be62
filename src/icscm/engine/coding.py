"""From values to bin numbers: a whole table into stores, or a piece of one column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._constants import (
    CODE_DTYPE,
    FIRST_LOOK_ROWS,
    GUESS_PLACES,
    INFINITE,
    MAX_NARROW_BINS,
    MIN_THREADED_CELLS,
    MISSING,
    ROW_DTYPE,
)
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine import _kernels, binning
from icscm.engine.binning import Binning, ColumnPlan
from icscm.engine.counts import ORDERED, Layout
from icscm.engine.sampling import choose_sample, hash_rows, is_sampled
from icscm.engine.stores import BitStore, CodeStore, Rows, Store
from icscm.engine.threads import run_in_parts, run_tasks, split_columns, split_rows
from icscm.tables.coded import CodedTable
from icscm.tables.columns import Column, Level, Levels, Numbers, read_numbers, sort_key
from icscm.tables.errors import reject_infinity

if TYPE_CHECKING:
    from icscm.engine._kernels.coding import SearchTable

# Cells compared at a time when constant columns are confirmed.
_CONSTANT_CELLS = 2**20
# Columns whose guesses are made together: they stay in the second-level cache.
_GUESSED_TOGETHER = 2**8


def encode(
    table: CodedTable, position: Array, rows: Rows, max_thresholds: int | None, n_threads: int
) -> tuple[Binning, list[Store]]:
    """Choose thresholds for the columns and store each in the fewest bits that hold it.

    Categories come as they are. For the others, each scan finishes some columns and leaves the
    rest to the next, which sees more rows. A column of few values is finished when all rows
    confirm, while they are coded, that it has no others; one of many values when the scan's
    quantiles are the final ones. Which rows the first scan sees makes no difference to the
    outcome: columns of few values are cut at each of them, all others at quantiles of the sample.

    That values are missing, or infinite, is found on the way as well, if the table does not know:
    where all rows are hashed or planned from, and where a column that was taken to have neither is
    coded.
    """
    X = table.values
    n_threads = n_threads if X.size >= MIN_THREADED_CELLS else 1
    has_missing = table.find_missing().copy()
    no_edges = [np.empty(0, X.dtype)] * X.shape[1]
    coder = _Coder(table, position, rows, n_threads, no_edges, has_missing)
    categories = np.array(sorted({*table.levels} - {*table.dropped}), dtype=np.int64)
    coder.code(binning.plan_levels(table, categories))
    sample: ColumnPlan | None = None
    any_sampled = False
    numbers, unused = table.find_numbers(), np.array([*table.dropped], dtype=np.int64)
    left = np.setdiff1d(numbers, unused)
    for j in np.intersect1d(numbers, unused).tolist():  # few, and checked nowhere else
        has_missing[j] |= bool((X[:, j] != X[:, j]).any())
        if X.dtype.kind == "f" and np.isinf(X[:, j]).any():
            reject_infinity(X, table.names)
    scans = _list_scans(table, numbers, max_thresholds, n_threads) if len(left) else ()
    for kind, scanned, most, is_odd in scans:
        has_missing |= is_odd
        plan = binning.plan_columns(table, left, has_missing, scanned, most, n_threads)
        has_missing[plan.columns] |= plan.has_missing
        if kind == "sample":
            sample = plan
        elif sample is not None:
            plan = plan.cut_unknown_as(sample, max_thresholds)
        ready = plan.select(plan.known) if kind == "first" else plan
        any_sampled |= sample is not None and not plan.known.all()
        left = np.union1d(np.setdiff1d(left, ready.columns), coder.code(ready))
        if len(left) == 0:
            break  # before the next scan takes any time
    # without the thresholds below which values are missing
    edges = [part[int(gap) :] for part, gap in zip(coder.edges, has_missing, strict=True)]
    stores = [store for store in coder.stores if len(store.features)]
    return binning.make_binning(edges, table.names, has_missing, table.levels, any_sampled), stores


def _list_scans(
    table: CodedTable, numbers: IntArray, max_thresholds: int | None, n_threads: int
) -> Iterator[tuple[str, Array | slice, int | None, BoolArray | bool]]:
    """Some rows to plan columns from: "first" ones, which finish columns of few values, a "sample"
    or "all"; the most thresholds; and in which columns missing values were met on the way.
    """
    X = table.values
    step = len(X) // FIRST_LOOK_ROWS
    if step >= 8:  # else all rows are nearly as quick to scan
        few = min(max_thresholds or MAX_NARROW_BINS, MAX_NARROW_BINS) - 1
        yield "first", slice(None, None, step), few, False
    # more thresholds than a byte can number need all rows
    if is_sampled(len(X)) and (max_thresholds or MAX_NARROW_BINS) < MAX_NARROW_BINS:
        hashes, odd = hash_rows(X, numbers, n_threads)
        if (odd & INFINITE).any():
            reject_infinity(X, table.names)
        yield "sample", choose_sample(hashes, n_threads), max_thresholds, (odd & MISSING) > 0
    yield "all", slice(None), max_thresholds, False


@dataclass
class _Coder:
    """Turns planned columns into stores; finds those that were not as planned.

    `edges` are the thresholds of all columns, as planned last, and `has_missing` says which of
    them are known to hold missing values.
    """

    table: CodedTable
    position: Array
    rows: Rows
    n_threads: int
    edges: list[Array]
    has_missing: BoolArray
    stores: list[Store] = field(default_factory=list)

    def code(self, plan: ColumnPlan) -> IntArray:
        """Store the columns, those of one layout and width together.

        Returns the columns with values that the plan does not contain.
        """
        for column, edges in zip(plan.columns, plan.edges, strict=True):
            self.edges[column] = edges
        levels, has_missing = self.table.levels, self.has_missing
        alike = {ORDERED: np.ones(len(plan.columns), dtype=np.bool_)}
        if levels or has_missing.any():
            layouts = [binning.find_layout(j, levels, has_missing) for j in plan.columns.tolist()]
            alike = {one: np.array([each == one for each in layouts]) for one in sorted({*layouts})}
        n_bins = np.array([len(edges) + 1 for edges in plan.edges], dtype=np.int64)
        surprises = [plan.columns[:0]]
        for layout, own in alike.items():
            for code, wanted in (
                (self._code_singly, n_bins > MAX_NARROW_BINS),
                (self._check_constant, n_bins == 1),
                (self._pack, n_bins == 2),
                (self._code, (n_bins > 2) & (n_bins <= MAX_NARROW_BINS)),
            ):
                if (wanted & own).any():
                    some = plan.select(wanted & own)
                    surprised = np.zeros(len(some.columns), dtype=np.bool_)
                    code(some, layout, surprised)
                    surprises.append(some.columns[surprised])
        return np.concatenate(surprises)

    def _check_constant(self, plan: ColumnPlan, _: Layout, surprised: BoolArray) -> None:
        """Constant columns are not stored, but are they constant?"""
        values = self.table.values
        size = max(1, _CONSTANT_CELLS // len(values))
        for start in range(0, len(surprised), size):
            part = slice(start, start + size)
            surprised[part] = (values[:, plan.columns[part]] != plan.highest[part]).any(axis=0)

    def _pack(self, plan: ColumnPlan, layout: Layout, surprised: BoolArray) -> None:
        """Columns of two bins, a bit a cell."""
        store = BitStore(plan.columns, self.rows, self.n_threads, layout)
        X, bits, edge = self.table.values, store.bits[self.position], np.concatenate(plan.edges)

        def pack_part(part: slice) -> None:
            known = plan.columns[part], edge[part], plan.known[part], plan.highest[part]
            _kernels.pack_columns(X, bits, *known, store.words[part], surprised[part])

        run_tasks(pack_part, split_columns(len(plan.columns), self.n_threads), self.n_threads)
        if surprised.any():
            store.features, store.words = plan.columns[~surprised], store.words[~surprised]
        self.stores.append(store)

    def _code(self, plan: ColumnPlan, layout: Layout, surprised: BoolArray) -> None:
        """Columns of up to 256 bins, a byte a cell."""
        X, table = self.table.values, make_search_table(plan.edges, self.table.values.dtype)
        codes = np.empty((len(plan.columns), len(X)), dtype=CODE_DTYPE)
        known = plan.columns, table, plan.known, plan.highest

        def code_part(part: slice) -> None:
            _kernels.code_columns(X, self.position, *known, part.start, part.stop, codes, surprised)

        run_tasks(code_part, split_rows(len(X), self.n_threads), self.n_threads)
        if surprised.any():
            codes = codes[~surprised]
        n_bins, columns = int(table.n_edges.max()) + 1, plan.columns[~surprised]
        self.stores.append(CodeStore(columns, codes, n_bins, self.rows, self.n_threads, layout))

    def _code_singly(self, plan: ColumnPlan, layout: Layout, surprised: BoolArray) -> None:
        """Columns of any number of bins, each a store of its own, two or four bytes a cell."""
        for k, (column, edges) in enumerate(zip(plan.columns, plan.edges, strict=True)):
            values = self.table.values[:, column]
            codes = _search(edges, values)
            levels = np.append(edges, plan.highest[k])
            surprised[k] = plan.known[k] and ((levels[codes] != values) & (values == values)).any()
            if not surprised[k]:
                ordered = np.empty((1, len(codes)), dtype=np.min_scalar_type(len(edges)))
                ordered[0, self.position] = codes
                found = np.array([column]), ordered, len(edges) + 1
                self.stores.append(CodeStore(*found, self.rows, self.n_threads, layout))


def _search(edges: Array, values: Array) -> Array:
    """The bins of values among any number of edges; 0 where a value is missing."""
    return np.where(values != values, 0, np.searchsorted(edges, values, side="left"))


def make_search_table(edges: list[Array], dtype: np.dtype[Any]) -> SearchTable:
    """The edges of some columns in the form that the coding kernel reads."""
    n_edges = np.array([len(part) for part in edges])
    width = 2 ** int(n_edges.max()).bit_length() + 1
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padded = np.full((len(edges), width), greatest, dtype=dtype)
    guess = np.zeros((len(edges), GUESS_PLACES), dtype=CODE_DTYPE)
    (low, scale), n_shared = np.zeros((2, len(edges))), np.ones(len(edges), dtype=np.int64)
    for n in np.unique(n_edges).tolist():  # columns of as many edges together
        alike = np.flatnonzero(n_edges == n)
        for part in np.split(alike, range(_GUESSED_TOGETHER, len(alike), _GUESSED_TOGETHER)):
            own = np.stack([edges[k] for k in part.tolist()])
            padded[part, :n] = own
            line = _make_guesses(own.astype(np.float64))
            low[part], scale[part], guess[part], n_shared[part] = line
    table: SearchTable = _kernels.SearchTable(padded, n_edges, guess, low, scale, n_shared)
    return table


def _make_guesses(edges: FloatArray) -> tuple[FloatArray, FloatArray, Array, IntArray]:
    """Line the edges of each row up on places; scale 0 where more than two would share one."""
    last, (n_rows, n_edges) = GUESS_PLACES - 1, edges.shape
    with np.errstate(all="ignore"):
        scale = last / (edges[:, -1] - edges[:, 0])
        places = np.clip((edges - edges[:, :1]) * scale[:, np.newaxis], 0, last)
    is_good = (n_edges >= 4) & (scale > 0) & (scale < np.inf)
    places = np.where(is_good[:, np.newaxis], places, 0).astype(np.intp)
    is_good &= ~(places[:, 2:] == places[:, :-2]).any(axis=1)
    flat = places + GUESS_PLACES * np.arange(n_rows)[:, np.newaxis]
    here = np.bincount(flat.ravel(), minlength=n_rows * GUESS_PLACES).reshape(n_rows, -1)
    before = (np.cumsum(here, axis=1) - here) * is_good[:, np.newaxis]  # edges at lower places
    low, scale = np.where(is_good, edges[:, 0], 0.0), np.where(is_good, scale, 0.0)
    return low, scale, before.astype(CODE_DTYPE), here.max(axis=1)


class PieceCoder:
    """Turns pieces into bin numbers, for some features of a binning, as `encode` would."""

    def __init__(self, binned: Binning, features: Sequence[int]) -> None:
        self.features, self._binned = features, binned
        n_bins = binned.count_bins(np.array(features, dtype=np.int64))
        # one byte where that is enough for all features, else two or four
        self._dtype = np.min_scalar_type(max(1, *n_bins.tolist(), MAX_NARROW_BINS) - 1)
        self._edges: dict[int, Array] = {}
        self._tables: dict[int, SearchTable] = {}
        self._bins: dict[int, dict[tuple[str, Level], int]] = {}
        for j in features:
            bins, edges = binned.levels.get(j), binned.find_edges(j)
            if bins is not None:
                levels, first = [*bins.levels, *bins.pool], int(binned.has_missing[j])
                last = first + len(bins.levels)
                numbers = {sort_key(each): min(first + k, last) for k, each in enumerate(levels)}
                self._bins[j] = numbers
                continue
            self._edges[j] = binning.put_missing_first(edges) if binned.has_missing[j] else edges
            if 1 < len(self._edges[j]) < MAX_NARROW_BINS:  # else NumPy is as quick
                self._tables[j] = make_search_table([self._edges[j]], edges.dtype)

    def code(
        self,
        columns: Sequence[Column] | Mapping[int, Column],
        out: Array | None = None,
        n_threads: int = 1,
    ) -> Array:
        """Bin numbers (feature, row), written to `out` if given.

        `columns` are the columns of the piece by position; only the features' own are needed.
        """
        if out is None:
            n_rows = len(columns[self.features[0]]) if self.features else 0
            out = np.empty((len(self.features), n_rows), dtype=self._dtype)

        def code_feature(k: int) -> None:
            self._code(self.features[k], columns[self.features[k]], out[k])

        run_in_parts(code_feature, range(len(self.features)), n_threads)
        return out

    def _code(self, feature: int, column: Column, out: Array) -> None:
        if isinstance(column, Levels):
            found = [self._bins[feature][sort_key(level)] for level in column.levels]
            out[:] = np.array([*found, 0], dtype=out.dtype)[column.codes]  # the last is for missing
            return
        assert isinstance(column, Numbers)
        edges, table = self._edges[feature], self._tables.get(feature)
        values = read_numbers(column, is_exact=edges.dtype.kind in "iu")
        values = values.astype(edges.dtype, copy=False)
        if table is None or out.dtype != CODE_DTYPE:
            out[:] = _search(edges, values)
            return
        in_place, first = np.arange(len(values), dtype=ROW_DTYPE), np.zeros(1, dtype=np.int64)
        no, one, bins = np.zeros(1, dtype=np.bool_), values[:, np.newaxis], out[np.newaxis]
        own = in_place, first, table, no, edges[:1], 0, len(values)
        _kernels.code_columns(one, *own, bins, no)
