"""An evaluation on new samples, from its dict: on the terminal, as a page and as a figure.

The dict is `icscm.studies.evaluation.Evaluation.to_dict`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType

from icscm._version import __version__
from icscm.formatting import as_text, clip, shorten_list
from icscm.parameters import check_matplotlib
from icscm.report.canvas import ACCENT, INK, SOFT, make_figure
from icscm.report.drawing import Limits, make_plot
from icscm.report.formatting import (
    Plain,
    describe_rates,
    format_prediction_interval,
    format_score,
    format_share,
)
from icscm.report.page import render_page, render_template
from icscm.report.terminal import render_blocks
from icscm.report.texts import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Measures that are not shares.
_NUMBERS = ("auc", "brier", "log_loss", "slope", "intercept")
# Environments listed before only the worst and the best are, and rows of a figure.
N_LISTED, _N_DRAWN = 10, 40


def format_measure(scores: Plain, name: str) -> str:
    """The value of a measure: a share in percent, others as numbers; - where it has none."""
    score, form = scores[name], format_score if name in _NUMBERS else format_share
    return "-" if score is None else form(score["value"])


def format_bounds(scores: Plain, name: str) -> str:
    """The confidence interval of a measure."""
    score, form = scores[name], format_score if name in _NUMBERS else format_share
    return "" if score is None else f"{form(score['low'])} to {form(score['high'])}"


def render_validation(found: Plain, most: int | None = N_LISTED) -> Iterator[RenderableType]:
    """An evaluation with up to so many environments, or all."""
    ranked = _lay_out(found, Limits(environments=len(found["environments"])))
    rows = ranked["shown_environments"]
    if most is not None and len(rows) > most:
        best = rows[len(rows) - most // 2 :]
        ranked["shown_environments"] = [*rows[: most - most // 2], None, *best]
    return render_blocks(render_template("evaluation.md", ranked))


def render_text(found: Plain) -> str:
    """An evaluation as text of 80 columns."""
    console = Console(file=io.StringIO(), width=80, highlight=False, markup=False, emoji=False)
    for part in render_validation(found):
        console.print(part)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines)


def render_page_of(found: Plain) -> str:
    """An evaluation as one self-contained page."""
    return render_page("evaluation.html", lambda limits: _lay_out(found, limits))


def _lay_out(found: Plain, limits: Limits) -> Plain:
    """The evaluation with its plots and sentences, environments from the worst to the best."""
    places, leaves, overall = found["environments"], found["leaves"], found["overall"]
    ranked = sorted(places, key=lambda each: -each["scores"]["error"]["value"])
    rows = [_make_leaf_row(leaf) for leaf in leaves[: limits.leaves]]
    (rate,) = describe_rates([overall["n_positive"]], [overall["n_samples"]])
    expected = sum((leaf["expected"] or 0.0) * leaf["n_samples"] for leaf in leaves) / rate["n"]
    plot = make_plot(rows, {**rate, "beside": expected if leaves else None}, "rate", limits)
    return {
        **found,
        "about": {"version": __version__},
        "limits": limits,
        "error_plot": make_plot(
            [*map(_make_error_row, ranked)], _make_error_row(overall), "error", limits
        ),
        "leaf_plot": {**plot, "line": None},  # the rates of leaves are meant to differ
        "shown_leaves": leaves[: limits.leaves],
        "shown_environments": ranked[: limits.environments],
        "moved_text": write_text("moved", leaves=leaves),
        "checks_text": write_text("interval_checks", leaves=leaves, environments=places),
        "describe_check": _describe_check,
        "value": format_measure,
        "range": format_bounds,
    }


def _describe_check(leaf: Plain) -> tuple[str, str]:
    """The prediction interval of a leaf, and the new environments outside of it."""
    text, checks = format_prediction_interval(leaf["new_interval"]), leaf["interval_checks"]
    outside = [
        f"{'' if each['environment'] is None else as_text(each['environment']) + ' '}"
        f"({format_share(each['n_positive'] / each['n_samples'])})"
        for each in checks
        if not each["is_inside"]
    ]
    if not checks or not outside:
        return text, "within" if checks else ""
    return text, f"outside: {shorten_list(outside)}"


def _make_error_row(place: Plain) -> Plain:
    error, baseline = place["scores"]["error"], place["baseline"]["error"]
    return {
        "environment": f"{as_text(place['environment'])}{' (new)' if place['is_new'] else ''}",
        "n": place["n_samples"],
        "error": error["value"],
        "error_interval": [error["low"], error["high"]],
        "beside": None if baseline is None else baseline["value"],
    }


def _make_leaf_row(leaf: Plain) -> Plain:
    return {
        "environment": f"{leaf['leaf']}: {as_text(leaf['text'])}",
        "n": leaf["n_samples"],
        "rate": leaf["observed"],
        "rate_interval": leaf["interval"],
        "beside": leaf["expected"],
    }


def draw_validation(found: Plain) -> Figure:
    """Errors by environment, and rates by leaf where there are leaves."""
    check_matplotlib()
    laid_out = _lay_out(found, Limits(environments=len(found["environments"])))
    errors = [_make_error_row(each) for each in laid_out["shown_environments"]]
    if len(errors) > _N_DRAWN:
        errors = errors[: _N_DRAWN // 2] + errors[-_N_DRAWN // 2 :]
    overall = {**_make_error_row(found["overall"]), "environment": "all"}
    panels = [([overall, *errors], "error", "share of wrong predictions", "baseline")]
    if found["leaves"]:
        leaves = [_make_leaf_row(leaf) for leaf in found["leaves"]]
        panels.append((leaves, "rate", f"rate of {clip(found['positive'], 30)}", "training"))
    heights = [len(rows) + 2.2 for rows, *_ in panels]
    size = 7.0, 0.3 * sum(heights) + 0.6
    figure = make_figure(size, is_registered=True, layout="constrained")
    drawn = figure.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, panel in zip(drawn, panels, strict=True):
        _draw_panel(axes, *panel)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Plain], key: str, what: str, beside: str) -> None:
    """Dots with their intervals, and open circles to compare with."""
    for y, row in enumerate(rows):
        if row[key] is not None:
            axes.plot(row[f"{key}_interval"], [y, y], color=SOFT, linewidth=1.5, zorder=1)
            axes.plot([row[key]], [y], "o", color=ACCENT, markersize=5, zorder=3)
    marks = [(row["beside"], y) for y, row in enumerate(rows) if row["beside"] is not None]
    x, places = zip(*marks, strict=True) if marks else ((), ())
    axes.plot(x, places, "o", color=INK, fillstyle="none", markersize=7, zorder=2, label=beside)
    names = [f"{clip(row['environment'], 40)} (n = {row['n']:,})" for row in rows]
    axes.set_yticks(range(len(rows)), labels=names, parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"{what}, 95% interval", parse_math=False)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
