"""The model as a figure: the tree of a single branch, and beside each leaf its rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icscm.model.learner import Learner
from icscm.parameters import check_matplotlib, check_value, one_of
from icscm.report.drawing import choose_largest, describe_tree, find_ticks, name_verdict, wrap
from icscm.report.summary import make_summary
from icscm.report.words import Plain, format_p, format_share
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA
from icscm.text import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _SOFT, _LINE, _ACCENT = "#1d1c1a", "#5b5852", "#d9d5cc", "#0b6170"

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
    n_leaves = len(summary["leaves"])
    row = max(_ROW_HEIGHT, _ROW_REST + len(drawn) * (_LOOSE if len(drawn) <= _N_LOOSE else _DENSE))
    aside = _NAMES_WIDTH if len(drawn) > 1 else _EDGE
    height = row * n_leaves
    width, tall = _TREE_WIDTH + aside + _PLOT_WIDTH + _EDGE, height + _FOOT + _EDGE
    figure: Any = ax.figure if ax is not None else _make_figure((width, tall), is_registered)
    bottom, part = _FOOT / tall, height / tall
    add = figure.add_axes if ax is None else ax.inset_axes
    tree = add((0, bottom, _TREE_WIDTH / width, part))
    rates = add(((_TREE_WIDTH + aside) / width, bottom, _PLOT_WIDTH / width, part))
    _draw_tree(tree, summary, row)
    _draw_rates(rates, summary, row, drawn)
    for axes in (tree, rates):
        axes.set_ylim(height, 0)
        if ax is not None:
            _shrink(axes, ax, width, tall)
    if ax is None:
        figure.set_label(describe_tree(summary["tree"]))
    else:
        ax.axis("off")
    return figure  # type: ignore[no-any-return]


def _make_figure(size: tuple[float, float], is_registered: bool) -> Figure:
    from icscm.report.notebooks import NotebookFigure

    if not is_registered:
        return NotebookFigure(figsize=size)
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, FigureClass=NotebookFigure)


def _shrink(axes: Axes, host: Axes, width: float, height: float) -> None:
    """Text that fits its boxes where there is less room than the figure would take."""
    from matplotlib.text import Text

    room = host.get_window_extent().transformed(host.figure.dpi_scale_trans.inverted())
    scale = min(room.width / width, room.height / height, 1.0)
    for text in axes.findobj(Text):
        text.set_fontsize(float(text.get_fontsize()) * scale)
    axes.tick_params(labelsize=8.5 * scale)
    for line in axes.lines:
        line.set_markersize(line.get_markersize() * scale)


def _choose_environments(summary: Plain, order: str) -> list[str]:
    """Those that are drawn, the same in every leaf and in the same order."""
    rows = choose_largest(summary["asked"]["environments"], _N_DRAWN, order)
    return [each["environment"] for each in rows]


def _write(axes: Axes, x: float, y: float, text: str, **options: Any) -> Any:
    """Text as it is: a dollar in a user's name starts no formula."""
    return axes.text(x, y, text, parse_math=False, **options)


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
        _draw_arrow(axes, (right, y), (_LEAF, y))
        _write(axes, (right + _LEAF) / 2, y - 0.07, tree["exit"], ha="center", **_EDGE_TEXT)
        _draw_leaf(axes, _LEAF, y, leaf, _LEAF_WIDTH)
        start, end = y + half, (i + 1.5) * row - _LEAF_HALF
        _draw_arrow(axes, (trunk, start), (trunk, end))
        _write(axes, trunk + 0.1, (start + end) / 2, tree["onward"], va="center", **_EDGE_TEXT)
    _draw_leaf(axes, _NODE, (len(leaves) + 0.5) * row, last, _NODE_WIDTH)


_EDGE_TEXT = {"color": _SOFT, "style": "italic", "fontsize": 8.5}
_LEAF_HALF = 0.36


def _draw_box(axes: Axes, x: float, y: float, width: float, half: float, **style: Any) -> None:
    """A box with round corners, `pad` wide, around a middle."""
    from matplotlib.patches import FancyBboxPatch

    pad, rounding = style.pop("pad"), style.pop("rounding")
    low, size = (x + pad, y - half + pad), (width - 2 * pad, 2 * (half - pad))
    boxstyle = f"round,pad={pad},rounding_size={rounding}"
    axes.add_patch(FancyBboxPatch(low, *size, boxstyle=boxstyle, **style))


def _draw_rule(axes: Axes, y: float, lines: list[str]) -> float:
    """A rule; gives half its height."""
    half = max(_LEAF_HALF, 0.085 * len(lines) + 0.1)
    style = {"pad": 0.05, "rounding": 0.06, "facecolor": "white", "edgecolor": _INK}
    _draw_box(axes, _NODE, y, _NODE_WIDTH, half, **style)
    _write(axes, _NODE + 0.12, y, "\n".join(lines), va="center", color=_INK, fontsize=9)
    return half


def _draw_leaf(axes: Axes, x: float, y: float, leaf: Plain, width: float) -> None:
    fill, ink = (_ACCENT, "white") if leaf["is_positive"] else ("white", _INK)
    style = {"pad": 0.16, "rounding": 0.16, "facecolor": fill, "edgecolor": _ACCENT}
    _draw_box(axes, x, y, width, _LEAF_HALF, **style)
    title = clip(name_verdict(leaf), int((width - 0.25) / _LETTER_WIDTH))
    _write(axes, x + 0.14, y - 0.15, title, va="center", color=ink, fontsize=9, weight="bold")
    counts = f"n = {leaf['n']:,}\nrate {format_share(leaf['rate'])}"
    _write(axes, x + 0.14, y + 0.1, counts, va="center", color=ink, fontsize=8.5)


def _draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "->", "color": _SOFT, "shrinkA": 0, "shrinkB": 1, "linewidth": 1}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def _draw_rates(axes: Axes, summary: Plain, row: float, drawn: Sequence[str]) -> None:
    asked, leaves = summary["asked"], summary["leaves"]
    ticks = _find_ticks(leaves)
    edge = 0.02 * (ticks[-1] - ticks[0])
    axes.set_xlim(ticks[0] - edge, ticks[-1] + edge)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_SOFT)
    axes.grid(axis="x", color=_LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    label = f"rate of {clip(asked['positive'], 30)} and its 95% interval\n"
    label += f"axis from {100 * ticks[0]:.4g}% to {100 * ticks[-1]:.4g}%"
    if len(drawn) < asked["n_environments"]:
        label += f"; the {len(drawn)} largest of {asked['n_environments']:,} environments"
    axes.set_xlabel(label, color=_SOFT, fontsize=8.5, parse_math=False)
    for i, leaf in enumerate(leaves):
        _draw_leaf_rates(axes, leaf, i * row, (i + 1) * row, drawn)
    for i in range(1, len(leaves)):
        axes.axhline(i * row, color=_LINE, linewidth=0.8)
    axes.tick_params(left=False, colors=_SOFT, labelsize=8.5)


def _find_ticks(leaves: Sequence[Plain]) -> list[float]:
    """Where the axis is marked: wide enough for every dot, and for the intervals that tell much."""
    ends = []
    for each in (part for leaf in leaves for part in (leaf, *leaf["environments"])):
        dot = each["rate"] is not None and [each["rate"]] * 2
        ends.append({"rate_interval": each["rate_interval"] if each["n"] >= _N_TELLING else dot})
    return find_ticks(ends, "rate")


def _draw_leaf_rates(
    axes: Axes, leaf: Plain, top: float, bottom: float, drawn: Sequence[str]
) -> None:
    """Dots from top to bottom, one for each environment drawn, below the leaf's verdict."""
    found = {each["environment"]: each for each in leaf["environments"]}
    environments = [found[name] for name in drawn]
    side = {"transform": axes.get_yaxis_transform(), "va": "center"}  # x from 0 to 1
    _write(axes, 0.02, top + 0.15, _describe_leaf(leaf), fontsize=8.5, color=_INK, **side)
    first, last = top + 0.3, bottom - 0.1
    if leaf["rate"] is not None:
        axes.plot([leaf["rate"]] * 2, [first, last], color=_ACCENT, linewidth=1.2, zorder=2)
    is_loose = len(drawn) <= _N_LOOSE
    size, line, font = (4.5, 1.2, 8) if is_loose else (3.0, 0.7, 7)
    for i, each in enumerate(environments):
        y = first + (last - first) * (i + 0.5) / len(environments)
        if each["rate"] is not None:
            axes.plot(each["rate_interval"], [y, y], color=_SOFT, linewidth=line, zorder=2)
            axes.plot([each["rate"]], [y], "o", color=_INK, markersize=size, zorder=3)
        if len(drawn) > 1:
            name = clip(each["environment"], 20)
            _write(axes, -0.02, y, name, ha="right", fontsize=font, color=_SOFT, **side)


def _describe_leaf(leaf: Plain) -> str:
    name, conclusion = f"leaf {leaf['number']}", leaf["conclusion"]
    if conclusion is None:
        return name
    return f"{name}: {_SYMBOLS[conclusion]} {conclusion}, p {format_p(leaf['p_value'])}"
