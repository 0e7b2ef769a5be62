"""From the summary of a report to what its page draws: records for `icscm.drawing`, and cells.

A cell is the drawn part of a row of a table. What is listed is limited here, so that a page stays
small; the summary holds everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from icscm.drawing.axes import Axis, make_number_axis, make_ratio_axis, make_share_axis
from icscm.drawing.curves import PlotPoint, draw_curves
from icscm.drawing.decisions import (
    DecisionCurves,
    plot_calibration,
    plot_gain,
    plot_net_benefit,
)
from icscm.drawing.effects import EffectDot, draw_effects
from icscm.drawing.intervals import Background, IntervalRow, RowKind, draw_axis_cell, draw_cell
from icscm.drawing.outline import (
    OutlineNode,
    OutlineRow,
    draw_rate_bar,
    draw_twigs,
    lay_out_outline,
)
from icscm.drawing.path import PathDot, draw_path
from icscm.drawing.score_card import TotalsClass, plot_risks
from icscm.drawing.shapes import Panel
from icscm.drawing.svg import render_panel
from icscm.formatting import clip, natural_key
from icscm.report.formatting import Plain, format_ratio, format_share, format_span
from icscm.report.wording.evaluation import describe_decisions

# Characters of the columns that leave along a path.
_MAX_REJECTED: Final = 26


class Limits(NamedTuple):
    """Limits of the layout; the summary itself holds everything.

    `characters` is the longest name shown whole. The others count what is listed.
    """

    environments: int = 200
    leaves: int = 60
    equivalent: int = 12
    sets: int = 64
    characters: int = 160

    def halve(self) -> Limits:
        """Return half of each limit, but not less than what a page needs."""
        return Limits(*(max(limit // 2, least) for limit, least in zip(self, _LEAST, strict=True)))


_LEAST = Limits(environments=4, leaves=4, equivalent=2, sets=4, characters=40)


# --- rates and other scores by environment --------------------------------------------------------


@dataclass(frozen=True)
class DrawnRow:
    """A row of a table with its drawn cell; `text` and `range` are the share and its interval."""

    name: str
    n: int
    share: float | None
    interval: Sequence[float] | None
    text: str
    range: str
    cell: Markup

    @property
    def is_known(self) -> bool:
        """Whether there is a share."""
        return self.share is not None


@dataclass(frozen=True)
class DrawnPlot:
    """The rows of a table with drawn cells, the marks of their axis, and how many are shown."""

    rows: Sequence[DrawnRow]
    pooled: DrawnRow
    axis: Markup
    n_rows: int

    @property
    def is_compared(self) -> bool:
        """Whether there are several rows, so that each is shown beside all together."""
        return self.n_rows > 1

    @property
    def n_left_out(self) -> int:
        """Number of rows that are not shown."""
        return self.n_rows - len(self.rows)


@dataclass(frozen=True)
class PlotRow:
    """A share, or another score, of some rows of the table, and one to compare it with."""

    name: str
    n: int
    share: float | None
    interval: tuple[float, float] | None
    compared: float | None = None


def make_plot_row(row: Plain, key: str = "rate") -> PlotRow:
    """Make the record of an environment, or of all together, from one of its scores."""
    return PlotRow(
        name=row.get("environment", ""),
        n=row["n"],
        share=row[key],
        interval=None if row[f"{key}_interval"] is None else tuple(row[f"{key}_interval"]),
    )


def make_plot(
    rows: Sequence[PlotRow],
    pooled: PlotRow,
    limits: Limits,
    *,
    margin: float | None = None,
    by_name: bool = False,
    write: Callable[[float | None], str] = format_share,
    has_mean: bool = True,
) -> DrawnPlot:
    """Draw a share of each row with its interval, and above them that of all rows together.

    The band around the pooled share is as wide as the margin. Of very many rows, those with the
    most samples are shown.
    """
    shown = [rows[i] for i in find_largest([row.n for row in rows], limits.environments)]
    if by_name:
        shown.sort(key=lambda row: natural_key(row.name))
    axis = make_axis([*shown, pooled], is_percent=write is format_share)
    mean = pooled.share
    band = None
    if margin is not None and mean is not None:
        band = (mean - margin / 2, mean + margin / 2)
    background = Background(mean=mean if has_mean else None, band=band)

    def draw(row: PlotRow, name: str, kind: RowKind) -> DrawnRow:
        record = make_interval_row(row, name=name, kind=kind)
        return DrawnRow(
            name=name,
            n=row.n,
            share=record.estimate,
            interval=record.interval,
            text=write(record.estimate),
            range=" to ".join(map(write, record.interval or ())),
            cell=draw_cell(record, axis, background),
        )

    return DrawnPlot(
        rows=[draw(row, row.name, RowKind.GROUP) for row in shown],
        pooled=draw(pooled, "all together", RowKind.POOLED),
        axis=draw_axis_cell(axis),
        n_rows=len(rows),
    )


def make_interval_row(row: PlotRow, *, name: str, kind: RowKind) -> IntervalRow:
    """Make the record of a row as it is drawn."""
    return IntervalRow(
        name=name, estimate=row.share, interval=row.interval, kind=kind, compared=row.compared
    )


def make_axis(rows: Sequence[PlotRow], *, is_percent: bool) -> Axis:
    """Make an axis that holds the intervals of all rows, and what they are compared with."""
    ends = [end for row in rows for end in row.interval or ()]
    compared = [row.compared for row in rows if row.compared is not None]
    return make_share_axis(ends + compared, None if is_percent else "{:g}".format)


def find_largest(sizes: Sequence[int], limit: int) -> list[int]:
    """Return where the largest sizes are, in the given order."""
    ranks = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    return sorted(ranks[:limit])


def choose_largest(rows: Sequence[Plain], limit: int, order: str = "name") -> list[Plain]:
    """Choose the rows with the most samples; by name, from the largest, or from the lowest rate."""
    largest = [rows[number] for number in find_largest([row["n"] for row in rows], limit)]
    if order == "size":
        return sorted(largest, key=lambda row: -row["n"])
    by_name = sorted(largest, key=lambda row: natural_key(row["environment"]))
    return by_name if order == "name" else sorted(by_name, key=lambda row: row["rate"] or 0.0)


def draw_auc_rows(validation: Plain, limits: Limits) -> Sequence[Plain]:
    """Draw the AUC in each environment left out, pooled, and in a new environment."""
    pooled = validation.get("pooled", {}).get("auc")
    if not pooled:
        return []
    axis = make_number_axis(0.0, 1.0)

    def draw(name: str, score: Plain, kind: RowKind) -> Plain:
        has_interval = isinstance(score["low"], float)
        interval = (score["low"], score["high"]) if has_interval else None
        row = IntervalRow(name, estimate=score["value"], interval=interval, kind=kind)
        cell = draw_cell(row, axis, Background(guide=0.5))
        return {"name": name, "score": score, "kind": kind.name, "cell": cell}

    rows = [
        draw(str(environment["environment"]), environment["scores"]["auc"], RowKind.GROUP)
        for environment in validation["environments"][: limits.environments]
        if environment["scores"]["auc"]
    ]
    rows.append(draw("random effects", pooled, RowKind.POOLED))
    if isinstance(pooled["new_low"], float):
        new = {"value": None, "low": pooled["new_low"], "high": pooled["new_high"]}
        rows.append(draw("new environment", new, RowKind.PREDICTION))
    return rows


# --- trees and effects ----------------------------------------------------------------------------


def draw_nodes(nodes: Sequence[Plain], limits: Limits) -> Plain:
    """Draw the rows of a tree behind their twigs; of very many, the largest splits."""
    records = [OutlineNode(node["depth"], node["split"], node["n"]) for node in nodes]
    outline = lay_out_outline(records, max_leaves=limits.leaves)
    mean_rate = nodes[0]["rate"] if nodes else None

    def draw(row: OutlineRow) -> Plain:
        node = nodes[row.number]
        is_positive = bool(node["is_positive"])
        bar = draw_rate_bar(node["rate"], mean_rate=mean_rate, is_positive=is_positive)
        return {**node, "is_cut": row.is_cut, "twigs": draw_twigs(row), "cell": bar}

    rows = [draw(row) for row in outline]
    n_leaves = sum(node["leaf"] is not None for node in nodes)
    n_shown = sum(row["leaf"] is not None for row in rows)
    return {"rows": rows, "n_left_out": n_leaves - n_shown}


def draw_splits(splits: Sequence[Plain], limits: Limits) -> Plain:
    """Draw the effects of each split by environment, on one axis of odds ratios."""
    shown = splits[: limits.leaves]
    rows = [row for split in shown for row in (split, *split["environments"])]
    axis = make_ratio_axis(row["odds_ratio"] for row in rows if row["odds_ratio"])
    drawn = [
        {**split, "cell": draw_effects(_make_dots(split, limits), split["odds_ratio"], axis)}
        for split in shown
    ]
    return {
        "rows": drawn,
        "axis": draw_axis_cell(axis),
        "n_left_out": len(splits) - len(shown),
    }


def _make_dots(split: Plain, limits: Limits) -> Sequence[EffectDot]:
    """Make the dots of the largest environments in which the effect of a split is known."""
    largest = sorted(split["environments"], key=lambda row: -row["n"])
    known = [row for row in largest if row["odds_ratio"] is not None]
    return [
        EffectDot(
            odds_ratio=row["odds_ratio"],
            standard_error=row["error"],
            tooltip=f"{clip(row['environment'], limits.characters)}: "
            f"{format_ratio(row['odds_ratio'])}",
        )
        for row in known[: limits.environments]
    ]


# --- curves ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnCurves:
    """A plot of curves on a page, by its name."""

    name: str
    panel: Panel

    def render(self, label: str) -> Markup:
        """Return the drawing; the label tells those who do not see it what it shows."""
        return render_panel(self.panel, label=label)


def draw_decisions(
    overall: DecisionCurves | None,
    *,
    environments: Sequence[DecisionCurves],
    thresholds: Sequence[float],
    limits: Limits,
) -> Plain:
    """Draw calibration, net benefit, and its gain by environment; nothing without probabilities."""
    if overall is None or not thresholds:
        return {"panels": [], "decision_text": ""}

    shown = environments[: limits.environments]
    plots = {"benefit": plot_net_benefit(overall, thresholds)}
    if overall.calibration:
        plots = {"calibration": plot_calibration(overall, shown), **plots}
    if len(shown) > 1:
        plots["gain"] = plot_gain(overall, shown, thresholds)
    return {
        "panels": [DrawnCurves(name, draw_curves(plot)) for name, plot in plots.items()],
        "decision_text": describe_decisions(thresholds, overall.net_benefit, overall.treat_all),
    }


def make_decision_curves(
    calibration: Sequence[Sequence[float]],
    net_benefit: Sequence[float],
    treat_all: Sequence[float],
) -> DecisionCurves:
    """Make the record of the curves of some rows; calibration has pairs of probability and rate."""
    return DecisionCurves(
        calibration=[PlotPoint(probability, rate) for probability, rate in calibration],
        net_benefit=net_benefit,
        treat_all=treat_all,
    )


def draw_risks(model: Plain, leaves: Sequence[Plain]) -> DrawnCurves:
    """Draw the risk of each total of a score."""
    classes = make_totals_classes(model, leaves)
    return DrawnCurves("risk", draw_curves(plot_risks(model["risks"], classes)))


def make_totals_classes(model: Plain, leaves: Sequence[Plain]) -> Sequence[TotalsClass]:
    """Make the classes of totals of a score whose prediction intervals are known."""
    starts = [0, *model["bounds"]]
    ends = [*(bound - 1 for bound in model["bounds"]), len(model["risks"]) - 1]
    return [
        TotalsClass(first, last, tuple(leaf["new_interval"]))
        for leaf, first, last in zip(leaves, starts, ends, strict=True)
        if leaf["new_interval"]
    ]


def draw_points_bar(points: int, most_points: int) -> Markup:
    """Draw the points of a value as a share of the most that a value has."""
    return draw_rate_bar(points / max(most_points, 1), mean_rate=None, is_positive=True)


def draw_tolerance_path(points: Sequence[Plain]) -> DrawnCurves:
    """Draw the deviance explained against the heterogeneity, a dot for each tolerance."""
    return DrawnCurves("path", draw_path(join_points(points)))


def join_points(points: Sequence[Plain]) -> Sequence[PathDot]:
    """Join neighbouring points of a path with equal heterogeneity and deviance to one dot."""
    groups: list[list[Plain]] = []
    for point in points:
        if groups and _find_place(groups[-1][-1]) == _find_place(point):
            groups[-1].append(point)
        else:
            groups.append([point])
    return [_make_path_dot(group) for group in groups]


def _find_place(point: Plain) -> tuple[float, float]:
    """Return where a point of a path is drawn."""
    return round(point["varies"], 6), round(point["deviance_explained"], 6)


def _make_path_dot(group: Sequence[Plain]) -> PathDot:
    """Make the dot of points in the same place; its text names the columns that leave there."""
    heterogeneity, deviance = _find_place(group[0])
    text = format_span([point["name"] for point in group])
    rejected = [name for point in group for name in point["leave"]]
    if rejected:
        text += f" without {clip(', '.join(rejected), _MAX_REJECTED)}"
    is_own = any(point["is_own"] for point in group)
    return PathDot(heterogeneity, deviance, text, is_own)
