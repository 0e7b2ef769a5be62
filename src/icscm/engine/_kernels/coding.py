"""Values to bin numbers."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icscm._constants import ROW_BLOCK
from icscm.compiling import compiled


@compiled
def find_extremes(columns, lowest, highest, two_valued):
    """Least and greatest value of each row of `columns`, and whether there is none between."""
    for k in range(columns.shape[0]):
        column = columns[k]
        low = column[0]
        high = column[0]
        for i in range(column.shape[0]):
            value = column[i]
            low = min(low, value)
            high = max(high, value)
        n_between = 0
        for i in range(column.shape[0]):
            n_between += (column[i] != low) & (column[i] != high)
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
def _guess_codes(values, edges, guess, low, scale, codes):
    """codes[i] = number of edges below values[i], by a guess and two comparisons."""
    last = np.float64(guess.shape[0] - 1)
    for i in range(values.shape[0]):
        place = min(max((values[i] - low) * scale, 0.0), last)
        first = guess[np.uint64(place)]
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
    """Whether any value is neither one of the edges nor the highest; missing ones are neither."""
    n_surprises = 0
    for i in range(values.shape[0]):
        is_edge = (codes[i] < n_edges) & (values[i] == edges[codes[i]])
        is_value = values[i] == values[i]
        n_surprises += (not is_edge) & (values[i] != highest) & is_value
    return n_surprises > 0


@compiled
def code_columns(X, position, columns, table, known, highest, codes, surprised):
    """Write the bin number of each value, column by column, rows at their sorted position.

        X (row-major)              codes (one row per column of X, sorted by label, environment)
        a0 b0 c0                   a2 a0 a1 | a3 ...
        a1 b1 c1     position      b2 b0 b1 | b3 ...
        a2 b2 c2     1 2 0 3  -->  ...

    The bin of x is the number of edges below x. A block of rows goes through a column
    together, to keep many loads under way.
    Where `known[k]` is set, the column was taken to hold just its edges and `highest[k]`;
    `surprised[k]` is set when it does not.
    """
    block_codes = np.empty(ROW_BLOCK, np.uint8)
    block_values = np.empty(ROW_BLOCK, X.dtype)
    for start in range(0, X.shape[0], ROW_BLOCK):
        size = min(ROW_BLOCK, X.shape[0] - start)
        for k in range(columns.shape[0]):
            column = columns[k]
            edges, n_edges = table.edges[k], table.n_edges[k]
            for i in range(size):
                block_values[i] = X[start + i, column]
            values = block_values[:size]
            if table.scale[k] > 0.0:
                _guess_codes(
                    values, edges, table.guess[k], table.low[k], table.scale[k], block_codes
                )
            else:
                _search_edges(values, edges, n_edges, block_codes)
            if known[k] and _has_surprise(values, edges, n_edges, highest[k], block_codes):
                surprised[k] = True
            out = codes[k]
            for i in range(size):
                out[position[start + i]] = block_codes[i]
