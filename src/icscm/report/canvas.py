"""Colours, figures, boxes and text for figures that are placed in inches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icscm.formatting import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, ACCENT = "#1d1c1a", "#5b5852", "#d9d5cc", "#0b6170"


def make_figure(size: tuple[float, float], **options: Any) -> Figure:
    """A figure of pyplot that a notebook displays."""
    from matplotlib import pyplot

    from icscm.report.notebooks import NotebookFigure

    return pyplot.figure(figsize=size, FigureClass=NotebookFigure, **options)


def shrink(axes: Axes, host: Axes, width: float, height: float) -> None:
    """Scale text and markers down to axes that are smaller than the figure would be."""
    from matplotlib.text import Text

    room = host.get_window_extent().transformed(host.figure.dpi_scale_trans.inverted())
    scale = min(room.width / width, room.height / height, 1.0)
    for text in axes.findobj(Text):
        text.set_fontsize(float(text.get_fontsize()) * scale)
    axes.tick_params(labelsize=8.5 * scale)
    for line in axes.lines:
        line.set_markersize(line.get_markersize() * scale)


def write(axes: Axes, x: float, y: float, text: str, **options: Any) -> Any:
    """Text without mathematics: a dollar in a name starts no formula."""
    return axes.text(x, y, text, parse_math=False, **options)


def draw_rows(axes: Axes, rows: Sequence[Any], what: str, at: float | None = None) -> None:
    """Values with intervals from top to bottom: the name, value, interval and colour of each."""
    for y, (_, value, interval, color) in enumerate(rows):
        if interval is not None:
            axes.plot(interval, [y, y], color=color, linewidth=1.5, zorder=1)
        if value is not None:
            axes.plot([value], [y], "o", color=color, markersize=5, zorder=3)
    if at is not None:
        axes.axvline(at, color=SOFT, linewidth=0.8, linestyle="--")
    names = [clip(name, 40) for name, *_ in rows]
    axes.set_yticks(range(len(rows)), labels=names, fontsize=8, parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(what, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_box(axes: Axes, x: float, y: float, width: float, half: float, **style: Any) -> None:
    """A box with round corners of `pad`, centred at height y."""
    from matplotlib.patches import FancyBboxPatch

    pad, rounding = style.pop("pad"), style.pop("rounding")
    low, size = (x + pad, y - half + pad), (width - 2 * pad, 2 * (half - pad))
    boxstyle = f"round,pad={pad},rounding_size={rounding}"
    axes.add_patch(FancyBboxPatch(low, *size, boxstyle=boxstyle, **style))


_STYLES: Final[dict[str, Any]] = {
    "one": {"color": SOFT, "linewidth": 0.8, "alpha": 0.5},
    "all": {"color": ACCENT, "linewidth": 2.2},
    "other": {"color": INK, "linewidth": 1.2, "linestyle": "--"},
    "guide": {"color": SOFT, "linewidth": 1.0, "linestyle": ":"},
}


def plot_curves(axes: Axes, panel: dict[str, Any]) -> None:
    """The lines of a panel, as the page draws them."""
    for kind, points in panel["lines"]:
        axes.plot(*zip(*points, strict=True), **_STYLES[kind])
    axes.set(xlim=panel["across"], ylim=panel["up"], xlabel=panel["x_title"])
    axes.set_ylabel(panel["y_title"])
    if panel["name"] == "benefit":
        names = ["treat none", "treat all", "model"]
        axes.legend(axes.lines, names, frameon=False, fontsize=8, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
