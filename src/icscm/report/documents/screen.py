"""A report on a screen of columns as a document: the whole of it, or its short form."""

from collections.abc import Sequence

from icscm.formatting import count, shorten_list
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
from icscm.report.documents.shared import note_more, shorten_facts, write_ratio
from icscm.report.formatting import (
    Plain,
    format_heterogeneity,
    format_odds_interval,
    format_ratio,
    format_score,
)
from icscm.report.wording.screening import (
    PRICE_OF_TRUTH,
    describe_costs,
    explain_share,
    needs_reason,
    shows_effects,
)

# Kept columns that the short form lists.
N_KEPT = 15


def write_document(
    summary: Plain, *, is_brief: bool = False, facts: Sequence[Sequence[str]] = ()
) -> Document:
    """Return a report on a screen; the short form begins with facts about the data."""
    task = summary["task"]
    shown, n_more = choose_columns(summary["columns"], is_brief=is_brief)
    document = write_brief_start(task, facts) if is_brief else write_start(task)
    document += [
        Heading(shorten_sentence(summary["model"]["sentence"].rstrip("."))),
        write_columns(shown, task),
        *note_more(n_more, f"and {n_more:,} more columns kept; the report lists them"),
        Note(explain_share(task["tolerance"])),
        *write_costs(summary),
        *write_validation(summary["validation"]),
        *write_path(summary, is_brief=is_brief),
    ]
    if not is_brief:
        document += write_effects(shown, task)
    return [*document, Heading("Limits"), Bullets(summary["limits_of_the_screen"])]


def choose_columns(columns: Sequence[Plain], *, is_brief: bool) -> tuple[list[Plain], int]:
    """Return the columns that are listed, and how many more were kept."""
    kept = [column for column in columns if column["verdict"] == "kept"]
    others = [column for column in columns if column["verdict"] != "kept"]
    n_kept = N_KEPT if is_brief else len(columns)
    return [*others, *kept[:n_kept]], len(kept[n_kept:])


def write_brief_start(task: Plain, facts: Sequence[Sequence[str]]) -> Document:
    """Return the facts about the data and the learner."""
    return [Facts([*shorten_facts(facts), ["Learner", shorten_name(task["estimator"])]])]


def write_start(task: Plain) -> Document:
    """Return the title, and what was screened."""
    data = f": {shorten_name(task['data'])}" if task["data"] else ""
    environments = count(len(task["environments"]), "environment")
    by = f" by {shorten_name(task['environment'])}" if task["environment"] else ""
    learner = shorten_name(task["estimator"])
    return [
        Heading(f"Screen of columns{data}", level=1),
        Paragraph(f"{environments}{by}; learner: {learner}."),
    ]


def write_columns(columns: Sequence[Plain], task: Plain) -> Block:
    """Return the verdict on each column, with the extremes of its effect."""
    rows = []
    for column in columns:
        verdict = column["verdict"]
        if needs_reason(column["verdict"], column["reason"]):
            verdict += f": {shorten_name(column['reason'])}"
        effects = ""
        if column["lowest"] and shows_effects(
            column["verdict"], column["share"], task["tolerance"]
        ):
            rule = shorten_name(column["rule"])
            ends = [write_ratio(column[end]) for end in ("lowest", "highest")]
            effects = f"{ends[0]} to {ends[1]} if {rule}"
        share = format_heterogeneity(column["share"])
        rows.append([shorten_name(column["column"]), verdict, share, effects])
    place = shorten_name(task["environment"] or "environment")
    effect_title = f"lowest and highest odds ratio by {place}"
    return make_table(["column", "verdict", ">share", effect_title], rows)


def write_costs(summary: Plain) -> Document:
    """Return the scores at the training environments after each rejection."""
    if not summary["costs"]:
        return []
    rows = [
        [
            f"{each['n_columns']:,}",
            shorten_name(each["without"]) if each["without"] else "-",
            format_score(each["auc"]),
            format_score(each["log_loss"]),
        ]
        for each in summary["costs"]
    ]
    return [
        Heading("Cost at the training environments"),
        make_table([">columns", "without", ">AUC", ">log loss"], rows),
        Note(describe_costs(summary["task"]["estimator"])),
    ]


def write_validation(validation: Plain | None) -> Document:
    """Return what the screen changes in environments left out."""
    if validation is None:
        return []
    scores = ("auc_all", "auc_screened", "log_loss_all", "log_loss_screened")
    rows = [
        [
            shorten_name(each["environment"]),
            f"{each['n_samples']:,}",
            *(format_score(each[score]) for score in scores),
            shorten_name(shorten_list(each["rejected"])) if each["rejected"] else "-",
        ]
        for each in validation["environments"]
    ]
    means = [format_score(validation["means"][score]) for score in scores]
    titles = ["held out", ">rows", ">AUC, all", ">screened", ">log loss, all", ">screened"]
    return [
        Heading("Leave-one-environment-out"),
        make_table([*titles, "rejected there"], [*rows, ["mean", "", *means, ""]]),
        Paragraph(validation["text"]),
    ]


def write_path(summary: Plain, *, is_brief: bool) -> Document:
    """Return the screen at other tolerances; the short form only those that are stricter."""
    path = summary["path"]
    if not path:
        return []
    document: Document = [Heading("Tolerance")]
    if not is_brief or path[-1]["tolerance"] < summary["task"]["tolerance"]:
        document.append(write_tolerances(path))
    return [*document, Paragraph(f"{summary['price']} {PRICE_OF_TRUTH}")]


def write_tolerances(path: Sequence[Plain]) -> Block:
    """Return the columns rejected at each tolerance, and the scores there."""
    has_scores = path[0]["auc_left_out"] is not None
    scores = ["auc", "log_loss"] + (["auc_left_out", "worst_auc_left_out"] if has_scores else [])
    titles = [">tolerance", "also rejected", ">columns", ">AUC", ">log loss"]
    titles += [">AUC left out", ">worst"] if has_scores else []
    rows = [
        [
            each["name"] + (" (used)" if each["is_own"] else ""),
            shorten_name(shorten_list(each["leave"])) if each["leave"] else "-",
            f"{each['n_columns']:,}",
            *(format_score(each[score]) for score in scores),
        ]
        for each in path
    ]
    return make_table(titles, rows)


def write_effects(columns: Sequence[Plain], task: Plain) -> Document:
    """Return the effect of each column by environment."""
    place = shorten_name(task["environment"] or "environment")
    document: Document = [Heading("Effects by environment")]
    for column in columns:
        if not column["lowest"]:
            continue
        pooled = column["pooled"]
        interval = format_odds_interval(pooled["prediction_interval"])
        rows = [
            [
                shorten_name(row["environment"]),
                format_ratio(row["odds_ratio"]),
                format_odds_interval(row["interval"]),
            ]
            for row in column["environments"]
        ]
        document += [
            Heading(f"{shorten_name(column['column'])}: {column['verdict']}", level=3),
            Paragraph(
                f"Odds ratio if {shorten_name(column['rule'])}, other columns held fixed. Pooled: "
                f"{format_ratio(pooled['odds_ratio'])}; 95% prediction interval for a new "
                f"environment: {interval}."
            ),
            make_table([place, ">odds ratio", ">95% interval"], rows),
        ]
    return document
