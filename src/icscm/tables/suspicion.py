"""Columns that no rule should be made of: identifiers, constants, copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icscm._constants import (
    COPY_ROWS,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    LEAST_HUGE_NUMBER,
    MIN_CHANCE_PAIRS,
    NUMBERED_IDENTIFIER_SHARE,
    SUSPICION_ROWS,
)
from icscm._types import Array, BoolArray
from icscm.tables.coding import CONSTANT, ENVIRONMENT_COPY, IDENTIFIER, LABEL_COPY, CodedTable


def find_suspicious(
    table: CodedTable,
    labels: NDArray[np.int64],
    environments: NDArray[np.int64],
    whole: BoolArray,
) -> dict[int, str]:
    """Columns that no rule should be made of, and why; those left out already included.

    `whole` says which columns hold whole numbers by their type: a measurement with decimals may
    well be different in every row.
    """
    found = dict(table.left_out)
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    for groups, reason in ((labels, LABEL_COPY), (environments, ENVIRONMENT_COPY)):
        for j in {*_find_copies(table.values, groups)} - pooled:
            found.setdefault(j, reason)
    for j in range(table.n_columns):
        if j not in found and _is_constant(table.values[:, j]):
            found[j] = CONSTANT
        elif j not in found and _is_identifier(table, j, bool(whole[j])):
            found[j] = IDENTIFIER
    return found


def _find_copies(values: Array, groups: NDArray[np.int64]) -> list[int]:
    """Columns that tell the groups exactly: one value in each, another in every other."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) < 2 or len(groups) < COPY_ROWS:
        return []
    some = slice(0, SUSPICION_ROWS)
    alike = _are_equal(values[some], values[first[number[some]]]).all(axis=0)
    alike &= np.array([len(np.unique(column)) == len(first) for column in values[first].T])
    return [
        int(j)
        for j in np.flatnonzero(alike)
        if _are_equal(values[:, j], values[first, j][number]).all()
    ]


def _are_equal(one: Array, other: Array) -> BoolArray:
    """Where values are equal, or both are missing."""
    equal: BoolArray = (one == other) | ((one != one) & (other != other))
    return equal


def _is_constant(column: Array) -> bool:
    first = column[0]
    if first == first:
        return bool(column[-1] == first and (column == first).all())
    return bool(np.isnan(column).all())


def _is_identifier(table: CodedTable, j: int, is_whole: bool) -> bool:
    n_rows = len(table.values)
    if n_rows < IDENTIFIER_ROWS:
        return False
    if j in table.levels:
        bins = table.levels[j]
        n_present = n_rows - int(np.isnan(table.values[:, j]).sum())
        return len(bins.levels) + len(bins.pool) > IDENTIFIER_SHARE * n_present
    return is_numbering(table.values[:, j], is_whole)


def is_numbering(column: Array, is_whole: bool = True) -> bool:
    """Whether whole numbers look like an identifier rather than like something measured."""
    some = column[:SUSPICION_ROWS]
    if not is_whole and (some != np.floor(some)).any(where=some == some):
        return False
    some = column[: max(SUSPICION_ROWS, len(column) // 50)]
    # a look at some rows first: distinct values of all are slow to count
    if _count_repeated(some[some == some]) > (1 - NUMBERED_IDENTIFIER_SHARE) * len(column):
        return False
    present = column[column == column]
    if len(present) == 0 or (present != np.floor(present)).any():
        return False
    bounds = float(present.min()), float(present.max())
    return is_handed_out(len(present), _count_repeated(present), *bounds)


def _count_repeated(values: Array) -> int:
    return len(values) - len(np.unique(values))


def is_handed_out(n_rows: int, n_repeated: float, lowest: float, highest: float) -> bool:
    """Whether so many whole numbers in this range are an identifier.

    Nearly all must differ, and that must say something. Of n numbers measured at random in a range
    of R, n^2 / 2R pairs would be equal by chance: if there are far fewer, they were handed out one
    by one. Numbers beyond a thousand million were not measured in any case.
    """
    if n_rows < IDENTIFIER_ROWS or n_repeated > (1 - NUMBERED_IDENTIFIER_SHARE) * n_rows:
        return False
    n_expected = n_rows**2 / (2 * (highest - lowest + 1))
    is_telling = n_expected >= MIN_CHANCE_PAIRS and n_repeated <= n_expected / 10
    return is_telling or highest >= LEAST_HUGE_NUMBER
