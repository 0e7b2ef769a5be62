"""The screen of a points score: the rounds of `icscm.screening` on the rows of an open source.

A score is learned from binned rows, wherever these came from, and so is the screen. What it says of
a column is kept as the record of a rejected column, which reports and traces show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.engine.counts import RowSource
from icscm.estimators.selector_tables import make_tables
from icscm.screening.content import number_by_appearance, sort_by_content
from icscm.screening.outcomes import make_outcome
from icscm.screening.rounds import ScreenState, deal_rows, run_screen
from icscm.screening.screened_table import read_table
from icscm.search.comparable import make_determining_record
from icscm.search.records import RejectedColumn
from icscm.sources.countable import Countable

if TYPE_CHECKING:
    import pandas

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class ScreenedColumns:
    """The columns that may get points, those that may not, and the table of the screen."""

    kept: list[int]
    rejected: tuple[RejectedColumn, ...]
    table: pandas.DataFrame


def screen_columns(
    countable: Countable[Any], *, tolerance: float, seed: int, n_jobs: int | None
) -> ScreenedColumns:
    """Screen the columns of an open source."""
    source: RowSource = countable.source
    rows = source.rows
    assert rows is not None, "a score needs the rows in this process"
    columns = rows.list_columns().tolist()
    table_order = rows.list_in_table_order()
    outcomes = rows.list_cells().outcomes[table_order].astype(np.int64)
    group_codes = rows.list_groups()
    groups = None if group_codes is None else group_codes[table_order]

    n_columns = countable.n_features
    names = countable.names or range(n_columns)
    table = read_table(source, names=list(names), columns=columns, groups=groups, is_weighted=False)

    # The order of the rows in the table must not decide anything.
    order = sort_by_content(table, outcomes, weights=None, groups=groups)
    table = table.take(order)
    outcomes = outcomes[order]
    groups = None if groups is None else number_by_appearance(groups[order])
    n_folds = min(N_FOLDS, int(np.bincount(outcomes).min()))
    fold_numbers = deal_rows(
        table, classes=outcomes, groups=groups, n_folds=max(n_folds, 2), seed=seed
    )
    outcome = make_outcome(outcomes, None, is_number=False)
    screen = run_screen(
        outcome,
        table,
        fold_numbers=fold_numbers,
        tolerance=tolerance,
        seed=seed,
        n_jobs=n_jobs,
    )
    if not screen.is_complete:  # a score is learned from columns that were screened to the end
        raise KeyboardInterrupt
    tables = make_tables(
        screen,
        outcome,
        source.columns,
        names=list(names),
        environments=source.environments,
        rejects_undecided=False,
    )
    return ScreenedColumns(
        kept=[column for column in columns if column not in screen.rejected],
        rejected=tuple(make_records(screen, source)),
        table=tables.screen.iloc[columns].reset_index(drop=True),
    )


def make_records(screen: ScreenState, source: RowSource) -> list[RejectedColumn]:
    """Make the records of the rejected columns, in the order of rejection."""
    by_round = sorted(screen.rejected.items(), key=lambda item: item[1])
    records = []
    for column, number in by_round:
        judged = screen.judged.get(column)
        if judged is None:  # it determines the environment
            record = make_determining_record(source.columns, column)
        else:
            record = RejectedColumn(
                rule=source.columns.make_rule(judged.contrast.cut),
                reason="heterogeneous",
                round=number,
                replication=None,
                heterogeneity_share=judged.evidence.share,
                p_value=judged.evidence.separate.p_value,
            )
        records.append(record)
    return records
