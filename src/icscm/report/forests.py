"""Forest plots of screened columns: as cells of a page's table, and as a figure.

A forest plot has a row for the effect in each environment, then one for the pooled effect and one
for a new environment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from icscm.drawing import Figure
from icscm.drawing.axes import make_ratio_axis
from icscm.drawing.intervals import (
    Background,
    IntervalPanel,
    IntervalRow,
    RowKind,
    draw_axis_cell,
    draw_cell,
    draw_interval_panel,
)
from icscm.drawing.shapes import place_below
from icscm.exceptions import IcscmError
from icscm.formatting import clip
from icscm.report.content.screen import EnvironmentEffect, ScreenedColumn, make_column
from icscm.report.drawing import Limits, make_pair
from icscm.report.formatting import format_heterogeneity, format_odds_interval, format_ratio

# Columns that a figure draws if none is named, and environments of each.
N_DRAWN = 6
MAX_ENVIRONMENTS = 60


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot in a table, with its drawn cell."""

    name: str
    kind: str
    odds_ratio: float | None
    interval: Sequence[float] | None
    is_prediction: bool
    cell: Markup


@dataclass(frozen=True)
class DrawnForest:
    """The forest plot of a column; those of rejected columns are unfolded.

    `n_left_out` environments with less precise effects are not drawn.
    """

    column: str
    verdict: str
    share: float | None
    rule: str | None
    is_open: bool
    rows: list[ForestRow]
    n_left_out: int


@dataclass(frozen=True)
class DrawnForests:
    """Forest plots, and the marks of the axis that they share."""

    columns: list[DrawnForest]
    axis: Markup


def draw_forest_cells(columns: Sequence[ScreenedColumn], limits: Limits) -> DrawnForests:
    """Draw forest plots on one axis; of very many environments, the most precise effects."""
    known = [effect for column in columns for effect in list_known(column)]
    axis = make_ratio_axis(effect.odds_ratio for effect in known if effect.odds_ratio is not None)
    background = Background(guide=1.0)
    forests = []
    for column in columns:
        rows = choose_effects(column, limits.environments)
        n_drawn = sum(row.kind is RowKind.GROUP for row in rows)
        forests.append(
            DrawnForest(
                column=column.column,
                verdict=column.verdict,
                share=column.share,
                rule=column.rule,
                is_open=column.verdict == "rejected",
                rows=[
                    ForestRow(
                        name=row.name,
                        kind=row.kind.name,
                        odds_ratio=row.estimate,
                        interval=row.interval,
                        is_prediction=row.kind is RowKind.PREDICTION,
                        cell=draw_cell(row, axis, background),
                    )
                    for row in rows
                ],
                n_left_out=len(list_known(column)) - n_drawn,
            )
        )
    return DrawnForests(forests, draw_axis_cell(axis))


def list_known(column: ScreenedColumn) -> list[EnvironmentEffect]:
    """Return the effects that are known."""
    return [effect for effect in column.environments if effect.interval is not None]


def choose_effects(column: ScreenedColumn, limit: int) -> list[IntervalRow]:
    """Return the most precise effects of a column, the pooled one and that of a new environment."""
    known = list_known(column)
    precise = sorted(known, key=lambda effect: effect.standard_error or 0.0)[:limit]
    rows = [
        IntervalRow(effect.environment, effect.odds_ratio, make_pair(effect.interval))
        for effect in known
        if effect in precise
    ]
    pooled = column.pooled
    if pooled is None:
        return rows
    interval = make_pair(pooled.interval)
    rows.append(IntervalRow("pooled", pooled.odds_ratio, interval, RowKind.POOLED))
    if pooled.prediction_interval is not None:
        interval = make_pair(pooled.prediction_interval)
        rows.append(IntervalRow("new environment", None, interval, RowKind.PREDICTION))
    return rows


def draw_forest_figure(selector: Any, column: Any = None) -> Figure:
    """Draw forest plots of one column, or of those with the largest shares of heterogeneity."""
    screen = selector.screen_
    if column is not None:
        screen = screen[screen["column"] == column]
        if screen.empty:
            raise IcscmError(f"there is no column {column!r} in the screen")
    rows = screen.sort_values("share", ascending=False, kind="stable").to_dict("records")
    columns = [make_column(row, selector.effects_) for row in rows]
    drawn = [screened for screened in columns if screened.lowest is not None][:N_DRAWN]
    if not drawn:
        raise IcscmError("no effect is known that could be drawn; see the reasons in screen_")
    panels = [draw_interval_panel(make_forest_panel(screened)) for screened in drawn]
    names = ", ".join(screened.column for screened in drawn)
    return Figure(place_below(panels, gap=12.0), f"Odds ratios by environment: {names}.")


def make_forest_panel(column: ScreenedColumn) -> IntervalPanel:
    """Return the forest plot of a column: environments, the pooled effect, a new environment."""
    rows = choose_effects(column, MAX_ENVIRONMENTS)
    share = f"{column.verdict}, share of heterogeneity {format_heterogeneity(column.share)}"
    return IntervalPanel(
        title=f"{clip(column.rule or column.column, 50)}: {share}",
        axis=make_ratio_axis(row.estimate for row in rows if row.estimate is not None),
        axis_title="odds ratio, other columns held fixed, with 95% intervals",
        rows=[replace(row, numbers=write_effect(row)) for row in rows],
        background=Background(guide=1.0),
    )


def write_effect(row: IntervalRow) -> str:
    """Return an odds ratio with its interval, of a prediction the interval alone."""
    interval = format_odds_interval(row.interval)
    return interval if row.estimate is None else f"{format_ratio(row.estimate)} ({interval})"
