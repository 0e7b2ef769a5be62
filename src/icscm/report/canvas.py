"""What figures are drawn with: colours, boxes, arrows and text, placed in inches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, ACCENT = "#1d1c1a", "#5b5852", "#d9d5cc", "#0b6170"
EDGE_TEXT = {"color": SOFT, "style": "italic", "fontsize": 8.5}


def make_figure(
    size: tuple[float, float], *, is_registered: bool = False, **options: Any
) -> Figure:
    """A figure that shows itself in a notebook, and that pyplot knows if `is_registered`."""
    from icscm.report.notebooks import NotebookFigure

    if not is_registered:
        return NotebookFigure(figsize=size, **options)
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, FigureClass=NotebookFigure, **options)


def shrink(axes: Axes, host: Axes, width: float, height: float) -> None:
    """Text that fits its boxes where there is less room than the figure would take."""
    from matplotlib.text import Text

    room = host.get_window_extent().transformed(host.figure.dpi_scale_trans.inverted())
    scale = min(room.width / width, room.height / height, 1.0)
    for text in axes.findobj(Text):
        text.set_fontsize(float(text.get_fontsize()) * scale)
    axes.tick_params(labelsize=8.5 * scale)
    for line in axes.lines:
        line.set_markersize(line.get_markersize() * scale)


def write(axes: Axes, x: float, y: float, text: str, **options: Any) -> Any:
    """Text as it is: a dollar in a user's name starts no formula."""
    return axes.text(x, y, text, parse_math=False, **options)


def draw_box(axes: Axes, x: float, y: float, width: float, half: float, **style: Any) -> None:
    """A box with round corners, `pad` wide, around a middle."""
    from matplotlib.patches import FancyBboxPatch

    pad, rounding = style.pop("pad"), style.pop("rounding")
    low, size = (x + pad, y - half + pad), (width - 2 * pad, 2 * (half - pad))
    boxstyle = f"round,pad={pad},rounding_size={rounding}"
    axes.add_patch(FancyBboxPatch(low, *size, boxstyle=boxstyle, **style))


def draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one place to another."""
    style = {"arrowstyle": "->", "color": SOFT, "shrinkA": 0, "shrinkB": 1, "linewidth": 1}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)
