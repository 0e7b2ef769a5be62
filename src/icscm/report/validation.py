"""An evaluation on new rows, from its dict: on the terminal, as a page and as a figure.

The dict is what `icscm.studies.evaluation.Evaluation.to_dict` gives.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.text import Text

from icscm._version import __version__
from icscm.formatting import as_text, clip, count, shorten_list
from icscm.parameters import check_matplotlib
from icscm.report.canvas import make_figure
from icscm.report.drawing import Limits, make_plot
from icscm.report.elsewhere import say_expected
from icscm.report.render import MAX_HTML_BYTES, render_page
from icscm.report.terminal import make_fact_table, make_heading, make_list, make_note, make_table
from icscm.report.words import Plain, describe_rates, format_p, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Measures that are no shares.
_NUMBERS = ("auc", "brier", "log_loss")
# Environments listed before only the worst and the best are.
N_LISTED = 10


def format_score(name: str, value: float | None) -> str:
    """A measure's value: a share in percent, others as numbers.

    >>> format_score("error", 0.125), format_score("auc", 0.75), format_score("npv", None)
    ('12.5%', '0.750', '-')
    """
    if value is None:
        return "-"
    return f"{value:.3f}" if name in _NUMBERS else format_share(value)


def _get(scores: Plain, name: str, end: str = "value") -> float | None:
    return None if scores[name] is None else scores[name][end]


def format_range(name: str, score: Plain | None) -> str:
    """The ends of a measure's interval."""
    if score is None:
        return ""
    return f"{format_score(name, score['low'])} to {format_score(name, score['high'])}"


def order_environments(found: Plain) -> list[Plain]:
    """The worst first; of equals in their order."""
    return sorted(found["environments"], key=lambda each: -each["scores"]["error"]["value"])


def say_constant(found: Plain) -> str:
    """What the constant is, and why this one."""
    where = "in training" if found["baseline_from"] == "training" else "in these data"
    told = f"always {as_text(found['baseline'])}, the more frequent class {where}"
    return told if where == "in training" else f"{told} (those of training are not known)"


def say_moved(found: Plain) -> str:
    """Whether the leaves' rates are still those of training."""
    tested = [leaf for leaf in found["leaves"] if leaf["has_moved"] is not None]
    moved = [str(leaf["leaf"]) for leaf in tested if leaf["has_moved"]]
    if not tested:
        return "No leaf has samples to compare."
    if not moved:
        return f"In none of {count(len(tested), 'leaf')} did the rate move beyond chance."
    which = f"leaf {moved[0]}" if len(moved) == 1 else f"leaves {shorten_list(moved)}"
    return f"In {len(moved)} of {count(len(tested), 'leaf')} the rate moved beyond chance: {which}."


def say_promises(found: Plain) -> str:
    """Whether rates in new environments were where training let expect them."""
    promises = [each for leaf in found["leaves"] for each in leaf["interval_checks"]]
    if not promises:
        return ""
    n_inside = sum(each["is_inside"] for each in promises)
    n_places = len({str(each["environment"]) for each in promises})
    where = f"{count(n_places, 'environment')} never seen in training"
    where = where if found["environments"] else "these samples, taken for a new environment,"
    were = "was" if n_inside == 1 else "were"
    return (
        f"Of {count(len(promises), 'rate')} of leaves in {where} {n_inside:,} {were} where "
        "95 % were to be expected."
    )


def list_promise(leaf: Plain) -> tuple[str, str]:
    """What was to be expected of a leaf in a new environment, and where that did not hold."""
    if leaf["new_interval"] is None:
        return "cannot tell", ""
    promises, text = leaf["interval_checks"], say_expected(leaf["new_interval"])
    outside = [
        f"{'' if each['environment'] is None else as_text(each['environment']) + ' '}"
        f"({format_share(each['n_positive'] / each['n_samples'])})"
        for each in promises
        if not each["is_inside"]
    ]
    if not promises or not outside:
        return text, "held" if promises else ""
    return text, f"not in {shorten_list(outside)}" if len(promises) > 1 else f"no {outside[0]}"


PROMISED = (
    "A rate counts as where it was to be expected if it is no more extreme than 95 % of those that "
    "new environments would show, the sampling error of the new samples accounted for (mid-p above "
    "0.05)."
)

EXPLAINED = (
    "expected: share of positive samples in training. p: Fisher's exact test (Pearson's where "
    "counts are large) that both rates are one, corrected for the number of leaves (Holm); moved "
    "where it is at most 0.05."
)


def render_validation(found: Plain, most: int | None = N_LISTED) -> Iterator[RenderableType]:
    """What was found, up to so many environments, or all."""
    overall = found["overall"]
    yield Text(found["headline"], style="bold")
    yield ""
    rate = format_share(overall["n_positive"] / overall["n_samples"])
    yield make_fact_table(
        [
            ("Model", found["model"]),
            ("Samples", f"{overall['n_samples']:,}, of which {rate} are {found['positive']}"),
            ("Constant", say_constant(found)),
        ]
    )
    yield make_heading("Scores")
    yield make_table(
        ("", ">model", ">95 % interval", ">constant"),
        [
            (
                title,
                format_score(name, _get(overall["scores"], name)),
                format_range(name, overall["scores"][name]),
                format_score(name, _get(overall["baseline"], name)),
            )
            for name, title in found["measures"].items()
        ],
    )
    if found["environments"]:
        yield from _render_environments(found, most)
    if found["leaves"]:
        yield from _render_leaves(found)
    if found["notes"]:
        yield make_heading("Notes")
        yield make_list(map(as_text, found["notes"]))


def _render_environments(found: Plain, most: int | None) -> Iterator[RenderableType]:
    ranked = order_environments(found)
    rows = [_list_cells(each) for each in ranked]
    title = f"By {as_text(found['environment'] or 'environment')}, the worst first"
    if most is not None and len(rows) > most:
        half = most // 2
        rows = [*rows[: most - half], ("...",) + ("",) * 7, *rows[len(rows) - half :]]
        title += " (the rest with --all, or to_frame())"
    yield make_heading(title)
    columns = ">rows", ">error", ">95 % interval", ">constant", ">sens.", ">PPV", ">AUC"
    yield make_table(("environment", *columns), rows)
    if any(each["is_new"] for each in ranked):
        yield make_note("* never seen in training")


def _list_cells(place: Plain) -> tuple[str, ...]:
    scores, constant = place["scores"], place["baseline"]
    name = clip(as_text(place["environment"]), 24)
    return (
        f"{name}{' *' if place['is_new'] else ''}",
        f"{place['n_samples']:,}",
        format_share(_get(scores, "error")),
        f"{scores['error']['low']:.1%} - {scores['error']['high']:.1%}",
        format_share(_get(constant, "error")),
        *(format_score(each, _get(scores, each)) for each in ("sensitivity", "ppv")),
        "-" if scores["auc"] is None else f"{scores['auc']['value']:.2f}",
    )


def _render_leaves(found: Plain) -> Iterator[RenderableType]:
    yield make_heading("Calibration by leaf")
    yield say_moved(found)
    yield ""
    rows = [
        (
            f"{leaf['leaf']}: {as_text(leaf['text'])}",
            "-" if leaf["expected"] is None else format_share(leaf["expected"]),
            f"{leaf['n_training']:,}",
            "-" if leaf["observed"] is None else format_share(leaf["observed"]),
            f"{leaf['n_samples']:,}",
            format_p(leaf["adjusted"]),
            {True: "moved", False: "", None: "no rows"}[leaf["has_moved"]],
        )
        for leaf in found["leaves"]
    ]
    yield make_table(("leaf", ">expected", ">of", ">observed", ">of", ">p", ""), rows)
    yield make_note(f"\n{EXPLAINED}")
    if any(leaf["interval_checks"] for leaf in found["leaves"]):
        yield make_heading("Was it to be expected?")
        yield say_promises(found)
        yield ""
        pairs = [(f"{leaf['leaf']}: {as_text(leaf['text'])}", leaf) for leaf in found["leaves"]]
        cells = [(name, *list_promise(leaf)) for name, leaf in pairs]
        yield make_table(("leaf", ">95 % of new environments", ""), cells)
        yield make_note(f"\n{PROMISED}")


def render_text(found: Plain) -> str:
    """What the terminal shows, as text of 80 columns."""
    console = Console(file=io.StringIO(), width=80, highlight=False, markup=False, emoji=False)
    for part in render_validation(found):
        console.print(part)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines)


def render_page_of(found: Plain) -> str:
    """One page without anything beside it; less is listed where it would grow too large."""
    limits = Limits()
    while len((page := _render(found, limits)).encode()) > MAX_HTML_BYTES:
        if limits == limits.halve():
            break
        limits = limits.halve()
    return page


def _render(found: Plain, limits: Limits) -> str:
    overall = _make_error_row(found["overall"])
    errors = [_make_error_row(each) for each in order_environments(found)]
    shown = found["leaves"][: limits.leaves]
    content = {
        **found,
        "limits": limits,
        "version": __version__,
        "error_plot": make_plot(errors, overall, "error", limits),
        "leaf_plot": {
            **make_plot([_make_leaf_row(leaf) for leaf in shown], _pool(found), "rate", limits),
            "line": None,  # leaves are meant to differ
        },
        "shown_leaves": shown,
        "shown_environments": order_environments(found)[: limits.environments],
        "constant_text": say_constant(found),
        "moved_text": say_moved(found),
        "promised_text": say_promises(found),
        "promise": list_promise,
        "explained": EXPLAINED,
        "promised": PROMISED,
        "score": lambda scores, name: format_score(name, _get(scores, name)),
        "range": lambda scores, name: format_range(name, scores[name]),
    }
    return render_page("evaluation.html", content, limits)


def _make_error_row(place: Plain) -> Plain:
    error = place["scores"]["error"]
    return {
        "environment": f"{as_text(place['environment'])}{' (new)' if place['is_new'] else ''}",
        "n": place["n_samples"],
        "error": error["value"],
        "error_interval": [error["low"], error["high"]],
        "beside": _get(place["baseline"], "error"),
    }


def _make_leaf_row(leaf: Plain) -> Plain:
    return {
        "environment": f"{leaf['leaf']}: {as_text(leaf['text'])}",
        "n": leaf["n_samples"],
        "rate": leaf["observed"],
        "rate_interval": leaf["interval"],
        "beside": leaf["expected"],
    }


def _pool(found: Plain) -> Plain:
    """All leaves together; what training says of all of them depends on how many are in each."""
    place, leaves = found["overall"], found["leaves"]
    expected = sum((leaf["expected"] or 0.0) * leaf["n_samples"] for leaf in leaves)
    (rate,) = describe_rates([place["n_positive"]], [place["n_samples"]])
    return {**rate, "beside": expected / rate["n"] if leaves else None}


_INK, _SOFT, _ACCENT = "#1d1c1a", "#5b5852", "#0b6170"
# Rows of a panel that are named; of more, the worst and the best.
_N_DRAWN = 40


def draw_validation(found: Plain) -> Figure:
    """Errors by environment, and rates by leaf where there are leaves."""
    check_matplotlib()
    errors = [_make_error_row(each) for each in order_environments(found)]
    errors = (
        errors if len(errors) <= _N_DRAWN else errors[: _N_DRAWN // 2] + errors[-_N_DRAWN // 2 :]
    )
    everything = {**_make_error_row(found["overall"]), "environment": "all together"}
    panels: list[tuple[list[Plain], str, str, str]] = [
        ([everything, *errors], "error", "share of wrong predictions", "constant")
    ]
    if found["leaves"]:
        leaves = [_make_leaf_row(leaf) for leaf in found["leaves"]]
        panels.append((leaves, "rate", f"rate of {clip(found['positive'], 30)}", "expected"))
    heights = [len(rows) + 2.2 for rows, *_ in panels]
    size = 7.0, 0.3 * sum(heights) + 0.6
    figure = make_figure(size, is_registered=True, layout="constrained")
    drawn = figure.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, panel in zip(drawn, panels, strict=True):
        _draw_panel(axes, *panel)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Plain], key: str, what: str, beside: str) -> None:
    """Dots with their intervals, and open circles to compare with."""
    for y, row in enumerate(rows):
        if row[key] is not None:
            axes.plot(row[f"{key}_interval"], [y, y], color=_SOFT, linewidth=1.5, zorder=1)
            axes.plot([row[key]], [y], "o", color=_ACCENT, markersize=5, zorder=3)
        if row["beside"] is not None:
            style: dict[str, Any] = {"color": _INK, "fillstyle": "none", "markersize": 7}
            label = beside if y == 0 else None
            axes.plot([row["beside"]], [y], "o", label=label, linestyle="none", zorder=2, **style)
    names = [f"{clip(row['environment'], 40)} (n = {row['n']:,})" for row in rows]
    axes.set_yticks(range(len(rows)), labels=names, parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"{what}, 95 % interval", parse_math=False)
    axes.xaxis.set_major_formatter(_make_percent())
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)


def _make_percent() -> Callable[[float, float], str]:
    return lambda share, _: f"{100 * share:.4g}%"
