"""Columns, and levels of categories, that give the environment away.

What determines the environment is rejected before anything is fitted; `icscm.stats.giveaways` has
the definition, which learners share. Of a category, single levels may lie in one environment while
the others do not: these levels are pooled, and named.
"""

from dataclasses import dataclass, replace

import numpy as np

from icscm.screening.boosting import BinnedRows
from icscm.screening.screened_table import ScreenedTable
from icscm.stats import giveaways as statistics


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
        counts = table.count_bins(column).T  # (bin, environment)
        of_column = statistics.find_giveaways(counts[np.newaxis])
        if of_column.is_determining[0]:
            determining.append(column)
            continue
        if of_column.is_nearly_determining[0]:
            nearly.append(column)
        if table.columns.is_nominal[column]:
            lone_bins = np.flatnonzero(statistics.find_lone_bins(counts))
            if len(lone_bins):
                pooled_levels[column] = lone_bins.tolist()
    return Giveaways(determining=determining, nearly=nearly, pooled_levels=pooled_levels)


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
