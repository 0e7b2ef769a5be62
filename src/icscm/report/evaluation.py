"""An evaluation on new rows: on the terminal, as a page and as a figure."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, RenderableType

from icscm.drawing import Figure
from icscm.drawing.intervals import (
    Background,
    IntervalPanel,
    IntervalRow,
    RowKind,
    draw_interval_panel,
)
from icscm.drawing.shapes import Panel, place_below, place_beside
from icscm.formatting import clip, count
from icscm.report.content.evaluation import CalibratedLeaf, EvaluatedRows, EvaluationContent
from icscm.report.content.rates import make_rates
from icscm.report.documents.evaluation import write_document
from icscm.report.drawing import (
    Limits,
    PlotRow,
    make_axis,
    make_interval_row,
    make_pair,
    make_plot,
)
from icscm.report.drawn_curves import DrawnDecisions, draw_decisions
from icscm.report.formatting import Plain, format_prediction_interval, format_score, format_share
from icscm.report.page import render_page
from icscm.report.terminal import print_parts, render_blocks
from icscm.report.wording.evaluation import (
    SHARES,
    UNDEFINED,
    describe_baseline_place,
    describe_checks,
    describe_interval_check,
    describe_leaves,
    write_bounds,
    write_measure,
    write_number,
)

# Environments listed before only the worst and the best are, and rows of a figure.
N_LISTED, N_DRAWN = 10, 40


# --- the terminal ---------------------------------------------------------------------------------


def render_evaluation(
    content: EvaluationContent, n_listed: int | None = N_LISTED
) -> Iterator[RenderableType]:
    """Return an evaluation with up to so many environments, or all."""
    shown: list[EvaluatedRows | None] = [*content.rank_environments()]
    if n_listed is not None and len(shown) > n_listed:
        n_best = n_listed // 2
        shown = [*shown[: n_listed - n_best], None, *shown[len(shown) - n_best :]]
    decisions = draw_curves(content, Limits(environments=len(content.environments)))
    document = write_document(content, environments=shown, decision_text=decisions.text)
    return render_blocks(document)


def render_text(content: EvaluationContent) -> str:
    """Return an evaluation as text of 80 columns."""
    text = io.StringIO()
    console = Console(
        file=text, width=80, highlight=False, markup=False, emoji=False, force_jupyter=False
    )
    print_parts(console, render_evaluation(content))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


# --- the page -------------------------------------------------------------------------------------


def render_evaluation_page(content: EvaluationContent) -> str:
    """Return an evaluation as one self-contained page."""
    return render_page("evaluation.html", lambda limits: lay_out_evaluation(content, limits))


def lay_out_evaluation(content: EvaluationContent, limits: Limits) -> Plain:
    """Return what the page shows: its plots and sentences, the worst environment first."""
    ranked = content.rank_environments()
    overall = content.overall
    measure = content.plotted
    write = format_share if measure in SHARES else format_score
    leaves = content.leaves[: limits.leaves]
    return {
        **vars(content),
        "limits": limits,
        "overall": list_scores(overall),
        "is_auc": measure == "auc",
        "place": content.environment or "environment",
        "environments_text": count(len(content.environments), "environment"),
        "discrimination_range": write_bounds(overall.scores, "auc") or UNDEFINED,
        "baseline_place": describe_baseline_place(content.baseline_from),
        "score_tables": make_score_tables(content, limits),
        "n_more_leaves": max(len(content.leaves) - limits.leaves, 0),
        "place_plot": make_plot(
            [make_environment_row(rows, measure) for rows in ranked],
            make_environment_row(overall, measure),
            limits,
            write=write,
        ),
        "decisions": draw_curves(content, limits),
        "leaf_plot": make_plot(
            [make_leaf_row(leaf) for leaf in leaves],
            make_all_leaves_row(content),
            limits,
            has_mean=False,  # the rates of leaves are meant to differ
        ),
        "shown_leaves": [lay_out_leaf(leaf) for leaf in leaves],
        "shown_environments": [list_scores(rows) for rows in ranked[: limits.environments]],
        "moved_text": describe_leaves(content.leaves),
        "checks_text": describe_checks(content),
        "value": write_measure,
        "range": write_bounds,
    }


def list_scores(rows: EvaluatedRows) -> Plain:
    """Return the scores of some rows, with the share of positive ones."""
    return {
        "environment": rows.environment,
        "is_new": rows.is_new,
        "n_samples": rows.n_samples,
        "rate": rows.n_positive / rows.n_samples,
        "scores": rows.scores,
        "baseline": rows.baseline,
    }


@dataclass(frozen=True)
class ScoreTable:
    """Some measures by environment; titles that start with > are of numbers."""

    name: str
    caption: str
    columns: list[str]
    measures: list[str]


def make_score_tables(content: EvaluationContent, limits: Limits) -> list[ScoreTable]:
    """Return a table of the measures of probabilities, and one of those of predictions."""
    measures = list(content.measures)
    first = measures.index("error")
    return [
        make_score_table("all-caption", "Probabilities", measures[:first], content, limits),
        make_score_table(
            "threshold-caption", f"Predictions {content.at}", measures[first:], content, limits
        ),
    ]


def make_score_table(
    name: str, what: str, measures: list[str], content: EvaluationContent, limits: Limits
) -> ScoreTable:
    """Return a table of some measures."""
    environment = clip(content.environment or "environment", limits.characters)
    titles = [f">{content.measures[measure]}" for measure in measures]
    return ScoreTable(
        name=name,
        caption=f"{what}, of the model and below it of the baseline",
        columns=[environment, ">samples", ">positive", *titles],
        measures=measures,
    )


def lay_out_leaf(leaf: CalibratedLeaf) -> Plain:
    """Return a leaf with what the page says of its rate and of its prediction interval."""
    answers = {None: "no samples", True: "yes", False: "no"}
    interval = format_prediction_interval(leaf.new_interval)
    check = describe_interval_check(leaf.interval_checks)
    return {
        "leaf": leaf.leaf,
        "text": leaf.text,
        "expected": leaf.expected,
        "n_training": leaf.n_training,
        "observed": leaf.observed,
        "n_samples": leaf.n_samples,
        "adjusted": leaf.adjusted,
        "moved_text": answers[leaf.has_moved],
        "interval_text": "; ".join(filter(None, [interval, check])),
    }


# --- what is drawn --------------------------------------------------------------------------------


def draw_curves(content: EvaluationContent, limits: Limits) -> DrawnDecisions:
    """Draw calibration and decision curves, environments from the first on."""
    return draw_decisions(
        content.overall,
        environments=content.environments,
        thresholds=content.thresholds,
        limits=limits,
    )


def make_environment_row(rows: EvaluatedRows, measure: str) -> PlotRow:
    """Return the score in an environment, beside that of the baseline; its AUC is always 0.5."""
    score, baseline = rows.scores[measure], rows.baseline[measure]
    is_compared = baseline is not None and measure != "auc"
    return PlotRow(
        name=f"{rows.environment}{' (new)' if rows.is_new else ''}",
        n=rows.n_samples,
        share=None if score is None else score.value,
        interval=None if score is None else (score.low, score.high),
        compared=baseline.value if baseline is not None and is_compared else None,
    )


def make_leaf_row(leaf: CalibratedLeaf) -> PlotRow:
    """Return the rate of a leaf, beside that in training."""
    return PlotRow(
        name=f"{leaf.leaf}: {leaf.text}",
        n=leaf.n_samples,
        share=leaf.observed,
        interval=leaf.interval,
        compared=leaf.expected,
    )


def make_all_leaves_row(content: EvaluationContent) -> PlotRow:
    """Return the rate of all rows, beside the one that the leaves' rates in training predict."""
    overall = content.overall
    (rate,) = make_rates([overall.n_positive], [overall.n_samples])
    expected = None
    if content.leaves:
        n_expected = sum((leaf.expected or 0.0) * leaf.n_samples for leaf in content.leaves)
        expected = n_expected / rate.n
    return PlotRow(
        name="all",
        n=rate.n,
        share=rate.rate,
        interval=make_pair(rate.rate_interval),
        compared=expected,
    )


# --- the figure -----------------------------------------------------------------------------------


def draw_evaluation(content: EvaluationContent) -> Figure:
    """Draw the curves, the AUC by environment, and rates by leaf where there are leaves."""
    panels = [draw_interval_panel(make_environments_panel(content))]
    if content.leaves:
        panels.append(draw_interval_panel(make_leaves_panel(content)))
    decisions = draw_curves(content, Limits(environments=len(content.environments)))
    curves: list[Panel] = [drawn.panel for drawn in decisions.panels]
    if curves:
        panels.insert(0, place_beside(curves, gap=16.0))
    return Figure(place_below(panels, gap=16.0), content.headline)


def make_environments_panel(content: EvaluationContent) -> IntervalPanel:
    """Make the scores of all rows and of each environment; of many, the worst and the best."""
    measure = content.plotted
    shown: Sequence[EvaluatedRows] = content.rank_environments()
    if len(shown) > N_DRAWN:
        shown = [*shown[: N_DRAWN // 2], *shown[-N_DRAWN // 2 :]]
    rows = [make_environment_row(evaluated, measure) for evaluated in shown]
    overall = replace(make_environment_row(content.overall, measure), name="all")
    is_auc = measure == "auc"
    return IntervalPanel(
        title="AUC by environment" if is_auc else f"error {content.at}, by environment",
        axis=make_axis([overall, *rows], is_percent=measure in SHARES),
        axis_title="95% intervals",
        rows=[
            make_panel_row(overall, measure, RowKind.POOLED),
            *(make_panel_row(row, measure, RowKind.GROUP) for row in rows),
        ],
        background=Background(mean=overall.share),
        compared_title="" if is_auc else "baseline",
    )


def make_leaves_panel(content: EvaluationContent) -> IntervalPanel:
    """Make the observed rates of the leaves, beside those in training."""
    rows = [make_leaf_row(leaf) for leaf in content.leaves]
    return IntervalPanel(
        title=f"rate of {clip(content.positive, 30)} by leaf",
        axis=make_axis(rows, is_percent=True),
        axis_title="95% intervals",
        rows=[make_panel_row(row, "error", RowKind.GROUP) for row in rows],
        compared_title="in training",
    )


def make_panel_row(row: PlotRow, measure: str, kind: RowKind) -> IntervalRow:
    """Make a row of a panel, with its size in its name and its numbers beside it."""
    name = f"{clip(row.name, 22)} (n = {row.n:,})"
    record = make_interval_row(row, name=name, kind=kind)
    if record.estimate is None or record.interval is None:
        return record
    low, high = (write_number(end, measure) for end in record.interval)
    return replace(record, numbers=f"{write_number(record.estimate, measure)} ({low} to {high})")
