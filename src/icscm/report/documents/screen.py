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
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.screen import (
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
from icscm.report.documents.shared import note_more, shorten_facts
from icscm.report.formatting import (
    format_heterogeneity,
    format_odds_interval,
    format_ratio,
    format_score,
)
from icscm.report.wording.facts import Fact
from icscm.report.wording.screening import (
    LIMITS,
    PRICE_OF_TRUTH,
    describe_costs,
    describe_price,
    describe_screen,
    explain_share,
    needs_reason,
    shows_effects,
)

# Kept columns that the short form lists.
N_KEPT = 15


def write_document(
    content: ScreenContent, *, is_brief: bool = False, facts: Sequence[Fact] = ()
) -> Document:
    """Return a report on a screen; the short form begins with facts about the data."""
    task = content.task
    shown, n_more = choose_columns(content.columns, is_brief=is_brief)
    document = write_brief_start(task, facts) if is_brief else write_start(task)
    sentence = describe_screen(
        content.count_verdict(REJECTED),
        n_columns=len(content.columns),
        tolerance=task.tolerance,
    )
    document += [
        Heading(shorten_sentence(sentence.rstrip("."))),
        write_columns(shown, task),
        *note_more(n_more, f"and {n_more:,} more columns kept; the report lists them"),
        Note(explain_share(task.tolerance)),
        *write_costs(content.costs, task),
        *write_validation(content.validation),
        *write_path(content.levels, task, is_brief=is_brief),
    ]
    if not is_brief:
        document += write_effects(shown, task)
    return [*document, Heading("Limits"), Bullets(list(LIMITS))]


def choose_columns(
    columns: Sequence[ScreenedColumn], *, is_brief: bool
) -> tuple[list[ScreenedColumn], int]:
    """Return the columns that are listed, and how many more were kept."""
    kept = [column for column in columns if column.verdict == "kept"]
    others = [column for column in columns if column.verdict != "kept"]
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
        Paragraph(f"{environments}{by}; learner: {learner}."),
    ]


def name_environments(task: ScreenTask) -> str:
    """Return the title of a column of environments."""
    return shorten_name(task.environment or "environment")


# --- verdicts and costs ---------------------------------------------------------------------------


def write_columns(columns: Sequence[ScreenedColumn], task: ScreenTask) -> Block:
    """Return the verdict on each column, with the extremes of its effect."""
    rows = [
        [
            shorten_name(column.column),
            write_verdict(column),
            format_heterogeneity(column.share),
            write_extremes(column, task.tolerance),
        ]
        for column in columns
    ]
    effect_title = f"lowest and highest odds ratio by {name_environments(task)}"
    return make_table(["column", "verdict", ">share", effect_title], rows)


def write_verdict(column: ScreenedColumn) -> str:
    """Return the verdict, with its reason where that is not the usual one."""
    if column.reason and needs_reason(column.verdict, column.reason):
        return f"{column.verdict}: {shorten_name(column.reason)}"
    return column.verdict


def write_extremes(column: ScreenedColumn, tolerance: float) -> str:
    """Return the lowest and the highest effect where they are of interest."""
    lowest, highest = column.lowest, column.highest
    if lowest is None or highest is None:
        return ""
    if not shows_effects(column.verdict, column.share, tolerance):
        return ""
    rule = shorten_name(column.rule or "")
    return f"{write_effect(lowest)} to {write_effect(highest)} if {rule}"


def write_effect(effect: EnvironmentEffect) -> str:
    """Return the odds ratio in an environment."""
    return f"{format_ratio(effect.odds_ratio)} ({shorten_name(effect.environment)})"


def write_costs(costs: Sequence[RoundCost], task: ScreenTask) -> Document:
    """Return the scores at the training environments after each rejection."""
    if not costs:
        return []
    rows = [
        [
            f"{cost.n_columns:,}",
            shorten_name(cost.without) if cost.without else "-",
            format_score(cost.auc),
            format_score(cost.log_loss),
        ]
        for cost in costs
    ]
    return [
        Heading("Cost at the training environments"),
        make_table([">columns", "without", ">AUC", ">log loss"], rows),
        Note(describe_costs(task.estimator)),
    ]


# --- environments left out, and other tolerances --------------------------------------------------


def write_validation(validation: ScreenValidationRecord | None) -> Document:
    """Return what the screen changes in environments left out."""
    if validation is None:
        return []
    means = [
        format_score(validation.means[name])
        for name in ("auc_all", "auc_screened", "log_loss_all", "log_loss_screened")
    ]
    rows = [write_left_out(left_out) for left_out in validation.held_out]
    titles = ["held out", ">rows", ">AUC, all", ">screened", ">log loss, all", ">screened"]
    return [
        Heading("Leave-one-environment-out"),
        make_table([*titles, "rejected there"], [*rows, ["mean", "", *means, ""]]),
        Paragraph(validation.text),
    ]


def write_left_out(left_out: LeftOutScreen) -> list[str]:
    """Return the scores in an environment, and what was rejected without it."""
    rejected = [format_name(column) for column in left_out.rejected]
    return [
        shorten_name(as_text(left_out.environment)),
        f"{left_out.n_samples:,}",
        format_score(left_out.auc_all),
        format_score(left_out.auc_screened),
        format_score(left_out.log_loss_all),
        format_score(left_out.log_loss_screened),
        shorten_name(shorten_list(rejected)) if rejected else "-",
    ]


def write_path(levels: Sequence[ToleranceLevel], task: ScreenTask, *, is_brief: bool) -> Document:
    """Return the screen at other tolerances; the short form only those that are stricter."""
    if not levels:
        return []
    document: Document = [Heading("Tolerance")]
    if not is_brief or levels[-1].tolerance < task.tolerance:
        document.append(write_tolerances(levels))
    price = describe_price(task.tolerance)
    return [*document, Paragraph(f"{price} {PRICE_OF_TRUTH}")]


def write_tolerances(levels: Sequence[ToleranceLevel]) -> Block:
    """Return the columns rejected at each tolerance, and the scores there."""
    has_left_out = levels[0].auc_left_out is not None
    titles = [">tolerance", "also rejected", ">columns", ">AUC", ">log loss"]
    if has_left_out:
        titles += [">AUC left out", ">worst"]
    rows = []
    for level in levels:
        row = [
            level.name + (" (used)" if level.is_own else ""),
            shorten_name(shorten_list(level.leave)) if level.leave else "-",
            f"{level.n_columns:,}",
            format_score(level.auc),
            format_score(level.log_loss),
        ]
        if has_left_out:
            row += [format_score(level.auc_left_out), format_score(level.worst_auc_left_out)]
        rows.append(row)
    return make_table(titles, rows)


# --- effects --------------------------------------------------------------------------------------


def write_effects(columns: Sequence[ScreenedColumn], task: ScreenTask) -> Document:
    """Return the effect of each column by environment."""
    document: Document = [Heading("Effects by environment")]
    for column in columns:
        pooled = column.pooled
        if column.lowest is None or pooled is None:
            continue
        rule = shorten_name(column.rule or "")
        interval = format_odds_interval(pooled.prediction_interval)
        rows = [
            [
                shorten_name(effect.environment),
                format_ratio(effect.odds_ratio),
                format_odds_interval(effect.interval),
            ]
            for effect in column.environments
        ]
        document += [
            Heading(f"{shorten_name(column.column)}: {column.verdict}", level=3),
            Paragraph(
                f"Odds ratio if {rule}, other columns held fixed. Pooled: "
                f"{format_ratio(pooled.odds_ratio)}; 95% prediction interval for a new "
                f"environment: {interval}."
            ),
            make_table([name_environments(task), ">odds ratio", ">95% interval"], rows),
        ]
    return document
