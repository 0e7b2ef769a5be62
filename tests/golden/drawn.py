"""What a figure or a page draws, as text: positions in data coordinates, sizes and colours.

Nothing here needs a renderer, and no position that a layout engine works out is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator

N_DIGITS = 4
TICK_OPTIONS = ("gridOn", "grid_color", "grid_linewidth", "labelsize", "labelcolor", "left")


def show(value: Any) -> str:
    """Numbers of four digits; everything else as it is."""
    if value is None or isinstance(value, str | bool):
        return str(value)
    if isinstance(value, int | float | np.number):
        return f"{round(float(value), N_DIGITS) + 0.0:g}" if np.isfinite(value) else "nan"
    return f"[{', '.join(map(show, value))}]"


def show_colour(colour: Any) -> str:
    return to_hex(colour, keep_alpha=True) if len(colour) else "none"


def list_fields(kind: str, **fields: Any) -> str:
    return f"{kind} " + " ".join(f"{name}={show(value)}" for name, value in fields.items())


def describe_figure(figure: Any) -> str:
    """All that is drawn: a line for each artist, in the order in which they were added."""
    lines = [list_fields("figure", size=figure.get_size_inches(), label=figure.get_label())]
    lines += [describe_text(each, "figure text") for each in figure.texts]
    for axes in figure.findobj(Axes):
        lines += describe_axes(axes)
    return "\n".join(lines) + "\n"


def describe_axes(axes: Axes) -> Iterator[str]:
    is_placed = axes.get_subplotspec() is None  # otherwise a layout engine places them
    place = axes.get_position(original=True).bounds if is_placed else "by layout"
    yield list_fields("\naxes", place=place, is_on=axes.axison, below=axes.get_axisbelow())
    for name, axis, limits in (
        ("x", axes.xaxis, axes.get_xlim()),
        ("y", axes.yaxis, axes.get_ylim()),
    ):
        yield list_fields(f"{name} axis", limits=limits, scale=axis.get_scale())
        yield describe_text(axis.label, f"{name} label")
        if isinstance(axis.get_major_locator(), FixedLocator):
            ticks = axis.get_majorticklocs()
            yield list_fields(
                "ticks", at=ticks, texts=axis.get_major_formatter().format_ticks(ticks)
            )
        options = axis.get_tick_params()
        yield list_fields("tick options", **{key: options.get(key) for key in TICK_OPTIONS})
    for name, spine in axes.spines.items():
        colour = show_colour(spine.get_edgecolor())
        yield list_fields("spine", name=name, seen=spine.get_visible(), colour=colour)
    yield describe_text(axes.title, "title")
    yield from map(describe_line, axes.lines)
    yield from map(describe_patch, axes.patches)
    yield from map(describe_collection, axes.collections)
    yield from map(describe_text, axes.texts)
    legend = axes.get_legend()
    if legend is not None:
        yield list_fields("legend", framed=legend.get_frame_on())
        yield from (describe_text(each, "legend text") for each in legend.get_texts())


def describe_text(text: Any, kind: str = "text") -> str:
    at = text.get_position() if kind in ("text", "figure text") else None
    fields = {"at": at, "align": (text.get_ha(), text.get_va()), "size": text.get_fontsize()}
    fields |= {"colour": show_colour(text.get_color()), "weight": text.get_weight()}
    fields |= {
        "style": text.get_style(),
        "turned": text.get_rotation(),
        "math": text.get_parse_math(),
    }
    if isinstance(text, Annotation):
        fields |= {"of": text.xy, "in": text.anncoords}
    return list_fields(kind, **fields, text=repr(text.get_text()))


def describe_line(line: Any) -> str:
    return list_fields(
        "line",
        x=line.get_xdata(),
        y=line.get_ydata(),
        colour=show_colour(line.get_color()),
        width=line.get_linewidth(),
        style=line.get_linestyle(),
        marker=line.get_marker(),
        size=line.get_markersize(),
        fill=line.get_fillstyle(),
        inner=show_colour(line.get_markerfacecolor()),
        edge=show_colour(line.get_markeredgecolor()),
        alpha=line.get_alpha(),
        above=line.get_zorder(),
        label=re.sub(r"^_child\d+", "", str(line.get_label())),
    )


def describe_patch(patch: Any) -> str:
    box = patch.get_path().get_extents(patch.get_patch_transform())
    corners = vars(patch.get_boxstyle()) if hasattr(patch, "get_boxstyle") else {}
    return list_fields(
        "patch",
        extent=box.extents,
        face=show_colour(patch.get_facecolor()),
        edge=show_colour(patch.get_edgecolor()),
        width=patch.get_linewidth(),
        above=patch.get_zorder(),
        **corners,
    )


def describe_collection(collection: Any) -> str:
    extents = [path.get_extents().extents for path in collection.get_paths()]
    return list_fields(
        "collection",
        offsets=np.asarray(collection.get_offsets()).tolist(),
        extents=extents,
        faces=[*map(show_colour, collection.get_facecolor())],
        edges=[*map(show_colour, collection.get_edgecolor())],
        widths=collection.get_linewidth(),
        above=collection.get_zorder(),
    )


def list_svg(page: str) -> str:
    """The drawings in a page, an element on each line; marks of verdicts are left out."""
    drawings = re.findall(r"<svg(?! class=\"(?:mark|unseen)\").*?</svg>", page, flags=re.DOTALL)
    elements = re.sub(r">\s*<", ">\n<", "\n".join(drawings))
    return elements + "\n"
