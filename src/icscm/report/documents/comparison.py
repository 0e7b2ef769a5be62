"""A comparison of learners as a document."""

from collections.abc import Callable, Sequence

from icscm.formatting import as_text, shorten_list
from icscm.report.blocks import (
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.documents.shared import shorten_facts
from icscm.report.formatting import Plain
from icscm.report.wording.facts import Fact

# Writes the value of a measure, with its interval where that is given.
WriteScore = Callable[..., str]
MEASURES = ("log_loss", "slope", "intercept", "error")


def write_document(found: Plain, facts: Sequence[Fact], write_score: WriteScore) -> Document:
    """Return tables, rules and conclusions, below facts about the data.

    `write_score` writes the value of a measure, where it is given with its interval.
    """
    listed = [*shorten_facts(facts), *list_facts(found)]
    document: Document = [Facts(listed)] if listed else []
    if found["environments"]:
        document += write_environments(found, write_score)
    document += write_folds(found, write_score)
    for title, key in (("Learned from all rows", "model"), ("Failed on some folds", "failure")):
        described = [
            Fact(shorten_name(each["name"]), shorten_name(as_text(each[key])))
            for each in found["candidates"]
            if each[key]
        ]
        if described:
            document += [Heading(title), Facts(described)]
    conclusions = [shorten_sentence(each) for each in found["conclusions"]]
    return [*document, Heading("Conclusions"), Bullets(conclusions)]


def list_facts(found: Plain) -> list[Fact]:
    """Return the columns that were dropped, and the environments that were not left out."""
    facts: list[Fact] = []
    if found["dropped"]:
        dropped = as_text(shorten_list(list(found["dropped"])))
        facts.append(Fact("Dropped", f"{dropped}, for all candidates; see icscm check"))
    small = [f"{each['environment']} ({each['n_rows']:,} rows)" for each in found["kept_in"]]
    if small:
        facts.append(Fact("Not held out", f"too small: {as_text(shorten_list(small))}"))
    return facts


def write_environments(found: Plain, write_score: WriteScore) -> Document:
    """Return the mean scores in environments left out, and the worst AUC."""
    rows = []
    for each in found["candidates"]:
        scores = each["environments"]
        rows.append(
            [
                shorten_name(each["name"]),
                write_score("auc", scores["auc"], each["intervals"]["auc"]),
                write_score("auc", each["worst"]["auc"]),
                *(write_score(measure, scores[measure]) for measure in MEASURES),
            ]
        )
    titles = ["candidate", ">AUC", ">worst", ">log loss", ">slope", ">intercept", ">error"]
    n_environments = len(found["environments"])
    return [
        Heading(f"Leave-one-environment-out: {n_environments:,} environments"),
        make_table(titles, rows),
        Note(
            "Means over environments with the 95% interval of the mean, and the worst environment. "
            "slope, intercept: calibration, 1 and 0 at best. error: at threshold 0.5, for rule "
            "sets by their rules."
        ),
    ]


def write_folds(found: Plain, write_score: WriteScore) -> Document:
    """Return the mean scores over folds of rows, and the time of a fit."""
    rows = [
        [
            shorten_name(each["name"]),
            *(write_score(measure, each["rows"][measure]) for measure in ("auc", *MEASURES)),
            f"{each['fit_seconds']:.2f}",
        ]
        for each in found["candidates"]
    ]
    titles = ["candidate", ">AUC", ">log loss", ">slope", ">intercept", ">error"]
    return [
        Heading(f"By rows: {found['n_folds']} folds"),
        make_table([*titles, ">seconds to fit"], rows),
    ]
