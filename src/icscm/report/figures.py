"""The model as a figure: its tree, and beside each leaf the rate in every environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icscm.formatting import clip
from icscm.model.learner import Learner
from icscm.parameters import check_matplotlib, check_value, one_of
from icscm.report.canvas import (
    ACCENT,
    EDGE_TEXT,
    INK,
    LINE,
    SOFT,
    draw_arrow,
    draw_box,
    make_figure,
    shrink,
    write,
)
from icscm.report.drawing import choose_largest, describe_tree, find_ticks, name_verdict, wrap
from icscm.report.summary import make_summary
from icscm.report.tree_figures import draw_branches, find_row, find_width
from icscm.report.tree_summary import is_of_tree
from icscm.report.words import Plain, format_p, format_share
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Environments that are drawn, each with its name; of more, the largest.
_N_DRAWN = 60
# An environment of fewer samples has an interval too wide for the axis to go by.
_N_TELLING = 30
# Everything is placed in inches, so that text fits its boxes whatever else is drawn.
_TREE_WIDTH, _PLOT_WIDTH, _NAMES_WIDTH, _EDGE, _FOOT = 4.6, 3.8, 1.7, 0.25, 0.6
# Of a row: at least, and what is not dots; of each environment in few, and in many.
_ROW_HEIGHT, _ROW_REST, _LOOSE, _DENSE, _N_LOOSE = 1.0, 0.45, 0.16, 0.125, 12
_SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}


def draw_model(
    learner: Learner,
    ax: Axes | None = None,
    order: str = "name",
    *,
    target: str | None = None,
    environment: str | None = None,
    is_registered: bool = False,
) -> Figure:
    """The tree of a fitted learner, and beside each leaf the rate in every environment.

    Dots are rates, lines their 95 % intervals, the upright line is the rate of all together.
    `order` is that of the environments. Within `ax` everything is drawn as small as it must be;
    without, on a new figure, which pyplot knows if `is_registered`.
    """
    check_matplotlib()
    check_value("order", order, one_of("name", "size", "rate"))
    summary = make_summary(learner, target=target, environment=environment)
    drawn = _choose_environments(summary, order)
    has_branches = is_of_tree(summary) and summary["model"]["n_rules"] > 0
    row = find_row(len(drawn)) if has_branches else _find_row(len(drawn))
    tree_width = find_width(summary) if has_branches else _TREE_WIDTH
    aside = _NAMES_WIDTH if len(drawn) > 1 else _EDGE
    height = row * len(summary["leaves"])
    width, tall = tree_width + aside + _PLOT_WIDTH + _EDGE, height + _FOOT + _EDGE
    figure: Any = (
        ax.figure if ax is not None else make_figure((width, tall), is_registered=is_registered)
    )
    bottom, part = _FOOT / tall, height / tall
    add = figure.add_axes if ax is None else ax.inset_axes
    tree = add((0, bottom, tree_width / width, part))
    rates = add(((tree_width + aside) / width, bottom, _PLOT_WIDTH / width, part))
    (draw_branches if has_branches else _draw_tree)(tree, summary, row)
    _draw_rates(rates, summary, row, drawn, is_named=not has_branches)
    for axes in (tree, rates):
        axes.set_ylim(height, 0)
        if ax is not None:
            shrink(axes, ax, width, tall)
    if ax is None:
        is_tree = is_of_tree(summary)
        figure.set_label(summary["model"]["text"] if is_tree else describe_tree(summary["tree"]))
    else:
        ax.axis("off")
    return figure  # type: ignore[no-any-return]


def _find_row(n_environments: int) -> float:
    each = _LOOSE if n_environments <= _N_LOOSE else _DENSE
    return max(_ROW_HEIGHT, _ROW_REST + n_environments * each)


def _choose_environments(summary: Plain, order: str) -> list[str]:
    """Those that are drawn, the same in every leaf and in the same order."""
    rows = choose_largest(summary["asked"]["environments"], _N_DRAWN, order)
    return [each["environment"] for each in rows]


# In inches from the left: the boxes of rules, and those of leaves.
_NODE, _NODE_WIDTH, _LEAF, _LEAF_WIDTH = 0.1, 2.3, 2.95, 1.6
# Of a letter in a leaf's title.
_LETTER_WIDTH = 0.087


def _draw_tree(axes: Axes, summary: Plain, row: float) -> None:
    """The rules below each other, each `row` high and beside its leaf, and the last leaf."""
    tree, (*leaves, last) = summary["tree"], summary["leaves"]
    axes.set_xlim(0, _TREE_WIDTH)
    axes.axis("off")
    trunk, right = _NODE + _NODE_WIDTH / 2, _NODE + _NODE_WIDTH
    for i, (node, leaf) in enumerate(zip(tree["nodes"], leaves, strict=True)):
        y = (i + 0.5) * row
        half = _draw_rule(axes, y, wrap(f"{node['rule']}?", 190, 4))
        draw_arrow(axes, (right, y), (_LEAF, y))
        write(axes, (right + _LEAF) / 2, y - 0.07, tree["exit"], ha="center", **EDGE_TEXT)
        _draw_leaf(axes, _LEAF, y, leaf, _LEAF_WIDTH)
        start, end = y + half, (i + 1.5) * row - _LEAF_HALF
        draw_arrow(axes, (trunk, start), (trunk, end))
        write(axes, trunk + 0.1, (start + end) / 2, tree["onward"], va="center", **EDGE_TEXT)
    _draw_leaf(axes, _NODE, (len(leaves) + 0.5) * row, last, _NODE_WIDTH)


_LEAF_HALF = 0.36


def _draw_rule(axes: Axes, y: float, lines: list[str]) -> float:
    """A rule; gives half its height."""
    half = max(_LEAF_HALF, 0.085 * len(lines) + 0.1)
    style = {"pad": 0.05, "rounding": 0.06, "facecolor": "white", "edgecolor": INK}
    draw_box(axes, _NODE, y, _NODE_WIDTH, half, **style)
    write(axes, _NODE + 0.12, y, "\n".join(lines), va="center", color=INK, fontsize=9)
    return half


def _draw_leaf(axes: Axes, x: float, y: float, leaf: Plain, width: float) -> None:
    fill, ink = (ACCENT, "white") if leaf["is_positive"] else ("white", INK)
    style = {"pad": 0.16, "rounding": 0.16, "facecolor": fill, "edgecolor": ACCENT}
    draw_box(axes, x, y, width, _LEAF_HALF, **style)
    title = clip(name_verdict(leaf), int((width - 0.25) / _LETTER_WIDTH))
    write(axes, x + 0.14, y - 0.15, title, va="center", color=ink, fontsize=9, weight="bold")
    counts = f"n = {leaf['n']:,}\nrate {format_share(leaf['rate'])}"
    write(axes, x + 0.14, y + 0.1, counts, va="center", color=ink, fontsize=8.5)


def _draw_rates(
    axes: Axes, summary: Plain, row: float, drawn: Sequence[str], *, is_named: bool
) -> None:
    """The rates of each leaf in its row; its name and verdict above them if `is_named`."""
    asked, leaves = summary["asked"], summary["leaves"]
    ticks = _find_ticks(leaves)
    edge = 0.02 * (ticks[-1] - ticks[0])
    axes.set_xlim(ticks[0] - edge, ticks[-1] + edge)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    label = f"rate of {clip(asked['positive'], 30)} and its 95% interval\n"
    label += f"axis from {100 * ticks[0]:.4g}% to {100 * ticks[-1]:.4g}%"
    if len(drawn) < asked["n_environments"]:
        label += f"; the {len(drawn)} largest of {asked['n_environments']:,} environments"
    axes.set_xlabel(label, color=SOFT, fontsize=8.5, parse_math=False)
    for i, leaf in enumerate(leaves):
        _draw_leaf_rates(axes, leaf, i * row, (i + 1) * row, drawn, is_named=is_named)
    for i in range(1, len(leaves)):
        axes.axhline(i * row, color=LINE, linewidth=0.8)
    axes.tick_params(left=False, colors=SOFT, labelsize=8.5)


def _find_ticks(leaves: Sequence[Plain]) -> list[float]:
    """Where the axis is marked: wide enough for every dot, and for the intervals that tell much."""
    ends = []
    for each in (part for leaf in leaves for part in (leaf, *leaf["environments"])):
        dot = each["rate"] is not None and [each["rate"]] * 2
        ends.append({"rate_interval": each["rate_interval"] if each["n"] >= _N_TELLING else dot})
    return find_ticks(ends, "rate")


def _draw_leaf_rates(
    axes: Axes, leaf: Plain, top: float, bottom: float, drawn: Sequence[str], *, is_named: bool
) -> None:
    """Dots from top to bottom, one for each environment drawn, below the leaf's verdict."""
    found = {each["environment"]: each for each in leaf["environments"]}
    environments = [found[name] for name in drawn]
    side = {"transform": axes.get_yaxis_transform(), "va": "center"}  # x from 0 to 1
    first, last = top + 0.06, bottom - 0.06
    if is_named:
        write(axes, 0.02, top + 0.15, _describe_leaf(leaf), fontsize=8.5, color=INK, **side)
        first, last = top + 0.3, bottom - 0.1
    if leaf["rate"] is not None:
        axes.plot([leaf["rate"]] * 2, [first, last], color=ACCENT, linewidth=1.2, zorder=2)
    is_loose = is_named and len(drawn) <= _N_LOOSE
    size, line, font = (4.5, 1.2, 8) if is_loose else (3.0, 0.7, 7)
    for i, each in enumerate(environments):
        y = first + (last - first) * (i + 0.5) / len(environments)
        if each["rate"] is not None:
            axes.plot(each["rate_interval"], [y, y], color=SOFT, linewidth=line, zorder=2)
            axes.plot([each["rate"]], [y], "o", color=INK, markersize=size, zorder=3)
        if len(drawn) > 1:
            name = clip(each["environment"], 20)
            write(axes, -0.02, y, name, ha="right", fontsize=font, color=SOFT, **side)


def _describe_leaf(leaf: Plain) -> str:
    name, conclusion = f"leaf {leaf['number']}", leaf["conclusion"]
    if conclusion is None:
        return name
    return f"{name}: {_SYMBOLS[conclusion]} {conclusion}, p {format_p(leaf['p_value'])}"
