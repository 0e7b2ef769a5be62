"""From values to bin numbers: a whole table into stores, or a piece of one column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm import _constants as limits
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine import _kernels, binning
from icscm.engine.binning import Binning, ColumnPlan
from icscm.engine.counts import ORDERED, Layout
from icscm.engine.sampling import choose_sample, hash_rows, is_sampled
from icscm.engine.stores import BitStore, CodeStore, Rows, Store
from icscm.engine.threads import run_in_parts, run_tasks, split_columns, split_rows
from icscm.tables.coded import CodedTable, are_finite, find_missing
from icscm.tables.columns import Column, Columns, Level, Levels, Numbers, read_numbers, sort_key

if TYPE_CHECKING:
    from icscm.engine._kernels.coding import SearchTable

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

    Missing and infinite values are looked for in all rows only if columns remain after the first
    scan: where its rows hold none, others are not as planned.
    """
    X, has_missing = table.values, table.find_missing().copy()
    if table.levels and table.has_missing is None:  # categories are not planned from any rows
        has_missing = find_missing(X, table.names)
    n_threads = n_threads if X.size >= limits.MIN_THREADED_CELLS else 1
    edges = [np.empty(0, X.dtype)] * X.shape[1]
    stores: list[Store] = []

    def code(plan: ColumnPlan) -> IntArray:
        """Store the columns; returns those with values that the plan does not contain."""
        for column, found in zip(plan.columns, plan.edges, strict=True):
            edges[column] = found
        layouts = [ORDERED] * len(plan.columns)  # there may be millions
        if table.levels or has_missing.any():
            every = plan.columns.tolist()
            layouts = [binning.find_layout(j, table.levels, has_missing) for j in every]
        more, surprises = _make_stores(X, plan, layouts, position, rows, n_threads)
        stores.extend(store for store in more if len(store.features))
        return surprises

    categories = np.array(sorted({*table.levels} - {*table.dropped}), dtype=np.int64)
    code(binning.plan_levels(table, categories, has_missing))
    sample: ColumnPlan | None = None
    any_sampled = False
    is_left = np.ones(X.shape[1], dtype=np.bool_)
    is_left[[*table.levels, *table.dropped]] = False
    scans = _list_scans(table, has_missing, max_thresholds, n_threads) if is_left.any() else ()
    for kind, scanned, most in scans:
        left = np.flatnonzero(is_left)
        plan = binning.plan_columns(X, left, has_missing, scanned, most, n_threads)
        if kind == "sample":
            sample = plan
        elif sample is not None:
            plan = plan.cut_unknown_as(sample, max_thresholds)
        ready = plan.select(np.flatnonzero(plan.known)) if kind == "first" else plan
        any_sampled |= sample is not None and not plan.known.all()
        is_left[ready.columns] = False
        is_left[code(ready)] = True
        if not is_left.any():
            break  # before the next scan takes any time
    if table.has_missing is None and not are_finite(X[:, [*table.dropped]]):
        has_missing |= find_missing(X, table.names)
    # without the thresholds below which values are missing
    own = [part[int(gap) :] for part, gap in zip(edges, has_missing, strict=True)]
    found = replace(table, has_missing=has_missing)
    return binning.make_binning(own, found, any_sampled), stores


def _list_scans(
    table: CodedTable, has_missing: BoolArray, max_thresholds: int | None, n_threads: int
) -> Iterator[tuple[str, Array | slice, int | None]]:
    """Some rows to plan columns from: "first" ones, which finish columns of few values, a "sample"
    or "all"; and the most thresholds. Sets `has_missing` of columns with missing values, if the
    table does not know them: in the first rows, then in all.
    """
    X, is_unknown = table.values, table.has_missing is None
    step = len(X) // limits.FIRST_LOOK_ROWS
    if step >= 8:  # else all rows are nearly as quick to scan
        few = min(max_thresholds or limits.MAX_NARROW_BINS, limits.MAX_NARROW_BINS) - 1
        if is_unknown:
            has_missing |= find_missing(X[::step], table.names)
        yield "first", slice(None, None, step), few
    if is_unknown:
        parts = split_rows(len(X), n_threads)
        found = run_tasks(lambda part: find_missing(X, table.names, part), parts, n_threads)
        has_missing |= np.logical_or.reduce(found)
    # more thresholds than a byte can number need all rows
    if is_sampled(len(X)) and (max_thresholds or limits.MAX_NARROW_BINS) < limits.MAX_NARROW_BINS:
        hashes = hash_rows(X, table.find_numbers(), n_threads)
        yield "sample", choose_sample(hashes), max_thresholds
    yield "all", slice(None), max_thresholds


def _make_stores(
    X: Array, plan: ColumnPlan, layouts: list[Layout], position: Array, rows: Rows, n_threads: int
) -> tuple[list[Store], IntArray]:
    """Stores of the columns that are as planned, those of one layout and width together, and the
    columns that are not. Constant ones are not stored.
    """
    groups: dict[tuple[Layout, int], list[int]] = {}
    for k, (layout, edges) in enumerate(zip(layouts, plan.edges, strict=True)):
        # bits, bytes, and wider ones each by itself
        width = 0 if len(edges) < 2 else 1 if len(edges) < limits.MAX_NARROW_BINS else 2 + k
        groups.setdefault((layout, width), []).append(k)
    stores: list[Store] = []
    surprises = [plan.columns[:0]]
    for (layout, width), own in sorted(groups.items()):
        some, most = plan.select(own), max(len(plan.edges[k]) for k in own)
        if width == 0:
            bits = BitStore(some.columns, rows, n_threads, layout)
            surprised = pack_columns(X, bits.bits[position], some, n_threads, bits.words)
            kept = ~surprised & np.array([len(edges) > 0 for edges in some.edges])
            if not kept.all():
                bits.features, bits.words = some.columns[kept], bits.words[kept]
            stores.append(bits)
        else:
            codes = np.empty((len(own), len(X)), dtype=np.min_scalar_type(most))
            code = _code_columns if width == 1 else _search_column
            surprised = code(X, position, some, n_threads, codes)
            codes = codes[~surprised] if surprised.any() else codes
            features = some.columns[~surprised]
            stores.append(CodeStore(features, codes, most + 1, n_threads, layout))
        surprises.append(some.columns[surprised])
    return stores, np.concatenate(surprises)


def pack_columns(
    X: Array, position: Array, plan: ColumnPlan, n_threads: int, words: Array
) -> BoolArray:
    """Columns of two bins, row i at bit `position[i]`; returns which are not as planned."""
    surprised = np.zeros(len(words), dtype=np.bool_)
    edge = plan.highest.copy()  # of a constant column, which has no edge
    edge[[len(part) > 0 for part in plan.edges]] = np.concatenate([edge[:0], *plan.edges])

    def pack_part(part: slice) -> None:
        known = plan.columns[part], edge[part], plan.known[part], plan.highest[part]
        _kernels.pack_columns(X, position, *known, words[part], surprised[part])

    run_tasks(pack_part, split_columns(len(words), n_threads), n_threads)
    return surprised


def _code_columns(
    X: Array, position: Array, plan: ColumnPlan, n_threads: int, codes: Array
) -> BoolArray:
    """Columns of up to 256 bins, a byte a cell."""
    known = plan.columns, make_search_table(plan.edges, X.dtype), plan.known, plan.highest
    surprised = np.zeros(len(codes), dtype=np.bool_)

    def code_part(part: slice) -> None:
        _kernels.code_columns(X, position, *known, part.start, part.stop, codes, surprised)

    run_tasks(code_part, split_rows(len(X), n_threads), n_threads)
    return surprised


def _search_column(X: Array, position: Array, plan: ColumnPlan, _: int, codes: Array) -> BoolArray:
    """A column of any number of bins."""
    (edges,), values = plan.edges, X[:, plan.columns[0]]
    found = _search(edges, values)
    codes[0, position] = found
    is_other = (np.append(edges, plan.highest)[found] != values) & (values == values)
    return np.asarray(plan.known & is_other.any())


def _search(edges: Array, values: Array) -> Array:
    """The bins of values among any number of edges; 0 where a value is missing."""
    return np.where(values != values, 0, np.searchsorted(edges, values, side="left"))


def make_search_table(edges: list[Array], dtype: np.dtype[Any]) -> SearchTable:
    """The edges of some columns in the form that the coding kernel reads."""
    n_edges = np.array([len(part) for part in edges])
    width = 2 ** int(n_edges.max()).bit_length() + 1
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padded = np.full((len(edges), width), greatest, dtype=dtype)
    guess = np.zeros((len(edges), limits.GUESS_PLACES), dtype=limits.CODE_DTYPE)
    line_dtype = np.float32 if dtype == np.float32 else np.float64
    low, scale = np.zeros((2, len(edges)), dtype=line_dtype)
    n_shared = np.ones(len(edges), dtype=np.int64)
    for n in np.unique(n_edges).tolist():  # columns of as many edges together
        alike = np.flatnonzero(n_edges == n)
        for part in np.split(alike, range(_GUESSED_TOGETHER, len(alike), _GUESSED_TOGETHER)):
            own = np.stack([edges[k] for k in part.tolist()])
            padded[part, :n] = own
            if n >= 4:  # else halving is as quick
                line = _make_guesses(own.astype(line_dtype))
                low[part], scale[part], guess[part], n_shared[part] = line
    table: SearchTable = _kernels.SearchTable(padded, n_edges, guess, low, scale, n_shared)
    return table


def _make_guesses(edges: FloatArray) -> tuple[FloatArray, FloatArray, Array, IntArray]:
    """Line the edges of each row up on places; scale 0 where more than two would share one."""
    last, n_rows = limits.GUESS_PLACES - 1, len(edges)
    with np.errstate(all="ignore"):
        scale = last / (edges[:, -1] - edges[:, 0])
        places = np.clip((edges - edges[:, :1]) * scale[:, np.newaxis], 0, last)
    is_good = (scale > 0) & (scale < np.inf)
    places = np.where(is_good[:, np.newaxis], places, 0).astype(np.intp)
    is_good &= ~(places[:, 2:] == places[:, :-2]).any(axis=1)
    flat = places + limits.GUESS_PLACES * np.arange(n_rows)[:, np.newaxis]
    here = np.bincount(flat.ravel(), minlength=n_rows * limits.GUESS_PLACES).reshape(n_rows, -1)
    before = (np.cumsum(here, axis=1) - here) * is_good[:, np.newaxis]  # edges at lower places
    low, scale = np.where(is_good, edges[:, 0], 0.0), np.where(is_good, scale, 0.0)
    return low, scale, before.astype(limits.CODE_DTYPE), here.max(axis=1)


class PieceCoder:
    """Turns pieces into bin numbers, for some features of a binning, as `encode` would."""

    def __init__(self, binned: Binning, features: Sequence[int]) -> None:
        self.features = features
        n_bins = binned.count_bins(np.array(features, dtype=np.int64))
        # one byte where that is enough for all features, else two or four
        self._dtype = np.min_scalar_type(max(1, *n_bins.tolist(), limits.MAX_NARROW_BINS) - 1)
        self._edges: dict[int, Array] = {}
        self._tables: dict[int, SearchTable] = {}
        self._bins: dict[int, dict[tuple[str, Level], int]] = {}
        for j in features:
            bins, edges = binned.levels.get(j), binned.find_edges(j)
            if bins is not None:
                levels, first = [*bins.levels, *bins.pool], int(binned.has_missing[j])
                last = first + len(bins.levels)
                self._bins[j] = {sort_key(e): min(first + k, last) for k, e in enumerate(levels)}
                continue
            self._edges[j] = binning.put_missing_first(edges) if binned.has_missing[j] else edges
            if 1 < len(self._edges[j]) < limits.MAX_NARROW_BINS:  # else NumPy is as quick
                self._tables[j] = make_search_table([self._edges[j]], edges.dtype)

    def code(self, columns: Columns, out: Array | None = None, n_threads: int = 1) -> Array:
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
        if table is None or out.dtype != limits.CODE_DTYPE:
            out[:] = _search(edges, values)
            return
        in_place, first = np.arange(len(values), dtype=limits.ROW_DTYPE), np.zeros(1, np.int64)
        no, one, bins = np.zeros(1, dtype=np.bool_), values[:, np.newaxis], out[np.newaxis]
        _kernels.code_columns(one, in_place, first, table, no, edges[:1], 0, len(values), bins, no)
