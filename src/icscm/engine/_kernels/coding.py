"""Values to bin numbers."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icscm._constants import CODED_COLUMNS, CODED_ROWS
from icscm.compiling import compiled

# Rows and columns taken at a time: as many values as a cache line of float64 holds.
_TILE = 8


@compiled
def find_extremes(columns, lowest, highest, two_valued, missing):
    """Least and greatest value of each row of `columns`, and whether there is none between.

    Where values are `missing` the others are not told.
    """
    for k in range(columns.shape[0]):
        column = columns[k]
        low = column[0]
        high = column[0]
        for i in range(column.shape[0]):
            value = column[i]
            low = min(low, value)
            high = max(high, value)
        n_between = n_missing = 0
        for i in range(column.shape[0]):
            n_between += (column[i] != low) & (column[i] != high)
            n_missing += column[i] != column[i]
        missing[k] = n_missing > 0
        lowest[k] = low
        highest[k] = high
        two_valued[k] = n_between == 0


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Behind its `n_edges[k]` edges, `edges[k]` is padded with the dtype's greatest value to a power
    of two and one more. Where `scale[k]` is not 0, the line (x - low[k]) * scale[k] sends values
    to the places of `guess[k]`, which holds the number of edges that go to earlier places; at
    most two edges share a place, so two comparisons correct the guess. The line never
    decreases, rounded or not: an edge at an earlier place is below x, at a later one above.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray

    def select(self, part: slice) -> SearchTable:
        """Some of the columns."""
        return SearchTable(*(each[part] for each in self))


@compiled
def _guess_codes(values, edges, guess, low, scale, places, codes):
    """codes[i] = number of edges below values[i], by a guess and two comparisons."""
    last = np.float64(guess.shape[0] - 1)
    for i in range(values.shape[0]):  # apart from the lookup: this one compiles to lanes
        places[i] = np.int32(min(max((values[i] - low) * scale, 0.0), last))
    for i in range(values.shape[0]):
        first = guess[np.uint64(places[i])]
        at = np.uint64(first)
        codes[i] = (
            first + np.uint8(values[i] > edges[at]) + np.uint8(values[i] > edges[at + np.uint64(1)])
        )


@compiled
def _search_edges(values, edges, n_edges, codes):
    """codes[i] = number of edges below values[i], by halving, all values a level at a time."""
    codes[: values.shape[0]] = 0
    step = 1
    while 2 * step <= n_edges:
        step *= 2
    while step > 0:
        for i in range(values.shape[0]):
            # in unsigned bytes: any wider arithmetic here compiles to a branch
            edge = edges[np.uint64(codes[i]) + np.uint64(step - 1)]
            codes[i] += np.uint8(step) * np.uint8(values[i] > edge)
        step >>= 1


@compiled
def _has_surprise(values, edges, n_edges, highest, codes):
    """Whether any value is neither one of the edges nor the highest.

    Missing ones are neither, and no surprise where the first edge has them below it.
    """
    may_miss = edges[0] == -np.inf
    n_surprises = 0
    for i in range(values.shape[0]):
        is_edge = (codes[i] < n_edges) & (values[i] == edges[codes[i]])
        is_gap = may_miss & (values[i] != values[i])
        n_surprises += (not is_edge) & (values[i] != highest) & (not is_gap)
    return n_surprises > 0


@compiled
def _take_tiles(X, start, size, first, n_columns, block):
    """block[k, i] = X[start + i, first + k], of a row-major X.

    A cache line of eight rows at a time: the rows stream in, and whole lines are written.
    """
    i = 0
    while i + _TILE <= size:
        k = 0
        while k + _TILE <= n_columns:
            for r in range(_TILE):
                for c in range(_TILE):
                    block[k + c, i + r] = X[start + i + r, first + k + c]
            k += _TILE
        for r in range(_TILE):
            for c in range(k, n_columns):
                block[c, i + r] = X[start + i + r, first + c]
        i += _TILE
    for r in range(i, size):
        for c in range(n_columns):
            block[c, r] = X[start + r, first + c]


@compiled
def _take_columns(X, start, size, columns, block):
    """block[k, i] = X[start + i, columns[k]], of any X."""
    for k in range(columns.shape[0]):
        for i in range(size):
            block[k, i] = X[start + i, columns[k]]


@compiled
def _are_neighbours(columns):
    for k in range(1, columns.shape[0]):
        if columns[k] != columns[k - 1] + 1:
            return False
    return True


@compiled
def code_columns(X, position, columns, table, known, highest, start, stop, codes, surprised):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by label, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    The bin of x is the number of edges below x. Rows start .. stop are coded, a block of them and
    of columns at a time, which stays in the second-level cache.
    Where `known[k]` is set, the column was taken to hold just its edges and `highest[k]`;
    `surprised[k]` is set when it does not.
    """
    places = np.empty(CODED_ROWS, np.int32)
    block_codes = np.empty(CODED_ROWS, np.uint8)
    block = np.empty((CODED_COLUMNS, CODED_ROWS), X.dtype)
    is_by_row = X.strides[0] > X.strides[1]
    for begin in range(start, stop, CODED_ROWS):
        size = min(CODED_ROWS, stop - begin)
        for first in range(0, columns.shape[0], CODED_COLUMNS):
            some = columns[first : first + CODED_COLUMNS]
            if is_by_row and _are_neighbours(some):
                _take_tiles(X, begin, size, some[0], some.shape[0], block)
            else:
                _take_columns(X, begin, size, some, block)
            for c in range(some.shape[0]):
                k, values = first + c, block[c, :size]
                edges, n_edges = table.edges[k], table.n_edges[k]
                if table.scale[k] > 0.0:
                    guess, line = table.guess[k], (table.low[k], table.scale[k])
                    _guess_codes(values, edges, guess, line[0], line[1], places, block_codes)
                else:
                    _search_edges(values, edges, n_edges, block_codes)
                if known[k] and _has_surprise(values, edges, n_edges, highest[k], block_codes):
                    surprised[k] = True
                out = codes[k]
                for i in range(size):
                    out[position[begin + i]] = block_codes[i]
