"""Hashes and bin numbers of a piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icscm._constants import (
    CODE_DTYPE,
    MAX_NARROW_BINS,
    ROW_DTYPE,
)
from icscm._types import Array, Hashes
from icscm.engine import _kernels
from icscm.engine._kernels.coding import SearchTable
from icscm.engine.binning import Binning, make_salt
from icscm.engine.encoding import make_search_table
from icscm.engine.survey import as_plain_numbers
from icscm.engine.threads import run_in_parts, run_tasks
from icscm.tables.columns import Column, Dates, Level, Levels, Numbers, sort_key


def hash_piece(columns: Sequence[Column], n_rows: int, n_threads: int = 1) -> Hashes:
    """The hash of each row, by which the sample is chosen: as `binning.hash_rows` of the table.

    Whole numbers beyond 2**53 are hashed exactly where all columns of the piece are whole numbers,
    none missing, and as float64 holds them beside others.
    """
    is_exact = all(
        isinstance(each, Numbers) and each.values.dtype.kind in "iub" and each.missing is None
        for each in columns
    )
    salt = make_salt(len(columns))

    def hash_some(part: range) -> Hashes:
        hashes = np.zeros(n_rows, dtype=np.uint64)
        for j in part:
            column = columns[j]
            if isinstance(column, Dates):  # they are zeros in a table of numbers
                _kernels.hash_column(np.zeros(n_rows), salt[j], hashes)
            elif isinstance(column, Numbers):
                _kernels.hash_column(read_numbers(column, is_exact), salt[j], hashes)
        return hashes

    parts = [range(start, len(columns), n_threads) for start in range(n_threads)]
    total = np.zeros(n_rows, dtype=np.uint64)
    for hashes in run_tasks(hash_some, parts, n_threads):
        total += hashes
    return total


def read_numbers(column: Numbers, is_exact: bool) -> Array:
    """The values of a column as numbers of the table: NaN where missing, floats unless exact."""
    values = as_plain_numbers(column.values)
    if column.missing is None:
        return values if is_exact or values.dtype.kind == "f" else values.astype(np.float64)
    values = values.astype(np.float64)
    values[column.missing] = np.nan
    return values


class PieceCoder:
    """Turns pieces into bin numbers, for some features of a binning, as `encode` would."""

    def __init__(self, binned: Binning, features: Sequence[int]) -> None:
        self.features = features
        self._n_bins = binned.count_bins(np.array(features, dtype=np.int64))
        self._lookups = {
            j: _LevelLookup.make(binned, j) if j in binned.levels else _EdgeSearch.make(binned, j)
            for j in features
        }

    @property
    def dtype(self) -> np.dtype[Any]:
        """One byte where that is enough for all features, else two or four."""
        return np.min_scalar_type(max(1, *self._n_bins.tolist(), MAX_NARROW_BINS) - 1)

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
            n_rows = _count_rows(columns[self.features[0]]) if self.features else 0
            out = np.empty((len(self.features), n_rows), dtype=self.dtype)

        def code_feature(k: int) -> None:
            self._lookups[self.features[k]].code(columns[self.features[k]], out[k])

        run_in_parts(code_feature, range(len(self.features)), n_threads)
        return out


def code_piece(columns: Sequence[Column], binned: Binning, features: Sequence[int]) -> Array:
    """Bin numbers (feature, row) of a piece; many pieces are quicker with one `PieceCoder`."""
    return PieceCoder(binned, features).code(columns)


def _count_rows(column: Column) -> int:
    assert not isinstance(column, Dates)
    return len(column.values if isinstance(column, Numbers) else column.codes)


class _LevelLookup(NamedTuple):
    """The bin of each level of a category."""

    bins: Mapping[tuple[str, Level], int]
    has_missing: bool

    @classmethod
    def make(cls, binned: Binning, feature: int) -> _LevelLookup:
        levels, has_missing = binned.levels[feature], bool(binned.has_missing[feature])
        numbers = {sort_key(level): k for k, level in enumerate(levels.levels)}
        numbers |= {sort_key(level): len(levels.levels) for level in levels.pool}
        return cls({key: k + has_missing for key, k in numbers.items()}, has_missing)

    def code(self, column: Column, out: Array) -> None:
        assert isinstance(column, Levels)
        bins = [self.bins[sort_key(level)] for level in column.levels]
        out[:] = np.array([*bins, 0], dtype=out.dtype)[column.codes]  # the last is for missing


class _EdgeSearch(NamedTuple):
    """The thresholds of a column of numbers, made ready to be searched.

    Where values are missing a threshold of minus infinity comes first, which all others exceed.
    """

    edges: Array
    table: SearchTable | None

    @classmethod
    def make(cls, binned: Binning, feature: int) -> _EdgeSearch:
        edges = binned.find_edges(feature)
        if binned.has_missing[feature]:
            edges = np.concatenate((np.array([-np.inf], dtype=edges.dtype), edges))
        is_searched = 1 < len(edges) < MAX_NARROW_BINS  # else NumPy is as quick
        return cls(edges, make_search_table([edges], edges.dtype) if is_searched else None)

    def code(self, column: Column, out: Array) -> None:
        assert isinstance(column, Numbers)
        values = read_numbers(column, is_exact=self.edges.dtype.kind in "iu")
        values = values.astype(self.edges.dtype, copy=False)
        if self.table is None or out.dtype != CODE_DTYPE:
            out[:] = np.where(values != values, 0, np.searchsorted(self.edges, values, "left"))
            return
        in_place, first = np.arange(len(values), dtype=ROW_DTYPE), np.zeros(1, dtype=np.int64)
        nothing = np.zeros(1, dtype=np.bool_)
        _kernels.code_columns(
            values[:, np.newaxis],
            in_place,
            first,
            self.table,
            nothing,
            self.edges[:1],
            out[np.newaxis],
            nothing,
        )
