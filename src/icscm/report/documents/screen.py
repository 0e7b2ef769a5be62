"""A report on a screen of columns as a document: the whole of it, or its short form."""

from collections.abc import Sequence

from icscm.formatting import as_text, count, format_name, shorten_list
from icscm.report.blocks import (
    Block,
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    note_more,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.screen import (
    KEPT,
    REJECTED,
    EnvironmentEffect,
    LeftOutScreen,
    RoundCost,
    ScreenContent,
    ScreenedColumn,
    ScreenTask,
    ScreenValidationRecord,
    ToleranceLevel,
)
from icscm.report.documents.shared import shorten_facts
from icscm.report.formatting import format_score
from icscm.report.wording.facts import Fact
from icscm.report.wording.screening import (
    PATH,
    SCORE_NAMES,
    describe_costs,
    describe_effect,
    describe_interruption,
    describe_screen,
    describe_stake,
    describe_tolerance,
    explain_verdict,
    explain_worth,
    format_effect,
    format_effect_interval,
    format_stake,
    format_worth,
    format_worth_in_new,
    format_worth_interval,
    list_limits,
    list_reasons,
    name_effect,
)

# Kept columns that the short form lists.
N_KEPT = 15


def write_document(
    content: ScreenContent, *, is_brief: bool = False, facts: Sequence[Fact] = ()
) -> Document:
    """Return a report on a screen; the short form begins with facts about the data."""
    task = content.task
    n_environments = len(task.environments)
    shown, n_more = choose_columns(content.columns, is_brief=is_brief)
    document = write_brief_start(task, facts) if is_brief else write_start(task)
    sentence = describe_screen(
        content.count_verdict(REJECTED),
        n_columns=len(content.columns),
        tolerance=task.tolerance,
    )
    document += [
        Heading(shorten_sentence(sentence.rstrip("."))),
        *write_interruption(task),
        write_columns(shown, task),
        *note_more(n_more, f"and {n_more:,} more columns kept; the report lists them"),
        Note(f"{explain_worth(n_environments)} {describe_tolerance(task)}"),
        *write_reasons(shown, task),
        *write_costs(content.costs, task),
        *write_validation(content.validation, task),
        *write_path(content.levels, task),
    ]
    if not is_brief:
        document += write_effects(shown, task)
    return [*document, Heading("Limits"), Bullets(list_limits(n_environments))]


def choose_columns(
    columns: Sequence[ScreenedColumn], *, is_brief: bool
) -> tuple[list[ScreenedColumn], int]:
    """Return the columns that are listed, and how many more were kept."""
    kept = [column for column in columns if column.verdict == KEPT]
    others = [column for column in columns if column.verdict != KEPT]
    n_kept = N_KEPT if is_brief else len(columns)
    return [*others, *kept[:n_kept]], len(kept[n_kept:])


def write_brief_start(task: ScreenTask, facts: Sequence[Fact]) -> Document:
    """Return the facts about the data and the learner."""
    return [Facts([*shorten_facts(facts), Fact("Learner", shorten_name(task.estimator))])]


def write_start(task: ScreenTask) -> Document:
    """Return the title, and what was screened."""
    data = f": {shorten_name(task.data)}" if task.data else ""
    environments = count(len(task.environments), "environment")
    by = f" by {shorten_name(task.environment)}" if task.environment else ""
    learner = shorten_name(task.estimator)
    return [
        Heading(f"Screen of columns{data}", level=1),
        Paragraph(f"{environments}{by}; outcome: {task.outcome}; learner: {learner}."),
    ]


def name_environments(task: ScreenTask) -> str:
    """Return the title of a column of environments."""
    return shorten_name(task.environment or "environment")


# --- verdicts and costs ---------------------------------------------------------------------------


def write_interruption(task: ScreenTask) -> Document:
    """Return that the screen was interrupted, if it was."""
    interruption = describe_interruption(task)
    return [Paragraph(interruption)] if interruption else []


def write_columns(columns: Sequence[ScreenedColumn], task: ScreenTask) -> Block:
    """Return the verdict on each column, with its worth and the extremes of its effect."""
    rows = [
        [
            shorten_name(column.column),
            column.verdict,
            format_worth(column.worth),
            format_worth_in_new(column),
            write_stake(column),
            write_extremes(column, task),
        ]
        for column in columns
    ]
    effect_title = f"{name_effect(task.outcome)} by {name_environments(task)}"
    return make_table(["column", "verdict", ">worth", ">in new", ">stake", effect_title], rows)


def write_stake(column: ScreenedColumn) -> str:
    """Return the stake of a column that a model used."""
    return "-" if column.worth is None else format_stake(column.stake)


def write_extremes(column: ScreenedColumn, task: ScreenTask) -> str:
    """Return the lowest and the highest effect, and the rule whose effect it is."""
    lowest, highest = column.lowest, column.highest
    if lowest is None or highest is None:
        return ""
    effects = f"{write_effect(lowest, task)} to {write_effect(highest, task)}"
    of_class = f" for {shorten_name(column.output)}" if column.output else ""
    return f"{effects} if {shorten_name(column.rule or '')}{of_class}"


def write_effect(effect: EnvironmentEffect, task: ScreenTask) -> str:
    """Return the effect in an environment."""
    return f"{format_effect(effect.effect, task.outcome)} ({shorten_name(effect.environment)})"


def write_reasons(columns: Sequence[ScreenedColumn], task: ScreenTask) -> Document:
    """Return why columns are rejected, or cannot be judged."""
    points = [shorten_sentence(reason) for reason in list_reasons(columns, task)]
    return [Bullets(points)] if points else []


def write_costs(costs: Sequence[RoundCost], task: ScreenTask) -> Document:
    """Return the scores at the training environments after each rejection."""
    if not costs:
        return []
    rows = [
        [
            f"{cost.n_columns:,}",
            write_change(cost),
            format_score(cost.score),
            format_score(cost.loss),
        ]
        for cost in costs
    ]
    names = SCORE_NAMES[task.outcome]
    return [
        Heading("Cost at the training environments"),
        make_table([">columns", "without", f">{names.score}", f">{names.loss}"], rows),
        Note(describe_costs(task.outcome)),
    ]


def write_change(cost: RoundCost) -> str:
    """Return the columns that this round is without, or that are left again."""
    if cost.again:
        return f"(again with {shorten_name(cost.again)})"
    return shorten_name(cost.without) if cost.without else "-"


# --- environments left out, and other tolerances --------------------------------------------------


def write_validation(validation: ScreenValidationRecord | None, task: ScreenTask) -> Document:
    """Return what the screen changes in environments left out."""
    if validation is None:
        return []
    means = [
        format_score(validation.means[name])
        for name in ("score_all", "score_screened", "loss_all", "loss_screened")
    ]
    rows = [write_left_out(left_out) for left_out in validation.held_out]
    names = SCORE_NAMES[task.outcome]
    scores = [f">{names.score}, all", ">screened", f">{names.loss}, all", ">screened"]
    titles = ["left out", ">rows", *scores, "rejected there"]
    return [
        Heading("Leave-one-environment-out"),
        make_table(titles, [*rows, ["mean", "", *means, ""]]),
        Paragraph(validation.text),
    ]


def write_left_out(left_out: LeftOutScreen) -> list[str]:
    """Return the scores in an environment, and what was rejected without it."""
    rejected = [format_name(column) for column in left_out.rejected]
    return [
        shorten_name(as_text(left_out.environment)),
        f"{left_out.n_samples:,}",
        format_score(left_out.score_all),
        format_score(left_out.score_screened),
        format_score(left_out.loss_all),
        format_score(left_out.loss_screened),
        shorten_name(shorten_list(rejected)) if rejected else "-",
    ]


def write_path(levels: Sequence[ToleranceLevel], task: ScreenTask) -> Document:
    """Return the screen at other tolerances, if they were tried."""
    if not levels:
        return []
    return [Heading("Other tolerances"), write_tolerances(levels, task), Paragraph(PATH)]


def write_tolerances(levels: Sequence[ToleranceLevel], task: ScreenTask) -> Block:
    """Return the columns rejected at each tolerance, and the scores there."""
    has_left_out = levels[0].score_left_out is not None
    names = SCORE_NAMES[task.outcome]
    titles = [">tolerance", "rejected", ">columns", f">{names.score}", f">{names.loss}"]
    if has_left_out:
        titles += [f">{names.score} left out", ">worst"]
    rows = []
    for level in levels:
        row = [
            level.name + (" (used)" if level.is_own else ""),
            shorten_name(shorten_list(level.rejected)) if level.rejected else "-",
            f"{level.n_columns:,}",
            format_score(level.score),
            format_score(level.loss),
        ]
        if has_left_out:
            row += [format_score(level.score_left_out), format_score(level.worst_score_left_out)]
        rows.append(row)
    return make_table(titles, rows)


# --- effects --------------------------------------------------------------------------------------


def write_effects(columns: Sequence[ScreenedColumn], task: ScreenTask) -> Document:
    """Return the worth and the effect of each column by environment."""
    document: Document = [Heading("Worth and effect by environment")]
    for column in columns:
        if column.lowest is None:
            continue
        rows = [write_environment(effect, task) for effect in column.environments]
        effect = name_effect(task.outcome)
        titles = [name_environments(task), ">worth", ">95% interval", f">{effect}"]
        sentences = [explain_verdict(column, task), describe_stake(column)]
        document += [
            Heading(f"{shorten_name(column.column)}: {column.verdict}", level=3),
            Paragraph(shorten_sentence(" ".join(sentences))),
            make_table([*titles, ">95% interval"], rows),
            Note(shorten_sentence(f"{effect}: {describe_effect(column, task.outcome)}.")),
        ]
    return document


def write_environment(effect: EnvironmentEffect, task: ScreenTask) -> list[str]:
    """Return the worth and the effect in an environment, each with its interval."""
    return [
        shorten_name(effect.environment),
        format_worth(effect.worth),
        format_worth_interval(effect.worth_interval),
        format_effect(effect.effect, task.outcome),
        format_effect_interval(effect.effect_interval, task.outcome),
    ]
