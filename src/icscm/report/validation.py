"""An evaluation on new samples, from its dict: on the terminal, as a page and as a figure.

The dict is `icscm.validation.evaluation.Evaluation.to_dict`.
"""

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from icscm._version import __version__
from icscm.formatting import as_text, clip
from icscm.parameters import check_matplotlib
from icscm.report.canvas import ACCENT, INK, draw_rows, make_figure, plot_curves
from icscm.report.drawing import Limits, draw_decisions, make_plot
from icscm.report.formatting import Plain, describe_rates, format_score, format_share
from icscm.report.page import render_page, render_template
from icscm.report.terminal import render_blocks
from icscm.report.texts import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Measures that are shares; the others are numbers.
_SHARES = ("error", "balanced_accuracy", "sensitivity", "specificity", "ppv", "npv")
# Environments listed before only the worst and the best are, and rows of a figure.
N_LISTED, _N_DRAWN = 10, 40


def format_measure(scores: Plain, name: str) -> str:
    """The value of a measure: a share in percent, others as numbers; - where it has none."""
    score, form = scores[name], format_share if name in _SHARES else format_score
    return "-" if score is None else form(score["value"])


def format_bounds(scores: Plain, name: str) -> str:
    """The confidence interval of a measure."""
    score, form = scores[name], format_share if name in _SHARES else format_score
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
    plain = dict.fromkeys(("highlight", "markup", "emoji", "force_jupyter"), False)
    console = Console(file=io.StringIO(), width=80, **plain)  # type: ignore[arg-type]
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
    key = "auc" if overall["scores"]["auc"] else "error"
    sign = 1 if key == "auc" else -1
    known = [each for each in places if each["scores"][key] is not None]
    ranked = sorted(known, key=lambda each: sign * each["scores"][key]["value"])
    ranked += [each for each in places if each["scores"][key] is None]
    rows = [_make_leaf_row(leaf) for leaf in leaves[: limits.leaves]]
    (rate,) = describe_rates([overall["n_positive"]], [overall["n_samples"]])
    expected = sum((leaf["expected"] or 0.0) * leaf["n_samples"] for leaf in leaves) / rate["n"]
    plot = make_plot(rows, {**rate, "beside": expected if leaves else None}, "rate", limits)
    placed = [_make_place_row(each, key) for each in (*ranked, overall)]
    form = format_share if key in _SHARES else format_score
    return {
        **found,
        "about": {"version": __version__},
        "limits": limits,
        "plotted": key,
        "place_plot": make_plot(placed[:-1], placed[-1], key, limits, form=form),
        **draw_decisions(found, limits),
        "leaf_plot": {**plot, "line": None},  # the rates of leaves are meant to differ
        "shown_leaves": leaves[: limits.leaves],
        "shown_environments": ranked[: limits.environments],
        "moved_text": write_text("moved", leaves=leaves),
        "checks_text": write_text("interval_checks", leaves=leaves, environments=places),
        "check": lambda leaf: write_text("interval_check", leaf=leaf),
        "value": format_measure,
        "range": format_bounds,
    }


def _make_place_row(place: Plain, key: str) -> Plain:
    score, baseline = place["scores"][key], place["baseline"][key]
    return {
        "environment": f"{as_text(place['environment'])}{' (new)' if place['is_new'] else ''}",
        "n": place["n_samples"],
        key: score and score["value"],
        f"{key}_interval": score and [score["low"], score["high"]],
        "beside": None if baseline is None or key == "auc" else baseline["value"],
    }


def _make_leaf_row(leaf: Plain) -> Plain:
    return {
        "environment": f"{leaf['leaf']}: {as_text(leaf['text'])}",
        "n": leaf["n_samples"],
        "rate": leaf["observed"],
        "rate_interval": leaf["interval"],
        "beside": leaf["expected"],
    }


def draw_validation(found: Plain) -> "Figure":
    """Curves, the AUC by environment, and rates by leaf where there are leaves."""
    check_matplotlib()
    laid_out = _lay_out(found, Limits(environments=len(found["environments"])))
    key, shown = laid_out["plotted"], laid_out["shown_environments"]
    rows = [_make_place_row(each, key) for each in shown]
    if len(rows) > _N_DRAWN:
        rows = rows[: _N_DRAWN // 2] + rows[-_N_DRAWN // 2 :]
    overall = {**_make_place_row(found["overall"], key), "environment": "all"}
    what = "AUC" if key == "auc" else f"error {found['at']}"
    panels = [([overall, *rows], key, what, "" if key == "auc" else "baseline")]
    if found["leaves"]:
        leaves = [_make_leaf_row(leaf) for leaf in found["leaves"]]
        panels.append((leaves, "rate", f"rate of {clip(found['positive'], 30)}", "training"))
    curves, heights = laid_out["panels"], [len(rows) + 2.2 for rows, *_ in panels]
    inches = [0.3 * each for each in heights]
    size = 7.0 if len(curves) < 3 else 9.0, sum(inches) + 0.6 + 3.0 * bool(curves)
    figure = make_figure(size, layout="constrained")
    heights_of: Any = {"height_ratios": [3.0, sum(inches)]}
    parts: Any = figure.subfigures(2, **heights_of) if curves else [figure] * 2
    for i, curve in enumerate(curves):
        plot_curves(parts[0].add_subplot(1, len(curves), i + 1), curve)
    drawn = parts[1].subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, panel in zip(drawn, panels, strict=True):
        _draw_panel(axes, *panel)
    return figure


def _draw_panel(axes: "Axes", rows: Sequence[Plain], key: str, what: str, beside: str) -> None:
    """Dots with their intervals, and open circles to compare with."""
    names = [f"{clip(row['environment'], 28)} (n = {row['n']:,})" for row in rows]
    values = [(row[key], row[f"{key}_interval"], ACCENT) for row in rows]
    shown = [(name, *value) for name, value in zip(names, values, strict=True)]
    draw_rows(axes, shown, f"{what}, 95% interval")
    marks = [(row["beside"], y) for y, row in enumerate(rows) if row["beside"] is not None]
    x, places = zip(*marks, strict=True) if marks else ((), ())
    axes.plot(x, places, "o", color=INK, fillstyle="none", markersize=7, zorder=2, label=beside)
    if key != "auc":
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    if marks:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
