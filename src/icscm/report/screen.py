"""A report on a screen of columns: its page, Markdown, JSON and what the terminal shows.

`icscm.report.content.screen` has the records. In JSON they are `columns` (verdict, reason, share of
heterogeneity, rule, effects by environment, pooled effect and prediction interval), `costs` by
round at the training environments, `path` along the tolerance, `validation` by
leave-one-environment-out or None, and `limits_of_the_screen`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from icscm.formatting import clip
from icscm.report.content.screen import (
    CANNOT_TELL,
    REJECTED,
    VERDICTS,
    ScreenContent,
    ScreenedColumn,
    ScreenValidationRecord,
    make_screen_content,
)
from icscm.report.documents.screen import write_document
from icscm.report.drawing import Limits
from icscm.report.forests import draw_forest_cells
from icscm.report.formatting import Plain
from icscm.report.markdown import render_markdown
from icscm.report.page import BaseReport, render_page
from icscm.report.screen_path import SCREEN_TOLERANCES, ScreenPath, make_screen_path
from icscm.report.summary import ABOUT
from icscm.report.terminal import render_blocks
from icscm.report.wording.facts import Fact
from icscm.report.wording.screening import (
    LIMITS,
    PRICE_OF_TRUTH,
    describe_costs,
    describe_price,
    describe_screen,
    judge_costs,
    shows_effects,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, repr=False, kw_only=True)
class ScreenReport(BaseReport):
    """A report on a screen of columns; a notebook displays it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from icscm import InvariantFeatureSelector
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, n_environments=3, random_state=1)
    >>> screen = InvariantFeatureSelector(LogisticRegression(), cv=2)
    >>> report = screen.fit(data.X[["A1", "A2"]], data.y, environments=data.environments).report()
    >>> "<html" in report.to_html(), "# " in report.to_markdown()
    (True, True)
    """

    content: ScreenContent

    def to_html(self) -> str:
        """One self-contained page, as that of a learner."""
        return render_page("screen.html", lambda limits: lay_out_screen(self.content, limits))

    def to_markdown(self) -> str:
        """The report as text with tables."""
        return render_markdown(write_document(self.content))


def make_screen_report(
    selector: Any,
    *,
    learner_name: str,
    path: ScreenPath | None,
    validation: ScreenValidationRecord | None,
    data_name: str | None,
    target: str | None,
    environment: str | None,
) -> ScreenReport:
    """Return a report on a fitted `InvariantFeatureSelector`."""
    if path is None and selector.environments_:
        path = make_screen_path(
            selector.screen_, selector.rounds_, SCREEN_TOLERANCES, own=selector.tolerance
        )
    content = make_screen_content(
        selector,
        learner_name=learner_name,
        levels=[] if path is None else path.list_levels(),
        validation=validation,
        data_name=data_name,
        target=target,
        environment=environment,
    )
    return ScreenReport(summary=summarize_screen(content), content=content)


def render_screen(report: ScreenReport, facts: Sequence[Fact]) -> "Iterator[RenderableType]":
    """Return the report as the terminal shows it, below the facts about the data."""
    return render_blocks(write_document(report.content, is_brief=True, facts=facts))


def summarize_screen(content: ScreenContent) -> Plain:
    """Return the records and the sentences about them in one dict, as JSON holds them."""
    sentence = describe_screen(
        content.count_verdict(REJECTED),
        n_columns=len(content.columns),
        tolerance=content.task.tolerance,
    )
    return {
        "about": ABOUT,
        "model": {"name": sentence.removesuffix("."), "sentence": sentence},
        "task": asdict(content.task),
        "counts": {verdict: content.count_verdict(verdict) for verdict in VERDICTS},
        "kept": content.kept,
        "rejected": content.rejected,
        "columns": [asdict(column) for column in content.columns],
        "costs": [asdict(cost) for cost in content.costs],
        "price": describe_price(content.task.tolerance),
        "path": [asdict(level) for level in content.levels] or None,
        "validation": None if content.validation is None else content.validation.to_dict(),
        "limits_of_the_screen": list(LIMITS),
    }


# --- the page -------------------------------------------------------------------------------------


def lay_out_screen(content: ScreenContent, limits: Limits) -> Plain:
    """Return what the page of a screen shows: every choice that its template would else make."""
    task = content.task
    shown = content.columns[: limits.environments]
    known = [column for column in content.columns if column.lowest is not None]
    has_scores = bool(content.levels) and content.levels[0].auc_left_out is not None
    cost_answer, cost_detail = judge_costs(content.costs)
    return {
        **summarize_screen(content),
        "limits": limits,
        "place": task.environment or "environment",
        "cost_answer": clip(cost_answer, limits.characters),
        "cost_detail": clip(cost_detail, limits.characters),
        "costs_text": describe_costs(task.estimator),
        "price_of_truth": PRICE_OF_TRUTH,
        "n_undecided": content.count_verdict(CANNOT_TELL),
        "shown": [
            {**vars(column), "differs": has_shown_effects(column, task.tolerance)}
            for column in shown
        ],
        "n_more_columns": len(content.columns) - len(shown),
        "forest": draw_forest_cells(known[: limits.leaves], limits),
        "n_more_forests": max(len(known) - limits.leaves, 0),
        "has_scores": has_scores,
        "path_columns": [
            *("tolerance", "also rejected", ">columns left", ">AUC", ">log loss"),
            *([">AUC held out, mean", ">worst"] if has_scores else []),
        ],
    }


def has_shown_effects(column: ScreenedColumn, tolerance: float) -> bool:
    """Return whether the extremes of a column's effect are known and of interest."""
    return column.lowest is not None and shows_effects(column.verdict, column.share, tolerance)
