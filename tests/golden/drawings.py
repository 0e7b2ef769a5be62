"""What a figure or a page draws, as text: an artist on each line, in data coordinates.

Nothing here needs a renderer, and no position that a layout engine works out is held. A field that
has its usual value is left out, so that a line tells what is special of its artist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator

N_DIGITS = 4
TICK_OPTIONS = ("gridOn", "grid_color", "grid_linewidth", "labelsize", "labelcolor", "left")
USUAL_VALUES = {
    "align": "[left, baseline]",
    "alpha": "None",
    "fill": "full",
    "label": "",
    "math": "True",
    "size": "10",
    "stroke": "-",
    "style": "normal",
    "turned": "0",
    "weight": "normal",
}


def draw(make_figure: Callable[[], Any]) -> str:
    """Make a figure, describe it and close it."""
    figure = make_figure()
    try:
        return describe_figure(figure)
    finally:
        pyplot.close(figure)


def describe_figure(figure: Any) -> str:
    """Return a line for each artist, in the order in which they were added."""
    lines = [format_line("figure", inches=figure.get_size_inches(), label=figure.get_label())]
    lines += [describe_text(text, "figure text") for text in figure.texts]
    for axes in figure.findobj(Axes):
        lines += describe_axes(axes)
    return "\n".join(lines) + "\n"


def describe_axes(axes: Axes) -> Iterator[str]:
    is_placed_by_layout = axes.get_subplotspec() is not None
    place = "by layout" if is_placed_by_layout else axes.get_position(original=True).bounds
    yield format_line("\naxes", place=place, is_on=axes.axison, below=axes.get_axisbelow())
    yield format_line("x limits", limits=axes.get_xlim(), scale=axes.get_xscale())
    yield format_line("y limits", limits=axes.get_ylim(), scale=axes.get_yscale())
    if axes.axison:
        yield from describe_axis("x", axes.xaxis)
        yield from describe_axis("y", axes.yaxis)
        for name, spine in axes.spines.items():
            if spine.get_visible():
                yield format_line("spine", side=name, colour=format_colour(spine.get_edgecolor()))
    yield describe_text(axes.title, "title")
    yield from map(describe_line, axes.lines)
    yield from map(describe_patch, axes.patches)
    yield from map(describe_collection, axes.collections)
    yield from map(describe_text, axes.texts)
    legend = axes.get_legend()
    if legend is not None:
        yield format_line("legend", framed=legend.get_frame_on())
        yield from (describe_text(text, "legend text") for text in legend.get_texts())


def describe_axis(name: str, axis: Any) -> Iterator[str]:
    yield describe_text(axis.label, f"{name} label")
    if isinstance(axis.get_major_locator(), FixedLocator):
        ticks = axis.get_majorticklocs()
        texts = axis.get_major_formatter().format_ticks(ticks)
        yield format_line(f"{name} ticks", at=ticks, texts=texts)
    options = axis.get_tick_params()
    known = {option: options[option] for option in TICK_OPTIONS if option in options}
    yield format_line(f"{name} tick options", **known)


def describe_text(text: Any, kind: str = "text") -> str:
    fields: dict[str, Any] = {}
    if kind in ("text", "figure text"):
        fields["at"] = text.get_position()
    if isinstance(text, Annotation):
        fields |= {"of": text.xy, "in": text.anncoords}
    fields |= {
        "align": (text.get_ha(), text.get_va()),
        "size": text.get_fontsize(),
        "colour": format_colour(text.get_color()),
        "weight": text.get_weight(),
        "style": text.get_style(),
        "turned": text.get_rotation(),
        "math": text.get_parse_math(),
    }
    return format_line(kind, **fields, text=repr(text.get_text()))


def describe_line(line: Any) -> str:
    fields = {
        "x": line.get_xdata(),
        "y": line.get_ydata(),
        "colour": format_colour(line.get_color()),
        "width": line.get_linewidth(),
        "stroke": line.get_linestyle(),
        "alpha": line.get_alpha(),
        "above": line.get_zorder(),
        "label": re.sub(r"^_child\d+", "", str(line.get_label())),
    }
    if line.get_marker() != "None":
        fields |= {
            "marker": line.get_marker(),
            "marker_size": line.get_markersize(),
            "fill": line.get_fillstyle(),
            "inner": format_colour(line.get_markerfacecolor()),
            "rim": format_colour(line.get_markeredgecolor()),
        }
    return format_line("line", **fields)


def describe_patch(patch: Any) -> str:
    box = patch.get_path().get_extents(patch.get_patch_transform())
    corners = vars(patch.get_boxstyle()) if hasattr(patch, "get_boxstyle") else {}
    return format_line(
        "patch",
        extent=box.extents,
        face=format_colour(patch.get_facecolor()),
        edge=format_colour(patch.get_edgecolor()),
        width=patch.get_linewidth(),
        above=patch.get_zorder(),
        **corners,
    )


def describe_collection(collection: Any) -> str:
    return format_line(
        "collection",
        offsets=np.asarray(collection.get_offsets()).tolist(),
        extents=[path.get_extents().extents for path in collection.get_paths()],
        faces=[*map(format_colour, collection.get_facecolor())],
        edges=[*map(format_colour, collection.get_edgecolor())],
        widths=collection.get_linewidth(),
        above=collection.get_zorder(),
    )


def format_line(kind: str, **fields: Any) -> str:
    """Return one line: the kind of artist, and its fields but for those with usual values."""
    shown = {name: format_value(value) for name, value in fields.items()}
    special = [f"{name}={text}" for name, text in shown.items() if USUAL_VALUES.get(name) != text]
    return " ".join([kind, *special])


def format_value(value: Any) -> str:
    """Return numbers with four digits after the point, everything else as it is."""
    if value is None or isinstance(value, str | bool):
        return str(value)
    if isinstance(value, int | float | np.number):
        return f"{round(float(value), N_DIGITS) + 0.0:g}" if np.isfinite(value) else "nan"
    return f"[{', '.join(map(format_value, value))}]"


def format_colour(colour: Any) -> str:
    """Return a colour with its opacity, if it has one."""
    return to_hex(colour, keep_alpha=True).removesuffix("ff") if len(colour) else "none"


def list_svg(page: str) -> str:
    """Return the drawings of a page, an element on each line; marks of verdicts are left out."""
    drawings = re.findall(r"<svg(?! class=\"(?:mark|unseen)\").*?</svg>", page, flags=re.DOTALL)
    return re.sub(r">\s*<", ">\n<", "\n".join(drawings)) + "\n"
