"""Columns that give the environment away: there is nothing to compare their effect with.

A column *determines the environment* if, knowing its value, one knows the environment:

    - it is constant within every environment but not over all of them (the hospital's region);
    - it varies in one environment only (a test that one hospital does);
    - each of its bins of `MIN_ROWS` rows or more lies in one environment, by 99 % of its rows.

Such a column is rejected before anything is fitted. Of a category, single levels may do so while
the others do not: these levels are pooled, and named.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._types import CountArray, IntArray
from icscm.screening.boosting import BinnedRows
from icscm.screening.screened_table import ScreenedTable

# Smaller bins say nothing about where they lie.
MIN_ROWS: Final = 5
# The share of a bin's rows in one environment from which on the bin lies there.
MIN_SHARE: Final = 0.99
# Cramer's V from which on a column nearly determines the environment.
NEARLY: Final = 0.9


@dataclass(frozen=True, eq=False)
class Giveaways:
    """What gives the environment away.

    Attributes
    ----------
    determining : list of int
        Columns that determine the environment.
    nearly : list of int
        Columns that nearly do: Cramer's V with the environment is above .9.
    pooled_levels : dict of list of int
        Bins of categories, by column, that lie in one environment each.
    """

    determining: list[int]
    nearly: list[int]
    pooled_levels: dict[int, list[int]]


def find_giveaways(table: ScreenedTable) -> Giveaways:
    """Find what gives the environment away; with one environment there is nothing to give."""
    determining: list[int] = []
    nearly: list[int] = []
    pooled_levels: dict[int, list[int]] = {}
    for column in range(table.n_columns):
        counts = table.count_bins(column)
        if determines_environment(counts):
            determining.append(column)
            continue
        if compute_cramers_v(counts) > NEARLY:
            nearly.append(column)
        if table.columns.is_nominal[column]:
            lone = find_lone_bins(counts)
            if len(lone):
                pooled_levels[column] = lone.tolist()
    return Giveaways(determining=determining, nearly=nearly, pooled_levels=pooled_levels)


def determines_environment(counts: CountArray) -> bool:
    """Return whether a column gives the environment away, from counts by (environment, bin)."""
    is_filled = counts.sum(axis=1) > 0
    counts = counts[is_filled]
    n_environments = len(counts)
    n_bins_in_use = np.count_nonzero(counts.sum(axis=0))
    if n_environments < 2 or n_bins_in_use < 2:
        return False

    n_varying = np.count_nonzero((counts > 0).sum(axis=1) > 1)
    if n_varying <= 1 and n_environments > 2:
        return True
    if n_varying == 0:
        return True
    lone = find_lone_bins(counts)
    n_large = np.count_nonzero(counts.sum(axis=0) >= MIN_ROWS)
    return bool(2 <= n_large == len(lone))


def find_lone_bins(counts: CountArray) -> IntArray:
    """Return the bins of enough rows that lie in one environment each."""
    n_rows = counts.sum(axis=0)
    is_lone = counts.max(axis=0) >= MIN_SHARE * n_rows
    return np.flatnonzero(is_lone & (n_rows >= MIN_ROWS))


def compute_cramers_v(counts: CountArray) -> float:
    """Return Cramer's V of environment and bin: sqrt(chi^2 / (n (k - 1))), 1 for a function.

    k is the smaller of the numbers of environments and of bins in use.
    """
    in_use = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n = in_use.sum()
    k = min(in_use.shape)
    if k < 2:
        return 0.0
    expected = np.outer(in_use.sum(axis=1), in_use.sum(axis=0)) / n
    chi_squared = ((in_use - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi_squared / (n * (k - 1))))


def pool_lone_levels(table: ScreenedTable, pooled_levels: dict[int, list[int]]) -> ScreenedTable:
    """Return the table with the levels that lie in one environment pooled, by column.

    As one bin they cannot tell one environment from another as long as they are several.
    """
    if not pooled_levels:
        return table
    bins = table.columns.bins.copy()
    for column, levels in pooled_levels.items():
        bins[column][np.isin(bins[column], levels)] = levels[0]
    columns = BinnedRows(
        bins=bins, n_bins=table.columns.n_bins, is_nominal=table.columns.is_nominal
    )
    return replace(table, columns=columns)
