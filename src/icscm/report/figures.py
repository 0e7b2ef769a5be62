"""Figures: a model with the rate of each leaf by environment, and a path along the tolerance."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.formatting import clip
from icscm.model.saved import Learner
from icscm.parameters import allow, check_matplotlib, check_value
from icscm.report import canvas
from icscm.report.drawing import choose_largest, find_ticks, make_risk_panel
from icscm.report.formatting import Plain, format_p, format_share
from icscm.report.summary import make_summary
from icscm.report.texts import write_text
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Environments that are drawn; of more, the largest. With fewer samples than this an environment
# does not widen the axis by its interval.
_N_DRAWN, _N_PRECISE = 60, 30
# Everything is placed in inches, so that text fits its boxes. Boxes of splits and leaves, half
# their height, and how far right and down from a split its children are.
_NODE_WIDTH, _LEAF_WIDTH, _HALF, _RIGHT, _INDENT = 1.7, 1.75, 0.25, 2.0, 0.5
_PLOT_WIDTH, _NAMES_WIDTH, _EDGE, _FOOT = 3.8, 1.7, 0.25, 0.6
# Height of a leaf: at least, besides the dots, and for each environment in few and in many. With
# more dots than these in all, those of a leaf share a row of the least height, without intervals.
_LEAST_ROW, _ROW_REST, _LOOSE, _DENSE, _PACKED = 0.75, 0.45, 0.16, 0.11, 0.0
_N_LOOSE, _MAX_DOTS = 12, 160
# For each of these heights the size of dots, the width of intervals and the size of names.
_STYLES = {_LOOSE: (4.5, 1.2, 8), _DENSE: (3.0, 0.7, 7), _PACKED: (3.0, 0, 7)}
# Larger trees are described by a text for each leaf.
_MAX_LEAVES, _MAX_WIDTH, _WORDS_WIDTH = 40, 16.0, 5.0
_SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}


def draw_model(
    learner: Learner,
    ax: Axes | None = None,
    order: str = "name",
    *,
    target: str | None = None,
    environment: str | None = None,
) -> Figure:
    """The tree of a fitted learner, and beside each leaf the rate in every environment.

    Dots are rates, lines their 95 % intervals, the upright line is the rate over all environments.
    Of very many dots only the lowest and the highest of a leaf are named, without intervals.
    `order` is that of the environments. Within `ax` everything is scaled down to fit; without it
    a new figure of pyplot is drawn.
    """
    check_matplotlib()
    check_value("order", order, allow("name", "size", "rate"))
    summary = make_summary(learner, target=target, environment=environment)
    leaves, nodes = summary["leaves"], _place_nodes(summary["nodes"]["walk"])
    if "risks" in summary["model"]:
        return _draw_score(summary, ax)
    if not leaves:
        raise IcscmError("a forest has no single tree to draw; its report describes it")
    largest = choose_largest(summary["task"]["environments"], _N_DRAWN, order)
    drawn = [each["environment"] for each in largest]
    step = _LOOSE if len(drawn) <= _N_LOOSE else _DENSE
    step = _PACKED if len(drawn) * len(leaves) > _MAX_DOTS else step
    row = max(_LEAST_ROW, _ROW_REST + len(drawn) * step)
    tree_width = max((node["x"] for node in nodes), default=0) + _RIGHT + _LEAF_WIDTH
    is_drawable = bool(nodes) and len(leaves) <= _MAX_LEAVES and tree_width <= _MAX_WIDTH
    tree_width = tree_width if is_drawable else _WORDS_WIDTH
    aside = _NAMES_WIDTH if len(drawn) > 1 else _EDGE
    height = row * len(leaves)
    width, tall = tree_width + aside + _PLOT_WIDTH + _EDGE, height + _FOOT + _EDGE
    figure: Any = canvas.make_figure((width, tall)) if ax is None else ax.figure
    bottom, part = _FOOT / tall, height / tall
    add = figure.add_axes if ax is None else ax.inset_axes
    tree = add((0, bottom, tree_width / width, part))
    rates = add(((tree_width + aside) / width, bottom, _PLOT_WIDTH / width, part))
    tree.set_xlim(0, tree_width)
    tree.axis("off")
    if is_drawable:
        _draw_tree(tree, nodes, row, tree_width)
    else:
        _list_leaves(tree, leaves, row)
    _draw_rates(rates, summary, row, step, drawn)
    for axes in (tree, rates):
        axes.set_ylim(height, 0)
    return _finish(figure, ax, (width, tall), summary, tree, rates)


def _finish(
    figure: Figure, ax: Axes | None, size: tuple[float, float], summary: Plain, *parts: Axes
) -> Figure:
    """Add a description to a new figure, or scale the drawing down to the axes of the caller."""
    if ax is None:
        figure.set_label(write_text("figure", **summary))
        return figure
    ax.axis("off")
    for axes in parts:
        canvas.shrink(axes, ax, *size)
    return figure


def _draw_score(summary: Plain, ax: Axes | None) -> Figure:
    """Bars of points for the values of each column, and the risk of each total."""
    model, rows = summary["model"], summary["model"]["points"]
    width, tall = 9.5, max(3.5, 0.22 * len(rows) + 1.0)
    figure: Any = canvas.make_figure((width, tall)) if ax is None else ax.figure
    add = figure.add_axes if ax is None else ax.inset_axes
    bars, risks = (add((x, 0.6 / tall, w, 1 - 0.9 / tall)) for x, w in ((0.3, 0.24), (0.62, 0.36)))
    points = [row["points"] for row in rows]
    bars.barh(range(len(rows)), points, color=canvas.ACCENT, height=0.7)
    style = {"va": "center", "fontsize": 8, "color": canvas.INK}
    side = {"transform": bars.get_yaxis_transform(), **style}  # x from 0 to 1
    for y, row in enumerate(rows):
        canvas.write(bars, -0.03, y, clip(row["value"], 24), ha="right", **side)
        canvas.write(bars, row["points"] + 0.02 * max(points), y, str(row["points"]), **style)
        if y == 0 or rows[y - 1]["column"] != row["column"]:
            canvas.write(bars, -1.2, y, clip(row["column"], 20), weight="bold", **side)
            bars.axhline(y - 0.5, color=canvas.LINE, linewidth=0.8)
    bars.set(ylim=(len(rows) - 0.5, -0.5), yticks=[], xticks=[], xlabel="points")
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    canvas.plot_curves(risks, make_risk_panel(model, summary["leaves"]))
    what = "total of points; boxes are 95% prediction intervals at a new site"
    risks.set_xlabel(what, fontsize=8)
    risks.set_ylabel(f"risk of {clip(summary['task']['positive'], 30)}", parse_math=False)
    risks.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    return _finish(figure, ax, (width, tall), summary, bars, risks)


def _place_nodes(walk: Sequence[Plain]) -> list[Plain]:
    """Where nodes stand: the first child to the right of its split, the second below it.

    split --yes-- split --yes-- leaf 1    `x` in inches, `row` in leaves; each split is in the row
      |             |___no_____ leaf 2    of its first leaf, so that no two boxes overlap
      |___no___________________ leaf 3
    """
    placed: list[Plain] = []
    above: dict[int, Plain] = {}
    for i, node in enumerate(walk):
        parent = above.get(node["depth"] - 1)
        is_first = parent is not None and parent is placed[-1]
        x = _EDGE if parent is None else parent["x"] + (_RIGHT if is_first else _INDENT)
        row = next(each["leaf"] for each in walk[i:] if each["leaf"]) - 0.5
        above[node["depth"]] = {**node, "x": x, "row": row, "parent": parent, "is_first": is_first}
        placed.append(above[node["depth"]])
    return placed


def _draw_tree(axes: Axes, nodes: Sequence[Plain], row: float, width: float) -> None:
    for node in nodes:
        y, parent = node["row"] * row, node["parent"]
        x = width - _LEAF_WIDTH - 0.05 if node["leaf"] else node["x"]
        if parent is not None:
            start = parent["row"] * row
            across = [parent["x"] + _NODE_WIDTH, x]
            if not node["is_first"]:  # down from the split, then across
                across = [parent["x"] + _INDENT / 2] * 2 + [x]
            down = [start, y] if node["is_first"] else [start + _HALF, y, y]
            axes.plot(across, down, color=canvas.SOFT, linewidth=1, zorder=1)
            style = {"color": canvas.SOFT, "style": "italic", "fontsize": 7.5, "va": "bottom"}
            canvas.write(axes, across[-2] + 0.03, y - 0.02, node["answer"], **style)
        fill, ink = (canvas.ACCENT, "white") if node["is_positive"] else ("white", canvas.INK)
        style = {"facecolor": fill, "zorder": 2}
        text = {"va": "center", "zorder": 3}
        if node["leaf"]:
            style |= {"pad": 0.12, "rounding": 0.12, "edgecolor": canvas.ACCENT}
            canvas.draw_box(axes, x, y, _LEAF_WIDTH, _HALF, **style)
            title = clip(f"{node['leaf']}: {format_verdict(node)}", 22)
            text |= {"color": ink}
            canvas.write(axes, x + 0.12, y - 0.09, title, fontsize=8.5, weight="bold", **text)
            canvas.write(axes, x + 0.12, y + 0.11, _format_rate(node), fontsize=8, **text)
        else:
            style |= {"pad": 0.05, "rounding": 0.06, "edgecolor": canvas.INK}
            canvas.draw_box(axes, x, y, _NODE_WIDTH, _HALF, **style)
            lines = _wrap(node["question"], 24, 2)
            size = 8.5 if len(lines[0]) <= 20 and len(lines) == 1 else 7.5
            canvas.write(
                axes, x + 0.07, y - 0.07, "\n".join(lines), color=canvas.INK, fontsize=size, **text
            )
            canvas.write(
                axes,
                x + 0.07,
                y + 0.16,
                _format_rate(node),
                color=canvas.SOFT,
                fontsize=7.5,
                **text,
            )


def _format_rate(node: Plain) -> str:
    return f"{format_share(node['rate'])} of {node['n']:,}"


def format_verdict(leaf: Plain) -> str:
    """The prediction of a leaf, after a sign."""
    return f"{'+' if leaf['is_positive'] else chr(0x2212)} {leaf['predicts']}"


def _wrap(text: str, width: int, most: int) -> list[str]:
    """Lines of at most so many characters, of wide ones half as many, the rest as an ellipsis."""
    is_wide = any(unicodedata.east_asian_width(each) in "WF" for each in text)
    limit = width // 2 if is_wide else width
    return wrap(text, limit, max_lines=most, placeholder="…", drop_whitespace=True) or [""]


def _list_leaves(axes: Axes, leaves: Sequence[Plain], row: float) -> None:
    """The path to each leaf in words, where boxes would be too many."""
    for i, leaf in enumerate(leaves):
        y, options = (i + 0.5) * row, {"va": "center", "color": canvas.INK}
        title = clip(f"{leaf['number']}: {format_verdict(leaf)}, n = {leaf['n']:,}", 60)
        canvas.write(axes, _EDGE, y - 0.18, title, fontsize=8, weight="bold", **options)
        lines = "\n".join(_wrap(leaf["condition"], 70, 2))
        canvas.write(axes, _EDGE, y + 0.08, lines, fontsize=7, **options)


def _draw_rates(axes: Axes, summary: Plain, row: float, step: float, drawn: list[str]) -> None:
    """The rates of each leaf in its row, below its name and verdict."""
    task, leaves = summary["task"], summary["leaves"]
    ticks = _find_ticks(leaves)
    edge = 0.02 * (ticks[-1] - ticks[0])
    axes.set(xlim=(ticks[0] - edge, ticks[-1] + edge), xticks=ticks, yticks=[], axisbelow=True)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.spines["bottom"].set_color(canvas.SOFT)
    axes.grid(axis="x", color=canvas.LINE, linewidth=0.6)
    label = f"rate of {clip(task['positive'], 30)}{' and its 95% interval' if step else ''}\n"
    label += f"axis from {100 * ticks[0]:.4g}% to {100 * ticks[-1]:.4g}%"
    if len(drawn) < task["n_environments"]:
        label += f"; the {len(drawn)} largest of {task['n_environments']:,} environments"
    axes.set_xlabel(label, color=canvas.SOFT, fontsize=8.5, parse_math=False)
    for i, leaf in enumerate(leaves):
        _draw_leaf_rates(axes, leaf, i * row, (i + 1) * row, step, drawn)
    for i in range(1, len(leaves)):
        axes.axhline(i * row, color=canvas.LINE, linewidth=0.8)
    axes.tick_params(left=False, colors=canvas.SOFT, labelsize=8.5)


def _find_ticks(leaves: Sequence[Plain]) -> list[float]:
    """Marks of an axis that holds every dot, and every precise interval."""
    ends = []
    for each in (part for leaf in leaves for part in (leaf, *leaf["environments"])):
        dot = each["rate"] is not None and [each["rate"]] * 2
        ends.append({"rate_interval": each["rate_interval"] if each["n"] >= _N_PRECISE else dot})
    return find_ticks(ends, "rate")


def _draw_leaf_rates(
    axes: Axes, leaf: Plain, top: float, bottom: float, step: float, drawn: list[str]
) -> None:
    """Dots from top to bottom, one for each environment drawn, below the verdict of the leaf."""
    found = {each["environment"]: each for each in leaf["environments"]}
    side = {"transform": axes.get_yaxis_transform(), "va": "center"}  # x from 0 to 1
    name, conclusion = f"leaf {leaf['number']}", leaf["conclusion"]
    if conclusion is not None:
        name += f": {_SYMBOLS[conclusion]} {conclusion}, p {format_p(leaf['p_value'])}"
    canvas.write(axes, 0.02, top + 0.15, name, fontsize=8.5, color=canvas.INK, **side)
    first, last = top + 0.3, bottom - 0.1
    if leaf["rate"] is not None:
        axes.plot([leaf["rate"]] * 2, [first, last], color=canvas.ACCENT, linewidth=1.2, zorder=2)
    size, line, font = _STYLES[step]
    labels = []
    for i, environment in enumerate(drawn):
        each, y = found[environment], first + (last - first) * (i + 0.5) / len(drawn)
        labels.append((y, clip(environment, 20)))
        if each["rate"] is not None:
            axes.plot(each["rate_interval"], [y, y], color=canvas.SOFT, linewidth=line, zorder=2)
            axes.plot([each["rate"]], [y], "o", color=canvas.INK, markersize=size, zorder=3)
    if step == _PACKED:
        ends = [(y, end) for y, end in ((first, "lowest"), (last, "highest")) if leaf[end]]
        labels = [(y, f"{end}: {clip(leaf[end]['environment'], 14)}") for y, end in ends]
    for y, label in labels if len(drawn) > 1 else ():
        canvas.write(axes, -0.02, y, label, ha="right", fontsize=font, color=canvas.SOFT, **side)
