"""An evaluation on new samples, from its dict: on the terminal, as a page and as a figure.

The dict is `icscm.validation.evaluation.Evaluation.to_dict`.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from rich.console import Console, RenderableType

from icscm._version import __version__
from icscm.drawing import Figure
from icscm.drawing.intervals import (
    Background,
    IntervalPanel,
    IntervalRow,
    RowKind,
    draw_interval_panel,
)
from icscm.drawing.shapes import Panel, place_below, place_beside
from icscm.formatting import as_text, clip, count
from icscm.report.content.rates import make_rates
from icscm.report.documents.evaluation import write_document
from icscm.report.drawing import (
    Limits,
    draw_decisions,
    make_axis,
    make_interval_row,
    make_plot,
)
from icscm.report.formatting import (
    SHARES,
    Plain,
    format_bounds,
    format_measure,
    format_prediction_interval,
    format_score,
    format_share,
)
from icscm.report.page import render_page
from icscm.report.terminal import render_blocks
from icscm.report.wording.evaluation import (
    UNDEFINED,
    IntervalCheck,
    describe_baseline_place,
    describe_interval_check,
    describe_interval_checks,
    describe_moved_leaves,
)

# Environments listed before only the worst and the best are, and rows of a figure.
N_LISTED, _N_DRAWN = 10, 40


def render_validation(found: Plain, most: int | None = N_LISTED) -> Iterator[RenderableType]:
    """An evaluation with up to so many environments, or all."""
    ranked = _lay_out(found, Limits(environments=len(found["environments"])))
    rows = ranked["shown_environments"]
    if most is not None and len(rows) > most:
        best = rows[len(rows) - most // 2 :]
        ranked["shown_environments"] = [*rows[: most - most // 2], None, *best]
    return render_blocks(write_document(ranked))


def render_text(found: Plain) -> str:
    """An evaluation as text of 80 columns."""
    plain = dict.fromkeys(("highlight", "markup", "emoji", "force_jupyter"), False)
    console = Console(file=io.StringIO(), width=80, **plain)  # type: ignore[arg-type]
    for part in render_validation(found):
        console.print(part)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines)


def render_page_of(found: Plain) -> str:
    """An evaluation as one self-contained page."""
    return render_page("evaluation.html", lambda limits: _lay_out(found, limits))


def _lay_out(found: Plain, limits: Limits) -> Plain:
    """The evaluation with its plots and sentences, environments from the worst to the best."""
    places, leaves, overall = found["environments"], found["leaves"], found["overall"]
    key = "auc" if overall["scores"]["auc"] else "error"
    sign = 1 if key == "auc" else -1
    known = [each for each in places if each["scores"][key] is not None]
    ranked = sorted(known, key=lambda each: sign * each["scores"][key]["value"])
    ranked += [each for each in places if each["scores"][key] is None]
    rows = [_make_leaf_row(leaf) for leaf in leaves[: limits.leaves]]
    rate = asdict(make_rates([overall["n_positive"]], [overall["n_samples"]])[0])
    expected = sum((leaf["expected"] or 0.0) * leaf["n_samples"] for leaf in leaves) / rate["n"]
    plot = make_plot(
        rows,
        {**rate, "compared": expected if leaves else None},
        "rate",
        limits,
        has_mean=False,  # the rates of leaves are meant to differ
    )
    placed = [_make_place_row(each, key) for each in (*ranked, overall)]
    form = format_share if key in SHARES else format_score
    shown = [_add_rate(each) for each in ranked[: limits.environments]]
    return {
        **found,
        "about": {"version": __version__},
        "limits": limits,
        "overall": _add_rate(overall),
        "plotted": key,
        "is_auc": key == "auc",
        "place": found["environment"] or "environment",
        "environments_text": count(len(places), "environment"),
        "discrimination_range": format_bounds(overall["scores"], "auc") or UNDEFINED,
        "baseline_place": describe_baseline_place(found["baseline_from"]),
        "score_tables": _make_score_tables(found, limits),
        "n_more_leaves": max(len(leaves) - limits.leaves, 0),
        "place_plot": make_plot(placed[:-1], placed[-1], key, limits, write=form),
        **draw_decisions(found, limits),
        "leaf_plot": plot,
        "shown_leaves": [_lay_out_leaf(leaf) for leaf in leaves[: limits.leaves]],
        "shown_environments": shown,
        "moved_text": _describe_moved(leaves),
        "checks_text": _describe_checks(leaves, has_environments=bool(places)),
        "check": lambda leaf: describe_interval_check(_list_checks(leaf)),
        "value": format_measure,
        "range": format_bounds,
    }


def _add_rate(place: Plain) -> Plain:
    """Scores in an environment with the share of positive rows."""
    return {**place, "rate": place["n_positive"] / place["n_samples"]}


def _make_score_tables(found: Plain, limits: Limits) -> list[Plain]:
    """The measures of probabilities, and those of predictions: a table each."""
    measures = list(found["measures"])
    first = measures.index("error")
    environment = clip(found["environment"] or "environment", limits.characters)
    tables = []
    for name, part, names in (
        ("all", "Probabilities", measures[:first]),
        ("threshold", f"Predictions {found['at']}", measures[first:]),
    ):
        titles = [f">{found['measures'][measure]}" for measure in names]
        tables.append(
            {
                "name": f"{name}-caption",
                "caption": f"{part}, of the model and below it of the baseline",
                "columns": [environment, ">samples", ">positive", *titles],
                "measures": names,
            }
        )
    return tables


def _lay_out_leaf(leaf: Plain) -> Plain:
    """A leaf with what the page says of its rate and of its prediction interval."""
    answers = {None: "no samples", True: "yes", False: "no"}
    check = describe_interval_check(_list_checks(leaf))
    interval = format_prediction_interval(leaf["new_interval"])
    return {
        **leaf,
        "moved_text": answers[leaf["has_moved"]],
        "interval_text": "; ".join(filter(None, [interval, check])),
    }


def _describe_moved(leaves: Sequence[Plain]) -> str:
    tested = [leaf for leaf in leaves if leaf["has_moved"] is not None]
    moved = [str(leaf["leaf"]) for leaf in tested if leaf["has_moved"]]
    return describe_moved_leaves(moved, n_tested=len(tested))


def _describe_checks(leaves: Sequence[Plain], *, has_environments: bool) -> str:
    checks = [check for leaf in leaves for check in _list_checks(leaf)]
    return describe_interval_checks(
        n_rates=len(checks),
        n_inside=sum(check.is_inside for check in checks),
        n_new_environments=len({str(check.environment) for check in checks}),
        has_environments=has_environments,
    )


def _list_checks(leaf: Plain) -> list[IntervalCheck]:
    return [
        IntervalCheck(
            environment=check["environment"],
            rate=check["n_positive"] / check["n_samples"],
            is_inside=check["is_inside"],
        )
        for check in leaf["interval_checks"]
    ]


def _make_place_row(place: Plain, key: str) -> Plain:
    score, baseline = place["scores"][key], place["baseline"][key]
    return {
        "environment": f"{as_text(place['environment'])}{' (new)' if place['is_new'] else ''}",
        "n": place["n_samples"],
        key: score and score["value"],
        f"{key}_interval": score and [score["low"], score["high"]],
        "compared": None if baseline is None or key == "auc" else baseline["value"],
    }


def _make_leaf_row(leaf: Plain) -> Plain:
    return {
        "environment": f"{leaf['leaf']}: {as_text(leaf['text'])}",
        "n": leaf["n_samples"],
        "rate": leaf["observed"],
        "rate_interval": leaf["interval"],
        "compared": leaf["expected"],
    }


def draw_validation(found: Plain) -> Figure:
    """Draw the curves, the AUC by environment, and rates by leaf where there are leaves."""
    laid_out = _lay_out(found, Limits(environments=len(found["environments"])))
    panels = [draw_interval_panel(_make_environments_panel(found, laid_out))]
    if found["leaves"]:
        panels.append(draw_interval_panel(_make_leaves_panel(found)))
    curves: list[Panel] = [drawn.panel for drawn in laid_out["panels"]]
    if curves:
        panels.insert(0, place_beside(curves, gap=16.0))
    return Figure(place_below(panels, gap=16.0), found["headline"])


def _make_environments_panel(found: Plain, laid_out: Plain) -> IntervalPanel:
    """Make the scores of all rows and of each environment; of many, the worst and the best."""
    key, shown = laid_out["plotted"], laid_out["shown_environments"]
    if len(shown) > _N_DRAWN:
        shown = [*shown[: _N_DRAWN // 2], *shown[-_N_DRAWN // 2 :]]
    rows = [_make_place_row(place, key) for place in shown]
    overall = {**_make_place_row(found["overall"], key), "environment": "all"}
    is_percent = key in SHARES
    return IntervalPanel(
        title="AUC by environment" if key == "auc" else f"error {found['at']}, by environment",
        axis=make_axis([overall, *rows], key, is_percent=is_percent),
        axis_title="95% intervals",
        rows=[
            _make_row(overall, key, RowKind.POOLED),
            *(_make_row(row, key, RowKind.GROUP) for row in rows),
        ],
        background=Background(mean=overall[key]),
        compared_title="" if key == "auc" else "baseline",
    )


def _make_leaves_panel(found: Plain) -> IntervalPanel:
    """Make the observed rates of the leaves, beside those in training."""
    rows = [_make_leaf_row(leaf) for leaf in found["leaves"]]
    return IntervalPanel(
        title=f"rate of {clip(found['positive'], 30)} by leaf",
        axis=make_axis(rows, "rate", is_percent=True),
        axis_title="95% intervals",
        rows=[_make_row(row, "rate", RowKind.GROUP) for row in rows],
        compared_title="in training",
    )


def _make_row(row: Plain, key: str, kind: RowKind) -> IntervalRow:
    """Make a row of a panel, with its size in its name and its numbers beside it."""
    write = format_score if key == "auc" else format_share
    name = f"{clip(row['environment'], 22)} (n = {row['n']:,})"
    record = make_interval_row(row, key, name=name, kind=kind)
    if record.estimate is None or record.interval is None:
        return record
    low, high = map(write, record.interval)
    return replace(record, numbers=f"{write(record.estimate)} ({low} to {high})")
