"""The screen of a points score: `InvariantFeatureSelector` on the columns of an open source.

A score is learned from binned rows, wherever these came from, and the selector screens a table. So
each bin is given a value, the selector screens these values, and what it says of a column, in
words, is read as the record of a rejected column that reports and traces show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._types import Array, IntArray
from icscm.engine.counts import Cut, RowAccess, RowSource
from icscm.estimators.selector import InvariantFeatureSelector
from icscm.formatting import format_name
from icscm.model.rules import CategoryRule, Rule, ThresholdRule
from icscm.search.records import RejectedColumn
from icscm.sources.countable import Countable

if TYPE_CHECKING:
    import pandas


class ColumnScreen(InvariantFeatureSelector):
    """A selector that only screens: the score itself is fitted on the columns kept."""

    _fits_learner = False


@dataclass(frozen=True, eq=False)
class ScreenedColumns:
    """The columns that may get points, those that may not, and the table of the screen."""

    kept: list[int]
    rejected: tuple[RejectedColumn, ...]
    table: pandas.DataFrame


def screen_columns(countable: Countable[Any], selector: ColumnScreen) -> ScreenedColumns:
    """Screen the columns of an open source."""
    import pandas  # slow to import

    source = countable.source
    values = read_values(source)
    columns = list(values)
    names = columns if countable.names is None else [countable.names[column] for column in columns]
    texts = [format_name(name) for name in names]
    frame = pandas.DataFrame(dict(zip(texts, values.values(), strict=True)))
    fit_in_table_order(selector, frame, source)

    kept: list[int] = []
    rejected: list[RejectedColumn] = []
    for column, row in zip(columns, selector.screen_.to_dict("records"), strict=True):
        if row["verdict"] == "rejected":
            rejected.append(make_record(source, column, row))
        else:
            kept.append(column)
    return ScreenedColumns(
        kept=kept,
        rejected=tuple(sorted(rejected, key=lambda record: record.round)),
        table=selector.screen_.assign(column=names),
    )


def fit_in_table_order(selector: ColumnScreen, frame: pandas.DataFrame, source: RowSource) -> None:
    """Fit the selector on the rows of a source in the order of the user's table.

    A source sorts its rows, and the folds of a screen depend on their order: so a score is the same
    wherever its rows come from.
    """
    rows: RowAccess | None = source.rows
    assert rows is not None, "a score needs the rows in this process"
    cells = rows.list_cells()
    environment_labels = np.fromiter(source.environments, dtype=object)  # a label may be a tuple
    groups = rows.list_groups()
    order = rows.list_in_table_order()
    selector.fit(
        frame.iloc[order],
        cells.outcomes[order],
        environments=environment_labels[cells.environments[order]],
        groups=None if groups is None else rows.number_units(groups)[order],
    )


# --- values of bins -------------------------------------------------------------------------------


def read_values(source: RowSource) -> dict[int, Any]:
    """Read the columns that can be cut, by number, with rows as the source sorts them.

    The value of a bin is the largest that it may hold, its threshold. So all sources give the same
    values, however they keep the rows.
    """
    assert source.rows is not None, "a score needs the rows in this process"
    values: dict[int, Any] = {}
    for column in source.rows.list_columns().tolist():
        layout = source.columns.find_layout(column)
        bins = source.rows.read_bins(column).astype(np.int64)
        if layout.has_missing:
            bins -= 1  # bin 0 holds missing values, which become -1
        n_bins = int(bins.max(initial=0)) + 1
        if layout.nominal:
            values[column] = read_levels(source, column, bins=bins, n_bins=n_bins)
        else:
            values[column] = find_bin_values(source, column, n_bins=n_bins)[bins]
    return values


def read_levels(source: RowSource, column: int, *, bins: IntArray, n_bins: int) -> Any:
    """Read a category: each bin is a level, and one may hold all rare levels."""
    import pandas  # slow to import

    levels: list[str] = []
    for number in range(n_bins):
        rule = source.columns.make_rule(Cut(column, number, negated=False))
        assert isinstance(rule, CategoryRule), "a rule on a category"
        levels.append("rare levels" if rule.pooled else str(rule.levels[0]))
    return pandas.Categorical.from_codes(bins, levels)


def find_bin_values(source: RowSource, column: int, *, n_bins: int) -> Array:
    """Find the values of the bins of an ordered column, followed by NaN for bin -1, missing.

    The last bin has no threshold. Any value above all thresholds stands for it.
    """
    thresholds: list[float] = []
    for number in range(n_bins - 1):
        rule = source.columns.make_rule(Cut(column, number, negated=False))
        if isinstance(rule, ThresholdRule):
            thresholds.append(float(rule.threshold))
        else:  # an ordered category, or presence
            thresholds.append(float(number))
    if not thresholds:
        thresholds = [0.0]

    last = thresholds[-1]
    beyond = max(2 * last, last + 1.0)
    return np.array([*thresholds, beyond, np.nan])


# --- rejected columns -----------------------------------------------------------------------------


def make_record(source: RowSource, column: int, row: Mapping[str, Any]) -> RejectedColumn:
    """Make the record of a rejected column from its row in the table of the screen."""
    rule = find_rule(source, column, text=row["rule"])
    if row["round"] == 0:
        return RejectedColumn(
            rule=rule, reason="unreplicated", round=0, replication=row["replication"]
        )
    return RejectedColumn(
        rule=rule,
        reason="heterogeneous",
        round=int(row["round"]),
        replication=None,
        heterogeneity_share=row["share"],
        p_value=row["p_value"],
    )


def find_rule(source: RowSource, column: int, *, text: str) -> Rule:
    """Find the rule on a column that reads like this; the first of the column if none does."""
    layout = source.columns.find_layout(column)
    n_bins = int(source.columns.count_bins(np.array([column]))[0]) - layout.has_missing
    n_cuts = n_bins if layout.nominal else n_bins - 1

    rules: dict[str, Rule] = {}
    # cut -1 tells missing values from all others
    for number, negated, missing in product(range(-1, n_cuts), (False, True), (False, True)):
        rule = source.columns.make_rule(Cut(column, number, negated, missing))
        rules[str(rule)] = rule
    if text in rules:
        return rules[text]
    return source.columns.make_rule(Cut(column, 0, negated=False))
