"""Forest plots of screened columns: as cells of a page's table, and as a figure.

A forest plot has a row for the worth of the column in each environment, then one for the mean, and
one for what nearly all new environments exceed. Worth has the same meaning for every column, so
that all plots share one axis: 1 is as learned, 0 is nothing, and below 0 the column is reversed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from icscm.drawing import Figure
from icscm.drawing.axes import make_number_axis
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
from icscm.report.content.screen import (
    EnvironmentEffect,
    ScreenedColumn,
    ScreenTask,
    compute_needed_worth,
    make_column,
)
from icscm.report.drawing import Limits, make_pair
from icscm.report.wording.screening import (
    count_new_environments,
    describe_effect,
    describe_stake,
    explain_verdict,
    format_effect,
    format_effect_interval,
    format_worth,
    format_worth_in_new,
    format_worth_interval,
    name_effect,
)
from icscm.tables.outcomes import OutcomeKind

# Columns that a figure draws if none is named, and environments of each.
N_DRAWN = 6
MAX_ENVIRONMENTS = 60
# A worth beyond the axis is drawn at its end.
AXIS = make_number_axis(-1.0, 2.0)


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot in a table: texts of the worth and the effect, and the drawn cell."""

    name: str
    note: str
    kind: str
    worth: str
    worth_interval: str
    effect: str
    effect_interval: str
    cell: Markup


@dataclass(frozen=True)
class DrawnForest:
    """The forest plot of a column; those of rejected columns are unfolded.

    `n_left_out` environments with a less precise worth are not drawn.
    """

    column: str
    verdict: str
    is_open: bool
    summary: str
    why: str
    effect: str
    rows: list[ForestRow]
    n_left_out: int


@dataclass(frozen=True)
class DrawnForests:
    """Forest plots, and the marks of the axis that they share."""

    columns: list[DrawnForest]
    axis: Markup


@dataclass(frozen=True)
class WorthRow:
    """A row of a forest plot before it is written: what is drawn, and its effect if it has one."""

    drawn: IntervalRow
    note: str = ""
    effect: EnvironmentEffect | None = None


def draw_forest_cells(
    columns: Sequence[ScreenedColumn], task: ScreenTask, limits: Limits
) -> DrawnForests:
    """Draw forest plots on one axis; of very many environments, the most precise ones."""
    forests = []
    for column in columns:
        rows = list_rows(column, limits.environments)
        n_drawn = sum(row.effect is not None for row in rows)
        stake = describe_stake(column)
        forests.append(
            DrawnForest(
                column=column.column,
                verdict=column.verdict,
                is_open=column.verdict == "rejected",
                summary=f"worth {format_worth(column.worth)}, "
                f"in new environments {format_worth_in_new(column)}",
                why=f"{explain_verdict(column, task)} {stake}",
                effect=f"{name_effect(task.outcome)} {describe_effect(column, task.outcome)}",
                rows=[write_row(row, task) for row in rows],
                n_left_out=column.n_known - n_drawn,
            )
        )
    return DrawnForests(forests, draw_axis_cell(AXIS))


def list_rows(column: ScreenedColumn, limit: int) -> list[WorthRow]:
    """Return the rows of a forest plot: environments, their mean, and new environments."""
    rows = []
    for effect in choose_precise(column, limit):
        interval = make_pair(effect.worth_interval)
        drawn = IntervalRow(effect.environment, effect.worth, interval)
        rows.append(WorthRow(drawn, effect=effect))

    if column.worth is None or column.worth_low is None:
        return rows
    mean = IntervalRow("mean", column.worth, None, RowKind.POOLED)
    if column.says_nothing:
        return [*rows, WorthRow(mean, note="says nothing beside the others")]
    rows.append(WorthRow(mean))
    # one-sided: what lies above the lower end is drawn as far as below the mean
    reach = column.worth - column.worth_low
    interval = (column.worth_low, column.worth + reach)
    drawn = IntervalRow("new environment", None, interval, RowKind.PREDICTION)
    new = count_new_environments(column.n_known)
    note = f"above {format_worth(column.worth_low)} in {new.n_above} of {new.n_all}"
    return [*rows, WorthRow(drawn, note=note)]


def choose_precise(column: ScreenedColumn, limit: int) -> list[EnvironmentEffect]:
    """Return the environments in which the worth is known; of very many, the most precise."""
    known = [effect for effect in column.environments if effect.worth_interval is not None]
    if len(known) <= limit:
        return known
    widths = sorted(measure_width(effect) for effect in known)
    return [effect for effect in known if measure_width(effect) <= widths[limit - 1]][:limit]


def measure_width(effect: EnvironmentEffect) -> float:
    """Return the width of the interval of a worth that is known."""
    assert effect.worth_interval is not None
    low, high = effect.worth_interval
    return high - low


def write_row(row: WorthRow, task: ScreenTask) -> ForestRow:
    """Return a row of a forest plot as texts, with its drawn cell."""
    drawn = row.drawn
    is_prediction = drawn.kind is RowKind.PREDICTION
    effect = row.effect
    return ForestRow(
        name=drawn.name,
        note=row.note,
        kind=drawn.kind.name,
        worth="" if drawn.estimate is None else format_worth(drawn.estimate),
        worth_interval=""
        if drawn.interval is None or is_prediction
        else format_worth_interval(drawn.interval),
        effect="" if effect is None else format_effect(effect.effect, task.outcome),
        effect_interval=""
        if effect is None
        else format_effect_interval(effect.effect_interval, task.outcome),
        cell=draw_cell(drawn, AXIS, make_background(task.needed)),
    )


def make_background(needed: float) -> Background:
    """Return the lines behind a forest plot: worth 1, and the worth that is needed."""
    return Background(mean=1.0, guide=needed)


def draw_forest_figure(selector: Any, column: Any = None) -> Figure:
    """Draw forest plots of one column, or of those whose worth differs most."""
    screen = selector.screen_
    if column is not None:
        screen = screen[screen["column"] == column]
        if screen.empty:
            raise IcscmError(f"there is no column {column!r} in the screen")
    rows = screen.sort_values("share", ascending=False, kind="stable").to_dict("records")
    outcome = selector.outcome_kind_
    columns = [make_column(row, selector.effects_, outcome) for row in rows]
    drawn = [screened for screened in columns if screened.lowest is not None][:N_DRAWN]
    if not drawn:
        raise IcscmError("no effect is known that could be drawn; see the reasons in screen_")
    needed = compute_needed_worth(selector.tolerance, outcome)
    panels = [
        draw_interval_panel(make_forest_panel(screened, outcome, needed=needed))
        for screened in drawn
    ]
    names = ", ".join(screened.column for screened in drawn)
    return Figure(place_below(panels, gap=12.0), f"Worth by environment: {names}.")


def make_forest_panel(
    column: ScreenedColumn, outcome: OutcomeKind, *, needed: float
) -> IntervalPanel:
    """Return the forest plot of a column, with its effects beside it."""
    rows = []
    for row in list_rows(column, MAX_ENVIRONMENTS):
        drawn = row.drawn
        numbers = row.note or format_worth(drawn.estimate)
        if row.effect is not None:
            effect = format_effect(row.effect.effect, outcome)
            numbers += f" ({format_worth_interval(drawn.interval)}); {effect}"
        rows.append(
            IntervalRow(drawn.name, drawn.estimate, drawn.interval, drawn.kind, numbers=numbers)
        )
    effect = f"{name_effect(outcome)} {describe_effect(column, outcome)}"
    what = f"worth, with 95% intervals; {effect}"
    return IntervalPanel(
        title=f"{clip(column.column, 50)}: {column.verdict}",
        axis=AXIS,
        axis_title=clip(what, 90),
        rows=rows,
        background=make_background(needed),
    )
