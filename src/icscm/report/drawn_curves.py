"""What a page draws as curves: decisions, the risks of a score, other tolerances; and AUCs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup

from icscm.drawing.axes import make_number_axis
from icscm.drawing.curves import PlotPoint, draw_curves
from icscm.drawing.decisions import (
    DecisionCurves,
    plot_calibration,
    plot_gain,
    plot_net_benefit,
)
from icscm.drawing.intervals import Background, IntervalRow, RowKind, draw_cell
from icscm.drawing.outline import draw_rate_bar
from icscm.drawing.path import PathDot, draw_path
from icscm.drawing.score_card import TotalsClass, plot_risks
from icscm.drawing.shapes import Panel
from icscm.drawing.svg import render_panel
from icscm.formatting import as_text, clip
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ScoreContent
from icscm.report.content.paths import TreeAtTolerance
from icscm.report.content.validation import CurvesRecord, PooledScore, Score, ValidationRecord
from icscm.report.drawing import Limits, make_pair
from icscm.report.formatting import format_span
from icscm.report.wording.estimates import (
    describe_estimate,
    has_interval,
    has_prediction_interval,
)
from icscm.report.wording.evaluation import describe_decisions

# Characters of the names of the columns that a tree no longer has, in the text of its dot.
_MAX_DROPPED: Final = 26
# The AUC of a ranking at random.
CHANCE_AUC: Final = 0.5


# --- environments left out ------------------------------------------------------------------------


@dataclass(frozen=True)
class AucRow:
    """An AUC in a table with its drawn cell; `kind` is the name of a `RowKind`."""

    name: str
    text: str
    kind: str
    cell: Markup


def draw_auc_rows(validation: ValidationRecord, limits: Limits) -> list[AucRow]:
    """Draw the AUC in each environment left out, pooled, and in a new environment."""
    pooled = validation.pooled.get("auc")
    if pooled is None:
        return []
    rows = [
        draw_auc_row(as_text(environment.environment), score, RowKind.GROUP)
        for environment in validation.held_out[: limits.environments]
        if (score := environment.scores["auc"]) is not None
    ]
    rows.append(draw_auc_row("random effects", pooled, RowKind.POOLED))
    if has_prediction_interval(pooled):
        rows.append(draw_new_auc_row(pooled))
    return rows


def draw_auc_row(name: str, score: Score, kind: RowKind) -> AucRow:
    """Draw an AUC with its 95% interval, where that is known."""
    interval = (score.low, score.high) if has_interval(score) else None
    row = IntervalRow(name, estimate=score.value, interval=interval, kind=kind)
    return AucRow(name, text=describe_estimate(score), kind=kind.name, cell=draw_auc_cell(row))


def draw_new_auc_row(pooled: PooledScore) -> AucRow:
    """Draw the prediction interval of the AUC in a new environment, whose value is not known."""
    name = "new environment"
    kind = RowKind.PREDICTION
    interval = pooled.new_low, pooled.new_high
    row = IntervalRow(name, estimate=None, interval=interval, kind=kind)
    text = f"{pooled.new_low:.2f} to {pooled.new_high:.2f}, 95% prediction interval"
    return AucRow(name, text=text, kind=kind.name, cell=draw_auc_cell(row))


def draw_auc_cell(row: IntervalRow) -> Markup:
    """Draw an AUC on an axis from 0 to 1, with a line at chance."""
    return draw_cell(row, make_number_axis(0.0, 1.0), Background(guide=CHANCE_AUC))


# --- curves ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnCurves:
    """A plot of curves on a page, by its name."""

    name: str
    panel: Panel

    def render(self, label: str) -> Markup:
        """Return the drawing; the label tells those who do not see it what it shows."""
        return render_panel(self.panel, label=label)


@dataclass(frozen=True)
class DrawnDecisions:
    """The plots of calibration and of net benefit, and a sentence on the latter."""

    panels: list[DrawnCurves]
    text: str


def draw_decisions(
    overall: CurvesRecord | None,
    *,
    environments: Sequence[CurvesRecord],
    thresholds: Sequence[float],
    limits: Limits,
) -> DrawnDecisions:
    """Draw calibration, net benefit, and its gain by environment; nothing without probabilities."""
    if overall is None or not thresholds:
        return DrawnDecisions(panels=[], text="")

    curves = make_decision_curves(overall)
    shown = [make_decision_curves(rows) for rows in environments[: limits.environments]]
    plots = {"benefit": plot_net_benefit(curves, thresholds)}
    if curves.calibration:
        plots = {"calibration": plot_calibration(curves, shown), **plots}
    if len(shown) > 1:
        plots["gain"] = plot_gain(curves, shown, thresholds)
    return DrawnDecisions(
        panels=[DrawnCurves(name, draw_curves(plot)) for name, plot in plots.items()],
        text=describe_decisions(thresholds, curves.net_benefit, curves.treat_all),
    )


def make_decision_curves(rows: CurvesRecord) -> DecisionCurves:
    """Make the record of the curves of some rows as they are drawn."""
    return DecisionCurves(
        calibration=[PlotPoint(probability, rate) for probability, rate in rows.calibration_curve],
        net_benefit=rows.net_benefit,
        treat_all=rows.treat_all,
    )


def draw_risks(score: ScoreContent, leaves: Sequence[Leaf]) -> DrawnCurves:
    """Draw the risk of each total of a score."""
    classes = make_totals_classes(score, leaves)
    return DrawnCurves("risk", draw_curves(plot_risks(score.risks, classes)))


def make_totals_classes(score: ScoreContent, leaves: Sequence[Leaf]) -> list[TotalsClass]:
    """Make the classes of totals of a score whose prediction intervals are known.

    The leaves of a score are its classes, from the lowest totals up; a bound is the first total of
    the next class.
    """
    first_totals = [0, *score.bounds]
    last_totals = [*(bound - 1 for bound in score.bounds), len(score.risks) - 1]
    classes = []
    for leaf, first, last in zip(leaves, first_totals, last_totals, strict=True):
        interval = make_pair(leaf.new_interval)
        if interval is not None:
            classes.append(TotalsClass(first, last, interval))
    return classes


def draw_points_bar(points: int, most_points: int) -> Markup:
    """Draw the points of a value as a share of the most that a value has."""
    return draw_rate_bar(points / max(most_points, 1), mean_rate=None, is_positive=True)


# --- other tolerances -----------------------------------------------------------------------------


def draw_tolerance_path(trees: Sequence[TreeAtTolerance]) -> DrawnCurves:
    """Draw the deviance explained against the heterogeneity, a dot for each tolerance."""
    return DrawnCurves("path", draw_path(make_path_dots(trees)))


def make_path_dots(trees: Sequence[TreeAtTolerance]) -> list[PathDot]:
    """Make the dots of a path: neighbours of equal heterogeneity and deviance share a dot.

    At neighbouring tolerances, learning often gives the same tree; its dots would cover each other.
    """
    groups = groupby(trees, key=_find_position)
    return [_make_path_dot(position, list(group)) for position, group in groups]


class DotPosition(NamedTuple):
    """Where the tree of a tolerance is drawn, rounded so that equal trees are in one place."""

    heterogeneity: float
    deviance_explained: float


def _find_position(tree: TreeAtTolerance) -> DotPosition:
    """Return where a tree is drawn."""
    return DotPosition(
        heterogeneity=round(tree.varies, 6),
        deviance_explained=round(tree.deviance_explained, 6),
    )


def _make_path_dot(position: DotPosition, trees: Sequence[TreeAtTolerance]) -> PathDot:
    """Make the dot that a plot has for the trees of neighbouring tolerances, which are alike.

    Its text has their tolerances, and the columns that the tree of the tolerance before has but
    they have not, as in "0.5 to 0.3 without age, bmi".
    """
    text = format_span([tree.name for tree in trees])
    dropped_columns = [column for tree in trees for column in tree.leave]
    if dropped_columns:
        text += f" without {clip(', '.join(dropped_columns), _MAX_DROPPED)}"
    return PathDot(
        heterogeneity=position.heterogeneity,
        deviance_explained=position.deviance_explained,
        text=text,
        is_own=any(tree.is_own for tree in trees),
    )
