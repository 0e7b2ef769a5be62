"""Figures of scores: of environments left out as forest plots, and of candidates side by side.

Both have a plot for each score beside the other, and names that all plots share: of environments or
of candidates.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from icscm.drawing import Figure
from icscm.drawing.axes import Scale, make_number_axis
from icscm.drawing.columns import (
    PlotColumn,
    ScoreRow,
    draw_columns,
    draw_score_key,
    draw_score_row,
)
from icscm.drawing.intervals import Background, IntervalRow, RowKind, draw_row
from icscm.drawing.shapes import Shape, place_below
from icscm.formatting import as_text
from icscm.report.content.validation import PooledScore, Score, ValidationRecord

# Scores with a forest plot, and the value without discrimination, skill or need for recalibration.
_NEUTRAL_VALUES: Final = {"auc": 0.5, "slope": 1.0, "intercept": 0.0, "skill": 0.0}
# What the values of a score cannot exceed.
_BOUNDS: Final = {"auc": (0.0, 1.0)}
# Free space on an axis beyond the outermost values of a forest plot.
_FOREST_MARGIN: Final = 0.1
# Of a comparison, the same as a share of the range; where all values are equal, as it is.
_COMPARISON_MARGIN: Final = 0.05
# Which value of a score is the best one.
_DIRECTIONS: Final = {
    "auc": "more is better",
    "slope": "1 is best",
    "error": "at 0.5, less is better",
}


# --- environments left out ------------------------------------------------------------------------


def draw_forest_plots(validation: ValidationRecord, *, titles: Mapping[str, str]) -> Figure:
    """Draw each score in each environment left out, pooled, and predicted for a new one."""
    names = [
        f"{as_text(environment.environment)} (n = {environment.n_samples:,})"
        for environment in validation.held_out
    ]
    columns = []
    for name, pooled in validation.pooled.items():
        if pooled is None or name not in _NEUTRAL_VALUES:
            continue
        scores = [environment.scores[name] for environment in validation.held_out]
        columns.append(_make_forest_plot(name, scores, pooled, title=titles[name]))
    panel = draw_columns([*names, "random effects", "new environment"], columns, _draw_interval)
    return Figure(panel, "Scores in each environment left out, pooled, and in a new one.")


def _make_forest_plot(
    name: str, scores: Sequence[Score | None], pooled: PooledScore, *, title: str
) -> PlotColumn[IntervalRow]:
    """Make the plot of a score.

    Its axis follows the values, not their intervals: one that is very wide would leave no room for
    the differences between environments.
    """
    guide = _NEUTRAL_VALUES[name]
    shown = [guide, *(score.value for score in scores if score is not None)]
    margin = _FOREST_MARGIN + max(shown) - min(shown)
    lowest, highest = _BOUNDS.get(name, (-np.inf, np.inf))
    low = max(min(shown) - margin, lowest)
    high = min(max(shown) + margin, highest)

    rows = [_make_environment_row(score) for score in scores]
    rows.append(_make_pooled_row(pooled))
    rows.append(_make_prediction_row(pooled))
    return PlotColumn(
        title=title,
        note="95% intervals; cut at edges",
        axis=make_number_axis(low, high),
        background=Background(guide=guide),
        rows=rows,
    )


def _make_environment_row(score: Score | None) -> IntervalRow:
    """Make the row of an environment; it is empty where the score is undefined."""
    if score is None:
        return IntervalRow(name="", estimate=None, interval=None)
    interval = _keep_finite(score.low, score.high)
    return IntervalRow(name="", estimate=score.value, interval=interval)


def _make_pooled_row(pooled: PooledScore) -> IntervalRow:
    """Make the row of the random-effects mean."""
    interval = _keep_finite(pooled.low, pooled.high)
    return IntervalRow(name="", estimate=pooled.value, interval=interval, kind=RowKind.POOLED)


def _make_prediction_row(pooled: PooledScore) -> IntervalRow:
    """Make the row of a new environment: an interval, since its value is not known."""
    interval = _keep_finite(pooled.new_low, pooled.new_high)
    return IntervalRow(name="", estimate=None, interval=interval, kind=RowKind.PREDICTION)


def _keep_finite(low: float, high: float) -> tuple[float, float] | None:
    """Return an interval; None if an end is not finite."""
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    return None


def _draw_interval(row: IntervalRow, scale: Scale, y: float) -> Sequence[Shape]:
    return draw_row(row, scale, y=y)


# --- candidates of a comparison -------------------------------------------------------------------


def draw_comparison(
    candidates: Sequence[str],
    rows_by_measure: Mapping[str, Sequence[ScoreRow]],
    *,
    titles: Mapping[str, str],
) -> Figure:
    """Draw each measure of all candidates, of which the first is the baseline."""
    columns = [
        _make_measure_plot(measure, rows, title=titles[measure])
        for measure, rows in rows_by_measure.items()
    ]
    panel = draw_columns(candidates, columns, draw_score_row)
    key = draw_score_key(panel.width)
    description = "Scores of each candidate, by rows and environments."
    return Figure(place_below([key, panel], gap=4.0), description)


def _make_measure_plot(
    measure: str, rows: Sequence[ScoreRow], *, title: str
) -> PlotColumn[ScoreRow]:
    """Make the plot of a measure; its dashed line is the best slope, or the baseline."""
    baseline = rows[0]
    guide = 1.0 if measure == "slope" else baseline.by_rows
    values = [guide]
    for row in rows:
        values += [row.by_rows, row.by_environment, row.worst]
    known = [value for value in values if value is not None]
    low = min(known, default=0.0)
    high = max(known, default=1.0)
    margin = _COMPARISON_MARGIN * (high - low) or _COMPARISON_MARGIN
    return PlotColumn(
        title=title,
        note=_DIRECTIONS.get(measure, "less is better"),
        axis=make_number_axis(low - margin, high + margin),
        background=Background(guide=guide),
        rows=rows,
    )
