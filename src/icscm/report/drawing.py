"""Positions of what the page draws as SVG: plots, the twigs of a tree, effects, a path."""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor, log, log10
from typing import Any, Final, NamedTuple

from icscm.formatting import clip, natural_key
from icscm.report.formatting import Plain, format_share, format_span


class Limits(NamedTuple):
    """Limits of the layout; the summary itself holds everything.

    `characters` is the longest name shown whole. The others count what is listed.
    """

    environments: int = 200
    leaves: int = 60
    equivalent: int = 12
    sets: int = 64
    characters: int = 160

    def halve(self) -> "Limits":
        return Limits(*(max(n // 2, least) for n, least in zip(self, _LEAST, strict=True)))


_LEAST = Limits(environments=4, leaves=4, equivalent=2, sets=4, characters=40)


def make_plot(
    rows: Sequence[Plain],
    pooled: Plain,
    key: str,
    limits: "Limits",
    band: float | None = None,
    order: str = "given",
    form: Callable[[float | None], str] = format_share,
) -> Plain:
    """Dots and intervals on one axis, positions in percent of its width, with their labels.

    `key` names the share, `<key>_interval` its interval, `form` how they are written. The band is
    as wide as the margin, around the pooled share; `beside` in a row is a share to compare with. Of
    very many rows, those with the most samples are shown.
    """
    write = partial(_format_percent, n_digits=4) if form is format_share else "{:g}".format
    shown = choose_largest(rows, limits.environments, order)
    ticks, share = find_ticks([*shown, pooled], key), pooled[key]
    total = _place_row(pooled, key, ticks, "all together", form)
    return {
        "rows": [_place_row(each, key, ticks, each["environment"], form) for each in shown],
        "pooled": total,
        "line": total["x"],
        "ticks": [{"x": _place(each, ticks), "text": write(each)} for each in ticks],
        "band": None if band is None or share is None else _place_band(share, band, ticks),
        "n_rows": len(rows),
        "n_left_out": len(rows) - len(shown),
    }


# Widths between marks; a plot has three to six of them.
_TICK_STEPS = (0.02, 0.05, 0.1, 0.25)
# On a narrower axis trivial differences would look large.
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
    """Marks of the axis, from end to end."""
    ends = [end for row in rows for end in row[f"{key}_interval"] or ()]
    ends += [row["beside"] for row in rows if row.get("beside") is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = next((s for s in _TICK_STEPS if max(high - low, _LEAST_WIDTH) <= 5 * s), 0.25)
    first = floor(round(low / step, 6))
    last = max(ceil(round(high / step, 6)), first + ceil(_LEAST_WIDTH / step))
    if last * step > 1.0:  # extend downwards where there is no room above
        first, last = min(first, round(1 / step) - ceil(_LEAST_WIDTH / step)), round(1 / step)
    return [round(i * step, 6) for i in range(first, last + 1)]


def _format_percent(share: float, n_digits: int) -> str:
    return f"{100 * share:.{n_digits}f}".rstrip("0").rstrip(".") + "%"


def _place(share: float, ticks: Sequence[float]) -> str:
    """The position of a share on the axis, in percent."""
    at = (share - ticks[0]) / (ticks[-1] - ticks[0])
    return _format_percent(min(max(at, 0.0), 1.0), 2)


def _place_row(
    row: Plain, key: str, ticks: Sequence[float], name: str, form: Callable[[float | None], str]
) -> Plain:
    share, interval = row[key], row[f"{key}_interval"]
    ends = interval or (share, share)  # two groups have no interval
    x = [None] * 3 if share is None else [_place(each, ticks) for each in (share, *ends)]
    fields = {"name": name, "n": row["n"], "share": share, "interval": interval}
    fields |= {"text": form(share), "range": " to ".join(map(form, interval or ()))}
    mark = None if (beside := row.get("beside")) is None else _place(beside, ticks)
    return {**fields, **dict(zip(("x", "x1", "x2"), x, strict=True)), "mark": mark}


def _place_band(share: float, width: float, ticks: Sequence[float]) -> Plain:
    start, end = (_place(each, ticks) for each in (share - width / 2, share + width / 2))
    return {"x": start, "width": f"{float(end[:-1]) - float(start[:-1]):.2f}%"}


# Pixels from one level of the tree to the next, and levels before it goes no further right.
_STEP: Final = 14
_MAX_DEPTH: Final = 14


def draw_nodes(nodes: Sequence[Plain], limits: "Limits") -> Plain:
    """The rows of a tree with the twigs that lead to them; of very many, the largest splits.

    all            twigs of a row: upright lines that pass it (`through`), and its own, which
    |- age > 63    ends here for the second child (`is_last`)
    '- age <= 63
    """
    sizes = {node["split"]: node["n"] for node in nodes if node["split"] is not None}
    shown = {None, *sorted(sizes, key=lambda split: -sizes[split])[: limits.leaves - 1]}
    rows: list[Plain] = []
    is_open: dict[int, bool] = {}
    above: dict[int, int | None] = {-1: None}
    for node in nodes:
        depth = node["depth"]
        above[depth] = node["split"]
        if above[depth - 1] not in shown:
            continue
        is_last = is_open.get(depth, False)
        is_open[depth] = depth > 0 and not is_last
        far = min(depth, _MAX_DEPTH)
        twigs = [(level - 0.5) * _STEP for level in range(1, far) if is_open.get(level)]
        place = {"width": far * _STEP, "through": twigs, "twig": (far - 0.5) * _STEP}
        is_cut = node["split"] not in shown
        rows.append({**node, **place, "is_last": is_last, "is_cut": is_cut})
    n_leaves, n_shown = (sum(each["leaf"] is not None for each in part) for part in (nodes, rows))
    return {"rows": rows, "n_left_out": n_leaves - n_shown}


# Marks of an axis of odds ratios.
_RATIOS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_N_MARKS: Final = 6


def draw_effects(splits: Sequence[Plain], limits: "Limits") -> Plain:
    """For each split a row of dots on one axis, the logarithm of the odds ratio."""
    shown = splits[: limits.leaves]
    rows = [(split, *split["environments"]) for split in shown]
    ratios = [each["odds_ratio"] for row in rows for each in row if each["odds_ratio"]]
    ends, axis = _make_ratio_axis(ratios)
    drawn = []
    for split, *environments in rows:
        largest = sorted(environments, key=lambda each: -each["n"])
        dots = [
            {
                "x": _place(log(each["odds_ratio"]), ends),
                "r": f"{max(2.0, min(4.5, 4.75 - 2.5 * each['error'])):.1f}",  # by precision
                "environment": each["environment"],
                "odds_ratio": each["odds_ratio"],
            }
            for each in largest
            if each["odds_ratio"] is not None
        ]
        place = {"dots": dots[: limits.environments], "x": _place(log(split["odds_ratio"]), ends)}
        drawn.append({**split, **place})
    return {"rows": drawn, **axis, "n_left_out": len(splits) - len(shown)}


def _make_ratio_axis(ratios: Sequence[float]) -> tuple[list[float], Plain]:
    """The marks of an axis of odds ratios as logarithms, and where they and 1 are."""
    marks = choose_marks(min(ratios, default=0.5), max(ratios, default=2.0))
    ends = [log(each) for each in marks]
    ticks = [{"x": _place(log(each), ends), "text": f"{each:g}"} for each in marks]
    return ends, {"ticks": ticks, "one": _place(0.0, ends)}


def draw_forest(columns: Sequence[Plain], limits: "Limits") -> Plain:
    """Forest plots on one axis: the effect by environment, pooled, and in a new environment.

    Of very many environments those with the most precise effects are drawn.
    """
    known = [each for column in columns for each in column["environments"] if each["interval"]]
    ends, axis = _make_ratio_axis([each["odds_ratio"] for each in known])
    drawn = []
    for column in columns:
        places = [each for each in column["environments"] if each["interval"]]
        precise = sorted(places, key=lambda each: each["standard_error"])[: limits.environments]
        pooled = column["pooled"]
        new = {**pooled, "interval": pooled["prediction_interval"], "odds_ratio": None}
        rows = [(e["environment"], e, "one") for e in places if e in precise]
        rows += [("pooled", pooled, "all"), ("new environment", new, "new")]
        placed = []
        for name, each, kind in rows:
            at = each["odds_ratio"], *(each["interval"] or (None, None))
            x = [None if ratio is None else _place(log(ratio), ends) for ratio in at]
            row = {"name": name, "kind": kind, "x": x[0], "x1": x[1], "x2": x[2]}
            placed.append({**row, "odds_ratio": each["odds_ratio"], "interval": each["interval"]})
        n_left_out = len(places) - len(precise)
        drawn.append({**column, "rows": placed, "n_left_out": n_left_out})
    return {"columns": drawn, **axis}


def choose_marks(low: float, high: float) -> list[float]:
    """At most eight marks of an axis of odds ratios that holds both, 1 among them.

    >>> choose_marks(0.4, 7)
    [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    one, last = _RATIOS.index(1.0), len(_RATIOS) - 1
    first = max([i for i in range(one) if _RATIOS[i] <= low] or [0])
    last = min([i for i in range(one + 1, last) if _RATIOS[i] >= high] or [last])
    step = ceil((last - first + 1) / _N_MARKS)
    kept = {first, last, *range(one, first, -step), *range(one, last, step)}
    return [_RATIOS[i] for i in sorted(kept)]


# Drawings in their own units: a box, and the room for its marks; a wide one has room for texts.
_BOX: Final = {"width": 420, "height": 300, "left": 52, "right": 406, "top": 24, "floor": 258}
_WIDE: Final = {"width": 720, "height": 300, "left": 56, "right": 520, "top": 24, "floor": 258}
# Characters of the columns that leave.
_MAX_GONE: Final = 26


def draw_curves(panel: Plain, box: dict[str, int] = _BOX) -> Plain:
    """Lines in a box, in the units of an SVG; parts of them below the box are not drawn."""
    (x0, x1), (y0, y1) = panel["across"], panel["up"]

    def place(x: float, y: float) -> tuple[float, float]:
        right = (box["right"] - box["left"]) * (x - x0) / (x1 - x0)
        up = (box["floor"] - box["top"]) * (y - y0) / (y1 - y0)
        return round(box["left"] + right, 1), round(box["floor"] - up, 1)

    drawn = []
    for kind, points in panel["lines"]:
        seen = [place(x, y) for x, y in points if y >= y0]
        line = " ".join(f"{x},{y}" for x, y in seen)
        drawn.append({"kind": kind, "places": seen, "line": line})
    return {
        **panel,
        **box,
        "drawn": drawn,
        "x_ticks": [{"x": place(x, y0)[0], "text": f"{x:,g}"} for x in choose_ticks(x0, x1)],
        "y_ticks": [{"y": place(x0, y)[1], "text": f"{y:,g}"} for y in choose_ticks(y0, y1)],
        "dots": [],
    }


def draw_decisions(found: Plain, limits: "Limits") -> Plain:
    """Panels of calibration, net benefit, and its gain by environment; none without probabilities.

    Lines are of all samples ("all"), of an environment ("one"), of treating all ("other"), or a
    "guide".
    """
    overall, cuts = found.get("overall"), found.get("thresholds")
    if not overall or not cuts:
        return {"panels": [], "decision_text": ""}
    from icscm.report.texts import write_text  # learners need no templates

    def join(values: Sequence[float]) -> list[tuple[float, float]]:
        return [*zip(cuts, values, strict=True)]

    def gain(place: Plain) -> list[tuple[float, float]]:
        both = zip(place["net_benefit"], place["treat_all"], strict=True)
        return join([own - max(of_all, 0.0) for own, of_all in both])

    places = [("one", each) for each in found["environments"][: limits.environments]]
    places.append(("all", overall))
    curves = [(kind, each["calibration_curve"]) for kind, each in places]
    highest = max((end for _, line in curves for point in line for end in point), default=1.0)
    guide, zero = ("guide", [(0, 0), (highest, highest)]), ("guide", join([0.0] * len(cuts)))
    benefits = [zero, ("other", join(overall["treat_all"])), ("all", join(overall["net_benefit"]))]
    top = max(value for _, line in benefits for _, value in line) or 0.01
    of_places = [zero, *((kind, gain(each)) for kind, each in places)]
    up, titles = (-top / 4, 1.05 * top), ("threshold", "net benefit")
    panels = [_make_panel("benefit", benefits, titles, up)]
    if overall["calibration_curve"]:
        titles = "predicted probability", "observed rate"
        panels.insert(0, _make_panel("calibration", [guide, *curves], titles))
    if len(places) > 2:
        panels.append(_make_panel("gain", of_places, ("threshold", "gain in net benefit")))
    text = write_text("decisions", found=found)
    return {"panels": [draw_curves(each) for each in panels], "decision_text": text}


def _make_panel(name: str, lines: Sequence[Any], titles: Sequence[str], up: Any = None) -> Plain:
    """Lines in a box that holds them all, or is as high as stated."""
    x, y = zip(*(point for _, line in lines for point in line), strict=True)
    room = 0.03 * (max(y) - min(y)) or 0.01
    ends = {"across": (min(x), max(x)), "up": up or (min(y) - room, max(y) + room)}
    return {"name": name, "x_title": titles[0], "y_title": titles[1], "lines": lines, **ends}


def make_risk_panel(model: Plain, leaves: Sequence[Plain]) -> Plain:
    """The risk of each total of a score, and prediction intervals of its classes of totals."""
    last = len(model["risks"]) - 1
    starts, ends = [0, *model["bounds"]], [*(n - 1 for n in model["bounds"]), last]
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    for leaf, start, end in zip(leaves, starts, ends, strict=True):
        if leaf["new_interval"]:
            (low, high), a, b = leaf["new_interval"], start - 0.4, end + 0.4
            lines.append(("one", [(a, low), (b, low), (b, high), (a, high), (a, low)]))
    lines.append(("all", [(float(n), risk) for n, risk in enumerate(model["risks"])]))
    top = max(y for _, line in lines for _, y in line)
    titles = {"name": "risk", "x_title": "total of points", "y_title": "risk"}
    return {**titles, "lines": lines, "across": (-0.5, last + 0.5), "up": (0.0, 1.03 * top)}


def draw_tolerance_path(points: Sequence[Plain]) -> Plain:
    """Deviance explained against heterogeneity: a dot for each tolerance, joined by a line."""
    dots = join_points(points)
    places = [dot["place"] for dot in dots]
    across, up = ((0.0, 1.05 * max(1.0, *ends)) for ends in zip(*places, strict=True))
    titles = {"x_title": PATH_TITLES[0], "y_title": PATH_TITLES[1]}
    panel = {"across": across, "up": up, "lines": [("along", places)], **titles}
    drawing = draw_curves(panel, _WIDE)
    for i, (dot, (x, y)) in enumerate(zip(dots, drawing["drawn"][0]["places"], strict=True)):
        near = [other for other in dots[:i] if abs(other["x"] - x) < _MAX_GONE * 7]
        dot |= {"x": x, "y": y, "below": y + 15}
        while any(abs(dot["below"] - other["below"]) < 12.9 for other in near):
            dot["below"] += 13
    return {**drawing, "dots": dots}


PATH_TITLES: Final = "heterogeneity between environments, beyond chance", "deviance explained"


def join_points(points: Sequence[Plain]) -> list[Plain]:
    """The points of a path; neighbours of equal heterogeneity and deviance are one."""
    joined: list[Plain] = []
    for each in points:
        place = round(each["varies"], 6), round(each["deviance_explained"], 6)
        if not joined or joined[-1]["place"] != place:
            joined.append({"place": place, "names": [], "leave": [], "is_own": False})
        joined[-1]["names"].append(each["name"])
        joined[-1]["leave"] += each["leave"]
        joined[-1]["is_own"] |= each["is_own"]
    for dot in joined:
        gone = f" without {clip(', '.join(dot['leave']), _MAX_GONE)}" if dot["leave"] else ""
        dot["text"] = format_span(dot["names"]) + gone
    return joined


def choose_ticks(low: float, high: float) -> list[float]:
    """Round marks of an axis, at most six of them.

    >>> choose_ticks(-0.02, 0.09), choose_ticks(0, 1)
    ([-0.02, 0.0, 0.02, 0.04, 0.06, 0.08], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    power = 10.0 ** floor(log10(high - low))
    step = next(each * power for each in (0.2, 0.5, 1.0, 2.0) if high - low <= 5.6 * each * power)
    first, last = ceil(round(low / step, 6)), floor(round(high / step, 6))
    return [round(i * step, 12) for i in range(first, last + 1)]
