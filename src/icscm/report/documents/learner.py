"""A report on a fitted learner as a document: the whole of it, or its short form."""

from operator import itemgetter

from icscm.report.blocks import (
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
from icscm.report.documents.leaves import (
    write_brief_leaves,
    write_leaves,
    write_new_environments,
)
from icscm.report.documents.model import write_discarded, write_model
from icscm.report.documents.search import write_pruning_tests, write_search
from icscm.report.documents.shared import (
    LIMITS,
    N_BRIEF,
    N_FEW,
    choose_by_name,
    list_rates,
    note_more,
    shorten_facts,
)
from icscm.report.formatting import (
    Plain,
    format_deviance,
    format_estimate,
    format_interval,
    format_score,
    format_share,
    format_value,
)
from icscm.report.selection import list_spans
from icscm.report.wording.facts import Fact

# Facts that the whole report repeats below its headline.
REPEATED_FACTS = ("Shape", "Stability")


def write_document(
    summary: Plain, *, is_brief: bool = False, with_rejected: bool = False
) -> Document:
    """Return a report on a fitted learner.

    Parameters
    ----------
    summary : dict
        The value of `icscm.report.summary.make_summary`.
    is_brief : bool
        Whether it is the short form, as the terminal shows it.
    with_rejected : bool
        Whether the short form has the rejected candidates of each scan.
    """
    if is_brief:
        return write_brief(summary, with_rejected=with_rejected)
    return [
        *write_headline(summary),
        *write_left_out(summary, is_brief=False),
        *write_model(summary, is_brief=False),
        *write_search(summary, is_brief=False, with_rejected=True),
        *write_discarded(summary),
        *write_pruning_tests(summary),
        *write_advice(summary),
        *write_stability(summary, n_listed=N_BRIEF),
        *write_path(summary),
        *write_leaves(summary),
        *write_new_environments(summary, is_brief=False),
        *write_errors(summary, is_brief=False),
        *write_task(summary),
        *write_interpretation(summary),
    ]


def write_brief(summary: Plain, *, with_rejected: bool) -> Document:
    """Return the short form of a report."""
    model, leaves = summary["model"], summary["leaves"]
    facts = [Fact(term, text) for term, text in summary["headline"]["facts"]]
    document: Document = [Facts(shorten_facts(facts))]
    document += write_left_out(summary, is_brief=True)
    document += write_model(summary, is_brief=True)
    document += write_search(summary, is_brief=True, with_rejected=with_rejected)
    if model["n_rules"]:
        if model["noun"] == "rule":
            document.append(Paragraph(summary["nodes"]["stop_text"]))
        document += [Paragraph(note) for note in summary["task"]["notes"]]
    document += write_advice(summary)
    document += write_stability(summary, n_listed=N_FEW)
    path = summary["path"]
    if path is not None and path["parameter"] == "tolerance":
        document += write_path(summary)
    has_environments = summary["task"]["has_environments"]
    if leaves and model["n_rules"] and (has_environments or model["noun"] == "rule"):
        document += write_brief_leaves(summary)
    if leaves and model["n_rules"]:
        document += write_new_environments(summary, is_brief=True)
    if summary["errors"]["is_out_of_bag"]:
        document += write_errors(summary, is_brief=True)
    return document


# --- headline and environments left out -----------------------------------------------------------


def write_headline(summary: Plain) -> Document:
    """Return the title, the model in a sentence, and the answers on each topic."""
    task, headline, path = summary["task"], summary["headline"], summary["path"]
    source = f"Data: {shorten_name(task['data'])}, " if task["data"] else ""
    source += f"{task['n_rows']:,} samples"
    if task["has_environments"]:
        source += f", {task['n_environments']:,} environments"
    source += f"; {task['learner']}, {summary['about']['package']} {summary['about']['version']}"

    answers = [headline[topic] for topic in ("new_sites", "error", "invariance", "rejected")]
    points = [
        f"{shorten_name(each['topic'])}: {each['answer']}. {shorten_sentence(each['detail'])}"
        for each in answers
    ]
    points += [
        f"{term}: {shorten_sentence(text)}."
        for term, text in headline["facts"]
        if term in REPEATED_FACTS
    ]
    document: Document = [
        Heading(headline["title"], level=1),
        Paragraph(source),
        Note(shorten_sentence(summary["model"]["sentence"])),
        Bullets(points),
    ]
    if summary["model"]["noun"] != "rule":
        document.append(Paragraph(shorten_sentence(headline["model"]["detail"])))
    if path is not None and path["n_models"] > 1:
        document.append(Paragraph(shorten_sentence(path["text"])))
    return document


def write_left_out(summary: Plain, *, is_brief: bool) -> Document:
    """Return the scores in environments left out, and their random-effects means."""
    validation = summary["validation"]
    if not validation["pooled"]:
        return []
    names = list(validation["titles"])
    environments = validation["environments"][: N_BRIEF if is_brief else LIMITS.environments]
    rows = [
        [
            shorten_name(str(each["environment"])),
            f"{each['n_samples']:,}",
            *(write_score(each["scores"][name], is_brief=is_brief) for name in names),
        ]
        for each in environments
    ]
    pooled = [validation["pooled"][name] for name in names]
    rows.append(["random effects", "", *(write_score(p, is_brief=is_brief) for p in pooled)])
    if not is_brief:
        rows.append(["95% prediction interval", "", *map(write_new_interval, pooled)])

    titles = [f">{shorten_title(title)}" for title in validation["titles"].values()]
    note = "Each model was learned without the environment."
    if not is_brief:
        note += (
            " slope, intercept: of a logistic regression of the label on the predicted log odds; "
            "1 and 0 at best. skill: relative reduction of the Brier score of the rate in "
            "training. Random effects: DerSimonian and Laird, with the interval of Hartung and "
            "Knapp."
        )
    elif len(validation["environments"]) > N_BRIEF:
        note += " The report lists all of them."
    return [
        Heading("Environments left out" if is_brief else "Performance in environments left out"),
        make_table([shorten_name(summary["task"]["environment"]), ">samples", *titles], rows),
        Note(note),
    ]


def shorten_title(title: str) -> str:
    """Return the title of a score as that of a narrow column."""
    title = title.replace("Calibration ", "").replace("Brier skill", "skill")
    return title.replace(" score", "")


def write_score(score: Plain | None, *, is_brief: bool) -> str:
    """Return a score, in the whole report with its interval."""
    if not is_brief:
        return format_estimate(score)
    return "-" if score is None else f"{score['value']:.2f}"


def write_new_interval(pooled: Plain | None) -> str:
    """Return the prediction interval of a score in a new environment."""
    if pooled is None or isinstance(pooled["new_low"], str):
        return "-"
    return f"{pooled['new_low']:.2f} to {pooled['new_high']:.2f}"


# --- advice, stability, other levels --------------------------------------------------------------


def write_advice(summary: Plain) -> Document:
    """Return warnings and suggestions."""
    document: Document = []
    for title in ("warnings", "suggestions"):
        points = [shorten_sentence(point) for point in summary["advice"][title]]
        if points:
            document += [Heading(title.capitalize()), Bullets(points)]
    return document


def write_stability(summary: Plain, *, n_listed: int) -> Document:
    """Return how often columns, rules and models were found on subsamples."""
    stability = summary["stability"]
    if stability is None:
        return []
    document: Document = [Heading("Stability"), Paragraph(stability["text"])]
    for title, key in (("column", "features"), ("rule", "rules"), ("model", "models")):
        listed = stability[key]
        if listed:
            rows = [
                [
                    format_share(each["frequency"]),
                    shorten_name(each["text"]) + (" (this model)" if each["is_own"] else ""),
                ]
                for each in listed[:n_listed]
            ]
            document.append(make_table([">of subsamples", title], rows))
            n_more = len(listed) - n_listed
            document += note_more(n_more, f"and {n_more:,} more")
    return document


def write_path(summary: Plain) -> Document:
    """Return the models at other levels or tolerances."""
    path = summary["path"]
    if path is None:
        return []
    return write_levels(path) if path["parameter"] == "alpha" else write_tolerances(path)


def write_tolerances(path: Plain) -> Document:
    """Return the trees along the tolerance, from a plain one to a strict one."""
    has_scores = path["has_scores"]
    scores = [">AUC left out", ">worst"] if has_scores else []
    titles = ["tolerance", ">leaves", ">deviance", ">heterogeneity", *scores, "leave", "enter"]
    rows = []
    for point in path["points"]:
        row = [
            point["name"] + (" (this report)" if point["is_own"] else ""),
            f"{point['n_leaves']:,}",
            format_deviance(point["deviance_explained"]),
            format_deviance(point["varies"]),
        ]
        if has_scores:
            row += [format_score(point["mean_auc"]), format_score(point["worst_auc"])]
        changes = [shorten_sentence(", ".join(point[key])) for key in ("leave", "enter")]
        rows.append([*row, *changes])
    note = (
        "From a plain tree to a strict one. deviance: explained by the tree. heterogeneity: "
        "between environments, beyond chance."
    )
    if has_scores:
        note += " AUC left out: mean over leave-one-environment-out."
    return [
        Heading("Other tolerances"),
        make_table(titles, rows),
        Note(f"{note} {path['caution']}"),
    ]


def write_levels(path: Plain) -> Document:
    """Return the models along alpha, with the conclusions on their leaves."""
    rows = [
        [
            model["name"],
            span.text + (" (this report)" if span.is_own else ""),
            shorten_sentence(model["text"]),
            format_share(model["errors"]["error"]),
            span.conclusions,
        ]
        for model in path["models"]
        for span in list_spans(model["levels"])
    ]
    text = f"The model was learned at {path['n_searches']} levels. {path['meaning']}"
    titles = ["model", "alpha", "rule", ">error", "leaves at these levels"]
    return [Heading("Other levels"), Paragraph(text), make_table(titles, rows)]


# --- errors and task ------------------------------------------------------------------------------


def write_errors(summary: Plain, *, is_brief: bool) -> Document:
    """Return the errors by environment, beside those of the baseline."""
    errors, task = summary["errors"], summary["task"]
    document: Document = [Heading(f"Errors on {errors['on']}")]
    if not is_brief:
        text = (
            f"{summary['headline']['error']['answer']}. The majority-class baseline, "
            f"{shorten_name(errors['majority_class'])}, is wrong for "
            f"{format_share(errors['majority_error'])}."
        )
        if errors["worst"] is not None:
            text += f" Worst: {shorten_sentence(errors['worst']['text'])}."
        document.append(Paragraph(text))

    is_out_of_bag = errors["is_out_of_bag"]
    scores = [">AUC"] if is_out_of_bag else [">sensitivity", ">specificity"]
    titles = [
        shorten_name(task["environment"]),
        ">samples",
        ">wrong",
        ">error",
        "interval",
        *scores,
        ">baseline",
    ]
    environments = choose_by_name(errors["environments"]) if task["has_environments"] else []
    rows = []
    for name, each in [("all", errors), *((e["environment"], e) for e in environments)]:
        shares = [format_share(each["sensitivity"]), format_share(each["specificity"])]
        rows.append(
            [
                shorten_name(name),
                f"{each['n']:,}",
                f"{each['n_errors']:,}",
                format_share(each["error"]),
                format_interval(each["error_interval"]),
                *([format_score(each["auc"])] if is_out_of_bag else shares),
                format_share(each["majority_error"]),
            ]
        )
    return [*document, make_table(titles, rows)]


def write_task(summary: Plain) -> Document:
    """Return what was predicted from which data, with which settings."""
    task = summary["task"]
    classes = task["classes"]
    text = (
        f"Predict {shorten_name(task['target'])} ({shorten_name(classes['negative'])} or "
        f"{shorten_name(classes['positive'])}; the latter is positive) from "
        f"{task['n_columns']:,} columns. Requirement: "
        f"{shorten_sentence(task['requirement']['text'])}"
    )
    environments = choose_by_name(task["environments"]) if task["has_environments"] else []
    rate = f">rate of {shorten_name(task['positive'])}"
    titles = [shorten_name(task["environment"]), ">samples", rate, "interval"]
    settings = [
        [
            each["name"],
            shorten_name(format_value(each["value"])) + ("" if each["is_default"] else " (chosen)"),
            each["meaning"],
        ]
        for each in sorted(task["settings"], key=itemgetter("is_default"))
    ]
    document: Document = [
        Heading("Task"),
        Paragraph(text),
        *list_rates(task["overall"], environments, titles),
        make_table(["setting", "value", "meaning"], settings),
    ]
    dropped = [
        [shorten_name(each["column"]), shorten_name(each["reason"])]
        for each in task["dropped"][: LIMITS.environments]
    ]
    if dropped:
        document.append(make_table(["dropped column", "reason"], dropped))
    if task["notes"]:
        document.append(Bullets(task["notes"]))
    return document


def write_interpretation(summary: Plain) -> Document:
    """Return what the result shows and what it does not show."""
    advice = summary["advice"]
    return [
        Heading("Interpretation"),
        Paragraph("What the result shows:"),
        Bullets([shorten_sentence(point) for point in advice["shows"]]),
        Paragraph("What it does not show:"),
        Bullets(advice["does_not_show"]),
    ]
