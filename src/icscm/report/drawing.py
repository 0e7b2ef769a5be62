"""Plots and the tree as places on paper: what the page draws as SVG."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from icscm.formatting import natural_key
from icscm.report.words import Plain, format_share


class Limits(NamedTuple):
    """How much of a summary is laid out; the summary itself holds everything.

    `characters` is the longest name shown whole. The others count what is listed.
    """

    environments: int = 200
    leaves: int = 60
    equivalent: int = 12
    sets: int = 64
    characters: int = 160

    def halve(self) -> Limits:
        return Limits(*(max(n // 2, least) for n, least in zip(self, _LEAST, strict=True)))


_LEAST = Limits(environments=4, leaves=4, equivalent=2, sets=4, characters=40)


def make_plot(
    rows: Sequence[Plain],
    pooled: Plain,
    key: str,
    limits: Limits,
    band: float | None = None,
    order: str = "given",
) -> Plain:
    """Dots and intervals on one axis: places in percent of its width, and the words beside them.

    `key` names the share, `<key>_interval` its interval. The band is as wide as the margin,
    around the share of all together; `beside` in a row is a share to compare with. Of very many
    rows those with the most samples are shown.
    """
    shown = choose_largest(rows, limits.environments, order)
    ticks, share = find_ticks([*shown, pooled], key), pooled[key]
    total = _place_row(pooled, key, ticks, "all together")
    return {
        "rows": [_place_row(each, key, ticks, each["environment"]) for each in shown],
        "pooled": total,
        "line": total["x"],
        "ticks": [{"x": _place(each, ticks), "text": _format_percent(each, 4)} for each in ticks],
        "band": None if band is None or share is None else _place_band(share, band, ticks),
        "n_rows": len(rows),
        "n_left_out": len(rows) - len(shown),
    }


# Widths between marks; a plot has three to six of them.
_TICK_STEPS = (0.02, 0.05, 0.1, 0.25)
# A plot that reached less far would make trifles look large.
_LEAST_WIDTH = 0.1


def choose_largest(rows: Sequence[Plain], limit: int, order: str = "given") -> list[Plain]:
    """The rows with the most samples; by name, from the largest, or from the lowest rate."""
    places = sorted(range(len(rows)), key=lambda i: -rows[i]["n"])[:limit]
    largest = [rows[i] for i in (sorted(places) if order == "given" else places)]
    if order in ("given", "size"):
        return largest
    by_name = sorted(largest, key=lambda row: natural_key(row["environment"]))
    return by_name if order == "name" else sorted(by_name, key=lambda row: row["rate"] or 0.0)


def find_ticks(rows: Sequence[Plain], key: str) -> list[float]:
    """Where the axis is marked, from end to end."""
    ends = [end for row in rows for end in row[f"{key}_interval"] or ()]
    ends += [row["beside"] for row in rows if row.get("beside") is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = next((s for s in _TICK_STEPS if max(high - low, _LEAST_WIDTH) <= 5 * s), 0.25)
    first = math.floor(round(low / step, 6))
    last = max(math.ceil(round(high / step, 6)), first + math.ceil(_LEAST_WIDTH / step))
    if last * step > 1.0:  # grow downwards where there is no room above
        first, last = min(first, round(1 / step) - math.ceil(_LEAST_WIDTH / step)), round(1 / step)
    return [round(i * step, 6) for i in range(first, last + 1)]


def _format_percent(share: float, n_digits: int) -> str:
    return f"{100 * share:.{n_digits}f}".rstrip("0").rstrip(".") + "%"


def _place(share: float, ticks: Sequence[float]) -> str:
    """A share's place on the axis as SVG wants it."""
    at = (share - ticks[0]) / (ticks[-1] - ticks[0])
    return _format_percent(min(max(at, 0.0), 1.0), 2)


def _place_row(row: Plain, key: str, ticks: Sequence[float], name: str) -> Plain:
    share, interval = row[key], row[f"{key}_interval"]
    x = [None] * 3 if share is None else [_place(each, ticks) for each in (share, *interval)]
    told = {"name": name, "n": row["n"], "share": share, "interval": interval}
    beside = row.get("beside")
    mark = None if beside is None else _place(beside, ticks)
    return {**told, "x": x[0], "x1": x[1], "x2": x[2], "beside": beside, "mark": mark}


def _place_band(share: float, width: float, ticks: Sequence[float]) -> Plain:
    start, end = (_place(each, ticks) for each in (share - width / 2, share + width / 2))
    return {"x": start, "width": f"{float(end[:-1]) - float(start[:-1]):.2f}%"}


# Sizes in the drawing's own units, which are pixels on a phone.
TREE_WIDTH, _NODE_WIDTH, _LEAF_X = 360, 190, 224
_FONT, _LINE, _PADDING, _GAP = 13, 17, 10, 30
# How much wider bold text runs.
_BOLD = 1.12


def draw_tree(tree: Plain, limits: Limits) -> Plain:
    """Where the boxes of the single branch and their lines of text stand, from top to bottom.

    rule 1 -- no --> leaf 1
      | yes
    rule 2 -- no --> leaf 2
      | yes
    leaf 3
    """
    nodes, leaves = tree["nodes"], tree["leaves"]
    shown = nodes[: limits.leaves - 1]
    y, rows = 1.0, []
    for node in shown:
        rows.append(_draw_row(node, leaves[node["leaf"] - 1], y))
        y += rows[-1]["height"] + _GAP
    last = _draw_leaf(leaves[-1], 1.0, y, _NODE_WIDTH)
    return {
        **tree,
        "width": TREE_WIDTH,
        "node_width": _NODE_WIDTH,
        "leaf_x": _LEAF_X,
        "height": y + last["height"] + 1,
        "rows": rows,
        "last": last,
        "n_left_out": len(nodes) - len(shown),
        "description": describe_tree(tree, len(shown)),
    }


def _draw_row(node: Plain, leaf: Plain, y: float) -> Plain:
    """A rule, and beside the middle of its box the leaf."""
    lines = wrap(f"{node['rule']}?", _NODE_WIDTH - 2 * _PADDING)
    box = _draw_leaf(leaf, _LEAF_X, y, TREE_WIDTH - _LEAF_X - 1)
    height = max(len(lines) * _LINE + 2 * _PADDING, box["height"])
    beside = _draw_leaf(leaf, _LEAF_X, y + (height - box["height"]) / 2, box["width"])
    place = {"y": y, "height": height, "middle": y + height / 2}
    return {**place, "lines": _place_lines(lines, y, height), "leaf": beside}


def _draw_leaf(leaf: Plain, x: float, y: float, width: float) -> Plain:
    title = wrap(name_verdict(leaf), (width - 2 * _PADDING - 4) / _BOLD, most=3)
    lines = [*title, f"n = {leaf['n']:,}", f"rate {format_share(leaf['rate'])}"]
    height = len(lines) * _LINE + 2 * _PADDING
    placed = _place_lines(lines, y, height)
    return {"x": x, "y": y, "width": width, "height": height, "lines": placed, **leaf}


def name_verdict(leaf: Plain) -> str:
    """What a leaf predicts, with its sign."""
    sign = "+" if leaf["is_positive"] else "\N{MINUS SIGN}"
    return f"{sign} {leaf['predicts']}"


def _place_lines(lines: Sequence[str], y: float, height: float) -> list[Plain]:
    """Lines of text in the middle of a box."""
    top = y + (height - len(lines) * _LINE) / 2 + 0.76 * _LINE
    return [{"text": line, "y": round(top + i * _LINE, 1)} for i, line in enumerate(lines)]


def describe_tree(tree: Plain, most: int | None = None) -> str:
    """The drawing in words, for those who do not see it."""
    *leaves, last = (
        f"leaf {leaf['number']} predicts {leaf['predicts']} for {leaf['n']:,} samples, "
        f"rate {format_share(leaf['rate'])}{', ' * bool(leaf['conclusion'])}"
        f"{leaf['conclusion'] or ''}"
        for leaf in tree["leaves"]
    )
    parts = [
        f"{node['rule']}? If {tree['exit']}, {leaf}. If {tree['onward']}, go on."
        for node, leaf in zip(tree["nodes"][:most], leaves, strict=False)
    ]
    return " ".join([*parts, f"At the end, {last}."])


def wrap(text: str, width: float, most: int = 5) -> list[str]:
    """Lines that fit a box, broken at spaces where there are any; the rest is an ellipsis.

    SVG does not wrap, and what the reader's font measures is not known here: widths are guessed,
    on the large side.

    >>> wrap("age > 63?", 60), wrap("a_name_without_any_space > 1?", 60, most=3)
    (['age >', '63?'], ['a_name_', 'without_', 'any_sp…'])
    """
    lines = [""]
    for word in re.findall(r"\s*\S+", text) or [text]:
        if lines[-1] and _measure(lines[-1] + word) > width:
            lines.append("")
            word = word.lstrip()
        for character in word:
            if _measure(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
        if len(lines) > most:
            return [*lines[: most - 1], lines[most - 1][:-1] + "…"]
    return lines


def _measure(text: str) -> float:
    return _FONT * sum(map(_guess_width, text))


def _guess_width(character: str) -> float:
    """In parts of the font's size."""
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in "mwMW@%":
        return 0.95
    return 0.36 if character in "iljtfI.,:;'|! ()[]" else 0.72 if character.isupper() else 0.6
