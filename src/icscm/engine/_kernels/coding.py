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


@compiled
def choose_all_edges(ordered, most, ranks, edges, n_edges, known):
    """`binning.choose_edges` of each row of `ordered`, with `most` thresholds and their ranks.

    Row k's edges are the first `n_edges[k]` of `edges[k]`, which has a place to spare.
    """
    for k in range(ordered.shape[0]):
        values, own = ordered[k], edges[k]
        last = values[-1]
        n_found = 0
        for i in range(values.shape[0]):
            if values[i] < last and (n_found == 0 or values[i] != own[n_found - 1]):
                own[n_found] = values[i]
                n_found += 1
                if n_found > most:
                    break
        known[k] = n_found <= most
        if n_found > most:
            below = values.shape[0] - 1
            while values[below] == last:
                below -= 1
            n_found = 0
            for rank in ranks:
                pick = min(values[rank], values[below])
                if n_found == 0 or pick != own[n_found - 1]:
                    own[n_found] = pick
                    n_found += 1
        n_edges[k] = n_found


class SearchTable(NamedTuple):
    """The edges of some columns, one row each, in the form that coding searches fastest.

    Behind its `n_edges[k]` edges, `edges[k]` is padded with the dtype's greatest value to a power
    of two and one more. Where `scale[k]` is not 0, the line (x - low[k]) * scale[k] sends values
    to the places of `guess[k]`, which holds the number of edges that go to earlier places; at
    most `n_shared[k]` edges share a place, one or two, so as many comparisons correct the guess.
    The line never decreases, rounded or not: an edge at an earlier place is below x, at a later
    one above.
    """

    edges: np.ndarray
    n_edges: np.ndarray
    guess: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    n_shared: np.ndarray


@compiled
def _find_places(values, low, scale, last, places):
    """places[i] = where the line sends values[i]. Apart from the lookup, as this goes in lanes."""
    for i in range(values.shape[0]):
        places[i] = np.uint16(np.int32(min(max((values[i] - low) * scale, 0.0), last)))


@compiled
def _correct_once(values, places, edges, guess, codes):
    """codes[i] = number of edges below values[i], where no two edges share a place."""
    for i in range(values.shape[0]):
        first = guess[np.uint64(places[i])]
        codes[i] = first + np.uint8(values[i] > edges[np.uint64(first)])


@compiled
def _correct_twice(values, places, edges, guess, codes):
    """The same where two edges may share a place."""
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
def _are_neighbours(columns):
    n_gaps = 0
    for k in range(1, columns.shape[0]):
        n_gaps += columns[k] != columns[k - 1] + 1
    return n_gaps == 0


@compiled
def _find_codes(values, table, k, places, codes):
    """codes[i] = number of the edges of column k below values[i]."""
    edges, guess = table.edges[k], table.guess[k]
    if table.scale[k] == 0.0:
        _search_edges(values, edges, table.n_edges[k], codes)
        return
    _find_places(values, table.low[k], table.scale[k], np.float64(guess.shape[0] - 1), places)
    if table.n_shared[k] == 1:
        _correct_once(values, places, edges, guess, codes)
    else:
        _correct_twice(values, places, edges, guess, codes)


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
    places = np.empty(CODED_ROWS, np.uint16)
    block_codes = np.empty(CODED_ROWS, np.uint8)
    # columns a power of two apart would all lie in the same few lines of the cache
    block = np.empty((CODED_COLUMNS, CODED_ROWS + _TILE), X.dtype)
    is_by_row = X.strides[0] > X.strides[1]
    for begin in range(start, stop, CODED_ROWS):
        size = min(CODED_ROWS, stop - begin)
        targets = position[begin : begin + size]
        for first in range(0, columns.shape[0], CODED_COLUMNS):
            some = columns[first : first + CODED_COLUMNS]
            is_tiled = is_by_row and _are_neighbours(some)
            if is_tiled:
                _take_tiles(X, begin, size, some[0], some.shape[0], block)
            for c in range(some.shape[0]):
                k, values, own = first + c, block[c, :size], block_codes[:size]
                if not is_tiled:
                    values[:] = X[begin : begin + size, some[c]]
                _find_codes(values, table, k, places, own)
                if known[k] and _has_surprise(
                    values, table.edges[k], table.n_edges[k], highest[k], own
                ):
                    surprised[k] = True
                out = codes[k]
                for i in range(size):
                    out[targets[i]] = own[i]
