"""The model as a figure: the tree of a single branch, and beside each leaf its rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icscm.model.learner import Learner
from icscm.parameters import check_matplotlib
from icscm.report.drawing import choose_largest, name_verdict, wrap
from icscm.report.summary import make_summary
from icscm.report.words import Plain, format_p, format_share
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA
from icscm.text import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _SOFT, _LINE, _ACCENT = "#1d1c1a", "#5b5852", "#d9d5cc", "#0b6170"

# Environments up to this number are named beside their dots.
_N_NAMED = 12
# Of more than can be told apart, those with the most samples are drawn.
_N_DRAWN = 200
# Everything is placed in inches, so that text fits its boxes whatever else is drawn.
_TREE_WIDTH, _PLOT_WIDTH, _NAMES_WIDTH, _EDGE, _FOOT = 4.6, 3.8, 1.7, 0.25, 0.6
# Of a row: with up to three environments, more for each further one, at most.
_ROW_HEIGHT, _PER_ENVIRONMENT, _MAX_ROW_HEIGHT = 1.0, 0.16, 2.4
_SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}


def draw_model(learner: Learner) -> Figure:
    """The tree of a fitted learner, and beside each leaf the rate in every environment.

    Dots are rates, lines their 95 % intervals, the upright line is the rate of all together.
    """
    check_matplotlib()
    from matplotlib.figure import Figure as NewFigure

    summary = make_summary(learner)
    n_environments, n_leaves = summary["asked"]["n_environments"], len(summary["leaves"])
    row = min(_ROW_HEIGHT + _PER_ENVIRONMENT * max(n_environments - 3, 0), _MAX_ROW_HEIGHT)
    names = _NAMES_WIDTH if 1 < n_environments <= _N_NAMED else _EDGE
    height = row * n_leaves
    width, tall = _TREE_WIDTH + names + _PLOT_WIDTH + _EDGE, height + _FOOT + _EDGE
    figure = NewFigure(figsize=(width, tall))
    places = (0, _TREE_WIDTH), (_TREE_WIDTH + names, _PLOT_WIDTH)
    for draw, (left, wide) in zip((_draw_tree, _draw_rates), places, strict=True):
        axes = figure.add_axes((left / width, _FOOT / tall, wide / width, height / tall))
        draw(axes, summary, row)
        axes.set_ylim(height, 0)
    return figure


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


def _draw_rates(axes: Axes, summary: Plain, row: float) -> None:
    asked, leaves = summary["asked"], summary["leaves"]
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_SOFT)
    axes.grid(axis="x", color=_LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    label = f"rate of {clip(asked['positive'], 30)} and its 95% interval"
    if asked["n_environments"] > _N_DRAWN:
        label += f"\nin the {_N_DRAWN} largest of {asked['n_environments']:,} environments"
    axes.set_xlabel(label, color=_SOFT, fontsize=8.5, parse_math=False)
    names_shown = 1 < asked["n_environments"] <= _N_NAMED
    for i, leaf in enumerate(leaves):
        _draw_leaf_rates(axes, leaf, i * row, (i + 1) * row, names_shown=names_shown)
    for i in range(1, len(leaves)):
        axes.axhline(i * row, color=_LINE, linewidth=0.8)
    axes.tick_params(left=False, colors=_SOFT, labelsize=8.5)


def _draw_leaf_rates(
    axes: Axes, leaf: Plain, top: float, bottom: float, *, names_shown: bool
) -> None:
    """Dots from top to bottom in the order of the environments, below the leaf's verdict."""
    environments = choose_largest(leaf["environments"], _N_DRAWN)
    _write(axes, 0.0, top + 0.15, _describe_leaf(leaf), va="center", fontsize=8.5, color=_INK)
    first, last = top + 0.3, bottom - 0.1
    if leaf["rate"] is not None:
        axes.plot([leaf["rate"]] * 2, [first, last], color=_ACCENT, linewidth=1.2, zorder=2)
    size, line = (4.5, 1.2) if names_shown else (3.0, 0.7)
    for i, each in enumerate(environments):
        y = first + (last - first) * (i + 0.5) / len(environments)
        if each["rate"] is not None:
            axes.plot(each["rate_interval"], [y, y], color=_SOFT, linewidth=line, zorder=2)
            axes.plot([each["rate"]], [y], "o", color=_INK, markersize=size, zorder=3)
        if names_shown:
            name = clip(each["environment"], 20)
            _write(axes, -0.06, y, name, ha="right", va="center", fontsize=8, color=_SOFT)


def _describe_leaf(leaf: Plain) -> str:
    name, conclusion = f"leaf {leaf['number']}", leaf["conclusion"]
    if conclusion is None:
        return name
    return f"{name}: {_SYMBOLS[conclusion]} {conclusion}, p {format_p(leaf['p_value'])}"
