"""The tree, the effects of its splits and its path along the tolerance as places on paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log
from typing import Final

from icscm.formatting import clip
from icscm.report.drawing import Limits
from icscm.report.words import Plain

# Pixels from one level of the tree to the next, and levels before it goes no further right.
_STEP: Final = 14
_MAX_DEPTH: Final = 14
# Where an axis of odds ratios may be marked.
_RATIOS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_N_MARKS: Final = 6
# Dots of environments: radii in pixels, by how well the odds ratio is known there.
_RADII: Final = (2.0, 4.5)


def draw_nodes(tree: Plain, limits: Limits) -> Plain:
    """The rows of the tree with the twigs that lead to them; of very many, the largest splits.

    all            twigs of a row: upright lines that pass it (`through`), and its own, which
    |- age > 63    ends here where the rule is false (`is_last`)
    '- age <= 63
    """
    nodes = tree["nodes"]
    sizes = {node["split"]: node["n"] for node in nodes if node["split"] is not None}
    shown = set(sorted(sizes, key=lambda split: -sizes[split])[: limits.leaves - 1])
    rows, is_open = [], dict[int, bool]()
    for node, parent in zip(nodes, _list_parents(nodes), strict=True):
        if parent is not None and parent not in shown:
            continue
        depth = node["depth"]
        is_last = is_open.get(depth, False)
        is_open[depth] = depth > 0 and not is_last
        is_cut = node["split"] is not None and node["split"] not in shown
        rows.append({**node, **_draw_twigs(depth, is_open, is_last=is_last), "is_cut": is_cut})
    n_cut = sum(node["leaf"] is not None for node in nodes) - sum(
        row["leaf"] is not None for row in rows
    )
    return {"rows": rows, "n_left_out": n_cut}


def _list_parents(nodes: Sequence[Plain]) -> Iterator[int | None]:
    """The number of the split that each node hangs from."""
    above: dict[int, int | None] = {-1: None}
    for node in nodes:
        yield above[node["depth"] - 1]
        above[node["depth"]] = node["split"]


def _draw_twigs(depth: int, is_open: dict[int, bool], *, is_last: bool) -> Plain:
    far = min(depth, _MAX_DEPTH)
    through = [_place_twig(level) for level in range(1, far) if is_open.get(level)]
    return {"width": far * _STEP, "through": through, "twig": _place_twig(far), "is_last": is_last}


def _place_twig(level: int) -> float:
    return (level - 0.5) * _STEP


def draw_effects(splits: Sequence[Plain], limits: Limits) -> Plain:
    """For each split a row of dots on one axis, the logarithm of the odds ratio."""
    shown = splits[: limits.leaves]
    known = [
        each["odds_ratio"]
        for split in shown
        for each in (split, *split["environments"])
        if each["odds_ratio"]
    ]
    marks = choose_marks(min(known, default=0.5), max(known, default=2.0))
    return {
        "rows": [{**split, **_place_effects(split, marks, limits)} for split in shown],
        "ticks": [{"x": _place(each, marks), "text": f"{each:g}"} for each in marks],
        "one": _place(1.0, marks),
        "n_left_out": len(splits) - len(shown),
    }


def choose_marks(low: float, high: float) -> list[float]:
    """Marks of an axis of odds ratios that holds both, 1 among them.

    >>> choose_marks(0.4, 7)
    [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    inner = [each for each in _RATIOS if min(low, 1) < each < max(high, 1)]
    first = _RATIOS.index(inner[0]) - 1 if inner else _RATIOS.index(1.0) - 1
    last = _RATIOS.index(inner[-1]) + 1 if inner else _RATIOS.index(1.0) + 1
    marks = [*_RATIOS[max(first, 0) : last + 1]]
    middle = marks.index(1.0) if 1.0 in marks else 0
    step = ceil(len(marks) / _N_MARKS)
    kept = {0, middle, len(marks) - 1, *range(middle % step, len(marks), step)}
    return [marks[i] for i in sorted(kept)]


def _place(ratio: float, marks: Sequence[float]) -> str:
    at = log(ratio / marks[0]) / log(marks[-1] / marks[0])
    return f"{100 * min(max(at, 0.0), 1.0):.2f}%"


def _place_effects(split: Plain, marks: Sequence[float], limits: Limits) -> Plain:
    known = [each for each in split["environments"] if each["odds_ratio"] is not None]
    known = sorted(known, key=lambda each: -each["n"])[: limits.environments]
    least, most = _RADII
    dots = [
        {
            "x": _place(each["odds_ratio"], marks),
            "r": f"{max(least, min(most, most - 2.5 * (each['error'] - 0.1))):.1f}",
            "environment": each["environment"],
            "odds_ratio": each["odds_ratio"],
        }
        for each in known
    ]
    return {"dots": dots, "x": _place(split["odds_ratio"], marks)}


# The drawing of a path, in its own units.
_MAX_GONE: Final = 26  # characters of the columns that leave
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 300, 56, 200, 18, 40


def draw_tolerance_path(path: Plain) -> Plain:
    """Information against what of it differs, a dot for each tolerance and a line through them."""
    points = path["points"]
    across, up = (
        _choose_scale([each[key] for each in points]) for key in ("differs", "information")
    )
    dots: list[Plain] = []
    for each in points:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * each["differs"] / across[-1]
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * each["information"] / up[-1]
        place = {"x": round(x, 1), "y": round(y, 1)}
        if not dots or {key: dots[-1][key] for key in place} != place:
            dots.append({**place, "names": [], "leave": [], "is_own": False})
        dots[-1]["names"].append(each["name"])
        dots[-1]["leave"] += each["leave"]
        dots[-1]["is_own"] |= each["is_own"]
    for number, dot in enumerate(dots):
        gone = f" without {clip(', '.join(dot['leave']), _MAX_GONE)}" if dot["leave"] else ""
        dot["text"] = name_span(dot["names"]) + gone
        dot["below"] = _find_room(dot, dots[:number])
    rise, run = _HEIGHT - _TOP - _BOTTOM, _WIDTH - _LEFT - _RIGHT
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "floor": _HEIGHT - _BOTTOM,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "dots": dots,
        "line": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
        "across": [
            {"x": round(_LEFT + run * each / across[-1], 1), "text": f"{each:,g}"}
            for each in across
        ],
        "up": [
            {"y": round(_HEIGHT - _BOTTOM - rise * each / up[-1], 1), "text": f"{each:,g}"}
            for each in up
        ],
    }


def _find_room(dot: Plain, others: Sequence[Plain]) -> float:
    """Where the words of a dot stand: below it, where the line seldom is, and below others."""
    y = float(dot["y"]) + 15
    taken = [other["below"] for other in others if abs(other["x"] - dot["x"]) < _MAX_GONE * 7]
    while any(abs(y - each) < 13 for each in taken):
        y += 13
    return round(y, 1)


def name_span(names: Sequence[str]) -> str:
    """Neighbouring tolerances that give the same tree, as one.

    >>> name_span(["0.3"]), name_span(["0.3", "0.1", "0.05"])
    ('0.3', '0.3 to 0.05')
    """
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _choose_scale(values: Sequence[float]) -> list[float]:
    """Round marks from 0 to beyond the largest value.

    >>> _choose_scale([3.0, 41.0])
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    """
    most = max([*values, 1.0])
    power = 10.0 ** floor(log(most, 10))
    step = next(each * power for each in (0.2, 0.5, 1.0, 2.0) if most <= 5 * each * power)
    n_steps = max(1, ceil(round(most / step, 6)))
    return [round(i * step, 12) for i in range(n_steps + 1)]
