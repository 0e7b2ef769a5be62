"""A report on a screen of columns: its page, Markdown, JSON and what the terminal shows.

`icscm.report.content.screen` has the records. In JSON they are `columns` (verdict, why, worth on
average and in new environments, rule, worth and effect by environment), `costs` by round at the
training environments, `path` along the tolerance or None, `validation` by
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
    ScreenTask,
    ScreenValidationRecord,
    make_screen_content,
)
from icscm.report.documents.screen import write_document
from icscm.report.drawing import Limits
from icscm.report.forests import draw_forest_cells
from icscm.report.formatting import Plain
from icscm.report.markdown import render_markdown
from icscm.report.page import BaseReport, render_page
from icscm.report.screen_path import ScreenPath
from icscm.report.summary import ABOUT
from icscm.report.terminal import render_blocks
from icscm.report.wording.facts import Fact
from icscm.report.wording.screening import (
    PATH,
    SCORE_NAMES,
    describe_costs,
    describe_interruption,
    describe_screen,
    describe_tolerance,
    explain_verdict,
    explain_worth,
    format_effect,
    format_stake,
    format_worth,
    format_worth_in_new,
    judge_costs,
    list_limits,
    list_reasons,
    name_effect,
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
    task = content.task
    sentence = describe_screen(
        content.count_verdict(REJECTED),
        n_columns=len(content.columns),
        tolerance=task.tolerance,
    )
    n_environments = len(task.environments)
    return {
        "about": ABOUT,
        "model": {"name": sentence.removesuffix("."), "sentence": sentence},
        "task": asdict(task) | {"outcome": str(task.outcome)},
        "interruption": describe_interruption(task),
        "score": SCORE_NAMES[task.outcome].score,
        "loss": SCORE_NAMES[task.outcome].loss,
        "counts": {verdict: content.count_verdict(verdict) for verdict in VERDICTS},
        "kept": content.kept,
        "rejected": content.rejected,
        "columns": [
            {**asdict(column), "why": explain_verdict(column, task)} for column in content.columns
        ],
        "costs": [asdict(cost) for cost in content.costs],
        "meaning_of_the_tolerance": describe_tolerance(task),
        "path": [asdict(level) for level in content.levels] or None,
        "validation": None if content.validation is None else content.validation.to_dict(),
        "limits_of_the_screen": list_limits(n_environments),
    }


# --- the page -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnLine:
    """A column as a line of the page's table of verdicts, in texts."""

    column: str
    verdict: str
    worth: str
    worth_low: str
    stake: str
    p_value: float | None
    rule: str
    output: str
    lowest: str
    lowest_environment: str
    highest: str
    highest_environment: str


def lay_out_screen(content: ScreenContent, limits: Limits) -> Plain:
    """Return what the page of a screen shows: every choice that its template would else make."""
    task = content.task
    n_environments = len(task.environments)
    shown = content.columns[: limits.environments]
    known = [column for column in content.columns if column.lowest is not None]
    has_scores = bool(content.levels) and content.levels[0].score_left_out is not None
    cost_answer, cost_detail = judge_costs(content.costs, task.outcome)
    names = SCORE_NAMES[task.outcome]
    scores = [f">{names.score}", f">{names.loss}"]
    scores_left_out = [f">{names.score} left out, mean", ">worst"] if has_scores else []
    effect = name_effect(task.outcome)
    return {
        **summarize_screen(content),
        "limits": limits,
        "place": task.environment or "environment",
        "cost_answer": clip(cost_answer, limits.characters),
        "cost_detail": clip(cost_detail, limits.characters),
        "costs_text": describe_costs(task.outcome),
        "needed": format_worth(task.needed),
        "worth_text": explain_worth(n_environments),
        "path_text": PATH,
        "effect_name": effect,
        "n_undecided": content.count_verdict(CANNOT_TELL),
        "verdict_columns": [
            *("column", "verdict", ">worth", ">in new", ">stake", ">p", "rule"),
            *(f">lowest {effect}", ">highest"),
        ],
        "shown": [make_line(column, task) for column in shown],
        "reasons": list_reasons(shown, task),
        "n_more_columns": len(content.columns) - len(shown),
        "cost_columns": [">columns", "without", *scores],
        "validation_columns": [
            *(task.environment or "environment", ">rows"),
            *(f">{names.score}, all columns", ">screened"),
            *(f">{names.loss}, all columns", ">screened", "rejected without it"),
        ],
        "forest": draw_forest_cells(known[: limits.leaves], task, limits),
        "n_more_forests": max(len(known) - limits.leaves, 0),
        "has_scores": has_scores,
        "path_columns": ["tolerance", "rejected", ">columns left", *scores, *scores_left_out],
    }


def make_line(column: ScreenedColumn, task: ScreenTask) -> ColumnLine:
    """Return a column as a line of the table of verdicts."""
    lowest, highest = column.lowest, column.highest
    return ColumnLine(
        column=column.column,
        verdict=column.verdict,
        worth=format_worth(column.worth),
        worth_low=format_worth_in_new(column),
        stake="-" if column.worth is None else format_stake(column.stake),
        p_value=column.p_value,
        rule=column.rule or "",
        output=column.output or "",
        lowest="" if lowest is None else format_effect(lowest.effect, task.outcome),
        lowest_environment="" if lowest is None else lowest.environment,
        highest="" if highest is None else format_effect(highest.effect, task.outcome),
        highest_environment="" if highest is None else highest.environment,
    )
