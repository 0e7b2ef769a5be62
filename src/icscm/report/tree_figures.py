"""The tree from left to right, and its path along the tolerance, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icscm.formatting import clip
from icscm.report.canvas import ACCENT, EDGE_TEXT, INK, LINE, SOFT, draw_box, make_figure, write
from icscm.report.drawing import name_verdict, wrap
from icscm.report.tree_drawing import name_span
from icscm.report.words import Plain, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icscm.report.tolerance import TolerancePath

# In inches: from one level to the next, boxes of splits and of leaves, and half their heights.
_LEVEL, _NODE_WIDTH, _LEAF_WIDTH, _HALF = 1.6, 1.28, 1.75, 0.25
_EDGE: Final = 0.1
# Beyond these a tree is told leaf by leaf, in words.
_MAX_LEAVES, _MAX_DEPTH = 40, 9
_WORDS_WIDTH: Final = 5.0
# A row of a leaf: at least, and for each environment.
_LEAST_ROW, _PER_DOT, _ROW_EDGE = 0.62, 0.105, 0.14


def is_drawable(summary: Plain) -> bool:
    """Whether boxes from left to right can be read."""
    model = summary["model"]
    return bool(model["n_leaves"] <= _MAX_LEAVES and model["depth"] <= _MAX_DEPTH)


def find_width(summary: Plain) -> float:
    """Inches that the tree takes."""
    if not is_drawable(summary):
        return _WORDS_WIDTH
    return float(2 * _EDGE + summary["model"]["depth"] * _LEVEL + _LEAF_WIDTH)


def find_row(n_environments: int) -> float:
    """Inches that a leaf takes."""
    return max(_LEAST_ROW, _ROW_EDGE + n_environments * _PER_DOT)


def draw_branches(axes: Axes, summary: Plain, row: float) -> None:
    """The tree from left to right: each leaf in its row, each split between those it leads to."""
    width = find_width(summary)
    axes.set_xlim(0, width)
    axes.axis("off")
    if not is_drawable(summary):
        _tell_leaves(axes, summary["leaves"], row)
        return
    nodes = summary["tree"]["nodes"]
    middles = find_middles(nodes)
    above: dict[int, int] = {}
    for i, node in enumerate(nodes):
        depth, y = node["depth"], middles[i] * row
        x = _EDGE + depth * _LEVEL
        if node["leaf"] is None:
            above[depth] = i
            _draw_split(axes, x, y, node, _find_rule(nodes, i))
        else:
            x = width - _EDGE - _LEAF_WIDTH
            _draw_end(axes, x, y, node)
        if depth:
            parent = above[depth - 1]
            answer = "yes" if parent == i - 1 else "no"
            start = _EDGE + (depth - 1) * _LEVEL + _NODE_WIDTH, middles[parent] * row
            _join(axes, start, (x, y), answer)


def find_middles(nodes: Sequence[Plain]) -> list[float]:
    """How far down each node stands, in rows: a leaf in its own, a split between its children."""
    middles = [0.0] * len(nodes)
    children: dict[int, list[float]] = {}
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        if node["leaf"] is not None:
            middles[i] = node["leaf"] - 0.5
        else:
            middles[i] = sum(children.pop(node["depth"] + 1)) / 2
        children.setdefault(node["depth"], []).append(middles[i])
    return middles


def _find_rule(nodes: Sequence[Plain], place: int) -> str:
    """What a split asks: the rule of the node that comes next, where it is true."""
    return str(nodes[place + 1]["rule"])


def _draw_split(axes: Axes, x: float, y: float, node: Plain, rule: str) -> None:
    style = {"pad": 0.05, "rounding": 0.06, "facecolor": "white", "edgecolor": INK, "zorder": 2}
    draw_box(axes, x, y, _NODE_WIDTH, _HALF, **style)
    lines = wrap(f"{rule}?", 118, 2)
    told = f"{format_share(node['rate'])} of {node['n']:,}"
    middle = {"va": "center", "zorder": 3}
    size = 8.5 if len(lines) == 1 else 7.5
    write(axes, x + 0.07, y - 0.07, "\n".join(lines), color=INK, fontsize=size, **middle)
    write(axes, x + 0.07, y + 0.15, told, color=SOFT, fontsize=7.5, **middle)


def _draw_end(axes: Axes, x: float, y: float, node: Plain) -> None:
    fill, ink = (ACCENT, "white") if node["is_positive"] else ("white", INK)
    style = {"pad": 0.12, "rounding": 0.12, "facecolor": fill, "edgecolor": ACCENT, "zorder": 2}
    draw_box(axes, x, y, _LEAF_WIDTH, _HALF, **style)
    middle = {"va": "center", "color": ink, "zorder": 3}
    title = clip(f"{node['leaf']}: {name_verdict(node)}", 22)
    write(axes, x + 0.12, y - 0.09, title, fontsize=8.5, weight="bold", **middle)
    told = f"{format_share(node['rate'])} of {node['n']:,}"
    write(axes, x + 0.12, y + 0.11, told, fontsize=8, **middle)


def _join(axes: Axes, start: tuple[float, float], end: tuple[float, float], answer: str) -> None:
    """From a split to what it leads to: across, along, across."""
    turn = start[0] + (_LEVEL - _NODE_WIDTH) / 2
    across = [start[0], turn, turn, end[0]]
    axes.plot(across, [start[1], start[1], end[1], end[1]], color=SOFT, linewidth=1, zorder=1)
    beside = {**EDGE_TEXT, "fontsize": 7.5, "ha": "right", "va": "center"}
    write(axes, turn - 0.03, end[1], answer, **beside)


def _tell_leaves(axes: Axes, leaves: Sequence[Plain], row: float) -> None:
    """The way to each leaf in words, where boxes would be too many."""
    for i, leaf in enumerate(leaves):
        y = (i + 0.5) * row
        title = clip(f"{leaf['number']}: {name_verdict(leaf)}, n = {leaf['n']:,}", 60)
        options = {"va": "center", "color": INK}
        write(axes, _EDGE, y - 0.18, title, fontsize=8, weight="bold", **options)
        lines = "\n".join(wrap(leaf["condition"], 550, 2))
        write(axes, _EDGE, y + 0.08, lines, fontsize=7, **options)


def draw_path(path: TolerancePath) -> Figure:
    """What the trees tell against what of it differs, a dot for each tolerance."""
    from icscm.report.tolerance import name_tolerance

    has_scores = path.points[0].held_out is not None
    figure = make_figure((9.5 if has_scores else 6.4, 4.2), is_registered=True)
    panels: Any = figure.subplots(1, 1 + has_scores, squeeze=False)[0]
    axes = panels[0]
    x = [point.differs for point in path.points]
    y = [point.information for point in path.points]
    axes.plot(x, y, "-o", color=SOFT, markerfacecolor=INK, markeredgecolor=INK, markersize=5)
    axes.plot(
        [path.own_point.differs], [path.own_point.information], "o", color=ACCENT, markersize=10
    )
    placed: dict[tuple[float, float], list[str]] = {}
    gone: dict[tuple[float, float], list[str]] = {}
    for point, (left, _) in zip(path.points, path.list_changes(), strict=True):
        place = round(point.differs, 6), round(point.information, 6)
        placed.setdefault(place, []).append(name_tolerance(point.tolerance))
        gone.setdefault(place, []).extend(left)
    for number, (place, names) in enumerate(placed.items()):
        without = f"\nwithout {clip(', '.join(gone[place]), 30)}" if gone[place] else ""
        # above and below in turn, so that neighbours do not cover each other
        below = {"xytext": (4, -7), "va": "top"} if number % 2 == 0 else {"xytext": (4, 7)}
        options = {"textcoords": "offset points", "fontsize": 8, "parse_math": False, **below}
        axes.annotate(name_span(names) + without, place, **options)
    axes.set_xlim(0, 1.35 * max(*x, 1.0))
    axes.set_ylim(0, 1.1 * max(*y, 1.0))
    axes.set_xlabel("differs between environments, beyond chance")
    axes.set_ylabel("information")
    if has_scores:
        _draw_scores(panels[1], path)
    for each in panels:
        each.grid(color=LINE, linewidth=0.6)
        each.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _draw_scores(axes: Axes, path: TolerancePath) -> None:
    """AUC in the environments left out: each, their mean, and the worst."""
    from icscm.report.tolerance import name_tolerance

    places = range(len(path.points))
    found = [point.held_out for point in path.points]
    for place, held_out in zip(places, found, strict=True):
        known = [each for each in held_out.aucs if each is not None] if held_out else []
        axes.plot([place] * len(known), known, "o", color=SOFT, markersize=3, alpha=0.6)
    for name, style in (("mean", "-o"), ("worst", "--")):
        values = [getattr(each, name) for each in found]
        numbers = [float("nan") if each is None else each for each in values]
        axes.plot(places, numbers, style, color=ACCENT, markersize=5, label=name)
    axes.set_xticks([*places], [name_tolerance(point.tolerance) for point in path.points])
    axes.set_xlabel("tolerance, from plain to strict")
    axes.set_ylabel("AUC in the environment left out")
    axes.legend(frameon=False)
