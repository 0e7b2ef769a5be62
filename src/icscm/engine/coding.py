"""From values to bin numbers: a whole table into stores, or a piece of one column by column.

The bin of a value is the number of its column's edges below it, see `binning`. Bin numbers are also
called *codes*. A `ColumnPlan` has the edges of some columns, as some of the rows show them; while
these columns are coded, all rows confirm the plan, or show that it was wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icscm import _constants as limits
from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine import _kernels, binning
from icscm.engine.binning import Binning, ColumnPlan, Extremes
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
# With fewer edges, halving finds a bin as quickly as a guess does.
_MIN_GUESSED_EDGES = 4
# If every so many rows make a first look, all rows are nearly as quick to scan.
_MIN_FIRST_LOOK_STEP = 8


# --- a whole table -------------------------------------------------------------------------------


def encode(
    table: CodedTable, position: Array, rows: Rows, max_thresholds: int | None, n_threads: int
) -> tuple[Binning, list[Store]]:
    """Choose thresholds for the columns and store each in the fewest bits that hold it.

    Row i of the table goes to `position[i]` of the sorted `rows`. Categories come as they are, with
    a bin for each level. The other columns are scanned up to three times; each scan finishes some
    of them, and leaves the rest to the next, which sees more rows:

        first look    a part of the rows    finishes columns of few values, if all rows confirm it
        sample        the sampled rows      finishes columns of many values, cut at quantiles
        all rows                            finishes what is left

    Which rows the first look sees makes no difference to the outcome: columns of few values are cut
    at each of them, all others at quantiles of the sample.

    Missing and infinite values are looked for in all rows only if columns remain after the first
    look: where its rows hold none, others are not as planned.
    """
    encoder = _TableEncoder(table, position, rows, n_threads)
    encoder.code_categories()
    if encoder.has_columns_left:
        encoder.code_after_first_look(max_thresholds)

    sample_plan: ColumnPlan | None = None
    if encoder.has_columns_left:
        encoder.find_missing_in_all_rows()
        # more thresholds than a byte can number need all rows
        is_narrow = (max_thresholds or limits.MAX_NARROW_BINS) < limits.MAX_NARROW_BINS
        if is_sampled(len(table.values)) and is_narrow:
            sample_plan = encoder.code_after_sample(max_thresholds)

    if encoder.has_columns_left:
        encoder.code_after_all_rows(max_thresholds, sample_plan)
    return encoder.make_binning(), encoder.stores


class _TableEncoder:
    """A table on its way into stores: which columns are left, and what is known of the others.

    Each of the `code_` methods plans some of the columns that are left, and adds stores of those
    that turn out to be as planned. Row i of the table goes to `position[i]` of the sorted `rows`.
    """

    def __init__(self, table: CodedTable, position: Array, rows: Rows, n_threads: int) -> None:
        self._table = table
        self._X = table.values
        self._position = position
        self._rows = rows
        self._n_threads = n_threads if self._X.size >= limits.MIN_THREADED_CELLS else 1

        self.stores: list[Store] = []
        #: the edges of each column, once it is planned
        self._edges = [np.empty(0, self._X.dtype)] * table.n_columns
        #: the smallest and the largest number of each column, once it is planned
        self._lowest = np.full(table.n_columns, np.nan)
        self._highest = np.full(table.n_columns, np.nan)
        #: whether any edges are quantiles of a sample
        self._any_sampled = False
        self._is_left = np.ones(table.n_columns, dtype=np.bool_)
        self._is_left[[*table.levels, *table.dropped]] = False

        # grows with the rows that were looked at, if the table does not know
        self._has_missing = table.find_missing().copy()
        if table.levels and table.has_missing is None:  # categories are not planned from any rows
            self._has_missing = find_missing(self._X, table.names)

    @property
    def has_columns_left(self) -> bool:
        return bool(self._is_left.any())

    def code_categories(self) -> None:
        """Code the categories, which have a bin for each level."""
        categories = np.array(
            sorted({*self._table.levels} - {*self._table.dropped}), dtype=np.int64
        )
        self._code(binning.plan_levels(self._table, categories, self._has_missing))

    def code_after_first_look(self, max_thresholds: int | None) -> None:
        """Code the columns of few values, as far as a part of the rows shows them."""
        step = len(self._X) // limits.FIRST_LOOK_ROWS
        if step < _MIN_FIRST_LOOK_STEP:
            return
        if self._table.has_missing is None:
            self._has_missing |= find_missing(self._X[::step], self._table.names)

        most_thresholds = max_thresholds or limits.MAX_NARROW_BINS
        few_thresholds = min(most_thresholds, limits.MAX_NARROW_BINS) - 1
        plan = self._plan(rows=slice(None, None, step), max_thresholds=few_thresholds)
        has_few_values = plan.is_complete
        self._finish(plan.select(np.flatnonzero(has_few_values)))

    def find_missing_in_all_rows(self) -> None:
        """Find which columns have missing values, unless the table knows."""
        if self._table.has_missing is not None:
            return

        def find_in_part(part: slice) -> BoolArray:
            return find_missing(self._X, self._table.names, part)

        parts = split_rows(len(self._X), self._n_threads)
        has_missing_by_part = run_tasks(find_in_part, parts, self._n_threads)
        self._has_missing |= np.logical_or.reduce(has_missing_by_part)

    def code_after_sample(self, max_thresholds: int | None) -> ColumnPlan:
        """Code the columns that are left by a plan from the sampled rows, and return the plan."""
        hashes = hash_rows(self._X, self._table.find_numbers(), self._n_threads)
        plan = self._plan(rows=choose_sample(hashes), max_thresholds=max_thresholds)
        self._any_sampled |= not plan.is_complete.all()
        self._finish(plan)
        return plan

    def code_after_all_rows(
        self, max_thresholds: int | None, sample_plan: ColumnPlan | None
    ) -> None:
        """Code the columns that are left by a plan from all rows.

        If there is a sample, these have few values in it, but more in all rows.
        """
        plan = self._plan(rows=slice(None), max_thresholds=max_thresholds)
        if sample_plan is not None:
            plan = plan.use_sample(sample_plan, max_thresholds)
            self._any_sampled |= not plan.is_complete.all()
        self._finish(plan)

    def make_binning(self) -> Binning:
        """Make the binning of all columns, with the thresholds chosen for them."""
        # dropped columns are not coded, which would find what is missing in them
        dropped_values = self._X[:, [*self._table.dropped]]
        if self._table.has_missing is None and not are_finite(dropped_values):
            self._has_missing |= find_missing(self._X, self._table.names)
        thresholds = [
            # the first edge of a column with missing values only sets these apart
            edges[1:] if has_missing else edges
            for edges, has_missing in zip(self._edges, self._has_missing, strict=True)
        ]
        table = replace(self._table, has_missing=self._has_missing)
        return binning.make_binning(
            thresholds,
            table,
            sampled=self._any_sampled,
            extremes=Extremes(lowest=self._lowest, highest=self._highest),
        )

    def _plan(self, *, rows: Array | slice, max_thresholds: int | None) -> ColumnPlan:
        """Plan the columns that are left from some rows."""
        return binning.plan_columns(
            self._X,
            np.flatnonzero(self._is_left),
            has_missing=self._has_missing,
            rows=rows,
            max_thresholds=max_thresholds,
            n_threads=self._n_threads,
        )

    def _finish(self, plan: ColumnPlan) -> None:
        """Code the columns of a plan; those that are not as planned are left."""
        unexpected = self._code(plan)
        self._is_left[plan.columns] = False
        self._is_left[unexpected] = True

    def _code(self, plan: ColumnPlan) -> IntArray:
        """Store the columns of a plan; return those with values that it does not contain."""
        for column, edges in zip(plan.columns, plan.edges, strict=True):
            self._edges[column] = edges
        self._lowest[plan.columns] = plan.lowest
        self._highest[plan.columns] = plan.highest
        groups = _group_columns(plan, self._find_layouts(plan))

        unexpected_columns = [plan.columns[:0]]
        for kind, positions in sorted(groups.items()):
            plan_of_group = plan.select(positions)
            if kind.width == _Width.BITS:
                coded = self._make_bit_store(plan_of_group, kind.layout)
            else:
                coded = self._make_code_store(plan_of_group, kind)
            if len(coded.store.columns):
                self.stores.append(coded.store)
            unexpected_columns.append(coded.unexpected_columns)
        return np.concatenate(unexpected_columns)

    def _find_layouts(self, plan: ColumnPlan) -> list[Layout]:
        """Find how the bins of each column of a plan are to be read."""
        if not self._table.levels and not self._has_missing.any():
            return [ORDERED] * len(plan.columns)  # there may be millions
        return [
            binning.find_layout(column, self._table.levels, self._has_missing)
            for column in plan.columns.tolist()
        ]

    def _make_bit_store(self, plan: ColumnPlan, layout: Layout) -> _CodedColumns:
        """Store columns of two bins that are as planned, but no constant ones."""
        store = BitStore(plan.columns, self._rows, self._n_threads, layout)
        is_unexpected = pack_columns(
            self._X,
            plan,
            bit_position=store.bits[self._position],
            words=store.words,
            n_threads=self._n_threads,
        )
        has_edges = np.array([len(edges) > 0 for edges in plan.edges])
        is_kept = ~is_unexpected & has_edges
        if not is_kept.all():
            store.columns = plan.columns[is_kept]
            store.words = store.words[is_kept]
        return _CodedColumns(store, unexpected_columns=plan.columns[is_unexpected])

    def _make_code_store(self, plan: ColumnPlan, kind: _StoreKind) -> _CodedColumns:
        """Store columns of more than two bins that are as planned."""
        max_edges = max(len(edges) for edges in plan.edges)
        shape = len(plan.columns), len(self._X)
        codes = np.empty(shape, dtype=np.min_scalar_type(max_edges))
        if kind.width == _Width.BYTES:
            is_unexpected = _code_columns(
                self._X, plan, position=self._position, codes=codes, n_threads=self._n_threads
            )
        else:
            is_unexpected = _code_wide_column(self._X, plan, position=self._position, codes=codes)
        if is_unexpected.any():
            codes = codes[~is_unexpected]
        store = CodeStore(
            columns=plan.columns[~is_unexpected],
            codes=codes,
            n_bins=max_edges + 1,
            n_threads=self._n_threads,
            layout=kind.layout,
        )
        return _CodedColumns(store, unexpected_columns=plan.columns[is_unexpected])


@dataclass(frozen=True, eq=False)
class _CodedColumns:
    """A store of the columns of a plan, and those that are not in it, as they need another plan."""

    store: Store
    unexpected_columns: IntArray


class _Width(IntEnum):
    """What a cell of a column takes; in the order of the stores."""

    BITS = 0
    BYTES = 1
    WIDE = 2  # two bytes or four


class _StoreKind(NamedTuple):
    """What the columns of one store have in common.

    A wide column has a store of its own, so `number` tells it from others; else it is 0.
    """

    layout: Layout
    width: _Width
    number: int


def _group_columns(plan: ColumnPlan, layouts: Sequence[Layout]) -> dict[_StoreKind, list[int]]:
    """Group the positions in a plan of the columns that will share a store."""
    groups: dict[_StoreKind, list[int]] = {}
    for position, (layout, edges) in enumerate(zip(layouts, plan.edges, strict=True)):
        if len(edges) < 2:
            kind = _StoreKind(layout, _Width.BITS, number=0)
        elif len(edges) < limits.MAX_NARROW_BINS:
            kind = _StoreKind(layout, _Width.BYTES, number=0)
        else:
            kind = _StoreKind(layout, _Width.WIDE, number=position)
        groups.setdefault(kind, []).append(position)
    return groups


# --- columns of a plan ---------------------------------------------------------------------------


def pack_columns(
    X: Array, plan: ColumnPlan, *, bit_position: Array, words: Array, n_threads: int
) -> BoolArray:
    """Pack columns of two bins, row i at bit `bit_position[i]`; return which are not as planned."""
    # nothing is above the highest value, which stands in for the edge that a constant column lacks
    edge = plan.highest.copy()
    has_edge = [len(edges) > 0 for edges in plan.edges]
    edge[has_edge] = np.concatenate([edge[:0], *plan.edges])
    is_unexpected = np.zeros(len(words), dtype=np.bool_)

    def pack_part(part: slice) -> None:
        _kernels.pack_columns(
            X,
            bit_position,
            plan.columns[part],
            edge[part],
            plan.is_complete[part],
            plan.highest[part],
            words[part],
            is_unexpected[part],
        )

    run_tasks(pack_part, split_columns(len(words), n_threads), n_threads)
    return is_unexpected


def _code_columns(
    X: Array, plan: ColumnPlan, *, position: Array, codes: Array, n_threads: int
) -> BoolArray:
    """Code columns of up to 256 bins, a byte a cell; return which are not as planned."""
    search_table = make_search_table(plan.edges, X.dtype)
    is_unexpected = np.zeros(len(codes), dtype=np.bool_)

    def code_rows(part: slice) -> None:
        _kernels.code_columns(
            X,
            position,
            plan.columns,
            search_table,
            plan.is_complete,
            plan.highest,
            part.start,
            part.stop,
            codes,
            is_unexpected,
        )

    run_tasks(code_rows, split_rows(len(X), n_threads), n_threads)
    return is_unexpected


def _code_wide_column(X: Array, plan: ColumnPlan, *, position: Array, codes: Array) -> BoolArray:
    """Code one column of any number of bins; return whether it is not as planned."""
    (edges,) = plan.edges
    values = X[:, plan.columns[0]]
    bins = _find_bins(values, edges)
    codes[0, position] = bins

    # if the plan is complete, each bin holds one value
    value_of_bin = np.append(edges, plan.highest)
    is_present = ~_find_nan(values)
    has_other_value = ((value_of_bin[bins] != values) & is_present).any()
    return np.asarray(plan.is_complete & has_other_value)


def _find_bins(values: Array, edges: Array) -> Array:
    """Find the bins of values among any number of edges; 0 where a value is missing."""
    return np.where(_find_nan(values), 0, np.searchsorted(edges, values, side="left"))


def _find_nan(values: Array) -> BoolArray:
    """Find which values are NaN, which alone does not equal itself.

    `np.isnan` would first convert whole numbers, of which none is.
    """
    return np.asarray(values != values)


# --- guesses of bins -----------------------------------------------------------------------------


def make_search_table(edges: Sequence[Array], dtype: np.dtype[Any]) -> SearchTable:
    """Bring the edges of some columns into the form that the coding kernel reads.

    `_kernels.SearchTable` says how it finds a bin there, and what the fields are.
    """
    n_edges = np.array([len(edges_of_column) for edges_of_column in edges])
    table = _make_empty_table(n_edges, dtype)
    for columns in _group_for_guesses(n_edges):
        # by (column, edge): all columns of a group have as many edges
        edges_of_group = np.stack([edges[column] for column in columns.tolist()])
        n_edges_of_group = edges_of_group.shape[1]
        table.edges[columns, :n_edges_of_group] = edges_of_group
        if n_edges_of_group < _MIN_GUESSED_EDGES:
            continue

        guesses = _make_guesses(edges_of_group.astype(table.low.dtype))
        table.low[columns] = guesses.low
        table.scale[columns] = guesses.scale
        table.guess[columns] = guesses.n_edges_before
        table.n_shared[columns] = guesses.n_shared
    return table


def _make_empty_table(n_edges: IntArray, dtype: np.dtype[Any]) -> SearchTable:
    """Make a table of columns without any edges, for so many of them, and without guesses."""
    n_columns = len(n_edges)
    n_places = 2 ** int(n_edges.max()).bit_length() + 1
    no_value_is_above = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    line_dtype = np.float32 if dtype == np.float32 else np.float64
    table: SearchTable = _kernels.SearchTable(
        edges=np.full((n_columns, n_places), no_value_is_above, dtype=dtype),
        n_edges=n_edges,
        guess=np.zeros((n_columns, limits.GUESS_PLACES), dtype=limits.CODE_DTYPE),
        low=np.zeros(n_columns, dtype=line_dtype),
        scale=np.zeros(n_columns, dtype=line_dtype),
        n_shared=np.ones(n_columns, dtype=np.int64),
    )
    return table


def _group_for_guesses(n_edges: IntArray) -> Iterator[IntArray]:
    """Yield the columns in groups that have as many edges, of a size that stays in the cache."""
    for n in np.unique(n_edges).tolist():
        columns = np.flatnonzero(n_edges == n)
        yield from np.split(columns, range(_GUESSED_TOGETHER, len(columns), _GUESSED_TOGETHER))


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Lines that send the edges of some columns to slots, see `_kernels.SearchTable`.

    `low`, `scale` and `n_shared` are by column, `n_edges_before` is by (column, slot).
    """

    low: FloatArray
    scale: FloatArray
    n_edges_before: Array
    n_shared: IntArray


def _make_guesses(edges: FloatArray) -> _Guesses:
    """Send the edges (column, edge) to slots by a line through the first and the last of each.

        slot(x) = (x - low) * scale,    low = first edge,    scale = last slot / (last - first edge)

    Where more than two edges would share a slot, a guess would leave too much to be corrected: the
    scale is 0 there, which means that bins are not guessed.
    """
    n_slots = limits.GUESS_PLACES
    last_slot = n_slots - 1
    with np.errstate(all="ignore"):  # edges may be infinite, or all but equal
        scale = last_slot / (edges[:, -1] - edges[:, 0])
        on_line = np.clip((edges - edges[:, :1]) * scale[:, np.newaxis], 0, last_slot)
    is_good = (scale > 0) & (scale < np.inf)
    slots: IntArray = np.where(is_good[:, np.newaxis], on_line, 0).astype(np.intp)

    # edges ascend: three share a slot where the third of them is in the slot of the first
    do_three_share = (slots[:, 2:] == slots[:, :-2]).any(axis=1)
    is_good &= ~do_three_share

    n_edges_in_slot = _count_in_slots(slots, n_slots)
    n_edges_before = np.cumsum(n_edges_in_slot, axis=1) - n_edges_in_slot
    n_edges_before *= is_good[:, np.newaxis]
    return _Guesses(
        low=np.where(is_good, edges[:, 0], 0.0),
        scale=np.where(is_good, scale, 0.0),
        n_edges_before=n_edges_before.astype(limits.CODE_DTYPE),
        n_shared=n_edges_in_slot.max(axis=1),
    )


def _count_in_slots(slots: IntArray, n_slots: int) -> IntArray:
    """Count the edges by (column, slot), given the slot of each edge by (column, edge)."""
    n_columns = len(slots)
    # the slots of all columns numbered one after the other, to be counted at once
    first_slot_of_column = n_slots * np.arange(n_columns)[:, np.newaxis]
    numbers = (first_slot_of_column + slots).ravel()
    return np.bincount(numbers, minlength=n_columns * n_slots).reshape(n_columns, n_slots)


# --- a piece -------------------------------------------------------------------------------------


class PieceCoder:
    """Turns pieces into bin numbers, for some columns of a binning, as `encode` would."""

    def __init__(self, binned: Binning, columns: Sequence[int]) -> None:
        self.columns = columns
        n_bins = binned.count_bins(np.array(columns, dtype=np.int64))
        # one byte where that is enough for all columns, else two or four
        max_bins = max(1, *n_bins.tolist(), limits.MAX_NARROW_BINS)
        self._dtype = np.min_scalar_type(max_bins - 1)

        #: of a category the bin of each level, by column and by the level's `sort_key`
        self._bin_of_level: dict[int, dict[tuple[str, Level], int]] = {}
        #: of numbers the edges, and where it is the quickest the table to search them by
        self._edges: dict[int, Array] = {}
        self._search_tables: dict[int, SearchTable] = {}
        for column in columns:
            if column in binned.levels:
                self._bin_of_level[column] = _number_levels(binned, column)
                continue
            edges = binned.find_edges(column)
            if binned.has_missing[column]:
                edges = binning.put_missing_first(edges)
            self._edges[column] = edges
            if 1 < len(edges) < limits.MAX_NARROW_BINS:  # else NumPy is as quick
                self._search_tables[column] = make_search_table([edges], edges.dtype)

    def code(self, columns: Columns, out: Array | None = None, n_threads: int = 1) -> Array:
        """Return bin numbers (column, row), written to `out` if given.

        `columns` are the columns of the piece by position; only those of the coder are needed.
        """
        if out is None:
            n_rows = len(columns[self.columns[0]]) if self.columns else 0
            out = np.empty((len(self.columns), n_rows), dtype=self._dtype)

        def code_column(number: int) -> None:
            position = self.columns[number]
            self._code_into(out[number], position, columns[position])

        run_in_parts(code_column, range(len(self.columns)), n_threads)
        return out

    def _code_into(self, out: Array, position: int, column: Column) -> None:
        """Write the bin number of each row of one column, which is at this position."""
        if isinstance(column, Levels):
            bin_of_level = self._bin_of_level[position]
            bin_of_code = [bin_of_level[sort_key(level)] for level in column.levels]
            # a missing value has bin 0; its code, -1, takes the last of these
            bin_of_code.append(0)
            out[:] = np.array(bin_of_code, dtype=out.dtype)[column.codes]
            return

        assert isinstance(column, Numbers)
        edges = self._edges[position]
        values = read_numbers(column, is_exact=edges.dtype.kind in "iu")
        values = values.astype(edges.dtype, copy=False)
        search_table = self._search_tables.get(position)
        if search_table is None or out.dtype != limits.CODE_DTYPE:
            out[:] = _find_bins(values, edges)
        else:
            _code_values_into(out, values, search_table)


def _number_levels(binned: Binning, column: int) -> dict[tuple[str, Level], int]:
    """Return the bin of each level of a category; those of the pool share the last."""
    bins = binned.levels[column]
    first_bin = int(binned.has_missing[column])
    last_bin = first_bin + len(bins.levels)
    levels = [*bins.levels, *bins.pool]
    return {
        sort_key(level): min(first_bin + number, last_bin) for number, level in enumerate(levels)
    }


def _code_values_into(out: Array, values: Array, search_table: SearchTable) -> None:
    """Code the values of one column, as a table of one column whose rows stay in their order."""
    is_complete = np.zeros(1, dtype=np.bool_)  # so that no value is unexpected
    any_value = search_table.edges[0, :1]  # in the place of the highest, which is not looked at
    is_unexpected = np.zeros(1, dtype=np.bool_)
    _kernels.code_columns(
        values[:, np.newaxis],
        np.arange(len(values), dtype=limits.ROW_DTYPE),
        np.zeros(1, dtype=np.int64),
        search_table,
        is_complete,
        any_value,
        0,
        len(values),
        out[np.newaxis],
        is_unexpected,
    )
